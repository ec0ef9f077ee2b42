//! What a choice among many models comes to.

use crate::compare::{PartitionReport, Provenance};
use crate::engine::Traffic;
use crate::estimate::Estimate;
use crate::model::Family;
use crate::space::{Heredity, ModelPrior};
use crate::{Level, Warning};
use serde::Serialize;

/// The version of the JSON document that a [`Selection`] becomes.
pub const VERSION: u32 = 1;

/// The result of a study with `[select]`. Serialised, it is the documented JSON document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Selection {
    /// [`VERSION`].
    pub version: u32,
    /// How the models were looked through: `enumerate`, `search`, `statistics`, `reversible-jump` or `jump-shares`.
    pub method: &'static str,
    /// The likelihood family.
    pub family: Family,
    /// The outcome.
    pub outcome: String,
    /// The terms that every model has.
    pub always: String,
    /// How many models there are.
    pub space: f64,
    /// The prior over models.
    pub prior: ModelPrior,
    /// Which interactions models may have.
    pub heredity: Heredity,
    /// Per candidate, the probability that it belongs in the model.
    pub inclusion: Vec<Inclusion>,
    /// The likeliest models, the first first.
    pub models: Vec<ListedModel>,
    /// The probability of all models that are not listed.
    pub outside: Estimate,
    /// At most this share of the probability is in models that were not looked at, by the approximation that led
    /// the search.
    pub unseen: Estimate,
    /// log Σ p(y|m)·p(m) over all models; `null` where only their ratios are known.
    pub log_normaliser: Option<Estimate>,
    /// Per number of terms, the probability of all models that have so many.
    pub sizes: Vec<Estimate>,
    /// The terms with a probability over one half.
    pub median_model: Vec<String>,
    /// The terms of the likeliest model.
    pub best_model: Vec<String>,
    /// Coefficients averaged over models; empty where their means are not known.
    pub coefficients: Vec<Coefficient>,
    /// The models that were named, each against the first of them.
    pub named: Vec<NamedModel>,
    /// Bayes factors from the jumps themselves, where models were explored by them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jumps: Vec<JumpFactor>,
    /// How it went.
    pub diagnostics: SelectDiagnostics,
    /// What the user should know.
    pub warnings: Vec<Warning>,
    /// How the data were split.
    pub partition: PartitionReport,
    /// Rounds of questions, and bytes each way.
    pub traffic: Traffic,
    /// What made it; filled in by whoever knows the files.
    pub provenance: Option<Provenance>,
    /// How long it took; filled in by whoever has a clock.
    pub seconds: Option<f64>,
}

/// How likely a candidate belongs in the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inclusion {
    /// The candidate.
    pub term: String,
    /// The probability of all models that have it.
    pub probability: f64,
    /// Its standard error; `null` where there is none.
    pub se: Option<f64>,
    /// The same before the data; `null` where heredity has rules for too many models to sum that up.
    pub prior: Option<f64>,
}

/// One of the likeliest models.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListedModel {
    /// Its terms beside those that every model has.
    pub terms: Vec<String>,
    /// Its probability.
    pub probability: f64,
    /// The standard error of that; `null` where there is none.
    pub se: Option<f64>,
    /// log p(y|model); `null` where only ratios are known.
    pub log_evidence: Option<f64>,
    /// The standard error of that.
    pub log_evidence_se: Option<f64>,
}

/// A model that was named by the user.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NamedModel {
    /// Its terms beside those that every model has.
    pub terms: Vec<String>,
    /// log p(y|model).
    pub log_evidence: Estimate,
    /// log p(y|model) less that of the first model named.
    pub log_bayes_factor: Estimate,
    /// Its probability; `null` where evidences are not known.
    pub probability: Option<f64>,
}

/// A log Bayes factor of two models from reversible jumps between them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JumpFactor {
    /// The terms of the one model.
    pub first: Vec<String>,
    /// The terms of the other.
    pub second: Vec<String>,
    /// By how often the chains were in each, where that is what counts.
    pub visits: Option<Estimate>,
    /// By the probabilities with which jumps between them are accepted.
    pub acceptance: Estimate,
    /// The same as an iterated bridge.
    pub bridge: Estimate,
}

/// A coefficient, averaged over all models: 0 in those that do not have it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Coefficient {
    /// R's name of the column.
    pub name: String,
    /// The candidate that it belongs to; `null` where every model has it.
    pub term: Option<String>,
    /// The probability that it is not 0.
    pub inclusion: f64,
    /// Its mean over all models.
    pub mean: f64,
    /// Its standard deviation over all models.
    pub sd: f64,
    /// Its mean over the models that have it; `null` where none was met.
    pub mean_if_in: Option<f64>,
    /// Its standard deviation over the models that have it.
    pub sd_if_in: Option<f64>,
}

/// How the search went.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SelectDiagnostics {
    /// How many models were summed up at the centre, or computed one by one.
    pub models: f64,
    /// Pairs of draws of model and coefficients.
    pub pairs: Option<usize>,
    /// How many independent pairs from the posterior they are worth.
    pub ess: Option<f64>,
    /// The tail shape of the weights.
    pub k_hat: Option<f64>,
    /// How often the centre was moved.
    pub recentred: Option<usize>,
    /// Places at which the likelihood was expanded for the proposal.
    pub centres: Option<usize>,
    /// Values of log σ at which all models were summed up.
    pub nodes: Option<usize>,
}

impl Selection {
    /// Whether nothing says that it is not to be trusted.
    pub fn is_reliable(&self) -> bool {
        self.warnings.iter().all(|w| w.level < Level::Unreliable)
    }
}
