//! What is asked of a shard, and what it answers: the only things that pass between the two.

use crate::data::{Fact, Recipe, Request};
use crate::estimate::chains::SampleDiagnostics;
use crate::estimate::{Batch, Estimate, Shape};
use crate::math::Matrix;
use crate::model::{Centred, Family, Model};
use crate::study::Local;
use crate::target::Expansion;
use crate::{Error, Result, Warning};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A question, the same for every shard. It holds all that a shard needs beside its own rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Question {
    /// Facts about columns, from which all shards' common schema is made.
    Describe {
        /// What is wanted.
        requests: Vec<Request>,
        /// The column of row weights.
        weights: Option<String>,
    },
    /// The sufficient statistics of Gaussian models.
    Statistics {
        /// The design that has the columns of all of them.
        recipe: Arc<Recipe>,
    },
    /// How a design looks on this shard.
    Survey {
        /// The family, which says what outcomes there can be.
        family: Family,
        /// The design that models share.
        design: Arc<Recipe>,
        /// Whether means and squared deviations of its columns are wanted: a prior is per standard deviation.
        units: bool,
    },
    /// The shard's own evidence and moments.
    Fit {
        /// The model.
        model: Arc<Model>,
        /// The shard's share of the prior.
        share: Share,
        /// How.
        order: FitOrder,
    },
    /// The shard's own evidence by Gibbs sampling, with conditionals of the parameters along the chain.
    Augment {
        /// The model.
        model: Arc<Model>,
        /// The shard's share of the prior.
        share: Share,
        /// How.
        order: FitOrder,
        /// How many conditionals.
        conditionals: usize,
    },
    /// The log density at a few points, to second order.
    Expand {
        /// The model.
        model: Arc<Model>,
        /// The shard's share of the prior.
        share: Share,
        /// One point per row.
        thetas: Arc<Matrix>,
    },
    /// The log density at many points.
    Weigh {
        /// The model.
        model: Arc<Model>,
        /// The shard's share of the prior.
        share: Share,
        /// One point per row.
        thetas: Arc<Matrix>,
    },
}

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

/// How the prior is shared out: a shard works out its own w_s.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Share {
    /// 1/S.
    Equal {
        /// S.
        shards: usize,
    },
    /// n_s/n.
    Rows {
        /// n, observations over all shards.
        total: f64,
    },
}

impl Share {
    /// w_s of a shard with this many observations.
    pub fn of(self, observations: f64) -> f64 {
        match self {
            Share::Equal { shards } => 1.0 / shards as f64,
            Share::Rows { total } => observations / total,
        }
    }
}

/// A shard's answer to the question of the same name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Answer {
    /// To Describe: one fact per request.
    Description(Vec<Fact>),
    /// To Statistics.
    Statistics(Centred),
    /// To Survey.
    Survey(Survey),
    /// To Fit.
    Summary(Box<Summary>),
    /// To Augment.
    Augmentation(Box<Augmentation>),
    /// To Expand: one for each point.
    Expansions(Vec<Expansion>),
    /// To Weigh: log f_s at each point.
    Weights(Vec<f64>),
}

/// How a design looks on one shard: that of several models, or the part that one of them has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// Observations: rows, each counted with its weight.
    pub observations: f64,
    /// Per column, the observations in which it is not 0; a model's part has that of free coefficients only.
    pub nonzero: Vec<f64>,
    /// Per column, its mean; empty where units are not wanted, as are the squares.
    pub means: Vec<f64>,
    /// Per column, the sum of squared distances from its mean.
    pub squares: Vec<f64>,
    /// The mean of the offsets; 0 if there are none.
    pub offset: f64,
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

impl Question {
    /// What questions can be called.
    pub const KINDS: [&'static str; 7] =
        ["describe", "statistics", "survey", "fit", "augment", "expand", "weigh"];

    /// What it is called: one of [`KINDS`](Self::KINDS).
    pub fn kind(&self) -> &'static str {
        match self {
            Question::Describe { .. } => "describe",
            Question::Statistics { .. } => "statistics",
            Question::Survey { .. } => "survey",
            Question::Fit { .. } => "fit",
            Question::Augment { .. } => "augment",
            Question::Expand { .. } => "expand",
            Question::Weigh { .. } => "weigh",
        }
    }

    /// The model it is about.
    pub fn model(&self) -> Option<&Arc<Model>> {
        match self {
            Question::Describe { .. } | Question::Statistics { .. } | Question::Survey { .. } => {
                None
            }
            Question::Fit { model, .. }
            | Question::Augment { model, .. }
            | Question::Expand { model, .. }
            | Question::Weigh { model, .. } => Some(model),
        }
    }
}

impl Answer {
    /// Whether this can be an answer to the question at all: the right kind and size, finite
    /// numbers, matrices that are what they must be. No answer is taken on trust, wherever it is from.
    pub fn check(&self, question: &Question) -> Result<()> {
        crate::trust::answer(self, question).map_err(|reason| {
            let message = format!("the answer to `{}` is not sound: {reason}", question.kind());
            match question.model() {
                Some(model) => Error::numeric(message).for_model(&model.name),
                None => Error::numeric(message),
            }
        })
    }
}

impl Summary {
    /// Whether it takes the subposterior as normal around its mode: Laplace's approximation.
    pub fn is_normal(&self) -> bool {
        self.effective.is_none() && self.mean == self.mode
    }
}
