//! Dealing rows out to shards.

use super::eval::truth_name;
use super::kmeans::{ClusterOn, cluster};
use super::number::level_name;
use super::{Column, SplitBy, Table};
use crate::math::{Stream, stream};
use crate::{Error, Result};
use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// How many rows each shard gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Sizes {
    /// As equal as can be.
    #[default]
    Equal,
    /// As it falls: every row goes to a shard at random, whatever the others do.
    Multinomial,
}

/// How rows are dealt out.
#[derive(Debug, Clone, PartialEq)]
pub struct SplitRule {
    /// What decides which shard a row belongs to.
    pub by: SplitBy,
    /// How many shards: 1 if none are named, unless the data say so themselves.
    pub shards: Option<usize>,
    /// The seed of the split.
    pub seed: u64,
    /// How many rows each shard gets (only for [`SplitBy::Random`]).
    pub sizes: Sizes,
    /// How many clusters (only for [`SplitBy::Cluster`]).
    pub clusters: usize,
    /// In which units these are found.
    pub cluster_on: ClusterOn,
}

/// Which shard every row belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct Partition {
    /// The shard's number per row.
    pub assignment: Vec<u32>,
    /// The number of shards; each has at least one row.
    pub shards: usize,
    /// What the shards are called, where their rows have something in common: a file, or a column's value.
    pub names: Option<Vec<String>>,
    /// A name of this partition: two runs with the same one split the same rows the same way.
    pub hash: String,
}

/// What a stratified split looks at.
#[derive(Debug, Clone, Default)]
pub struct Strata<'a> {
    /// The outcome per row.
    pub outcome: &'a [f64],
    /// Columns of predictors.
    pub predictors: Vec<&'a [f64]>,
}

/// Splits a table. `strata` is only looked at by the split methods that need it.
pub fn split(table: &Table, rule: &SplitRule, strata: &Strata) -> Result<Partition> {
    let rows = table.rows();
    let mut rng = stream(rule.seed, 0, 0, "split");
    let (assignment, shards) = match &rule.by {
        SplitBy::File => by_file(table)?,
        SplitBy::Column(name) => by_value(table.column(name)?),
        by => {
            let shards = rule.shards.unwrap_or(1);
            if shards > rows {
                return Err(Error::input(format!(
                    "{shards} shards are more than the {rows} rows; ask for fewer"
                )));
            }
            let labels = match by {
                SplitBy::Outcome => outcome_strata(strata.outcome),
                SplitBy::Cluster => {
                    let clusters =
                        cluster(&strata.predictors, rows, rule.clusters, rule.cluster_on, &mut rng);
                    let classes = outcome_strata(strata.outcome);
                    clusters.iter().zip(classes).map(|(k, class)| k * 16 + class).collect()
                }
                _ => vec![0; rows],
            };
            let assignment = match rule.sizes {
                Sizes::Multinomial if *by == SplitBy::Random => toss(rows, shards, rule.seed)?,
                _ => deal(&labels, shards, &mut rng),
            };
            (assignment, shards)
        }
    };
    if let Some(wanted) = rule.shards.filter(|wanted| *wanted != shards) {
        return Err(Error::input(format!(
            "by = \"{}\" makes {shards} shard{} of these data, not {wanted}; leave `shards` out or say {shards}",
            rule.by,
            if shards == 1 { "" } else { "s" }
        )));
    }
    let hash = hash(&assignment, shards);
    let names = match &rule.by {
        SplitBy::File => Some(file_names(table)),
        SplitBy::Column(name) => Some(value_names(table.column(name)?, &assignment, shards)),
        _ => None,
    };
    Ok(Partition { assignment, shards, names, hash })
}

impl Partition {
    /// The rows of each shard, in the table's order.
    pub fn rows(&self) -> Vec<Vec<usize>> {
        let mut rows = vec![Vec::new(); self.shards];
        for (row, &shard) in self.assignment.iter().enumerate() {
            rows[shard as usize].push(row);
        }
        rows
    }
}

/// Deals rows out like cards, stratum after stratum, each shuffled: shards are of near-equal size,
/// and so is their part of every stratum.
fn deal(labels: &[u32], shards: usize, rng: &mut Stream) -> Vec<u32> {
    // Tables have fewer than 2³² rows: their numbers are kept as u32.
    let mut order: Vec<u32> = (0..labels.len() as u32).collect();
    order.shuffle(rng);
    if labels.windows(2).any(|pair| pair[0] != pair[1]) {
        order.sort_by_key(|&row| labels[row as usize]);
    }
    let mut assignment = vec![0; labels.len()];
    for rows in order.chunks(shards) {
        for (shard, &row) in (0..).zip(rows) {
            assignment[row as usize] = shard;
        }
    }
    assignment
}

/// Sends every row to a shard at random.
fn toss(rows: usize, shards: usize, seed: u64) -> Result<Vec<u32>> {
    let mut rng = stream(seed, 0, 0, "split multinomial");
    let mut empty = vec![true; shards];
    let mut toss = || {
        let shard = rng.random_range(0..shards as u32);
        empty[shard as usize] = false;
        shard
    };
    let assignment = (0..rows).map(|_| toss()).collect();
    let count = empty.iter().filter(|empty| **empty).count();
    match empty.iter().position(|empty| *empty) {
        None => Ok(assignment),
        Some(first) => Err(Error::input(format!(
            "with sizes = \"multinomial\" {count} of {shards} shards got none of the {rows} rows, shard {first} the first of them; ask for fewer shards, or write sizes = \"equal\""
        ))),
    }
}

/// The outcome's value where there are few of them, its decile otherwise.
fn outcome_strata(outcome: &[f64]) -> Vec<u32> {
    let mut sorted = outcome.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut cuts: Vec<f64> = sorted.clone();
    cuts.dedup();
    if cuts.len() > 10 {
        cuts = (0..10).map(|k| sorted[k * sorted.len() / 10]).collect();
        cuts.dedup();
    }
    outcome.iter().map(|y| cuts.partition_point(|cut| cut <= y) as u32).collect()
}

fn by_file(table: &Table) -> Result<(Vec<u32>, usize)> {
    let origin = table.origin();
    let assignment: Vec<u32> = origin.rows.iter().map(|(file, _)| *file).collect();
    for (k, (file, _)) in origin.files.iter().enumerate() {
        if !assignment.contains(&(k as u32)) {
            let message =
                "none of its rows is complete, so that no shard can be made of it; leave it out";
            return Err(Error::input(message).in_file(file));
        }
    }
    Ok((assignment, origin.files.len()))
}

/// The files' names, with their folders where names alone do not tell them apart.
fn file_names(table: &Table) -> Vec<String> {
    let paths: Vec<&std::path::Path> =
        table.origin().files.iter().map(|(file, _)| file.as_path()).collect();
    let short = |path: &&std::path::Path| {
        path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    };
    let names: Vec<String> = paths.iter().map(short).collect();
    let distinct: std::collections::HashSet<&String> = names.iter().collect();
    if distinct.len() == names.len() && !distinct.contains(&String::new()) {
        return names;
    }
    paths.iter().map(|path| path.display().to_string()).collect()
}

/// The values that the shards' rows have in common.
fn value_names(column: &Column, assignment: &[u32], shards: usize) -> Vec<String> {
    let mut names = vec![None; shards];
    for (row, &shard) in assignment.iter().enumerate() {
        let name = &mut names[shard as usize];
        if name.is_none() {
            *name = Some(match column {
                Column::Text { codes, levels } => levels[codes[row] as usize].clone(),
                Column::Logical(codes) => truth_name(codes[row] == 1).to_string(),
                Column::Number(values) => level_name(values[row]),
                Column::Single(values) => level_name(f64::from(values[row])),
            });
        }
    }
    names.into_iter().map(Option::unwrap_or_default).collect()
}

/// A shard per value: numbers in their order, text in the order of its bytes.
fn by_value(column: &Column) -> (Vec<u32>, usize) {
    fn rank<K: Ord + Clone>(keys: Vec<K>) -> (Vec<u32>, usize) {
        let mut distinct = keys.clone();
        distinct.sort();
        distinct.dedup();
        let place = |key: &K| distinct.binary_search(key).expect("it is among them") as u32;
        (keys.iter().map(place).collect(), distinct.len())
    }
    // Finite doubles sort like these integers once negative ones are turned round.
    let sortable = |v: f64| {
        let bits = (v + 0.0).to_bits() as i64;
        bits ^ (((bits >> 63) as u64) >> 1) as i64
    };
    match column {
        Column::Text { codes, levels } => {
            rank(codes.iter().map(|&c| levels[c as usize].as_str()).collect())
        }
        Column::Logical(codes) => rank(codes.clone()),
        Column::Number(values) => rank(values.iter().map(|&v| sortable(v)).collect()),
        Column::Single(values) => rank(values.iter().map(|&v| sortable(f64::from(v))).collect()),
    }
}

/// The name of a partition.
pub(crate) fn hash(assignment: &[u32], shards: usize) -> String {
    let mut hasher = Sha256::new();
    hasher.update((shards as u64).to_le_bytes());
    for shards in assignment.chunks(1 << 12) {
        let bytes: Vec<u8> = shards.iter().flat_map(|shard| shard.to_le_bytes()).collect();
        hasher.update(&bytes);
    }
    hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Origin;
    use std::sync::Arc;

    fn table(columns: Vec<(&str, Column)>, files: u32) -> Table {
        let rows = columns[0].1.len() as u32;
        let origin = Origin {
            files: Arc::new((0..files).map(|k| (format!("{k}.csv").into(), true)).collect()),
            rows: (0..rows).map(|r| (r % files, r + 2)).collect(),
        };
        Table::new(columns.into_iter().map(|(n, c)| (n.to_string(), c)).collect(), origin)
    }

    fn spec(by: SplitBy, shards: Option<usize>) -> SplitRule {
        SplitRule {
            by,
            shards,
            seed: 1,
            sizes: Sizes::Equal,
            clusters: 10,
            cluster_on: ClusterOn::Scaled,
        }
    }

    fn sizes(partition: &Partition) -> Vec<usize> {
        partition.rows().iter().map(Vec::len).collect()
    }

    #[test]
    fn random_shards_are_of_near_equal_size_and_follow_the_seed() {
        let data = table(vec![("x", Column::Number((0..103).map(f64::from).collect()))], 1);
        let first = split(&data, &spec(SplitBy::Random, Some(10)), &Strata::default()).unwrap();
        assert!(sizes(&first).iter().all(|&n| n == 10 || n == 11));
        let again = split(&data, &spec(SplitBy::Random, Some(10)), &Strata::default()).unwrap();
        assert_eq!(first, again);
        let other = SplitRule { seed: 2, ..spec(SplitBy::Random, Some(10)) };
        let other = split(&data, &other, &Strata::default()).unwrap();
        assert_ne!(first.hash, other.hash);
    }

    /// Over seeds 1…400 the sizes are those of a multinomial law: per seed, Σ (n_s − n/S)²/(n/S) is χ² with S − 1
    /// degrees of freedom; the sum of all is near normal.
    #[test]
    fn multinomial_sizes_have_their_law() {
        let (rows, shards, seeds) = (3000, 8, 400);
        let data = table(vec![("x", Column::Number(vec![0.0; rows]))], 1);
        let rule = SplitRule { sizes: Sizes::Multinomial, ..spec(SplitBy::Random, Some(shards)) };
        let of =
            |seed| split(&data, &SplitRule { seed, ..rule.clone() }, &Strata::default()).unwrap();
        let expected = rows as f64 / shards as f64;
        let (mut sum, mut pairs) = (0.0, 0.0);
        for seed in 1..=seeds {
            let partition = of(seed);
            assert_eq!(partition, of(seed));
            let sizes = sizes(&partition);
            sum += sizes.iter().map(|&n| (n as f64 - expected).powi(2) / expected).sum::<f64>();
            // Rows do not know of each other: neighbours meet on one shard as often as any two.
            let meet = partition.assignment.windows(2).filter(|pair| pair[0] == pair[1]).count();
            pairs += meet as f64;
        }
        let freedom = (shards - 1) as f64 * seeds as f64;
        let z = (sum - freedom) / (2.0 * freedom).sqrt();
        assert!(z.abs() < 4.0, "z = {z}");
        let (n, p) = ((rows - 1) as f64 * seeds as f64, 1.0 / shards as f64);
        let z = (pairs - n * p) / (n * p * (1.0 - p)).sqrt();
        assert!(z.abs() < 4.0, "z = {z}");
        assert_ne!(of(1).hash, of(2).hash);
    }

    #[test]
    fn a_shard_without_rows_is_an_error() {
        let data = table(vec![("x", Column::Number(vec![1.0; 20]))], 1);
        let rule = SplitRule { sizes: Sizes::Multinomial, ..spec(SplitBy::Random, Some(20)) };
        // The chance that all 20 get one is 20!/20²⁰, about 2 in 10⁸.
        let error = split(&data, &rule, &Strata::default()).unwrap_err().to_string();
        for part in ["of 20 shards got none", "fewer shards", "\"equal\""] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn strata_are_spread_evenly() {
        let y: Vec<f64> = (0..1000).map(|i| f64::from(i % 10 == 0)).collect();
        let data = table(vec![("y", Column::Number(y.clone()))], 1);
        let strata = Strata { outcome: &y, predictors: vec![&y] };
        for by in [SplitBy::Outcome, SplitBy::Cluster] {
            let partition = split(&data, &spec(by, Some(20)), &strata).unwrap();
            assert!(sizes(&partition).iter().all(|&n| n == 50));
            for rows in partition.rows() {
                assert_eq!(rows.iter().filter(|&&r| y[r] == 1.0).count(), 5);
            }
        }
    }

    #[test]
    fn a_numeric_outcome_is_spread_by_deciles() {
        let y: Vec<f64> = (0..1000).map(|i| f64::from(i).sqrt()).collect();
        let strata = outcome_strata(&y);
        for stratum in 1..=10 {
            assert_eq!(strata.iter().filter(|&&s| s == stratum).count(), 100);
        }
    }

    #[test]
    fn files_and_values_fix_the_shards() {
        let text = Column::Text {
            codes: vec![1, 0, 2, 1, 0, 0],
            levels: Arc::new(vec!["b".into(), "a".into(), "c".into()]),
        };
        let number = Column::Number(vec![3.0, -1.0, 0.0, -2.0, 3.0, -0.0]);
        let data = table(vec![("t", text), ("v", number)], 2);
        let of = |by| split(&data, &spec(by, None), &Strata::default()).unwrap().assignment;
        assert_eq!(of(SplitBy::File), [0, 1, 0, 1, 0, 1]);
        assert_eq!(of(SplitBy::Column("t".into())), [0, 1, 2, 0, 1, 1]);
        assert_eq!(of(SplitBy::Column("v".into())), [3, 1, 2, 0, 3, 2]);
        let wrong = split(&data, &spec(SplitBy::File, Some(5)), &Strata::default());
        assert!(wrong.unwrap_err().to_string().contains("makes 2 shards"));
    }

    #[test]
    fn more_shards_than_rows_is_an_error() {
        let data = table(vec![("x", Column::Number(vec![1.0, 2.0]))], 1);
        let error = split(&data, &spec(SplitBy::Random, Some(3)), &Strata::default()).unwrap_err();
        assert!(
            error.is_input() && error.to_string().contains("3 shards are more than the 2 rows")
        );
    }
}
