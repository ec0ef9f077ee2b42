//! How far a run is.

use super::directory::Run;
use super::exchange::{FoundAnswer, find};
use super::lock::Held;
use super::message::Reply;
use crate::Result;
use serde::Serialize;

/// How far a run is, round by round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// The study's hash.
    pub study: String,
    /// The partition's hash.
    pub partition: String,
    /// How many shards or sites take part.
    pub shards: usize,
    /// The rounds that were asked so far.
    pub rounds: Vec<RoundStatus>,
    /// Whether the result is there.
    pub finished: bool,
    /// Why the run has failed, if it has; it goes on when it is combined again.
    pub failure: Option<String>,
    /// The shards whose answer to the last round is missing and that a worker holds at this moment.
    pub held: Vec<Held>,
}

/// One round of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RoundStatus {
    /// Its number, counted from 1.
    pub number: u64,
    /// What is asked.
    pub asks: Vec<String>,
    /// How many shards have answered, failures among them.
    pub answered: usize,
    /// The names of those that have not.
    pub missing: Vec<String>,
    /// Those whose answer is a failure, and what it says.
    pub failed: Vec<(String, String)>,
    /// What is wrong with files that are there but are no answers.
    pub refused: Vec<String>,
}

impl Run {
    /// Looks at every question and answer.
    pub fn status(&self) -> Result<Status> {
        let manifest = self.manifest();
        let active = manifest.active();
        let (mut rounds, mut missing) = (Vec::new(), Vec::new());
        for asked in self.questions()? {
            let mut round = RoundStatus {
                number: asked.header.round,
                asks: asked.header.asks.clone(),
                answered: 0,
                missing: Vec::new(),
                failed: Vec::new(),
                refused: Vec::new(),
            };
            missing.clear();
            for &shard in &active {
                let name = || manifest.shards[shard].name.clone();
                match find(self, &asked, shard)? {
                    FoundAnswer::Missing => {
                        round.missing.push(name());
                        missing.push(shard);
                    }
                    FoundAnswer::Refused(error) => {
                        round.missing.push(name());
                        missing.push(shard);
                        round.refused.push(error.to_string());
                    }
                    FoundAnswer::Whole(_, replies) => {
                        round.answered += 1;
                        let failure = replies.into_iter().find_map(|reply| match reply {
                            Reply::Failure(failure) => Some(failure.error(shard).to_string()),
                            Reply::Answer(_) | Reply::Masked(_) => None,
                        });
                        round.failed.extend(failure.map(|message| (name(), message)));
                    }
                }
            }
            rounds.push(round);
        }
        Ok(Status {
            study: manifest.study_hash.clone(),
            partition: manifest.partition_hash.clone(),
            shards: active.len(),
            rounds,
            finished: self.result_path().exists(),
            failure: self.failure(),
            held: missing.into_iter().filter_map(|shard| self.holder(shard)).collect(),
        })
    }
}
