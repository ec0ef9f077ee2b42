//! What a study states of its columns: written from its data, and doubted where they contradict it.

use super::room::Room;
use super::settle::SurveyedDesign;
use super::{Outline, Plan, settle};
use crate::combine::Pool;
use crate::data::{Codebook, Expr, Moments, Response, Terms, r_number};
use crate::engine::{Engine, Observer, Session};
use crate::error::{clip, nearest};
use crate::study::{Study, StudyFile};
use crate::{Error, Level, Result, Warning};
use std::collections::BTreeMap;

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
        // A column of the design is named by its expression.
        let parsed = Expr::parse(column).map(|expr| expr.columns());
        let named =
            |name: &String| name == column || parsed.as_ref().is_ok_and(|all| all.contains(name));
        let about =
            |key: &String| Expr::parse(key).is_ok_and(|expr| expr.columns().iter().any(&named));
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

/// What an error that comes of columns' scales is told with.
const DOUBT: &str = "the study's [schema] states means and standard deviations, by which scale() and priors per sd go: if they are not those of the data, write it anew with `consilience schema`";

/// An error with a word on what the study states.
pub(super) fn doubted(error: Error) -> Error {
    match error {
        Error::Input { place, message } => {
            Error::Input { place, message: format!("{message} ({DOUBT})") }
        }
        Error::Numeric { shard, model, parameter, message } => {
            Error::Numeric { shard, model, parameter, message: format!("{message} ({DOUBT})") }
        }
        other => other,
    }
}

/// The same of a failed computation, if the study states any scale.
pub(super) fn doubt_numbers(error: Error, study: &Study) -> Error {
    let states = study.schema.0.values().any(|entry| entry.sd.is_some());
    if states && matches!(error, Error::Numeric { .. }) { doubted(error) } else { error }
}

/// From how many standard deviations, and what factor, a stated mean and a stated standard deviation are far off.
const FAR: f64 = 0.5;
const FACTOR: f64 = 2.0;

/// What the codebook states of columns and outcomes that the rows contradict, as far as shards have said it.
pub(super) fn far_off(
    study: &Study,
    designs: &[SurveyedDesign],
    pool: Option<&Pool>,
) -> Vec<Warning> {
    let Codebook(book) = &study.schema;
    if book.is_empty() {
        return Vec::new();
    }
    let (mut scales, mut counts) = (BTreeMap::new(), BTreeMap::new());
    let mut compare = |key: String, [mean, sd]: [f64; 2]| {
        let stated = book.get(&key).and_then(|entry| entry.mean.zip(entry.sd));
        let Some((stated_mean, stated_sd)) = stated else { return };
        let rounding = 1e-13 * (mean.abs() + sd);
        let apart = (stated_mean - mean).abs() > (FAR * sd).max(rounding);
        let wide = stated_sd > FACTOR * sd || FACTOR * stated_sd < sd;
        if apart || wide && (stated_sd - sd).abs() > rounding {
            let [stated_mean, stated_sd, mean, sd] = [stated_mean, stated_sd, mean, sd].map(short);
            let text = format!(
                "`{}` the mean {stated_mean} and the sd {stated_sd} (the data have {mean} and {sd})",
                clip(&key)
            );
            scales.insert(key, text);
        }
    };
    for SurveyedDesign { design: (_, recipe), whole, .. } in designs {
        let n = whole.observations;
        // Moments that are agreed on are over rows, those of counted trials over trials.
        let counted = matches!(&recipe.response.expr, Expr::Pairing(joint, ..) if joint.is_count());
        let moments = whole.means.iter().zip(&whole.squares).filter(|_| !counted);
        for (j, (mean, squares)) in moments.enumerate() {
            let found = recipe.unscaled(j, &Moments::of_sums(n, *mean, *squares));
            found.into_iter().for_each(|(key, found)| compare(key, found));
        }
        let Response { text: key, weight, .. } = &recipe.response;
        // Sums of the same weights in another order.
        let apart = (*weight - n).abs() > 1e-9 * n.abs();
        if book.get(key).is_some_and(|entry| entry.observations.is_some()) && apart {
            let [stated, known] = [*weight, n].map(r_number);
            let text = format!("{stated} observations of `{}` (the data have {known})", clip(key));
            counts.insert(key.clone(), text);
        }
    }
    if let Some(pool) = pool {
        let (recipe, last) = (pool.recipe(), pool.recipe().columns.len());
        for j in 0..last {
            let found = recipe.unscaled(j, &pool.all.moments(j));
            found.into_iter().for_each(|(key, found)| compare(key, found));
        }
        // Offsets were taken off the outcome.
        if recipe.offsets.is_empty() {
            let found = pool.all.moments(last);
            compare(recipe.response.text.clone(), [found.mean, found.sd()]);
        }
    }
    let said = |of: &str, found: BTreeMap<String, String>| {
        let number = found.len();
        let shown: Vec<String> = found.into_values().take(5).collect();
        let more = if number > 5 { "; …" } else { "" };
        let message = format!("[schema] states {of}{}{more}", shown.join(&format!("; {of}")));
        (number > 0).then_some((message, number as f64))
    };
    let scales = said("of ", scales).map(|(message, number)| {
        let advice = "scale() and priors per sd go by what is stated; write it anew with `consilience schema`, unless scales are meant to be those of other data";
        Warning::new(Level::Caution, "schema-far-off", message, advice).value(number)
    });
    let counts = said("", counts).map(|(message, number)| {
        let advice =
            "write it anew with `consilience schema`, unless it is meant to be of other data";
        Warning::new(Level::Note, "schema-observations", message, advice).value(number)
    });
    scales.into_iter().chain(counts).collect()
}

/// A number in a few digits.
fn short(x: f64) -> String {
    r_number(format!("{x:.3e}").parse().unwrap_or(x))
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
