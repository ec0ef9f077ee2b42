//! The likelihood families.

use serde::{Deserialize, Serialize};

/// A likelihood family with its link: how the linear predictor η = x'β + offset makes an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Family {
    /// y ~ N(η, σ²), identity link; σ enters as `log_sd` = log σ.
    Gaussian,
    /// P(y = 1) = 1/(1 + e^−η).
    Logistic,
    /// P(y = 1) = Φ(η).
    Probit,
    /// y ~ Poisson(e^η).
    Poisson,
    /// Mean μ = e^η, variance μ + μ²/r; r enters as `log_dispersion` = log r.
    NegativeBinomial,
}

/// 2⁵³.
const TOO_LARGE: f64 = 9_007_199_254_740_992.0;

impl Family {
    /// All families, in the order of the documentation.
    pub const ALL: [Family; 5] = [
        Family::Gaussian,
        Family::Logistic,
        Family::Probit,
        Family::Poisson,
        Family::NegativeBinomial,
    ];

    /// The name in the study file.
    pub fn name(self) -> &'static str {
        match self {
            Family::Gaussian => "gaussian",
            Family::Logistic => "logistic",
            Family::Probit => "probit",
            Family::Poisson => "poisson",
            Family::NegativeBinomial => "negative-binomial",
        }
    }

    /// The family's parameter beside the coefficients, on its unconstrained scale.
    pub fn extra(self) -> Option<&'static str> {
        match self {
            Family::Gaussian => Some("log_sd"),
            Family::NegativeBinomial => Some("log_dispersion"),
            _ => None,
        }
    }

    /// How the linear predictor enters: coefficients of models with one link mean the same.
    pub fn link(self) -> &'static str {
        match self {
            Family::Gaussian => "identity",
            Family::Logistic => "logit",
            Family::Probit => "probit",
            Family::Poisson | Family::NegativeBinomial => "log",
        }
    }

    /// What an outcome of this family must be, if this one is not.
    pub fn refuses(self, y: f64) -> Option<&'static str> {
        match self {
            Family::Gaussian => None,
            Family::Logistic | Family::Probit => {
                (y != 0.0 && y != 1.0).then_some("0 or 1 (or text of two levels, or TRUE/FALSE)")
            }
            _ if y < 0.0 || y.fract() != 0.0 => Some("a whole number, 0 or more"),
            // From there on whole numbers are no longer told apart.
            _ => (y >= TOO_LARGE)
                .then_some("whole numbers below 2^53, from where on they are rounded"),
        }
    }

    /// Whether the outcome is a class (0 or 1).
    pub fn is_binary(self) -> bool {
        matches!(self, Family::Logistic | Family::Probit)
    }

    /// Whether the outcome is a count (0, 1, 2, …).
    pub fn is_count(self) -> bool {
        matches!(self, Family::Poisson | Family::NegativeBinomial)
    }
}

impl std::fmt::Display for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
