//! How likely all models are at the centre: by a walk through them, or by chains where there are too many.

use crate::Result;
use crate::estimate::Estimate;
use crate::math::Stream;
use crate::space::{self, Quadratic, Space, Subset, Sums, Walk};
use libm::exp;

/// The heaviest models that are known by name.
const KNOWN: usize = 4_096;

/// Up to so many models all are walked through: that costs less than knowing which to leave out.
const ALL: f64 = 33_554_432.0;

/// The share of the weight that a walk may leave out.
const LEFT_OUT: f64 = 1e-5;

/// Nodes of a walk, and steps of chains, times the square of the number of candidates: what either costs.
const EFFORT: f64 = 4e9;

/// How much less effort is enough for the way there.
const LESS: usize = 10;

/// Weights of models at the centre.
pub(super) struct Weights {
    /// log Σ w over all models, or all that were walked through, and log Σ √w of these.
    pub log_total: f64,
    pub log_root: f64,
    /// Shares of that total, by term and by number of terms.
    pub inclusion: Vec<f64>,
    pub sizes: Vec<f64>,
    /// The heaviest models with log w, the first first.
    pub top: Vec<(Subset, f64)>,
    /// How many models are at hand.
    pub models: f64,
    /// The share of all models' weight in models that nobody looked at: at most, or about with an error.
    pub unseen: Estimate,
    /// Standard errors of the above, where chains have estimated them; 0 after a walk.
    pub errors: WeightErrors,
    kind: WeightsKind,
}

/// Standard errors of what chains say about all models.
pub(super) struct WeightErrors {
    /// ∞ where two chains never met.
    pub log_total: f64,
    pub inclusion: Vec<f64>,
    pub sizes: Vec<f64>,
}

/// Models with log w.
type WeightedModel = Vec<(Subset, f64)>;

enum WeightsKind {
    Walked(Sums),
    /// The models that chains came by, with log w and the weight of all visits.
    Visited(Vec<(Subset, f64, f64)>),
}

/// How the models of a space are walked through.
pub(super) fn walk(space: &Space) -> Walk {
    let p = space.terms.len().max(1) as f64;
    match space.models() <= ALL {
        true => Walk { top: KNOWN, tolerance: 0.0, most_nodes: u64::MAX },
        false => Walk {
            top: KNOWN,
            tolerance: LEFT_OUT,
            most_nodes: (EFFORT / (p * p)).clamp(1e5, 4e6) as u64,
        },
    }
}

impl Weights {
    /// By a walk; `None` where there are too many models for that.
    pub(super) fn walked(space: &Space, quadratic: &Quadratic) -> Result<Option<Weights>> {
        let Some(sums) = space::sum(space, quadratic, &walk(space))? else { return Ok(None) };
        let p = space.terms.len();
        Ok(Some(Weights {
            log_total: sums.log_total,
            log_root: sums.log_root,
            inclusion: sums.inclusion.clone(),
            sizes: sums.sizes.clone(),
            top: sums.top.clone(),
            models: sums.visited,
            unseen: Estimate::new(exp(sums.log_rest - sums.log_total).min(1.0), 0.0),
            errors: WeightErrors {
                log_total: 0.0,
                inclusion: vec![0.0; p],
                sizes: vec![0.0; p + 1],
            },
            kind: WeightsKind::Walked(sums),
        }))
    }

    /// By chains: models are drawn as they came by them.
    pub(super) fn drawn(
        space: &Space,
        quadratic: &Quadratic,
        roughly: bool,
        rng: &mut Stream,
    ) -> Result<Weights> {
        let p = space.terms.len();
        let steps = (EFFORT / (p * p) as f64).clamp(5e4, 4e5) as usize;
        let steps = if roughly { steps / LESS } else { steps };
        let found = space::gibbs(space, quadratic, steps, rng)?;
        let top = found.models.iter().take(KNOWN).map(|(model, w, _)| (*model, *w)).collect();
        Ok(Weights {
            log_total: found.log_total,
            log_root: f64::INFINITY,
            inclusion: found.inclusion,
            sizes: found.sizes.iter().map(|s| s.0).collect(),
            top,
            models: found.models.len() as f64,
            unseen: Estimate::new(found.unseen, found.unseen_se),
            errors: WeightErrors {
                log_total: found.log_total_se,
                inclusion: found.inclusion_se,
                sizes: found.sizes.iter().map(|s| s.1).collect(),
            },
            kind: WeightsKind::Visited(found.models),
        })
    }

    /// Whether they are the same however long one looks.
    pub(super) fn is_exact(&self) -> bool {
        matches!(self.kind, WeightsKind::Walked(_))
    }

    /// Models at these positions, ascending, of the cumulative distributions of w and of √w; of the visits alone
    /// where chains made them.
    pub(super) fn draw(
        &self,
        space: &Space,
        quadratic: &Quadratic,
        by_weight: &[f64],
        by_root: &[f64],
    ) -> (WeightedModel, WeightedModel) {
        match &self.kind {
            WeightsKind::Walked(sums) => space::draw(space, quadratic, sums, by_weight, by_root),
            WeightsKind::Visited(models) => (pick(models, by_weight), Vec::new()),
        }
    }
}

fn pick(models: &[(Subset, f64, f64)], positions: &[f64]) -> WeightedModel {
    let total: f64 = models.iter().map(|m| m.2).sum();
    let (mut passed, mut k) = (0.0, 0);
    let mut drawn = Vec::with_capacity(positions.len());
    for &position in positions {
        while k + 1 < models.len() && passed + models[k].2 / total <= position {
            passed += models[k].2 / total;
            k += 1;
        }
        drawn.extend(models.get(k).map(|(model, w, _)| (*model, *w)));
    }
    drawn
}
