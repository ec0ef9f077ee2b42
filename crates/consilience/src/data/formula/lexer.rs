//! From text to tokens.

use super::super::expr::{RESERVED, is_name_char, is_syntactic};
use super::SyntaxFault;

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Name(String),
    /// A name in backticks: never a function, never a reserved word.
    Quoted(String),
    Number(f64),
    Text(String),
    Logical(bool),
    /// An operator, a parenthesis or a comma.
    Sign(&'static str),
    End,
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Name(name) | Token::Quoted(name) => write!(f, "`{name}`"),
            Token::Number(value) => write!(f, "`{}`", super::super::number::literal(*value)),
            Token::Text(text) => write!(f, "the text \"{text}\""),
            Token::Logical(value) => write!(f, "`{}`", if *value { "TRUE" } else { "FALSE" }),
            Token::Sign(sign) => write!(f, "`{sign}`"),
            Token::End => f.write_str("the end"),
        }
    }
}

/// Longer signs first, so that `<=` is not read as `<` and `=`.
const SIGNS: [&str; 24] = [
    "%in%", "==", "!=", "<=", ">=", "&&", "||", "**", "~", "+", "-", "*", "/", "^", ":", "(", ")",
    ",", "<", ">", "&", "|", "!", "=",
];

/// The tokens with their positions (characters from 0), an end token last.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, usize)>, SyntaxFault> {
    let mut lexer = Lexer { chars: text.chars().collect(), at: 0 };
    let mut out = Vec::new();
    loop {
        let (token, start) = lexer.next()?;
        let end = token == Token::End;
        out.push((token, start));
        if end {
            return Ok(out);
        }
    }
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Result<(Token, usize), SyntaxFault> {
        while self.peek(0).is_some_and(char::is_whitespace) {
            self.at += 1;
        }
        let start = self.at;
        let Some(c) = self.peek(0) else { return Ok((Token::End, start)) };
        let digit_follows = self.peek(1).is_some_and(|d| d.is_ascii_digit());
        let token = if c.is_ascii_digit() || (c == '.' && digit_follows) {
            self.number()?
        } else if c.is_alphabetic() || c == '.' {
            self.name()?
        } else if c == '`' {
            match self.quoted("a name")? {
                name if name.is_empty() => {
                    return Err(SyntaxFault::new(start, "a name in backticks must not be empty"));
                }
                name => Token::Quoted(name),
            }
        } else if c == '"' || c == '\'' {
            Token::Text(self.quoted("a text")?)
        } else {
            self.sign()?
        };
        Ok((token, start))
    }

    fn sign(&mut self) -> Result<Token, SyntaxFault> {
        for sign in SIGNS {
            if sign.chars().enumerate().all(|(i, c)| self.peek(i) == Some(c)) {
                self.at += sign.chars().count();
                return Ok(Token::Sign(sign));
            }
        }
        let advice = match self.chars[self.at] {
            '%' => "only the operators + - * / ^ : and comparisons are known here",
            '$' | '@' | '[' | ']' => "write the column's name alone",
            '_' => "a name cannot start with `_`; put it in backticks, as in `_x`",
            '{' | '}' => "use parentheses ( )",
            _ => {
                "a column whose name has such characters must stand in backticks, as in `my column`"
            }
        };
        let c = self.chars[self.at];
        Err(SyntaxFault::new(self.at, format!("the character `{c}` cannot stand here; {advice}")))
    }

    fn name(&mut self) -> Result<Token, SyntaxFault> {
        let start = self.at;
        while self.peek(0).is_some_and(is_name_char) {
            self.at += 1;
        }
        let name: String = self.chars[start..self.at].iter().collect();
        match name.as_str() {
            "TRUE" => Ok(Token::Logical(true)),
            "FALSE" => Ok(Token::Logical(false)),
            "." => Ok(Token::Name(name)),
            _ if is_syntactic(&name) => Ok(Token::Name(name)),
            _ => {
                let why = if RESERVED.contains(&name.as_str()) {
                    "is a reserved word"
                } else {
                    "is no name"
                };
                let message = format!("`{name}` {why}; if it is a column, put it in backticks");
                Err(SyntaxFault::new(start, message))
            }
        }
    }

    fn number(&mut self) -> Result<Token, SyntaxFault> {
        let start = self.at;
        let digits = |lexer: &mut Lexer| {
            while lexer.peek(0).is_some_and(|d| d.is_ascii_digit()) {
                lexer.at += 1;
            }
        };
        digits(self);
        if self.peek(0) == Some('.') {
            self.at += 1;
            digits(self);
        }
        if matches!(self.peek(0), Some('e' | 'E')) {
            let signed = matches!(self.peek(1), Some('+' | '-'));
            let first = self.peek(if signed { 2 } else { 1 });
            if first.is_some_and(|d| d.is_ascii_digit()) {
                self.at += if signed { 2 } else { 1 };
                digits(self);
            }
        }
        let spelled: String = self.chars[start..self.at].iter().collect();
        // R's whole numbers are written 2L.
        if self.peek(0) == Some('L') {
            self.at += 1;
        }
        if self.peek(0).is_some_and(is_name_char) {
            let message = "a name cannot start with a digit; put it in backticks, as in `2nd`";
            return Err(SyntaxFault::new(start, message));
        }
        match spelled.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Token::Number(value)),
            _ => Err(SyntaxFault::new(start, format!("`{spelled}` is too large for a number"))),
        }
    }

    /// What stands between two quotes of the kind at the current place.
    fn quoted(&mut self, what: &str) -> Result<String, SyntaxFault> {
        let (start, quote) = (self.at, self.chars[self.at]);
        let mut text = String::new();
        self.at += 1;
        while let Some(c) = self.peek(0) {
            self.at += 1;
            match c {
                c if c == quote => return Ok(text),
                '\\' => {
                    let Some(escaped) = self.peek(0) else { break };
                    self.at += 1;
                    text.push(match escaped {
                        'n' => '\n',
                        't' => '\t',
                        'r' => '\r',
                        '\\' | '"' | '\'' | '`' => escaped,
                        other => {
                            let message =
                                format!("`\\{other}` has no meaning; write \\\\ for a backslash");
                            return Err(SyntaxFault::new(self.at - 2, message));
                        }
                    });
                }
                c => text.push(c),
            }
        }
        Err(SyntaxFault::new(
            start,
            format!("{what} starts here but does not end; add a closing {quote}"),
        ))
    }
}
