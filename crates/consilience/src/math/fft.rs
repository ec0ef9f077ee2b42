//! Lagged products of sequences by the fast Fourier transform.

/// Sums Σ x_t·x_(t+k) for all lags k at once, in O(n log n).
///
/// The autocorrelation of z is the inverse transform of |Fz|². Two real sequences x and y share one
/// transform as z = x + iy: the real part of z's autocorrelation is the sum of theirs, and a sum over
/// sequences is all that is wanted here. The transform there leaves its result in bit-reversed order
/// (decimation in frequency), the one back begins with that order (decimation in time), so nothing is
/// ever put in order.
#[derive(Debug, Clone)]
pub struct LagProducts {
    length: usize,
    size: usize,
    /// cos πj/h for j < h at h − 1 + j, for h = 1, 2, 4, …: every stage finds its own in a row.
    cos: Vec<f64>,
    /// −sin πj/h, likewise.
    sin: Vec<f64>,
}

impl LagProducts {
    /// For sequences of this length.
    pub fn new(length: usize) -> LagProducts {
        // Twice the length, so that the end of a sequence does not wrap into its beginning.
        let size = (2 * length).next_power_of_two().max(2);
        let (mut cos, mut sin) = (vec![1.0; size - 1], vec![0.0; size - 1]);
        let widest = size / 2;
        for j in 0..widest {
            let (s, c) = libm::sincos(std::f64::consts::PI * j as f64 / widest as f64);
            cos[widest - 1 + j] = c;
            sin[widest - 1 + j] = -s;
        }
        let mut half = widest / 2;
        while half > 0 {
            for j in 0..half {
                cos[half - 1 + j] = cos[2 * half - 1 + 2 * j];
                sin[half - 1 + j] = sin[2 * half - 1 + 2 * j];
            }
            half /= 2;
        }
        LagProducts { length, size, cos, sin }
    }

    /// Σ over sequences of Σ x_t·x_(t+k), for each k below their length. The sequences stand one
    /// after another.
    pub fn sums(&self, sequences: &[f64]) -> Vec<f64> {
        assert!(sequences.len().is_multiple_of(self.length), "sequences of another length");
        let mut power = vec![0.0; self.size];
        let (mut re, mut im) = (vec![0.0; self.size], vec![0.0; self.size]);
        for pair in sequences.chunks(2 * self.length) {
            let (x, y) = pair.split_at(self.length);
            for (part, values) in [(&mut re, x), (&mut im, y)] {
                part[..values.len()].copy_from_slice(values);
                part[values.len()..].fill(0.0);
            }
            self.forth(&mut re, &mut im);
            for ((p, a), b) in power.iter_mut().zip(&re).zip(&im) {
                *p += a * a + b * b;
            }
        }
        im.fill(0.0);
        self.back(&mut power, &mut im);
        power.truncate(self.length);
        power.iter_mut().for_each(|p| *p /= self.size as f64);
        power
    }

    /// The transform, its result in bit-reversed order.
    fn forth(&self, re: &mut [f64], im: &mut [f64]) {
        let mut half = self.size / 2;
        while half > 0 {
            self.stage(half, re, im, |(a, b), (c, d), (cos, sin)| {
                let (x, y) = (a - c, b - d);
                ((a + c, b + d), (x * cos - y * sin, x * sin + y * cos))
            });
            half /= 2;
        }
    }

    /// The transform of values in bit-reversed order. (For the real part of a real sequence's
    /// transform it makes no difference in which direction.)
    fn back(&self, re: &mut [f64], im: &mut [f64]) {
        let mut half = 1;
        while half < self.size {
            self.stage(half, re, im, |(a, b), (c, d), (cos, sin)| {
                let (x, y) = (c * cos - d * sin, c * sin + d * cos);
                ((a + x, b + y), (a - x, b - y))
            });
            half *= 2;
        }
    }

    /// Applies a butterfly to all pairs of values that stand `half` apart.
    #[inline(always)]
    fn stage(
        &self,
        half: usize,
        re: &mut [f64],
        im: &mut [f64],
        butterfly: impl Fn(Complex, Complex, Complex) -> (Complex, Complex),
    ) {
        let (cos, sin) = (&self.cos[half - 1..][..half], &self.sin[half - 1..][..half]);
        for (re, im) in re.chunks_exact_mut(2 * half).zip(im.chunks_exact_mut(2 * half)) {
            let (a, c) = re.split_at_mut(half);
            let (b, d) = im.split_at_mut(half);
            for j in 0..half {
                ((a[j], b[j]), (c[j], d[j])) =
                    butterfly((a[j], b[j]), (c[j], d[j]), (cos[j], sin[j]));
            }
        }
    }
}

type Complex = (f64, f64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::{dot, stream};
    use rand::RngExt;

    #[test]
    fn agrees_with_the_sums_themselves() {
        let mut rng = stream(1, 0, 0, "fft test");
        for length in [1, 2, 3, 5, 64, 100, 257] {
            for count in [1, 2, 5] {
                let x: Vec<f64> = (0..length * count).map(|_| rng.random::<f64>() - 0.3).collect();
                let sums = LagProducts::new(length).sums(&x);
                assert_eq!(sums.len(), length);
                for (lag, sum) in sums.iter().enumerate() {
                    let products = x.chunks(length).map(|x| dot(&x[lag..], &x[..length - lag]));
                    assert!((sum - products.sum::<f64>()).abs() < 1e-13 * (length * count) as f64);
                }
            }
        }
    }
}
