//! `[select]`: all models that take in some of the candidate terms.

use super::names::SelectBy;
use super::{ModelSpec, Study};
use crate::model::Family;
use crate::space::{Heredity, ModelPrior};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What stands under `[select]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Select {
    /// The left side of all formulas.
    pub outcome: String,
    /// The likelihood family.
    #[serde(deserialize_with = "super::synonyms::family")]
    pub family: Family,
    /// The terms that every model has, as in a formula.
    #[serde(default = "intercept")]
    pub always: String,
    /// The terms that a model may have, as in a formula.
    pub candidates: String,
    /// Which interactions a model may have.
    #[serde(default)]
    pub heredity: Heredity,
    /// The prior over models.
    #[serde(default)]
    pub prior: ModelPrior,
    /// How the models are looked through.
    #[serde(default)]
    pub method: SelectBy,
    /// How many models are listed.
    #[serde(default = "top")]
    pub top: usize,
    /// The standard error of an inclusion probability to aim at.
    #[serde(default = "se_target")]
    pub se_target: f64,
}

fn intercept() -> String {
    "1".to_string()
}

fn top() -> usize {
    20
}

fn se_target() -> f64 {
    0.005
}

impl Select {
    /// A choice among these terms, everything else by default.
    pub fn new(
        outcome: impl Into<String>,
        candidates: impl Into<String>,
        family: Family,
    ) -> Select {
        Select {
            outcome: outcome.into(),
            family,
            always: intercept(),
            candidates: candidates.into(),
            heredity: Heredity::default(),
            prior: ModelPrior::default(),
            method: SelectBy::default(),
            top: top(),
            se_target: se_target(),
        }
    }

    /// The model that has all terms.
    pub(crate) fn full(&self) -> ModelSpec {
        let Select { outcome, always, candidates, .. } = self;
        let formula = format!("{outcome} ~ ({always}) + ({candidates})");
        ModelSpec::new(formula, self.family).named("all candidates")
    }

    /// The model that has only what all have.
    pub(crate) fn least(&self) -> ModelSpec {
        ModelSpec::new(format!("{} ~ {}", self.outcome, self.always), self.family)
    }

    /// The candidates as the right side of a formula.
    pub(crate) fn choice(&self) -> ModelSpec {
        ModelSpec::new(format!("{} ~ {}", self.outcome, self.candidates), self.family)
    }
}

impl Study {
    /// Chooses among all models that take in some of the candidate terms.
    pub fn select(mut self, select: Select) -> Study {
        self.select = Some(select);
        self
    }

    /// The models that are settled with the shards: those of the study, or the one that has all candidates.
    pub fn specs(&self) -> Cow<'_, [ModelSpec]> {
        match &self.select {
            Some(select) => Cow::Owned(vec![select.full()]),
            None => Cow::Borrowed(&self.models),
        }
    }
}
