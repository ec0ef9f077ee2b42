//! Fewer rounds where there is one peak: what will be wanted next is asked for before it is needed.
//!
//! A round of questions can cost a day, the answers to one more point next to nothing. So where the next step of the
//! climb is nearly sure to end at the peak, the first draws ride on the same round: importance weights are right wherever
//! draws come from. Where they are poor, what follows is what always does: a look around the peak, and draws afresh. Third derivatives, where they are cheap, tell the peak and the
//! curvature there from a point that is not yet near, and to which sides the density falls slowly.

use super::super::ascent::{Climbed, Climber};
use super::super::importance::{T_DF, T_SHARE};
use super::{Search, Stage, Wish};
use crate::Result;
use crate::estimate::Mode;
use crate::math::proposal::Draws;
use crate::math::{Cholesky, Matrix, Proposal, dot};
use crate::target::{Expansion, Thirds};
use std::sync::Arc;

/// Nats below the peak from which the next step is taken to end near it: by a parabola, and by third derivatives.
const NEAR: f64 = 1.0;
const NEAR_BY_THIRDS: f64 = 300.0;
/// Nats below the peak at which a point stands for it: one more step, which needs no asking, and draws take care of
/// the rest.
const ARRIVED: f64 = 0.1;
/// How often third derivatives are asked for before plain climbing takes over.
const APPROACHES: usize = 3;
/// The share of effective draws from which a proposal is left as it is.
const GOOD: f64 = 0.75;
/// How far out a cubic is believed, in standard deviations, and the widest side that it may ask for.
const BELIEVED: [f64; 2] = [1.0, 2.0];
const WIDEST: f64 = 2.0;

/// What rides on a step.
pub(super) struct Ride {
    /// The climb that asked for the expansion; `None` where the peak is known.
    climber: Option<Climber>,
    /// The third derivatives that led there, in z.
    thirds: Option<Thirds>,
    draws: Draws,
    thetas: Arc<Matrix>,
}

/// The next point of a climb as third derivatives have it, with the precision there and the rise on the way.
struct Ahead {
    z: Vec<f64>,
    precision: Matrix,
    factor: Cholesky,
    rise: f64,
}

impl Search {
    /// A search that begins at θ, where others say the peak is about, with third derivatives if they are cheap.
    pub fn from_near(mut self, theta: Option<Vec<f64>>, thirds: bool) -> Search {
        // With few rounds, all are needed as they are.
        if self.settings.single && self.settings.rounds >= 6 && self.coordinates.dim() > 0 {
            self.ahead = true;
            self.thirds = thirds && self.coordinates.units().is_some();
            self.near = theta.filter(|theta| theta.iter().all(|x| x.is_finite()));
        }
        self
    }

    /// The first step of a search that knows about where the peak is.
    pub(super) fn begin_near(&mut self, theta: &[f64]) -> Wish {
        let z = self.coordinates.z(theta);
        if self.thirds {
            return self.approach(z);
        }
        self.climb(vec![Climber::new(z, self.settings.tolerance)])
    }

    fn approach(&mut self, z: Vec<f64>) -> Wish {
        self.newton_rounds += 1;
        self.approaches += 1;
        let theta = self.coordinates.theta(&z);
        self.stage = Stage::Approach(z);
        Wish::Cubic(theta)
    }

    /// Takes log f to third order.
    pub(super) fn approached(
        &mut self,
        z: Vec<f64>,
        at: &Expansion,
        thirds: Thirds,
    ) -> Result<Wish> {
        let units = self.coordinates.units().expect("asked only where coordinates have units");
        let thirds = thirds.scaled(&units);
        let at = self.coordinates.expand(&z, &self.coordinates.theta(&z), at, 1.0);
        let usable = at.value.is_finite() && thirds.0.iter().all(|t| t.is_finite());
        let mode = if usable { mode_at(&z, &at) } else { None };
        let Some(mode) = mode else {
            // Others were wrong about the peak.
            let start = self.coordinates.z(&self.start);
            return Ok(self.climb(vec![Climber::new(start, self.settings.tolerance)]));
        };
        if mode.decrement < self.settings.tolerance {
            let proposal = proposal_at(&mode).with_sides(sides_of_cubic(&mode.factor, &thirds));
            self.reached(0, mode);
            return Ok(self.ride(None, proposal, None));
        }
        if mode.decrement > NEAR_BY_THIRDS && self.approaches < APPROACHES {
            return Ok(self.approach(step_by_thirds(&at.gradient, &mode, &thirds).z));
        }
        Ok(self.ride_by_thirds(&at.gradient, &mode, thirds))
    }

    /// Has first draws ride on a step that third derivatives lead.
    fn ride_by_thirds(&mut self, gradient: &[f64], mode: &Mode, thirds: Thirds) -> Wish {
        let next = step_by_thirds(gradient, mode, &thirds);
        let proposal = Proposal::from_precision(next.z.clone(), &next.factor, T_SHARE, T_DF)
            .with_sides(sides_of_cubic(&next.factor, &thirds));
        let climber = Climber::new(next.z.clone(), self.settings.tolerance);
        let value = mode.value + next.rise;
        let Ahead { z: theta, precision, factor, .. } = next;
        self.peaks = vec![Mode { theta, value, precision, factor, decrement: 0.0 }];
        self.ride(Some(climber), proposal, Some(thirds))
    }

    /// Whether the next step of a climb is likely its last.
    pub(super) fn is_near(&self, climber: &Climber) -> bool {
        self.ahead && climber.so_far().is_some_and(|mode| mode.decrement < NEAR)
    }

    /// Has first draws ride on the next step of a climb.
    pub(super) fn ride_on(&mut self, climber: Climber) -> Wish {
        let from = climber.so_far().expect("it has taken a step");
        let z = climber.asked_z().to_vec();
        let value = from.value + from.decrement;
        let mode = Mode { theta: z, value, decrement: 0.0, ..from };
        let proposal = proposal_at(&mode);
        self.peaks = vec![mode];
        self.ride(Some(climber), proposal, None)
    }

    /// Asks for the step of a climb, and for draws from a proposal at its end.
    fn ride(
        &mut self,
        climber: Option<Climber>,
        proposal: Proposal,
        thirds: Option<Thirds>,
    ) -> Wish {
        self.shape(vec![proposal]);
        let expand = climber.as_ref().map(|c| c.asked(&self.coordinates));
        self.newton_rounds += usize::from(expand.is_some());
        let (draws, set) = self.point_set(self.pilot());
        self.weigh_rounds += usize::from(expand.is_none());
        let thetas = set.thetas.clone();
        let ride = Ride { climber, thirds, draws, thetas };
        self.stage = Stage::Ride(Box::new(ride));
        Wish::Ahead { expand, draws: set }
    }

    /// Takes what rode on a step.
    pub(super) fn ridden(
        &mut self,
        ride: Ride,
        at: Option<Expansion>,
        log_f: &[f64],
    ) -> Result<Wish> {
        let Ride { climber, thirds, draws, thetas } = ride;
        let mut stepped = None;
        if let (Some(mut climber), Some(at)) = (climber, at) {
            let z = climber.asked_z().to_vec();
            self.peaks.clear();
            let expansion = self.coordinates.expand(&z, &self.coordinates.theta(&z), &at, 1.0);
            let mode = mode_at(&z, &expansion).filter(|_| expansion.value.is_finite());
            let (arrived, short) = match mode {
                Some(mode) if mode.decrement < ARRIVED => (Some(mode), None),
                short => (None, short),
            };
            let Some(mode) = arrived else {
                // Not there yet: what rode along is of no use. Third derivatives change slowly.
                self.parts.clear();
                if let (Some(mode), Some(thirds)) = (short, thirds)
                    && self.approaches < APPROACHES
                    && mode.decrement < NEAR_BY_THIRDS
                {
                    self.approaches += 1;
                    return Ok(self.ride_by_thirds(&expansion.gradient, &mode, thirds));
                }
                return match climber.advance(&at, &self.coordinates) {
                    Climbed::OnItsWay if self.is_near(&climber) => Ok(self.ride_on(climber)),
                    Climbed::OnItsWay => Ok(self.climb(vec![climber])),
                    _ => Ok(self.climb(vec![self.centred_climb()])),
                };
            };
            let step = mode.factor.solve(&expansion.gradient);
            stepped = Some(z.iter().zip(&step).map(|(z, s)| z + s).collect::<Vec<f64>>());
            // Draws start from one step further, and each squares what is left.
            let decrement = mode.decrement * mode.decrement;
            self.reached(0, Mode { decrement, ..mode });
        }
        self.take_in(draws, thetas, log_f)?;
        let weighted = self.weighted.as_ref().expect("just put there");
        let (seen, count) = (weighted.summarise(), weighted.len() as f64);
        let enough = seen.log_z.se.unwrap_or(0.0) <= self.settings.se_target;
        if seen.is_reliable() && (enough || seen.ess > GOOD * count) {
            return self.judged();
        }
        // A look around the peak as it is known now, and draws afresh: those at hand are of a guess at it.
        self.forget();
        self.parts.clear();
        if let Some(centre) = stepped {
            self.peaks[0].theta = centre;
        }
        self.is_hard = true;
        Ok(self.begin_looking_around())
    }
}

/// A point with its curvature, if that is a peak's.
fn mode_at(z: &[f64], at: &Expansion) -> Option<Mode> {
    let mut precision = at.hessian.clone();
    precision.scale(-1.0);
    let finite = at.gradient.iter().chain(precision.data()).all(|x| x.is_finite());
    let factor = if finite { Cholesky::new(&precision)? } else { return None };
    let decrement = 0.5 * factor.inverse_quadratic(&at.gradient);
    Some(Mode { theta: z.to_vec(), value: at.value, precision, factor, decrement })
}

fn proposal_at(mode: &Mode) -> Proposal {
    Proposal::from_precision(mode.theta.clone(), &mode.factor, T_SHARE, T_DF)
}

/// Halley's step, (A − ½T[δ])⁻¹g with Newton's δ, where it leads uphill; else Newton's. From tens of nats below the peak
/// of a logistic posterior it ends at some hundredths, where Newton's leaves a nat.
fn step_by_thirds(gradient: &[f64], mode: &Mode, thirds: &Thirds) -> Ahead {
    let newton = mode.factor.solve(gradient);
    let mut leaning = mode.precision.clone();
    leaning.add_scaled(-0.5, &thirds.along(&newton));
    let step = Cholesky::new(&leaning).map_or(newton, |factor| factor.solve(gradient));
    let bend = thirds.along(&step);
    let straight = dot(gradient, &step) - 0.5 * mode.precision.quadratic(&step);
    let rise = (straight + bend.quadratic(&step) / 6.0).max(0.0);
    let mut precision = mode.precision.clone();
    precision.add_scaled(-1.0, &bend);
    let z = mode.theta.iter().zip(&step).map(|(z, s)| z + s).collect();
    match Cholesky::new(&precision) {
        Some(factor) => Ahead { z, precision, factor, rise },
        None => {
            let (precision, factor) = (mode.precision.clone(), mode.factor.clone());
            Ahead { z, precision, factor, rise }
        }
    }
}

/// The scales below and above a peak along every axis of its proposal, by third derivatives: the log density falls
/// like x²/2 − t·x³/6.
fn sides_of_cubic(precision: &Cholesky, thirds: &Thirds) -> Vec<(f64, f64)> {
    // The columns of the proposal's factor are the rows of this.
    let axes = precision.inverse_lower();
    let side = |t: f64| {
        let scale = |x: f64| {
            let drop = 0.5 * x * x - t * x * x * x / 6.0;
            x / (2.0 * drop.max(0.5 * x * x / (WIDEST * WIDEST))).sqrt()
        };
        BELIEVED.iter().map(|&x| scale(x)).fold(0.0, f64::max)
    };
    (0..axes.rows())
        .map(|i| {
            let axis = axes.row(i);
            let t = dot(axis, &thirds.along(axis).times(axis));
            (side(-t), side(t))
        })
        .collect()
}
