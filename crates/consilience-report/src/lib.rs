//! Pictures and a page for people, from the JSON documents of `consilience compare`, `select` and `sweep`.
//!
//! ```
//! # let text = include_str!("../tests/documents/select.json");
//! use consilience_report::{Document, Extras, Look};
//!
//! let document = Document::read(text)?;
//! let picture = consilience_report::figure(&document, "inclusion", &Look::default())?;
//! let pixels = consilience_report::png(&picture, 2.0)?;
//! let page = consilience_report::report(&document, &Extras::default());
//! # assert!(picture.starts_with("<svg") && pixels.starts_with(b"\x89PNG") && page.starts_with("<!doctype html>"));
//! # Ok::<(), consilience_report::Error>(())
//! ```
//!
//! The same document gives the same bytes. Nothing here prints, reads files or the environment, or takes the time.

mod document;
mod error;
mod figures;
mod letters;
mod page;
mod png;
mod svg;
mod text;

pub use document::Document;
pub use error::Error;
pub use letters::outlined;
pub use page::{Chapter, ChapterPart, Extras, report, report_of_chapters};
pub use png::png;

use document::Content;
use figures::View;

/// A kind of figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// Its name, as `--kind` takes it.
    pub name: &'static str,
    /// What it shows.
    pub shows: &'static str,
}

/// How a figure is to look.
#[derive(Debug, Clone)]
pub struct Look {
    /// How wide it is, in pixels.
    pub width: f64,
    /// The model that it is about, by name, where the kind has one.
    pub model: Option<String>,
}

impl Default for Look {
    fn default() -> Look {
        Look { width: 760.0, model: None }
    }
}

/// The kinds of figures that this document has; the first is the one to show where none is asked for.
pub fn kinds(document: &Document) -> Vec<Kind> {
    figures::all(document).into_iter().filter(|k| k.1.is_none()).map(|k| k.0).collect()
}

/// A figure of this kind as an SVG file.
///
/// # Errors
/// If the document has no such kind, or no such model.
pub fn figure(document: &Document, kind: &str, look: &Look) -> Result<String, Error> {
    let model = look.model.as_deref().map(|name| find(document, name)).transpose()?;
    let width = if look.width.is_finite() { look.width.clamp(300.0, 4000.0) } else { 760.0 };
    // A margin is added on both sides.
    Ok(figures::draw(&View { document, width: width - 24.0, model }, kind)?.standalone())
}

fn find(document: &Document, name: &str) -> Result<usize, Error> {
    let names: Vec<&str> = match &document.content {
        Content::Compare(d) => d.models.iter().map(|m| m.name.as_str()).collect(),
        Content::Sweep(d) => d.models.iter().map(String::as_str).collect(),
        Content::Select(_) => Vec::new(),
    };
    names.iter().position(|n| *n == name).ok_or_else(|| Error::Model {
        asked: name.to_string(),
        there: names.iter().take(20).map(|n| n.to_string()).collect(),
    })
}
