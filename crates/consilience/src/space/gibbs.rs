//! Chains over the models of spaces too large to be walked: tempered Gibbs sampling with weights (Zanella and
//! Roberts 2019).
//!
//! A step flips the term t with probability in proportion to ηₜ/p(γₜ | γ₋ₜ), where ηₜ = p(γₜ = 1 | γ₋ₜ) + c/P: terms
//! that are where they hardly ever are, or might be in, have their turn often. A state of the chain counts with
//! the reciprocal of the sum of these.

use super::reduced::Reduced;
use super::sweep::{GibbsSweep, climb};
use super::{Quadratic, Space, Subset};
use crate::math::{Stream, log_sum_exp};
use crate::{Error, Result};
use rand::RngExt;
use std::collections::HashMap;

/// c of ηₜ.
const SPREAD: f64 = 5.0;
/// The share of a chain's steps that come before it counts.
const BURN_IN: f64 = 0.1;
/// Into how many stretches a chain is cut for standard errors.
const BATCHES: usize = 25;

/// What two chains over the models of a space found.
#[derive(Debug, Clone)]
pub struct ModelDraws {
    /// Per term, the share of the models that have it: the weighted mean of its probability given the others.
    pub inclusion: Vec<f64>,
    /// The standard errors of these.
    pub inclusion_se: Vec<f64>,
    /// Per number of terms, the share of the models that have so many, and the standard error of each.
    pub sizes: Vec<(f64, f64)>,
    /// The models that the chains came by, each with log w and the total weight of its visits, heaviest w first.
    pub models: Vec<(Subset, f64, f64)>,
    /// log Σ w over all models: that of the models of one chain, over the share of the other's time in them.
    pub log_total: f64,
    /// Its standard error; ∞ if the chains never met.
    pub log_total_se: f64,
    /// The share of all models' mass that is in none that one chain came by, by the other's time there. What neither
    /// came by is less.
    pub unseen: f64,
    /// Its standard error.
    pub unseen_se: f64,
}

/// Sums over a stretch of a chain.
#[derive(Clone)]
struct ChainStretch {
    /// Σ weight.
    total: f64,
    /// Per term, Σ weight·p(γₜ = 1 | γ₋ₜ).
    inclusion: Vec<f64>,
    /// Per number of terms, Σ weight where there are so many.
    sizes: Vec<f64>,
}

/// One chain.
struct ModelChain {
    stretches: Vec<ChainStretch>,
    /// The models visited, by number: log w and the weight of all visits.
    states: Vec<(Subset, f64, f64)>,
    numbers: HashMap<Subset, u32>,
    /// Every step's model and weight.
    visits: Vec<(u32, f64)>,
}

/// Draws models with two chains of half the steps each. Sizes that the prior rules out must not lie between others.
pub fn gibbs(
    space: &Space,
    quadratic: &Quadratic,
    steps: usize,
    rng: &mut Stream,
) -> Result<ModelDraws> {
    let reduced = Reduced::new(space, quadratic)?;
    let p = space.terms.len();
    let possible: Vec<bool> = (0..=p)
        .map(|k| space.log_prior(k) > f64::NEG_INFINITY && space.counts()[k] > 0.0)
        .collect();
    let changes = possible.windows(2).filter(|pair| !pair[0] && pair[1]).count();
    if changes + usize::from(possible[0]) > 1 {
        return Err(Error::input(
            "the prior over models rules out a number of terms between others, and so many models can only be drawn one term after another",
        ));
    }
    let summit = climb(space, &reduced);
    if !summit.log_weight.is_finite() {
        return Err(Error::numeric("no model of the space has a normal approximation"));
    }
    let each = (steps / 2).max(BATCHES);
    let first = run(space, &reduced, &summit.model, each, rng);
    let second = run(space, &reduced, &summit.model, each, rng);
    Ok(combine(p, first, second))
}

fn run(
    space: &Space,
    reduced: &Reduced,
    start: &Subset,
    steps: usize,
    rng: &mut Stream,
) -> ModelChain {
    let p = space.terms.len();
    let mut sweep = GibbsSweep::new(space, reduced);
    // The climb's model is good in all orders that keep parents first.
    sweep.model = *start;
    sweep.refresh();
    let burn_in = (steps as f64 * BURN_IN) as usize;
    let mut chain = ModelChain {
        stretches: vec![
            ChainStretch {
                total: 0.0,
                inclusion: vec![0.0; p],
                sizes: vec![0.0; p + 1]
            };
            BATCHES
        ],
        states: Vec::new(),
        numbers: HashMap::new(),
        visits: Vec::with_capacity(steps),
    };
    let (mut rates, mut given) = (vec![0.0; p], vec![0.0; p]);
    for step in 0..burn_in + steps {
        conditionals(space, &sweep, &mut given, &mut rates);
        let total: f64 = rates.iter().sum();
        // Where no term may flip there is one model only.
        let weight = if total > 0.0 { 1.0 / total } else { 1.0 };
        if step >= burn_in {
            let at = step - burn_in;
            let stretch = &mut chain.stretches[at * BATCHES / steps];
            stretch.total += weight;
            stretch.sizes[sweep.size] += weight;
            for (sum, given) in stretch.inclusion.iter_mut().zip(&given) {
                *sum += weight * given;
            }
            let next = chain.states.len() as u32;
            let number = *chain.numbers.entry(sweep.model).or_insert(next);
            if number == next {
                chain.states.push((sweep.model, sweep.log_weight, 0.0));
            }
            chain.states[number as usize].2 += weight;
            chain.visits.push((number, weight));
        }
        let mut left = rng.random::<f64>() * total;
        let mut chosen = None;
        for (t, rate) in rates.iter().enumerate().filter(|(_, rate)| **rate > 0.0) {
            chosen = Some(t);
            left -= rate;
            if left < 0.0 {
                break;
            }
        }
        if let Some(t) = chosen {
            let ratio = sweep.log_ratio(t);
            sweep.flip(t, ratio);
        }
    }
    chain
}

/// Per term, its probability given the others, and how readily it flips.
fn conditionals(space: &Space, sweep: &GibbsSweep, given: &mut [f64], rates: &mut [f64]) {
    let p = given.len();
    let least = SPREAD / p as f64;
    // Prior odds by whether a term is in: the same for all that are.
    let prior = |k: usize| space.log_prior(k);
    let k = sweep.size;
    let above = if k < p { prior(k + 1) - prior(k) } else { f64::NEG_INFINITY };
    let below = if k > 0 { prior(k) - prior(k - 1) } else { f64::INFINITY };
    for t in 0..p {
        let has = sweep.model.contains(t);
        let log_prior = if has { below } else { above };
        // What may not flip is as it is, whatever the data.
        if !log_prior.is_finite() || !sweep.rules_allow(t) {
            (given[t], rates[t]) = (f64::from(u8::from(has)), 0.0);
            continue;
        }
        let odds = sweep.odds(t, log_prior);
        given[t] = odds / (1.0 + odds);
        rates[t] = (given[t] + least) * if has { 1.0 + 1.0 / odds } else { 1.0 + odds };
    }
}

/// The share of a chain's time in another's models, with its standard error by stretches.
fn share_in(chain: &ModelChain, other: &ModelChain) -> (f64, f64) {
    let known: Vec<bool> =
        chain.states.iter().map(|(model, ..)| other.numbers.contains_key(model)).collect();
    let per_batch: Vec<(f64, f64)> = (chain.visits)
        .chunks(chain.visits.len().div_ceil(BATCHES))
        .map(|batch| {
            let inside = batch.iter().filter(|(number, _)| known[*number as usize]);
            (inside.map(|(_, weight)| weight).sum(), batch.iter().map(|(_, weight)| weight).sum())
        })
        .collect();
    let (inside, total) = per_batch.iter().fold((0.0, 0.0), |sum, b| (sum.0 + b.0, sum.1 + b.1));
    let share = (inside / total).min(1.0);
    let n = per_batch.len() as f64;
    let squares: f64 = per_batch.iter().map(|b| (b.0 - share * b.1) * (b.0 - share * b.1)).sum();
    let se = (squares * n / (n - 1.0)).sqrt() / total;
    // Few or no visits outside say little of how many there might have been: an independent chain would leave an
    // error of 1/ess, and this one is not.
    let ess = total * total / chain.visits.iter().map(|v| v.1 * v.1).sum::<f64>();
    let missed = 4.0 / ess;
    (share, (se * se + missed * missed).sqrt())
}

fn log_sum_of(chain: &ModelChain) -> f64 {
    let logs: Vec<f64> = chain.states.iter().map(|state| state.1).collect();
    log_sum_exp(&logs)
}

/// A share of all weight, and its standard error by stretches.
fn share_of(stretches: &[&ChainStretch], part: &dyn Fn(&ChainStretch) -> f64) -> (f64, f64) {
    let total: f64 = stretches.iter().map(|s| s.total).sum();
    let share = (stretches.iter().map(|s| part(s)).sum::<f64>() / total).clamp(0.0, 1.0);
    let n = stretches.len() as f64;
    let off = |s: &&ChainStretch| part(s) - share * s.total;
    let squares: f64 = stretches.iter().map(|s| off(s) * off(s)).sum();
    (share, (squares * n / (n - 1.0)).sqrt() / total)
}

fn combine(p: usize, first: ModelChain, second: ModelChain) -> ModelDraws {
    let (in_first, in_first_se) = share_in(&second, &first);
    let (in_second, in_second_se) = share_in(&first, &second);
    let known = in_first > 0.0 && in_second > 0.0;
    let (log_total, log_total_se) = if known {
        let a = log_sum_of(&first) - libm::log(in_first);
        let b = log_sum_of(&second) - libm::log(in_second);
        let (se_a, se_b) = (in_first_se / in_first, in_second_se / in_second);
        // The two share their chains: no smaller than the mean of their errors, nor than half their difference.
        (0.5 * (a + b), (0.5 * (se_a + se_b)).max(0.5 * (a - b).abs()))
    } else {
        let all = [log_sum_of(&first), log_sum_of(&second)];
        (all[0].max(all[1]), f64::INFINITY)
    };
    let stretches: Vec<&ChainStretch> = first.stretches.iter().chain(&second.stretches).collect();
    let by_term = |t: usize| share_of(&stretches, &|s| s.inclusion[t]);
    let (inclusion, inclusion_se) = (0..p).map(by_term).unzip();
    let sizes = (0..=p).map(|k| share_of(&stretches, &|s| s.sizes[k])).collect();
    let mut models = first.states;
    for state in second.states {
        match first.numbers.get(&state.0) {
            Some(&number) => models[number as usize].2 += state.2,
            None => models.push(state),
        }
    }
    models.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ModelDraws {
        inclusion,
        inclusion_se,
        sizes,
        models,
        log_total,
        log_total_se,
        unseen: (1.0 - 0.5 * (in_first + in_second)).max(0.0),
        unseen_se: 0.5 * (in_first_se + in_second_se),
    }
}
