//! What shards are asked about their rows before a design can be agreed on.

use super::eval::{ExprValues, truth_name};
use super::expr::Expr;
use super::facts::{ColumnFact, Fact, GramFact, LevelCount, Levels, MAX_LEVELS, Moments, Word};
use super::number::{level_name, parse_number, r_number};
use super::poly::chebyshev;
use super::shard_data::ShardData;
use super::table::Table;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// A question to a shard. The expressions hold no open `scale()`, `poly()` or `factor()`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// What a column holds; answered by [`Fact::Column`].
    Column(String),
    /// The distinct values of an expression; answered by [`Fact::Levels`].
    Levels(Expr),
    /// The spread of an expression; answered by [`Fact::Moments`].
    Moments(Expr),
    /// Sums of Chebyshev polynomials of an expression; answered by [`Fact::Gram`].
    Gram {
        /// The expression.
        expr: Expr,
        /// The degree of the polynomials wanted in the end.
        degree: u32,
        /// The least value over all shards.
        min: f64,
        /// The greatest value over all shards.
        max: f64,
    },
}

impl Request {
    /// What it is about, as formulas write it.
    pub(crate) fn subject(&self) -> String {
        match self {
            Request::Column(name) => Expr::Column(name.clone()).to_string(),
            Request::Levels(expr) | Request::Moments(expr) | Request::Gram { expr, .. } => {
                expr.to_string()
            }
        }
    }
}

/// Rows that are described in one go.
const BATCH: usize = 1 << 18;

/// A shard's answers about its rows, one per request. `weights` names the column of weights.
pub fn describe(
    data: &ShardData,
    weights: Option<&str>,
    requests: &[Request],
) -> Result<Vec<Fact>> {
    let mut all: Option<Vec<Fact>> = None;
    for rows in data.batches(BATCH) {
        let facts = describe_table(&*data.batch(rows)?, weights, requests)?;
        all = Some(match all {
            None => facts,
            Some(all) => {
                let pairs = all.into_iter().zip(facts);
                pairs.map(|(known, more)| known.merge(more)).collect::<Result<_>>()?
            }
        });
    }
    Ok(all.unwrap_or_default())
}

fn describe_table(table: &Table, weights: Option<&str>, requests: &[Request]) -> Result<Vec<Fact>> {
    let weights = weights.map(|name| row_weights(table, name)).transpose()?;
    let weights = weights.as_deref();
    requests.iter().map(|request| answer(table, weights, request)).collect()
}

/// The weights of a table's rows: whole numbers from 0 up, else an error with its place.
pub(crate) fn row_weights(table: &Table, name: &str) -> Result<Vec<f64>> {
    let weights = Expr::Column(name.to_string()).numbers(table).map_err(|error| match error {
        // The advice there is on formulas.
        Error::Input { place, .. } if place.column.is_some() => Error::input_at(
            place,
            "this is no number, but the column gives the rows' weights; mend the value, or name another column under `data.weights`",
        ),
        other => other,
    })?;
    // Above 2^53 whole numbers are no longer told apart.
    let fine = |w: f64| w.fract() == 0.0 && (0.0..=9e15).contains(&w);
    match weights.iter().position(|&w| !fine(w)) {
        None => Ok(weights),
        Some(row) => Err(Error::input_at(
            table.place(row, Some(name)),
            format!(
                "the weight is {}; weights count rows and must be whole numbers from 0 up",
                r_number(weights[row])
            ),
        )),
    }
}

fn answer(table: &Table, weights: Option<&[f64]>, request: &Request) -> Result<Fact> {
    Ok(match request {
        Request::Column(name) => Fact::Column(column(table, weights, name)?),
        Request::Levels(expr) => Fact::Levels(levels(expr.values(table)?, weights, table.rows())),
        Request::Moments(expr) => Fact::Moments(Moments::of(&expr.numbers(table)?, weights)),
        Request::Gram { expr, degree, min, max } => {
            Fact::Gram(gram(&expr.numbers(table)?, weights, *degree as usize, *min, *max))
        }
    })
}

fn column(table: &Table, weights: Option<&[f64]>, name: &str) -> Result<ColumnFact> {
    let counts = |row: usize| weights.is_none_or(|w| w[row] > 0.0);
    let values = Expr::Column(name.to_string());
    let values = values.values(table)?;
    let mut fact = ColumnFact::default();
    let word = |row: usize, value: &str| Word {
        place: table.place(row, Some(name)).to_string(),
        value: value.to_string(),
    };
    match &values {
        ExprValues::Number(vector) => {
            let numbers = vector.clone().into_vec(table.rows());
            fact.numbers = Moments::of(&numbers, weights);
            fact.unlisted = fact.numbers.rows;
            return Ok(fact);
        }
        ExprValues::Logical(vector) => {
            let rows = || (0..table.rows()).filter(|&row| counts(row));
            fact.words = rows().count() as u64;
            fact.logical = fact.words;
            fact.first_word = rows().next().map(|row| word(row, truth_name(vector.at(row) == 1.0)));
        }
        ExprValues::Text { codes, levels, .. } => {
            let spelled: Vec<Option<f64>> = levels.iter().map(|l| parse_number(l)).collect();
            let (mut numbers, mut their_weights) = (Vec::new(), Vec::new());
            for row in (0..table.rows()).filter(|&row| counts(row)) {
                let code = codes[row] as usize;
                match spelled[code] {
                    Some(number) => {
                        numbers.push(number);
                        their_weights.push(weights.map_or(1.0, |w| w[row]));
                    }
                    None => {
                        fact.words += 1;
                        fact.first_word.get_or_insert_with(|| word(row, &levels[code]));
                    }
                }
            }
            fact.numbers = Moments::of(&numbers, Some(&their_weights));
        }
        ExprValues::Quote(_) => unreachable!("a column is no text in quotes"),
    }
    fact.levels = levels(values, weights, table.rows());
    Ok(fact)
}

/// The distinct values among the rows that count.
fn levels(values: ExprValues<'_>, weights: Option<&[f64]>, rows: usize) -> Levels {
    let weight = |row: usize| weights.map_or(1.0, |w| w[row]);
    let mut tally = LevelTally::default();
    match values {
        ExprValues::Number(vector) => {
            // Numbers are formatted once per distinct value, not once per row.
            let mut seen: HashMap<u64, usize> = HashMap::new();
            for row in (0..rows).filter(|&row| weight(row) > 0.0) {
                let value = vector.at(row) + 0.0;
                if let Some(&at) = seen.get(&value.to_bits()) {
                    tally.count(at, weight(row));
                } else if tally.list.len() <= MAX_LEVELS {
                    let at = tally.find(level_name(value), || LevelCount::number(value));
                    seen.insert(value.to_bits(), at);
                    tally.count(at, weight(row));
                }
            }
        }
        ExprValues::Logical(vector) => {
            for row in (0..rows).filter(|&row| weight(row) > 0.0) {
                let name = truth_name(vector.at(row) != 0.0);
                let at = tally.find(name.to_string(), || LevelCount::word(name));
                tally.count(at, weight(row));
            }
        }
        ExprValues::Text { codes, levels, .. } => {
            tally.list = levels.iter().map(|name| LevelCount::word(name)).collect();
            for row in (0..rows).filter(|&row| weight(row) > 0.0) {
                tally.count(codes[row] as usize, weight(row));
            }
            tally.list.retain(|level| level.rows > 0);
        }
        ExprValues::Quote(text) => tally.list = vec![LevelCount::word(text)],
    }
    Levels::new(tally.list, false)
}

#[derive(Default)]
struct LevelTally {
    list: Vec<LevelCount>,
    index: HashMap<String, usize>,
}

impl LevelTally {
    fn find(&mut self, name: String, new: impl FnOnce() -> LevelCount) -> usize {
        *self.index.entry(name).or_insert_with(|| {
            self.list.push(new());
            self.list.len() - 1
        })
    }

    fn count(&mut self, at: usize, weight: f64) {
        self.list[at].rows += 1;
        self.list[at].weight += weight;
    }
}

fn gram(values: &[f64], weights: Option<&[f64]>, degree: usize, min: f64, max: f64) -> GramFact {
    let mut sums = vec![0.0; 2 * degree + 1];
    let mut polynomials = vec![0.0; 2 * degree + 1];
    let mut distinct: Vec<f64> = Vec::new();
    for (row, &value) in values.iter().enumerate() {
        let weight = weights.map_or(1.0, |w| w[row]);
        if weight == 0.0 {
            continue;
        }
        chebyshev(value, min, max, &mut polynomials);
        for (sum, polynomial) in sums.iter_mut().zip(&polynomials) {
            *sum += weight * polynomial;
        }
        if distinct.len() <= degree && !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    GramFact::new(sums, distinct, false, degree)
}
