//! How many shards each combination bears, in a sentence.

use super::Sweep;
use super::metrics::{CellGroup, best};
use crate::estimate::Estimate;
use serde::Serialize;

/// An error of a log evidence that nobody minds, in nats.
const SMALL: f64 = 0.1;

/// Up to how many shards a combination holds. Each number is the greatest of the sweep's up to which it holds for
/// all before it, too; `null` where it holds for none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// The way to split.
    pub by: String,
    /// The combination.
    pub method: String,
    /// Up to how many shards the RMSE of every model's log evidence is below 0.1 nat.
    pub within_tenth_nat: Option<usize>,
    /// Up to how many shards the RMSE of the log Bayes factor between the two best models is below that factor.
    pub within_bayes_factor: Option<usize>,
    /// Up to how many shards the reference's best model is chosen on every partition.
    pub same_choice: Option<usize>,
    /// The same in words.
    pub text: String,
}

/// What to say of every combination.
pub(super) fn advice(
    sweep: &Sweep,
    groups: &[CellGroup],
    reference: &[Estimate],
    models: &[String],
) -> Vec<Advice> {
    let truth: Vec<f64> = reference.iter().map(|r| r.value).collect();
    let first = best(&truth);
    let second =
        (0..truth.len()).filter(|k| *k != first).max_by(|&a, &b| truth[a].total_cmp(&truth[b]));
    let mut all = Vec::new();
    for by in &sweep.by {
        for method in &sweep.combine {
            let (by, method) = (by.to_string(), method.name().to_string());
            let own: Vec<&CellGroup> =
                groups.iter().filter(|g| g.by == by && g.method == method).collect();
            let up_to = |holds: &dyn Fn(&CellGroup) -> bool| {
                let held = own.iter().take_while(|g| g.failed == 0 && g.counted > 0 && holds(g));
                held.last().map(|g| g.shards)
            };
            let within_tenth_nat =
                up_to(&|g| g.models.iter().all(|m| m.errors.rmse.is_some_and(|rmse| rmse < SMALL)));
            let factor = second.map(|k| (k, truth[first] - truth[k]));
            let within_bayes_factor = factor.and_then(|(k, factor)| {
                up_to(&|g| {
                    let errors = g.models[k].log_bayes_factor;
                    errors.and_then(|e| e.rmse).is_some_and(|rmse| rmse < factor)
                })
            });
            let same_choice = second.and_then(|_| up_to(&|g| g.chosen[first] == g.counted));
            let mut advice = Advice {
                by,
                method,
                within_tenth_nat,
                within_bayes_factor,
                same_choice,
                text: String::new(),
            };
            advice.text = advice.sentence(sweep, models, first, factor);
            all.push(advice);
        }
    }
    all
}

impl Advice {
    fn sentence(
        &self,
        sweep: &Sweep,
        models: &[String],
        first: usize,
        factor: Option<(usize, f64)>,
    ) -> String {
        let most = sweep.shards.last().copied().unwrap_or(1);
        let reach = |found: Option<usize>| match found {
            Some(1) if most > 1 => "with 1 shard only".to_string(),
            Some(1) => "with 1 shard (no other was tried)".to_string(),
            Some(shards) if shards == most => format!("up to {most} shards (all that were tried)"),
            Some(shards) => format!("up to {shards} shards"),
            None => "nowhere".to_string(),
        };
        let mut text = format!(
            "`{}`, split by {}: the error of every log evidence is below {SMALL} nat {}",
            self.method,
            self.by,
            reach(self.within_tenth_nat)
        );
        if let Some((k, factor)) = factor {
            text += &format!(
                ", and below the log Bayes factor of `{}` against `{}` ({factor:.2}) {}; `{}` is chosen on every partition {}",
                models[first],
                models[k],
                reach(self.within_bayes_factor),
                models[first],
                reach(self.same_choice)
            );
        }
        text + "."
    }
}
