//! Likelihoods of classes without an order: rows cut up by class, each with coefficients of all classes but the first.

use super::cases::{UnmergedRows, chosen};
use super::chunk_values;
use super::chunks::Chunks;
use super::merge::{MergeBy, Merged};
use crate::kernel::{Class, ClassSums, Kernel, Rows};
use crate::math::{Compensated, Matrix};
use crate::target::Expansion;

/// The distinct rows of one class.
#[derive(Debug)]
pub(super) struct ClassRows {
    class: Class,
    pub rows: Rows,
}

/// How free parameters become the coefficients of every class and column.
#[derive(Debug, Clone)]
pub(super) struct Coefficients {
    /// Columns of the design.
    width: usize,
    /// Per class but the first, and per column, its value if it is held fixed.
    fixed: Vec<Option<f64>>,
}

impl Coefficients {
    pub fn new(width: usize, fixed: &[Option<f64>]) -> Coefficients {
        Coefficients { width, fixed: fixed.to_vec() }
    }

    /// The numbers of those that are free.
    fn free(&self) -> Vec<usize> {
        (0..self.fixed.len()).filter(|&j| self.fixed[j].is_none()).collect()
    }

    /// All of them, those held fixed among them.
    fn all(&self, theta: &[f64]) -> Vec<f64> {
        let mut free = theta.iter().copied();
        self.fixed.iter().map(|f| f.unwrap_or_else(|| free.next().unwrap_or(0.0))).collect()
    }
}

/// Rows by their classes, those merged that are equal in all columns. How many classes there are stands beside every
/// row's class: a shard may not have the last.
pub(super) fn by_class(rows: &UnmergedRows, kernel: Kernel) -> Vec<ClassRows> {
    let count = rows.second.as_ref().and_then(|s| s.first()).copied().unwrap_or(2.0) as usize;
    let part = |number: usize| {
        let (part, _) = chosen(rows, |i| rows.y[i] == number as f64)?;
        let UnmergedRows { columns, offset, weights, y, .. } = part;
        let merged = Merged::new(columns, y, offset, weights, MergeBy::Summed);
        let rows = Rows::of_class(&merged.columns, &merged.count, kernel);
        Some(ClassRows { class: Class { number, count }, rows })
    };
    (0..count).filter_map(part).collect()
}

/// The log-likelihood at each of these points; none if rows could not be had.
pub(super) fn values(
    chunks: &Chunks<Vec<ClassRows>>,
    shape: &Coefficients,
    thetas: &[&[f64]],
) -> Option<Vec<f64>> {
    let points: Vec<Vec<f64>> = thetas.iter().map(|theta| shape.all(theta)).collect();
    let points: Vec<&[f64]> = points.iter().map(Vec::as_slice).collect();
    let parts = chunks.map(|parts, may_share| -> Vec<Vec<f64>> {
        let values = |part: &ClassRows| {
            chunk_values(&points, may_share, |points, out| {
                part.rows.class_values(part.class, points, out);
            })
        };
        parts.iter().map(values).collect()
    })?;
    let mut sums = vec![Compensated::default(); thetas.len()];
    for part in parts.iter().flatten() {
        sums.iter_mut().zip(part).for_each(|(sum, value)| sum.add(*value));
    }
    Some(sums.into_iter().map(Compensated::value).collect())
}

/// The log-likelihood with its derivatives in the free parameters, of second order if `hessian`; none if rows could not
/// be had.
pub(super) fn expand(
    chunks: &Chunks<Vec<ClassRows>>,
    shape: &Coefficients,
    theta: &[f64],
    hessian: bool,
) -> Option<Expansion> {
    let (beta, free) = (shape.all(theta), shape.free());
    let parts = chunks.map(|parts, _| -> Vec<ClassSums> {
        parts.iter().map(|part| part.rows.class_sums(part.class, &beta, hessian)).collect()
    })?;
    let mut value = Compensated::default();
    let mut gradient = vec![0.0; beta.len()];
    let second = if hessian { beta.len() } else { 0 };
    let mut bends = Matrix::zeros(second, second);
    for part in parts.iter().flatten() {
        value.add(part.value);
        gradient.iter_mut().zip(&part.gradient).for_each(|(sum, more)| *sum += more);
        bends.add_scaled(1.0, &part.hessian);
    }
    let mut out = Expansion::zeros(free.len());
    out.value = value.value();
    for (i, &a) in free.iter().enumerate() {
        out.gradient[i] = gradient[a];
        if hessian {
            free.iter().enumerate().for_each(|(j, &b)| out.hessian[(i, j)] = bends[(a, b)]);
        }
    }
    Some(out)
}

/// X'X over the free coefficients: that of all rows for every class, and nothing between classes.
pub(super) fn gram(chunks: &Chunks<Vec<ClassRows>>, shape: &Coefficients) -> Matrix {
    let free = shape.free();
    let grams = |parts: &Vec<ClassRows>| -> Vec<Matrix> {
        parts.iter().map(|part| part.rows.gram()).collect()
    };
    let mut sum = Matrix::zeros(shape.width, shape.width);
    for part in chunks.map(|parts, _| grams(parts)).unwrap_or_default().iter().flatten() {
        sum.add_scaled(1.0, part);
    }
    let mut out = Matrix::zeros(free.len(), free.len());
    for (i, a) in free.iter().enumerate() {
        for (j, b) in free.iter().enumerate() {
            if a / shape.width == b / shape.width {
                out[(i, j)] = sum[(a % shape.width, b % shape.width)];
            }
        }
    }
    out
}
