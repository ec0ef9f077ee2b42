//! A shard: rows, and the likelihoods of models on them, of which questions are answered.

mod likelihoods;

pub use likelihoods::{Budget, KEPT_LIKELIHOODS};

use crate::data::ShardData;
use crate::error::clip;
use crate::halt::Halt;
use crate::model::{Body, Foreign, LogLikelihood, Model, Share, Subposterior};
use crate::{Error, Place, Result};
use likelihoods::Likelihoods;
use std::collections::HashMap;
use std::sync::Arc;

/// One shard of the data.
#[derive(Debug)]
pub struct Shard {
    index: usize,
    data: ShardData,
    likelihoods: Likelihoods,
    /// Likelihoods that are not ours, by the names under which models know them.
    foreign: HashMap<String, Arc<Foreign>>,
    /// By which its work may be called off.
    halt: Option<Halt>,
}

impl Shard {
    /// A shard of these rows.
    pub fn new(index: usize, rows: impl Into<ShardData>) -> Shard {
        let (likelihoods, foreign) = Default::default();
        Shard { index, data: rows.into(), likelihoods, foreign, halt: None }
    }

    /// A shard whose rows nobody sees: it knows likelihoods that it was taught, and nothing else.
    pub fn without_rows(index: usize) -> Shard {
        Shard::new(index, crate::data::Table::default())
    }

    /// Shares the memory for likelihoods with other shards.
    pub fn with_budget(self, budget: Arc<Budget>) -> Shard {
        Shard { likelihoods: Likelihoods::within(budget), ..self }
    }

    /// Answers until this is called; then what it is at ends with [`Error::Stopped`].
    pub fn until(self, halt: Option<Halt>) -> Shard {
        Shard { halt, ..self }
    }

    /// Teaches it a likelihood of its rows that is not ours: models know it by this name.
    pub fn learn(&mut self, name: &str, likelihood: Foreign) {
        self.foreign.insert(name.to_string(), Arc::new(likelihood));
    }

    /// Its number, counted from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// A column of numbers of its rows: one that a formula of the study names, since no others are read.
    pub fn numbers(&self, column: &str) -> Result<Vec<f64>> {
        let table = self.data.table()?;
        let numbers = table.column(column)?.numbers().map(|values| values.into_owned());
        numbers.ok_or_else(|| {
            let place = Place::default().column(column);
            Error::input_at(place, "the column does not hold numbers")
        })
    }

    /// Its rows.
    pub fn data(&self) -> &ShardData {
        &self.data
    }

    /// The likelihood of a model on these rows.
    fn likelihood(&self, model: &Model) -> Result<Arc<dyn LogLikelihood>> {
        let Body::Foreign { likelihood } = &model.body else {
            if model.effects().is_some() {
                return Ok(self.likelihoods.of_groups(model, &self.data)?);
            }
            return Ok(self.likelihoods.of(model, &self.data)?);
        };
        let known = self.foreign.get(likelihood).cloned();
        let known = known.ok_or_else(|| {
            let message = "this shard has no likelihood of that name; teach it with Shard::learn";
            Error::input(format!("`{}`: {message}", clip(likelihood)))
        })?;
        if known.dim() == model.dim() {
            return Ok(known);
        }
        Err(Error::input(format!(
            "`{}`: the likelihood has {} parameters, and the model has {}",
            clip(likelihood),
            known.dim(),
            model.dim()
        )))
    }

    /// What comes of a subposterior.
    pub(crate) fn on_target<T>(
        &self,
        model: &Model,
        share: Share,
        work: impl FnOnce(Subposterior) -> Result<T>,
    ) -> Result<T> {
        let called_off = || self.halt.as_ref().is_some_and(Halt::is_called);
        if called_off() {
            return Err(Error::Stopped);
        }
        let likelihood = self.likelihood(model)?;
        let w = share.of(likelihood.observations());
        let (priors, start) = (model.free_priors(), model.start());
        let target = Subposterior::new(likelihood.clone(), priors, w, start);
        let result = work(target.until(self.halt.clone()));
        if called_off() {
            return Err(Error::Stopped);
        }
        match likelihood.take_failure() {
            Some(error) => Err(error),
            None => result,
        }
    }
}
