//! How shards agree on a design: levels, scales and polynomials over all of them.

mod groups;
mod outcome;
mod variables;

use super::codebook::Codebook;
use super::describe::Request;
use super::expr::{Expr, Function};
use super::facts::{ColumnFact, Fact, Levels, Moments};
use super::recipe::{Recipe, Variable, columns};
use super::terms::Terms;
use crate::{Error, Place, Result};
use std::collections::HashMap;

/// Poses the requests to every shard and returns one list of facts per shard, in the shards'
/// order.
pub type Ask<'a> = dyn FnMut(&[Request]) -> Result<Vec<Vec<Fact>>> + 'a;

/// Agrees on the recipes of several formulas over all shards. All formulas share the rounds of
/// questions, and there are no more rounds than the deepest nesting of `scale()` and `poly()`
/// needs: one for plain columns.
pub fn agree(terms: &[Terms], weights: Option<&str>, ask: &mut Ask<'_>) -> Result<Vec<Recipe>> {
    agree_or_blame(terms, weights, &Codebook::default(), ask, &|_, error| error)
}

/// The same; shards are asked only about what the codebook does not state, and `blame` may add to an error
/// which formula, by its number, it is about.
pub(crate) fn agree_or_blame(
    terms: &[Terms],
    weights: Option<&str>,
    codebook: &Codebook,
    ask: &mut Ask<'_>,
    blame: &dyn Fn(usize, Error) -> Error,
) -> Result<Vec<Recipe>> {
    let mut agreement = SchemaAgreement {
        codebook,
        facts: HashMap::new(),
        wanted: Vec::new(),
        spread: HashMap::new(),
    };
    loop {
        // Every round tries anew with the facts known by then, and notes what is missing.
        let mut recipes = Vec::with_capacity(terms.len());
        for (i, terms) in terms.iter().enumerate() {
            recipes.push(agreement.recipe(terms, weights).map_err(|error| blame(i, error))?);
        }
        if agreement.wanted.is_empty() {
            let finished: Option<Vec<Recipe>> = recipes.into_iter().collect();
            return Ok(finished.expect("a recipe that is not finished wants facts"));
        }
        let requests = std::mem::take(&mut agreement.wanted);
        let answers = ask(&requests)?;
        agreement.learn(&requests, answers)?;
    }
}

/// What the shards have agreed on so far. In all methods `None` means: not known yet, asked for.
struct SchemaAgreement<'a> {
    /// What is settled without them.
    codebook: &'a Codebook,
    /// The facts, by the request as text; none yet if it has only been asked for.
    facts: HashMap<String, Option<Fact>>,
    wanted: Vec<Request>,
    /// A level that two shards have, and these, by the request as text.
    spread: HashMap<String, (String, usize, usize)>,
}

/// What a column is over all shards.
enum ColumnRole {
    Number(Moments),
    Factor(Levels),
    Logical(Levels),
}

impl SchemaAgreement<'_> {
    fn learn(&mut self, requests: &[Request], answers: Vec<Vec<Fact>>) -> Result<()> {
        if answers.is_empty() {
            return Err(Error::input("there are no shards to ask"));
        }
        self.learn_spread(requests, &answers);
        let mut merged: Vec<Option<Fact>> = vec![None; requests.len()];
        for facts in answers {
            if facts.len() != requests.len() {
                return Err(Error::input(format!(
                    "a shard gave {} answers to {} questions; do all shards run the same version?",
                    facts.len(),
                    requests.len()
                )));
            }
            for (known, fact) in merged.iter_mut().zip(facts) {
                *known = Some(match known.take() {
                    Some(known) => known.merge(fact)?,
                    None => fact,
                });
            }
        }
        for (request, fact) in requests.iter().zip(merged) {
            self.facts.insert(format!("{request:?}"), fact);
        }
        Ok(())
    }

    fn fact(&mut self, request: Request) -> Option<Fact> {
        let key = format!("{request:?}");
        match self.facts.get(&key) {
            Some(known) => known.clone(),
            None => {
                self.facts.insert(key, None);
                self.wanted.push(request);
                None
            }
        }
    }

    fn moments(&mut self, expr: &Expr) -> Result<Option<Moments>> {
        match self.fact(Request::Moments(expr.clone())) {
            Some(Fact::Moments(moments)) => Ok(Some(moments)),
            other => not_that(other),
        }
    }

    fn levels(&mut self, expr: &Expr) -> Result<Option<Levels>> {
        match self.fact(Request::Levels(expr.clone())) {
            Some(Fact::Levels(levels)) => Ok(Some(levels)),
            other => not_that(other),
        }
    }

    /// What a column is: numbers if all of its values are, true or false likewise, else a factor;
    /// but numbers with a few words among them are a mistake.
    fn column(&mut self, name: &str) -> Result<Option<ColumnRole>> {
        let fact = match self.fact(Request::Column(name.to_string())) {
            Some(Fact::Column(fact)) => fact,
            other => return not_that(other),
        };
        let ColumnFact { numbers, unlisted, words, logical, levels, first_word } = fact;
        if words == 0 {
            return Ok(Some(ColumnRole::Number(numbers)));
        }
        if logical == words && numbers.rows == 0 {
            return Ok(Some(ColumnRole::Logical(levels)));
        }
        if let Some(word) = first_word.filter(|_| numbers.rows > words) {
            let message = format!(
                "the value is \"{}\", but the column holds numbers in {} of {} rows; mend the value, or write factor({name}) in the formula if these are labels, or na = [{:?}] under [data] if that stands for a missing value",
                word.value,
                numbers.rows,
                numbers.rows + words,
                word.value
            );
            // Shards give places ready to be shown.
            return Err(Error::input_at(Place::file(word.place), message));
        }
        if unlisted > 0 {
            // Some shard read the column as numbers: it has to spell them out as levels.
            return Ok(self.levels(&Expr::Column(name.to_string()))?.map(ColumnRole::Factor));
        }
        Ok(Some(ColumnRole::Factor(levels)))
    }

    /// The expression with every `scale()` inside it settled.
    fn settle(&mut self, expr: &Expr) -> Result<Option<Expr>> {
        Ok(match expr {
            Expr::Number(_) | Expr::Text(_) | Expr::Logical(_) | Expr::Column(_) => {
                Some(expr.clone())
            }
            Expr::Scaled { .. } | Expr::Poly(..) | Expr::Relevel(..) | Expr::Spline(..) => {
                Some(expr.clone())
            }
            Expr::Cut(inner, intervals) => {
                self.settle(inner)?.map(|e| Expr::Cut(Box::new(e), intervals.clone()))
            }
            Expr::Unordered(inner) => self.settle(inner)?.map(|e| Expr::Unordered(Box::new(e))),
            Expr::Ordered(inner, levels) => {
                self.settle(inner)?.map(|e| Expr::Ordered(Box::new(e), levels.clone()))
            }
            Expr::Pairing(joint, left, right) => {
                let (left, right) = (self.settle(left)?, self.settle(right)?);
                left.zip(right).map(|(l, r)| Expr::Pairing(*joint, Box::new(l), Box::new(r)))
            }
            Expr::Paren(inner) => self.settle(inner)?.map(|e| Expr::Paren(Box::new(e))),
            Expr::Unary(op, inner) => self.settle(inner)?.map(|e| Expr::Unary(*op, Box::new(e))),
            Expr::Binary(op, left, right) => {
                // Both sides are tried, so that both ask in the same round.
                let (left, right) = (self.settle(left)?, self.settle(right)?);
                left.zip(right).map(|(l, r)| Expr::Binary(*op, Box::new(l), Box::new(r)))
            }
            Expr::Call(Function::Scale, inner) => {
                let Some(inner) = self.settle(inner)? else { return Ok(None) };
                if let Some((mean, sd)) = self.codebook.scale(&inner.to_string())? {
                    return Ok(Some(Expr::Scaled { expr: Box::new(inner), mean, sd }));
                }
                let Some(moments) = self.moments(&inner)? else { return Ok(None) };
                let (mean, sd) = (moments.mean, moments.sd());
                if moments.rows > 0 && moments.min == moments.max {
                    return Err(Error::input(format!(
                        "{expr} is not possible: {inner} is the same ({}) in all rows; leave it out",
                        super::number::r_number(moments.min)
                    )));
                }
                // Without rows the outcome says so; here nothing must divide by 0.
                let sd = if moments.rows == 0 { 1.0 } else { sd };
                if !(mean.is_finite() && sd.is_finite() && sd > 0.0) {
                    return Err(Error::input(format!(
                        "{expr} is not possible: the values of {inner} are too large or too small to compute with; write {inner} in other units"
                    )));
                }
                Some(Expr::Scaled { expr: Box::new(inner), mean, sd })
            }
            Expr::Call(function, inner) => {
                self.settle(inner)?.map(|e| Expr::Call(*function, Box::new(e)))
            }
        })
    }

    fn recipe(&mut self, terms: &Terms, weights: Option<&str>) -> Result<Option<Recipe>> {
        // Everything is tried before anything is given up, so that all ask in the same round.
        let response = self.response(&terms.response)?;
        let mut variables = Vec::with_capacity(terms.variables.len());
        for expr in &terms.variables {
            variables.push(self.variable(expr)?);
        }
        let mut offsets = Vec::with_capacity(terms.offsets.len());
        for expr in &terms.offsets {
            offsets.push(self.settle(expr)?);
        }
        let effects = match &terms.effects {
            None => Some(None),
            Some(effects) => self.effects(effects)?.map(Some),
        };
        let variables: Option<Vec<Variable>> = variables.into_iter().collect();
        let offsets: Option<Vec<Expr>> = offsets.into_iter().collect();
        let (Some(response), Some(variables), Some(offsets), Some(effects)) =
            (response, variables, offsets, effects)
        else {
            return Ok(None);
        };
        let columns = columns(terms, &variables)?;
        let weights = weights.map(str::to_string);
        Ok(Some(Recipe { response, variables, columns, offsets, weights, effects }))
    }
}

/// Not answered yet, or answered with something else than was asked.
fn not_that<T>(fact: Option<Fact>) -> Result<Option<T>> {
    match fact {
        None => Ok(None),
        Some(_) => Err(Error::input(
            "a shard answered another question than was asked; do all shards run the same version?",
        )),
    }
}
