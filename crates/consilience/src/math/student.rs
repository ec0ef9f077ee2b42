//! Student's t: its tail and its quantiles, right far out.

use super::LOG_2PI;
use super::special::{log_beta, log_normal_cdf, normal_quantile};
use libm::{exp, log, log1p};

/// The most steps of a continued fraction or of a search.
const STEPS: usize = 500;

/// log P(T > t) for t ≥ 0 and Student's t of `df` degrees of freedom.
pub fn log_upper_tail(df: f64, t: f64) -> f64 {
    let a = 0.5 * df;
    // P = ½ I_x(a, ½) with x = ν/(ν + t²); far out x is next to nothing, near 0 next to 1.
    let ratio = t * t / df;
    let (log_x, log_rest) = if ratio.is_finite() {
        (-log1p(ratio), -log1p(1.0 / ratio))
    } else {
        (f64::NEG_INFINITY, 0.0)
    };
    if log_x == f64::NEG_INFINITY {
        // t² overflows, the tail's logarithm does not: (t²/ν)^−a.
        return -2.0 * a * (log(t) - 0.5 * log(df)) - log(2.0 * a) - log_beta(a, 0.5);
    }
    let x = exp(log_x);
    if x < (a + 1.0) / (a + 2.5) {
        a * log_x + 0.5 * log_rest - log(2.0 * a) - log_beta(a, 0.5) + log(fraction(a, 0.5, x))
    } else {
        let rest = exp(log_rest);
        let within =
            exp(a * log_x + 0.5 * log_rest - log_beta(a, 0.5)) * 2.0 * fraction(0.5, a, rest);
        log(0.5) + log1p(-within)
    }
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let tiny = 1e-300;
    let apart = |v: f64| if v.abs() < tiny { tiny } else { v };
    let (mut c, mut d) = (1.0, 1.0 / apart(1.0 - (a + b) * x / (a + 1.0)));
    let mut h = d;
    for m in 1..STEPS {
        let m = m as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for term in [even, odd] {
            d = 1.0 / apart(1.0 + term * d);
            c = apart(1.0 + term / c);
            h *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-16 {
            break;
        }
    }
    h
}

/// log of the density of Student's t at t.
fn log_density(df: f64, t: f64) -> f64 {
    let ratio = t * t / df;
    let log_width = if ratio.is_finite() { log1p(ratio) } else { 2.0 * log(t) - log(df) };
    -0.5 * log(df) - log_beta(0.5 * df, 0.5) - 0.5 * (df + 1.0) * log_width
}

/// t ≥ 0 with log P(T > t) = `log_p`, for `log_p` ≤ log ½; at most `most`.
pub fn upper_quantile(df: f64, log_p: f64, most: f64) -> f64 {
    if df == 1.0 {
        let p = exp(log_p);
        let t = if p > 0.0 { 1.0 / libm::tan(std::f64::consts::PI * p) } else { f64::INFINITY };
        return t.clamp(0.0, most);
    }
    // Wallace's approximation to start from; then Newton's steps in t near 0, in log t beyond.
    let z = normal_upper_quantile(log_p);
    let stretch = (8.0 * df + 3.0) / (8.0 * df + 1.0);
    let power = (z * stretch) * (z * stretch) / df;
    let mut t = if power < 600.0 { (df * libm::expm1(power)).sqrt() } else { 1e130 };
    if log_upper_tail(df, most) >= log_p {
        return most;
    }
    t = t.min(most);
    for _ in 0..STEPS {
        let tail = log_upper_tail(df, t);
        let gap = tail - log_p;
        // −d tail/dt.
        let rate = exp(log_density(df, t) - tail);
        let next = if t < 0.5 {
            (t + gap / rate).max(0.0)
        } else {
            t * exp((gap / (rate * t)).clamp(-40.0, 40.0))
        };
        let done = (next - t).abs() <= 1e-13 * t.max(1e-3);
        t = next.min(most);
        if done {
            break;
        }
    }
    t
}

/// z ≥ 0 with log P(Z > z) = `log_p` for a standard normal Z and `log_p` ≤ log ½.
pub fn normal_upper_quantile(log_p: f64) -> f64 {
    if log_p > -600.0 {
        return -normal_quantile(exp(log_p).min(0.5));
    }
    // log Φ(−z) ≈ −½z² − log z − ½ log 2π.
    let mut z = (-2.0 * log_p).sqrt();
    z = (-2.0 * log_p - 2.0 * log(z) - LOG_2PI).sqrt();
    for _ in 0..3 {
        let (value, rate, _) = log_normal_cdf(-z);
        z += (value - log_p) / rate;
    }
    z
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, expected: f64, relative: f64) {
        assert!((value - expected).abs() <= relative * expected.abs(), "{value} is not {expected}");
    }

    // ν = 2 has P(T > t) = ½(1 − t/√(2 + t²)); ν = 1 has atan(1/t)/π; ν = 4 a cubic.
    #[test]
    fn tails_have_their_closed_forms() {
        for t in [1e-3_f64, 0.1, 0.7, 2.0, 11.0, 300.0] {
            let root = (2.0 + t * t).sqrt();
            // ½(1 − t/r) = 1/(r(r + t)), which loses nothing.
            near(log_upper_tail(2.0, t), (1.0 / (root * (root + t))).ln(), 2e-14);
            near(log_upper_tail(1.0, t), ((1.0_f64 / t).atan() / std::f64::consts::PI).ln(), 2e-14);
        }
        near(log_upper_tail(1.0, 1e200), -(1e200_f64 * std::f64::consts::PI).ln(), 1e-13);
    }

    #[test]
    fn quantiles_undo_tails() {
        for df in [0.1, 0.5, 1.0, 1.5, 3.0, 7.0, 40.0, 1e4] {
            for z in [0.01, 0.3, 1.0, 2.0, 5.0, 9.0, 20.0, 36.0] {
                let log_p = log_normal_cdf(-z).0;
                let t = upper_quantile(df, log_p, 1e120);
                if t < 1e120 {
                    near(log_upper_tail(df, t), log_p, 1e-11);
                } else {
                    assert!(log_upper_tail(df, 1e120) >= log_p * (1.0 - 1e-9));
                }
            }
        }
        assert_eq!(upper_quantile(3.0, 0.5_f64.ln(), 1e120), 0.0);
        for z in [5.0, 34.0, 35.0, 400.0] {
            near(normal_upper_quantile(log_normal_cdf(-z).0), z, 1e-12);
        }
    }
}
