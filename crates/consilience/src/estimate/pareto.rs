//! The tail shape k̂ of importance weights: is their mean to be trusted?
//!
//! Vehtari, Simpson, Gelman, Yao & Gabry (2024), *Pareto smoothed importance sampling*: a
//! generalised Pareto distribution is fitted to the largest weights by the method of Zhang &
//! Stephens (2009). A mean of weights has a usable error bar up to about k̂ = 0.7.

use crate::math::log_mean_exp;
use libm::{exp, log, log1p};

/// The shape k̂ of the tail of weights given in logs; `None` where the tail is too short to tell
/// (fewer than 5 distinct values), −∞ where all weights are equal.
pub fn tail_shape(log_weights: &[f64]) -> Option<f64> {
    let n = log_weights.len();
    let length = (0.2 * n as f64).min(3.0 * (n as f64).sqrt()).ceil() as usize;
    if length < 5 || length >= n {
        return None;
    }
    let mut sorted = log_weights.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let top = sorted[n - 1];
    if top == f64::NEG_INFINITY {
        return None;
    }
    let threshold = exp(sorted[n - length - 1] - top);
    let excess: Vec<f64> = sorted[n - length..].iter().map(|&w| exp(w - top) - threshold).collect();
    let excess: Vec<f64> = excess.into_iter().filter(|&x| x > 0.0).collect();
    // Weights that are equal to the last bits have no tail at all.
    if excess.is_empty() || 1.0 - threshold < 1e-12 {
        return Some(f64::NEG_INFINITY);
    }
    if excess.len() < 5 {
        return None;
    }
    // Bounded weights can pile up at their threshold, which the fit takes for a tail. Where no weight
    // is ten times the mean there is none to speak of: n weights with tail shape k would have a
    // largest one of about n^k means.
    let largest = top - log_mean_exp(log_weights);
    let shape = generalised_pareto_shape(&excess);
    let bound = if largest < log(10.0) { largest / log(n as f64) } else { f64::INFINITY };
    Some(shape.min(bound))
}

/// Zhang & Stephens' estimate of the shape from sorted positive excesses, drawn a little towards ½
/// as in Vehtari et al. (their prior is worth ten observations).
fn generalised_pareto_shape(x: &[f64]) -> f64 {
    let n = x.len() as f64;
    let largest = x[x.len() - 1];
    let quartile = x[((n / 4.0 + 0.5) as usize).clamp(1, x.len()) - 1];
    let points = 30 + n.sqrt() as usize;
    let candidate = |i: usize| {
        let step = 1.0 - (points as f64 / (i as f64 + 0.5)).sqrt();
        1.0 / largest + step / (3.0 * quartile)
    };
    let shape = |theta: f64| x.iter().map(|&v| log1p(-theta * v)).sum::<f64>() / n;
    let thetas: Vec<f64> = (0..points).map(candidate).collect();
    let profile: Vec<f64> = thetas
        .iter()
        .map(|&theta| {
            let k = shape(theta);
            n * (log(-theta / k) - k - 1.0)
        })
        .collect();
    let weight = |i: usize| 1.0 / profile.iter().map(|&other| exp(other - profile[i])).sum::<f64>();
    let theta: f64 = thetas.iter().enumerate().map(|(i, &theta)| theta * weight(i)).sum();
    (shape(theta) * n + 0.5 * 10.0) / (n + 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::stream;
    use rand::RngExt;

    /// Weights u^−k have a Pareto tail of shape k.
    fn pareto_weights(k: f64, n: usize, seed: u64) -> Vec<f64> {
        let mut rng = stream(seed, 0, 0, "pareto test");
        (0..n).map(|_| -k * (1.0 - rng.random::<f64>()).ln()).collect()
    }

    #[test]
    fn finds_the_shape_of_a_pareto_tail() {
        for k in [0.3, 0.5, 0.7, 1.0] {
            let mean = (1..=40)
                .map(|seed| tail_shape(&pareto_weights(k, 20_000, seed)).unwrap())
                .sum::<f64>()
                / 40.0;
            // Drawn towards ½ by its prior: ten observations against 425.
            assert!((mean - k).abs() < 0.04, "{mean} is not {k}");
        }
    }

    #[test]
    fn weights_that_say_nothing() {
        assert_eq!(tail_shape(&[0.0; 10]), None);
        assert_eq!(tail_shape(&[-3.0; 1000]), Some(f64::NEG_INFINITY));
        assert_eq!(tail_shape(&[f64::NEG_INFINITY; 1000]), None);
    }

    /// Most of the largest weights equal up to a hair, a few a little larger: no heavy tail.
    #[test]
    fn a_pile_of_weights_is_no_tail() {
        let weights: Vec<f64> = (0..10_000)
            .map(|i| if i % 100 == 0 { f64::from(i) * 1e-6 } else { f64::from(i) * 1e-12 })
            .collect();
        assert!(tail_shape(&weights).unwrap() < 0.1);
    }

    #[test]
    fn bounded_weights_have_a_light_tail() {
        let mut rng = stream(3, 0, 0, "pareto test");
        let weights: Vec<f64> = (0..4000).map(|_| rng.random::<f64>().ln()).collect();
        assert!(tail_shape(&weights).unwrap() < 0.2);
    }
}
