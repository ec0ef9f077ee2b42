//! Models: likelihood families, priors, and the subposterior that a shard works with.

mod centred;
mod chunks;
pub mod coordinates;
pub mod gaussian;
pub mod likelihood;
mod merge;
mod notation;
mod piece;
pub mod prior;
pub mod subposterior;
pub mod unbounded;

pub use centred::Centred;
pub(crate) use chunks::{chunk_rows, over_chunks};
pub use coordinates::{Coordinates, Warped};
pub use crate::kernel::Family;
pub use gaussian::Gaussian;
pub use likelihood::Likelihood;
pub use prior::Prior;
pub use subposterior::Subposterior;

use crate::data::{Recipe, Variable};
use crate::kernel::Kernel;
use crate::math::fingerprint;
use serde::{Deserialize, Serialize};

/// A parameter with its prior, which may hold it fixed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// R's name of the design column, `log_sd` or `log_dispersion`.
    pub name: String,
    /// Its prior.
    pub prior: Prior,
}

/// A model with nothing left open: levels, scales and priors are settled, so that every shard
/// builds the same columns. It travels inside questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Its name in the study.
    pub name: String,
    /// Its likelihood.
    pub family: Family,
    /// How a table becomes a design.
    pub recipe: Recipe,
    /// One per design column, in order, then the family's own parameter.
    pub parameters: Vec<Parameter>,
    /// Whose instructions evaluations use.
    pub kernel: Kernel,
}

impl Model {
    /// The number of its random streams: by name, so that it keeps them in any company.
    pub fn stream(&self) -> u64 {
        fingerprint(&self.name)
    }

    /// A number that differs between models with different likelihoods: priors matter only in what
    /// they hold fixed.
    pub fn likelihood_hash(&self) -> u64 {
        let fixed: Vec<Option<f64>> = self.parameters.iter().map(|p| p.prior.fixed()).collect();
        let content = (self.family, &self.recipe, fixed);
        let bytes = postcard::to_stdvec(&content).expect("a model can always be written");
        bytes.iter().fold(0, |hash: u64, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(23)
        })
    }

    /// The parameters that are not held fixed: the coordinates of θ.
    pub fn free(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|p| p.prior.fixed().is_none())
    }

    /// Whether the priors of all free parameters are normal.
    pub fn has_normal_priors(&self) -> bool {
        self.free().all(|p| matches!(p.prior, Prior::Normal { .. }))
    }

    /// Whether the posterior has one peak for sure: the likelihood has, on any line, and no prior has a tail
    /// that could give way to it.
    pub fn has_one_peak(&self) -> bool {
        let light = |p: &Parameter| matches!(p.prior, Prior::Normal { .. } | Prior::Laplace { .. });
        let own = self.parameters.get(self.recipe.columns.len());
        self.free().all(light) && own.is_none_or(|p| p.prior.fixed().is_some())
    }

    /// The number, among the free ones, of the parameter that says how large misfits may be, and a value of
    /// it under which a model that explains nothing is no great misfit.
    pub fn noise(&self) -> Option<(usize, f64)> {
        let own = self.parameters.get(self.recipe.columns.len())?;
        let facts = &self.recipe.response;
        let spread = 0.5 * libm::log(facts.sd * facts.sd + facts.mean * facts.mean);
        let value = match self.family {
            Family::Gaussian if spread.is_finite() => spread,
            _ => 0.0,
        };
        own.prior.fixed().is_none().then(|| (self.dim() - 1, value))
    }

    /// The number of free parameters d.
    pub fn dim(&self) -> usize {
        self.free().count()
    }

    /// The priors of the free parameters.
    pub fn free_priors(&self) -> Vec<Prior> {
        self.free().map(|p| p.prior).collect()
    }

    /// The same model with the priors of its coefficients this many times as wide. The intercept and
    /// the family's own parameter keep theirs: all models share them, and what the data say about
    /// a coefficient is measured against the coefficient's prior.
    pub fn with_prior_scale(&self, factor: f64) -> Model {
        let mut model = self.clone();
        for (parameter, column) in model.parameters.iter_mut().zip(&self.recipe.columns) {
            if !column.is_intercept() {
                parameter.prior = parameter.prior.scaled(factor);
            }
        }
        model
    }

    /// log ∫ p(θ)ʷ dθ; `None` where a prior's power has no finite integral.
    pub fn log_alpha(&self, w: f64) -> Option<f64> {
        self.free().map(|p| p.prior.log_alpha(w)).sum()
    }

    /// Where a search for the mode starts: the outcome's mean through the intercept (or through
    /// the dummies that stand in for it), its spread, and 0 for the rest.
    pub fn start(&self) -> Vec<f64> {
        let facts = &self.recipe.response;
        let level = likelihood::link_of_mean(self.family, facts.mean, facts.weight);
        let carriers = self.intercept_columns();
        let own = |name: &str| match name {
            "log_sd" if facts.sd > 0.0 => libm::log(facts.sd),
            _ => 0.0,
        };
        let mut start = Vec::new();
        for (j, parameter) in self.parameters.iter().enumerate() {
            if parameter.prior.fixed().is_some() {
                continue;
            }
            start.push(match self.recipe.columns.get(j) {
                None => own(&parameter.name),
                Some(_) if carriers.contains(&j) => level,
                Some(_) => 0.0,
            });
        }
        start
    }

    /// The columns that carry the outcome's general level: the intercept, or the first factor that
    /// is coded by a dummy for every level.
    pub(crate) fn intercept_columns(&self) -> Vec<usize> {
        let columns = &self.recipe.columns;
        if let Some(intercept) = columns.iter().position(|c| c.is_intercept()) {
            return vec![intercept];
        }
        for (v, variable) in self.recipe.variables.iter().enumerate() {
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
