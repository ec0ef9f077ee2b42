//! Shards in other processes, to which somebody else carries bytes: questions there, answers back.
//!
//! The bytes are those of question and answer files (`message.rs`), so that answers name their study, partition, question
//! and rows, and are believed as little as files are.

use super::decode::decode;
use super::exchange::{Posed, QuestionFile, hash_of, question_digest};
use super::message::{
    self, AnswerHeader, Failure, FileKind, QuestionHeader, Reply, encode_answer, hex, sha256,
};
use super::work::answer_soundly;
use crate::engine::{Answered, Engine};
use crate::question::{Answers, Question};
use crate::shard::Shard;
use crate::{Error, Result};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whoever takes bytes to shards and brings theirs back.
pub trait Carrier: Sync {
    /// How many shards there are.
    fn shards(&self) -> usize;

    /// Takes a question to every shard, which answers by [`answer`], and hands every answer over with the shard's number as
    /// it comes, in any order. If that fails, the rest need not be carried, and the round ends with that error.
    fn carry(&self, question: &[u8], came: &Came) -> Result<()>;
}

/// Called for every answer as it comes, with the shard's number.
pub type Came<'a> = dyn Fn(usize, &[u8]) -> Result<()> + Sync + 'a;

/// An engine whose shards are where a [`Carrier`] finds them.
#[derive(Debug)]
pub struct Remote<C> {
    carrier: C,
    /// The hashes of study, partition and columns.
    names: [String; 3],
    round: AtomicU64,
    /// How many rows each shard says that it has.
    rows: Mutex<Vec<Option<u64>>>,
}

impl<C: Carrier> Remote<C> {
    /// Shards that this carrier finds. The text tells the work from other work on the same carrier: say, a study's hash and its
    /// partition's.
    pub fn new(carrier: C, study: &str, partition: &str) -> Remote<C> {
        let rows = Mutex::new(vec![None; carrier.shards()]);
        let names = [study.to_string(), partition.to_string(), hex(&sha256(&[]))];
        Remote { carrier, names, round: AtomicU64::new(0), rows }
    }

    /// A round's questions, and their bytes.
    fn pose(&self, questions: &[Question]) -> Result<(QuestionFile, Vec<u8>)> {
        let [study, partition, schema] = self.names.clone();
        let mut header = QuestionHeader {
            study,
            partition,
            schema,
            question: String::new(),
            run: None,
            round: self.round.fetch_add(1, Ordering::Relaxed) + 1,
            asks: questions.iter().map(|q| q.kind().to_string()).collect(),
            program: env!("CARGO_PKG_VERSION").into(),
        };
        let posed = Posed { context: None, questions: questions.to_vec() };
        let digest = question_digest(&header, &posed).map_err(Error::input)?;
        header.question = hash_of(&digest);
        let body = postcard::to_stdvec(&posed).expect("a question can always be written");
        let bytes = message::encode(FileKind::Question, &header, &body, None);
        Ok((QuestionFile::new(header, posed, digest), bytes))
    }

    /// A shard's replies, if these bytes are its answer to that question.
    fn read(&self, asked: &QuestionFile, shard: usize, bytes: &[u8]) -> Result<Vec<Reply>> {
        let read = || -> std::result::Result<Vec<Reply>, String> {
            if bytes.len() as u64 > asked.largest_answer() {
                return Err(format!("it has {} bytes, more than any answer has", bytes.len()));
            }
            let parsed = message::parse::<AnswerHeader>(bytes, FileKind::Answer)?;
            let (header, question) = (parsed.header, &asked.header);
            if [&header.study, &header.partition, &header.schema]
                != [&question.study, &question.partition, &question.schema]
            {
                return Err("it is an answer of another study or another split".into());
            }
            if header.question != question.question {
                return Err("it answers another question".into());
            }
            if header.shard != shard {
                return Err(format!("it is the answer of shard {}", header.shard));
            }
            let mut rows = self.rows.lock().expect("no thread panics while it holds it");
            match rows.get_mut(shard) {
                None => return Err("there is no such shard".into()),
                Some(known) => {
                    let known = known.get_or_insert(header.rows);
                    if *known != header.rows {
                        let found = header.rows;
                        return Err(format!("the shard had {known} rows before, and {found} now"));
                    }
                }
            }
            let replies: Vec<Reply> = decode(parsed.body)?;
            message::check(&replies, asked.questions(), false)?;
            Ok(replies)
        };
        read()
            .map_err(|why| Error::Transport(format!("shard {shard}: its answer is refused: {why}")))
    }
}

impl<C: Carrier> Engine for Remote<C> {
    fn shards(&self) -> usize {
        self.carrier.shards()
    }

    fn ask(&self, questions: &[Question], answered: &Answered) -> Result<Vec<Answers>> {
        let (asked, bytes) = self.pose(questions)?;
        let found: Mutex<Vec<Option<Vec<Reply>>>> = Mutex::new(vec![None; self.shards()]);
        self.carrier.carry(&bytes, &|shard, bytes| {
            let replies = self.read(&asked, shard, bytes)?;
            let mut found = found.lock().expect("no thread panics while it holds it");
            found[shard] = Some(replies);
            match questions.iter().any(|_| answered().is_break()) {
                true => Err(Error::Stopped),
                false => Ok(()),
            }
        })?;
        let found = found.into_inner().expect("no thread panics while it holds it");
        let of_all = |q: usize| {
            let mut each = Vec::with_capacity(found.len());
            for (shard, replies) in found.iter().enumerate() {
                match replies.as_ref().and_then(|replies| replies.get(q)) {
                    Some(Reply::Answer(answer)) => each.push(answer.clone()),
                    Some(Reply::Failure(failure)) => return Err(failure.clone().error(shard)),
                    _ => {
                        return Err(Error::Transport(format!("shard {shard} has not answered")));
                    }
                }
            }
            Ok(Answers::Each(each))
        };
        (0..questions.len()).map(of_all).collect()
    }
}

/// A shard's answer to a question, both as bytes. What the question and the rows are at fault for is an answer too; an error is
/// this machine's, or of bytes that are no question.
pub fn answer(shard: &Shard, question: &[u8]) -> Result<Vec<u8>> {
    let asked = QuestionFile::parse(question)
        .map_err(|why| Error::Transport(format!("the question cannot be read: {why}")))?;
    let reply = |question: &Question| match answer_soundly(shard, question) {
        Ok(answer) => Ok(Reply::Answer(answer)),
        Err(error) => Failure::of(&error).map(Reply::Failure).ok_or(error),
    };
    let replies = asked.questions().iter().map(reply).collect::<Result<Vec<Reply>>>()?;
    let header = AnswerHeader {
        failed: replies.iter().any(|reply| matches!(reply, Reply::Failure(_))),
        ..AnswerHeader::to(&asked.header, shard.index(), shard.data().rows() as u64)
    };
    Ok(encode_answer(&header, &replies, None))
}
