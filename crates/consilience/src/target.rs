//! The density contract: all that samplers and estimators know about a model.

use crate::math::{Cholesky, Matrix};
use serde::{Deserialize, Serialize};

/// An unnormalised log density on ℝᵈ: for a shard its subposterior
///
/// ```text
/// log f_s(θ) = log p(y_s|θ) + w_s log p(θ)
/// ```
///
/// on the unconstrained scale, every constant included; for a model of one's own the likelihood alone,
/// log p(y_s|θ), since the prior is shared out elsewhere. The value −∞ is legal; NaN never is. A method may be
/// called from several threads at once and always gives the same bits.
///
/// Only `dim` and `log_density_gradient` must be there. What else is known of a density makes it faster.
pub trait Target: Sync {
    /// The number of parameters d; 0 is legal (everything is held fixed).
    fn dim(&self) -> usize;

    /// log f(θ), its gradient written to `gradient`.
    fn log_density_gradient(&self, theta: &[f64], gradient: &mut [f64]) -> f64;

    /// log f(θ).
    fn log_density(&self, theta: &[f64]) -> f64 {
        self.log_density_gradient(theta, &mut vec![0.0; self.dim()])
    }

    /// log f(θ) with gradient and Hessian: what a Newton step needs. By default by differences of gradients.
    fn expand(&self, theta: &[f64]) -> Expansion {
        by_differences(self, theta)
    }

    /// log f at many points, one per row: the fast path.
    fn log_densities(&self, thetas: &Matrix, out: &mut [f64]) {
        for (k, out) in out.iter_mut().enumerate() {
            *out = self.log_density(thetas.row(k));
        }
    }

    /// Whether the work on it was called off: samplers and searches look before every step, and end.
    fn is_called_off(&self) -> bool {
        false
    }

    /// A point to start from: finite density, not far off. By default 0.
    fn start(&self) -> Vec<f64> {
        vec![0.0; self.dim()]
    }
}

/// An expansion whose Hessian is made of differences of gradients, good to some ten digits.
fn by_differences<T: Target + ?Sized>(target: &T, theta: &[f64]) -> Expansion {
    // The cube root of the rounding error balances it against the third derivative.
    const STEP: f64 = 6e-6;
    let d = theta.len();
    let mut out = Expansion::zeros(d);
    out.value = target.log_density_gradient(theta, &mut out.gradient);
    let (mut below, mut above) = (vec![0.0; d], vec![0.0; d]);
    for j in 0..d {
        let mut point = theta.to_vec();
        let step = STEP * theta[j].abs().max(1.0);
        point[j] = theta[j] - step;
        let from = point[j];
        target.log_density_gradient(&point, &mut below);
        point[j] = theta[j] + step;
        target.log_density_gradient(&point, &mut above);
        let width = point[j] - from;
        for i in 0..d {
            let slope = 0.5 * (above[i] - below[i]) / width;
            // Both differences of a pair count, so that it is symmetric.
            out.hessian[(i, j)] += slope;
            out.hessian[(j, i)] += slope;
        }
    }
    out
}

/// A log density at a point to second order. It travels without the upper half of its Hessian.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "Packed", try_from = "Packed")]
pub struct Expansion {
    /// log f(θ).
    pub value: f64,
    /// ∇ log f(θ).
    pub gradient: Vec<f64>,
    /// ∇² log f(θ), symmetric.
    pub hessian: Matrix,
}

/// An expansion as it travels.
#[derive(Serialize, Deserialize)]
struct Packed {
    value: f64,
    gradient: Vec<f64>,
    /// The lower triangle, row after row.
    hessian: Vec<f64>,
}

impl From<Expansion> for Packed {
    fn from(at: Expansion) -> Packed {
        Packed { value: at.value, gradient: at.gradient, hessian: at.hessian.lower_half() }
    }
}

impl TryFrom<Packed> for Expansion {
    type Error = &'static str;

    fn try_from(packed: Packed) -> Result<Expansion, Self::Error> {
        let Packed { value, gradient, hessian } = packed;
        let d = gradient.len();
        if Some(2 * hessian.len()) != d.checked_mul(d + 1) {
            return Err("a Hessian that does not go with its gradient");
        }
        let hessian = Matrix::from_lower(d, &hessian);
        Ok(Expansion { value, gradient, hessian })
    }
}

impl Expansion {
    /// Nothing: value 0, no slope, no curvature.
    pub fn zeros(d: usize) -> Expansion {
        Expansion { value: 0.0, gradient: vec![0.0; d], hessian: Matrix::zeros(d, d) }
    }

    /// The expansion of a multiple of the log density.
    pub fn scale(&mut self, factor: f64) {
        self.value *= factor;
        self.gradient.iter_mut().for_each(|g| *g *= factor);
        self.hessian.scale(factor);
    }

    /// The expansion of the sum of two log densities at one point.
    pub fn add(&mut self, other: &Expansion) {
        self.value += other.value;
        for (a, b) in self.gradient.iter_mut().zip(&other.gradient) {
            *a += b;
        }
        self.hessian.add_scaled(1.0, &other.hessian);
    }
}

/// ∂³/∂θᵢ∂θⱼ∂θₖ of a log density, for i ≥ j ≥ k: d(d + 1)(d + 2)/6 numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Thirds(pub Vec<f64>);

impl Thirds {
    /// How many there are of d parameters.
    pub fn count(d: usize) -> usize {
        d * (d + 1) * (d + 2) / 6
    }

    /// The third derivatives of a target at θ, where it has this Hessian, by differences of Hessians over these steps.
    pub fn of(target: &dyn Target, theta: &[f64], hessian: &Matrix, steps: &[f64]) -> Thirds {
        let d = theta.len();
        let slopes: Vec<Matrix> = (0..d)
            .map(|k| {
                let mut point = theta.to_vec();
                point[k] += steps[k];
                let mut slope = target.expand(&point).hessian;
                slope.add_scaled(-1.0, hessian);
                slope.scale(1.0 / (point[k] - theta[k]));
                slope
            })
            .collect();
        let mut out = Vec::with_capacity(Thirds::count(d));
        for i in 0..d {
            for j in 0..=i {
                // Each of the three differences tells the same; their mean errs least.
                out.extend(
                    (0..=j)
                        .map(|k| (slopes[k][(i, j)] + slopes[j][(i, k)] + slopes[i][(j, k)]) / 3.0),
                );
            }
        }
        Thirds(out)
    }

    /// The matrix Σₖ T_ijk vₖ: what the Hessian changes by along v, to first order.
    pub fn along(&self, v: &[f64]) -> Matrix {
        let d = v.len();
        let mut out = Matrix::zeros(d, d);
        let mut at = 0;
        for i in 0..d {
            for j in 0..=i {
                for k in 0..=j {
                    let t = self.0[at];
                    at += 1;
                    out[(i, j)] += t * v[k];
                    if k != j {
                        out[(i, k)] += t * v[j];
                    }
                    if i != j {
                        out[(j, k)] += t * v[i];
                    }
                }
            }
        }
        for i in 0..d {
            for j in 0..i {
                out[(j, i)] = out[(i, j)];
            }
        }
        out
    }

    /// The same of a density in other units: coordinate j is `units[j]` times the new one.
    pub fn scaled(mut self, units: &[f64]) -> Thirds {
        let mut at = 0;
        for i in 0..units.len() {
            for j in 0..=i {
                for k in 0..=j {
                    self.0[at] *= units[i] * units[j] * units[k];
                    at += 1;
                }
            }
        }
        self
    }
}

/// A mode with the curvature there.
#[derive(Debug, Clone)]
pub struct Mode {
    /// θ at the maximum.
    pub theta: Vec<f64>,
    /// log f there.
    pub value: f64,
    /// −∇² log f there, positive definite.
    pub precision: Matrix,
    /// Its Cholesky factor.
    pub factor: Cholesky,
    /// Half the squared Newton decrement: how far below the maximum the value may still be.
    pub decrement: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A density whose derivatives are known: log f = −Σ e^(aᵢ'θ).
    struct Exponentials(Vec<Vec<f64>>);

    impl Exponentials {
        fn terms(&self, theta: &[f64]) -> Vec<f64> {
            self.0.iter().map(|a| libm::exp(crate::math::dot(a, theta))).collect()
        }
    }

    impl Target for Exponentials {
        fn dim(&self) -> usize {
            3
        }

        fn log_density_gradient(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
            let terms = self.terms(theta);
            for (j, g) in gradient.iter_mut().enumerate() {
                *g = -self.0.iter().zip(&terms).map(|(a, e)| a[j] * e).sum::<f64>();
            }
            -terms.iter().sum::<f64>()
        }
    }

    #[test]
    fn third_derivatives_are_those_of_exponentials() {
        let target =
            Exponentials(vec![vec![0.3, -0.2, 0.5], vec![-0.7, 0.1, 0.4], vec![0.0, 1.1, -0.3]]);
        let theta = [0.2, -0.1, 0.3];
        let at = target.expand(&theta);
        let thirds = Thirds::of(&target, &theta, &at.hessian, &[1e-3; 3]);
        let terms = target.terms(&theta);
        let v = [0.4, -1.3, 0.8];
        let along = thirds.along(&v);
        for i in 0..3 {
            for j in 0..3 {
                let each = target.0.iter().zip(&terms);
                let exact: f64 =
                    -each.map(|(a, e)| a[i] * a[j] * crate::math::dot(a, &v) * e).sum::<f64>();
                assert!((along[(i, j)] - exact).abs() < 3e-3, "{i} {j}");
            }
        }
        let scaled = thirds.clone().scaled(&[2.0, 0.5, 3.0]);
        let same = scaled.along(&[v[0] / 2.0, v[1] / 0.5, v[2] / 3.0]);
        assert!((same[(0, 2)] - 6.0 * along[(0, 2)]).abs() < 1e-12);
    }

    #[test]
    fn expansions_travel_without_half_of_their_hessians() {
        let target = Exponentials(vec![vec![0.3, -0.2, 0.5]]);
        let mut at = target.expand(&[0.1, 0.2, 0.3]);
        let lower: Vec<f64> = (0..3).flat_map(|i| at.hessian.row(i)[..=i].to_vec()).collect();
        at.hessian = Matrix::from_lower(3, &lower);
        let bytes = postcard::to_stdvec(&at).unwrap();
        assert_eq!(postcard::from_bytes::<Expansion>(&bytes).unwrap(), at);
        let lying = Packed { value: 0.0, gradient: vec![0.0; 3], hessian: vec![0.0; 9] };
        assert!(Expansion::try_from(lying).is_err());
    }
}
