//! A shard: rows that answer questions and nothing else.

use crate::data::{Moments, Recipe, ShardData, describe};
use crate::fit::{augment, fit};
use crate::math::fingerprint;
use crate::model::{Centred, Likelihood, Model, Subposterior, chunk_rows, over_chunks};
use crate::question::{Answer, FitOrder, Question, Share, Summary, Survey};
use crate::sample::draws::write_draws;
use crate::target::Target;
use crate::{Error, Place, Result};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
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
    /// What they may take, together with those of other shards.
    budget: Arc<Budget>,
    /// Where the draws of chains are kept, if they are.
    draws: Option<PathBuf>,
}

impl Shard {
    /// A shard of these rows.
    pub fn new(index: usize, rows: impl Into<ShardData>) -> Shard {
        let (likelihoods, budget) = (Mutex::default(), Arc::default());
        Shard { index, data: rows.into(), likelihoods, budget, draws: None }
    }

    /// Shares the memory for likelihoods with other shards.
    pub fn with_budget(self, budget: Arc<Budget>) -> Shard {
        Shard { budget, ..self }
    }

    /// Keeps the draws of every chain as a Parquet file in this folder, which must be there.
    pub fn keep_draws(&mut self, folder: &Path) {
        self.draws = Some(folder.to_path_buf());
    }

    /// Its number, counted from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its rows.
    pub fn data(&self) -> &ShardData {
        &self.data
    }

    /// Answers a question. Errors name the shard and the model.
    pub fn answer(&self, question: &Question) -> Result<Answer> {
        self.try_answer(question).map_err(|error| {
            let error = error.for_shard(self.index);
            match question.model() {
                Some(model) => error.for_model(&model.name),
                None => error,
            }
        })
    }

    fn try_answer(&self, question: &Question) -> Result<Answer> {
        Ok(match question {
            Question::Describe { requests, weights } => {
                Answer::Description(describe(&self.data, weights.as_deref(), requests)?)
            }
            Question::Statistics { recipe } => self.statistics(recipe)?,
            Question::Survey { model, units } => Answer::Survey(self.survey(model, *units)?),
            Question::Fit { model, share, order } => {
                Answer::Summary(Box::new(self.fit(model, *share, order)?))
            }
            Question::Augment { model, share, order, conditionals } => {
                let answer = self.on_target(model, *share, |target| {
                    augment(model, &target, order, *conditionals, self.index)
                });
                Answer::Augmentation(Box::new(answer?))
            }
            Question::Expand { model, share, thetas } => {
                fits(model, thetas.cols())?;
                self.on_target(model, *share, |target| {
                    let at = (0..thetas.rows()).map(|k| target.expand(thetas.row(k)));
                    Ok(Answer::Expansions(at.collect()))
                })?
            }
            Question::Weigh { model, share, thetas } => {
                fits(model, thetas.cols())?;
                self.on_target(model, *share, |target| {
                    let mut out = vec![0.0; thetas.rows()];
                    target.log_densities(thetas, &mut out);
                    Ok(Answer::Weights(out))
                })?
            }
        })
    }

    /// The likelihood of a model on these rows, kept from its first use on if there is room.
    fn likelihood(&self, model: &Model) -> Result<Arc<Likelihood>> {
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

    /// What comes of a subposterior.
    fn on_target<T>(
        &self,
        model: &Model,
        share: Share,
        work: impl FnOnce(Subposterior) -> Result<T>,
    ) -> Result<T> {
        let likelihood = self.likelihood(model)?;
        let w = share.of(likelihood.observations);
        let (priors, start) = (model.free_priors(), model.start());
        let result = work(Subposterior::new(likelihood.clone(), priors, w, start));
        match likelihood.take_failure() {
            Some(error) => Err(error),
            None => result,
        }
    }

    fn statistics(&self, recipe: &Recipe) -> Result<Answer> {
        let batches = self.data.batches(chunk_rows(recipe.columns.len()));
        let parts = over_chunks(batches.len(), |k| {
            let design = recipe.design(&*self.data.batch(batches[k].clone())?)?;
            let weights = design.weights.unwrap_or_else(|| vec![1.0; design.response.len()]);
            let columns = design.columns.iter().chain([&design.response]);
            let columns: Vec<&[f64]> = columns.map(Vec::as_slice).collect();
            Ok(Centred::of_columns(&columns, &weights))
        });
        let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(Answer::Statistics(Centred::merge(parts.iter())))
    }

    fn survey(&self, model: &Model, units: bool) -> Result<Survey> {
        let likelihood = self.likelihood(model)?;
        let gram = likelihood.gram();
        if let Some(error) = likelihood.take_failure() {
            return Err(error);
        }
        // Squares overflow long before the numbers do.
        let unfit = model.free().zip(gram.diagonal()).find(|(_, square)| !square.is_finite());
        if let Some((parameter, _)) = unfit {
            return Err(too_large(&parameter.name, model));
        }
        let (columns, offset) = if units { self.spreads(model)? } else { Default::default() };
        Ok(Survey {
            observations: likelihood.observations,
            nonzero: likelihood.nonzero.clone(),
            gram,
            means: columns.iter().map(|m| m.mean).collect(),
            squares: columns.iter().map(|m| m.m2).collect(),
            offset: offset.mean,
        })
    }

    /// The moments of every column of a design, and those of the offsets.
    fn spreads(&self, model: &Model) -> Result<(Vec<Moments>, Moments)> {
        let recipe = &model.recipe;
        let batches = self.data.batches(chunk_rows(recipe.columns.len()));
        let parts = over_chunks(batches.len(), |k| {
            let design = recipe.design(&*self.data.batch(batches[k].clone())?)?;
            let columns = design.columns.iter().chain(&design.offset);
            let of = |column: &Vec<f64>| Moments::of(column, design.weights.as_deref());
            Ok(columns.map(of).collect::<Vec<Moments>>())
        });
        let mut sums = vec![Moments::default(); recipe.columns.len() + 1];
        for part in parts {
            sums.iter_mut().zip(part?).for_each(|(sum, more)| *sum = sum.merge(more));
        }
        let names = recipe.names().into_iter().chain(["offset"]);
        for (sum, name) in sums.iter_mut().zip(names) {
            if sum.min == sum.max {
                // Without the rounding error of a mean: a column that does not vary has no unit.
                (sum.mean, sum.m2) = (sum.min, 0.0);
            }
            if !(sum.mean.is_finite() && sum.m2.is_finite()) {
                return Err(too_large(name, model));
            }
        }
        let offset = sums.pop().expect("there is one more than columns");
        Ok((sums, offset))
    }

    fn fit(&self, model: &Model, share: Share, order: &FitOrder) -> Result<Summary> {
        let fitted = self.on_target(model, share, |target| {
            fit(model, &target.with_power(order.power), order, self.index)
        })?;
        if let (Some(folder), Some(sample)) = (&self.draws, &fitted.sample) {
            let names: Vec<String> = model.free().map(|p| p.name.clone()).collect();
            write_draws(&folder.join(draws_file(&model.name, self.index)), &names, sample)?;
        }
        Ok(fitted.summary)
    }
}

/// `a-slope-per-carrier-shard-7.parquet`; where a model's name is not fit for a file's, a number that
/// belongs to it keeps two such names apart.
pub(crate) fn draws_file(model: &str, shard: usize) -> String {
    format!("{}-shard-{shard}.parquet", file_stem(model))
}

/// A model's name as the beginning of a file's.
pub(crate) fn file_stem(model: &str) -> String {
    let fit = |c: char| if c.is_alphanumeric() { c } else { '-' };
    let slug: String = model.chars().take(60).map(fit).collect();
    let mark = if slug == model.replace(' ', "-") {
        String::new()
    } else {
        format!("-{:08x}", fingerprint(model) as u32)
    };
    format!("{slug}{mark}")
}

fn too_large(column: &str, model: &Model) -> Error {
    let message = format!(
        "model `{}`: the values are too large to compute with; write the column in other units, or as scale(x)",
        model.name
    );
    Error::input_at(Place::default().column(column), message)
}

fn fits(model: &Model, columns: usize) -> Result<()> {
    if columns == model.dim() {
        return Ok(());
    }
    Err(Error::numeric(format!(
        "a point with {columns} coordinates was asked about, and the model has {}",
        model.dim()
    )))
}
