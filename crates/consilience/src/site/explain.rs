//! What a question or answer file holds, in plain words.

use crate::Result;
use crate::error::{clip, plain};
use crate::question::Answer;
use crate::run::{AnswerFile, QuestionFile};
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

fn question_file(file: &QuestionFile) -> String {
    let header = &file.header;
    let mut out = format!(
        "A question file (round {}, question {}) of the study {}.\n",
        header.round,
        clip(&header.question),
        clip(&header.study)
    );
    if let Some((study, sites)) = file.context() {
        let _ = writeln!(out, "It is for the sites {}.", plain(&sites.join(", ")));
        if let Ok(study) = serde_json::from_str::<crate::study::Study>(study) {
            for model in study.specs().iter() {
                let _ = writeln!(
                    out,
                    "  model `{}`: {} ({})",
                    clip(&model.name),
                    plain(&model.formula),
                    model.family
                );
            }
        }
    }
    for question in file.questions() {
        let _ = writeln!(out, "\n{}", question.explain());
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
    if !header.merged.is_empty() {
        let _ = writeln!(
            out,
            "  that rare levels of these columns were merged: {}",
            header.merged.iter().map(|c| clip(c)).collect::<Vec<_>>().join(", ")
        );
    }
    for (kind, reply) in header.asks.iter().zip(file.answers()) {
        let _ = writeln!(out, "\nto `{}`:", clip(kind));
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
