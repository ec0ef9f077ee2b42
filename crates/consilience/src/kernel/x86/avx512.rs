//! Eight doubles in one register.

use super::ONE;
use crate::kernel::simd::{
    Cpu, Lanes, ROOT_HALF_BITS, ROUND, TWO_52_BIASED, TWO_52_BITS, Vector, polynomial,
};
use std::arch::x86_64::*;
use std::f64::consts::{LN_2, SQRT_2};
use std::ops::{Add, Div, Mul, Sub};

/// Proof that the CPU has AVX-512F, and VL and DQ with it: without these the compiler may use half of the registers only where
/// a number is taken out of a vector. All CPUs with AVX-512 since 2017 have them.
#[derive(Debug, Clone, Copy)]
pub struct Avx512(());

impl Avx512 {
    /// Asks the CPU.
    pub fn detect() -> Option<Avx512> {
        (is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq"))
        .then_some(Avx512(()))
    }
}

/// Eight doubles in one register.
#[derive(Debug, Clone, Copy)]
pub struct Double512(__m512d);

impl Cpu for Avx512 {
    type V = Double512;
    const POINTS: usize = 8;
    const TILE: usize = 4;

    #[inline(always)]
    fn splat(self, x: f64) -> Double512 {
        // SAFETY: the token proves AVX-512F.
        Double512(unsafe { _mm512_set1_pd(x) })
    }

    #[inline(always)]
    fn load(self, x: &Lanes) -> Double512 {
        // SAFETY: the token proves AVX-512F; the load is the eight doubles.
        Double512(unsafe { _mm512_loadu_pd(x.as_ptr()) })
    }

    /// By a table of 2^(i/16), which a permutation looks up: half the multiplications.
    #[inline(always)]
    fn power_of_two(self, x: Double512) -> Double512 {
        // Adding this rounds to a sixteenth; sixteen times the rounded number stands in the lowest bits.
        let round = self.splat(ROUND / 16.0);
        let shifted = x + round;
        let f = x - (shifted - round);
        // SAFETY: the token proves AVX-512F; the loads are of eight doubles each.
        let power = Double512(unsafe {
            let bits = _mm512_castpd_si512(shifted.0);
            let low = _mm512_loadu_pd(SIXTEENTHS[0].as_ptr());
            let high = _mm512_loadu_pd(SIXTEENTHS[1].as_ptr());
            let fraction = _mm512_castpd_si512(_mm512_permutex2var_pd(low, bits, high));
            // The whole part goes to the exponent.
            let whole = _mm512_slli_epi64::<48>(bits);
            let whole = _mm512_and_si512(whole, _mm512_set1_epi64(!0 << 52));
            _mm512_castsi512_pd(_mm512_add_epi64(fraction, whole))
        });
        (power * f).fma(polynomial(self, &EXP2_SMALL, f), power)
    }
}

/// 2^(i/16).
const SIXTEENTHS: [Lanes; 2] = [
    [
        1.0,
        1.0442737824274138,
        1.0905077326652577,
        1.1387886347566916,
        1.189207115002721,
        1.241857812073484,
        1.2968395546510096,
        1.3542555469368927,
    ],
    [
        SQRT_2,
        1.4768261459394993,
        1.5422108254079407,
        1.6104903319492543,
        1.681792830507429,
        1.7562521603732995,
        1.8340080864093424,
        1.9152065613971474,
    ],
];

/// (2ᶠ − 1)/f for |f| ≤ 1/32 to 5·10⁻¹³, which is 2ᶠ to 10⁻¹⁴.
const EXP2_SMALL: [f64; 5] =
    [LN_2, 0.24022650691319414, 0.05550410866027587, 0.009618317140580765, 0.0013333744338239965];

/// An operator, or a method of two vectors.
macro_rules! one {
    ($a:expr, $b:expr, $f:ident) => {
        // SAFETY: a `Double512` proves AVX-512F.
        Double512(unsafe { $f($a.0, $b.0) })
    };
}

impl Add for Double512 {
    type Output = Double512;
    #[inline(always)]
    fn add(self, other: Double512) -> Double512 {
        one!(self, other, _mm512_add_pd)
    }
}

impl Sub for Double512 {
    type Output = Double512;
    #[inline(always)]
    fn sub(self, other: Double512) -> Double512 {
        one!(self, other, _mm512_sub_pd)
    }
}

impl Mul for Double512 {
    type Output = Double512;
    #[inline(always)]
    fn mul(self, other: Double512) -> Double512 {
        one!(self, other, _mm512_mul_pd)
    }
}

impl Div for Double512 {
    type Output = Double512;
    #[inline(always)]
    fn div(self, other: Double512) -> Double512 {
        one!(self, other, _mm512_div_pd)
    }
}

impl Vector for Double512 {
    #[inline(always)]
    fn store(self, out: &mut Lanes) {
        // SAFETY: a `Double512` proves AVX-512F; the store is the eight doubles.
        unsafe { _mm512_storeu_pd(out.as_mut_ptr(), self.0) }
    }

    #[inline(always)]
    fn fma(self, b: Double512, c: Double512) -> Double512 {
        // SAFETY: a `Double512` proves AVX-512F.
        Double512(unsafe { _mm512_fmadd_pd(self.0, b.0, c.0) })
    }

    #[inline(always)]
    fn min(self, other: Double512) -> Double512 {
        one!(self, other, _mm512_min_pd)
    }

    #[inline(always)]
    fn max(self, other: Double512) -> Double512 {
        one!(self, other, _mm512_max_pd)
    }

    #[inline(always)]
    fn neg_abs(self) -> Double512 {
        // SAFETY: a `Double512` proves AVX-512F.
        Double512(unsafe {
            let sign = _mm512_set1_epi64(i64::MIN);
            _mm512_castsi512_pd(_mm512_or_si512(_mm512_castpd_si512(self.0), sign))
        })
    }

    #[inline(always)]
    fn pick(self, yes: Double512, no: Double512) -> Double512 {
        // SAFETY: a `Double512` proves AVX-512F.
        Double512(unsafe {
            let mask = _mm512_cmp_pd_mask::<_CMP_GE_OQ>(self.0, _mm512_setzero_pd());
            _mm512_mask_blend_pd(mask, no.0, yes.0)
        })
    }

    #[inline(always)]
    fn round(self) -> Double512 {
        // SAFETY: a `Double512` proves AVX-512F.
        Double512(unsafe { _mm512_roundscale_pd::<_MM_FROUND_TO_NEAREST_INT>(self.0) })
    }

    #[inline(always)]
    fn scale(self, k: Double512) -> Double512 {
        one!(self, k, _mm512_scalef_pd)
    }

    #[inline(always)]
    fn split(self) -> (Double512, Double512) {
        // SAFETY: a `Double512` proves AVX-512F.
        unsafe {
            let lift = _mm512_set1_epi64(ONE.wrapping_sub(ROOT_HALF_BITS as i64));
            let bits = _mm512_castpd_si512(self.0);
            let biased = _mm512_srli_epi64::<52>(_mm512_add_epi64(bits, lift));
            let whole = _mm512_or_si512(biased, _mm512_set1_epi64(TWO_52_BITS as i64));
            let k = _mm512_sub_pd(_mm512_castsi512_pd(whole), _mm512_set1_pd(TWO_52_BIASED));
            let rest = _mm512_sub_epi64(bits, _mm512_slli_epi64::<52>(biased));
            let m = _mm512_castsi512_pd(_mm512_add_epi64(rest, _mm512_set1_epi64(ONE)));
            (Double512(k), Double512(m))
        }
    }
}
