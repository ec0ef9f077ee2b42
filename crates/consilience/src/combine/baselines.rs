//! What is done where evidences are not combined but voted on, for comparison.
//!
//! On every shard the models are ranked by p̃(y_s) = Z_s/α_s. *Majority vote* gives a model the share
//! of shards that it wins; *Borda count* gives K points to the best of K models on a shard and 1 to the
//! worst, and takes the mean. *Upsampling* has every shard stand for all: its likelihood is raised to
//! the power S, ṕ(y_s) = ∫ p(y_s|θ)^S p(θ) dθ, and the mean or the median over the shards is taken.

use super::{Evidence, Fits, Setting, combine};
use crate::engine::{Engine, Observer, Remembering, Session, Traffic};
use crate::estimate::Estimate;
use crate::fit::{FitOrder, Summary};
use crate::math::log_mean_exp;
use crate::model::Share;
use crate::question::{Fit, Question};
use crate::study::{Combine, Local};
use crate::{Error, Result, Warning};
use serde::Serialize;

/// One way to choose, and what it says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Baseline {
    /// Its name.
    pub method: String,
    /// What the scores are: `share of shards`, `mean points` or `log evidence`.
    pub score: &'static str,
    /// Per model, in the study's order; the greatest is chosen.
    pub models: Vec<Estimate>,
    /// The number of the model it chooses, from 0; the first of equals.
    pub chooses: usize,
    /// Warnings of level `unreliable` or `caution`, with the model's number.
    pub warnings: Vec<(usize, Warning)>,
}

/// Votes, upsampled evidences, and the combinations beside them.
pub(crate) fn baselines(
    engine: &dyn Engine,
    observer: &dyn Observer,
    so_far: Traffic,
    settings: &[Setting],
) -> Result<(Vec<Baseline>, Traffic)> {
    let engine = Remembering::new(engine);
    let session = Session::resume(&engine, observer, so_far);
    let settings: Vec<Setting> = settings.iter().map(with_fits).collect();
    let mut questions: Vec<Question> = settings.iter().map(Setting::fit).collect();
    questions.extend(settings.iter().map(upsampled));
    let fits = session.ask(&questions)?.into_iter().map(|a| Fits::of(a).map(|f| f.summaries));
    let mut fits: Vec<Vec<Summary>> = fits.collect::<Result<_>>()?;
    let upsampled = fits.split_off(settings.len());

    let mut all = votes(&settings, &fits)?;
    all.extend(of_upsampled(&upsampled));
    let mut kinds = vec![Combine::Normal, Combine::CmcIs];
    if settings.iter().all(|s| s.model.is_binary() && s.model.has_normal_priors()) {
        kinds.push(Combine::Augmented);
    }
    kinds.push(Combine::Exact);
    for kind in kinds {
        let run: Vec<Setting> = settings.iter().map(|s| with_combine(s, kind)).collect();
        all.push(Baseline::of_evidences(kind, combine(&session, &run)?));
    }
    Ok((all, session.traffic()))
}

/// The same setting with shards that compute their own evidences.
fn with_fits(setting: &Setting) -> Setting {
    let mut setting = setting.clone();
    if setting.options.local == Local::None {
        setting.options.local = Local::Auto;
    }
    setting
}

fn with_combine(setting: &Setting, combine: Combine) -> Setting {
    let mut setting = setting.clone();
    setting.options.combine = combine;
    // What a combination can do without is left out, and Gibbs samplers are told by their own name.
    if matches!(combine, Combine::Exact | Combine::Augmented) {
        setting.options.local = Local::Auto;
    }
    setting
}

/// A shard's evidence as if all shards were like it.
fn upsampled(setting: &Setting) -> Question {
    let method = match setting.options.local {
        // Data augmentation has no likelihood to a power.
        Local::GibbsChib | Local::GibbsBridge => Local::Auto,
        other => other,
    };
    let fit = Fit {
        model: setting.model.clone(),
        share: Share::Equal { shards: 1 },
        order: FitOrder { method, power: setting.shards as f64, ..setting.order() },
        draws: false,
    };
    fit.into()
}

/// Majority vote and Borda count.
fn votes(settings: &[Setting], fits: &[Vec<Summary>]) -> Result<Vec<Baseline>> {
    let (models, shards) = (settings.len(), settings[0].shards);
    let (mut majority, mut borda) = (vec![0.0; models], vec![0.0; models]);
    for s in 0..shards {
        let mut scores = Vec::new();
        for (setting, fits) in settings.iter().zip(fits) {
            let share = setting.shares().map(|shares| shares[s]);
            let log_alpha = share.and_then(|w| setting.model.log_alpha(w)).ok_or_else(|| {
                let message = "the prior's share has no finite integral, so that the shards' evidences cannot be ranked; use priors with lighter tails, or fewer shards";
                Error::input(message).for_model(&setting.model.name)
            })?;
            scores.push(fits[s].log_z.value - log_alpha);
        }
        for (k, mine) in scores.iter().enumerate() {
            let below = scores.iter().filter(|other| *other < mine).count() as f64;
            let equal = scores.iter().filter(|other| *other == mine).count() as f64;
            // Equals share the points of the places that they take together.
            borda[k] += below + 0.5 * (equal + 1.0);
            if below + equal == models as f64 {
                majority[k] += 1.0 / equal;
            }
        }
    }
    let mean = |sums: Vec<f64>| -> Vec<Estimate> {
        sums.into_iter().map(|v| Estimate { value: v / shards as f64, se: None }).collect()
    };
    Ok(vec![
        Baseline::new("majority vote", "share of shards", mean(majority)),
        Baseline::new("Borda count", "mean points", mean(borda)),
    ])
}

/// Mean (in logs) and median of the shards' upsampled evidences.
fn of_upsampled(fits: &[Vec<Summary>]) -> Vec<Baseline> {
    let values =
        |summaries: &[Summary]| -> Vec<f64> { summaries.iter().map(|s| s.log_z.value).collect() };
    let mean = |summaries: &Vec<Summary>| log_mean_exp(&values(summaries));
    let median = |summaries: &Vec<Summary>| {
        let mut sorted = values(summaries);
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        0.5 * (sorted[(n - 1) / 2] + sorted[n / 2])
    };
    let estimate = |value: f64| Estimate { value, se: None };
    vec![
        Baseline::new(
            "upsampled mean",
            "log evidence",
            fits.iter().map(mean).map(estimate).collect(),
        ),
        Baseline::new(
            "upsampled median",
            "log evidence",
            fits.iter().map(median).map(estimate).collect(),
        ),
    ]
}

impl Baseline {
    fn new(method: &str, score: &'static str, models: Vec<Estimate>) -> Baseline {
        let chooses = (0..models.len())
            .rev()
            .max_by(|&a, &b| models[a].value.total_cmp(&models[b].value))
            .expect("a study has at least one model");
        Baseline { method: method.into(), score, models, chooses, warnings: Vec::new() }
    }

    fn of_evidences(kind: Combine, evidences: Vec<Evidence>) -> Baseline {
        let models = evidences.iter().map(|e| e.log_z).collect();
        let mut out = Baseline::new(kind.name(), "log evidence", models);
        for (i, evidence) in evidences.into_iter().enumerate() {
            let serious = evidence.warnings.into_iter().filter(|w| w.level > crate::Level::Note);
            out.warnings.extend(serious.map(|w| (i, w)));
        }
        out
    }
}
