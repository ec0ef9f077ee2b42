//! Gaussian models under a prior of all coefficients together: one round of statistics, then every model by itself.
//!
//! Such a prior is in the metric of a model's own columns, so that a model's evidence depends on nothing but its number
//! of coefficients and on what they explain. Sums of squares come of a walk through all models, in which leaving a term
//! out drops its columns and taking it in is a Schur complement. Where g has a prior, the integral over g is a smooth
//! function of the share that is left unexplained, one for each number of coefficients: it is tabulated in
//! log(1 + n·(−log share)) and interpolated; the models that are listed are integrated by themselves.

use super::Finding;
use crate::combine::{Pool, Setting, gaussian_of, ground_of, independent_columns};
use crate::data::union;
use crate::engine::Session;
use crate::estimate::Estimate;
use crate::estimate::zellner::{LevelPriors, Zellner, ZellnerSums, log_evidence};
use crate::math::{dot, log_sum_exp};
use crate::model::{AroundMeans, GPrior};
use crate::question::Statistics;
use crate::select::report::SelectDiagnostics;
use crate::space::{Space, Subset};
use crate::{Error, Result};
use libm::{exp, log, log1p};
use rayon::prelude::*;
use std::sync::Arc;

/// The most models that are walked through.
pub(super) const MOST: f64 = 4_194_304.0;

/// Models that coefficients are averaged over.
const AVERAGED: usize = 100;

/// Points of a table, and how many of them an interpolation takes.
const POINTS: usize = 400;
const TAKEN: usize = 6;

/// All models of a space.
pub(super) fn select(
    session: &Session,
    setting: &Setting,
    space: &Space,
    top: usize,
) -> Result<Finding> {
    let model = &setting.model;
    let (Some(regression), Some((group, scale))) = (model.regression(), setting.joint.group())
    else {
        return Err(Error::numeric("there is no prior of all coefficients together"));
    };
    let (recipe, places) = union(&[regression.recipe()]);
    let question = Statistics { recipe: Arc::new(recipe), kernel: regression.kernel };
    let pool = Pool::found(session, std::iter::once(setting), question)?;
    let (ground, intercept) = ground_of(model, &setting.joint)?;
    let rows = gaussian_of(&pool.all, model, &places[0]).around_means(intercept);
    independent_columns(model, group, &rows, intercept)?;
    let space_of_rows = TermColumns::new(space, intercept, rows);
    LeafWalk { space, columns: &space_of_rows, ground, group, scale }.found(top)
}

/// The columns around their means, by the terms that own them.
struct TermColumns {
    rows: AroundMeans,
    /// Those that every model has, and those of each term, by their numbers among the columns.
    always: Vec<usize>,
    terms: Vec<Vec<usize>>,
    intercept: usize,
}

impl TermColumns {
    fn new(space: &Space, intercept: usize, rows: AroundMeans) -> TermColumns {
        let (count, number) = (rows.image.len(), |j: usize| if j > intercept { j - 1 } else { j });
        // log σ has a number too, and no column.
        let own = space.always().into_iter().filter(|&j| j != intercept).map(number);
        let terms = space.terms.iter().map(|t| t.columns.iter().map(|&j| number(j)).collect());
        let always = own.filter(|&j| j < count).collect();
        TermColumns { always, terms: terms.collect(), intercept, rows }
    }

    fn of(&self, model: &Subset) -> Vec<usize> {
        let mut all = self.always.clone();
        all.extend(model.iter().flat_map(|t| self.terms[t].iter().copied()));
        all.sort_unstable();
        all
    }
}

/// A model's number of coefficients, and what they explain.
type Leaf = (Subset, u32, f64);

struct LeafWalk<'a> {
    space: &'a Space,
    columns: &'a TermColumns,
    ground: LevelPriors,
    group: GPrior,
    scale: f64,
}

impl LeafWalk<'_> {
    fn sums(&self, coefficients: usize, explained: f64) -> ZellnerSums {
        let rows = &self.columns.rows;
        let total = dot(&rows.image, &rows.image) + rows.rest * rows.rest;
        ZellnerSums {
            observations: rows.observations,
            coefficients,
            level: rows.level,
            explained,
            residual: (total - explained).max(rows.rest * rows.rest),
        }
    }

    fn log_evidence(&self, sums: &ZellnerSums) -> Result<f64> {
        let spread = self.group.spread(sums.observations, sums.coefficients, self.scale);
        log_evidence(&self.ground, sums, &spread).map(|(value, _)| value)
    }

    /// Every model with what its columns explain.
    fn leaves(&self) -> Vec<Leaf> {
        let rows = &self.columns.rows;
        // Columns of length 1, in the order in which they are decided on, and the outcome after them.
        let order: Vec<usize> = self
            .columns
            .always
            .iter()
            .chain(self.columns.terms.iter().flatten())
            .copied()
            .collect();
        let column = |j: usize| -> Vec<f64> {
            let own: Vec<f64> = (0..rows.image.len()).map(|i| rows.root[(i, j)]).collect();
            let length = dot(&own, &own).sqrt();
            own.into_iter().map(|x| x / length).collect()
        };
        let mut all: Vec<Vec<f64>> = order.iter().map(|&j| column(j)).collect();
        all.push(rows.image.clone());
        let size = all.len();
        let mut start = vec![0.0; size * size];
        for i in 0..size {
            (0..size).for_each(|j| start[i * size + j] = dot(&all[i], &all[j]));
        }
        let mut explained = 0.0;
        for k in 0..self.columns.always.len() {
            (start, explained) = taken(&start, size - k, explained);
        }
        let mut out = Vec::new();
        let coefficients = self.columns.always.len();
        self.step(
            0,
            &start,
            size - coefficients,
            (Subset::EMPTY, coefficients as u32, explained),
            &mut out,
        );
        out
    }

    /// Decides on a term and all after it.
    fn step(&self, term: usize, left: &[f64], size: usize, so_far: Leaf, out: &mut Vec<Leaf>) {
        let (model, coefficients, explained) = so_far;
        let Some(own) = self.columns.terms.get(term) else {
            // A prior may rule sizes out.
            if self.space.log_prior(model.len()) > f64::NEG_INFINITY {
                out.push(so_far);
            }
            return;
        };
        let width = own.len();
        let rest = size - width;
        let dropped: Vec<f64> = (width..size)
            .flat_map(|i| left[i * size + width..(i + 1) * size].iter().copied())
            .collect();
        self.step(term + 1, &dropped, rest, so_far, out);
        if self.space.welcomes(&model, term) {
            let (mut with, mut gained) = taken(left, size, explained);
            for k in 1..width {
                (with, gained) = taken(&with, size - k, gained);
            }
            let so_far = (model.with(term), coefficients + width as u32, gained);
            self.step(term + 1, &with, rest, so_far, out);
        }
    }

    /// Per number of coefficients, log p(y) as a function of what is explained.
    fn tables(&self, leaves: &[Leaf]) -> Result<Vec<Option<GTable>>> {
        let most = leaves.iter().map(|leaf| leaf.1 as usize).max().unwrap_or(0);
        let range = |p: usize| {
            let own = leaves.iter().filter(|leaf| leaf.1 as usize == p).map(|leaf| leaf.2);
            own.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)))
        };
        let ranges: Vec<(f64, f64)> = (0..=most).map(range).collect();
        let table = |(p, (low, high)): (usize, (f64, f64))| match low.is_finite() {
            true => GTable::new(self, p, low, high).map(Some),
            false => Ok(None),
        };
        ranges.into_par_iter().enumerate().map(table).collect()
    }

    fn found(&self, top: usize) -> Result<Finding> {
        let mut leaves = self.leaves();
        leaves.sort_unstable_by_key(|leaf| leaf.0);
        let tables = match self.group.spread(self.columns.rows.observations, 1, self.scale).fixed()
        {
            Some(_) => Vec::new(),
            None => self.tables(&leaves)?,
        };
        let posterior = |leaf: &Leaf| -> Result<f64> {
            let sums = self.sums(leaf.1 as usize, leaf.2);
            let value = match tables.get(leaf.1 as usize).and_then(Option::as_ref) {
                Some(table) => table.at(&sums),
                None => self.log_evidence(&sums)?,
            };
            Ok(value + self.space.log_prior(leaf.0.len()))
        };
        let logs: Vec<f64> = leaves.par_iter().map(posterior).collect::<Result<_>>()?;
        let log_total = log_sum_exp(&logs);
        let p = self.space.terms.len();
        let (mut inclusion, mut sizes) = (vec![0.0; p], vec![0.0; p + 1]);
        for (leaf, log_p) in leaves.iter().zip(&logs) {
            let share = exp(log_p - log_total);
            leaf.0.iter().for_each(|t| inclusion[t] += share);
            sizes[leaf.0.len()] += share;
        }
        let mut order: Vec<usize> = (0..leaves.len()).collect();
        order.sort_by(|&a, &b| logs[b].total_cmp(&logs[a]).then(leaves[a].0.cmp(&leaves[b].0)));
        let exactly = |value: f64| Estimate::new(value.clamp(0.0, 1.0), 0.0);
        let mut models = Vec::new();
        for &k in order.iter().take(top) {
            let sums = self.sums(leaves[k].1 as usize, leaves[k].2);
            let evidence = Estimate::new(self.log_evidence(&sums)?, 0.0);
            models.push((leaves[k].0, exactly(exp(logs[k] - log_total)), Some(evidence)));
        }
        let listed: f64 = models.iter().map(|m| m.1.value).sum();
        let likely: Vec<(Subset, f64)> =
            order.iter().take(AVERAGED).map(|&k| (leaves[k].0, exp(logs[k] - log_total))).collect();
        Ok(Finding {
            method: "statistics",
            inclusion: inclusion.into_iter().map(exactly).collect(),
            sizes: sizes.into_iter().map(exactly).collect(),
            outside: exactly(1.0 - listed),
            unseen: Estimate::ZERO,
            log_normaliser: Some(Estimate::new(log_total, 0.0)),
            moments: Some(self.moments(&likely)?),
            diagnostics: SelectDiagnostics {
                models: leaves.len() as f64,
                ..SelectDiagnostics::default()
            },
            warnings: Vec::new(),
            jumps: Vec::new(),
            models,
        })
    }

    /// Per parameter, over these models: their share, and its first and second moments times that.
    fn moments(&self, models: &[(Subset, f64)]) -> Result<Vec<(f64, f64, f64)>> {
        let each = |(model, share): &(Subset, f64)| -> Result<Vec<(usize, f64, f64, f64)>> {
            let columns = self.columns.of(model);
            let rows = self.columns.rows.part(&columns);
            let spread = self.group.spread(rows.observations, columns.len(), self.scale);
            let intercept = columns.iter().filter(|&&j| j < self.columns.intercept).count();
            let found = Zellner::new(rows, intercept, spread, self.ground)?;
            let mut numbers: Vec<usize> = columns
                .iter()
                .map(|&j| if j < self.columns.intercept { j } else { j + 1 })
                .collect();
            numbers.insert(intercept, self.columns.intercept);
            if found.mean.len() > numbers.len() {
                numbers.push(self.space.dim - 1);
            }
            let moment =
                |(i, j): (usize, usize)| (j, *share, found.mean[i], found.covariance[(i, i)]);
            Ok(numbers.into_iter().enumerate().map(moment).collect())
        };
        let all: Vec<_> = models.par_iter().map(each).collect::<Result<_>>()?;
        let mut moments = vec![(0.0, 0.0, 0.0); self.space.dim];
        for (j, share, mean, variance) in all.into_iter().flatten() {
            let (w, first, second) = moments[j];
            moments[j] =
                (w + share, first + share * mean, second + share * (variance + mean * mean));
        }
        Ok(moments)
    }
}

/// Takes in the first of these columns: what is left of the others, and what all that are in explain.
fn taken(left: &[f64], size: usize, explained: f64) -> (Vec<f64>, f64) {
    let pivot = left[0];
    let mut out = Vec::with_capacity((size - 1) * (size - 1));
    for i in 1..size {
        let factor = left[i * size] / pivot;
        let row = &left[i * size + 1..(i + 1) * size];
        out.extend(row.iter().zip(&left[1..size]).map(|(x, first)| x - factor * first));
    }
    let along = left[size - 1];
    (out, explained + along * along / pivot)
}

/// A smooth function of what is left unexplained, less what is a straight line in its logarithm.
struct GTable {
    from: f64,
    step: f64,
    values: Vec<f64>,
}

impl GTable {
    fn new(walk: &LeafWalk<'_>, p: usize, low: f64, high: f64) -> Result<GTable> {
        let place = |explained: f64| GTable::place(&walk.sums(p, explained));
        let (from, to) = (place(low), place(high));
        let step = ((to - from) / POINTS as f64).max(1e-9);
        let total = walk.sums(p, 0.0).residual;
        let n = walk.columns.rows.observations;
        let value = |k: usize| -> Result<f64> {
            let t = from + k as f64 * step;
            let share = exp(-(exp(t) - 1.0) / n);
            let sums = ZellnerSums {
                residual: share * total,
                explained: (1.0 - share) * total,
                ..walk.sums(p, 0.0)
            };
            Ok(walk.log_evidence(&sums)? - line(&sums))
        };
        let values = (0..=POINTS).map(value).collect::<Result<_>>()?;
        Ok(GTable { from, step, values })
    }

    fn place(sums: &ZellnerSums) -> f64 {
        let share = sums.residual / (sums.residual + sums.explained);
        log1p(-sums.observations * log(share))
    }

    /// By a polynomial through the points around.
    fn at(&self, sums: &ZellnerSums) -> f64 {
        let x = (GTable::place(sums) - self.from) / self.step;
        let first = (x - 0.5 * TAKEN as f64 + 1.0).floor();
        let first = first.clamp(0.0, (self.values.len() - TAKEN) as f64);
        let (start, x) = (first as usize, x - first);
        let mut value = 0.0;
        for i in 0..TAKEN {
            let mut weight = 1.0;
            for j in (0..TAKEN).filter(|&j| j != i) {
                weight *= (x - j as f64) / (i as f64 - j as f64);
            }
            value += weight * self.values[start + i];
        }
        value + line(sums)
    }
}

fn line(sums: &ZellnerSums) -> f64 {
    -0.5 * (sums.observations - 1.0) * log(sums.residual)
}
