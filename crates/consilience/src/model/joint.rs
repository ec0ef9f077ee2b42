//! Priors that tie a parameter to others. The centre alone knows of them: a shard's answers hold whatever independent
//! prior the model has, and what is asked of shards does not depend on these.

use super::{GPrior, Model, Prior};

/// What a parameter's prior is tied to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Tie {
    /// Nothing: the model's own prior holds.
    #[default]
    None,
    /// σ: the model's prior is that of β/σ.
    Sigma,
    /// The other coefficients, by a prior of all of them. The model's own prior stands in where one is needed.
    Group,
    /// Nothing bounds it: the prior is flat, and not one that integrates to 1.
    Flat,
}

/// The ties of a model's parameters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Joint {
    /// One per parameter of the model, free or fixed; empty where no parameter has one.
    ties: Vec<Tie>,
    /// The prior of the tied coefficients, and what it is made wider by.
    group: Option<(GPrior, f64)>,
}

impl Joint {
    /// These ties, and this prior of the coefficients that are tied together.
    pub fn new(ties: Vec<Tie>, group: Option<GPrior>) -> Joint {
        if group.is_none() && ties.iter().all(|tie| *tie == Tie::None) {
            return Joint::default();
        }
        Joint { ties, group: group.map(|prior| (prior, 1.0)) }
    }

    /// Whether every parameter has a prior of its own.
    pub fn is_plain(&self) -> bool {
        self.ties.is_empty()
    }

    /// The tie of a parameter of the model, by its number among all.
    pub fn tie(&self, parameter: usize) -> Tie {
        self.ties.get(parameter).copied().unwrap_or_default()
    }

    /// Whether some parameter is tied so.
    pub fn has(&self, tie: Tie) -> bool {
        self.ties.contains(&tie)
    }

    /// The prior of the coefficients together, and what it is made wider by; also of a model that has none.
    pub fn group(&self) -> Option<(GPrior, f64)> {
        self.group
    }

    /// The ties of the free parameters, in their order.
    pub fn of_free(&self, model: &Model) -> Vec<Tie> {
        let all = model.parameters.iter().enumerate();
        all.filter(|(_, p)| p.prior.fixed().is_none()).map(|(j, _)| self.tie(j)).collect()
    }

    /// The same with the coefficients' prior this many times as wide.
    pub fn scaled(&self, factor: f64) -> Joint {
        let group = self.group.map(|(prior, scale)| (prior, factor * scale));
        Joint { group, ..self.clone() }
    }

    /// Those of the parameters that are kept.
    pub fn part(&self, kept: &[bool]) -> Joint {
        let ties = self.ties.iter().zip(kept).filter(|(_, kept)| **kept);
        Joint { ties: ties.map(|(tie, _)| *tie).collect(), ..self.clone() }
    }

    /// A parameter's prior as a study writes it.
    pub fn text(&self, parameter: usize, prior: Prior) -> String {
        match (self.tie(parameter), self.group) {
            (Tie::Sigma, _) => format!("{prior} * sigma"),
            (Tie::Group, Some((group, _))) => group.to_string(),
            (Tie::Flat, _) => "flat".to_string(),
            _ => prior.to_string(),
        }
    }
}
