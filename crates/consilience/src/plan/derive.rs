//! What a study asks, found anew by those who are asked: a site obeys nobody, it derives.
//!
//! Questions follow from the study and from what all shards said before. Whoever knows both can tell what the
//! next question has to be, and refuse any other.

use super::outline::Outline;
use super::settle::{self, SurveyedDesign};
use crate::combine::statistics_of;
use crate::data::{Fact, Request};
use crate::model::{Model, Regression, Share};
use crate::question::{Answers, Describe, Kind, Points, Question, Survey, SurveyAnswer};
use crate::study::Combine;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What all shards together have said about columns and designs: with the study it makes the models.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// Requests about columns, round by round, and the facts of all shards put together.
    pub facts: Vec<(Vec<Request>, Vec<Fact>)>,
    /// How each design looks over all shards, in the order in which they were asked about.
    pub surveys: Vec<SurveyAnswer>,
}

impl Learned {
    /// Takes in what was answered, if it is of that kind.
    pub(crate) fn learn(&mut self, question: &Question, answers: &Answers) -> Result<()> {
        match question {
            Question::Describe(describe) => {
                let (mut facts, _) = answers.clone().sum::<Describe>(describe)?;
                for fact in &mut facts {
                    // A value of somebody's row, which only an error message wants.
                    if let Fact::Column(column) = fact {
                        column.first_word = None;
                    }
                }
                self.facts.push((describe.requests.clone(), facts));
            }
            Question::Survey(survey) => {
                self.surveys.push(answers.clone().sum::<Survey>(survey)?.0);
            }
            _ => {}
        }
        Ok(())
    }
}

/// What may be asked of a site at this point of a study.
#[derive(Debug)]
pub enum Derived {
    /// Columns or designs are still asked about: these very questions.
    Open(Vec<Question>),
    /// The models are settled: questions about them.
    Settled(Settled),
}

/// Models that are settled.
#[derive(Debug)]
pub struct Settled {
    models: Vec<(Arc<Model>, Share)>,
    /// The scales of priors under which they are compared too.
    scales: Vec<f64>,
    /// Whether parts of the one model are models too.
    select: bool,
    /// Whether sums over shards are all that is needed of them.
    sums: bool,
}

/// What this study asks next of so many shards, given what was learned, and with these scales of priors beside
/// its own.
pub(crate) fn derive(
    outline: &Outline,
    learned: &Learned,
    scales: &[f64],
    shards: usize,
) -> Result<Derived> {
    let study = &outline.study;
    let mut rounds = learned.facts.iter();
    let mut open = None;
    let mut ask = |requests: &[Request]| match rounds.next() {
        Some((asked, facts)) if asked == requests => {
            let describe = Describe { requests: asked.clone(), weights: None };
            let sound = describe.accept(facts).and_then(|()| describe.check());
            sound.map_err(|fault| differs(&format!("the facts in it are not sound: {fault}")))?;
            Ok(vec![facts.clone()])
        }
        Some(_) => Err(differs("the facts in it are not those that the study asks for")),
        None => {
            open = Some(requests.to_vec());
            Err(differs("facts are missing"))
        }
    };
    let agreed = settle::agreed_by(study, &outline.terms, &mut ask);
    if let Some(requests) = open {
        let describe = Describe { requests, weights: study.data.weights.clone() };
        return Ok(Derived::Open(vec![describe.into()]));
    }
    let written = settle::settle(study, &agreed?)?;
    if rounds.next().is_some() {
        return Err(differs("there are more facts in it than the study asks for"));
    }
    let round = settle::design_round(study, &written, shards);
    if learned.surveys.is_empty() {
        return Ok(Derived::Open(round.questions));
    }
    if learned.surveys.len() != round.designs.len() {
        return Err(differs("it surveys other designs than the study has"));
    }
    for (question, survey) in round.questions.iter().zip(&learned.surveys) {
        let Question::Survey(question) = question else { continue };
        let sound = question.accept(survey);
        sound.map_err(|fault| differs(&format!("a survey in it is not sound: {fault}")))?;
    }
    let surveys = round.designs.into_iter().zip(learned.surveys.iter().cloned());
    let surveys: Vec<SurveyedDesign> =
        surveys.map(|(design, whole)| SurveyedDesign::of_sum(design, whole)).collect();
    let mut models = Vec::new();
    for written in written {
        let (model, share, _) = settle::settled_by(study, written, &surveys, shards)?;
        models.push((model, share));
    }
    let (select, sums) = (study.select.is_some(), study.evidence.combine == Combine::Exact);
    Ok(Derived::Settled(Settled { models, scales: scales.to_vec(), select, sums }))
}

fn differs(message: &str) -> Error {
    Error::input(format!("{message}: nothing is answered"))
}

impl Derived {
    /// Whether these questions are what the study asks; the reason if not.
    pub(crate) fn allows(&self, questions: &[Question]) -> std::result::Result<(), String> {
        match self {
            Derived::Open(expected) if expected == questions => Ok(()),
            Derived::Open(_) => {
                Err("it does not ask what the study asks at this point".to_string())
            }
            Derived::Settled(settled) => questions.iter().try_for_each(|q| settled.allows(q)),
        }
    }
}

impl Settled {
    fn allows(&self, question: &Question) -> std::result::Result<(), String> {
        match question {
            Question::Describe(_) | Question::Survey(_) => {
                Err(format!("it asks `{}` of models that are settled", question.kind()))
            }
            // Parts of a model are looked for after it is settled.
            Question::Locate(_) if !self.select => {
                Err(format!("it asks `{}` of models that are settled", question.kind()))
            }
            Question::Statistics(asked) => {
                let gaussian = self.models.iter().map(|(model, _)| model);
                let known = statistics_of(gaussian.filter(|model| model.is_gaussian()));
                let same = known.is_some_and(|(known, _)| known == *asked);
                same.then_some(()).ok_or_else(|| other("the columns of its statistics"))
            }
            Question::Explore(_) if !self.select => {
                Err("it explores a space of models, and the study has none".into())
            }
            Question::Fit(_) | Question::Augment(_) if self.sums && !self.select => {
                Err(format!("it asks `{}`, which combine = \"exact\" never does", question.kind()))
            }
            _ => {
                for model in question.models() {
                    self.knows(model)?;
                }
                question.points().iter().try_for_each(|points| self.shares(points))
            }
        }
    }

    /// Whether a model is one of the study's, with its own priors or scaled ones, or with twice the nodes.
    fn knows(&self, model: &Model) -> std::result::Result<(), String> {
        let scaled = |known: &Model| {
            let nodes = || known.effects().is_some() && known.with_twice_the_nodes() == *model;
            let scales = || self.scales.iter().any(|f| known.with_prior_scale(*f) == *model);
            known == model || scales() || nodes()
        };
        let part = |known: &Model| self.select && is_part(known, model);
        if self.models.iter().any(|(known, _)| scaled(known) || part(known)) {
            return Ok(());
        }
        let name = crate::error::clip(&model.name);
        Err(other(&format!("the design or the priors of the model `{name}`")))
    }

    fn shares(&self, points: &Points) -> std::result::Result<(), String> {
        let same = self.models.iter().any(|(_, share)| *share == points.share);
        same.then_some(()).ok_or_else(|| other("the site's share of the prior"))
    }
}

fn other(what: &str) -> String {
    format!("{what} in it is not what the study makes of itself")
}

/// Whether a model has some of another's columns and parameters, and nothing else.
fn is_part(whole: &Model, model: &Model) -> bool {
    let (Some(all), Some(own)) = (whole.regression(), model.regression()) else { return false };
    let Regression { family, design, active, kernel } = own;
    let same = all.family == *family && all.kernel == *kernel && all.design == *design;
    same && active.iter().all(|j| all.active.contains(j))
        && model.parameters.iter().all(|p| whole.parameters.contains(p))
}
