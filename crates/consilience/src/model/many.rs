//! Many models' points in one go.
//!
//! Models are taken one after the other, each over all rows, and not block after block with the models inside:
//! rows that many models read are in a cache that is near enough. An expansion over rows that are far from it takes
//! hardly longer than over rows that are in the nearest (docs/performance.md), and log densities at many points
//! visit a block many times anyway.

use super::Likelihood;
use crate::math::Matrix;
use crate::target::Expansion;
use rayon::prelude::*;

/// Each likelihood at points of its own, one per row: log p(y|θ), as [`Likelihood::values`] has it. Likelihoods
/// are shared out among threads.
pub fn values_many(asks: &[(&Likelihood, &Matrix)]) -> Vec<Vec<f64>> {
    let values = |(likelihood, thetas): &(&Likelihood, &Matrix)| {
        let points: Vec<&[f64]> = (0..thetas.rows()).map(|k| thetas.row(k)).collect();
        let mut out = vec![0.0; points.len()];
        likelihood.values(&points, &mut out);
        out
    };
    asks.par_iter().map(values).collect()
}

/// The same to second order, as [`Likelihood::expand`] has it.
pub fn expand_many(asks: &[(&Likelihood, &Matrix)]) -> Vec<Vec<Expansion>> {
    let expand = |(likelihood, thetas): &(&Likelihood, &Matrix)| {
        (0..thetas.rows()).map(|k| likelihood.expand(thetas.row(k))).collect()
    };
    asks.par_iter().map(expand).collect()
}
