//! A design with nothing global left open.

use super::effects::Effects;
use super::eval::truth_name;
use super::expr::Expr;
use super::facts::Moments;
use super::poly::Basis;
use super::spline::SplineBasis;
use super::terms::Terms;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// The most columns that a design may have.
pub const MAX_COLUMNS: usize = 10_000;

/// How to make the design of any table whose shard took part in the agreement: levels,
/// scales and polynomials are settled. It travels inside questions to shards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// The outcome.
    pub response: Response,
    /// The variables, each evaluated once per table.
    pub variables: Vec<Variable>,
    /// The design's columns.
    pub columns: Vec<RecipeColumn>,
    /// The offsets, which add up.
    pub offsets: Vec<Expr>,
    /// The column of weights, if there is one.
    pub weights: Option<String>,
    /// What varies between groups, each of which lies on one shard.
    pub effects: Option<Effects>,
}

/// The outcome, and what is known of it over all shards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The left side of the formula.
    pub text: String,
    /// Numbers or classes.
    pub kind: ResponseKind,
    /// What is evaluated.
    pub expr: Expr,
    /// The weighted mean of the numbers, or of 0 and 1 for classes (0, 1, 2, … if they are in order), the share of
    /// successes, or the mean of the times, censored or not: within bounds of their middle, or of the one that there is.
    pub mean: f64,
    /// Their standard deviation, with n - 1 below.
    pub sd: f64,
    /// The observations of all shards: rows, each counted with its weight, or with its trials if the outcome counts them.
    pub weight: f64,
}

/// What an outcome consists of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ResponseKind {
    /// Numbers.
    Number,
    /// One or two classes; the first is coded 0, the second is the success and coded 1.
    Classes {
        /// The classes' names; `FALSE` and `TRUE` for an outcome that is true or false.
        levels: Vec<String>,
    },
    /// Successes out of trials, or times between bounds.
    Pairing,
    /// Classes of a family that has levels.
    Levels {
        /// Their names: from the lowest up where they have an order, else the one that others are compared with first.
        levels: Vec<String>,
    },
}

/// A variable of a formula, settled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Variable {
    /// A number per row.
    Number(Expr),
    /// A level per row.
    Factor {
        /// Its values.
        expr: Expr,
        /// The levels over all shards; the first is the reference.
        levels: Vec<String>,
    },
    /// Orthogonal polynomials.
    Poly {
        /// Their argument.
        expr: Expr,
        /// The polynomials.
        basis: Basis,
    },
    /// A spline.
    Spline {
        /// Its argument.
        expr: Expr,
        /// Its functions.
        basis: SplineBasis,
    },
}

/// A column of the design: the product of its parts, 1 if there are none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecipeColumn {
    /// The column's name, as R names it: `carrierUA:dep_delay`.
    pub name: String,
    /// The label of the term it belongs to: `carrier:dep_delay`.
    pub term: String,
    /// What is multiplied.
    pub parts: Vec<Ingredient>,
}

/// A column of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ingredient {
    /// The variable's number.
    pub variable: u32,
    /// For a factor the level that is indicated, for polynomials the degree less 1, for splines the function's number, else 0.
    pub column: u32,
}

/// The name and the term of the intercept's column.
pub const INTERCEPT: &str = "(Intercept)";

impl Recipe {
    /// Mean and standard deviation of the expression that a column of the design holds, and its text, by the moments of the
    /// column: without what scale() makes of it. None of columns that are no number each, or a product.
    pub(crate) fn unscaled(&self, number: usize, found: &Moments) -> Option<(String, [f64; 2])> {
        let [part] = self.columns[number].parts[..] else { return None };
        let Variable::Number(expr) = &self.variables[part.variable as usize] else { return None };
        Some(match expr {
            Expr::Scaled { expr, mean, sd } => {
                (expr.to_string(), [mean + sd * found.mean, sd * found.sd()])
            }
            whole => (whole.to_string(), [found.mean, found.sd()]),
        })
    }

    /// The table's column that a column of the design is without any change, `Some(None)` for the intercept; `None`
    /// of any other.
    pub(crate) fn column_as_it_is(&self, number: usize) -> Option<Option<&str>> {
        match self.columns[number].parts[..] {
            [] => Some(None),
            [part] => match &self.variables[part.variable as usize] {
                Variable::Number(Expr::Column(name)) => Some(Some(name)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a column is made of factors' indicators only, so that it is 0 or 1.
    pub fn is_indicator(&self, column: &RecipeColumn) -> bool {
        let factor = |part: &Ingredient| {
            matches!(self.variables[part.variable as usize], Variable::Factor { .. })
        };
        !column.is_intercept() && column.parts.iter().all(factor)
    }

    /// The columns' names.
    pub fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|c| c.name.as_str()).collect()
    }
}

impl RecipeColumn {
    /// Whether this is the intercept's column.
    pub fn is_intercept(&self) -> bool {
        self.parts.is_empty()
    }
}

/// The levels of what is true or false.
pub(super) fn true_or_false() -> Vec<String> {
    [false, true].map(|v| truth_name(v).to_string()).into()
}

impl Response {
    pub(super) fn new(
        text: String,
        kind: ResponseKind,
        expr: Expr,
        m: Moments,
    ) -> Result<Response> {
        if m.rows == 0 {
            return Err(Error::input(format!(
                "there are no rows to learn about {text} from: all shards are empty, or all weights are 0"
            )));
        }
        let sd = m.sd();
        if !(m.mean.is_finite() && sd.is_finite()) {
            return Err(Error::input(format!(
                "the outcome {text} is too large to compute with; rescale it, as in I({text}/1e6)"
            )));
        }
        let Moments { weight, mean, .. } = m;
        Ok(Response { text, kind, expr, mean, sd, weight })
    }
}

/// The design's columns, given what the terms' variables are.
pub(super) fn columns(terms: &Terms, variables: &[Variable]) -> Result<Vec<RecipeColumn>> {
    let mut columns = Vec::new();
    if terms.intercept {
        columns.push(RecipeColumn {
            name: INTERCEPT.to_string(),
            term: INTERCEPT.to_string(),
            parts: Vec::new(),
        });
    }
    // Without an intercept the first factor of the first term that has one takes its place.
    let is_factor = |v: &usize| matches!(variables[*v], Variable::Factor { .. });
    let stand_in = (0..terms.terms.len())
        .filter(|_| !terms.intercept)
        .find_map(|t| Some((t, terms.terms[t].variables.iter().copied().find(is_factor)?)));
    for (t, term) in terms.terms.iter().enumerate() {
        let choices: Vec<Vec<(String, Ingredient)>> = term
            .variables
            .iter()
            .map(|&v| {
                let full = stand_in == Some((t, v)) || terms.full_dummies(t, v);
                choices(&terms.variables[v].to_string(), v, &variables[v], full)
            })
            .collect();
        let count = choices.iter().try_fold(1usize, |n, c| n.checked_mul(c.len()));
        let total = count.and_then(|n| n.checked_add(columns.len()));
        let Some(count) = count.filter(|_| total.is_some_and(|n| n <= MAX_COLUMNS)) else {
            return Err(Error::input(format!(
                "the design would have more than {MAX_COLUMNS} columns (at the term {}); use factors with fewer levels or fewer interactions",
                term.label
            )));
        };
        for number in 0..count {
            // The first variable varies fastest.
            let mut rest = number;
            let (mut names, mut parts) = (Vec::new(), Vec::new());
            for choices in &choices {
                let (name, part) = &choices[rest % choices.len()];
                rest /= choices.len();
                names.push(name.as_str());
                parts.push(*part);
            }
            columns.push(RecipeColumn { name: names.join(":"), term: term.label.clone(), parts });
        }
    }
    Ok(columns)
}

/// The columns that a variable contributes to a term, and their names.
fn choices(
    label: &str,
    number: usize,
    variable: &Variable,
    full: bool,
) -> Vec<(String, Ingredient)> {
    let part = |column: usize| Ingredient { variable: number as u32, column: column as u32 };
    match variable {
        Variable::Number(_) => vec![(label.to_string(), part(0))],
        Variable::Factor { levels, .. } => {
            let first = usize::from(!full);
            let named = |(i, level): (usize, &String)| (format!("{label}{level}"), part(i));
            levels.iter().enumerate().skip(first).map(named).collect()
        }
        // R numbers polynomials only where there are several.
        Variable::Poly { basis, .. } if basis.degree() == 1 => vec![(label.to_string(), part(0))],
        Variable::Poly { basis, .. } => {
            (0..basis.degree()).map(|i| (format!("{label}{}", i + 1), part(i))).collect()
        }
        Variable::Spline { basis, .. } if basis.width() == 1 => vec![(label.to_string(), part(0))],
        Variable::Spline { basis, .. } => {
            (0..basis.width()).map(|i| (format!("{label}{}", i + 1), part(i))).collect()
        }
    }
}
