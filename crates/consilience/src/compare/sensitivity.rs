//! How the comparison moves with the width of the coefficients' priors.

use super::probability::{largest, posterior};
use super::{Comparison, ModelResult};
use crate::Warning;
use crate::combine::Evidence;
use crate::estimate::Estimate;
use serde::Serialize;

/// The comparison under coefficient priors of another width.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScaledPriors {
    /// What the scale of every coefficient's prior is multiplied with; 1 is the study's own.
    pub scale: f64,
    /// The model with the highest posterior probability.
    pub best: String,
    /// Whether another model than at scale 1 has the highest posterior probability, by more than the errors.
    pub another_best: bool,
    /// Whether two models have changed places since scale 1, at both scales by more than the errors.
    pub reordered: bool,
    /// In the study's order.
    pub models: Vec<ScaledModel>,
}

/// One model under priors of another width.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScaledModel {
    /// Its name.
    pub name: String,
    /// log p(y).
    pub log_evidence: Estimate,
    /// log p(y) minus the best model's at this scale.
    pub log_bayes_factor: Estimate,
    /// Posterior model probability.
    pub probability: f64,
    /// What is to be said here and was not said at scale 1.
    pub warnings: Vec<Warning>,
}

/// The sweep: `scaled` has the models' evidences at each other scale, in ascending order of scales;
/// scale 1 comes from the comparison itself.
pub(crate) fn sweep(
    comparison: &Comparison,
    mut scaled: Vec<(f64, Vec<Evidence>)>,
) -> Vec<ScaledPriors> {
    let models = &comparison.models;
    let prior: Vec<f64> = models.iter().map(|m| m.prior_probability).collect();
    let mut scales: Vec<f64> = scaled.iter().map(|(scale, _)| *scale).chain([1.0]).collect();
    scales.sort_by(f64::total_cmp);
    let usual: Vec<Estimate> = models.iter().map(|m| m.log_evidence).collect();
    scales
        .into_iter()
        .map(|scale| {
            let evidences: Vec<(Estimate, Vec<Warning>)> =
                match scaled.iter().position(|(s, _)| *s == scale) {
                    Some(i) => {
                        let new = models.iter().zip(scaled.swap_remove(i).1);
                        new.map(|(m, e)| (e.log_z, news(scale, m, e.warnings))).collect()
                    }
                    None => models.iter().map(|m| (m.log_evidence, Vec::new())).collect(),
                };
            at_scale(scale, models, evidences, &prior, &usual)
        })
        .collect()
}

fn at_scale(
    scale: f64,
    models: &[ModelResult],
    evidences: Vec<(Estimate, Vec<Warning>)>,
    prior: &[f64],
    usual: &[Estimate],
) -> ScaledPriors {
    let now: Vec<Estimate> = evidences.iter().map(|(z, _)| *z).collect();
    let values: Vec<f64> = now.iter().map(|z| z.value).collect();
    let probabilities = posterior(&values, prior);
    let first = largest(values.iter().copied());
    let (usual_winner, winner) = (winner(usual, prior), winner(&now, prior));
    let swapped = |i: usize, j: usize| {
        let (before, after) = (gap(usual, prior, i, j), gap(&now, prior, i, j));
        before.signum() != after.signum() && before != 0.0 && after != 0.0
    };
    let another_best = swapped(usual_winner, winner);
    let reordered = another_best || (0..now.len()).any(|i| (0..i).any(|j| swapped(i, j)));
    let best = evidences[first].0;
    let models: Vec<ScaledModel> = models
        .iter()
        .zip(evidences)
        .zip(probabilities)
        .enumerate()
        .map(|(i, ((model, (log_evidence, warnings)), probability))| ScaledModel {
            name: model.name.clone(),
            log_evidence,
            log_bayes_factor: if i == first { Estimate::ZERO } else { log_evidence - best },
            probability,
            warnings,
        })
        .collect();
    ScaledPriors { scale, best: models[winner].name.clone(), another_best, reordered, models }
}

/// The index of the most probable model.
fn winner(log_z: &[Estimate], prior: &[f64]) -> usize {
    largest(log_z.iter().zip(prior).map(|(z, p)| z.value + libm::log(*p)))
}

/// How far one model is ahead of another, in log odds; 0 where that is within two standard errors. What has no
/// error bar is taken as it is.
fn gap(log_z: &[Estimate], prior: &[f64], i: usize, j: usize) -> f64 {
    let apart = log_z[i] - log_z[j];
    let odds = apart.value + libm::log(prior[i]) - libm::log(prior[j]);
    if odds.abs() > 2.0 * apart.se.unwrap_or(0.0) { odds } else { 0.0 }
}

/// The warnings that the study's own priors did not cause, with the scale that did.
fn news(scale: f64, model: &ModelResult, warnings: Vec<Warning>) -> Vec<Warning> {
    let known =
        |w: &Warning| model.warnings.iter().any(|k| (&k.code, k.shard) == (&w.code, w.shard));
    let mut news: Vec<Warning> = warnings.into_iter().filter(|w| !known(w)).collect();
    for warning in &mut news {
        warning.message = format!("with priors × {scale}: {}", warning.message);
    }
    news
}
