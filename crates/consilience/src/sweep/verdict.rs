//! How many shards each combination bears, in a sentence.

use super::Sweep;
use super::metrics::{CellGroup, second};
use super::reference::Reference;
use crate::study::Combine;
use serde::Serialize;

/// An error of a log evidence that nobody minds, in nats.
const SMALL: f64 = 0.1;

/// Up to how many shards a combination holds. Each number is the greatest of the sweep's up to which it holds for
/// all before it, too; `null` where it holds for none, or where the reference cannot tell.
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

/// What to say of every combination; but of `exact` nothing where all is held against it: its errors are against its own mean.
pub(super) fn advice(
    sweep: &Sweep,
    groups: &[CellGroup],
    reference: &Reference,
    models: &[String],
) -> Vec<Advice> {
    let truth: Vec<f64> = reference.log_evidence.iter().map(|r| r.value).collect();
    let first = reference.best;
    let next = second(&truth).map(|k| (k, truth[first] - truth[k]));
    let factor = next.filter(|_| reference.tells_best);
    let is_reference = |method: &Combine| *method == Combine::Exact && reference.method == "exact";
    let mut all = Vec::new();
    for by in &sweep.by {
        for method in sweep.combine.iter().filter(|m| !is_reference(m)) {
            let (by, method) = (by.to_string(), method.name().to_string());
            let own: Vec<&CellGroup> =
                groups.iter().filter(|g| g.by == by && g.method == method).collect();
            let up_to = |holds: &dyn Fn(&CellGroup) -> bool| {
                let held = own.iter().take_while(|g| g.failed == 0 && g.counted > 0 && holds(g));
                held.last().map(|g| g.shards)
            };
            let small = |g: &CellGroup| {
                g.models.iter().all(|m| m.errors.rmse.is_some_and(|rmse| rmse < SMALL))
            };
            let within_tenth_nat =
                Some(()).filter(|()| reference.tells_tenth_nat).and_then(|()| up_to(&small));
            let within_bayes_factor = factor.and_then(|(k, factor)| {
                up_to(&|g| {
                    let errors = g.models[k].log_bayes_factor;
                    errors.and_then(|e| e.rmse).is_some_and(|rmse| rmse < factor)
                })
            });
            let same_choice = factor.and_then(|_| up_to(&|g| g.chosen[first] == g.counted));
            let mut advice = Advice {
                by,
                method,
                within_tenth_nat,
                within_bayes_factor,
                same_choice,
                text: String::new(),
            };
            advice.text = advice.sentence(sweep, models, reference, next);
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
        reference: &Reference,
        next: Option<(usize, f64)>,
    ) -> String {
        let most = sweep.shards.last().copied().unwrap_or(1);
        let reach = |found: Option<usize>| match found {
            Some(1) if most > 1 => "with 1 shard only".to_string(),
            Some(1) => "with 1 shard (no other was tried)".to_string(),
            Some(shards) if shards == most => format!("up to {most} shards (all that were tried)"),
            Some(shards) => format!("up to {shards} shards"),
            None => "nowhere".to_string(),
        };
        let mut text = format!("`{}`, split by {}: ", self.method, self.by);
        text += &if reference.tells_tenth_nat {
            format!(
                "the error of every log evidence is below {SMALL} nat {}",
                reach(self.within_tenth_nat)
            )
        } else {
            format!(
                "whether errors of log evidences are below {SMALL} nat cannot be told, since the reference has the standard error {:.3}",
                reference.widest()
            )
        };
        let Some((k, factor)) = next else { return text + "." };
        let (first, next) = (&models[reference.best], &models[k]);
        text += &if reference.tells_best {
            format!(
                "; that of the log Bayes factor of `{first}` against `{next}` is below the factor itself ({factor:.2}) {}; `{first}` is chosen on every partition {}",
                reach(self.within_bayes_factor),
                reach(self.same_choice)
            )
        } else {
            format!(
                "; the reference does not tell which of `{first}` and `{next}` is better (log Bayes factor {factor:.2})"
            )
        };
        text + "."
    }
}
