//! The data of the reversible-jump experiment of Buchholz, Ahfock and Richardson: whether the third of five features
//! belongs in the model is hard to say.
//!
//! ```text
//! features  x₁ … x₅ normal with mean 0, variance 1 and correlation 0.9
//! outcome   y is 1 with probability 1/(1 + exp(−x'θ)); θ = [−1, 1, 0, 0, 1] in the first half of the rows,
//!           [−1, 1, 0.01, 0, 1] in the second
//! ```

use super::BLOCK;
use super::toy::{CORRELATION, alike, numbered};
use crate::math::stream;
use rand::RngExt;

/// Rows that the paper has.
pub const ROWS: u64 = 4_000;

/// The number of features.
pub const FEATURES: usize = 5;

/// The columns' names: `y`, then `x1` to `x5`.
pub fn names() -> Vec<String> {
    numbered(FEATURES)
}

/// The coefficients in a row, counted from 0, of so many.
pub fn theta(row: u64, of: u64) -> [f64; FEATURES] {
    let third = if row < of / 2 { 0.0 } else { 0.01 };
    [-1.0, 1.0, third, 0.0, 1.0]
}

/// The columns of one block of rows of the data with this seed, as [`super::higgs::block`] has them. The data have `of`
/// rows in all.
pub fn block(seed: u64, block: u64, rows: usize, of: u64) -> Vec<Vec<f32>> {
    let mut rng = stream(seed, 0, block, "rjmcmc");
    let mut columns = vec![Vec::new(); FEATURES + 1];
    for row in (block * BLOCK as u64..).take(rows.min(BLOCK)) {
        let x: [f64; FEATURES] = alike(CORRELATION, &mut rng);
        let eta: f64 = x.iter().zip(theta(row, of)).map(|(x, t)| x * t).sum();
        let y = rng.random::<f64>() < 1.0 / (1.0 + libm::exp(-eta));
        columns[0].push(f32::from(u8::from(y)));
        columns[1..].iter_mut().zip(x).for_each(|(column, x)| column.push(x as f32));
    }
    columns
}
