//! The no-U-turn sampler, by the `nuts-rs` crate.
//!
//! Sampling happens in coordinates that are whitened by the curvature at the mode, θ = m + L'⁻¹ζ with
//! LL' the precision there: raw columns of unlike scale would cost deep trees. The crate adapts its own
//! mass matrix and step size on top.

use super::{Chain, Sample};
use crate::math::ziggurat::normal;
use crate::math::{Matrix, Stream};
use crate::target::{Mode, Target};
use crate::{Error, Result};
use nuts_rs::Chain as _;
use nuts_rs::{CpuLogpFunc, CpuMath, CpuMathError, DiagNutsSettings, HasDims, LogpError, Settings};
use rand::Rng;
use rayon::prelude::*;
use std::collections::HashMap;

/// Draws and warm-up of every chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// Kept draws.
    pub draws: usize,
    /// Draws before them, on which the sampler adapts.
    pub warmup: usize,
}

/// Whitened coordinates: θ = m + L'⁻¹ζ.
struct Whitening<'a> {
    mean: &'a [f64],
    /// L⁻¹, and its transpose.
    inverse: Matrix,
    transposed: Matrix,
}

impl<'a> Whitening<'a> {
    fn at(mode: &'a Mode) -> Whitening<'a> {
        let inverse = mode.factor.inverse_lower();
        Whitening { mean: &mode.theta, transposed: inverse.transpose(), inverse }
    }

    fn unwhiten(&self, zeta: &[f64], theta: &mut [f64]) {
        theta.copy_from_slice(self.mean);
        for (j, z) in zeta.iter().enumerate() {
            // Row j of L⁻¹, of which there is nothing beyond the diagonal.
            let row = &self.inverse.row(j)[..=j];
            theta.iter_mut().zip(row).for_each(|(t, f)| *t += z * f);
        }
    }

    /// The gradient in ζ.
    fn whiten_gradient(&self, gradient: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (j, g) in gradient.iter().enumerate() {
            // Row j of L'⁻¹, of which there is nothing before the diagonal.
            let row = &self.transposed.row(j)[j..];
            out[j..].iter_mut().zip(row).for_each(|(o, f)| *o += g * f);
        }
    }
}

/// A target in whitened coordinates.
struct Whitened<'a> {
    target: &'a dyn Target,
    whitening: &'a Whitening<'a>,
    theta: Vec<f64>,
    gradient: Vec<f64>,
}

/// The density has no value here: the trajectory ends, the chain goes on.
#[derive(Debug, thiserror::Error)]
#[error("the log density is not finite")]
struct NotFinite;

impl LogpError for NotFinite {
    fn is_recoverable(&self) -> bool {
        true
    }
}

impl HasDims for Whitened<'_> {
    fn dim_sizes(&self) -> HashMap<String, u64> {
        HashMap::from([("unconstrained_parameter".to_string(), self.theta.len() as u64)])
    }
}

impl CpuLogpFunc for Whitened<'_> {
    type LogpError = NotFinite;
    type ExpandedVector = ();
    type FlowParameters = ();

    fn dim(&self) -> usize {
        self.theta.len()
    }

    fn logp(&mut self, zeta: &[f64], out: &mut [f64]) -> std::result::Result<f64, NotFinite> {
        self.whitening.unwhiten(zeta, &mut self.theta);
        let value = self.target.log_density_gradient(&self.theta, &mut self.gradient);
        self.whitening.whiten_gradient(&self.gradient, out);
        let finite = value.is_finite() && out.iter().all(|g| g.is_finite());
        if finite { Ok(value) } else { Err(NotFinite) }
    }

    fn expand_vector<R: Rng + ?Sized>(
        &mut self,
        _: &mut R,
        _: &[f64],
    ) -> std::result::Result<(), CpuMathError> {
        Ok(())
    }
}

/// Chains of draws from a target, each from its own stream.
pub fn nuts(
    target: &dyn Target,
    mode: &Mode,
    lengths: Lengths,
    streams: Vec<Stream>,
) -> Result<Sample> {
    let chains: Vec<Result<Chain>> =
        streams.into_par_iter().map(|rng| chain(target, mode, lengths, rng)).collect();
    Ok(Sample { chains: chains.into_iter().collect::<Result<_>>()? })
}

fn chain(target: &dyn Target, mode: &Mode, lengths: Lengths, mut rng: Stream) -> Result<Chain> {
    let d = target.dim();
    let mut settings = DiagNutsSettings {
        num_tune: lengths.warmup as u64,
        num_draws: lengths.draws as u64,
        ..DiagNutsSettings::default()
    };
    // The coordinates are nearly those of a standard normal, in which longer steps at this rate give
    // as many effective draws for two thirds of the gradients that the crate's 0.8 takes. Towards a
    // length of 2, where the integrator ceases to be stable, trajectories close on themselves; in few
    // dimensions even those would be accepted often enough.
    let step = &mut settings.adapt_options.step_size_settings;
    step.target_accept = 0.7;
    step.adapt_options.dual_average.max_step_size = 1.2;
    let whitening = Whitening::at(mode);
    let density =
        Whitened { target, whitening: &whitening, theta: vec![0.0; d], gradient: vec![0.0; d] };
    let failed = |e: &dyn std::fmt::Display| {
        // The crate may append a backtrace, which says nothing to a user.
        let message = e.to_string();
        Error::numeric(format!("NUTS failed: {}", message.lines().next().unwrap_or_default()))
    };
    // The sampler learns its first scales from the gradient, which vanishes at the mode; and chains
    // that start apart can tell whether they come together.
    let mut start: Vec<f64> = (0..d).map(|_| normal(&mut rng)).collect();
    let mut sampler =
        settings.new_chain(0, CpuMath::new(density), &mut rng).map_err(|e| failed(&e))?;
    let mut tries = 0;
    while let Err(error) = sampler.set_position(&start) {
        tries += 1;
        if tries == 20 {
            return Err(failed(&error));
        }
        // Too far out for the density to be finite: nearer to the mode it is.
        start.iter_mut().for_each(|z| *z *= 0.5);
    }
    let mut thetas = Matrix::zeros(lengths.draws, d);
    let mut energy = Vec::with_capacity(lengths.draws);
    let mut log_density = Vec::with_capacity(lengths.draws);
    let mut divergences = 0;
    for k in 0..lengths.warmup + lengths.draws {
        if k < lengths.warmup {
            sampler.draw().map_err(|e| failed(&e))?;
            continue;
        }
        let (zeta, _, stats, progress) = sampler.expanded_draw().map_err(|e| failed(&e))?;
        whitening.unwhiten(&zeta, thetas.row_mut(k - lengths.warmup));
        divergences += usize::from(progress.diverging);
        energy.push(stats.point.energy);
        log_density.push(stats.point.logp);
    }
    Ok(Chain { thetas, log_density, energy, divergences })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::newton;
    use crate::math::stream;
    use crate::target::Expansion;

    /// −½x² − 2(y − x)²: variances 1 and 1¼, covariance 1.
    struct Tilted;

    impl Target for Tilted {
        fn dim(&self) -> usize {
            2
        }

        fn log_density(&self, t: &[f64]) -> f64 {
            -0.5 * t[0] * t[0] - 2.0 * (t[1] - t[0]) * (t[1] - t[0])
        }

        fn log_density_gradient(&self, t: &[f64], gradient: &mut [f64]) -> f64 {
            let pull = 4.0 * (t[1] - t[0]);
            gradient.copy_from_slice(&[pull - t[0], -pull]);
            self.log_density(t)
        }

        fn expand(&self, t: &[f64]) -> Expansion {
            let mut gradient = vec![0.0; 2];
            let value = self.log_density_gradient(t, &mut gradient);
            let hessian = Matrix::from_rows(2, 2, vec![-5.0, 4.0, 4.0, -4.0]);
            Expansion { value, gradient, hessian }
        }

        fn log_densities(&self, thetas: &Matrix, out: &mut [f64]) {
            out.iter_mut().enumerate().for_each(|(k, o)| *o = self.log_density(thetas.row(k)));
        }

        fn start(&self) -> Vec<f64> {
            vec![1.0, -1.0]
        }
    }

    #[test]
    fn draws_carry_their_log_density_and_have_the_targets_moments() {
        let mode = newton::find_mode(&Tilted, 1e-9, 50).unwrap().mode;
        let lengths = Lengths { draws: 20_000, warmup: 500 };
        let sample = nuts(&Tilted, &mode, lengths, vec![stream(1, 0, 0, "nuts")]).unwrap();
        let chain = &sample.chains[0];
        for (k, value) in chain.log_density.iter().enumerate() {
            assert!((value - Tilted.log_density(chain.thetas.row(k))).abs() < 1e-12);
        }
        for (function, expected, spread) in [
            ((|t| t[0] * t[0]) as fn(&[f64]) -> f64, 1.0, 2.0),
            (|t| t[1] * t[1], 1.25, 3.125),
            (|t| t[0] * t[1], 1.0, 2.25),
        ] {
            let values = (0..lengths.draws).map(|k| function(chain.thetas.row(k)));
            let mean = values.sum::<f64>() / lengths.draws as f64;
            let error = (spread / sample.ess_of(function).unwrap()).sqrt();
            assert!((mean - expected).abs() < 4.0 * error, "{mean} for {expected} ± {error}");
        }
    }
}
