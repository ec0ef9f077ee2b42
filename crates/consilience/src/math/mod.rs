//! Linear algebra, special functions, transforms, sums in logs and random streams: nothing here
//! knows of models.
//!
//! All of it is plain Rust without run-time CPU dispatch, and elementary functions come from
//! `libm`, so that one input gives the same bits on every machine.

pub mod counts;
pub mod exact_sum;
pub mod fft;
pub mod hermite;
pub mod line;
pub mod matrix;
pub mod proposal;
pub mod random;
pub mod rule;
pub mod sobol;
pub mod special;
pub mod spectrum;
pub mod student;
pub mod sum;
pub mod svd;
pub(crate) mod wide;
pub mod ziggurat;

pub use exact_sum::ExactSum;
pub use matrix::{Cholesky, Matrix, dot};
pub use proposal::{Mixture, Proposal};
pub use random::{Stream, fingerprint, stream};
pub use rule::Rule;
pub use sobol::Sobol;
pub use sum::{Compensated, dot_compensated, log_mean_exp, log_sum_exp};

/// log 2π.
pub const LOG_2PI: f64 = 1.837_877_066_409_345_3;
