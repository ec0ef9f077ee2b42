//! A shard: rows that answer questions and nothing else.

mod likelihoods;
mod survey;

pub use likelihoods::{Budget, KEPT_LIKELIHOODS};

use crate::data::draws::write_draws;
use crate::data::{Recipe, ShardData, describe};
use crate::fit::{augment, fit};
use crate::math::fingerprint;
use crate::model::{Centred, Model, Subposterior, chunk_rows, over_chunks};
use crate::question::{Answer, FitOrder, Question, Share, Summary};
use crate::target::Target;
use crate::{Error, Result};
use likelihoods::Likelihoods;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use survey::survey;

/// One shard of the data.
#[derive(Debug)]
pub struct Shard {
    index: usize,
    data: ShardData,
    likelihoods: Likelihoods,
    /// Where the draws of chains are kept, if they are.
    draws: Option<PathBuf>,
}

impl Shard {
    /// A shard of these rows.
    pub fn new(index: usize, rows: impl Into<ShardData>) -> Shard {
        Shard { index, data: rows.into(), likelihoods: Likelihoods::default(), draws: None }
    }

    /// Shares the memory for likelihoods with other shards.
    pub fn with_budget(self, budget: Arc<Budget>) -> Shard {
        Shard { likelihoods: Likelihoods::within(budget), ..self }
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
            Question::Survey { family, design, units } => {
                Answer::Survey(survey(&self.data, *family, design, *units)?)
            }
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

    /// What comes of a subposterior.
    fn on_target<T>(
        &self,
        model: &Model,
        share: Share,
        work: impl FnOnce(Subposterior) -> Result<T>,
    ) -> Result<T> {
        let likelihood = self.likelihoods.of(model, &self.data)?;
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

fn fits(model: &Model, columns: usize) -> Result<()> {
    if columns == model.dim() {
        return Ok(());
    }
    Err(Error::numeric(format!(
        "a point with {columns} coordinates was asked about, and the model has {}",
        model.dim()
    )))
}
