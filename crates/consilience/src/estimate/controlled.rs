//! The mean of terms of mirrored draws, with control variates.
//!
//! Draws that mirror each other are counted as pairs. Functions of them whose expectation is known (the proposal's
//! [controls](crate::math::proposal::Draws::controls)) say by what their own means are off; what a least-squares line says
//! of the terms is taken away (Owen & Zhou 2000). The error is that of the line's intercept by leaving out pairs one at a
//! time.

use crate::math::dot;
use crate::math::proposal::Controls;

/// The share of a column's length below which it says nothing that those before it do not.
const NOTHING_NEW: f64 = 1e-6;
/// What a pair leaves to the others at the least: beyond that, nothing could be said without it.
const LEAST_LEFT: f64 = 1e-3;
/// The fewest degrees of freedom that are believed.
const LEAST_FREEDOM: f64 = 4.0;

/// The mean of terms, one per draw, and its standard error.
pub(super) fn mean_and_error(terms: &[f64], controls: &[Controls]) -> (f64, f64) {
    let pairs = terms.chunks_exact(2).map(|pair| 0.5 * (pair[0] + pair[1]));
    let terms: Vec<f64> = pairs.collect();
    let n = terms.len() as f64;
    let column = |j: usize| -> Vec<f64> {
        controls.chunks_exact(2).map(|pair| 0.5 * (pair[0][j] + pair[1][j])).collect()
    };
    let mut basis = vec![vec![1.0 / n.sqrt(); terms.len()]];
    // The intercept is this combination of the basis' products with the terms.
    let mut intercept = vec![1.0 / n.sqrt()];
    for j in 0..Controls::default().len() {
        let mut new = column(j);
        let length = dot(&new, &new).sqrt();
        let mut along = vec![0.0; basis.len()];
        // Twice, so that rounding leaves it at right angles.
        for _ in 0..2 {
            for (along, old) in along.iter_mut().zip(&basis) {
                let by = dot(&new, old);
                *along += by;
                new.iter_mut().zip(old).for_each(|(x, y)| *x -= by * y);
            }
        }
        let left = dot(&new, &new).sqrt();
        if left > NOTHING_NEW * length && left.is_finite() {
            new.iter_mut().for_each(|x| *x /= left);
            intercept.push(-dot(&along, &intercept) / left);
            basis.push(new);
        }
    }
    let slopes: Vec<f64> = basis.iter().map(|column| dot(column, &terms)).collect();
    let at = |k: usize, by: &[f64]| -> f64 {
        basis.iter().zip(by).map(|(column, by)| column[k] * by).sum()
    };
    // What the mean would change by if a pair were left out.
    let changes: Vec<f64> = (0..terms.len())
        .map(|k| {
            let leverage: f64 = basis.iter().map(|column| column[k] * column[k]).sum();
            let residual = (terms[k] - at(k, &slopes)) / (1.0 - leverage).max(LEAST_LEFT);
            at(k, &intercept) * residual
        })
        .collect();
    (dot(&intercept, &slopes), (dot(&changes, &changes) * spread_of_t(&changes)).sqrt())
}

/// The variance of Student's t with as many degrees of freedom as the sum of these squares has: where it rests on few of
/// them, it may be too small by chance, and an error in units of it has a wide distribution.
fn spread_of_t(changes: &[f64]) -> f64 {
    let sum = dot(changes, changes);
    let fourth: f64 = changes.iter().map(|c| c.powi(4)).sum();
    if sum == 0.0 {
        return 1.0;
    }
    let relative_variance = fourth / (sum * sum) - 1.0 / changes.len() as f64;
    let freedom = (2.0 / relative_variance.max(0.0)).max(LEAST_FREEDOM);
    if freedom.is_finite() { freedom / (freedom - 2.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::ziggurat::normal;
    use crate::math::{Cholesky, Matrix, Mixture, Proposal, stream};

    /// y = 3 + 2u₁ − u₂ has the mean 3, whatever the draws.
    #[test]
    fn what_the_controls_explain_has_no_error() {
        let mut rng = stream(1, 0, 0, "controls");
        let controls: Vec<Controls> =
            (0..200).map(|_| [normal(&mut rng) + 0.3, normal(&mut rng)]).collect();
        let terms: Vec<f64> = controls.iter().map(|[a, b]| 3.0 + 2.0 * a - b).collect();
        let (mean, error) = mean_and_error(&terms, &controls);
        assert!((mean - 3.0).abs() < 1e-12 && error < 1e-12, "{mean} ± {error}");
    }

    #[test]
    fn controls_that_say_nothing_leave_the_mean_of_pairs() {
        let mut rng = stream(1, 0, 0, "none");
        let terms: Vec<f64> = (0..100).map(|_| normal(&mut rng)).collect();
        let (mean, error) = mean_and_error(&terms, &vec![[0.0; 2]; 100]);
        let pairs: Vec<f64> = terms.chunks_exact(2).map(|p| 0.5 * (p[0] + p[1])).collect();
        let plain = crate::estimate::importance::error_of_mean(&pairs);
        assert!((mean - terms.iter().sum::<f64>() / 100.0).abs() < 1e-14);
        assert!((0.95..1.15).contains(&(error / plain)), "{error} beside {plain}");
    }

    /// Densities whose integral is known, seen through a proposal that is a little off, over seeds 1 to 400: errors in
    /// standard errors have mean 0 and spread 1, and are far smaller than without pairs and controls.
    #[test]
    fn errors_are_calibrated_and_small() {
        let d = 6;
        let one = Cholesky::new(&Matrix::identity(d)).unwrap();
        let proposal = Proposal::from_precision(vec![0.0; d], &one, 0.1, 5.0);
        let mixture = Mixture::from(proposal);
        // A skewed density: Π φ(x)·2Φ(αx), whose integral is 1.
        let log_f = |x: &[f64]| -> f64 {
            let each = |x: f64| {
                let skew = libm::erfc(-0.2 * x * std::f64::consts::FRAC_1_SQRT_2);
                -0.5 * (x * x + crate::math::LOG_2PI) + libm::log(skew)
            };
            x.iter().map(|&x| each(x)).sum()
        };
        for count in [256, 1000] {
            let (mut scores, mut squares, mut plain) = (Vec::new(), 0.0, 0.0);
            for seed in 1..=400 {
                let draws = mixture.draw_mirrored(count, &mut stream(seed, 0, 0, "mirrored"));
                let weight =
                    |k: usize| libm::exp(log_f(draws.thetas.row(k)) - draws.log_density[k]);
                let weights: Vec<f64> = (0..count).map(weight).collect();
                let (mean, error) = mean_and_error(&weights, &draws.controls);
                scores.push((mean - 1.0) / error);
                squares += (mean - 1.0) * (mean - 1.0);
                let draws = mixture.draw(count, &mut stream(seed, 0, 0, "plain"));
                let weight =
                    |k: usize| libm::exp(log_f(draws.thetas.row(k)) - draws.log_density[k]);
                let off = (0..count).map(weight).sum::<f64>() / count as f64 - 1.0;
                plain += off * off;
            }
            let n = scores.len() as f64;
            let mean = scores.iter().sum::<f64>() / n;
            let spread = (dot(&scores, &scores) / n).sqrt();
            let worst = scores.iter().fold(0.0, |most: f64, z| most.max(z.abs()));
            assert!(mean.abs() < 4.0 / n.sqrt(), "{count} draws: mean {mean}");
            assert!((0.8..1.2).contains(&spread), "{count} draws: spread {spread}");
            assert!(worst < 4.5, "{count} draws: {worst}");
            assert!(squares < plain / 5.0, "{count} draws: {squares} beside {plain}");
        }
    }
}
