//! What the user should know about a result that is there all the same.

use serde::{Deserialize, Serialize};

/// How far a warning reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Good to know; the result stands.
    Note,
    /// The result may be worse than its error bar says.
    Caution,
    /// The result is not to be trusted; the program exits with 1.
    Unreliable,
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Level::Note => "note",
            Level::Caution => "caution",
            Level::Unreliable => "unreliable",
        })
    }
}

/// One warning: about what, how bad, where, and what to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// A short stable name for programs.
    pub code: String,
    /// How far it reaches.
    pub level: Level,
    /// The shard it speaks of, if it speaks of one.
    pub shard: Option<usize>,
    /// The number it speaks of, if it speaks of one.
    pub value: Option<f64>,
    /// What was seen.
    pub message: String,
    /// What to do about it.
    pub advice: String,
}

impl Warning {
    /// A warning that speaks of no shard and no number yet.
    pub fn new(
        level: Level,
        code: &str,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Warning {
        let (message, advice) = (message.into(), advice.into());
        Warning { code: code.into(), level, shard: None, value: None, message, advice }
    }

    /// The same warning, about this shard.
    pub fn shard(mut self, shard: usize) -> Warning {
        self.shard = Some(shard);
        self
    }

    /// The same warning, about this number (left out when it is not finite).
    pub fn value(mut self, value: f64) -> Warning {
        self.value = value.is_finite().then_some(value);
        self
    }
}
