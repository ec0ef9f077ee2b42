//! Singular values of small matrices.

use super::{Matrix, dot};

/// A = Σ σⱼ uⱼ vⱼ', with other columns in the coordinates of the uⱼ.
#[derive(Debug, Clone)]
pub struct Svd {
    /// σⱼ > 0, as many as the rank, in no order.
    pub values: Vec<f64>,
    /// vⱼ as rows: a full orthonormal set, those of the values first.
    pub right: Matrix,
    /// U'B for the columns B that came along: rows uⱼ'B as many as the rank, then what is left of B in
    /// other orthonormal coordinates.
    pub along: Matrix,
}

impl Svd {
    /// Of a matrix of this rank, which the caller knows better than rounding leaves to see.
    ///
    /// A QR factorisation with pivots comes first, then Jacobi rotations of the rows of R (Drmač and
    /// Veselić): where rows or columns are of very different sizes, small singular values and what `B` has
    /// along them are as accurate as large ones. A'A is never formed.
    pub fn new(a: &Matrix, b: &Matrix, rank: usize) -> Svd {
        let (n, k) = (a.cols(), b.cols());
        let mut order: Vec<usize> = (0..a.rows()).collect();
        let size = |i: &usize| a.row(*i).iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        order.sort_by(|i, j| size(j).total_cmp(&size(i)));
        let column = |m: &Matrix, j: usize| order.iter().map(|&i| m[(i, j)]).collect::<Vec<f64>>();
        // B stands to the right of A and takes part in everything but the choice of pivots.
        let mut columns: Vec<Vec<f64>> = (0..n).map(|j| column(a, j)).collect();
        columns.extend((0..k).map(|j| column(b, j)));
        let mut places: Vec<usize> = (0..n).collect();
        for step in 0..rank {
            let left = |j: usize| dot(&columns[j][step..], &columns[j][step..]);
            let pivot = (step..n).max_by(|&i, &j| left(i).total_cmp(&left(j))).unwrap_or(step);
            columns.swap(step, pivot);
            places.swap(step, pivot);
            reflect(&mut columns, step);
        }
        let whole = |i: usize| columns.iter().map(|c| c[i]).collect::<Vec<f64>>();
        let mut rows: Vec<Vec<f64>> = (0..order.len()).map(whole).collect();
        for (i, row) in rows.iter_mut().enumerate() {
            // Below the diagonal, and beyond the rank, is nothing but rounding.
            row[..if i < rank { i } else { n }].fill(0.0);
        }
        for _sweep in 0..60 {
            let mut settled = true;
            for p in 0..rank {
                for q in p + 1..rank {
                    let (head, tail) = rows.split_at_mut(q);
                    settled &= !rotate(&mut head[p], &mut tail[0], n);
                }
            }
            if settled {
                break;
            }
        }
        let values: Vec<f64> =
            rows[..rank].iter().map(|row| dot(&row[..n], &row[..n]).sqrt()).collect();
        let mut right = Matrix::zeros(n, n);
        for (j, value) in values.iter().enumerate() {
            for (i, place) in places.iter().enumerate() {
                right[(j, *place)] = if *value > 0.0 { rows[j][i] / value } else { 0.0 };
            }
        }
        complete(&mut right, rank);
        let along = rows.iter().flat_map(|row| row[n..].to_vec()).collect();
        Svd { values, right, along: Matrix::from_rows(rows.len(), k, along) }
    }
}

/// A Householder reflection that leaves column `step` nothing below its diagonal.
fn reflect(columns: &mut [Vec<f64>], step: usize) {
    // The largest entry first, which keeps small rows from being spoilt by large ones.
    let size = |i: &usize| columns[step][*i].abs();
    let most = (step..columns[step].len()).max_by(|i, j| size(i).total_cmp(&size(j)));
    let Some(most) = most else { return };
    columns.iter_mut().for_each(|c| c.swap(step, most));
    let (head, rest) = columns.split_at_mut(step + 1);
    let own = &mut head[step][step..];
    let norm = dot(own, own).sqrt();
    if norm == 0.0 {
        return;
    }
    let corner = if own[0] > 0.0 { -norm } else { norm };
    own[0] -= corner;
    let scale = 2.0 / dot(own, own);
    for column in rest {
        let column = &mut column[step..];
        let by = scale * dot(own, column);
        column.iter_mut().zip(&*own).for_each(|(x, m)| *x -= by * m);
    }
    own.fill(0.0);
    own[0] = corner;
}

/// Makes two rows orthogonal in their first `n` entries; `false` if they were.
fn rotate(x: &mut [f64], y: &mut [f64], n: usize) -> bool {
    let (xx, yy, xy) = (dot(&x[..n], &x[..n]), dot(&y[..n], &y[..n]), dot(&x[..n], &y[..n]));
    if xy == 0.0 || xy.abs() <= 1e-15 * xx.sqrt() * yy.sqrt() {
        return false;
    }
    let theta = (yy - xx) / (2.0 * xy);
    let t =
        if theta == 0.0 { 1.0 } else { theta.signum() / (theta.abs() + libm::hypot(theta, 1.0)) };
    let c = 1.0 / libm::hypot(t, 1.0);
    let s = t * c;
    for (x, y) in x.iter_mut().zip(y) {
        (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
    }
    true
}

/// Fills the rows from `known` on so that all rows are orthonormal.
fn complete(rows: &mut Matrix, known: usize) {
    let n = rows.cols();
    for j in known..n {
        // The axis of which the rows so far have least.
        let share = |axis: usize| (0..j).map(|i| rows[(i, axis)].powi(2)).sum::<f64>();
        let axis = (0..n).min_by(|&a, &b| share(a).total_cmp(&share(b))).unwrap_or(0);
        let mut new = vec![0.0; n];
        new[axis] = 1.0;
        // Twice: the first pass leaves some rounding.
        for _ in 0..2 {
            for i in 0..j {
                let by = dot(rows.row(i), &new);
                new.iter_mut().zip(rows.row(i)).for_each(|(x, r)| *x -= by * r);
            }
        }
        let norm = dot(&new, &new).sqrt();
        rows.row_mut(j).iter_mut().zip(&new).for_each(|(r, x)| *r = x / norm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::stream;
    use rand::RngExt;

    #[test]
    fn factors_rebuild_the_matrix_and_are_orthonormal() {
        let mut rng = stream(1, 0, 0, "svd");
        for n in [1, 2, 5, 12] {
            let mut a =
                Matrix::from_rows(n, n, (0..n * n).map(|_| rng.random::<f64>() - 0.5).collect());
            if n > 2 {
                // A column that two others determine.
                (0..n).for_each(|i| a[(i, 0)] = a[(i, 1)] + a[(i, 2)]);
            }
            let rank = if n > 2 { n - 1 } else { n };
            // With the unit matrix beside it, U' itself comes along.
            let svd = Svd::new(&a, &Matrix::identity(n), rank);
            let mut rebuilt = Matrix::zeros(n, n);
            for j in 0..rank {
                for i in 0..n {
                    for k in 0..n {
                        rebuilt[(i, k)] += svd.values[j] * svd.along[(j, i)] * svd.right[(j, k)];
                    }
                }
            }
            for (x, y) in a.data().iter().zip(rebuilt.data()) {
                assert!((x - y).abs() < 1e-14 * n as f64);
            }
            for vectors in [&svd.right, &svd.along] {
                let unit = vectors.product(&vectors.transpose());
                for (x, y) in unit.data().iter().zip(Matrix::identity(n).data()) {
                    assert!((x - y).abs() < 1e-13);
                }
            }
        }
    }

    // diag(1, 1e-12) rotated on the right: the small value would drown in A'A.
    #[test]
    fn small_values_are_not_lost() {
        let (c, s) = (0.8, 0.6);
        let a = Matrix::from_rows(2, 2, vec![c, s, -1e-12 * s, 1e-12 * c]);
        let mut values = Svd::new(&a, &Matrix::zeros(2, 0), 2).values;
        values.sort_by(f64::total_cmp);
        assert!((values[0] / 1e-12 - 1.0).abs() < 1e-14 && (values[1] - 1.0).abs() < 1e-14);
    }

    // A row of 1e9 beside one of 1: what stands along the small value keeps its digits. With A = [[h, h],
    // [0, 1]] and B = (h, 3)' the solution of AX = B is (−2, 3)'.
    #[test]
    fn small_rows_keep_their_digits_beside_large_ones() {
        let h = 1e9;
        for order in [[0, 1], [1, 0]] {
            let rows = [[h, h], [0.0, 1.0]];
            let a = Matrix::from_rows(2, 2, order.iter().flat_map(|&i| rows[i]).collect());
            let b = Matrix::from_rows(2, 1, order.iter().map(|&i| [h, 3.0][i]).collect());
            let svd = Svd::new(&a, &b, 2);
            let entry = |i: usize| -> f64 {
                (0..2).map(|j| svd.along[(j, 0)] / svd.values[j] * svd.right[(j, i)]).sum()
            };
            assert!((entry(0) + 2.0).abs() < 1e-14 && (entry(1) - 3.0).abs() < 1e-14);
        }
    }
}
