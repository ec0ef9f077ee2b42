//! The prior table, and which of its priors a parameter gets.

use super::{ModelSpec, Study, ties};
use crate::data::level::same;
use crate::error::{clip, nearest, suggestion};
use crate::model::{GPrior, Prior, Tie, unknown_prior};
use crate::{Error, Place, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A prior as a study writes it: in the parameter's own units, or per standard deviation of its
/// column and of the outcome. The latter become the former once the data are known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PriorSpec {
    /// The prior.
    pub prior: Prior,
    /// Whether it is per standard deviation.
    pub per_sd: bool,
    /// What it is tied to. Of a prior for all coefficients together, and of a flat one, `prior` and `per_sd` are
    /// those that stand in for it where a proper prior of single parameters is needed.
    pub tie: Tie,
    /// The prior of all coefficients together, if it is one.
    pub group: Option<GPrior>,
}

impl From<Prior> for PriorSpec {
    fn from(prior: Prior) -> PriorSpec {
        PriorSpec { prior, per_sd: false, tie: Tie::None, group: None }
    }
}

impl PriorSpec {
    /// A prior per standard deviation.
    pub fn per_sd(prior: Prior) -> PriorSpec {
        PriorSpec { per_sd: true, ..prior.into() }
    }

    /// Flat on the whole line.
    pub fn flat(role: Role) -> PriorSpec {
        PriorSpec { tie: Tie::Flat, ..role.default_prior() }
    }

    /// Of all coefficients together.
    pub fn group(prior: GPrior) -> PriorSpec {
        let stand_in = Role::Coefficient.default_prior();
        PriorSpec { tie: Tie::Group, group: Some(prior), ..stand_in }
    }
}

/// Reads a prior such as `normal(0, 1)`, with or without `per sd` behind it.
impl std::str::FromStr for PriorSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<PriorSpec> {
        if text.trim().trim_end_matches("()").eq_ignore_ascii_case("flat") {
            return Ok(PriorSpec::flat(Role::Intercept));
        }
        if GPrior::is_meant(text) {
            return group_of(text);
        }
        // Those that are no prior of one parameter are named, too.
        if let Some(error) = unknown_prior(text, &[&GPrior::NAMES[..], &["flat"]].concat()) {
            return Err(error);
        }
        let Some((head, tail)) = text.rsplit_once(')') else {
            return text.parse().map(|prior: Prior| prior.into());
        };
        let prior: Prior = text[..=head.len()].parse()?;
        let spaced = tail.replace('*', " * ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let per_sd = PriorSpec::per_sd(prior);
        match (words.as_slice(), prior) {
            ([], _) => Ok(prior.into()),
            (
                ["per", "sd"]
                | ["*", "sigma"]
                | ["*", "sigma", "per", "sd"]
                | ["per", "sd", "*", "sigma"],
                Prior::Fixed { .. },
            ) => Err(Error::input(format!(
                "`{prior} {}`: a value that is held fixed is in the parameter's own units; write {prior}",
                words.join(" ")
            ))),
            (["per", "sd"], _) => Ok(per_sd),
            (["*", "sigma"], _) => in_sigma(text, prior.into()),
            (["*", "sigma", "per", "sd"] | ["per", "sd", "*", "sigma"], _) => {
                in_sigma(text, per_sd)
            }
            _ => Err(Error::input(format!(
                "`{}` has `{}` behind the prior, where nothing but `per sd` and `* sigma` can stand; write {prior}, or {prior} per sd",
                clip(text),
                clip(tail.trim())
            ))),
        }
    }
}

/// A prior of all coefficients together.
fn group_of(text: &str) -> Result<PriorSpec> {
    let text = text.trim();
    let end = match (text.rfind(')'), text.find(char::is_whitespace)) {
        (Some(at), _) => at + 1,
        (None, Some(at)) if !text.contains('(') => at,
        _ => text.len(),
    };
    let (own, tail) = text.split_at(end);
    let prior: GPrior = own.parse()?;
    if tail.trim().is_empty() {
        return Ok(PriorSpec::group(prior));
    }
    Err(Error::input(format!(
        "`{}` has `{}` behind the prior, which is in units of sigma and of the columns already; write {prior}",
        clip(text),
        clip(tail.trim())
    )))
}

/// A prior in units of σ. Normal ones around 0 are as good as further rows, and integrate out with them.
fn in_sigma(text: &str, spec: PriorSpec) -> Result<PriorSpec> {
    match spec.prior {
        Prior::Normal { mean: 0.0, .. } => Ok(PriorSpec { tie: Tie::Sigma, ..spec }),
        _ => Err(Error::input(format!(
            "`{}`: only a normal prior around 0 can be multiplied with sigma; write one as in normal(0, 1) * sigma, or jzs(r), which is a Cauchy prior in units of sigma",
            clip(text)
        ))),
    }
}

/// As the study file writes it.
impl std::fmt::Display for PriorSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let per_sd = if self.per_sd { " per sd" } else { "" };
        match (self.tie, self.group) {
            (Tie::Flat, _) => write!(f, "flat"),
            (Tie::Group, Some(group)) => write!(f, "{group}"),
            (Tie::Sigma, _) => write!(f, "{} * sigma{per_sd}", self.prior),
            _ => write!(f, "{}{per_sd}", self.prior),
        }
    }
}

/// What is said about priors: by a study for all its models, or by a model for itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PriorTable {
    /// For every parameter of which nothing else is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<PriorSpec>,
    /// For every coefficient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coefficients: Option<PriorSpec>,
    /// For the intercept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intercept: Option<PriorSpec>,
    /// For `log_sd` (gaussian).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_sd: Option<PriorSpec>,
    /// For `log_dispersion` (negative-binomial).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_dispersion: Option<PriorSpec>,
    /// For `log_df` (student-t).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_df: Option<PriorSpec>,
    /// For `log_shape` (gamma, weibull).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_shape: Option<PriorSpec>,
    /// For `log_precision` (beta).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_precision: Option<PriorSpec>,
    /// For `logit_zero` (zero-inflated-poisson).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logit_zero: Option<PriorSpec>,
    /// For the lowest cutpoint (cumulative-logit and cumulative-probit).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<PriorSpec>,
    /// For the logarithms of the gaps between cutpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_gap: Option<PriorSpec>,
    /// For the parameter of this name, or for all parameters of the term with this label.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, PriorSpec>,
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
    /// The logarithm of the degrees of freedom of Student's t.
    LogDf,
    /// The logarithm of a gamma or Weibull model's shape.
    LogShape,
    /// The logarithm of a beta model's precision.
    LogPrecision,
    /// The log odds of a zero that is no count.
    LogitZero,
    /// The lowest cutpoint between ordered classes.
    Cut,
    /// The logarithm of the gap between a cutpoint and the one below.
    LogGap,
    /// The logarithm of the standard deviation of groups' intercepts.
    EffectLogSd,
    /// The same of groups' slopes.
    EffectLogSdSlope,
    /// The inverse hyperbolic tangent of the correlation between them.
    EffectCorrelation,
}

/// A parameter, by all that priors can be given for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterName {
    /// Its own name: `carrierUA`.
    pub name: String,
    /// The name of its column, which the coefficients of several classes share; its own name if it has none.
    pub column: String,
    /// The label of its term: `carrier`; its own name if it has none.
    pub term: String,
    /// What it is.
    pub role: Role,
}

impl ParameterName {
    /// A parameter that has one column, whose name it goes by, or none.
    pub fn new(name: &str, term: &str, role: Role) -> ParameterName {
        ParameterName { name: name.into(), column: name.into(), term: term.into(), role }
    }

    /// The names that a prior may be given for, the nearest first.
    fn all(&self) -> [&str; 3] {
        [&self.name, &self.column, &self.term]
    }
}

impl PriorTable {
    /// The prior for all parameters of this role, if the table gives one.
    pub fn general(&self, role: Role) -> Option<PriorSpec> {
        match role {
            Role::Intercept => self.intercept,
            Role::Coefficient => self.coefficients,
            Role::LogSd => self.log_sd,
            Role::LogDispersion => self.log_dispersion,
            Role::LogDf => self.log_df,
            Role::LogShape => self.log_shape,
            Role::LogPrecision => self.log_precision,
            Role::LogitZero => self.logit_zero,
            Role::Cut => self.cut,
            Role::LogGap => self.log_gap,
            Role::EffectLogSd | Role::EffectLogSdSlope | Role::EffectCorrelation => None,
        }
    }

    /// The prior for this name, if the table gives one. Names hold levels, which may be spelled in two ways.
    fn named(&self, name: &str) -> Option<PriorSpec> {
        let other = || self.parameters.iter().find(|(own, _)| same(own, name)).map(|(_, p)| p);
        self.parameters.get(name).or_else(other).copied()
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == PriorTable::default()
    }

    /// A name in the table that is neither a parameter's nor a term's, with what it may have been meant
    /// to be: one that looks like a slip before others.
    fn unmatched<'a>(
        &self,
        parameters: impl IntoIterator<Item = &'a ParameterName>,
    ) -> Option<(&str, String)> {
        let known: BTreeSet<&str> = parameters.into_iter().flat_map(ParameterName::all).collect();
        let is_known = |name: &str| known.contains(name) || known.iter().any(|k| same(k, name));
        let strays = self.parameters.keys().filter(|name| !is_known(name));
        let far = |name: &&String| nearest(&clip(name), known.iter().copied()).is_none();
        let name = strays.min_by_key(far)?;
        Some((name, suggestion(&clip(name), known)))
    }
}

impl Role {
    /// The prior of such a parameter about which nobody says anything. The units of columns and
    /// outcome make no difference to it.
    pub fn default_prior(self) -> PriorSpec {
        let normal = |sd: f64| Prior::Normal { mean: 0.0, sd };
        match self {
            Role::Intercept | Role::Coefficient => PriorSpec::per_sd(normal(2.5)),
            Role::LogSd => PriorSpec::per_sd(normal(1.0)),
            Role::LogDispersion | Role::LogGap => normal(1.0).into(),
            Role::LogDf => Prior::Normal { mean: 2.5, sd: 1.0 }.into(),
            Role::LogShape | Role::LogitZero => normal(1.5).into(),
            Role::LogPrecision => Prior::Normal { mean: 2.0, sd: 1.5 }.into(),
            Role::Cut => PriorSpec::per_sd(normal(2.5)),
            // Groups differ by a third of a unit, within a factor of 7 either way.
            Role::EffectLogSd | Role::EffectLogSdSlope => {
                PriorSpec::per_sd(Prior::Normal { mean: -1.0, sd: 1.0 })
            }
            // About as flat in the correlation as LKJ(2).
            Role::EffectCorrelation => normal(0.6).into(),
        }
    }

    /// What one of a family's own parameters is, by its name.
    pub fn of_own(name: &str) -> Role {
        match name {
            "log_sd" => Role::LogSd,
            "log_df" => Role::LogDf,
            "log_shape" => Role::LogShape,
            "log_precision" => Role::LogPrecision,
            "logit_zero" => Role::LogitZero,
            "cut" => Role::Cut,
            "log_dispersion" => Role::LogDispersion,
            _ => Role::LogGap,
        }
    }
}

/// The priors of a model's parameters, in their order.
///
/// The nearer word wins: the parameter's name before its column's before the term's label before the general prior before
/// the default one, and in each case the model's before the study's. What nobody speaks of has its
/// [role's](Role::default_prior).
///
/// It is an error if the model gives a prior for a name it does not have, or for an intercept when
/// it has none.
pub fn resolve_priors(
    study: &Study,
    model: &ModelSpec,
    parameters: &[ParameterName],
) -> Result<Vec<PriorSpec>> {
    let key = study.key_of(model);
    if let Some((name, known)) = model.prior.unmatched(parameters) {
        return Err(Error::input_at(
            Place::key(format!("{key}.prior.parameters.{name}")),
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
            Place::key(key),
            format!(
                "`model.prior.intercept` is given, but model `{}` has no intercept; leave it out, or add one to the formula",
                clip(&model.name)
            ),
        ));
    }
    let tables = [&model.prior, &study.prior];
    let prior = |parameter: &ParameterName| {
        let by_name = tables.iter().filter_map(|table| table.named(&parameter.name));
        let by_column = tables.iter().filter_map(|table| table.named(&parameter.column));
        let by_term = tables.iter().filter_map(|table| table.named(&parameter.term));
        let general = tables.iter().filter_map(|table| table.general(parameter.role));
        let default = tables.iter().filter_map(|table| table.default);
        by_name.chain(by_column).chain(by_term).chain(general).chain(default).next()
    };
    ties::tied(study, model, parameters, parameters.iter().map(prior).collect())
}

/// Refuses a name under the study's `[prior.parameters]` that none of its models has: `parameters`
/// are those of all models, one after the other.
pub fn unmatched_study_priors<'a>(
    study: &Study,
    parameters: impl IntoIterator<Item = &'a ParameterName> + Clone,
) -> Result<()> {
    match study.prior.unmatched(parameters.clone()) {
        None => ties::without_coefficients(study, parameters.into_iter()),
        Some((name, known)) => Err(Error::input_at(
            Place::key(format!("prior.parameters.{name}")),
            format!(
                "`prior.parameters` names `{}`, but no model has such a parameter or term{known}",
                clip(name)
            ),
        )),
    }
}
