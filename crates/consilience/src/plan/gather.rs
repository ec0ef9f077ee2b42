//! Data at hand: read, checked and split.

use super::Plan;
use super::open::OpenTimes;
use super::outline::{Outline, at_formula};
use super::room::{Room, bytes_in_words};
use crate::compare::PartitionReport;
use crate::data::misread::{Misread, suspects};
use crate::data::read::{Bound, Reader, Wanted, column_names};
use crate::data::sentinel::Sentinels;
use crate::data::split::{Partition, SplitRule, Strata, split};
use crate::data::{
    Codebook, Expr, Function, Gathering, Request, Scratch, ShardData, Table, Terms, agree_or_blame,
    describe,
};
use crate::draft::file_hash_until;
use crate::engine::{Clock, Observer};
use crate::halt::{Halt, go_on};
use crate::study::{Missing, SplitBy, Study, StudyFile};
use crate::{Error, Level, Place, Result, Warning};
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// Rows that are looked at in one go.
const BATCH: usize = 1 << 16;

/// A study with its data read, to be dealt out to shards as often as one likes.
#[derive(Debug, Clone)]
pub struct GatheredRows {
    pub(super) outline: Outline,
    /// None, if the rows came as a table in memory.
    pub(super) files: Vec<PathBuf>,
    pub(super) names: Vec<String>,
    pub(super) complete: Complete,
    /// Of how many rows of the files one is here.
    pub(super) thinned: usize,
    /// By which looking at all of them may be called off.
    pub(super) halt: Option<Halt>,
}

impl GatheredRows {
    /// Reads and checks a study's data files, on this many threads.
    pub fn read(
        study: impl Into<StudyFile>,
        threads: usize,
        room: &Room,
        observer: &dyn Observer,
    ) -> Result<GatheredRows> {
        let study = study.into();
        crate::engine::pool(threads)?.install(|| GatheredRows::new(study, room, observer))
    }

    fn new(study: StudyFile, room: &Room, observer: &dyn Observer) -> Result<GatheredRows> {
        let (mut files, mut names) = (Vec::new(), Vec::new());
        let outline = Outline::new(study, |file| {
            files = file.files()?;
            names = column_names(&files[0], &file.study.data.text_format())?;
            Ok(names.clone())
        })?;
        let complete = read_complete(&outline, &files, room, RowsOf::Study, observer)?;
        Ok(GatheredRows { outline, files, names, complete, thinned: 1, halt: room.halt.clone() })
    }

    /// The study and its formulas.
    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    /// The rows dealt out as the study says.
    fn gather(self, room: &Room) -> Result<Gathered> {
        let GatheredRows { outline, files, names, complete, .. } = self;
        let split = outline.study.split.rule();
        let by = split.by.to_string();
        let gathered = Gathered::split(outline, complete, &split, by, room)?;
        Ok(Gathered { files, names, ..gathered })
    }

    /// Every so many-th row alone.
    pub fn every(self, step: usize) -> Result<GatheredRows> {
        let table = self.complete.data.table()?;
        let rows: Vec<usize> = (0..table.rows()).step_by(step.max(1)).collect();
        let data = ShardData::from(table.select(&rows));
        let complete = Complete { data, ..self.complete };
        Ok(GatheredRows { complete, thinned: self.thinned * step.max(1), ..self })
    }

    /// What tells these rows from others: the hashes of their files, or of themselves where there are none.
    pub fn hashes(&self) -> Result<Vec<String>> {
        let halt = self.halt.as_ref();
        let hashes = self.files.iter().map(|file| file_hash_until(file, halt));
        let mut all = hashes.collect::<Result<Vec<String>>>()?;
        if self.files.is_empty() {
            all.push(self.complete.data.hash(halt)?);
        }
        if self.thinned > 1 {
            all.push(format!("every {}", self.thinned));
        }
        Ok(all)
    }

    /// The rows dealt out and the study's models settled on them, after this change to the study, which may not be
    /// about its data or models.
    pub fn plan(
        &self,
        change: impl FnOnce(&mut Study),
        threads: usize,
        room: &Room,
        clock: Option<Arc<dyn Clock>>,
        observer: &dyn Observer,
    ) -> Result<Plan> {
        let mut own = self.clone();
        change(&mut own.outline.study);
        let pool = crate::engine::pool(threads)?;
        let gathered = pool.install(|| own.gather(room))?;
        let plan = Plan::in_memory(gathered, pool, room, observer)?;
        Ok(match clock {
            Some(clock) => plan.with_clock(clock),
            None => plan,
        })
    }
}

/// A study with its data read and dealt out to shards.
#[derive(Debug)]
pub struct Gathered {
    /// The study and its formulas.
    pub outline: Outline,
    /// The data files.
    pub files: Vec<PathBuf>,
    /// The names of all columns of the data.
    pub names: Vec<String>,
    /// How the rows are split.
    pub partition: PartitionReport,
    /// Each shard's rows.
    pub shards: Vec<ShardData>,
    /// What the user should know before anything has run.
    pub warnings: Vec<Warning>,
}

impl Gathered {
    /// Reads, checks and splits a study's data files.
    pub fn new(
        study: impl Into<StudyFile>,
        room: &Room,
        observer: &dyn Observer,
    ) -> Result<Gathered> {
        GatheredRows::new(study.into(), room, observer)?.gather(room)
    }

    /// A study whose rows are elsewhere, split already as this says: tables with columns of these names. Only the shards
    /// of an engine have them ([`Plan::on`]).
    pub fn elsewhere(
        study: impl Into<StudyFile>,
        names: Vec<String>,
        partition: PartitionReport,
    ) -> Result<Gathered> {
        let outline = Outline::new(study, |_| Ok(names.clone()))?;
        let split = &outline.study.split;
        let fault = |key: &str, message: String| {
            Err(outline.lines.locate(Error::input_at(Place::key(key), message)))
        };
        let given = partition.shards;
        if let Some(wanted) = split.shards.filter(|wanted| *wanted != given) {
            return fault(
                "split.shards",
                format!(
                    "there are {given} shards already, and `split.shards` is not {given} but {wanted}; leave it out or say {given}"
                ),
            );
        }
        // Whoever split them by the study's own rule says so.
        let by = split.by.to_string();
        if !matches!(split.by, SplitBy::Random | SplitBy::File) && by != partition.by {
            return fault(
                "split.by",
                format!(
                    "`split.by` = \"{by}\" does not go with data that are split already; leave it out"
                ),
            );
        }
        let mut warnings = outline.notes.clone();
        warnings.extend((partition.dropped > 0).then(|| left_out(partition.dropped)));
        let (files, shards) = (Vec::new(), Vec::new());
        Ok(Gathered { outline, files, names, partition, shards, warnings })
    }

    /// Splits the rows that count.
    pub(super) fn split(
        outline: Outline,
        complete: Complete,
        split: &SplitRule,
        by: String,
        room: &Room,
    ) -> Result<Gathered> {
        let Complete { data, dropped, mut warnings } = complete;
        warnings.splice(0..0, outline.notes.iter().cloned());
        let partition = partition(&outline.study, split, &data, &outline.terms, room)
            .map_err(|error| outline.lines.locate(error))?;
        let rows = data.rows();
        let shards = deal(data, &partition, room)?;
        let partition = PartitionReport {
            shards: partition.shards,
            rows,
            dropped,
            by,
            seed: split.seed,
            hash: partition.hash,
            names: partition.names,
        };
        let (files, names) = (Vec::new(), Vec::new());
        Ok(Gathered { outline, files, names, partition, shards, warnings })
    }
}

/// Each shard's rows: on disk if all of them are.
fn deal(data: ShardData, partition: &Partition, room: &Room) -> Result<Vec<ShardData>> {
    let (assignment, shards) = (&partition.assignment, partition.shards);
    match data {
        ShardData::Memory(table) => {
            let table = Arc::unwrap_or_clone(table);
            Ok(table.deal(assignment, shards).into_iter().map(ShardData::from).collect())
        }
        ShardData::Scratch(whole) => {
            let mut scratch = Scratch::new(&room.folder, shards)?;
            for rows in ShardData::Scratch(whole.clone()).batches(BATCH) {
                scratch.push(whole.batch(rows.clone())?, &assignment[rows])?;
            }
            Ok(scratch.finish()?.into_iter().map(ShardData::Scratch).collect())
        }
    }
}

/// The rows of some files that count.
#[derive(Debug, Clone)]
pub(crate) struct Complete {
    pub data: ShardData,
    /// How many rows were left out because a value is missing.
    pub dropped: usize,
    pub warnings: Vec<Warning>,
}

/// Whose rows are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowsOf {
    /// All of the study's.
    Study,
    /// A site's: what many rows would say, these few need not.
    Site,
}

/// Reads the columns that a study needs, and deals with missing values as it says.
pub(crate) fn read_complete(
    outline: &Outline,
    files: &[PathBuf],
    room: &Room,
    of: RowsOf,
    observer: &dyn Observer,
) -> Result<Complete> {
    let (format, wanted) = (outline.study.data.text_format(), outline.columns());
    let reader = Reader {
        cache: room.cache.as_deref(),
        bound: room.is_bounded().then_some(Bound { words: room.rows, folder: &room.folder }),
        watch: &|event| observer.reading(event),
        halt: room.halt.as_ref(),
        ..Reader::new(&format)
    };
    let place = files.first().map(Place::file).unwrap_or_default();
    complete(outline, room, place, of, |rows| {
        if room.is_bounded() {
            let source = reader.source(files, &Wanted::Named(&wanted))?;
            source.blocks(BATCH).try_for_each(|block| rows.take(block?))?;
            Ok(source.comments())
        } else {
            let read = reader.table(files, &Wanted::Named(&wanted))?;
            rows.take(read.table)?;
            Ok(read.comments)
        }
    })
}

/// Deals with missing values as a study says. `read` hands on rows and says how many comment lines it
/// passed over; `place` is where all of them come from.
pub(super) fn complete(
    outline: &Outline,
    room: &Room,
    place: Place,
    of: RowsOf,
    read: impl FnOnce(&mut CompleteRows) -> Result<u64>,
) -> Result<Complete> {
    let mut rows = CompleteRows::new(outline, room);
    let comments = read(&mut rows)?;
    go_on(room.halt.as_ref())?;
    let mut warnings = Vec::new();
    if comments > 0 {
        let message = format!("comment lines passed over after the header: {comments}");
        let advice = "set comment = \"\" under [data] if they are data";
        warnings
            .push(Warning::new(Level::Note, "comments", message, advice).value(comments as f64));
    }
    let mut misread = rows.misread.take().unwrap_or_default();
    if of == RowsOf::Study {
        misread.iter_mut().for_each(|one| one.judge(rows.seen));
    }
    refuse_misread(outline, misread)?;
    warnings.extend(rows.maybe_missing());
    let (data, dropped) = rows.finish(place)?;
    if dropped > 0 {
        warnings.push(left_out(dropped));
    }
    Ok(Complete { data, dropped, warnings })
}

/// The note that so many rows do not count.
fn left_out(dropped: usize) -> Warning {
    let message = format!(
        "{dropped} {} left out because a value is missing",
        if dropped == 1 { "row was" } else { "rows were" }
    );
    let advice = "set missing = \"error\" under [data] to see where";
    Warning::new(Level::Note, "rows-dropped", message, advice).value(dropped as f64)
}

/// Complete rows while they come.
pub(super) struct CompleteRows<'a> {
    study: &'a Study,
    /// The outcome, if a part of it may be missing.
    open: Option<OpenTimes>,
    rows: Gathering<'a>,
    dropped: usize,
    /// How many rows there were, complete or not.
    seen: usize,
    /// How many values each column misses.
    missing: Vec<(String, usize)>,
    /// Columns that seem to be of numbers, and are text; known from the first rows on, as levels are.
    misread: Option<Vec<Misread>>,
    /// What may stand for missing values in each column.
    sentinels: Vec<(String, Sentinels)>,
}

impl<'a> CompleteRows<'a> {
    fn new(outline: &'a Outline, room: &'a Room) -> CompleteRows<'a> {
        let rows = Gathering::new(room.rows, &room.folder);
        let (study, open) = (&outline.study, OpenTimes::of(outline));
        let (missing, sentinels) = (Vec::new(), Vec::new());
        CompleteRows { study, open, rows, dropped: 0, seen: 0, missing, misread: None, sentinels }
    }

    pub(super) fn take(&mut self, mut block: Table) -> Result<()> {
        if let Some(open) = &self.open {
            open.fill(&mut block)?;
        }
        let comma = self.study.data.decimal == ',';
        let misread = self.misread.get_or_insert_with(|| suspects(&block, comma));
        misread.iter_mut().for_each(|one| one.look(&block));
        self.seen += block.rows();
        self.look_for_sentinels(&block);
        match block.complete_rows() {
            None => self.rows.take(block),
            Some(rows) => {
                if self.study.data.missing == Missing::Error {
                    block.refuse_missing()?;
                }
                self.dropped += block.rows() - rows.len();
                self.count_missing(&block);
                self.rows.take(block.select(&rows))
            }
        }
    }

    fn look_for_sentinels(&mut self, block: &Table) {
        if self.sentinels.is_empty() {
            let new = |name: &String| (name.clone(), Sentinels::default());
            self.sentinels = block.names().iter().map(new).collect();
        }
        let columns = self.sentinels.par_iter_mut().zip(block.columns());
        columns.for_each(|((_, seen), column)| seen.take(column));
    }

    /// A caution for every number that may stand for a missing value.
    fn maybe_missing(&self) -> Vec<Warning> {
        let data = &self.study.data;
        let columns = self.sentinels.iter().filter(|(name, _)| data.weights.as_ref() != Some(name));
        let found =
            columns.flat_map(|(name, seen)| seen.found().into_iter().map(move |f| (name, f)));
        let caution = |(name, (code, count)): (&String, (f64, u64))| {
            let rows = if count == 1 { "row" } else { "rows" };
            let message = format!(
                "the column `{name}` is {code} in {count} {rows}, far from all of its other values"
            );
            let advice =
                format!("write na = [\"{code}\"] under [data] if that stands for a missing value");
            Warning::new(Level::Caution, "maybe-missing", message, advice).value(count as f64)
        };
        found.map(caution).collect()
    }

    fn count_missing(&mut self, block: &Table) {
        if self.missing.is_empty() {
            self.missing = block.names().iter().map(|name| (name.clone(), 0)).collect();
        }
        for ((_, count), column) in self.missing.iter_mut().zip(block.columns()) {
            *count += (0..block.rows()).filter(|&row| column.is_missing(row)).count();
        }
    }

    fn finish(self, place: Place) -> Result<(ShardData, usize)> {
        let data = self.rows.finish()?;
        if data.rows() == 0 && self.dropped > 0 {
            let message = format!(
                "no row is complete: all {} rows miss a value in a column that the study uses ({}); leave such a column out of the formulas, or fill the values in",
                self.dropped,
                missing_counts(self.missing)
            );
            return Err(Error::input_at(place, message));
        }
        Ok((data, self.dropped))
    }
}

/// Columns of text that seem to be of numbers are an error where formulas take them as they are, unless `[schema]` states
/// their levels. Few numbers may be categories: those are left to whoever agrees on columns, unless a formula computes
/// with them.
fn refuse_misread(outline: &Outline, misread: Vec<Misread>) -> Result<()> {
    use Function::{Abs, Exp, Log, Log2, Log10, Scale, Sqrt};
    let (mut taken, mut computed) = (BTreeSet::new(), BTreeSet::new());
    for terms in &outline.terms {
        for expr in terms.variables.iter().chain([&terms.response]).chain(&terms.offsets) {
            let inner = match expr {
                Expr::Column(name) => {
                    taken.insert(name.clone());
                    continue;
                }
                Expr::Call(Log | Log2 | Log10 | Sqrt | Exp | Abs | Scale, inner) => inner,
                Expr::Poly(inner, _) => inner,
                _ => continue,
            };
            if let Expr::Column(name) = &**inner {
                computed.insert(name.clone());
            }
        }
    }
    let stated =
        |name: &str| outline.study.schema.0.get(name).is_some_and(|entry| entry.levels.is_some());
    let is_wrong = |one: &Misread| {
        computed.contains(&one.column) || one.certain && taken.contains(&one.column)
    };
    match misread.into_iter().find(|one| is_wrong(one) && !stated(&one.column)) {
        Some(one) => Err(one.error()),
        None => Ok(()),
    }
}

/// `x: 12, z: 3`: the columns that miss most values, and how many.
fn missing_counts(mut counts: Vec<(String, usize)>) -> String {
    counts.retain(|(_, missing)| *missing > 0);
    counts.sort_by_key(|(_, missing)| std::cmp::Reverse(*missing));
    let more = if counts.len() > 5 { ", …" } else { "" };
    let shown: Vec<String> =
        counts.iter().take(5).map(|(name, n)| format!("`{name}`: {n}")).collect();
    shown.join(", ") + more
}

fn partition(
    study: &Study,
    rule: &SplitRule,
    data: &ShardData,
    terms: &[Terms],
    room: &Room,
) -> Result<Partition> {
    let place = |error: Error| match error {
        Error::Input { place, message } if place == Place::default() => {
            Error::input_at(Place::key("split.shards"), format!("[split]: {message}"))
        }
        other => other,
    };
    let table = match &rule.by {
        SplitBy::Column(name) => data.narrow(Some(name))?,
        _ => data.narrow(None)?,
    };
    let by_cluster = rule.by == SplitBy::Cluster;
    if !by_cluster && rule.by != SplitBy::Outcome {
        return split(&table, rule, &Strata::default()).map_err(place);
    }
    // Stratified splits look at outcome and predictors as the models see them.
    let weights = study.data.weights.as_deref();
    let mut ask = |requests: &[Request]| Ok(vec![describe(data, weights, requests)?]);
    let blame = |i: usize, error| at_formula(error, study, &study.specs()[i]);
    // By the rows themselves, so that a codebook leaves the split as it is.
    let book = Codebook::default();
    let recipes = agree_or_blame(terms, weights, &book, &mut ask, &blame)?;
    let mut seen = BTreeSet::new();
    let mut predictors: Vec<Vec<f64>> = Vec::new();
    let mut outcome = Vec::new();
    for recipe in &recipes {
        let fresh: Vec<bool> = recipe.columns.iter().map(|c| seen.insert(c.name.clone())).collect();
        let first = predictors.len();
        if by_cluster {
            predictors.extend(fresh.iter().filter(|fresh| **fresh).map(|_| Vec::new()));
            let bytes = predictors.len().saturating_mul(data.rows()).saturating_mul(8);
            if bytes > room.rows {
                let message = format!(
                    "[split]: by = \"cluster\" looks at all predictors at once, {} of them, which is more than the memory allowed has room for; split by = \"random\" or \"outcome\", or allow more with --memory",
                    bytes_in_words(bytes)
                );
                return Err(Error::input_at(Place::key("split.by"), message));
            }
        }
        outcome.clear();
        for rows in data.batches(BATCH) {
            let design = recipe.design(&*data.batch(rows)?)?;
            outcome.extend(design.response);
            let own = design.columns.into_iter().zip(&fresh).filter(|(_, fresh)| **fresh);
            for (all, (values, _)) in predictors[first..].iter_mut().zip(own) {
                all.extend(values);
            }
        }
    }
    let predictors = predictors.iter().map(Vec::as_slice).collect();
    split(&table, rule, &Strata { outcome: &outcome, predictors }).map_err(place)
}
