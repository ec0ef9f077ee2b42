//! A way to stop work from outside, at any moment.

use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells work that nobody wants its result any more. All clones are one: whoever holds one can call the work off,
/// and those who work look at theirs between two evaluations, or two pieces of a file.
///
/// What is called off ends with [`Error::Stopped`](crate::Error::Stopped), and tells nothing else.
#[derive(Debug, Clone, Default)]
pub struct Halt(Arc<AtomicBool>);

impl Halt {
    /// Nothing is called off yet.
    pub fn new() -> Halt {
        Halt::default()
    }

    /// Calls the work off.
    pub fn call(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work was called off.
    pub fn is_called(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Ends work that was called off, where it can be: for those who look at it between two steps.
pub(crate) fn go_on(halt: Option<&Halt>) -> Result<()> {
    if halt.is_some_and(Halt::is_called) { Err(Error::Stopped) } else { Ok(()) }
}
