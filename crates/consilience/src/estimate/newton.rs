//! Damped Newton ascent to the mode of a log density.
//!
//! Written as a machine that is fed one expansion at a time, so that the same code climbs a shard's
//! subposterior in a loop and the full posterior in rounds of questions.

use crate::math::{Cholesky, dot};
use crate::target::{Expansion, Mode, Target};
use crate::{Error, Result};

/// A slope, in nats per step, that leads nowhere.
const LEVEL: f64 = 1e-5;

/// What a Newton machine wants next.
#[derive(Debug, Clone)]
pub enum Step {
    /// The expansion at this point.
    Evaluate(Vec<f64>),
    /// Nothing more: the decrement is below the tolerance.
    Converged(Box<Mode>),
}

/// The state of an ascent.
#[derive(Debug, Clone)]
pub struct Newton {
    tolerance: f64,
    /// The best point so far; `None` before the first answer.
    current: Option<Current>,
    /// The point whose expansion was asked for.
    asked: Vec<f64>,
    evaluations: usize,
}

#[derive(Debug, Clone)]
struct Current {
    theta: Vec<f64>,
    at: Expansion,
    direction: Vec<f64>,
    /// ∇'·direction: the slope of the search, the squared decrement if nothing was damped.
    slope: f64,
    length: f64,
    mode: Option<Box<Mode>>,
}

impl Newton {
    /// An ascent from `start`, done when half the squared decrement is below `tolerance`.
    pub fn new(start: Vec<f64>, tolerance: f64) -> Newton {
        Newton { tolerance, current: None, asked: start, evaluations: 0 }
    }

    /// How many expansions were used.
    pub fn evaluations(&self) -> usize {
        self.evaluations
    }

    /// The point whose expansion is wanted.
    pub fn asked(&self) -> &[f64] {
        &self.asked
    }

    /// The best point that has a positive definite curvature, converged or not.
    pub fn best(&self) -> Option<&Mode> {
        self.current.as_ref().and_then(|c| c.mode.as_deref())
    }

    /// The best point so far, whatever the curvature there.
    pub fn best_point(&self) -> Option<&[f64]> {
        self.current.as_ref().map(|c| c.theta.as_slice())
    }

    /// The same with the expansion there.
    pub fn best_expansion(&self) -> Option<(&[f64], &Expansion)> {
        self.current.as_ref().map(|c| (c.theta.as_slice(), &c.at))
    }

    /// Takes the expansion at the asked point and says what comes next. Fails where no uphill step
    /// can be found or the density is nowhere finite.
    pub fn advance(&mut self, at: Expansion) -> Result<Step> {
        self.evaluations += 1;
        let finite = at.value.is_finite()
            && at.gradient.iter().all(|g| g.is_finite())
            && at.hessian.data().iter().all(|h| h.is_finite());
        if let Some(current) = &mut self.current {
            // Values of a large sum are known to a few units in their last place only.
            let noise = 1e-14 * (1.0 + current.at.value.abs());
            let wanted = 1e-4 * current.length * current.slope;
            let enough = finite && at.value >= current.at.value + wanted - noise;
            if !enough {
                current.length *= shorter(&current.at, &at, current.length, current.slope, finite);
                if current.length < 1e-12 {
                    return Err(Error::numeric(
                        "the search for the mode found no uphill step; standardise the columns with scale(), or use a prior with a smaller spread",
                    ));
                }
                self.asked = current.target();
                return Ok(Step::Evaluate(self.asked.clone()));
            }
        } else if !finite {
            return Err(Error::numeric(
                "the density is not finite at the starting point; standardise large columns with scale()",
            ));
        }
        let current = Current::new(std::mem::take(&mut self.asked), at)?;
        if let Some(mode) = current.mode.as_ref().filter(|m| m.decrement < self.tolerance) {
            let mode = mode.clone();
            self.current = Some(current);
            return Ok(Step::Converged(mode));
        }
        self.asked = current.target();
        self.current = Some(current);
        Ok(Step::Evaluate(self.asked.clone()))
    }
}

/// The factor by which a step that did not climb is shortened: to the top of the parabola through
/// what is known, within bounds.
fn shorter(from: &Expansion, to: &Expansion, length: f64, slope: f64, finite: bool) -> f64 {
    if !finite {
        return 0.2;
    }
    let expected = length * slope;
    let top = 0.5 * expected / (expected - (to.value - from.value));
    if top.is_finite() { top.clamp(0.1, 0.5) } else { 0.2 }
}

impl Current {
    fn new(theta: Vec<f64>, at: Expansion) -> Result<Current> {
        let mut precision = at.hessian.clone();
        precision.scale(-1.0);
        if let Some(factor) = Cholesky::new(&precision) {
            let direction = factor.solve(&at.gradient);
            let slope = dot(&direction, &at.gradient);
            let (value, decrement) = (at.value, 0.5 * slope);
            let mode = Mode { theta: theta.clone(), value, precision, factor, decrement };
            let mode = Some(Box::new(mode));
            return Ok(Current { theta, at, direction, slope, length: 1.0, mode });
        }
        // Not a hill here: lean on the diagonal until it is one (Levenberg and Marquardt).
        let diagonal: Vec<f64> = precision.diagonal().iter().map(|v| v.abs().max(1e-8)).collect();
        let mut lean = 1e-6;
        while lean < 1e12 {
            let mut leaning = precision.clone();
            for (j, d) in diagonal.iter().enumerate() {
                leaning[(j, j)] += lean * d;
            }
            if let Some(factor) = Cholesky::new(&leaning) {
                let direction = factor.solve(&at.gradient);
                let slope = dot(&direction, &at.gradient);
                if slope > LEVEL {
                    return Ok(Current { theta, at, direction, slope, length: 1.0, mode: None });
                }
                // A pass between two peaks: level, and rising to both sides of one axis.
                let (values, vectors) = at.hessian.symmetric_eigen();
                let rise = (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b]));
                if let Some(axis) = rise.filter(|&k| values[k] > 0.0) {
                    let direction: Vec<f64> = vectors.row(axis).to_vec();
                    let slope = slope.max(f64::MIN_POSITIVE);
                    return Ok(Current { theta, at, direction, slope, length: 1.0, mode: None });
                }
            }
            lean *= 10.0;
        }
        Err(Error::numeric(
            "the log density has no curvature to climb by: is it flat or unbounded? Use a prior with a finite spread, and scale() for columns that are far from 0",
        ))
    }

    fn target(&self) -> Vec<f64> {
        self.theta.iter().zip(&self.direction).map(|(t, d)| t + self.length * d).collect()
    }
}

/// Half the squared Newton decrement: how far below a peak with this curvature a slope says one is.
pub fn decrement(precision: &Cholesky, gradient: &[f64]) -> f64 {
    0.5 * precision.inverse_quadratic(gradient)
}

/// A mode that was looked for.
#[derive(Debug, Clone)]
pub struct NewtonFound {
    /// The best point.
    pub mode: Mode,
    /// Expansions used.
    pub steps: usize,
    /// Whether the decrement came below the tolerance.
    pub converged: bool,
}

/// Climbs a target that is at hand with at most `budget` expansions. Where these do not suffice the
/// best point is returned and said not to have converged; without any usable point it is an error.
pub fn find_mode(target: &dyn Target, tolerance: f64, budget: usize) -> Result<NewtonFound> {
    let mut newton = Newton::new(target.start(), tolerance);
    while newton.evaluations() < budget {
        match newton.advance(target.expand(newton.asked())) {
            Ok(Step::Converged(mode)) => {
                return Ok(NewtonFound {
                    mode: *mode,
                    steps: newton.evaluations(),
                    converged: true,
                });
            }
            Ok(Step::Evaluate(_)) => {}
            Err(error) if newton.best().is_none() => return Err(error),
            Err(_) => break,
        }
    }
    let steps = newton.evaluations();
    match newton.best() {
        Some(mode) => Ok(NewtonFound { mode: mode.clone(), steps, converged: false }),
        None => Err(Error::numeric(format!(
            "the search for the mode found no peak within {steps} steps; standardise the columns with scale(), or use a prior with a smaller spread",
        ))),
    }
}
