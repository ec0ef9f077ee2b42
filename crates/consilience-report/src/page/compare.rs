//! The page of a comparison.

use super::compare_tables as tables;
use super::html::{Sections, Table, figure, paragraph, shortened};
use super::{Parts, effort, split, warnings};
use crate::Document;
use crate::document::Level;
use crate::document::compare::Compare;
use crate::figures::compare::verdict;
use crate::text::{counted, escape, fixed, probability};

pub(super) fn content(document: &Document, d: &Compare) -> Parts {
    let mut sections = Sections::default();
    let all = d.all_warnings();
    let reliable = all.iter().all(|(_, w)| w.level != Level::Unreliable);
    let draw = |kind: &str, table: Table| figure(document, kind, Some(table));
    sections.add("models", "Model probabilities", draw("probabilities", tables::probabilities(d)));
    sections.add(
        "log-evidence",
        "Log evidence",
        draw("evidence", tables::evidence(d)) + &draw("bayes-factors", tables::bayes_factors(d)),
    );
    let parts = draw("decomposition", tables::decomposition(d))
        + &draw("shards", tables::shards(document, d));
    sections.add("sources", "Where the evidence comes from", parts);
    sections.add(
        "shards-agree",
        "Agreement of the shards",
        draw("agreement", tables::agreement(document, d)),
    );
    let mut parameters = draw("parameters", tables::parameters(d));
    if let Some(reason) = &d.averages.reason {
        parameters += &paragraph(&format!("No averages over the models: {}.", shortened(reason)));
    }
    sections.add("estimates", "Parameters", parameters);
    let sensitivity = draw("prior-scale", tables::prior_scale(d))
        + &draw("leave-one-out", tables::leave_one_out(document, d));
    sections.add("sensitivity", "Does it depend on priors or single shards?", sensitivity);
    sections.add("quality", "How well the numbers are known", quality(d));
    sections.add("warnings", "Warnings", warnings::html(document, &all));
    let mut facts = split(&d.partition);
    facts.extend(effort(&d.traffic, d.partition.shards, d.seconds));
    let best = &d.models[d.best()];
    let title = match d.models.len() {
        1 => format!("The evidence of “{}”", best.name),
        n => format!("Which of {} do the data support?", counted(n, "model")),
    };
    let rows = counted(usize::try_from(d.partition.rows).unwrap_or(usize::MAX), "row");
    let shards = counted(usize::try_from(d.partition.shards).unwrap_or(usize::MAX), "shard");
    Parts {
        title,
        subtitle: format!("{rows} in {shards}, split by {}", d.partition.by),
        answer: answer(d),
        reliable,
        sections,
        facts,
    }
}

/// The answer in a sentence, its strength, and how sure it is.
fn answer(d: &Compare) -> String {
    let best = &d.models[d.best()];
    let name = escape(&shortened(&best.name));
    let Some(second) = d.second().map(|i| &d.models[i]) else {
        return format!(
            "<p>The log evidence of <strong>{name}</strong> is {}.</p>\n",
            escape(&best.log_evidence.show())
        );
    };
    let other = escape(&shortened(&second.name));
    let mut out = format!(
        "<p>The most probable model is <strong>{name}</strong>, with probability {}.</p>\n",
        escape(&probability(best.probability))
    );
    let factor = best.log_evidence.less(second.log_evidence);
    out += &match &second.strength {
        Some(strength) if best.strength.is_none() => {
            super::strength::sentence(&second.name, strength, factor)
        }
        _ => format!(
            "<p>The log Bayes factor against the next one, {other}, is {}. The prior probabilities of the models decide which of the two comes first.</p>\n",
            escape(&factor.show())
        ),
    };
    let sure = match d.best.certainty {
        None => "Without error bars it cannot be told how sure that is.".into(),
        Some(p) if p > 0.9999 => "The Monte Carlo errors are too small to change that.".into(),
        Some(p) => format!(
            "Given the Monte Carlo errors, it truly comes first with probability {}.",
            fixed(p, 4)
        ),
    };
    out + &paragraph(&sure)
}

/// Draws, weights and chains as a table with words.
fn quality(d: &Compare) -> String {
    let head = ["model", "how", "draws", "worth", "k̂", "R̂", "in words"];
    let mut table = Table::new(
        "“Worth”: as many independent draws. Over 0.7 for k̂ and 1.05 for R̂ is too much.",
        &head,
    );
    table.words = vec![1, 6];
    let mut worst = 0;
    for i in d.order() {
        let verdict = verdict(&d.models[i]);
        worst = worst.max(verdict.grade);
        let mark = ["✓ ", "△ ", "■ "][verdict.grade.min(2)];
        table.rows.push(vec![
            d.models[i].name.clone(),
            verdict.method,
            verdict.draws,
            verdict.worth,
            verdict.k_hat,
            verdict.r_hat,
            format!("{mark}{}", verdict.words),
        ]);
    }
    let said = match worst {
        0 => "Draws, weights and chains are fine for every model.",
        1 => "Some weights or chains are worth a look, marked with a triangle.",
        _ => "Models marked with a square have draws that are not to be trusted.",
    };
    paragraph(said) + &table.html()
}
