//! Gaussian models from one round: sufficient statistics are all that their likelihood knows.
//!
//! Every shard sends n, the means m of its columns [X, y] and the triangular factor F of these columns
//! around m, X being the union of all models' columns: they hold X'X, X'y and y'y. Factors are put
//! together at the centre, and any model's likelihood is a choice of columns of the result. From there on
//! no shard is needed: with normal priors, and a few others, the evidence is an integral over log σ and a
//! few variances, otherwise it is sampled here.

use super::exact::Exact;
use super::{
    Agreement, Combination, CombineDiagnostics, Evidence, Fits, LeftOut, Next, PosteriorDraws,
    Setting, homogeneity, leave_one_out, rank,
};
use crate::data::{Places, Recipe, union};
use crate::engine::Session;
use crate::error::clip;
use crate::estimate::zellner::{LevelPriors, Zellner};
use crate::estimate::{InSigma, Linear, Weighted, newton};
use crate::fit::{Diagnostics, FitOrder, Summary, fit};
use crate::math::{Stream, stream};
use crate::model::{
    AroundMeans, Centred, Coordinates, GPrior, Gaussian, Joint, Likelihood, Model, Prior,
    Regression, Subposterior, Tie, Warped,
};
use crate::question::{Answer, Answers, Expand, Points, Question, Statistics, Weigh};
use crate::study::{Combine, EvidenceOptions, Local, Schedule};
use crate::target::{Expansion, Target};
use crate::{Error, Level, Result, Warning};
use std::sync::Arc;

/// The widest union: beyond it the factors would weigh more than the rounds that they save.
const MOST_COLUMNS: usize = 2_000;

/// Rounds at the centre cost nothing.
const OWN_ROUNDS: usize = 100;

/// The statistics of all rows, and what was asked for them. They do not depend on priors, so whoever settles these
/// can ask before.
#[derive(Debug)]
pub struct Pool {
    question: Statistics,
    /// Of all shards together.
    pub(crate) all: Centred,
    /// Shard by shard; none where only their sum is known.
    each: Option<Vec<Centred>>,
}

impl Pool {
    /// What shards say to this question.
    pub(crate) fn of(question: Statistics, answers: Answers) -> Result<Arc<Pool>> {
        let (all, each) = answers.sum(&question)?;
        Ok(Arc::new(Pool { question, all, each }))
    }

    /// The design that has the columns of all models; its outcome comes behind them.
    pub(crate) fn recipe(&self) -> &Recipe {
        &self.question.recipe
    }

    /// The answers to this question: those that came with some model's setting, or new ones. What was asked of other
    /// columns, or of the same in another order, would have other bits.
    pub(crate) fn found<'a>(
        session: &Session,
        mut settings: impl Iterator<Item = &'a Setting>,
        question: Statistics,
    ) -> Result<Arc<Pool>> {
        let known = settings.find_map(|s| s.pool.as_ref().filter(|p| p.question == question));
        match known {
            Some(pool) => Ok(pool.clone()),
            None => Pool::of(question.clone(), session.ask_one(&question)?),
        }
    }
}

/// What one round says about all models of a study.
pub(super) struct PooledStatistics {
    pool: Arc<Pool>,
    /// All shards but one, for each of them, if that is wanted.
    without: Option<Vec<Centred>>,
    places: Vec<Places>,
}

/// Whether statistics are enough: for Gaussian models, combined exactly.
pub(crate) fn has_statistics(model: &Model, options: &EvidenceOptions) -> bool {
    options.combine == Combine::Exact && options.statistics && model.is_gaussian()
}

pub(super) fn suits(setting: &Setting) -> bool {
    has_statistics(&setting.model, &setting.options)
}

/// The question about all columns of these models, and where each model has its own; `None` without models, or with
/// too many columns.
pub(crate) fn statistics_of<'a>(
    models: impl Iterator<Item = &'a Arc<Model>>,
) -> Option<(Statistics, Vec<Places>)> {
    let regressions: Vec<&Regression> = models.filter_map(|model| model.regression()).collect();
    let kernel = regressions.first()?.kernel;
    let recipes: Vec<Recipe> = regressions.iter().map(|r| r.recipe()).collect();
    let (recipe, places) = union(&recipes);
    let narrow = recipe.columns.len() < MOST_COLUMNS;
    narrow.then(|| (Statistics { recipe: Arc::new(recipe), kernel }, places))
}

/// The statistics of all models for which they are enough, in their order.
pub(super) fn gather(
    session: &Session,
    settings: &[Setting],
) -> Result<Option<Arc<PooledStatistics>>> {
    let suited = || settings.iter().filter(|setting| suits(setting));
    let Some((question, places)) = statistics_of(suited().map(|s| &s.model)) else {
        return Ok(None);
    };
    let columns = question.recipe.columns.len() + 1;
    let pool = Pool::found(session, suited(), question)?;
    let without = match (settings.iter().any(|s| s.extras.leave_one_out), &pool.each) {
        (false, _) => None,
        (true, Some(each)) => Some(without_each(each, columns)),
        (true, None) => return Err(leave_one_out::only_sums()),
    };
    Ok(Some(Arc::new(PooledStatistics { pool, without, places })))
}

/// All parts but one, for each of them: from those before it and those after it.
fn without_each(parts: &[Centred], columns: usize) -> Vec<Centred> {
    let mut after = vec![Centred::of_none(columns)];
    for part in parts.iter().skip(1).rev() {
        let last = after.last().expect("it begins with none");
        after.push(Centred::merge([part, last].into_iter()));
    }
    let mut before = Centred::of_none(columns);
    let mut without = Vec::new();
    for (part, after) in parts.iter().zip(after.iter().rev()) {
        without.push(Centred::merge([&before, after].into_iter()));
        before = Centred::merge([&before, part].into_iter());
    }
    without
}

/// A Gaussian model on rows that are known by their statistics, its columns in these places.
pub(crate) fn gaussian_of(part: &Centred, model: &Model, places: &Places) -> Gaussian {
    let mut taken: Vec<(usize, f64)> = places.offsets.iter().map(|&place| (place, 1.0)).collect();
    let mut free = Vec::new();
    for (parameter, &place) in model.parameters.iter().zip(&places.columns) {
        match parameter.prior.fixed() {
            Some(value) => taken.push((place, value)),
            None => free.push(place),
        }
    }
    part.gaussian(&free, &taken)
}

/// The same as a target.
fn target(part: &Centred, model: &Model, places: &Places, share: f64) -> Subposterior {
    let gaussian = gaussian_of(part, model, places);
    let likelihood = Likelihood::of_gaussian(gaussian, fixed_log_sd(model));
    Subposterior::new(Arc::new(likelihood), model.free_priors(), share, model.start())
}

fn fixed_log_sd(model: &Model) -> Option<f64> {
    model.parameters.last().and_then(|p| p.prior.fixed())
}

/// What all shards together say to a question about points.
fn answered(all: &Subposterior, question: &Question) -> Result<Answer> {
    Ok(match question {
        Question::Expand(Expand(asked)) => {
            let at = |asked: &Points| asked.rows().map(|theta| all.expand(theta)).collect();
            Answer::Expand(Box::new(asked.iter().map(at).collect()))
        }
        Question::Weigh(Weigh(asked)) => {
            let at = |asked: &Points| {
                let mut out = vec![0.0; asked.thetas.rows()];
                all.log_densities(&asked.thetas, &mut out);
                out
            };
            Answer::Weigh(Box::new(asked.iter().map(at).collect()))
        }
        other => return Err(Error::numeric(format!("`{}` has no answer here", other.kind()))),
    })
}

/// An evidence by quadrature.
fn quadrature(evidence: Evidence, closed_form: bool, draws: Option<PosteriorDraws>) -> Evidence {
    let diagnostics = CombineDiagnostics {
        method: if closed_form { "closed form" } else { "quadrature" },
        newton_rounds: 0,
        weigh_rounds: 0,
        peaks: Vec::new(),
        draws: Diagnostics::default(),
    };
    Evidence { diagnostics: Some(diagnostics), draws, ..evidence }
}

/// A model under a prior of all its coefficients together, on rows that are known by their statistics.
fn zellner(model: &Model, joint: &Joint, gaussian: &Gaussian) -> Result<Zellner> {
    let (ground, intercept) = ground_of(model, joint)?;
    let Some((group, scale)) = joint.group() else {
        return Err(Error::numeric("there is no prior of all coefficients together"));
    };
    let rows = gaussian.around_means(intercept);
    independent_columns(model, group, &rows, intercept)?;
    let spread = group.spread(rows.observations, rows.image.len(), scale);
    Zellner::new(rows, intercept, spread, ground)
}

/// Fails where a column is a combination of those before it: then there is no such prior.
pub(crate) fn independent_columns(
    model: &Model,
    group: GPrior,
    rows: &AroundMeans,
    intercept: usize,
) -> Result<()> {
    let names: Vec<&str> = model.free().map(|p| p.name.as_str()).collect();
    if let Some(j) = (0..rows.image.len()).find(|&j| rows.root[(j, j)] == 0.0) {
        let name = names[if j < intercept { j } else { j + 1 }];
        return Err(determined(model, &group.to_string(), name));
    }
    Ok(())
}

/// The error of a column that others determine.
pub(super) fn determined(model: &Model, group: &str, name: &str) -> Error {
    Error::input(format!(
        "model `{}`: coefficients = \"{group}\" needs columns none of which the others determine, and the column of `{}` is a combination of those before it; leave it out, or give the coefficients priors of their own, as in \"normal(0, 1) per sd\"",
        clip(&model.name),
        clip(name)
    ))
}

/// The priors of a model's level and of log σ beside one of all coefficients together, and the intercept's number among
/// the free parameters.
pub(crate) fn ground_of(model: &Model, joint: &Joint) -> Result<(LevelPriors, usize)> {
    let mut free = 0..;
    let mut intercept = None;
    for (j, parameter) in model.coefficients().iter().enumerate() {
        let number = parameter.prior.fixed().is_none().then(|| free.next()).flatten();
        if model.regression().is_some_and(|r| r.column(j).is_intercept()) {
            intercept = number.map(|number| (number, joint.tie(j), parameter.prior));
        }
    }
    let Some((number, tie, prior)) = intercept else {
        return Err(Error::input(format!(
            "model `{}`: a prior of all coefficients together is about columns around their means, which needs an intercept that is not held fixed; add one to the formula, or give it another prior",
            clip(&model.name)
        )));
    };
    let level = match (tie, prior) {
        (Tie::None, Prior::Normal { mean, sd }) => Some((mean, sd)),
        _ => None,
    };
    let own = model.coefficients().len();
    let log_sd = model.own_parameter().filter(|_| joint.tie(own) != Tie::Flat).map(|p| p.prior);
    Ok((LevelPriors { level, log_sd }, number))
}

/// What to say where some coefficients fit every row.
fn perfect_fit(gaussian: &Gaussian, fixed: Option<f64>) -> Option<Warning> {
    let more = gaussian.observations() > gaussian.rank() as f64 + 0.5;
    let perfect = gaussian.rest() == 0.0 && more && fixed.is_none();
    perfect.then(|| {
        let message = "the coefficients fit every row but for rounding: how small log_sd can be, and with it the evidence, rests on its prior alone";
        let advice = "see whether the outcome is computed from the columns, or is the same everywhere";
        Warning::new(Level::Caution, "perfect-fit", message, advice)
    })
}

/// The combination of one model from the statistics of all shards.
pub(super) struct Pooled {
    setting: Setting,
    statistics: Arc<PooledStatistics>,
    /// The model's number among those that statistics are enough for.
    number: usize,
}

impl Pooled {
    pub(super) fn new(
        setting: Setting,
        statistics: Arc<PooledStatistics>,
        number: usize,
    ) -> Pooled {
        Pooled { setting, statistics, number }
    }

    fn evidence(&self, fits: Option<Fits>) -> Result<Evidence> {
        let (model, places) = (&self.setting.model, &self.statistics.places[self.number]);
        let all = target(&self.statistics.pool.all, model, places, 1.0);
        let mut evidence = self.of(&all, self.setting.extras.posterior)?;
        if let Some(without) = &self.statistics.without {
            let left_out = without.iter().enumerate().map(|(s, part)| {
                let rest = self.of(&target(part, model, places, 1.0), false);
                rest.map_err(|e| e.for_shard(s)).map(|rest| LeftOut::apart(&evidence, &rest))
            });
            evidence.left_out = Some(left_out.collect::<Result<_>>()?);
            evidence = *leave_one_out::warned(Box::new(evidence));
        }
        // By X'X itself, not by a curvature that a search may have met.
        evidence.warnings.retain(|w| w.code != rank::CODE);
        let gaussian = all.likelihood().gaussian();
        let note = gaussian.and_then(|(gaussian, _)| rank::gaussian_note(&self.setting, gaussian));
        evidence.warnings.splice(0..0, note);
        evidence.agreement = self.agreement(&all);
        evidence.warnings.extend(homogeneity::warnings(&evidence.agreement, &self.setting.names()));
        if let Some(fits) = fits {
            evidence = evidence.beside(fits);
        }
        Ok(evidence)
    }

    fn of(&self, target: &Subposterior, posterior: bool) -> Result<Evidence> {
        let mut evidence = match self.integrated(target, posterior)? {
            Some(evidence) => evidence,
            None => self.sampled(target)?,
        };
        let gaussian = target.likelihood().gaussian();
        evidence
            .warnings
            .extend(gaussian.and_then(|(gaussian, fixed)| perfect_fit(gaussian, fixed)));
        Ok(evidence)
    }

    /// The evidence by draws: importance draws, or chains where these are poor. Many coefficients under a
    /// narrow Laplace prior make a posterior with so many kinks that no proposal fits.
    fn sampled(&self, all: &Subposterior) -> Result<Evidence> {
        let quick = self.by_importance(all);
        let why = match &quick {
            Err(error) => error.to_string(),
            Ok(evidence) => match evidence.unreliable() {
                None => return quick,
                Some(warning) => warning.message.clone(),
            },
        };
        match self.by_chains(all, &why) {
            Ok(evidence) if quick.is_err() || evidence.unreliable().is_none() => Ok(evidence),
            _ => quick,
        }
    }

    /// The evidence by NUTS and a bridge.
    fn by_chains(&self, all: &Subposterior, why: &str) -> Result<Evidence> {
        let order = FitOrder { method: Local::NutsWarp3, ..self.setting.order() };
        // Not the stream of any shard.
        let fitted = fit(&self.setting.model, all, &order, self.setting.shards)?;
        let Summary { log_z, mean, covariance, diagnostics, mut warnings, .. } = fitted.summary;
        warnings.iter_mut().for_each(|warning| warning.shard = None);
        let message = format!("took {} since by importance sampling {why}", Local::NutsWarp3);
        let advice = "nothing needs to be done";
        warnings.push(Warning::new(Level::Note, "auto-method", message, advice));
        let seen = CombineDiagnostics {
            method: "nuts+warp3",
            newton_rounds: 0,
            weigh_rounds: 0,
            peaks: Vec::new(),
            draws: Diagnostics { chains: None, ..diagnostics },
        };
        Ok(Evidence {
            diagnostics: Some(seen),
            draws: fitted.sample.map(PosteriorDraws::Equal),
            warnings,
            ..self.setting.evidence(log_z, mean, covariance)
        })
    }

    /// The evidence by quadrature, if the priors allow, with draws of the posterior if they are wanted.
    fn integrated(&self, all: &Subposterior, posterior: bool) -> Result<Option<Evidence>> {
        let Some((gaussian, fixed)) = all.likelihood().gaussian() else { return Ok(None) };
        let joint = &self.setting.joint;
        if joint.group().is_some() {
            return self.by_zellner(gaussian, posterior).map(Some);
        }
        if joint.has(Tie::Sigma) {
            return self.in_sigma(gaussian, all, fixed, posterior).map(Some);
        }
        let found = Linear::new(gaussian, all.priors(), 1.0, fixed)?;
        let Some(found) = found else { return Ok(None) };
        let draws = posterior.then(|| self.drawn(|count, rng| found.draws(count, rng)));
        let evidence = self.setting.evidence(found.log_z, found.mean, found.covariance);
        Ok(Some(quadrature(evidence, found.closed_form, draws)))
    }

    /// Draws of a quadrature.
    fn drawn(&self, draw: impl FnOnce(usize, &mut Stream) -> Weighted) -> PosteriorDraws {
        let EvidenceOptions { seed, draws, .. } = self.setting.options;
        // Not the stream of any shard.
        let shard = self.setting.shards as u64;
        let mut rng = stream(seed, self.setting.model.stream(), shard, "quadrature");
        PosteriorDraws::Weighted(draw(draws, &mut rng))
    }

    /// The evidence where some coefficients have priors in units of σ.
    fn in_sigma(
        &self,
        gaussian: &Gaussian,
        all: &Subposterior,
        fixed: Option<f64>,
        posterior: bool,
    ) -> Result<Evidence> {
        let ties = self.setting.joint.of_free(&self.setting.model);
        let scaled: Vec<bool> = ties.iter().map(|tie| *tie == Tie::Sigma).collect();
        let found = InSigma::new(gaussian, all.priors(), &scaled, fixed)?;
        let found = found.ok_or_else(|| {
            Error::input("beside priors in units of sigma at most one coefficient can have a prior that is not normal; write normal priors, or all without `* sigma`")
        })?;
        let draws = posterior.then(|| self.drawn(|count, rng| found.draws(count, rng)));
        let closed = found.others.closed_form;
        let evidence = self.setting.evidence(found.log_z, found.mean, found.covariance);
        Ok(quadrature(evidence, closed, draws))
    }

    /// The evidence under a prior of all coefficients together.
    fn by_zellner(&self, gaussian: &Gaussian, posterior: bool) -> Result<Evidence> {
        let Setting { model, joint, .. } = &self.setting;
        let found = zellner(model, joint, gaussian)?;
        let draws = posterior.then(|| self.drawn(|count, rng| found.draws(count, rng)));
        let evidence = self.setting.evidence(found.log_z, found.mean, found.covariance);
        Ok(quadrature(evidence, found.closed_form, draws))
    }

    /// The evidence by the same search and draws as over many rounds, all of them answered here.
    fn by_importance(&self, all: &Subposterior) -> Result<Evidence> {
        let mut setting = self.setting.clone();
        setting.options.rounds = OWN_ROUNDS;
        setting.options.local = Local::None;
        // There is nobody to save rounds for.
        setting.options.schedule = Schedule::Gentle;
        setting.extras.leave_one_out = false;
        let mut machine = Exact::new(setting);
        let mut answers = Vec::new();
        loop {
            match machine.next(answers)? {
                Next::Done(mut evidence) => {
                    if let Some(seen) = &mut evidence.diagnostics {
                        (seen.newton_rounds, seen.weigh_rounds) = (0, 0);
                    }
                    return Ok(*evidence);
                }
                Next::Ask(asked) => {
                    let answer = |question| Ok(Answers::Sum(answered(all, question)?));
                    answers = asked.iter().map(answer).collect::<Result<_>>()?;
                }
            }
        }
    }

    /// The score test of every shard at the mode; none where there is no clear mode.
    fn agreement(&self, all: &Subposterior) -> Vec<Agreement> {
        let Some(shares) = self.setting.shares() else { return Vec::new() };
        let coordinates = Coordinates::new(all.priors(), 1.0);
        let warped = Warped::new(all, &coordinates);
        let Ok(found) = newton::find_mode(&warped, 1e-6, 100) else { return Vec::new() };
        let (model, places) = (&self.setting.model, &self.statistics.places[self.number]);
        let z = &found.mode.theta;
        let theta = coordinates.theta(z);
        let parts = self.statistics.pool.each.iter().flatten().zip(shares);
        let mut parts: Vec<Expansion> = parts
            .map(|(part, share)| {
                let at = target(part, model, places, share).expand(&theta);
                coordinates.score(z, &theta, &at, share)
            })
            .collect();
        self.setting.compare_scores(&mut parts)
    }
}

impl Combination for Pooled {
    fn next(&mut self, mut answers: Vec<Answers>) -> Result<Next> {
        let wanted = !matches!(self.setting.options.local, Local::Auto | Local::None);
        match answers.pop() {
            None if wanted => Ok(Next::Ask(vec![self.setting.fit()])),
            answers => {
                let fits = answers.map(Fits::of).transpose()?;
                Ok(Next::Done(Box::new(self.evidence(fits)?)))
            }
        }
    }
}
