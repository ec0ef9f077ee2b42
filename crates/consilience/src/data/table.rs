//! A table of named columns in memory, every row of which knows where it came from.

use crate::{Error, Place, Result};
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The code of a missing value in a text or logical column.
pub const MISSING: u32 = u32::MAX;

/// The values of one column. In a table of [`Table::complete_rows`] none is missing.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Finite numbers; NaN stands for a missing value and for nothing else. Bounds of times may be infinite.
    Number(Vec<f64>),
    /// The same from a source that holds no more digits than these: half the memory.
    Single(Vec<f32>),
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

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    /// Nothing but missing values: agrees with every kind.
    Unknown,
    Number,
    Single,
    Logical,
    Text,
}

impl ColumnKind {
    /// The kind of a column whose parts are of these kinds.
    pub fn of(parts: impl Iterator<Item = ColumnKind>) -> ColumnKind {
        use ColumnKind::*;
        parts.fold(Unknown, |one, other| match (one, other) {
            (Unknown, kind) | (kind, Unknown) => kind,
            (one, other) if one == other => one,
            (Number, Single) | (Single, Number) => Number,
            _ => Text,
        })
    }
}

/// Where the rows of a table stood: file and line (text) or row (Parquet).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Origin {
    /// The files (or tables in memory, by name), and whether their rows are counted in lines.
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
    /// A column of this kind, in so many rows of which nothing is known. If the kind is not either, they are numbers.
    pub(crate) fn missing(kind: ColumnKind, rows: usize) -> Column {
        match kind {
            ColumnKind::Unknown | ColumnKind::Number => Column::Number(vec![f64::NAN; rows]),
            ColumnKind::Single => Column::Single(vec![f32::NAN; rows]),
            ColumnKind::Logical => Column::Logical(vec![MISSING; rows]),
            ColumnKind::Text => Column::Text { codes: vec![MISSING; rows], levels: Arc::default() },
        }
    }

    /// What the values are.
    pub(crate) fn kind(&self) -> ColumnKind {
        match self {
            Column::Number(_) => ColumnKind::Number,
            Column::Single(_) => ColumnKind::Single,
            Column::Text { .. } => ColumnKind::Text,
            Column::Logical(_) => ColumnKind::Logical,
        }
    }

    /// Adds a row without a value.
    pub(crate) fn push_missing(&mut self) {
        match self {
            Column::Number(values) => values.push(f64::NAN),
            Column::Single(values) => values.push(f32::NAN),
            Column::Text { codes, .. } | Column::Logical(codes) => codes.push(MISSING),
        }
    }

    /// Makes room for so many more rows.
    pub(crate) fn reserve(&mut self, rows: usize) {
        match self {
            Column::Number(values) => values.reserve_exact(rows),
            Column::Single(values) => values.reserve_exact(rows),
            Column::Text { codes, .. } | Column::Logical(codes) => codes.reserve_exact(rows),
        }
    }

    /// Whether every value is missing.
    pub(crate) fn all_missing(&self) -> bool {
        (0..self.len()).all(|row| self.is_missing(row))
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        match self {
            Column::Number(values) => values.len(),
            Column::Single(values) => values.len(),
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
            Column::Single(values) => values[row].is_nan(),
            Column::Text { codes, .. } | Column::Logical(codes) => codes[row] == MISSING,
        }
    }

    /// Whether any value is missing.
    pub fn any_missing(&self) -> bool {
        match self {
            Column::Number(values) => any(values, |v| v.is_nan()),
            Column::Single(values) => any(values, |v| v.is_nan()),
            Column::Text { codes, .. } | Column::Logical(codes) => any(codes, |c| *c == MISSING),
        }
    }

    /// The numbers, NaN for a missing one; `None` if these are text or logicals.
    pub fn numbers(&self) -> Option<Cow<'_, [f64]>> {
        match self {
            Column::Number(values) => Some(Cow::Borrowed(values)),
            Column::Single(values) => Some(values.iter().map(|&v| f64::from(v)).collect()),
            Column::Text { .. } | Column::Logical(_) => None,
        }
    }

    /// Deals the rows out to so many parts.
    fn deal(self, assignment: &[u32], sizes: &[usize]) -> Vec<Column> {
        match self {
            Column::Number(values) => {
                deal(&values, assignment, sizes).into_iter().map(Column::Number).collect()
            }
            Column::Single(values) => {
                deal(&values, assignment, sizes).into_iter().map(Column::Single).collect()
            }
            Column::Text { codes, levels } => deal(&codes, assignment, sizes)
                .into_iter()
                .map(|codes| Column::Text { codes, levels: levels.clone() })
                .collect(),
            Column::Logical(codes) => {
                deal(&codes, assignment, sizes).into_iter().map(Column::Logical).collect()
            }
        }
    }

    /// Puts the rows of another column of the same kind behind these; those of one with fewer digits may be.
    pub(crate) fn append(&mut self, other: Column) {
        match (self, other) {
            (Column::Number(values), Column::Number(more)) => values.extend(more),
            (Column::Number(values), Column::Single(more)) => {
                values.extend(more.into_iter().map(f64::from))
            }
            (Column::Single(values), Column::Single(more)) => values.extend(more),
            (Column::Logical(codes), Column::Logical(more)) => codes.extend(more),
            (Column::Text { codes, levels }, Column::Text { codes: more, levels: others }) => {
                codes.extend(more);
                if others.len() > levels.len() {
                    *levels = others;
                }
            }
            _ => panic!("two columns of one name differ in kind"),
        }
    }

    /// Some rows that stand together.
    pub fn slice(&self, rows: Range<usize>) -> Column {
        match self {
            Column::Number(values) => Column::Number(values[rows].to_vec()),
            Column::Single(values) => Column::Single(values[rows].to_vec()),
            Column::Text { codes, levels } => {
                Column::Text { codes: codes[rows].to_vec(), levels: levels.clone() }
            }
            Column::Logical(codes) => Column::Logical(codes[rows].to_vec()),
        }
    }

    /// The rows with these numbers, in this order.
    pub fn select(&self, rows: &[usize]) -> Column {
        let pick = |codes: &[u32]| rows.iter().map(|&r| codes[r]).collect();
        match self {
            Column::Number(values) => Column::Number(rows.iter().map(|&r| values[r]).collect()),
            Column::Single(values) => Column::Single(rows.iter().map(|&r| values[r]).collect()),
            Column::Text { codes, levels } => {
                Column::Text { codes: pick(codes), levels: levels.clone() }
            }
            Column::Logical(codes) => Column::Logical(pick(codes)),
        }
    }
}

/// Whether any value is so. Nearly always none is: many are looked at before the answer is asked for, so that they are
/// looked at side by side.
fn any<T>(values: &[T], is_so: impl Fn(&T) -> bool) -> bool {
    values.chunks(1024).any(|some| some.iter().fold(false, |any, value| any | is_so(value)))
}

/// The values of every part, in their order: one pass over them, since memory is read faster in its order
/// than per part.
fn deal<T: Copy>(values: &[T], assignment: &[u32], sizes: &[usize]) -> Vec<Vec<T>> {
    let mut parts: Vec<Vec<T>> = sizes.iter().map(|&size| Vec::with_capacity(size)).collect();
    for (value, &part) in values.iter().zip(assignment) {
        parts[part as usize].push(*value);
    }
    parts
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

    /// Puts a number into these rows of a column of numbers.
    pub(crate) fn fill(&mut self, name: &str, rows: &[usize], value: f64) {
        let Some(at) = self.names.iter().position(|n| n == name) else { return };
        match &mut self.columns[at] {
            Column::Number(values) => rows.iter().for_each(|&row| values[row] = value),
            Column::Single(values) => rows.iter().for_each(|&row| values[row] = value as f32),
            Column::Text { .. } | Column::Logical(_) => {}
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
        Place { file: Some(file), line, row, column: column.map(str::to_string), key: None }
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

    /// The columns, in the order of their names.
    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The columns with their names.
    pub(crate) fn into_columns(self) -> Vec<(String, Column)> {
        self.names.into_iter().zip(self.columns).collect()
    }

    /// The bytes that a row takes, where it came from included.
    pub(crate) fn row_bytes(&self) -> usize {
        let width = |column: &Column| if matches!(column, Column::Number(_)) { 8 } else { 4 };
        self.columns.iter().map(width).sum::<usize>() + 8
    }

    /// The bytes that all rows take.
    pub(crate) fn bytes(&self) -> usize {
        self.rows() * self.row_bytes()
    }

    /// Puts the rows of another table with the same columns behind these. Codes of text must mean the same
    /// in both; one of them may know more levels.
    ///
    /// # Panics
    ///
    /// If the columns differ in name or kind. A table without rows takes those of the other.
    pub(crate) fn append(&mut self, other: Table) {
        if self.rows() == 0 {
            *self = other;
            return;
        }
        assert_eq!(self.names, other.names, "the same columns");
        for (own, more) in self.columns.iter_mut().zip(other.columns) {
            own.append(more);
        }
        self.origin.rows.extend(other.origin.rows);
    }

    /// Some rows that stand together.
    pub fn slice(&self, rows: Range<usize>) -> Table {
        let columns = self.columns.iter().map(|c| c.slice(rows.clone())).collect();
        let origin =
            Origin { files: self.origin.files.clone(), rows: self.origin.rows[rows].to_vec() };
        Table { names: self.names.clone(), columns, origin }
    }

    /// Deals the rows out to so many tables, `assignment` naming each row's. Columns are given up one
    /// after the other, so that the rows are not in memory twice.
    ///
    /// # Panics
    ///
    /// If there are not as many assignments as rows, or one of them is not below `parts`.
    pub fn deal(self, assignment: &[u32], parts: usize) -> Vec<Table> {
        assert_eq!(assignment.len(), self.rows(), "one assignment per row");
        if parts == 1 {
            assert!(assignment.iter().all(|&part| part == 0), "an assignment beyond the parts");
            return vec![self];
        }
        let mut sizes = vec![0; parts];
        assignment.iter().for_each(|&part| sizes[part as usize] += 1);
        let Table { names, columns, origin } = self;
        let rows = deal(&origin.rows, assignment, &sizes);
        let files = origin.files;
        drop(origin.rows);
        let mut tables: Vec<Table> = rows
            .into_iter()
            .map(|rows| Table {
                names: names.clone(),
                columns: Vec::with_capacity(columns.len()),
                origin: Origin { files: files.clone(), rows },
            })
            .collect();
        for column in columns {
            let dealt = column.deal(assignment, &sizes);
            tables.iter_mut().zip(dealt).for_each(|(table, column)| table.columns.push(column));
        }
        tables
    }

    /// The rows in which no column is missing; `None` if those are all.
    pub fn complete_rows(&self) -> Option<Vec<usize>> {
        let holed: Vec<&Column> = self.columns.par_iter().filter(|c| c.any_missing()).collect();
        if holed.is_empty() {
            return None;
        }
        let complete = |row: &usize| !holed.iter().any(|c| c.is_missing(*row));
        Some((0..self.rows()).filter(complete).collect())
    }

    /// An error that names the first missing value, if there is one.
    pub fn refuse_missing(&self) -> Result<()> {
        if self.complete_rows().is_none() {
            return Ok(());
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::testing::{number, table, text, truth};

    #[test]
    fn dealing_is_selecting() {
        let whole = table(vec![
            ("x", number(&[1.0, 2.0, 3.0, 4.0, 5.0])),
            ("s", Column::Single(vec![0.1, 0.2, 0.3, 0.4, 0.5])),
            ("t", text(&["a", "b", "a", "c", "b"])),
            ("l", truth(&[true, false, true, true, false])),
        ]);
        let parts = whole.clone().deal(&[2, 0, 2, 0, 0], 4);
        let rows: [&[usize]; 4] = [&[1, 3, 4], &[], &[0, 2], &[]];
        assert_eq!(parts, rows.map(|rows| whole.select(rows)));
        assert_eq!(whole.clone().deal(&[0; 5], 1), std::slice::from_ref(&whole));
        assert_eq!(whole.slice(1..3), whole.select(&[1, 2]));
    }

    #[test]
    fn incomplete_rows_are_found_in_every_kind_of_column() {
        let mut whole = vec![
            ("x", number(&[1.0, f64::NAN, 3.0, 4.0, 5.0])),
            ("s", Column::Single(vec![0.1, 0.2, f32::NAN, 0.4, 0.5])),
            ("l", Column::Logical(vec![0, 1, 1, MISSING, 0])),
        ];
        assert_eq!(table(whole.clone()).complete_rows(), Some(vec![0, 4]));
        assert!(table(whole.clone()).refuse_missing().is_err());
        whole.iter_mut().for_each(|(_, column)| *column = column.select(&[0, 4]));
        assert_eq!(table(whole.clone()).complete_rows(), None);
        assert!(table(whole).refuse_missing().is_ok());
    }
}
