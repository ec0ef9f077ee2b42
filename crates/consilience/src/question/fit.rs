//! The shard's own evidence and moments.

use super::Kind;
use super::checks::{self, Fault, ensure, numbers};
use crate::fit::{FitOrder, Summary, fit};
use crate::math::Matrix;
use crate::model::{Model, Share};
use crate::shard::Shard;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::sync::Arc;

/// Asks for log Z_s with its error, moments and diagnostics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// The model.
    pub model: Arc<Model>,
    /// The shard's share of the prior.
    pub share: Share,
    /// How.
    pub order: FitOrder,
    /// Whether the draws of its chains are wanted too.
    pub draws: bool,
}

/// What a shard answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FitAnswer {
    /// Evidence and moments.
    pub summary: Summary,
    /// The draws of every chain, one per row, if they were asked for and there are chains.
    pub draws: Vec<Matrix>,
}

impl Kind for Fit {
    const NAME: &'static str = "fit";

    type Answer = FitAnswer;

    fn models(&self) -> Vec<&Arc<Model>> {
        vec![&self.model]
    }

    fn check(&self) -> Fault {
        checks::model(&self.model)?;
        checks::share(self.share)?;
        checks::order(&self.order)
    }

    fn answer(&self, shard: &Shard) -> Result<FitAnswer> {
        let fitted = shard.on_target(&self.model, self.share, |target| {
            fit(&self.model, &target.with_power(self.order.power), &self.order, shard.index())
        })?;
        let chains = fitted.sample.filter(|_| self.draws).map(|sample| sample.chains);
        let draws = chains.unwrap_or_default().into_iter().map(|chain| chain.thetas).collect();
        Ok(FitAnswer { summary: fitted.summary, draws })
    }

    fn accept(&self, answer: &FitAnswer) -> Fault {
        let (d, chains) = (self.model.dim(), &answer.draws);
        checks::summary(&answer.summary, d)?;
        let kept = if self.draws { self.order.chains } else { 0 };
        let sound =
            |chain: &Matrix| chain.rows() <= self.order.draws && chain.is_sound(chain.rows(), d);
        ensure(
            chains.len() <= kept && chains.iter().all(sound),
            "it has draws that were not asked for, or that are not finite",
        )
    }

    /// The draws of a site's chains stay with the site, whoever asks.
    fn hush(
        &self,
        _answer: &mut FitAnswer,
        _shard: &Shard,
        _site: &str,
        _min_rows: u64,
    ) -> Result<()> {
        if self.draws {
            return Err(Error::input(
                "the question asks for the draws of this site's chains, which stay here; nothing is answered",
            ));
        }
        Ok(())
    }

    fn explain(&self) -> String {
        format!(
            "fit of the model `{}`: the site's own log evidence by {}, posterior mean, mode, covariance and precision, and diagnostics{}",
            crate::error::clip(&self.model.name),
            self.order.method,
            if self.draws { "; and the draws of its chains" } else { "" }
        )
    }

    fn explain_answer(answer: &FitAnswer) -> String {
        let mut out = told(&answer.summary);
        if !answer.draws.is_empty() {
            let draws: usize = answer.draws.iter().map(Matrix::rows).sum();
            let _ = writeln!(out, "  {draws} draws of {} chains", answer.draws.len());
        }
        out
    }

    fn draws(&self) -> u64 {
        self.order.all_draws()
    }

    fn largest_answer(&self) -> u64 {
        let d = self.model.dim() as u64 + 1;
        let draws = if self.draws { self.order.all_draws() } else { 0 };
        largest_summary(&self.model) + 10 * draws.saturating_mul(d)
    }
}

/// At most how many bytes a summary takes: a covariance per batch of draws, and some words.
pub(super) fn largest_summary(model: &Model) -> u64 {
    const MATRICES: u64 = 64;
    const WORDS: u64 = 512 << 10;
    let d = model.dim() as u64 + 1;
    WORDS + 8 * MATRICES * d * d
}

pub(super) fn told(summary: &Summary) -> String {
    let d = summary.mean.len();
    let method = crate::error::clip(&summary.method);
    let mut out = format!("  how it was computed: {method}\n");
    let _ = writeln!(
        out,
        "  log evidence: {} (standard error {:?})",
        summary.log_z.value, summary.log_z.se
    );
    let _ = writeln!(out, "  posterior mean: {}", numbers(&summary.mean));
    let _ = writeln!(out, "  posterior mode: {}", numbers(&summary.mode));
    let _ =
        writeln!(out, "  posterior covariance, and precision at the mode: {d} × {d} numbers each");
    let batches = summary.batches.len();
    let _ = writeln!(out, "  log evidence, mean and covariance of {batches} batches of draws");
    if let Some(shape) = summary.shape {
        let _ = writeln!(
            out,
            "  how far it is from a normal, in nats: {} on average, variance {}",
            shape.mean, shape.variance
        );
    }
    let _ = writeln!(out, "  diagnostics, and {} warnings", summary.warnings.len());
    out
}
