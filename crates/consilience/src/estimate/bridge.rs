//! Bridge sampling: the evidence from posterior draws and a proposal that meets them half-way.
//!
//! Meng & Wong's (1996) optimal bridge, iterated in logs. With q the unnormalised density, g the
//! proposal's and r the evidence,
//!
//! ```text
//! r = [ mean over θ ~ g of  q/(s₁q + s₂rg) ] / [ mean over θ ~ posterior of  g/(s₁q + s₂rg) ].
//! ```
//!
//! The proposal is fitted on the first half of the draws and the bridge is built on the second, so
//! that the two are independent. `warp3` (Meng & Schilling 2002) standardises the draws and makes the
//! density symmetric, q̃(ζ) = |V|^½ ½[q(m + Lζ) + q(m − Lζ)], against N(0, I): skewness costs nothing.

use super::Estimate;
use super::chains::ess;
use crate::math::ziggurat::normal;
use crate::math::{Cholesky, LOG_2PI, Matrix, Stream, dot};
use crate::sample::Sample;
use crate::target::Target;
use crate::{Error, Result};
use libm::{exp, log, log1p};

/// How the posterior is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warp {
    /// By a normal density with its moments.
    Normal,
    /// By a standard normal after standardising and symmetrising.
    Warp3,
}

/// The result of a bridge.
#[derive(Debug, Clone)]
pub struct Bridge {
    /// log Z with the relative error of Frühwirth-Schnatter (2004), autocorrelation included.
    pub log_z: Estimate,
    /// Iterations used.
    pub iterations: usize,
    /// By how much each draw of the second half moves log Z: the influence of batches of draws.
    pub influence: Vec<f64>,
    /// The same for the proposal's draws.
    pub proposal_influence: Vec<f64>,
}

/// Iterations after which the bridge is given up.
const ITERATIONS: usize = 1000;

/// The evidence of a target from its draws. Fails, saying why, where the draws have no positive
/// definite covariance or the iteration does not settle.
pub fn bridge(
    target: &dyn Target,
    sample: &Sample,
    warp: Warp,
    rng: &mut Stream,
) -> Result<Bridge> {
    let d = target.dim();
    let halves: Vec<(usize, usize)> =
        sample.chains.iter().map(|c| (c.thetas.rows() / 2, c.thetas.rows())).collect();
    let fit = sample
        .chains
        .iter()
        .zip(&halves)
        .flat_map(|(c, (half, _))| (0..*half).map(|k| c.thetas.row(k)));
    let (mean, covariance) = moments(fit, d);
    let factor = Cholesky::new(&covariance).ok_or_else(|| {
        Error::numeric(
            "the draws have no positive definite covariance to bridge from; use more draws",
        )
    })?;
    let meeting = Meeting { target, mean, factor, warp };

    let kept: Vec<(&[f64], f64)> = sample
        .chains
        .iter()
        .zip(&halves)
        .flat_map(|(c, (half, all))| (*half..*all).map(|k| (c.thetas.row(k), c.log_density[k])))
        .collect();
    let standardised: Vec<Vec<f64>> =
        kept.iter().map(|(theta, _)| meeting.standardise(theta)).collect();
    let values: Vec<f64> = kept.iter().map(|(_, value)| *value).collect();
    let l1 = meeting.log_ratios(&standardised, Some(&values));

    let proposals: Vec<Vec<f64>> =
        (0..kept.len()).map(|_| (0..d).map(|_| normal(rng)).collect()).collect();
    let l2 = meeting.log_ratios(&proposals, None);
    if l1.iter().any(|l| !l.is_finite()) || l2.iter().any(|l| l.is_nan() || *l == f64::INFINITY) {
        return Err(Error::numeric("the density is not finite at a draw"));
    }
    let lengths: Vec<usize> = halves.iter().map(|(half, all)| all - half).collect();
    settle(&l1, &l2, &lengths)
}

/// Mean and covariance of draws.
pub fn moments<'a>(draws: impl Iterator<Item = &'a [f64]> + Clone, d: usize) -> (Vec<f64>, Matrix) {
    let mut mean = vec![0.0; d];
    let mut count = 0.0;
    for theta in draws.clone() {
        count += 1.0;
        mean.iter_mut().zip(theta).for_each(|(m, t)| *m += t);
    }
    mean.iter_mut().for_each(|m| *m /= count);
    let mut covariance = Matrix::zeros(d, d);
    let mut offset = vec![0.0; d];
    for theta in draws {
        offset.iter_mut().zip(theta).zip(&mean).for_each(|((o, t), m)| *o = t - m);
        covariance.add_outer(1.0 / (count - 1.0), &offset);
    }
    (mean, covariance)
}

/// Where posterior and proposal meet: standardised coordinates ζ with θ = m + Lζ.
struct Meeting<'a> {
    target: &'a dyn Target,
    mean: Vec<f64>,
    factor: Cholesky,
    warp: Warp,
}

impl Meeting<'_> {
    fn standardise(&self, theta: &[f64]) -> Vec<f64> {
        let offset: Vec<f64> = theta.iter().zip(&self.mean).map(|(t, m)| t - m).collect();
        self.factor.solve_lower(&offset)
    }

    /// log q at m + sign·Lζ for many ζ.
    fn log_density(&self, points: &[Vec<f64>], sign: f64) -> Vec<f64> {
        let d = self.mean.len();
        let lower = self.factor.lower();
        let mut thetas = Matrix::zeros(points.len(), d);
        for (k, zeta) in points.iter().enumerate() {
            for (i, theta) in thetas.row_mut(k).iter_mut().enumerate() {
                *theta = self.mean[i] + sign * dot(&lower.row(i)[..=i], &zeta[..=i]);
            }
        }
        let mut out = vec![0.0; points.len()];
        self.target.log_densities(&thetas, &mut out);
        out
    }

    /// log (q̃/g) at each ζ. The values of log q at m + Lζ may be known already.
    fn log_ratios(&self, points: &[Vec<f64>], known: Option<&[f64]>) -> Vec<f64> {
        let here = known.map_or_else(|| self.log_density(points, 1.0), <[f64]>::to_vec);
        let there = match self.warp {
            Warp::Normal => None,
            Warp::Warp3 => Some(self.log_density(points, -1.0)),
        };
        let d = self.mean.len() as f64;
        let half_log_det = 0.5 * self.factor.log_det();
        points
            .iter()
            .enumerate()
            .map(|(k, zeta)| {
                let q = match &there {
                    None => here[k],
                    Some(there) => mean_in_logs(here[k], there[k]),
                };
                q + half_log_det + 0.5 * (d * LOG_2PI + dot(zeta, zeta))
            })
            .collect()
    }
}

/// log ½(eᵃ + eᵇ).
fn mean_in_logs(a: f64, b: f64) -> f64 {
    let (high, low) = if a > b { (a, b) } else { (b, a) };
    if high == f64::NEG_INFINITY {
        return high;
    }
    high + log1p(exp(low - high)) - std::f64::consts::LN_2
}

/// Iterates the bridge on log ratios of posterior draws (`l1`) and proposals (`l2`).
fn settle(l1: &[f64], l2: &[f64], lengths: &[usize]) -> Result<Bridge> {
    let mut sorted = l1.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted[sorted.len() / 2];
    let (n1, n2) = (l1.len() as f64, l2.len() as f64);
    // The chain is worth fewer draws than it has: let it count for what it is worth.
    let worth = ess(&split(l1, lengths)).unwrap_or(n1).clamp(1.0, n1);
    let (s1, s2) = (worth / (worth + n2), n2 / (worth + n2));
    let mut log_r = 0.0;
    let (mut iterations, mut change) = (0, f64::INFINITY);
    while change > 1e-10 {
        if iterations == ITERATIONS {
            return Err(Error::numeric(format!(
                "the bridge did not settle within {ITERATIONS} iterations (it still moves by {change:.1e}); the draws and the proposal hardly meet: use more draws"
            )));
        }
        iterations += 1;
        let r = exp(log_r);
        let above: f64 = l2
            .iter()
            .map(|l| {
                // e^l/(s₁e^l + s₂r), written so that a large l does no harm.
                1.0 / (s1 + s2 * r * exp(middle - l))
            })
            .sum::<f64>()
            / n2;
        let below: f64 = l1.iter().map(|l| 1.0 / (s1 * exp(l - middle) + s2 * r)).sum::<f64>() / n1;
        let next = log(above / below);
        if !next.is_finite() {
            return Err(Error::numeric(
                "the bridge broke down: no proposal lies where the posterior is; use more draws",
            ));
        }
        change = (next - log_r).abs();
        log_r = next;
    }
    let r = exp(log_r);
    let f1: Vec<f64> = l2.iter().map(|l| 1.0 / (s1 + s2 * r * exp(middle - l))).collect();
    let f2: Vec<f64> = l1.iter().map(|l| 1.0 / (s1 * exp(l - middle) + s2 * r)).collect();
    let (mean1, variance1) = mean_and_variance(&f1);
    let (mean2, variance2) = mean_and_variance(&f2);
    let effective = ess(&split(&f2, lengths)).unwrap_or(n1);
    let relative = variance1 / (mean1 * mean1 * n2) + variance2 / (mean2 * mean2 * effective);
    Ok(Bridge {
        log_z: Estimate::new(log_r + middle, relative.sqrt()),
        iterations,
        influence: f2.iter().map(|f| 1.0 - f / mean2).collect(),
        proposal_influence: f1.iter().map(|f| f / mean1 - 1.0).collect(),
    })
}

/// The values of each chain.
fn split<'a>(values: &'a [f64], lengths: &[usize]) -> Vec<&'a [f64]> {
    let mut rest = values;
    lengths
        .iter()
        .map(|&n| {
            let (chain, others) = rest.split_at(n);
            rest = others;
            chain
        })
        .collect()
}

fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0))
}
