//! The loops over rows: values at many points, and derivatives at one.

use super::dispatch::Pass;
use super::family::Family;
use super::large::{LargeNegativeBinomial, LargePoisson};
use super::laws::{
    Law, Logistic, LogisticOnes, NegativeBinomial, Outcomes, Poisson, Probit, ProbitOnes, Slopes,
    Sum,
};
use super::panels::GROUP;
pub use super::products::{Gram, Predict, Transposed};
use super::products::{Lower, add_columns, line_sum, offset};
use super::rows::{Block, Cut, Extra, Group, Rows};
use super::simd::{Cpu, Line, Vector};
use crate::math::{Compensated, Matrix};

/// Calls a generic function with the law of the rows, or with that of its rows of count 1.
macro_rules! with_law {
    ($rows:expr, $ones:expr, $call:ident :: <$cpu:ident, _ $(, $more:tt)*> $arguments:tt) => {
        match $rows.family() {
            Family::Logistic if $ones => $call::<$cpu, LogisticOnes $(, $more)*> $arguments,
            Family::Logistic => $call::<$cpu, Logistic $(, $more)*> $arguments,
            Family::NegativeBinomial if $rows.margins.large => {
                $call::<$cpu, LargeNegativeBinomial $(, $more)*> $arguments
            }
            Family::NegativeBinomial => $call::<$cpu, NegativeBinomial $(, $more)*> $arguments,
            Family::Poisson if $rows.margins.large => $call::<$cpu, LargePoisson $(, $more)*> $arguments,
            Family::Poisson => $call::<$cpu, Poisson $(, $more)*> $arguments,
            _ if $ones => $call::<$cpu, ProbitOnes $(, $more)*> $arguments,
            _ => $call::<$cpu, Probit $(, $more)*> $arguments,
        }
    };
}

/// The log-likelihood at many points.
pub struct ValuePass<'a> {
    pub rows: &'a Rows,
    pub points: &'a [(&'a [f64], f64)],
    pub out: &'a mut [f64],
}

/// Points that share their loads of x: coefficients, −a and e^a, one point beside the other.
struct Tile<const D: usize> {
    beta: Vec<[f64; D]>,
    shift: [f64; D],
    dispersion: [f64; D],
}

impl<const D: usize> Tile<D> {
    fn new(rows: &Rows, points: &[(&[f64], f64)]) -> Tile<D> {
        let unit = unit(rows.family());
        let has_own = rows.family() == Family::NegativeBinomial;
        let mut beta = vec![[0.0; D]; rows.columns];
        let (mut shift, mut dispersion) = ([0.0; D], [0.0; D]);
        for (d, (point, a)) in points.iter().enumerate() {
            for (slot, b) in beta.iter_mut().zip(*point) {
                slot[d] = unit * b;
            }
            if has_own {
                // Large counts have predictors relative to themselves, not to a.
                shift[d] = if rows.margins.large { 0.0 } else { -unit * a };
                dispersion[d] = libm::exp(*a);
            }
        }
        Tile { beta, shift, dispersion }
    }
}

/// What predictors are multiplied by.
fn unit(family: Family) -> f64 {
    match family {
        Family::Probit => Probit::UNIT,
        _ => Logistic::UNIT,
    }
}

impl Pass for ValuePass<'_> {
    type Out = ();

    #[inline(always)]
    fn run<C: Cpu>(self, cpu: C) {
        match C::POINTS {
            8 => tiles::<C, 8>(cpu, self),
            4 => tiles::<C, 4>(cpu, self),
            _ => tiles::<C, 2>(cpu, self),
        }
    }
}

#[inline(always)]
fn tiles<C: Cpu, const D: usize>(cpu: C, work: ValuePass<'_>) {
    let ValuePass { rows, points, out } = work;
    // What is left over goes one by one; no point's value depends on its company.
    let (whole, rest) = points.split_at(points.len() / D * D);
    let many: Vec<Tile<D>> = whole.chunks_exact(D).map(|c| Tile::new(rows, c)).collect();
    let single: Vec<Tile<1>> = rest.chunks_exact(1).map(|c| Tile::new(rows, c)).collect();
    let mut sums = vec![Compensated::default(); points.len()];
    let mut desk = Vec::new();
    for block in &rows.blocks {
        let x = rows.laid(block, &mut desk);
        let (whole, rest) = sums.split_at_mut(many.len() * D);
        for (tile, sums) in many.iter().zip(whole.chunks_exact_mut(D)) {
            block_values::<C, D>(cpu, rows, (block, x), tile, sums);
        }
        for (tile, sums) in single.iter().zip(rest.chunks_exact_mut(1)) {
            block_values::<C, 1>(cpu, rows, (block, x), tile, sums);
        }
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = sum.value();
    }
}

#[inline(always)]
fn block_values<C: Cpu, const D: usize>(
    cpu: C,
    rows: &Rows,
    (block, x): (&Block, &[Line]),
    tile: &Tile<D>,
    out: &mut [Compensated],
) {
    let mut sums = [Sum::zero(cpu); D];
    for group in rows.groups(block, x) {
        with_law!(rows, group.ones, group_values::<C, _, D>(cpu, rows, &group, tile, &mut sums));
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        out.add(with_law!(rows, false, total::<C, _>(sum)));
    }
}

#[inline(always)]
fn total<C: Cpu, L: Law>(sum: Sum<C::V>) -> f64 {
    sum.total::<L>()
}

#[inline(always)]
fn group_values<C: Cpu, L: Law, const D: usize>(
    cpu: C,
    rows: &Rows,
    group: &Group,
    tile: &Tile<D>,
    sums: &mut [Sum<C::V>; D],
) {
    // In a local variable the sums can stay in registers.
    let mut local = *sums;
    let margins = &*rows.margins;
    for (panels, cut) in rows.cuts(group) {
        for (k, panel) in panels.enumerate() {
            let mut eta = [cpu.splat(0.0); D];
            if rows.has_offset || rows.family() == Family::NegativeBinomial {
                let offset = offset(cpu, rows, panel, group.ones) * cpu.splat(L::UNIT);
                for d in 0..D {
                    eta[d] = offset + cpu.splat(tile.shift[d]);
                }
            }
            each_column(&cut, k, &tile.beta, |x, beta| {
                let x = cpu.load(&x.0);
                for d in 0..D {
                    eta[d] = x.fma(cpu.splat(beta[d]), eta[d]);
                }
            });
            let (count, total) = (cpu.load(&margins.count[panel]), cpu.load(&margins.total[panel]));
            for d in 0..D {
                let at = Outcomes { count, total, dispersion: cpu.splat(tile.dispersion[d]) };
                L::value(cpu, eta[d], at, &mut local[d]);
            }
        }
    }
    *sums = local;
}

/// Hands on a panel's columns, one after the other, each with its coefficients. It is written out for the
/// cases that are common, in which fewer numbers have to be looked up and checked.
#[inline(always)]
pub(super) fn each_column<T>(cut: &Cut<'_>, k: usize, beta: &[T], mut work: impl FnMut(&Line, &T)) {
    let x = cut.panel(k);
    if cut.packed {
        for (x, &j) in x.iter().zip(cut.index) {
            work(x, &beta[j as usize]);
        }
    } else if cut.index.len() == beta.len() {
        for (&place, beta) in cut.places.iter().zip(beta) {
            work(&x[place as usize], beta);
        }
    } else {
        for (&place, &j) in cut.places.iter().zip(cut.index) {
            work(&x[place as usize], &beta[j as usize]);
        }
    }
}

/// Value, gradient and, if asked for, Hessian at one point.
pub struct Derive<'a, const HESSIAN: bool> {
    pub rows: &'a Rows,
    pub beta: &'a [f64],
    pub a: f64,
    pub gradient: &'a mut [f64],
}

/// Sums over all rows, a vector each.
struct RowSums {
    gradient: Vec<Line>,
    cross: Vec<Line>,
    hessian: Lower,
    /// Derivatives of the panels at hand.
    slopes: [Line; GROUP],
    bends: [Line; GROUP],
    crosses: [Line; GROUP],
}

impl<const HESSIAN: bool> Pass for Derive<'_, HESSIAN> {
    type Out = (f64, Extra, Matrix);

    #[inline(always)]
    fn run<C: Cpu>(self, cpu: C) -> (f64, Extra, Matrix) {
        let Derive { rows, beta, a, gradient } = self;
        let p = rows.columns;
        let tile = Tile::<1>::new(rows, &[(beta, a)]);
        let has_own = rows.family() == Family::NegativeBinomial;
        let second = if HESSIAN { p } else { 0 };
        let mut sums = RowSums {
            gradient: vec![Line::ZERO; p],
            cross: vec![Line::ZERO; if has_own { second } else { 0 }],
            hessian: Lower::zeros(second),
            slopes: [Line::ZERO; GROUP],
            bends: [Line::ZERO; GROUP],
            crosses: [Line::ZERO; GROUP],
        };
        let mut value = Compensated::default();
        let (mut slope, mut bend) = (cpu.splat(0.0), cpu.splat(0.0));
        let mut desk = Vec::new();
        for block in &rows.blocks {
            let mut sum = Sum::zero(cpu);
            let x = rows.laid(block, &mut desk);
            for group in rows.groups(block, x) {
                let own = with_law!(
                    rows,
                    group.ones,
                    derive_group::<C, _, HESSIAN>(cpu, rows, &group, &tile, &mut sum, &mut sums)
                );
                (slope, bend) = (slope + own.0, bend + own.1);
            }
            value.add(with_law!(rows, false, total::<C, _>(sum)));
        }
        for (out, lanes) in gradient.iter_mut().zip(&sums.gradient) {
            *out = line_sum(lanes);
        }
        let cross = sums.cross.iter().map(line_sum).collect();
        let extra = Extra { slope: slope.sum(), bend: bend.sum(), cross };
        (value.value(), extra, sums.hessian.matrix())
    }
}

/// Adds one group's derivatives; returns those in a.
#[inline(always)]
fn derive_group<C: Cpu, L: Law, const HESSIAN: bool>(
    cpu: C,
    rows: &Rows,
    group: &Group,
    tile: &Tile<1>,
    sum: &mut Sum<C::V>,
    sums: &mut RowSums,
) -> (C::V, C::V) {
    let first = group.panels.start;
    // Three loops, so that short segments do not interrupt the long one: predictors,
    for (panels, cut) in rows.cuts(group) {
        for (k, panel) in panels.enumerate() {
            let offset = offset(cpu, rows, panel, group.ones);
            let eta = predictor::<C, L>(cpu, offset, &cut, k, tile);
            eta.store(&mut sums.slopes[panel - first].0);
        }
    }
    // derivatives,
    let (mut own_slope, mut own_bend) = (cpu.splat(0.0), cpu.splat(0.0));
    let mut local = *sum;
    let dispersion = cpu.splat(tile.dispersion[0]);
    for panel in group.panels.clone() {
        let k = panel - first;
        let eta = cpu.load(&sums.slopes[k].0);
        let margins = &*rows.margins;
        let (count, total) = (cpu.load(&margins.count[panel]), cpu.load(&margins.total[panel]));
        let at = Outcomes { count, total, dispersion };
        let found: Slopes<C::V> = L::derive(cpu, eta, at, &mut local);
        own_slope = own_slope + found.own_slope;
        found.slope.store(&mut sums.slopes[k].0);
        if HESSIAN {
            own_bend = own_bend + found.own_bend;
            found.bend.store(&mut sums.bends[k].0);
            found.cross.store(&mut sums.crosses[k].0);
        }
    }
    *sum = local;
    // and their products with x.
    for (panels, cut) in rows.cuts(group) {
        let range = panels.start - first..panels.end - first;
        add_columns(cpu, &cut, &sums.slopes[range.clone()], &mut sums.gradient);
        if HESSIAN {
            sums.hessian.add(cpu, &cut, &sums.bends[range.clone()]);
            if !sums.cross.is_empty() {
                add_columns(cpu, &cut, &sums.crosses[range], &mut sums.cross);
            }
        }
    }
    (own_slope, own_bend)
}

/// The linear predictors of one panel, times the law's unit. Two sums run side by side.
#[inline(always)]
fn predictor<C: Cpu, L: Law>(
    cpu: C,
    offset: C::V,
    cut: &Cut<'_>,
    k: usize,
    tile: &Tile<1>,
) -> C::V {
    let mut even = offset.fma(cpu.splat(L::UNIT), cpu.splat(tile.shift[0]));
    let mut odd = cpu.splat(0.0);
    let x = cut.panel(k);
    if cut.packed {
        let (pairs, last) = x.as_chunks::<2>();
        for (x, j) in pairs.iter().zip(cut.index.chunks_exact(2)) {
            even = cpu.load(&x[0].0).fma(cpu.splat(tile.beta[j[0] as usize][0]), even);
            odd = cpu.load(&x[1].0).fma(cpu.splat(tile.beta[j[1] as usize][0]), odd);
        }
        if let ([x], Some(&j)) = (last, cut.index.last()) {
            even = cpu.load(&x.0).fma(cpu.splat(tile.beta[j as usize][0]), even);
        }
        return even + odd;
    }
    let (pairs, last) = cut.places.as_chunks::<2>();
    for (at, j) in pairs.iter().zip(cut.index.chunks_exact(2)) {
        even = cpu.load(&x[at[0] as usize].0).fma(cpu.splat(tile.beta[j[0] as usize][0]), even);
        odd = cpu.load(&x[at[1] as usize].0).fma(cpu.splat(tile.beta[j[1] as usize][0]), odd);
    }
    if let ([at], Some(&j)) = (last, cut.index.last()) {
        even = cpu.load(&x[*at as usize].0).fma(cpu.splat(tile.beta[j as usize][0]), even);
    }
    even + odd
}
