//! How a design looks on a shard.

use super::Kind;
use super::checks::{self, Fault, ensure, finite, numbers};
use super::fixed::Layout;
use super::moments::MomentsLayout;
use crate::data::{Moments, Recipe, ShardData, Table};
use crate::math::dot;
use crate::model::{Family, Model, observations, over_chunks, refuse_outcomes};
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
    /// Rows, whatever their weights: what work there is.
    pub rows: f64,
    /// Observations: rows, each counted with its weight, or with its trials if the outcome counts them.
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
        SurveyAnswer { rows: observations, observations, nonzero, means, squares, offset: 0.0 }
    }

    /// What shards say together, whatever their order; `None` if there are none, or numbers that nobody has.
    pub(crate) fn merged(answers: &[SurveyAnswer]) -> Option<SurveyAnswer> {
        let layout = answers.first()?.layout();
        let mut words = vec![0; layout.words()];
        answers.iter().try_for_each(|answer| layout.add(&mut words, &answer.numbers()))?;
        Some(SurveyAnswer::of_numbers(layout, &layout.read(&words)))
    }

    fn layout(&self) -> MomentsLayout {
        MomentsLayout { columns: self.nonzero.len(), units: !self.means.is_empty() }
    }

    fn numbers(&self) -> Vec<f64> {
        let mut out = vec![self.observations, self.offset, self.rows];
        out.extend([&self.nonzero, &self.means, &self.squares].into_iter().flatten());
        out
    }

    fn of_numbers(layout: MomentsLayout, numbers: &[f64]) -> SurveyAnswer {
        let mut each = numbers[3..].chunks(layout.columns.max(1)).map(<[f64]>::to_vec);
        let mut next = || each.next().unwrap_or_default();
        SurveyAnswer {
            observations: numbers[0],
            offset: numbers[1],
            rows: numbers[2],
            nonzero: next(),
            means: next(),
            squares: next(),
        }
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
        let SurveyAnswer { rows, observations, nonzero, means, squares, offset } = found;
        let columns = self.design.columns.len();
        checks::observations(*observations)?;
        checks::observations(*rows)?;
        ensure(rows.fract() == 0.0, "its number of rows is not whole")?;
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
        ensure(squares.iter().all(|s| *s >= 0.0), "its squared deviations are negative")?;
        let layout = found.layout();
        let fits = layout.add(&mut vec![0; layout.words()], &found.numbers()).is_some();
        ensure(fits, "its rows or columns are too large to be added up")
    }

    fn merge(&self, answers: &[SurveyAnswer]) -> Option<SurveyAnswer> {
        SurveyAnswer::merged(answers)
    }

    fn layout(&self) -> Option<Vec<Layout>> {
        Some(vec![Layout::of_moments(self.moments())])
    }

    fn numbers(answer: &SurveyAnswer) -> Vec<f64> {
        answer.numbers()
    }

    fn of_numbers(&self, numbers: &[f64]) -> Option<SurveyAnswer> {
        let layout = self.moments();
        (numbers.len() == layout.numbers()).then(|| SurveyAnswer::of_numbers(layout, numbers))
    }

    fn explain(&self) -> String {
        format!(
            "survey: the numbers of rows and of observations, and per design column the rows in which it is not 0{}",
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
            "  rows: {}\n  rows, counted with weights and trials: {}\n  rows in which each of {p} design columns is not 0: {}\n",
            answer.rows,
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

    /// Where a column is 0 in a few rows only, that is not told, however many observations these rows are.
    fn hush(
        &self,
        answer: &mut SurveyAnswer,
        shard: &Shard,
        _site: &str,
        min_rows: u64,
    ) -> Result<()> {
        let table = shard.data().table()?;
        let design = self.design.design(&table)?;
        let counts = observations(self.family, &design);
        let zeros = |values: &[f64]| {
            let counted = |i: usize| counts.as_ref().is_none_or(|counts| counts[i] > 0.0);
            values.iter().enumerate().filter(|(i, x)| **x == 0.0 && counted(*i)).count() as u64
        };
        for (nonzero, values) in answer.nonzero.iter_mut().zip(&design.columns) {
            if zeros(values) < min_rows {
                *nonzero = answer.observations;
            }
        }
        Ok(())
    }

    fn largest_answer(&self) -> u64 {
        1024 + 40 * self.design.columns.len() as u64
    }
}

impl Survey {
    fn moments(&self) -> MomentsLayout {
        MomentsLayout { columns: self.design.columns.len(), units: self.units }
    }
}

/// What some rows say of one column.
#[derive(Clone, Copy, Default)]
struct SurveyColumn {
    /// Observations in which it is not 0.
    nonzero: f64,
    square: f64,
    moments: Moments,
}

/// The rows that one thread looks at, a few at a time and by groups of columns: so few that they stay in cache.
/// The same for every design, so that what is said of a column does not depend on its company.
const ROWS: usize = 64 * 960;
const PIECE: usize = 4 * 960;
const COLUMNS: usize = 32;

/// Chunks that are looked at before what they say is put together, so that it does not pile up.
const CHUNKS: usize = 64;

/// Looks at every row: at its outcome, which has to be one that the family can have, and at its columns, whose
/// squares have to be numbers.
fn survey(data: &ShardData, family: Family, design: &Recipe, units: bool) -> Result<SurveyAnswer> {
    let numbers: Vec<u32> = (0..design.columns.len() as u32).collect();
    let mut parts: Vec<Recipe> = numbers.chunks(COLUMNS).map(|own| design.part(own)).collect();
    if parts.is_empty() {
        parts.push(design.part(&[]));
    }
    let mut all = SurveyFound {
        columns: vec![SurveyColumn::default(); numbers.len()],
        ..SurveyFound::default()
    };
    for batches in data.batches(ROWS).chunks(CHUNKS) {
        let chunks = over_chunks(batches.len(), |k| -> Result<SurveyFound> {
            let look = |table: &Table| look(table, family, &parts, units);
            let mut pieces = data.pieces(batches[k].clone(), PIECE, look)?.into_iter();
            let mut chunk = pieces.next().expect("one piece at least");
            pieces.for_each(|piece| chunk.merge(piece));
            Ok(chunk)
        });
        for chunk in chunks {
            all.merge(chunk?);
        }
    }
    let SurveyFound { rows, observations, mut columns, mut offset } = all;
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
        rows: rows as f64,
        observations,
        nonzero: columns.iter().map(|c| c.nonzero).collect(),
        means: moments().map(|m| m.mean).collect(),
        squares: moments().map(|m| m.m2).collect(),
        offset: offset.mean,
    })
}

/// What some rows say.
#[derive(Default)]
struct SurveyFound {
    rows: usize,
    observations: f64,
    columns: Vec<SurveyColumn>,
    offset: Moments,
}

impl SurveyFound {
    fn merge(&mut self, other: SurveyFound) {
        self.rows += other.rows;
        self.observations += other.observations;
        self.offset = self.offset.merge(other.offset);
        for (sum, more) in self.columns.iter_mut().zip(other.columns) {
            sum.nonzero += more.nonzero;
            sum.square += more.square;
            sum.moments = sum.moments.merge(more.moments);
        }
    }
}

/// What a piece says of a design that is given in parts.
fn look(table: &Table, family: Family, parts: &[Recipe], units: bool) -> Result<SurveyFound> {
    let mut all = SurveyFound::default();
    for (k, part) in parts.iter().enumerate() {
        let found = part.design(table)?;
        // The same data are the same, whether trials stand in rows of their own or are counted.
        let weights = observations(family, &found);
        let weights = weights.as_deref();
        // All parts have the same outcome, offset and weights.
        if k == 0 {
            refuse_outcomes(family, &part.response.text, &found, table)?;
            all.rows = table.rows();
            all.observations = weights.map_or(table.rows() as f64, |w| w.iter().sum());
            let offset = found.offset.as_ref().filter(|_| units);
            all.offset = offset.map_or_else(Moments::default, |o| Moments::of(o, weights));
        }
        let column = |values: &Vec<f64>| {
            let moments = if units { Moments::of(values, weights) } else { Moments::default() };
            let (nonzero, square) = sizes(values, weights);
            SurveyColumn { nonzero, square, moments }
        };
        all.columns.extend(found.columns.iter().map(column));
    }
    Ok(all)
}

/// The observations in which a column is not 0, and the sum of its squares.
fn sizes(values: &[f64], weights: Option<&[f64]>) -> (f64, f64) {
    let Some(weights) = weights else {
        let nonzero = values.iter().filter(|x| **x != 0.0).count();
        return (nonzero as f64, dot(values, values));
    };
    let (mut nonzero, mut square) = (0.0, 0.0);
    for (x, w) in values.iter().zip(weights).filter(|(x, _)| **x != 0.0) {
        nonzero += w;
        square += w * x * x;
    }
    (nonzero, square)
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
