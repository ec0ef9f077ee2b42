//! A TOML document whose every value knows its line and its key, for errors.

use crate::error::{clip, suggestion};
use crate::{Error, Place, Result};
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A study of more bytes than this is no study.
pub(super) const LARGEST: usize = 10 << 20;

/// Where the lines of a file begin.
pub(super) struct Source {
    file: PathBuf,
    starts: Vec<usize>,
}

/// A table of the document, only known keys in it.
#[derive(Clone, Copy)]
pub(super) struct Section<'a> {
    source: &'a Source,
    path: &'a str,
    line: u64,
    table: &'a DeTable<'a>,
}

/// A value of the document.
#[derive(Clone)]
pub(super) struct Item<'a> {
    source: &'a Source,
    path: String,
    value: &'a Spanned<DeValue<'a>>,
}

impl Source {
    /// The lines of this text.
    pub(super) fn new(text: &str, file: &Path) -> Source {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(end, _)| end + 1)).collect();
        Source { file: file.to_path_buf(), starts }
    }

    fn line(&self, offset: usize) -> u64 {
        self.starts.partition_point(|start| *start <= offset) as u64
    }

    /// An error on a line.
    pub(super) fn error(&self, line: u64, message: impl Into<String>) -> Error {
        Error::input_at(Place::file(&self.file).line(line), message)
    }

    /// Reads the text as TOML. Nesting is bounded by the parser, so nothing deep comes back.
    pub(super) fn parse<'t>(&self, text: &'t str) -> Result<DeTable<'t>> {
        if text.len() > LARGEST {
            return Err(self.too_large());
        }
        DeTable::parse(text).map(Spanned::into_inner).map_err(|error| {
            let what = error.message();
            let what = what.strip_suffix(", expected nothing").unwrap_or(what);
            let Some(span) = error.span() else {
                let message = format!("this is not valid TOML: {what}");
                return Error::input_at(Place::file(&self.file), message);
            };
            let line = self.line(span.start);
            let start = self.starts[line as usize - 1];
            let before = text.get(start..span.start.min(text.len())).unwrap_or("");
            let column = before.trim_start_matches('\u{feff}').chars().count() + 1;
            self.error(line, format!("at column {column}: this is not valid TOML: {what}"))
        })
    }

    /// The error for a file that cannot be a study.
    pub(super) fn too_large(&self) -> Error {
        let message = format!(
            "this file is larger than {} MiB, so it is not a study; is it the data? They are named under [data] path",
            LARGEST >> 20
        );
        Error::input_at(Place::file(&self.file), message)
    }
}

/// An unknown key's rightful table, for keys that stand in another one.
pub(super) type Homes = [(&'static str, &'static [&'static str])];

impl<'a> Section<'a> {
    /// The whole document, which may have these tables.
    pub(super) fn root(
        source: &'a Source,
        table: &'a DeTable<'a>,
        keys: &[&str],
        homes: &Homes,
    ) -> Result<Section<'a>> {
        Section { source, path: "", line: 1, table }.checked(keys, homes)
    }

    /// Refuses keys that are not among these: the first of them in the file.
    fn checked(self, keys: &[&str], homes: &Homes) -> Result<Section<'a>> {
        let unknown = self.table.keys().filter(|key| !keys.contains(&key.get_ref().as_ref()));
        let Some(key) = unknown.min_by_key(|key| key.span().start) else {
            return Ok(self);
        };
        let name: &str = key.get_ref();
        let typed = clip(name);
        let owners: Vec<String> = homes
            .iter()
            .filter(|(table, known)| *table != self.path && known.contains(&name))
            .map(|(table, _)| heading(table))
            .collect();
        let what = match self.path {
            "" => "a study".to_string(),
            path => heading(path),
        };
        let mut message = if owners.is_empty() {
            format!("{what} has no `{typed}`{}", suggestion(&typed, keys.iter().copied()))
        } else {
            format!("{what} has no `{typed}`; it belongs under {}", owners.join(" or "))
        };
        if matches!(self.path, "prior" | "model.prior") {
            message += &format!("; single parameters go under [{}.parameters]", self.path);
        }
        Err(self.source.error(self.source.line(key.span().start), message))
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<Item<'a>> {
        self.table.get(key).map(|value| self.item(key, value))
    }

    fn item(&self, key: &str, value: &'a Spanned<DeValue<'a>>) -> Item<'a> {
        let path = match self.path {
            "" => clip(key),
            path => format!("{path}.{}", clip(key)),
        };
        Item { source: self.source, path, value }
    }

    /// All keys with their values, in the order of the names.
    pub(super) fn items(&self) -> impl Iterator<Item = (&'a str, Item<'a>)> {
        let section = *self;
        self.table.iter().map(move |(key, value)| {
            let name: &str = key.get_ref();
            (name, section.item(name, value))
        })
    }

    /// The line of the table's head.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// An error about the table as a whole.
    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        // What the whole file lacks is on no line of it.
        let line = (!self.path.is_empty()).then_some(self.line);
        Error::input_at(Place { line, ..Place::file(&self.source.file) }, message)
    }
}

/// A table's head as the study file writes it.
fn heading(path: &str) -> String {
    if path == "model" { "[[model]]".to_string() } else { format!("[{path}]") }
}

/// What a value is, in words.
fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a decimal number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

impl<'a> Item<'a> {
    /// The value's line.
    pub(super) fn line(&self) -> u64 {
        self.source.line(self.value.span().start)
    }

    /// An error about this value.
    pub(super) fn error(&self, message: impl std::fmt::Display) -> Error {
        self.source.error(self.line(), format!("`{}` {message}", self.path))
    }

    /// Another's error about this value, with its place.
    pub(super) fn blame(&self, error: Error) -> Error {
        match error {
            Error::Input { message, .. } => {
                self.source.error(self.line(), format!("`{}`: {message}", self.path))
            }
            other => other,
        }
    }

    fn mismatch(&self, wanted: &str) -> Error {
        self.error(format!("must be {wanted}, not {}", kind(self.value.get_ref())))
    }

    /// A text.
    pub(super) fn text(&self, wanted: &str) -> Result<&'a str> {
        self.value.get_ref().as_str().ok_or_else(|| self.mismatch(wanted))
    }

    /// A text that says something.
    pub(super) fn filled_text(&self, wanted: &str) -> Result<&'a str> {
        let text = self.text(wanted)?;
        if text.trim().is_empty() {
            return Err(self.error(format!("is empty; it must be {wanted}")));
        }
        Ok(text)
    }

    /// A text that this function makes something of.
    pub(super) fn parsed<T>(&self, wanted: &str, parse: impl Fn(&str) -> Result<T>) -> Result<T> {
        parse(self.text(wanted)?).map_err(|error| self.blame(error))
    }

    /// An integer that is not negative.
    pub(super) fn natural(&self) -> Result<u64> {
        const WANTED: &str = "an integer";
        let digits = match self.value.get_ref() {
            DeValue::Integer(digits) => digits,
            DeValue::String(text) if text.trim().parse::<u64>().is_ok() => {
                let text = clip(text.trim());
                return Err(self.error(format!("must be {WANTED}, not a text; write {text}")));
            }
            DeValue::Float(digits) => {
                return Err(self.error(format!("must be {WANTED}, not {}", clip(digits.as_str()))));
            }
            _ => return Err(self.mismatch(WANTED)),
        };
        if digits.as_str().starts_with('-') && digits.as_str() != "-0" {
            return Err(
                self.error(format!("must not be negative, but is {}", clip(digits.as_str())))
            );
        }
        let magnitude = digits.as_str().trim_start_matches(['-', '+']);
        u64::from_str_radix(magnitude, digits.radix()).map_err(|_| {
            self.error(format!("is too large: {}; it can be at most {}", clip(magnitude), u64::MAX))
        })
    }

    /// A finite number, written with or without a decimal point.
    pub(super) fn number(&self) -> Result<f64> {
        let number = match self.value.get_ref() {
            DeValue::Float(digits) => digits.as_str().parse().ok(),
            DeValue::Integer(digits) if digits.radix() == 10 => digits.as_str().parse().ok(),
            DeValue::Integer(_) => Some(self.natural()? as f64),
            DeValue::String(text) if text.trim().parse::<f64>().is_ok() => {
                let text = clip(text.trim());
                return Err(self.error(format!("must be a number, not a text; write {text}")));
            }
            _ => return Err(self.mismatch("a number")),
        };
        number.filter(|number: &f64| number.is_finite()).ok_or_else(|| {
            self.error("must be a finite number; neither inf nor nan nor overflow will do")
        })
    }

    /// true or false.
    pub(super) fn truth(&self) -> Result<bool> {
        self.value.get_ref().as_bool().ok_or_else(|| self.mismatch("true or false"))
    }

    /// One value, or the values of a list.
    pub(super) fn one_or_more(&self) -> Vec<Item<'a>> {
        match self.value.get_ref() {
            DeValue::Array(_) => self.elements().unwrap_or_default(),
            _ => vec![self.clone()],
        }
    }

    /// The values of a list.
    pub(super) fn elements(&self) -> Option<Vec<Item<'a>>> {
        let array = self.value.get_ref().as_array()?;
        let element =
            |(i, value)| Item { source: self.source, path: format!("{}[{i}]", self.path), value };
        Some(array.iter().enumerate().map(element).collect())
    }

    /// Whether this is a table.
    pub(super) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    /// A table that has no other keys than these; in errors it goes by this path.
    pub(super) fn section(
        &self,
        path: &'a str,
        keys: &[&str],
        homes: &Homes,
    ) -> Result<Section<'a>> {
        self.open_section(path)?.checked(keys, homes)
    }

    /// A table whose keys are the user's.
    pub(super) fn open_section(&self, path: &'a str) -> Result<Section<'a>> {
        let Some(table) = self.value.get_ref().as_table() else {
            return Err(self.mismatch(&format!("a table, {}", heading(path))));
        };
        Ok(Section { source: self.source, path, line: self.line(), table })
    }
}
