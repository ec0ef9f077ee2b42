//! The evidence of a Gaussian linear model by quadrature.
//!
//! Given σ, coefficients with normal priors integrate out in closed form. With R'R = X'X, priors N(m, S²)
//! and the singular values R·S = Σ dⱼ uⱼvⱼ', cⱼ = uⱼ'(z − Rm),
//!
//! ```text
//! log p(y|σ) = −n log σ − n/2 log 2π − ½ Σ log(1 + dⱼ²/σ²) − ½ [ρ²/σ² + Σ cⱼ²/(σ² + dⱼ²)]
//! ```
//!
//! where ρ is what no coefficient reaches. What is left is an integral over u = log σ. A few coefficients
//! may have Student-t or Laplace priors: they keep a column each beside c, and their prior variances are
//! integrated over within (see `mixed`).

use super::rotated::Rotated;
use super::{Estimate, Weighted};
use crate::math::line::{self, LineNode};
use crate::math::proposal::Kinship;
use crate::math::ziggurat::normal;
use crate::math::{Matrix, Stream};
use crate::model::{Gaussian, Prior};
use crate::{Error, Result};
use rand::RngExt;

/// The most integrals one within the other: over log σ and over log variances.
const MOST_INTEGRALS: usize = 2;

/// The relative accuracy that integrals aim at.
const ACCURACY: f64 = 1e-11;

/// The evidence and the posterior's moments.
#[derive(Debug, Clone)]
pub struct Linear {
    /// log Z; its error is that of the quadrature and of rounding.
    pub log_z: Estimate,
    /// Posterior mean of the free coefficients, then of log σ if that is free.
    pub mean: Vec<f64>,
    /// Posterior covariance.
    pub covariance: Matrix,
    /// Whether there was nothing to integrate over numerically.
    pub closed_form: bool,
    model: Rotated,
    spread: PriorSpread,
    /// Nodes of the integral over log σ; empty where it is held fixed.
    nodes: Vec<LineNode>,
}

/// log σ: held at a value, or with this share of its prior.
#[derive(Debug, Clone, Copy)]
enum PriorSpread {
    Fixed(f64),
    Free(Prior, f64),
}

impl PriorSpread {
    fn log_prior(&self, u: f64) -> f64 {
        match self {
            PriorSpread::Fixed(_) => 0.0,
            PriorSpread::Free(prior, share) => share * prior.log_density(u),
        }
    }
}

impl Linear {
    /// ∫ p(y|θ) p(θ)ʷ dθ for these priors: of the coefficients, then of log σ if it is free. `None` if
    /// too many coefficients have priors that are not normal. Fails where the integral is infinite.
    pub fn new(
        gaussian: &Gaussian,
        priors: &[Prior],
        share: f64,
        fixed_log_sd: Option<f64>,
    ) -> Result<Option<Linear>> {
        let p = gaussian.coefficients();
        let spread = match (fixed_log_sd, priors.get(p)) {
            (Some(u), _) => PriorSpread::Fixed(u),
            (None, Some(prior)) => PriorSpread::Free(*prior, share),
            (None, None) => return Ok(None),
        };
        refuse_infinite(gaussian, spread)?;
        let others = priors[..p].iter().filter(|p| !matches!(p, Prior::Normal { .. })).count();
        let integrals = others + usize::from(fixed_log_sd.is_none());
        if integrals > MOST_INTEGRALS {
            return Ok(None);
        }
        let model = Rotated::new(gaussian, &priors[..p], share, ACCURACY);
        model.map(|model| Linear::of(model, spread)).transpose()
    }

    fn of(model: Rotated, spread: PriorSpread) -> Result<Linear> {
        let d = model.centres.len();
        let (PriorSpread::Free(prior, share), variances) = (spread, &model.variances) else {
            let PriorSpread::Fixed(u) = spread else { unreachable!("it is one of two") };
            let value = model.log_likelihood(u);
            let (few, error) = model.variances.moments(0, &model.corner(u).0);
            let (mean, mut inner) = (model.mean_given(u, &few), Matrix::zeros(d + 1, d + 1));
            model.add_covariance(u, &few, 1.0, &mut inner);
            let (mean, covariance) = model.turned(&mean, &inner, false);
            let log_z = Estimate::new(value, error + rounding(value));
            let (closed_form, nodes) = (model.other.is_empty(), Vec::new());
            return Ok(Linear { log_z, mean, covariance, closed_form, model, spread, nodes });
        };
        let g = |u: f64| {
            let prior = spread.log_prior(u);
            if prior == f64::NEG_INFINITY { prior } else { prior + model.log_likelihood(u) }
        };
        let (mesh, breaks) = mesh(&model, &prior, share);
        let failed = || {
            let message = "the integral over log_sd has no finite value; write the outcome in other units, or use a prior of log_sd with a smaller spread";
            Error::numeric(message).for_parameter("log_sd")
        };
        let line = line::integrate(&g, &mesh, &breaks, variances.accuracy).ok_or_else(failed)?;
        let value = line.log_integral;
        let mut parts = Vec::new();
        let (mut mean, mut total, mut error) = (vec![0.0; d + 1], 0.0, line.error);
        for node in &line.nodes {
            let weight = node.mass(value);
            // Moments need not be as exact as the evidence.
            if weight > 1e-13 {
                let (few, inner_error) = variances.moments(0, &model.corner(node.x).0);
                let own = model.mean_given(node.x, &few);
                mean.iter_mut().zip(&own).for_each(|(m, own)| *m += weight * own);
                total += weight;
                error += weight * inner_error;
                parts.push((weight, node.x, few, own));
            }
        }
        if !value.is_finite() || error.is_nan() || error > 1e-4 {
            return Err(failed());
        }
        mean.iter_mut().for_each(|m| *m /= total);
        let mut inner = Matrix::zeros(d + 1, d + 1);
        for (weight, u, few, own) in parts {
            model.add_covariance(u, &few, weight / total, &mut inner);
            let off: Vec<f64> = own.iter().zip(&mean).map(|(own, m)| own - m).collect();
            inner.add_outer(weight / total, &off);
        }
        let (mean, covariance) = model.turned(&mean, &inner, true);
        let log_z = Estimate::new(value, error + rounding(value));
        let nodes = line.nodes;
        Ok(Linear { log_z, mean, covariance, closed_form: false, model, spread, nodes })
    }

    /// The posterior mean of a function of log σ, which may be held fixed.
    pub(super) fn expect(&self, of: impl Fn(f64) -> f64, fixed: Option<f64>) -> f64 {
        if let Some(u) = fixed {
            return of(u);
        }
        let top = self.nodes.iter().map(|node| node.height).fold(f64::NEG_INFINITY, f64::max);
        let masses = || self.nodes.iter().map(|node| node.mass(top));
        let sum: f64 = self.nodes.iter().zip(masses()).map(|(node, m)| m * of(node.x)).sum();
        sum / masses().sum::<f64>()
    }

    /// Draws of the posterior, all but equal in weight: cells of the quadrature in proportion to their
    /// masses, a point in each, and coefficients given that point. The weights make up for a cell's being
    /// taken for level.
    pub fn draws(&self, count: usize, rng: &mut Stream) -> Weighted {
        let mut cells = Vec::new();
        match self.spread {
            PriorSpread::Fixed(u) => self.cells(u, None, count, rng, &mut cells),
            PriorSpread::Free(..) => {
                let times = shared_out(&self.nodes, count, rng);
                for (node, times) in self.nodes.iter().zip(times).filter(|(_, t)| *t > 0) {
                    self.cells(node.x, Some(*node), times, rng, &mut cells);
                }
            }
        }
        // Neighbours in the list are neighbours in log σ.
        for k in (1..cells.len()).rev() {
            cells.swap(k, rng.random_range(0..=k));
        }
        let mut thetas = Matrix::zeros(cells.len(), self.mean.len());
        let mut log_weights = Vec::new();
        for (k, cell) in cells.iter().enumerate() {
            log_weights.push(self.draw(cell, thetas.row_mut(k), rng));
        }
        Weighted {
            thetas,
            log_weights,
            log_target: Vec::new(),
            kinship: Kinship::Strangers,
            controls: Vec::new(),
        }
    }

    /// The cells of so many draws given log σ.
    fn cells(
        &self,
        u: f64,
        node: Option<LineNode>,
        count: usize,
        rng: &mut Stream,
        out: &mut Vec<LineCell>,
    ) {
        let (model, size) = (&self.model, self.model.other.len());
        let mut open = vec![(LineCell { u, node, ells: Vec::new() }, model.corner(u).0, count)];
        for k in 0..size {
            let mut next = Vec::new();
            for (cell, corner, count) in open {
                let Some(line) = model.variances.line(k, &corner) else { continue };
                let times = shared_out(&line.nodes, count, rng);
                for (node, times) in line.nodes.iter().zip(times).filter(|(_, t)| *t > 0) {
                    let ells = cell.ells.iter().chain([node]).copied().collect();
                    let left = corner.without(k, size, node.x).0;
                    next.push((LineCell { ells, ..cell }, left, times));
                }
            }
            open = next;
        }
        for (cell, _, count) in open {
            out.extend(std::iter::repeat_n(cell, count));
        }
    }

    /// A draw from a cell, and its log weight.
    fn draw(&self, cell: &LineCell, theta: &mut [f64], rng: &mut Stream) -> f64 {
        let model = &self.model;
        let mut within =
            |node: &LineNode| node.cell.0 + (node.cell.1 - node.cell.0) * rng.random::<f64>();
        let u = cell.node.map_or(cell.u, |node| within(&node));
        let ells: Vec<f64> = cell.ells.iter().map(&mut within).collect();
        let middle: Vec<f64> = cell.ells.iter().map(|node| node.x).collect();
        let corner = model.corner(u).0;
        let normals: Vec<f64> = ells.iter().map(|_| normal(rng)).collect();
        let few = model.variances.draw(&corner, &ells, &normals);
        let conditional = model.conditional(u, &few);
        let mut b: Vec<f64> = conditional.map(|(m, v)| m + v.sqrt() * normal(rng)).collect();
        // What the rows say nothing about is as the prior has it.
        b.resize_with(model.normal.len(), || normal(rng));
        model.back(&b, &few, theta);
        if let PriorSpread::Free(..) = self.spread {
            theta[model.centres.len()] = u;
        }
        self.log_density(u, &ells) - self.log_density(cell.u, &middle)
    }

    /// Of log σ, the log variances and the data.
    fn log_density(&self, u: f64, ells: &[f64]) -> f64 {
        let (corner, outside) = self.model.corner(u);
        let inner = self.model.variances.log_density(&corner, ells);
        outside + self.spread.log_prior(u) + inner
    }
}

/// Nodes that a draw comes from: of log σ (if it is free) and of the log variances.
#[derive(Debug, Clone)]
struct LineCell {
    u: f64,
    node: Option<LineNode>,
    ells: Vec<LineNode>,
}

/// How many of so many draws each node gets: its share, rounded up or down.
pub(super) fn shared_out(nodes: &[LineNode], count: usize, rng: &mut Stream) -> Vec<usize> {
    let top = nodes.iter().map(|n| n.height).fold(f64::NEG_INFINITY, f64::max);
    let masses: Vec<f64> = nodes.iter().map(|n| n.mass(top)).collect();
    let total: f64 = masses.iter().sum();
    let (start, mut reached, mut given): (f64, f64, usize) = (rng.random(), 0.0, 0);
    let mut times = Vec::new();
    for (k, mass) in masses.iter().enumerate() {
        reached += mass / total * count as f64;
        let until = if k + 1 == masses.len() { count } else { (reached + start) as usize };
        let until = until.clamp(given, count);
        times.push(until - given);
        given = until;
    }
    times
}

/// Where to look for peaks of the integral over log σ, and where its prior has a scale of its own.
fn mesh(model: &Rotated, prior: &Prior, share: f64) -> (Vec<f64>, Vec<f64>) {
    let (centre, width) = match *prior {
        Prior::Normal { mean, sd } => (mean, sd / share.sqrt()),
        Prior::Laplace { mean, scale } => (mean, scale / share),
        Prior::StudentT { df, mean, scale } => (mean, scale * (df / (share * (df + 1.0))).sqrt()),
        Prior::Fixed { value } => (value, 1.0),
    };
    // The likelihood's own part of the line; the prior's centre may be far from it.
    let turns = model.turns();
    let first = turns.first().copied().unwrap_or(centre);
    let (low, high) = turns.iter().fold((first, first), |(a, b), &u| (a.min(u), b.max(u)));
    let mut breaks = vec![centre];
    let mut step = width;
    while step < 256.0 * width || step < (centre - low).max(high - centre) + 1.0 {
        breaks.extend([centre - step, centre + step]);
        step *= 2.0;
    }
    let step = if model.other.is_empty() { 0.125 } else { 0.5 };
    let cells = ((high - low) / step) as usize + 16;
    let mut mesh: Vec<f64> = (0..=cells).map(|k| low + step * (k as f64 - 8.0)).collect();
    mesh.extend(&breaks);
    mesh.sort_unstable_by(f64::total_cmp);
    mesh.dedup();
    (mesh, breaks)
}

/// What rounding may have done to a sum of this size.
pub(super) fn rounding(value: f64) -> f64 {
    8.0 * f64::EPSILON * value.abs()
}

/// Fails where the integral over log σ is infinite: some coefficients fit every row, so that the
/// likelihood grows like e^(n − r)|log σ| as σ falls, with r directions of the coefficients that the rows
/// determine, and the prior of log σ does not fall as fast. On the other side it falls like e^−n·log σ.
fn refuse_infinite(gaussian: &Gaussian, spread: PriorSpread) -> Result<()> {
    let PriorSpread::Free(prior, share) = spread else { return Ok(()) };
    let (n, r) = (gaussian.observations(), gaussian.rank() as f64);
    if gaussian.rest() != 0.0 || n == 0.0 {
        return Ok(());
    }
    // Weights are rounded.
    let growth = if (n - r).abs() < 1e-9 * n { 0.0 } else { n - r };
    let bounded = match prior {
        Prior::Laplace { scale, .. } => share / scale > growth,
        Prior::StudentT { df, .. } => growth < 0.0 || growth == 0.0 && share * (df + 1.0) > 1.0,
        _ => true,
    };
    if bounded {
        return Ok(());
    }
    let power = if share == 1.0 { String::new() } else { format!(" to the power {share:.3}") };
    let message = format!(
        "the evidence is infinite: the coefficients fit every row but for rounding, so that the likelihood grows without end as log_sd falls, and the prior {prior}{power} is too heavy-tailed to bound it; use a normal prior as in log_sd = \"normal(0, 1)\", or hold it fixed, and see whether the outcome is computed from the columns, is the same everywhere, or has too few rows"
    );
    Err(Error::numeric(message).for_parameter("log_sd"))
}
