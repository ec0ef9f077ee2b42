//! Importance sampling: the evidence as a mean of weights.

use super::pareto::tail_shape;
use super::{Estimate, controlled};
use crate::math::proposal::{Controls, Draws, Kinship};
use crate::math::rule::PROBES;
use crate::math::{Matrix, Proposal, Stream, dot};
use crate::target::Target;
use crate::{Error, Level, Result, Warning};
use libm::{exp, hypot, log};
use serde::{Deserialize, Serialize};

/// The share and the degrees of freedom of the t in the proposals.
pub const T_SHARE: f64 = 0.1;
/// See [`T_SHARE`].
pub const T_DF: f64 = 5.0;

/// The relative error of a log density: what kernels are held to against compensated sums.
const ROUNDING: f64 = 1e-13;

/// The fewest effective draws that an error bar may rest on.
pub(crate) const LEAST_ESS: f64 = 100.0;
/// The largest tail shape of weights whose mean has a usable error bar.
pub(crate) const MOST_K_HAT: f64 = 0.7;

/// Draws with their importance weights.
#[derive(Debug, Clone)]
pub struct Weighted {
    /// One draw per row.
    pub thetas: Matrix,
    /// log f(θ) − log g(θ) per draw.
    pub log_weights: Vec<f64>,
    /// log f(θ) per draw.
    pub log_target: Vec<f64>,
    /// How the draws depend on each other.
    pub kinship: Kinship,
    /// What is known of each draw beforehand; empty where nothing is.
    pub controls: Vec<Controls>,
}

/// What a set of weighted draws says.
#[derive(Debug, Clone)]
pub struct Importance {
    /// log of the weights' mean, by its controls where there are some, with its standard error by the delta method.
    pub log_z: Estimate,
    /// Kish's effective number of draws, (Σw)²/Σw².
    pub ess: f64,
    /// The Pareto tail shape of the weights; `None` where there is no tail to speak of.
    pub k_hat: Option<f64>,
    /// Posterior mean.
    pub mean: Vec<f64>,
    /// Posterior covariance.
    pub covariance: Matrix,
}

impl Weighted {
    /// Weights draws by the log density of their target. Fails where it is nowhere positive.
    pub fn new(draws: Draws, log_target: &[f64]) -> Result<Weighted> {
        let log_weights: Vec<f64> =
            log_target.iter().zip(&draws.log_density).map(|(f, g)| f - g).collect();
        check(&log_weights)?;
        Ok(Weighted {
            thetas: draws.thetas,
            log_weights,
            log_target: log_target.to_vec(),
            kinship: draws.kinship,
            controls: draws.controls,
        })
    }

    /// The weights alone, as those of another target far from where the draws were meant to be. There even points are no
    /// better than plain ones, and a few sets of skewed weights would underrate the error. So would pairs that
    /// mirror each other: what is left of their weights is all in few of them. Without coordinates, since moments
    /// are not wanted.
    pub(crate) fn of_weights(log_weights: Vec<f64>) -> Result<Weighted> {
        check(&log_weights)?;
        Ok(Weighted {
            thetas: Matrix::zeros(log_weights.len(), 0),
            log_weights,
            log_target: Vec::new(),
            kinship: Kinship::Strangers,
            controls: Vec::new(),
        })
    }

    /// These draws and some more from the same proposal.
    pub fn extend(&mut self, more: Weighted) {
        let cols = self.thetas.cols();
        let rows = self.thetas.rows() + more.thetas.rows();
        let data = [self.thetas.data(), more.thetas.data()].concat();
        self.thetas = Matrix::from_rows(rows, cols, data);
        self.log_weights.extend(more.log_weights);
        self.log_target.extend(more.log_target);
        self.controls.extend(more.controls);
    }

    /// The number of draws.
    pub fn len(&self) -> usize {
        self.log_weights.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.log_weights.is_empty()
    }

    /// Weights of a range of draws on a common scale: e^(log w − `top`).
    fn weights(&self, range: std::ops::Range<usize>, top: f64) -> Vec<f64> {
        self.log_weights[range].iter().map(|&w| exp(w - top)).collect()
    }

    /// The weights, the largest at 1.
    pub(crate) fn relative(&self) -> Vec<f64> {
        self.weights(0..self.len(), self.top())
    }

    fn top(&self) -> f64 {
        self.log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Evidence, error, moments and diagnostics.
    pub fn summarise(&self) -> Importance {
        let (n, top) = (self.len() as f64, self.top());
        let weights = self.weights(0..self.len(), top);
        let sum: f64 = weights.iter().sum();
        let squares = dot(&weights, &weights);
        // A line through weights of which a few are all may end below 0.
        let found = Some(self.mean_and_error(&weights)).filter(|(mean, _)| *mean > 0.0);
        let (mean_weight, se) = found.unwrap_or((sum / n, error_of_mean(&weights)));
        let (mean, covariance) = self.moments(0..self.len(), top);
        let se = hypot(se / mean_weight, self.rounding());
        Importance {
            log_z: Estimate::new(top + log(mean_weight), se),
            ess: sum * sum / squares,
            k_hat: tail_shape(&self.log_weights).filter(|k| k.is_finite()),
            mean,
            covariance,
        }
    }

    /// The mean of a function of the draws under their proposal, and its standard error.
    pub(crate) fn mean_and_error(&self, terms: &[f64]) -> (f64, f64) {
        let mean = terms.iter().sum::<f64>() / terms.len() as f64;
        match self.kinship {
            Kinship::Strangers => (mean, error_of_mean(terms)),
            Kinship::Sets(sets) => (mean, spread_of_sets(terms, sets)),
            Kinship::Mirrored => controlled::mean_and_error(terms, &self.controls),
        }
    }

    /// How far log densities may be off by rounding. All draws have that in common, so that their spread does not tell.
    fn rounding(&self) -> f64 {
        let highest = self.log_target.iter().copied().reduce(f64::max);
        ROUNDING * highest.map_or(0.0, f64::abs)
    }

    /// The largest weight's part of the sum of all weights' squares, on which the error bar rests.
    pub fn lonely(&self) -> f64 {
        let weights = self.relative();
        1.0 / dot(&weights, &weights)
    }

    /// Weighted mean and covariance of a range of draws.
    fn moments(&self, range: std::ops::Range<usize>, top: f64) -> (Vec<f64>, Matrix) {
        let d = self.thetas.cols();
        let weights = self.weights(range.clone(), top);
        let sum: f64 = weights.iter().sum();
        let mut mean = vec![0.0; d];
        for (k, w) in range.clone().zip(&weights) {
            for (m, t) in mean.iter_mut().zip(self.thetas.row(k)) {
                *m += w / sum * t;
            }
        }
        let mut covariance = Matrix::zeros(d, d);
        let (draws, mut offsets) = (range.collect::<Vec<_>>(), [(); 4].map(|()| vec![0.0; d]));
        for (draws, weights) in draws.chunks(4).zip(weights.chunks(4)) {
            // Where fewer are left, the others count for nothing.
            let mut factors = [0.0; 4];
            for (i, (&k, w)) in draws.iter().zip(weights).enumerate() {
                factors[i] = w / sum;
                for ((o, t), m) in offsets[i].iter_mut().zip(self.thetas.row(k)).zip(&mean) {
                    *o = t - m;
                }
            }
            covariance.add_outers(factors, std::array::from_fn(|i| offsets[i].as_slice()));
        }
        covariance.mirror_lower();
        // The mean was fitted to the same draws: n/(n − 1) for weighted ones. Below two effective draws
        // there is nothing to correct, and dividing by next to nothing would make a monster of rounding.
        let squares = dot(&weights, &weights);
        covariance.scale(1.0 / (1.0 - squares / (sum * sum)).max(0.5));
        (mean, covariance)
    }

    /// The numbers of as many draws as there are, in order: draw k comes ⌊N w_k/Σw⌋ times or once more.
    /// Systematic resampling; `start` in [0, 1) says where in the first step it begins.
    pub fn resampled(&self, start: f64) -> Vec<usize> {
        let weights = self.relative();
        let step = weights.iter().sum::<f64>() / self.len() as f64;
        let last = weights.iter().rposition(|w| *w > 0.0).unwrap_or(0);
        let (mut out, mut reached, mut next) = (Vec::with_capacity(self.len()), 0.0, start * step);
        for (k, weight) in weights.iter().enumerate() {
            reached += weight;
            // Rounding may leave the last position a hair beyond the sum.
            while out.len() < self.len() && (next < reached || k == last) {
                out.push(k);
                next += step;
            }
        }
        out
    }

    /// log mean weight and moments of each of `count` runs of consecutive draws.
    pub fn batches(&self, count: usize) -> Vec<Batch> {
        let (n, top) = (self.len(), self.top());
        let runs = (0..count).map(|b| b * n / count..(b + 1) * n / count);
        runs.map(|range| {
            let sum: f64 = self.weights(range.clone(), top).iter().sum();
            let log_z = top + log(sum / range.len() as f64);
            let (mean, covariance) = self.moments(range, top);
            Batch { log_weight: log_z, log_z, mean, covariance }
        })
        .collect()
    }
}

/// Weights must be numbers, and not all of them 0.
fn check(log_weights: &[f64]) -> Result<()> {
    if log_weights.iter().any(|w| w.is_nan() || *w == f64::INFINITY) {
        return Err(Error::numeric("an importance weight is not a number"));
    }
    if log_weights.iter().all(|w| *w == f64::NEG_INFINITY) {
        return Err(Error::numeric("every importance draw has density 0"));
    }
    Ok(())
}

/// The standard error of the mean of independent terms.
pub(crate) fn error_of_mean(terms: &[f64]) -> f64 {
    let n = terms.len() as f64;
    let mean = terms.iter().sum::<f64>() / n;
    let squares: f64 = terms.iter().map(|t| (t - mean) * (t - mean)).sum();
    (squares / (n * (n - 1.0).max(1.0))).sqrt()
}

/// The standard error of the mean weight by the means of independent sets.
fn spread_of_sets(weights: &[f64], sets: usize) -> f64 {
    let mut sums = vec![0.0; sets];
    for (k, w) in weights.iter().enumerate() {
        sums[k % sets] += w;
    }
    let size = (weights.len() / sets) as f64;
    let mean = sums.iter().sum::<f64>() / sets as f64;
    let squares: f64 = sums.iter().map(|s| (s - mean) * (s - mean)).sum();
    (squares / (sets * (sets - 1)) as f64).sqrt() / size
}

/// One run of consecutive draws.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// log of what its moments count for beside the other batches'.
    pub log_weight: f64,
    /// What log Z would be by this run alone.
    pub log_z: f64,
    /// Its mean.
    pub mean: Vec<f64>,
    /// Its covariance.
    pub covariance: Matrix,
}

impl Importance {
    /// Whether the weights are good enough for the error bar to mean anything.
    pub fn is_reliable(&self) -> bool {
        self.ess >= LEAST_ESS && self.k_hat.is_none_or(|k| k <= MOST_K_HAT)
    }

    /// `unreliable` warnings for weights that are not.
    pub fn warnings(&self, advice: &str) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if let Some(k) = self.k_hat.filter(|k| *k > MOST_K_HAT) {
            let message = format!(
                "a few importance weights dominate: Pareto k̂ = {k:.2} is over {MOST_K_HAT}"
            );
            warnings.push(Warning::new(Level::Unreliable, "pareto-k", message, advice).value(k));
        }
        if self.ess < LEAST_ESS {
            let message =
                format!("only {:.0} effective importance draws (at least {LEAST_ESS})", self.ess);
            warnings
                .push(Warning::new(Level::Unreliable, "low-ess", message, advice).value(self.ess));
        }
        warnings
    }
}

/// Draws from a proposal and weights them by a target that is at hand.
pub fn weigh(
    target: &dyn Target,
    proposal: &Proposal,
    count: usize,
    rng: &mut Stream,
) -> Result<Weighted> {
    let draws = proposal.draw(count, rng);
    let mut log_target = vec![0.0; count];
    target.log_densities(&draws.thetas, &mut log_target);
    Weighted::new(draws, &log_target)
}

/// The largest and the least scale that a side may get.
const SIDES: (f64, f64) = (0.2, 5.0);

/// The scales of a two-sided proposal (Geweke 1989): along each coordinate the widest normal density
/// that the log density at [`probes`](crate::math::rule::probes), which falls by `drop` over a distance x, asks for: x/√(2·drop).
pub fn sides(log_density: &[f64]) -> Vec<(f64, f64)> {
    let top = log_density[0];
    let scale = |values: &[f64]| {
        let widest = values.iter().zip(PROBES).map(|(value, x)| {
            let drop = top - value;
            // A density that does not fall is wide; where there is none the side is narrow.
            if drop > 0.0 { x / (2.0 * drop).sqrt() } else { f64::INFINITY }
        });
        widest.fold(0.0, f64::max).clamp(SIDES.0, SIDES.1)
    };
    let sides = log_density[1..].chunks_exact(2 * PROBES.len());
    sides.map(|both| (scale(&both[..PROBES.len()]), scale(&both[PROBES.len()..]))).collect()
}
