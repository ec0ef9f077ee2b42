//! Rows of data in panels, and the log-likelihood of the families that need every row.

use super::functions::{LANES, Lanes, exp, log1p_unit, softplus};
use crate::math::special::log_normal_cdf;
use crate::math::{Matrix, dot};
use crate::model::Family;
use crate::target::Expansion;
use std::ops::Range;

/// Panels per block: 960 rows, which stay in cache while many points visit them. Also the most
/// factors (1 + e^−|z|) ≤ 2 per lane that a product holds without overflow, with room to spare.
const BLOCK: usize = 120;

/// Distinct rows (x, offset) of one shard under one model, each with the number of observations
/// that share it and the sum of their outcomes.
///
/// Given the linear predictor η, count c and total t, the families' log-likelihoods are
///
/// ```text
/// logistic            t·η − c·log(1 + e^η)
/// probit              t·log Φ(η) + (c − t)·log Φ(−η)
/// poisson             t·η − c·e^η
/// negative binomial   t·η − (t + c·e^a)·log(1 + e^(η−a)),   a = log_dispersion
/// ```
///
/// up to terms in which η does not occur: merging equal rows is exact.
#[derive(Debug, Clone)]
pub struct Rows {
    family: Family,
    columns: usize,
    panels: usize,
    /// Panel k holds the columns `index[starts[k]..starts[k + 1]]`, those that are not 0 on all of its
    /// rows, with eight values each in `x`. Rows of a factor's level stand together, so that a panel
    /// visits one or two of its dummies and not all of them.
    starts: Vec<usize>,
    index: Vec<u32>,
    x: Vec<f64>,
    offset: Vec<f64>,
    count: Vec<f64>,
    total: Vec<f64>,
    /// X't, and t'offset: the linear part Σ t·η of the log-likelihood is one dot product.
    linear: Vec<f64>,
    linear_offset: f64,
    /// Every count is 1 (padding apart): logistic rows can then share one logarithm a block.
    single: bool,
}

/// What a parameter beside the coefficients adds: derivatives of the rows' part in a.
#[derive(Debug, Clone, Default)]
pub struct Extra {
    /// ∂/∂a.
    pub slope: f64,
    /// ∂²/∂a².
    pub bend: f64,
    /// ∂²/∂a∂β.
    pub cross: Vec<f64>,
}

impl Rows {
    /// Panels of these distinct rows. `columns[j][i]` is x of row i, column j.
    pub fn new(
        family: Family,
        columns: &[Vec<f64>],
        offset: &[f64],
        count: &[f64],
        total: &[f64],
    ) -> Rows {
        let rows = count.len();
        let panels = rows.div_ceil(LANES);
        let (mut starts, mut index, mut x) = (vec![0], Vec::new(), Vec::new());
        for panel in 0..panels {
            let range = panel * LANES..rows.min((panel + 1) * LANES);
            for (j, column) in columns.iter().enumerate() {
                let values = &column[range.clone()];
                if values.iter().any(|v| *v != 0.0) {
                    index.push(j as u32);
                    x.extend_from_slice(values);
                    x.resize(index.len() * LANES, 0.0);
                }
            }
            starts.push(index.len());
        }
        let pad = |values: &[f64]| {
            let mut padded = values.to_vec();
            padded.resize(panels * LANES, 0.0);
            padded
        };
        Rows {
            family,
            columns: columns.len(),
            panels,
            starts,
            index,
            x,
            linear: columns.iter().map(|c| dot(c, total)).collect(),
            linear_offset: dot(offset, total),
            single: rows > 0 && count.iter().all(|&c| c == 1.0),
            offset: pad(offset),
            count: pad(count),
            total: pad(total),
        }
    }

    /// The family.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Observations per row. Vectors over rows end with up to seven rows of padding that count for
    /// nothing: count 0, total 0, x = 0, offset 0.
    pub fn counts(&self) -> &[f64] {
        &self.count
    }

    /// Sums of outcomes per row.
    pub fn totals(&self) -> &[f64] {
        &self.total
    }

    /// Offsets per row.
    pub fn offsets(&self) -> &[f64] {
        &self.offset
    }

    /// The columns of one panel: their numbers, and eight values each.
    #[inline(always)]
    fn panel(&self, panel: usize) -> (&[u32], std::slice::ChunksExact<'_, f64>) {
        let range = self.starts[panel]..self.starts[panel + 1];
        let x = &self.x[range.start * LANES..range.end * LANES];
        (&self.index[range], x.chunks_exact(LANES))
    }

    /// The linear predictors of one panel.
    #[inline(always)]
    fn predictors(&self, panel: usize, beta: &[f64]) -> Lanes {
        let mut eta = *self.lanes(&self.offset, panel);
        let (index, x) = self.panel(panel);
        for (column, &j) in x.zip(index) {
            let b = beta[j as usize];
            for lane in 0..LANES {
                eta[lane] += column[lane] * b;
            }
        }
        eta
    }

    /// The linear predictors of all rows.
    pub fn predict(&self, beta: &[f64], out: &mut [f64]) {
        for (panel, out) in out.chunks_exact_mut(LANES).enumerate() {
            out.copy_from_slice(&self.predictors(panel, beta));
        }
    }

    /// One panel's slice of a per-row vector.
    #[inline(always)]
    fn lanes<'a>(&self, values: &'a [f64], panel: usize) -> &'a Lanes {
        values[panel * LANES..].first_chunk().expect("padded to whole panels")
    }

    /// The rows' part of the log-likelihood at each point (β, a); a is the log dispersion of a
    /// negative binomial and unused otherwise. Points share a block of rows while it is in cache.
    pub fn values(&self, points: &[(&[f64], f64)], out: &mut [f64]) {
        for (out, (beta, _)) in out.iter_mut().zip(points) {
            *out = self.linear_part(beta);
        }
        let mut first = 0;
        while first < self.panels {
            let block = first..(first + BLOCK).min(self.panels);
            first = block.end;
            for (out, (beta, a)) in out.iter_mut().zip(points) {
                *out += self.block_value(block.clone(), beta, *a);
            }
        }
    }

    fn block_value(&self, block: Range<usize>, beta: &[f64], a: f64) -> f64 {
        match self.family {
            Family::Logistic if self.single => self.logistic_single_block(block, beta),
            Family::Logistic => self.block(block, beta, |eta, c, _| -c * softplus(eta)),
            Family::Poisson => self.block(block, beta, |eta, c, _| -c * exp(eta)),
            Family::NegativeBinomial => {
                let r = exp(a);
                self.block(block, beta, |eta, c, t| -(t + c * r) * softplus(eta - a))
            }
            _ => self.probit_block(block, beta),
        }
    }

    /// Σ t·η: nothing for a probit.
    fn linear_part(&self, beta: &[f64]) -> f64 {
        match self.family {
            Family::Probit => 0.0,
            _ => dot(&self.linear, beta) + self.linear_offset,
        }
    }

    /// Σ of f(η, count, total) over a block.
    #[inline(always)]
    fn block(&self, block: Range<usize>, beta: &[f64], f: impl Fn(f64, f64, f64) -> f64) -> f64 {
        let mut sums = [0.0; LANES];
        for panel in block {
            let eta = self.predictors(panel, beta);
            let count = self.lanes(&self.count, panel);
            let total = self.lanes(&self.total, panel);
            for lane in 0..LANES {
                sums[lane] += f(eta[lane], count[lane], total[lane]);
            }
        }
        sums.iter().sum()
    }

    /// −Σ log(1 + e^η) with all counts 1: Π(1 + e^−|η|) is accumulated and its log taken once per
    /// lane. Padding rows have count 0 and give the factor 1.
    #[inline(always)]
    fn logistic_single_block(&self, block: Range<usize>, beta: &[f64]) -> f64 {
        let (mut positive, mut product) = ([0.0; LANES], [1.0; LANES]);
        for panel in block {
            let eta = self.predictors(panel, beta);
            let count = self.lanes(&self.count, panel);
            for lane in 0..LANES {
                positive[lane] += eta[lane].max(0.0);
                product[lane] *= 1.0 + count[lane] * exp(-eta[lane].abs());
            }
        }
        -positive.iter().sum::<f64>() - product.iter().map(|&p| libm::log(p)).sum::<f64>()
    }

    fn probit_block(&self, block: Range<usize>, beta: &[f64]) -> f64 {
        let mut sum = 0.0;
        for panel in block {
            let eta = self.predictors(panel, beta);
            for (lane, eta) in eta.into_iter().enumerate() {
                let row = panel * LANES + lane;
                let (yes, no) = (self.total[row], self.count[row] - self.total[row]);
                // Zero times −∞ is not a number: rows without such outcomes are left out.
                if yes > 0.0 {
                    sum += yes * log_normal_cdf(eta).0;
                }
                if no > 0.0 {
                    sum += no * log_normal_cdf(-eta).0;
                }
            }
        }
        sum
    }

    /// The value, with its gradient in β added to `gradient`; also the slope in a.
    pub fn gradient(&self, beta: &[f64], a: f64, gradient: &mut [f64]) -> (f64, f64) {
        let r = exp(a);
        match self.family {
            Family::Logistic => self.climb(beta, gradient, |eta, c, t| {
                let (p, s) = chance_and_softplus(eta);
                (-c * s, t - c * p, 0.0)
            }),
            Family::Poisson => self.climb(beta, gradient, |eta, c, t| {
                let mean = c * exp(eta);
                (-mean, t - mean, 0.0)
            }),
            Family::NegativeBinomial => self.climb(beta, gradient, |eta, c, t| {
                let (p, s) = chance_and_softplus(eta - a);
                let n = t + c * r;
                (-n * s, t - n * p, n * p - c * r * s)
            }),
            _ => self.climb(beta, gradient, |eta, c, t| {
                let (yes, no) = (log_normal_cdf(eta), log_normal_cdf(-eta));
                let times = |n: f64, l: f64| if n > 0.0 { n * l } else { 0.0 };
                (times(t, yes.0) + times(c - t, no.0), t * yes.1 - (c - t) * no.1, 0.0)
            }),
        }
    }

    /// Sums a row's value, slope in η and slope in a over all rows.
    #[inline(always)]
    fn climb(
        &self,
        beta: &[f64],
        gradient: &mut [f64],
        f: impl Fn(f64, f64, f64) -> (f64, f64, f64),
    ) -> (f64, f64) {
        let (mut values, mut extras) = ([0.0; LANES], [0.0; LANES]);
        for panel in 0..self.panels {
            let eta = self.predictors(panel, beta);
            let count = self.lanes(&self.count, panel);
            let total = self.lanes(&self.total, panel);
            let mut slope = [0.0; LANES];
            for lane in 0..LANES {
                let (value, along, extra) = f(eta[lane], count[lane], total[lane]);
                values[lane] += value;
                extras[lane] += extra;
                slope[lane] = along;
            }
            let (index, x) = self.panel(panel);
            for (x, &j) in x.zip(index) {
                gradient[j as usize] += lane_dot(x, &slope);
            }
        }
        (values.iter().sum::<f64>() + self.linear_part(beta), extras.iter().sum())
    }

    /// Value, gradient and Hessian in β, with the derivatives in a.
    pub fn expand(&self, beta: &[f64], a: f64) -> (Expansion, Extra) {
        let p = self.columns;
        let mut out = Expansion::zeros(p);
        let mut extra = Extra { slope: 0.0, bend: 0.0, cross: vec![0.0; p] };
        let r = exp(a);
        for panel in 0..self.panels {
            let eta = self.predictors(panel, beta);
            let (mut slope, mut bend, mut cross) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
            for lane in 0..LANES {
                let row = panel * LANES + lane;
                let (c, t) = (self.count[row], self.total[row]);
                if c == 0.0 {
                    continue;
                }
                let d = self.row_derivatives(eta[lane], c, t, a, r);
                (slope[lane], bend[lane], cross[lane]) = (d.slope, d.bend, d.cross);
                extra.slope += d.extra_slope;
                extra.bend += d.extra_bend;
            }
            let (index, x) = self.panel(panel);
            for (x, &j) in x.zip(index) {
                out.gradient[j as usize] += lane_dot(x, &slope);
                if self.family == Family::NegativeBinomial {
                    extra.cross[j as usize] += lane_dot(x, &cross);
                }
            }
            self.add_to_hessian(panel, &bend, &mut out.hessian);
        }
        mirror(&mut out.hessian);
        let mut value = [0.0];
        self.values(&[(beta, a)], &mut value);
        [out.value] = value;
        (out, extra)
    }

    /// X'X, every row counted.
    pub fn gram(&self) -> Matrix {
        self.gram_weighted(&self.count)
    }

    /// X'·diag(weights)·X with one weight per row.
    pub fn gram_weighted(&self, weights: &[f64]) -> Matrix {
        let mut gram = Matrix::zeros(self.columns, self.columns);
        for panel in 0..self.panels {
            self.add_to_hessian(panel, self.lanes(weights, panel), &mut gram);
        }
        mirror(&mut gram);
        gram
    }

    /// X'v for a vector v over the rows.
    pub fn transposed_times(&self, v: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.columns];
        for panel in 0..self.panels {
            let (index, x) = self.panel(panel);
            for (x, &j) in x.zip(index) {
                out[j as usize] += lane_dot(x, self.lanes(v, panel));
            }
        }
        out
    }

    /// Adds X'·diag(weight)·X of one panel to the lower half of a matrix.
    #[inline(always)]
    fn add_to_hessian(&self, panel: usize, weight: &Lanes, out: &mut Matrix) {
        let (index, x) = self.panel(panel);
        for ((a, &i), xi) in index.iter().enumerate().zip(x.clone()) {
            let mut weighted = [0.0; LANES];
            for lane in 0..LANES {
                weighted[lane] = xi[lane] * weight[lane];
            }
            let row = out.row_mut(i as usize);
            for (&j, xj) in index[..=a].iter().zip(x.clone()) {
                row[j as usize] += lane_dot(xj, &weighted);
            }
        }
    }

    /// Derivatives of one row's log-likelihood.
    fn row_derivatives(&self, eta: f64, c: f64, t: f64, a: f64, r: f64) -> RowDerivatives {
        let mut d = RowDerivatives::default();
        match self.family {
            Family::Logistic => {
                let (p, q) = logistic(eta);
                (d.slope, d.bend) = (t - c * p, -c * p * q);
            }
            Family::Probit => {
                let (yes, no) = (log_normal_cdf(eta), log_normal_cdf(-eta));
                d.slope = t * yes.1 - (c - t) * no.1;
                d.bend = t * yes.2 + (c - t) * no.2;
            }
            Family::NegativeBinomial => {
                let (p, q) = logistic(eta - a);
                let (n, pq) = (t + c * r, p * q);
                d.slope = t - n * p;
                d.bend = -n * pq;
                // In a both r = e^a and η − a move.
                let s = softplus(eta - a);
                d.cross = n * pq - c * r * p;
                d.extra_slope = n * p - c * r * s;
                d.extra_bend = 2.0 * c * r * p - c * r * s - n * pq;
            }
            _ => {
                let mean = c * exp(eta);
                (d.slope, d.bend) = (t - mean, -mean);
            }
        }
        d
    }
}

/// Copies the lower half of a matrix to the upper.
fn mirror(a: &mut Matrix) {
    for i in 0..a.rows() {
        for j in 0..i {
            a[(j, i)] = a[(i, j)];
        }
    }
}

#[derive(Default)]
struct RowDerivatives {
    slope: f64,
    bend: f64,
    cross: f64,
    extra_slope: f64,
    extra_bend: f64,
}

/// 1/(1 + e^−x) and its complement, neither by subtraction.
fn logistic(x: f64) -> (f64, f64) {
    let e = exp(-x.abs());
    let (large, small) = (1.0 / (1.0 + e), e / (1.0 + e));
    if x >= 0.0 { (large, small) } else { (small, large) }
}

/// 1/(1 + e^−x) and log(1 + eˣ), of one exponential.
#[inline(always)]
fn chance_and_softplus(x: f64) -> (f64, f64) {
    let e = exp(-x.abs());
    let large = 1.0 / (1.0 + e);
    (if x >= 0.0 { large } else { e * large }, x.max(0.0) + log1p_unit(e))
}

#[inline(always)]
fn lane_dot(a: &[f64], b: &Lanes) -> f64 {
    let mut sum = 0.0;
    for lane in 0..LANES {
        sum += a[lane] * b[lane];
    }
    sum
}
