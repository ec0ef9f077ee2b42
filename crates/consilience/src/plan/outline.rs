//! What a study says about columns before any row is looked at.

use crate::data::{Formula, Terms};
use crate::error::suggestion;
use crate::model::Family;
use crate::study::{Lines, ModelSpec, SplitBy, Study, StudyFile};
use crate::{Error, Place, Result, Warning};
use std::collections::BTreeSet;

/// A study whose formulas are read and expanded over the data's columns.
#[derive(Debug, Clone)]
pub struct Outline {
    /// The study.
    pub study: Study,
    /// What stands on which line of its file, for errors.
    pub lines: Lines,
    /// What the user should know about the study.
    pub notes: Vec<Warning>,
    /// The models' formulas, in the study's order.
    pub formulas: Vec<Formula>,
    /// The formulas' terms.
    pub terms: Vec<Terms>,
}

impl Outline {
    /// The same over the columns that the formulas name: nobody here knows all columns of all sites.
    pub(crate) fn of_named_columns(study: impl Into<StudyFile>) -> Result<Outline> {
        Outline::new(study, |file| {
            let study = &file.study;
            let mut names: BTreeSet<String> = study.data.weights.iter().cloned().collect();
            if let SplitBy::Column(name) = &study.split.by {
                names.insert(name.clone());
            }
            for model in &study.models {
                let (columns, dot) = Formula::parse(&model.formula)?.columns_used();
                if dot {
                    return Err(Error::input(format!(
                        "model `{}`: `.` stands for all columns, and sites may have different ones; name the columns",
                        model.name
                    )));
                }
                names.extend(columns);
            }
            Ok(names.into_iter().collect())
        })
    }

    /// Checks the study and reads the formulas, which must be of models that can be compared; then asks
    /// for the names of the data's columns and expands the formulas over them.
    pub fn new(
        file: impl Into<StudyFile>,
        names: impl FnOnce(&StudyFile) -> Result<Vec<String>>,
    ) -> Result<Outline> {
        let file = file.into();
        file.check()?;
        let expanded = || {
            let study = &file.study;
            let formulas = parse_formulas(study)?;
            comparable(study, &formulas)?;
            let names = names(&file).map_err(in_study)?;
            named_columns(study, &names)?;
            let terms = expand(study, &formulas, &names)?;
            Ok((formulas, terms))
        };
        let (formulas, terms) = expanded().map_err(|error| file.lines.locate(error))?;
        let notes = file.notes();
        Ok(Outline { study: file.study, lines: file.lines, notes, formulas, terms })
    }

    /// Every column that the study looks at: a row counts only if all of them are there, so that
    /// all models have the same rows.
    pub fn columns(&self) -> Vec<String> {
        let mut columns: BTreeSet<String> = self.study.data.weights.iter().cloned().collect();
        if let SplitBy::Column(name) = &self.study.split.by {
            columns.insert(name.clone());
        }
        for terms in &self.terms {
            columns.extend(terms.columns());
        }
        columns.into_iter().collect()
    }
}

/// Puts the model's formula on an error that has no place yet.
pub(super) fn at_formula(error: Error, study: &Study, model: &ModelSpec) -> Error {
    match error {
        Error::Input { place, message } if place == Place::default() => {
            let place = Place::key(study.key_of(model) + ".formula");
            Error::input_at(place, format!("model `{}`: {message}", model.name))
        }
        other => other,
    }
}

/// Puts the study as a whole on an error that has no place yet.
pub(super) fn in_study(error: Error) -> Error {
    match error {
        Error::Input { place, message } if place == Place::default() => {
            Error::input_at(Place::key(""), message)
        }
        other => other,
    }
}

fn parse_formulas(study: &Study) -> Result<Vec<Formula>> {
    let parse = |m: &ModelSpec| Formula::parse(&m.formula).map_err(|e| at_formula(e, study, m));
    study.models.iter().map(parse).collect()
}

/// Evidences are densities of the outcome: they compare only if it is the same outcome, measured
/// the same way.
fn comparable(study: &Study, formulas: &[Formula]) -> Result<()> {
    let left = formulas[0].response().to_string();
    let first = &study.models[0];
    for (model, formula) in study.models.iter().zip(formulas) {
        let other = formula.response().to_string();
        if other != left {
            let message = format!(
                "its left side `{other}` is not `{left}` as in model `{}`; models of different outcomes cannot be compared; give all the same left side",
                first.name
            );
            return Err(at_formula(Error::input(message), study, model));
        }
        if (model.family == Family::Gaussian) != (first.family == Family::Gaussian) {
            let message = format!(
                "family = \"{}\" cannot be compared with \"{}\" of model `{}`: one is a density and the other a probability; use families of one kind, or two studies",
                model.family, first.family, first.name
            );
            return Err(at_formula(Error::input(message), study, model));
        }
    }
    Ok(())
}

/// The columns that the study names outside of formulas must be there.
fn named_columns(study: &Study, names: &[String]) -> Result<()> {
    let weights = study.data.weights.as_ref().map(|name| ("data.weights", name));
    let by = match &study.split.by {
        SplitBy::Column(name) => Some(("split.by", name)),
        _ => None,
    };
    for (key, name) in weights.into_iter().chain(by) {
        if !names.contains(name) {
            let known = suggestion(name, names.iter().map(String::as_str));
            let message = format!("`{key}` names the column `{name}`, which the data lack{known}");
            return Err(Error::input_at(Place::key(key), message));
        }
    }
    Ok(())
}

/// Expands every formula over the data's columns.
fn expand(study: &Study, formulas: &[Formula], names: &[String]) -> Result<Vec<Terms>> {
    let mut exclude: Vec<String> = study.data.weights.iter().cloned().collect();
    if let SplitBy::Column(name) = &study.split.by {
        exclude.push(name.clone());
    }
    let each = study.models.iter().zip(formulas);
    each.map(|(m, f)| f.terms(names, &exclude).map_err(|e| at_formula(e, study, m))).collect()
}
