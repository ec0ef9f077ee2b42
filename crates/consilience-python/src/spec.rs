//! What Python asks for, as JSON.

use consilience::compare::PartitionReport;
use consilience::plan::Room;
use consilience::study::{
    Combine, Kernel, Local, Overrides, SelectBy, ShareRule, Sizes, SplitBy, StudyFile,
};
use consilience::{Error, Halt, Result, Warning};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A study, and what counts in the place of what it says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudySpec {
    /// Its file, or
    path: Option<PathBuf>,
    /// its text.
    text: Option<String>,
    #[serde(default)]
    instead: Instead,
}

/// What counts in the place of what the study says.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Instead {
    data: Option<Vec<String>>,
    shards: Option<usize>,
    by: Option<SplitBy>,
    sizes: Option<Sizes>,
    share: Option<ShareRule>,
    split_seed: Option<u64>,
    seed: Option<u64>,
    local: Option<Local>,
    combine: Option<Combine>,
    draws: Option<usize>,
    warmup: Option<usize>,
    chains: Option<usize>,
    se_target: Option<f64>,
    rounds: Option<usize>,
    kernel: Option<Kernel>,
}

impl StudySpec {
    /// The study that this JSON text stands for.
    pub fn read(json: &str) -> Result<StudyFile> {
        from_json::<StudySpec>(json)?.study()
    }

    /// The study.
    pub fn study(self) -> Result<StudyFile> {
        let own = self.instead;
        let overrides = Overrides {
            data: own.data,
            shards: own.shards,
            by: own.by,
            sizes: own.sizes,
            share: own.share,
            split_seed: own.split_seed,
            seed: own.seed,
            local: own.local,
            combine: own.combine,
            draws: own.draws,
            warmup: own.warmup,
            chains: own.chains,
            se_target: own.se_target,
            rounds: own.rounds,
            kernel: own.kernel,
            home: std::env::home_dir().filter(|home| home.is_absolute()),
        };
        match (&self.path, &self.text) {
            (Some(path), _) => StudyFile::read_with(path, &overrides),
            (None, Some(text)) => StudyFile::parse_with(text, Path::new(""), &overrides),
            (None, None) => Err(Error::input("there is no study; give a path, a text or a dict")),
        }
    }
}

/// Work to do.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub study: StudySpec,
    pub threads: usize,
    /// Bytes of this machine's memory.
    pub machine: Option<usize>,
    /// Bytes to stay within.
    pub memory: Option<usize>,
    pub scratch: Option<PathBuf>,
    #[serde(default)]
    pub extras: Extras,
    /// Of data that are split already: their columns, and how they are split.
    pub names: Option<Vec<String>>,
    pub partition: Option<PartitionReport>,
    /// What those who read these data said of each part of them.
    #[serde(default)]
    pub said: Vec<Vec<Warning>>,
    /// Whether there are only models of one's own.
    #[serde(default)]
    pub own_only: bool,
    /// Of `select`.
    #[serde(default)]
    pub named: Vec<String>,
    pub method: Option<SelectBy>,
    pub top: Option<usize>,
    /// Of `sweep`.
    pub sweep: Option<SweepSpec>,
}

/// What is wanted beside the comparison.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Extras {
    prior_scales: Vec<f64>,
    leave_one_out: bool,
    posterior: bool,
    shard_details: bool,
}

impl From<Extras> for consilience::Extras {
    fn from(extras: Extras) -> consilience::Extras {
        let Extras { prior_scales, leave_one_out, posterior, shard_details } = extras;
        consilience::Extras { prior_scales, leave_one_out, posterior, shard_details, draws: None }
    }
}

/// What is swept.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepSpec {
    pub shards: Vec<usize>,
    pub repeats: usize,
    pub by: Vec<SplitBy>,
    pub combine: Vec<Combine>,
    pub votes: bool,
    pub reference: Option<Vec<f64>>,
    pub out: Option<PathBuf>,
}

impl Task {
    /// What the work may use, until it is called off.
    pub fn room(&self, halt: Halt) -> Result<Room> {
        let room = match (self.memory, self.machine) {
            (Some(memory), _) => {
                Room::within(memory, self.scratch.as_deref().unwrap_or(Path::new("")))?
            }
            (None, Some(machine)) => Room::of_machine(machine),
            (None, None) => Room::default(),
        };
        Ok(room.until(halt))
    }
}

/// A value of JSON text that our own Python code made of arguments.
pub fn from_json<T: for<'a> Deserialize<'a>>(json: &str) -> Result<T> {
    let mut reader = serde_json::Deserializer::from_str(json);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let key = error.path().to_string();
        let key = key.rsplit('.').next().unwrap_or_default().to_string();
        let message = error.into_inner().to_string();
        let message = message.split(" at line ").next().unwrap_or_default().to_string();
        Error::input(format!("the argument `{key}`: {message}"))
    })
}
