//! A sweep as tables, with advice below them.

use crate::text::{self, counted, estimate, layout, short, table};
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
        let of: Vec<&CellGroup> = by_method(document, by);
        let (combined, voted): (Vec<&CellGroup>, Vec<&CellGroup>) =
            of.iter().partition(|g| document.combinations.contains(&g.method));
        let _ = write!(out, "\nSplit by {by}: log evidence, of the model that is furthest off\n");
        out += &errors(document, &combined);
        let voted: Vec<&CellGroup> = voted.into_iter().filter(|g| g.has_evidences()).collect();
        if !voted.is_empty() {
            let _ = write!(out, "\nSplit by {by}: the same of votes\n");
            out += &errors(document, &voted);
        }
        if document.models.len() > 1 {
            let _ = write!(out, "\nSplit by {by}: how often each model is chosen\n");
            out += &choices(document, &of, layout::width());
        }
    }
    out += &times(document);
    if !document.advice.is_empty() {
        out += "\nHow many shards do these data bear?\n";
    }
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

/// The groups of a way to split, method by method.
fn by_method<'a>(document: &'a Document, by: &str) -> Vec<&'a CellGroup> {
    let mut all: Vec<&CellGroup> = document.groups.iter().filter(|g| g.by == by).collect();
    let mut methods: Vec<&str> = Vec::new();
    for group in &all {
        if !methods.contains(&group.method.as_str()) {
            methods.push(&group.method);
        }
    }
    all.sort_by_key(|g| methods.iter().position(|method| *method == g.method));
    all
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
        "log I %",
        "of model",
        "distrust",
    ];
    let mut rows = vec![head.map(String::from)];
    for group in groups {
        let partitions = group.counted + group.failed;
        let distrust = match (group.failed, group.unreliable) {
            (0, 0) => String::new(),
            (0, distrusted) => format!("{distrusted} of {partitions}"),
            (failed, 0) if failed == partitions => "failed".to_string(),
            (failed, 0) => format!("{failed} failed"),
            (failed, distrusted) => format!("{distrusted}, {failed} failed"),
        };
        let worst = worst(group);
        let number = |of: fn(&GroupModel) -> Option<f64>| {
            worst.map_or(String::new(), |(_, model)| short(of(model)))
        };
        rows.push([
            group.method.clone(),
            group.shards.to_string(),
            number(|m| m.errors.bias),
            number(|m| Some(m.errors.sd)),
            number(|m| m.errors.rmse),
            number(|m| m.errors.rmse_percent),
            number(|m| m.errors.bias2_over_variance),
            number(|m| m.overlap_share.map(|share| 100.0 * share)),
            worst.map_or(String::new(), |(k, _)| document.models[k].clone()),
            distrust,
        ]);
    }
    // Where there is no room for all, first goes what follows from other columns.
    layout::fitted(&rows, &[9, 8, 7, 5, 6], layout::width())
}

/// How often each model is chosen: a column per model, under its name, under its number where names are too wide, or
/// only of models that somebody chooses.
fn choices(document: &Document, groups: &[&CellGroup], width: usize) -> String {
    let chosen = |k: usize| groups.iter().any(|g| g.chosen[k] > 0);
    let all: Vec<usize> = (0..document.models.len()).collect();
    let some: Vec<usize> = all.iter().copied().filter(|&k| chosen(k)).collect();
    let rows = |models: &[usize], head: &dyn Fn(usize) -> String| {
        let mut rows = vec![vec!["method".to_string(), "shards".to_string()]];
        rows[0].extend(models.iter().map(|&k| head(k)));
        for group in groups {
            let mut row = vec![group.method.clone(), group.shards.to_string()];
            row.extend(models.iter().map(|&k| match group.chosen[k] {
                0 => "·".to_string(),
                count => count.to_string(),
            }));
            rows.push(row);
        }
        rows
    };
    let numbered = |k: usize| format!("({})", k + 1);
    let named = |k: &usize| format!("{} {}", numbered(*k), document.models[*k]);
    let named = |models: &[usize]| models.iter().map(named).collect::<Vec<_>>().join(", ");
    if let Some(table) = layout::whole(&rows(&all, &|k| document.models[k].clone()), &[], width) {
        return table;
    }
    if let Some(table) = layout::whole(&rows(&all, &numbered), &[], width) {
        return format!("{}\n{table}", layout::wrapped(&named(&all), 0, width));
    }
    let words = format!("{}; no other is chosen anywhere", named(&some));
    let table = layout::fitted(&rows(&some, &numbered), &[], width);
    format!("{}\n{table}", layout::wrapped(&words, 0, width))
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
