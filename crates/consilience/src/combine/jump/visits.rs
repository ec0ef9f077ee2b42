//! Algorithm 3: shares of visits, and normals for the parameters.

use super::JumpModel;
use crate::combine::normal::{Normals, others};
use crate::estimate::Estimate;
use crate::fit::{Diagnostics, Exploration, Summary, VisitMoments, Visited};
use crate::math::{Cholesky, Matrix, dot};
use crate::space::{Space, Subset};
use libm::log;
use std::collections::{BTreeSet, HashMap};

/// Per model that a shard tells of, how often it was visited.
pub(super) fn counts(exploration: &Exploration) -> HashMap<Subset, u64> {
    exploration.models.iter().map(|v| (v.model, v.count())).collect()
}

/// All models that a shard tells of.
pub(super) fn union(explorations: &[Exploration]) -> BTreeSet<Subset> {
    explorations.iter().flat_map(|e| e.models.iter().map(|v| v.model)).collect()
}

/// A model as every shard saw it; `None` if one did not.
fn everywhere<'a>(explorations: &'a [Exploration], model: &Subset) -> Option<Vec<&'a Visited>> {
    let find = |e: &'a Exploration| e.models.iter().find(|v| v.model == *model);
    explorations.iter().map(find).collect()
}

/// The models that every shard visited.
pub(super) fn algorithm3(explorations: &[Exploration], space: &Space) -> Vec<JumpModel> {
    let mut models = Vec::new();
    for model in union(explorations) {
        let Some(seen) = everywhere(explorations, &model) else { continue };
        let moments: Vec<&VisitMoments> = seen.iter().map(|v| &v.moments).collect();
        // Moments without a product are as good as no visit.
        let Some(overlap) = overlap(&moments) else { continue };
        let shares: Vec<f64> =
            seen.iter().zip(explorations).map(|(v, e)| v.count() as f64 / e.draws as f64).collect();
        let value = shares.iter().map(|s| log(*s)).sum::<f64>() + overlap.value;
        let variance: f64 = seen.iter().map(|v| variance(&v.visits, None)).sum();
        let se = overlap.se.map(|se| libm::hypot(se, variance.sqrt()));
        models.push(JumpModel {
            model,
            name: space.name(&model),
            log_posterior: Estimate { value, se },
            shares,
            evidence: None,
        });
    }
    models
}

/// The variance of the logarithm of a share of visits, or of its ratio to another's, from runs of draws.
fn variance(visits: &[u32], to: Option<&[u32]>) -> f64 {
    let batches = visits.len() as f64;
    let relative = |visits: &[u32]| -> Vec<f64> {
        let mean = visits.iter().map(|&v| f64::from(v)).sum::<f64>() / batches;
        visits.iter().map(|&v| f64::from(v) / mean).collect()
    };
    let mut influence = relative(visits);
    match to {
        Some(other) => influence.iter_mut().zip(relative(other)).for_each(|(i, o)| *i -= o),
        None => influence.iter_mut().for_each(|i| *i -= 1.0),
    }
    let squares: f64 = influence.iter().map(|i| i * i).sum();
    squares / (batches * (batches - 1.0).max(1.0))
}

/// The error of a log Bayes factor: that of the ratios of visits, and those of both overlaps.
pub(super) fn error_of_ratio(explorations: &[Exploration], a: &Subset, b: &Subset) -> Option<f64> {
    let (a, b) = (everywhere(explorations, a)?, everywhere(explorations, b)?);
    let of = |(a, b): (&&Visited, &&Visited)| variance(&a.visits, Some(&b.visits));
    let mut total: f64 = a.iter().zip(&b).map(of).sum();
    for seen in [a, b] {
        let moments: Vec<&VisitMoments> = seen.iter().map(|v| &v.moments).collect();
        total += overlap(&moments)?.se?.powi(2);
    }
    Some(total.sqrt())
}

/// log ∫ ∏ N(θ; μₛ, Σₛ) dθ with the error of its moments.
pub(super) fn overlap(moments: &[&VisitMoments]) -> Option<Estimate> {
    let summaries: Vec<Summary> = moments.iter().map(|m| summary(m)).collect();
    let normals = Normals::new(&summaries).ok()?;
    let mut variance = 0.0;
    for (s, m) in moments.iter().enumerate().filter(|_| moments.len() > 1) {
        let Some(effective) = m.effective else { continue };
        let (centre, spread) = others(s, &normals.factors, &normals.all)?;
        variance += error_of_moments(m, &centre, &spread)? / effective;
    }
    let overlap = Estimate::new(normals.log_overlap(), variance.sqrt());
    Some(overlap).filter(|e| (e.value + variance).is_finite())
}

/// The variance, per draw, of log N(m; a, V + C) by the mean m and the covariance V of normal draws. With
/// M = V + C, u = M⁻¹(m − a) and G = ½(uu' − M⁻¹) it is u'Vu + 2 tr(GVGV).
fn error_of_moments(moments: &VisitMoments, centre: &[f64], spread: &Matrix) -> Option<f64> {
    let d = moments.mean.len();
    let v = &moments.covariance;
    let mut sum = v.clone();
    sum.add_scaled(1.0, spread);
    let factor = Cholesky::new(&sum)?;
    let offset: Vec<f64> = moments.mean.iter().zip(centre).map(|(m, a)| m - a).collect();
    let u = factor.solve(&offset);
    let mut g = factor.inverse();
    g.scale(-0.5);
    g.add_outer(0.5, &u);
    let gv = g.product(v);
    let trace: f64 = (0..d)
        .flat_map(|i| (0..d).map(move |j| (i, j)))
        .map(|(i, j)| gv[(i, j)] * gv[(j, i)])
        .sum();
    // (What somebody sends need not be symmetric.)
    Some((dot(&u, &v.times(&u)) + 2.0 * trace).max(0.0))
}

/// Moments as a fit reports them: of these only the moments are looked at.
fn summary(moments: &VisitMoments) -> Summary {
    let VisitMoments { mean, covariance, effective } = moments;
    Summary {
        method: "reversible jump".into(),
        log_z: Estimate::ZERO,
        mean: mean.clone(),
        covariance: covariance.clone(),
        // Not the mean, so that it is not taken for Laplace's approximation, whose precision is known.
        mode: Vec::new(),
        precision: Matrix::zeros(0, 0),
        effective: *effective,
        batches: Vec::new(),
        shape: None,
        diagnostics: Diagnostics::default(),
        warnings: Vec::new(),
    }
}
