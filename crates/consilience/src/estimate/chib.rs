//! Chib's estimate of the evidence from Gibbs draws.

use super::Estimate;
use super::chains::integrated_autocorrelation;
use super::importance::LEAST_ESS;
use crate::math::dot;
use crate::target::Target;
use crate::{Error, Level, Result, Warning};
use libm::{exp, log};

/// The evidence by Chib (1995): at any point θ*
///
/// ```text
/// log Z = log f(θ*) − log p(θ*|y),   p(θ*|y) ≈ mean of p(θ*|latentsᵢ, y) over Gibbs draws i
/// ```
///
/// The ordinates p(θ*|latentsᵢ, y) are not independent, and their mean's error says so.
#[derive(Debug, Clone)]
pub struct Chib {
    /// log Z, with its standard error by the delta method.
    pub log_z: Estimate,
    /// log p(θ*|latentsᵢ, y) per draw.
    pub log_ordinates: Vec<f64>,
    /// How many draws the mean of the ordinates rests on: Kish's effective number (Σp)²/Σp² over the
    /// autocorrelation time.
    pub ess: f64,
}

impl Chib {
    /// The estimate at a point, from the log conditional densities there along a chain.
    pub fn new(target: &dyn Target, at: &[f64], log_ordinates: Vec<f64>) -> Result<Chib> {
        if log_ordinates.len() < 2 {
            return Err(Error::input("Chib's estimate needs at least two draws"));
        }
        let top = log_ordinates.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let log_f = target.log_density(at);
        if !top.is_finite() || !log_f.is_finite() || log_ordinates.iter().any(|v| v.is_nan()) {
            return Err(Error::numeric("a density in Chib's estimate is not finite"));
        }
        let ordinates: Vec<f64> = log_ordinates.iter().map(|v| exp(v - top)).collect();
        let n = ordinates.len() as f64;
        let sum: f64 = ordinates.iter().sum();
        let mean = sum / n;
        // At least 1: functions of the latents of a two-block Gibbs sampler never correlate negatively.
        let time = integrated_autocorrelation(&[&ordinates]).unwrap_or(1.0).max(1.0);
        let variance = ordinates.iter().map(|p| (p - mean) * (p - mean)).sum::<f64>() / (n - 1.0);
        let se = (variance * time / n).sqrt() / mean;
        let ess = sum * sum / dot(&ordinates, &ordinates) / time;
        Ok(Chib { log_z: Estimate::new(log_f - top - log(mean), se), log_ordinates, ess })
    }

    /// Whether there are enough effective draws for the error bar to mean anything.
    pub fn is_reliable(&self) -> bool {
        self.ess >= LEAST_ESS
    }

    /// An `unreliable` warning if there are not.
    pub fn warnings(&self, advice: &str) -> Vec<Warning> {
        if self.is_reliable() {
            return Vec::new();
        }
        let message = format!(
            "only {:.0} effective draws in Chib's estimate (at least {LEAST_ESS})",
            self.ess
        );
        vec![Warning::new(Level::Unreliable, "low-ess", message, advice).value(self.ess)]
    }
}
