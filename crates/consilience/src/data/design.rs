//! From a recipe and a table to the numbers of a design.

use super::describe::row_weights;
use super::eval::{ExprValues, truth_name};
use super::expr::Expr;
use super::number::level_name;
use super::recipe::{Ingredient, Recipe, ResponseKind, Variable};
use super::table::Table;
use crate::{Error, Result};
use std::borrow::Cow;
use std::collections::HashMap;

/// The numbers of a design, one entry per row of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// One vector per column of the recipe.
    pub columns: Vec<Vec<f64>>,
    /// The outcome: numbers, or 0 and 1 for classes.
    pub response: Vec<f64>,
    /// The second number of outcomes that have two: trials; the upper bounds of times, of which the response is the
    /// lower; the number of ordered classes.
    pub second: Option<Vec<f64>>,
    /// The sum of the offsets, if there are any.
    pub offset: Option<Vec<f64>>,
    /// The rows' weights, if there are any: whole numbers from 0 up.
    pub weights: Option<Vec<f64>>,
}

/// The code of a level that nobody knows, in a row of weight 0.
const NONE: u32 = u32::MAX;

/// A variable on a table.
enum Evaluated<'a> {
    Numbers(Vec<Cow<'a, [f64]>>),
    Codes(Vec<u32>),
}

impl Recipe {
    /// The design of a table. Rows of weight 0 are in it, but may hold levels unknown elsewhere.
    pub fn design(&self, table: &Table) -> Result<Design> {
        let weights = self.weights.as_ref().map(|name| row_weights(table, name)).transpose()?;
        let mut second = None;
        let response = match &self.response.kind {
            ResponseKind::Pairing => {
                let (first, other) = self.response.expr.pairs(table, &self.response.text)?;
                second = Some(other);
                first
            }
            ResponseKind::Levels { levels } => {
                let text = &self.response.text;
                let inner = match &self.response.expr {
                    Expr::Ordered(inner, _) | Expr::Unordered(inner) => inner,
                    whole => whole,
                };
                second = Some(vec![levels.len() as f64; table.rows()]);
                let codes = codes(inner, text, levels, table, weights.as_deref())?;
                codes.into_iter().map(f64::from).collect()
            }
            ResponseKind::Number => self.response.expr.numbers(table)?,
            ResponseKind::Classes { levels } => {
                let text = &self.response.text;
                let codes = codes(&self.response.expr, text, levels, table, weights.as_deref())?;
                codes.into_iter().map(|code| f64::from(code == 1)).collect()
            }
        };
        let mut offset: Option<Vec<f64>> = None;
        for expr in &self.offsets {
            let values = expr.numbers(table)?;
            match &mut offset {
                None => offset = Some(values),
                Some(sum) => sum.iter_mut().zip(values).for_each(|(s, v)| *s += v),
            }
        }
        if let Some(offset) = &offset {
            refuse_infinite(offset, table, "offset")?;
        }
        let columns = self.design_columns(table, weights.as_deref())?;
        Ok(Design { columns, response, second, offset, weights })
    }

    fn design_columns(&self, table: &Table, weights: Option<&[f64]>) -> Result<Vec<Vec<f64>>> {
        let mut variables = Vec::with_capacity(self.variables.len());
        for variable in &self.variables {
            variables.push(variable.evaluate(table, weights)?);
        }
        // A variable's numbers are moved into the last column that needs them, not copied.
        let mut uses: HashMap<Ingredient, usize> = HashMap::new();
        for part in self.columns.iter().flat_map(|c| &c.parts) {
            *uses.entry(*part).or_default() += 1;
        }
        let mut columns = Vec::with_capacity(self.columns.len());
        for recipe in &self.columns {
            for part in &recipe.parts {
                *uses.get_mut(part).expect("counted above") -= 1;
            }
            let Some((first, others)) = recipe.parts.split_first() else {
                columns.push(vec![1.0; table.rows()]);
                continue;
            };
            let mut column =
                variables[first.variable as usize].column(first.column, uses[first] == 0);
            for part in others {
                variables[part.variable as usize].multiply(part.column, &mut column);
            }
            if !others.is_empty() {
                refuse_infinite(&column, table, &recipe.name)?;
            }
            columns.push(column);
        }
        Ok(columns)
    }
}

impl Evaluated<'_> {
    /// One column; its numbers are gone afterwards if nobody needs them any more.
    fn column(&mut self, number: u32, last: bool) -> Vec<f64> {
        match self {
            Evaluated::Numbers(columns) if last => {
                std::mem::take(&mut columns[number as usize]).into_owned()
            }
            Evaluated::Numbers(columns) => columns[number as usize].to_vec(),
            Evaluated::Codes(codes) => codes.iter().map(|&c| f64::from(c == number)).collect(),
        }
    }

    /// Multiplies by one column.
    fn multiply(&self, number: u32, product: &mut [f64]) {
        match self {
            Evaluated::Numbers(columns) => {
                // The sum turns -0 into 0.
                let times = |(p, v): (&mut f64, &f64)| *p = *p * v + 0.0;
                product.iter_mut().zip(columns[number as usize].iter()).for_each(times);
            }
            Evaluated::Codes(codes) => {
                for (p, _) in product.iter_mut().zip(codes).filter(|(_, c)| **c != number) {
                    *p = 0.0;
                }
            }
        }
    }
}

impl Variable {
    fn evaluate<'a>(&'a self, table: &'a Table, weights: Option<&[f64]>) -> Result<Evaluated<'a>> {
        Ok(match self {
            Variable::Number(expr) => Evaluated::Numbers(vec![expr.number_rows(table)?]),
            Variable::Factor { expr, levels } => {
                Evaluated::Codes(codes(expr, &expr.to_string(), levels, table, weights)?)
            }
            Variable::Poly { expr, basis } => {
                let columns = basis.columns(&expr.number_rows(table)?);
                Evaluated::Numbers(columns.into_iter().map(Cow::Owned).collect())
            }
            Variable::Spline { expr, basis } => {
                let columns = basis.columns(&expr.number_rows(table)?);
                Evaluated::Numbers(columns.into_iter().map(Cow::Owned).collect())
            }
        })
    }
}

fn refuse_infinite(values: &[f64], table: &Table, name: &str) -> Result<()> {
    match values.iter().position(|v| !v.is_finite()) {
        None => Ok(()),
        Some(row) => Err(Error::input_at(
            table.place(row, Some(name)),
            "the result is too large for a number; write the columns in other units, as in I(x/1e6)",
        )),
    }
}

/// The number of every row's level.
fn codes(
    expr: &Expr,
    text: &str,
    levels: &[String],
    table: &Table,
    weights: Option<&[f64]>,
) -> Result<Vec<u32>> {
    let known: HashMap<&str, u32> =
        levels.iter().zip(0..).map(|(name, code)| (name.as_str(), code)).collect();
    let find = |name: &str| known.get(name).copied().unwrap_or(NONE);
    // The name is only needed for the error.
    let name_at: Box<dyn Fn(usize) -> String>;
    let codes: Vec<u32> = match expr.values(table)? {
        ExprValues::Number(vector) => {
            let mut seen: HashMap<u64, u32> = HashMap::new();
            let mut code = |row: usize| {
                let value = vector.at(row) + 0.0;
                *seen.entry(value.to_bits()).or_insert_with(|| find(&level_name(value)))
            };
            let codes = (0..table.rows()).map(&mut code).collect();
            name_at = Box::new(move |row| level_name(vector.at(row)));
            codes
        }
        ExprValues::Logical(vector) => {
            let truths = [false, true].map(|value| find(truth_name(value)));
            let codes = (0..table.rows()).map(|row| truths[usize::from(vector.at(row) != 0.0)]);
            let codes = codes.collect();
            name_at = Box::new(move |row| truth_name(vector.at(row) != 0.0).to_string());
            codes
        }
        ExprValues::Text { codes, levels, .. } => {
            let translated: Vec<u32> = levels.iter().map(|level| find(level)).collect();
            let found = codes.iter().map(|&code| translated[code as usize]).collect();
            name_at = Box::new(move |row| levels[codes[row] as usize].clone());
            found
        }
        ExprValues::Quote(quote) => {
            name_at = Box::new(|_| quote.to_string());
            vec![find(quote); table.rows()]
        }
    };
    let counts = |row: usize| weights.is_none_or(|w| w[row] > 0.0);
    match codes.iter().enumerate().find(|(row, code)| **code == NONE && counts(*row)) {
        None => Ok(codes),
        Some((row, _)) => {
            let mut shown: Vec<String> =
                levels.iter().take(10).map(|level| format!("\"{level}\"")).collect();
            if levels.len() > 10 {
                shown.push("…".to_string());
            }
            Err(Error::input_at(
                table.place(row, Some(text)),
                format!(
                    "the level \"{}\" is unknown; the study's are {}. Have the data changed since these were agreed on? Then start anew",
                    name_at(row),
                    shown.join(", ")
                ),
            ))
        }
    }
}
