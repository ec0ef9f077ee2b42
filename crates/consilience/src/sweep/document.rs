//! The result of a sweep: its JSON document and its tables as text.

use super::Sweep;
use super::cell::{Cell, CellTime};
use super::metrics::{self, CellGroup, FittedLine};
use super::verdict::{Advice, advice};
use crate::compare::VERSION;
use crate::estimate::Estimate;
use crate::study::Combine;
use crate::{Error, Level, Result, Warning};
use serde::Serialize;
use std::fmt::Write;

/// A reference whose own error is larger than this, in nats, blurs what is said about 0.1 nat.
const BLUR: f64 = 0.03;

/// Fewer partitions than this are a glimpse.
const FEW: usize = 5;

/// What a sweep found. Serialised, it is the documented JSON document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    /// [`VERSION`].
    pub version: u32,
    /// `sweep`.
    pub kind: &'static str,
    /// The models' names, in the study's order.
    pub models: Vec<String>,
    /// What estimates are held against.
    pub reference: Reference,
    /// Numbers of shards.
    pub shards: Vec<usize>,
    /// Partitions per number of shards and way to split.
    pub repeats: usize,
    /// Ways to split.
    pub by: Vec<String>,
    /// Combinations.
    pub combinations: Vec<String>,
    /// Up to how many shards each combination holds.
    pub advice: Vec<Advice>,
    /// Over the repeats of one way to split, number of shards and method.
    pub groups: Vec<CellGroup>,
    /// How errors grow with the number of shards.
    pub lines: Vec<FittedLine>,
    /// Every partition.
    pub cells: Vec<Cell>,
    /// What should be known about all of it.
    pub warnings: Vec<Warning>,
    /// What partitions took; `null` where nobody had a clock, and in documents that are to have the same bytes
    /// each time.
    pub times: Option<Vec<Time>>,
}

/// What estimates are held against.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reference {
    /// `exact`, or `given`.
    pub method: &'static str,
    /// Every model's log evidence: of `exact` the mean over the repeats' seeds.
    pub log_evidence: Vec<Estimate>,
}

/// What a partition took, in CPU seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Time {
    /// The way to split.
    pub by: String,
    /// The number of shards.
    pub shards: usize,
    /// The repeat.
    pub repeat: usize,
    /// The seconds.
    #[serde(flatten)]
    pub time: CellTime,
}

impl Document {
    pub(super) fn new(
        sweep: &Sweep,
        models: &[String],
        mut cells: Vec<Cell>,
        times: Vec<Option<CellTime>>,
    ) -> Result<Document> {
        let mut warnings = Vec::new();
        let reference = Reference::of(sweep, &cells, models.len(), &mut warnings)?;
        share_exact(sweep, &mut cells);
        let groups = metrics::groups(sweep, &cells, &reference.log_evidence);
        let lines = metrics::lines(&groups);
        let advice = advice(sweep, &groups, &reference.log_evidence, models);
        warnings.extend(failures(&groups));
        if sweep.repeats < FEW {
            let message = format!(
                "{} partition{} for each number of shards say little of what others would",
                sweep.repeats,
                if sweep.repeats == 1 { "" } else { "s" }
            );
            let advice = "run more repeats before you rest on the advice";
            let few = Warning::new(Level::Note, "few-repeats", message, advice);
            warnings.push(few.value(sweep.repeats as f64));
        }
        let times: Option<Vec<Time>> = cells
            .iter()
            .zip(times)
            .map(|(cell, time)| {
                let (by, shards, repeat) = (cell.by.clone(), cell.shards, cell.repeat);
                Some(Time { by, shards, repeat, time: time? })
            })
            .collect();
        Ok(Document {
            version: VERSION,
            kind: "sweep",
            models: models.to_vec(),
            reference,
            shards: sweep.shards.clone(),
            repeats: sweep.repeats,
            by: sweep.by.iter().map(ToString::to_string).collect(),
            combinations: sweep.combine.iter().map(|c| c.name().to_string()).collect(),
            advice,
            groups,
            lines,
            cells,
            warnings,
            times,
        })
    }

    /// Whether nothing says that it is not to be trusted. That a combination fails on some partitions is what a
    /// sweep is there to show, and no reason.
    pub fn is_reliable(&self) -> bool {
        self.warnings.iter().all(|w| w.level < Level::Unreliable)
    }

    /// Every partition's estimates as CSV: a line per partition, method and model.
    pub fn cells_csv(&self) -> String {
        let mut out = String::from(
            "by,shards,repeat,split_seed,seed,partition,method,model,value,se,reference,shard_sum,overlap,correction,unreliable,chosen,error\n",
        );
        for cell in &self.cells {
            let mut line = |method: &str, rest: String| {
                let _ = writeln!(
                    out,
                    "{},{},{},{},{},{},{},{rest}",
                    quoted(&cell.by),
                    cell.shards,
                    cell.repeat,
                    cell.split_seed,
                    cell.seed,
                    cell.partition,
                    quoted(method)
                );
            };
            for way in &cell.combinations {
                if let Some(error) = &way.error {
                    line(&way.method, format!(",,,,,,,,,{}", quoted(error)));
                }
                for (k, model) in way.models.iter().enumerate() {
                    let cells = [
                        quoted(&self.models[k]),
                        number(Some(model.log_evidence.value)),
                        number(model.log_evidence.se),
                        number(Some(self.reference.log_evidence[k].value)),
                        number(model.shards.map(|s| s.value)),
                        number(model.overlap.map(|s| s.value)),
                        number(model.correction),
                        model.unreliable.to_string(),
                        (way.chooses == Some(k)).to_string(),
                        String::new(),
                    ];
                    line(&way.method, cells.join(","));
                }
            }
            for vote in &cell.votes {
                for (k, score) in vote.models.iter().enumerate() {
                    let chosen = vote.chooses == k;
                    let rest = format!(
                        "{},{},{},,,,,,{chosen},",
                        quoted(&self.models[k]),
                        number(Some(score.value)),
                        number(score.se)
                    );
                    line(&vote.method, rest);
                }
            }
        }
        out
    }

    /// The groups as CSV: a line per way to split, number of shards, method and model.
    pub fn groups_csv(&self) -> String {
        let mut out = String::from(
            "by,shards,method,model,counted,failed,unreliable,chosen,mean,sd,bias,rmse,rmse_percent,bias2_over_variance,epsilon1,epsilon2,overlap,overlap_share,correction,log_a,log_b,bayes_factor_mean,bayes_factor_sd,bayes_factor_rmse\n",
        );
        for group in &self.groups {
            for (k, model) in group.models.iter().enumerate() {
                let (errors, factor) = (&model.errors, model.log_bayes_factor);
                let numbers = [
                    Some(errors.mean),
                    Some(errors.sd),
                    errors.bias,
                    errors.rmse,
                    errors.rmse_percent,
                    errors.bias2_over_variance,
                    model.epsilon1,
                    model.epsilon2,
                    model.overlap,
                    model.overlap_share,
                    model.correction,
                    model.log_a,
                    model.log_b,
                    factor.map(|f| f.mean),
                    factor.map(|f| f.sd),
                    factor.and_then(|f| f.rmse),
                ];
                let numbers: Vec<String> = numbers.into_iter().map(number).collect();
                let _ = writeln!(
                    out,
                    "{},{},{},{},{},{},{},{},{}",
                    quoted(&group.by),
                    group.shards,
                    quoted(&group.method),
                    quoted(&self.models[k]),
                    group.counted,
                    group.failed,
                    group.unreliable,
                    group.chosen[k],
                    numbers.join(",")
                );
            }
        }
        out
    }
}

fn number(value: Option<f64>) -> String {
    value.map_or(String::new(), |v| v.to_string())
}

/// A cell of a CSV file; quoted where it must be.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

impl Reference {
    fn of(
        sweep: &Sweep,
        cells: &[Cell],
        models: usize,
        warnings: &mut Vec<Warning>,
    ) -> Result<Reference> {
        if let Some(values) = &sweep.reference {
            let log_evidence = values.iter().map(|&v| Estimate::new(v, 0.0)).collect();
            return Ok(Reference { method: "given", log_evidence });
        }
        let exact: Vec<_> = cells.iter().filter_map(|c| c.combination("exact")).collect();
        let found: Vec<_> = exact.iter().filter(|e| e.error.is_none()).collect();
        if found.is_empty() {
            let why =
                exact.iter().find_map(|e| e.error.as_deref()).unwrap_or("it was not computed");
            return Err(Error::numeric(format!(
                "there is no reference to hold anything against: `exact` found none ({why}); give the true values by --reference"
            )));
        }
        let of = |k: usize| {
            let own: Vec<Estimate> = found.iter().map(|e| e.models[k].log_evidence).collect();
            metrics::pooled(&own)
        };
        let log_evidence: Vec<Estimate> = (0..models).filter_map(of).collect();
        if found.iter().any(|e| e.models.iter().any(|m| m.unreliable)) {
            let message =
                "`exact`, which all is held against, says of itself that it is not to be trusted";
            let advice = "run `consilience compare` on this study to see why, or give the true values by --reference";
            warnings.push(Warning::new(Level::Unreliable, "reference", message, advice));
        }
        let widest = log_evidence.iter().filter_map(|e| e.se).fold(0.0, f64::max);
        if widest > BLUR {
            let message = format!(
                "the reference has the standard error {widest:.3}, so that errors below 0.1 nat cannot be told"
            );
            let advice = "lower se_target, or run more repeats";
            warnings.push(
                Warning::new(Level::Caution, "reference-error", message, advice).value(widest),
            );
        }
        Ok(Reference { method: "exact", log_evidence })
    }
}

/// What `exact` found with a seed stands in all cells of that seed: it does not depend on the split. Where it is
/// only the reference, it stands in none.
fn share_exact(sweep: &Sweep, cells: &mut [Cell]) {
    let shown = sweep.combine.contains(&Combine::Exact);
    let mut by_repeat = vec![None; sweep.repeats + 1];
    for cell in cells.iter_mut() {
        let place = cell.combinations.iter().position(|c| c.method == "exact");
        if let Some(found) = place.map(|p| cell.combinations.remove(p)) {
            by_repeat[cell.repeat].get_or_insert(found);
        }
    }
    let asked = |method: &str| sweep.combine.iter().any(|c| c.name() == method);
    for cell in cells.iter_mut() {
        cell.combinations.retain(|c| asked(&c.method));
        if !sweep.votes {
            cell.votes.clear();
            cell.votes_error = None;
        }
        cell.combinations.extend(by_repeat[cell.repeat].clone().filter(|_| shown));
        let place = |method: &str| sweep.combine.iter().position(|c| c.name() == method);
        cell.combinations.sort_by_key(|c| place(&c.method));
    }
}

/// Combinations that did not get through.
fn failures(groups: &[CellGroup]) -> Vec<Warning> {
    let failed = groups.iter().filter(|g| g.failed > 0);
    failed
        .map(|g| {
            let message = format!(
                "`{}` failed on {} of {} partitions into {} shards (by {})",
                g.method,
                g.failed,
                g.failed + g.counted,
                g.shards,
                g.by
            );
            let advice = "the cells of the JSON document say why; what is said of this group is of the others alone";
            Warning::new(Level::Caution, "failed", message, advice).value(g.failed as f64)
        })
        .collect()
}
