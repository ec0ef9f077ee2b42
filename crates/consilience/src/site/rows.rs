//! Which of a site's rows were answered with: two answers that differ by a few rows tell what these rows are.

use super::policy::{LogEntry, refuse};
use crate::Result;
use crate::data::Table;
use crate::run::sha256_hex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write;

/// A set of rows of some files, as a log keeps it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsUsed {
    /// The hashes of the files.
    pub files: Vec<String>,
    /// How many rows there are.
    pub count: u64,
    /// The hash of the set.
    pub hash: String,
    /// The rows themselves as `file:first-last`, separated by spaces; only where the set stands for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranges: Option<String>,
}

impl RowsUsed {
    /// The rows of a table that count, of files with these hashes.
    pub(super) fn of(
        table: &Table,
        counts: impl Fn(usize) -> bool,
        files: Vec<String>,
    ) -> RowsUsed {
        let rows = table.origin().rows.iter().enumerate();
        let set: BTreeSet<(u32, u32)> =
            rows.filter(|(i, _)| counts(*i)).map(|(_, place)| *place).collect();
        let ranges = ranges(&set);
        let count = set.len() as u64;
        RowsUsed { files, count, hash: sha256_hex(ranges.as_bytes()), ranges: Some(ranges) }
    }

    /// An error if some earlier answer was given with nearly the same rows: the difference would be seen.
    pub(super) fn apart(&self, log: &[LogEntry], site: &str, min_rows: u64) -> Result<()> {
        // Of other files, only those of the same site: sites that share a log have rows of their own.
        let related = |entry: &&LogEntry| entry.site == site || entry.rows_used.files == self.files;
        let earlier = log.iter().filter(related).map(|entry| &entry.rows_used);
        let earlier = earlier.filter(|rows| rows.count > 0);
        let mut seen = BTreeSet::new();
        for before in earlier.filter(|rows| seen.insert((&rows.files, &rows.hash))) {
            let apart = if before.files == self.files {
                self.distance(before, log)
            } else {
                // Rows of other files cannot be told from each other, only counted.
                self.count.abs_diff(before.count)
            };
            if (1..min_rows).contains(&apart) {
                return refuse(format!(
                    "these {} rows differ from {} that were answered with before by {apart}, fewer than min_rows = {min_rows}: the difference of the answers would show them. Rows are left out where a value of the study's columns is missing, where they have weight 0 or no trials, or where data have changed",
                    self.count, before.count
                ));
            }
        }
        Ok(())
    }

    /// How many rows are in one of the two sets and not in the other.
    fn distance(&self, before: &RowsUsed, log: &[LogEntry]) -> u64 {
        if self.hash == before.hash {
            return 0;
        }
        let stated = |rows: &RowsUsed| {
            let same = log.iter().map(|e| &e.rows_used).filter(|r| r.hash == rows.hash);
            let text = rows.ranges.clone().or_else(|| same.filter_map(|r| r.ranges.clone()).next());
            text.and_then(|text| parse(&text))
        };
        match (stated(self), stated(before)) {
            (Some(own), Some(other)) => own.symmetric_difference(&other).count() as u64,
            // A log that was altered: the least that it can be.
            _ => self.count.abs_diff(before.count).max(1),
        }
    }

    /// The set without its list, where the log has that already.
    pub(super) fn shortened(mut self, log: &[LogEntry]) -> RowsUsed {
        let known = |entry: &LogEntry| {
            entry.rows_used.hash == self.hash && entry.rows_used.ranges.is_some()
        };
        if log.iter().any(known) {
            self.ranges = None;
        }
        self
    }
}

fn ranges(set: &BTreeSet<(u32, u32)>) -> String {
    let mut out = String::new();
    let mut rows = set.iter().copied().peekable();
    while let Some((file, first)) = rows.next() {
        let mut last = first;
        while rows.next_if(|&(f, row)| f == file && row == last + 1).is_some() {
            last += 1;
        }
        let _ = write!(out, "{}{file}:{first}-{last}", if out.is_empty() { "" } else { " " });
    }
    out
}

fn parse(text: &str) -> Option<BTreeSet<(u32, u32)>> {
    let mut set = BTreeSet::new();
    for word in text.split_whitespace() {
        let (file, range) = word.split_once(':')?;
        let (first, last) = range.split_once('-')?;
        let (file, first, last): (u32, u32, u32) =
            (file.parse().ok()?, first.parse().ok()?, last.parse().ok()?);
        set.extend((first..=last).map(|row| (file, row)));
    }
    Some(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_rows_are_written_and_read() {
        let set: BTreeSet<(u32, u32)> =
            [(0, 2), (0, 3), (0, 4), (0, 9), (1, 10), (1, 11)].into_iter().collect();
        assert_eq!(ranges(&set), "0:2-4 0:9-9 1:10-11");
        assert_eq!(parse(&ranges(&set)), Some(set));
        assert_eq!(parse(""), Some(BTreeSet::new()));
        assert_eq!(parse("0:4"), None);
    }
}
