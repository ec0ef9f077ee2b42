//! Engines that Python has: they carry bytes.

use crate::work::Watch;
use consilience::Result;
use consilience::run::{Came, Carrier};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

/// A Python object with a method `ask(question, stopped)`, which yields a shard's number and its answer for every shard, in
/// any order.
pub struct Engine {
    pub object: Py<PyAny>,
    pub shards: usize,
    pub watch: Arc<Watch>,
}

/// Whether the work was called off.
#[pyclass(frozen)]
struct Stopped(Arc<Watch>);

#[pymethods]
impl Stopped {
    fn __call__(&self) -> bool {
        self.0.halt.is_called()
    }
}

impl Carrier for Engine {
    fn shards(&self) -> usize {
        self.shards
    }

    fn carry(&self, question: &[u8], came: &Came) -> Result<()> {
        Python::attach(|py| {
            let kept = |error: PyErr| self.watch.keep(error);
            let stopped = Bound::new(py, Stopped(self.watch.clone())).map_err(kept)?;
            let arguments = (PyBytes::new(py, question), stopped);
            let answers = self.object.bind(py).call_method1("ask", arguments).map_err(kept)?;
            for answer in answers.try_iter().map_err(kept)? {
                let (shard, bytes): (usize, Bound<'_, PyBytes>) =
                    answer.and_then(|answer| answer.extract()).map_err(kept)?;
                if let Err(error) = came(shard, bytes.as_bytes()) {
                    // What is left undone is the generator's to clear away, when it is closed.
                    let _ = answers.call_method0("close");
                    return Err(error);
                }
            }
            Ok(())
        })
    }
}
