//! Orthogonal polynomials over all shards.
//!
//! Powers of a column are so alike that their inner products cannot be turned into orthogonal
//! polynomials with any accuracy. Chebyshev polynomials of the column, mapped to [-1, 1], span
//! the same space and are far from alike. Their inner products need no more than their sums,
//! since T_i T_j = (T_{i+j} + T_{|i-j|}) / 2, and a Cholesky factor makes them orthogonal.
//!
//! Every polynomial has standard deviation 1. R's have length 1, so that their coefficients grow with
//! the root of the number of rows, and no prior could be right for them whatever that number is.

use serde::{Deserialize, Serialize};

/// The polynomials of degree 1, 2, … that are orthogonal and have mean 0 and standard deviation 1 (with
/// n - 1 below) over all rows of all shards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Basis {
    min: f64,
    max: f64,
    /// Per polynomial its coefficients on the Chebyshev polynomials of degree 0, 1, ….
    coefficients: Vec<Vec<f64>>,
}

/// The Chebyshev polynomials of degree 0, 1, … at a value, on the range from `min` to `max`.
pub(super) fn chebyshev(value: f64, min: f64, max: f64, out: &mut [f64]) {
    let t = ((value - min) - (max - value)) / (max - min);
    for k in 0..out.len() {
        out[k] = match k {
            0 => 1.0,
            1 => t,
            _ => 2.0 * t * out[k - 1] - out[k - 2],
        };
    }
}

impl Basis {
    /// The basis from the sums of the Chebyshev polynomials up to twice the degree. None if the
    /// values leave the polynomials too alike to be told apart in floating point.
    pub(super) fn new(sums: &[f64], min: f64, max: f64) -> Option<Basis> {
        let size = sums.len() / 2 + 1;
        let gram = |i: usize, j: usize| (sums[i + j] + sums[i.abs_diff(j)]) / 2.0;
        // The Cholesky factor, row by row, and its inverse alongside.
        let mut factor = vec![vec![0.0; size]; size];
        let mut inverse: Vec<Vec<f64>> = vec![vec![0.0; size]; size];
        for i in 0..size {
            for j in 0..=i {
                let below: f64 = (0..j).map(|k| factor[i][k] * factor[j][k]).sum();
                let rest: f64 = gram(i, j) - below;
                if i != j {
                    factor[i][j] = rest / factor[j][j];
                // What is left of so little is mostly rounding error of the sums.
                } else if rest > 1e-8 * gram(i, i) {
                    factor[i][i] = rest.sqrt();
                } else {
                    return None;
                }
            }
            let (above, row) = inverse.split_at_mut(i);
            for (j, entry) in row[0].iter_mut().enumerate().take(i) {
                let sum: f64 = (j..i).map(|k| factor[i][k] * above[k][j]).sum();
                *entry = -sum / factor[i][i];
            }
            row[0][i] = 1.0 / factor[i][i];
        }
        // The rows of the inverse make polynomials of length 1; T_0 = 1 counts the rows.
        let length = (sums[0] - 1.0).sqrt();
        let scaled = |(i, row): (usize, Vec<f64>)| row[..=i].iter().map(|c| c * length).collect();
        let coefficients = inverse.into_iter().enumerate().skip(1).map(scaled).collect();
        Some(Basis { min, max, coefficients })
    }

    /// The basis that has these coefficients, the polynomial of degree 1 first.
    pub(super) fn stated([min, max]: [f64; 2], coefficients: Vec<Vec<f64>>) -> Basis {
        Basis { min, max, coefficients }
    }

    /// The least and the greatest value.
    pub(super) fn range(&self) -> [f64; 2] {
        [self.min, self.max]
    }

    /// Per polynomial its coefficients on the Chebyshev polynomials of degree 0, 1, ….
    pub(super) fn coefficients(&self) -> &[Vec<f64>] {
        &self.coefficients
    }

    /// How many polynomials.
    pub fn degree(&self) -> usize {
        self.coefficients.len()
    }

    /// The polynomials at these values, one column each.
    pub(super) fn columns(&self, values: &[f64]) -> Vec<Vec<f64>> {
        let mut columns = vec![Vec::with_capacity(values.len()); self.degree()];
        let mut powers = vec![0.0; self.degree() + 1];
        for &value in values {
            chebyshev(value, self.min, self.max, &mut powers);
            for (column, coefficients) in columns.iter_mut().zip(&self.coefficients) {
                column.push(coefficients.iter().zip(&powers).map(|(c, p)| c * p).sum());
            }
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_are_orthogonal_with_sd_1_and_rise_last() {
        let values: Vec<f64> = (0..40).map(|i| f64::from(i * i % 31) + 1000.0).collect();
        let (min, max) = (1000.0, values.iter().copied().fold(0.0, f64::max));
        let mut sums = vec![0.0; 13];
        let mut terms = vec![0.0; 13];
        for &v in &values {
            chebyshev(v, min, max, &mut terms);
            sums.iter_mut().zip(&terms).for_each(|(s, t)| *s += t);
        }
        let basis = Basis::new(&sums, min, max).unwrap();
        let columns = basis.columns(&values);
        for (i, a) in columns.iter().enumerate() {
            assert!(a.iter().sum::<f64>().abs() < 1e-11);
            for (j, b) in columns.iter().enumerate() {
                let product: f64 = a.iter().zip(b).map(|(x, y)| x * y).sum();
                let product = product / (values.len() - 1) as f64;
                assert!((product - f64::from(i == j)).abs() < 1e-12, "{i} {j}: {product}");
            }
            let far = basis.columns(&[max + 100.0]);
            assert!(far[i][0] > 0.0);
        }
        // Two distinct values carry one polynomial, not six.
        let two = [20.0, 0.0, 20.0, 0.0, 20.0, 0.0, 20.0, 0.0, 20.0, 0.0, 20.0, 0.0, 20.0];
        assert_eq!(Basis::new(&two, 0.0, 1.0), None);
    }
}
