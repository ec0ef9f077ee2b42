//! A worker: answers the open questions of shards whose rows are in the run directory.

use super::directory::Run;
use super::exchange::{FoundAnswer, QuestionFile, answer_path, find};
use super::lock::{Lock, last_sign};
use super::message::{
    AnswerHeader, Failure, LARGEST_LETTER, LARGEST_QUESTION, Reply, encode_answer,
};
use crate::plan::Room;
use crate::question::{Answer, Question};
use crate::shard::{Budget, Shard};
use crate::{Error, Place, Result};
use rayon::prelude::*;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// What a worker is told of while it works.
pub trait Work: Sync {
    /// A shard answered a round's questions; `None` if it was answered already.
    fn answered(&self, shard: usize, round: Option<u64>);
}

impl Work for () {
    fn answered(&self, _: usize, _: Option<u64>) {}
}

/// The rows that a worker has read, and how much memory it may take.
#[derive(Debug)]
pub struct WorkerRows {
    shards: Mutex<HashMap<usize, Arc<Shard>>>,
    /// Whether it keeps them for the next round.
    keeps: bool,
    /// What their likelihoods may take.
    budget: Arc<Budget>,
    /// The bytes that are left for rows to be kept in.
    left: AtomicUsize,
    /// What one thread may take for a shard that is not kept.
    at_work: Room,
    threads: usize,
    /// What this worker calls itself.
    holder: String,
    /// The moment since when another worker must have given a sign of life for its shards to be left to it.
    pass_over: Mutex<Option<SystemTime>>,
}

impl Default for WorkerRows {
    /// Reads rows when they are needed, and has all memory for it.
    fn default() -> WorkerRows {
        WorkerRows::new(false, Room::default(), usize::MAX)
    }
}

impl WorkerRows {
    /// Rows that are kept for the next round if `keeps` says so, by a worker with this room and so many
    /// threads.
    pub fn new(keeps: bool, room: Room, threads: usize) -> WorkerRows {
        let threads = room.threads(threads);
        // Half of it is for shards that are kept, the other half for those at work that are not.
        let half = room.part(2);
        WorkerRows {
            shards: Mutex::default(),
            keeps,
            budget: Arc::new(half.budget(threads)),
            left: AtomicUsize::new(half.rows),
            at_work: half.part(threads),
            threads,
            holder: String::new(),
            pass_over: Mutex::default(),
        }
    }

    /// What this worker calls itself in the locks of its shards, for those who wonder who holds them.
    pub fn held_by(self, holder: String) -> WorkerRows {
        WorkerRows { holder, ..self }
    }

    /// From now on works on shards, too, that another worker holds who has given no sign of life since this moment:
    /// it was stopped, or hangs. Whoever calls has the clock.
    pub fn pass_over(&self, since: SystemTime) {
        *self.pass_over.lock().expect("no thread panics while it holds the lock") = Some(since);
    }

    fn shard(&self, run: &Run, index: usize) -> Result<Arc<Shard>> {
        let kept = || self.shards.lock().expect("no thread panics while it holds the lock");
        if let Some(shard) = kept().get(&index) {
            return Ok(shard.clone());
        }
        let data = run.shard(index, self.at_work.rows, &self.at_work.folder)?;
        let less = |left: usize| left.checked_sub(data.bytes());
        let is_kept = self.keeps && self.left.fetch_update(Relaxed, Relaxed, less).is_ok();
        let budget = if is_kept { self.budget.clone() } else { Arc::new(self.at_work.budget(1)) };
        let shard = Arc::new(Shard::new(index, data).with_budget(budget));
        if is_kept {
            kept().insert(index, shard.clone());
        }
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
    /// Shards that another worker holds without a sign of life, and that were worked on all the same.
    pub passed_over: Vec<usize>,
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

    /// At most how many bytes a question file has. Sites read it, who may not trust us.
    pub(super) fn largest_question(&self) -> u64 {
        if self.manifest().has_sites() { LARGEST_LETTER } else { LARGEST_QUESTION }
    }

    /// How many rounds have been asked.
    pub fn rounds(&self) -> Result<usize> {
        Ok(self.question_paths()?.len())
    }

    /// Reads every question of this run; one of another run is an error.
    pub(super) fn questions(&self) -> Result<Vec<QuestionFile>> {
        let mut all = Vec::new();
        for path in self.question_paths()? {
            let asked = match QuestionFile::read_within(&path, self.largest_question()) {
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
        kept: &WorkerRows,
    ) -> Result<WorkReport> {
        let pool = crate::engine::pool(threads.min(kept.threads))?;
        let reports: Vec<Result<WorkReport>> =
            pool.install(|| shards.par_iter().map(|&s| self.work(s, again, watch, kept)).collect());
        let mut total = WorkReport::default();
        for report in reports {
            let report = report?;
            total.answered += report.answered;
            total.known += report.known;
            total.busy.extend(report.busy);
            total.passed_over.extend(report.passed_over);
            total.failed.extend(report.failed);
            total.replaced.extend(report.replaced);
        }
        Ok(total)
    }

    /// Answers every open question of a shard; with `again` also those that could not be answered
    /// before. What is answered is not computed again.
    pub fn work(
        &self,
        shard: usize,
        again: bool,
        watch: &dyn Work,
        kept: &WorkerRows,
    ) -> Result<WorkReport> {
        let mut report = WorkReport::default();
        let path = self.shard_lock(shard);
        let lock = Lock::take(&path, &kept.holder)?;
        if lock.is_none() {
            // Its holder may have been stopped. If it was not, both write the same.
            let passes = kept.pass_over.lock().expect("no thread panics while it holds the lock");
            if !passes.is_some_and(|since| last_sign(&path).is_none_or(|sign| sign < since)) {
                report.busy.push(shard);
                return Ok(report);
            }
            report.passed_over.push(shard);
        }
        for asked in self.questions()? {
            match find(self, &asked, shard)? {
                FoundAnswer::Whole(header, _) if !(header.failed && again) => {
                    report.known += 1;
                    watch.answered(shard, None);
                    continue;
                }
                FoundAnswer::Refused(error) => report.replaced.push(error.to_string()),
                FoundAnswer::Whole(..) | FoundAnswer::Missing => {}
            }
            // Read at the first open question, since there may be none.
            let rows = kept.shard(self, shard)?;
            let replies = answer(&rows, &asked, &mut report)?;
            let encoded = |replies: &[Reply]| {
                let header = AnswerHeader {
                    failed: replies.iter().any(|r| matches!(r, Reply::Failure(_))),
                    ..AnswerHeader::to(&asked.header, shard, rows.data().rows() as u64)
                };
                encode_answer(&header, replies, None)
            };
            let mut bytes = encoded(&replies);
            // Nobody would read it.
            if let Err(error) = asked.fits_into_an_answer(bytes.len()) {
                let failure = Failure::of(&error).expect("input is at fault");
                report.failed.push(error.to_string());
                bytes = encoded(&vec![Reply::Failure(failure); replies.len()]);
            }
            let path = answer_path(self, &asked.header.question, shard);
            if let Some(folder) = path.parent() {
                crate::draft::make_folder(folder)?;
            }
            // A folder in the answer's place is nobody's answer.
            if path.is_dir() {
                let _ = std::fs::remove_dir_all(&path);
            }
            crate::draft::write(&path, bytes)?;
            if again {
                // What the run failed of may be mended.
                super::directory::remove(&self.failure_path())?;
            }
            if let Some(lock) = &lock {
                lock.sign();
            }
            report.answered += 1;
            watch.answered(shard, Some(asked.header.round));
        }
        Ok(report)
    }
}

/// A shard's replies to all questions of a round. An error of this machine's ends the work instead.
fn answer(shard: &Shard, asked: &QuestionFile, report: &mut WorkReport) -> Result<Vec<Reply>> {
    let mut replies = Vec::new();
    for question in asked.questions() {
        replies.push(match answer_soundly(shard, question) {
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

/// A shard's answer, or an error in the place of one that nobody would take.
pub(crate) fn answer_soundly(shard: &Shard, question: &Question) -> Result<Answer> {
    // A question may come from afar, and whatever it makes of us must not take others down. Nothing
    // that a panic could leave half done outlives this but the shard's cache, whose lock would be
    // poisoned.
    let work = std::panic::AssertUnwindSafe(|| question.answer(shard));
    let answer = std::panic::catch_unwind(work).unwrap_or_else(|_| {
        Err(Error::numeric(
            "the question could not be computed with; this is a defect, please report it",
        ))
    })?;
    answer.check(question).map_err(|error| error.for_shard(shard.index()))?;
    Ok(answer)
}
