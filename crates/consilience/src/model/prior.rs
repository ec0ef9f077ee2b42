//! Priors of single parameters, and their fractional powers.

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
