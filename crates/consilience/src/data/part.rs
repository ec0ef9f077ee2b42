//! The columns of one file while it is read, and how those of several files become one.

use super::level::spelled;
use super::table::{Column, MISSING};
use std::collections::HashMap;
use std::str::Utf8Error;
use std::sync::Arc;

/// What one file brings to the table.
pub(super) struct FilePart {
    /// The columns in the order they were asked for.
    pub columns: Vec<ColumnPart>,
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
            columns.push(ColumnPart::concat(parts));
        }
        columns.reverse();
        FilePart { columns, numbers, comments }
    }
}

/// One file's part of a column.
pub(super) struct ColumnPart {
    rows: usize,
    values: PartValues,
    odd: Option<Odd>,
}

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnKind {
    /// Nothing but missing values: agrees with every kind.
    Unknown,
    Number,
    Single,
    Logical,
    Text,
}

impl ColumnKind {
    /// The kind of a column whose parts are of these kinds.
    pub fn of(parts: impl Iterator<Item = ColumnKind>) -> ColumnKind {
        let (mut numbers, mut singles, mut logicals) = (false, false, false);
        for part in parts {
            match part {
                ColumnKind::Unknown => {}
                ColumnKind::Number => numbers = true,
                ColumnKind::Single => singles = true,
                ColumnKind::Logical => logicals = true,
                ColumnKind::Text => return ColumnKind::Text,
            }
        }
        match (numbers, singles, logicals) {
            (false, false, true) => ColumnKind::Logical,
            (_, _, true) => ColumnKind::Text,
            (false, true, false) => ColumnKind::Single,
            (true, _, false) => ColumnKind::Number,
            (false, false, false) => ColumnKind::Unknown,
        }
    }
}

/// The first value of a column that spells a number which is not finite.
#[derive(Clone)]
pub(super) struct Odd {
    pub line: u32,
    pub value: String,
}

/// The values of a column on the way in, the only form that they have there.
pub(super) enum PartValues {
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
    /// What the levels take in memory, more or less, where each is kept twice: by its name and by its number.
    bytes: usize,
}

/// What a level takes in memory beside its letters, as long as it is kept twice.
const PER_LEVEL: usize = 160;

impl Codes {
    /// The code of a level, which is added if it is new.
    pub fn code(&mut self, level: &str) -> u32 {
        if let Some(&code) = self.levels.get(level) {
            return code;
        }
        // Only what is new here is spelled alike: two spellings are one level.
        let level = spelled(level);
        if let Some(&code) = self.levels.get(&*level) {
            return code;
        }
        // Below MISSING: rows are counted in u32 from 1, so there are fewer levels than that.
        let code = self.levels.len() as u32;
        self.bytes += level.len() + PER_LEVEL;
        self.levels.insert(level.into_owned(), code);
        code
    }

    /// How many levels there are, and about how many bytes of memory they take.
    pub fn size(&self) -> (usize, usize) {
        (self.levels.len(), self.bytes)
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

fn spell(values: impl Iterator<Item = Option<String>>) -> PartValues {
    let mut codes = Codes::default();
    for value in values {
        let code = value.map_or(MISSING, |value| codes.code(&value));
        codes.push(code);
    }
    PartValues::Text(codes)
}

impl ColumnPart {
    /// A column of a text file, the kind of which will show.
    pub fn open() -> ColumnPart {
        ColumnPart { rows: 0, values: PartValues::Unknown, odd: None }
    }

    /// A column of a text file that is text whatever it holds.
    pub fn text() -> ColumnPart {
        ColumnPart { rows: 0, values: PartValues::Text(Codes::default()), odd: None }
    }

    /// A column whose type says what its values are.
    pub fn typed(values: PartValues) -> ColumnPart {
        ColumnPart { rows: 0, values, odd: None }
    }

    /// The values, to which so many rows are added.
    pub fn values_mut(&mut self, more: usize) -> &mut PartValues {
        self.rows += more;
        &mut self.values
    }

    /// The column once all of its rows are there: spelled out if it is to be text. Nothing but missing
    /// values say nothing of their kind, whatever the type.
    pub fn finish(mut self, as_text: bool) -> ColumnPart {
        let all_missing = match &self.values {
            PartValues::Number(values) => values.iter().all(|x| x.is_nan()),
            PartValues::Single(values) => values.iter().all(|x| x.is_nan()),
            PartValues::Logical(codes) => codes.iter().all(|&c| c == MISSING),
            PartValues::Text(codes) => codes.levels.is_empty(),
            PartValues::Unknown | PartValues::Clash => return self,
        };
        self.values = match self.values {
            _ if all_missing => PartValues::Unknown,
            PartValues::Number(values) if as_text => {
                spell(values.into_iter().map(|x| (!x.is_nan()).then(|| x.to_string())))
            }
            PartValues::Single(values) if as_text => {
                spell(values.into_iter().map(|x| (!x.is_nan()).then(|| f64::from(x).to_string())))
            }
            PartValues::Logical(codes) if as_text => {
                spell(codes.into_iter().map(|c| (c != MISSING).then(|| (c == 1).to_string())))
            }
            values => values,
        };
        self
    }

    /// Adds a value of a text file, trimmed.
    pub fn push(&mut self, bytes: &[u8], line: u32) -> Result<(), Utf8Error> {
        match &mut self.values {
            PartValues::Text(codes) => {
                let word = std::str::from_utf8(bytes)?;
                let code = if is_missing(bytes) { MISSING } else { codes.code(word) };
                codes.push(code);
                self.rows += 1;
                return Ok(());
            }
            PartValues::Clash => {
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
            (PartValues::Number(numbers), Value::Finite(x)) => numbers.push(x),
            (PartValues::Single(numbers), Value::Finite(x)) if is_single(x) => {
                numbers.push(x as f32)
            }
            (PartValues::Single(numbers), Value::Finite(x)) => {
                let mut numbers = widen(std::mem::take(numbers));
                numbers.push(x);
                self.values = PartValues::Number(numbers);
            }
            (PartValues::Single(numbers), Value::Missing | Value::NonFinite) => {
                numbers.push(f32::NAN)
            }
            // What is not finite stands as missing: it ends in an error or is read again as text.
            (PartValues::Number(numbers), Value::Missing | Value::NonFinite) => {
                numbers.push(f64::NAN)
            }
            (PartValues::Logical(codes), Value::Logical(yes)) => codes.push(u32::from(yes)),
            (PartValues::Logical(codes), Value::Missing | Value::NonFinite) => codes.push(MISSING),
            (PartValues::Unknown, Value::Missing | Value::NonFinite) => {}
            (PartValues::Unknown, Value::Finite(x)) if is_single(x) => {
                let mut numbers = vec![f32::NAN; self.rows];
                numbers.push(x as f32);
                self.values = PartValues::Single(numbers);
            }
            (PartValues::Unknown, Value::Finite(x)) => {
                let mut numbers = vec![f64::NAN; self.rows];
                numbers.push(x);
                self.values = PartValues::Number(numbers);
            }
            (PartValues::Unknown, Value::Logical(yes)) => {
                let mut codes = vec![MISSING; self.rows];
                codes.push(u32::from(yes));
                self.values = PartValues::Logical(codes);
            }
            (PartValues::Unknown, Value::Word) if self.odd.is_none() => {
                let mut codes = Codes { codes: vec![MISSING; self.rows], ..Codes::default() };
                let code = codes.code(std::str::from_utf8(bytes)?);
                codes.push(code);
                self.values = PartValues::Text(codes);
            }
            _ => self.values = PartValues::Clash,
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
    pub fn kind(&self) -> ColumnKind {
        match self.values {
            PartValues::Unknown => ColumnKind::Unknown,
            PartValues::Number(_) => ColumnKind::Number,
            PartValues::Single(_) => ColumnKind::Single,
            PartValues::Logical(_) => ColumnKind::Logical,
            PartValues::Text(_) | PartValues::Clash => ColumnKind::Text,
        }
    }

    /// Whether the parts of a column, one per file, make it text.
    pub fn is_text<'a>(parts: impl Iterator<Item = &'a ColumnPart>) -> bool {
        ColumnKind::of(parts.map(ColumnPart::kind)) == ColumnKind::Text
    }

    /// Whether this part can be part of a text column as it is.
    pub fn can_join_text(&self) -> bool {
        match self.values {
            PartValues::Text(_) => true,
            PartValues::Unknown => self.odd.is_none(),
            _ => false,
        }
    }

    /// The parts behind each other. Those of different kinds make text that has to be read again.
    pub fn concat(mut parts: Vec<ColumnPart>) -> ColumnPart {
        if parts.len() == 1 {
            return parts.swap_remove(0);
        }
        let rows = parts.iter().map(|part| part.rows).sum();
        let kind = ColumnKind::of(parts.iter().map(ColumnPart::kind));
        let joinable = kind != ColumnKind::Text || parts.iter().all(ColumnPart::can_join_text);
        let mut odd = None;
        let mut values = match kind {
            _ if !joinable => PartValues::Clash,
            ColumnKind::Unknown => PartValues::Unknown,
            ColumnKind::Number => PartValues::Number(Vec::with_capacity(rows)),
            ColumnKind::Single => PartValues::Single(Vec::with_capacity(rows)),
            ColumnKind::Logical => PartValues::Logical(Vec::with_capacity(rows)),
            ColumnKind::Text => PartValues::Text(Codes::default()),
        };
        for part in parts {
            if odd.is_none() {
                odd = part.odd;
            }
            match (&mut values, part.values) {
                (PartValues::Clash | PartValues::Unknown, _) => {}
                (PartValues::Number(all), PartValues::Number(values)) => all.extend(values),
                (PartValues::Number(all), PartValues::Single(values)) => {
                    all.extend(values.into_iter().map(f64::from));
                }
                (PartValues::Number(all), _) => all.resize(all.len() + part.rows, f64::NAN),
                (PartValues::Single(all), PartValues::Single(values)) => all.extend(values),
                (PartValues::Single(all), _) => all.resize(all.len() + part.rows, f32::NAN),
                (PartValues::Logical(all), PartValues::Logical(codes)) => all.extend(codes),
                (PartValues::Logical(all), _) => all.resize(all.len() + part.rows, MISSING),
                (PartValues::Text(all), PartValues::Text(text)) => all.append(text),
                (PartValues::Text(all), _) => {
                    all.codes.resize(all.codes.len() + part.rows, MISSING)
                }
            }
        }
        ColumnPart { rows, values, odd }
    }

    /// The column that the parts make, in the order of the files. Each must be of the same kind or
    /// unknown.
    pub fn join(parts: Vec<ColumnPart>) -> Column {
        let all = ColumnPart::concat(parts);
        match all.values {
            PartValues::Text(_) => all.into_text(),
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
            (ColumnKind::Number, PartValues::Number(values)) => Column::Number(values),
            (ColumnKind::Number, PartValues::Single(values)) => Column::Number(widen(values)),
            (ColumnKind::Number, PartValues::Unknown) => Column::Number(vec![f64::NAN; rows]),
            (ColumnKind::Single, PartValues::Single(values)) => Column::Single(values),
            (ColumnKind::Single, PartValues::Unknown) => Column::Single(vec![f32::NAN; rows]),
            (ColumnKind::Logical, PartValues::Logical(codes)) => Column::Logical(codes),
            (ColumnKind::Logical, PartValues::Unknown) => Column::Logical(vec![MISSING; rows]),
            (ColumnKind::Text, PartValues::Text(own)) => {
                let (mut codes, levels) = own.into_levels();
                let new = levels.iter().map(|level| settled.codes.levels.get(level).copied());
                renumber(&mut codes, &new.collect::<Option<Vec<u32>>>()?);
                text(codes)
            }
            (ColumnKind::Text, PartValues::Unknown) => text(vec![MISSING; rows]),
            _ => return None,
        })
    }

    /// The part as a column of text, which it must be or nothing but missing values.
    pub fn into_text(self) -> Column {
        let text = match self.values {
            PartValues::Text(text) => text,
            _ => Codes { codes: vec![MISSING; self.rows], ..Codes::default() },
        };
        let (codes, levels) = text.into_levels();
        Column::Text { codes, levels: Arc::new(levels) }
    }

    /// The values as numbers of lines, which they are in a converted copy.
    pub fn into_lines(self) -> Option<Vec<u32>> {
        match self.values {
            PartValues::Number(values) => Some(values.into_iter().map(|v| v as u32).collect()),
            _ => None,
        }
    }

    /// Adds the levels of text, in the order of their numbers, to others.
    pub fn levels_to(&self, all: &mut Codes) {
        let PartValues::Text(text) = &self.values else { return };
        let mut levels: Vec<(&String, u32)> = text.levels.iter().map(|(l, &c)| (l, c)).collect();
        levels.sort_unstable_by_key(|(_, code)| *code);
        levels.into_iter().for_each(|(level, _)| {
            all.code(level);
        });
    }
}

/// What a column is, known before its values are read.
pub(super) struct Settled {
    pub kind: ColumnKind,
    /// The numbers of the levels of text.
    codes: Codes,
    /// The levels in the order of their numbers.
    names: Arc<Vec<String>>,
}

impl Settled {
    /// A column of this kind; the levels are for text. If nothing is known these are numbers.
    pub fn new(kind: ColumnKind, codes: Codes) -> Settled {
        let mut names = vec![String::new(); codes.levels.len()];
        for (level, &code) in &codes.levels {
            names[code as usize].clone_from(level);
        }
        let kind = if kind == ColumnKind::Unknown { ColumnKind::Number } else { kind };
        Settled { kind, codes, names: Arc::new(names) }
    }
}

/// Codes of levels that have got other numbers.
fn renumber(codes: &mut [u32], new: &[u32]) {
    for code in codes {
        *code = new.get(*code as usize).copied().unwrap_or(MISSING);
    }
}
