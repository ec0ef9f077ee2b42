//! From a study to something that can run: data read and split, schema agreed, models settled.

mod gather;
mod outline;
mod settle;

pub use gather::Gathered;
pub(crate) use gather::{Complete, read_complete};
pub use outline::Outline;

use crate::combine::{Setting, combine};
use crate::compare::{Comparison, PartitionReport};
use crate::data::Formula;
use crate::engine::{Engine, Observer, Session, Threads, Traffic};
use crate::shard::Shard;
use crate::study::{Combine, Local, Study};
use crate::{Error, Result, Warning};
use std::path::{Path, PathBuf};

/// A study whose shards have agreed on its models: ready to run.
#[derive(Debug)]
pub struct Plan<E = Threads> {
    /// The study.
    pub study: Study,
    /// The data files.
    pub files: Vec<PathBuf>,
    /// How the rows are split.
    pub partition: PartitionReport,
    /// One per model, in the study's order.
    pub settings: Vec<Setting>,
    /// The models' formulas as they were read.
    pub formulas: Vec<String>,
    /// What the user should know before anything has run.
    pub warnings: Vec<Warning>,
    engine: E,
    traffic: Traffic,
}

impl Plan {
    /// Reads, checks and splits a study's data and settles its models, on this many threads.
    pub fn new(study: Study, threads: usize, observer: &dyn Observer) -> Result<Plan> {
        let mut gathered = Gathered::new(study)?;
        let tables = std::mem::take(&mut gathered.shards);
        let shards = tables.into_iter().enumerate().map(|(index, table)| Shard::new(index, table));
        let engine = Threads::new(shards.collect(), threads)?;
        Plan::on(gathered, engine, observer)
    }

    /// Keeps the draws of every shard's chains as Parquet files in this folder, which must be there.
    /// An error where the study runs no chains.
    pub fn keep_draws(&mut self, folder: &Path) -> Result<()> {
        let options = &self.study.evidence;
        let chains = match options.local {
            Local::Auto => options.combine == Combine::Normal,
            local => local.has_chains(),
        };
        if !chains {
            let message = format!(
                "there are no draws to keep: local = \"{}\" with combine = \"{}\" runs no chains; use for example --local nuts+warp3",
                options.local, options.combine
            );
            return Err(Error::input(message));
        }
        self.engine.keep_draws(folder);
        Ok(())
    }
}

impl<E: Engine> Plan<E> {
    /// Settles a study's models with the shards of an engine. Only they are asked: the rows that
    /// were gathered, if any are left in it, are not looked at.
    pub fn on(gathered: Gathered, engine: E, observer: &dyn Observer) -> Result<Plan<E>> {
        let Gathered { outline, files, partition, warnings, .. } = gathered;
        let Outline { study, formulas, terms } = outline;
        let (settings, traffic) = {
            let session = Session::new(&engine, observer);
            let models = settle::settle(&study, &terms, &session)?;
            let settings = settle::survey(&study, models, &session)?;
            (settings, session.traffic())
        };
        let formulas = formulas.iter().map(Formula::to_string).collect();
        Ok(Plan { study, files, partition, settings, formulas, warnings, engine, traffic })
    }

    /// Where the shards are.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// Computes every model's evidence and compares them.
    pub fn run(&self, observer: &dyn Observer) -> Result<Comparison> {
        self.run_on(&self.engine, observer)
    }

    /// The same on another engine that has the same shards. The result has the same bits.
    pub fn run_on(&self, engine: &dyn Engine, observer: &dyn Observer) -> Result<Comparison> {
        let session = Session::resume(engine, observer, self.traffic);
        let evidences = combine(&session, &self.settings)?;
        let probabilities: Vec<f64> = self.study.models.iter().map(|m| m.probability).collect();
        Ok(Comparison::new(
            &self.settings,
            &self.formulas,
            &probabilities,
            evidences,
            self.partition.clone(),
            self.warnings.clone(),
            session.traffic(),
        ))
    }
}
