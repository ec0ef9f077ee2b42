//! The compiled part of the Python package `consilience`: what the library does, for the Python code in `python/` to call.
//!
//! It holds no statistics and no defaults. Arguments come as JSON, tables as Arrow streams, and results go as the JSON
//! document of the program.

mod arrow;
mod columns;
mod engine;
mod errors;
mod own;
mod shard;
mod spec;
mod tasks;
mod work;

use consilience_report::{Document, Look};
use errors::raise;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The columns of a table that a study looks at, of all that it has.
#[pyfunction]
fn columns_used(py: Python<'_>, study: &str, names: Vec<String>) -> PyResult<Vec<String>> {
    let used = || {
        let outline =
            consilience::plan::Outline::new(spec::StudySpec::read(study)?, |_| Ok(names))?;
        Ok(outline.columns())
    };
    used().map_err(|error| raise(py, error))
}

/// The partition of data that came split, as JSON.
#[pyfunction]
fn given(rows: Vec<usize>, dropped: usize) -> PyResult<String> {
    let partition = consilience::compare::PartitionReport::given(&rows, dropped);
    serde_json::to_string(&partition).map_err(wrong)
}

/// The log density of priors of one parameter each, at points that are doubles one after the other: of every point the value,
/// and then the slope and the curvature along each parameter.
#[pyfunction]
fn log_priors<'py>(
    py: Python<'py>,
    priors: Vec<String>,
    points: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let read = priors
        .iter()
        .map(|text| text.parse())
        .collect::<consilience::Result<Vec<consilience::Prior>>>();
    let priors = read.map_err(|error| raise(py, error))?;
    let points = columns::numbers(points);
    let expand = |point: &[f64]| {
        let each: Vec<(f64, f64, f64)> =
            point.iter().zip(&priors).map(|(x, prior)| prior.expand(*x)).collect();
        let value = each.iter().map(|e| e.0).sum();
        let slopes = each.iter().map(|e| e.1);
        std::iter::once(value).chain(slopes).chain(each.iter().map(|e| e.2)).collect::<Vec<f64>>()
    };
    Ok(columns::doubles(py, points.chunks_exact(priors.len().max(1)).flat_map(expand)))
}

/// Where a prior is centred, and how wide it is.
#[pyfunction]
fn prior_place(py: Python<'_>, prior: &str) -> PyResult<(f64, f64)> {
    let read: consilience::Result<consilience::Prior> = prior.parse();
    let prior = read.map_err(|error| raise(py, error))?;
    Ok((prior.centre(), prior.spread()))
}

/// The kinds of figures that a document has.
#[pyfunction]
fn kinds(json: &str) -> PyResult<Vec<String>> {
    Ok(consilience_report::kinds(&document(json)?).iter().map(|k| k.name.to_string()).collect())
}

/// A figure as SVG.
#[pyfunction]
fn figure(json: &str, kind: &str, model: Option<String>, width: f64) -> PyResult<String> {
    consilience_report::figure(&document(json)?, kind, &Look { width, model }).map_err(wrong)
}

/// A figure's SVG as PNG.
#[pyfunction]
fn png<'py>(py: Python<'py>, svg: &str, scale: f32) -> PyResult<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(py, &consilience_report::png(svg, scale).map_err(wrong)?))
}

/// A page with figures, tables and words, as HTML.
#[pyfunction]
fn page(json: &str, study_text: Option<String>) -> PyResult<String> {
    let extras = consilience_report::Extras {
        program: Some(format!("consilience {} (Python)", env!("CARGO_PKG_VERSION"))),
        study_text,
        ..Default::default()
    };
    Ok(consilience_report::report(&document(json)?, &extras))
}

fn document(json: &str) -> PyResult<Document> {
    Document::read(json).map_err(wrong)
}

fn wrong(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymodule]
fn _consilience(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<shard::Shard>()?;
    module.add_function(wrap_pyfunction!(columns_used, module)?)?;
    module.add_function(wrap_pyfunction!(given, module)?)?;
    module.add_function(wrap_pyfunction!(log_priors, module)?)?;
    module.add_function(wrap_pyfunction!(prior_place, module)?)?;
    module.add_function(wrap_pyfunction!(kinds, module)?)?;
    module.add_function(wrap_pyfunction!(figure, module)?)?;
    module.add_function(wrap_pyfunction!(png, module)?)?;
    module.add_function(wrap_pyfunction!(page, module)?)?;
    module.add_function(wrap_pyfunction!(tasks::compare, module)?)?;
    module.add_function(wrap_pyfunction!(tasks::log_likelihood, module)?)?;
    module.add_function(wrap_pyfunction!(tasks::split, module)?)?;
    module.add_function(wrap_pyfunction!(tasks::select, module)?)?;
    module.add_function(wrap_pyfunction!(tasks::sweep, module)?)?;
    module.add_function(wrap_pyfunction!(tasks::simulate, module)?)
}
