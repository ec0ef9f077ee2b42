//! Numbers in intervals: R's `cut()` with breaks that are named.

use serde::{Deserialize, Serialize};

/// What a formula says of intervals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Intervals {
    /// The ends, ascending; the first and the last may be infinite.
    pub breaks: Vec<f64>,
    /// The intervals' names, if they are given.
    pub labels: Option<Vec<String>>,
    /// Whether an interval holds its right end, and not its left one.
    pub right: bool,
    /// Whether the outermost end is held too.
    pub include_lowest: bool,
}

impl Intervals {
    /// Whether it holds together. What comes from a file may hold anything.
    pub(crate) fn is_sound(&self) -> bool {
        self.breaks.len() > 1
            && self.breaks.windows(2).all(|pair| pair[0] < pair[1])
            && self.labels.as_ref().is_none_or(|labels| labels.len() + 1 == self.breaks.len())
    }

    /// The number of the interval that holds a value.
    pub(super) fn find(&self, value: f64) -> Option<u32> {
        let last = self.breaks.len() - 1;
        let held = |i: usize| {
            let (low, high) = (self.breaks[i], self.breaks[i + 1]);
            match self.right {
                true => {
                    low < value && value <= high || self.include_lowest && i == 0 && value == low
                }
                false => {
                    low <= value && value < high
                        || self.include_lowest && i + 1 == last && value == high
                }
            }
        };
        let near = self.breaks.partition_point(|end| *end < value);
        let candidates = [near.wrapping_sub(1), near];
        candidates.into_iter().filter(|i| *i < last).find(|i| held(*i)).map(|i| i as u32)
    }

    /// The intervals' names, as R writes them: with three digits, or as many more as tell them apart.
    pub(crate) fn names(&self) -> Vec<String> {
        if let Some(labels) = &self.labels {
            return labels.clone();
        }
        let spelled = |digits: usize| -> Vec<String> {
            self.breaks.iter().map(|end| shortest(*end, digits)).collect()
        };
        let distinct = |ends: &Vec<String>| ends.windows(2).all(|pair| pair[0] != pair[1]);
        let ends = (3..=12).map(spelled).find(distinct).unwrap_or_else(|| spelled(17));
        let last = self.breaks.len() - 2;
        let name = |(i, pair): (usize, &[String])| {
            let (mut open, mut close) = if self.right { ('(', ']') } else { ('[', ')') };
            if self.include_lowest && self.right && i == 0 {
                open = '[';
            }
            if self.include_lowest && !self.right && i == last {
                close = ']';
            }
            format!("{open}{},{}{close}", pair[0], pair[1])
        };
        ends.windows(2).enumerate().map(name).collect()
    }
}

/// A number with so many significant digits and no zeros at its end: C's `%g`.
fn shortest(value: f64, digits: usize) -> String {
    if value.is_infinite() {
        // R writes it with this blank.
        return if value > 0.0 { " Inf" } else { "-Inf" }.to_string();
    }
    if value == 0.0 {
        return "0".to_string();
    }
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    trimmed(&format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(breaks: &[f64], right: bool, include_lowest: bool) -> Intervals {
        Intervals { breaks: breaks.to_vec(), labels: None, right, include_lowest }
    }

    #[test]
    fn names_are_r_s() {
        // levels(cut(1, c(…))) of R.
        let names = |breaks: &[f64]| cut(breaks, true, false).names().join(" ");
        assert_eq!(names(&[0.0, 10.0, 20.5]), "(0,10] (10,20.5]");
        assert_eq!(names(&[0.0, 1000.0, 20000.0]), "(0,1e+03] (1e+03,2e+04]");
        assert_eq!(names(&[1000.0, 1001.0]), "(1000,1001]");
        assert_eq!(names(&[f64::NEG_INFINITY, -0.5, f64::INFINITY]), "(-Inf,-0.5] (-0.5, Inf]");
        assert_eq!(names(&[0.00001, 0.123456]), "(1e-05,0.123]");
        assert_eq!(cut(&[0.0, 1.0, 2.0], false, true).names().join(" "), "[0,1) [1,2]");
        assert_eq!(cut(&[0.0, 1.0, 2.0], true, true).names().join(" "), "[0,1] (1,2]");
    }

    #[test]
    fn values_are_in_their_intervals() {
        let find = |right, lowest, value| cut(&[0.0, 1.0, 2.0], right, lowest).find(value);
        assert_eq!([0.5, 1.0, 1.5, 2.0].map(|v| find(true, false, v)), [0, 0, 1, 1].map(Some));
        assert_eq!([0.0, 0.5, 1.0, 1.5].map(|v| find(false, false, v)), [0, 0, 1, 1].map(Some));
        assert_eq!([find(true, false, 0.0), find(false, false, 2.0)], [None; 2]);
        assert_eq!([find(true, true, 0.0), find(false, true, 2.0)], [Some(0), Some(1)]);
        assert_eq!([-1.0, 2.1].map(|v| find(true, true, v)), [None; 2]);
    }
}
