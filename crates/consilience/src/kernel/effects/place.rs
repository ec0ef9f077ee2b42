//! A group's integral: from the mode, to nodes in units of the curvature there.

use super::{EffectLaw, EffectPoint, EffectRows, NodeRule, PlacedGroup, predictor};
use crate::kernel::dispatch::Pass;
use crate::kernel::functions::exp2_of_negative;
use crate::kernel::laws::{Outcomes, Sum};
use crate::kernel::simd::{Cpu, LANES, Lanes, Line, Vector};
use crate::math::{Compensated, LOG_2PI};
use std::f64::consts::LOG2_E;
use std::marker::PhantomData;

/// Rows whose log-likelihoods are added up before they go to the sum of all.
const PART: usize = 512;
/// Vectors of nodes that share the loads of a row.
const SIDE: usize = 4;
/// Steps to a mode, halvings of one, and what a last one may still gain.
const STEPS: usize = 200;
const HALVINGS: usize = 60;
const NEAR: f64 = 1e-10;

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
        if (first + LANES).is_multiple_of(PART) {
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
pub(super) struct PlacePass<'a, L> {
    pub rows: &'a EffectRows,
    pub rule: &'a NodeRule,
    pub at: EffectPoint<'a>,
    pub law: PhantomData<L>,
}

impl<L: EffectLaw> Pass for PlacePass<'_, L> {
    type Out = Option<PlacedGroup>;

    #[inline(always)]
    fn run<C: Cpu>(self, cpu: C) -> Option<PlacedGroup> {
        let PlacePass { rows, rule, at, .. } = self;
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
