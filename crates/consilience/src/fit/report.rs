//! What a shard is told to compute, and what it reports.

use crate::Warning;
use crate::estimate::chains::SampleDiagnostics;
use crate::estimate::importance::error_of_mean;
use crate::estimate::{Batch, Estimate, Shape};
use crate::math::Matrix;
use crate::study::Local;
use serde::{Deserialize, Serialize};

/// How a shard is to compute its own evidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FitOrder {
    /// By which method.
    pub method: Local,
    /// Monte Carlo draws, per chain where there are chains.
    pub draws: usize,
    /// Draws of a chain before those, on which it adapts.
    pub warmup: usize,
    /// Chains.
    pub chains: usize,
    /// The power of the likelihood: 1, but for a shard that is to stand for many like it.
    pub power: f64,
    /// Seed.
    pub seed: u64,
}

impl FitOrder {
    /// The most draws that it can take: of all chains, warm-up counted, where there may be chains.
    pub fn all_draws(&self) -> u64 {
        let chains = self.method.has_chains() || self.method == Local::Auto;
        let (warmup, chains) = if chains { (self.warmup, self.chains) } else { (0, 1) };
        self.draws.saturating_add(warmup).saturating_mul(chains) as u64
    }
}

/// What a fit on one shard returns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How it was computed.
    pub method: String,
    /// log Z_s.
    pub log_z: Estimate,
    /// Subposterior mean.
    pub mean: Vec<f64>,
    /// Subposterior covariance.
    pub covariance: Matrix,
    /// Subposterior mode.
    pub mode: Vec<f64>,
    /// −∇² log f_s at the mode.
    pub precision: Matrix,
    /// Effective draws behind the moments; `None`: analytic.
    pub effective: Option<f64>,
    /// log Z_s and moments of consecutive runs of draws: from them the combination learns the
    /// Monte Carlo error of whatever it computes. Empty for analytic moments.
    pub batches: Vec<Batch>,
    /// How far the normal with these moments is off; `None` where that was not looked at.
    pub shape: Option<Shape>,
    /// Diagnostics.
    pub diagnostics: Diagnostics,
    /// What the shard wants to say about them.
    pub warnings: Vec<Warning>,
}

/// What data augmentation on one shard returns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Augmentation {
    /// The shard's own evidence and moments.
    pub summary: Summary,
    /// θ given the latent variables is N(m, (LL')⁻¹): the means m, evenly spaced along the chain.
    pub means: Matrix,
    /// L, lower triangular, row after row without its zeros.
    pub factors: Matrix,
}

/// How a fit went. What does not apply is `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Diagnostics {
    /// Monte Carlo draws used.
    pub draws: Option<usize>,
    /// Effective draws: Kish's for weighted draws, the least bulk ESS for chains.
    pub ess: Option<f64>,
    /// Pareto k̂ of the weights.
    pub k_hat: Option<f64>,
    /// Newton steps to the mode.
    pub newton_steps: Option<usize>,
    /// The least of log p̃(θ|y_s) − log N(θ; μ_s, Σ_s) over the draws: −log B of the normal
    /// approximation's error bound is at most this.
    pub log_ratio_least: Option<f64>,
    /// The greatest of the same: log A is at least this.
    pub log_ratio_greatest: Option<f64>,
    /// How the chains ran; `None` where there are none.
    pub chains: Option<Box<SampleDiagnostics>>,
}

impl Summary {
    /// The part of the variance of log Z_s that batches of draws do not show: what the best draw of Laplace–Metropolis falls
    /// short of the mode by.
    pub(crate) fn variance_beyond_batches(&self) -> f64 {
        let Some(se) = self.log_z.se.filter(|_| self.method == Local::LaplaceMetropolis.name())
        else {
            return 0.0;
        };
        let each: Vec<f64> = self.batches.iter().map(|batch| batch.log_z).collect();
        let seen = error_of_mean(&each);
        (se * se - seen * seen).max(0.0)
    }

    /// Whether it takes the subposterior as normal around its mode: Laplace's approximation.
    pub fn is_normal(&self) -> bool {
        self.effective.is_none() && self.mean == self.mode
    }
}
