//! Normal stand-ins for priors.
//!
//! Sums over all models at the centre need normal priors. A prior of another kind is replaced by the normal
//! density that does the same to the posterior: e^c·N(m, 1/d) with mass, mean and variance of prior times cavity,
//! where the cavity is what all but the prior says about the coefficient (expectation propagation; Minka 2001).
//! Importance weights take care of the difference.

use crate::math::LOG_2PI;
use crate::model::Prior;
use crate::space::StandIn;
use libm::{exp, log};

/// Points of the quadrature over a prior times a cavity.
const NODES: usize = 2_001;

/// A normal density as wide as the prior.
pub(super) fn of(prior: &Prior) -> StandIn {
    let spread = prior.spread();
    StandIn { precision: 1.0 / (spread * spread), mean: prior.centre(), log_scale: 0.0 }
}

/// The stand-in for a prior where everything else says N(mean, variance). It stays as it is where that has no
/// answer.
pub(super) fn matched(known: &StandIn, prior: &Prior, mean: f64, variance: f64) -> StandIn {
    if matches!(prior, Prior::Normal { .. }) || !(variance > 0.0 && variance.is_finite()) {
        return *known;
    }
    let Some((log_mass, m, v)) = tilted(prior, mean, variance) else { return *known };
    // In a tail that bends outwards the product is wider than the cavity, which no normal can make it; next to no
    // precision is as near as it gets.
    let least = 1e-4 / variance;
    let precision = (1.0 / v - 1.0 / variance).max(least);
    // The mean at which the product has the mean m.
    let own = (m * (precision + 1.0 / variance) - mean / variance) / precision;
    // ∫ N(x; mean, variance)·N(x; own, 1/precision) dx
    let wide = variance + 1.0 / precision;
    let overlap = -0.5 * (LOG_2PI + log(wide) + (mean - own) * (mean - own) / wide);
    let site = StandIn { precision, mean: own, log_scale: log_mass - overlap };
    let sound = site.mean.is_finite() && site.log_scale.is_finite();
    if sound { site } else { *known }
}

/// How deep a valley between two peaks is, in nats, and how far below the higher peak the other one still counts.
const VALLEY: f64 = 0.3;
const WITHIN: f64 = 30.0;

/// Whether a heavy-tailed prior times N(mean, variance) has two peaks.
pub(super) fn is_split(prior: &Prior, mean: f64, variance: f64) -> bool {
    if !matches!(prior, Prior::StudentT { .. }) {
        return false;
    }
    let (_, logs) = product(prior, mean, variance);
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let highest = |most: &mut f64, l: &f64| {
        *most = most.max(*l);
        Some(*most)
    };
    let before: Vec<f64> = logs.iter().scan(f64::NEG_INFINITY, highest).collect();
    let mut after: Vec<f64> = logs.iter().rev().scan(f64::NEG_INFINITY, highest).collect();
    after.reverse();
    // A valley has higher ground on both sides.
    (0..logs.len()).any(|i| {
        let lower = before[i].min(after[i]);
        logs[i] < lower - VALLEY && lower > top - WITHIN
    })
}

/// log mass, mean and variance of a prior times N(mean, variance).
fn tilted(prior: &Prior, mean: f64, variance: f64) -> Option<(f64, f64, f64)> {
    let (nodes, logs) = product(prior, mean, variance);
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !top.is_finite() {
        return None;
    }
    let (mut mass, mut first, mut second) = (0.0, 0.0, 0.0);
    for (x, l) in nodes.windows(2).zip(logs.windows(2)) {
        let half = 0.5 * (x[1] - x[0]);
        for (x, l) in x.iter().zip(l) {
            let (weight, t) = (half * exp(l - top), x - mean);
            mass += weight;
            first += weight * t;
            second += weight * t * t;
        }
    }
    let m = first / mass;
    let v = second / mass - m * m;
    (mass > 0.0 && v > 0.0).then(|| (top + log(mass), mean + m, v))
}

/// Points at which a prior times N(mean, variance) is looked at, in order, and its logarithms there.
fn product(prior: &Prior, mean: f64, variance: f64) -> (Vec<f64>, Vec<f64>) {
    // The product is within reach of either factor; the narrower one says how fine the points are, so that
    // they stand densest around both centres.
    let (sd, spread, centre) = (variance.sqrt(), prior.spread(), prior.centre());
    let mut nodes: Vec<f64> = Vec::with_capacity(2 * NODES + 1);
    for (at, width) in [(mean, sd), (centre, spread.min(sd))] {
        for k in 0..NODES {
            // From −12 to 12 widths, quadratically: steps of less than a thousandth near the middle.
            let t = 2.0 * k as f64 / (NODES - 1) as f64 - 1.0;
            nodes.push(at + 12.0 * width * t * t.abs().max(0.05));
        }
    }
    nodes.push(centre);
    nodes.sort_unstable_by(f64::total_cmp);
    nodes.dedup();
    let log_f = |x: f64| {
        prior.log_density(x) - 0.5 * ((x - mean) * (x - mean) / variance + LOG_2PI + log(variance))
    };
    let logs: Vec<f64> = nodes.iter().map(|&x| log_f(x)).collect();
    (nodes, logs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_normal_prior_times_a_cavity_is_matched_by_itself() {
        let prior = Prior::Normal { mean: 0.3, sd: 0.7 };
        let (mass, m, v) = tilted(&prior, 1.1, 0.25).unwrap();
        let precision = 1.0 / 0.49 + 4.0;
        assert!((v - 1.0 / precision).abs() < 1e-5, "{v}");
        assert!((m - (0.3 / 0.49 + 4.4) / precision).abs() < 1e-5, "{m}");
        let wide: f64 = 0.49 + 0.25;
        let exact = -0.5 * (LOG_2PI + wide.ln() + 0.64 / wide);
        assert!((mass - exact).abs() < 1e-5, "{mass} {exact}");
    }

    #[test]
    fn two_peaks_are_seen_where_a_heavy_tail_gives_way() {
        let tight = Prior::StudentT { df: 7.0, mean: 0.0, scale: 0.01 };
        let wide = Prior::StudentT { df: 7.0, mean: 0.0, scale: 1.0 };
        assert!(is_split(&tight, 2.0, 0.04));
        // Nearer by, the slope of the tail is steeper than that of the data.
        assert!(!is_split(&tight, 1.0, 0.04) && !is_split(&wide, 2.0, 0.04));
        assert!(!is_split(&Prior::Laplace { mean: 0.0, scale: 0.01 }, 2.0, 0.04));
    }

    #[test]
    fn a_stand_in_keeps_mass_mean_and_variance() {
        for (prior, mean, variance) in [
            (Prior::Laplace { mean: 0.0, scale: 0.03 }, 0.2, 0.01),
            (Prior::Laplace { mean: 0.0, scale: 0.5 }, 0.02, 1e-4),
            (Prior::StudentT { df: 1.0, mean: 0.0, scale: 1.0 }, 3.0, 0.04),
            (Prior::StudentT { df: 3.0, mean: 0.0, scale: 0.1 }, 0.0, 4.0),
        ] {
            let site = matched(&of(&prior), &prior, mean, variance);
            let own = Prior::Normal { mean: site.mean, sd: site.precision.powf(-0.5) };
            let (wanted, found) =
                (tilted(&prior, mean, variance).unwrap(), tilted(&own, mean, variance).unwrap());
            assert!(
                (wanted.0 - found.0 - site.log_scale).abs() < 1e-3,
                "{prior}: {wanted:?} {found:?}"
            );
            assert!(
                (wanted.1 - found.1).abs() < 1e-3 * variance.sqrt(),
                "{prior}: {wanted:?} {found:?}"
            );
            // But for a tail that bends outwards.
            let most = if wanted.2 > variance { 1e-2 } else { 1e-3 };
            assert!((wanted.2 / found.2 - 1.0).abs() < most, "{prior}: {wanted:?} {found:?}");
        }
    }
}
