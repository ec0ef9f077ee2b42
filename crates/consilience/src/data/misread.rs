//! Columns of text that were meant as numbers: decimal commas, and a few words among many numbers.

use super::number::parse_number;
use super::table::{Column, Table};
use crate::error::clip;
use crate::{Error, Place};

/// More different words than this among numbers are no slips.
const MOST_WORDS: usize = 3;

/// Different numbers that there must be for each of them.
const NUMBERS_PER_WORD: usize = 3;

/// So many different numbers, or so many of which one has decimals, are no categories.
const MANY: usize = 20;
const MANY_WITH_DECIMALS: usize = 5;

/// A column of text that seems to be one of numbers.
#[derive(Debug, Clone)]
pub struct Misread {
    /// Its name.
    pub column: String,
    /// What makes it text.
    pub cause: Cause,
    /// Whether it can hardly be anything else: categories do not look so.
    pub certain: bool,
    /// The words among the numbers.
    words: Vec<String>,
    /// Where the first of them stands.
    first: Option<(Place, String)>,
}

/// What makes text of a column of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Commas before decimals.
    DecimalComma,
    /// Commas that stand where they part thousands, before decimals if not.
    Thousands,
    /// Points before decimals, and commas are asked for.
    DecimalPoint,
    /// A few words.
    Words,
}

/// The columns of a table of the kind. If `comma`, it was read with commas before decimals.
pub fn misread(table: &Table, comma: bool) -> Vec<Misread> {
    let columns = table.names().iter().zip(table.columns());
    let text = columns.filter_map(|(name, column)| match column {
        Column::Text { levels, .. } => Some((name, levels)),
        _ => None,
    });
    let mut found: Vec<Misread> =
        text.filter_map(|(name, levels)| Misread::of(name, levels, comma)).collect();
    found.iter_mut().for_each(|one| one.look(table));
    found
}

impl Misread {
    fn of(name: &str, levels: &[String], comma: bool) -> Option<Misread> {
        let (mut numbers, mut with_decimals, mut points) = (0, 0, 0);
        let (mut commas, mut thousands, mut words) = (0, 0, Vec::new());
        for level in levels {
            let number = match level.contains('.') {
                false if comma => parse_number(&level.replacen(',', ".", 1)),
                _ => parse_number(level),
            };
            if let Some(x) = number {
                numbers += 1;
                with_decimals += usize::from(x.fract() != 0.0);
                points += usize::from(comma && level.contains('.'));
            } else if is_number_with_commas(level) && comma {
                numbers += 1;
                points += 1;
            } else if is_number_with_commas(level) {
                thousands += usize::from(parts_thousands(level));
                commas += 1;
            } else if words.len() == MOST_WORDS {
                return None;
            } else {
                words.push(level.clone());
            }
        }
        let all = numbers + commas;
        if all < NUMBERS_PER_WORD * words.len().max(1) {
            return None;
        }
        let cause = match (commas, points, words.len()) {
            (0, 0, 0) => return None,
            (0, 0, _) => Cause::Words,
            (0, ..) => Cause::DecimalPoint,
            _ if thousands == commas => Cause::Thousands,
            _ => Cause::DecimalComma,
        };
        let certain =
            cause != Cause::Words || all >= MANY || with_decimals > 0 && all >= MANY_WITH_DECIMALS;
        Some(Misread { column: name.to_string(), cause, certain, words, first: None })
    }

    /// Whether this level makes the column text.
    fn is_odd(&self, level: &String) -> bool {
        match self.cause {
            Cause::Words => self.words.contains(level),
            Cause::DecimalPoint => {
                level.contains('.')
                    && (parse_number(level).is_some() || is_number_with_commas(level))
            }
            Cause::DecimalComma | Cause::Thousands => is_number_with_commas(level),
        }
    }

    /// Looks for the first of them in these rows, unless it is found.
    pub(crate) fn look(&mut self, table: &Table) {
        let Ok(Column::Text { codes, levels }) = table.column(&self.column) else { return };
        if self.first.is_some() {
            return;
        }
        let odd: Vec<bool> = levels.iter().map(|level| self.is_odd(level)).collect();
        let is_odd = |code: &u32| odd.get(*code as usize).copied().unwrap_or(false);
        self.first = codes.iter().position(is_odd).map(|row| {
            let level = levels[codes[row] as usize].clone();
            (table.place(row, Some(&self.column)), level)
        });
    }

    /// The words among the numbers, which may stand for missing values.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// What is wrong, and what to do about it.
    fn message(&self) -> (String, String) {
        let word = self.first.as_ref().map_or("", |(_, word)| word);
        let word = clip(word);
        let categories = format!("factor({}) in the formulas if these are categories", self.column);
        match self.cause {
            Cause::DecimalComma => (
                format!("`{word}` seems to be a number with a comma before its decimals"),
                format!("write decimal = \",\" under [data], or {categories}"),
            ),
            Cause::Thousands => (
                format!("`{word}` seems to be a number with a comma between its thousands"),
                format!(
                    "take these commas out of the file; write decimal = \",\" under [data] if they stand before decimals, or {categories}"
                ),
            ),
            Cause::DecimalPoint => (
                format!("`{word}` has a point in it, and `data.decimal` is \",\""),
                format!(
                    "leave `decimal` out if points stand before decimals, take the points out of the file if they part thousands, or write {categories}"
                ),
            ),
            Cause::Words => {
                let list: Vec<String> = self.words.iter().map(|w| format!("{w:?}")).collect();
                (
                    format!("`{word}` is no number, and nearly all other values are"),
                    format!(
                        "write na = [{}] under [data] if that stands for a missing value, correct it, or write {categories}",
                        clip(&list.join(", "))
                    ),
                )
            }
        }
    }

    /// As an error, which names file and line.
    pub(crate) fn error(self) -> Error {
        let (what, advice) = self.message();
        let place = self.first.map(|(place, _)| place).unwrap_or_default();
        Error::input_at(place, format!("{what}; {advice}"))
    }
}

/// Whether a text is a number if its commas part thousands or stand before decimals.
fn is_number_with_commas(text: &str) -> bool {
    if !text.contains(',') {
        return false;
    }
    if parts_thousands(text) {
        return true;
    }
    let mut parts = text.split(',');
    let (whole, decimals) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    let whole = whole.replace('.', "");
    parts.next().is_none() && parse_number(&format!("{whole}.{decimals}")).is_some()
}

/// `1,234` and `-12,345,678.5`.
fn parts_thousands(text: &str) -> bool {
    let text = text.trim_start_matches(['-', '+']);
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or("");
    (1..=3).contains(&first.len())
        && first != "0"
        && digits(first)
        && digits(decimals)
        && groups.all(|group| group.len() == 3 && digits(group))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::testing::{table, text};

    fn found(values: &[&str], comma: bool) -> Option<(Cause, bool)> {
        let one = misread(&table(vec![("x", text(values))]), comma).pop()?;
        Some((one.cause, one.certain))
    }

    #[test]
    fn numbers_that_are_text_are_told_from_categories() {
        use Cause::*;
        let many: Vec<String> = (0..30).map(|i| i.to_string()).collect();
        let mut many: Vec<&str> = many.iter().map(String::as_str).collect();
        many.push("lost");
        for (values, expected) in [
            (&["1,5", "2,25", "3"][..], Some((DecimalComma, true))),
            (&["1,5", "2,25", "-0,5", "7,125", "-"], Some((DecimalComma, true))),
            (&["1.234,5", "2,0", "1"], Some((DecimalComma, true))),
            (&["1,234", "12,000", "3"], Some((Thousands, true))),
            (&["1", "2", "3", "4", "5", "n/a"], Some((Words, false))),
            (&["1", "2", "3", "other"], Some((Words, false))),
            (&["1", "2", "NaN"], None),
            (&["0.5", "1", "2", "3", "4", "oops"], Some((Words, true))),
            (&many, Some((Words, true))),
            (&["a", "b", "1", "2", "c", "d"], None),
            (&["1,2", "a,b", "c", "d", "e"], None),
            (&["1", "2"], None),
        ] {
            assert_eq!(found(values, false), expected, "{values:?}");
        }
        assert_eq!(found(&["1.5", "2.5", "3"], true), Some((DecimalPoint, true)));
        assert_eq!(found(&["1.5", "2.5", "3"], false), None);
        assert_eq!(found(&["1.234,5", "2,5", "3"], true), Some((DecimalPoint, true)));
        assert_eq!(found(&["1,5", "2,5", "3", "4", "5", "-"], true), Some((Words, true)));
    }

    #[test]
    fn the_first_of_them_is_named_with_its_line() {
        let whole = table(vec![("x", text(&["1", "2", "3", "?", "4", "n/a", "5", "6"]))]);
        let mut one = misread(&whole, false).remove(0);
        one.certain = true;
        let error = one.error().to_string();
        let parts = ["line 5", "`?` is no number", "na = [\"?\", \"n/a\"]", "factor(x)"];
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}
