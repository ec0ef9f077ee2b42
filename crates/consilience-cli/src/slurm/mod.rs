//! Running a study's shards as jobs of a Slurm cluster.
//!
//! A round is an array job whose tasks run `consilience work` on the run directory, which all nodes
//! must see. The coordinator (this program, or with `--detach` a job of its own) keeps nothing but the
//! run directory: beside the answers a note of which job was submitted for which question, so that
//! one that is killed and started again finds its jobs.

mod cluster;
mod detached;

use crate::arguments::{CompareArguments, SelectArguments, StudyArguments, count, whole};
use crate::progress::Bar;
use crate::shell::word;
use crate::{document, print};
use clap::{Args, ValueEnum};
use cluster::{Settings, Slurm, settings_path, split_words};
use consilience::compare::Comparison;
use consilience::draft;
use consilience::engine::{Observer, Silent};
use consilience::plan::{Extras, Room};
use consilience::run::{Courier, OpenRound, Run};
use consilience::select::Selection;
use consilience::study::{Combine, StudyFile};
use consilience::sweep::{Bench, Cell, CellName, CellTime};
use consilience::{Error, Place, Result};
pub use detached::{Detached, detached};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How often answers are looked for.
const PAUSE: Duration = Duration::from_millis(500);
/// How often Slurm is asked about jobs: it serves others too.
const ASK_EVERY: Duration = Duration::from_secs(3);
/// How long Slurm may say nothing at all.
const SILENCE: Duration = Duration::from_secs(600);
/// How long a job may be refused for a reason that is not known to pass.
const REFUSAL: Duration = Duration::from_secs(10);
/// How long answers may take to be seen here after their job has ended: networked file systems.
const GRACE: Duration = Duration::from_secs(10);

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

/// Compares models on the cluster; `None` if the run goes on by itself.
pub fn compare(
    study: StudyFile,
    arguments: &CompareArguments,
    bar: &Bar,
) -> Result<Option<Comparison>> {
    let (engine, output) = (&arguments.engine, &arguments.output);
    let given = [
        ("--json", output.json),
        ("--bayes-factors", output.bayes_factors),
        ("--parameters", output.parameters),
        ("--posterior", output.posterior.is_some()),
        ("--shard-details", output.shard_details),
        ("--out", arguments.out.is_some()),
        ("--report", output.page.report.is_some()),
    ];
    if engine.detach
        && let Some((flag, _)) = given.iter().find(|(_, given)| *given)
    {
        return Err(Error::input(format!(
            "{flag} is about the result, which --detach does not wait for: `consilience combine DIR` shows it later"
        )));
    }
    let wishes = arguments.wishes.of(&study.study, Some(&arguments.draws))?;
    let mut run = begin(study, &arguments.study, engine, bar)?;
    run.deliver(&wishes)?;
    let (posterior, shard_details) = (output.posterior.is_some(), output.shard_details);
    if posterior || shard_details {
        run.deliver(&Extras { posterior, shard_details, ..wishes })?;
    }
    if let Some(folder) = &output.posterior {
        draft::make_folder(folder)?;
    }
    let slurm = slurm(&run, engine)?;
    if engine.detach {
        leave(&run, &slurm)?;
        return Ok(None);
    }
    slurm.cancel_on_interrupt();
    let mut comparison = run.coordinate(&Waiting { slurm: &slurm, bar }, bar)?;
    comparison.provenance = Some(run.provenance());
    draft::write(&run.result_path(), document(&comparison))?;
    Ok(Some(comparison))
}

/// Chooses among models on the cluster; `None` if the run goes on by itself.
pub fn select(
    study: StudyFile,
    arguments: &SelectArguments,
    bar: &Bar,
) -> Result<Option<Selection>> {
    let (engine, named) = (&arguments.engine, &arguments.select.models);
    let given = [
        ("--json", arguments.json),
        ("--out", arguments.out.is_some()),
        ("--report", arguments.page.report.is_some()),
        ("--models", !named.is_empty()),
    ];
    if engine.detach
        && let Some((flag, _)) = given.iter().find(|(_, given)| *given)
    {
        return Err(Error::input(format!(
            "{flag} is about the result, which --detach does not wait for: `consilience combine DIR` shows it later"
        )));
    }
    let run = begin(study, &arguments.study, engine, bar)?;
    let slurm = slurm(&run, engine)?;
    if engine.detach {
        leave(&run, &slurm)?;
        return Ok(None);
    }
    slurm.cancel_on_interrupt();
    let mut selection = run.select(named, &Waiting { slurm: &slurm, bar }, bar)?;
    selection.provenance = Some(run.provenance());
    draft::write(&run.result_path(), crate::select::document(&selection))?;
    Ok(Some(selection))
}

/// Computes the partitions of a sweep on the cluster, one after the other, each in a run directory that is gone
/// when it is done.
pub struct OnSlurm<'a> {
    file: &'a StudyFile,
    folder: PathBuf,
    engine: &'a EngineArguments,
    room: Room,
    bar: &'a Bar,
}

impl<'a> OnSlurm<'a> {
    /// Run directories go into this folder, which all nodes must see.
    pub fn new(
        file: &'a StudyFile,
        folder: &Path,
        engine: &'a EngineArguments,
        room: Room,
        bar: &'a Bar,
    ) -> Result<OnSlurm<'a>> {
        let given = [("--run", engine.run.is_some()), ("--detach", engine.detach)];
        if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
            return Err(Error::input(format!(
                "{flag} does not go with a sweep, which has a run directory for every partition in the folder of --out"
            )));
        }
        let folder = folder.join("runs");
        draft::make_folder(&folder)?;
        Ok(OnSlurm { file, folder, engine, room, bar })
    }

    /// What tells the data from others.
    pub fn hashes(&self) -> Result<Vec<String>> {
        self.file.files()?.iter().map(|file| draft::file_hash(file)).collect()
    }
}

impl Bench for OnSlurm<'_> {
    fn measure(
        &self,
        name: &CellName,
        methods: &[Combine],
        votes: bool,
        observer: &dyn Observer,
    ) -> Result<(Cell, Option<CellTime>)> {
        let folder = self.folder.join(name.stem());
        let mut own = self.file.clone();
        name.apply(&mut own.study);
        let run = Run::split_within(own, &folder, &self.room, &Silent)?;
        let run = opened(&run)?;
        let slurm = slurm(&run, self.engine)?;
        slurm.cancel_on_interrupt();
        let courier = Waiting { slurm: &slurm, bar: self.bar };
        let cell = run.measure(name, &self.file.study, methods, votes, &courier, observer)?;
        // What is left of it is of no use: the cell is kept.
        let _ = std::fs::remove_dir_all(&folder);
        Ok((cell, None))
    }
}

/// Makes the run directory, or finds it as it was left.
fn begin(
    study: StudyFile,
    arguments: &StudyArguments,
    engine: &EngineArguments,
    bar: &Bar,
) -> Result<Run> {
    let folder = engine.run.clone().unwrap_or_else(|| {
        let stem = arguments.study.file_stem().unwrap_or_default();
        PathBuf::from(stem).with_extension("run")
    });
    opened(&Run::split_within(study, &folder, &arguments.machine.room()?, bar)?)
}

/// The same run by its whole path: jobs start elsewhere.
fn opened(run: &Run) -> Result<Run> {
    let path = run.folder();
    let whole = path.canonicalize();
    Run::open(&whole.map_err(|source| Error::Io { path: path.to_path_buf(), source })?)
}

/// The cluster, for this run.
fn slurm(run: &Run, engine: &EngineArguments) -> Result<Slurm> {
    let program = std::env::current_exe()
        .map_err(|source| Error::Io { path: "this program's own file".into(), source })?;
    let settings = Settings {
        program,
        args: split_words(engine.slurm_args.as_deref().unwrap_or(""))?,
        tasks: engine.slurm_tasks.map_or(500, count).max(1),
    };
    Slurm::new(run, settings)
}

/// Has the run go on by itself.
fn leave(run: &Run, slurm: &Slurm) -> Result<()> {
    slurm.keep_settings(run)?;
    advance(run, slurm)?;
    print(&format!(
        "The run goes on by itself in {0}.\n  consilience status {0}    shows how far it is\n  consilience combine {0}   prints the result once it is there\n",
        word(run.folder())
    ))
}

/// One step of a detached run: in a job that starts when the round's job has ended.
pub fn step(arguments: &StepArguments) -> Result<ExitCode> {
    let run = Run::open(&arguments.run)?;
    let path = settings_path(&run);
    let text = std::fs::read_to_string(&path);
    let text = text.map_err(|source| Error::Io { path: path.clone(), source })?;
    let settings = serde_json::from_str(&text).map_err(|e| {
        Error::input_at(Place::file(&path), format!("this is no set of settings: {e}"))
    })?;
    advance(&run, &Slurm::new(&run, settings)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Goes as far as the answers reach; then submits the next round and the step after it.
fn advance(run: &Run, slurm: &Slurm) -> Result<()> {
    let courier = Submitting { slurm };
    let result = match run.manifest().study.select {
        Some(_) => run.select(&[], &courier, &Silent).map(|mut selection| {
            selection.provenance = Some(run.provenance());
            crate::select::document(&selection)
        }),
        None => run.coordinate(&courier, &Silent).map(|mut comparison| {
            comparison.provenance = Some(run.provenance());
            document(&comparison)
        }),
    };
    match result {
        Err(Error::Waiting(_)) => Ok(()),
        Ok(json) => draft::write(&run.result_path(), json),
        Err(error) => Err(error),
    }
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
        let job = slurm.job_for(open, &|note| self.bar.note(note))?;
        *slurm.current.lock().expect("nobody panics with it") = Some(job.clone());
        let there = |shard: &usize| open.answer_path(*shard).is_file();
        let at_first = open.missing.iter().filter(|s| there(s)).count();
        let (mut asked, mut ended) = (Instant::now(), None);
        let mut silent_since: Option<Instant> = None;
        loop {
            std::thread::sleep(PAUSE);
            let now = open.missing.iter().filter(|s| there(s)).count();
            // New answers are taken in at once; those that are refused are no news.
            if now > at_first {
                return Ok(());
            }
            if asked.elapsed() >= ASK_EVERY && ended.is_none() {
                asked = Instant::now();
                match slurm.is_alive(&job) {
                    Ok(alive) => {
                        silent_since = None;
                        ended = (!alive).then(Instant::now);
                    }
                    // A controller that is restarted says nothing for a while; its jobs run on.
                    Err(error) => {
                        let since = *silent_since.get_or_insert_with(|| {
                            self.bar.note(&format!(
                                "Slurm does not answer, and is asked again: {error}"
                            ));
                            Instant::now()
                        });
                        if since.elapsed() >= SILENCE {
                            return Err(error);
                        }
                    }
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
        // What it has to say goes to the step's log.
        let job = self.slurm.job_for(open, &crate::shell::tell)?;
        self.slurm.submit_step(open, &job, &crate::shell::tell)?;
        Err(Error::Waiting(Box::new(open.waiting())))
    }
}
