//! Random effects of a formula: `(1 | hospital)`, `(x | hospital)`.

use super::eval::{ExprValues, truth_name};
use super::expr::Expr;
use super::number::level_name;
use super::table::Table;
use crate::Result;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;

/// What varies between groups, as a formula writes it; and, once it is settled, as shards are told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effects {
    /// Whether the intercept does.
    pub intercept: bool,
    /// The number whose slope does.
    pub slope: Option<Expr>,
    /// Whose values are the groups.
    pub group: Expr,
    /// Nodes of the quadrature per effect; 0 stands for [`Effects::default_nodes`].
    pub nodes: u32,
}

/// The most nodes per effect; twice as many where it is asked whether they are enough.
pub const MAX_NODES: u32 = 100;

impl Effects {
    /// Effects per group: 1 or 2.
    pub fn count(&self) -> usize {
        usize::from(self.intercept) + usize::from(self.slope.is_some())
    }

    /// Nodes that do for groups of a few rows, whose integrands are least like a normal density.
    pub fn default_nodes(count: usize) -> u32 {
        if count > 1 { 15 } else { 25 }
    }

    /// Nodes per effect.
    pub fn nodes(&self) -> u32 {
        if self.nodes == 0 { Effects::default_nodes(self.count()) } else { self.nodes }
    }

    /// The names of their parameters: the logarithms of the standard deviations, and of two effects the inverse
    /// hyperbolic tangent of the correlation.
    pub fn parameters(&self) -> Vec<String> {
        let group = &self.group;
        let mut names = Vec::new();
        if self.intercept {
            names.push(format!("log_sd_{group}"));
        }
        if let Some(slope) = &self.slope {
            names.push(format!("log_sd_{group}:{slope}"));
        }
        if names.len() == 2 {
            names.push(format!("atanh_cor_{group}"));
        }
        names
    }

    /// Whether it holds together.
    pub fn is_sound(&self) -> bool {
        self.count() > 0 && self.nodes <= 2 * MAX_NODES
    }

    /// The number of every row's group, in order of appearance.
    pub(crate) fn groups(&self, table: &Table) -> Result<Vec<u32>> {
        let mut known: HashMap<String, u32> = HashMap::new();
        let mut number = |name: String| {
            let next = known.len() as u32;
            *known.entry(name).or_insert(next)
        };
        let rows = 0..table.rows();
        Ok(match self.group.values(table)? {
            ExprValues::Number(vector) => rows.map(|i| number(level_name(vector.at(i)))).collect(),
            ExprValues::Logical(vector) => {
                rows.map(|i| number(truth_name(vector.at(i) != 0.0).to_string())).collect()
            }
            ExprValues::Text { codes, levels, .. } => {
                rows.map(|i| number(levels[codes[i] as usize].clone())).collect()
            }
            ExprValues::Quote(_) => vec![0; table.rows()],
        })
    }

    /// Per effect, what it is multiplied with in every row.
    pub(crate) fn columns(&self, table: &Table) -> Result<Vec<Vec<f64>>> {
        let mut columns = Vec::new();
        if self.intercept {
            columns.push(vec![1.0; table.rows()]);
        }
        if let Some(slope) = &self.slope {
            columns.push(slope.numbers(table)?);
        }
        Ok(columns)
    }
}

impl fmt::Display for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.slope, self.intercept) {
            (None, _) => write!(f, "(1 | {})", self.group),
            (Some(slope), true) => write!(f, "({slope} | {})", self.group),
            (Some(slope), false) => write!(f, "(0 + {slope} | {})", self.group),
        }
    }
}
