//! How likely all models are at the centre: by a walk through them, or by chains where there are too many.

use crate::Result;
use crate::estimate::Estimate;
use crate::math::{Stream, log_sum_exp};
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
    /// log Σ w over the models at hand, and log Σ √w.
    pub log_total: f64,
    pub log_root: f64,
    /// Shares of that total, by term and by number of terms.
    pub inclusion: Vec<f64>,
    pub sizes: Vec<f64>,
    /// The heaviest models with log w, the first first.
    pub top: Vec<(Subset, f64)>,
    /// How many models are at hand.
    pub models: f64,
    /// What all models have that those at hand have not.
    pub beyond: Beyond,
    kind: Kind,
}

/// What all models have that those at hand have not.
pub(super) struct Beyond {
    /// The share of all models' weight that is not at hand: at most, or about with an error.
    pub unseen: Estimate,
    /// log Σ w of all models less that of those at hand.
    pub log_total: Estimate,
    /// Shares among all models less those among models at hand.
    pub inclusion: Vec<Estimate>,
    pub sizes: Vec<Estimate>,
}

enum Kind {
    Walked(Sums),
    Listed(Vec<(Subset, f64)>),
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
            beyond: Beyond {
                unseen: Estimate::new(exp(sums.log_rest - sums.log_total).min(1.0), 0.0),
                log_total: Estimate::ZERO,
                inclusion: vec![Estimate::ZERO; p],
                sizes: vec![Estimate::ZERO; p + 1],
            },
            kind: Kind::Walked(sums),
        }))
    }

    /// By chains: models at hand are those that they came by.
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
        let models: Vec<(Subset, f64)> = found.models.iter().map(|(m, w, _)| (*m, *w)).collect();
        let logs: Vec<f64> = models.iter().map(|m| m.1).collect();
        let log_total = log_sum_exp(&logs);
        let share = |has: &dyn Fn(&Subset) -> bool| -> f64 {
            models.iter().filter(|m| has(&m.0)).map(|m| exp(m.1 - log_total)).sum()
        };
        let inclusion: Vec<f64> = (0..p).map(|t| share(&|m| m.contains(t))).collect();
        let sizes: Vec<f64> = (0..=p).map(|k| share(&|m| m.len() == k)).collect();
        let more = |all: f64, se: f64, own: f64| Estimate::new(all - own, se);
        let beyond = Beyond {
            unseen: Estimate::new(found.unseen, found.unseen_se),
            log_total: more(found.log_total, found.log_total_se, log_total),
            inclusion: (0..p)
                .map(|t| more(found.inclusion[t], found.inclusion_se[t], inclusion[t]))
                .collect(),
            sizes: (0..=p).map(|k| more(found.sizes[k].0, found.sizes[k].1, sizes[k])).collect(),
        };
        Ok(Weights {
            log_total,
            log_root: log_sum_exp(&logs.iter().map(|l| 0.5 * l).collect::<Vec<f64>>()),
            inclusion,
            sizes,
            top: models.iter().take(KNOWN).copied().collect(),
            models: models.len() as f64,
            beyond,
            kind: Kind::Listed(models),
        })
    }

    /// Whether they are the same however long one looks.
    pub(super) fn is_exact(&self) -> bool {
        matches!(self.kind, Kind::Walked(_))
    }

    /// Models at these positions, ascending, of the cumulative distributions of w and of √w.
    pub(super) fn draw(
        &self,
        space: &Space,
        quadratic: &Quadratic,
        by_weight: &[f64],
        by_root: &[f64],
    ) -> (Vec<(Subset, f64)>, Vec<(Subset, f64)>) {
        match &self.kind {
            Kind::Walked(sums) => space::draw(space, quadratic, sums, by_weight, by_root),
            Kind::Listed(models) => (
                pick(models, by_weight, 1.0, self.log_total),
                pick(models, by_root, 0.5, self.log_root),
            ),
        }
    }
}

fn pick(models: &[(Subset, f64)], positions: &[f64], power: f64, total: f64) -> Vec<(Subset, f64)> {
    let (mut passed, mut k) = (0.0, 0);
    let mut drawn = Vec::with_capacity(positions.len());
    for &position in positions {
        while k + 1 < models.len() && passed + exp(power * models[k].1 - total) <= position {
            passed += exp(power * models[k].1 - total);
            k += 1;
        }
        drawn.extend(models.get(k));
    }
    drawn
}
