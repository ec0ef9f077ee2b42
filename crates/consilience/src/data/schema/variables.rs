//! What formulas make of columns: numbers, factors, polynomials and splines.

use super::{ColumnRole, SchemaAgreement, not_that};
use crate::data::describe::Request;
use crate::data::expr::{Expr, Function};
use crate::data::facts::{Fact, GramFact, LevelCount, Levels, MAX_LEVELS};
use crate::data::level::spelled;
use crate::data::number::parse_number;
use crate::data::number::r_number;
use crate::data::poly::Basis;
use crate::data::recipe::{Variable, true_or_false};
use crate::data::spline::{SplineBasis, SplineSpec, quantiles};
use crate::error::{clip, suggestion};
use crate::{Error, Result};

impl SchemaAgreement<'_> {
    pub(super) fn variable(&mut self, expr: &Expr) -> Result<Option<Variable>> {
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
    pub(super) fn relevelled(
        &mut self,
        whole: &Expr,
        inner: &Expr,
        level: &str,
    ) -> Result<Option<Variable>> {
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
        let wanted = spelled(level);
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
    pub(super) fn spline(
        &mut self,
        whole: &Expr,
        expr: Expr,
        spec: &SplineSpec,
    ) -> Result<Option<Variable>> {
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
                    r_number(libm::round(middle * 1e3) / 1e3)
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
                r_number(*knot),
                r_number(low),
                r_number(high)
            ));
        }
        let basis = SplineBasis::new(spec, boundary, knots);
        Ok(Some(Variable::Spline { expr, basis }))
    }

    pub(super) fn polynomials(
        &mut self,
        whole: &Expr,
        expr: Expr,
        degree: u32,
    ) -> Result<Option<Variable>> {
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
}

pub(super) fn refuse_too_many(text: &str, levels: &Levels) -> Result<()> {
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
