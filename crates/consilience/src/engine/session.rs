//! One run's conversation with an engine: answers checked, rounds and bytes counted.

use super::Engine;
use crate::Result;
use crate::data::read::Event;
use crate::question::{Answer, Question};
use serde::Serialize;
use std::cell::Cell;

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
}

/// Somebody who watches the rounds, to draw a progress bar.
pub trait Observer: Sync {
    /// A round begins.
    fn round(&self, round: &Round);
    /// One answer of it came.
    fn answered(&self);
    /// Something about the reading of data.
    fn reading(&self, _: &Event) {}
}

/// An observer that does not care.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn round(&self, _: &Round) {}
    fn answered(&self) {}
}

/// A conversation with the shards of an engine.
pub struct Session<'a> {
    engine: &'a dyn Engine,
    observer: &'a dyn Observer,
    traffic: Cell<Traffic>,
}

impl<'a> Session<'a> {
    /// Begins a conversation.
    pub fn new(engine: &'a dyn Engine, observer: &'a dyn Observer) -> Session<'a> {
        Session { engine, observer, traffic: Cell::default() }
    }

    /// Goes on with a conversation in which this much has passed before.
    pub fn resume(
        engine: &'a dyn Engine,
        observer: &'a dyn Observer,
        so_far: Traffic,
    ) -> Session<'a> {
        Session { engine, observer, traffic: Cell::new(so_far) }
    }

    /// How many shards there are.
    pub fn shards(&self) -> usize {
        self.engine.shards()
    }

    /// What has passed so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic.get()
    }

    /// One round: every question to every shard. Each answer is checked against its question.
    pub fn ask(&self, questions: &[Question]) -> Result<Vec<Vec<Answer>>> {
        let mut traffic = self.traffic.get();
        traffic.rounds += 1;
        self.observer.round(&Round {
            number: traffic.rounds,
            kind: questions.first().map_or("", Question::kind),
            answers: (questions.len() * self.shards()) as u64,
        });
        let answers = self.engine.ask(questions, &|| self.observer.answered())?;
        for (question, answers) in questions.iter().zip(&answers) {
            traffic.bytes_sent += size(question) * self.shards() as u64;
            for (shard, answer) in answers.iter().enumerate() {
                traffic.bytes_received += size(answer);
                answer.check(question).map_err(|error| error.for_shard(shard))?;
            }
        }
        self.traffic.set(traffic);
        Ok(answers)
    }
}

/// The length of a message as it would travel.
fn size(message: &impl Serialize) -> u64 {
    postcard::experimental::serialized_size(message).map_or(0, |bytes| bytes as u64)
}
