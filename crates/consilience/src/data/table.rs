//! A table of named columns in memory, every row of which knows where it came from.

use crate::{Error, Place, Result};
use std::path::PathBuf;
use std::sync::Arc;

/// The code of a missing value in a text or logical column.
pub const MISSING: u32 = u32::MAX;

/// The values of one column. After [`Table::drop_missing`] none is missing.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Finite numbers; NaN stands for a missing value and for nothing else.
    Number(Vec<f64>),
    /// Text: a code per row into the levels, which are distinct but in no order.
    Text {
        /// A level's number per row, or [`MISSING`].
        codes: Vec<u32>,
        /// The distinct values.
        levels: Arc<Vec<String>>,
    },
    /// 0 = false, 1 = true, or [`MISSING`].
    Logical(Vec<u32>),
}

/// Where the rows of a table stood: file and line (text) or row (Parquet).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Origin {
    /// The files, and whether their rows are counted in lines.
    pub files: Arc<Vec<(PathBuf, bool)>>,
    /// Per row the file's number and the line or row in it, counted from 1.
    pub rows: Vec<(u32, u32)>,
}

/// A table of named columns of equal length.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    names: Vec<String>,
    columns: Vec<Column>,
    origin: Origin,
}

impl Column {
    /// How many rows.
    pub fn len(&self) -> usize {
        match self {
            Column::Number(values) => values.len(),
            Column::Text { codes, .. } | Column::Logical(codes) => codes.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether this row's value is missing.
    pub fn is_missing(&self, row: usize) -> bool {
        match self {
            Column::Number(values) => values[row].is_nan(),
            Column::Text { codes, .. } | Column::Logical(codes) => codes[row] == MISSING,
        }
    }

    /// The rows with these numbers, in this order.
    pub fn select(&self, rows: &[usize]) -> Column {
        let pick = |codes: &[u32]| rows.iter().map(|&r| codes[r]).collect();
        match self {
            Column::Number(values) => Column::Number(rows.iter().map(|&r| values[r]).collect()),
            Column::Text { codes, levels } => {
                Column::Text { codes: pick(codes), levels: levels.clone() }
            }
            Column::Logical(codes) => Column::Logical(pick(codes)),
        }
    }
}

impl Table {
    /// A table of these columns. They must be of one length, as must the origin's rows.
    pub fn new(columns: Vec<(String, Column)>, origin: Origin) -> Table {
        let (names, columns): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        assert!(columns.iter().all(|c: &Column| c.len() == origin.rows.len()), "ragged table");
        Table { names, columns, origin }
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.origin.rows.len()
    }

    /// The columns' names, in the file's order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The column of this name; a helpful error if there is none.
    pub fn column(&self, name: &str) -> Result<&Column> {
        match self.names.iter().position(|n| n == name) {
            Some(i) => Ok(&self.columns[i]),
            None => {
                let known = crate::error::suggestion(name, self.names.iter().map(String::as_str));
                let message = format!("there is no column `{name}`{known}");
                let place = Place { file: self.first_file(), ..Place::default() };
                Err(Error::Input { place, message })
            }
        }
    }

    fn first_file(&self) -> Option<PathBuf> {
        self.origin.files.first().map(|(path, _)| path.clone())
    }

    /// Where the rows came from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The place of a row (and column), for errors.
    pub fn place(&self, row: usize, column: Option<&str>) -> Place {
        let (file, number) = self.origin.rows[row];
        let (file, in_lines) = self.origin.files[file as usize].clone();
        let number = Some(u64::from(number));
        let (line, row) = if in_lines { (number, None) } else { (None, number) };
        Place { file: Some(file), line, row, column: column.map(str::to_string) }
    }

    /// The rows with these numbers, in this order.
    pub fn select(&self, rows: &[usize]) -> Table {
        let origin = Origin {
            files: self.origin.files.clone(),
            rows: rows.iter().map(|&r| self.origin.rows[r]).collect(),
        };
        let columns = self.columns.iter().map(|c| c.select(rows)).collect();
        Table { names: self.names.clone(), columns, origin }
    }

    /// Leaves out the rows in which any column is missing; also returns how many those were.
    pub fn drop_missing(&self) -> (Table, usize) {
        let complete: Vec<usize> = (0..self.rows())
            .filter(|&row| !self.columns.iter().any(|c| c.is_missing(row)))
            .collect();
        let dropped = self.rows() - complete.len();
        if dropped == 0 { (self.clone(), 0) } else { (self.select(&complete), dropped) }
    }

    /// An error that names the first missing value, if there is one.
    pub fn refuse_missing(&self) -> Result<()> {
        for row in 0..self.rows() {
            for (name, column) in self.names.iter().zip(&self.columns) {
                if column.is_missing(row) {
                    return Err(Error::input_at(
                        self.place(row, Some(name)),
                        "a value is missing; fill it in, or set missing = \"drop\" under [data] to leave such rows out",
                    ));
                }
            }
        }
        Ok(())
    }
}
