//! The study: what is asked of which data.
//!
//! A [`Study`] says which data there are, how they are split, which models are compared under which
//! priors, and how their evidence is computed. It is a plain value: made by a program,
//!
//! ```
//! use consilience::model::Family;
//! use consilience::study::{ModelSpec, SplitBy, Study};
//!
//! let study = Study::new()
//!     .path("trial.csv")
//!     .shards(8)
//!     .model("cured ~ age", Family::Logistic)
//!     .with(
//!         ModelSpec::new("cured ~ age + treatment", Family::Logistic)
//!             .named("with treatment")
//!             .prior("treatment", "normal(0, 0.5)".parse()?),
//!     );
//! study.check()?;
//! assert_eq!(study.split.by, SplitBy::Random);
//! assert_eq!(study.probabilities(), [0.5, 0.5]);
//! // It is the same when it was written and read, as TOML or by serde in any other way.
//! assert_eq!(Study::from_toml(&study.to_toml())?, study);
//! # Ok::<(), consilience::Error>(())
//! ```
//!
//! or read from a [`StudyFile`], which also knows what stands on which line, for errors:
//!
//! ```
//! use consilience::study::StudyFile;
//!
//! let text = r#"
//!     [data]
//!     path = "trial.csv"
//!
//!     [[model]]
//!     formula = "cured ~ age"
//!     family = "logistc"
//! "#;
//! let error = StudyFile::parse(text, "studies/trial.toml".as_ref()).unwrap_err();
//! assert!(error.to_string().starts_with("studies/trial.toml, line 7: `model.family`"));
//! ```

mod build;
mod checks;
mod file;
mod keys;
mod lines;
mod names;
mod overrides;
mod prior;
mod select;
mod synonyms;
mod template;
mod ties;
mod written;

pub use crate::data::SplitBy;
pub use crate::space::{Heredity, ModelPrior};
pub use file::StudyFile;
pub use lines::Lines;
pub use names::{
    ClusterOn, Combine, Kernel, Local, Missing, Points, Schedule, SelectBy, ShareRule, Sizes,
};
pub use overrides::Overrides;
pub use prior::{
    ParameterName, PriorSpec, PriorTable, Role, resolve_priors, unmatched_study_priors,
};
pub use select::Select;
pub use template::{template, template_of};
pub(crate) use ties::group_of;

use crate::data::Codebook;
use crate::data::read::TextFormat;
use crate::data::split::SplitRule;
use crate::model::Family;
use serde::{Deserialize, Serialize};

/// A study: all that it says, defaults filled in, and nothing about where it was written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Study {
    /// `[data]`.
    pub data: Data,
    /// `[split]`.
    pub split: Split,
    /// `[prior]`: what holds for all models, unless they say otherwise.
    #[serde(skip_serializing_if = "PriorTable::is_empty")]
    pub prior: PriorTable,
    /// `[[model]]`: at least one, no two of the same name; none where there is `[select]`.
    #[serde(
        rename = "model",
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "written::models"
    )]
    pub models: Vec<ModelSpec>,
    /// `[select]`: a choice among many models in the place of those.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select: Option<Select>,
    /// `[evidence]`.
    pub evidence: EvidenceOptions,
    /// `[schema]`: what is stated of columns, so that shards are not asked. Studies without it keep their hash.
    #[serde(skip_serializing_if = "Codebook::is_empty")]
    pub schema: Codebook,
}

/// Where the data are and how they are read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Data {
    /// Paths or patterns of files: at least one, unless the data come as tables.
    #[serde(deserialize_with = "written::one_or_more", skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// What happens to rows with a missing value.
    pub missing: Missing,
    /// The column that says how often a row counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
    /// The names of the columns of text files without a header line.
    #[serde(deserialize_with = "written::trimmed", skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
    /// What parts the columns of a text file, an ASCII character; unless it is to be found out.
    #[serde(
        serialize_with = "written::character",
        deserialize_with = "written::delimiter",
        skip_serializing_if = "Option::is_none"
    )]
    pub delimiter: Option<char>,
    /// What begins a comment in a text file, an ASCII character; nothing does if it is `None`.
    #[serde(serialize_with = "written::character", deserialize_with = "written::comment")]
    pub comment: Option<char>,
    /// What stands for a missing value, beside what always does. Studies that leave it out keep their hash.
    #[serde(deserialize_with = "written::marks", skip_serializing_if = "Vec::is_empty")]
    pub na: Vec<String>,
    /// What stands before decimals in a text file: a point or a comma. Studies that leave it out keep their hash.
    #[serde(
        serialize_with = "written::decimals",
        deserialize_with = "written::decimal",
        skip_serializing_if = "written::is_point"
    )]
    pub decimal: char,
}

impl Default for Data {
    fn default() -> Data {
        Data {
            path: Vec::new(),
            missing: Missing::default(),
            weights: None,
            columns: None,
            delimiter: None,
            comment: Some('#'),
            na: Vec::new(),
            decimal: '.',
        }
    }
}

impl Data {
    /// How text files are to be read.
    pub fn text_format(&self) -> TextFormat {
        let Data { delimiter, comment, decimal, .. } = *self;
        let (columns, na) = (self.columns.clone(), self.na.clone());
        TextFormat { delimiter, comment, columns, na, decimal }
    }
}

/// How the rows are dealt out to shards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Split {
    /// How many shards, if the study says so; see [`Split::count`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shards: Option<usize>,
    /// What decides which shard a row belongs to.
    pub by: SplitBy,
    /// How many rows each shard gets (only for [`SplitBy::Random`]). Studies that leave it out keep their hash.
    #[serde(skip_serializing_if = "is_default")]
    pub sizes: Sizes,
    /// Which share of the prior a shard gets.
    pub share: ShareRule,
    /// The seed of the split.
    pub seed: u64,
    /// How many clusters (only for [`SplitBy::Cluster`]).
    pub clusters: usize,
    /// In which units these are found. Studies that leave it out keep their hash.
    #[serde(skip_serializing_if = "is_default")]
    pub cluster_on: ClusterOn,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Split {
    /// How many shards there are to be; `None` if the data say so. In that case
    /// [`Split::shards`] is what the user expects them to say, if anything.
    pub fn count(&self) -> Option<usize> {
        (!self.by.is_fixed_by_data()).then(|| self.shards.unwrap_or(1))
    }

    /// What decides on the partition.
    pub fn rule(&self) -> SplitRule {
        let Split { shards, seed, sizes, clusters, cluster_on, .. } = *self;
        SplitRule { by: self.by.clone(), shards, seed, sizes, clusters, cluster_on }
    }
}

impl Default for Split {
    fn default() -> Split {
        Split {
            shards: None,
            by: SplitBy::default(),
            sizes: Sizes::default(),
            share: ShareRule::default(),
            seed: 1,
            clusters: 10,
            cluster_on: ClusterOn::default(),
        }
    }
}

/// One model of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "written::WrittenModel")]
pub struct ModelSpec {
    /// Its name: the formula, if none is given, with the family where models of several have that formula.
    pub name: String,
    /// The formula as it was written.
    pub formula: String,
    /// The likelihood family.
    pub family: Family,
    /// The prior probability, up to a factor that all models share; see [`Study::probabilities`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// `[model.prior]`.
    #[serde(skip_serializing_if = "PriorTable::is_empty")]
    pub prior: PriorTable,
}

/// How the evidence is computed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
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
    /// What shards are asked, which decides how many rounds there are.
    pub schedule: Schedule,
    /// At most how many rounds.
    pub rounds: usize,
    /// The seed of the draws.
    pub seed: u64,
    /// Nodes of the quadrature per random effect; none for 25, and 15 where there are two a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
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
            schedule: Schedule::default(),
            rounds: 60,
            seed: 1,
            nodes: None,
            kernel: Kernel::default(),
        }
    }
}
