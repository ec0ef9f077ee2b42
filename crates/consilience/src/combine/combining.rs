//! All models' combinations side by side: they share their rounds, and do without what is only there to be shown.

use super::{Combination, Evidence, Next, Setting, refuse_ties};
use super::{augmented, cmc, exact, mixture, normal, rank, statistics, ties};
use crate::engine::{Progress, Session};
use crate::question::{Answers, Fit, Kind, Question};
use crate::study::{Combine, Local};
use crate::{Error, Level, Result, Warning};
use statistics::PooledStatistics;
use std::sync::Arc;

/// Computes the evidence of every model.
pub fn combine(session: &Session, settings: &[Setting]) -> Result<Vec<Evidence>> {
    ties::refuse_incomparable(settings)?;
    let mut combining = Combining::new(session);
    combining.add(settings)?;
    while combining.round()? {}
    Ok(combining.finish())
}

/// Combinations of several models that share their rounds: in each, all models that are not done ask
/// together. More models can join between rounds.
pub struct Combining<'a> {
    session: &'a Session<'a>,
    models: Vec<Talk>,
}

/// One model's part in the conversation.
struct Talk {
    setting: Setting,
    /// Where its statistics are, if they are enough.
    statistics: Option<(Arc<PooledStatistics>, usize)>,
    machine: Box<dyn Combination>,
    /// What it asks in this round.
    asked: Vec<Question>,
    answers: Vec<Answers>,
    /// Why the shards' own evidences are left out.
    left_out: Option<Warning>,
    evidence: Option<Evidence>,
}

impl<'a> Combining<'a> {
    /// Over this session.
    pub fn new(session: &'a Session<'a>) -> Combining<'a> {
        Combining { session, models: Vec::new() }
    }

    /// Takes in more models, which are counted from 0 in the order in which they came.
    pub fn add(&mut self, settings: &[Setting]) -> Result<()> {
        let statistics = statistics::gather(self.session, settings)?;
        let mut numbers = 0..;
        for setting in settings {
            refuse_ties(setting)?;
            let all = statistics.as_ref().filter(|_| statistics::suits(setting));
            let statistics =
                all.map(|all| (all.clone(), numbers.next().expect("numbers do not end")));
            self.models.push(Talk::new(setting.clone(), statistics));
        }
        Ok(())
    }

    /// One round of all models that are not done; `false` once there is none.
    pub fn round(&mut self) -> Result<bool> {
        for talk in self.models.iter_mut().filter(|talk| talk.evidence.is_none()) {
            talk.go_on(self.session)?;
        }
        loop {
            let (questions, asking) = self.questions();
            if questions.is_empty() {
                return Ok(false);
            }
            let open = || self.models.iter().filter(|talk| talk.evidence.is_none());
            self.session.progress(Progress {
                models: self.models.len(),
                done: self.models.len() - open().count(),
                rounds_left: open().map(|talk| talk.machine.rounds_left()).max().unwrap_or(1),
            });
            let singly = self.models.iter().any(|talk| talk.setting.extras.leave_one_out);
            match self.session.ask_as(&questions, singly) {
                Ok(all) => {
                    self.tell(all, &asking);
                    return Ok(true);
                }
                Err(error) => self.do_without(error)?,
            }
        }
    }

    /// What all models ask in this round, and who asked, in which question; parts of one stand in the models' order.
    fn questions(&self) -> (Vec<Question>, Vec<(usize, usize)>) {
        let (mut questions, mut asking): (Vec<Question>, _) = (Vec::new(), Vec::new());
        for (i, talk) in self.models.iter().enumerate() {
            for question in &talk.asked {
                // Questions of one kind become one, so that a pass over the rows serves many models.
                let joined = questions.iter_mut().position(|other| other.join(question));
                let number = joined.unwrap_or(questions.len());
                if joined.is_none() {
                    questions.push(question.clone());
                }
                asking.push((i, number));
            }
        }
        (questions, asking)
    }

    /// Gives everybody the answers to its questions.
    fn tell(&mut self, mut all: Vec<Answers>, asking: &[(usize, usize)]) {
        let mut parts = vec![0; all.len()];
        for &(i, number) in asking {
            let alone = asking.iter().filter(|(_, asked)| *asked == number).count() == 1;
            let own = match alone {
                true => std::mem::replace(&mut all[number], Answers::Each(Vec::new())),
                false => all[number].part(parts[number]),
            };
            parts[number] += 1;
            self.models[i].answers.push(own);
        }
    }

    /// Goes on without the shards' own evidences where a shard has none and nothing rests on them; otherwise fails with
    /// what to do about it. Evidences of some models beside none of others would not be worth fitting all of these once more.
    fn do_without(&mut self, error: Error) -> Result<()> {
        let fits = |talk: &Talk| talk.asked.iter().any(|question| question.kind() == Fit::NAME);
        let spared = |talk: &Talk| talk.setting.can_do_without_fits() && fits(talk);
        if !matches!(error, Error::Numeric { shard: Some(_), .. }) {
            return Err(error);
        }
        if !self.models.iter().any(spared) {
            let own = self.models.iter().filter(|talk| talk.asked.iter().any(is_of_one_shard));
            return Err(advised(error, own.map(|talk| &talk.setting)));
        }
        let warning = fit_failed(&error, self.models.iter().map(|talk| &talk.setting));
        for talk in self.models.iter_mut().filter(|talk| spared(talk)) {
            let mut setting = talk.setting.clone();
            setting.options.local = Local::None;
            *talk = Talk::new(setting, talk.statistics.take());
            talk.left_out = Some(warning.clone());
            talk.go_on(self.session)?;
        }
        Ok(())
    }

    /// The evidence of the model of this number, once it is known.
    pub fn evidence(&self, number: usize) -> Option<&Evidence> {
        self.models.get(number)?.evidence.as_ref()
    }

    /// The evidences of all models that are done, in their order.
    pub fn finish(self) -> Vec<Evidence> {
        self.models.into_iter().filter_map(|talk| talk.evidence).collect()
    }
}

impl Talk {
    fn new(setting: Setting, statistics: Option<(Arc<PooledStatistics>, usize)>) -> Talk {
        let own = setting.clone();
        let machine: Box<dyn Combination> = match (setting.options.combine, &statistics) {
            (Combine::Normal | Combine::NormalUncorrected, _) => {
                Box::new(normal::NormalCombination::new(own))
            }
            (Combine::CmcIs, _) => Box::new(cmc::CmcIs::new(own)),
            (Combine::Augmented, _) => Box::new(augmented::Augmented::new(own)),
            (_, Some((all, number))) => {
                Box::new(statistics::Pooled::new(own, all.clone(), *number))
            }
            _ if mixture::suits(&setting) => Box::new(mixture::GMixture::new(own)),
            _ => Box::new(exact::Exact::new(own)),
        };
        let (asked, answers) = (Vec::new(), Vec::new());
        Talk { setting, statistics, machine, asked, answers, left_out: None, evidence: None }
    }

    /// Takes the answers of the last round, and knows what to ask in the next, or the evidence.
    fn go_on(&mut self, session: &Session) -> Result<()> {
        let model = &self.setting.model;
        let answers = std::mem::take(&mut self.answers);
        self.asked.clear();
        match self.machine.next(answers).map_err(|e| e.for_model(&model.name))? {
            Next::Ask(own) => self.asked = own,
            Next::Done(evidence) => {
                let mut evidence = rank::noted(*evidence, &self.setting);
                evidence.warnings.extend(self.left_out.take());
                self.evidence = Some(evidence.checked(model)?);
                session.done(&model.name);
            }
        }
        Ok(())
    }
}

/// Whether a question is about the shards' own posteriors.
fn is_of_one_shard(question: &Question) -> bool {
    matches!(question, Question::Fit(_) | Question::Augment(_))
}

/// The shard whose own evidence this error is about, and how many rows it has for how many parameters, as far as known.
fn thin<'a>(
    error: &Error,
    mut settings: impl Iterator<Item = &'a Setting>,
) -> (Option<usize>, String) {
    let Error::Numeric { shard: Some(shard), model, .. } = error else {
        return (None, String::new());
    };
    let named = |s: &&Setting| model.as_ref().is_none_or(|name| *name == s.model.name);
    let size = settings.find(named).and_then(|setting| {
        let survey = setting.surveys.get(*shard).filter(|_| setting.surveys.len() > 1)?;
        Some((survey.observations, setting.model.dim()))
    });
    let told = size.map(|(rows, d)| format!("it has {rows} rows for {d} parameters; "));
    (Some(*shard), told.unwrap_or_default())
}

/// The error with what to do about a shard that has no evidence of its own.
pub(crate) fn advised<'a>(
    mut error: Error,
    settings: impl Iterator<Item = &'a Setting> + Clone,
) -> Error {
    let (shard, size) = thin(&error, settings.clone());
    let asked = settings.clone().next().is_some();
    if let (Error::Numeric { message, .. }, Some(_), true) = (&mut error, shard, asked) {
        *message += &format!(
            "; {size}use fewer shards, or combine = \"exact\" with local = \"none\", which needs no shard's own evidence"
        );
    }
    error
}

/// Says that a shard has no evidence of its own, where the result does not rest on it.
fn fit_failed<'a>(error: &Error, settings: impl Iterator<Item = &'a Setting>) -> Warning {
    let (shard, size) = thin(error, settings);
    let message = format!(
        "the shards' own evidences are left out, which the log evidence does not need; {error}"
    );
    let advice = format!("{size}use fewer shards, or local = \"none\" to go without them");
    let warning = Warning::new(Level::Caution, "shard-fit-failed", message, advice);
    Warning { shard, ..warning }
}
