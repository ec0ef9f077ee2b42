//! Delimited text files, compressed or not.

use super::chunks::{TextChunk, TextChunks};
use super::files::{TextFile, unreadable};
use super::number::parse_number;
use super::part::{ColumnPart, FilePart};
use super::read::{ROW_NAMES, TextFormat, check_names};
use super::records::{BLANKS, LONGEST, MOST_FIELDS, RecordFault, Records};
use super::spelling::Spelling;
use super::table::ColumnKind;
use crate::halt::{Halt, go_on};
use crate::{Error, Place, Result};
use flate2::bufread::MultiGzDecoder;
use rayon::prelude::*;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

const BUFFER: usize = 1 << 17;

/// Chunks that are parsed at once, at most.
const MOST_CHUNKS: usize = 64;

/// An open file behind its first record.
struct Opened<'a> {
    layout: TextLayout<'a>,
    records: Records<Box<dyn BufRead + Send>>,
    /// The line of the record at hand, if that is a row, and how many comments stand between it and the header.
    pending: Option<(u64, u64)>,
}

/// What holds for all rows of a file.
struct TextLayout<'a> {
    file: &'a Path,
    text: TextFile,
    names: Vec<String>,
    /// How many columns behind these have no name and hold nothing: spreadsheets have such.
    empty: usize,
    /// Whether the names were given and not read.
    given: bool,
    spelling: Spelling,
}

/// The names of the columns.
pub(super) fn column_names(
    file: &Path,
    text: TextFile,
    format: &TextFormat,
) -> Result<Vec<String>> {
    Ok(Opened::new(file, text, format)?.layout.names)
}

/// Reads the columns that `select` picks from the file's names; those marked in `as_text` as text
/// whatever they hold.
pub(super) fn decode(
    file: &Path,
    text: TextFile,
    (format, halt): (&TextFormat, Option<&Halt>),
    select: &dyn Fn(&[String]) -> Result<Vec<usize>>,
    as_text: &[bool],
) -> Result<FilePart> {
    let mut parts = Vec::new();
    let sizes = PieceSizes::default();
    decode_in_chunks(file, text, (format, halt), select, as_text, sizes, &mut |part| {
        parts.push(part);
        Ok(())
    })?;
    go_on(halt)?;
    Ok(FilePart::join(parts))
}

/// The sizes of the pieces that a file is read in. The result does not depend on them.
#[derive(Debug, Clone, Copy)]
pub(super) struct PieceSizes {
    /// Bytes of a chunk, which one thread parses. Large beside what a chunk costs besides, small
    /// beside memory.
    pub chunk: usize,
    /// Chunks that are parsed at once.
    pub batch: usize,
}

impl PieceSizes {
    /// Where memory is bounded: a piece of words that all differ takes many times its bytes.
    pub fn small() -> PieceSizes {
        PieceSizes {
            chunk: 1 << 18,
            batch: (2 * rayon::current_num_threads()).min(MOST_CHUNKS / 4),
        }
    }
}

impl Default for PieceSizes {
    fn default() -> PieceSizes {
        // Two for each thread, since chunks differ in work; but memory has a bound on any machine.
        PieceSizes { chunk: 1 << 20, batch: (2 * rayon::current_num_threads()).min(MOST_CHUNKS) }
    }
}

/// The same, handed over piece by piece in the file's order. A column may be of another kind in each
/// piece. There are never more than three batches of chunks in memory: while one is parsed, on all
/// threads, the next is read and the one before is handed over.
pub(super) fn decode_in_chunks(
    file: &Path,
    text: TextFile,
    (format, halt): (&TextFormat, Option<&Halt>),
    select: &dyn Fn(&[String]) -> Result<Vec<usize>>,
    as_text: &[bool],
    sizes: PieceSizes,
    take: &mut (dyn FnMut(FilePart) -> Result<()> + Send),
) -> Result<()> {
    let opened = Opened::new(file, text, format)?;
    let indices = select(&opened.layout.names)?;
    let mut columns: Vec<(usize, bool)> =
        indices.into_iter().zip(as_text.iter().copied()).collect();
    let mut parsed = Vec::new();
    if let Some((line, comments)) = opened.pending {
        // A row that had to be looked at: a piece of its own.
        let mut piece = TextPiece::new(&columns);
        opened.layout.add(&mut piece, &opened.records, line)?;
        parsed.push(Ok(piece.finish(comments)));
    }
    let Opened { layout, records, .. } = opened;
    let (input, lines, delimiter) = records.into_rest();
    let delimiter = delimiter.expect("the header is a record");
    let mut chunks = TextChunks::new(input, lines, delimiter, format.comment, sizes.chunk);
    let mut rows = 0;
    let mut batch = chunks.batch(sizes.batch, halt);
    // A batch that is short because of it is not to be taken for the file's end.
    go_on(halt)?;
    loop {
        let done = batch.is_empty();
        let parse = || {
            let parse = |chunk: io::Result<TextChunk>| {
                go_on(halt)?;
                let chunk = chunk.map_err(|error| layout.faulty(RecordFault::Io(error)))?;
                layout.parse(&chunk, delimiter, format.comment, &columns)
            };
            batch.into_par_iter().map(parse).collect::<Vec<_>>()
        };
        let mut hand_over = || {
            // The first error in the file's order, whoever came upon one first.
            for part in std::mem::take(&mut parsed) {
                go_on(halt)?;
                let part: FilePart = part?;
                rows += part.numbers.len();
                take(part)?;
            }
            Ok::<(), Error>(())
        };
        let (next, (now, handed)) =
            rayon::join(|| chunks.batch(sizes.batch, halt), || rayon::join(parse, &mut hand_over));
        go_on(halt)?;
        handed?;
        (batch, parsed) = (next, now);
        if done {
            break;
        }
        // What is text by now is text in the rest, numbers and all.
        for part in parsed.iter().flatten() {
            for ((_, as_text), part) in columns.iter_mut().zip(&part.columns) {
                *as_text |= part.kind() == ColumnKind::Text;
            }
        }
    }
    if rows == 0 {
        let message = "the file has a header but no rows; add rows, or leave the file out";
        return Err(Error::input_at(Place::file(file), message));
    }
    Ok(())
}

/// Some rows while they are read.
struct TextPiece {
    /// The columns' places in the file.
    columns: Vec<(usize, ColumnPart)>,
    numbers: Vec<u32>,
}

impl TextPiece {
    /// No rows yet; the columns at these places, those marked true as text.
    fn new(columns: &[(usize, bool)]) -> TextPiece {
        let part = |as_text| {
            if as_text { ColumnPart::typed(ColumnKind::Text) } else { ColumnPart::open() }
        };
        let columns = columns.iter().map(|&(index, as_text)| (index, part(as_text))).collect();
        TextPiece { columns, numbers: Vec::new() }
    }

    fn finish(self, comments: u64) -> FilePart {
        let columns = self.columns.into_iter().map(|(_, part)| part).collect();
        FilePart { columns, numbers: self.numbers, comments }
    }
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
    fn new(file: &'a Path, text: TextFile, format: &TextFormat) -> Result<Opened<'a>> {
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
        let input: Box<dyn BufRead + Send> = if text.gzip {
            Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(input)))
        } else {
            Box::new(input)
        };
        let delimiter = format.delimiter.or(text.tabs.then_some('\t'));
        let delimiter = delimiter.map(|c| u8::try_from(c).expect("the format was checked"));
        let decimals = if format.decimal == ',' { b',' } else { b'.' };
        let records = Records::new(input, delimiter, decimals, format.comment);
        let layout = TextLayout {
            file,
            text,
            names: Vec::new(),
            empty: 0,
            given: format.columns.is_some(),
            spelling: Spelling::new(format),
        };
        let mut opened = Opened { layout, records, pending: None };
        opened.read_header(format.columns.as_deref())?;
        Ok(opened)
    }

    /// Reads the first record: the header, or the first row if the names are given.
    fn read_header(&mut self, given: Option<&[String]>) -> Result<()> {
        let Some(line) = self.records.next().map_err(|fault| self.layout.faulty(fault))? else {
            let message = "the file is empty: there is no header line (comments do not count)";
            return Err(Error::input_at(Place::file(self.layout.file), message));
        };
        let place = Place::file(self.layout.file).line(line);
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
                return Err(not_utf8(place.column((self.layout.names.len() + 1).to_string())));
            };
            self.layout.names.push(name.to_string());
        }
        let layout = &mut self.layout;
        let named = layout.names.iter().rposition(|name| !name.is_empty()).map_or(0, |i| i + 1);
        if named > 0 && given.is_none_or(|given| layout.names[..named] == *given) {
            layout.empty = layout.names.len() - named;
            layout.names.truncate(named);
        }
        match given {
            None => {
                refuse_numbers(&place, &self.layout.names)?;
                self.name_rows()?;
                check_names(place, &self.layout.names)
            }
            Some(given) => {
                if self.layout.names != given {
                    self.pending = Some((line, 0));
                    self.layout.names = given.to_vec();
                }
                Ok(())
            }
        }
    }
}

impl Opened<'_> {
    /// Names of rows, as R writes them, are in a column that the header has no name for: an empty one, or none at all
    /// where blanks separate values, which shows in the first row.
    fn name_rows(&mut self) -> Result<()> {
        let names = &mut self.layout.names;
        if names.len() > 1 && names[0].is_empty() {
            names[0] = ROW_NAMES.to_string();
        } else if self.records.delimiter() == Some(BLANKS) {
            let before = self.records.comments();
            let first = self.records.next().map_err(|fault| self.layout.faulty(fault))?;
            self.pending = first.map(|line| (line, self.records.comments() - before));
            if first.is_some() && self.records.len() == self.layout.names.len() + 1 {
                self.layout.names.insert(0, ROW_NAMES.to_string());
            }
        }
        Ok(())
    }
}

impl TextLayout<'_> {
    /// The rows of a chunk.
    fn parse(
        &self,
        chunk: &TextChunk,
        delimiter: u8,
        comment: Option<char>,
        columns: &[(usize, bool)],
    ) -> Result<FilePart> {
        let mut piece = TextPiece::new(columns);
        let mut records = Records::after(chunk.lines, chunk.bytes.as_slice(), delimiter, comment);
        while let Some(line) = records.next().map_err(|fault| self.faulty(fault))? {
            self.add(&mut piece, &records, line)?;
        }
        Ok(piece.finish(records.comments()))
    }

    /// Adds the record that stands on this line.
    fn add<R: BufRead>(
        &self,
        piece: &mut TextPiece,
        records: &Records<R>,
        line: u64,
    ) -> Result<()> {
        let line = self.check(records, line)?;
        for (index, part) in &mut piece.columns {
            if part.push(records.field(*index), line, &self.spelling).is_err() {
                let place = Place::file(self.file).line(u64::from(line));
                return Err(not_utf8(place.column(self.names[*index].as_str())));
            }
        }
        piece.numbers.push(line);
        Ok(())
    }

    /// Checks how many values a line has, and that it can be counted. Of columns without a name and without values a line
    /// may have fewer: Excel leaves them out further down.
    fn check<R: BufRead>(&self, records: &Records<R>, line: u64) -> Result<u32> {
        let place = || Place::file(self.file).line(line);
        let (values, names) = (records.len(), self.names.len());
        if let Some(more) =
            (names..values.min(names + self.empty)).find(|&i| !records.field(i).is_empty())
        {
            let message = format!(
                "column {} of {} has no name, and this line has a value in it; give it one",
                more + 1,
                names + self.empty
            );
            return Err(Error::input_at(place(), message));
        }
        if !(names..=names + self.empty).contains(&values) {
            let message = format!(
                "this line has {values} value{}, but {} {names} column{}; look for a delimiter too many or too few, or for a missing quote",
                plural(values),
                if self.given { "`data.columns` names" } else { "the header has" },
                plural(names)
            );
            return Err(Error::input_at(place(), message));
        }
        u32::try_from(line).map_err(|_| {
            Error::input_at(place(), "the file has too many lines; split it into several")
        })
    }

    fn faulty(&self, fault: RecordFault) -> Error {
        let place = Place::file(self.file);
        match fault {
            RecordFault::Open(line) => Error::input_at(
                place.line(line),
                "the quote that opens here is never closed; close it, or write it twice if it is part of the value",
            ),
            RecordFault::Behind(line) => Error::input_at(
                place.line(line),
                "there is text between a closing quote and the next delimiter; write a quote twice if it is part of the value",
            ),
            RecordFault::Long(line) => Error::input_at(
                place.line(line),
                format!(
                    "the row that stands here is longer than {} MiB, as none is; look for line ends that are missing, or a quote that is not closed",
                    LONGEST >> 20
                ),
            ),
            RecordFault::Wide(line) => Error::input_at(
                place.line(line),
                format!(
                    "this line has more than {MOST_FIELDS} values, as many as a table can have; look for line ends that are missing, or keep fewer columns"
                ),
            ),
            RecordFault::Io(error) if self.text.gzip && is_gzip_fault(&error) => Error::input_at(
                place,
                format!(
                    "the gzip file is truncated or corrupt ({error}); copy or compress it again"
                ),
            ),
            RecordFault::Io(error) => unreadable(self.file, &error),
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
