//! Gaussian models with normal priors: one round of statistics, then every model at every σ of a grid.
//!
//! Given σ the evidence of every model is known in closed form, and the sum over all of them is a walk at the
//! centre. What is left is an integral over log σ, by the trapezoidal rule with steps of half a standard
//! deviation: for a function as smooth as this one that is exact but for rounding.

use super::Finding;
use crate::combine::{Pool, Setting};
use crate::data::union;
use crate::engine::Session;
use crate::estimate::Estimate;
use crate::math::{LOG_2PI, Matrix, dot, log_sum_exp};
use crate::model::{Centred, Prior};
use crate::question::Statistics;
use crate::select::report::SelectDiagnostics;
use crate::select::weights::walk;
use crate::space::{self, Quadratic, Space, Subset, Sums};
use crate::{Error, Result};
use libm::{exp, log};
use rayon::prelude::*;
use std::sync::Arc;

/// How far below the highest node the integrand no longer counts, in nats.
const LOW: f64 = 32.0;

/// What rounding may do to a log evidence, in nats.
const ROUNDING: f64 = 1e-7;

/// The same for the likeliest model alone, when other peaks are looked for.
const NEGLIGIBLE: f64 = 45.0;

/// The most nodes of the grid, and of the scan for its peaks.
const MOST_NODES: usize = 20_000;
const SCAN: usize = 60;

/// Models that coefficients are averaged over: so many at each of so many nodes.
const AVERAGED: usize = 100;
const AT_NODES: usize = 8;

/// Whether this way suits the model.
pub(super) fn suits(setting: &Setting) -> bool {
    let model = &setting.model;
    setting.options.statistics && model.is_gaussian() && model.has_normal_coefficients()
}

/// All models; `None` where the space is too large to be walked through.
pub(super) fn select(
    session: &Session,
    setting: &Setting,
    space: &Space,
    top: usize,
) -> Result<Option<Finding>> {
    let Some(regression) = setting.model.regression() else { return Ok(None) };
    let (recipe, places) = union(&[regression.recipe()]);
    let question = Statistics { recipe: Arc::new(recipe), kernel: regression.kernel };
    let pool = Pool::found(session, std::iter::once(setting), question)?;
    let places = &places[0];
    let plane = Plane::new(setting, space, &pool.all, &places.columns, &places.offsets)?;
    let Some(grid) = plane.grid(space, top)? else { return Ok(None) };
    plane.found(space, &grid, top).map(Some)
}

/// Everything but σ.
struct Plane {
    observations: f64,
    /// X'X, X'y and y'y around the columns' means.
    gram: Matrix,
    cross: Vec<f64>,
    square: f64,
    /// What the priors add to precision and slope.
    prior_precision: Matrix,
    prior_slope: Vec<f64>,
    constant: f64,
    gain: Vec<f64>,
    /// The prior of log σ, or its value.
    log_sd: Prior,
    /// The intercept's number, what it is in place of: α = a − Σ mⱼβⱼ + level.
    level: Option<(usize, Vec<f64>, f64)>,
    /// The range of log σ: with all terms, and with none.
    range: (f64, f64),
}

/// A node of the grid.
struct GaussianNode {
    log_sd: f64,
    sums: Sums,
}

impl Plane {
    fn new(
        setting: &Setting,
        space: &Space,
        all: &Centred,
        columns: &[usize],
        offsets: &[usize],
    ) -> Result<Plane> {
        let model = &setting.model;
        let size = all.shifts.len() + 1;
        let gram_of_all = all.factor.transpose().product(&all.factor);
        // The outcome less offsets and coefficients that are held fixed, over [1, x − m, …, y − m].
        let mut outcome = vec![0.0; size];
        let take = |outcome: &mut Vec<f64>, place: usize, value: f64| {
            outcome[place + 1] -= value;
            outcome[0] -= value * all.shifts[place];
        };
        outcome[size - 1] = 1.0;
        outcome[0] = all.shifts[size - 2];
        offsets.iter().for_each(|&place| take(&mut outcome, place, 1.0));
        let mut free = Vec::new();
        for (number, (parameter, &place)) in model.coefficients().iter().zip(columns).enumerate() {
            match parameter.prior {
                Prior::Fixed { value } => take(&mut outcome, place, value),
                prior => free.push((number, place, prior)),
            }
        }
        let regression = model.regression().expect("a gaussian model is one of ours");
        let always = space.always();
        let intercept = (0..free.len())
            .find(|&j| regression.column(free[j].0).is_intercept() && always.contains(&j));
        let d = free.len();
        let mut ways = Matrix::zeros(d, size);
        for (j, &(_, place, _)) in free.iter().enumerate() {
            ways[(j, place + 1)] = 1.0;
            if intercept.is_none() {
                ways[(j, 0)] = all.shifts[place];
            }
        }
        let mut level = None;
        if let Some(a) = intercept {
            ways.row_mut(a).fill(0.0);
            ways[(a, 0)] = 1.0;
            let mut means: Vec<f64> = free.iter().map(|&(_, place, _)| all.shifts[place]).collect();
            means[a] = 0.0;
            level = Some((a, means, outcome[0]));
            // The intercept takes up whatever is the same in all rows.
            outcome[0] = 0.0;
        }
        let seen = ways.product(&gram_of_all);
        let gram = seen.product(&ways.transpose());
        let cross = seen.times(&outcome);
        let square = gram_of_all.quadratic(&outcome);
        let mut plane = Plane {
            observations: all.observations,
            gram,
            cross,
            square,
            prior_precision: Matrix::zeros(d, d),
            prior_slope: vec![0.0; d],
            constant: -0.5 * all.observations * LOG_2PI,
            gain: vec![0.0; d],
            log_sd: model.own_parameter().map_or(Prior::Fixed { value: 0.0 }, |p| p.prior),
            level,
            range: (0.0, 0.0),
        };
        for (j, &(_, _, prior)) in free.iter().enumerate() {
            let Prior::Normal { mean, sd } = prior else { continue };
            plane.add_prior(j, mean, 1.0 / (sd * sd));
        }
        let rest = |own: &[usize]| {
            let places: Vec<usize> = own.iter().map(|&j| free[j].1).collect();
            let mut taken: Vec<(usize, f64)> = offsets.iter().map(|&place| (place, 1.0)).collect();
            for (parameter, &place) in model.coefficients().iter().zip(columns) {
                taken.extend(parameter.prior.fixed().map(|value| (place, value)));
            }
            // The root of a sum of squares.
            log(all.gaussian(&places, &taken).rest()) - 0.5 * log(all.observations)
        };
        let all_of_them: Vec<usize> = (0..d).collect();
        let own: Vec<usize> = always.into_iter().filter(|&j| j < d).collect();
        plane.range = (rest(&all_of_them), rest(&own));
        Ok(plane)
    }

    fn add_prior(&mut self, j: usize, mean: f64, precision: f64) {
        self.gain[j] += 0.5 * log(precision);
        match &self.level {
            Some((a, means, level)) if *a == j => {
                // α = v'δ + level with v = 1 at a, −m elsewhere.
                let mut v: Vec<f64> = means.iter().map(|m| -m).collect();
                v[j] = 1.0;
                self.prior_precision.add_outer(precision, &v);
                let from = mean - level;
                self.prior_slope.iter_mut().zip(&v).for_each(|(s, v)| *s += precision * from * v);
                self.constant -= 0.5 * precision * from * from;
            }
            _ => {
                self.prior_precision[(j, j)] += precision;
                self.prior_slope[j] += precision * mean;
                self.gain[j] -= 0.5 * precision * mean * mean;
            }
        }
    }

    /// All models at one σ.
    fn at(&self, log_sd: f64) -> Quadratic {
        let weight = exp(-2.0 * log_sd);
        let mut precision = self.prior_precision.clone();
        precision.add_scaled(weight, &self.gram);
        let d = self.gain.len();
        let slope = (0..d).map(|j| weight * self.cross[j] + self.prior_slope[j]).collect();
        let constant = self.constant - self.observations * log_sd - 0.5 * weight * self.square
            + self.log_sd.log_density(log_sd);
        Quadratic { constant, precision, slope, gain: self.gain.clone() }
    }

    /// Coordinates of the space are those of all free parameters, of which log σ is the last and belongs to no
    /// model here.
    fn own(space: &Space, d: usize) -> Space {
        let mut own = space.clone();
        own.dim = d;
        own
    }

    fn grid(&self, space: &Space, top: usize) -> Result<Option<Vec<GaussianNode>>> {
        let space = &Plane::own(space, self.gain.len());
        let mut walk = walk(space);
        walk.top = (4 * top).max(64);
        let node = |log_sd: f64| -> Result<Option<GaussianNode>> {
            let sums = space::sum(space, &self.at(log_sd), &walk)?;
            Ok(sums.map(|sums| GaussianNode { log_sd, sums }))
        };
        if let Some(value) = self.log_sd.fixed() {
            return Ok(node(value)?.map(|node| vec![node]));
        }
        let step = 0.5 / (2.0 * self.observations.max(0.5)).sqrt();
        // Below that rounding errors of sums of squares count. Where all rows are fitted the range has no end.
        let floor = 0.5 * log(f64::EPSILON * self.square.max(f64::MIN_POSITIVE) / ROUNDING);
        let known = |end: f64| if end > floor { end } else { floor };
        let (low, high) = (known(self.range.0 - 20.0 * step), known(self.range.1 + 20.0 * step));
        let peaks = self.peaks(space, low, high, step);
        if peaks.is_empty() {
            return Ok(None);
        }
        let mut nodes: Vec<(i64, GaussianNode)> = Vec::new();
        let from = peaks[0].0;
        let mut best = f64::NEG_INFINITY;
        for (peak, _) in peaks {
            let start = ((peak - from) / step).round() as i64;
            for way in [1_i64, -1] {
                let mut k = if way == 1 { start } else { start - 1 };
                let mut falling = 0;
                loop {
                    if nodes.iter().any(|(known, _)| *known == k) {
                        break;
                    }
                    let Some(node) = node(from + k as f64 * step)? else { return Ok(None) };
                    let height = node.sums.log_total;
                    best = best.max(height);
                    nodes.push((k, node));
                    falling = if height < best - LOW { falling + 1 } else { 0 };
                    if falling == 3 {
                        break;
                    }
                    // Too much of it is where nothing can be computed.
                    if from + k as f64 * step < floor {
                        return Ok(None);
                    }
                    if nodes.len() > MOST_NODES {
                        return Err(Error::numeric(
                            "the posterior of log_sd is too wide to be summed up; give it a narrower prior",
                        )
                        .for_parameter("log_sd"));
                    }
                    k += way;
                }
            }
        }
        nodes.sort_by_key(|(k, _)| *k);
        Ok(Some(nodes.into_iter().map(|(_, node)| node).collect()))
    }

    /// Where the likeliest model peaks over log σ, the highest first, and how high.
    fn peaks(&self, space: &Space, low: f64, high: f64, step: f64) -> Vec<(f64, f64)> {
        let count = (((high - low) / (8.0 * step)).ceil() as usize).clamp(8, SCAN);
        let mut model = Subset::EMPTY;
        let mut scan: Vec<(f64, f64)> = Vec::new();
        for k in 0..=count {
            // From the small σ on, where most terms are in.
            let log_sd = low + (high - low) * k as f64 / count as f64;
            let quadratic = self.at(log_sd);
            let (best, height) = greedy(space, &quadratic, model);
            model = best;
            scan.push((log_sd, height));
        }
        let top = scan.iter().map(|s| s.1).fold(f64::NEG_INFINITY, f64::max);
        let mut peaks: Vec<(f64, f64)> = (0..scan.len())
            .filter(|&k| {
                let higher = |other: Option<usize>| {
                    other.and_then(|o| scan.get(o)).is_some_and(|o| o.1 > scan[k].1)
                };
                !higher(k.checked_sub(1)) && !higher(Some(k + 1)) && scan[k].1 > top - NEGLIGIBLE
            })
            .map(|k| scan[k])
            .collect();
        peaks.sort_by(|a, b| b.1.total_cmp(&a.1));
        peaks
    }

    fn found(&self, space: &Space, grid: &[GaussianNode], top: usize) -> Result<Finding> {
        let own = &Plane::own(space, self.gain.len());
        let step = if grid.len() > 1 { grid[1].log_sd - grid[0].log_sd } else { 1.0 };
        let heights: Vec<f64> = grid.iter().map(|node| node.sums.log_total).collect();
        let log_sum = log_sum_exp(&heights);
        let log_total = log_sum + log(step);
        let shares: Vec<f64> = heights.iter().map(|h| exp(h - log_sum)).collect();
        let over = |of: &dyn Fn(&Sums) -> f64| -> f64 {
            grid.iter().zip(&shares).map(|(node, share)| share * of(&node.sums)).sum()
        };
        let p = space.terms.len();
        let exactly = |value: f64| Estimate::new(value.clamp(0.0, 1.0), 0.0);
        let rests: Vec<f64> = grid.iter().map(|node| node.sums.log_rest).collect();
        let unseen = exp(log_sum_exp(&rests) - log_sum);
        // The likeliest models at any node, each summed over all of them.
        let mut candidates: Vec<Subset> =
            grid.iter().flat_map(|node| node.sums.top.iter().map(|(model, _)| *model)).collect();
        candidates.sort_unstable();
        candidates.dedup();
        let highest = grid.iter().max_by(|a, b| a.sums.log_total.total_cmp(&b.sums.log_total));
        let from = highest.map_or(0.0, |node| node.log_sd);
        let mut models: Vec<(Subset, f64)> = candidates
            .into_par_iter()
            .filter_map(|model| Some((model, self.evidence(own, &model, from, step)?)))
            .collect();
        let posterior =
            |(model, log_z): &(Subset, f64)| log_z + space.log_prior(model.len()) - log_total;
        models.sort_by(|a, b| posterior(b).total_cmp(&posterior(a)).then(a.0.cmp(&b.0)));
        models.truncate(top);
        let models: Vec<(Subset, Estimate, Option<Estimate>)> = models
            .iter()
            .map(|m| (m.0, exactly(exp(posterior(m))), Some(Estimate::new(m.1, 0.0))))
            .collect();
        let listed: f64 = models.iter().map(|m| m.1.value).sum();
        Ok(Finding {
            method: "statistics",
            inclusion: (0..p).map(|t| exactly(over(&|s| s.inclusion[t]))).collect(),
            sizes: (0..=p).map(|k| exactly(over(&|s| s.sizes[k]))).collect(),
            outside: exactly(1.0 - listed),
            unseen: exactly(unseen),
            log_normaliser: Some(Estimate::new(log_total, 0.0)),
            moments: Some(self.moments(space, grid, &shares)),
            diagnostics: SelectDiagnostics {
                models: grid.iter().map(|node| node.sums.visited).fold(0.0, f64::max),
                nodes: Some(grid.len()),
                ..SelectDiagnostics::default()
            },
            warnings: Vec::new(),
            jumps: Vec::new(),
            models,
        })
    }

    /// log p(y|model): over the model's own peak, which may be far from that of all models together.
    fn evidence(&self, own: &Space, model: &Subset, from: f64, step: f64) -> Option<f64> {
        let at = |k: i64| -> Option<f64> {
            let plane = self.at(from + k as f64 * step);
            plane.normal(own, model).map(|normal| normal.log_z)
        };
        if self.log_sd.fixed().is_some() {
            return at(0);
        }
        let (mut peak, mut height) = (0, at(0)?);
        // Strides that grow uphill and shrink at the top.
        let mut stride: i64 = 1;
        while stride != 0 {
            let found = at(peak + stride)?;
            if found > height {
                (peak, height, stride) = (peak + stride, found, stride * 2);
            } else if stride.abs() > 1 {
                stride /= -2;
            } else {
                // A single step either way is tried last.
                let other = at(peak - stride)?;
                if other <= height {
                    break;
                }
                (peak, height, stride) = (peak - stride, other, -2 * stride);
            }
            if peak.abs() > MOST_NODES as i64 {
                return None;
            }
        }
        let mut logs = vec![height];
        for way in [1, -1] {
            for k in 1..MOST_NODES as i64 {
                let found = at(peak + way * k)?;
                logs.push(found);
                if found < height - LOW {
                    break;
                }
            }
        }
        Some(log_sum_exp(&logs) + log(step))
    }

    /// Per parameter, over the models that have it: their share, and its first and second moments times that.
    fn moments(
        &self,
        space: &Space,
        grid: &[GaussianNode],
        shares: &[f64],
    ) -> Vec<(f64, f64, f64)> {
        let own = &Plane::own(space, self.gain.len());
        let mut moments = vec![(0.0, 0.0, 0.0); space.dim];
        let mut add = |j: usize, weight: f64, mean: f64, variance: f64| {
            let (w, first, second) = moments[j];
            moments[j] =
                (w + weight, first + weight * mean, second + weight * (variance + mean * mean));
        };
        // Nodes by their share of the integral.
        let mut passed = 0.0;
        let mut next = 0.5 / AT_NODES as f64;
        for (node, share) in grid.iter().zip(shares) {
            passed += share;
            let mut here = 0.0;
            while passed > next {
                here += 1.0 / AT_NODES as f64;
                next += 1.0 / AT_NODES as f64;
            }
            if space.dim > self.gain.len() {
                add(space.dim - 1, *share, node.log_sd, 0.0);
            }
            if here == 0.0 {
                continue;
            }
            let quadratic = self.at(node.log_sd);
            let positions: Vec<f64> =
                (0..AVERAGED).map(|k| (k as f64 + 0.5) / AVERAGED as f64).collect();
            let (drawn, _) = space::draw(own, &quadratic, &node.sums, &positions, &[]);
            for (model, _) in drawn {
                let Some(normal) = quadratic.normal(own, &model) else { continue };
                let weight = here / AVERAGED as f64;
                let covariance = normal.factor.inverse();
                for (i, &j) in normal.coordinates.iter().enumerate() {
                    match &self.level {
                        Some((a, means, level)) if *a == j => {
                            let ways: Vec<f64> = normal
                                .coordinates
                                .iter()
                                .map(|&k| if k == j { 1.0 } else { -means[k] })
                                .collect();
                            let mean = dot(&ways, &normal.mean) + level;
                            add(j, weight, mean, covariance.quadratic(&ways));
                        }
                        _ => add(j, weight, normal.mean[i], covariance[(i, i)]),
                    }
                }
            }
        }
        moments
    }
}

/// The likeliest model within reach of one by taking in or leaving out single terms, and log w of it.
fn greedy(space: &Space, quadratic: &Quadratic, from: Subset) -> (Subset, f64) {
    let weight = |model: &Subset| {
        let found = quadratic.normal(space, model);
        found.map_or(f64::NEG_INFINITY, |n| n.log_z + space.log_prior(model.len()))
    };
    let (mut model, mut height) = (from, weight(&from));
    loop {
        let flips = (0..space.terms.len()).into_par_iter().filter_map(|t| {
            let other = if model.contains(t) { model.without(t) } else { model.with(t) };
            space.allows(&other).then(|| (other, weight(&other)))
        });
        let best = flips.collect::<Vec<_>>().into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        match best {
            Some((other, better)) if better > height => (model, height) = (other, better),
            _ => return (model, height),
        }
    }
}
