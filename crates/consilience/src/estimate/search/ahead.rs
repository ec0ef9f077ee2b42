//! Fewer rounds where there is one peak: what will be wanted next is asked for before it is needed.
//!
//! A round of questions can cost a day, the answers to one more point next to nothing. So where the next step of the
//! climb is nearly sure to end at the peak, the first draws ride on the same round: importance weights are right wherever
//! draws come from. Where they are poor, what follows is what always does: a look around the peak, and draws afresh. Third derivatives, where they are cheap, tell the peak and the
//! curvature there from a point that is not yet near, and to which sides the density falls slowly.

use super::super::ascent::{Climbed, Climber};
use super::super::importance::{T_DF, T_SHARE, sides};
use super::{MixturePart, Search, SearchStage, Wish};
use crate::estimate::Mode;
use crate::math::proposal::Draws;
use crate::math::rule::PROBES;
use crate::math::{Cholesky, Matrix, Proposal, dot};
use crate::target::{Expansion, Thirds};
use crate::{Error, Result};
use std::sync::Arc;

/// Nats below the peak from which the next step is taken to end near it: by a parabola, and by third derivatives.
const NEAR: f64 = 1.0;
const NEAR_BY_THIRDS: f64 = 300.0;
/// Nats below the peak at which a point stands for it: one more step, which needs no asking, and draws take care of
/// the rest.
const ARRIVED: f64 = 0.1;
/// The same where points around it tell the shape, and draws follow in any case.
const IN_SIGHT: f64 = 1.0;
/// The share of draws from a proposal that is wider where the posterior is skewed, and how much wider that is: points along
/// the axes say nothing of what lies between them.
const WIDER_SHARE: f64 = 0.25;
const WIDER: f64 = 1.4;
/// Scales from which a side is a skewed one.
const SKEWED: f64 = 1.1;
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
    draws: Draws,
    thetas: Arc<Matrix>,
    /// What is looked around, and the points.
    probes: Option<(Proposal, Matrix)>,
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
        if self.settings.single && self.coordinates.dim() > 0 {
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
        self.stage = SearchStage::Approach(z);
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
            if self.rounds_left() < 2 {
                return Err(Error::numeric(
                    "where shards say that the posterior is, it is not, and no rounds are left to look elsewhere; allow more `rounds` under [evidence]",
                ));
            }
            let start = self.coordinates.z(&self.start);
            return Ok(self.climb(vec![Climber::new(start, self.settings.tolerance)]));
        };
        if mode.decrement < self.settings.tolerance {
            let proposal = proposal_at(&mode).with_sides(sides_of_cubic(&mode.factor, &thirds));
            self.reached(0, mode);
            return Ok(self.ride(None, proposal));
        }
        let far = mode.decrement > NEAR_BY_THIRDS && self.rounds_left() > 1;
        if far && self.approaches < APPROACHES {
            return Ok(self.approach(step_by_thirds(&at.gradient, &mode, &thirds).z));
        }
        Ok(self.ride_by_thirds(&at.gradient, &mode, &thirds))
    }

    /// Has first draws ride on a step that third derivatives lead.
    fn ride_by_thirds(&mut self, gradient: &[f64], mode: &Mode, thirds: &Thirds) -> Wish {
        let next = step_by_thirds(gradient, mode, thirds);
        let proposal = Proposal::from_precision(next.z.clone(), &next.factor, T_SHARE, T_DF)
            .with_sides(sides_of_cubic(&next.factor, thirds));
        let climber = Climber::new(next.z.clone(), self.settings.tolerance);
        let value = mode.value + next.rise;
        let Ahead { z: theta, precision, factor, .. } = next;
        self.peaks = vec![Mode { theta, value, precision, factor, decrement: 0.0 }];
        self.ride(Some(climber), proposal)
    }

    /// Whether draws ride on the next step of a climb: it is likely the last, or there is no time for another.
    pub(super) fn is_last_step(&self, climber: &Climber) -> bool {
        let last = self.rounds_left() == 1;
        self.ahead && climber.so_far().is_some_and(|mode| last || mode.decrement < NEAR)
    }

    /// Has first draws ride on the next step of a climb.
    pub(super) fn ride_on(&mut self, climber: Climber) -> Wish {
        let from = climber.so_far().expect("it has taken a step");
        let z = climber.asked_z().to_vec();
        let value = from.value + from.decrement;
        let mode = Mode { theta: z, value, decrement: 0.0, ..from };
        let proposal = proposal_at(&mode);
        self.peaks = vec![mode];
        self.ride(Some(climber), proposal)
    }

    /// Asks for the step of a climb, and for draws from a proposal at its end.
    fn ride(&mut self, climber: Option<Climber>, proposal: Proposal) -> Wish {
        let plain = proposal.without_sides();
        self.shape(vec![proposal]);
        let expand = climber.as_ref().map(|c| c.asked(&self.coordinates));
        self.newton_rounds += usize::from(expand.is_some());
        let (draws, set) = self.point_set(self.pilot());
        self.weigh_rounds += usize::from(expand.is_none());
        let thetas = set.thetas.clone();
        let (probes, around) = match self.settings.few.is_some() || expand.is_none() {
            true => (None, None),
            false => {
                let (points, set) = self.probes(vec![plain.clone()]);
                (Some((plain, points)), Some(set))
            }
        };
        let ride = Ride { climber, draws, thetas, probes };
        self.stage = SearchStage::Ride(Box::new(ride));
        Wish::Ahead { expand, draws: set, probes: around }
    }

    /// Takes what rode on a step.
    pub(super) fn ridden(
        &mut self,
        ride: Ride,
        at: Option<Expansion>,
        log_f: &[f64],
        around: Option<Vec<f64>>,
    ) -> Result<Wish> {
        let Ride { climber, draws, thetas, probes } = ride;
        let (mut stepped, mut seen_around, mut is_there) = (None, None, true);
        if let (Some(climber), Some(at)) = (climber, at) {
            let z = climber.asked_z().to_vec();
            let guess = std::mem::take(&mut self.peaks).pop();
            let expansion = self.coordinates.expand(&z, &self.coordinates.theta(&z), &at, 1.0);
            let mode = mode_at(&z, &expansion).filter(|_| expansion.value.is_finite());
            let limit = match around {
                // What rode along is all that there will be; how good it is its weights say.
                _ if self.rounds_left() == 0 => f64::INFINITY,
                Some(_) => IN_SIGHT,
                None => ARRIVED,
            };
            let Some(mode) = mode.filter(|mode| mode.decrement < limit) else {
                return self.not_there(climber, guess, &at, draws, thetas, log_f);
            };
            let step = mode.factor.solve(&expansion.gradient);
            stepped = Some(z.iter().zip(&step).map(|(z, s)| z + s).collect::<Vec<f64>>());
            if let (Some((proposal, points)), Some(log_f)) = (probes, around) {
                let heights = self.heights(&points, &log_f);
                seen_around = sides_from_near(&proposal, heights, &expansion.gradient, &mode);
            }
            is_there = mode.decrement < ARRIVED;
            // Draws start from one step further, and each squares what is left. How far that is their weights say.
            let decrement = match is_there {
                true => mode.decrement * mode.decrement,
                false if self.rounds_left() == 0 => mode.decrement,
                false => 0.0,
            };
            self.reached(0, Mode { decrement, ..mode });
        }
        let last = self.rounds_left() == 0;
        if is_there || last {
            let will_do = self.is_well_drawn(draws, thetas, log_f)?;
            if will_do || last {
                return self.judged();
            }
        }
        // A look around the peak as it is known now, and draws afresh: those at hand are of a guess at it.
        self.forget();
        self.parts.clear();
        if let Some(centre) = stepped {
            self.peaks[0].theta = centre;
        }
        self.is_hard = true;
        if let Some(sides) = seen_around {
            self.shape_by(sides);
            return Ok(self.draw(self.pilot()));
        }
        Ok(self.begin_looking_around())
    }

    /// Goes on where a step did not end at the peak: what rode along is of no use, unless nothing else will come.
    fn not_there(
        &mut self,
        mut climber: Climber,
        guess: Option<Mode>,
        at: &Expansion,
        draws: Draws,
        thetas: Arc<Matrix>,
        log_f: &[f64],
    ) -> Result<Wish> {
        if self.rounds_left() == 0 {
            // How far it is from a guess to the peak nobody knows. The point that was asked about is neither of these.
            let unknown = |guess| Mode { decrement: f64::INFINITY, ..guess };
            self.peaks.extend(climber.so_far().or(guess.map(unknown)));
            self.take_in(draws, thetas, log_f)?;
            return self.judged();
        }
        self.parts.clear();
        match climber.advance(at, &self.coordinates) {
            Climbed::OnItsWay if self.is_last_step(&climber) => Ok(self.ride_on(climber)),
            Climbed::OnItsWay if self.rounds_left() > 1 => Ok(self.climb(vec![climber])),
            _ if self.rounds_left() > 1 => Ok(self.climb(vec![self.centred_climb()])),
            _ => Err(Error::numeric(
                "the step to the peak of the posterior led nowhere, and no rounds are left to look elsewhere; allow more `rounds` under [evidence]",
            )),
        }
    }

    /// Takes in the draws that rode along; whether they will do.
    fn is_well_drawn(&mut self, draws: Draws, thetas: Arc<Matrix>, log_f: &[f64]) -> Result<bool> {
        self.take_in(draws, thetas, log_f)?;
        let weighted = self.weighted.as_ref().expect("just put there");
        let (seen, count) = (weighted.summarise(), weighted.len() as f64);
        let enough = seen.log_z.se.unwrap_or(0.0) <= self.settings.se_target;
        Ok(seen.is_reliable() && (enough || seen.ess > GOOD * count))
    }

    /// Makes the mixture of a skewed posterior with one peak: with these scales, and with wider ones.
    fn shape_by(&mut self, sides: Vec<(f64, f64)>) {
        let wider = |side: f64| if side > SKEWED { WIDER * side } else { side };
        let wide = sides.iter().map(|&(below, above)| (wider(below), wider(above))).collect();
        let plain = proposal_at(&self.peaks[0]);
        self.shape(vec![plain.clone().with_sides(sides)]);
        let sum: f64 = self.parts.iter().map(|part| part.share).sum();
        let share = sum * WIDER_SHARE / (1.0 - WIDER_SHARE);
        self.parts.push(MixturePart::new(share, plain.with_sides(wide)));
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

/// The scales to both sides of a peak along the axes of its curvature, by points around a place near it: `proposal` has the
/// centre and the axes that were looked along, `heights` the log densities, `gradient` and `mode` what was found at that
/// centre. The slope there is taken off, and axes are as long as the curvature that was found has them.
fn sides_from_near(
    proposal: &Proposal,
    mut heights: Vec<f64>,
    gradient: &[f64],
    mode: &Mode,
) -> Option<Vec<(f64, f64)>> {
    let d = gradient.len();
    let axis = |i: usize| -> Vec<f64> {
        let mut x = vec![0.0; d];
        x[i] = 1.0;
        proposal.at(&x).iter().zip(proposal.centre()).map(|(a, b)| a - b).collect()
    };
    let axes: Vec<Vec<f64>> = (0..d).map(axis).collect();
    let each = heights[1..].chunks_exact_mut(2 * PROBES.len());
    for (heights, axis) in each.zip(&axes) {
        let slope = dot(gradient, axis);
        let distances = PROBES.iter().map(|x| -x).chain(PROBES);
        heights.iter_mut().zip(distances).for_each(|(height, x)| *height -= slope * x);
    }
    let lengths = axes.iter().map(|axis| mode.precision.quadratic(axis).sqrt());
    let sides = sides(&heights).into_iter().zip(lengths).map(|((b, a), by)| (b * by, a * by));
    let sides: Vec<(f64, f64)> = sides.collect();
    let sound = |x: f64| x.is_finite() && x > 0.0;
    sides.iter().all(|&(b, a)| sound(a) && sound(b)).then_some(sides)
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
