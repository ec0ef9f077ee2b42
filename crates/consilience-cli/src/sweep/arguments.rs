//! What is typed after `sweep`.

use crate::arguments::{count, whole};
use crate::machine::MachineArguments;
use crate::plot::PageArguments;
use crate::slurm::EngineArguments;
use clap::Args;
use consilience::study::{Combine, Kernel, Local, Overrides, SplitBy};
use consilience::sweep::Sweep;
use std::path::PathBuf;

pub const SWEEP_EXAMPLES: &str = "\
A sweep runs a study over numbers of shards, partitions, ways to split and
combinations. It holds every log evidence and Bayes factor against `exact`,
which does not depend on the split, and ends with advice: up to how many
shards each combination keeps its error below 0.1 nat, below the Bayes factor
in question, and chooses the same model. Votes on the shards' own results
stand beside them.

Repeat r adds r - 1 to the study's seeds, of the split and of the draws. With
--out every partition is kept as it is done: a sweep that was stopped goes on
where it was, and ends with the same bytes.

Examples:
  consilience sweep examples/flights.toml --shards 1,10,50 --repeats 5 \\
      --local importance
  consilience sweep study.toml --by random,outcome,cluster --out sweep
  consilience sweep study.toml --combine normal,normal-uncorrected \\
      --reference -147546.42,-147562.94
  consilience plot sweep/sweep.json --kind error -o error.svg

DIR of --out then holds sweep.json (docs/sweep.md describes it), cells.csv,
groups.csv, times.json and a file per partition in cells/.";

/// What to sweep.
#[derive(Debug, Args)]
pub struct SweepArguments {
    /// The study file (TOML)
    pub study: PathBuf,
    /// Numbers of shards, ascending
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = whole, default_value = "1,5,10,20,50")]
    pub shards: Vec<u64>,
    /// Partitions for each number of shards
    #[arg(long, value_name = "N", value_parser = whole, default_value_t = 20)]
    pub repeats: u64,
    /// Ways to split: random, outcome (evenly by outcome), cluster (evenly by clusters of the predictors and outcome)
    #[arg(long, value_name = "HOW,…", value_delimiter = ',', default_value = "random")]
    pub by: Vec<SplitBy>,
    /// Combinations: normal, normal-uncorrected (as the paper writes it), cmc-is, augmented (logistic and probit; slow), exact
    #[arg(
        long,
        value_name = "METHOD,…",
        value_delimiter = ',',
        default_value = "normal,normal-uncorrected,cmc-is,exact"
    )]
    pub combine: Vec<Combine>,
    /// The true log evidence of every model, in the study's order, to hold estimates against [default: exact, averaged over the seeds]
    #[arg(long, value_name = "VALUE,…", value_delimiter = ',', allow_hyphen_values = true)]
    pub reference: Vec<f64>,
    /// Leave the votes out: majority, Borda, upsampled evidences, product of local probabilities. Upsampled evidences take as long as the shards' own
    #[arg(long)]
    pub no_votes: bool,
    /// Data instead of the study's: a path or a glob, relative to here; may be given several times
    #[arg(long, value_name = "PATH")]
    pub data: Vec<String>,
    /// How a shard's own evidence is computed: auto, importance, laplace, nuts+warp3, …
    #[arg(long, value_name = "METHOD")]
    pub local: Option<Local>,
    /// Monte Carlo draws, at most
    #[arg(long, value_name = "N", value_parser = whole)]
    pub draws: Option<u64>,
    /// Draws of a chain on which it adapts, before those that count
    #[arg(long, value_name = "N", value_parser = whole)]
    pub warmup: Option<u64>,
    /// Chains per shard
    #[arg(long, value_name = "N", value_parser = whole)]
    pub chains: Option<u64>,
    /// Seed of the draws of the first repeat
    #[arg(long, value_name = "N", value_parser = whole)]
    pub seed: Option<u64>,
    /// Seed of the split of the first repeat
    #[arg(long, value_name = "N", value_parser = whole)]
    pub split_seed: Option<u64>,
    /// Instructions to compute with: auto (the best of this CPU) or portable (slower; the same bits on every machine)
    #[arg(long, value_name = "KIND")]
    pub kernel: Option<Kernel>,
    #[command(flatten)]
    pub machine: MachineArguments,
    /// Folder for results, and for partitions that are done
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print one JSON document instead of the tables
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub page: PageArguments,
    /// No progress bar
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub engine: EngineArguments,
}

impl SweepArguments {
    /// What is to be swept.
    pub fn sweep(&self) -> Sweep {
        Sweep {
            shards: self.shards.iter().copied().map(count).collect(),
            repeats: count(self.repeats),
            by: self.by.clone(),
            combine: self.combine.clone(),
            votes: !self.no_votes,
            reference: (!self.reference.is_empty()).then(|| self.reference.clone()),
        }
    }

    /// The flags as changes to a study.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            data: (!self.data.is_empty()).then(|| self.data.clone()),
            seed: self.seed,
            split_seed: self.split_seed,
            local: self.local,
            draws: self.draws.map(count),
            warmup: self.warmup.map(count),
            chains: self.chains.map(count),
            kernel: self.kernel,
            home: crate::arguments::home(),
            ..Overrides::default()
        }
    }
}
