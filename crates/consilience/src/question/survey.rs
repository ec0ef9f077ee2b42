//! How a design looks on a shard.

use super::Kind;
use super::checks::{self, Fault, ensure, finite, numbers};
use crate::data::{Moments, Recipe, ShardData, Table};
use crate::model::{Family, Model, over_chunks, refuse_outcomes};
use crate::shard::Shard;
use crate::{Error, Place, Result};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::sync::Arc;

/// Asks for rows and columns of a design that models share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// The family, whose outcomes the rows must have.
    pub family: Family,
    /// The design.
    pub design: Arc<Recipe>,
    /// Whether means and squared deviations of its columns are wanted: a prior is per standard deviation.
    pub units: bool,
}

/// How a design, or a model's part of it, looks on one shard, or on all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SurveyAnswer {
    /// Observations: rows, each counted with its weight.
    pub observations: f64,
    /// Per column, the observations in which it is not 0; of a model's part, of free coefficients only.
    pub nonzero: Vec<f64>,
    /// Per column, its mean; empty where units are not wanted, as are the squares.
    pub means: Vec<f64>,
    /// Per column, the sum of squared distances from its mean.
    pub squares: Vec<f64>,
    /// The mean of the offsets; 0 if there are none.
    pub offset: f64,
}

impl SurveyAnswer {
    /// So many observations, of whose columns nothing is known.
    pub(crate) fn of_rows(observations: f64) -> SurveyAnswer {
        let (nonzero, means, squares) = Default::default();
        SurveyAnswer { observations, nonzero, means, squares, offset: 0.0 }
    }
}

impl Kind for Survey {
    const NAME: &'static str = "survey";

    type Answer = SurveyAnswer;

    fn models(&self) -> Vec<&Arc<Model>> {
        Vec::new()
    }

    fn check(&self) -> Fault {
        checks::recipe(&self.design)
    }

    fn answer(&self, shard: &Shard) -> Result<SurveyAnswer> {
        survey(shard.data(), self.family, &self.design, self.units)
    }

    fn accept(&self, found: &SurveyAnswer) -> Fault {
        let SurveyAnswer { observations, nonzero, means, squares, offset } = found;
        let columns = self.design.columns.len();
        checks::observations(*observations)?;
        ensure(nonzero.len() == columns, "it counts rows of more columns or fewer")?;
        ensure(
            nonzero.iter().all(|n| (0.0..=*observations).contains(n)),
            "it counts more rows in a column than there are",
        )?;
        let wanted = if self.units { columns } else { 0 };
        ensure(
            means.len() == wanted && squares.len() == wanted,
            "its means of columns are too many or too few",
        )?;
        ensure(finite(means) && finite(squares), "its means of columns are not finite")?;
        ensure(offset.is_finite(), "its mean of the offsets is not finite")?;
        ensure(squares.iter().all(|s| *s >= 0.0), "its squared deviations are negative")
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
            sum.observations += other.observations;
        }
        Some(sum)
    }

    fn explain(&self) -> String {
        format!(
            "survey: the number of rows, and per design column the rows in which it is not 0{}",
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
            "  rows, counted with weights: {}\n  rows in which each of {p} design columns is not 0: {}\n",
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
        1024 + 40 * self.design.columns.len() as u64
    }
}

/// What a chunk of rows says of one column.
#[derive(Clone, Copy, Default)]
struct Column {
    /// Observations in which it is not 0.
    nonzero: f64,
    square: f64,
    moments: Moments,
}

/// The rows of a chunk, and the columns that are looked at together: the same for every design, so that what is
/// said of a column does not depend on its company.
const ROWS: usize = 64 * 960;
const COLUMNS: usize = 32;

/// Looks at every row: at its outcome, which has to be one that the family can have, and at its columns, whose
/// squares have to be numbers.
fn survey(data: &ShardData, family: Family, design: &Recipe, units: bool) -> Result<SurveyAnswer> {
    let numbers: Vec<u32> = (0..design.columns.len() as u32).collect();
    let batches = data.batches(ROWS);
    let (mut observations, mut offset) = (0.0, Moments::default());
    let mut columns = vec![Column::default(); numbers.len()];
    for group in 0..numbers.len().div_ceil(COLUMNS).max(1) {
        let own = group * COLUMNS..numbers.len().min((group + 1) * COLUMNS);
        let part = design.part(&numbers[own.clone()]);
        let chunks = over_chunks(batches.len(), |k| {
            chunk(&*data.batch(batches[k].clone())?, family, &part, units)
        });
        (observations, offset) = (0.0, Moments::default());
        for chunk in chunks {
            let (rows, found, own_offset) = chunk?;
            observations += rows;
            offset = offset.merge(own_offset);
            for (sum, more) in columns[own.clone()].iter_mut().zip(found) {
                sum.nonzero += more.nonzero;
                sum.square += more.square;
                sum.moments = sum.moments.merge(more.moments);
            }
        }
    }
    for (column, name) in columns.iter_mut().zip(design.names()) {
        // Squares overflow long before the numbers do.
        if !column.square.is_finite() {
            return Err(too_large(name));
        }
        settle(&mut column.moments, name)?;
    }
    settle(&mut offset, "offset")?;
    let moments = || columns.iter().filter(|_| units).map(|c| c.moments);
    Ok(SurveyAnswer {
        observations,
        nonzero: columns.iter().map(|c| c.nonzero).collect(),
        means: moments().map(|m| m.mean).collect(),
        squares: moments().map(|m| m.m2).collect(),
        offset: offset.mean,
    })
}

/// What a chunk of rows says: observations, columns, offset.
fn chunk(
    table: &Table,
    family: Family,
    design: &Recipe,
    units: bool,
) -> Result<(f64, Vec<Column>, Moments)> {
    let found = design.design(table)?;
    refuse_outcomes(family, &design.response.text, &found.response, table)?;
    let weights = found.weights.as_deref();
    let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
    let column = |values: &Vec<f64>| {
        let mut column = Column::default();
        for (i, x) in values.iter().enumerate().filter(|(_, x)| **x != 0.0) {
            column.nonzero += weight(i);
            column.square += weight(i) * x * x;
        }
        if units {
            column.moments = Moments::of(values, weights);
        }
        column
    };
    let columns: Vec<Column> = found.columns.iter().map(column).collect();
    let offset = found.offset.filter(|_| units);
    let offset = offset.map_or_else(Moments::default, |o| Moments::of(&o, weights));
    Ok(((0..table.rows()).map(weight).sum(), columns, offset))
}

/// A column that does not vary has no unit: without the rounding error of a mean.
fn settle(moments: &mut Moments, name: &str) -> Result<()> {
    if moments.min == moments.max {
        (moments.mean, moments.m2) = (moments.min, 0.0);
    }
    let finite = moments.mean.is_finite() && moments.m2.is_finite();
    if finite { Ok(()) } else { Err(too_large(name)) }
}

fn too_large(column: &str) -> Error {
    let message =
        "the values are too large to compute with; write the column in other units, or as scale(x)";
    Error::input_at(Place::default().column(column), message)
}
