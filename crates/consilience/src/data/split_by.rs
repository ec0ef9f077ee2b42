//! The rules by which rows are dealt out to shards.

use crate::error::{clip, nearest, suggestion};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What decides which shard a row belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
#[non_exhaustive]
pub enum SplitBy {
    /// Chance.
    #[default]
    Random,
    /// The outcome.
    Outcome,
    /// Clusters of the predictors.
    Cluster,
    /// The file: one shard each.
    File,
    /// A column's value: one shard each.
    Column(String),
}

impl SplitBy {
    /// The names in the study file; the last stands for any column.
    pub const NAMES: [&str; 5] = ["random", "outcome", "cluster", "file", "column:NAME"];

    /// The rule of this name; the error gives the nearest name and all of them.
    pub fn parse(text: &str) -> Result<SplitBy> {
        let (head, column) = match text.split_once(':') {
            Some((head, column)) => (head.trim(), Some(column.trim())),
            None => (text, None),
        };
        match (head, column) {
            ("random", None) => Ok(SplitBy::Random),
            ("outcome", None) => Ok(SplitBy::Outcome),
            ("cluster", None) => Ok(SplitBy::Cluster),
            ("file", None) => Ok(SplitBy::File),
            ("column", Some(name)) if !name.is_empty() => Ok(SplitBy::Column(name.to_string())),
            ("column", _) => Err(Error::input(
                "the column's name is missing; write column:NAME, for example \"column:hospital\"",
            )),
            // What follows the colon must not count against the likeness.
            (_, Some(name)) if nearest(&clip(head), ["column"]).is_some() => {
                let (typed, name) = (clip(text), clip(name));
                Err(Error::input(format!("there is no `{typed}`; did you mean `column:{name}`?")))
            }
            _ => {
                let typed = clip(text);
                let known = suggestion(&typed, SplitBy::NAMES);
                // A column's name alone is what most people write first.
                let column = match nearest(&typed, SplitBy::NAMES) {
                    None if column.is_none() && !typed.trim().is_empty() => {
                        format!("; for a shard per value of a column write `column:{typed}`")
                    }
                    _ => String::new(),
                };
                Err(Error::input(format!("there is no `{typed}`{column}{known}")))
            }
        }
    }

    /// Whether the data say how many shards there are, and not the study.
    pub fn is_fixed_by_data(&self) -> bool {
        matches!(self, SplitBy::File | SplitBy::Column(_))
    }
}

impl fmt::Display for SplitBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SplitBy::Random => f.write_str("random"),
            SplitBy::Outcome => f.write_str("outcome"),
            SplitBy::Cluster => f.write_str("cluster"),
            SplitBy::File => f.write_str("file"),
            SplitBy::Column(name) => write!(f, "column:{name}"),
        }
    }
}

impl FromStr for SplitBy {
    type Err = Error;

    fn from_str(text: &str) -> Result<SplitBy> {
        SplitBy::parse(text)
    }
}

impl From<SplitBy> for String {
    fn from(by: SplitBy) -> String {
        by.to_string()
    }
}

impl TryFrom<String> for SplitBy {
    type Error = Error;

    fn try_from(text: String) -> Result<SplitBy> {
        SplitBy::parse(&text)
    }
}
