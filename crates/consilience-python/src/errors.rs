//! Errors of the library as Python's.

use consilience::Error;
use pyo3::exceptions::{PyConnectionError, PyKeyboardInterrupt, PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The exception for an error. Where input is wrong, it also says on its own where.
pub fn raise(py: Python<'_>, error: Error) -> PyErr {
    match made(py, error) {
        Ok(error) | Err(error) => error,
    }
}

fn made(py: Python<'_>, error: Error) -> PyResult<PyErr> {
    let classes = || py.import("consilience._errors");
    let text = error.to_string();
    Ok(match error {
        Error::Input { place, message } => {
            let about = PyDict::new(py);
            about.set_item("file", place.file.map(|file| file.display().to_string()))?;
            about.set_item("line", place.line)?;
            about.set_item("row", place.row)?;
            about.set_item("column", place.column)?;
            about.set_item("reason", message)?;
            PyErr::from_value(classes()?.getattr("InputError")?.call((text,), Some(&about))?)
        }
        Error::Numeric { shard, model, parameter, .. } => {
            let about = PyDict::new(py);
            about.set_item("shard", shard)?;
            about.set_item("model", model)?;
            about.set_item("parameter", parameter)?;
            PyErr::from_value(classes()?.getattr("NumericError")?.call((text,), Some(&about))?)
        }
        Error::Stopped => PyKeyboardInterrupt::new_err(()),
        Error::Transport(_) => PyConnectionError::new_err(text),
        // With its number Python makes a FileNotFoundError or a PermissionError of it.
        Error::Io { path, source } => match source.raw_os_error() {
            Some(number) => {
                PyOSError::new_err((number, source.to_string(), path.display().to_string()))
            }
            None => PyOSError::new_err(text),
        },
        _ => PyRuntimeError::new_err(text),
    })
}
