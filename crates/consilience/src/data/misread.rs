//! Columns of text that were meant as numbers: decimal commas, numbers with a unit, dates, and a few words among many
//! numbers.

use super::number::parse_number;
use super::table::{Column, Table};
use crate::error::clip;
use crate::{Error, Place};
use std::collections::BTreeSet;

/// More different words than this among numbers are no slips.
const MOST_WORDS: usize = 3;

/// Different numbers that there must be for each of them.
const NUMBERS_PER_WORD: usize = 3;

/// So many different numbers, or so many of which one has decimals, are no categories.
const MANY: usize = 20;
const MANY_WITH_DECIMALS: usize = 5;

/// So many different ones are no categories either, if nearly every row has its own.
pub(crate) const FEW: usize = 10;

/// Of many different ones each has so many rows, or they are no categories: a factor would say next to nothing of each.
const ROWS_PER_LEVEL: usize = 5;

/// A column of text that seems to be one of numbers.
#[derive(Debug, Clone)]
pub struct Misread {
    /// Its name.
    pub column: String,
    /// What makes it text.
    pub cause: Cause,
    /// Whether it can hardly be anything else: categories do not look so.
    pub certain: bool,
    /// How many different values with a unit, or days, it has.
    written: usize,
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
    /// A unit or a sign behind all numbers, as in `5kg` and `12%`, or before them, as in `$5`.
    Unit,
    /// Days.
    Date,
    /// A few words.
    Words,
}

/// The columns of a table of the kind. If `comma`, it was read with commas before decimals.
pub fn misread(table: &Table, comma: bool) -> Vec<Misread> {
    let mut found = suspects(table, comma);
    found.iter_mut().for_each(|one| one.judge(table.rows()));
    found
}

/// The same of rows that are not all that there are: units and dates are not judged yet.
pub(crate) fn suspects(table: &Table, comma: bool) -> Vec<Misread> {
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
        Misread::of_numbers(name, levels, comma).or_else(|| Misread::of_written(name, levels))
    }

    /// Numbers with something at them, and dates. Few of them may be categories, as doses are.
    pub(crate) fn of_written(name: &str, levels: &[String]) -> Option<Misread> {
        let mut unit: Option<(&str, &str)> = None;
        let (mut units, mut dates, mut words) = (0, 0, Vec::new());
        let (mut days, mut years) = (BTreeSet::new(), BTreeSet::new());
        for level in levels {
            let around = around_number(level);
            if is_date(level) {
                dates += 1;
            } else if let Some((day, year)) = short_date(level) {
                days.insert(day);
                years.insert(year);
                dates += 1;
            } else if around.is_some_and(|around| *unit.get_or_insert(around) == around) {
                units += 1;
            } else if parse_number(level).is_some() {
                continue;
            } else if words.len() == MOST_WORDS {
                return None;
            } else {
                words.push(level.clone());
            }
        }
        // Codes of three numbers are no dates: of those the days go up to 31, and there are few years.
        let are_codes = days.iter().all(|day| *day <= 12) || years.len() >= days.len();
        if !days.is_empty() && are_codes {
            return None;
        }
        let (cause, written) = match (units, dates) {
            (count, 0) => (Cause::Unit, count),
            (0, count) => (Cause::Date, count),
            _ => return None,
        };
        let many = written > FEW && written >= NUMBERS_PER_WORD * words.len();
        many.then(|| Misread {
            column: name.to_string(),
            cause,
            certain: false,
            written,
            words,
            first: None,
        })
    }

    /// Decides on units and dates by the number of all rows: they are numbers where so many different ones have so few
    /// rows each that they make no factor.
    pub(crate) fn judge(&mut self, rows: usize) {
        if self.is_written() {
            let rows_per_level = if self.written >= MANY { ROWS_PER_LEVEL } else { 2 };
            self.certain = rows < rows_per_level * self.written;
        }
    }

    /// Whether it is numbers with something at them, or dates.
    pub(crate) fn is_written(&self) -> bool {
        matches!(self.cause, Cause::Unit | Cause::Date)
    }

    /// Whether there are so many different ones that a factor of them is worth a word.
    pub(crate) fn are_many(&self) -> bool {
        self.written >= MANY
    }

    fn of_numbers(name: &str, levels: &[String], comma: bool) -> Option<Misread> {
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
        let column = name.to_string();
        Some(Misread { column, cause, certain, written: 0, words, first: None })
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
            Cause::Unit => around_number(level).is_some(),
            Cause::Date => is_date(level) || short_date(level).is_some(),
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

    /// The same without any rows: one of these levels is named.
    pub(crate) fn among(mut self, levels: &[String]) -> Misread {
        let odd = levels.iter().find(|level| self.is_odd(level));
        let place = Place::default().column(&self.column);
        self.first = odd.map(|level| (place, level.clone()));
        self
    }

    /// The words among the numbers, which may stand for missing values.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// What is wrong, and what to do about it.
    pub(crate) fn message(&self) -> (String, String) {
        let word = self.first.as_ref().map_or("", |(_, word)| word);
        let word = &*clip(word);
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
            Cause::Unit => {
                let (before, after) = around_number(word).unwrap_or_default();
                let sign = if before.is_empty() { after } else { before }.trim();
                (
                    format!("`{word}` seems to be a number with `{sign}` written to it"),
                    format!(
                        "take `{sign}` out of the file, so that the column holds numbers, or write {categories}"
                    ),
                )
            }
            Cause::Date => (
                format!("`{word}` seems to be a date, which is no number"),
                format!(
                    "make a column of numbers of it, as days since the first, or write {categories}"
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

/// What stands before and behind the number that a text is otherwise: a unit, a sign of per cent or of money. None if there
/// is nothing, or more than that.
fn around_number(text: &str) -> Option<(&str, &str)> {
    const LONGEST: usize = 12;
    let text = text.trim();
    let is_digit = |c: char| c.is_ascii_digit();
    let start = text.find(|c: char| is_digit(c) || matches!(c, '-' | '+' | '.'))?;
    let end = text.rfind(is_digit)? + 1;
    let (before, after) = (&text[..start], &text[end.max(start)..]);
    let number = text.get(start..end)?;
    let is_number = parse_number(number).is_some() || is_number_with_commas(number);
    // Letters before a number make a name, as in `room 5`, and not a unit.
    let sign = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '#' | '(' | '[' | '/');
    let fits = before.is_empty() != after.is_empty()
        && before.chars().all(sign)
        && before.len().max(after.len()) <= LONGEST;
    (is_number && fits).then_some((before, after))
}

/// The day of a date and what may be a time behind it.
fn day_and_time(text: &str) -> (&str, &str) {
    let text = text.trim();
    // The T before a time stands behind a digit; that of a month does not.
    let ends = |(at, c): &(usize, char)| {
        *c == ' ' || *c == 'T' && text[..*at].ends_with(|c: char| c.is_ascii_digit())
    };
    match text.char_indices().find(ends) {
        Some((at, _)) => (&text[..at], &text[at + 1..]),
        None => (text, "0"),
    }
}

/// The three parts of a day, and what stands between them.
fn parts_of(day: &str) -> Option<([&str; 3], char)> {
    let sign = ['-', '/', '.'].into_iter().find(|sign| day.matches(*sign).count() == 2)?;
    let mut parts = day.split(sign);
    Some(([parts.next()?, parts.next()?, parts.next()?], sign))
}

/// `2024-01-31`, `31.1.2024`, `1/31/24`, `31-Jan-24`, with or without a time behind it. Two digits for the year are clear
/// only behind `/` or a month's name: `1.2.10` may be a version, and `01-02-33` a code.
fn is_date(text: &str) -> bool {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let (day, time) = day_and_time(text);
    let signs = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.' | '+' | '-' | 'Z' | ' ');
    let Some(([first, middle, last], sign)) = parts_of(day) else { return false };
    let is_month = |part: &str| {
        let start: String = part.to_lowercase().chars().take(3).collect();
        MONTHS.contains(&start.as_str()) && part.chars().all(char::is_alphabetic)
    };
    let small = |part: &str| matches!(part.parse(), Ok(1..=31_u32)) && part.len() <= 2;
    let year = |part: &str| {
        let clear = part.len() == 2 && (sign == '/' || is_month(middle));
        (clear || part.len() == 4 && matches!(part.parse(), Ok(1000..=2999_u32)))
            && part.bytes().all(|b| b.is_ascii_digit())
    };
    let order = small(first) && year(last) || year(first) && small(last);
    (small(middle) || is_month(middle))
        && order
        && time.starts_with(|c: char| c.is_ascii_digit())
        && time.chars().all(signs)
}

/// Day and year of what may be a date such as `31.12.23`: whether it is, the others of its column say.
fn short_date(text: &str) -> Option<(u32, u32)> {
    let (parts, sign) = parts_of(text.trim())?;
    let two = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
    let [day, month, year] = parts.map(|part| part.parse::<u32>().unwrap_or(0));
    let fits = parts.iter().all(|part| two(part)) && sign != '/';
    (fits && (1..=31).contains(&day) && (1..=12).contains(&month)).then_some((day, year))
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
    fn numbers_with_units_and_dates_are_told_from_categories() {
        use Cause::*;
        let list = |one: &dyn Fn(usize) -> String, count: usize, rows: usize| {
            let values: Vec<String> = (0..rows).map(|i| one(i % count)).collect();
            found(&values.iter().map(String::as_str).collect::<Vec<_>>(), false)
        };
        for (one, cause) in [
            ((&|i: usize| format!("{}kg", i + 1)) as &dyn Fn(usize) -> String, Unit),
            (&|i: usize| format!("{i}.5 mg/l"), Unit),
            (&|i: usize| format!("-{i}%"), Unit),
            (&|i: usize| format!("$1,{i:03}.50"), Unit),
            (&|i: usize| format!("<{i}"), Unit),
            (&|i: usize| format!("2024-01-{:02}", i + 1), Date),
            (&|i: usize| format!("{}/1/24", i + 1), Date),
            (&|i: usize| format!("{}.12.2023", i + 1), Date),
            (&|i: usize| format!("{}-OCT-2024", i + 1), Date),
            (&|i: usize| format!("2024-01-31T{:02}:00:00Z", i), Date),
            (&|i: usize| format!("{:02}.12.23", i + 2), Date),
            (&|i: usize| format!("{:02}-Feb-24", i + 1), Date),
        ] {
            assert_eq!(list(one, 12, 15), Some((cause, true)), "{}", one(0));
            assert_eq!(list(one, 20, 99), Some((cause, true)), "{}", one(0));
            // Doses, visits and hours are categories.
            assert_eq!(list(one, 12, 24), Some((cause, false)), "{}", one(0));
            assert_eq!(list(one, 20, 100), Some((cause, false)), "{}", one(0));
            assert_eq!(list(one, 4, 4), None, "{}", one(0));
        }
        for one in [
            (&|i: usize| format!("room {i}")) as &dyn Fn(usize) -> String,
            &|i: usize| format!("S{i:03}"),
            &|i: usize| format!("{i}{}", ["kg", "g", "lb", "t", "oz"][i % 5]),
            &|i: usize| format!("{i}-{}", i + 5),
            &|i: usize| format!("10.0.0.{i}"),
            &|i: usize| format!("123-45-{i:04}"),
            &|i: usize| format!("1.2.{i}"),
            &|i: usize| format!("01-02-{:02}", i + 10),
            &|i: usize| format!("{:02}-02-{:02}", i + 1, i + 40),
            &|i: usize| format!("{:02}.01.10", i % 12 + 1),
            &|i: usize| format!("12-01-{:04}", i + 40),
            &|i: usize| format!("({i}"),
        ] {
            assert_eq!(list(one, 20, 20), None, "{}", one(0));
        }
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
