//! How shards agree on a design: levels, scales and polynomials over all of them.

use super::codebook::Codebook;
use super::describe::Request;
use super::effects::Effects;
use super::eval::truth_name;
use super::expr::{Expr, Function, Pairing};
use super::facts::{ColumnFact, Fact, GramFact, LevelCount, Levels, MAX_LEVELS, Moments};
use super::level::spelled;
use super::number::parse_number;
use super::poly::Basis;
use super::recipe::{Recipe, Response, ResponseKind, Variable, columns, true_or_false};
use super::spline::{SplineBasis, SplineSpec, quantiles};
use super::terms::Terms;
use crate::error::{clip, suggestion};
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

    /// Notes which levels are on several shards.
    fn learn_spread(&mut self, requests: &[Request], answers: &[Vec<Fact>]) {
        for (k, request) in requests.iter().enumerate() {
            let mut first: HashMap<&str, usize> = HashMap::new();
            for (shard, facts) in answers.iter().enumerate() {
                let Some(Fact::Levels(levels)) = facts.get(k) else { continue };
                for level in levels.list.iter().filter(|level| level.weight > 0.0) {
                    let known = *first.entry(&level.name).or_insert(shard);
                    if known != shard {
                        let found = (level.name.clone(), known, shard);
                        self.spread.entry(format!("{request:?}")).or_insert(found);
                    }
                }
            }
        }
    }

    /// What varies between groups, with scales settled. Every group must lie on one shard.
    fn effects(&mut self, effects: &Effects) -> Result<Option<Effects>> {
        let group = self.settle(&effects.group)?;
        let levels = match &group {
            Some(group) => self.levels(group)?,
            None => None,
        };
        let slope = match &effects.slope {
            None => Some(None),
            Some(slope) => self.variable(slope)?.map(Some),
        };
        let (Some(group), Some(levels), Some(slope)) = (group, levels, slope) else {
            return Ok(None);
        };
        if levels.too_many {
            return Err(Error::input(format!(
                "{effects}: {group} has more than {MAX_LEVELS} distinct values, too many to see that each lies on one shard; take larger groups"
            )));
        }
        if let Some((level, one, other)) =
            self.spread.get(&format!("{:?}", Request::Levels(group.clone())))
        {
            return Err(Error::input(format!(
                "{effects}: the rows of {group} = \"{level}\" are on shard {one} and on shard {other}, and a group's effects can only be integrated out where all of its rows are; split by the groups, with by = \"column:{group}\" under [split]"
            )));
        }
        let slope = match slope {
            None => None,
            Some(Variable::Number(expr)) => Some(expr),
            Some(_) => {
                return Err(Error::input(format!(
                    "{effects}: only the slope of a number can vary between groups; write (1 | {group}), or a column of 0 and 1 such as I(x == \"a\")"
                )));
            }
        };
        Ok(Some(Effects { slope, group, ..effects.clone() }))
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

    fn variable(&mut self, expr: &Expr) -> Result<Option<Variable>> {
        match expr {
            Expr::Call(Function::Factor, inner) => {
                let Some(inner) = self.settle(inner)? else { return Ok(None) };
                if let Some(stated) = self.codebook.variable(expr, inner.clone()) {
                    return Ok(Some(stated));
                }
                let Some(levels) = self.levels(&inner)? else { return Ok(None) };
                factor(expr, inner, levels).map(Some)
            }
            Expr::Relevel(inner, level) => self.relevelled(expr, inner, level),
            Expr::Cut(_, intervals) => {
                let levels = intervals.names();
                Ok(self.settle(expr)?.map(|expr| Variable::Factor { expr, levels }))
            }
            Expr::Spline(inner, spec) => {
                let Some(inner) = self.settle(inner)? else { return Ok(None) };
                match self.codebook.variable(expr, inner.clone()) {
                    Some(stated) => Ok(Some(stated)),
                    None => self.spline(expr, inner, spec),
                }
            }
            Expr::Poly(inner, degree) => {
                let Some(inner) = self.settle(inner)? else { return Ok(None) };
                match self.codebook.variable(expr, inner.clone()) {
                    Some(stated) => Ok(Some(stated)),
                    None => self.polynomials(expr, inner, *degree),
                }
            }
            _ => match expr.bare() {
                Expr::Column(name) => {
                    if let Some(stated) = self.codebook.variable(expr, expr.clone()) {
                        return Ok(Some(stated));
                    }
                    Ok(match self.column(name)? {
                        None => None,
                        Some(ColumnRole::Number(_)) => Some(Variable::Number(expr.clone())),
                        Some(ColumnRole::Logical(_)) => {
                            Some(Variable::Factor { expr: expr.clone(), levels: true_or_false() })
                        }
                        Some(ColumnRole::Factor(levels)) => {
                            Some(factor(expr, expr.clone(), levels)?)
                        }
                    })
                }
                _ if expr.is_logical() => Ok(self
                    .settle(expr)?
                    .map(|expr| Variable::Factor { expr, levels: true_or_false() })),
                _ => Ok(self.settle(expr)?.map(Variable::Number)),
            },
        }
    }

    /// A factor with this level as its reference.
    fn relevelled(&mut self, whole: &Expr, inner: &Expr, level: &str) -> Result<Option<Variable>> {
        let Some(settled) = self.settle(inner)? else { return Ok(None) };
        if let Some(stated) = self.codebook.variable(whole, settled.clone()) {
            return Ok(Some(stated));
        }
        // Numbers are levels here as they are in factor().
        let stated = match inner.bare() {
            Expr::Column(_) => self.variable(inner)?,
            _ => None,
        };
        let (expr, mut levels) = match stated {
            Some(Variable::Factor { expr, levels }) => (expr, levels),
            None if matches!(inner.bare(), Expr::Column(_)) => return Ok(None),
            _ => {
                let Some(levels) = self.levels(&settled)? else { return Ok(None) };
                match factor(whole, settled, levels)? {
                    Variable::Factor { expr, levels } => (expr, levels),
                    other => return Ok(Some(other)),
                }
            }
        };
        let wanted = super::level::spelled(level);
        let Some(place) = levels.iter().position(|known| *known == wanted) else {
            let known = suggestion(&clip(level), levels.iter().map(String::as_str));
            return Err(Error::input(format!(
                "{whole}: {inner} has no level \"{}\"{known}",
                clip(level)
            )));
        };
        let reference = levels.remove(place);
        levels.insert(0, reference);
        Ok(Some(Variable::Factor { expr, levels }))
    }

    /// A spline over the range of all shards, with knots at quantiles of all of their rows where none are named.
    fn spline(&mut self, whole: &Expr, expr: Expr, spec: &SplineSpec) -> Result<Option<Variable>> {
        let interior = spec.interior();
        let (moments, levels) = match (&spec.knots, spec.boundary) {
            (Some(_), Some(_)) => (None, None),
            (None, _) if interior > 0 => (self.moments(&expr)?, self.levels(&expr)?),
            _ => (self.moments(&expr)?, None),
        };
        let boundary = match (spec.boundary, &moments) {
            (Some(boundary), _) => boundary,
            (None, Some(moments)) => [moments.min, moments.max],
            (None, None) => return Ok(None),
        };
        let [low, high] = boundary;
        let wrong = |message: String| Err(Error::input(format!("{whole} {message}")));
        if !(low < high && (high - low).is_finite()) {
            return wrong(format!(
                "is not possible: {expr} is the same in all rows, or too large; leave it out"
            ));
        }
        let knots = match &spec.knots {
            Some(knots) => knots.clone(),
            None if interior == 0 => Vec::new(),
            None => {
                let Some(levels) = levels else { return Ok(None) };
                let middle = moments.map_or((low + high) / 2.0, |m| m.mean);
                let advice = format!(
                    "name the knots, as in {}({expr}, knots = {})",
                    spec.name(),
                    super::number::r_number(libm::round(middle * 1e3) / 1e3)
                );
                if levels.too_many {
                    return wrong(format!(
                        "takes its knots from the distinct values of {expr}, of which there are more than {MAX_LEVELS}; {advice}"
                    ));
                }
                let value = |level: &LevelCount| {
                    let number = level.number.or_else(|| parse_number(&level.name))?;
                    (low..=high).contains(&number).then_some((number, level.weight))
                };
                let mut values: Vec<(f64, f64)> = levels.list.iter().filter_map(value).collect();
                values.sort_by(|a, b| a.0.total_cmp(&b.0));
                let knots = quantiles(&values, interior);
                let ascend = knots.windows(2).all(|pair| pair[0] < pair[1]);
                if !ascend || knots.iter().any(|k| *k <= low || *k >= high) {
                    return wrong(format!(
                        "is not possible: {expr} has so many equal values that knots at its quantiles coincide; take a lower df, or {advice}"
                    ));
                }
                knots
            }
        };
        if let Some(knot) = knots.iter().find(|k| **k <= low || **k >= high) {
            return wrong(format!(
                "has a knot at {} that is not between the least and the greatest value, {} and {}; leave it out, or give wider Boundary.knots",
                super::number::r_number(*knot),
                super::number::r_number(low),
                super::number::r_number(high)
            ));
        }
        let basis = SplineBasis::new(spec, boundary, knots);
        Ok(Some(Variable::Spline { expr, basis }))
    }

    fn polynomials(&mut self, whole: &Expr, expr: Expr, degree: u32) -> Result<Option<Variable>> {
        let Some(moments) = self.moments(&expr)? else { return Ok(None) };
        let (min, max) = (moments.min, moments.max);
        let too_few = |distinct: usize| {
            Err(Error::input(format!(
                "{whole} needs more than {degree} distinct values, but {expr} has {distinct}; take a lower degree, or factor({expr})"
            )))
        };
        if min == max {
            return too_few(usize::from(moments.rows > 0));
        }
        let request = Request::Gram { expr: expr.clone(), degree, min, max };
        let GramFact { sums, distinct, enough } = match self.fact(request) {
            Some(Fact::Gram(fact)) => fact,
            other => return not_that(other),
        };
        if !enough {
            return too_few(distinct.len());
        }
        match Basis::new(&sums, min, max) {
            Some(basis) => Ok(Some(Variable::Poly { expr, basis })),
            None => Err(Error::input(format!(
                "{whole} cannot be computed accurately: the values of {expr} lie too unevenly for this degree; take a lower one, or poly(log({expr}), {degree})"
            ))),
        }
    }

    fn response(&mut self, expr: &Expr) -> Result<Option<Response>> {
        let text = expr.to_string();
        let inner = if let Expr::Call(Function::Factor, inner) = expr { &**inner } else { expr };
        if let Some(settled) = self.settle(inner)?
            && let Some(stated) = self.codebook.response(expr, settled)?
        {
            return Ok(Some(stated));
        }
        match expr {
            Expr::Pairing(..) => return self.joint(text, expr),
            Expr::Ordered(..) | Expr::Unordered(_) => return self.with_levels(text, expr),
            _ => {}
        }
        let classes = |inner: Expr, levels: Levels| classes(&text, inner, levels).map(Some);
        if let Expr::Call(Function::Factor, inner) = expr {
            let Some(inner) = self.settle(inner)? else { return Ok(None) };
            return match self.levels(&inner)? {
                Some(levels) => classes(inner, levels),
                None => Ok(None),
            };
        }
        if let Expr::Column(name) = expr.bare() {
            return match self.column(name)? {
                None => Ok(None),
                Some(ColumnRole::Number(moments)) => {
                    let number = ResponseKind::Number;
                    Response::new(text, number, expr.clone(), moments).map(Some)
                }
                Some(ColumnRole::Factor(levels)) => classes(expr.clone(), levels),
                Some(ColumnRole::Logical(levels)) => {
                    let moments = two_valued(&levels, Some(truth_name(true)));
                    let kind = ResponseKind::Classes { levels: true_or_false() };
                    Response::new(text, kind, expr.clone(), moments).map(Some)
                }
            };
        }
        let Some(settled) = self.settle(expr)? else { return Ok(None) };
        let Some(moments) = self.moments(&settled)? else { return Ok(None) };
        let kind = if expr.is_logical() {
            ResponseKind::Classes { levels: true_or_false() }
        } else {
            ResponseKind::Number
        };
        Response::new(text, kind, settled, moments).map(Some)
    }

    /// Successes out of trials, or times.
    fn joint(&mut self, text: String, expr: &Expr) -> Result<Option<Response>> {
        let Some(settled) = self.settle(expr)? else { return Ok(None) };
        let Expr::Pairing(joint, first, second) = &settled else { return Ok(None) };
        // Both are asked in the same round.
        let is_count = matches!(joint, Pairing::Counts | Pairing::Trials);
        let own = self.moments(first)?;
        let other = if is_count { self.moments(second)? } else { own };
        let (Some(mut own), Some(other)) = (own, other) else { return Ok(None) };
        if is_count && own.rows > 0 {
            let all = if *joint == Pairing::Counts { own.mean + other.mean } else { other.mean };
            let share = if all > 0.0 { (own.mean / all).clamp(0.0, 1.0) } else { 0.0 };
            let spread = share * (1.0 - share);
            (own.mean, own.m2) = (share, spread * (own.weight - 1.0).max(0.0));
        }
        Response::new(text, ResponseKind::Pairing, settled, own).map(Some)
    }

    /// Classes, in order or without one.
    fn with_levels(&mut self, text: String, expr: &Expr) -> Result<Option<Response>> {
        let Some(settled) = self.settle(expr)? else { return Ok(None) };
        let (inner, stated) = match &settled {
            Expr::Ordered(inner, stated) => (inner, stated.as_slice()),
            Expr::Unordered(inner) => (inner, &[][..]),
            _ => return Ok(None),
        };
        let Some(found) = self.levels(inner)? else { return Ok(None) };
        leveled(text, settled.clone(), &inner.to_string(), stated, &found).map(Some)
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

fn refuse_too_many(text: &str, levels: &Levels) -> Result<()> {
    if levels.too_many {
        return Err(Error::input(format!(
            "{text} has more than {MAX_LEVELS} distinct values, too many for a factor; leave it out, or group the values"
        )));
    }
    Ok(())
}

fn factor(whole: &Expr, expr: Expr, levels: Levels) -> Result<Variable> {
    refuse_too_many(&whole.to_string(), &levels)?;
    match levels.list.as_slice() {
        [] => Err(Error::input(format!("{whole} has no values: all shards are empty"))),
        [only] => Err(Error::input(format!(
            "{whole} is \"{}\" in all rows, but a factor needs two levels or more; leave it out of the formula",
            only.name
        ))),
        _ => Ok(Variable::Factor { expr, levels: levels.names() }),
    }
}

/// The moments of 1 for the level of this name, if there is one, and 0 for the others.
fn two_valued(levels: &Levels, success: Option<&str>) -> Moments {
    let rows = levels.list.iter().map(|l| l.rows).sum();
    let weight: f64 = levels.list.iter().map(|l| l.weight).sum();
    let hit = levels.list.iter().find(|l| Some(l.name.as_str()) == success);
    let hits = hit.map_or(0.0, |l| l.weight);
    if rows == 0 {
        return Moments::default();
    }
    let mean = hits / weight;
    Moments {
        rows,
        weight,
        mean,
        m2: hits * (weight - hits) / weight,
        min: f64::from(hits == weight),
        max: f64::from(hits > 0.0),
    }
}

/// The most classes: beyond, an outcome is better taken as a number.
const MAX_CLASSES: usize = 50;

/// Classes with the order that is stated, or that of numbers; those without one as they are listed.
fn leveled(
    text: String,
    expr: Expr,
    inner: &str,
    stated: &[String],
    found: &Levels,
) -> Result<Response> {
    refuse_too_many(&text, found)?;
    let quoted = |name: &String| format!("\"{name}\"");
    let names: Vec<String> = found.names();
    let is_truth = names.iter().all(|n| n == truth_name(true) || n == truth_name(false));
    let numbers = found.list.iter().all(|level| level.number.is_some());
    let levels: Vec<String> = if !stated.is_empty() {
        stated.iter().map(|level| spelled(level).into_owned()).collect()
    } else if numbers || is_truth || matches!(expr, Expr::Unordered(_)) {
        names.clone()
    } else {
        let shown: Vec<String> = names.iter().take(10).map(quoted).collect();
        return Err(Error::input(format!(
            "nothing says in which order the classes of {inner} are; write them from the lowest up, as in ordered({inner}, levels = c({}))",
            shown.join(", ")
        )));
    };
    if let Some(other) = names.iter().find(|name| !levels.contains(name)) {
        return Err(Error::input(format!(
            "{inner} is \"{other}\" in some row, which is not among the levels that ordered() states; add it, or mend the value"
        )));
    }
    let count = |level: &String| found.list.iter().find(|l| l.name == *level);
    if let Some(never) = levels.iter().find(|level| count(level).is_none()) {
        return Err(Error::input(format!(
            "no row of any shard has {inner} = \"{never}\", so that nothing is known about it; leave the level out of ordered()"
        )));
    }
    if !(2..=MAX_CLASSES).contains(&levels.len()) {
        return Err(Error::input(format!(
            "{inner} has {} classes, and there must be 2 to {MAX_CLASSES} of them; take family = \"gaussian\" for numbers, or group the classes",
            levels.len()
        )));
    }
    let weights: Vec<f64> = levels.iter().filter_map(count).map(|l| l.weight).collect();
    let weight: f64 = weights.iter().sum();
    let at = || weights.iter().enumerate().map(|(k, w)| (k as f64, *w));
    let mean = at().map(|(k, w)| k * w).sum::<f64>() / weight;
    let m2 = at().map(|(k, w)| w * (k - mean) * (k - mean)).sum();
    let moments = Moments::of_sums(weight, mean, m2);
    Response::new(text, ResponseKind::Levels { levels }, expr, moments)
}

fn classes(text: &str, expr: Expr, levels: Levels) -> Result<Response> {
    refuse_too_many(text, &levels)?;
    let names = levels.names();
    if names.len() > 2 {
        let mut shown: Vec<String> = names.iter().take(10).map(|n| format!("\"{n}\"")).collect();
        if names.len() > 10 {
            shown.push("…".to_string());
        }
        return Err(Error::input(format!(
            "the outcome {text} has {} classes ({}), but only two can be modelled; write which one counts as success, as in I({text} == {}), or use family = \"multinomial\", or \"cumulative-logit\" if they are in order",
            names.len(),
            shown.join(", "),
            shown[0]
        )));
    }
    let moments = two_valued(&levels, names.get(1).map(String::as_str));
    Response::new(text.to_string(), ResponseKind::Classes { levels: names }, expr, moments)
}
