//! Data at hand: read, checked and split.

use super::outline::{Outline, at_formula};
use crate::compare::PartitionReport;
use crate::data::read::{Wanted, column_names, find_files, read_table};
use crate::data::split::{Partition, Strata, split};
use crate::data::{Request, Table, Terms, agree_or_blame, describe};
use crate::study::{Missing, SplitBy, Study};
use crate::{Error, Level, Place, Result, Warning};
use std::collections::BTreeSet;
use std::path::PathBuf;

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
    pub shards: Vec<Table>,
    /// What the user should know before anything has run.
    pub warnings: Vec<Warning>,
}

impl Gathered {
    /// Reads, checks and splits a study's data.
    pub fn new(study: Study) -> Result<Gathered> {
        let (mut files, mut names) = (Vec::new(), Vec::new());
        let outline = Outline::new(study, |study| {
            files = find_files(&study.data.folder, &study.data.path)?;
            names = column_names(&files[0], &study.data.text_format())?;
            Ok(names.clone())
        })?;
        let Complete { table, dropped, mut warnings } = read_complete(&outline, &files)?;
        let study = &outline.study;
        warnings.splice(0..0, study.notes.iter().cloned());
        let partition = partition(study, &table, &outline.terms)?;
        let rows = table.rows();
        let shards = table.deal(&partition.assignment, partition.shards);
        let partition = PartitionReport {
            shards: partition.shards,
            rows,
            dropped,
            by: study.split.by.to_string(),
            seed: study.split.seed,
            hash: partition.hash,
        };
        Ok(Gathered { outline, files, names, partition, shards, warnings })
    }
}

/// The rows of some files that count.
pub(crate) struct Complete {
    pub table: Table,
    /// How many rows were left out because a value is missing.
    pub dropped: usize,
    pub warnings: Vec<Warning>,
}

/// Reads the columns that a study needs, and deals with missing values as it says.
pub(crate) fn read_complete(outline: &Outline, files: &[PathBuf]) -> Result<Complete> {
    let study = &outline.study;
    let read = read_table(files, &study.data.text_format(), &Wanted::Named(&outline.columns()))?;
    let mut warnings = Vec::new();
    if read.comments > 0 {
        let message = format!("comment lines passed over after the header: {}", read.comments);
        let advice = "set comment = \"\" under [data] if they are data";
        warnings.push(
            Warning::new(Level::Note, "comments", message, advice).value(read.comments as f64),
        );
    }
    let (table, dropped) = complete(study, read.table)?;
    if dropped > 0 {
        let message = format!(
            "{dropped} {} left out because a value is missing",
            if dropped == 1 { "row was" } else { "rows were" }
        );
        let advice = "set missing = \"error\" under [data] to see where";
        warnings
            .push(Warning::new(Level::Note, "rows-dropped", message, advice).value(dropped as f64));
    }
    Ok(Complete { table, dropped, warnings })
}

fn complete(study: &Study, table: Table) -> Result<(Table, usize)> {
    if study.data.missing == Missing::Error {
        table.refuse_missing()?;
    }
    let Some(rows) = table.complete_rows() else { return Ok((table, 0)) };
    let dropped = table.rows() - rows.len();
    if rows.is_empty() {
        let message = format!(
            "no row is complete: all {dropped} rows miss a value in a column that the study uses ({}); leave such a column out of the formulas, or fill the values in",
            missing_counts(&table)?
        );
        let files = &table.origin().files;
        let place = files.first().map(|(file, _)| Place::file(file)).unwrap_or_default();
        return Err(Error::input_at(place, message));
    }
    Ok((table.select(&rows), dropped))
}

/// `x: 12, z: 3`: the columns that miss most values, and how many.
fn missing_counts(table: &Table) -> Result<String> {
    let mut counts = Vec::new();
    for name in table.names() {
        let column = table.column(name)?;
        let missing = (0..table.rows()).filter(|&row| column.is_missing(row)).count();
        if missing > 0 {
            counts.push((missing, name));
        }
    }
    counts.sort_by_key(|(missing, _)| std::cmp::Reverse(*missing));
    let more = if counts.len() > 5 { ", …" } else { "" };
    let shown: Vec<String> =
        counts.iter().take(5).map(|(n, name)| format!("`{name}`: {n}")).collect();
    Ok(shown.join(", ") + more)
}

fn partition(study: &Study, table: &Table, terms: &[Terms]) -> Result<Partition> {
    let place = |error: Error| match error {
        Error::Input { place, message } if place == Place::default() => {
            Error::input_at(study.place("split.shards"), format!("[split]: {message}"))
        }
        other => other,
    };
    if !matches!(study.split.by, SplitBy::Outcome | SplitBy::Cluster) {
        return split(table, &study.split, &Strata::default()).map_err(place);
    }
    // Stratified splits look at outcome and predictors as the models see them.
    let weights = study.data.weights.as_deref();
    let mut ask = |requests: &[Request]| Ok(vec![describe(table, weights, requests)?]);
    let blame = |i: usize, error| at_formula(error, study, &study.models[i]);
    let recipes = agree_or_blame(terms, weights, &mut ask, &blame)?;
    let mut seen = BTreeSet::new();
    let mut predictors: Vec<Vec<f64>> = Vec::new();
    let mut outcome = Vec::new();
    for recipe in &recipes {
        let design = recipe.design(table)?;
        outcome = design.response;
        for (column, values) in recipe.columns.iter().zip(design.columns) {
            if seen.insert(column.name.clone()) {
                predictors.push(values);
            }
        }
    }
    let predictors = predictors.iter().map(Vec::as_slice).collect();
    split(table, &study.split, &Strata { outcome: &outcome, predictors }).map_err(place)
}
