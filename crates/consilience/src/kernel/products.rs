//! Products with X: predictors, X'v and X'·diag(w)·X.

use super::dispatch::Pass;
use super::panels::GROUP;
use super::rows::{Cut, Rows, signed};
use super::simd::{Cpu, Lanes, Line, Vector};
use crate::math::Matrix;

/// The offsets of one panel, with the sign of its x.
#[inline(always)]
pub(super) fn offset<C: Cpu>(cpu: C, rows: &Rows, panel: usize, ones: bool) -> C::V {
    let offset = &rows.margins.offset[panel];
    if ones && rows.has_offset {
        cpu.load(&signed(offset, &rows.margins.total[panel]))
    } else {
        cpu.load(offset)
    }
}

/// Adds X'v of panels with the same columns to the columns' sums.
#[inline(always)]
pub(super) fn add_columns<C: Cpu>(cpu: C, cut: &Cut<'_>, v: &[Line], sums: &mut [Line]) {
    if C::POINTS >= 4 {
        add_columns_by::<C, 4>(cpu, cut, v, sums);
    } else {
        add_columns_by::<C, 2>(cpu, cut, v, sums);
    }
}

/// So many columns side by side.
#[inline(always)]
fn add_columns_by<C: Cpu, const COLUMNS: usize>(
    cpu: C,
    cut: &Cut<'_>,
    v: &[Line],
    sums: &mut [Line],
) {
    if v.len() < 4 {
        // So few panels are not worth the setting up.
        for (k, v) in v.iter().enumerate() {
            let (x, v) = (cut.panel(k), cpu.load(&v.0));
            for (&place, &j) in cut.places.iter().zip(cut.index) {
                let sum = &mut sums[j as usize].0;
                cpu.load(&x[place as usize].0).fma(v, cpu.load(sum)).store(sum);
            }
        }
        return;
    }
    for (i, index) in cut.index.chunks(COLUMNS).enumerate() {
        let places = places::<COLUMNS>(cut, i * COLUMNS);
        let mut found = [cpu.splat(0.0); COLUMNS];
        for (k, v) in v.iter().enumerate() {
            let v = cpu.load(&v.0);
            let x = columns::<C, COLUMNS>(cpu, cut.panel(k), places);
            for a in 0..COLUMNS {
                found[a] = x[a].fma(v, found[a]);
            }
        }
        for (found, &j) in found.iter().zip(index) {
            let sum = &mut sums[j as usize].0;
            (cpu.load(sum) + *found).store(sum);
        }
    }
}

pub(super) fn line_sum(line: &Line) -> f64 {
    line.0.iter().sum()
}

/// The lower half of a symmetric matrix, eight numbers an entry that are still to be added up.
pub(super) struct Lower {
    size: usize,
    entries: Vec<Line>,
}

impl Lower {
    pub(super) fn zeros(size: usize) -> Lower {
        Lower { size, entries: vec![Line::ZERO; size * (size + 1) / 2] }
    }

    /// Adds X'·diag(weights)·X of panels with the same columns.
    #[inline(always)]
    pub(super) fn add<C: Cpu>(&mut self, cpu: C, cut: &Cut<'_>, weights: &[Line]) {
        match C::TILE {
            4 => self.add_tiles::<C, 4>(cpu, cut, weights),
            2 => self.add_tiles::<C, 2>(cpu, cut, weights),
            _ => self.add_tiles::<C, 1>(cpu, cut, weights),
        }
    }

    /// T by T columns at a time, so that a load of x serves T products.
    #[inline(always)]
    pub(super) fn add_tiles<C: Cpu, const T: usize>(
        &mut self,
        cpu: C,
        cut: &Cut<'_>,
        weights: &[Line],
    ) {
        let index = cut.index;
        let m = index.len();
        for i in (0..m).step_by(T) {
            for j in (0..=i).step_by(T) {
                let (at, beside) = (places::<T>(cut, i), places::<T>(cut, j));
                let mut sums = [[cpu.splat(0.0); T]; T];
                for (k, weight) in weights.iter().enumerate() {
                    let (x, weight) = (cut.panel(k), cpu.load(&weight.0));
                    let left = columns::<C, T>(cpu, x, at);
                    let right = columns::<C, T>(cpu, x, beside);
                    for a in 0..T {
                        let left = left[a] * weight;
                        for b in 0..T {
                            sums[a][b] = left.fma(right[b], sums[a][b]);
                        }
                    }
                }
                for (a, sums) in sums.iter().enumerate() {
                    for (b, sum) in sums.iter().enumerate() {
                        if i + a < m && j + b <= i + a {
                            let (row, column) = (index[i + a] as usize, index[j + b] as usize);
                            let entry = &mut self.entries[row * (row + 1) / 2 + column].0;
                            (cpu.load(entry) + *sum).store(entry);
                        }
                    }
                }
            }
        }
    }

    #[inline(always)]
    pub(super) fn matrix(&self) -> Matrix {
        let mut out = Matrix::zeros(self.size, self.size);
        for i in 0..self.size {
            for j in 0..=i {
                let value = line_sum(&self.entries[i * (i + 1) / 2 + j]);
                (out[(i, j)], out[(j, i)]) = (value, value);
            }
        }
        out
    }
}

/// The places of T columns from the i-th. Beyond the last column the last one stands in, for nothing.
#[inline(always)]
fn places<const T: usize>(cut: &Cut<'_>, i: usize) -> [usize; T] {
    std::array::from_fn(|a| cut.places[(i + a).min(cut.places.len() - 1)] as usize)
}

/// The columns of a panel in these places.
#[inline(always)]
fn columns<C: Cpu, const T: usize>(cpu: C, x: &[Line], places: [usize; T]) -> [C::V; T] {
    let mut out = [cpu.splat(0.0); T];
    for a in 0..T {
        out[a] = cpu.load(&x[places[a]].0);
    }
    out
}

/// X'·diag(weights)·X.
pub struct Gram<'a> {
    pub rows: &'a Rows,
    pub weights: &'a [Lanes],
}

impl Pass for Gram<'_> {
    type Out = Matrix;

    #[inline(always)]
    fn run<C: Cpu>(self, cpu: C) -> Matrix {
        let mut sums = Lower::zeros(self.rows.columns);
        let mut aligned = [Line::ZERO; GROUP];
        self.rows.each_group(|group| {
            for (panels, cut) in self.rows.cuts(&group) {
                let first = self.rows.own_number(panels.start);
                let weights = &self.weights[first..first + panels.len()];
                for (slot, weight) in aligned.iter_mut().zip(weights) {
                    slot.0 = *weight;
                }
                sums.add(cpu, &cut, &aligned[..weights.len()]);
            }
        });
        sums.matrix()
    }
}

/// X'v.
pub struct Transposed<'a> {
    pub rows: &'a Rows,
    pub v: &'a [Lanes],
}

impl Pass for Transposed<'_> {
    type Out = Vec<f64>;

    #[inline(always)]
    fn run<C: Cpu>(self, cpu: C) -> Vec<f64> {
        let mut sums = vec![Line::ZERO; self.rows.columns];
        let mut aligned = [Line::ZERO; GROUP];
        self.rows.each_group(|group| {
            for (panels, cut) in self.rows.cuts(&group) {
                for (slot, panel) in aligned.iter_mut().zip(panels.clone()) {
                    let v = &self.v[self.rows.own_number(panel)];
                    let total = &self.rows.margins.total[panel];
                    slot.0 = if group.ones { signed(v, total) } else { *v };
                }
                add_columns(cpu, &cut, &aligned[..panels.len()], &mut sums);
            }
        });
        sums.iter().map(line_sum).collect()
    }
}

/// Xβ + offset.
pub struct Predict<'a> {
    pub rows: &'a Rows,
    pub beta: &'a [f64],
    pub out: &'a mut [Lanes],
}

impl Pass for Predict<'_> {
    type Out = ();

    #[inline(always)]
    fn run<C: Cpu>(self, cpu: C) {
        self.rows.each_group(|group| {
            for (panels, cut) in self.rows.cuts(&group) {
                for (k, panel) in panels.enumerate() {
                    let x = cut.panel(k);
                    let mut eta = offset(cpu, self.rows, panel, group.ones);
                    for (&place, &j) in cut.places.iter().zip(cut.index) {
                        let beta = cpu.splat(self.beta[j as usize]);
                        eta = cpu.load(&x[place as usize].0).fma(beta, eta);
                    }
                    let out = &mut self.out[self.rows.own_number(panel)];
                    eta.store(out);
                    if group.ones {
                        *out = signed(out, &self.rows.margins.total[panel]);
                    }
                }
            }
        });
    }
}
