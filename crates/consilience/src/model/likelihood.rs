//! The likelihood of one shard's rows under one model.

use crate::data::{Design, Table};
use crate::kernel::{Kernel, Rows};
use crate::math::special::log_rising_ratio;
use crate::math::{LOG_2PI, Matrix, dot};
use crate::model::{Family, Model};
use crate::target::Expansion;
use crate::{Error, Result};
use libm::{exp, lgamma, log};
use std::collections::HashMap;

/// log p(y_s|θ) for θ = the free coefficients, then the family's own parameter if it is free.
#[derive(Debug, Clone)]
pub struct Likelihood {
    /// Observations: rows, each counted with its weight.
    pub observations: f64,
    /// Per free coefficient, the observations in which its column is not 0.
    pub nonzero: Vec<f64>,
    /// Distinct rows that an evaluation visits.
    pub distinct: usize,
    coefficients: usize,
    /// log σ or log r where it is held fixed.
    fixed_extra: Option<f64>,
    body: Body,
}

#[derive(Debug, Clone)]
enum Body {
    Gaussian(Gaussian),
    Rows { rows: Rows, constant: f64, outcomes: Option<Outcomes> },
}

/// A Gaussian likelihood knows its rows through a quadratic function of β, taken around a point b
/// near the least-squares solution and through a triangular factor, so that nothing large cancels:
///
/// ```text
/// RSS(β) = RSS(b) − 2(β − b)'X'r + |R(β − b)|²,   r = y − Xb,   R'R = X'X.
/// ```
#[derive(Debug, Clone)]
struct Gaussian {
    observations: f64,
    around: Vec<f64>,
    rss: f64,
    xr: Vec<f64>,
    /// R, upper triangular, and its transpose.
    root: Matrix,
    root_transposed: Matrix,
}

/// The distinct outcomes of a negative binomial with their counts.
#[derive(Debug, Clone)]
struct Outcomes(Vec<(f64, f64)>);

/// The furthest log dispersion that is told apart: e^±700 is where doubles end, and the likelihood
/// has reached its limit (Poisson on the far side) long before.
const FURTHEST: f64 = 700.0;

impl Likelihood {
    /// Builds the likelihood of these rows. `fixed[j]` holds coefficient j, `fixed_extra` the
    /// family's own parameter. `kernel` is whose instructions evaluations use.
    pub fn new(
        family: Family,
        design: &Design,
        fixed: &[Option<f64>],
        fixed_extra: Option<f64>,
        kernel: Kernel,
    ) -> Likelihood {
        let n = design.response.len();
        let ones;
        let weights = match &design.weights {
            Some(weights) => weights,
            None => {
                ones = vec![1.0; n];
                &ones
            }
        };
        let mut offset = design.offset.clone().unwrap_or_else(|| vec![0.0; n]);
        let mut columns = Vec::new();
        for (column, value) in design.columns.iter().zip(fixed) {
            match value {
                None => columns.push(column),
                Some(value) => {
                    offset.iter_mut().zip(column).for_each(|(o, x)| *o += value * x);
                }
            }
        }
        let nonzero = columns
            .iter()
            .map(|c| c.iter().zip(weights).fold(0.0, |n, (x, w)| if *x == 0.0 { n } else { n + w }))
            .collect();
        let y = &design.response;
        let mut distinct = n;
        let body = if family == Family::Gaussian {
            Body::Gaussian(Gaussian::new(&columns, y, &offset, weights))
        } else {
            let merged = Merged::new(&columns, y, &offset, weights);
            distinct = merged.count.len();
            let Merged { columns, offset, count, total } = &merged;
            let rows = Rows::new(family, columns, offset, count, total, kernel);
            let outcomes = (family == Family::NegativeBinomial).then(|| Outcomes::new(y, weights));
            let constant = if family.is_count() {
                -y.iter().zip(weights).map(|(y, w)| w * lgamma(y + 1.0)).sum::<f64>()
            } else {
                0.0
            };
            Body::Rows { rows, constant, outcomes }
        };
        let observations = weights.iter().sum();
        let coefficients = columns.len();
        Likelihood { observations, nonzero, distinct, coefficients, fixed_extra, body }
    }

    /// The likelihood of a model on a table. An outcome that the family cannot have is an error
    /// that names its place.
    pub fn of(model: &Model, table: &Table) -> Result<Likelihood> {
        let design = model.recipe.design(table)?;
        for (row, &y) in design.response.iter().enumerate() {
            if let Some(wanted) = model.family.refuses(y) {
                let place = table.place(row, Some(&model.recipe.response.text));
                let message = format!(
                    "the outcome {y} does not fit family = \"{}\", which needs {wanted}; {}",
                    model.family,
                    remedy(model.family, &model.recipe.response.text)
                );
                return Err(Error::input_at(place, message));
            }
        }
        let fixed: Vec<Option<f64>> = model.parameters.iter().map(|p| p.prior.fixed()).collect();
        let (coefficients, own) = fixed.split_at(design.columns.len());
        let own = own.first().copied().flatten();
        Ok(Likelihood::new(model.family, &design, coefficients, own, model.kernel))
    }

    /// X'X over the free coefficients.
    pub fn gram(&self) -> Matrix {
        match &self.body {
            Body::Gaussian(gaussian) => gaussian.gram(),
            Body::Rows { rows, .. } => rows.gram(),
        }
    }

    /// The distinct rows; `None` for a Gaussian, which does not keep them.
    pub fn rows(&self) -> Option<&Rows> {
        match &self.body {
            Body::Gaussian(_) => None,
            Body::Rows { rows, .. } => Some(rows),
        }
    }

    /// The number of free parameters.
    pub fn dim(&self) -> usize {
        self.coefficients + usize::from(self.has_free_extra())
    }

    fn has_free_extra(&self) -> bool {
        self.fixed_extra.is_none()
            && match &self.body {
                Body::Gaussian(_) => true,
                Body::Rows { outcomes, .. } => outcomes.is_some(),
            }
    }

    /// The coefficients, and the family's own parameter (0 if it has none).
    fn parts<'a>(&self, theta: &'a [f64]) -> (&'a [f64], f64) {
        let (beta, extra) = theta.split_at(self.coefficients);
        (beta, extra.first().copied().or(self.fixed_extra).unwrap_or(0.0))
    }

    /// log p(y|θ) at each of these points. NaN only where a linear predictor overflows.
    pub fn values(&self, thetas: &[&[f64]], out: &mut [f64]) {
        let points: Vec<(&[f64], f64)> = thetas.iter().map(|theta| self.parts(theta)).collect();
        match &self.body {
            Body::Gaussian(gaussian) => {
                for (out, (beta, log_sd)) in out.iter_mut().zip(points) {
                    *out = gaussian.value(beta, log_sd);
                }
            }
            Body::Rows { rows, constant, outcomes } => {
                let clamp = |(beta, a): (_, f64)| (beta, a.clamp(-FURTHEST, FURTHEST));
                let points: Vec<(&[f64], f64)> = points.into_iter().map(clamp).collect();
                rows.values(&points, out);
                for (out, (_, a)) in out.iter_mut().zip(points) {
                    *out += outcomes.as_ref().map_or(0.0, |o| o.expand(exp(a)).0) + constant;
                }
            }
        }
    }

    /// log p(y|θ), its gradient written to `gradient`.
    pub fn gradient(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let (beta, extra) = self.parts(theta);
        let (rows, constant, outcomes) = match &self.body {
            Body::Gaussian(gaussian) => return gaussian.gradient(beta, extra, gradient),
            Body::Rows { rows, constant, outcomes } => (rows, constant, outcomes),
        };
        let a = extra.clamp(-FURTHEST, FURTHEST);
        let (mut value, mut slope) = rows.gradient(beta, a, &mut gradient[..self.coefficients]);
        value += constant;
        if let Some(outcomes) = outcomes {
            let (own, own_slope, _) = outcomes.expand(exp(a));
            value += own;
            slope += exp(a) * own_slope;
        }
        if let Some(last) = gradient.get_mut(self.coefficients) {
            *last = slope;
        }
        value
    }

    /// log p(y|θ) with gradient and Hessian in θ.
    pub fn expand(&self, theta: &[f64]) -> Expansion {
        let (beta, extra) = self.parts(theta);
        match &self.body {
            Body::Gaussian(gaussian) => gaussian.expand(beta, extra, self.has_free_extra()),
            Body::Rows { rows, constant, outcomes } => {
                let a = extra.clamp(-FURTHEST, FURTHEST);
                let (mut out, in_extra) = rows.expand(beta, a);
                out.value += constant;
                if let Some(outcomes) = outcomes {
                    let r = exp(a);
                    let own = outcomes.expand(r);
                    out.value += own.0;
                    if self.has_free_extra() {
                        // The outcomes' own term is a function of r = e^a.
                        let slope = in_extra.slope + r * own.1;
                        let bend = in_extra.bend + r * own.1 + r * r * own.2;
                        out = append(out, &in_extra.cross, slope, bend);
                    }
                }
                out
            }
        }
    }
}

/// An expansion in (β, a) from one in β.
fn append(inner: Expansion, cross: &[f64], slope: f64, bend: f64) -> Expansion {
    let p = cross.len();
    let mut out = Expansion::zeros(p + 1);
    out.value = inner.value;
    out.gradient[..p].copy_from_slice(&inner.gradient);
    out.gradient[p] = slope;
    for (i, &mixed) in cross.iter().enumerate() {
        out.hessian.row_mut(i)[..p].copy_from_slice(inner.hessian.row(i));
        out.hessian[(i, p)] = mixed;
        out.hessian[(p, i)] = mixed;
    }
    out.hessian[(p, p)] = bend;
    out
}

impl Gaussian {
    fn new(columns: &[&Vec<f64>], y: &[f64], offset: &[f64], weights: &[f64]) -> Gaussian {
        let target: Vec<f64> = y.iter().zip(offset).map(|(y, o)| y - o).collect();
        let scaled = |values: &[f64]| -> Vec<f64> {
            values.iter().zip(weights).map(|(v, w)| v * w.sqrt()).collect()
        };
        let (root, around) =
            upper_factor(columns.iter().map(|c| scaled(c)).collect(), scaled(&target));
        let mut residual = target;
        for (column, b) in columns.iter().zip(&around) {
            residual.iter_mut().zip(*column).for_each(|(r, x)| *r -= b * x);
        }
        let weighted: Vec<f64> = residual.iter().zip(weights).map(|(r, w)| r * w).collect();
        Gaussian {
            observations: weights.iter().sum(),
            rss: dot(&weighted, &residual),
            xr: columns.iter().map(|c| dot(c, &weighted)).collect(),
            around,
            root_transposed: root.transpose(),
            root,
        }
    }

    /// X'X.
    fn gram(&self) -> Matrix {
        self.root_transposed.product(&self.root)
    }

    /// RSS(β), with X'(y − Xβ) written to `xr`.
    fn residuals(&self, beta: &[f64], xr: &mut [f64]) -> f64 {
        xr.copy_from_slice(&self.xr);
        let mut rss = self.rss;
        let step = |i: usize| beta[i] - self.around[i];
        for (i, known) in self.xr.iter().enumerate() {
            rss -= 2.0 * step(i) * known;
        }
        for i in 0..beta.len() {
            // One row of R at a time: its product with the step, and what that adds to R'R·step.
            let row = &self.root.row(i)[i..];
            let image: f64 = row.iter().enumerate().map(|(k, r)| r * step(i + k)).sum();
            rss += image * image;
            xr[i..].iter_mut().zip(row).for_each(|(x, r)| *x -= image * r);
        }
        rss.max(0.0)
    }

    /// −n(u + ½ log 2π) − ½ RSS/σ², with 0·∞ = 0 for a perfect fit.
    fn value_from(&self, rss: f64, log_sd: f64) -> f64 {
        let misfit = if rss == 0.0 { 0.0 } else { 0.5 * rss * exp(-2.0 * log_sd) };
        -self.observations * (log_sd + 0.5 * LOG_2PI) - misfit
    }

    fn value(&self, beta: &[f64], log_sd: f64) -> f64 {
        self.value_from(self.residuals(beta, &mut vec![0.0; beta.len()]), log_sd)
    }

    /// The value; the gradient in β and, if there is room for it, in log σ.
    fn gradient(&self, beta: &[f64], log_sd: f64, gradient: &mut [f64]) -> f64 {
        let (slopes, own) = gradient.split_at_mut(beta.len());
        let rss = self.residuals(beta, slopes);
        let precision = exp(-2.0 * log_sd).min(f64::MAX);
        slopes.iter_mut().for_each(|g| *g *= precision);
        if let Some(own) = own.first_mut() {
            *own = if rss == 0.0 { 0.0 } else { rss * precision } - self.observations;
        }
        self.value_from(rss, log_sd)
    }

    fn expand(&self, beta: &[f64], log_sd: f64, free_sd: bool) -> Expansion {
        let mut xr = vec![0.0; beta.len()];
        let rss = self.residuals(beta, &mut xr);
        let precision = exp(-2.0 * log_sd).min(f64::MAX);
        let mut out = Expansion::zeros(beta.len());
        out.value = self.value_from(rss, log_sd);
        out.hessian.add_scaled(-precision, &self.gram());
        for (g, r) in out.gradient.iter_mut().zip(&xr) {
            *g = precision * r;
        }
        if !free_sd {
            return out;
        }
        let misfit = if rss == 0.0 { 0.0 } else { rss * precision };
        let cross: Vec<f64> = xr.iter().map(|r| -2.0 * precision * r).collect();
        append(out, &cross, misfit - self.observations, -2.0 * misfit)
    }
}

/// R of the QR factorisation of these columns by Householder reflections, and coefficients near the
/// least-squares ones: those of columns that others determine are 0.
fn upper_factor(mut columns: Vec<Vec<f64>>, mut target: Vec<f64>) -> (Matrix, Vec<f64>) {
    let (n, p) = (target.len(), columns.len());
    let mut root = Matrix::zeros(p, p);
    let norms: Vec<f64> = columns.iter().map(|c| dot(c, c).sqrt()).collect();
    for j in 0..p.min(n) {
        let (head, rest) = columns.split_at_mut(j + 1);
        let mirror = &mut head[j][j..];
        let norm = dot(mirror, mirror).sqrt();
        if norm > 0.0 {
            let pivot = -norm * mirror[0].signum();
            mirror[0] -= pivot;
            let scale = 2.0 / dot(mirror, mirror);
            for other in rest.iter_mut().chain([&mut target]) {
                let tail = &mut other[j..];
                let by = scale * dot(mirror, tail);
                tail.iter_mut().zip(mirror.iter()).for_each(|(t, m)| *t -= by * m);
            }
            root[(j, j)] = pivot;
        }
        for (k, other) in rest.iter().enumerate() {
            root[(j, j + 1 + k)] = other[j];
        }
    }
    let mut solution = vec![0.0; p];
    for j in (0..p.min(n)).rev() {
        if root[(j, j)].abs() > 1e-9 * norms[j] {
            let known = dot(&root.row(j)[j + 1..], &solution[j + 1..]);
            solution[j] = (target[j] - known) / root[(j, j)];
        }
    }
    (root, solution)
}

impl Outcomes {
    fn new(y: &[f64], weights: &[f64]) -> Outcomes {
        let mut counts: HashMap<u64, f64> = HashMap::new();
        for (y, w) in y.iter().zip(weights) {
            *counts.entry(*y as u64).or_default() += w;
        }
        let mut list: Vec<(u64, f64)> = counts.into_iter().collect();
        list.sort_unstable_by_key(|(y, _)| *y);
        Outcomes(list.into_iter().map(|(y, count)| (y as f64, count)).collect())
    }

    /// Σ log[Γ(y + r)/(Γ(r) r^y)] with its first two derivatives in r.
    fn expand(&self, r: f64) -> (f64, f64, f64) {
        self.0.iter().fold((0.0, 0.0, 0.0), |sum, &(y, count)| {
            let (value, slope, bend) = log_rising_ratio(y, r);
            (sum.0 + count * value, sum.1 + count * slope, sum.2 + count * bend)
        })
    }
}

/// Rows that agree in every column and the offset, merged. Those of a single observation come first;
/// within these and the others, those with the same columns not 0 stand together, otherwise in the
/// order in which they first come.
struct Merged {
    columns: Vec<Vec<f64>>,
    offset: Vec<f64>,
    count: Vec<f64>,
    total: Vec<f64>,
}

impl Merged {
    fn new(columns: &[&Vec<f64>], y: &[f64], offset: &[f64], weights: &[f64]) -> Merged {
        let n = y.len();
        let mut hash = vec![0xcbf2_9ce4_8422_2325_u64; n];
        for values in columns.iter().map(|c| c.as_slice()).chain([offset]) {
            for (h, v) in hash.iter_mut().zip(values) {
                // + 0.0 makes −0 and 0 one value.
                *h = (*h ^ (v + 0.0).to_bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                *h ^= *h >> 29;
            }
        }
        let same =
            |i: usize, k: usize| offset[i] == offset[k] && columns.iter().all(|c| c[i] == c[k]);
        let mut first = Vec::new();
        let (mut count, mut total) = (Vec::new(), Vec::new());
        let mut slots: HashMap<u64, Vec<u32>> = HashMap::with_capacity(n.min(1 << 16));
        for i in (0..n).filter(|&i| weights[i] > 0.0) {
            let candidates = slots.entry(hash[i]).or_default();
            let slot = candidates.iter().map(|&s| s as usize).find(|&s| same(i, first[s]));
            let slot = slot.unwrap_or_else(|| {
                candidates.push(first.len() as u32);
                first.push(i);
                count.push(0.0);
                total.push(0.0);
                first.len() - 1
            });
            count[slot] += weights[i];
            total[slot] += weights[i] * y[i];
        }
        let mut pattern = vec![0_u64; first.len()];
        for (j, column) in columns.iter().enumerate() {
            for (mark, &i) in pattern.iter_mut().zip(&first) {
                *mark = mark.rotate_left(7) ^ if column[i] == 0.0 { 0 } else { 1 + j as u64 };
            }
        }
        let mut order: Vec<usize> = (0..first.len()).collect();
        order.sort_by_key(|&slot| (count[slot] != 1.0, pattern[slot]));
        let pick = |values: &[f64]| order.iter().map(|&s| values[first[s]]).collect::<Vec<f64>>();
        Merged {
            columns: columns.iter().map(|c| pick(c)).collect(),
            offset: pick(offset),
            count: order.iter().map(|&s| count[s]).collect(),
            total: order.iter().map(|&s| total[s]).collect(),
        }
    }
}

/// log of the mean of the outcome on the link's scale, for a starting point of the intercept.
pub fn link_of_mean(family: Family, mean: f64, observations: f64) -> f64 {
    // Half an observation keeps a mean of 0 or 1 away from infinity.
    let edge = 0.5 / observations.max(1.0);
    match family {
        Family::Logistic | Family::Probit => {
            let p = mean.clamp(edge, 1.0 - edge);
            let logit = log(p / (1.0 - p));
            if family == Family::Probit { logit / 1.6 } else { logit }
        }
        Family::Poisson | Family::NegativeBinomial => log(mean.max(edge)),
        _ => mean,
    }
}
/// What to do about an outcome that the family cannot have.
fn remedy(family: Family, text: &str) -> String {
    if family.is_binary() {
        format!("mend the value, or write what counts as success, as in I({text} > 0)")
    } else {
        "mend the value, or take family = \"gaussian\" if it is no count".to_string()
    }
}
