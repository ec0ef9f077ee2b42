//! What derivatives of a group's integral are made of.

use super::{EffectLaw, EffectPoint, EffectRows, NodeMoves, PlacedGroup, WantedSlopes, predictor};
use crate::kernel::dispatch::Pass;
use crate::kernel::laws::{Outcomes, Sum};
use crate::kernel::simd::{Cpu, Line, Vector};
use crate::target::Expansion;
use std::marker::PhantomData;

/// Derivatives of a group's integral.
pub(super) struct DerivePass<'a, L> {
    pub rows: &'a EffectRows,
    pub at: EffectPoint<'a>,
    pub placed: &'a PlacedGroup,
    pub moves: &'a NodeMoves,
    pub wanted: WantedSlopes,
    pub law: PhantomData<L>,
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

impl<L: EffectLaw> Pass for DerivePass<'_, L> {
    type Out = Expansion;

    #[inline(always)]
    fn run<C: Cpu>(self, cpu: C) -> Expansion {
        let DerivePass { rows, at, placed, moves, wanted, .. } = self;
        let WantedSlopes { own, effects, hessian } = wanted;
        let (p, own) = (rows.width, usize::from(own));
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
