//! Reversible jump over splits: partitions of experiment 6.

use consilience::Result;
use consilience::engine::Observer;
use consilience::estimate::Estimate;
use consilience::plan::{GatheredRows, Room};
use consilience::select::Selection;
use consilience::study::{Combine, Local, SelectBy, Study};
use consilience::sweep::{Bench, Cell, CellName, CellTime, CellVote};

/// The paper's way, and better ones.
pub const METHODS: [&str; 4] =
    ["Algorithm 3", "Bartolucci, acceptance", "Bartolucci, bridge", "union-and-fill, normal"];

/// Computes Bayes factors of a few models by reversible jump on every shard.
pub struct OnJumps {
    rows: GatheredRows,
    models: Vec<String>,
    threads: usize,
}

impl OnJumps {
    /// Of these models, each named by its terms.
    pub fn new(rows: GatheredRows, models: Vec<String>, threads: usize) -> OnJumps {
        OnJumps { rows, models, threads }
    }

    fn select(
        &self,
        name: &CellName,
        method: SelectBy,
        combine: Combine,
        observer: &dyn Observer,
    ) -> Result<Selection> {
        let change = |study: &mut Study| {
            name.apply(study);
            study.evidence.combine = combine;
            if combine == Combine::Normal {
                study.evidence.local = Local::Importance;
            }
            if let Some(select) = &mut study.select {
                select.method = method;
            }
        };
        let plan = self.rows.plan(change, 1, &Room::default(), None, observer)?;
        plan.select_and_name(&self.models, observer)
    }
}

impl Bench for OnJumps {
    fn measure(
        &self,
        name: &CellName,
        _: &[Combine],
        _: bool,
        observer: &dyn Observer,
    ) -> Result<(Cell, Option<CellTime>)> {
        let shares = self.select(name, SelectBy::JumpShares, Combine::Exact, observer);
        let filled = self.select(name, SelectBy::ReversibleJump, Combine::Normal, observer)?;
        let exact = self.select(name, SelectBy::Enumerate, Combine::Exact, observer)?;
        let truth: Vec<Estimate> = exact.named.iter().map(|m| m.log_evidence).collect();
        let mut votes = Vec::new();
        // Jumps know ratios only: those against the first model stand on its exact evidence.
        let mut add = |method: &str, factors: Option<Vec<Estimate>>| {
            if let Some(factors) = factors {
                let on_first = factors
                    .into_iter()
                    .map(|f| Estimate { value: truth[0].value + f.value, se: f.se });
                let models = std::iter::once(truth[0]).chain(on_first).collect();
                votes.push(CellVote::new(method, "log evidence", models));
            }
        };
        let from = shares.as_ref().unwrap_or(&filled);
        if let Ok(shares) = &shares {
            add(METHODS[0], shares.jumps.iter().map(|j| j.visits).collect());
        }
        add(METHODS[1], Some(from.jumps.iter().map(|j| j.acceptance).collect()));
        add(METHODS[2], Some(from.jumps.iter().map(|j| j.bridge).collect()));
        let filled_in = |terms: &[String]| -> Option<Estimate> {
            let model = filled.models.iter().find(|m| m.terms == terms)?;
            Some(Estimate { value: model.log_evidence?, se: model.log_evidence_se })
        };
        let all: Option<Vec<Estimate>> = exact.named.iter().map(|m| filled_in(&m.terms)).collect();
        if let Some(models) = all {
            votes.push(CellVote::new(METHODS[3], "log evidence", models));
        }
        let study = &self.rows.outline().study;
        let cell = Cell::of_votes(name, study, &exact.partition, &truth, votes);
        Ok((cell, None))
    }

    fn at_once(&self) -> usize {
        self.threads
    }
}
