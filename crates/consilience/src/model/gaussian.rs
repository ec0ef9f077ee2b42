//! The Gaussian likelihood, which knows its rows through a triangle of numbers.

use super::likelihood::append;
use crate::kernel::Triangle;
use crate::math::{LOG_2PI, Matrix, dot};
use crate::target::Expansion;
use libm::exp;

/// How the coordinates of a factor differ from the coefficients: β′ = β + a(m′β − level). See
/// [`Centred::gaussian`](super::Centred::gaussian).
#[derive(Debug, Clone)]
pub struct Shift {
    /// a: the combination of columns that is the column of ones.
    pub ways: Vec<f64>,
    /// m: what was taken off each column.
    pub shifts: Vec<f64>,
    /// What was taken off the outcome.
    pub level: f64,
}

impl Shift {
    /// No difference, for so many coefficients.
    pub fn none(coefficients: usize) -> Shift {
        Shift { ways: vec![0.0; coefficients], shifts: vec![0.0; coefficients], level: 0.0 }
    }

    /// How far the ones are moved at β.
    fn lift(&self, beta: &[f64]) -> f64 {
        self.shifts.iter().zip(beta).map(|(m, b)| m * b).sum::<f64>() - self.level
    }

    /// A gradient in β from one in β′.
    fn back(&self, gradient: &mut [f64]) {
        let along: f64 = self.ways.iter().zip(&*gradient).map(|(a, g)| a * g).sum();
        gradient.iter_mut().zip(&self.shifts).for_each(|(g, m)| *g += m * along);
    }
}

/// A Gaussian likelihood is a quadratic function of β, taken around a point b near the
/// least-squares solution and through a triangular factor, so that nothing large cancels:
///
/// ```text
/// RSS(β) = RSS(b) − 2(β − b)'X'r + |R(β − b)|²,   r = y − Xb,   R'R = X'X.
/// ```
///
/// All of that is in the coordinates of a [`Shift`].
#[derive(Debug, Clone)]
pub struct Gaussian {
    observations: f64,
    around: Vec<f64>,
    rss: f64,
    xr: Vec<f64>,
    /// R, upper triangular, and its transpose. A row is 0 where the columns before it determine a column.
    root: Matrix,
    root_transposed: Matrix,
    /// The target in the coordinates of R: y − Xβ has the length of (`image` − Rβ, `rest`).
    image: Vec<f64>,
    rest: f64,
    shift: Shift,
}

/// A Gaussian likelihood with an intercept, in columns around their means: the intercept is then the outcome's level
/// there, and is determined apart from the other coefficients.
#[derive(Debug, Clone)]
pub struct AroundMeans {
    /// Observations.
    pub observations: f64,
    /// The columns' means.
    pub means: Vec<f64>,
    /// The outcome's.
    pub level: f64,
    /// R of the other columns, with z and ρ: |y − Xβ|² = n(level − α)² + |z − Rβ|² + ρ². A 0 on the diagonal is a
    /// column that those before it determine.
    pub root: Matrix,
    /// z.
    pub image: Vec<f64>,
    /// ρ.
    pub rest: f64,
}

impl AroundMeans {
    /// The same with these columns alone, whose coefficients are in this order.
    pub fn part(&self, columns: &[usize]) -> AroundMeans {
        let column = |j: usize| -> Vec<f64> {
            (0..self.image.len()).map(|i| self.root[(i, j)]).chain([0.0]).collect()
        };
        let mut all: Vec<Vec<f64>> = columns.iter().map(|&j| column(j)).collect();
        all.push(self.image.iter().copied().chain([self.rest]).collect());
        let slices: Vec<&[f64]> = all.iter().map(Vec::as_slice).collect();
        let factor = Triangle::of_columns(&slices).into_root();
        let p = columns.len();
        let row = |i: usize| factor.row(i)[..p].to_vec();
        AroundMeans {
            observations: self.observations,
            means: columns.iter().map(|&j| self.means[j]).collect(),
            level: self.level,
            root: Matrix::from_rows(p, p, (0..p).flat_map(row).collect()),
            image: (0..p).map(|i| factor[(i, p)]).collect(),
            rest: factor[(p, p)].abs(),
        }
    }
}

impl Gaussian {
    /// The likelihood of all rows A = [X, y] with this triangular factor of A'A. What is left of a column
    /// after those before it, and of the outcome after all, is 0 where it is nothing but rounding.
    pub fn new(mut factor: Matrix, observations: f64, shift: Shift) -> Gaussian {
        let p = factor.cols() - 1;
        let sure = 8.0 * f64::EPSILON * (p as f64 + observations.max(1.0).sqrt());
        let length = |factor: &Matrix, j: usize| {
            (0..=j).map(|i| factor[(i, j)] * factor[(i, j)]).sum::<f64>().sqrt()
        };
        let lengths: Vec<f64> = (0..=p).map(|j| length(&factor, j)).collect();
        for j in 0..p {
            if factor[(j, j)].abs() <= sure * lengths[j] {
                fold_down(&mut factor, j);
            }
        }
        let mut gaussian = Gaussian::of(factor, observations, shift);
        // The data themselves are rounded too.
        let shift = &gaussian.shift;
        let terms = shift.shifts.iter().zip(&gaussian.around).map(|(m, b)| (m * b).abs());
        let size = shift.level.abs() + terms.sum::<f64>();
        if gaussian.rest <= sure * lengths[p] + f64::EPSILON * size * observations.sqrt() {
            gaussian.rss -= gaussian.rest * gaussian.rest;
            gaussian.rest = 0.0;
        }
        gaussian
    }

    fn of(factor: Matrix, observations: f64, shift: Shift) -> Gaussian {
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
        Gaussian { observations, around, rss, xr, root, root_transposed, image, rest, shift }
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
        Gaussian::of(factor, power * self.observations, self.shift.clone())
    }

    /// The same with its coefficients in another order.
    pub fn ordered(&self, order: &[usize]) -> Gaussian {
        if order.iter().enumerate().all(|(k, &j)| k == j) {
            return self.clone();
        }
        let column = |j: usize| self.root_transposed.row(j).iter().copied().chain([0.0]).collect();
        let mut columns: Vec<Vec<f64>> = order.iter().map(|&j| column(j)).collect();
        columns.push(self.image.iter().copied().chain([self.rest]).collect());
        let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let factor = Triangle::of_columns(&slices).into_root();
        let pick = |values: &[f64]| order.iter().map(|&j| values[j]).collect();
        let Shift { ways, shifts, level } = &self.shift;
        let shift = Shift { ways: pick(ways), shifts: pick(shifts), level: *level };
        Gaussian::new(factor, self.observations, shift)
    }

    /// The same around the columns' means: one coefficient is the intercept's, and all others follow in their
    /// order.
    pub fn around_means(&self, intercept: usize) -> AroundMeans {
        let others = (0..self.coefficients()).filter(|&j| j != intercept);
        let order: Vec<usize> = std::iter::once(intercept).chain(others).collect();
        let own = self.ordered(&order);
        let ones = own.root[(0, 0)];
        let p = order.len() - 1;
        let part = |i: usize| own.root.row(i)[1..].to_vec();
        AroundMeans {
            observations: own.observations,
            // What is left of the columns' means after the shift, over the column of ones.
            means: (1..=p).map(|j| own.shift.shifts[j] + own.root[(0, j)] / ones).collect(),
            level: own.image[0] / ones + own.shift.level,
            root: Matrix::from_rows(p, p, (1..=p).flat_map(part).collect()),
            image: own.image[1..].to_vec(),
            rest: own.rest,
        }
    }

    /// Observations: rows, each counted with its weight.
    pub fn observations(&self) -> f64 {
        self.observations
    }

    /// The number of coefficients.
    pub fn coefficients(&self) -> usize {
        self.image.len()
    }

    /// The number of directions of the coefficients that the rows determine.
    pub fn rank(&self) -> usize {
        self.root.diagonal().iter().filter(|d| **d != 0.0).count()
    }

    /// ρ, the length of what no coefficients reach: 0 if some fit every row but for rounding.
    pub fn rest(&self) -> f64 {
        self.rest
    }

    /// Which columns those before them do not determine.
    pub fn own_columns(&self) -> Vec<bool> {
        self.root.diagonal().iter().map(|d| *d != 0.0).collect()
    }

    /// R and v with |y − Xβ|² = |v − R(β − b)|² + ρ² for b = `from`. Only one or a few rows of R and v are
    /// large where columns are far from 0; the others have digits of their own.
    pub fn seen_from(&self, from: &[f64]) -> (Matrix, Vec<f64>) {
        let level = self.shift.lift(from);
        let at: Vec<f64> = from.iter().zip(&self.shift.ways).map(|(b, a)| b + a * level).collect();
        let left = self.image.iter().zip(self.root.times(&at)).map(|(z, fit)| z - fit).collect();
        (self.raw_root(), left)
    }

    /// R of the columns as they are.
    fn raw_root(&self) -> Matrix {
        let mut root = self.root.clone();
        for (i, one) in self.root.times(&self.shift.ways).into_iter().enumerate() {
            root.row_mut(i).iter_mut().zip(&self.shift.shifts).for_each(|(r, m)| *r += one * m);
        }
        root
    }

    /// Coefficients near the least-squares ones, in the factor's coordinates.
    pub(super) fn solution(self) -> Vec<f64> {
        self.around
    }

    /// X'X.
    pub fn gram(&self) -> Matrix {
        let root = self.raw_root();
        root.transpose().product(&root)
    }

    /// The same of the columns around their means, as far as some of them make a column of ones; those stay as they are.
    pub fn centred_gram(&self) -> Matrix {
        self.root_transposed.product(&self.root)
    }

    /// RSS(β), with X'(y − Xβ) written to `xr`. This is what a chain calls most.
    fn residuals(&self, beta: &[f64], xr: &mut [f64]) -> f64 {
        xr.copy_from_slice(&self.xr);
        let level = self.shift.lift(beta);
        let step = |i: usize| beta[i] + self.shift.ways[i] * level - self.around[i];
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
        self.shift.back(xr);
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

/// Makes row `from` 0 by rotations into the rows below it, of a triangular matrix whose corner in that row
/// is 0 but for rounding.
fn fold_down(factor: &mut Matrix, from: usize) {
    let mut row = factor.row(from).to_vec();
    factor.row_mut(from).fill(0.0);
    for k in from + 1..row.len() {
        let (corner, entry) = (factor[(k, k)], row[k]);
        let norm = libm::hypot(corner, entry);
        if entry == 0.0 || norm == 0.0 {
            continue;
        }
        let (c, s) = (corner / norm, entry / norm);
        for (r, f) in row[k..].iter_mut().zip(&mut factor.row_mut(k)[k..]) {
            (*f, *r) = (c * *f + s * *r, c * *r - s * *f);
        }
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
