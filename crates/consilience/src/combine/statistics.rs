//! Gaussian models from one round: sufficient statistics are all that their likelihood knows.
//!
//! Every shard sends n and the triangular factor F of its rows [X, y], X being the union of all
//! models' columns: F'F holds X'X, X'y and y'y. Factors are put together at the centre, and any
//! model's likelihood is a choice of columns of the result. From there on no shard is needed: with
//! normal priors the evidence is an integral over log σ alone, with others it is sampled here.

use super::exact::Exact;
use super::{
    Agreement, Combination, CombineDiagnostics, Evidence, LeftOut, Next, PosteriorDraws, Setting,
    homogeneity, leave_one_out, summaries,
};
use crate::data::{Places, union};
use crate::engine::Session;
use crate::estimate::{Linear, newton};
use crate::fit::fit;
use crate::math::{Matrix, Triangle};
use crate::model::{Coordinates, Family, Gaussian, Likelihood, Model, Subposterior, Warped};
use crate::question::{Answer, Diagnostics, FitOrder, Question, Summary};
use crate::study::{Combine, Local};
use crate::target::{Expansion, Target};
use crate::{Level, Result, Warning};
use std::sync::Arc;

/// The widest union: beyond it the factors would weigh more than the rounds that they save.
const MOST_COLUMNS: usize = 2_000;

/// Rounds at the centre cost nothing.
const OWN_ROUNDS: usize = 100;

/// What one round says about all models of a study.
pub(super) struct Statistics {
    shards: Vec<Part>,
    all: Part,
    /// All shards but one, for each of them, if that is wanted.
    without: Option<Vec<Part>>,
    places: Vec<Places>,
}

/// Rows that are known by their statistics.
struct Part {
    observations: f64,
    factor: Matrix,
}

/// Asks for statistics where they are enough: Gaussian models, combined exactly. All models of a
/// study are Gaussian or none is.
pub(super) fn gather(session: &Session, settings: &[Setting]) -> Result<Option<Arc<Statistics>>> {
    let suits = |s: &Setting| {
        s.options.combine == Combine::Exact
            && s.options.statistics
            && s.model.family == Family::Gaussian
    };
    let recipes: Vec<_> = settings.iter().map(|s| &s.model.recipe).collect();
    if !settings.iter().all(suits) {
        return Ok(None);
    }
    let (recipe, places) = union(&recipes);
    let size = recipe.columns.len() + 1;
    if size > MOST_COLUMNS {
        return Ok(None);
    }
    let question = Question::Statistics { recipe: Arc::new(recipe) };
    let answers = session.ask(&[question])?.pop().unwrap_or_default();
    let shards: Vec<Part> = answers
        .into_iter()
        .map(|answer| match answer {
            Answer::Statistics { observations, factor } => Part { observations, factor },
            _ => unreachable!("the session checks kinds"),
        })
        .collect();
    let all = Part::together(shards.iter(), size);
    let wanted = settings.iter().any(|s| s.extras.leave_one_out);
    let without = wanted.then(|| without_each(&shards, size));
    Ok(Some(Arc::new(Statistics { shards, all, without, places })))
}

/// All parts but one, for each of them: from those before it and those after it.
fn without_each(parts: &[Part], size: usize) -> Vec<Part> {
    let nobody = || Part::together([].into_iter(), size);
    let mut after = vec![nobody()];
    for part in parts.iter().skip(1).rev() {
        let last = after.last().expect("it begins with nobody");
        after.push(Part::together([part, last].into_iter(), size));
    }
    let mut before = nobody();
    let mut without = Vec::new();
    for (part, after) in parts.iter().zip(after.iter().rev()) {
        without.push(Part::together([&before, after].into_iter(), size));
        before = Part::together([&before, part].into_iter(), size);
    }
    without
}

impl Part {
    fn together<'a>(parts: impl Iterator<Item = &'a Part> + Clone, size: usize) -> Part {
        Part {
            observations: parts.clone().map(|s| s.observations).sum(),
            factor: Triangle::of_rows(parts.map(|s| &s.factor), size).into_root(),
        }
    }

    /// The likelihood of a model whose columns have these places.
    fn gaussian(&self, model: &Model, places: &Places) -> Gaussian {
        let outcome = self.factor.cols() - 1;
        let column = |j: usize| (0..=outcome).map(|i| self.factor[(i, j)]).collect::<Vec<f64>>();
        let mut target = column(outcome);
        let mut take_off = |value: f64, place: usize| {
            for (i, t) in target.iter_mut().enumerate() {
                *t -= value * self.factor[(i, place)];
            }
        };
        places.offsets.iter().for_each(|&place| take_off(1.0, place));
        let mut columns = Vec::new();
        for (parameter, &place) in model.parameters.iter().zip(&places.columns) {
            match parameter.prior.fixed() {
                Some(value) => take_off(value, place),
                None => columns.push(column(place)),
            }
        }
        columns.push(target);
        let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let factor = Triangle::of_columns(&slices, &vec![1.0; outcome + 1]);
        Gaussian::from_factor(factor.root(), self.observations)
    }

    fn target(&self, model: &Model, places: &Places, share: f64) -> Subposterior {
        let likelihood = Likelihood::of_gaussian(self.gaussian(model, places), fixed_log_sd(model));
        Subposterior::new(Arc::new(likelihood), model.free_priors(), share, model.start())
    }
}

fn fixed_log_sd(model: &Model) -> Option<f64> {
    model.parameters.last().and_then(|p| p.prior.fixed())
}

/// The combination of one model from the statistics of all shards.
pub(super) struct Pooled {
    setting: Setting,
    statistics: Arc<Statistics>,
    /// The model's number in the study.
    number: usize,
}

impl Pooled {
    pub(super) fn new(setting: Setting, statistics: Arc<Statistics>, number: usize) -> Pooled {
        Pooled { setting, statistics, number }
    }

    fn evidence(&self, summaries: Option<Vec<Summary>>) -> Result<Evidence> {
        let (model, places) = (&self.setting.model, &self.statistics.places[self.number]);
        let all = self.statistics.all.target(model, places, 1.0);
        let mut evidence = self.of(&all)?;
        if self.setting.extras.posterior && evidence.draws.is_none() {
            evidence.draws = self.sampled(&all)?.draws;
        }
        if let Some(without) = &self.statistics.without {
            let left_out = without.iter().enumerate().map(|(s, part)| {
                let rest = self.of(&part.target(model, places, 1.0));
                rest.map_err(|e| e.for_shard(s)).map(|rest| LeftOut::apart(&evidence, &rest))
            });
            evidence.left_out = Some(left_out.collect::<Result<_>>()?);
            evidence = *leave_one_out::warned(Box::new(evidence));
        }
        evidence.agreement = self.agreement(&all);
        evidence.warnings.extend(homogeneity::warnings(&evidence.agreement, &self.setting.names()));
        if let Some(summaries) = summaries {
            evidence = evidence.beside(summaries);
        }
        Ok(evidence)
    }

    fn of(&self, target: &Subposterior) -> Result<Evidence> {
        self.integrated(target).map_or_else(|| self.sampled(target), Ok)
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
        let fitted = fit(&self.setting.model, all, &order, self.setting.shards())?;
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

    /// The evidence by an integral over log σ, if the priors allow.
    fn integrated(&self, all: &Subposterior) -> Option<Evidence> {
        let (gaussian, fixed) = all.likelihood().gaussian()?;
        let found = Linear::new(gaussian, all.priors(), 1.0, fixed)?;
        let method = if found.nodes == 1 { "closed form" } else { "quadrature" };
        let diagnostics = CombineDiagnostics {
            method,
            newton_rounds: 0,
            weigh_rounds: 0,
            peaks: Vec::new(),
            draws: Diagnostics::default(),
        };
        let evidence = self.setting.evidence(found.log_z, found.mean, found.covariance);
        Some(Evidence { diagnostics: Some(diagnostics), ..evidence })
    }

    /// The evidence by the same search and draws as over many rounds, all of them answered here.
    fn by_importance(&self, all: &Subposterior) -> Result<Evidence> {
        let mut setting = self.setting.clone();
        setting.options.rounds = OWN_ROUNDS;
        setting.options.local = Local::None;
        setting.extras.leave_one_out = false;
        let mut machine = Exact::new(setting);
        let mut answer = None;
        loop {
            match machine.next(answer.take())? {
                Next::Done(mut evidence) => {
                    if let Some(seen) = &mut evidence.diagnostics {
                        (seen.newton_rounds, seen.weigh_rounds) = (0, 0);
                    }
                    return Ok(*evidence);
                }
                Next::Ask(Question::Expand { thetas, .. }) => {
                    let at = (0..thetas.rows()).map(|k| all.expand(thetas.row(k))).collect();
                    answer = Some(vec![Answer::Expansions(at)]);
                }
                Next::Ask(Question::Weigh { thetas, .. }) => {
                    let mut out = vec![0.0; thetas.rows()];
                    all.log_densities(&thetas, &mut out);
                    answer = Some(vec![Answer::Weights(out)]);
                }
                Next::Ask(_) => unreachable!("no evidences of shards are wanted here"),
            }
        }
    }

    /// The score test of every shard at the mode; none where there is no clear mode.
    fn agreement(&self, all: &Subposterior) -> Vec<Agreement> {
        let coordinates = Coordinates::new(all.priors(), 1.0);
        let warped = Warped::new(all, &coordinates);
        let Ok(found) = newton::find_mode(&warped, 1e-6, 100) else { return Vec::new() };
        let (model, places) = (&self.setting.model, &self.statistics.places[self.number]);
        let z = &found.mode.theta;
        let theta = coordinates.theta(z);
        let parts = self.statistics.shards.iter().zip(self.setting.shares());
        let mut parts: Vec<Expansion> = parts
            .map(|(part, share)| {
                let at = part.target(model, places, share).expand(&theta);
                coordinates.expand(z, &theta, &at, share)
            })
            .collect();
        let scores = homogeneity::scores(&mut parts);
        self.setting.compare_shards(&scores, &found.mode.factor)
    }
}

impl Combination for Pooled {
    fn next(&mut self, answers: Option<Vec<Answer>>) -> Result<Next> {
        let wanted = !matches!(self.setting.options.local, Local::Auto | Local::None);
        match answers {
            None if wanted => Ok(Next::Ask(self.setting.fit())),
            answers => Ok(Next::Done(Box::new(self.evidence(answers.map(summaries))?))),
        }
    }
}
