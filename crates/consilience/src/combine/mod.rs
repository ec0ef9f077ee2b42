//! Combiners: from the shards' answers to the evidence of all the data.
//!
//! A combination is a machine that is fed one round of answers at a time and says what to ask next.
//! It knows no data and no engine, and all models' combinations share their rounds.

mod exact;
mod homogeneity;
mod leave_one_out;
mod normal;
mod posterior;

pub use leave_one_out::LeftOut;
pub use normal::{Consensus, consensus};
pub use posterior::PosteriorDraws;
pub(crate) use posterior::consensus_draws;

use crate::engine::Session;
use crate::estimate::Estimate;
use crate::math::Matrix;
use crate::model::Model;
use crate::question::{Answer, Diagnostics, FitOrder, Question, Share, Summary, Survey};
use crate::study::{Combine, EvidenceOptions};
use crate::{Error, Result, Warning};
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
        Question::Fit {
            model: self.model.clone(),
            share: self.share,
            order: FitOrder {
                method: self.options.local,
                draws: self.options.draws,
                warmup: self.options.warmup,
                chains: self.options.chains,
                seed: self.options.seed,
            },
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
    /// What the user should know.
    pub warnings: Vec<Warning>,
}

/// How a combination by importance sampling went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CombineDiagnostics {
    /// Newton rounds to the mode.
    pub newton_rounds: usize,
    /// Importance rounds.
    pub weigh_rounds: usize,
    /// Draws, effective draws and k̂ of the last proposal.
    #[serde(flatten)]
    pub draws: Diagnostics,
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
    let mut machines: Vec<Box<dyn Combination>> = Vec::new();
    for setting in settings {
        machines.push(match setting.options.combine {
            Combine::Exact => Box::new(exact::Exact::new(setting.clone())),
            Combine::Normal => Box::new(normal::Normal::new(setting.clone())),
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
                Next::Done(evidence) => done[i] = Some(evidence.checked(&settings[i].model)?),
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
