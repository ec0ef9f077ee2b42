//! One partition of a sweep: what every combination and vote makes of it.

use super::CellName;
use super::metrics::best;
use crate::Result;
use crate::combine::{Baseline, Evidence, Ways};
use crate::compare::{Bounds, PartitionReport};
use crate::estimate::Estimate;
use crate::study::{Combine, Study};
use serde::{Deserialize, Serialize};

/// Overlaps that are a smaller part of the log evidence are what rounding left of sums.
const ROUNDING: f64 = 1e-12;

/// What was found on one partition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The way to split.
    pub by: String,
    /// The number of shards.
    pub shards: usize,
    /// The repeat, counted from 1.
    pub repeat: usize,
    /// The seed of the split.
    pub split_seed: u64,
    /// The seed of the draws.
    pub seed: u64,
    /// The name of the partition.
    pub partition: String,
    /// Rows used.
    pub rows: usize,
    /// What every combination says.
    pub combinations: Vec<CellCombination>,
    /// What votes say.
    pub votes: Vec<CellVote>,
    /// Why there are no votes, if they could not be counted.
    pub votes_error: Option<String>,
}

/// What a combination makes of a partition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellCombination {
    /// Its name.
    pub method: String,
    /// Why it got nowhere, if it did.
    pub error: Option<String>,
    /// The number of the model with the highest evidence, from 0.
    pub chooses: Option<usize>,
    /// Per model, in the study's order; empty where there is an error.
    pub models: Vec<CellModel>,
}

/// What a combination says of one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellModel {
    /// log p(y).
    pub log_evidence: Estimate,
    /// Σ log Z_s, where the shards computed them.
    pub shards: Option<Estimate>,
    /// log I.
    pub overlap: Option<Estimate>,
    /// log I as a share of log p(y).
    pub overlap_share: Option<f64>,
    /// The logarithm of the correction factor.
    pub correction: Option<f64>,
    /// What taking subposteriors as normal may be off by, in nats, as the combination says itself.
    pub shape_error: Option<f64>,
    /// log A of the error bound, as far as draws show it.
    pub log_a: Option<f64>,
    /// log B.
    pub log_b: Option<f64>,
    /// Whether the combination says of itself that it is not to be trusted.
    pub unreliable: bool,
}

/// What a vote says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellVote {
    /// Its name.
    pub method: String,
    /// What is counted.
    pub score: String,
    /// Per model.
    pub models: Vec<Estimate>,
    /// The number of the model it chooses, from 0.
    pub chooses: usize,
}

/// What a cell took, in CPU seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CellTime {
    /// Of the shard that took longest.
    pub slowest_shard: f64,
    /// Of all shards together.
    pub all_shards: f64,
}

impl CellTime {
    /// Of shards that took this long each.
    pub fn of(spent: &[f64]) -> CellTime {
        CellTime {
            slowest_shard: spent.iter().copied().fold(0.0, f64::max),
            all_shards: spent.iter().sum(),
        }
    }
}

impl Cell {
    /// What several ways to combine made of a partition.
    pub(crate) fn new(
        name: &CellName,
        study: &Study,
        partition: &PartitionReport,
        ways: Ways,
    ) -> Cell {
        let of_method = |(method, found): (Combine, Result<Vec<Evidence>>)| {
            let (models, error) = match found {
                Ok(evidences) => (evidences.iter().map(CellModel::of).collect(), None),
                Err(error) => (Vec::new(), Some(error.to_string())),
            };
            CellCombination::new(method.name(), models, error)
        };
        let (votes, votes_error) = match ways.votes {
            Ok(votes) => (votes, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        Cell {
            combinations: ways.combinations.into_iter().map(of_method).collect(),
            votes: votes.into_iter().map(CellVote::of).collect(),
            votes_error,
            ..Cell::empty(name, study, partition)
        }
    }

    /// A partition on which something else than combinations was computed, beside evidences that are exact.
    pub fn of_votes(
        name: &CellName,
        study: &Study,
        partition: &PartitionReport,
        exact: &[Estimate],
        votes: Vec<CellVote>,
    ) -> Cell {
        let model = |log_evidence: &Estimate| CellModel {
            log_evidence: *log_evidence,
            shards: None,
            overlap: None,
            overlap_share: None,
            correction: None,
            shape_error: None,
            log_a: None,
            log_b: None,
            unreliable: false,
        };
        let models = exact.iter().map(model).collect();
        let exact = CellCombination::new(Combine::Exact.name(), models, None);
        Cell { combinations: vec![exact], votes, ..Cell::empty(name, study, partition) }
    }

    fn empty(name: &CellName, study: &Study, partition: &PartitionReport) -> Cell {
        Cell {
            by: name.by.to_string(),
            shards: name.shards,
            repeat: name.repeat,
            split_seed: name.split_seed(study),
            seed: name.seed(study),
            partition: partition.hash.clone(),
            rows: partition.rows,
            combinations: Vec::new(),
            votes: Vec::new(),
            votes_error: None,
        }
    }

    /// What a combination says here, if it was asked.
    pub fn combination(&self, method: &str) -> Option<&CellCombination> {
        self.combinations.iter().find(|c| c.method == method)
    }

    /// Takes out what a combination says here.
    pub(super) fn take(&mut self, method: &str) -> Option<CellCombination> {
        let place = self.combinations.iter().position(|c| c.method == method)?;
        Some(self.combinations.remove(place))
    }

    /// Whether it is the cell of this name.
    pub(crate) fn is(&self, name: &CellName) -> bool {
        self.by == name.by.to_string() && self.shards == name.shards && self.repeat == name.repeat
    }

    /// Whether it can have been found for so many models: what was kept may have been changed since.
    pub(crate) fn is_sound(&self, models: usize) -> bool {
        let sound = |e: &Estimate| e.value.is_finite() && e.se.is_none_or(|se| se >= 0.0);
        let combined = |c: &CellCombination| {
            let values: Vec<f64> = c.models.iter().map(|m| m.log_evidence.value).collect();
            match c.chooses {
                None => values.is_empty() && c.error.is_some(),
                Some(chosen) => values.len() == models && chosen == best(&values),
            }
        };
        let voted = |v: &CellVote| v.models.len() == models && v.chooses < models;
        let evidences = self.combinations.iter().flat_map(|c| &c.models).map(|m| &m.log_evidence);
        let mut numbers = evidences.chain(self.votes.iter().flat_map(|v| &v.models));
        self.combinations.iter().all(combined) && self.votes.iter().all(voted) && numbers.all(sound)
    }
}

impl CellCombination {
    fn new(method: &str, models: Vec<CellModel>, error: Option<String>) -> CellCombination {
        let values: Vec<f64> = models.iter().map(|m| m.log_evidence.value).collect();
        let chooses = (!values.is_empty()).then(|| best(&values));
        CellCombination { method: method.to_string(), error, chooses, models }
    }
}

impl CellModel {
    fn of(evidence: &Evidence) -> CellModel {
        let total = evidence.log_z.value;
        let bounds = evidence.summaries.as_deref().and_then(Bounds::of);
        let finite = |value: f64| value.is_finite().then_some(value);
        // A shard alone has no overlap.
        let share = |overlap: f64| {
            let least = ROUNDING * total.abs().max(1.0);
            if overlap.abs() < least { 0.0 } else { overlap / total }
        };
        CellModel {
            log_evidence: evidence.log_z,
            shards: evidence.shards,
            overlap: evidence.overlap,
            overlap_share: evidence.overlap.and_then(|overlap| finite(share(overlap.value))),
            correction: evidence.correction,
            shape_error: evidence.shape_error,
            log_a: bounds.as_ref().and_then(|b| finite(b.log_a)),
            log_b: bounds.as_ref().and_then(|b| finite(b.log_b)),
            unreliable: evidence.unreliable().is_some(),
        }
    }
}

impl CellVote {
    /// A vote with these scores of the models.
    pub fn new(method: &str, score: &str, models: Vec<Estimate>) -> CellVote {
        let values: Vec<f64> = models.iter().map(|m| m.value).collect();
        CellVote { method: method.into(), score: score.into(), models, chooses: best(&values) }
    }

    fn of(vote: Baseline) -> CellVote {
        let Baseline { method, score, models, chooses, .. } = vote;
        CellVote { method, score: score.to_string(), models, chooses }
    }
}
