//! Factors that have about as many levels as there are rows, or whose levels look like numbers.

use crate::combine::Setting;
use crate::data::misread::{FEW, Misread};
use crate::data::{Expr, Recipe, Terms, Variable};
use crate::study::Study;
use crate::{Level, Result, Warning};
use std::collections::BTreeSet;

/// A caution for every factor of these models that has a level for nearly every row, or many that seem to be numbers with a
/// unit, or dates. An error for those that make no factor: where rows are elsewhere, nobody has seen all of them before.
pub(super) fn many_levels(
    study: &Study,
    terms: &[Terms],
    recipes: &[Recipe],
    settings: &[Setting],
) -> Result<Vec<Warning>> {
    let mut seen = BTreeSet::new();
    let mut warnings = Vec::new();
    for ((terms, recipe), setting) in terms.iter().zip(recipes).zip(settings) {
        let rows = setting.surveys.iter().map(|survey| survey.rows).sum::<f64>() as usize;
        for (whole, variable) in terms.variables.iter().zip(&recipe.variables) {
            let Variable::Factor { expr, levels } = variable else { continue };
            let (count, name) = (levels.len(), expr.to_string());
            let stated = study.schema.0.get(&name).is_some_and(|entry| entry.levels.is_some());
            let (message, advice) = match as_numbers(whole, levels).filter(|_| !stated) {
                Some(mut numbers) => {
                    numbers.judge(rows);
                    if numbers.certain {
                        return Err(numbers.error());
                    }
                    if !numbers.are_many() {
                        continue;
                    }
                    let (what, advice) = numbers.message();
                    (format!("`{name}` is taken for a factor of {count} levels, but {what}"), advice)
                }
                None if count > FEW && 2 * count > rows => (
                    format!(
                        "the factor `{name}` has {count} levels in {rows} rows: nearly every row has one of its own"
                    ),
                    "see whether the column names the rows, or was meant as numbers; leave it out, group its levels, or take it as groups, as in (1 | g)".to_string(),
                ),
                None => continue,
            };
            if seen.insert(name) {
                let warning = Warning::new(Level::Caution, "many-levels", message, advice);
                warnings.push(warning.value(count as f64));
            }
        }
    }
    Ok(warnings)
}

/// A column that a formula takes as it is, and whose levels seem to be numbers or dates.
fn as_numbers(whole: &Expr, levels: &[String]) -> Option<Misread> {
    let Expr::Column(name) = whole else { return None };
    Some(Misread::of_written(name, levels)?.among(levels))
}
