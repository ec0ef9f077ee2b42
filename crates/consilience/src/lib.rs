//! Bayesian model choice on data that is split over workers, machines or institutions.

pub mod data;
mod error;
pub mod math;
pub mod model;
pub mod study;
mod warning;

pub use error::{Error, Place, Result};
pub use warning::{Level, Warning};
