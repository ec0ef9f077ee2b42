//! What chains over models know of each: its density, its peak, and draws from around it.

use super::ClimbBy;
use super::neighbours::Neighbours;
use crate::math::ziggurat::{chi_square, normal};
use crate::math::{Cholesky, LOG_2PI, Matrix, Stream, dot};
use crate::model::{Coordinates, Prior, Subposterior, Warped};
use crate::space::{Quadratic, Space, StandIn, Subset};
use crate::target::{Expansion, Target};
use crate::{Error, Result};
use libm::{exp, lgamma, log, log1p};
use rand::RngExt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Numbers that are remembered of models: more than that, and all are forgotten. What is remembered follows from
/// the model alone, so that this changes no bit.
const MOST_NUMBERS: usize = 1 << 24;

/// The guess at a model of which nothing is known.
const LEAST: f64 = -1e300;

/// The share of Student's t in a proposal, and its degrees of freedom: no tail of a model is out of reach.
const T_SHARE: f64 = 0.1;
const DF: f64 = 5.0;

/// A shard's densities of all models of a space.
pub struct Field<'a> {
    pub(super) target: &'a Subposterior,
    pub(super) space: &'a Space,
    /// All models at once, to second order at the peak of the model with all terms.
    quadratic: Quadratic,
    /// That peak.
    peak: Vec<f64>,
    climb: ClimbBy,
    places: Mutex<FieldKept<FieldModel>>,
    neighbours: Mutex<FieldKept<Neighbours>>,
}

/// What is remembered, and how many numbers that is.
struct FieldKept<T> {
    known: HashMap<Subset, Arc<T>>,
    numbers: usize,
}

impl<T> Default for FieldKept<T> {
    fn default() -> FieldKept<T> {
        FieldKept { known: HashMap::new(), numbers: 0 }
    }
}

/// What is known already, or what `make` makes of it with its size. Nothing is locked while it works: it may run
/// on many threads, one of which may come here too.
fn recall<T>(
    kept: &Mutex<FieldKept<T>>,
    model: &Subset,
    make: impl FnOnce() -> Result<(T, usize)>,
) -> Result<Arc<T>> {
    let lock = || kept.lock().expect("no thread panics while it holds it");
    if let Some(known) = lock().known.get(model) {
        return Ok(known.clone());
    }
    let (made, size) = make()?;
    let made = Arc::new(made);
    let mut kept = lock();
    if kept.numbers > MOST_NUMBERS {
        *kept = FieldKept::default();
    }
    kept.numbers += size;
    kept.known.insert(*model, made.clone());
    Ok(made)
}

/// One model: its parameters in the coordinates in which their priors are standard normal, and a proposal around
/// its peak.
pub struct FieldModel {
    /// The numbers of its parameters.
    pub coordinates: Vec<usize>,
    warp: Coordinates,
    /// The peak in z, and the factor of the precision there.
    mean: Vec<f64>,
    factor: Cholesky,
    precision: Matrix,
    /// Laplace's approximation of log Z.
    pub log_z: f64,
    /// What normal and t have beside the distance, the shares counted.
    log_normal: f64,
    log_t: f64,
}

impl FieldModel {
    /// The peak and the precision there, in θ.
    pub fn normal(&self) -> (Vec<f64>, Matrix) {
        let theta = self.warp.theta(&self.mean);
        (theta, self.warp.precision_of_theta(&self.mean, &self.precision))
    }

    /// The peak, in z.
    pub(super) fn top(&self) -> Vec<f64> {
        self.mean.clone()
    }

    /// A draw from around the peak, in z.
    pub(super) fn draw(&self, rng: &mut Stream) -> Vec<f64> {
        let x: Vec<f64> = self.mean.iter().map(|_| normal(rng)).collect();
        let is_t = rng.random::<f64>() < T_SHARE;
        let stretch = if is_t { (DF / chi_square(DF, rng)).sqrt() } else { 1.0 };
        self.around(&self.mean, &x, stretch)
    }

    /// A step of a random walk, in z.
    pub(super) fn step(&self, z: &[f64], rng: &mut Stream) -> Vec<f64> {
        let x: Vec<f64> = z.iter().map(|_| normal(rng)).collect();
        self.around(z, &x, 2.4 / (z.len().max(1) as f64).sqrt())
    }

    fn around(&self, centre: &[f64], x: &[f64], stretch: f64) -> Vec<f64> {
        let offset = self.factor.solve_upper(x);
        centre.iter().zip(offset).map(|(c, o)| c + stretch * o).collect()
    }

    /// The log density of the proposal.
    pub(super) fn log_proposal(&self, z: &[f64]) -> f64 {
        let d = z.len();
        let offset: Vec<f64> = z.iter().zip(&self.mean).map(|(z, m)| z - m).collect();
        let lower = self.factor.lower();
        let mut x = vec![0.0; d];
        for (i, o) in offset.iter().enumerate() {
            x[..=i].iter_mut().zip(lower.row(i)).for_each(|(x, l)| *x += l * o);
        }
        let q = dot(&x, &x);
        let normal = self.log_normal - 0.5 * q;
        let t = self.log_t - 0.5 * (DF + d as f64) * log1p(q / DF);
        let (high, low) = if normal > t { (normal, t) } else { (t, normal) };
        high + log1p(exp(low - high))
    }
}

/// A point of a model.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub(super) z: Vec<f64>,
    pub(super) theta: Vec<f64>,
    /// The log density of z, without the model's prior.
    pub(super) log_f: f64,
    /// The log density of the proposal of z.
    pub(super) log_g: f64,
}

impl<'a> Field<'a> {
    /// Climbs to the peak of the model with all terms.
    pub fn new(target: &'a Subposterior, space: &'a Space, climb: ClimbBy) -> Result<Field<'a>> {
        let all = Coordinates::new(target.priors(), target.share());
        let mode = climb(&Warped::new(target, &all))?;
        let peak = all.theta(&mode.theta);
        let quadratic = quadratic(target, &peak);
        let (places, neighbours) = (Mutex::default(), Mutex::default());
        Ok(Field { target, space, quadratic, peak, climb, places, neighbours })
    }

    /// The peak of the model with all terms.
    pub fn peak(&self) -> &[f64] {
        &self.peak
    }

    /// The logarithm of a model's prior to the power of the share.
    pub(super) fn log_prior(&self, model: &Subset) -> f64 {
        self.target.share() * self.space.log_prior(model.len())
    }

    /// log Z̃ of a model by the expansion at the peak of the one with all terms: a first guess.
    pub(super) fn guess(&self, model: &Subset) -> f64 {
        let normal = self.quadratic.normal(self.space, model);
        normal.map_or(f64::NEG_INFINITY, |n| n.log_z).max(LEAST)
    }

    /// The same of the models that have one of these terms more. With r = b_T − A_Tγ m and the rest S of A_TT beside
    /// γ, a term adds ½ r'S⁻¹r − ½ log|S| and its gains: one factor serves them all.
    pub(super) fn guesses_with(&self, model: &Subset, terms: &[usize]) -> Vec<f64> {
        let Quadratic { precision, slope, gain, .. } = &self.quadratic;
        let Some(base) = self.quadratic.normal(self.space, model) else {
            return vec![LEAST; terms.len()];
        };
        let with = |&term: &usize| {
            let columns = &self.space.terms[term].columns;
            let mut rest = Matrix::zeros(columns.len(), columns.len());
            let (mut pull, mut parts) = (Vec::new(), Vec::<Vec<f64>>::new());
            for (a, &i) in columns.iter().enumerate() {
                let cross: Vec<f64> = base.coordinates.iter().map(|&j| precision[(i, j)]).collect();
                pull.push(slope[i] - dot(&cross, &base.mean));
                parts.push(base.factor.solve_lower(&cross));
                for (b, &j) in columns[..=a].iter().enumerate() {
                    let left = precision[(i, j)] - dot(&parts[a], &parts[b]);
                    (rest[(a, b)], rest[(b, a)]) = (left, left);
                }
            }
            let Some(factor) = Cholesky::new(&rest) else { return LEAST };
            let gains: f64 = columns.iter().map(|&j| gain[j]).sum();
            let more = 0.5 * (factor.inverse_quadratic(&pull) - factor.log_det());
            (base.log_z + gains + more).max(LEAST)
        };
        terms.iter().map(with).collect()
    }

    /// The models next to one.
    pub(super) fn neighbours(&self, model: &Subset) -> Arc<Neighbours> {
        let made = recall(&self.neighbours, model, || {
            let made = Neighbours::new(self, model);
            let size = 9 * made.len() + 16;
            Ok((made, size))
        });
        made.expect("neighbours are only counted")
    }

    /// A model's own peak and what is drawn around it.
    pub fn place(&self, model: &Subset) -> Result<Arc<FieldModel>> {
        recall(&self.places, model, || {
            let named = |error: Error| error.for_model(&self.space.name(model));
            let place = self.look(model).map_err(named)?;
            let d = place.mean.len();
            Ok((place, 2 * d * d + 8 * d + 32))
        })
    }

    fn look(&self, model: &Subset) -> Result<FieldModel> {
        let coordinates = self.space.coordinates(model);
        let pick = |from: &[f64]| -> Vec<f64> { coordinates.iter().map(|&j| from[j]).collect() };
        let priors: Vec<Prior> = coordinates.iter().map(|&j| self.target.priors()[j]).collect();
        let warp = Coordinates::new(&priors, self.target.share());
        let guess = self.quadratic.normal(self.space, model).map(|normal| normal.mean);
        let starts = [guess, Some(pick(&self.peak)), Some(pick(&self.target.start()))];
        let mut found = Err(Error::numeric("no peak of the posterior was found"));
        for start in starts.into_iter().flatten().filter(|s| s.iter().all(|x| x.is_finite())) {
            let part = FieldPart { target: self.target, coordinates: &coordinates, start };
            found = (self.climb)(&Warped::new(&part, &warp));
            if found.is_ok() {
                break;
            }
        }
        let mode = found?;
        let d = coordinates.len() as f64;
        let half_log_det = 0.5 * mode.factor.log_det();
        let log_normal = log1p(-T_SHARE) - 0.5 * d * LOG_2PI + half_log_det;
        let log_t = log(T_SHARE) + lgamma(0.5 * (DF + d))
            - lgamma(0.5 * DF)
            - 0.5 * d * log(DF * std::f64::consts::PI)
            + half_log_det;
        let log_z = mode.value + 0.5 * d * LOG_2PI - half_log_det;
        if !log_z.is_finite() {
            return Err(Error::numeric("the density at the peak of the posterior is not finite"));
        }
        let (mean, factor, precision) = (mode.theta, mode.factor, mode.precision);
        Ok(FieldModel { coordinates, warp, mean, factor, precision, log_z, log_normal, log_t })
    }

    /// A point of a model.
    pub(super) fn point(&self, place: &FieldModel, z: Vec<f64>) -> Point {
        let theta = place.warp.theta(&z);
        let part =
            FieldPart { target: self.target, coordinates: &place.coordinates, start: vec![] };
        let log_f = place.warp.log_density(&z, &theta, part.log_density(&theta));
        let log_f = if log_f.is_nan() { f64::NEG_INFINITY } else { log_f };
        let log_g = place.log_proposal(&z);
        Point { z, theta, log_f, log_g }
    }
}

/// A shard's density of one model: the others' coefficients are 0, and their priors are not there.
struct FieldPart<'a> {
    target: &'a Subposterior,
    coordinates: &'a [usize],
    start: Vec<f64>,
}

impl FieldPart<'_> {
    fn whole(&self, theta: &[f64]) -> Vec<f64> {
        let mut whole = vec![0.0; self.target.dim()];
        self.coordinates.iter().zip(theta).for_each(|(&j, &x)| whole[j] = x);
        whole
    }

    /// Number, prior and value of each parameter.
    fn each<'b>(&'b self, theta: &'b [f64]) -> impl Iterator<Item = (usize, &'b Prior, f64)> {
        let priors = self.target.priors();
        self.coordinates.iter().zip(theta).map(move |(&j, &x)| (j, &priors[j], x))
    }

    fn value(&self, log_likelihood: f64, theta: &[f64]) -> f64 {
        let log_prior: f64 = self.each(theta).map(|(_, prior, x)| prior.log_density(x)).sum();
        let value = self.target.power() * log_likelihood + self.target.share() * log_prior;
        if value.is_nan() { f64::NEG_INFINITY } else { value }
    }
}

impl Target for FieldPart<'_> {
    fn dim(&self) -> usize {
        self.coordinates.len()
    }

    fn log_density(&self, theta: &[f64]) -> f64 {
        let mut value = [0.0];
        self.target.likelihood().values(&[&self.whole(theta)], &mut value);
        self.value(value[0], theta)
    }

    fn log_density_gradient(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let mut slopes = vec![0.0; self.target.dim()];
        let value = self.target.likelihood().gradient(&self.whole(theta), &mut slopes);
        for (g, (j, prior, x)) in gradient.iter_mut().zip(self.each(theta)) {
            *g = self.target.power() * slopes[j] + self.target.share() * prior.slope(x);
        }
        self.value(value, theta)
    }

    fn expand(&self, theta: &[f64]) -> Expansion {
        let whole = self.target.likelihood().expand(&self.whole(theta));
        let (power, share) = (self.target.power(), self.target.share());
        let mut out = Expansion::zeros(theta.len());
        for (a, (i, prior, x)) in self.each(theta).enumerate() {
            let (_, slope, bend) = prior.expand(x);
            out.gradient[a] = power * whole.gradient[i] + share * slope;
            for (b, &j) in self.coordinates.iter().enumerate() {
                out.hessian[(a, b)] = power * whole.hessian[(i, j)];
            }
            out.hessian[(a, a)] += share * bend;
        }
        let lost = out.gradient.iter().chain(out.hessian.data()).any(|v| v.is_nan());
        out.value = if lost { f64::NEG_INFINITY } else { self.value(whole.value, theta) };
        out
    }

    fn start(&self) -> Vec<f64> {
        self.start.clone()
    }
}

/// A shard's density of all models to second order, with priors that are not normal by normals of their spread: it
/// only says where to look, and what first.
fn quadratic(target: &Subposterior, peak: &[f64]) -> Quadratic {
    let (d, w) = (target.dim(), target.share());
    let mut at = target.likelihood().expand(peak);
    at.scale(target.power());
    let mut precision = at.hessian.clone();
    precision.scale(-1.0);
    let mut normals = Vec::with_capacity(d);
    for (j, prior) in target.priors().iter().enumerate() {
        // A power of a normal density is one of another width, times a number.
        let height = |precision: f64| 0.5 * (log(precision) - LOG_2PI);
        let tight = prior.spread().powi(-2);
        let log_scale = w * height(tight) - height(w * tight);
        normals.push(StandIn { precision: w * tight, mean: prior.centre(), log_scale });
        precision[(j, j)] += w * tight;
    }
    Quadratic::around(&at, precision, peak, &vec![0.0; d], &normals)
}
