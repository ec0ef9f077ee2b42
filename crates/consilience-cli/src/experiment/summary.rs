//! What an experiment shows, in a table beside the paper's numbers.

use super::jump::METHODS;
use super::setups::Experiment;
use crate::text::short;
use consilience::sweep::{CellGroup, Document, GroupModel};
use std::fmt::Write;

/// A line: what is meant, what the paper says, what came out here.
pub type Row = [String; 3];

/// The columns of such lines.
pub const HEAD: [&str; 3] = ["what", "paper", "here"];

/// The summary as Markdown.
pub fn of(experiment: &Experiment, documents: &[Document]) -> String {
    let mut out = format!(
        "# Experiment {}: {}\n\n{}\n",
        experiment.number, experiment.title, experiment.says
    );
    for (part, document) in experiment.parts.iter().zip(documents) {
        let _ = write!(out, "\n## {}\n\n{}\n\n", upper_first(&part.title), size(document));
        let _ = writeln!(out, "| {} |\n|---|---|---|", HEAD.join(" | "));
        for [what, paper, here] in rows(experiment, document) {
            let _ = writeln!(out, "| {what} | {paper} | {here} |");
        }
    }
    out
}

/// How large a part is.
pub fn size(document: &Document) -> String {
    let rows = document.cells.first().map_or(0, |cell| cell.rows);
    format!("{rows} rows, {} partitions for each number of shards.", document.repeats)
}

/// The lines of a part.
pub fn rows(experiment: &Experiment, document: &Document) -> Vec<Row> {
    match experiment.number {
        1 => votes(document),
        2 => flights(document),
        3 => factors(document),
        4 => collisions(document),
        5 => sparse(document),
        _ => jumps(document),
    }
}

/// The text with its first letter in upper case.
pub fn upper_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |c| c.to_uppercase().chain(letters).collect())
}

fn row(what: impl Into<String>, paper: impl Into<String>, here: impl Into<String>) -> Row {
    [what.into(), paper.into(), here.into()]
}

fn group<'a>(
    document: &'a Document,
    by: &str,
    shards: usize,
    method: &str,
) -> Option<&'a CellGroup> {
    document.groups.iter().find(|g| g.by == by && g.shards == shards && g.method == method)
}

/// A number for every number of shards: `5: 20, 10: 3`.
fn over_shards(document: &Document, of: impl Fn(usize) -> Option<String>) -> String {
    let one = |&shards: &usize| Some(format!("{shards}: {}", of(shards)?));
    document.shards.iter().filter_map(one).collect::<Vec<_>>().join(", ")
}

/// The same of one model of a method.
fn model_over_shards(
    document: &Document,
    by: &str,
    method: &str,
    k: usize,
    pick: impl Fn(&GroupModel) -> Option<f64>,
) -> String {
    over_shards(document, |shards| {
        Some(short(pick(group(document, by, shards, method)?.models.get(k)?)))
    })
}

/// The largest error of all models, over numbers of shards.
fn largest(
    document: &Document,
    by: &str,
    method: &str,
    pick: impl Fn(&GroupModel) -> Option<f64>,
) -> String {
    over_shards(document, |shards| {
        let models = &group(document, by, shards, method)?.models;
        Some(short(
            models.iter().filter_map(&pick).reduce(|a, b| if b.abs() > a.abs() { b } else { a }),
        ))
    })
}

fn references(document: &Document, paper: &[&str]) -> Vec<Row> {
    let all = document.models.iter().zip(&document.reference.log_evidence).enumerate();
    all.map(|(k, (name, value))| {
        row(
            format!("log evidence of `{name}`, by `exact`"),
            paper.get(k).copied().unwrap_or("not given"),
            crate::text::estimate(*value),
        )
    })
    .collect()
}

fn votes(document: &Document) -> Vec<Row> {
    let best = document.reference.best;
    let chosen = |method: &str| {
        over_shards(document, |shards| {
            let group = group(document, "random", shards, method)?;
            Some(format!("{} of {}", group.chosen[best], group.counted))
        })
    };
    let mut rows = vec![
        row(
            "majority vote for the right model (shards: partitions)",
            "right at few splits, wrong from 10 on",
            chosen("majority vote"),
        ),
        row("Borda count for the right model", "the same", chosen("Borda count")),
        row(
            "product of local probabilities for it",
            "not tried",
            chosen("product of local probabilities"),
        ),
        row("`normal` for it", "not shown", chosen("normal")),
    ];
    for method in [
        "upsampled mean",
        "upsampled median",
        "upsampled mean of logs",
        "normal-uncorrected",
        "normal",
        "cmc-is",
    ] {
        let paper = match method {
            "upsampled mean" | "upsampled median" => "unstable at 50",
            "cmc-is" => "more stable than normals",
            "normal-uncorrected" => "small downward bias",
            _ => "not tried",
        };
        let bias = model_over_shards(document, "random", method, best, |m| m.errors.bias);
        rows.push(row(format!("bias of `{method}`, right model (nats)"), paper, bias));
    }
    rows
}

fn flights(document: &Document) -> Vec<Row> {
    let mut rows =
        references(document, &["-147548 (a line in a figure; less log 5, see docs)", "not given"]);
    for by in &document.by {
        for method in document.combinations.iter().filter(|m| *m != "exact") {
            for (k, name) in document.models.iter().enumerate() {
                let bias = model_over_shards(document, by, method, k, |m| m.errors.bias);
                let percent = model_over_shards(document, by, method, k, |m| m.errors.rmse_percent);
                rows.push(row(
                    format!("bias of `{method}`, split by {by}, `{name}` (nats; then RMSE in %)"),
                    "less than 0.5% at 50",
                    format!("{bias}; {percent}"),
                ));
            }
        }
    }
    rows
}

fn factors(document: &Document) -> Vec<Row> {
    let best = document.reference.best;
    let mut rows = Vec::new();
    for method in ["normal-uncorrected", "normal"] {
        rows.push(row(
            format!("RMSE of `{method}` in %, largest of all models"),
            "below 0.02 (around its own mean)",
            largest(document, "random", method, |m| m.errors.rmse_percent),
        ));
    }
    let share = largest(document, "random", "normal", |m| m.overlap_share.map(|s| 100.0 * s));
    rows.push(row("share of log I in log p(y), %", "below 2 (a figure)", share));
    for (k, name) in document.models.iter().enumerate().filter(|(k, _)| *k != best) {
        let truth =
            document.reference.log_evidence[best].value - document.reference.log_evidence[k].value;
        let means =
            model_over_shards(document, "random", "normal", k, |m| Some(m.log_bayes_factor?.mean));
        rows.push(row(
            format!("log Bayes factor against `{name}`, exact {truth:.2}"),
            "roughly constant, order kept",
            means,
        ));
    }
    rows
}

fn collisions(document: &Document) -> Vec<Row> {
    let best = document.reference.best;
    let mut rows = references(document, &[]);
    rows.push(row(
        "chosen by `exact`",
        "model 1; its labels are swapped",
        document.models[best].clone(),
    ));
    for method in ["normal-uncorrected", "normal"] {
        for (k, name) in document.models.iter().enumerate() {
            let bias = model_over_shards(document, "random", method, k, |m| m.errors.bias);
            rows.push(row(format!("bias of `{method}`, `{name}` (nats)"), "small, downward", bias));
        }
    }
    if let Some(times) = &document.times {
        let slowest = over_shards(document, |shards| {
            let own: Vec<f64> =
                times.iter().filter(|t| t.shards == shards).map(|t| t.time.slowest_shard).collect();
            Some(format!("{:.2}", own.iter().sum::<f64>() / own.len().max(1) as f64))
        });
        rows.push(row(
            "CPU seconds of the slowest shard, both models",
            "100: 5 hours, 500: 1 hour, 1000: 30 minutes (11 million rows, NUTS)",
            slowest,
        ));
    }
    rows
}

/// The paper's table: RMSE, RMSE in %, Bias²/Var of both models at 5, 10, 20 and 50 splits.
const TABLE: [[&str; 3]; 2] = [
    [
        "5: 0.959, 10: 2.726, 20: 4.537, 50: 14.989",
        "5: 0.007, 10: 0.019, 20: 0.032, 50: 0.105",
        "5: 0.04, 10: 1.32, 20: 3.71, 50: 5.44",
    ],
    [
        "5: 1.812, 10: 4.591, 20: 11.404, 50: 30.996",
        "5: 0.013, 10: 0.032, 20: 0.079, 50: 0.216",
        "5: 3.42, 10: 6.07, 20: 2.42, 50: 11.99",
    ],
];

fn sparse(document: &Document) -> Vec<Row> {
    let mut rows = references(document, &["-14,275 (RMSE/%RMSE of its table)", "-14,350"]);
    for (k, name) in document.models.iter().enumerate() {
        for method in ["normal-uncorrected", "normal"] {
            let paper =
                |j: usize| if method == "normal" { "not tried" } else { TABLE[k.min(1)][j] };
            let of = |pick: fn(&GroupModel) -> Option<f64>| {
                model_over_shards(document, "random", method, k, pick)
            };
            rows.push(row(
                format!("RMSE of `{method}`, `{name}`"),
                paper(0),
                of(|m| m.errors.rmse),
            ));
            rows.push(row("the same in %", paper(1), of(|m| m.errors.rmse_percent)));
            rows.push(row("Bias²/Var", paper(2), of(|m| m.errors.bias2_over_variance)));
        }
    }
    for line in document.lines.iter().filter(|l| l.method.starts_with("normal")) {
        let (what, paper) = match line.what {
            "epsilon1" => ("ε₁", "grows linearly"),
            _ => ("ε₂", "grows like log S"),
        };
        rows.push(row(
            format!(
                "{what} of `{}`, `{}`: growth per shard",
                line.method, document.models[line.model]
            ),
            paper,
            short(Some(line.slope)),
        ));
    }
    rows
}

fn jumps(document: &Document) -> Vec<Row> {
    // Its numbers are posterior odds of the models without x1.
    let without = document.models.iter().all(|m| !m.contains("x1"));
    let paper = if without {
        ["3.2", "3.6", "0.4"]
    } else {
        ["3.2 (see docs)", "3.6 (see docs)", "0.4 (see docs)"]
    };
    let mut rows = Vec::new();
    for (j, (a, b)) in [(0, 1), (0, 2), (1, 2)].into_iter().enumerate() {
        let reference = &document.reference.log_evidence;
        let truth = reference[a].value - reference[b].value;
        rows.push(row(
            format!(
                "log Bayes factor of {} against {}, exact",
                document.models[a], document.models[b]
            ),
            paper[j],
            format!("{truth:.2}"),
        ));
        for method in METHODS {
            let here = over_shards(document, |shards| {
                let values = factors_of(document, shards, method, a, b);
                let n = values.len() as f64;
                if values.is_empty() {
                    return Some("never".into());
                }
                let mean = values.iter().sum::<f64>() / n;
                let sd = (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n).sqrt();
                Some(format!("{mean:.2} ± {sd:.2}"))
            });
            let paper =
                if method == "Algorithm 3" { "beyond 3 splits misleading" } else { "not tried" };
            rows.push(row(format!("by {method} (mean ± sd over partitions)"), paper, here));
        }
    }
    rows
}

/// A method's log Bayes factors of two models, on every partition into so many shards that it has.
fn factors_of(document: &Document, shards: usize, method: &str, a: usize, b: usize) -> Vec<f64> {
    let cells = document.cells.iter().filter(|c| c.shards == shards);
    let votes = cells.filter_map(|c| c.votes.iter().find(|v| v.method == method));
    votes.map(|v| v.models[a].value - v.models[b].value).collect()
}
