//! The families' log-likelihoods of one panel of rows, with derivatives.
//!
//! Given the linear predictor η, count c and total t, a row's log-likelihood is, up to terms in which
//! neither η nor a occurs,
//!
//! ```text
//! logistic            −t·log(1 + e^−η) − (c − t)·log(1 + e^η)
//! probit              t·log Φ(η) + (c − t)·log Φ(−η)
//! poisson             t·η − c·e^η
//! negative binomial   t·a − t·log(1 + e^−w) − c·e^a·log(1 + e^w),   w = η − a,   a = log_dispersion
//! ```
//!
//! so that merging equal rows is exact. Written so, no large numbers cancel in the logistic, probit and
//! negative binomial ones. The terms t·η and t·a are sums that are known beforehand; `Rows` adds them.
//! Where counts are so large that what `Rows` adds would cancel, the laws of `large.rs` are taken.

use super::functions::{exp2, exp2_of_negative, log, log1p, mills, twice_artanh};
use super::simd::{Cpu, Vector};
use std::f64::consts::{LN_2, LOG2_E};

/// One panel's outcomes, and e^a.
#[derive(Clone, Copy)]
pub struct Outcomes<V> {
    pub count: V,
    pub total: V,
    pub dispersion: V,
}

/// A sum over panels: LINE·line − log(1 + product).
#[derive(Clone, Copy)]
pub struct Sum<V> {
    pub line: V,
    /// Π(1 + uᵢ) − 1: it keeps its relative accuracy where all uᵢ are tiny.
    pub product: V,
}

/// Derivatives of one panel's log-likelihoods: in η, and in a where the family has it. The terms
/// t·η and t·a are included.
#[derive(Clone, Copy)]
pub struct Slopes<V> {
    pub slope: V,
    pub bend: V,
    /// ∂²/∂η∂a.
    pub cross: V,
    pub own_slope: V,
    pub own_bend: V,
}

impl<V: Vector> Sum<V> {
    #[inline(always)]
    pub fn zero<C: Cpu<V = V>>(cpu: C) -> Sum<V> {
        Sum { line: cpu.splat(0.0), product: cpu.splat(0.0) }
    }

    /// Its value. At most 1,000 factors, each at most 2, may be in the product.
    #[inline(always)]
    pub fn total<L: Law>(self) -> f64 {
        let mut u = self.product.lanes();
        for half in [4, 2, 1] {
            for lane in 0..half {
                let (a, b) = (u[lane], u[lane + half]);
                u[lane] = a + (a * b + b);
            }
        }
        let line = self.line.sum() * L::LINE;
        if u[0] == 0.0 { line } else { line - libm::log1p(u[0]) }
    }
}

/// A family, or a special case of one.
pub trait Law: Copy {
    /// Predictors are handed in multiplied by this: log₂e makes them exponents of two.
    const UNIT: f64;
    /// What the sum's line is multiplied by in the end.
    const LINE: f64;

    /// Adds a panel's log-likelihood to the sum.
    fn value<C: Cpu>(cpu: C, eta: C::V, at: Outcomes<C::V>, sum: &mut Sum<C::V>);

    /// The same, with derivatives.
    fn derive<C: Cpu>(cpu: C, eta: C::V, at: Outcomes<C::V>, sum: &mut Sum<C::V>) -> Slopes<C::V>;
}

/// Logistic rows that each stand for one observation: they share one logarithm. η is multiplied by
/// the outcome's sign, and the slope is that in this product.
#[derive(Clone, Copy)]
pub struct LogisticOnes;
/// Logistic rows of any count.
#[derive(Clone, Copy)]
pub struct Logistic;
#[derive(Clone, Copy)]
pub struct NegativeBinomial;
#[derive(Clone, Copy)]
pub struct Poisson;
#[derive(Clone, Copy)]
pub struct Probit;

impl Law for LogisticOnes {
    const UNIT: f64 = LOG2_E;
    const LINE: f64 = LN_2;

    #[inline(always)]
    fn value<C: Cpu>(cpu: C, eta: C::V, _: Outcomes<C::V>, sum: &mut Sum<C::V>) {
        ones(cpu, eta, sum);
    }

    #[inline(always)]
    fn derive<C: Cpu>(cpu: C, eta: C::V, _: Outcomes<C::V>, sum: &mut Sum<C::V>) -> Slopes<C::V> {
        let e = ones(cpu, eta, sum);
        let large = cpu.splat(1.0) / (cpu.splat(1.0) + e);
        let small = e * large;
        let bend = cpu.splat(0.0) - small * large;
        Slopes { slope: eta.pick(small, large), bend, ..Slopes::zero(cpu) }
    }
}

/// Adds rows of count 1. Returns e^−|η|.
#[inline(always)]
fn ones<C: Cpu>(cpu: C, eta: C::V, sum: &mut Sum<C::V>) -> C::V {
    sum.line = sum.line + cpu.splat(0.0).min(eta);
    let e = exp2_of_negative(cpu, eta.neg_abs());
    sum.product = sum.product + sum.product.fma(e, e);
    e
}

/// −yes·log(1 + e^−w) − no·log(1 + e^w), with w in powers of two, added to the line. With SLOPES
/// returns σ(w) and σ(−w), neither by subtraction, and log(1 + e^w).
#[inline(always)]
fn two_sided<C: Cpu, const SLOPES: bool>(
    cpu: C,
    w: C::V,
    yes: C::V,
    no: C::V,
    sum: &mut Sum<C::V>,
) -> (C::V, C::V, C::V) {
    let zero = cpu.splat(0.0);
    // Infinity times no outcomes would not be a number.
    let far = cpu.splat(1e300).min(cpu.splat(-1e300).max(w));
    let (above, below) = (zero.max(far), zero.min(far));
    let e = exp2_of_negative(cpu, w.neg_abs());
    // One division serves 1/(1 + e) and e/(2 + e).
    let (one, two) = (cpu.splat(1.0) + e, cpu.splat(2.0) + e);
    let (s, large) = if SLOPES {
        let both = cpu.splat(1.0) / (one * two);
        (e * (one * both), two * both)
    } else {
        (e / two, one)
    };
    let rest = twice_artanh(cpu, s) * cpu.splat(LOG2_E);
    sum.line = yes.fma(below, sum.line) - (yes + no).fma(rest, no * above);
    let small = e * large;
    (w.pick(large, small), w.pick(small, large), (above + rest) * cpu.splat(LN_2))
}

impl<V: Vector> Slopes<V> {
    #[inline(always)]
    pub(super) fn zero<C: Cpu<V = V>>(cpu: C) -> Slopes<V> {
        let zero = cpu.splat(0.0);
        Slopes { slope: zero, bend: zero, cross: zero, own_slope: zero, own_bend: zero }
    }
}

impl Law for Logistic {
    const UNIT: f64 = LOG2_E;
    const LINE: f64 = LN_2;

    #[inline(always)]
    fn value<C: Cpu>(cpu: C, eta: C::V, at: Outcomes<C::V>, sum: &mut Sum<C::V>) {
        two_sided::<C, false>(cpu, eta, at.total, at.count - at.total, sum);
    }

    #[inline(always)]
    fn derive<C: Cpu>(cpu: C, eta: C::V, at: Outcomes<C::V>, sum: &mut Sum<C::V>) -> Slopes<C::V> {
        let (yes, no) = (at.total, at.count - at.total);
        let (p, q, _) = two_sided::<C, true>(cpu, eta, yes, no, sum);
        let bend = cpu.splat(0.0) - at.count * (p * q);
        Slopes { slope: yes * q - no * p, bend, ..Slopes::zero(cpu) }
    }
}

impl Law for NegativeBinomial {
    const UNIT: f64 = LOG2_E;
    const LINE: f64 = LN_2;

    #[inline(always)]
    fn value<C: Cpu>(cpu: C, eta: C::V, at: Outcomes<C::V>, sum: &mut Sum<C::V>) {
        two_sided::<C, false>(cpu, eta, at.total, at.count * at.dispersion, sum);
    }

    #[inline(always)]
    fn derive<C: Cpu>(cpu: C, eta: C::V, at: Outcomes<C::V>, sum: &mut Sum<C::V>) -> Slopes<C::V> {
        let (yes, no) = (at.total, at.count * at.dispersion);
        let (p, q, softplus) = two_sided::<C, true>(cpu, eta, yes, no, sum);
        let slope = yes * q - no * p;
        let (npq, np) = ((yes + no) * (p * q), no * p);
        // In a both e^a and w = η − a move.
        let own = no * softplus;
        Slopes {
            slope,
            bend: cpu.splat(0.0) - npq,
            cross: npq - np,
            own_slope: at.total - slope - own,
            own_bend: np + np - own - npq,
        }
    }
}

impl Law for Poisson {
    const UNIT: f64 = LOG2_E;
    const LINE: f64 = 1.0;

    #[inline(always)]
    fn value<C: Cpu>(cpu: C, eta: C::V, at: Outcomes<C::V>, sum: &mut Sum<C::V>) {
        sum.line = sum.line - at.count * exp2(cpu, eta);
    }

    #[inline(always)]
    fn derive<C: Cpu>(cpu: C, eta: C::V, at: Outcomes<C::V>, sum: &mut Sum<C::V>) -> Slopes<C::V> {
        let mean = at.count * exp2(cpu, eta);
        sum.line = sum.line - mean;
        Slopes { slope: at.total - mean, bend: cpu.splat(0.0) - mean, ..Slopes::zero(cpu) }
    }
}

/// log √2π.
const LOG_ROOT_2PI: f64 = 0.918_938_533_204_672_8;
/// 1/√2π.
const DENSITY_AT_0: f64 = 0.398_942_280_401_432_7;

/// log Φ(−z) and log Φ(z), then φ(z)/Φ(−z) and φ(z)/Φ(z), for z ≥ 0.
#[inline(always)]
fn normal_sides<C: Cpu>(cpu: C, z: C::V) -> (C::V, C::V, C::V, C::V) {
    let one = cpu.splat(1.0);
    let ratio = mills(cpu, z);
    let half_square = z * z * cpu.splat(0.5);
    let density = exp2_of_negative(cpu, half_square * cpu.splat(-LOG2_E)) * cpu.splat(DENSITY_AT_0);
    let tail = density * ratio;
    let log_tail = log(cpu, ratio) - half_square - cpu.splat(LOG_ROOT_2PI);
    let log_head = log1p(cpu, cpu.splat(0.0) - tail);
    (log_tail, log_head, one / ratio, density / (one - tail))
}

/// |η| within reach of its square.
#[inline(always)]
fn distance<C: Cpu>(cpu: C, eta: C::V) -> C::V {
    cpu.splat(1e150).min(cpu.splat(0.0) - eta.neg_abs())
}

impl Law for Probit {
    const UNIT: f64 = 1.0;
    const LINE: f64 = 1.0;

    #[inline(always)]
    fn value<C: Cpu>(cpu: C, eta: C::V, at: Outcomes<C::V>, sum: &mut Sum<C::V>) {
        let (log_tail, log_head, ..) = normal_sides(cpu, distance(cpu, eta));
        let (yes, no) = (at.total, at.count - at.total);
        sum.line = sum.line + (eta.pick(yes, no) * log_head + eta.pick(no, yes) * log_tail);
    }

    #[inline(always)]
    fn derive<C: Cpu>(cpu: C, eta: C::V, at: Outcomes<C::V>, sum: &mut Sum<C::V>) -> Slopes<C::V> {
        let zero = cpu.splat(0.0);
        let z = distance(cpu, eta);
        let (log_tail, log_head, in_tail, in_head) = normal_sides(cpu, z);
        let (yes, no) = (at.total, at.count - at.total);
        // Those whose outcome is on η's side of 0, and those on the other.
        let (with, against) = (eta.pick(yes, no), eta.pick(no, yes));
        sum.line = sum.line + (with * log_head + against * log_tail);
        let slope = with * in_head - against * in_tail;
        // Far out 1/M(z) − z = 1/z − 2/z³ + … is lost to rounding, and so is taken from the series of
        // M: with t = 1/z², z·M = 1 − t·f, f = 1 − 3t + 15t² − …, it is z·t·f/(1 − t·f).
        let t = cpu.splat(1.0) / (z * z);
        let mut f = zero;
        for c in [2_027_025.0, 135_135.0, 10_395.0, 945.0, 105.0, 15.0, 3.0, 1.0] {
            f = cpu.splat(c) - t * f;
        }
        let far = (z * t * f) / (cpu.splat(1.0) - t * f);
        let excess = (z - cpu.splat(20.0)).pick(far, in_tail - z);
        let bend = zero - with * in_head * (z + in_head) - against * in_tail * excess;
        Slopes { slope: eta.pick(slope, zero - slope), bend, ..Slopes::zero(cpu) }
    }
}
