//! Normal, exponential and χ² draws with the same bits on every machine.
//!
//! Normal and exponential ones come from the ziggurat of Marsaglia & Tsang (2000): 256 layers of equal
//! area under the density, of which one is chosen and, but for 1 draw in 100, a point in it taken
//! straight away. χ² draws come from Marsaglia & Tsang's (2000) method for the gamma distribution.
//! Everything but additions, products and roots is `libm`'s.

use super::Stream;
use libm::{exp, log};
use rand::{Rng, RngExt};
use std::sync::LazyLock;

const LAYERS: usize = 256;

/// The layers of a density f that falls from f(0) = 1. Layer i > 0 is the rectangle below f(edge[i + 1])
/// and above f(edge[i]), edge[i] wide; layer 0 lies at the bottom, with the tail beyond edge[1].
struct Ziggurat {
    edge: [f64; LAYERS + 1],
    height: [f64; LAYERS + 1],
}

impl Ziggurat {
    /// `start` is where the tail begins, `area` that of a layer.
    fn new(start: f64, area: f64, density: fn(f64) -> f64, inverse: fn(f64) -> f64) -> Ziggurat {
        let (mut edge, mut height) = ([0.0; LAYERS + 1], [1.0; LAYERS + 1]);
        edge[0] = area / density(start);
        edge[1] = start;
        height[0] = density(edge[0]);
        height[1] = density(start);
        for i in 2..LAYERS {
            height[i] = height[i - 1] + area / edge[i - 1];
            edge[i] = inverse(height[i]);
        }
        Ziggurat { edge, height }
    }
}

fn normal_density(x: f64) -> f64 {
    exp(-0.5 * x * x)
}

fn exponential_density(x: f64) -> f64 {
    exp(-x)
}

static NORMAL: LazyLock<Ziggurat> = LazyLock::new(|| {
    let inverse = |y: f64| (-2.0 * log(y)).sqrt();
    Ziggurat::new(NORMAL_TAIL, 4.928_673_233_974_655e-3, normal_density, inverse)
});
const NORMAL_TAIL: f64 = 3.654_152_885_361_009;

static EXPONENTIAL: LazyLock<Ziggurat> = LazyLock::new(|| {
    Ziggurat::new(EXPONENTIAL_TAIL, 3.949_659_822_581_557e-3, exponential_density, |y| -log(y))
});
const EXPONENTIAL_TAIL: f64 = 7.697_117_470_131_05;

/// A uniform number above 0.
fn positive(rng: &mut Stream) -> f64 {
    1.0 - rng.random::<f64>()
}

/// A standard normal draw.
#[inline]
pub fn normal(rng: &mut Stream) -> f64 {
    let table = &*NORMAL;
    loop {
        // The lowest bits choose the layer, the highest 53 a place in it, −1 to 1.
        let bits = rng.next_u64();
        let layer = (bits % LAYERS as u64) as usize;
        let place = ((bits >> 11) as f64 + 0.5) * (2.0 / (1_u64 << 53) as f64) - 1.0;
        let x = place * table.edge[layer];
        if x.abs() < table.edge[layer + 1] {
            return x;
        }
        if layer == 0 {
            let beyond = loop {
                let step = -log(positive(rng)) / NORMAL_TAIL;
                if -2.0 * log(positive(rng)) >= step * step {
                    break NORMAL_TAIL + step;
                }
            };
            return if place < 0.0 { -beyond } else { beyond };
        }
        if below(table, layer, rng, normal_density(x)) {
            return x;
        }
    }
}

/// A draw from the exponential distribution of mean 1.
#[inline]
pub fn exponential(rng: &mut Stream) -> f64 {
    let table = &*EXPONENTIAL;
    loop {
        let bits = rng.next_u64();
        let layer = (bits % LAYERS as u64) as usize;
        let x = ((bits >> 11) as f64 + 0.5) * (1.0 / (1_u64 << 53) as f64) * table.edge[layer];
        if x < table.edge[layer + 1] {
            return x;
        }
        if layer == 0 {
            return EXPONENTIAL_TAIL - log(positive(rng));
        }
        if below(table, layer, rng, exponential_density(x)) {
            return x;
        }
    }
}

/// Whether a random height within the layer is below the density.
fn below(table: &Ziggurat, layer: usize, rng: &mut Stream, density: f64) -> bool {
    let (low, high) = (table.height[layer], table.height[layer + 1]);
    low + (high - low) * rng.random::<f64>() < density
}

/// A draw from the χ² distribution with `df` > 0 degrees of freedom.
pub fn chi_square(df: f64, rng: &mut Stream) -> f64 {
    let shape = 0.5 * df;
    if shape < 1.0 {
        // Gamma(k) = Gamma(k + 1)·U^(1/k).
        return chi_square(df + 2.0, rng) * libm::pow(positive(rng), 1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(rng);
        let root = 1.0 + c * x;
        if root <= 0.0 {
            continue;
        }
        let v = root * root * root;
        if log(positive(rng)) < 0.5 * x * x + d * (1.0 - v + log(v)) {
            return 2.0 * d * v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::stream;
    use libm::erfc;
    use std::f64::consts::FRAC_1_SQRT_2;

    const DRAWS: usize = 1_000_000;

    /// The z-score of a mean of known expectation and variance.
    fn score(values: impl Iterator<Item = f64>, expected: f64, variance: f64) {
        let mean = values.sum::<f64>() / DRAWS as f64;
        let z = (mean - expected) / (variance / DRAWS as f64).sqrt();
        assert!(z.abs() < 4.0, "mean {mean} for {expected}: z = {z:.1}");
    }

    /// Chances of sets between cuts, tails included: one z-score each.
    fn chances(values: &[f64], tail: impl Fn(f64) -> f64, cuts: &[f64]) {
        for &cut in cuts {
            let p = tail(cut);
            let above = values.iter().map(|v| f64::from(u8::from(*v > cut)));
            score(above, p, p * (1.0 - p));
        }
    }

    #[test]
    fn the_layers_close_at_the_top() {
        for (table, tail) in [(&*NORMAL, NORMAL_TAIL), (&*EXPONENTIAL, EXPONENTIAL_TAIL)] {
            // The last layer's area is as the others', up to what the constants leave.
            let area = table.edge[1] * (table.height[2] - table.height[1]);
            let last = table.edge[LAYERS - 1] * (1.0 - table.height[LAYERS - 1]);
            assert!((last / area - 1.0).abs() < 1e-9, "{last} {area}");
            assert!(table.edge.windows(2).all(|e| e[0] > e[1]) && table.edge[1] == tail);
        }
    }

    #[test]
    fn normal_draws_are_normal() {
        for seed in 1..=3 {
            let mut rng = stream(seed, 0, 0, "normal");
            let values: Vec<f64> = (0..DRAWS).map(|_| normal(&mut rng)).collect();
            for (power, moment, variance) in [(1, 0.0, 1.0), (2, 1.0, 2.0), (4, 3.0, 96.0)] {
                score(values.iter().map(|v| v.powi(power)), moment, variance);
            }
            let cuts = [-4.0, -3.66, -3.0, -1.0, -0.2, 0.01, 0.5, 1.5, 2.5, 3.6, 3.7, 4.2];
            chances(&values, |x| 0.5 * erfc(x * FRAC_1_SQRT_2), &cuts);
            let pairs = values.chunks_exact(2).flat_map(|p| [p[0] * p[1], 0.0]);
            score(pairs, 0.0, 0.5);
        }
    }

    #[test]
    fn exponential_draws_are_exponential() {
        for seed in 1..=3 {
            let mut rng = stream(seed, 0, 0, "exponential");
            let values: Vec<f64> = (0..DRAWS).map(|_| exponential(&mut rng)).collect();
            score(values.iter().copied(), 1.0, 1.0);
            score(values.iter().map(|v| v * v), 2.0, 20.0);
            let cuts = [1e-4, 0.01, 0.3, 1.0, 2.0, 5.0, 7.6, 7.8, 9.0];
            chances(&values, |x| (-x).exp(), &cuts);
        }
    }

    // The tail of χ² at 2 degrees of freedom is e^−x/2; others by their moments.
    #[test]
    fn chi_square_draws_have_their_moments() {
        for df in [0.5, 1.0, 2.0, 5.0, 40.0] {
            let mut rng = stream(1, 0, 0, "chi-square");
            let values: Vec<f64> = (0..DRAWS).map(|_| chi_square(df, &mut rng)).collect();
            score(values.iter().copied(), df, 2.0 * df);
            let (second, fourth) = (df * (df + 2.0), df * (df + 2.0) * (df + 4.0) * (df + 6.0));
            score(values.iter().map(|v| v * v), second, fourth - second * second);
            if df == 2.0 {
                chances(&values, |x| (-0.5 * x).exp(), &[0.1, 1.0, 3.0, 10.0]);
            }
        }
    }
}
