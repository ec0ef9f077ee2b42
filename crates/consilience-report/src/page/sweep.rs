//! The page of a sweep over partitions.

use super::html::{Sections, Table, figure, fold, paragraph, shortened, with_code};
use super::{Parts, strength, warnings};
use crate::Document;
use crate::document::Level;
use crate::document::sweep::{Advice, Group, GroupModel, Sweep};
use crate::text::{counted, escape, fixed, grouped, significant};
use std::fmt::Write;

pub(super) fn content(document: &Document, d: &Sweep) -> Parts {
    let mut sections = Sections::default();
    let reliable = d.warnings.iter().all(|w| w.level != Level::Unreliable);
    sections.add("advice", "What to do", advice(d));
    let draw = |kind: &str| figure(document, kind, numbers(d, kind));
    sections.add("choice", "Which model is chosen", draw("choices"));
    sections.add("errors", "Errors in log evidence", draw("error") + &draw("rmse"));
    sections.add("factors", "Bayes factors", draw("bayes-factor"));
    let sources = draw("epsilon") + &draw("overlap-share");
    sections.add("sources", "Where the errors come from", sources);
    sections.add("cost", "Time", draw("time"));
    sections.add("by-number", "By number of shards", by_number(d));
    let all: Vec<_> = d.warnings.iter().map(|w| (None, w)).collect();
    sections.add("warnings", "Warnings", warnings::html(document, &all));
    Parts {
        title: "How many shards can the data be split into?".into(),
        subtitle: format!(
            "{} on {}: {} shards, {} each",
            counted(d.models.len(), "model"),
            counted(d.cells.len(), "partition"),
            shard_numbers(d),
            counted(usize::try_from(d.repeats).unwrap_or(usize::MAX), "repeat")
        ),
        answer: answer(d),
        reliable,
        sections,
        facts: facts(d),
    }
}

fn shard_numbers(d: &Sweep) -> String {
    let numbers: Vec<String> = d.shards.iter().take(30).map(|s| grouped(*s as f64)).collect();
    numbers.join(", ")
}

/// What helps to repeat it.
pub(super) fn facts(d: &Sweep) -> Vec<(&'static str, String)> {
    let rows = d.cells.first().map_or(String::new(), |c| grouped(c.rows));
    let seeds: Vec<String> = d.cells.iter().take(200).map(|c| c.split_seed.to_string()).collect();
    let mut seeds: Vec<&str> = seeds.iter().map(String::as_str).collect();
    seeds.sort_unstable();
    seeds.dedup();
    seeds.truncate(30);
    vec![
        ("Rows", rows),
        ("Numbers of shards", shard_numbers(d)),
        ("Ways to split", d.by.iter().take(30).cloned().collect::<Vec<_>>().join(", ")),
        ("Repeats", d.repeats.to_string()),
        ("Combinations", d.combinations.iter().take(30).cloned().collect::<Vec<_>>().join(", ")),
        ("Reference", d.reference.method.clone()),
        ("Seeds of the splits", seeds.join(", ")),
        ("Seed", d.cells.first().map_or(String::new(), |c| c.seed.to_string())),
    ]
}

/// The numbers of a kind of figure.
pub(super) fn numbers(d: &Sweep, kind: &str) -> Option<Table> {
    Some(match kind {
        "choices" => choices(d),
        "error" => cells(d),
        "rmse" => groups(d),
        "bayes-factor" => factors(d),
        "epsilon" => epsilons(d),
        "overlap-share" => overlaps(d),
        "time" => times(d),
        _ => return None,
    })
}

/// What the reference says, with how strong that is.
pub(super) fn verdict(d: &Sweep) -> String {
    let best = &d.models[d.best()];
    let reference = escape(&shortened(&d.reference.method));
    if d.reference.tells_best || d.models.len() == 1 {
        let against = d.next().map(|(next, factor)| {
            strength::sentence(&d.models[next], strength::word(factor), factor)
        });
        format!(
            "<p>By the reference ({reference}) the data support <strong>{}</strong>.</p>\n{}",
            escape(&shortened(best)),
            against.unwrap_or_default()
        )
    } else {
        format!(
            "<p>The reference ({reference}) does not tell which of its best models is better; none of them has a higher log evidence than <strong>{}</strong>.</p>\n",
            escape(&shortened(best))
        )
    }
}

pub(super) fn answer(d: &Sweep) -> String {
    let mut out = verdict(d);
    if !d.reference.tells_tenth_nat {
        return out
            + &paragraph(
                "Its standard error is too large to tell errors of 0.1 nat, so that nothing is said here of how far combinations go.",
            );
    }
    // A way to split a sentence: how far each combination goes.
    for by in d.by.iter().take(6) {
        let reach = |a: &Advice| {
            let up_to = match a.within_tenth_nat {
                None => "at no number tried".to_string(),
                Some(1) => "unsplit only".to_string(),
                Some(shards) => format!("up to {} shards", grouped(shards as f64)),
            };
            format!("{} {up_to}", shortened(&a.method))
        };
        let all: Vec<String> =
            d.advice.iter().filter(|a| a.by == *by).take(12).map(reach).collect();
        if !all.is_empty() {
            let split = shortened(by);
            out += &paragraph(&format!(
                "Split by {split}, the error of the log evidence stays below 0.1 nat: {}.",
                all.join(", ")
            ));
        }
    }
    out
}

/// At most this many sentences of advice stand open.
const OPEN: usize = 4;

fn advice(d: &Sweep) -> String {
    if d.advice.is_empty() {
        return String::new();
    }
    let mut head = vec!["method", "split by", "the log evidence is within 0.1 nat"];
    let says_factor = d.advice.iter().any(|a| a.within_bayes_factor.is_some());
    if says_factor {
        head.push("the log Bayes factor of the two best is off by less than itself");
    }
    head.push("the choice is the same");
    let mut table = Table::new("Up to how many shards each method stands.", &head);
    table.words = vec![1];
    let shown = |n: Option<u64>, told: bool| match n {
        Some(n) => grouped(n as f64),
        None if told => "none".into(),
        None => "cannot be told".into(),
    };
    for a in &d.advice {
        let mut row = vec![
            a.method.clone(),
            a.by.clone(),
            shown(a.within_tenth_nat, d.reference.tells_tenth_nat),
        ];
        let tells_best = d.reference.tells_best;
        if says_factor {
            let known = a.within_bayes_factor.filter(|_| d.models.len() > 1);
            row.push(known.map_or_else(|| "–".into(), |n| shown(n, tells_best)));
        }
        row.push(shown(a.same_choice, tells_best));
        table.rows.push(row);
    }
    let mut said = String::from("<ul>\n");
    for a in d.advice.iter().take(40) {
        let _ = writeln!(said, "<li>{}</li>", with_code(&shortened(&a.text)));
    }
    said += "</ul>\n";
    if d.advice.len() > OPEN {
        said = fold("The same in sentences", &said);
    }
    table.html() + &said
}

fn choices(d: &Sweep) -> Table {
    let mut table =
        Table::new("How often each model is chosen.", &["method", "split by", "shards"]);
    table.words = vec![1];
    table.head.extend(d.models.iter().take(12).cloned());
    for g in &d.groups {
        let mut row = named(g);
        row.extend(g.chosen.iter().take(12).map(|n| grouped(*n as f64)));
        table.rows.push(row);
    }
    table
}

fn named(g: &Group) -> Vec<String> {
    vec![g.method.clone(), g.by.clone(), grouped(g.shards as f64)]
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |v| significant(v, 3))
}

fn cells(d: &Sweep) -> Table {
    let head = [
        "method",
        "split by",
        "shards",
        "repeat",
        "model",
        "log evidence",
        "less the reference",
        "partition",
    ];
    let mut table = Table::new("Every partition.", &head);
    table.words = vec![1, 4];
    for cell in &d.cells {
        for c in &cell.combinations {
            let start = [
                c.method.clone(),
                cell.by.clone(),
                grouped(cell.shards as f64),
                cell.repeat.to_string(),
            ];
            if let Some(error) = &c.error {
                let mut row = start.to_vec();
                row.extend([
                    String::new(),
                    format!("failed: {error}"),
                    String::new(),
                    cell.partition.clone(),
                ]);
                table.rows.push(row);
            }
            for (m, model) in c.models.iter().enumerate().take(d.models.len()) {
                if table.rows.len() > 10 * super::html::MOST_ROWS {
                    return table;
                }
                let mut row = start.to_vec();
                let doubt = if model.unreliable { " (unreliable)" } else { "" };
                row.extend([
                    d.models[m].clone(),
                    format!("{}{doubt}", model.log_evidence.show()),
                    fixed(model.log_evidence.value - d.reference.log_evidence[m].value, 3),
                    cell.partition.clone(),
                ]);
                table.rows.push(row);
            }
        }
    }
    table
}

/// A table with a row per group of log evidences and model.
fn per_model(
    d: &Sweep,
    caption: &str,
    head: &[&str],
    of: impl Fn(&GroupModel) -> Vec<String>,
) -> Table {
    let mut all = vec!["method", "split by", "shards", "model"];
    all.extend(head);
    let mut table = Table::new(caption, &all);
    table.words = vec![1, 3];
    for g in d.evidences() {
        for (m, model) in g.models.iter().enumerate().take(d.models.len()) {
            let cells = of(model);
            if table.rows.len() > 10 * super::html::MOST_ROWS {
                return table;
            }
            if cells.iter().any(|c| c != "–") {
                let mut row = named(g);
                row.push(d.models[m].clone());
                row.extend(cells);
                table.rows.push(row);
            }
        }
    }
    table
}

fn groups(d: &Sweep) -> Table {
    per_model(
        d,
        "Errors in log evidence over the repeats, in nats.",
        &["bias", "sd", "rmse", "rmse in percent"],
        |m| vec![shown(m.bias), shown(m.sd), shown(m.rmse), shown(m.rmse_percent)],
    )
}

fn factors(d: &Sweep) -> Table {
    let caption =
        format!("Log Bayes factors of “{}” against each other model.", d.models[d.best()]);
    per_model(d, &caption, &["mean", "sd"], |m| {
        let factor = m.log_bayes_factor.as_ref();
        vec![shown(factor.map(|f| f.mean)), shown(factor.and_then(|f| f.sd))]
    })
}

fn epsilons(d: &Sweep) -> Table {
    per_model(
        d,
        "Errors of the overlap, in nats: the mean of |log I − log Î| (ε₁) and of log |I − Î| (ε₂); and log I as estimated.",
        &["ε₁", "ε₂", "log I"],
        |m| vec![shown(m.epsilon1), shown(m.epsilon2), shown(m.overlap)],
    )
}

fn overlaps(d: &Sweep) -> Table {
    per_model(d, "The overlap's share of the log evidence.", &["share"], |m| {
        vec![shown(m.overlap_share)]
    })
}

fn times(d: &Sweep) -> Table {
    let mut table =
        Table::new("CPU seconds.", &["split by", "shards", "slowest shard", "all shards"]);
    for t in d.times.iter().flatten() {
        table.rows.push(vec![
            t.by.clone(),
            grouped(t.shards as f64),
            significant(t.slowest_shard, 3),
            significant(t.all_shards, 3),
        ]);
    }
    table
}

/// A table for every number of shards.
fn by_number(d: &Sweep) -> String {
    let mut out = String::new();
    for shards in d.shards.iter().take(40) {
        let title = counted(usize::try_from(*shards).unwrap_or(usize::MAX), "shard");
        let mut table = Table::new(
            &format!("With {title}: what each method gives over the repeats."),
            &[
                "method",
                "split by",
                "score",
                "partitions",
                "failed",
                "unreliable",
                "chosen most often",
            ],
        );
        table.words = vec![1, 2, 6];
        for g in d.groups.iter().filter(|g| g.shards == *shards) {
            let most = g.chosen.iter().copied().max().filter(|n| *n > 0);
            let first = most.and_then(|n| g.chosen.iter().position(|c| *c == n));
            let name = first.and_then(|i| d.models.get(i)).cloned().unwrap_or_default();
            table.rows.push(vec![
                g.method.clone(),
                g.by.clone(),
                g.score.clone(),
                grouped(g.counted as f64),
                grouped(g.failed as f64),
                grouped(g.unreliable as f64),
                most.map_or(String::new(), |n| format!("{name} ({n} times)")),
            ]);
        }
        if !table.rows.is_empty() {
            out += &fold(&title, &table.html());
        }
    }
    out
}
