//! Models: likelihood families, priors, and the subposterior that a shard works with.

mod begun;
mod cases;
mod centred;
mod chunks;
mod common;
pub mod coordinates;
mod g_prior;
pub mod gaussian;
pub mod groups;
mod joint;
pub mod likelihood;
mod log_likelihood;
mod merge;
mod multinomial;
mod notation;
mod piece;
pub mod prior;
mod regression;
mod share;
pub mod subposterior;
pub mod unbounded;

pub use crate::kernel::Family;
pub use begun::Begun;
pub use centred::Centred;
pub(crate) use chunks::{chunk_rows, over_chunks};
pub use common::Common;
pub use coordinates::{Coordinates, Warped};
pub use g_prior::{GPrior, GSpread};
pub use gaussian::{AroundMeans, Gaussian};
pub use groups::Groups;
pub use joint::{Joint, Tie};
pub use likelihood::Likelihood;
use likelihood::chunk_values;
pub use log_likelihood::{Foreign, LogLikelihood};
pub(crate) use notation::unknown as unknown_prior;
pub(crate) use piece::{NO_OFFSET, observations, refuse_outcomes};
pub use prior::Prior;
pub use regression::Regression;
pub use share::Share;
pub use subposterior::Subposterior;

use crate::data::Effects;
use crate::math::fingerprint;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A parameter with its prior, which may hold it fixed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// R's name of the design column, or that of a parameter of the family's own such as `log_sd`.
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
    /// Of a regression one per column, in order, then the family's own parameter.
    pub parameters: Vec<Parameter>,
    /// Its likelihood.
    pub body: Body,
}

/// Whose likelihood a model has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Body {
    /// Ours.
    Regression(Regression),
    /// Somebody else's: parameters and priors are all that is known of it here.
    Foreign {
        /// The name by which shards know it.
        likelihood: String,
    },
}

impl Model {
    /// A model whose likelihood is somebody else's, known to shards by the model's name. Its parameters are on
    /// unconstrained scales, in the order in which the likelihood takes them.
    pub fn foreign(name: &str, parameters: &[(&str, Prior)]) -> Model {
        let parameter =
            |(name, prior): &(&str, Prior)| Parameter { name: name.to_string(), prior: *prior };
        Model {
            name: name.to_string(),
            parameters: parameters.iter().map(parameter).collect(),
            body: Body::Foreign { likelihood: name.to_string() },
        }
    }

    /// Its family and columns, unless the likelihood is somebody else's.
    pub fn regression(&self) -> Option<&Regression> {
        match &self.body {
            Body::Regression(regression) => Some(regression),
            Body::Foreign { .. } => None,
        }
    }

    /// Its family, if it is one of ours.
    pub fn family(&self) -> Option<Family> {
        self.regression().map(|r| r.family)
    }

    /// What its likelihood is called: by the family, or as shards know it.
    pub fn likelihood_name(&self) -> &str {
        match &self.body {
            Body::Regression(regression) => regression.family.name(),
            Body::Foreign { likelihood } => likelihood,
        }
    }

    /// What varies between groups, if anything does.
    pub fn effects(&self) -> Option<&Effects> {
        self.regression()?.design.effects.as_ref()
    }

    /// Whether it is Gaussian with nothing that varies between groups: then its rows are as good as their sums of
    /// squares.
    pub fn is_gaussian(&self) -> bool {
        self.family() == Some(Family::Gaussian) && self.effects().is_none()
    }

    /// Whether its outcome is a class (0 or 1).
    pub fn is_binary(&self) -> bool {
        self.family().is_some_and(Family::is_binary)
    }

    /// The coefficients, free or fixed: all parameters but the family's own.
    pub fn coefficients(&self) -> &[Parameter] {
        let columns = self.regression().map_or(self.parameters.len(), |r| r.active.len());
        &self.parameters[..columns.min(self.parameters.len())]
    }

    /// The family's own parameters.
    pub fn own_parameters(&self) -> &[Parameter] {
        &self.parameters[self.coefficients().len()..]
    }

    /// The first of the family's own parameters, if it has any.
    pub fn own_parameter(&self) -> Option<&Parameter> {
        self.own_parameters().first()
    }

    /// The number of its random streams: by name, so that it keeps them in any company.
    pub fn stream(&self) -> u64 {
        fingerprint(&self.name)
    }

    /// A number that differs between models with different likelihoods that have family and design in
    /// common: priors matter only in what they hold fixed.
    pub fn likelihood_hash(&self) -> u64 {
        let fixed: Vec<Option<f64>> = self.parameters.iter().map(|p| p.prior.fixed()).collect();
        let content = (self.regression().map(|r| &r.active), self.likelihood_name(), fixed);
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

    /// Whether every free coefficient's is, whatever that of the family's own parameter.
    pub fn has_normal_coefficients(&self) -> bool {
        let normal = |p: &Parameter| matches!(p.prior, Prior::Normal { .. } | Prior::Fixed { .. });
        self.coefficients().iter().all(normal)
    }

    /// Whether the posterior has one peak for sure: the likelihood has, on any line, and no prior has a tail
    /// that could give way to it.
    pub fn has_one_peak(&self) -> bool {
        let light = |p: &Parameter| matches!(p.prior, Prior::Normal { .. } | Prior::Laplace { .. });
        let held = self.own_parameters().iter().all(|p| p.prior.fixed().is_some());
        let concave = self.family().is_some_and(Family::is_log_concave);
        held && concave && self.effects().is_none() && self.free().all(light)
    }

    /// The number, among the free ones, of the parameter that says how large misfits may be, and a value of
    /// it under which a model that explains nothing is no great misfit.
    pub fn noise(&self) -> Option<(usize, f64)> {
        let (regression, own) = (self.regression()?, self.own_parameter()?);
        // Cutpoints and shares of zeros are no noise.
        let is_family_s = regression.family.has_own(&own.name);
        let own = Some(own).filter(|own| is_family_s && own.name.starts_with("log_"))?;
        let coefficients = self.coefficients().iter().filter(|p| p.prior.fixed().is_none());
        own.prior.fixed().is_none().then(|| (coefficients.count(), regression.noise()))
    }

    /// The number of free parameters d.
    pub fn dim(&self) -> usize {
        self.free().count()
    }

    /// The priors of the free parameters.
    pub fn free_priors(&self) -> Vec<Prior> {
        self.free().map(|p| p.prior).collect()
    }

    /// The same model with the priors of its coefficients this many times as wide, and that of the standard deviation of
    /// groups' effects, which are coefficients too. The intercept and the family's own parameter keep theirs: all models
    /// share them, and what the data say about a coefficient is measured against the coefficient's prior.
    pub fn with_prior_scale(&self, factor: f64) -> Model {
        let mut model = self.clone();
        let intercept = |j: usize| self.regression().is_some_and(|r| r.column(j).is_intercept());
        for j in (0..self.coefficients().len()).filter(|&j| !intercept(j)) {
            let prior = &mut model.parameters[j].prior;
            *prior = prior.scaled(factor);
        }
        if let (Some(regression), Some(effects)) = (self.regression(), self.effects()) {
            let first = self.coefficients().len() + regression.family_own_count();
            // Logarithms of standard deviations move; the correlation, behind them, stays.
            for parameter in model.parameters.iter_mut().skip(first).take(effects.count()) {
                parameter.prior = parameter.prior.in_units(libm::log(factor), 1.0);
            }
        }
        model
    }

    /// The same model with twice the nodes in its quadrature over effects of groups, if it has any.
    pub fn with_twice_the_nodes(&self) -> Model {
        let mut model = self.clone();
        if let Body::Regression(regression) = &mut model.body
            && let Some(effects) = &mut Arc::make_mut(&mut regression.design).effects
        {
            effects.nodes = 2 * effects.nodes();
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
        let Some(regression) = self.regression() else { return vec![0.0; self.dim()] };
        let (level, carriers) = (regression.level(), regression.intercept_columns());
        let columns = regression.active.len();
        let mut start = Vec::new();
        for (j, parameter) in self.parameters.iter().enumerate() {
            if parameter.prior.fixed().is_some() {
                continue;
            }
            start.push(match j < columns {
                false if j >= columns + regression.family_own_count() => {
                    regression.start_of_effects(j - columns - regression.family_own_count())
                }
                false => regression.start_of(&parameter.name),
                true if carriers.contains(&j) => level,
                true => 0.0,
            });
        }
        start
    }
}
