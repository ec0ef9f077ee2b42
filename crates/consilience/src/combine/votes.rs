//! Choosing from shards' evidences that are already there: votes, products, and upsampled evidences.
//!
//! On every shard the models are ranked by p̃(y_s) = Z_s/α_s. *Majority vote* gives a model the share
//! of shards that it wins; *Borda count* gives K points to the best of K models on a shard and 1 to the
//! worst, and takes the mean. The *product of local probabilities* multiplies p̃(y_s) over the shards, as if these
//! had nothing to agree on: the overlap is left out. *Upsampling* has every shard stand for all: its likelihood is
//! raised to the power S, ṕ(y_s) = ∫ p(y_s|θ)^S p(θ) dθ, and over the shards the mean, the median or the mean of the
//! logarithms is taken.

use super::{Evidence, Setting};
use crate::estimate::Estimate;
use crate::fit::{FitOrder, Summary};
use crate::math::ziggurat::normal;
use crate::math::{log_sum_exp, stream};
use crate::model::Share;
use crate::question::{Fit, Question};
use crate::study::{Combine, Local};
use crate::{Error, Level, Result, Warning};
use libm::{exp, log};
use serde::Serialize;

/// One way to choose, and what it says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Baseline {
    /// Its name.
    pub method: String,
    /// What the scores are: `share of shards`, `mean points` or `log evidence`.
    pub score: &'static str,
    /// Per model, in the study's order; the greatest is chosen.
    pub models: Vec<Estimate>,
    /// The number of the model it chooses, from 0; the first of equals.
    pub chooses: usize,
    /// What makes it doubtful.
    pub warnings: Vec<ModelWarning>,
}

/// A warning of level `unreliable` or `caution` about one model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelWarning {
    /// The model's number, from 0.
    pub model: usize,
    /// What is to be said about it.
    pub warning: Warning,
}

impl Baseline {
    fn new(method: &str, score: &'static str, models: Vec<Estimate>) -> Baseline {
        let chooses = (0..models.len())
            .rev()
            .max_by(|&a, &b| models[a].value.total_cmp(&models[b].value))
            .expect("a study has at least one model");
        Baseline { method: method.into(), score, models, chooses, warnings: Vec::new() }
    }

    /// With what is to be said about each model, as far as it is serious.
    fn warned<'a>(mut self, warnings: impl Iterator<Item = (usize, &'a Warning)>) -> Baseline {
        let serious = warnings.filter(|(_, w)| w.level > Level::Note);
        self.warnings = serious
            .map(|(model, warning)| ModelWarning { model, warning: warning.clone() })
            .collect();
        self
    }

    /// What a combination says.
    pub(super) fn of_evidences(kind: Combine, evidences: &[Evidence]) -> Baseline {
        let models = evidences.iter().map(|e| e.log_z).collect();
        let warnings =
            (0..).zip(evidences).flat_map(|(i, e)| e.warnings.iter().map(move |w| (i, w)));
        Baseline::new(kind.name(), "log evidence", models).warned(warnings)
    }

    /// Whether it says of itself that it is not to be trusted.
    pub fn is_reliable(&self) -> bool {
        self.warnings.iter().all(|w| w.warning.level < Level::Unreliable)
    }
}

/// A shard's evidence as if all shards were like it.
pub(crate) fn upsampled(setting: &Setting) -> Question {
    let method = match setting.options.local {
        // Data augmentation has no likelihood to a power.
        Local::GibbsChib | Local::GibbsBridge | Local::None => Local::Auto,
        other => other,
    };
    let fit = Fit {
        model: setting.model.clone(),
        share: Share::Equal { shards: 1 },
        order: FitOrder { method, power: setting.shards as f64, ..setting.order() },
        draws: false,
    };
    fit.into()
}

/// What votes and products make of every model's fits, one per shard, and of its upsampled ones if there are any.
pub(crate) fn votes(
    settings: &[Setting],
    fits: &[Vec<Summary>],
    upsampled: Option<&[Vec<Summary>]>,
) -> Result<Vec<Baseline>> {
    let mut local = Vec::new();
    for (setting, fits) in settings.iter().zip(fits) {
        local.push(subevidences(setting, fits)?);
    }
    let (majority, borda) = count(&local, settings[0].options.seed);
    let sum = |shards: &Vec<Estimate>| shards.iter().fold(Estimate::ZERO, |sum, z| sum + *z);
    let product = local.iter().map(sum).collect();
    let mut all: Vec<Baseline> = [
        Baseline::new("majority vote", "share of shards", majority),
        Baseline::new("Borda count", "mean points", borda),
        Baseline::new("product of local probabilities", "log evidence", product),
    ]
    .into_iter()
    .map(|baseline| baseline.warned(warnings(fits)))
    .collect();
    if let Some(fits) = upsampled {
        let with = |name: &str, of: fn(&[Estimate]) -> Estimate| {
            let of = |summaries: &Vec<Summary>| {
                of(&summaries.iter().map(|s| s.log_z).collect::<Vec<_>>())
            };
            let models = fits.iter().map(of).collect();
            Baseline::new(name, "log evidence", models).warned(warnings(fits))
        };
        all.push(with("upsampled mean", mean));
        all.push(with("upsampled median", median));
        all.push(with("upsampled mean of logs", mean_of_logs));
    }
    Ok(all)
}

/// log p̃(y_s) of one model on every shard.
fn subevidences(setting: &Setting, fits: &[Summary]) -> Result<Vec<Estimate>> {
    let shares = setting.shares();
    let of = |(s, fit): (usize, &Summary)| {
        let share = shares.as_ref().map(|shares| shares[s]);
        let log_alpha = share.and_then(|w| setting.model.log_alpha(w)).ok_or_else(|| {
            let message = "the prior's share has no finite integral, so that the shards' evidences cannot be ranked; use priors with lighter tails, or fewer shards";
            Error::input(message).for_model(&setting.model.name)
        })?;
        Ok(Estimate { value: fit.log_z.value - log_alpha, se: fit.log_z.se })
    };
    fits.iter().enumerate().map(of).collect()
}

/// Every fit's warnings, with the model's number.
fn warnings(fits: &[Vec<Summary>]) -> impl Iterator<Item = (usize, &Warning)> {
    let all = fits.iter().enumerate();
    all.flat_map(|(i, shards)| {
        shards.iter().flat_map(move |s| s.warnings.iter().map(move |w| (i, w)))
    })
}

/// How often scores are drawn anew to see how far their errors move a shard's ranks.
const REPLICATES: usize = 1000;

/// Majority vote and Borda count of every model's scores on every shard. The errors are those of the shards'
/// evidences, which are taken as independent and normal.
fn count(local: &[Vec<Estimate>], seed: u64) -> (Vec<Estimate>, Vec<Estimate>) {
    let (models, shards) = (local.len(), local[0].len());
    let mut counts = vec![[0.0; 2]; models];
    let mut variances = Some(vec![[0.0; 2]; models]);
    for s in 0..shards {
        let scores: Vec<Estimate> = local.iter().map(|shards| shards[s]).collect();
        let values: Vec<f64> = scores.iter().map(|score| score.value).collect();
        for (sum, own) in counts.iter_mut().zip(ranked(&values)) {
            (0..2).for_each(|c| sum[c] += own[c]);
        }
        let errors: Option<Vec<f64>> = scores.iter().map(|score| score.se).collect();
        variances = variances.zip(errors).map(|(mut sums, errors)| {
            let own = rank_variances(&values, &errors, seed, s);
            sums.iter_mut().zip(own).for_each(|(sum, own)| (0..2).for_each(|c| sum[c] += own[c]));
            sums
        });
    }
    let n = shards as f64;
    let column = |c: usize| -> Vec<Estimate> {
        let se = |k: usize| variances.as_ref().map(|sums| sums[k][c].sqrt() / n);
        (0..models).map(|k| Estimate { value: counts[k][c] / n, se: se(k) }).collect()
    };
    (column(0), column(1))
}

/// Each model's vote and points on a shard. Equals share those of the places that they take together.
fn ranked(scores: &[f64]) -> Vec<[f64; 2]> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    let mut out = vec![[0.0; 2]; scores.len()];
    let mut below = 0;
    for equals in order.chunk_by(|&a, &b| scores[a] == scores[b]) {
        let count = equals.len();
        let last = below + count == scores.len();
        let vote = if last { 1.0 / count as f64 } else { 0.0 };
        let points = below as f64 + 0.5 * (count + 1) as f64;
        equals.iter().for_each(|&k| out[k] = [vote, points]);
        below += count;
    }
    out
}

/// How the errors of a shard's scores make votes and points vary.
fn rank_variances(values: &[f64], errors: &[f64], seed: u64, shard: usize) -> Vec<[f64; 2]> {
    let mut variances = vec![[0.0; 2]; values.len()];
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let gap = sorted.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    let error = errors.iter().copied().fold(0.0, f64::max);
    // Scores further apart than that never change places.
    if gap > 12.0 * error || error == 0.0 {
        return variances;
    }
    // Estimates that agree to the last bit, errors too, are one estimate under two names: they stay tied.
    let twin = |k: usize| {
        (0..k).find(|&other| values[other] == values[k] && errors[other] == errors[k]).unwrap_or(k)
    };
    let twins: Vec<usize> = (0..values.len()).map(twin).collect();
    let mut rng = stream(seed, 0, shard as u64, "votes");
    let mut sums = vec![[[0.0; 2]; 2]; values.len()];
    for _ in 0..REPLICATES {
        let noisy: Vec<f64> =
            values.iter().zip(errors).map(|(v, e)| v + e * normal(&mut rng)).collect();
        let noisy: Vec<f64> = twins.iter().map(|&k| noisy[k]).collect();
        for (sum, own) in sums.iter_mut().zip(ranked(&noisy)) {
            for c in 0..2 {
                sum[c][0] += own[c];
                sum[c][1] += own[c] * own[c];
            }
        }
    }
    let n = REPLICATES as f64;
    for (variance, sum) in variances.iter_mut().zip(&sums) {
        for c in 0..2 {
            variance[c] = ((sum[c][1] - sum[c][0] * sum[c][0] / n) / (n - 1.0)).max(0.0);
        }
    }
    variances
}

/// log of the mean of exp; the error by the delta method.
fn mean(shards: &[Estimate]) -> Estimate {
    let total = log_sum_exp(&shards.iter().map(|z| z.value).collect::<Vec<_>>());
    let part = |z: &Estimate| Some((exp(z.value - total) * z.se?).powi(2));
    let variance: Option<f64> = shards.iter().map(part).sum();
    Estimate { value: total - log(shards.len() as f64), se: variance.map(f64::sqrt) }
}

/// The middle one, or the mean of the two in the middle.
fn median(shards: &[Estimate]) -> Estimate {
    let mut sorted = shards.to_vec();
    sorted.sort_by(|a, b| a.value.total_cmp(&b.value));
    let n = sorted.len();
    match n % 2 {
        1 => sorted[n / 2],
        _ => mean_of_logs(&sorted[n / 2 - 1..=n / 2]),
    }
}

fn mean_of_logs(shards: &[Estimate]) -> Estimate {
    let n = shards.len() as f64;
    let sum = shards.iter().fold(Estimate::ZERO, |sum, z| sum + *z);
    Estimate { value: sum.value / n, se: sum.se.map(|se| se / n) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::special::log_normal_cdf;

    fn estimates(pairs: &[(f64, f64)]) -> Vec<Estimate> {
        pairs.iter().map(|&(value, se)| Estimate::new(value, se)).collect()
    }

    #[test]
    fn equals_share_places() {
        assert_eq!(ranked(&[2.0, 1.0, 3.0]), [[0.0, 2.0], [0.0, 1.0], [1.0, 3.0]]);
        assert_eq!(ranked(&[1.0, 1.0, 0.0]), [[0.5, 2.5], [0.5, 2.5], [0.0, 1.0]]);
        assert_eq!(ranked(&[1.0; 4]), [[0.25, 2.5]; 4]);
    }

    /// Two models: a vote is a coin with the chance Φ(gap/√(se₁² + se₂²)).
    #[test]
    fn errors_of_votes_are_those_of_coins() {
        let gaps = [0.0, 0.3, -0.8, 2.0, 5.0];
        let first: Vec<Estimate> = gaps.iter().map(|&g| Estimate::new(g, 0.6)).collect();
        let local = [first, estimates(&[(0.0, 0.8); 5])];
        let chances = gaps.map(|gap| exp(log_normal_cdf(gap).0));
        let variance: f64 = chances.iter().map(|p| p * (1.0 - p)).sum();
        let expected = variance.sqrt() / 5.0;
        for seed in 1..=10 {
            let (majority, borda) = count(&local, seed);
            for k in 0..2 {
                // Points are 1 or 2, so they vary as votes do. An sd of 1,000 draws is known to 2%.
                for found in [majority[k], borda[k]] {
                    let ratio = found.se.unwrap() / expected;
                    assert!((ratio - 1.0).abs() < 0.1, "seed {seed}: {ratio}");
                }
            }
        }
        // The same model twice: the tie is no matter of chance.
        let twice = [estimates(&[(0.3, 0.1)]), estimates(&[(0.3, 0.1)]), estimates(&[(-9.0, 0.1)])];
        assert_eq!(count(&twice, 1).0, estimates(&[(0.5, 0.0), (0.5, 0.0), (0.0, 0.0)]));
        let sure = [estimates(&[(9.0, 0.1)]), estimates(&[(0.0, 0.1)])];
        assert_eq!(count(&sure, 1).0, estimates(&[(1.0, 0.0), (0.0, 0.0)]));
        let unknown = [vec![Estimate { value: 1.0, se: None }], estimates(&[(0.0, 0.1)])];
        assert_eq!(count(&unknown, 1).0[0].se, None);
    }

    /// Means and medians of noisy values vary as their errors say: seeds 1…2,000.
    #[test]
    fn errors_of_upsampled_evidences_hold() {
        let truth = [(-3.0, 0.02), (-2.5, 0.05), (-1.0, 0.01), (-4.0, 0.03)];
        for ways in [&truth[..], &truth[..3]] {
            for of in [mean, median, mean_of_logs] {
                let expected = of(&estimates(ways));
                let mut squares = 0.0;
                for seed in 1..=2000 {
                    let mut rng = stream(seed, 0, 0, "test");
                    let noisy: Vec<(f64, f64)> =
                        ways.iter().map(|&(v, e)| (v + e * normal(&mut rng), e)).collect();
                    squares += (of(&estimates(&noisy)).value - expected.value).powi(2);
                }
                let ratio = (squares / 2000.0).sqrt() / expected.se.unwrap();
                // An sd of 2,000 draws is known to 1.6%.
                assert!((ratio - 1.0).abs() < 0.07, "{ratio}");
            }
        }
    }
}
