//! The density contract: all that samplers and estimators know about a model.

use crate::math::Matrix;
use serde::{Deserialize, Serialize};

/// An unnormalised log density on ℝᵈ. For a shard this is its subposterior
///
/// ```text
/// log f_s(θ) = log p(y_s|θ) + w_s log p(θ)
/// ```
///
/// on the unconstrained scale, every constant included. The value −∞ is legal; NaN never is.
/// A method may be called from several threads at once and always gives the same bits.
pub trait Target: Sync {
    /// The number of parameters d; 0 is legal (everything is held fixed).
    fn dim(&self) -> usize;

    /// log f(θ).
    fn log_density(&self, theta: &[f64]) -> f64;

    /// log f(θ), its gradient written to `gradient`.
    fn log_density_gradient(&self, theta: &[f64], gradient: &mut [f64]) -> f64;

    /// log f(θ) with gradient and Hessian: what a Newton step needs. Where the density has a kink
    /// (a Laplace prior) this is the expansion of a smooth stand-in of the same spread: good for
    /// finding a centre and a scale, not for the density's value.
    fn expand(&self, theta: &[f64]) -> Expansion;

    /// log f at many points, one per row: the fast path.
    fn log_densities(&self, thetas: &Matrix, out: &mut [f64]);

    /// A point to start from: finite density, not far off.
    fn start(&self) -> Vec<f64>;
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
