//! What many partitions say together: errors against the reference, and how they grow with the number of shards.

use super::Sweep;
use super::cell::Cell;
use super::reference::Reference;
use crate::estimate::Estimate;
use crate::study::Combine;
use libm::{expm1, log};
use serde::Serialize;

/// The score of what estimates evidences.
const EVIDENCE: &str = "log evidence";

/// What estimates are held against: a log evidence per model, and the number of the best.
struct Truth {
    values: Vec<f64>,
    best: usize,
}

/// All partitions of one way to split and number of shards, under one combination or vote.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellGroup {
    /// The way to split.
    pub by: String,
    /// The number of shards.
    pub shards: usize,
    /// The combination or vote.
    pub method: String,
    /// What it gives to every model: `log evidence`, `share of shards` or `mean points`.
    pub score: String,
    /// On how many partitions it got through.
    pub counted: usize,
    /// On how many it did not.
    pub failed: usize,
    /// On how many it says of itself that it is not to be trusted, for one model at least.
    pub unreliable: usize,
    /// How often each model is chosen.
    pub chosen: Vec<usize>,
    /// Per model; empty where it never got through.
    pub models: Vec<GroupModel>,
}

/// One model in a group. Means are over the partitions that are counted; what does not apply is `null`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupModel {
    /// Against the reference.
    #[serde(flatten)]
    pub errors: Errors,
    /// ε₁: the mean of |log I − log Î|.
    pub epsilon1: Option<f64>,
    /// ε₂: the mean of log |I − Î|.
    pub epsilon2: Option<f64>,
    /// The mean of log Î.
    pub overlap: Option<f64>,
    /// The mean share of log Î in log p̂(y).
    pub overlap_share: Option<f64>,
    /// The mean logarithm of the correction factor.
    pub correction: Option<f64>,
    /// The greatest log A that a draw showed.
    pub log_a: Option<f64>,
    /// The greatest log B.
    pub log_b: Option<f64>,
    /// The log Bayes factor of the reference's best model against this one; `null` for the best itself.
    pub log_bayes_factor: Option<Errors>,
}

/// Estimates of a number that is known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Errors {
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation around it (divided by their number, so that RMSE² = bias² + sd²).
    pub sd: f64,
    /// Mean minus reference; `null` where scores are no evidences.
    pub bias: Option<f64>,
    /// The root of the mean squared error.
    pub rmse: Option<f64>,
    /// The same in percent of the reference.
    pub rmse_percent: Option<f64>,
    /// Bias²/Var; `null` where there is no variance.
    pub bias2_over_variance: Option<f64>,
}

/// A line fitted to how an error grows with the number of shards, from two shards on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FittedLine {
    /// The way to split.
    pub by: String,
    /// The combination.
    pub method: String,
    /// The model's number, from 0.
    pub model: usize,
    /// `epsilon1` or `epsilon2`.
    pub what: &'static str,
    /// Its value at 0 shards.
    pub intercept: f64,
    /// How much it grows with every shard.
    pub slope: f64,
}

impl CellGroup {
    /// Whether its scores are log evidences.
    pub fn has_evidences(&self) -> bool {
        self.score == EVIDENCE
    }
}

impl Errors {
    /// Of these estimates, against a reference if there is one.
    pub fn of(values: &[f64], reference: Option<f64>) -> Errors {
        let mean = mean(values.iter().copied()).unwrap_or(0.0);
        let square = |around: f64| {
            values.iter().map(|v| (v - around) * (v - around)).sum::<f64>() / values.len() as f64
        };
        let variance = square(mean);
        let bias = reference.map(|truth| mean - truth);
        let rmse = reference.map(|truth| square(truth).sqrt());
        let percent =
            |(rmse, truth): (f64, f64)| (truth != 0.0).then(|| 100.0 * rmse / truth.abs());
        Errors {
            mean,
            sd: variance.sqrt(),
            bias,
            rmse,
            rmse_percent: rmse.zip(reference).and_then(percent),
            bias2_over_variance: bias.filter(|_| variance > 0.0).map(|b| b * b / variance),
        }
    }
}

/// The mean; `None` of nothing.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value;
        count += 1.0;
    }
    (count > 0.0).then(|| sum / count)
}

/// The mean over all models' values, if all of them are there.
fn mean_of_all(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let all: Option<Vec<f64>> = values.collect();
    mean(all?.into_iter())
}

/// log |I − Î| from log I and log Î; `None` where they are the same.
fn log_difference(log_i: f64, log_hat: f64) -> Option<f64> {
    let found = log_i.max(log_hat) + log(-expm1(-(log_i - log_hat).abs()));
    found.is_finite().then_some(found)
}

/// All groups of a sweep, in its order: combinations first, then votes.
pub(super) fn groups(sweep: &Sweep, cells: &[Cell], reference: &Reference) -> Vec<CellGroup> {
    let truth = &Truth {
        values: reference.log_evidence.iter().map(|r| r.value).collect(),
        best: reference.best,
    };
    // Votes that could not be counted on some partitions have a group there all the same.
    let mut votes: Vec<(&str, &str)> = Vec::new();
    for vote in cells.iter().flat_map(|c| &c.votes) {
        if !votes.iter().any(|(method, _)| *method == vote.method) {
            votes.push((&vote.method, &vote.score));
        }
    }
    let mut all = Vec::new();
    for by in &sweep.by {
        let by = by.to_string();
        for &shards in &sweep.shards {
            let own: Vec<&Cell> =
                cells.iter().filter(|c| c.by == by && c.shards == shards).collect();
            for method in &sweep.combine {
                all.push(combination(&by, shards, *method, &own, truth));
            }
            for vote in &votes {
                all.push(votes_of(&by, shards, *vote, &own, truth));
            }
        }
    }
    all
}

fn combination(
    by: &str,
    shards: usize,
    method: Combine,
    cells: &[&Cell],
    truth: &Truth,
) -> CellGroup {
    let asked = || cells.iter().filter_map(|c| c.combination(method.name()));
    let found: Vec<_> = asked().filter(|c| c.error.is_none()).collect();
    let failed = asked().count() - found.len();
    let values: Vec<Vec<f64>> =
        found.iter().map(|c| c.models.iter().map(|m| m.log_evidence.value).collect()).collect();
    let mut group = CellGroup {
        by: by.to_string(),
        shards,
        method: method.name().to_string(),
        score: EVIDENCE.into(),
        counted: found.len(),
        failed,
        unreliable: found.iter().filter(|c| c.models.iter().any(|m| m.unreliable)).count(),
        chosen: counts(truth.values.len(), found.iter().filter_map(|c| c.chooses)),
        models: scores(&values, truth, true),
    };
    for (k, model) in group.models.iter_mut().enumerate() {
        let own = || found.iter().map(|c| &c.models[k]);
        // The shards' own evidences are those of the partition: what is left is the overlap's error.
        let overlaps: Option<Vec<(f64, f64)>> =
            own().map(|m| Some((truth.values[k] - m.shards?.value, m.overlap?.value))).collect();
        if let Some(overlaps) = overlaps {
            model.epsilon1 = mean(overlaps.iter().map(|(i, hat)| (i - hat).abs()));
            model.epsilon2 = mean_of_all(overlaps.iter().map(|(i, hat)| log_difference(*i, *hat)));
            model.overlap = mean(overlaps.iter().map(|(_, hat)| *hat));
        }
        model.overlap_share = mean_of_all(own().map(|m| m.overlap_share));
        model.correction = mean_of_all(own().map(|m| m.correction));
        let most = |values: Option<Vec<f64>>| values?.into_iter().reduce(f64::max);
        model.log_a = most(own().map(|m| m.log_a).collect());
        model.log_b = most(own().map(|m| m.log_b).collect());
    }
    group
}

fn votes_of(
    by: &str,
    shards: usize,
    (method, score): (&str, &str),
    cells: &[&Cell],
    truth: &Truth,
) -> CellGroup {
    let found: Vec<_> =
        cells.iter().filter_map(|c| c.votes.iter().find(|v| v.method == method)).collect();
    let values: Vec<Vec<f64>> =
        found.iter().map(|v| v.models.iter().map(|m| m.value).collect()).collect();
    let models = scores(&values, truth, score == EVIDENCE);
    CellGroup {
        by: by.to_string(),
        shards,
        method: method.to_string(),
        score: score.to_string(),
        counted: found.len(),
        failed: cells.len() - found.len(),
        unreliable: 0,
        chosen: counts(truth.values.len(), found.iter().map(|v| v.chooses)),
        models,
    }
}

fn counts(models: usize, chosen: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut counts = vec![0; models];
    chosen.for_each(|k| counts[k] += 1);
    counts
}

/// The number of the model with the greatest evidence; the first of equals.
pub(super) fn best(values: &[f64]) -> usize {
    (0..values.len()).rev().max_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap_or(0)
}

/// The model with the greatest evidence beside [`best`].
pub(super) fn second(values: &[f64]) -> Option<usize> {
    let first = best(values);
    let others = (0..values.len()).rev().filter(|k| *k != first);
    others.max_by(|&a, &b| values[a].total_cmp(&values[b]))
}

/// Every model's errors; `values` has the models of every partition.
fn scores(values: &[Vec<f64>], truth: &Truth, are_evidences: bool) -> Vec<GroupModel> {
    if values.is_empty() {
        return Vec::new();
    }
    let Truth { values: truth, best } = truth;
    let best = *best;
    let of = |k: usize| {
        let own: Vec<f64> = values.iter().map(|v| v[k]).collect();
        let factors: Vec<f64> = values.iter().map(|v| v[best] - v[k]).collect();
        GroupModel {
            errors: Errors::of(&own, are_evidences.then(|| truth[k])),
            epsilon1: None,
            epsilon2: None,
            overlap: None,
            overlap_share: None,
            correction: None,
            log_a: None,
            log_b: None,
            log_bayes_factor: (are_evidences && k != best)
                .then(|| Errors::of(&factors, Some(truth[best] - truth[k]))),
        }
    };
    (0..truth.len()).map(of).collect()
}

/// Least squares lines of ε₁ and ε₂ over the numbers of shards, where there are two of them beyond 1.
pub(super) fn lines(groups: &[CellGroup]) -> Vec<FittedLine> {
    let mut all = Vec::new();
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for group in groups {
        if seen.contains(&(&group.by, &group.method)) {
            continue;
        }
        seen.push((&group.by, &group.method));
        let own = || groups.iter().filter(|g| g.by == group.by && g.method == group.method);
        for model in 0..group.chosen.len() {
            type Pick = fn(&GroupModel) -> Option<f64>;
            let kinds: [(&str, Pick); 2] =
                [("epsilon1", |m| m.epsilon1), ("epsilon2", |m| m.epsilon2)];
            for (what, pick) in kinds {
                let points: Vec<(f64, f64)> = own()
                    .filter(|g| g.shards > 1)
                    .filter_map(|g| Some((g.shards as f64, pick(g.models.get(model)?)?)))
                    .collect();
                if let Some((intercept, slope)) = fitted(&points) {
                    all.push(FittedLine {
                        by: group.by.clone(),
                        method: group.method.clone(),
                        model,
                        what,
                        intercept,
                        slope,
                    });
                }
            }
        }
    }
    all
}

/// Intercept and slope.
fn fitted(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let x = mean(points.iter().map(|p| p.0))?;
    let y = mean(points.iter().map(|p| p.1))?;
    let spread: f64 = points.iter().map(|p| (p.0 - x) * (p.0 - x)).sum();
    let slope = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>() / spread;
    (spread > 0.0 && slope.is_finite()).then_some((y - slope * x, slope))
}

/// The mean of a model's estimates of `exact`, with the error of that mean: from the estimates' own error bars.
pub(super) fn pooled(estimates: &[Estimate]) -> Option<Estimate> {
    let n = estimates.len() as f64;
    let value = mean(estimates.iter().map(|e| e.value))?;
    let squares: Option<f64> = estimates.iter().map(|e| e.se.map(|se| se * se)).sum();
    Some(Estimate { value, se: squares.map(|s| s.sqrt() / n) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use libm::exp;

    #[test]
    fn errors_add_up() {
        let errors = Errors::of(&[1.0, 2.0, 6.0], Some(2.0));
        assert_eq!(errors.mean, 3.0);
        assert_eq!(errors.bias, Some(1.0));
        let rmse = errors.rmse.unwrap();
        assert!((rmse * rmse - (1.0 + errors.sd * errors.sd)).abs() < 1e-12);
        assert!((errors.rmse_percent.unwrap() - 50.0 * rmse).abs() < 1e-12);
        assert!((errors.bias2_over_variance.unwrap() - 3.0 / 14.0).abs() < 1e-12);
        assert_eq!(Errors::of(&[2.0], Some(2.0)).bias2_over_variance, None);
        assert_eq!(Errors::of(&[0.3, 0.5], None).rmse, None);
    }

    #[test]
    fn differences_in_logs_keep_their_digits() {
        // I = e^1000, Î = e^1000·(1 + 1e-9).
        let found = log_difference(1000.0, 1000.0 + 1e-9).unwrap();
        assert!((found - (1000.0 + log(1e-9))).abs() < 1e-4, "{found}");
        assert_eq!(log_difference(3.0, 3.0), None);
        let plain = log_difference(log(2.0), log(5.0)).unwrap();
        assert!((exp(plain) - 3.0).abs() < 1e-12);
    }

    #[test]
    fn lines_go_through_points_on_a_line() {
        let (intercept, slope) = fitted(&[(2.0, 1.0), (5.0, 2.5), (10.0, 5.0)]).unwrap();
        assert!(intercept.abs() < 1e-12 && (slope - 0.5).abs() < 1e-12);
        assert!(fitted(&[(2.0, 1.0)]).is_none() && fitted(&[]).is_none());
    }
}
