//! A sweep as tables, with advice below them.

use crate::text::{self, counted, estimate, short, table};
use consilience::Warning;
use consilience::sweep::{CellGroup, Document, GroupModel};
use std::fmt::Write;

/// The whole report.
pub fn of(document: &Document) -> String {
    let mut out = String::new();
    let rows = document.cells.first().map_or(0, |cell| cell.rows);
    let _ = writeln!(
        out,
        "{}, {} for each number of shards, against {}\n",
        counted(rows, "row"),
        counted(document.repeats, "partition"),
        match document.reference.method {
            "exact" => "`exact`",
            _ => "given values",
        }
    );
    let mut reference = vec![["model".to_string(), "log evidence".to_string()]];
    for (name, value) in document.models.iter().zip(&document.reference.log_evidence) {
        reference.push([name.clone(), estimate(*value)]);
    }
    out += &table(&reference);
    for by in &document.by {
        let of: Vec<&CellGroup> = document.groups.iter().filter(|g| g.by == *by).collect();
        let _ = write!(out, "\nSplit by {by}: log evidence, of the model that is furthest off\n");
        out += &errors(document, &of);
        if document.models.len() > 1 {
            let _ = write!(out, "\nSplit by {by}: how often each model is chosen\n");
            out += &choices(document, &of);
        }
    }
    out += &times(document);
    out += "\nHow many shards do these data bear?\n";
    for advice in &document.advice {
        let _ = writeln!(out, "- {}", advice.text);
    }
    let warnings: Vec<(Option<&str>, &Warning)> =
        document.warnings.iter().map(|w| (None, w)).collect();
    out + &text::list(&warnings)
}

/// The model of a group that is furthest off.
fn worst(group: &CellGroup) -> Option<(usize, &GroupModel)> {
    let error = |m: &GroupModel| m.errors.rmse.unwrap_or(0.0);
    let all = group.models.iter().enumerate();
    all.rev().max_by(|a, b| error(a.1).total_cmp(&error(b.1)))
}

fn errors(document: &Document, groups: &[&CellGroup]) -> String {
    let head = [
        "method",
        "shards",
        "bias",
        "sd",
        "RMSE",
        "% RMSE",
        "bias²/var",
        "log I in %",
        "of model",
        "not trusted",
    ];
    let mut rows = vec![head.map(String::from)];
    for group in groups.iter().filter(|g| g.score == "log evidence") {
        let partitions = group.counted + group.failed;
        let distrust = match (group.failed, group.unreliable) {
            (0, 0) => String::new(),
            (0, distrusted) => format!("{distrusted} of {partitions}"),
            (failed, distrusted) => format!("{distrusted}, {failed} failed, of {partitions}"),
        };
        let Some((k, model)) = worst(group) else {
            let mut row = vec![String::new(); head.len()];
            row[0] = group.method.clone();
            row[1] = group.shards.to_string();
            row[9] = distrust;
            rows.push(row.try_into().expect("as many as there are columns"));
            continue;
        };
        let errors = &model.errors;
        rows.push([
            group.method.clone(),
            group.shards.to_string(),
            short(errors.bias),
            short(Some(errors.sd)),
            short(errors.rmse),
            short(errors.rmse_percent),
            short(errors.bias2_over_variance),
            short(model.overlap_share.map(|share| 100.0 * share)),
            document.models[k].clone(),
            distrust,
        ]);
    }
    table(&rows)
}

fn choices(document: &Document, groups: &[&CellGroup]) -> String {
    let mut rows = vec![vec!["method".to_string(), "shards".to_string()]];
    rows[0].extend(document.models.iter().cloned());
    for group in groups {
        let mut row = vec![group.method.clone(), group.shards.to_string()];
        row.extend(group.chosen.iter().map(|count| match count {
            0 => "·".to_string(),
            count => count.to_string(),
        }));
        rows.push(row);
    }
    table(&rows)
}

/// CPU seconds, averaged over partitions.
fn times(document: &Document) -> String {
    let Some(times) = &document.times else { return String::new() };
    let mut rows = vec![["split by", "shards", "slowest shard", "all shards"].map(String::from)];
    for by in &document.by {
        for &shards in &document.shards {
            let own: Vec<_> = times
                .iter()
                .filter(|t| t.by == *by && t.shards == shards)
                .map(|t| t.time)
                .collect();
            let mean = |sum: f64| format!("{:.2} s", sum / own.len().max(1) as f64);
            rows.push([
                by.clone(),
                shards.to_string(),
                mean(own.iter().map(|t| t.slowest_shard).sum()),
                mean(own.iter().map(|t| t.all_shards).sum()),
            ]);
        }
    }
    format!("\nCPU time of a partition, all methods together\n{}", table(&rows))
}
