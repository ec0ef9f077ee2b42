//! What a study would do, in words.

use crate::shell::word;
use crate::text::layout::{WIDTH, wrapped};
use crate::text::{ShardNames, counted, grouped, list_of};
use consilience::combine::Setting;
use consilience::plan::Plan;
use consilience::study::{Combine, Local, Select, ShareRule};
use std::fmt::Write;
use std::path::Path;

/// The overview of a plan.
pub fn of(plan: &Plan, study: &Path) -> String {
    let mut out = format!("{} is a valid study.\n\n", study.display());
    out += &line("data", data(plan));
    out += &line("split", split(plan));
    out += &line("evidence", evidence(plan));
    if let Some(select) = &plan.study.select {
        out += &line("select", candidates(plan, select));
    }
    let probabilities = plan.study.probabilities();
    for (i, setting) in plan.settings.iter().enumerate() {
        let spec = &plan.study.specs()[i];
        let prior = match probabilities.get(i) {
            Some(probability) => format!(", prior probability {probability:.4}"),
            None => String::new(),
        };
        let free = counted(setting.model.dim(), "free parameter");
        out.push('\n');
        out += &line(&format!("model {}", i + 1), spec.name.clone());
        out += &line("", plan.formulas[i].clone());
        out += &line("", format!("{}, {free}{prior}", spec.family));
        out += &priors(setting);
    }
    let own = plan.settings.iter().flat_map(|setting| {
        setting.warnings.iter().map(|w| (Some(setting.model.name.as_str()), w))
    });
    let warnings: Vec<_> = plan.warnings.iter().map(|w| (None, w)).chain(own).collect();
    out += &list_of(&warnings, &ShardNames::of(&plan.partition), WIDTH);
    let command = if plan.study.select.is_some() { "select" } else { "compare" };
    let _ = writeln!(out, "\nNothing was run. To run it: consilience {command} {}", word(study));
    out
}

/// Where the text of a line begins, behind its name.
const INDENT: usize = 10;

/// A line with a name before it, or several of them.
fn line(name: &str, text: String) -> String {
    let text = wrapped(&text, 0, WIDTH - INDENT);
    format!("{name:<INDENT$}{}\n", text.replace('\n', &format!("\n{:INDENT$}", "")))
}

/// The models of a choice.
fn candidates(plan: &Plan, select: &Select) -> String {
    let chosen = plan.terms.iter().filter(|(_, chosen)| *chosen);
    let labels: Vec<&str> = chosen.map(|(term, _)| term.label.as_str()).collect();
    let models = match plan.space(select) {
        Ok(space) if space.models() < 1e12 => grouped(space.models()),
        Ok(space) => format!("{:.1e}", space.models()),
        Err(error) => return error.to_string(),
    };
    format!(
        "{models} models of the candidates {} (heredity {}, prior {}, method {})",
        labels.join(", "),
        select.heredity,
        select.prior,
        select.method
    )
}

fn data(plan: &Plan) -> String {
    let files: Vec<String> = plan.files.iter().map(|f| f.display().to_string()).collect();
    let names = match files.as_slice() {
        [only] => only.clone(),
        [first, .., last] => format!("{} files, {first} to {last}", files.len()),
        [] => String::new(),
    };
    let (rows, dropped) = (plan.partition.rows, plan.partition.dropped);
    format!("{names}: {} ({dropped} left out)", counted(rows, "row"))
}

fn split(plan: &Plan) -> String {
    // Rows as the data have them: weights may count one for many, or for none.
    let rows = plan.engine().rows();
    let least = rows.iter().copied().min().unwrap_or(0) as f64;
    let most = rows.iter().copied().max().unwrap_or(0) as f64;
    let partition = &plan.partition;
    let share = match plan.study.split.share {
        ShareRule::Rows => "by their rows",
        _ => "equally",
    };
    let size = if least == most {
        grouped(least)
    } else {
        format!("{} to {}", grouped(least), grouped(most))
    };
    format!(
        "{} of {size} rows, by {} (seed {}, partition {}); they share the prior {share}",
        counted(partition.shards, "shard"),
        partition.by,
        partition.seed,
        partition.hash
    )
}

fn evidence(plan: &Plan) -> String {
    let options = &plan.study.evidence;
    let seed = options.seed;
    let draws = grouped(options.draws as f64);
    match options.combine {
        Combine::Normal | Combine::NormalUncorrected => format!(
            "{}: one round, each shard by {} with {draws} draws (seed {seed}), taken as normal",
            options.combine, options.local
        ),
        Combine::CmcIs => format!(
            "cmc-is: each shard by {} with {draws} draws, then {} draws from the product of their normals, weighed by all (seed {seed})",
            options.local,
            grouped(options.proposals as f64)
        ),
        Combine::Augmented => format!(
            "augmented: one round of Gibbs sampling with {draws} draws, of which {} conditionals are combined (seed {seed})",
            grouped(options.proposals.min(options.draws) as f64)
        ),
        _ if options.statistics && plan.settings[0].model.is_gaussian() => {
            "exact: sufficient statistics with the survey, the rest at the centre".to_string()
        }
        _ => {
            let fit = match options.local {
                Local::Auto | Local::None => String::new(),
                local => format!("the shards' own evidences by {local}, then "),
            };
            format!(
                "exact: {fit}Newton rounds to the mode, then importance draws until the standard error is {} (at most {} rounds and {draws} draws, seed {seed})",
                options.se_target, options.rounds
            )
        }
    }
}

/// Parameters by prior: names that share one stand together.
fn priors(setting: &Setting) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (number, parameter) in setting.model.parameters.iter().enumerate() {
        let prior = setting.joint.text(number, parameter.prior.rounded());
        match groups.iter_mut().find(|(known, _)| *known == prior) {
            Some((_, names)) => names.push(&parameter.name),
            None => groups.push((prior, vec![&parameter.name])),
        }
    }
    groups.iter().map(|(prior, names)| line("", format!("{prior}: {}", names.join(", ")))).collect()
}
