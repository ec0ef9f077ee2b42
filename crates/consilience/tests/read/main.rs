//! Reading tables from files on disk.

mod blocks;
mod bounds;
mod copies;
mod files;
mod halt;
mod kinds;
mod levels;
mod parquet;
mod random;
mod text;
mod written;

use consilience::Error;
use consilience::data::read::{ReadTable, TextFormat, Wanted, read_table};
use consilience::data::{Column, Table};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::PathBuf;
use tempfile::TempDir;

/// A directory for files, gone at the end of the test.
pub struct Dir(TempDir);

impl Dir {
    fn new() -> Dir {
        Dir(tempfile::tempdir().expect("a temporary directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a file")).expect("a directory");
        std::fs::write(&path, content).expect("a file");
        path
    }
}

/// Reads all columns in the default format.
fn read(files: &[PathBuf]) -> Result<ReadTable, Error> {
    read_table(files, &TextFormat::default(), &Wanted::All)
}

/// Reads the only column of the content of a CSV file.
fn read_one(content: &str) -> Result<Column, Error> {
    let dir = Dir::new();
    let table = read(&[dir.write("t.csv", content)])?.table;
    Ok(table.column(&table.names()[0])?.clone())
}

/// A column's values, spelled; `?` for missing ones.
fn values(table: &Table, name: &str) -> String {
    let column = table.column(name).expect("the column");
    let spelled = (0..table.rows()).map(|row| match column {
        _ if column.is_missing(row) => "?".to_string(),
        Column::Number(values) => values[row].to_string(),
        Column::Single(values) => values[row].to_string(),
        Column::Text { codes, levels } => format!("'{}'", levels[codes[row] as usize]),
        Column::Logical(codes) => (codes[row] == 1).to_string(),
    });
    spelled.collect::<Vec<_>>().join(" ")
}

/// The message of an input error, which must say all of this.
fn refused<T: std::fmt::Debug>(result: Result<T, Error>, parts: &[&str]) -> String {
    let error = result.expect_err("an error");
    assert!(error.is_input(), "{error:?}");
    let message = error.to_string();
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
    message
}

fn gzip(content: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content.as_ref()).expect("in memory");
    encoder.finish().expect("in memory")
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| n.to_string()).collect()
}
