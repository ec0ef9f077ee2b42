//! Combination by data augmentation: the paper's Algorithm 1, one round.
//!
//! Given its latent variables a shard's subposterior is normal, N(m, V), and
//!
//! ```text
//! I = E[ ∫ Π_s N(θ; m_s, V_s) dθ ]      over independent draws of every shard's latent variables.
//! ```
//!
//! The integral is known; the mean is taken over draws from the shards' Gibbs chains. Which draw of
//! one shard meets which of another is arbitrary, so several random pairings are averaged. The terms'
//! variance grows fast with the number of shards (Proposition 3): the effective number of terms says
//! when the result is not to be trusted.

use super::normal::Normals;
use super::{
    Combination, CombineDiagnostics, Evidence, Next, Setting, homogeneity, sum_of_evidences,
};
use crate::estimate::Estimate;
use crate::estimate::importance::{LEAST_ESS, MOST_K_HAT};
use crate::estimate::pareto::tail_shape;
use crate::fit::{Augmentation, Diagnostics};
use crate::math::{Cholesky, LOG_2PI, Matrix, dot, log_mean_exp, stream};
use crate::question::{Answers, Augment};
use crate::{Error, Level, Result, Warning};
use libm::exp;
use rand::RngExt;
use rayon::prelude::*;

/// Random pairings of the shards' draws.
const PAIRINGS: usize = 20;

/// The combination by data augmentation.
pub(super) struct Augmented {
    setting: Setting,
}

impl Augmented {
    pub(super) fn new(setting: Setting) -> Augmented {
        Augmented { setting }
    }

    fn question(&self) -> Augment {
        let options = &self.setting.options;
        Augment {
            model: self.setting.model.clone(),
            share: self.setting.share,
            order: self.setting.order(),
            conditionals: options.proposals.min(options.draws),
        }
    }

    fn evidence(&self, answers: Vec<Augmentation>) -> Result<Evidence> {
        let summaries: Vec<_> = answers.iter().map(|a| a.summary.clone()).collect();
        let normals = Normals::new(&summaries)?;
        let mut shards = Vec::new();
        for (s, answer) in answers.iter().enumerate() {
            let around = &normals.all.mean;
            shards.push(Conditionals::new(answer, around).map_err(|e| e.for_shard(s))?);
        }
        let runs = summaries[0].batches.len();
        let (seed, model) = (self.setting.options.seed, self.setting.model.stream());
        let terms: Vec<Vec<f64>> = (0..runs)
            .into_par_iter()
            .map(|run| overlaps(&shards, run, runs, seed, model))
            .collect::<Result<_>>()?;

        let all: Vec<f64> = terms.concat();
        let log_overlap = log_mean_exp(&all);
        let ess = effective(&all);
        let k_hat = tail_shape(&all).filter(|k| k.is_finite());
        let batch = |s: usize, run: usize| summaries[s].batches[run].log_z;
        let (overlap_se, total_se) = jackknife(&terms, summaries.len(), &batch);
        let sum = sum_of_evidences(&summaries);
        let overlap = Estimate::new(log_overlap, overlap_se);

        let mut warnings: Vec<Warning> =
            summaries.iter().flat_map(|s| s.warnings.clone()).collect();
        warnings.extend(term_warnings(ess, k_hat));
        let agreement = self.setting.compare_shards(&normals.scores(), &normals.all.factor);
        warnings.extend(homogeneity::warnings(&agreement, &self.setting.names()));
        let log_z = Estimate::new(sum.value + log_overlap, total_se);
        let correction = Some(log_overlap - normals.log_overlap());
        let covariance = normals.all.factor.inverse();
        let evidence = self.setting.evidence(log_z, normals.all.mean, covariance);
        Ok(Evidence {
            shards: Some(sum),
            overlap: Some(overlap),
            correction,
            diagnostics: Some(CombineDiagnostics {
                method: "augmentation",
                newton_rounds: 0,
                peaks: Vec::new(),
                weigh_rounds: 0,
                draws: Diagnostics {
                    draws: Some(all.len()),
                    ess: Some(ess),
                    k_hat,
                    ..Diagnostics::default()
                },
            }),
            summaries: Some(summaries),
            agreement,
            warnings,
            ..evidence
        })
    }
}

impl Combination for Augmented {
    fn next(&mut self, mut answers: Vec<Answers>) -> Result<Next> {
        let Some(answers) = answers.pop() else {
            return Ok(Next::Ask(vec![self.question().into()]));
        };
        Ok(Next::Done(Box::new(self.evidence(answers.each::<Augment>()?)?)))
    }
}

/// One shard's conditionals as factors of a product, all seen from one point θ₀: with offset
/// o = m − θ₀ and precision P, log N(θ₀ + t) = constant + t'Po − ½t'Pt.
struct Conditionals {
    /// P, the lower half row after row; Po; and ½ log|P| − ½ o'Po.
    precisions: Matrix,
    pulls: Matrix,
    constants: Vec<f64>,
}

impl Conditionals {
    fn new(answer: &Augmentation, around: &[f64]) -> Result<Conditionals> {
        let (count, d) = (answer.means.rows(), around.len());
        let half = d * (d + 1) / 2;
        let mut out = Conditionals {
            precisions: Matrix::zeros(count, half),
            pulls: Matrix::zeros(count, d),
            constants: Vec::with_capacity(count),
        };
        for k in 0..count {
            let lower = answer.factors.row(k);
            let row = |i: usize| &lower[i * (i + 1) / 2..=i * (i + 1) / 2 + i];
            if (0..d).any(|i| row(i)[i] <= 0.0) {
                return Err(Error::numeric("a conditional precision is not positive definite"));
            }
            let mut precision = Matrix::zeros(d, d);
            for i in 0..d {
                for j in 0..=i {
                    let entry = dot(&row(i)[..=j], row(j));
                    precision[(i, j)] = entry;
                    precision[(j, i)] = entry;
                    out.precisions[(k, i * (i + 1) / 2 + j)] = entry;
                }
            }
            let offset: Vec<f64> =
                answer.means.row(k).iter().zip(around).map(|(m, c)| m - c).collect();
            let pull = precision.times(&offset);
            let log_det: f64 = (0..d).map(|i| libm::log(row(i)[i])).sum::<f64>();
            out.constants.push(log_det - 0.5 * dot(&offset, &pull));
            out.pulls.row_mut(k).copy_from_slice(&pull);
        }
        Ok(out)
    }
}

/// log ∫ Π_s N(θ; m_s, V_s) dθ for every pairing within one run of consecutive draws. Runs are not
/// mixed, so that they stay as good as independent of each other.
fn overlaps(
    shards: &[Conditionals],
    run: usize,
    runs: usize,
    seed: u64,
    model: u64,
) -> Result<Vec<f64>> {
    let (count, d) = (shards[0].constants.len(), shards[0].pulls.cols());
    let range = run * count / runs..(run + 1) * count / runs;
    // The centre is no shard: it has the number after the last.
    let mut rng = stream(seed, model, u64::MAX, &format!("pairings {run}"));
    let mut terms = Vec::with_capacity(PAIRINGS * range.len());
    for _ in 0..PAIRINGS {
        let orders: Vec<Vec<usize>> = shards
            .iter()
            .map(|_| {
                let mut order: Vec<usize> = range.clone().collect();
                for i in (1..order.len()).rev() {
                    order.swap(i, rng.random_range(0..=i));
                }
                order
            })
            .collect();
        for i in 0..range.len() {
            let mut precision = vec![0.0; d * (d + 1) / 2];
            let (mut pull, mut constant) = (vec![0.0; d], 0.0);
            for (shard, order) in shards.iter().zip(&orders) {
                let k = order[i];
                add(&mut precision, shard.precisions.row(k));
                add(&mut pull, shard.pulls.row(k));
                constant += shard.constants[k] - 0.5 * d as f64 * LOG_2PI;
            }
            let mut full = Matrix::zeros(d, d);
            for i in 0..d {
                for j in 0..=i {
                    full[(i, j)] = precision[i * (i + 1) / 2 + j];
                    full[(j, i)] = full[(i, j)];
                }
            }
            let factor = Cholesky::new(&full).ok_or_else(|| {
                Error::numeric("the product of the shards' conditionals is not positive definite")
            })?;
            let peak = factor.inverse_quadratic(&pull);
            terms.push(constant + 0.5 * (peak + d as f64 * LOG_2PI - factor.log_det()));
        }
    }
    Ok(terms)
}

fn add(to: &mut [f64], what: &[f64]) {
    to.iter_mut().zip(what).for_each(|(a, b)| *a += b);
}

/// (Σt)²/Σt²: the number of terms where all are equal.
fn effective(log_terms: &[f64]) -> f64 {
    let top = log_terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (sum, squares) = log_terms.iter().fold((0.0, 0.0), |(sum, squares), t| {
        let value = exp(t - top);
        (sum + value, squares + value * value)
    });
    sum * sum / squares
}

/// Standard errors of the overlap and of the total, by leaving out one run of every shard's draws at
/// a time: the same runs gave the shards' own evidences, so their correlation is in it.
fn jackknife(terms: &[Vec<f64>], shards: usize, log_z: &dyn Fn(usize, usize) -> f64) -> (f64, f64) {
    let runs = terms.len();
    let (mut overlaps, mut totals) = (Vec::new(), Vec::new());
    for left_out in 0..runs {
        let rest = || (0..runs).filter(move |run| *run != left_out);
        let kept: Vec<f64> = rest().flat_map(|run| terms[run].iter().copied()).collect();
        let overlap = log_mean_exp(&kept);
        let own = |s: usize| log_mean_exp(&rest().map(|run| log_z(s, run)).collect::<Vec<f64>>());
        overlaps.push(overlap);
        totals.push(overlap + (0..shards).map(own).sum::<f64>());
    }
    let se = |values: &[f64]| {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() * (n - 1.0) / n).sqrt()
    };
    (se(&overlaps), se(&totals))
}

/// `unreliable` where a few terms carry the mean. All pairings are of the same conditionals, so that what counts is how
/// many terms of one are effective.
fn term_warnings(ess: f64, k_hat: Option<f64>) -> Vec<Warning> {
    let advice = "use combine = \"exact\", or fewer shards";
    let mut warnings = Vec::new();
    let ess = ess / PAIRINGS as f64;
    if ess < LEAST_ESS {
        let message = format!(
            "only {ess:.0} effective terms per pairing in the overlap's mean (at least {LEAST_ESS}): the shards' latent variables together are far from what all of the data would have"
        );
        warnings.push(Warning::new(Level::Unreliable, "low-ess", message, advice).value(ess));
    }
    if let Some(k) = k_hat.filter(|k| *k > MOST_K_HAT) {
        let message = format!(
            "a few terms dominate the overlap's mean: Pareto k̂ = {k:.2} is over {MOST_K_HAT}"
        );
        warnings.push(Warning::new(Level::Unreliable, "pareto-k", message, advice).value(k));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effective_terms_are_counted() {
        assert!((effective(&[-700.0; 40]) - 40.0).abs() < 1e-9);
        // Terms 1, 1, 2: (1 + 1 + 2)²/(1 + 1 + 4).
        let found = effective(&[5.0, 5.0, 5.0 + libm::log(2.0)]);
        assert!((found - 16.0 / 6.0).abs() < 1e-12, "{found}");
        // Logarithms of variance v leave n·exp(−v) of n terms.
        let mut rng = stream(1, 0, 0, "test");
        let terms: Vec<f64> =
            (0..100_000).map(|_| 0.5 * crate::math::ziggurat::normal(&mut rng)).collect();
        let share = effective(&terms) / 100_000.0;
        assert!((share / exp(-0.25) - 1.0).abs() < 0.02, "{share}");
    }

    #[test]
    fn what_counts_is_one_pairing() {
        let codes = |ess: f64| term_warnings(ess, None).len();
        assert_eq!((codes(20.0 * 99.0), codes(20.0 * 101.0)), (1, 0));
    }
}
