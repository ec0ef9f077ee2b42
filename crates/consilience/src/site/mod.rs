//! Sites: institutions whose rows are never seen elsewhere, and which answer questions by files.
//!
//! The one who coordinates makes a run of sites ([`Run::for_sites`](crate::run::Run::for_sites)) and
//! sends its question files out. A site answers each with [`answer`], under its own [`Policy`].

mod answer;
mod explain;
mod key;
mod policy;

pub(crate) use answer::outline;
pub use answer::{SiteAnswer, answer};
pub use explain::explain;
pub use key::Key;
pub use policy::{LogEntry, Policy};

use crate::{Error, Result};

/// The level that rare ones become.
pub const OTHER: &str = "other";

/// A site's name: it is part of file names.
pub fn check_name(name: &str) -> Result<()> {
    let fit = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.len() <= 40 && name.chars().all(fit) {
        return Ok(());
    }
    let name = crate::error::clip(name);
    Err(Error::input(format!(
        "`{name}` cannot be a site's name; use up to 40 letters, digits, `-` and `_`"
    )))
}
