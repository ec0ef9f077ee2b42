//! The commands of Slurm, and what is noted of jobs in the run directory.

use crate::shell::word;
use crate::text::counted;
use consilience::run::{OpenRound, Run};
use consilience::{Error, Result, draft};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often a round's missing shards are submitted.
const ATTEMPTS: u32 = 4;

/// How jobs are submitted; kept in the run directory for detached steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// This program, as the nodes see it.
    pub program: PathBuf,
    /// Options for sbatch.
    pub args: Vec<String>,
    /// At most how many tasks an array job has.
    pub tasks: usize,
}

/// The job that was last submitted for a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Submitted {
    job: String,
    attempt: u32,
}

/// Where the settings of a detached run are.
pub fn settings_path(run: &Run) -> PathBuf {
    run.folder().join("jobs").join("settings.json")
}

/// A cluster, as seen by its commands.
pub struct Slurm {
    settings: Settings,
    /// The job that is under way, for when we are interrupted.
    pub current: Arc<Mutex<Option<String>>>,
}

impl Slurm {
    pub fn new(run: &Run, settings: Settings) -> Result<Slurm> {
        draft::make_folder(&run.folder().join("jobs"))?;
        draft::make_folder(&run.folder().join("logs"))?;
        Ok(Slurm { settings, current: Arc::default() })
    }

    pub fn keep_settings(&self, run: &Run) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.settings).expect("settings can be written");
        draft::write(&settings_path(run), text + "\n")
    }

    /// On Ctrl-C the jobs are cancelled; what they have answered stays.
    pub fn cancel_on_interrupt(&self) {
        let current = self.current.clone();
        // Fails only if somebody else has a handler, and there is nobody else.
        let _ = ctrlc::set_handler(move || {
            let job = current.lock().ok().and_then(|job| job.clone());
            if let Some(job) = &job {
                let _ = Command::new("scancel").arg(job).status();
                crate::shell::tell(&format!(
                    "\ninterrupted: job {job} is cancelled; what was answered is kept, and the same command goes on from there"
                ));
            }
            std::process::exit(i32::from(crate::FAILURE));
        });
    }

    /// The job that answers a round's missing shards: one from before, if it is still at it (we may have
    /// been started again), or a new one. What is worth knowing is noted.
    pub fn job_for(&self, open: &OpenRound, note: &dyn Fn(&str)) -> Result<String> {
        let before = last_submitted(open);
        let attempt = before.as_ref().map_or(0, |note| note.attempt);
        match before {
            Some(before) if patiently(note, || self.is_alive(&before.job))? => {
                return Ok(before.job);
            }
            _ if attempt >= ATTEMPTS => return Err(give_up(open)),
            _ => {}
        }
        if attempt > 0 {
            note(&format!(
                "round {}: {} did not answer; submitted again ({} of {ATTEMPTS}){}",
                open.number,
                counted(open.missing.len(), "shard"),
                attempt + 1,
                last_log(open).unwrap_or_default()
            ));
        }
        self.submit(open, attempt + 1, note)
    }

    /// Submits the step that goes on when a job has ended.
    pub fn submit_step(&self, open: &OpenRound, job: &str, note: &dyn Fn(&str)) -> Result<()> {
        let folder = open.run.folder();
        let script = folder.join("jobs").join("step.sh");
        let text = format!(
            "#!/bin/bash\n# Goes on with {} when a round has been answered.\nexec {} slurm-step {}\n",
            word(folder),
            word(&self.settings.program),
            word(folder)
        );
        draft::write(&script, text)?;
        let log = folder.join("logs").join(format!("step-{:04}-%j.log", open.number));
        let options = [
            "--requeue".to_string(),
            format!("--dependency=afterany:{job}"),
            "--job-name=consilience-step".to_string(),
            format!("--output={}", log.display()),
        ];
        let job = patiently(note, || self.sbatch(&script, &options))?;
        draft::write(&folder.join("jobs").join(STEP), job + "\n")
    }

    /// Submits a script and returns the job's number.
    fn sbatch(&self, script: &Path, options: &[String]) -> Result<String> {
        let mut command = Command::new("sbatch");
        command.arg("--parsable").args(options).args(&self.settings.args).arg(script);
        let out = run_command(command, "sbatch")?;
        // `job` or `job;cluster`
        let job = out.trim().split(';').next().unwrap_or("").to_string();
        if job.is_empty() || !job.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Error::Transport(format!(
                "sbatch gave no job number but `{}`",
                out.trim()
            )));
        }
        Ok(job)
    }

    /// Submits an array job that answers a round's missing shards.
    fn submit(&self, open: &OpenRound, attempt: u32, tell: &dyn Fn(&str)) -> Result<String> {
        let folder = open.run.folder();
        let lists = share_out(&open.missing, self.settings.tasks);
        let stem = stem(open);
        let script = folder.join("jobs").join(format!("{stem}-{attempt}.sh"));
        let text = format!(
            "#!/bin/bash\n# Answers round {} of {}.\nshards=({})\nexec {} work {} --quiet --threads \"${{SLURM_CPUS_PER_TASK:-1}}\" --shard \"${{shards[$SLURM_ARRAY_TASK_ID]}}\"\n",
            open.number,
            word(folder),
            lists.join(" "),
            word(&self.settings.program),
            word(folder),
        );
        draft::write(&script, text)?;
        let log = folder.join("logs").join(format!("round-{:04}-%A_%a.log", open.number));
        let options = [
            "--requeue".to_string(),
            format!("--array=0-{}", lists.len() - 1),
            format!("--job-name=consilience-round-{}", open.number),
            format!("--output={}", log.display()),
            "--open-mode=append".to_string(),
        ];
        let job = patiently(tell, || self.sbatch(&script, &options))?;
        let note = Submitted { job: job.clone(), attempt };
        let text = serde_json::to_string(&note).expect("a note can be written");
        draft::write(&note_path(open), text + "\n")?;
        Ok(job)
    }

    /// Whether a job still waits or runs.
    pub fn is_alive(&self, job: &str) -> Result<bool> {
        Slurm::is_there(job)
    }

    /// The same for whoever has no settings.
    pub fn is_there(job: &str) -> Result<bool> {
        let mut command = Command::new("squeue");
        command.args(["--noheader", "--format=%T", "--jobs", job]);
        match run_command(command, "squeue") {
            Ok(out) => Ok(!out.trim().is_empty()),
            // Slurm forgets jobs some minutes after their end.
            Err(error) if error.to_string().contains("Invalid job id") => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Does what may fail for a while: a controller that is busy or restarted takes no jobs, and does later. What it refuses
/// for a reason that does not pass is an error at once; any other reason may pass within seconds.
fn patiently<T>(note: &dyn Fn(&str), mut work: impl FnMut() -> Result<T>) -> Result<T> {
    let begun = Instant::now();
    let mut told = false;
    loop {
        let error = match work() {
            Err(error @ Error::Transport(_)) => error,
            other => return other,
        };
        let patience = match passing(&error.to_string()) {
            Some(true) => super::SILENCE,
            Some(false) => Duration::ZERO,
            None => super::REFUSAL,
        };
        if begun.elapsed() >= patience {
            return Err(error);
        }
        if !told {
            told = true;
            note(&format!("Slurm did not take a command, and is asked again: {error}"));
        }
        std::thread::sleep(super::ASK_EVERY);
    }
}

/// Whether what Slurm says passes by itself, if that is known.
fn passing(said: &str) -> Option<bool> {
    let says = |parts: &[&str]| parts.iter().any(|part| said.contains(part));
    // Before all else: of a configuration that is not there, `sbatch` says that it retries, and gives up.
    if says(&["configuration source", "Unable to process configuration"]) {
        return Some(false);
    }
    if says(&[
        "Unable to contact",
        "Connection refused",
        "timed out",
        "not responding",
        "temporarily",
        "Socket",
        "retry",
    ]) {
        Some(true)
    } else if says(&[
        "nvalid",
        "recognized",
        "slurm.conf",
        "configuration",
        "not permitted",
        "denied",
    ]) {
        Some(false)
    } else {
        None
    }
}

/// Runs a command of Slurm's and returns what it prints.
fn run_command(mut command: Command, name: &str) -> Result<String> {
    let output = command.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::input(format!(
            "there is no `{name}` here, so this machine cannot submit Slurm jobs; run the command on the cluster's login node, or without --engine slurm"
        )),
        _ => Error::Io { path: name.into(), source: error },
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    Err(Error::Transport(format!("{name} failed: {said}\n{}", advice(said))))
}

/// What to do about what a command of Slurm's says.
fn advice(said: &str) -> &'static str {
    let says = |parts: &[&str]| parts.iter().any(|part| said.contains(part));
    if says(&["configuration source", "slurm.conf", "Unable to process configuration"]) {
        "Slurm is installed here but knows of no cluster: run the command on the cluster's login node, or name its slurm.conf in SLURM_CONF; `sinfo` must show the cluster's partitions first"
    } else if says(&["Unable to contact", "Connection refused", "timed out", "not responding"]) {
        "The cluster's controller does not answer: see whether `sinfo` works, and run the same command again when it does; what was answered is kept"
    } else if says(&["authentication", "munge", "Munge", "Protocol"]) {
        "The cluster does not take this machine's credentials: see whether munge runs here (`munge -n | unmunge`), or ask its administrators"
    } else {
        "Options for the cluster go into --slurm-args, such as --slurm-args \"--partition=short --account=mine --time=30\"; `sinfo` lists partitions"
    }
}

/// Where the job is noted that goes on with a detached run.
const STEP: &str = "step.job";

/// The jobs that were last submitted for a run: that of the round, and the step behind it.
pub fn last_jobs(run: &Run) -> (Option<String>, Option<String>) {
    let folder = run.folder().join("jobs");
    let notes = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|e| e.path());
    // Their names begin with the number of the round.
    let is_note = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".json") && name.starts_with(|c: char| c.is_ascii_digit())
    };
    let last = notes.filter(is_note).max();
    let round = last.and_then(|path| std::fs::read_to_string(path).ok());
    let round = round.and_then(|text| serde_json::from_str::<Submitted>(&text).ok());
    let step = std::fs::read_to_string(folder.join(STEP)).ok();
    let number = |job: &String| !job.is_empty() && job.bytes().all(|b| b.is_ascii_digit());
    let step = step.map(|text| text.trim().to_string()).filter(number);
    (round.map(|note| note.job).filter(number), step)
}

fn stem(open: &OpenRound) -> String {
    open.question.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn note_path(open: &OpenRound) -> PathBuf {
    open.run.folder().join("jobs").join(format!("{}.json", stem(open)))
}

/// The job that was last submitted for this round, if one was.
fn last_submitted(open: &OpenRound) -> Option<Submitted> {
    let text = std::fs::read_to_string(note_path(open)).ok()?;
    serde_json::from_str(&text).ok()
}

/// Deals shards out to at most so many tasks: `0-3,7` each.
fn share_out(shards: &[usize], tasks: usize) -> Vec<String> {
    let tasks = tasks.min(shards.len()).max(1);
    let list = |task: usize| {
        let (from, to) = (task * shards.len() / tasks, (task + 1) * shards.len() / tasks);
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for &shard in &shards[from..to] {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == shard => *last = shard,
                _ => ranges.push((shard, shard)),
            }
        }
        let text = |&(a, b): &(usize, usize)| {
            if a == b { a.to_string() } else { format!("{a}-{b}") }
        };
        ranges.iter().map(text).collect::<Vec<_>>().join(",")
    };
    (0..tasks).map(list).collect()
}

/// Splits options as a shell would, as far as quotes go.
pub fn split_words(text: &str) -> Result<Vec<String>> {
    let (mut words, mut word, mut quote, mut inside) = (Vec::new(), String::new(), None, false);
    for c in text.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), c) => word.push(c),
            (None, '"' | '\'') => {
                quote = Some(c);
                inside = true;
            }
            (None, c) if c.is_whitespace() => {
                if inside || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                inside = false;
            }
            (None, c) => word.push(c),
        }
    }
    if quote.is_some() {
        return Err(Error::input("--slurm-args has a quote that does not end"));
    }
    if inside || !word.is_empty() {
        words.push(word);
    }
    Ok(words)
}

fn give_up(open: &OpenRound) -> Error {
    Error::Transport(format!(
        "round {}: {} did not answer in {ATTEMPTS} jobs; the same command tries again once {} is removed{}",
        open.number,
        counted(open.missing.len(), "shard"),
        note_path(open).display(),
        last_log(open).unwrap_or_default()
    ))
}

/// The end of the newest log of this round that says anything, for a message.
fn last_log(open: &OpenRound) -> Option<String> {
    let prefix = format!("round-{:04}-", open.number);
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(open.run.folder().join("logs")).ok()?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            let modified = entry.metadata().and_then(|m| m.modified()).ok()?;
            logs.push((modified, entry.path()));
        }
    }
    logs.sort();
    for (_, path) in logs.into_iter().rev() {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|l| !l.ends_with(" there before.")).collect();
        if !lines.is_empty() {
            let tail = lines[lines.len().saturating_sub(10)..].join("\n  ");
            return Some(format!("\nThe log of one of its tasks, {}:\n  {tail}", path.display()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_dealt_out_to_tasks() {
        assert_eq!(share_out(&[0, 1, 2, 5], 10), ["0", "1", "2", "5"]);
        assert_eq!(share_out(&[0, 1, 2, 5, 6, 9], 2), ["0-2", "5-6,9"]);
        let all: Vec<usize> = (0..1003).collect();
        let lists = share_out(&all, 100);
        assert_eq!((lists.len(), lists[0].as_str(), lists[99].as_str()), (100, "0-9", "992-1002"));
    }

    #[test]
    fn options_are_split_like_a_shell_s() {
        let words = split_words("--partition=short  --comment='a b' \"\" -x").unwrap();
        assert_eq!(words, ["--partition=short", "--comment=a b", "", "-x"]);
        assert!(split_words("--comment='a").is_err());
    }
}
