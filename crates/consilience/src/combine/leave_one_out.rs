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

use super::Setting;
use crate::estimate::{Estimate, Weighted};
use crate::math::Matrix;
use crate::{Error, Level, Result, Warning};
use libm::exp;

/// The evidence of all shards but one.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOut {
    /// log p(y₋ₛ), under the whole prior.
    pub log_z: Estimate,
    /// log p(y_s | y₋ₛ) = log p(y) − log p(y₋ₛ): how well the others predict this shard.
    pub predictive: Estimate,
    /// Effective draws of the posterior without the shard.
    pub ess: f64,
    /// Pareto k̂ of its weights.
    pub k_hat: Option<f64>,
    /// Whether its weights are good enough for the error bars to mean anything.
    pub reliable: bool,
}

/// The evidence without each shard, from weighted draws and log f_s of each of them.
pub(super) fn left_out(
    setting: &Setting,
    weighted: &Weighted,
    by_shard: &[Vec<f64>],
) -> Result<Vec<LeftOut>> {
    let priors = setting.model.free_priors();
    let log_prior: Vec<f64> = (0..weighted.len())
        .map(|k| priors.iter().zip(weighted.thetas.row(k)).map(|(p, &x)| p.log_density(x)).sum())
        .collect();
    let all = weighted.summarise().log_z.value;
    let shards = by_shard.iter().zip(setting.shares()).enumerate();
    shards
        .map(|(s, (log_f, share))| {
            without(&weighted.log_weights, all, log_f, &log_prior, share)
                .map_err(|e| e.for_shard(s))
        })
        .collect()
}

/// `all` is log p(y), the log mean of the weights.
fn without(
    weights: &[f64],
    all: f64,
    log_f: &[f64],
    log_prior: &[f64],
    share: f64,
) -> Result<LeftOut> {
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
    let lost = |w: &f64| w.is_nan() || *w == f64::INFINITY;
    if log_weights.iter().any(lost) || log_weights.iter().all(|w| *w == f64::NEG_INFINITY) {
        return Err(Error::numeric("the evidence without this shard is not a number"));
    }
    // Moments are not wanted here, so the draws need no coordinates.
    let rest = Weighted { thetas: Matrix::zeros(weights.len(), 0), log_weights };
    let seen = rest.summarise();
    let log_z = seen.log_z;
    let predictive = Estimate::new(
        all - log_z.value,
        paired_error(weights, all, &rest.log_weights, log_z.value),
    );
    let reliable = seen.is_reliable();
    Ok(LeftOut { log_z, predictive, ess: seen.ess, k_hat: seen.k_hat, reliable })
}

/// The standard error of log mean a − log mean b, whose terms belong to the same draws: that of the
/// mean of a_k/ā − b_k/b̄.
fn paired_error(log_a: &[f64], log_mean_a: f64, log_b: &[f64], log_mean_b: f64) -> f64 {
    let n = log_a.len() as f64;
    let squares: f64 = log_a
        .iter()
        .zip(log_b)
        .map(|(a, b)| (exp(a - log_mean_a) - exp(b - log_mean_b)).powi(2))
        .sum();
    (squares / (n * (n - 1.0).max(1.0))).sqrt()
}

/// Cautions about shards without which the draws say little. The evidences themselves stand.
pub(super) fn warnings(all: &[LeftOut]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (s, left) in all.iter().enumerate().filter(|(_, left)| !left.reliable) {
        let k_hat = left.k_hat.map(|k| format!(", Pareto k̂ = {k:.2}")).unwrap_or_default();
        let message = format!(
            "what leaving it out does is not well known: {:.0} effective draws{k_hat}",
            left.ess
        );
        let advice = "more `draws` and a smaller se_target may help; comparing without the shard's rows always does";
        let warning = Warning::new(Level::Caution, "leave-one-out", message, advice);
        warnings.push(warning.shard(s).value(left.ess));
    }
    warnings
}
