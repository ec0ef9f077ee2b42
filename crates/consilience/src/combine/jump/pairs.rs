//! Bayes factors of pairs of models on all the data, from jumps between them on every shard.

use super::visits::overlap;
use crate::estimate::Estimate;
use crate::fit::{Exploration, Factor, VisitMoments};
use crate::space::{Space, Subset};
use crate::{Error, Result};
use serde::Serialize;

/// The Bayes factor of one model to another.
#[derive(Debug, Clone, Serialize)]
pub struct PairFactor {
    /// The first.
    pub first: Subset,
    /// The second.
    pub second: Subset,
    /// log p(y|first) − log p(y|second) by the acceptance probabilities of jumps (Bartolucci, Scaccia & Mira 2006).
    pub accepted: Estimate,
    /// The same by the bridge that the jumps make.
    pub bridged: Estimate,
}

/// The factor of number `k`: those of the shards, times the ratio of the two models' overlaps. With one shard that is
/// 1, and nothing is taken as normal.
pub(super) fn combined(
    explorations: &[Exploration],
    k: usize,
    (first, second): (Subset, Subset),
    space: &Space,
) -> Result<PairFactor> {
    let factors: Vec<&Factor> = explorations.iter().map(|e| &e.pairs[k]).collect();
    let part = |side: usize, model: &Subset| {
        let moments: Vec<&VisitMoments> = factors.iter().map(|f| &f.moments[side]).collect();
        overlap(&moments).ok_or_else(|| {
            let message = "the covariances of jumps between two models are not positive definite; use more draws or fewer shards";
            Error::numeric(message).for_model(&space.name(model))
        })
    };
    let overlaps = part(0, &first)? - part(1, &second)?;
    let sum = |of: fn(&Factor) -> Estimate| factors.iter().fold(overlaps, |sum, f| sum + of(f));
    let (accepted, bridged) = (sum(|f| f.accepted), sum(|f| f.bridged));
    let fine = |e: &Estimate| e.value.is_finite() && e.se.is_some_and(f64::is_finite);
    if !(fine(&accepted) && fine(&bridged)) {
        let message = "the log Bayes factor of a pair of models is not a finite number";
        return Err(Error::numeric(message).for_model(&space.name(&first)));
    }
    Ok(PairFactor { first, second, accepted, bridged })
}
