//! Combinations and votes that did not get through: on how many partitions, and why.

use super::Sweep;
use super::cell::Cell;
use super::metrics::CellGroup;
use crate::{Level, Warning};

/// Who failed on the same number of partitions for the same reasons.
struct Failed {
    who: Vec<String>,
    count: usize,
    reasons: Vec<String>,
}

/// A warning for each way to split, number of shards, and reason.
pub(super) fn failures(sweep: &Sweep, cells: &[Cell], groups: &[CellGroup]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for by in sweep.by.iter().map(ToString::to_string) {
        for &shards in &sweep.shards {
            let own: Vec<&Cell> =
                cells.iter().filter(|c| c.by == by && c.shards == shards).collect();
            let groups = groups.iter().filter(|g| g.by == by && g.shards == shards);
            let all = failed(sweep, &own, groups);
            warnings.extend(all.iter().map(|failed| failed.warning(&by, shards, own.len())));
        }
    }
    warnings
}

fn failed<'a>(
    sweep: &Sweep,
    cells: &[&Cell],
    groups: impl Iterator<Item = &'a CellGroup>,
) -> Vec<Failed> {
    let mut all: Vec<Failed> = Vec::new();
    let mut add = |who: String, count: usize, mut reasons: Vec<String>| {
        reasons.sort();
        reasons.dedup();
        match all.iter_mut().find(|f| f.count == count && f.reasons == reasons) {
            _ if count == 0 => {}
            Some(same) => same.who.push(who),
            None => all.push(Failed { who: vec![who], count, reasons }),
        }
    };
    for method in sweep.combine.iter().map(|c| c.name()) {
        let errors = cells.iter().filter_map(|c| c.combination(method)?.error.clone());
        let errors: Vec<String> = errors.collect();
        add(format!("`{method}`"), errors.len(), errors);
    }
    // Votes fail together, but for benches that count their own and give no reasons.
    let errors: Vec<String> = cells.iter().filter_map(|c| c.votes_error.clone()).collect();
    let together = errors.len();
    add("votes".into(), together, errors);
    for group in groups.filter(|g| sweep.combine.iter().all(|c| c.name() != g.method)) {
        if group.failed > together {
            add(format!("`{}`", group.method), group.failed, Vec::new());
        }
    }
    all
}

impl Failed {
    fn warning(&self, by: &str, shards: usize, partitions: usize) -> Warning {
        let count = self.count;
        let of = match (count == partitions, partitions) {
            (true, 1) => "the only partition".to_string(),
            (true, _) => format!("all {partitions} partitions"),
            (false, _) => format!("{count} of {partitions} partitions"),
        };
        let s = if shards == 1 { "" } else { "s" };
        let mut message =
            format!("{} failed on {of} into {shards} shard{s} (by {by})", listed(&self.who));
        if let [first, others @ ..] = &self.reasons[..] {
            message += &format!(": {first}");
            if !others.is_empty() {
                message += " (other partitions have other reasons, which the cells of the JSON document say)";
            }
        }
        let advice = if count == partitions {
            "there are no numbers of this; what is said of other numbers of shards and other methods stands"
        } else {
            "the numbers shown for this are of the other partitions alone"
        };
        Warning::new(Level::Caution, "failed", message, advice).value(count as f64)
    }
}

/// `a, b and c`.
fn listed(words: &[String]) -> String {
    match words {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => words.concat(),
    }
}
