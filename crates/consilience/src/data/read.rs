//! Reading tables: several files, text or Parquet, as one table.
//!
//! The kind of a column is decided over all files together. Every file is read once on the
//! assumption that a column that begins with numbers (or logicals) goes on with them; the columns
//! for which that turns out wrong, in a file or between files, are read a second time as text.
//! So the text of numeric columns is never held in memory, and no file is read more than twice.

use super::part::{ColumnPart, FilePart, Odd};
use super::source::Source;
use super::{Origin, Table, copies, csv, parquet};
use crate::{Error, Place, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use super::files::find_files;
use super::files::{Format, format_of};

/// How text files are written.
///
/// Values are separated by the delimiter and may stand in double quotes, in which a double quote
/// is doubled and the delimiter and line ends lose their meaning. Surrounding spaces do not count.
/// Lines that are empty or begin with the comment character are passed over. The first other line
/// names the columns, unless their names are given here. An empty value, `NA`, `N/A`, `null` and `NULL` are missing values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextFormat {
    /// What separates the values. None: a tab in `.tsv` files, otherwise whichever of `,` `;` tab
    /// `|` is most frequent in the header.
    pub delimiter: Option<char>,
    /// What comment lines begin with. None: there are no comments.
    pub comment: Option<char>,
    /// The columns' names, for files without a header line. None: the first line has them. A first
    /// line that says just these names is a header all the same.
    pub columns: Option<Vec<String>>,
}

impl Default for TextFormat {
    fn default() -> TextFormat {
        TextFormat { delimiter: None, comment: Some('#'), columns: None }
    }
}

impl TextFormat {
    /// The two characters must be such that they cannot be taken for data or for each other.
    fn check(&self) -> Result<()> {
        let unfit = |c: char| c.is_alphanumeric() || matches!(c, '"' | '\r' | '\n' | '.');
        if let Some(c) = self.delimiter
            && (unfit(c) || !c.is_ascii() || matches!(c, '+' | '-'))
        {
            let message = format!(
                "{c:?} cannot be the delimiter; give one ASCII character that is no letter, digit, quote, sign or dot"
            );
            return Err(Error::input(message));
        }
        if let Some(c) = self.comment
            && (unfit(c) || self.delimiter == Some(c))
        {
            let message = format!(
                "{c:?} cannot be the comment character; give one that is no letter, digit, quote or dot, and not the delimiter"
            );
            return Err(Error::input(message));
        }
        Ok(())
    }
}

/// Which columns to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// All columns of the first file; the other files must have the same.
    All,
    /// Those of these names, which every file must have; other columns are not looked at.
    Named(&'a [String]),
}

/// A table that was read, and what was passed over.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadTable {
    /// The table. Missing values are still in it.
    pub table: Table,
    /// How many comment lines stood after the headers.
    pub comments: u64,
}

/// What is going on while files are read.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// This file is read.
    Reading(&'a Path),
    /// A converted copy of it is used.
    Copy(&'a Path),
    /// There is no good one, so one is made.
    Converting(&'a Path),
    /// None can be made, for this reason; the file itself is read.
    NoCopy(&'a Path, &'a str),
}

/// How files are read.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    /// How text files are written.
    pub format: &'a TextFormat,
    /// A folder for converted copies of large text files: Parquet files that are read in their place
    /// as long as a source has the same bytes, with the same outcome. It is made if it is not there.
    /// None: text files are parsed every time.
    pub cache: Option<&'a Path>,
    /// How many bytes make a text file large.
    pub large: u64,
    /// What a table that is read block by block may take of memory; none: as much as it needs.
    pub bound: Option<Bound<'a>>,
    /// Is told what is going on.
    pub watch: &'a (dyn Fn(&Event) + Sync),
}

/// What a table that is read block by block may take.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'a> {
    /// Bytes that the levels of all columns of text may take.
    pub words: usize,
    /// A folder for what has no room in memory: text files that have no converted copy to be read from.
    pub folder: &'a Path,
}

impl<'a> Reader<'a> {
    /// Reads without converted copies.
    pub fn new(format: &'a TextFormat) -> Reader<'a> {
        Reader { format, cache: None, large: copies::LARGE, bound: None, watch: &|_| {} }
    }

    /// Reads several files as one table: [`read_table`] has the rules.
    pub fn table(&self, files: &[PathBuf], wanted: &Wanted) -> Result<ReadTable> {
        let Some(first) = files.first() else {
            return Err(Error::input("there are no files to read; name at least one"));
        };
        let names = wanted_names(first, &column_names(first, self.format)?, wanted)?;
        let strict = matches!(wanted, Wanted::All);
        let mut parts = in_order(files.par_iter().map(|file| {
            let columns = names.iter().map(|name| (name.as_str(), false)).collect::<Vec<_>>();
            decode(file, self, &columns, strict)
        }))?;

        let is_text: Vec<bool> = (0..names.len())
            .map(|i| ColumnPart::is_text(parts.iter().map(|p| &p.columns[i])))
            .collect();
        for (file, part) in files.iter().zip(&parts) {
            refuse_non_finite(file, &names, part, &is_text)?;
        }
        let again = files.par_iter().zip(&mut parts);
        in_order(again.map(|(file, part)| reread_as_text(file, self, &names, part, &is_text)))?;

        let comments = parts.iter().map(|p| p.comments).sum();
        let origin = origin(files, &parts)?;
        let mut columns = Vec::with_capacity(names.len());
        // From the last column on, so that each file's part can be taken off without a copy.
        for name in names.into_iter().rev() {
            let parts = parts.iter_mut().filter_map(|p| p.columns.pop()).collect();
            columns.push((name, ColumnPart::join(parts)));
        }
        columns.reverse();
        Ok(ReadTable { table: Table::new(columns, origin), comments })
    }

    /// Several files as one table that is read block by block.
    pub fn source(&self, files: &[PathBuf], wanted: &Wanted) -> Result<Source> {
        Source::new(files, self, wanted)
    }
}

/// The names of a file's columns.
pub fn column_names(file: &Path, format: &TextFormat) -> Result<Vec<String>> {
    format.check()?;
    match format_of(file)? {
        Format::Text(text) => csv::column_names(file, text, format),
        Format::Parquet => parquet::column_names(file),
    }
}

/// Reads several files as one table, in the given order of files and the first file's order of
/// columns.
///
/// In text files a column's kind follows from its values: numbers if all are numbers, logicals if
/// all are `TRUE`, `True`, `true`, `FALSE`, `False` or `false`, otherwise text. In Parquet files
/// the type decides. Where files disagree the column is text, the way it is written in text files.
/// A column all of whose values are missing agrees with every kind; it is numeric if no other file
/// knows better.
///
/// Values that are not finite (`NaN`, `inf`, `1e999`, …) are errors in columns of numbers or
/// logicals and do not make a column text; next to words they are words themselves.
pub fn read_table(files: &[PathBuf], format: &TextFormat, wanted: &Wanted) -> Result<ReadTable> {
    Reader::new(format).table(files, wanted)
}

/// The columns to read, in the file's order.
pub(super) fn wanted_names(file: &Path, names: &[String], wanted: &Wanted) -> Result<Vec<String>> {
    let Wanted::Named(wanted) = wanted else { return Ok(names.to_vec()) };
    let known: HashSet<&String> = names.iter().collect();
    if let Some(missing) = wanted.iter().find(|name| !known.contains(name)) {
        return Err(no_column(file, names, missing));
    }
    let wanted: HashSet<&String> = wanted.iter().collect();
    Ok(names.iter().filter(|name| wanted.contains(name)).cloned().collect())
}

fn no_column(file: &Path, names: &[String], name: &str) -> Error {
    let known = crate::error::suggestion(name, names.iter().map(String::as_str));
    Error::input_at(Place::file(file), format!("there is no column `{name}`{known}"))
}

/// Column names must be there and distinct.
pub(super) fn check_names(place: Place, names: &[String]) -> Result<()> {
    let mut seen = HashMap::with_capacity(names.len());
    for (i, name) in names.iter().enumerate() {
        let message = if name.is_empty() {
            format!("column {} of {} has no name; give it one", i + 1, names.len())
        } else if let Some(j) = seen.insert(name, i) {
            format!("columns {} and {} are both named `{name}`; rename one", j + 1, i + 1)
        } else {
            continue;
        };
        return Err(Error::input_at(place, message));
    }
    Ok(())
}

/// Where these columns stand in a file. If `strict` it may have no others.
pub(super) fn select(
    file: &Path,
    columns: &[&str],
    strict: bool,
    names: &[String],
) -> Result<Vec<usize>> {
    // Of two columns of one name the first, as everywhere.
    let places: HashMap<&str, usize> =
        names.iter().enumerate().rev().map(|(i, name)| (name.as_str(), i)).collect();
    let place = |name: &&str| places.get(name).copied().ok_or_else(|| no_column(file, names, name));
    // Missing columns first: a column too many is often one that is spelled differently.
    let indices = columns.iter().map(place).collect::<Result<Vec<usize>>>()?;
    let used: HashSet<usize> = indices.iter().copied().collect();
    let extra = |i: &usize| strict && !used.contains(i);
    if let Some(i) = (0..names.len()).find(extra) {
        let message = format!(
            "there is a column `{}` that the first file lacks; take it out, or say which columns are wanted",
            names[i]
        );
        return Err(Error::input_at(Place::file(file), message));
    }
    Ok(indices)
}

/// Reads these columns of one file; those of a text file that are marked true as text whatever they
/// hold. If `strict` the file may have no other columns.
pub(super) fn decode(
    file: &Path,
    reader: &Reader,
    columns: &[(&str, bool)],
    strict: bool,
) -> Result<FilePart> {
    (reader.watch)(&Event::Reading(file));
    let (names, as_text): (Vec<&str>, Vec<bool>) = columns.iter().copied().unzip();
    let select = |all: &[String]| select(file, &names, strict, all);
    match format_of(file)? {
        Format::Text(text) => match copies::copy(file, text, reader, columns, strict)? {
            Some(copy) => copy.decode(&names),
            None => csv::decode(file, text, reader.format, &select, &as_text),
        },
        Format::Parquet => parquet::decode(file, &select),
    }
}

/// All results, or the error of the first in order (not of the first in time).
fn in_order<T: Send>(results: impl IndexedParallelIterator<Item = Result<T>>) -> Result<Vec<T>> {
    results.collect::<Vec<_>>().into_iter().collect()
}

/// In a column that is no text a value that is not finite is an error: the first one in order of
/// lines and columns.
pub(super) fn refuse_non_finite(
    file: &Path,
    names: &[String],
    part: &FilePart,
    is_text: &[bool],
) -> Result<()> {
    let odd = (0..names.len())
        .filter(|&i| !is_text[i])
        .filter_map(|i| part.columns[i].odd().map(|odd| (odd, &names[i])))
        .min_by_key(|(odd, _)| odd.line);
    odd.map_or(Ok(()), |(odd, name)| Err(non_finite(file, name, odd)))
}

/// An error about a value that is not finite.
pub(super) fn non_finite(file: &Path, name: &str, odd: &Odd) -> Error {
    let message = format!(
        "`{}` is not a finite number; leave the value empty or write NA if it is missing",
        odd.value
    );
    Error::input_at(Place::file(file).line(u64::from(odd.line)).column(name), message)
}

/// Makes text of what is text after all but was not read so: the way it is written in a text file, which
/// has to be read again for that.
pub(super) fn reread_as_text(
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
    if format_of(file)? == Format::Parquet {
        for i in again {
            let column = std::mem::replace(&mut part.columns[i], ColumnPart::open());
            part.columns[i] = column.finish(true);
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

/// A file that is no longer what it was when it was first looked at.
pub(super) fn changed(file: &Path) -> Error {
    Error::input_at(Place::file(file), "the file changed while it was read; run again")
}

/// Where the rows of all files stood.
fn origin(files: &[PathBuf], parts: &[FilePart]) -> Result<Origin> {
    let rows = (0..).zip(parts).flat_map(|(file, p)| p.numbers.iter().map(move |&n| (file, n)));
    Ok(Origin { files: counted(files)?, rows: rows.collect() })
}

/// The files, and whether their rows are counted in lines.
pub(super) fn counted(files: &[PathBuf]) -> Result<Arc<Vec<(PathBuf, bool)>>> {
    let kinds = files.iter().map(|file| Ok((file.clone(), format_of(file)? != Format::Parquet)));
    kinds.collect::<Result<Vec<_>>>().map(Arc::new)
}
