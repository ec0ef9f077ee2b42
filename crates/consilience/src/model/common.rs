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
use crate::data::{Column, Design, Recipe, ResponseKind, ShardData, Table};
use crate::kernel::{BLOCK_ROWS, Lender, Margins, Rows, Store, Values};
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
    /// Bytes of panels up to which columns are copied.
    copied: f64,
    margins: OnceLock<Option<Arc<Margins>>>,
    columns: OnceLock<Option<Columns>>,
    /// The same for columns that the table lends.
    lent: OnceLock<Option<Columns>>,
    /// What the outcomes of a chunk add to log-likelihoods, by the chunk.
    constants: Mutex<HashMap<Range<usize>, Arc<Constant>>>,
}

/// The columns that are kept.
#[derive(Debug)]
struct Columns {
    /// Those that are mostly not 0: the others belong to factors, whose rows merge or are sorted. Or all that the
    /// table lends.
    numbers: Vec<u32>,
    /// Who lends them.
    lender: Option<Arc<TableColumns>>,
    /// Whole blocks of rows each, with their columns unless there was no room.
    stores: Vec<(Range<usize>, Slot)>,
}

/// Columns of a table, by their numbers; `None` is the intercept's.
#[derive(Debug)]
struct TableColumns {
    table: Arc<Table>,
    columns: Vec<Option<usize>>,
}

impl TableColumns {
    /// The columns of a design that a table has as they are, and their numbers.
    fn of(design: &Recipe, table: &Arc<Table>) -> (TableColumns, Vec<u32>) {
        let place = |number: usize| match design.column_as_it_is(number)? {
            None => Some(None),
            Some(name) => {
                let place = table.names().iter().position(|own| own == name)?;
                let column = &table.columns()[place];
                matches!(column, Column::Number(_) | Column::Single(_)).then_some(Some(place))
            }
        };
        let found = (0..design.columns.len()).filter_map(|j| Some((place(j)?, j as u32)));
        let (columns, numbers) = found.unzip();
        (TableColumns { table: table.clone(), columns }, numbers)
    }
}

impl Lender for TableColumns {
    fn column(&self, place: usize) -> Values<'_> {
        match self.columns[place].map(|column| &self.table.columns()[column]) {
            Some(Column::Single(values)) => Values::Single(values),
            Some(Column::Number(values)) => Values::Double(values),
            _ => Values::One(self.table.rows()),
        }
    }
}

/// A store that is made when it is first needed; none if there was no room.
type Slot = OnceLock<Option<Arc<Store>>>;

/// Bytes of panels, of all shards together, up to which columns are copied into panels although the table has them
/// as they are. So few serve again and again, as in chains, from a cache. Beyond, panels come from further away than the
/// table does, which is half their size where columns are 32-bit floats, and would take the memory of three tables.
const COPIED: f64 = (256 << 20) as f64;

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
            copied: COPIED,
            margins: OnceLock::new(),
            columns: OnceLock::new(),
            lent: OnceLock::new(),
            constants: Mutex::default(),
        }
    }

    /// The same, but columns that the table has as they are stay there, however few the rows are.
    pub fn without_copies(self) -> Common {
        Common { copied: 0.0, ..self }
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
        let plain = matches!(
            self.design.response.kind,
            ResponseKind::Number | ResponseKind::Classes { .. }
        );
        let apart = self.family == Family::Gaussian || self.family.has_cases();
        if apart || !plain || self.design.weights.is_some() {
            return None;
        }
        // Without a column nothing would say how many rows there are.
        let has_all = |columns: &&Columns| {
            !columns.numbers.is_empty()
                && regression.active.iter().all(|j| columns.numbers.contains(j))
        };
        let columns = self.lent().filter(has_all).or_else(|| self.columns().filter(has_all))?;
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
            slot.get_or_init(|| self.store(columns, own, margins, room)).clone()
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
            Some(self.stores(numbers, None))
        });
        found.as_ref()
    }

    /// The columns that the table lends; none of data so small that panels are copied.
    fn lent(&self) -> Option<&Columns> {
        let found = self.lent.get_or_init(|| {
            let ShardData::Memory(table) = &self.data else { return None };
            // The rows of all shards, whose panels would be in memory side by side.
            let rows = self.design.response.weight;
            if rows * (self.design.columns.len() * size_of::<f64>()) as f64 <= self.copied {
                return None;
            }
            let (lender, numbers) = TableColumns::of(&self.design, table);
            Some(self.stores(numbers, Some(Arc::new(lender))))
        });
        found.as_ref()
    }

    /// Stores of these columns, none of them made.
    fn stores(&self, numbers: Vec<u32>, lender: Option<Arc<TableColumns>>) -> Columns {
        let ranges = self.data.batches(chunk_rows(numbers.len()));
        let stores = ranges.into_iter().map(|range| (range, OnceLock::new())).collect();
        Columns { numbers, lender, stores }
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
                refuse_outcomes(family, &facts.text, &design, &table)?;
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
        columns: &Columns,
        rows: &Range<usize>,
        margins: &Margins,
        room: HasRoom,
    ) -> Option<Arc<Store>> {
        let numbers = columns.numbers.clone();
        if let Some(lender) = &columns.lender {
            let panels = rows.start / 8..rows.end.div_ceil(8);
            return Some(Arc::new(Store::lent(lender.clone(), panels, numbers)));
        }
        if !room(Store::memory(rows.len(), numbers.len())) {
            return None;
        }
        let table = self.data.batch(rows.clone()).ok()?;
        let design = self.design.part(&numbers).design(&table).ok()?;
        Some(Arc::new(Store::new(margins, rows.start / 8, &design.columns, numbers)))
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
