//! Runs whose questions and answers are files: on one machine, on a cluster, or between sites.
//!
//! A run directory holds a study, its shards (or the names of sites), the questions that were asked
//! and the answers that came:
//!
//! ```text
//! manifest.json                    the study, its shards, hashes
//! shards/000007.parquet            a shard's rows
//! questions/0003-1f00….question    one round's questions, for every shard
//! answers/1f00…/000007.answer      a shard's answers to them
//! result.json                      the result, once it is there
//! result-1.json                    the first one, after something else was asked of the run
//! failed.txt                       why the run has failed, until it is coordinated again
//! ```
//!
//! The coordinator keeps nothing but these files: it runs the plan from its beginning and takes the
//! answers that are there, up to the first round that lacks some ([`Run::coordinate`]). So it can be
//! killed at any moment and loses nothing, and answers have the same bits as on threads.

mod decode;
mod directory;
mod exchange;
mod files;
mod key;
mod lock;
mod manifest;
mod masks;
mod message;
mod remote;
mod sites;
mod status;
mod work;

pub use crate::error::Waiting;
pub use directory::Run;
pub(crate) use exchange::is_question;
pub use exchange::{AnswerFile, QuestionFile};
pub use files::{Courier, Files, OpenRound, Stop};
pub use key::Key;
pub use lock::{Held, Lock};
pub(crate) use manifest::schema_hash;
pub(crate) use manifest::table_hash;
pub use manifest::{Coordinator, Manifest, SchemaColumn, ShardEntry, ShardRows, study_hash};
pub(crate) use masks::Masks;
pub use message::{AnswerHeader, FORMAT, LARGEST_LETTER, LARGEST_QUESTION, QuestionHeader};
pub(crate) use message::{Reply, encode_answer, hex, load, sha256_hex};
pub use remote::{Came, Carrier, Remote, answer};
pub use sites::{OTHER, Received, SiteEntry, check_name};
pub use status::{RoundStatus, Status};
pub(crate) use work::answer_soundly;
pub use work::{Work, WorkReport, WorkerRows};
