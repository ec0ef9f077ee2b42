//! Outcomes of more than one number: `cbind()`, `trials()`, `Surv()` and `ordered()`, left of `~`.

use super::super::expr::{Binary, Expr, Pairing};
use super::SyntaxFault;
use super::calls::Arguments;
use super::lower::{Lowered, expr, number_needed, with_column};
use super::parser::{Node, NodeKind, Op};

/// The outcome, if it is one of more than one number.
pub(super) fn outcome(node: &Node) -> Option<Lowered<Expr>> {
    match &node.kind {
        NodeKind::Paren(inner) => outcome(inner),
        NodeKind::Call(name, arguments) => match name.as_str() {
            "cbind" => Some(cbind(node.at, arguments)),
            "Surv" => Some(surv(node.at, arguments)),
            "ordered" => Some(ordered(node.at, arguments)),
            "trials" => {
                let message = "trials() stands behind the successes, as in successes/trials(n)";
                Some(Err(SyntaxFault::new(node.at, message)))
            }
            _ => None,
        },
        NodeKind::Binary(Op::Of(Binary::Or), time, right) if is_call(right, "cens") => {
            Some(Err(cens(time, right)))
        }
        // R's packages write `successes | trials(n)`, which is clear enough.
        NodeKind::Binary(Op::Of(Binary::Divide | Binary::Or), left, right) => match &right.kind {
            NodeKind::Call(name, arguments) if name == "trials" => Some(match &arguments[..] {
                [trials] => joint(Pairing::Trials, (left, "the successes"), (trials, "trials()")),
                _ => Err(SyntaxFault::new(
                    right.at,
                    "trials() takes one argument, a column or a number, as in successes/trials(n)",
                )),
            }),
            _ => None,
        },
        _ => None,
    }
}

fn is_call(node: &Node, wanted: &str) -> bool {
    matches!(&node.kind, NodeKind::Call(name, _) if name == wanted)
}

/// What to write for brms' `time | cens(censored)`, which says 1 where `Surv()` says 0.
fn cens(time: &Node, right: &Node) -> SyntaxFault {
    let censored = match &right.kind {
        NodeKind::Call(_, arguments) => arguments.first().and_then(|node| expr(node).ok()),
        _ => None,
    };
    let censored = censored.unwrap_or_else(|| Expr::Column("censored".to_string()));
    let event = match censored.bare() {
        Expr::Binary(Binary::Subtract, one, event) if **one == Expr::Number(1.0) => {
            event.bare().to_string()
        }
        whole @ (Expr::Column(_) | Expr::Call(..)) => format!("1 - {whole}"),
        whole => format!("1 - ({whole})"),
    };
    let time = expr(time).map_or("time".to_string(), |time| time.to_string());
    SyntaxFault::new(
        right.at,
        format!(
            "cens() is brms's, which has 1 where a time is censored; here 1 is an event: write Surv({time}, {event})"
        ),
    )
}

/// Two expressions of numbers, each with what it is.
fn joint(kind: Pairing, first: (&Node, &str), second: (&Node, &str)) -> Lowered<Expr> {
    for (node, what) in [first, second] {
        number_needed(node, what)?;
    }
    let (left, right) = (expr(first.0)?, expr(second.0)?);
    Ok(Expr::Pairing(kind, Box::new(with_column(left, first.0.at)?), Box::new(right)))
}

fn cbind(at: usize, arguments: &[Node]) -> Lowered<Expr> {
    match arguments {
        [successes, failures] => {
            joint(Pairing::Counts, (successes, "cbind()"), (failures, "cbind()"))
        }
        _ => Err(SyntaxFault::new(
            at,
            "cbind() takes the column of successes and that of failures, as in cbind(cured, ill); outcomes of more than two classes are no family here: compare two classes at a time, as in I(y == \"a\"), or use `cumulative-logit` if they are in order",
        )),
    }
}

/// `Surv(time, event)` and its kin. As in R, an argument without a name takes the first place that no name has taken,
/// and two of them without a type are time and event.
fn surv(at: usize, given: &[Node]) -> Lowered<Expr> {
    let fault = |at: usize, message: &str| Err(SyntaxFault::new(at, message));
    let arguments = Arguments::new("Surv", at, given, &["time", "time2", "event", "type"])?;
    let kind = match arguments.get("type").map(|node| (&node.kind, node.at)) {
        None => None,
        Some((NodeKind::Text(text), at)) => Some((text.as_str(), at)),
        Some((_, at)) => {
            return fault(at, "`type` of Surv() is a text in quotes, as in type = \"left\"");
        }
    };
    let Some(time) = arguments.get("time") else {
        return fault(at, "Surv() needs the time, as in Surv(time, died)");
    };
    let (time2, event) = (arguments.get("time2"), arguments.get("event"));
    let named = |node: &Node| matches!(&node.kind, NodeKind::Named(name, _) if name == "time2");
    let numbers = "Surv()";
    match (time2, event, kind.map(|(kind, _)| kind)) {
        (Some(_), None, None | Some("right" | "left")) if given.iter().any(named) => fault(
            at,
            "with `time2` Surv() needs type = \"interval2\", or type = \"interval\" and the event; if that column says whether the time ended in an event, write Surv(time, event)",
        ),
        (Some(event), None, None | Some("right")) | (None, Some(event), None | Some("right")) => {
            joint(Pairing::Right, (time, numbers), (event, numbers))
        }
        (Some(event), None, Some("left")) | (None, Some(event), Some("left")) => {
            joint(Pairing::Left, (time, numbers), (event, numbers))
        }
        (Some(to), None, Some("interval2")) => {
            joint(Pairing::Interval2, (time, numbers), (to, numbers))
        }
        (_, Some(event), Some("interval2")) => fault(
            event.at,
            "type = \"interval2\" has two bounds and no event: write Surv(from, to, type = \"interval2\"), or Surv(time, time2, event, type = \"interval\")",
        ),
        (Some(time2), Some(event), Some("interval")) => {
            let with = joint(Pairing::With, (time2, numbers), (event, numbers))?;
            number_needed(time, numbers)?;
            let first = with_column(expr(time)?, time.at)?;
            Ok(Expr::Pairing(Pairing::Interval, Box::new(first), Box::new(with)))
        }
        (Some(_), Some(_), None | Some("counting")) => fault(
            at,
            "Surv(start, stop, event) of rows that enter late is not supported; of times within bounds write Surv(time, time2, event, type = \"interval\")",
        ),
        (None, None, _) => fault(
            at,
            "Surv() needs the time and whether it ended in an event, as in Surv(time, died); if all did, write the time alone",
        ),
        _ => fault(
            kind.map_or(at, |(_, at)| at),
            "Surv() is written Surv(time, event), Surv(time, event, type = \"left\"), Surv(from, to, type = \"interval2\") or Surv(time, time2, event, type = \"interval\")",
        ),
    }
}

/// How an outcome of ordered classes is written.
const ORDERED: &str = "ordered() takes a column and, if it holds texts, their order from the lowest up, as in ordered(grade, levels = c(\"low\", \"high\"))";

fn ordered(at: usize, arguments: &[Node]) -> Lowered<Expr> {
    let fault = |at: usize| Err(SyntaxFault::new(at, ORDERED));
    let (argument, levels) = match arguments {
        [argument] => (argument, None),
        [argument, levels] => (argument, Some(levels)),
        _ => return fault(at),
    };
    let levels = match levels.map(|levels| &levels.kind) {
        None => Vec::new(),
        Some(NodeKind::Named(name, value)) if name == "levels" => match &value.kind {
            NodeKind::Call(name, list) if name == "c" => {
                let text = |node: &Node| match &node.kind {
                    NodeKind::Text(text) => Ok(text.clone()),
                    NodeKind::Number(value) => Ok(super::super::number::level_name(*value)),
                    _ => Err(SyntaxFault::new(node.at, ORDERED)),
                };
                list.iter().map(text).collect::<Lowered<Vec<String>>>()?
            }
            _ => return fault(value.at),
        },
        Some(_) => return fault(arguments[1].at),
    };
    if let Some(twice) = levels.iter().enumerate().find(|(i, l)| levels[..*i].contains(l)) {
        let message = format!("the level \"{}\" stands here twice", twice.1);
        return Err(SyntaxFault::new(at, message));
    }
    if !levels.is_empty() && levels.len() < 2 {
        return fault(at);
    }
    let inner = with_column(expr(argument)?, argument.at)?;
    Ok(Expr::Ordered(Box::new(inner), levels))
}
