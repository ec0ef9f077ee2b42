//! The likelihood families.

use serde::{Deserialize, Serialize};

/// A likelihood family with its link: how the linear predictor η = x'β + offset makes an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Family {
    /// y ~ N(η, σ²), identity link; σ enters as `log_sd` = log σ.
    #[serde(alias = "normal", alias = "linear")]
    Gaussian,
    /// P(y = 1) = 1/(1 + e^−η); of counts out of trials likewise.
    #[serde(alias = "bernoulli", alias = "binomial")]
    Logistic,
    /// P(y = 1) = Φ(η); of counts out of trials likewise.
    Probit,
    /// y ~ Poisson(e^η).
    Poisson,
    /// Mean μ = e^η, variance μ + μ²/r; r enters as `log_dispersion` = log r.
    #[serde(alias = "negbinomial", alias = "neg-binomial", alias = "negbin", alias = "nb")]
    NegativeBinomial,
    /// (y − η)/σ has Student's t distribution with ν degrees of freedom; `log_sd` = log σ, `log_df` = log ν.
    #[serde(alias = "student", alias = "t", alias = "robust")]
    StudentT,
    /// y > 0 with mean e^η and shape α; `log_shape` = log α.
    Gamma,
    /// 0 < y < 1 with mean 1/(1 + e^−η) and precision φ; `log_precision` = log φ.
    Beta,
    /// Times with mean e^η, maybe censored.
    #[serde(alias = "exp")]
    Exponential,
    /// Times with scale e^η and shape k, maybe censored; `log_shape` = log k.
    Weibull,
    /// Times whose logarithm is N(η, σ²), maybe censored; `log_sd` = log σ.
    #[serde(alias = "lognormal")]
    LogNormal,
    /// Ordered classes: P(y ≤ k) = 1/(1 + e^−(cₖ − η)).
    #[serde(
        alias = "ordinal",
        alias = "ordered",
        alias = "ordered-logit",
        alias = "cumulative",
        alias = "polr"
    )]
    CumulativeLogit,
    /// Ordered classes: P(y ≤ k) = Φ(cₖ − η).
    #[serde(alias = "ordered-probit", alias = "ordinal-probit")]
    CumulativeProbit,
    /// Poisson(e^η) counts of which a share π is 0 whatever η is; `logit_zero` = log(π/(1 − π)).
    #[serde(alias = "zip")]
    ZeroInflatedPoisson,
    /// Classes without an order: P(y = k) = e^ηₖ/Σⱼ e^ηⱼ, with coefficients of its own for every class but the first, whose
    /// η is 0.
    #[serde(alias = "categorical", alias = "softmax", alias = "multinomial-logit")]
    Multinomial,
}

/// 2⁵³.
const TOO_LARGE: f64 = 9_007_199_254_740_992.0;

/// Other names that families go by elsewhere.
const SYNONYMS: [(&str, Family); 24] = [
    ("normal", Family::Gaussian),
    ("linear", Family::Gaussian),
    ("bernoulli", Family::Logistic),
    ("binomial", Family::Logistic),
    ("negbinomial", Family::NegativeBinomial),
    ("neg-binomial", Family::NegativeBinomial),
    ("negbin", Family::NegativeBinomial),
    ("nb", Family::NegativeBinomial),
    ("student", Family::StudentT),
    ("t", Family::StudentT),
    ("robust", Family::StudentT),
    ("exp", Family::Exponential),
    ("lognormal", Family::LogNormal),
    ("ordinal", Family::CumulativeLogit),
    ("ordered", Family::CumulativeLogit),
    ("ordered-logit", Family::CumulativeLogit),
    ("cumulative", Family::CumulativeLogit),
    ("polr", Family::CumulativeLogit),
    ("ordered-probit", Family::CumulativeProbit),
    ("ordinal-probit", Family::CumulativeProbit),
    ("zip", Family::ZeroInflatedPoisson),
    ("categorical", Family::Multinomial),
    ("softmax", Family::Multinomial),
    ("multinomial-logit", Family::Multinomial),
];

impl Family {
    /// All families, in the order of the documentation.
    pub const ALL: [Family; 15] = [
        Family::Gaussian,
        Family::Logistic,
        Family::Probit,
        Family::Poisson,
        Family::NegativeBinomial,
        Family::StudentT,
        Family::Gamma,
        Family::Beta,
        Family::Exponential,
        Family::Weibull,
        Family::LogNormal,
        Family::CumulativeLogit,
        Family::CumulativeProbit,
        Family::ZeroInflatedPoisson,
        Family::Multinomial,
    ];

    /// The name in the study file.
    pub fn name(self) -> &'static str {
        match self {
            Family::Gaussian => "gaussian",
            Family::Logistic => "logistic",
            Family::Probit => "probit",
            Family::Poisson => "poisson",
            Family::NegativeBinomial => "negative-binomial",
            Family::StudentT => "student-t",
            Family::Gamma => "gamma",
            Family::Beta => "beta",
            Family::Exponential => "exponential",
            Family::Weibull => "weibull",
            Family::LogNormal => "log-normal",
            Family::CumulativeLogit => "cumulative-logit",
            Family::CumulativeProbit => "cumulative-probit",
            Family::ZeroInflatedPoisson => "zero-inflated-poisson",
            Family::Multinomial => "multinomial",
        }
    }

    /// The names that are also understood, each with the family that it means.
    pub fn synonyms() -> &'static [(&'static str, Family)] {
        &SYNONYMS
    }

    /// The family's parameters beside the coefficients, on their unconstrained scales. Those of ordered classes are one
    /// `cut` and as many `log_gap`s as there are further cutpoints.
    pub fn owns(self) -> &'static [&'static str] {
        match self {
            Family::Gaussian | Family::LogNormal => &["log_sd"],
            Family::NegativeBinomial => &["log_dispersion"],
            Family::StudentT => &["log_sd", "log_df"],
            Family::Gamma | Family::Weibull => &["log_shape"],
            Family::Beta => &["log_precision"],
            Family::CumulativeLogit | Family::CumulativeProbit => &["cut", "log_gap"],
            Family::ZeroInflatedPoisson => &["logit_zero"],
            _ => &[],
        }
    }

    /// Whether it has a parameter of this name beside the coefficients.
    pub fn has_own(self, name: &str) -> bool {
        self.owns().iter().any(|own| *own == name || *own == "log_gap" && name.starts_with(own))
    }

    /// How the linear predictor enters: coefficients of models with one link mean the same.
    pub fn link(self) -> &'static str {
        match self {
            Family::Gaussian | Family::StudentT => "identity",
            Family::Logistic | Family::Beta => "logit",
            Family::Probit => "probit",
            Family::Exponential | Family::Weibull | Family::LogNormal => "log time",
            Family::CumulativeLogit => "cumulative logit",
            Family::CumulativeProbit => "cumulative probit",
            Family::Multinomial => "multinomial logit",
            _ => "log",
        }
    }

    /// What an outcome of this family must be, if this one is not.
    pub fn refuses(self, y: f64) -> Option<&'static str> {
        match self {
            Family::Gaussian | Family::StudentT => None,
            Family::CumulativeLogit | Family::CumulativeProbit | Family::Multinomial => None,
            Family::Logistic | Family::Probit => {
                (y != 0.0 && y != 1.0).then_some("0 or 1 (or text of two levels, or TRUE/FALSE)")
            }
            Family::Gamma | Family::Exponential | Family::Weibull | Family::LogNormal => {
                (y <= 0.0).then_some("numbers above 0")
            }
            Family::Beta => {
                (y <= 0.0 || y >= 1.0).then_some("numbers between 0 and 1, both left out")
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
        matches!(self, Family::Poisson | Family::NegativeBinomial | Family::ZeroInflatedPoisson)
    }

    /// Whether the outcome is a time that may be censored.
    pub fn is_survival(self) -> bool {
        matches!(self, Family::Exponential | Family::Weibull | Family::LogNormal)
    }

    /// Whether the outcome is one of several classes in order.
    pub fn is_ordinal(self) -> bool {
        matches!(self, Family::CumulativeLogit | Family::CumulativeProbit)
    }

    /// Whether the outcome is one of several classes, with or without an order, whose levels shards agree on.
    pub fn has_levels(self) -> bool {
        self.is_ordinal() || self == Family::Multinomial
    }

    /// Whether likelihoods are densities in the units of the outcome, not probabilities.
    pub fn is_density(self) -> bool {
        matches!(self, Family::Gaussian | Family::StudentT | Family::Gamma | Family::Beta)
            || self.is_survival()
    }

    /// Whether the log-likelihood is concave in the coefficients, whatever its own parameters are held at.
    pub fn is_log_concave(self) -> bool {
        !matches!(self, Family::StudentT | Family::Beta | Family::ZeroInflatedPoisson)
    }

    /// Whether its rows go by the laws of `kernel::cases`, or of `kernel::softmax`.
    pub fn has_cases(self) -> bool {
        self as usize >= Family::StudentT as usize
    }
}

impl std::fmt::Display for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
