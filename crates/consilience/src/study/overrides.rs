//! What the caller says in place of the study file.

use super::checks::{self, Limits};
use super::{Combine, Kernel, Local, ShareRule, SplitBy, Study};
use crate::{Error, Result};
use std::path::PathBuf;

/// Values that take the place of the study's: from a command line, say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrides {
    /// For `data.path`; relative to the working directory, not to the study file.
    pub data: Option<Vec<String>>,
    /// For `split.shards`.
    pub shards: Option<usize>,
    /// For `split.by`.
    pub by: Option<SplitBy>,
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
    /// For `evidence.se_target`.
    pub se_target: Option<f64>,
    /// For `evidence.rounds`.
    pub rounds: Option<usize>,
    /// For `evidence.kernel`.
    pub kernel: Option<Kernel>,
}

fn count(key: &str, value: Option<usize>, limits: Limits) -> Result<Option<usize>> {
    if let Some(value) = value {
        limits.check(value as u64).map_err(|message| Error::input(format!("`{key}` {message}")))?;
    }
    Ok(value)
}

impl Study {
    /// Puts these values in the place of the study's, and checks that the whole still holds. If it
    /// does not, the study stays as it was.
    pub fn apply(&mut self, overrides: &Overrides) -> Result<()> {
        let mut changed = self.clone();
        changed.replace(overrides)?;
        changed.validate()?;
        *self = changed;
        Ok(())
    }

    fn replace(&mut self, overrides: &Overrides) -> Result<()> {
        let Overrides { data, shards, by, share, split_seed, seed, local, combine, .. } = overrides;
        let shards = count("shards", *shards, checks::SHARDS)?;
        let draws = count("draws", overrides.draws, checks::DRAWS)?;
        let rounds = count("rounds", overrides.rounds, checks::ROUNDS)?;
        if let Some(value) = overrides.se_target {
            checks::se_target(value)
                .map_err(|message| Error::input(format!("`se_target` {message}")))?;
        }
        if let Some(path) = data {
            if path.is_empty() || path.iter().any(|path| path.trim().is_empty()) {
                return Err(Error::input("the data's path is empty; name a file or a pattern"));
            }
            self.data.path = path.clone();
            self.data.folder = PathBuf::new();
        }
        // A line is where a value stands, and an overriding one stands in no file.
        if set(&mut self.evidence.local, *local) {
            self.lines.remove("evidence.local");
        }
        if set(&mut self.evidence.combine, *combine) {
            self.lines.remove("evidence.combine");
        }
        if set(&mut self.split.shards, shards.map(Some)) {
            self.lines.remove("split.shards");
        }
        if set(&mut self.split.by, by.clone()) {
            self.lines.remove("split.by");
        }
        set(&mut self.split.share, *share);
        set(&mut self.split.seed, *split_seed);
        set(&mut self.evidence.seed, *seed);
        set(&mut self.evidence.draws, draws);
        set(&mut self.evidence.se_target, overrides.se_target);
        set(&mut self.evidence.rounds, rounds);
        set(&mut self.evidence.kernel, overrides.kernel);
        Ok(())
    }
}

fn set<T>(target: &mut T, value: Option<T>) -> bool {
    let given = value.is_some();
    if let Some(value) = value {
        *target = value;
    }
    given
}
