//! Several models' columns in one design.

use super::recipe::{Part, Recipe, RecipeColumn, Variable};

/// Where one recipe's columns stand in a union.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Per column of the recipe, its number in the union.
    pub columns: Vec<usize>,
    /// Per offset of the recipe, its number in the union: there an offset is a column.
    pub offsets: Vec<usize>,
}

/// The design that has every column of these recipes once, their offsets as columns too, and the
/// place of each recipe's columns in it. The recipes are of one study: they share outcome and weights.
pub fn union(recipes: &[&Recipe]) -> (Recipe, Vec<Places>) {
    let mut all = Recipe {
        response: recipes[0].response.clone(),
        variables: Vec::new(),
        columns: Vec::new(),
        offsets: Vec::new(),
        weights: recipes[0].weights.clone(),
    };
    let places = recipes.iter().map(|recipe| all.take_in(recipe)).collect();
    (all, places)
}

impl Recipe {
    fn take_in(&mut self, other: &Recipe) -> Places {
        let numbers: Vec<u32> = other.variables.iter().map(|v| self.variable(v)).collect();
        let columns = other.columns.iter().map(|column| {
            let moved = |part: &Part| Part { variable: numbers[part.variable as usize], ..*part };
            let parts = column.parts.iter().map(moved).collect();
            self.column(RecipeColumn { parts, ..column.clone() })
        });
        let columns = columns.collect();
        let offsets = other.offsets.iter().map(|expr| {
            let variable = self.variable(&Variable::Number(expr.clone()));
            let name = format!("offset({expr})");
            let parts = vec![Part { variable, column: 0 }];
            self.column(RecipeColumn { term: name.clone(), name, parts })
        });
        let offsets = offsets.collect();
        Places { columns, offsets }
    }

    fn variable(&mut self, variable: &Variable) -> u32 {
        let known = self.variables.iter().position(|v| v == variable);
        known.unwrap_or_else(|| {
            self.variables.push(variable.clone());
            self.variables.len() - 1
        }) as u32
    }

    fn column(&mut self, column: RecipeColumn) -> usize {
        let known = self.columns.iter().position(|c| c.parts == column.parts);
        known.unwrap_or_else(|| {
            self.columns.push(column);
            self.columns.len() - 1
        })
    }
}
