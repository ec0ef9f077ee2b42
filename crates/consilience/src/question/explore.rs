//! A space of models, explored by reversible jump.

use super::Kind;
use super::checks::{self, Fault, ensure, finite, numbers};
use crate::Result;
use crate::estimate::Estimate;
use crate::fit::{Exploration, ExploreOrder, Factor, MOST_NUMBERS, VisitMoments, explore};
use crate::model::{Model, Share};
use crate::sample::jump::Tally;
use crate::shard::Shard;
use crate::space::{Space, Subset};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::sync::Arc;

/// More draws of a chain than this, models told of, and pairs of them, are asked for by nobody.
const MOST_DRAWS: usize = 10_000_000;
const MOST_MODELS: usize = 10_000;
const MOST_PAIRS: usize = 100;

/// Asks how often chains over models visit each, where its parameters are then, and for Bayes factors of pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explore {
    /// The model with all terms.
    pub model: Arc<Model>,
    /// The shard's share of the prior: of the parameters' and of the models'.
    pub share: Share,
    /// The models.
    pub space: Arc<Space>,
    /// How.
    pub order: ExploreOrder,
    /// Pairs of models whose Bayes factors are wanted.
    pub pairs: Vec<(Subset, Subset)>,
}

impl Kind for Explore {
    const NAME: &'static str = "explore";

    /// Only counts, moments and diagnostics: no draw of a chain.
    type Answer = Exploration;

    fn models(&self) -> Vec<&Arc<Model>> {
        vec![&self.model]
    }

    fn check(&self) -> Fault {
        checks::model(&self.model)?;
        checks::share(self.share)?;
        if let Some(fault) = self.space.fault(self.model.dim()) {
            return Err(format!("the space of models in it {fault}"));
        }
        let ExploreOrder { draws, warmup, chains, keep, .. } = self.order;
        ensure(
            (1..=MOST_DRAWS).contains(&draws)
                && warmup <= MOST_DRAWS
                && (1..=100).contains(&chains)
                && (1..=MOST_MODELS).contains(&keep),
            "it asks for no sensible number of draws or models",
        )?;
        ensure(self.pairs.len() <= MOST_PAIRS, "it asks about more pairs than anybody does")?;
        let known = |(a, b): &(Subset, Subset)| a != b && self.space.has(a) && self.space.has(b);
        ensure(self.pairs.iter().all(known), "it asks about a pair of models that are not there")
    }

    fn answer(&self, shard: &Shard) -> Result<Exploration> {
        shard.on_target(&self.model, self.share, |target| {
            let index = shard.index();
            explore(&self.model, &target, &self.space, &self.order, &self.pairs, index)
        })
    }

    fn accept(&self, answer: &Exploration) -> Fault {
        let Exploration { draws, models, distinct, inclusion, r_hat, moves, pairs } = answer;
        let (terms, all) = (self.space.terms.len(), (self.order.chains * self.order.draws) as u64);
        ensure(*draws == all, "it has more draws or fewer")?;
        ensure(models.len() <= self.order.keep, "it tells of more models than it was asked to")?;
        ensure(
            (models.len() as u64..=all).contains(distinct) && *distinct > 0,
            "it visited no sensible number of models",
        )?;
        let mut visits = 0u64;
        let mut known = std::collections::HashSet::new();
        for visited in models {
            ensure(
                self.space.has(&visited.model) && known.insert(visited.model),
                "it visited a model that is not there, or tells of one twice",
            )?;
            ensure(
                visited.visits.len() == self.order.batches() && visited.count() > 0,
                "its visits are too many or too few",
            )?;
            visits += visited.count();
            self.moments(&visited.model, &visited.moments)?;
        }
        ensure(visits <= all, "its visits are more than its draws")?;
        let shares = inclusion.len() == terms && inclusion.iter().all(|p| (0.0..=1.0).contains(p));
        ensure(shares, "its shares of draws are none")?;
        let sound = |r: &f64| r.is_finite() && *r > 0.0;
        let known = r_hat.len() == terms && r_hat.iter().flatten().all(sound);
        ensure(known, "its diagnostics are not sound")?;
        let tallies = [moves.add, moves.delete, moves.swap, moves.within];
        let fine = |t: &Tally| t.taken <= t.proposed && t.proposed <= all;
        ensure(tallies.iter().all(fine), "it took more proposals than it made")?;
        ensure(pairs.len() == self.pairs.len(), "it is about more pairs or fewer")?;
        for ((first, second), factor) in self.pairs.iter().zip(pairs) {
            let Factor { accepted, bridged, moments, .. } = factor;
            let fine = |e: &Estimate| {
                e.value.is_finite() && e.se.is_some_and(|se| se.is_finite() && se >= 0.0)
            };
            ensure(fine(accepted) && fine(bridged), "a Bayes factor in it is not sound")?;
            self.moments(first, &moments[0])?;
            self.moments(second, &moments[1])?;
        }
        Ok(())
    }

    fn explain(&self) -> String {
        let terms = self.space.terms.len();
        let pairs = match self.pairs.len() {
            0 => String::new(),
            n => format!("; Bayes factors of {n} pairs of models"),
        };
        format!(
            "explore the models that `{}` has by leaving out some of {terms} terms: how often Markov chains visit each, posterior mean and covariance of at most {} of them, and diagnostics{pairs}",
            crate::error::clip(&self.model.name),
            self.order.keep,
        )
    }

    fn explain_answer(answer: &Exploration) -> String {
        let mut out = format!(
            "  models that {} draws visited: {}\n  of {} of them: visits, posterior mean and covariance\n",
            answer.draws,
            answer.distinct,
            answer.models.len()
        );
        let _ =
            writeln!(out, "  the share of draws with each term: {}", numbers(&answer.inclusion));
        for factor in &answer.pairs {
            let _ = writeln!(
                out,
                "  log Bayes factor of a pair of models: {} (standard error {:?}), with posterior mean and covariance of both",
                factor.bridged.value, factor.bridged.se
            );
        }
        let _ = writeln!(out, "  diagnostics: how many proposals were taken, and R̂ of each term");
        out
    }

    fn draws(&self) -> u64 {
        self.order.all_draws().saturating_mul(1 + self.pairs.len() as u64)
    }

    fn largest_answer(&self) -> u64 {
        let (d, p) = (self.space.dim as u64, self.space.terms.len() as u64);
        let batches = self.order.batches() as u64;
        // Visits of a batch take five bytes, a number eight, a set of terms ten for each of its words.
        let each = 5 * batches + 8 * d * (d + 1) + 200;
        let models = (self.order.keep as u64).saturating_mul(each);
        let most = 8 * MOST_NUMBERS as u64 + 200 * self.order.keep as u64;
        let pairs = self.pairs.len() as u64 * (16 * d * (d + 1) + 400);
        4096 + 24 * p + models.min(most) + pairs
    }
}

impl Explore {
    fn moments(&self, model: &Subset, found: &VisitMoments) -> Fault {
        let d = self.space.coordinates(model).len();
        let VisitMoments { mean, covariance, effective } = found;
        ensure(mean.len() == d && finite(mean), "a mean in it is not sound")?;
        ensure(covariance.is_sound(d, d), "a covariance in it is not sound")?;
        ensure(!checks::indefinite(covariance), "a covariance in it is not positive definite")?;
        ensure(
            effective.is_none_or(|n| n.is_finite() && n > 0.0),
            "its number of effective draws is not positive",
        )
    }
}
