//! The columns of one file while it is read, and how those of several files become one.

use super::table::{Column, MISSING};
use std::collections::HashMap;
use std::str::Utf8Error;
use std::sync::Arc;

/// What one file brings to the table.
pub(super) struct FilePart {
    /// The columns in the order they were asked for.
    pub columns: Vec<Part>,
    /// Every row's line or number, counted from 1.
    pub numbers: Vec<u32>,
    /// The comment lines after the header.
    pub comments: u64,
}

impl FilePart {
    /// The pieces of one file behind each other. There is at least one.
    pub fn join(mut pieces: Vec<FilePart>) -> FilePart {
        if pieces.len() == 1 {
            return pieces.swap_remove(0);
        }
        let comments = pieces.iter().map(|piece| piece.comments).sum();
        let mut numbers = Vec::with_capacity(pieces.iter().map(|p| p.numbers.len()).sum());
        pieces.iter_mut().for_each(|piece| numbers.append(&mut piece.numbers));
        let mut columns = Vec::new();
        // From the last column on, and one after the other: what is joined is not kept twice.
        while pieces.iter().any(|piece| !piece.columns.is_empty()) {
            let parts = pieces.iter_mut().filter_map(|piece| piece.columns.pop()).collect();
            columns.push(Part::concat(parts));
        }
        columns.reverse();
        FilePart { columns, numbers, comments }
    }
}

/// One file's part of a column.
pub(super) struct Part {
    rows: usize,
    values: Values,
    odd: Option<Odd>,
}

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing but missing values: agrees with every kind.
    Unknown,
    Number,
    Single,
    Logical,
    Text,
}

impl Kind {
    /// The kind of a column whose parts are of these kinds.
    pub fn of(parts: impl Iterator<Item = Kind>) -> Kind {
        let (mut numbers, mut singles, mut logicals) = (false, false, false);
        for part in parts {
            match part {
                Kind::Unknown => {}
                Kind::Number => numbers = true,
                Kind::Single => singles = true,
                Kind::Logical => logicals = true,
                Kind::Text => return Kind::Text,
            }
        }
        match (numbers, singles, logicals) {
            (false, false, true) => Kind::Logical,
            (_, _, true) => Kind::Text,
            (false, true, false) => Kind::Single,
            (true, _, false) => Kind::Number,
            (false, false, false) => Kind::Unknown,
        }
    }
}

/// The first value of a column that spells a number which is not finite.
pub(super) struct Odd {
    pub line: u32,
    pub value: String,
}

/// The values of a column on the way in, the only form that they have there.
pub(super) enum Values {
    /// Nothing but missing values so far (and values that are not finite).
    Unknown,
    Number(Vec<f64>),
    Single(Vec<f32>),
    Logical(Vec<u32>),
    Text(Codes),
    /// Text after all, although it began otherwise: has to be read again.
    Clash,
}

/// Codes of text and the levels that they stand for, numbered in order of appearance.
#[derive(Default)]
pub(super) struct Codes {
    codes: Vec<u32>,
    levels: HashMap<String, u32>,
}

impl Codes {
    /// The code of a level, which is added if it is new.
    pub fn code(&mut self, level: &str) -> u32 {
        if let Some(&code) = self.levels.get(level) {
            return code;
        }
        // Below MISSING: rows are counted in u32 from 1, so there are fewer levels than that.
        let code = self.levels.len() as u32;
        self.levels.insert(level.to_string(), code);
        code
    }

    /// Adds a row with this code.
    pub fn push(&mut self, code: u32) {
        self.codes.push(code);
    }

    /// Puts others behind these, in this one's numbering of levels.
    pub fn append(&mut self, others: Codes) {
        if self.codes.is_empty() && self.levels.is_empty() {
            *self = others;
            return;
        }
        let (mut codes, names) = others.into_levels();
        let new: Vec<u32> = names.iter().map(|name| self.code(name)).collect();
        renumber(&mut codes, &new);
        self.codes.append(&mut codes);
    }

    fn into_levels(self) -> (Vec<u32>, Vec<String>) {
        let mut levels = vec![String::new(); self.levels.len()];
        for (level, code) in self.levels {
            levels[code as usize] = level;
        }
        (self.codes, levels)
    }
}

/// What a value of a text file says.
enum Value {
    Missing,
    Finite(f64),
    NonFinite,
    Logical(bool),
    Word,
}

fn is_missing(bytes: &[u8]) -> bool {
    matches!(bytes, b"" | b"NA" | b"N/A" | b"null" | b"NULL")
}

fn value(bytes: &[u8]) -> Result<Value, Utf8Error> {
    Ok(match bytes {
        _ if is_missing(bytes) => Value::Missing,
        b"TRUE" | b"True" | b"true" => Value::Logical(true),
        b"FALSE" | b"False" | b"false" => Value::Logical(false),
        _ => match std::str::from_utf8(bytes)?.parse::<f64>() {
            Ok(x) if x.is_finite() => Value::Finite(x),
            Ok(_) => Value::NonFinite,
            Err(_) => Value::Word,
        },
    })
}

/// Whether 32 bits hold a number as it is.
fn is_single(x: f64) -> bool {
    f64::from(x as f32) == x
}

fn widen(values: Vec<f32>) -> Vec<f64> {
    values.into_iter().map(f64::from).collect()
}

fn spell(values: impl Iterator<Item = Option<String>>) -> Values {
    let mut codes = Codes::default();
    for value in values {
        let code = value.map_or(MISSING, |value| codes.code(&value));
        codes.push(code);
    }
    Values::Text(codes)
}

impl Part {
    /// A column of a text file, the kind of which will show.
    pub fn open() -> Part {
        Part { rows: 0, values: Values::Unknown, odd: None }
    }

    /// A column of a text file that is text whatever it holds.
    pub fn text() -> Part {
        Part { rows: 0, values: Values::Text(Codes::default()), odd: None }
    }

    /// A column whose type says what its values are.
    pub fn typed(values: Values) -> Part {
        Part { rows: 0, values, odd: None }
    }

    /// The values, to which so many rows are added.
    pub fn values_mut(&mut self, more: usize) -> &mut Values {
        self.rows += more;
        &mut self.values
    }

    /// The column once all of its rows are there: spelled out if it is to be text. Nothing but missing
    /// values say nothing of their kind, whatever the type.
    pub fn finish(mut self, as_text: bool) -> Part {
        let all_missing = match &self.values {
            Values::Number(values) => values.iter().all(|x| x.is_nan()),
            Values::Single(values) => values.iter().all(|x| x.is_nan()),
            Values::Logical(codes) => codes.iter().all(|&c| c == MISSING),
            Values::Text(codes) => codes.levels.is_empty(),
            Values::Unknown | Values::Clash => return self,
        };
        self.values = match self.values {
            _ if all_missing => Values::Unknown,
            Values::Number(values) if as_text => {
                spell(values.into_iter().map(|x| (!x.is_nan()).then(|| x.to_string())))
            }
            Values::Single(values) if as_text => {
                spell(values.into_iter().map(|x| (!x.is_nan()).then(|| f64::from(x).to_string())))
            }
            Values::Logical(codes) if as_text => {
                spell(codes.into_iter().map(|c| (c != MISSING).then(|| (c == 1).to_string())))
            }
            values => values,
        };
        self
    }

    /// Adds a value of a text file, trimmed.
    pub fn push(&mut self, bytes: &[u8], line: u32) -> Result<(), Utf8Error> {
        match &mut self.values {
            Values::Text(codes) => {
                let word = std::str::from_utf8(bytes)?;
                let code = if is_missing(bytes) { MISSING } else { codes.code(word) };
                codes.push(code);
                self.rows += 1;
                return Ok(());
            }
            Values::Clash => {
                // Not kept, but checked: the first fault of a file is the one to report.
                std::str::from_utf8(bytes)?;
                self.rows += 1;
                return Ok(());
            }
            _ => {}
        }
        let value = value(bytes)?;
        if matches!(value, Value::NonFinite) && self.odd.is_none() {
            let value = String::from_utf8_lossy(bytes).into_owned();
            self.odd = Some(Odd { line, value });
        }
        match (&mut self.values, value) {
            (Values::Number(numbers), Value::Finite(x)) => numbers.push(x),
            (Values::Single(numbers), Value::Finite(x)) if is_single(x) => numbers.push(x as f32),
            (Values::Single(numbers), Value::Finite(x)) => {
                let mut numbers = widen(std::mem::take(numbers));
                numbers.push(x);
                self.values = Values::Number(numbers);
            }
            (Values::Single(numbers), Value::Missing | Value::NonFinite) => numbers.push(f32::NAN),
            // What is not finite stands as missing: it ends in an error or is read again as text.
            (Values::Number(numbers), Value::Missing | Value::NonFinite) => numbers.push(f64::NAN),
            (Values::Logical(codes), Value::Logical(yes)) => codes.push(u32::from(yes)),
            (Values::Logical(codes), Value::Missing | Value::NonFinite) => codes.push(MISSING),
            (Values::Unknown, Value::Missing | Value::NonFinite) => {}
            (Values::Unknown, Value::Finite(x)) if is_single(x) => {
                let mut numbers = vec![f32::NAN; self.rows];
                numbers.push(x as f32);
                self.values = Values::Single(numbers);
            }
            (Values::Unknown, Value::Finite(x)) => {
                let mut numbers = vec![f64::NAN; self.rows];
                numbers.push(x);
                self.values = Values::Number(numbers);
            }
            (Values::Unknown, Value::Logical(yes)) => {
                let mut codes = vec![MISSING; self.rows];
                codes.push(u32::from(yes));
                self.values = Values::Logical(codes);
            }
            (Values::Unknown, Value::Word) if self.odd.is_none() => {
                let mut codes = Codes { codes: vec![MISSING; self.rows], ..Codes::default() };
                let code = codes.code(std::str::from_utf8(bytes)?);
                codes.push(code);
                self.values = Values::Text(codes);
            }
            _ => self.values = Values::Clash,
        }
        self.rows += 1;
        Ok(())
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The first value that spells a number which is not finite.
    pub fn odd(&self) -> Option<&Odd> {
        self.odd.as_ref()
    }

    /// What its values are. Text that began otherwise counts as text.
    pub fn kind(&self) -> Kind {
        match self.values {
            Values::Unknown => Kind::Unknown,
            Values::Number(_) => Kind::Number,
            Values::Single(_) => Kind::Single,
            Values::Logical(_) => Kind::Logical,
            Values::Text(_) | Values::Clash => Kind::Text,
        }
    }

    /// Whether the parts of a column, one per file, make it text.
    pub fn is_text<'a>(parts: impl Iterator<Item = &'a Part>) -> bool {
        Kind::of(parts.map(Part::kind)) == Kind::Text
    }

    /// Whether this part can be part of a text column as it is.
    pub fn can_join_text(&self) -> bool {
        match self.values {
            Values::Text(_) => true,
            Values::Unknown => self.odd.is_none(),
            _ => false,
        }
    }

    /// The parts behind each other. Those of different kinds make text that has to be read again.
    pub fn concat(mut parts: Vec<Part>) -> Part {
        if parts.len() == 1 {
            return parts.swap_remove(0);
        }
        let rows = parts.iter().map(|part| part.rows).sum();
        let kind = Kind::of(parts.iter().map(Part::kind));
        let joinable = kind != Kind::Text || parts.iter().all(Part::can_join_text);
        let mut odd = None;
        let mut values = match kind {
            _ if !joinable => Values::Clash,
            Kind::Unknown => Values::Unknown,
            Kind::Number => Values::Number(Vec::with_capacity(rows)),
            Kind::Single => Values::Single(Vec::with_capacity(rows)),
            Kind::Logical => Values::Logical(Vec::with_capacity(rows)),
            Kind::Text => Values::Text(Codes::default()),
        };
        for part in parts {
            if odd.is_none() {
                odd = part.odd;
            }
            match (&mut values, part.values) {
                (Values::Clash | Values::Unknown, _) => {}
                (Values::Number(all), Values::Number(values)) => all.extend(values),
                (Values::Number(all), Values::Single(values)) => {
                    all.extend(values.into_iter().map(f64::from));
                }
                (Values::Number(all), _) => all.resize(all.len() + part.rows, f64::NAN),
                (Values::Single(all), Values::Single(values)) => all.extend(values),
                (Values::Single(all), _) => all.resize(all.len() + part.rows, f32::NAN),
                (Values::Logical(all), Values::Logical(codes)) => all.extend(codes),
                (Values::Logical(all), _) => all.resize(all.len() + part.rows, MISSING),
                (Values::Text(all), Values::Text(text)) => all.append(text),
                (Values::Text(all), _) => all.codes.resize(all.codes.len() + part.rows, MISSING),
            }
        }
        Part { rows, values, odd }
    }

    /// The column that the parts make, in the order of the files. Each must be of the same kind or
    /// unknown.
    pub fn join(parts: Vec<Part>) -> Column {
        let all = Part::concat(parts);
        match all.values {
            Values::Text(_) => all.into_text(),
            _ => {
                let settled = Settled::new(all.kind(), Codes::default());
                all.settle(&settled).expect("the parts of a column are of one kind")
            }
        }
    }

    /// The part as a column of the kind that the whole column is. None if it is of another kind, or
    /// text of a level that is not known.
    pub fn settle(self, settled: &Settled) -> Option<Column> {
        let rows = self.rows;
        let text = |codes| Column::Text { codes, levels: settled.names.clone() };
        Some(match (settled.kind, self.values) {
            (Kind::Number, Values::Number(values)) => Column::Number(values),
            (Kind::Number, Values::Single(values)) => Column::Number(widen(values)),
            (Kind::Number, Values::Unknown) => Column::Number(vec![f64::NAN; rows]),
            (Kind::Single, Values::Single(values)) => Column::Single(values),
            (Kind::Single, Values::Unknown) => Column::Single(vec![f32::NAN; rows]),
            (Kind::Logical, Values::Logical(codes)) => Column::Logical(codes),
            (Kind::Logical, Values::Unknown) => Column::Logical(vec![MISSING; rows]),
            (Kind::Text, Values::Text(own)) => {
                let (mut codes, levels) = own.into_levels();
                let new = levels.iter().map(|level| settled.codes.levels.get(level).copied());
                renumber(&mut codes, &new.collect::<Option<Vec<u32>>>()?);
                text(codes)
            }
            (Kind::Text, Values::Unknown) => text(vec![MISSING; rows]),
            _ => return None,
        })
    }

    /// The part as a column of text, which it must be or nothing but missing values.
    pub fn into_text(self) -> Column {
        let text = match self.values {
            Values::Text(text) => text,
            _ => Codes { codes: vec![MISSING; self.rows], ..Codes::default() },
        };
        let (codes, levels) = text.into_levels();
        Column::Text { codes, levels: Arc::new(levels) }
    }

    /// The values as numbers of lines, which they are in a converted copy.
    pub fn into_lines(self) -> Option<Vec<u32>> {
        match self.values {
            Values::Number(values) => Some(values.into_iter().map(|v| v as u32).collect()),
            _ => None,
        }
    }

    /// Adds the levels of text, in the order of their numbers, to others.
    pub fn levels_to(&self, all: &mut Codes) {
        let Values::Text(text) = &self.values else { return };
        let mut levels: Vec<(&String, u32)> = text.levels.iter().map(|(l, &c)| (l, c)).collect();
        levels.sort_unstable_by_key(|(_, code)| *code);
        levels.into_iter().for_each(|(level, _)| {
            all.code(level);
        });
    }
}

/// What a column is, known before its values are read.
pub(super) struct Settled {
    pub kind: Kind,
    /// The numbers of the levels of text.
    codes: Codes,
    /// The levels in the order of their numbers.
    names: Arc<Vec<String>>,
}

impl Settled {
    /// A column of this kind; the levels are for text. If nothing is known these are numbers.
    pub fn new(kind: Kind, codes: Codes) -> Settled {
        let mut names = vec![String::new(); codes.levels.len()];
        for (level, &code) in &codes.levels {
            names[code as usize].clone_from(level);
        }
        let kind = if kind == Kind::Unknown { Kind::Number } else { kind };
        Settled { kind, codes, names: Arc::new(names) }
    }
}

/// Codes of levels that have got other numbers.
fn renumber(codes: &mut [u32], new: &[u32]) {
    for code in codes {
        *code = new.get(*code as usize).copied().unwrap_or(MISSING);
    }
}
