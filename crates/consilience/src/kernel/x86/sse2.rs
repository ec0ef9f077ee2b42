//! Eight doubles in four registers: what any CPU computes, with the same bits. The compiler would find these instructions
//! in loops over eight lanes too, and took four times as long over it.
//!
//! Every `unsafe` here is sound for the same reason: SSE2 is a part of x86-64, so that its instructions exist wherever this
//! is compiled for.

use super::ONE;
use crate::kernel::simd::{Cpu, Lanes, ROOT_HALF_BITS, ROUND, TWO_52_BIASED, TWO_52_BITS, Vector};
use std::arch::x86_64::*;
use std::ops::{Add, Div, Mul, Sub};

/// Any CPU of this architecture.
#[derive(Debug, Clone, Copy)]
pub struct Sse2;

/// Eight doubles in four registers.
#[derive(Debug, Clone, Copy)]
pub struct Double128(__m128d, __m128d, __m128d, __m128d);

impl Cpu for Sse2 {
    type V = Double128;
    const POINTS: usize = 2;
    const TILE: usize = 2;

    #[inline(always)]
    fn splat(self, x: f64) -> Double128 {
        // SAFETY: SSE2 is a part of x86-64.
        let x = unsafe { _mm_set1_pd(x) };
        Double128(x, x, x, x)
    }

    #[inline(always)]
    fn load(self, x: &Lanes) -> Double128 {
        let at = x.as_ptr();
        // SAFETY: SSE2 is a part of x86-64, and all loads lie within the eight doubles.
        unsafe {
            Double128(
                _mm_loadu_pd(at),
                _mm_loadu_pd(at.add(2)),
                _mm_loadu_pd(at.add(4)),
                _mm_loadu_pd(at.add(6)),
            )
        }
    }
}

impl Double128 {
    #[inline(always)]
    fn each(self, f: impl Fn(__m128d) -> __m128d) -> Double128 {
        Double128(f(self.0), f(self.1), f(self.2), f(self.3))
    }

    #[inline(always)]
    fn with(self, other: Double128, f: impl Fn(__m128d, __m128d) -> __m128d) -> Double128 {
        Double128(f(self.0, other.0), f(self.1, other.1), f(self.2, other.2), f(self.3, other.3))
    }
}

impl Add for Double128 {
    type Output = Double128;
    #[inline(always)]
    fn add(self, other: Double128) -> Double128 {
        // SAFETY: SSE2 is a part of x86-64.
        self.with(other, |a, b| unsafe { _mm_add_pd(a, b) })
    }
}

impl Sub for Double128 {
    type Output = Double128;
    #[inline(always)]
    fn sub(self, other: Double128) -> Double128 {
        // SAFETY: SSE2 is a part of x86-64.
        self.with(other, |a, b| unsafe { _mm_sub_pd(a, b) })
    }
}

impl Mul for Double128 {
    type Output = Double128;
    #[inline(always)]
    fn mul(self, other: Double128) -> Double128 {
        // SAFETY: SSE2 is a part of x86-64.
        self.with(other, |a, b| unsafe { _mm_mul_pd(a, b) })
    }
}

impl Div for Double128 {
    type Output = Double128;
    #[inline(always)]
    fn div(self, other: Double128) -> Double128 {
        // SAFETY: SSE2 is a part of x86-64.
        self.with(other, |a, b| unsafe { _mm_div_pd(a, b) })
    }
}

impl Vector for Double128 {
    #[inline(always)]
    fn store(self, out: &mut Lanes) {
        let at = out.as_mut_ptr();
        // SAFETY: SSE2 is a part of x86-64, and all stores lie within the eight doubles.
        unsafe {
            _mm_storeu_pd(at, self.0);
            _mm_storeu_pd(at.add(2), self.1);
            _mm_storeu_pd(at.add(4), self.2);
            _mm_storeu_pd(at.add(6), self.3);
        }
    }

    #[inline(always)]
    fn fma(self, b: Double128, c: Double128) -> Double128 {
        self * b + c
    }

    #[inline(always)]
    fn min(self, other: Double128) -> Double128 {
        // SAFETY: SSE2 is a part of x86-64.
        self.with(other, |a, b| unsafe { _mm_min_pd(a, b) })
    }

    #[inline(always)]
    fn max(self, other: Double128) -> Double128 {
        // SAFETY: SSE2 is a part of x86-64.
        self.with(other, |a, b| unsafe { _mm_max_pd(a, b) })
    }

    #[inline(always)]
    fn neg_abs(self) -> Double128 {
        // SAFETY: SSE2 is a part of x86-64.
        self.each(|a| unsafe { _mm_or_pd(a, _mm_set1_pd(-0.0)) })
    }

    #[inline(always)]
    fn pick(self, yes: Double128, no: Double128) -> Double128 {
        // SAFETY: SSE2 is a part of x86-64.
        let mask = self.each(|a| unsafe { _mm_cmpge_pd(a, _mm_setzero_pd()) });
        // SAFETY: SSE2 is a part of x86-64.
        let yes = mask.with(yes, |mask, yes| unsafe { _mm_and_pd(mask, yes) });
        // SAFETY: SSE2 is a part of x86-64.
        let no = mask.with(no, |mask, no| unsafe { _mm_andnot_pd(mask, no) });
        // SAFETY: SSE2 is a part of x86-64.
        yes.with(no, |yes, no| unsafe { _mm_or_pd(yes, no) })
    }

    #[inline(always)]
    fn round(self) -> Double128 {
        // SAFETY: SSE2 is a part of x86-64.
        self.each(|a| unsafe {
            let round = _mm_set1_pd(ROUND);
            _mm_sub_pd(_mm_add_pd(a, round), round)
        })
    }

    #[inline(always)]
    fn scale(self, k: Double128) -> Double128 {
        // SAFETY: SSE2 is a part of x86-64.
        self.with(k, |a, k| unsafe {
            let bits = _mm_castpd_si128(_mm_add_pd(k, _mm_set1_pd(ROUND + 1023.0)));
            _mm_mul_pd(a, _mm_castsi128_pd(_mm_slli_epi64::<52>(bits)))
        })
    }

    #[inline(always)]
    fn split(self) -> (Double128, Double128) {
        // SAFETY: SSE2 is a part of x86-64.
        let biased = self.each(|a| unsafe {
            let lift = _mm_set1_epi64x(ONE.wrapping_sub(ROOT_HALF_BITS as i64));
            let lifted = _mm_add_epi64(_mm_castpd_si128(a), lift);
            _mm_castsi128_pd(_mm_srli_epi64::<52>(lifted))
        });
        // SAFETY: SSE2 is a part of x86-64.
        let k = biased.each(|biased| unsafe {
            let whole = _mm_set1_epi64x(TWO_52_BITS as i64);
            let whole = _mm_or_si128(_mm_castpd_si128(biased), whole);
            _mm_sub_pd(_mm_castsi128_pd(whole), _mm_set1_pd(TWO_52_BIASED))
        });
        // SAFETY: SSE2 is a part of x86-64.
        let m = self.with(biased, |a, biased| unsafe {
            let exponent = _mm_slli_epi64::<52>(_mm_castpd_si128(biased));
            let rest = _mm_sub_epi64(_mm_castpd_si128(a), exponent);
            _mm_castsi128_pd(_mm_add_epi64(rest, _mm_set1_epi64x(ONE)))
        });
        (k, m)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::simd::Plain;

    /// The bits of what is computed of these numbers in every way there is.
    fn computed<C: Cpu>(cpu: C, x: &Lanes, y: &Lanes) -> Vec<u64> {
        let (a, b) = (cpu.load(x), cpu.load(y));
        let positive = a.neg_abs().min(cpu.splat(-1e-300)) * cpu.splat(-1.0);
        let (k, m) = positive.split();
        let small = a.max(cpu.splat(-1000.0)).min(cpu.splat(1000.0));
        let all = [a + b, a - b, a * b, a / b, a.fma(b, a), a.min(b), a.max(b), a.neg_abs()];
        let more = [a.pick(b, a), small.round(), b.scale(small.round()), k, m];
        let power = cpu.power_of_two(small);
        let vectors = all.into_iter().chain(more).chain([power]);
        let mut bits: Vec<u64> = vectors.flat_map(|v| v.lanes().map(f64::to_bits)).collect();
        bits.push(a.sum().to_bits());
        bits
    }

    #[test]
    fn the_bits_are_those_of_plain_rust() {
        let special = [0.0, -0.0, 1.0, -1.5, 1e300, -1e-300, 0.5, 700.25];
        let beyond = [f64::INFINITY, f64::NEG_INFINITY, 3.0, -0.0, 0.0, 2.5, -2.5, 1e-308];
        for k in 0..200 {
            let lane = |i: usize| ((k * 8 + i) as f64 * 0.7311).sin() * 900.0;
            let made: Lanes = std::array::from_fn(lane);
            for (x, y) in [(&made, &special), (&special, &beyond), (&beyond, &made), (&made, &made)]
            {
                assert_eq!(computed(Sse2, x, y), computed(Plain, x, y), "{x:?} {y:?}");
            }
        }
        // Where either is not a number, the other one.
        let wrong = [f64::NAN; 8];
        for (x, y) in [(&wrong, &special), (&special, &wrong)] {
            let least = |a: Double128, b: Double128| [a.min(b).lanes(), a.max(b).lanes()];
            let found = least(Sse2.load(x), Sse2.load(y));
            let plain = [Plain.load(x).min(Plain.load(y)), Plain.load(x).max(Plain.load(y))];
            let plain = plain.map(|v| v.lanes());
            assert_eq!(found.map(|v| v.map(f64::to_bits)), plain.map(|v| v.map(f64::to_bits)));
        }
    }
}
