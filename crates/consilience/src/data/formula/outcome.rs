//! Outcomes of more than one number: `cbind()`, `trials()`, `Surv()` and `ordered()`, left of `~`.

use super::super::expr::{Binary, Expr, Pairing};
use super::SyntaxFault;
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

fn surv(at: usize, arguments: &[Node]) -> Lowered<Expr> {
    let fault = |at: usize, message: &str| Err(SyntaxFault::new(at, message));
    let (mut plain, mut kind) = (Vec::new(), None);
    for argument in arguments {
        match &argument.kind {
            NodeKind::Named(name, value) => match (name.as_str(), &value.kind) {
                ("type", NodeKind::Text(text)) => kind = Some((text.as_str(), argument.at)),
                ("time" | "time2" | "event", _) => plain.push(&**value),
                _ => return fault(argument.at, "Surv() knows time, time2, event and type = \"…\""),
            },
            _ => plain.push(argument),
        }
    }
    let numbers = "Surv()";
    match (plain.as_slice(), kind.map(|(kind, _)| kind)) {
        ([time, event], None | Some("right")) => {
            joint(Pairing::Right, (time, numbers), (event, numbers))
        }
        ([time, event], Some("left")) => joint(Pairing::Left, (time, numbers), (event, numbers)),
        ([from, to], Some("interval2")) => {
            joint(Pairing::Interval2, (from, numbers), (to, numbers))
        }
        ([time, time2, event], Some("interval")) => {
            let with = joint(Pairing::With, (time2, numbers), (event, numbers))?;
            number_needed(time, numbers)?;
            let first = with_column(expr(time)?, time.at)?;
            Ok(Expr::Pairing(Pairing::Interval, Box::new(first), Box::new(with)))
        }
        ([_, _, _], None | Some("counting")) => fault(
            at,
            "Surv(start, stop, event) of rows that enter late is not supported; of times within bounds write Surv(time, time2, event, type = \"interval\")",
        ),
        ([_], _) => fault(
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
