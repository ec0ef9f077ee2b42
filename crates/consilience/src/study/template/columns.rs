//! What the columns of data that nobody has described yet can be in a model.

use crate::data::misread::{FEW, Misread};
use crate::data::table::{Column, MISSING};
use crate::data::{Expr, literal, parse_number};
use crate::error::clip;
use crate::model::Family;
use crate::{Error, Result};

/// Names that outcomes go by, the likeliest first.
const NAMES: [&str; 12] = [
    "y",
    "outcome",
    "response",
    "target",
    "label",
    "class",
    "dependent",
    "result",
    "success",
    "event",
    "survived",
    "churn",
];

/// Text of more levels than this is hardly meant as a factor.
const MOST_LEVELS: usize = 30;

/// Numbers beyond this have squares that overflow or vanish.
const LARGEST: f64 = 1e100;

/// The distinct values of a column.
pub(super) struct Profile {
    /// How many rows have a value.
    present: usize,
    values: ColumnValues,
}

enum ColumnValues {
    /// Ascending. Also text that spells nothing but numbers, since formulas take it so.
    Numbers(Vec<f64>),
    /// In the order of their bytes, and whether some of them spell numbers.
    Words(Vec<String>, bool),
    Logicals(usize),
}

impl Profile {
    /// Looks through a column.
    pub(super) fn of(column: &Column) -> Profile {
        let present = (0..column.len()).filter(|&row| !column.is_missing(row)).count();
        let values = match column {
            Column::Number(values) => ColumnValues::Numbers(distinct(values.iter().copied())),
            Column::Single(values) => {
                ColumnValues::Numbers(distinct(values.iter().map(|&v| f64::from(v))))
            }
            Column::Logical(codes) => ColumnValues::Logicals(
                [0, 1].into_iter().filter(|code| codes.contains(code)).count(),
            ),
            Column::Text { codes, levels } => words(codes, levels),
        };
        Profile { present, values }
    }

    /// How many distinct values there are.
    pub(super) fn distinct(&self) -> usize {
        match &self.values {
            ColumnValues::Numbers(values) => values.len(),
            ColumnValues::Words(levels, _) => levels.len(),
            ColumnValues::Logicals(count) => *count,
        }
    }

    fn all_differ(&self) -> bool {
        let whole = match &self.values {
            ColumnValues::Numbers(values) => values.iter().all(|v| v.fract() == 0.0),
            _ => true,
        };
        whole && self.distinct() == self.present
    }

    /// Whether these words are numbers with a unit, or dates.
    fn are_written(&self, levels: &[String]) -> bool {
        Misread::of_written("", levels).is_some_and(|mut found| {
            found.judge(self.present);
            found.certain
        })
    }

    /// The column as a term, and how many coefficients that makes; or why it had better be none.
    pub(super) fn term(&self, name: &str) -> std::result::Result<(String, usize), String> {
        refuse_name(name)?;
        let column = Expr::Column(name.to_string());
        match &self.values {
            _ if self.present == 0 => Err("it has no values".into()),
            _ if self.distinct() == 1 => Err("it is the same in all rows".into()),
            ColumnValues::Logicals(_) => Ok((column.to_string(), 1)),
            _ if self.all_differ() => Err("it looks like an id: no value comes twice".into()),
            ColumnValues::Numbers(values) if is_zero_one(values) => Ok((column.to_string(), 1)),
            ColumnValues::Numbers(values) => {
                refuse_extreme(values)?;
                Ok((format!("scale({column})"), 1))
            }
            ColumnValues::Words(levels, _) if self.are_written(levels) => {
                Err("it is text that seems to be numbers with a unit, or dates; make numbers of it"
                    .into())
            }
            ColumnValues::Words(levels, _)
                if levels.len() > MOST_LEVELS
                    || levels.len() > FEW && 2 * levels.len() > self.present =>
            {
                Err(too_many_levels(levels))
            }
            // Bare, the library may take the words for mistakes in a column of numbers.
            ColumnValues::Words(levels, true) => {
                Ok((format!("factor({column})"), levels.len() - 1))
            }
            ColumnValues::Words(levels, false) => Ok((column.to_string(), levels.len() - 1)),
        }
    }
}

fn distinct(values: impl Iterator<Item = f64>) -> Vec<f64> {
    // Adding 0 makes one of the two zeros.
    let mut values: Vec<f64> = values.filter(|v| !v.is_nan()).map(|v| v + 0.0).collect();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    values
}

fn words(codes: &[u32], levels: &[String]) -> ColumnValues {
    let mut seen = vec![false; levels.len()];
    codes.iter().filter(|&&code| code != MISSING).for_each(|&code| seen[code as usize] = true);
    let mut found: Vec<&String> =
        levels.iter().zip(seen).filter(|(_, seen)| *seen).map(|(level, _)| level).collect();
    found.sort();
    let numbers: Vec<f64> = found.iter().filter_map(|level| parse_number(level)).collect();
    if numbers.len() == found.len() {
        return ColumnValues::Numbers(distinct(numbers.into_iter()));
    }
    ColumnValues::Words(found.into_iter().cloned().collect(), !numbers.is_empty())
}

fn too_many_levels(levels: &[String]) -> String {
    let words: Vec<&String> = levels.iter().filter(|l| parse_number(l).is_none()).collect();
    if 2 * words.len() < levels.len() {
        format!("it has words among its numbers, such as \"{}\"; mend them", clip(words[0]))
    } else {
        format!("it is text with {} different values; group them", levels.len())
    }
}

fn is_zero_one(values: &[f64]) -> bool {
    values == [0.0, 1.0]
}

fn refuse_name(name: &str) -> std::result::Result<(), String> {
    if name.contains('`') || name.contains(char::is_control) {
        return Err("its name has a backtick or a control character in it; rename it".into());
    }
    Ok(())
}

fn refuse_extreme(values: &[f64]) -> std::result::Result<(), String> {
    let (least, most) = (values[0], values[values.len() - 1]);
    if least < -LARGEST || most > LARGEST || most - least < 1.0 / LARGEST {
        return Err("its numbers are too large or too near each other; use other units".into());
    }
    Ok(())
}

/// The left side of the models.
pub(super) struct OutcomeColumn {
    /// As the formula writes it.
    pub(super) left: String,
    pub(super) family: Family,
    /// What a reader should know about it: sentences.
    pub(super) remarks: String,
}

impl OutcomeColumn {
    /// The outcome that a column makes.
    pub(super) fn of(name: &str, column: &Column) -> Result<OutcomeColumn> {
        let shown = clip(name);
        let wrong = |what: String| {
            Error::input(format!(
                "`{shown}` cannot be the outcome: {what}; name another with --outcome"
            ))
        };
        refuse_name(name).map_err(&wrong)?;
        let profile = Profile::of(column);
        let bare = Expr::Column(name.to_string()).to_string();
        let outcome = |left: &str, family, remarks: String| {
            Ok(OutcomeColumn { left: left.to_string(), family, remarks })
        };
        match &profile.values {
            _ if profile.present == 0 => Err(wrong("it has no values".into())),
            _ if profile.distinct() == 1 => Err(wrong("it is the same in all rows".into())),
            ColumnValues::Logicals(_) => outcome(&bare, Family::Logistic, binary("TRUE")),
            ColumnValues::Words(levels, numbers) => {
                let [_, success] = levels.as_slice() else {
                    return Err(wrong(too_many_classes(&bare, levels)));
                };
                let left = if *numbers { format!("factor({bare})") } else { bare };
                outcome(&left, Family::Logistic, binary(&format!("\"{}\"", clip(success))))
            }
            ColumnValues::Numbers(values) if is_zero_one(values) => {
                outcome(&bare, Family::Logistic, binary("1"))
            }
            ColumnValues::Numbers(values) if values.len() == 2 => {
                let success = literal(values[1]);
                let left = format!("I({bare} == {success})");
                outcome(&left, Family::Logistic, binary(&success))
            }
            ColumnValues::Numbers(values) if is_count(values) => {
                outcome(&bare, Family::Poisson, COUNT.into())
            }
            ColumnValues::Numbers(values) => {
                refuse_extreme(values).map_err(&wrong)?;
                outcome(&bare, Family::Gaussian, MEASURED.into())
            }
        }
    }
}

const COUNT: &str = "It counts something: the family is \"poisson\" (log link); \"negative-binomial\" allows for more spread than that, and \"gaussian\" takes the counts as measurements.";
const MEASURED: &str = "It is measured: the family is \"gaussian\" (identity link). Others are \"logistic\" and \"probit\" for outcomes of two values, \"poisson\" and \"negative-binomial\" for counts.";

fn binary(success: &str) -> String {
    format!(
        "It has two values, of which {success} counts as success: the family is \"logistic\"; \"probit\" has the other usual link."
    )
}

fn is_count(values: &[f64]) -> bool {
    values[0] == 0.0 && values[values.len() - 1] <= 100.0 && values.iter().all(|v| v.fract() == 0.0)
}

fn too_many_classes(bare: &str, levels: &[String]) -> String {
    let shown: Vec<String> =
        levels.iter().take(5).map(|level| format!("\"{}\"", clip(level))).collect();
    let more = if levels.len() > 5 { ", …" } else { "" };
    format!(
        "it is text with {} different values ({}{more}), and two can be modelled; make a column of two values of it, or write a study with I({bare} == {}) on the left side",
        levels.len(),
        shown.join(", "),
        shown[0]
    )
}

/// The column that is most likely meant as the outcome, and why.
pub(super) fn guess(columns: &[(&str, Profile)]) -> Result<(String, &'static str)> {
    let named = NAMES.iter().find_map(|known| {
        columns.iter().find(|(name, _)| name.eq_ignore_ascii_case(known)).map(|(name, _)| *name)
    });
    if let Some(name) = named {
        return Ok((name.to_string(), "by its name"));
    }
    let usable = || columns.iter().rev().filter(|(name, _)| refuse_name(name).is_ok());
    let last = |fits: &dyn Fn(&Profile) -> bool| usable().find(|(_, p)| fits(p)).map(|(n, _)| *n);
    let is_number = |p: &Profile| matches!(p.values, ColumnValues::Numbers(_)) && p.distinct() > 1;
    let found = last(&|p| p.distinct() == 2)
        .map(|name| (name, "as the last column with two values"))
        .or_else(|| {
            let name = last(&|p| is_number(p) && !p.all_differ()).or_else(|| last(&is_number))?;
            Some((name, "as the last column of numbers"))
        });
    match found {
        Some((name, why)) => Ok((name.to_string(), why)),
        None => Err(Error::input(
            "no column can be the outcome: none has two values, and none holds numbers that differ; name one with --outcome",
        )),
    }
}
