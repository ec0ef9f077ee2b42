//! How a model's design looks on a shard.

use super::Kind;
use super::checks::{self, Fault, ensure, finite, indefinite, numbers};
use crate::data::Moments;
use crate::math::Matrix;
use crate::model::{Model, chunk_rows, over_chunks};
use crate::shard::Shard;
use crate::{Error, Place, Result};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::sync::Arc;

/// Asks for rows and columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// The model. Its priors are as they were written: what the shards answer is what those per
    /// standard deviation are settled by, and does not depend on them.
    pub model: Arc<Model>,
    /// Whether means and squared deviations of its columns are wanted: a prior is per standard deviation.
    pub units: bool,
}

/// How a model's design looks on one shard, or on all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SurveyAnswer {
    /// Observations: rows, each counted with its weight.
    pub observations: f64,
    /// Per free coefficient, the observations in which its column is not 0.
    pub nonzero: Vec<f64>,
    /// X'X over the free coefficients.
    pub gram: Matrix,
    /// Per design column, its mean; empty where units are not wanted, as are the squares.
    pub means: Vec<f64>,
    /// Per design column, the sum of squared distances from its mean.
    pub squares: Vec<f64>,
    /// The mean of the offsets; 0 if there are none.
    pub offset: f64,
}

impl SurveyAnswer {
    /// So many observations, of whose columns nothing is known.
    pub(crate) fn of_rows(observations: f64) -> SurveyAnswer {
        let (nonzero, means, squares) = Default::default();
        let gram = Matrix::zeros(0, 0);
        SurveyAnswer { observations, nonzero, gram, means, squares, offset: 0.0 }
    }
}

impl Kind for Survey {
    const NAME: &'static str = "survey";

    type Answer = SurveyAnswer;

    fn models(&self) -> Vec<&Arc<Model>> {
        vec![&self.model]
    }

    fn check(&self) -> Fault {
        checks::model(&self.model)
    }

    fn answer(&self, shard: &Shard) -> Result<SurveyAnswer> {
        let model = &self.model;
        let likelihood = shard.likelihood(model)?;
        let gram = likelihood.gram();
        if let Some(error) = likelihood.take_failure() {
            return Err(error);
        }
        // Squares overflow long before the numbers do.
        let unfit = model.free().zip(gram.diagonal()).find(|(_, square)| !square.is_finite());
        if let Some((parameter, _)) = unfit {
            return Err(too_large(&parameter.name, model));
        }
        let (columns, offset) =
            if self.units { spreads(shard, model)? } else { Default::default() };
        Ok(SurveyAnswer {
            observations: likelihood.observations,
            nonzero: likelihood.nonzero.clone(),
            gram,
            means: columns.iter().map(|m| m.mean).collect(),
            squares: columns.iter().map(|m| m.m2).collect(),
            offset: offset.mean,
        })
    }

    fn accept(&self, found: &SurveyAnswer) -> Fault {
        let columns = self.model.coefficients();
        let free: Vec<usize> =
            (0..columns.len()).filter(|&j| columns[j].prior.fixed().is_none()).collect();
        let p = free.len();
        checks::observations(found.observations)?;
        ensure(
            found.nonzero.len() == p && found.gram.has_size(p, p),
            "its X'X has the wrong size",
        )?;
        ensure(found.gram.is_sound(p, p), "its X'X is not finite")?;
        ensure(
            found.nonzero.iter().all(|n| (0.0..=found.observations).contains(n)),
            "it counts more rows in a column than there are",
        )?;
        ensure(!indefinite(&found.gram), "its X'X is not positive semidefinite")?;
        let SurveyAnswer { means, squares, offset, observations: n, .. } = found;
        let wanted = if self.units { columns.len() } else { 0 };
        ensure(
            means.len() == wanted && squares.len() == wanted,
            "its means of columns are too many or too few",
        )?;
        ensure(finite(means) && finite(squares), "its means of columns are not finite")?;
        ensure(offset.is_finite(), "its mean of the offsets is not finite")?;
        ensure(squares.iter().all(|s| *s >= 0.0), "its squared deviations are negative")?;
        // Σx² is both on the diagonal of X'X and m2 + n·mean².
        let apart = |(k, &j): (usize, &usize)| {
            let (square, sum) = (found.gram[(k, k)], squares[j] + n * means[j] * means[j]);
            (square - sum).abs() > 1e-6 * square + f64::MIN_POSITIVE
        };
        ensure(
            !(self.units && free.iter().enumerate().any(apart)),
            "its means of columns contradict its X'X",
        )
    }

    /// In the shards' order, as whoever has all of them would.
    fn merge(&self, answers: &[SurveyAnswer]) -> Option<SurveyAnswer> {
        let (first, others) = answers.split_first()?;
        let mut sum = first.clone();
        for other in others {
            let own = Moments::of_sums(sum.observations, sum.offset, 0.0);
            sum.offset = own.merge(Moments::of_sums(other.observations, other.offset, 0.0)).mean;
            for (j, (mean, square)) in sum.means.iter_mut().zip(&mut sum.squares).enumerate() {
                let own = Moments::of_sums(sum.observations, *mean, *square);
                let new = Moments::of_sums(other.observations, other.means[j], other.squares[j]);
                let both = own.merge(new);
                (*mean, *square) = (both.mean, both.m2);
            }
            sum.nonzero.iter_mut().zip(&other.nonzero).for_each(|(sum, more)| *sum += more);
            sum.gram.add_scaled(1.0, &other.gram);
            sum.observations += other.observations;
        }
        Some(sum)
    }

    fn explain(&self) -> String {
        format!(
            "survey of the model `{}`: the number of rows, per design column the rows in which it is not 0, and X'X{}",
            crate::error::clip(&self.model.name),
            if self.units {
                "; mean and squared deviations of every design column, and the mean of the offsets"
            } else {
                ""
            }
        )
    }

    fn explain_answer(answer: &SurveyAnswer) -> String {
        let p = answer.nonzero.len();
        let mut out = format!(
            "  rows, counted with weights: {}\n  rows in which each of {p} design columns is not 0: {}\n  X'X: {p} × {p} sums of products of design columns\n",
            answer.observations,
            numbers(&answer.nonzero)
        );
        if !answer.means.is_empty() {
            let _ = writeln!(out, "  means of the design columns: {}", numbers(&answer.means));
            let squares = numbers(&answer.squares);
            let _ = writeln!(out, "  their squared deviations, summed: {squares}");
            let _ = writeln!(out, "  mean of the offsets: {}", answer.offset);
        }
        out
    }

    fn largest_answer(&self) -> u64 {
        let d = self.model.parameters.len() as u64 + 4;
        1024 + 10 * d * d
    }

    fn columns_told(answer: &SurveyAnswer) -> usize {
        answer.nonzero.len()
    }
}

/// The moments of every column of a design, and those of the offsets.
fn spreads(shard: &Shard, model: &Model) -> Result<(Vec<Moments>, Moments)> {
    let Some(regression) = model.regression() else { return Ok(Default::default()) };
    let (recipe, data) = (regression.recipe(), shard.data());
    let batches = data.batches(chunk_rows(recipe.columns.len()));
    let parts = over_chunks(batches.len(), |k| {
        let design = recipe.design(&*data.batch(batches[k].clone())?)?;
        let columns = design.columns.iter().chain(&design.offset);
        let of = |column: &Vec<f64>| Moments::of(column, design.weights.as_deref());
        Ok(columns.map(of).collect::<Vec<Moments>>())
    });
    let mut sums = vec![Moments::default(); recipe.columns.len() + 1];
    for part in parts {
        sums.iter_mut().zip(part?).for_each(|(sum, more)| *sum = sum.merge(more));
    }
    let names = recipe.names().into_iter().chain(["offset"]);
    for (sum, name) in sums.iter_mut().zip(names) {
        if sum.min == sum.max {
            // Without the rounding error of a mean: a column that does not vary has no unit.
            (sum.mean, sum.m2) = (sum.min, 0.0);
        }
        if !(sum.mean.is_finite() && sum.m2.is_finite()) {
            return Err(too_large(name, model));
        }
    }
    let offset = sums.pop().expect("there is one more than columns");
    Ok((sums, offset))
}

fn too_large(column: &str, model: &Model) -> Error {
    let message = format!(
        "model `{}`: the values are too large to compute with; write the column in other units, or as scale(x)",
        model.name
    );
    Error::input_at(Place::default().column(column), message)
}
