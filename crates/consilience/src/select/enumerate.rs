//! Every model's evidence, one by one.

use super::report::SelectDiagnostics;
use super::{Found, MANY, evidences};
use crate::combine::Setting;
use crate::engine::Session;
use crate::estimate::Estimate;
use crate::math::log_sum_exp;
use crate::space::{Space, Subset};
use crate::study::Select;
use crate::{Error, Level, Result, Warning};
use libm::exp;
use std::sync::Arc;

/// The setting of one model, given that of the model with all terms.
pub(super) fn part(setting: &Setting, space: &Space, model: &Subset) -> Setting {
    let coordinates = space.coordinates(model);
    let name = space.name(model);
    let own = setting.model.part(&name, &coordinates);
    // Of columns a survey knows free ones alone, as a model's own would.
    let surveys = setting
        .surveys
        .iter()
        .map(|survey| {
            let mut survey = survey.clone();
            survey.nonzero =
                coordinates.iter().filter_map(|&j| survey.nonzero.get(j).copied()).collect();
            survey
        })
        .collect();
    Setting { model: Arc::new(own), surveys, warnings: Vec::new(), ..setting.clone() }
}

/// All models of a space.
pub(super) fn all(space: &Space) -> Vec<Subset> {
    let mut models = vec![Subset::EMPTY];
    for term in 0..space.terms.len() {
        for k in 0..models.len() {
            if space.welcomes(&models[k], term) {
                models.push(models[k].with(term));
            }
        }
    }
    models.sort_unstable();
    models
}

pub(super) fn find(
    session: &Session,
    setting: &Setting,
    space: &Space,
    select: &Select,
) -> Result<Found> {
    if space.models() > MANY {
        return Err(Error::input(format!(
            "there are {} models, too many to compute one by one (at most {MANY}); write method = \"search\" under [select], or name fewer candidates",
            space.models()
        )));
    }
    let models = all(space);
    let found = evidences(session, setting, space, &models)?;
    let logs: Vec<f64> = models
        .iter()
        .zip(&found)
        .map(|(model, e)| e.log_z.value + space.log_prior(model.len()))
        .collect();
    let log_total = log_sum_exp(&logs);
    let shares: Vec<f64> = logs.iter().map(|l| exp(l - log_total)).collect();
    let errors: Option<Vec<f64>> = found.iter().map(|e| e.log_z.se).collect();
    // Errors of evidences are independent: a sum of shares p moves by Σ (1{in} − p)·share·error.
    let probability = |has: &dyn Fn(&Subset) -> bool| {
        let inside = |k: usize| if has(&models[k]) { 1.0 } else { 0.0 };
        let value: f64 = (0..models.len()).map(|k| inside(k) * shares[k]).sum();
        let variance = |errors: &Vec<f64>| -> f64 {
            let part = |k: usize| (inside(k) - value) * shares[k] * errors[k];
            (0..models.len()).map(|k| part(k) * part(k)).sum()
        };
        Estimate { value, se: errors.as_ref().map(|e| variance(e).sqrt()) }
    };
    let mut order: Vec<usize> = (0..models.len()).collect();
    order.sort_by(|&a, &b| logs[b].total_cmp(&logs[a]).then(models[a].cmp(&models[b])));
    order.truncate(select.top);
    let listed: Vec<Subset> = order.iter().map(|&k| models[k]).collect();
    let mut moments = vec![(0.0, 0.0, 0.0); space.dim];
    for ((model, share), evidence) in models.iter().zip(&shares).zip(&found) {
        for (i, j) in space.coordinates(model).into_iter().enumerate() {
            let (mean, variance) = (evidence.mean[i], evidence.covariance[(i, i)]);
            let (w, first, second) = moments[j];
            moments[j] =
                (w + share, first + share * mean, second + share * (variance + mean * mean));
        }
    }
    let spread = |errors: &Vec<f64>| -> f64 {
        shares.iter().zip(errors).map(|(s, e)| s * e * s * e).sum::<f64>().sqrt()
    };
    let mut warnings: Vec<Warning> = Vec::new();
    for (k, evidence) in found.iter().enumerate() {
        // What is wrong with a model that nobody would choose does not matter to the choice.
        let matters = |w: &&Warning| w.level < Level::Unreliable || shares[k] > 1e-6;
        for warning in evidence.warnings.iter().filter(matters) {
            if warnings.iter().all(|known| known.code != warning.code) {
                let mut own = warning.clone();
                own.message = format!("model `{}`: {}", space.name(&models[k]), own.message);
                warnings.push(own);
            }
        }
    }
    Ok(Found {
        method: "enumerate",
        inclusion: (0..space.terms.len()).map(|t| probability(&|m| m.contains(t))).collect(),
        sizes: (0..=space.terms.len()).map(|s| probability(&|m| m.len() == s)).collect(),
        models: order
            .iter()
            .map(|&k| (models[k], probability(&|m| *m == models[k]), found[k].log_z))
            .collect(),
        outside: probability(&|m| !listed.contains(m)),
        unseen: Estimate::ZERO,
        log_normaliser: Estimate { value: log_total, se: errors.as_ref().map(spread) },
        moments,
        jumps: Vec::new(),
        diagnostics: SelectDiagnostics {
            models: models.len() as f64,
            ..SelectDiagnostics::default()
        },
        warnings,
    })
}
