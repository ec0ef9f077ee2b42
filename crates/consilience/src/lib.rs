//! Bayesian model choice on data that is split over workers, machines or institutions.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod combine;
pub mod compare;
pub mod data;
pub mod engine;
mod error;
pub mod estimate;
pub mod kernel;
pub mod math;
pub mod model;
pub mod plan;
pub mod question;
pub mod shard;
pub mod study;
mod target;
mod warning;

pub use error::{Error, Place, Result};
pub use target::{Expansion, Target};
pub use warning::{Level, Warning};
