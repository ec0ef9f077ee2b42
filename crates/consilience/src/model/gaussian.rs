//! The Gaussian likelihood, which knows its rows through a triangle of numbers.

use super::likelihood::append;
use crate::math::{LOG_2PI, Matrix, dot};
use crate::target::Expansion;
use libm::exp;

/// A Gaussian likelihood is a quadratic function of β, taken around a point b near the
/// least-squares solution and through a triangular factor, so that nothing large cancels:
///
/// ```text
/// RSS(β) = RSS(b) − 2(β − b)'X'r + |R(β − b)|²,   r = y − Xb,   R'R = X'X.
/// ```
#[derive(Debug, Clone)]
pub struct Gaussian {
    observations: f64,
    around: Vec<f64>,
    rss: f64,
    xr: Vec<f64>,
    /// R, upper triangular, and its transpose.
    root: Matrix,
    root_transposed: Matrix,
    /// The target in the coordinates of R: y − Xβ has the length of (`image` − Rβ, `rest`).
    image: Vec<f64>,
    rest: f64,
}

impl Gaussian {
    /// The likelihood of all rows A = [X, y] with this triangular factor of A'A.
    pub fn from_factor(factor: &Matrix, observations: f64) -> Gaussian {
        let p = factor.cols() - 1;
        let part = |i: usize| factor.row(i)[..p].to_vec();
        let root = Matrix::from_rows(p, p, (0..p).flat_map(part).collect());
        let image: Vec<f64> = (0..p).map(|i| factor[(i, p)]).collect();
        let rest = factor[(p, p)].abs();
        let root_transposed = root.transpose();
        let around = near_solution(&root, &root_transposed, &image);
        let left: Vec<f64> =
            image.iter().zip(root.times(&around)).map(|(z, fit)| z - fit).collect();
        let rss = dot(&left, &left) + rest * rest;
        let xr = root_transposed.times(&left);
        Gaussian { observations, around, rss, xr, root, root_transposed, image, rest }
    }

    /// The likelihood to a power: every row counts for that many.
    pub fn to_the(&self, power: f64) -> Gaussian {
        let p = self.image.len();
        let mut factor = Matrix::zeros(p + 1, p + 1);
        for i in 0..p {
            factor.row_mut(i)[..p].copy_from_slice(self.root.row(i));
            factor[(i, p)] = self.image[i];
        }
        factor[(p, p)] = self.rest;
        factor.scale(power.sqrt());
        Gaussian::from_factor(&factor, power * self.observations)
    }

    /// Observations: rows, each counted with its weight.
    pub fn observations(&self) -> f64 {
        self.observations
    }

    /// R, z and ρ with |y − Xβ|² = |z − Rβ|² + ρ².
    pub fn reduced(&self) -> (&Matrix, &[f64], f64) {
        (&self.root, &self.image, self.rest)
    }

    /// X'X.
    pub fn gram(&self) -> Matrix {
        self.root_transposed.product(&self.root)
    }

    /// RSS(β), with X'(y − Xβ) written to `xr`. This is what a chain calls most.
    fn residuals(&self, beta: &[f64], xr: &mut [f64]) -> f64 {
        xr.copy_from_slice(&self.xr);
        let step = |i: usize| beta[i] - self.around[i];
        let mut rss = self.rss;
        for (i, known) in self.xr.iter().enumerate() {
            rss -= 2.0 * step(i) * known;
        }
        for i in 0..beta.len() {
            // One row of R at a time: its product with the step, and what that adds to R'R·step.
            let row = &self.root.row(i)[i..];
            let image: f64 = row.iter().enumerate().map(|(k, r)| r * step(i + k)).sum();
            rss += image * image;
            xr[i..].iter_mut().zip(row).for_each(|(x, r)| *x -= image * r);
        }
        rss.max(0.0)
    }

    /// −n(u + ½ log 2π) − ½ RSS/σ², with 0·∞ = 0 for a perfect fit.
    fn value_from(&self, rss: f64, log_sd: f64) -> f64 {
        let misfit = if rss == 0.0 { 0.0 } else { 0.5 * rss * exp(-2.0 * log_sd) };
        -self.observations * (log_sd + 0.5 * LOG_2PI) - misfit
    }

    /// log p(y|β, σ).
    pub fn value(&self, beta: &[f64], log_sd: f64) -> f64 {
        self.value_from(self.residuals(beta, &mut vec![0.0; beta.len()]), log_sd)
    }

    /// The same, with its gradient in β and, if there is room for it, in log σ.
    pub fn gradient(&self, beta: &[f64], log_sd: f64, gradient: &mut [f64]) -> f64 {
        let (slopes, own) = gradient.split_at_mut(beta.len());
        let rss = self.residuals(beta, slopes);
        let precision = exp(-2.0 * log_sd).min(f64::MAX);
        slopes.iter_mut().for_each(|g| *g *= precision);
        if let Some(slope) = own.first_mut() {
            *slope = if rss == 0.0 { 0.0 } else { rss * precision } - self.observations;
        }
        self.value_from(rss, log_sd)
    }

    /// The same with its derivatives in β, and in log σ if that is free.
    pub fn expand(&self, beta: &[f64], log_sd: f64, free_sd: bool) -> Expansion {
        let mut xr = vec![0.0; beta.len()];
        let rss = self.residuals(beta, &mut xr);
        let precision = exp(-2.0 * log_sd).min(f64::MAX);
        let mut out = Expansion::zeros(beta.len());
        out.value = self.value_from(rss, log_sd);
        out.hessian.add_scaled(-precision, &self.gram());
        for (g, r) in out.gradient.iter_mut().zip(&xr) {
            *g = precision * r;
        }
        if !free_sd {
            return out;
        }
        let misfit = if rss == 0.0 { 0.0 } else { rss * precision };
        let cross: Vec<f64> = xr.iter().map(|r| -2.0 * precision * r).collect();
        append(out, &cross, misfit - self.observations, -2.0 * misfit)
    }
}

/// Coefficients near the least-squares ones: those of columns that others determine are 0.
fn near_solution(root: &Matrix, transposed: &Matrix, image: &[f64]) -> Vec<f64> {
    let p = image.len();
    let mut solution = vec![0.0; p];
    for j in (0..p).rev() {
        let norm = dot(transposed.row(j), transposed.row(j)).sqrt();
        if root[(j, j)].abs() > 1e-9 * norm {
            let known = dot(&root.row(j)[j + 1..], &solution[j + 1..]);
            solution[j] = (image[j] - known) / root[(j, j)];
        }
    }
    solution
}
