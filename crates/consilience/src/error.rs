//! What can go wrong, and where it did.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// A place in a file of the user's: as much of it as is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The file.
    pub file: Option<PathBuf>,
    /// The line, counted from 1 (text files).
    pub line: Option<u64>,
    /// The row, counted from 1 without the header (Parquet files and tables in memory).
    pub row: Option<u64>,
    /// The column's name.
    pub column: Option<String>,
    /// The key of a study that this is about, such as `split.by` or `model[0].formula`. Messages name
    /// it themselves; it is for whoever knows on which line the study gives it.
    #[serde(skip)]
    pub key: Option<Box<str>>,
}

impl Place {
    /// Somewhere in this file.
    pub fn file(file: impl AsRef<Path>) -> Place {
        Place { file: Some(file.as_ref().to_path_buf()), ..Place::default() }
    }

    /// The value of a study's key.
    pub fn key(key: impl Into<String>) -> Place {
        Place { key: Some(key.into().into_boxed_str()), ..Place::default() }
    }

    /// The same place, on this line.
    pub fn line(mut self, line: u64) -> Place {
        self.line = Some(line);
        self
    }

    /// The same place, in this column.
    pub fn column(mut self, column: impl Into<String>) -> Place {
        self.column = Some(column.into());
        self
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(file) = &self.file {
            parts.push(file.display().to_string());
        }
        if let Some(line) = self.line {
            parts.push(format!("line {line}"));
        }
        if let Some(row) = self.row {
            parts.push(format!("row {row}"));
        }
        if let Some(column) = &self.column {
            parts.push(format!("column `{column}`"));
        }
        write!(f, "{}", parts.join(", "))
    }
}

/// An error: what, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The study, the data or an option is wrong: the user can mend it.
    #[error("{}{message}", prefix(place))]
    Input {
        /// Where.
        place: Place,
        /// What, and what to do.
        message: String,
    },
    /// A computation has no finite or no trustworthy result.
    #[error("{}{message}", culprit(*shard, model.as_deref(), parameter.as_deref()))]
    Numeric {
        /// The shard, counted from 0.
        shard: Option<usize>,
        /// The model's name.
        model: Option<String>,
        /// The parameter's name.
        parameter: Option<String>,
        /// What, and what to do.
        message: String,
    },
    /// Questions or answers did not get through: a machine or the way to it is at fault, and the study and its data
    /// may be fine.
    #[error("{0}")]
    Transport(String),
    /// Nothing is wrong, but answers are awaited that others have to give.
    #[error("{0}")]
    Waiting(Box<Waiting>),
    /// Whoever watched the run told it to stop.
    #[error("stopped before the end")]
    Stopped,
    /// A file could not be written, or could not be read although it is there.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's word on it.
        source: std::io::Error,
    },
}

/// What a run waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The round, counted from 1.
    pub round: u64,
    /// What is asked.
    pub kind: &'static str,
    /// The question file.
    pub question: PathBuf,
    /// The names of the shards or sites whose answers are missing.
    pub missing: Vec<String>,
    /// What is wrong with answers that are there.
    pub refused: Vec<String>,
    /// How many shards take part.
    pub shards: usize,
    /// Whether the shards are sites.
    pub sites: bool,
}

impl std::fmt::Display for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for refused in &self.refused {
            writeln!(f, "refused: {refused}")?;
        }
        let (answered, what) =
            (self.shards - self.missing.len(), if self.sites { "sites" } else { "shards" });
        let shown: Vec<&str> = self.missing.iter().take(20).map(String::as_str).collect();
        let more = if self.missing.len() > 20 { ", …" } else { "" };
        write!(
            f,
            "round {} ({}): {answered} of {} {what} have answered; missing: {}{more}",
            self.round,
            self.kind,
            self.shards,
            shown.join(", ")
        )
    }
}

fn prefix(place: &Place) -> String {
    let place = place.to_string();
    if place.is_empty() { place } else { place + ": " }
}

fn culprit(shard: Option<usize>, model: Option<&str>, parameter: Option<&str>) -> String {
    let mut parts = Vec::new();
    if let Some(model) = model {
        parts.push(format!("model `{model}`"));
    }
    if let Some(shard) = shard {
        parts.push(format!("shard {shard}"));
    }
    if let Some(parameter) = parameter {
        parts.push(format!("parameter `{parameter}`"));
    }
    if parts.is_empty() { String::new() } else { parts.join(", ") + ": " }
}

impl Error {
    /// Wrong input, at no particular place.
    pub fn input(message: impl Into<String>) -> Error {
        Error::Input { place: Place::default(), message: message.into() }
    }

    /// Wrong input at a place.
    pub fn input_at(place: Place, message: impl Into<String>) -> Error {
        Error::Input { place, message: message.into() }
    }

    /// A failed computation, nobody named yet.
    pub fn numeric(message: impl Into<String>) -> Error {
        Error::Numeric { shard: None, model: None, parameter: None, message: message.into() }
    }

    /// Names the parameter of a failed computation, unless one is named already.
    pub fn for_parameter(mut self, name: &str) -> Error {
        if let Error::Numeric { parameter, .. } = &mut self {
            parameter.get_or_insert_with(|| name.to_string());
        }
        self
    }

    /// Names the model of a failed computation, unless one is named already.
    pub fn for_model(mut self, name: &str) -> Error {
        if let Error::Numeric { model, .. } = &mut self {
            model.get_or_insert_with(|| name.to_string());
        }
        self
    }

    /// Names the shard of a failed computation, unless one is named already.
    pub fn for_shard(mut self, index: usize) -> Error {
        if let Error::Numeric { shard, .. } = &mut self {
            shard.get_or_insert(index);
        }
        self
    }

    /// Names the file that wrong input stands in, unless one is named already.
    pub fn in_file(mut self, path: impl AsRef<Path>) -> Error {
        if let Error::Input { place, .. } = &mut self {
            place.file.get_or_insert_with(|| path.as_ref().to_path_buf());
        }
        self
    }

    /// Whether the user's input is at fault (exit code 2) and not the run (exit code 3).
    pub fn is_input(&self) -> bool {
        matches!(self, Error::Input { .. })
    }
}

/// The candidate that is nearest to what was typed, if one is near: for "did you mean".
pub(crate) fn nearest<'a>(
    typed: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let folded = typed.to_lowercase();
    candidates
        .into_iter()
        .map(|c| {
            // The beginning of a name is meant for that name, however much of it is left.
            let whole = c.to_lowercase();
            let begun = folded.len() >= 3 && whole.starts_with(&folded);
            (if begun { 0 } else { strsim::damerau_levenshtein(&folded, &whole) }, c)
        })
        .filter(|(distance, c)| {
            // Of short names that differ in most letters neither is a slip of the other.
            let length = c.len().max(typed.len());
            *distance <= 1 + length / 3 && 2 * *distance <= length
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

/// `, did you mean …?` or nothing, then the list of what is legal.
pub(crate) fn suggestion<'a>(
    typed: &str,
    candidates: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    let near = nearest(typed, candidates.clone()).map(|c| format!("; did you mean `{c}`?"));
    near.unwrap_or_default() + &known(candidates)
}

/// The list of what is legal, alone.
pub(crate) fn known<'a>(candidates: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<&str> = candidates.into_iter().collect();
    let mut list = all.iter().take(20).map(|c| format!("`{c}`")).collect::<Vec<_>>().join(", ");
    if all.len() > 20 {
        list += ", …";
    }
    format!(" (known: {list})")
}

/// The user's own text, fit to be shown in one line of a message: its beginning, without control
/// characters. Also what a search for the nearest name may cost is bounded by this.
pub(crate) fn clip(text: &str) -> String {
    const LONGEST: usize = 80;
    let mut shown = String::new();
    for (i, c) in text.chars().enumerate() {
        if i == LONGEST {
            shown.push('…');
            break;
        }
        shown.push(c);
    }
    plain(&shown)
}

/// Text without control characters.
pub(crate) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}
