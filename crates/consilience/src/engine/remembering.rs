//! An engine that does not ask twice.

use super::{Answered, Engine};
use crate::Result;
use crate::question::{Answers, Question};
use std::sync::Mutex;

/// Carries questions to another engine, and keeps the answers to those that are dear: the shards' own
/// fits. Several combinations of one study then share them.
pub struct Remembering<'a> {
    engine: &'a dyn Engine,
    known: Mutex<Vec<(Question, Answers)>>,
}

impl<'a> Remembering<'a> {
    /// On top of this engine.
    pub fn new(engine: &'a dyn Engine) -> Remembering<'a> {
        Remembering { engine, known: Mutex::default() }
    }

    fn recall(&self, question: &Question) -> Option<Answers> {
        let known = self.known.lock().expect("no thread panics while it holds the lock");
        known.iter().find(|(asked, _)| asked == question).map(|(_, answers)| answers.clone())
    }
}

impl Engine for Remembering<'_> {
    fn shards(&self) -> usize {
        self.engine.shards()
    }

    fn ask(&self, questions: &[Question], answered: &Answered) -> Result<Vec<Answers>> {
        let mut all: Vec<Option<Answers>> = questions.iter().map(|q| self.recall(q)).collect();
        let unknown: Vec<Question> = questions
            .iter()
            .zip(&all)
            .filter(|(_, a)| a.is_none())
            .map(|(q, _)| q.clone())
            .collect();
        // A round without a question is none.
        let new = match unknown.is_empty() {
            true => Vec::new(),
            false => self.engine.ask(&unknown, answered)?,
        };
        let mut new = new.into_iter();
        for (question, slot) in questions.iter().zip(&mut all) {
            if slot.is_none() {
                let answers = new.next().expect("an engine answers every question");
                if matches!(question, Question::Fit(_)) {
                    let mut known = self.known.lock().expect("no thread panics while it holds it");
                    known.push((question.clone(), answers.clone()));
                }
                *slot = Some(answers);
            }
        }
        Ok(all.into_iter().flatten().collect())
    }
}
