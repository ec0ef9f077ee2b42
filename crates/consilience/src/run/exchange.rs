//! Question and answer files of runs: written, found, and held against each other.

use super::decode::decode;
use super::directory::Run;
use super::masks;
use super::message::{self, AnswerHeader, FileKind, LARGEST_LETTER, QuestionHeader, Reply, hex};
use crate::draft::make_folder;
use crate::plan::Learned;
use crate::question::{Answer, Question, fixed, room};
use crate::{Error, Place, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::{Path, PathBuf};

/// No study is longer than this, as JSON.
const LONGEST_STUDY: usize = 4 << 20;

/// A round's questions as they stand in a file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Posed {
    /// For sites, which have no manifest: the study as JSON and the sites' names.
    pub context: Option<Context>,
    pub questions: Vec<Question>,
}

/// What a site must know beside the questions, to tell whether the study asks them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Context {
    /// The study as JSON.
    pub study: String,
    /// The names of all sites of the run, by their numbers.
    pub sites: Vec<String>,
    /// The numbers of those that take part.
    pub active: Vec<u32>,
    /// What all of them together have said before.
    pub learned: Learned,
    /// The scales of priors under which models are compared too.
    pub scales: Vec<f64>,
    /// Whether only sums over all sites are told, and no site's answer.
    pub sums: bool,
    /// The sites' public keys by their numbers, where only sums are told.
    pub keys: Vec<String>,
}

/// A question file that was read and is sound in itself.
#[derive(Debug)]
pub struct QuestionFile {
    /// What it says of itself.
    pub header: QuestionHeader,
    /// The public key it is signed with.
    pub signer: Option<String>,
    posed: Posed,
    digest: [u8; 32],
}

impl QuestionFile {
    /// Questions of ours, which are sound.
    pub(super) fn new(header: QuestionHeader, posed: Posed, digest: [u8; 32]) -> QuestionFile {
        QuestionFile { header, signer: None, posed, digest }
    }

    /// Reads a question file that came from elsewhere.
    pub fn read(path: &Path) -> Result<QuestionFile> {
        QuestionFile::read_within(path, LARGEST_LETTER)
    }

    /// Reads a question file of at most so many bytes.
    pub(super) fn read_within(path: &Path, largest: u64) -> Result<QuestionFile> {
        let bytes = message::load(path, largest)?;
        QuestionFile::parse(&bytes).map_err(|m| Error::input_at(Place::file(path), m))
    }

    /// Takes a question file's bytes apart, or says what is wrong with them.
    pub fn parse(bytes: &[u8]) -> std::result::Result<QuestionFile, String> {
        let parsed = message::parse::<QuestionHeader>(bytes, FileKind::Question)?;
        let (header, signer) = (parsed.header, parsed.signer);
        // A study for sites is the first that a body has, or none.
        let for_site = parsed.body.first() == Some(&1);
        let posed = room::reading(for_site, || decode::<Posed>(parsed.body))?;
        let kinds = posed.questions.iter().map(|q| q.kind());
        if posed.questions.is_empty() || !kinds.eq(header.asks.iter().map(String::as_str)) {
            return Err("its questions are not those that its header names".into());
        }
        if posed.context.as_ref().is_some_and(|c| c.study.len() > LONGEST_STUDY) {
            return Err("the study in it is longer than any is".into());
        }
        posed.questions.iter().try_for_each(Question::check)?;
        if posed.context.is_some() != header.run.is_some() {
            return Err("only questions for sites name their run".into());
        }
        room::fits(&posed.questions, posed.context.is_some())?;
        if posed.context.as_ref().is_some_and(|c| c.sums) {
            masks::only_sums(&posed.questions)?;
        }
        let digest = question_digest(&header, &posed)?;
        if hash_of(&digest) != header.question {
            return Err("its questions are not those that its hash names".into());
        }
        Ok(QuestionFile { header, signer, posed, digest })
    }

    /// At most how many bytes a file of answers to it has.
    pub(super) fn largest_answer(&self) -> u64 {
        // Who is asked, and what comes before the answers, is no more than this.
        const HEADER: u64 = 64 << 10;
        let each = self.questions().iter().map(Question::largest_answer);
        let largest = each.fold(HEADER, u64::saturating_add);
        let masked = self.questions().iter().filter(|_| self.tells_sums());
        let masked = masked.filter_map(Question::layout).map(|l| 16 * fixed::count(&l) as u64);
        let largest = masked.fold(largest, u64::saturating_add);
        if self.posed.context.is_some() { largest.min(LARGEST_LETTER) } else { largest }
    }

    /// An error if an answer of so many bytes is larger than any that is read.
    pub(crate) fn fits_into_an_answer(&self, bytes: usize) -> Result<()> {
        let largest = self.largest_answer();
        if bytes as u64 <= largest {
            return Ok(());
        }
        Err(Error::input(format!(
            "the answer has {bytes} bytes, and there can be at most {largest}; use columns with fewer levels, fewer models or fewer draws"
        )))
    }

    /// Where it is in a run directory.
    pub(super) fn path(&self, run: &Run) -> PathBuf {
        let QuestionHeader { round, question, .. } = &self.header;
        run.folder().join("questions").join(format!("{round:04}-{question}.question"))
    }

    /// The questions.
    pub fn questions(&self) -> &[Question] {
        &self.posed.questions
    }

    /// Whether it is for this site.
    pub fn is_for(&self, site: &str) -> bool {
        let named = |context: &Context| {
            let place = context.sites.iter().position(|name| name == site);
            place.is_some_and(|place| context.active.contains(&(place as u32)))
        };
        self.posed.context.as_ref().is_some_and(named)
    }

    /// Whether only sums over all sites are told.
    pub(crate) fn tells_sums(&self) -> bool {
        self.posed.context.as_ref().is_some_and(|context| context.sums)
    }

    /// What tells it from all others: of the questions, the run, and the sites where only sums are told.
    pub(crate) fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// What a site must know beside the questions, if it is for sites.
    pub(crate) fn context(&self) -> Option<&Context> {
        self.posed.context.as_ref()
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
        let bytes = message::load(path, LARGEST_LETTER)?;
        parse_answer(&bytes).map_err(|message| Error::input_at(Place::file(path), message))
    }

    /// Takes an answer file's bytes apart, or says what is wrong with them.
    pub fn parse(bytes: &[u8]) -> std::result::Result<AnswerFile, String> {
        parse_answer(bytes)
    }

    /// Whether these can be answers to the questions, or what is wrong with them.
    pub fn fits(&self, question: &QuestionFile) -> std::result::Result<(), String> {
        message::check(&self.replies, question.questions(), question.tells_sums())
    }

    /// How many masked numbers came in the place of the answer of this number, if they did.
    pub fn masked(&self, number: usize) -> Option<usize> {
        match self.replies.get(number) {
            Some(Reply::Masked(hidden)) => Some(hidden.len()),
            _ => None,
        }
    }

    /// Per question the answer, or the error that came in its place; what is [`masked`](Self::masked) tells nothing.
    pub fn answers(&self) -> impl Iterator<Item = std::result::Result<&Answer, String>> {
        self.replies.iter().map(|reply| match reply {
            Reply::Answer(answer) => Ok(answer),
            Reply::Failure(failure) => Err(failure.clone().error(self.header.shard).to_string()),
            Reply::Masked(_) => Err("it is masked, and tells nothing alone".into()),
        })
    }
}

/// Takes an answer file's bytes apart.
pub(super) fn parse_answer(bytes: &[u8]) -> std::result::Result<AnswerFile, String> {
    let parsed = message::parse::<AnswerHeader>(bytes, FileKind::Answer)?;
    let replies: Vec<Reply> = decode(parsed.body)?;
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
pub(super) enum FoundAnswer {
    Missing,
    Refused(Error),
    Whole(AnswerHeader, Vec<Reply>),
}

/// By which answers know their questions.
pub(super) fn hash_of(digest: &[u8; 32]) -> String {
    hex(&digest[..16])
}

/// What tells questions from all others.
pub(super) fn question_digest(
    header: &QuestionHeader,
    posed: &Posed,
) -> std::result::Result<[u8; 32], String> {
    struct SummedAnswers(Sha256);
    impl Write for SummedAnswers {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let QuestionHeader { study, partition, schema, run, .. } = header;
    let sum = Sha256::new().chain_update(study).chain_update(partition).chain_update(schema);
    let mut sum = sum.chain_update(run.as_deref().unwrap_or(""));
    if let Some(context) = posed.context.as_ref().filter(|context| context.sums) {
        // An answer that is masked for some sites is none for others.
        sum.update("\nsums\n");
        context.circle()?.iter().for_each(|(name, key)| sum.update(format!("{name} {key}\n")));
    }
    // Not made in memory first: a question may be large.
    let sum = postcard::to_io(&posed.questions, SummedAnswers(sum));
    Ok(sum.expect("a question can always be written").0.finalize().into())
}

/// Writes a round's questions, unless they are there.
pub(super) fn pose(
    run: &Run,
    round: u64,
    questions: &[Question],
    learned: &Learned,
) -> Result<QuestionFile> {
    let manifest = run.manifest();
    let mut header = QuestionHeader {
        study: manifest.study_hash.clone(),
        partition: manifest.partition_hash.clone(),
        schema: manifest.schema_hash.clone(),
        question: String::new(),
        run: manifest.coordinator.as_ref().map(|coordinator| coordinator.run.clone()),
        round,
        asks: questions.iter().map(|q| q.kind().to_string()).collect(),
        program: env!("CARGO_PKG_VERSION").into(),
    };
    let keys = manifest.shards.iter().filter(|_| manifest.tells_sums());
    let context = manifest.has_sites().then(|| Context {
        study: serde_json::to_string(&manifest.study).expect("a study can always be written"),
        sites: manifest.shards.iter().map(|s| s.name.clone()).collect(),
        active: manifest.active().into_iter().map(|s| s as u32).collect(),
        learned: learned.clone(),
        scales: manifest.extras.prior_scales.clone(),
        sums: manifest.tells_sums(),
        keys: keys.map(|s| s.key.clone().unwrap_or_default()).collect(),
    });
    let key = run.coordinator_key()?;
    let fits = room::fits(questions, context.is_some());
    fits.map_err(|why| {
        Error::input(format!("the question of round {round} cannot be asked: {why}"))
    })?;
    let posed = Posed { context, questions: questions.to_vec() };
    if manifest.tells_sums() {
        masks::only_sums(questions).map_err(Error::input)?;
    }
    let digest = question_digest(&header, &posed).map_err(Error::input)?;
    header.question = hash_of(&digest);
    let question = header.question.clone();
    let bytes = postcard::to_stdvec(&posed).expect("a question can always be written");
    let largest = run.largest_question();
    if bytes.len() as u64 > largest {
        let message = format!(
            "the question of round {round} has {} bytes, and a file may have {largest}; use fewer draws, or compare fewer models at once",
            bytes.len()
        );
        return Err(Error::input(message));
    }
    let file = message::encode(FileKind::Question, &header, &bytes, key.as_ref().map(|k| &k.0));
    let signer = key.map(|key| key.public());
    let asked = QuestionFile { header, signer, posed, digest };
    let path = asked.path(run);
    // A whole file of this name holds these questions; one that was damaged is written again.
    if std::fs::metadata(&path).map_or(true, |m| m.len() != file.len() as u64)
        || std::fs::read(&path).map_or(true, |there| there != file)
    {
        crate::draft::write(&path, file)?;
    }
    make_folder(&run.folder().join("answers").join(&question))?;
    Ok(asked)
}

/// Where a shard's answer to a question is.
pub(super) fn answer_path(run: &Run, question: &str, shard: usize) -> PathBuf {
    let name = &run.manifest().shards[shard].name;
    run.folder().join("answers").join(question).join(format!("{name}.answer"))
}

/// Looks for a shard's answer to a question. What is wrong with a file is no failure of the run; a
/// file that is there and cannot be read is.
pub(super) fn find(run: &Run, asked: &QuestionFile, shard: usize) -> Result<FoundAnswer> {
    let path = answer_path(run, &asked.header.question, shard);
    let bytes = match message::load(&path, asked.largest_answer()) {
        Ok(bytes) => bytes,
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Ok(FoundAnswer::Missing);
        }
        Err(error) if error.is_input() => return Ok(FoundAnswer::Refused(error)),
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
        Ok((header, replies)) => FoundAnswer::Whole(header, replies),
        Err(message) => FoundAnswer::Refused(Error::input_at(Place::file(&path), message)),
    })
}

/// Checks a file's bytes as an answer to a question of this run.
pub(super) fn examine(
    run: &Run,
    asked: &QuestionFile,
    bytes: &[u8],
) -> std::result::Result<(AnswerHeader, Vec<Reply>), String> {
    let parsed = message::parse::<AnswerHeader>(bytes, FileKind::Answer)?;
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
    if header.run != asked.header.run {
        return Err("it is an answer of another run of this study".into());
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
    let replies: Vec<Reply> = decode(parsed.body)?;
    message::check(&replies, asked.questions(), asked.tells_sums())?;
    if header.failed != replies.iter().any(|r| matches!(r, Reply::Failure(_))) {
        return Err("its header and its content disagree on whether it failed".into());
    }
    Ok((header, replies))
}
