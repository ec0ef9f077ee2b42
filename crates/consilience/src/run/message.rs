//! Question and answer files: what they look like, and what is refused.
//!
//! ```text
//! consilience answer 3                        what this is, and the version of the format
//! {"study":"…","question":"…","shard":7,…}    whose it is, in one line of JSON
//! sha256 9f86d0… bytes 80123                  of the two lines above and the body; the body's length
//! signature KEY SIGNATURE                     of that sum (ed25519), if there is one
//!                                             an empty line
//! …                                           the body: questions or answers (postcard)
//! ```
//!
//! A file may come from anywhere and is not taken on trust: its length is checked before it is read,
//! every part before it is used, and what it takes in memory while it is read (`decode.rs`).

use super::masks::Hidden;
use crate::error::plain;
pub(crate) use crate::hex::{hex, unhex};
use crate::question::{Answer, Question, fixed};
use crate::{Error, Place, Result};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::Path;

/// The version of the format of files, and of run directories.
pub const FORMAT: u32 = 7;

/// No question file is larger than this.
pub const LARGEST_QUESTION: u64 = 256 << 20;

/// No file that passes between sites is larger than this.
pub const LARGEST_LETTER: u64 = 64 << 20;

/// No header is longer than this.
const LONGEST_HEADER: usize = 64 << 10;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    Question,
    Answer,
}

impl FileKind {
    fn name(self) -> &'static str {
        match self {
            FileKind::Question => "question",
            FileKind::Answer => "answer",
        }
    }
}

/// What a question file says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionHeader {
    /// The study's hash.
    pub study: String,
    /// The partition's hash.
    pub partition: String,
    /// The hash of the columns that the study uses.
    pub schema: String,
    /// The hash of the questions.
    pub question: String,
    /// What tells the run from all others of the same study, where shards are sites.
    pub run: Option<String>,
    /// The round, counted from 1.
    pub round: u64,
    /// What is asked, in words such as `fit`: one per question.
    pub asks: Vec<String>,
    /// The version of the program that wrote it.
    pub program: String,
}

/// What an answer file says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerHeader {
    /// The study's hash.
    pub study: String,
    /// The partition's hash.
    pub partition: String,
    /// The hash of the columns that the study uses.
    pub schema: String,
    /// The hash of the questions.
    pub question: String,
    /// The run of the question, where shards are sites.
    pub run: Option<String>,
    /// The round, counted from 1.
    pub round: u64,
    /// What was asked.
    pub asks: Vec<String>,
    /// The shard's number, counted from 0.
    pub shard: usize,
    /// The site's name, where shards are sites.
    pub site: Option<String>,
    /// The shard's rows.
    pub rows: u64,
    /// Rows that a site left out because a value is missing.
    pub dropped: u64,
    /// Columns of which a site merged rare levels, as its policy says.
    pub merged: Vec<String>,
    /// What ties a site to its rows without showing them: a hash of these and of something that it keeps to itself.
    pub commitment: Option<String>,
    /// Whether a question could not be answered.
    pub failed: bool,
    /// The version of the program that wrote it.
    pub program: String,
}

impl AnswerHeader {
    /// Of the answer that a shard with so many rows gives to this question, if all goes well.
    pub(crate) fn to(question: &QuestionHeader, shard: usize, rows: u64) -> AnswerHeader {
        AnswerHeader {
            study: question.study.clone(),
            partition: question.partition.clone(),
            schema: question.schema.clone(),
            question: question.question.clone(),
            run: question.run.clone(),
            round: question.round,
            asks: question.asks.clone(),
            shard,
            site: None,
            rows,
            dropped: 0,
            merged: Vec::new(),
            commitment: None,
            failed: false,
            program: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

/// What a shard says to one question of a round.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Reply {
    Answer(Answer),
    Failure(Failure),
    /// An answer under masks: only the sum over all sites tells anything.
    Masked(Vec<Hidden>),
}

/// An error that the question and the rows make, whoever asks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Failure {
    input: Option<Place>,
    model: Option<String>,
    parameter: Option<String>,
    message: String,
}

impl Failure {
    /// The error as an answer; `None` if it is one of this machine's, which another try may not meet.
    pub fn of(error: &Error) -> Option<Failure> {
        Some(match error {
            Error::Input { place, message } => Failure {
                input: Some(place.clone()),
                model: None,
                parameter: None,
                message: message.clone(),
            },
            Error::Numeric { model, parameter, message, .. } => Failure {
                input: None,
                model: model.clone(),
                parameter: parameter.clone(),
                message: message.clone(),
            },
            _ => return None,
        })
    }

    /// The error again. Its words are a stranger's: they stay in one line, and are no more than words.
    pub fn error(self, shard: usize) -> Error {
        match self.input {
            Some(place) => Error::Input { place, message: plain(&self.message) },
            None => Error::Numeric {
                shard: Some(shard),
                model: self.model.as_deref().map(plain),
                parameter: self.parameter.as_deref().map(plain),
                message: plain(&self.message),
            },
        }
    }
}

/// A file taken apart.
pub(super) struct TakenApart<'a, H> {
    pub header: H,
    pub body: &'a [u8],
    /// Who signed it, as text; the signature is good.
    pub signer: Option<String>,
}

/// SHA-256 of several pieces, one after the other.
pub(super) fn sha256(pieces: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    pieces.iter().for_each(|piece| hasher.update(piece));
    hasher.finalize().into()
}

/// The bytes of a file.
pub(super) fn encode(
    kind: FileKind,
    header: &impl Serialize,
    body: &[u8],
    key: Option<&SigningKey>,
) -> Vec<u8> {
    let json = serde_json::to_string(header).expect("a header can always be written");
    let head = format!("consilience {} {FORMAT}\n{json}\n", kind.name());
    let sum = sha256(&[head.as_bytes(), body]);
    let mut text = format!("{head}sha256 {} bytes {}\n", hex(&sum), body.len());
    if let Some(key) = key {
        let signature = key.sign(&sum).to_bytes();
        text += &format!("signature {} {}\n", hex(key.verifying_key().as_bytes()), hex(&signature));
    }
    text.push('\n');
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Takes a file apart, or says what is wrong with it.
pub(super) fn parse<H: DeserializeOwned>(
    bytes: &[u8],
    kind: FileKind,
) -> std::result::Result<TakenApart<'_, H>, String> {
    let what = kind.name();
    if bytes.is_empty() {
        return Err("the file is empty; send it again".into());
    }
    let mut rest = bytes;
    let mut line = |longest: usize| -> std::result::Result<&str, String> {
        let window = &rest[..rest.len().min(longest + 1)];
        let Some(end) = window.iter().position(|&byte| byte == b'\n') else {
            return Err(if rest.len() > longest {
                "its header is longer than any is".into()
            } else {
                "the file is cut short in its header; send it again".into()
            });
        };
        let line = std::str::from_utf8(&rest[..end]).map_err(|_| "its header is no text")?;
        rest = &rest[end + 1..];
        Ok(line)
    };
    const FIRST: usize = 64;
    if !bytes.starts_with(b"consilience ") {
        return Err(format!("this is no {what} file of this program"));
    }
    let first = line(FIRST)?;
    let mut words = first.split(' ').skip(1);
    let (found, version) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    if found != what {
        return Err(match found {
            "question" | "answer" => {
                format!("this is a file of kind `{found}`, and an `{what}` is needed")
            }
            _ => format!("this is no {what} file of this program"),
        });
    }
    match version.parse::<u32>() {
        Ok(FORMAT) if words.next().is_none() => {}
        Ok(version) if version != FORMAT => {
            return Err(format!(
                "the file is of format {version}, and this program knows format {FORMAT}; use the same version everywhere"
            ));
        }
        _ => return Err("its first line names no version of the format".into()),
    }
    let json = line(LONGEST_HEADER)?;
    let head = first.len() + json.len() + 2;
    let sums = line(200)?;
    let fields: Vec<&str> = sums.split(' ').collect();
    let ["sha256", sum, "bytes", length] = fields[..] else {
        return Err("its third line is no check sum".into());
    };
    let sum: [u8; 32] = unhex(sum).ok_or("its check sum is not 64 hexadecimal digits")?;
    let length: usize = length.parse().map_err(|_| "its length is no whole number")?;
    let mut signed = None;
    let mut next = line(400)?;
    if let Some(text) = next.strip_prefix("signature ") {
        let parts: Vec<&str> = text.split(' ').collect();
        let [key, signature] = parts[..] else {
            return Err("its signature line is not a key and a signature".into());
        };
        let key: [u8; 32] = unhex(key).ok_or("the key in it is not 64 hexadecimal digits")?;
        let signature: [u8; 64] =
            unhex(signature).ok_or("its signature is not 128 hexadecimal digits")?;
        signed = Some((key, signature));
        next = line(400)?;
    }
    if !next.is_empty() {
        return Err("its header does not end with an empty line".into());
    }
    if rest.len() < length {
        return Err(format!(
            "the file is cut short: {} of {length} bytes after the header are there; send it again",
            rest.len()
        ));
    }
    if rest.len() > length {
        return Err(format!("{} bytes follow its end; send it again", rest.len() - length));
    }
    if sha256(&[&bytes[..head], rest]) != sum {
        return Err("the file was altered after it was written (check sum); send it again".into());
    }
    let signer = match signed {
        None => None,
        Some((key, signature)) => {
            let good = VerifyingKey::from_bytes(&key)
                .is_ok_and(|k| k.verify_strict(&sum, &Signature::from_bytes(&signature)).is_ok());
            if !good {
                return Err("its signature is false: the file or the key was altered".into());
            }
            Some(hex(&key))
        }
    };
    let header =
        serde_json::from_str(json).map_err(|error| format!("its header is not sound: {error}"))?;
    Ok(TakenApart { header, body: rest, signer })
}

/// Reads a file of at most so many bytes; what is larger is not read at all.
pub(crate) fn load(path: &Path, largest: u64) -> Result<Vec<u8>> {
    let failed = |source| Error::Io { path: path.to_path_buf(), source };
    let wrong = |message: String| Err(Error::input_at(Place::file(path), message));
    // Asked of the name first: opening a pipe would wait for somebody to write to it.
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return wrong("this is no file".into());
    }
    let too_large = |size: u64| {
        format!("the file has {size} bytes, and there can be at most {largest}; it is not read")
    };
    if metadata.len() > largest {
        return wrong(too_large(metadata.len()));
    }
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    // It may grow while it is read.
    file.take(largest + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > largest {
        return wrong(too_large(bytes.len() as u64));
    }
    Ok(bytes)
}

/// Checks answers against their questions and says what is wrong with them. Where only `sums` are told, what can be
/// added up is masked, and nowhere else anything is.
pub(super) fn check(
    replies: &[Reply],
    questions: &[Question],
    sums: bool,
) -> std::result::Result<(), String> {
    if replies.len() != questions.len() {
        return Err(format!("it answers {} questions of {}", replies.len(), questions.len()));
    }
    for (reply, question) in replies.iter().zip(questions) {
        let layout = if sums { question.layout() } else { None };
        match (reply, layout) {
            (Reply::Failure(_), _) => {}
            (Reply::Answer(answer), None) => question.accept(answer)?,
            (Reply::Masked(hidden), Some(layout)) => {
                let (found, wanted) = (hidden.len(), fixed::count(&layout));
                if found != wanted {
                    return Err(format!("it has {found} masked numbers, and {wanted} were asked"));
                }
            }
            (Reply::Answer(_), Some(_)) => {
                let kind = question.kind();
                return Err(format!("it answers `{kind}` without masks in a run for sums only"));
            }
            (Reply::Masked(_), None) => {
                return Err(format!("it masks the answer to `{}`, which is none", question.kind()));
            }
        }
    }
    Ok(())
}

/// A shard's replies as a file.
pub(crate) fn encode_answer(
    header: &AnswerHeader,
    replies: &[Reply],
    key: Option<&SigningKey>,
) -> Vec<u8> {
    let body = postcard::to_stdvec(replies).expect("an answer can always be written");
    encode(FileKind::Answer, header, &body, key)
}

/// SHA-256 of a file's bytes as text.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex(&sha256(&[bytes]))
}
