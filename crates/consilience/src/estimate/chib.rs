//! Chib's estimate of the evidence from Gibbs draws.

use super::Estimate;
use crate::math::dot;
use crate::target::Target;
use crate::{Error, Level, Result, Warning};
use libm::{exp, log};

/// The fewest effective ordinates that an error bar may rest on.
const LEAST_ESS: f64 = 100.0;

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
        let time = autocorrelation_time(&ordinates);
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

/// By how much the autocorrelation of a series multiplies the variance of its mean: 1 + 2Σρₖ, the sum
/// taken over Geyer's (1992) initial monotone sequence.
///
/// At least 1: functions of the latents of a two-block Gibbs sampler are never negatively correlated.
fn autocorrelation_time(series: &[f64]) -> f64 {
    let n = series.len();
    let mean = series.iter().sum::<f64>() / n as f64;
    let off: Vec<f64> = series.iter().map(|v| v - mean).collect();
    let covariance = |lag: usize| dot(&off[..n - lag], &off[lag..]);
    let variance = covariance(0);
    if variance == 0.0 {
        return 1.0;
    }
    let (mut sum, mut last, mut lag) = (0.0, f64::INFINITY, 0);
    while lag + 1 < n {
        let pair = covariance(lag) + covariance(lag + 1);
        // Sums of pairs are positive and fall in truth; where the estimate is not it is noise.
        last = pair.min(last);
        if last <= 0.0 {
            break;
        }
        sum += last;
        lag += 2;
    }
    (2.0 * sum / variance - 1.0).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::stream;
    use rand_distr::{Distribution, StandardNormal};

    // An AR(1) series has the autocorrelation time (1 + ρ)/(1 − ρ).
    #[test]
    fn autocorrelation_times_are_right() {
        for rho in [0.0_f64, 0.5, 0.9] {
            let mut rng = stream(1, 0, 0, "chib test");
            let mut x = 0.0;
            let series: Vec<f64> = (0..100_000)
                .map(|_| {
                    let noise: f64 = StandardNormal.sample(&mut rng);
                    x = rho * x + (1.0 - rho * rho).sqrt() * noise;
                    x
                })
                .collect();
            let (found, expected) = (autocorrelation_time(&series), (1.0 + rho) / (1.0 - rho));
            assert!((found / expected - 1.0).abs() < 0.1, "{rho}: {found} is not {expected}");
        }
        assert_eq!(autocorrelation_time(&[3.0; 5]), 1.0);
    }
}
