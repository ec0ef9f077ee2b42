//! The study file.
//!
//! A study says in TOML which data there are, how they are split, which models are compared under
//! which priors, and how their evidence is computed:
//!
//! ```
//! use consilience::study::{SplitBy, Study};
//!
//! let text = r#"
//!     [data]
//!     path = "trial.csv"
//!
//!     [split]
//!     shards = 8
//!
//!     [[model]]
//!     name = "with treatment"
//!     formula = "cured ~ age + treatment"
//!     family = "logistic"
//!
//!     [model.prior.parameters]
//!     treatment = "normal(0, 0.5)"
//!
//!     [[model]]
//!     name = "without"
//!     formula = "cured ~ age"
//!     family = "logistic"
//! "#;
//! let study = Study::parse(text, "studies/trial.toml".as_ref())?;
//! assert_eq!(study.split.by, SplitBy::Random);
//! assert_eq!(study.models[0].probability, 0.5);
//! # Ok::<(), consilience::Error>(())
//! ```

mod checks;
mod document;
mod names;
mod overrides;
mod parse;
mod prior;
mod template;
#[cfg(test)]
mod tests;

pub use names::{Combine, Kernel, Local, Missing, Points, ShareRule, SplitBy};
pub use overrides::Overrides;
pub use prior::{
    NamedPrior, ParameterName, PriorSpec, PriorTable, Role, resolve_priors, unmatched_study_priors,
};
pub use template::template;

use crate::data::read::TextFormat;
use crate::model::Family;
use crate::{Place, Result, Warning};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A study: all that the study file says, defaults filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// The study file, for errors.
    pub file: PathBuf,
    /// `[data]`.
    pub data: Data,
    /// `[split]`.
    pub split: Split,
    /// `[prior]`: what holds for all models, unless they say otherwise.
    pub prior: PriorTable,
    /// `[[model]]`: at least one, no two of the same name.
    pub models: Vec<ModelSpec>,
    /// `[evidence]`.
    pub evidence: EvidenceOptions,
    /// What the user should know about the file.
    pub notes: Vec<Warning>,
    /// The lines of the values that later checks may find fault with.
    #[serde(skip)]
    lines: BTreeMap<String, u64>,
}

/// Where the data are and how they are read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// Paths or patterns as they were written: at least one.
    pub path: Vec<String>,
    /// The folder that relative paths start from: the study file's, or empty for the working
    /// directory. It is no pattern, whatever its name.
    pub folder: PathBuf,
    /// What happens to rows with a missing value.
    pub missing: Missing,
    /// The column that says how often a row counts.
    pub weights: Option<String>,
    /// The names of the columns of text files without a header line.
    pub columns: Option<Vec<String>>,
    /// What parts the columns of a text file, an ASCII character; unless it is to be found out.
    pub delimiter: Option<char>,
    /// What begins a comment in a text file, an ASCII character.
    pub comment: Option<char>,
}

impl Default for Data {
    fn default() -> Data {
        Data {
            path: Vec::new(),
            folder: PathBuf::new(),
            missing: Missing::default(),
            weights: None,
            columns: None,
            delimiter: None,
            comment: Some('#'),
        }
    }
}

impl Data {
    /// How text files are to be read.
    pub fn text_format(&self) -> TextFormat {
        let Data { delimiter, comment, .. } = *self;
        TextFormat { delimiter, comment, columns: self.columns.clone() }
    }
}

/// How the rows are dealt out to shards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Split {
    /// How many shards, if the study says so; see [`Split::count`].
    pub shards: Option<usize>,
    /// What decides which shard a row belongs to.
    pub by: SplitBy,
    /// Which share of the prior a shard gets.
    pub share: ShareRule,
    /// The seed of the split.
    pub seed: u64,
    /// How many clusters (only for [`SplitBy::Cluster`]).
    pub clusters: usize,
}

impl Split {
    /// How many shards there are to be; `None` if the data say so. In that case
    /// [`Split::shards`] is what the user expects them to say, if anything.
    pub fn count(&self) -> Option<usize> {
        (!self.by.is_fixed_by_data()).then(|| self.shards.unwrap_or(1))
    }
}

impl Default for Split {
    fn default() -> Split {
        Split {
            shards: None,
            by: SplitBy::default(),
            share: ShareRule::default(),
            seed: 1,
            clusters: 10,
        }
    }
}

/// One model of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelSpec {
    /// Its name: the formula, if none is given.
    pub name: String,
    /// The formula as it was written.
    pub formula: String,
    /// The formula's line in the study file.
    pub formula_line: u64,
    /// The likelihood family.
    pub family: Family,
    /// The prior probability; over all models these sum to 1.
    pub probability: f64,
    /// `[model.prior]`.
    pub prior: PriorTable,
    /// The line of `[[model]]` in the study file.
    pub line: u64,
}

/// How the evidence is computed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvidenceOptions {
    /// How a shard's own evidence is computed.
    pub local: Local,
    /// How the shards are combined.
    pub combine: Combine,
    /// How many draws.
    pub draws: usize,
    /// Draws of a chain before those, on which it adapts.
    pub warmup: usize,
    /// Chains per shard.
    pub chains: usize,
    /// How many draws the shards weigh in `cmc-is`, and conditionals that they send in `augmented`.
    pub proposals: usize,
    /// What importance draws over all shards are made from.
    pub points: Points,
    /// Whether Gaussian models are combined by their sufficient statistics.
    pub statistics: bool,
    /// The standard error of a log evidence to aim at.
    pub se_target: f64,
    /// At most how many rounds.
    pub rounds: usize,
    /// The seed of the draws.
    pub seed: u64,
    /// Whose instructions the hot loops use.
    pub kernel: Kernel,
}

impl Default for EvidenceOptions {
    fn default() -> EvidenceOptions {
        EvidenceOptions {
            local: Local::default(),
            combine: Combine::default(),
            draws: 10_000,
            warmup: 2_000,
            chains: 1,
            proposals: 1_000,
            points: Points::default(),
            statistics: true,
            se_target: 0.01,
            rounds: 60,
            seed: 1,
            kernel: Kernel::default(),
        }
    }
}

impl Study {
    /// The study in this text; `file` is for errors, and for the folder that paths start from.
    pub fn parse(text: &str, file: &Path) -> Result<Study> {
        Study::parse_with(text, file, &Overrides::default())
    }

    /// The same, with these values in the place of the study's.
    pub fn parse_with(text: &str, file: &Path, overrides: &Overrides) -> Result<Study> {
        let mut study = parse::study(text, file)?;
        study.apply(overrides)?;
        Ok(study)
    }

    /// Where the file gives the value of a key such as `split.by`: nowhere if it does not, or if
    /// the caller gave another.
    pub(crate) fn place(&self, key: &str) -> Place {
        match self.lines.get(key) {
            Some(&line) => Place::file(&self.file).line(line),
            None => Place::default(),
        }
    }

    /// The study in this file.
    pub fn read(path: impl AsRef<Path>) -> Result<Study> {
        Study::read_with(path, &Overrides::default())
    }

    /// The same, with these values in the place of the study's.
    pub fn read_with(path: impl AsRef<Path>, overrides: &Overrides) -> Result<Study> {
        let path = path.as_ref();
        let text = parse::load(path).map_err(|error| parse::suspect_data(error, path))?;
        Study::parse_with(&text, path, overrides).map_err(|error| parse::suspect_data(error, path))
    }
}
