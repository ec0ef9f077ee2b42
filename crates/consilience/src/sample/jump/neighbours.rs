//! The models that a chain may jump to, and which of them it proposes.

use super::field::Field;
use crate::math::{Stream, log_sum_exp};
use crate::space::Subset;
use libm::{exp, log};
use rand::RngExt;
use std::collections::HashMap;

/// The share of proposals that are as likely for all neighbours: a bad guess shuts no model out.
const EVEN_SHARE: f64 = 0.1;

/// Swaps of a model beyond which none are proposed, where terms can come and go one by one: to guess them all would
/// take longer than to go the way.
const MOST_SWAPS: usize = 5000;

/// What becomes of a model's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveKind {
    /// One comes in.
    Add,
    /// One goes out.
    Delete,
    /// One comes in for another.
    Swap,
}

/// The models that differ from one by a term, or by one term for another.
pub(super) struct Neighbours {
    models: Vec<(Subset, MoveKind)>,
    /// The logarithm of prior times Z̃, as guessed.
    guesses: Vec<f64>,
}

/// Logs of Z̃ times prior that are known better.
pub(super) type KnownWeights = HashMap<Subset, f64>;

impl Neighbours {
    pub(super) fn new(field: &Field, model: &Subset) -> Neighbours {
        let space = field.space;
        let terms = 0..space.terms.len();
        let (inside, outside): (Vec<usize>, Vec<usize>) = terms.partition(|&t| model.contains(t));
        let is_possible =
            |size: usize| size <= space.terms.len() && space.log_prior(size).is_finite();
        let size = model.len();
        let stuck = !is_possible(size + 1) && (size == 0 || !is_possible(size - 1));
        let mut all = Neighbours { models: Vec::new(), guesses: Vec::new() };
        let mut take = |other: Subset, kind: MoveKind, guess: f64| {
            if space.has(&other) {
                all.models.push((other, kind));
                all.guesses.push(guess + field.log_prior(&other));
            }
        };
        if is_possible(size + 1) {
            let guesses = field.guesses_with(model, &outside);
            outside.iter().zip(guesses).for_each(|(&t, g)| take(model.with(t), MoveKind::Add, g));
        }
        for &term in &inside {
            let less = model.without(term);
            if space.has(&less) {
                take(less, MoveKind::Delete, field.guess(&less));
            }
        }
        if stuck || inside.len() * outside.len() <= MOST_SWAPS {
            for &out in &inside {
                let less = model.without(out);
                let guesses = field.guesses_with(&less, &outside);
                outside
                    .iter()
                    .zip(guesses)
                    .for_each(|(&t, g)| take(less.with(t), MoveKind::Swap, g));
            }
        }
        all
    }

    pub(super) fn len(&self) -> usize {
        self.models.len()
    }

    /// The probabilities with which each is proposed: by the roots of what they are taken to weigh, so that the way
    /// back is about as likely as the way there.
    fn probabilities(&self, known: &KnownWeights) -> Vec<f64> {
        let weigh = |((model, _), guess): (&(Subset, MoveKind), &f64)| {
            0.5 * known.get(model).copied().unwrap_or(*guess)
        };
        let halves: Vec<f64> = self.models.iter().zip(&self.guesses).map(weigh).collect();
        let total = log_sum_exp(&halves);
        let even = EVEN_SHARE / self.len() as f64;
        halves.iter().map(|half| even + (1.0 - EVEN_SHARE) * exp(half - total)).collect()
    }

    /// One of them, with the logarithm of the probability that it is this one.
    pub(super) fn propose(
        &self,
        known: &KnownWeights,
        rng: &mut Stream,
    ) -> (Subset, MoveKind, f64) {
        let probabilities = self.probabilities(known);
        let mut left = rng.random::<f64>() * probabilities.iter().sum::<f64>();
        let falls = |p: &f64| {
            left -= p;
            left < 0.0
        };
        let chosen = probabilities.iter().position(falls).unwrap_or(self.len() - 1);
        let (model, kind) = self.models[chosen];
        (model, kind, log(probabilities[chosen]))
    }

    /// The logarithm of the probability that this one is proposed.
    pub(super) fn log_probability(&self, known: &KnownWeights, model: &Subset) -> f64 {
        let found = self.models.iter().position(|(other, _)| other == model);
        found.map_or(f64::NEG_INFINITY, |k| log(self.probabilities(known)[k]))
    }
}
