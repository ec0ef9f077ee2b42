//! Directions that a shard's data leave unbounded and whose prior's power cannot bound them.
//!
//! A Student-t prior to the power w falls like |θ|^−w(ν+1). Where the data say nothing about a
//! direction (a factor level that the shard lacks, a collinear column) or only push it outwards
//! (separation), the subposterior falls no faster, and Z_s is infinite once w(ν+1) ≤ 1, although a
//! mode exists. No estimate of such a Z_s means anything.

use super::{Model, Subposterior};
use crate::math::Matrix;
use crate::target::Target;
use crate::{Error, Result};

/// Fails, naming the parameter, if Z_s is infinite by an axis or by a null direction of the data.
pub fn refuse(model: &Model, target: &Subposterior, mode: &[f64]) -> Result<()> {
    let w = target.share();
    let improper: Vec<usize> = model
        .free()
        .enumerate()
        .filter(|(_, p)| p.prior.power_is_improper(w))
        .map(|(j, _)| j)
        .collect();
    if improper.is_empty() {
        return Ok(());
    }
    let d = target.dim();
    let axis = |j: usize| {
        let mut direction = vec![0.0; d];
        direction[j] = 1.0;
        direction
    };
    let mut directions: Vec<Vec<f64>> = improper.iter().map(|&j| axis(j)).collect();
    directions.extend(null_directions(target, mode, &improper));
    for direction in directions {
        if [1.0, -1.0].iter().any(|sign| is_level(target, mode, &direction, *sign)) {
            let j = (0..d).max_by(|&a, &b| direction[a].abs().total_cmp(&direction[b].abs()));
            let name = model.free().nth(j.unwrap_or(0)).map_or("", |p| p.name.as_str());
            let message = format!(
                "this shard's evidence is infinite: its rows do not bound the parameter, and its prior to the power {w:.3} is too heavy-tailed to (it would need more than {:.1} degrees of freedom); a normal prior would bound it",
                1.0 / w - 1.0
            );
            return Err(Error::numeric(message).for_parameter(name));
        }
    }
    Ok(())
}

/// The error of a posterior that no prior bounds.
pub fn infinite(parameter: &str) -> Error {
    let message = "the evidence is infinite: the data leave the parameter unbounded (a perfect fit?), and its prior is too heavy-tailed to bound it; use a prior with lighter tails, such as normal";
    Error::numeric(message).for_parameter(parameter)
}

/// Directions within the improper coordinates along which the likelihood has no curvature.
fn null_directions(target: &Subposterior, mode: &[f64], improper: &[usize]) -> Vec<Vec<f64>> {
    let hessian = target.likelihood().expand(mode).hessian;
    let k = improper.len();
    let mut block = Matrix::zeros(k, k);
    for (a, &i) in improper.iter().enumerate() {
        for (b, &j) in improper.iter().enumerate() {
            block[(a, b)] = -hessian[(i, j)];
        }
    }
    let (values, vectors) = block.symmetric_eigen();
    let largest = values.iter().copied().fold(0.0, f64::max);
    let null = |value: &f64| *value <= 1e-9 * largest;
    (0..k)
        .filter(|&m| null(&values[m]))
        .map(|m| {
            let mut direction = vec![0.0; target.dim()];
            for (a, &i) in improper.iter().enumerate() {
                direction[i] = vectors[(m, a)];
            }
            direction
        })
        .collect()
}

/// Whether the likelihood far out in a direction is no lower than at the mode, give or take one nat.
fn is_level(target: &Subposterior, mode: &[f64], direction: &[f64], sign: f64) -> bool {
    let far = |length: f64| {
        let point = |(t, d): (&f64, &f64)| t + sign * length * d;
        mode.iter().zip(direction).map(point).collect::<Vec<f64>>()
    };
    let (near, further) = (far(1e4), far(1e6));
    let mut values = [0.0; 3];
    target.likelihood().values(&[mode, &near, &further], &mut values);
    values[1] > values[0] - 1.0 && values[2] > values[0] - 1.0
}
