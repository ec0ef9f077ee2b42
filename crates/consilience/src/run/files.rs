//! The engine whose shards answer by files.

use super::directory::Run;
use super::exchange::{FoundAnswer, answer_path, find, pose};
use super::masks::{Hidden, reveal};
use super::message::{AnswerHeader, Reply};
use crate::compare::PartitionReport;
use crate::engine::{Answered, Engine};
use crate::error::Waiting;
use crate::plan::Learned;
use crate::question::{Answer, Answers, Question};
use crate::{Error, Level, Place, Result, Warning};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whoever gets answers that are missing: waits for workers, submits jobs, or gives up for now.
pub trait Courier: Sync {
    /// Called when a round lacks answers. Returns when it is worth looking again.
    fn fetch(&self, open: &OpenRound) -> Result<()>;
}

/// A courier who ends the run with [`Error::Waiting`]: others answer, then it is run again.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stop;

impl Courier for Stop {
    fn fetch(&self, open: &OpenRound) -> Result<()> {
        Err(Error::Waiting(Box::new(open.waiting())))
    }
}

/// A round that lacks answers.
#[derive(Debug)]
pub struct OpenRound<'a> {
    /// The run.
    pub run: &'a Run,
    /// The question file.
    pub question: &'a Path,
    /// The round, counted from 1.
    pub number: u64,
    /// What is asked.
    pub kind: &'static str,
    /// The numbers of the shards whose answers are not there.
    pub missing: Vec<usize>,
    /// What is wrong with answers that are there but are no answers: their shards are missing too.
    pub refused: Vec<Error>,
    /// How many shards take part.
    pub shards: usize,
}

impl OpenRound<'_> {
    /// The answer file that a shard is to write.
    pub fn answer_path(&self, shard: usize) -> PathBuf {
        let question = self.question.file_stem().unwrap_or_default().to_string_lossy();
        let hash = question.split_once('-').map_or("", |(_, hash)| hash);
        answer_path(self.run, hash, shard)
    }

    /// What is awaited, as a value that can be kept.
    pub fn waiting(&self) -> Waiting {
        let name = |&s: &usize| self.run.manifest().shards[s].name.clone();
        Waiting {
            round: self.number,
            kind: self.kind,
            question: self.question.to_path_buf(),
            missing: self.missing.iter().map(name).collect(),
            refused: self.refused.iter().map(Error::to_string).collect(),
            shards: self.shards,
            sites: self.run.manifest().has_sites(),
        }
    }
}

/// The engine of a run directory.
#[derive(Debug)]
pub struct Files<'a> {
    run: &'a Run,
    courier: &'a dyn Courier,
    round: AtomicU64,
    active: Vec<usize>,
    /// Per site what it said of its rows in its last answer.
    sites: Mutex<BTreeMap<usize, AnswerHeader>>,
    /// What all sites together have said about columns and designs, which later questions tell them.
    learned: Mutex<Learned>,
}

impl fmt::Debug for dyn Courier + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Courier")
    }
}

impl<'a> Files<'a> {
    /// The engine of a run; the courier is called for answers that are missing.
    pub fn new(run: &'a Run, courier: &'a dyn Courier) -> Files<'a> {
        let (round, active) = (AtomicU64::new(0), run.manifest().active());
        Files { run, courier, round, active, sites: Mutex::default(), learned: Mutex::default() }
    }

    /// An error if a site answered with other rows than before: parts of two data sets make no whole.
    fn same_rows(&self, before: &AnswerHeader, now: &AnswerHeader) -> Result<()> {
        let rows = |h: &AnswerHeader| (h.rows, h.dropped, h.commitment.clone());
        if now.site.is_none() || rows(before) == rows(now) {
            return Ok(());
        }
        let shard = &self.run.manifest().shards[now.shard].name;
        Err(Error::input_at(
            Place::file(self.run.folder()),
            format!(
                "the site `{shard}` answered round {} with other rows ({}) than round {} ({}); it has to answer both with the same data, in a new run",
                now.round, now.rows, before.round, before.rows
            ),
        ))
    }

    /// Adds to a result what only the answers' headers say.
    pub(super) fn finish(&self, partition: &mut PartitionReport, warnings: &mut Vec<Warning>) {
        let manifest = self.run.manifest();
        if !manifest.has_sites() {
            return;
        }
        let sites = self.sites.lock().expect("no thread panics while it holds the lock");
        partition.shards = self.active.len();
        let name = |&s: &usize| manifest.shards[s].name.clone();
        partition.names = Some(self.active.iter().map(name).collect());
        partition.rows = sites.values().map(|h| h.rows as usize).sum();
        partition.dropped = sites.values().map(|h| h.dropped as usize).sum();
        if manifest.tells_sums() {
            let message = "the sites told only sums over all of them";
            let advice = "so nothing is known of single ones: whether they agree, their shares of rows, levels that one lacks, nor of a result without one of them";
            warnings.push(Warning::new(Level::Note, "sums-only", message, advice));
        }
        for site in &manifest.without {
            let message = format!("the site `{site}` was left out");
            let advice = "its rows count for nothing in this result";
            let note = Warning::new(Level::Note, "site-left-out", message, advice);
            warnings.push(note);
        }
        for (place, &shard) in self.active.iter().enumerate() {
            let Some(header) = sites.get(&shard).filter(|h| !h.merged.is_empty()) else { continue };
            let columns: Vec<String> =
                header.merged.iter().map(|c| format!("`{}`", crate::error::clip(c))).collect();
            let message = format!(
                "the site `{}` merged rare levels of {} into `{}`",
                manifest.shards[shard].name,
                columns.join(", "),
                super::OTHER
            );
            let advice =
                "that is the site's policy (min_rows); rows of such levels count as one level";
            let note = Warning::new(Level::Note, "levels-merged", message, advice);
            warnings.push(note.shard(place));
        }
    }
}

impl Engine for Files<'_> {
    fn shards(&self) -> usize {
        self.active.len()
    }

    fn ask(&self, questions: &[Question], answered: &Answered) -> Result<Vec<Answers>> {
        let number = self.round.fetch_add(1, Ordering::Relaxed) + 1;
        let asked = {
            let learned = self.learned.lock().expect("nobody panics with it");
            pose(self.run, number, questions, &learned)?
        };
        let mut replies: Vec<Option<Vec<Reply>>> = self.active.iter().map(|_| None).collect();
        loop {
            let (mut missing, mut refused) = (Vec::new(), Vec::new());
            for (&shard, slot) in self.active.iter().zip(&mut replies) {
                if slot.is_some() {
                    continue;
                }
                match find(self.run, &asked, shard)? {
                    FoundAnswer::Missing => missing.push(shard),
                    FoundAnswer::Refused(error) => {
                        refused.push(error);
                        missing.push(shard);
                    }
                    FoundAnswer::Whole(header, whole) => {
                        *slot = Some(whole);
                        if questions.iter().any(|_| answered().is_break()) {
                            return Err(Error::Stopped);
                        }
                        let mut sites = self.sites.lock().expect("nobody panics with it");
                        if let Some(before) = sites.insert(shard, header) {
                            self.same_rows(&before, &sites[&shard])?;
                        }
                    }
                }
            }
            if missing.is_empty() {
                break;
            }
            self.courier.fetch(&OpenRound {
                run: self.run,
                question: &asked.path(self.run),
                number,
                kind: questions.first().map_or("", Question::kind),
                missing,
                refused,
                shards: self.active.len(),
            })?;
        }
        let mut answers: Vec<Vec<Answer>> = questions.iter().map(|_| Vec::new()).collect();
        let mut masked: Vec<Vec<Vec<Hidden>>> = questions.iter().map(|_| Vec::new()).collect();
        let mut first_failure: Option<(usize, usize, Error)> = None;
        for (place, replies) in replies.into_iter().flatten().enumerate() {
            for (question, reply) in replies.into_iter().enumerate() {
                match reply {
                    Reply::Answer(answer) => answers[question].push(answer),
                    Reply::Masked(hidden) => masked[question].push(hidden),
                    Reply::Failure(failure) => {
                        // The first by question, then by shard, as everywhere.
                        if first_failure.as_ref().is_none_or(|(q, ..)| question < *q) {
                            let shard = self.active[place];
                            first_failure = Some((question, shard, failure.error(shard)));
                        }
                    }
                }
            }
        }
        if let Some((.., error)) = first_failure {
            return Err(error);
        }
        let each = questions.iter().zip(answers.into_iter().zip(masked));
        let all = |(question, (plain, hidden)): (&Question, (Vec<Answer>, Vec<Vec<Hidden>>))| {
            // Files with some of each are refused one by one.
            Ok(if hidden.len() == self.active.len() {
                Answers::Sum(reveal(question, &hidden)?)
            } else {
                Answers::Each(plain)
            })
        };
        let answers: Vec<Answers> = each.map(all).collect::<Result<_>>()?;
        if self.run.manifest().has_sites() {
            let mut learned = self.learned.lock().expect("nobody panics with it");
            for (question, answers) in questions.iter().zip(&answers) {
                learned.learn(question, answers)?;
            }
        }
        Ok(answers)
    }
}
