//! What the caller says in place of the study file.

use super::checks::{self, Limits};
use super::{Combine, Kernel, Lines, Local, ShareRule, Sizes, SplitBy, Study, StudyFile};
use crate::{Error, Result};
use std::path::PathBuf;

/// Values that take the place of the study's: from a command line, say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrides {
    /// For `data.path`; relative to the working directory, not to the study file.
    pub data: Option<Vec<String>>,
    /// For `split.shards`.
    pub shards: Option<usize>,
    /// For `split.by`. Where the data then fix the number of shards, the study's own no longer counts.
    pub by: Option<SplitBy>,
    /// For `split.sizes`.
    pub sizes: Option<Sizes>,
    /// For `split.share`.
    pub share: Option<ShareRule>,
    /// For `split.seed`.
    pub split_seed: Option<u64>,
    /// For `evidence.seed`.
    pub seed: Option<u64>,
    /// For `evidence.local`.
    pub local: Option<Local>,
    /// For `evidence.combine`.
    pub combine: Option<Combine>,
    /// For `evidence.draws`.
    pub draws: Option<usize>,
    /// For `evidence.warmup`.
    pub warmup: Option<usize>,
    /// For `evidence.chains`.
    pub chains: Option<usize>,
    /// For `evidence.se_target`.
    pub se_target: Option<f64>,
    /// For `evidence.rounds`.
    pub rounds: Option<usize>,
    /// For `evidence.kernel`.
    pub kernel: Option<Kernel>,
    /// What `~` stands for at the beginning of a path of data. The study keeps the `~`, so that it has the same hash for
    /// everybody.
    pub home: Option<PathBuf>,
}

fn count(key: &str, value: Option<usize>, limits: Limits) -> Result<Option<usize>> {
    if let Some(value) = value {
        limits.check(value as u64).map_err(|message| Error::input(format!("`{key}` {message}")))?;
    }
    Ok(value)
}

impl StudyFile {
    /// Puts these values in the place of the study's, and checks that the whole still holds. If it
    /// does not, the study stays as it was.
    pub fn apply(&mut self, overrides: &Overrides) -> Result<()> {
        let mut changed = self.clone();
        changed.replace(overrides)?;
        changed.check()?;
        *self = changed;
        Ok(())
    }

    /// As [`Study::check`]; errors name file and line.
    pub fn check(&self) -> Result<()> {
        self.study.check_with(&self.lines).map_err(|error| self.lines.locate(error))
    }

    fn replace(&mut self, overrides: &Overrides) -> Result<()> {
        let Overrides { data, shards, by, share, split_seed, seed, local, combine, .. } = overrides;
        let shards = count("shards", *shards, checks::SHARDS)?;
        let warmup = count("warmup", overrides.warmup, checks::WARMUP)?;
        let chains = count("chains", overrides.chains, checks::CHAINS)?;
        let rounds = count("rounds", overrides.rounds, checks::ROUNDS)?;
        if let Some(value) = overrides.se_target {
            checks::se_target(value)
                .map_err(|message| Error::input(format!("`se_target` {message}")))?;
        }
        if overrides.home.is_some() {
            self.home.clone_from(&overrides.home);
        }
        if let Some(path) = data {
            if path.is_empty() || path.iter().any(|path| path.trim().is_empty()) {
                return Err(Error::input("the data's path is empty; name a file or a pattern"));
            }
            self.folder = PathBuf::new();
        }
        let StudyFile { study: Study { data: own, split, evidence, .. }, lines, .. } = self;
        set("data.path", &mut own.path, data.clone(), lines);
        if shards.is_none()
            && by.as_ref().is_some_and(|by| by.is_fixed_by_data() && *by != split.by)
        {
            set("split.shards", &mut split.shards, Some(None), lines);
        }
        set("split.shards", &mut split.shards, shards.map(Some), lines);
        set("split.by", &mut split.by, by.clone(), lines);
        set("split.sizes", &mut split.sizes, overrides.sizes, lines);
        set("split.share", &mut split.share, *share, lines);
        set("split.seed", &mut split.seed, *split_seed, lines);
        set("evidence.seed", &mut evidence.seed, *seed, lines);
        set("evidence.local", &mut evidence.local, *local, lines);
        set("evidence.combine", &mut evidence.combine, *combine, lines);
        let draws = count("draws", overrides.draws, checks::draws(evidence))?;
        set("evidence.draws", &mut evidence.draws, draws, lines);
        set("evidence.warmup", &mut evidence.warmup, warmup, lines);
        set("evidence.chains", &mut evidence.chains, chains, lines);
        set("evidence.se_target", &mut evidence.se_target, overrides.se_target, lines);
        set("evidence.rounds", &mut evidence.rounds, rounds, lines);
        set("evidence.kernel", &mut evidence.kernel, overrides.kernel, lines);
        Ok(())
    }
}

/// A line is where a value stands, and an overriding one stands in no file.
fn set<T>(key: &str, target: &mut T, value: Option<T>, lines: &mut Lines) {
    if let Some(value) = value {
        *target = value;
        lines.forget(key);
    }
}
