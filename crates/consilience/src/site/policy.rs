//! What a site is willing to answer.

use super::rows::RowsUsed;
use crate::question::{Augment, Explore, Fit, Kind, Locate, Question, Statistics};
use crate::{Error, Place, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A site's policy file (TOML). What it leaves out is as careful as [`Policy::default`] is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Fewer rows than this answer nothing, stand behind no column, class or cell, and tell no two studies apart.
    pub min_rows: u64,
    /// The most design columns, as a share of the rows.
    pub max_columns: f64,
    /// The largest linear predictor, in either direction, that a point may give any row.
    pub max_predictor: f64,
    /// How many of its prior's standard deviations a parameter may be from the prior's centre.
    pub max_prior_sds: f64,
    /// The most draws or points of one model that one question may ask about.
    pub max_draws: Option<u64>,
    /// The most points that are answered in all, by the log.
    pub max_points: Option<u64>,
    /// The most questions that are answered in all, by the log.
    pub max_questions: Option<u64>,
    /// The most designs that are answered about in all, by the log.
    pub max_designs: Option<u64>,
    /// Kinds of questions about this site's own posterior that are answered all the same; see [`Policy::LOCAL`].
    pub allow: Vec<String>,
    /// Kinds of questions that are not answered. `fit` stands for `locate` as well.
    pub forbid: Vec<String>,
    /// The hashes of the only studies that are answered; empty: any.
    pub studies: Vec<String>,
    /// The public keys of the only coordinators that are answered; empty: any, but always the same one in a run.
    pub coordinators: Vec<String>,
    /// Whether questions are answered that nobody signed.
    pub unsigned: bool,
    /// Whether log densities are told only in sums over all sites, never this site's own.
    pub sums_only: bool,
    /// Whether sums are told over lists of sites from which a single site's answers could be computed.
    pub allow_dropout: bool,
    /// Where all that was answered is written down, as seen from the policy file; an empty path: nowhere.
    pub log: PathBuf,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            min_rows: 5,
            max_columns: 0.33,
            max_predictor: 100.0,
            max_prior_sds: 100.0,
            max_draws: None,
            max_points: Some(200_000),
            max_questions: Some(200),
            max_designs: Some(20),
            allow: Vec::new(),
            forbid: Vec::new(),
            studies: Vec::new(),
            coordinators: Vec::new(),
            unsigned: false,
            sums_only: false,
            allow_dropout: false,
            log: PathBuf::from("answered.jsonl"),
        }
    }
}

/// One line of a site's log: what was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// When; filled in by whoever has a clock.
    pub time: String,
    /// The site.
    pub site: String,
    /// The study's hash.
    pub study: String,
    /// The question's hash.
    pub question: String,
    /// The round, as the question says.
    pub round: u64,
    /// What was asked.
    pub asks: Vec<String>,
    /// How many rows answered.
    pub rows: u64,
    /// The run, and the public key of the one who asked.
    #[serde(default)]
    pub run: String,
    /// See [`run`](Self::run).
    #[serde(default)]
    pub coordinator: String,
    /// How many points were answered.
    #[serde(default)]
    pub points: u64,
    /// The hashes of the designs that were answered about.
    #[serde(default)]
    pub designs: Vec<String>,
    /// Which rows they were.
    #[serde(default)]
    pub rows_used: RowsUsed,
    /// The sites whose answers were added up, where this one's was masked.
    #[serde(default)]
    pub sites: Vec<String>,
    /// The size of the answer file.
    pub bytes: u64,
    /// Its hash.
    pub sha256: String,
}

/// What a question file would take of a site's budget.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Cost {
    pub points: u64,
    pub designs: BTreeSet<String>,
}

/// What a site has answered so far, and what its policy leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyBudget {
    /// Questions answered, and how many may be.
    pub questions: (u64, Option<u64>),
    /// Points answered, and how many may be.
    pub points: (u64, Option<u64>),
    /// Designs answered about, and how many may be.
    pub designs: (u64, Option<u64>),
}

impl Policy {
    /// The kinds of questions that tell of the posterior of this site's rows alone. They are not answered unless
    /// `allow` names them.
    pub const LOCAL: [&'static str; 4] = [Fit::NAME, Locate::NAME, Augment::NAME, Explore::NAME];

    /// Answers whatever is asked and counts nothing: for data that everybody may see.
    pub fn trusting() -> Policy {
        Policy {
            min_rows: 1,
            max_columns: f64::INFINITY,
            max_predictor: f64::INFINITY,
            max_prior_sds: f64::INFINITY,
            max_points: None,
            max_questions: None,
            max_designs: None,
            allow: Policy::LOCAL.map(String::from).into(),
            unsigned: true,
            log: PathBuf::new(),
            ..Policy::default()
        }
    }

    /// Reads a policy file. The log's path becomes one from here.
    pub fn read(path: &Path) -> Result<Policy> {
        const LARGEST: u64 = 1 << 20;
        let bytes = crate::run::load(path, LARGEST)?;
        let wrong = |message: String| Error::input_at(Place::file(path), message);
        let text = String::from_utf8(bytes).map_err(|_| wrong("a policy is a text file".into()))?;
        let mut policy = Policy::parse(&text).map_err(wrong)?;
        if let Some(folder) = path.parent().filter(|_| policy.has_log()) {
            policy.log = folder.join(&policy.log);
        }
        Ok(policy)
    }

    /// Whether what was answered is written down.
    pub fn has_log(&self) -> bool {
        !self.log.as_os_str().is_empty()
    }

    /// Reads a policy from its text, or says what is wrong with it.
    pub fn parse(text: &str) -> std::result::Result<Policy, String> {
        let policy: Policy = toml::from_str(text).map_err(|e| format!("this is no policy: {e}"))?;
        for (key, kinds) in [("forbid", &policy.forbid), ("allow", &policy.allow)] {
            if let Some(unknown) = kinds.iter().find(|k| !Question::KINDS.contains(&k.as_str())) {
                let known = crate::error::suggestion(unknown, Question::KINDS.iter().copied());
                return Err(format!("`{key}` names no kind of question: `{unknown}`{known}"));
            }
        }
        for (key, value) in [
            ("max_columns", policy.max_columns),
            ("max_predictor", policy.max_predictor),
            ("max_prior_sds", policy.max_prior_sds),
        ] {
            if value.is_nan() || value <= 0.0 {
                return Err(format!("`{key}` must be positive, but is {value}"));
            }
        }
        let counted = [policy.max_points, policy.max_questions, policy.max_designs];
        let stated = ["max_points", "max_questions", "max_designs"];
        let mut stated = stated.iter().zip(counted).filter(|(key, _)| text.contains(**key));
        if let Some((key, _)) = stated.find(|(_, bound)| bound.is_some() && !policy.has_log()) {
            return Err(format!("`{key}` needs a log, by which it counts: give `log` a name"));
        }
        Ok(policy)
    }

    /// Whether questions of this kind are not answered. A sum over all sites tells of no site's own posterior.
    fn forbids(&self, kind: &str, sums: bool) -> bool {
        let named = |list: &[String], kind: &str| list.iter().any(|known| known == kind);
        let local = Policy::LOCAL.contains(&kind) && !named(&self.allow, kind) && !sums;
        // Where a likelihood is highest is a fit too.
        let is_fit = kind == Locate::NAME && named(&self.forbid, Fit::NAME);
        local || is_fit || named(&self.forbid, kind)
    }

    /// Whether the policy lets a site answer such questions of this study and coordinator, after what the log says.
    pub(super) fn allow(
        &self,
        study: &str,
        (run, coordinator): (&str, Option<&str>),
        questions: &[Question],
        sums: bool,
        log: &[LogEntry],
    ) -> Result<()> {
        if !self.studies.is_empty() && !self.studies.iter().any(|s| s == study) {
            return refuse(format!("the study {study} is not among `studies`"));
        }
        let known = |key: &str| self.coordinators.iter().any(|k| k.eq_ignore_ascii_case(key));
        match coordinator {
            None if !self.unsigned || !self.coordinators.is_empty() => {
                return refuse("nobody has signed the question".into());
            }
            Some(key) if !self.coordinators.is_empty() && !known(key) => {
                return refuse(format!("the key {key} is not among `coordinators`"));
            }
            _ => {}
        }
        let asked_before = log.iter().find(|entry| entry.run == run && !run.is_empty());
        if let Some(before) = asked_before
            && before.coordinator != coordinator.unwrap_or_default()
        {
            return refuse(format!(
                "the run {run} was begun by somebody with another key, {}",
                before.coordinator
            ));
        }
        for asked in questions {
            let kind = asked.kind();
            if self.forbids(kind, sums) {
                let advice = match kind {
                    Locate::NAME => {
                        "; with schedule = \"gentle\" under [evidence] the study does without"
                    }
                    Statistics::NAME => {
                        "; with statistics = false under [evidence] the study does without"
                    }
                    Fit::NAME | Augment::NAME => {
                        "; a study with combine = \"exact\" does without, or add it to `allow`"
                    }
                    _ => "",
                };
                return refuse(format!("a question of kind `{kind}` is not answered{advice}"));
            }
            let draws = asked.draws();
            if self.max_draws.is_some_and(|most| draws > most) {
                return refuse(format!(
                    "`{}` asks about {draws} draws, more than max_draws = {}",
                    asked.kind(),
                    self.max_draws.unwrap_or_default()
                ));
            }
        }
        Ok(())
    }

    /// What was answered so far.
    pub fn budget(&self, log: &[LogEntry]) -> PolicyBudget {
        let questions: BTreeSet<(&str, &str)> =
            log.iter().map(|e| (e.question.as_str(), e.site.as_str())).collect();
        let mut counted = BTreeSet::new();
        // The same question again tells nothing new.
        let new = log.iter().filter(|e| counted.insert((e.question.as_str(), e.site.as_str())));
        let points = new.map(|e| e.points).fold(0, u64::saturating_add);
        let designs: BTreeSet<&String> = log.iter().flat_map(|e| &e.designs).collect();
        PolicyBudget {
            questions: (questions.len() as u64, self.max_questions),
            points: (points, self.max_points),
            designs: (designs.len() as u64, self.max_designs),
        }
    }

    /// Whether the budget bears this, after what the log says was answered, of whatever study.
    pub(super) fn afford(
        &self,
        (question, site): (&str, &str),
        cost: &Cost,
        log: &[LogEntry],
    ) -> Result<()> {
        if log.iter().any(|entry| entry.question == question && entry.site == site) {
            return Ok(());
        }
        let PolicyBudget { questions, points, designs } = self.budget(log);
        let known: BTreeSet<&String> = log.iter().flat_map(|e| &e.designs).collect();
        let new_designs = cost.designs.iter().filter(|d| !known.contains(d)).count() as u64;
        let each = [
            ("questions", "max_questions", questions, 1),
            ("points", "max_points", points, cost.points),
            ("designs", "max_designs", designs, new_designs),
        ];
        for (what, key, (used, most), more) in each {
            if let Some(most) = most
                && more > 0
                && used.saturating_add(more) > most
            {
                return refuse(format!(
                    "{used} {what} were answered with these data, this one asks about {more} more, and {key} = {most}"
                ));
            }
        }
        Ok(())
    }
}

/// Refuses by the policy, which the message names.
pub(super) fn refuse<T>(message: String) -> Result<T> {
    Err(Error::input(format!("the policy forbids it: {message}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_or_refused_with_a_reason() {
        let policy =
            Policy::parse("min_rows = 20\nforbid = [\"fit\"]\nlog = \"log.jsonl\"").unwrap();
        assert_eq!((policy.min_rows, policy.max_questions), (20, Some(200)));
        assert!(policy.forbids("locate", false) && Policy::default().forbids("augment", false));
        assert!(!Policy::parse("allow = [\"locate\"]").unwrap().forbids("locate", false));
        assert!(policy.forbids("locate", true) && !Policy::default().forbids("locate", true));
        assert_eq!(Policy::parse("").unwrap(), Policy::default());
        for (text, part) in [
            ("min_row = 3", "unknown field `min_row`"),
            ("min_rows = -3", "min_rows"),
            ("forbid = [\"fits\"]", "did you mean `fit`?"),
            ("min_rows =", "no policy"),
            ("max_predictor = 0", "must be positive"),
            ("log = \"\"\nmax_points = 9", "`max_points` needs a log"),
        ] {
            let error = Policy::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
