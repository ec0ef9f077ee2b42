//! Laplace's approximation, at the mode or from draws.

use super::Mode;
use super::bridge::moments;
use crate::math::{Cholesky, LOG_2PI};
use crate::sample::Sample;
use crate::{Error, Result};

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

    /// Laplace–Metropolis (Lewis & Raftery 1997): the height of the best draw and the draws' covariance
    /// stand in for mode and curvature. Fails where the draws have no positive definite covariance.
    pub fn from_draws(sample: &Sample) -> Result<Laplace> {
        let heights = sample.chains.iter().flat_map(|c| &c.log_density);
        let height = heights.copied().fold(f64::NEG_INFINITY, f64::max);
        let draws =
            sample.chains.iter().flat_map(|c| (0..c.thetas.rows()).map(|k| c.thetas.row(k)));
        let d = sample.chains.first().map_or(0, |c| c.thetas.cols());
        let (_, covariance) = moments(draws, d);
        let factor = Cholesky::new(&covariance).ok_or_else(|| {
            Error::numeric("the draws have no positive definite covariance; use more draws")
        })?;
        Ok(Laplace { log_z: height + 0.5 * (d as f64 * LOG_2PI + factor.log_det()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::{Matrix, Proposal, stream};
    use crate::sample::Chain;

    /// Draws from a normal density times e³: its integral is e³.
    #[test]
    fn draws_of_a_normal_density_have_its_integral() {
        let covariance = Matrix::from_rows(2, 2, vec![2.0, 0.6, 0.6, 0.5]);
        let factor = Cholesky::new(&covariance).unwrap();
        // A t share of next to nothing leaves the normal.
        let normal = Proposal::from_covariance(vec![1.0, -2.0], &factor, 1e-300, 5.0);
        let draws = normal.draw(40_000, &mut stream(1, 0, 0, "laplace test"));
        let log_density = draws.log_density.iter().map(|l| l + 3.0).collect();
        let chain = Chain { thetas: draws.thetas, log_density, energy: Vec::new(), divergences: 0 };
        let found = Laplace::from_draws(&Sample { chains: vec![chain] }).unwrap().log_z;
        // ½ log|Σ| of 40,000 draws has standard error √(2d/n)/2 = 0.005; the best draw is near the top.
        assert!((found - 3.0).abs() < 0.02, "{found}");
    }
}
