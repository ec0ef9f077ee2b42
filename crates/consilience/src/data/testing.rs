//! Small tables for tests.

use super::table::{Column, Origin, Table};
use std::sync::Arc;

/// A table whose rows stand in `data.csv` from line 2 on.
pub(crate) fn table(columns: Vec<(&str, Column)>) -> Table {
    let rows = columns.first().map_or(0, |(_, c)| c.len());
    let origin = Origin {
        files: Arc::new(vec![("data.csv".into(), true)]),
        rows: (0..rows as u32).map(|row| (0, row + 2)).collect(),
    };
    Table::new(columns.into_iter().map(|(n, c)| (n.to_string(), c)).collect(), origin)
}

/// A column of numbers.
pub(crate) fn number(values: &[f64]) -> Column {
    Column::Number(values.to_vec())
}

/// A column of texts.
pub(crate) fn text(values: &[&str]) -> Column {
    let mut levels: Vec<String> = Vec::new();
    let codes = values.iter().map(|v| {
        levels.iter().position(|l| l == v).unwrap_or_else(|| {
            levels.push(v.to_string());
            levels.len() - 1
        }) as u32
    });
    let codes = codes.collect();
    Column::Text { codes, levels: Arc::new(levels) }
}

/// A column of true and false.
pub(crate) fn truth(values: &[bool]) -> Column {
    Column::Logical(values.iter().map(|&v| u32::from(v)).collect())
}
