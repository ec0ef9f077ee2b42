//! Priors that are normals with a variance of their own prior, and the integral over such variances.
//!
//! A Student-t prior is N(m, λ) with λ from an inverse gamma distribution, a Laplace prior the same with
//! an exponential one. Given all λ the coefficients integrate out in closed form, so a few such priors
//! cost an integral over ℓ = log λ each: smooth, without kinks, and with tails that are known.

use crate::math::line::{self, LineIntegral};
use crate::model::Prior;
use libm::{exp, hypot, lgamma, log};

/// The most coefficients with such priors.
pub(super) const MOST: usize = 2;

/// How λ is spread.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mix {
    /// Inverse gamma with this shape and rate; log of its constant.
    Student { shape: f64, rate: f64, constant: f64 },
    /// Exponential with mean 2b².
    Laplace { scale: f64 },
}

impl Mix {
    /// The variance behind p(x)ʷ/∫p(x)ʷdx; `None` of a normal prior, and where the integral is infinite.
    pub fn new(prior: &Prior, w: f64) -> Option<Mix> {
        match *prior {
            Prior::Laplace { scale, .. } => Some(Mix::Laplace { scale: scale / w }),
            // (1 + x²/νc²)^−w(ν+1)/2 is a t with w(ν+1) − 1 degrees of freedom and the same νc².
            Prior::StudentT { df, scale, .. } => {
                let (shape, rate) = (0.5 * (w * (df + 1.0) - 1.0), 0.5 * df * scale * scale);
                let constant = shape * log(rate) - lgamma(shape);
                (shape > 0.0).then_some(Mix::Student { shape, rate, constant })
            }
            _ => None,
        }
    }

    /// The log density of ℓ = log λ.
    fn log_density(&self, ell: f64) -> f64 {
        match *self {
            Mix::Student { shape, rate, constant } => constant - shape * ell - rate * exp(-ell),
            Mix::Laplace { scale } => {
                let mean = 2.0 * scale * scale;
                ell - log(mean) - exp(ell) / mean
            }
        }
    }

    /// Where its log density times the likelihood of ℓ may have a peak, and how wide that is. The
    /// likelihood is that of an estimate this far from the prior's centre, with this variance.
    fn marks(&self, distance: f64, variance: f64) -> Vec<(f64, f64)> {
        let mut marks = match *self {
            Mix::Student { shape, rate, .. } => {
                let width = 1.0 / (shape + 0.5).sqrt();
                let far = (rate + 0.5 * distance * distance) / (shape + 0.5);
                vec![(log(rate / shape), width), (log(far), width)]
            }
            Mix::Laplace { scale } => {
                let far = (distance * scale - variance).max(scale * scale);
                let width = (scale / distance).sqrt().min(1.0);
                vec![(log(2.0 * scale * scale), 1.0), (log(far), width)]
            }
        };
        marks.push((log(variance), 1.0));
        marks.retain(|(at, width)| at.is_finite() && *width > 0.0);
        marks
    }
}

/// A triangular factor of a few coefficients β and an outcome, in units of its noise: what remains is
/// −½|z − Tβ|² − ½`rest`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Corner {
    /// T, and z in the column after the last coefficient's.
    pub rows: [[f64; MOST + 1]; MOST],
    pub rest: f64,
}

impl Corner {
    /// Takes in another row, whose entries before `from` are 0; `size` is the number of coefficients.
    pub fn fold(&mut self, mut row: [f64; MOST + 1], from: usize, size: usize) {
        for k in from..size {
            if row[k] == 0.0 {
                continue;
            }
            let own = &mut self.rows[k];
            let norm = hypot(own[k], row[k]);
            let (c, s) = (own[k] / norm, row[k] / norm);
            for j in k..=size {
                (own[j], row[j]) = (c * own[j] + s * row[j], c * row[j] - s * own[j]);
            }
        }
        self.rest += row[size] * row[size];
    }

    /// What is left for the coefficients after number k once this one is integrated out under N(0, λ), and
    /// the logarithm of what that takes.
    pub fn without(&self, k: usize, size: usize, ell: f64) -> (Corner, f64) {
        let Shrink { s, log_norm, .. } = Shrink::new(self.rows[k][k], ell);
        let mut next = *self;
        let mut row = [0.0; MOST + 1];
        for (to, from) in row.iter_mut().zip(&self.rows[k]).take(size + 1).skip(k + 1) {
            *to = s * from;
        }
        next.fold(row, k + 1, size);
        (next, -log_norm)
    }

    /// Least-squares solution from coefficient k on, as far as there is one.
    fn solution(&self, k: usize, size: usize) -> [f64; MOST] {
        let mut out = [0.0; MOST];
        for i in (k..size).rev() {
            let row = &self.rows[i];
            let known: f64 = (i + 1..size).map(|j| row[j] * out[j]).sum();
            out[i] = if row[i] == 0.0 { 0.0 } else { (row[size] - known) / row[i] };
        }
        out
    }
}

/// A coefficient with prior N(0, λ) and an observation z = tβ + noise of variance 1.
struct Shrink {
    /// 1/√(1 + λt²), and −log of it.
    s: f64,
    log_norm: f64,
    /// The coefficient's mean is `pull`·z, its variance `variance`.
    pull: f64,
    variance: f64,
}

impl Shrink {
    fn new(t: f64, ell: f64) -> Shrink {
        let root = exp(0.5 * ell);
        let norm = hypot(1.0, t * root);
        if norm < f64::INFINITY {
            let s = 1.0 / norm;
            let sd = root * s;
            let variance = sd * sd;
            return Shrink { s, log_norm: log(norm), pull: t * variance, variance };
        }
        let log_norm = 0.5 * ell + log(t.abs());
        Shrink { s: exp(-log_norm), log_norm, pull: 1.0 / t, variance: 1.0 / (t * t) }
    }
}

/// Means and covariances of a few coefficients.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Few {
    pub mean: [f64; MOST],
    pub covariance: [[f64; MOST]; MOST],
}

/// The coefficients' variances, to be integrated over one within the other.
#[derive(Debug, Clone)]
pub(super) struct Variances {
    pub mixes: Vec<Mix>,
    /// Relative accuracy of the integrals.
    pub accuracy: f64,
}

impl Variances {
    /// The log of the integral over the variances from number k on.
    pub fn log_integral(&self, k: usize, corner: &Corner) -> f64 {
        if k == self.mixes.len() {
            return -0.5 * corner.rest;
        }
        self.line(k, corner).map_or(f64::NEG_INFINITY, |line| line.log_integral)
    }

    /// The integral over variance k, with those after it within.
    pub fn line(&self, k: usize, corner: &Corner) -> Option<LineIntegral> {
        let size = self.mixes.len();
        let mix = &self.mixes[k];
        let g = |ell: f64| {
            let density = mix.log_density(ell);
            if density == f64::NEG_INFINITY {
                return density;
            }
            let (next, taken) = corner.without(k, size, ell);
            density + taken + self.log_integral(k + 1, &next)
        };
        let t = corner.rows[k][k];
        // Those after it may be at their priors' centres or free.
        let far = [corner.rows[k][size] / t, corner.solution(k, size)[k]];
        let mut mesh = Vec::new();
        for (at, width) in far.iter().flat_map(|d| mix.marks(d.abs(), 1.0 / (t * t))) {
            mesh.extend([-4.0, -1.0, 0.0, 1.0, 4.0].map(|by| at + by * width));
        }
        if mesh.is_empty() {
            mesh.extend([-1.0, 0.0, 1.0]);
        }
        mesh.sort_unstable_by(f64::total_cmp);
        mesh.dedup();
        // What is integrated over must be smooth to more digits than the integral needs.
        let accuracy = self.accuracy * [0.1, 0.01][k];
        line::integrate(&g, &mesh, &[], accuracy.max(1e-13))
    }

    /// log density of these variances from number k on and of the data, the coefficients integrated out.
    pub fn log_density(&self, corner: &Corner, ells: &[f64]) -> f64 {
        let (mut corner, mut sum) = (*corner, 0.0);
        for (k, (mix, &ell)) in self.mixes.iter().zip(ells).enumerate() {
            let (next, taken) = corner.without(k, self.mixes.len(), ell);
            sum += mix.log_density(ell) + taken;
            corner = next;
        }
        sum - 0.5 * corner.rest
    }

    /// Moments of the coefficients from number k on, and the relative error of the integral behind them.
    pub fn moments(&self, k: usize, corner: &Corner) -> (Few, f64) {
        let size = self.mixes.len();
        let line = (k < size).then(|| self.line(k, corner)).flatten();
        let Some(line) = line else { return (Few::default(), 0.0) };
        let (mut parts, mut error) = (Vec::new(), line.error);
        for node in &line.nodes {
            let weight = node.mass(line.log_integral);
            let (next, _) = corner.without(k, size, node.x);
            let (inner, inner_error) = self.moments(k + 1, &next);
            error += weight * inner_error;
            parts.push((weight, self.joined(k, corner, node.x, &inner)));
        }
        (mixed(&parts, k, size), error)
    }

    /// The moments with those of coefficient k, whose variance this is, from those after it.
    fn joined(&self, k: usize, corner: &Corner, ell: f64, after: &Few) -> Few {
        let size = self.mixes.len();
        let row = &corner.rows[k];
        let Shrink { pull, variance, .. } = Shrink::new(row[k], ell);
        let mut out = *after;
        let known: f64 = (k + 1..size).map(|j| row[j] * after.mean[j]).sum();
        out.mean[k] = pull * (row[size] - known);
        out.covariance[k][k] = variance;
        for i in k + 1..size {
            let along: f64 = (k + 1..size).map(|j| row[j] * after.covariance[j][i]).sum();
            out.covariance[k][i] = -pull * along;
            out.covariance[i][k] = -pull * along;
            out.covariance[k][k] += pull * pull * row[i] * along;
        }
        out
    }

    /// A draw of the coefficients given their variances, from independent standard normal ones.
    pub fn draw(&self, corner: &Corner, ells: &[f64], normals: &[f64]) -> [f64; MOST] {
        let size = self.mixes.len();
        let (mut corners, mut out) = (vec![*corner], [0.0; MOST]);
        for (k, &ell) in ells.iter().enumerate() {
            corners.push(corners[k].without(k, size, ell).0);
        }
        for k in (0..size).rev() {
            let row = &corners[k].rows[k];
            let Shrink { pull, variance, .. } = Shrink::new(row[k], ells[k]);
            let known: f64 = (k + 1..size).map(|j| row[j] * out[j]).sum();
            out[k] = pull * (row[size] - known) + variance.sqrt() * normals[k];
        }
        out
    }
}

/// The moments of a mixture.
fn mixed(parts: &[(f64, Few)], from: usize, size: usize) -> Few {
    let total: f64 = parts.iter().map(|(weight, _)| weight).sum();
    let mut out = Few::default();
    for (weight, part) in parts {
        (from..size).for_each(|i| out.mean[i] += weight / total * part.mean[i]);
    }
    for (weight, part) in parts {
        let off = |i: usize| part.mean[i] - out.mean[i];
        for i in from..size {
            for j in from..size {
                out.covariance[i][j] += weight / total * (part.covariance[i][j] + off(i) * off(j));
            }
        }
    }
    out
}
