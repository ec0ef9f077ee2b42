//! A worker: answers the open questions of shards whose rows are in the run directory.

use super::directory::{Lock, Run};
use super::exchange::{Asked, Found, answer_path, find, read_question};
use super::message::{self, AnswerHeader, Failure, Kind, Reply, largest_answer};
use crate::shard::{Budget, Shard};
use crate::{Error, Place, Result};
use rayon::prelude::*;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// What a worker is told of while it works.
pub trait Work: Sync {
    /// A shard answered a round's questions; `None` if it was answered already.
    fn answered(&self, shard: usize, round: Option<u64>);
}

impl Work for () {
    fn answered(&self, _: usize, _: Option<u64>) {}
}

/// Shards that a worker has read, so that it need not read them for every round.
#[derive(Debug, Default)]
pub struct Kept {
    shards: Mutex<HashMap<usize, Arc<Shard>>>,
    /// What their likelihoods may take.
    budget: Arc<Budget>,
}

impl Kept {
    fn shard(&self, run: &Run, index: usize) -> Result<Arc<Shard>> {
        let kept = || self.shards.lock().expect("no thread panics while it holds the lock");
        if let Some(shard) = kept().get(&index) {
            return Ok(shard.clone());
        }
        let shard = Shard::new(index, run.shard(index)?).with_budget(self.budget.clone());
        let shard = Arc::new(shard);
        kept().insert(index, shard.clone());
        Ok(shard)
    }
}

/// What a worker did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkReport {
    /// Answers that it wrote.
    pub answered: usize,
    /// Answers that were there.
    pub known: usize,
    /// Shards that another worker is at.
    pub busy: Vec<usize>,
    /// Failures among the answers it wrote, in words.
    pub failed: Vec<String>,
    /// Answers that were there but were refused, and so computed again.
    pub replaced: Vec<String>,
}

impl Run {
    /// The question files that are there, in the order of rounds.
    pub(super) fn question_paths(&self) -> Result<Vec<PathBuf>> {
        let folder = self.folder().join("questions");
        let failed = |source| Error::Io { path: folder.clone(), source };
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            // Temporary names begin with a dot.
            let hidden = path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"."));
            if !hidden && path.extension().is_some_and(|e| e == "question") {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }

    /// How many rounds have been asked.
    pub fn rounds(&self) -> Result<usize> {
        Ok(self.question_paths()?.len())
    }

    /// Reads every question of this run; one of another run is an error.
    pub(super) fn questions(&self) -> Result<Vec<Asked>> {
        let mut all = Vec::new();
        for path in self.question_paths()? {
            let asked = match read_question(&path) {
                Ok(asked) => asked,
                // Gone since the folder was listed: a coordinator begins anew.
                Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                    continue;
                }
                Err(error) => return Err(error),
            };
            let (ours, theirs) = (self.manifest(), &asked.header);
            if (&ours.study_hash, &ours.partition_hash, &ours.schema_hash)
                != (&theirs.study, &theirs.partition, &theirs.schema)
            {
                let message = "this question belongs to another run";
                return Err(Error::input_at(Place::file(&path), message));
            }
            all.push(asked);
        }
        Ok(all)
    }

    /// Answers every open question of these shards on this many threads, as [`work`](Self::work) does.
    pub fn work_all(
        &self,
        shards: &[usize],
        threads: usize,
        again: bool,
        watch: &dyn Work,
        kept: Option<&Kept>,
    ) -> Result<WorkReport> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build();
        let pool =
            pool.map_err(|e| Error::numeric(format!("cannot start {threads} threads: {e}")))?;
        let reports: Vec<Result<WorkReport>> =
            pool.install(|| shards.par_iter().map(|&s| self.work(s, again, watch, kept)).collect());
        let mut total = WorkReport::default();
        for report in reports {
            let report = report?;
            total.answered += report.answered;
            total.known += report.known;
            total.busy.extend(report.busy);
            total.failed.extend(report.failed);
            total.replaced.extend(report.replaced);
        }
        Ok(total)
    }

    /// Answers every open question of a shard; with `again` also those that could not be answered
    /// before. What is answered is not computed again. A worker that comes back keeps its shards.
    pub fn work(
        &self,
        shard: usize,
        again: bool,
        watch: &dyn Work,
        kept: Option<&Kept>,
    ) -> Result<WorkReport> {
        let own = Kept::default();
        let rows = kept.unwrap_or(&own);
        let mut report = WorkReport::default();
        let name = &self.manifest().shards[shard].name;
        let Some(_lock) = Lock::take(&self.folder().join("work").join(format!("{name}.lock")))?
        else {
            report.busy.push(shard);
            return Ok(report);
        };
        for asked in self.questions()? {
            match find(self, &asked, shard, largest_answer(&asked.posed.questions))? {
                Found::Whole(header, _) if !(header.failed && again) => {
                    report.known += 1;
                    watch.answered(shard, None);
                    continue;
                }
                Found::Refused(error) => report.replaced.push(error.to_string()),
                Found::Whole(..) | Found::Missing => {}
            }
            // Read at the first open question, since there may be none.
            let rows = rows.shard(self, shard)?;
            let replies = answer(&rows, &asked, &mut report)?;
            let header = AnswerHeader {
                study: asked.header.study.clone(),
                partition: asked.header.partition.clone(),
                schema: asked.header.schema.clone(),
                question: asked.header.question.clone(),
                round: asked.header.round,
                asks: asked.header.asks.clone(),
                shard,
                site: None,
                rows: rows.data().rows() as u64,
                dropped: 0,
                merged: Vec::new(),
                failed: replies.iter().any(|r| matches!(r, Reply::Failure(_))),
                program: env!("CARGO_PKG_VERSION").into(),
            };
            let body = postcard::to_stdvec(&replies).expect("an answer can always be written");
            let bytes = message::encode(Kind::Answer, &header, &body, None);
            let path = answer_path(self, &asked.header.question, shard);
            if let Some(folder) = path.parent() {
                super::directory::make_folder(folder)?;
            }
            // A folder in the answer's place is nobody's answer.
            if path.is_dir() {
                let _ = std::fs::remove_dir_all(&path);
            }
            crate::draft::write(&path, &bytes)?;
            report.answered += 1;
            watch.answered(shard, Some(asked.header.round));
        }
        Ok(report)
    }
}

/// A shard's replies to all questions of a round. An error of this machine's ends the work instead.
pub(super) fn answer(shard: &Shard, asked: &Asked, report: &mut WorkReport) -> Result<Vec<Reply>> {
    let mut replies = Vec::new();
    for question in &asked.posed.questions {
        replies.push(match guarded(|| shard.answer(question)) {
            Ok(answer) => Reply::Answer(answer),
            Err(error) => match Failure::of(&error) {
                Some(failure) => {
                    report.failed.push(error.to_string());
                    Reply::Failure(failure)
                }
                None => return Err(error),
            },
        });
    }
    Ok(replies)
}

/// Turns a panic into an error: a question may come from afar, and whatever it makes of us must not
/// take others down.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    // Nothing that a panic could leave half done outlives the closure but a shard's cache, whose lock
    // would be poisoned.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Error::numeric(
            "the question could not be computed with; this is a defect, please report it",
        ))
    })
}
