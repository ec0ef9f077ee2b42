//! Reading tables: several files, text or Parquet, as one table.
//!
//! The kind of a column is decided over all files together. Every file is read once on the
//! assumption that a column that begins with numbers (or logicals) goes on with them; the columns
//! for which that turns out wrong, in a file or between files, are read a second time as text.
//! So the text of numeric columns is never held in memory, and no file is read more than twice.

use super::inputs::Inputs;
use super::source::Source;
use super::{Table, copies, csv, parquet};
use crate::halt::Halt;
use crate::{Error, Place, Result};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

pub use super::files::find_files;
use super::files::{FileFormat, format_of};

/// How text files are written.
///
/// Values are separated by the delimiter and may stand in double quotes, in which a double quote
/// is doubled and the delimiter and line ends lose their meaning. Surrounding spaces do not count.
/// Lines that are empty or begin with the comment character are passed over. The first other line
/// names the columns, unless their names are given here. An empty value, `NA`, `N/A`, `null` and `NULL` are missing values.
/// A first column without a name is called [`ROW_NAMES`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextFormat {
    /// What separates the values; a blank stands for any number of blanks and tabs. None: a tab in `.tsv` files,
    /// otherwise whichever of `,` `;` tab `|` is most frequent in the header, or blanks if there is none of them.
    pub delimiter: Option<char>,
    /// What comment lines begin with. None: there are no comments.
    pub comment: Option<char>,
    /// The columns' names, for files without a header line. None: the first line has them. A first
    /// line that says just these names is a header all the same.
    pub columns: Option<Vec<String>>,
    /// What stands for a missing value beside what always does; a number does however it is written. This holds for
    /// Parquet files and tables in memory too.
    pub na: Vec<String>,
    /// What stands before decimals: a point or a comma.
    pub decimal: char,
}

/// What a first column without a name is called, as R's `write.csv` writes the names of rows. `.` in a formula does not
/// stand for it.
pub const ROW_NAMES: &str = "row.names";

impl Default for TextFormat {
    fn default() -> TextFormat {
        TextFormat {
            delimiter: None,
            comment: Some('#'),
            columns: None,
            na: Vec::new(),
            decimal: '.',
        }
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
        if !matches!(self.decimal, '.' | ',') {
            let message =
                format!("{:?} cannot stand before decimals; give a point or a comma", self.decimal);
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
    /// By which reading may be called off, between two pieces of a file.
    pub halt: Option<&'a Halt>,
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
        Reader {
            format,
            cache: None,
            large: copies::LARGE,
            bound: None,
            watch: &|_| {},
            halt: None,
        }
    }

    /// Reads several files as one table: [`read_table`] has the rules.
    pub fn table(&self, files: &[PathBuf], wanted: &Wanted) -> Result<ReadTable> {
        let read = Inputs::open(files, self, wanted, true)?;
        let comments = read.comments;
        Ok(ReadTable { table: read.into_table()?, comments })
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
        FileFormat::Text(text) => csv::column_names(file, text, format),
        FileFormat::Parquet => parquet::column_names(file),
    }
}

/// The columns of a file that cannot be read, each with its type: dates, times, lists and the like in a Parquet file.
pub fn unreadable_columns(file: &Path) -> Result<Vec<(String, String)>> {
    match format_of(file)? {
        FileFormat::Text(_) => Ok(Vec::new()),
        FileFormat::Parquet => parquet::unreadable_columns(file),
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

/// A file that is no longer what it was when it was first looked at.
pub(super) fn changed(file: &Path) -> Error {
    Error::input_at(Place::file(file), "the file changed while it was read; run again")
}
