//! Runs whose shards are sites: begun without data, fed with answer files from elsewhere.

use super::directory::Run;
use super::exchange::{QuestionFile, answer_path, examine};
use super::key::Key;
use super::manifest::{Coordinator, SchemaColumn, ShardEntry};
use super::message::{self, AnswerHeader, FileKind, hex, sha256, unhex};
use crate::compare::PartitionReport;
use crate::plan::{Gathered, Outline};
use crate::study::{Combine, SelectBy, Study, StudyFile};
use crate::{Error, Place, Result};
use ed25519_dalek::{SigningKey, VerifyingKey};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// A site that takes part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteEntry {
    /// Its name.
    pub name: String,
    /// The public key that its answers must be signed with, as 64 hexadecimal digits.
    pub key: Option<String>,
}

/// What became of a file that was to be an answer.
#[derive(Debug)]
pub enum Received {
    /// It is kept: the answer of this site.
    New(String),
    /// The site had sent the same before.
    Known(String),
    /// It is of a site that is left out, or answers what was asked only before one was: not needed.
    Old(String),
    /// It is not taken, for this reason.
    Refused(Error),
}

impl Run {
    /// A run of sites. If it is there already, for the same study and sites, nothing is written. Of these random bytes
    /// the key is made that questions are signed with, and the run's own name.
    pub fn for_sites(
        study: impl Into<StudyFile>,
        sites: &[SiteEntry],
        folder: &Path,
        random: [u8; 32],
    ) -> Result<Run> {
        Run::of_sites(study.into(), sites, folder, random, false)
    }

    /// The same, but of log densities only sums over all sites are told, and no site's own: they come masked. There
    /// must be three sites or more, each with a key. Gaussian models do without statistics, which are no such sums.
    pub fn for_sums(
        study: impl Into<StudyFile>,
        sites: &[SiteEntry],
        folder: &Path,
        random: [u8; 32],
    ) -> Result<Run> {
        let mut study = study.into();
        summable(&study.study)?;
        study.study.evidence.statistics = false;
        let entries = sites.iter().map(|site| (site.name.as_str(), site.key.as_deref()));
        super::masks::check_sites(entries).map_err(Error::input)?;
        Run::of_sites(study, sites, folder, random, true)
    }

    fn of_sites(
        study: StudyFile,
        sites: &[SiteEntry],
        folder: &Path,
        random: [u8; 32],
        sums: bool,
    ) -> Result<Run> {
        if sites.is_empty() {
            return Err(Error::input("no sites are named; at least one is needed"));
        }
        check_sites(sites)?;
        if let Some(run) = Run::existing(&study.study, folder)? {
            let same = run.manifest().shards.iter().map(|s| (&s.name, &s.key));
            if !same.eq(sites.iter().map(|s| (&s.name, &s.key))) {
                let message = "this run has other sites, or other keys; name a new folder";
                return Err(Error::input_at(Place::file(folder), message));
            }
            if run.manifest().tells_sums() != sums {
                let message = "this run was begun with --sums and is asked for without, or the other way round; name a new folder";
                return Err(Error::input_at(Place::file(folder), message));
            }
            return Ok(run);
        }
        let outline = Outline::of_named_columns(study)?;
        let names: String = sites.iter().map(|s| format!("{}\n", s.name)).collect();
        let columns = outline.columns();
        let gathered = Gathered {
            partition: PartitionReport {
                shards: sites.len(),
                rows: 0,
                dropped: 0,
                by: "site".into(),
                seed: 0,
                hash: hex(&sha256(&[names.as_bytes()])[..8]),
                names: Some(sites.iter().map(|s| s.name.clone()).collect()),
            },
            files: Vec::new(),
            names: columns.clone(),
            shards: Vec::new(),
            warnings: outline.notes.clone(),
            outline,
        };
        let schema = columns.into_iter().map(|name| SchemaColumn { name, kind: None }).collect();
        let shards = sites.iter().map(|site| ShardEntry {
            name: site.name.clone(),
            rows: None,
            key: site.key.as_ref().map(|key| key.to_ascii_lowercase()),
        });
        let key = Key::new(random);
        let coordinator =
            Coordinator { run: hex(&key.secret_for("run", "")[..16]), key: key.public(), sums };
        let mut manifest = Run::described(&gathered, schema, shards.collect(), Vec::new());
        manifest.coordinator = Some(coordinator);
        // More sites than it can name are refused before anything is written.
        manifest.text(folder)?;
        crate::draft::write_secret(&Run::coordinator_path(folder), &(key.secret() + "\n"))?;
        Run::begin(folder, manifest)
    }

    /// Leaves sites out from now on. What the others have answered counts as far as the questions stay
    /// the same, which depend on all that take part.
    pub fn leave_out(&mut self, names: &[String]) -> Result<()> {
        let mut manifest = self.manifest().clone();
        for name in names {
            if !manifest.has_sites() || !manifest.shards.iter().any(|s| s.name == *name) {
                let known = crate::error::suggestion(
                    name,
                    manifest.shards.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(),
                );
                let message = format!("there is no site `{name}` to leave out{known}");
                return Err(Error::input_at(Place::file(self.folder()), message));
            }
            if !manifest.without.contains(name) {
                manifest.without.push(name.clone());
            }
        }
        if manifest.without == self.manifest().without {
            return Ok(());
        }
        if manifest.active().is_empty() {
            return Err(Error::input("no site would be left"));
        }
        if manifest.tells_sums() {
            manifest.check_sums().map_err(|m| Error::input_at(Place::file(self.folder()), m))?;
        }
        manifest.extras.check(&manifest.study, manifest.active().len())?;
        self.ask_anew(manifest)
    }

    /// Takes answer files into the run, each on its own: what is wrong with one is no matter of the
    /// others.
    pub fn receive(&self, paths: &[PathBuf]) -> Result<Vec<(PathBuf, Received)>> {
        let asked = self.questions()?;
        let mut received = Vec::new();
        for path in paths {
            let outcome = match self.receive_one(path, &asked) {
                Ok(outcome) => outcome,
                Err(error @ (Error::Input { .. } | Error::Io { .. })) => Received::Refused(error),
                Err(error) => return Err(error),
            };
            received.push((path.clone(), outcome));
        }
        Ok(received)
    }

    fn receive_one(&self, path: &Path, asked: &[QuestionFile]) -> Result<Received> {
        let wrong = |message: String| Error::input_at(Place::file(path), message);
        let limit = asked.iter().map(QuestionFile::largest_answer).max().unwrap_or(1 << 20);
        let bytes = message::load(path, limit)?;
        let header =
            message::parse::<AnswerHeader>(&bytes, FileKind::Answer).map_err(wrong)?.header;
        if header.study != self.manifest().study_hash {
            return Err(wrong("it is an answer of another study".into()));
        }
        let Some(asked) = asked.iter().find(|a| a.header.question == header.question) else {
            // The hash is part of a path, and a header may say anything.
            let hash = header.question.as_str();
            if hash.bytes().all(|b| b.is_ascii_hexdigit())
                && hash.len() == 32
                && self.folder().join("answers").join(hash).is_dir()
            {
                return Ok(Received::Old(header.site.unwrap_or_default()));
            }
            return Err(wrong("it answers a question that this run did not ask".into()));
        };
        let (header, _) = examine(self, asked, &bytes).map_err(wrong)?;
        let name = self.manifest().shards[header.shard].name.clone();
        if self.manifest().without.contains(&name) {
            return Ok(Received::Old(name));
        }
        let target = answer_path(self, &header.question, header.shard);
        if let Ok(there) = std::fs::read(&target) {
            if there == bytes {
                return Ok(Received::Known(name));
            }
            // What could not be computed then may be computed now; nothing else takes an answer's place.
            let keeps = |first: &AnswerHeader| !first.failed || header.failed;
            if examine(self, asked, &there).is_ok_and(|(first, _)| keeps(&first)) {
                return Err(wrong(format!(
                    "the site `{name}` has answered this question before, and not the same; the first answer is kept ({})",
                    target.display()
                )));
            }
        }
        crate::draft::write(&target, bytes)?;
        Ok(Received::New(name))
    }
}

/// Whether sites can be told from each other: by their names, and by keys that only they have.
fn check_sites(sites: &[SiteEntry]) -> Result<()> {
    let (mut names, mut keys) = (HashSet::new(), HashMap::new());
    for SiteEntry { name, key } in sites {
        check_name(name)?;
        if !names.insert(name.to_ascii_lowercase()) {
            return Err(Error::input(format!("the site `{name}` is named twice")));
        }
        let Some(key) = key else { continue };
        let wrong = |why: &str| Err(Error::input(format!("the key of `{name}` {why}")));
        let Some(bytes) = unhex::<32>(key) else {
            return wrong("is not 64 hexadecimal digits");
        };
        // Whoever knows no secret can sign with a weak one, and that of the secret of zeros is known to all.
        let known = SigningKey::from_bytes(&[0; 32]).verifying_key();
        match VerifyingKey::from_bytes(&bytes) {
            Ok(key) if !key.is_weak() && key != known => {}
            _ => {
                return wrong(
                    "is none that can be trusted: it is no public key, or one with which anybody can sign; `consilience keygen` makes one",
                );
            }
        }
        if let Some(other) = keys.insert(bytes, name) {
            return wrong(&format!(
                "is that of `{other}` too, so that each could answer for the other; every site needs a key of its own"
            ));
        }
    }
    Ok(())
}

/// Whether sums over sites are all that a study needs; the error says what to write in its place.
fn summable(study: &Study) -> Result<()> {
    let wrong = |key: &str, message: String| Err(Error::input_at(Place::key(key), message));
    let combine = study.evidence.combine;
    if combine != Combine::Exact {
        return wrong(
            "evidence.combine",
            format!(
                "--sums is for combine = \"exact\"; \"{combine}\" needs every site's own answers"
            ),
        );
    }
    match study.select.as_ref().map(|select| select.method) {
        Some(method @ (SelectBy::ReversibleJump | SelectBy::JumpShares)) => wrong(
            "select.method",
            format!(
                "--sums is for method = \"search\" or \"enumerate\"; \"{method}\" needs chains on every site's own rows"
            ),
        ),
        _ => Ok(()),
    }
}

/// The level that rare ones become.
pub const OTHER: &str = "other";

/// A site's name: it is part of file names.
pub fn check_name(name: &str) -> Result<()> {
    let fit = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.len() <= 40 && name.chars().all(fit) {
        return Ok(());
    }
    let name = crate::error::clip(name);
    Err(Error::input(format!(
        "`{name}` cannot be a site's name; use up to 40 letters, digits, `-` and `_`"
    )))
}
