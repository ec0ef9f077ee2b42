//! Eigenvalues of a symmetric matrix, and how much of a vector lies along each eigenvector, without the
//! eigenvectors: a matrix of Householder reflections makes the matrix tridiagonal, and implicit QL steps make
//! that diagonal, while the vector is turned along.

use super::{Matrix, dot};

/// Pairs (eigenvalue, component of `x` along its eigenvector), in no particular order.
pub fn spectrum_along(a: &Matrix, x: &[f64]) -> Vec<(f64, f64)> {
    let (mut diagonal, mut beside, mut x) = tridiagonal(a.clone(), x.to_vec());
    diagonalise(&mut diagonal, &mut beside, &mut x);
    diagonal.into_iter().zip(x).collect()
}

/// The diagonal, what stands beside it (its last element is 0), and x in the same coordinates.
fn tridiagonal(mut a: Matrix, mut x: Vec<f64>) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let n = x.len();
    let mut beside = vec![0.0; n];
    for k in 0..n.saturating_sub(1) {
        // The reflection that leaves one element of this column below the diagonal.
        let mut v: Vec<f64> = a.row(k)[k + 1..].to_vec();
        let length = dot(&v, &v).sqrt();
        beside[k] = if v[0] > 0.0 { -length } else { length };
        v[0] -= beside[k];
        let square = dot(&v, &v);
        if square == 0.0 {
            continue;
        }
        let beta = 2.0 / square;
        let mut q: Vec<f64> = (k + 1..n).map(|i| beta * dot(&a.row(i)[k + 1..], &v)).collect();
        let half = 0.5 * beta * dot(&q, &v);
        q.iter_mut().zip(&v).for_each(|(q, v)| *q -= half * v);
        for i in 0..v.len() {
            let row = &mut a.row_mut(k + 1 + i)[k + 1..];
            for (a, (vj, qj)) in row.iter_mut().zip(v.iter().zip(&q)) {
                *a -= v[i] * qj + q[i] * vj;
            }
        }
        let along = beta * dot(&v, &x[k + 1..]);
        x[k + 1..].iter_mut().zip(&v).for_each(|(x, v)| *x -= along * v);
    }
    (a.diagonal(), beside, x)
}

/// QL steps with Wilkinson's shift until nothing is left beside the diagonal.
fn diagonalise(d: &mut [f64], e: &mut [f64], x: &mut [f64]) {
    let n = d.len();
    let largest = d.iter().chain(e.iter()).fold(0.0f64, |m, v| m.max(v.abs()));
    let nothing = f64::EPSILON * largest;
    for l in 0..n {
        // Two steps an eigenvalue are usual; the limit only guards against what is not a number.
        for _ in 0..100 {
            let m = (l..n).find(|&m| m + 1 == n || e[m].abs() <= nothing).unwrap_or(l);
            if m == l {
                break;
            }
            let g = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let root = (g * g + 1.0).sqrt();
            let mut g = d[m] - d[l] + e[l] / (g + root.copysign(g));
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            let mut split = false;
            for i in (l..m).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                let r = (f * f + g * g).sqrt();
                e[i + 1] = r;
                if r == 0.0 {
                    // It fell into two parts on the way.
                    d[i + 1] -= p;
                    split = true;
                    break;
                }
                (s, c) = (f / r, g / r);
                let h = d[i + 1] - p;
                let r = (d[i] - h) * s + 2.0 * c * b;
                p = s * r;
                d[i + 1] = h + p;
                g = c * r - b;
                (x[i + 1], x[i]) = (s * x[i] + c * x[i + 1], c * x[i] - s * x[i + 1]);
            }
            e[m] = 0.0;
            if !split {
                d[l] -= p;
                e[l] = g;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    /// As Jacobi's rotations have it, with eigenvalues that are 0 or equal among them.
    #[test]
    fn values_and_components_are_those_of_the_eigenvectors() {
        for n in [0, 1, 2, 3, 8, 31] {
            for rank in [n, n / 2, 1.min(n)] {
                let mut rng = crate::math::stream(n as u64, rank as u64, 0, "test");
                let mut a = Matrix::zeros(n, n);
                for k in 0..rank {
                    let row: Vec<f64> = (0..n).map(|_| rng.random::<f64>() - 0.5).collect();
                    a.add_outer(10.0 / (1 + k * k) as f64, &row);
                }
                let x: Vec<f64> = (0..n).map(|i| i as f64 - 1.5).collect();
                let found = spectrum_along(&a, &x);
                let (values, vectors) = a.symmetric_eigen();
                // Functions of the matrix: they do not depend on the choice among equal eigenvalues.
                for f in [|_| 1.0, |v: f64| v, |v: f64| v * v, |v: f64| 1.0 / (1.0 + v)] {
                    let ours: f64 = found.iter().map(|(value, c)| f(*value) * c * c).sum();
                    let theirs: f64 =
                        (0..n).map(|k| f(values[k]) * dot(vectors.row(k), &x).powi(2)).sum();
                    assert!(
                        (ours - theirs).abs() <= 1e-11 * (1.0 + theirs.abs()),
                        "{ours} {theirs}"
                    );
                }
                let mut ours: Vec<f64> = found.iter().map(|pair| pair.0).collect();
                let mut theirs = values;
                ours.sort_by(f64::total_cmp);
                theirs.sort_by(f64::total_cmp);
                for (a, b) in ours.iter().zip(&theirs) {
                    assert!((a - b).abs() < 1e-12, "{a} is not {b}");
                }
            }
        }
    }
}
