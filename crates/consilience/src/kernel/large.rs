//! The laws of counts of any size.
//!
//! With counts of 10¹⁵ the terms t·η and c·e^η are 10¹⁷ and their difference is asked for to 10⁻³. So a row's
//! log-likelihood is taken relative to its largest possible value, that at the mean ȳ = t/c, which is a constant
//! for the Poisson and a function of a for the negative binomial (`math::counts`). With δ = η − log ȳ it is
//!
//! ```text
//! poisson             −t·(e^δ − 1 − δ)
//! negative binomial   −c·e^a·A − t·B,   A = log(1 + q(e^δ − 1)),   B = log(1 + p(e^−δ − 1)) = A − δ
//! ```
//!
//! where q = ȳ/(ȳ + e^a) and p = 1 − q. Of A and B the one with the smaller of p and q is computed, the other
//! follows without loss. Rounding is relative to t·δ, which is about √t where the likelihood matters.

use super::functions::{exp2_less_1, log, log1p};
use super::laws::{Law, Outcomes, Slopes, Sum};
use super::simd::{Cpu, Vector};
use std::f64::consts::{LN_2, LOG2_E};

/// Poisson rows, large counts among them; η is δ.
#[derive(Clone, Copy)]
pub struct LargePoisson;
/// Negative binomial rows, large counts among them; η is δ.
#[derive(Clone, Copy)]
pub struct LargeNegativeBinomial;

/// 2ᵈ − 1 and d, which ends where products of powers and counts would not be finite. What is no number
/// stays so.
#[inline(always)]
fn rise<C: Cpu>(cpu: C, d: C::V) -> (C::V, C::V) {
    let d = cpu.splat(900.0).min(d);
    (exp2_less_1(cpu, cpu.splat(-1021.0).max(d)), d)
}

impl Law for LargePoisson {
    const UNIT: f64 = LOG2_E;
    const LINE: f64 = 1.0;

    #[inline(always)]
    fn value<C: Cpu>(cpu: C, eta: C::V, at: Outcomes<C::V>, sum: &mut Sum<C::V>) {
        let (rise, d) = rise(cpu, eta);
        sum.line = sum.line - at.total * (rise - d * cpu.splat(LN_2));
    }

    #[inline(always)]
    fn derive<C: Cpu>(cpu: C, eta: C::V, at: Outcomes<C::V>, sum: &mut Sum<C::V>) -> Slopes<C::V> {
        let (rise, d) = rise(cpu, eta);
        sum.line = sum.line - at.total * (rise - d * cpu.splat(LN_2));
        let slope = cpu.splat(0.0) - at.total * rise;
        Slopes { slope, bend: slope - at.total, ..Slopes::zero(cpu) }
    }
}

/// What value and derivatives share.
struct Sides<V> {
    /// ≥ 0 where q is the smaller share.
    q_is_small: V,
    small: V,
    large: V,
    /// (smaller share)·(e^±δ − 1).
    u: V,
    /// c·e^a·A.
    own: V,
    /// c·e^a.
    no: V,
}

/// Adds a panel's log-likelihood to the line.
#[inline(always)]
fn sides<C: Cpu>(cpu: C, eta: C::V, at: Outcomes<C::V>, sum: &mut Sum<C::V>) -> Sides<C::V> {
    let (zero, one) = (cpu.splat(0.0), cpu.splat(1.0));
    // Infinity minus infinity would not be a number.
    let delta = cpu.splat(1e300).min(cpu.splat(-1e300).max(eta));
    let no = at.count * at.dispersion;
    let all = at.total + no;
    let (q, p) = (at.total / all, no / all);
    let q_is_small = p - q;
    let (small, large) = (q_is_small.pick(q, p), q_is_small.pick(p, q));
    let d = q_is_small.pick(delta, zero - delta);
    let (rise, bounded) = rise(cpu, d);
    let u = small * rise;
    let unit = cpu.splat(LN_2);
    // Near: log(1 + u) itself. Far above: d + log(small + large·e^−d).
    let near = log1p(cpu, one.min(u));
    let beyond = log(cpu, small + large / (one + rise));
    let far = u - one;
    let inner = far.pick(d * unit + beyond, near);
    let outer = far.pick(beyond, near - bounded * unit);
    let (a, b) = (q_is_small.pick(inner, outer), q_is_small.pick(outer, inner));
    let own = no * a;
    sum.line = sum.line - (own + at.total * b);
    Sides { q_is_small, small, large, u, own, no }
}

impl Law for LargeNegativeBinomial {
    const UNIT: f64 = LOG2_E;
    const LINE: f64 = 1.0;

    #[inline(always)]
    fn value<C: Cpu>(cpu: C, eta: C::V, at: Outcomes<C::V>, sum: &mut Sum<C::V>) {
        sides(cpu, eta, at, sum);
    }

    #[inline(always)]
    fn derive<C: Cpu>(cpu: C, eta: C::V, at: Outcomes<C::V>, sum: &mut Sum<C::V>) -> Slopes<C::V> {
        let zero = cpu.splat(0.0);
        let Sides { q_is_small, small, large, u, own, no } = sides(cpu, eta, at, sum);
        // The shares of the mean μ and of e^a in their sum.
        let inverse = cpu.splat(1.0) / (cpu.splat(1.0) + u);
        let (with, against) = ((small + u) * inverse, large * inverse);
        let mean_share = q_is_small.pick(with, against);
        let part = u * inverse;
        let slope = q_is_small.pick(zero - no * part, at.total * part);
        let all = at.total + no;
        let own_slope = zero - own - slope;
        Slopes {
            slope,
            bend: zero - all * (with * against),
            cross: slope * mean_share,
            own_slope,
            own_bend: own_slope + slope * (slope / all),
        }
    }
}
