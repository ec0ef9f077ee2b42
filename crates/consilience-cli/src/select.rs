//! A choice among many models as tables.

use crate::arguments::{SelectArguments, count};
use crate::sources::Sources;
use crate::text::layout::{fitted, width};
use crate::text::{self, bytes, counted, estimate, grouped, table};
use crate::{UNRELIABLE, print, progress, slurm};
use consilience::draft;
use consilience::estimate::Estimate;
use consilience::plan::Plan;
use consilience::select::{ListedModel, Selection};
use consilience::study::StudyFile;
use consilience::{Error, Result, Warning};
use std::fmt::Write;
use std::process::ExitCode;
use std::time::Instant;

/// How wide the bar of a probability of 1 is.
const BAR: f64 = 20.0;

pub fn run(arguments: &SelectArguments) -> Result<ExitCode> {
    let start = Instant::now();
    let path = &arguments.study.study;
    let mut study = StudyFile::read_with(path, &arguments.study.overrides())?;
    let sources = Sources::of_study(&study, path);
    arguments.page.check(&sources)?;
    sources.spare_in(arguments.out.as_ref(), &["result.json"])?;
    if let Some(folder) = &arguments.out {
        draft::make_folder(folder)?;
    }
    let Some(select) = &mut study.study.select else {
        return Err(Error::input(format!(
            "{}: this study names its models, which `consilience compare` compares; a choice among all subsets of terms needs [select] (see `consilience select --help`)",
            path.display()
        )));
    };
    if let Some(method) = arguments.method {
        select.method = method;
    }
    if let Some(top) = arguments.top {
        select.top = count(top);
    }
    study.check()?;
    let about = crate::plot::of_file(&study.study, path);
    let bar = progress::Bar::new(!arguments.quiet);
    let mut selection = match arguments.engine.engine {
        slurm::EngineName::Threads => {
            arguments.engine.refuse_leftovers()?;
            let room = arguments.study.machine.room()?;
            let threads = room.threads(arguments.study.machine.threads());
            let plan = Plan::within(study, threads, &room, &bar)?;
            let mut selection = plan.select_and_name(&arguments.select.models, &bar)?;
            // To hash large files takes a while: only where it is shown.
            if arguments.json || arguments.out.is_some() || arguments.page.report.is_some() {
                selection.provenance = Some(plan.provenance()?);
            }
            selection
        }
        slurm::EngineName::Slurm => match slurm::select(study, arguments, &bar)? {
            Some(selection) => selection,
            None => return Ok(ExitCode::SUCCESS),
        },
    };
    bar.clear();
    selection.seconds = Some(start.elapsed().as_secs_f64());
    let json = document(&selection);
    if let Some(folder) = &arguments.out {
        draft::write(&folder.join("result.json"), &json)?;
    }
    arguments.page.write(&json, about)?;
    report(&selection, &json, arguments.json)
}

/// The JSON document.
pub fn document(selection: &Selection) -> String {
    serde_json::to_string_pretty(selection).expect("a selection can be written") + "\n"
}

/// Prints a result as the document or as tables.
pub fn report(selection: &Selection, json: &str, as_json: bool) -> Result<ExitCode> {
    if as_json {
        print(json)?;
    } else {
        crate::print_painted(&of(selection), &[])?;
    }
    let reliable = selection.is_reliable();
    Ok(if reliable { ExitCode::SUCCESS } else { ExitCode::from(UNRELIABLE) })
}

/// The whole report.
fn of(selection: &Selection) -> String {
    let mut out = String::new();
    let partition = &selection.partition;
    let _ = writeln!(
        out,
        "{} in {} (by {}, partition {})\n{} {} of {}, {}, prior {}, by {}\n",
        counted(partition.rows, "row"),
        counted(partition.shards, "shard"),
        partition.by,
        partition.hash,
        models(selection.space),
        selection.family,
        selection.outcome,
        counted(selection.inclusion.len(), "candidate"),
        selection.prior,
        selection.method
    );
    out += &inclusion(selection);
    out += &listed(selection);
    out += &sizes(selection);
    out += &coefficients(selection);
    out += &named(selection);
    out += &jumps(selection);
    out += &how(selection);
    let all: Vec<(Option<&str>, &Warning)> = selection.warnings.iter().map(|w| (None, w)).collect();
    let width = width();
    out += &text::list_of(&all, &text::ShardNames::of(partition), width);
    if !selection.is_reliable() {
        out += &text::distrust(width);
    }
    out
}

fn models(count: f64) -> String {
    match count {
        ..1e12 => format!("{} model{}", grouped(count), if count == 1.0 { "" } else { "s" }),
        _ => format!("{count:.1e} models"),
    }
}

fn probability(p: f64, se: Option<f64>) -> String {
    match se {
        None | Some(0.0) => text::probability(p),
        Some(se) if p < 1e-4 => format!("{p:.1e} ± {se:.0e}"),
        Some(se) => {
            format!("{p:.4} ± {}", if se < 5e-5 { format!("{se:.0e}") } else { format!("{se:.4}") })
        }
    }
}

fn inclusion(selection: &Selection) -> String {
    if selection.inclusion.is_empty() {
        return String::new();
    }
    let mut rows =
        vec![["term", "probability it belongs in", "before the data", ""].map(String::from)];
    for term in &selection.inclusion {
        let filled = (term.probability * BAR).round() as usize;
        let bar = format!(
            "{}{}",
            "█".repeat(filled),
            "·".repeat(BAR as usize - filled.min(BAR as usize))
        );
        rows.push([
            term.term.clone(),
            probability(term.probability, term.se),
            term.prior.map_or(String::new(), |p| format!("{p:.4}")),
            bar,
        ]);
    }
    fitted(&rows, &[3, 2], width())
}

fn name(terms: &[String]) -> String {
    if terms.is_empty() { "(none of them)".to_string() } else { terms.join(" + ") }
}

fn listed(selection: &Selection) -> String {
    let mut rows = vec![["model", "probability", "log evidence"].map(String::from)];
    let log_evidence = |m: &ListedModel| {
        let shown = |value| estimate(Estimate { value, se: m.log_evidence_se });
        m.log_evidence.map_or(String::new(), shown)
    };
    for model in &selection.models {
        rows.push([
            name(&model.terms),
            probability(model.probability, model.se),
            log_evidence(model),
        ]);
    }
    let mut out = format!("\n{}", table(&rows));
    let outside = selection.outside;
    let _ =
        writeln!(out, "\nAll other models together: {}.", probability(outside.value, outside.se));
    if selection.unseen.value > 0.0 {
        let _ = writeln!(
            out,
            "In models that were not looked at: {}{}.",
            probability(selection.unseen.value, selection.unseen.se),
            match (selection.method, selection.unseen.se) {
                ("search" | "statistics", Some(0.0)) => {
                    " at most, by the approximation that led the search"
                }
                ("search", _) => " at most, by a second chain's time in them",
                _ => " of the draws of the shard that has most of them",
            }
        );
    }
    if matches!(selection.method, "reversible-jump" | "jump-shares") {
        out += "Models that no chain visited are not counted.\n";
    }
    let _ = writeln!(out, "Most probable model: {}.", name(&selection.best_model));
    let _ = writeln!(out, "Median model (terms over one half): {}.", name(&selection.median_model));
    if let Some(total) = selection.log_normaliser {
        let _ = writeln!(out, "log p(data), over all models: {}", estimate(total));
    }
    out
}

fn sizes(selection: &Selection) -> String {
    let mut rows = vec![["terms in the model", "probability"].map(String::from)];
    for (k, size) in selection.sizes.iter().enumerate() {
        if size.value >= 5e-4 {
            rows.push([k.to_string(), probability(size.value, size.se)]);
        }
    }
    format!("\n{}", table(&rows))
}

fn coefficients(selection: &Selection) -> String {
    let head = ["coefficient", "belongs in", "mean", "sd", "mean if in", "sd if in"];
    let mut rows = vec![head.map(String::from)];
    let number = |x: f64| format!("{x:.4}");
    for c in &selection.coefficients {
        rows.push([
            c.name.clone(),
            if c.term.is_none() { "always".into() } else { text::probability(c.inclusion) },
            number(c.mean),
            number(c.sd),
            c.mean_if_in.map_or(String::new(), number),
            c.sd_if_in.map_or(String::new(), number),
        ]);
    }
    if selection.coefficients.is_empty() {
        return String::new();
    }
    format!("\nAveraged over all models (0 where a coefficient is not in):\n{}", table(&rows))
}

fn named(selection: &Selection) -> String {
    if selection.named.is_empty() {
        return String::new();
    }
    let mut rows =
        vec![["model named", "log evidence", "log Bayes factor", "probability"].map(String::from)];
    for model in &selection.named {
        rows.push([
            name(&model.terms),
            estimate(model.log_evidence),
            if model.log_bayes_factor == Estimate::ZERO {
                "0".into()
            } else {
                estimate(model.log_bayes_factor)
            },
            model.probability.map_or(String::new(), text::probability),
        ]);
    }
    format!("\n{}", table(&rows))
}

fn jumps(selection: &Selection) -> String {
    if selection.jumps.is_empty() {
        return String::new();
    }
    let head = ["log Bayes factor by jumps", "visits", "acceptance", "bridge"];
    let mut rows = vec![head.map(String::from)];
    for pair in &selection.jumps {
        let shown = |e: Option<Estimate>| e.map_or(String::new(), estimate);
        rows.push([
            format!("{} / {}", name(&pair.first), name(&pair.second)),
            shown(pair.visits),
            estimate(pair.acceptance),
            estimate(pair.bridge),
        ]);
    }
    format!("\n{}", table(&rows))
}

fn how(selection: &Selection) -> String {
    let d = &selection.diagnostics;
    let mut out = format!("\n{} looked at", models(d.models));
    if let (Some(pairs), Some(ess)) = (d.pairs, d.ess) {
        let _ = write!(out, ", {} pairs of draws worth {}", grouped(pairs as f64), grouped(ess));
    }
    let traffic = &selection.traffic;
    let shards = selection.partition.shards.max(1) as u64;
    let _ = write!(
        out,
        ", {}, {} to each shard and {} back",
        counted(traffic.rounds as usize, "round"),
        bytes(traffic.bytes_sent / shards),
        bytes(traffic.bytes_received / shards)
    );
    let _ = match selection.seconds {
        Some(seconds) => writeln!(out, ", {seconds:.1} s"),
        None => writeln!(out),
    };
    out
}
