//! Runs between sites that only exchange files.

pub mod arguments;
pub mod folder;
pub mod inbox;
mod secret;
mod watch;

use crate::print;
use crate::shell::word;
use crate::text::{counted, grouped, list};
use arguments::{AnswerArguments, AskArguments, KeygenArguments, ShowArguments};
use consilience::draft;
use consilience::engine::Silent;
use consilience::run::{AnswerHeader, Received, Run, SiteEntry, Stop};
use consilience::site::{Asked, Key, LogEntry, Policy};
use consilience::study::StudyFile;
use consilience::{Error, Place, Result, Warning};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

fn io(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
    |source| Error::Io { path: path.to_path_buf(), source }
}

pub fn ask(arguments: &AskArguments) -> Result<ExitCode> {
    if arguments.sums && arguments.keys.is_none() {
        return Err(Error::input(
            "--sums needs the public keys of all sites: --keys FILE, with a line NAME = \"PUBLIC KEY\" for each",
        ));
    }
    let study = StudyFile::read_with(&arguments.study.study, &arguments.study.overrides())?;
    if arguments.keep_draws.is_some() {
        return Err(Error::input(
            "the draws of a site's chains stay with the site, so --keep-draws is for data that are here; draws given all data come with combine = \"exact\" and `consilience combine DIR --posterior FOLDER`",
        ));
    }
    let wishes = arguments.wishes.of(&study.study, None)?;
    let (sites, folder) = (sites(arguments)?, &arguments.run);
    let mut run = if arguments.sums {
        Run::for_sums(study, &sites, folder, random()?)?
    } else {
        Run::for_sites(study, &sites, folder, random()?)?
    };
    run.deliver(&wishes)?;
    match run.coordinate(&Stop, &Silent) {
        Err(Error::Waiting(waiting)) => {
            let folder = word(run.folder());
            print(&format!(
                "Round {} is asked of {}. Send each of them\n  {}\nA site answers with\n  consilience answer QUESTION --data ITS-DATA --site ITS-NAME{}\nand what comes back goes into\n  consilience combine {folder} ANSWER…\n",
                waiting.round,
                counted(waiting.shards, "site"),
                word(&waiting.question),
                if arguments.sums { " --key ITS-KEY --keys KEYS" } else { "" },
            ))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Err(error),
        Ok(_) => {
            print(&format!(
                "All is answered: consilience combine {} prints the result.\n",
                word(run.folder())
            ))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn sites(arguments: &AskArguments) -> Result<Vec<SiteEntry>> {
    let text = match arguments.sites.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).map_err(io(Path::new(file)))?,
        None => arguments.sites.replace(',', "\n"),
    };
    let names = text.lines().map(str::trim).filter(|name| !name.is_empty());
    let keys = arguments.keys.as_deref().map(read_keys).transpose()?;
    let entry = |name: &str| {
        let key = match &keys {
            None => None,
            Some(keys) => Some(keys.get(name).cloned().ok_or_else(|| {
                let message = format!("there is no key of the site `{name}`");
                Error::input(message).in_file(arguments.keys.as_deref().unwrap_or(Path::new("")))
            })?),
        };
        Ok(SiteEntry { name: name.to_string(), key })
    };
    names.map(entry).collect()
}

/// The sites' public keys by name.
fn read_keys(path: &Path) -> Result<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(path).map_err(io(path))?;
    toml::from_str(&text).map_err(|e| {
        let message = format!("a line NAME = \"PUBLIC KEY\" per site is needed: {e}");
        Error::input_at(Place::file(path), message)
    })
}

/// What a site answers with.
pub(crate) struct Desk<'a> {
    data: &'a [String],
    site: &'a str,
    policy: Option<&'a Path>,
    key: Option<&'a Path>,
    /// The public keys of all sites, as this one knows them.
    keys: Option<&'a Path>,
}

impl<'a> Desk<'a> {
    fn of(arguments: &'a AnswerArguments) -> Desk<'a> {
        Desk {
            data: &arguments.data,
            site: &arguments.site,
            policy: arguments.policy.as_deref(),
            key: arguments.key.as_deref(),
            keys: arguments.keys.as_deref(),
        }
    }

    /// The policy, what the log says, and the keys. Read for every question anew, so that a change counts at once.
    fn open(&self) -> Result<Opened> {
        let policy = match self.policy {
            Some(path) => Policy::read(path)?,
            None => Policy::default(),
        };
        let key = self.key.map(secret::read).transpose()?;
        let keys = self.keys.map(read_keys).transpose()?;
        let log = if policy.has_log() { read_log(&policy.log)? } else { Vec::new() };
        Ok(Opened { policy, log, key, keys })
    }

    /// A question as it came to this site.
    fn asked<'b>(&'b self, question: &'b Path, opened: &'b Opened) -> Asked<'b> {
        let Opened { policy, log, key, keys } = opened;
        let (data, site) = (self.data, self.site);
        Asked { question, data, site, policy, log, key: key.as_ref(), keys: keys.as_ref() }
    }

    /// Whether a question could be answered at all.
    fn check(&self) -> Result<()> {
        consilience::site::check_name(self.site)?;
        self.open().map(|_| ())
    }
}

/// What stands in the files that a site answers with.
struct Opened {
    policy: Policy,
    log: Vec<LogEntry>,
    key: Option<Key>,
    keys: Option<BTreeMap<String, String>>,
}

/// An answer file that was written.
pub(crate) struct Written {
    header: AnswerHeader,
    bytes: usize,
    signed: bool,
    warnings: Vec<Warning>,
}

/// Answers one question file under the policy, and writes it down in the log and the answer to the target.
pub(crate) fn answer_one(desk: &Desk, question: &Path, target: &Path) -> Result<Written> {
    let opened = desk.open()?;
    let mut answer = consilience::site::answer(&desk.asked(question, &opened))?;
    let Opened { policy, key, .. } = opened;
    // Written down before it is there to be sent: what has left is never missing from the log.
    if policy.has_log() {
        answer.entry.time = utc(SystemTime::now());
        append_log(&policy.log, &answer.entry)?;
    }
    draft::write(target, &answer.bytes)?;
    Ok(Written {
        header: answer.header,
        bytes: answer.bytes.len(),
        signed: key.is_some(),
        warnings: answer.warnings,
    })
}

pub fn answer(arguments: &AnswerArguments) -> Result<ExitCode> {
    let question = match (&arguments.watch, &arguments.question) {
        (Some(folder), _) => return watch::answer(arguments, folder),
        (None, _) if arguments.watching.any() => {
            return Err(Error::input("--every, --for, --once and --stay are for --watch DIR"));
        }
        (None, Some(question)) => question,
        (None, None) => return Err(Error::input("name a question file, or --watch a folder")),
    };
    if arguments.look {
        let desk = Desk::of(arguments);
        print(&consilience::site::look(&desk.asked(question, &desk.open()?))?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let stem = question.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let target = arguments
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{}-{stem}.answer", arguments.site)));
    let Written { header, bytes, signed, warnings } =
        answer_one(&Desk::of(arguments), question, &target)?;
    let mut out = format!(
        "{} is written: {} answered round {} ({} bytes{}).\n",
        target.display(),
        counted(header.rows as usize, "row"),
        header.round,
        grouped(bytes as f64),
        if signed { ", signed" } else { "" }
    );
    if !header.merged.is_empty() {
        out += &format!("Rare levels were merged in {}.\n", header.merged.join(", "));
    }
    out += &list(&warnings.iter().map(|w| (None, w)).collect::<Vec<_>>());
    out += &format!("\nWhat leaves with it: consilience show {}\n", word(&target));
    print(&out)?;
    Ok(ExitCode::SUCCESS)
}

fn read_log(path: &Path) -> Result<Vec<LogEntry>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io(path)(error)),
    };
    let entry = |(i, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|e| {
            let place = Place::file(path).line(i as u64 + 1);
            Error::input_at(place, format!("this is no line of the log ({e}); mend or move it"))
        })
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(entry).collect()
}

fn append_log(path: &Path, entry: &LogEntry) -> Result<()> {
    let line = serde_json::to_string(entry).expect("an entry can be written") + "\n";
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    let mut file = file.map_err(io(path))?;
    file.write_all(line.as_bytes()).and_then(|()| file.sync_all()).map_err(io(path))
}

/// A moment as `2026-11-15T22:41:07Z`.
fn utc(now: SystemTime) -> String {
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March, so that a leap day is the last of its year.
    let z = days + 719_468;
    let (era, day) = (z / 146_097, z % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + era * 400 + next;
    let (h, m, s) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{date:02}T{h:02}:{m:02}:{s:02}Z")
}

pub fn show(arguments: &ShowArguments) -> Result<ExitCode> {
    if arguments.json {
        let value = consilience::site::as_json(&arguments.file)?;
        print(&format!("{value}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&consilience::site::explain(&arguments.file)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Bytes that nobody can guess.
fn random() -> Result<[u8; 32]> {
    let mut random = [0; 32];
    getrandom::fill(&mut random)
        .map_err(|e| io(Path::new("the system's random numbers"))(std::io::Error::other(e)))?;
    Ok(random)
}

pub fn keygen(arguments: &KeygenArguments) -> Result<ExitCode> {
    let key = Key::new(random()?);
    let ending = |ending: &str| {
        let mut name = arguments.name.clone().into_os_string();
        name.push(ending);
        PathBuf::from(name)
    };
    let (secret, public) = (ending(".key"), ending(".pub"));
    write_new_secret(&secret, &(key.secret() + "\n"))?;
    draft::write(&public, key.public() + "\n")?;
    print(&format!(
        "{}  the secret key; it stays at the site\n{}  the public key, for the one who asks: {}\n",
        secret.display(),
        public.display(),
        key.public()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a file that only its owner may read, and that must not be there yet.
fn write_new_secret(path: &Path, text: &str) -> Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Error::input_at(Place::file(path), "this key is there already; name another")
        }
        _ => io(path)(error),
    })?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(io(path))
}

/// Leaves sites out and takes answer files into a run, saying what became of each. Returns whether one
/// was refused.
pub fn take_in(run: &mut Run, without: &[String], answers: &[PathBuf]) -> Result<bool> {
    run.leave_out(without)?;
    if run.rounds()? == 0 {
        // Questions are asked anew, before answers to them can be taken in.
        match run.coordinate(&Stop, &Silent) {
            Err(Error::Waiting(_)) | Ok(_) => {}
            Err(error) => return Err(error),
        }
    }
    if answers.is_empty() {
        return Ok(false);
    }
    let mut paths = Vec::new();
    for path in answers {
        if path.is_dir() {
            let entries = std::fs::read_dir(path).map_err(io(path))?;
            let files = entries.map(|entry| entry.map(|e| e.path()));
            let mut files = files.collect::<std::io::Result<Vec<_>>>().map_err(io(path))?;
            files.retain(|file| file.extension().is_some_and(|e| e == "answer"));
            files.sort();
            paths.extend(files);
        } else {
            paths.push(path.clone());
        }
    }
    let (mut new, mut known, mut old, mut refused) = (0, 0, 0, false);
    for (_, received) in run.receive(&paths)? {
        match received {
            Received::New(_) => new += 1,
            Received::Known(_) => known += 1,
            Received::Old(_) => old += 1,
            Received::Refused(error) => {
                refused = true;
                crate::shell::tell(&format!("refused: {error}"));
            }
        }
    }
    let old = if old > 0 { format!(", {old} not needed any more") } else { String::new() };
    crate::shell::tell(&format!("{} taken in, {known} known before{old}", counted(new, "answer")));
    Ok(refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn moments_have_dates() {
        let at = |seconds| utc(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(at(4_102_444_800), "2100-01-01T00:00:00Z");
    }
}
