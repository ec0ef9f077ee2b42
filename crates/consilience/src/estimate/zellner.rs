//! The evidence of a Gaussian model under Zellner's g-prior or a mixture of them.
//!
//! In columns around their means (n observations, p coefficients, level ȳ, explained and residual sums of squares E
//! and R), with the prior N(0, gσ²(X'X)⁻¹) of the coefficients,
//!
//! ```text
//! log p(y|σ, g) = −n/2 log 2πσ² − p/2 log(1 + g) − (R + E/(1 + g))/2σ² + log ∫ e^(−n(ȳ − α)²/2σ²) p(α) dα
//! ```
//!
//! Under flat priors of α and log σ the integral over σ is a gamma function, and against the model without columns
//! what is left is (1 + g)^((n−1−p)/2) (1 + g R/(R + E))^(−(n−1)/2), as in Liang and others (2008). A prior of g is
//! integrated over by adaptive quadrature, and so is log σ where its prior is not flat.

use super::in_sigma::inverse;
use super::linear::{rounding, shared_out};
use super::{Estimate, Weighted};
use crate::math::line::{self, LineIntegral, LineNode};
use crate::math::proposal::Kinship;
use crate::math::ziggurat::normal;
use crate::math::{LOG_2PI, Matrix, Stream, dot};
use crate::model::{AroundMeans, GSpread, Prior};
use crate::{Error, Result};
use libm::{exp, lgamma, log, log1p};
use rand::RngExt;

/// The relative accuracy of the integrals, inner and outer.
const ACCURACY: (f64, f64) = (1e-12, 1e-11);

/// The priors of a model's level and of log σ; `None` is flat.
#[derive(Debug, Clone, Copy)]
pub struct LevelPriors {
    /// Of the outcome's level where all columns are at their means: normal, or flat.
    pub level: Option<(f64, f64)>,
    /// Of log σ, which may be held fixed.
    pub log_sd: Option<Prior>,
}

/// What log p(y|g) depends on.
#[derive(Debug, Clone, Copy)]
pub struct ZellnerSums {
    /// n.
    pub observations: f64,
    /// p.
    pub coefficients: usize,
    /// ȳ.
    pub level: f64,
    /// E.
    pub explained: f64,
    /// R.
    pub residual: f64,
}

impl ZellnerSums {
    /// R + E/(1 + g).
    fn misfit(&self, g: f64) -> f64 {
        self.residual + self.explained / (1.0 + g)
    }
}

impl LevelPriors {
    fn is_flat(&self) -> bool {
        self.level.is_none() && self.log_sd.is_none()
    }

    /// log p(y, log σ | g) but for what does not depend on σ.
    fn log_density(&self, sums: &ZellnerSums, misfit: f64, u: f64) -> f64 {
        let n = sums.observations;
        let noise = exp(2.0 * u);
        let level = match self.level {
            None => 0.0,
            Some((mean, sd)) => {
                let variance = sd * sd + noise / n;
                let off = sums.level - mean;
                -0.5 * (LOG_2PI + log(variance) + off * off / variance)
            }
        };
        let prior = self.log_sd.map_or(0.0, |prior| prior.log_density(u));
        let misfit = if misfit == 0.0 { 0.0 } else { 0.5 * misfit / noise };
        -(n - 1.0) * u - misfit + level + prior
    }

    /// The integral over log σ; nodes are only there if it is not in closed form, or `nodes` asks for them.
    fn over_sigma(&self, sums: &ZellnerSums, g: f64) -> Option<LineIntegral> {
        let misfit = sums.misfit(g);
        let n = sums.observations;
        if let Some(Prior::Fixed { value }) = self.log_sd {
            let log_integral = self.log_density(sums, misfit, value);
            let node = LineNode { x: value, cell: (value, value), height: log_integral };
            return Some(LineIntegral { log_integral, error: 0.0, nodes: vec![node] });
        }
        let top = 0.5 * log(misfit / (n - 1.0).max(1.0));
        let width = 1.0 / (2.0 * n).sqrt();
        let mut mesh: Vec<f64> = (-24..=24).map(|k| top + 0.5 * width * f64::from(k)).collect();
        let mut breaks = Vec::new();
        if let Some(prior) = self.log_sd {
            let (centre, scale) = (prior.centre(), prior.spread());
            breaks.push(centre);
            mesh.extend((-16..=16).map(|k| centre + 0.5 * scale * f64::from(k)));
            // Between the two it falls from one to the other.
            mesh.extend((1..64).map(|k| top + (centre - top) * f64::from(k) / 64.0));
        }
        if let Some((_, sd)) = self.level {
            let turn = log(sd) + 0.5 * log(n);
            mesh.extend((-8..=8).map(|k| turn + 0.5 * f64::from(k)));
            let off = (sums.level - self.level.map_or(0.0, |l| l.0)).abs();
            let turn = 0.5 * log(misfit / n + off * off);
            mesh.extend((-8..=8).map(|k| turn + 0.25 * f64::from(k)));
        }
        mesh.retain(|u| u.is_finite());
        mesh.sort_unstable_by(f64::total_cmp);
        mesh.dedup();
        line::integrate(&|u| self.log_density(sums, misfit, u), &mesh, &breaks, ACCURACY.0)
    }

    /// log p(y|g): −∞ where there is none.
    pub fn log_evidence(&self, sums: &ZellnerSums, g: f64) -> f64 {
        let n = sums.observations;
        let inner = match self.is_flat() {
            true => {
                let half = 0.5 * (n - 1.0);
                lgamma(half) - half * log(0.5 * sums.misfit(g)) - std::f64::consts::LN_2
            }
            false => match self.over_sigma(sums, g) {
                Some(line) => line.log_integral,
                None => return f64::NEG_INFINITY,
            },
        };
        inner + outside(sums, g)
    }
}

/// What of log p(y, log σ|g) does not depend on σ.
fn outside(sums: &ZellnerSums, g: f64) -> f64 {
    let n = sums.observations;
    -0.5 * (n - 1.0) * LOG_2PI - 0.5 * log(n) - 0.5 * sums.coefficients as f64 * log1p(g)
}

/// The integral over g; `None` where it is given or there is nothing that it scales.
fn over_g(
    ground: &LevelPriors,
    sums: &ZellnerSums,
    spread: &GSpread,
) -> Option<Result<LineIntegral>> {
    if spread.fixed().is_some() || sums.coefficients == 0 {
        return None;
    }
    let (p, n) = (sums.coefficients as f64, sums.observations);
    // Where the likelihood of g is highest, and where the prior turns.
    let f = sums.explained / p / (sums.residual / (n - 1.0 - p).max(1.0));
    let f = if f.is_finite() { f } else { 1.0 };
    let mut mesh: Vec<f64> = (-40..=80).map(|k| 0.5 * f64::from(k)).collect();
    let top = spread.v((f - 1.0).max(1e-2));
    mesh.extend((-20..=20).map(|k| top + 0.25 * f64::from(k)));
    mesh.sort_unstable_by(f64::total_cmp);
    mesh.dedup();
    let g = |v: f64| {
        let density = spread.log_density(v);
        if density == f64::NEG_INFINITY {
            return density;
        }
        density + ground.log_evidence(sums, spread.g(v))
    };
    let line = line::integrate(&g, &mesh, &[], ACCURACY.1);
    let fine =
        |line: LineIntegral| (line.log_integral.is_finite() && line.error < 1e-4).then_some(line);
    Some(line.and_then(fine).ok_or_else(no_integral))
}

/// log p(y) under a g-prior or a mixture, and its relative error.
pub fn log_evidence(
    ground: &LevelPriors,
    sums: &ZellnerSums,
    spread: &GSpread,
) -> Result<(f64, f64)> {
    match over_g(ground, sums, spread) {
        Some(line) => line.map(|line| (line.log_integral, line.error)),
        None => {
            let value = ground.log_evidence(sums, spread.fixed().unwrap_or(0.0));
            if value.is_finite() { Ok((value, 0.0)) } else { Err(no_integral()) }
        }
    }
}

/// Where the coefficients fit every row, what is left for σ is E/(1 + g). So the evidence grows as g^((n − 1 − p)/2) does,
/// which a given g bounds, and a mixture of them if its tail falls faster.
fn refuse_infinite(sums: &ZellnerSums, ground: &LevelPriors, spread: &GSpread) -> Result<()> {
    let wrong = |message: &str| Err(Error::numeric(message).for_parameter("log_sd"));
    if sums.explained == 0.0 {
        return wrong(
            "the evidence is infinite: the outcome is the same in every row, so that the likelihood grows without end as log_sd falls; take another outcome",
        );
    }
    let growth = 0.5 * (sums.observations - 1.0 - sums.coefficients as f64);
    match spread.tail() {
        None => Ok(()),
        Some(tail) if ground.log_sd.is_none() && growth + tail < 0.0 => Ok(()),
        Some(_) => wrong(
            "the evidence is infinite: the coefficients fit every row but for rounding, so that the likelihood grows with g without end, and faster than this mixture of g falls; see whether the outcome is computed from the columns, or has too few rows, or give g, as in \"g-prior(n)\"",
        ),
    }
}

fn no_integral() -> Error {
    let message = "the integral over g and log_sd has no finite value: the columns explain all of the outcome, or its units are extreme; leave out a column, or write the outcome in other units";
    Error::numeric(message)
}

/// The evidence and the posterior's moments.
#[derive(Debug, Clone)]
pub struct Zellner {
    /// log Z; its error is that of the quadrature and of rounding. Under flat priors Z is known up to a factor that
    /// all models with the same outcome share.
    pub log_z: Estimate,
    /// Posterior mean of the coefficients with the intercept at its place, then of log σ if that is free.
    pub mean: Vec<f64>,
    /// Posterior covariance.
    pub covariance: Matrix,
    /// Whether there was nothing to integrate over numerically.
    pub closed_form: bool,
    rows: AroundMeans,
    sums: ZellnerSums,
    ground: LevelPriors,
    spread: GSpread,
    intercept: usize,
    /// Nodes over v; none where g is given.
    outer: Vec<LineNode>,
    inverse: Matrix,
    solution: Vec<f64>,
}

impl Zellner {
    /// Of these rows, whose intercept stands at that place among all coefficients.
    pub fn new(
        rows: AroundMeans,
        intercept: usize,
        spread: GSpread,
        ground: LevelPriors,
    ) -> Result<Zellner> {
        let sums = ZellnerSums {
            observations: rows.observations,
            coefficients: rows.image.len(),
            level: rows.level,
            explained: dot(&rows.image, &rows.image),
            residual: rows.rest * rows.rest,
        };
        if sums.residual == 0.0 && !matches!(ground.log_sd, Some(Prior::Fixed { .. })) {
            refuse_infinite(&sums, &ground, &spread)?;
        }
        let (outer, value, error) = match over_g(&ground, &sums, &spread) {
            Some(line) => {
                let line = line?;
                (line.nodes, line.log_integral, line.error)
            }
            None => {
                let (value, error) = log_evidence(&ground, &sums, &spread)?;
                (Vec::new(), value, error)
            }
        };
        let inverse = inverse(&rows.root);
        let solution = inverse.times(&rows.image);
        let mut found = Zellner {
            log_z: Estimate::new(value, error + rounding(value)),
            mean: Vec::new(),
            covariance: Matrix::zeros(0, 0),
            closed_form: outer.is_empty() && ground.is_flat(),
            rows,
            sums,
            ground,
            spread,
            intercept,
            outer,
            inverse,
            solution,
        };
        found.moments()?;
        Ok(found)
    }

    fn is_free(&self) -> bool {
        !matches!(self.ground.log_sd, Some(Prior::Fixed { .. }))
    }

    /// v and the weight of each node over g; a g that is given has one.
    fn given(&self) -> Vec<(f64, f64)> {
        if self.outer.is_empty() {
            return vec![(1.0, 0.0)];
        }
        let top = self.outer.iter().map(|n| n.height).fold(f64::NEG_INFINITY, f64::max);
        let masses: Vec<f64> = self.outer.iter().map(|node| node.mass(top)).collect();
        let total: f64 = masses.iter().sum();
        masses.iter().zip(&self.outer).map(|(m, node)| (m / total, node.x)).collect()
    }

    /// g at v, 0 where there is nothing that it scales.
    fn g(&self, v: f64) -> f64 {
        if self.sums.coefficients == 0 { 0.0 } else { self.spread.g(v) }
    }

    /// Mean and variance of the level at the columns' means, given σ.
    fn level(&self, u: f64) -> (f64, f64) {
        let variance = exp(2.0 * u) / self.sums.observations;
        match self.ground.level {
            None => (self.sums.level, variance),
            Some((mean, sd)) => {
                let pull = sd * sd / (sd * sd + variance);
                (mean + pull * (self.sums.level - mean), pull * variance)
            }
        }
    }

    fn moments(&mut self) -> Result<()> {
        // Of (g/(1 + g), level, log σ): means and second moments; and E[σ²g/(1 + g)], E[variance of the level].
        let mut parts: Vec<(f64, [f64; 3])> = Vec::new();
        let (mut noise, mut loose) = (0.0, 0.0);
        for (weight, v) in self.given().into_iter().filter(|(weight, _)| *weight > 1e-13) {
            let g = self.g(v);
            let shrink = g / (1.0 + g);
            let line = self.ground.over_sigma(&self.sums, g).ok_or_else(no_integral)?;
            let top = line.nodes.iter().map(|n| n.height).fold(f64::NEG_INFINITY, f64::max);
            let mass = |node: &LineNode| if line.nodes.len() == 1 { 1.0 } else { node.mass(top) };
            let total: f64 = line.nodes.iter().map(mass).sum();
            for node in &line.nodes {
                let share = weight * mass(node) / total;
                let (level, variance) = self.level(node.x);
                noise += share * shrink * exp(2.0 * node.x);
                loose += share * variance;
                parts.push((share, [shrink, level, node.x]));
            }
        }
        let mut mean = [0.0; 3];
        let mut second = [[0.0; 3]; 3];
        let total: f64 = parts.iter().map(|(share, _)| share).sum();
        for (share, at) in &parts {
            (0..3).for_each(|i| mean[i] += share / total * at[i]);
        }
        for (share, at) in &parts {
            for i in 0..3 {
                for j in 0..3 {
                    second[i][j] += share / total * (at[i] - mean[i]) * (at[j] - mean[j]);
                }
            }
        }
        let p = self.sums.coefficients;
        let free = usize::from(self.is_free());
        // Rows of (β, level, log σ) by the three.
        let mut ways = Matrix::zeros(p + 2, 3);
        (0..p).for_each(|j| ways[(j, 0)] = self.solution[j]);
        (ways[(p, 1)], ways[(p + 1, 2)]) = (1.0, 1.0);
        let flat = Matrix::from_rows(3, 3, second.concat());
        let mut inner = ways.product(&flat).product(&ways.transpose());
        let own = self.inverse.product(&self.inverse.transpose());
        for i in 0..p {
            for j in 0..p {
                inner[(i, j)] += noise / total * own[(i, j)];
            }
        }
        inner[(p, p)] += loose / total;
        let centre = ways.times(&mean);
        let turn = self.turn(free);
        self.mean = turn.times(&centre);
        self.covariance = turn.product(&inner).product(&turn.transpose());
        Ok(())
    }

    /// From (β, level, log σ) to the coefficients in their order, the intercept in its place, and log σ if it is free.
    fn turn(&self, free: usize) -> Matrix {
        let p = self.sums.coefficients;
        let mut turn = Matrix::zeros(p + 1 + free, p + 2);
        let place = |j: usize| if j < self.intercept { j } else { j + 1 };
        for j in 0..p {
            turn[(place(j), j)] = 1.0;
            turn[(self.intercept, j)] = -self.rows.means[j];
        }
        turn[(self.intercept, p)] = 1.0;
        if free == 1 {
            turn[(p + 1, p + 1)] = 1.0;
        }
        turn
    }

    /// Draws of the posterior, all but equal in weight: see [`Linear::draws`](super::Linear::draws).
    pub fn draws(&self, count: usize, rng: &mut Stream) -> Weighted {
        let p = self.sums.coefficients;
        let turn = self.turn(usize::from(self.is_free()));
        let mut rows: Vec<(Vec<f64>, f64)> = Vec::new();
        let within = |node: &LineNode, rng: &mut Stream| {
            node.cell.0 + (node.cell.1 - node.cell.0) * rng.random::<f64>()
        };
        let times = match self.outer.is_empty() {
            true => vec![count],
            false => shared_out(&self.outer, count, rng),
        };
        for (k, times) in times.into_iter().enumerate().filter(|(_, times)| *times > 0) {
            let outer = self.outer.get(k);
            let g = self.g(outer.map_or(0.0, |node| node.x));
            let Some(line) = self.ground.over_sigma(&self.sums, g) else { continue };
            let each = match line.nodes.len() {
                1 => vec![times],
                _ => shared_out(&line.nodes, times, rng),
            };
            for (node, times) in line.nodes.iter().zip(each) {
                for _ in 0..times {
                    let v = outer.map_or(0.0, |node| within(node, rng));
                    let (g, u) = (self.g(v), within(node, rng));
                    let own = self.ground.log_density(&self.sums, self.sums.misfit(g), u)
                        + outside(&self.sums, g);
                    let prior = outer.map_or(0.0, |_| self.spread.log_density(v));
                    let taken = outer.map_or(line.log_integral, |node| node.height) + node.height
                        - line.log_integral;
                    let (level, variance) = self.level(u);
                    let shrink = g / (1.0 + g);
                    let noise = exp(u) * shrink.sqrt();
                    let loose: Vec<f64> = (0..p).map(|_| normal(rng)).collect();
                    let loose = self.inverse.times(&loose);
                    let mut at: Vec<f64> = self
                        .solution
                        .iter()
                        .zip(&loose)
                        .map(|(b, e)| shrink * b + noise * e)
                        .collect();
                    at.push(level + variance.sqrt() * normal(rng));
                    at.push(u);
                    rows.push((turn.times(&at), own + prior - taken));
                }
            }
        }
        // Neighbours in the list are neighbours in g.
        for k in (1..rows.len()).rev() {
            rows.swap(k, rng.random_range(0..=k));
        }
        let mut thetas = Matrix::zeros(rows.len(), self.mean.len());
        let mut log_weights = Vec::new();
        for (k, (theta, log_weight)) in rows.into_iter().enumerate() {
            thetas.row_mut(k).copy_from_slice(&theta);
            log_weights.push(log_weight);
        }
        Weighted {
            thetas,
            log_weights,
            log_target: Vec::new(),
            kinship: Kinship::Strangers,
            controls: Vec::new(),
        }
    }
}
