//! The likelihood of all models around a point, as the centre knows it.
//!
//! A model that leaves terms out is the model with all terms at a point where their coefficients are 0. So
//! questions about the one model with all columns, at points with zeros in them, tell about every model, and a
//! pass over the rows serves them all.

use super::sites;
use crate::combine::Setting;
use crate::engine::Session;
use crate::math::{Cholesky, LOG_2PI, Matrix, dot};
use crate::model::{Family, Prior};
use crate::question::{Expand, Points, Weigh};
use crate::space::{Quadratic, Space, StandIn};
use crate::target::Expansion;
use crate::{Error, Result};
use std::sync::Arc;

/// Half a squared Newton decrement at which a climb ends: what follows moves the centre anyway.
const NEAR: f64 = 0.05;

/// At most how often a step is made shorter in a row.
const SHORTER: usize = 12;

/// Who knows the log likelihood of the model with all terms.
pub(super) struct Centre<'a> {
    pub session: &'a Session<'a>,
    pub setting: &'a Setting,
    pub priors: Vec<Prior>,
}

impl<'a> Centre<'a> {
    pub(super) fn new(session: &'a Session<'a>, setting: &'a Setting) -> Centre<'a> {
        Centre { session, setting, priors: setting.model.free_priors() }
    }

    /// The observations on all shards.
    pub(super) fn rows(&self) -> f64 {
        self.setting.observations()
    }

    fn points(&self, thetas: Matrix) -> Vec<Points> {
        let (model, share) = (self.setting.model.clone(), self.setting.share);
        vec![Points { model, share, thetas: Arc::new(thetas), rule: None }]
    }

    /// The log likelihood to second order at these points: one round.
    pub(super) fn expand(&self, points: &[Vec<f64>]) -> Result<Vec<Expansion>> {
        let thetas = Matrix::from_rows(points.len(), self.priors.len(), points.concat());
        let question = Expand(self.points(thetas));
        let (mut sums, _) = self.session.ask_one(&question)?.sum(&question)?;
        let mut found = sums.pop().unwrap_or_default();
        // Shards send their shares of the prior with it, which add up to all of it.
        for (at, theta) in found.iter_mut().zip(points) {
            for (j, (prior, &x)) in self.priors.iter().zip(theta).enumerate() {
                let (value, slope, bend) = prior.expand(x);
                at.value -= value;
                at.gradient[j] -= slope;
                at.hessian[(j, j)] -= bend;
            }
        }
        Ok(found)
    }

    /// The log likelihood at every row of points: one round.
    pub(super) fn weigh(&self, thetas: Matrix) -> Result<Vec<f64>> {
        let question = Weigh(self.points(thetas));
        let (mut sums, _) = self.session.ask_one(&question)?.sum(&question)?;
        let mut found = sums.pop().unwrap_or_default();
        for (k, value) in found.iter_mut().enumerate() {
            let theta = question.0[0].thetas.row(k);
            *value -= self.priors.iter().zip(theta).map(|(p, &x)| p.log_density(x)).sum::<f64>();
        }
        Ok(found)
    }

    /// Climbs near the mode of the model with all terms under these normal priors. Returns the place and the
    /// likelihood there.
    pub(super) fn climb(&self, sites: &[StandIn], rounds: usize) -> Result<(Vec<f64>, Expansion)> {
        self.climb_from(self.setting.model.start(), sites, rounds)
    }

    fn climb_from(
        &self,
        mut theta: Vec<f64>,
        sites: &[StandIn],
        rounds: usize,
    ) -> Result<(Vec<f64>, Expansion)> {
        let density = |theta: &[f64], at: &Expansion| -> f64 {
            at.value + sites.iter().zip(theta).map(|(s, &x)| s.log_density(x)).sum::<f64>()
        };
        let mut at = self.expand(std::slice::from_ref(&theta))?.remove(0);
        if !density(&theta, &at).is_finite() {
            // A start that fits the outcome's mean may be far out where columns are; 0 never is.
            theta = vec![0.0; theta.len()];
            at = self.expand(std::slice::from_ref(&theta))?.remove(0);
        }
        let mut value = density(&theta, &at);
        if !value.is_finite() {
            return Err(Error::numeric(
                "the likelihood of the model with all terms is 0 wherever a search could begin; write columns in other units, or as scale(x)",
            ));
        }
        for _ in 0..rounds {
            let (factor, _) = definite(&precision(&at, sites));
            let slope: Vec<f64> =
                (0..theta.len()).map(|j| at.gradient[j] + sites[j].slope(theta[j])).collect();
            if 0.5 * factor.inverse_quadratic(&slope) < NEAR {
                break;
            }
            let mut step = factor.solve(&slope);
            let mut moved = false;
            for _ in 0..SHORTER {
                let next: Vec<f64> = theta.iter().zip(&step).map(|(x, s)| x + s).collect();
                let found = self.expand(std::slice::from_ref(&next))?.remove(0);
                let there = density(&next, &found);
                if there.is_finite() && there >= value {
                    (theta, at, value, moved) = (next, found, there, true);
                    break;
                }
                step.iter_mut().for_each(|s| *s *= 0.25);
            }
            if !moved {
                break;
            }
        }
        Ok((theta, at))
    }
}

/// What is left of a heavy-tailed prior's precision where the data are to speak first, and how often its tail is then
/// matched.
const FADED: f64 = 1e-8;
const TAILS: usize = 3;

/// A peak next to where the likelihood alone has its own.
pub(super) struct DataPeak {
    pub place: Vec<f64>,
    pub sds: Vec<f64>,
    /// The logarithm of its mass, by Laplace's approximation.
    pub log_mass: f64,
}

impl Centre<'_> {
    /// The peak of the model with all terms that is next to where the likelihood alone has its own. `None` where no prior has tails
    /// in which such a peak could be.
    pub(super) fn data_peak(&self, rounds: usize) -> Result<Option<DataPeak>> {
        let heavy = |prior: &Prior| matches!(prior, Prior::StudentT { .. });
        if !self.priors.iter().any(heavy) {
            return Ok(None);
        }
        let faded = |prior: &Prior| {
            let own = sites::of(prior);
            let left = if heavy(prior) { FADED } else { 1.0 };
            StandIn { precision: left * own.precision, ..own }
        };
        let mut normals: Vec<StandIn> = self.priors.iter().map(faded).collect();
        let (mut theta, mut at) = self.climb(&normals, rounds)?;
        for _ in 0..TAILS {
            // The normal that touches the prior's tail from below where we are (iteratively reweighted least squares).
            for ((normal, prior), x) in normals.iter_mut().zip(&self.priors).zip(&theta) {
                if let Prior::StudentT { df, mean, scale } = *prior {
                    let away = x - mean;
                    normal.precision = (df + 1.0) / (df * scale * scale + away * away);
                }
            }
            (theta, at) = self.climb_from(theta, &normals, rounds)?;
        }
        let (factor, _) = definite(&precision(&at, &normals));
        let prior: f64 = self.priors.iter().zip(&theta).map(|(p, &x)| p.log_density(x)).sum();
        let volume = 0.5 * (theta.len() as f64 * LOG_2PI - factor.log_det());
        let sds = factor.inverse_diagonal().into_iter().map(f64::sqrt).collect();
        Ok(Some(DataPeak { place: theta, sds, log_mass: at.value + prior + volume }))
    }
}

/// The part of a coefficient's curvature that no others explain, below which rounding errors are what is left of it.
const LOST: f64 = 1e-12;

impl Centre<'_> {
    /// Refuses a curvature of which rounding has left nothing in some direction: columns that are far from 0 for how
    /// little they vary. What would come of it looks like any other number.
    pub(super) fn refuse_lost(&self, at: &Expansion, sites: &[StandIn]) -> Result<()> {
        let model = &self.setting.model;
        let own = model.own_parameters().iter().filter(|p| p.prior.fixed().is_none()).count();
        let d = self.priors.len() - own;
        let all = precision(at, sites);
        // Where σ goes to 0 there are no bounds to curvatures; that is nothing of a column's.
        if !all.data().iter().all(|v| v.is_finite()) {
            return Err(Error::numeric(
                "the curvature is too large for a number: some terms fit every row; write method = \"enumerate\" under [select] (up to 4,096 models), use tighter priors, or name fewer candidates",
            ));
        }
        // Elsewhere a curvature may point either way, whatever the columns are.
        if !model.family().is_some_and(Family::is_log_concave) {
            return Ok(());
        }
        let mut lower = Matrix::zeros(d, d);
        for i in 0..d {
            for j in 0..=i {
                let scaled = all[(i, j)] / (all[(i, i)].sqrt() * all[(j, j)].sqrt());
                let rest = scaled - dot(&lower.row(i)[..j], &lower.row(j)[..j]);
                lower[(i, j)] = if i == j { rest.max(0.0).sqrt() } else { rest / lower[(j, j)] };
                if i == j && (rest.is_nan() || rest < LOST) {
                    let name = model.free().nth(i).map_or("", |p| p.name.as_str());
                    return Err(Error::numeric(
                        "the column is so far from 0 for how little it varies, or so nearly made of other columns under so wide a prior, that its curvature is lost in rounding; write it as scale(x), or leave it out",
                    )
                    .for_parameter(name));
                }
            }
        }
        Ok(())
    }
}

/// −∇² of the log likelihood with the priors' precisions.
fn precision(at: &Expansion, sites: &[StandIn]) -> Matrix {
    let mut precision = at.hessian.clone();
    precision.scale(-1.0);
    for (j, site) in sites.iter().enumerate() {
        precision[(j, j)] += site.precision;
    }
    precision
}

/// A factor of the matrix, or of one that is near it and definite, and that matrix.
fn definite(matrix: &Matrix) -> (Cholesky, Matrix) {
    let mut near = matrix.clone();
    for power in -9..=9 {
        if let Some(factor) = Cholesky::new(&near) {
            return (factor, near);
        }
        near = matrix.clone();
        for j in 0..near.rows() {
            near[(j, j)] += libm::exp10(f64::from(power)) * matrix[(j, j)].abs().max(1e-100);
        }
    }
    // Only where numbers are not finite.
    let unit = Matrix::identity(matrix.rows());
    (Cholesky::new(&unit).expect("the unit matrix is definite"), unit)
}

/// All models' integrands at an expansion, and where their parameters are counted from: those that are always in
/// from the place of the expansion, so that nothing large cancels, those of candidates from 0.
#[derive(Debug, Clone)]
pub(super) struct Around {
    pub place: Vec<f64>,
    pub origin: Vec<f64>,
    pub quadratic: Quadratic,
}

impl Around {
    pub(super) fn new(space: &Space, place: Vec<f64>, at: &Expansion, sites: &[StandIn]) -> Around {
        let mut origin = vec![0.0; place.len()];
        space.always().into_iter().for_each(|j| origin[j] = place[j]);
        let (_, precision) = definite(&precision(at, sites));
        let quadratic = Quadratic::around(at, precision, &place, &origin, sites);
        Around { place, origin, quadratic }
    }

    /// A model's parameters, counted from 0, in the place of all: those that it does not have are 0.
    pub(super) fn theta(&self, coordinates: &[usize], own: &[f64]) -> Vec<f64> {
        let mut theta = vec![0.0; self.origin.len()];
        for (&j, x) in coordinates.iter().zip(own) {
            theta[j] = self.origin[j] + x;
        }
        theta
    }
}
