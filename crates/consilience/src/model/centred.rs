//! Rows as a Gaussian likelihood knows them: sums of products around a point in their midst.

use super::gaussian::{Gaussian, Shift};
use crate::data::Moments;
use crate::kernel::{Kernel, Triangle};
use crate::math::{Compensated, Matrix, dot};
use serde::{Deserialize, Serialize};

/// The triangular factor of the columns [1, x − m, …, y − m], each row counted with its weight. Around m
/// nothing large cancels: a column of 1.7e9 ± 0.01 keeps its digits, and one that is the same everywhere
/// is 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Centred {
    /// Observations: rows, each counted with its weight.
    pub observations: f64,
    /// m of every column but the ones; the last is the outcome's.
    pub shifts: Vec<f64>,
    /// The upper triangular F with F'F = A'A for A = [1, x − m, …, y − m].
    pub factor: Matrix,
}

impl Centred {
    /// Of these columns, the last of which is the outcome, around their own means.
    pub fn of_columns(columns: &[&[f64]], weights: &[f64], kernel: Kernel) -> Centred {
        let observations = weights.iter().sum();
        let shifts: Vec<f64> = columns.iter().map(|c| middle(c, weights, observations)).collect();
        let roots: Vec<f64> = weights.iter().map(|w| w.sqrt()).collect();
        let mut triangle = Triangle::of_rows(columns.len() + 1, kernel);
        triangle.add(weights.len(), |j, rows, out| {
            let roots = &roots[rows.clone()];
            let Some(j) = j.checked_sub(1) else { return out.copy_from_slice(roots) };
            let (column, m) = (&columns[j][rows], shifts[j]);
            for ((out, x), root) in out.iter_mut().zip(column).zip(roots) {
                *out = (x - m) * root;
            }
        });
        let factor = triangle.into_root();
        Centred { observations, shifts, factor }
    }

    /// The moments of a column; the last is the outcome's.
    pub fn moments(&self, column: usize) -> Moments {
        let own = |i: usize| self.factor[(i, column + 1)];
        let mean = self.shifts[column] + own(0) / self.factor[(0, 0)];
        let squares = (1..=column + 1).map(|i| own(i) * own(i)).sum();
        Moments::of_sums(self.observations, mean, squares)
    }

    /// Of no rows, with so many columns.
    pub fn of_none(columns: usize) -> Centred {
        let factor = Matrix::zeros(columns + 1, columns + 1);
        Centred { observations: 0.0, shifts: vec![0.0; columns], factor }
    }

    /// Of the rows of several together: all are brought to the same point.
    pub fn merge<'a>(parts: impl Iterator<Item = &'a Centred> + Clone) -> Centred {
        let known: Vec<&Centred> = parts.clone().filter(|part| part.observations > 0.0).collect();
        let some = known.first().copied().or(parts.clone().next()).expect("one part at least");
        if known.len() < 2 {
            return some.clone();
        }
        let observations: f64 = known.iter().map(|part| part.observations).sum();
        let common = |j: usize| {
            let first = some.shifts[j];
            if known.iter().all(|part| part.shifts[j] == first) {
                return first;
            }
            // From the first one on, so that numbers much alike lose no digits.
            let mut sum = Compensated::default();
            known.iter().for_each(|part| sum.add(part.observations * (part.shifts[j] - first)));
            first + sum.value() / observations
        };
        let shifts: Vec<f64> = (0..some.shifts.len()).map(common).collect();
        let moved: Vec<Matrix> = known.iter().map(|part| part.around(&shifts)).collect();
        let factor = Triangle::of_triangles(&moved, shifts.len() + 1).into_root();
        Centred { observations, shifts, factor }
    }

    /// The factor around another point: x − m′ = (x − m) + (m − m′)·1.
    fn around(&self, shifts: &[f64]) -> Matrix {
        let mut factor = self.factor.clone();
        for i in 0..factor.rows() {
            let Some((one, rest)) = factor.row_mut(i).split_first_mut() else { continue };
            for ((entry, own), to) in rest.iter_mut().zip(&self.shifts).zip(shifts) {
                *entry += (own - to) * *one;
            }
        }
        factor
    }

    /// The likelihood of a model whose free coefficients have these columns, and with these columns times
    /// these values taken off the outcome.
    ///
    /// Where a combination Xa of the columns is the column of ones, the likelihood stays around m:
    /// y − Xβ = (y − m) − X′β′, where X′ has the other columns around their m as well, and
    /// β′ = β + a(m′β − m). A model without such a combination gets its columns as they are.
    pub fn gaussian(&self, free: &[usize], taken: &[(usize, f64)]) -> Gaussian {
        let size = self.factor.rows();
        let outcome = self.shifts.len() - 1;
        let column = |j: usize| (0..size).map(|i| self.factor[(i, j + 1)]).collect::<Vec<f64>>();
        let ones: Vec<f64> = (0..size).map(|i| self.factor[(i, 0)]).collect();
        let (mut target, mut level) = (column(outcome), self.shifts[outcome]);
        for &(j, value) in taken {
            add(&mut target, -value, &column(j));
            level -= value * self.shifts[j];
        }
        let mut columns: Vec<Vec<f64>> = free.iter().map(|&j| column(j)).collect();
        let mut shifts: Vec<f64> = free.iter().map(|&j| self.shifts[j]).collect();
        let ways = self.ways_to_one(&columns, &shifts, &ones);
        for (j, column) in columns.iter_mut().enumerate() {
            if ways.as_ref().is_none_or(|ways| ways[j] != 0.0) {
                add(column, shifts[j], &ones);
                shifts[j] = 0.0;
            }
        }
        if ways.is_none() {
            add(&mut target, level, &ones);
            level = 0.0;
        }
        let ways = ways.unwrap_or_else(|| vec![0.0; free.len()]);
        columns.push(target);
        let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let factor = Triangle::of_columns(&slices).into_root();
        Gaussian::new(factor, self.observations, Shift { ways, shifts, level })
    }

    /// a with Xa = 1, if there is one.
    fn ways_to_one(&self, columns: &[Vec<f64>], shifts: &[f64], ones: &[f64]) -> Option<Vec<f64>> {
        let p = columns.len();
        let constant = |j: &usize| shifts[*j] != 0.0 && columns[*j].iter().all(|x| *x == 0.0);
        if let Some(j) = (0..p).find(constant) {
            let mut ways = vec![0.0; p];
            ways[j] = 1.0 / shifts[j];
            return Some(ways);
        }
        // Columns far from 0 are nearly columns of ones, and would blur the answer: where it does without them they stay
        // around their means.
        let whole = length(ones);
        let is_near = |j: &usize| shifts[*j].abs() * whole <= FAR * length(&columns[*j]);
        let near: Vec<usize> = (0..p).filter(is_near).collect();
        let without = (near.len() < p).then(|| self.ways_among(&near, columns, shifts, ones));
        without.flatten().or_else(|| {
            let all: Vec<usize> = (0..p).collect();
            self.ways_among(&all, columns, shifts, ones)
        })
    }

    /// The same, of these columns alone.
    fn ways_among(
        &self,
        some: &[usize],
        columns: &[Vec<f64>],
        shifts: &[f64],
        ones: &[f64],
    ) -> Option<Vec<f64>> {
        let mut raw: Vec<Vec<f64>> = some.iter().map(|&j| columns[j].clone()).collect();
        raw.iter_mut().zip(some).for_each(|(column, &j)| add(column, shifts[j], ones));
        let lengths: Vec<f64> = raw.iter().map(|column| length(column)).collect();
        raw.push(ones.to_vec());
        let slices: Vec<&[f64]> = raw.iter().map(Vec::as_slice).collect();
        let factor = Triangle::of_columns(&slices).into_root();
        let (count, whole) = (some.len(), length(ones));
        if factor[(count, count)].abs() > 64.0 * f64::EPSILON * (count + 1) as f64 * whole {
            return None;
        }
        let found = Gaussian::new(factor, self.observations, Shift::none(count)).solution();
        let mut ways = vec![0.0; columns.len()];
        for ((way, length), &j) in found.into_iter().zip(lengths).zip(some) {
            // A dummy for every level adds up to one: what is a whole number but for rounding is one.
            let near = way.round();
            ways[j] = if ((way - near) * length).abs() < 1e-9 * whole { near } else { way };
        }
        Some(ways)
    }
}

/// A column whose mean is so many times as large as its spread is far from 0.
const FAR: f64 = 1e3;

fn add(sum: &mut [f64], times: f64, other: &[f64]) {
    sum.iter_mut().zip(other).for_each(|(s, o)| *s += times * o);
}

fn length(column: &[f64]) -> f64 {
    column.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// The mean of a column, or the value that it has everywhere. Its last digits do not matter: it only has to
/// be in the midst.
fn middle(column: &[f64], weights: &[f64], total: f64) -> f64 {
    let Some(first) = weights.iter().position(|w| *w > 0.0) else { return 0.0 };
    let first = column[first];
    let (mut sum, mut apart) = (0.0, [0.0; 256]);
    for (column, weights) in column.chunks(apart.len()).zip(weights.chunks(apart.len())) {
        apart.iter_mut().zip(column).for_each(|(apart, x)| *apart = x - first);
        sum += dot(&apart[..column.len()], weights);
    }
    let mean = first + sum / total;
    // Of numbers as large as can be the sum is none; then nothing is gained by moving them.
    if mean.is_finite() { mean } else { 0.0 }
}
