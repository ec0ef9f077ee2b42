//! Rows of a group whose effects are integrated out: the integrand's mode, its values at nodes around it, and what
//! derivatives of the integral are made of.
//!
//! At an effect v the predictor of a row is η + z'Lv. A search for the mode has eight rows side by side; at nodes, of which
//! there are many more than a small group has rows, eight of these are.

use super::dispatch::{Kernel, Pass, Path};
use super::family::Family;
use super::functions::exp2_of_negative;
use super::laws::{Law, Logistic, NegativeBinomial, Outcomes, Poisson, Probit, Slopes, Sum};
use super::simd::{Cpu, LANES, Lanes, Line, Vector};
use crate::math::{Compensated, LOG_2PI};
use crate::target::Expansion;
use std::f64::consts::LOG2_E;
use std::marker::PhantomData;
use std::ops::Range;

/// Predictors beyond this count as this: their squares are numbers still.
const FAR: f64 = 1e150;
/// Rows whose log-likelihoods are added up before they go to the sum of all.
const PART: usize = 512;
/// Vectors of nodes that share the loads of a row.
const SIDE: usize = 4;
/// Steps to a mode, halvings of one, and what a last one may still gain.
const STEPS: usize = 200;
const HALVINGS: usize = 60;
const NEAR: f64 = 1e-10;

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

/// How predictors move at every node: by the two effects, by what turns the second, and by what that turns by again.
pub type NodeMoves = [Vec<Line>; 4];

impl NodeRule {
    /// Nodes with the logarithms of their weights, for one effect or two.
    pub fn new(nodes: &[([f64; 2], f64)], effects: usize) -> NodeRule {
        let lines = |of: &dyn Fn(&([f64; 2], f64)) -> f64, rest: f64| -> Vec<Line> {
            let line = |some: &[([f64; 2], f64)]| {
                Line(std::array::from_fn(|k| some.get(k).map_or(rest, of)))
            };
            nodes.chunks(LANES).map(line).collect()
        };
        let x = [lines(&|node| node.0[0], 0.0), lines(&|node| node.0[1], 0.0)];
        // What fills the last line up weighs nothing.
        NodeRule { x, log_weight: lines(&|node| node.1, -1e300), effects }
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

    /// The integral's logarithm with its derivatives in the coefficients, the own parameter if `has_own`, and the effects'
    /// parameters; second ones if `hessian`. Gradients are expectations of those of log p(y, v|θ) over the nodes, Hessians
    /// expectations of Hessians plus covariances of gradients (Louis).
    pub fn derive(
        &self,
        at: EffectPoint,
        placed: &PlacedGroup,
        moves: &NodeMoves,
        (has_own, parameters, hessian): (bool, usize, bool),
    ) -> Expansion {
        let (p, own) = (self.width, usize::from(has_own));
        let shape = Shape { p, own, effects: parameters, hessian };
        match self.family {
            EffectFamily::Gaussian => self.derived::<Residual>(at, placed, moves, shape),
            EffectFamily::Logistic => self.derived::<Logistic>(at, placed, moves, shape),
            EffectFamily::Probit => self.derived::<Probit>(at, placed, moves, shape),
            EffectFamily::Poisson => self.derived::<Poisson>(at, placed, moves, shape),
            EffectFamily::NegativeBinomial => {
                self.derived::<NegativeBinomial>(at, placed, moves, shape)
            }
        }
    }

    fn placed<L: EffectLaw>(&self, rule: &NodeRule, at: EffectPoint) -> Option<PlacedGroup> {
        self.path.run(Place::<L> { rows: self, rule, at, law: PhantomData })
    }

    fn derived<L: EffectLaw>(
        &self,
        at: EffectPoint,
        placed: &PlacedGroup,
        moves: &NodeMoves,
        shape: Shape,
    ) -> Expansion {
        self.path.run(Derive::<L> { rows: self, at, placed, moves, shape, law: PhantomData })
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

/// log p(y|v)φ(v) at one v, without constants, with its gradient and negative Hessian.
struct Look {
    value: f64,
    slope: [f64; 2],
    bend: [f64; 3],
}

#[inline(always)]
fn look<L: EffectLaw, C: Cpu>(cpu: C, rows: &EffectRows, at: EffectPoint, v: [f64; 2]) -> Look {
    let [a, b, c] = at.factor;
    let u = [cpu.splat(a * v[0]), cpu.splat(b * v[0] + c * v[1])];
    let (zero, unit) = (cpu.splat(0.0), cpu.splat(L::UNIT));
    let (shift, dispersion) = (cpu.splat(L::shift(at.own)), cpu.splat(L::dispersion(at.own)));
    let (mut value, mut slope, mut bend) = (Compensated::default(), [zero; 2], [zero; 3]);
    let mut sum = Sum::zero(cpu);
    for first in (0..at.eta.len()).step_by(LANES) {
        let load = |all: &[f64], start: usize| cpu.load(&filled(all, start, at.eta.len() - first));
        let row = at.rows.start + first;
        let [count, total] = [&rows.count, &rows.total].map(|all| load(all, row));
        let z = [&rows.z[0], &rows.z[1]].map(|all| load(all, row));
        let eta = predictor(cpu, load(at.eta, first), z, u);
        let outcomes = Outcomes { count, total, dispersion };
        let found = L::derive(cpu, (eta - shift) * unit, outcomes, &mut sum);
        if L::LINEAR {
            sum.line = total.fma(eta, sum.line);
        }
        let t = [cpu.splat(a).fma(z[0], cpu.splat(b) * z[1]), cpu.splat(c) * z[1]];
        slope = [found.slope.fma(t[0], slope[0]), found.slope.fma(t[1], slope[1])];
        let bent = [found.bend * t[0], found.bend * t[1]];
        bend = [bend[0] - bent[0] * t[0], bend[1] - bent[0] * t[1], bend[2] - bent[1] * t[1]];
        if (first + LANES) % PART == 0 {
            value.add(sum.line.sum() * L::LINE);
            sum = Sum::zero(cpu);
        }
    }
    value.add(sum.line.sum() * L::LINE);
    Look {
        value: value.value() - 0.5 * (v[0] * v[0] + v[1] * v[1]),
        slope: [slope[0].sum() - v[0], slope[1].sum() - v[1]],
        bend: [1.0 + bend[0].sum(), bend[1].sum(), 1.0 + bend[2].sum()],
    }
}

/// Eight numbers from a place on, of which this many are there; zeros for the others.
#[inline(always)]
fn filled(all: &[f64], start: usize, count: usize) -> Lanes {
    let mut lanes = [0.0; LANES];
    let own = &all[start..start + count.min(LANES)];
    lanes[..own.len()].copy_from_slice(own);
    lanes
}

/// The factor C of a curvature, which is never below that of φ: its first entry, that below it, and the last.
fn factor(bend: [f64; 3]) -> [f64; 3] {
    let first = bend[0].max(1.0).sqrt();
    let below = bend[1] / first;
    [first, below, (bend[2] - below * below).max(1.0).sqrt()]
}

/// A group's integral: from the mode, to nodes in units of the curvature there.
struct Place<'a, L> {
    rows: &'a EffectRows,
    rule: &'a NodeRule,
    at: EffectPoint<'a>,
    law: PhantomData<L>,
}

impl<L: EffectLaw> Pass for Place<'_, L> {
    type Out = Option<PlacedGroup>;

    #[inline(always)]
    fn run<C: Cpu>(self, cpu: C) -> Option<PlacedGroup> {
        let Place { rows, rule, at, .. } = self;
        let (mode, [a, b, c]) = mode::<L, C>(cpu, rows, at)?;
        // v = mode + C⁻ᵀx.
        let lines = rule.log_weight.len();
        let mut v = [vec![Line::ZERO; lines], vec![Line::ZERO; lines]];
        let mut u = v.clone();
        let [f0, f1, f2] = at.factor.map(|f| cpu.splat(f));
        for k in 0..lines {
            let second = cpu.load(&rule.x[1][k].0) / cpu.splat(c);
            let first = (cpu.load(&rule.x[0][k].0) - cpu.splat(b) * second) / cpu.splat(a);
            let there = [cpu.splat(mode[0]) + first, cpu.splat(mode[1]) + second];
            there[0].store(&mut v[0][k].0);
            there[1].store(&mut v[1][k].0);
            (f0 * there[0]).store(&mut u[0][k].0);
            (f1 * there[0] + f2 * there[1]).store(&mut u[1][k].0);
        }
        let mut logs = vec![Line::ZERO; lines];
        for first in (0..lines).step_by(SIDE) {
            add_values::<L, C>(cpu, rows, at, [&u[0][first..], &u[1][first..]], &mut logs[first..]);
        }
        let mut top = f64::NEG_INFINITY;
        for k in 0..lines {
            let [x, y] = [cpu.load(&v[0][k].0), cpu.load(&v[1][k].0)];
            let log = cpu.load(&logs[k].0) + cpu.load(&rule.log_weight[k].0)
                - cpu.splat(0.5) * (x * x + y * y);
            log.store(&mut logs[k].0);
            top = logs[k].0.iter().copied().fold(top, f64::max);
        }
        let mut sum = cpu.splat(0.0);
        for line in &mut logs {
            let apart = cpu.load(&line.0) - cpu.splat(top);
            let share = exp2_of_negative(cpu, apart * cpu.splat(LOG2_E));
            share.store(&mut line.0);
            sum = sum + share;
        }
        let sum = sum.sum();
        if !top.is_finite() || !sum.is_finite() {
            return None;
        }
        for line in &mut logs {
            (cpu.load(&line.0) / cpu.splat(sum)).store(&mut line.0);
        }
        let units = 0.5 * rule.effects as f64 * LOG_2PI + libm::log(a) + libm::log(c);
        Some(PlacedGroup { v, share: logs, value: top + libm::log(sum) - units })
    }
}

/// The mode, and the factor of the curvature there. There is one mode, and Newton steps that are halved where they lead
/// down find it.
#[inline(always)]
fn mode<L: EffectLaw, C: Cpu>(
    cpu: C,
    rows: &EffectRows,
    at: EffectPoint,
) -> Option<([f64; 2], [f64; 3])> {
    // One copy of the rows' loop: the start, too, is a step from there.
    let (mut v, mut best, mut step, mut length, mut gain) = ([0.0; 2], None, [0.0; 2], 1.0, 0.0);
    let (mut steps, mut halvings) = (0, 0);
    loop {
        let there = [v[0] + length * step[0], v[1] + length * step[1]];
        let found = look::<L, C>(cpu, rows, at, there);
        let rises = match &best {
            None if !found.value.is_finite() => return None,
            None => true,
            Some(Look { value, .. }) => found.value >= value + 1e-4 * length * gain,
        };
        if rises {
            let [a, b, c] = factor(found.bend);
            // By forward and back substitution.
            let first = found.slope[0] / a;
            let second = (found.slope[1] - b * first) / c;
            step = [(first - b * second / c) / a, second / c];
            gain = first * first + second * second;
            (v, length, halvings, steps) = (there, 1.0, 0, steps + 1);
            best = Some(found);
            if !gain.is_finite() {
                return None;
            }
            if gain < NEAR || steps > STEPS {
                break;
            }
        } else {
            (length, halvings) = (0.5 * length, halvings + 1);
            // No way up in the digits that there are: near enough.
            if halvings > HALVINGS {
                break;
            }
        }
    }
    best.map(|found| (v, factor(found.bend)))
}

/// Adds the rows' log-likelihoods at up to [`SIDE`] vectors of nodes.
#[inline(always)]
fn add_values<L: EffectLaw, C: Cpu>(
    cpu: C,
    rows: &EffectRows,
    at: EffectPoint,
    u: [&[Line]; 2],
    out: &mut [Line],
) {
    let (zero, unit) = (cpu.splat(0.0), cpu.splat(L::UNIT));
    let (shift, dispersion) = (cpu.splat(L::shift(at.own)), cpu.splat(L::dispersion(at.own)));
    let width = out.len().min(SIDE);
    let mut own = [[zero; 2]; SIDE];
    for k in 0..width {
        own[k] = [cpu.load(&u[0][k].0), cpu.load(&u[1][k].0)];
    }
    let mut all = [zero; SIDE];
    for part in (0..at.eta.len()).step_by(PART) {
        let mut sums = [Sum::zero(cpu); SIDE];
        for i in part..at.eta.len().min(part + PART) {
            let row = at.rows.start + i;
            let total = cpu.splat(rows.total[row]);
            let outcomes = Outcomes { count: cpu.splat(rows.count[row]), total, dispersion };
            let z = [cpu.splat(rows.z[0][row]), cpu.splat(rows.z[1][row])];
            let eta = cpu.splat(at.eta[i]);
            for k in 0..SIDE {
                let eta = predictor(cpu, eta, z, own[k]);
                L::value(cpu, (eta - shift) * unit, outcomes, &mut sums[k]);
                if L::LINEAR {
                    sums[k].line = total.fma(eta, sums[k].line);
                }
            }
        }
        for k in 0..SIDE {
            all[k] = all[k] + sums[k].line;
        }
    }
    for k in 0..width {
        (all[k] * cpu.splat(L::LINE)).store(&mut out[k].0);
    }
}

/// How many parameters there are of each sort.
#[derive(Clone, Copy)]
struct Shape {
    p: usize,
    own: usize,
    effects: usize,
    hessian: bool,
}

/// Derivatives of a group's integral.
struct Derive<'a, L> {
    rows: &'a EffectRows,
    at: EffectPoint<'a>,
    placed: &'a PlacedGroup,
    moves: &'a NodeMoves,
    shape: Shape,
    law: PhantomData<L>,
}

/// The effect that a parameter of the effects moves.
const MOVED: [usize; 3] = [0, 1, 1];

/// The move that two parameters of the effects make together, the first of which is not before the other.
fn second_move(m: usize, n: usize) -> Option<usize> {
    match (m, n) {
        (0, 0) => Some(0),
        (1, 1) => Some(1),
        (2, 1) => Some(2),
        (2, 2) => Some(3),
        _ => None,
    }
}

impl<L: EffectLaw> Pass for Derive<'_, L> {
    type Out = Expansion;

    #[inline(always)]
    fn run<C: Cpu>(self, cpu: C) -> Expansion {
        let Derive { rows, at, placed, moves, shape, .. } = self;
        let Shape { p, own, effects, hessian } = shape;
        let (d, first, lines) = (p + own + effects, p + own, placed.share.len());
        let (zero, unit) = (cpu.splat(0.0), cpu.splat(L::UNIT));
        let (shift, dispersion) = (cpu.splat(L::shift(at.own)), cpu.splat(L::dispersion(at.own)));
        // Per parameter and node the gradient of log p(y, v|θ).
        let mut scores = vec![Line::ZERO; d * lines];
        let mut add = |j: usize, k: usize, by: C::V| {
            let line = &mut scores[j * lines + k].0;
            (cpu.load(line) + by).store(line);
        };
        let mut out = Expansion::zeros(d);
        out.value = placed.value;
        for (i, eta) in at.eta.iter().enumerate() {
            let (row, x) = (at.rows.start + i, rows.columns(at.rows.start + i));
            let z = [cpu.splat(rows.z[0][row]), cpu.splat(rows.z[1][row])];
            let total = cpu.splat(rows.total[row]);
            let outcomes = Outcomes { count: cpu.splat(rows.count[row]), total, dispersion };
            // Expectations of second derivatives: in η twice, in η and another parameter, among these.
            let (mut bend, mut cross, mut own_bend) = (zero, zero, zero);
            let (mut with, mut with_own, mut among) = ([zero; 3], [zero; 3], [zero; 9]);
            for k in 0..lines {
                let load = |of: &[Line]| cpu.load(&of[k].0);
                let u = [load(&moves[0]), load(&moves[1])];
                let eta = predictor(cpu, cpu.splat(*eta), z, u);
                let found = L::derive(cpu, (eta - shift) * unit, outcomes, &mut Sum::zero(cpu));
                for (j, x) in x.iter().enumerate() {
                    add(j, k, found.slope * cpu.splat(*x));
                }
                if own > 0 {
                    add(p, k, found.own_slope);
                }
                let push = |m: usize| z[MOVED[m]] * load(&moves[m]);
                for m in 0..effects {
                    add(first + m, k, found.slope * push(m));
                }
                if !hessian {
                    continue;
                }
                let share = load(&placed.share);
                let bent = share * found.bend;
                bend = bend + bent;
                cross = share.fma(found.cross, cross);
                own_bend = share.fma(found.own_bend, own_bend);
                for m in 0..effects {
                    with[m] = bent.fma(push(m), with[m]);
                    with_own[m] = (share * found.cross).fma(push(m), with_own[m]);
                    for n in 0..=m {
                        let mut both = found.bend * push(m) * push(n);
                        if let Some(second) = second_move(m, n) {
                            both = found.slope.fma(z[MOVED[m]] * load(&moves[second]), both);
                        }
                        among[3 * m + n] = share.fma(both, among[3 * m + n]);
                    }
                }
            }
            if !hessian {
                continue;
            }
            let h = &mut out.hessian;
            let (bend, cross) = (bend.sum(), cross.sum());
            for (j, xj) in x.iter().enumerate() {
                for (l, xl) in x[..=j].iter().enumerate() {
                    h[(j, l)] += bend * xj * xl;
                }
                if own > 0 {
                    h[(p, j)] += cross * xj;
                }
            }
            if own > 0 {
                h[(p, p)] += own_bend.sum();
            }
            for m in 0..effects {
                let with = with[m].sum();
                x.iter().enumerate().for_each(|(j, xj)| h[(first + m, j)] += with * xj);
                if own > 0 {
                    h[(first + m, p)] += with_own[m].sum();
                }
                for n in 0..=m {
                    h[(first + m, first + n)] += among[3 * m + n].sum();
                }
            }
        }
        gather(cpu, &scores, &placed.share, hessian, &mut out);
        out
    }
}

/// The gradient as the scores' expectation, and their covariance added to the Hessian.
#[inline(always)]
fn gather<C: Cpu>(cpu: C, scores: &[Line], share: &[Line], hessian: bool, out: &mut Expansion) {
    let lines = share.len();
    let score = |j: usize, k: usize| cpu.load(&scores[j * lines + k].0);
    let d = out.gradient.len();
    for j in 0..d {
        let mut sum = cpu.splat(0.0);
        for k in 0..lines {
            sum = cpu.load(&share[k].0).fma(score(j, k), sum);
        }
        out.gradient[j] = sum.sum();
    }
    if !hessian {
        return;
    }
    for j in 0..d {
        for l in 0..=j {
            let means = [cpu.splat(out.gradient[j]), cpu.splat(out.gradient[l])];
            let mut sum = cpu.splat(0.0);
            for k in 0..lines {
                let apart = (score(j, k) - means[0]) * (score(l, k) - means[1]);
                sum = cpu.load(&share[k].0).fma(apart, sum);
            }
            out.hessian[(j, l)] += sum.sum();
        }
    }
    out.hessian.mirror_lower();
}

#[cfg(test)]
mod tests {
    use super::*;
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
                    let found = all.derive(at, &placed, &moves, (true, 3, true));
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
