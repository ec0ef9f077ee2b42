//! The likelihoods that a shard keeps.

use crate::Result;
use crate::data::ShardData;
use crate::model::{Begun, Common, Groups, Likelihood, Model};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
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

/// Likelihoods built so far, by what they depend on: one study asks about a model many times, and maybe under
/// several priors.
#[derive(Debug, Default)]
pub(super) struct Likelihoods {
    /// By the design's number, and what sets the model apart from others over it.
    known: Mutex<HashMap<(usize, u64), Arc<Likelihood>>>,
    /// Those of models with effects of groups.
    groups: Mutex<HashMap<(usize, u64), Arc<Groups>>>,
    /// What the models of each design have in common.
    designs: Mutex<Vec<Arc<Common>>>,
    /// What all of it may take, together with those of other shards.
    budget: Arc<Budget>,
}

impl Likelihoods {
    /// None yet, and no more than there is room for.
    pub fn within(budget: Arc<Budget>) -> Likelihoods {
        Likelihoods { budget, ..Likelihoods::default() }
    }

    /// The likelihood of a model on these rows, kept from its first use on if there is room.
    pub fn of(&self, model: &Model, data: &ShardData) -> Result<Arc<Likelihood>> {
        let common = self.common(model, data);
        let number = common.as_ref().map_or(usize::MAX, |(number, _)| *number);
        let key = (number, model.likelihood_hash());
        let known = || self.known.lock().expect("no thread panics while it holds the lock");
        if let Some(likelihood) = known().get(&key) {
            return Ok(likelihood.clone());
        }
        // Not under the lock: while this thread waits for others to build their chunks, it may take up
        // another question to this very shard.
        let room = |bytes: usize| self.budget.take(bytes);
        let common = common.as_ref().map(|(_, common)| &**common);
        let begun = Begun::new(model, data, common.map(|common| (common, &room as _)))?;
        let most = begun.most_memory();
        if !self.budget.take(most) {
            let left = AtomicUsize::new(self.budget.lent);
            return Ok(Arc::new(begun.finish(&|bytes| taken(&left, bytes))?));
        }
        let used = AtomicUsize::new(0);
        let built = begun.finish(&|bytes| {
            used.fetch_add(bytes, Ordering::Relaxed);
            true
        });
        let used = if built.is_ok() { used.into_inner() } else { 0 };
        self.budget.give_back(most.saturating_sub(used));
        match known().entry(key) {
            Entry::Vacant(slot) => Ok(slot.insert(Arc::new(built?)).clone()),
            // Somebody has built the same meanwhile.
            Entry::Occupied(slot) => {
                self.budget.give_back(used);
                Ok(slot.get().clone())
            }
        }
    }

    /// The likelihood of a model with effects of groups, kept from its first use on.
    pub fn of_groups(&self, model: &Model, data: &ShardData) -> Result<Arc<Groups>> {
        let number = self.common(model, data).map_or(usize::MAX, |(number, _)| number);
        let key = (number, model.likelihood_hash());
        let known = || self.groups.lock().expect("no thread panics while it holds the lock");
        if let Some(likelihood) = known().get(&key) {
            return Ok(likelihood.clone());
        }
        let built = Arc::new(Groups::new(model, data)?);
        Ok(known().entry(key).or_insert(built).clone())
    }

    /// What models over this one's design have in common, and the design's number.
    fn common(&self, model: &Model, data: &ShardData) -> Option<(usize, Arc<Common>)> {
        let regression = model.regression()?;
        let mut designs = self.designs.lock().expect("no thread panics while it holds the lock");
        let known = designs.iter().position(|common| common.is_of(regression));
        let number = known.unwrap_or_else(|| {
            designs.push(Arc::new(Common::new(regression, data)));
            designs.len() - 1
        });
        Some((number, designs[number].clone()))
    }
}
