//! What a study says about columns before any row is looked at.

use crate::data::{Formula, Terms};
use crate::error::suggestion;
use crate::model::Family;
use crate::study::{ModelSpec, SplitBy, Study};
use crate::{Error, Place, Result};
use std::collections::BTreeSet;

/// A study whose formulas are read and expanded over the data's columns.
#[derive(Debug, Clone)]
pub struct Outline {
    /// The study.
    pub study: Study,
    /// The models' formulas, in the study's order.
    pub formulas: Vec<Formula>,
    /// The formulas' terms.
    pub terms: Vec<Terms>,
}

impl Outline {
    /// Reads the formulas, which must be of models that can be compared; then asks for the names of
    /// the data's columns and expands the formulas over them.
    pub fn new(study: Study, names: impl FnOnce(&Study) -> Result<Vec<String>>) -> Result<Outline> {
        let formulas = parse_formulas(&study)?;
        comparable(&study, &formulas)?;
        let names = names(&study).map_err(|e| in_study(e, &study))?;
        named_columns(&study, &names)?;
        let terms = expand(&study, &formulas, &names)?;
        Ok(Outline { study, formulas, terms })
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

/// Puts the study file and the model's formula line on an error that has no place yet.
pub(super) fn at_formula(error: Error, study: &Study, model: &ModelSpec) -> Error {
    match error {
        Error::Input { place, message } if place == Place::default() => {
            let place = Place::file(&study.file).line(model.formula_line);
            Error::input_at(place, format!("model `{}`: {message}", model.name))
        }
        other => other,
    }
}

/// Puts the study file on an error that has no place yet.
pub(super) fn in_study(error: Error, study: &Study) -> Error {
    match error {
        Error::Input { place, message } if place == Place::default() => {
            Error::input_at(Place::file(&study.file), message)
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
            return Err(Error::input_at(study.place(key), message));
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
