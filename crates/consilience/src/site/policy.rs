//! What a site is willing to answer.

use crate::question::{Fit, Kind, Locate, Question, Statistics};
use crate::{Error, Place, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A site's policy file (TOML). What it leaves out is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Fewer rows than this answer nothing; levels of factors with fewer are merged.
    pub min_rows: u64,
    /// The most draws or points of one model that one question may ask about.
    pub max_draws: Option<u64>,
    /// The most questions of one study that are answered.
    pub max_rounds: Option<u64>,
    /// Kinds of questions that are not answered, such as `fit`, which stands for `locate` as well.
    pub forbid: Vec<String>,
    /// The hashes of the only studies that are answered; empty: any.
    pub studies: Vec<String>,
    /// Where all that was answered is written down, as seen from the policy file.
    pub log: Option<PathBuf>,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            min_rows: 1,
            max_draws: None,
            max_rounds: None,
            forbid: Vec::new(),
            studies: Vec::new(),
            log: None,
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
    /// The size of the answer file.
    pub bytes: u64,
    /// Its hash.
    pub sha256: String,
}

impl Policy {
    /// Reads a policy file. The log's path becomes one from here.
    pub fn read(path: &Path) -> Result<Policy> {
        const LARGEST: u64 = 1 << 20;
        let bytes = crate::run::load(path, LARGEST)?;
        let wrong = |message: String| Error::input_at(Place::file(path), message);
        let text = String::from_utf8(bytes).map_err(|_| wrong("a policy is a text file".into()))?;
        let mut policy = Policy::parse(&text).map_err(wrong)?;
        if let (Some(log), Some(folder)) = (&mut policy.log, path.parent()) {
            *log = folder.join(&*log);
        }
        Ok(policy)
    }

    /// Reads a policy from its text, or says what is wrong with it.
    pub fn parse(text: &str) -> std::result::Result<Policy, String> {
        let policy: Policy = toml::from_str(text).map_err(|e| format!("this is no policy: {e}"))?;
        if let Some(unknown) = policy.forbid.iter().find(|k| !Question::KINDS.contains(&k.as_str()))
        {
            let known = crate::error::suggestion(unknown, Question::KINDS.iter().copied());
            return Err(format!("`forbid` names no kind of question: `{unknown}`{known}"));
        }
        Ok(policy)
    }

    fn forbids(&self, kind: &str) -> bool {
        self.forbid.iter().any(|known| known == kind)
    }

    /// Whether the policy lets a site answer these questions, after what the log says it answered.
    pub(super) fn allow(
        &self,
        study: &str,
        question: &str,
        questions: &[Question],
        log: &[LogEntry],
    ) -> Result<()> {
        let refuse =
            |message: String| Err(Error::input(format!("the policy forbids it: {message}")));
        if !self.studies.is_empty() && !self.studies.iter().any(|s| s == study) {
            return refuse(format!("the study {study} is not among `studies`"));
        }
        for asked in questions {
            let kind = asked.kind();
            // Where a likelihood is highest is a fit too.
            let is_fit = kind == Locate::NAME && self.forbids(Fit::NAME);
            if self.forbids(kind) || is_fit {
                let advice = match kind {
                    Locate::NAME => {
                        "; with schedule = \"gentle\" under [evidence] the study does without"
                    }
                    Statistics::NAME => {
                        "; with statistics = false under [evidence] the study does without"
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
        let before: BTreeSet<&str> =
            log.iter().filter(|e| e.study == study).map(|e| e.question.as_str()).collect();
        // Answering the same question again tells nothing new.
        if let Some(most) = self.max_rounds
            && !before.contains(question)
            && before.len() as u64 >= most
        {
            return refuse(format!(
                "{} questions of this study were answered, and max_rounds = {most}",
                before.len()
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_or_refused_with_a_reason() {
        let policy =
            Policy::parse("min_rows = 20\nforbid = [\"fit\"]\nlog = \"log.jsonl\"").unwrap();
        assert_eq!((policy.min_rows, policy.max_rounds), (20, None));
        assert_eq!(Policy::parse("").unwrap(), Policy::default());
        for (text, part) in [
            ("min_row = 3", "unknown field `min_row`"),
            ("min_rows = -3", "min_rows"),
            ("forbid = [\"fits\"]", "did you mean `fit`?"),
            ("min_rows =", "no policy"),
        ] {
            let error = Policy::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
