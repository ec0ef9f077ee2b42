//! Singular values of small matrices.

use super::{Matrix, dot};

/// A = Σ σⱼ uⱼ vⱼ'.
#[derive(Debug, Clone)]
pub struct Svd {
    /// σⱼ ≥ 0, in no order.
    pub values: Vec<f64>,
    /// uⱼ as rows; zeros where σⱼ = 0.
    pub left: Matrix,
    /// vⱼ as rows: always a full orthonormal set.
    pub right: Matrix,
}

impl Svd {
    /// By Jacobi rotations of the columns (Hestenes), which keep small singular values accurate
    /// beside large ones: A'A is never formed.
    pub fn new(a: &Matrix) -> Svd {
        let (rows, n) = (a.rows(), a.cols());
        let mut columns = a.transpose();
        let mut right = Matrix::identity(n);
        for _sweep in 0..60 {
            let mut settled = true;
            for p in 0..n {
                for q in p + 1..n {
                    settled &= !rotate(&mut columns, &mut right, p, q);
                }
            }
            if settled {
                break;
            }
        }
        let values: Vec<f64> = (0..n).map(|j| dot(columns.row(j), columns.row(j)).sqrt()).collect();
        for (j, &value) in values.iter().enumerate() {
            let column = columns.row_mut(j);
            column.iter_mut().for_each(|v| *v = if value > 0.0 { *v / value } else { 0.0 });
        }
        debug_assert_eq!(columns.cols(), rows);
        Svd { values, left: columns, right }
    }
}

/// Makes two columns orthogonal; `false` if they were.
fn rotate(columns: &mut Matrix, right: &mut Matrix, p: usize, q: usize) -> bool {
    let (x, y) = (columns.row(p), columns.row(q));
    let (xx, yy, xy) = (dot(x, x), dot(y, y), dot(x, y));
    if xy == 0.0 || xy.abs() <= 1e-15 * (xx * yy).sqrt() {
        return false;
    }
    let theta = (yy - xx) / (2.0 * xy);
    let t = if theta == 0.0 {
        1.0
    } else {
        theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt())
    };
    let c = 1.0 / (t * t + 1.0).sqrt();
    let s = t * c;
    for m in [columns, right] {
        for k in 0..m.cols() {
            let (x, y) = (m[(p, k)], m[(q, k)]);
            m[(p, k)] = c * x - s * y;
            m[(q, k)] = s * x + c * y;
        }
    }
    true
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
            let svd = Svd::new(&a);
            let mut rebuilt = Matrix::zeros(n, n);
            for j in 0..n {
                for i in 0..n {
                    for k in 0..n {
                        rebuilt[(i, k)] += svd.values[j] * svd.left[(j, i)] * svd.right[(j, k)];
                    }
                }
            }
            for (x, y) in a.data().iter().zip(rebuilt.data()) {
                assert!((x - y).abs() < 1e-14 * n as f64);
            }
            let unit = svd.right.product(&svd.right.transpose());
            for (x, y) in unit.data().iter().zip(Matrix::identity(n).data()) {
                assert!((x - y).abs() < 1e-13);
            }
        }
    }

    // diag(1, 1e-12) rotated on the right: the small value would drown in A'A.
    #[test]
    fn small_values_are_not_lost() {
        let (c, s) = (0.8, 0.6);
        let a = Matrix::from_rows(2, 2, vec![c, s, -1e-12 * s, 1e-12 * c]);
        let mut values = Svd::new(&a).values;
        values.sort_by(f64::total_cmp);
        assert!((values[0] / 1e-12 - 1.0).abs() < 1e-3 && (values[1] - 1.0).abs() < 1e-14);
    }
}
