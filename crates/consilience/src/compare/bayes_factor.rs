//! Bayes factors of all pairs, and words for them.

use crate::estimate::Estimate;
use serde::Serialize;

/// The most models of which all pairs are listed: their number grows with the square.
pub(super) const MOST_LISTED: usize = 100;

/// Kass and Raftery's (1995) words for how strongly the data speak against a model, by the odds: up to 3, 20 and 150
/// to 1, and beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Strength {
    /// Odds of 1 to 3.
    #[serde(rename = "not worth more than a bare mention")]
    BareMention,
    /// Odds of 3 to 20.
    #[serde(rename = "positive")]
    Positive,
    /// Odds of 20 to 150.
    #[serde(rename = "strong")]
    Strong,
    /// Over 150.
    #[serde(rename = "very strong")]
    VeryStrong,
}

impl Strength {
    /// The word for a log Bayes factor, whichever of the two models it favours: for what is left of it when two
    /// standard errors are taken off, so that no more is said than is known. What has no error bar is taken as it is.
    pub fn of(log_bayes_factor: Estimate) -> Strength {
        let Estimate { value, se } = log_bayes_factor;
        Strength::at((value.abs() - 2.0 * se.unwrap_or(0.0)).max(0.0))
    }

    /// The word for a log Bayes factor that is known.
    pub fn at(log_bayes_factor: f64) -> Strength {
        let size = log_bayes_factor.abs();
        let below = |odds: f64| size <= libm::log(odds);
        match () {
            () if below(3.0) => Strength::BareMention,
            () if below(20.0) => Strength::Positive,
            () if below(150.0) => Strength::Strong,
            () => Strength::VeryStrong,
        }
    }

    /// As short as a table wants it.
    pub fn short(self) -> &'static str {
        match self {
            Strength::BareMention => "bare mention",
            Strength::Positive => "positive",
            Strength::Strong => "strong",
            Strength::VeryStrong => "very strong",
        }
    }
}

/// log p(y|row) − log p(y|column) for all pairs; `None` where there are too many models.
pub(super) fn matrix(log_z: &[Estimate]) -> Option<Vec<Vec<Estimate>>> {
    let entry = |i: usize, j: usize| if i == j { Estimate::ZERO } else { log_z[i] - log_z[j] };
    let row = |i: usize| (0..log_z.len()).map(|j| entry(i, j)).collect();
    (log_z.len() <= MOST_LISTED).then(|| (0..log_z.len()).map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_change_where_kass_and_raftery_say() {
        let words = [0.0, 1.09, -1.11, 2.99, 3.01, -5.0, 5.02, 400.0].map(Strength::at);
        use Strength::{BareMention, Positive, Strong, VeryStrong};
        let expected =
            [BareMention, BareMention, Positive, Positive, Strong, Strong, VeryStrong, VeryStrong];
        assert_eq!(words, expected);
    }

    #[test]
    fn the_matrix_is_antisymmetric_and_additive() {
        let log_z: Vec<Estimate> =
            [(-3.0, 0.1), (-7.5, 0.2), (-4.0, 0.0)].map(|(v, se)| Estimate::new(v, se)).to_vec();
        let matrix = matrix(&log_z).unwrap();
        for (i, row) in matrix.iter().enumerate() {
            assert_eq!(row[i], Estimate::ZERO);
            for (j, entry) in row.iter().enumerate() {
                assert_eq!(entry.value, -matrix[j][i].value);
                assert_eq!(entry.se, matrix[j][i].se);
                assert!((entry.value + matrix[j][0].value - row[0].value).abs() < 1e-12);
            }
        }
        assert!(super::matrix(&vec![Estimate::ZERO; MOST_LISTED + 1]).is_none());
    }
}
