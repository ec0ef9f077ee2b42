//! The columns of one file while it is read, and how those of several files become one.

use super::level::spelled;
use super::spelling::{Spelling, Value};
use super::table::{Column, ColumnKind, MISSING};
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
#[derive(Default)]
pub(super) struct ColumnPart {
    rows: usize,
    /// The values; those of text have their levels in `words`. None as long as all are missing (or not finite).
    values: Option<Column>,
    words: Words,
    /// Text after all, although it began otherwise: has to be read again, and no values are kept.
    clash: bool,
    odd: Option<Odd>,
}

/// The first value of a column that spells a number which is not finite.
#[derive(Clone)]
pub(super) struct Odd {
    pub line: u32,
    pub value: String,
}

/// Levels of text, numbered in order of appearance.
#[derive(Default)]
pub(super) struct Words {
    codes: HashMap<String, u32>,
    /// What they take in memory, more or less, where each is kept twice: by its name and by its number.
    bytes: usize,
}

/// What a level takes in memory beside its letters, as long as it is kept twice.
const PER_LEVEL: usize = 160;

impl Words {
    /// The code of a level, which is added if it is new.
    pub fn code(&mut self, level: &str) -> u32 {
        if let Some(&code) = self.codes.get(level) {
            return code;
        }
        // Only what is new here is spelled alike: two spellings are one level.
        let level = spelled(level);
        if let Some(&code) = self.codes.get(&*level) {
            return code;
        }
        // Below MISSING: rows are counted in u32 from 1, so there are fewer levels than that.
        let code = self.codes.len() as u32;
        self.bytes += level.len() + PER_LEVEL;
        self.codes.insert(level.into_owned(), code);
        code
    }

    /// How many levels there are, and about how many bytes of memory they take.
    pub fn size(&self) -> (usize, usize) {
        (self.codes.len(), self.bytes)
    }

    /// The levels in the order of their codes.
    fn in_order(&self) -> Vec<&String> {
        let mut levels: Vec<(&String, u32)> = self.codes.iter().map(|(l, &c)| (l, c)).collect();
        levels.sort_unstable_by_key(|(_, code)| *code);
        levels.into_iter().map(|(level, _)| level).collect()
    }

    /// The same without the codes.
    fn into_levels(self) -> Vec<String> {
        let mut levels = vec![String::new(); self.codes.len()];
        for (level, code) in self.codes {
            levels[code as usize] = level;
        }
        levels
    }

    /// Takes in the levels of others and gives their codes the numbers that they have here.
    fn adopt(&mut self, others: Words, codes: &mut [u32]) {
        if self.codes.is_empty() {
            *self = others;
            return;
        }
        let new: Vec<u32> = others.in_order().iter().map(|level| self.code(level)).collect();
        renumber(codes, &new);
    }
}

/// Codes of levels that have got other numbers.
fn renumber(codes: &mut [u32], new: &[u32]) {
    for code in codes {
        *code = new.get(*code as usize).copied().unwrap_or(MISSING);
    }
}

/// Whether 32 bits hold a number as it is.
fn is_single(x: f64) -> bool {
    f64::from(x as f32) == x
}

fn widen(values: Vec<f32>) -> Vec<f64> {
    values.into_iter().map(f64::from).collect()
}

impl ColumnPart {
    /// A column of a text file, the kind of which will show.
    pub fn open() -> ColumnPart {
        ColumnPart::default()
    }

    /// A column without rows whose kind is known, whatever comes.
    pub fn typed(kind: ColumnKind) -> ColumnPart {
        ColumnPart { values: Some(Column::missing(kind, 0)), ..ColumnPart::default() }
    }

    /// The values of a column of known kind, to which so many rows are added, and its levels.
    pub fn grow(&mut self, more: usize) -> (&mut Column, &mut Words) {
        let before = self.rows;
        self.rows += more;
        let values = &mut self.values;
        let none_yet = || Column::missing(ColumnKind::Number, before);
        (values.get_or_insert_with(none_yet), &mut self.words)
    }

    /// The column once all of its rows are there: spelled out if it is to be text. Nothing but missing
    /// values say nothing of their kind, whatever the type.
    pub fn finish(mut self, as_text: bool) -> ColumnPart {
        match self.values.take() {
            Some(values) if values.all_missing() => {}
            Some(values) if as_text && values.kind() != ColumnKind::Text => {
                let code = |row| spell(&values, row).map_or(MISSING, |word| self.words.code(&word));
                let codes = (0..self.rows).map(code).collect();
                self.values = Some(Column::Text { codes, levels: Arc::default() });
            }
            values => self.values = values,
        }
        self
    }

    /// Adds a value of a text file, trimmed.
    pub fn push(&mut self, bytes: &[u8], line: u32, spelling: &Spelling) -> Result<(), Utf8Error> {
        if let Some(Column::Text { codes, .. }) = &mut self.values {
            let word = std::str::from_utf8(bytes)?;
            codes.push(if spelling.is_missing(word) { MISSING } else { self.words.code(word) });
            self.rows += 1;
            return Ok(());
        }
        if self.clash {
            // Not kept, but checked: the first fault of a file is the one to report.
            std::str::from_utf8(bytes)?;
            self.rows += 1;
            return Ok(());
        }
        let value = spelling.value(bytes)?;
        if matches!(value, Value::NonFinite) && self.odd.is_none() {
            let value = String::from_utf8_lossy(bytes).into_owned();
            self.odd = Some(Odd { line, value });
        }
        match (&mut self.values, value) {
            (Some(Column::Number(numbers)), Value::Finite(x)) => numbers.push(x),
            (Some(Column::Single(numbers)), Value::Finite(x)) if is_single(x) => {
                numbers.push(x as f32)
            }
            (Some(Column::Single(numbers)), Value::Finite(x)) => {
                let mut numbers = widen(std::mem::take(numbers));
                numbers.push(x);
                self.values = Some(Column::Number(numbers));
            }
            (Some(Column::Logical(codes)), Value::Logical(yes)) => codes.push(u32::from(yes)),
            // What is not finite stands as missing: it ends in an error or is read again as text.
            (Some(values), Value::Missing | Value::NonFinite) => values.push_missing(),
            (None, Value::Missing | Value::NonFinite) => {}
            (None, value) if !matches!(value, Value::Word) || self.odd.is_none() => {
                let kind = match value {
                    Value::Finite(x) if is_single(x) => ColumnKind::Single,
                    Value::Logical(_) => ColumnKind::Logical,
                    Value::Word => ColumnKind::Text,
                    _ => ColumnKind::Number,
                };
                self.values = Some(Column::missing(kind, self.rows));
                return self.push(bytes, line, spelling);
            }
            _ => (self.values, self.clash) = (None, true),
        }
        self.rows += 1;
        Ok(())
    }

    /// The first value that spells a number which is not finite.
    pub fn odd(&self) -> Option<&Odd> {
        self.odd.as_ref()
    }

    /// What its values are. Text that began otherwise counts as text.
    pub fn kind(&self) -> ColumnKind {
        match &self.values {
            _ if self.clash => ColumnKind::Text,
            Some(values) => values.kind(),
            None => ColumnKind::Unknown,
        }
    }

    /// Whether this part can be part of a text column as it is.
    pub fn can_join_text(&self) -> bool {
        match &self.values {
            Some(values) => values.kind() == ColumnKind::Text,
            None => !self.clash && self.odd.is_none(),
        }
    }

    /// The parts behind each other. Those of different kinds make text that has to be read again.
    pub fn concat(mut parts: Vec<ColumnPart>) -> ColumnPart {
        if parts.len() == 1 {
            return parts.swap_remove(0);
        }
        let kind = ColumnKind::of(parts.iter().map(ColumnPart::kind));
        let clash = kind == ColumnKind::Text && !parts.iter().all(ColumnPart::can_join_text);
        let rows = parts.iter().map(|part| part.rows).sum();
        let mut all = ColumnPart { rows, clash, ..ColumnPart::default() };
        if !clash && kind != ColumnKind::Unknown {
            all.values.insert(Column::missing(kind, 0)).reserve(rows);
        }
        for part in parts {
            all.odd = all.odd.or(part.odd);
            let Some(values) = &mut all.values else { continue };
            let mut own = part.values.unwrap_or_else(|| Column::missing(kind, part.rows));
            if let Column::Text { codes, .. } = &mut own {
                all.words.adopt(part.words, codes);
            }
            values.append(own);
        }
        all
    }

    /// The column that the parts make, in the order of the files. Each must be of the same kind or
    /// unknown.
    pub fn join(parts: Vec<ColumnPart>) -> Column {
        let all = ColumnPart::concat(parts);
        let kind = all.kind();
        all.into_column(kind).expect("the parts of a column are of one kind")
    }

    /// The part as a column of this kind, with levels of its own. None if it is of another kind, or has to be
    /// read again as text.
    pub fn into_column(self, kind: ColumnKind) -> Option<Column> {
        match self.values {
            None if self.clash || kind == ColumnKind::Text && self.odd.is_some() => None,
            None => Some(Column::missing(kind, self.rows)),
            Some(Column::Text { codes, .. }) if kind == ColumnKind::Text => {
                Some(Column::Text { codes, levels: Arc::new(self.words.into_levels()) })
            }
            Some(Column::Single(values)) if kind == ColumnKind::Number => {
                Some(Column::Number(widen(values)))
            }
            Some(values) => (values.kind() == kind).then_some(values),
        }
    }

    /// The part as a column of the kind that the whole column is. None if it is of another kind, or
    /// text of a level that is not known.
    pub fn settle(self, settled: &SettledColumn) -> Option<Column> {
        let mut column = self.into_column(settled.kind)?;
        if let Column::Text { codes, levels } = &mut column {
            let new = levels.iter().map(|level| settled.words.codes.get(level).copied());
            renumber(codes, &new.collect::<Option<Vec<u32>>>()?);
            *levels = settled.levels.clone();
        }
        Some(column)
    }

    /// The values as numbers of lines, which they are in a converted copy.
    pub fn into_lines(self) -> Option<Vec<u32>> {
        let numbers = self.into_column(ColumnKind::Number)?;
        Some(numbers.numbers()?.iter().map(|&v| v as u32).collect())
    }

    /// Adds the levels of text, in the order of their numbers, to others.
    pub fn levels_to(&self, all: &mut Words) {
        self.words.in_order().into_iter().for_each(|level| {
            all.code(level);
        });
    }
}

/// A value in words, as a text file would have it; none if it is missing.
fn spell(values: &Column, row: usize) -> Option<String> {
    match values {
        _ if values.is_missing(row) => None,
        Column::Number(values) => Some(values[row].to_string()),
        Column::Single(values) => Some(f64::from(values[row]).to_string()),
        Column::Logical(codes) => Some((codes[row] == 1).to_string()),
        Column::Text { codes, levels } => levels.get(codes[row] as usize).cloned(),
    }
}

/// What a column is, known before its values are read.
pub(super) struct SettledColumn {
    pub kind: ColumnKind,
    /// The levels of text, and the same in the order of their numbers.
    words: Words,
    levels: Arc<Vec<String>>,
}

impl SettledColumn {
    /// A column of this kind; the levels are for text. If nothing is known these are numbers.
    pub fn new(kind: ColumnKind, words: Words) -> SettledColumn {
        let levels = Arc::new(words.in_order().into_iter().cloned().collect());
        let kind = if kind == ColumnKind::Unknown { ColumnKind::Number } else { kind };
        SettledColumn { kind, words, levels }
    }
}
