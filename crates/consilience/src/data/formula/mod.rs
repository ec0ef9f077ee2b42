//! Formulas as in R: from text to a response and a tree of terms.

mod calls;
mod lexer;
mod lower;
mod outcome;
mod parser;

use super::effects::Effects;
use super::expr::Expr;
use crate::{Error, Result};
use std::fmt;
use unicode_width::UnicodeWidthStr;

/// How deep a formula may be nested. Trees are walked by recursion; this bounds the stack.
pub(crate) const MAX_DEPTH: usize = 100;

/// The longest formula that is read, in bytes.
const MAX_LENGTH: usize = 1 << 20;

/// A parsed formula. Two are equal if they say the same, whatever the spaces.
#[derive(Debug, Clone)]
pub struct Formula {
    /// As it was written, for carets in errors.
    text: String,
    response: Expr,
    right: Right,
}

/// The right side, in the language of terms.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Right {
    /// `0`
    Zero,
    /// `1`
    One,
    /// `.`
    Dot,
    Variable(Expr),
    Offset(Expr),
    /// `(1 | g)`
    Effects(Effects),
    Paren(Box<Right>),
    /// `-a` (true) or `+a` (false) with nothing before it.
    Signed(bool, Box<Right>),
    /// The first summand, then the others: true is plus.
    Sum(Box<Right>, Vec<(bool, Right)>),
    /// `a:b`
    Interact(Box<Right>, Box<Right>),
    /// `a * b`
    Cross(Box<Right>, Box<Right>),
    /// `(a + b)^2`
    Power(Box<Right>, u32),
}

/// An error at a position of the text, in characters from 0.
#[derive(Debug)]
pub(crate) struct SyntaxFault {
    at: usize,
    message: String,
}

impl SyntaxFault {
    pub(crate) fn new(at: usize, message: impl Into<String>) -> SyntaxFault {
        SyntaxFault { at, message: message.into() }
    }

    /// The error with the formula below it and a caret below that.
    fn show(self, text: &str) -> Error {
        // A long formula is cut to the surroundings of the fault.
        const BEFORE: usize = 50;
        const AROUND: usize = 70;
        let chars: Vec<char> =
            text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
        let start = if chars.len() > AROUND { self.at.saturating_sub(BEFORE) } else { 0 };
        let end = chars.len().min(start + AROUND);
        let line: String = chars[start..end].iter().collect();
        let (left, right) =
            (if start > 0 { "… " } else { "" }, if end < chars.len() { " …" } else { "" });
        // As wide as what stands above it: some letters take two columns, some none.
        let before: String = chars[start..self.at.clamp(start, end)].iter().collect();
        let beyond = self.at.saturating_sub(end);
        let indent = " ".repeat(left.chars().count() + before.width() + beyond);
        Error::input(format!(
            "in the formula, at character {}: {}\n    {left}{line}{right}\n    {indent}^",
            self.at + 1,
            self.message
        ))
    }
}

impl Formula {
    /// Reads a formula such as `y ~ a * b + log(x)`.
    pub fn parse(text: &str) -> Result<Formula> {
        if text.len() > MAX_LENGTH {
            return Err(Error::input(format!(
                "the formula is {} characters long, which is too long to be meant; use `.` for all columns",
                text.len()
            )));
        }
        let lowered = parser::parse(text)
            .and_then(|(left, right)| Ok((lower::response(&left)?, lower::right(&right)?)));
        let (response, right) = lowered.map_err(|fault| fault.show(text))?;
        Ok(Formula { text: text.to_string(), response, right })
    }

    /// The left side.
    pub fn response(&self) -> &Expr {
        &self.response
    }

    pub(crate) fn right(&self) -> &Right {
        &self.right
    }

    /// The columns that the formula names, in order of appearance, and whether it uses `.`.
    pub fn columns_used(&self) -> (Vec<String>, bool) {
        let (mut found, mut dot) = (self.response_columns(), false);
        self.right.collect_columns(&mut found, &mut dot);
        (found, dot)
    }

    /// The columns that the left side names, in order of appearance.
    pub fn response_columns(&self) -> Vec<String> {
        self.response.columns()
    }

    /// An error about a column that the formula names, pointing at it.
    pub(crate) fn column_error(&self, column: &str, message: String) -> Error {
        let named = |token: &lexer::Token| matches!(token, lexer::Token::Name(n) | lexer::Token::Quoted(n) if n == column);
        let at = lexer::tokens(&self.text)
            .ok()
            .and_then(|tokens| tokens.iter().find(|(t, _)| named(t)).map(|(_, at)| *at));
        match at {
            Some(at) => SyntaxFault::new(at, message).show(&self.text),
            None => Error::input(format!("in the formula {self}: {message}")),
        }
    }
}

impl Expr {
    /// Reads a part of a formula such as `log(x)` or `poly(x, 2)`.
    pub fn parse(text: &str) -> Result<Expr> {
        let formula = format!("{text} ~ 1");
        if formula.len() > MAX_LENGTH {
            return Err(Error::input("this is too long for a part of a formula"));
        }
        let lowered = parser::parse(&formula).and_then(|(left, _)| {
            outcome::outcome(&left).unwrap_or_else(|| lower::variable(&left))
        });
        lowered.map_err(|fault| fault.show(&formula))
    }
}

impl PartialEq for Formula {
    fn eq(&self, other: &Formula) -> bool {
        self.response == other.response && self.right == other.right
    }
}

impl fmt::Display for Formula {
    /// R's deparse.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ~ {}", self.response, self.right)
    }
}

impl Right {
    fn collect_columns(&self, found: &mut Vec<String>, dot: &mut bool) {
        match self {
            Right::Zero | Right::One => {}
            Right::Dot => *dot = true,
            Right::Variable(expr) | Right::Offset(expr) => expr.collect_columns(found),
            Right::Effects(effects) => {
                effects.slope.iter().for_each(|slope| slope.collect_columns(found));
                effects.group.collect_columns(found);
            }
            Right::Paren(inner) | Right::Signed(_, inner) | Right::Power(inner, _) => {
                inner.collect_columns(found, dot);
            }
            Right::Sum(first, rest) => {
                first.collect_columns(found, dot);
                for (_, summand) in rest {
                    summand.collect_columns(found, dot);
                }
            }
            Right::Interact(left, right) | Right::Cross(left, right) => {
                left.collect_columns(found, dot);
                right.collect_columns(found, dot);
            }
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Right::Zero => f.write_str("0"),
            Right::One => f.write_str("1"),
            Right::Dot => f.write_str("."),
            Right::Variable(expr) => write!(f, "{expr}"),
            Right::Offset(expr) => write!(f, "offset({expr})"),
            Right::Effects(effects) => write!(f, "{effects}"),
            Right::Paren(inner) => write!(f, "({inner})"),
            Right::Signed(minus, inner) => write!(f, "{}{inner}", if *minus { '-' } else { '+' }),
            Right::Sum(first, rest) => {
                write!(f, "{first}")?;
                rest.iter().try_for_each(|(plus, summand)| {
                    write!(f, " {} {summand}", if *plus { '+' } else { '-' })
                })
            }
            Right::Interact(left, right) => write!(f, "{left}:{right}"),
            Right::Cross(left, right) => write!(f, "{left} * {right}"),
            Right::Power(inner, power) => write!(f, "{inner}^{power}"),
        }
    }
}
