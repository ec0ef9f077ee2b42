//! The prior table, and which of its priors a parameter gets.

use super::{ModelSpec, Study};
use crate::error::{clip, suggestion};
use crate::model::{Family, Prior};
use crate::{Error, Place, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What is said about priors: by a study for all its models, or by a model for itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PriorTable {
    /// For every coefficient.
    pub coefficients: Option<Prior>,
    /// For the intercept.
    pub intercept: Option<Prior>,
    /// For `log_sd` (gaussian).
    pub log_sd: Option<Prior>,
    /// For `log_dispersion` (negative-binomial).
    pub log_dispersion: Option<Prior>,
    /// For the parameter of this name, or for all parameters of the term with this label.
    pub parameters: BTreeMap<String, NamedPrior>,
}

/// A prior that is given for a name.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NamedPrior {
    /// The prior.
    pub prior: Prior,
    /// Its line in the study file.
    pub line: u64,
}

/// What a parameter is in its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The intercept.
    Intercept,
    /// The coefficient of a column of the design.
    Coefficient,
    /// The logarithm of a gaussian model's standard deviation.
    LogSd,
    /// The logarithm of a negative-binomial model's dispersion.
    LogDispersion,
}

/// A parameter, by all that priors can be given for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterName {
    /// Its own name: `carrierUA`.
    pub name: String,
    /// The label of its term: `carrier`; its own name if it has none.
    pub term: String,
    /// What it is.
    pub role: Role,
}

impl PriorTable {
    /// The prior for all parameters of this role, if the table gives one.
    pub fn general(&self, role: Role) -> Option<Prior> {
        match role {
            Role::Intercept => self.intercept,
            Role::Coefficient => self.coefficients,
            Role::LogSd => self.log_sd,
            Role::LogDispersion => self.log_dispersion,
        }
    }

    fn named(&self, name: &str) -> Option<Prior> {
        self.parameters.get(name).map(|named| named.prior)
    }

    /// The first name in the table (by line) that is neither a parameter's nor a term's.
    fn unmatched<'a>(
        &self,
        parameters: impl IntoIterator<Item = &'a ParameterName>,
    ) -> Option<(&str, u64, String)> {
        let known: BTreeSet<&str> =
            parameters.into_iter().flat_map(|p| [p.name.as_str(), p.term.as_str()]).collect();
        let stray = self.parameters.iter().filter(|(name, _)| !known.contains(name.as_str()));
        let (name, named) = stray.min_by_key(|(_, named)| named.line)?;
        Some((name, named.line, suggestion(&clip(name), known)))
    }
}

/// The prior of a parameter about which nothing is said.
pub const DEFAULT_PRIOR: Prior = Prior::Normal { mean: 0.0, sd: 1.0 };

/// The priors of a model's parameters, in their order.
///
/// The nearer word wins: the parameter's name before the term's label before the general prior,
/// and in each case the model's before the study's. What nobody speaks of is `normal(0, 1)`.
///
/// It is an error if the model gives a prior for a name it does not have, or for an intercept when
/// it has none.
pub fn resolve_priors(
    study: &Study,
    model: &ModelSpec,
    parameters: &[ParameterName],
) -> Result<Vec<Prior>> {
    if let Some((name, line, known)) = model.prior.unmatched(parameters) {
        return Err(Error::input_at(
            Place::file(&study.file).line(line),
            format!(
                "`model.prior.parameters` names `{}`, but model `{}` has no such parameter or term{known}",
                clip(name),
                clip(&model.name)
            ),
        ));
    }
    let has_intercept = parameters.iter().any(|p| p.role == Role::Intercept);
    if model.prior.intercept.is_some() && !has_intercept {
        return Err(Error::input_at(
            Place::file(&study.file).line(model.line),
            format!(
                "`model.prior.intercept` is given, but model `{}` has no intercept; leave it out, or add one to the formula",
                clip(&model.name)
            ),
        ));
    }
    let tables = [&model.prior, &study.prior];
    let prior = |parameter: &ParameterName| {
        let by_name = tables.iter().filter_map(|table| table.named(&parameter.name));
        let by_term = tables.iter().filter_map(|table| table.named(&parameter.term));
        let general = tables.iter().filter_map(|table| table.general(parameter.role));
        by_name.chain(by_term).chain(general).next().unwrap_or(DEFAULT_PRIOR)
    };
    Ok(parameters.iter().map(prior).collect())
}

/// Refuses a name under the study's `[prior.parameters]` that none of its models has: `parameters`
/// are those of all models, one after the other.
pub fn unmatched_study_priors<'a>(
    study: &Study,
    parameters: impl IntoIterator<Item = &'a ParameterName>,
) -> Result<()> {
    match study.prior.unmatched(parameters) {
        None => Ok(()),
        Some((name, line, known)) => Err(Error::input_at(
            Place::file(&study.file).line(line),
            format!(
                "`prior.parameters` names `{}`, but no model has such a parameter or term{known}",
                clip(name)
            ),
        )),
    }
}

/// Why a model of this family cannot have a prior under this key, if so.
pub(super) fn misplaced(family: Family, key: &str) -> Option<String> {
    if !matches!(key, "log_sd" | "log_dispersion") || family.extra() == Some(key) {
        return None;
    }
    let advice = match family.extra() {
        Some(own) => format!("; its own parameter is `{own}`"),
        None => "; leave it out, or move it to [prior] if other models need it".to_string(),
    };
    Some(format!("is given, but a {family} model has no {key}{advice}"))
}
