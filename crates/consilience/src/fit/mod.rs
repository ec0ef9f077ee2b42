//! One shard's own evidence and moments, by the method that was asked for.

mod chains;
mod explore;
mod pair;
mod report;

pub use explore::{
    Exploration, ExploreOrder, MOST_NUMBERS, VISIT_BATCHES, VisitMoments, Visited, explore,
};
pub use pair::Factor;
pub use report::{Augmentation, Diagnostics, FitOrder, Summary};

use crate::estimate::bridge::Warp;
use crate::estimate::importance::Weighted;
use crate::estimate::newton::{self, NewtonFound};
use crate::estimate::search::{self, Search, Settings};
use crate::estimate::{Estimate, Laplace, Linear, Mode, Shape};
use crate::math::{Cholesky, LOG_2PI, Matrix, Stream, stream};
use crate::model::{Coordinates, Model, Subposterior, Warped, unbounded};
use crate::sample::{Conditional, Sample};
use crate::study::Local;
use crate::target::Target;
use crate::{Error, Level, Result, Warning};
use std::sync::Arc;

/// Half the squared Newton decrement at which a mode is near enough.
const TOLERANCE: f64 = 1e-9;

/// Runs of draws in a summary.
pub const BATCHES: usize = 20;

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
        Some(NewtonFound { mode, .. }) => (
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
            mirrored: false,
            few: None,
            single: model.has_one_peak(),
            from_prior: true,
            noise: model.noise(),
            tolerance: TOLERANCE,
        };
        let rng = stream(order.seed, model.stream(), shard as u64, "importance");
        let mut search = Search::new(coordinates.clone(), target.start(), settings, rng);
        let wanted = search::climb(&mut search, target)?;
        let peaks = search.peaks().to_vec();
        let Some(best) = peaks.first() else {
            return Err(Error::numeric(
                "no peak of the posterior was found; see whether priors and data are far apart",
            ));
        };
        unbounded::refuse(model, target, &coordinates.theta(&best.theta))?;
        Ok(Task { model, target, order, shard, coordinates, peaks, search, wanted })
    }

    fn by(&mut self, method: Local) -> Result<Fitted> {
        match method {
            Local::Laplace => Ok(self.laplace()),
            Local::NutsBridge => self.nuts_bridge(Warp::Normal, method),
            Local::NutsWarp3 => self.nuts_bridge(Warp::Warp3, method),
            Local::NutsImportance => self.nuts_importance(),
            Local::LaplaceMetropolis => self.laplace_metropolis(),
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
