//! Sites: institutions whose rows are never seen elsewhere, and which answer questions by files.
//!
//! The one who coordinates makes a run of sites ([`Run::for_sites`](crate::run::Run::for_sites)) and
//! sends its question files out. A site answers each with [`answer()`], under its own [`Policy`].

mod answer;
mod explain;
mod guard;
mod masks;
mod policy;
mod rows;

pub use answer::{Asked, SiteAnswer, answer};
pub use explain::{as_json, explain, look};
pub use policy::{LogEntry, Policy, PolicyBudget};
pub use rows::RowsUsed;

pub use crate::run::{Key, OTHER, check_name};
