//! The sufficient statistics of Gaussian models.

use super::Kind;
use super::checks::{self, Fault, ensure, finite, numbers};
use crate::Result;
use crate::data::Recipe;
use crate::kernel::{BLOCK_ROWS, Kernel};
use crate::model::{Centred, Model, chunk_rows, over_chunks};
use crate::shard::Shard;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Asks for n and the triangular factor of all columns and the outcome, around their means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// The design that has the columns of all models.
    pub recipe: Arc<Recipe>,
    /// Whose instructions the sums use.
    pub kernel: Kernel,
}

/// The values of rows that are taken together: these stay in cache,
const PIECE: usize = 1 << 18;
/// unless columns are so many that merging factors would take longer than making them: rows per column.
const MERGED: usize = 32;

impl Kind for Statistics {
    const NAME: &'static str = "statistics";

    type Answer = Centred;

    fn models(&self) -> Vec<&Arc<Model>> {
        Vec::new()
    }

    fn check(&self) -> Fault {
        checks::recipe(&self.recipe)
    }

    fn answer(&self, shard: &Shard) -> Result<Centred> {
        let (data, recipe) = (shard.data(), &self.recipe);
        let columns = recipe.columns.len() + 2;
        let batches = data.batches(chunk_rows(recipe.columns.len()));
        let most = (PIECE / columns).max(MERGED * columns).next_multiple_of(BLOCK_ROWS);
        let parts = over_chunks(batches.len(), |k| {
            let parts = data.pieces(batches[k].clone(), most, |table| {
                let design = recipe.design(table)?;
                let weights = design.weights.unwrap_or_else(|| vec![1.0; design.response.len()]);
                let columns = design.columns.iter().chain([&design.response]);
                let columns: Vec<&[f64]> = columns.map(Vec::as_slice).collect();
                Ok(Centred::of_columns(&columns, &weights, self.kernel))
            })?;
            Ok(Centred::merge(parts.iter()))
        });
        let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(Centred::merge(parts.iter()))
    }

    fn accept(&self, answer: &Centred) -> Fault {
        let Centred { observations, shifts, factor } = answer;
        let size = self.recipe.columns.len() + 2;
        checks::observations(*observations)?;
        ensure(factor.has_size(size, size), "its sums of products have the wrong size")?;
        ensure(factor.is_sound(size, size), "its sums of products are not finite")?;
        ensure(shifts.len() == size - 1, "its means are too many or too few")?;
        ensure(finite(shifts), "its means are not finite")
    }

    /// In the shards' order: factors are put together by rotations, which no sum of numbers is. Sums of
    /// squares would add up, but lose every digit of columns far from 0.
    fn merge(&self, answers: &[Centred]) -> Option<Centred> {
        Some(Centred::merge(answers.iter()))
    }

    fn explain(&self) -> String {
        "statistics: the number of rows, the means of all columns of the models' designs and of the outcome, and the sums of products of any two of them around these (from a site with no more rows than columns: its rows, up to a rotation)".into()
    }

    fn explain_answer(answer: &Centred) -> String {
        let p = answer.shifts.len();
        format!(
            "  rows, counted with weights: {}\n  means of {p} columns: {}\n  sums of products of any two of {p} columns, designs' and outcome, around their means: {p} × {p} numbers\n",
            answer.observations,
            numbers(&answer.shifts)
        )
    }

    fn largest_answer(&self) -> u64 {
        let size = self.recipe.columns.len() as u64 + 3;
        1024 + 10 * size * size
    }

    fn columns_told(answer: &Centred) -> usize {
        answer.shifts.len()
    }
}
