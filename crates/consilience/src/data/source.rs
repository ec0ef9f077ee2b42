//! Tables that are read a block of rows at a time, so that they need not fit into memory.
//!
//! What a column is, and which levels it has, holds for all of its rows; so it is settled before the
//! first block is handed out. Types settle it for Parquet files, of which only columns of text (and
//! those without a value in the first rows) are read once for that. Large text files are read from their
//! converted copies, if there is a place for these; others are read whole.

use super::copies::{self, Copy};
use super::files::{Format, format_of};
use super::parquet::{self, Outline, Stream};
use super::part::{Codes, ColumnKind, ColumnPart, FilePart, Settled};
use super::read::{
    Bound, Event, Reader, TextFormat, Wanted, changed, column_names, counted, decode,
    refuse_non_finite, reread_as_text, select, wanted_names,
};
use super::{Column, Origin, Table};
use crate::{Error, Result};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows that are looked at together while columns are settled.
const SURVEY: usize = 1 << 16;

/// Rows among which most columns have a value.
const FIRST_LOOK: usize = 1 << 10;

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
    settled: Vec<Settled>,
    files: Arc<Vec<(PathBuf, bool)>>,
    inputs: Vec<Input<Table>>,
    comments: u64,
}

/// One file.
enum Input<M> {
    /// Its rows stay where they are.
    Columnar {
        path: PathBuf,
        /// The file is text; this is its copy, and the last column holds the lines.
        copy: Option<Copy>,
        outline: Outline,
    },
    /// All of its rows.
    Memory(M),
}

impl Input<Table> {
    fn rows(&self) -> u64 {
        match self {
            Input::Columnar { outline, .. } => u64::from(outline.rows),
            Input::Memory(table) => table.rows() as u64,
        }
    }
}

impl Input<FilePart> {
    /// These columns of a file; those marked true as text whatever they hold. If `strict` it may have
    /// no others; if `alone` there is no other file.
    fn open(
        file: &Path,
        reader: &Reader,
        columns: &[(&str, bool)],
        (strict, alone): (bool, bool),
    ) -> Result<Input<FilePart>> {
        (reader.watch)(&Event::Reading(file));
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let Format::Text(text) = format_of(file)? else {
            let outline = parquet::outline(file, &|all| select(file, &names, strict, all))?;
            return Ok(Input::Columnar { path: file.to_path_buf(), copy: None, outline });
        };
        let mut copy = copies::copy(file, text, reader, columns, strict)?;
        if let (None, Some(bound)) = (&copy, reader.bound)
            && copies::may_be_large(file, text)?
        {
            copy =
                copies::passing_copy(file, text, reader, columns, (strict, alone), bound.folder)?;
        }
        let Some(copy) = copy else {
            let reader = Reader { cache: None, ..*reader };
            return decode(file, &reader, columns, strict).map(Input::Memory);
        };
        let mut outline = parquet::outline(&copy.path, &|all| copy.select(&names, all))?;
        // The lines are no column of the table.
        outline.kinds.pop();
        Ok(Input::Columnar { path: copy.path.clone(), copy: Some(copy), outline })
    }

    fn kind(&self, column: usize) -> ColumnKind {
        match self {
            Input::Columnar { outline, .. } => outline.kinds[column],
            Input::Memory(part) => part.columns[column].kind(),
        }
    }
}

impl Source {
    /// Several files, in the given order of files and the first file's order of columns. What
    /// [`read_table`](super::read::read_table) refuses is refused here, or by the block in which it
    /// comes.
    pub fn open(files: &[PathBuf], format: &TextFormat, wanted: &Wanted) -> Result<Source> {
        Source::new(files, &Reader::new(format), wanted)
    }

    pub(super) fn new(files: &[PathBuf], reader: &Reader, wanted: &Wanted) -> Result<Source> {
        let Some(first) = files.first() else {
            return Err(Error::input("there are no files to read; name at least one"));
        };
        let names = wanted_names(first, &column_names(first, reader.format)?, wanted)?;
        let strict = matches!(wanted, Wanted::All);
        let columns: Vec<&str> = names.iter().map(String::as_str).collect();
        let open = |file: &Path, as_text: &[bool]| {
            let columns: Vec<_> = columns.iter().copied().zip(as_text.iter().copied()).collect();
            Input::open(file, reader, &columns, (strict, files.len() == 1))
        };
        let unmarked = vec![false; names.len()];
        let mut inputs =
            files.iter().map(|file| open(file, &unmarked)).collect::<Result<Vec<_>>>()?;
        find_empty_columns(&mut inputs)?;
        let kind = |i: usize| ColumnKind::of(inputs.iter().map(|input| input.kind(i)));
        let kinds: Vec<ColumnKind> = (0..names.len()).map(kind).collect();
        let is_text: Vec<bool> = kinds.iter().map(|&kind| kind == ColumnKind::Text).collect();
        let mut comments = 0;
        for (file, input) in files.iter().zip(&mut inputs) {
            match input {
                Input::Columnar { copy: None, .. } => {}
                Input::Columnar { copy: Some(copy), outline, .. } => {
                    comments += copy.comments;
                    // The way it is written in the text, which the copy does not know.
                    let is_other = |(kind, text): (&ColumnKind, &bool)| {
                        *text && !matches!(kind, ColumnKind::Text | ColumnKind::Unknown)
                    };
                    if outline.kinds.iter().zip(&is_text).any(is_other) {
                        *input = open(file, &is_text)?;
                    }
                }
                Input::Memory(part) => {
                    refuse_non_finite(file, &names, part, &is_text)?;
                    reread_as_text(file, reader, &names, part, &is_text)?;
                    comments += part.comments;
                }
            }
        }
        let levels = levels(&inputs, &names, &is_text, reader.bound)?;
        let settled = kinds.into_iter().zip(levels).map(|(k, levels)| Settled::new(k, levels));
        let mut source = Source {
            names,
            settled: settled.collect(),
            files: counted(files)?,
            inputs: Vec::new(),
            comments,
        };
        for input in inputs {
            source.inputs.push(match input {
                Input::Columnar { path, copy, outline } => Input::Columnar { path, copy, outline },
                Input::Memory(part) => Input::Memory(source.settle(part)),
            });
        }
        Ok(source)
    }

    /// The next file's part, whole.
    fn settle(&self, part: FilePart) -> Table {
        let columns = part.columns.into_iter().zip(&self.settled).map(|(column, settled)| {
            column.settle(settled).expect("the part was read for this column")
        });
        self.table(self.inputs.len(), columns.collect(), part.numbers)
    }

    fn table(&self, file: usize, columns: Vec<Column>, numbers: Vec<u32>) -> Table {
        let rows = numbers.into_iter().map(|number| (file as u32, number)).collect();
        let origin = Origin { files: self.files.clone(), rows };
        Table::new(self.names.iter().cloned().zip(columns).collect(), origin)
    }

    /// The columns' names, in the order of the blocks' columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How many rows there are, those with missing values among them.
    pub fn rows(&self) -> u64 {
        self.inputs.iter().map(Input::rows).sum()
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
    stream: Option<Stream<'a>>,
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
        outline: &Outline,
    ) -> Result<Option<Table>> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => self.stream.insert(Stream::new(path, &outline.indices)?),
        };
        if stream.rows() != u64::from(outline.rows) {
            return Err(changed(path));
        }
        let Some(mut columns) = stream.next(self.rows)? else { return Ok(None) };
        let lines = columns.pop_if(|_| has_lines).map(|lines| lines.finish(false).into_lines());
        let rows = columns.first().map_or(0, |column| column.rows() as u32);
        let columns: Vec<Option<Column>> = columns
            .into_par_iter()
            .zip(&self.source.settled)
            .map(|(column, settled)| {
                column.finish(settled.kind == ColumnKind::Text).settle(settled)
            })
            .collect();
        let columns: Option<Vec<Column>> = columns.into_iter().collect();
        let columns = columns.ok_or_else(|| changed(path))?;
        let numbers = match lines {
            Some(lines) => lines.ok_or_else(|| changed(path))?,
            None => (self.before + 1..=self.before + rows).collect(),
        };
        Ok(Some(self.source.table(self.file, columns, numbers)))
    }
}

/// A column without a value says nothing of its kind, whatever its type: looks for the first value of
/// every column.
fn find_empty_columns(inputs: &mut [Input<FilePart>]) -> Result<()> {
    for input in inputs {
        let Input::Columnar { path, outline, .. } = input else { continue };
        // Most have one among their first rows; for the others all rows may have to be read.
        let mut empty: Vec<usize> = (0..outline.kinds.len()).collect();
        for at_most in [FIRST_LOOK, usize::MAX] {
            let indices: Vec<usize> = empty.iter().map(|&i| outline.indices[i]).collect();
            let mut found = vec![false; empty.len()];
            let mut stream = Stream::new(path, &indices)?;
            let mut read = 0;
            while read < at_most && found.contains(&false) {
                let Some(columns) = stream.next(at_most.min(SURVEY))? else { break };
                read += columns.first().map_or(0, ColumnPart::rows);
                for (found, column) in found.iter_mut().zip(columns) {
                    *found |= column.finish(false).kind() != ColumnKind::Unknown;
                }
            }
            let mut found = found.into_iter();
            empty.retain(|_| found.next() == Some(false));
            if empty.is_empty() {
                break;
            }
        }
        empty.into_iter().for_each(|i| outline.kinds[i] = ColumnKind::Unknown);
    }
    Ok(())
}

/// The levels of the columns of text, in the order in which rows have them.
fn levels(
    inputs: &[Input<FilePart>],
    names: &[String],
    is_text: &[bool],
    bound: Option<Bound>,
) -> Result<Vec<Codes>> {
    let mut levels: Vec<Codes> = is_text.iter().map(|_| Codes::default()).collect();
    let texts: Vec<usize> = (0..is_text.len()).filter(|&i| is_text[i]).collect();
    let within = |levels: &[Codes]| {
        let bytes: usize = levels.iter().map(|levels| levels.size().1).sum();
        match bound {
            Some(bound) if bytes > bound.words => Err(too_many_words(names, levels)),
            _ => Ok(()),
        }
    };
    for input in inputs {
        match input {
            Input::Memory(part) => {
                texts.iter().for_each(|&i| part.columns[i].levels_to(&mut levels[i]));
                within(&levels)?;
            }
            Input::Columnar { path, outline, .. } if !texts.is_empty() => {
                let indices: Vec<usize> = texts.iter().map(|&i| outline.indices[i]).collect();
                let mut stream = Stream::new(path, &indices)?;
                while let Some(columns) = stream.next(SURVEY)? {
                    for (&i, column) in texts.iter().zip(columns) {
                        column.finish(true).levels_to(&mut levels[i]);
                    }
                    within(&levels)?;
                }
            }
            Input::Columnar { .. } => {}
        }
    }
    Ok(levels)
}

/// Words are in memory whatever waits on disk.
fn too_many_words(names: &[String], levels: &[Codes]) -> Error {
    let most = (0..names.len()).max_by_key(|&i| levels[i].size().1).unwrap_or(0);
    Error::input(format!(
        "the column `{}` has more than {} different words in its first rows, which take more memory than is allowed; leave the column out, give it fewer levels, or allow more with --memory",
        names[most],
        levels[most].size().0.saturating_sub(1)
    ))
}
