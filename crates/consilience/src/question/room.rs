//! What questions make a shard hold in memory, known before anything is computed: a few bytes can ask for more than
//! any machine has.

use super::{Points, Question};
use crate::data::Request;
use crate::fit::FitOrder;
use std::cell::Cell;

/// The most numbers that the questions of one file make a site hold: a quarter of a gibibyte.
const AT_SITES: u64 = 1 << 25;

/// The same of a worker, who works for the one who asks.
const AT_WORKERS: u64 = 1 << 28;

/// What a description of a column takes, more or less.
const PER_COLUMN: u64 = 256;

impl Question {
    /// About how many numbers a shard holds at once to answer: points, draws, and the matrices of its answer.
    fn numbers(&self) -> u64 {
        let square = |d: usize| (d as u64 + 2).saturating_pow(2);
        let expansions = |asked: &[Points]| {
            sum(asked
                .iter()
                .map(|a| (a.thetas.rows() as u64).saturating_mul(square(a.model.dim()))))
        };
        let fit = |order: &FitOrder, d: usize| {
            let draws = order.all_draws().saturating_mul(d as u64 + 2);
            draws.saturating_add(4 * square(d))
        };
        match self {
            Question::Describe(asked) => sum(asked.requests.iter().map(|request| match request {
                Request::Gram { degree, .. } => square(*degree as usize),
                _ => PER_COLUMN,
            })),
            Question::Statistics(asked) => 2 * square(asked.recipe.columns.len()),
            Question::Survey(asked) => 8 * asked.design.columns.len() as u64,
            Question::Fit(asked) => fit(&asked.order, asked.model.dim()),
            Question::Augment(asked) => {
                let d = asked.model.dim();
                let conditionals = (asked.conditionals as u64).saturating_mul(square(d) / 2);
                fit(&asked.order, d).saturating_add(conditionals)
            }
            Question::Locate(asked) => expansions(&asked.0),
            Question::Cubic(asked) => expansions(&asked.0),
            Question::Expand(asked) => expansions(&asked.0),
            Question::Weigh(asked) => sum(asked.0.iter().map(|a| points(a.thetas.rows(), a))),
            Question::Explore(asked) => 4 * square(asked.model.dim()),
        }
    }
}

fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// Points and what is computed at each.
fn points(count: usize, asked: &Points) -> u64 {
    (count as u64).saturating_mul(asked.model.dim() as u64 + 1)
}

/// Whether a site, or else a worker, has room to answer all of these; why not, in words that read on from the name
/// of a file.
pub(crate) fn fits(questions: &[Question], at_site: bool) -> Result<(), String> {
    let most = if at_site { AT_SITES } else { AT_WORKERS };
    let numbers = sum(questions.iter().map(Question::numbers));
    if numbers <= most {
        return Ok(());
    }
    Err(format!(
        "it asks for more than a {} computes at once: {numbers} numbers would be in memory, and there may be {most}; use fewer draws, columns or models",
        if at_site { "site" } else { "worker" }
    ))
}

thread_local! {
    /// How many numbers rules may still make of the file that is being read.
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Reads a file of questions, whose rules make no more points than a site, or else a worker, may hold.
pub(crate) fn reading<T>(at_site: bool, read: impl FnOnce() -> T) -> T {
    LEFT.set(Some(if at_site { AT_SITES } else { AT_WORKERS }));
    let value = read();
    LEFT.set(None);
    value
}

/// Whether there is room for so many numbers more, which are taken from it.
pub(super) fn take(numbers: u64) -> bool {
    match LEFT.get() {
        None => numbers <= AT_WORKERS,
        Some(left) => {
            let rest = left.checked_sub(numbers);
            LEFT.set(Some(rest.unwrap_or(0)));
            rest.is_some()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_a_file_share_its_room() {
        reading(true, || {
            assert!(take(AT_SITES - 1) && take(1) && take(0));
            assert!(!take(1));
        });
        reading(false, || assert!(take(AT_SITES + 1) && !take(AT_WORKERS)));
        // Apart from any file: question by question.
        assert!(take(AT_WORKERS) && take(AT_WORKERS) && !take(AT_WORKERS + 1));
    }
}
