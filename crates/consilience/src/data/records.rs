//! Splitting delimited text into records.
//!
//! Not the csv crate's reader, because that neither counts comment lines, nor knows the line of a
//! record that stands behind one, nor notices a quote that is never closed (which would swallow
//! the rest of the file without a word).

use std::io::{self, BufRead, Read};
use std::ops::Range;

/// What is wrong with the text.
#[derive(Debug)]
pub(super) enum RecordFault {
    /// It cannot be read.
    Io(io::Error),
    /// The quote that was opened on this line is not closed before the end of the file.
    Open(u64),
    /// There is something between a closing quote on this line and the next delimiter.
    Behind(u64),
    /// The record that ends beyond this line has more than [`LONGEST`] bytes.
    Long(u64),
    /// The record on this line has more than [`MOST_FIELDS`] values.
    Wide(u64),
}

/// No record has more bytes than this. A file without line ends would else be read into memory whole.
pub(super) const LONGEST: usize = 32 << 20;

/// No record has more values than this.
pub(super) const MOST_FIELDS: usize = 1_000_000;

/// The records of a text, one at a time. A record is a line, or several if line ends are quoted.
pub(super) struct Records<R> {
    input: R,
    /// Guessed from the first record if none is given.
    delimiter: Option<u8>,
    decimals: u8,
    comment: Option<char>,
    /// The record as it stands in the file, except that doubled quotes are made single.
    text: Vec<u8>,
    fields: Vec<Range<usize>>,
    /// How many lines have been read.
    lines: u64,
    comments: u64,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The delimiters that are guessed, the likeliest first.
const GUESSES: [u8; 4] = *b",;\t|";

/// The delimiter that stands for any number of blanks and tabs.
pub(super) const BLANKS: u8 = b' ';

/// Whether blanks and tabs separate values.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// The delimiter that is most frequent in a header line, quotes left out; blanks, if there is none but these. A
/// comma that stands before `decimals` is none.
fn guess(header: &[u8], decimals: u8) -> u8 {
    let mut counts = [0; GUESSES.len()];
    let (mut begins, mut quoted) = (true, false);
    for &byte in header {
        if quoted {
            // What follows a closing quote may be the second of a doubled pair: `begins`.
            (quoted, begins) = (byte != b'"', byte == b'"');
        } else if byte == b'"' && begins {
            quoted = true;
        } else if let Some(i) = GUESSES.iter().position(|&g| g == byte && g != decimals) {
            counts[i] += 1;
            begins = true;
        } else {
            begins &= byte == b' ';
        }
    }
    let most = counts.iter().max().filter(|most| **most > 0);
    match counts.iter().position(|c| Some(c) == most) {
        Some(i) => GUESSES[i],
        None if parts_of_blanks(header.trim_ascii()) => BLANKS,
        None => b',',
    }
}

/// What Excel's first line `sep=;` says of the delimiter, if the line is such a one. Saved again it may have as many
/// delimiters behind it as there are columns.
fn named_delimiter(line: &[u8]) -> Option<u8> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.strip_prefix(b"\"").unwrap_or(line);
    let (key, rest) = line.split_at_checked(4)?;
    let named = *rest.first().filter(|byte| GUESSES.contains(byte))?;
    let rest = rest[1..].strip_prefix(b"\"").unwrap_or(&rest[1..]);
    (key.eq_ignore_ascii_case(b"sep=") && rest.iter().all(|byte| *byte == named)).then_some(named)
}

/// Whether there are blanks in a line, quotes left out.
fn parts_of_blanks(line: &[u8]) -> bool {
    let mut quoted = false;
    line.iter().any(|&byte| {
        quoted ^= byte == b'"';
        is_blank(byte) && !quoted
    })
}

impl<R: BufRead> Records<R> {
    /// The text's records. A delimiter that is not given is guessed from the first one; it is not what stands before
    /// decimals.
    pub fn new(input: R, delimiter: Option<u8>, decimals: u8, comment: Option<char>) -> Records<R> {
        let (text, fields) = (Vec::new(), Vec::new());
        Records { input, delimiter, decimals, comment, text, fields, lines: 0, comments: 0 }
    }

    /// The records of a text before which so many lines stand in the file.
    pub fn after(lines: u64, input: R, delimiter: u8, comment: Option<char>) -> Records<R> {
        Records { lines, ..Records::new(input, Some(delimiter), b'.', comment) }
    }

    /// What has not been read yet, and how many lines have been. The delimiter is known once there was
    /// a record.
    pub fn into_rest(self) -> (R, u64, Option<u8>) {
        (self.input, self.lines, self.delimiter)
    }

    /// What separates values; known once there was a record.
    pub fn delimiter(&self) -> Option<u8> {
        self.delimiter
    }

    /// Goes on to the next record and returns the line on which it begins; none at the end.
    pub fn next(&mut self) -> Result<Option<u64>, RecordFault> {
        loop {
            self.text.clear();
            if !self.more()? {
                return Ok(None);
            }
            if self.lines == 1 && self.text.starts_with(BYTE_ORDER_MARK) {
                self.text.drain(..BYTE_ORDER_MARK.len());
            }
            if self.lines == 1
                && let Some(named) = named_delimiter(&self.text)
            {
                // What is asked for goes before, and a comma that stands before decimals separates nothing.
                if named != self.decimals {
                    self.delimiter.get_or_insert(named);
                }
                continue;
            }
            let comment = self.comment.map(|c| (c, [0; 4]));
            if comment
                .is_some_and(|(c, mut b)| self.text.starts_with(c.encode_utf8(&mut b).as_bytes()))
            {
                self.comments += 1;
            } else if !self.is_blank() {
                break;
            }
        }
        let line = self.lines;
        let delimiter = *self.delimiter.get_or_insert_with(|| guess(&self.text, self.decimals));
        match delimiter {
            BLANKS => self.split_at_blanks()?,
            other => self.split(other)?,
        }
        Ok(Some(line))
    }

    /// The values of the record, spaces around them left out.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.fields.iter().map(|range| self.text[range.clone()].trim_ascii())
    }

    /// One value of the record, spaces around it left out.
    pub fn field(&self, index: usize) -> &[u8] {
        self.text[self.fields[index].clone()].trim_ascii()
    }

    /// How many values the record has.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// How many comment lines there were so far.
    pub fn comments(&self) -> u64 {
        self.comments
    }

    /// Whether the line holds nothing but spaces (a tab may be a delimiter).
    fn is_blank(&self) -> bool {
        let delimiter = self.delimiter.filter(|&delimiter| delimiter != BLANKS);
        self.text.iter().all(|&b| b.is_ascii_whitespace() && Some(b) != delimiter)
    }

    /// Reads another line behind the text; false at the end of the file.
    fn more(&mut self) -> Result<bool, RecordFault> {
        let room = LONGEST.saturating_sub(self.text.len()) as u64 + 1;
        let read = self.input.by_ref().take(room).read_until(b'\n', &mut self.text);
        let read = read.map_err(RecordFault::Io)?;
        self.lines += u64::from(read > 0);
        if self.text.len() > LONGEST {
            return Err(RecordFault::Long(self.lines));
        }
        Ok(read > 0)
    }

    fn split(&mut self, delimiter: u8) -> Result<(), RecordFault> {
        self.fields.clear();
        let mut at = 0;
        loop {
            if self.fields.len() == MOST_FIELDS {
                return Err(RecordFault::Wide(self.lines));
            }
            let begin = at + self.spaces(at, delimiter);
            if self.text.get(begin) == Some(&b'"') {
                let (field, end) = self.quoted(begin + 1)?;
                self.fields.push(field);
                at = end + self.spaces(end, delimiter);
                match self.text[at..] {
                    [] | [b'\n'] | [b'\r', b'\n'] | [b'\r'] => return Ok(()),
                    [byte, ..] if byte == delimiter => at += 1,
                    _ => return Err(RecordFault::Behind(self.lines)),
                }
            } else {
                let length = memchr::memchr(delimiter, &self.text[at..]);
                self.fields.push(at..length.map_or(self.text.len(), |l| at + l));
                match length {
                    Some(length) => at += length + 1,
                    None => return Ok(()),
                }
            }
        }
    }

    /// The same where any number of blanks separates values; those at the ends of the line separate nothing.
    fn split_at_blanks(&mut self) -> Result<(), RecordFault> {
        self.fields.clear();
        let mut at = 0;
        loop {
            at += self.text[at..].iter().take_while(|&&b| is_blank(b)).count();
            if matches!(self.text[at..], [] | [b'\n'] | [b'\r', b'\n'] | [b'\r']) {
                return Ok(());
            }
            if self.fields.len() == MOST_FIELDS {
                return Err(RecordFault::Wide(self.lines));
            }
            if self.text[at] == b'"' {
                let (field, end) = self.quoted(at + 1)?;
                self.fields.push(field);
                at = end;
                match self.text[at..] {
                    [] | [b'\n'] | [b'\r', b'\n'] | [b'\r'] | [b' ' | b'\t', ..] => {}
                    _ => return Err(RecordFault::Behind(self.lines)),
                }
            } else {
                let length = memchr::memchr3(b' ', b'\t', b'\n', &self.text[at..]);
                let end = length.map_or(self.text.len(), |length| at + length);
                self.fields.push(at..end);
                at = end;
            }
        }
    }

    /// How many spaces there are from here on; they count for nothing around quotes.
    fn spaces(&self, at: usize, delimiter: u8) -> usize {
        self.text[at..].iter().take_while(|&&b| b == b' ' && b != delimiter).count()
    }

    /// A quoted field from behind its opening quote, and where its closing quote ends.
    fn quoted(&mut self, begin: usize) -> Result<(Range<usize>, usize), RecordFault> {
        let opened = self.lines;
        let (mut at, mut end) = (begin, begin);
        loop {
            if at == self.text.len() {
                if !self.more()? {
                    return Err(RecordFault::Open(opened));
                }
                continue;
            }
            let byte = self.text[at];
            at += 1;
            if byte == b'"' {
                if self.text.get(at) != Some(&b'"') {
                    return Ok((begin..end, at));
                }
                at += 1;
            }
            // In place: a field only gets shorter.
            self.text[end] = byte;
            end += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = Vec<(u64, Vec<String>)>;

    fn read(text: &str, delimiter: Option<u8>) -> Result<(Read, u64), RecordFault> {
        let mut records = Records::new(text.as_bytes(), delimiter, b'.', Some('#'));
        let mut all = Vec::new();
        while let Some(line) = records.next()? {
            let text = |f: &[u8]| String::from_utf8_lossy(f).into_owned();
            all.push((line, records.fields().map(text).collect()));
        }
        Ok((all, records.comments()))
    }

    #[test]
    fn lines_and_comments_are_counted() {
        let text = "\u{feff}# one\r\n\r\na,b\r\n  \n#two, \"x\n1, 2 \r\n\"#3\n\n#\",\"\"\n4,5";
        let (records, comments) = read(text, None).expect("fine");
        let records: Vec<_> = records.iter().map(|(l, f)| (*l, f.join("/"))).collect();
        let expected = [(3, "a/b"), (6, "1/2"), (7, "#3\n\n#/"), (10, "4/5")];
        assert_eq!(records, expected.map(|(l, f)| (l, f.to_string())));
        assert_eq!(comments, 2);
    }

    #[test]
    fn quotes_are_taken_off() {
        let fields = |text: &str| read(text, Some(b',')).expect("fine").0.remove(0).1;
        assert_eq!(fields("\"a,b\",\"c\"\"d\"\"\",\"\""), ["a,b", "c\"d\"", ""]);
        assert_eq!(fields(" \"a\" , 6\" pipe,b\"c\",\n"), ["a", "6\" pipe", "b\"c\"", ""]);
        assert_eq!(fields("\"\"\"\"\"\"\r\n"), ["\"\""]);
    }

    #[test]
    fn faulty_quotes_are_found_with_their_line() {
        assert!(matches!(read("a\n1\n\n\"2\n3\n", None), Err(RecordFault::Open(4))));
        assert!(matches!(read("a\n\"1\n2\",\"", None), Err(RecordFault::Open(3))));
        assert!(matches!(read("a\n\"1\"2\n", None), Err(RecordFault::Behind(2))));
    }

    #[test]
    fn the_delimiter_is_guessed_outside_quotes() {
        for (header, delimiter) in [
            ("a", b','),
            ("", b','),
            ("a,b;c", b','),
            ("a;b,c;d", b';'),
            ("a\tb c", b'\t'),
            ("a|b", b'|'),
            ("\"a;b;c\",d", b','),
            ("\"a\"\";;;\", \"b;;\"", b','),
            ("x \";;\",b", b';'),
        ] {
            assert_eq!(guess(header.as_bytes(), b'.'), delimiter, "{header}");
        }
        for (header, delimiter) in
            [("a b", b' '), (" a\n", b','), ("\"a b\"", b','), ("\"a b\" c", b' '), ("a,b;c", b';')]
        {
            assert_eq!(guess(header.as_bytes(), b','), delimiter, "{header}");
        }
        // A line of tabs is a row once tabs delimit.
        assert_eq!(read("a\tb\n\t\n", None).expect("fine").0.len(), 2);
        assert_eq!(read("a b\n1 \"2 3\"\n", Some(b' ')).expect("fine").0[1].1, ["1", "2 3"]);
    }

    #[test]
    fn a_first_line_may_name_the_delimiter() {
        for (text, line) in [
            ("sep=;\na,b;c\n", 2),
            ("\u{feff}SEP=;\r\n# one\na,b;c\n", 3),
            ("\"sep=;\"\na,b;c\n", 2),
            ("sep=;;;\na,b;c", 2),
        ] {
            let found = read(text, None).expect("fine").0;
            assert_eq!(found, [(line, vec!["a,b".to_string(), "c".to_string()])], "{text:?}");
        }
        // What is asked for goes before.
        let found = read("sep=;\na,b;c\n", Some(b',')).expect("fine").0;
        assert_eq!(found, [(2, vec!["a".to_string(), "b;c".to_string()])]);
        // Of decimals with commas none is a delimiter.
        let mut records = Records::new("sep=,\na;b,c\n".as_bytes(), None, b',', None);
        assert!(records.next().is_ok() && records.len() == 2);
        for other in ["sep=", "sep=x", "sep=;a", "sep,b", "separator=;", "sep=;,"] {
            assert_eq!(named_delimiter(other.as_bytes()), None, "{other}");
        }
        // Only the first line.
        assert_eq!(read("a;b\nsep=;\n", None).expect("fine").0.len(), 2);
    }

    #[test]
    fn any_number_of_blanks_separates() {
        let text = "  a \t b\r\n\n \t \n1\t\t\"2 \"\"x\n3\"  \n\"\" 5\" ";
        let (records, _) = read(text, Some(BLANKS)).expect("fine");
        let records: Vec<_> = records.iter().map(|(l, f)| (*l, f.join("/"))).collect();
        let expected = [(1, "a/b"), (4, "1/2 \"x\n3"), (6, "/5\"")];
        assert_eq!(records, expected.map(|(l, f)| (l, f.to_string())));
        assert!(matches!(read("a b\n1 \"2\"3\n", None), Err(RecordFault::Behind(2))));
    }

    /// Whatever is written well is read as the csv crate reads it.
    #[test]
    fn agrees_with_the_csv_crate() {
        let alphabet = [",", "\"", "\n", "\r\n", " ", "a", "é", "#", "1", ";"];
        let mut state = 1u64;
        let mut draw = |n: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % n
        };
        for _ in 0..2000 {
            let columns = 1 + draw(4);
            let mut table: Vec<Vec<String>> = Vec::new();
            for _ in 0..1 + draw(5) {
                let mut value = |_| (0..draw(6)).map(|_| alphabet[draw(alphabet.len())]).collect();
                table.push((0..columns).map(&mut value).collect());
            }
            let mut writer = ::csv::WriterBuilder::new()
                .quote_style(::csv::QuoteStyle::Always)
                .from_writer(Vec::new());
            for record in &table {
                writer.write_record(record).expect("in memory");
            }
            let text = String::from_utf8(writer.into_inner().expect("in memory")).expect("UTF-8");
            let mut reader =
                ::csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
            let theirs: Vec<Vec<String>> = reader
                .records()
                .map(|r| r.expect("fine").iter().map(|f| f.trim_ascii().to_string()).collect())
                .collect();
            let ours: Vec<Vec<String>> =
                read(&text, Some(b',')).expect("fine").0.into_iter().map(|(_, f)| f).collect();
            assert_eq!(ours, theirs, "{text:?}");
        }
    }
}
