//! Rows of families that have up to two parameters of their own, or outcomes of more than one number.
//!
//! A row's log-likelihood is that of one observation, times their count: a function of the predictor η, of one or two
//! numbers of the outcome (y and z) and of two own parameters (a and b), all with first and second derivatives. Rows
//! of different kinds (censored or not, of this class or that) stand in `Rows` of their own, each with its own law: so
//! no law asks a lane what kind it is.

mod bounded;
mod laws;

use super::dispatch::{Kernel, Pass};
use super::family::Family;
use super::functions::log;
use super::panels::{GROUP, Margins};
use super::passes::each_column;
use super::products::{Lower, add_columns, line_sum};
use super::rows::{Block, Cut, Group, Rows};
use super::simd::{Cpu, LANES, Line, Vector};
use crate::math::{Compensated, Matrix};
use bounded::{Above, Below, Between, Density, GumbelNoise, LogisticNoise, NormalNoise};
use laws::{Beta, Gamma, StudentT, ZeroInflated};
use std::f64::consts::LN_2;
use std::marker::PhantomData;

/// What kind of rows these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// y of Student's t distribution; a = log σ, b = log ν.
    StudentT,
    /// The mean of Gamma outcomes, of which y is the logarithm; a = log α.
    Gamma,
    /// y and z are the means of log y and log(1 − y); a = log φ.
    Beta,
    /// A Poisson count of 0, which may be one of those that are 0 anyway; a = log(π/(1 − π)).
    ZeroInflated,
    /// y is the logarithm of a Weibull time; a = log k. Also the exponential's, at a = 0.
    WeibullAt,
    /// … of a time that was exceeded.
    WeibullAbove,
    /// … of a time that was not reached.
    WeibullBelow,
    /// … of a time between two, y and z.
    WeibullBetween,
    /// y is a normal number; a = log σ.
    NormalAt,
    /// … exceeds y.
    NormalAbove,
    /// … is below y.
    NormalBelow,
    /// … is between y and z.
    NormalBetween,
    /// The last class, above the cutpoint b.
    LogitAbove,
    /// The first class, below the cutpoint a.
    LogitBelow,
    /// A class between the cutpoints b and a.
    LogitBetween,
    /// The last class, above the cutpoint b.
    ProbitAbove,
    /// The first class, below the cutpoint a.
    ProbitBelow,
    /// A class between the cutpoints b and a.
    ProbitBetween,
}

/// A panel's outcomes.
#[derive(Clone, Copy)]
pub(super) struct Outcome<V> {
    pub y: V,
    pub z: V,
}

/// What a law makes of own parameters, once for all rows.
pub(super) type Own = [f64; 4];

/// The log-likelihoods of one panel's rows, for one observation each, with derivatives.
#[derive(Clone, Copy)]
pub(super) struct Found<V> {
    pub value: V,
    /// In η.
    pub slope: V,
    pub bend: V,
    /// ∂²/∂η∂a and ∂²/∂η∂b.
    pub cross: [V; 2],
    /// In a and b.
    pub own: [V; 2],
    /// ∂²/∂a², ∂²/∂a∂b, ∂²/∂b².
    pub own_bend: [V; 3],
}

/// The log-likelihood of one observation, line + log(over/under). Factors of many rows are multiplied, and share one
/// logarithm. They are positive normal numbers.
#[derive(Clone, Copy)]
pub(super) struct LawParts<V> {
    pub line: V,
    pub over: V,
    pub under: V,
}

impl<V: Vector> LawParts<V> {
    /// One whose logarithms have been taken.
    #[inline(always)]
    pub fn line<C: Cpu<V = V>>(cpu: C, line: V) -> LawParts<V> {
        LawParts { line, over: cpu.splat(1.0), under: cpu.splat(1.0) }
    }
}

/// The law of one kind of rows. η comes as it is.
pub(super) trait CaseLaw: Copy {
    /// Whether there are factors over and under the line, if they are not 1 in all rows.
    const FACTORS: [bool; 2] = [false, false];
    /// What rows need of own parameters.
    fn prepare(own: [f64; 2]) -> Own;
    /// The log-likelihood of one observation.
    fn parts<C: Cpu>(cpu: C, eta: C::V, at: Outcome<C::V>, own: &[C::V; 4]) -> LawParts<C::V>;
    /// The same, with derivatives.
    fn derive<C: Cpu>(cpu: C, eta: C::V, at: Outcome<C::V>, own: &[C::V; 4]) -> Found<C::V>;
}

/// Sums over rows: the log-likelihood and its derivatives in β and in the own parameters.
#[derive(Debug, Clone)]
pub struct CaseSums {
    /// The log-likelihood.
    pub value: f64,
    /// In β.
    pub gradient: Vec<f64>,
    /// In β; empty unless it was asked for.
    pub hessian: Matrix,
    /// In a and b.
    pub own: [f64; 2],
    /// ∂²/∂a², ∂²/∂a∂b, ∂²/∂b².
    pub own_bend: [f64; 3],
    /// ∂²/∂β∂a and ∂²/∂β∂b; empty unless the Hessian was asked for.
    pub cross: [Vec<f64>; 2],
}

/// Calls a generic function with the law of the rows.
macro_rules! with_case {
    ($case:expr, $call:ident :: <_> $arguments:tt) => {
        match $case {
            Case::StudentT => $call::<StudentT> $arguments,
            Case::Gamma => $call::<Gamma> $arguments,
            Case::Beta => $call::<Beta> $arguments,
            Case::ZeroInflated => $call::<ZeroInflated> $arguments,
            Case::WeibullAt => $call::<Density<GumbelNoise>> $arguments,
            Case::WeibullAbove => $call::<Above<GumbelNoise, false>> $arguments,
            Case::WeibullBelow => $call::<Below<GumbelNoise, false>> $arguments,
            Case::WeibullBetween => $call::<Between<GumbelNoise, false>> $arguments,
            Case::NormalAt => $call::<Density<NormalNoise>> $arguments,
            Case::NormalAbove => $call::<Above<NormalNoise, false>> $arguments,
            Case::NormalBelow => $call::<Below<NormalNoise, false>> $arguments,
            Case::NormalBetween => $call::<Between<NormalNoise, false>> $arguments,
            Case::LogitAbove => $call::<Above<LogisticNoise, true>> $arguments,
            Case::LogitBelow => $call::<Below<LogisticNoise, true>> $arguments,
            Case::LogitBetween => $call::<Between<LogisticNoise, true>> $arguments,
            Case::ProbitAbove => $call::<Above<NormalNoise, true>> $arguments,
            Case::ProbitBelow => $call::<Below<NormalNoise, true>> $arguments,
            Case::ProbitBetween => $call::<Between<NormalNoise, true>> $arguments,
        }
    };
}

impl Rows {
    /// Panels of distinct rows of one kind. `columns[j][i]` is x of row i, column j; `y` and `z` are its outcome's
    /// numbers, as the kind has them.
    pub fn of_case(
        family: Family,
        case: Case,
        columns: &[Vec<f64>],
        offset: &[f64],
        count: &[f64],
        (y, z): (&[f64], &[f64]),
        kernel: Kernel,
    ) -> Rows {
        let mut margins = Margins::new(family, offset, count, y, false);
        let rows = z.len();
        let mut second = vec![[1.0; LANES]; margins.panels()];
        // Rows of padding have an outcome that is possible: log 0 times 0 would not be a number.
        second.as_flattened_mut()[..rows].copy_from_slice(z);
        margins.case = Some((case, second));
        Rows::own(margins, columns, kernel)
    }

    /// The log-likelihood of rows of one kind at each point (β, own parameters).
    pub fn case_values(&self, points: &[(&[f64], [f64; 2])], out: &mut [f64]) {
        with_case!(self.case(), run_values::<_>(self, points, out));
    }

    /// The log-likelihood of rows of one kind with its derivatives, of second order if `hessian`.
    pub fn case_sums(&self, beta: &[f64], own: [f64; 2], hessian: bool) -> CaseSums {
        with_case!(self.case(), run_sums::<_>(self, beta, own, hessian))
    }

    #[inline(always)]
    fn case(&self) -> Case {
        self.margins.case.as_ref().map_or(Case::StudentT, |(case, _)| *case)
    }

    #[inline(always)]
    fn outcome<C: Cpu>(&self, cpu: C, panel: usize) -> Outcome<C::V> {
        let y = cpu.load(&self.margins.total[panel]);
        let z = self.margins.case.as_ref().map_or(y, |(_, z)| cpu.load(&z[panel]));
        Outcome { y, z }
    }
}

// Every law is a loop of its own, so that one function does not hold them all.
fn run_values<L: CaseLaw>(rows: &Rows, points: &[(&[f64], [f64; 2])], out: &mut [f64]) {
    rows.path.run(CaseValues::<L> { rows, points, out, law: PhantomData });
}

fn run_sums<L: CaseLaw>(rows: &Rows, beta: &[f64], own: [f64; 2], hessian: bool) -> CaseSums {
    rows.path.run(CaseDerive::<L> { rows, beta, own, hessian, law: PhantomData })
}

struct CaseValues<'a, L> {
    law: PhantomData<L>,
    rows: &'a Rows,
    points: &'a [(&'a [f64], [f64; 2])],
    out: &'a mut [f64],
}

/// Points that share their loads of x.
struct CaseTile<const D: usize> {
    beta: Vec<[f64; D]>,
    own: [Own; D],
}

impl<const D: usize> CaseTile<D> {
    fn new<L: CaseLaw>(rows: &Rows, points: &[(&[f64], [f64; 2])]) -> CaseTile<D> {
        let (mut beta, mut all) = (vec![[0.0; D]; rows.columns], [[0.0; 4]; D]);
        for (d, (point, own)) in points.iter().enumerate() {
            beta.iter_mut().zip(*point).for_each(|(slot, b)| slot[d] = *b);
            all[d] = L::prepare(*own);
        }
        CaseTile { beta, own: all }
    }
}

impl<L: CaseLaw> Pass for CaseValues<'_, L> {
    type Out = ();

    #[inline(always)]
    fn run<C: Cpu>(self, cpu: C) {
        let CaseValues { rows, points, out, .. } = self;
        // These laws take many registers: four points are enough to share loads. The last tile may have fewer; no point's
        // value depends on its company.
        const D: usize = 4;
        let tiles: Vec<CaseTile<D>> =
            points.chunks(D).map(|c| CaseTile::new::<L>(rows, c)).collect();
        let mut sums = vec![Compensated::default(); points.len()];
        let mut desk = Vec::new();
        for block in &rows.blocks {
            let x = rows.laid(block, &mut desk);
            for (tile, sums) in tiles.iter().zip(sums.chunks_mut(D)) {
                block_values::<L, C, D>(cpu, rows, (block, x), tile, sums);
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = sum.value();
        }
    }
}

#[inline(always)]
fn block_values<L: CaseLaw, C: Cpu, const D: usize>(
    cpu: C,
    rows: &Rows,
    (block, x): (&Block, &[Line]),
    tile: &CaseTile<D>,
    out: &mut [Compensated],
) {
    let mut sums = [CaseSum::zero(cpu); D];
    for group in rows.groups(block, x) {
        for (panels, cut) in rows.cuts(&group) {
            for (k, panel) in panels.enumerate() {
                let mut eta = [cpu.load(&rows.margins.offset[panel]); D];
                each_column(&cut, k, &tile.beta, |x, beta| {
                    let x = cpu.load(&x.0);
                    for d in 0..D {
                        eta[d] = x.fma(cpu.splat(beta[d]), eta[d]);
                    }
                });
                let count = &rows.margins.count[panel];
                let single = *count == [1.0; LANES];
                let (count, at) = (cpu.load(count), rows.outcome(cpu, panel));
                for d in 0..out.len() {
                    let own = tile.own[d].map(|x| cpu.splat(x));
                    let parts = L::parts(cpu, eta[d], at, &own);
                    if single {
                        sums[d].add_one::<L>(parts);
                    } else {
                        sums[d].add_many::<C, L>(cpu, count, parts);
                    }
                }
            }
        }
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        out.add(sum.total::<L>());
    }
}

/// A block's sum for one point.
#[derive(Clone, Copy)]
struct CaseSum<V> {
    line: V,
    /// Factors are 2^power·over/under: a block's 120 panels have products between 2⁻⁶⁰ and 2⁶⁰.
    power: V,
    over: V,
    under: V,
}

impl<V: Vector> CaseSum<V> {
    #[inline(always)]
    fn zero<C: Cpu<V = V>>(cpu: C) -> CaseSum<V> {
        let (zero, one) = (cpu.splat(0.0), cpu.splat(1.0));
        CaseSum { line: zero, power: zero, over: one, under: one }
    }

    /// Rows that each stand for one observation.
    #[inline(always)]
    fn add_one<L: CaseLaw>(&mut self, parts: LawParts<V>) {
        self.line = self.line + parts.line;
        if L::FACTORS[0] {
            let (power, rest) = parts.over.split();
            self.power = self.power + power;
            self.over = self.over * rest;
        }
        if L::FACTORS[1] {
            let (power, rest) = parts.under.split();
            self.power = self.power - power;
            self.under = self.under * rest;
        }
    }

    /// Rows of any count, also of none.
    #[inline(always)]
    fn add_many<C: Cpu<V = V>, L: CaseLaw>(&mut self, cpu: C, count: V, parts: LawParts<V>) {
        let mut value = parts.line;
        if L::FACTORS[0] {
            value = value + log(cpu, parts.over);
        }
        if L::FACTORS[1] {
            value = value - log(cpu, parts.under);
        }
        self.line = count.fma(value, self.line);
    }

    #[inline(always)]
    fn total<L: CaseLaw>(self) -> f64 {
        let line = self.line.sum();
        if L::FACTORS == [false, false] {
            return line;
        }
        // Eight lanes of such quotients are a number still.
        let all: f64 = (self.over / self.under).lanes().iter().product();
        line + (self.power.sum() * LN_2 + libm::log(all))
    }
}

/// The log-likelihood with its derivatives at one point.
struct CaseDerive<'a, L> {
    law: PhantomData<L>,
    rows: &'a Rows,
    beta: &'a [f64],
    own: [f64; 2],
    hessian: bool,
}

/// Sums over all rows, a vector each, and the derivatives of the panels at hand.
struct CaseLines {
    gradient: Vec<Line>,
    cross: [Vec<Line>; 2],
    /// None if it is not asked for.
    hessian: Option<Lower>,
    slopes: [Line; GROUP],
    bends: [Line; GROUP],
    crosses: [[Line; GROUP]; 2],
}

impl<L: CaseLaw> Pass for CaseDerive<'_, L> {
    type Out = CaseSums;

    #[inline(always)]
    fn run<C: Cpu>(self, cpu: C) -> CaseSums {
        let CaseDerive { rows, beta, own, hessian, .. } = self;
        let tile = CaseTile::<1>::new::<L>(rows, &[(beta, own)]);
        let second = if hessian { rows.columns } else { 0 };
        let mut sums = CaseLines {
            gradient: vec![Line::ZERO; rows.columns],
            cross: [vec![Line::ZERO; second], vec![Line::ZERO; second]],
            hessian: hessian.then(|| Lower::zeros(second)),
            slopes: [Line::ZERO; GROUP],
            bends: [Line::ZERO; GROUP],
            crosses: [[Line::ZERO; GROUP]; 2],
        };
        let mut value = Compensated::default();
        let mut own = [cpu.splat(0.0); 5];
        let mut desk = Vec::new();
        for block in &rows.blocks {
            let x = rows.laid(block, &mut desk);
            let mut sum = cpu.splat(0.0);
            for group in rows.groups(block, x) {
                sum = sum + derive_group::<L, C>(cpu, rows, &group, &tile, &mut sums, &mut own);
            }
            value.add(sum.sum());
        }
        let [a, b, aa, ab, bb] = own.map(Vector::sum);
        CaseSums {
            value: value.value(),
            gradient: sums.gradient.iter().map(line_sum).collect(),
            hessian: sums.hessian.map_or_else(|| Matrix::zeros(0, 0), |h| h.matrix()),
            own: [a, b],
            own_bend: [aa, ab, bb],
            cross: sums.cross.map(|cross| cross.iter().map(line_sum).collect()),
        }
    }
}

/// Adds one group's derivatives; returns its log-likelihoods.
#[inline(always)]
fn derive_group<L: CaseLaw, C: Cpu>(
    cpu: C,
    rows: &Rows,
    group: &Group,
    tile: &CaseTile<1>,
    sums: &mut CaseLines,
    own: &mut [C::V; 5],
) -> C::V {
    let first = group.panels.start;
    for (panels, cut) in rows.cuts(group) {
        for (k, panel) in panels.enumerate() {
            predictor(cpu, rows, &cut, (k, panel), tile).store(&mut sums.slopes[panel - first].0);
        }
    }
    let mut value = cpu.splat(0.0);
    let mut local = *own;
    let prepared = tile.own[0].map(|x| cpu.splat(x));
    for panel in group.panels.clone() {
        let k = panel - first;
        let (eta, count) = (cpu.load(&sums.slopes[k].0), cpu.load(&rows.margins.count[panel]));
        let found = L::derive(cpu, eta, rows.outcome(cpu, panel), &prepared);
        value = count.fma(found.value, value);
        let [a, b] = found.own;
        let [aa, ab, bb] = found.own_bend;
        for (sum, term) in local.iter_mut().zip([a, b, aa, ab, bb]) {
            *sum = count.fma(term, *sum);
        }
        (count * found.slope).store(&mut sums.slopes[k].0);
        if sums.hessian.is_some() {
            (count * found.bend).store(&mut sums.bends[k].0);
            for (lines, cross) in sums.crosses.iter_mut().zip(found.cross) {
                (count * cross).store(&mut lines[k].0);
            }
        }
    }
    *own = local;
    for (panels, cut) in rows.cuts(group) {
        let range = panels.start - first..panels.end - first;
        add_columns(cpu, &cut, &sums.slopes[range.clone()], &mut sums.gradient);
        if let Some(hessian) = &mut sums.hessian {
            hessian.add(cpu, &cut, &sums.bends[range.clone()]);
            for (crosses, cross) in sums.crosses.iter().zip(&mut sums.cross) {
                add_columns(cpu, &cut, &crosses[range.clone()], cross);
            }
        }
    }
    value
}

/// The linear predictors of one panel.
#[inline(always)]
fn predictor<C: Cpu>(
    cpu: C,
    rows: &Rows,
    cut: &Cut<'_>,
    (k, panel): (usize, usize),
    tile: &CaseTile<1>,
) -> C::V {
    let mut eta = cpu.load(&rows.margins.offset[panel]);
    each_column(cut, k, &tile.beta, |x, beta| {
        eta = cpu.load(&x.0).fma(cpu.splat(beta[0]), eta);
    });
    eta
}
