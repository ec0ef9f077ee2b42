//! Vectors of AVX2 with FMA, and of AVX-512.
//!
//! Why the `unsafe` here is sound: an intrinsic may run only where the CPU has its instructions. Tokens
//! ([`Avx2`], [`Avx512`]) are made by `detect` alone, which asks the CPU, and vectors ([`Double256`],
//! [`Double512`]) are made of a token or of other vectors alone. So wherever one of their methods
//! runs, the instructions exist. Loads and stores go through references to eight doubles and need no
//! alignment. (The methods carry no `target_feature` of their own: they are inlined into the
//! functions of `dispatch.rs` that do.)
#![allow(unsafe_code)]

use super::simd::{
    Cpu, LANES, Lanes, ROOT_HALF_BITS, ROUND, TWO_52_BIASED, TWO_52_BITS, Vector, polynomial,
};
use std::arch::x86_64::*;
use std::f64::consts::{LN_2, SQRT_2};
use std::ops::{Add, Div, Mul, Sub};

/// 1.0 has these bits.
const ONE: i64 = 1023 << 52;

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

/// Proof that the CPU has AVX-512F.
#[derive(Debug, Clone, Copy)]
pub struct Avx512(());

impl Avx512 {
    /// Asks the CPU.
    pub fn detect() -> Option<Avx512> {
        is_x86_feature_detected!("avx512f").then_some(Avx512(()))
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
