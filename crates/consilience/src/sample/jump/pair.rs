//! A chain that jumps to and fro between two models, for their Bayes factor.
//!
//! Bartolucci, Scaccia & Mira (2006) take it from the acceptance probabilities of the jumps that a chain over all
//! models proposes between the two. How often a model is visited does not matter to it, so that the chain may be one
//! over these two alone, with a prior that makes up for what one is the likelier: then it is at each half of the
//! time, proposes nothing but jumps to the other, and models that no chain would visit have a Bayes factor too.

use super::JumpLengths;
use super::chain::accepts;
use super::field::{Field, Point};
use crate::Result;
use crate::math::Stream;
use crate::space::Subset;

/// What a chain saw at one of the two models.
#[derive(Default)]
pub struct Side {
    /// Per jump to the other that was proposed, the logarithm of [f'(θ') g(θ)] / [f(θ) g'(θ')].
    pub log_ratios: Vec<f64>,
    /// The parameters at which they were, one after the other.
    pub thetas: Vec<f64>,
}

/// The jumps of one chain.
pub struct PairChain {
    /// From the first model, and from the second.
    pub sides: [Side; 2],
    /// What is taken off the second's log evidence so that the two are as likely.
    pub tilt: f64,
}

impl PairChain {
    pub(super) fn run(
        field: &Field,
        pair: [&Subset; 2],
        lengths: &JumpLengths,
        first: usize,
        mut rng: Stream,
    ) -> Result<PairChain> {
        let places = [field.place(pair[0])?, field.place(pair[1])?];
        let tilt = places[1].log_z - places[0].log_z;
        let mut at = first;
        let mut point: Point = field.point(&places[at], places[at].top());
        let mut sides = [Side::default(), Side::default()];
        for draw in 0..lengths.warmup + lengths.draws {
            let other = 1 - at;
            let there = field.point(&places[other], places[other].draw(&mut rng));
            let log_ratio = (there.log_f - there.log_g) - (point.log_f - point.log_g);
            if draw >= lengths.warmup {
                sides[at].log_ratios.push(log_ratio);
                sides[at].thetas.extend_from_slice(&point.theta);
            }
            let even = if other == 1 { -tilt } else { tilt };
            if accepts(log_ratio + even, &mut rng) {
                (at, point) = (other, there);
            }
            point.stay(field, &places[at], &mut rng);
        }
        Ok(PairChain { sides, tilt })
    }
}
