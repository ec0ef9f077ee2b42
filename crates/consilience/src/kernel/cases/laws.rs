//! Laws of whole numbers of their own: Student's t, gamma, beta, and Poisson counts of 0.

use super::super::functions::{exp2, exp2_less_1, exp2_of_negative, log, log_of_1_and, log1p};
use super::super::simd::{Cpu, Vector, polynomial};
use super::{CaseLaw, Found, LawParts, Outcome, Own};
use std::f64::consts::LOG2_E;

/// Student's t: −(ν + 1)/2·log(1 + r²/ν), r = (y − η)/σ.
#[derive(Clone, Copy)]
pub(super) struct StudentT;
/// Gamma: −α·(e^−δ − 1 + δ), δ = η − log ȳ.
#[derive(Clone, Copy)]
pub(super) struct Gamma;
/// Beta: φ·[μ(y − log μ) + (1 − μ)(z − log(1 − μ))] + ½ log(φμ(1 − μ)/2π) − ρ(φμ) − ρ(φ(1 − μ)), where ρ is what
/// Stirling's formula leaves of log Γ: so nothing large cancels however large φ is. ρ(φ) is added elsewhere.
#[derive(Clone, Copy)]
pub(super) struct Beta;
/// A Poisson count of 0, or a 0 anyway: −μ + log(1 + e^(a + μ)), μ = e^η. What all rows have of π is added elsewhere.
#[derive(Clone, Copy)]
pub(super) struct ZeroInflated;

/// The logarithms of own parameters that are told apart.
const LOGS: f64 = 300.0;

fn exp_of(a: f64) -> f64 {
    libm::exp(a.clamp(-LOGS, LOGS))
}

/// (y − η)/σ within reach of its square.
#[inline(always)]
fn residual<C: Cpu>(cpu: C, eta: C::V, y: C::V, inverse_sd: C::V) -> C::V {
    cpu.splat(1e150).min(cpu.splat(-1e150).max((y - eta) * inverse_sd))
}

/// r²/ν within reach of 1 + r²/ν.
#[inline(always)]
fn squared_over<C: Cpu>(cpu: C, r: C::V, inverse_df: C::V) -> C::V {
    cpu.splat(1e300).min(r * r * inverse_df)
}

impl CaseLaw for StudentT {
    /// 1/σ, ν and 1/ν.
    fn prepare([a, b]: [f64; 2]) -> Own {
        let df = exp_of(b);
        [exp_of(-a), df, 1.0 / df, 0.0]
    }

    #[inline(always)]
    fn parts<C: Cpu>(cpu: C, eta: C::V, at: Outcome<C::V>, own: &[C::V; 4]) -> LawParts<C::V> {
        let [inverse_sd, df, inverse_df, _] = *own;
        let r = residual(cpu, eta, at.y, inverse_sd);
        let half = (df + cpu.splat(1.0)) * cpu.splat(-0.5);
        LawParts::line(cpu, half * log_of_1_and(cpu, squared_over(cpu, r, inverse_df)))
    }

    #[inline(always)]
    fn derive<C: Cpu>(cpu: C, eta: C::V, at: Outcome<C::V>, own: &[C::V; 4]) -> Found<C::V> {
        let [inverse_sd, df, inverse_df, _] = *own;
        let (one, two, half) = (cpu.splat(1.0), cpu.splat(2.0), cpu.splat(0.5));
        let zero = cpu.splat(0.0);
        let r = residual(cpu, eta, at.y, inverse_sd);
        let q = squared_over(cpu, r, inverse_df);
        let log = log_of_1_and(cpu, q);
        let t = one / (one + q);
        // q/(1 + q), which at most is 1.
        let share = q * t;
        let more = df + one;
        let (kappa, bent) = (one + inverse_df, more * share * t);
        let pull = kappa * r * t * inverse_sd;
        let half_log = half * df * log;
        Found {
            value: zero - half * more * log,
            slope: pull,
            bend: zero - kappa * inverse_sd * inverse_sd * t * (one - two * share),
            cross: [zero - two * pull * t, r * t * inverse_sd * (kappa * share - inverse_df)],
            own: [more * share, half * more * share - half_log],
            own_bend: [zero - two * bent, df * share - bent, df * share - half * bent - half_log],
        }
    }
}

impl CaseLaw for Gamma {
    /// α.
    fn prepare([a, _]: [f64; 2]) -> Own {
        [exp_of(a), 0.0, 0.0, 0.0]
    }

    #[inline(always)]
    fn parts<C: Cpu>(cpu: C, eta: C::V, at: Outcome<C::V>, own: &[C::V; 4]) -> LawParts<C::V> {
        let (delta, rise) = relative(cpu, eta, at.y);
        LawParts::line(cpu, cpu.splat(0.0) - own[0] * (rise + delta))
    }

    #[inline(always)]
    fn derive<C: Cpu>(cpu: C, eta: C::V, at: Outcome<C::V>, own: &[C::V; 4]) -> Found<C::V> {
        let zero = cpu.splat(0.0);
        let (delta, rise) = relative(cpu, eta, at.y);
        let value = zero - own[0] * (rise + delta);
        let slope = own[0] * rise;
        Found {
            value,
            slope,
            bend: zero - own[0] - slope,
            cross: [slope, zero],
            own: [value, zero],
            own_bend: [value, zero, zero],
        }
    }
}

/// δ = η − y within reach, and e^−δ − 1.
#[inline(always)]
fn relative<C: Cpu>(cpu: C, eta: C::V, y: C::V) -> (C::V, C::V) {
    let delta = cpu.splat(1e100).min(cpu.splat(-600.0).max(eta - y));
    let power = cpu.splat(-1000.0).max(delta * cpu.splat(-LOG2_E));
    (delta, exp2_less_1(cpu, power))
}

/// From here on Stirling's series is right.
const SERIES: f64 = 9.0;
/// Terms of Stirling's series for ρ(x)·x, xρ'(x)·x and x²ρ''(x)·x in 1/x².
const RHO: [f64; 7] = [
    1.0 / 12.0,
    -1.0 / 360.0,
    1.0 / 1260.0,
    -1.0 / 1680.0,
    1.0 / 1188.0,
    -691.0 / 360_360.0,
    1.0 / 156.0,
];
const RHO_1: [f64; 7] = {
    let mut c = RHO;
    let mut k = 0;
    while k < c.len() {
        c[k] *= -(2.0 * k as f64 + 1.0);
        k += 1;
    }
    c
};
const RHO_2: [f64; 7] = {
    let mut c = RHO;
    let mut k = 0;
    while k < c.len() {
        c[k] *= (2.0 * k as f64 + 1.0) * (2.0 * k as f64 + 2.0);
        k += 1;
    }
    c
};

/// ½ log x − ρ(x), where ρ(x) = log Γ(x) − (x − ½) log x + x − ½ log 2π, for x > 0.
///
/// Below 9 it goes by Γ(x) = Γ(x + 8)/(x(x + 1)…(x + 7)).
#[derive(Clone, Copy)]
struct Stirling<V> {
    /// Without the logarithm of the product.
    value: V,
    /// (x + 1)…(x + 7), or 1: several products share one logarithm.
    product: V,
    /// x times the first and x² times the second derivative of all of it, if they are wanted.
    first: V,
    second: V,
}

/// That of x, whose logarithm is known. Both parts are large near 0, their difference is not.
#[inline(always)]
fn stirling<C: Cpu, const DERIVE: bool>(cpu: C, x: C::V, log_x: C::V) -> Stirling<C::V> {
    let (zero, one, half) = (cpu.splat(0.0), cpu.splat(1.0), cpu.splat(0.5));
    let is_far = x - cpu.splat(SERIES);
    let low = cpu.splat(SERIES).min(x);
    // The product without x itself, which is taken apart: it may be tiny.
    let (mut product, mut first, mut second) = (one, zero, zero);
    for k in 1..8 {
        let factor = low + cpu.splat(f64::from(k));
        if DERIVE {
            second = second.fma(factor, first + first);
            first = first.fma(factor, product);
        }
        product = product * factor;
    }
    let shifted = is_far.pick(x, low + cpu.splat(8.0));
    let inverse = one / shifted;
    let square = inverse * inverse;
    let rho = polynomial(cpu, &RHO, square) * inverse;
    // Far from 0 nothing else is needed than log x.
    let log_shifted = log(cpu, shifted);
    // ½ log x − log Γ(x) + (x − ½) log x − x + ½ log 2π with log Γ(x) by the shifted one.
    let moved = x * log_x + log_x - (shifted - half) * log_shifted + cpu.splat(8.0) - rho;
    let value = is_far.pick(half * log_x - rho, moved);
    let taken = is_far.pick(one, product);
    if !DERIVE {
        return Stirling { value, product: taken, first: zero, second: zero };
    }
    let rho_1 = polynomial(cpu, &RHO_1, square) * inverse;
    let rho_2 = polynomial(cpu, &RHO_2, square) * inverse;
    // ψ(s) = log s − 1/2s + ρ'(s) and ψ'(s) = 1/s + 1/2s² + ρ''(s) of the shifted number.
    let psi = log_shifted + (rho_1 - half) * inverse;
    let psi_1 = inverse + (rho_2 + half) * square;
    let over = one / product;
    let sum = first * over;
    let squares = sum * sum - second * over;
    // Of x log x + log x + log Π − log Γ(s) − x + …: x times the first, x² times the second derivative.
    let moved_1 = x * (log_x - psi + sum) + one;
    let moved_2 = x - one - x * x * (psi_1 + squares);
    Stirling {
        value,
        product: taken,
        first: is_far.pick(half - rho_1, moved_1),
        second: is_far.pick(zero - half - rho_2, moved_2),
    }
}

/// ½ log 2π.
const HALF_LOG_2PI: f64 = 0.918_938_533_204_672_7;

/// μ and 1 − μ, and their logarithms.
#[inline(always)]
fn shares<C: Cpu>(cpu: C, eta: C::V) -> [C::V; 4] {
    let (zero, one) = (cpu.splat(0.0), cpu.splat(1.0));
    // Beyond, shares of a precision would be no normal numbers.
    let eta = cpu.splat(300.0).min(cpu.splat(-300.0).max(eta));
    let e = exp2_of_negative(cpu, eta.neg_abs() * cpu.splat(LOG2_E));
    let large = one / (one + e);
    let small = e * large;
    let log_large = zero - log1p(cpu, e);
    let log_small = log_large + eta.neg_abs();
    [
        eta.pick(large, small),
        eta.pick(small, large),
        eta.pick(log_large, log_small),
        eta.pick(log_small, log_large),
    ]
}

/// What a beta's log-likelihood is made of.
struct BetaParts<V> {
    parts: LawParts<V>,
    misfit: V,
    /// μ and 1 − μ, and of each what its log gamma adds.
    shares: [V; 2],
    sides: [Stirling<V>; 2],
    /// y's logarithms less those of the shares.
    apart: [V; 2],
}

#[inline(always)]
fn beta_parts<C: Cpu, const DERIVE: bool>(
    cpu: C,
    eta: C::V,
    at: Outcome<C::V>,
    own: &[C::V; 4],
) -> BetaParts<C::V> {
    let [mean, rest, log_mean, log_rest] = shares(cpu, eta);
    let log_precision = own[1] + own[1];
    let p = stirling::<C, DERIVE>(cpu, own[0] * mean, log_precision + log_mean);
    let q = stirling::<C, DERIVE>(cpu, own[0] * rest, log_precision + log_rest);
    let sides = p.value + q.value;
    let apart = [at.y - log_mean, at.z - log_rest];
    let misfit = mean * apart[0] + rest * apart[1];
    let line = own[0].fma(misfit, sides - (own[1] + cpu.splat(HALF_LOG_2PI)));
    let parts = LawParts { over: p.product * q.product, ..LawParts::line(cpu, line) };
    BetaParts { parts, misfit, shares: [mean, rest], sides: [p, q], apart }
}

impl CaseLaw for Beta {
    const FACTORS: [bool; 2] = [true, false];

    /// φ and ½ log φ.
    fn prepare([a, _]: [f64; 2]) -> Own {
        [exp_of(a), 0.5 * a.clamp(-LOGS, LOGS), 0.0, 0.0]
    }

    #[inline(always)]
    fn parts<C: Cpu>(cpu: C, eta: C::V, at: Outcome<C::V>, own: &[C::V; 4]) -> LawParts<C::V> {
        beta_parts::<C, false>(cpu, eta, at, own).parts
    }

    #[inline(always)]
    fn derive<C: Cpu>(cpu: C, eta: C::V, at: Outcome<C::V>, own: &[C::V; 4]) -> Found<C::V> {
        let zero = cpu.splat(0.0);
        let (df, half) = (own[0], cpu.splat(0.5));
        let parts = beta_parts::<C, true>(cpu, eta, at, own);
        let BetaParts { parts, misfit, shares: [mean, rest], sides: [p, q], apart } = parts;
        let (p1, p2, q1, q2) = (p.first, p.second, q.first, q.second);
        // dμ/dη = μ(1 − μ); the misfit's own derivative in μ is the difference of its two parts.
        let spread = mean * rest;
        let apart = apart[0] - apart[1];
        let turn = rest - mean;
        let slope = df * spread * apart + rest * p1 - mean * q1;
        let bend = df * spread * (turn * apart - cpu.splat(1.0)) - spread * (p1 + q1)
            + rest * rest * (p2 + p1)
            + mean * mean * (q2 + q1);
        let cross = df * spread * apart + rest * (p2 + p1) - mean * (q2 + q1);
        let own_slope = df * misfit + p1 + q1 - half;
        Found {
            value: parts.line + log(cpu, parts.over),
            slope,
            bend,
            cross: [cross, zero],
            own: [own_slope, zero],
            own_bend: [df * misfit + p1 + p2 + q1 + q2, zero, zero],
        }
    }
}

impl CaseLaw for ZeroInflated {
    const FACTORS: [bool; 2] = [true, false];

    /// log(π/(1 − π)).
    fn prepare([a, _]: [f64; 2]) -> Own {
        [a.clamp(-LOGS, LOGS), 0.0, 0.0, 0.0]
    }

    #[inline(always)]
    fn parts<C: Cpu>(cpu: C, eta: C::V, _: Outcome<C::V>, own: &[C::V; 4]) -> LawParts<C::V> {
        let (zero, mean) = (cpu.splat(0.0), exp(cpu, eta));
        let w = own[0] + mean;
        let e = exp2_of_negative(cpu, w.neg_abs() * cpu.splat(LOG2_E));
        // Where w is above 0, −μ + w is a, however large μ is. What is no number stays so.
        let line = w.fma(zero, w.pick(own[0], zero - mean));
        LawParts { over: cpu.splat(1.0) + e, ..LawParts::line(cpu, line) }
    }

    #[inline(always)]
    fn derive<C: Cpu>(cpu: C, eta: C::V, _: Outcome<C::V>, own: &[C::V; 4]) -> Found<C::V> {
        let (zero, one) = (cpu.splat(0.0), cpu.splat(1.0));
        let mean = exp(cpu, eta);
        let w = own[0] + mean;
        let e = exp2_of_negative(cpu, w.neg_abs() * cpu.splat(LOG2_E));
        let large = one / (one + e);
        let small = e * large;
        // The chance that it is a 0 anyway, and that it is not.
        let (anyway, counted) = (w.pick(large, small), w.pick(small, large));
        let both = anyway * counted;
        let slope = zero - mean * counted;
        let cross = mean * both;
        Found {
            value: w.pick(own[0], zero - mean) + log1p(cpu, e),
            slope,
            bend: slope + mean * cross,
            cross: [cross, zero],
            own: [anyway, zero],
            own_bend: [both, zero, zero],
        }
    }
}

/// e^x; what is beyond 10¹⁴⁴ counts as that.
#[inline(always)]
fn exp<C: Cpu>(cpu: C, x: C::V) -> C::V {
    exp2(cpu, cpu.splat(480.0).min(x * cpu.splat(LOG2_E)))
}
