//! What is typed for runs whose questions and answers are files.

use crate::arguments::{
    DrawsArguments, NamingArguments, OutputArguments, StudyArguments, WishArguments, threads,
    threads_or_all, whole,
};
use crate::duration::duration;
use crate::memory::MemoryArguments;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

pub const SPLIT_EXAMPLES: &str = "\
Example, all on one machine:
  consilience split examples/flights.toml --run flights.run
  consilience work flights.run --wait &
  consilience combine flights.run --wait

DIR can be on a file system that many machines see: start `work DIR --shard K`
on any of them. docs/cluster.md goes from a laptop to a cluster.";

pub const COMBINE_HELP: &str = "\
Whatever is answered stays answered: it can be run at any time, killed at any
time, and run again. Without --wait it returns at once: with code 4 if answers
are missing.

With sites, --wait looks again and again into the folders among ANSWER… and
takes in what arrives. --watch DIR also writes each round's question file into
that folder, and in the end a notice for those who watch it (`consilience
answer --watch DIR`), so that nobody carries files:
  consilience combine trial.run --watch shared --timeout 2h
Other runs' files may be in the folder too. If a round's answers are not all
there in time, it ends with code 4 and names who is missing; the same command
goes on from there, and --without SITE goes on without it.

What split, ask or compare were told to compute beside the comparison
(--prior-scale, --leave-one-out) the run delivers without being told again;
given here, it is asked for from now on. --parameters, --bayes-factors,
--shard-details and --posterior ask nothing more and can be had at any time.";

/// What to split, and where to.
#[derive(Debug, Args)]
pub struct SplitArguments {
    #[command(flatten)]
    pub study: StudyArguments,
    /// The run directory to make
    #[arg(long, value_name = "DIR")]
    pub run: PathBuf,
    #[command(flatten)]
    pub draws: DrawsArguments,
    #[command(flatten)]
    pub wishes: WishArguments,
}

/// Which shards to work on.
#[derive(Debug, Args)]
pub struct WorkArguments {
    /// The run directory
    pub run: PathBuf,
    /// Shards to work on, such as 7 or 0-9,15 [default: all]; may be given several times
    #[arg(long, value_name = "LIST", value_parser = ranges)]
    pub shard: Vec<Ranges>,
    /// Also compute again what could not be answered before
    #[arg(long)]
    pub retry: bool,
    /// Stay and answer new questions until the result is there, or the run has failed
    #[arg(long)]
    pub wait: bool,
    /// Minutes after which a shard is worked on although another worker holds it, who has answered nothing since: it was stopped, or hangs. Both write the same
    #[arg(long, value_name = "MINUTES", default_value_t = 30, value_parser = whole, allow_negative_numbers = true)]
    pub pass_over: u64,
    /// Threads to work on [default: all cores]; the result does not depend on it
    #[arg(long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    threads: Option<u64>,
    #[command(flatten)]
    pub memory: MemoryArguments,
    /// No progress bar
    #[arg(long, short)]
    pub quiet: bool,
}

impl WorkArguments {
    /// How many threads.
    pub fn threads(&self) -> usize {
        threads_or_all(self.threads)
    }
}

/// What to combine.
#[derive(Debug, Args)]
pub struct CombineArguments {
    /// The run directory
    pub run: PathBuf,
    /// Answer files of sites to take in first, or folders with such files
    #[arg(value_name = "ANSWER")]
    pub answers: Vec<PathBuf>,
    /// Go on without this site; may be given several times
    #[arg(long, value_name = "SITE")]
    pub without: Vec<String>,
    /// Wait for missing answers, with a progress bar, and go on until the result is there
    #[arg(long)]
    pub wait: bool,
    /// Wait for answers of sites in this folder, and put the question files into it; may be given several times
    #[arg(long, value_name = "DIR")]
    pub watch: Vec<PathBuf>,
    /// With --wait or --watch: end with code 4 if a round takes longer than this, such as 30s, 10m or 2d [default: wait for ever]
    #[arg(long, value_name = "SPAN", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// With --wait or --watch: look for answers so often [default: 0.2s; 1s with --watch]
    #[arg(long, value_name = "SPAN", value_parser = duration)]
    pub every: Option<Duration>,
    #[command(flatten)]
    pub output: OutputArguments,
    #[command(flatten)]
    pub wishes: WishArguments,
    #[command(flatten)]
    pub select: NamingArguments,
}

/// Which run to look at.
#[derive(Debug, Args)]
pub struct StatusArguments {
    /// The run directory
    pub run: PathBuf,
    /// Print one JSON document instead of the table
    #[arg(long)]
    pub json: bool,
}

/// Numbers such as `0-9,15`: first and last of each range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranges(pub Vec<(usize, usize)>);

fn ranges(text: &str) -> Result<Ranges, String> {
    let wrong = || "numbers of shards are needed, such as 7 or 0-9,15".to_string();
    let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
    let mut ranges = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = (number(first)?, number(last)?);
        if range.0 > range.1 {
            return Err(wrong());
        }
        ranges.push(range);
    }
    Ok(Ranges(ranges))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_shards() {
        assert_eq!(ranges("7").unwrap().0, [(7, 7)]);
        assert_eq!(ranges("0-9, 15").unwrap().0, [(0, 9), (15, 15)]);
        for wrong in ["", "a", "3-", "-3", "9-3", "1,,2", "99999999999999999999"] {
            assert!(ranges(wrong).is_err(), "{wrong}");
        }
    }
}
