//! The evidence of a Gaussian linear model with normal priors, by quadrature.
//!
//! Given σ the coefficients integrate out in closed form. With R'R = X'X, priors N(m, S²) and the
//! singular values R·S = Σ dⱼ uⱼvⱼ', cⱼ = uⱼ'(z − Rm), τ = 1/σ²,
//!
//! ```text
//! log p(y|σ) = −n log σ − n/2 log 2π − ½ Σ log(1 + τdⱼ²) − ½τ [ρ² + Σ cⱼ²/(1 + τdⱼ²)]
//! ```
//!
//! where ρ is what no coefficient reaches. What is left is an integral over u = log σ, for which the
//! trapezoidal rule converges faster than any power of its step.

use super::Estimate;
use crate::math::svd::Svd;
use crate::math::{LOG_2PI, Matrix, dot};
use crate::model::{Gaussian, Prior};
use libm::{exp, log, log1p};

/// Nats below the peak at which an integrand no longer counts.
const NEGLIGIBLE: f64 = 45.0;

/// Where log σ is looked for: e^±300 squared still is a number.
const FURTHEST: f64 = 300.0;

/// The most nodes of a rule.
const MOST_NODES: usize = 20_000;

/// The evidence and the posterior's moments.
#[derive(Debug, Clone)]
pub struct Linear {
    /// log Z; its error is that of the quadrature and of rounding.
    pub log_z: Estimate,
    /// Posterior mean of the free coefficients, then of log σ if that is free.
    pub mean: Vec<f64>,
    /// Posterior covariance.
    pub covariance: Matrix,
    /// Nodes of the rule; 1 where σ is fixed.
    pub nodes: usize,
}

/// The model in coordinates in which the coefficients are independent given σ.
struct Rotated {
    observations: f64,
    /// log ∫ p(β)ʷ dβ, which the power of a normal density lacks to be one.
    log_alpha: f64,
    /// dⱼ², cⱼ and ρ².
    squares: Vec<f64>,
    along: Vec<f64>,
    rest: f64,
    /// β = m + S·V'b: the rows of V, the prior's means and standard deviations.
    directions: Matrix,
    means: Vec<f64>,
    sds: Vec<f64>,
}

impl Linear {
    /// ∫ p(y|θ) p(θ)ʷ dθ for these priors: of the coefficients, then of log σ if it is free. `None` if
    /// a coefficient's prior is not normal, or if the integral over log σ has no single clear peak.
    pub fn new(
        gaussian: &Gaussian,
        priors: &[Prior],
        share: f64,
        fixed_log_sd: Option<f64>,
    ) -> Option<Linear> {
        let p = gaussian.reduced().1.len();
        let model = Rotated::new(gaussian, &priors[..p], share)?;
        match (fixed_log_sd, priors.get(p)) {
            (Some(u), _) => Some(model.given(u)),
            (None, Some(prior)) => {
                model.integrate(&|u| (share * prior.log_density(u), share * prior.slope(u)))
            }
            (None, None) => None,
        }
    }
}

impl Rotated {
    fn new(gaussian: &Gaussian, priors: &[Prior], share: f64) -> Option<Rotated> {
        let (mut means, mut sds, mut log_alpha) = (Vec::new(), Vec::new(), 0.0);
        for prior in priors {
            let Prior::Normal { mean, sd } = *prior else { return None };
            means.push(mean);
            sds.push(sd / share.sqrt());
            log_alpha += prior.log_alpha(share)?;
        }
        let (root, image, rest) = gaussian.reduced();
        let mut scaled = root.clone();
        for i in 0..scaled.rows() {
            scaled.row_mut(i).iter_mut().zip(&sds).for_each(|(r, s)| *r *= s);
        }
        let svd = Svd::new(&scaled);
        let mut left: Vec<f64> =
            image.iter().zip(root.times(&means)).map(|(z, fit)| z - fit).collect();
        let along: Vec<f64> = (0..means.len()).map(|j| dot(svd.left.row(j), &left)).collect();
        for (j, c) in along.iter().enumerate() {
            left.iter_mut().zip(svd.left.row(j)).for_each(|(l, u)| *l -= c * u);
        }
        Some(Rotated {
            observations: gaussian.observations(),
            log_alpha,
            squares: svd.values.iter().map(|d| d * d).collect(),
            along,
            rest: dot(&left, &left) + rest * rest,
            directions: svd.right,
            means,
            sds,
        })
    }

    /// log p(y|σ) with log α, and its derivative in u = log σ.
    fn log_likelihood(&self, u: f64) -> (f64, f64) {
        let tau = exp(-2.0 * u);
        let (mut misfit, mut logs) = (self.rest, 0.0);
        let (mut slope, mut pull) = (-self.observations, self.rest);
        for (&square, &c) in self.squares.iter().zip(&self.along) {
            let ratio = tau * square;
            let shrink = 1.0 / (1.0 + ratio);
            misfit += c * c * shrink;
            logs += log1p(ratio);
            slope += 1.0 - shrink;
            pull += c * c * shrink * shrink;
        }
        let value = -self.observations * (u + 0.5 * LOG_2PI) - 0.5 * logs - 0.5 * tau * misfit;
        (value + self.log_alpha, slope + tau * pull)
    }

    /// Conditional means and variances of the rotated coefficients.
    fn conditional(&self, u: f64) -> impl Iterator<Item = (f64, f64)> {
        let tau = exp(-2.0 * u);
        self.squares.iter().zip(&self.along).map(move |(&square, &c)| {
            let shrink = 1.0 / (1.0 + tau * square);
            (tau * square.sqrt() * c * shrink, shrink)
        })
    }

    fn given(&self, u: f64) -> Linear {
        let (value, _) = self.log_likelihood(u);
        let (b, variances): (Vec<f64>, Vec<f64>) = self.conditional(u).unzip();
        let mut inner = Matrix::zeros(b.len(), b.len());
        variances.iter().enumerate().for_each(|(j, v)| inner[(j, j)] = *v);
        let (mean, covariance) = self.back(&b, &inner);
        Linear { log_z: Estimate::new(value, rounding(value)), mean, covariance, nodes: 1 }
    }

    /// Mean and covariance of β from those of the rotated coefficients.
    fn back(&self, b: &[f64], inner: &Matrix) -> (Vec<f64>, Matrix) {
        let out = self.directions.transpose();
        let turned = out.times(b);
        let mean: Vec<f64> =
            (0..b.len()).map(|i| self.means[i] + self.sds[i] * turned[i]).collect();
        let mut covariance = out.product(inner).product(&self.directions);
        for i in 0..b.len() {
            for j in 0..b.len() {
                covariance[(i, j)] *= self.sds[i] * self.sds[j];
            }
        }
        (mean, covariance)
    }

    /// The integral over log σ; `prior` gives log p(u)ʷ and its slope.
    fn integrate(&self, prior: &dyn Fn(f64) -> (f64, f64)) -> Option<Linear> {
        let at = |u: f64| {
            let (likelihood, prior) = (self.log_likelihood(u), prior(u));
            (likelihood.0 + prior.0, likelihood.1 + prior.1)
        };
        let peak = peak(&|u| at(u).1)?;
        let top = at(peak).0;
        let curvature = (at(peak - 1e-4).1 - at(peak + 1e-4).1) / 2e-4;
        let mut step = 0.5 / curvature.max(1e-4).sqrt();
        let (mut log_z, mut error) = (f64::NAN, f64::INFINITY);
        let mut nodes: Vec<(f64, f64)> = Vec::new();
        // Halve the step until that changes nothing; the first halving nearly always says so.
        for _ in 0..12 {
            nodes = rule(&|u| at(u).0 - top, peak, step)?;
            let sum: f64 = nodes.iter().map(|(_, height)| height).sum();
            let finer = top + log(step * sum);
            error = (finer - log_z).abs();
            log_z = finer;
            if error < 1e-11 {
                break;
            }
            step *= 0.5;
        }
        if error.is_nan() || error >= 1e-6 {
            return None;
        }
        let (mean, covariance) = self.moments(&nodes);
        let log_z = Estimate::new(log_z, error.max(rounding(log_z)));
        Some(Linear { log_z, mean, covariance, nodes: nodes.len() })
    }

    /// Moments of (β, u) over the nodes (u, height).
    fn moments(&self, nodes: &[(f64, f64)]) -> (Vec<f64>, Matrix) {
        let p = self.means.len();
        let total: f64 = nodes.iter().map(|(_, height)| height).sum();
        let mut mean = vec![0.0; p + 1];
        let mut inner = Matrix::zeros(p + 1, p + 1);
        let point = |u: f64| -> (Vec<f64>, Vec<f64>) {
            let (mut b, variances): (Vec<f64>, Vec<f64>) = self.conditional(u).unzip();
            b.push(u);
            (b, variances)
        };
        for &(u, height) in nodes {
            let (b, variances) = point(u);
            mean.iter_mut().zip(&b).for_each(|(m, b)| *m += height / total * b);
            for (j, v) in variances.iter().enumerate() {
                inner[(j, j)] += height / total * v;
            }
        }
        for &(u, height) in nodes {
            let offset: Vec<f64> = point(u).0.iter().zip(&mean).map(|(b, m)| b - m).collect();
            inner.add_outer(height / total, &offset);
        }
        let block = (0..p).flat_map(|i| inner.row(i)[..p].to_vec()).collect();
        let (mut beta, covariance) = self.back(&mean[..p], &Matrix::from_rows(p, p, block));
        let cross = self.directions.transpose().times(&inner.row(p)[..p]);
        let mut all = Matrix::zeros(p + 1, p + 1);
        for i in 0..p {
            all.row_mut(i)[..p].copy_from_slice(covariance.row(i));
            all[(i, p)] = self.sds[i] * cross[i];
            all[(p, i)] = all[(i, p)];
        }
        all[(p, p)] = inner[(p, p)];
        beta.push(mean[p]);
        (beta, all)
    }
}

/// What rounding may have done to a sum of this size.
fn rounding(value: f64) -> f64 {
    8.0 * f64::EPSILON * value.abs()
}

/// Where a slope changes from up to down; `None` if it does so more than once, or never.
fn peak(slope: &dyn Fn(f64) -> f64) -> Option<f64> {
    let cells = 4 * FURTHEST as usize;
    let at = |k: usize| -FURTHEST + 0.5 * k as f64;
    let up: Vec<bool> = (0..=cells).map(|k| slope(at(k)) > 0.0).collect();
    let mut turns = (0..cells).filter(|&k| up[k] && !up[k + 1]);
    let (first, None) = (turns.next()?, turns.next()) else { return None };
    let (mut low, mut high) = (at(first), at(first + 1));
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if slope(middle) > 0.0 { low = middle } else { high = middle }
    }
    Some(0.5 * (low + high))
}

/// Nodes (u, e^g(u)) of the trapezoidal rule with this step, as far as they count, left to right.
fn rule(g: &dyn Fn(f64) -> f64, peak: f64, step: f64) -> Option<Vec<(f64, f64)>> {
    let side = |sign: f64| -> Option<Vec<(f64, f64)>> {
        let mut nodes = Vec::new();
        for k in 1..MOST_NODES {
            let u = peak + sign * step * k as f64;
            let value = g(u);
            if value.is_nan() || value <= -NEGLIGIBLE {
                return Some(nodes);
            }
            nodes.push((u, exp(value)));
        }
        None
    };
    let (left, right) = (side(-1.0)?, side(1.0)?);
    Some(left.into_iter().rev().chain([(peak, exp(g(peak)))]).chain(right).collect())
}
