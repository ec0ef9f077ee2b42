//! Delimited text files, compressed or not.

use super::files::{Text, unreadable};
use super::number::parse_number;
use super::part::{FilePart, Part};
use super::read::{TextFormat, check_names};
use super::records::{Fault, Records};
use crate::{Error, Place, Result};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

const BUFFER: usize = 1 << 17;

/// An open file behind its header.
struct Opened<'a> {
    file: &'a Path,
    text: Text,
    records: Records<Box<dyn BufRead>>,
    names: Vec<String>,
    /// The line of the first record, if that is a row and was not taken yet.
    pending: Option<u64>,
    /// Whether the names were given and not read.
    given: bool,
    /// The comments up to the header.
    comments: u64,
}

/// The names of the columns.
pub(super) fn column_names(file: &Path, text: Text, format: &TextFormat) -> Result<Vec<String>> {
    Ok(Opened::new(file, text, format)?.names)
}

/// Reads the columns that `select` picks from the file's names; those marked in `as_text` as text
/// whatever they hold.
pub(super) fn decode(
    file: &Path,
    text: Text,
    format: &TextFormat,
    select: &dyn Fn(&[String]) -> Result<Vec<usize>>,
    as_text: &[bool],
) -> Result<FilePart> {
    let mut opened = Opened::new(file, text, format)?;
    let indices = select(&opened.names)?;
    let mut columns: Vec<(usize, Part)> = indices
        .into_iter()
        .zip(as_text)
        .map(|(index, &as_text)| (index, if as_text { Part::text() } else { Part::open() }))
        .collect();
    let mut numbers = Vec::new();
    while let Some(line) = opened.next_row()? {
        for (index, part) in &mut columns {
            if part.push(opened.records.field(*index), line).is_err() {
                let place = Place::file(file).line(u64::from(line));
                return Err(not_utf8(place.column(opened.names[*index].as_str())));
            }
        }
        numbers.push(line);
    }
    if numbers.is_empty() {
        let message = "the file has a header but no rows; add rows, or leave the file out";
        return Err(Error::input_at(Place::file(file), message));
    }
    let columns = columns.into_iter().map(|(_, part)| part).collect();
    Ok(FilePart { columns, numbers, comments: opened.records.comments() - opened.comments })
}

/// A first line of nothing but numbers is a row, not a header: certainly if one is not whole (years
/// and the like may be names) or two are equal.
fn refuse_numbers(place: &Place, names: &[String]) -> Result<()> {
    let numbers: Option<Vec<f64>> = names.iter().map(|name| parse_number(name)).collect();
    let Some(mut numbers) = numbers else { return Ok(()) };
    numbers.sort_unstable_by(f64::total_cmp);
    if numbers.iter().all(|x| x.fract() == 0.0) && numbers.windows(2).all(|w| w[0] != w[1]) {
        return Ok(());
    }
    let message = format!(
        "the file seems to have no header line: the first line is {} numbers; name the columns with columns = [\"…\", …] under [data], or put a line with their names on top",
        names.len()
    );
    Err(Error::input_at(place.clone(), message))
}

fn not_utf8(place: Place) -> Error {
    Error::input_at(place, "this is not UTF-8 text; save the file as UTF-8")
}

impl<'a> Opened<'a> {
    /// Opens a file and reads its header.
    fn new(file: &'a Path, text: Text, format: &TextFormat) -> Result<Opened<'a>> {
        let mut input = BufReader::with_capacity(
            BUFFER,
            File::open(file).map_err(|error| unreadable(file, &error))?,
        );
        // The magic number, because `.gz` is lost or left on more often than a file is corrupt.
        let start = input.fill_buf().map_err(|error| unreadable(file, &error))?;
        let is_gzip = start.starts_with(b"\x1f\x8b");
        let at_file = |message: &str| Error::input_at(Place::file(file), message);
        match (text.gzip, is_gzip) {
            _ if start.is_empty() => {
                return Err(at_file("the file is empty; write it again, or leave it out"));
            }
            (true, false) => {
                return Err(at_file("this is no gzip file; take .gz off its name if it is text"));
            }
            (false, true) => {
                return Err(at_file("this is a gzip file; its name should end in .gz"));
            }
            _ => {}
        }
        let input: Box<dyn BufRead> = if text.gzip {
            Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(input)))
        } else {
            Box::new(input)
        };
        let delimiter = format.delimiter.or(text.tabs.then_some('\t'));
        let delimiter = delimiter.map(|c| u8::try_from(c).expect("the format was checked"));
        let records = Records::new(input, delimiter, format.comment);
        let (names, pending) = (Vec::new(), None);
        let given = format.columns.is_some();
        let mut opened = Opened { file, text, records, names, pending, given, comments: 0 };
        opened.read_header(format.columns.as_deref())?;
        Ok(opened)
    }

    /// Reads the first record: the header, or the first row if the names are given.
    fn read_header(&mut self, given: Option<&[String]>) -> Result<()> {
        let Some(line) = self.records.next().map_err(|fault| self.faulty(fault))? else {
            let message = "the file is empty: there is no header line (comments do not count)";
            return Err(Error::input_at(Place::file(self.file), message));
        };
        self.comments = self.records.comments();
        let place = Place::file(self.file).line(line);
        for field in self.records.fields() {
            // Either would come out as a strange name or as a file without rows.
            if field.contains(&0) {
                let message = "the header is not text (is the file in UTF-16, or binary?); save the file as UTF-8 text";
                return Err(Error::input_at(place, message));
            }
            if field.contains(&b'\r') && !field.contains(&b'\n') {
                let message =
                    "lines end in a bare carriage return; save the file with usual line ends";
                return Err(Error::input_at(place, message));
            }
            let Ok(name) = std::str::from_utf8(field) else {
                return Err(not_utf8(place.column((self.names.len() + 1).to_string())));
            };
            self.names.push(name.to_string());
        }
        match given {
            None => {
                refuse_numbers(&place, &self.names)?;
                check_names(place, &self.names)
            }
            Some(given) => {
                if self.names != given {
                    self.pending = Some(line);
                    self.names = given.to_vec();
                }
                Ok(())
            }
        }
    }

    /// Goes on to the next row and returns its line; none at the end.
    fn next_row(&mut self) -> Result<Option<u32>> {
        let line = match self.pending.take() {
            Some(line) => line,
            None => match self.records.next().map_err(|fault| self.faulty(fault))? {
                Some(line) => line,
                None => return Ok(None),
            },
        };
        let place = || Place::file(self.file).line(line);
        let (values, names) = (self.records.len(), self.names.len());
        if values != names {
            let message = format!(
                "this line has {values} value{}, but {} {names} column{}; look for a delimiter too many or too few, or for a missing quote",
                plural(values),
                if self.given { "`data.columns` names" } else { "the header has" },
                plural(names)
            );
            return Err(Error::input_at(place(), message));
        }
        let line = u32::try_from(line).map_err(|_| {
            Error::input_at(place(), "the file has too many lines; split it into several")
        })?;
        Ok(Some(line))
    }

    fn faulty(&self, fault: Fault) -> Error {
        let place = Place::file(self.file);
        match fault {
            Fault::Open(line) => Error::input_at(
                place.line(line),
                "the quote that opens here is never closed; close it, or double it if it is meant",
            ),
            Fault::Behind(line) => Error::input_at(
                place.line(line),
                "there is something between a closing quote and the next delimiter; double the quotes that are meant",
            ),
            Fault::Io(error) if self.text.gzip && is_gzip_fault(&error) => Error::input_at(
                place,
                format!(
                    "the gzip file is truncated or corrupt ({error}); copy or compress it again"
                ),
            ),
            Fault::Io(error) => unreadable(self.file, &error),
        }
    }
}

/// Whether the decoder complains and not the system.
fn is_gzip_fault(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof)
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
