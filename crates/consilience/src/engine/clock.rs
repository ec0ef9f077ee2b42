//! CPU time per shard, for those who have a clock: the library itself takes no time.

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Mutex};

/// A clock of whoever calls the library.
pub trait Clock: Send + Sync {
    /// CPU seconds of the calling thread.
    fn seconds(&self) -> f64;
}

thread_local! {
    /// What answers took on this thread while it was at another answer.
    static WITHIN: Cell<f64> = const { Cell::new(0.0) };
}

/// What each shard's answers took so far.
#[derive(Default)]
pub(super) struct Spent {
    clock: Option<Arc<dyn Clock>>,
    seconds: Vec<Mutex<f64>>,
}

impl Spent {
    /// By this clock, for so many shards.
    pub(super) fn by(clock: Arc<dyn Clock>, shards: usize) -> Spent {
        Spent { clock: Some(clock), seconds: (0..shards).map(|_| Mutex::default()).collect() }
    }

    /// Does a shard's work, and notes what it took on this thread.
    ///
    /// A thread that waits for others to finish parts of its work may answer for another shard meanwhile. That is
    /// the other's time, and it is taken off here.
    pub(super) fn on<R>(&self, shard: usize, work: impl FnOnce() -> R) -> R {
        let Some(clock) = &self.clock else { return work() };
        let others = WITHIN.replace(0.0);
        let start = clock.seconds();
        let result = work();
        let whole = clock.seconds() - start;
        let own = (whole - WITHIN.get()).max(0.0);
        WITHIN.set(others + whole);
        *self.seconds[shard].lock().expect("nobody panics while holding it") += own;
        result
    }

    /// Seconds per shard; empty without a clock.
    pub(super) fn seconds(&self) -> Vec<f64> {
        let read = |sum: &Mutex<f64>| *sum.lock().expect("nobody panics while holding it");
        self.seconds.iter().map(read).collect()
    }
}

impl fmt::Debug for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Spent").field(&self.seconds()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every look at it is a second later.
    struct Ticks(Mutex<f64>);

    impl Clock for Ticks {
        fn seconds(&self) -> f64 {
            let mut now = self.0.lock().unwrap();
            *now += 1.0;
            *now
        }
    }

    #[test]
    fn every_second_is_one_shards() {
        let spent = Spent::by(Arc::new(Ticks(Mutex::new(0.0))), 3);
        spent.on(0, || ());
        assert_eq!(spent.seconds(), [1.0, 0.0, 0.0]);
        // Shard 1 starts at second 3; 2 runs within it from 4 to 5; it ends at 6: 3 seconds, of which 1 is shard 2's.
        spent.on(1, || spent.on(2, || ()));
        assert_eq!(spent.seconds(), [1.0, 2.0, 1.0]);
        spent.on(0, || spent.on(1, || spent.on(2, || ())));
        assert_eq!(spent.seconds().iter().sum::<f64>(), 1.0 + 3.0 + 5.0);
        assert!(Spent::default().seconds().is_empty());
    }
}
