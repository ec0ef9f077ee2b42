//! Posterior model probabilities, and how sure they are given the error bars of the log evidences.
//!
//! The log evidences are taken as independent and normal with their standard errors.

use crate::estimate::Estimate;
use crate::math::ziggurat::normal;
use crate::math::{log_sum_exp, stream};
use libm::{erfc, exp, log};

/// Draws behind an interval: its ends are right to about 0.03 of the log odds' standard error.
const DRAWS: usize = 10_000;

/// Points of the quadrature over the winner's error, from −9 to 9 standard errors.
const POINTS: i32 = 4_000;

/// p(m|y) ∝ p(y|m) p(m).
pub(crate) fn posterior(log_z: &[f64], prior: &[f64]) -> Vec<f64> {
    let scores = scores(log_z.iter().copied(), prior);
    let total = log_sum_exp(&scores);
    scores.iter().map(|s| exp(s - total)).collect()
}

/// log p(y|m) + log p(m), less the largest.
fn scores(log_z: impl Iterator<Item = f64>, prior: &[f64]) -> Vec<f64> {
    let scores: Vec<f64> = log_z.zip(prior).map(|(z, p)| z + log(*p)).collect();
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    scores.iter().map(|s| s - top).collect()
}

/// The first index of the largest value.
pub(crate) fn largest(values: impl IntoIterator<Item = f64>) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for (i, value) in values.into_iter().enumerate() {
        if value > best.1 {
            best = (i, value);
        }
    }
    best.0
}

/// A 95% interval of every model's probability: 2.5% and 97.5% quantiles over simulated log
/// evidences. Every model has a random stream of its own, so that company does not matter to it.
/// `None` where a log evidence has no error bar.
pub(crate) fn intervals(
    log_z: &[Estimate],
    prior: &[f64],
    seed: u64,
    streams: &[u64],
) -> Option<Vec<[f64; 2]>> {
    let errors: Vec<f64> = log_z.iter().map(|z| z.se).collect::<Option<_>>()?;
    let scores = scores(log_z.iter().map(|z| z.value), prior);
    let simulated = |m: usize| {
        let mut rng = stream(seed, streams[m], u64::MAX, "probability");
        let (score, error) = (scores[m], errors[m]);
        (0..DRAWS).map(move |_| {
            let z = normal(&mut rng);
            score + error * z
        })
    };
    // Two passes over the same numbers, since all of them at once may be too many to keep.
    let mut totals = vec![f64::NEG_INFINITY; DRAWS];
    for m in 0..scores.len() {
        totals.iter_mut().zip(simulated(m)).for_each(|(t, s)| *t = log_sum_exp(&[*t, s]));
    }
    let interval = |m: usize| {
        let mut shares: Vec<f64> = simulated(m).zip(&totals).map(|(s, t)| s - t).collect();
        shares.sort_unstable_by(f64::total_cmp);
        // Rounding may take a sum of one term a bit below that term.
        [0.025, 0.975].map(|p| exp(shares[(p * DRAWS as f64) as usize].min(0.0)))
    };
    Some((0..scores.len()).map(interval).collect())
}

/// The probability that the model with the highest posterior probability truly has it, by
/// quadrature over its error x:
///
/// ```text
/// ∫ φ(x) Π_j Φ((l_w + x se_w − l_j)/se_j) dx,   l = log p(y|m) + log p(m).
/// ```
///
/// `None` where a log evidence has no error bar.
pub(crate) fn certainty(log_z: &[Estimate], prior: &[f64]) -> Option<f64> {
    let errors: Vec<f64> = log_z.iter().map(|z| z.se).collect::<Option<_>>()?;
    let scores = scores(log_z.iter().map(|z| z.value), prior);
    let winner = largest(scores.iter().copied());
    let ahead = |x: f64| -> f64 {
        let at = scores[winner] + x * errors[winner];
        let others = (0..scores.len()).filter(|j| *j != winner);
        others.map(|j| normal_cdf(at - scores[j], errors[j])).product()
    };
    if errors[winner] == 0.0 {
        return Some(ahead(0.0));
    }
    let step = 18.0 / f64::from(POINTS);
    let (mut sum, mut total) = (0.0, 0.0);
    for i in 0..=POINTS {
        let x = -9.0 + f64::from(i) * step;
        let density = exp(-0.5 * x * x);
        total += density;
        sum += density * ahead(x);
    }
    Some((sum / total).min(1.0))
}

/// P(an error of this size is below x); without an error a step, ½ at 0.
fn normal_cdf(x: f64, error: f64) -> f64 {
    if error == 0.0 {
        return if x == 0.0 { 0.5 } else { f64::from(u8::from(x > 0.0)) };
    }
    0.5 * erfc(-x / error * std::f64::consts::FRAC_1_SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::special::normal_quantile;

    fn estimates(pairs: &[(f64, f64)]) -> Vec<Estimate> {
        pairs.iter().map(|(v, se)| Estimate::new(*v, *se)).collect()
    }

    /// For two models both questions have closed forms: the log odds are normal.
    #[test]
    fn two_models_have_a_closed_form() {
        for (gap, a, b, odds) in [
            (0.3, 0.2, 0.1, 1.0),
            (2.0, 1.0, 3.0, 0.25),
            (0.0, 0.0, 0.5, 1.0),
            (7.0, 0.3, 0.0, 2.0),
        ] {
            let log_z = estimates(&[(-1000.0, a), (-1000.0 - gap, b)]);
            let prior = [odds / (1.0 + odds), 1.0 / (1.0 + odds)];
            let (centre, sd) = (gap + f64::ln(odds), f64::hypot(a, b));
            let probability = |log_odds: f64| 1.0 / (1.0 + (-log_odds).exp());
            let found = posterior(&[-1000.0, -1000.0 - gap], &prior);
            assert!((found[0] - probability(centre)).abs() < 1e-12);

            let exact = normal_cdf(centre.abs(), sd);
            let found = certainty(&log_z, &prior).unwrap();
            assert!((found - exact).abs() < 1e-3, "{found} is not {exact}");

            let intervals = intervals(&log_z, &prior, 1, &[5, 6]).unwrap();
            for (end, p) in intervals[0].iter().zip([0.025, 0.975]) {
                let log_odds = (end / (1.0 - end)).ln();
                let z = (log_odds - centre) / sd;
                // A quantile of N draws errs by √(p(1−p)/N)/φ(z) = 0.027 standard deviations.
                assert!((z - normal_quantile(p)).abs() < 4.0 * 0.027, "{p}: {z}");
            }
            assert!((intervals[1][0] + intervals[0][1] - 1.0).abs() < 0.01);
        }
    }

    /// Equal models share the chance of being the best: 1/K each.
    #[test]
    fn equals_share_the_chance() {
        for k in [2, 3, 10] {
            let log_z = vec![Estimate::new(-5.0, 0.3); k];
            let found = certainty(&log_z, &vec![1.0 / k as f64; k]).unwrap();
            assert!((found - 1.0 / k as f64).abs() < 1e-9, "{found} is not 1/{k}");
        }
    }

    #[test]
    fn without_an_error_bar_nothing_is_said() {
        let log_z = [Estimate::new(1.0, 0.1), Estimate { value: 0.0, se: None }];
        assert_eq!(certainty(&log_z, &[0.5, 0.5]), None);
        assert_eq!(intervals(&log_z, &[0.5, 0.5], 1, &[1, 2]), None);
        let sure = [Estimate::new(1.0, 0.0), Estimate::new(-2000.0, 0.0)];
        assert_eq!(certainty(&sure, &[0.5, 0.5]), Some(1.0));
        assert_eq!(intervals(&sure, &[0.5, 0.5], 1, &[1, 2]), Some(vec![[1.0; 2], [0.0; 2]]));
    }
}
