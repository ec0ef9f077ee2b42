//! Functions that make several columns, or levels, of one: their arguments, by place or by name.

use super::super::cut::Intervals;
use super::super::expr::{Expr, Function, Unary};
use super::super::spline::{MAX_DEGREE, MAX_KNOTS, SplineSpec};
use super::SyntaxFault;
use super::lower::{Lowered, MAX_POWER, expr, number_needed};
use super::parser::{Node, NodeKind};

/// The functions that can only be a term by themselves.
pub(super) const WHOLE: [&str; 7] = ["poly", "factor", "offset", "relevel", "cut", "bs", "ns"];

/// A call's arguments, each in the place of its name; R lets a name be begun only.
pub(super) struct Arguments<'a> {
    call: &'a str,
    at: usize,
    names: &'static [&'static str],
    values: Vec<Option<&'a Node>>,
}

impl<'a> Arguments<'a> {
    /// Of a function that has these, in this order.
    pub fn new(
        call: &'a str,
        at: usize,
        given: &'a [Node],
        names: &'static [&'static str],
    ) -> Lowered<Arguments<'a>> {
        let mut values: Vec<Option<&Node>> = vec![None; names.len()];
        let listed = || names.join(", ");
        for node in given {
            let NodeKind::Named(name, value) = &node.kind else { continue };
            let exact = names.iter().position(|n| n == name);
            let mut begun = names.iter().enumerate().filter(|(_, n)| n.starts_with(name.as_str()));
            let place = exact.or_else(|| match (begun.next(), begun.next()) {
                (Some((i, _)), None) => Some(i),
                _ => None,
            });
            let Some(place) = place else {
                let message =
                    format!("{call}() has no argument `{name}` here; it has {}", listed());
                return Err(SyntaxFault::new(node.at, message));
            };
            if values[place].replace(value).is_some() {
                let message = format!("{call}() is given `{}` twice", names[place]);
                return Err(SyntaxFault::new(node.at, message));
            }
        }
        for node in given.iter().filter(|node| !matches!(node.kind, NodeKind::Named(..))) {
            let Some(free) = values.iter_mut().find(|value| value.is_none()) else {
                let message = format!("{call}() is given too many arguments; it has {}", listed());
                return Err(SyntaxFault::new(node.at, message));
            };
            *free = Some(node);
        }
        Ok(Arguments { call, at, names, values })
    }

    pub fn get(&self, name: &str) -> Option<&'a Node> {
        let place = self.names.iter().position(|n| *n == name)?;
        self.values[place]
    }

    fn needed(&self, name: &str, example: &str) -> Lowered<&'a Node> {
        self.get(name).ok_or_else(|| {
            let message = format!("{}() needs `{name}`, as in {example}", self.call);
            SyntaxFault::new(self.at, message)
        })
    }

    fn refuse(&self, name: &str, advice: &str) -> Lowered<()> {
        match self.get(name) {
            None => Ok(()),
            Some(node) => {
                let message = format!("`{name}` of {}() is not supported; {advice}", self.call);
                Err(SyntaxFault::new(node.at, message))
            }
        }
    }

    fn flag(&self, name: &str, default: bool) -> Lowered<bool> {
        match self.get(name).map(|node| (&node.kind, node.at)) {
            None => Ok(default),
            Some((NodeKind::Logical(value), _)) => Ok(*value),
            Some((_, at)) => Err(SyntaxFault::new(at, format!("`{name}` must be TRUE or FALSE"))),
        }
    }

    fn whole(&self, name: &str, range: std::ops::RangeInclusive<u32>) -> Lowered<Option<u32>> {
        let Some(node) = self.get(name) else { return Ok(None) };
        match number(node) {
            Some(v)
                if v.fract() == 0.0
                    && (f64::from(*range.start())..=f64::from(*range.end())).contains(&v) =>
            {
                Ok(Some(v as u32))
            }
            _ => {
                let message = format!(
                    "`{name}` of {}() must be a whole number from {} to {}",
                    self.call,
                    range.start(),
                    range.end()
                );
                Err(SyntaxFault::new(node.at, message))
            }
        }
    }

    /// Numbers in ascending order: one, or several in `c()`.
    fn numbers(&self, name: &str) -> Lowered<Option<Vec<f64>>> {
        let Some(node) = self.get(name) else { return Ok(None) };
        let wrong = |at: usize| {
            let message =
                format!("`{name}` of {}() must be numbers, as in {name} = c(10, 20)", self.call);
            SyntaxFault::new(at, message)
        };
        let mut found = Vec::new();
        for part in parts(node) {
            let value = number(part).filter(|v| !v.is_nan()).ok_or_else(|| wrong(part.at))?;
            found.push(value);
        }
        if let Some(i) = found.windows(2).position(|pair| pair[0] >= pair[1]) {
            let message =
                format!("`{name}` of {}() must ascend, and no two may be the same", self.call);
            return Err(SyntaxFault::new(parts(node)[i + 1].at, message));
        }
        Ok(Some(found))
    }
}

/// The elements of `c()`, or the node itself.
fn parts(node: &Node) -> &[Node] {
    match &node.kind {
        NodeKind::Call(name, elements) if name == "c" => elements,
        _ => std::slice::from_ref(node),
    }
}

/// A number with its sign.
fn number(node: &Node) -> Option<f64> {
    match &node.kind {
        NodeKind::Number(value) => Some(*value),
        NodeKind::Unary(Unary::Minus, inner) => number(inner).map(|v| -v),
        NodeKind::Unary(Unary::Plus, inner) | NodeKind::Paren(inner) => number(inner),
        _ => None,
    }
}

/// `relevel(x, ref = "b")`.
pub(super) fn relevel(at: usize, given: &[Node]) -> Lowered<Expr> {
    let example = "relevel(arm, ref = \"placebo\")";
    let arguments = Arguments::new("relevel", at, given, &["x", "ref"])?;
    let (x, level) = (arguments.needed("x", example)?, arguments.needed("ref", example)?);
    let level = match &level.kind {
        NodeKind::Text(text) => text.clone(),
        _ => match number(level) {
            // The level of a factor of numbers.
            Some(value) => super::super::number::level_name(value),
            None => {
                let message = format!("`ref` must be a level in quotes, as in {example}");
                return Err(SyntaxFault::new(level.at, message));
            }
        },
    };
    let x = match &x.kind {
        NodeKind::Call(name, inner) if name == "factor" => match inner.as_slice() {
            [inner] => expr(inner)?,
            _ => return Err(SyntaxFault::new(x.at, "factor() takes one argument here")),
        },
        _ => expr(x)?,
    };
    Ok(Expr::Relevel(Box::new(x), level))
}

/// `cut(x, breaks = c(0, 10, 20))`.
pub(super) fn cut(at: usize, given: &[Node]) -> Lowered<Expr> {
    let example = "cut(age, breaks = c(0, 40, 60, Inf))";
    let names = &["x", "breaks", "labels", "include.lowest", "right", "dig.lab", "ordered_result"];
    let arguments = Arguments::new("cut", at, given, names)?;
    let x = arguments.needed("x", example)?;
    number_needed(x, "cut()")?;
    let node = arguments.needed("breaks", example)?;
    arguments.refuse("dig.lab", "give `labels`, as in labels = c(\"low\", \"high\")")?;
    if arguments.flag("ordered_result", false)? {
        arguments.refuse("ordered_result", "the intervals are levels of a factor; leave it out")?;
    }
    let breaks = arguments.numbers("breaks")?.unwrap_or_default();
    if breaks.len() < 2 {
        let message = format!(
            "a number of intervals would take them from the data of one shard; name the ends, as in {example}"
        );
        return Err(SyntaxFault::new(node.at, message));
    }
    if breaks.len() == 2 {
        let message =
            "two breaks make one interval, and a factor needs two levels or more; name a third";
        return Err(SyntaxFault::new(node.at, message));
    }
    let labels = match arguments.get("labels") {
        None => None,
        Some(node) => {
            let text = |part: &Node| match &part.kind {
                NodeKind::Text(text) => Ok(text.clone()),
                NodeKind::Logical(false) => Err(SyntaxFault::new(
                    part.at,
                    "labels = FALSE makes numbers of intervals, which is not supported; give names, as in labels = c(\"low\", \"high\"), or leave it out",
                )),
                _ => Err(SyntaxFault::new(part.at, "`labels` must be texts in quotes")),
            };
            let labels = parts(node).iter().map(text).collect::<Lowered<Vec<String>>>()?;
            let distinct: std::collections::HashSet<&String> = labels.iter().collect();
            if labels.len() + 1 != breaks.len() || distinct.len() != labels.len() {
                let message = format!(
                    "{} breaks make {} intervals, each of which needs a label of its own, and there are {}",
                    breaks.len(),
                    breaks.len() - 1,
                    distinct.len()
                );
                return Err(SyntaxFault::new(node.at, message));
            }
            Some(labels)
        }
    };
    let intervals = Intervals {
        breaks,
        labels,
        right: arguments.flag("right", true)?,
        include_lowest: arguments.flag("include.lowest", false)?,
    };
    Ok(Expr::Cut(Box::new(expr(x)?), intervals))
}

/// `bs(x, df = 5)`, `ns(x, knots = c(10, 20))`.
pub(super) fn spline(name: &str, at: usize, given: &[Node]) -> Lowered<Expr> {
    let natural = name == "ns";
    let example = if natural { "ns(age, df = 4)" } else { "bs(age, df = 5)" };
    let names: &[&str] = match natural {
        true => &["x", "df", "knots", "intercept", "Boundary.knots"],
        false => &["x", "df", "knots", "degree", "intercept", "Boundary.knots"],
    };
    let arguments = Arguments::new(name, at, given, names)?;
    let x = arguments.needed("x", example)?;
    number_needed(x, &format!("{name}()"))?;
    let degree = if natural { None } else { arguments.whole("degree", 1..=MAX_DEGREE)? };
    let knots = arguments.numbers("knots")?;
    let boundary = match arguments.numbers("Boundary.knots")? {
        None => None,
        Some(ends) => match ends[..] {
            [low, high] if low.is_finite() && high.is_finite() => Some([low, high]),
            _ => {
                let message =
                    "`Boundary.knots` must be two finite numbers, as in Boundary.knots = c(0, 100)";
                return Err(SyntaxFault::new(at, message));
            }
        },
    };
    let df = arguments.whole("df", 1..=MAX_KNOTS as u32)?;
    let intercept = arguments.flag("intercept", false)?;
    let degree = degree.unwrap_or(3);
    let spec = SplineSpec { natural, degree, df, knots, boundary, intercept };
    let fault = |message: String| Err(SyntaxFault::new(at, message));
    if let Some(knots) = &spec.knots {
        if df.is_some_and(|df| df as usize != spec.columns()) {
            return fault(format!(
                "`df` and `knots` of {name}() contradict each other: these knots make {} columns; leave `df` out",
                spec.columns()
            ));
        }
        let outside = |knot: &f64| boundary.is_some_and(|[a, b]| *knot <= a || *knot >= b);
        if knots.len() > MAX_KNOTS || knots.iter().any(|k| !k.is_finite() || outside(k)) {
            return fault(format!(
                "the knots of {name}() must be finite, within the boundary, and {MAX_KNOTS} at most"
            ));
        }
    } else if let Some(df) = df.filter(|df| (*df as usize) < spec.least()) {
        return fault(format!(
            "{name}() of this degree has {} columns at least, and df is {df}",
            spec.least()
        ));
    }
    // Once the knots are named, their number says no more.
    let df = if spec.knots.is_some() { None } else { df };
    Ok(Expr::Spline(Box::new(expr(x)?), SplineSpec { df, ..spec }))
}

/// `poly(x, 2)`.
pub(super) fn poly(at: usize, given: &[Node]) -> Lowered<Expr> {
    let example = "poly(x, 2)";
    let arguments = Arguments::new("poly", at, given, &["x", "degree", "raw"])?;
    let x = arguments.needed("x", example)?;
    if arguments.flag("raw", false)? {
        arguments.refuse("raw", "for raw powers write x + I(x^2)")?;
    }
    arguments.needed("degree", example)?;
    number_needed(x, "poly()")?;
    let degree = arguments.whole("degree", 1..=MAX_POWER)?.unwrap_or(1);
    Ok(Expr::Poly(Box::new(expr(x)?), degree))
}

/// `log(x, 2)` and `log(x, base = 10)`.
pub(super) fn logarithm(at: usize, given: &[Node]) -> Lowered<(&Node, Function)> {
    let arguments = Arguments::new("log", at, given, &["x", "base"])?;
    let x = arguments.needed("x", "log(x)")?;
    match arguments.get("base").map(|node| (number(node), node.at)) {
        None => Ok((x, Function::Log)),
        Some((Some(2.0), _)) => Ok((x, Function::Log2)),
        Some((Some(10.0), _)) => Ok((x, Function::Log10)),
        Some((_, at)) => Err(SyntaxFault::new(
            at,
            "the base of a logarithm can be 2 or 10; for others divide, as in I(log(x)/log(3))",
        )),
    }
}

/// What to write in the place of something that R or a package of it has, and that is not here.
pub(super) fn elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "ln" => "write log(x)",
        "as.numeric" | "as.integer" | "as.double" => "write the column alone",
        "as.factor" | "as.character" | "C" => "write factor(x)",
        "ordered" | "as.ordered" | "mo" => {
            "on the right side write factor(x) for a level each, or a column of numbers for a slope; ordered(x) is for outcomes"
        }
        "contr.sum" | "contr.helmert" | "contr.poly" | "contr.treatment" | "contrasts" => {
            "contrasts are against a reference: write relevel(x, ref = \"b\")"
        }
        "interaction" => "write a:b",
        "s" | "te" | "ti" | "t2" | "lo" | "pspline" | "gp" => {
            "penalised smooth terms are not there: write ns(x, df = 4)"
        }
        "rcs" | "lsp" | "pol" => "write ns(x, df = 4), bs(x, df = 5) or poly(x, 2)",
        "Surv" | "cbind" | "trials" => "it can only be the outcome, left of ~",
        "strata" | "frailty" => {
            "take it as a factor, as in y ~ x + factor(group), or split by = \"column:group\""
        }
        "cluster" => {
            "leave it out: errors of clustered rows are not mended afterwards; take the group as a factor"
        }
        "weights" => "name the column under [data], as weights = \"n\"",
        "ifelse" | "case_when" => "write the condition, as in I(x > 0)",
        "is.na" => "rows with missing values are left out; make a column of it",
        "center" | "centre" | "standardize" | "standardise" | "z" => "write scale(x)",
        "mean" | "sd" | "median" | "quantile" | "min" | "max" => {
            "write the number itself, which must not depend on the shard; scale(x) centres by all rows"
        }
        "logit" | "qlogis" => "write I(log(x/(1 - x)))",
        "square" => "write I(x^2)",
        "pmin" | "pmax" | "round" | "floor" | "ceiling" | "sign" | "sin" | "cos" | "tan"
        | "lag" | "diff" | "cumsum" | "rank" | "substr" | "paste" | "nchar" | "expm1" | "gamma"
        | "lgamma" | "asinh" | "tanh" => "make a column of it in the data",
        "cs" | "me" | "mi" | "mm" | "ar" | "arma" | "car" | "nl" => {
            "that is brms's, and not there: make a column of it in the data, if it can be one"
        }
        _ => return None,
    })
}
