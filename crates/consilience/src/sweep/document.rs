//! The result of a sweep: its JSON document and its tables as text.

use super::Sweep;
use super::cell::{Cell, CellTime};
use super::failures::failures;
use super::metrics::{self, CellGroup, FittedLine};
use super::reference::{Reference, share_exact, take_exact};
use super::verdict::{Advice, advice};
use crate::compare::VERSION;
use crate::{Level, Result, Warning};
use serde::Serialize;
use std::fmt::Write;

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
        let exact = take_exact(sweep, &mut cells);
        let reference = Reference::of(sweep, &exact, models, &mut warnings)?;
        share_exact(sweep, &mut cells, &exact);
        let groups = metrics::groups(sweep, &cells, &reference);
        let lines = metrics::lines(&groups);
        let advice = advice(sweep, &groups, &reference, models);
        warnings.extend(failures(sweep, &cells, &groups));
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

    /// The groups as CSV: a line per way to split, number of shards, method and model. Scores that are no evidences have a
    /// column of their own.
    pub fn groups_csv(&self) -> String {
        let mut out = String::from(
            "by,shards,method,model,counted,failed,unreliable,chosen,score,mean,sd,bias,rmse,rmse_percent,bias2_over_variance,epsilon1,epsilon2,overlap,overlap_share,correction,log_a,log_b,bayes_factor_mean,bayes_factor_sd,bayes_factor_rmse\n",
        );
        for group in &self.groups {
            for (k, name) in self.models.iter().enumerate() {
                // Where nobody got through there are no numbers, and a line that says so.
                let model = group.models.get(k);
                let errors = model.map(|m| &m.errors);
                let evidence = errors.filter(|_| group.has_evidences());
                let score = errors.filter(|_| !group.has_evidences()).map(|e| e.mean);
                let factor = model.and_then(|m| m.log_bayes_factor);
                let numbers = [
                    score,
                    evidence.map(|e| e.mean),
                    evidence.map(|e| e.sd),
                    errors.and_then(|e| e.bias),
                    errors.and_then(|e| e.rmse),
                    errors.and_then(|e| e.rmse_percent),
                    errors.and_then(|e| e.bias2_over_variance),
                    model.and_then(|m| m.epsilon1),
                    model.and_then(|m| m.epsilon2),
                    model.and_then(|m| m.overlap),
                    model.and_then(|m| m.overlap_share),
                    model.and_then(|m| m.correction),
                    model.and_then(|m| m.log_a),
                    model.and_then(|m| m.log_b),
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
                    quoted(name),
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
