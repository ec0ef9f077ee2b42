//! Rows of one of several classes without an order: P(y = k) = e^ηₖ/Σⱼ e^ηⱼ, with η = 0 for the first.
//!
//! Rows of a class stand in `Rows` of their own. With z = log Σ e^(ηⱼ − η_c) over all other classes j, a row of class c has
//! the log-likelihood −log(1 + e^z): of two classes that is the logistic law, and nothing large cancels.

mod values;

use super::dispatch::{Kernel, Pass};
use super::family::Family;
use super::functions::{exp2, log, log1p};
use super::panels::{GROUP, Margins};
use super::passes::each_column;
use super::products::{Lower, add_columns, line_sum};
use super::rows::{Group, Rows};
use super::simd::{Cpu, Line, Vector};
use crate::math::{Compensated, Matrix};
use std::f64::consts::LOG2_E;
use values::ClassValues;

/// Classes whose predictors are built side by side, so that x is loaded once for all of them.
const SIDE: usize = 4;

/// Predictors beyond this count as this: their differences are numbers still.
pub(super) const FAR: f64 = 1e150;

/// The class of some rows, and how many classes there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// Its number, counted from 0, which is the class that others are compared with.
    pub number: usize,
    /// How many there are.
    pub count: usize,
}

/// Sums over rows of a class: the log-likelihood and its derivatives in β, which are those of the second class, then those
/// of the third, and so on.
#[derive(Debug, Clone)]
pub struct ClassSums {
    /// The log-likelihood.
    pub value: f64,
    /// In β.
    pub gradient: Vec<f64>,
    /// In β; empty unless it was asked for.
    pub hessian: Matrix,
}

impl Rows {
    /// Panels of distinct rows of one class. `columns[j][i]` is x of row i, column j.
    pub fn of_class(columns: &[Vec<f64>], count: &[f64], kernel: Kernel) -> Rows {
        let none = vec![0.0; count.len()];
        let margins = Margins::new(Family::Multinomial, &none, count, &none, false);
        Rows::own(margins, columns, kernel)
    }

    /// The log-likelihood of rows of one class at each point: the coefficients of all classes but the first.
    pub fn class_values(&self, class: Class, points: &[&[f64]], out: &mut [f64]) {
        self.path.run(ClassValues { rows: self, class, points, out });
    }

    /// The log-likelihood of rows of one class with its derivatives, of second order if `hessian`.
    pub fn class_sums(&self, class: Class, beta: &[f64], hessian: bool) -> ClassSums {
        self.path.run(ClassDerive { rows: self, class, beta, hessian })
    }
}

/// The coefficients of some classes side by side, per column.
type ClassTile = Vec<[f64; SIDE]>;

fn tiles(columns: usize, class: Class, beta: &[f64]) -> Vec<ClassTile> {
    let others: Vec<usize> = (0..class.count - 1).collect();
    let tile = |own: &[usize]| -> ClassTile {
        let of_column =
            |j: usize| std::array::from_fn(|d| own.get(d).map_or(0.0, |&k| beta[k * columns + j]));
        (0..columns).map(of_column).collect()
    };
    others.chunks(SIDE).map(tile).collect()
}

/// The predictors of a group's panels, class after class; those of the first class are 0.
#[inline(always)]
fn predict<C: Cpu>(cpu: C, rows: &Rows, group: &Group, tiles: &[ClassTile], eta: &mut [Line]) {
    eta.fill(Line::ZERO);
    let first = group.panels.start;
    let (low, high) = (cpu.splat(-FAR), cpu.splat(FAR));
    for (panels, cut) in rows.cuts(group) {
        for (k, panel) in panels.enumerate() {
            for (t, tile) in tiles.iter().enumerate() {
                let mut sums = [cpu.splat(0.0); SIDE];
                each_column(&cut, k, tile, |x, beta| {
                    let x = cpu.load(&x.0);
                    for d in 0..SIDE {
                        sums[d] = x.fma(cpu.splat(beta[d]), sums[d]);
                    }
                });
                for d in 0..SIDE {
                    let place = (1 + t * SIDE + d) * GROUP + panel - first;
                    if let Some(line) = eta.get_mut(place) {
                        low.max(high.min(sums[d])).store(&mut line.0);
                    }
                }
            }
        }
    }
}

/// What a panel's rows of a class are made of: z, and the sum of the other classes' e^(ηⱼ − η_c), the largest of which
/// counts as 1.
#[derive(Clone, Copy)]
struct Odds<V> {
    z: V,
    sum: V,
}

/// The odds of one panel, k of its group. In the place of the predictors of other classes stands what each adds to the
/// sum.
#[inline(always)]
fn odds<C: Cpu>(cpu: C, class: Class, k: usize, eta: &mut [Line]) -> Odds<C::V> {
    let own = cpu.load(&eta[class.number * GROUP + k].0);
    let mut top = cpu.splat(-4.0 * FAR);
    for j in (0..class.count).filter(|&j| j != class.number) {
        let line = &mut eta[j * GROUP + k].0;
        let apart = cpu.load(line) - own;
        apart.store(line);
        top = top.max(apart);
    }
    let mut sum = cpu.splat(0.0);
    for j in (0..class.count).filter(|&j| j != class.number) {
        let line = &mut eta[j * GROUP + k].0;
        let part = exp(cpu, cpu.load(line) - top);
        part.store(line);
        sum = sum + part;
    }
    Odds { z: top + log(cpu, sum), sum }
}

/// e^x for x ≤ 0; never 0.
#[inline(always)]
fn exp<C: Cpu>(cpu: C, x: C::V) -> C::V {
    exp2(cpu, x * cpu.splat(LOG2_E))
}

/// log(1 + e^z).
#[inline(always)]
fn softplus<C: Cpu>(cpu: C, z: C::V) -> C::V {
    cpu.splat(0.0).max(z) + log1p(cpu, exp(cpu, z.neg_abs()))
}

/// The log-likelihood with its derivatives at one point.
struct ClassDerive<'a> {
    rows: &'a Rows,
    class: Class,
    beta: &'a [f64],
    hessian: bool,
}

impl Pass for ClassDerive<'_> {
    type Out = ClassSums;

    #[inline(always)]
    fn run<C: Cpu>(self, cpu: C) -> ClassSums {
        let ClassDerive { rows, class, beta, hessian } = self;
        let (width, others) = (rows.columns, class.count - 1);
        let tiles = tiles(width, class, beta);
        let mut gradient = vec![Line::ZERO; others * width];
        let pairs = if hessian { others * (others + 1) / 2 } else { 0 };
        let mut blocks: Vec<Lower> = (0..pairs).map(|_| Lower::zeros(width)).collect();
        let mut chances = vec![Line::ZERO; class.count * GROUP];
        let mut slopes = vec![Line::ZERO; class.count * GROUP];
        let mut value = Compensated::default();
        let mut desk = Vec::new();
        for block in &rows.blocks {
            let x = rows.laid(block, &mut desk);
            let mut sum = cpu.splat(0.0);
            for group in rows.groups(block, x) {
                predict(cpu, rows, &group, &tiles, &mut chances);
                for (k, panel) in group.panels.clone().enumerate() {
                    let count = cpu.load(&rows.margins.count[panel]);
                    let at = (class, k);
                    let found = chances_of(cpu, at, count, &mut chances, &mut slopes);
                    sum = sum - count * found;
                }
                let first = group.panels.start;
                for (panels, cut) in rows.cuts(&group) {
                    let (start, end) = (panels.start - first, panels.end - first);
                    for k in 0..others {
                        let own = &slopes[(1 + k) * GROUP + start..(1 + k) * GROUP + end];
                        add_columns(cpu, &cut, own, &mut gradient[k * width..(k + 1) * width]);
                    }
                }
                add_bends(cpu, rows, &group, class, &chances, &mut blocks);
            }
            value.add(sum.sum());
        }
        ClassSums {
            value: value.value(),
            gradient: gradient.iter().map(line_sum).collect(),
            hessian: if hessian { whole(&blocks, width, others) } else { Matrix::zeros(0, 0) },
        }
    }
}

/// One panel's probabilities, in the place of its predictors, and its slopes in them; returns log(1 + e^z).
#[inline(always)]
fn chances_of<C: Cpu>(
    cpu: C,
    (class, k): (Class, usize),
    count: C::V,
    eta: &mut [Line],
    slopes: &mut [Line],
) -> C::V {
    let Odds { z, sum } = odds(cpu, class, k, eta);
    let (one, small) = (cpu.splat(1.0), exp(cpu, z.neg_abs()));
    let (near, far) = (one / (one + small), small / (one + small));
    let (missed, met) = (z.pick(near, far), z.pick(far, near));
    let share = missed / sum;
    for j in 0..class.count {
        let place = j * GROUP + k;
        let line = &mut eta[place].0;
        let is_own = j == class.number;
        let chance = if is_own { met } else { share * cpu.load(line) };
        chance.store(line);
        let slope = if is_own { missed } else { cpu.splat(0.0) - chance };
        (count * slope).store(&mut slopes[place].0);
    }
    softplus(cpu, z)
}

/// Adds a group's part of the Hessian, pair of classes by pair: count·pₐp_b, and on the diagonal −count·pₐ(1 − pₐ), of which
/// 1 − pₐ is the sum of the others, so that it keeps its digits.
#[inline(always)]
fn add_bends<C: Cpu>(
    cpu: C,
    rows: &Rows,
    group: &Group,
    class: Class,
    chances: &[Line],
    blocks: &mut [Lower],
) {
    let first = group.panels.start;
    let mut bends = [Line::ZERO; GROUP];
    let pairs = (1..class.count).flat_map(|a| (1..=a).map(move |b| (a, b)));
    for (block, (a, b)) in blocks.iter_mut().zip(pairs) {
        for (k, panel) in group.panels.clone().enumerate() {
            let chance = |j: usize| cpu.load(&chances[j * GROUP + k].0);
            let count = cpu.load(&rows.margins.count[panel]);
            let mut beside = chance(b);
            if a == b {
                beside = cpu.splat(0.0);
                for j in (0..class.count).filter(|&j| j != a) {
                    beside = beside - chance(j);
                }
            }
            (count * chance(a) * beside).store(&mut bends[k].0);
        }
        for (panels, cut) in rows.cuts(group) {
            block.add(cpu, &cut, &bends[panels.start - first..panels.end - first]);
        }
    }
}

/// The Hessian from its blocks, each of which is symmetric.
fn whole(blocks: &[Lower], width: usize, others: usize) -> Matrix {
    let mut out = Matrix::zeros(others * width, others * width);
    let pairs = (0..others).flat_map(|a| (0..=a).map(move |b| (a, b)));
    for (block, (a, b)) in blocks.iter().zip(pairs) {
        let block = block.matrix();
        for i in 0..width {
            for j in 0..width {
                out[(a * width + i, b * width + j)] = block[(i, j)];
                out[(b * width + i, a * width + j)] = block[(i, j)];
            }
        }
    }
    out
}
