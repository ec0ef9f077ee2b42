//! A shard's rows under one model, cut into chunks that are worked on side by side and need not all be
//! in memory.

use crate::data::ShardData;
use crate::model::piece::{Piece, WholeModel};
use crate::{Error, Result};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Mutex;

/// The values of a chunk: few enough that one per thread is little, many enough that equal rows meet.
const VALUES: usize = 1 << 21;

/// Chunks from which on they are shared out among threads. A shard of fewer is left to one: there are
/// other shards.
const SHARED: usize = 8;

/// The rows of a chunk with so many columns. It depends on nothing else, so that sums have the same bits
/// wherever the rows are.
pub fn chunk_rows(columns: usize) -> usize {
    // Whole blocks of the kernel, beside which offset, count and total stand.
    (VALUES / (columns + 3)).max(960) / 960 * 960
}

/// Works on every chunk and returns what comes of them, in their order.
pub fn over_chunks<T: Send>(chunks: usize, work: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    if chunks < SHARED {
        (0..chunks).map(work).collect()
    } else {
        (0..chunks).into_par_iter().map(work).collect()
    }
}

/// What the rows of a chunk are kept as.
pub trait KeptRows: Sized + Send + Sync {
    /// Takes it out of a piece that has it.
    fn of(piece: Piece) -> Option<Self>;
}

/// The distinct rows of every chunk, some of which are built anew whenever they are needed.
#[derive(Debug)]
pub struct Chunks<R> {
    held: Vec<Option<R>>,
    /// How to get at the others.
    away: Option<Box<Away>>,
    /// Why one of them could not be had.
    failure: Mutex<Option<Error>>,
}

/// Rows that are not in memory, and what to make of them.
#[derive(Debug)]
pub struct Away {
    /// The model.
    pub whole: WholeModel,
    /// The rows.
    pub data: ShardData,
    /// Which of them make a chunk.
    pub ranges: Vec<Range<usize>>,
}

impl<R: KeptRows> Chunks<R> {
    /// All chunks, `None` for those that `away` knows how to build.
    pub fn new(held: Vec<Option<R>>, away: Option<Away>) -> Chunks<R> {
        Chunks { held, away: away.map(Box::new), failure: Mutex::default() }
    }

    /// All chunks, if all are in memory.
    pub fn held(&self) -> Option<Vec<&R>> {
        self.held.iter().map(Option::as_ref).collect()
    }

    /// The only chunk, if it is in memory.
    pub fn only(&self) -> Option<&R> {
        match self.held.as_slice() {
            [Some(rows)] => Some(rows),
            _ => None,
        }
    }

    /// What becomes of every chunk, in their order; `None` if one could not be had. `work` is told whether
    /// it may share its work out among threads: it may not while a chunk is only lent to it, or each
    /// thread might begin another one while it waits.
    pub fn map<T: Send>(&self, work: impl Fn(&R, bool) -> T + Sync) -> Option<Vec<T>> {
        let each = |k: usize| match &self.held[k] {
            Some(rows) => Ok(work(rows, true)),
            None => self.build(k).map(|rows| work(&rows, false)),
        };
        let results: Result<Vec<T>> = over_chunks(self.held.len(), each).into_iter().collect();
        results.map_err(|error| *self.failure() = Some(error)).ok()
    }

    fn build(&self, k: usize) -> Result<R> {
        let away = self.away.as_ref().expect("a chunk that is not held can be built");
        let table = away.data.batch(away.ranges[k].clone())?;
        Ok(R::of(Piece::of(&away.whole, &table)?).expect("chunks are of one family"))
    }

    fn failure(&self) -> std::sync::MutexGuard<'_, Option<Error>> {
        self.failure.lock().expect("no thread panics while it holds the lock")
    }

    /// Why rows could not be had, if that happened; evaluations since then are worth nothing.
    pub fn take_failure(&self) -> Option<Error> {
        self.failure().take()
    }
}
