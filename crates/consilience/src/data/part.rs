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

enum Values {
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

    /// How many rows.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Puts others behind these, in this one's numbering of levels.
    pub fn append(&mut self, others: Codes) {
        let (mut codes, names) = others.into_levels();
        let new: Vec<u32> = names.iter().map(|name| self.code(name)).collect();
        renumber(&mut codes, &new);
        append(&mut self.codes, codes);
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

impl Part {
    /// A column of a text file, the kind of which will show.
    pub fn open() -> Part {
        Part { rows: 0, values: Values::Unknown, odd: None }
    }

    /// A column of a text file that is text whatever it holds.
    pub fn text() -> Part {
        Part { rows: 0, values: Values::Text(Codes::default()), odd: None }
    }

    /// A column of nothing but missing values says nothing of its kind, whatever its type.
    fn typed(rows: usize, all_missing: bool, values: Values) -> Part {
        Part { rows, values: if all_missing { Values::Unknown } else { values }, odd: None }
    }

    /// A whole column of numbers, NaN for missing ones.
    pub fn numbers(values: Vec<f64>) -> Part {
        Part::typed(values.len(), values.iter().all(|x| x.is_nan()), Values::Number(values))
    }

    /// A whole column of numbers of half the digits, NaN for missing ones.
    pub fn singles(values: Vec<f32>) -> Part {
        Part::typed(values.len(), values.iter().all(|x| x.is_nan()), Values::Single(values))
    }

    /// A whole column of logicals.
    pub fn logicals(codes: Vec<u32>) -> Part {
        Part::typed(codes.len(), codes.iter().all(|&c| c == MISSING), Values::Logical(codes))
    }

    /// A whole column of text.
    pub fn texts(codes: Codes) -> Part {
        Part::typed(codes.codes.len(), codes.levels.is_empty(), Values::Text(codes))
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
            // What is not finite stands as missing: it ends in an error or is read again as text.
            (Values::Number(numbers), Value::Missing | Value::NonFinite) => numbers.push(f64::NAN),
            (Values::Logical(codes), Value::Logical(yes)) => codes.push(u32::from(yes)),
            (Values::Logical(codes), Value::Missing | Value::NonFinite) => codes.push(MISSING),
            (Values::Unknown, Value::Missing | Value::NonFinite) => {}
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

    /// The column that the parts make, in the order of the files. Each must be of the same kind or
    /// unknown.
    pub fn join(parts: Vec<Part>) -> Column {
        let kind = Kind::of(parts.iter().map(Part::kind));
        let mut levels = Codes::default();
        if kind == Kind::Text {
            // Each level is numbered with its first row, over all parts.
            for part in parts {
                match part.values {
                    Values::Text(text) => levels.append(text),
                    Values::Unknown => {
                        levels.codes.resize(levels.codes.len() + part.rows, MISSING);
                    }
                    _ => unreachable!("the parts of a column differ in kind"),
                }
            }
            let (codes, levels) = levels.into_levels();
            return Column::Text { codes, levels: Arc::new(levels) };
        }
        let settled = Settled::new(kind, levels);
        let settle = |part: Part| part.settle(&settled).expect("the parts are of one kind");
        let mut parts = parts.into_iter().map(settle);
        let mut all = parts.next().unwrap_or(Column::Number(Vec::new()));
        for part in parts {
            match (&mut all, part) {
                (Column::Number(all), Column::Number(values)) => append(all, values),
                (Column::Single(all), Column::Single(values)) => append(all, values),
                (Column::Logical(all), Column::Logical(values)) => append(all, values),
                _ => unreachable!("the parts of a column differ in kind"),
            }
        }
        all
    }

    /// The part as a column of the kind that the whole column is. None if it is of another kind, or
    /// text of a level that is not known.
    pub fn settle(self, settled: &Settled) -> Option<Column> {
        let rows = self.rows;
        Some(match (settled, self.values) {
            (Settled::Number, Values::Number(values)) => Column::Number(values),
            (Settled::Number, Values::Single(values)) => {
                Column::Number(values.into_iter().map(f64::from).collect())
            }
            (Settled::Number, Values::Unknown) => Column::Number(vec![f64::NAN; rows]),
            (Settled::Single, Values::Single(values)) => Column::Single(values),
            (Settled::Single, Values::Unknown) => Column::Single(vec![f32::NAN; rows]),
            (Settled::Logical, Values::Logical(codes)) => Column::Logical(codes),
            (Settled::Logical, Values::Unknown) => Column::Logical(vec![MISSING; rows]),
            (Settled::Text { codes: known, names }, Values::Text(text)) => {
                let (mut codes, levels) = text.into_levels();
                let new = levels.iter().map(|level| known.levels.get(level).copied());
                renumber(&mut codes, &new.collect::<Option<Vec<u32>>>()?);
                Column::Text { codes, levels: names.clone() }
            }
            (Settled::Text { names, .. }, Values::Unknown) => {
                Column::Text { codes: vec![MISSING; rows], levels: names.clone() }
            }
            _ => return None,
        })
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
pub(super) enum Settled {
    Number,
    Single,
    Logical,
    Text {
        /// The numbers of the levels.
        codes: Codes,
        /// The levels in the order of their numbers.
        names: Arc<Vec<String>>,
    },
}

impl Settled {
    /// Whether this is a column of text.
    pub fn is_text(&self) -> bool {
        matches!(self, Settled::Text { .. })
    }

    /// A column of this kind; the levels are for text. If nothing is known these are numbers.
    pub fn new(kind: Kind, levels: Codes) -> Settled {
        match kind {
            Kind::Unknown | Kind::Number => Settled::Number,
            Kind::Single => Settled::Single,
            Kind::Logical => Settled::Logical,
            Kind::Text => {
                let mut names = vec![String::new(); levels.levels.len()];
                for (level, &code) in &levels.levels {
                    names[code as usize].clone_from(level);
                }
                Settled::Text { codes: levels, names: Arc::new(names) }
            }
        }
    }
}

/// Codes of levels that have got other numbers.
fn renumber(codes: &mut [u32], new: &[u32]) {
    for code in codes {
        *code = new.get(*code as usize).copied().unwrap_or(MISSING);
    }
}

/// Puts values behind those that are there; a first part is taken as it is, without a copy.
fn append<T>(all: &mut Vec<T>, mut values: Vec<T>) {
    if all.is_empty() { *all = values } else { all.append(&mut values) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(values: &[&str]) -> Part {
        let mut part = Part::open();
        for (line, value) in (2..).zip(values) {
            part.push(value.as_bytes(), line).expect("UTF-8");
        }
        part
    }

    fn text(codes: &[u32], levels: &[&str]) -> Column {
        let levels = Arc::new(levels.iter().map(|l| l.to_string()).collect());
        Column::Text { codes: codes.to_vec(), levels }
    }

    #[test]
    fn values_decide_the_kind() {
        assert_eq!(
            Part::join(vec![part(&["1", "-2.5e3", ".5", "+7"])]),
            Column::Number(vec![1.0, -2500.0, 0.5, 7.0])
        );
        assert_eq!(
            Part::join(vec![part(&["", "TRUE", "false", "True", "NA"])]),
            Column::Logical(vec![MISSING, 1, 0, 1, MISSING])
        );
        assert_eq!(
            Part::join(vec![part(&["N/A", "b", "a", "null", "b", "3", "TRUE"])]),
            text(&[MISSING, 0, 1, MISSING, 0, 2, 3], &["b", "a", "3", "TRUE"])
        );
        let Column::Number(values) = Part::join(vec![part(&["", "NULL"])]) else { panic!() };
        assert!(values.len() == 2 && values.iter().all(|x| x.is_nan()));
    }

    #[test]
    fn what_is_missing_is_spelled_exactly() {
        for word in ["na", "Null", "n/a", "-", "None"] {
            assert!(Part::is_text([&part(&[word])].into_iter()), "{word}");
        }
    }

    #[test]
    fn a_change_of_kind_asks_for_another_reading() {
        for values in [&["1", "x"][..], &["TRUE", "1"], &["1", "TRUE"], &["nan", "x"]] {
            let part = part(values);
            assert!(Part::is_text([&part].into_iter()) && !part.can_join_text(), "{values:?}");
        }
        let words = part(&["x", "1", "TRUE", "nan"]);
        assert!(words.can_join_text() && words.odd().is_none());
    }

    #[test]
    fn a_value_that_is_not_finite_decides_no_kind() {
        for word in ["NaN", "nan", "Inf", "-inf", "+Infinity", "1e999"] {
            for values in [&[word][..], &["", word], &["1", word], &[word, "1"], &["TRUE", word]] {
                let part = part(values);
                assert!(!Part::is_text([&part].into_iter()), "{values:?}");
                assert!(part.odd().is_some_and(|odd| odd.value == word), "{values:?}");
                assert!(!part.can_join_text(), "{values:?}");
            }
        }
    }

    #[test]
    fn parts_join_in_order_and_share_levels() {
        let parts = vec![part(&["a", "b"]), part(&["", "NA"]), part(&["c", "b"])];
        assert!(Part::is_text(parts.iter()) && parts.iter().all(Part::can_join_text));
        assert_eq!(Part::join(parts), text(&[0, 1, MISSING, MISSING, 2, 1], &["a", "b", "c"]));
        let Column::Number(values) = Part::join(vec![part(&[""]), part(&["5"])]) else { panic!() };
        assert!(values[0].is_nan() && values[1] == 5.0);
        assert_eq!(
            Part::join(vec![part(&["TRUE"]), part(&[""])]),
            Column::Logical(vec![1, MISSING])
        );
        assert!(Part::is_text([part(&["1"]), part(&["true"])].iter()));
    }
}
