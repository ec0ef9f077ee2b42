//! What a study states of its columns: written from its data, and doubted where they contradict it.

use super::room::Room;
use super::{Outline, Plan, settle};
use crate::data::{Codebook, Expr, Terms};
use crate::engine::{Engine, Observer, Session};
use crate::error::{clip, nearest};
use crate::study::{Study, StudyFile};
use crate::{Error, Level, Result, Warning};

impl Plan {
    /// The codebook of a study's data, on this many threads: what its shards agree on, to be stated under
    /// `[schema]`. What the study states there itself is not looked at.
    pub fn codebook(
        study: impl Into<StudyFile>,
        threads: usize,
        room: &Room,
        observer: &dyn Observer,
    ) -> Result<Codebook> {
        let mut study = study.into();
        study.study.schema = Codebook::default();
        let (gathered, engine) = Plan::gathered(study, threads, room, observer)?;
        codebook_on(&gathered.outline, &engine, observer)
    }
}

/// What the shards of an engine agree on about a study's columns, beyond what it states.
pub(crate) fn codebook_on(
    outline: &Outline,
    engine: &dyn Engine,
    observer: &dyn Observer,
) -> Result<Codebook> {
    let session = Session::new(engine, observer);
    let agreed = settle::agreed(&outline.study, &outline.terms, &session);
    let (recipes, _) = agreed.map_err(|error| outline.lines.locate(error))?;
    Ok(Codebook::of(&outline.terms, &recipes))
}

/// An error about a row; where the study states something of its column, with a word on that.
pub(crate) fn doubt(error: Error, study: &Study) -> Error {
    let Error::Input { place, message } = error else { return error };
    let is_stated = place.column.as_ref().is_some_and(|column| {
        let about =
            |key: &String| Expr::parse(key).is_ok_and(|expr| expr.columns().contains(column));
        study.schema.0.keys().any(|key| key == column || about(key))
    });
    let message = match is_stated {
        true => format!(
            "{message} (the study's [schema] speaks of this column: if the data are right, write it anew with `consilience schema`)"
        ),
        false => message,
    };
    Error::Input { place, message }
}

/// A note on what the codebook left to be asked.
pub(super) fn incomplete(study: &Study, asked: &[String]) -> Option<Warning> {
    if study.schema.is_empty() || asked.is_empty() {
        return None;
    }
    let mut subjects: Vec<&String> = Vec::new();
    for subject in asked {
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    let message =
        format!("[schema] does not state all about {}; the shards were asked", listed(&subjects));
    let advice = "write it anew with `consilience schema` to spare the round";
    Some(Warning::new(Level::Note, "schema-incomplete", message, advice))
}

/// A note on what the codebook states and no formula looks for.
pub(super) fn unused(study: &Study, terms: &[Terms]) -> Option<Warning> {
    let sought = Codebook::sought(terms);
    let unused: Vec<&String> = study.schema.0.keys().filter(|key| !sought.contains(*key)).collect();
    let first = unused.first()?;
    let open = || sought.iter().filter(|name| !study.schema.0.contains_key(*name));
    let near = unused.iter().find_map(|key| nearest(&clip(key), open().map(String::as_str)));
    let near = near.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
    let message = match unused.len() {
        1 => format!("[schema] states `{}`, which no formula needs{near}", clip(first)),
        _ => format!("[schema] states {}, which no formula needs{near}", listed(&unused)),
    };
    let advice = "leave it out if it is of no use to anybody";
    Some(Warning::new(Level::Note, "schema-unused", message, advice))
}

/// Names in a row, not too many.
fn listed(names: &[&String]) -> String {
    let shown: Vec<String> =
        names.iter().take(10).map(|name| format!("`{}`", clip(name))).collect();
    shown.join(", ") + if names.len() > 10 { ", …" } else { "" }
}
