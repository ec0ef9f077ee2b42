//! From evidences to a comparison: Bayes factors, posterior probabilities, and all that is reported.

mod average;
mod bayes_factor;
mod conflict;
mod leave_one_out;
mod probability;
mod provenance;
mod ranking;
mod sensitivity;
mod verdict;

pub use average::{Average, Averages};
pub use bayes_factor::Strength;
pub use leave_one_out::{ModelPull, ShardPull};
pub use provenance::{DataSource, Provenance};
pub use sensitivity::{ScaledModel, ScaledPriors};
pub use verdict::{Best, times};

pub(crate) use sensitivity::sweep;

use crate::combine::{Agreement, Baseline, CombineDiagnostics, Evidence, LeftOut, Setting};
use crate::draft::file_stem;
use crate::engine::Traffic;
use crate::estimate::Estimate;
use crate::fit::{Diagnostics, Summary};
use crate::math::special::normal_quantile;
use crate::math::{Matrix, stream};
use crate::model::{Family, Model};
use crate::sample::draws::write_draws;
use crate::sample::{Chain, Sample};
use crate::{Level, Result, Warning};
use probability::largest;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// With a smaller probability than this of truly being the best, the winner is called into question:
/// two standard errors, if there is one competitor.
const SURE: f64 = 0.975;

/// Which quantiles of a parameter are reported.
const QUANTILES: [f64; 3] = [0.025, 0.5, 0.975];

/// The version of the JSON document that a [`Comparison`] becomes.
pub const VERSION: u32 = 1;

/// The result of a study. Serialised, it is the documented JSON document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// [`VERSION`].
    pub version: u32,
    /// In the study's order.
    pub models: Vec<ModelResult>,
    /// Which model is the best, and how sure that is.
    pub best: Best,
    /// log p(y|row) − log p(y|column), both in the study's order; `None` for over 100 models.
    pub bayes_factors: Option<Vec<Vec<Estimate>>>,
    /// Coefficients averaged over models.
    pub averages: Averages,
    /// The comparison under wider and narrower priors, by ascending scale, if it was asked for.
    pub prior_sensitivity: Option<Vec<ScaledPriors>>,
    /// The comparison without each shard, if it was asked for.
    pub leave_one_out: Option<Vec<ShardPull>>,
    /// Warnings about the study as a whole.
    pub warnings: Vec<Warning>,
    /// How the data were split.
    pub partition: PartitionReport,
    /// Rounds of questions.
    pub rounds: u64,
    /// Bytes of all questions and answers.
    pub bytes_moved: u64,
    /// The same, each way.
    pub traffic: Traffic,
    /// What made it; filled in by whoever knows the files.
    pub provenance: Option<Provenance>,
    /// CPU seconds of each shard's answers; filled in by whoever has a clock.
    pub shard_seconds: Option<Vec<f64>>,
    /// How long it took; filled in by whoever has a clock.
    pub seconds: Option<f64>,
}

/// One model's result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelResult {
    /// The study's name for it.
    pub name: String,
    /// Its formula, as read.
    pub formula: String,
    /// Its likelihood.
    pub family: Option<Family>,
    /// log p(y).
    pub log_evidence: Estimate,
    /// log p(y) minus the best model's: at most 0.
    pub log_bayes_factor: Estimate,
    /// How strongly the data speak for the best model against this one, by what is left of the Bayes factor when two
    /// standard errors are taken off; `None` for the best.
    pub strength: Option<Strength>,
    /// The log of its posterior odds against the most probable model: at most 0.
    pub log_odds: Estimate,
    /// Posterior model probability.
    pub probability: f64,
    /// A 95% interval of it, given the error bars of all models; `None` where one has none.
    pub probability_interval: Option<[f64; 2]>,
    /// Prior model probability.
    pub prior_probability: f64,
    /// The pieces of the decomposition.
    pub parts: Parts,
    /// The combined posterior's moments, in the order of the design.
    pub parameters: Vec<ParameterResult>,
    /// How the combination went; `null` for `normal`.
    pub combination: Option<CombineDiagnostics>,
    /// Warnings about this model.
    pub warnings: Vec<Warning>,
    /// Shard by shard.
    pub shards: Vec<ShardResult>,
    /// Draws of all parameters given all the data, fixed ones included, if they were asked for.
    #[serde(skip)]
    pub posterior: Option<Sample>,
}

/// log p(y) = shards + overlap = log_alpha + subevidences + overlap. What was not computed is `null`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parts {
    /// Σ log Z_s.
    pub shards: Option<Estimate>,
    /// log I.
    pub overlap: Option<Estimate>,
    /// Σ log α_s; `null` where it is not finite.
    pub log_alpha: Option<f64>,
    /// Σ log p̃(y_s) = Σ log Z_s − Σ log α_s: the shards' evidences under normalised subpriors.
    pub subevidences: Option<Estimate>,
    /// log I as a share of log p(y).
    pub overlap_share: Option<f64>,
    /// log I less what normal approximations of the subposteriors make of it: the logarithm of the
    /// correction factor.
    pub correction: Option<f64>,
    /// What taking subposteriors as normal may be off by, in nats: part of the standard error.
    pub shape_error: Option<f64>,
    /// Bounds of what a normal combination may be off by.
    pub bounds: Option<Bounds>,
}

/// Sample versions of the constants in −S log B ≤ log p(y)/p̂(y) ≤ S log A, p̂ being the normal
/// combination. Over the shards' draws they bound the suprema from below.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bounds {
    /// The greatest log p̃(θ|y_s)/N(θ; μ_s, Σ_s) that a draw showed.
    pub log_a: f64,
    /// The greatest log N(θ; μ_s, Σ_s)/p̃(θ|y_s) that a draw showed.
    pub log_b: f64,
}

/// A parameter's posterior.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ParameterResult {
    /// R's name of the design column, or that of a parameter of the family's own such as `log_sd`.
    pub name: String,
    /// Posterior mean.
    pub mean: f64,
    /// Posterior standard deviation; 0 for a parameter that is held fixed.
    pub sd: f64,
    /// The 2.5% quantile.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// The 97.5% quantile.
    pub high: f64,
    /// The prior, as the study writes it.
    pub prior: String,
}

/// One shard under one model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShardResult {
    /// Its number, counted from 0.
    pub index: usize,
    /// Its rows, each counted with its weight.
    pub rows: f64,
    /// Its share w_s of the prior.
    pub share: f64,
    /// log Z_s; `null` where it was not computed.
    pub log_evidence: Option<Estimate>,
    /// How log Z_s was computed.
    pub method: Option<String>,
    /// How that went.
    #[serde(flatten)]
    pub diagnostics: Diagnostics,
    /// How it agrees with the other shards; `null` where that was not looked at.
    pub agreement: Option<Agreement>,
    /// Its own posterior; `null` where that was not asked for or not computed.
    pub details: Option<ShardDetails>,
}

/// A shard's own posterior, of its likelihood and its share of the prior. Parameters that are held fixed are left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShardDetails {
    /// The mean of every free parameter, in the model's order.
    pub mean: Vec<f64>,
    /// Their covariance, row by row.
    pub covariance: Vec<Vec<f64>>,
    /// Effective draws behind these; `null`: no draws.
    pub effective: Option<f64>,
}

/// Ways to choose a model side by side. Serialised, it is the JSON document of `baselines`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Baselines {
    /// [`VERSION`].
    pub version: u32,
    /// The models' names, in the study's order.
    pub models: Vec<String>,
    /// Votes and products, upsampled evidences, then combinations.
    pub methods: Vec<Baseline>,
    /// How the data were split.
    pub partition: PartitionReport,
    /// What passed between the centre and the shards.
    pub traffic: Traffic,
    /// How long it took; filled in by whoever has a clock.
    pub seconds: Option<f64>,
}

/// How the data were split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartitionReport {
    /// Number of shards.
    pub shards: usize,
    /// Rows used.
    pub rows: usize,
    /// Rows left out because a value was missing.
    pub dropped: usize,
    /// The method.
    pub by: String,
    /// The seed of the split.
    pub seed: u64,
    /// The name of the partition: evidences from different partitions are not comparable.
    pub hash: String,
    /// What the shards are called, in their order: their sites, files, or values of a column; `None` where they have
    /// numbers only.
    #[serde(default)]
    pub names: Option<Vec<String>>,
}

impl PartitionReport {
    /// Of data that came split, so many rows to each shard, of which so many more were left out.
    pub fn given(rows: &[usize], dropped: usize) -> PartitionReport {
        let counts = rows.iter().enumerate().map(|(s, n)| (s as u32, *n));
        let assignment: Vec<u32> = counts.flat_map(|(s, n)| std::iter::repeat_n(s, n)).collect();
        PartitionReport {
            shards: rows.len(),
            rows: assignment.len(),
            dropped,
            by: "given".into(),
            seed: 1,
            hash: crate::data::split::hash(&assignment, rows.len()),
            names: None,
        }
    }
}

impl Comparison {
    /// Compares models by their evidences.
    pub(crate) fn new(
        settings: &[Setting],
        formulas: &[String],
        prior_probabilities: &[f64],
        evidences: Vec<Evidence>,
        partition: PartitionReport,
        mut warnings: Vec<Warning>,
        traffic: Traffic,
    ) -> Comparison {
        let log_z: Vec<Estimate> = evidences.iter().map(|e| e.log_z).collect();
        let values: Vec<f64> = log_z.iter().map(|z| z.value).collect();
        let best = largest(values.iter().copied());
        let probabilities = probability::posterior(&values, prior_probabilities);
        let seed = settings[0].options.seed;
        let streams: Vec<u64> = settings.iter().map(|s| s.model.stream()).collect();
        let intervals = probability::intervals(&log_z, prior_probabilities, seed, &streams);
        let left_out: Option<Vec<Vec<LeftOut>>> =
            evidences.iter().map(|e| e.left_out.clone()).collect();
        let winner = most_probable(&values, prior_probabilities);
        let mut models = Vec::new();
        for (i, evidence) in evidences.into_iter().enumerate() {
            let conflict = conflict::prior_conflict(&settings[i], &evidence);
            let bayes_factor = if i == best { Estimate::ZERO } else { log_z[i] - log_z[best] };
            models.push(ModelResult {
                name: settings[i].model.name.clone(),
                formula: formulas[i].clone(),
                family: settings[i].model.family(),
                log_evidence: evidence.log_z,
                log_bayes_factor: bayes_factor,
                strength: (i != best).then(|| Strength::of(bayes_factor)),
                log_odds: log_odds(&log_z, prior_probabilities, i, winner),
                probability: probabilities[i],
                probability_interval: intervals.as_ref().map(|all| all[i]),
                prior_probability: prior_probabilities[i],
                parts: Parts::of(&evidence),
                parameters: parameters(&settings[i], &evidence),
                shards: shards(&settings[i], &evidence),
                posterior: posterior(&settings[i], evidence.draws),
                combination: evidence.diagnostics,
                warnings: [
                    settings[i].warnings.clone(),
                    evidence.warnings,
                    conflict.into_iter().collect(),
                ]
                .concat(),
            });
        }
        let certainty = probability::certainty(&log_z, prior_probabilities);
        warnings.extend(too_close(&models, winner, certainty));
        let leave_one_out = left_out.map(|all| leave_one_out::pulls(&models, best, &all));
        let order = order(&models);
        Comparison {
            version: VERSION,
            best: Best::new(&models, &order, certainty),
            bayes_factors: bayes_factor::matrix(&log_z),
            averages: average::averages(&models),
            prior_sensitivity: None,
            leave_one_out,
            models,
            warnings,
            partition,
            rounds: traffic.rounds,
            bytes_moved: traffic.bytes_sent + traffic.bytes_received,
            traffic,
            provenance: None,
            shard_seconds: None,
            seconds: None,
        }
    }

    /// The numbers of the models, the most probable first.
    pub fn order(&self) -> Vec<usize> {
        order(&self.models)
    }

    /// All warnings: the study's, then each model's with its name, then those of other priors.
    pub fn all_warnings(&self) -> impl Iterator<Item = (Option<&str>, &Warning)> {
        let own = self.warnings.iter().map(|w| (None, w));
        let models =
            self.models.iter().flat_map(|m| m.warnings.iter().map(|w| (Some(m.name.as_str()), w)));
        let scaled = self.prior_sensitivity.iter().flatten().flat_map(|s| &s.models);
        let scaled = scaled.flat_map(|m| m.warnings.iter().map(|w| (Some(m.name.as_str()), w)));
        own.chain(models).chain(scaled)
    }

    /// Writes every model's posterior draws to `MODEL.parquet` in this folder, which must be there:
    /// columns `chain`, `draw` and one per parameter. Returns the files; none where no draws were
    /// asked for.
    pub fn write_posterior(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let mut written = Vec::new();
        for model in &self.models {
            let Some(sample) = &model.posterior else { continue };
            let path = folder.join(file_stem(&model.name) + ".parquet");
            let names: Vec<String> = model.parameters.iter().map(|p| p.name.clone()).collect();
            write_draws(&path, &names, sample)?;
            written.push(path);
        }
        Ok(written)
    }

    /// Takes in the comparison under wider and narrower priors, with a caution where their width decides.
    pub(crate) fn with_sensitivity(&mut self, scales: Vec<ScaledPriors>) {
        let prior: Vec<f64> = self.models.iter().map(|m| m.prior_probability).collect();
        self.warnings.extend(ranking::turned(&scales, &prior));
        self.prior_sensitivity = Some(scales);
    }

    /// Whether nothing says that the result is not to be trusted.
    pub fn is_reliable(&self) -> bool {
        self.all_warnings().all(|(_, w)| w.level < Level::Unreliable)
    }
}

impl Baselines {
    /// Whether no method in it says of itself that it is not to be trusted.
    pub fn is_reliable(&self) -> bool {
        self.methods.iter().all(Baseline::is_reliable)
    }
}

impl Parts {
    fn of(evidence: &Evidence) -> Parts {
        let (shards, log_alpha) = (evidence.shards, evidence.log_alpha);
        Parts {
            shards,
            overlap: evidence.overlap,
            log_alpha,
            subevidences: shards
                .zip(log_alpha)
                .map(|(z, alpha)| Estimate { value: z.value - alpha, ..z }),
            overlap_share: evidence
                .overlap
                .filter(|_| evidence.log_z.value != 0.0)
                .map(|overlap| overlap.value / evidence.log_z.value),
            correction: evidence.correction,
            shape_error: evidence.shape_error,
            bounds: evidence.summaries.as_deref().and_then(Bounds::of),
        }
    }
}

impl Bounds {
    /// `None` unless every shard has draws to go by.
    pub(crate) fn of(summaries: &[Summary]) -> Option<Bounds> {
        let mut bounds = Bounds { log_a: f64::NEG_INFINITY, log_b: f64::NEG_INFINITY };
        for summary in summaries {
            bounds.log_a = bounds.log_a.max(summary.diagnostics.log_ratio_greatest?);
            bounds.log_b = bounds.log_b.max(-summary.diagnostics.log_ratio_least?);
        }
        Some(bounds)
    }
}

/// The numbers of the models, the most probable first; of equals in the study's order.
fn order(models: &[ModelResult]) -> Vec<usize> {
    let score = |i: &usize| {
        let model = &models[*i];
        model.log_evidence.value + libm::log(model.prior_probability)
    };
    let mut order: Vec<usize> = (0..models.len()).collect();
    order.sort_by(|a, b| score(b).total_cmp(&score(a)));
    order
}

/// The index of the most probable model. Probabilities themselves may round to 0 and 1.
fn most_probable(log_z: &[f64], prior: &[f64]) -> usize {
    largest(log_z.iter().zip(prior).map(|(z, p)| z + libm::log(*p)))
}

/// The log of model i's posterior odds against the most probable one.
fn log_odds(log_z: &[Estimate], prior: &[f64], i: usize, winner: usize) -> Estimate {
    if i == winner {
        return Estimate::ZERO;
    }
    let factor = log_z[i] - log_z[winner];
    let prior = libm::log(prior[i]) - libm::log(prior[winner]);
    Estimate { value: factor.value + prior, ..factor }
}

/// Cautions where the error bars leave open which model is the best.
fn too_close(models: &[ModelResult], winner: usize, certainty: Option<f64>) -> Option<Warning> {
    let certainty = certainty.filter(|c| *c < SURE)?;
    let score = |m: &ModelResult| m.log_evidence.value + libm::log(m.prior_probability);
    let others = models.iter().enumerate().filter(|(i, _)| *i != winner);
    let (_, second) = others.max_by(|a, b| score(a.1).total_cmp(&score(b.1)))?;
    let first = &models[winner];
    let gap = first.log_evidence - second.log_evidence;
    let message = format!(
        "whether `{}` is the best model is not settled: given the error bars it is with probability {certainty:.2} (log Bayes factor against `{}`: {:.3} ± {:.3})",
        first.name,
        second.name,
        gap.value,
        gap.se.unwrap_or_default()
    );
    let advice = "lower se_target and allow more draws, if it matters which one is ahead";
    Some(Warning::new(Level::Caution, "too-close", message, advice).value(certainty))
}

/// Where a parameter of the model stands among the free ones, or the value it is held at.
fn places(model: &Model) -> Vec<std::result::Result<usize, f64>> {
    let mut free = 0..;
    let place = |fixed: Option<f64>| match fixed {
        Some(value) => Err(value),
        None => Ok(free.next().expect("the naturals do not end")),
    };
    model.parameters.iter().map(|p| p.prior.fixed()).map(place).collect()
}

fn parameters(setting: &Setting, evidence: &Evidence) -> Vec<ParameterResult> {
    let model = &setting.model;
    let quantiles = evidence.draws.as_ref().map(|draws| draws.quantiles(&QUANTILES));
    let each = model.parameters.iter().zip(places(model)).enumerate();
    each.map(|(number, (parameter, place))| {
        let (mean, sd, [low, median, high]) = match place {
            Err(value) => (value, 0.0, [value; 3]),
            Ok(j) => {
                let (mean, sd) = (evidence.mean[j], evidence.covariance[(j, j)].sqrt());
                let at = |q: usize| match &quantiles {
                    Some(all) => all[j][q],
                    None => mean + sd * normal_quantile(QUANTILES[q]),
                };
                (mean, sd, [at(0), at(1), at(2)])
            }
        };
        let (name, prior) = (parameter.name.clone(), setting.joint.text(number, parameter.prior));
        ParameterResult { name, mean, sd, low, median, high, prior }
    })
    .collect()
}

/// Draws of equal weight with a column for every parameter, if they are wanted.
fn posterior(setting: &Setting, draws: Option<crate::combine::PosteriorDraws>) -> Option<Sample> {
    let draws = draws.filter(|_| setting.extras.posterior)?;
    let model = &setting.model;
    let mut rng = stream(setting.options.seed, model.stream(), u64::MAX, "posterior");
    let places = places(model);
    let whole = |chain: Chain| {
        let free = &chain.thetas;
        let value = |k: usize| places.iter().map(move |p| p.map_or_else(|v| v, |j| free[(k, j)]));
        let data = (0..free.rows()).flat_map(value).collect();
        Chain { thetas: Matrix::from_rows(free.rows(), places.len(), data), ..chain }
    };
    Some(Sample { chains: draws.into_sample(&mut rng).chains.into_iter().map(whole).collect() })
}

fn shards(setting: &Setting, evidence: &Evidence) -> Vec<ShardResult> {
    let summaries = evidence.summaries.as_deref();
    // Where only sums are known there is nothing to say about single shards.
    let shares = setting.shares().filter(|_| setting.surveys.len() == setting.shards);
    setting
        .surveys
        .iter()
        .zip(shares.unwrap_or_default())
        .enumerate()
        .map(|(index, (survey, share))| {
            let summary = summaries.map(|all| &all[index]);
            ShardResult {
                index,
                rows: survey.observations,
                share,
                log_evidence: summary.map(|s| s.log_z),
                method: summary.map(|s| s.method.clone()),
                diagnostics: summary.map(|s| s.diagnostics.clone()).unwrap_or_default(),
                agreement: evidence.agreement.get(index).cloned(),
                details: summary.filter(|_| setting.extras.shard_details).map(details),
            }
        })
        .collect()
}

fn details(summary: &Summary) -> ShardDetails {
    let covariance = &summary.covariance;
    ShardDetails {
        mean: summary.mean.clone(),
        covariance: (0..covariance.rows()).map(|i| covariance.row(i).to_vec()).collect(),
        effective: summary.effective,
    }
}
