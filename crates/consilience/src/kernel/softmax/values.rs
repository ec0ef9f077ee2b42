//! Log-likelihoods of classes without an order at many points.
//!
//! With m the larger of 0 and all ηⱼ − η_c, and u = Σ e^(ηⱼ − η_c − m) over all classes less 1, a row's log-likelihood is
//! −m − log(1 + u), and u ≥ 0 keeps its digits: where m is 0 the own class is that 1, else another is. As in the
//! logistic law, 1 + u of single observations are multiplied, and one logarithm is taken for many rows.

use super::{Class, FAR};
use crate::kernel::dispatch::Pass;
use crate::kernel::functions::{exp2_of_negative, log_of_1_and};
use crate::kernel::passes::each_column;
use crate::kernel::rows::{Cut, Rows};
use crate::kernel::simd::{Cpu, LANES, Lanes, Line, Vector};
use crate::math::Compensated;
use std::f64::consts::{LN_2, LOG2_E};

/// Points that are worked on together, so that a block's columns are in the nearest cache for all of them.
const TOGETHER: usize = 16;

/// Of so many classes a block's products stay numbers: 2⁸ to the power of its 120 panels.
const MOST_MULTIPLIED: usize = 256;

pub(super) struct ClassValues<'a> {
    pub rows: &'a Rows,
    pub class: Class,
    pub points: &'a [&'a [f64]],
    pub out: &'a mut [f64],
}

impl Pass for ClassValues<'_> {
    type Out = ();

    #[inline(always)]
    fn run<C: Cpu>(self, cpu: C) {
        match C::POINTS {
            8 => values::<C, 8>(cpu, self),
            4 => values::<C, 4>(cpu, self),
            _ => values::<C, 2>(cpu, self),
        }
    }
}

/// Some points: their coefficients in powers of two, D predictors side by side, whichever point's and class's they are.
struct Bundle<const D: usize> {
    points: usize,
    /// By predictors, then by column.
    beta: Vec<Vec<[f64; D]>>,
}

impl<const D: usize> Bundle<D> {
    fn new(columns: usize, others: usize, points: &[&[f64]]) -> Bundle<D> {
        let predictors: Vec<&[f64]> =
            points.iter().flat_map(|beta| (0..others).map(|k| &beta[k * columns..])).collect();
        let side = |some: &[&[f64]]| {
            let of_column =
                |j: usize| std::array::from_fn(|d| some.get(d).map_or(0.0, |b| LOG2_E * b[j]));
            (0..columns).map(of_column).collect()
        };
        Bundle { points: points.len(), beta: predictors.chunks(D).map(side).collect() }
    }
}

#[inline(always)]
fn values<C: Cpu, const D: usize>(cpu: C, work: ClassValues<'_>) {
    let ClassValues { rows, class, points, out } = work;
    let bundle = |points: &[&[f64]]| Bundle::<D>::new(rows.columns, class.count - 1, points);
    let bundles: Vec<Bundle<D>> = points.chunks(TOGETHER).map(bundle).collect();
    let mut sums = vec![Compensated::default(); points.len()];
    let mut desk = Vec::new();
    for block in &rows.blocks {
        let x = rows.laid(block, &mut desk);
        for (bundle, sums) in bundles.iter().zip(sums.chunks_mut(TOGETHER)) {
            let mut eta = vec![Line::ZERO; bundle.beta.len() * D];
            let mut parts = [(cpu.splat(0.0), cpu.splat(0.0)); TOGETHER];
            for group in rows.groups(block, x) {
                for (panels, cut) in rows.cuts(&group) {
                    for (k, panel) in panels.enumerate() {
                        predict(cpu, &cut, k, bundle, &mut eta);
                        let counts = &rows.margins.count[panel];
                        add_panel(cpu, class, counts, &eta, &mut parts[..bundle.points]);
                    }
                }
            }
            for (sum, (line, product)) in sums.iter_mut().zip(parts) {
                let logs: f64 = product.lanes().map(libm::log1p).iter().sum();
                sum.add(line.sum() * LN_2 - logs);
            }
        }
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = sum.value();
    }
}

/// All predictors of one panel.
#[inline(always)]
fn predict<C: Cpu, const D: usize>(
    cpu: C,
    cut: &Cut<'_>,
    k: usize,
    bundle: &Bundle<D>,
    eta: &mut [Line],
) {
    for (beta, eta) in bundle.beta.iter().zip(eta.as_chunks_mut::<D>().0) {
        let mut side = [cpu.splat(0.0); D];
        each_column(cut, k, beta, |x, beta| {
            let x = cpu.load(&x.0);
            for d in 0..D {
                side[d] = x.fma(cpu.splat(beta[d]), side[d]);
            }
        });
        for d in 0..D {
            // In this order a NaN stays one.
            cpu.splat(-FAR).max(cpu.splat(FAR).min(side[d])).store(&mut eta[d].0);
        }
    }
}

/// Adds one panel's log-likelihoods, in powers of two, to the first of each point's numbers, or 1 + u to the product of which the
/// second is 1 less.
#[inline(always)]
fn add_panel<C: Cpu>(
    cpu: C,
    class: Class,
    counts: &Lanes,
    eta: &[Line],
    parts: &mut [(C::V, C::V)],
) {
    let single = *counts == [1.0; LANES] && class.count <= MOST_MULTIPLIED;
    for (eta, part) in eta.chunks_exact(class.count - 1).zip(parts) {
        let (over, u) = odds(cpu, class, eta);
        if single {
            part.0 = part.0 - over;
            part.1 = part.1 + part.1.fma(u, u);
        } else {
            let all = over + log_of_1_and(cpu, u) * cpu.splat(LOG2_E);
            part.0 = part.0 - cpu.load(counts) * all;
        }
    }
}

/// m, in powers of two, and u of one panel, by the predictors of all classes but the first.
#[inline(always)]
fn odds<C: Cpu>(cpu: C, class: Class, eta: &[Line]) -> (C::V, C::V) {
    let zero = cpu.splat(0.0);
    // The first class is beside the others what its own predictor, 0, is.
    let (own, mut top) = match class.number {
        0 => (zero, zero),
        c => {
            let own = cpu.load(&eta[c - 1].0);
            (own, zero.max(zero - own))
        }
    };
    for (j, line) in eta.iter().enumerate() {
        if j + 1 != class.number {
            top = top.max(cpu.load(&line.0) - own);
        }
    }
    let mut others = zero;
    if class.number > 0 {
        others = exp2_of_negative(cpu, zero - own - top);
    }
    for (j, line) in eta.iter().enumerate() {
        if j + 1 != class.number {
            others = others + exp2_of_negative(cpu, cpu.load(&line.0) - own - top);
        }
    }
    let with_own = others + (exp2_of_negative(cpu, zero - top) - cpu.splat(1.0));
    (top, (zero - top).pick(others, with_own))
}
