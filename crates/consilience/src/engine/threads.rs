//! All shards in this process, on a pool of threads.

use super::Engine;
use crate::question::{Answer, Question};
use crate::shard::Shard;
use crate::{Error, Result};
use rayon::prelude::*;
use std::path::Path;

/// Shards in memory.
#[derive(Debug)]
pub struct Threads {
    shards: Vec<Shard>,
    pool: rayon::ThreadPool,
}

impl Threads {
    /// These shards on this many threads.
    pub fn new(shards: Vec<Shard>, threads: usize) -> Result<Threads> {
        Ok(Threads { shards, pool: pool(threads)? })
    }

    /// These shards on the threads of this pool.
    pub(crate) fn on(pool: rayon::ThreadPool, shards: Vec<Shard>) -> Threads {
        Threads { shards, pool }
    }

    /// Keeps the draws of every shard's chains in this folder, which must be there.
    pub fn keep_draws(&mut self, folder: &Path) {
        self.shards.iter_mut().for_each(|shard| shard.keep_draws(folder));
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

    fn ask(
        &self,
        questions: &[Question],
        answered: &(dyn Fn() + Sync),
    ) -> Result<Vec<Vec<Answer>>> {
        let tasks: Vec<(&Question, &Shard)> =
            questions.iter().flat_map(|q| self.shards.iter().map(move |s| (q, s))).collect();
        let answers: Vec<Result<Answer>> = self.pool.install(|| {
            tasks
                .into_par_iter()
                .map(|(question, shard)| {
                    let answer = shard.answer(question);
                    answered();
                    answer
                })
                .collect()
        });
        let mut answers = answers.into_iter();
        questions.iter().map(|_| answers.by_ref().take(self.shards.len()).collect()).collect()
    }
}
