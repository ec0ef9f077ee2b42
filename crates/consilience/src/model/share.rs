//! How the prior is shared out among shards.

use serde::{Deserialize, Serialize};

/// How the prior is shared out: a shard works out its own w_s.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Share {
    /// 1/S.
    Equal {
        /// S.
        shards: usize,
    },
    /// n_s/n.
    Rows {
        /// n, observations over all shards.
        total: f64,
    },
}

impl Share {
    /// w_s of a shard with this many observations.
    pub fn of(self, observations: f64) -> f64 {
        match self {
            Share::Equal { shards } => 1.0 / shards as f64,
            Share::Rows { total } => observations / total,
        }
    }
}
