//! The rows of a shard that the models of one design have in common.
//!
//! Where merging is hopeless, rows stand as the data do, whatever the model: then their panels are built
//! once, and a model is a view of them. Its chunks are as they would be if the rows were its own, so that no
//! bit of a sum depends on the company that a model is in.

use super::chunks::chunk_rows;
use super::merge::{is_hopeless, sample};
use super::piece::{Constant, Piece, PieceBody, has_large_counts, refuse_outcomes};
use super::{Family, Regression};
use crate::Result;
use crate::data::{Design, Recipe, ShardData};
use crate::kernel::{BLOCK_ROWS, Margins, Rows, Store};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

/// What models of one family over one design share on one shard. All of it is made when it is first needed,
/// by one thread while others wait: it makes no use of further ones, so that none of these can be waiting for
/// it in turn.
#[derive(Debug)]
pub struct Common {
    family: Family,
    design: Arc<Recipe>,
    data: ShardData,
    margins: OnceLock<Option<Arc<Margins>>>,
    columns: OnceLock<Option<Columns>>,
    /// What the outcomes of a chunk add to log-likelihoods, by the chunk.
    constants: Mutex<HashMap<Range<usize>, Arc<Constant>>>,
}

/// The columns that are kept.
#[derive(Debug)]
struct Columns {
    /// Those that are mostly not 0: the others belong to factors, whose rows merge or are sorted.
    numbers: Vec<u32>,
    /// Whole blocks of rows each, with their columns unless there was no room.
    stores: Vec<(Range<usize>, Slot)>,
}

/// A store that is made when it is first needed; none if there was no room.
type Slot = OnceLock<Option<Arc<Store>>>;

/// Rows that tell which columns are kept.
const MOST_ROWS: usize = 256;

/// Whether there is room for so many bytes more.
pub type HasRoom<'a> = &'a (dyn Fn(usize) -> bool + Sync);

impl Common {
    /// For models like this one, on these rows.
    pub fn new(regression: &Regression, data: &ShardData) -> Common {
        Common {
            family: regression.family,
            design: regression.design.clone(),
            data: data.clone(),
            margins: OnceLock::new(),
            columns: OnceLock::new(),
            constants: Mutex::default(),
        }
    }

    /// Whether models like this one are meant.
    pub fn is_of(&self, regression: &Regression) -> bool {
        self.family == regression.family
            && (Arc::ptr_eq(&self.design, &regression.design) || self.design == regression.design)
    }

    /// A chunk of rows under a model without coefficients that are held fixed, if it can be a view: rows
    /// have no weights, merging them is hopeless, and there is room. What fails here will fail again where a
    /// model builds its own rows, and be reported there.
    pub(super) fn view(
        &self,
        regression: &Regression,
        rows: Range<usize>,
        room: HasRoom,
    ) -> Option<Piece> {
        if self.family == Family::Gaussian || self.design.weights.is_some() {
            return None;
        }
        // Without a column nothing would say how many rows there are.
        let columns = self.columns().filter(|columns| !columns.numbers.is_empty())?;
        if !regression.active.iter().all(|j| columns.numbers.contains(j)) {
            return None;
        }
        let meets = |own: &Range<usize>| own.start < rows.end && rows.start < own.end;
        let stores = || columns.stores.iter().filter(|(own, _)| meets(own));
        // Where there was no room before, nothing needs to be read to find that out.
        let refused = |slot: &Slot| matches!(slot.get(), Some(None));
        if matches!(self.margins.get(), Some(None)) || stores().any(|(_, slot)| refused(slot)) {
            return None;
        }
        let chosen = sample(rows.len())?;
        let some = self.design_at(&regression.recipe(), &rows, &chosen)?;
        let own: Vec<&[f64]> = some.columns.iter().map(Vec::as_slice).collect();
        if !is_hopeless(&chosen, &own, some.offset.as_deref(), |k| k) {
            return None;
        }
        let margins = self.margins(room)?;
        let store = |(own, slot): &(Range<usize>, Slot)| {
            slot.get_or_init(|| self.store(&columns.numbers, own, margins, room)).clone()
        };
        let stores: Vec<Arc<Store>> = stores().map(store).collect::<Option<_>>()?;
        let panels = rows.start / 8..rows.end.div_ceil(8);
        let view = Rows::view(margins, panels, &stores, &regression.active, regression.kernel)?;
        let constant = self.constant(&rows, view.totals());
        Some(Piece {
            observations: rows.len() as f64,
            coefficients: regression.active.len(),
            distinct: rows.len(),
            body: PieceBody::Rows {
                rows: Some(view),
                constant: constant.value,
                outcomes: constant.outcomes.clone(),
            },
        })
    }

    /// The design of some rows of a chunk.
    fn design_at(&self, recipe: &Recipe, rows: &Range<usize>, chosen: &[usize]) -> Option<Design> {
        let table = match &self.data {
            ShardData::Memory(table) => {
                table.select(&chosen.iter().map(|i| rows.start + i).collect::<Vec<_>>())
            }
            stored => stored.batch(rows.clone()).ok()?.select(chosen),
        };
        recipe.design(&table).ok()
    }

    /// The columns that are kept; none of rows so few that models merge them in no time.
    fn columns(&self) -> Option<&Columns> {
        let found = self.columns.get_or_init(|| {
            let rows = 0..self.data.rows().min(32 * BLOCK_ROWS);
            let mut chosen = sample(rows.len())?;
            chosen.truncate(MOST_ROWS);
            let design = self.design_at(&self.design, &rows, &chosen)?;
            let dense =
                |column: &[f64]| 2 * column.iter().filter(|x| **x != 0.0).count() >= column.len();
            let columns = design.columns.iter().enumerate().filter(|(_, column)| dense(column));
            let numbers: Vec<u32> = columns.map(|(j, _)| j as u32).collect();
            let ranges = self.data.batches(chunk_rows(numbers.len()));
            let stores = ranges.into_iter().map(|range| (range, OnceLock::new())).collect();
            Some(Columns { numbers, stores })
        });
        found.as_ref()
    }

    /// What stands beside the columns, of all rows.
    fn margins(&self, room: HasRoom) -> Option<&Arc<Margins>> {
        let build = || {
            if !room(Margins::memory(self.data.rows())) {
                return None;
            }
            let (family, facts) = (self.family, &self.design.response);
            let large = has_large_counts(family, facts.mean * facts.weight);
            let bare = self.design.part(&[]);
            let mut all = Margins::with_capacity(family, self.data.rows(), large);
            let batch = |rows: Range<usize>| -> Result<Design> {
                let table = self.data.batch(rows)?;
                let design = bare.design(&table)?;
                refuse_outcomes(family, &facts.text, &design.response, &table)?;
                Ok(design)
            };
            for rows in self.data.batches(64 * BLOCK_ROWS) {
                let design = batch(rows).ok()?;
                let n = design.response.len();
                let offset = design.offset.unwrap_or_else(|| vec![0.0; n]);
                all.append(&offset, &vec![1.0; n], &design.response);
            }
            Some(Arc::new(all))
        };
        self.margins.get_or_init(build).as_ref()
    }

    fn store(
        &self,
        numbers: &[u32],
        rows: &Range<usize>,
        margins: &Margins,
        room: HasRoom,
    ) -> Option<Arc<Store>> {
        if !room(Store::memory(rows.len(), numbers.len())) {
            return None;
        }
        let table = self.data.batch(rows.clone()).ok()?;
        let design = self.design.part(numbers).design(&table).ok()?;
        Some(Arc::new(Store::new(margins, rows.start / 8, &design.columns, numbers.to_vec())))
    }

    /// What the outcomes of a chunk add to log-likelihoods.
    fn constant(&self, rows: &Range<usize>, totals: &[f64]) -> Arc<Constant> {
        let known = || self.constants.lock().expect("no thread panics while it holds the lock");
        if let Some(constant) = known().get(rows) {
            return constant.clone();
        }
        let facts = &self.design.response;
        let large = has_large_counts(self.family, facts.mean * facts.weight);
        // Where counts are large, a total of 0 is a tiny number.
        let y: Vec<f64> = totals[..rows.len()].iter().map(|t| t.floor()).collect();
        let found = Constant::new(self.family, &y, None, large);
        known().entry(rows.clone()).or_insert(Arc::new(found)).clone()
    }
}
