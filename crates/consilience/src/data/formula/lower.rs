//! What the operators mean: arithmetic inside functions, the algebra of terms outside.

use super::super::effects::Effects;
use super::super::expr::{Binary, Expr, Function, Unary};
use super::calls::{self, WHOLE};
use super::outcome::outcome;
use super::parser::{Node, NodeKind, Op, too_deep};
use super::{MAX_DEPTH, Right, SyntaxFault};
use crate::error::nearest;

/// The highest degree of `poly` and the highest power of a sum of terms.
pub(super) const MAX_POWER: u32 = 50;

pub(super) type Lowered<T> = Result<T, SyntaxFault>;

/// The left side of a formula.
pub(super) fn response(node: &Node) -> Lowered<Expr> {
    match &node.kind {
        NodeKind::Dot => {
            Err(SyntaxFault::new(node.at, "`.` cannot be the outcome; write the outcome's column"))
        }
        NodeKind::Call(name, _) if WHOLE.contains(&name.as_str()) && name != "factor" => {
            Err(SyntaxFault::new(node.at, format!("{name}() cannot be the outcome")))
        }
        _ => match outcome(node) {
            Some(joint) => joint,
            None => variable(node),
        },
    }
}

/// The right side of a formula.
pub(super) fn right(node: &Node) -> Lowered<Right> {
    let fault = |message: String| Err(SyntaxFault::new(node.at, message));
    match &node.kind {
        NodeKind::Number(0.0) => Ok(Right::Zero),
        NodeKind::Number(1.0) => Ok(Right::One),
        NodeKind::Number(_) | NodeKind::Text(_) | NodeKind::Logical(_) => fault(
            "a constant is no term; only 1 (with intercept) and 0 (without) can stand here".into(),
        ),
        NodeKind::Dot => Ok(Right::Dot),
        NodeKind::Column(name) => Ok(Right::Variable(Expr::Column(name.clone()))),
        NodeKind::Paren(inner) => match &inner.kind {
            NodeKind::Binary(Op::Of(Binary::Or), of, group) => effects(of, group).map(Right::Effects),
            _ => Ok(Right::Paren(Box::new(right(inner)?))),
        },
        NodeKind::Unary(Unary::Not, inner) => {
            let shown = expr(inner).map_or("x".to_string(), |e| e.to_string());
            fault(format!("a negation is no term by itself; write I(!{shown})"))
        }
        NodeKind::Unary(op, inner) => {
            let inner = right(inner)?;
            if *op == Unary::Minus {
                refuse_offset(&inner, node.at, "be taken away")?;
            }
            Ok(Right::Signed(*op == Unary::Minus, Box::new(inner)))
        }
        NodeKind::Sum(first, rest) => {
            let first = Box::new(right(first)?);
            let rest = rest.iter().map(|(plus, summand)| {
                let lowered = right(summand)?;
                if !plus {
                    refuse_offset(&lowered, summand.at, "be taken away; leave it out instead")?;
                }
                Ok((*plus, lowered))
            });
            Ok(Right::Sum(first, rest.collect::<Lowered<_>>()?))
        }
        NodeKind::Binary(Op::Of(Binary::Power), base, power) => raise(base, power),
        NodeKind::Binary(Op::Colon, a, b) => Ok(Right::Interact(factor_of(a)?, factor_of(b)?)),
        NodeKind::Binary(Op::Of(Binary::Multiply), a, b) => {
            Ok(Right::Cross(factor_of(a)?, factor_of(b)?))
        }
        NodeKind::Binary(Op::Of(Binary::Divide), a, b) => {
            let (a, b) = (right(a)?, right(b)?);
            if matches!(a, Right::Zero | Right::One) || matches!(b, Right::Zero | Right::One) {
                return fault(format!("a quotient is no term by itself; write I({a}/{b})"));
            }
            fault(format!(
                "`/` between terms is not supported; for nesting write {a} + {a}:{b}, for a quotient I({a}/{b})"
            ))
        }
        NodeKind::Binary(Op::In, a, b) => {
            let (a, b) = (right(a)?, right(b)?);
            fault(format!("`%in%` is not supported; write {b}:{a}"))
        }
        NodeKind::Binary(Op::Of(Binary::Or), ..) => fault(
            "`|` between terms (random effects) stands in parentheses, as in y ~ x + (1 | group); or take the group as a factor, as in y ~ x + group; for \"or\" write I(a | b)".into(),
        ),
        NodeKind::Binary(Op::Of(op), ..) => {
            let shown = expr(node).map_or("x > 0".to_string(), |e| e.to_string());
            let what = if op.compares() { "a comparison" } else { "`&`" };
            fault(format!("{what} is no term by itself; write I({shown}) if that is meant"))
        }
        NodeKind::Call(name, arguments) if name == "offset" => match arguments.as_slice() {
            [argument] => {
                number_needed(argument, "offset()")?;
                Ok(Right::Offset(with_column(expr(argument)?, node.at)?))
            }
            _ => fault("offset() takes one argument, as in offset(log(time))".into()),
        },
        NodeKind::Call(..) => Ok(Right::Variable(variable(node)?)),
        NodeKind::Named(name, _) => fault(stray(name)),
    }
}

/// `(1 | g)`, `(x | g)`, `(0 + x | g)`.
fn effects(of: &Node, group: &Node) -> Lowered<Effects> {
    let fault = |at: usize, message: String| Err(SyntaxFault::new(at, message));
    if let NodeKind::Binary(Op::Of(Binary::Divide) | Op::Colon, a, b) = &group.kind {
        let (a, b) = (expr(a)?, expr(b)?);
        return fault(
            group.at,
            format!(
                "groups within groups are not supported; take the inner ones alone, as in (1 | {b}), with {a} as a factor"
            ),
        );
    }
    let group = match &group.kind {
        NodeKind::Column(_) => variable(group)?,
        NodeKind::Call(name, arguments) if name == "factor" && arguments.len() == 1 => {
            with_column(expr(&arguments[0])?, group.at)?
        }
        _ => {
            return fault(
                group.at,
                "behind `|` stands the column of the groups, as in (1 | hospital)".into(),
            );
        }
    };
    let (mut intercept, mut slopes) = (true, Vec::new());
    take_effects(of, true, &mut intercept, &mut slopes)?;
    match (slopes.len(), intercept) {
        (0, true) | (1, _) => Ok(Effects { intercept, slope: slopes.pop(), group, nodes: 0 }),
        (0, false) => {
            fault(of.at, format!("nothing varies here between groups; write (1 | {group})"))
        }
        _ => fault(
            of.at,
            format!(
                "a group has at most an intercept and a slope of its own; write ({} | {group})",
                slopes[0]
            ),
        ),
    }
}

/// What varies between groups.
fn take_effects(
    node: &Node,
    plus: bool,
    intercept: &mut bool,
    slopes: &mut Vec<Expr>,
) -> Lowered<()> {
    match &node.kind {
        NodeKind::Number(1.0) => *intercept = plus,
        NodeKind::Number(0.0) => *intercept = !plus,
        NodeKind::Paren(inner) => take_effects(inner, plus, intercept, slopes)?,
        NodeKind::Unary(Unary::Minus, inner) => take_effects(inner, !plus, intercept, slopes)?,
        NodeKind::Unary(Unary::Plus, inner) => take_effects(inner, plus, intercept, slopes)?,
        NodeKind::Sum(first, rest) => {
            take_effects(first, plus, intercept, slopes)?;
            for (sign, summand) in rest {
                take_effects(summand, *sign == plus, intercept, slopes)?;
            }
        }
        NodeKind::Column(_) | NodeKind::Call(..) if plus => {
            let slope = variable(node)?;
            if !slopes.contains(&slope) {
                slopes.push(slope);
            }
        }
        _ => {
            let message = "before `|` stands 1, a column of numbers, or both, as in (1 + x | g)";
            return Err(SyntaxFault::new(node.at, message));
        }
    }
    Ok(())
}

/// What is to be said of a name with `=` that is no argument of its function.
fn stray(name: &str) -> String {
    format!("`{name} =` is no argument that is known here; to compare write ==")
}

/// An operand of `:` or `*`.
fn factor_of(node: &Node) -> Lowered<Box<Right>> {
    let lowered = right(node)?;
    refuse_offset(&lowered, node.at, "stand in a product of terms; add it with +")?;
    let mut inner = &lowered;
    while let Right::Paren(deeper) = inner {
        inner = deeper;
    }
    match inner {
        // R takes these and loses terms on the way; that cannot be meant.
        Right::Zero | Right::One | Right::Signed(..) => Err(SyntaxFault::new(
            node.at,
            "only columns can be multiplied; 0, 1 and signs belong into a sum, as in y ~ 0 + a:b",
        )),
        _ => Ok(Box::new(lowered)),
    }
}

fn raise(base: &Node, power: &Node) -> Lowered<Right> {
    let lowered = factor_of(base)?;
    let mut inner = &*lowered;
    while let Right::Paren(deeper) = inner {
        inner = deeper;
    }
    if let Right::Variable(v) = inner {
        // R reads this as `x` without a word, which is hardly ever what was meant.
        let shown = expr(power).map_or("2".to_string(), |p| p.to_string());
        let message = format!(
            "between terms {v}^{shown} is no power of numbers; write I({v}^{shown}) or poly({v}, {shown})"
        );
        return Err(SyntaxFault::new(base.at, message));
    }
    match power.kind {
        NodeKind::Number(p) if p.fract() == 0.0 && (2.0..=f64::from(MAX_POWER)).contains(&p) => {
            Ok(Right::Power(lowered, p as u32))
        }
        _ => Err(SyntaxFault::new(
            power.at,
            format!(
                "the power of a sum of terms must be a whole number from 2 to {MAX_POWER}, as in (a + b)^2"
            ),
        )),
    }
}

fn refuse_offset(term: &Right, at: usize, what: &str) -> Lowered<()> {
    let found = match term {
        Right::Offset(_) => true,
        Right::Effects(effects) => {
            let message = format!("the random effects {effects} cannot {what}");
            return Err(SyntaxFault::new(at, message));
        }
        Right::Paren(inner) | Right::Signed(_, inner) | Right::Power(inner, _) => {
            return refuse_offset(inner, at, what);
        }
        Right::Sum(first, rest) => {
            refuse_offset(first, at, what)?;
            return rest.iter().try_for_each(|(_, summand)| refuse_offset(summand, at, what));
        }
        // Products are free of offsets: theirs were refused when they were built.
        _ => false,
    };
    if found { Err(SyntaxFault::new(at, format!("an offset cannot {what}"))) } else { Ok(()) }
}

/// A variable: an expression, or a `factor()` or `poly()` of one.
pub(super) fn variable(node: &Node) -> Lowered<Expr> {
    let lowered = match &node.kind {
        NodeKind::Call(name, arguments) if name == "factor" => {
            let [argument] = arguments.as_slice() else {
                let message =
                    "factor() takes one argument; levels are sorted, labels cannot be given here";
                return Err(SyntaxFault::new(node.at, message));
            };
            Expr::Call(Function::Factor, Box::new(expr(argument)?))
        }
        NodeKind::Call(name, arguments) if name == "poly" => calls::poly(node.at, arguments)?,
        NodeKind::Call(name, arguments) if name == "relevel" => calls::relevel(node.at, arguments)?,
        NodeKind::Call(name, arguments) if name == "cut" => calls::cut(node.at, arguments)?,
        NodeKind::Call(name, arguments) if name == "bs" || name == "ns" => {
            calls::spline(name, node.at, arguments)?
        }
        _ => expr(node)?,
    };
    with_column(lowered, node.at)
}

pub(super) fn with_column(expr: Expr, at: usize) -> Lowered<Expr> {
    if expr.columns().is_empty() {
        return Err(SyntaxFault::new(at, format!("{expr} uses no column; name one")));
    }
    Ok(expr)
}

/// An expression of arithmetic.
pub(super) fn expr(node: &Node) -> Lowered<Expr> {
    lower(node).map(|(expr, _)| expr)
}

/// An expression and the height of its tree, which sums make higher than the parser's.
fn lower(node: &Node) -> Lowered<(Expr, usize)> {
    let fault = |message: String| Err(SyntaxFault::new(node.at, message));
    let (expr, below) = match &node.kind {
        NodeKind::Number(value) => (Expr::Number(*value), 0),
        NodeKind::Text(text) => (Expr::Text(text.clone()), 0),
        NodeKind::Logical(value) => (Expr::Logical(*value), 0),
        NodeKind::Column(name) => (Expr::Column(name.clone()), 0),
        NodeKind::Dot => {
            return fault("`.` can only be a term, as in y ~ .; here name the column".into());
        }
        NodeKind::Paren(inner) => {
            let (inner, height) = lower(inner)?;
            (Expr::Paren(Box::new(inner)), height)
        }
        NodeKind::Unary(op, inner) => {
            number_needed(inner, &format!("`{}`", op.sign()))?;
            let (inner, height) = lower(inner)?;
            (Expr::Unary(*op, Box::new(inner)), height)
        }
        NodeKind::Sum(first, rest) => {
            number_needed(first, "arithmetic")?;
            let (mut sum, mut height) = lower(first)?;
            for (plus, summand) in rest {
                number_needed(summand, "arithmetic")?;
                let (right, right_height) = lower(summand)?;
                let op = if *plus { Binary::Add } else { Binary::Subtract };
                sum = Expr::Binary(op, Box::new(sum), Box::new(right));
                height = 1 + height.max(right_height);
                if height > MAX_DEPTH {
                    return Err(too_deep(summand.at));
                }
            }
            (sum, height - 1)
        }
        NodeKind::Binary(Op::Of(op), left, right) => {
            if !matches!(op, Binary::Equal | Binary::Unequal) {
                let what = if op.compares() { "<, <=, > and >=" } else { "arithmetic" };
                number_needed(left, what)?;
                number_needed(right, what)?;
            }
            let ((left, a), (right, b)) = (lower(left)?, lower(right)?);
            (Expr::Binary(*op, Box::new(left), Box::new(right)), a.max(b))
        }
        NodeKind::Binary(Op::Colon, ..) => {
            return fault("inside a function `:` has no meaning; for a product write *".into());
        }
        NodeKind::Binary(Op::In, ..) => {
            return fault("`%in%` is not supported; write x == \"a\" | x == \"b\"".into());
        }
        NodeKind::Call(name, arguments) => {
            let (argument, function) = match (name.as_str(), arguments.len()) {
                ("log", 2) => calls::logarithm(node.at, arguments)?,
                _ => called(node.at, name, arguments)?,
            };
            let (inner, height) = lower(argument)?;
            (Expr::Call(function, Box::new(inner)), height)
        }
        NodeKind::Named(name, _) => return fault(stray(name)),
    };
    if below >= MAX_DEPTH { Err(too_deep(node.at)) } else { Ok((expr, below + 1)) }
}

/// The function of this name and its one argument.
fn called<'a>(at: usize, name: &str, arguments: &'a [Node]) -> Lowered<(&'a Node, Function)> {
    let fault = |message: String| Err(SyntaxFault::new(at, message));
    if WHOLE.contains(&name) {
        return fault(format!(
            "{name}() can only stand by itself as a term, not inside another function or arithmetic"
        ));
    }
    let Some(function) = Function::ALL.into_iter().find(|f| f.name() == name) else {
        let known = Function::ALL.iter().map(|f| f.name()).chain(WHOLE);
        // Each once: factor() is on both lists.
        let mut names: Vec<&str> = known.clone().collect();
        let advice = match (calls::elsewhere(name), name) {
            (Some(advice), _) => format!("; {advice}"),
            (None, "c") => "; it can only list knots, breaks and labels".to_string(),
            (None, _) => {
                nearest(name, known).map(|n| format!("; did you mean {n}()?")).unwrap_or_default()
            }
        };
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|n| seen.insert(*n));
        let known = names.iter().map(|n| format!("{n}()")).collect::<Vec<_>>().join(", ");
        return fault(format!(
            "there is no function {name}(){advice} (known: {known}; what others give must be a column of the data)"
        ));
    };
    match arguments {
        [argument] => {
            if function != Function::Identity {
                number_needed(argument, &format!("{name}()"))?;
            }
            Ok((argument, function))
        }
        _ => {
            let advice = match function {
                Function::Log => "; for other bases write log2(x) or log10(x)",
                Function::Scale => {
                    "; it always centres and scales: for other constants write I((x - 10)/2)"
                }
                _ => "",
            };
            fault(format!("{name}() takes one argument, not {}{advice}", arguments.len()))
        }
    }
}

/// Refuses a text in quotes where a number is needed.
pub(super) fn number_needed(node: &Node, what: &str) -> Lowered<()> {
    match &node.kind {
        NodeKind::Text(text) => Err(SyntaxFault::new(
            node.at,
            format!(
                "the text \"{text}\" stands where {what} needs a number; texts can only be compared with == and !="
            ),
        )),
        NodeKind::Paren(inner) => number_needed(inner, what),
        _ => Ok(()),
    }
}
