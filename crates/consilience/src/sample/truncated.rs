//! Exact draws of normal variables that are known to be positive.

use crate::math::Stream;
use crate::math::ziggurat::{exponential, normal};

/// Up to this mean below 0 plain draws are accepted often enough to be the faster way.
const SWITCH: f64 = -0.4;

/// A draw of N(mean, 1) given that it is positive, for any mean but NaN.
///
/// Where that is rare, by Robert's (1995) exponential proposals. With a = −mean and λ(λ − a) = 1,
/// E/λ is accepted with chance e^(−(E − 1)²/2λ²): written in the excess over a, so that nothing
/// cancels however far out a is.
pub fn positive_normal(mean: f64, rng: &mut Stream) -> f64 {
    assert!(!mean.is_nan(), "no normal distribution has the mean NaN");
    if mean > SWITCH {
        loop {
            let noise = normal(rng);
            if noise > -mean {
                return mean + noise;
            }
        }
    }
    // libm's hypot, since mean² may overflow.
    let step = 2.0 / (libm::hypot(mean, 2.0) - mean);
    loop {
        let e = exponential(rng);
        let off = (e - 1.0) * step;
        let bar = exponential(rng);
        if bar >= 0.5 * off * off {
            return e * step;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::special::log_normal_cdf;
    use crate::math::stream;

    // With the hazard h = φ(m)/Φ(m): mean m + h, variance 1 − h(h + m).
    #[test]
    fn moments_are_right_in_both_tails() {
        for (k, mean) in
            [8.0, 3.0, 0.5, 0.0, -0.39, -0.41, -2.0, -9.0, -35.0].into_iter().enumerate()
        {
            let mut rng = stream(1, k as u64, 0, "truncated test");
            let n = 400_000;
            let draws: Vec<f64> = (0..n).map(|_| positive_normal(mean, &mut rng)).collect();
            assert!(draws.iter().all(|x| *x > 0.0));
            let hazard = log_normal_cdf(mean).1;
            let (centre, spread) = (mean + hazard, 1.0 + log_normal_cdf(mean).2);
            let average =
                |f: &dyn Fn(f64) -> f64| draws.iter().map(|&x| f(x)).sum::<f64>() / n as f64;
            let first = average(&|x| x - centre);
            let second = average(&|x| (x - centre).powi(2));
            let fourth = average(&|x| (x - centre).powi(4));
            let z = [
                first / (spread / n as f64).sqrt(),
                (second - spread) / ((fourth - second * second) / n as f64).sqrt(),
            ];
            assert!(z.iter().all(|z| z.abs() < 4.0), "{mean}: {z:?}");
        }
    }

    #[test]
    fn the_far_tail_is_an_exponential() {
        let mut rng = stream(2, 0, 0, "truncated test");
        for mean in [-1e6, -1e200] {
            let n = 100_000;
            let sum: f64 = (0..n).map(|_| -mean * positive_normal(mean, &mut rng)).sum();
            assert!((sum / f64::from(n) - 1.0).abs() < 4.0 / f64::from(n).sqrt());
        }
        assert_eq!(positive_normal(f64::NEG_INFINITY, &mut rng), 0.0);
        assert!(positive_normal(1e300, &mut rng) == 1e300);
    }
}
