//! From evidences to a comparison: Bayes factors, posterior probabilities, and all that is reported.

use crate::combine::{CombineDiagnostics, Evidence, Setting};
use crate::engine::Traffic;
use crate::estimate::Estimate;
use crate::math::log_sum_exp;
use crate::model::{Family, Model};
use crate::question::Diagnostics;
use crate::{Level, Warning};
use serde::{Deserialize, Serialize};

/// The version of the JSON document that a [`Comparison`] becomes.
pub const VERSION: u32 = 1;

/// The result of a study. Serialised, it is the documented JSON document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// [`VERSION`].
    pub version: u32,
    /// In the study's order.
    pub models: Vec<ModelResult>,
    /// Warnings about the study as a whole.
    pub warnings: Vec<Warning>,
    /// How the data were split.
    pub partition: PartitionReport,
    /// Rounds of questions.
    pub rounds: u64,
    /// Bytes of all questions and answers.
    pub bytes_moved: u64,
    /// The same, each way.
    pub traffic: Traffic,
    /// How long it took; filled in by whoever has a clock.
    pub seconds: Option<f64>,
}

/// One model's result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelResult {
    /// The study's name for it.
    pub name: String,
    /// Its formula, as read.
    pub formula: String,
    /// Its likelihood.
    pub family: Family,
    /// log p(y).
    pub log_evidence: Estimate,
    /// log p(y) minus the best model's: at most 0.
    pub log_bayes_factor: Estimate,
    /// Posterior model probability.
    pub probability: f64,
    /// Prior model probability.
    pub prior_probability: f64,
    /// The pieces of the decomposition.
    pub parts: Parts,
    /// The combined posterior's moments, in the order of the design.
    pub parameters: Vec<ParameterResult>,
    /// How the combination went; `null` for `normal`.
    pub combination: Option<CombineDiagnostics>,
    /// Warnings about this model.
    pub warnings: Vec<Warning>,
    /// Shard by shard.
    pub shards: Vec<ShardResult>,
}

/// log p(y) = shards + overlap. What was not computed is `null`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parts {
    /// Σ log Z_s.
    pub shards: Option<Estimate>,
    /// log I.
    pub overlap: Option<Estimate>,
    /// Σ log α_s; `null` where it is not finite.
    pub log_alpha: Option<f64>,
}

/// A parameter's posterior.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ParameterResult {
    /// R's name of the design column, `log_sd` or `log_dispersion`.
    pub name: String,
    /// Posterior mean.
    pub mean: f64,
    /// Posterior standard deviation; 0 for a parameter that is held fixed.
    pub sd: f64,
    /// The prior, as the study writes it.
    pub prior: String,
}

/// One shard under one model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShardResult {
    /// Its number, counted from 0.
    pub index: usize,
    /// Its rows, each counted with its weight.
    pub rows: f64,
    /// Its share w_s of the prior.
    pub share: f64,
    /// log Z_s; `null` where it was not computed.
    pub log_evidence: Option<Estimate>,
    /// How log Z_s was computed.
    pub method: Option<String>,
    /// How that went.
    #[serde(flatten)]
    pub diagnostics: Diagnostics,
}

/// How the data were split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartitionReport {
    /// Number of shards.
    pub shards: usize,
    /// Rows used.
    pub rows: usize,
    /// Rows left out because a value was missing.
    pub dropped: usize,
    /// The method.
    pub by: String,
    /// The seed of the split.
    pub seed: u64,
    /// The name of the partition: evidences from different partitions are not comparable.
    pub hash: String,
}

impl Comparison {
    /// Compares models by their evidences.
    pub(crate) fn new(
        settings: &[Setting],
        formulas: &[String],
        prior_probabilities: &[f64],
        evidences: Vec<Evidence>,
        partition: PartitionReport,
        mut warnings: Vec<Warning>,
        traffic: Traffic,
    ) -> Comparison {
        let best = (0..evidences.len())
            .max_by(|&a, &b| evidences[a].log_z.value.total_cmp(&evidences[b].log_z.value))
            .expect("a study has at least one model");
        let best_z = evidences[best].log_z;
        let log_posterior: Vec<f64> = evidences
            .iter()
            .zip(prior_probabilities)
            .map(|(e, p)| e.log_z.value - best_z.value + libm::log(*p))
            .collect();
        let total = log_sum_exp(&log_posterior);
        let mut models = Vec::new();
        for (i, evidence) in evidences.into_iter().enumerate() {
            let bayes_factor = if i == best { Estimate::ZERO } else { evidence.log_z - best_z };
            if i != best {
                warnings.extend(too_close(&settings[i].model, &settings[best].model, bayes_factor));
            }
            models.push(ModelResult {
                name: settings[i].model.name.clone(),
                formula: formulas[i].clone(),
                family: settings[i].model.family,
                log_evidence: evidence.log_z,
                log_bayes_factor: bayes_factor,
                probability: libm::exp(log_posterior[i] - total),
                prior_probability: prior_probabilities[i],
                parts: Parts {
                    shards: evidence.shards,
                    overlap: evidence.overlap,
                    log_alpha: evidence.log_alpha,
                },
                parameters: parameters(&settings[i].model, &evidence),
                shards: shards(&settings[i], &evidence),
                combination: evidence.diagnostics,
                warnings: [settings[i].warnings.clone(), evidence.warnings].concat(),
            });
        }
        Comparison {
            version: VERSION,
            models,
            warnings,
            partition,
            rounds: traffic.rounds,
            bytes_moved: traffic.bytes_sent + traffic.bytes_received,
            traffic,
            seconds: None,
        }
    }

    /// All warnings: the study's, then each model's with its name.
    pub fn all_warnings(&self) -> impl Iterator<Item = (Option<&str>, &Warning)> {
        let own = self.warnings.iter().map(|w| (None, w));
        own.chain(
            self.models.iter().flat_map(|m| m.warnings.iter().map(|w| (Some(m.name.as_str()), w))),
        )
    }

    /// Whether nothing says that the result is not to be trusted.
    pub fn is_reliable(&self) -> bool {
        self.all_warnings().all(|(_, w)| w.level < Level::Unreliable)
    }
}

/// Cautions where the error bars leave open which of two models is ahead.
fn too_close(model: &Model, best: &Model, bayes_factor: Estimate) -> Option<Warning> {
    let se = bayes_factor.se?;
    (bayes_factor.value.abs() < 2.0 * se).then(|| {
        let message = format!(
            "`{}` and `{}` are closer than their error: log Bayes factor {:.3} ± {se:.3}",
            model.name, best.name, bayes_factor.value
        );
        let advice = "lower se_target and allow more draws, if it matters which one is ahead";
        Warning::new(Level::Caution, "too-close", message, advice).value(bayes_factor.value)
    })
}

fn parameters(model: &Model, evidence: &Evidence) -> Vec<ParameterResult> {
    let mut free = 0..;
    model
        .parameters
        .iter()
        .map(|parameter| {
            let (mean, sd) = match parameter.prior.fixed() {
                Some(value) => (value, 0.0),
                None => {
                    let j = free.next().expect("the naturals do not end");
                    (evidence.mean[j], evidence.covariance[(j, j)].sqrt())
                }
            };
            let (name, prior) = (parameter.name.clone(), parameter.prior.to_string());
            ParameterResult { name, mean, sd, prior }
        })
        .collect()
}

fn shards(setting: &Setting, evidence: &Evidence) -> Vec<ShardResult> {
    let summaries = evidence.summaries.as_deref();
    setting
        .surveys
        .iter()
        .zip(setting.shares())
        .enumerate()
        .map(|(index, (survey, share))| {
            let summary = summaries.map(|all| &all[index]);
            ShardResult {
                index,
                rows: survey.observations,
                share,
                log_evidence: summary.map(|s| s.log_z),
                method: summary.map(|s| s.method.clone()),
                diagnostics: summary.map(|s| s.diagnostics.clone()).unwrap_or_default(),
            }
        })
        .collect()
}
