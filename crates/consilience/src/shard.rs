//! A shard: rows that answer questions and nothing else.

use crate::data::draws::write_draws;
use crate::data::{Recipe, Table, describe};
use crate::fit::{augment, fit};
use crate::math::{Triangle, fingerprint};
use crate::model::{Likelihood, Model, Subposterior};
use crate::question::{Answer, FitOrder, Question, Share, Summary, Survey};
use crate::target::Target;
use crate::{Error, Place, Result};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// How much memory the likelihoods of all shards may take that are kept for the next question. One that
/// finds no room is built anew for every question: that costs time and changes no bit of an answer.
#[derive(Debug)]
pub struct Budget {
    left: AtomicUsize,
}

/// Enough for a few million rows of a few dozen columns.
pub const KEPT_LIKELIHOODS: usize = 1 << 30;

impl Default for Budget {
    fn default() -> Budget {
        Budget::new(KEPT_LIKELIHOODS)
    }
}

impl Budget {
    /// So many bytes.
    pub fn new(bytes: usize) -> Budget {
        Budget { left: AtomicUsize::new(bytes) }
    }

    /// Takes so many bytes, if they are there.
    fn take(&self, bytes: usize) -> bool {
        let less = |left: usize| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

/// One shard of the data.
#[derive(Debug)]
pub struct Shard {
    index: usize,
    table: Table,
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
    pub fn new(index: usize, table: Table) -> Shard {
        let (likelihoods, budget) = (Mutex::default(), Arc::default());
        Shard { index, table, likelihoods, budget, draws: None }
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
    pub fn table(&self) -> &Table {
        &self.table
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
                Answer::Description(describe(&self.table, weights.as_deref(), requests)?)
            }
            Question::Statistics { recipe } => self.statistics(recipe)?,
            Question::Survey { model } => Answer::Survey(self.survey(model)?),
            Question::Fit { model, share, order } => {
                Answer::Summary(Box::new(self.fit(model, *share, order)?))
            }
            Question::Augment { model, share, order, conditionals } => {
                let (target, w) = self.local_target(model, *share)?;
                let answer = augment(model, &target, w, order, *conditionals, self.index)?;
                Answer::Augmentation(Box::new(answer))
            }
            Question::Expand { model, share, theta } => {
                let target = self.target(model, *share)?;
                fits(model, theta.len())?;
                Answer::Expansion(target.expand(theta))
            }
            Question::Weigh { model, share, thetas } => {
                let target = self.target(model, *share)?;
                fits(model, thetas.cols())?;
                let mut out = vec![0.0; thetas.rows()];
                target.log_densities(thetas, &mut out);
                Answer::Weights(out)
            }
        })
    }

    /// The likelihood of a model on these rows, kept from its first use on if there is room.
    fn likelihood(&self, model: &Model) -> Result<Arc<Likelihood>> {
        let key = model.likelihood_hash();
        let mut built = self.likelihoods.lock().expect("no thread panics while it holds the lock");
        if let Some(likelihood) = built.get(&key) {
            return Ok(likelihood.clone());
        }
        let likelihood = Arc::new(Likelihood::of(model, &self.table)?);
        if self.budget.take(likelihood.memory()) {
            built.insert(key, likelihood.clone());
        }
        Ok(likelihood)
    }

    /// The subposterior, as a part of the whole.
    fn target(&self, model: &Model, share: Share) -> Result<Subposterior> {
        let likelihood = self.likelihood(model)?;
        let w = share.of(likelihood.observations);
        Ok(Subposterior::new(likelihood, model.free_priors(), w, 1.0, model.start()))
    }

    /// The subposterior to be looked at by itself, and its share: priors with a kink are rounded as wide as
    /// the share makes them.
    fn local_target(&self, model: &Model, share: Share) -> Result<(Subposterior, f64)> {
        let likelihood = self.likelihood(model)?;
        let w = share.of(likelihood.observations);
        let priors = model.free_priors();
        Ok((Subposterior::new(likelihood, priors, w, 1.0 / w, model.start()), w))
    }

    fn statistics(&self, recipe: &Recipe) -> Result<Answer> {
        let design = recipe.design(&self.table)?;
        let rows = design.response.len();
        let weights = design.weights.unwrap_or_else(|| vec![1.0; rows]);
        let scale = |column: Vec<f64>| -> Vec<f64> {
            column.iter().zip(&weights).map(|(v, w)| v * w.sqrt()).collect()
        };
        let columns: Vec<Vec<f64>> =
            design.columns.into_iter().chain([design.response]).map(scale).collect();
        let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let factor = Triangle::of_columns(&slices, rows).into_root();
        Ok(Answer::Statistics { observations: weights.iter().sum(), factor })
    }

    fn survey(&self, model: &Model) -> Result<Survey> {
        let likelihood = self.likelihood(model)?;
        let gram = likelihood.gram();
        // Squares overflow long before the numbers do.
        let unfit = model.free().zip(gram.diagonal()).find(|(_, square)| !square.is_finite());
        if let Some((parameter, _)) = unfit {
            let message = format!(
                "model `{}`: the values are too large to compute with; write the column in other units, or as scale(x)",
                model.name
            );
            return Err(Error::input_at(Place::default().column(&parameter.name), message));
        }
        Ok(Survey {
            observations: likelihood.observations,
            nonzero: likelihood.nonzero.clone(),
            gram,
        })
    }

    fn fit(&self, model: &Model, share: Share, order: &FitOrder) -> Result<Summary> {
        let (target, w) = self.local_target(model, share)?;
        let target = target.with_power(order.power);
        let fitted = fit(model, &target, w, order, self.index)?;
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

fn fits(model: &Model, columns: usize) -> Result<()> {
    if columns == model.dim() {
        return Ok(());
    }
    Err(Error::numeric(format!(
        "a point with {columns} coordinates was asked about, and the model has {}",
        model.dim()
    )))
}
