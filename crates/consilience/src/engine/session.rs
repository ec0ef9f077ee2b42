//! One run's conversation with an engine: answers checked, rounds and bytes counted.

use super::Engine;
use crate::data::read::Event;
use crate::question::{Answers, Listed, Question};
use crate::{Error, Result};
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;

/// What passed between the centre and the shards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Rounds of questions.
    pub rounds: u64,
    /// Bytes of all questions, counted once for every shard they went to.
    pub bytes_sent: u64,
    /// Bytes of all answers.
    pub bytes_received: u64,
}

/// A round that begins.
#[derive(Debug, Clone)]
pub struct Round {
    /// Its number, counted from 1.
    pub number: u64,
    /// What is asked.
    pub kind: &'static str,
    /// How many answers it will take.
    pub answers: u64,
    /// How far the models are.
    pub progress: Progress,
}

/// How far the models of a run are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// How many models are compared; 0 before they are settled.
    pub models: usize,
    /// Of how many the evidence is known.
    pub done: usize,
    /// About how many rounds are left, this one counted.
    pub rounds_left: u64,
}

/// Somebody who watches a run, to draw a progress bar, and who can stop it: a run that is told to break ends
/// with [`Error::Stopped`] as soon as the shards have finished what they are at.
pub trait Observer: Sync {
    /// A round begins.
    fn round(&self, _: &Round) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    /// One answer of it came.
    fn answered(&self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    /// The evidence of a model is known.
    fn done(&self, _model: &str) {}
    /// Something about the reading of data.
    fn reading(&self, _: &Event) {}
    /// Something that was found on the way, in words.
    fn found(&self, _: &str) {}
}

/// An observer that does not care.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {}

/// A conversation with the shards of an engine.
pub struct Session<'a> {
    engine: &'a dyn Engine,
    observer: &'a dyn Observer,
    traffic: Cell<Traffic>,
    progress: Cell<Progress>,
    /// Questions that are dear, and what shards said to them, where it is not to ask twice.
    known: Option<RefCell<Vec<(Question, Answers)>>>,
}

impl<'a> Session<'a> {
    /// Begins a conversation.
    pub fn new(engine: &'a dyn Engine, observer: &'a dyn Observer) -> Session<'a> {
        Session::resume(engine, observer, Traffic::default())
    }

    /// Goes on with a conversation in which this much has passed before.
    pub fn resume(
        engine: &'a dyn Engine,
        observer: &'a dyn Observer,
        so_far: Traffic,
    ) -> Session<'a> {
        let (traffic, progress) = (Cell::new(so_far), Cell::default());
        Session { engine, observer, traffic, progress, known: None }
    }

    /// The same, but the shards' own fits are asked for once: several combinations then share them.
    pub fn remembering(self) -> Session<'a> {
        Session { known: Some(RefCell::default()), ..self }
    }

    /// How many shards there are.
    pub fn shards(&self) -> usize {
        self.engine.shards()
    }

    /// What has passed so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic.get()
    }

    /// Tells how far the models are, for whoever watches.
    pub(crate) fn progress(&self, progress: Progress) {
        self.progress.set(progress);
    }

    /// Tells that the evidence of a model is known.
    pub(crate) fn done(&self, model: &str) {
        self.observer.done(model);
    }

    /// Tells what was found on the way, for whoever watches.
    pub(crate) fn found(&self, text: &str) {
        self.observer.found(text);
    }

    /// One round: every question to every shard. Each answer is checked against its question.
    pub fn ask(&self, questions: &[Question]) -> Result<Vec<Answers>> {
        self.ask_as(questions, true)
    }

    /// The same; single answers to `Weigh` may be of no use.
    pub(crate) fn ask_as(&self, questions: &[Question], singly: bool) -> Result<Vec<Answers>> {
        let Some(known) = &self.known else { return self.put(questions, singly) };
        let recall = |question: &Question| {
            let known = known.borrow();
            known.iter().find(|(asked, _)| asked == question).map(|(_, answers)| answers.clone())
        };
        let mut all: Vec<Option<Answers>> = questions.iter().map(recall).collect();
        let open = questions.iter().zip(&all).filter(|(_, answers)| answers.is_none());
        let open: Vec<Question> = open.map(|(question, _)| question.clone()).collect();
        // A round without a question is none.
        let new = if open.is_empty() { Vec::new() } else { self.put(&open, singly)? };
        for (slot, (question, answers)) in
            all.iter_mut().filter(|slot| slot.is_none()).zip(open.into_iter().zip(new))
        {
            if matches!(question, Question::Fit(_)) {
                known.borrow_mut().push((question, answers.clone()));
            }
            *slot = Some(answers);
        }
        Ok(all.into_iter().flatten().collect())
    }

    /// Puts questions to the shards.
    fn put(&self, questions: &[Question], singly: bool) -> Result<Vec<Answers>> {
        let mut traffic = self.traffic.get();
        traffic.rounds += 1;
        let begins = self.observer.round(&Round {
            number: traffic.rounds,
            kind: questions.first().map_or("", Question::kind),
            answers: (questions.len() * self.shards()) as u64,
            progress: self.progress.get(),
        });
        if begins.is_break() {
            return Err(Error::Stopped);
        }
        let answered = || self.observer.answered();
        let answers = match singly {
            true => self.engine.ask(questions, &answered)?,
            false => self.engine.ask_for_sums(questions, &answered)?,
        };
        for (question, answers) in questions.iter().zip(&answers) {
            traffic.bytes_sent += size(question) * self.shards() as u64;
            // Every shard's part of a sum is as long as the sum.
            let (received, times) = match answers {
                Answers::Each(each) => (each.as_slice(), 1),
                Answers::Sum(sum) => (std::slice::from_ref(sum), self.shards() as u64),
            };
            for (shard, answer) in received.iter().enumerate() {
                traffic.bytes_received += size(answer) * times;
                answer.check(question).map_err(|error| match answers {
                    Answers::Each(_) => error.for_shard(shard),
                    Answers::Sum(_) => error,
                })?;
            }
        }
        self.traffic.set(traffic);
        Ok(answers)
    }

    /// One round of a single question.
    pub fn ask_one<K: Listed>(&self, question: &K) -> Result<Answers> {
        let answers = self.ask(&[question.clone().into()])?.pop();
        answers.ok_or_else(|| Error::numeric("an engine left a question without an answer"))
    }
}

/// The length of a message as it would travel.
fn size(message: &impl Serialize) -> u64 {
    postcard::experimental::serialized_size(message).map_or(0, |bytes| bytes as u64)
}
