//! What `consilience compare` writes (docs/json.md).

use super::{Estimate, Partition, Traffic, Warning};
use crate::Error;
use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Compare {
    pub models: Vec<Model>,
    pub best: Best,
    pub bayes_factors: Option<Vec<Vec<Estimate>>>,
    pub averages: Averages,
    pub prior_sensitivity: Option<Vec<Scaled>>,
    pub leave_one_out: Option<Vec<Without>>,
    pub warnings: Vec<Warning>,
    pub partition: Partition,
    pub traffic: Traffic,
    pub seconds: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Best {
    pub name: String,
    pub certainty: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Model {
    pub name: String,
    pub formula: String,
    pub family: String,
    pub log_evidence: Estimate,
    pub log_bayes_factor: Estimate,
    pub strength: Option<String>,
    pub probability: f64,
    pub probability_interval: Option<[f64; 2]>,
    pub prior_probability: f64,
    pub parts: Parts,
    pub parameters: Vec<Parameter>,
    pub combination: Option<Combination>,
    pub warnings: Vec<Warning>,
    pub shards: Vec<Shard>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Parts {
    pub shards: Option<Estimate>,
    pub overlap: Option<Estimate>,
    pub log_alpha: Option<f64>,
    pub shape_error: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Parameter {
    pub name: String,
    pub mean: f64,
    pub sd: f64,
    pub low: f64,
    pub high: f64,
    pub prior: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Combination {
    pub method: String,
    pub draws: Option<u64>,
    pub ess: Option<f64>,
    pub k_hat: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Shard {
    pub rows: f64,
    pub log_evidence: Option<Estimate>,
    pub ess: Option<f64>,
    pub k_hat: Option<f64>,
    pub chains: Option<Chains>,
    pub agreement: Option<Agreement>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Chains {
    pub r_hat: Option<f64>,
    pub divergences: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Agreement {
    pub chi_square: f64,
    pub degrees_of_freedom: f64,
    pub p_value: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Averages {
    pub reason: Option<String>,
    pub parameters: Vec<Averaged>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Averaged {
    pub name: String,
    pub inclusion_probability: f64,
    pub included_mean: Option<f64>,
    pub included_sd: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Scaled {
    pub scale: f64,
    pub best: String,
    pub reordered: bool,
    pub models: Vec<ScaledModel>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ScaledModel {
    pub log_evidence: Estimate,
    pub probability: f64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Without {
    pub shard: u64,
    pub rows: f64,
    pub best: String,
    pub models: Vec<WithoutModel>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct WithoutModel {
    pub pull: Estimate,
    pub probability: f64,
    pub reliable: bool,
}

pub(super) fn read(text: &str) -> Result<Compare, Error> {
    let document: Compare = super::parse(text)?;
    if document.models.is_empty() {
        return Err(Error::Document("it is not such a document: `models`: there are none".into()));
    }
    Ok(document)
}

impl Compare {
    /// Models by their probability, the highest first.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.models.len()).collect();
        let key = |i: &usize| (self.models[*i].probability, self.models[*i].log_evidence.value);
        order.sort_by(|a, b| {
            let ((p, e), (q, f)) = (key(a), key(b));
            q.total_cmp(&p).then(f.total_cmp(&e)).then(a.cmp(b))
        });
        order
    }

    /// The model that the document calls the best; the likeliest where it names none of its models.
    pub fn best(&self) -> usize {
        let named = self.models.iter().position(|m| m.name == self.best.name);
        named.unwrap_or_else(|| self.order()[0])
    }

    /// The likeliest model beside the best.
    pub fn second(&self) -> Option<usize> {
        let best = self.best();
        self.order().into_iter().find(|i| *i != best)
    }

    /// All warnings, each with its model.
    pub fn all_warnings(&self) -> Vec<(Option<&str>, &Warning)> {
        let of_study = self.warnings.iter().map(|w| (None, w));
        let of_models =
            self.models.iter().flat_map(|m| m.warnings.iter().map(|w| (Some(m.name.as_str()), w)));
        of_study.chain(of_models).collect()
    }

    /// The greatest number of shards that a model tells about.
    pub fn shards(&self) -> usize {
        self.models.iter().map(|m| m.shards.len()).max().unwrap_or(0)
    }
}

impl Agreement {
    /// Whether the shard has too few rows for χ² to say anything.
    pub fn is_of_few_rows(&self) -> bool {
        self.p_value.is_none() && self.degrees_of_freedom > 0.0
    }

    /// How far χ² is from what chance gives, in standard deviations (Wilson and Hilferty's cube root). Of few rows χ² is not
    /// distributed as its name says, and is large by chance alone: there is no p-value then, and no surprise either.
    pub fn surprise(&self) -> Option<f64> {
        self.p_value?;
        let spread = 2.0 / (9.0 * self.degrees_of_freedom);
        let z =
            ((self.chi_square / self.degrees_of_freedom).cbrt() - (1.0 - spread)) / spread.sqrt();
        (self.degrees_of_freedom > 0.0 && self.chi_square >= 0.0 && z.is_finite()).then_some(z)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surprise_is_about_normal() {
        // χ² of 10 degrees of freedom: its 97.5% quantile is 20.483, its median 9.342.
        let of = |chi_square, degrees_of_freedom| {
            Agreement { chi_square, degrees_of_freedom, p_value: Some(0.5) }.surprise()
        };
        assert!((of(20.483, 10.0).unwrap() - 1.96).abs() < 0.02);
        assert!(of(9.342, 10.0).unwrap().abs() < 0.02);
        assert_eq!(of(1.0, 0.0), None);
        assert_eq!(of(-1.0, 3.0), None);
        let few = Agreement { chi_square: 900.0, degrees_of_freedom: 3.0, p_value: None };
        assert!(few.surprise().is_none() && few.is_of_few_rows());
    }
}
