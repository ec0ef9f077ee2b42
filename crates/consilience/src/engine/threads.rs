//! All shards in this process, on a pool of threads.

use super::clock::{Clock, Spent};
use super::{Answered, Engine};
use crate::math::ExactSum;
use crate::question::{Answer, Answers, Kind, Question};
use crate::shard::Shard;
use crate::{Error, Result};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Shards in memory.
#[derive(Debug)]
pub struct Threads {
    shards: Vec<Shard>,
    pool: rayon::ThreadPool,
    spent: Spent,
}

impl Threads {
    /// These shards on this many threads.
    pub fn new(shards: Vec<Shard>, threads: usize) -> Result<Threads> {
        Ok(Threads::on(pool(threads)?, shards))
    }

    /// These shards on the threads of this pool.
    pub(crate) fn on(pool: rayon::ThreadPool, shards: Vec<Shard>) -> Threads {
        Threads { shards, pool, spent: Spent::default() }
    }

    /// With a clock, by which the CPU time of every shard's answers is taken from now on.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Threads {
        self.spent = Spent::by(clock, self.shards.len());
        self
    }

    /// CPU seconds of each shard so far; empty without a clock. An answer's time is that of the thread which gives it:
    /// parts of a large shard's rows that other threads took over are not in it.
    pub fn spent(&self) -> Vec<f64> {
        self.spent.seconds()
    }

    /// All shards, to teach them likelihoods.
    pub(crate) fn shards_mut(&mut self) -> &mut [Shard] {
        &mut self.shards
    }

    /// How many rows each shard has, whatever their weights.
    pub fn rows(&self) -> Vec<usize> {
        self.shards.iter().map(|shard| shard.data().rows()).collect()
    }

    /// The shard of this number.
    pub fn shard(&self, index: usize) -> &Shard {
        &self.shards[index]
    }
}

/// So many threads to work on.
pub(crate) fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build();
    pool.map_err(|e| Error::numeric(format!("cannot start {threads} threads: {e}")))
}

impl Engine for Threads {
    fn shards(&self) -> usize {
        self.shards.len()
    }

    fn at_the_centre<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.pool.install(work)
    }

    fn ask(&self, questions: &[Question], answered: &Answered) -> Result<Vec<Answers>> {
        let (all, questions): (_, Vec<&Question>) =
            (0..self.shards.len(), questions.iter().collect());
        let each = self.answers(&questions, all, answered)?;
        Ok(each.into_iter().map(Answers::Each).collect())
    }

    fn ask_for_sums(&self, questions: &[Question], answered: &Answered) -> Result<Vec<Answers>> {
        let is_long = |question: &&Question| match question {
            Question::Weigh(asked) => self.shards.len() * asked.count() > MOST_NUMBERS,
            _ => false,
        };
        let (long, short): (Vec<&Question>, Vec<&Question>) = questions.iter().partition(is_long);
        if long.is_empty() {
            return self.ask(questions, answered);
        }
        let all = 0..self.shards.len();
        let mut short = self.answers(&short, all, answered)?.into_iter();
        let mut answers = Vec::new();
        for question in questions {
            answers.push(match question {
                Question::Weigh(asked) if is_long(&question) => {
                    let mut sums = vec![ExactSum::default(); asked.count()];
                    let most = (MOST_NUMBERS / asked.count()).max(self.pool.current_num_threads());
                    for first in (0..self.shards.len()).step_by(most) {
                        let some = first..self.shards.len().min(first + most);
                        for answer in self.answers(&[question], some, answered)?.concat() {
                            let terms = answer.numbers();
                            sums.iter_mut().zip(terms).for_each(|(sum, x)| sum.add(x));
                        }
                    }
                    let sums: Vec<f64> = sums.into_iter().map(ExactSum::value).collect();
                    let sum = asked.of_numbers(&sums);
                    Answers::Sum(Answer::Weigh(Box::new(sum.expect("as many numbers as points"))))
                }
                _ => Answers::Each(short.next().expect("an answer to every question")),
            });
        }
        Ok(answers)
    }
}

/// Log densities of shards that may be in memory together where only their sums are wanted: 16 MiB.
const MOST_NUMBERS: usize = 2 << 20;

impl Threads {
    /// Per question, the answers of some shards in their order.
    fn answers(
        &self,
        questions: &[&Question],
        shards: Range<usize>,
        answered: &Answered,
    ) -> Result<Vec<Vec<Answer>>> {
        let own = &self.shards[shards.clone()];
        let tasks: Vec<(&Question, (usize, &Shard))> =
            questions.iter().flat_map(|q| shards.clone().zip(own).map(move |s| (*q, s))).collect();
        let stopped = AtomicBool::new(false);
        // The first that failed, in the tasks' order: what follows it is not worth the work, and those before it may
        // still fail, so that the error is the same on any number of threads.
        let failed = AtomicUsize::new(usize::MAX);
        let answers: Vec<Result<Answer>> = self.pool.install(|| {
            tasks
                .into_par_iter()
                .enumerate()
                .map(|(number, (question, (s, shard)))| {
                    let in_vain = number > failed.load(Ordering::Relaxed);
                    if in_vain || stopped.load(Ordering::Relaxed) {
                        return Err(Error::Stopped);
                    }
                    let answer = self.spent.on(s, || question.answer(shard));
                    if answer.is_err() {
                        failed.fetch_min(number, Ordering::Relaxed);
                    }
                    if answered().is_break() {
                        stopped.store(true, Ordering::Relaxed);
                    }
                    answer
                })
                .collect()
        });
        if stopped.into_inner() {
            return Err(Error::Stopped);
        }
        let mut answers = answers.into_iter();
        let mut of_all = || -> Result<_> { answers.by_ref().take(own.len()).collect() };
        questions.iter().map(|_| of_all()).collect()
    }
}
