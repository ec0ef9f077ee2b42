//! Combiners: from the shards' answers to the evidence of all the data.
//!
//! A combination is a machine that is fed one round of answers at a time and says what to ask next.
//! It knows no data and no engine, and all models' combinations share their rounds.

mod augmented;
mod cmc;
mod combining;
mod exact;
mod frame;
mod homogeneity;
mod jump;
mod leave_one_out;
mod mixture;
mod normal;
mod null_point;
mod over_g;
mod posterior;
mod rank;
mod statistics;
mod ties;
mod votes;
mod ways;

pub(crate) use combining::advised;
pub use combining::{Combining, combine};
pub(crate) use exact::is_sought;
pub use homogeneity::Agreement;
pub use jump::{
    JumpMethod, JumpModel, JumpOptions, JumpResult, PairFactor, ShardJump, reversible_jump,
    submodel, subsetting,
};
pub use leave_one_out::LeftOut;
pub use normal::{Consensus, consensus};
pub use posterior::PosteriorDraws;
pub(crate) use posterior::consensus_draws;
pub use statistics::Pool;
pub(crate) use statistics::{
    gaussian_of, ground_of, has_statistics, independent_columns, statistics_of,
};
pub(crate) use ties::refuse_ties;
pub use votes::{Baseline, ModelWarning};
pub(crate) use votes::{upsampled, votes};
pub use ways::Ways;
pub(crate) use ways::{baselines, ways};

use crate::estimate::search::Peak;
use crate::estimate::{Estimate, Importance};
use crate::fit::{Diagnostics, FitOrder, Summary};
use crate::math::{Cholesky, ExactSum, Matrix};
use crate::model::{Joint, Model, Share};
use crate::question::{Answers, Fit, Points, Question, SurveyAnswer};
use crate::sample::{Chain, Sample};
use crate::study::{Combine, EvidenceOptions};
use crate::target::Expansion;
use crate::{Error, Level, Result, Warning};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// All that a combination of one model starts from.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The model.
    pub model: Arc<Model>,
    /// Which of its priors are tied to others: then those of the model only stand in for them.
    pub joint: Joint,
    /// How the prior is shared out.
    pub share: Share,
    /// How many shards there are.
    pub shards: usize,
    /// What each shard said of the design, or, where only sums are known, all of them together.
    pub surveys: Vec<SurveyAnswer>,
    /// The user's options.
    pub options: EvidenceOptions,
    /// The parabola that the likelihood of all rows is like, by the shards' own peaks, as an expansion at 0; `None`
    /// where they were not asked.
    pub located: Option<Arc<Expansion>>,
    /// The statistics of all rows, where they were asked with the survey.
    pub pool: Option<Arc<Pool>>,
    /// What is known to be worth saying before anything has run.
    pub warnings: Vec<Warning>,
    /// What is wanted beside the evidence.
    pub extras: Extras,
}

/// What a run is to deliver beside the comparison itself: costs time, memory or answers that tell more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Extras {
    /// The comparison with the scale of every coefficient's prior times each of these factors.
    pub prior_scales: Vec<f64>,
    /// What each shard pulls: the evidences without it.
    pub leave_one_out: bool,
    /// Draws of every model's posterior given all the data.
    #[serde(skip)]
    pub posterior: bool,
    /// The moments of every shard's own posterior, in the result.
    #[serde(skip)]
    pub shard_details: bool,
    /// The draws of every shard's chains, as Parquet files in this folder.
    pub draws: Option<PathBuf>,
}

impl Setting {
    /// The shards' shares w_s; `None` where only the sum of their rows is known.
    pub fn shares(&self) -> Option<Vec<f64>> {
        match self.share {
            Share::Equal { .. } => Some(vec![self.share.of(0.0); self.shards]),
            Share::Rows { .. } if self.surveys.len() == self.shards => {
                Some(self.rows().map(|rows| self.share.of(rows)).collect())
            }
            Share::Rows { .. } => None,
        }
    }

    /// All rows, each counted with its weight: whether shards tell them one by one or as a sum.
    pub(crate) fn observations(&self) -> f64 {
        ExactSum::of(self.surveys.iter().map(|s| s.observations))
    }

    /// The shards' rows, each counted with its weight.
    fn rows(&self) -> impl Iterator<Item = f64> {
        self.surveys.iter().map(|s| s.observations)
    }

    /// Where the posterior's peak is about, by the shards' own peaks.
    fn peak(&self) -> Option<Vec<f64>> {
        let mut whole = Expansion::clone(self.located.as_ref()?);
        for (j, prior) in self.model.free_priors().iter().enumerate() {
            // As a normal around the prior's centre.
            let centre = prior.centre();
            let (_, _, bend) = prior.expand(centre);
            let bend = if bend < 0.0 { bend } else { -prior.scale().unwrap_or(1.0).powi(-2) };
            whole.gradient[j] -= bend * centre;
            whole.hessian[(j, j)] += bend;
        }
        whole.hessian.scale(-1.0);
        Some(Cholesky::new(&whole.hessian)?.solve(&whole.gradient))
    }

    /// These points as a question may ask about them.
    pub(crate) fn points(&self, thetas: impl Into<Arc<Matrix>>) -> Vec<Points> {
        let (model, thetas) = (self.model.clone(), thetas.into());
        vec![Points { model, share: self.share, thetas, rule: None }]
    }

    /// The question for the shards' own evidences.
    fn fit(&self) -> Question {
        let draws = self.extras.draws.is_some();
        Fit { model: self.model.clone(), share: self.share, order: self.order(), draws }.into()
    }

    /// Whether the shards' own evidences are only there to be shown.
    fn can_do_without_fits(&self) -> bool {
        self.options.combine == Combine::Exact && self.extras.draws.is_none()
    }

    /// How the shards are to compute their own evidences.
    fn order(&self) -> FitOrder {
        FitOrder {
            method: self.options.local,
            draws: self.options.draws,
            warmup: self.options.warmup,
            chains: self.options.chains,
            power: 1.0,
            seed: self.options.seed,
        }
    }

    /// The names of the free parameters.
    fn names(&self) -> Vec<&str> {
        self.model.free().map(|p| p.name.as_str()).collect()
    }

    /// How the shards agree with each other.
    fn compare_shards(
        &self,
        scores: &[homogeneity::Score<'_>],
        total: &Cholesky,
    ) -> Vec<Agreement> {
        homogeneity::agreements(scores, &self.rows().collect::<Vec<_>>(), total)
    }

    /// How shards agree whose log densities have these expansions at the consensus; not at all where their
    /// curvatures do not add up to a peak's.
    fn compare_scores(&self, shards: &mut [Expansion]) -> Vec<Agreement> {
        let scores = homogeneity::scores(shards);
        let mut total = Matrix::zeros(self.model.dim(), self.model.dim());
        scores.iter().for_each(|(_, information)| total.add_scaled(1.0, information));
        let total = Cholesky::new(&total);
        total.map(|total| self.compare_shards(&scores, &total)).unwrap_or_default()
    }

    /// The evidence that weighted draws of the whole posterior give.
    fn by_importance(
        &self,
        seen: Importance,
        diagnostics: CombineDiagnostics,
        warnings: Vec<Warning>,
    ) -> Evidence {
        let diagnostics = Some(diagnostics);
        let evidence = self.evidence(seen.log_z, seen.mean, seen.covariance);
        Evidence { diagnostics, warnings, ..evidence }
    }

    /// An evidence with the posterior's moments, of which nothing more is known.
    fn evidence(&self, log_z: Estimate, mean: Vec<f64>, covariance: Matrix) -> Evidence {
        Evidence {
            log_z,
            shards: None,
            overlap: None,
            correction: None,
            shape_error: None,
            log_alpha: self.shares().and_then(|shares| log_alpha(&self.model, &shares)),
            mean,
            covariance,
            draws: None,
            shard_draws: Vec::new(),
            left_out: None,
            diagnostics: None,
            summaries: None,
            agreement: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// The evidence of one model on all the data.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// log p(y).
    pub log_z: Estimate,
    /// Σ log Z_s, where the shards computed them.
    pub shards: Option<Estimate>,
    /// log I = log p(y) − Σ log Z_s, where the shards computed theirs.
    pub overlap: Option<Estimate>,
    /// log I less what normal approximations of the subposteriors make of it, where both are known:
    /// the logarithm of the paper's correction factor.
    pub correction: Option<f64>,
    /// What taking subposteriors as normal may be off by, in nats; `None` where they are not taken so, or where
    /// that was not looked at.
    pub shape_error: Option<f64>,
    /// Σ log α_s; `None` where it is not finite.
    pub log_alpha: Option<f64>,
    /// Posterior mean of the free parameters.
    pub mean: Vec<f64>,
    /// Posterior covariance of the free parameters.
    pub covariance: Matrix,
    /// Draws of the posterior of the free parameters, where the combination has any.
    pub draws: Option<PosteriorDraws>,
    /// The draws of every shard's chains, where they were asked for.
    pub shard_draws: Vec<Sample>,
    /// The evidence without each shard, where that was asked for.
    pub left_out: Option<Vec<LeftOut>>,
    /// How the combination itself went.
    pub diagnostics: Option<CombineDiagnostics>,
    /// What each shard computed on its own, if it did.
    pub summaries: Option<Vec<Summary>>,
    /// How each shard agrees with the others; empty where that was not looked at.
    pub agreement: Vec<Agreement>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
}

/// How a combination went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CombineDiagnostics {
    /// `importance`, `quadrature`, `closed form`, `nuts+warp3` or `augmentation`.
    pub method: &'static str,
    /// Newton rounds to the mode.
    pub newton_rounds: usize,
    /// Importance rounds.
    pub weigh_rounds: usize,
    /// The peaks of the posterior that were found, and the share of it around each; empty where none were
    /// looked for.
    pub peaks: Vec<Peak>,
    /// Draws, effective draws and k̂ of the last proposal.
    #[serde(flatten)]
    pub draws: Diagnostics,
}

impl CombineDiagnostics {
    /// Importance sampling that ended with this many draws.
    fn importance(newton: usize, weigh: usize, seen: &Importance, count: usize) -> Self {
        CombineDiagnostics {
            method: "importance",
            newton_rounds: newton,
            weigh_rounds: weigh,
            peaks: Vec::new(),
            draws: Diagnostics {
                draws: Some(count),
                ess: Some(seen.ess),
                k_hat: seen.k_hat,
                ..Diagnostics::default()
            },
        }
    }
}

/// What a combination wants next.
pub(crate) enum Next {
    /// These questions, put to every shard in one round.
    Ask(Vec<Question>),
    /// Nothing: here is the evidence.
    Done(Box<Evidence>),
}

/// A combination of one model's answers.
pub(crate) trait Combination {
    /// Takes the answers to its last questions, in their order (none at first), and goes on.
    fn next(&mut self, answers: Vec<Answers>) -> Result<Next>;

    /// About how many rounds it still takes.
    fn rounds_left(&self) -> u64 {
        1
    }
}

impl Evidence {
    /// The first warning that says not to trust it.
    pub(crate) fn unreliable(&self) -> Option<&Warning> {
        self.warnings.iter().find(|w| w.level >= Level::Unreliable)
    }

    /// Itself, split into the shards' own evidences and their overlap.
    fn beside(mut self, fits: Fits) -> Evidence {
        let Fits { summaries, draws } = fits;
        let shards = sum_of_evidences(&summaries);
        let overlap = self.log_z - shards;
        self.warnings.extend(summaries.iter().flat_map(|s| s.warnings.clone()));
        // Where the normals have no product there is nothing to correct.
        let normals = normal::Normals::new(&summaries).ok();
        self.correction = normals.map(|n| overlap.value - n.log_overlap());
        self.shards = Some(shards);
        self.overlap = Some(overlap);
        self.summaries = Some(summaries);
        self.shard_draws = draws;
        self
    }

    /// Itself, if every number in it is one; otherwise an error that names what is not.
    fn checked(self, model: &Model) -> Result<Evidence> {
        let fail = |what: &str| {
            Error::numeric(format!("{what} is not a finite number")).for_model(&model.name)
        };
        for estimate in [Some(self.log_z), self.shards, self.overlap].into_iter().flatten() {
            if !estimate.value.is_finite() || estimate.se.is_some_and(|se| !se.is_finite()) {
                return Err(fail("the log evidence or its standard error"));
            }
        }
        for (j, parameter) in model.free().enumerate() {
            let variance = self.covariance[(j, j)];
            if !self.mean[j].is_finite() || variance.is_nan() || variance < 0.0 {
                return Err(fail("a posterior moment").for_parameter(&parameter.name));
            }
        }
        Ok(self)
    }
}

/// Σ_s log α_s, `None` where one is not finite.
fn log_alpha(model: &Model, shares: &[f64]) -> Option<f64> {
    shares.iter().map(|&w| model.log_alpha(w)).sum()
}

/// Σ log Z_s.
fn sum_of_evidences(summaries: &[Summary]) -> Estimate {
    summaries.iter().map(|s| s.log_z).fold(Estimate::ZERO, |sum, z| sum + z)
}

/// What the shards answered to Fit.
struct Fits {
    summaries: Vec<Summary>,
    /// The draws of every shard's chains, if they were asked for.
    draws: Vec<Sample>,
}

impl Fits {
    fn of(answers: Answers) -> Result<Fits> {
        let (mut summaries, mut draws) = (Vec::new(), Vec::new());
        for answer in answers.each::<Fit>()? {
            summaries.push(answer.summary);
            draws.push(Sample { chains: answer.draws.into_iter().map(Chain::of_draws).collect() });
        }
        Ok(Fits { summaries, draws })
    }
}
