//! What a run can deliver beside the comparison itself.

use super::Plan;
use crate::combine::{Evidence, Extras, PosteriorDraws, Setting, consensus_draws};
use crate::draft::{file_stem, make_folder};
use crate::engine::Engine;
use crate::model::Model;
use crate::sample::draws::write_draws;
use crate::study::{Combine, Local, Study};
use crate::{Error, Result};
use std::sync::Arc;

impl Extras {
    /// Whether a study with this many shards can grant them.
    pub fn check(&self, study: &Study, shards: usize) -> Result<()> {
        let options = &study.evidence;
        let wrong = |message: String| Err(Error::input(message));
        if study.select.is_some() && *self != Extras::default() {
            return wrong("--prior-scale, --leave-one-out, --posterior, --shard-details and --keep-draws go with [[model]], and this study has [select]; name the models that they are about in a study of their own".into());
        }
        let runs_chains = match options.local {
            Local::Auto => options.combine.takes_normals(),
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
        if self.posterior {
            has_posterior(study, self.draws.is_some())?;
        }
        Ok(())
    }
}

impl<E: Engine> Plan<E> {
    /// Has the run deliver these beside the comparison itself, and nothing else. An error where the study
    /// cannot.
    pub fn deliver(&mut self, extras: &Extras) -> Result<()> {
        extras.check(&self.study, self.engine.shards())?;
        for factor in other_scales(extras) {
            for setting in &self.settings {
                scalable(&setting.model, factor)?;
            }
        }
        self.settings.iter_mut().for_each(|setting| setting.extras = extras.clone());
        self.extras = extras.clone();
        Ok(())
    }

    /// Every model under every scale of priors but its own, scale by scale.
    pub(super) fn scaled_settings(&self) -> Vec<Setting> {
        let at_scale = |setting: &Setting, factor: f64| {
            let mut scaled = Setting {
                model: Arc::new(setting.model.with_prior_scale(factor)),
                joint: setting.joint.scaled(factor),
                extras: Default::default(),
                ..setting.clone()
            };
            // Nobody sees what shards make of other priors; `exact` does not need it.
            if scaled.options.combine == Combine::Exact {
                scaled.options.local = Local::None;
            }
            scaled
        };
        let scaled = |factor: f64| -> Vec<Setting> {
            self.settings.iter().map(|setting| at_scale(setting, factor)).collect()
        };
        other_scales(&self.extras).into_iter().flat_map(scaled).collect()
    }

    /// The evidences of [`Plan::scaled_settings`] with their scales.
    pub(super) fn by_scale(&self, evidences: Vec<Evidence>) -> Vec<(f64, Vec<Evidence>)> {
        let mut evidences = evidences.into_iter();
        let models = self.settings.len();
        let with = |f| (f, evidences.by_ref().take(models).collect());
        other_scales(&self.extras).into_iter().map(with).collect()
    }

    /// Writes the draws of the shards' chains, if that was asked for, and makes draws of the posteriors of them
    /// where the combination has none of its own: consensus Monte Carlo.
    pub(super) fn use_shard_draws(&self, evidences: &mut [Evidence]) -> Result<()> {
        let Some(folder) = &self.extras.draws else { return Ok(()) };
        make_folder(folder)?;
        for (setting, evidence) in self.settings.iter().zip(evidences) {
            let model = &setting.model;
            let names: Vec<String> = model.free().map(|p| p.name.clone()).collect();
            for (s, sample) in evidence.shard_draws.iter().enumerate() {
                if !sample.chains.is_empty() {
                    write_draws(&folder.join(draws_file(&model.name, s)), &names, sample)?;
                }
            }
            if self.extras.posterior && evidence.draws.is_none() {
                let draws = consensus(evidence).map_err(|error| error.for_model(&model.name))?;
                evidence.draws = Some(draws);
            }
        }
        Ok(())
    }
}

/// Whether a run of this study has draws of the posterior; `normal` only has them if chains' are kept.
fn has_posterior(study: &Study, kept: bool) -> Result<()> {
    let message = match study.evidence.combine {
        combine if combine.takes_normals() && !(kept && study.evidence.local.has_chains()) => {
            format!(
                "combine = \"{combine}\" makes draws of the posterior from those of chains on every shard; give --keep-draws DIR (for a run directory: when it is made) and, for example, --local nuts+warp3, or use combine = \"exact\""
            )
        }
        Combine::Augmented => {
            "combine = \"augmented\" has no draws of the whole posterior; use combine = \"exact\""
                .into()
        }
        _ => return Ok(()),
    };
    Err(Error::input(message))
}

/// `a-slope-per-carrier-shard-7.parquet`.
fn draws_file(model: &str, shard: usize) -> String {
    format!("{}-shard-{shard}.parquet", file_stem(model))
}

/// The scales of priors that are asked for beside the study's own.
fn other_scales(extras: &Extras) -> Vec<f64> {
    let mut scales = extras.prior_scales.clone();
    scales.retain(|f| *f != 1.0);
    scales.sort_by(f64::total_cmp);
    scales.dedup();
    scales
}

fn consensus(evidence: &Evidence) -> Result<PosteriorDraws> {
    let summaries = evidence.summaries.as_deref().unwrap_or_default();
    let without = evidence.shard_draws.iter().position(|sample| sample.chains.is_empty());
    if let Some(s) = without {
        let message = format!(
            "by {} it has no chain whose draws could make draws of the posterior; use --local nuts+warp3, or combine = \"exact\"",
            summaries[s].method
        );
        return Err(Error::numeric(message).for_shard(s));
    }
    Ok(PosteriorDraws::Equal(consensus_draws(summaries, &evidence.shard_draws)?))
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
