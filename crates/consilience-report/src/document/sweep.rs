//! What `consilience sweep` writes: many partitions of the same data, and what combinations and votes make of each.

use super::{Estimate, Warning};
use crate::Error;
use serde::{Deserialize, Deserializer};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Sweep {
    pub models: Vec<String>,
    pub reference: Reference,
    pub shards: Vec<u64>,
    pub repeats: u64,
    pub by: Vec<String>,
    pub combinations: Vec<String>,
    pub cells: Vec<Cell>,
    pub groups: Vec<Group>,
    pub lines: Vec<Line>,
    pub advice: Vec<Advice>,
    pub warnings: Vec<Warning>,
    #[serde(default)]
    pub times: Option<Vec<Time>>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Reference {
    pub method: String,
    pub log_evidence: Vec<Estimate>,
    /// Documents of early versions do not say it.
    #[serde(default)]
    best: Option<usize>,
    #[serde(default = "yes")]
    pub tells_best: bool,
    #[serde(default = "yes")]
    pub tells_tenth_nat: bool,
}

fn yes() -> bool {
    true
}

/// What is there, be it `null`.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<u64>>, D::Error> {
    Deserialize::deserialize(from).map(Some)
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Cell {
    pub by: String,
    pub shards: u64,
    pub repeat: u64,
    pub split_seed: u64,
    pub seed: u64,
    pub partition: String,
    pub rows: f64,
    pub combinations: Vec<Combined>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Combined {
    pub method: String,
    pub error: Option<String>,
    pub models: Vec<CombinedModel>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct CombinedModel {
    pub log_evidence: Estimate,
    #[serde(default)]
    pub unreliable: bool,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Group {
    pub by: String,
    pub shards: u64,
    pub method: String,
    pub score: String,
    pub counted: u64,
    pub failed: u64,
    pub unreliable: u64,
    pub chosen: Vec<u64>,
    pub models: Vec<GroupModel>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct GroupModel {
    pub bias: Option<f64>,
    pub sd: Option<f64>,
    pub rmse: Option<f64>,
    pub rmse_percent: Option<f64>,
    pub epsilon1: Option<f64>,
    pub epsilon2: Option<f64>,
    pub overlap: Option<f64>,
    pub overlap_share: Option<f64>,
    pub log_bayes_factor: Option<Factor>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Factor {
    pub mean: f64,
    pub sd: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Line {
    pub by: String,
    pub method: String,
    pub model: usize,
    pub what: String,
    pub intercept: f64,
    pub slope: f64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Advice {
    pub by: String,
    pub method: String,
    pub within_tenth_nat: Option<u64>,
    /// Documents of early versions do not say it.
    #[serde(default, deserialize_with = "given")]
    pub within_bayes_factor: Option<Option<u64>>,
    pub same_choice: Option<u64>,
    pub text: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Time {
    pub by: String,
    pub shards: u64,
    pub slowest_shard: f64,
    pub all_shards: f64,
}

pub(super) fn read(text: &str) -> Result<Sweep, Error> {
    let document: Sweep = super::parse(text)?;
    if document.models.is_empty() {
        return Err(Error::Document("it is not such a document: `models`: there are none".into()));
    }
    if document.reference.log_evidence.len() != document.models.len() {
        return Err(Error::Document(
            "it is not such a document: `reference.log_evidence`: it needs one per model".into(),
        ));
    }
    Ok(document)
}

impl Sweep {
    /// The model that the reference chooses: that which the document names, or the first of those with the highest evidence.
    pub fn best(&self) -> usize {
        let named = self.reference.best.filter(|k| *k < self.models.len());
        let value = |k: usize| self.reference.log_evidence[k].value;
        let highest =
            || (0..self.models.len()).rev().max_by(|&a, &b| value(a).total_cmp(&value(b)));
        named.or_else(highest).unwrap_or(0)
    }

    /// The model with the highest evidence beside the best, and the log Bayes factor of the best against it.
    pub fn next(&self) -> Option<(usize, Estimate)> {
        let (best, all) = (self.best(), &self.reference.log_evidence);
        let others = (0..self.models.len()).rev().filter(|k| *k != best);
        let next = others.max_by(|&a, &b| all[a].value.total_cmp(&all[b].value))?;
        Some((next, all[best].less(all[next])))
    }

    /// Methods in the order of the document: combinations, then whatever else is grouped.
    pub fn methods(&self) -> Vec<&str> {
        let mut methods: Vec<&str> = Vec::new();
        for name in self.combinations.iter().chain(self.groups.iter().map(|g| &g.method)) {
            // Hostile documents have very many; nobody tells more than these apart.
            if methods.len() < 16 && !methods.contains(&name.as_str()) {
                methods.push(name);
            }
        }
        methods
    }

    /// Groups that have log evidences, which can be held against the reference.
    pub fn evidences(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(|g| g.score == "log evidence")
    }
}
