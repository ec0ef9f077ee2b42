//! Gibbs sampling of one shard's subposterior by data augmentation.
//!
//! Given latent variables the likelihood is normal in θ, and with normal priors so is the conditional
//!
//! ```text
//! θ | latents ~ N(m, V),   V⁻¹ = X'ΩX + w·V₀⁻¹,   m = V·(X'v + w·V₀⁻¹m₀)
//!
//! logistic   ω ~ PG(count, η) per row;                Ω = diag(ω),       v = total − count/2 − ω·offset
//! probit     s = Σ of count latents N(η, 1) per row,
//!            positive where y = 1, else negative;     Ω = diag(count),   v = s − count·offset
//! ```
//!
//! with η = x'θ + offset (Polson, Scott & Windle 2013; Albert & Chib 1993). Rows that were merged need
//! only these sums, so merging stays exact.

use super::truncated::positive_normal;
use super::{Chain, PolyaGamma};
use crate::kernel::Rows;
use crate::math::ziggurat::normal;
use crate::math::{Cholesky, LOG_2PI, Matrix, Stream, dot};
use crate::model::{Family, Prior, Subposterior};
use crate::target::Target;
use crate::{Error, Result};

/// Draws by Gibbs sampling, and the conditional densities that Chib's estimator averages.
#[derive(Debug, Clone)]
pub struct GibbsDraws {
    /// The draws.
    pub chain: Chain,
    /// θ*, a point of high density.
    pub reference: Vec<f64>,
    /// log p(θ*|latents) = log N(θ*; m, V) per draw.
    pub log_ordinates: Vec<f64>,
    /// Those conditionals that were asked for.
    pub conditionals: Vec<Conditional>,
}

/// Draws from a subposterior with a logistic or probit likelihood and normal priors.
///
/// The chain begins at `start` (best the mode), or where the target's own search would. The first
/// `warmup` draws are left out; θ* is the mean that the second half of them estimates, or the
/// starting point if there are none. `keep` conditionals, evenly spaced along the chain, are kept.
pub fn gibbs(
    target: &Subposterior,
    start: Option<&[f64]>,
    draws: usize,
    warmup: usize,
    keep: usize,
    rng: &mut Stream,
) -> Result<GibbsDraws> {
    let mut sampler = Sampler::new(target)?;
    let d = target.dim();
    let mut theta = start.map_or_else(|| target.start(), <[f64]>::to_vec);
    if theta.len() != d {
        let found = theta.len();
        return Err(Error::input(format!("a start with {found} coordinates, and θ has {d}")));
    }
    let mut reference = vec![0.0; d];
    let averaged = warmup.div_ceil(2);
    for k in 0..warmup {
        go_on(target)?;
        let conditional = sampler.conditional(&theta, rng)?;
        if k >= warmup - averaged {
            // The conditional means have θ's own mean and less noise.
            for (r, m) in reference.iter_mut().zip(&conditional.mean) {
                *r += m / averaged as f64;
            }
        }
        conditional.draw(&mut theta, rng);
    }
    if warmup == 0 {
        reference.copy_from_slice(&theta);
    }

    let mut thetas = Matrix::zeros(draws, d);
    let mut log_ordinates = Vec::with_capacity(draws);
    let mut conditionals = Vec::with_capacity(keep);
    for k in 0..draws {
        go_on(target)?;
        let conditional = sampler.conditional(&theta, rng)?;
        log_ordinates.push(conditional.log_density(&reference));
        conditional.draw(&mut theta, rng);
        thetas.row_mut(k).copy_from_slice(&theta);
        if (k + 1) * keep / draws > k * keep / draws {
            conditionals.push(conditional);
        }
    }
    let mut log_density = vec![0.0; draws];
    target.log_densities(&thetas, &mut log_density);
    let chain = Chain { thetas, log_density, energy: Vec::new(), divergences: 0 };
    Ok(GibbsDraws { chain, reference, log_ordinates, conditionals })
}

/// An error if nobody wants the draws any more.
fn go_on(target: &Subposterior) -> Result<()> {
    if target.is_called_off() { Err(Error::Stopped) } else { Ok(()) }
}

/// θ given the latent variables: a normal density.
#[derive(Debug, Clone)]
pub struct Conditional {
    /// Its mean.
    pub mean: Vec<f64>,
    /// The factor of its precision matrix.
    pub precision: Cholesky,
}

impl Conditional {
    fn draw(&self, theta: &mut [f64], rng: &mut Stream) {
        let noise: Vec<f64> = theta.iter().map(|_| normal(rng)).collect();
        let step = self.precision.solve_upper(&noise);
        for ((t, m), s) in theta.iter_mut().zip(&self.mean).zip(step) {
            *t = m + s;
        }
    }

    fn log_density(&self, theta: &[f64]) -> f64 {
        let d = theta.len();
        let off: Vec<f64> = theta.iter().zip(&self.mean).map(|(t, m)| t - m).collect();
        // |L'x|², the columns of L taken one after the other.
        let lower = self.precision.lower();
        let image = |j: usize| (j..d).map(|i| lower[(i, j)] * off[i]).sum::<f64>();
        let image: Vec<f64> = (0..d).map(image).collect();
        0.5 * (self.precision.log_det() - d as f64 * LOG_2PI - dot(&image, &image))
    }
}

struct Sampler<'a> {
    chunks: Vec<RowChunk<'a>>,
    latents: Latents,
    /// w·V₀⁻¹, and w·V₀⁻¹m₀.
    prior_precision: Vec<f64>,
    prior_pull: Vec<f64>,
}

/// Some of the rows, with η, v and ω of each.
struct RowChunk<'a> {
    rows: &'a Rows,
    eta: Vec<f64>,
    v: Vec<f64>,
    weights: Vec<f64>,
}

enum Latents {
    Logistic(PolyaGamma),
    /// The conditional precision does not depend on the latents.
    Probit(Cholesky),
}

impl<'a> Sampler<'a> {
    fn new(target: &'a Subposterior) -> Result<Sampler<'a>> {
        if target.power() != 1.0 {
            let message =
                "Gibbs sampling does not know likelihoods to a power; use local = \"auto\"";
            return Err(Error::input(message));
        }
        if target.likelihood().gaussian().is_some() {
            return Err(unsupported(Family::Gaussian));
        }
        let Some(regression) = target.likelihood().regression() else {
            let message = "Gibbs sampling is for logistic and probit models, and this likelihood is none of ours; use local = \"auto\"";
            return Err(Error::input(message));
        };
        if let Some(family) = regression.cases() {
            return Err(unsupported(family));
        }
        let Some(rows) = regression.rows() else {
            let message = "Gibbs sampling visits every row for every draw, and there is no room for them all; allow more with --memory, use more shards, or use local = \"auto\"";
            return Err(Error::input(message));
        };
        let (mut prior_precision, mut prior_pull) = (Vec::new(), Vec::new());
        for (j, prior) in target.priors().iter().enumerate() {
            let Prior::Normal { mean, sd } = *prior else {
                return Err(Error::input(format!(
                    "Gibbs sampling needs normal priors, and that of parameter {} is {prior}",
                    j + 1
                )));
            };
            let precision = target.share() / (sd * sd);
            prior_precision.push(precision);
            prior_pull.push(precision * mean);
        }
        let mut numbers = rows.iter().flat_map(|r| r.counts().iter().chain(r.totals()));
        if numbers.any(|c| c.fract() != 0.0) {
            let message = "Gibbs sampling needs whole weights and outcomes of 0 or 1";
            return Err(Error::input(message));
        }
        let latents = match rows[0].family() {
            Family::Logistic => Latents::Logistic(PolyaGamma::new()),
            Family::Probit => Latents::Probit(factor(regression.gram(), &prior_precision)?),
            other => return Err(unsupported(other)),
        };
        let chunk = |rows: &'a Rows| {
            let none = vec![0.0; rows.counts().len()];
            RowChunk { rows, eta: none.clone(), v: none.clone(), weights: none }
        };
        let chunks = rows.into_iter().map(chunk).collect();
        Ok(Sampler { chunks, latents, prior_precision, prior_pull })
    }

    /// Draws the latent variables given θ.
    fn conditional(&mut self, theta: &[f64], rng: &mut Stream) -> Result<Conditional> {
        let mut pull = self.prior_pull.clone();
        let mut gram = Matrix::zeros(theta.len(), theta.len());
        for chunk in &mut self.chunks {
            chunk.draw(theta, &self.latents, rng)?;
            let own = chunk.rows.transposed_times(&chunk.v);
            pull.iter_mut().zip(own).for_each(|(pull, own)| *pull += own);
            if matches!(self.latents, Latents::Logistic(_)) {
                gram.add_scaled(1.0, &chunk.rows.gram_weighted(&chunk.weights));
            }
        }
        let precision = match &self.latents {
            Latents::Logistic(_) => factor(gram, &self.prior_precision)?,
            Latents::Probit(precision) => precision.clone(),
        };
        Ok(Conditional { mean: precision.solve(&pull), precision })
    }
}

impl RowChunk<'_> {
    fn draw(&mut self, theta: &[f64], latents: &Latents, rng: &mut Stream) -> Result<()> {
        self.rows.predict(theta, &mut self.eta);
        if self.eta.iter().any(|eta| !eta.is_finite()) {
            return Err(Error::numeric("a linear predictor overflowed while Gibbs sampling"));
        }
        let (counts, totals) = (self.rows.counts(), self.rows.totals());
        let offsets = self.rows.offsets();
        match latents {
            Latents::Logistic(polya_gamma) => {
                for (i, &eta) in self.eta.iter().enumerate() {
                    let weight = polya_gamma.draw_sum(counts[i] as u64, eta, rng);
                    self.weights[i] = weight;
                    self.v[i] = totals[i] - 0.5 * counts[i] - weight * offsets[i];
                }
            }
            Latents::Probit(_) => {
                for (i, &eta) in self.eta.iter().enumerate() {
                    let (yes, no) = (totals[i] as u64, (counts[i] - totals[i]) as u64);
                    let above: f64 = (0..yes).map(|_| positive_normal(eta, rng)).sum();
                    let below: f64 = (0..no).map(|_| positive_normal(-eta, rng)).sum();
                    self.v[i] = above - below - counts[i] * offsets[i];
                }
            }
        }
        Ok(())
    }
}

fn factor(mut gram: Matrix, prior_precision: &[f64]) -> Result<Cholesky> {
    for (j, p) in prior_precision.iter().enumerate() {
        gram[(j, j)] += p;
    }
    Cholesky::new(&gram).ok_or_else(|| {
        Error::numeric("the conditional precision in Gibbs sampling is not positive definite")
    })
}

fn unsupported(family: Family) -> Error {
    Error::input(format!(
        "Gibbs sampling is for family = \"logistic\" and \"probit\" with normal priors, not for \"{family}\""
    ))
}
