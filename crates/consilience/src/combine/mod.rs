//! Combiners: from the shards' answers to the evidence of all the data.
//!
//! A combination is a machine that is fed one round of answers at a time and says what to ask next.
//! It knows no data and no engine, and all models' combinations share their rounds.

mod augmented;
mod baselines;
mod cmc;
mod exact;
mod homogeneity;
mod leave_one_out;
mod normal;
mod posterior;
mod rank;
mod statistics;

pub use baselines::Baseline;
pub(crate) use baselines::baselines;
pub use homogeneity::Agreement;
pub use leave_one_out::LeftOut;
pub use normal::{Consensus, consensus};
pub use posterior::PosteriorDraws;
pub(crate) use posterior::consensus_draws;

use crate::engine::Session;
use crate::estimate::search::Peak;
use crate::estimate::{Estimate, Importance};
use crate::math::{Cholesky, Matrix};
use crate::model::Model;
use crate::question::{Answer, Diagnostics, FitOrder, Question, Share, Summary, Survey};
use crate::study::{Combine, EvidenceOptions};
use crate::target::Expansion;
use crate::{Error, Level, Result, Warning};
use serde::Serialize;
use std::sync::Arc;

/// All that a combination of one model starts from.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The model.
    pub model: Arc<Model>,
    /// How the prior is shared out.
    pub share: Share,
    /// What each shard said of the design.
    pub surveys: Vec<Survey>,
    /// The user's options.
    pub options: EvidenceOptions,
    /// What is known to be worth saying before anything has run.
    pub warnings: Vec<Warning>,
    /// What is wanted beside the evidence.
    pub extras: Extras,
}

/// What a run is to deliver beside the evidences, since it costs memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extras {
    /// Draws of the posterior.
    pub posterior: bool,
    /// The evidences without each shard.
    pub leave_one_out: bool,
}

impl Setting {
    /// The number of shards S.
    pub fn shards(&self) -> usize {
        self.surveys.len()
    }

    /// The shards' shares w_s.
    pub fn shares(&self) -> Vec<f64> {
        self.surveys.iter().map(|s| self.share.of(s.observations)).collect()
    }

    /// The shards' rows, each counted with its weight.
    fn rows(&self) -> Vec<f64> {
        self.surveys.iter().map(|s| s.observations).collect()
    }

    /// The question for the shards' own evidences.
    fn fit(&self) -> Question {
        Question::Fit { model: self.model.clone(), share: self.share, order: self.order() }
    }

    /// How the shards are to compute their own evidences.
    fn order(&self) -> FitOrder {
        FitOrder {
            method: self.options.local,
            draws: self.options.draws,
            warmup: self.options.warmup,
            chains: self.options.chains,
            power: 1.0,
            seed: self.options.seed,
        }
    }

    /// The names of the free parameters.
    fn names(&self) -> Vec<&str> {
        self.model.free().map(|p| p.name.as_str()).collect()
    }

    /// How the shards agree with each other.
    fn compare_shards(
        &self,
        scores: &[homogeneity::Score<'_>],
        total: &Cholesky,
    ) -> Vec<Agreement> {
        homogeneity::agreements(scores, &self.rows(), total)
    }

    /// How shards agree whose log densities have these expansions at the consensus; not at all where their
    /// curvatures do not add up to a peak's.
    fn compare_scores(&self, shards: &mut [Expansion]) -> Vec<Agreement> {
        let scores = homogeneity::scores(shards);
        let mut total = Matrix::zeros(self.model.dim(), self.model.dim());
        scores.iter().for_each(|(_, information)| total.add_scaled(1.0, information));
        let total = Cholesky::new(&total);
        total.map(|total| self.compare_shards(&scores, &total)).unwrap_or_default()
    }

    /// The evidence that weighted draws of the whole posterior give.
    fn by_importance(
        &self,
        seen: Importance,
        diagnostics: CombineDiagnostics,
        warnings: Vec<Warning>,
    ) -> Evidence {
        let diagnostics = Some(diagnostics);
        let evidence = self.evidence(seen.log_z, seen.mean, seen.covariance);
        Evidence { diagnostics, warnings, ..evidence }
    }

    /// An evidence with the posterior's moments, of which nothing more is known.
    fn evidence(&self, log_z: Estimate, mean: Vec<f64>, covariance: Matrix) -> Evidence {
        Evidence {
            log_z,
            shards: None,
            overlap: None,
            correction: None,
            shape_error: None,
            log_alpha: log_alpha(&self.model, &self.shares()),
            mean,
            covariance,
            draws: None,
            left_out: None,
            diagnostics: None,
            summaries: None,
            agreement: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// The evidence of one model on all the data.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// log p(y).
    pub log_z: Estimate,
    /// Σ log Z_s, where the shards computed them.
    pub shards: Option<Estimate>,
    /// log I = log p(y) − Σ log Z_s, where the shards computed theirs.
    pub overlap: Option<Estimate>,
    /// log I less what normal approximations of the subposteriors make of it, where both are known:
    /// the logarithm of the paper's correction factor.
    pub correction: Option<f64>,
    /// What taking subposteriors as normal may be off by, in nats; `None` where they are not taken so, or where
    /// that was not looked at.
    pub shape_error: Option<f64>,
    /// Σ log α_s; `None` where it is not finite.
    pub log_alpha: Option<f64>,
    /// Posterior mean of the free parameters.
    pub mean: Vec<f64>,
    /// Posterior covariance of the free parameters.
    pub covariance: Matrix,
    /// Draws of the posterior of the free parameters, where the combination has any.
    pub draws: Option<PosteriorDraws>,
    /// The evidence without each shard, where that was asked for.
    pub left_out: Option<Vec<LeftOut>>,
    /// How the combination itself went.
    pub diagnostics: Option<CombineDiagnostics>,
    /// What each shard computed on its own, if it did.
    pub summaries: Option<Vec<Summary>>,
    /// How each shard agrees with the others; empty where that was not looked at.
    pub agreement: Vec<Agreement>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
}

/// How a combination went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CombineDiagnostics {
    /// `importance`, `quadrature`, `closed form`, `nuts+warp3` or `augmentation`.
    pub method: &'static str,
    /// Newton rounds to the mode.
    pub newton_rounds: usize,
    /// Importance rounds.
    pub weigh_rounds: usize,
    /// The peaks of the posterior that were found, and the share of it around each; empty where none were
    /// looked for.
    pub peaks: Vec<Peak>,
    /// Draws, effective draws and k̂ of the last proposal.
    #[serde(flatten)]
    pub draws: Diagnostics,
}

impl CombineDiagnostics {
    /// Importance sampling that ended with this many draws.
    fn importance(newton: usize, weigh: usize, seen: &Importance, count: usize) -> Self {
        CombineDiagnostics {
            method: "importance",
            newton_rounds: newton,
            weigh_rounds: weigh,
            peaks: Vec::new(),
            draws: Diagnostics {
                draws: Some(count),
                ess: Some(seen.ess),
                k_hat: seen.k_hat,
                ..Diagnostics::default()
            },
        }
    }
}

/// What a combination wants next.
pub(crate) enum Next {
    /// This question, put to every shard.
    Ask(Question),
    /// Nothing: here is the evidence.
    Done(Box<Evidence>),
}

/// A combination of one model's answers.
pub(crate) trait Combination {
    /// Takes the answers to its last question (`None` at first) and goes on.
    fn next(&mut self, answers: Option<Vec<Answer>>) -> Result<Next>;
}

/// Computes the evidence of every model. In each round all models that are not done ask together.
pub fn combine(session: &Session, settings: &[Setting]) -> Result<Vec<Evidence>> {
    let statistics = statistics::gather(session, settings)?;
    let mut machines: Vec<Box<dyn Combination>> = Vec::new();
    for (i, setting) in settings.iter().enumerate() {
        let own = setting.clone();
        machines.push(match (setting.options.combine, &statistics) {
            (Combine::Normal, _) => Box::new(normal::Normal::new(own)),
            (Combine::CmcIs, _) => Box::new(cmc::CmcIs::new(own)),
            (Combine::Augmented, _) => Box::new(augmented::Augmented::new(own)),
            (_, Some(statistics)) => Box::new(statistics::Pooled::new(own, statistics.clone(), i)),
            (_, None) => Box::new(exact::Exact::new(own)),
        });
    }
    let mut done: Vec<Option<Evidence>> = settings.iter().map(|_| None).collect();
    let mut answers: Vec<Option<Vec<Answer>>> = settings.iter().map(|_| None).collect();
    loop {
        let (mut asking, mut questions) = (Vec::new(), Vec::new());
        for (i, machine) in machines.iter_mut().enumerate() {
            if done[i].is_some() {
                continue;
            }
            let next = machine.next(answers[i].take());
            match next.map_err(|e| e.for_model(&settings[i].model.name))? {
                Next::Ask(question) => {
                    asking.push(i);
                    questions.push(question);
                }
                Next::Done(evidence) => {
                    let evidence = rank::noted(*evidence, &settings[i]);
                    done[i] = Some(evidence.checked(&settings[i].model)?);
                }
            }
        }
        if questions.is_empty() {
            return Ok(done.into_iter().flatten().collect());
        }
        for (i, answer) in asking.into_iter().zip(session.ask(&questions)?) {
            answers[i] = Some(answer);
        }
    }
}

impl Evidence {
    /// The first warning that says not to trust it.
    pub(crate) fn unreliable(&self) -> Option<&Warning> {
        self.warnings.iter().find(|w| w.level >= Level::Unreliable)
    }

    /// Itself, split into the shards' own evidences and their overlap.
    fn beside(mut self, summaries: Vec<Summary>) -> Evidence {
        let shards = sum_of_evidences(&summaries);
        let overlap = self.log_z - shards;
        self.warnings.extend(summaries.iter().flat_map(|s| s.warnings.clone()));
        // Where the normals have no product there is nothing to correct.
        let normals = normal::Normals::new(&summaries).ok();
        self.correction = normals.map(|n| overlap.value - n.log_overlap());
        self.shards = Some(shards);
        self.overlap = Some(overlap);
        self.summaries = Some(summaries);
        self
    }

    /// Itself, if every number in it is one; otherwise an error that names what is not.
    fn checked(self, model: &Model) -> Result<Evidence> {
        let fail = |what: &str| {
            Error::numeric(format!("{what} is not a finite number")).for_model(&model.name)
        };
        for estimate in [Some(self.log_z), self.shards, self.overlap].into_iter().flatten() {
            if !estimate.value.is_finite() || estimate.se.is_some_and(|se| !se.is_finite()) {
                return Err(fail("the log evidence or its standard error"));
            }
        }
        for (j, parameter) in model.free().enumerate() {
            let variance = self.covariance[(j, j)];
            if !self.mean[j].is_finite() || variance.is_nan() || variance < 0.0 {
                return Err(fail("a posterior moment").for_parameter(&parameter.name));
            }
        }
        Ok(self)
    }
}

/// Σ_s log α_s, `None` where one is not finite.
fn log_alpha(model: &Model, shares: &[f64]) -> Option<f64> {
    shares.iter().map(|&w| model.log_alpha(w)).sum()
}

/// Σ log Z_s.
fn sum_of_evidences(summaries: &[Summary]) -> Estimate {
    summaries.iter().map(|s| s.log_z).fold(Estimate::ZERO, |sum, z| sum + z)
}

/// The sum of the shards' log densities at each of `count` points, from a round of answers to Weigh.
fn sum_of_weights(answers: Vec<Answer>, count: usize) -> Vec<f64> {
    let mut log_target = vec![0.0; count];
    for answer in answers {
        let Answer::Weights(weights) = answer else { unreachable!("the session checks kinds") };
        log_target.iter_mut().zip(weights).for_each(|(sum, w)| *sum += w);
    }
    log_target
}

/// The summaries out of a round of answers to Fit.
fn summaries(answers: Vec<Answer>) -> Vec<Summary> {
    answers
        .into_iter()
        .map(|answer| match answer {
            Answer::Summary(summary) => *summary,
            _ => unreachable!("the session checks kinds"),
        })
        .collect()
}
