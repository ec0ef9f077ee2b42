//! Equal rows, merged.

use crate::math::Compensated;
use crate::math::counts::misfit;
use std::collections::HashMap;

/// Rows that agree in every column and the offset, merged. Those of a single observation come first;
/// within these and the others, those with the same columns not 0 stand together, otherwise in the
/// order in which they first come.
pub(super) struct Merged {
    pub columns: Vec<Vec<f64>>,
    pub offset: Vec<f64>,
    pub count: Vec<f64>,
    pub total: Vec<f64>,
    /// Σ of what rows lose by the mean outcome of the rows that they are merged with, taken as Poisson
    /// counts (`math::counts::misfit`); 0 unless it is asked for.
    pub misfit: f64,
}

/// What becomes of rows that agree in all but the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MergeBy {
    /// They are merged.
    Summed,
    /// They are merged, and it is told what counts lose by that.
    Counted,
    /// They stay apart.
    Apart,
}

impl Merged {
    pub fn new(
        columns: Vec<Vec<f64>>,
        y: Vec<f64>,
        offset: Vec<f64>,
        weights: Vec<f64>,
        outcome: MergeBy,
    ) -> Merged {
        let views: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let hopeless = |rows: Vec<usize>| is_hopeless(&rows, &views, Some(&offset), |k| rows[k]);
        if weights.iter().all(|w| *w == 1.0) && sample(offset.len()).is_some_and(hopeless) {
            return Merged { columns, offset, count: weights, total: y, misfit: 0.0 };
        }
        Merged::by_hash(&columns, &y, &offset, &weights, outcome)
    }

    fn by_hash(
        columns: &[Vec<f64>],
        y: &[f64],
        offset: &[f64],
        weights: &[f64],
        outcome: MergeBy,
    ) -> Merged {
        let n = y.len();
        let mut hashes = vec![START; n];
        let key = if outcome == MergeBy::Apart { y } else { offset };
        for values in columns.iter().map(|c| c.as_slice()).chain([offset, key]) {
            hashes.iter_mut().zip(values).for_each(|(h, v)| *h = hash(*h, *v));
        }
        let same = |i: usize, k: usize| {
            offset[i] == offset[k] && key[i] == key[k] && columns.iter().all(|c| c[i] == c[k])
        };
        let mut first = Vec::new();
        let (mut count, mut total) = (Vec::new(), Vec::new());
        let mut home = Vec::new();
        let mut slots: HashMap<u64, Vec<u32>> = HashMap::with_capacity(n.min(1 << 16));
        for i in (0..n).filter(|&i| weights[i] > 0.0) {
            let candidates = slots.entry(hashes[i]).or_default();
            let slot = candidates.iter().map(|&s| s as usize).find(|&s| same(i, first[s]));
            let slot = slot.unwrap_or_else(|| {
                candidates.push(first.len() as u32);
                first.push(i);
                count.push(0.0);
                total.push(0.0);
                first.len() - 1
            });
            count[slot] += weights[i];
            total[slot] += weights[i] * y[i];
            if outcome == MergeBy::Counted {
                home.push((i, slot));
            }
        }
        let mut lost = Compensated::default();
        for (i, slot) in home {
            if y[i] != 0.0 || total[slot] != 0.0 {
                lost.add(weights[i] * misfit(y[i], total[slot] / count[slot]));
            }
        }
        let mut pattern = vec![0_u64; first.len()];
        for (j, column) in columns.iter().enumerate() {
            for (mark, &i) in pattern.iter_mut().zip(&first) {
                *mark = mark.rotate_left(7) ^ if column[i] == 0.0 { 0 } else { 1 + j as u64 };
            }
        }
        let mut order: Vec<usize> = (0..first.len()).collect();
        order.sort_by_key(|&slot| (count[slot] != 1.0, pattern[slot]));
        let pick = |values: &[f64]| order.iter().map(|&s| values[first[s]]).collect::<Vec<f64>>();
        Merged {
            columns: columns.iter().map(|c| pick(c)).collect(),
            offset: pick(offset),
            count: order.iter().map(|&s| count[s]).collect(),
            total: order.iter().map(|&s| total[s]).collect(),
            misfit: lost.value(),
        }
    }
}

/// The hash of a row of no values.
const START: u64 = 0xcbf2_9ce4_8422_2325;

/// The hash of a row, one more value taken in.
fn hash(row: u64, value: f64) -> u64 {
    // + 0.0 makes −0 and 0 one value.
    let mixed = (row ^ (value + 0.0).to_bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// A number that looks random (Steele, Lea & Flood 2014: SplitMix64).
fn scrambled(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Rows below which looking for equal ones costs nothing to speak of.
const FEW: usize = 4096;

/// 8√n of n rows, if there are enough to choose from. They are from anywhere: equal rows may stand next to
/// each other, or far apart.
pub(super) fn sample(n: usize) -> Option<Vec<usize>> {
    let row = |k: u64| (scrambled(k) % n as u64) as usize;
    (n >= FEW).then(|| (0..8 * n.isqrt() as u64).map(row).collect())
}

/// Whether hardly any rows are equal and hardly a value is 0, so that merging and sorting would cost more
/// than they save. It goes by a sample: if no two of its rows are equal then, most likely, no more than one
/// row in ten has an equal among all n. The k-th row of the sample is the `at(k)`-th of the columns.
pub(super) fn is_hopeless(
    sample: &[usize],
    columns: &[&[f64]],
    offset: Option<&[f64]>,
    at: impl Fn(usize) -> usize,
) -> bool {
    let mut seen: HashMap<u64, usize> = HashMap::with_capacity(sample.len());
    let mut zeros = 0;
    for (k, &i) in sample.iter().enumerate() {
        let row = columns.iter().map(|c| c[at(k)]);
        zeros += row.clone().filter(|x| *x == 0.0).count();
        let first = hash(START, offset.map_or(0.0, |offset| offset[at(k)]));
        let known = seen.insert(row.fold(first, hash), i);
        if known.is_some_and(|known| known != i) {
            return false;
        }
    }
    zeros * 5 < sample.len() * columns.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// n rows of two columns with these values, an outcome of 0 and 1.
    fn merged(n: usize, x: impl Fn(usize) -> [f64; 2]) -> Merged {
        let column = |j: usize| (0..n).map(|i| x(i)[j]).collect();
        let y = (0..n).map(|i| f64::from(i % 3 == 0)).collect();
        Merged::new(vec![column(0), column(1)], y, vec![0.0; n], vec![1.0; n], MergeBy::Summed)
    }

    #[test]
    fn equal_rows_are_looked_for_where_there_are_some() {
        let n = 50_000;
        let spread = |i: usize| libm::sin(i as f64 + 1.0);
        // None is equal to another: as they come.
        let alone = merged(n, |i| [1.0, spread(i)]);
        assert_eq!((alone.count.len(), alone.columns[1][7]), (n, spread(7)));
        // In pairs, next to each other or far apart; few in all.
        for other in [|i: usize| i / 2, |i: usize| i % 25_000, |i: usize| i % 100] {
            let pairs = merged(n, |i| [1.0, spread(other(i))]);
            assert!(pairs.count.len() <= n / 2, "{}", pairs.count.len());
            assert_eq!(pairs.count.iter().sum::<f64>(), n as f64);
            assert_eq!(pairs.total.iter().sum::<f64>(), (n as f64 / 3.0).ceil());
        }
        // A column that is mostly 0: sorted, so that panels can pass it over.
        let sparse = merged(n, |i| [spread(i), f64::from(i % 2 == 0)]);
        let changes = sparse.columns[1].windows(2).filter(|w| w[0] != w[1]).count();
        assert_eq!((sparse.count.len(), changes), (n, 1));
    }
}
