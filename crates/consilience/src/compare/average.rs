//! Coefficients averaged over models.

use super::ModelResult;
use crate::model::Family;
use serde::Serialize;

/// Coefficients over all models, each weighted with its posterior probability.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Averages {
    /// Why there are none, where there are none.
    pub reason: Option<String>,
    /// One per name, in the order in which the models bring them up.
    pub parameters: Vec<Average>,
}

/// One coefficient over all models. A model that lacks it counts with 0.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Average {
    /// Its name.
    pub name: String,
    /// The posterior probability of the models that have it.
    pub inclusion_probability: f64,
    /// Its mean over all models.
    pub mean: f64,
    /// Its standard deviation over all models.
    pub sd: f64,
    /// Its mean over the models that have it; `None` where their probability underflows to 0.
    pub included_mean: Option<f64>,
    /// Its standard deviation over the models that have it.
    pub included_sd: Option<f64>,
}

/// Averages over models, where their coefficients mean the same.
pub(super) fn averages(models: &[ModelResult]) -> Averages {
    let link_of = |m: &ModelResult| m.family.map_or("unknown", Family::link);
    let link = link_of(&models[0]);
    if let Some(other) = models.iter().find(|m| link_of(m) != link) {
        let reason = format!(
            "coefficients of `{}` ({link} link) and `{}` ({} link) do not measure the same thing",
            models[0].name,
            other.name,
            link_of(other)
        );
        return Averages { reason: Some(reason), parameters: Vec::new() };
    }
    let mut names: Vec<&str> = Vec::new();
    for parameter in models.iter().flat_map(|m| &m.parameters) {
        if !names.contains(&parameter.name.as_str()) {
            names.push(&parameter.name);
        }
    }
    // A model without log_sd or log_dispersion is not one in which that is 0.
    let has = |m: &ModelResult, name: &str| m.family.is_some_and(|family| family.has_own(name));
    let own = |name: &&str| models.iter().any(|m| has(m, name));
    let everywhere = |name: &&str| models.iter().all(|m| has(m, name));
    names.retain(|name| !own(name) || everywhere(name));
    let parameters = names.into_iter().map(|name| average(models, name)).collect();
    Averages { reason: None, parameters }
}

fn average(models: &[ModelResult], name: &str) -> Average {
    // Probability, mean and sd of every model; nothing where it is left out or held at 0.
    let parts: Vec<(f64, Option<(f64, f64)>)> = models
        .iter()
        .map(|model| {
            let found = model.parameters.iter().find(|p| p.name == name);
            let moments = found.map(|p| (p.mean, p.sd)).filter(|m| *m != (0.0, 0.0));
            (model.probability, moments)
        })
        .collect();
    let included: Vec<(f64, (f64, f64))> =
        parts.iter().filter_map(|(p, m)| m.map(|m| (*p, m))).collect();
    let everyone: Vec<(f64, (f64, f64))> =
        parts.iter().map(|(p, m)| (*p, m.unwrap_or((0.0, 0.0)))).collect();
    let (mean, sd) = mixture(&everyone).unwrap_or((0.0, 0.0));
    let (included_mean, included_sd) = mixture(&included).unzip();
    // Summed over as many as are fewer: what rounding leaves of 1 is no probability.
    let left_out: f64 = parts.iter().filter(|(_, m)| m.is_none()).map(|(p, _)| p).sum();
    let inside: f64 = included.iter().map(|(p, _)| p).sum();
    let inclusion_probability = if inside > 0.5 { 1.0 - left_out } else { inside };
    let name = name.to_string();
    Average { name, inclusion_probability, mean, sd, included_mean, included_sd }
}

/// Mean and standard deviation of a mixture; `None` where its weights are all 0.
fn mixture(parts: &[(f64, (f64, f64))]) -> Option<(f64, f64)> {
    let total: f64 = parts.iter().map(|(p, _)| p).sum();
    if total <= 0.0 {
        return None;
    }
    let mean = parts.iter().map(|(p, (m, _))| p / total * m).sum::<f64>();
    let variance: f64 =
        parts.iter().map(|(p, (m, sd))| p / total * (sd * sd + (m - mean).powi(2))).sum();
    Some((mean, variance.sqrt()))
}
