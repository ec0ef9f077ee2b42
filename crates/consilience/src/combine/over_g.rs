//! The integral over g of evidences that are known at a few values of it.
//!
//! A parabola of the likelihood, given by its precision along its axes and its slope along each, makes an evidence Z̃(g) in
//! closed form; log Z − log Z̃ is interpolated between nodes. Beyond the last it goes on as between the last two: where
//! columns tell two kinds of rows apart, Z rises without end, and what is out there counts.

use crate::estimate::Estimate;
use crate::math::log_sum_exp;
use crate::model::GSpread;
use libm::{exp, log, log1p};

/// How closely the integrand is looked at.
const STEP: f64 = 0.02;

/// Beyond the last node the integrand falls by so much at least, in nats for one of v: evidences have errors.
const LEAST_FALL: f64 = 0.1;

/// log Z̃(g) but for a constant: ∫ e^(b'δ − ½δ'Pδ) N(δ; 0, g) dδ along P's axes.
fn approximate(parabola: &[(f64, f64)], g: f64) -> f64 {
    let along = |(value, slope): &(f64, f64)| {
        let wide = g * value;
        0.5 * (slope * slope * g / (1.0 + wide) - log1p(wide))
    };
    parabola.iter().map(along).sum()
}

/// A fine grid over v, and the integrand on it by the parabola.
pub(super) fn grid(spread: &GSpread, parabola: &[(f64, f64)]) -> (Vec<f64>, Vec<f64>) {
    let (from, to) = spread.reach();
    let count = ((to - from) / STEP) as usize;
    let grid: Vec<f64> = (0..=count).map(|k| from + STEP * k as f64).collect();
    let height = |v: &f64| spread.log_density(*v) + approximate(parabola, spread.g(*v));
    let heights = grid.iter().map(height).collect();
    (grid, heights)
}

/// The integral over v, and the share of every node in it.
pub(super) fn integral(
    spread: &GSpread,
    parabola: &[(f64, f64)],
    places: &[f64],
    log_zs: &[Estimate],
) -> (Estimate, Vec<f64>) {
    if let [only] = log_zs {
        return (*only, vec![1.0]);
    }
    let off: Vec<f64> = places
        .iter()
        .zip(log_zs)
        .map(|(v, z)| z.value - approximate(parabola, spread.g(*v)))
        .collect();
    let (grid, heights) = grid(spread, parabola);
    let all: Vec<usize> = (0..places.len()).collect();
    let half: Vec<usize> = all.iter().copied().step_by(2).collect();
    let beyond = beyond(&grid, &heights, places, &off);
    let (value, shares) = interpolated(&grid, &heights, places, &off, &all, beyond);
    let (coarse, _) = interpolated(&grid, &heights, places, &off, &half, beyond);
    let (ended, _) = interpolated(&grid, &heights, places, &off, &all, 0.0);
    // Cubics through every node are off by a sixteenth of what those through every second are; not all of that is
    // taken for granted.
    let between = (value - coarse).abs() / 8.0;
    // What is beyond the last node is known less well.
    let outside = (value - ended).abs() / 4.0;
    let errors = shares.iter().zip(log_zs).map(|(share, z)| share * z.se.unwrap_or(0.0));
    let noise = errors.map(|e| e * e).sum::<f64>().sqrt();
    (Estimate::new(value, libm::hypot(libm::hypot(noise, between), outside)), shares)
}

/// How fast log Z − log Z̃ changes beyond the last node: as between the last two, but for what the integrand has to fall.
fn beyond(grid: &[f64], heights: &[f64], places: &[f64], off: &[f64]) -> f64 {
    let last = places.len() - 1;
    let slope = (off[last] - off[last - 1]) / (places[last] - places[last - 1]);
    let here = grid.partition_point(|v| *v < places[last]).clamp(1, grid.len() - 1);
    let fall = (heights[here] - heights[here - 1]) / (grid[here] - grid[here - 1]);
    slope.min(-LEAST_FALL - fall)
}

/// log ∫ e^(height + what is interpolated between these nodes), and the share of each of all nodes. Beyond the last what
/// is interpolated has this slope.
fn interpolated(
    grid: &[f64],
    heights: &[f64],
    places: &[f64],
    off: &[f64],
    used: &[usize],
    beyond: f64,
) -> (f64, Vec<f64>) {
    let (first, last) = (places[0], places[places.len() - 1]);
    let step = grid[1] - grid[0];
    let mut logs = Vec::with_capacity(grid.len());
    let mut weights = Vec::with_capacity(grid.len());
    for (v, height) in grid.iter().zip(heights) {
        let further = beyond * f64::max(v - last, 0.0);
        // Before the first node nothing changes any more.
        let v = v.clamp(first, last);
        let after = used.iter().position(|&k| places[k] > v).unwrap_or(used.len());
        let (left, right) = (after.saturating_sub(1), after.min(used.len() - 1));
        let (a, b) = (used[left], used[right]);
        let t = if a == b { 0.0 } else { (v - places[a]) / (places[b] - places[a]) };
        logs.push(height + cubic(v, places, off, used, left) + further);
        weights.push((a, b, t));
    }
    let total = log_sum_exp(&logs);
    let mut shares = vec![0.0; places.len()];
    for (log_mass, (a, b, t)) in logs.iter().zip(weights) {
        let mass = exp(log_mass - total);
        shares[a] += (1.0 - t) * mass;
        shares[b] += t * mass;
    }
    (total + log(step), shares)
}

/// The polynomial through the four nodes around, of which this one is the second where there is one before it.
fn cubic(v: f64, places: &[f64], off: &[f64], used: &[usize], left: usize) -> f64 {
    let first = left.saturating_sub(1).min(used.len() - 4);
    let own = &used[first..first + 4];
    let weight = |i: usize| -> f64 {
        let others = own.iter().filter(|&&j| j != i);
        others.map(|&j| (v - places[j]) / (places[i] - places[j])).product()
    };
    own.iter().map(|&i| weight(i) * off[i]).sum()
}
