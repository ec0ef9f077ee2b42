//! A comparison as a table with what should be known about it below.

mod tables;

use consilience::compare::{Comparison, ModelResult};
use consilience::estimate::Estimate;
use consilience::{Level, Warning};
use std::fmt::Write;
use std::path::PathBuf;

/// What is to be shown beside the comparison itself, its sweep of priors and its shards left out.
#[derive(Default)]
pub struct Tables<'a> {
    /// All pairs of models.
    pub bayes_factors: bool,
    /// The models' parameters and their averages.
    pub parameters: bool,
    /// Files of posterior draws.
    pub written: &'a [PathBuf],
    /// The names of the shards, where they are sites.
    pub sites: &'a [String],
    /// Whether probabilities have a bar beside them: for a terminal.
    pub bars: bool,
}

/// The whole report.
pub fn of(comparison: &Comparison, tables: &Tables) -> String {
    let mut out = String::new();
    let partition = &comparison.partition;
    let rows = partition.rows as f64;
    let observations: f64 = comparison.models[0].shards.iter().map(|s| s.rows).sum();
    let weighted = match observations == rows {
        true => String::new(),
        false => format!(" ({} observations)", grouped(observations)),
    };
    let _ = writeln!(
        out,
        "{} rows{weighted} in {} (by {}, partition {})\n",
        grouped(rows),
        counted(partition.shards, "shard"),
        partition.by,
        partition.hash
    );
    out += &models(comparison, tables.bars);
    out += &winner(comparison);
    out += &crate::decomposition::of(comparison);
    if tables.bayes_factors {
        out += &tables::bayes_factors(comparison);
    }
    if tables.parameters {
        out += &tables::parameters(comparison);
        out += &tables::averages(comparison);
    }
    out += &tables::prior_sensitivity(comparison);
    out += &tables::leave_one_out(comparison, tables.sites);
    if !tables.written.is_empty() {
        let files: Vec<String> = tables.written.iter().map(|f| f.display().to_string()).collect();
        let _ = write!(out, "\nPosterior draws: {}\n", files.join(", "));
    }
    let _ = write!(
        out,
        "\n{}, {} to each shard and {} back",
        counted(comparison.rounds as usize, "round"),
        bytes(comparison.traffic.bytes_sent / partition.shards.max(1) as u64),
        bytes(comparison.traffic.bytes_received / partition.shards.max(1) as u64)
    );
    let _ = match comparison.seconds {
        Some(seconds) => writeln!(out, ", {seconds:.1} s"),
        None => writeln!(out),
    };
    out += &warnings(comparison);
    out
}

fn models(comparison: &Comparison, bars: bool) -> String {
    let head = [
        "model",
        "log evidence",
        "log Bayes factor",
        "against it",
        "probability",
        "95% interval",
        "parameters",
        "",
    ];
    let mut rows = vec![head.map(String::from)];
    for model in &comparison.models {
        rows.push([
            model.name.clone(),
            estimate(model.log_evidence),
            bayes_factor(model.log_bayes_factor),
            model.strength.map_or(String::new(), |s| s.short().into()),
            probability(model.probability),
            model.probability_interval.map_or("unknown".into(), interval),
            free(model).to_string(),
            if bars { bar(model.probability) } else { String::new() },
        ]);
    }
    table(&rows)
}

/// How wide the bar of a probability of 1 is.
const BAR: f64 = 20.0;

/// A probability as a bar.
fn bar(p: f64) -> String {
    let filled = (p.clamp(0.0, 1.0) * BAR).round() as usize;
    format!("{}{}", "█".repeat(filled), "·".repeat(BAR as usize - filled))
}

fn free(model: &ModelResult) -> usize {
    model.parameters.iter().filter(|p| p.sd > 0.0).count()
}

/// A probability's interval; nothing where its ends look the same.
fn interval(ends: [f64; 2]) -> String {
    let [low, high] = ends.map(probability);
    if low == high { String::new() } else { format!("{low} to {high}") }
}

/// Which model is the best, and how sure that is.
fn winner(comparison: &Comparison) -> String {
    if comparison.models.len() < 2 {
        return String::new();
    }
    let name = &comparison.best.name;
    let sure = match comparison.best.certainty {
        None => "Without error bars it cannot be told how sure that is.".into(),
        Some(p) if p > 0.9999 => "The Monte Carlo errors are too small to change that.".into(),
        Some(p) => {
            format!("Given the Monte Carlo errors, it truly comes first with probability {p:.4}.")
        }
    };
    format!("\nMost probable: {name}. {sure}\n")
}

/// Columns of text: the first to the left, the others to the right.
pub fn table<R: AsRef<[String]>>(rows: &[R]) -> String {
    let columns = rows.first().map_or(0, |row| row.as_ref().len());
    let width = |j: usize| rows.iter().map(|r| r.as_ref()[j].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (j, cell) in row.as_ref().iter().enumerate() {
            let pad = " ".repeat(widths[j] - cell.chars().count());
            if j == 0 {
                line += cell;
                line += &pad;
            } else {
                line += "  ";
                line += &pad;
                line += cell;
            }
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// A value with as many decimals as its error bar is worth.
pub fn estimate(estimate: Estimate) -> String {
    match estimate.se {
        None => format!("{:.3} (no error bar)", estimate.value),
        // Quadrature and closed forms err only by rounding.
        Some(se) if se > 0.0 && se < 1e-6 => format!("{:.6} ± {se:.0e}", estimate.value),
        Some(se) => {
            // What is known to more digits than anybody reads shows how many those are.
            if se > 0.0 && se < 5e-7 {
                return format!("{:.6} ± {se:.0e}", estimate.value);
            }
            let decimals = if se > 0.0 { (1.0 - se.log10().floor()).clamp(0.0, 6.0) } else { 3.0 };
            let decimals = decimals as usize;
            format!("{:.decimals$} ± {se:.decimals$}", estimate.value)
        }
    }
}

/// A small number with as many digits as matter.
pub fn short(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(0.0) => "0".into(),
        Some(v) if v.abs() >= 1000.0 => format!("{v:.0}"),
        Some(v) if v.abs() >= 10.0 => format!("{v:.1}"),
        Some(v) if v.abs() >= 0.01 => format!("{v:.3}"),
        Some(v) => format!("{v:.1e}"),
    }
}

/// A log Bayes factor against the best model.
fn bayes_factor(factor: Estimate) -> String {
    if factor == Estimate::ZERO { "0 (best)".into() } else { estimate(factor) }
}

pub fn probability(p: f64) -> String {
    match p {
        0.0 => "< 1e-300".into(),
        ..1e-4 => format!("{p:.1e}"),
        _ => format!("{p:.4}"),
    }
}

/// A whole number with commas between thousands.
pub fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 shard`, `2 shards`.
pub fn counted(count: usize, what: &str) -> String {
    format!("{} {what}{}", grouped(count as f64), if count == 1 { "" } else { "s" })
}

/// An amount of data.
pub fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} bytes"),
        10_000..10_000_000 => format!("{:.0} kB", count as f64 / 1e3),
        _ => format!("{:.0} MB", count as f64 / 1e6),
    }
}

fn warnings(comparison: &Comparison) -> String {
    let all: Vec<(Option<&str>, &Warning)> = comparison.all_warnings().collect();
    let mut out = list(&all);
    if !comparison.is_reliable() {
        out += "\nThese results are not to be trusted as they stand (exit code 1): see what is marked unreliable.\n";
    }
    out
}

/// Warnings, the worst first; those that say the same of many shards in one entry.
pub fn list(all: &[(Option<&str>, &Warning)]) -> String {
    let mut out = String::new();
    for level in [Level::Unreliable, Level::Caution, Level::Note] {
        let mut groups: Vec<Vec<(Option<&str>, &Warning)>> = Vec::new();
        for &(model, warning) in all.iter().filter(|(_, w)| w.level == level) {
            let same = |g: &&mut Vec<(Option<&str>, &Warning)>| {
                let (first_model, first) = g[0];
                first_model == model
                    && first.code == warning.code
                    && first.shard.is_some()
                    && warning.shard.is_some()
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.push((model, warning)),
                None => groups.push(vec![(model, warning)]),
            }
        }
        for group in groups {
            out.push('\n');
            out += &entry(&group);
        }
    }
    out
}

fn entry(group: &[(Option<&str>, &Warning)]) -> String {
    let (model, first) = group[0];
    let mut subject = model.map(|m| format!("model `{m}`, ")).unwrap_or_default();
    let message = &first.message;
    if let Some(shard) = first.shard {
        if group.len() == 1 {
            let _ = write!(subject, "shard {shard}: ");
        } else {
            let shards: Vec<String> =
                group.iter().take(8).filter_map(|(_, w)| w.shard).map(|s| s.to_string()).collect();
            let more = if group.len() > 8 { ", …" } else { "" };
            let _ = write!(
                subject,
                "{} shards ({}{more}), the first: ",
                group.len(),
                shards.join(", ")
            );
        }
    } else if model.is_some() {
        subject.truncate(subject.len() - 2);
        subject += ": ";
    }
    format!(
        "{} [{}] {subject}{message}.\n  {}.\n",
        first.level,
        first.code,
        upper_first(&first.advice)
    )
}

/// The text with its first letter in upper case, unless it names code.
fn upper_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |c| c.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(grouped(327346.0), "327,346");
        assert_eq!(grouped(999.0), "999");
        assert_eq!(estimate(Estimate::new(-147546.42149, 0.0049)), "-147546.4215 ± 0.0049");
        assert_eq!(estimate(Estimate::new(-3.2, 0.5)), "-3.20 ± 0.50");
        assert_eq!(estimate(Estimate { value: -3.2, se: None }), "-3.200 (no error bar)");
        assert_eq!(probability(0.25), "0.2500");
        assert_eq!(probability(1.5e-9), "1.5e-9");
    }

    #[test]
    fn the_same_warning_of_many_shards_is_one_entry() {
        let warnings: Vec<Warning> = (0..12)
            .map(|s| Warning::new(Level::Caution, "few-rows", "has 3 rows", "use fewer").shard(s))
            .collect();
        let all: Vec<(Option<&str>, &Warning)> = warnings.iter().map(|w| (Some("m"), w)).collect();
        let text = list(&all);
        assert_eq!(text.matches("caution [few-rows]").count(), 1);
        assert!(
            text.contains(
                "model `m`, 12 shards (0, 1, 2, 3, 4, 5, 6, 7, …), the first: has 3 rows."
            )
        );
    }
}
