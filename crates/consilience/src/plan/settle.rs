//! Agreeing on models with shards, wherever those are.

use super::outline::{at_formula, in_study};
use super::units;
use crate::combine::{Extras, Setting};
use crate::data::{Fact, INTERCEPT, Recipe, Request, ResponseKind, Terms, agree_or_blame};
use crate::engine::Session;
use crate::math::Matrix;
use crate::model::{Family, Model, Parameter};
use crate::question::{Answer, Question, Share, Survey};
use crate::study::{
    ModelSpec, ParameterName, PriorSpec, Role, ShareRule, Study, resolve_priors,
    unmatched_study_priors,
};
use crate::{Error, Level, Place, Result, Warning};
use std::sync::Arc;

/// A model whose priors are as they were written, and how that was.
pub(super) type Written = (Arc<Model>, Vec<PriorSpec>);

/// Agrees on the schema with all shards and gives every parameter its prior.
pub(super) fn settle(study: &Study, terms: &[Terms], session: &Session) -> Result<Vec<Written>> {
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
        let parameter =
            |(n, p): (ParameterName, &PriorSpec)| Parameter { name: n.name, prior: p.prior };
        let parameters = names.into_iter().zip(&priors).map(parameter).collect();
        let model = Model {
            name: spec.name.clone(),
            family: spec.family,
            recipe,
            parameters,
            kernel: study.evidence.kernel,
        };
        models.push((Arc::new(model), priors));
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

/// Has every shard build its designs, which finds outcomes that do not fit before anything runs, and says
/// how columns vary, by which the priors per standard deviation are settled.
pub(super) fn survey(
    study: &Study,
    models: Vec<Written>,
    session: &Session,
) -> Result<Vec<Setting>> {
    let questions: Vec<Question> = models
        .iter()
        .map(|(model, priors)| {
            let units = priors.iter().any(|spec| spec.per_sd);
            Question::Survey { model: model.clone(), units }
        })
        .collect();
    let answers = session.ask(&questions)?;
    let mut settings = Vec::new();
    for ((model, priors), answers) in models.into_iter().zip(answers) {
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
            return Err(Error::input_at(Place::key(""), message));
        }
        let model = units::settled(model, &priors, &surveys).map_err(in_study)?;
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
