//! Runs whose questions and answers are files.

pub mod arguments;
mod signs;

use crate::plot::of_study;
use crate::progress::Bar;
use crate::shell::word;
use crate::sites::folder::Ended;
use crate::sites::inbox::{Inbox, Wait};
use crate::slurm::Detached;
use crate::sources::Sources;
use crate::text::{counted, grouped, table};
use crate::{document, print, report};
use arguments::{CombineArguments, SplitArguments, StatusArguments, WorkArguments};
use consilience::draft;
use consilience::run::{Courier, Run, Status, Stop, WorkReport, WorkerRows};
use consilience::study::StudyFile;
use consilience::{Error, Result};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// How long to sleep between two looks at a run directory.
const PAUSE: Duration = Duration::from_millis(200);

pub fn split(arguments: &SplitArguments) -> Result<ExitCode> {
    let study = StudyFile::read_with(&arguments.study.study, &arguments.study.overrides())?;
    let wishes = arguments.wishes.of(&study.study, Some(&arguments.draws))?;
    let bar = Bar::new(true);
    let mut run = Run::split_within(study, &arguments.run, &arguments.study.machine.room()?, &bar)?;
    bar.clear();
    run.deliver(&wishes)?;
    let manifest = run.manifest();
    let folder = word(run.folder());
    print(&format!(
        "{folder} holds {} in {} (study {}, partition {}).\n\nNow, as often as needed:\n  consilience combine {folder}    asks the next round, or prints the result\n  consilience work {folder}       answers what is asked; on other machines with --shard K\n",
        counted(manifest.partition.rows, "row"),
        counted(manifest.shards.len(), "shard"),
        &manifest.study_hash[..16],
        manifest.partition_hash,
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// The shards that were named, which must be there.
fn chosen(arguments: &WorkArguments, run: &Run) -> Result<Vec<usize>> {
    let all = run.manifest().shards.len();
    if arguments.shard.is_empty() {
        return Ok((0..all).collect());
    }
    let mut chosen = BTreeSet::new();
    for &(first, last) in arguments.shard.iter().flat_map(|ranges| &ranges.0) {
        if last >= all {
            let message = format!("there is no shard {last}; the run has 0 to {}", all - 1);
            return Err(Error::input(message).in_file(run.folder()));
        }
        chosen.extend(first..=last);
    }
    Ok(chosen.into_iter().collect())
}

pub fn work(arguments: &WorkArguments) -> Result<ExitCode> {
    let run = Run::open(&arguments.run)?;
    if run.manifest().has_sites() {
        let message = "this run's rows are at sites, which answer with `consilience answer`";
        return Err(Error::input(message).in_file(run.folder()));
    }
    let shards = chosen(arguments, &run)?;
    let mut total = WorkReport::default();
    let mut retry = arguments.retry;
    let mut failed = Vec::new();
    // Why there will be no further questions, where one could wait for them for ever.
    let mut failure = None;
    let room = arguments.memory.room()?;
    let kept =
        WorkerRows::new(arguments.wait, room, arguments.threads()).held_by(signs::own_name());
    let bar = Bar::new(!arguments.quiet);
    if arguments.shard.is_empty() {
        // One of many on a cluster leaves it to who coordinates them.
        signs::tidy(&run);
    }
    let mut passed_over = BTreeSet::new();
    loop {
        kept.pass_over(signs::minutes_ago(arguments.pass_over));
        bar.expect(shards.len() * run.rounds()?);
        let report = run.work_all(&shards, arguments.threads(), retry, &bar, &kept)?;
        retry = false;
        // Those that it has written itself are not news.
        total.known = report.known.saturating_sub(total.answered);
        total.answered += report.answered;
        failed.extend(report.failed);
        for &shard in &report.passed_over {
            if passed_over.insert(shard) {
                bar.note(&format!(
                    "shard {shard} is held by another worker, who has answered nothing for {} minutes or more; it is worked on here as well",
                    arguments.pass_over
                ));
            }
        }
        for replaced in &report.replaced {
            bar.note(&format!("refused, and computed again: {replaced}"));
        }
        total.busy = report.busy;
        if !arguments.wait || run.result_path().exists() {
            break;
        }
        if report.answered == 0 {
            failure = run.failure();
        }
        if failure.is_some() {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    bar.clear();
    for failure in &failed {
        crate::shell::tell(&format!("failed: {failure}"));
    }
    if !total.busy.is_empty() {
        crate::shell::tell(&format!(
            "left to another worker: {}",
            counted(total.busy.len(), "shard")
        ));
    }
    print(&format!(
        "{} written, {} there before.\n",
        counted(total.answered, "answer"),
        grouped(total.known as f64)
    ))?;
    match failure {
        None => Ok(ExitCode::SUCCESS),
        Some(why) => {
            let folder = word(run.folder());
            Err(Error::numeric(format!(
                "the run has failed, and nobody asks further questions: {why}\nMend that; `consilience work {folder} --retry` computes again what could not be answered, and `consilience combine {folder}` goes on"
            )))
        }
    }
}

/// Says whose answers are missing, and what to do about it.
fn tell_waiting(
    run: &Run,
    arguments: &CombineArguments,
    waiting: &consilience::run::Waiting,
    refused: bool,
) -> Result<ExitCode> {
    let folder = word(run.folder());
    if let [shared, ..] = &arguments.watch[..] {
        let shared = word(shared);
        crate::shell::tell(&format!(
            "{waiting}\nThe same command goes on from there. To go on without a site:\n  consilience combine {folder} --watch {shared} --without SITE"
        ));
        // What else lies in a folder that is shared is no fault of this command.
        return Ok(ExitCode::from(crate::WAITING));
    }
    if waiting.sites {
        // Who waits without a folder would wait for ever.
        let nowhere = match arguments.wait && arguments.answers.is_empty() {
            true => "\n--wait has no folder to look into: name the one in which answers arrive",
            false => "",
        };
        crate::shell::tell(&format!(
            "{waiting}{nowhere}\nSend {} to the sites that have not answered it. Each answers with\n  consilience answer QUESTION --data ITS-DATA --site ITS-NAME\nand what comes back goes into\n  consilience combine {folder} ANSWER…",
            word(&waiting.question)
        ));
    } else {
        crate::shell::tell(&format!(
            "{waiting}\nNext: consilience work {folder}, then again consilience combine {folder}"
        ));
    }
    Ok(ExitCode::from(if refused { crate::WRONG_INPUT } else { crate::WAITING }))
}

/// How to wait for answers, and the answer files to take in before that.
fn how_to_wait(
    arguments: &CombineArguments,
    waits: bool,
    run: &Run,
) -> Result<(Wait, Vec<PathBuf>)> {
    if !waits && (arguments.timeout.is_some() || arguments.every.is_some()) {
        return Err(Error::input("--timeout and --every are for --wait or --watch"));
    }
    let shared = arguments.watch.clone();
    if !shared.is_empty() && !run.manifest().has_sites() {
        let message = "this run's rows are here, for `consilience work`; --watch is for runs of sites (`consilience ask`)";
        return Err(Error::input(message).in_file(run.folder()));
    }
    // Who waits looks into folders again and again.
    let again = |path: &PathBuf| waits && run.manifest().has_sites() && path.is_dir();
    let (mut folders, files): (Vec<_>, Vec<_>) = arguments.answers.iter().cloned().partition(again);
    if waits && run.manifest().has_sites() {
        // Where some answers are, others arrive: `mail/*.answer` is what a shell makes of a folder.
        for file in files.iter().filter(|file| file.is_file()) {
            let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new(".")).to_path_buf();
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
    }
    folders.extend(shared.iter().cloned());
    let often = if shared.is_empty() { PAUSE } else { Duration::from_secs(1) };
    let every = arguments.every.unwrap_or(often);
    let (timeout, quiet) = (arguments.timeout, arguments.output.quiet);
    Ok((Wait { folders, shared, every, timeout, quiet }, files))
}

/// The run has not come to its end: says why, also to those who watch if it has failed.
fn unfinished(
    error: Error,
    run: &Run,
    arguments: &CombineArguments,
    inbox: &Inbox,
    refused: bool,
) -> Result<ExitCode> {
    match error {
        Error::Waiting(waiting) => tell_waiting(run, arguments, &waiting, refused),
        error => {
            if run.failure().is_some() {
                // The error is the one to report, whatever becomes of the notice.
                let _ = inbox.announce(run, Ended::Failed);
            }
            Err(error)
        }
    }
}

pub fn combine(arguments: &CombineArguments) -> Result<ExitCode> {
    let mut run = Run::open(&arguments.run)?;
    signs::tidy(&run);
    let (output, wishes) = (&arguments.output, &arguments.wishes);
    let mut extras = run.manifest().extras.clone();
    if !wishes.prior_scale.is_empty() {
        extras.prior_scales.clone_from(&wishes.prior_scale);
    }
    output.page.check(&Sources::default())?;
    extras.leave_one_out |= wishes.leave_one_out;
    extras.posterior = output.posterior.is_some();
    extras.shard_details = output.shard_details;
    run.deliver(&extras)?;
    if let Some(folder) = &output.posterior {
        draft::make_folder(folder)?;
    }
    let waits = arguments.wait || !arguments.watch.is_empty();
    let (wait, files) = how_to_wait(arguments, waits, &run)?;
    let bar = Bar::new(!output.quiet && waits);
    let inbox = Inbox::new(wait, &bar)?;
    let refused = crate::sites::take_in(&mut run, &arguments.without, &files)?;
    let courier: &dyn Courier = if waits { &inbox } else { &Stop };
    if run.manifest().study.select.is_some() {
        return match run.select(&arguments.select.models, courier, &bar) {
            Err(error) => unfinished(error, &run, arguments, &inbox, refused),
            Ok(mut selection) => {
                bar.clear();
                selection.provenance = Some(run.provenance());
                let json = crate::select::document(&selection);
                draft::write(&run.result_path(), &json)?;
                inbox.announce(&run, Ended::Finished)?;
                output.page.write(&json, of_study(Some(&run.manifest().study)))?;
                crate::select::report(&selection, &json, output.json)
            }
        };
    }
    if !arguments.select.models.is_empty() {
        return Err(Error::input("--models is for a run of a study with [select]"));
    }
    let mut comparison = match run.coordinate(courier, &bar) {
        Err(error) => return unfinished(error, &run, arguments, &inbox, refused),
        Ok(comparison) => comparison,
    };
    bar.clear();
    comparison.provenance = Some(run.provenance());
    let json = document(&comparison);
    draft::write(&run.result_path(), &json)?;
    inbox.announce(&run, Ended::Finished)?;
    let manifest = run.manifest();
    output.page.write(&json, of_study(Some(&manifest.study)))?;
    report(&comparison, &json, output)
}

pub fn status(arguments: &StatusArguments) -> Result<ExitCode> {
    let run = Run::open(&arguments.run)?;
    let status = run.status()?;
    let detached = crate::slurm::detached(&run, &status);
    if arguments.json {
        let mut json = serde_json::to_value(&status).expect("it can be written");
        if let Some(detached) = &detached {
            json["detached"] = serde_json::to_value(detached).expect("it can be written");
        }
        print(&(serde_json::to_string_pretty(&json).expect("it can be written") + "\n"))?;
    } else {
        print(&status_text(&status, detached.as_ref(), run.folder()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn status_text(status: &Status, detached: Option<&Detached>, folder: &Path) -> String {
    let mut out = format!(
        "study {}, partition {}, {}\n\n",
        &status.study[..16],
        status.partition,
        counted(status.shards, "shard")
    );
    let head = ["round", "asks", "answered", "missing", "failed"];
    let mut rows = vec![head.map(String::from)];
    for round in &status.rounds {
        let asks: BTreeSet<&str> = round.asks.iter().map(String::as_str).collect();
        rows.push([
            round.number.to_string(),
            asks.into_iter().collect::<Vec<_>>().join(", "),
            format!("{} of {}", round.answered, status.shards),
            shortened(&round.missing),
            round.failed.len().to_string(),
        ]);
    }
    out += &table(&rows);
    for round in &status.rounds {
        for (name, message) in round.failed.iter().take(20) {
            let _ = writeln!(out, "\nround {}, {name} failed: {message}", round.number);
        }
        for refused in round.refused.iter().take(20) {
            let _ = writeln!(out, "\nrefused: {refused}");
        }
    }
    let folder = word(folder);
    out += &signs::told(&status.held, &folder);
    if let Some(why) = &status.failure {
        let _ = writeln!(out, "\nThe run has failed: {why}");
    }
    if let Some(detached) = detached {
        let _ = writeln!(out, "\n{}", detached.told());
    }
    let _ = match status.rounds.last() {
        // It goes on by itself, or the line above says how it does.
        _ if detached.is_some() => Ok(()),
        _ if status.finished => writeln!(out, "\nFinished: {folder}/result.json"),
        Some(round) if !round.missing.is_empty() => {
            writeln!(out, "\nNext: consilience work {folder}")
        }
        _ => writeln!(out, "\nNext: consilience combine {folder}"),
    };
    out
}

/// How many, and the first few of them.
fn shortened(names: &[String]) -> String {
    let few: Vec<&str> = names.iter().take(4).map(String::as_str).collect();
    match names.len() {
        0 => "0".into(),
        n if n > few.len() => format!("{n} ({}, …)", few.join(", ")),
        n => format!("{n} ({})", few.join(", ")),
    }
}
