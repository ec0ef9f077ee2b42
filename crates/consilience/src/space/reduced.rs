//! A quadratic with the parameters that every model has eliminated, in units of its own.

use super::{Quadratic, Space};
use crate::math::{Cholesky, Matrix, dot};
use crate::{Error, Result};
use std::ops::Range;

/// Logarithms of columns' diagonals stay within ± this, so that a few of them multiply without overflow.
const LARGEST_LOG: f64 = 50.0;

/// A quadratic over the candidates' columns, term after term:
///
/// ```text
/// log Z̃_γ = base + Σ_t∈γ left_t + ½ r_γ'S_γ⁻¹r_γ − ½ log|S_γ|.
/// ```
///
/// Columns are scaled by their gains, so that `left` is mostly 0.
pub(super) struct Reduced {
    /// log Z̃ of the model without candidates.
    pub base: f64,
    /// Per term, its columns.
    pub columns: Vec<Range<usize>>,
    /// S, symmetric.
    pub matrix: Matrix,
    /// r.
    pub slope: Vec<f64>,
    /// Per column, the pivot that is all rounding error: a model with it has no normal approximation.
    pub noise: Vec<f64>,
    /// Per term, what the columns' scales leave of its gains.
    pub left: Vec<f64>,
}

impl Reduced {
    pub fn new(space: &Space, quadratic: &Quadratic) -> Result<Reduced> {
        let always = space.always();
        let a = always.len();
        let (precision, slope, gain) = (&quadratic.precision, &quadratic.slope, &quadratic.gain);
        let sound = precision.is_sound(space.dim, space.dim)
            && [slope, gain]
                .iter()
                .all(|v| v.len() == space.dim && v.iter().all(|x| x.is_finite()))
            && quadratic.constant.is_finite();
        if !sound {
            return Err(Error::numeric("the quadratic of a model space has values that are none"));
        }
        let entry = |i: usize, j: usize| precision[(i.max(j), i.min(j))];
        let mut block = Matrix::zeros(a, a);
        for (i, &own) in always.iter().enumerate() {
            for (k, &other) in always.iter().enumerate() {
                block[(i, k)] = entry(own, other);
            }
        }
        let factor = Cholesky::new(&block).ok_or_else(|| {
            Error::numeric("the parameters that every model has are not determined")
        })?;
        let of_always: Vec<f64> = always.iter().map(|&j| slope[j]).collect();
        let solved = factor.solve_lower(&of_always);
        let gains: f64 = always.iter().map(|&j| gain[j]).sum();
        let base = quadratic.constant + gains + 0.5 * (dot(&solved, &solved) - factor.log_det());

        let owned: Vec<usize> = space.terms.iter().flat_map(|t| t.columns.clone()).collect();
        let m = owned.len();
        let cross: Vec<Vec<f64>> = owned
            .iter()
            .map(|&j| {
                let column: Vec<f64> = always.iter().map(|&i| entry(i, j)).collect();
                factor.solve_lower(&column)
            })
            .collect();
        let mut matrix = Matrix::zeros(m, m);
        for i in 0..m {
            for j in 0..=i {
                let value = entry(owned[i], owned[j]) - dot(&cross[i], &cross[j]);
                matrix[(i, j)] = value;
                matrix[(j, i)] = value;
            }
        }
        let mut left_of_column = vec![0.0; m];
        let mut scale = vec![1.0; m];
        for (j, &own) in owned.iter().enumerate() {
            let diagonal = matrix[(j, j)];
            if diagonal > 0.0 {
                let log_diagonal = libm::log(diagonal);
                let log_scale = -gain[own];
                let fine = (log_diagonal + 2.0 * log_scale).abs() <= LARGEST_LOG;
                let used = if fine { log_scale } else { -0.5 * log_diagonal };
                scale[j] = libm::exp(used);
                left_of_column[j] = if fine { 0.0 } else { gain[own] + used };
            }
        }
        for i in 0..m {
            for j in 0..m {
                matrix[(i, j)] *= scale[i] * scale[j];
            }
        }
        let slope = (0..m).map(|j| (slope[owned[j]] - dot(&cross[j], &solved)) * scale[j]);
        let noise = (0..m).map(|j| {
            4.0 * f64::EPSILON * precision[(owned[j], owned[j])].abs() * scale[j] * scale[j]
        });
        let (slope, noise) = (slope.collect(), noise.collect());
        let mut columns = Vec::with_capacity(space.terms.len());
        let mut from = 0;
        for term in &space.terms {
            columns.push(from..from + term.columns.len());
            from += term.columns.len();
        }
        let left = columns.iter().map(|c| left_of_column[c.clone()].iter().sum()).collect();
        Ok(Reduced { base, columns, matrix, slope, noise, left })
    }

    /// [S r; r' 0] with the terms in this order: the upper triangle, row after row.
    pub fn packed(&self, order: &[usize]) -> Vec<f64> {
        let all: Vec<usize> = order.iter().flat_map(|&t| self.columns[t].clone()).collect();
        let mut packed = Vec::with_capacity((all.len() + 1) * (all.len() + 2) / 2);
        for (i, &row) in all.iter().enumerate() {
            packed.extend(all[i..].iter().map(|&column| self.matrix[(row, column)]));
            packed.push(self.slope[row]);
        }
        packed.push(0.0);
        packed
    }
}
