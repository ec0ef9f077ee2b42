//! Small dense matrices and their Cholesky factors.
//!
//! Written here rather than taken from a crate because the fast crates choose their instructions
//! by CPU, and then the same study would not give the same bits on two machines.

use serde::{Deserialize, Serialize};

/// A dense matrix, stored row after row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SentMatrix")]
pub struct Matrix {
    rows: usize,
    cols: usize,
    data: Vec<f64>,
}

/// A matrix as it comes from a file, which may lie about its size.
#[derive(Deserialize)]
struct SentMatrix {
    rows: usize,
    cols: usize,
    data: Vec<f64>,
}

impl TryFrom<SentMatrix> for Matrix {
    type Error = &'static str;

    fn try_from(stored: SentMatrix) -> Result<Matrix, Self::Error> {
        let SentMatrix { rows, cols, data } = stored;
        match rows.checked_mul(cols) {
            Some(size) if size == data.len() => Ok(Matrix { rows, cols, data }),
            _ => Err("a matrix with more or fewer values than its size says"),
        }
    }
}

/// Σ aᵢbᵢ, in eight interleaved partial sums: fast, and always in the same order.
#[inline]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    debug_assert_eq!(a.len(), b.len());
    let mut partial = [0.0; 8];
    let (a_blocks, b_blocks) = (a.chunks_exact(8), b.chunks_exact(8));
    let tail: f64 = a_blocks.remainder().iter().zip(b_blocks.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a_blocks.zip(b_blocks) {
        for lane in 0..8 {
            partial[lane] += x[lane] * y[lane];
        }
    }
    partial.iter().sum::<f64>() + tail
}

impl Matrix {
    /// All zeros.
    pub fn zeros(rows: usize, cols: usize) -> Matrix {
        Matrix { rows, cols, data: vec![0.0; rows * cols] }
    }

    /// From values that stand row after row.
    pub fn from_rows(rows: usize, cols: usize, data: Vec<f64>) -> Matrix {
        assert_eq!(data.len(), rows * cols, "matrix of the wrong size");
        Matrix { rows, cols, data }
    }

    /// The symmetric matrix with this lower triangle, row after row.
    pub fn from_lower(n: usize, lower: &[f64]) -> Matrix {
        let (mut out, mut values) = (Matrix::zeros(n, n), lower.iter());
        for i in 0..n {
            for (j, &value) in (0..=i).zip(&mut values) {
                out[(i, j)] = value;
                out[(j, i)] = value;
            }
        }
        out
    }

    /// The lower triangle of a square matrix, row after row: what [`from_lower`](Self::from_lower) takes.
    pub fn lower_half(&self) -> Vec<f64> {
        let mut half = Vec::with_capacity(self.rows * (self.rows + 1) / 2);
        (0..self.rows).for_each(|i| half.extend_from_slice(&self.row(i)[..=i]));
        half
    }

    /// The unit matrix.
    pub fn identity(n: usize) -> Matrix {
        let mut unit = Matrix::zeros(n, n);
        for i in 0..n {
            unit[(i, i)] = 1.0;
        }
        unit
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// One row.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// One row, to be written.
    pub fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// All values, row after row.
    pub fn data(&self) -> &[f64] {
        &self.data
    }

    /// Whether it has this size (a foreign file may lie about it).
    pub fn has_size(&self, rows: usize, cols: usize) -> bool {
        (self.rows, self.cols) == (rows, cols) && self.data.len() == rows * cols
    }

    /// Whether it has this size and every value is finite.
    pub fn is_sound(&self, rows: usize, cols: usize) -> bool {
        self.has_size(rows, cols) && self.data.iter().all(|v| v.is_finite())
    }

    /// A·x.
    pub fn times(&self, x: &[f64]) -> Vec<f64> {
        (0..self.rows).map(|i| dot(self.row(i), x)).collect()
    }

    /// x'·A·x.
    pub fn quadratic(&self, x: &[f64]) -> f64 {
        dot(x, &self.times(x))
    }

    /// A·B.
    pub fn product(&self, other: &Matrix) -> Matrix {
        let mut out = Matrix::zeros(self.rows, other.cols);
        for i in 0..self.rows {
            for (k, &a) in self.row(i).iter().enumerate() {
                for (o, &b) in out.data[i * other.cols..].iter_mut().zip(other.row(k)) {
                    *o += a * b;
                }
            }
        }
        out
    }

    /// A += factor·B.
    pub fn add_scaled(&mut self, factor: f64, other: &Matrix) {
        for (a, b) in self.data.iter_mut().zip(&other.data) {
            *a += factor * b;
        }
    }

    /// A += factor·x·x'.
    pub fn add_outer(&mut self, factor: f64, x: &[f64]) {
        for (i, &xi) in x.iter().enumerate() {
            for (a, &xj) in self.row_mut(i).iter_mut().zip(x) {
                *a += factor * xi * xj;
            }
        }
    }

    /// A += Σ factorₖ·xₖ·xₖ' of four x, in the lower half only: A is read and written once for all of them.
    pub fn add_outers(&mut self, factors: [f64; 4], x: [&[f64]; 4]) {
        for i in 0..self.rows {
            let times: [f64; 4] = std::array::from_fn(|k| factors[k] * x[k][i]);
            let row = &mut self.data[i * self.cols..][..=i];
            let [first, second, third, fourth] = x.map(|x| &x[..=i]);
            for (j, a) in row.iter_mut().enumerate() {
                let some = times[0] * first[j] + times[1] * second[j];
                *a += some + (times[2] * third[j] + times[3] * fourth[j]);
            }
        }
    }

    /// The upper half becomes the lower one, mirrored.
    pub fn mirror_lower(&mut self) {
        for i in 0..self.rows {
            for j in 0..i {
                self[(j, i)] = self[(i, j)];
            }
        }
    }

    /// A *= factor.
    pub fn scale(&mut self, factor: f64) {
        self.data.iter_mut().for_each(|a| *a *= factor);
    }

    /// The diagonal.
    pub fn diagonal(&self) -> Vec<f64> {
        (0..self.rows).map(|i| self[(i, i)]).collect()
    }

    /// The transpose.
    pub fn transpose(&self) -> Matrix {
        let mut out = Matrix::zeros(self.cols, self.rows);
        for i in 0..self.rows {
            for j in 0..self.cols {
                out[(j, i)] = self[(i, j)];
            }
        }
        out
    }

    /// Eigenvalues and eigenvectors (as rows) of a symmetric matrix, by Jacobi rotations.
    pub fn symmetric_eigen(&self) -> (Vec<f64>, Matrix) {
        let n = self.rows;
        let mut a = self.clone();
        let mut vectors = Matrix::identity(n);
        for _sweep in 0..60 {
            let off: f64 = (0..n).map(|i| a.row(i)[..i].iter().map(|v| v * v).sum::<f64>()).sum();
            let all: f64 = a.data.iter().map(|v| v * v).sum();
            if off <= 1e-30 * all {
                break;
            }
            for p in 0..n {
                for q in p + 1..n {
                    rotate(&mut a, &mut vectors, p, q);
                }
            }
        }
        (a.diagonal(), vectors)
    }
}

/// One Jacobi rotation that makes a[p][q] zero.
fn rotate(a: &mut Matrix, vectors: &mut Matrix, p: usize, q: usize) {
    if a[(p, q)] == 0.0 {
        return;
    }
    let theta = (a[(q, q)] - a[(p, p)]) / (2.0 * a[(p, q)]);
    let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let t = if theta == 0.0 { 1.0 } else { t };
    let c = 1.0 / (t * t + 1.0).sqrt();
    let s = t * c;
    for k in 0..a.rows {
        let (x, y) = (a[(k, p)], a[(k, q)]);
        a[(k, p)] = c * x - s * y;
        a[(k, q)] = s * x + c * y;
    }
    for m in [a, vectors] {
        for k in 0..m.cols {
            let (x, y) = (m[(p, k)], m[(q, k)]);
            m[(p, k)] = c * x - s * y;
            m[(q, k)] = s * x + c * y;
        }
    }
}

impl std::ops::Index<(usize, usize)> for Matrix {
    type Output = f64;
    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.data[i * self.cols + j]
    }
}

impl std::ops::IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        &mut self.data[i * self.cols + j]
    }
}

/// A = L·L' with L lower triangular.
#[derive(Debug, Clone, PartialEq)]
pub struct Cholesky {
    lower: Matrix,
}

impl Cholesky {
    /// Factors a symmetric matrix (its lower half is read); `None` if it is not numerically
    /// positive definite.
    pub fn new(a: &Matrix) -> Option<Cholesky> {
        let n = a.rows;
        let mut lower = Matrix::zeros(n, n);
        // Column by column: a column's entries do not wait for each other, as those of a row would.
        for j in 0..n {
            let (above, below) = lower.data.split_at_mut((j + 1) * n);
            let this = &mut above[j * n..];
            let pivot = a[(j, j)] - dot(&this[..j], &this[..j]);
            // A pivot that is all rounding error says nothing about definiteness.
            let noise = 4.0 * f64::EPSILON * a[(j, j)].abs();
            if !pivot.is_finite() || pivot <= noise {
                return None;
            }
            this[j] = pivot.sqrt();
            for (i, other) in (j + 1..n).zip(below.chunks_exact_mut(n)) {
                other[j] = (a[(i, j)] - dot(&other[..j], &this[..j])) / this[j];
            }
        }
        Some(Cholesky { lower })
    }

    /// The factor L.
    pub fn lower(&self) -> &Matrix {
        &self.lower
    }

    /// log det A.
    pub fn log_det(&self) -> f64 {
        2.0 * (0..self.lower.rows).map(|i| libm::log(self.lower[(i, i)])).sum::<f64>()
    }

    /// Solves L·x = b.
    pub fn solve_lower(&self, b: &[f64]) -> Vec<f64> {
        let mut x = b.to_vec();
        for i in 0..x.len() {
            let row = self.lower.row(i);
            x[i] = (x[i] - dot(&row[..i], &x[..i])) / row[i];
        }
        x
    }

    /// Solves L'·x = b.
    pub fn solve_upper(&self, b: &[f64]) -> Vec<f64> {
        let mut x = b.to_vec();
        for i in (0..x.len()).rev() {
            let row = self.lower.row(i);
            x[i] /= row[i];
            let xi = x[i];
            for (xj, l) in x[..i].iter_mut().zip(row) {
                *xj -= xi * l;
            }
        }
        x
    }

    /// Solves A·x = b.
    pub fn solve(&self, b: &[f64]) -> Vec<f64> {
        self.solve_upper(&self.solve_lower(b))
    }

    /// L⁻¹, lower triangular.
    pub fn inverse_lower(&self) -> Matrix {
        let n = self.lower.rows;
        let mut inverse = Matrix::zeros(n, n);
        for i in 0..n {
            let pivot = self.lower[(i, i)];
            let (above, this) = inverse.data.split_at_mut(i * n);
            let this = &mut this[..n];
            for (k, &l) in self.lower.row(i)[..i].iter().enumerate() {
                for (t, &a) in this[..=k].iter_mut().zip(&above[k * n..]) {
                    *t -= l * a;
                }
            }
            this[..i].iter_mut().for_each(|t| *t /= pivot);
            this[i] = 1.0 / pivot;
        }
        inverse
    }

    /// A⁻¹.
    pub fn inverse(&self) -> Matrix {
        let n = self.lower.rows;
        let columns = self.inverse_lower().transpose();
        let mut out = Matrix::zeros(n, n);
        for i in 0..n {
            for j in 0..=i {
                let value = dot(&columns.row(i)[i..], &columns.row(j)[i..]);
                out[(i, j)] = value;
                out[(j, i)] = value;
            }
        }
        out
    }

    /// The diagonal of A⁻¹: a third of the work for all of it.
    pub fn inverse_diagonal(&self) -> Vec<f64> {
        let inverse = self.inverse_lower();
        let mut diagonal = vec![0.0; inverse.rows];
        for i in 0..inverse.rows {
            for (sum, v) in diagonal.iter_mut().zip(&inverse.row(i)[..=i]) {
                *sum += v * v;
            }
        }
        diagonal
    }

    /// x'·A⁻¹·x.
    pub fn inverse_quadratic(&self, x: &[f64]) -> f64 {
        let z = self.solve_lower(x);
        dot(&z, &z)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    fn random_definite(n: usize, seed: u64) -> Matrix {
        let mut rng = crate::math::stream(seed, 0, 0, "test");
        let b = Matrix::from_rows(n, n, (0..n * n).map(|_| rng.random::<f64>() - 0.5).collect());
        let mut a = b.product(&b.transpose());
        a.add_scaled(0.1, &Matrix::identity(n));
        a
    }

    fn assert_near(a: &Matrix, b: &Matrix, tolerance: f64) {
        for (x, y) in a.data().iter().zip(b.data()) {
            assert!((x - y).abs() < tolerance, "{x} is not {y}");
        }
    }

    #[test]
    fn cholesky_factors_solves_and_inverts() {
        for n in [0, 1, 2, 7, 33] {
            let a = random_definite(n, n as u64);
            let factor = Cholesky::new(&a).unwrap();
            assert_near(&factor.lower().product(&factor.lower().transpose()), &a, 1e-12);
            assert_near(&factor.inverse().product(&a), &Matrix::identity(n), 1e-10);
            assert_near(
                &factor.inverse_lower().product(factor.lower()),
                &Matrix::identity(n),
                1e-10,
            );
            for (u, v) in factor.inverse_diagonal().iter().zip(factor.inverse().diagonal()) {
                assert!((u - v).abs() < 1e-10 * v);
            }
            let x: Vec<f64> = (0..n).map(|i| i as f64 - 1.5).collect();
            for (u, v) in factor.solve(&a.times(&x)).iter().zip(&x) {
                assert!((u - v).abs() < 1e-10);
            }
            assert!((factor.inverse_quadratic(&a.times(&x)) - a.quadratic(&x)).abs() < 1e-9);
            let (eigenvalues, _) = a.symmetric_eigen();
            let log_det: f64 = eigenvalues.iter().map(|v| v.ln()).sum();
            assert!((factor.log_det() - log_det).abs() < 1e-10);
        }
    }

    #[test]
    fn eigenvectors_rebuild_the_matrix() {
        let a = random_definite(9, 4);
        let (values, vectors) = a.symmetric_eigen();
        let mut rebuilt = Matrix::zeros(9, 9);
        for (k, &value) in values.iter().enumerate() {
            rebuilt.add_outer(value, vectors.row(k));
        }
        assert_near(&rebuilt, &a, 1e-12);
    }

    #[test]
    fn four_outer_products_at_once_are_four() {
        let x = random_definite(9, 2);
        let rows = [x.row(0), x.row(3), x.row(5), x.row(8)];
        let factors = [0.5, -2.0, 0.0, 1.25];
        let (mut once, mut each) = (Matrix::identity(9), Matrix::identity(9));
        once.add_outers(factors, rows);
        once.mirror_lower();
        factors.into_iter().zip(rows).for_each(|(factor, x)| each.add_outer(factor, x));
        assert_near(&once, &each, 1e-14);
    }

    #[test]
    fn a_matrix_that_is_not_definite_has_no_factor() {
        let mut a = random_definite(5, 1);
        a[(3, 3)] = -1.0;
        assert_eq!(Cholesky::new(&a), None);
        let mut singular = Matrix::zeros(2, 2);
        singular.add_outer(1.0, &[1.0, 1.0 / 3.0]);
        assert_eq!(Cholesky::new(&singular), None);
        let mut nan = Matrix::identity(2);
        nan[(1, 0)] = f64::NAN;
        assert_eq!(Cholesky::new(&nan), None);
    }
}
