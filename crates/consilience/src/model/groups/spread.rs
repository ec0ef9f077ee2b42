//! How effects of groups vary: the factor L of their covariance, by log sds and the correlation's atanh.

use crate::kernel::{LANES, Line, NodeMoves};
use libm::{exp, tanh};

/// Logarithms beyond these are not told apart.
const LOGS: f64 = 200.0;

/// L of one effect, or of two.
pub(super) struct EffectSpread {
    /// τ₁, ρτ₂ and √(1 − ρ²)τ₂; of one effect only the first.
    factor: [f64; 3],
    /// τ₂, or 0.
    second: f64,
    rho: f64,
}

impl EffectSpread {
    pub fn new(parameters: &[f64]) -> EffectSpread {
        let sd = |k: usize| exp(parameters[k].clamp(-LOGS, LOGS));
        if parameters.len() < 3 {
            return EffectSpread { factor: [sd(0), 0.0, 0.0], second: 0.0, rho: 0.0 };
        }
        let rho = tanh(parameters[2]);
        // √(1 − ρ²), which keeps digits where ρ is near 1.
        let rest = 1.0 / libm::cosh(parameters[2].clamp(-LOGS, LOGS));
        EffectSpread { factor: [sd(0), rho * sd(1), rest * sd(1)], second: sd(1), rho }
    }

    /// How many parameters there are.
    pub fn parameters(&self) -> usize {
        if self.second > 0.0 { 3 } else { 1 }
    }

    /// L.
    pub fn factor(&self) -> [f64; 3] {
        self.factor
    }

    /// Lv at every node v, and how it moves with the correlation's parameter t, once and twice. Log sds move an effect by
    /// itself.
    pub fn moves(&self, v: &[Vec<Line>; 2]) -> NodeMoves {
        let [a, b, c] = self.factor;
        let rest = 1.0 - self.rho * self.rho;
        let each = |of: &dyn Fn(f64, f64) -> f64| -> Vec<Line> {
            let line = |(v, w): (&Line, &Line)| -> Line {
                let mut out = Line::ZERO;
                (0..LANES).for_each(|k| out.0[k] = of(v.0[k], w.0[k]));
                out
            };
            v[0].iter().zip(&v[1]).map(line).collect()
        };
        // With ρ = tanh t: d(ρτ₂)/dt = (1 − ρ²)τ₂ and d(√(1 − ρ²)τ₂)/dt = −ρ√(1 − ρ²)τ₂.
        let along = rest * self.second;
        [
            each(&|v, _| a * v),
            each(&|v, w| b * v + c * w),
            each(&|v, w| along * v - self.rho * c * w),
            each(&|v, w| -2.0 * self.rho * along * v + c * (self.rho * self.rho - rest) * w),
        ]
    }
}
