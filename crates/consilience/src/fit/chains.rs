//! A shard's own evidence from Markov chains: NUTS or Gibbs, with a bridge, importance sampling, Chib's estimate or
//! Laplace's approximation.

use super::{BATCHES, Fitted, Summary, Task, compare_with_normal};
use crate::estimate::bridge::{Bridge, Warp, bridge, moments};
use crate::estimate::chains::SampleDiagnostics;
use crate::estimate::importance::{self, LEAST_ESS, T_DF, T_SHARE, error_of_mean};
use crate::estimate::{Batch, Chib, Estimate, Laplace, LaplaceMetropolis};
use crate::math::{Cholesky, Proposal, log_mean_exp, log_sum_exp};
use crate::model::{Coordinates, Parameter, Prior};
use crate::sample::nuts::{NutsLengths, nuts};
use crate::sample::{GibbsDraws, Sample, gibbs};
use crate::study::Local;
use crate::target::Target;
use crate::{Error, Level, Result, Warning};

/// The relative error of a bridge, in nats, beyond which it is not to be trusted.
const MOST_BRIDGE_ERROR: f64 = 0.1;

/// The part of a posterior beside its largest peak that chains may leave out.
const SECOND_PEAK: f64 = 1e-3;

impl Task<'_> {
    pub(super) fn chains(&self) -> Result<Sample> {
        let lengths = NutsLengths { draws: self.order.draws, warmup: self.order.warmup };
        let streams = (0..self.order.chains).map(|c| self.stream(&format!("nuts {c}"))).collect();
        let all = log_sum_exp(&self.peaks.iter().map(|p| Laplace::at(p).log_z).collect::<Vec<_>>());
        if libm::exp(all - Laplace::at(&self.peaks[0]).log_z) > 1.0 + SECOND_PEAK {
            let count = self.peaks.len();
            return Err(Error::numeric(format!(
                "the posterior has {count} peaks, and chains do not pass between them; use local = \"importance\", or combine = \"exact\""
            )));
        }
        nuts(&self.warped(), &self.peaks[0], lengths, streams)
    }

    /// Draws of z as draws of θ.
    pub(super) fn in_theta(&self, sample: &Sample) -> Sample {
        self.carried(
            sample,
            |z| self.coordinates.theta(z),
            |c, z, theta, log_f| c.log_density_of_theta(z, theta, log_f),
        )
    }

    /// Draws of θ as draws of z.
    pub(super) fn in_z(&self, sample: &Sample) -> Sample {
        self.carried(
            sample,
            |theta| self.coordinates.z(theta),
            |c, theta, z, log_f| c.log_density(z, theta, log_f),
        )
    }

    pub(super) fn carried(
        &self,
        sample: &Sample,
        place: impl Fn(&[f64]) -> Vec<f64>,
        density: impl Fn(&Coordinates, &[f64], &[f64], f64) -> f64,
    ) -> Sample {
        let mut out = sample.clone();
        for chain in &mut out.chains {
            for k in 0..chain.thetas.rows() {
                let (from, log_f) = (chain.thetas.row(k).to_vec(), &mut chain.log_density[k]);
                let to = place(&from);
                *log_f = density(&self.coordinates, &from, &to, *log_f);
                chain.thetas.row_mut(k).copy_from_slice(&to);
            }
        }
        out
    }

    pub(super) fn nuts_bridge(&mut self, warp: Warp, method: Local) -> Result<Fitted> {
        if self.target.dim() == 0 {
            return self.importance();
        }
        let sample = self.chains()?;
        let summary = self.bridged(method, warp, &sample)?;
        Ok(Fitted { summary, sample: Some(self.in_theta(&sample)) })
    }

    /// The summary of a chain's draws of z with the evidence of a bridge built on them.
    pub(super) fn bridged(&self, method: Local, warp: Warp, sample: &Sample) -> Result<Summary> {
        let found = bridge(&self.warped(), sample, warp, &mut self.stream("bridge"))?;
        let mut summary = self.summary(method, found.log_z);
        let influences = influences(sample, &found);
        let sample = self.in_theta(sample);
        self.describe_chains(&mut summary, &sample);
        summary.batches = batches(&sample, &influences, found.log_z.value);
        let se = found.log_z.se.unwrap_or(0.0);
        if se > MOST_BRIDGE_ERROR {
            let message = format!("the bridge's error {se:.2} is over {MOST_BRIDGE_ERROR} nats");
            let advice = "use more draws";
            let warning = Warning::new(Level::Unreliable, "bridge-error", message, advice);
            summary.warnings.push(warning.value(se));
        }
        Ok(summary)
    }

    pub(super) fn nuts_importance(&mut self) -> Result<Fitted> {
        if self.target.dim() == 0 {
            return self.importance();
        }
        let sample = self.chains()?;
        let (mean, covariance) = moments(all_draws(&sample), self.target.dim());
        let factor = Cholesky::new(&covariance).ok_or_else(|| {
            Error::numeric("the draws have no positive definite covariance; use more draws")
        })?;
        let proposal = Proposal::from_covariance(mean, &factor, T_SHARE, T_DF);
        let mut rng = self.stream("nuts importance");
        let mut weighted =
            importance::weigh(&self.warped(), &proposal, self.order.draws, &mut rng)?;
        for k in 0..weighted.len() {
            let z = weighted.thetas.row(k).to_vec();
            let theta = self.coordinates.theta(&z);
            let log_f = &mut weighted.log_target[k];
            *log_f = self.coordinates.log_density_of_theta(&z, &theta, *log_f);
            weighted.thetas.row_mut(k).copy_from_slice(&theta);
        }
        let sample = self.in_theta(&sample);
        let mut summary = self.weighted(Local::NutsImportance, &weighted);
        let by_weights = summary.clone();
        self.describe_chains(&mut summary, &sample);
        // The weighted draws are the better ones: they carry the moments.
        summary.mean = by_weights.mean;
        summary.covariance = by_weights.covariance;
        summary.effective = by_weights.effective;
        summary.diagnostics.ess = by_weights.diagnostics.ess;
        Ok(Fitted { summary, sample: Some(sample) })
    }

    /// Laplace's approximation by the draws' covariance, at the best of them. The mode is known here: what the best draw
    /// falls short of it by is part of the error.
    pub(super) fn laplace_metropolis(&mut self) -> Result<Fitted> {
        if self.target.dim() == 0 {
            return self.importance();
        }
        let in_z = self.chains()?;
        let found = LaplaceMetropolis::new(&in_z)?;
        let short = (self.peaks[0].value - found.height).max(0.0);
        let sample = self.in_theta(&in_z);
        let batches = batches(&sample, &found.influence, found.log_z);
        let each: Vec<f64> = batches.iter().map(|b| b.log_z).collect();
        let se = libm::hypot(error_of_mean(&each), short);
        let mut summary = self.summary(Local::LaplaceMetropolis, Estimate::new(found.log_z, se));
        self.describe_chains(&mut summary, &sample);
        summary.batches = batches;
        let message = format!(
            "Laplace–Metropolis takes the posterior as normal, and what that does is not in its error bar; its best draw is {short:.2} nats below the mode"
        );
        let advice = "use local = \"nuts+warp3\" to see how far off it is";
        let warning = Warning::new(Level::Caution, "shape-not-in-error", message, advice);
        summary.warnings.push(warning.value(short));
        Ok(Fitted { summary, sample: Some(sample) })
    }

    pub(super) fn gibbs(&self) -> Result<GibbsDraws> {
        self.gibbs_keeping(0)
    }

    pub(super) fn gibbs_keeping(&self, conditionals: usize) -> Result<GibbsDraws> {
        let other = |p: &&Parameter| !matches!(p.prior, Prior::Normal { .. });
        if let Some(parameter) = self.model.free().find(other) {
            return Err(Error::input(format!(
                "model `{}`: Gibbs sampling needs normal priors, and that of `{}` is {}; use local = \"auto\" and combine = \"exact\"",
                self.model.name, parameter.name, parameter.prior
            )));
        }
        let (draws, warmup) = (self.order.draws, self.order.warmup);
        let mode = self.coordinates.theta(&self.peaks[0].theta);
        let start = Some(mode.as_slice());
        gibbs(self.target, start, draws, warmup, conditionals, &mut self.stream("gibbs"))
    }

    pub(super) fn gibbs_chib(&self) -> Result<Fitted> {
        self.chib(self.gibbs()?)
    }

    pub(super) fn chib(&self, draws: GibbsDraws) -> Result<Fitted> {
        let GibbsDraws { chain, reference, log_ordinates, .. } = draws;
        let found = Chib::new(self.target, &reference, log_ordinates)?;
        let sample = Sample { chains: vec![chain] };
        let mut summary = self.summary(Local::GibbsChib, found.log_z);
        self.describe_chains(&mut summary, &sample);
        // An ordinate above the mean raises the posterior's density at θ*, and so lowers log Z.
        let log_mean = log_mean_exp(&found.log_ordinates);
        let influence: Vec<f64> =
            found.log_ordinates.iter().map(|o| 1.0 - libm::exp(o - log_mean)).collect();
        summary.batches = batches(&sample, &influence, found.log_z.value);
        summary.diagnostics.ess = Some(found.ess);
        summary.warnings.extend(found.warnings("use more draws"));
        Ok(Fitted { summary, sample: Some(sample) })
    }

    /// Moments of a chain's draws, how well it ran, and what to say about that.
    pub(super) fn describe_chains(&self, summary: &mut Summary, sample: &Sample) {
        let seen = sample.diagnose();
        let d = self.target.dim();
        (summary.mean, summary.covariance) = moments(all_draws(sample), d);
        // The bias of estimated moments goes with 1/N per square: the harmonic mean is their N.
        let inverse: f64 =
            seen.parameters.iter().filter_map(|p| p.ess_square).map(|ess| 1.0 / ess).sum::<f64>();
        summary.effective = Some(d as f64 / inverse).filter(|n| n.is_finite());
        let kept: usize = sample.chains.iter().map(|c| c.thetas.rows()).sum();
        summary.warnings.extend(chain_warnings(&seen, kept));
        summary.diagnostics.draws = Some(kept);
        summary.diagnostics.ess = seen.ess_bulk;
        summary.diagnostics.chains = Some(Box::new(seen));
        let log_f: Vec<f64> = sample.chains.iter().flat_map(|c| c.log_density.clone()).collect();
        compare_with_normal(summary, all_draws(sample), &log_f);
    }
}

/// All draws, chain after chain.
fn all_draws(sample: &Sample) -> impl Iterator<Item = &[f64]> + Clone {
    sample.chains.iter().flat_map(|c| (0..c.thetas.rows()).map(|k| c.thetas.row(k)))
}

/// By how much each draw moves log Z. The first half of a chain only fitted the proposal.
fn influences(sample: &Sample, found: &Bridge) -> Vec<f64> {
    let mut second_halves = found.influence.iter();
    let mut out = Vec::new();
    for chain in &sample.chains {
        let rows = chain.thetas.rows();
        out.extend(vec![0.0; rows / 2]);
        let scale = rows as f64 / (rows - rows / 2) as f64;
        out.extend(second_halves.by_ref().take(rows - rows / 2).map(|i| scale * i));
    }
    // The proposals are as many as the second halves' draws; they count for the batches in turn.
    let all = out.len();
    let proposals = &found.proposal_influence;
    for (k, value) in out.iter_mut().enumerate() {
        *value += proposals[k * proposals.len() / all];
    }
    out
}

/// Moments and log Z of consecutive runs of draws.
fn batches(sample: &Sample, influence: &[f64], log_z: f64) -> Vec<Batch> {
    let draws: Vec<&[f64]> = all_draws(sample).collect();
    let d = draws.first().map_or(0, |theta| theta.len());
    (0..BATCHES)
        .map(|b| {
            let range = b * draws.len() / BATCHES..(b + 1) * draws.len() / BATCHES;
            let (mean, covariance) = moments(draws[range.clone()].iter().copied(), d);
            let moved = influence[range.clone()].iter().sum::<f64>() / range.len() as f64;
            Batch { log_weight: 0.0, log_z: log_z + moved, mean, covariance }
        })
        .collect()
}

/// Warnings about a chain that did not run well.
fn chain_warnings(seen: &SampleDiagnostics, kept: usize) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let advice = "use more draws and a longer warmup, or standardise the columns with scale()";
    if let Some(r_hat) = seen.r_hat.filter(|r| *r > 1.05) {
        let message = format!("the chain has not mixed: R̂ = {r_hat:.3} is over 1.05");
        warnings.push(Warning::new(Level::Unreliable, "not-mixed", message, advice).value(r_hat));
    } else if let Some(r_hat) = seen.r_hat.filter(|r| *r > 1.01) {
        let message = format!("the chain mixes slowly: R̂ = {r_hat:.3} is over 1.01");
        warnings.push(Warning::new(Level::Caution, "slow-mixing", message, advice).value(r_hat));
    }
    if seen.r_hat.is_none() {
        let message = "a parameter never moved: R̂ cannot be told";
        warnings.push(Warning::new(Level::Unreliable, "stuck", message, advice));
    }
    if let Some(ess) = seen.ess_bulk.filter(|ess| *ess < LEAST_ESS) {
        let message = format!("only {ess:.0} effective draws (at least {LEAST_ESS})");
        warnings.push(Warning::new(Level::Unreliable, "low-ess", message, advice).value(ess));
    }
    let count = seen.divergences;
    let message = format!("{count} of {kept} trajectories diverged");
    if count * 100 > kept {
        let warning = Warning::new(Level::Unreliable, "many-divergences", message, advice);
        warnings.push(warning.value(count as f64));
    } else if count > 0 {
        let warning = Warning::new(Level::Caution, "divergences", message, advice);
        warnings.push(warning.value(count as f64));
    }
    if let Some(e_bfmi) = seen.e_bfmi.filter(|e| *e < 0.3) {
        let message = format!("the energy hardly moves: E-BFMI = {e_bfmi:.2} is under 0.3");
        warnings.push(Warning::new(Level::Caution, "e-bfmi", message, advice).value(e_bfmi));
    }
    warnings
}
