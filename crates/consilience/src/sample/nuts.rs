//! The no-U-turn sampler, by the `nuts-rs` crate.
//!
//! Sampling happens in coordinates that are whitened by the curvature at the mode, θ = m + L'⁻¹ζ with
//! LL' the precision there: raw columns of unlike scale would cost deep trees. The crate adapts its own
//! mass matrix and step size on top.

use super::{Chain, Sample};
use crate::estimate::Mode;
use crate::math::{Matrix, Stream, dot};
use crate::target::Target;
use crate::{Error, Result};
use nuts_rs::{Chain as _, Storable, Value};
use nuts_rs::{CpuLogpFunc, CpuMath, CpuMathError, DiagNutsSettings, HasDims, LogpError, Settings};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use std::collections::HashMap;

/// Draws and warm-up of every chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// Kept draws.
    pub draws: usize,
    /// Draws before them, on which the sampler adapts.
    pub warmup: usize,
}

/// A target in whitened coordinates.
struct Whitened<'a> {
    target: &'a dyn Target,
    mean: &'a [f64],
    /// L'⁻¹ and its transpose.
    factor: Matrix,
    transposed: Matrix,
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

impl Whitened<'_> {
    fn unwhiten(&mut self, zeta: &[f64]) {
        for (i, theta) in self.theta.iter_mut().enumerate() {
            *theta = self.mean[i] + dot(self.factor.row(i), zeta);
        }
    }
}

impl HasDims for Whitened<'_> {
    fn dim_sizes(&self) -> HashMap<String, u64> {
        HashMap::from([("unconstrained_parameter".to_string(), self.mean.len() as u64)])
    }
}

impl CpuLogpFunc for Whitened<'_> {
    type LogpError = NotFinite;
    type ExpandedVector = ();
    type FlowParameters = ();

    fn dim(&self) -> usize {
        self.mean.len()
    }

    fn logp(&mut self, zeta: &[f64], out: &mut [f64]) -> std::result::Result<f64, NotFinite> {
        self.unwhiten(zeta);
        let value = self.target.log_density_gradient(&self.theta, &mut self.gradient);
        for (i, slope) in out.iter_mut().enumerate() {
            *slope = dot(self.transposed.row(i), &self.gradient);
        }
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
    let chains: Result<Vec<Chain>> =
        streams.into_iter().map(|rng| chain(target, mode, lengths, rng)).collect();
    Ok(Sample { chains: chains? })
}

fn chain(target: &dyn Target, mode: &Mode, lengths: Lengths, mut rng: Stream) -> Result<Chain> {
    let d = target.dim();
    let settings = DiagNutsSettings {
        num_tune: lengths.warmup as u64,
        num_draws: lengths.draws as u64,
        ..DiagNutsSettings::default()
    };
    let transposed = mode.factor.inverse_lower();
    let density = Whitened {
        target,
        mean: &mode.theta,
        factor: transposed.transpose(),
        transposed,
        theta: vec![0.0; d],
        gradient: vec![0.0; d],
    };
    let failed = |e: &dyn std::fmt::Display| {
        // The crate may append a backtrace, which says nothing to a user.
        let message = e.to_string();
        Error::numeric(format!("NUTS failed: {}", message.lines().next().unwrap_or_default()))
    };
    // The sampler learns its first scales from the gradient, which vanishes at the mode; and chains
    // that start apart can tell whether they come together.
    let mut start: Vec<f64> = (0..d).map(|_| StandardNormal.sample(&mut rng)).collect();
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
    let mut divergences = 0;
    let factor = mode.factor.inverse_lower().transpose();
    for k in 0..lengths.warmup + lengths.draws {
        if k < lengths.warmup {
            sampler.draw().map_err(|e| failed(&e))?;
            continue;
        }
        let (zeta, _, mut stats, progress) = sampler.expanded_draw().map_err(|e| failed(&e))?;
        for (i, theta) in thetas.row_mut(k - lengths.warmup).iter_mut().enumerate() {
            *theta = mode.theta[i] + dot(factor.row(i), &zeta);
        }
        divergences += usize::from(progress.diverging);
        let dims = (&*sampler.math()).into();
        for (name, value) in stats.get_all(&dims) {
            if let ("energy", Some(Value::ScalarF64(value))) = (name, value) {
                energy.push(value);
            }
        }
    }
    let mut log_density = vec![0.0; lengths.draws];
    target.log_densities(&thetas, &mut log_density);
    Ok(Chain { thetas, log_density, energy, divergences })
}
