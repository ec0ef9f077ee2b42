//! The engine whose shards answer by files.

use super::directory::{Run, make_folder};
use super::message::{
    self, AnswerHeader, Kind, LARGEST_QUESTION, QuestionHeader, Reply, hex, largest_answer, sha256,
};
use crate::compare::Comparison;
use crate::engine::Engine;
use crate::question::{Answer, Question};
use crate::{Error, Level, Place, Result, Warning};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whoever gets answers that are missing: waits for workers, submits jobs, or gives up for now.
pub trait Courier: Sync {
    /// Called when a round lacks answers. Returns when it is worth looking again.
    fn fetch(&self, open: &OpenRound) -> Result<()>;
}

/// A courier who ends the run with [`Error::Waiting`]: others answer, then it is run again.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stop;

impl Courier for Stop {
    fn fetch(&self, open: &OpenRound) -> Result<()> {
        Err(Error::Waiting(Box::new(open.waiting())))
    }
}

/// A round that lacks answers.
#[derive(Debug)]
pub struct OpenRound<'a> {
    /// The run.
    pub run: &'a Run,
    /// The question file.
    pub question: &'a Path,
    /// The round, counted from 1.
    pub number: u64,
    /// What is asked.
    pub kind: &'static str,
    /// The numbers of the shards whose answers are not there.
    pub missing: Vec<usize>,
    /// What is wrong with answers that are there but are no answers: their shards are missing too.
    pub refused: Vec<Error>,
    /// How many shards take part.
    pub shards: usize,
}

impl OpenRound<'_> {
    /// The answer file that a shard is to write.
    pub fn answer_path(&self, shard: usize) -> PathBuf {
        let question = self.question.file_stem().unwrap_or_default().to_string_lossy();
        let hash = question.split_once('-').map_or("", |(_, hash)| hash);
        answer_path(self.run, hash, shard)
    }

    /// What is awaited, as a value that can be kept.
    pub fn waiting(&self) -> Waiting {
        let name = |&s: &usize| self.run.manifest().shards[s].name.clone();
        Waiting {
            round: self.number,
            kind: self.kind,
            question: self.question.to_path_buf(),
            missing: self.missing.iter().map(name).collect(),
            refused: self.refused.iter().map(Error::to_string).collect(),
            shards: self.shards,
            sites: self.run.manifest().has_sites(),
        }
    }
}

/// What a run waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The round, counted from 1.
    pub round: u64,
    /// What is asked.
    pub kind: &'static str,
    /// The question file.
    pub question: PathBuf,
    /// The names of the shards or sites whose answers are missing.
    pub missing: Vec<String>,
    /// What is wrong with answers that are there.
    pub refused: Vec<String>,
    /// How many shards take part.
    pub shards: usize,
    /// Whether the shards are sites.
    pub sites: bool,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for refused in &self.refused {
            writeln!(f, "refused: {refused}")?;
        }
        let (answered, what) =
            (self.shards - self.missing.len(), if self.sites { "sites" } else { "shards" });
        let shown: Vec<&str> = self.missing.iter().take(20).map(String::as_str).collect();
        let more = if self.missing.len() > 20 { ", …" } else { "" };
        write!(
            f,
            "round {} ({}): {answered} of {} {what} have answered; missing: {}{more}",
            self.round,
            self.kind,
            self.shards,
            shown.join(", ")
        )
    }
}

/// A round's questions as they stand in a file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Posed {
    /// For sites, which have no manifest: the study as JSON and the sites' names.
    pub context: Option<Context>,
    pub questions: Vec<Question>,
}

/// What a site must know beside the questions.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Context {
    pub study: String,
    pub sites: Vec<String>,
}

/// A question file that was read.
#[derive(Debug)]
pub(super) struct Asked {
    pub header: QuestionHeader,
    pub posed: Posed,
    pub path: PathBuf,
}

/// A question file, as a site sees it.
#[derive(Debug)]
pub struct QuestionFile {
    /// What it says of itself.
    pub header: QuestionHeader,
    posed: Posed,
}

impl QuestionFile {
    /// Reads a question file and checks that it is sound in itself.
    pub fn read(path: &Path) -> Result<QuestionFile> {
        let Asked { header, posed, .. } = read_question(path)?;
        Ok(QuestionFile { header, posed })
    }

    /// Takes a question file's bytes apart, or says what is wrong with them.
    pub fn parse(bytes: &[u8]) -> std::result::Result<QuestionFile, String> {
        let Asked { header, posed, .. } = parse_question(bytes)?;
        Ok(QuestionFile { header, posed })
    }

    /// The questions.
    pub fn questions(&self) -> &[Question] {
        &self.posed.questions
    }

    /// The study as JSON and the sites' names, if it is for sites.
    pub fn context(&self) -> Option<(&str, &[String])> {
        self.posed.context.as_ref().map(|c| (c.study.as_str(), c.sites.as_slice()))
    }
}

/// An answer file by itself, as `show` sees it: sound, but held against no question.
#[derive(Debug)]
pub struct AnswerFile {
    /// What it says of itself.
    pub header: AnswerHeader,
    /// The public key it is signed with.
    pub signer: Option<String>,
    replies: Vec<Reply>,
}

impl AnswerFile {
    /// Reads an answer file.
    pub fn read(path: &Path) -> Result<AnswerFile> {
        let bytes = message::load(path, LARGEST_QUESTION)?;
        parse_answer(&bytes).map_err(|message| Error::input_at(Place::file(path), message))
    }

    /// Takes an answer file's bytes apart, or says what is wrong with them.
    pub fn parse(bytes: &[u8]) -> std::result::Result<AnswerFile, String> {
        parse_answer(bytes)
    }

    /// Whether these can be answers to the questions, or what is wrong with them.
    pub fn fits(&self, question: &QuestionFile) -> std::result::Result<(), String> {
        message::check(&self.replies, &question.posed.questions)
    }

    /// Per question the answer, or the error that came in its place.
    pub fn answers(&self) -> impl Iterator<Item = std::result::Result<&Answer, String>> {
        self.replies.iter().map(|reply| match reply {
            Reply::Answer(answer) => Ok(answer),
            Reply::Failure(failure) => Err(failure.clone().error(self.header.shard).to_string()),
        })
    }
}

/// Takes an answer file's bytes apart.
pub(super) fn parse_answer(bytes: &[u8]) -> std::result::Result<AnswerFile, String> {
    let parsed = message::parse::<AnswerHeader>(bytes, Kind::Answer)?;
    let replies: Vec<Reply> = message::decode(parsed.body)?;
    if replies.len() != parsed.header.asks.len() {
        return Err("it has not as many answers as its header names".into());
    }
    Ok(AnswerFile { header: parsed.header, signer: parsed.signer, replies })
}

/// Whether a file says that it is a question.
pub(crate) fn is_question(path: &Path) -> bool {
    use std::io::Read;
    let mut first = [0; 20];
    std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok()
        && first == *b"consilience question"
}

/// What is known of a shard's answer.
pub(super) enum Found {
    Missing,
    Refused(Error),
    Whole(AnswerHeader, Vec<Reply>),
}

/// The engine of a run directory.
#[derive(Debug)]
pub struct Files<'a> {
    run: &'a Run,
    courier: &'a dyn Courier,
    round: AtomicU64,
    active: Vec<usize>,
    /// Per site what it said of its rows in its last answer.
    sites: Mutex<BTreeMap<usize, AnswerHeader>>,
}

impl fmt::Debug for dyn Courier + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Courier")
    }
}

impl<'a> Files<'a> {
    /// The engine of a run; the courier is called for answers that are missing.
    pub fn new(run: &'a Run, courier: &'a dyn Courier) -> Files<'a> {
        let (round, active) = (AtomicU64::new(0), run.manifest().active());
        Files { run, courier, round, active, sites: Mutex::default() }
    }

    /// Adds to a result what only the answers' headers say.
    pub(super) fn finish(&self, comparison: &mut Comparison) {
        let manifest = self.run.manifest();
        if !manifest.has_sites() {
            return;
        }
        let sites = self.sites.lock().expect("no thread panics while it holds the lock");
        comparison.partition.shards = self.active.len();
        comparison.partition.rows = sites.values().map(|h| h.rows as usize).sum();
        comparison.partition.dropped = sites.values().map(|h| h.dropped as usize).sum();
        for site in &manifest.without {
            let message = format!("the site `{site}` was left out");
            let advice = "its rows count for nothing in this result";
            let note = Warning::new(Level::Note, "site-left-out", message, advice);
            comparison.warnings.push(note);
        }
        for (place, &shard) in self.active.iter().enumerate() {
            let Some(header) = sites.get(&shard).filter(|h| !h.merged.is_empty()) else { continue };
            let columns: Vec<String> = header.merged.iter().map(|c| format!("`{c}`")).collect();
            let message = format!(
                "the site `{}` merged rare levels of {} into `{}`",
                manifest.shards[shard].name,
                columns.join(", "),
                crate::site::OTHER
            );
            let advice =
                "that is the site's policy (min_rows); rows of such levels count as one level";
            let note = Warning::new(Level::Note, "levels-merged", message, advice);
            comparison.warnings.push(note.shard(place));
        }
    }
}

impl Engine for Files<'_> {
    fn shards(&self) -> usize {
        self.active.len()
    }

    fn ask(
        &self,
        questions: &[Question],
        answered: &(dyn Fn() + Sync),
    ) -> Result<Vec<Vec<Answer>>> {
        let number = self.round.fetch_add(1, Ordering::Relaxed) + 1;
        let asked = pose(self.run, number, questions)?;
        let mut replies: Vec<Option<Vec<Reply>>> = self.active.iter().map(|_| None).collect();
        let limit = largest_answer(questions);
        loop {
            let (mut missing, mut refused) = (Vec::new(), Vec::new());
            for (&shard, slot) in self.active.iter().zip(&mut replies) {
                if slot.is_some() {
                    continue;
                }
                match find(self.run, &asked, shard, limit)? {
                    Found::Missing => missing.push(shard),
                    Found::Refused(error) => {
                        refused.push(error);
                        missing.push(shard);
                    }
                    Found::Whole(header, whole) => {
                        *slot = Some(whole);
                        questions.iter().for_each(|_| answered());
                        let mut sites = self.sites.lock().expect("nobody panics with it");
                        sites.insert(shard, header);
                    }
                }
            }
            if missing.is_empty() {
                break;
            }
            self.courier.fetch(&OpenRound {
                run: self.run,
                question: &asked.path,
                number,
                kind: questions.first().map_or("", Question::kind),
                missing,
                refused,
                shards: self.active.len(),
            })?;
        }
        let mut answers: Vec<Vec<Answer>> = questions.iter().map(|_| Vec::new()).collect();
        let mut first_failure: Option<(usize, usize, Error)> = None;
        for (place, replies) in replies.into_iter().flatten().enumerate() {
            for (question, reply) in replies.into_iter().enumerate() {
                match reply {
                    Reply::Answer(answer) => answers[question].push(answer),
                    Reply::Failure(failure) => {
                        // The first by question, then by shard, as everywhere.
                        if first_failure.as_ref().is_none_or(|(q, ..)| question < *q) {
                            let shard = self.active[place];
                            first_failure = Some((question, shard, failure.error(shard)));
                        }
                    }
                }
            }
        }
        match first_failure {
            Some((.., error)) => Err(error),
            None => Ok(answers),
        }
    }
}

/// Writes a round's questions, unless they are there.
fn pose(run: &Run, round: u64, questions: &[Question]) -> Result<Asked> {
    let manifest = run.manifest();
    let body = postcard::to_stdvec(questions).expect("a question can always be written");
    let (study, partition) = (manifest.study_hash.clone(), manifest.partition_hash.clone());
    let schema = manifest.schema_hash.clone();
    let parts = [study.as_bytes(), partition.as_bytes(), schema.as_bytes(), &body];
    let question = hex(&sha256(&parts))[..32].to_string();
    let path = run.folder().join("questions").join(format!("{round:04}-{question}.question"));
    let header = QuestionHeader {
        study,
        partition,
        schema,
        question: question.clone(),
        round,
        asks: questions.iter().map(|q| q.kind().to_string()).collect(),
        program: env!("CARGO_PKG_VERSION").into(),
    };
    let context = manifest.has_sites().then(|| Context {
        study: serde_json::to_string(&super::manifest::portable(&manifest.study))
            .expect("a study can always be written"),
        sites: manifest.shards.iter().map(|s| s.name.clone()).collect(),
    });
    let posed = Posed { context, questions: questions.to_vec() };
    let bytes = postcard::to_stdvec(&posed).expect("a question can always be written");
    if bytes.len() as u64 > LARGEST_QUESTION {
        let message = format!(
            "the question of round {round} has {} bytes, more than a file may have; use fewer draws",
            bytes.len()
        );
        return Err(Error::input(message));
    }
    let file = message::encode(Kind::Question, &header, &bytes, None);
    // A whole file of this name holds these questions; one that was damaged is written again.
    if std::fs::metadata(&path).map_or(true, |m| m.len() != file.len() as u64)
        || std::fs::read(&path).map_or(true, |there| there != file)
    {
        crate::draft::write(&path, &file)?;
    }
    make_folder(&run.folder().join("answers").join(&question))?;
    Ok(Asked { header, posed, path })
}

/// Reads a question file and checks that it is sound in itself.
pub(super) fn read_question(path: &Path) -> Result<Asked> {
    let bytes = message::load(path, LARGEST_QUESTION)?;
    let asked = parse_question(&bytes).map_err(|m| Error::input_at(Place::file(path), m))?;
    Ok(Asked { path: path.to_path_buf(), ..asked })
}

/// Takes a question file's bytes apart.
pub(super) fn parse_question(bytes: &[u8]) -> std::result::Result<Asked, String> {
    let parsed = message::parse::<QuestionHeader>(bytes, Kind::Question)?;
    let (header, posed) = (parsed.header, message::decode::<Posed>(parsed.body)?);
    let kinds = posed.questions.iter().map(|q| q.kind());
    if posed.questions.is_empty() || !kinds.eq(header.asks.iter().map(String::as_str)) {
        return Err("its questions are not those that its header names".into());
    }
    posed.questions.iter().try_for_each(super::trust::question)?;
    let body = postcard::to_stdvec(&posed.questions).expect("a question can always be written");
    let parts =
        [header.study.as_bytes(), header.partition.as_bytes(), header.schema.as_bytes(), &body];
    if hex(&sha256(&parts))[..32] != header.question {
        return Err("its questions are not those that its hash names".into());
    }
    Ok(Asked { header, posed, path: PathBuf::new() })
}

/// Where a shard's answer to a question is.
pub(super) fn answer_path(run: &Run, question: &str, shard: usize) -> PathBuf {
    let name = &run.manifest().shards[shard].name;
    run.folder().join("answers").join(question).join(format!("{name}.answer"))
}

/// Looks for a shard's answer to a question. What is wrong with a file is no failure of the run; a
/// file that is there and cannot be read is.
pub(super) fn find(run: &Run, asked: &Asked, shard: usize, limit: u64) -> Result<Found> {
    let path = answer_path(run, &asked.header.question, shard);
    let bytes = match message::load(&path, limit) {
        Ok(bytes) => bytes,
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Found::Missing);
        }
        Err(error) if error.is_input() => return Ok(Found::Refused(error)),
        Err(error) => return Err(error),
    };
    let read = examine(run, asked, &bytes).and_then(|(header, replies)| {
        if header.shard == shard {
            Ok((header, replies))
        } else {
            Err(format!("it is the answer of shard {}, under the name of another", header.shard))
        }
    });
    Ok(match read {
        Ok((header, replies)) => Found::Whole(header, replies),
        Err(message) => Found::Refused(Error::input_at(Place::file(&path), message)),
    })
}

/// Checks a file's bytes as an answer to a question of this run.
pub(super) fn examine(
    run: &Run,
    asked: &Asked,
    bytes: &[u8],
) -> std::result::Result<(AnswerHeader, Vec<Reply>), String> {
    let parsed = message::parse::<AnswerHeader>(bytes, Kind::Answer)?;
    let header = parsed.header;
    let manifest = run.manifest();
    if header.study != manifest.study_hash {
        return Err("it is an answer of another study".into());
    }
    if header.schema != manifest.schema_hash {
        return Err("it was computed from other columns (schema)".into());
    }
    if header.partition != manifest.partition_hash {
        return Err("it was computed on another split of the data (partition)".into());
    }
    if header.question != asked.header.question {
        return Err(format!(
            "it answers another question, of round {}, and not that of round {}",
            header.round, asked.header.round
        ));
    }
    if header.asks != asked.header.asks {
        return Err("it names other kinds of questions than were asked".into());
    }
    let Some(entry) = manifest.shards.get(header.shard) else {
        return Err(format!("it is of shard {}, which the run does not have", header.shard));
    };
    if header.site.as_ref().is_some_and(|site| *site != entry.name) {
        return Err(format!(
            "it is of the site `{}`, which is not shard {} of this run",
            header.site.as_deref().unwrap_or_default(),
            header.shard
        ));
    }
    if header.site.is_none() != entry.rows.is_some() {
        return Err("a site's answer names its site, and only that does".into());
    }
    match (&entry.key, &parsed.signer) {
        (Some(_), None) => {
            return Err(format!(
                "it is not signed, and this run takes only signed answers of `{}`",
                entry.name
            ));
        }
        (Some(key), Some(signer)) if key != signer => {
            return Err(format!("it is signed with a key that is not that of `{}`", entry.name));
        }
        _ => {}
    }
    let replies: Vec<Reply> = message::decode(parsed.body)?;
    message::check(&replies, &asked.posed.questions)?;
    if header.failed != replies.iter().any(|r| matches!(r, Reply::Failure(_))) {
        return Err("its header and its content disagree on whether it failed".into());
    }
    Ok((header, replies))
}
