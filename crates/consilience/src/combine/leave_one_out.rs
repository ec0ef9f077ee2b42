//! What each shard contributes: the evidence without it, from the draws that are there already.
//!
//! With the importance weights w_k of the full posterior and the whole prior kept,
//!
//! ```text
//! p(y₋ₛ) ≈ mean_k b_k,   b_k = w_k / p(y_s|θ_k),   p(y_s|θ) = f_s(θ)/p(θ)^w_s,
//! ```
//!
//! so that no shard is asked again. The posterior without a shard is wider than the draws' proposal,
//! hence each shard has its own diagnostics.

use super::{Evidence, Next, Setting};
use crate::estimate::importance::{Importance, T_DF, error_of_mean};
use crate::estimate::{Estimate, Weighted};
use crate::math::proposal::{Draws, Kinship};
use crate::math::{Cholesky, Matrix, Proposal, log_mean_exp, stream};
use crate::question::{Answers, Expand, Weigh};
use crate::target::Expansion;
use crate::{Error, Level, Result, Warning};
use libm::exp;

/// Beyond this tail shape weights have no variance that an error bar could be made of, and beyond this
/// error, in nats, it is worth a second attempt.
const TAIL: f64 = 0.5;
const ERROR: f64 = 0.05;

/// Draws of the second attempt, per shard.
const AGAIN_DRAWS: usize = 2_000;

/// The share of the t in its proposals: larger than usual, since a single Newton step may miss.
const AGAIN_T_SHARE: f64 = 0.5;

/// The evidence of all shards but one.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOut {
    /// log p(y₋ₛ), under the whole prior.
    pub log_z: Estimate,
    /// log p(y_s | y₋ₛ) = log p(y) − log p(y₋ₛ): how well the others predict this shard.
    pub predictive: Estimate,
    /// Effective draws of the posterior without the shard; `None` where no draws were needed.
    pub ess: Option<f64>,
    /// Pareto k̂ of its weights.
    pub k_hat: Option<f64>,
    /// Whether its weights are good enough for the error bars to mean anything.
    pub reliable: bool,
}

impl LeftOut {
    /// Whether it can be told better by draws of its own.
    fn is_poor(&self) -> bool {
        let error = self.predictive.se.unwrap_or(0.0);
        !self.reliable || self.k_hat.is_some_and(|k| k > TAIL) || error > ERROR
    }

    /// From weighted draws of the posterior without the shard.
    fn seen(seen: &Importance, log_z: Estimate, predictive: Estimate) -> LeftOut {
        let reliable = seen.is_reliable();
        LeftOut { log_z, predictive, ess: Some(seen.ess), k_hat: seen.k_hat, reliable }
    }

    /// From the evidences of all shards and of all but one, each computed on its own.
    pub(super) fn apart(all: &Evidence, rest: &Evidence) -> LeftOut {
        let draws = rest.diagnostics.as_ref().map(|d| &d.draws);
        LeftOut {
            log_z: rest.log_z,
            predictive: all.log_z - rest.log_z,
            ess: draws.and_then(|d| d.ess),
            k_hat: draws.and_then(|d| d.k_hat),
            reliable: rest.unreliable().is_none(),
        }
    }
}

/// Appends a round of answers to Weigh about one model to those that came before, shard by shard.
pub(super) fn keep(
    by_shard: &mut Option<Vec<Vec<f64>>>,
    answers: Option<Vec<Vec<Vec<f64>>>>,
) -> Result<()> {
    let answers = answers.ok_or_else(only_sums)?;
    let kept = by_shard.get_or_insert_with(|| vec![Vec::new(); answers.len()]);
    kept.iter_mut().zip(answers).for_each(|(kept, mut new)| kept.append(&mut new[0]));
    Ok(())
}

pub(super) fn only_sums() -> Error {
    Error::input(
        "leaving shards out needs every shard's answers, and only sums over shards are known here",
    )
}

/// The evidence without each shard, from weighted draws and log f_s of each of them.
pub(super) fn left_out(
    setting: &Setting,
    weighted: &Weighted,
    by_shard: &[Vec<f64>],
) -> Result<Vec<LeftOut>> {
    let log_prior = log_prior(setting, &weighted.thetas);
    let all = weighted.summarise().log_z;
    let shares = setting.shares().ok_or_else(only_sums)?;
    let shards = by_shard.iter().zip(shares).enumerate();
    shards
        .map(|(s, (log_f, share))| {
            without(weighted, all, log_f, &log_prior, share).map_err(|e| e.for_shard(s))
        })
        .collect()
}

/// The log density of the prior at each draw.
fn log_prior(setting: &Setting, thetas: &Matrix) -> Vec<f64> {
    let priors = setting.model.free_priors();
    (0..thetas.rows())
        .map(|k| priors.iter().zip(thetas.row(k)).map(|(p, &x)| p.log_density(x)).sum())
        .collect()
}

/// `all` is log p(y), by the weights.
fn without(
    weighted: &Weighted,
    all: Estimate,
    log_f: &[f64],
    log_prior: &[f64],
    share: f64,
) -> Result<LeftOut> {
    let weights = &weighted.log_weights;
    let log_weights: Vec<f64> = weights
        .iter()
        .zip(log_f)
        .zip(log_prior)
        .map(|((&w, &f), &prior)| match f {
            // So far out that the shard's density overflowed to 0; the others' is next to nothing.
            f64::NEG_INFINITY => f64::NEG_INFINITY,
            _ => w - (f - share * prior),
        })
        .collect();
    let rest = Weighted::of_weights(log_weights)
        .map_err(|_| Error::numeric("the evidence without this shard is not a number"))?;
    let seen = rest.summarise();
    // log mean a − log mean b over the same draws errs as the mean of a/ā − b/b̄ does.
    let (mean_a, mean_b) = (log_mean_exp(weights), seen.log_z.value);
    let terms = weights.iter().zip(&rest.log_weights);
    let terms: Vec<f64> = terms.map(|(a, b)| exp(a - mean_a) - exp(b - mean_b)).collect();
    let error = error_of_mean(&terms);
    let predictive = Estimate::new(mean_a - mean_b, error);
    let log_z = match weighted.kinship {
        // Controls know log p(y) better than the mean weight does.
        Kinship::Mirrored => all - predictive,
        _ => seen.log_z,
    };
    Ok(LeftOut::seen(&seen, log_z, predictive))
}

/// A second attempt at the shards whose absence moves the posterior away from its draws: one
/// round to learn where the posterior without each of them is, one to weigh draws from there.
pub(super) struct Again {
    evidence: Box<Evidence>,
    /// The shards in question.
    shards: Vec<usize>,
    /// Their draws, while these are being weighed; `None` where no proposal could be made.
    draws: Option<Vec<Option<Draws>>>,
}

impl Again {
    /// Rounds that it takes.
    pub(super) const ROUNDS: usize = 2;

    /// For evidence in which some shards' absence is poorly known, or none.
    pub(super) fn new(evidence: Box<Evidence>) -> Again {
        let left_out = evidence.left_out.iter().flatten().enumerate();
        let shards = left_out.filter(|(_, left)| left.is_poor()).map(|(s, _)| s).collect();
        Again { evidence, shards, draws: None }
    }

    /// Takes the answers to its last question (`None` at first) and says what is next; itself as
    /// well, unless it is done.
    pub(super) fn next(
        mut self,
        setting: &Setting,
        answers: Option<Answers>,
    ) -> Result<(Next, Option<Again>)> {
        let question = match (answers, self.draws.take()) {
            (None, _) if !self.shards.is_empty() => {
                let theta = self.evidence.mean.clone();
                let thetas = Matrix::from_rows(1, theta.len(), theta);
                Some(Expand(setting.points(thetas)).into())
            }
            (Some(answers), None) => {
                let draws = self.propose(setting, answers.each::<Expand>()?)?;
                let each = draws.iter().flatten().map(|d| d.thetas.data());
                let data = each.collect::<Vec<_>>().concat();
                let rows = draws.iter().flatten().map(|d| d.thetas.rows()).sum();
                self.draws = Some(draws);
                let thetas = Matrix::from_rows(rows, setting.model.dim(), data);
                (rows > 0).then(|| Weigh(setting.points(thetas)).into())
            }
            (Some(answers), Some(draws)) => {
                self.weigh(setting, draws, &answers.each::<Weigh>()?)?;
                None
            }
            (None, _) => None,
        };
        Ok(match question {
            Some(question) => (Next::Ask(vec![question]), Some(self)),
            None => (Next::Done(warned(self.evidence)), None),
        })
    }

    /// Draws around the posterior without each shard, by a Newton step from the whole one's mean.
    fn propose(
        &self,
        setting: &Setting,
        answers: Vec<Vec<Vec<Expansion>>>,
    ) -> Result<Vec<Option<Draws>>> {
        let theta = &self.evidence.mean;
        let at: Vec<Expansion> = answers.into_iter().flatten().flatten().collect();
        let mut sum = Expansion::zeros(theta.len());
        at.iter().for_each(|found| sum.add(found));
        let priors = setting.model.free_priors();
        let shares = setting.shares().ok_or_else(only_sums)?;
        let seed = setting.options.seed;
        let propose = |&s: &usize| {
            // The shard's likelihood goes; its share of the prior stays.
            let mut rest = at[s].clone();
            rest.gradient.iter_mut().for_each(|g| *g = -*g);
            rest.hessian.scale(-1.0);
            rest.add(&sum);
            for (j, (prior, &x)) in priors.iter().zip(theta).enumerate() {
                let (_, slope, bend) = prior.expand(x);
                rest.gradient[j] += shares[s] * slope;
                rest.hessian[(j, j)] += shares[s] * bend;
            }
            rest.hessian.scale(-1.0);
            let factor = Cholesky::new(&rest.hessian)?;
            let step = factor.solve(&rest.gradient);
            let centre = theta.iter().zip(step).map(|(t, by)| t + by).collect();
            let mut rng = stream(seed, setting.model.stream(), s as u64, "leave one out");
            let proposal = Proposal::from_precision(centre, &factor, AGAIN_T_SHARE, T_DF);
            Some(proposal.draw(AGAIN_DRAWS, &mut rng))
        };
        Ok(self.shards.iter().map(propose).collect())
    }

    /// Puts the better estimates into the evidence.
    fn weigh(
        &mut self,
        setting: &Setting,
        draws: Vec<Option<Draws>>,
        answers: &[Vec<Vec<f64>>],
    ) -> Result<()> {
        let shares = setting.shares().ok_or_else(only_sums)?;
        let all = self.evidence.log_z;
        let Some(left_out) = &mut self.evidence.left_out else { return Ok(()) };
        let mut first = 0;
        for (&s, draws) in self.shards.iter().zip(draws) {
            let Some(draws) = draws else { continue };
            let count = draws.log_density.len();
            let mut log_target = log_prior(setting, &draws.thetas);
            log_target.iter_mut().for_each(|prior| *prior *= shares[s]);
            for (_, answer) in answers.iter().enumerate().filter(|(t, _)| *t != s) {
                let own = &answer[0][first..first + count];
                log_target.iter_mut().zip(own).for_each(|(sum, w)| *sum += w);
            }
            first += count;
            let Ok(weighted) = Weighted::new(draws, &log_target) else { continue };
            let seen = weighted.summarise();
            let first = (left_out[s].reliable, left_out[s].ess.unwrap_or(0.0));
            if (seen.is_reliable(), seen.ess) > first {
                left_out[s] = LeftOut::seen(&seen, seen.log_z, all - seen.log_z);
            }
        }
        Ok(())
    }
}

/// The evidence with what is to be said about the shards left out.
pub(super) fn warned(mut evidence: Box<Evidence>) -> Box<Evidence> {
    let new = evidence.left_out.as_deref().map(warnings).unwrap_or_default();
    evidence.warnings.extend(new);
    evidence
}

/// Cautions about shards without which the draws say little. The evidences themselves stand.
fn warnings(all: &[LeftOut]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (s, left) in all.iter().enumerate().filter(|(_, left)| !left.reliable) {
        let k_hat = left.k_hat.map(|k| format!(", Pareto k̂ = {k:.2}")).unwrap_or_default();
        let ess = left.ess.unwrap_or(f64::NAN);
        let message =
            format!("what leaving it out does is not well known: {ess:.0} effective draws{k_hat}");
        let advice = "more `draws` and a smaller se_target may help; comparing without the shard's rows always does";
        let warning = Warning::new(Level::Caution, "leave-one-out", message, advice);
        warnings.push(warning.shard(s).value(ess));
    }
    warnings
}
