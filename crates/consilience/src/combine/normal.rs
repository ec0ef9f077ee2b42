//! One round: every subposterior is taken as normal (the paper's Algorithm 2).
//!
//! ```text
//! log Z = Σₛ log Zₛ + log ∫ ∏ₛ N(θ; μₛ, Σₛ) dθ
//! ```
//!
//! Exact when every subposterior is normal. Otherwise the error grows with the number of shards
//! (Buchholz, Ahfock & Richardson, Prop. 5): shards tell how far they are from normal (`estimate/shape.rs`), and that
//! is part of the error bar. `exact` removes it at the cost of further rounds.

use super::{Combination, Evidence, Fits, Next, Setting, homogeneity, sum_of_evidences};
use crate::estimate::{Batch, Estimate};
use crate::fit::Summary;
use crate::math::{Cholesky, LOG_2PI, Matrix, dot, log_mean_exp};
use crate::question::Answers;
use crate::study::Combine;
use crate::{Error, Level, Result, Warning};
use libm::exp;
use rayon::prelude::*;

/// The error of the normal shape, in nats, beyond which its estimate is not to be trusted either: it is to first
/// order.
const MOST_SHAPE_ERROR: f64 = 1.0;

/// The combination by normals.
pub(super) struct NormalCombination {
    setting: Setting,
}

/// A normal density as a factor of the product: mean, precision, log|precision|.
#[derive(Debug, Clone)]
pub(super) struct ShardFactor {
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

impl ShardFactor {
    fn from_precision(mean: &[f64], precision: Matrix) -> Option<ShardFactor> {
        let log_det = Cholesky::new(&precision)?.log_det();
        Some(ShardFactor { mean: mean.to_vec(), precision, log_det })
    }

    fn from_covariance(mean: &[f64], covariance: &Matrix) -> Option<ShardFactor> {
        let factor = Cholesky::new(covariance)?;
        let (precision, log_det) = (factor.inverse(), -factor.log_det());
        Some(ShardFactor { mean: mean.to_vec(), precision, log_det })
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
    let of = |(m, p): &(&[f64], &Matrix)| ShardFactor::from_precision(m, (*p).clone());
    let factors: Vec<Option<ShardFactor>> = normals.par_iter().map(of).collect();
    product(&factors.into_iter().collect::<Option<Vec<ShardFactor>>>()?)
}

fn product(factors: &[ShardFactor]) -> Option<Consensus> {
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

impl NormalCombination {
    pub(super) fn new(setting: Setting) -> NormalCombination {
        NormalCombination { setting }
    }
}

impl Combination for NormalCombination {
    fn next(&mut self, mut answers: Vec<Answers>) -> Result<Next> {
        match answers.pop() {
            None => Ok(Next::Ask(vec![self.setting.fit()])),
            Some(answers) => Ok(Next::Done(Box::new(evidence(&self.setting, Fits::of(answers)?)?))),
        }
    }
}

/// The subposteriors as normals, and their product.
pub(super) struct Normals {
    pub(super) factors: Vec<ShardFactor>,
    pub(super) all: Consensus,
    /// How much the finite number of draws behind the moments moves the overlap.
    bias: f64,
}

impl Normals {
    /// The normals with these summaries' moments.
    pub(super) fn new(summaries: &[Summary]) -> Result<Normals> {
        let of = |summary: &Summary| {
            if summary.is_normal() {
                // Its precision is known: no detour over the covariance.
                ShardFactor::from_precision(&summary.mean, summary.precision.clone())
            } else {
                ShardFactor::from_covariance(&summary.mean, &summary.covariance)
            }
        };
        let factors: Vec<Option<ShardFactor>> = summaries.par_iter().map(of).collect();
        let factors: Vec<ShardFactor> = factors
            .into_iter()
            .enumerate()
            .map(|(s, factor)| factor.ok_or_else(|| not_definite().for_shard(s)))
            .collect::<Result<_>>()?;
        let all = product(&factors).ok_or_else(not_definite)?;
        let root = all.factor.inverse_lower();
        let biases: Vec<f64> = summaries
            .par_iter()
            .zip(&factors)
            .filter_map(|(summary, f)| Some(finite_draw_bias(f, &all, &root, summary.effective?)))
            .collect();
        let bias = biases.iter().sum();
        Ok(Normals { factors, all, bias })
    }

    /// log I as the moments have it. That they come from draws moves it: for the paper's Algorithm 2 as it is written.
    fn log_overlap_uncorrected(&self) -> f64 {
        self.all.log_overlap
    }

    /// log I.
    pub(super) fn log_overlap(&self) -> f64 {
        self.all.log_overlap - self.bias
    }

    /// The shards' pulls at the consensus, with their precisions.
    pub(super) fn scores(&self) -> Vec<homogeneity::Score<'_>> {
        self.factors.iter().map(|f| (f.pull(&self.all.mean).0, &f.precision)).collect()
    }
}

fn evidence(setting: &Setting, fits: Fits) -> Result<Evidence> {
    let Fits { summaries, draws } = fits;
    let normals = Normals::new(&summaries)?;
    let shards = sum_of_evidences(&summaries);
    let value = match setting.options.combine {
        Combine::NormalUncorrected => normals.log_overlap_uncorrected(),
        _ => normals.log_overlap(),
    };
    let errors = jackknife(&summaries, &normals.factors, &normals.all);
    let overlap = Estimate { value, se: errors.map(|e| e.overlap) };
    let is_split = setting.shards > 1;
    let known = errors.map_or(0.0, |e| e.total);
    // With one shard nothing rests on the shape.
    let shape_error = if is_split { shape_error(&summaries, &normals, known) } else { None };
    let se = errors.map(|e| libm::hypot(e.total, shape_error.unwrap_or(0.0)));
    let log_z = Estimate { value: shards.value + value, se };

    let mut warnings: Vec<Warning> = summaries.iter().flat_map(|s| s.warnings.clone()).collect();
    let all = &normals.all;
    let agreement = setting.compare_shards(&normals.scores(), &all.factor);
    if is_split {
        warnings.extend(shape_warning(shape_error));
        warnings.extend(thin_shards(setting));
        warnings.extend(homogeneity::warnings(&agreement, &setting.names()));
    }
    let evidence = setting.evidence(log_z, all.mean.clone(), all.factor.inverse());
    Ok(Evidence {
        shards: Some(shards),
        overlap: Some(overlap),
        shape_error,
        summaries: Some(summaries),
        shard_draws: draws,
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
fn finite_draw_bias(factor: &ShardFactor, all: &Consensus, root: &Matrix, effective: f64) -> f64 {
    let size = factor.mean.len();
    let d = size as f64;
    // With Λ = LL' the traces of P and P² are those of M = L⁻¹Λ_sL⁻ᵀ, of which half is enough.
    let (mut t, mut t2) = (0.0, 0.0);
    let mut row = vec![0.0; size];
    for i in 0..size {
        row.fill(0.0);
        for (k, l) in root.row(i)[..=i].iter().enumerate() {
            row.iter_mut().zip(factor.precision.row(k)).for_each(|(r, p)| *r += l * p);
        }
        for j in 0..i {
            t2 += 2.0 * dot(&row[..=j], &root.row(j)[..=j]).powi(2);
        }
        let own = dot(&row[..=i], &root.row(i)[..=i]);
        t += own;
        t2 += own * own;
    }
    let (pull, q) = factor.pull(&all.mean);
    let spread = all.factor.inverse_quadratic(&pull);
    (d * (d + 1.0) - 2.0 * (d + 1.0) * t + t * t + t2 - 2.0 * (d + 1.0 - t) * q + 2.0 * spread
        - 2.0 * (d - t))
        / (4.0 * effective)
}

#[derive(Debug, Clone, Copy)]
struct NormalErrors {
    overlap: f64,
    total: f64,
}

/// Monte Carlo errors of the overlap and of the total (with the overlap's correlation to log Z_s),
/// by leaving out one batch of one shard's draws at a time. `None` where a shard has no error bar.
fn jackknife(
    summaries: &[Summary],
    factors: &[ShardFactor],
    all: &Consensus,
) -> Option<NormalErrors> {
    let per_shard: Vec<Option<(f64, f64)>> = (0..summaries.len())
        .into_par_iter()
        .map(|s| match summaries[s].effective {
            // Moments without Monte Carlo error leave that of log Z_s alone.
            None => summaries[s].log_z.se.map(|se| (0.0, se * se)),
            Some(_) if factors.len() == 1 => shard_variance(&summaries[s].batches, None),
            Some(_) => shard_variance(&summaries[s].batches, Some(others(s, factors, all)?)),
        })
        .collect();
    let per_shard: Option<Vec<(f64, f64)>> = per_shard.into_iter().collect();
    let (overlap, total) =
        per_shard?.into_iter().fold((0.0, 0.0), |sum, v| (sum.0 + v.0, sum.1 + v.1));
    let total = total + summaries.iter().map(Summary::variance_beyond_batches).sum::<f64>();
    Some(NormalErrors { overlap: overlap.sqrt(), total: total.sqrt() })
}

/// The mean and the covariance of the product of all normals but one.
pub(super) fn others(
    s: usize,
    factors: &[ShardFactor],
    all: &Consensus,
) -> Option<(Vec<f64>, Matrix)> {
    let mut precision = all.precision.clone();
    precision.add_scaled(-1.0, &factors[s].precision);
    let factor = Cholesky::new(&precision).or_else(|| {
        // Next to nothing is left of the whole; its digits are in the sum of the others.
        let mut sum = Matrix::zeros(precision.rows(), precision.cols());
        let rest = factors.iter().enumerate().filter(|(other, _)| *other != s);
        rest.for_each(|(_, other)| sum.add_scaled(1.0, &other.precision));
        Cholesky::new(&sum)
    })?;
    // The pulls of all shards balance at μ, so without this one they move it the other way.
    let mut mean = all.mean.clone();
    let step = factor.solve(&factors[s].pull(&all.mean).0);
    mean.iter_mut().zip(&step).for_each(|(m, d)| *m -= d);
    Some((mean, factor.inverse()))
}

/// One shard's part of the variances of overlap and total. As a function of one shard's moments (m, V) the
/// overlap is a multiple of N(m; a, V + C), with a and C those of the product of the others.
fn shard_variance(batches: &[Batch], others: Option<(Vec<f64>, Matrix)>) -> Option<(f64, f64)> {
    let count = batches.len();
    if count < 2 {
        return None;
    }
    let (mut overlaps, mut totals) = (Vec::new(), Vec::new());
    for (log_z, mean, mut covariance) in PoolOfOthers::new(batches).each_left_out() {
        let overlap = match &others {
            None => 0.0,
            Some((centre, spread)) => {
                covariance.add_scaled(1.0, spread);
                let factor = Cholesky::new(&covariance)?;
                let offset: Vec<f64> = mean.iter().zip(centre).map(|(m, c)| m - c).collect();
                -0.5 * (factor.log_det() + factor.inverse_quadratic(&offset))
            }
        };
        overlaps.push(overlap);
        totals.push(overlap + log_z);
    }
    let variance = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        squares * (count - 1) as f64 / count as f64
    };
    Some((variance(&overlaps), variance(&totals)))
}

/// Batches together: weights, and weighted sums of moments around a common point.
struct PoolOfOthers<'a> {
    batches: &'a [Batch],
    weights: Vec<f64>,
    centre: Vec<f64>,
    /// Σ w·(C + (m − centre)(m − centre)').
    squares: Matrix,
}

impl<'a> PoolOfOthers<'a> {
    fn new(batches: &'a [Batch]) -> PoolOfOthers<'a> {
        let top = batches.iter().map(|b| b.log_weight).fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = batches.iter().map(|b| exp(b.log_weight - top)).collect();
        let sum: f64 = weights.iter().sum();
        let d = batches[0].mean.len();
        let mut centre = vec![0.0; d];
        for (batch, w) in batches.iter().zip(&weights) {
            centre.iter_mut().zip(&batch.mean).for_each(|(c, b)| *c += w / sum * b);
        }
        let mut pool = PoolOfOthers { batches, weights, centre, squares: Matrix::zeros(d, d) };
        let mut squares = Matrix::zeros(d, d);
        (0..batches.len()).for_each(|b| pool.add(&mut squares, b, 1.0));
        pool.squares = squares;
        pool
    }

    /// Adds a batch's part to the squares, or takes it away.
    fn add(&self, squares: &mut Matrix, batch: usize, sign: f64) {
        let (w, batch) = (sign * self.weights[batch], &self.batches[batch]);
        let offset: Vec<f64> = batch.mean.iter().zip(&self.centre).map(|(m, c)| m - c).collect();
        squares.add_scaled(w, &batch.covariance);
        squares.add_outer(w, &offset);
    }

    /// log Z and moments of all batches but one, for each of them.
    fn each_left_out(&self) -> impl Iterator<Item = (f64, Vec<f64>, Matrix)> {
        let total: f64 = self.weights.iter().sum();
        (0..self.batches.len()).map(move |left_out| {
            let rest = || (0..self.batches.len()).filter(|b| *b != left_out);
            let logs: Vec<f64> = rest().map(|b| self.batches[b].log_z).collect();
            let sum: f64 = rest().map(|b| self.weights[b]).sum();
            // Where one batch outweighs all the others, nothing would be left of their digits.
            let mut squares = if self.weights[left_out] > 0.5 * total {
                let mut squares = Matrix::zeros(self.centre.len(), self.centre.len());
                rest().for_each(|b| self.add(&mut squares, b, 1.0));
                squares
            } else {
                let mut squares = self.squares.clone();
                self.add(&mut squares, left_out, -1.0);
                squares
            };
            let mut step = vec![0.0; self.centre.len()];
            for b in rest() {
                let offset = self.batches[b].mean.iter().zip(&self.centre).map(|(m, c)| m - c);
                step.iter_mut().zip(offset).for_each(|(s, o)| *s += self.weights[b] / sum * o);
            }
            squares.scale(1.0 / sum);
            squares.add_outer(-1.0, &step);
            let mean = self.centre.iter().zip(&step).map(|(c, s)| c + s).collect();
            (log_mean_exp(&logs), mean, squares)
        })
    }
}

/// What the shards' normals are off by together, beyond the Monte Carlo error `known`; `None` if a shard does
/// not say.
///
/// To first order log ∫ ∏ f_s is off by Σ e_s(μ), e_s = log f_s − log Z_s − log N_s. The consensus μ is as far
/// from a shard as one draw of its normal, so that the shard's own draws tell e_s(μ)'s mean and variance. Where
/// it is further off, as between shards that disagree, the leading term of e_s grows with its cube.
fn shape_error(summaries: &[Summary], normals: &Normals, known: f64) -> Option<f64> {
    let shards = summaries.len() as f64;
    let d = normals.all.mean.len() as f64;
    if d == 0.0 {
        return Some(0.0);
    }
    let (mut bias, mut variance) = (0.0, 0.0);
    for (summary, factor) in summaries.iter().zip(&normals.factors) {
        let shape = summary.shape?;
        let distance = factor.pull(&normals.all.mean).1;
        bias += shape.mean;
        variance += shape.variance * (distance / d).max(1.0).powi(3);
    }
    // A part of each draw's distance from the mean is the consensus's own width.
    let share = 1.0 - 1.0 / shards;
    let square = share * share * (bias * bias + variance);
    Some((square - known * known).max(0.0).sqrt())
}

/// `unreliable` if the shards' normals may be off by so much that its estimate means little.
fn shape_warning(shape_error: Option<f64>) -> Option<Warning> {
    let advice = "use combine = \"exact\", or fewer shards";
    match shape_error {
        None => {
            let message = "how normal the subposteriors are is not known";
            Some(Warning::new(Level::Unreliable, "not-normal", message, advice))
        }
        Some(error) => (error > MOST_SHAPE_ERROR).then(|| {
            let message = format!("the subposteriors are not normal: that may move the log evidence by {error:.1} nats (at most {MOST_SHAPE_ERROR})");
            Warning::new(Level::Unreliable, "not-normal", message, advice).value(error)
        }),
    }
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
