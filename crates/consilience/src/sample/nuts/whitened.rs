//! A target in whitened coordinates.

use crate::math::Matrix;
use crate::target::{Mode, Target};

/// A target in the coordinates ζ with θ = m + L'⁻¹ζ, where LL' is the precision at the mode m.
pub(super) struct Whitened<'a> {
    target: &'a dyn Target,
    mean: &'a [f64],
    /// L⁻¹, and its transpose.
    inverse: Matrix,
    transposed: Matrix,
    theta: Vec<f64>,
    gradient: Vec<f64>,
}

impl<'a> Whitened<'a> {
    pub fn new(target: &'a dyn Target, mode: &'a Mode) -> Whitened<'a> {
        let d = target.dim();
        let inverse = mode.factor.inverse_lower();
        Whitened {
            target,
            mean: &mode.theta,
            transposed: inverse.transpose(),
            inverse,
            theta: vec![0.0; d],
            gradient: vec![0.0; d],
        }
    }

    /// θ of ζ.
    pub fn theta(&self, zeta: &[f64], theta: &mut [f64]) {
        unwhiten(self.mean, &self.inverse, zeta, theta);
    }

    /// log f(θ) with its gradient in ζ; `None` where one of them is not finite.
    pub fn at(&mut self, zeta: &[f64], gradient: &mut [f64]) -> Option<f64> {
        unwhiten(self.mean, &self.inverse, zeta, &mut self.theta);
        let value = self.target.log_density_gradient(&self.theta, &mut self.gradient);
        gradient.fill(0.0);
        for (j, g) in self.gradient.iter().enumerate() {
            // Row j of L'⁻¹, of which there is nothing before the diagonal.
            let row = &self.transposed.row(j)[j..];
            gradient[j..].iter_mut().zip(row).for_each(|(o, f)| *o += g * f);
        }
        (value.is_finite() && gradient.iter().all(|g| g.is_finite())).then_some(value)
    }
}

fn unwhiten(mean: &[f64], inverse: &Matrix, zeta: &[f64], theta: &mut [f64]) {
    theta.copy_from_slice(mean);
    for (j, z) in zeta.iter().enumerate() {
        // Row j of L⁻¹, of which there is nothing beyond the diagonal.
        let row = &inverse.row(j)[..=j];
        theta.iter_mut().zip(row).for_each(|(t, f)| *t += z * f);
    }
}
