//! What a shard works with: a likelihood times the shard's share of the prior.

use super::{LogLikelihood, Prior};
use crate::halt::Halt;
use crate::math::Matrix;
use crate::target::{Expansion, Target};
use std::sync::Arc;

/// log f_s(θ) = κ log p(y_s|θ) + w_s log p(θ), with κ = 1 but for a shard that stands for many like it.
#[derive(Debug, Clone)]
pub struct Subposterior {
    likelihood: Arc<dyn LogLikelihood>,
    priors: Vec<Prior>,
    power: f64,
    share: f64,
    start: Vec<f64>,
    /// What all priors' densities have in common at every θ, in logs.
    constant: f64,
    /// By which the work on it may be called off.
    halt: Option<Halt>,
}

/// Points that are weighed between two looks at whether they are still wanted.
const BETWEEN_LOOKS: usize = 256;

impl Subposterior {
    /// The subposterior of a likelihood under these priors of its free parameters, which act with
    /// power `share`, as a part of the whole.
    pub fn new(
        likelihood: Arc<dyn LogLikelihood>,
        priors: Vec<Prior>,
        share: f64,
        start: Vec<f64>,
    ) -> Subposterior {
        assert_eq!(likelihood.dim(), priors.len(), "one prior per free parameter");
        assert_eq!(start.len(), priors.len(), "a starting value per free parameter");
        let constant = priors.iter().map(Prior::log_constant).sum();
        Subposterior { likelihood, priors, power: 1.0, share, start, constant, halt: None }
    }

    /// The same with the likelihood raised to this power.
    pub fn with_power(self, power: f64) -> Subposterior {
        Subposterior { power, ..self }
    }

    /// The same, until this is called: from then on it has no density anywhere and costs nothing, so that whatever
    /// works on it comes to its end.
    pub fn until(self, halt: Option<Halt>) -> Subposterior {
        Subposterior { halt, ..self }
    }

    /// The power with which the likelihood acts.
    pub fn power(&self) -> f64 {
        self.power
    }

    /// The likelihood alone.
    pub fn likelihood(&self) -> &dyn LogLikelihood {
        &*self.likelihood
    }

    /// The priors of the free parameters.
    pub fn priors(&self) -> &[Prior] {
        &self.priors
    }

    /// The power with which the priors act.
    pub fn share(&self) -> f64 {
        self.share
    }

    fn log_prior(&self, theta: &[f64]) -> f64 {
        let shapes: f64 = self.priors.iter().zip(theta).map(|(p, &x)| p.log_shape(x)).sum();
        self.share * (shapes + self.constant)
    }
}

impl Target for Subposterior {
    fn dim(&self) -> usize {
        self.priors.len()
    }

    fn log_density(&self, theta: &[f64]) -> f64 {
        if self.is_called_off() {
            return f64::NEG_INFINITY;
        }
        let mut value = [0.0];
        self.likelihood.values(&[theta], &mut value);
        or_nothing(self.power * value[0] + self.log_prior(theta))
    }

    fn log_density_gradient(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        if self.is_called_off() {
            gradient.fill(0.0);
            return f64::NEG_INFINITY;
        }
        let value = self.likelihood.gradient(theta, gradient);
        for ((g, prior), &x) in gradient.iter_mut().zip(&self.priors).zip(theta) {
            *g = self.power * *g + self.share * prior.slope(x);
        }
        or_nothing(self.power * value + self.log_prior(theta))
    }

    fn expand(&self, theta: &[f64]) -> Expansion {
        if self.is_called_off() {
            return Expansion { value: f64::NEG_INFINITY, ..Expansion::zeros(theta.len()) };
        }
        let mut out = self.likelihood.expand(theta);
        out.scale(self.power);
        for (j, (prior, &x)) in self.priors.iter().zip(theta).enumerate() {
            let (value, slope, bend) = prior.expand(x);
            out.value += self.share * value;
            out.gradient[j] += self.share * slope;
            out.hessian[(j, j)] += self.share * bend;
        }
        // Nor can anybody climb by derivatives that overflowed.
        let lost = out.gradient.iter().chain(out.hessian.data()).any(|v| v.is_nan());
        out.value = if lost { f64::NEG_INFINITY } else { or_nothing(out.value) };
        out
    }

    fn log_densities(&self, thetas: &Matrix, out: &mut [f64]) {
        let points: Vec<&[f64]> = (0..out.len()).map(|k| thetas.row(k)).collect();
        // A point's value does not depend on which others it is weighed with.
        let at_once = if self.halt.is_some() { BETWEEN_LOOKS } else { points.len().max(1) };
        for (points, out) in points.chunks(at_once).zip(out.chunks_mut(at_once)) {
            if self.is_called_off() {
                out.fill(f64::NEG_INFINITY);
            } else {
                self.likelihood.values(points, out);
            }
        }
        for (value, theta) in out.iter_mut().zip(points) {
            *value = or_nothing(self.power * *value + self.log_prior(theta));
        }
    }

    fn is_called_off(&self) -> bool {
        self.halt.as_ref().is_some_and(Halt::is_called)
    }

    fn start(&self) -> Vec<f64> {
        self.start.clone()
    }
}

/// A sum that overflowed on its way (∞ − ∞) belongs to a point so far out that it has no density.
fn or_nothing(value: f64) -> f64 {
    if value.is_nan() { f64::NEG_INFINITY } else { value }
}
