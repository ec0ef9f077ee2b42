//! Climbs to the peaks of a posterior, from one start or from several at once.
//!
//! A posterior can have several peaks where its prior and its likelihood are at odds: heavy-tailed priors
//! can give way or hold on, and a scale parameter can take a misfit for noise. So climbs start from the
//! study's own guess, from the prior's centre and from the likelihood's peak, which is climbed first, with
//! next to no prior. Every climb wants one expansion a round; all are asked for together.

use super::{Mode, Newton, Step};
use crate::Error;
use crate::math::{Cholesky, Matrix};
use crate::model::Coordinates;
use crate::target::Expansion;

/// Half the squared Newton decrement at which the peak of the likelihood, or of some coordinates, is near
/// enough, and the most steps on the way there: it is only a start.
const ROUGHLY: f64 = 1e-2;
const ROUGH_STEPS: usize = 12;

/// The least precision that a proposal keeps of a prior whose precision is 1.
const LEAST_PRECISION: f64 = 0.25;

/// One climb.
#[derive(Debug)]
pub(super) struct Climber {
    newton: Newton,
    ground: Ground,
}

/// What is climbed.
#[derive(Debug)]
enum Ground {
    /// The posterior, in z.
    Posterior,
    /// The same along some coordinates only; the others stay.
    Along(Vec<bool>),
    /// The likelihood, in θ, with a pull towards the start that is weak everywhere.
    Likelihood { start: Vec<f64>, pull: Option<Vec<f64>> },
}

/// Where a climb is after a step.
pub(super) enum Climbed {
    /// Not there yet.
    OnItsWay,
    /// At a peak.
    Peak(Box<Mode>),
    /// As high as the coordinates lead that may move: where, and the expansion there.
    Turn(Vec<f64>, Box<Expansion>),
    /// At the likelihood's peak, which is this θ.
    LikelihoodPeak(Vec<f64>),
    /// It leads nowhere.
    Lost(Error),
}

impl Climber {
    /// A climb of the posterior from z, done when half the squared decrement is below `tolerance`.
    pub(super) fn new(z: Vec<f64>, tolerance: f64) -> Climber {
        Climber { newton: Newton::new(z, tolerance), ground: Ground::Posterior }
    }

    /// A climb of the posterior from z along those coordinates that may move.
    pub(super) fn along(z: Vec<f64>, moves: Vec<bool>) -> Climber {
        Climber { newton: Newton::new(z, ROUGHLY), ground: Ground::Along(moves) }
    }

    /// A climb of the likelihood from θ.
    pub(super) fn of_likelihood(theta: Vec<f64>) -> Climber {
        let ground = Ground::Likelihood { start: theta.clone(), pull: None };
        Climber { newton: Newton::new(theta, ROUGHLY), ground }
    }

    /// The θ whose expansion it wants.
    pub(super) fn asked(&self, coordinates: &Coordinates) -> Vec<f64> {
        match self.ground {
            Ground::Posterior | Ground::Along(_) => coordinates.theta(self.newton.asked()),
            Ground::Likelihood { .. } => self.newton.asked().to_vec(),
        }
    }

    /// The same point in the coordinates that it climbs in.
    pub(super) fn asked_z(&self) -> &[f64] {
        self.newton.asked()
    }

    /// Takes the expansion of the log density in θ there.
    pub(super) fn advance(&mut self, at: &Expansion, coordinates: &Coordinates) -> Climbed {
        let asked = self.newton.asked().to_vec();
        match &mut self.ground {
            Ground::Posterior => {
                let theta = coordinates.theta(&asked);
                match self.newton.advance(coordinates.expand(&asked, &theta, at, 1.0)) {
                    Ok(Step::Converged(mode)) => Climbed::Peak(mode),
                    Ok(Step::Evaluate(_)) => Climbed::OnItsWay,
                    Err(error) => Climbed::Lost(error),
                }
            }
            Ground::Along(moves) => {
                let theta = coordinates.theta(&asked);
                let mut at = coordinates.expand(&asked, &theta, at, 1.0);
                for j in (0..asked.len()).filter(|&j| !moves[j]) {
                    at.gradient[j] = 0.0;
                    for k in 0..asked.len() {
                        at.hessian[(j, k)] = 0.0;
                        at.hessian[(k, j)] = 0.0;
                    }
                    at.hessian[(j, j)] = -1.0;
                }
                match self.newton.advance(at) {
                    Ok(Step::Evaluate(_)) if self.newton.evaluations() < ROUGH_STEPS => {
                        Climbed::OnItsWay
                    }
                    step => match (self.newton.best_expansion(), step) {
                        (Some((z, at)), _) => Climbed::Turn(z.to_vec(), Box::new(at.clone())),
                        (None, Err(error)) => Climbed::Lost(error),
                        (None, Ok(_)) => Climbed::OnItsWay,
                    },
                }
            }
            Ground::Likelihood { start, pull } => {
                let mut rest = coordinates.rest(&asked, at, 1.0);
                let weakly = |(j, bend): (usize, f64)| {
                    1e-3 * bend.abs() + 1e-8 / coordinates.scale(j).powi(2)
                };
                let diagonal = rest.hessian.diagonal().into_iter().enumerate();
                let pull = pull.get_or_insert_with(|| diagonal.map(weakly).collect());
                for (j, (p, s)) in pull.iter().zip(start.iter()).enumerate() {
                    let offset = asked[j] - s;
                    rest.value -= 0.5 * p * offset * offset;
                    rest.gradient[j] -= p * offset;
                    rest.hessian[(j, j)] -= p;
                }
                let step = self.newton.advance(rest);
                if self.newton.evaluations() < ROUGH_STEPS && matches!(step, Ok(Step::Evaluate(_)))
                {
                    return Climbed::OnItsWay;
                }
                match (self.newton.best_point(), step) {
                    (Some(theta), _) => Climbed::LikelihoodPeak(theta.to_vec()),
                    (None, Err(error)) => Climbed::Lost(error),
                    (None, Ok(_)) => Climbed::Lost(Error::numeric("the likelihood has no peak")),
                }
            }
        }
    }

    /// The best that a climb of the posterior has seen, with a curvature made definite; `None` before its
    /// first step, and for a climb of the likelihood.
    pub(super) fn so_far(&self) -> Option<Mode> {
        match self.ground {
            Ground::Likelihood { .. } | Ground::Along(_) => None,
            Ground::Posterior => self.newton.best().cloned().or_else(|| {
                let (z, at) = self.newton.best_expansion()?;
                let (precision, factor) = definite(&at.hessian)?;
                let slope = super::newton::decrement(&factor, &at.gradient);
                Some(Mode {
                    theta: z.to_vec(),
                    value: at.value,
                    precision,
                    factor,
                    decrement: slope,
                })
            }),
        }
    }
}

/// −H with every eigenvalue at least [`LEAST_PRECISION`], and its factor; `None` for what is not finite.
pub(super) fn definite(hessian: &Matrix) -> Option<(Matrix, Cholesky)> {
    if hessian.data().iter().any(|h| !h.is_finite()) {
        return None;
    }
    let d = hessian.rows();
    let (values, vectors) = hessian.symmetric_eigen();
    let mut precision = Matrix::zeros(d, d);
    for (k, value) in values.iter().enumerate() {
        precision.add_outer((-value).max(LEAST_PRECISION), vectors.row(k));
    }
    let factor = Cholesky::new(&precision)?;
    Some((precision, factor))
}
