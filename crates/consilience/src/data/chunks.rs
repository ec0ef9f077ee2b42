//! Cutting delimited text into pieces that can be read apart from each other.

use super::records::{BLANKS, LONGEST, is_blank};
use crate::halt::Halt;
use memchr::{memchr, memchr_iter, memchr2, memchr3, memrchr};
use std::io::{self, Read};

/// Whole records of a text.
pub(super) struct TextChunk {
    pub bytes: Vec<u8>,
    /// How many lines stand before it in the file.
    pub lines: u64,
}

/// The chunks of a text, in order.
pub(super) struct TextChunks<R> {
    input: R,
    syntax: Syntax,
    /// Bytes of a chunk; more if a record is longer than that.
    size: usize,
    /// What was read behind the chunk before.
    rest: Vec<u8>,
    /// How many lines stand before that.
    lines: u64,
    error: Option<io::Error>,
    ended: bool,
}

/// What decides where a record ends.
struct Syntax {
    delimiter: u8,
    comment: Option<char>,
}

impl<R: Read> TextChunks<R> {
    /// A text, from behind so many lines of a file, where a record begins.
    pub fn new(
        input: R,
        lines: u64,
        delimiter: u8,
        comment: Option<char>,
        size: usize,
    ) -> TextChunks<R> {
        let syntax = Syntax { delimiter, comment };
        TextChunks { input, syntax, size, rest: Vec::new(), lines, error: None, ended: false }
    }

    /// The next chunks, so many unless the text ends: none behind its end. Fewer where reading is called off.
    pub fn batch(&mut self, count: usize, halt: Option<&Halt>) -> Vec<io::Result<TextChunk>> {
        let (mut chunks, mut bytes) = (Vec::new(), 0);
        // Long records make long chunks, of which there are fewer at a time.
        while chunks.len() < count.max(1) && bytes < count.max(1).saturating_mul(self.size.max(1)) {
            if halt.is_some_and(Halt::is_called) {
                break;
            }
            let Some(chunk) = self.next().transpose() else { break };
            bytes += chunk.as_ref().map_or(0, |chunk| chunk.bytes.len());
            chunks.push(chunk);
        }
        chunks
    }

    fn next(&mut self) -> io::Result<Option<TextChunk>> {
        let mut bytes = std::mem::take(&mut self.rest);
        let mut size = self.size.max(1);
        loop {
            if !self.ended {
                let more = size.saturating_sub(bytes.len());
                bytes.reserve_exact(more);
                match self.input.by_ref().take(more as u64).read_to_end(&mut bytes) {
                    Ok(read) => self.ended = read < more,
                    Err(error) => (self.error, self.ended) = (Some(error), true),
                }
            }
            let is_all = self.ended && self.error.is_none();
            let mut end = if is_all { bytes.len() } else { self.syntax.last_end(&bytes) };
            if end == 0 && bytes.len() > LONGEST {
                // Whoever takes it apart says that it is too long; nothing behind it is read.
                (end, self.ended) = (bytes.len(), true);
            }
            if end > 0 {
                self.rest = bytes.split_off(end);
                let lines = self.lines;
                self.lines += memchr_iter(b'\n', &bytes).count() as u64;
                return Ok(Some(TextChunk { bytes, lines }));
            }
            if self.ended {
                return self.error.take().map_or(Ok(None), Err);
            }
            // A record that is longer than this.
            size = (2 * size).min(LONGEST + 1);
        }
    }
}

impl Syntax {
    /// Where the last whole record of a text ends, at whose begin one begins; 0 if there is none.
    fn last_end(&self, text: &[u8]) -> usize {
        let mut begin = 0;
        loop {
            let line_before = |end: usize| {
                begin + memrchr(b'\n', &text[begin..end]).map_or(0, |newline| newline + 1)
            };
            // Without quotes a line is a record.
            let Some(quote) = memchr(b'"', &text[begin..]) else {
                return line_before(text.len());
            };
            let line = line_before(begin + quote);
            match self.end(&text[line..]) {
                Some(length) => begin = line + length,
                None => return line,
            }
        }
    }

    /// How long the first record of a text is (or the comment that stands there), by the rules of
    /// [`Records`](super::records::Records); none if that does not show yet.
    fn end(&self, text: &[u8]) -> Option<usize> {
        let line_end = |at: usize| memchr(b'\n', &text[at..]).map(|length| at + length + 1);
        if let Some(comment) = self.comment
            && text.starts_with(comment.encode_utf8(&mut [0; 4]).as_bytes())
        {
            return line_end(0);
        }
        let blanks = self.delimiter == BLANKS;
        let spaces = |at: usize| {
            let is_space = |&&b: &&u8| if blanks { is_blank(b) } else { b == b' ' };
            text[at..].iter().take_while(is_space).count()
        };
        let mut at = 0;
        loop {
            let begin = at + spaces(at);
            if *text.get(begin)? == b'"' {
                at = begin + 1;
                loop {
                    at += memchr(b'"', &text[at..])? + 1;
                    // Behind the last byte there may be the second of a doubled pair.
                    if *text.get(at)? != b'"' {
                        break;
                    }
                    at += 1;
                }
                let parted = spaces(at);
                at += parted;
                if blanks {
                    match &text[at..] {
                        [b'\n', ..] | [b'\r', b'\n', ..] => return line_end(at),
                        // The end of the record, or an error.
                        _ if parted == 0 => return line_end(at),
                        [] | [b'\r'] => return None,
                        _ => continue,
                    }
                }
                if *text.get(at)? != self.delimiter {
                    // The end of the record, or an error.
                    return line_end(at);
                }
                at += 1;
            } else {
                at = if blanks { begin } else { at };
                at += match blanks {
                    true => memchr3(b' ', b'\t', b'\n', &text[at..])?,
                    false => memchr2(self.delimiter, b'\n', &text[at..])?,
                } + 1;
                if text[at - 1] == b'\n' {
                    return Some(at);
                }
            }
        }
    }
}
