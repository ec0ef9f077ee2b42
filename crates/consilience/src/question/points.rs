//! Points at which a model's log density is asked for.

use super::checks::{self, Fault, ensure};
use crate::Result;
use crate::math::{Matrix, Rule};
use crate::model::{Coordinates, Model, Share, Subposterior};
use crate::shard::Shard;
use rayon::prelude::*;
use std::sync::Arc;

/// More points of one model than this are asked about by nobody.
const MOST_POINTS: usize = 1 << 25;

/// A model and points of its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Points {
    /// The model.
    pub model: Arc<Model>,
    /// The shard's share of the prior.
    pub share: Share,
    /// One point per row.
    pub thetas: Arc<Matrix>,
    /// The rule by which they are made, in the coordinates in which the model's priors are standard normal. It
    /// travels in their place.
    pub rule: Option<Arc<Rule>>,
}

impl Points {
    /// Points that a rule makes, for a model that is known to be sound; `None` where it makes none that can be held.
    pub(super) fn made(model: Arc<Model>, share: Share, rule: Arc<Rule>) -> Option<Points> {
        let priors = model.free_priors();
        if !rule.is_sound(priors.len()) {
            return None;
        }
        let thetas = Arc::new(Coordinates::new(&priors, 1.0).thetas(&rule.points()));
        Some(Points { model, share, thetas, rule: Some(rule) })
    }

    /// The points, one after the other.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        (0..self.thetas.rows()).map(|k| self.thetas.row(k))
    }

    /// Whether the model has such points.
    fn check(&self) -> Fault {
        checks::model(&self.model)?;
        checks::share(self.share)?;
        ensure(
            self.thetas.is_sound(self.thetas.rows(), self.model.dim()),
            "it asks about points that its model does not have",
        )?;
        // Points without coordinates take no room, however many there are; what is computed at them does.
        ensure(self.thetas.rows() <= MOST_POINTS, "it asks about more points than anybody does")
    }
}

/// Whether a question about these can be put to rows.
pub(super) fn check(asked: &[Points]) -> Fault {
    ensure(!asked.is_empty(), "it asks about no model")?;
    asked.iter().try_for_each(Points::check)
}

/// What comes of every model's subposterior at its points.
pub(super) fn on_each<T: Send>(
    asked: &[Points],
    shard: &Shard,
    work: impl Fn(&Subposterior, &Points) -> T + Sync,
) -> Result<Vec<T>> {
    let one = |asked: &Points| {
        let found = shard.on_target(&asked.model, asked.share, |target| Ok(work(&target, asked)));
        found.map_err(|error| error.for_model(&asked.model.name))
    };
    // All of them first, so that which error comes out does not depend on who is fastest.
    let each: Vec<Result<T>> = asked.par_iter().map(one).collect();
    each.into_iter().collect()
}

/// Whether every model has an answer, which `fine` finds right.
pub(super) fn accept<T>(
    asked: &[Points],
    found: &[T],
    fine: impl Fn(&Points, &T) -> Fault,
) -> Fault {
    ensure(asked.len() == found.len(), "it is about more models or fewer")?;
    asked.iter().zip(found).try_for_each(|(asked, found)| fine(asked, found))
}

/// ` of the models …`.
pub(super) fn names(asked: &[Points]) -> String {
    let names: Vec<String> =
        asked.iter().map(|a| format!("`{}`", crate::error::clip(&a.model.name))).collect();
    let plural = if names.len() == 1 { "" } else { "s" };
    format!(" of the model{plural} {}", names.join(", "))
}

/// The points of all models together.
pub(super) fn count(asked: &[Points]) -> usize {
    asked.iter().map(|a| a.thetas.rows()).sum()
}
