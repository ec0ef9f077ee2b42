//! Model spaces the paper's way: every shard runs reversible jump, and the centre combines what chains saw.
//!
//! With f_s = p(y_s|θ) p(θ|m)^w_s and chains that visit m in proportion to Z_s p(m)^w_s (`sample/jump`),
//!
//! ```text
//! p(m|y) ∝ ∏ₛ shareₛ(m) · ∫ ∏ₛ N(θ; μₛ, Σₛ) dθ,
//! ```
//!
//! which is Algorithm 3 without its ∏ α: that belongs to subpriors that are normalised, and these are not. Shares are
//! rough, and say nothing of a model that some shard never visited. So there is a second way: the union of what all
//! shards visited, each of its models computed as any model is.

mod fill;
mod pairs;
mod visits;

pub use fill::{submodel, subsetting};
pub use pairs::PairFactor;

use super::{Evidence, Setting};
use crate::engine::Session;
use crate::estimate::Estimate;
use crate::fit::{Exploration, ExploreOrder};
use crate::question::Explore;
use crate::sample::jump::Moves;
use crate::space::{Space, Subset};
use crate::{Error, Level, Result, Warning};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// R̂ beyond which chains have not met, and that from which on it is worth a word.
const UNRELIABLE: f64 = 1.05;

/// How visits become probabilities.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JumpMethod {
    /// The paper's Algorithm 3: shares of visits, and normals for the parameters.
    Algorithm3,
    /// The evidence of every model that some shard visited, by the study's own combination.
    #[default]
    Fill,
}

/// How a space is explored by reversible jump.
#[derive(Debug, Clone, PartialEq)]
pub struct JumpOptions {
    /// How visits become probabilities.
    pub method: JumpMethod,
    /// How long the chains are, and of how many models they tell.
    pub order: ExploreOrder,
    /// The most models whose evidence is computed ([`JumpMethod::Fill`]).
    pub most: usize,
    /// Pairs of models whose Bayes factors are wanted.
    pub pairs: Vec<(Subset, Subset)>,
}

impl Default for JumpOptions {
    fn default() -> JumpOptions {
        let order = ExploreOrder { draws: 10_000, warmup: 2_000, chains: 4, keep: 200, seed: 1 };
        JumpOptions { method: JumpMethod::default(), order, most: 200, pairs: Vec::new() }
    }
}

/// A model and what is known of it.
#[derive(Debug, Clone, Serialize)]
pub struct JumpModel {
    /// Which.
    pub model: Subset,
    /// By the labels of its terms.
    pub name: String,
    /// log p(m|y) up to what all models share. By evidences it is log p(y|m) + log p(m).
    pub log_posterior: Estimate,
    /// Per shard, the share of its draws that are at this model.
    pub shares: Vec<f64>,
    /// The evidence, where it was computed.
    #[serde(skip)]
    pub evidence: Option<Evidence>,
}

/// How the chains of one shard went.
#[derive(Debug, Clone, Serialize)]
pub struct ShardJump {
    /// Draws of all chains.
    pub draws: u64,
    /// How many models they visited.
    pub distinct: u64,
    /// The largest R̂ of a term's being in; `None` where none moved.
    pub r_hat: Option<f64>,
    /// Per term, the share of draws that have it.
    pub inclusion: Vec<f64>,
    /// What was proposed and taken.
    pub moves: Moves,
    /// The share of draws at models that the result does not have: those that another shard does not know, or that
    /// were too many.
    pub missing: f64,
    /// The share of draws at models that the shard visited too rarely to tell of; part of what is missing.
    pub untold: f64,
}

/// What reversible jump says of a space.
#[derive(Debug, Clone, Serialize)]
pub struct JumpResult {
    /// The models, the likeliest first.
    pub models: Vec<JumpModel>,
    /// How each shard's chains went.
    pub shards: Vec<ShardJump>,
    /// The largest share of a shard's draws at models that are not among these.
    pub missing: f64,
    /// The Bayes factors that were asked for.
    pub pairs: Vec<PairFactor>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
    #[serde(skip)]
    explorations: Vec<Exploration>,
    #[serde(skip)]
    method: JumpMethod,
}

/// Explores a space by reversible jump on every shard of a session. The setting is that of the model with all terms.
pub fn reversible_jump(
    session: &Session,
    setting: &Setting,
    space: &Space,
    options: &JumpOptions,
) -> Result<JumpResult> {
    let question = Explore {
        model: setting.model.clone(),
        share: setting.share,
        space: Arc::new(space.clone()),
        order: options.order,
        pairs: options.pairs.clone(),
    };
    crate::question::Kind::check(&question)
        .map_err(|reason| Error::input(format!("the question to explore: {reason}")))?;
    let explorations = session.ask_one(&question)?.each::<Explore>()?;
    let models = match options.method {
        JumpMethod::Algorithm3 => visits::algorithm3(&explorations, space),
        JumpMethod::Fill => fill::fill(session, setting, space, &explorations, options.most)?,
    };
    let pairs = options.pairs.iter().enumerate();
    let pairs = pairs.map(|(k, pair)| pairs::combined(&explorations, k, *pair, space));
    let pairs = pairs.collect::<Result<_>>()?;
    let missing = |e: &Exploration| 1.0 - mass(e, models.iter().map(|m| &m.model));
    let shards: Vec<ShardJump> = explorations
        .iter()
        .map(|e| ShardJump {
            draws: e.draws,
            distinct: e.distinct,
            r_hat: e.r_hat.iter().flatten().copied().reduce(f64::max),
            inclusion: e.inclusion.clone(),
            moves: e.moves,
            missing: missing(e).max(0.0),
            untold: (1.0 - mass(e, e.models.iter().map(|v| &v.model))).max(0.0),
        })
        .collect();
    let warnings = warnings(&models, &shards, &explorations, options, space);
    let missing = shards.iter().map(|s| s.missing).fold(0.0, f64::max);
    let method = options.method;
    let mut result = JumpResult { models, shards, missing, pairs, warnings, explorations, method };
    let key = |m: &JumpModel| m.log_posterior.value;
    result.models.sort_by(|a, b| key(b).total_cmp(&key(a)).then(a.model.cmp(&b.model)));
    Ok(result)
}

/// The share of a shard's draws at these models.
fn mass<'a>(exploration: &Exploration, models: impl Iterator<Item = &'a Subset>) -> f64 {
    let counts = visits::counts(exploration);
    let visits: u64 = models.filter_map(|model| counts.get(model)).sum();
    visits as f64 / exploration.draws as f64
}

fn warnings(
    models: &[JumpModel],
    shards: &[ShardJump],
    explorations: &[Exploration],
    options: &JumpOptions,
    space: &Space,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (s, (shard, exploration)) in shards.iter().zip(explorations).enumerate() {
        let worst = exploration.r_hat.iter().enumerate().filter_map(|(t, r)| Some((t, (*r)?)));
        if let Some((term, r_hat)) = worst.max_by(|a, b| a.1.total_cmp(&b.1))
            && r_hat > UNRELIABLE
        {
            let message = format!(
                "the chains over models have not met: R̂ of having `{}` is {r_hat:.2} (at most {UNRELIABLE})",
                space.terms[term].label
            );
            let advice = "use more draws, or a search that does not jump";
            let warning = Warning::new(Level::Unreliable, "not-mixed", message, advice);
            warnings.push(warning.shard(s).value(r_hat));
        }
        if shard.missing > 0.01 {
            let message = format!(
                "{:.1} % of its draws are at models that the result does not have",
                100.0 * shard.missing
            );
            let advice = match options.method {
                _ if shard.untold > 0.5 * shard.missing => "let shards tell of more models",
                JumpMethod::Algorithm3 => {
                    "use more draws, or compute the union of what shards visit"
                }
                JumpMethod::Fill => "let more models be computed",
            };
            let warning = Warning::new(Level::Caution, "mass-missing", message, advice);
            warnings.push(warning.shard(s).value(shard.missing));
        }
    }
    if options.method == JumpMethod::Algorithm3 {
        let union = visits::union(explorations).len();
        if union > models.len() {
            let left = union - models.len();
            let message = format!(
                "{left} of the {union} models that shards visited were not visited by every shard, and are left out"
            );
            let advice = "use more draws, or compute the union of what shards visit";
            warnings.push(
                Warning::new(Level::Caution, "not-visited", message, advice).value(left as f64),
            );
        }
    }
    let unsure = models.iter().filter_map(|m| Some((m, m.evidence.as_ref()?.unreliable()?)));
    for (model, warning) in unsure {
        let mut warning = warning.clone();
        warning.message =
            format!("model `{}`: {}", crate::error::clip(&model.name), warning.message);
        warnings.push(warning);
    }
    warnings
}

impl JumpResult {
    /// The log Bayes factor of one model to another; `None` unless both are in the result. Where it rests on visits,
    /// its error has what those of two models at one shard have to do with each other.
    pub fn log_bayes_factor(&self, space: &Space, a: &Subset, b: &Subset) -> Option<Estimate> {
        let find = |model: &Subset| self.models.iter().find(|m| m.model == *model);
        let (first, second) = (find(a)?.log_posterior, find(b)?.log_posterior);
        let prior = space.log_prior(a.len()) - space.log_prior(b.len());
        let value = first.value - second.value - prior;
        let se = match self.method {
            JumpMethod::Fill => (first - second).se,
            JumpMethod::Algorithm3 => visits::error_of_ratio(&self.explorations, a, b),
        };
        Some(Estimate { value, se })
    }
}
