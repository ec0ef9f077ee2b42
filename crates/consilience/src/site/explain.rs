//! What a question or answer file holds, in plain words.

use crate::Result;
use crate::data::{Fact, Levels, Moments, Request};
use crate::question::{Answer, Question, Summary};
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
        header.round, header.question, header.study
    );
    if let Some((study, sites)) = file.context() {
        let _ = writeln!(out, "It is for the sites {}.", sites.join(", "));
        if let Ok(study) = serde_json::from_str::<crate::study::Study>(study) {
            for model in &study.models {
                let _ =
                    writeln!(out, "  model `{}`: {} ({})", model.name, model.formula, model.family);
            }
        }
    }
    for question in file.questions() {
        let _ = writeln!(out, "\n{}", asked(question));
    }
    out
}

/// What a question wants to know.
fn asked(question: &Question) -> String {
    let of = question.model().map(|m| format!(" of the model `{}`", m.name)).unwrap_or_default();
    match question {
        Question::Describe { requests, .. } => {
            let mut out = "describe: facts about columns".to_string();
            for request in requests {
                let _ = write!(out, "\n  {}", requested(request));
            }
            out
        }
        Question::Survey { units, .. } => format!(
            "survey: the number of rows, and per design column the rows in which it is not 0{}",
            if *units {
                "; mean and squared deviations of every design column, and the mean of the offsets"
            } else {
                ""
            }
        ),
        Question::Fit { order, .. } => format!(
            "fit{of}: the site's own log evidence by {}, posterior mean, mode, covariance and precision, and diagnostics",
            order.method
        ),
        Question::Expand { thetas, .. } => format!(
            "expand{of}: the log likelihood (with the site's share of the prior) at {} point(s), its gradient and Hessian",
            thetas.rows()
        ),
        Question::Weigh { thetas, .. } => format!(
            "weigh{of}: the log likelihood (with the site's share of the prior) at {} points",
            thetas.rows()
        ),
        Question::Statistics { .. } => {
            "statistics: the number of rows, the means of all columns of the models' designs and of the outcome, and the sums of products of any two of them around these (from a site with no more rows than columns: its rows, up to a rotation)".into()
        }
        Question::Augment { order, conditionals, .. } => format!(
            "augment{of}: as fit, by {}; and at {conditionals} points of a Markov chain the mean and precision of the parameters given latent variables",
            order.method
        ),
    }
}

fn requested(request: &Request) -> String {
    match request {
        Request::Column(name) => {
            format!(
                "column `{name}`: how many rows are numbers and words, sums of the numbers, the distinct words with their rows, the first word"
            )
        }
        Request::Levels(expr) => format!("the distinct values of `{expr}` with their rows"),
        Request::Moments(expr) => {
            format!("`{expr}`: rows, mean, squared deviations, least and greatest value")
        }
        Request::Gram { expr, degree, .. } => {
            format!("`{expr}`: sums of its polynomials up to degree {}", 2 * degree)
        }
    }
}

fn answer_file(file: &AnswerFile) -> String {
    let header = &file.header;
    let who = header
        .site
        .as_ref()
        .map_or(format!("shard {}", header.shard), |s| format!("the site `{s}`"));
    let mut out = format!(
        "An answer file of {who}: round {}, question {} of the study {}.\n{}\n\nWhat leaves with it:\n  rows: {} (left out because a value is missing: {})\n",
        header.round,
        header.question,
        header.study,
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
            header.merged.join(", ")
        );
    }
    for (kind, reply) in header.asks.iter().zip(file.answers()) {
        let _ = writeln!(out, "\nto `{kind}`:");
        match reply {
            Ok(answer) => {
                out += &answered(answer);
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
    let columns = match answer {
        Answer::Statistics(found) => found.shifts.len(),
        _ => 0,
    };
    (columns as u64 >= rows).then_some(columns).filter(|columns| *columns > 1)
}

fn answered(answer: &Answer) -> String {
    let mut out = String::new();
    let _ = match answer {
        Answer::Description(facts) => {
            facts.iter().for_each(|fact| out += &told(fact));
            Ok(())
        }
        Answer::Survey(survey) => {
            let p = survey.nonzero.len();
            let _ = writeln!(out, "  rows, counted with weights: {}", survey.observations);
            let _ = writeln!(
                out,
                "  rows in which each of {p} design columns is not 0: {}",
                numbers(&survey.nonzero)
            );
            if !survey.means.is_empty() {
                let _ = writeln!(out, "  means of the design columns: {}", numbers(&survey.means));
                let squares = numbers(&survey.squares);
                let _ = writeln!(out, "  their squared deviations, summed: {squares}");
                let _ = writeln!(out, "  mean of the offsets: {}", survey.offset);
            }
            Ok(())
        }
        Answer::Summary(summary) => {
            out += &fitted(summary);
            Ok(())
        }
        Answer::Expansions(found) => {
            for at in found {
                let d = at.gradient.len();
                let _ = writeln!(out, "  the log density at a point that was asked: {}", at.value);
                let _ = writeln!(out, "  its gradient: {}", numbers(&at.gradient));
                let _ = writeln!(out, "  its Hessian: {d} × {d} numbers");
            }
            Ok(())
        }
        Answer::Weights(weights) => {
            writeln!(
                out,
                "  the log density at each of {} points: {}",
                weights.len(),
                numbers(weights)
            )
        }
        Answer::Statistics(found) => {
            let p = found.shifts.len();
            let _ = writeln!(out, "  rows, counted with weights: {}", found.observations);
            let _ = writeln!(out, "  means of {p} columns: {}", numbers(&found.shifts));
            writeln!(
                out,
                "  sums of products of any two of {p} columns, designs' and outcome, around their means: {p} × {p} numbers"
            )
        }
        Answer::Augmentation(found) => {
            out += &fitted(&found.summary);
            writeln!(
                out,
                "  mean and precision of the parameters at {} points of a chain",
                found.means.rows()
            )
        }
    };
    out
}

fn fitted(summary: &Summary) -> String {
    let d = summary.mean.len();
    let mut out = format!("  how it was computed: {}\n", summary.method);
    let _ = writeln!(
        out,
        "  log evidence: {} (standard error {:?})",
        summary.log_z.value, summary.log_z.se
    );
    let _ = writeln!(out, "  posterior mean: {}", numbers(&summary.mean));
    let _ = writeln!(out, "  posterior mode: {}", numbers(&summary.mode));
    let _ =
        writeln!(out, "  posterior covariance, and precision at the mode: {d} × {d} numbers each");
    let _ = writeln!(
        out,
        "  log evidence, mean and covariance of {} batches of draws",
        summary.batches.len()
    );
    if let Some(shape) = summary.shape {
        let _ = writeln!(
            out,
            "  how far it is from a normal, in nats: {} on average, variance {}",
            shape.mean, shape.variance
        );
    }
    let _ = writeln!(out, "  diagnostics, and {} warnings", summary.warnings.len());
    out
}

fn told(fact: &Fact) -> String {
    match fact {
        Fact::Column(column) => {
            let mut out = format!(
                "  a column: {} rows of words ({} of true or false), {} rows of numbers\n",
                column.words, column.logical, column.numbers.rows
            );
            if column.numbers.rows > 0 {
                out += &spread(&column.numbers);
            }
            out += &listed(&column.levels);
            if let Some(word) = &column.first_word {
                let _ = writeln!(out, "    its first word: `{}` ({})", word.value, word.place);
            }
            out
        }
        Fact::Levels(levels) => format!("  distinct values:\n{}", listed(levels)),
        Fact::Moments(moments) => format!("  a column's sums:\n{}", spread(moments)),
        Fact::Gram(gram) => format!(
            "  sums of polynomials: {}\n    single values, where there are few: {}\n",
            numbers(&gram.sums),
            numbers(&gram.distinct)
        ),
    }
}

fn spread(m: &Moments) -> String {
    format!(
        "    rows {}, weights {}, mean {}, squared deviations {}, least value {}, greatest value {}\n",
        m.rows, m.weight, m.mean, m.m2, m.min, m.max
    )
}

fn listed(levels: &Levels) -> String {
    let mut out = String::new();
    for level in &levels.list {
        let _ = writeln!(
            out,
            "    level `{}`: {} rows, weights {}",
            level.name, level.rows, level.weight
        );
    }
    out
}

/// The first few numbers.
fn numbers(values: &[f64]) -> String {
    let shown: Vec<String> = values.iter().take(6).map(f64::to_string).collect();
    match values.len() {
        0 => "none".into(),
        n if n > shown.len() => format!("{}, … ({n} numbers)", shown.join(", ")),
        _ => shown.join(", "),
    }
}
