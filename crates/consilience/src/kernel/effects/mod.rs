//! Rows of a group whose effects are integrated out: the integrand's mode, its values at nodes around it, and what
//! derivatives of the integral are made of.
//!
//! At an effect v the predictor of a row is η + z'Lv. A search for the mode has eight rows side by side; at nodes, of which
//! there are many more than a small group has rows, eight of these are.

mod derive;
mod place;

use super::dispatch::{Kernel, Path};
use super::family::Family;
use super::laws::{Law, Logistic, NegativeBinomial, Outcomes, Poisson, Probit, Slopes, Sum};
use super::simd::{Cpu, LANES, Line, Vector};
use crate::target::Expansion;
use derive::DerivePass;
use place::PlacePass;
use std::marker::PhantomData;
use std::ops::Range;

/// Predictors beyond this count as this: their squares are numbers still.
const FAR: f64 = 1e150;
/// A family for which effects of groups are integrated out: all of them log-concave in the predictor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectFamily {
    /// Predictors come less the outcomes; the own parameter is log σ.
    Gaussian,
    /// Trials and successes.
    Logistic,
    /// Trials and successes.
    Probit,
    /// Counts.
    Poisson,
    /// Counts; the own parameter is the dispersion's logarithm.
    NegativeBinomial,
}

impl EffectFamily {
    /// That of a family, if it has one.
    pub fn of(family: Family) -> Option<EffectFamily> {
        Some(match family {
            Family::Gaussian => EffectFamily::Gaussian,
            Family::Logistic => EffectFamily::Logistic,
            Family::Probit => EffectFamily::Probit,
            Family::Poisson => EffectFamily::Poisson,
            Family::NegativeBinomial => EffectFamily::NegativeBinomial,
            _ => return None,
        })
    }
}

/// Rows of groups, one group after the other.
#[derive(Debug)]
pub struct EffectRows {
    family: EffectFamily,
    path: Path,
    /// Weights, times trials where there are any.
    count: Vec<f64>,
    /// Weights times outcomes.
    total: Vec<f64>,
    /// What each effect is multiplied with.
    z: [Vec<f64>; 2],
    /// Columns, row after row.
    x: Vec<f64>,
    width: usize,
}

/// Nodes in units of the integrand around its mode, eight side by side.
#[derive(Debug)]
pub struct NodeRule {
    x: [Vec<Line>; 2],
    log_weight: Vec<Line>,
    effects: usize,
}

/// Where a group's integral is asked for.
#[derive(Debug, Clone, Copy)]
pub struct EffectPoint<'a> {
    /// The group's rows.
    pub rows: &'a Range<usize>,
    /// Their predictors without effects.
    pub eta: &'a [f64],
    /// The family's own parameter.
    pub own: f64,
    /// L: its first entry, and the two of its second row.
    pub factor: [f64; 3],
}

/// A group's integrand around its mode.
#[derive(Debug)]
pub struct PlacedGroup {
    /// The nodes.
    pub v: [Vec<Line>; 2],
    /// Their shares of the integral.
    share: Vec<Line>,
    /// Its logarithm, without what outcomes and the own parameter add by themselves.
    pub value: f64,
}

/// Which derivatives are wanted, beside those in the coefficients.
#[derive(Debug, Clone, Copy)]
pub struct WantedSlopes {
    /// In the family's own parameter.
    pub own: bool,
    /// In so many parameters of the effects.
    pub effects: usize,
    /// Second ones too.
    pub hessian: bool,
}

/// How predictors move at every node: by the two effects, by what turns the second, and by what that turns by again.
pub type NodeMoves = [Vec<Line>; 4];

impl NodeRule {
    /// Nodes with the logarithms of their weights, for one effect or two.
    pub fn new(nodes: &[([f64; 2], f64)], effects: usize) -> NodeRule {
        // What fills the last line up weighs nothing.
        let node = |k: usize| nodes.get(k).copied().unwrap_or(([0.0; 2], -1e300));
        let lines = |of: &dyn Fn(usize) -> f64| -> Vec<Line> {
            let starts = (0..nodes.len()).step_by(LANES);
            starts.map(|start| Line(std::array::from_fn(|lane| of(start + lane)))).collect()
        };
        let x = [lines(&|k| node(k).0[0]), lines(&|k| node(k).0[1])];
        NodeRule { x, log_weight: lines(&|k| node(k).1), effects }
    }
}

impl EffectRows {
    /// No rows yet, with so many columns.
    pub fn new(family: EffectFamily, width: usize, kernel: Kernel) -> EffectRows {
        let (path, z, x) = (Path::of(kernel), [Vec::new(), Vec::new()], Vec::new());
        EffectRows { family, path, count: Vec::new(), total: Vec::new(), z, x, width }
    }

    /// Adds a row.
    pub fn push(&mut self, count: f64, total: f64, z: [f64; 2], x: impl Iterator<Item = f64>) {
        self.count.push(count);
        self.total.push(total);
        self.z.iter_mut().zip(z).for_each(|(all, z)| all.push(z));
        self.x.extend(x);
    }

    /// A row's columns.
    pub fn columns(&self, row: usize) -> &[f64] {
        &self.x[row * self.width..(row + 1) * self.width]
    }

    /// A group's integral. `None` where it is not a number, or 0.
    pub fn place(&self, rule: &NodeRule, at: EffectPoint) -> Option<PlacedGroup> {
        match self.family {
            EffectFamily::Gaussian => self.placed::<Residual>(rule, at),
            EffectFamily::Logistic => self.placed::<Logistic>(rule, at),
            EffectFamily::Probit => self.placed::<Probit>(rule, at),
            EffectFamily::Poisson => self.placed::<Poisson>(rule, at),
            EffectFamily::NegativeBinomial => self.placed::<NegativeBinomial>(rule, at),
        }
    }

    /// The integral's logarithm with its derivatives. Gradients are expectations of those of log p(y, v|θ) over the nodes, Hessians
    /// expectations of Hessians plus covariances of gradients (Louis).
    pub fn derive(
        &self,
        at: EffectPoint,
        placed: &PlacedGroup,
        moves: &NodeMoves,
        wanted: WantedSlopes,
    ) -> Expansion {
        match self.family {
            EffectFamily::Gaussian => self.derived::<Residual>(at, placed, moves, wanted),
            EffectFamily::Logistic => self.derived::<Logistic>(at, placed, moves, wanted),
            EffectFamily::Probit => self.derived::<Probit>(at, placed, moves, wanted),
            EffectFamily::Poisson => self.derived::<Poisson>(at, placed, moves, wanted),
            EffectFamily::NegativeBinomial => {
                self.derived::<NegativeBinomial>(at, placed, moves, wanted)
            }
        }
    }

    fn placed<L: EffectLaw>(&self, rule: &NodeRule, at: EffectPoint) -> Option<PlacedGroup> {
        self.path.run(PlacePass::<L> { rows: self, rule, at, law: PhantomData })
    }

    fn derived<L: EffectLaw>(
        &self,
        at: EffectPoint,
        placed: &PlacedGroup,
        moves: &NodeMoves,
        wanted: WantedSlopes,
    ) -> Expansion {
        self.path.run(DerivePass::<L> { rows: self, at, placed, moves, wanted, law: PhantomData })
    }
}

/// A law, and what it leaves to others.
trait EffectLaw: Law {
    /// Whether t·η is to be added.
    const LINEAR: bool = false;
    /// What predictors are shifted by.
    fn shift(_own: f64) -> f64 {
        0.0
    }
    /// What it needs of the own parameter.
    fn dispersion(_own: f64) -> f64 {
        0.0
    }
}

impl EffectLaw for Logistic {}
impl EffectLaw for Probit {}
impl EffectLaw for Poisson {
    const LINEAR: bool = true;
}
impl EffectLaw for NegativeBinomial {
    fn shift(own: f64) -> f64 {
        own
    }
    fn dispersion(own: f64) -> f64 {
        libm::exp(own)
    }
}
impl EffectLaw for Residual {
    fn dispersion(own: f64) -> f64 {
        libm::exp(-own)
    }
}

/// −½·count·(η/σ)², where the outcome is taken off η already.
#[derive(Clone, Copy)]
struct Residual;

impl Law for Residual {
    const UNIT: f64 = 1.0;
    const LINE: f64 = 1.0;

    #[inline(always)]
    fn value<C: Cpu>(cpu: C, eta: C::V, at: Outcomes<C::V>, sum: &mut Sum<C::V>) {
        let r = eta * at.dispersion;
        sum.line = sum.line - cpu.splat(0.5) * at.count * (r * r);
    }

    #[inline(always)]
    fn derive<C: Cpu>(cpu: C, eta: C::V, at: Outcomes<C::V>, sum: &mut Sum<C::V>) -> Slopes<C::V> {
        Residual::value(cpu, eta, at, sum);
        let (zero, r) = (cpu.splat(0.0), eta * at.dispersion);
        let slope = zero - at.count * r * at.dispersion;
        let square = at.count * (r * r);
        Slopes {
            slope,
            bend: zero - at.count * (at.dispersion * at.dispersion),
            cross: zero - (slope + slope),
            own_slope: square,
            own_bend: zero - (square + square),
        }
    }
}

/// The predictor that effects of this size make of a row's own, within bounds.
#[inline(always)]
fn predictor<C: Cpu>(cpu: C, eta: C::V, z: [C::V; 2], u: [C::V; 2]) -> C::V {
    let sum = z[0].fma(u[0], z[1].fma(u[1], eta));
    // In this order a NaN stays one.
    cpu.splat(-FAR).max(cpu.splat(FAR).min(sum))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::LOG_2PI;
    use crate::math::hermite::gauss_hermite;
    use crate::math::stream;
    use rand::RngExt;

    /// Every way of this machine gives the same integrals and derivatives, but for their last digits.
    #[test]
    fn paths_agree() {
        let mut rng = stream(1, 0, 0, "effects");
        let log_weight = |(x, w): (f64, f64)| w.ln() + 0.5 * (x * x + LOG_2PI);
        let line: Vec<(f64, f64)> =
            gauss_hermite(9).into_iter().map(|node| (node.0, log_weight(node))).collect();
        let pair = |(x, l): &(f64, f64)| {
            let (x, l) = (*x, *l);
            line.iter().map(move |(y, m)| ([x, *y], l + m)).collect::<Vec<_>>()
        };
        let rule = NodeRule::new(&line.iter().flat_map(pair).collect::<Vec<_>>(), 2);
        for family in [Family::Gaussian, Family::Logistic, Family::Probit, Family::Poisson]
            .into_iter()
            .chain([Family::NegativeBinomial])
        {
            let family = EffectFamily::of(family).unwrap();
            // 600 rows: more than are added up at once, and no multiple of eight.
            for rows in [1, 7, 8, 21, 603] {
                let mut all = EffectRows::new(family, 2, Kernel::Portable);
                let mut eta = Vec::new();
                for _ in 0..rows {
                    let z = [1.0, rng.random_range(-1.0..1.0)];
                    let total = f64::from(rng.random_range(0..4u32));
                    all.push(3.0, total, z, [1.0, z[1]].into_iter());
                    eta.push(rng.random_range(-1.0..1.0));
                }
                let at =
                    EffectPoint { rows: &(0..rows), eta: &eta, own: 0.3, factor: [0.7, 0.2, 0.5] };
                let mut first: Option<Expansion> = None;
                for path in Path::all() {
                    all.path = path;
                    let placed = all.place(&rule, at).unwrap();
                    let moves = [0, 1, 0, 1].map(|k| placed.v[k].clone());
                    let wanted = WantedSlopes { own: true, effects: 3, hessian: true };
                    let found = all.derive(at, &placed, &moves, wanted);
                    let expected = first.get_or_insert_with(|| found.clone());
                    let near = |a: f64, b: f64| (a - b).abs() < 1e-10 * (1.0 + b.abs());
                    assert!(near(found.value, expected.value), "{family:?} {rows} {path:?}");
                    for j in 0..found.gradient.len() {
                        assert!(
                            near(found.gradient[j], expected.gradient[j]),
                            "{family:?} {path:?}"
                        );
                        for l in 0..found.gradient.len() {
                            let (a, b) = (found.hessian[(j, l)], expected.hessian[(j, l)]);
                            assert!((a - b).abs() < 1e-8 * (1.0 + b.abs()), "{family:?} {path:?}");
                        }
                    }
                }
            }
        }
    }
}
