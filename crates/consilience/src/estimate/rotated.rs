//! A Gaussian linear model in coordinates in which coefficients with normal priors are independent given
//! σ and the other coefficients.

use super::mixed::{Corner, Few, MOST, Mix, Variances};
use crate::math::svd::Svd;
use crate::math::{LOG_2PI, Matrix, dot};
use crate::model::{Gaussian, Prior};
use libm::{exp, log, log1p};

/// Beyond ±this, log p(y|σ) is a straight line in log σ.
const FURTHEST: f64 = 300.0;

/// See [`linear`](super::linear) for the symbols.
#[derive(Debug, Clone)]
pub(super) struct Rotated {
    observations: f64,
    /// log ∫ p(β)ʷ dβ, which the power of a density lacks to be one.
    log_alpha: f64,
    /// Directions of the coefficients that the rows determine.
    rank: usize,
    /// dⱼ², and beside each what the other coefficients' columns and the outcome have along uⱼ.
    squares: Vec<f64>,
    along: Vec<[f64; MOST + 1]>,
    /// What all of these have beside the uⱼ.
    rest: Corner,
    /// The prior variances of the other coefficients.
    pub variances: Variances,
    /// The coefficients with normal priors, and those with others.
    pub normal: Vec<usize>,
    pub other: Vec<usize>,
    /// β = m + S·V'b: V', all prior centres, and the normal ones' standard deviations.
    outward: Matrix,
    pub centres: Vec<f64>,
    sds: Vec<f64>,
}

impl Rotated {
    /// Under these priors of the coefficients, which act with power `share`. `None` if more than a few are
    /// not normal, or a prior's power has no finite integral.
    pub fn new(
        gaussian: &Gaussian,
        priors: &[Prior],
        share: f64,
        accuracy: f64,
    ) -> Option<Rotated> {
        let (mut normal, mut other) = (Vec::new(), Vec::new());
        let (mut centres, mut sds, mut mixes, mut log_alpha) = (vec![], vec![], vec![], 0.0);
        for (j, prior) in priors.iter().enumerate() {
            log_alpha += prior.log_alpha(share)?;
            centres.push(match *prior {
                Prior::Normal { mean, sd } => {
                    normal.push(j);
                    sds.push(sd / share.sqrt());
                    mean
                }
                Prior::Laplace { mean, .. } | Prior::StudentT { mean, .. } => {
                    other.push(j);
                    mixes.push(Mix::new(prior, share)?);
                    mean
                }
                Prior::Fixed { .. } => return None,
            });
        }
        let size = other.len();
        if size > MOST {
            return None;
        }
        // The normal ones first: what the others add to them is then known apart from rounding.
        let order: Vec<usize> = normal.iter().chain(&other).copied().collect();
        let ordered = gaussian.ordered(&order);
        let from: Vec<f64> = order.iter().map(|&j| centres[j]).collect();
        let (root, left) = ordered.seen_from(&from);
        let own = ordered.own_columns();
        let rows = left.len();
        let mut scaled = Matrix::zeros(rows, normal.len());
        let mut beside = Matrix::zeros(rows, size + 1);
        for i in 0..rows {
            let (ours, others) = root.row(i).split_at(normal.len());
            let entries = scaled.row_mut(i).iter_mut().zip(ours).zip(&sds);
            entries.for_each(|((entry, r), sd)| *entry = r * sd);
            beside.row_mut(i)[..size].copy_from_slice(others);
            beside[(i, size)] = left[i];
        }
        let rank = own[..normal.len()].iter().filter(|own| **own).count();
        let svd = Svd::new(&scaled, &beside, rank);
        let row = |i: usize| {
            let mut row = [0.0; MOST + 1];
            row[..=size].copy_from_slice(svd.along.row(i));
            row
        };
        let mut rest = Corner::default();
        (rank..rows).for_each(|i| rest.fold(row(i), 0, size));
        for (k, own) in own[normal.len()..].iter().enumerate() {
            if !own {
                rest.rows[k] = [0.0; MOST + 1];
            }
        }
        // What the coefficients do not reach is known; all else that is left is rounding.
        rest.rest = ordered.rest() * ordered.rest();
        Some(Rotated {
            observations: gaussian.observations(),
            log_alpha,
            rank: ordered.rank(),
            squares: svd.values.iter().map(|d| d * d).collect(),
            along: (0..rank).map(row).collect(),
            rest,
            variances: Variances { mixes, accuracy },
            normal,
            other,
            outward: svd.right.transpose(),
            centres,
            sds,
        })
    }

    /// What is left of the model given σ once the normal coefficients are integrated out: a factor for the
    /// others, and the logarithm of what stands outside.
    pub fn corner(&self, u: f64) -> (Corner, f64) {
        let near = u.clamp(-FURTHEST, FURTHEST);
        let (variance, scale) = (exp(2.0 * near), exp(-near));
        let size = self.other.len();
        let mut corner = self.rest;
        for row in &mut corner.rows[..size] {
            row.iter_mut().for_each(|entry| *entry *= scale);
        }
        corner.rest *= scale * scale;
        let mut logs = 0.0;
        for (square, along) in self.squares.iter().zip(&self.along) {
            logs += log1p(square / variance);
            let scale = 1.0 / (variance + square).sqrt();
            corner.fold(along.map(|entry| entry * scale), 0, size);
        }
        let mut outside = -self.observations * (u + 0.5 * LOG_2PI) - 0.5 * logs;
        // Further out every direction that the rows determine adds a straight line.
        if u < -FURTHEST {
            outside += self.rank as f64 * (u - near);
        }
        (corner, outside + self.log_alpha)
    }

    /// log p(y|σ) with log α.
    pub fn log_likelihood(&self, u: f64) -> f64 {
        let (corner, outside) = self.corner(u);
        outside + self.variances.log_integral(0, &corner)
    }

    /// Means and variances of the normal coefficients in rotated coordinates, as many as the rows
    /// determine, given σ and the other coefficients.
    pub fn conditional(&self, u: f64, few: &[f64; MOST]) -> impl Iterator<Item = (f64, f64)> {
        let variance = exp(2.0 * u.clamp(-FURTHEST, FURTHEST));
        let size = self.other.len();
        let few = *few;
        self.squares.iter().zip(&self.along).map(move |(&square, along)| {
            let known: f64 = (0..size).map(|k| along[k] * few[k]).sum();
            let sum = variance + square;
            (square.sqrt() * (along[size] - known) / sum, variance / sum)
        })
    }

    /// β from the normal coefficients in rotated coordinates and the others.
    pub fn back(&self, b: &[f64], few: &[f64; MOST], beta: &mut [f64]) {
        for (i, (&j, sd)) in self.normal.iter().zip(&self.sds).enumerate() {
            beta[j] = self.centres[j] + sd * dot(self.outward.row(i), b);
        }
        for (k, &j) in self.other.iter().enumerate() {
            beta[j] = self.centres[j] + few[k];
        }
    }

    /// Means given σ of the normal coefficients (rotated), of the others, and of log σ.
    pub fn mean_given(&self, u: f64, few: &Few) -> Vec<f64> {
        let mut mean: Vec<f64> = self.conditional(u, &few.mean).map(|(mean, _)| mean).collect();
        mean.resize(self.normal.len(), 0.0);
        mean.extend(&few.mean[..self.other.len()]);
        mean.push(u);
        mean
    }

    /// Adds so many times their covariances given σ to a sum.
    pub fn add_covariance(&self, u: f64, few: &Few, times: f64, sum: &mut Matrix) {
        let (p, size) = (self.normal.len(), self.other.len());
        for (j, (_, variance)) in self.conditional(u, &few.mean).enumerate() {
            sum[(j, j)] += times * variance;
        }
        (self.squares.len()..p).for_each(|j| sum[(j, j)] += times);
        if size == 0 {
            return;
        }
        // A rotated coefficient moves with the others by −d·along/(σ² + d²).
        let variance = exp(2.0 * u.clamp(-FURTHEST, FURTHEST));
        let mut moves = vec![[0.0; MOST]; p + size];
        for (j, (square, along)) in self.squares.iter().zip(&self.along).enumerate() {
            let pull = square.sqrt() / (variance + square);
            (0..size).for_each(|k| moves[j][k] = -pull * along[k]);
        }
        (0..size).for_each(|k| moves[p + k][k] = 1.0);
        for i in 0..p + size {
            let mut along = [0.0; MOST];
            for (k, a) in along.iter_mut().enumerate().take(size) {
                *a = (0..size).map(|l| moves[i][l] * few.covariance[l][k]).sum();
            }
            for (entry, moves) in sum.row_mut(i).iter_mut().zip(&moves) {
                *entry += times * (0..size).map(|k| along[k] * moves[k]).sum::<f64>();
            }
        }
    }

    /// Mean and covariance of β, and of log σ if it is free, from those in rotated coordinates.
    pub fn turned(&self, mean: &[f64], inner: &Matrix, free: bool) -> (Vec<f64>, Matrix) {
        let (p, size, d) = (self.normal.len(), self.other.len(), self.centres.len());
        let all = d + usize::from(free);
        // Rows of the way back.
        let mut out = Matrix::zeros(all, d + 1);
        for (i, (&j, sd)) in self.normal.iter().zip(&self.sds).enumerate() {
            (0..p).for_each(|k| out[(j, k)] = sd * self.outward[(i, k)]);
        }
        self.other.iter().enumerate().for_each(|(k, &j)| out[(j, p + k)] = 1.0);
        if free {
            out[(d, d)] = 1.0;
        }
        let covariance = out.product(inner).product(&out.transpose());
        let mut few = [0.0; MOST];
        few[..size].copy_from_slice(&mean[p..d]);
        let mut beta = vec![0.0; all];
        self.back(&mean[..p], &few, &mut beta);
        if free {
            beta[d] = mean[d];
        }
        (beta, covariance)
    }

    /// Where terms of log p(y|σ) turn in log σ: where σ is as large as a singular value, as what that
    /// explains, or as what is left.
    pub fn turns(&self) -> Vec<f64> {
        let size = self.other.len();
        let entries =
            self.along.iter().chain(&self.rest.rows[..size]).flat_map(|row| &row[..=size]);
        let squares = self.squares.iter().copied().chain(entries.map(|entry| entry * entry));
        let turns = squares.chain([self.rest.rest / self.observations]).map(|x| 0.5 * log(x));
        turns.filter(|u| u.is_finite()).map(|u| u.clamp(-FURTHEST, FURTHEST)).collect()
    }
}
