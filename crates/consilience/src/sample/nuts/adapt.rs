//! The length of a step, learnt while the sampler warms up.

use libm::{exp, log, pow, sqrt};

/// The mean acceptance that the step is adapted to.
///
/// The coordinates are nearly those of a standard normal. There a trajectory that has made half a turn is long enough,
/// and a step of 1 to 1.1 makes it in three steps; shorter ones take seven. So a lower rate than the usual 0.8 gives as
/// many effective draws for half of the gradients, in two dimensions as in twenty.
const ACCEPTANCE: f64 = 0.6;
/// The longest step. In few dimensions longer ones would be accepted too, up to a length of 2, where the integrator
/// ceases to be stable. But from 1.2 on energies come out far from those of the trajectory, and a chain that sits low
/// in the density stays there: effective draws for squares become few.
const LONGEST: f64 = 1.1;
/// The shortest, so that it stays a number: far below what any density asks for.
const SHORTEST: f64 = 1e-10;

/// Dual averaging of log ε: Nesterov's (2009), with the constants of Hoffman & Gelman (2014).
pub(super) struct StepSize {
    /// The sum of acceptances that were short of the wanted one.
    shortfall: f64,
    updates: f64,
    log_step: f64,
    /// A weighted mean of log ε, in which later ones count more.
    log_mean: f64,
}

impl StepSize {
    /// Begins with the longest step, to which it is also drawn: where the curvature at the mode is that of the density,
    /// there is little to learn.
    pub fn new() -> StepSize {
        let log_step = log(LONGEST);
        StepSize { shortfall: 0.0, updates: 0.0, log_step, log_mean: log_step }
    }

    /// Takes note of how the points of a trajectory at this step were accepted.
    pub fn update(&mut self, acceptance: f64) {
        self.updates += 1.0;
        self.shortfall += ACCEPTANCE - acceptance;
        let pull = 20.0 * sqrt(self.updates) / (self.updates + 10.0);
        let wanted = log(LONGEST) - pull * self.shortfall;
        self.log_step = wanted.clamp(log(SHORTEST), log(LONGEST));
        self.log_mean += pow(self.updates, -0.75) * (self.log_step - self.log_mean);
    }

    /// The step to try next.
    pub fn next(&self) -> f64 {
        exp(self.log_step)
    }

    /// The step to stay with.
    pub fn settled(&self) -> f64 {
        exp(self.log_mean)
    }
}
