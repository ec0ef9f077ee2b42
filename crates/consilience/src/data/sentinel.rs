//! Numbers that may stand for missing values: -999 and the like, far from all other values of their column.

use super::facts::extremes;
use super::table::Column;

/// What is written for missing values where nothing else is.
const CODES: [f64; 9] = [-9.0, -99.0, -999.0, -9999.0, -99999.0, 99.0, 999.0, 9999.0, 99999.0];

/// How often such numbers stand in a column, and between what the others lie.
#[derive(Debug, Clone)]
pub struct Sentinels {
    rows: u64,
    counts: [u64; CODES.len()],
    least: f64,
    most: f64,
}

impl Default for Sentinels {
    fn default() -> Sentinels {
        let counts = [0; CODES.len()];
        Sentinels { rows: 0, counts, least: f64::INFINITY, most: f64::NEG_INFINITY }
    }
}

impl Sentinels {
    /// Takes in more rows of the column.
    pub fn take(&mut self, column: &Column) {
        let Some(values) = column.numbers() else { return };
        self.rows += values.len() as u64;
        let (least, most) = extremes(&values);
        if !CODES.contains(&least) && !CODES.contains(&most) {
            // Within these values a code is one of them, here and so among all rows.
            (self.least, self.most) = (self.least.min(least), self.most.max(most));
            return;
        }
        for &value in values.iter().filter(|value| value.is_finite()) {
            match CODES.iter().position(|code| *code == value) {
                Some(code) => self.counts[code] += 1,
                None => (self.least, self.most) = (self.least.min(value), self.most.max(value)),
            }
        }
    }

    /// The numbers that are further from all others than those are from each other, and in how many rows: in two or
    /// more, or in more than a hundredth of them.
    pub fn found(&self) -> Vec<(f64, u64)> {
        let width = self.most - self.least;
        let is_far = |code: f64| code < self.least - width || code > self.most + width;
        let codes = CODES.into_iter().zip(self.counts);
        let often = |count: u64| count >= 2 || count > 0 && 100 * count > self.rows;
        codes.filter(|&(code, count)| width > 0.0 && often(count) && is_far(code)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::testing::{number, text};

    fn found(parts: &[Vec<f64>]) -> Vec<(f64, u64)> {
        let mut seen = Sentinels::default();
        parts.iter().for_each(|part| seen.take(&number(part)));
        seen.found()
    }

    #[test]
    fn codes_are_told_from_values() {
        let values = |more: &[f64]| {
            let mut all: Vec<f64> = (0..200).map(|i| f64::from(i % 40) / 2.0).collect();
            all.extend(more);
            all
        };
        assert_eq!(found(&[values(&[-999.0, -999.0])]), [(-999.0, 2)]);
        assert_eq!(found(&[values(&[-99.0, 9999.0, -99.0, 9999.0])]), [(-99.0, 2), (9999.0, 2)]);
        // Once among many may be a slip or an outlier; once among few is much.
        assert_eq!(found(&[values(&[-999.0])]), []);
        assert_eq!(found(&[vec![1.0, 2.0, f64::NAN, 99.0]]), [(99.0, 1)]);
        // Near the others, or among them.
        assert_eq!(found(&[values(&[-9.0, -9.0])]), []);
        assert_eq!(found(&[values(&[99.0, 99.0, 300.0])]), []);
        assert_eq!(found(&[vec![99.0; 9]]), []);
        assert_eq!(found(&[]), []);
        // Parts of a column are one column.
        let halves = [values(&[-99.0]), values(&[-99.0])];
        assert_eq!(found(&halves), [(-99.0, 2)]);
        assert_eq!(found(&[values(&[-99.0, -99.0]), values(&[-120.0])]), []);
        let mut words = Sentinels::default();
        words.take(&text(&["-999", "x"]));
        assert_eq!(words.found(), []);
    }
}
