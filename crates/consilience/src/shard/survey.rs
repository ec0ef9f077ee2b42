//! How a design looks on a shard.

use crate::data::{Moments, Recipe, ShardData};
use crate::model::{Family, chunk_rows, over_chunks, refuse_outcomes};
use crate::question::Survey;
use crate::{Error, Place, Result};

/// What a chunk of rows says of one column.
#[derive(Clone, Copy, Default)]
struct Column {
    /// Observations in which it is not 0.
    nonzero: f64,
    square: f64,
    moments: Moments,
}

/// Looks at every row once: at its outcome, which has to be one that the family can have, and at its
/// columns, whose squares have to be numbers.
pub(super) fn survey(
    data: &ShardData,
    family: Family,
    design: &Recipe,
    units: bool,
) -> Result<Survey> {
    let batches = data.batches(chunk_rows(design.columns.len()));
    let parts = over_chunks(batches.len(), |k| {
        let table = data.batch(batches[k].clone())?;
        let found = design.design(&table)?;
        refuse_outcomes(family, &design.response.text, &found.response, &table)?;
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
        let observations = (0..table.rows()).map(weight).sum::<f64>();
        Ok((observations, columns, offset))
    });
    let mut observations = 0.0;
    let mut columns = vec![Column::default(); design.columns.len()];
    let mut offset = Moments::default();
    for part in parts {
        let (rows, found, own_offset) = part?;
        observations += rows;
        offset = offset.merge(own_offset);
        for (sum, more) in columns.iter_mut().zip(found) {
            sum.nonzero += more.nonzero;
            sum.square += more.square;
            sum.moments = sum.moments.merge(more.moments);
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
    Ok(Survey {
        observations,
        nonzero: columns.iter().map(|c| c.nonzero).collect(),
        means: moments().map(|m| m.mean).collect(),
        squares: moments().map(|m| m.m2).collect(),
        offset: offset.mean,
    })
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
