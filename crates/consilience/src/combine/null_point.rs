//! Where all coefficients are 0: the point at which the metric of a g-prior is taken.
//!
//! The intercept there is the one that the likelihood alone would have. Without offsets it is the link of the outcome's
//! mean. Offsets move it, and so do coefficients that are held fixed: it is looked for by rounds, so that neither the
//! unit of an exposure nor a constant in an offset changes the prior.
//!
//! The curvature of a logistic or a Poisson likelihood is its information, whatever the outcome. A probit likelihood's is
//! not: it would make the prior depend on which rows are successes. With all rows at the predictor η it is
//! a(η)G₁ + a(−η)G₀, where G₁ and G₀ are X'X of the successes and of the failures. So the curvatures at η and −η add up to
//! a multiple of X'X, of which the information anywhere is another.

use crate::math::Matrix;
use crate::math::special::{log_normal_cdf, normal_quantile};
use crate::model::{Family, Model, Regression};
use crate::target::Expansion;
use crate::{Error, Result};
use libm::{exp, log};
use std::f64::consts::TAU;

/// A step of the intercept that is no step any more: the information changes by this share of it.
const ARRIVED: f64 = 1e-6;

/// The longest step before the place is known to lie between two points.
const LONGEST: f64 = 20.0;

/// The mean that fitted values are to have: the outcome's, kept away from the ends as a search's start is.
fn aim(regression: &Regression) -> f64 {
    let response = regression.response();
    let edge = 0.5 / response.weight.max(1.0);
    let most = if regression.family == Family::Poisson { f64::INFINITY } else { 1.0 - edge };
    response.mean.clamp(edge, most)
}

/// On the way to that point.
pub(super) struct NullSearch {
    family: Option<Family>,
    intercept: usize,
    theta: Vec<f64>,
    /// The outcome's mean, and that which fitted values are to have.
    mean: f64,
    aim: f64,
    observations: f64,
    /// Between which intercepts it lies.
    bracket: (f64, f64),
}

impl NullSearch {
    /// Of a model whose intercept is this one of its free parameters.
    pub(super) fn new(model: &Model, intercept: usize, observations: f64) -> NullSearch {
        let mut theta = vec![0.0; model.dim()];
        let (mut mean, mut aimed) = (0.5, 0.5);
        if let Some(regression) = model.regression() {
            theta[intercept] = regression.level();
            (mean, aimed) = (regression.response().mean, aim(regression));
        }
        NullSearch {
            family: model.family(),
            intercept,
            theta,
            mean,
            aim: aimed,
            observations,
            bracket: (f64::NEG_INFINITY, f64::INFINITY),
        }
    }

    /// The point that it is at.
    pub(super) fn theta(&self) -> &[f64] {
        &self.theta
    }

    /// The points that shards are to be asked about.
    pub(super) fn points(&self) -> Matrix {
        let mut rows = self.theta.clone();
        if self.is_probit() {
            rows[self.intercept] = 1.0;
            rows.extend_from_within(..);
            rows[self.theta.len() + self.intercept] = -1.0;
        }
        Matrix::from_rows(rows.len() / self.theta.len(), self.theta.len(), rows)
    }

    /// Whether what shards are asked about is the likelihood at that point itself.
    pub(super) fn is_there(&self) -> bool {
        !self.is_probit()
    }

    fn is_probit(&self) -> bool {
        self.family == Some(Family::Probit)
    }

    /// Takes in what the likelihood is like at the points. The information at the one that is sought, if it is reached;
    /// else it goes on from there.
    pub(super) fn heard(&mut self, at: Vec<Expansion>) -> Result<Option<Expansion>> {
        let mut at = at.into_iter();
        let mut next = || at.next().ok_or_else(|| Error::numeric("a point has no answer"));
        let mut here = next()?;
        if self.is_probit() {
            let z = normal_quantile(self.aim);
            let information = exp(-z * z) / (TAU * self.aim * (1.0 - self.aim));
            here.hessian.add_scaled(1.0, &next()?.hessian);
            here.hessian.scale(information / (bend(1.0) + bend(-1.0)));
            return Ok(Some(here));
        }
        Ok(if self.has_arrived(&here)? { Some(here) } else { None })
    }

    fn has_arrived(&mut self, at: &Expansion) -> Result<bool> {
        let here = self.theta[self.intercept];
        let step =
            self.step(at.gradient[self.intercept], -at.hessian[(self.intercept, self.intercept)]);
        if step.is_nan() {
            return Err(Error::numeric(
                "the information about the coefficients at 0 is no number; see whether an offset is far too large",
            ));
        }
        if step.abs() < ARRIVED {
            return Ok(true);
        }
        match step > 0.0 {
            true => self.bracket.0 = here,
            false => self.bracket.1 = here,
        }
        let (low, high) = self.bracket;
        let next = here + step.clamp(-LONGEST, LONGEST);
        let inside = next > low && next < high;
        self.theta[self.intercept] = if inside { next } else { 0.5 * (low + high) };
        Ok(false)
    }

    /// Newton's step for the link of the fitted mean, which is nearly a straight line: one step does where all offsets
    /// are the same, and for counts whatever they are.
    fn step(&self, slope: f64, curvature: f64) -> f64 {
        let (n, mean, aim) = (self.observations, self.mean, self.aim);
        let spread = (curvature / n).max(f64::MIN_POSITIVE);
        if self.family == Some(Family::Poisson) {
            return log(aim / spread);
        }
        // Each of the two is more than their product, also where a difference would leave nothing of it.
        let success = (mean - slope / n).max(spread);
        let failure = (1.0 - mean + slope / n).max(spread);
        let off = log(aim / (1.0 - aim)) - log(success / failure);
        off * success * failure / spread
    }
}

/// The curvature of −log Φ(η).
fn bend(eta: f64) -> f64 {
    -log_normal_cdf(eta).2
}
