//! What a study says about columns before any row is looked at.

use super::codebook;
use crate::data::read::ROW_NAMES;
use crate::data::{Expr, Formula, Function, Terms};
use crate::error::{clip, suggestion};
use crate::model::Family;
use crate::study::{Lines, ModelSpec, Select, SplitBy, Study, StudyFile};
use crate::{Error, Level, Place, Result, Warning};
use std::collections::{BTreeSet, HashMap};

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
    /// Of a study with `[select]`, the terms of its one formula that are candidates, in its order.
    pub candidates: Vec<usize>,
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
            for model in study.specs().iter() {
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
            let candidates = match &study.select {
                Some(select) => candidates(study, select, &terms[0], &names)?,
                None => Vec::new(),
            };
            Ok((formulas, terms, candidates))
        };
        let (formulas, terms, candidates) = expanded().map_err(|error| file.lines.locate(error))?;
        let mut notes = file.notes();
        notes.extend(codebook::unused(&file.study, &terms));
        notes.extend(same_models(&file.study, &terms));
        Ok(Outline { study: file.study, lines: file.lines, notes, formulas, terms, candidates })
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
            if study.select.is_some() {
                return Error::input_at(Place::key("select.candidates"), message);
            }
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
    study.specs().iter().map(parse).collect()
}

/// Evidences are densities of the outcome: they compare only if it is the same outcome, measured
/// the same way.
fn comparable(study: &Study, formulas: &[Formula]) -> Result<()> {
    let left = formulas[0].response().to_string();
    let specs = study.specs();
    let first = &specs[0];
    for (model, formula) in specs.iter().zip(formulas) {
        let other = formula.response().to_string();
        if other != left {
            let message = format!(
                "its left side `{other}` is not `{left}` as in model `{}`; models of different outcomes cannot be compared; give all the same left side",
                first.name
            );
            return Err(at_formula(Error::input(message), study, model));
        }
        if model.family.is_density() != first.family.is_density() {
            let message = format!(
                "family = \"{}\" cannot be compared with \"{}\" of model `{}`: one is a density and the other a probability; use families of one kind, or two studies",
                model.family, first.family, first.name
            );
            return Err(at_formula(Error::input(message), study, model));
        }
    }
    Ok(())
}

/// A caution for every model that is there before under another name.
fn same_models(study: &Study, terms: &[Terms]) -> Vec<Warning> {
    let mut known: HashMap<String, Vec<&ModelSpec>> = HashMap::new();
    let mut warnings = Vec::new();
    for (model, terms) in study.models.iter().zip(terms) {
        let mut labels: Vec<&str> = terms.terms.iter().map(|term| term.label.as_str()).collect();
        // Which factors have a column for all of their levels depends on the order of other terms.
        if terms.intercept && terms.terms.iter().all(|term| term.variables.len() == 1) {
            labels.sort_unstable();
        }
        let mut offsets: Vec<String> = terms.offsets.iter().map(Expr::to_string).collect();
        offsets.sort();
        let effects = terms.effects.as_ref().map(ToString::to_string);
        let key =
            format!("{} {} {labels:?} {offsets:?} {effects:?}", model.family, terms.intercept);
        let same = known.entry(key).or_default();
        match same.iter().find(|other| other.prior == model.prior) {
            Some(other) => {
                let message = format!(
                    "the models `{}` and `{}` are the same, and are counted as two",
                    clip(&other.name),
                    clip(&model.name)
                );
                let advice =
                    "leave one out: otherwise it has twice the prior probability of a model";
                warnings.push(Warning::new(Level::Caution, "same-model", message, advice));
            }
            None => same.push(model),
        }
    }
    warnings
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

/// The terms of the model with all terms that not every model has.
fn candidates(study: &Study, select: &Select, all: &Terms, names: &[String]) -> Result<Vec<usize>> {
    let part = |key: &str, spec: ModelSpec| {
        let terms = Formula::parse(&spec.formula)
            .and_then(|formula| formula.terms(names, &not_meant(study)));
        terms.map_err(|error| match error {
            Error::Input { place, message } if place == Place::default() => {
                Error::input_at(Place::key(key), message)
            }
            other => other,
        })
    };
    let (least, choice) =
        (part("select.always", select.least())?, part("select.candidates", select.choice())?);
    let fault = |message: &str| Err(Error::input_at(Place::key("select.candidates"), message));
    if !choice.intercept {
        return fault(
            "`select.candidates` takes the intercept out; whether models have one is said by `select.always`: \"1\" with it, \"0\" without",
        );
    }
    if !choice.offsets.is_empty() {
        return fault(
            "an offset cannot be a candidate, since it has no coefficient; move it to `select.always`",
        );
    }
    // A term is what it is whatever the order of its variables.
    let variables = |terms: &Terms, number: usize| -> BTreeSet<String> {
        terms.terms[number].variables.iter().map(|&v| terms.variables[v].to_string()).collect()
    };
    let known: Vec<_> = (0..least.terms.len()).map(|t| variables(&least, t)).collect();
    Ok((0..all.terms.len()).filter(|&t| !known.contains(&variables(all, t))).collect())
}

/// The columns that `.` does not stand for.
fn not_meant(study: &Study) -> Vec<String> {
    let mut exclude: Vec<String> = study.data.weights.iter().cloned().collect();
    if let SplitBy::Column(name) = &study.split.by {
        exclude.push(name.clone());
    }
    // Names of rows are no predictor, and numbers of rows least of all.
    exclude.push(ROW_NAMES.to_string());
    exclude
}

/// Expands every formula over the data's columns.
fn expand(study: &Study, formulas: &[Formula], names: &[String]) -> Result<Vec<Terms>> {
    let (specs, exclude) = (study.specs(), not_meant(study));
    let each = specs.iter().zip(formulas);
    let terms = |(m, f): (&ModelSpec, &Formula)| {
        let mut terms = f.terms(names, &exclude).map_err(|e| at_formula(e, study, m))?;
        // Of numbers that are classes the levels are wanted, not the moments.
        let is_stated = matches!(terms.response, Expr::Ordered(..) | Expr::Pairing(..));
        if m.family.has_levels() && !is_stated {
            let inner = match terms.response {
                Expr::Call(Function::Factor, inner) => inner,
                other => Box::new(other),
            };
            terms.response = match m.family {
                Family::Multinomial => Expr::Unordered(inner),
                _ => Expr::Ordered(inner, Vec::new()),
            };
        }
        Ok(terms)
    };
    each.map(terms).collect()
}
