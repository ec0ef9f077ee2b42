//! Where all coefficients are 0: the point at which the metric of a g-prior is taken.
//!
//! The intercept there is the one that the likelihood alone would have. Without offsets it is the link of the outcome's
//! mean. Offsets move it, and so do coefficients that are held fixed: it is looked for by rounds, so that neither the
//! unit of an exposure nor a constant in an offset changes the prior.

use crate::math::special::normal_quantile;
use crate::model::{Body, Family, Model, Regression};
use crate::target::Expansion;
use crate::{Error, Result};
use libm::{exp, log};
use std::f64::consts::TAU;
use std::sync::Arc;

/// A step of the intercept that is no step any more: the information changes by this share of it.
const ARRIVED: f64 = 1e-6;

/// The longest step before the place is known to lie between two points.
const LONGEST: f64 = 20.0;

/// The model that shards are asked about, and what its curvature is to be multiplied with. The curvature of a logistic or
/// a Poisson likelihood is its information, whatever the outcome. A probit likelihood's is not: it would make the prior
/// depend on which rows are successes. Where all rows have one predictor, as they have here, its information is a multiple
/// of that of a logistic model with the same fitted share.
pub(super) fn informative(model: &Arc<Model>) -> (Arc<Model>, f64) {
    match &model.body {
        Body::Regression(regression) if regression.family == Family::Probit => {
            let p = aim(regression);
            let z = normal_quantile(p);
            let density_squared = exp(-z * z) / TAU;
            let mut logistic = regression.clone();
            logistic.family = Family::Logistic;
            let other = Model { body: Body::Regression(logistic), ..Model::clone(model) };
            let all = p * (1.0 - p);
            (Arc::new(other), density_squared / (all * all))
        }
        _ => (model.clone(), 1.0),
    }
}

/// The mean that fitted values are to have: the outcome's, kept away from the ends as a search's start is.
fn aim(regression: &Regression) -> f64 {
    let response = regression.response();
    let edge = 0.5 / response.weight.max(1.0);
    let most = if regression.family == Family::Poisson { f64::INFINITY } else { 1.0 - edge };
    response.mean.clamp(edge, most)
}

/// On the way to that point.
pub(super) struct NullSearch {
    is_poisson: bool,
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
    /// Of a model that [`informative`] gave, whose intercept is this one of its free parameters.
    pub(super) fn new(model: &Model, intercept: usize, observations: f64) -> NullSearch {
        let mut theta = vec![0.0; model.dim()];
        let (mut mean, mut aimed) = (0.5, 0.5);
        if let Some(regression) = model.regression() {
            theta[intercept] = regression.level();
            (mean, aimed) = (regression.response().mean, aim(regression));
        }
        NullSearch {
            is_poisson: model.family() == Some(Family::Poisson),
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

    /// Takes in what the likelihood is like at that point, and goes on from there unless that is the one.
    pub(super) fn has_arrived(&mut self, at: &Expansion) -> Result<bool> {
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
        if self.is_poisson {
            return log(aim / spread);
        }
        // Each of the two is more than their product, also where a difference would leave nothing of it.
        let success = (mean - slope / n).max(spread);
        let failure = (1.0 - mean + slope / n).max(spread);
        let off = log(aim / (1.0 - aim)) - log(success / failure);
        off * success * failure / spread
    }
}
