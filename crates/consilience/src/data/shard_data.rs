//! Where a shard's rows are.

use super::scratch::{Stored, encoded};
use super::table::{Column, Table};
use crate::Result;
use crate::halt::{Halt, go_on};
use crate::hex::hex;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// A shard's rows: in memory, or in a file from which they come a batch at a time.
#[derive(Debug, Clone)]
pub enum ShardData {
    /// In memory.
    Memory(Arc<Table>),
    /// In a scratch file.
    Scratch(Stored),
}

impl From<Table> for ShardData {
    fn from(table: Table) -> ShardData {
        ShardData::Memory(Arc::new(table))
    }
}

impl ShardData {
    /// How many rows.
    pub fn rows(&self) -> usize {
        match self {
            ShardData::Memory(table) => table.rows(),
            ShardData::Scratch(stored) => stored.rows(),
        }
    }

    /// The bytes that they take in memory.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            ShardData::Memory(table) => table.bytes(),
            ShardData::Scratch(_) => 0,
        }
    }

    /// These rows.
    pub fn batch(&self, rows: Range<usize>) -> Result<Cow<'_, Table>> {
        match self {
            ShardData::Memory(table) if rows == (0..table.rows()) => Ok(Cow::Borrowed(table)),
            ShardData::Memory(table) => Ok(Cow::Owned(table.slice(rows))),
            ShardData::Scratch(stored) => Ok(Cow::Owned(stored.batch(rows)?)),
        }
    }

    /// What becomes of these rows, a few at a time. Those in memory are not copied before: so few of them are that
    /// they stay in cache from the first step to the last.
    pub fn pieces<T>(
        &self,
        rows: Range<usize>,
        most: usize,
        work: impl Fn(&Table) -> Result<T>,
    ) -> Result<Vec<T>> {
        let (table, offset) = match self {
            ShardData::Memory(table) => (Cow::Borrowed(&**table), rows.start),
            ShardData::Scratch(_) => (self.batch(rows.clone())?, 0),
        };
        let piece = |from: usize| {
            let to = rows.len().min(from + most);
            work(&table.slice(offset + from..offset + to))
        };
        (0..rows.len().max(1)).step_by(most).map(piece).collect()
    }

    /// All rows.
    pub fn table(&self) -> Result<Cow<'_, Table>> {
        self.batch(0..self.rows())
    }

    /// All rows, with no more columns than this one where they are not in memory.
    pub(crate) fn narrow(&self, column: Option<&String>) -> Result<Cow<'_, Table>> {
        let ShardData::Scratch(stored) = self else { return self.table() };
        let mut all = Table::default();
        for rows in self.batches(1 << 16) {
            let batch = stored.batch(rows)?;
            let own = column.map(|name| Ok((name.clone(), batch.column(name)?.clone())));
            let own = own.into_iter().collect::<Result<_>>()?;
            all.append(Table::new(own, batch.origin().clone()));
        }
        Ok(Cow::Owned(all))
    }

    /// What tells these rows from others: a hash of their columns, values and places, unless it is called off.
    pub(crate) fn hash(&self, halt: Option<&Halt>) -> Result<String> {
        let mut hasher = Sha256::new();
        let mut add = |bytes: &[u8]| {
            hasher.update((bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        let shape = self.batch(0..0)?;
        for (name, column) in shape.names().iter().zip(shape.columns()) {
            add(name.as_bytes());
            add(format!("{:?}", column.kind()).as_bytes());
            if let Column::Text { levels, .. } = column {
                add(&levels.len().to_le_bytes());
                levels.iter().for_each(|level| add(level.as_bytes()));
            }
        }
        for rows in self.batches(1 << 16) {
            go_on(halt)?;
            let batch = self.batch(rows)?;
            add(&encoded(&batch, 0..batch.rows()));
        }
        Ok(hex(&hasher.finalize()))
    }

    /// The ranges of rows of batches of this many; one if there are no rows.
    pub fn batches(&self, rows: usize) -> Vec<Range<usize>> {
        let count = self.rows().div_ceil(rows).max(1);
        (0..count).map(|k| k * rows..((k + 1) * rows).min(self.rows())).collect()
    }
}
