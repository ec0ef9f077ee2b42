//! Models of one's own: parameters and priors are known here, the likelihood only to the shards.

use super::Plan;
use crate::combine::{Extras, Setting};
use crate::compare::PartitionReport;
use crate::engine::{Engine, Threads, Traffic};
use crate::model::{Foreign, Joint, Model, Share};
use crate::question::SurveyAnswer;
use crate::shard::Shard;
use crate::study::{EvidenceOptions, Study};
use crate::target::Target;
use crate::{Error, Result};
use std::sync::Arc;

impl Plan<Threads> {
    /// Adds a model of one's own ([`Model::foreign`]) to those of the study, as likely as they are on average.
    /// `likelihood` makes its log likelihood of a shard's rows: its free parameters are those of the model.
    pub fn add_model<T: Target + Send + 'static>(
        &mut self,
        model: Model,
        mut likelihood: impl FnMut(&Shard) -> Result<T>,
    ) -> Result<()> {
        let surveys = self.settings.first().map_or(Vec::new(), |s| s.surveys.clone());
        for (s, shard) in self.engine.shards_mut().iter_mut().enumerate() {
            let target = Arc::new(likelihood(shard).map_err(|e| e.for_shard(s))?);
            // As the study counts them, with their weights, so that shares by rows add up.
            let rows = surveys.get(s).map_or(shard.data().rows() as f64, |s| s.observations);
            shard.learn(model.likelihood_name(), Foreign::new(target, rows)?);
        }
        self.add_known(model)
    }
}

impl<E: Engine> Plan<E> {
    /// Compares models that the shards of an engine know, without any study or table. Shares of priors are
    /// equal.
    pub fn of_models(engine: E, models: Vec<Model>, options: EvidenceOptions) -> Result<Plan<E>> {
        let shards = engine.shards();
        if shards == 0 {
            return Err(Error::input("there are no shards to ask; give at least one"));
        }
        let by = "given".into();
        let partition = PartitionReport {
            shards,
            rows: 0,
            dropped: 0,
            by,
            seed: 0,
            hash: String::new(),
            names: None,
        };
        let mut plan = Plan {
            study: Study { evidence: options, ..Study::default() },
            files: Vec::new(),
            partition,
            settings: Vec::new(),
            formulas: Vec::new(),
            terms: Vec::new(),
            warnings: Vec::new(),
            engine,
            traffic: Traffic::default(),
            extras: Extras::default(),
        };
        models.into_iter().try_for_each(|model| plan.add_known(model))?;
        if plan.settings.is_empty() {
            return Err(Error::input("there is no model to compare; give at least one"));
        }
        Ok(plan)
    }

    /// Adds a model that the shards know by its name, as likely as the others are on average. Nothing is asked
    /// of them to settle it.
    pub fn add_known(&mut self, model: Model) -> Result<()> {
        if self.settings.iter().any(|s| s.model.name == model.name) {
            let message = format!("there is a model `{}` already; give another name", model.name);
            return Err(Error::input(message));
        }
        let shards = self.engine.shards();
        let known = self.settings.first();
        let rows = |survey: &SurveyAnswer| SurveyAnswer {
            rows: survey.rows,
            ..SurveyAnswer::of_rows(survey.observations)
        };
        self.formulas.push(model.likelihood_name().to_string());
        self.settings.push(Setting {
            share: known.map_or(Share::Equal { shards }, |setting| setting.share),
            shards,
            surveys: known.map_or(Vec::new(), |s| s.surveys.iter().map(rows).collect()),
            options: self.study.evidence.clone(),
            located: None,
            pool: None,
            warnings: Vec::new(),
            extras: self.extras.clone(),
            joint: Joint::default(),
            model: Arc::new(model),
        });
        Ok(())
    }

    /// The models' prior probabilities.
    pub(super) fn probabilities(&self) -> Vec<f64> {
        let mut all = self.study.probabilities();
        let (own, total) = (all.len(), self.settings.len());
        if own < total {
            all.iter_mut().for_each(|p| *p *= own as f64 / total as f64);
            all.resize(total, 1.0 / total as f64);
        }
        all
    }
}
