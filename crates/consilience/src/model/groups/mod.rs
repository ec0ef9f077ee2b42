//! The likelihood of rows whose groups have effects of their own, which are integrated out group by group.
//!
//! A group's likelihood is ∫ Π p(yᵢ|ηᵢ + zᵢ'Lv) φ(v) dv, where LL' is the effects' covariance. It is computed by
//! Gauss–Hermite quadrature around the integrand's mode, in units of its curvature there (`kernel/effects/`).

mod law;
mod spread;

use super::{LogLikelihood, Model, chunk_values, refuse_outcomes};
use crate::data::{Effects, ShardData};
use crate::kernel::{EffectFamily, EffectPoint, EffectRows, NodeRule, WantedSlopes};
use crate::math::hermite::gauss_hermite;
use crate::math::{Compensated, LOG_2PI};
use crate::target::Expansion;
use crate::{Error, Result};
use libm::log;
use rayon::prelude::*;
use spread::EffectSpread;
use std::ops::Range;

pub use law::law_of;

/// log p(y_s|θ) for θ = the free coefficients, the family's own parameter if it has one and it is free, then those
/// of the effects.
#[derive(Debug)]
pub struct Groups {
    family: EffectFamily,
    observations: f64,
    /// Free coefficients.
    width: usize,
    /// Whether the family has a parameter of its own.
    has_own: bool,
    /// All parameters beside the coefficients, where they are held fixed.
    fixed: Vec<Option<f64>>,
    rows: EffectRows,
    /// What stands in predictors whatever θ is; less the outcome in gaussian models.
    offsets: Vec<f64>,
    /// Distinct outcomes and their weights, for what depends on them and the own parameter alone.
    outcomes: Vec<(f64, f64)>,
    /// The rows of each group.
    groups: Vec<Range<usize>>,
    rule: NodeRule,
    /// What outcomes add whatever θ is.
    constant: f64,
}

/// θ taken apart.
struct GroupPoint<'a> {
    beta: &'a [f64],
    own: f64,
    spread: EffectSpread,
}

impl Groups {
    /// The likelihood of a model on a shard's rows, which all stay in memory. An outcome that the family cannot have
    /// is an error that names its place.
    pub fn new(model: &Model, data: &ShardData) -> Result<Groups> {
        let regression = model.regression().ok_or_else(|| Error::numeric("no regression"))?;
        let family = regression.family;
        let law = law_of(family)?;
        let recipe = regression.recipe();
        let effects: &Effects = recipe.effects.as_ref().ok_or_else(|| {
            Error::numeric("a model without random effects has another likelihood")
        })?;
        let table = data.table()?;
        let design = recipe.design(&table)?;
        refuse_outcomes(family, &recipe.response.text, &design, &table)?;
        let (numbers, z) = (effects.groups(&table)?, effects.columns(&table)?);
        let weight = |i: usize| design.weights.as_ref().map_or(1.0, |w| w[i]);
        let mut order: Vec<usize> = (0..table.rows()).filter(|&i| weight(i) > 0.0).collect();
        order.sort_by_key(|&i| numbers[i]);
        let held: Vec<Option<f64>> = model.coefficients().iter().map(|p| p.prior.fixed()).collect();
        let width = held.iter().filter(|held| held.is_none()).count();
        let mut rows = EffectRows::new(law, width, regression.kernel);
        let (mut offsets, mut outcomes) = (Vec::new(), Vec::new());
        let (mut constant, mut observations) = (Compensated::default(), Compensated::default());
        for &i in &order {
            let (y, weight) = (design.response[i], weight(i));
            let trials = design.second.as_ref().map_or(1.0, |s| s[i]);
            let mut offset = design.offset.as_ref().map_or(0.0, |o| o[i]);
            for (column, held) in design.columns.iter().zip(&held) {
                offset += held.map_or(0.0, |value| value * column[i]);
            }
            if law == EffectFamily::Gaussian {
                offset -= y;
            }
            let free = design.columns.iter().zip(&held).filter(|(_, held)| held.is_none());
            let z = [z[0][i], z.get(1).map_or(0.0, |z| z[i])];
            rows.push(weight * trials, weight * y, z, free.map(|(column, _)| column[i]));
            constant.add(weight * law::constant(law, y, trials));
            observations.add(weight * trials);
            offsets.push(offset);
            outcomes.push((y, weight));
        }
        let mut groups: Vec<Range<usize>> = Vec::new();
        for (place, &i) in order.iter().enumerate() {
            match groups.last_mut() {
                Some(last) if numbers[order[place - 1]] == numbers[i] => last.end = place + 1,
                _ => groups.push(place..place + 1),
            }
        }
        outcomes.sort_by(|a, b| a.0.total_cmp(&b.0));
        outcomes.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0.0 };
            same
        });
        Ok(Groups {
            family: law,
            observations: observations.value(),
            width,
            has_own: !family.owns().is_empty(),
            fixed: model.own_parameters().iter().map(|p| p.prior.fixed()).collect(),
            rows,
            offsets,
            outcomes,
            groups,
            rule: NodeRule::new(&nodes(law, effects), effects.count()),
            constant: constant.value(),
        })
    }

    fn point<'a>(&self, theta: &'a [f64]) -> GroupPoint<'a> {
        let (beta, free) = theta.split_at(self.width);
        let mut free = free.iter();
        let all: Vec<f64> = (self.fixed.iter())
            .map(|fixed| fixed.or_else(|| free.next().copied()).unwrap_or(0.0))
            .collect();
        let (own, effects) = all.split_at(usize::from(self.has_own));
        // Beyond these it is not told apart.
        let own = own.first().copied().unwrap_or(0.0).clamp(-300.0, 300.0);
        GroupPoint { beta, own, spread: EffectSpread::new(effects) }
    }

    /// The predictors of a group's rows without the effects.
    fn predictors(&self, group: &Range<usize>, beta: &[f64]) -> Vec<f64> {
        let predictor = |i: usize| {
            let mut sum = self.offsets[i];
            self.rows.columns(i).iter().zip(beta).for_each(|(x, b)| sum += x * b);
            sum
        };
        group.clone().map(predictor).collect()
    }

    fn value(&self, theta: &[f64]) -> f64 {
        let at = self.point(theta);
        let mut sum = Compensated::default();
        for rows in &self.groups {
            let eta = self.predictors(rows, at.beta);
            let there = EffectPoint { rows, eta: &eta, own: at.own, factor: at.spread.factor() };
            match self.rows.place(&self.rule, there) {
                Some(placed) => sum.add(placed.value),
                None => return f64::NEG_INFINITY,
            }
        }
        sum.value() + self.constant + self.own_part(&at)[0]
    }

    /// What outcomes add by the family's own parameter alone, with two derivatives.
    fn own_part(&self, at: &GroupPoint) -> [f64; 3] {
        law::own_part(self.family, &self.outcomes, at.own)
    }

    /// Value, gradient and, if wanted, Hessian in all parameters, those held fixed among them.
    fn sums(&self, theta: &[f64], hessian: bool) -> Option<Expansion> {
        let at = self.point(theta);
        let each = |group: &Range<usize>| self.group_sums(group, &at, hessian);
        let parts: Option<Vec<Expansion>> = match self.offsets.len() > 10_000 {
            true => self.groups.par_iter().map(each).collect(),
            false => self.groups.iter().map(each).collect(),
        };
        let mut all = Expansion::zeros(self.width + self.fixed.len());
        let mut value = Compensated::default();
        for part in parts? {
            value.add(part.value);
            all.add(&part);
        }
        let own = self.own_part(&at);
        all.value = value.value() + self.constant + own[0];
        if self.has_own {
            all.gradient[self.width] += own[1];
            all.hessian[(self.width, self.width)] += own[2];
        }
        Some(all)
    }

    fn group_sums(&self, rows: &Range<usize>, at: &GroupPoint, hessian: bool) -> Option<Expansion> {
        let eta = self.predictors(rows, at.beta);
        let there = EffectPoint { rows, eta: &eta, own: at.own, factor: at.spread.factor() };
        let placed = self.rows.place(&self.rule, there)?;
        let moves = at.spread.moves(&placed.v);
        let wanted = WantedSlopes { own: self.has_own, effects: at.spread.parameters(), hessian };
        Some(self.rows.derive(there, &placed, &moves, wanted))
    }

    /// The parameters that are free, among all.
    fn free(&self) -> Vec<usize> {
        let rest = (0..self.fixed.len()).filter(|&k| self.fixed[k].is_none());
        (0..self.width).chain(rest.map(|k| self.width + k)).collect()
    }
}

/// Nodes for one or two effects. A gaussian integrand is a normal density, of whose derivatives three nodes know all.
fn nodes(family: EffectFamily, effects: &Effects) -> Vec<([f64; 2], f64)> {
    let count = if family == EffectFamily::Gaussian { 3 } else { effects.nodes() };
    let rule = gauss_hermite(count as usize);
    let log_weight = |(x, w): &(f64, f64)| log(*w) + 0.5 * (x * x + LOG_2PI);
    let line = || rule.iter().map(|node| (node.0, log_weight(node)));
    if effects.count() == 1 {
        return line().map(|(x, l)| ([x, 0.0], l)).collect();
    }
    line().flat_map(|(x, l)| line().map(move |(y, m)| ([x, y], l + m))).collect()
}

impl LogLikelihood for Groups {
    fn dim(&self) -> usize {
        self.free().len()
    }

    fn observations(&self) -> f64 {
        self.observations
    }

    fn values(&self, thetas: &[&[f64]], out: &mut [f64]) {
        let work = |thetas: &[&[f64]], out: &mut [f64]| {
            out.iter_mut().zip(thetas).for_each(|(out, theta)| *out = self.value(theta));
        };
        out.copy_from_slice(&chunk_values(thetas, true, work));
    }

    fn gradient(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let Some(all) = self.sums(theta, false) else {
            gradient.fill(0.0);
            return f64::NEG_INFINITY;
        };
        gradient.iter_mut().zip(self.free()).for_each(|(g, j)| *g = all.gradient[j]);
        all.value
    }

    fn expand(&self, theta: &[f64]) -> Expansion {
        let mut out = Expansion::zeros(theta.len());
        let Some(all) = self.sums(theta, true) else {
            out.value = f64::NEG_INFINITY;
            return out;
        };
        out.value = all.value;
        for (i, j) in self.free().into_iter().enumerate() {
            out.gradient[i] = all.gradient[j];
            for (k, l) in self.free().into_iter().enumerate() {
                out.hessian[(i, k)] = all.hessian[(j, l)];
            }
        }
        out
    }
}
