//! Rows on disk while a program runs, for data that are larger than the memory they may take.
//!
//! A scratch file has no name, so that nothing of it is left whatever happens to the program. It holds
//! extents: some rows of one shard, a column after the other.

use super::shard_data::ShardData;
use super::table::{Column, Origin, Table};
use crate::{Error, Result};
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of one shard's rows that are written in one go: few enough to be read for a few rows.
const EXTENT: usize = 1 << 20;

/// Bytes of all shards' rows that wait for their turn.
const WAITING: usize = 1 << 24;

/// A file of extents while it is written.
pub struct Scratch {
    folder: PathBuf,
    file: File,
    end: u64,
    shards: Vec<Unwritten>,
    waiting: usize,
}

/// A shard's rows: what is written, and what is to be.
#[derive(Default)]
struct Unwritten {
    extents: Vec<Extent>,
    rows: usize,
    table: Table,
}

#[derive(Debug)]
struct Extent {
    at: u64,
    rows: Range<usize>,
}

/// Rows while they come: in memory as long as there is room, then on disk.
pub(crate) struct Gathering<'a> {
    /// Bytes that may be in memory.
    room: usize,
    folder: &'a Path,
    table: Table,
    scratch: Option<Scratch>,
}

impl<'a> Gathering<'a> {
    /// No rows yet, room for so many bytes, and a folder for the others.
    pub fn new(room: usize, folder: &'a Path) -> Gathering<'a> {
        Gathering { room, folder, table: Table::default(), scratch: None }
    }

    /// Takes in more rows, as [`Scratch::push`] does.
    pub fn take(&mut self, rows: Table) -> Result<()> {
        if let Some(scratch) = &mut self.scratch {
            return scratch.push_all(rows);
        }
        self.table.append(rows);
        if self.table.bytes() > self.room {
            let mut scratch = Scratch::new(self.folder, 1)?;
            scratch.push_all(std::mem::take(&mut self.table))?;
            self.scratch = Some(scratch);
        }
        Ok(())
    }

    /// All rows.
    pub fn finish(self) -> Result<ShardData> {
        Ok(match self.scratch {
            None => ShardData::from(self.table),
            Some(scratch) => ShardData::Scratch(scratch.finish()?.remove(0)),
        })
    }
}

/// The rows of one shard in a scratch file.
#[derive(Debug, Clone)]
pub struct Stored {
    folder: Arc<PathBuf>,
    file: Arc<File>,
    /// Its columns, without rows.
    shape: Arc<Table>,
    extents: Arc<Vec<Extent>>,
    rows: usize,
}

impl Scratch {
    /// A new file in this folder for so many shards.
    pub fn new(folder: &Path, shards: usize) -> Result<Scratch> {
        let file = tempfile::tempfile_in(folder).map_err(|source| failed(folder, source))?;
        let shards = (0..shards).map(|_| Unwritten::default()).collect();
        Ok(Scratch { folder: folder.to_path_buf(), file, end: 0, shards, waiting: 0 })
    }

    /// Adds rows, `assignment` naming each one's shard. All tables must have the same columns; codes of
    /// text must mean the same in all, and a later table may know more levels.
    pub fn push(&mut self, rows: Table, assignment: &[u32]) -> Result<()> {
        self.waiting += rows.rows() * rows.row_bytes();
        let parts = match self.shards.len() {
            1 => vec![rows],
            shards => rows.deal(assignment, shards),
        };
        for (shard, part) in parts.into_iter().enumerate() {
            self.shards[shard].table.append(part);
            let table = &self.shards[shard].table;
            if table.rows() * table.row_bytes() >= EXTENT {
                self.write(shard)?;
            }
        }
        if self.waiting >= WAITING {
            self.write_all()?;
        }
        Ok(())
    }

    /// Adds rows of the only shard.
    pub fn push_all(&mut self, rows: Table) -> Result<()> {
        debug_assert_eq!(self.shards.len(), 1);
        self.push(rows, &[])
    }

    fn write_all(&mut self) -> Result<()> {
        (0..self.shards.len()).try_for_each(|shard| self.write(shard))
    }

    /// Writes what waits of a shard.
    fn write(&mut self, shard: usize) -> Result<()> {
        let waiting = &mut self.shards[shard];
        let table = &waiting.table;
        let step = EXTENT / table.row_bytes() + 1;
        for first in (0..table.rows()).step_by(step) {
            let rows = first..(first + step).min(table.rows());
            let bytes = encoded(table, rows.clone());
            self.file.write_all(&bytes).map_err(|source| failed(&self.folder, source))?;
            let end = waiting.rows + rows.len();
            waiting.extents.push(Extent { at: self.end, rows: waiting.rows..end });
            waiting.rows = end;
            self.end += bytes.len() as u64;
            self.waiting -= bytes.len();
        }
        waiting.table = table.slice(0..0);
        Ok(())
    }

    /// Each shard's rows.
    pub fn finish(mut self) -> Result<Vec<Stored>> {
        self.write_all()?;
        let (file, folder) = (Arc::new(self.file), Arc::new(self.folder));
        let stored = |shard: Unwritten| Stored {
            folder: folder.clone(),
            file: file.clone(),
            shape: Arc::new(shard.table),
            extents: Arc::new(shard.extents),
            rows: shard.rows,
        };
        Ok(self.shards.into_iter().map(stored).collect())
    }
}

/// An extent: some rows of a table, a column after the other, then where they came from.
pub(super) fn encoded(table: &Table, rows: Range<usize>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(rows.len() * table.row_bytes());
    for column in table.columns() {
        match column {
            Column::Number(values) => {
                bytes.extend(values[rows.clone()].iter().flat_map(|v| v.to_le_bytes()));
            }
            Column::Single(values) => {
                bytes.extend(values[rows.clone()].iter().flat_map(|v| v.to_le_bytes()));
            }
            Column::Text { codes, .. } | Column::Logical(codes) => {
                bytes.extend(codes[rows.clone()].iter().flat_map(|c| c.to_le_bytes()));
            }
        }
    }
    let origin = &table.origin().rows[rows];
    bytes.extend(origin.iter().flat_map(|(file, _)| file.to_le_bytes()));
    bytes.extend(origin.iter().flat_map(|(_, row)| row.to_le_bytes()));
    bytes
}

impl Stored {
    /// How many rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// These rows.
    pub fn batch(&self, rows: Range<usize>) -> Result<Table> {
        let mut out = self.shape.slice(0..0);
        let first = self.extents.partition_point(|extent| extent.rows.end <= rows.start);
        for extent in self.extents[first..].iter().take_while(|e| e.rows.start < rows.end) {
            let from = rows.start.max(extent.rows.start) - extent.rows.start;
            let to = rows.end.min(extent.rows.end) - extent.rows.start;
            let mut bytes = vec![0; extent.rows.len() * self.shape.row_bytes()];
            read_at(&self.file, &mut bytes, extent.at).map_err(|e| failed(&self.folder, e))?;
            out.append(self.decode(&bytes, extent.rows.len(), from..to));
        }
        Ok(out)
    }

    /// Some rows of an extent of so many.
    fn decode(&self, mut bytes: &[u8], rows: usize, wanted: Range<usize>) -> Table {
        let mut take = |width: usize| {
            let (own, rest) = bytes.split_at(rows * width);
            bytes = rest;
            &own[wanted.start * width..wanted.end * width]
        };
        let mut columns = Vec::with_capacity(self.shape.names().len());
        for (name, column) in self.shape.names().iter().zip(self.shape.columns()) {
            let column = match column {
                Column::Number(_) => Column::Number(decoded(take(8), f64::from_le_bytes)),
                Column::Single(_) => Column::Single(decoded(take(4), f32::from_le_bytes)),
                Column::Logical(_) => Column::Logical(decoded(take(4), u32::from_le_bytes)),
                Column::Text { levels, .. } => {
                    let codes = decoded(take(4), u32::from_le_bytes);
                    Column::Text { codes, levels: levels.clone() }
                }
            };
            columns.push((name.clone(), column));
        }
        let files = decoded(take(4), u32::from_le_bytes);
        let numbers = decoded(take(4), u32::from_le_bytes);
        let origin = Origin {
            files: self.shape.origin().files.clone(),
            rows: files.into_iter().zip(numbers).collect(),
        };
        Table::new(columns, origin)
    }
}

fn decoded<const N: usize, T>(bytes: &[u8], value: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|bytes| value(*bytes)).collect()
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
fn read_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                bytes = &mut bytes[read..];
                at += read as u64;
            }
        }
    }
    Ok(())
}

pub(super) fn failed(folder: &Path, source: io::Error) -> Error {
    let source = io::Error::new(
        source.kind(),
        format!(
            "scratch file for rows that do not fit in memory: {source}; name a folder with room by --scratch, or allow more by --memory"
        ),
    );
    Error::Io { path: folder.to_path_buf(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::testing::{number, table, text, truth};

    #[test]
    fn rows_come_back_by_shard_and_range() {
        let n = 100_000;
        let column = |k: usize| -> Vec<f64> { (0..n).map(|i| (i * k) as f64).collect() };
        let words: Vec<&str> = (0..n).map(|i| ["a", "b", "c"][i % 3]).collect();
        let whole = table(vec![
            ("x", number(&column(3))),
            ("s", Column::Single((0..n).map(|i| i as f32 / 7.0).collect())),
            ("t", text(&words)),
            ("l", truth(&(0..n).map(|i| i % 5 == 0).collect::<Vec<_>>())),
        ]);
        // Most rows go to the second of three shards, none to the third.
        let assignment: Vec<u32> = (0..n as u32).map(|i| u32::from(i % 4 > 0)).collect();
        let folder = tempfile::tempdir().unwrap();
        let mut scratch = Scratch::new(folder.path(), 3).unwrap();
        for first in (0..n).step_by(7_000) {
            let rows = first..(first + 7_000).min(n);
            scratch.push(whole.slice(rows.clone()), &assignment[rows]).unwrap();
        }
        let stored = scratch.finish().unwrap();
        assert!(stored[1].extents.len() > 1 && stored[2].rows() == 0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "it has no name");
        for (stored, expected) in stored.iter().zip(whole.deal(&assignment, 3)) {
            assert_eq!(stored.rows(), expected.rows());
            let n = stored.rows();
            for rows in [0..n, 0..0, 0..n.min(1), n / 3..n / 2, n.saturating_sub(1)..n] {
                assert_eq!(stored.batch(rows.clone()).unwrap(), expected.slice(rows));
            }
        }
    }
}
