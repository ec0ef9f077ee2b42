//! Parquet files.

use super::arrays;
use super::files::unreadable;
use super::part::{ColumnPart, FilePart};
use super::read::check_names;
use super::spelling::Spelling;
use super::table::ColumnKind;
use crate::halt::{Halt, go_on};
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
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

const BATCH: usize = 1 << 14;

/// The names of the columns.
pub(super) fn column_names(file: &Path) -> Result<Vec<String>> {
    guarded(file, || Ok(open(file)?.1))
}

/// The columns whose types stand for nothing that can be computed with, and these types.
pub(super) fn unreadable_columns(file: &Path) -> Result<Vec<(String, String)>> {
    guarded(file, || {
        let (builder, _) = open(file)?;
        let unreadable = builder.schema().fields().iter().filter(|f| arrays::kind(f).is_none());
        Ok(unreadable.map(|f| (f.name().clone(), f.data_type().to_string())).collect())
    })
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

/// Reads the columns that `select` picks from the file's names, and the lines that the last of them holds if
/// `has_lines`.
pub(super) fn decode(
    file: &Path,
    select: &dyn Fn(&[String]) -> Result<Vec<usize>>,
    has_lines: bool,
    (spelling, halt): (&Spelling, Option<&Halt>),
) -> Result<FilePart> {
    let open = |most: usize| {
        guarded(file, || {
            let (builder, names) = open(file)?;
            let how = (spelling, halt.cloned());
            spans(file, &builder, &select(&names)?, has_lines, how, most)
        })
    };
    let read = |mut stream: ColumnStream| {
        // There is at least one row.
        let whole = stream.next(usize::MAX)?.ok_or_else(|| broken(file, "it has no rows"))?;
        guarded(file, || stream.end())?;
        Ok(whole)
    };
    let read_all = |streams: Vec<ColumnStream>| {
        let parts: Vec<Result<FilePart>> = streams.into_par_iter().map(read).collect();
        go_on(halt)?;
        parts.into_iter().collect::<Result<Vec<_>>>()
    };
    // Which of several faults is told is not to depend on the threads: one stream knows.
    let parts = match read_all(open(usize::MAX)?) {
        Err(Error::Stopped) => return Err(Error::Stopped),
        Err(_) => read_all(open(1)?)?,
        Ok(parts) => parts,
    };
    let whole = FilePart::join(parts);
    let columns = whole.columns.into_iter().map(|column| column.finish(false)).collect();
    Ok(FilePart { columns, ..whole })
}

/// Columns of a file in streams of their own for row groups behind each other, as many as give all threads work: few
/// columns alone do not; at most so many. Together they are the whole file.
fn spans<'a>(
    file: &'a Path,
    builder: &ParquetRecordBatchReaderBuilder<File>,
    indices: &[usize],
    has_lines: bool,
    (spelling, halt): (&Spelling, Option<Halt>),
    most: usize,
) -> Result<Vec<ColumnStream<'a>>> {
    let whole = u64::from(rows_of(file, builder)?);
    let groups: Vec<u64> = builder
        .metadata()
        .row_groups()
        .iter()
        .map(|group| u64::try_from(group.num_rows()).unwrap_or(0))
        .collect();
    // A column per thread is enough: putting streams together takes time too.
    let columns = indices.len().max(1);
    let wanted = if columns < rayon::current_num_threads() { lanes(usize::MAX) } else { 1 };
    let count = wanted.div_ceil(columns).min(groups.len()).min(most);
    let open = |span| {
        let how = (spelling, halt.clone());
        ColumnStream::opened(file, builder, indices, has_lines, how, span)
    };
    // A file that contradicts itself is read from its begin to its end, which shows where.
    if count <= 1
        || groups.iter().try_fold(0, |sum: u64, rows| sum.checked_add(*rows)) != Some(whole)
    {
        return Ok(vec![open(None)?]);
    }
    let (mut streams, mut from, mut before, mut rows) = (Vec::new(), 0, 0, 0);
    for (group, own) in groups.iter().enumerate() {
        rows += own;
        // Cut where the share of this many streams is reached.
        let share = whole as u128 * (streams.len() as u128 + 1) / count as u128;
        if u128::from(before + rows) >= share && rows > 0 {
            streams.push(open(Some(RowSpan { groups: from..group + 1, before, rows }))?);
            (from, before, rows) = (group + 1, before + rows, 0);
        }
    }
    Ok(streams)
}

/// So many columns are read at once, at most: more than there are threads, since columns differ in work.
fn lanes(columns: usize) -> usize {
    columns.min(2 * rayon::current_num_threads()).max(1)
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
pub(super) struct FileOutline {
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
) -> Result<FileOutline> {
    guarded(file, || {
        let (builder, names) = open(file)?;
        let indices = select(&names)?;
        let rows = rows_of(file, &builder)?;
        let fields = builder.schema().fields();
        let kind = |&i: &usize| arrays::empty(file, &fields[i]).map(|column| column.kind());
        let kinds = indices.iter().map(kind).collect::<Result<_>>()?;
        Ok(FileOutline { rows, indices, kinds })
    })
}

/// Some columns of a file, so many rows at a time: never more in memory than these and a page of each
/// column.
pub(super) struct ColumnStream<'a> {
    file: &'a Path,
    lanes: Vec<Lane>,
    columns: usize,
    has_lines: bool,
    spelling: Spelling,
    /// Behind which row the stream ends, and how many have been read or stand before it.
    rows: u64,
    done: u64,
    halt: Option<Halt>,
}

/// Row groups behind each other, of which there is at least one row.
struct RowSpan {
    groups: Range<usize>,
    /// Rows of the file before them.
    before: u64,
    rows: u64,
}

/// A few columns with a reader of their own, so that cores can share the work.
struct Lane {
    /// Which of the columns that were asked for these are, in the file's order.
    columns: Vec<usize>,
    fields: Vec<FieldRef>,
    reader: ParquetRecordBatchReader,
    /// What was read but is not needed yet.
    rest: Option<RecordBatch>,
}

impl<'a> ColumnStream<'a> {
    /// The columns at these places of a file, from its first row on. If `has_lines` the last one is none of the
    /// data's, but holds the line of each row.
    pub fn new(
        file: &'a Path,
        indices: &[usize],
        has_lines: bool,
        (spelling, halt): (&Spelling, Option<&Halt>),
    ) -> Result<ColumnStream<'a>> {
        guarded(file, || {
            let how = (spelling, halt.cloned());
            ColumnStream::opened(file, &open(file)?.0, indices, has_lines, how, None)
        })
    }

    fn opened(
        file: &'a Path,
        builder: &ParquetRecordBatchReaderBuilder<File>,
        indices: &[usize],
        has_lines: bool,
        (spelling, halt): (&Spelling, Option<Halt>),
        span: Option<RowSpan>,
    ) -> Result<ColumnStream<'a>> {
        // In a copy nothing is left that stands for a missing value, and lines are none whatever their numbers.
        let spelling = if has_lines { Spelling::default() } else { spelling.clone() };
        let rows = u64::from(rows_of(file, builder)?);
        let metadata =
            ArrowReaderMetadata::try_new(builder.metadata().clone(), ArrowReaderOptions::new())
                .map_err(|e| broken(file, e))?;
        let count = lanes(indices.len());
        let lanes = (0..count).map(|lane| {
            let columns = (lane..indices.len()).step_by(count).collect();
            Lane::new(file, &metadata, indices, columns, span.as_ref())
        });
        let lanes = lanes.collect::<Result<Vec<_>>>()?;
        let (done, rows) = span.map_or((0, rows), |span| (span.before, span.before + span.rows));
        Ok(ColumnStream {
            file,
            lanes,
            columns: indices.len(),
            has_lines,
            spelling,
            rows,
            done,
            halt,
        })
    }

    /// How many rows the file has.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The next rows of all columns, in the order they were asked for in; as many as this unless the
    /// file ends, none behind its end.
    pub fn next(&mut self, rows: usize) -> Result<Option<FilePart>> {
        let wanted = (self.rows - self.done).min(rows as u64) as usize;
        if wanted == 0 {
            return Ok(None);
        }
        let (file, done) = (self.file, self.done);
        let how = (&self.spelling, self.halt.as_ref());
        let read: Vec<Result<Vec<ColumnPart>>> = self
            .lanes
            .par_iter_mut()
            .map(|lane| guarded(file, || lane.next((file, done), wanted, how)))
            .collect();
        go_on(self.halt.as_ref())?;
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
        let mut columns: Vec<ColumnPart> = columns.into_iter().flatten().collect();
        let numbers = match columns.pop_if(|_| self.has_lines) {
            Some(lines) => {
                lines.finish(false).into_lines().ok_or_else(|| broken(file, "it has no lines"))?
            }
            None => (done + 1..=done + wanted as u64).map(|row| row as u32).collect(),
        };
        self.done += wanted as u64;
        Ok(Some(FilePart { columns, numbers, comments: 0 }))
    }

    /// Makes sure that there are no more rows.
    fn end(&mut self) -> Result<()> {
        let more = |lane: &mut Lane| lane.rest.is_some() || lane.reader.next().is_some();
        match self.lanes.iter_mut().any(more) {
            true => Err(broken(self.file, "it has more rows than it says")),
            false => Ok(()),
        }
    }
}

impl Lane {
    /// Some of the columns at these places of a file.
    fn new(
        file: &Path,
        metadata: &ArrowReaderMetadata,
        indices: &[usize],
        mut columns: Vec<usize>,
        span: Option<&RowSpan>,
    ) -> Result<Lane> {
        // A batch has its columns in the file's order, whatever order they were asked for in.
        columns.sort_by_key(|&i| indices[i]);
        let input = File::open(file).map_err(|error| unreadable(file, &error))?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(input, metadata.clone());
        let places = columns.iter().map(|&i| indices[i]);
        let fields = places.clone().map(|i| builder.schema().fields()[i].clone()).collect();
        let mask = ProjectionMask::roots(builder.parquet_schema(), places);
        let builder = builder.with_projection(mask).with_batch_size(BATCH);
        let builder = match span {
            Some(span) => builder.with_row_groups(span.groups.clone().collect()),
            None => builder,
        };
        let reader = builder.build();
        let reader = reader.map_err(|e| broken(file, e))?;
        Ok(Lane { columns, fields, reader, rest: None })
    }

    /// The next rows, before which so many stand in the file.
    fn next(
        &mut self,
        (file, before): (&Path, u64),
        rows: usize,
        (spelling, halt): (&Spelling, Option<&Halt>),
    ) -> Result<Vec<ColumnPart>> {
        let empty = self.fields.iter().map(|field| arrays::empty(file, field));
        let mut columns = empty.collect::<Result<Vec<_>>>()?;
        let places: Vec<usize> = (0..columns.len()).collect();
        let mut read = 0;
        while read < rows {
            go_on(halt)?;
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
            let at = (file, before + read as u64);
            arrays::add(&mut columns, &places, &batch.slice(0, taken), at, spelling)?;
            read += taken;
        }
        Ok(columns)
    }
}
