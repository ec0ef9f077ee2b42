//! Files and tables in memory as parts of one table, whatever holds them, and what their columns are.
//!
//! A part is in memory whole, or it stays in a columnar file from which it comes block by block. What a column is
//! holds for all parts together: see [`read_table`](super::read::read_table).

use super::copies::{self, Copy};
use super::files::{FileFormat, format_of};
use super::parquet::{self, ColumnStream, FileOutline};
use super::part::{ColumnPart, FilePart, Odd, Words};
use super::read::{Bound, Event, Reader, Wanted, changed, column_names, select, wanted_names};
use super::spelling::Spelling;
use super::table::ColumnKind;
use super::{Origin, Table, csv};
use crate::halt::{Halt, go_on};
use crate::{Error, Place, Result};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows that are looked at together while columns are settled.
const SURVEY: usize = 1 << 16;

/// Rows among which most columns have a value.
const FIRST_LOOK: usize = 1 << 10;

/// The parts of a table, of which each column is of one kind or all missing.
pub(super) struct Inputs {
    pub names: Vec<String>,
    /// The files (or tables in memory), and whether their rows are counted in lines.
    pub files: Arc<Vec<(PathBuf, bool)>>,
    pub parts: Vec<Input<FilePart>>,
    /// What the columns are.
    pub kinds: Vec<ColumnKind>,
    /// How many comment lines stand after the headers.
    pub comments: u64,
    /// How values are written.
    pub spelling: Spelling,
    /// By which reading may be called off.
    pub halt: Option<Halt>,
}

/// One file or table; what is in memory is still on its way or settled.
pub(super) enum Input<M> {
    /// Its rows stay where they are.
    Columnar {
        path: PathBuf,
        /// The file is text; this is its copy, and the last column holds the lines.
        copy: Option<Copy>,
        outline: FileOutline,
    },
    /// All of its rows.
    Memory(M),
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
        let FileFormat::Text(text) = format_of(file)? else {
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

    fn comments(&self) -> u64 {
        match self {
            Input::Columnar { copy, .. } => copy.as_ref().map_or(0, |copy| copy.comments),
            Input::Memory(part) => part.comments,
        }
    }
}

impl Inputs {
    /// Several files, in the given order of files and the first file's order of columns; all rows in memory if
    /// `whole`.
    pub fn open(
        files: &[PathBuf],
        reader: &Reader,
        wanted: &Wanted,
        whole: bool,
    ) -> Result<Inputs> {
        let Some(first) = files.first() else {
            return Err(Error::input("there are no files to read; name at least one"));
        };
        let names = wanted_names(first, &column_names(first, reader.format)?, wanted)?;
        let strict = matches!(wanted, Wanted::All);
        let open = |file: &PathBuf, as_text: &[bool]| {
            let columns: Vec<(&str, bool)> =
                names.iter().map(String::as_str).zip(as_text.iter().copied()).collect();
            if whole {
                return decode(file, reader, &columns, strict).map(Input::Memory);
            }
            Input::open(file, reader, &columns, (strict, files.len() == 1))
        };
        let unmarked = vec![false; names.len()];
        let mut parts = if whole {
            in_order(files.par_iter().map(|file| open(file, &unmarked)))?
        } else {
            files.iter().map(|file| open(file, &unmarked)).collect::<Result<Vec<_>>>()?
        };
        let spelling = Spelling::new(reader.format);
        find_empty_columns(&mut parts, (&spelling, reader.halt))?;
        let kinds = kinds(names.len(), &parts);
        let is_text: Vec<bool> = kinds.iter().map(|&kind| kind == ColumnKind::Text).collect();
        for (file, input) in files.iter().zip(&mut parts) {
            match input {
                Input::Columnar { copy: Some(_), outline, .. } => {
                    // The way it is written in the text, which the copy does not know.
                    let is_other = |(kind, text): (&ColumnKind, &bool)| {
                        *text && !matches!(kind, ColumnKind::Text | ColumnKind::Unknown)
                    };
                    if outline.kinds.iter().zip(&is_text).any(is_other) {
                        *input = open(file, &is_text)?;
                    }
                }
                Input::Columnar { copy: None, .. } => {}
                Input::Memory(part) => refuse_non_finite(file, &names, part, &is_text)?,
            }
        }
        let again = files.par_iter().zip(&mut parts);
        in_order(again.map(|(file, input)| match input {
            Input::Memory(part) => reread_as_text(file, reader, &names, part, &is_text),
            Input::Columnar { .. } => Ok(()),
        }))?;
        let by_line = |file: &PathBuf| Ok((file.clone(), format_of(file)? != FileFormat::Parquet));
        let files = Arc::new(files.iter().map(by_line).collect::<Result<Vec<_>>>()?);
        let comments = parts.iter().map(Input::comments).sum();
        let halt = reader.halt.cloned();
        Ok(Inputs { names, files, parts, kinds, comments, spelling, halt })
    }

    /// Tables in memory, by their names.
    pub fn of_tables(names: Vec<String>, tables: Vec<(PathBuf, FilePart)>) -> Inputs {
        let (files, mut parts): (Vec<_>, Vec<_>) =
            tables.into_iter().map(|(name, part)| ((name, false), Input::Memory(part))).unzip();
        let kinds = kinds(names.len(), &parts);
        for input in &mut parts {
            let Input::Memory(part) = input else { continue };
            for (column, _) in
                part.columns.iter_mut().zip(&kinds).filter(|(_, kind)| **kind == ColumnKind::Text)
            {
                *column = std::mem::take(column).finish(true);
            }
        }
        let spelling = Spelling::default();
        let files = Arc::new(files);
        Inputs { names, files, parts, kinds, comments: 0, spelling, halt: None }
    }

    /// All parts behind each other, if they are in memory.
    pub fn into_table(self) -> Result<Table> {
        go_on(self.halt.as_ref())?;
        let mut parts = Vec::with_capacity(self.parts.len());
        for input in self.parts {
            match input {
                Input::Memory(part) => parts.push(part),
                Input::Columnar { path, .. } => return Err(changed(&path)),
            }
        }
        let rows = (0..).zip(&parts).flat_map(|(k, p)| p.numbers.iter().map(move |&n| (k, n)));
        let origin = Origin { files: self.files, rows: rows.collect() };
        let mut columns = Vec::with_capacity(self.names.len());
        // From the last column on, so that each file's part can be taken off without a copy.
        for name in self.names.into_iter().rev() {
            let parts = parts.iter_mut().filter_map(|p| p.columns.pop()).collect();
            columns.push((name, ColumnPart::join(parts)));
        }
        columns.reverse();
        Ok(Table::new(columns, origin))
    }

    /// The levels of the columns of text, in the order in which rows have them.
    pub fn levels(&self, bound: Option<Bound>) -> Result<Vec<Words>> {
        let mut levels: Vec<Words> = self.kinds.iter().map(|_| Words::default()).collect();
        let is_text = |&i: &usize| self.kinds[i] == ColumnKind::Text;
        let texts: Vec<usize> = (0..self.kinds.len()).filter(is_text).collect();
        let within = |levels: &[Words]| {
            let bytes: usize = levels.iter().map(|levels| levels.size().1).sum();
            match bound {
                Some(bound) if bytes > bound.words => Err(too_many_words(&self.names, levels)),
                _ => Ok(()),
            }
        };
        for input in &self.parts {
            match input {
                Input::Memory(part) => {
                    texts.iter().for_each(|&i| part.columns[i].levels_to(&mut levels[i]));
                    within(&levels)?;
                }
                Input::Columnar { path, outline, .. } if !texts.is_empty() => {
                    let indices: Vec<usize> = texts.iter().map(|&i| outline.indices[i]).collect();
                    let how = (&self.spelling, self.halt.as_ref());
                    let mut stream = ColumnStream::new(path, &indices, false, how)?;
                    while let Some(block) = stream.next(SURVEY)? {
                        for (&i, column) in texts.iter().zip(block.columns) {
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
}

/// What so many columns are, by all parts together.
fn kinds(columns: usize, parts: &[Input<FilePart>]) -> Vec<ColumnKind> {
    (0..columns).map(|i| ColumnKind::of(parts.iter().map(|input| input.kind(i)))).collect()
}

/// Reads these columns of one file; those of a text file that are marked true as text whatever they
/// hold. If `strict` the file may have no other columns.
fn decode(
    file: &Path,
    reader: &Reader,
    columns: &[(&str, bool)],
    strict: bool,
) -> Result<FilePart> {
    (reader.watch)(&Event::Reading(file));
    let (names, as_text): (Vec<&str>, Vec<bool>) = columns.iter().copied().unzip();
    let select = |all: &[String]| select(file, &names, strict, all);
    match format_of(file)? {
        FileFormat::Text(text) => match copies::copy(file, text, reader, columns, strict)? {
            Some(copy) => copy.decode(&names, reader.halt),
            None => csv::decode(file, text, (reader.format, reader.halt), &select, &as_text),
        },
        FileFormat::Parquet => {
            let how = (&Spelling::new(reader.format), reader.halt);
            parquet::decode(file, &select, false, how)
        }
    }
}

/// All results, or the error of the first in order (not of the first in time).
fn in_order<T: Send>(results: impl IndexedParallelIterator<Item = Result<T>>) -> Result<Vec<T>> {
    results.collect::<Vec<_>>().into_iter().collect()
}

/// In a column that is no text a value that is not finite is an error: the first one in order of
/// lines and columns.
fn refuse_non_finite(
    file: &Path,
    names: &[String],
    part: &FilePart,
    is_text: &[bool],
) -> Result<()> {
    let odd = part.columns.iter().zip(names).zip(is_text).filter(|(_, is_text)| !**is_text);
    let odd = odd.filter_map(|((column, name), _)| column.odd().map(|odd| (odd, name)));
    match odd.min_by_key(|(odd, _)| odd.line) {
        Some((odd, name)) => Err(non_finite(file, name, odd)),
        None => Ok(()),
    }
}

/// An error about a value that is not finite.
pub(super) fn non_finite(file: &Path, name: &str, odd: &Odd) -> Error {
    let message = not_finite(&odd.value, "leave the value empty or write NA");
    Error::input_at(Place::file(file).line(u64::from(odd.line)).column(name), message)
}

/// What is said of such a value. What to store in its place depends on where it comes from.
pub(super) fn not_finite(value: &str, instead: &str) -> String {
    let infinite = value.trim_start_matches(['-', '+']).to_ascii_lowercase().starts_with("inf");
    let bound = match infinite {
        true => ", or if it says that there is no bound, in Surv(from, to, type = \"interval2\")",
        false => "",
    };
    format!("`{value}` is not a finite number; {instead} if it is missing{bound}")
}

/// Makes text of what is text after all but was not read so: the way it is written in a text file, which
/// has to be read again for that.
fn reread_as_text(
    file: &Path,
    reader: &Reader,
    names: &[String],
    part: &mut FilePart,
    is_text: &[bool],
) -> Result<()> {
    let again: Vec<usize> =
        (0..names.len()).filter(|&i| is_text[i] && !part.columns[i].can_join_text()).collect();
    if again.is_empty() {
        return Ok(());
    }
    if format_of(file)? == FileFormat::Parquet {
        for i in again {
            part.columns[i] = std::mem::take(&mut part.columns[i]).finish(true);
        }
        return Ok(());
    }
    let columns: Vec<_> = again.iter().map(|&i| (names[i].as_str(), true)).collect();
    let text = decode(file, reader, &columns, false)?;
    if text.numbers != part.numbers {
        return Err(changed(file));
    }
    for (i, column) in again.into_iter().zip(text.columns) {
        part.columns[i] = column;
    }
    Ok(())
}

/// A column without a value says nothing of its kind, whatever its type: looks for the first value of
/// every column.
fn find_empty_columns(
    inputs: &mut [Input<FilePart>],
    how: (&Spelling, Option<&Halt>),
) -> Result<()> {
    for input in inputs {
        let Input::Columnar { path, outline, .. } = input else { continue };
        // Most have one among their first rows; for the others all rows may have to be read.
        let mut empty: Vec<usize> = (0..outline.kinds.len()).collect();
        for at_most in [FIRST_LOOK, usize::MAX] {
            let indices: Vec<usize> = empty.iter().map(|&i| outline.indices[i]).collect();
            let mut found = vec![false; empty.len()];
            let mut stream = ColumnStream::new(path, &indices, false, how)?;
            let mut read = 0;
            while read < at_most && found.contains(&false) {
                let Some(block) = stream.next(at_most.min(SURVEY))? else { break };
                read += block.numbers.len();
                for (found, column) in found.iter_mut().zip(block.columns) {
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

/// Words are in memory whatever waits on disk.
fn too_many_words(names: &[String], levels: &[Words]) -> Error {
    let most = (0..names.len()).max_by_key(|&i| levels[i].size().1).unwrap_or(0);
    Error::input(format!(
        "the column `{}` has more than {} different words in its first rows, which take more memory than is allowed; leave the column out, give it fewer levels, or allow more with --memory",
        names[most],
        levels[most].size().0.saturating_sub(1)
    ))
}
