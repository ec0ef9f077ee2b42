//! What outcomes are over all shards: numbers, two classes or several, pairs.

use super::variables::refuse_too_many;
use super::{ColumnRole, SchemaAgreement};
use crate::data::eval::truth_name;
use crate::data::expr::{Expr, Function, Pairing};
use crate::data::facts::{Levels, Moments};
use crate::data::level::spelled;
use crate::data::recipe::{Response, ResponseKind, true_or_false};
use crate::{Error, Result};

impl SchemaAgreement<'_> {
    pub(super) fn response(&mut self, expr: &Expr) -> Result<Option<Response>> {
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
    pub(super) fn joint(&mut self, text: String, expr: &Expr) -> Result<Option<Response>> {
        let Some(settled) = self.settle(expr)? else { return Ok(None) };
        let Expr::Pairing(joint, first, second) = &settled else { return Ok(None) };
        // Both are asked in the same round.
        let is_count = joint.is_count();
        let own = self.moments(match joint {
            // Neither bound alone says how long these times are.
            Pairing::Interval | Pairing::Interval2 => &settled,
            _ => first,
        })?;
        let other = if is_count { self.moments(second)? } else { own };
        let (Some(mut own), Some(other)) = (own, other) else { return Ok(None) };
        if is_count && own.rows > 0 {
            let all = if *joint == Pairing::Counts { own.mean + other.mean } else { other.mean };
            // Beyond 0 and 1 some row is wrong, which its shard will say.
            let share = if all > 0.0 { own.mean / all } else { 0.0 };
            // Every trial is an observation.
            own.weight = nearly_whole(own.weight * all);
            (own.mean, own.m2) = (share, (share * (1.0 - share)).max(0.0) * own.weight);
        }
        Response::new(text, ResponseKind::Pairing, settled, own).map(Some)
    }

    /// Classes, in order or without one.
    pub(super) fn with_levels(&mut self, text: String, expr: &Expr) -> Result<Option<Response>> {
        let Some(settled) = self.settle(expr)? else { return Ok(None) };
        let (inner, stated) = match &settled {
            Expr::Ordered(inner, stated) => (inner, stated.as_slice()),
            Expr::Unordered(inner) => (inner, &[][..]),
            _ => return Ok(None),
        };
        let Some(found) = self.levels(inner)? else { return Ok(None) };
        leveled(text, settled.clone(), &inner.to_string(), stated, &found).map(Some)
    }
}

/// The number without what rounding has made of a whole one.
fn nearly_whole(x: f64) -> f64 {
    let whole = x.round();
    if (x - whole).abs() <= 1e-9 * x.abs() { whole } else { x }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rounding_is_rounded_away() {
        for (x, rounded) in [
            (1_234_567.0 * (1.0 / 3.0) * 3.0, 1_234_567.0),
            (49.999_999_999_999_9, 50.0),
            (4.5, 4.5),
            (0.3, 0.3),
            (1e-12, 1e-12),
            (0.0, 0.0),
        ] {
            assert_eq!(nearly_whole(x), rounded);
        }
    }
}
