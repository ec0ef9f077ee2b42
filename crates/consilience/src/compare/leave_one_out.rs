//! Each shard's pull on the comparison.

use super::ModelResult;
use super::probability::{largest, posterior};
use crate::combine::LeftOut;
use crate::estimate::Estimate;
use serde::Serialize;

/// The comparison without one shard.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShardPull {
    /// The shard's number.
    pub shard: usize,
    /// Its rows, each counted with its weight.
    pub rows: f64,
    /// The model with the highest posterior probability without it.
    pub best: String,
    /// In the study's order.
    pub models: Vec<ModelPull>,
}

/// One model without one shard.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelPull {
    /// Its name.
    pub name: String,
    /// log p(y₋ₛ): its evidence without the shard.
    pub log_evidence: Estimate,
    /// log p(y_s | y₋ₛ): how well it predicts the shard from the others.
    pub log_predictive: Estimate,
    /// What the shard adds to the log Bayes factor against the best model (that of all the data).
    pub pull: Estimate,
    /// Its posterior probability without the shard.
    pub probability: f64,
    /// Effective draws behind these numbers; `None` where no draws were needed.
    pub ess: Option<f64>,
    /// Pareto k̂ of their weights.
    pub k_hat: Option<f64>,
    /// Whether their error bars mean anything.
    pub reliable: bool,
}

/// Per shard what leaving it out does; `best` is the best model's index.
pub(super) fn pulls(
    models: &[ModelResult],
    best: usize,
    left_out: &[Vec<LeftOut>],
) -> Vec<ShardPull> {
    let prior: Vec<f64> = models.iter().map(|m| m.prior_probability).collect();
    let shard = |(s, of_best): (usize, &LeftOut)| {
        let log_z: Vec<f64> = left_out.iter().map(|m| m[s].log_z.value).collect();
        let probabilities = posterior(&log_z, &prior);
        let score = |(z, p): (&f64, &f64)| z + libm::log(*p);
        let first = largest(log_z.iter().zip(&prior).map(score));
        let pull = |i: usize| {
            let LeftOut { log_z, predictive, ess, k_hat, reliable } = left_out[i][s].clone();
            let name = models[i].name.clone();
            // Different models have different draws: the errors are independent.
            let pull = if i == best { Estimate::ZERO } else { predictive - of_best.predictive };
            let (log_evidence, log_predictive) = (log_z, predictive);
            let probability = probabilities[i];
            ModelPull {
                name,
                log_evidence,
                log_predictive,
                pull,
                probability,
                ess,
                k_hat,
                reliable,
            }
        };
        ShardPull {
            shard: s,
            rows: models[best].shards[s].rows,
            best: models[first].name.clone(),
            models: (0..models.len()).map(pull).collect(),
        }
    };
    left_out[best].iter().enumerate().map(shard).collect()
}
