//! The hot loops: log-likelihoods of many rows at many points, with derivatives.
//!
//! Rows stand in panels of eight (`panels`), column after column, so that one panel's linear predictors are
//! built side by side in registers. The loops are written once, over a vector of eight doubles
//! (`simd`), and compiled for every kind of CPU (`x86`, `dispatch`), of which the best is taken when the
//! program runs. This is the only module with `unsafe` code.
//!
//! Sums run in a fixed order: lane sums within a block of panels, blocks one after the other. A
//! point's value therefore never depends on which other points were asked for with it, nor on the
//! number of threads. The portable way has the same bits on every machine; another kind of CPU may
//! differ from it in the last ones.

// Lanes, points and panels are numbers here, and several arrays are walked by them at once.
#![allow(clippy::needless_range_loop)]

mod cases;
mod dispatch;
mod effects;
mod family;
mod functions;
mod large;
mod laws;
mod panels;
mod passes;
mod products;
mod rows;
mod simd;
mod softmax;
mod store;
mod triangle;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use cases::{Case, CaseSums};
pub use dispatch::{Kernel, Path};
pub use effects::{
    EffectFamily, EffectPoint, EffectRows, NodeMoves, NodeRule, PlacedGroup, WantedSlopes,
};
pub use family::Family;
pub use panels::{BLOCK_ROWS, Margins};
pub use rows::{Extra, Rows};
pub use simd::{LANES, Line};
pub use softmax::{Class, ClassSums};
pub use store::{Lender, Store, Values};
pub use triangle::Triangle;
