//! What a shard says of a space of models: reversible jump, summed up so that no draw is in it.

use super::pair::{self, Factor};
use crate::estimate::bridge::moments;
use crate::estimate::chains::{ParameterDiagnostics, ess};
use crate::estimate::newton;
use crate::math::{Cholesky, Matrix};
use crate::model::{Model, Subposterior, unbounded};
use crate::sample::jump::{self, Field, FieldModel, JumpChain, JumpLengths, Moves};
use crate::space::{Space, Subset};
use crate::target::{Mode, Target};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Runs of draws, all chains together, in which visits are counted: from these comes the error of their shares.
pub const VISIT_BATCHES: usize = 40;

/// Draws per parameter that moments are taken from; of models with fewer it is the normal around the peak.
const DRAWS_PER_PARAMETER: usize = 10;

/// Numbers that all moments of an answer may take together. Models beyond are counted, and no more.
pub const MOST_NUMBERS: usize = 2_000_000;

/// The R̂ of chains each of which stays where the others are not.
const NEVER_MET: f64 = 1000.0;

/// How a shard is to explore a space.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ExploreOrder {
    /// Draws of each chain.
    pub draws: usize,
    /// Draws of each before those, on which it learns.
    pub warmup: usize,
    /// Chains.
    pub chains: usize,
    /// The most models that are told of.
    pub keep: usize,
    /// Seed.
    pub seed: u64,
}

impl ExploreOrder {
    /// The draws of all chains, warm-up counted.
    pub fn all_draws(&self) -> u64 {
        self.draws.saturating_add(self.warmup).saturating_mul(self.chains) as u64
    }

    /// Into how many runs the draws fall, all chains together.
    pub fn batches(&self) -> usize {
        self.chains * (VISIT_BATCHES / self.chains.max(1)).clamp(1, self.draws.max(1))
    }
}

/// A subposterior's moments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VisitMoments {
    /// Mean of the model's own parameters, in order.
    pub mean: Vec<f64>,
    /// Their covariance.
    pub covariance: Matrix,
    /// Effective draws behind these; `None`: peak and inverse curvature there.
    pub effective: Option<f64>,
}

/// A model that was visited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Visited {
    /// Which.
    pub model: Subset,
    /// How often in each run of draws: runs of a chain stand together.
    pub visits: Vec<u32>,
    /// Where its parameters were.
    pub moments: VisitMoments,
}

impl Visited {
    /// How often in all.
    pub fn count(&self) -> u64 {
        self.visits.iter().map(|&v| u64::from(v)).sum()
    }
}

/// What a shard says of a space.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exploration {
    /// Draws of all chains, warm-up left out.
    pub draws: u64,
    /// The models most visited, the first most of all.
    pub models: Vec<Visited>,
    /// How many models were visited.
    pub distinct: u64,
    /// Per term, the share of draws that have it.
    pub inclusion: Vec<f64>,
    /// Per term, the R̂ of having it; `None` where all chains have it always, or never.
    pub r_hat: Vec<Option<f64>>,
    /// What was proposed and taken.
    pub moves: Moves,
    /// The Bayes factors that were asked for.
    pub pairs: Vec<Factor>,
}

/// Explores a space of models on one shard.
pub fn explore(
    model: &Model,
    target: &Subposterior,
    space: &Space,
    order: &ExploreOrder,
    pairs: &[(Subset, Subset)],
    shard: usize,
) -> Result<Exploration> {
    if !jump::has_no_gap(space) {
        return Err(Error::input(
            "the prior over models leaves out numbers of terms between others, which no single step can cross; give every number between a weight",
        ));
    }
    let field = Field::new(target, space, climb)?;
    unbounded::refuse(model, target, field.peak())?;
    let lengths = JumpLengths {
        chains: order.chains,
        warmup: order.warmup,
        draws: order.draws,
        seed: order.seed,
        model: model.stream(),
        shard: shard as u64,
    };
    let chains = jump::jump(&field, &lengths)?;
    let pairs = pairs.iter().map(|(a, b)| pair::factor(&field, [a, b], &lengths));
    let pairs: Vec<Factor> = pairs.collect::<Result<_>>()?;
    let mut moves = Moves::default();
    chains.iter().for_each(|chain| moves.add(&chain.moves));
    let (inclusion, r_hat) = (0..space.terms.len()).map(|t| included(&chains, t)).unzip();
    let (models, distinct) = visited(&field, &chains, order)?;
    let draws = (order.chains * order.draws) as u64;
    Ok(Exploration { draws, models, distinct, inclusion, r_hat, moves, pairs })
}

/// The peak of a model: near is enough, since proposals are corrected for. To know that one is nearer takes as long as
/// hundreds of draws.
fn climb(target: &dyn Target) -> Result<Mode> {
    const NEAR: f64 = 1e-4;
    Ok(newton::find_mode(target, NEAR, 100)?.mode)
}

/// The share of draws that have a term, and the R̂ of having it.
fn included(chains: &[JumpChain], term: usize) -> (f64, Option<f64>) {
    let has = |chain: &JumpChain| -> Vec<f64> {
        let of: Vec<f64> =
            chain.visited.iter().map(|m| f64::from(u8::from(m.contains(term)))).collect();
        chain.path.iter().map(|&number| of[number as usize]).collect()
    };
    let each: Vec<Vec<f64>> = chains.iter().map(has).collect();
    let count: usize = each.iter().map(Vec::len).sum();
    let share = each.iter().flatten().sum::<f64>() / count as f64;
    if share == 0.0 || share == 1.0 {
        return (share, None);
    }
    let slices: Vec<&[f64]> = each.iter().map(Vec::as_slice).collect();
    let r_hat = ParameterDiagnostics::new(&slices).r_hat.unwrap_or(NEVER_MET);
    (share, Some(r_hat.min(NEVER_MET)))
}

/// The models most visited, and how many were.
fn visited(
    field: &Field,
    chains: &[JumpChain],
    order: &ExploreOrder,
) -> Result<(Vec<Visited>, u64)> {
    let batches = order.batches();
    let per_chain = batches / order.chains;
    let mut counts: HashMap<Subset, u64> = HashMap::new();
    for chain in chains {
        let mut own = vec![0; chain.visited.len()];
        chain.path.iter().for_each(|&number| own[number as usize] += 1);
        for (model, count) in chain.visited.iter().zip(own) {
            *counts.entry(*model).or_default() += count;
        }
    }
    let distinct = counts.len() as u64;
    let mut ranked: Vec<(Subset, u64)> = counts.into_iter().collect();
    ranked.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked.truncate(order.keep);
    let mut room = MOST_NUMBERS;
    let mut models = Vec::new();
    for (model, count) in ranked {
        let place = field.place(&model)?;
        let d = place.coordinates.len();
        let Some(left) = room.checked_sub(d * (d + 1) + batches) else { break };
        room = left;
        let mut visits = vec![0u32; batches];
        let mut draws: Vec<&[f64]> = Vec::with_capacity(count as usize);
        for (c, chain) in chains.iter().enumerate() {
            let Some(number) = chain.visited.iter().position(|m| *m == model) else { continue };
            for (k, _) in chain.path.iter().enumerate().filter(|(_, n)| **n == number as u32) {
                visits[c * per_chain + k * per_chain / order.draws] += 1;
                draws.push(chain.theta(k));
            }
        }
        let moments = VisitMoments::of(&place, &draws);
        models.push(Visited { model, visits, moments });
    }
    Ok((models, distinct))
}

impl VisitMoments {
    /// Those of draws, where there are enough.
    pub(super) fn of(place: &FieldModel, draws: &[&[f64]]) -> VisitMoments {
        let d = place.coordinates.len();
        let from_draws = || {
            if draws.len() < DRAWS_PER_PARAMETER * d.max(2) {
                return None;
            }
            let (mean, covariance) = moments(draws.iter().copied(), d);
            let factor = Cholesky::new(&covariance)?;
            // Squares and products are what moments rest on: the distance is a sum of them all.
            let distance = |theta: &&[f64]| {
                let offset: Vec<f64> = theta.iter().zip(&mean).map(|(t, m)| t - m).collect();
                factor.inverse_quadratic(&offset)
            };
            let distances: Vec<f64> = draws.iter().map(distance).collect();
            let count = draws.len() as f64;
            let effective = ess(&[&distances]).unwrap_or(0.25 * count).min(count);
            let finite = mean.iter().chain(covariance.data()).all(|x| x.is_finite());
            finite.then_some(VisitMoments { mean, covariance, effective: Some(effective) })
        };
        from_draws().unwrap_or_else(|| {
            let (mean, precision) = place.normal();
            let factor = Cholesky::new(&precision);
            let covariance = factor.map_or_else(|| Matrix::identity(d), |f| f.inverse());
            VisitMoments { mean, covariance, effective: None }
        })
    }
}
