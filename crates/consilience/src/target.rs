//! The density contract: all that samplers and estimators know about a model.

use crate::math::{Cholesky, Matrix};
use serde::{Deserialize, Serialize};

/// An unnormalised log density on ℝᵈ: for a shard its subposterior
///
/// ```text
/// log f_s(θ) = log p(y_s|θ) + w_s log p(θ)
/// ```
///
/// on the unconstrained scale, every constant included; for a model of one's own the likelihood alone,
/// log p(y_s|θ), since the prior is shared out elsewhere. The value −∞ is legal; NaN never is. A method may be
/// called from several threads at once and always gives the same bits.
///
/// Only `dim` and `log_density_gradient` must be there. What else is known of a density makes it faster.
pub trait Target: Sync {
    /// The number of parameters d; 0 is legal (everything is held fixed).
    fn dim(&self) -> usize;

    /// log f(θ), its gradient written to `gradient`.
    fn log_density_gradient(&self, theta: &[f64], gradient: &mut [f64]) -> f64;

    /// log f(θ).
    fn log_density(&self, theta: &[f64]) -> f64 {
        self.log_density_gradient(theta, &mut vec![0.0; self.dim()])
    }

    /// log f(θ) with gradient and Hessian: what a Newton step needs. By default by differences of gradients.
    fn expand(&self, theta: &[f64]) -> Expansion {
        by_differences(self, theta)
    }

    /// log f at many points, one per row: the fast path.
    fn log_densities(&self, thetas: &Matrix, out: &mut [f64]) {
        for (k, out) in out.iter_mut().enumerate() {
            *out = self.log_density(thetas.row(k));
        }
    }

    /// A point to start from: finite density, not far off. By default 0.
    fn start(&self) -> Vec<f64> {
        vec![0.0; self.dim()]
    }
}

/// An expansion whose Hessian is made of differences of gradients, good to some ten digits.
fn by_differences<T: Target + ?Sized>(target: &T, theta: &[f64]) -> Expansion {
    // The cube root of the rounding error balances it against the third derivative.
    const STEP: f64 = 6e-6;
    let d = theta.len();
    let mut out = Expansion::zeros(d);
    out.value = target.log_density_gradient(theta, &mut out.gradient);
    let (mut below, mut above) = (vec![0.0; d], vec![0.0; d]);
    for j in 0..d {
        let mut point = theta.to_vec();
        let step = STEP * theta[j].abs().max(1.0);
        point[j] = theta[j] - step;
        let from = point[j];
        target.log_density_gradient(&point, &mut below);
        point[j] = theta[j] + step;
        target.log_density_gradient(&point, &mut above);
        let width = point[j] - from;
        for i in 0..d {
            let slope = 0.5 * (above[i] - below[i]) / width;
            // Both differences of a pair count, so that it is symmetric.
            out.hessian[(i, j)] += slope;
            out.hessian[(j, i)] += slope;
        }
    }
    out
}

/// A log density at a point to second order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expansion {
    /// log f(θ).
    pub value: f64,
    /// ∇ log f(θ).
    pub gradient: Vec<f64>,
    /// ∇² log f(θ), symmetric.
    pub hessian: Matrix,
}

impl Expansion {
    /// Nothing: value 0, no slope, no curvature.
    pub fn zeros(d: usize) -> Expansion {
        Expansion { value: 0.0, gradient: vec![0.0; d], hessian: Matrix::zeros(d, d) }
    }

    /// The expansion of a multiple of the log density.
    pub fn scale(&mut self, factor: f64) {
        self.value *= factor;
        self.gradient.iter_mut().for_each(|g| *g *= factor);
        self.hessian.scale(factor);
    }

    /// The expansion of the sum of two log densities at one point.
    pub fn add(&mut self, other: &Expansion) {
        self.value += other.value;
        for (a, b) in self.gradient.iter_mut().zip(&other.gradient) {
            *a += b;
        }
        self.hessian.add_scaled(1.0, &other.hessian);
    }
}

/// A mode with the curvature there.
#[derive(Debug, Clone)]
pub struct Mode {
    /// θ at the maximum.
    pub theta: Vec<f64>,
    /// log f there.
    pub value: f64,
    /// −∇² log f there, positive definite.
    pub precision: Matrix,
    /// Its Cholesky factor.
    pub factor: Cholesky,
    /// Half the squared Newton decrement: how far below the maximum the value may still be.
    pub decrement: f64,
}
