//! Triangular factors of tall matrices, gathered a block of rows at a time.

use super::{Matrix, dot};

/// Rows that are folded in together: few enough that they stay in cache while every column visits
/// them.
const BLOCK: usize = 256;

/// R, upper triangular, with R'R = A'A for all rows A that were added. It holds what A'A holds, but
/// with the accuracy of A: nothing is squared, so little cancels.
#[derive(Debug, Clone)]
pub struct Triangle {
    root: Matrix,
}

impl Triangle {
    /// The factor of no rows.
    pub fn new(columns: usize) -> Triangle {
        Triangle { root: Matrix::zeros(columns, columns) }
    }

    /// The factor of a matrix that is given by columns, each row counted with its weight.
    pub fn of_columns(columns: &[&[f64]], weights: &[f64]) -> Triangle {
        let roots: Vec<f64> = weights.iter().map(|w| w.sqrt()).collect();
        let mut triangle = Triangle::new(columns.len());
        for (k, roots) in roots.chunks(BLOCK).enumerate() {
            let first = k * BLOCK;
            let scaled = |column: &&[f64]| -> Vec<f64> {
                column[first..].iter().zip(roots).map(|(value, root)| value * root).collect()
            };
            triangle.fold(columns.iter().map(scaled).collect());
        }
        triangle
    }

    /// The factor of the rows of several matrices together.
    pub fn of_rows<'a>(matrices: impl IntoIterator<Item = &'a Matrix>, columns: usize) -> Triangle {
        let mut triangle = Triangle::new(columns);
        for matrix in matrices {
            let column = |j: usize| (0..matrix.rows()).map(|i| matrix[(i, j)]).collect();
            triangle.fold((0..columns).map(column).collect());
        }
        triangle
    }

    /// R.
    pub fn into_root(self) -> Matrix {
        self.root
    }

    /// Adds rows that are given by columns: Householder reflections of [R; rows].
    fn fold(&mut self, mut columns: Vec<Vec<f64>>) {
        let p = columns.len();
        for j in 0..p {
            let (head, rest) = columns.split_at_mut(j + 1);
            let mirror = &head[j];
            let below = dot(mirror, mirror);
            if below == 0.0 {
                continue;
            }
            // R is 0 below its diagonal, so a mirror is one entry of it and the new rows.
            let corner = self.root[(j, j)];
            let norm = (corner * corner + below).sqrt();
            let pivot = if corner > 0.0 { -norm } else { norm };
            let tip = corner - pivot;
            let scale = 2.0 / (tip * tip + below);
            self.root[(j, j)] = pivot;
            for (k, other) in rest.iter_mut().enumerate() {
                let top = &mut self.root[(j, j + 1 + k)];
                let by = scale * (tip * *top + dot(mirror, other));
                *top -= by * tip;
                other.iter_mut().zip(mirror).for_each(|(o, m)| *o -= by * m);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::stream;
    use rand::RngExt;

    fn columns(rows: usize, p: usize) -> Vec<Vec<f64>> {
        let mut rng = stream(1, 0, 0, "triangle");
        (0..p).map(|_| (0..rows).map(|_| rng.random::<f64>() - 0.5).collect()).collect()
    }

    fn gram(columns: &[Vec<f64>]) -> Matrix {
        let p = columns.len();
        let entry = |(i, j): (usize, usize)| dot(&columns[i], &columns[j]);
        let pairs = (0..p).flat_map(|i| (0..p).map(move |j| (i, j)));
        Matrix::from_rows(p, p, pairs.map(entry).collect())
    }

    #[test]
    fn the_factor_squared_is_the_gram_matrix() {
        for rows in [0, 1, 3, 255, 256, 1000] {
            let columns = columns(rows, 5);
            let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
            let root = Triangle::of_columns(&slices, &vec![1.0; rows]).into_root();
            let square = root.transpose().product(&root);
            for (a, b) in square.data().iter().zip(gram(&columns).data()) {
                assert!((a - b).abs() < 1e-12 * (1.0 + rows as f64), "{rows} rows: {a} {b}");
            }
            for i in 0..5 {
                assert!((0..i).all(|j| root[(i, j)] == 0.0), "upper triangular");
            }
        }
    }

    #[test]
    fn parts_can_be_put_together() {
        let columns = columns(900, 4);
        let part = |range: std::ops::Range<usize>| {
            let slices: Vec<&[f64]> = columns.iter().map(|c| &c[range.clone()]).collect();
            Triangle::of_columns(&slices, &vec![1.0; range.len()]).into_root()
        };
        let parts = [part(0..2), part(2..400), part(400..900)];
        let together = Triangle::of_rows(&parts, 4).into_root();
        let square = together.transpose().product(&together);
        for (a, b) in square.data().iter().zip(gram(&columns).data()) {
            assert!((a - b).abs() < 1e-10);
        }
    }

    // Two columns that differ by 1e-9 of their size: X'X cannot tell them apart, its factor can.
    #[test]
    fn nearly_equal_columns_stay_apart() {
        let base = &columns(500, 2);
        let near: Vec<f64> = base[0].iter().zip(&base[1]).map(|(a, b)| a + 1e-9 * b).collect();
        let root = Triangle::of_columns(&[&base[0], &near], &[1.0; 500]).into_root();
        let along = dot(&base[1], &base[0]) / dot(&base[0], &base[0]);
        let rest: f64 =
            base[1].iter().zip(&base[0]).map(|(b, a)| (b - along * a).powi(2)).sum::<f64>();
        assert!((root[(1, 1)].abs() / (1e-9 * rest.sqrt()) - 1.0).abs() < 1e-5);
    }
}
