//! Rows of data under one model.

use super::dispatch::{Kernel, Path};
use super::family::Family;
use super::panels::{BLOCK, Margins, panel_of};
use super::passes::{Derive, Gram, Predict, Transposed, ValuePass};
use super::simd::{LANES, Lanes, Line};
use super::store::Store;
use crate::math::{Compensated, Matrix, dot_compensated};
use crate::target::Expansion;
use std::ops::Range;
use std::sync::Arc;

/// Distinct rows (x, offset) of one shard under one model, each with the number of observations
/// that share it and the sum of their outcomes: merging equal rows is exact (`laws.rs` says why).
///
/// Rows that were merged are the model's own. Those that were not stand as the data do, are kept once for
/// all models of a design, and a model only knows where its columns stand in them.
#[derive(Debug, Clone)]
pub struct Rows {
    pub(super) path: Path,
    pub(super) columns: usize,
    pub(super) margins: Arc<Margins>,
    /// Which panels of the margins are meant.
    panels: Range<usize>,
    stores: Vec<Arc<Store>>,
    /// Per store, the places in it of the model's columns.
    taken: Vec<Vec<u32>>,
    pub(super) blocks: Vec<Block>,
    layouts: Vec<BlockLayout>,
    /// Column numbers of the segments, one segment after the other.
    index: Vec<u32>,
    /// Where the columns of a segment stand in a panel.
    places: Vec<u32>,
    /// Whether any offset is not 0.
    pub(super) has_offset: bool,
    /// X't, and t'offset, of a Poisson: Σ t·η is one dot product. Empty otherwise.
    linear: Vec<f64>,
    linear_offset: f64,
    /// Σ t.
    all: f64,
}

/// Panels that are summed in one go.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// Its first panel among those of the margins.
    first: usize,
    /// Where its columns are: in which store, and from where on.
    store: usize,
    x: usize,
    /// How it is cut up. Blocks in which no column is 0 have that in common.
    layout: usize,
}

/// The segments of each group of a block.
type BlockLayout = Vec<Vec<Segment>>;

/// Consecutive panels of one group with the same columns: those that are not 0 on all of the rows.
/// Rows of a factor's level stand together, so that a panel visits one or two of its dummies and not
/// all of them.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    /// Counted from the block's first.
    panels: Range<usize>,
    index: Range<usize>,
    /// From where on `places` holds as many as there are columns.
    places: usize,
    /// Where its first panel stands, from the block's beginning on, and how far apart panels are.
    x: usize,
    stride: usize,
    /// Whether panels hold its own columns and no others, in their order.
    packed: bool,
}

/// Where a model's columns stand in a store.
struct Standing<'a> {
    /// Their places among the store's columns.
    places: &'a [u32],
    /// Their places in a panel, which `Rows::places` has from `base` on.
    at: Vec<u32>,
    base: usize,
    /// How far apart panels are.
    stride: usize,
}

/// Up to [`GROUP`] panels.
pub(super) struct Group<'a> {
    /// By the margins' numbers.
    pub panels: Range<usize>,
    /// Single observations of a logistic or probit: x is multiplied by the outcome's sign.
    pub ones: bool,
    segments: &'a [Segment],
    /// The block's first panel, and its columns.
    first: usize,
    x: &'a [Line],
}

/// A segment as loops see it.
#[derive(Clone, Copy)]
pub(super) struct Cut<'a> {
    /// The numbers of its columns.
    pub index: &'a [u32],
    /// Where each stands in a panel.
    pub places: &'a [u32],
    x: &'a [Line],
    stride: usize,
    /// Whether panels hold its own columns and no others, in their order.
    pub packed: bool,
}

impl<'a> Cut<'a> {
    /// The k-th panel's values, of its own columns and maybe of others.
    #[inline(always)]
    pub fn panel(&self, k: usize) -> &'a [Line] {
        &self.x[k * self.stride..][..self.stride]
    }
}

/// What a parameter beside the coefficients adds: derivatives of the rows' part in a.
#[derive(Debug, Clone, Default)]
pub struct Extra {
    /// ∂/∂a.
    pub slope: f64,
    /// ∂²/∂a².
    pub bend: f64,
    /// ∂²/∂a∂β.
    pub cross: Vec<f64>,
}

impl Rows {
    /// Panels of these distinct rows. `columns[j][i]` is x of row i, column j.
    pub fn new(
        family: Family,
        columns: &[Vec<f64>],
        offset: &[f64],
        count: &[f64],
        total: &[f64],
        kernel: Kernel,
    ) -> Rows {
        Rows::own(Margins::new(family, offset, count, total, false), columns, kernel)
    }

    /// The same for counts of any size: see [`Margins`].
    pub fn of_large_counts(
        family: Family,
        columns: &[Vec<f64>],
        offset: &[f64],
        count: &[f64],
        total: &[f64],
        kernel: Kernel,
    ) -> Rows {
        Rows::own(Margins::new(family, offset, count, total, true), columns, kernel)
    }

    /// Rows that are a model's own: panels have no columns that are 0 on all of their rows.
    pub(super) fn own(margins: Margins, columns: &[Vec<f64>], kernel: Kernel) -> Rows {
        let panels = margins.panels();
        let mut rows = Rows::of(Arc::new(margins), 0..panels, columns.len(), kernel);
        let margins = rows.margins.clone();
        let mut x = Vec::new();
        rows.places = (0..columns.len() as u32).collect();
        let mut present: Vec<u32> = Vec::new();
        for first in (0..panels).step_by(BLOCK) {
            if first == BLOCK {
                // What the first block took tells what all will take, roughly.
                x.reserve(x.len() * panels / BLOCK - x.len());
            }
            let begin = x.len();
            let mut layout = BlockLayout::new();
            for group in 0..margins.groups(first, (panels - first).min(BLOCK)) {
                let ones = margins.is_ones(first, group);
                let mut segments: Vec<Segment> = Vec::new();
                for panel in margins.group(first, group) {
                    let at = x.len() - begin;
                    present.clear();
                    for (j, column) in columns.iter().enumerate() {
                        let lanes = panel_of(column, panel);
                        if lanes != [0.0; LANES] {
                            present.push(j as u32);
                            let total = &margins.total[panel];
                            x.push(Line(if ones { signed(&lanes, total) } else { lanes }));
                        }
                    }
                    rows.extend(&mut segments, panel - first, &present, None, at, present.len());
                }
                layout.push(segments);
            }
            rows.layouts.push(layout);
            let layout = rows.layouts.len() - 1;
            rows.blocks.push(Block { first, store: 0, x: begin, layout });
        }
        x.shrink_to_fit();
        rows.stores.push(Arc::new(Store::own(x)));
        rows.taken.push(Vec::new());
        if rows.has_known_part() {
            let total = margins.total.as_flattened();
            rows.linear = columns.iter().map(|c| dot_compensated(c, total)).collect();
        }
        rows
    }

    /// The rows of some panels of these margins under a model that has these columns of a design; `None`
    /// if one of them is in no store. The panels begin where a block does.
    pub fn view(
        margins: &Arc<Margins>,
        panels: Range<usize>,
        stores: &[Arc<Store>],
        active: &[u32],
        kernel: Kernel,
    ) -> Option<Rows> {
        let mut rows = Rows::of(margins.clone(), panels.clone(), active.len(), kernel);
        let mut shape = (0, 0, 0);
        for store in stores {
            let place = |j: &u32| store.columns.iter().position(|c| c == j).map(|k| k as u32);
            let places = active.iter().map(place).collect::<Option<Vec<u32>>>()?;
            let (own, base) = (store.panels.clone(), rows.places.len());
            let (at, stride) = store.standing(&places);
            rows.places.extend(&at);
            let standing = Standing { places: &places, at, base, stride };
            rows.stores.push(store.clone());
            for first in (panels.start.max(own.start)..panels.end.min(own.end)).step_by(BLOCK) {
                let count = (panels.end - first).min(BLOCK);
                let full = u128::MAX >> (128 - count);
                let number = (first - own.start) / BLOCK;
                let width = store.columns.len();
                let marks = &store.present[number * width..][..width];
                let is_full = places.iter().all(|&p| marks[p as usize] & full == full);
                // As its predecessor, if nothing sets it apart.
                let own_shape = (count, margins.groups(first, count), base + 1);
                if !is_full || shape != own_shape {
                    let layout = rows.cut_up(margins, first, count, &standing, marks);
                    rows.layouts.push(layout);
                    shape = if is_full { own_shape } else { (0, 0, 0) };
                }
                let (store, layout) = (rows.stores.len() - 1, rows.layouts.len() - 1);
                let x = (first - own.start) * stride;
                rows.blocks.push(Block { first, store, x, layout });
            }
            rows.taken.push(places);
        }
        if rows.has_known_part() {
            rows.linear = rows.dots_with_totals();
        }
        Some(rows)
    }

    /// No columns yet.
    fn of(margins: Arc<Margins>, panels: Range<usize>, columns: usize, kernel: Kernel) -> Rows {
        let offset = margins.offset[panels.clone()].as_flattened();
        let total = margins.total[panels.clone()].as_flattened();
        let has_offset = offset.iter().any(|o| *o != 0.0);
        let linear_offset = match margins.family {
            Family::Poisson => dot_compensated(offset, total),
            _ => 0.0,
        };
        let all = total.iter().sum();
        Rows {
            path: Path::of(kernel),
            columns,
            panels,
            stores: Vec::new(),
            taken: Vec::new(),
            blocks: Vec::new(),
            layouts: Vec::new(),
            index: Vec::new(),
            places: Vec::new(),
            has_offset,
            linear: Vec::new(),
            linear_offset,
            all,
            margins,
        }
    }

    /// Adds a panel with these columns to the segments of its group: to the last, if that has the same.
    fn extend(
        &mut self,
        segments: &mut Vec<Segment>,
        panel: usize,
        present: &[u32],
        places: Option<(usize, &[u32])>,
        x: usize,
        stride: usize,
    ) {
        match segments.last_mut() {
            Some(s) if self.index[s.index.clone()] == *present => s.panels.end += 1,
            _ => {
                let from = self.index.len();
                self.index.extend_from_slice(present);
                let places = match places {
                    // A model's own panels have nothing else; a view may have all.
                    None => 0,
                    Some((base, places)) if present.len() == places.len() => base,
                    Some((_, places)) => {
                        let own = present.iter().map(|&j| places[j as usize]);
                        self.places.extend(own);
                        self.places.len() - present.len()
                    }
                };
                let index = from..self.index.len();
                let at = &self.places[places..places + present.len()];
                let packed = stride == at.len() && at.iter().zip(0..).all(|(p, k)| *p == k);
                let panels = panel..panel + 1;
                segments.push(Segment { panels, index, places, x, stride, packed });
            }
        }
    }

    /// The segments of a block in a store that has all columns of a panel.
    fn cut_up(
        &mut self,
        margins: &Margins,
        first: usize,
        count: usize,
        standing: &Standing,
        marks: &[u128],
    ) -> BlockLayout {
        let Standing { places, at, base, stride } = standing;
        let mut layout = BlockLayout::new();
        for group in 0..margins.groups(first, count) {
            let mut segments = Vec::new();
            for panel in margins.group(first, group) {
                let within = panel - first;
                let is_present = |j: &u32| marks[places[*j as usize] as usize] >> within & 1 == 1;
                let present: Vec<u32> = (0..places.len() as u32).filter(is_present).collect();
                let x = within * stride;
                self.extend(&mut segments, within, &present, Some((*base, at)), x, *stride);
            }
            layout.push(segments);
        }
        layout
    }

    /// X't, from the panels.
    fn dots_with_totals(&self) -> Vec<f64> {
        let mut sums = vec![Compensated::default(); self.columns];
        self.each_group(|group| {
            for (panels, cut) in self.cuts(&group) {
                for (k, panel) in panels.enumerate() {
                    for (&place, &j) in cut.places.iter().zip(cut.index) {
                        let terms = cut.panel(k)[place as usize].0;
                        let terms = terms.iter().zip(&self.margins.total[panel]);
                        terms.for_each(|(x, t)| sums[j as usize].add(x * t));
                    }
                }
            }
        });
        sums.into_iter().map(Compensated::value).collect()
    }

    /// The same rows, worked on in another way: for tests and benches.
    pub fn with_path(mut self, path: Path) -> Rows {
        self.path = path;
        self
    }

    /// About how many bytes they take, if they are the model's own.
    pub fn memory(&self) -> usize {
        let lanes = (3 + usize::from(self.margins.case.is_some())) * self.panels.len();
        let x: usize = self.stores.iter().map(|store| store.lines()).sum();
        (x + lanes) * size_of::<Line>() + self.index.len() * size_of::<u32>()
    }

    /// The family.
    pub fn family(&self) -> Family {
        self.margins.family
    }

    /// Observations per row. Vectors over rows end with up to seven rows of padding that count for
    /// nothing: count 0, total 0, x = 0, offset 0.
    pub fn counts(&self) -> &[f64] {
        self.margins.count[self.panels.clone()].as_flattened()
    }

    /// Sums of outcomes per row.
    pub fn totals(&self) -> &[f64] {
        self.margins.total[self.panels.clone()].as_flattened()
    }

    /// Offsets per row.
    pub fn offsets(&self) -> &[f64] {
        self.margins.offset[self.panels.clone()].as_flattened()
    }

    /// The columns of a block, laid out on the desk if they are lent.
    #[inline(always)]
    pub(super) fn laid<'a>(&'a self, block: &Block, desk: &'a mut Vec<Line>) -> &'a [Line] {
        let places = &self.taken[block.store];
        self.stores[block.store].block(&self.margins, (block.first, block.x), places, desk)
    }

    /// The groups of a block with these columns.
    #[inline(always)]
    pub(super) fn groups<'a>(
        &'a self,
        block: &'a Block,
        x: &'a [Line],
    ) -> impl Iterator<Item = Group<'a>> {
        let first = block.first;
        self.layouts[block.layout].iter().enumerate().map(move |(group, segments)| Group {
            panels: self.margins.group(first, group),
            ones: self.margins.is_ones(first, group),
            segments,
            first,
            x,
        })
    }

    /// Visits the groups of all blocks.
    #[inline(always)]
    pub(super) fn each_group(&self, mut visit: impl FnMut(Group<'_>)) {
        let mut desk = Vec::new();
        for block in &self.blocks {
            let x = self.laid(block, &mut desk);
            self.groups(block, x).for_each(&mut visit);
        }
    }

    /// The segments of a group, each with its panels by the margins' numbers.
    #[inline(always)]
    pub(super) fn cuts<'a>(
        &'a self,
        group: &Group<'a>,
    ) -> impl Iterator<Item = (Range<usize>, Cut<'a>)> {
        let (first, x) = (group.first, group.x);
        group.segments.iter().map(move |s| {
            let index = &self.index[s.index.clone()];
            let places = &self.places[s.places..s.places + index.len()];
            let x = &x[s.x..s.x + s.stride * s.panels.len()];
            let panels = first + s.panels.start..first + s.panels.end;
            (panels, Cut { index, places, x, stride: s.stride, packed: s.packed })
        })
    }

    /// The number that a panel has in vectors over these rows.
    #[inline(always)]
    pub(super) fn own_number(&self, panel: usize) -> usize {
        panel - self.panels.start
    }

    /// The linear predictors of all rows.
    pub fn predict(&self, beta: &[f64], out: &mut [f64]) {
        let (out, _) = out.as_chunks_mut();
        self.path.run(Predict { rows: self, beta, out });
    }

    /// The rows' part of the log-likelihood at each point (β, a); a is the log dispersion of a
    /// negative binomial and unused otherwise. Points share a block of rows while it is in cache.
    pub fn values(&self, points: &[(&[f64], f64)], out: &mut [f64]) {
        self.path.run(ValuePass { rows: self, points, out });
        for (out, (beta, a)) in out.iter_mut().zip(points) {
            *out += self.known_part(beta, *a);
        }
    }

    /// Whether Σ t·η is a sum that is known beforehand.
    fn has_known_part(&self) -> bool {
        self.margins.family == Family::Poisson && !self.margins.large
    }

    /// Σ t·η of a Poisson, Σ t·a of a negative binomial; nothing where counts are large.
    fn known_part(&self, beta: &[f64], a: f64) -> f64 {
        match self.margins.family {
            _ if self.margins.large => 0.0,
            Family::Poisson => dot_compensated(&self.linear, beta) + self.linear_offset,
            Family::NegativeBinomial => self.all * a,
            _ => 0.0,
        }
    }

    /// The value, with its gradient in β written to `gradient`; also the slope in a.
    pub fn gradient(&self, beta: &[f64], a: f64, gradient: &mut [f64]) -> (f64, f64) {
        let work: Derive<'_, false> = Derive { rows: self, beta, a, gradient };
        let (value, extra, _) = self.path.run(work);
        (value + self.known_part(beta, a), extra.slope)
    }

    /// Value, gradient and Hessian in β, with the derivatives in a.
    pub fn expand(&self, beta: &[f64], a: f64) -> (Expansion, Extra) {
        let mut gradient = vec![0.0; self.columns];
        let work: Derive<'_, true> = Derive { rows: self, beta, a, gradient: &mut gradient };
        let (value, extra, hessian) = self.path.run(work);
        let value = value + self.known_part(beta, a);
        (Expansion { value, gradient, hessian }, extra)
    }

    /// X'X, every row counted.
    pub fn gram(&self) -> Matrix {
        self.path.run(Gram { rows: self, weights: &self.margins.count[self.panels.clone()] })
    }

    /// X'·diag(weights)·X with one weight per row.
    pub fn gram_weighted(&self, weights: &[f64]) -> Matrix {
        let (weights, _) = weights.as_chunks();
        self.path.run(Gram { rows: self, weights })
    }

    /// X'v for a vector v over the rows.
    pub fn transposed_times(&self, v: &[f64]) -> Vec<f64> {
        let (v, _) = v.as_chunks();
        self.path.run(Transposed { rows: self, v })
    }
}

/// Times −1 where the outcome is 0.
#[inline(always)]
pub(super) fn signed(values: &Lanes, outcomes: &Lanes) -> Lanes {
    let mut out = *values;
    for lane in 0..LANES {
        out[lane] *= 2.0 * outcomes[lane] - 1.0;
    }
    out
}
