//! Ways to choose a model, side by side, as a table.

use crate::text::{bytes, counted, grouped};
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
    let columns = rows[0].len();
    let width = |j: usize| rows.iter().map(|r| r[j].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let mut line = String::new();
        for (j, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[j] - cell.chars().count());
            let left = j < 2 || j + 1 == columns;
            line += if j == 0 { "" } else { "  " };
            line += &if left { format!("{cell}{pad}") } else { format!("{pad}{cell}") };
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
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
