//! Rows of data in panels.

use super::dispatch::{Kernel, Path};
use super::family::Family;
use super::passes::{Derive, Gram, Predict, Transposed, Values};
use super::simd::{LANES, Lanes, Line};
use crate::math::{Matrix, dot_compensated};
use crate::target::Expansion;
use std::ops::Range;

/// Panels per block: 960 rows, which stay in cache while many points visit them. Also the most
/// factors (1 + e^−|η|) ≤ 2 that a product over all lanes holds without overflow, with room to spare.
const BLOCK: usize = 120;

/// The mean of outcomes that are all 0, so that it has a logarithm: likelihoods do not tell it from 0.
const NOTHING: f64 = 1e-30;

/// Distinct rows (x, offset) of one shard under one model, each with the number of observations
/// that share it and the sum of their outcomes: merging equal rows is exact (`laws.rs` says why).
#[derive(Debug, Clone)]
pub struct Rows {
    family: Family,
    pub(super) path: Path,
    pub(super) columns: usize,
    pub(super) blocks: Vec<Block>,
    /// Column numbers of the segments, one segment after the other.
    index: Vec<u32>,
    /// Eight values per column per panel, panel after panel. In groups of a logistic's single
    /// observations they are multiplied by the outcome's sign, −1 or 1.
    x: Vec<Line>,
    pub(super) offset: Vec<Lanes>,
    pub(super) count: Vec<Lanes>,
    pub(super) total: Vec<Lanes>,
    /// Whether the laws of large counts hold (`large.rs`): offsets are less log(total/count) then.
    pub(super) large: bool,
    /// Whether any offset is not 0.
    pub(super) has_offset: bool,
    /// X't, and t'offset, of a Poisson: Σ t·η is one dot product. Empty otherwise.
    linear: Vec<f64>,
    linear_offset: f64,
    /// Σ t.
    all: f64,
}

/// Panels whose derivatives are taken before they are multiplied by x, which is still in the
/// nearest cache then.
pub const GROUP: usize = 16;

/// Panels that are summed in one go.
#[derive(Debug, Clone)]
pub struct Block {
    pub groups: Vec<Group>,
}

/// Up to [`GROUP`] panels.
#[derive(Debug, Clone)]
pub struct Group {
    pub panels: Range<usize>,
    /// Single observations of a logistic: x is multiplied by the outcome's sign.
    pub ones: bool,
    pub segments: Vec<Segment>,
}

/// Consecutive panels of one group with the same columns: those that are not 0 on all of the rows.
/// Rows of a factor's level stand together, so that a panel visits one or two of its dummies and not
/// all of them.
#[derive(Debug, Clone)]
pub struct Segment {
    pub panels: Range<usize>,
    index: Range<usize>,
    x: usize,
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
        let rows = count.len();
        let panels = rows.div_ceil(LANES);
        let (count, total_lanes) = (in_panels(count), in_panels(total));
        let (mut index, mut x) = (Vec::new(), Vec::new());
        let is_one = |panel: usize| family == Family::Logistic && count[panel] == [1.0; LANES];
        let mut blocks: Vec<Block> = Vec::with_capacity(panels.div_ceil(BLOCK));
        let mut own: Vec<u32> = Vec::new();
        for panel in 0..panels {
            if panel.is_multiple_of(BLOCK) {
                if panel == BLOCK {
                    // What the first block took tells what all will take, roughly.
                    x.reserve(x.len() * panels / BLOCK - x.len());
                }
                blocks.push(Block { groups: Vec::new() });
            }
            let groups = &mut blocks.last_mut().expect("one was begun").groups;
            if (panel % BLOCK).is_multiple_of(GROUP) {
                let end = (panel + GROUP).min(panels).min(panel / BLOCK * BLOCK + BLOCK);
                let ones = (panel..end).all(is_one);
                groups.push(Group { panels: panel..end, ones, segments: Vec::new() });
            }
            let group = groups.last_mut().expect("one was begun");
            let range = panel * LANES..rows.min((panel + 1) * LANES);
            own.clear();
            let first = x.len();
            for (j, column) in columns.iter().enumerate() {
                let values = &column[range.clone()];
                if values.iter().any(|v| *v != 0.0) {
                    own.push(j as u32);
                    let mut lanes = [0.0; LANES];
                    lanes[..values.len()].copy_from_slice(values);
                    if group.ones {
                        lanes = signed(&lanes, &total_lanes[panel]);
                    }
                    x.push(Line(lanes));
                }
            }
            match group.segments.last_mut() {
                Some(s) if index[s.index.clone()] == own => s.panels.end += 1,
                _ => {
                    let from = index.len();
                    index.extend_from_slice(&own);
                    let (panels, index) = (panel..panel + 1, from..index.len());
                    group.segments.push(Segment { panels, index, x: first });
                }
            }
        }
        let (linear, linear_offset) = match family {
            Family::Poisson => (
                columns.iter().map(|c| dot_compensated(c, total)).collect(),
                dot_compensated(offset, total),
            ),
            _ => (Vec::new(), 0.0),
        };
        x.shrink_to_fit();
        Rows {
            family,
            large: false,
            path: Path::of(kernel),
            columns: columns.len(),
            blocks,
            index,
            x,
            has_offset: offset.iter().any(|o| *o != 0.0),
            linear,
            linear_offset,
            all: total.iter().sum(),
            offset: in_panels(offset),
            count,
            total: total_lanes,
        }
    }

    /// The same for counts of any size: log-likelihoods are relative to those at means that are total/count,
    /// so that large terms cancel before they are summed. What is left out are terms without β, which are
    /// `math::counts`'s.
    pub fn of_large_counts(
        family: Family,
        columns: &[Vec<f64>],
        offset: &[f64],
        count: &[f64],
        total: &[f64],
        kernel: Kernel,
    ) -> Rows {
        let total: Vec<f64> = total.iter().zip(count).map(|(t, c)| t.max(c * NOTHING)).collect();
        let means = total.iter().zip(count).map(|(t, c)| t / c);
        let offset: Vec<f64> = offset.iter().zip(means).map(|(o, m)| o - libm::log(m)).collect();
        let mut rows = Rows::new(family, columns, &offset, count, &total, kernel);
        // Rows of padding count for nothing, but have to have a share of something.
        let padding = &mut rows.total.as_flattened_mut()[count.len()..];
        padding.fill(NOTHING);
        Rows { large: true, ..rows }
    }

    /// The same rows, worked on in another way: for tests and benches.
    pub fn with_path(mut self, path: Path) -> Rows {
        self.path = path;
        self
    }

    /// About how many bytes they take.
    pub fn memory(&self) -> usize {
        let lanes = self.offset.len() + self.count.len() + self.total.len();
        (self.x.len() + lanes) * size_of::<Line>() + self.index.len() * size_of::<u32>()
    }

    /// The family.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Observations per row. Vectors over rows end with up to seven rows of padding that count for
    /// nothing: count 0, total 0, x = 0, offset 0.
    pub fn counts(&self) -> &[f64] {
        self.count.as_flattened()
    }

    /// Sums of outcomes per row.
    pub fn totals(&self) -> &[f64] {
        self.total.as_flattened()
    }

    /// Offsets per row.
    pub fn offsets(&self) -> &[f64] {
        self.offset.as_flattened()
    }

    /// The numbers of a segment's columns, and their values: panel after panel, eight a column.
    #[inline(always)]
    pub(super) fn segment(&self, segment: &Segment) -> (&[u32], &[Line]) {
        let index = &self.index[segment.index.clone()];
        let length = index.len() * segment.panels.len();
        (index, &self.x[segment.x..segment.x + length])
    }

    /// All segments, each with whether its x is multiplied by the outcomes' signs.
    #[inline(always)]
    pub(super) fn segments(&self) -> impl Iterator<Item = (&Segment, bool)> {
        let groups = self.blocks.iter().flat_map(|b| &b.groups);
        groups.flat_map(|g| g.segments.iter().map(|s| (s, g.ones)))
    }

    /// The linear predictors of all rows.
    pub fn predict(&self, beta: &[f64], out: &mut [f64]) {
        let (out, _) = out.as_chunks_mut();
        self.path.run(Predict { rows: self, beta, out });
    }

    /// The rows' part of the log-likelihood at each point (β, a); a is the log dispersion of a
    /// negative binomial and unused otherwise. Points share a block of rows while it is in cache.
    pub fn values(&self, points: &[(&[f64], f64)], out: &mut [f64]) {
        self.path.run(Values { rows: self, points, out });
        for (out, (beta, a)) in out.iter_mut().zip(points) {
            *out += self.known_part(beta, *a);
        }
    }

    /// Σ t·η of a Poisson, Σ t·a of a negative binomial; nothing where counts are large.
    fn known_part(&self, beta: &[f64], a: f64) -> f64 {
        match self.family {
            _ if self.large => 0.0,
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
        self.path.run(Gram { rows: self, weights: &self.count })
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

/// A vector over rows in whole panels, padded by 0.
fn in_panels(values: &[f64]) -> Vec<Lanes> {
    let (whole, rest) = values.as_chunks();
    let mut panels = whole.to_vec();
    if !rest.is_empty() {
        let mut last = [0.0; LANES];
        last[..rest.len()].copy_from_slice(rest);
        panels.push(last);
    }
    panels
}
