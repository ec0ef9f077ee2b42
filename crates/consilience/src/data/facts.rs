//! What a shard says about its rows, and how the words of several shards become one.

use super::number::level_name;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::HashMap;

/// The most levels that a factor may have.
pub const MAX_LEVELS: usize = 10_000;

/// A shard's answer to a [`Request`](super::Request). Rows of weight 0 count for nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Fact {
    /// About a column.
    Column(ColumnFact),
    /// About the distinct values of an expression.
    Levels(Levels),
    /// About the spread of an expression.
    Moments(Moments),
    /// About the Chebyshev polynomials of an expression.
    Gram(GramFact),
}

/// What kinds of values a column holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnFact {
    /// The rows that are numbers or words that spell numbers.
    pub numbers: Moments,
    /// How many of those stood in a column of numbers, and so are not among the levels.
    pub unlisted: u64,
    /// How many rows are neither: other words, and true or false.
    pub words: u64,
    /// How many of those stood in a logical column.
    pub logical: u64,
    /// The distinct values of text and logical columns.
    pub levels: Levels,
    /// The first row that is no number.
    pub first_word: Option<Word>,
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Word {
    /// File, line and column, ready to be shown.
    pub place: String,
    /// The value.
    pub value: String,
}

/// Distinct values with their counts, in the order of a factor's levels: numbers by size if all
/// are numbers, else by their text's bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Levels {
    /// The values; none if there are too many.
    pub list: Vec<LevelCount>,
    /// Whether there are more than [`MAX_LEVELS`].
    pub too_many: bool,
}

/// One distinct value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelCount {
    /// Its name.
    pub name: String,
    /// The number, if it comes from numbers.
    pub number: Option<f64>,
    /// In how many rows it stands.
    pub rows: u64,
    /// The sum of their weights.
    pub weight: f64,
}

/// Count, mean and spread. Without rows all of it is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// How many rows.
    pub rows: u64,
    /// The sum of their weights: their number if there are no weights.
    pub weight: f64,
    /// The weighted mean.
    pub mean: f64,
    /// The weighted sum of squared distances from the mean.
    pub m2: f64,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
}

/// Sums of Chebyshev polynomials, from which their inner products follow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GramFact {
    /// The weighted sums of the polynomials of degree 0, 1, … up to twice the degree asked for.
    pub sums: Vec<f64>,
    /// The distinct values, ascending, unless there are more of them than the degree.
    pub distinct: Vec<f64>,
    /// Whether there are more distinct values than the degree.
    pub enough: bool,
}

/// Folds every eighth value, in eight lanes side by side.
#[inline(always)]
fn lanes(values: &[f64], start: f64, fold: impl Fn(f64, f64) -> f64) -> [f64; 8] {
    let mut lanes = [start; 8];
    let (whole, rest) = values.as_chunks::<8>();
    for values in whole {
        for (lane, x) in lanes.iter_mut().zip(values) {
            *lane = fold(*lane, *x);
        }
    }
    lanes.iter_mut().zip(rest).for_each(|(lane, x)| *lane = fold(*lane, *x));
    lanes
}

/// The least and the greatest value, those that are missing or infinite aside; infinite where there is none.
pub(super) fn extremes(values: &[f64]) -> (f64, f64) {
    let low = |x: f64, y: f64| if y < x && y > f64::NEG_INFINITY { y } else { x };
    let high = |x: f64, y: f64| if y > x && y < f64::INFINITY { y } else { x };
    let least = lanes(values, f64::INFINITY, low).into_iter().fold(f64::INFINITY, f64::min);
    let most = lanes(values, f64::NEG_INFINITY, high).into_iter();
    (least, most.fold(f64::NEG_INFINITY, f64::max))
}

impl Moments {
    /// The moments of these values; a weight per value or 1 for all.
    pub(crate) fn of(values: &[f64], weights: Option<&[f64]>) -> Moments {
        let Some(weights) = weights else { return Moments::of_all(values) };
        let weight = |i: usize| weights[i];
        let counted = || (0..values.len()).filter(|&i| weight(i) > 0.0);
        let mut moments = Moments { min: f64::INFINITY, max: f64::NEG_INFINITY, ..Self::default() };
        let mut sum = 0.0;
        for i in counted() {
            moments.rows += 1;
            moments.weight += weight(i);
            sum += weight(i) * values[i];
            moments.min = moments.min.min(values[i]);
            moments.max = moments.max.max(values[i]);
        }
        if moments.rows == 0 {
            return Moments::default();
        }
        // The second pass takes out what rounding left in the mean.
        let mean = sum / moments.weight;
        let rest: f64 = counted().map(|i| weight(i) * (values[i] - mean)).sum();
        moments.mean = mean + rest / moments.weight;
        let squared = |i: usize| {
            let apart: f64 = values[i] - moments.mean;
            weight(i) * apart * apart
        };
        moments.m2 = counted().map(squared).sum();
        moments
    }

    /// The same of values that all count once: in sums of eight lanes, which are fast.
    fn of_all(values: &[f64]) -> Moments {
        let Some(&first) = values.first() else { return Moments::default() };
        let weight = values.len() as f64;
        let mean = lanes(values, 0.0, |sum, x| sum + x).iter().sum::<f64>() / weight;
        let rest: f64 = lanes(values, 0.0, |sum, x| sum + (x - mean)).iter().sum();
        let mean = mean + rest / weight;
        let m2 = lanes(values, 0.0, |sum, x| sum + (x - mean) * (x - mean)).iter().sum();
        let least = lanes(values, first, |least, x| if x < least { x } else { least });
        let most = lanes(values, first, |most, x| if x > most { x } else { most });
        Moments {
            rows: values.len() as u64,
            weight,
            mean,
            m2,
            min: least.into_iter().fold(first, f64::min),
            max: most.into_iter().fold(first, f64::max),
        }
    }

    /// Moments of which only these are known.
    pub(crate) fn of_sums(weight: f64, mean: f64, m2: f64) -> Moments {
        Moments { rows: 1, weight, mean, m2, min: mean, max: mean }
    }

    /// The standard deviation with n - 1 below; 0 for a single row.
    pub fn sd(&self) -> f64 {
        if self.weight > 1.0 { (self.m2 / (self.weight - 1.0)).sqrt() } else { 0.0 }
    }

    /// The moments of both together (Chan, Golub & LeVeque 1983).
    pub(crate) fn merge(self, other: Moments) -> Moments {
        if self.rows == 0 {
            return other;
        }
        if other.rows == 0 {
            return self;
        }
        let weight = self.weight + other.weight;
        let apart = other.mean - self.mean;
        Moments {
            rows: self.rows + other.rows,
            weight,
            mean: self.mean + apart * (other.weight / weight),
            m2: self.m2 + other.m2 + apart * apart * (self.weight * other.weight / weight),
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}

impl Levels {
    /// The levels in order, from a list in any order whose names are distinct.
    pub(crate) fn new(mut list: Vec<LevelCount>, too_many: bool) -> Levels {
        if too_many || list.len() > MAX_LEVELS {
            return Levels { list: Vec::new(), too_many: true };
        }
        if list.iter().all(|l| l.number.is_some()) {
            list.sort_by(|a, b| a.number.partial_cmp(&b.number).unwrap_or(Ordering::Equal));
        } else {
            list.sort_by(|a, b| a.name.cmp(&b.name));
        }
        Levels { list, too_many: false }
    }

    /// The levels' names, in order.
    pub fn names(&self) -> Vec<String> {
        self.list.iter().map(|l| l.name.clone()).collect()
    }

    fn merge(self, other: Levels) -> Levels {
        let too_many = self.too_many || other.too_many;
        let mut list = self.list;
        let index: HashMap<String, usize> =
            list.iter().enumerate().map(|(i, l)| (l.name.clone(), i)).collect();
        for level in other.list {
            match index.get(&level.name) {
                Some(&i) => {
                    let known = &mut list[i];
                    // A name that is a word on some shard is a word.
                    known.number = known.number.and(level.number);
                    known.rows += level.rows;
                    known.weight += level.weight;
                }
                None => list.push(level),
            }
        }
        Levels::new(list, too_many)
    }
}

impl LevelCount {
    /// A level of numbers that has not been seen yet.
    pub(crate) fn number(value: f64) -> LevelCount {
        // Negative zero is zero.
        let value = value + 0.0;
        LevelCount { name: level_name(value), number: Some(value), rows: 0, weight: 0.0 }
    }

    /// A level of words that has not been seen yet.
    pub(crate) fn word(name: &str) -> LevelCount {
        LevelCount { name: name.to_string(), number: None, rows: 0, weight: 0.0 }
    }
}

impl GramFact {
    fn degree(&self) -> usize {
        self.sums.len() / 2
    }

    fn merge(mut self, other: GramFact) -> GramFact {
        for (sum, more) in self.sums.iter_mut().zip(&other.sums) {
            *sum += more;
        }
        self.enough |= other.enough;
        self.distinct.extend(&other.distinct);
        let degree = self.degree();
        GramFact::new(self.sums, self.distinct, self.enough, degree)
    }

    pub(crate) fn new(
        sums: Vec<f64>,
        mut distinct: Vec<f64>,
        enough: bool,
        degree: usize,
    ) -> GramFact {
        distinct.sort_by(f64::total_cmp);
        distinct.dedup();
        let enough = enough || distinct.len() > degree;
        if enough {
            // Values are not shown further than needed.
            distinct.clear();
        }
        GramFact { sums, distinct, enough }
    }
}

impl Fact {
    /// What two shards, or groups of them, say together. The shards' order is kept: the first
    /// offender is the first one's.
    pub fn merge(self, other: Fact) -> Result<Fact> {
        match (self, other) {
            (Fact::Column(a), Fact::Column(b)) => Ok(Fact::Column(ColumnFact {
                numbers: a.numbers.merge(b.numbers),
                unlisted: a.unlisted + b.unlisted,
                words: a.words + b.words,
                logical: a.logical + b.logical,
                levels: a.levels.merge(b.levels),
                first_word: a.first_word.or(b.first_word),
            })),
            (Fact::Levels(a), Fact::Levels(b)) => Ok(Fact::Levels(a.merge(b))),
            (Fact::Moments(a), Fact::Moments(b)) => Ok(Fact::Moments(a.merge(b))),
            (Fact::Gram(a), Fact::Gram(b)) if a.sums.len() == b.sums.len() => {
                Ok(Fact::Gram(a.merge(b)))
            }
            _ => Err(Error::input("two shards gave answers to different questions")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(values: &[f64]) -> Fact {
        Fact::Moments(Moments::of(values, None))
    }

    #[test]
    fn moments_merge_in_any_grouping() {
        let values: Vec<f64> = (0..60).map(|i| 1e6 + f64::from(i * i % 17)).collect();
        let (a, b, c) = (moments(&values[..7]), moments(&values[7..9]), moments(&values[9..]));
        let left = a.clone().merge(b.clone()).unwrap().merge(c.clone()).unwrap();
        let right = a.merge(b.merge(c).unwrap()).unwrap();
        let Fact::Moments(whole) = moments(&values) else { unreachable!() };
        for merged in [left, right] {
            let Fact::Moments(m) = merged else { unreachable!() };
            assert_eq!((m.rows, m.weight, m.min, m.max), (60, 60.0, whole.min, whole.max));
            assert!((m.mean - whole.mean).abs() < 1e-9);
            assert!((m.m2 / whole.m2 - 1.0).abs() < 1e-10);
        }
        let empty = moments(&[]);
        assert_eq!(empty.clone().merge(moments(&values)).unwrap(), moments(&values));
        assert_eq!(moments(&values).merge(empty).unwrap(), moments(&values));
    }

    #[test]
    fn weights_count_rows_and_zero_counts_none() {
        let weighted = Moments::of(&[1.0, 9.0, 4.0], Some(&[2.0, 0.0, 3.0]));
        let expanded = Moments::of(&[1.0, 1.0, 4.0, 4.0, 4.0], None);
        assert_eq!((weighted.rows, weighted.weight, weighted.max), (2, 5.0, 4.0));
        assert!((weighted.mean - expanded.mean).abs() < 1e-15);
        assert!((weighted.sd() - expanded.sd()).abs() < 1e-15);
    }

    #[test]
    fn numbers_become_words_where_one_shard_has_words() {
        let seen = |mut level: LevelCount| {
            level.rows = 2;
            level.weight = 2.0;
            level
        };
        let numbers = Levels::new([10.0, 9.0].map(LevelCount::number).map(seen).into(), false);
        assert_eq!(numbers.names(), ["9", "10"]);
        let words = Levels::new(["b", "9"].map(LevelCount::word).map(seen).into(), false);
        let both = numbers.merge(words);
        assert_eq!(both.names(), ["10", "9", "b"]);
        assert_eq!(both.list[1].rows, 4);
    }

    #[test]
    fn different_facts_do_not_merge() {
        assert!(moments(&[1.0]).merge(Fact::Levels(Levels::default())).is_err());
    }
}
