//! Parquet files.

use super::arrays;
use super::files::unreadable;
use super::part::{ColumnKind, ColumnPart, FilePart};
use super::read::check_names;
use crate::{Error, Place, Result};
use arrow_array::RecordBatch;
use arrow_schema::FieldRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use rayon::prelude::*;
use std::fs::File;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

const BATCH: usize = 1 << 14;

/// The names of the columns.
pub(super) fn column_names(file: &Path) -> Result<Vec<String>> {
    guarded(file, || Ok(open(file)?.1))
}

/// What the file's writer noted under this name, if anything.
pub(super) fn note(file: &Path, name: &str) -> Result<Option<String>> {
    guarded(file, || {
        let notes = open(file)?.0.metadata().file_metadata().key_value_metadata().cloned();
        let note = notes.into_iter().flatten().find(|note| note.key == name);
        Ok(note.and_then(|note| note.value))
    })
}

/// Turns a panic into an error: the Parquet crate still panics on some corrupt files.
fn guarded<T>(file: &Path, read: impl FnOnce() -> Result<T>) -> Result<T> {
    // Nothing that a panic could leave half done outlives the closure.
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|panic| {
        let reason = panic.downcast_ref::<&str>().map(|s| s.to_string());
        let reason = reason.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(broken(file, reason.as_deref().unwrap_or("it cannot be decoded")))
    })
}

fn open(file: &Path) -> Result<(ParquetRecordBatchReaderBuilder<File>, Vec<String>)> {
    let input = File::open(file).map_err(|error| unreadable(file, &error))?;
    let metadata = input.metadata().map_err(|error| unreadable(file, &error))?;
    let at_file = |message: &str| Err(Error::input_at(Place::file(file), message));
    if metadata.is_dir() {
        return at_file("this is a directory; name the files in it");
    }
    if metadata.len() == 0 {
        return at_file("the file is empty; write it again, or leave it out");
    }
    let builder = ParquetRecordBatchReaderBuilder::try_new(input).map_err(|e| broken(file, e))?;
    let names: Vec<String> = builder.schema().fields().iter().map(|f| f.name().clone()).collect();
    check_names(Place::file(file), &names)?;
    Ok((builder, names))
}

fn broken(file: &Path, error: impl std::fmt::Display) -> Error {
    let message = format!(
        "the file is not a whole Parquet file of a known kind ({error}); copy or write it again"
    );
    Error::input_at(Place::file(file), message)
}

/// Reads the columns that `select` picks from the file's names.
pub(super) fn decode(
    file: &Path,
    select: &dyn Fn(&[String]) -> Result<Vec<usize>>,
) -> Result<FilePart> {
    guarded(file, || decode_unguarded(file, select))
}

fn decode_unguarded(
    file: &Path,
    select: &dyn Fn(&[String]) -> Result<Vec<usize>>,
) -> Result<FilePart> {
    let (builder, names) = open(file)?;
    let indices = select(&names)?;
    let rows = rows_of(file, &builder)?;
    let sizes: Vec<u64> =
        builder.metadata().row_groups().iter().map(|g| g.num_rows().max(0) as u64).collect();
    let metadata =
        ArrowReaderMetadata::try_new(builder.metadata().clone(), ArrowReaderOptions::new())
            .map_err(|e| broken(file, e))?;
    let columns = if BY_COLUMN.contains(&indices.len()) {
        by_column(file, &metadata, &indices, rows as usize)?
    } else {
        by_group(file, &metadata, &indices, &sizes)?
    };
    if let Some(read) = columns.iter().map(ColumnPart::rows).find(|&read| read != rows as usize) {
        return Err(broken(file, format!("{read} rows instead of {rows}")));
    }
    Ok(FilePart { columns, numbers: (1..=rows).collect(), comments: 0 })
}

/// Columns so many that threads can share them out, and so few that each can have a reader.
const BY_COLUMN: RangeInclusive<usize> = 4..=256;

/// The columns, each by a reader of its own: it grows in one piece, and nothing has to be joined.
fn by_column(
    file: &Path,
    metadata: &ArrowReaderMetadata,
    indices: &[usize],
    rows: usize,
) -> Result<Vec<ColumnPart>> {
    let column = |i: usize| {
        guarded(file, || {
            let mut lane = Lane::new(file, metadata, indices, vec![i], None)?;
            let column = lane.next(file, rows, 0)?.swap_remove(0);
            match (lane.rest, lane.reader.next()) {
                (None, None) => Ok(column.finish(false)),
                _ => Err(broken(file, "it has more rows than it says")),
            }
        })
    };
    let columns: Vec<Result<ColumnPart>> = (0..indices.len()).into_par_iter().map(column).collect();
    // The error of the first row, whoever came upon one first.
    let first = columns.iter().filter_map(|column| column.as_ref().err()).map(row_of).min();
    let is_first = |column: &Result<ColumnPart>| {
        column.as_ref().err().is_none_or(|error| Some(row_of(error)) == first)
    };
    columns.into_iter().filter(is_first).collect()
}

/// The columns, put together from those of row groups.
fn by_group(
    file: &Path,
    metadata: &ArrowReaderMetadata,
    indices: &[usize],
    sizes: &[u64],
) -> Result<Vec<ColumnPart>> {
    let before = |group: usize| sizes[..group].iter().sum::<u64>();
    let groups: Vec<Result<Vec<ColumnPart>>> = (0..sizes.len())
        .into_par_iter()
        .map(|group| {
            guarded(file, || {
                let all = (0..indices.len()).collect();
                let mut lane = Lane::new(file, metadata, indices, all, Some(group))?;
                let parts = lane.next(file, sizes[group] as usize, before(group))?;
                let mut parts: Vec<(usize, ColumnPart)> =
                    lane.columns.into_iter().zip(parts).collect();
                parts.sort_by_key(|(i, _)| *i);
                Ok(parts.into_iter().map(|(_, part)| part).collect())
            })
        })
        .collect();
    // The first error in the file's order, whoever came upon one first.
    let mut groups = groups.into_iter().collect::<Result<Vec<_>>>()?;
    let mut columns = Vec::with_capacity(indices.len());
    // From the last column on, and one after the other: what is joined is not kept twice.
    for _ in indices {
        let parts = groups.iter_mut().filter_map(Vec::pop).collect();
        columns.push(ColumnPart::concat(parts).finish(false));
    }
    columns.reverse();
    Ok(columns)
}

/// The row of a file that an error is about; 0 if it is about all of them.
fn row_of(error: &Error) -> u64 {
    match error {
        Error::Input { place, .. } => place.row.unwrap_or(0),
        _ => 0,
    }
}

/// How many rows the file has: at least one.
fn rows_of(file: &Path, builder: &ParquetRecordBatchReaderBuilder<File>) -> Result<u32> {
    let rows = builder.metadata().file_metadata().num_rows();
    let Ok(rows) = u32::try_from(rows) else {
        let message = format!("the file claims to have {rows} rows; split it, or write it again");
        return Err(Error::input_at(Place::file(file), message));
    };
    if rows == 0 {
        let message = "the file has columns but no rows; leave it out";
        return Err(Error::input_at(Place::file(file), message));
    }
    Ok(rows)
}

/// What is known of some columns of a file without reading them.
pub(super) struct Outline {
    /// How many rows the file has: at least one.
    pub rows: u32,
    /// Where the columns stand.
    pub indices: Vec<usize>,
    /// What their types stand for.
    pub kinds: Vec<ColumnKind>,
}

/// Looks at the columns that `select` picks from the file's names.
pub(super) fn outline(
    file: &Path,
    select: &dyn Fn(&[String]) -> Result<Vec<usize>>,
) -> Result<Outline> {
    guarded(file, || {
        let (builder, names) = open(file)?;
        let indices = select(&names)?;
        let rows = rows_of(file, &builder)?;
        let fields = builder.schema().fields();
        let kind = |&i: &usize| arrays::empty(file, &fields[i]).map(|column| column.kind());
        let kinds = indices.iter().map(kind).collect::<Result<_>>()?;
        Ok(Outline { rows, indices, kinds })
    })
}

/// Some columns of a file, so many rows at a time: never more in memory than these and a page of each
/// column.
pub(super) struct Stream<'a> {
    file: &'a Path,
    lanes: Vec<Lane>,
    columns: usize,
    rows: u64,
    done: u64,
}

/// A few columns, or a row group, with a reader of their own, so that cores can share the work.
struct Lane {
    /// Which of the columns that were asked for these are, in the file's order.
    columns: Vec<usize>,
    fields: Vec<FieldRef>,
    reader: ParquetRecordBatchReader,
    /// What was read but is not needed yet.
    rest: Option<RecordBatch>,
}

impl<'a> Stream<'a> {
    /// The columns at these places of a file, from its first row on.
    pub fn new(file: &'a Path, indices: &[usize]) -> Result<Stream<'a>> {
        guarded(file, || {
            let (builder, _) = open(file)?;
            let rows = u64::from(rows_of(file, &builder)?);
            let metadata =
                ArrowReaderMetadata::try_new(builder.metadata().clone(), ArrowReaderOptions::new())
                    .map_err(|e| broken(file, e))?;
            // More lanes than threads, since columns differ in work.
            let count = indices.len().min(2 * rayon::current_num_threads()).max(1);
            let lanes = (0..count).map(|lane| {
                let columns = (lane..indices.len()).step_by(count).collect();
                Lane::new(file, &metadata, indices, columns, None)
            });
            let lanes = lanes.collect::<Result<Vec<_>>>()?;
            Ok(Stream { file, lanes, columns: indices.len(), rows, done: 0 })
        })
    }

    /// How many rows the file has.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The next rows of all columns, in the order they were asked for in; as many as this unless the
    /// file ends, none behind its end.
    pub fn next(&mut self, rows: usize) -> Result<Option<Vec<ColumnPart>>> {
        let wanted = (self.rows - self.done).min(rows as u64) as usize;
        if wanted == 0 {
            return Ok(None);
        }
        let (file, done) = (self.file, self.done);
        let read: Vec<Result<Vec<ColumnPart>>> = self
            .lanes
            .par_iter_mut()
            .map(|lane| guarded(file, || lane.next(file, wanted, done)))
            .collect();
        // The error of the first row, whoever came upon one first.
        let mut columns: Vec<Option<ColumnPart>> = (0..self.columns).map(|_| None).collect();
        let mut first: Option<Error> = None;
        for (lane, read) in self.lanes.iter().zip(read) {
            match read {
                Ok(read) => {
                    lane.columns.iter().zip(read).for_each(|(&i, c)| columns[i] = Some(c));
                }
                Err(error) if first.as_ref().is_none_or(|f| row_of(&error) < row_of(f)) => {
                    first = Some(error);
                }
                Err(_) => {}
            }
        }
        if let Some(error) = first {
            return Err(error);
        }
        self.done += wanted as u64;
        Ok(columns.into_iter().collect())
    }
}

impl Lane {
    /// Some of the columns at these places of a file: all rows, or those of one row group.
    fn new(
        file: &Path,
        metadata: &ArrowReaderMetadata,
        indices: &[usize],
        mut columns: Vec<usize>,
        group: Option<usize>,
    ) -> Result<Lane> {
        // A batch has its columns in the file's order, whatever order they were asked for in.
        columns.sort_by_key(|&i| indices[i]);
        let input = File::open(file).map_err(|error| unreadable(file, &error))?;
        let mut builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(input, metadata.clone());
        if let Some(group) = group {
            builder = builder.with_row_groups(vec![group]);
        }
        let places = columns.iter().map(|&i| indices[i]);
        let fields = places.clone().map(|i| builder.schema().fields()[i].clone()).collect();
        let mask = ProjectionMask::roots(builder.parquet_schema(), places);
        let reader = builder.with_projection(mask).with_batch_size(BATCH).build();
        let reader = reader.map_err(|e| broken(file, e))?;
        Ok(Lane { columns, fields, reader, rest: None })
    }

    /// The next rows, before which so many stand in the file.
    fn next(&mut self, file: &Path, rows: usize, before: u64) -> Result<Vec<ColumnPart>> {
        let empty = self.fields.iter().map(|field| arrays::empty(file, field));
        let mut columns = empty.collect::<Result<Vec<_>>>()?;
        let places: Vec<usize> = (0..columns.len()).collect();
        let mut read = 0;
        while read < rows {
            let batch = match self.rest.take() {
                Some(batch) => batch,
                None => match self.reader.next() {
                    Some(batch) => batch.map_err(|e| broken(file, e))?,
                    None => return Err(broken(file, "it has fewer rows than it says")),
                },
            };
            let taken = batch.num_rows().min(rows - read);
            if taken < batch.num_rows() {
                self.rest = Some(batch.slice(taken, batch.num_rows() - taken));
            }
            let before = before + read as u64;
            arrays::add(&mut columns, &places, &batch.slice(0, taken), file, before)?;
            read += taken;
        }
        Ok(columns)
    }
}
