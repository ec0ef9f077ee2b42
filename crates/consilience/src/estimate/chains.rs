//! Diagnostics of Markov chains: have they met, and how many independent draws are they worth?
//!
//! As in Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), *Rank-normalization, folding, and
//! localization: an improved R̂ for assessing convergence of MCMC*, and with the conventions of Stan,
//! posterior (R) and ArviZ (Python), to whose numbers these are tested. Where those differ:
//!
//! - one chain has an R̂, that of its two halves (posterior; ArviZ wants two chains);
//! - what cannot be told is `None`: too few draws, one that is not finite, or draws that do not move
//!   (posterior; ArviZ calls constant draws all independent);
//! - an ESS needs ten draws a chain. (Fewer are not enough for a single step of Geyer's rule, and the
//!   others then report the upper bound, n·log10 n.)

use crate::math::dot;
use crate::math::fft::LagProducts;
use crate::math::special::normal_quantile;
use crate::sample::Sample;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// The fewest draws in a chain that R̂ is computed from.
const LEAST_DRAWS: usize = 4;
/// The fewest draws in half a chain that autocorrelations are computed from.
const LEAST_HALF: usize = 5;

/// What the draws of one parameter are worth. `None`: it cannot be told, which is a reason not to
/// trust them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParameterDiagnostics {
    /// Rank-normalised split R̂, the larger one of place and spread: 1 if all chains, and the halves
    /// of each, look alike.
    pub r_hat: Option<f64>,
    /// Effective draws for the centre of the distribution: those of the rank-normalised values.
    pub ess_bulk: Option<f64>,
    /// Effective draws for its tails: the fewer of those for the 5 % and the 95 % quantile.
    pub ess_tail: Option<f64>,
    /// Effective draws for the variance: those of (θ − mean)². Chains that go from side to side have
    /// many more effective draws than draws for the mean and fewer for this.
    pub ess_square: Option<f64>,
    /// Monte Carlo standard error of the mean.
    pub mcse_mean: Option<f64>,
    /// Monte Carlo standard error of the standard deviation.
    pub mcse_sd: Option<f64>,
}

/// What a sample is worth. A worst value is `None` as soon as that of one parameter is: a parameter
/// that never moved must not hide behind the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleDiagnostics {
    /// Each parameter's.
    pub parameters: Vec<ParameterDiagnostics>,
    /// The largest R̂ of a parameter.
    pub r_hat: Option<f64>,
    /// The fewest effective draws for the bulk of a parameter.
    pub ess_bulk: Option<f64>,
    /// The fewest effective draws for the tails of a parameter.
    pub ess_tail: Option<f64>,
    /// The fewest effective draws for squares: of all parameters' (θ − mean)² and of log f(θ), which
    /// is near the mode a weighted sum of all squares and products.
    pub ess_square: Option<f64>,
    /// The smallest E-BFMI of a chain; `None` where the sampler has no energies. Below 0.3 the
    /// energy changes too little from draw to draw to explore the tails.
    pub e_bfmi: Option<f64>,
    /// Trajectories that diverged, in all chains together.
    pub divergences: usize,
}

impl Sample {
    /// Diagnoses all parameters.
    pub fn diagnose(&self) -> SampleDiagnostics {
        let dimension = self.chains.first().map_or(0, |chain| chain.thetas.cols());
        let length = self.chains.first().map_or(0, |chain| chain.thetas.rows());
        let lags = LagProducts::new(length / 2);
        let parameters: Vec<ParameterDiagnostics> = (0..dimension)
            .into_par_iter()
            .map(|j| FlatDraws::new(&self.values(|theta| theta[j])))
            .map(|draws| draws.map_or_else(ParameterDiagnostics::unknown, |d| d.diagnose(&lags)))
            .collect();
        let log_density: Vec<&[f64]> = self.chains.iter().map(|c| &c.log_density[..]).collect();
        let ess_log_density = FlatDraws::new(&log_density).and_then(|draws| draws.ess(&lags));
        let each = || parameters.iter();
        SampleDiagnostics {
            r_hat: worst(each().map(|p| p.r_hat), f64::max),
            ess_bulk: worst(each().map(|p| p.ess_bulk), f64::min),
            ess_tail: worst(each().map(|p| p.ess_tail), f64::min),
            ess_square: worst(each().map(|p| p.ess_square).chain([ess_log_density]), f64::min),
            e_bfmi: worst(self.chains.iter().map(|chain| e_bfmi(&chain.energy)), f64::min),
            divergences: self.chains.iter().map(|chain| chain.divergences).sum(),
            parameters,
        }
    }

    /// Effective draws for the mean of any function of θ, such as a product of two parameters.
    pub fn ess_of(&self, function: impl Fn(&[f64]) -> f64) -> Option<f64> {
        let values = self.values(function);
        ess(&values.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// A function's values, chain by chain.
    fn values(&self, function: impl Fn(&[f64]) -> f64) -> Vec<Vec<f64>> {
        let of_chain = |thetas: &crate::math::Matrix| {
            (0..thetas.rows()).map(|k| function(thetas.row(k))).collect()
        };
        self.chains.iter().map(|chain| of_chain(&chain.thetas)).collect()
    }
}

/// The worst of all, or none if one cannot be told.
fn worst(values: impl Iterator<Item = Option<f64>>, pick: fn(f64, f64) -> f64) -> Option<f64> {
    values.collect::<Option<Vec<f64>>>()?.into_iter().reduce(pick)
}

impl ParameterDiagnostics {
    /// The diagnostics of one quantity, given its value per draw and chain.
    ///
    /// # Panics
    ///
    /// If chains are not of equal length.
    pub fn new(chains: &[&[f64]]) -> ParameterDiagnostics {
        let Some(draws) = FlatDraws::new(chains) else { return ParameterDiagnostics::unknown() };
        draws.diagnose(&draws.lags())
    }

    fn unknown() -> ParameterDiagnostics {
        ParameterDiagnostics {
            r_hat: None,
            ess_bulk: None,
            ess_tail: None,
            ess_square: None,
            mcse_mean: None,
            mcse_sd: None,
        }
    }
}

/// Effective draws for the mean of a quantity, given its value per draw and chain: draws divided by
/// [`integrated_autocorrelation`].
///
/// # Panics
///
/// If chains are not of equal length.
pub fn ess(chains: &[&[f64]]) -> Option<f64> {
    let draws = FlatDraws::new(chains)?;
    draws.ess(&draws.lags())
}

/// How many draws are worth one independent draw for the mean of a quantity:
///
/// ```text
/// τ = 1 + 2 Σ ρ_t
/// ```
///
/// with the autocorrelations ρ_t of all halves of chains together, which do not fall to 0 if those
/// have different means, summed up to where Geyer's (1992) initial monotone sequence ends. Below 1
/// for chains that go from side to side, but not below 1/log10(draws), where the noise of the sum
/// takes over.
///
/// # Panics
///
/// If chains are not of equal length.
pub fn integrated_autocorrelation(chains: &[&[f64]]) -> Option<f64> {
    let draws = FlatDraws::new(chains)?;
    draws.split().autocorrelation_time(&draws.lags())
}

/// The estimated Bayesian fraction of missing information of one chain's energies (Betancourt 2016):
///
/// ```text
/// Σ (E_t − E_(t−1))² / Σ (E_t − mean)²
/// ```
///
/// Independent energies have 2, a random walk has nearly 0.
pub fn e_bfmi(energy: &[f64]) -> Option<f64> {
    let steps: f64 = energy.windows(2).map(|e| (e[1] - e[0]).powi(2)).sum();
    let mean = mean(energy)?;
    let squares: f64 = energy.iter().map(|e| (e - mean).powi(2)).sum();
    Some(steps / squares).filter(|ratio| ratio.is_finite())
}

/// The mean, exact if all values are equal.
fn mean(values: &[f64]) -> Option<f64> {
    let first = *values.first()?;
    Some(first + values.iter().map(|v| v - first).sum::<f64>() / values.len() as f64)
}

/// The variance with n − 1, exactly 0 if all values are equal.
fn variance(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Some(squares / (values.len() as f64 - 1.0))
}

/// The draws of one quantity: finite, chain after chain.
struct FlatDraws {
    values: Vec<f64>,
    /// Of a chain.
    length: usize,
}

impl FlatDraws {
    /// `None` if there are too few, or one is not finite.
    fn new(chains: &[impl AsRef<[f64]>]) -> Option<FlatDraws> {
        let length = chains.first()?.as_ref().len();
        assert!(chains.iter().all(|c| c.as_ref().len() == length), "chains of different lengths");
        let values = chains.iter().flat_map(|c| c.as_ref()).copied().collect::<Vec<f64>>();
        let usable = length >= LEAST_DRAWS && values.iter().all(|v| v.is_finite());
        usable.then_some(FlatDraws { values, length })
    }

    fn map(&self, function: impl Fn(f64) -> f64) -> FlatDraws {
        FlatDraws {
            values: self.values.iter().map(|&v| function(v)).collect(),
            length: self.length,
        }
    }

    /// Halves of chains as chains, so that a chain that drifts differs from itself. The draw in the
    /// middle of an odd number is left out.
    fn split(&self) -> FlatDraws {
        let half = self.length / 2;
        let halves = self.values.chunks_exact(self.length);
        let halves = halves.flat_map(|c| [&c[..half], &c[self.length - half..]]).flatten();
        FlatDraws { values: halves.copied().collect(), length: half }
    }

    fn chains(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks_exact(self.length)
    }

    /// What halves of these chains are transformed with.
    fn lags(&self) -> LagProducts {
        LagProducts::new(self.length / 2)
    }

    fn diagnose(&self, lags: &LagProducts) -> ParameterDiagnostics {
        let halves = self.split();
        let normal = halves.rank_normalised();
        let mut sorted = self.values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let draws = self.values.len() as f64;
        let error_of_mean = || {
            let variance = variance(&self.values)?;
            Some((variance / self.ess(lags)?).sqrt())
        };
        let mean = mean(&self.values).expect("draws are not empty");
        let squares = self.map(|v| (v - mean).powi(2));
        let ess_square = squares.ess(lags);
        let error_of_sd = || {
            // The delta method: the variance of √v is that of v over 4v.
            let second = squares.values.iter().sum::<f64>() / draws;
            let fourth = squares.values.iter().map(|s| s * s).sum::<f64>() / draws;
            let spread = (fourth - second * second).max(0.0);
            Some((spread / ess_square? / (4.0 * second)).sqrt())
        };
        ParameterDiagnostics {
            r_hat: halves.r_hat(&normal, &sorted),
            ess_bulk: normal.effective(lags),
            ess_tail: self.ess_tail(&sorted, lags),
            ess_square,
            mcse_mean: error_of_mean().filter(|e| e.is_finite()),
            mcse_sd: error_of_sd().filter(|e| e.is_finite()),
        }
    }

    /// Effective draws for the mean.
    fn ess(&self, lags: &LagProducts) -> Option<f64> {
        self.split().effective(lags)
    }

    /// Effective draws for the 5 % and the 95 % quantile, the fewer. A quantile on one side of which
    /// there are no draws (of a quantity with few values) has no say.
    fn ess_tail(&self, sorted: &[f64], lags: &LagProducts) -> Option<f64> {
        let ess = |percent| {
            let quantile = quantile(sorted, percent);
            self.map(|v| f64::from(u8::from(v <= quantile))).ess(lags)
        };
        [ess(5), ess(95)].into_iter().flatten().reduce(f64::min)
    }

    /// Rank-normalised R̂ of these chains, whose rank-normalised values are at hand, and the sorted values
    /// of the chains that they are halves of: the larger one
    /// of the values, which tells chains of different place, and of their distances to the median,
    /// which tells chains of different spread.
    fn r_hat(&self, normal: &FlatDraws, sorted: &[f64]) -> Option<f64> {
        let place = normal.scale_reduction()?;
        let mut own = Vec::new();
        if sorted.len() != self.values.len() {
            // A draw in the middle was left out.
            own.clone_from(&self.values);
            own.sort_unstable_by(f64::total_cmp);
        }
        let median = quantile(if own.is_empty() { sorted } else { &own }, 50);
        let folded = self.map(|v| (v - median).abs()).rank_normalised();
        // A quantity of two values has but one distance.
        Some(folded.scale_reduction().map_or(place, |spread| spread.max(place)))
    }

    /// Gelman & Rubin's √(variance of all draws / variance within chains); `None` if no chain moves.
    fn scale_reduction(&self) -> Option<f64> {
        let n = self.length as f64;
        let (within, between) = self.variances()?;
        Some(((between / within * n + n - 1.0) / n).sqrt())
    }

    /// The mean variance of a chain and the variance of the chains' means; `None` if the former is 0.
    fn variances(&self) -> Option<(f64, f64)> {
        let each = self.chains().map(variance).collect::<Option<Vec<f64>>>()?;
        let within = each.iter().sum::<f64>() / each.len() as f64;
        let means = self.chains().map(mean).collect::<Option<Vec<f64>>>()?;
        let between = variance(&means)?;
        (within > 0.0 && (within + between).is_finite()).then_some((within, between))
    }

    /// The normal quantiles of the values' ranks among all, as Blom (1958) places them:
    ///
    /// ```text
    /// Φ⁻¹((rank − 3/8) / (n + 1/4))
    /// ```
    ///
    /// Equal values share the mean of their ranks.
    fn rank_normalised(&self) -> FlatDraws {
        let n = self.values.len();
        let mut sorted: Vec<(f64, usize)> = self.values.iter().copied().zip(0..).collect();
        sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut values = vec![0.0; n];
        let mut below = 0;
        for equal in sorted.chunk_by(|a, b| a.0 == b.0) {
            let rank = below as f64 + (equal.len() as f64 + 1.0) / 2.0;
            let z = normal_quantile((rank - 0.375) / (n as f64 + 0.25));
            equal.iter().for_each(|&(_, i)| values[i] = z);
            below += equal.len();
        }
        FlatDraws { values, length: self.length }
    }

    /// Effective draws of chains that are split already.
    fn effective(&self, lags: &LagProducts) -> Option<f64> {
        Some(self.values.len() as f64 / self.autocorrelation_time(lags)?)
    }

    /// See [`integrated_autocorrelation`]; of chains that are split already.
    fn autocorrelation_time(&self, lags: &LagProducts) -> Option<f64> {
        if self.length < LEAST_HALF {
            return None;
        }
        let (n, all) = (self.length as f64, self.values.len() as f64);
        let (within, between) = self.variances()?;
        let total = within * (n - 1.0) / n + between;
        let means = self.chains().map(mean).collect::<Option<Vec<f64>>>()?;
        let centred = self.chains().zip(&means).flat_map(|(c, m)| c.iter().map(move |v| v - m));
        let mut products = Products::new(centred.collect(), self.length, lags);
        let mut correlation = |lag: usize| 1.0 - (within - products.at(lag) / all) / total;
        // In a reversible chain the sums of neighbouring pairs are positive and fall. Where they
        // cease to be positive there is only noise, and the last pair counts with a half.
        let (mut even, mut odd) = (1.0, correlation(1));
        let (mut sum, mut least) = (0.0, f64::INFINITY);
        let mut lag = 2;
        while even + odd > 0.0 && lag + 2 < self.length {
            least = (even + odd).min(least);
            sum += least;
            (even, odd) = (correlation(lag), correlation(lag + 1));
            lag += 2;
        }
        let time = 2.0 * sum - 1.0 + even.max(0.0);
        // (Draws so large that their squares overflow.)
        (!time.is_nan()).then(|| time.max(1.0 / libm::log10(all)))
    }
}

/// Σ over chains of Σ x_t·x_(t+k): one by one for the first lags, which are all that a chain in good
/// order needs, and from then on for all lags at once.
struct Products<'a> {
    values: Vec<f64>,
    length: usize,
    lags: &'a LagProducts,
    all: Option<Vec<f64>>,
}

impl<'a> Products<'a> {
    /// Lags for which a sum each is cheaper than a transform for all.
    const FIRST: usize = 32;

    fn new(values: Vec<f64>, length: usize, lags: &'a LagProducts) -> Products<'a> {
        Products { values, length, lags, all: None }
    }

    fn at(&mut self, lag: usize) -> f64 {
        if lag < Products::FIRST {
            let chains = self.values.chunks_exact(self.length);
            return chains.map(|x| dot(&x[lag..], &x[..self.length - lag])).sum();
        }
        self.all.get_or_insert_with(|| self.lags.sums(&self.values))[lag]
    }
}

/// A quantile between the nearest two of the sorted values, as R does by default (type 7). In whole
/// numbers, so that it is exactly one of them where it should be.
fn quantile(sorted: &[f64], percent: usize) -> f64 {
    let place = (sorted.len() - 1) * percent;
    let (below, rest) = (place / 100, place % 100);
    let low = sorted[below];
    if rest == 0 { low } else { low + (sorted[below + 1] - low) * (rest as f64 / 100.0) }
}
