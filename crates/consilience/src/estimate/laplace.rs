//! Laplace's approximation at the mode.

use super::Mode;
use crate::math::LOG_2PI;

/// log ∫ f ≈ log f(θ̂) + (d/2) log 2π − ½ log det(−∇² log f(θ̂)).
///
/// Exact for a normal density, and without an error bar for any other.
#[derive(Debug, Clone)]
pub struct Laplace {
    /// The approximation.
    pub log_z: f64,
}

impl Laplace {
    /// The approximation at a mode.
    pub fn at(mode: &Mode) -> Laplace {
        let d = mode.theta.len() as f64;
        Laplace { log_z: mode.value + 0.5 * (d * LOG_2PI - mode.factor.log_det()) }
    }
}
