//! Tables that are read a block of rows at a time, so that they need not fit into memory.
//!
//! What a column is, and which levels it has, holds for all of its rows; so it is settled before the
//! first block is handed out. Types settle it for Parquet files, of which only columns of text (and
//! those without a value in the first rows) are read once for that. Large text files are read from their
//! converted copies, if there is a place for these; others are read whole.

use super::inputs::{Input, Inputs};
use super::parquet::{ColumnStream, FileOutline};
use super::part::{FilePart, SettledColumn};
use super::read::{Reader, TextFormat, Wanted, changed};
use super::spelling::Spelling;
use super::table::ColumnKind;
use super::{Column, Origin, Table};
use crate::Result;
use crate::halt::{Halt, go_on};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Several files as one table that is read block by block, any number of times.
///
/// The blocks behind each other are the table that [`read_table`](super::read::read_table) reads:
/// the same columns, levels and places.
///
/// ```
/// use consilience::data::read::{TextFormat, Wanted};
/// use consilience::data::source::Source;
/// # let folder = tempfile::tempdir().unwrap();
/// # let file = folder.path().join("a.csv");
/// # std::fs::write(&file, "x,g\n1,a\n2,b\n3,a\n").unwrap();
/// let source = Source::open(&[file], &TextFormat::default(), &Wanted::All)?;
/// assert_eq!((source.rows(), source.names().len()), (3, 2));
/// for block in source.blocks(2) {
///     let block = block?;
///     println!("{} rows, the first at {}", block.rows(), block.place(0, None));
/// }
/// # Ok::<(), consilience::Error>(())
/// ```
pub struct Source {
    names: Vec<String>,
    settled: Vec<SettledColumn>,
    files: Arc<Vec<(PathBuf, bool)>>,
    inputs: Vec<Input<Table>>,
    comments: u64,
    spelling: Spelling,
    halt: Option<Halt>,
}

impl Source {
    /// Several files, in the given order of files and the first file's order of columns. What
    /// [`read_table`](super::read::read_table) refuses is refused here, or by the block in which it
    /// comes.
    pub fn open(files: &[PathBuf], format: &TextFormat, wanted: &Wanted) -> Result<Source> {
        Source::new(files, &Reader::new(format), wanted)
    }

    pub(super) fn new(files: &[PathBuf], reader: &Reader, wanted: &Wanted) -> Result<Source> {
        let inputs = Inputs::open(files, reader, wanted, false)?;
        let levels = inputs.levels(reader.bound)?.into_iter();
        let settled =
            inputs.kinds.iter().zip(levels).map(|(&k, levels)| SettledColumn::new(k, levels));
        let Inputs { names, comments, spelling, halt, .. } = inputs;
        let mut source = Source {
            names,
            settled: settled.collect(),
            files: inputs.files,
            inputs: Vec::new(),
            comments,
            spelling,
            halt,
        };
        for (k, input) in inputs.parts.into_iter().enumerate() {
            let input = match input {
                Input::Columnar { path, copy, outline } => Input::Columnar { path, copy, outline },
                Input::Memory(part) => {
                    let whole = source.table(k, part, false);
                    Input::Memory(whole.expect("the part was read for these columns"))
                }
            };
            source.inputs.push(input);
        }
        Ok(source)
    }

    /// Rows of this file with columns of the kinds and levels that all rows have. None if they do not fit.
    fn table(&self, file: usize, part: FilePart, finish: bool) -> Option<Table> {
        let settle = |(column, settled): (super::part::ColumnPart, &SettledColumn)| {
            let as_text = settled.kind == ColumnKind::Text;
            let column = if finish { column.finish(as_text) } else { column };
            column.settle(settled)
        };
        let columns: Vec<Option<Column>> =
            part.columns.into_par_iter().zip(&self.settled).map(settle).collect();
        let columns = columns.into_iter().collect::<Option<Vec<Column>>>()?;
        let rows = part.numbers.into_iter().map(|number| (file as u32, number)).collect();
        let origin = Origin { files: self.files.clone(), rows };
        Some(Table::new(self.names.iter().cloned().zip(columns).collect(), origin))
    }

    /// The columns' names, in the order of the blocks' columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How many rows there are, those with missing values among them.
    pub fn rows(&self) -> u64 {
        let rows = self.inputs.iter().map(|input| match input {
            Input::Columnar { outline, .. } => u64::from(outline.rows),
            Input::Memory(table) => table.rows() as u64,
        });
        rows.sum()
    }

    /// How many comment lines stand after the headers.
    pub fn comments(&self) -> u64 {
        self.comments
    }

    /// The rows from the first one on, so many at a time; fewer only where a file ends. Missing
    /// values are still in them. After an error there are no more.
    ///
    /// # Panics
    ///
    /// If a block is to have no rows.
    pub fn blocks(&self, rows: usize) -> Blocks<'_> {
        assert!(rows > 0, "a block has rows");
        Blocks { source: self, rows, file: 0, before: 0, stream: None }
    }
}

/// Over the blocks of a [`Source`].
pub struct Blocks<'a> {
    source: &'a Source,
    rows: usize,
    /// The file that is read, and how many of its rows have been.
    file: usize,
    before: u32,
    stream: Option<ColumnStream<'a>>,
}

impl Iterator for Blocks<'_> {
    type Item = Result<Table>;

    fn next(&mut self) -> Option<Result<Table>> {
        let block = self.block();
        if block.is_err() {
            self.file = self.source.inputs.len();
        }
        block.transpose()
    }
}

impl<'a> Blocks<'a> {
    fn block(&mut self) -> Result<Option<Table>> {
        let source: &'a Source = self.source;
        while let Some(input) = source.inputs.get(self.file) {
            go_on(source.halt.as_ref())?;
            let table = match input {
                Input::Columnar { path, copy, outline } => {
                    self.columnar(path, copy.is_some(), outline)?
                }
                Input::Memory(table) => {
                    let from = self.before as usize;
                    let to = table.rows().min(from + self.rows);
                    (from < to).then(|| table.slice(from..to))
                }
            };
            if let Some(table) = table {
                self.before += table.rows() as u32;
                return Ok(Some(table));
            }
            (self.stream, self.before) = (None, 0);
            self.file += 1;
        }
        Ok(None)
    }

    /// The next rows of a file that is read as we go.
    fn columnar(
        &mut self,
        path: &'a Path,
        has_lines: bool,
        outline: &FileOutline,
    ) -> Result<Option<Table>> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let how = (&self.source.spelling, self.source.halt.as_ref());
                let new = ColumnStream::new(path, &outline.indices, has_lines, how)?;
                self.stream.insert(new)
            }
        };
        if stream.rows() != u64::from(outline.rows) {
            return Err(changed(path));
        }
        let Some(block) = stream.next(self.rows)? else { return Ok(None) };
        self.source.table(self.file, block, true).map(Some).ok_or_else(|| changed(path))
    }
}
