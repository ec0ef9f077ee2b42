//! Rows of which it is known between which bounds a number lies: censored times, and classes between cutpoints.
//!
//! With F a distribution function, a row's likelihood is F(u) − F(l), F(u), 1 − F(l) or the density at u. Of times, u
//! is (y − η)·s, where s is a scale of which a own parameter is the logarithm; of classes it is a cutpoint less η.

use super::super::functions::{exp2, exp2_less_1, exp2_of_negative, log, log1p, normal_tail};
use super::super::laws::{excess, normal_sides};
use super::super::simd::{Cpu, Vector};
use super::{CaseLaw, Found, LawParts, Outcome, Own};
use std::f64::consts::{LN_2, LOG2_E};
use std::marker::PhantomData;

/// A log-likelihood and its first two derivatives.
type Curve<V> = [V; 3];

/// log(F(u) − F(l)) with its derivatives. Those in a common shift of u and l are not left to sums, which would cancel
/// where the bounds are near each other.
#[derive(Clone, Copy)]
pub(super) struct Span<V> {
    /// The log-likelihood is line + log(over/under).
    line: V,
    over: V,
    under: V,
    in_u: V,
    in_l: V,
    uu: V,
    ul: V,
    ll: V,
    shift: V,
    shift_bend: V,
}

/// A distribution over the whole line.
pub(super) trait Distribution: Copy {
    /// 1 where the own parameter is log s, −1 where it is −log s.
    const SIGN: f64;
    /// Whether chances have factors over and under the line: of F(u), and between two bounds.
    const FACTORS: [bool; 2];
    const FACTORS_BETWEEN: [bool; 2] = [true, false];
    /// Of F(u), which is that of 1 − F(−u) where the distribution is the same on both sides.
    fn parts_below<C: Cpu>(cpu: C, u: C::V) -> LawParts<C::V>;
    /// Of 1 − F(l).
    #[inline(always)]
    fn parts_above<C: Cpu>(cpu: C, l: C::V) -> LawParts<C::V> {
        Self::parts_below(cpu, cpu.splat(0.0) - l)
    }
    /// Of what is between two bounds. The last number is what [`Distribution::of_gap`] says where all rows have the same gap.
    #[inline(always)]
    fn parts_between<C: Cpu>(cpu: C, l: C::V, gap: C::V, _: C::V) -> LawParts<C::V> {
        let span = Self::between(cpu, l, gap);
        LawParts { line: span.line, over: span.over, under: span.under }
    }
    /// What the log-likelihood between two cutpoints has of their distance alone, if it is taken apart.
    fn of_gap(_: f64) -> f64 {
        0.0
    }
    /// log F(u).
    fn below<C: Cpu>(cpu: C, u: C::V) -> Curve<C::V>;
    /// log(1 − F(l)).
    fn above<C: Cpu>(cpu: C, l: C::V) -> Curve<C::V>;
    /// The logarithm of the density, without constants.
    fn density<C: Cpu>(cpu: C, u: C::V) -> Curve<C::V>;
    /// log(F(l + gap) − F(l)).
    fn between<C: Cpu>(cpu: C, l: C::V, gap: C::V) -> Span<C::V>;
}

/// The standard normal distribution.
#[derive(Clone, Copy)]
pub(super) struct NormalNoise;
/// The distribution of k·log(T/λ) for a Weibull time T: F(u) = 1 − exp(−e^u).
#[derive(Clone, Copy)]
pub(super) struct GumbelNoise;
/// The standard logistic distribution.
#[derive(Clone, Copy)]
pub(super) struct LogisticNoise;

/// A number is known. Its density's factor s is added elsewhere.
#[derive(Clone, Copy)]
pub(super) struct Density<D>(PhantomData<D>);
/// A number exceeds a bound, which is a cutpoint if `CUT`.
#[derive(Clone, Copy)]
pub(super) struct Above<D, const CUT: bool>(PhantomData<D>);
/// A number is below a bound.
#[derive(Clone, Copy)]
pub(super) struct Below<D, const CUT: bool>(PhantomData<D>);
/// A number is between two bounds.
#[derive(Clone, Copy)]
pub(super) struct Between<D, const CUT: bool>(PhantomData<D>);

/// The logarithms of scales that are told apart.
const SCALES: f64 = 300.0;
/// Beyond, squares would not be numbers.
const FAR: f64 = 1e150;

/// What bounds are made of: cutpoints, or s.
#[inline(always)]
fn prepared<D: Distribution, const CUT: bool>([a, b]: [f64; 2]) -> Own {
    let scale = || libm::exp((D::SIGN * a).clamp(-SCALES, SCALES));
    if CUT { [a, b, D::of_gap(a - b), 0.0] } else { [scale(), 0.0, 0.0, 0.0] }
}

/// Within reach; what is not a number stays so.
#[inline(always)]
fn near<C: Cpu>(cpu: C, x: C::V) -> C::V {
    cpu.splat(FAR).min(cpu.splat(-FAR).max(x))
}

#[inline(always)]
fn zero_found<C: Cpu>(cpu: C) -> Found<C::V> {
    let zero = cpu.splat(0.0);
    Found {
        value: zero,
        slope: zero,
        bend: zero,
        cross: [zero; 2],
        own: [zero; 2],
        own_bend: [zero; 3],
    }
}

/// A curve of (y − η)·s as a function of η and of the own parameter.
#[inline(always)]
fn scaled<C: Cpu, D: Distribution>(cpu: C, u: C::V, s: C::V, curve: Curve<C::V>) -> Found<C::V> {
    let (zero, sign) = (cpu.splat(0.0), cpu.splat(D::SIGN));
    let [value, first, second] = curve;
    let pull = u * first;
    Found {
        value,
        slope: zero - s * first,
        bend: s * s * second,
        cross: [zero - sign * s * (first + u * second), zero],
        own: [sign * pull, zero],
        own_bend: [u * u * second + pull, zero, zero],
    }
}

/// A curve of a cutpoint less η, the first or the second of the own parameters.
#[inline(always)]
fn cut<C: Cpu>(cpu: C, curve: Curve<C::V>, second_own: bool) -> Found<C::V> {
    let zero = cpu.splat(0.0);
    let [value, first, second] = curve;
    let mut found = Found { value, slope: zero - first, bend: second, ..zero_found(cpu) };
    let place = usize::from(second_own);
    found.cross[place] = zero - second;
    found.own[place] = first;
    found.own_bend[2 * place] = second;
    found
}

impl<D: Distribution> CaseLaw for Density<D> {
    fn prepare(own: [f64; 2]) -> Own {
        prepared::<D, false>(own)
    }

    #[inline(always)]
    fn parts<C: Cpu>(cpu: C, eta: C::V, at: Outcome<C::V>, own: &[C::V; 4]) -> LawParts<C::V> {
        LawParts::line(cpu, D::density(cpu, near(cpu, (at.y - eta) * own[0]))[0])
    }

    #[inline(always)]
    fn derive<C: Cpu>(cpu: C, eta: C::V, at: Outcome<C::V>, own: &[C::V; 4]) -> Found<C::V> {
        let u = near(cpu, (at.y - eta) * own[0]);
        scaled::<C, D>(cpu, u, own[0], D::density(cpu, u))
    }
}

impl<D: Distribution, const CUT: bool> CaseLaw for Above<D, CUT> {
    const FACTORS: [bool; 2] = D::FACTORS;

    fn prepare(own: [f64; 2]) -> Own {
        prepared::<D, CUT>(own)
    }

    #[inline(always)]
    fn parts<C: Cpu>(cpu: C, eta: C::V, at: Outcome<C::V>, own: &[C::V; 4]) -> LawParts<C::V> {
        let l = if CUT { own[1] - eta } else { (at.y - eta) * own[0] };
        D::parts_above(cpu, near(cpu, l))
    }

    #[inline(always)]
    fn derive<C: Cpu>(cpu: C, eta: C::V, at: Outcome<C::V>, own: &[C::V; 4]) -> Found<C::V> {
        if CUT {
            return cut(cpu, D::above(cpu, near(cpu, own[1] - eta)), true);
        }
        let l = near(cpu, (at.y - eta) * own[0]);
        scaled::<C, D>(cpu, l, own[0], D::above(cpu, l))
    }
}

impl<D: Distribution, const CUT: bool> CaseLaw for Below<D, CUT> {
    const FACTORS: [bool; 2] = D::FACTORS;

    fn prepare(own: [f64; 2]) -> Own {
        prepared::<D, CUT>(own)
    }

    #[inline(always)]
    fn parts<C: Cpu>(cpu: C, eta: C::V, at: Outcome<C::V>, own: &[C::V; 4]) -> LawParts<C::V> {
        let u = if CUT { own[0] - eta } else { (at.y - eta) * own[0] };
        D::parts_below(cpu, near(cpu, u))
    }

    #[inline(always)]
    fn derive<C: Cpu>(cpu: C, eta: C::V, at: Outcome<C::V>, own: &[C::V; 4]) -> Found<C::V> {
        if CUT {
            return cut(cpu, D::below(cpu, near(cpu, own[0] - eta)), false);
        }
        let u = near(cpu, (at.y - eta) * own[0]);
        scaled::<C, D>(cpu, u, own[0], D::below(cpu, u))
    }
}

/// The lower bound and how far the upper one is above it.
#[inline(always)]
fn bounds<C: Cpu, const CUT: bool>(
    cpu: C,
    eta: C::V,
    at: Outcome<C::V>,
    own: &[C::V; 4],
) -> (C::V, C::V) {
    let (l, gap) = if CUT {
        (own[1] - eta, own[0] - own[1])
    } else {
        ((at.y - eta) * own[0], (at.z - at.y) * own[0])
    };
    // Bounds that meet in rounding would leave nothing between them. (What is no number stays so in this order.)
    (near(cpu, l), cpu.splat(1e-290).max(near(cpu, gap)))
}

impl<D: Distribution, const CUT: bool> CaseLaw for Between<D, CUT> {
    const FACTORS: [bool; 2] = D::FACTORS_BETWEEN;

    fn prepare(own: [f64; 2]) -> Own {
        prepared::<D, CUT>(own)
    }

    #[inline(always)]
    fn parts<C: Cpu>(cpu: C, eta: C::V, at: Outcome<C::V>, own: &[C::V; 4]) -> LawParts<C::V> {
        let (l, gap) = bounds::<C, CUT>(cpu, eta, at, own);
        D::parts_between(cpu, l, gap, own[2])
    }

    #[inline(always)]
    fn derive<C: Cpu>(cpu: C, eta: C::V, at: Outcome<C::V>, own: &[C::V; 4]) -> Found<C::V> {
        let zero = cpu.splat(0.0);
        let (l, gap) = bounds::<C, CUT>(cpu, eta, at, own);
        let span = D::between(cpu, l, gap);
        let Span { line, over, under, in_u, in_l, uu, ul, ll, shift, shift_bend } = span;
        let value = line + log(cpu, over / under);
        if CUT {
            return Found {
                value,
                slope: zero - shift,
                bend: shift_bend,
                cross: [zero - uu - ul, zero - ul - ll],
                own: [in_u, in_l],
                own_bend: [uu, ul, ll],
            };
        }
        let (s, sign) = (own[0], cpu.splat(D::SIGN));
        // Both bounds move with the lower one, and the upper one by the gap more.
        let pull = l * shift + gap * in_u;
        let turn = l * shift_bend + gap * (uu + ul);
        let own_bend = l * (turn + gap * (uu + ul)) + gap * gap * uu;
        Found {
            value,
            slope: zero - s * shift,
            bend: s * s * shift_bend,
            cross: [zero - sign * s * (shift + turn), zero],
            own: [sign * pull, zero],
            own_bend: [own_bend + pull, zero, zero],
        }
    }
}

/// log(1 + e^x), and 1/(1 + e^−x) with 1/(1 + e^x), neither by subtraction.
#[inline(always)]
fn softplus<C: Cpu>(cpu: C, x: C::V) -> [C::V; 3] {
    let (zero, one) = (cpu.splat(0.0), cpu.splat(1.0));
    let e = exp2_of_negative(cpu, x.neg_abs() * cpu.splat(LOG2_E));
    let large = one / (one + e);
    let small = e * large;
    [zero.max(x) + log1p(cpu, e), x.pick(large, small), x.pick(small, large)]
}

/// e^x − 1 for x up to 700.
#[inline(always)]
fn expm1<C: Cpu>(cpu: C, x: C::V) -> C::V {
    let x = cpu.splat(1000.0).min(cpu.splat(-1000.0).max(x * cpu.splat(LOG2_E)));
    exp2_less_1(cpu, x)
}

/// 1 − e^−d for d > 0, and the first two derivatives of its logarithm.
#[inline(always)]
fn rest<C: Cpu>(cpu: C, d: C::V) -> Curve<C::V> {
    let (zero, one) = (cpu.splat(0.0), cpu.splat(1.0));
    let rise = expm1(cpu, zero - d);
    let first = (one + rise) / (zero - rise);
    [zero - rise, first, zero - first * (one + first)]
}

impl Distribution for LogisticNoise {
    const SIGN: f64 = -1.0;
    const FACTORS: [bool; 2] = [false, true];
    const FACTORS_BETWEEN: [bool; 2] = [false, true];

    #[inline(always)]
    fn parts_below<C: Cpu>(cpu: C, u: C::V) -> LawParts<C::V> {
        let e = exp2_of_negative(cpu, u.neg_abs() * cpu.splat(LOG2_E));
        LawParts { under: cpu.splat(1.0) + e, ..LawParts::line(cpu, cpu.splat(0.0).min(u)) }
    }

    /// F(u)·(1 − F(l))·(1 − e^−gap), none of which cancels.
    #[inline(always)]
    fn parts_between<C: Cpu>(cpu: C, l: C::V, gap: C::V, of_gap: C::V) -> LawParts<C::V> {
        let (upper, lower) = (Self::parts_below(cpu, l + gap), Self::parts_above(cpu, l));
        let line = upper.line + lower.line + of_gap;
        LawParts { under: upper.under * lower.under, ..LawParts::line(cpu, line) }
    }

    fn of_gap(gap: f64) -> f64 {
        let apart = if gap < 1e-290 { 1e-290 } else { gap };
        libm::log(-libm::expm1(-apart))
    }

    #[inline(always)]
    fn below<C: Cpu>(cpu: C, u: C::V) -> Curve<C::V> {
        let zero = cpu.splat(0.0);
        let [value, p, q] = softplus(cpu, zero - u);
        [zero - value, p, zero - p * q]
    }

    #[inline(always)]
    fn above<C: Cpu>(cpu: C, l: C::V) -> Curve<C::V> {
        let zero = cpu.splat(0.0);
        let [value, p, q] = softplus(cpu, l);
        [zero - value, zero - p, zero - p * q]
    }

    #[inline(always)]
    fn density<C: Cpu>(cpu: C, u: C::V) -> Curve<C::V> {
        let two = cpu.splat(2.0);
        let [value, p, q] = softplus(cpu, u);
        [u - two * value, q - p, cpu.splat(0.0) - two * p * q]
    }

    #[inline(always)]
    fn between<C: Cpu>(cpu: C, l: C::V, gap: C::V) -> Span<C::V> {
        let [upper, u1, u2] = Self::below(cpu, l + gap);
        let [lower, l1, l2] = Self::above(cpu, l);
        let [part, first, second] = rest(cpu, gap);
        Span {
            line: upper + lower,
            over: part,
            under: cpu.splat(1.0),
            in_u: u1 + first,
            in_l: l1 - first,
            uu: u2 + second,
            ul: cpu.splat(0.0) - second,
            ll: l2 + second,
            shift: u1 + l1,
            shift_bend: u2 + l2,
        }
    }
}

/// √(½ log₂e), in which unit the normal tail's polynomials are.
const PROBIT_UNIT: f64 = 0.849_321_800_288_019_1;
/// ½ log 2π.
const HALF_LOG_2PI: f64 = 0.918_938_533_204_672_7;
/// 1/√2π.
const DENSITY_AT_0: f64 = 0.398_942_280_401_432_7;
/// Bounds that are nearer than this, times one more than the lower one, are narrow.
const NARROW: f64 = 1e-3;

impl Distribution for NormalNoise {
    const SIGN: f64 = -1.0;
    const FACTORS: [bool; 2] = [true, true];
    const FACTORS_BETWEEN: [bool; 2] = [true, true];

    /// Φ(−z) is 2^(−w²)·P/Q, and Φ(z) the rest: neither a logarithm nor a division.
    #[inline(always)]
    fn parts_below<C: Cpu>(cpu: C, u: C::V) -> LawParts<C::V> {
        let zero = cpu.splat(0.0);
        let w = (zero - u.neg_abs()) * cpu.splat(PROBIT_UNIT);
        let (above, under) = normal_tail(cpu, w);
        let power = zero - w * w;
        let over = u.pick(under - exp2_of_negative(cpu, power) * above, above);
        LawParts { line: u.pick(zero, power * cpu.splat(LN_2)), over, under }
    }

    #[inline(always)]
    fn below<C: Cpu>(cpu: C, u: C::V) -> Curve<C::V> {
        let zero = cpu.splat(0.0);
        let z = zero - u.neg_abs();
        let (log_tail, log_head, in_tail, in_head) = normal_sides(cpu, z * cpu.splat(PROBIT_UNIT));
        let in_tail = in_tail.max(z);
        let value = u.pick(log_head, log_tail) * cpu.splat(LN_2);
        let first = u.pick(in_head, in_tail);
        let beyond = u.pick(z + in_head, excess(cpu, z, in_tail));
        [value, first, zero - first * beyond]
    }

    #[inline(always)]
    fn above<C: Cpu>(cpu: C, l: C::V) -> Curve<C::V> {
        let zero = cpu.splat(0.0);
        let [value, first, second] = Self::below(cpu, zero - l);
        [value, zero - first, second]
    }

    #[inline(always)]
    fn density<C: Cpu>(cpu: C, u: C::V) -> Curve<C::V> {
        let zero = cpu.splat(0.0);
        let value = u * u * cpu.splat(-0.5) - cpu.splat(HALF_LOG_2PI);
        [value, zero - u, cpu.splat(-1.0)]
    }

    /// With Φ(−z) = φ(z)·M(z), what is between two bounds of which the lower is further from 0 is φ(u)(M(−u) − φ(l)/φ(u)·M(−l))
    /// if both are below 0, and 1 − φ(u)M(u) − φ(l)M(−l) if not. Bounds so near that this would cancel go by the density in
    /// their middle.
    #[inline(always)]
    fn between<C: Cpu>(cpu: C, l: C::V, gap: C::V) -> Span<C::V> {
        let (zero, one, unit) = (cpu.splat(0.0), cpu.splat(1.0), cpu.splat(PROBIT_UNIT));
        // Where most of it is above 0, its mirror image: Φ is told apart from 0, not from 1.
        let high = (l + l) + gap;
        let low = high.pick(zero - l - gap, l);
        let top = low + gap;
        let (t, m) = (zero - top.neg_abs(), zero - low.neg_abs());
        let (wt, wm) = (t * unit, m * unit);
        // P and Q of Mills' ratios, which are not divided by one: beyond this they are lost beside the density.
        let tail = |w: C::V| normal_tail(cpu, cpu.splat(1e13).min(w));
        let ((over_top, under_top), (over_low, under_low)) = (tail(wt), tail(wm));
        let under = under_top * under_low;
        // Powers of two: of the upper bound's density where that is above 0, of the lower's over that.
        let square = wt * wt;
        let at_top = top.pick(exp2_of_negative(cpu, zero - square), one);
        let apart = top.pick(wm * wm, gap * unit * (wm + wt));
        let at_low = exp2_of_negative(cpu, zero - apart);
        let at_least = top.pick(under_top - at_top * over_top, over_top);
        let inside = at_least * under_low - at_low * over_low * under_top;
        // The density in the middle over that of the upper bound, or over 1, times (1 + gap²(c² − 1)/24)·gap/√2π.
        let half = cpu.splat(0.5);
        let (middle, width) = (half * (m + top.pick(zero - t, t)), gap * gap);
        let lift =
            top.pick(zero - half * middle * middle, cpu.splat(-0.125) * gap * (t + t + t + m));
        let by_middle = gap
            * cpu.splat(DENSITY_AT_0)
            * exp2(cpu, lift * cpu.splat(LOG2_E))
            * (middle * middle - one).fma(width * cpu.splat(1.0 / 24.0), one);
        let near = cpu.splat(NARROW) - gap * (one + m);
        let inside = near.pick(by_middle * under, inside);
        let inside = (cpu.splat(1e-300) * under).max(inside);
        // φ(u)/P, which is above −u, and φ(l)/P.
        let density = cpu.splat(DENSITY_AT_0) * under / inside;
        let in_top = at_top * density;
        let in_top = top.pick(in_top, in_top.max(t));
        let in_low = at_low * density;
        let shift = in_top - in_low;
        let uu = zero - in_top * (top + in_top);
        let ll = in_low * (low - in_low);
        let ul = in_top * in_low;
        let shift_bend = low * in_low - top * in_top - shift * shift;
        Span {
            line: zero - top.pick(zero, square) * cpu.splat(LN_2),
            over: inside,
            under,
            in_u: high.pick(in_low, in_top),
            in_l: zero - high.pick(in_top, in_low),
            uu: high.pick(ll, uu),
            ul,
            ll: high.pick(uu, ll),
            shift: high.pick(zero - shift, shift),
            shift_bend,
        }
    }
}

/// e^x; what is beyond 10¹⁴⁴, of which the square is still a number, counts as that.
#[inline(always)]
fn exp<C: Cpu>(cpu: C, x: C::V) -> C::V {
    exp2(cpu, cpu.splat(480.0).min(x * cpu.splat(LOG2_E)))
}

impl Distribution for GumbelNoise {
    const SIGN: f64 = 1.0;
    const FACTORS: [bool; 2] = [true, false];

    #[inline(always)]
    fn parts_below<C: Cpu>(cpu: C, u: C::V) -> LawParts<C::V> {
        let (zero, one) = (cpu.splat(0.0), cpu.splat(1.0));
        let rise = expm1(cpu, zero - exp(cpu, u));
        // Far below, where e^u is lost beside 1, it is the logarithm.
        let near = u + cpu.splat(40.0);
        LawParts { over: near.pick(zero - rise, one), ..LawParts::line(cpu, near.pick(zero, u)) }
    }

    #[inline(always)]
    fn parts_above<C: Cpu>(cpu: C, l: C::V) -> LawParts<C::V> {
        LawParts::line(cpu, cpu.splat(0.0) - exp(cpu, l))
    }

    #[inline(always)]
    fn below<C: Cpu>(cpu: C, u: C::V) -> Curve<C::V> {
        let one = cpu.splat(1.0);
        let w = exp(cpu, u);
        let [part, first, _] = rest(cpu, w);
        let r = w * first;
        // Far below, where w is lost beside 1, it is log w.
        let value = (u + cpu.splat(40.0)).pick(log(cpu, part), u);
        [value, r, r * (one - r - w)]
    }

    #[inline(always)]
    fn above<C: Cpu>(cpu: C, l: C::V) -> Curve<C::V> {
        let w = cpu.splat(0.0) - exp(cpu, l);
        [w, w, w]
    }

    #[inline(always)]
    fn density<C: Cpu>(cpu: C, u: C::V) -> Curve<C::V> {
        let w = exp(cpu, u);
        [u - w, cpu.splat(1.0) - w, cpu.splat(0.0) - w]
    }

    #[inline(always)]
    fn between<C: Cpu>(cpu: C, l: C::V, gap: C::V) -> Span<C::V> {
        let (zero, one) = (cpu.splat(0.0), cpu.splat(1.0));
        let w = exp(cpu, l);
        let step = cpu.splat(1e-290).max(cpu.splat(1e148).min(w * expm1(cpu, gap)));
        let far = w + step;
        let [part, first, second] = rest(cpu, step);
        let shift = first * step - w;
        Span {
            line: zero - w,
            over: part,
            under: one,
            in_u: far * first,
            in_l: zero - w * (one + first),
            uu: far * first + far * far * second,
            ul: zero - far * w * second,
            ll: w * w * second - w * (one + first),
            shift,
            shift_bend: shift + step * step * second,
        }
    }
}
