//! A shard that lives in any Python process and answers bytes with bytes.

use crate::arrow::reader;
use crate::columns::columns;
use crate::errors::raise;
use crate::own::Likelihood;
use crate::spec::StudySpec;
use crate::work::Watch;
use consilience::Error;
use consilience::data::{ShardData, Tables, shard_of_bytes, shard_to_bytes};
use consilience::plan::{Gathered, Room};
use consilience::run;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict};
use std::sync::Arc;

/// Rows of one shard, complete ones alone, or none where only Python has them; and likelihoods of one's own.
#[pyclass(frozen, module = "consilience._consilience")]
pub struct Shard {
    inner: consilience::Shard,
    watch: Arc<Watch>,
}

/// A likelihood of one's own on a shard: its model's name, its parameters, its observations, and who computes it.
type Taught = (String, usize, f64, Py<PyAny>);

#[pymethods]
impl Shard {
    /// The shard of this number with the rows in these bytes, if there are any, and these likelihoods.
    #[new]
    #[pyo3(signature = (index, rows=None, taught=Vec::new()))]
    fn new(
        py: Python<'_>,
        index: usize,
        rows: Option<Vec<u8>>,
        taught: Vec<Taught>,
    ) -> PyResult<Shard> {
        let watch = Arc::new(Watch::default());
        let read = || match &rows {
            Some(bytes) => Ok(consilience::Shard::new(index, shard_of_bytes(bytes)?)),
            None => Ok(consilience::Shard::without_rows(index)),
        };
        let mut inner = py.detach(read).map_err(|error| raise(py, error))?;
        for (name, dim, rows, object) in taught {
            let likelihood = Likelihood::new(object, dim, watch.clone()).foreign(rows);
            inner.learn(&name, likelihood.map_err(|error| raise(py, error))?);
        }
        Ok(Shard { inner, watch })
    }

    /// The rows of a table that count in a study, as bytes; how many they are, and how many do not count; and what is to be
    /// known of them, as JSON: not that some do not count, which is told of all shards together.
    #[staticmethod]
    fn rows_of<'py>(
        py: Python<'py>,
        study: &str,
        table: &Bound<'py, PyCapsule>,
    ) -> PyResult<(Bound<'py, PyBytes>, usize, usize, String)> {
        let mut study = StudySpec::read(study).map_err(|error| raise(py, error))?;
        // They are one shard, whatever the study says of all of them.
        study.study.split = Default::default();
        let tables = Tables::Whole(reader(table)?);
        let made = py.detach(|| {
            let pool = consilience::engine::Threads::new(Vec::new(), 1)?;
            let gathered = consilience::Engine::at_the_centre(&pool, || {
                Gathered::of_tables(study, tables, &Room::default())
            })?;
            let rows = gathered
                .shards
                .into_iter()
                .next()
                .unwrap_or_else(|| ShardData::from(consilience::data::Table::default()));
            let mut warnings = gathered.warnings;
            warnings.retain(|warning| warning.code != "rows-dropped");
            let said =
                serde_json::to_string(&warnings).map_err(|e| Error::numeric(e.to_string()))?;
            Ok((shard_to_bytes(&rows)?, rows.rows(), gathered.partition.dropped, said))
        });
        let (bytes, rows, dropped, said) = made.map_err(|error| raise(py, error))?;
        Ok((PyBytes::new(py, &bytes), rows, dropped, said))
    }

    /// Its number.
    #[getter]
    fn index(&self) -> usize {
        self.inner.index()
    }

    /// How many rows it has.
    #[getter]
    fn rows(&self) -> usize {
        self.inner.data().rows()
    }

    /// Its columns: bytes of doubles, or lists of texts.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        columns(py, &self.inner)
    }

    /// What it answers to a question, on so many threads.
    #[pyo3(signature = (question, threads=1))]
    fn answer<'py>(
        &self,
        py: Python<'py>,
        question: Vec<u8>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let answer = crate::work::run(py, threads, None, |_| run::answer(&self.inner, &question));
        // What a likelihood of one's own raised says more than what became of it.
        if let Some(error) = self.watch.taken() {
            return Err(error);
        }
        Ok(PyBytes::new(py, &answer?))
    }
}
