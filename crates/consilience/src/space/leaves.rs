//! The weights of the models that the last few undecided terms make, all at once.

/// The most terms that are decided at once.
pub(super) const LAST: usize = 5;
/// How many models they make.
pub(super) const MOST: usize = 1 << LAST;

/// What is known of the models below a node: number i takes in the terms of i's bits.
pub(super) struct Leaves {
    /// How many there are.
    pub count: usize,
    /// Their weights.
    pub weight: [f64; MOST],
    /// −2 times the quadratic part of their log weights.
    pub q: [f64; MOST],
    /// Products of the reciprocals of their pivots; 0 where there is no normal approximation.
    pub reciprocals: [f64; MOST],
}

/// eˣ to 10⁻¹⁵ of it, without branches; what is outside [−600, 709] counts as its end, so that no product with
/// a prior gets so small that the CPU slows down. Written here because
/// the compiler then takes two or more at a time.
#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    const ROUNDER: f64 = 6_755_399_441_055_744.0;
    const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let x = if x > -600.0 { x } else { -600.0 };
    let x = if x < 709.0 { x } else { 709.0 };
    let shifted = x * std::f64::consts::LOG2_E + ROUNDER;
    let k = shifted - ROUNDER;
    let r = (x - k * LN_2_HIGH) - k * LN_2_LOW;
    // Taylor's series in pairs, so that multiplications need not wait for each other.
    let (r2, r4) = (r * r, (r * r) * (r * r));
    let low = (1.0 + r) + r2 * (0.5 + r * (1.0 / 6.0));
    let mid = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5_040.0));
    let high = (1.0 / 40_320.0 + r * (1.0 / 362_880.0))
        + r2 * (1.0 / 3_628_800.0 + r * (1.0 / 39_916_800.0))
        + r4 * (1.0 / 479_001_600.0);
    let power = low + r4 * (mid + r4 * high);
    // The rounder left k in the last bits.
    power * f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52)
}

/// One more term for N nodes side by side: first those without it, then those with it. A node is the upper
/// triangle of its augmented matrix, of D columns and the slope; E values go in, F come out.
#[inline(always)]
fn step<const D: usize, const N: usize, const M: usize, const E: usize, const F: usize>(
    from: &[[f64; N]; E],
    reciprocals: &[f64; N],
    noise: f64,
) -> ([[f64; M]; F], [f64; M]) {
    let mut to = [[0.0; M]; F];
    let mut all = [0.0; M];
    let mut reciprocal = [0.0; N];
    for n in 0..N {
        let pivot = from[0][n];
        reciprocal[n] = if pivot > noise { 1.0 / pivot } else { 0.0 };
        all[n] = reciprocals[n];
        all[N + n] = reciprocals[n] * reciprocal[n];
    }
    let mut e = 0;
    for i in 1..=D {
        let mut factor = [0.0; N];
        for n in 0..N {
            factor[n] = from[i][n] * reciprocal[n];
        }
        for j in i..=D {
            for n in 0..N {
                to[e][n] = from[D + 1 + e][n];
                to[e][N + n] = from[D + 1 + e][n] - factor[n] * from[j][n];
            }
            e += 1;
        }
    }
    (to, all)
}

macro_rules! descend {
    ($a:expr, $p:expr, $noise:expr, $at:expr;) => { ($a, $p) };
    ($a:expr, $p:expr, $noise:expr, $at:expr; ($d:literal $n:literal $m:literal $e:literal $f:literal) $($rest:tt)*) => {{
        let (a, p) = step::<$d, $n, $m, $e, $f>(&$a, &$p, $noise[$at]);
        descend!(a, p, $noise, $at + 1; $($rest)*)
    }};
}

macro_rules! decide {
    ($leaves:expr, $matrix:expr, $reciprocal:expr, $noise:expr, $size:literal, $count:literal; $($levels:tt)*) => {{
        let mut a = [[0.0; 1]; $size];
        for (slot, value) in a.iter_mut().zip($matrix) {
            slot[0] = *value;
        }
        let (a, p) = descend!(a, [$reciprocal], $noise, 0; $($levels)*);
        $leaves.q[..$count].copy_from_slice(&a[0]);
        $leaves.reciprocals[..$count].copy_from_slice(&p);
    }};
}

impl Leaves {
    pub fn new() -> Leaves {
        Leaves { count: 0, weight: [0.0; MOST], q: [0.0; MOST], reciprocals: [0.0; MOST] }
    }

    /// Decides the terms of a node's packed matrix, a column each, with the pivots that are noise. All weights
    /// are e^(`log_scale` − ½ q)·√reciprocals·prior.
    pub fn decide(
        &mut self,
        matrix: &[f64],
        noise: &[f64],
        reciprocal: f64,
        log_scale: f64,
        prior: &[f64; MOST],
    ) {
        match noise.len() {
            0 => decide!(self, matrix, reciprocal, noise, 1, 1;),
            1 => decide!(self, matrix, reciprocal, noise, 3, 2; (1 1 2 3 1)),
            2 => decide!(self, matrix, reciprocal, noise, 6, 4; (2 1 2 6 3) (1 2 4 3 1)),
            3 => {
                decide!(self, matrix, reciprocal, noise, 10, 8; (3 1 2 10 6) (2 2 4 6 3) (1 4 8 3 1))
            }
            4 => decide!(self, matrix, reciprocal, noise, 15, 16;
                (4 1 2 15 10) (3 2 4 10 6) (2 4 8 6 3) (1 8 16 3 1)),
            _ => decide!(self, matrix, reciprocal, noise, 21, 32;
                (5 1 2 21 15) (4 2 4 15 10) (3 4 8 10 6) (2 8 16 6 3) (1 16 32 3 1)),
        }
        self.count = 1 << noise.len();
        // A number of turns that is known beforehand lets the compiler unroll them.
        if self.count == MOST {
            self.weigh(log_scale, prior);
        } else {
            self.weigh(log_scale, &prior[..self.count]);
        }
    }

    #[inline(always)]
    fn weigh(&mut self, log_scale: f64, prior: &[f64]) {
        for (i, prior) in prior.iter().enumerate() {
            let size = exp(log_scale - 0.5 * self.q[i]);
            self.weight[i] = prior * size * self.reciprocals[i].sqrt();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_right_to_the_last_digits() {
        for i in -6000..7090 {
            let x = f64::from(i) / 10.0 + 0.037_1;
            let x = x.clamp(-600.0, 708.9);
            let error = (exp(x) / x.exp() - 1.0).abs();
            assert!(error < 1e-14, "{x}: {error}");
        }
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(f64::NEG_INFINITY) < 1e-260 && exp(1e6) > 1e307);
    }
}
