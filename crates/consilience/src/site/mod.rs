//! Sites: institutions whose rows are never seen elsewhere, and which answer questions by files.
//!
//! The one who coordinates makes a run of sites ([`Run::for_sites`](crate::run::Run::for_sites)) and
//! sends its question files out. A site answers each with [`answer()`], under its own [`Policy`].

mod answer;
mod explain;
mod key;
mod policy;

pub use answer::{SiteAnswer, answer};
pub use explain::explain;
pub use key::Key;
pub use policy::{LogEntry, Policy};

pub use crate::run::{OTHER, check_name};
