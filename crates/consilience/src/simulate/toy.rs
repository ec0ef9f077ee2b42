//! The Gaussian toy of Buchholz, Ahfock and Richardson: covariates that hardly differ, and six models that do not
//! either.
//!
//! ```text
//! covariates    x₁ … x₁₅ normal with mean 0, variance 1 and correlation 0.9
//! coefficients  β₁ … β₁₀: with probability 0.2 N(±1, 1), otherwise N(0, 0.25²); β₁₁ … β₁₄ ~ N(0.1, 0.1²);
//!               β₁₅ ~ N(0.25, 0.01²)
//! outcome       y = 3 + x'β + e, e standard normal
//! ```

use super::BLOCK;
use crate::math::ziggurat::normal;
use crate::math::{Stream, stream};
use rand::RngExt;

/// Rows that the paper has.
pub const ROWS: u64 = 10_000;

/// The number of covariates.
pub const COVARIATES: usize = 15;

/// The correlation of any two covariates.
pub const CORRELATION: f64 = 0.9;

/// The intercept.
pub const INTERCEPT: f64 = 3.0;

/// The columns' names: `y`, then `x1` and so on.
pub fn names() -> Vec<String> {
    numbered(COVARIATES)
}

/// `y`, then `x1` to `xP`.
pub(super) fn numbered(covariates: usize) -> Vec<String> {
    let covariates = (1..=covariates).map(|j| format!("x{j}"));
    std::iter::once("y".to_string()).chain(covariates).collect()
}

/// The coefficients of the data with this seed.
pub fn coefficients(seed: u64) -> [f64; COVARIATES] {
    let mut rng = stream(seed, 0, 0, "toy coefficients");
    std::array::from_fn(|j| {
        let (mean, sd) = match j {
            0..10 if rng.random::<f64>() < 0.2 => {
                (if rng.random::<bool>() { 1.0 } else { -1.0 }, 1.0)
            }
            0..10 => (0.0, 0.25),
            10..14 => (0.1, 0.1),
            _ => (0.25, 0.01),
        };
        mean + sd * normal(&mut rng)
    })
}

/// Normal covariates any two of which have this correlation: they share a part.
pub(super) fn alike<const P: usize>(correlation: f64, rng: &mut Stream) -> [f64; P] {
    let shared = correlation.sqrt() * normal(rng);
    let own = (1.0 - correlation).sqrt();
    std::array::from_fn(|_| shared + own * normal(rng))
}

/// The columns of one block of rows of the data with this seed, as [`super::higgs::block`] has them.
pub fn block(seed: u64, block: u64, rows: usize) -> Vec<Vec<f32>> {
    let beta = coefficients(seed);
    let mut rng = stream(seed, 0, block, "toy");
    let mut columns = vec![Vec::new(); COVARIATES + 1];
    for _ in 0..rows.min(BLOCK) {
        let x: [f64; COVARIATES] = alike(CORRELATION, &mut rng);
        let mean = INTERCEPT + x.iter().zip(&beta).map(|(x, b)| x * b).sum::<f64>();
        columns[0].push((mean + normal(&mut rng)) as f32);
        columns[1..].iter_mut().zip(x).for_each(|(column, x)| column.push(x as f32));
    }
    columns
}
