//! What can be wrong.

use std::fmt;

/// Why there is no picture or page.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The text is no document of the program's: what is wrong with it, with the key.
    Document(String),
    /// The document is of another version than these.
    Version {
        /// Its version, as it is written there.
        found: String,
        /// The version that is understood.
        known: u64,
    },
    /// The document has no figure of this kind.
    Kind {
        /// What was asked for.
        asked: String,
        /// What there is.
        there: Vec<&'static str>,
        /// What the document lacks for it, where the kind is known.
        why: Option<&'static str>,
    },
    /// The document has no model of this name.
    Model {
        /// What was asked for.
        asked: String,
        /// Some of the names that there are.
        there: Vec<String>,
    },
    /// The picture cannot be made into pixels.
    Png(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Document(what) => f.write_str(what),
            Error::Version { found, known } => {
                write!(
                    f,
                    "it is a document of version {found}; this program understands version {known}"
                )
            }
            Error::Kind { asked, there, why } => {
                write!(f, "there is no figure `{}` of this document", crate::text::line(asked))?;
                if let Some(why) = why {
                    write!(f, ": {why}")?;
                }
                write!(f, "; there are: {}", there.join(", "))
            }
            Error::Model { asked, there } => {
                let names: Vec<String> =
                    there.iter().map(|n| format!("`{}`", crate::text::line(n))).collect();
                write!(
                    f,
                    "the document has no model `{}`; there are: {}",
                    crate::text::line(asked),
                    names.join(", ")
                )
            }
            Error::Png(what) => write!(f, "no pixels can be made of the figure: {what}"),
        }
    }
}

impl std::error::Error for Error {}
