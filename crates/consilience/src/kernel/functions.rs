//! Elementary functions of eight doubles, without branches.
//!
//! Polynomials are those of `scripts/kernel_coefficients.py`, their coefficients from the constant up.

use super::simd::{Cpu, Vector, polynomial};
use std::f64::consts::LN_2;

/// 2·artanh(s)/s in s² ≤ 1/9, to 2·10⁻¹⁸.
const ARTANH: [f64; 11] = [
    2.0,
    0.6666666666666615,
    0.4000000000018575,
    0.28571428545454114,
    0.22222224080747674,
    0.18181740832504806,
    0.1538661404230401,
    0.13300374032674625,
    0.12110168728069218,
    0.0832450651186082,
    0.17044163562781398,
];

/// 2^(w²)·(1 − Φ(z)), where 2^(−w²) = e^(−z²/2), is the ratio of these two for w ≥ 0, to 2·10⁻¹⁶. All terms are
/// positive: nothing cancels.
const TAIL_ABOVE: [f64; 11] = [
    0.5000000000000001,
    1.4586428024698908,
    1.8637953473412374,
    1.4481679613130272,
    0.7693461665078525,
    0.2941301220490143,
    0.08241972572101086,
    0.0168213106252882,
    0.0024134506996336407,
    0.00022260213516036827,
    1.0246364712108468e-05,
];
const TAIL_BELOW: [f64; 12] = [
    1.0,
    3.8567228836394833,
    6.657592764625367,
    6.9115623598501434,
    4.851003965046791,
    2.438760885361945,
    0.9032025917202887,
    0.2483543542414214,
    0.05011913138889231,
    0.007144701485770762,
    0.0006569721933394162,
    3.0240395914531586e-05,
];

/// 2ˣ for x ≤ 0, to 10⁻¹⁴ of it. What is below −1021 counts as that.
#[inline(always)]
pub fn exp2_of_negative<C: Cpu>(cpu: C, x: C::V) -> C::V {
    // In this order a NaN stays one.
    cpu.power_of_two(cpu.splat(-1021.0).max(x))
}

/// 2ˣ to 10⁻¹⁴ of it. What is outside [−1021, 1023] counts as its end.
#[inline(always)]
pub fn exp2<C: Cpu>(cpu: C, x: C::V) -> C::V {
    exp2_of_negative(cpu, cpu.splat(1023.0).min(x))
}

/// (2ᶠ − 1)/f for |f| ≤ ½: Taylor's series, so that it is right to the last digit near 0.
const EXP2_LESS_1: [f64; 13] = [
    LN_2,
    0.24022650695910072,
    0.05550410866482158,
    0.009618129107628477,
    0.0013333558146428443,
    0.0001540353039338161,
    1.5252733804059841e-05,
    1.321548679014431e-06,
    1.01780860092397e-07,
    7.054911620801123e-09,
    4.4455382718708116e-10,
    2.5678435993488206e-11,
    1.3691488853904128e-12,
];

/// 2ˣ − 1 for x from −1021 to 1023, to 10⁻¹⁵ of it.
#[inline(always)]
pub fn exp2_less_1<C: Cpu>(cpu: C, x: C::V) -> C::V {
    let k = x.round();
    let f = x - k;
    let power = cpu.splat(1.0).scale(k);
    (polynomial(cpu, &EXP2_LESS_1, f) * f).fma(power, power - cpu.splat(1.0))
}

/// log(1 + u) for 0 ≤ u ≤ 1 or −½ ≤ u ≤ 0, by 2 artanh(u/(2 + u)).
#[inline(always)]
pub fn log1p<C: Cpu>(cpu: C, u: C::V) -> C::V {
    twice_artanh(cpu, u / (cpu.splat(2.0) + u))
}

/// 2·artanh(s) for |s| ≤ ⅓.
#[inline(always)]
pub fn twice_artanh<C: Cpu>(cpu: C, s: C::V) -> C::V {
    s * polynomial(cpu, &ARTANH, s * s)
}

/// log x for positive x that are not subnormal. What is not a number does not stay so.
#[inline(always)]
pub fn log<C: Cpu>(cpu: C, x: C::V) -> C::V {
    let (k, m) = x.split();
    let one = cpu.splat(1.0);
    let s = (m - one) / (m + one);
    k.fma(cpu.splat(LN_2), twice_artanh(cpu, s))
}

/// log(1 + q) for q ≥ 0 that are finite, to the last digits of q itself; what is not a number stays so.
#[inline(always)]
pub fn log_of_1_and<C: Cpu>(cpu: C, q: C::V) -> C::V {
    let one = cpu.splat(1.0);
    (one - q).pick(log1p(cpu, one.min(q)), q.fma(cpu.splat(0.0), log(cpu, one + q)))
}

/// P and Q with 1 − Φ(z) = 2^(−w²)·P/Q for w = z·√(½ log₂e) ≥ 0. What is above 10²⁰ counts as that: beside w² the
/// logarithm of P/Q is lost long before.
#[inline(always)]
pub fn normal_tail<C: Cpu>(cpu: C, w: C::V) -> (C::V, C::V) {
    let w = cpu.splat(1e20).min(w);
    (polynomial(cpu, &TAIL_ABOVE, w), polynomial(cpu, &TAIL_BELOW, w))
}

#[cfg(test)]
mod tests {
    use super::super::dispatch::{Pass, Path};
    use super::*;
    use crate::math::special::log_normal_cdf;
    use std::f64::consts::{LOG2_E, TAU};

    const HALF_LOG2_E: f64 = 0.5 * LOG2_E;

    /// f at many points, on every path of this machine, against g.
    fn agree<F: Fn(f64) -> f64>(name: &str, points: &[f64], tolerance: f64, g: F) {
        for path in Path::all() {
            let found = path.run(At { name, points });
            for (&x, value) in points.iter().zip(found) {
                let exact = g(x);
                let off = (value - exact).abs() / exact.abs().max(1e-300);
                assert!(off <= tolerance, "{name}({x}) on {}: {value} is not {exact}", path.name());
            }
        }
    }

    struct At<'a> {
        name: &'a str,
        points: &'a [f64],
    }

    impl Pass for At<'_> {
        type Out = Vec<f64>;
        #[inline(always)]
        fn run<C: Cpu>(self, cpu: C) -> Vec<f64> {
            let mut out = Vec::new();
            for &x in self.points {
                let v = cpu.splat(x);
                let value = match self.name {
                    "exp2" => exp2(cpu, v),
                    "exp2_less_1" => exp2_less_1(cpu, v),
                    "log1p" => log1p(cpu, v),
                    "log" => log(cpu, v),
                    "log_of_1_and" => log_of_1_and(cpu, v),
                    _ => {
                        // Mills' ratio (1 − Φ(z))/φ(z).
                        let (above, below) = normal_tail(cpu, v * cpu.splat(HALF_LOG2_E.sqrt()));
                        above / below * cpu.splat(TAU.sqrt())
                    }
                };
                out.push(value.lanes()[5]);
            }
            out
        }
    }

    #[test]
    fn powers_of_two_are_right() {
        let points: Vec<f64> = (-101_000..101_000).map(|i| f64::from(i) * 0.010_07).collect();
        agree("exp2", &points, 1e-14, libm::exp2);
        let points: Vec<f64> = (-60_000..60_000).map(|i| f64::from(i) * 0.010_07).collect();
        let exact = |x: f64| libm::expm1(x * LN_2);
        // The argument's own rounding counts where it is large.
        let (near, far): (Vec<f64>, Vec<f64>) = points.iter().partition(|x| x.abs() < 3.0);
        agree("exp2_less_1", &near, 2e-15, exact);
        agree("exp2_less_1", &far, 1e-13, exact);
        agree("exp2_less_1", &[1e-8, -3e-12, 1e-200], 3e-16, exact);
        agree("exp2", &[-2000.0, -1e300, f64::NEG_INFINITY], 1e-14, |_| libm::exp2(-1021.0));
        agree("exp2", &[1030.0, 1e300, f64::INFINITY], 1e-14, |_| libm::exp2(1023.0));
    }

    #[test]
    fn logarithms_keep_their_relative_accuracy() {
        for scale in [1e-5, -5e-6, 1e-12, 1e-200] {
            let points: Vec<f64> = (1..=100_000).map(|i| f64::from(i) * scale).collect();
            agree("log1p", &points, 7e-16, libm::log1p);
        }
        let points: Vec<f64> = (-2000..700).map(|i| libm::exp(0.3 * f64::from(i))).collect();
        agree("log_of_1_and", &points, 7e-16, libm::log1p);
        let points: Vec<f64> = (-2000..2000).map(|i| libm::exp(0.351 * f64::from(i))).collect();
        agree("log", &points, 5e-16, libm::log);
    }

    #[test]
    fn mills_ratio_is_the_normal_tail_over_its_density() {
        let points: Vec<f64> = (0..40_000).map(|i| 0.001 * f64::from(i)).collect();
        agree("mills", &points, 1e-13, |z| 1.0 / log_normal_cdf(-z).1);
        // M(z) → 1/z; the values at 1 and 3 to 17 digits by mpmath.
        agree("mills", &[1e9, 1e15, 1e20], 1e-15, |z| 1.0 / z);
        agree("mills", &[1.0], 6e-16, |_| 0.655_679_542_418_798_5);
        agree("mills", &[3.0], 6e-16, |_| 0.304_590_298_710_103_3);
    }

    #[test]
    fn what_is_not_a_number_stays_so() {
        for path in Path::all() {
            for name in ["exp2", "exp2_less_1", "log1p", "log_of_1_and"] {
                assert!(path.run(At { name, points: &[f64::NAN] })[0].is_nan());
            }
        }
    }
}
