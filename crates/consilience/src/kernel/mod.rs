//! The hot loops: log-likelihoods of many rows at many points, with derivatives.
//!
//! Rows stand in panels of eight, column after column, so that one panel's linear predictors are
//! built side by side in registers. Sums run in a fixed order: lane sums within a block of panels,
//! blocks one after the other. A point's value therefore never depends on which other points
//! were asked for with it, nor on the number of threads.

pub mod functions;
mod rows;

pub use rows::{Extra, Rows};
