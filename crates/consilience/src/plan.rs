//! From a study to something that can run: data read and split, schema agreed, models settled.

mod extras;

use crate::combine::{Extras, Setting, baselines, combine};
use crate::compare::{Baselines, Comparison, PartitionReport, VERSION, sweep};
use crate::data::read::{Wanted, column_names, find_files, read_table};
use crate::data::split::{Partition, Strata, split};
use crate::data::{
    Fact, Formula, INTERCEPT, Recipe, Request, ResponseKind, Table, Terms, agree_or_blame, describe,
};
use crate::engine::{Engine, Observer, Session, Threads, Traffic};
use crate::error::suggestion;
use crate::math::Matrix;
use crate::model::{Family, Model, Parameter};
use crate::question::{Answer, Question, Share, Survey};
use crate::shard::{Budget, Shard};
use crate::study::{
    Missing, ModelSpec, ParameterName, Role, ShareRule, SplitBy, Study, resolve_priors,
    unmatched_study_priors,
};
use crate::{Error, Level, Place, Result, Warning};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// A study with its data at hand, checked, and ready to run.
#[derive(Debug)]
pub struct Plan {
    /// The study.
    pub study: Study,
    /// The data files.
    pub files: Vec<PathBuf>,
    /// How the rows are split.
    pub partition: PartitionReport,
    /// One per model, in the study's order.
    pub settings: Vec<Setting>,
    /// The models' formulas as they were read.
    pub formulas: Vec<String>,
    /// What the user should know before anything has run.
    pub warnings: Vec<Warning>,
    engine: Threads,
    traffic: Traffic,
    /// Where the draws of the shards' chains are kept, if they are.
    draws: Option<PathBuf>,
    /// What the scales of coefficient priors are multiplied with, beside 1, if they are.
    prior_scales: Option<Vec<f64>>,
}

impl Plan {
    /// Reads, checks and splits a study's data and settles its models, on this many threads.
    pub fn new(study: Study, threads: usize, observer: &dyn Observer) -> Result<Plan> {
        let formulas = parse_formulas(&study)?;
        comparable(&study, &formulas)?;
        let files = find_files(&study.data.folder, &study.data.path)?;
        let format = study.data.text_format();
        let names = column_names(&files[0], &format).map_err(|e| in_study(e, &study))?;
        named_columns(&study, &names)?;
        let terms = expand(&study, &formulas, &names)?;
        let wanted = columns(&study, &terms);
        let read = read_table(&files, &format, &Wanted::Named(&wanted))?;

        let mut warnings = study.notes.clone();
        if read.comments > 0 {
            let message = format!("comment lines passed over after the header: {}", read.comments);
            let advice = "set comment = \"\" under [data] if they are data";
            warnings.push(
                Warning::new(Level::Note, "comments", message, advice).value(read.comments as f64),
            );
        }
        let (table, dropped) = complete(&study, read.table)?;
        if dropped > 0 {
            let message = format!(
                "{dropped} {} left out because a value is missing",
                if dropped == 1 { "row was" } else { "rows were" }
            );
            let advice = "set missing = \"error\" under [data] to see where";
            warnings.push(
                Warning::new(Level::Note, "rows-dropped", message, advice).value(dropped as f64),
            );
        }
        let partition = partition(&study, &table, &terms)?;
        let report = PartitionReport {
            shards: partition.shards,
            rows: table.rows(),
            dropped,
            by: study.split.by.to_string(),
            seed: study.split.seed,
            hash: partition.hash.clone(),
        };
        let tables = table.deal(&partition.assignment, partition.shards);
        let budget = Arc::new(Budget::default());
        let shard = |(i, table)| Shard::new(i, table).with_budget(budget.clone());
        let shards = tables.into_iter().enumerate().map(shard).collect();
        let engine = Threads::new(shards, threads)?;
        let (settings, traffic) = {
            let session = Session::new(&engine, observer);
            let models = settle(&study, &terms, &session)?;
            let settings = survey(&study, models, &session)?;
            (settings, session.traffic())
        };
        let formulas = formulas.iter().map(Formula::to_string).collect();
        Ok(Plan {
            study,
            files,
            partition: report,
            settings,
            formulas,
            warnings,
            engine,
            traffic,
            draws: None,
            prior_scales: None,
        })
    }

    /// The shards, on this machine's threads.
    pub fn engine(&self) -> &Threads {
        &self.engine
    }

    /// Computes every model's evidence and compares them.
    pub fn run(&self, observer: &dyn Observer) -> Result<Comparison> {
        self.run_on(&self.engine, observer)
    }

    /// Chooses by votes and upsampled evidences, and by every combination that suits the models.
    pub fn baselines(&self, observer: &dyn Observer) -> Result<Baselines> {
        let (methods, traffic) = baselines(&self.engine, observer, self.traffic, &self.settings)?;
        let models = self.settings.iter().map(|s| s.model.name.clone()).collect();
        Ok(Baselines {
            version: VERSION,
            models,
            methods,
            partition: self.partition.clone(),
            traffic,
            seconds: None,
        })
    }

    /// The same on another engine that has the same shards. The result has the same bits.
    pub fn run_on(&self, engine: &dyn Engine, observer: &dyn Observer) -> Result<Comparison> {
        let session = Session::resume(engine, observer, self.traffic);
        // All priors at once: they share rounds, and the shards' likelihoods.
        let settings = [self.settings.clone(), self.scaled_settings()].concat();
        let mut evidences = combine(&session, &settings)?;
        let scaled = evidences.split_off(self.settings.len());
        self.add_consensus_draws(&mut evidences)?;
        let probabilities: Vec<f64> = self.study.models.iter().map(|m| m.probability).collect();
        let mut comparison = Comparison::new(
            &self.settings,
            &self.formulas,
            &probabilities,
            evidences,
            self.partition.clone(),
            self.warnings.clone(),
            session.traffic(),
        );
        if self.prior_scales.is_some() {
            comparison.prior_sensitivity = Some(sweep(&comparison, self.by_scale(scaled)));
        }
        Ok(comparison)
    }
}

/// Puts the study file and the model's formula line on an error that has no place yet.
fn at_formula(error: Error, study: &Study, model: &ModelSpec) -> Error {
    match error {
        Error::Input { place, message } if place == Place::default() => {
            let place = Place::file(&study.file).line(model.formula_line);
            Error::input_at(place, format!("model `{}`: {message}", model.name))
        }
        other => other,
    }
}

/// Puts the study file on an error that has no place yet.
fn in_study(error: Error, study: &Study) -> Error {
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

/// Every column that the study looks at: a row counts only if all of them are there, so that all
/// models have the same rows.
fn columns(study: &Study, terms: &[Terms]) -> Vec<String> {
    let mut columns: BTreeSet<String> = study.data.weights.iter().cloned().collect();
    if let SplitBy::Column(name) = &study.split.by {
        columns.insert(name.clone());
    }
    for terms in terms {
        columns.extend(terms.columns());
    }
    columns.into_iter().collect()
}

fn complete(study: &Study, table: Table) -> Result<(Table, usize)> {
    if study.data.missing == Missing::Error {
        table.refuse_missing()?;
    }
    let Some(rows) = table.complete_rows() else { return Ok((table, 0)) };
    let dropped = table.rows() - rows.len();
    if rows.is_empty() {
        let message = format!(
            "no row is complete: all {dropped} rows miss a value in a column that the study uses ({}); leave such a column out of the formulas, or fill the values in",
            missing_counts(&table)?
        );
        let files = &table.origin().files;
        let place = files.first().map(|(file, _)| Place::file(file)).unwrap_or_default();
        return Err(Error::input_at(place, message));
    }
    Ok((table.select(&rows), dropped))
}

/// `x: 12, z: 3`: the columns that miss most values, and how many.
fn missing_counts(table: &Table) -> Result<String> {
    let mut counts = Vec::new();
    for name in table.names() {
        let column = table.column(name)?;
        let missing = (0..table.rows()).filter(|&row| column.is_missing(row)).count();
        if missing > 0 {
            counts.push((missing, name));
        }
    }
    counts.sort_by_key(|(missing, _)| std::cmp::Reverse(*missing));
    let more = if counts.len() > 5 { ", …" } else { "" };
    let shown: Vec<String> =
        counts.iter().take(5).map(|(n, name)| format!("`{name}`: {n}")).collect();
    Ok(shown.join(", ") + more)
}

fn partition(study: &Study, table: &Table, terms: &[Terms]) -> Result<Partition> {
    let place = |error: Error| match error {
        Error::Input { place, message } if place == Place::default() => {
            Error::input_at(study.place("split.shards"), format!("[split]: {message}"))
        }
        other => other,
    };
    if !matches!(study.split.by, SplitBy::Outcome | SplitBy::Cluster) {
        return split(table, &study.split, &Strata::default()).map_err(place);
    }
    // Stratified splits look at outcome and predictors as the models see them.
    let weights = study.data.weights.as_deref();
    let mut ask = |requests: &[Request]| Ok(vec![describe(table, weights, requests)?]);
    let blame = |i: usize, error| at_formula(error, study, &study.models[i]);
    let recipes = agree_or_blame(terms, weights, &mut ask, &blame)?;
    let mut seen = BTreeSet::new();
    let mut predictors: Vec<Vec<f64>> = Vec::new();
    let mut outcome = Vec::new();
    for recipe in &recipes {
        let design = recipe.design(table)?;
        outcome = design.response;
        for (column, values) in recipe.columns.iter().zip(design.columns) {
            if seen.insert(column.name.clone()) {
                predictors.push(values);
            }
        }
    }
    let predictors = predictors.iter().map(Vec::as_slice).collect();
    split(table, &study.split, &Strata { outcome: &outcome, predictors }).map_err(place)
}

/// Agrees on the schema with all shards and gives every parameter its prior.
fn settle(study: &Study, terms: &[Terms], session: &Session) -> Result<Vec<Arc<Model>>> {
    let weights = study.data.weights.clone();
    let mut ask = |requests: &[Request]| {
        let question = Question::Describe { requests: requests.to_vec(), weights: weights.clone() };
        let answers = session.ask(&[question])?.pop().unwrap_or_default();
        answers.into_iter().map(facts).collect()
    };
    let blame = |i: usize, error| at_formula(error, study, &study.models[i]);
    let recipes = agree_or_blame(terms, weights.as_deref(), &mut ask, &blame)?;
    let names: Vec<Vec<ParameterName>> =
        study.models.iter().zip(&recipes).map(|(m, r)| parameter_names(m.family, r)).collect();
    unmatched_study_priors(study, names.iter().flatten())?;
    let mut models = Vec::new();
    for ((spec, recipe), names) in study.models.iter().zip(recipes).zip(names) {
        fitting_outcome(study, spec, &recipe)?;
        let priors = resolve_priors(study, spec, &names)?;
        let parameter = |(n, prior): (ParameterName, _)| Parameter { name: n.name, prior };
        let parameters = names.into_iter().zip(priors).map(parameter).collect();
        models.push(Arc::new(Model {
            name: spec.name.clone(),
            family: spec.family,
            recipe,
            parameters,
            kernel: study.evidence.kernel,
        }));
    }
    Ok(models)
}

fn facts(answer: Answer) -> Result<Vec<Fact>> {
    match answer {
        Answer::Description(facts) => Ok(facts),
        _ => unreachable!("the session checks kinds"),
    }
}

fn parameter_names(family: Family, recipe: &Recipe) -> Vec<ParameterName> {
    let mut names: Vec<ParameterName> = recipe
        .columns
        .iter()
        .map(|column| {
            let intercept = column.name == INTERCEPT;
            let role = if intercept { Role::Intercept } else { Role::Coefficient };
            ParameterName { name: column.name.clone(), term: column.term.clone(), role }
        })
        .collect();
    if let Some(extra) = family.extra() {
        let role = if family == Family::Gaussian { Role::LogSd } else { Role::LogDispersion };
        names.push(ParameterName { name: extra.into(), term: extra.into(), role });
    }
    names
}

/// Classes are no numbers, and a binary outcome with a single class says nothing about any model.
fn fitting_outcome(study: &Study, spec: &ModelSpec, recipe: &Recipe) -> Result<()> {
    let response = &recipe.response;
    if let ResponseKind::Classes { levels } = &response.kind
        && !spec.family.is_binary()
    {
        let message = format!(
            "the outcome `{}` is {}, and a {} model needs numbers; use family = \"logistic\" or \"probit\", or see whether the column was meant to hold numbers",
            response.text,
            levels.iter().map(|l| format!("`{l}`")).collect::<Vec<_>>().join(" or "),
            spec.family
        );
        return Err(at_formula(Error::input(message), study, spec));
    }
    if spec.family.is_binary() && response.min == response.max {
        let class = match &response.kind {
            ResponseKind::Classes { levels } if levels.len() == 1 => &levels[0],
            ResponseKind::Classes { levels } => &levels[usize::from(response.max > 0.0)],
            ResponseKind::Number => &response.max.to_string(),
        };
        let message = format!(
            "the outcome `{}` is {class} in all {} complete rows, but a {} model needs both classes; check the data, and what is missing in them",
            response.text, response.rows, spec.family
        );
        return Err(at_formula(Error::input(message), study, spec));
    }
    Ok(())
}

/// Has every shard build its designs, which finds outcomes that do not fit before anything runs.
fn survey(study: &Study, models: Vec<Arc<Model>>, session: &Session) -> Result<Vec<Setting>> {
    let questions: Vec<Question> =
        models.iter().map(|model| Question::Survey { model: model.clone() }).collect();
    let answers = session.ask(&questions)?;
    let mut settings = Vec::new();
    for (model, answers) in models.into_iter().zip(answers) {
        let surveys: Vec<Survey> = answers
            .into_iter()
            .map(|answer| match answer {
                Answer::Survey(survey) => survey,
                _ => unreachable!("the session checks kinds"),
            })
            .collect();
        let total: f64 = surveys.iter().map(|s| s.observations).sum();
        if let Some(empty) = surveys.iter().position(|s| s.observations == 0.0) {
            let message = format!(
                "every row of shard {empty} has weight 0; use fewer shards, or another `split.seed`"
            );
            return Err(Error::input_at(Place::file(&study.file), message));
        }
        let share = match study.split.share {
            ShareRule::Rows => Share::Rows { total },
            _ => Share::Equal { shards: surveys.len() },
        };
        let options = study.evidence.clone();
        let mut setting = Setting {
            model,
            share,
            surveys,
            options,
            warnings: Vec::new(),
            extras: Extras::default(),
        };
        setting.warnings.extend(rank_note(&setting));
        setting.warnings.extend(missing_levels(&setting));
        settings.push(setting);
    }
    Ok(settings)
}

/// Notes columns that other columns determine: legal, since priors are proper.
fn rank_note(setting: &Setting) -> Option<Warning> {
    let p = setting.surveys[0].nonzero.len();
    let mut gram = Matrix::zeros(p, p);
    setting.surveys.iter().for_each(|s| gram.add_scaled(1.0, &s.gram));
    let scale: Vec<f64> = gram.diagonal().iter().map(|v| v.sqrt()).collect();
    let mut missing = 0;
    let kept: Vec<usize> = (0..p).filter(|&j| scale[j] > 0.0).collect();
    missing += p - kept.len();
    let correlation = |(i, j): (usize, usize)| gram[(i, j)] / (scale[i] * scale[j]);
    let values = kept.iter().flat_map(|&i| kept.iter().map(move |&j| (i, j))).map(correlation);
    let matrix = Matrix::from_rows(kept.len(), kept.len(), values.collect());
    missing += matrix.symmetric_eigen().0.iter().filter(|v| **v < 1e-11 * p as f64).count();
    (missing > 0).then(|| {
        let message = format!("{missing} of {p} columns are determined by the others");
        let advice = "the priors settle such coefficients; leave columns out if that is not meant";
        Warning::new(Level::Note, "rank-deficient", message, advice).value(missing as f64)
    })
}

/// Notes columns that are 0 on every row of a shard.
fn missing_levels(setting: &Setting) -> Vec<Warning> {
    let total: Vec<f64> = (0..setting.surveys[0].nonzero.len())
        .map(|j| setting.surveys.iter().map(|s| s.nonzero[j]).sum())
        .collect();
    let names: Vec<&str> = setting.model.free().map(|p| p.name.as_str()).collect();
    let mut warnings = Vec::new();
    for (s, survey) in setting.surveys.iter().enumerate() {
        let absent: Vec<String> = (0..total.len())
            .filter(|&j| survey.nonzero[j] == 0.0 && total[j] > 0.0)
            .map(|j| format!("`{}`", names[j]))
            .collect();
        if !absent.is_empty() {
            let message = format!(
                "no row has {}; the shard's own posterior of that is its prior",
                absent.join(", ")
            );
            let advice = "`exact` is right all the same; `normal` may not be";
            warnings.push(
                Warning::new(Level::Note, "level-missing", message, advice)
                    .shard(s)
                    .value(absent.len() as f64),
            );
        }
    }
    warnings
}
