//! What a study states of its columns, so that shards need not be asked: `[schema]`.
//!
//! An entry is about the values of a part of a formula, and its name is that part's text: `carrier`,
//! `log(distance)`, `poly(age, 2)`. It holds what the shards would have agreed on, and no more.

use super::expr::{Expr, Function};
use super::facts::MAX_LEVELS;
use super::level::spelled;
use super::poly::Basis;
use super::recipe::{Recipe, Response, ResponseKind, Variable, true_or_false};
use super::spline::{SplineBasis, SplineSpec};
use super::terms::Terms;
use crate::error::clip;
use crate::{Error, Place, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What is stated, by the text of what it is about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Codebook(pub BTreeMap<String, Entry>);

/// What is stated of a part of a formula.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Entry {
    /// Of a column of numbers. A column with levels needs none.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<ColumnType>,
    /// The levels of a factor, the reference first; of an outcome the success last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub levels: Option<Vec<String>>,
    /// The mean, by which `scale()` centres; of an outcome with levels, the share of the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// The standard deviation, by which `scale()` divides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sd: Option<f64>,
    /// Of an outcome, how many observations these are of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observations: Option<f64>,
    /// Of `poly()`, `bs()` and `ns()`, the least and the greatest value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// Of `poly()`, each polynomial's coefficients on the Chebyshev polynomials of degree 0, 1, … of that range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coefficients: Option<Vec<Vec<f64>>>,
    /// Of `bs()` and `ns()`, the knots between the ends of the range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knots: Option<Vec<f64>>,
}

/// What a column without levels holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnType {
    /// Numbers.
    Number,
}

impl Codebook {
    /// Whether it states nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the shards agreed on about these formulas.
    pub fn of(terms: &[Terms], recipes: &[Recipe]) -> Codebook {
        let mut book = Codebook::default();
        for (terms, recipe) in terms.iter().zip(recipes) {
            book.take_outcome(&terms.response, &recipe.response);
            for (expr, variable) in terms.variables.iter().zip(&recipe.variables) {
                book.take_variable(expr, variable);
            }
            recipe.offsets.iter().for_each(|expr| book.take_scales(expr));
        }
        book
    }

    fn entry(&mut self, text: String) -> &mut Entry {
        self.0.entry(text).or_default()
    }

    fn take_outcome(&mut self, expr: &Expr, response: &Response) {
        self.take_scales(&response.expr);
        let entry = self.entry(outcome_key(expr));
        match &response.kind {
            ResponseKind::Classes { levels } if !expr.is_logical() => {
                entry.levels = Some(levels.clone());
            }
            ResponseKind::Levels { levels } => entry.levels = Some(levels.clone()),
            ResponseKind::Number if is_column(expr) => entry.kind = Some(ColumnType::Number),
            _ => {}
        }
        (entry.mean, entry.sd) = (Some(response.mean), Some(response.sd));
        entry.observations = Some(response.weight);
    }

    fn take_variable(&mut self, expr: &Expr, variable: &Variable) {
        match variable {
            Variable::Number(settled) => {
                self.take_scales(settled);
                if is_column(expr) {
                    self.entry(expr.bare().to_string()).kind = Some(ColumnType::Number);
                }
            }
            Variable::Factor { expr: settled, levels } => {
                self.take_scales(settled);
                // What intervals there are stands in the formula.
                if !expr.is_logical() && !matches!(expr, Expr::Cut(..)) {
                    self.entry(expr.bare().to_string()).levels = Some(levels.clone());
                }
            }
            Variable::Poly { expr: settled, basis } => {
                self.take_scales(settled);
                let entry = self.entry(expr.to_string());
                entry.range = Some(basis.range());
                entry.coefficients = Some(basis.coefficients().to_vec());
            }
            Variable::Spline { expr: settled, basis } => {
                self.take_scales(settled);
                let entry = self.entry(expr.to_string());
                entry.range = Some(basis.boundary());
                entry.knots = Some(basis.knots().to_vec());
            }
        }
    }

    /// The centres and scales inside an expression.
    fn take_scales(&mut self, expr: &Expr) {
        expr.visit(&mut |part| {
            if let Expr::Scaled { expr, mean, sd } = part {
                let entry = self.entry(expr.to_string());
                (entry.mean, entry.sd) = (Some(*mean), Some(*sd));
            }
        });
    }

    fn get(&self, text: &str) -> Option<&Entry> {
        self.0.get(text)
    }

    /// Centre and scale of an expression, if they are stated.
    pub(super) fn scale(&self, text: &str) -> Result<Option<(f64, f64)>> {
        match self.get(text).and_then(|entry| entry.mean.zip(entry.sd)) {
            Some((_, sd)) if sd <= 0.0 => wrong(
                &format!("{text}.sd"),
                format!("is {sd}, by which scale({}) cannot divide; leave it out", clip(text)),
            ),
            stated => Ok(stated),
        }
    }

    /// What a variable that is a column, a factor, polynomials or a spline is, if it is stated.
    pub(super) fn variable(&self, whole: &Expr, settled: Expr) -> Option<Variable> {
        let Entry { levels, range, coefficients, knots, .. } =
            self.get(&whole.bare().to_string())?;
        if let (Expr::Spline(_, spec), Some((range, knots))) = (whole, range.zip(knots.as_ref())) {
            let basis = SplineBasis::new(spec, range, knots.clone());
            return Some(Variable::Spline { expr: settled, basis });
        }
        Some(match (levels, range.zip(coefficients.as_ref())) {
            (Some(levels), _) => Variable::Factor { expr: settled, levels: stated(levels) },
            (None, Some((range, rows))) => {
                Variable::Poly { expr: settled, basis: Basis::stated(range, rows.clone()) }
            }
            (None, None) => Variable::Number(settled),
        })
    }

    /// The outcome, if all is stated that is to be known of it.
    pub(super) fn response(&self, whole: &Expr, settled: Expr) -> Result<Option<Response>> {
        let key = outcome_key(whole);
        let Some(entry) = self.get(&key) else { return Ok(None) };
        let facts = entry.mean.zip(entry.sd).zip(entry.observations);
        let Some(((mean, sd), weight)) = facts else {
            if entry.levels.is_some() {
                return wrong(
                    &key,
                    "states the outcome's levels without `mean`, `sd` and `observations`; write it anew with `consilience schema`, or leave the outcome out, and the shards are asked about it",
                );
            }
            return Ok(None);
        };
        let kind = match &entry.levels {
            Some(levels) if matches!(settled, Expr::Ordered(..) | Expr::Unordered(_)) => {
                ResponseKind::Levels { levels: stated(levels) }
            }
            None if matches!(settled, Expr::Pairing(..)) => ResponseKind::Pairing,
            Some(levels) if levels.len() > 2 => {
                return wrong(
                    &key,
                    "states more than two levels of an outcome that can have only two; use family = \"multinomial\", or \"cumulative-logit\" for ordered() ones",
                );
            }
            Some(levels) => ResponseKind::Classes { levels: stated(levels) },
            None if whole.is_logical() => ResponseKind::Classes { levels: true_or_false() },
            None => ResponseKind::Number,
        };
        Ok(Some(Response { text: whole.to_string(), kind, expr: settled, mean, sd, weight }))
    }

    /// The names that formulas look for in a codebook.
    pub(crate) fn sought(terms: &[Terms]) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for terms in terms {
            names.insert(outcome_key(&terms.response));
            for expr in &terms.variables {
                let states = is_factor(expr) || matches!(expr, Expr::Poly(..) | Expr::Spline(..));
                if states || is_column(expr) {
                    names.insert(expr.bare().to_string());
                }
            }
            let all = terms.variables.iter().chain(&terms.offsets).chain([&terms.response]);
            for expr in all {
                expr.visit(&mut |part| {
                    if let Expr::Call(Function::Scale, inner) = part {
                        names.insert(inner.to_string());
                    }
                });
            }
        }
        names
    }

    /// Refuses what cannot be. Errors name the key.
    pub fn check(&self) -> Result<()> {
        self.0.iter().try_for_each(|(key, entry)| {
            let expr = match Expr::parse(key) {
                Ok(expr) => expr,
                Err(_) => {
                    return wrong(
                        key,
                        "is named after no part of a formula; write it as formulas do, a name with blanks in backticks",
                    );
                }
            };
            // One spelling each, so that nothing is stated twice.
            let text = expr.to_string();
            if text != *key {
                return wrong(key, format!("is spelled otherwise: write `{}`", clip(&text)));
            }
            entry.check(key, &expr)
        })
    }
}

/// Stated levels, spelled as those of rows are.
fn stated(levels: &[String]) -> Vec<String> {
    levels.iter().map(|level| spelled(level).into_owned()).collect()
}

/// The name under which a formula's left side stands.
fn outcome_key(expr: &Expr) -> String {
    if is_column(expr) { expr.bare().to_string() } else { expr.to_string() }
}

fn is_factor(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(Function::Factor, _) | Expr::Relevel(..))
}

fn is_column(expr: &Expr) -> bool {
    matches!(expr.bare(), Expr::Column(_))
}

/// An error about a part of the codebook, which the message reads on from.
fn wrong<T>(key: &str, message: impl std::fmt::Display) -> Result<T> {
    let shown = clip(&format!("schema.{key}"));
    Err(Error::input_at(Place::key(format!("schema.{key}")), format!("`{shown}` {message}")))
}

impl Entry {
    fn check(&self, key: &str, expr: &Expr) -> Result<()> {
        let Entry { kind, levels, mean, sd, observations, range, coefficients, knots } = self;
        let own = |name: &str| format!("{key}.{name}");
        for (name, value) in [("mean", mean), ("sd", sd), ("observations", observations)] {
            if let Some(value) = value.filter(|value| !value.is_finite()) {
                return wrong(&own(name), format!("must be a finite number, not {value}"));
            }
        }
        if let Some(sd) = sd.filter(|sd| *sd < 0.0) {
            return wrong(&own("sd"), format!("must not be negative, but is {sd}"));
        }
        if let Some(n) = observations.filter(|n| *n <= 0.0) {
            return wrong(&own("observations"), format!("must be positive, but is {n}"));
        }
        if mean.is_some() != sd.is_some() || observations.is_some() && mean.is_none() {
            return wrong(key, "must give `mean` and `sd` together, and `observations` with both");
        }
        let others = kind.is_some() || levels.is_some() || mean.is_some();
        if let Expr::Spline(_, spec) = expr {
            return match (range, knots) {
                (Some(range), Some(knots)) if !others && coefficients.is_none() => {
                    spline(key, spec, range, knots)
                }
                _ => wrong(key, "must give `range` and `knots`, and nothing else"),
            };
        }
        if knots.is_some() {
            return wrong(key, "gives `knots`, which only bs() and ns() have");
        }
        if let Expr::Poly(_, degree) = expr {
            return match (range, coefficients) {
                (Some(range), Some(rows)) if !others => polynomials(key, *degree, range, rows),
                _ => wrong(key, "must give `range` and `coefficients`, and nothing else"),
            };
        }
        if range.is_some() || coefficients.is_some() {
            return wrong(
                key,
                "gives `range` or `coefficients`, which only poly() has, or bs() and ns() with `knots`",
            );
        }
        let (is_factor, is_column) = (is_factor(expr), matches!(expr, Expr::Column(_)));
        let is_ordered = matches!(expr, Expr::Ordered(..));
        if let Some(levels) = levels {
            if !is_factor && !is_column && !is_ordered {
                return wrong(
                    key,
                    "gives `levels`, which only columns, factor(), ordered() and relevel() have",
                );
            }
            if kind.is_some() {
                return wrong(key, "gives `levels`, which make it a factor; leave `type` out");
            }
            // More than two are the classes of an outcome without an order.
            let is_outcome =
                is_ordered || matches!(expr, Expr::Call(Function::Factor, _)) && levels.len() > 2;
            return self.check_levels(key, levels, is_outcome);
        }
        if is_factor || is_ordered {
            return wrong(key, "must give `levels`, such as [\"a\", \"b\"]");
        }
        if kind.is_some() && !is_column {
            return wrong(&own("type"), "is for columns; leave it out");
        }
        if kind.is_none() && mean.is_none() {
            let all = "type = \"number\", `levels`, or `mean` and `sd`";
            let wanted = if is_column { all } else { "`mean` and `sd`" };
            return wrong(key, format!("must give {wanted}"));
        }
        Ok(())
    }

    fn check_levels(&self, key: &str, levels: &[String], may_be_many: bool) -> Result<()> {
        let own = format!("{key}.levels");
        if !(2..=MAX_LEVELS).contains(&levels.len()) {
            return wrong(
                &own,
                format!("must be 2 to {MAX_LEVELS} texts, and there are {}", levels.len()),
            );
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = levels.iter().find(|level| !seen.insert(spelled(level))) {
            return wrong(&own, format!("has \"{}\" a second time", clip(twice)));
        }
        let Some(mean) = self.mean.filter(|_| !may_be_many) else { return Ok(()) };
        if levels.len() > 2 {
            return wrong(
                key,
                "has `mean` and `sd` as an outcome has, but more than two levels; only two can be modelled",
            );
        }
        if !(0.0..=1.0).contains(&mean) {
            let message = format!("is the share of the last level, from 0 to 1, but is {mean}");
            return wrong(&format!("{key}.mean"), message);
        }
        Ok(())
    }

    /// As a study file writes it behind the key, lists in lines that can be read.
    fn to_toml(&self) -> String {
        let mut fields = Vec::new();
        let number = |value: f64| format!("{value:?}");
        if self.kind.is_some() {
            fields.push("type = \"number\"".to_string());
        }
        if let Some(levels) = &self.levels {
            fields.push(format!("levels = {}", list(levels.iter().map(|level| quoted(level)))));
        }
        for (name, value) in [("mean", self.mean), ("sd", self.sd)] {
            fields.extend(value.map(|value| format!("{name} = {}", number(value))));
        }
        fields.extend(self.observations.map(|n| format!("observations = {n}")));
        fields.extend(self.range.map(|range| format!("range = {}", list(range.map(number)))));
        if let Some(rows) = &self.coefficients {
            let row = |row: &Vec<f64>| list(row.iter().map(|value| number(*value)));
            fields.push(format!("coefficients = {}", list(rows.iter().map(row))));
        }
        if let Some(knots) = &self.knots {
            fields.push(format!("knots = {}", list(knots.iter().map(|knot| number(*knot)))));
        }
        format!("{{ {} }}", fields.join(", "))
    }
}

fn spline(key: &str, spec: &SplineSpec, range: &[f64; 2], knots: &[f64]) -> Result<()> {
    let [min, max] = *range;
    if !(min < max && (max - min).is_finite()) {
        let message = format!("must be the least and the greatest value, not [{min}, {max}]");
        return wrong(&format!("{key}.range"), message);
    }
    let wanted = spec.interior();
    let named = spec.knots.as_ref().is_some_and(|named| named != knots)
        || spec.boundary.is_some_and(|named| named != *range);
    let within = |knot: &f64| min < *knot && *knot < max;
    let ascend = knots.windows(2).all(|pair| pair[0] < pair[1]);
    if knots.len() != wanted || !knots.iter().all(within) || !ascend || named {
        return wrong(
            &format!("{key}.knots"),
            format!(
                "must be {wanted} numbers that ascend within the range, those of the formula if it names them; write it anew with `consilience schema`"
            ),
        );
    }
    Ok(())
}

fn polynomials(key: &str, degree: u32, range: &[f64; 2], rows: &[Vec<f64>]) -> Result<()> {
    let [min, max] = *range;
    if !(min < max && (max - min).is_finite()) {
        let message = format!("must be the least and the greatest value, not [{min}, {max}]");
        return wrong(&format!("{key}.range"), message);
    }
    let fits = rows.len() == degree as usize
        && rows.iter().enumerate().all(|(i, row)| row.len() == i + 2)
        && rows.iter().flatten().all(|c| c.is_finite());
    if !fits {
        return wrong(
            &format!("{key}.coefficients"),
            format!(
                "must be {degree} lists of finite numbers, of lengths 2 to {}; write it anew with `consilience schema`",
                degree + 1
            ),
        );
    }
    Ok(())
}

/// The widest line of a list.
const WIDTH: usize = 100;

/// A list, in lines that are not too long.
fn list(values: impl IntoIterator<Item = String>) -> String {
    let (mut out, mut width) = (String::from("["), WIDTH / 4);
    for (i, value) in values.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        let length = value.chars().count() + 2;
        if i > 0 && width + length > WIDTH {
            out += "\n  ";
            width = 2;
        } else if i > 0 {
            out.push(' ');
        }
        out += &value;
        width += length;
    }
    out + "]"
}

/// A text in quotes.
fn quoted(text: &str) -> String {
    let json = serde_json::to_string(text).expect("a text is always JSON");
    json.replace('\u{7f}', "\\u007f")
}

impl Codebook {
    /// `[schema]` as it stands in a study file. Numbers have all their digits.
    pub fn to_toml(&self) -> String {
        let mut out = String::from("[schema]\n");
        for (key, entry) in &self.0 {
            let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            let plain = !key.is_empty() && key.chars().all(bare);
            let key = if plain { key.clone() } else { quoted(key) };
            out += &format!("{key} = {}\n", entry.to_toml());
        }
        out
    }
}
