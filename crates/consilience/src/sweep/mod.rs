//! How many splits do the data bear? One study over numbers of shards, partitions, ways to split and combinations.
//!
//! A *cell* is one partition: a way to split, a number of shards and a repeat, whose number is added to the
//! study's seeds. Every cell is computed by itself and can be kept, so that a sweep that was stopped goes on where
//! it was. What is said of all of them (`metrics`) is made of the cells alone.

mod cell;
mod document;
mod failures;
mod folder;
mod metrics;
mod reference;
mod threads;
mod verdict;

pub use cell::{Cell, CellCombination, CellModel, CellTime, CellVote};
pub use document::Document;
pub use folder::{CellStore, Folder};
pub use metrics::{CellGroup, Errors, FittedLine, GroupModel};
pub use reference::Reference;
pub use threads::OnThreads;
pub(crate) use threads::measured;
pub use verdict::Advice;

use crate::engine::Observer;
use crate::study::{Combine, Split, SplitBy, Study, StudyFile};
use crate::{Error, Place, Result};
use serde::Serialize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The most cells of a sweep.
const MOST_CELLS: usize = 100_000;

/// What is to be swept.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sweep {
    /// Numbers of shards, ascending.
    pub shards: Vec<usize>,
    /// Partitions per number of shards and way to split.
    pub repeats: usize,
    /// Ways to split: those that let the number of shards be chosen.
    pub by: Vec<SplitBy>,
    /// Combinations.
    pub combine: Vec<Combine>,
    /// Whether shards also vote.
    pub votes: bool,
    /// The true log evidence of every model, where it is known; that of `exact` is taken for it otherwise.
    pub reference: Option<Vec<f64>>,
}

/// Which partition a cell is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellName {
    /// The way to split.
    pub by: SplitBy,
    /// The number of shards.
    pub shards: usize,
    /// The repeat, counted from 1.
    pub repeat: usize,
    /// Whether `exact` is computed in it: once per repeat, since it does not depend on the split.
    pub exact: bool,
}

impl CellName {
    /// Its name as a file's.
    pub fn stem(&self) -> String {
        format!("{}-{}-{}", self.by, self.shards, self.repeat)
    }

    /// The seed of its split, in a sweep of this study.
    pub fn split_seed(&self, study: &Study) -> u64 {
        study.split.seed.wrapping_add(self.repeat as u64 - 1)
    }

    /// The seed of its draws.
    pub fn seed(&self, study: &Study) -> u64 {
        study.evidence.seed.wrapping_add(self.repeat as u64 - 1)
    }

    /// Makes a study that of this cell alone.
    pub fn apply(&self, study: &mut Study) {
        let (split_seed, seed) = (self.split_seed(study), self.seed(study));
        let Split { shards, by, seed: own, .. } = &mut study.split;
        (*shards, *by, *own) = (Some(self.shards), self.by.clone(), split_seed);
        study.evidence.seed = seed;
    }
}

/// A cell, and what it took where somebody had a clock.
pub type Measured = (Cell, Option<CellTime>);

/// Somebody who can compute cells: threads here, jobs elsewhere.
pub trait Bench: Sync {
    /// Computes a cell, by these combinations.
    fn measure(
        &self,
        name: &CellName,
        methods: &[Combine],
        votes: bool,
        observer: &dyn Observer,
    ) -> Result<Measured>;

    /// How many cells it can compute at once.
    fn at_once(&self) -> usize {
        1
    }
}

/// Somebody who watches a sweep.
pub trait Watch: Sync {
    /// So many of all cells are there.
    fn cells(&self, _done: usize, _all: usize) {}
    /// Watches what happens within cells.
    fn within(&self) -> &dyn Observer;
}

impl Sweep {
    /// Checks that it can be run on a study.
    pub fn check(&self, file: &StudyFile) -> Result<()> {
        let wrong = |message: String| Err(Error::input(message));
        let study = &file.study;
        if study.select.is_some() {
            return Err(file.lines.locate(Error::input_at(
                Place::key("select"),
                "a sweep compares named models; write them as [[model]] in the place of [select]",
            )));
        }
        if self.shards.is_empty() || self.shards.contains(&0) {
            return wrong("name numbers of shards from 1 on, such as --shards 1,10,50".into());
        }
        if self.shards.windows(2).any(|pair| pair[0] >= pair[1]) {
            return wrong("numbers of shards must ascend, each named once".into());
        }
        if self.repeats == 0 {
            return wrong("a sweep needs at least one repeat".into());
        }
        if self.by.is_empty() || self.combine.is_empty() {
            return wrong("a sweep needs a way to split and a combination".into());
        }
        if let Some(by) = self.by.iter().find(|by| by.is_fixed_by_data()) {
            return wrong(format!(
                "split by {by}, the data say how many shards there are; sweep over random, outcome or cluster"
            ));
        }
        for (i, by) in self.by.iter().enumerate() {
            if self.by[..i].contains(by) {
                return wrong(format!("--by names {by} twice"));
            }
        }
        for (i, combine) in self.combine.iter().enumerate() {
            if self.combine[..i].contains(combine) {
                return wrong(format!("--combine names {combine} twice"));
            }
            // What a study may not combine like this is known before the work.
            let mut own = file.clone();
            own.study.evidence.combine = *combine;
            own.check()?;
        }
        let models = study.models.len();
        if let Some(reference) = self.reference.as_ref().filter(|r| r.len() != models) {
            return wrong(format!(
                "--reference has {} values and the study {models} models; give one value a model, in the study's order",
                reference.len()
            ));
        }
        if self.reference.iter().flatten().any(|value| !value.is_finite()) {
            return wrong("--reference must be finite numbers".into());
        }
        let cells = self.by.len().saturating_mul(self.shards.len()).saturating_mul(self.repeats);
        if cells > MOST_CELLS {
            return wrong(format!("{cells} partitions are too many; at most {MOST_CELLS}"));
        }
        Ok(())
    }

    /// Whether `exact` is computed: as one of the combinations, or as the reference.
    pub fn needs_exact(&self) -> bool {
        self.reference.is_none() || self.combine.contains(&Combine::Exact)
    }

    /// All cells, in the order of the document.
    pub fn cells(&self) -> Vec<CellName> {
        let mut all = Vec::new();
        for (b, by) in self.by.iter().enumerate() {
            for (s, &shards) in self.shards.iter().enumerate() {
                for repeat in 1..=self.repeats {
                    let exact = self.needs_exact() && b == 0 && s == 0;
                    all.push(CellName { by: by.clone(), shards, repeat, exact });
                }
            }
        }
        all
    }

    /// Computes all cells that are not kept yet, and says what they show.
    pub fn run(
        &self,
        file: &StudyFile,
        bench: &dyn Bench,
        kept: &dyn CellStore,
        watch: &dyn Watch,
    ) -> Result<Document> {
        self.check(file)?;
        let models: Vec<String> = file.study.models.iter().map(|m| m.name.clone()).collect();
        self.run_models(&models, bench, kept, watch)
    }

    /// The same for these models, of which only the bench knows more. What is to be swept is not checked.
    pub fn run_models(
        &self,
        models: &[String],
        bench: &dyn Bench,
        kept: &dyn CellStore,
        watch: &dyn Watch,
    ) -> Result<Document> {
        let names = self.cells();
        let mut found: Vec<Option<Measured>> = Vec::new();
        for name in &names {
            let cell = kept.get(name)?;
            if cell.as_ref().is_some_and(|(cell, _)| !cell.is_sound(models.len())) {
                return Err(Error::input(format!(
                    "the cell {} that was kept holds what no sweep of {} models finds; remove it, and it is computed again",
                    name.stem(),
                    models.len()
                )));
            }
            found.push(cell.filter(|(cell, _)| self.is_answered_by(name, cell)));
        }
        let open: Vec<usize> = (0..names.len()).filter(|&k| found[k].is_none()).collect();
        let done = AtomicUsize::new(names.len() - open.len());
        watch.cells(done.load(Ordering::Relaxed), names.len());
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let results: Mutex<Vec<(usize, Result<Measured>)>> = Mutex::default();
        let worker = || {
            while !failed.load(Ordering::Relaxed) {
                let Some(&k) = open.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                let methods = self.methods(&names[k]);
                let cell = bench.measure(&names[k], &methods, self.votes, watch.within()).and_then(
                    |(cell, time)| {
                        kept.put(&names[k], &cell, time)?;
                        Ok((cell, time))
                    },
                );
                failed.fetch_or(cell.is_err(), Ordering::Relaxed);
                watch.cells(done.fetch_add(1, Ordering::Relaxed) + 1, names.len());
                results.lock().expect("no thread panics while it holds it").push((k, cell));
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..bench.at_once().clamp(1, open.len().max(1)) {
                scope.spawn(worker);
            }
        });
        let mut results = results.into_inner().expect("no thread panics while it holds it");
        // Of several errors the first cell's is told, whoever met it first.
        results.sort_by_key(|(k, _)| *k);
        for (k, result) in results {
            found[k] = Some(result?);
        }
        let (cells, times): (Vec<Cell>, Vec<Option<CellTime>>) =
            found.into_iter().flatten().unzip();
        Document::new(self, models, cells, times)
    }

    /// The combinations that a cell is computed by.
    fn methods(&self, name: &CellName) -> Vec<Combine> {
        let mut methods: Vec<Combine> =
            self.combine.iter().copied().filter(|c| *c != Combine::Exact).collect();
        if name.exact {
            methods.push(Combine::Exact);
        }
        methods
    }
}
