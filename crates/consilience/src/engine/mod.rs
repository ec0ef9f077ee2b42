//! Engines carry questions to shards and answers back, and know no statistics.

mod clock;
mod session;
mod threads;

pub use clock::Clock;
pub use session::{Observer, Progress, Round, Session, Silent, Traffic};
pub use threads::Threads;
pub(crate) use threads::pool;

use crate::Result;
use crate::question::{Answers, Question};
use std::ops::ControlFlow;

/// A place where shards live.
pub trait Engine: Sync {
    /// How many shards there are.
    fn shards(&self) -> usize;

    /// Poses every question to every shard: one round. Returns, per question, one answer per shard
    /// in the order of the shards, whatever the order in which they arrived; the first error by
    /// question and shard if there is any. An engine that knows no single answers returns their sums
    /// ([`Question::merge`]), where there are sums.
    ///
    /// `answered` is called once for every answer as it comes. If it breaks, the rest need not be
    /// computed, and the round ends with [`Error::Stopped`](crate::Error::Stopped).
    fn ask(&self, questions: &[Question], answered: &Answered) -> Result<Vec<Answers>>;

    /// The same for somebody to whom the answers of single shards to [`Weigh`](crate::question::Weigh) are of no use: an
    /// engine may then add them up as they come, so that those of thousands of shards need not be in memory together.
    fn ask_for_sums(&self, questions: &[Question], answered: &Answered) -> Result<Vec<Answers>> {
        self.ask(questions, answered)
    }

    /// Does the centre's own work, on the threads that the engine keeps for it if it has any.
    fn at_the_centre<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R
    where
        Self: Sized,
    {
        work()
    }
}

/// Called for every answer as it comes; says whether to go on.
pub type Answered<'a> = dyn Fn() -> ControlFlow<()> + Sync + 'a;
