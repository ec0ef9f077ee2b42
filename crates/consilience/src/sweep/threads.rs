//! Cells on this machine's threads.

use super::{Bench, Cell, CellName, CellTime, Measured};
use crate::Result;
use crate::engine::{Clock, Engine, Observer};
use crate::plan::{GatheredRows, Plan, Room};
use crate::study::{Combine, Schedule, Study};
use std::sync::Arc;

/// Computes cells here, of rows that were read once.
pub struct OnThreads {
    rows: GatheredRows,
    threads: usize,
    room: Room,
    clock: Option<Arc<dyn Clock>>,
}

impl OnThreads {
    /// Of these rows. With a clock, shards are timed.
    pub fn new(
        rows: GatheredRows,
        threads: usize,
        room: Room,
        clock: Option<Arc<dyn Clock>>,
    ) -> OnThreads {
        OnThreads { threads: room.threads(threads), rows, room, clock }
    }
}

impl Bench for OnThreads {
    fn measure(
        &self,
        name: &CellName,
        methods: &[Combine],
        votes: bool,
        observer: &dyn Observer,
    ) -> Result<Measured> {
        let study = &self.rows.outline().study;
        let change = |own: &mut Study| {
            name.apply(own);
            if !methods.contains(&Combine::Exact) {
                // What only `exact` needs is not asked.
                own.evidence.schedule = Schedule::Gentle;
                own.evidence.statistics = false;
            }
        };
        let threads = self.threads / self.at_once();
        let room = self.room.part(self.at_once());
        let plan = self.rows.plan(change, threads, &room, self.clock.clone(), observer)?;
        let cell = measured(&plan, name, study, methods, votes, observer)?;
        let time = self.clock.as_ref().map(|_| CellTime::of(&plan.engine().spent()));
        Ok((cell, time))
    }

    /// A cell per thread: shards are then timed without disturbing each other, and no thread waits for the slowest
    /// shard of a round. Where memory is bounded there is only room for one.
    fn at_once(&self) -> usize {
        if self.room.is_bounded() { 1 } else { self.threads.max(1) }
    }
}

/// A cell on any plan.
pub(crate) fn measured<E: Engine>(
    plan: &Plan<E>,
    name: &CellName,
    study: &Study,
    methods: &[Combine],
    votes: bool,
    observer: &dyn Observer,
) -> Result<Cell> {
    let ways = plan.ways(methods, votes, observer)?;
    Ok(Cell::new(name, study, &plan.partition, ways))
}
