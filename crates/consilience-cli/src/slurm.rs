//! Running a study's shards as jobs of a Slurm cluster.
//!
//! A round is an array job whose tasks run `consilience work` on the run directory, which all nodes
//! must see. The coordinator (this program, or with `--detach` a job of its own) keeps nothing but the
//! run directory: beside the answers a note of which job was submitted for which question, so that
//! one that is killed and started again finds its jobs.

use crate::arguments::{CompareArguments, count, whole};
use crate::progress::Bar;
use crate::shell::word;
use crate::text::counted;
use crate::{document, print};
use clap::{Args, ValueEnum};
use consilience::compare::Comparison;
use consilience::draft;
use consilience::engine::Silent;
use consilience::run::{Courier, OpenRound, Run};
use consilience::study::Study;
use consilience::{Error, Place, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often answers are looked for.
const PAUSE: Duration = Duration::from_millis(500);
/// How often Slurm is asked about jobs: it serves others too.
const ASK_EVERY: Duration = Duration::from_secs(3);
/// How long answers may take to be seen here after their job has ended: networked file systems.
const GRACE: Duration = Duration::from_secs(10);
/// How often a round's missing shards are submitted.
const ATTEMPTS: u32 = 4;

/// Where to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// This machine's threads
    Threads,
    /// Jobs of a Slurm cluster
    Slurm,
}

/// Where to compute, and how.
#[derive(Debug, Args)]
pub struct EngineArguments {
    /// Where to compute: threads (here) or slurm (an array job per round); the result is the same
    #[arg(long, value_enum, default_value = "threads")]
    pub engine: EngineName,
    /// The run directory, which all nodes must see [default: the study's name with .run, here]
    #[arg(long, value_name = "DIR")]
    pub run: Option<PathBuf>,
    /// Options for sbatch, such as "--partition=short --time=30 --cpus-per-task=4"
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    pub slurm_args: Option<String>,
    /// At most how many tasks an array job has; further shards share tasks [default: 500]
    #[arg(long, value_name = "N", value_parser = whole)]
    pub slurm_tasks: Option<u64>,
    /// Return at once: a chain of jobs finishes the run by itself (`consilience status DIR` shows it)
    #[arg(long)]
    pub detach: bool,
}

impl EngineArguments {
    /// Flags that mean nothing without Slurm are mistakes.
    pub fn refuse_leftovers(&self) -> Result<()> {
        let given = [
            ("--run", self.run.is_some()),
            ("--slurm-args", self.slurm_args.is_some()),
            ("--slurm-tasks", self.slurm_tasks.is_some()),
            ("--detach", self.detach),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(Error::input(format!("{flag} needs --engine slurm"))),
            None => Ok(()),
        }
    }
}

/// One step of a detached run.
#[derive(Debug, Args)]
pub struct StepArguments {
    /// The run directory
    pub run: PathBuf,
}

/// How jobs are submitted; kept in the run directory for detached steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Settings {
    program: PathBuf,
    args: Vec<String>,
    tasks: usize,
}

/// The job that was last submitted for a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Submitted {
    job: String,
    attempt: u32,
}

/// Compares models on the cluster; `None` if the run goes on by itself.
pub fn compare(arguments: &CompareArguments, bar: &Bar) -> Result<Option<Comparison>> {
    let given = [
        ("--keep-draws", arguments.keep_draws.is_some()),
        ("--posterior", arguments.posterior.is_some()),
        ("--prior-scale", !arguments.prior_scale.is_empty()),
        ("--leave-one-out", arguments.leave_one_out),
    ];
    if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
        return Err(Error::input(format!("{flag} needs --engine threads")));
    }
    let engine = &arguments.engine;
    let study = Study::read_with(&arguments.study.study, &arguments.study.overrides())?;
    let folder = engine.run.clone().unwrap_or_else(|| {
        let stem = arguments.study.study.file_stem().unwrap_or_default();
        PathBuf::from(stem).with_extension("run")
    });
    let run = Run::split(study, &folder)?;
    let absolute = |path: &Path| {
        path.canonicalize().map_err(|source| Error::Io { path: path.to_path_buf(), source })
    };
    // Jobs start elsewhere.
    let run = Run::open(&absolute(run.folder())?)?;
    let program = std::env::current_exe()
        .map_err(|source| Error::Io { path: "this program's own file".into(), source })?;
    let settings = Settings {
        program,
        args: split_words(engine.slurm_args.as_deref().unwrap_or(""))?,
        tasks: engine.slurm_tasks.map_or(500, count).max(1),
    };
    let slurm = Slurm::new(&run, settings)?;
    if engine.detach {
        slurm.keep_settings(&run)?;
        advance(&run, &slurm)?;
        print(&format!(
            "The run goes on by itself in {0}.\n  consilience status {0}    shows how far it is\n  consilience combine {0}   prints the result once it is there\n",
            word(&folder)
        ))?;
        return Ok(None);
    }
    slurm.cancel_on_interrupt();
    let comparison = run.coordinate(&Waiting { slurm: &slurm, bar }, bar)?;
    draft::write(&run.result_path(), document(&comparison))?;
    Ok(Some(comparison))
}

/// One step of a detached run: in a job that starts when the round's job has ended.
pub fn step(arguments: &StepArguments) -> Result<ExitCode> {
    let run = Run::open(&arguments.run)?;
    let path = settings_path(&run);
    let text = std::fs::read_to_string(&path).map_err(|e| io(&path, e))?;
    let settings = serde_json::from_str(&text).map_err(|e| {
        Error::input_at(Place::file(&path), format!("this is no set of settings: {e}"))
    })?;
    advance(&run, &Slurm::new(&run, settings)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Goes as far as the answers reach; then submits the next round and the step after it.
fn advance(run: &Run, slurm: &Slurm) -> Result<()> {
    match run.coordinate(&Submitting { slurm }, &Silent) {
        Err(Error::Waiting(_)) => Ok(()),
        Ok(comparison) => draft::write(&run.result_path(), document(&comparison)),
        Err(error) => Err(error),
    }
}

fn io(path: &Path, source: std::io::Error) -> Error {
    Error::Io { path: path.to_path_buf(), source }
}

fn settings_path(run: &Run) -> PathBuf {
    run.folder().join("jobs").join("settings.json")
}

/// A cluster, as seen by its commands.
struct Slurm {
    settings: Settings,
    /// The job that is under way, for when we are interrupted.
    current: Arc<Mutex<Option<String>>>,
}

impl Slurm {
    fn new(run: &Run, settings: Settings) -> Result<Slurm> {
        draft::make_folder(&run.folder().join("jobs"))?;
        draft::make_folder(&run.folder().join("logs"))?;
        Ok(Slurm { settings, current: Arc::default() })
    }

    fn keep_settings(&self, run: &Run) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.settings).expect("settings can be written");
        draft::write(&settings_path(run), text + "\n")
    }

    /// On Ctrl-C the jobs are cancelled; what they have answered stays.
    fn cancel_on_interrupt(&self) {
        let current = self.current.clone();
        // Fails only if somebody else has a handler, and there is nobody else.
        let _ = ctrlc::set_handler(move || {
            let job = current.lock().ok().and_then(|job| job.clone());
            if let Some(job) = &job {
                let _ = Command::new("scancel").arg(job).status();
                eprintln!(
                    "\ninterrupted: job {job} is cancelled; what was answered is kept, and the same command goes on from there"
                );
            }
            std::process::exit(i32::from(crate::FAILURE));
        });
    }

    /// Submits a script and returns the job's number.
    fn sbatch(&self, script: &Path, options: &[String]) -> Result<String> {
        let mut command = Command::new("sbatch");
        command.arg("--parsable").args(options).args(&self.settings.args).arg(script);
        let out = run_command(command, "sbatch")?;
        // `job` or `job;cluster`
        let job = out.trim().split(';').next().unwrap_or("").to_string();
        if job.is_empty() || !job.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Error::numeric(format!("sbatch gave no job number but `{}`", out.trim())));
        }
        Ok(job)
    }

    /// Submits an array job that answers a round's missing shards.
    fn submit(&self, open: &OpenRound, attempt: u32) -> Result<String> {
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
        let job = self.sbatch(&script, &options)?;
        let note = Submitted { job: job.clone(), attempt };
        let text = serde_json::to_string(&note).expect("a note can be written");
        draft::write(&note_path(open), text + "\n")?;
        Ok(job)
    }

    /// Whether a job still waits or runs.
    fn is_alive(&self, job: &str) -> Result<bool> {
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

/// Runs a command and returns what it prints.
fn run_command(mut command: Command, name: &str) -> Result<String> {
    let output = command.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::input(format!(
            "there is no `{name}` here; --engine slurm needs a machine from which jobs are submitted"
        )),
        _ => io(Path::new(name), error),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::numeric(format!("{name} failed: {}", said.trim())))
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
fn split_words(text: &str) -> Result<Vec<String>> {
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

/// Waits here until a round's job has answered.
struct Waiting<'a> {
    slurm: &'a Slurm,
    bar: &'a Bar,
}

impl Courier for Waiting<'_> {
    fn fetch(&self, open: &OpenRound) -> Result<()> {
        let slurm = self.slurm;
        for refused in &open.refused {
            self.bar.note(&format!("refused, and computed again: {refused}"));
        }
        // A job from before we were started again may still be at it.
        let before = last_submitted(open);
        let attempt = before.as_ref().map_or(0, |note| note.attempt);
        let job = match before {
            Some(note) if slurm.is_alive(&note.job)? => note.job,
            _ if attempt >= ATTEMPTS => return Err(give_up(open)),
            _ => {
                if attempt > 0 {
                    let log = first_log(open).unwrap_or_default();
                    self.bar.note(&format!(
                        "round {}: {} did not answer; submitted again ({} of {ATTEMPTS}){log}",
                        open.number,
                        counted(open.missing.len(), "shard"),
                        attempt + 1
                    ));
                }
                slurm.submit(open, attempt + 1)?
            }
        };
        *slurm.current.lock().expect("nobody panics with it") = Some(job.clone());
        let there = |shard: &usize| open.answer_path(*shard).is_file();
        let at_first = open.missing.iter().filter(|s| there(s)).count();
        let (mut asked, mut ended) = (Instant::now(), None);
        loop {
            std::thread::sleep(PAUSE);
            let now = open.missing.iter().filter(|s| there(s)).count();
            // New answers are taken in at once; those that are refused are no news.
            if now > at_first {
                return Ok(());
            }
            if asked.elapsed() >= ASK_EVERY {
                asked = Instant::now();
                if ended.is_none() && !slurm.is_alive(&job)? {
                    ended = Some(Instant::now());
                }
            }
            if ended.is_some_and(|at| at.elapsed() >= GRACE) {
                return Ok(());
            }
        }
    }
}

/// Submits a round and the step after it, and stops.
struct Submitting<'a> {
    slurm: &'a Slurm,
}

impl Courier for Submitting<'_> {
    fn fetch(&self, open: &OpenRound) -> Result<()> {
        let slurm = self.slurm;
        let before = last_submitted(open);
        let attempt = before.as_ref().map_or(0, |note| note.attempt);
        let job = match before {
            Some(note) if slurm.is_alive(&note.job)? => note.job,
            _ if attempt >= ATTEMPTS => return Err(give_up(open)),
            _ => slurm.submit(open, attempt + 1)?,
        };
        let folder = open.run.folder();
        let script = folder.join("jobs").join("step.sh");
        let text = format!(
            "#!/bin/bash\n# Goes on with {} when a round has been answered.\nexec {} slurm-step {}\n",
            word(folder),
            word(&slurm.settings.program),
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
        slurm.sbatch(&script, &options)?;
        Err(Error::Waiting(Box::new(open.waiting())))
    }
}

fn give_up(open: &OpenRound) -> Error {
    Error::numeric(format!(
        "round {}: {} did not answer in {ATTEMPTS} jobs; the same command tries again once {} is removed{}",
        open.number,
        counted(open.missing.len(), "shard"),
        note_path(open).display(),
        first_log(open).unwrap_or_default()
    ))
}

/// The end of the newest log of this round that says anything, for a message.
fn first_log(open: &OpenRound) -> Option<String> {
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
