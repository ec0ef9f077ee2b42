//! What a run can deliver beside the comparison itself.

use super::Plan;
use crate::combine::{Evidence, PosteriorDraws, Setting, consensus_draws};
use crate::engine::Engine;
use crate::model::Model;
use crate::sample::draws::read_draws;
use crate::shard::draws_file;
use crate::study::{Combine, Local, Study};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a run is to deliver beside the comparison itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wishes {
    /// The comparison with the scale of every coefficient's prior times each of these factors.
    pub prior_scales: Vec<f64>,
    /// What each shard pulls: the evidences without it.
    pub leave_one_out: bool,
    /// The draws of every shard's chains, as Parquet files in this folder.
    pub draws: Option<PathBuf>,
}

impl Wishes {
    /// Whether a study with this many shards can grant them.
    pub fn check(&self, study: &Study, shards: usize) -> Result<()> {
        let options = &study.evidence;
        let wrong = |message: String| Err(Error::input(message));
        let runs_chains = match options.local {
            Local::Auto => options.combine == Combine::Normal,
            local => local.has_chains(),
        };
        if self.draws.is_some() && !runs_chains {
            return wrong(format!(
                "there are no draws to keep: local = \"{}\" with combine = \"{}\" runs no chains; use for example --local nuts+warp3",
                options.local, options.combine
            ));
        }
        if self.draws.is_some() && !self.prior_scales.is_empty() {
            return wrong("the draws of the shards' chains are kept for one choice of priors; do not scale priors in the same run".into());
        }
        if let Some(factor) = self.prior_scales.iter().find(|f| !(f.is_finite() && **f > 0.0)) {
            return wrong(format!(
                "a prior's scale cannot be multiplied by {factor}; give positive numbers"
            ));
        }
        if self.leave_one_out && options.combine != Combine::Exact {
            return wrong(format!(
                "leaving shards out is for combine = \"exact\", not for \"{}\": what a shard pulls would be lost in that method's own error",
                options.combine
            ));
        }
        if self.leave_one_out && shards < 2 {
            return wrong("there is only one shard: without it there are no data; leaving shards out needs two or more".into());
        }
        Ok(())
    }
}

impl Plan {
    /// Has the run keep the draws of every shard's chains as Parquet files in this folder, which must
    /// be there. An error where the study runs no chains.
    pub fn keep_draws(&mut self, folder: &Path) -> Result<()> {
        self.grant(&Wishes { draws: Some(folder.to_path_buf()), ..Wishes::default() })?;
        self.engine.keep_draws(folder);
        Ok(())
    }
}

impl<E: Engine> Plan<E> {
    /// Has the run report what each shard pulls: the evidences without it. An error where there is
    /// nothing to leave out, or nothing to learn it from.
    pub fn leave_one_out(&mut self) -> Result<()> {
        self.grant(&Wishes { leave_one_out: true, ..Wishes::default() })
    }

    /// Has the run compare the models also with the scale of every coefficient's prior multiplied
    /// by each of these factors (see [`Model::with_prior_scale`]). They must be positive; 1, the
    /// study's own priors, is always among them.
    pub fn scale_priors(&mut self, factors: &[f64]) -> Result<()> {
        let (prior_scales, draws) = (factors.to_vec(), self.draws.clone());
        self.grant(&Wishes { prior_scales, draws, ..Wishes::default() })
    }

    /// Has the run deliver these, beside what it delivers already. That draws are kept is for the
    /// engine to see to.
    pub(crate) fn grant(&mut self, wishes: &Wishes) -> Result<()> {
        wishes.check(&self.study, self.engine.shards())?;
        if !wishes.prior_scales.is_empty() {
            let mut scales = wishes.prior_scales.clone();
            scales.retain(|f| *f != 1.0);
            scales.sort_by(f64::total_cmp);
            scales.dedup();
            for &factor in &scales {
                for setting in &self.settings {
                    scalable(&setting.model, factor)?;
                }
            }
            self.prior_scales = Some(scales);
        }
        for setting in &mut self.settings {
            setting.extras.leave_one_out |= wishes.leave_one_out;
        }
        if wishes.draws.is_some() {
            self.draws.clone_from(&wishes.draws);
        }
        Ok(())
    }

    /// Has the run keep draws of every model's posterior given all the data. `normal` makes them of
    /// the draws of the shards' chains, so [`Plan::keep_draws`] must come first.
    pub fn keep_posterior(&mut self) -> Result<()> {
        has_posterior(&self.study, self.draws.is_some())?;
        self.settings.iter_mut().for_each(|setting| setting.extras.posterior = true);
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

/// Whether a run of this study has draws of the posterior; `normal` only has them if chains' are kept.
pub(crate) fn has_posterior(study: &Study, kept: bool) -> Result<()> {
    let message = match study.evidence.combine {
        Combine::Normal if !kept || !study.evidence.local.has_chains() => {
            "combine = \"normal\" makes draws of the posterior from those of chains on every shard; give --keep-draws DIR (for a run directory: when it is made) and, for example, --local nuts+warp3, or use combine = \"exact\""
        }
        Combine::Augmented => {
            "combine = \"augmented\" has no draws of the whole posterior; use combine = \"exact\""
        }
        _ => return Ok(()),
    };
    Err(Error::input(message))
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
