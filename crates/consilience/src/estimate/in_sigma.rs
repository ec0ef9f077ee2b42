//! Gaussian models in which some coefficients have priors N(0, s²σ²).
//!
//! Such a prior is as good as one more row: 0 = β/s + noise of standard deviation σ. So the rows and these are brought
//! to triangular form with such coefficients first, which integrates them out: with R their corner of the factor,
//!
//! ```text
//! ∫ N(y; Xβ, σ²) Π N(βⱼ; 0, sⱼ²σ²) dβ = (2πσ²)^(−n/2) / (Π sⱼ · |det R|) · e^(−what is left / 2σ²)
//! ```
//!
//! What is left is a Gaussian model of the other coefficients with n rows; see [`linear`](super::linear).

use super::{Estimate, Linear, Weighted};
use crate::Result;
use crate::kernel::Triangle;
use crate::math::ziggurat::normal;
use crate::math::{Matrix, Stream};
use crate::model::gaussian::Shift;
use crate::model::{Gaussian, Prior};
use libm::{exp, log};

/// The evidence and the posterior's moments.
#[derive(Debug, Clone)]
pub struct InSigma {
    /// log Z.
    pub log_z: Estimate,
    /// Posterior mean of the free coefficients, then of log σ if that is free.
    pub mean: Vec<f64>,
    /// Posterior covariance.
    pub covariance: Matrix,
    /// What is left once the coefficients in units of σ are integrated out.
    pub others: Linear,
    /// The numbers of these coefficients, and of the others.
    scaled: Vec<usize>,
    rest: Vec<usize>,
    /// Given the others b and σ, Rβ = `image` − `along`·b + σε.
    inverse: Matrix,
    image: Vec<f64>,
    along: Matrix,
    fixed_log_sd: Option<f64>,
}

impl InSigma {
    /// ∫ p(y|θ) p(θ) dθ where the priors that `scaled` marks are of β/σ, normal and around 0. `None` if too many of
    /// the others are not normal.
    pub fn new(
        gaussian: &Gaussian,
        priors: &[Prior],
        scaled: &[bool],
        fixed_log_sd: Option<f64>,
    ) -> Result<Option<InSigma>> {
        let p = gaussian.coefficients();
        let (own, rest): (Vec<usize>, Vec<usize>) = (0..p).partition(|&j| scaled[j]);
        let (k, size) = (own.len(), p + 1 + own.len());
        let (root, left) = gaussian.seen_from(&vec![0.0; p]);
        let sds: Vec<f64> = own.iter().map(|&j| priors[j].scale().unwrap_or(1.0)).collect();
        let mut columns: Vec<Vec<f64>> = Vec::new();
        for (i, &j) in own.iter().chain(&rest).enumerate() {
            let mut column = vec![0.0; size];
            (0..p).for_each(|row| column[row] = root[(row, j)]);
            if i < k {
                column[p + 1 + i] = 1.0 / sds[i];
            }
            columns.push(column);
        }
        let mut outcome = vec![0.0; size];
        outcome[..p].copy_from_slice(&left);
        outcome[p] = gaussian.rest();
        columns.push(outcome);
        let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let factor = Triangle::of_columns(&slices).into_root();
        let after = rest.len();
        let corner = |from: usize| -> Matrix {
            let row = |i: usize| factor.row(i)[from..].to_vec();
            let width = p + 1 - from;
            Matrix::from_rows(width, width, (from..=p).flat_map(row).collect())
        };
        let left = Gaussian::new(corner(k), gaussian.observations(), Shift::none(after));
        let others: Vec<Prior> =
            rest.iter().map(|&j| priors[j]).chain(priors[p..].iter().copied()).collect();
        let Some(others) = Linear::new(&left, &others, 1.0, fixed_log_sd)? else {
            return Ok(None);
        };
        let pivots: f64 = (0..k).map(|i| log(factor[(i, i)].abs())).sum();
        let constant = -pivots - sds.iter().map(|s| log(*s)).sum::<f64>();
        let upper = |i: usize| factor.row(i)[..k].to_vec();
        let mut found = InSigma {
            log_z: Estimate { value: others.log_z.value + constant, ..others.log_z },
            mean: Vec::new(),
            covariance: Matrix::zeros(0, 0),
            inverse: inverse(&Matrix::from_rows(k, k, (0..k).flat_map(upper).collect())),
            image: (0..k).map(|i| factor[(i, p)]).collect(),
            along: Matrix::from_rows(
                k,
                after,
                (0..k).flat_map(|i| factor.row(i)[k..p].to_vec()).collect(),
            ),
            others,
            scaled: own,
            rest,
            fixed_log_sd,
        };
        found.moments();
        Ok(Some(found))
    }

    /// The moments of all, from those of the others and the mean of σ².
    fn moments(&mut self) {
        let (k, after) = (self.scaled.len(), self.rest.len());
        let free = usize::from(self.fixed_log_sd.is_none());
        let all = k + after + free;
        let variance = self.others.expect(|u| exp(2.0 * u), self.fixed_log_sd);
        // β = a + B·(others, log σ).
        let turn = self.inverse.product(&self.along);
        let mut ways = Matrix::zeros(all, after + free);
        let mut mean = vec![0.0; all];
        let start = self.inverse.times(&self.image);
        for (i, &j) in self.scaled.iter().enumerate() {
            (0..after).for_each(|c| ways[(j, c)] = -turn[(i, c)]);
            mean[j] = start[i];
        }
        self.rest.iter().enumerate().for_each(|(c, &j)| ways[(j, c)] = 1.0);
        if free == 1 {
            ways[(all - 1, after)] = 1.0;
        }
        let moved = ways.times(&self.others.mean);
        mean.iter_mut().zip(moved).for_each(|(m, by)| *m += by);
        let mut covariance = ways.product(&self.others.covariance).product(&ways.transpose());
        let own = self.inverse.product(&self.inverse.transpose());
        for (a, &i) in self.scaled.iter().enumerate() {
            for (b, &j) in self.scaled.iter().enumerate() {
                covariance[(i, j)] += variance * own[(a, b)];
            }
        }
        (self.mean, self.covariance) = (mean, covariance);
    }

    /// Draws of the posterior, all but equal in weight.
    pub fn draws(&self, count: usize, rng: &mut Stream) -> Weighted {
        let others = self.others.draws(count, rng);
        let (k, after) = (self.scaled.len(), self.rest.len());
        let mut thetas = Matrix::zeros(others.thetas.rows(), self.mean.len());
        for row in 0..thetas.rows() {
            let given = others.thetas.row(row);
            let log_sd = self.fixed_log_sd.unwrap_or_else(|| given[after]);
            let moved = self.along.times(&given[..after]);
            let noise = exp(log_sd);
            let left: Vec<f64> =
                (0..k).map(|i| self.image[i] - moved[i] + noise * normal(rng)).collect();
            let own = self.inverse.times(&left);
            let out = thetas.row_mut(row);
            self.scaled.iter().zip(own).for_each(|(&j, b)| out[j] = b);
            self.rest.iter().zip(given).for_each(|(&j, b)| out[j] = *b);
            if self.fixed_log_sd.is_none() {
                out[k + after] = log_sd;
            }
        }
        Weighted { thetas, ..others }
    }
}

/// The inverse of an upper triangular matrix with no 0 on its diagonal.
pub(super) fn inverse(upper: &Matrix) -> Matrix {
    let k = upper.rows();
    let mut out = Matrix::zeros(k, k);
    for j in 0..k {
        for i in (0..=j).rev() {
            let known: f64 = (i + 1..=j).map(|l| upper[(i, l)] * out[(l, j)]).sum();
            let own = if i == j { 1.0 } else { 0.0 };
            out[(i, j)] = (own - known) / upper[(i, i)];
        }
    }
    out
}
