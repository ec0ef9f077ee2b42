//! Draws of θ given all the data.
//!
//! `exact` has weighted draws of the full posterior; resampling them gives draws of equal weight. From
//! chains on the shards, consensus Monte Carlo (Scott et al. 2016) makes draws
//!
//! ```text
//! θ^i = Λ⁻¹ Σ_s Λ_s θ_s^i,   Λ = Σ_s Λ_s,
//! ```
//!
//! which is exact where every subposterior is normal and its precision Λ_s known. Precisions estimated
//! from the same draws add an error that falls with their number.

use super::normal::Normals;
use crate::estimate::Weighted;
use crate::fit::Summary;
use crate::math::{Matrix, Stream};
use crate::sample::{Chain, Sample};
use crate::{Error, Result};
use rand::RngExt;

/// Draws of a posterior.
#[derive(Debug, Clone)]
pub enum PosteriorDraws {
    /// With importance weights.
    Weighted(Weighted),
    /// Of equal weight.
    Equal(Sample),
}

impl PosteriorDraws {
    /// Draws of equal weight: as they are, or as many as there are weighted ones, by systematic
    /// resampling.
    pub fn into_sample(self, rng: &mut Stream) -> Sample {
        match self {
            PosteriorDraws::Weighted(weighted) => {
                Sample { chains: vec![Chain::of_draws(resample(&weighted, rng))] }
            }
            PosteriorDraws::Equal(sample) => sample,
        }
    }

    /// Quantiles of every parameter: a row each, with a column for every probability.
    pub fn quantiles(&self, probabilities: &[f64]) -> Vec<Vec<f64>> {
        let (weights, rows): (Vec<f64>, Vec<&[f64]>) = match self {
            PosteriorDraws::Weighted(weighted) => {
                (weighted.relative(), (0..weighted.len()).map(|k| weighted.thetas.row(k)).collect())
            }
            PosteriorDraws::Equal(sample) => {
                let rows: Vec<&[f64]> = sample
                    .chains
                    .iter()
                    .flat_map(|c| (0..c.thetas.rows()).map(|k| c.thetas.row(k)))
                    .collect();
                (vec![1.0; rows.len()], rows)
            }
        };
        let d = rows.first().map_or(0, |row| row.len());
        (0..d)
            .map(|j| {
                let mut pairs: Vec<(f64, f64)> =
                    rows.iter().zip(&weights).map(|(row, &w)| (row[j], w)).collect();
                pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
                probabilities.iter().map(|&p| quantile(&pairs, p)).collect()
            })
            .collect()
    }
}

/// The p-quantile of sorted values with weights: each value stands in the middle of its weight, and
/// lines join them.
fn quantile(sorted: &[(f64, f64)], p: f64) -> f64 {
    let total: f64 = sorted.iter().map(|(_, w)| w).sum();
    let (target, mut below) = (p * total, 0.0);
    let mut last: Option<(f64, f64)> = None;
    for &(value, weight) in sorted.iter().filter(|(_, w)| *w > 0.0) {
        let here = below + 0.5 * weight;
        if here >= target {
            return match last {
                Some((at, before)) => before + (value - before) * (target - at) / (here - at),
                None => value,
            };
        }
        below += weight;
        last = Some((here, value));
    }
    last.map_or(f64::NAN, |(_, value)| value)
}

/// Draws of equal weight. Copies stand together, so that whoever measures autocorrelation sees that
/// they are copies.
fn resample(weighted: &Weighted, rng: &mut Stream) -> Matrix {
    let kept = weighted.resampled(rng.random());
    let data = kept.iter().flat_map(|&k| weighted.thetas.row(k).to_vec()).collect();
    Matrix::from_rows(kept.len(), weighted.thetas.cols(), data)
}

/// Consensus Monte Carlo from the draws of every shard's chains, which must be equally many.
pub(crate) fn consensus_draws(summaries: &[Summary], samples: &[Sample]) -> Result<Sample> {
    let Normals { factors, all, .. } = Normals::new(summaries)?;
    let shape = |s: &Sample| s.chains.iter().map(|c| c.thetas.rows()).collect::<Vec<_>>();
    let first = shape(&samples[0]);
    if let Some(other) = samples.iter().position(|s| shape(s) != first) {
        let message = "its chains are not as long as those of shard 0, or not as many: their draws cannot be paired";
        return Err(Error::numeric(message).for_shard(other));
    }
    let chains = first.iter().enumerate().map(|(c, &rows)| {
        let d = all.mean.len();
        let mut thetas = Matrix::zeros(rows, d);
        for k in 0..rows {
            // Offsets from the mean, so that nothing large cancels.
            let mut pull = vec![0.0; d];
            for (factor, sample) in factors.iter().zip(samples) {
                let draw = sample.chains[c].thetas.row(k);
                let offset: Vec<f64> = draw.iter().zip(&all.mean).map(|(t, m)| t - m).collect();
                let pulled = factor.precision.times(&offset);
                pull.iter_mut().zip(pulled).for_each(|(sum, p)| *sum += p);
            }
            let moved = all.factor.solve(&pull);
            let row = thetas.row_mut(k).iter_mut();
            row.zip(&all.mean).zip(moved).for_each(|((t, m), by)| *t = m + by);
        }
        Chain::of_draws(thetas)
    });
    Ok(Sample { chains: chains.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Estimate;
    use crate::fit::Diagnostics;
    use crate::math::proposal::Kinship;
    use crate::math::ziggurat::normal;
    use crate::math::{Cholesky, stream};

    /// A normal subposterior as a shard reports it: analytic.
    fn summary(mean: Vec<f64>, precision: Matrix) -> Summary {
        Summary {
            method: "laplace".into(),
            log_z: Estimate::ZERO,
            covariance: Cholesky::new(&precision).unwrap().inverse(),
            mode: mean.clone(),
            mean,
            precision,
            effective: None,
            batches: Vec::new(),
            shape: None,
            diagnostics: Diagnostics::default(),
            warnings: Vec::new(),
        }
    }

    fn normal_draws(summary: &Summary, count: usize, rng: &mut Stream) -> Sample {
        let factor = Cholesky::new(&summary.covariance).unwrap();
        let d = summary.mean.len();
        let mut thetas = Matrix::zeros(count, d);
        for k in 0..count {
            let z: Vec<f64> = (0..d).map(|_| normal(rng)).collect();
            let moved = factor.lower().times(&z);
            let row = thetas.row_mut(k).iter_mut().zip(&summary.mean).zip(moved);
            row.for_each(|((t, m), by)| *t = m + by);
        }
        Sample { chains: vec![Chain::of_draws(thetas)] }
    }

    /// Over many seeds mean and (co)variances of the consensus draws scatter around those of the
    /// product of normals as independent draws of it do.
    #[test]
    fn consensus_is_exact_for_normals() {
        let summaries = [
            summary(vec![1.0, -2.0], Matrix::from_rows(2, 2, vec![3.0, 1.0, 1.0, 2.0])),
            summary(vec![0.0, 3.0], Matrix::from_rows(2, 2, vec![0.5, -0.4, -0.4, 8.0])),
            summary(vec![5.0, 0.5], Matrix::from_rows(2, 2, vec![1.0, 0.0, 0.0, 0.1])),
        ];
        let all = Normals::new(&summaries).unwrap().all;
        let exact = all.factor.inverse();
        let (count, mut zs) = (2000, Vec::new());
        for seed in 1..=40 {
            let mut rng = stream(seed, 0, 0, "consensus test");
            let samples: Vec<Sample> =
                summaries.iter().map(|s| normal_draws(s, count, &mut rng)).collect();
            let sample = consensus_draws(&summaries, &samples).unwrap();
            let thetas = &sample.chains[0].thetas;
            let n = count as f64;
            let mean = |j: usize| (0..count).map(|k| thetas[(k, j)]).sum::<f64>() / n;
            let product = |i: usize, j: usize| {
                let term =
                    |k: usize| (thetas[(k, i)] - all.mean[i]) * (thetas[(k, j)] - all.mean[j]);
                (0..count).map(term).sum::<f64>() / n
            };
            for j in 0..2 {
                zs.push((mean(j) - all.mean[j]) / (exact[(j, j)] / n).sqrt());
            }
            for (i, j) in [(0, 0), (0, 1), (1, 1)] {
                let spread = exact[(i, i)] * exact[(j, j)] + exact[(i, j)].powi(2);
                zs.push((product(i, j) - exact[(i, j)]) / (spread / n).sqrt());
            }
        }
        let n = zs.len() as f64;
        let mean = zs.iter().sum::<f64>() / n;
        let sd = (zs.iter().map(|z| z * z).sum::<f64>() / n).sqrt();
        assert!(zs.iter().all(|z| z.abs() < 4.0), "{zs:?}");
        assert!(mean.abs() < 0.3 && (0.85..1.15).contains(&sd), "mean z {mean}, sd {sd}");
    }

    #[test]
    fn shards_whose_chains_differ_cannot_be_paired() {
        let one = summary(vec![0.0], Matrix::identity(1));
        let chains = |rows: usize| Sample { chains: vec![Chain::of_draws(Matrix::zeros(rows, 1))] };
        let error = consensus_draws(&[one.clone(), one], &[chains(5), chains(4)]).unwrap_err();
        assert!(error.to_string().contains("shard 1"), "{error}");
    }

    /// Every draw comes as often as its weight says, rounded up or down.
    #[test]
    fn resampling_keeps_to_the_weights() {
        let mut rng = stream(4, 0, 0, "resampling test");
        let count = 500;
        let log_weights: Vec<f64> = (0..count)
            .map(|k| if k % 9 == 0 { f64::NEG_INFINITY } else { 3.0 * rng.random::<f64>() })
            .collect();
        let thetas = Matrix::from_rows(count, 1, (0..count).map(|k| k as f64).collect());
        let weighted = Weighted {
            thetas,
            log_weights,
            log_target: Vec::new(),
            kinship: Kinship::Strangers,
            controls: Vec::new(),
        };
        let weights = weighted.relative();
        let total: f64 = weights.iter().sum();
        let drawn = resample(&weighted, &mut rng);
        assert_eq!(drawn.rows(), count);
        for (k, weight) in weights.iter().enumerate() {
            let times = drawn.data().iter().filter(|v| **v == k as f64).count() as f64;
            assert!((times - weight / total * count as f64).abs() < 1.0 + 1e-9, "{k}: {times}");
        }
        assert!(drawn.data().is_sorted());
    }

    #[test]
    fn quantiles_of_weighted_draws() {
        let pairs = [(1.0, 1.0), (2.0, 0.0), (3.0, 2.0), (5.0, 1.0)];
        assert_eq!(quantile(&pairs, 0.5), 3.0);
        assert_eq!(quantile(&pairs, 0.0), 1.0);
        assert_eq!(quantile(&pairs, 1.0), 5.0);
        // Half of the way from 1, which stands at ½, to 3, which stands at 2, of 4.
        assert!((quantile(&pairs, 1.25 / 4.0) - 2.0).abs() < 1e-12);
    }
}
