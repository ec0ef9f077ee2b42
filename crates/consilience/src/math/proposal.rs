//! Where importance draws come from: a normal with a share of Student's t at the same place.
//!
//! The t share is a defence: for a target that is nearly normal the weights stay below
//! 1/(1 − share), and where the target's tails are heavier than normal they stay bounded by the t's.

use super::ziggurat::{chi_square, normal};
use super::{Cholesky, LOG_2PI, Matrix, Stream, dot};
use libm::{exp, lgamma, log, log1p};
use rand::RngExt;

/// A defensive mixture (1 − share)·N(m, FF') + share·t(df, m, FF').
#[derive(Debug, Clone)]
pub struct Proposal {
    mean: Vec<f64>,
    /// F: θ = m + F·z. Lower or upper triangular; only its product is used.
    factor: Matrix,
    log_det_factor: f64,
    t_share: f64,
    df: f64,
}

/// Draws and the log density of each under the proposal they came from.
#[derive(Debug, Clone)]
pub struct Draws {
    /// One draw per row.
    pub thetas: Matrix,
    /// log g(θ) per draw.
    pub log_density: Vec<f64>,
}

impl Proposal {
    /// Around `mean` with the inverse of a precision matrix as covariance.
    pub fn from_precision(mean: Vec<f64>, precision: &Cholesky, t_share: f64, df: f64) -> Proposal {
        let factor = precision.inverse_lower().transpose();
        Proposal { mean, factor, log_det_factor: -0.5 * precision.log_det(), t_share, df }
    }

    /// Around `mean` with this covariance.
    pub fn from_covariance(
        mean: Vec<f64>,
        covariance: &Cholesky,
        t_share: f64,
        df: f64,
    ) -> Proposal {
        let factor = covariance.lower().clone();
        Proposal { mean, factor, log_det_factor: 0.5 * covariance.log_det(), t_share, df }
    }

    /// This many draws.
    pub fn draw(&self, count: usize, rng: &mut Stream) -> Draws {
        let d = self.mean.len();
        let mut thetas = Matrix::zeros(count, d);
        let mut log_density = Vec::with_capacity(count);
        let mut z = vec![0.0; d];
        for k in 0..count {
            z.iter_mut().for_each(|v| *v = normal(rng));
            if rng.random::<f64>() < self.t_share {
                let stretch = (self.df / chi_square(self.df, rng)).sqrt();
                z.iter_mut().for_each(|v| *v *= stretch);
            }
            for (i, theta) in thetas.row_mut(k).iter_mut().enumerate() {
                *theta = self.mean[i] + dot(self.factor.row(i), &z);
            }
            log_density.push(self.log_density_at(dot(&z, &z)));
        }
        Draws { thetas, log_density }
    }

    /// The log density at squared distance q = |F⁻¹(θ − m)|².
    fn log_density_at(&self, q: f64) -> f64 {
        let d = self.mean.len() as f64;
        let df = self.df;
        let normal = -0.5 * (d * LOG_2PI + q);
        let t = lgamma(0.5 * (df + d))
            - lgamma(0.5 * df)
            - 0.5 * d * log(df * std::f64::consts::PI)
            - 0.5 * (df + d) * log1p(q / df);
        let (a, b) = (log1p(-self.t_share) + normal, log(self.t_share) + t);
        let (high, low) = if a > b { (a, b) } else { (b, a) };
        high + log1p(exp(low - high)) - self.log_det_factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::{log_mean_exp, stream};

    // E_g[N(θ; m, V)/g(θ)] = 1 for any proposal g: checks draws and densities against each other.
    #[test]
    fn a_known_normal_has_evidence_one() {
        let covariance = Matrix::from_rows(2, 2, vec![2.0, 0.6, 0.6, 0.5]);
        let factor = Cholesky::new(&covariance).unwrap();
        let mean = vec![1.0, -3.0];
        for share in [0.1, 1.0] {
            let wide = Cholesky::new(&Matrix::from_rows(2, 2, vec![3.0, 0.0, 0.0, 1.0])).unwrap();
            let from_covariance = Proposal::from_covariance(vec![0.5, -2.5], &wide, share, 5.0);
            let precision = Cholesky::new(&wide.inverse()).unwrap();
            let from_precision = Proposal::from_precision(vec![0.5, -2.5], &precision, share, 5.0);
            for proposal in [from_covariance, from_precision] {
                let draws = proposal.draw(40_000, &mut stream(1, 0, 0, "test"));
                let log_weights: Vec<f64> = (0..40_000)
                    .map(|k| {
                        let offset: Vec<f64> =
                            draws.thetas.row(k).iter().zip(&mean).map(|(a, b)| a - b).collect();
                        let q = factor.inverse_quadratic(&offset);
                        -0.5 * (2.0 * LOG_2PI + factor.log_det() + q) - draws.log_density[k]
                    })
                    .collect();
                assert!(log_mean_exp(&log_weights).abs() < 0.02);
            }
        }
    }
}
