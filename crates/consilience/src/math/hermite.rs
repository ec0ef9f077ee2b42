//! Gauss–Hermite quadrature for the standard normal density.

use super::Matrix;

/// Nodes x and weights w with ∫ f(x) φ(x) dx ≈ Σ w f(x), exact for polynomials of degree below twice their number.
pub fn gauss_hermite(count: usize) -> Vec<(f64, f64)> {
    // The nodes are the eigenvalues of the three-term recurrence's matrix.
    let mut recurrence = Matrix::zeros(count, count);
    for k in 1..count {
        let side = (k as f64).sqrt();
        recurrence[(k, k - 1)] = side;
        recurrence[(k - 1, k)] = side;
    }
    let (mut nodes, _) = recurrence.symmetric_eigen();
    nodes.sort_by(f64::total_cmp);
    let node = |x: f64| {
        let mut x = x;
        for _ in 0..2 {
            let (value, slope, _) = last(count, x);
            x -= value / slope;
        }
        // By the sum of squares weights keep their digits, however small they are.
        (x, 1.0 / last(count, x).2)
    };
    nodes.into_iter().map(node).collect()
}

/// The orthonormal polynomial of this degree, its slope, and Σ of the squares of those below.
fn last(degree: usize, x: f64) -> (f64, f64, f64) {
    let (mut before, mut value, mut squares) = (0.0, 1.0, 0.0);
    for k in 0..degree {
        squares += value * value;
        let k = k as f64;
        let next = (x * value - k.sqrt() * before) / (k + 1.0).sqrt();
        (before, value) = (value, next);
    }
    (value, (degree as f64).sqrt() * before, squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_the_normal_are_exact() {
        for count in [1, 2, 5, 9, 15, 30, 64, 100] {
            let rule = gauss_hermite(count);
            let mut moment = 1.0;
            for power in 0..count.min(20) {
                let degree = 2 * power as i32;
                let sum: f64 = rule.iter().map(|(x, w)| w * x.powi(degree)).sum();
                assert!((sum / moment - 1.0).abs() < 1e-11, "{count} {degree}: {sum} {moment}");
                moment *= f64::from(degree + 1);
            }
            // A characteristic function, which no polynomial is.
            if count >= 15 {
                let sum: f64 = rule.iter().map(|(x, w)| w * libm::cos(*x)).sum();
                assert!((sum - libm::exp(-0.5)).abs() < 1e-12, "{count}: {sum}");
            }
        }
    }
}
