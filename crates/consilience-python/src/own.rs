//! Models of one's own: likelihoods that Python computes.

use crate::work::Watch;
use consilience::math::Matrix;
use consilience::{Error, Expansion, Foreign, Model, Prior, Result, Target};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

/// A model as Python names it, and what makes its likelihood of a shard.
pub struct Own {
    pub model: Model,
    /// Called with the shard's number, its columns (`None` where Python has the rows itself), how many shards there are, and
    /// the shard's share of the prior.
    pub bind: Py<PyAny>,
}

impl Own {
    /// Of its name, its parameters with their priors as text, and what makes its likelihood.
    pub fn new(name: &str, parameters: &[(String, String)], bind: Py<PyAny>) -> Result<Own> {
        let mut settled: Vec<(&str, Prior)> = Vec::new();
        for (parameter, text) in parameters {
            let prior: Prior = text.parse().map_err(|error| match error {
                Error::Input { place, message } => Error::Input {
                    place,
                    message: format!("model `{name}`, prior of `{parameter}`: {message}"),
                },
                other => other,
            })?;
            settled.push((parameter, prior));
        }
        Ok(Own { model: Model::foreign(name, &settled), bind })
    }
}

/// A log likelihood on one shard's rows, which Python computes: an object with the method
/// `evaluate(what, points, count)`, in which points and results are doubles one after the other.
pub struct Likelihood {
    object: Py<PyAny>,
    dim: usize,
    /// Where exceptions go: densities are plain numbers.
    watch: Arc<Watch>,
}

impl Likelihood {
    pub fn new(object: Py<PyAny>, dim: usize, watch: Arc<Watch>) -> Likelihood {
        Likelihood { object, dim, watch }
    }

    /// The same as a likelihood of so many observations.
    pub fn foreign(self, rows: f64) -> Result<Foreign> {
        Foreign::new(Arc::new(self), rows)
    }

    /// What Python says, so many numbers; NaN if it raises an exception, which is kept, or if nobody wants to know.
    fn ask(&self, what: &str, points: &[f64], count: usize, numbers: usize) -> Vec<f64> {
        if self.watch.halt.is_called() {
            return vec![f64::NAN; numbers];
        }
        let bytes: Vec<u8> = points.iter().flat_map(|x| x.to_ne_bytes()).collect();
        let said = Python::attach(|py| -> PyResult<Vec<f64>> {
            let arguments = (what, PyBytes::new(py, &bytes), count);
            let said = self.object.bind(py).call_method1("evaluate", arguments)?;
            let said = said.cast::<PyBytes>()?.as_bytes();
            if said.len() != 8 * numbers {
                let found = said.len() / 8;
                return Err(PyValueError::new_err(format!("{found} numbers came, not {numbers}")));
            }
            Ok(crate::columns::numbers(said))
        });
        said.unwrap_or_else(|error| {
            self.watch.keep(error);
            vec![f64::NAN; numbers]
        })
    }
}

impl Target for Likelihood {
    fn dim(&self) -> usize {
        self.dim
    }

    fn log_density(&self, theta: &[f64]) -> f64 {
        self.ask("values", theta, 1, 1)[0]
    }

    fn log_density_gradient(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let said = self.ask("gradient", theta, 1, 1 + self.dim);
        gradient.copy_from_slice(&said[1..]);
        said[0]
    }

    fn expand(&self, theta: &[f64]) -> Expansion {
        let d = self.dim;
        let said = self.ask("expand", theta, 1, 1 + d + d * d);
        let (value, gradient) = (said[0], said[1..=d].to_vec());
        Expansion { value, gradient, hessian: Matrix::from_rows(d, d, said[1 + d..].to_vec()) }
    }

    fn log_densities(&self, thetas: &Matrix, out: &mut [f64]) {
        let count = out.len();
        out.copy_from_slice(&self.ask("values", thetas.data(), count, count));
    }
}
