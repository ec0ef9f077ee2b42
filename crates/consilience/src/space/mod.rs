//! Model spaces: all models that take in some of the candidate terms, and how likely each is before the data.
//!
//! Nothing here knows of rows. A [`Quadratic`] stands for the likelihood of every model at once; what follows
//! from it is computed at the centre.

mod bound;
mod check;
mod draw;
mod gibbs;
mod leaves;
mod prior;
mod reduced;
mod subset;
mod sums;
mod sweep;
mod tree;

pub use draw::draw;
pub use gibbs::{ModelDraws, gibbs};
pub use prior::ModelPrior;
pub use subset::{MOST_TERMS, Subset};
pub use sums::{Sums, Walk, sum};

use crate::math::{Cholesky, LOG_2PI, Matrix, log_sum_exp};
use crate::target::Expansion;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Which interactions a model may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Heredity {
    /// Those of which it has all main effects.
    #[default]
    Strong,
    /// Those of which it has a main effect.
    Weak,
    /// All.
    None,
}

/// A term that a model may take in or leave out, with all its columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// As it is written in formulas: `g`, `x1:x2`.
    pub label: String,
    /// The numbers of its coefficients among the free parameters of the model with all terms: at least one, in
    /// order.
    pub columns: Vec<usize>,
    /// The candidates, by number, that heredity asks for: all of them, or one. They stand before it. Terms that
    /// are always in do not count.
    pub parents: Vec<usize>,
}

/// The models that take in some of the candidate terms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Space {
    /// The candidates.
    pub terms: Vec<Candidate>,
    /// What parents mean.
    pub heredity: Heredity,
    /// How many free parameters the model with all terms has: those that no candidate owns are always in.
    pub dim: usize,
    /// Per number of terms, the logarithm of the prior probability of each model that has so many.
    log_prior: Vec<f64>,
    /// Per number of terms, how many models have so many.
    counts: Vec<f64>,
}

impl Space {
    /// The space of these candidates; heredity rules models out, and the prior is that of the others.
    pub fn new(
        terms: Vec<Candidate>,
        heredity: Heredity,
        dim: usize,
        prior: &ModelPrior,
    ) -> Result<Space> {
        if terms.len() > MOST_TERMS {
            let message =
                format!("there are {} candidates, and {MOST_TERMS} is the most", terms.len());
            return Err(Error::input(message));
        }
        let mut space = Space { terms, heredity, dim, log_prior: Vec::new(), counts: Vec::new() };
        space.counts = space.count()?;
        let shape = prior.log_shape(space.terms.len())?;
        let each = shape.iter().zip(&space.counts).map(|(log_p, count)| log_p + libm::log(*count));
        let total = log_sum_exp(&each.collect::<Vec<f64>>());
        if !total.is_finite() {
            return Err(Error::input("the prior over models leaves none of them"));
        }
        space.log_prior = shape.iter().map(|log_p| log_p - total).collect();
        Ok(space)
    }

    /// The logarithm of the prior probability of a model with this many terms.
    pub fn log_prior(&self, terms: usize) -> f64 {
        self.log_prior[terms]
    }

    /// How many models there are.
    pub fn models(&self) -> f64 {
        self.counts.iter().sum()
    }

    /// Per number of terms, how many models have so many.
    pub fn counts(&self) -> &[f64] {
        &self.counts
    }

    /// Whether heredity lets a model that has these terms take in this one.
    pub fn welcomes(&self, model: &Subset, term: usize) -> bool {
        let parents = &self.terms[term].parents;
        let mut known = parents.iter().map(|&parent| model.contains(parent));
        match self.heredity {
            Heredity::None => true,
            Heredity::Strong => known.all(|known| known),
            Heredity::Weak => parents.is_empty() || known.any(|known| known),
        }
    }

    /// Whether heredity allows this model.
    pub fn allows(&self, model: &Subset) -> bool {
        model.iter().all(|term| self.welcomes(model, term))
    }

    /// Whether any candidate depends on another.
    pub fn has_rules(&self) -> bool {
        self.heredity != Heredity::None && self.terms.iter().any(|t| !t.parents.is_empty())
    }

    /// The numbers of the parameters that every model has, in order.
    pub fn always(&self) -> Vec<usize> {
        let mut free = vec![true; self.dim];
        self.terms.iter().flat_map(|t| &t.columns).for_each(|&j| free[j] = false);
        (0..self.dim).filter(|&j| free[j]).collect()
    }

    /// The numbers of a model's parameters, in order.
    pub fn coordinates(&self, model: &Subset) -> Vec<usize> {
        let mut all = self.always();
        all.extend(model.iter().flat_map(|term| self.terms[term].columns.iter().copied()));
        all.sort_unstable();
        all
    }

    /// A model by the labels of its terms: `x1 + x2`.
    pub fn name(&self, model: &Subset) -> String {
        let labels: Vec<&str> = model.iter().map(|t| self.terms[t].label.as_str()).collect();
        if labels.is_empty() { "(none)".to_string() } else { labels.join(" + ") }
    }

    /// Per number of terms, how many models heredity allows: over the choices of terms that others depend on,
    /// the rest of the terms being free or out.
    fn count(&self) -> Result<Vec<f64>> {
        let p = self.terms.len();
        let mut counts = vec![0.0; p + 1];
        let mut needed = vec![false; p];
        if self.has_rules() {
            self.terms.iter().flat_map(|t| &t.parents).for_each(|&parent| needed[parent] = true);
        }
        let order: Vec<usize> = (0..p).filter(|&t| needed[t]).collect();
        let mut left = MOST_CHOICES;
        let fine = self.count_from(&order, Subset::EMPTY, &needed, &mut counts, &mut left);
        if !fine {
            return Err(Error::input(
                "too many terms have interactions among the candidates for their models to be counted; write heredity = \"none\" under [select], or name fewer interactions",
            ));
        }
        Ok(counts)
    }

    fn count_from(
        &self,
        order: &[usize],
        chosen: Subset,
        needed: &[bool],
        counts: &mut [f64],
        left: &mut u64,
    ) -> bool {
        if *left == 0 {
            return false;
        }
        *left -= 1;
        let Some((&term, rest)) = order.split_first() else {
            let free =
                (0..self.terms.len()).filter(|&t| !needed[t] && self.welcomes(&chosen, t)).count();
            let mut ways = 1.0;
            for k in 0..=free {
                counts[chosen.len() + k] += ways;
                ways *= (free - k) as f64 / (k + 1) as f64;
            }
            return true;
        };
        let mut fine = self.count_from(rest, chosen, needed, counts, left);
        if self.welcomes(&chosen, term) {
            let with = chosen.with(term);
            fine = fine && self.count_from(rest, with, needed, counts, left);
        }
        fine
    }
}

/// Choices of main effects that are looked at, to count the models that heredity allows.
const MOST_CHOICES: u64 = 1 << 22;

/// The likelihood times the priors' normal forms, to second order, for all models at once. With A the precision
/// and b the slope over the parameters of a model γ,
///
/// ```text
/// log Z̃_γ = constant + Σ_j∈γ gain_j + ½ b_γ'A_γ⁻¹b_γ − ½ log|A_γ|.
/// ```
///
/// A parameter that is not in γ is 0.
#[derive(Debug, Clone)]
pub struct Quadratic {
    /// What all models have.
    pub constant: f64,
    /// A: the curvature of the log likelihood with the priors' precisions on the diagonal.
    pub precision: Matrix,
    /// b: the slope at 0.
    pub slope: Vec<f64>,
    /// What taking a parameter in multiplies by, in logarithms: of a normal prior of precision d around m
    /// ½ log d − ½ d m².
    pub gain: Vec<f64>,
}

/// A model's normal approximation.
#[derive(Debug, Clone)]
pub struct NormalModel {
    /// The numbers of its parameters, in order.
    pub coordinates: Vec<usize>,
    /// Their mean.
    pub mean: Vec<f64>,
    /// The factor of their precision.
    pub factor: Cholesky,
    /// log Z̃, without the model's prior.
    pub log_z: f64,
}

/// A normal density times a number that stands for a prior: e^`log_scale`·N(`mean`, 1/`precision`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StandIn {
    /// One over its variance.
    pub precision: f64,
    /// Its mean.
    pub mean: f64,
    /// The logarithm of the number.
    pub log_scale: f64,
}

impl StandIn {
    /// The logarithm of it.
    pub fn log_density(&self, x: f64) -> f64 {
        let t = x - self.mean;
        self.log_scale + 0.5 * (libm::log(self.precision) - LOG_2PI - self.precision * t * t)
    }

    /// The slope of that.
    pub fn slope(&self, x: f64) -> f64 {
        -self.precision * (x - self.mean)
    }
}

impl Quadratic {
    /// From the log likelihood at a place, with stand-ins for the priors; `precision` is its curvature there with
    /// theirs, and parameters are counted from the origin.
    pub fn around(
        at: &Expansion,
        precision: Matrix,
        place: &[f64],
        origin: &[f64],
        priors: &[StandIn],
    ) -> Quadratic {
        let d = place.len();
        let away: Vec<f64> = place.iter().zip(origin).map(|(c, o)| c - o).collect();
        let bent = precision.times(&away);
        // The likelihood's own part.
        let curved: Vec<f64> = (0..d).map(|j| bent[j] - priors[j].precision * away[j]).collect();
        let slope = (0..d)
            .map(|j| {
                let prior = &priors[j];
                at.gradient[j] + curved[j] + prior.precision * (prior.mean - origin[j])
            })
            .collect();
        let back: f64 = (0..d).map(|j| away[j] * (at.gradient[j] + 0.5 * curved[j])).sum();
        let gain = (0..d)
            .map(|j| {
                let (prior, from) = (&priors[j], priors[j].mean - origin[j]);
                prior.log_scale + 0.5 * libm::log(prior.precision)
                    - 0.5 * prior.precision * from * from
            })
            .collect();
        Quadratic { constant: at.value - back, precision, slope, gain }
    }

    /// The normal approximation of one model; `None` where its curvature is no precision.
    pub fn normal(&self, space: &Space, model: &Subset) -> Option<NormalModel> {
        let coordinates = space.coordinates(model);
        let d = coordinates.len();
        let mut precision = Matrix::zeros(d, d);
        for (i, &own) in coordinates.iter().enumerate() {
            for (k, &other) in coordinates.iter().enumerate() {
                precision[(i, k)] = self.precision[(own, other)];
            }
        }
        let factor = Cholesky::new(&precision)?;
        let slope: Vec<f64> = coordinates.iter().map(|&j| self.slope[j]).collect();
        let gain: f64 = coordinates.iter().map(|&j| self.gain[j]).sum();
        let half = 0.5 * (factor.inverse_quadratic(&slope) - factor.log_det());
        let mean = factor.solve(&slope);
        Some(NormalModel { coordinates, mean, factor, log_z: self.constant + gain + half })
    }
}
