//! The likelihood of one shard's rows under one model.

use crate::data::{Design, Table};
use crate::kernel::{Kernel, Rows};
use crate::math::Matrix;
use crate::math::special::log_rising_ratio;
use crate::model::{Family, Gaussian, Model};
use crate::target::Expansion;
use crate::{Error, Result};
use libm::{exp, lgamma, log};
use std::collections::{HashMap, HashSet};

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
        Likelihood::of_design(family, design.clone(), fixed, fixed_extra, kernel)
    }

    /// The same without a copy of the design.
    fn of_design(
        family: Family,
        design: Design,
        fixed: &[Option<f64>],
        fixed_extra: Option<f64>,
        kernel: Kernel,
    ) -> Likelihood {
        let y = design.response;
        let n = y.len();
        let weights = design.weights.unwrap_or_else(|| vec![1.0; n]);
        let mut offset = design.offset.unwrap_or_else(|| vec![0.0; n]);
        let mut columns = Vec::new();
        for (column, value) in design.columns.into_iter().zip(fixed) {
            match value {
                None => columns.push(column),
                Some(value) => {
                    offset.iter_mut().zip(column).for_each(|(o, x)| *o += value * x);
                }
            }
        }
        let counted = |(x, w): (&f64, &f64)| if *x == 0.0 { 0.0 } else { *w };
        let nonzero = columns.iter().map(|c| c.iter().zip(&weights).map(counted).sum()).collect();
        let observations = weights.iter().sum();
        let coefficients = columns.len();
        let mut distinct = n;
        let body = if family == Family::Gaussian {
            let target: Vec<f64> = y.iter().zip(&offset).map(|(y, o)| y - o).collect();
            let columns: Vec<&Vec<f64>> = columns.iter().collect();
            Body::Gaussian(Gaussian::of_rows(&columns, &target, &weights))
        } else {
            let outcomes =
                (family == Family::NegativeBinomial).then(|| Outcomes::new(&y, &weights));
            let constant = if family.is_count() {
                -y.iter().zip(&weights).map(|(y, w)| w * lgamma(y + 1.0)).sum::<f64>()
            } else {
                0.0
            };
            let Merged { columns, offset, count, total } = Merged::new(columns, y, offset, weights);
            distinct = count.len();
            let rows = Rows::new(family, &columns, &offset, &count, &total, kernel);
            Body::Rows { rows, constant, outcomes }
        };
        Likelihood { observations, nonzero, distinct, coefficients, fixed_extra, body }
    }

    /// The Gaussian likelihood of rows that are known by their sufficient statistics.
    pub fn of_gaussian(gaussian: Gaussian, fixed_log_sd: Option<f64>) -> Likelihood {
        let coefficients = gaussian.reduced().1.len();
        Likelihood {
            observations: gaussian.observations(),
            // Statistics do not say which entries were 0.
            nonzero: vec![gaussian.observations(); coefficients],
            distinct: coefficients + 1,
            coefficients,
            fixed_extra: fixed_log_sd,
            body: Body::Gaussian(gaussian),
        }
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
        Ok(Likelihood::of_design(model.family, design, coefficients, own, model.kernel))
    }

    /// About how many bytes it takes.
    pub fn memory(&self) -> usize {
        match &self.body {
            Body::Gaussian(_) => 2 * self.coefficients * self.coefficients * size_of::<f64>(),
            // The columns; offset, count and total of every row.
            Body::Rows { .. } => self.distinct * (self.coefficients + 3) * size_of::<f64>(),
        }
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

    /// The Gaussian itself, and log σ where it is held fixed; `None` for other families.
    pub fn gaussian(&self) -> Option<(&Gaussian, Option<f64>)> {
        match &self.body {
            Body::Gaussian(gaussian) => Some((gaussian, self.fixed_extra)),
            Body::Rows { .. } => None,
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
pub(super) fn append(inner: Expansion, cross: &[f64], slope: f64, bend: f64) -> Expansion {
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
    fn new(columns: Vec<Vec<f64>>, y: Vec<f64>, offset: Vec<f64>, weights: Vec<f64>) -> Merged {
        if weights.iter().all(|w| *w == 1.0) && is_hopeless(&columns, &offset) {
            return Merged { columns, offset, count: weights, total: y };
        }
        Merged::by_hash(&columns, &y, &offset, &weights)
    }

    fn by_hash(columns: &[Vec<f64>], y: &[f64], offset: &[f64], weights: &[f64]) -> Merged {
        let n = y.len();
        let mut hashes = vec![0xcbf2_9ce4_8422_2325_u64; n];
        for values in columns.iter().map(|c| c.as_slice()).chain([offset]) {
            hashes.iter_mut().zip(values).for_each(|(h, v)| *h = hash(*h, *v));
        }
        let same =
            |i: usize, k: usize| offset[i] == offset[k] && columns.iter().all(|c| c[i] == c[k]);
        let mut first = Vec::new();
        let (mut count, mut total) = (Vec::new(), Vec::new());
        let mut slots: HashMap<u64, Vec<u32>> = HashMap::with_capacity(n.min(1 << 16));
        for i in (0..n).filter(|&i| weights[i] > 0.0) {
            let candidates = slots.entry(hashes[i]).or_default();
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

/// The hash of a row, one more value taken in.
fn hash(row: u64, value: f64) -> u64 {
    // + 0.0 makes −0 and 0 one value.
    let mixed = (row ^ (value + 0.0).to_bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// Rows below which looking for equal ones costs nothing to speak of.
const FEW: usize = 4096;

/// Whether hardly any rows are equal and hardly a value is 0, so that merging and sorting would cost more
/// than they save. It goes by 8√n rows: if no two of them are equal then, most likely, no more than one
/// row in ten has an equal among all n.
fn is_hopeless(columns: &[Vec<f64>], offset: &[f64]) -> bool {
    let n = offset.len();
    if n < FEW {
        return false;
    }
    let sample = 8 * n.isqrt();
    let mut seen = HashSet::with_capacity(sample);
    let mut zeros = 0;
    for k in 0..sample {
        // Somewhere in the k-th of equal parts: evenly, but without a period that the rows might share.
        let jitter = (k.wrapping_mul(0x9e37_79b9) >> 8) % (n / sample);
        let i = k * n / sample + jitter;
        let start = hash(0xcbf2_9ce4_8422_2325, offset[i]);
        let row = columns.iter().map(|c| c[i]);
        zeros += row.clone().filter(|x| *x == 0.0).count();
        if !seen.insert(row.fold(start, hash)) {
            return false;
        }
    }
    zeros * 5 < sample * columns.len()
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
