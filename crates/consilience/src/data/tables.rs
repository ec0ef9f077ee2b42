//! Tables in memory as a source of data: Arrow's record batches, from this program or another.

use super::Table;
use super::arrays;
use super::inputs::Inputs;
use super::part::FilePart;
use super::read::{TextFormat, Wanted, check_names, select, wanted_names};
use super::spelling::Spelling;
use crate::halt::{Halt, go_on};
use crate::{Error, Place, Result};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use std::path::{Path, PathBuf};

/// Whatever hands out the batches of a table. What another language or library has comes through
/// [`RecordBatchStreamReader`](arrow_array::ffi_stream::RecordBatchStreamReader), without a copy.
pub type BatchReader = Box<dyn RecordBatchReader + Send>;

/// Data in memory.
///
/// Columns are what they would be in a Parquet file: their types say whether they are numbers, text or
/// logicals; a null is a missing value (and so is what the study's `data.na` names), and a number that is not finite an error.
pub enum Tables {
    /// One table, which is split as the study says.
    Whole(BatchReader),
    /// A table per shard: the data are split already.
    Shards(Vec<BatchReader>),
}

impl Tables {
    /// One table of these batches, of which there is at least one.
    pub fn whole(batches: Vec<RecordBatch>) -> Result<Tables> {
        Ok(Tables::Whole(reader(batches, Tables::name(None))?))
    }

    /// A table per shard, each of at least one batch.
    pub fn shards(tables: Vec<Vec<RecordBatch>>) -> Result<Tables> {
        let each = tables.into_iter().enumerate();
        let readers = each.map(|(k, batches)| reader(batches, Tables::name(Some(k))));
        Ok(Tables::Shards(readers.collect::<Result<_>>()?))
    }

    /// What a table is called in errors.
    fn name(shard: Option<usize>) -> PathBuf {
        shard.map_or("the table".into(), |k| format!("shard {k}").into())
    }

    /// The names of the columns of the first table.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let (first, shard) = match self {
            Tables::Whole(table) => (table, None),
            Tables::Shards(tables) => match tables.first() {
                Some(table) => (table, Some(0)),
                None => return Err(Error::input("there are no tables; give one per shard")),
            },
        };
        names(first, &Tables::name(shard))
    }

    /// These columns of all tables behind each other, in the first one's order of columns.
    pub(crate) fn read(
        self,
        wanted: &[String],
        format: &TextFormat,
        halt: Option<&Halt>,
    ) -> Result<Table> {
        let (first, all) = (
            self.names()?,
            match self {
                Tables::Whole(table) => vec![(Tables::name(None), table)],
                Tables::Shards(tables) => {
                    (0..).zip(tables).map(|(k, table)| (Tables::name(Some(k)), table)).collect()
                }
            },
        );
        let names = wanted_names(&all[0].0, &first, &Wanted::Named(wanted))?;
        let spelling = Spelling::new(format);
        let mut parts = Vec::with_capacity(all.len());
        for (name, table) in all {
            let part = decode(&name, table, &names, (&spelling, halt))?;
            parts.push((name, part));
        }
        Inputs::of_tables(names, parts).into_table()
    }
}

fn reader(batches: Vec<RecordBatch>, name: PathBuf) -> Result<BatchReader> {
    let Some(first) = batches.first() else {
        return Err(Error::input_at(
            Place::file(name),
            "the table has no batches; give one at least",
        ));
    };
    let schema = first.schema();
    Ok(Box::new(RecordBatchIterator::new(batches.into_iter().map(Ok), schema)))
}

fn names(table: &BatchReader, name: &Path) -> Result<Vec<String>> {
    let names: Vec<String> = table.schema().fields().iter().map(|f| f.name().clone()).collect();
    check_names(Place::file(name), &names)?;
    Ok(names)
}

/// These columns of one table, of at least one row. Others are not looked at.
fn decode(
    name: &Path,
    table: BatchReader,
    wanted: &[String],
    (spelling, halt): (&Spelling, Option<&Halt>),
) -> Result<FilePart> {
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let places = select(name, &wanted, false, &names(&table, name)?)?;
    let schema = table.schema();
    let empty = places.iter().map(|&i| arrays::empty(name, schema.field(i)));
    let mut columns = empty.collect::<Result<Vec<_>>>()?;
    let mut rows = 0u64;
    let at_row = |rows: u64| Place { row: Some(rows + 1), ..Place::file(name) };
    for batch in table {
        go_on(halt)?;
        let batch = batch.map_err(|error| {
            Error::input_at(at_row(rows), format!("the table cannot be read from here on: {error}"))
        })?;
        // Readers promise this; those of other languages may not keep it.
        let fits = |&i: &usize| {
            let array = batch.columns().get(i);
            array.is_some_and(|array| array.data_type() == schema.field(i).data_type())
        };
        if !places.iter().all(fits) {
            let message = "from here on the columns are not those that the table began with; give batches of one schema";
            return Err(Error::input_at(at_row(rows), message));
        }
        arrays::add(&mut columns, &places, &batch, (name, rows), spelling)?;
        rows += batch.num_rows() as u64;
        if rows >= u64::from(u32::MAX) {
            let message = "the table has more than 4,294,967,294 rows; split it over shards";
            return Err(Error::input_at(Place::file(name), message));
        }
    }
    if rows == 0 {
        let message = "the table has columns but no rows; leave it out";
        return Err(Error::input_at(Place::file(name), message));
    }
    let columns = columns.into_iter().map(|column| column.finish(false)).collect();
    Ok(FilePart { columns, numbers: (1..=rows as u32).collect(), comments: 0 })
}
