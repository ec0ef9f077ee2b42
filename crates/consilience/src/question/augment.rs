//! The shard's own evidence by Gibbs sampling, with conditionals of the parameters along the chain.

use super::Kind;
use super::checks::{self, Fault, ensure};
use super::fit::{largest_summary, told};
use crate::Result;
use crate::fit::{Augmentation, FitOrder, augment};
use crate::model::{Model, Share};
use crate::shard::Shard;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Asks for log Z_s and the parameters' conditionals given latent variables.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Augment {
    /// The model.
    pub model: Arc<Model>,
    /// The shard's share of the prior.
    pub share: Share,
    /// How.
    pub order: FitOrder,
    /// How many conditionals.
    pub conditionals: usize,
}

impl Kind for Augment {
    const NAME: &'static str = "augment";

    type Answer = Augmentation;

    fn models(&self) -> Vec<&Arc<Model>> {
        vec![&self.model]
    }

    fn check(&self) -> Fault {
        checks::model(&self.model)?;
        checks::share(self.share)?;
        checks::order(&self.order)?;
        ensure(
            (1..=self.order.draws).contains(&self.conditionals),
            "it asks for more conditionals than draws, or for none",
        )
    }

    fn answer(&self, shard: &Shard) -> Result<Augmentation> {
        shard.on_target(&self.model, self.share, |target| {
            augment(&self.model, &target, &self.order, self.conditionals, shard.index())
        })
    }

    fn accept(&self, answer: &Augmentation) -> Fault {
        let d = self.model.dim();
        checks::summary(&answer.summary, d)?;
        ensure(!answer.summary.batches.is_empty(), "it has no batches of its draws")?;
        ensure(
            answer.means.has_size(self.conditionals, d)
                && answer.factors.has_size(self.conditionals, d * (d + 1) / 2),
            "its conditionals have the wrong size",
        )?;
        let mut numbers = answer.means.data().iter().chain(answer.factors.data());
        ensure(numbers.all(|v| v.is_finite()), "its conditionals are not finite")
    }

    fn explain(&self) -> String {
        format!(
            "augment of the model `{}`: as fit, by {}; and at {} points of a Markov chain the mean and precision of the parameters given latent variables",
            crate::error::clip(&self.model.name),
            self.order.method,
            self.conditionals
        )
    }

    fn explain_answer(answer: &Augmentation) -> String {
        let count = answer.means.rows();
        told(&answer.summary)
            + &format!("  mean and precision of the parameters at {count} points of a chain\n")
    }

    fn draws(&self) -> u64 {
        self.order.all_draws()
    }

    fn largest_answer(&self) -> u64 {
        let d = self.model.dim() as u64 + 1;
        largest_summary(&self.model) + 10 * (self.conditionals as u64).saturating_mul(d * d)
    }
}
