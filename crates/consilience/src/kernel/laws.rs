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

use super::functions::{exp2, exp2_of_negative, log, log1p, normal_tail, twice_artanh};
use super::simd::{Cpu, Vector};
use std::f64::consts::{LN_2, LOG2_E};

/// One panel's outcomes, and e^a.
#[derive(Clone, Copy)]
pub struct Outcomes<V> {
    pub count: V,
    pub total: V,
    pub dispersion: V,
}

/// A sum over panels: LINE·line − log(1 + product/base).
#[derive(Clone, Copy)]
pub struct Sum<V> {
    pub line: V,
    /// Π(1 + uᵢ) − 1: it keeps its relative accuracy where all uᵢ are tiny. Where the factors are quotients, that of the
    /// products of those above, less the product of those below, which is the base.
    pub product: V,
    pub base: V,
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
        Sum { line: cpu.splat(0.0), product: cpu.splat(0.0), base: cpu.splat(1.0) }
    }

    /// Its value. At most 1,000 factors, each at most 4, may be in the products.
    #[inline(always)]
    pub fn total<L: Law>(self) -> f64 {
        let mut u = (self.product / self.base).lanes();
        for half in [4, 2] {
            for lane in 0..half {
                u[lane] = both(u[lane], u[lane + half]);
            }
        }
        let line = self.line.sum() * L::LINE;
        // All of them may be too large for one number.
        let all = both(u[0], u[1]);
        if all == 0.0 {
            line
        } else if all < f64::INFINITY {
            line - libm::log1p(all)
        } else {
            line - libm::log1p(u[0]) - libm::log1p(u[1])
        }
    }
}

/// (1 + a)(1 + b) − 1.
#[inline(always)]
fn both(a: f64, b: f64) -> f64 {
    a + (a * b + b)
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
/// Probit rows that each stand for one observation, like [`LogisticOnes`].
#[derive(Clone, Copy)]
pub struct ProbitOnes;
/// Probit rows of any count.
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

/// 1/√2π.
const DENSITY_AT_0: f64 = 0.398_942_280_401_432_7;
/// √(½ log₂e): its multiple w of z has 2^(−w²) = e^(−z²/2).
const PROBIT_UNIT: f64 = 0.849_321_800_288_019_1;

/// |η| within reach of its square.
#[inline(always)]
fn distance<C: Cpu>(cpu: C, eta: C::V) -> C::V {
    cpu.splat(1e150).min(cpu.splat(0.0) - eta.neg_abs())
}

/// 1/M(z) − z for z ≥ 0, given 1/M(z). Far out 1/z − 2/z³ + … is lost to rounding, and so is taken from the series
/// of M: with t = 1/z², z·M = 1 − t·f, f = 1 − 3t + 15t² − …, it is z·t·f/(1 − t·f).
#[inline(always)]
pub(super) fn excess<C: Cpu>(cpu: C, z: C::V, inverse: C::V) -> C::V {
    let t = cpu.splat(1.0) / (z * z);
    let mut f = cpu.splat(0.0);
    for c in [2_027_025.0, 135_135.0, 10_395.0, 945.0, 105.0, 15.0, 3.0, 1.0] {
        f = cpu.splat(c) - t * f;
    }
    let far = (z * t * f) / (cpu.splat(1.0) - t * f);
    (z - cpu.splat(20.0)).pick(far, inverse - z)
}

/// Adds log Φ(η) of rows of count 1. Returns two numbers whose quotient 1/Φ(η) is above 0, e^(−η²/2), and k where below
/// 0 it is that quotient times e^(η²/2)·2ᵏ.
///
/// 1/Φ(η) is Q/(Q − e^(−η²/2)·P) above 0 and e^(η²/2)·Q/P below. Q and P lose their powers of two, so that factors are
/// between 1 and 4, and are not divided: products above and below the line are gathered side by side.
#[inline(always)]
fn probit_ones<C: Cpu>(cpu: C, w: C::V, sum: &mut Sum<C::V>) -> [C::V; 4] {
    let (zero, one) = (cpu.splat(0.0), cpu.splat(1.0));
    let distance = distance(cpu, w);
    let square = distance * distance;
    let density = exp2_of_negative(cpu, zero - square);
    let (above, below) = normal_tail(cpu, distance);
    let (k, q) = below.split();
    let (j, p) = above.split();
    let q = q + q;
    let lift = one - k;
    let tail = density * above.scale(lift);
    let power = (zero - lift) - j;
    sum.line = sum.line - w.pick(zero, square + power);
    let (under, apart) = (w.pick(q - tail, p), w.pick(tail, q - p));
    sum.product = sum.product.fma(q, sum.base * apart);
    sum.base = sum.base * under;
    [q, under, density, power]
}

impl Law for ProbitOnes {
    const UNIT: f64 = PROBIT_UNIT;
    const LINE: f64 = LN_2;

    #[inline(always)]
    fn value<C: Cpu>(cpu: C, eta: C::V, _: Outcomes<C::V>, sum: &mut Sum<C::V>) {
        probit_ones(cpu, eta, sum);
    }

    #[inline(always)]
    fn derive<C: Cpu>(cpu: C, eta: C::V, _: Outcomes<C::V>, sum: &mut Sum<C::V>) -> Slopes<C::V> {
        let [over, under, density, power] = probit_ones(cpu, eta, sum);
        let z = distance(cpu, eta) * cpu.splat(1.0 / PROBIT_UNIT);
        // φ/Φ, in which the density cancels below 0. It is above z there, which is all that is known of it far out.
        let quotient = over / under * cpu.splat(DENSITY_AT_0);
        let slope = eta.pick(quotient * density, quotient.scale(power).max(z));
        let bend = slope * eta.pick(z + slope, excess(cpu, z, slope));
        Slopes { slope, bend: cpu.splat(0.0) - bend, ..Slopes::zero(cpu) }
    }
}

/// log₂ Φ(−z) and log₂ Φ(z), then φ(z)/Φ(−z) and φ(z)/Φ(z), for z ≥ 0 in the unit of w.
#[inline(always)]
pub(super) fn normal_sides<C: Cpu>(cpu: C, w: C::V) -> (C::V, C::V, C::V, C::V) {
    let (one, to_2) = (cpu.splat(1.0), cpu.splat(LOG2_E));
    let (above, below) = normal_tail(cpu, w);
    let ratio = above / below;
    let square = w * w;
    let density = exp2_of_negative(cpu, cpu.splat(0.0) - square);
    let tail = density * ratio;
    let log_tail = log(cpu, ratio) * to_2 - square;
    let log_head = log1p(cpu, cpu.splat(0.0) - tail) * to_2;
    let unit = cpu.splat(DENSITY_AT_0);
    (log_tail, log_head, unit / ratio, unit * density / (one - tail))
}

impl Law for Probit {
    const UNIT: f64 = PROBIT_UNIT;
    const LINE: f64 = LN_2;

    #[inline(always)]
    fn value<C: Cpu>(cpu: C, eta: C::V, at: Outcomes<C::V>, sum: &mut Sum<C::V>) {
        let (log_tail, log_head, ..) = normal_sides(cpu, distance(cpu, eta));
        let (yes, no) = (at.total, at.count - at.total);
        sum.line = sum.line + (eta.pick(yes, no) * log_head + eta.pick(no, yes) * log_tail);
    }

    #[inline(always)]
    fn derive<C: Cpu>(cpu: C, eta: C::V, at: Outcomes<C::V>, sum: &mut Sum<C::V>) -> Slopes<C::V> {
        let zero = cpu.splat(0.0);
        let w = distance(cpu, eta);
        let z = w * cpu.splat(1.0 / PROBIT_UNIT);
        let (log_tail, log_head, in_tail, in_head) = normal_sides(cpu, w);
        let in_tail = in_tail.max(z);
        let (yes, no) = (at.total, at.count - at.total);
        // Those whose outcome is on η's side of 0, and those on the other.
        let (with, against) = (eta.pick(yes, no), eta.pick(no, yes));
        sum.line = sum.line + (with * log_head + against * log_tail);
        let slope = with * in_head - against * in_tail;
        let excess = excess(cpu, z, in_tail);
        let bend = zero - with * in_head * (z + in_head) - against * in_tail * excess;
        Slopes { slope: eta.pick(slope, zero - slope), bend, ..Slopes::zero(cpu) }
    }
}
