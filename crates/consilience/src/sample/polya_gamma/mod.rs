//! Exact draws from Pólya–Gamma distributions.
//!
//! After Devroye's method in Polson, Scott & Windle (2013): PG(1, c) = J(z)/4 with z = |c|/2, where
//! J(z) is the tilted Jacobi distribution with density
//!
//! ```text
//! f(x) = cosh(z)·e^(−z²x/2)·Σₙ (−1)ⁿ aₙ(x)
//! aₙ(x) = π(n + ½)·(2/πx)^(3/2)·e^(−2(n + ½)²/x)    for x ≤ t, the left piece
//!         π(n + ½)·e^(−(n + ½)²π²x/2)               for x > t, the right piece
//! ```
//!
//! The partial sums close in on the density from both sides, so a proposal with the density of the
//! first term is accepted or rejected after finitely many terms, mostly after none at all. Nothing is
//! approximated: tables and bounds only decide how soon an exact answer is known.

mod lump;

use crate::math::Stream;
use crate::math::ziggurat;
use libm::{erfc, exp};
use rand::{Rng, RngExt};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2, PI};

/// t, where the pieces meet. Any value in [0.12, 3.6] is legal; this one rejects least.
const CUT: f64 = 0.64;
/// 1/√t.
const ROOT: f64 = 1.25;
/// Up to this z the left piece is drawn under a tangent, from there on as an inverse Gaussian: where
/// the two are equally fast.
const SWITCH: f64 = 2.25;
/// From this z on the right piece has a chance below 10⁻¹⁷, less than a uniform draw can tell.
const FURTHEST: f64 = 12.0;
/// Table entries per unit of z.
const STEPS: f64 = 64.0;
/// More than the error of interpolating the table.
const DOUBT: f64 = 1e-4;
/// 1 − a₁/a₀ > `SURE`/2¹¹ on both pieces.
const SURE: u64 = 2036;

/// A sampler of PG(n, c) for whole n. It only holds a table: make it once, use it for every c.
#[derive(Debug, Clone)]
pub struct PolyaGamma {
    /// What is known beforehand at z = i/`STEPS`.
    table: Vec<TableEntry>,
}

#[derive(Debug, Clone, Copy)]
struct TableEntry {
    /// The chance of the left piece.
    left: f64,
    tangent: Tangent,
}

impl Default for PolyaGamma {
    fn default() -> PolyaGamma {
        PolyaGamma::new()
    }
}

impl PolyaGamma {
    /// Makes the table.
    pub fn new() -> PolyaGamma {
        let entry = |z: f64| TableEntry { left: left_chance(z), tangent: Tangent::new(z) };
        let entries = (FURTHEST * STEPS) as usize + 2;
        PolyaGamma { table: (0..entries).map(|i| entry(i as f64 / STEPS)).collect() }
    }

    /// A draw of PG(1, c), for any c but NaN.
    pub fn draw(&self, c: f64, rng: &mut Stream) -> f64 {
        self.draw_sum(1, c, rng)
    }

    /// A draw of PG(n, c), the sum of n draws of PG(1, c). Up to 512 of them are drawn in one go.
    pub fn draw_sum(&self, n: u64, c: f64, rng: &mut Stream) -> f64 {
        assert!(!c.is_nan(), "no Pólya–Gamma distribution has the tilt NaN");
        let z = 0.5 * c.abs();
        let (mut sum, mut left) = (0.0, n);
        while left >= lump::FEWEST {
            let size = left.min(lump::MOST);
            let Some(drawn) = lump::draw(size, z, rng) else { break };
            sum += drawn;
            left -= size;
        }
        if left > 0 {
            let tilt = self.tilt(z);
            for _ in 0..left {
                sum += tilt.draw(rng);
            }
        }
        0.25 * sum
    }

    #[inline(always)]
    fn tilt(&self, z: f64) -> Tilt {
        let place = z.min(FURTHEST) * STEPS;
        let i = place as usize;
        let part = place - i as f64;
        let TableEntry { left, tangent } = self.table[i];
        let near = left + part * (self.table[i + 1].left - left);
        Tilt { z, half_z2: 0.5 * z * z, near, tangent }
    }
}

/// J(z) for one z.
struct Tilt {
    z: f64,
    half_z2: f64,
    /// The chance of the left piece to within `DOUBT`.
    near: f64,
    /// The tangent of a tilt that is not stronger, and so a bound.
    tangent: Tangent,
}

impl Tilt {
    #[inline(always)]
    fn draw(&self, rng: &mut Stream) -> f64 {
        loop {
            // One random word serves twice: 53 bits choose the piece, 11 begin the uniform number
            // that accepts or rejects. More bits of that are drawn only where they matter.
            let word = rng.next_u64();
            let (x, decay) = if self.is_left((word >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)) {
                let x = if self.z < SWITCH { self.under_tangent(rng) } else { self.short(rng) };
                (x, 2.0 / x)
            } else {
                let x = CUT + exponential(rng) / (0.125 * PI * PI + self.half_z2);
                (x, 0.5 * PI * PI * x)
            };
            let start = word & 0x7ff;
            if start < SURE || accept((start as f64 + rng.random::<f64>()) / 2048.0, decay) {
                return x;
            }
        }
    }

    /// Which piece a uniform number stands for.
    #[inline(always)]
    fn is_left(&self, u: f64) -> bool {
        if (u - self.near).abs() > DOUBT {
            return u < self.near;
        }
        self.z >= FURTHEST || u < left_chance(self.z)
    }

    /// The left piece as x = 1/y², where y > 1/√t has a density proportional to h (see [`Tangent`]).
    #[inline(always)]
    fn under_tangent(&self, rng: &mut Stream) -> f64 {
        let Tangent { level, rate, mean } = self.tangent;
        loop {
            let y = ROOT + exponential(rng) * mean;
            let x = 1.0 / (y * y);
            let gap = level - rate * y + 0.5 * y * y + self.half_z2 * x;
            if exponential(rng) >= gap {
                return x;
            }
        }
    }

    /// The left piece as an inverse Gaussian of mean 1/z and shape 1 that is at most t, by Michael,
    /// Schucany & Haas (1976). Their smaller root is written without a difference that cancels.
    fn short(&self, rng: &mut Stream) -> f64 {
        let mean = 1.0 / self.z;
        loop {
            let normal = ziggurat::normal(rng);
            let w = 0.5 * mean * normal * normal;
            let stretch = 1.0 + w + (w * (2.0 + w)).sqrt();
            let swap = rng.random::<f64>() * (1.0 + stretch) > stretch;
            let x = if swap { mean * stretch } else { mean / stretch };
            if x <= CUT {
                return x;
            }
        }
    }
}

/// A tangent `level` − `rate`·y of the concave function
///
/// ```text
/// log h(y) = −y²/2 − z²/2y²
/// ```
///
/// and so a bound of it, for this z and every larger one.
#[derive(Debug, Clone, Copy)]
struct Tangent {
    level: f64,
    rate: f64,
    /// 1/`rate`.
    mean: f64,
}

impl Tangent {
    fn new(z: f64) -> Tangent {
        // Any point may be touched; rejections are rarest where y₀ − 1/√t = 1/rate, and this is near.
        let touch = 1.804 + 0.039 * z * z;
        let bend = z * z / (touch * touch);
        let rate = touch - bend / touch;
        Tangent { level: 0.5 * touch * touch - 1.5 * bend, rate, mean: 1.0 / rate }
    }
}

/// Whether u is below Σ(−1)ⁿ aₙ/a₀, aₙ/a₀ = (2n + 1)·e^(−n(n + 1)·decay).
#[cold]
fn accept(u: f64, decay: f64) -> bool {
    let (mut sum, mut n) = (1.0, 0.0);
    loop {
        for sign in [-1.0, 1.0] {
            n += 1.0;
            sum += sign * (2.0 * n + 1.0) * exp(-n * (n + 1.0) * decay);
            if sign < 0.0 && u <= sum {
                return true;
            }
            if sign > 0.0 && u > sum {
                return false;
            }
        }
    }
}

fn exponential(rng: &mut Stream) -> f64 {
    ziggurat::exponential(rng)
}

/// q/(p + q), with q and p the masses of e^(−z²x/2)·a₀(x) left and right of the cut:
///
/// ```text
/// p = π/2K·e^(−Kt),   K = π²/8 + z²/2
/// q = 2e^(−z)·Φ((tz − 1)/√t) + 2e^z·Φ(−(tz + 1)/√t)
/// ```
fn left_chance(z: f64) -> f64 {
    let cdf = |x: f64| 0.5 * erfc(-x * FRAC_1_SQRT_2);
    let rate = 0.125 * PI * PI + 0.5 * z * z;
    let p = FRAC_PI_2 / rate * exp(-rate * CUT);
    let q =
        2.0 * exp(-z) * cdf(ROOT * (CUT * z - 1.0)) + 2.0 * exp(z) * cdf(-ROOT * (CUT * z + 1.0));
    q / (p + q)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::stream;

    const TILTS: [f64; 9] = [0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0];

    /// Mean and variance of PG(1, c).
    fn moments(c: f64) -> (f64, f64) {
        if c == 0.0 {
            return (0.25, 1.0 / 24.0);
        }
        let variance = (c.sinh() - c) / (4.0 * c.powi(3) * (0.5 * c).cosh().powi(2));
        ((0.5 * c).tanh() / (2.0 * c), variance)
    }

    /// The mean of some numbers, in standard errors from where it should be.
    fn distance(values: impl Iterator<Item = f64> + Clone, expected: f64) -> f64 {
        let n = values.clone().count() as f64;
        let mean = values.clone().sum::<f64>() / n;
        let variance = values.map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean - expected) / (variance / n).sqrt()
    }

    #[test]
    fn moments_and_laplace_transform_are_right() {
        let sampler = PolyaGamma::new();
        for (k, c) in TILTS.into_iter().enumerate() {
            let mut rng = stream(1, k as u64, 0, "polya-gamma test");
            // The sign of c must not matter.
            let c = if k % 2 == 0 { c } else { -c };
            let draws: Vec<f64> = (0..1_000_000).map(|_| sampler.draw(c, &mut rng)).collect();
            let (mean, variance) = moments(c.abs());
            let z_mean = distance(draws.iter().copied(), mean);
            let z_variance = distance(draws.iter().map(|x| (x - mean).powi(2)), variance);
            assert!(z_mean.abs() < 4.0 && z_variance.abs() < 4.0, "{c}: {z_mean}, {z_variance}");
            for t in [0.1 / mean, 1.0 / mean, 5.0 / mean] {
                let root = (0.25 * c * c + 0.5 * t).sqrt();
                let transform = (0.5 * c).cosh() / root.cosh();
                let z = distance(draws.iter().map(|x| (-t * x).exp()), transform);
                assert!(z.abs() < 4.0, "{c}: transform at {t} off by {z}");
            }
        }
    }

    /// The distribution function of PG(1, c) at quantiles of the draws: every piece, and the seams
    /// between the pieces and between the methods, against the density's series.
    #[test]
    fn draws_follow_the_density() {
        let sampler = PolyaGamma::new();
        for (k, c) in [0.0, 1.3, 4.49, 4.5, 7.0].into_iter().enumerate() {
            let mut rng = stream(2, k as u64, 0, "polya-gamma test");
            let n = 400_000;
            let mut counts = [0.0; 12];
            for _ in 0..n {
                // Cells of width 0.16 in J: four of them left of the cut.
                let cell = (4.0 * sampler.draw(c, &mut rng) / 0.16) as usize;
                counts[cell.min(11)] += 1.0;
            }
            let z: f64 = 0.5 * c;
            let density = |x: f64| {
                let term = |i: i32| {
                    let h = f64::from(i) + 0.5;
                    let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
                    sign * PI * h * (2.0 / (PI * x)).powf(1.5) * (-2.0 * h * h / x).exp()
                };
                z.cosh() * (-0.5 * z * z * x).exp() * (0..30).map(term).sum::<f64>()
            };
            let mut rest = 1.0;
            for (cell, &count) in counts.iter().enumerate() {
                let points = 4_000;
                let width = 0.16 / f64::from(points);
                let middle = |i: i32| (cell as f64) * 0.16 + (f64::from(i) + 0.5) * width;
                let mut p = (0..points).map(|i| density(middle(i))).sum::<f64>() * width;
                rest -= p;
                if cell == 11 {
                    p += rest;
                }
                let expected = f64::from(n) * p;
                let off = (count - expected) / (expected * (1.0 - p)).sqrt();
                assert!(expected < 5.0 || off.abs() < 4.0, "{c}, cell {cell}: off by {off}");
            }
        }
    }

    #[test]
    fn sums_have_the_moments_of_their_parts() {
        let sampler = PolyaGamma::new();
        for (n, c) in [(0, 1.0), (2, 0.7), (37, 3.0), (400, 1.0)] {
            let mut rng = stream(3, n, 0, "polya-gamma test");
            let draws: Vec<f64> = (0..20_000).map(|_| sampler.draw_sum(n, c, &mut rng)).collect();
            if n == 0 {
                assert!(draws.iter().all(|&x| x == 0.0));
                continue;
            }
            let (mean, variance) = (n as f64 * moments(c).0, n as f64 * moments(c).1);
            assert!(distance(draws.iter().copied(), mean).abs() < 4.0);
            assert!(distance(draws.iter().map(|x| (x - mean).powi(2)), variance).abs() < 4.0);
        }
    }

    #[test]
    fn extreme_tilts_give_finite_draws() {
        let sampler = PolyaGamma::new();
        let mut rng = stream(4, 0, 0, "polya-gamma test");
        for c in [1e-300, 23.999, 24.0, 700.0, 1e5, 1e155, f64::MAX, f64::INFINITY] {
            for _ in 0..1000 {
                let x = sampler.draw(c, &mut rng);
                assert!((0.0..10.0).contains(&x), "{c}: {x}");
            }
        }
    }

    // What makes the shortcuts exact.
    #[test]
    fn the_bounds_behind_the_shortcuts_hold() {
        let sampler = PolyaGamma::new();
        for i in 0..120_000 {
            let z = f64::from(i) * 1e-4;
            let tilt = sampler.tilt(z);
            assert!((tilt.near - left_chance(z)).abs() < 0.5 * DOUBT, "{z}");
            let Tangent { level, rate, .. } = tilt.tangent;
            for y in [1.25, 1.5, 1.7, 1.804, 1.85, 2.0, 3.0, 9.0] {
                let log_h = -0.5 * y * y - 0.5 * z * z / (y * y);
                assert!(level - rate * y >= log_h - 1e-14, "{z}, {y}");
            }
        }
        assert!(1.0 - left_chance(FURTHEST) < 1.2e-16);
        let sure = SURE as f64 / 2048.0;
        assert!(sure < 1.0 - 3.0 * (-4.0 / CUT).exp());
        assert!(sure < 1.0 - 3.0 * (-PI * PI * CUT).exp());
    }
}
