//! Log-likelihoods of counts, however large.
//!
//! A count of 10¹⁵ has terms such as y log y and log Γ(y), of which all but a few digits cancel. Here they
//! are never formed: what is left of them after Stirling's leading terms have cancelled on paper is computed
//! instead. With ρ(x) = log Γ(x) − (x − ½) log x + x − ½ log 2π, which is below 1/(12x),
//!
//! ```text
//! y log y − y − log y!                                    = −½ log(2πy) − ρ(y)
//! log Γ(y + r) − log Γ(r) − log y! + y log q + r log p    = ½ log p − ½ log(2πy) + ρ(y + r) − ρ(r) − ρ(y)
//! ```
//!
//! where q = y/(y + r) and p = r/(y + r): the Poisson's and the negative binomial's log density at a mean
//! that is the count itself.

use super::LOG_2PI;
use libm::{exp, log, log1p};

/// From here on Stirling's series for ρ is right to the last digit.
const SERIES: f64 = 15.0;

/// ρ(x), xρ'(x) and x²ρ''(x) for x > 0.
pub(crate) fn stirling_rest(x: f64) -> [f64; 3] {
    let mut sum = [0.0; 3];
    let mut at = x;
    while at < SERIES {
        // ρ(x) = ρ(x + 1) + (x + ½) log(1 + 1/x) − 1.
        let (step, ratio) = (log1p(1.0 / at), x / at);
        sum[0] += (at + 0.5) * step - 1.0;
        sum[1] += ratio * (at * step - (at + 0.5) / (at + 1.0));
        sum[2] += 0.5 * (ratio / (at + 1.0)) * (ratio / (at + 1.0));
        at += 1.0;
    }
    // Σ B₂ₖ/(2k(2k − 1)x^(2k − 1)), term by term with its derivatives.
    let (t, ratio) = (1.0 / (at * at), x / at);
    let series = |c: [f64; 6]| c.iter().rev().fold(0.0, |rest, c| c - t * rest) / at;
    let c = [1.0 / 12.0, 1.0 / 360.0, 1.0 / 1260.0, 1.0 / 1680.0, 1.0 / 1188.0, 691.0 / 360360.0];
    let power = |k: usize| 2.0 * k as f64 + 1.0;
    let first = std::array::from_fn(|k| c[k] * power(k));
    let second = std::array::from_fn(|k| c[k] * power(k) * (power(k) + 1.0));
    sum[0] += series(c);
    sum[1] -= ratio * series(first);
    sum[2] += ratio * ratio * series(second);
    sum
}

/// y log y − y − log y!: the log density of a Poisson count at its most fitting mean.
pub fn saturated(y: f64) -> f64 {
    if y == 0.0 { 0.0 } else { -0.5 * (LOG_2PI + log(y)) - stirling_rest(y)[0] }
}

/// y log(y/m) − y + m ≥ 0 for y ≥ 0 and m > 0: what a Poisson count's log density loses at the mean m.
pub fn misfit(y: f64, m: f64) -> f64 {
    let x = (y - m) / (y + m);
    if x.abs() > 0.1 {
        return if y == 0.0 { m } else { y * log(y / m) - y + m };
    }
    // log(y/m) = 2 artanh(x), of which the first term cancels (Loader 2000).
    let square = x * x;
    let rest = (1..=8).rev().fold(0.0, |sum, k| (sum + 1.0 / f64::from(2 * k + 1)) * square);
    (y - m) * x + 2.0 * y * x * rest
}

/// The dispersion r = e^a of a negative binomial. Values come with two derivatives in a.
#[derive(Debug, Clone, Copy)]
pub struct Dispersion {
    a: f64,
    r: f64,
    rest: [f64; 3],
}

impl Dispersion {
    /// That with this logarithm, from −700 to 700.
    pub fn new(a: f64) -> Dispersion {
        let r = exp(a);
        Dispersion { a, r, rest: stirling_rest(r) }
    }

    /// log(1 + y/r).
    fn log_ratio(&self, y: f64) -> f64 {
        if self.r < 1.0 { log(self.r + y) - self.a } else { log1p(y / self.r) }
    }

    /// ρ(y + r) − ρ(r), with two derivatives in r times r and r².
    fn rests(&self, y: f64) -> [f64; 3] {
        let (high, ratio) = (stirling_rest(y + self.r), self.r / (y + self.r));
        let scaled = [high[0], ratio * high[1], ratio * ratio * high[2]];
        std::array::from_fn(|k| scaled[k] - self.rest[k])
    }

    /// log Γ(y + r) − log Γ(r) − y log r for whole y ≥ 0.
    ///
    /// The three terms cancel almost wholly when r is large, so they are never formed apart: small y
    /// by the product Π(1 + k/r), large ones by the difference of two Stirling series.
    pub fn rising(&self, y: f64) -> [f64; 3] {
        let r = self.r;
        if y <= 40.0 {
            // Of log(1 + k/r), the derivatives in r times r and r².
            let (mut value, mut first, mut second) = (0.0, 0.0, 0.0);
            for k in 1..y as u32 {
                let k = f64::from(k);
                value += if r < 1e-290 { log(k) - self.a } else { log1p(k / r) };
                let share = k / (r + k);
                first -= share;
                second += share * (2.0 * r + k) / (r + k);
            }
            return [value, first, first + second];
        }
        let (ratio, share) = (self.log_ratio(y), y / (r + y));
        let rests = self.rests(y);
        let value = (r + y - 0.5) * ratio - y + rests[0];
        let first = r * ratio - y + 0.5 * share + rests[1];
        let second = y * share - 0.5 * share * (1.0 + r / (r + y)) + rests[2];
        [value, first, first + second]
    }

    /// log Γ(y + r) − log Γ(r) − log y! + y log(y/(y + r)) + r log(r/(y + r)) for whole y ≥ 0, without the
    /// part [`saturated`] in which r does not occur: no term is larger than its logarithms.
    pub fn saturated(&self, y: f64) -> [f64; 3] {
        if y == 0.0 {
            return [0.0; 3];
        }
        let share = y / (y + self.r);
        let rests = self.rests(y);
        let value = -0.5 * self.log_ratio(y) + rests[0];
        let first = 0.5 * share + rests[1];
        let second = -0.5 * share * (1.0 + self.r / (y + self.r)) + rests[2];
        [value, first, first + second]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, expected: f64, relative: f64) {
        assert!((value - expected).abs() <= relative * expected.abs(), "{value} is not {expected}");
    }

    // ρ(1) = 1 − ½ log 2π; ρ'(1) = ψ(1) + ½ = ½ − γ; ρ''(1) = π²/6 − 3/2; Γ(½) = √π, so ρ(½) = ½ − ½ log 2.
    #[test]
    fn stirlings_rest_has_its_known_values() {
        let pi2 = std::f64::consts::PI.powi(2);
        let [value, first, second] = stirling_rest(1.0);
        near(value, 1.0 - 0.5 * LOG_2PI, 1e-14);
        near(first, 0.5 - 0.577_215_664_901_532_9, 1e-13);
        near(second, pi2 / 6.0 - 1.5, 1e-14);
        near(stirling_rest(0.5)[0], 0.5 - 0.5 * std::f64::consts::LN_2, 1e-14);
        // Towards 0 log Γ(x) is −log x.
        let [value, first, second] = stirling_rest(1e-300);
        near(value, -0.5 * log(1e-300) - 0.5 * LOG_2PI, 1e-15);
        assert_eq!((first, second), (-0.5, 0.5));
    }

    #[test]
    fn rising_ratios_agree_across_their_formulas() {
        for r in [1e-200, 1e-3, 0.3, 2.0, 14.0, 16.0, 900.0, 2e4, 1e7, 1e200] {
            let at = Dispersion::new(log(r));
            // Whole y on either side of the change of formula, linked by Γ(x + 1) = xΓ(x).
            let (small, large) = (at.rising(40.0), at.rising(41.0));
            let share = 40.0 / (at.r + 40.0);
            let step = [at.log_ratio(40.0), -share, -share + share * (1.0 + at.r / (at.r + 40.0))];
            for k in 0..3 {
                let size = small[k].abs() + 1.0;
                assert!((large[k] - small[k] - step[k]).abs() < 2e-14 * size, "{k} at {r}");
            }
        }
        assert_eq!(Dispersion::new(1.0).rising(0.0), [0.0; 3]);
    }

    // y log(y/m) − y + m to 20 digits by mpmath.
    #[test]
    fn misfits_are_right_near_and_far() {
        for (y, m, expected) in [
            (4e15, 4e15 + 1e8, 1.249_999_979_166_667),
            (1e13, 1e13 - 3e6, 0.4500000900000202),
            (10.0, 12.0, 0.176_784_432_060_453_74),
            (0.0, 3.5, 3.5),
            (1e6, 1.0, 12_815_511.557_964_274),
        ] {
            near(misfit(y, m), expected, 1e-14);
        }
    }
}
