//! Eight doubles in two registers.

use super::ONE;
use crate::kernel::simd::{
    Cpu, LANES, Lanes, ROOT_HALF_BITS, ROUND, TWO_52_BIASED, TWO_52_BITS, Vector, polynomial,
};
use std::arch::x86_64::*;
use std::f64::consts::SQRT_2;
use std::ops::{Add, Div, Mul, Sub};

/// Proof that the CPU has AVX2 and FMA.
#[derive(Debug, Clone, Copy)]
pub struct Avx2(());

impl Avx2 {
    /// Asks the CPU.
    pub fn detect() -> Option<Avx2> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(Avx2(()))
    }
}

/// Eight doubles in two registers.
#[derive(Debug, Clone, Copy)]
pub struct Double256(__m256d, __m256d);

impl Cpu for Avx2 {
    type V = Double256;
    const POINTS: usize = 4;
    const TILE: usize = 2;

    #[inline(always)]
    fn splat(self, x: f64) -> Double256 {
        // SAFETY: the token proves AVX2.
        let x = unsafe { _mm256_set1_pd(x) };
        Double256(x, x)
    }

    #[inline(always)]
    fn load(self, x: &Lanes) -> Double256 {
        let at = x.as_ptr();
        // SAFETY: the token proves AVX2; both loads lie within the eight doubles.
        unsafe { Double256(_mm256_loadu_pd(at), _mm256_loadu_pd(at.add(LANES / 2))) }
    }

    /// By a table of 1 and √2, so that the polynomial goes to a quarter only.
    #[inline(always)]
    fn power_of_two(self, x: Double256) -> Double256 {
        // Adding this rounds to a half; twice the rounded number stands in the lowest bits.
        let round = self.splat(ROUND / 2.0);
        let shifted = x + round;
        let f = x - (shifted - round);
        // SAFETY: the token proves AVX2.
        let power = unsafe { Double256(half_power(shifted.0), half_power(shifted.1)) };
        (power * f).fma(polynomial(self, &EXP2_QUARTER, f), power)
    }
}

/// (2ᶠ − 1)/f for |f| ≤ ¼ to 2·10⁻¹⁴, which is 2ᶠ to 4·10⁻¹⁵.
const EXP2_QUARTER: [f64; 8] = [
    0.693_147_180_559_933_2,
    0.24022650695909986,
    0.05550410867103713,
    0.009618129108059268,
    0.001333355317421726,
    0.00015403526947189682,
    1.5265461188138487e-05,
    1.322430818863399e-06,
];

/// 2^(k/2) for a whole number k in the lowest bits. Safe to call where the CPU has AVX2.
#[inline(always)]
unsafe fn half_power(shifted: __m256d) -> __m256d {
    // SAFETY: the caller's.
    unsafe {
        let bits = _mm256_castpd_si256(shifted);
        // The second bit of each lane chooses between the two.
        let table = _mm256_set_pd(SQRT_2, 1.0, SQRT_2, 1.0);
        let fraction = _mm256_permutevar_pd(table, _mm256_slli_epi64::<1>(bits));
        // The whole part goes to the exponent.
        let whole = _mm256_slli_epi64::<51>(bits);
        let whole = _mm256_and_si256(whole, _mm256_set1_epi64x(!0 << 52));
        _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(fraction), whole))
    }
}

/// An operator, or a method of two vectors, on both halves.
macro_rules! both {
    ($a:expr, $b:expr, $f:ident) => {
        // SAFETY: a `Double256` proves AVX2 and FMA.
        unsafe { Double256($f($a.0, $b.0), $f($a.1, $b.1)) }
    };
}

impl Add for Double256 {
    type Output = Double256;
    #[inline(always)]
    fn add(self, other: Double256) -> Double256 {
        both!(self, other, _mm256_add_pd)
    }
}

impl Sub for Double256 {
    type Output = Double256;
    #[inline(always)]
    fn sub(self, other: Double256) -> Double256 {
        both!(self, other, _mm256_sub_pd)
    }
}

impl Mul for Double256 {
    type Output = Double256;
    #[inline(always)]
    fn mul(self, other: Double256) -> Double256 {
        both!(self, other, _mm256_mul_pd)
    }
}

impl Div for Double256 {
    type Output = Double256;
    #[inline(always)]
    fn div(self, other: Double256) -> Double256 {
        both!(self, other, _mm256_div_pd)
    }
}

impl Vector for Double256 {
    #[inline(always)]
    fn store(self, out: &mut Lanes) {
        let at = out.as_mut_ptr();
        // SAFETY: a `Double256` proves AVX2; both stores lie within the eight doubles.
        unsafe {
            _mm256_storeu_pd(at, self.0);
            _mm256_storeu_pd(at.add(LANES / 2), self.1);
        }
    }

    #[inline(always)]
    fn fma(self, b: Double256, c: Double256) -> Double256 {
        // SAFETY: a `Double256` proves AVX2 and FMA.
        unsafe { Double256(_mm256_fmadd_pd(self.0, b.0, c.0), _mm256_fmadd_pd(self.1, b.1, c.1)) }
    }

    #[inline(always)]
    fn min(self, other: Double256) -> Double256 {
        both!(self, other, _mm256_min_pd)
    }

    #[inline(always)]
    fn max(self, other: Double256) -> Double256 {
        both!(self, other, _mm256_max_pd)
    }

    #[inline(always)]
    fn neg_abs(self) -> Double256 {
        // SAFETY: a `Double256` proves AVX2.
        unsafe {
            let sign = _mm256_set1_pd(-0.0);
            Double256(_mm256_or_pd(self.0, sign), _mm256_or_pd(self.1, sign))
        }
    }

    #[inline(always)]
    fn pick(self, yes: Double256, no: Double256) -> Double256 {
        // SAFETY: a `Double256` proves AVX2.
        unsafe {
            let zero = _mm256_setzero_pd();
            let low = _mm256_cmp_pd::<_CMP_GE_OQ>(self.0, zero);
            let high = _mm256_cmp_pd::<_CMP_GE_OQ>(self.1, zero);
            Double256(_mm256_blendv_pd(no.0, yes.0, low), _mm256_blendv_pd(no.1, yes.1, high))
        }
    }

    #[inline(always)]
    fn round(self) -> Double256 {
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        // SAFETY: a `Double256` proves AVX2.
        unsafe { Double256(_mm256_round_pd::<NEAREST>(self.0), _mm256_round_pd::<NEAREST>(self.1)) }
    }

    #[inline(always)]
    fn scale(self, k: Double256) -> Double256 {
        // SAFETY: a `Double256` proves AVX2.
        unsafe { Double256(_mm256_mul_pd(self.0, power(k.0)), _mm256_mul_pd(self.1, power(k.1))) }
    }

    #[inline(always)]
    fn split(self) -> (Double256, Double256) {
        // SAFETY: a `Double256` proves AVX2.
        unsafe {
            let (low, high) = (split(self.0), split(self.1));
            (Double256(low.0, high.0), Double256(low.1, high.1))
        }
    }
}

/// 2ᵏ. Safe to call where the CPU has AVX2.
#[inline(always)]
unsafe fn power(k: __m256d) -> __m256d {
    // SAFETY: the caller's.
    unsafe {
        let bits = _mm256_castpd_si256(_mm256_add_pd(k, _mm256_set1_pd(ROUND + 1023.0)));
        _mm256_castsi256_pd(_mm256_slli_epi64::<52>(bits))
    }
}

/// See [`Vector::split`]. Safe to call where the CPU has AVX2.
#[inline(always)]
unsafe fn split(x: __m256d) -> (__m256d, __m256d) {
    // SAFETY: the caller's.
    unsafe {
        let lift = _mm256_set1_epi64x(ONE.wrapping_sub(ROOT_HALF_BITS as i64));
        let bits = _mm256_castpd_si256(x);
        let biased = _mm256_srli_epi64::<52>(_mm256_add_epi64(bits, lift));
        let whole = _mm256_or_si256(biased, _mm256_set1_epi64x(TWO_52_BITS as i64));
        let k = _mm256_sub_pd(_mm256_castsi256_pd(whole), _mm256_set1_pd(TWO_52_BIASED));
        let rest = _mm256_sub_epi64(bits, _mm256_slli_epi64::<52>(biased));
        (k, _mm256_castsi256_pd(_mm256_add_epi64(rest, _mm256_set1_epi64x(ONE))))
    }
}
