//! Ways to choose a model, side by side, as a table.

use crate::text::{self, bytes, counted, grouped};
use consilience::combine::{Baseline, ModelWarning};
use consilience::compare::Baselines;
use consilience::estimate::Estimate;
use consilience::{Level, Warning};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The whole report.
pub fn of(result: &Baselines) -> String {
    let mut out = String::new();
    let partition = &result.partition;
    let _ = writeln!(
        out,
        "{} rows in {} (by {}, partition {})\n",
        grouped(partition.rows as f64),
        counted(partition.shards, "shard"),
        partition.by,
        partition.hash
    );
    out += &table(result);
    let traffic = &result.traffic;
    let _ = write!(
        out,
        "\n{}, {} moved",
        counted(traffic.rounds as usize, "round"),
        bytes(traffic.bytes_sent + traffic.bytes_received)
    );
    let _ = match result.seconds {
        Some(seconds) => writeln!(out, ", {seconds:.1} s"),
        None => writeln!(out),
    };
    out += &distrust(result);
    out
}

/// A row per method, a column per model; where there is no room for that, a row per method and model.
fn table(result: &Baselines) -> String {
    let width = text::layout::width();
    // What kind of number it is can be done without.
    text::layout::whole(&by_method(result), &[1], width)
        .unwrap_or_else(|| text::layout::fitted(&by_model(result), &[2], width) + &marks(result))
}

fn by_method(result: &Baselines) -> Vec<Vec<String>> {
    let mut rows = vec![vec!["method".to_string(), "score".to_string()]];
    rows[0].extend(result.models.iter().cloned());
    rows[0].push("chooses".into());
    for method in &result.methods {
        let name = &method.method;
        let name = if method.is_reliable() { name.clone() } else { format!("{name} (unreliable)") };
        let mut row = vec![name, method.score.to_string()];
        row.extend(method.models.iter().map(|m| cell(*m, decimals(method))));
        row.push(result.models[method.chooses].clone());
        rows.push(row);
    }
    rows
}

fn by_model(result: &Baselines) -> Vec<[String; 5]> {
    let mut rows = vec![["method", "model", "what", "score", "*"].map(String::from)];
    for method in &result.methods {
        let doubt = if method.is_reliable() { "" } else { " !" };
        for (k, (name, score)) in result.models.iter().zip(&method.models).enumerate() {
            rows.push([
                format!("{}{doubt}", method.method),
                name.clone(),
                method.score.to_string(),
                cell(*score, decimals(method)),
                if k == method.chooses { "*" } else { "" }.to_string(),
            ]);
        }
    }
    rows
}

/// What the marks in a narrow table mean.
fn marks(result: &Baselines) -> String {
    let doubt = match result.is_reliable() {
        true => "",
        false => ", ! a method that is not to be trusted",
    };
    format!("* marks the model that a method chooses{doubt}.\n")
}

/// Decimals that a score has at least.
fn decimals(method: &Baseline) -> usize {
    if method.score == "log evidence" { 2 } else { 3 }
}

/// A score, with its error where that is known and would be seen. At least so many decimals.
fn cell(score: Estimate, decimals: usize) -> String {
    match score.se {
        Some(se) if se >= 5e-7 => text::estimate(score),
        _ => format!("{:.decimals$}", score.value),
    }
}

/// Which methods say of themselves that they are not to be trusted, and why. Methods that rest on the same
/// answers say the same, and so do shards: it stands once.
fn distrust(result: &Baselines) -> String {
    let mut said: BTreeMap<_, Vec<(&str, &Warning)>> = BTreeMap::new();
    for method in &result.methods {
        for ModelWarning { model, warning } in &method.warnings {
            if warning.level < Level::Unreliable {
                continue;
            }
            // What concerns a shard and what concerns the whole may have one name.
            let key = (*model, warning.code.as_str(), warning.shard.is_some());
            said.entry(key).or_default().push((&method.method, warning));
        }
    }
    let mut out = String::new();
    for ((model, code, _), all) in said {
        let mut methods: Vec<&str> = all.iter().map(|(method, _)| *method).collect();
        methods.dedup();
        let mut shards: Vec<usize> = all.iter().filter_map(|(_, warning)| warning.shard).collect();
        shards.sort_unstable();
        shards.dedup();
        let place = match &shards[..] {
            [] => String::new(),
            [one] => format!(", shard {one}"),
            [first, ..] => format!(", {} shards, such as {first}", shards.len()),
        };
        let first = all.iter().map(|(_, w)| *w).min_by_key(|w| w.shard).expect("there is one");
        let _ = writeln!(
            out,
            "\n{}, model `{}`{place}: unreliable [{code}], {}.",
            methods.join(", "),
            result.models[model],
            first.message
        );
    }
    out
}
