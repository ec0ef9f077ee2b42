//! Local evidence: from a [`Target`](crate::Target) to log Z with its error bar and moments.

mod ascent;
pub mod bridge;
pub mod chains;
pub mod chib;
mod controlled;
pub mod importance;
pub mod in_sigma;
pub mod laplace;
pub mod linear;
mod mixed;
pub mod newton;
pub mod pareto;
mod rotated;
pub mod search;
pub mod shape;
pub mod zellner;

pub use crate::target::Mode;
pub use chains::{ParameterDiagnostics, SampleDiagnostics};
pub use chib::Chib;
pub use importance::{Batch, Importance, Weighted};
pub use in_sigma::InSigma;
pub use laplace::{Laplace, LaplaceMetropolis};
pub use linear::Linear;
pub use newton::{Newton, Step};
pub use search::Search;
pub use shape::Shape;
pub use zellner::Zellner;

use serde::{Deserialize, Serialize};

/// A number on the log scale with its Monte Carlo standard error; `None`: no error bar (Laplace).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Its standard error.
    pub se: Option<f64>,
}

impl Estimate {
    /// Known without error.
    pub const ZERO: Estimate = Estimate { value: 0.0, se: Some(0.0) };

    /// An estimate with this standard error.
    pub fn new(value: f64, se: f64) -> Estimate {
        Estimate { value, se: Some(se) }
    }

    fn combine(self, other: Estimate, sign: f64) -> Estimate {
        let se = self.se.zip(other.se).map(|(a, b)| libm::hypot(a, b));
        Estimate { value: self.value + sign * other.value, se }
    }
}

/// The sum of independent estimates.
impl std::ops::Add for Estimate {
    type Output = Estimate;
    fn add(self, other: Estimate) -> Estimate {
        self.combine(other, 1.0)
    }
}

/// The difference of independent estimates.
impl std::ops::Sub for Estimate {
    type Output = Estimate;
    fn sub(self, other: Estimate) -> Estimate {
        self.combine(other, -1.0)
    }
}
