//! Points that cover the unit cube more evenly than chance.

use super::Stream;
use super::special::normal_quantile;
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Independent scramblings: their spread is the error bar.
pub const REPLICATES: usize = 16;

/// Coordinates of one scrambling; more than that come from further ones.
const DIMENSIONS: u32 = sobol_burley::NUM_DIMENSIONS;

/// Points of one scrambling; the next has others.
const LENGTH: u32 = 1 << 16;

/// Owen-scrambled Sobol points in [`REPLICATES`] independent scramblings, taken in turn: point k is of
/// replicate k mod [`REPLICATES`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sobol {
    seeds: [u32; REPLICATES],
    taken: usize,
}

impl Sobol {
    /// Scramblings that depend on this stream.
    pub fn new(rng: &mut Stream) -> Sobol {
        Sobol { seeds: std::array::from_fn(|_| rng.random()), taken: 0 }
    }

    /// Leaves so many points out, as if they had been taken.
    pub fn skip(&mut self, count: usize) {
        self.taken = self.taken.saturating_add(count);
    }

    /// The next point, as standard normal coordinates. The crate's points have 24 bits; chance fills
    /// in the rest, so that every coordinate has the normal distribution exactly.
    pub fn normals(&mut self, out: &mut [f64], rng: &mut Stream) {
        let (replicate, index) = (self.taken % REPLICATES, (self.taken / REPLICATES) as u32);
        self.taken = self.taken.wrapping_add(1);
        for (j, value) in (0u32..).zip(out) {
            let block = (index / LENGTH) ^ (j / DIMENSIONS).rotate_left(16);
            let seed = self.seeds[replicate] ^ block.wrapping_mul(0x9e37_79b9);
            let even = f64::from(sobol_burley::sample(index % LENGTH, j % DIMENSIONS, seed));
            let u = even + rng.random::<f64>() / f64::from(1 << 24);
            *value = normal_quantile(u.clamp(1e-300, 1.0 - f64::EPSILON / 2.0));
        }
    }
}
