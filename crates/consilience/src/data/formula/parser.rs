//! From tokens to a tree, by R's precedence. What the operators mean (terms or arithmetic)
//! depends on where they stand and is settled afterwards, in `lower`.

use super::super::expr::{Binary, Unary};
use super::lexer::{Token, tokens};
use super::{MAX_DEPTH, SyntaxFault};

/// A node of the tree and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// The position, in characters from 0: of an operator where there is one.
    pub at: usize,
    pub kind: NodeKind,
    /// The height of the tree below, itself included.
    height: usize,
}

#[derive(Debug, Clone)]
pub(super) enum NodeKind {
    Number(f64),
    Text(String),
    Logical(bool),
    Column(String),
    Dot,
    Paren(Box<Node>),
    Unary(Unary, Box<Node>),
    /// A chain of sums and differences: flat, because a formula may have thousands of terms.
    /// True stands for plus.
    Sum(Box<Node>, Vec<(bool, Node)>),
    /// Every other operator.
    Binary(Op, Box<Node>, Box<Node>),
    Call(String, Vec<Node>),
    /// An argument of a call with its name: `ref = "b"`.
    Named(String, Box<Node>),
}

/// An operator between two operands that is no sum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Op {
    /// One that means something in arithmetic.
    Of(Binary),
    /// `:`
    Colon,
    /// `%in%`
    In,
}

/// What is said of `=` where nothing has a name.
const EQUALS: &str = "`=` can only give a function's argument, as in poly(x, degree = 2); write `~` between outcome and predictors, and `==` to compare";

/// How tightly operators bind, loosest first.
mod power {
    pub const OR: u8 = 1;
    pub const AND: u8 = 2;
    pub const NOT: u8 = 3;
    pub const COMPARE: u8 = 4;
    pub const SUM: u8 = 5;
    pub const PRODUCT: u8 = 6;
    pub const SPECIAL: u8 = 7;
    pub const COLON: u8 = 8;
    pub const SIGN: u8 = 9;
    pub const POWER: u8 = 10;
}

enum Infix {
    Sum(bool),
    Other(Op),
}

fn infix(token: &Token) -> Option<(Infix, u8)> {
    let Token::Sign(sign) = token else { return None };
    let of = |op, power| Some((Infix::Other(Op::Of(op)), power));
    match *sign {
        "+" => Some((Infix::Sum(true), power::SUM)),
        "-" => Some((Infix::Sum(false), power::SUM)),
        "*" => of(Binary::Multiply, power::PRODUCT),
        "/" => of(Binary::Divide, power::PRODUCT),
        "^" | "**" => of(Binary::Power, power::POWER),
        "==" => of(Binary::Equal, power::COMPARE),
        "!=" => of(Binary::Unequal, power::COMPARE),
        "<" => of(Binary::Less, power::COMPARE),
        "<=" => of(Binary::LessEqual, power::COMPARE),
        ">" => of(Binary::Greater, power::COMPARE),
        ">=" => of(Binary::GreaterEqual, power::COMPARE),
        "&" => of(Binary::And, power::AND),
        "|" => of(Binary::Or, power::OR),
        ":" => Some((Infix::Other(Op::Colon), power::COLON)),
        "%in%" => Some((Infix::Other(Op::In), power::SPECIAL)),
        _ => None,
    }
}

/// Parses `left ~ right`.
pub(super) fn parse(text: &str) -> Result<(Node, Node), SyntaxFault> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0 };
    match parser.peek() {
        Token::End => {
            return Err(SyntaxFault::new(0, "the formula is empty; write it as in y ~ x"));
        }
        Token::Sign("~") => {
            let message = "the left side of ~ is missing; write the outcome there, as in y ~ x";
            return Err(SyntaxFault::new(parser.at(), message));
        }
        _ => {}
    }
    parser.refuse_several()?;
    let left = parser.expression(power::OR)?;
    if *parser.peek() != Token::Sign("~") {
        return Err(match parser.peek() {
            Token::End => SyntaxFault::new(
                parser.at(),
                "the ~ is missing; write the outcome left of it and the terms right of it, as in y ~ x",
            ),
            _ => parser.unexpected(),
        });
    }
    parser.next += 1;
    let right = parser.expression(power::OR)?;
    match parser.peek() {
        Token::End => Ok((left, right)),
        Token::Sign("~") => {
            Err(SyntaxFault::new(parser.at(), "a formula has one ~ only; remove this one"))
        }
        _ => Err(parser.unexpected()),
    }
}

struct Parser {
    tokens: Vec<(Token, usize)>,
    next: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].0
    }

    fn at(&self) -> usize {
        self.tokens[self.next].1
    }

    /// Refuses brms's formulas for several parameters, `bf(y ~ x, sigma ~ g)`.
    fn refuse_several(&self) -> Result<(), SyntaxFault> {
        let is_call = |name: &&str| matches!(&self.tokens[..2], [(Token::Name(n), _), (Token::Sign("("), _)] if n == name);
        match ["bf", "brmsformula"].iter().find(|name| is_call(name)) {
            Some(name) => Err(SyntaxFault::new(
                self.at(),
                format!(
                    "{name}() is brms's: write its first formula alone, as in y ~ x; sigma and other parameters of a family cannot have formulas of their own here, and are the same in all rows"
                ),
            )),
            None => Ok(()),
        }
    }

    /// The next token, which stays where it is if it is the end.
    fn take(&mut self) -> (Token, usize) {
        let taken = self.tokens[self.next].clone();
        if taken.0 != Token::End {
            self.next += 1;
        }
        taken
    }

    /// An error about the next token, where an operator or the end should be.
    fn unexpected(&self) -> SyntaxFault {
        let message = match self.peek() {
            Token::Sign(")") => "this `)` has no `(` before it; remove it".to_string(),
            Token::Sign("&&") => "write & for \"and\"".to_string(),
            Token::Sign("||") => "`||` (lme4's random effects without correlations) is not supported; write (1 | group), or (x | group) with a correlation; for \"or\" write I(a | b)".to_string(),
            Token::Sign("=") => EQUALS.to_string(),
            Token::Sign("::") => "a package is not named here; write the function alone, as in ns(x, df = 4)".to_string(),
            Token::Sign(",") => "a comma can only stand between a function's arguments".to_string(),
            token @ (Token::Sign(_) | Token::End) => format!("{token} cannot stand here"),
            token => {
                format!("{token} follows without an operator; put + or another one before it")
            }
        };
        SyntaxFault::new(self.at(), message)
    }

    /// An expression whose operators bind at least as tightly as `least`.
    fn expression(&mut self, least: u8) -> Result<Node, SyntaxFault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(too_deep(self.at()));
        }
        let mut left = self.operand()?;
        while let Some((op, power)) = infix(self.peek()) {
            if power < least {
                break;
            }
            let at = self.take().1;
            // `^` groups to the right, everything else to the left.
            let right = self.expression(if power == power::POWER { power } else { power + 1 })?;
            left = match op {
                Infix::Sum(plus) => sum(left, plus, right, at)?,
                Infix::Other(op) => {
                    let height = 1 + left.height.max(right.height);
                    node(at, NodeKind::Binary(op, Box::new(left), Box::new(right)), height)?
                }
            };
            if power == power::COMPARE
                && infix(self.peek()).is_some_and(|(_, next)| next == power::COMPARE)
            {
                let message = "comparisons cannot be chained; write (a < b) & (b < c)";
                return Err(SyntaxFault::new(self.at(), message));
            }
        }
        self.depth -= 1;
        Ok(left)
    }

    /// What stands between two operators.
    fn operand(&mut self) -> Result<Node, SyntaxFault> {
        let (token, at) = self.take();
        let kind = match token {
            Token::Number(value) => NodeKind::Number(value),
            Token::Text(text) => NodeKind::Text(text),
            Token::Logical(value) => NodeKind::Logical(value),
            Token::Quoted(name) => NodeKind::Column(name),
            Token::Name(name) if *self.peek() == Token::Sign("(") => return self.call(name, at),
            Token::Name(name) if name == "." => NodeKind::Dot,
            Token::Name(name) => NodeKind::Column(name),
            Token::Sign("-") => return self.prefixed(Unary::Minus, power::SIGN, at),
            Token::Sign("+") => return self.prefixed(Unary::Plus, power::SIGN, at),
            Token::Sign("!") => return self.prefixed(Unary::Not, power::NOT, at),
            Token::Sign("(") => {
                let inner = self.expression(power::OR)?;
                self.close(at)?;
                let height = 1 + inner.height;
                return node(at, NodeKind::Paren(Box::new(inner)), height);
            }
            Token::End => {
                return Err(SyntaxFault::new(at, "the formula ends where a term is needed"));
            }
            Token::Sign("=") => return Err(SyntaxFault::new(at, EQUALS)),
            token => {
                let message = format!("{token} stands where a column or a term is needed");
                return Err(SyntaxFault::new(at, message));
            }
        };
        node(at, kind, 1)
    }

    fn prefixed(&mut self, op: Unary, power: u8, at: usize) -> Result<Node, SyntaxFault> {
        let inner = self.expression(power)?;
        let height = 1 + inner.height;
        node(at, NodeKind::Unary(op, Box::new(inner)), height)
    }

    fn call(&mut self, name: String, at: usize) -> Result<Node, SyntaxFault> {
        let open = self.take().1;
        let mut arguments = Vec::new();
        if *self.peek() != Token::Sign(")") {
            arguments.push(self.argument()?);
            while *self.peek() == Token::Sign(",") {
                self.next += 1;
                arguments.push(self.argument()?);
            }
        }
        self.close(open)?;
        let height = 1 + arguments.iter().map(|a| a.height).max().unwrap_or(0);
        node(at, NodeKind::Call(name, arguments), height)
    }

    /// An argument of a call, with its name if it has one.
    fn argument(&mut self) -> Result<Node, SyntaxFault> {
        let named = self.tokens.get(self.next + 1).is_some_and(|(t, _)| *t == Token::Sign("="));
        let (Token::Name(name) | Token::Quoted(name), true) = (self.peek().clone(), named) else {
            return self.expression(power::OR);
        };
        let at = self.take().1;
        self.next += 1;
        let value = self.expression(power::OR)?;
        let height = 1 + value.height;
        node(at, NodeKind::Named(name, Box::new(value)), height)
    }

    /// Takes the parenthesis that closes the one at `open`.
    fn close(&mut self, open: usize) -> Result<(), SyntaxFault> {
        match self.peek() {
            Token::Sign(")") => {
                self.next += 1;
                Ok(())
            }
            Token::End => Err(SyntaxFault::new(open, "this `(` is never closed; add a `)`")),
            Token::Sign("~") => {
                Err(SyntaxFault::new(self.at(), "~ cannot stand inside parentheses"))
            }
            _ => Err(self.unexpected()),
        }
    }
}

fn sum(left: Node, plus: bool, right: Node, at: usize) -> Result<Node, SyntaxFault> {
    let height = 1 + right.height;
    match left.kind {
        NodeKind::Sum(first, mut rest) => {
            rest.push((plus, right));
            node(left.at, NodeKind::Sum(first, rest), left.height.max(height))
        }
        _ => {
            let height = height.max(1 + left.height);
            node(at, NodeKind::Sum(Box::new(left), vec![(plus, right)]), height)
        }
    }
}

/// A node, unless the tree has grown so high that walking it could overflow the stack.
fn node(at: usize, kind: NodeKind, height: usize) -> Result<Node, SyntaxFault> {
    if height > MAX_DEPTH { Err(too_deep(at)) } else { Ok(Node { at, kind, height }) }
}

pub(super) fn too_deep(at: usize) -> SyntaxFault {
    let message = format!(
        "the formula is nested more than {MAX_DEPTH} levels deep; compute such a column beforehand"
    );
    SyntaxFault::new(at, message)
}
