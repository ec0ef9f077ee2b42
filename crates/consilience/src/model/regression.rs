//! A regression's family and columns.

use super::likelihood::link_of_mean;
use crate::data::{Recipe, RecipeColumn, Response, ResponseKind, Variable};
use crate::kernel::{Family, Kernel};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A family over some columns of a design, which all models of a study share that have its family,
/// outcome, offsets and weights: so a shard builds rows once for all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Regression {
    /// The family.
    pub family: Family,
    /// How a table becomes a design.
    pub design: Arc<Recipe>,
    /// The numbers of the coefficients' columns in it, in the model's order: its own columns, and of a multinomial model all
    /// of them for the second class, then for the third, and so on.
    pub active: Vec<u32>,
    /// Whose instructions evaluations use.
    pub kernel: Kernel,
}

impl Regression {
    /// The outcome.
    pub fn response(&self) -> &Response {
        &self.design.response
    }

    /// The predictors that a row has: one, or one for every class but the first.
    pub fn predictors(&self) -> usize {
        match (self.family, &self.response().kind) {
            (Family::Multinomial, ResponseKind::Levels { levels }) => levels.len().max(2) - 1,
            _ => 1,
        }
    }

    /// The columns of each of them.
    pub fn width(&self) -> usize {
        self.active.len() / self.predictors()
    }

    /// Whether every predictor has the same columns.
    pub(crate) fn is_even(&self) -> bool {
        let width = self.width();
        width * self.predictors() == self.active.len()
            && self.active.iter().enumerate().all(|(j, own)| *own == self.active[j % width])
    }

    /// One of its coefficients' columns, counted from 0 in the model's order.
    pub fn column(&self, number: usize) -> &RecipeColumn {
        &self.design.columns[self.active[number] as usize]
    }

    /// Its coefficients' columns, in the model's order.
    pub fn columns(&self) -> impl Iterator<Item = &RecipeColumn> {
        self.active.iter().map(|&j| &self.design.columns[j as usize])
    }

    /// The design that has its own columns, each once, and no others.
    pub fn recipe(&self) -> Recipe {
        self.design.part(&self.active[..self.width()])
    }

    /// The outcome's mean on the scale of the linear predictor.
    pub(crate) fn level(&self) -> f64 {
        let facts = self.response();
        // Two classes are those of a logistic model; of more, their mean says nothing.
        let two = self.family == Family::Multinomial
            && matches!(&facts.kind, ResponseKind::Levels { levels } if levels.len() == 2);
        let family = if two { Family::Logistic } else { self.family };
        link_of_mean(family, facts.mean, facts.weight)
    }

    /// Where a search for the family's own parameter starts.
    pub(super) fn start_of(&self, own: &str) -> f64 {
        let Response { mean, sd, .. } = *self.response();
        if self.family.is_ordinal() {
            return self.start_of_cut(own);
        }
        match own {
            // Logarithms of times vary by about their relative spread.
            "log_sd" if self.family == Family::LogNormal => 0.0,
            "log_sd" if sd > 0.0 => libm::log(sd),
            "log_df" => libm::log(10.0),
            "log_shape" if self.family == Family::Gamma && sd > 0.0 && mean > 0.0 => {
                2.0 * libm::log(mean / sd)
            }
            "log_precision" if sd > 0.0 && mean > 0.0 && mean < 1.0 => {
                libm::log((mean * (1.0 - mean) / (sd * sd) - 1.0).max(0.1))
            }
            "logit_zero" => -1.0,
            _ => 0.0,
        }
    }

    /// Cutpoints that are evenly apart, as far as the classes' mean and spread tell.
    fn start_of_cut(&self, own: &str) -> f64 {
        let Response { mean, sd, .. } = *self.response();
        let unit = if self.family == Family::CumulativeLogit { 1.8 } else { 1.0 };
        let gap = unit / if sd > 0.0 { sd } else { 1.0 };
        if own == "cut" { (0.5 - mean) * gap } else { libm::log(gap) }
    }

    /// Where a search for a parameter of the effects starts: they are less than the outcome's own spread.
    pub(super) fn start_of_effects(&self, number: usize) -> f64 {
        let effects = self.design.effects.as_ref();
        let unit = match (self.family, effects.map(|effects| effects.intercept)) {
            (Family::Gaussian, Some(true)) if number == 0 && self.response().sd > 0.0 => {
                libm::log(self.response().sd)
            }
            _ => 0.0,
        };
        if number == 2 { 0.0 } else { unit - 1.0 }
    }

    /// How many parameters a model has beside its coefficients: the family's, then those of effects.
    pub fn own_count(&self) -> usize {
        let effects = self.design.effects.as_ref();
        self.family_own_count() + effects.map_or(0, |effects| effects.parameters().len())
    }

    /// How many parameters of its own the family has.
    pub fn family_own_count(&self) -> usize {
        match (self.family.is_ordinal(), &self.response().kind) {
            (true, ResponseKind::Levels { levels }) => levels.len().max(2) - 1,
            _ => self.family.owns().len(),
        }
    }

    /// A value of the family's own parameter under which a model that explains nothing is no great misfit.
    pub(super) fn noise(&self) -> f64 {
        let facts = self.response();
        let spread = 0.5 * libm::log(facts.sd * facts.sd + facts.mean * facts.mean);
        let scale = matches!(self.family, Family::Gaussian | Family::StudentT);
        if scale && spread.is_finite() { spread } else { 0.0 }
    }

    /// The coefficients that carry the outcome's general level: the intercept, or the first factor that
    /// is coded by a dummy for every level; of every predictor.
    pub(crate) fn intercept_columns(&self) -> Vec<usize> {
        let (own, width) = (self.level_columns(), self.width());
        (0..self.predictors()).flat_map(|k| own.iter().map(move |j| k * width + j)).collect()
    }

    fn level_columns(&self) -> Vec<usize> {
        let columns: Vec<&RecipeColumn> = self.columns().take(self.width()).collect();
        if let Some(intercept) = columns.iter().position(|c| c.is_intercept()) {
            return vec![intercept];
        }
        for (v, variable) in self.design.variables.iter().enumerate() {
            let Variable::Factor { levels, .. } = variable else { continue };
            let alone = |j: &usize| matches!(columns[*j].parts.as_slice(), [part] if part.variable as usize == v);
            let dummies: Vec<usize> = (0..columns.len()).filter(alone).collect();
            if dummies.len() == levels.len() {
                return dummies;
            }
        }
        Vec::new()
    }
}
