//! Work that takes long: on a thread of its own, while the caller's looks after Ctrl-C and progress.

use crate::errors::raise;
use consilience::engine::{Observer, Round};
use consilience::{Error, Halt, Result};
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often the caller's thread looks up.
const TICK: Duration = Duration::from_millis(50);

/// What is known of the work while it goes on.
#[derive(Default)]
pub struct Watch {
    /// By which it is called off.
    pub halt: Halt,
    /// The first exception that Python code raised within it.
    raised: Mutex<Option<PyErr>>,
    seen: Mutex<Seen>,
}

/// How far it is.
#[derive(Debug, Default, Clone, PartialEq)]
struct Seen {
    round: u64,
    kind: &'static str,
    answered: u64,
    answers: u64,
    done: usize,
    models: usize,
}

impl Watch {
    /// Keeps an exception of Python code, and calls the work off. What it stands for here ends the work.
    pub fn keep(&self, error: PyErr) -> Error {
        self.halt.call();
        self.raised.lock().expect("no thread panics while it holds it").get_or_insert(error);
        Error::Stopped
    }

    /// The exception that was kept.
    pub fn taken(&self) -> Option<PyErr> {
        self.raised.lock().expect("no thread panics while it holds it").take()
    }

    /// Tells how many cells of a sweep are there.
    pub fn cells(&self, done: u64, all: u64) {
        self.look(|seen| {
            seen.kind = "cells";
            (seen.answered, seen.answers) = (done, all);
        });
    }

    fn look<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().expect("no thread panics while it holds it"))
    }

    fn goes_on(&self) -> ControlFlow<()> {
        if self.halt.is_called() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Observer for Watch {
    fn round(&self, round: &Round) -> ControlFlow<()> {
        self.look(|seen| {
            seen.round = round.number;
            seen.kind = round.kind;
            (seen.answered, seen.answers) = (0, round.answers);
            (seen.done, seen.models) = (round.progress.done, round.progress.models);
        });
        self.goes_on()
    }

    fn answered(&self) -> ControlFlow<()> {
        self.look(|seen| seen.answered += 1);
        self.goes_on()
    }
}

/// Does the work with the GIL given up. Ctrl-C, or an exception of `progress`, calls it off; the work has ended when this
/// returns, whatever it returns.
pub fn run<T: Send>(
    py: Python<'_>,
    threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Arc<Watch>) -> Result<T> + Send,
) -> PyResult<T> {
    let watch = Arc::new(Watch::default());
    let progress = progress.map(|callable| callable.clone().unbind());
    let worker = watch.clone();
    let (result, interrupted) = py.detach(|| {
        std::thread::scope(|scope| {
            let (send, receive) = channel();
            scope.spawn(move || {
                // A pool of our own: rayon's global one would be dead in processes that are forked later.
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build();
                let result = match pool {
                    Ok(pool) => pool.install(|| work(&worker)),
                    Err(error) => Err(Error::numeric(format!("cannot start threads: {error}"))),
                };
                // Nobody is left to hear it only if the caller's thread has panicked.
                let _ = send.send(result);
            });
            let mut interrupted = None;
            let mut shown = Seen::default();
            let result = loop {
                match receive.recv_timeout(TICK) {
                    Ok(result) => break Some(result),
                    Err(RecvTimeoutError::Disconnected) => break None,
                    Err(RecvTimeoutError::Timeout) if interrupted.is_some() => {}
                    Err(RecvTimeoutError::Timeout) => {
                        let now = watch.look(|seen| seen.clone());
                        let news = now != shown;
                        shown = now;
                        let looked = Python::attach(|py| {
                            py.check_signals()?;
                            match &progress {
                                Some(progress) if news => show(py, progress, &shown),
                                _ => Ok(()),
                            }
                        });
                        if let Err(error) = looked {
                            watch.halt.call();
                            interrupted = Some(error);
                        }
                    }
                }
            };
            (result, interrupted)
        })
    });
    if let Some(error) = interrupted.or(watch.taken()) {
        return Err(error);
    }
    let lost = || Err(Error::numeric("the work ended without a result; this is a defect"));
    result.unwrap_or_else(lost).map_err(|error| raise(py, error))
}

fn show(py: Python<'_>, progress: &Py<PyAny>, seen: &Seen) -> PyResult<()> {
    let Seen { round, kind, answered, answers, done, models } = seen.clone();
    progress.call1(py, (round, kind, answered, answers, done, models)).map(|_| ())
}
