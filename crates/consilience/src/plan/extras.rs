//! What a run can deliver beside the comparison itself.

use super::Plan;
use crate::combine::{Evidence, PosteriorDraws, Setting, consensus_draws};
use crate::data::draws::read_draws;
use crate::engine::Engine;
use crate::model::Model;
use crate::shard::draws_file;
use crate::study::{Combine, Local};
use crate::{Error, Result};
use std::path::Path;
use std::sync::Arc;

impl Plan {
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
        self.draws = Some(folder.to_path_buf());
        Ok(())
    }
}

impl<E: Engine> Plan<E> {
    /// Has the run report what each shard pulls: the evidences without it. An error where there is
    /// nothing to leave out, or nothing to learn it from.
    pub fn leave_one_out(&mut self) -> Result<()> {
        if self.study.evidence.combine != Combine::Exact {
            let message = format!(
                "leaving shards out is for combine = \"exact\", not for \"{}\": what a shard pulls would be lost in that method's own error",
                self.study.evidence.combine
            );
            return Err(Error::input(message));
        }
        if self.partition.shards < 2 {
            let message = "there is only one shard: without it there are no data; leaving shards out needs two or more";
            return Err(Error::input(message));
        }
        self.settings.iter_mut().for_each(|setting| setting.extras.leave_one_out = true);
        Ok(())
    }

    /// Has the run keep draws of every model's posterior given all the data. `normal` makes them of
    /// the draws of the shards' chains, so [`Plan::keep_draws`] must come first.
    pub fn keep_posterior(&mut self) -> Result<()> {
        let message = match self.study.evidence.combine {
            Combine::Normal if self.draws.is_none() || !self.study.evidence.local.has_chains() => {
                "combine = \"normal\" makes draws of the posterior from those of chains on every shard; give --keep-draws DIR and, for example, --local nuts+warp3, or use combine = \"exact\""
            }
            Combine::Augmented => {
                "combine = \"augmented\" has no draws of the whole posterior; use combine = \"exact\""
            }
            _ => "",
        };
        if !message.is_empty() {
            return Err(Error::input(message));
        }
        self.settings.iter_mut().for_each(|setting| setting.extras.posterior = true);
        Ok(())
    }

    /// Has the run compare the models also with the scale of every coefficient's prior multiplied
    /// by each of these factors (see [`Model::with_prior_scale`]). They must be positive; 1, the
    /// study's own priors, is always among them.
    pub fn scale_priors(&mut self, factors: &[f64]) -> Result<()> {
        if self.draws.is_some() {
            let message = "the draws of the shards' chains are kept for one choice of priors; do not scale priors in the same run";
            return Err(Error::input(message));
        }
        let wrong = factors.iter().find(|f| !(f.is_finite() && **f > 0.0));
        if let Some(factor) = wrong {
            let message =
                format!("a prior's scale cannot be multiplied by {factor}; give positive numbers");
            return Err(Error::input(message));
        }
        let mut scales = factors.to_vec();
        scales.retain(|f| *f != 1.0);
        scales.sort_by(f64::total_cmp);
        scales.dedup();
        for &factor in &scales {
            for setting in &self.settings {
                scalable(&setting.model, factor)?;
            }
        }
        self.prior_scales = Some(scales);
        Ok(())
    }

    /// Every model under every scale of priors but its own, scale by scale.
    pub(super) fn scaled_settings(&self) -> Vec<Setting> {
        let scaled = |factor: &f64| {
            self.settings
                .iter()
                .map(|setting| Setting {
                    model: Arc::new(setting.model.with_prior_scale(*factor)),
                    extras: Default::default(),
                    ..setting.clone()
                })
                .collect::<Vec<_>>()
        };
        self.prior_scales.iter().flatten().flat_map(scaled).collect()
    }

    /// The evidences of [`Plan::scaled_settings`] with their scales.
    pub(super) fn by_scale(&self, evidences: Vec<Evidence>) -> Vec<(f64, Vec<Evidence>)> {
        let mut evidences = evidences.into_iter();
        let models = self.settings.len();
        self.prior_scales
            .iter()
            .flatten()
            .map(|f| (*f, evidences.by_ref().take(models).collect()))
            .collect()
    }

    /// Consensus Monte Carlo: the posteriors' draws from those that the shards' chains left.
    pub(super) fn add_consensus_draws(&self, evidences: &mut [Evidence]) -> Result<()> {
        let Some(folder) = &self.draws else { return Ok(()) };
        for (setting, evidence) in self.settings.iter().zip(evidences) {
            if !setting.extras.posterior || evidence.draws.is_some() {
                continue;
            }
            let draws = shard_draws(folder, setting, evidence)
                .map_err(|error| error.for_model(&setting.model.name))?;
            evidence.draws = Some(draws);
        }
        Ok(())
    }
}

fn shard_draws(folder: &Path, setting: &Setting, evidence: &Evidence) -> Result<PosteriorDraws> {
    let summaries = evidence.summaries.as_deref().unwrap_or_default();
    let names: Vec<String> = setting.model.free().map(|p| p.name.clone()).collect();
    let mut samples = Vec::new();
    for (s, summary) in summaries.iter().enumerate() {
        // A file of that name may be there from an earlier run.
        if summary.diagnostics.chains.is_none() {
            let message = format!(
                "by {} it has no chain whose draws could make draws of the posterior; use --local nuts+warp3, or combine = \"exact\"",
                summary.method
            );
            return Err(Error::numeric(message).for_shard(s));
        }
        samples.push(read_draws(&folder.join(draws_file(&setting.model.name, s)), &names)?);
    }
    Ok(PosteriorDraws::Equal(consensus_draws(summaries, &samples)?))
}

/// Scales whose squares are no numbers are no priors.
fn scalable(model: &Model, factor: f64) -> Result<()> {
    let scaled = model.with_prior_scale(factor);
    let mut both = model.parameters.iter().zip(&scaled.parameters);
    let lost = |scale: f64| !(1e-150..=1e150).contains(&scale);
    let Some((before, _)) = both.find(|(_, after)| after.prior.scale().is_some_and(lost)) else {
        return Ok(());
    };
    let message = format!(
        "the prior {} of `{}` cannot be made {factor:e} times as wide; give factors nearer to 1",
        before.prior, before.name
    );
    Err(Error::input(message))
}
