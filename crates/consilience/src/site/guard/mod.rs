//! Disclosure control: what a finished design, and points asked about, would show of a few rows.
//!
//! It looks at the numbers of the design, whatever expression made them. The bounds are those that DataSHIELD's
//! filters made customary: least counts of cells and classes, and columns per row.

mod isolate;

use super::policy::{Policy, refuse};
use crate::data::{Design, Expr, Recipe, Request, ResponseKind, Table, Variable};
use crate::model::{Family, observations};
use crate::question::{Describe, Points, Question};
use crate::{Error, Result};
use isolate::isolated_rows;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A design on a site's rows that has passed.
#[derive(Debug)]
pub(super) struct Inspected {
    pub family: Family,
    pub recipe: Arc<Recipe>,
    /// The design's numbers in the rows that count.
    design: Design,
}

impl Inspected {
    /// Per column its name, and in how many of the rows that count it is not 0.
    pub fn counts(&self) -> Vec<(&str, usize)> {
        let nonzero = |values: &Vec<f64>| values.iter().filter(|x| **x != 0.0).count();
        self.recipe.names().into_iter().zip(self.design.columns.iter().map(nonzero)).collect()
    }
}

/// The designs that a question is about.
pub(super) fn designs(question: &Question) -> Vec<(Family, Arc<Recipe>)> {
    match question {
        Question::Survey(survey) => vec![(survey.family, survey.design.clone())],
        Question::Statistics(asked) => vec![(Family::Gaussian, asked.recipe.clone())],
        _ => {
            let regressions = question.models().into_iter().filter_map(|m| m.regression());
            let mut all: Vec<(Family, Arc<Recipe>)> = Vec::new();
            for regression in regressions {
                let same = |(family, known): &(Family, Arc<Recipe>)| {
                    *family == regression.family && Arc::ptr_eq(known, &regression.design)
                };
                if !all.iter().any(same) {
                    all.push((regression.family, regression.design.clone()));
                }
            }
            all
        }
    }
}

/// By which a log knows a design.
pub(super) fn hash(recipe: &Recipe) -> String {
    let bytes = postcard::to_stdvec(recipe).expect("a design can always be written");
    crate::run::sha256_hex(&bytes)[..32].to_string()
}

/// Refuses facts about a column or an expression that would show fewer rows than the policy has: the mean of an indicator is a
/// count.
pub(super) fn facts(table: &Table, asked: &Describe, policy: &Policy) -> Result<()> {
    let least = policy.min_rows as usize;
    let weights = match &asked.weights {
        Some(name) => table.column(name)?.numbers(),
        None => None,
    };
    if let Some(weights) = &weights {
        let counted: Vec<f64> = weights.iter().copied().filter(|w| *w > 0.0).collect();
        let few = rare(&counted);
        if (1..least).contains(&few) {
            return guard("weights", few_weights(few, least));
        }
    }
    for request in &asked.requests {
        let own;
        let expr = match request {
            Request::Column(name) => {
                own = Expr::Column(name.clone());
                &own
            }
            Request::Levels(expr) | Request::Moments(expr) | Request::Gram { expr, .. } => expr,
        };
        // Words are merged, or counted one by one, elsewhere.
        let Ok(mut values) = expr.numbers(table) else { continue };
        if let Some(weights) = &weights {
            let mut weights = weights.iter();
            values.retain(|_| weights.next().is_some_and(|w| *w > 0.0));
        }
        if values.len() < least {
            let rows = values.len();
            return guard(
                "rows",
                format!("{rows} rows have a weight above 0, and min_rows = {least}"),
            );
        }
        let few = rare(&values);
        if (1..least).contains(&few) {
            let subject = request.subject();
            return guard(
                "column",
                format!("`{subject}` has one value in all rows but {few}, and min_rows = {least}"),
            );
        }
    }
    Ok(())
}

/// Builds a design and refuses it if an answer about it would show fewer rows than the policy has.
pub(super) fn inspect(
    table: &Table,
    family: Family,
    recipe: &Arc<Recipe>,
    policy: &Policy,
) -> Result<Inspected> {
    let design = counted(family, recipe.design(table)?);
    let (rows, least) = (design.response.len(), policy.min_rows as usize);
    if rows < least {
        return guard("rows", format!("{rows} rows have a weight above 0, and min_rows = {least}"));
    }
    // Classes without an order tell of every column once for each but the first.
    let predictors = match &recipe.response.kind {
        ResponseKind::Levels { levels } if family == Family::Multinomial => levels.len().max(2) - 1,
        _ => 1,
    };
    let columns = predictors * design.columns.len();
    if columns as f64 > policy.max_columns * rows as f64 {
        return guard(
            "columns",
            format!(
                "{columns} design columns are too many for {rows} rows: max_columns = {} a row",
                policy.max_columns
            ),
        );
    }
    let text = &recipe.response.text;
    let few = |values: &[f64]| Some(rare(values)).filter(|few| (1..least).contains(few));
    // Of classes both are counted; of numbers, and of trials, the few that are not like the rest.
    let trials = design.second.as_deref().filter(|_| family.is_binary()).and_then(few);
    // Whoever knows what all other rows count has what these few do by the sum.
    let weights = design.weights.as_deref().and_then(few);
    let both = observations(family, &design).as_deref().and_then(few);
    if let Some(few) = weights.or(both.filter(|_| trials.is_none())) {
        return guard("weights", few_weights(few, least));
    }
    if let Some(few) = few(&design.response).or(trials) {
        return guard(
            "outcome",
            format!(
                "the outcome `{text}` is the same in all rows but {few}, and min_rows = {least}"
            ),
        );
    }
    if let Some(few) = rare_kind(family, &design, least) {
        return guard(
            "outcome",
            format!(
                "one kind of outcome of `{text}` (a class; censored times, or those that are not) is in {few} rows only, and min_rows = {least}"
            ),
        );
    }
    for (name, values) in recipe.names().into_iter().zip(&design.columns) {
        if let Some(few) = few(values) {
            return guard(
                "column",
                format!(
                    "the column `{name}` has one value in all rows but {few}, and min_rows = {least}"
                ),
            );
        }
    }
    if least > 1 {
        for variable in &recipe.variables {
            polynomials(variable, table)?;
        }
        let mut all: Vec<&[f64]> = design.columns.iter().map(Vec::as_slice).collect();
        all.extend(design.offset.as_deref());
        if family == Family::Gaussian {
            all.push(&design.response);
        }
        if let Some(few) = isolated_rows(&all, least - 1) {
            return guard(
                "combination",
                format!(
                    "a sum of multiples of the columns is the same in all rows but {few}, and min_rows = {least}: answers about these columns could be taken apart into those rows"
                ),
            );
        }
    }
    Ok(Inspected { family, recipe: recipe.clone(), design })
}

fn few_weights(few: usize, least: usize) -> String {
    format!("all rows but {few} have one weight, and min_rows = {least}")
}

/// Refuses by a guard of this name.
fn guard<T>(name: &str, message: String) -> Result<T> {
    refuse(format!("{message} (guard `{name}`)"))
}

/// Polynomials of so high a degree, and splines of so many functions, that they take values apart.
fn polynomials(variable: &Variable, table: &Table) -> Result<()> {
    let (expr, degree, name) = match variable {
        Variable::Poly { expr, basis } => (expr, basis.degree(), "poly"),
        Variable::Spline { expr, basis } => (expr, basis.width(), "the spline of "),
        Variable::Number(_) | Variable::Factor { .. } => return Ok(()),
    };
    let distinct: BTreeSet<u64> =
        expr.numbers(table)?.iter().map(|x| (x + 0.0).to_bits()).collect();
    if 3 * degree <= distinct.len() {
        return Ok(());
    }
    guard(
        "polynomial",
        format!(
            "{} has more than a third as many columns as there are distinct values here, {}",
            if name == "poly" {
                format!("poly({expr}, {degree})")
            } else {
                format!("{name}{expr}")
            },
            distinct.len()
        ),
    )
}

/// The rows of a kind of outcome that fewer rows have than the policy allows: of a class, of times that are
/// known, exceeded, not reached or between bounds, or, of counts, all successes or all failures.
fn rare_kind(family: Family, design: &Design, least: usize) -> Option<usize> {
    let second = design.second.as_ref()?;
    let pairs = || design.response.iter().zip(second);
    let kind = |(first, second): (&f64, &f64)| match family {
        _ if family.has_levels() => *first as u64,
        _ if family.is_survival() && first == second => 0,
        _ if family.is_survival() && *second == f64::INFINITY => 1,
        _ if family.is_survival() => 2 + u64::from(*first > 0.0),
        _ => 0,
    };
    let mut counts: std::collections::BTreeMap<u64, usize> = Default::default();
    pairs().map(kind).for_each(|kind| *counts.entry(kind).or_default() += 1);
    if family.is_binary() {
        // A single person may have many of them.
        let successes = pairs().filter(|(k, _)| **k > 0.0).count();
        let failures = pairs().filter(|(k, n)| n > k).count();
        counts.extend([(1, successes), (2, failures)]);
    }
    counts.into_values().find(|count| (1..least).contains(count))
}

/// Rows that are no observation left out: of weight 0, or without a trial.
fn counted(family: Family, design: Design) -> Design {
    let Some(counts) = observations(family, &design) else { return design };
    let keep = |values: &[f64]| -> Vec<f64> {
        values.iter().zip(counts.iter()).filter(|(_, w)| **w > 0.0).map(|(x, _)| *x).collect()
    };
    Design {
        columns: design.columns.iter().map(|c| keep(c)).collect(),
        response: keep(&design.response),
        second: design.second.as_deref().map(keep),
        offset: design.offset.as_deref().map(keep),
        weights: design.weights.as_deref().map(keep),
    }
}

/// In how many rows a column does not have its most common value. Exact where more than half have that value;
/// otherwise it is at least half of them.
fn rare(values: &[f64]) -> usize {
    // Boyer and Moore: what remains of pairs of different values is the majority, if there is one.
    let (mut candidate, mut count) = (0.0, 0usize);
    for &value in values {
        match count {
            0 => (candidate, count) = (value, 1),
            _ if value == candidate => count += 1,
            _ => count -= 1,
        }
    }
    values.iter().filter(|x| **x != candidate).count()
}

/// An error if a point is where nobody's posterior is: far out, every row's part of the answer is a corner, and sums of
/// corners can be taken apart into rows.
pub(super) fn within_reason(points: &Points, inspected: &Inspected, policy: &Policy) -> Result<()> {
    let Some(regression) = points.model.regression() else { return Ok(()) };
    let name = crate::error::clip(&points.model.name);
    for theta in points.rows() {
        for (parameter, value) in points.model.free().zip(theta) {
            let prior = parameter.prior;
            let apart = (value - prior.centre()).abs() / prior.spread();
            if apart > policy.max_prior_sds {
                return refuse(format!(
                    "a point of the model `{name}` has `{}` at {apart:.0} standard deviations of its prior, and max_prior_sds = {} (guard `point`)",
                    parameter.name, policy.max_prior_sds
                ));
            }
        }
    }
    // A Gaussian likelihood is a parabola: far out it shows what it shows anywhere.
    if regression.family == Family::Gaussian || policy.max_predictor.is_infinite() {
        return Ok(());
    }
    let width = regression.width();
    let columns: Vec<&[f64]> = regression.active[..width]
        .iter()
        .filter_map(|&j| inspected.design.columns.get(j as usize).map(Vec::as_slice))
        .collect();
    if columns.len() != width {
        return Err(Error::input("a model has columns that its design does not have"));
    }
    // Predictors of Student's t are in the units of the outcome.
    let response = regression.response();
    let reach = match regression.family {
        Family::StudentT => response.mean.abs() + policy.max_predictor * response.sd,
        _ => policy.max_predictor,
    };
    let offset = inspected.design.offset.as_deref();
    let ranges: Vec<(f64, f64)> =
        columns.iter().map(|values| range(values)).chain(offset.map(range)).collect();
    for theta in points.rows() {
        let mut free = theta.iter();
        let coefficients: Vec<f64> = points
            .model
            .coefficients()
            .iter()
            .filter_map(|p| p.prior.fixed().or_else(|| free.next().copied()))
            .collect();
        let largest = contrasts(&coefficients, regression.predictors())
            .into_iter()
            .map(|own| own.into_iter().chain(offset.map(|_| 1.0)).collect::<Vec<f64>>())
            .map(|own| largest_predictor(&own, &columns, offset, &ranges, policy))
            .fold(0.0, f64::max);
        if largest > reach {
            return refuse(format!(
                "a point of the model `{name}` gives some row a linear predictor of {largest:.1}, and max_predictor = {} (guard `point`); `scale(x)` and `per sd` priors keep honest points nearer",
                policy.max_predictor
            ));
        }
    }
    Ok(())
}

/// The coefficients of every predictor and, of several classes, of the differences between two of them: these are what
/// makes a class sure.
fn contrasts(coefficients: &[f64], predictors: usize) -> Vec<Vec<f64>> {
    let width = coefficients.len() / predictors;
    let of = |k: usize| &coefficients[k * width..(k + 1) * width];
    let mut all: Vec<Vec<f64>> = (0..predictors).map(|k| of(k).to_vec()).collect();
    for a in 0..predictors {
        for b in 0..a {
            all.push(of(a).iter().zip(of(b)).map(|(x, y)| x - y).collect());
        }
    }
    all
}

fn range(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(*x), b.max(*x)))
}

/// The largest linear predictor of any row, or a bound on it that is small enough.
fn largest_predictor(
    coefficients: &[f64],
    columns: &[&[f64]],
    offset: Option<&[f64]>,
    ranges: &[(f64, f64)],
    policy: &Policy,
) -> f64 {
    let (mut low, mut high) = (0.0, 0.0);
    for (b, (least, most)) in coefficients.iter().zip(ranges) {
        low += (b * least).min(b * most);
        high += (b * least).max(b * most);
    }
    let bound = f64::max(-low, high);
    if bound <= policy.max_predictor {
        return bound;
    }
    let mut eta =
        offset.map_or_else(|| vec![0.0; columns.first().map_or(0, |c| c.len())], <[f64]>::to_vec);
    for (b, values) in coefficients.iter().zip(columns) {
        eta.iter_mut().zip(*values).for_each(|(sum, x)| *sum += b * x);
    }
    eta.iter().fold(0.0, |most: f64, x| most.max(x.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_counted_one_by_one_and_compared_two_by_two() {
        let design = Design {
            columns: vec![vec![1.0; 12]],
            response: [vec![0.0; 5], vec![1.0; 5], vec![2.0; 2]].concat(),
            second: Some(vec![3.0; 12]),
            offset: None,
            weights: None,
        };
        for family in [Family::Multinomial, Family::CumulativeLogit] {
            assert_eq!(rare_kind(family, &design, 3), Some(2));
            assert_eq!(rare_kind(family, &design, 2), None);
        }
        assert_eq!(contrasts(&[1.0, 2.0], 1), [[1.0, 2.0]]);
        let all = contrasts(&[1.0, 2.0, -5.0, 7.0], 2);
        assert_eq!(all, [[1.0, 2.0], [-5.0, 7.0], [-6.0, 5.0]]);
    }
}
