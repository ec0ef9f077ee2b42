//! The program's JSON documents, read as far as they are drawn. Fields that are not named here are passed over.

pub(crate) mod compare;
pub(crate) mod select;
pub(crate) mod sweep;

use crate::Error;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

/// The version of documents that is understood.
const VERSION: u64 = 1;

/// A document of `consilience compare`, `select` or `sweep`.
#[derive(Debug, Clone)]
pub struct Document {
    pub(crate) content: Content,
    /// The names of the shards, where they have some.
    pub(crate) shard_names: Vec<String>,
}

/// What a document is about.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "there is one of them, and it is never moved about")]
pub(crate) enum Content {
    Compare(compare::Compare),
    Select(select::Select),
    Sweep(sweep::Sweep),
}

/// What tells documents apart.
#[derive(Deserialize)]
struct Head {
    version: Option<serde_json::Value>,
    kind: Option<serde_json::Value>,
    best: Option<IgnoredAny>,
    inclusion: Option<IgnoredAny>,
    cells: Option<IgnoredAny>,
}

impl Document {
    /// Reads a document: the text that `--json` prints.
    ///
    /// # Errors
    /// If the text is none, with the key that is missing or wrong, or is of another version.
    pub fn read(text: &str) -> Result<Document, Error> {
        // Serde would take the elements of a list for the keys below, one after the other.
        if text.trim_start().starts_with('[') && serde_json::from_str::<IgnoredAny>(text).is_ok() {
            return Err(Error::Document(
                "it is a list, and not such a document: give what compare, select or sweep print with --json, or write with --out (of a sweep sweep.json, and not times.json)"
                    .into(),
            ));
        }
        let head: Head = parse(text).map_err(|error| match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => error,
            Err(why) => Error::Document(format!(
                "it is not JSON ({why}): give the document that compare, select or sweep print with --json, or write with --out"
            )),
        })?;
        let Some(version) = head.version else {
            return Err(Error::Document(
                "it has no key `version`: it is not a JSON document of compare, select or sweep"
                    .into(),
            ));
        };
        if version.as_u64() != Some(VERSION) {
            let found = crate::text::fit(&version.to_string(), 1.0, 40.0);
            return Err(Error::Version { found, known: VERSION });
        }
        let kind = head.kind.as_ref().and_then(serde_json::Value::as_str);
        let content = if kind == Some("sweep") || head.cells.is_some() {
            Content::Sweep(sweep::read(text)?)
        } else if head.inclusion.is_some() {
            Content::Select(parse(text)?)
        } else if head.best.is_some() {
            Content::Compare(compare::read(text)?)
        } else {
            return Err(Error::Document(
                "it has none of the keys `best` (compare), `inclusion` (select) and `cells` (sweep): it is not a document of these"
                    .into(),
            ));
        };
        let names = match &content {
            Content::Compare(document) => document.partition.names.clone(),
            Content::Select(document) => document.partition.names.clone(),
            Content::Sweep(_) => None,
        };
        Ok(Document { content, shard_names: names.unwrap_or_default() })
    }

    /// Gives the shards other names than the document does, in their order.
    #[must_use]
    pub fn with_shard_names(mut self, names: &[String]) -> Document {
        self.shard_names = names.to_vec();
        self
    }

    /// All warnings, each with its model.
    pub(crate) fn all_warnings(&self) -> Vec<(Option<&str>, &Warning)> {
        match &self.content {
            Content::Compare(document) => document.all_warnings(),
            Content::Select(document) => document.warnings.iter().map(|w| (None, w)).collect(),
            Content::Sweep(document) => document.warnings.iter().map(|w| (None, w)).collect(),
        }
    }

    /// The command that the document is of: `compare`, `select` or `sweep`.
    pub fn command(&self) -> &'static str {
        match self.content {
            Content::Compare(_) => "compare",
            Content::Select(_) => "select",
            Content::Sweep(_) => "sweep",
        }
    }

    pub(crate) fn shard(&self, index: usize) -> String {
        self.shard_names.get(index).cloned().unwrap_or_else(|| format!("shard {index}"))
    }
}

/// Reads a text; an error names the key.
fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let key = error.path().to_string();
        let what = error.into_inner();
        let place = if key == "." {
            String::new()
        } else {
            format!("`{}`: ", crate::text::fit(&key, 1.0, 120.0))
        };
        Error::Document(format!("it is not such a document: {place}{what}"))
    })?;
    reader
        .end()
        .map_err(|error| Error::Document(format!("it is not one JSON document: {error}")))?;
    Ok(value)
}

/// A value with its standard error.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Estimate {
    pub value: f64,
    pub se: Option<f64>,
}

impl Estimate {
    /// The ends of its 95% interval.
    pub fn interval(self) -> Option<(f64, f64)> {
        let half = 1.96 * self.se?.abs();
        Some((self.value - half, self.value + half))
    }

    /// The difference to another one that errs by itself.
    pub fn less(self, other: Estimate) -> Estimate {
        let se = self.se.zip(other.se).map(|(a, b)| a.hypot(b));
        Estimate { value: self.value - other.value, se }
    }

    /// As text.
    pub fn show(self) -> String {
        crate::text::estimate(self.value, self.se)
    }
}

/// How bad a warning is; the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Level {
    Unreliable,
    Caution,
    Note,
}

/// What should be known.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Warning {
    pub code: String,
    pub level: Level,
    pub shard: Option<u64>,
    pub message: String,
    pub advice: String,
}

/// How the rows were split.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Partition {
    pub shards: u64,
    pub rows: u64,
    pub dropped: u64,
    pub by: String,
    pub seed: u64,
    pub hash: String,
    #[serde(default)]
    pub names: Option<Vec<String>>,
}

/// Rounds and bytes.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Traffic {
    pub rounds: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
}
