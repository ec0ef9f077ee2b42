//! The columns of rows, in panels of eight or as the data have them.

use super::panels::{BLOCK, GROUPS, Margins, panel_of};
use super::rows::signed;
use super::simd::{LANES, Lanes, Line};
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// Columns of a run of whole blocks. In panels: eight values per column per panel, panel after panel; in groups of a
/// logistic's or probit's single observations they are multiplied by the outcome's sign, −1 or 1. Or as the data
/// have them: then whoever visits a block makes its panels, on a desk that stays in cache.
#[derive(Debug)]
pub struct Store {
    body: StoreBody,
    /// Per block and column of a store that has all columns of a panel, a bit for each panel on which the
    /// column is not 0 everywhere; empty otherwise.
    pub(super) present: Vec<u128>,
    /// The columns of such a store, by the numbers that the design has for them.
    pub(super) columns: Vec<u32>,
    /// Its panels among those of the margins.
    pub(super) panels: Range<usize>,
}

#[derive(Debug)]
enum StoreBody {
    Panels(Vec<Line>),
    Lent(Arc<dyn Lender>),
}

/// Somebody who has columns of numbers, of all rows of the margins.
pub trait Lender: Debug + Send + Sync {
    /// The column in this place.
    fn column(&self, place: usize) -> Values<'_>;
}

/// The values of a column.
#[derive(Debug, Clone, Copy)]
pub enum Values<'a> {
    /// 1 in all of so many rows.
    One(usize),
    /// Numbers of few digits.
    Single(&'a [f32]),
    /// Numbers.
    Double(&'a [f64]),
}

impl Values<'_> {
    /// Eight rows, padded by 0.
    #[inline(always)]
    fn panel(self, panel: usize) -> Lanes {
        match self {
            Values::Single(values) => match values.as_chunks::<LANES>() {
                (whole, _) if panel < whole.len() => whole[panel].map(f64::from),
                (_, rest) => padded(rest.len(), |lane| f64::from(rest[lane])),
            },
            Values::Double(values) => panel_of(values, panel),
            Values::One(rows) if panel < rows / LANES => [1.0; LANES],
            Values::One(rows) => padded(rows % LANES, |_| 1.0),
        }
    }
}

#[inline(always)]
fn padded(rows: usize, value: impl Fn(usize) -> f64) -> Lanes {
    std::array::from_fn(|lane| if lane < rows { value(lane) } else { 0.0 })
}

impl Store {
    /// All of these columns, which have these numbers, from a panel on that begins a block.
    pub fn new(margins: &Margins, first: usize, columns: &[Vec<f64>], numbers: Vec<u32>) -> Store {
        let rows = columns.first().map_or(0, Vec::len);
        let panels = rows.div_ceil(LANES);
        let mut x = Vec::with_capacity(panels * columns.len());
        let mut present = vec![0; panels.div_ceil(BLOCK) * columns.len()];
        for (block, begin) in (0..panels).step_by(BLOCK).enumerate() {
            let count = (panels - begin).min(BLOCK);
            for group in 0..margins.groups(first + begin, count) {
                let ones = margins.is_ones(first + begin, group);
                for panel in margins.group(first + begin, group) {
                    for (j, column) in columns.iter().enumerate() {
                        let lanes = panel_of(column, panel - first);
                        let present = &mut present[block * columns.len() + j];
                        *present |= u128::from(lanes != [0.0; LANES]) << (panel - first - begin);
                        let total = &margins.total[panel];
                        x.push(Line(if ones { signed(&lanes, total) } else { lanes }));
                    }
                }
            }
        }
        let panels = first..first + panels;
        Store { body: StoreBody::Panels(x), present, columns: numbers, panels }
    }

    /// The columns of a lender, which have these numbers, in panels of which the first begins a block.
    pub fn lent(lender: Arc<dyn Lender>, panels: Range<usize>, numbers: Vec<u32>) -> Store {
        let mut present = Vec::new();
        for first in panels.clone().step_by(BLOCK) {
            let own = first..panels.end.min(first + BLOCK);
            for place in 0..numbers.len() {
                let values = lender.column(place);
                let mark = |panel: usize| u128::from(values.panel(panel) != [0.0; LANES]);
                let marks = own.clone().fold(0, |all, p| all | mark(p) << (p - first));
                present.push(marks);
            }
        }
        Store { body: StoreBody::Lent(lender), present, columns: numbers, panels }
    }

    /// Panels that are a model's own: it knows where in them its columns stand.
    pub(super) fn own(x: Vec<Line>) -> Store {
        Store { body: StoreBody::Panels(x), present: Vec::new(), columns: Vec::new(), panels: 0..0 }
    }

    /// About how many bytes panels take for so many rows of so many columns.
    pub fn memory(rows: usize, columns: usize) -> usize {
        rows.div_ceil(LANES) * columns * size_of::<Line>()
    }

    /// How many eights of values it holds of its own.
    pub(super) fn lines(&self) -> usize {
        match &self.body {
            StoreBody::Panels(x) => x.len(),
            StoreBody::Lent(_) => 0,
        }
    }

    /// Where columns in these places stand in a panel, and how many stand there.
    pub(super) fn standing(&self, places: &[u32]) -> (Vec<u32>, usize) {
        match &self.body {
            StoreBody::Panels(_) => (places.to_vec(), self.columns.len()),
            // Only what is wanted is laid out.
            StoreBody::Lent(_) => ((0..places.len() as u32).collect(), places.len()),
        }
    }

    /// The panels of the block that begins with this one, `x` from the beginning on. Columns that are lent are laid
    /// out on the desk: those in these places, one after the other.
    #[inline(always)]
    pub(super) fn block<'a>(
        &'a self,
        margins: &Margins,
        (first, x): (usize, usize),
        places: &[u32],
        desk: &'a mut Vec<Line>,
    ) -> &'a [Line] {
        let lender = match &self.body {
            StoreBody::Panels(lines) => return &lines[x..],
            StoreBody::Lent(lender) => lender,
        };
        let columns: Vec<Values> = places.iter().map(|&p| lender.column(p as usize)).collect();
        desk.resize(BLOCK * columns.len(), Line::ZERO);
        let mut lines = desk.iter_mut();
        for group in 0..GROUPS {
            let panels = margins.group(first, group);
            let ones = !panels.is_empty() && margins.is_ones(first, group);
            for panel in panels {
                let outcomes = if ones { margins.total[panel] } else { [1.0; LANES] };
                for (values, line) in columns.iter().zip(&mut lines) {
                    line.0 = signed(&values.panel(panel), &outcomes);
                }
            }
        }
        desk
    }
}
