//! Agreeing on models with shards, wherever those are.

use super::codebook;
use super::fitting::{both_classes, fitting_effects, fitting_flat, fitting_outcome};
use super::outline::{at_formula, in_study};
use super::units;
use crate::combine::{
    Extras, Pool, Setting, has_statistics, is_sought, refuse_ties, statistics_of,
};
use crate::data::{
    Ask, Expr, INTERCEPT, Recipe, Request, ResponseKind, Shared, Terms, agree_or_blame,
};
use crate::engine::Session;
use crate::math::Matrix;
use crate::model::{Body, Family, Joint, Model, Parameter, Regression, Share};
use crate::question::{
    Answers, Describe, Listed, Locate, Points, Question, Statistics, Survey, SurveyAnswer,
};
use crate::study::{
    Combine, Local, ParameterName, PriorSpec, Role, SelectBy, ShareRule, Study, group_of,
    resolve_priors, unmatched_study_priors,
};
use crate::target::Expansion;
use crate::{Error, Level, Place, Result, Warning};
use std::sync::Arc;

/// A model whose priors are as they were written, and how that was.
pub(super) type Written = (Arc<Model>, Vec<PriorSpec>);

/// Agrees with all shards on what the study does not state of its columns. Also returns in words what they
/// were asked about.
pub(super) fn agreed(
    study: &Study,
    terms: &[Terms],
    session: &Session,
) -> Result<(Vec<Recipe>, Vec<String>)> {
    let weights = study.data.weights.clone();
    let has_effects = terms.iter().any(|terms| terms.effects.is_some());
    let mut asked = Vec::new();
    let mut ask = |requests: &[Request]| {
        asked.extend(requests.iter().map(Request::subject));
        let question = Describe { requests: requests.to_vec(), weights: weights.clone() };
        Ok(match session.ask_one(&question)? {
            Answers::Sum(_) if has_effects => {
                return Err(in_study(Error::input(
                    "where shards tell nothing but sums it is not known whether a group's rows are all on one shard; leave random effects out, or let single answers be seen",
                )));
            }
            // What all say together is as good as what one says who has all rows.
            Answers::Sum(all) => vec![Describe::take(all)?],
            each => each.each::<Describe>()?,
        })
    };
    let recipes = agreed_by(study, terms, &mut ask)?;
    Ok((recipes, asked))
}

/// The same, whoever states the facts.
pub(super) fn agreed_by(study: &Study, terms: &[Terms], ask: &mut Ask<'_>) -> Result<Vec<Recipe>> {
    let (weights, specs) = (study.data.weights.as_deref(), study.specs());
    let blame = |i: usize, error| at_formula(error, study, &specs[i]);
    let mut recipes = agree_or_blame(terms, weights, &study.schema, ask, &blame)?;
    for (spec, recipe) in specs.iter().zip(&mut recipes) {
        let Some(effects) = &mut recipe.effects else { continue };
        fitting_effects(study, spec).map_err(|error| at_formula(error, study, spec))?;
        if let Some(slope) = effects.slope.as_ref().map(Expr::to_string)
            && !recipe.columns.iter().any(|column| column.name == slope)
        {
            // What a site guards is columns of the design, too.
            let message = format!(
                "{effects}: the slopes in {slope} of all groups together are not in the model; add them, as in y ~ {slope} + {effects}"
            );
            return Err(at_formula(Error::input(message), study, spec));
        }
        effects.nodes = study.evidence.nodes.unwrap_or(0);
    }
    for (spec, recipe) in specs.iter().zip(&mut recipes).filter(|(s, _)| s.family.is_ordinal()) {
        // Cutpoints are its intercepts.
        if !recipe.columns.iter().any(|column| column.is_intercept()) {
            let message = format!(
                "a {} model has cutpoints in the place of an intercept; leave `0 +` or `- 1` out, which would code factors by all of their levels",
                spec.family
            );
            return Err(at_formula(Error::input(message), study, spec));
        }
        recipe.columns.retain(|column| !column.is_intercept());
    }
    Ok(recipes)
}

/// Gives every parameter of the models that were agreed on its prior.
pub(super) fn settle(study: &Study, recipes: &[Recipe]) -> Result<Vec<Written>> {
    let specs = study.specs();
    let names: Vec<Vec<ParameterName>> =
        specs.iter().zip(recipes).map(|(m, r)| parameter_names(m.family, r)).collect();
    unmatched_study_priors(study, names.iter().flatten())?;
    let mut models = Vec::new();
    for (spec, recipe) in specs.iter().zip(recipes) {
        fitting_outcome(study, spec, recipe)?;
    }
    let regressions = regressions(study, recipes);
    for ((spec, regression), names) in specs.iter().zip(regressions).zip(names) {
        let priors = resolve_priors(study, spec, &names)?;
        fitting_flat(study, spec, regression.response(), &priors)?;
        let parameter =
            |(n, p): (ParameterName, &PriorSpec)| Parameter { name: n.name, prior: p.prior };
        let parameters = names.into_iter().zip(&priors).map(parameter).collect();
        let body = Body::Regression(regression);
        let model = Model { name: spec.name.clone(), parameters, body };
        models.push((Arc::new(model), priors));
    }
    Ok(models)
}

/// The models' families and columns. Those that have family, outcome, offsets and weights in common share
/// a design.
fn regressions(study: &Study, recipes: &[Recipe]) -> Vec<Regression> {
    let mut designs: Vec<(Family, Shared)> = Vec::new();
    let mut places = Vec::new();
    for (spec, recipe) in study.specs().iter().zip(recipes) {
        let known =
            designs.iter_mut().enumerate().filter(|(_, (family, _))| *family == spec.family);
        let place =
            known.into_iter().find_map(|(k, (_, shared))| Some((k, shared.take_in(recipe)?)));
        places.push(place.unwrap_or_else(|| {
            let mut shared = Shared::new(recipe);
            let active = shared.take_in(recipe).expect("a design takes its own recipe in");
            designs.push((spec.family, shared));
            (designs.len() - 1, active)
        }));
    }
    let designs: Vec<(Family, Arc<Recipe>)> = designs
        .into_iter()
        .map(|(family, shared)| (family, Arc::new(shared.into_design())))
        .collect();
    let kernel = study.evidence.kernel;
    let regression = |(k, active): (usize, Vec<u32>)| {
        let (family, design) = designs[k].clone();
        let mut regression = Regression { family, design, active, kernel };
        regression.active = regression.active.repeat(regression.predictors());
        regression
    };
    places.into_iter().map(regression).collect()
}

fn parameter_names(family: Family, recipe: &Recipe) -> Vec<ParameterName> {
    let mut names: Vec<ParameterName> = recipe
        .columns
        .iter()
        .map(|column| {
            let intercept = column.name == INTERCEPT;
            let role = if intercept { Role::Intercept } else { Role::Coefficient };
            ParameterName::new(&column.name, &column.term, role)
        })
        .collect();
    let classes = match &recipe.response.kind {
        ResponseKind::Levels { levels } if family == Family::Multinomial => {
            // Every class but the first has coefficients of its own.
            let of_class = |class: &String| -> Vec<ParameterName> {
                let own = |n: &ParameterName| ParameterName {
                    name: format!("{class}: {}", n.column),
                    ..n.clone()
                };
                names.iter().map(own).collect()
            };
            return levels.iter().skip(1).flat_map(of_class).collect();
        }
        ResponseKind::Levels { levels } => levels.len(),
        _ => 2,
    };
    for &own in family.owns() {
        let role = Role::of_own(own);
        if role == Role::LogGap {
            // Between the k-th cutpoint and the one before.
            names.extend((2..classes).map(|k| {
                let name = format!("{own}_{k}");
                ParameterName::new(&name, own, role)
            }));
        } else {
            names.push(ParameterName::new(own, own, role));
        }
    }
    if let Some(effects) = &recipe.effects {
        let first = if effects.intercept { Role::EffectLogSd } else { Role::EffectLogSdSlope };
        let roles = [first, Role::EffectLogSdSlope, Role::EffectCorrelation];
        for (name, role) in effects.parameters().into_iter().zip(roles) {
            names.push(ParameterName::new(&name, &name, role));
        }
    }
    names
}

/// Has every shard build its designs, which finds outcomes that do not fit before anything runs, and says
/// how columns vary, by which the priors per standard deviation are settled. Also says where the data are far from what the
/// study states of them.
pub(super) fn survey(
    study: &Study,
    models: Vec<Written>,
    session: &Session,
) -> Result<(Vec<Setting>, Vec<Warning>)> {
    let Surveyed { designs: answers, located, pool } = ask_designs(study, &models, session)?;
    let far_off = codebook::far_off(study, &answers, pool.as_deref());
    let mut settings = Vec::new();
    for (spec, (model, _)) in study.specs().iter().zip(&models) {
        if let Some(regression) = model.regression() {
            both_classes(study, spec, &regression.design.response)?;
        }
    }
    for (written, located) in models.into_iter().zip(located) {
        let joint = joint_of(study, &written);
        if written.0.effects().is_some() && !joint.is_plain() {
            return Err(in_study(Error::input(format!(
                "model `{}` has random effects, for which priors that tie parameters to sigma or to each other, or are flat, are not there; give each parameter a prior of its own",
                written.0.name
            ))));
        }
        let (model, share, surveys) = settled_by(study, written, &answers, session.shards())
            .map_err(|error| {
                in_study(if far_off.is_empty() { error } else { codebook::doubted(error) })
            })?;
        let options = study.evidence.clone();
        let mut setting = Setting {
            model,
            joint,
            share,
            shards: session.shards(),
            surveys,
            options,
            located: located.map(Arc::new),
            pool: pool.clone(),
            warnings: Vec::new(),
            extras: Extras::default(),
        };
        if needs_own_posteriors(&setting) {
            setting.warnings.extend(missing_levels(&setting));
        }
        refuse_ties(&setting).map_err(in_study)?;
        settings.push(setting);
    }
    Ok((settings, far_off))
}

/// Which of a model's priors are tied to others.
fn joint_of(study: &Study, (model, priors): &Written) -> Joint {
    let specs = study.specs();
    let spec = specs.iter().find(|spec| spec.name == model.name);
    let group = spec.and_then(|spec| group_of(study, spec)).and_then(|spec| spec.group);
    Joint::new(priors.iter().map(|prior| prior.tie).collect(), group)
}

/// A model with its priors settled by what shards say of its design, how the prior is shared out, and what they
/// say of the model's own columns.
pub(super) fn settled_by(
    study: &Study,
    (model, priors): Written,
    answers: &[SurveyedDesign],
    shards: usize,
) -> Result<(Arc<Model>, Share, Vec<SurveyAnswer>)> {
    let found = answers.iter().find(|found| is_over(&model, &found.design));
    let each = found.map_or(&[][..], |found| &found.each);
    let surveys: Vec<SurveyAnswer> = each.iter().map(|survey| part(survey, &model)).collect();
    let whole = found.map(|found| part(&found.whole, &model));
    let whole = whole.unwrap_or_else(|| SurveyAnswer::of_rows(0.0));
    if let Some(empty) = surveys.iter().position(|s| s.observations == 0.0) {
        let message = format!(
            "every row of shard {empty} has weight 0 or no trials; use fewer shards, or another `split.seed`"
        );
        return Err(Error::input_at(Place::key(""), message));
    }
    let share = match study.split.share {
        ShareRule::Rows => Share::Rows { total: whole.observations },
        _ => Share::Equal { shards },
    };
    Ok((units::settled(model, &priors, &whole)?, share, surveys))
}

/// A design's own family and columns.
pub(super) type FamilyDesign = (Family, Arc<Recipe>);

fn is_over(model: &Model, (family, design): &FamilyDesign) -> bool {
    let own = model.regression();
    own.is_some_and(|r| r.family == *family && Arc::ptr_eq(&r.design, design))
}

/// What shards say of a design.
pub(super) struct SurveyedDesign {
    pub(super) design: FamilyDesign,
    /// All of them together.
    pub(super) whole: SurveyAnswer,
    /// Each of them; where only sums are known, all together.
    pub(super) each: Vec<SurveyAnswer>,
}

impl SurveyedDesign {
    /// Of which only this is known.
    pub(super) fn of_sum(design: FamilyDesign, whole: SurveyAnswer) -> SurveyedDesign {
        SurveyedDesign { design, each: vec![whole.clone()], whole }
    }
}

/// What all shards say before anything is combined.
struct Surveyed {
    /// Of every design that models share.
    designs: Vec<SurveyedDesign>,
    /// Of each model, where its likelihood is highest, if that was asked.
    located: Vec<Option<Expansion>>,
    /// The statistics of Gaussian models, if they were asked.
    pool: Option<Arc<Pool>>,
}

/// The questions of the round that looks at designs, and what each is about.
pub(super) struct DesignRound {
    pub(super) designs: Vec<FamilyDesign>,
    /// The numbers of the models whose peaks are looked for.
    sought: Vec<usize>,
    locate: Locate,
    statistics: Option<Statistics>,
    /// All of it: the designs, then the peaks, then the statistics.
    pub(super) questions: Vec<Question>,
}

/// What is asked in that round. It depends on the study, its models and the number of shards alone.
pub(super) fn design_round(study: &Study, models: &[Written], shards: usize) -> DesignRound {
    let mut designs: Vec<(FamilyDesign, bool)> = Vec::new();
    for (model, priors) in models {
        let Some(regression) = model.regression() else { continue };
        let per_sd = priors.iter().any(|spec| spec.per_sd);
        match designs.iter_mut().find(|(design, _)| is_over(model, design)) {
            Some((_, units)) => *units |= per_sd,
            None => designs.push(((regression.family, regression.design.clone()), per_sd)),
        }
    }
    let question = |((family, design), units): &(FamilyDesign, bool)| {
        Survey { family: *family, design: design.clone(), units: *units }.into()
    };
    let mut questions: Vec<Question> = designs.iter().map(question).collect();
    let sought: Vec<usize> =
        (0..models.len()).filter(|&i| rides_along(study, &models[i])).collect();
    let locate = Locate(sought.iter().map(|&i| start_of(&models[i].0, shards)).collect());
    if !sought.is_empty() {
        questions.push(locate.clone().into());
    }
    let suited = models.iter().filter(|model| has_statistics_in(study, model));
    let statistics = statistics_of(suited.map(|(model, _)| model)).map(|(question, _)| question);
    questions.extend(statistics.clone().map(Question::from));
    let designs = designs.into_iter().map(|(design, _)| design).collect();
    DesignRound { designs, sought, locate, statistics, questions }
}

/// Asks for all of it in one round.
fn ask_designs(study: &Study, models: &[Written], session: &Session) -> Result<Surveyed> {
    let DesignRound { designs, sought, locate, statistics, questions } =
        design_round(study, models, session.shards());
    let mut surveys = Vec::new();
    let answers = session.ask(&questions).map_err(|error| with_model(error, models))?;
    let mut answers = answers.into_iter();
    for ((design, question), answers) in designs.into_iter().zip(&questions).zip(&mut answers) {
        let Question::Survey(question) = question else { continue };
        let (whole, each) = answers.sum::<Survey>(question)?;
        surveys.push(match each {
            Some(each) => SurveyedDesign { design, whole, each },
            None => SurveyedDesign::of_sum(design, whole),
        });
    }
    let mut located = vec![None; models.len()];
    if let Some(answers) = answers.by_ref().take(usize::from(!sought.is_empty())).next() {
        let (found, _) = answers.sum(&locate)?;
        sought.iter().zip(found).for_each(|(&i, at)| located[i] = Some(at));
    }
    let pool = statistics.zip(answers.next()).map(|(question, all)| Pool::of(question, all));
    Ok(Surveyed { designs: surveys, located, pool: pool.transpose()? })
}

/// Whether shards are asked in passing where they think a model's peak is. Gaussian models go by their statistics.
fn rides_along(study: &Study, (model, _): &Written) -> bool {
    let by_rounds = !has_statistics(model, &study.evidence);
    let exact = study.evidence.combine == Combine::Exact && study.select.is_none();
    exact && by_rounds && is_sought(model, &study.evidence)
}

/// Whether shards are asked in passing for a model's statistics: only where they are wanted for sure, since they tell
/// more than a survey. A choice among models wants them where every model is computed, or all at once by them.
fn has_statistics_in(study: &Study, (model, _): &Written) -> bool {
    let wanted = match study.select.as_ref().map(|select| select.method) {
        None | Some(SelectBy::Enumerate) => true,
        Some(SelectBy::Auto | SelectBy::Search) => model.has_normal_coefficients(),
        Some(_) => false,
    };
    wanted && has_statistics(model, &study.evidence)
}

/// Where shards begin to look for a model's peak. Priors are not settled yet, and have no part in it.
fn start_of(model: &Arc<Model>, shards: usize) -> Points {
    let start = model.start();
    let thetas = Arc::new(Matrix::from_rows(1, start.len(), start));
    let share = Share::Equal { shards };
    Points { model: model.clone(), share, thetas, rule: None }
}

/// An error about a column of a design, with the name of the first model that has it.
fn with_model(error: Error, models: &[Written]) -> Error {
    let Error::Input { place, message } = error else { return error };
    let has = |model: &Model| {
        let mut columns = model.regression().into_iter().flat_map(|r| r.columns());
        columns.any(|column| Some(&column.name) == place.column.as_ref())
    };
    // What names a row says enough.
    let message = match models.iter().find(|(model, _)| has(model)) {
        Some((model, _)) if place.file.is_none() => format!("model `{}`: {message}", model.name),
        _ => message,
    };
    Error::Input { place, message }
}

/// What a survey of a design says of a model's columns.
fn part(survey: &SurveyAnswer, model: &Model) -> SurveyAnswer {
    let active = model.regression().map_or(&[][..], |r| &r.active);
    let pick = |values: &[f64]| -> Vec<f64> {
        active.iter().filter_map(|&j| values.get(j as usize).copied()).collect()
    };
    let free = pick(&survey.nonzero).into_iter().zip(model.coefficients());
    let free = free.filter(|(_, parameter)| parameter.prior.fixed().is_none());
    SurveyAnswer {
        nonzero: free.map(|(count, _)| count).collect(),
        means: pick(&survey.means),
        squares: pick(&survey.squares),
        ..*survey
    }
}

/// Whether the shards' own posteriors have a part in the result. `exact` does without, and what a shard lacks is no
/// matter to it.
fn needs_own_posteriors(setting: &Setting) -> bool {
    let options = &setting.options;
    let unasked = matches!(options.local, Local::Auto | Local::None);
    options.combine != Combine::Exact || !unasked
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
