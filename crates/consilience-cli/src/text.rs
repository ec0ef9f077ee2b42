//! A comparison as a table with what should be known about it below.

pub mod layout;
mod tables;
mod warnings;

pub use layout::table;
pub use warnings::{ShardNames, list, list_of};

use consilience::Warning;
use consilience::compare::{Comparison, ModelResult, times};
use consilience::estimate::Estimate;
use layout::{fitted, wrapped};
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
    /// Whether probabilities have a bar beside them: for a terminal.
    pub bars: bool,
    /// How wide all of it may be.
    pub width: usize,
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
    let (names, rows) = (ShardNames::of(partition), grouped(rows));
    let shards = counted(partition.shards, "shard");
    let _ = match partition.by.as_str() {
        "site" => {
            let sites = counted(partition.shards, "site");
            writeln!(out, "{rows} rows{weighted} at {sites} (partition {})\n", partition.hash)
        }
        by => {
            let hash = &partition.hash;
            writeln!(out, "{rows} rows{weighted} in {shards} (by {by}, partition {hash})\n")
        }
    };
    out += &models(comparison, tables);
    let said = verdict(comparison, tables.width);
    if !said.is_empty() {
        let _ = write!(out, "\n{said}\n");
    }
    out += &crate::decomposition::of(comparison);
    if tables.bayes_factors {
        out += &tables::bayes_factors(comparison);
    }
    if tables.parameters {
        out += &tables::parameters(comparison);
        out += &tables::averages(comparison);
    }
    out += &tables::prior_sensitivity(comparison);
    out += &tables::leave_one_out(comparison, &names);
    if !tables.written.is_empty() {
        let files: Vec<String> = tables.written.iter().map(|f| f.display().to_string()).collect();
        let _ = write!(out, "\nPosterior draws: {}\n", files.join(", "));
    }
    let _ = write!(
        out,
        "\n{}, {} to each {} and {} back",
        counted(comparison.rounds as usize, "round"),
        bytes(comparison.traffic.bytes_sent / partition.shards.max(1) as u64),
        names.what(),
        bytes(comparison.traffic.bytes_received / partition.shards.max(1) as u64)
    );
    let _ = match comparison.seconds {
        Some(seconds) => writeln!(out, ", {seconds:.1} s"),
        None => writeln!(out),
    };
    out += &closing(comparison, &names, tables.width);
    out
}

/// The models, the most probable first, with as much about each as there is room for.
fn models(comparison: &Comparison, tables: &Tables) -> String {
    let head = [
        "model",
        "log evidence",
        "log Bayes factor",
        "against it",
        "odds",
        "prior",
        "probability",
        "95% interval",
        "parameters",
    ];
    let mut rows = vec![head.map(String::from)];
    let order = comparison.order();
    let first = comparison.models[0].prior_probability;
    let unequal = comparison.models.iter().any(|m| (m.prior_probability - first).abs() > 1e-12);
    for (place, &i) in order.iter().enumerate() {
        let model = &comparison.models[i];
        let odds = || format!("1:{}", times(-model.log_odds.value));
        rows.push([
            model.name.clone(),
            brief(model.log_evidence),
            bayes_factor(model.log_bayes_factor),
            model.strength.map_or(String::new(), |s| s.short().into()),
            if place == 0 { String::new() } else { odds() },
            if unequal { probability(model.prior_probability) } else { String::new() },
            probability(model.probability),
            model.probability_interval.map_or("unknown".into(), interval),
            free(model).to_string(),
        ]);
    }
    let probabilities: Vec<f64> = order.iter().map(|&i| comparison.models[i].probability).collect();
    let drawn = tables.bars.then(|| with_bars(&rows, &probabilities, tables.width)).flatten();
    drawn.unwrap_or_else(|| fitted(&rows, SPARE, tables.width))
}

/// Columns of the models that can be done without, the most important first: the log Bayes factor, the interval, odds, what
/// is against a model, the prior and the number of parameters.
const SPARE: &[usize] = &[2, 7, 4, 3, 8];

/// The column of probabilities.
const PROBABILITY: usize = 6;

/// The table with a bar beside the probabilities: a long one in a column of its own where there is room for that beside
/// all that is said, or a short one before each number, which comes before intervals but not before log Bayes factors.
fn with_bars(rows: &[[String; 9]], probabilities: &[f64], width: usize) -> Option<String> {
    let plain = layout::whole(rows, SPARE, width)?;
    let own_column: Vec<Vec<String>> = rows
        .iter()
        .zip(bars(probabilities, 20))
        .map(|(row, bar)| [&row[..], &[bar]].concat())
        .collect();
    let long = layout::whole(&own_column, &[2, 7, 4, 3, 9, 8], width);
    // Bars of numbers of one width stand below each other.
    let numbers = rows[1..].iter().map(|row| layout::measure(&row[PROBABILITY])).max().unwrap_or(0);
    let short = |length: usize| {
        let mut rows: Vec<Vec<String>> = rows.iter().map(|row| row.to_vec()).collect();
        for (row, bar) in rows.iter_mut().zip(bars(probabilities, length)).skip(1) {
            row[PROBABILITY] = format!("{bar} {:>numbers$}", row[PROBABILITY]);
        }
        layout::whole(&rows, SPARE, width)
    };
    let compares = |table: &String| table.lines().next().is_some_and(|l| l.contains(&rows[0][2]));
    let fine =
        |table: &String| table.contains(['█', '·']) && (compares(table) || !compares(&plain));
    long.filter(fine).or_else(|| [8, 6].into_iter().find_map(|length| short(length).filter(fine)))
}

/// A bar for each probability, below an empty head.
fn bars(probabilities: &[f64], length: usize) -> impl Iterator<Item = String> {
    let bars = probabilities.iter().map(move |p| bar(*p, length));
    std::iter::once(String::new()).chain(bars)
}

/// A probability as a bar; that of 1 is so long.
fn bar(p: f64, length: usize) -> String {
    let filled = (p.clamp(0.0, 1.0) * length as f64).round() as usize;
    format!("{}{}", "█".repeat(filled), "·".repeat(length - filled))
}

fn free(model: &ModelResult) -> usize {
    model.parameters.iter().filter(|p| p.sd > 0.0).count()
}

/// A probability's interval; nothing where its ends look the same.
fn interval(ends: [f64; 2]) -> String {
    let [low, high] = ends.map(probability);
    if low == high { String::new() } else { format!("{low} to {high}") }
}

/// Which model is the best, how strong the evidence for it is, and how sure that is; nothing of a model alone.
pub fn verdict(comparison: &Comparison, width: usize) -> String {
    let Some(sentence) = &comparison.best.sentence else { return String::new() };
    let sure = match comparison.best.certainty {
        None => "Without error bars it cannot be told how sure it is which comes first.".into(),
        Some(p) if p > 0.9999 => "The Monte Carlo errors are too small to change that.".into(),
        Some(p) => format!(
            "Given the Monte Carlo errors, `{}` truly comes first with probability {p:.4}.",
            comparison.best.name
        ),
    };
    // Results that are not to be trusted have no errors that could be.
    let sure = if comparison.is_reliable() { format!(" {sure}") } else { String::new() };
    wrapped(&format!("{sentence}{sure}"), 0, width)
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

/// The same with four decimals at most, which are enough to compare models by.
pub fn brief(of: Estimate) -> String {
    match of.se {
        Some(se) if (5e-5..1e-3).contains(&se) => format!("{:.4} ± {se:.4}", of.value),
        _ => estimate(of),
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
    if factor == Estimate::ZERO { "0 (best)".into() } else { brief(factor) }
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

fn closing(comparison: &Comparison, names: &ShardNames, width: usize) -> String {
    let all: Vec<(Option<&str>, &Warning)> = comparison.all_warnings().collect();
    let mut out = list_of(&all, names, width);
    if !comparison.is_reliable() {
        out += &distrust(width);
    }
    out
}

/// What stands below results that are not to be trusted.
pub fn distrust(width: usize) -> String {
    let text = "These results are not to be trusted as they stand (exit code 1): see what is marked unreliable.";
    format!("\n{}\n", wrapped(text, 0, width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stand_where_there_is_room() {
        let row = |cells: [&str; 9]| cells.map(String::from);
        let table = |interval: &str| {
            [
                row([
                    "model",
                    "log evidence",
                    "log Bayes factor",
                    "against it",
                    "odds",
                    "prior",
                    "probability",
                    "95% interval",
                    "parameters",
                ]),
                row([
                    "one slope",
                    "-147111.9812 ± 0.0071",
                    "0 (best)",
                    "",
                    "",
                    "",
                    "0.9000",
                    interval,
                    "18",
                ]),
                row([
                    "a slope per carrier",
                    "-147546.42 ± 0.01",
                    "-434.44 ± 0.01",
                    "very strong",
                    "1:9",
                    "",
                    "0.1000",
                    interval,
                    "34",
                ]),
            ]
        };
        let (plain, sure) = (table("0.8800 to 0.9200"), table(""));
        let at = |rows: &[[String; 9]], width| with_bars(rows, &[0.9, 0.1], width);
        let bars = |text: &str| text.chars().filter(|c| "█·".contains(*c)).count();
        // All of it with a long bar, at 100 a short one.
        let all = at(&plain, 160).unwrap();
        assert!(bars(&all) == 40 && all.contains("very strong"), "{all}");
        let hundred = at(&sure, 100).unwrap();
        assert!(bars(&hundred) == 16 && hundred.contains("███████· 0.9000"), "{hundred}");
        assert!(hundred.contains("-434.44") && hundred.lines().all(|l| layout::measure(l) <= 100));
        // At 80, before the interval, but not in the place of what matters more.
        for rows in [&plain, &sure] {
            let eighty = at(rows, 80).unwrap();
            assert!((12..=16).contains(&bars(&eighty)), "{eighty}");
            assert!(eighty.contains("-434.44") && !eighty.contains("0.8800"), "{eighty}");
            assert!(eighty.lines().all(|l| layout::measure(l) <= 80), "{eighty}");
        }
        let cut = |lengths: [usize; 3]| {
            plain.clone().map(|mut row| {
                row.iter_mut().zip(lengths).for_each(|(cell, length)| cell.truncate(length));
                row
            })
        };
        let eighty = at(&cut([5, 10, 8]), 80).unwrap();
        assert!(eighty.contains("0.8800 to 0.9200") && bars(&eighty) == 16, "{eighty}");
        let mut wide = plain.clone();
        wide.iter_mut().for_each(|row| row[0] = format!("{:7}{}", "", row[0]));
        wide[2][0] = "a slope per carrier, and more".into();
        assert!(layout::whole(&wide, SPARE, 80).is_some_and(|t| !t.contains("-434.44")));
        assert!(at(&wide, 80).is_some_and(|table| bars(&table) == 16), "where no factor has room");
        wide[2][0] = "a slope per carrier of xy".into();
        assert!(layout::whole(&wide, SPARE, 80).is_some_and(|t| t.contains("-434.44")));
        assert_eq!(at(&wide, 80), None, "a bar is not worth a factor");
    }

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
}
