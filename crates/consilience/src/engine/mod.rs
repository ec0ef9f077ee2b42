//! Engines carry questions to shards and answers back, and know no statistics.

mod remembering;
mod session;
mod threads;

pub use remembering::Remembering;
pub use session::{Observer, Round, Session, Silent, Traffic};
pub use threads::Threads;
pub(crate) use threads::pool;

use crate::Result;
use crate::question::{Answer, Question};

/// A place where shards live.
pub trait Engine: Sync {
    /// How many shards there are.
    fn shards(&self) -> usize;

    /// Poses every question to every shard: one round. Returns, per question, one answer per shard
    /// in the order of the shards, whatever the order in which they arrived; the first error by
    /// question and shard if there is any. `answered` is called once for every answer as it comes.
    fn ask(&self, questions: &[Question], answered: &(dyn Fn() + Sync))
    -> Result<Vec<Vec<Answer>>>;
}
