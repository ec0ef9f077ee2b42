//! Priors of all coefficients together, as users of Bayes factors know them: Zellner's g-prior and its mixtures.
//!
//! With X the columns around their means, n observations and p coefficients,
//!
//! ```text
//! β | g, σ ~ N(0, g σ² (X'X)⁻¹),
//! g-prior(g):     g itself, or n (unit information; Zellner 1986, Kass & Wasserman 1995)
//! jzs(r):         g ~ inverse gamma(½, ½ n r²): a Cauchy of scale r in the metric of X'X/n (Zellner & Siow 1980,
//!                 Rouder & Morey 2012)
//! hyper-g(a):     p(g) = (a − 2)/2 · (1 + g)^(−a/2)              (Liang and others 2008)
//! hyper-g/n(a):   p(g) = (a − 2)/(2n) · (1 + g/n)^(−a/2)         (the same)
//! robust:         p(g) = ½ √L (1 + g)^(−3/2) for g > L − 1, L = (n + 1)/(p + 1)   (Bayarri and others 2012)
//! ```
//!
//! Integrals over g run over all v, with g = e^v, and for `robust` 1 + g = L(1 + e^v): smooth, and without an edge.

use crate::error::{clip, suggestion};
use crate::{Error, Result};
use libm::{exp, lgamma, log, log1p};

/// The scales of `jzs` that have names: those of continuous covariates in R's BayesFactor.
const NAMED: [(&str, f64); 3] = [
    ("medium", std::f64::consts::SQRT_2 / 4.0),
    ("wide", 0.5),
    ("ultrawide", std::f64::consts::FRAC_1_SQRT_2),
];

/// Other scales of `jzs` are slips, and beyond what integrals over g bear.
const SCALES: std::ops::RangeInclusive<f64> = 1e-9..=1e9;

/// A prior of a model's coefficients together.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum GPrior {
    /// g is the number of observations.
    Unit,
    /// g is this.
    Fixed {
        /// g.
        g: f64,
    },
    /// Zellner and Siow's, of this scale.
    Jzs {
        /// r.
        r: f64,
    },
    /// Liang and others' hyper-g.
    HyperG {
        /// a > 2.
        a: f64,
    },
    /// The same of g/n.
    HyperGn {
        /// a > 2.
        a: f64,
    },
    /// Bayarri and others' robust prior.
    Robust,
}

impl GPrior {
    /// The names that such priors begin with.
    pub const NAMES: [&str; 5] = ["jzs", "g-prior", "hyper-g", "hyper-g/n", "robust"];

    /// Whether a text is meant as one of them.
    pub fn is_meant(text: &str) -> bool {
        let name = text.trim_start().split(['(', ' ']).next().unwrap_or_default();
        GPrior::NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// How g is spread for so many observations and coefficients, the coefficients being `scale` times as large.
    pub fn spread(self, observations: f64, coefficients: usize, scale: f64) -> GSpread {
        let n = observations;
        let law = match self {
            GPrior::Unit => GLaw::At(n),
            GPrior::Fixed { g } => GLaw::At(g),
            GPrior::Jzs { r } => GLaw::InverseGamma { rate: 0.5 * n * r * r },
            GPrior::HyperG { a } => GLaw::Hyper { a, unit: 1.0 },
            GPrior::HyperGn { a } => GLaw::Hyper { a, unit: n },
            GPrior::Robust => GLaw::Robust { least: (n + 1.0) / (coefficients as f64 + 1.0) },
        };
        GSpread { law, square: scale * scale }
    }
}

/// How g is spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GSpread {
    law: GLaw,
    /// What g is multiplied with.
    square: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum GLaw {
    At(f64),
    InverseGamma { rate: f64 },
    Hyper { a: f64, unit: f64 },
    Robust { least: f64 },
}

impl GSpread {
    /// g, where it is given.
    pub fn fixed(&self) -> Option<f64> {
        match self.law {
            GLaw::At(g) => Some(self.square * g),
            _ => None,
        }
    }

    /// g at v.
    pub fn g(&self, v: f64) -> f64 {
        self.square
            * match self.law {
                GLaw::At(g) => g,
                GLaw::InverseGamma { .. } => exp(v),
                GLaw::Hyper { unit, .. } => unit * exp(v),
                GLaw::Robust { least } => least - 1.0 + least * exp(v),
            }
    }

    /// The log density of v; 0 where g is given.
    pub fn log_density(&self, v: f64) -> f64 {
        match self.law {
            GLaw::At(_) => 0.0,
            GLaw::InverseGamma { rate } => 0.5 * (log(rate) - v) - lgamma(0.5) - rate * exp(-v),
            GLaw::Hyper { a, .. } => log(0.5 * (a - 2.0)) + v - 0.5 * a * softplus(v),
            GLaw::Robust { .. } => -std::f64::consts::LN_2 + v - 1.5 * softplus(v),
        }
    }

    /// Between which v all but 1e-13 of the prior lies. Within −40 and 60 a likelihood may have much to say, wherever that is.
    pub fn reach(&self) -> (f64, f64) {
        let peak = match self.law {
            GLaw::InverseGamma { rate } => log(2.0 * rate),
            GLaw::Hyper { a, .. } => log(2.0 / (a - 2.0)),
            GLaw::At(_) | GLaw::Robust { .. } => 0.0,
        };
        (f64::min(-40.0, peak - 40.0), f64::max(60.0, peak + 60.0))
    }

    /// The slope of that far out, where g is large; `None` where g is given.
    pub fn tail(&self) -> Option<f64> {
        match self.law {
            GLaw::At(_) => None,
            GLaw::InverseGamma { .. } | GLaw::Robust { .. } => Some(-0.5),
            GLaw::Hyper { a, .. } => Some(1.0 - 0.5 * a),
        }
    }

    /// v where g is this, or near it.
    pub fn v(&self, g: f64) -> f64 {
        let g = g / self.square;
        match self.law {
            GLaw::At(_) => 0.0,
            GLaw::InverseGamma { .. } => log(g),
            GLaw::Hyper { unit, .. } => log(g / unit),
            GLaw::Robust { least } => log((g + 1.0 - least).max(1e-3) / least),
        }
    }
}

/// log(1 + e^v).
fn softplus(v: f64) -> f64 {
    if v > 0.0 { v + log1p(exp(-v)) } else { log1p(exp(v)) }
}

/// Reads `jzs(0.5)`, `jzs(wide)`, `g-prior(n)`, `g-prior(100)`, `hyper-g(3)`, `hyper-g/n(3)`, `robust`. A name that
/// stands in quotes is the same.
impl std::str::FromStr for GPrior {
    type Err = Error;

    fn from_str(text: &str) -> Result<GPrior> {
        let shown = clip(text);
        let text = &*text.to_ascii_lowercase();
        let (name, rest) = match text.split_once('(') {
            Some((name, rest)) => (name.trim(), Some(rest)),
            None => (text.trim(), None),
        };
        let form = match name {
            "jzs" => "jzs(r), where r is a number or medium, wide or ultrawide",
            "g-prior" => "g-prior(g), where g is a number, or n for unit information",
            "hyper-g" => "hyper-g(a), where a is more than 2, and mostly 3 or 4",
            "hyper-g/n" => "hyper-g/n(a), where a is more than 2, and mostly 3 or 4",
            "robust" => "robust",
            _ => {
                let known = suggestion(&clip(name), GPrior::NAMES);
                return Err(Error::input(format!("there is no prior `{}`{known}", clip(name))));
            }
        };
        let wrong = |why: &str| Err(Error::input(format!("`{shown}` {why}; write {form}")));
        let inside = match rest {
            None => "",
            Some(rest) => match rest.trim_end().strip_suffix(')') {
                Some(inside) => inside.trim().trim_matches(['"', '\'']).trim(),
                None => return wrong("is not a prior"),
            },
        };
        let number: Option<f64> = inside.parse().ok().filter(|x: &f64| x.is_finite());
        let positive = number.filter(|x| *x > 0.0);
        match (name, inside) {
            ("robust", "") => Ok(GPrior::Robust),
            ("robust", _) => wrong("has an argument, and takes none"),
            ("jzs", "") => Ok(GPrior::Jzs { r: NAMED[0].1 }),
            ("jzs", _) => match NAMED.iter().find(|(name, _)| *name == inside) {
                Some((_, r)) => Ok(GPrior::Jzs { r: *r }),
                None => match positive {
                    Some(r) if SCALES.contains(&r) => Ok(GPrior::Jzs { r }),
                    Some(_) => wrong(
                        "has a scale beyond 1e-9 and 1e9, with which no effect could be told from none",
                    ),
                    None => wrong("needs a positive scale"),
                },
            },
            ("g-prior", "") => wrong("does not say what g is"),
            ("g-prior", "n") => Ok(GPrior::Unit),
            ("g-prior", _) => match positive {
                Some(g) => Ok(GPrior::Fixed { g }),
                None => wrong("needs a positive g"),
            },
            (_, "") if name == "hyper-g" => Ok(GPrior::HyperG { a: 3.0 }),
            (_, "") => Ok(GPrior::HyperGn { a: 3.0 }),
            _ => match number.filter(|a| *a > 2.0) {
                Some(a) if name == "hyper-g" => Ok(GPrior::HyperG { a }),
                Some(a) => Ok(GPrior::HyperGn { a }),
                None => wrong("needs a number over 2: with less it is no distribution"),
            },
        }
    }
}

/// As the study file writes it.
impl std::fmt::Display for GPrior {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            GPrior::Unit => write!(f, "g-prior(n)"),
            GPrior::Fixed { g } => write!(f, "g-prior({g})"),
            GPrior::Jzs { r } => match NAMED.iter().find(|(_, known)| *known == r) {
                Some((name, _)) => write!(f, "jzs({name})"),
                None => write!(f, "jzs({r})"),
            },
            GPrior::HyperG { a } => write!(f, "hyper-g({a})"),
            GPrior::HyperGn { a } => write!(f, "hyper-g/n({a})"),
            GPrior::Robust => write!(f, "robust"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::line::integrate;

    #[test]
    fn densities_integrate_to_one() {
        let mesh: Vec<f64> = (-60..=60).map(f64::from).collect();
        for text in ["jzs", "jzs(1)", "hyper-g(3)", "hyper-g(4)", "hyper-g/n(2.5)", "robust"] {
            let prior: GPrior = text.parse().unwrap();
            let spread = prior.spread(40.0, 3, 1.0);
            let line = integrate(&|v| spread.log_density(v), &mesh, &[], 1e-11).unwrap();
            assert!(line.log_integral.abs() < 1e-9, "{text}: {}", line.log_integral);
            for g in [20.0, 37.0, 1e3] {
                assert!((spread.g(spread.v(g)) / g - 1.0).abs() < 1e-12, "{text} at {g}");
            }
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["jzs(medium)", "jzs(0.3)", "g-prior(n)", "g-prior(12)", "hyper-g(3)", "robust"]
        {
            assert_eq!(text.parse::<GPrior>().unwrap().to_string(), text);
        }
        assert_eq!("g-prior(\"n\")".parse::<GPrior>().unwrap(), GPrior::Unit);
        assert_eq!("jzs".parse::<GPrior>().unwrap().to_string(), "jzs(medium)");
        let wide: GPrior = "jzs('wide')".parse().unwrap();
        assert_eq!(wide, GPrior::Jzs { r: 0.5 });
    }
}
