//! Several models' columns in one design.

use super::recipe::{Ingredient, MAX_COLUMNS, Recipe, RecipeColumn, Variable};
use std::collections::HashMap;

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
pub fn union(recipes: &[Recipe]) -> (Recipe, Vec<Places>) {
    let mut all = Recipe { offsets: Vec::new(), ..recipes[0].bare() };
    let places = recipes.iter().map(|recipe| all.take_in(recipe)).collect();
    (all, places)
}

/// A design under construction that models share: what they have in common, and every column of theirs once.
#[derive(Debug)]
pub struct Shared {
    design: Recipe,
    /// The columns' numbers by name, term and parts: whatever errors and results name them by.
    numbers: HashMap<(String, String, Vec<Ingredient>), u32>,
}

impl Shared {
    /// A design with the outcome, offsets and weights of this recipe, and no columns yet.
    pub fn new(recipe: &Recipe) -> Shared {
        Shared { design: recipe.bare(), numbers: HashMap::new() }
    }

    /// Takes in the columns of another recipe and says their numbers; `None` if it has another outcome,
    /// offset or weights, or the design would grow too wide.
    pub fn take_in(&mut self, other: &Recipe) -> Option<Vec<u32>> {
        let (own, columns) = (&mut self.design, &other.columns);
        let alike = own.response == other.response
            && own.offsets == other.offsets
            && own.weights == other.weights
            && own.effects == other.effects;
        if !alike || !own.columns.is_empty() && own.columns.len() + columns.len() > MAX_COLUMNS {
            return None;
        }
        let moved = own.moved(other);
        let number = |column: RecipeColumn| {
            let key = (column.name.clone(), column.term.clone(), column.parts.clone());
            *self.numbers.entry(key).or_insert_with(|| {
                own.columns.push(column);
                own.columns.len() as u32 - 1
            })
        };
        Some(moved.into_iter().map(number).collect())
    }

    /// The design.
    pub fn into_design(self) -> Recipe {
        self.design
    }
}

impl Recipe {
    /// The design with some of its columns, in this order, and what these need.
    pub fn part(&self, columns: &[u32]) -> Recipe {
        let whole = Recipe {
            columns: columns.iter().map(|&j| self.columns[j as usize].clone()).collect(),
            ..self.bare()
        };
        let mut used = vec![false; self.variables.len()];
        let parts = whole.columns.iter().flat_map(|c| &c.parts);
        parts.for_each(|part| used[part.variable as usize] = true);
        let mut numbers = vec![0; used.len()];
        let mut out = self.bare();
        for (v, variable) in self.variables.iter().enumerate().filter(|(v, _)| used[*v]) {
            numbers[v] = out.variables.len() as u32;
            out.variables.push(variable.clone());
        }
        out.columns = renumbered(&whole, &numbers);
        out
    }

    /// The same without variables and columns.
    fn bare(&self) -> Recipe {
        Recipe {
            response: self.response.clone(),
            variables: Vec::new(),
            columns: Vec::new(),
            offsets: self.offsets.clone(),
            weights: self.weights.clone(),
            effects: self.effects.clone(),
        }
    }

    /// The columns of another recipe by the numbers that their variables have here, as which they are taken in.
    fn moved(&mut self, other: &Recipe) -> Vec<RecipeColumn> {
        let numbers: Vec<u32> = other.variables.iter().map(|v| self.variable(v)).collect();
        renumbered(other, &numbers)
    }

    fn take_in(&mut self, other: &Recipe) -> Places {
        let columns = self.moved(other).into_iter().map(|column| self.column(column)).collect();
        let offsets = other.offsets.iter().map(|expr| {
            let variable = self.variable(&Variable::Number(expr.clone()));
            let name = format!("offset({expr})");
            let parts = vec![Ingredient { variable, column: 0 }];
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

/// A recipe's columns, its variables having these numbers.
fn renumbered(recipe: &Recipe, numbers: &[u32]) -> Vec<RecipeColumn> {
    let part =
        |part: &Ingredient| Ingredient { variable: numbers[part.variable as usize], ..*part };
    let column = |column: &RecipeColumn| RecipeColumn {
        parts: column.parts.iter().map(part).collect(),
        ..column.clone()
    };
    recipe.columns.iter().map(column).collect()
}
