//! One round: every subposterior is taken as normal (the paper's Algorithm 2).
//!
//! ```text
//! log Z = Σₛ log Zₛ + log ∫ ∏ₛ N(θ; μₛ, Σₛ) dθ
//! ```
//!
//! Exact when every subposterior is normal. Otherwise the error grows with the number of shards
//! (Buchholz, Ahfock & Richardson, Prop. 5); `exact` removes it at the cost of further rounds.

use super::{Combination, Evidence, Next, Setting, homogeneity, sum_of_evidences, summaries};
use crate::estimate::{Batch, Estimate};
use crate::math::{Cholesky, LOG_2PI, Matrix, dot, log_mean_exp};
use crate::question::{Answer, Summary};
use crate::{Error, Level, Result, Warning};
use libm::exp;
use rayon::prelude::*;

/// The combination by normals.
pub(super) struct Normal {
    setting: Setting,
}

/// A normal density as a factor of the product: mean, precision, log|precision|.
#[derive(Debug, Clone)]
pub(super) struct Factor {
    mean: Vec<f64>,
    pub(super) precision: Matrix,
    log_det: f64,
}

/// The product of normal densities, which is a multiple of a normal density.
#[derive(Debug, Clone)]
pub struct Consensus {
    /// μ = Λ⁻¹ Σ Λ_s μ_s.
    pub mean: Vec<f64>,
    /// The Cholesky factor of Λ = Σ Λ_s.
    pub factor: Cholesky,
    /// Λ.
    pub precision: Matrix,
    /// log ∫ ∏ N(θ; μ_s, Λ_s⁻¹) dθ.
    pub log_overlap: f64,
}

impl Factor {
    fn from_precision(mean: &[f64], precision: Matrix) -> Option<Factor> {
        let log_det = Cholesky::new(&precision)?.log_det();
        Some(Factor { mean: mean.to_vec(), precision, log_det })
    }

    fn from_covariance(mean: &[f64], covariance: &Matrix) -> Option<Factor> {
        Factor::from_precision(mean, Cholesky::new(covariance)?.inverse())
    }

    /// Λ_s(μ_s − θ), and (μ_s − θ)'Λ_s(μ_s − θ).
    fn pull(&self, theta: &[f64]) -> (Vec<f64>, f64) {
        let offset: Vec<f64> = self.mean.iter().zip(theta).map(|(m, t)| m - t).collect();
        let pull = self.precision.times(&offset);
        let distance = dot(&pull, &offset);
        (pull, distance)
    }
}

/// The product of normals given by means and precisions; `None` if one is not positive definite.
///
/// Everything is evaluated at μ, where no large terms cancel:
///
/// ```text
/// log I = Σ_s log N(μ; μ_s, Σ_s) + (d/2) log 2π − ½ log|Λ|
/// ```
pub fn consensus(normals: &[(&[f64], &Matrix)]) -> Option<Consensus> {
    let factors: Option<Vec<Factor>> =
        normals.iter().map(|(m, p)| Factor::from_precision(m, (*p).clone())).collect();
    product(&factors?)
}

fn product(factors: &[Factor]) -> Option<Consensus> {
    let first = &factors[0].mean;
    let d = first.len();
    let mut precision = Matrix::zeros(d, d);
    let mut pull = vec![0.0; d];
    for factor in factors {
        precision.add_scaled(1.0, &factor.precision);
        add(&mut pull, &factor.pull(first).0);
    }
    let chol = Cholesky::new(&precision)?;
    let mut mean = first.clone();
    add(&mut mean, &chol.solve(&pull));
    let at_mean: f64 =
        factors.iter().map(|f| 0.5 * (f.log_det - d as f64 * LOG_2PI - f.pull(&mean).1)).sum();
    let log_overlap = at_mean + 0.5 * (d as f64 * LOG_2PI - chol.log_det());
    Some(Consensus { mean, factor: chol, precision, log_overlap })
}

fn add(to: &mut [f64], what: &[f64]) {
    to.iter_mut().zip(what).for_each(|(a, b)| *a += b);
}

impl Normal {
    pub(super) fn new(setting: Setting) -> Normal {
        Normal { setting }
    }
}

impl Combination for Normal {
    fn next(&mut self, answers: Option<Vec<Answer>>) -> Result<Next> {
        match answers {
            None => Ok(Next::Ask(self.setting.fit())),
            Some(answers) => Ok(Next::Done(Box::new(evidence(&self.setting, summaries(answers))?))),
        }
    }
}

/// The subposteriors as normals, and their product.
pub(super) struct Normals {
    pub(super) factors: Vec<Factor>,
    pub(super) all: Consensus,
    /// How much the finite number of draws behind the moments moves the overlap.
    bias: f64,
}

impl Normals {
    /// The normals with these summaries' moments.
    pub(super) fn new(summaries: &[Summary]) -> Result<Normals> {
        let mut factors = Vec::new();
        for (s, summary) in summaries.iter().enumerate() {
            let factor = if summary.is_normal() {
                // Its precision is known: no detour over the covariance.
                Factor::from_precision(&summary.mean, summary.precision.clone())
            } else {
                Factor::from_covariance(&summary.mean, &summary.covariance)
            };
            factors.push(factor.ok_or_else(|| not_definite().for_shard(s))?);
        }
        let all = product(&factors).ok_or_else(not_definite)?;
        let bias = summaries
            .iter()
            .zip(&factors)
            .filter_map(|(summary, f)| Some(finite_draw_bias(f, &all, summary.effective?)))
            .sum();
        Ok(Normals { factors, all, bias })
    }

    /// log I.
    pub(super) fn log_overlap(&self) -> f64 {
        self.all.log_overlap - self.bias
    }

    /// The shards' pulls at the consensus, with their precisions.
    pub(super) fn scores(&self) -> Vec<homogeneity::Score> {
        let pull = |f: &Factor| (f.pull(&self.all.mean).0, f.precision.clone());
        self.factors.iter().map(pull).collect()
    }
}

fn evidence(setting: &Setting, summaries: Vec<Summary>) -> Result<Evidence> {
    let normals = Normals::new(&summaries)?;
    let shards = sum_of_evidences(&summaries);
    let value = normals.log_overlap();
    let errors = jackknife(&summaries, &normals.factors, &normals.all);
    let overlap = Estimate { value, se: errors.map(|e| e.overlap) };
    let log_z = Estimate { value: shards.value + value, se: errors.map(|e| e.total) };

    let mut warnings: Vec<Warning> = summaries.iter().flat_map(|s| s.warnings.clone()).collect();
    let all = &normals.all;
    let agreement = setting.compare_shards(&normals.scores(), &all.factor);
    if setting.shards() > 1 {
        warnings.extend(shape_warning(&summaries, all));
        warnings.extend(thin_shards(setting));
        warnings.extend(homogeneity::warnings(&agreement, &setting.names()));
    }
    let evidence = setting.evidence(log_z, all.mean.clone(), all.factor.inverse());
    Ok(Evidence {
        shards: Some(shards),
        overlap: Some(overlap),
        summaries: Some(summaries),
        agreement,
        warnings,
        ..evidence
    })
}

fn not_definite() -> Error {
    Error::numeric(
        "the posterior covariance is not positive definite; use more draws or fewer shards",
    )
}

/// How much moments of N effective draws move the overlap on average. Zero for a single shard.
///
/// With P = Λ⁻¹Λ_s, t = tr P, δ = μ_s − μ, q = δ'Λ_sδ:
///
/// ```text
/// [d(d+1) − 2(d+1)t + t² + tr P² − 2(d+1−t)q + 2δ'Λ_sΛ⁻¹Λ_sδ − 2(d−t)] / 4N
/// ```
fn finite_draw_bias(factor: &Factor, all: &Consensus, effective: f64) -> f64 {
    let d = factor.mean.len() as f64;
    let size = factor.mean.len();
    let share = Matrix::from_rows(
        size,
        size,
        (0..size).flat_map(|i| all.factor.solve(factor.precision.row(i))).collect(),
    );
    // Rows are Λ⁻¹ applied to columns of Λ_s, so this is P'; the traces are the same.
    let t: f64 = share.diagonal().iter().sum();
    let t2: f64 =
        (0..size).map(|i| (0..size).map(|j| share[(i, j)] * share[(j, i)]).sum::<f64>()).sum();
    let (pull, q) = factor.pull(&all.mean);
    let spread = all.factor.inverse_quadratic(&pull);
    (d * (d + 1.0) - 2.0 * (d + 1.0) * t + t * t + t2 - 2.0 * (d + 1.0 - t) * q + 2.0 * spread
        - 2.0 * (d - t))
        / (4.0 * effective)
}

#[derive(Debug, Clone, Copy)]
struct Errors {
    overlap: f64,
    total: f64,
}

/// Monte Carlo errors of the overlap and of the total (with the overlap's correlation to log Z_s),
/// by leaving out one batch of one shard's draws at a time. `None` where a shard has no error bar.
fn jackknife(summaries: &[Summary], factors: &[Factor], all: &Consensus) -> Option<Errors> {
    let per_shard: Option<Vec<(f64, f64)>> = summaries
        .par_iter()
        .zip(factors)
        .map(|(summary, factor)| match summary.effective {
            // Moments without Monte Carlo error leave that of log Z_s alone.
            None => summary.log_z.se.map(|se| (0.0, se * se)),
            Some(_) => shard_variance(&summary.batches, factor, all),
        })
        .collect();
    let (overlap, total) =
        per_shard?.into_iter().fold((0.0, 0.0), |sum, v| (sum.0 + v.0, sum.1 + v.1));
    Some(Errors { overlap: overlap.sqrt(), total: total.sqrt() })
}

/// One shard's part of the variances of overlap and total.
fn shard_variance(batches: &[Batch], factor: &Factor, all: &Consensus) -> Option<(f64, f64)> {
    let count = batches.len();
    if count < 2 {
        return None;
    }
    let (mut overlaps, mut totals) = (Vec::new(), Vec::new());
    for left_out in 0..count {
        let rest: Vec<&Batch> =
            batches.iter().enumerate().filter(|(b, _)| *b != left_out).map(|(_, b)| b).collect();
        let (log_z, mean, covariance) = pooled(&rest);
        let other = Factor::from_covariance(&mean, &covariance)?;
        let change = overlap_change(factor, &other, all)?;
        overlaps.push(change);
        totals.push(change + log_z);
    }
    let variance = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        squares * (count - 1) as f64 / count as f64
    };
    Some((variance(&overlaps), variance(&totals)))
}

/// log Z and moments of several batches together.
fn pooled(batches: &[&Batch]) -> (f64, Vec<f64>, Matrix) {
    let logs: Vec<f64> = batches.iter().map(|b| b.log_z).collect();
    let top = batches.iter().map(|b| b.log_weight).fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = batches.iter().map(|b| exp(b.log_weight - top)).collect();
    let sum: f64 = weights.iter().sum();
    let d = batches[0].mean.len();
    let mut mean = vec![0.0; d];
    for (batch, w) in batches.iter().zip(&weights) {
        mean.iter_mut().zip(&batch.mean).for_each(|(m, b)| *m += w / sum * b);
    }
    let mut covariance = Matrix::zeros(d, d);
    for (batch, w) in batches.iter().zip(&weights) {
        covariance.add_scaled(w / sum, &batch.covariance);
        let offset: Vec<f64> = batch.mean.iter().zip(&mean).map(|(b, m)| b - m).collect();
        covariance.add_outer(w / sum, &offset);
    }
    (log_mean_exp(&logs), mean, covariance)
}

/// By how much log I changes when one factor is replaced: one Cholesky, not a sum over all shards.
fn overlap_change(old: &Factor, new: &Factor, all: &Consensus) -> Option<f64> {
    let mut precision = all.precision.clone();
    precision.add_scaled(-1.0, &old.precision);
    precision.add_scaled(1.0, &new.precision);
    let chol = Cholesky::new(&precision)?;
    let (old_pull, old_distance) = old.pull(&all.mean);
    let (new_pull, new_distance) = new.pull(&all.mean);
    // The pulls of all shards balance at μ, so only the replaced one's difference moves it.
    let pull: Vec<f64> = new_pull.iter().zip(&old_pull).map(|(n, o)| n - o).collect();
    let gain = chol.inverse_quadratic(&pull);
    let dets = (new.log_det - old.log_det) - (chol.log_det() - all.factor.log_det());
    Some(0.5 * (dets - (new_distance - old_distance) + gain))
}

/// `unreliable` if the overlap from moments and the one from modes and curvatures are far apart:
/// then the subposteriors are not normal, and neither number is the overlap.
fn shape_warning(summaries: &[Summary], all: &Consensus) -> Option<Warning> {
    if summaries.iter().all(Summary::is_normal) {
        return None;
    }
    let normals: Vec<(&[f64], &Matrix)> =
        summaries.iter().map(|s| (s.mode.as_slice(), &s.precision)).collect();
    let difference =
        consensus(&normals).map_or(f64::INFINITY, |m| (m.log_overlap - all.log_overlap).abs());
    (difference > 1.0).then(|| {
        Warning::new(
            Level::Unreliable,
            "not-normal",
            format!("the subposteriors are not normal: the overlap from their means and covariances and the overlap from their modes and curvatures differ by {difference:.1} nats (at most 1)"),
            "use combine = \"exact\", or fewer shards",
        )
        .value(difference)
    })
}

/// Cautions about shards on which a normal subposterior is not to be expected.
fn thin_shards(setting: &Setting) -> Vec<Warning> {
    let d = setting.model.dim();
    let advice = "use combine = \"exact\", or fewer shards";
    let caution = |code, message: String| Warning::new(Level::Caution, code, message, advice);
    let names: Vec<&str> = setting.model.free().map(|p| p.name.as_str()).collect();
    let mut warnings = Vec::new();
    for (s, survey) in setting.surveys.iter().enumerate() {
        let rows = survey.observations;
        if rows < 2000.0 || rows < 5.0 * d as f64 {
            let message = format!(
                "has {rows} rows for {d} parameters; a normal subposterior wants at least 2,000 and 5 per parameter"
            );
            warnings.push(caution("few-rows", message).shard(s).value(rows));
        }
        let thin: Vec<String> = survey
            .nonzero
            .iter()
            .zip(&names)
            .filter(|(count, _)| **count < 5.0)
            .map(|(count, name)| format!("`{name}` ({count})"))
            .collect();
        if !thin.is_empty() {
            let message =
                format!("columns that are not 0 on fewer than 5 rows: {}", thin.join(", "));
            warnings.push(caution("sparse-column", message).shard(s).value(thin.len() as f64));
        }
    }
    warnings
}
