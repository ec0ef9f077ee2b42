//! The `consilience` program: which model do the data support, and how sure is that?
//!
//! Exit codes: 0 fine; 1 the run finished but its result is not to be trusted; 2 wrong usage or
//! input; 3 failure on the way; 4 answers are awaited. Results go to stdout, everything else to stderr.

mod arguments;
mod baselines;
mod cache;
mod clock;
mod decomposition;
mod duration;
mod experiment;
mod init;
mod machine;
mod manual;
mod memory;
mod overview;
mod plot;
mod progress;
mod run;
mod schema;
mod select;
mod shell;
mod simulate;
mod sites;
mod slurm;
mod sources;
mod sweep;
mod text;

use arguments::{
    Arguments, BaselinesArguments, Command, CompareArguments, OutputArguments, StudyArguments,
};
use clap::Parser;
use consilience::compare::Comparison;
use consilience::draft;
use consilience::plan::{Extras, Plan};
use consilience::study::{Schedule, StudyFile};
use consilience::{Error, Result};
use sources::Sources;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Instant;
use text::layout;

const UNRELIABLE: u8 = 1;
const WRONG_INPUT: u8 = 2;
const FAILURE: u8 = 3;
const WAITING: u8 = 4;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(Error::Waiting(waiting)) => {
            crate::shell::tell(&format!("{waiting}"));
            ExitCode::from(WAITING)
        }
        Err(error) => {
            crate::shell::tell(&format!("error: {error}{}", advice(&error)));
            ExitCode::from(if error.is_input() { WRONG_INPUT } else { FAILURE })
        }
    }
}

/// What to do about an error of the system's.
fn advice(error: &Error) -> &'static str {
    use std::io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let Error::Io { source, .. } = error else { return "" };
    match source.kind() {
        StorageFull | QuotaExceeded => {
            "; make room there and run the same command again: what was written whole stays"
        }
        ReadOnlyFilesystem => "; nothing can be written there: name a folder elsewhere, or copy it",
        PermissionDenied => "; ask its owner for the permission, or name another",
        _ => "",
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.command {
        Command::Compare(arguments) => compare(arguments),
        Command::Select(arguments) => select::run(arguments),
        Command::Sweep(arguments) => sweep::run(arguments),
        Command::Experiment(arguments) => experiment::run(arguments),
        Command::Baselines(arguments) => show_baselines(arguments),
        Command::Check(arguments) => {
            let mut study = StudyFile::read_with(&arguments.study, &arguments.overrides())?;
            // Nothing is computed, so that nothing is asked ahead.
            let evidence = &mut study.study.evidence;
            evidence.schedule = Schedule::Gentle;
            let statistics = std::mem::replace(&mut evidence.statistics, false);
            let mut plan = plan_of(study, arguments, &progress::Bar::new(false))?;
            plan.study.evidence.statistics = statistics;
            print(&overview::of(&plan, &arguments.study))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Plot(arguments) => plot::run(arguments),
        Command::Init(arguments) => {
            print(&init::write(arguments)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Schema(arguments) => {
            print(&schema::write(arguments)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Simulate(arguments) => {
            print(&simulate::write(arguments)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Completions(arguments) => {
            manual::completions(arguments)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Man(arguments) => {
            manual::man(arguments)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Split(arguments) => run::split(arguments),
        Command::Work(arguments) => run::work(arguments),
        Command::Combine(arguments) => run::combine(arguments),
        Command::Status(arguments) => run::status(arguments),
        Command::Ask(arguments) => sites::ask(arguments),
        Command::Answer(arguments) => sites::answer(arguments),
        Command::Show(arguments) => sites::show(arguments),
        Command::Keygen(arguments) => sites::keygen(arguments),
        Command::SlurmStep(arguments) => slurm::step(arguments),
    }
}

fn plan(arguments: &StudyArguments, bar: &progress::Bar) -> Result<Plan> {
    plan_of(StudyFile::read_with(&arguments.study, &arguments.overrides())?, arguments, bar)
}

fn plan_of(study: StudyFile, arguments: &StudyArguments, bar: &progress::Bar) -> Result<Plan> {
    let (room, wanted) = (arguments.machine.room()?, arguments.machine.threads());
    let threads = room.threads(wanted);
    if threads < wanted {
        bar.note(&format!("the memory allowed has room for {threads} of {wanted} threads"));
    }
    Plan::within(study, threads, &room, bar)
}

fn compare(arguments: &CompareArguments) -> Result<ExitCode> {
    let start = Instant::now();
    let (output, path) = (&arguments.output, &arguments.study.study);
    let file = StudyFile::read_with(path, &arguments.study.overrides())?;
    let study = file.study.clone();
    let sources = Sources::of_study(&file, path);
    output.page.check(&sources)?;
    sources.spare_in(arguments.out.as_ref(), &["result.json"])?;
    sources.spare_posterior(output.posterior.as_ref())?;
    sources.spare_chains(arguments.draws.keep_draws.as_ref())?;
    // A folder that cannot be written to should be known before the work, not after it.
    if let Some(folder) = &arguments.out {
        draft::make_folder(folder)?;
    }
    let bar = progress::Bar::new(!output.quiet);
    let mut comparison = match arguments.engine.engine {
        slurm::EngineName::Threads => {
            arguments.engine.refuse_leftovers()?;
            if output.shard_details && !output.json && arguments.out.is_none() {
                return Err(Error::input(
                    "--shard-details are in the JSON document; give --json, or --out DIR",
                ));
            }
            let mut plan = plan_of(file, &arguments.study, &bar)?;
            if let Some(clock) = clock::of_threads().filter(|_| output.shard_details) {
                plan = plan.with_clock(clock);
            }
            plan.deliver(&Extras {
                posterior: output.posterior.is_some(),
                shard_details: output.shard_details,
                ..arguments.wishes.with(Some(&arguments.draws))
            })?;
            for folder in [&arguments.draws.keep_draws, &output.posterior].into_iter().flatten() {
                draft::make_folder(folder)?;
            }
            let mut comparison = plan.run(&bar)?;
            // To hash large files takes a while: only where it is shown.
            if output.json || arguments.out.is_some() || output.page.report.is_some() {
                comparison.provenance = Some(plan.provenance()?);
            }
            comparison.shard_seconds = Some(plan.engine().spent()).filter(|s| !s.is_empty());
            comparison
        }
        slurm::EngineName::Slurm => match slurm::compare(file, arguments, &bar)? {
            Some(comparison) => comparison,
            None => return Ok(ExitCode::SUCCESS),
        },
    };
    bar.clear();
    comparison.seconds = Some(start.elapsed().as_secs_f64());
    let json = document(&comparison);
    if let Some(folder) = &arguments.out {
        draft::write(&folder.join("result.json"), &json)?;
    }
    output.page.write(&json, plot::of_file(&study, path))?;
    report(&comparison, &json, output)
}

/// The JSON document.
fn document(comparison: &Comparison) -> String {
    serde_json::to_string_pretty(comparison).expect("a comparison can be written") + "\n"
}

/// Prints a result as the document or as a table, and writes the draws that were asked for.
fn report(comparison: &Comparison, json: &str, output: &OutputArguments) -> Result<ExitCode> {
    let written = match &output.posterior {
        Some(folder) => comparison.write_posterior(folder)?,
        None => Vec::new(),
    };
    let tables = text::Tables {
        bayes_factors: output.bayes_factors,
        parameters: output.parameters,
        written: &written,
        bars: std::io::stdout().is_terminal(),
        width: layout::width(),
    };
    if output.json {
        print(json)?;
    } else {
        let bold = text::verdict(comparison, tables.width);
        print_painted(&text::of(comparison, &tables), &[&bold])?;
    }
    let reliable = comparison.is_reliable();
    Ok(if reliable { ExitCode::SUCCESS } else { ExitCode::from(UNRELIABLE) })
}

fn show_baselines(arguments: &BaselinesArguments) -> Result<ExitCode> {
    let start = Instant::now();
    let bar = progress::Bar::new(!arguments.quiet);
    let mut result = plan(&arguments.study, &bar)?.baselines(&bar)?;
    bar.clear();
    result.seconds = Some(start.elapsed().as_secs_f64());
    let json = || serde_json::to_string_pretty(&result).expect("a result can be written") + "\n";
    print(&if arguments.json { json() } else { baselines::of(&result) })?;
    Ok(if result.is_reliable() { ExitCode::SUCCESS } else { ExitCode::from(UNRELIABLE) })
}

/// Writes to stdout. A reader that has gone away is no failure of ours.
fn print(text: &str) -> Result<()> {
    written(&shell::visible(text))
}

/// The same in colour where that goes to a terminal, and these passages in bold.
fn print_painted(text: &str, bold: &[&str]) -> Result<()> {
    let text = shell::visible(text);
    if !layout::coloured(&std::io::stdout()) {
        return written(&text);
    }
    let bold: Vec<_> = bold.iter().map(|passage| shell::visible(passage)).collect();
    written(&layout::painted(&text, &bold.iter().map(AsRef::as_ref).collect::<Vec<_>>()))
}

fn written(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::Io { path: "standard output".into(), source: e })
        }
        _ => Ok(()),
    }
}
