//! A shard: rows, and the likelihoods of models on them, of which questions are answered.

use crate::data::ShardData;
use crate::error::clip;
use crate::model::{Body, Foreign, Likelihood, LogLikelihood, Model, Share, Subposterior};
use crate::{Error, Place, Result};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// How much memory likelihoods may take. One that finds no room to be kept for the next question is built
/// anew for every question; of one that is too large even for that, chunks are built anew for every
/// evaluation. That costs time and changes no bit of an answer.
#[derive(Debug)]
pub struct Budget {
    /// What is left for likelihoods that are kept, of all shards together.
    left: AtomicUsize,
    /// What one question may take beside those.
    lent: usize,
}

/// Enough for a few million rows of a few dozen columns.
pub const KEPT_LIKELIHOODS: usize = 1 << 30;

impl Default for Budget {
    fn default() -> Budget {
        Budget::new(KEPT_LIKELIHOODS, usize::MAX)
    }
}

impl Budget {
    /// So many bytes for likelihoods that are kept, and so many for each question beside them.
    pub fn new(kept: usize, lent: usize) -> Budget {
        Budget { left: AtomicUsize::new(kept), lent }
    }

    /// Takes so many bytes, if they are there.
    fn take(&self, bytes: usize) -> bool {
        taken(&self.left, bytes)
    }

    fn give_back(&self, bytes: usize) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }
}

fn taken(left: &AtomicUsize, bytes: usize) -> bool {
    let less = |left: usize| left.checked_sub(bytes);
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
}

/// One shard of the data.
#[derive(Debug)]
pub struct Shard {
    index: usize,
    data: ShardData,
    /// Likelihoods built so far, by what they depend on: one study asks about a model many times,
    /// and maybe under several priors.
    likelihoods: Mutex<HashMap<u64, Arc<Likelihood>>>,
    /// Likelihoods that are not ours, by the names under which models know them.
    foreign: HashMap<String, Arc<Foreign>>,
    /// What they may take, together with those of other shards.
    budget: Arc<Budget>,
}

impl Shard {
    /// A shard of these rows.
    pub fn new(index: usize, rows: impl Into<ShardData>) -> Shard {
        let (likelihoods, budget) = (Mutex::default(), Arc::default());
        Shard { index, data: rows.into(), likelihoods, foreign: HashMap::new(), budget }
    }

    /// A shard whose rows nobody sees: it knows likelihoods that it was taught, and nothing else.
    pub fn without_rows(index: usize) -> Shard {
        Shard::new(index, crate::data::Table::default())
    }

    /// Shares the memory for likelihoods with other shards.
    pub fn with_budget(self, budget: Arc<Budget>) -> Shard {
        Shard { budget, ..self }
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

    /// The likelihood of a model on these rows, kept from its first use on if there is room.
    pub(crate) fn likelihood(&self, model: &Model) -> Result<Arc<Likelihood>> {
        let key = model.likelihood_hash();
        let known = || self.likelihoods.lock().expect("no thread panics while it holds the lock");
        if let Some(likelihood) = known().get(&key) {
            return Ok(likelihood.clone());
        }
        // Not under the lock: while this thread waits for others to build their chunks, it may take up
        // another question to this very shard.
        let most = Likelihood::most_memory(model, self.data.rows());
        if !self.budget.take(most) {
            let left = AtomicUsize::new(self.budget.lent);
            let likelihood = Likelihood::of(model, &self.data, &|bytes| taken(&left, bytes))?;
            return Ok(Arc::new(likelihood));
        }
        let used = AtomicUsize::new(0);
        let built = Likelihood::of(model, &self.data, &|bytes| {
            used.fetch_add(bytes, Ordering::Relaxed);
            true
        });
        let used = if built.is_ok() { used.into_inner() } else { 0 };
        self.budget.give_back(most.saturating_sub(used));
        let likelihood = Arc::new(built?);
        // Somebody may have built the same meanwhile.
        Ok(known().entry(key).or_insert(likelihood).clone())
    }

    /// The same of any model.
    fn any_likelihood(&self, model: &Model) -> Result<Arc<dyn LogLikelihood>> {
        let Body::Foreign { likelihood } = &model.body else { return Ok(self.likelihood(model)?) };
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
        let likelihood = self.any_likelihood(model)?;
        let w = share.of(likelihood.observations());
        let (priors, start) = (model.free_priors(), model.start());
        let result = work(Subposterior::new(likelihood.clone(), priors, w, start));
        match likelihood.take_failure() {
            Some(error) => Err(error),
            None => result,
        }
    }
}
