//! How far a density is from the normal one that stands for it.

use crate::math::ziggurat::normal;
use crate::math::{Cholesky, LOG_2PI, Matrix, Stream};
use crate::target::Target;
use serde::{Deserialize, Serialize};

/// Pairs of draws that it goes by. Errors of many shards are added up, so that each need not be known well.
const PAIRS: usize = 32;

/// Nats beyond which it does not matter how far off a normal is; also what stands for an infinite ratio.
const FAR: f64 = 1e8;

/// The distribution of the error e(θ) = log f(θ) − log Z − log N(θ; μ, Σ) over draws of that normal.
///
/// The consensus of many shards lies about one normal draw away from each of them. So e at a draw is what
/// a shard's normal does to the product of all, whatever it comes from: the shape, moments that are
/// estimated, or a log Z that is only approximate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Its mean.
    pub mean: f64,
    /// Its variance.
    pub variance: f64,
}

impl Shape {
    /// Of a density with this log Z, mean and covariance; `None` if no normal has that covariance.
    pub fn of(
        target: &dyn Target,
        log_z: f64,
        mean: &[f64],
        covariance: &Matrix,
        rng: &mut Stream,
    ) -> Option<Shape> {
        let d = mean.len();
        let factor = Cholesky::new(covariance)?;
        let constant = 0.5 * (d as f64 * LOG_2PI + factor.log_det());
        let mut thetas = Matrix::zeros(2 * PAIRS, d);
        let mut log_normal = Vec::with_capacity(2 * PAIRS);
        for pair in 0..PAIRS {
            // In pairs, since the error is mostly odd.
            let z: Vec<f64> = (0..d).map(|_| normal(rng)).collect();
            let step = factor.lower().times(&z);
            for (k, sign) in [(2 * pair, 1.0), (2 * pair + 1, -1.0)] {
                let row = thetas.row_mut(k).iter_mut().zip(mean).zip(&step);
                row.for_each(|((t, m), s)| *t = m + sign * s);
                log_normal.push(-constant - 0.5 * z.iter().map(|z| z * z).sum::<f64>());
            }
        }
        let mut errors = vec![0.0; 2 * PAIRS];
        target.log_densities(&thetas, &mut errors);
        for (error, log_normal) in errors.iter_mut().zip(log_normal) {
            // A density that is no number is as bad as none.
            let off = *error - log_z - log_normal;
            *error = if off.is_nan() { -FAR } else { off.clamp(-FAR, FAR) };
        }
        let count = errors.len() as f64;
        let mean = errors.iter().sum::<f64>() / count;
        let squares: f64 = errors.iter().map(|e| (e - mean) * (e - mean)).sum();
        Some(Shape { mean, variance: squares / (count - 1.0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::stream;
    use crate::target::Expansion;

    /// log f = −½x² + κx³/6 + 7 in every coordinate.
    struct Skewed(usize, f64);

    impl Target for Skewed {
        fn dim(&self) -> usize {
            self.0
        }

        fn log_density(&self, theta: &[f64]) -> f64 {
            theta.iter().map(|x| -0.5 * x * x + self.1 * x * x * x / 6.0 + 7.0).sum()
        }

        fn log_density_gradient(&self, _: &[f64], _: &mut [f64]) -> f64 {
            unreachable!("values are enough")
        }

        fn expand(&self, _: &[f64]) -> Expansion {
            unreachable!("values are enough")
        }

        fn log_densities(&self, thetas: &Matrix, out: &mut [f64]) {
            (0..out.len()).for_each(|k| out[k] = self.log_density(thetas.row(k)));
        }

        fn start(&self) -> Vec<f64> {
            vec![0.0; self.0]
        }
    }

    fn shape(d: usize, kappa: f64, seed: u64) -> Shape {
        let log_z = d as f64 * (7.0 + 0.5 * LOG_2PI);
        let mut rng = stream(seed, 0, 0, "shape");
        Shape::of(&Skewed(d, kappa), log_z, &vec![0.0; d], &Matrix::identity(d), &mut rng).unwrap()
    }

    #[test]
    fn a_normal_is_normal_and_a_skewed_density_is_not() {
        for seed in 1..=10 {
            let none = shape(3, 0.0, seed);
            assert!(none.mean.abs() < 1e-12 && none.variance < 1e-24, "{none:?}");
        }
        // The variance of κx³/6 is 15κ²/36 a coordinate; over 50 seeds the sampling error is small.
        let seeds = 1..=50;
        let mean: f64 = seeds.map(|seed| shape(4, 0.3, seed).variance / 50.0).sum();
        assert!((mean / (4.0 * 15.0 * 0.09 / 36.0) - 1.0).abs() < 0.2, "{mean}");
        // Odd errors cancel in pairs.
        assert!(shape(4, 0.3, 1).mean.abs() < 1e-12);
    }
}
