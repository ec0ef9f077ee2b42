//! Rows in panels of eight: what stands beside the columns.

use super::family::Family;
use super::simd::{LANES, Lanes};

/// Panels per block: 960 rows, which stay in cache while many points visit them. Also the most
/// factors (1 + e^−|η|) ≤ 2 that a product over all lanes holds without overflow, with room to spare.
pub const BLOCK: usize = 120;

/// The rows of a block.
pub const BLOCK_ROWS: usize = BLOCK * LANES;

/// Panels whose derivatives are taken before they are multiplied by x, which is still in the
/// nearest cache then.
pub const GROUP: usize = 16;

/// Groups of a block, the last of which is shorter.
const GROUPS: usize = BLOCK.div_ceil(GROUP);

/// The mean of outcomes that are all 0, so that it has a logarithm: likelihoods do not tell it from 0.
const NOTHING: f64 = 1e-30;

/// What stands beside the columns, for rows (x, offset) that are each shared by a number of observations: that
/// number, the sum of their outcomes, and the offset. It is the same for all models of a design.
#[derive(Debug)]
pub struct Margins {
    pub(super) family: Family,
    pub(super) offset: Vec<Lanes>,
    pub(super) count: Vec<Lanes>,
    pub(super) total: Vec<Lanes>,
    /// Whether the laws of large counts hold (`large.rs`): offsets are less log(total/count) then.
    pub(super) large: bool,
    /// Per group, whether it has single observations of a logistic or probit: x is multiplied by the outcome's sign.
    ones: Vec<bool>,
}

impl Margins {
    /// Of rows with these offsets, numbers of observations and sums of outcomes. `large` is for counts of
    /// any size: log-likelihoods are relative to those at means that are total/count, so that large terms
    /// cancel before they are summed. What is left out are terms without β, which are `math::counts`'s.
    pub fn new(
        family: Family,
        offset: &[f64],
        count: &[f64],
        total: &[f64],
        large: bool,
    ) -> Margins {
        let mut margins = Margins::with_capacity(family, count.len(), large);
        margins.append(offset, count, total);
        margins
    }

    /// Of no rows, with room for so many.
    pub fn with_capacity(family: Family, rows: usize, large: bool) -> Margins {
        let none = || Vec::with_capacity(rows.div_ceil(LANES));
        let (offset, count, total) = (none(), none(), none());
        Margins { family, offset, count, total, large, ones: Vec::new() }
    }

    /// Adds rows; those before are whole blocks.
    pub fn append(&mut self, offset: &[f64], count: &[f64], total: &[f64]) {
        let (rows, family) = (count.len(), self.family);
        let (mut offset, count, mut total) =
            (in_panels(offset), in_panels(count), in_panels(total));
        if self.large {
            let own = offset.as_flattened_mut().iter_mut().zip(total.as_flattened_mut());
            for (k, ((o, t), c)) in own.zip(count.as_flattened()).enumerate() {
                // Rows of padding count for nothing, but have to have a share of something.
                *t = if k < rows { t.max(c * NOTHING) } else { NOTHING };
                if k < rows {
                    *o -= libm::log(*t / c);
                }
            }
        }
        let panels = count.len();
        let is_binary = matches!(family, Family::Logistic | Family::Probit);
        let is_one = |panel: usize| is_binary && count[panel] == [1.0; LANES];
        for block in (0..panels).step_by(BLOCK) {
            for group in 0..GROUPS {
                self.ones.push(group_of(block, group, panels).all(is_one));
            }
        }
        self.offset.extend(offset);
        self.count.extend(count);
        self.total.extend(total);
    }

    /// The panels of all rows.
    pub fn panels(&self) -> usize {
        self.count.len()
    }

    /// About how many bytes they take for so many rows.
    pub fn memory(rows: usize) -> usize {
        3 * (rows.div_ceil(LANES)) * size_of::<Lanes>()
    }

    /// Whether x of a group in the block that begins with this panel is multiplied by the outcomes' signs.
    #[inline(always)]
    pub(super) fn is_ones(&self, block: usize, group: usize) -> bool {
        self.ones[block / BLOCK * GROUPS + group]
    }
}

/// The panels of a group, given the first of its block and the number of all.
#[inline(always)]
pub(super) fn group_of(block: usize, group: usize, panels: usize) -> std::ops::Range<usize> {
    let end = (block + BLOCK).min(panels);
    (block + group * GROUP).min(end)..(block + (group + 1) * GROUP).min(end)
}

/// Eight rows of a column, padded by 0.
#[inline(always)]
pub(super) fn panel_of(column: &[f64], panel: usize) -> Lanes {
    let values = &column[panel * LANES..column.len().min((panel + 1) * LANES)];
    let mut lanes = [0.0; LANES];
    lanes[..values.len()].copy_from_slice(values);
    lanes
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
