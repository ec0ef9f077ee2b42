//! Priors of single parameters, and their fractional powers.

use crate::math::LOG_2PI;
use crate::math::special::log_beta;
use libm::{lgamma, log, log1p};
use serde::{Deserialize, Serialize};

/// The prior of one parameter on its unconstrained scale.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Prior {
    /// Normal with this mean and standard deviation.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        sd: f64,
    },
    /// Laplace (double exponential).
    Laplace {
        /// Centre.
        mean: f64,
        /// Scale b: density e^(−|x − mean|/b) / 2b.
        scale: f64,
    },
    /// Student's t; Cauchy is `df` = 1.
    StudentT {
        /// Degrees of freedom ν.
        df: f64,
        /// Centre.
        mean: f64,
        /// Scale c.
        scale: f64,
    },
    /// Held at this value: no parameter at all.
    Fixed {
        /// The value.
        value: f64,
    },
}

impl Prior {
    /// log p(x); 0 for a fixed value, which has no density.
    pub fn log_density(&self, x: f64) -> f64 {
        self.log_shape(x) + self.log_constant()
    }

    /// The part of log p(x) that depends on x.
    #[inline]
    pub fn log_shape(&self, x: f64) -> f64 {
        match *self {
            Prior::Normal { mean, sd } => {
                let z = (x - mean) / sd;
                -0.5 * z * z
            }
            Prior::Laplace { mean, scale } => -(x - mean).abs() / scale,
            Prior::StudentT { df, mean, scale } => {
                let z = (x - mean) / scale;
                -0.5 * (df + 1.0) * log1p(z * z / df)
            }
            Prior::Fixed { .. } => 0.0,
        }
    }

    /// The part of log p(x) that does not.
    pub fn log_constant(&self) -> f64 {
        match *self {
            Prior::Normal { sd, .. } => -0.5 * LOG_2PI - log(sd),
            Prior::Laplace { scale, .. } => -log(2.0 * scale),
            Prior::StudentT { df, scale, .. } => student_constant(df, scale),
            Prior::Fixed { .. } => 0.0,
        }
    }

    /// d log p(x)/dx (0 at the kink of a Laplace prior).
    #[inline]
    pub fn slope(&self, x: f64) -> f64 {
        match *self {
            Prior::Normal { mean, sd } => -(x - mean) / (sd * sd),
            Prior::Laplace { mean, scale } if x != mean => -(x - mean).signum() / scale,
            Prior::StudentT { df, mean, scale } => {
                let t = x - mean;
                -(df + 1.0) * t / (df * scale * scale + t * t)
            }
            Prior::Laplace { .. } | Prior::Fixed { .. } => 0.0,
        }
    }

    /// log p(x) with its first two derivatives; at the kink of a Laplace prior these are 0.
    pub fn expand(&self, x: f64) -> (f64, f64, f64) {
        let bend = match *self {
            Prior::Normal { sd, .. } => -1.0 / (sd * sd),
            Prior::StudentT { df, mean, scale } => {
                let (t, own) = (x - mean, df * scale * scale);
                let width = own + t * t;
                -(df + 1.0) * ((own - t * t) / width) / width
            }
            Prior::Laplace { .. } | Prior::Fixed { .. } => 0.0,
        };
        (self.log_density(x), self.slope(x), bend)
    }

    /// log ∫ p(x)ʷ dx, or `None` where the power cannot be integrated (METHOD: w(ν+1) ≤ 1).
    pub fn log_alpha(&self, w: f64) -> Option<f64> {
        match *self {
            Prior::Normal { sd, .. } => {
                Some(0.5 * ((1.0 - w) * (LOG_2PI + 2.0 * log(sd)) - log(w)))
            }
            Prior::Laplace { scale, .. } => Some((1.0 - w) * log(2.0 * scale) - log(w)),
            Prior::StudentT { df, scale, .. } => {
                let tail = w * (df + 1.0) - 1.0;
                (tail > 0.0).then(|| {
                    w * student_constant(df, scale)
                        + log(scale)
                        + 0.5 * log(df)
                        + log_beta(0.5, 0.5 * tail)
                })
            }
            Prior::Fixed { .. } => Some(0.0),
        }
    }

    /// Its standard deviation or scale; a fixed value has none.
    pub fn scale(&self) -> Option<f64> {
        match *self {
            Prior::Normal { sd, .. } => Some(sd),
            Prior::Laplace { scale, .. } | Prior::StudentT { scale, .. } => Some(scale),
            Prior::Fixed { .. } => None,
        }
    }

    /// Whether its numbers are those of a prior: finite, and positive where they must be.
    pub fn is_sound(&self) -> bool {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        let df = if let Prior::StudentT { df, .. } = *self { positive(df) } else { true };
        df && self.centre().is_finite() && self.scale().is_none_or(positive)
    }

    /// What it is centred at; the value of a fixed parameter.
    pub fn centre(&self) -> f64 {
        match *self {
            Prior::Normal { mean, .. }
            | Prior::Laplace { mean, .. }
            | Prior::StudentT { mean, .. } => mean,
            Prior::Fixed { value } => value,
        }
    }

    /// How far from the centre it is usual to be: its standard deviation, or the scale of a Student t,
    /// which may have none; 0 for a fixed value.
    pub fn spread(&self) -> f64 {
        match *self {
            Prior::Normal { sd, .. } => sd,
            Prior::Laplace { scale, .. } => std::f64::consts::SQRT_2 * scale,
            Prior::StudentT { scale, .. } => scale,
            Prior::Fixed { .. } => 0.0,
        }
    }

    /// The prior of `origin` + `unit`·x where this is that of x; a fixed value stays.
    pub fn in_units(self, origin: f64, unit: f64) -> Prior {
        let at = |mean: f64| origin + unit * mean;
        match self.scaled(unit) {
            Prior::Normal { mean, sd } => Prior::Normal { mean: at(mean), sd },
            Prior::Laplace { mean, scale } => Prior::Laplace { mean: at(mean), scale },
            Prior::StudentT { df, mean, scale } => Prior::StudentT { df, mean: at(mean), scale },
            Prior::Fixed { value } => Prior::Fixed { value },
        }
    }

    /// The same prior, `factor` times as wide around the same centre; a fixed value stays.
    pub fn scaled(self, factor: f64) -> Prior {
        match self {
            Prior::Normal { mean, sd } => Prior::Normal { mean, sd: factor * sd },
            Prior::Laplace { mean, scale } => Prior::Laplace { mean, scale: factor * scale },
            Prior::StudentT { df, mean, scale } => {
                Prior::StudentT { df, mean, scale: factor * scale }
            }
            Prior::Fixed { value } => Prior::Fixed { value },
        }
    }

    /// Whether a direction bounded by this prior's w-th power alone has an infinite integral.
    pub fn power_is_improper(&self, w: f64) -> bool {
        self.log_alpha(w).is_none()
    }

    /// The value that a fixed parameter is held at.
    pub fn fixed(&self) -> Option<f64> {
        match *self {
            Prior::Fixed { value } => Some(value),
            _ => None,
        }
    }
}

/// log k of the t density k·(1 + z²/ν)^−(ν+1)/2.
fn student_constant(df: f64, scale: f64) -> f64 {
    lgamma(0.5 * (df + 1.0)) - lgamma(0.5 * df) - 0.5 * log(df * std::f64::consts::PI) - log(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn smooth_and_not() -> Vec<Prior> {
        vec![
            Prior::Normal { mean: 0.3, sd: 0.7 },
            Prior::Laplace { mean: -0.2, scale: 1.4 },
            Prior::StudentT { df: 4.0, mean: 0.1, scale: 2.0 },
            Prior::StudentT { df: 1.0, mean: 0.0, scale: 0.5 },
        ]
    }

    /// ∫ g over the line by the double-exponential rule x = sinh(sinh t).
    fn integral(g: impl Fn(f64) -> f64) -> f64 {
        let step = 1e-3;
        (-6000..=6000)
            .map(|i| {
                let t = f64::from(i) * step;
                let inner = std::f64::consts::FRAC_PI_2 * t.sinh();
                let jacobian = inner.cosh() * std::f64::consts::FRAC_PI_2 * t.cosh();
                let value = g(inner.sinh()) * jacobian * step;
                if value.is_finite() { value } else { 0.0 }
            })
            .sum()
    }

    #[test]
    fn densities_integrate_to_one_and_powers_to_alpha() {
        for prior in smooth_and_not() {
            for w in [1.0, 0.8, 0.55] {
                let numeric = integral(|x| (w * prior.log_density(x)).exp()).ln();
                let exact = prior.log_alpha(w).unwrap();
                // The kink costs the quadrature some accuracy.
                assert!(
                    (numeric - exact).abs() < 2e-4,
                    "{prior:?} at {w}: {numeric} is not {exact}"
                );
            }
        }
    }

    #[test]
    fn heavy_tails_have_no_alpha_for_small_powers() {
        let cauchy = Prior::StudentT { df: 1.0, mean: 0.0, scale: 1.0 };
        assert!(cauchy.log_alpha(0.51).is_some());
        assert!(cauchy.power_is_improper(0.5));
        assert!(!Prior::Laplace { mean: 0.0, scale: 1.0 }.power_is_improper(1e-6));
    }

    #[test]
    fn units_move_a_density_and_stretch_it() {
        for prior in smooth_and_not() {
            let there = prior.in_units(-3.0, 40.0);
            for x in [-3.0, -0.4, 0.2, 1.7] {
                let moved = there.log_density(-3.0 + 40.0 * x) + log(40.0);
                assert!((moved - prior.log_density(x)).abs() < 1e-12, "{prior:?} at {x}");
            }
            assert_eq!(there.spread(), 40.0 * prior.spread());
        }
        let fixed = Prior::Fixed { value: 2.0 };
        assert_eq!((fixed.in_units(1.0, 9.0), fixed.spread()), (fixed, 0.0));
    }

    #[test]
    fn derivatives_match_differences() {
        let h = 1e-5;
        for prior in smooth_and_not() {
            for x in [-3.0, -0.4, 0.2, 1.7] {
                let (_, slope, bend) = prior.expand(x);
                let (above, below) = (prior.expand(x + h), prior.expand(x - h));
                assert!((slope - (above.0 - below.0) / (2.0 * h)).abs() < 1e-8);
                assert!((bend - (above.1 - below.1) / (2.0 * h)).abs() < 1e-8);
                let rise = prior.log_density(x + h) - prior.log_density(x - h);
                assert!((prior.slope(x) - rise / (2.0 * h)).abs() < 1e-8);
            }
        }
    }
}
