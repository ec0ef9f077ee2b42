//! One shard's own evidence and moments, by the method that was asked for.

use crate::estimate::bridge::{Bridge, Warp, bridge, moments};
use crate::estimate::chains::SampleDiagnostics;
use crate::estimate::importance::{self, LEAST_ESS, T_DF, T_SHARE, Weighted};
use crate::estimate::newton::{self, Found};
use crate::estimate::search::{self, Search, Settings};
use crate::estimate::{Batch, Chib, Estimate, Laplace, Linear, Mode, Shape};
use crate::math::{Cholesky, LOG_2PI, Matrix, Proposal, Stream, log_mean_exp, log_sum_exp, stream};
use crate::model::{Coordinates, Model, Parameter, Prior, Subposterior, Warped, unbounded};
use crate::question::{Augmentation, Diagnostics, FitOrder, Summary};
use crate::sample::nuts::{Lengths, nuts};
use crate::sample::{Conditional, GibbsDraws, Sample, gibbs};
use crate::study::Local;
use crate::target::Target;
use crate::{Error, Level, Result, Warning};
use std::sync::Arc;

/// Half the squared Newton decrement at which a mode is near enough.
const TOLERANCE: f64 = 1e-9;

/// Runs of draws in a summary.
const BATCHES: usize = 20;

/// The relative error of a bridge, in nats, beyond which it is not to be trusted.
const MOST_BRIDGE_ERROR: f64 = 0.1;

/// A summary, and the draws behind it if a chain made them.
pub struct Fitted {
    /// What leaves the shard.
    pub summary: Summary,
    /// What stays, unless it is to be kept.
    pub sample: Option<Sample>,
}

/// What a fit works on.
struct Task<'a> {
    model: &'a Model,
    target: &'a Subposterior,
    order: &'a FitOrder,
    shard: usize,
    coordinates: Coordinates,
    /// The peaks in z, the largest first.
    peaks: Vec<Mode>,
    /// Where the search for them left off, and the points that it wants weighed next.
    search: Search,
    wanted: Arc<Matrix>,
}

/// Steps after which the search for peaks is given up, and rounds of draws after it.
const ROUNDS: usize = 220;

/// The part of a posterior beside its largest peak that chains may leave out.
const SECOND_PEAK: f64 = 1e-3;

/// Fits a model to one shard.
pub fn fit(model: &Model, target: &Subposterior, order: &FitOrder, shard: usize) -> Result<Fitted> {
    let mut fitted = fit_by_method(model, target, order, shard)?;
    let Summary { log_z, mean, covariance, .. } = &fitted.summary;
    let mut rng = stream(order.seed, model.stream(), shard as u64, "shape");
    fitted.summary.shape = Shape::of(target, log_z.value, mean, covariance, &mut rng);
    Ok(fitted)
}

fn fit_by_method(
    model: &Model,
    target: &Subposterior,
    order: &FitOrder,
    shard: usize,
) -> Result<Fitted> {
    if matches!(order.method, Local::Auto | Local::Quadrature) {
        match quadrature(target)? {
            Some(summary) => return Ok(Fitted { summary, sample: None }),
            None if order.method == Local::Quadrature => {
                return Err(Error::input(
                    "local = \"quadrature\" is for Gaussian models whose coefficients have normal priors, but for one of them (two where log_sd is fixed); use local = \"auto\"",
                ));
            }
            None => {}
        }
    }
    let mut task = Task::new(model, target, order, shard)?;
    let steps = task.search.rounds().0;
    let decrement = task.peaks[0].decrement;
    let mut fitted = task.by(order.method)?;
    let summary = &mut fitted.summary;
    summary.diagnostics.newton_steps = Some(steps);
    // Draws correct a mode that is only near; Laplace's approximation has nothing but the mode.
    if decrement > TOLERANCE && summary.effective.is_none() {
        let message = format!("the search for the mode had not converged after {steps} steps");
        let advice = "standardise the columns with scale(), or use a prior with a smaller spread";
        let warning = Warning::new(Level::Unreliable, "no-convergence", message, advice);
        summary.warnings.push(warning.value(decrement));
    }
    for warning in &mut summary.warnings {
        warning.shard = Some(shard);
    }
    Ok(fitted)
}

/// Fits a model to one shard by Gibbs sampling and keeps this many conditionals of its parameters.
pub fn augment(
    model: &Model,
    target: &Subposterior,
    order: &FitOrder,
    conditionals: usize,
    shard: usize,
) -> Result<Augmentation> {
    let task = Task::new(model, target, order, shard)?;
    let draws = task.gibbs_keeping(conditionals)?;
    let d = target.dim();
    let means = draws.conditionals.iter().flat_map(|c| c.mean.clone()).collect();
    let lower = |c: &Conditional| -> Vec<f64> {
        (0..d).flat_map(|i| c.precision.lower().row(i)[..=i].to_vec()).collect()
    };
    let factors = draws.conditionals.iter().flat_map(lower).collect();
    let mut summary = task.chib(draws)?.summary;
    summary.diagnostics.newton_steps = Some(task.search.rounds().0);
    summary.warnings.iter_mut().for_each(|warning| warning.shard = Some(shard));
    Ok(Augmentation {
        summary,
        means: Matrix::from_rows(conditionals, d, means),
        factors: Matrix::from_rows(conditionals, d * (d + 1) / 2, factors),
    })
}

/// A Gaussian shard with normal priors but for a few: evidence and moments by quadrature.
fn quadrature(target: &Subposterior) -> Result<Option<Summary>> {
    let Some((gaussian, fixed)) = target.likelihood().gaussian() else { return Ok(None) };
    let powered;
    let gaussian = match target.power() {
        1.0 => gaussian,
        power => {
            powered = gaussian.to_the(power);
            &powered
        }
    };
    let found = Linear::new(gaussian, target.priors(), target.share(), fixed)?;
    let Some(found) = found else { return Ok(None) };
    // The mode only serves to tell how normal the posterior is; without one it says nothing.
    let coordinates = Coordinates::new(target.priors(), target.share());
    let mode = newton::find_mode(&Warped::new(target, &coordinates), TOLERANCE, 200).ok();
    let (at, precision) = match &mode {
        Some(Found { mode, .. }) => (
            coordinates.theta(&mode.theta),
            coordinates.precision_of_theta(&mode.theta, &mode.precision),
        ),
        None => match Cholesky::new(&found.covariance) {
            Some(factor) => (found.mean.clone(), factor.inverse()),
            None => return Ok(None),
        },
    };
    Ok(Some(Summary {
        method: Local::Quadrature.name().into(),
        log_z: found.log_z,
        mean: found.mean,
        covariance: found.covariance,
        mode: at,
        precision,
        effective: None,
        batches: Vec::new(),
        shape: None,
        diagnostics: Diagnostics { newton_steps: mode.map(|m| m.steps), ..Diagnostics::default() },
        warnings: Vec::new(),
    }))
}

impl<'a> Task<'a> {
    /// Climbs to the peaks.
    fn new(
        model: &'a Model,
        target: &'a Subposterior,
        order: &'a FitOrder,
        shard: usize,
    ) -> Result<Task<'a>> {
        let coordinates = Coordinates::new(target.priors(), target.share());
        let settings = Settings {
            draws: order.draws,
            se_target: 0.0,
            rounds: ROUNDS,
            even: false,
            single: model.has_one_peak(),
            noise: model.noise(),
            tolerance: TOLERANCE,
        };
        let rng = stream(order.seed, model.stream(), shard as u64, "importance");
        let mut search = Search::new(coordinates.clone(), target.start(), settings, rng);
        let wanted = search::climb(&mut search, target)?;
        let peaks = search.peaks().to_vec();
        unbounded::refuse(model, target, &coordinates.theta(&peaks[0].theta))?;
        Ok(Task { model, target, order, shard, coordinates, peaks, search, wanted })
    }

    fn by(&mut self, method: Local) -> Result<Fitted> {
        match method {
            Local::Laplace => Ok(self.laplace()),
            Local::NutsBridge => self.nuts_bridge(Warp::Normal, method),
            Local::NutsWarp3 => self.nuts_bridge(Warp::Warp3, method),
            Local::NutsImportance => self.nuts_importance(),
            Local::GibbsChib => self.gibbs_chib(),
            Local::GibbsBridge => {
                let sample = Sample { chains: vec![self.gibbs()?.chain] };
                let summary = self.bridged(method, Warp::Warp3, &self.in_z(&sample))?;
                Ok(Fitted { summary, sample: Some(sample) })
            }
            Local::Importance => self.importance(),
            _ => self.auto(),
        }
    }

    /// The target in z.
    fn warped(&self) -> Warped<'_> {
        Warped::new(self.target, &self.coordinates)
    }

    fn stream(&self, purpose: &str) -> Stream {
        stream(self.order.seed, self.model.stream(), self.shard as u64, purpose)
    }

    /// The cheapest method that passes its own diagnostics.
    fn auto(&mut self) -> Result<Fitted> {
        let mut quick = self.importance()?;
        let unfit = quick.summary.warnings.iter().filter(|w| w.level >= Level::Unreliable);
        let why: Vec<String> = unfit.map(|w| w.message.clone()).collect();
        if why.is_empty() || self.target.dim() == 0 {
            return Ok(quick);
        }
        let why = why.join("; ");
        let mut fitted = match self.nuts_bridge(Warp::Warp3, Local::NutsWarp3) {
            Ok(fitted) => fitted,
            Err(error) => {
                let message =
                    format!("by importance sampling {why}; and by {}: {error}", Local::NutsWarp3);
                let advice = "use more draws, fewer shards, or a prior with lighter tails";
                let note = Warning::new(Level::Note, "auto-method", message, advice);
                quick.summary.warnings.push(note);
                return Ok(quick);
            }
        };
        let message = format!("took {} since by importance sampling {why}", Local::NutsWarp3);
        let advice = "nothing needs to be done; local = \"nuts+warp3\" saves the attempt";
        fitted.summary.warnings.push(Warning::new(Level::Note, "auto-method", message, advice));
        Ok(fitted)
    }

    fn summary(&self, method: Local, log_z: Estimate) -> Summary {
        let mode = &self.peaks[0];
        let theta = self.coordinates.theta(&mode.theta);
        let precision = self.coordinates.precision_of_theta(&mode.theta, &mode.precision);
        let covariance = Cholesky::new(&precision).map(|factor| factor.inverse());
        Summary {
            method: method.name().into(),
            log_z,
            mean: theta.clone(),
            covariance: covariance.unwrap_or_else(|| mode.factor.inverse()),
            mode: theta,
            precision,
            effective: None,
            batches: Vec::new(),
            shape: None,
            diagnostics: Diagnostics::default(),
            warnings: Vec::new(),
        }
    }

    fn laplace(&self) -> Fitted {
        let log_z = Estimate { value: Laplace::at(&self.peaks[0]).log_z, se: None };
        let mut summary = self.summary(Local::Laplace, log_z);
        summary.warnings.push(Warning::new(
            Level::Caution,
            "no-error-bar",
            "Laplace's approximation has no error bar",
            "use local = \"importance\" to see how far off it is",
        ));
        Fitted { summary, sample: None }
    }

    fn importance(&mut self) -> Result<Fitted> {
        search::weigh(&mut self.search, self.target, self.wanted.clone())?;
        if let Some(parameter) = self.search.runaway().and_then(|j| self.model.free().nth(j)) {
            return Err(unbounded::infinite(&parameter.name));
        }
        let weighted = self.search.weighted().expect("a search ends with draws");
        Ok(Fitted { summary: self.weighted(Local::Importance, weighted), sample: None })
    }

    /// The summary of weighted draws.
    fn weighted(&self, method: Local, weighted: &Weighted) -> Summary {
        let found = weighted.summarise();
        let mut summary = self.summary(method, found.log_z);
        summary.warnings =
            found.warnings("use more draws, fewer shards, or a prior with lighter tails");
        summary.diagnostics.draws = Some(weighted.len());
        summary.diagnostics.ess = Some(found.ess);
        summary.diagnostics.k_hat = found.k_hat;
        summary.effective = Some(found.ess);
        summary.mean = found.mean;
        summary.covariance = found.covariance;
        summary.batches = weighted.batches(BATCHES);
        let kept = weighted.resampled(0.5);
        let log_f: Vec<f64> = kept.iter().map(|&k| weighted.log_target[k]).collect();
        let draws = kept.iter().map(|&k| weighted.thetas.row(k));
        compare_with_normal(&mut summary, draws, &log_f);
        summary
    }

    fn chains(&self) -> Result<Sample> {
        let lengths = Lengths { draws: self.order.draws, warmup: self.order.warmup };
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
    fn in_theta(&self, sample: &Sample) -> Sample {
        self.carried(
            sample,
            |z| self.coordinates.theta(z),
            |c, z, theta, log_f| c.log_density_of_theta(z, theta, log_f),
        )
    }

    /// Draws of θ as draws of z.
    fn in_z(&self, sample: &Sample) -> Sample {
        self.carried(
            sample,
            |theta| self.coordinates.z(theta),
            |c, theta, z, log_f| c.log_density(z, theta, log_f),
        )
    }

    fn carried(
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

    fn nuts_bridge(&mut self, warp: Warp, method: Local) -> Result<Fitted> {
        if self.target.dim() == 0 {
            return self.importance();
        }
        let sample = self.chains()?;
        let summary = self.bridged(method, warp, &sample)?;
        Ok(Fitted { summary, sample: Some(self.in_theta(&sample)) })
    }

    /// The summary of a chain's draws of z with the evidence of a bridge built on them.
    fn bridged(&self, method: Local, warp: Warp, sample: &Sample) -> Result<Summary> {
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

    fn nuts_importance(&mut self) -> Result<Fitted> {
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

    fn gibbs(&self) -> Result<GibbsDraws> {
        self.gibbs_keeping(0)
    }

    fn gibbs_keeping(&self, conditionals: usize) -> Result<GibbsDraws> {
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

    fn gibbs_chib(&self) -> Result<Fitted> {
        self.chib(self.gibbs()?)
    }

    fn chib(&self, draws: GibbsDraws) -> Result<Fitted> {
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
    fn describe_chains(&self, summary: &mut Summary, sample: &Sample) {
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

/// Notes how far the density strays from the normal one with its moments, as far as draws show it.
fn compare_with_normal<'a>(
    summary: &mut Summary,
    draws: impl Iterator<Item = &'a [f64]>,
    log_f: &[f64],
) {
    let Some(factor) = Cholesky::new(&summary.covariance) else { return };
    let constant = 0.5 * (summary.mean.len() as f64 * LOG_2PI + factor.log_det());
    let (mut least, mut greatest) = (f64::INFINITY, f64::NEG_INFINITY);
    for (theta, log_f) in draws.zip(log_f).filter(|(_, f)| f.is_finite()) {
        let offset: Vec<f64> = theta.iter().zip(&summary.mean).map(|(t, m)| t - m).collect();
        let log_normal = -constant - 0.5 * factor.inverse_quadratic(&offset);
        let ratio = log_f - summary.log_z.value - log_normal;
        (least, greatest) = (least.min(ratio), greatest.max(ratio));
    }
    summary.diagnostics.log_ratio_least = Some(least).filter(|v| v.is_finite());
    summary.diagnostics.log_ratio_greatest = Some(greatest).filter(|v| v.is_finite());
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
