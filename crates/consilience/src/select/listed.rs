//! From the log posteriors of single models to probabilities.

use super::Finding;
use super::report::SelectDiagnostics;
use crate::combine::Evidence;
use crate::estimate::Estimate;
use crate::math::log_sum_exp;
use crate::space::{Space, Subset};
use crate::{Level, Warning};
use libm::exp;

/// A model by itself.
pub(super) struct Single {
    pub model: Subset,
    /// log p(y|model)·p(model), or that up to what all models share.
    pub log_posterior: Estimate,
    pub evidence: Option<Evidence>,
}

/// The choice among these models, `top` of which are listed. Their errors are independent: a sum of shares p moves
/// by Σ (1{in} − p)·share·error.
pub(super) fn found(method: &'static str, space: &Space, all: &[Single], top: usize) -> Finding {
    let logs: Vec<f64> = all.iter().map(|s| s.log_posterior.value).collect();
    let log_total = log_sum_exp(&logs);
    let shares: Vec<f64> = logs.iter().map(|l| exp(l - log_total)).collect();
    let errors: Option<Vec<f64>> = all.iter().map(|s| s.log_posterior.se).collect();
    let probability = |has: &dyn Fn(&Subset) -> bool| {
        let inside = |k: usize| if has(&all[k].model) { 1.0 } else { 0.0 };
        let value: f64 = (0..all.len()).map(|k| inside(k) * shares[k]).sum();
        let variance = |errors: &Vec<f64>| -> f64 {
            let part = |k: usize| (inside(k) - value) * shares[k] * errors[k];
            (0..all.len()).map(|k| part(k) * part(k)).sum()
        };
        Estimate { value, se: errors.as_ref().map(|e| variance(e).sqrt()) }
    };
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&a, &b| logs[b].total_cmp(&logs[a]).then(all[a].model.cmp(&all[b].model)));
    order.truncate(top);
    let listed: Vec<Subset> = order.iter().map(|&k| all[k].model).collect();
    let spread = |errors: &Vec<f64>| -> f64 {
        shares.iter().zip(errors).map(|(s, e)| s * e * s * e).sum::<f64>().sqrt()
    };
    let evidences: Option<Vec<&Evidence>> = all.iter().map(|s| s.evidence.as_ref()).collect();
    let log_normaliser = Estimate { value: log_total, se: errors.as_ref().map(spread) };
    Finding {
        method,
        inclusion: (0..space.terms.len()).map(|t| probability(&|m| m.contains(t))).collect(),
        sizes: (0..=space.terms.len()).map(|s| probability(&|m| m.len() == s)).collect(),
        models: order
            .iter()
            .map(|&k| {
                let log_evidence = all[k].evidence.as_ref().map(|e| e.log_z);
                (all[k].model, probability(&|m| *m == all[k].model), log_evidence)
            })
            .collect(),
        outside: probability(&|m| !listed.contains(m)),
        unseen: Estimate::ZERO,
        log_normaliser: evidences.is_some().then_some(log_normaliser),
        moments: evidences.map(|all_of_them| moments(space, all, &shares, &all_of_them)),
        jumps: Vec::new(),
        diagnostics: SelectDiagnostics { models: all.len() as f64, ..SelectDiagnostics::default() },
        warnings: warnings(space, all, &shares),
    }
}

fn moments(
    space: &Space,
    all: &[Single],
    shares: &[f64],
    evidences: &[&Evidence],
) -> Vec<(f64, f64, f64)> {
    let mut moments = vec![(0.0, 0.0, 0.0); space.dim];
    for ((single, share), evidence) in all.iter().zip(shares).zip(evidences) {
        for (i, j) in space.coordinates(&single.model).into_iter().enumerate() {
            let (mean, variance) = (evidence.mean[i], evidence.covariance[(i, i)]);
            let (w, first, second) = moments[j];
            moments[j] =
                (w + share, first + share * mean, second + share * (variance + mean * mean));
        }
    }
    moments
}

/// What is said of single models: of each kind once, by the likeliest model that it is said of.
fn warnings(space: &Space, all: &[Single], shares: &[f64]) -> Vec<Warning> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]));
    let mut warnings: Vec<Warning> = Vec::new();
    for k in order {
        // What is wrong with a model that nobody would choose does not matter to the choice.
        let matters = |w: &&Warning| w.level < Level::Unreliable || shares[k] > 1e-6;
        let said = all[k].evidence.iter().flat_map(|e| &e.warnings).filter(matters);
        for warning in said {
            if warnings.iter().all(|known| known.code != warning.code) {
                let mut own = warning.clone();
                own.message = format!("model `{}`: {}", space.name(&all[k].model), own.message);
                warnings.push(own);
            }
        }
    }
    warnings
}
