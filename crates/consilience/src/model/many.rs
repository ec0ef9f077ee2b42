//! Many models' points in one go.
//!
//! Models are taken one after the other, each over all rows, and not block after block with the models inside. Log
//! densities at many points visit a block many times while it is in cache, whoever else may want it. Expansions at
//! one point do not, and could share what it costs to fetch far rows (`cargo bench --workspace --bench kernels --
//! shared` bounds that); but they are a small part of a study's work (docs/performance.md).

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
