//! A shard's columns for Python.

use consilience::data::Column;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// Its columns by their names: bytes of doubles, or a list of texts.
pub fn columns<'py>(py: Python<'py>, shard: &consilience::Shard) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let table = shard.data().table().map_err(|error| crate::errors::raise(py, error))?;
    for name in table.names() {
        let column = table.column(name).map_err(|error| crate::errors::raise(py, error))?;
        match column {
            Column::Text { codes, levels } => {
                let word = |code: &u32| levels.get(*code as usize).map(String::as_str);
                out.set_item(name, codes.iter().map(word).collect::<Vec<_>>())?;
            }
            Column::Logical(codes) => {
                out.set_item(name, doubles(py, codes.iter().map(|c| f64::from(*c))))?;
            }
            column => {
                let numbers = column.numbers().unwrap_or_default();
                out.set_item(name, doubles(py, numbers.iter().copied()))?;
            }
        }
    }
    Ok(out)
}

/// Doubles as bytes.
pub fn doubles<'py>(py: Python<'py>, numbers: impl Iterator<Item = f64>) -> Bound<'py, PyBytes> {
    let bytes: Vec<u8> = numbers.flat_map(f64::to_ne_bytes).collect();
    PyBytes::new(py, &bytes)
}

/// Bytes as doubles.
pub fn numbers(bytes: &[u8]) -> Vec<f64> {
    bytes.chunks_exact(8).map(|c| f64::from_ne_bytes(c.try_into().unwrap_or_default())).collect()
}
