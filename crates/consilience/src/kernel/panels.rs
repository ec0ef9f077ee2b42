//! Rows in panels of eight: what stands beside the columns.

use super::cases::Case;
use super::family::Family;
use super::simd::{LANES, Lanes};
use std::ops::Range;

/// Panels per block: 960 rows, which stay in cache while many points visit them. Also the most
/// factors (1 + e^−|η|) ≤ 2 that a product over all lanes holds without overflow, with room to spare.
pub const BLOCK: usize = 120;

/// The rows of a block.
pub const BLOCK_ROWS: usize = BLOCK * LANES;

/// Panels whose derivatives are taken before they are multiplied by x, which is still in the
/// nearest cache then.
pub const GROUP: usize = 16;

/// The most groups of a block: the last is shorter, and a panel that is not full may stand apart.
pub(super) const GROUPS: usize = BLOCK.div_ceil(GROUP) + 1;

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
    /// Of rows that go by the laws of `cases`, their kind and the second number of their outcomes; the first is `total`.
    pub(super) case: Option<(Case, Vec<Lanes>)>,
    /// The last panel, if it is not full and stands in a group of its own, so that the panels before it have single
    /// observations only: shards of a hundred rows have one such group and no other.
    apart: Option<usize>,
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
        Margins { family, offset, count, total, large, case: None, apart: None, ones: Vec::new() }
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
        let before = self.count.len();
        self.offset.extend(offset);
        self.count.extend(count);
        self.total.extend(total);
        let panels = self.panels();
        let is_binary = matches!(family, Family::Logistic | Family::Probit);
        let is_one = |panel: usize| is_binary && self.count[panel] == [1.0; LANES];
        if rows % LANES != 0 {
            let last = panels - 1;
            let mut beside = last - (last % BLOCK) % GROUP..last;
            self.apart = (!beside.is_empty() && beside.all(is_one)).then_some(last);
        }
        let blocks = (before..panels).step_by(BLOCK);
        let groups = blocks.flat_map(|block| (0..GROUPS).map(move |group| (block, group)));
        let ones = groups.map(|(block, group)| self.group(block, group).all(is_one));
        let ones: Vec<bool> = ones.collect();
        self.ones.extend(ones);
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

    /// The panels of a group, given the first of its block.
    #[inline(always)]
    pub(super) fn group(&self, block: usize, group: usize) -> Range<usize> {
        let end = (block + BLOCK).min(self.panels());
        let begin = |group: usize| (block + group * GROUP).min(end);
        let (start, stop) = (begin(group), begin(group + 1));
        match self.apart {
            Some(last) if start <= last && last < stop => start..last,
            // Behind the group that it was taken from.
            Some(last) if start == stop && group > 0 && (begin(group - 1)..end).contains(&last) => {
                last..end
            }
            _ => start..stop,
        }
    }

    /// How many groups there are in the block of so many panels that begins with this one.
    #[inline(always)]
    pub(super) fn groups(&self, block: usize, panels: usize) -> usize {
        let has_apart = self.apart.is_some_and(|last| (block..block + panels).contains(&last));
        panels.div_ceil(GROUP) + usize::from(has_apart)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups have every panel once and in order, and only the rows of a panel that is not full, or of another
    /// count than 1, do without the law of single observations.
    #[test]
    fn a_panel_that_is_not_full_stands_apart() {
        for rows in (1..300).chain([955, 959, 960, 961, 1000, 1919, 1920, 1927, 5000]) {
            let margins = |family, count: f64| {
                let (offset, count) = (vec![0.0; rows], vec![count; rows]);
                Margins::new(family, &offset, &count, &vec![1.0; rows], false)
            };
            let found = |margins: &Margins| -> (Vec<usize>, usize) {
                let (mut order, mut ones) = (Vec::new(), 0);
                for block in (0..margins.panels()).step_by(BLOCK) {
                    let count = (margins.panels() - block).min(BLOCK);
                    for group in 0..margins.groups(block, count) {
                        let panels = margins.group(block, group);
                        assert!(!panels.is_empty() && panels.len() <= GROUP, "{rows} rows");
                        ones += if margins.is_ones(block, group) { panels.len() } else { 0 };
                        order.extend(panels);
                    }
                    // What is visited whatever the block has.
                    let rest = margins.groups(block, count)..GROUPS;
                    assert!(rest.into_iter().all(|group| margins.group(block, group).is_empty()));
                }
                (order, ones)
            };
            let all: Vec<usize> = (0..rows.div_ceil(LANES)).collect();
            for (family, count, ones) in [
                (Family::Logistic, 1.0, rows / LANES),
                (Family::Probit, 1.0, rows / LANES),
                (Family::Logistic, 2.0, 0),
                (Family::Poisson, 1.0, 0),
            ] {
                assert_eq!(found(&margins(family, count)), (all.clone(), ones), "{rows} rows");
            }
        }
    }
}
