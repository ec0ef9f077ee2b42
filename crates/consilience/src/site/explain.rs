//! What a question or answer file holds, in plain words.

use super::answer::{Asked, Prepared, prepare};
use crate::Result;
use crate::error::{clip, plain};
use crate::question::{Answer, Points, Question};
use crate::run::{AnswerFile, QuestionFile};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Describes a file.
pub fn explain(path: &Path) -> Result<String> {
    match QuestionFile::read(path) {
        Ok(file) => Ok(question_file(&file)),
        // A question is what it is not, or not a sound one; the answer's reader says more of others.
        Err(error) if crate::run::is_question(path) => Err(error),
        Err(_) => Ok(answer_file(&AnswerFile::read(path)?)),
    }
}

/// The same with all numbers, for programs: headers, questions with their points, answers. A log density of −∞ is null.
pub fn as_json(path: &Path) -> Result<Value> {
    if let Ok(file) = QuestionFile::read(path) {
        let questions: Vec<Value> = file.questions().iter().map(question_json).collect();
        let context = file.context();
        let study = context.and_then(|c| serde_json::from_str::<Value>(&c.study).ok());
        return Ok(json!({
            "file": "question", "header": file.header, "signer": file.signer, "study": study,
            "sites": context.map(|c| &c.sites), "questions": questions,
        }));
    } else if crate::run::is_question(path) {
        QuestionFile::read(path)?;
    }
    let file = AnswerFile::read(path)?;
    let answers: Vec<Value> = file
        .answers()
        .map(|reply| match reply {
            Ok(answer) => json!(answer),
            Err(failure) => json!({ "failure": failure }),
        })
        .collect();
    let (header, signer) = (&file.header, &file.signer);
    Ok(json!({ "file": "answer", "header": header, "signer": signer, "answers": answers }))
}

fn question_json(question: &Question) -> Value {
    let points = |asked: &Points| {
        let parameters: Vec<&str> = asked.model.free().map(|p| p.name.as_str()).collect();
        let thetas: Vec<&[f64]> = asked.rows().collect();
        json!({ "model": asked.model.name, "parameters": parameters, "points": thetas })
    };
    let points: Vec<Value> = question.points().iter().map(points).collect();
    json!({ "kind": question.kind(), "asks": question.explain(), "points": points })
}

/// All that a site's data officer must judge before a question is answered: what is asked, by whom, what the design's columns are
/// on these rows, how far out the points are, and the budget. An error where it would not be answered.
pub fn look(asked: &Asked) -> Result<String> {
    let prepared = prepare(asked)?;
    let Prepared { file, table, inspected, cost, merged, dropped, .. } = &prepared;
    let mut out = question_file(file);
    let _ = writeln!(
        out,
        "\nHere, {} complete rows would answer ({dropped} lack a value).",
        table.rows()
    );
    if !merged.is_empty() {
        let merged: Vec<String> = merged.iter().map(|c| clip(c)).collect();
        let _ = writeln!(out, "Rare levels would be merged in {}.", merged.join(", "));
    }
    for design in inspected {
        let outcome = plain(&design.recipe.response.text);
        let _ = writeln!(
            out,
            "\nDesign of `{outcome}` ({}), rows in which a column is not 0:",
            design.family
        );
        for (name, count) in design.counts() {
            let _ = writeln!(out, "  {count:>9}  {}", clip(name));
        }
    }
    let budget = asked.policy.budget(asked.log);
    let _ = writeln!(out, "\nBudget of these data, by the log:");
    let each = [
        ("questions", budget.questions, 1),
        ("points", budget.points, cost.points),
        ("designs", budget.designs, cost.designs.len() as u64),
    ];
    for (what, (used, most), more) in each {
        let most = most.map_or("no limit".into(), |most| format!("at most {most}"));
        let _ = writeln!(out, "  {what}: {used} answered, {more} asked about now, {most}");
    }
    out += "\nThe policy would let it be answered.\n";
    Ok(out)
}

/// The range of every parameter over the points that a question asks about.
fn points(question: &Question) -> String {
    let mut out = String::new();
    for asked in question.points() {
        let _ = writeln!(out, "  points of `{}`: {}", clip(&asked.model.name), asked.thetas.rows());
        for (k, parameter) in asked.model.free().enumerate() {
            let values = asked.rows().filter_map(|theta| theta.get(k).copied());
            let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| {
                (low.min(x), high.max(x))
            });
            let _ = writeln!(
                out,
                "    {} from {low:.4} to {high:.4}, prior {}",
                clip(&parameter.name),
                parameter.prior
            );
        }
    }
    out
}

fn question_file(file: &QuestionFile) -> String {
    let header = &file.header;
    let mut out = format!(
        "A question file (round {}, question {}) of the study {}.\n",
        header.round,
        clip(&header.question),
        clip(&header.study)
    );
    if let Some(context) = file.context() {
        let name = |s: &u32| context.sites.get(*s as usize).map_or("?", String::as_str);
        let sites: Vec<&str> = context.active.iter().map(name).collect();
        let _ = writeln!(out, "It is for the sites {}.", plain(&sites.join(", ")));
        let _ = writeln!(
            out,
            "Run {}, {}.",
            clip(header.run.as_deref().unwrap_or("without a name")),
            match &file.signer {
                Some(key) => format!("signed with the key {key}"),
                None => "signed by nobody".into(),
            }
        );
        if context.sums {
            out += "Sums only: answers to what is asked of models leave a site masked, and only their sum over all these sites is told.\n";
        }
        if let Ok(study) = serde_json::from_str::<crate::study::Study>(&context.study) {
            for model in study.specs().iter() {
                let _ = writeln!(
                    out,
                    "  model `{}`: {} ({})",
                    clip(&model.name),
                    plain(&model.formula),
                    model.family
                );
            }
            if let Some(weights) = &study.data.weights {
                let _ = writeln!(out, "  rows are weighted by `{}`", clip(weights));
            }
        }
    }
    for question in file.questions() {
        let _ = writeln!(out, "\n{}", question.explain());
        out += &points(question);
    }
    out
}

fn answer_file(file: &AnswerFile) -> String {
    let header = &file.header;
    let who = header
        .site
        .as_ref()
        .map_or(format!("shard {}", header.shard), |s| format!("the site `{}`", clip(s)));
    let mut out = format!(
        "An answer file of {who}: round {}, question {} of the study {}.\n{}\n\nWhat leaves with it:\n  rows: {} (left out because a value is missing: {})\n",
        header.round,
        clip(&header.question),
        clip(&header.study),
        match &file.signer {
            Some(key) => format!("It is signed with the key {key}."),
            None => "It is not signed.".into(),
        },
        header.rows,
        header.dropped
    );
    if header.commitment.is_some() {
        out += "  a commitment to the rows: a hash with a secret of the site in it, the same in all rounds\n";
    }
    if !header.merged.is_empty() {
        let _ = writeln!(
            out,
            "  that rare levels of these columns were merged: {}",
            header.merged.iter().map(|c| clip(c)).collect::<Vec<_>>().join(", ")
        );
    }
    for (number, (kind, reply)) in header.asks.iter().zip(file.answers()).enumerate() {
        let _ = writeln!(out, "\nto `{}`:", clip(kind));
        if let Some(count) = file.masked(number) {
            let _ = writeln!(
                out,
                "  {count} masked numbers: noise to whoever lacks a secret of every pair of sites. Added to those of all other sites, they are the sum of all answers, which alone is told"
            );
            continue;
        }
        match reply {
            Ok(answer) => {
                out += &answer.explain();
                if let Some(columns) = too_many_columns(answer, header.rows) {
                    let _ = writeln!(
                        out,
                        "  mind: {} rows are no more than these {columns} columns, so that the sums give the rows away up to a rotation; min_rows in the policy guards against that",
                        header.rows
                    );
                }
            }
            Err(failure) => {
                let _ = writeln!(out, "  an error: {failure}");
            }
        }
    }
    out
}

/// The columns whose sums of products an answer holds, if a site has no more rows than that: F'F = X'X then
/// says X but for an orthogonal matrix before it.
pub(super) fn too_many_columns(answer: &Answer, rows: u64) -> Option<usize> {
    let columns = answer.columns_told();
    (columns as u64 >= rows).then_some(columns).filter(|columns| *columns > 1)
}
