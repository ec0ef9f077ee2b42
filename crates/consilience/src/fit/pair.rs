//! Bayes factors of two models from jumps between them.

use super::explore::VisitMoments;
use crate::Error;
use crate::Result;
use crate::estimate::Estimate;
use crate::estimate::chains::ess;
use crate::sample::jump::{Field, JumpLengths, PairChain, jump_between};
use crate::space::Subset;
use libm::{exp, log};
use serde::{Deserialize, Serialize};

/// What jumps between two models say of their evidences on a shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// log Z₁ − log Z₂, of the subposteriors without the models' priors, by the mean acceptance probabilities of
    /// jumps to and fro (Bartolucci, Scaccia & Mira 2006).
    pub accepted: Estimate,
    /// The same by the bridge that these jumps make, iterated to the best one (Meng & Wong 1996).
    pub bridged: Estimate,
    /// Jumps that were proposed from the first model and from the second.
    pub jumps: [u64; 2],
    /// Where the parameters of both were.
    pub moments: [VisitMoments; 2],
}

/// The Bayes factor of the first of two models to the second.
pub(super) fn factor(field: &Field, pair: [&Subset; 2], lengths: &JumpLengths) -> Result<Factor> {
    let chains = jump_between(field, pair, lengths)?;
    let tilt = chains[0].tilt;
    let side = |side: usize| -> Vec<f64> {
        let ratios = chains.iter().flat_map(|c| &c.sides[side].log_ratios);
        // From either model: log of (second/first), less what was expected of it.
        let sign = if side == 0 { 1.0 } else { -1.0 };
        ratios.map(|ratio| sign * ratio - tilt).collect()
    };
    let (first, second) = (side(0), side(1));
    if first.len() < 10 || second.len() < 10 {
        return Err(Error::numeric(
            "the chain between two models hardly ever jumped; use more draws",
        ));
    }
    let settled = |estimate: Option<Estimate>| {
        let estimate = estimate.filter(|e| e.value.is_finite() && e.se.is_some_and(f64::is_finite));
        let estimate = estimate.map(|e| Estimate { value: -(e.value + tilt), se: e.se });
        estimate.ok_or_else(|| {
            Error::numeric(
                "jumps between two models say nothing of their evidences; use more draws",
            )
        })
    };
    let accepted = settled(by_acceptance(&first, &second))?;
    let bridged = settled(by_bridge(&first, &second))?;
    let moments = [0, 1].map(|k| {
        let place = field.place(pair[k]);
        place.map(|place| VisitMoments::of(&place, &draws(&chains, k, place.coordinates.len())))
    });
    let [a, b] = moments;
    let jumps = [first.len() as u64, second.len() as u64];
    Ok(Factor { accepted, bridged, jumps, moments: [a?, b?] })
}

fn draws(chains: &[PairChain], side: usize, d: usize) -> Vec<&[f64]> {
    let count = |chain: &PairChain| chain.sides[side].log_ratios.len();
    let of = |c| (0..count(c)).map(move |k| &c.sides[side].thetas[k * d..(k + 1) * d]);
    chains.iter().flat_map(of).collect()
}

/// log of mean α(1 → 2) over mean α(2 → 1), which is Z₂/Z₁. Ratios are of second to first at both.
fn by_acceptance(first: &[f64], second: &[f64]) -> Option<Estimate> {
    let there: Vec<f64> = first.iter().map(|l| exp(l.min(0.0))).collect();
    let back: Vec<f64> = second.iter().map(|l| exp((-l).min(0.0))).collect();
    ratio_of_means(&there, &back)
}

/// log r = log Z₂/Z₁ with
///
/// ```text
/// r = [mean at 1 of x/(s₂x + s₁r)] / [mean at 2 of 1/(s₂x + s₁r)],   x = f₂g₁/(f₁g₂).
/// ```
fn by_bridge(first: &[f64], second: &[f64]) -> Option<Estimate> {
    const ITERATIONS: usize = 1000;
    let (n1, n2) = (first.len() as f64, second.len() as f64);
    let (s1, s2) = (n1 / (n1 + n2), n2 / (n1 + n2));
    let mut log_r = 0.0;
    for _ in 0..ITERATIONS {
        let r = exp(log_r);
        // x/(s₂x + s₁r), written so that a large x does no harm.
        let above: Vec<f64> = first.iter().map(|l| 1.0 / (s2 + s1 * r * exp(-l))).collect();
        let below: Vec<f64> = second.iter().map(|l| 1.0 / (s2 * exp(*l) + s1 * r)).collect();
        let next = log(mean(&above) / mean(&below));
        if !next.is_finite() {
            return None;
        }
        if (next - log_r).abs() < 1e-10 {
            return ratio_of_means(&above, &below).map(|e| Estimate { value: next, se: e.se });
        }
        log_r = next;
    }
    None
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The logarithm of a ratio of means with its error, draws taken for what they are worth.
fn ratio_of_means(above: &[f64], below: &[f64]) -> Option<Estimate> {
    let relative = |values: &[f64]| {
        let mean = mean(values);
        let n = values.len() as f64;
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
        // Values that are all the same have no error.
        let effective = ess(&[values]).unwrap_or(n).min(n);
        variance / (mean * mean * effective)
    };
    let se = (relative(above) + relative(below)).sqrt();
    Some(Estimate::new(log(mean(above) / mean(below)), se)).filter(|e| e.value.is_finite())
}
