//! Coordinates in which tails are light: z with θ = F⁻¹(Φ(z)), F a prior's distribution function.
//!
//! In z the prior is standard normal. So a likelihood that is bounded leaves no tail heavier than a
//! normal one, whatever the prior's; the kink of a Laplace prior becomes a jump of curvature; and every
//! parameter has the prior's own scale. For normal priors the coordinates are those of θ, standardised.
//!
//! Only the centre knows them: what is asked of shards, and what they answer, is in θ.

use super::Prior;
use crate::math::special::log_normal_tail;
use crate::math::student::{log_upper_tail, normal_upper_quantile, upper_quantile};
use crate::math::{LOG_2PI, Matrix};
use crate::target::{Expansion, Target};
use libm::exp;

/// How far θ may go: its square, and its product with any sensible column, are still numbers.
const FURTHEST: f64 = 1e120;

/// Degrees of freedom beyond which Student's t is taken as normal. Any distribution may serve as F, since
/// the density's own prior is corrected for; this one is near enough.
const NEARLY_NORMAL: f64 = 1e4;

/// One distribution F per free parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Coordinates {
    bases: Vec<Prior>,
    /// The part of log F' that no θ changes, of all together.
    constant: f64,
}

impl Coordinates {
    /// The coordinates for priors that act with power `share`: their powers are priors of the same kind.
    pub fn new(priors: &[Prior], share: f64) -> Coordinates {
        let bases: Vec<Prior> = priors.iter().map(|prior| base(*prior, share)).collect();
        let constant = bases.iter().map(Prior::log_constant).sum();
        Coordinates { bases, constant }
    }

    /// How many.
    pub fn dim(&self) -> usize {
        self.bases.len()
    }

    /// Whether the coordinate's tail is heavier than any exponential: a prior that can be at odds with the
    /// data in two ways, by giving way or by holding on.
    pub fn is_heavy(&self, j: usize) -> bool {
        matches!(self.bases[j], Prior::StudentT { .. })
    }

    /// Whether a heavy-tailed prior has let θ_j go where next to nothing of it is: a likelihood that pulls it
    /// there has no end.
    pub fn has_run_away(&self, j: usize, theta: f64) -> bool {
        let base = &self.bases[j];
        let Prior::StudentT { mean, scale, .. } = *base else { return false };
        (theta - mean).abs() > 1e15 * scale && score(base, theta).abs() > 9.0
    }

    /// The scale of θ_j under F.
    pub fn scale(&self, j: usize) -> f64 {
        self.bases[j].scale().unwrap_or(1.0)
    }

    /// dθ/dz per coordinate, where that is the same everywhere: under normal priors.
    pub fn units(&self) -> Option<Vec<f64>> {
        let unit = |base: &Prior| match *base {
            Prior::Normal { sd, .. } => Some(sd),
            _ => None,
        };
        self.bases.iter().map(unit).collect()
    }

    /// θ(z).
    pub fn theta(&self, z: &[f64]) -> Vec<f64> {
        self.bases.iter().zip(z).map(|(base, &z)| value(base, z)).collect()
    }

    /// θ of many points, one per row.
    pub fn thetas(&self, points: &Matrix) -> Matrix {
        let mut out = Matrix::zeros(points.rows(), points.cols());
        for k in 0..points.rows() {
            let row = out.row_mut(k).iter_mut().zip(points.row(k)).zip(&self.bases);
            row.for_each(|((theta, &z), base)| *theta = value(base, z));
        }
        out
    }

    /// z(θ).
    pub fn z(&self, theta: &[f64]) -> Vec<f64> {
        self.bases.iter().zip(theta).map(|(base, &x)| score(base, x)).collect()
    }

    /// log f less log of the base density: what remains when the standard normal takes its place.
    pub fn log_rest(&self, theta: &[f64], log_f: f64) -> f64 {
        let shapes: f64 = self.bases.iter().zip(theta).map(|(base, &x)| base.log_shape(x)).sum();
        log_f - (shapes + self.constant)
    }

    /// The log density in z where that in θ is `log_f`.
    pub fn log_density(&self, z: &[f64], theta: &[f64], log_f: f64) -> f64 {
        self.log_rest(theta, log_f) + log_standard_normal(z)
    }

    /// The log density in θ where that in z is `log_f`.
    pub fn log_density_of_theta(&self, z: &[f64], theta: &[f64], log_f: f64) -> f64 {
        log_f - self.log_density(z, theta, 0.0)
    }

    /// dθ/dz and d²θ/dz² per coordinate.
    fn rates(&self, z: &[f64], theta: &[f64]) -> Vec<(f64, f64)> {
        let each = self.bases.iter().zip(z).zip(theta);
        each.map(|((base, &z), &x)| {
            if let Prior::Normal { sd, .. } = *base {
                return (sd, 0.0);
            }
            if x.abs() >= FURTHEST {
                return (0.0, 0.0);
            }
            let rate = exp(-0.5 * (LOG_2PI + z * z) - base.log_density(x));
            (rate, rate * (-z - base.slope(x) * rate))
        })
        .collect()
    }

    /// The expansion in z of a log density with this one in θ, of which the base has the part `share`: 1
    /// for a whole density, w_s for a shard's part of it.
    pub fn expand(&self, z: &[f64], theta: &[f64], at: &Expansion, share: f64) -> Expansion {
        let d = z.len();
        let rest = self.rest(theta, at, share);
        let rates = self.rates(z, theta);
        let mut out = Expansion::zeros(d);
        out.value = rest.value + share * log_standard_normal(z);
        for i in 0..d {
            let (rate, bend) = rates[i];
            out.gradient[i] = rest.gradient[i] * rate - share * z[i];
            for (j, (other, _)) in rates.iter().enumerate() {
                out.hessian[(i, j)] = rate * rest.hessian[(i, j)] * other;
            }
            out.hessian[(i, i)] += rest.gradient[i] * bend - share;
        }
        out
    }

    /// The same without what the bend of θ(z) adds to the curvature: a shard's own slope is chance, and so
    /// would be what it makes of that bend.
    pub fn score(&self, z: &[f64], theta: &[f64], at: &Expansion, share: f64) -> Expansion {
        let mut out = self.expand(z, theta, at, share);
        let slopes = self.rest(theta, at, share).gradient;
        for (i, (slope, (_, bend))) in slopes.iter().zip(self.rates(z, theta)).enumerate() {
            out.hessian[(i, i)] -= slope * bend;
        }
        out
    }

    /// The expansion in θ without the base's part: for a posterior under these priors, its likelihood's.
    pub fn rest(&self, theta: &[f64], at: &Expansion, share: f64) -> Expansion {
        let mut rest = at.clone();
        for (j, (base, &x)) in self.bases.iter().zip(theta).enumerate() {
            let (value, slope, bend) = base.expand(x);
            rest.value -= share * value;
            rest.gradient[j] -= share * slope;
            rest.hessian[(j, j)] -= share * bend;
        }
        rest
    }

    /// The precision of θ that this one of z means, near z.
    pub fn precision_of_theta(&self, z: &[f64], precision: &Matrix) -> Matrix {
        let theta = self.theta(z);
        let rates = self.rates(z, &theta);
        let mut out = precision.clone();
        for i in 0..z.len() {
            for j in 0..z.len() {
                out[(i, j)] /= (rates[i].0 * rates[j].0).max(f64::MIN_POSITIVE);
            }
        }
        out
    }
}

/// log N(z; 0, I).
pub fn log_standard_normal(z: &[f64]) -> f64 {
    -0.5 * z.iter().map(|z| LOG_2PI + z * z).sum::<f64>()
}

/// The power of a prior as a prior; where there is none, one that is near it in the middle.
fn base(prior: Prior, share: f64) -> Prior {
    match prior {
        Prior::Normal { mean, sd } => Prior::Normal { mean, sd: sd / share.sqrt() },
        Prior::Laplace { mean, scale } => Prior::Laplace { mean, scale: scale / share },
        Prior::StudentT { df, mean, scale } => {
            let power = share * (df + 1.0) - 1.0;
            if power > NEARLY_NORMAL {
                return Prior::Normal { mean, sd: scale / share.sqrt() };
            }
            let power = if power > 0.05 { power } else { 1.0 };
            let scale = (scale * (df / power).sqrt()).min(1e100);
            Prior::StudentT { df: power, mean, scale }
        }
        fixed => fixed,
    }
}

/// F⁻¹(Φ(z)).
fn value(base: &Prior, z: f64) -> f64 {
    if let Prior::Normal { mean, sd } = *base {
        return mean + sd * z;
    }
    let log_p = log_normal_tail(z.abs());
    let (mean, distance) = match *base {
        Prior::Laplace { mean, scale } => (mean, -scale * (log_p + std::f64::consts::LN_2)),
        Prior::StudentT { df, mean, scale } => {
            (mean, scale * upper_quantile(df, log_p, FURTHEST / scale.max(1.0)))
        }
        _ => unreachable!("a fixed parameter is no coordinate"),
    };
    (mean + distance.copysign(z)).clamp(-FURTHEST, FURTHEST)
}

/// Φ⁻¹(F(θ)).
fn score(base: &Prior, x: f64) -> f64 {
    let (log_p, mean) = match *base {
        Prior::Normal { mean, sd } => return (x - mean) / sd,
        Prior::Laplace { mean, scale } => {
            (-(x - mean).abs() / scale - std::f64::consts::LN_2, mean)
        }
        Prior::StudentT { df, mean, scale } => (log_upper_tail(df, (x - mean).abs() / scale), mean),
        Prior::Fixed { .. } => unreachable!("a fixed parameter is no coordinate"),
    };
    normal_upper_quantile(log_p.min(-std::f64::consts::LN_2)).copysign(x - mean)
}

/// A target in z.
pub struct Warped<'a> {
    target: &'a dyn Target,
    coordinates: &'a Coordinates,
}

impl<'a> Warped<'a> {
    /// The target in these coordinates.
    pub fn new(target: &'a dyn Target, coordinates: &'a Coordinates) -> Warped<'a> {
        Warped { target, coordinates }
    }
}

impl Target for Warped<'_> {
    fn dim(&self) -> usize {
        self.target.dim()
    }

    fn log_density(&self, z: &[f64]) -> f64 {
        let theta = self.coordinates.theta(z);
        self.coordinates.log_density(z, &theta, self.target.log_density(&theta))
    }

    fn log_density_gradient(&self, z: &[f64], gradient: &mut [f64]) -> f64 {
        let theta = self.coordinates.theta(z);
        let value = self.target.log_density_gradient(&theta, gradient);
        let rates = self.coordinates.rates(z, &theta);
        let each = gradient.iter_mut().zip(&self.coordinates.bases).zip(z.iter().zip(&theta));
        for (((g, base), (z, x)), (rate, _)) in each.zip(rates) {
            *g = (*g - base.slope(*x)) * rate - z;
        }
        self.coordinates.log_density(z, &theta, value)
    }

    fn expand(&self, z: &[f64]) -> Expansion {
        let theta = self.coordinates.theta(z);
        self.coordinates.expand(z, &theta, &self.target.expand(&theta), 1.0)
    }

    fn log_densities(&self, points: &Matrix, out: &mut [f64]) {
        let thetas = self.coordinates.thetas(points);
        self.target.log_densities(&thetas, out);
        for (k, value) in out.iter_mut().enumerate() {
            *value = self.coordinates.log_density(points.row(k), thetas.row(k), *value);
        }
    }

    fn is_called_off(&self) -> bool {
        self.target.is_called_off()
    }

    fn start(&self) -> Vec<f64> {
        self.coordinates.z(&self.target.start())
    }
}
