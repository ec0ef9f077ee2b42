//! Moments of columns that are added up without a rounding error, and without showing their terms.
//!
//! Of n rows with mean m and squared deviations Q around it, what adds up is n, nm and Q + nm². A column far from 0 loses the
//! digits of Q in these as doubles: so they are long whole numbers (`math/wide.rs`), from which the mean and the squared
//! deviations of all rows follow, each rounded once. What Q + nm² has beyond the last digits of Q is rounded away
//! before: these digits would be nm² alone, and equations about single means.

use crate::math::wide::{Product, Whole, WordPlace};

/// Numbers of rows are multiples of 2⁻⁹⁶, means of 2⁻⁵⁶⁰: so are sums and sums of squares of what follows.
const COUNT: WordPlace = WordPlace { lowest: -96, words: 3 };
const MEAN: i32 = -560;
/// Up to the root of 2⁹⁶ times the largest square.
const SUM: WordPlace = WordPlace { lowest: COUNT.lowest + MEAN, words: 14 };
const SQUARE: WordPlace = WordPlace { lowest: SUM.lowest + MEAN, words: 25 };
/// Bits of a sum of squares that count: those of a double, and some more so that it comes back as it was.
const DIGITS: i32 = 57;

/// How what is said of so many columns stands in line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MomentsLayout {
    /// How many there are.
    pub columns: usize,
    /// Whether their moments are told.
    pub units: bool,
}

impl MomentsLayout {
    /// How many words it takes.
    pub fn words(&self) -> usize {
        // Of a column, whether it varies on a shard too.
        let moments = if self.units { 1 + SUM.words + SQUARE.words } else { 0 };
        2 * COUNT.words + SUM.words + self.columns * (COUNT.words + moments)
    }

    /// How many numbers: the observations, the mean of the offsets, the rows, and per column the observations in which it is
    /// not 0; then the columns' means, and their squared deviations.
    pub fn numbers(&self) -> usize {
        3 + self.columns * if self.units { 3 } else { 1 }
    }

    /// Adds what one shard says; `None` if a number is too large.
    pub fn add(&self, words: &mut [i128], numbers: &[f64]) -> Option<()> {
        if numbers.len() != self.numbers() || words.len() != self.words() {
            return None;
        }
        if !numbers.iter().all(|x| x.is_finite()) {
            return None;
        }
        let p = self.columns;
        let count = |x: f64| Product::of(&[on_grid(x, COUNT.lowest)]);
        let rows = on_grid(numbers[0], COUNT.lowest);
        let sum = |mean: f64| Product::of(&[rows, on_grid(mean, MEAN)]);
        let mut line = WordLine(words);
        COUNT.add(line.next(COUNT), &count(rows))?;
        SUM.add(line.next(SUM), &sum(numbers[1]))?;
        for counted in &numbers[2..3 + p] {
            COUNT.add(line.next(COUNT), &count(*counted))?;
        }
        let told = if self.units { p } else { 0 };
        for j in 0..told {
            let (mean, squares) = (on_grid(numbers[3 + p + j], MEAN), numbers[3 + 2 * p + j]);
            line.one()[0] += i128::from(squares > 0.0);
            SUM.add(line.next(SUM), &sum(mean))?;
            let (own, apart) = (Product::of(&[squares]), Product::of(&[rows, mean, mean]));
            // Where all rows have one value, it counts itself.
            let height = if squares > 0.0 { own.height() } else { apart.height() };
            let place = line.next(SQUARE);
            SQUARE.add(place, &own)?;
            SQUARE.add(place, &apart.rounded(height.saturating_sub(DIGITS)))?;
        }
        Some(())
    }

    /// What all shards say together: the same numbers, of all rows.
    pub fn read(&self, words: &[i128]) -> Vec<f64> {
        let mut rest = words;
        let mut next = |count: usize| {
            let (own, after) = rest.split_at_checked(count).unwrap_or_default();
            rest = after;
            Whole::of_words(own)
        };
        let one = Whole::of_words(&[1]);
        let rows = next(COUNT.words);
        let mut out = vec![rows.over(&one, COUNT.lowest), next(SUM.words).over(&rows, MEAN)];
        out.extend((0..=self.columns).map(|_| next(COUNT.words).over(&one, COUNT.lowest)));
        let mut squares = Vec::new();
        for _ in 0..if self.units { self.columns } else { 0 } {
            let (varying, sum) = (next(1), next(SUM.words));
            let whole = rows.times(&next(SQUARE.words));
            let apart = whole.clone().less(&sum.times(&sum));
            // Where no shard has two values, what is left may be rounding: values that differ by less than 2⁻²⁸ are one.
            let same = varying.is_zero() && whole.is_at_least((DIGITS - 1) as u32, &apart);
            out.push(sum.over(&rows, MEAN));
            squares.push(if same { 0.0 } else { apart.over(&rows, SQUARE.lowest) });
        }
        out.extend(squares);
        out
    }
}

/// A number, rounded to a multiple of 2 to this power.
fn on_grid(x: f64, step: i32) -> f64 {
    if x.abs() >= libm::ldexp(1.0, step + 52) {
        return x;
    }
    libm::ldexp(libm::ldexp(x, -step).round_ties_even(), step)
}

/// Words that are handed out one place after the other.
struct WordLine<'a>(&'a mut [i128]);

impl<'a> WordLine<'a> {
    fn next(&mut self, place: WordPlace) -> &'a mut [i128] {
        self.take(place.words)
    }

    fn one(&mut self) -> &'a mut [i128] {
        self.take(1)
    }

    fn take(&mut self, count: usize) -> &'a mut [i128] {
        let (own, rest) = std::mem::take(&mut self.0).split_at_mut(count);
        self.0 = rest;
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Moments;
    use crate::math::stream;
    use rand::RngExt;

    const ONE: MomentsLayout = MomentsLayout { columns: 1, units: true };

    /// Rows, the column's mean and squared deviations.
    fn merged(parts: &[(f64, f64, f64)]) -> (f64, f64, f64) {
        let mut words = vec![0; ONE.words()];
        for (rows, mean, squares) in parts {
            ONE.add(&mut words, &[*rows, 0.0, *rows, *rows, *mean, *squares]).unwrap();
        }
        let found = ONE.read(&words);
        assert_eq!(found.len(), ONE.numbers());
        assert_eq!((found[2], found[3]), (found[0], found[0]));
        (found[0], found[4], found[5])
    }

    #[test]
    fn one_shard_comes_back_as_it_was() {
        let mut rng = stream(1, 0, 0, "moments");
        for _ in 0..2000 {
            let size = |rng: &mut crate::math::Stream, most: i32| {
                libm::ldexp(rng.random_range(0.5..1.0), rng.random_range(-most..most))
            };
            let part = (size(&mut rng, 40), -size(&mut rng, 450), size(&mut rng, 900));
            assert_eq!(merged(&[part]), part);
        }
        for part in [(7.0, 0.1, 0.0), (3.0, 1e-150, 1e-310), (1e9, 1e149, 1e300), (0.25, 0.0, 0.0)]
        {
            assert_eq!(merged(&[part]), part);
        }
        assert_eq!(merged(&[(0.0, 0.0, 0.0)]), (0.0, 0.0, 0.0));
    }

    /// Columns far from 0 keep the digits that plain sums lose, in any order of shards.
    #[test]
    fn columns_far_from_zero_keep_their_digits() {
        for (far, lost) in [(0.0, 1e-15), (1e3, 1e-12), (1e6, 1e-6), (1e9, 1.0), (1e12, 1.0)] {
            let mut rng = stream(2, 0, 0, "moments");
            let shards: Vec<Vec<f64>> = (0..9)
                .map(|s| (0..40 + s).map(|_| far + rng.random_range(-1.0..1.0)).collect())
                .collect();
            let all = Moments::of(&shards.concat(), None);
            let mut parts: Vec<(f64, f64, f64)> = shards
                .iter()
                .map(|own| Moments::of(own, None))
                .map(|m| (m.weight, m.mean, m.m2))
                .collect();
            let found = merged(&parts);
            let off = |squares: f64| (squares / all.m2 - 1.0).abs();
            // As far as the shards' own means are known.
            let known = 1e-14 + far * 1e-16;
            assert!(
                off(found.2) < known && (found.1 / all.mean - 1.0).abs() < 1e-15,
                "{far}: {found:?}"
            );
            parts.reverse();
            assert_eq!(merged(&parts), found);
            // The same as sums of doubles.
            let plain: f64 = parts.iter().map(|(n, m, q)| q + n * m * m).sum();
            let sum: f64 = parts.iter().map(|(n, m, _)| n * m).sum();
            let off = off(plain - sum * sum / all.weight);
            assert!(far < 1e3 || off > lost * 1e-3, "{far}: {off}");
        }
    }

    #[test]
    fn columns_of_one_value_do_not_vary() {
        for value in [0.1, -1e9 / 3.0, 5.0, 1e-150, 1.0 / 7.0] {
            let parts: Vec<_> = (1..40).map(|n| (f64::from(n) * 1.7, value, 0.0)).collect();
            let (_, mean, squares) = merged(&parts);
            assert!(
                squares == 0.0 && (mean / value - 1.0).abs() < 1e-9,
                "{value}: {mean} {squares}"
            );
        }
        // One value on each shard, but not the same.
        let (rows, mean, squares) = merged(&[(10.0, 1e6, 0.0), (10.0, 1e6 + 1.0, 0.0)]);
        assert_eq!((rows, mean, squares), (20.0, 1e6 + 0.5, 5.0));
        let (_, _, squares) = merged(&[(10.0, 0.1, 0.0), (10.0, 0.3, 0.0)]);
        assert!((squares / 0.2 - 1.0).abs() < 1e-14);
    }

    #[test]
    fn what_is_too_large_is_not_added() {
        let mut words = vec![0; ONE.words()];
        for numbers in [
            [1e30, 0.0, 0.0, 0.0, 0.0, 0.0],
            [1e3, 0.0, 1e30, 0.0, 0.0, 0.0],
            [1e3, 0.0, 0.0, 0.0, 1e200, 0.0],
            [1e3, 1e300, 0.0, 0.0, 0.0, 0.0],
            [1.0, 0.0, 0.0, f64::NAN, 0.0, 0.0],
        ] {
            assert_eq!(ONE.add(&mut words, &numbers), None);
        }
        assert_eq!(ONE.add(&mut words, &[1.0]), None);
    }
}
