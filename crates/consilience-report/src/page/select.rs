//! The page of a choice among many models.

use super::html::{Sections, Table, figure, list, paragraph, shortened};
use super::{Parts, effort, split, warnings};
use crate::Document;
use crate::document::Level;
use crate::document::select::{Select, name};
use crate::text::{counted, escape, fixed, grouped, probability, significant};

pub(super) fn content(document: &Document, d: &Select) -> Parts {
    let mut sections = Sections::default();
    let reliable = d.warnings.iter().all(|w| w.level != Level::Unreliable);
    sections.add("terms", "Terms", figure(document, "inclusion", Some(inclusion(d))));
    let mut models = figure(document, "models", Some(listed(d)));
    models += &list(&[
        ("All other models together", uncertain(d.outside.value, d.outside.se)),
        (
            "In models not looked at",
            if d.unseen.value > 0.0 {
                uncertain(d.unseen.value, d.unseen.se)
            } else {
                String::new()
            },
        ),
        ("log p(data), over all models", d.log_normaliser.map_or(String::new(), |e| e.show())),
    ]);
    models += &named(d);
    sections.add("listed", "Models", models);
    sections.add("number", "Number of terms", figure(document, "sizes", Some(sizes(d))));
    sections.add("values", "Coefficients", figure(document, "coefficients", Some(coefficients(d))));
    sections.add("quality", "How well the numbers are known", quality(d));
    let all: Vec<_> = d.warnings.iter().map(|w| (None, w)).collect();
    sections.add("warnings", "Warnings", warnings::html(document, &all));
    let mut facts = vec![
        ("Outcome", d.outcome.clone()),
        ("Family", d.family.clone()),
        ("In every model", d.always.clone()),
        ("Prior over models", d.prior.clone()),
        ("Heredity", d.heredity.clone()),
        ("Method", d.method.clone()),
    ];
    facts.extend(split(&d.partition));
    facts.extend(effort(&d.traffic, d.partition.shards, d.seconds));
    let candidates = counted(d.inclusion.len(), "term");
    let rows = counted(usize::try_from(d.partition.rows).unwrap_or(usize::MAX), "row");
    let shards = counted(usize::try_from(d.partition.shards).unwrap_or(usize::MAX), "shard");
    Parts {
        title: format!("Which of {candidates} belong in the model of {}?", shortened(&d.outcome)),
        subtitle: format!(
            "{rows} in {shards}, split by {}; {} models",
            d.partition.by,
            many(d.space)
        ),
        answer: answer(d),
        reliable,
        sections,
        facts,
    }
}

fn many(count: f64) -> String {
    if count < 1e12 { grouped(count) } else { significant(count, 2) }
}

fn uncertain(p: f64, se: Option<f64>) -> String {
    let p = p.max(0.0);
    match se {
        Some(se) if se > 0.0 => format!("{} ± {}", probability(p), significant(se, 1)),
        _ => probability(p),
    }
}

fn answer(d: &Select) -> String {
    let some = |from: f64, to: f64| -> Vec<String> {
        let order = d.order().into_iter().map(|i| &d.inclusion[i]);
        order
            .filter(|t| t.probability >= from && t.probability < to)
            .map(|t| t.term.clone())
            .collect()
    };
    let (sure, open, out) =
        (some(0.95, f64::INFINITY), some(0.05, 0.95), some(f64::NEG_INFINITY, 0.05));
    let names = |terms: &[String]| -> String {
        let shown: Vec<String> = terms.iter().take(8).map(|t| escape(&shortened(t))).collect();
        let more = terms.len().saturating_sub(8);
        format!(
            "{}{}",
            shown.join(", "),
            if more > 0 { format!(" and {more} more") } else { String::new() }
        )
    };
    let mut parts = Vec::new();
    if sure.is_empty() {
        parts.push("<p>No term belongs in beyond doubt.</p>\n".to_string());
    } else {
        parts.push(format!(
            "<p>In with probability 0.95 or more: <strong>{}</strong>.</p>\n",
            names(&sure)
        ));
    }
    if !open.is_empty() {
        parts.push(format!("<p>Open (0.05 to 0.95): {}.</p>\n", names(&open)));
    }
    if !out.is_empty() {
        parts.push(format!("<p>Out (under 0.05): {}.</p>\n", names(&out)));
    }
    let first = d.models.first().map_or(0.0, |m| m.probability);
    let advice = match first {
        0.5.. => "holds most of the probability",
        0.1.. => "does not have the data behind it alone: ask for terms, not for the one model",
        _ => "holds little: many models are about as likely, so ask for terms",
    };
    parts.push(format!(
        "<p>The likeliest single model, {}, has probability {}: it {advice}. The median model, best for prediction if one must be taken, is {}.</p>\n",
        escape(&shortened(&name(&d.best_model))),
        escape(&probability(first)),
        escape(&shortened(&name(&d.median_model)))
    ));
    parts.concat()
}

fn inclusion(d: &Select) -> Table {
    let mut table = Table::new(
        "Probability that each term belongs in.",
        &["term", "probability", "standard error", "before the data"],
    );
    for i in d.order() {
        let t = &d.inclusion[i];
        table.rows.push(vec![
            t.term.clone(),
            probability(t.probability.max(0.0)),
            t.se.map_or_else(|| "–".into(), |se| significant(se, 2)),
            t.prior.map_or_else(|| "–".into(), |p| fixed(p, 4)),
        ]);
    }
    table
}

fn listed(d: &Select) -> Table {
    let mut table = Table::new("The likeliest models.", &["model", "probability", "log evidence"]);
    for m in &d.models {
        let evidence = m.log_evidence.map(|value| crate::text::estimate(value, m.log_evidence_se));
        table.rows.push(vec![
            name(&m.terms),
            uncertain(m.probability, m.se),
            evidence.unwrap_or_default(),
        ]);
    }
    table
}

fn named(d: &Select) -> String {
    if d.named.is_empty() {
        return String::new();
    }
    let head = ["model", "log evidence", "log Bayes factor", "probability"];
    let mut table = Table::new("Models that were named, each against the first.", &head);
    for m in &d.named {
        table.rows.push(vec![
            name(&m.terms),
            m.log_evidence.show(),
            m.log_bayes_factor.show(),
            m.probability.map_or(String::new(), |p| probability(p.max(0.0))),
        ]);
    }
    table.html()
}

fn sizes(d: &Select) -> Table {
    let mut table = Table::new("Probability of each number of terms.", &["terms", "probability"]);
    for (k, size) in d.sizes.iter().enumerate() {
        table.rows.push(vec![k.to_string(), uncertain(size.value, size.se)]);
    }
    table
}

fn coefficients(d: &Select) -> Table {
    let head = ["coefficient", "belongs in", "mean", "sd", "mean if in", "sd if in"];
    let mut table = Table::new(
        "Coefficients averaged over all models, 0 where they are not in, and over those that have them.",
        &head,
    );
    let shown = |v: Option<f64>| v.map_or_else(|| "–".into(), |v| significant(v, 4));
    for c in &d.coefficients {
        table.rows.push(vec![
            c.name.clone(),
            if c.term.is_none() { "always".into() } else { probability(c.inclusion.max(0.0)) },
            significant(c.mean, 4),
            significant(c.sd, 4),
            shown(c.mean_if_in),
            shown(c.sd_if_in),
        ]);
    }
    table
}

fn quality(d: &Select) -> String {
    let q = &d.diagnostics;
    let verdict = match (q.ess, q.k_hat) {
        (Some(ess), _) if ess < 100.0 => {
            "There are too few effective draws to trust these numbers."
        }
        (_, Some(k)) if k > 0.7 => "A few weights dominate: the standard errors mean little.",
        (None, _) => "The models were summed up without draws.",
        _ => "Weights are even and draws are plenty.",
    };
    let count = |v: Option<f64>| v.map_or(String::new(), grouped);
    paragraph(verdict)
        + &list(&[
            ("Models looked at", many(q.models)),
            ("Pairs of draws", count(q.pairs.map(|p| p as f64))),
            ("Worth", count(q.ess)),
            ("k̂ (over 0.7 is too much)", q.k_hat.map_or(String::new(), |k| fixed(k, 2))),
        ])
}
