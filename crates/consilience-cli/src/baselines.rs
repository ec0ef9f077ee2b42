//! Ways to choose a model, side by side, as a table.

use crate::text::{self, bytes, counted, grouped};
use consilience::Level;
use consilience::compare::Baselines;
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

/// A row per method, a column per model.
fn table(result: &Baselines) -> String {
    let mut rows = vec![vec!["method".to_string(), "score".to_string()]];
    rows[0].extend(result.models.iter().cloned());
    rows[0].push("chooses".into());
    for method in &result.methods {
        let decimals = if method.score == "log evidence" { 2 } else { 3 };
        let mut row = vec![method.method.clone(), method.score.to_string()];
        row.extend(method.models.iter().map(|m| format!("{:.decimals$}", m.value)));
        row.push(result.models[method.chooses].clone());
        rows.push(row);
    }
    text::table(&rows)
}

/// Which methods say of themselves that they are not to be trusted, and why.
fn distrust(result: &Baselines) -> String {
    let mut out = String::new();
    for method in &result.methods {
        for (model, warning) in &method.warnings {
            if warning.level == Level::Unreliable {
                let name = &result.models[*model];
                let _ = match warning.shard {
                    Some(shard) => {
                        write!(out, "\n{}, model `{name}`, shard {shard}", method.method)
                    }
                    None => write!(out, "\n{}, model `{name}`", method.method),
                };
                let _ = writeln!(out, ": unreliable [{}], {}.", warning.code, warning.message);
            }
        }
    }
    out
}
