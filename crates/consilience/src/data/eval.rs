//! The value of an expression on every row of a table.

use super::cut::Intervals;
use super::expr::{Binary, Expr, Function, Pairing, Unary};
use super::level::spelled;
use super::number::{level_name, parse_number, r_number};
use super::table::{Column, MISSING, Table};
use crate::{Error, Result};
use std::borrow::Cow;

/// The values of an expression, one per row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ExprValues<'a> {
    /// Finite numbers.
    Number(RowValues<'a>),
    /// 0 for false, 1 for true.
    Logical(RowValues<'a>),
    /// A text column: codes into levels.
    Text { name: Cow<'a, str>, codes: Cow<'a, [u32]>, levels: Cow<'a, [String]> },
    /// A text in quotes.
    Quote(&'a str),
}

/// A number per row, or one for all rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RowValues<'a> {
    Rows(Cow<'a, [f64]>),
    Constant(f64),
}

impl RowValues<'_> {
    pub(crate) fn at(&self, row: usize) -> f64 {
        match self {
            RowValues::Rows(values) => values[row],
            RowValues::Constant(value) => *value,
        }
    }

    pub(crate) fn into_vec(self, rows: usize) -> Vec<f64> {
        match self {
            RowValues::Rows(values) => values.into_owned(),
            RowValues::Constant(value) => vec![value; rows],
        }
    }
}

impl Expr {
    /// The expression as a number per row; true is 1 and false is 0. Words and results that are
    /// not finite are errors that name their place.
    pub fn numbers(&self, table: &Table) -> Result<Vec<f64>> {
        Ok(self.vector(table)?.into_vec(table.rows()))
    }

    /// The same, borrowed from the table where the expression is a column.
    pub(crate) fn number_rows<'a>(&'a self, table: &'a Table) -> Result<Cow<'a, [f64]>> {
        Ok(match self.vector(table)? {
            RowValues::Rows(values) => values,
            RowValues::Constant(value) => Cow::Owned(vec![value; table.rows()]),
        })
    }

    fn vector<'a>(&'a self, table: &'a Table) -> Result<RowValues<'a>> {
        as_numbers(self.values(table)?, self, table)
    }

    /// The expression's values, of whatever kind they are.
    pub(crate) fn values<'a>(&'a self, table: &'a Table) -> Result<ExprValues<'a>> {
        match self {
            Expr::Number(value) => Ok(ExprValues::Number(RowValues::Constant(*value))),
            Expr::Logical(value) => Ok(ExprValues::Logical(RowValues::Constant(f64::from(*value)))),
            Expr::Text(text) => Ok(ExprValues::Quote(text)),
            Expr::Column(name) => column(name, table),
            Expr::Paren(inner) | Expr::Call(Function::Identity, inner) => inner.values(table),
            Expr::Unary(Unary::Not, inner) => {
                let value = inner.vector(table)?;
                Ok(ExprValues::Logical(map(&value, |v| f64::from(v == 0.0))))
            }
            Expr::Unary(Unary::Plus, inner) => Ok(ExprValues::Number(inner.vector(table)?)),
            Expr::Unary(Unary::Minus, inner) => {
                Ok(ExprValues::Number(map(&inner.vector(table)?, |v| -v)))
            }
            Expr::Binary(op, left, right) => self.binary(*op, left, right, table),
            Expr::Call(function, inner) => {
                let f = match function {
                    Function::Log => libm::log,
                    Function::Log1p => libm::log1p,
                    Function::Log2 => libm::log2,
                    Function::Log10 => libm::log10,
                    Function::Exp => libm::exp,
                    Function::Sqrt => f64::sqrt,
                    Function::Abs => f64::abs,
                    Function::Identity | Function::Scale | Function::Factor => {
                        return Err(self.unresolved());
                    }
                };
                self.finite(map(&inner.vector(table)?, f), table)
            }
            Expr::Scaled { expr, mean, sd } => {
                self.finite(map(&expr.vector(table)?, |v| (v - mean) / sd), table)
            }
            Expr::Cut(inner, intervals) => self.cut(inner, intervals, table),
            // Of times within bounds moments are asked for.
            Expr::Pairing(Pairing::Interval | Pairing::Interval2, ..) => {
                let times = self.typical_times(table)?;
                Ok(ExprValues::Number(RowValues::Rows(Cow::Owned(times))))
            }
            Expr::Poly(..)
            | Expr::Relevel(..)
            | Expr::Spline(..)
            | Expr::Pairing(..)
            | Expr::Ordered(..)
            | Expr::Unordered(_) => Err(self.unresolved()),
        }
    }

    /// The interval of every row: a level each. A value in none of them is an error that names its place.
    fn cut<'a>(
        &'a self,
        inner: &'a Expr,
        intervals: &Intervals,
        table: &'a Table,
    ) -> Result<ExprValues<'a>> {
        let values = inner.number_rows(table)?;
        let code = |(row, value): (usize, &f64)| {
            intervals.find(*value).ok_or_else(|| {
                Error::input_at(
                    table.place(row, Some(&self.to_string())),
                    format!(
                        "{inner} is {} and lies in none of the intervals; begin the breaks with -Inf and end them with Inf, or write include.lowest = TRUE",
                        r_number(*value)
                    ),
                )
            })
        };
        let codes: Result<Vec<u32>> = values.iter().enumerate().map(code).collect();
        Ok(ExprValues::Text {
            name: Cow::Owned(self.to_string()),
            codes: Cow::Owned(codes?),
            levels: Cow::Owned(intervals.names()),
        })
    }

    /// `scale()` before the shards agreed, or `factor()` and `poly()`, which are no numbers.
    fn unresolved(&self) -> Error {
        Error::input(format!("{self} has no value by itself; it must be part of an agreed recipe"))
    }

    fn binary<'a>(
        &'a self,
        op: Binary,
        left: &'a Expr,
        right: &'a Expr,
        table: &'a Table,
    ) -> Result<ExprValues<'a>> {
        let (a, b) = (left.values(table)?, right.values(table)?);
        if matches!(op, Binary::Equal | Binary::Unequal)
            && let Some(equal) = equal_texts(&a, &b, table.rows())
        {
            let wanted = op == Binary::Equal;
            let values = equal.into_iter().map(|e| f64::from(e == wanted)).collect();
            return Ok(ExprValues::Logical(RowValues::Rows(Cow::Owned(values))));
        }
        let (a, b) = (as_numbers(a, left, table)?, as_numbers(b, right, table)?);
        let truth = |test: fn(f64, f64) -> bool| {
            Ok(ExprValues::Logical(zip(&a, &b, |x, y| f64::from(test(x, y)))))
        };
        let number = |f: fn(f64, f64) -> f64| self.finite(zip(&a, &b, f), table);
        match op {
            Binary::Add => number(|x, y| x + y),
            Binary::Subtract => number(|x, y| x - y),
            Binary::Multiply => number(|x, y| x * y),
            Binary::Divide => number(|x, y| x / y),
            Binary::Power => number(power),
            Binary::Equal => truth(|x, y| x == y),
            Binary::Unequal => truth(|x, y| x != y),
            Binary::Less => truth(|x, y| x < y),
            Binary::LessEqual => truth(|x, y| x <= y),
            Binary::Greater => truth(|x, y| x > y),
            Binary::GreaterEqual => truth(|x, y| x >= y),
            Binary::And => truth(|x, y| x != 0.0 && y != 0.0),
            Binary::Or => truth(|x, y| x != 0.0 || y != 0.0),
        }
    }

    /// Refuses values that are not finite, naming the first one's row.
    fn finite<'a>(&self, values: RowValues<'a>, table: &Table) -> Result<ExprValues<'a>> {
        let bad = match &values {
            RowValues::Rows(values) => values.iter().position(|v| !v.is_finite()),
            // A constant fails on every row, if there is one.
            RowValues::Constant(v) => (!v.is_finite() && table.rows() > 0).then_some(0),
        };
        let Some(row) = bad else { return Ok(ExprValues::Number(values)) };
        let result = r_number(values.at(row));
        let seen = self.seen_at(table, row);
        let advice = match self {
            Expr::Call(Function::Log1p, _) => "log1p() needs numbers above -1: leave such rows out",
            Expr::Call(Function::Log | Function::Log2 | Function::Log10, _) => {
                "a logarithm needs numbers above 0: shift it, as in log(x + 1), or leave such rows out"
            }
            Expr::Call(Function::Sqrt, _) => {
                "a square root needs numbers from 0 up: leave such rows out"
            }
            Expr::Call(Function::Exp, _) => {
                "the number is too large: rescale it, as in exp(x / 1000)"
            }
            Expr::Binary(Binary::Divide, ..) => {
                "a divisor must not be 0: leave such rows out, or write another expression"
            }
            _ => "leave such rows out, or write another expression",
        };
        Err(Error::input_at(
            table.place(row, Some(&self.to_string())),
            format!("the result is {result}, not a finite number{seen}; {advice}"),
        ))
    }

    /// ` (x = -1, z = 3)`: the values of this row that the expression reads.
    fn seen_at(&self, table: &Table, row: usize) -> String {
        let seen: Vec<String> = self
            .columns()
            .iter()
            .take(4)
            .filter_map(|name| match table.column(name).ok()? {
                Column::Number(values) => Some(format!("{name} = {}", r_number(values[row]))),
                Column::Single(values) => {
                    Some(format!("{name} = {}", r_number(f64::from(values[row]))))
                }
                Column::Text { codes, levels } => {
                    Some(format!("{name} = \"{}\"", levels.get(codes[row] as usize)?))
                }
                Column::Logical(codes) => Some(format!("{name} = {}", truth_name(codes[row] == 1))),
            })
            .collect();
        if seen.is_empty() { String::new() } else { format!(" ({})", seen.join(", ")) }
    }
}

/// How true and false are named as levels.
pub(crate) fn truth_name(value: bool) -> &'static str {
    if value { "TRUE" } else { "FALSE" }
}

/// A power as R computes it: squares exactly rounded.
fn power(x: f64, y: f64) -> f64 {
    if y == 2.0 { x * x } else { libm::pow(x, y) }
}

fn map<'b>(values: &RowValues<'_>, f: impl Fn(f64) -> f64) -> RowValues<'b> {
    match values {
        RowValues::Rows(values) => RowValues::Rows(values.iter().map(|&v| f(v)).collect()),
        RowValues::Constant(value) => RowValues::Constant(f(*value)),
    }
}

fn zip<'b>(a: &RowValues<'_>, b: &RowValues<'_>, f: impl Fn(f64, f64) -> f64) -> RowValues<'b> {
    match (a, b) {
        (RowValues::Rows(a), RowValues::Rows(b)) => {
            RowValues::Rows(a.iter().zip(b.iter()).map(|(&x, &y)| f(x, y)).collect())
        }
        (RowValues::Rows(a), RowValues::Constant(y)) => {
            RowValues::Rows(a.iter().map(|&x| f(x, *y)).collect())
        }
        (RowValues::Constant(x), RowValues::Rows(b)) => {
            RowValues::Rows(b.iter().map(|&y| f(*x, y)).collect())
        }
        (RowValues::Constant(x), RowValues::Constant(y)) => RowValues::Constant(f(*x, *y)),
    }
}

fn column<'a>(name: &'a str, table: &'a Table) -> Result<ExprValues<'a>> {
    let column = table.column(name)?;
    if column.any_missing()
        && let Some(row) = (0..table.rows()).find(|&row| column.is_missing(row))
    {
        return Err(Error::input_at(table.place(row, Some(name)), "a value is missing"));
    }
    Ok(match column {
        Column::Number(values) => ExprValues::Number(RowValues::Rows(Cow::Borrowed(values))),
        Column::Single(values) => {
            ExprValues::Number(RowValues::Rows(values.iter().map(|&v| f64::from(v)).collect()))
        }
        Column::Text { codes, levels } => ExprValues::Text {
            name: Cow::Borrowed(name),
            codes: Cow::Borrowed(codes),
            levels: Cow::Borrowed(levels),
        },
        Column::Logical(codes) => {
            ExprValues::Logical(RowValues::Rows(codes.iter().map(|&c| f64::from(c)).collect()))
        }
    })
}

/// Values as numbers: words that spell numbers are taken as such, others are an error.
fn as_numbers<'a>(values: ExprValues<'a>, expr: &Expr, table: &Table) -> Result<RowValues<'a>> {
    match values {
        ExprValues::Number(vector) | ExprValues::Logical(vector) => Ok(vector),
        ExprValues::Quote(text) => Err(Error::input(format!(
            "the text \"{text}\" stands where {expr} needs a number; texts can only be compared with == and !="
        ))),
        ExprValues::Text { name, codes, levels } => {
            let numbers: Vec<Option<f64>> = levels.iter().map(|l| parse_number(l)).collect();
            let value = |(row, &code): (usize, &u32)| {
                debug_assert_ne!(code, MISSING);
                numbers[code as usize].ok_or_else(|| {
                    let word = &levels[code as usize];
                    Error::input_at(
                        table.place(row, Some(&name)),
                        format!(
                            "a number is needed here, but the value is \"{word}\"; mend the value; if these are labels, write factor({name}), or compare them with a text in quotes"
                        ),
                    )
                })
            };
            let values: Result<Vec<f64>> = codes.iter().enumerate().map(value).collect();
            Ok(RowValues::Rows(Cow::Owned(values?)))
        }
    }
}

/// Whether two values are the same text, per row; none if they are to be compared as numbers:
/// two numbers are, and a text column with numbers, because some shards may have read that
/// column as numbers. A text in quotes is compared as text.
fn equal_texts(a: &ExprValues<'_>, b: &ExprValues<'_>, rows: usize) -> Option<Vec<bool>> {
    use ExprValues::*;
    let text = |values: &ExprValues<'_>, row: usize| -> String {
        match values {
            Number(v) => level_name(v.at(row)),
            Logical(v) => truth_name(v.at(row) != 0.0).to_string(),
            Text { codes, levels, .. } => levels[codes[row] as usize].clone(),
            Quote(text) => spelled(text).into_owned(),
        }
    };
    match (a, b) {
        (Text { codes, levels, .. }, Quote(quote)) | (Quote(quote), Text { codes, levels, .. }) => {
            let quote = spelled(quote);
            let equal: Vec<bool> = levels.iter().map(|l| *l == quote).collect();
            Some(codes.iter().map(|&c| equal[c as usize]).collect())
        }
        (Quote(_), _)
        | (_, Quote(_))
        | (Text { .. }, Text { .. } | Logical(_))
        | (Logical(_), Text { .. }) => {
            Some((0..rows).map(|row| text(a, row) == text(b, row)).collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Formula;
    use crate::data::testing::{number, table, text, truth};

    fn eval(expr: &str) -> Result<Vec<f64>> {
        let table = table(vec![
            ("x", number(&[1.0, -2.0, 4.0])),
            ("t", text(&["a", "12", "7.5"])),
            ("n", text(&["3", "12", "7.5"])),
            ("f", truth(&[true, false, true])),
        ]);
        Formula::parse(&format!("{expr} ~ 1")).unwrap().response().numbers(&table)
    }

    #[test]
    fn arithmetic_has_r_s_precedence() {
        assert_eq!(eval("-x^2 + 2 * x").unwrap(), [1.0, -8.0, -8.0]);
        assert_eq!(eval("2^-1 + 0 * x").unwrap(), [0.5; 3]);
        assert_eq!(eval("0 * x + 2^3^2").unwrap(), [512.0; 3]);
        assert_eq!(eval("!x > 0 & f").unwrap(), [0.0, 0.0, 0.0]);
        assert_eq!(eval("!(x > 0 & f)").unwrap(), [0.0, 1.0, 0.0]);
        assert_eq!(eval("x >= 4 | x == -2").unwrap(), [0.0, 1.0, 1.0]);
        assert_eq!(eval("f + abs(x)").unwrap(), [2.0, 2.0, 5.0]);
        assert_eq!(eval("x - 1 - 1").unwrap(), [-1.0, -4.0, 2.0]);
        assert_eq!(eval("log2(abs(x))").unwrap(), [0.0, 1.0, 2.0]);
    }

    #[test]
    fn texts_compare_as_text_or_as_numbers() {
        assert_eq!(eval("t == \"12\"").unwrap(), [0.0, 1.0, 0.0]);
        assert_eq!(eval("t != 'a'").unwrap(), [0.0, 1.0, 1.0]);
        assert_eq!(eval("x == \"-2\"").unwrap(), [0.0, 1.0, 0.0]);
        assert_eq!(eval("f == \"TRUE\"").unwrap(), [1.0, 0.0, 1.0]);
        assert_eq!(eval("t == n").unwrap(), [0.0, 1.0, 1.0]);
        assert_eq!(eval("n > 5").unwrap(), [0.0, 1.0, 1.0]);
        assert_eq!(eval("n + 1").unwrap(), [4.0, 13.0, 8.5]);
    }

    #[test]
    fn errors_name_place_value_and_advice() {
        let cases = [
            (
                "log(x)",
                "data.csv, line 3, column `log(x)`: the result is NaN, not a finite number (x = -2); a logarithm",
            ),
            ("1 / (x - 4)", "line 4, column `1/(x - 4)`: the result is Inf"),
            ("sqrt(x * 1)", "line 3, column `sqrt(x * 1)`"),
            ("exp(1e4 * f)", "line 2, column `exp(10000 * f)`: the result is Inf"),
            ("t + 1", "line 2, column `t`: a number is needed here, but the value is \"a\""),
            ("t == 12", "line 2, column `t`"),
            ("x^0.5", "line 3, column `x^0.5`: the result is NaN"),
            ("nope + 1", "there is no column `nope`"),
        ];
        for (expr, expected) in cases {
            let message = eval(expr).unwrap_err().to_string();
            assert!(message.contains(expected), "{expr}: {message}");
        }
    }
}
