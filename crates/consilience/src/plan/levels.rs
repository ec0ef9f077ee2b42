//! Factors that have about as many levels as there are rows.

use crate::data::misread::FEW;
use crate::data::{Recipe, Variable};
use crate::{Level, Warning};
use std::collections::BTreeSet;

/// A caution for every factor of these models that has a level for nearly every row.
pub(super) fn many_levels(recipes: &[Recipe]) -> Vec<Warning> {
    let mut seen = BTreeSet::new();
    let mut warnings = Vec::new();
    for recipe in recipes {
        // Rows by their weights: each counts once or more often.
        let rows = recipe.response.weight;
        for variable in &recipe.variables {
            let Variable::Factor { expr, levels } = variable else { continue };
            let count = levels.len();
            let name = expr.to_string();
            if count <= FEW || 2.0 * count as f64 <= rows || !seen.insert(name.clone()) {
                continue;
            }
            let message = format!(
                "the factor `{name}` has {count} levels in {rows} rows: nearly every row has one of its own"
            );
            let advice = "see whether the column names the rows, or was meant as numbers; leave it out, group its levels, or take it as groups, as in (1 | g)";
            let warning = Warning::new(Level::Caution, "many-levels", message, advice);
            warnings.push(warning.value(count as f64));
        }
    }
    warnings
}
