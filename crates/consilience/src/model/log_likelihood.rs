//! Any likelihood of a shard's rows: ours, or somebody else's.

use super::{Gaussian, Likelihood};
use crate::math::Matrix;
use crate::target::{Expansion, Target};
use crate::{Error, Result};
use std::fmt;
use std::sync::{Arc, Mutex};

/// log p(y_s|θ), every constant included and without any prior, so that shards can share that out.
pub trait LogLikelihood: fmt::Debug + Send + Sync {
    /// The number of free parameters.
    fn dim(&self) -> usize;

    /// Observations: rows, each counted with its weight.
    fn observations(&self) -> f64;

    /// log p(y|θ) at each of these points. −∞ is legal; NaN belongs to points so far out that they have no
    /// density.
    fn values(&self, thetas: &[&[f64]], out: &mut [f64]);

    /// log p(y|θ), its gradient written to `gradient`.
    fn gradient(&self, theta: &[f64], gradient: &mut [f64]) -> f64;

    /// log p(y|θ) with gradient and Hessian.
    fn expand(&self, theta: &[f64]) -> Expansion;

    /// Why an evaluation failed, if one did: those since then are worth nothing.
    fn take_failure(&self) -> Option<Error> {
        None
    }

    /// Our own regression, which can do more: it knows its rows.
    fn regression(&self) -> Option<&Likelihood> {
        None
    }

    /// The Gaussian itself, and log σ where it is held fixed; `None` for everything else.
    fn gaussian(&self) -> Option<(&Gaussian, Option<f64>)> {
        self.regression()?.gaussian()
    }
}

impl LogLikelihood for Likelihood {
    fn dim(&self) -> usize {
        self.dim()
    }

    fn observations(&self) -> f64 {
        self.observations
    }

    fn values(&self, thetas: &[&[f64]], out: &mut [f64]) {
        self.values(thetas, out);
    }

    fn gradient(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        self.gradient(theta, gradient)
    }

    fn expand(&self, theta: &[f64]) -> Expansion {
        self.expand(theta)
    }

    fn take_failure(&self) -> Option<Error> {
        self.take_failure()
    }

    fn regression(&self) -> Option<&Likelihood> {
        Some(self)
    }
}

/// Somebody else's log likelihood on one shard's rows.
pub struct Foreign {
    target: Arc<dyn Target + Send>,
    observations: f64,
    failure: Mutex<Option<Error>>,
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Foreign({} parameters)", self.target.dim())
    }
}

impl Foreign {
    /// A target that is the log likelihood of so many observations.
    pub fn new(target: Arc<dyn Target + Send>, observations: f64) -> Result<Foreign> {
        if !(observations.is_finite() && observations >= 0.0) {
            let message = format!("{observations} is no number of observations");
            return Err(Error::input(message));
        }
        Ok(Foreign { target, observations, failure: Mutex::default() })
    }

    /// The value, if it is one. What is no number, or infinitely likely, is a mistake in the likelihood: it is
    /// kept for whoever asks, since densities are plain numbers.
    fn checked(&self, value: f64, theta: &[f64]) -> f64 {
        if value.is_nan() || value == f64::INFINITY {
            let message = format!(
                "the likelihood is {value} at the point {theta:?}; return a finite number, or -∞ where the data are impossible"
            );
            let mut failure = self.failure.lock().expect("no thread panics while it holds it");
            failure.get_or_insert_with(|| Error::numeric(message));
        }
        value
    }
}

impl LogLikelihood for Foreign {
    fn dim(&self) -> usize {
        self.target.dim()
    }

    fn observations(&self) -> f64 {
        self.observations
    }

    fn values(&self, thetas: &[&[f64]], out: &mut [f64]) {
        let points = Matrix::from_rows(thetas.len(), self.dim(), thetas.concat());
        self.target.log_densities(&points, out);
        for (value, theta) in out.iter_mut().zip(thetas) {
            *value = self.checked(*value, theta);
        }
    }

    fn gradient(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let value = self.target.log_density_gradient(theta, gradient);
        self.checked(value, theta)
    }

    fn expand(&self, theta: &[f64]) -> Expansion {
        let at = self.target.expand(theta);
        self.checked(at.value, theta);
        at
    }

    fn take_failure(&self) -> Option<Error> {
        self.failure.lock().expect("no thread panics while it holds it").take()
    }
}
