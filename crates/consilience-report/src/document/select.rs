//! What `consilience select` writes (docs/select.md).

use super::{Estimate, Partition, Traffic, Warning};
use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Select {
    pub method: String,
    pub family: String,
    pub outcome: String,
    pub always: String,
    pub space: f64,
    pub prior: String,
    pub heredity: String,
    pub inclusion: Vec<Inclusion>,
    pub models: Vec<Model>,
    pub outside: Estimate,
    pub unseen: Estimate,
    pub log_normaliser: Option<Estimate>,
    pub sizes: Vec<Estimate>,
    pub median_model: Vec<String>,
    pub best_model: Vec<String>,
    pub coefficients: Vec<Coefficient>,
    pub named: Vec<Named>,
    pub diagnostics: Diagnostics,
    pub warnings: Vec<Warning>,
    pub partition: Partition,
    pub traffic: Traffic,
    pub seconds: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Inclusion {
    pub term: String,
    pub probability: f64,
    pub se: Option<f64>,
    pub prior: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Model {
    pub terms: Vec<String>,
    pub probability: f64,
    pub se: Option<f64>,
    pub log_evidence: Option<f64>,
    pub log_evidence_se: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Coefficient {
    pub name: String,
    pub term: Option<String>,
    pub inclusion: f64,
    pub mean: f64,
    pub sd: f64,
    pub mean_if_in: Option<f64>,
    pub sd_if_in: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Named {
    pub terms: Vec<String>,
    pub log_evidence: Estimate,
    pub log_bayes_factor: Estimate,
    pub probability: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Diagnostics {
    pub models: f64,
    pub pairs: Option<u64>,
    pub ess: Option<f64>,
    pub k_hat: Option<f64>,
}

/// A model by its terms.
pub(crate) fn name(terms: &[String]) -> String {
    if terms.is_empty() { "(none of them)".into() } else { terms.join(" + ") }
}

impl Select {
    /// The terms, the likeliest first.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.inclusion.len()).collect();
        let key = |i: &usize| self.inclusion[*i].probability;
        order.sort_by(|a, b| key(b).total_cmp(&key(a)).then(a.cmp(b)));
        order
    }
}
