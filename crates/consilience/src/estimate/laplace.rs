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
}

/// Laplace–Metropolis (Lewis & Raftery 1997): the height of the best draw and the draws' covariance
/// stand in for mode and curvature.
///
/// ```text
/// log ∫ f ≈ log f(θ*) + (d/2) log 2π + ½ log|Σ̂|
/// ```
#[derive(Debug, Clone)]
pub struct LaplaceMetropolis {
    /// The approximation.
    pub log_z: f64,
    /// log f(θ*).
    pub height: f64,
    /// By how much each draw moves ½ log|Σ̂|, chain after chain; their mean is next to 0.
    pub influence: Vec<f64>,
}

impl LaplaceMetropolis {
    /// The approximation from draws. Fails where these have no positive definite covariance.
    pub fn new(sample: &Sample) -> Result<LaplaceMetropolis> {
        let heights = sample.chains.iter().flat_map(|c| &c.log_density);
        let height = heights.copied().fold(f64::NEG_INFINITY, f64::max);
        let draws =
            sample.chains.iter().flat_map(|c| (0..c.thetas.rows()).map(|k| c.thetas.row(k)));
        let d = sample.chains.first().map_or(0, |c| c.thetas.cols());
        let (mean, covariance) = moments(draws.clone(), d);
        let factor = Cholesky::new(&covariance).ok_or_else(|| {
            Error::numeric("the draws have no positive definite covariance; use more draws")
        })?;
        let influence = |theta: &[f64]| {
            let offset: Vec<f64> = theta.iter().zip(&mean).map(|(t, m)| t - m).collect();
            0.5 * (factor.inverse_quadratic(&offset) - d as f64)
        };
        Ok(LaplaceMetropolis {
            log_z: height + 0.5 * (d as f64 * LOG_2PI + factor.log_det()),
            height,
            influence: draws.map(influence).collect(),
        })
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
        let found = LaplaceMetropolis::new(&Sample { chains: vec![chain] }).unwrap();
        // ½ log|Σ| of 40,000 draws has standard error √(2d/n)/2 = 0.005; the best draw is near the top.
        assert!((found.log_z - 3.0).abs() < 0.02, "{}", found.log_z);
        // What draws move is what ½ log|Σ̂| varies by: of 40,000 independent ones, √(d/2) each.
        let variance = found.influence.iter().map(|i| i * i).sum::<f64>() / 40_000.0;
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
    }
}
