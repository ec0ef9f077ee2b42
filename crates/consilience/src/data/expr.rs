//! Expressions inside a formula: `log(x + 1)`, `I(type == "Yes")`.

use super::cut::Intervals;
use super::number::literal;
use super::spline::SplineSpec;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An expression over the columns of a table. Parentheses are kept, as R keeps them, because
/// they show in the names of design columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Expr {
    /// A number.
    Number(f64),
    /// A text in quotes.
    Text(String),
    /// `TRUE` or `FALSE`.
    Logical(bool),
    /// A column of the table.
    Column(String),
    /// An expression in parentheses.
    Paren(#[serde(deserialize_with = "bounded")] Box<Expr>),
    /// A sign or a negation.
    Unary(Unary, #[serde(deserialize_with = "bounded")] Box<Expr>),
    /// Two operands.
    Binary(
        Binary,
        #[serde(deserialize_with = "bounded")] Box<Expr>,
        #[serde(deserialize_with = "bounded")] Box<Expr>,
    ),
    /// A function of one argument; `poly` carries its degree apart.
    Call(Function, #[serde(deserialize_with = "bounded")] Box<Expr>),
    /// `poly(x, degree)`.
    Poly(#[serde(deserialize_with = "bounded")] Box<Expr>, u32),
    /// `scale(x)` whose constants the shards have agreed on.
    Scaled {
        /// What is scaled.
        #[serde(deserialize_with = "bounded")]
        expr: Box<Expr>,
        /// The mean over all shards.
        mean: f64,
        /// The standard deviation over all shards.
        sd: f64,
    },
    /// `relevel(x, ref = "b")`.
    Relevel(#[serde(deserialize_with = "bounded")] Box<Expr>, String),
    /// `cut(x, breaks = c(0, 10, 20))`.
    Cut(#[serde(deserialize_with = "bounded")] Box<Expr>, Intervals),
    /// `bs(x, df = 5)` or `ns(x, df = 4)`.
    Spline(#[serde(deserialize_with = "bounded")] Box<Expr>, SplineSpec),
    /// An outcome that is made of two numbers: `cbind(a, b)`, `Surv(time, event)`.
    Pairing(
        Pairing,
        #[serde(deserialize_with = "bounded")] Box<Expr>,
        #[serde(deserialize_with = "bounded")] Box<Expr>,
    ),
    /// An outcome of ordered classes, with these levels from the lowest up, or with numbers as levels if there are
    /// none: `ordered(x, levels = c("low", "high"))`.
    Ordered(#[serde(deserialize_with = "bounded")] Box<Expr>, Vec<String>),
    /// An outcome of classes without an order: `factor(x)`, which families of such classes make of any outcome.
    Unordered(#[serde(deserialize_with = "bounded")] Box<Expr>),
}

/// How two numbers make an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pairing {
    /// `cbind(successes, failures)`
    Counts,
    /// `successes/trials(n)`
    Trials,
    /// `Surv(time, event)`: 1 is an event, 0 means that the time was exceeded.
    Right,
    /// `Surv(time, event, type = "left")`: 0 means that the time was not reached.
    Left,
    /// `Surv(from, to, type = "interval2")`: the time is between them; if they are equal it is known.
    Interval2,
    /// `Surv(time, time2, event, type = "interval")`: 0 is exceeded, 1 known, 2 not reached, 3 between the two times.
    Interval,
    /// The second time and the event of `Interval`.
    With,
}

impl Pairing {
    /// Whether it is successes out of trials.
    pub(crate) fn is_count(self) -> bool {
        matches!(self, Pairing::Counts | Pairing::Trials)
    }
}

/// Reads an expression inside another. Trees are walked by recursion, so one that comes from a file
/// may not be deeper than one that comes from a formula.
fn bounded<'de, D: serde::Deserializer<'de>>(reader: D) -> Result<Box<Expr>, D::Error> {
    thread_local!(static DEPTH: std::cell::Cell<usize> = const { std::cell::Cell::new(0) });
    // What a formula's own parser allows, and the `scale` that takes the place of a call.
    if DEPTH.get() > 2 * super::formula::MAX_DEPTH {
        return Err(serde::de::Error::custom("an expression that is nested too deeply"));
    }
    DEPTH.set(DEPTH.get() + 1);
    let read = Box::<Expr>::deserialize(reader);
    DEPTH.set(DEPTH.get() - 1);
    read
}

/// The operators in front of one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unary {
    /// `-x`
    Minus,
    /// `+x`
    Plus,
    /// `!x`
    Not,
}

/// The operators between two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Binary {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `^`
    Power,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `&`
    And,
    /// `|`
    Or,
}

/// The functions of one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Function {
    /// `I(x)`: x itself, its operators taken as arithmetic.
    Identity,
    /// The natural logarithm.
    Log,
    /// The logarithm to base 2.
    Log2,
    /// The logarithm to base 10.
    Log10,
    /// The square root.
    Sqrt,
    /// The exponential function.
    Exp,
    /// The absolute value.
    Abs,
    /// `scale(x)`, its constants not agreed on yet.
    Scale,
    /// `factor(x)`: the distinct values are levels.
    Factor,
    /// log(1 + x), also where x is small.
    Log1p,
}

impl Function {
    /// All of them.
    pub(crate) const ALL: [Function; 10] = [
        Function::Identity,
        Function::Log,
        Function::Log2,
        Function::Log10,
        Function::Sqrt,
        Function::Exp,
        Function::Abs,
        Function::Scale,
        Function::Factor,
        Function::Log1p,
    ];

    /// The function's name in a formula.
    pub fn name(self) -> &'static str {
        match self {
            Function::Identity => "I",
            Function::Log => "log",
            Function::Log2 => "log2",
            Function::Log10 => "log10",
            Function::Sqrt => "sqrt",
            Function::Exp => "exp",
            Function::Abs => "abs",
            Function::Scale => "scale",
            Function::Factor => "factor",
            Function::Log1p => "log1p",
        }
    }
}

impl Binary {
    /// Whether the operator compares, and so gives true or false.
    pub(crate) fn compares(self) -> bool {
        use Binary::*;
        matches!(self, Equal | Unequal | Less | LessEqual | Greater | GreaterEqual)
    }

    /// The operator with the spaces that R's deparse sets around it.
    fn spaced(self) -> &'static str {
        match self {
            Binary::Add => " + ",
            Binary::Subtract => " - ",
            Binary::Multiply => " * ",
            Binary::Divide => "/",
            Binary::Power => "^",
            Binary::Equal => " == ",
            Binary::Unequal => " != ",
            Binary::Less => " < ",
            Binary::LessEqual => " <= ",
            Binary::Greater => " > ",
            Binary::GreaterEqual => " >= ",
            Binary::And => " & ",
            Binary::Or => " | ",
        }
    }
}

impl Unary {
    /// The operator's sign.
    pub(crate) fn sign(self) -> char {
        match self {
            Unary::Minus => '-',
            Unary::Plus => '+',
            Unary::Not => '!',
        }
    }
}

impl Expr {
    /// The columns that the expression reads, each once, in order of appearance.
    pub fn columns(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.collect_columns(&mut found);
        found
    }

    pub(crate) fn collect_columns(&self, found: &mut Vec<String>) {
        match self {
            Expr::Column(name) => {
                if !found.contains(name) {
                    found.push(name.clone());
                }
            }
            Expr::Number(_) | Expr::Text(_) | Expr::Logical(_) => {}
            Expr::Paren(e)
            | Expr::Unary(_, e)
            | Expr::Call(_, e)
            | Expr::Poly(e, _)
            | Expr::Relevel(e, _)
            | Expr::Cut(e, _)
            | Expr::Spline(e, _) => e.collect_columns(found),
            Expr::Scaled { expr, .. } | Expr::Ordered(expr, _) | Expr::Unordered(expr) => {
                expr.collect_columns(found)
            }
            Expr::Binary(_, left, right) | Expr::Pairing(_, left, right) => {
                left.collect_columns(found);
                right.collect_columns(found);
            }
        }
    }

    /// Every part of the expression, itself first.
    pub(crate) fn visit(&self, look: &mut impl FnMut(&Expr)) {
        look(self);
        match self {
            Expr::Number(_) | Expr::Text(_) | Expr::Logical(_) | Expr::Column(_) => {}
            Expr::Paren(e)
            | Expr::Unary(_, e)
            | Expr::Call(_, e)
            | Expr::Poly(e, _)
            | Expr::Relevel(e, _)
            | Expr::Cut(e, _)
            | Expr::Spline(e, _) => e.visit(look),
            Expr::Scaled { expr, .. } | Expr::Ordered(expr, _) | Expr::Unordered(expr) => {
                expr.visit(look)
            }
            Expr::Binary(_, left, right) | Expr::Pairing(_, left, right) => {
                left.visit(look);
                right.visit(look);
            }
        }
    }

    /// The expression without `I()` and parentheses around it, which change no value.
    pub(crate) fn bare(&self) -> &Expr {
        match self {
            Expr::Paren(inner) | Expr::Call(Function::Identity, inner) => inner.bare(),
            other => other,
        }
    }

    /// Whether the expression itself, no column's kind aside, gives true or false.
    pub(crate) fn is_logical(&self) -> bool {
        match self.bare() {
            Expr::Logical(_) | Expr::Unary(Unary::Not, _) => true,
            Expr::Binary(op, ..) => op.compares() || matches!(op, Binary::And | Binary::Or),
            _ => false,
        }
    }
}

impl fmt::Display for Expr {
    /// R's deparse.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Number(value) => f.write_str(&literal(*value)),
            Expr::Text(text) => f.write_str(&quoted(text, '"')),
            Expr::Logical(true) => f.write_str("TRUE"),
            Expr::Logical(false) => f.write_str("FALSE"),
            Expr::Column(name) if is_syntactic(name) => f.write_str(name),
            Expr::Column(name) => f.write_str(&quoted(name, '`')),
            Expr::Paren(inner) => write!(f, "({inner})"),
            Expr::Unary(op, inner) => write!(f, "{}{inner}", op.sign()),
            Expr::Binary(op, left, right) => write!(f, "{left}{}{right}", op.spaced()),
            Expr::Call(function, inner) => write!(f, "{}({inner})", function.name()),
            Expr::Poly(inner, degree) => write!(f, "poly({inner}, {degree})"),
            Expr::Scaled { expr, .. } => write!(f, "scale({expr})"),
            Expr::Relevel(inner, level) => {
                write!(f, "relevel({inner}, ref = {})", quoted(level, '"'))
            }
            Expr::Cut(inner, intervals) => write!(f, "cut({inner}{})", cut_arguments(intervals)),
            Expr::Spline(inner, spec) => {
                write!(f, "{}({inner}{})", spec.name(), spline_arguments(spec))
            }
            Expr::Pairing(joint, first, second) => match joint {
                Pairing::Counts => write!(f, "cbind({first}, {second})"),
                Pairing::Trials => write!(f, "{first}/trials({second})"),
                Pairing::Right => write!(f, "Surv({first}, {second})"),
                Pairing::Left => write!(f, "Surv({first}, {second}, type = \"left\")"),
                Pairing::Interval2 => write!(f, "Surv({first}, {second}, type = \"interval2\")"),
                Pairing::Interval => write!(f, "Surv({first}, {second}, type = \"interval\")"),
                Pairing::With => write!(f, "{first}, {second}"),
            },
            Expr::Unordered(inner) => write!(f, "factor({inner})"),
            Expr::Ordered(inner, levels) if levels.is_empty() => write!(f, "ordered({inner})"),
            Expr::Ordered(inner, levels) => {
                let levels: Vec<String> = levels.iter().map(|level| quoted(level, '"')).collect();
                write!(f, "ordered({inner}, levels = c({}))", levels.join(", "))
            }
        }
    }
}

/// `c(1, 2)`, or the number alone.
fn vector(values: &[f64]) -> String {
    let number = |value: &f64| match *value {
        f64::INFINITY => "Inf".to_string(),
        f64::NEG_INFINITY => "-Inf".to_string(),
        value => literal(value),
    };
    match values {
        [only] => number(only),
        _ => format!("c({})", values.iter().map(number).collect::<Vec<_>>().join(", ")),
    }
}

fn cut_arguments(intervals: &Intervals) -> String {
    let mut text = format!(", breaks = {}", vector(&intervals.breaks));
    if let Some(labels) = &intervals.labels {
        let labels: Vec<String> = labels.iter().map(|label| quoted(label, '"')).collect();
        text += &match &labels[..] {
            [only] => format!(", labels = {only}"),
            _ => format!(", labels = c({})", labels.join(", ")),
        };
    }
    if intervals.include_lowest {
        text += ", include.lowest = TRUE";
    }
    if !intervals.right {
        text += ", right = FALSE";
    }
    text
}

fn spline_arguments(spec: &SplineSpec) -> String {
    let mut text = String::new();
    if let Some(df) = spec.df {
        text += &format!(", df = {df}");
    }
    if let Some(knots) = &spec.knots {
        text += &format!(", knots = {}", vector(knots));
    }
    if !spec.natural && spec.degree != 3 {
        text += &format!(", degree = {}", spec.degree);
    }
    if spec.intercept {
        text += ", intercept = TRUE";
    }
    if let Some(boundary) = &spec.boundary {
        text += &format!(", Boundary.knots = {}", vector(boundary));
    }
    text
}

/// The words that R keeps for itself: columns so named need backticks.
pub(crate) const RESERVED: [&str; 19] = [
    "if",
    "else",
    "repeat",
    "while",
    "function",
    "for",
    "next",
    "break",
    "TRUE",
    "FALSE",
    "NULL",
    "Inf",
    "NaN",
    "NA",
    "NA_integer_",
    "NA_real_",
    "NA_character_",
    "in",
    "...",
];

/// Whether a name can stand in a formula without backticks.
pub(crate) fn is_syntactic(name: &str) -> bool {
    let mut chars = name.chars();
    let start = match chars.next() {
        Some('.') => name != "." && !chars.next().is_some_and(|c| c.is_ascii_digit()),
        Some(c) => c.is_alphabetic(),
        None => false,
    };
    start && name.chars().all(is_name_char) && !RESERVED.contains(&name)
}

/// Whether a character can stand inside a name without backticks.
pub(crate) fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || c == '.' || c == '_'
}

fn quoted(text: &str, quote: char) -> String {
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c == quote => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}
