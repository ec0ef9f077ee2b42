//! A site that answers by itself: every question that appears in a folder, under its policy.

use super::arguments::AnswerArguments;
use super::folder::{self, Ended, RunName, Stamp};
use super::{Desk, answer_one};
use crate::duration::shown;
use crate::print;
use crate::shell::tell;
use crate::text::{counted, grouped};
use consilience::run::{AnswerFile, QuestionFile};
use consilience::{Error, Result, draft};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long to sleep at most before a look at whether Ctrl-C was pressed.
const NAP: Duration = Duration::from_millis(50);

/// How long to sleep between two looks into the folder, unless somebody says it.
const EVERY: Duration = Duration::from_secs(1);

/// How a question file looked, and what was said of it.
#[derive(Debug)]
struct Damaged {
    stamp: Stamp,
    told: bool,
}

/// A site at a folder.
struct Watcher<'a> {
    desk: Desk<'a>,
    folder: &'a Path,
    out: &'a Path,
    /// Whether this is the only look.
    once: bool,
    /// Question files that were dealt with, as they looked then.
    read: BTreeMap<PathBuf, Stamp>,
    /// Question files that are not whole, or not yet.
    damaged: BTreeMap<PathBuf, Damaged>,
    /// The hashes of questions that were answered or refused: a copy under another name is not another question.
    settled: BTreeSet<String>,
    /// The runs that ask this site.
    runs: BTreeSet<RunName>,
    /// What was said of errors that may pass.
    said: BTreeSet<String>,
    answered: usize,
    refused: usize,
    failed: usize,
}

/// Why it ends.
enum End {
    /// Every run that asked has ended; whether one has failed.
    Ended { failed: bool },
    /// It was told to look once.
    Once,
    /// So much time is over.
    Over(Duration),
    /// Ctrl-C.
    Interrupted,
}

/// Answers what appears in a folder until the run has ended, time is over or somebody ends it.
pub fn answer(arguments: &AnswerArguments, folder: &Path) -> Result<ExitCode> {
    let desk = Desk::of(arguments);
    // What cannot work should be known now, and not when a question comes.
    desk.check()?;
    folder::check(folder)?;
    let out = arguments.out.as_deref().unwrap_or(folder);
    draft::make_folder(out)?;
    let stop = stop_on_interrupt();
    let begun = Instant::now();
    let mut watcher = Watcher {
        desk,
        folder,
        out,
        once: arguments.watching.once,
        read: BTreeMap::new(),
        damaged: BTreeMap::new(),
        settled: BTreeSet::new(),
        runs: BTreeSet::new(),
        said: BTreeSet::new(),
        answered: 0,
        refused: 0,
        failed: 0,
    };
    if !watcher.once {
        tell(&format!("{} watches {}; Ctrl-C ends it", arguments.site, folder.display()));
    }
    let end = loop {
        let ended = match watcher.look(&stop) {
            Ok(ended) => ended,
            // A folder of a network may be away for a while.
            Err(error @ Error::Io { .. }) if !watcher.once => {
                watcher.complain(format!("{error}; it is tried again"));
                None
            }
            Err(error) => return Err(error),
        };
        if stop.load(Ordering::Relaxed) {
            break End::Interrupted;
        }
        if let Some(failed) = ended
            && !arguments.watching.stay
        {
            break End::Ended { failed };
        }
        if watcher.once {
            break End::Once;
        }
        if let Some(longest) = arguments.watching.longest
            && begun.elapsed() >= longest
        {
            break End::Over(longest);
        }
        let mut until = Instant::now() + arguments.watching.every.unwrap_or(EVERY);
        if let Some(longest) = arguments.watching.longest {
            until = until.min(begun + longest);
        }
        while Instant::now() < until && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(NAP.min(until.saturating_duration_since(Instant::now())));
        }
    };
    watcher.finish(&end)
}

/// A flag that Ctrl-C raises. Pressed again it ends the program at once: files are there whole or not at all.
fn stop_on_interrupt() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    // Fails only if somebody else has a handler, and there is nobody else.
    let _ = ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(crate::FAILURE));
        }
    });
    stop
}

impl Watcher<'_> {
    /// Says something once on stderr.
    fn complain(&mut self, text: String) {
        if !self.said.contains(&text) {
            tell(&text);
            self.said.insert(text);
        }
    }

    /// Deals with what is in the folder. Returns whether one has failed once all runs that asked have ended.
    fn look(&mut self, stop: &AtomicBool) -> Result<Option<bool>> {
        let ended: BTreeMap<RunName, Ended> = folder::ended(self.folder)?.into_iter().collect();
        for (path, stamp) in folder::files(self.folder, "question")? {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if self.read.get(&path) == Some(&stamp) {
                continue;
            }
            if self.question(&path, stamp, &ended)? {
                self.damaged.remove(&path);
                self.read.insert(path, stamp);
            }
        }
        let states: Option<Vec<Ended>> = self.runs.iter().map(|r| ended.get(r).copied()).collect();
        Ok(states.filter(|s| !s.is_empty()).map(|s| s.contains(&Ended::Failed)))
    }

    /// Deals with a question file. Returns whether it needs no further look.
    fn question(
        &mut self,
        path: &Path,
        stamp: Stamp,
        ended: &BTreeMap<RunName, Ended>,
    ) -> Result<bool> {
        let file = match QuestionFile::read(path) {
            Ok(file) => file,
            Err(error) if error.is_input() => {
                self.is_damaged(path, stamp, &error);
                return Ok(false);
            }
            Err(error) => {
                self.complain(format!("{error}; it is tried again"));
                return Ok(false);
            }
        };
        let header = &file.header;
        let site = self.desk.site;
        if !file.is_for(site) {
            self.complain(format!("{}: passed over; it is not for {site}", path.display()));
            return Ok(true);
        }
        let run = RunName { study: header.study.clone(), partition: header.partition.clone() };
        self.runs.insert(run.clone());
        // Its run may begin again, so that it is looked at again.
        if ended.contains_key(&run) {
            return Ok(false);
        }
        if self.settled.contains(&header.question) {
            return Ok(true);
        }
        let what = format!("round {} ({})", header.round, asks(&header.asks));
        let target =
            self.out.join(format!("{site}-{:04}-{}.answer", header.round, header.question));
        // Told before we were ended, or by somebody else.
        let there = AnswerFile::read(&target).ok().map(|answer| answer.header);
        if there.is_some_and(|h| h.question == header.question && h.site.as_deref() == Some(site)) {
            print(&format!("{what}: answered before, {}\n", target.display()))?;
            self.settled.insert(header.question.clone());
            return Ok(true);
        }
        match answer_one(&self.desk, path, &target) {
            Ok(written) => {
                self.answered += 1;
                let mut more = String::new();
                if !written.header.merged.is_empty() {
                    more +=
                        &format!("; rare levels merged in {}", written.header.merged.join(", "));
                }
                for warning in &written.warnings {
                    more += &format!("; [{}] {}", warning.code, warning.message);
                }
                print(&format!(
                    "{what}: {} answered, {} bytes{}, {}{more}\n",
                    counted(written.header.rows as usize, "row"),
                    grouped(written.bytes as f64),
                    if written.signed { ", signed" } else { "" },
                    target.display()
                ))?;
            }
            // Of this machine, and it may pass.
            Err(error @ Error::Io { .. }) => {
                self.complain(format!("{what}: {error}; it is tried again"));
                if self.once {
                    self.failed += 1;
                }
                return Ok(false);
            }
            Err(error) if error.is_input() => {
                self.refused += 1;
                tell(&format!("{what}: refused: {error}"));
            }
            Err(error) => {
                self.failed += 1;
                tell(&format!("{what}: failed: {error}"));
            }
        }
        self.settled.insert(header.question.clone());
        Ok(true)
    }

    /// A file that is not whole may be on its way: something is said when it stays as it is.
    fn is_damaged(&mut self, path: &Path, stamp: Stamp, error: &Error) {
        let before = self.damaged.get(path);
        let told = before.is_some_and(|b| b.told);
        let tell_now = !told && (self.once || before.is_some_and(|b| b.stamp == stamp));
        if tell_now {
            tell(&format!("{error}; it is tried again when it changes"));
        }
        self.damaged.insert(path.to_path_buf(), Damaged { stamp, told: told || tell_now });
    }

    /// Says what was done, and with what code to end.
    fn finish(&self, end: &End) -> Result<ExitCode> {
        let why = match end {
            End::Ended { failed: false } => "the run is finished".to_string(),
            End::Ended { failed: true } => {
                "the run has failed at the coordinator, who knows why".to_string()
            }
            End::Once => "looked once (--once)".to_string(),
            End::Over(longest) => format!("ended after {} (--for)", shown(*longest)),
            End::Interrupted => "ended by Ctrl-C".to_string(),
        };
        let mut text = format!("{why}: {} answered", counted(self.answered, "question"));
        for (count, what) in
            [(self.refused, "refused"), (self.failed, "failed"), (self.damaged.len(), "damaged")]
        {
            if count > 0 {
                text += &format!(", {count} {what}");
            }
        }
        print(&(text + "\n"))?;
        let code = match end {
            _ if self.failed > 0 => crate::FAILURE,
            End::Ended { failed: true } => crate::FAILURE,
            _ if self.refused > 0 => crate::WRONG_INPUT,
            End::Once if !self.damaged.is_empty() => crate::WRONG_INPUT,
            End::Over(_) | End::Interrupted => crate::WAITING,
            End::Ended { failed: false } | End::Once => return Ok(ExitCode::SUCCESS),
        };
        Ok(ExitCode::from(code))
    }
}

/// What a round asks, each kind once.
fn asks(kinds: &[String]) -> String {
    let kinds: BTreeSet<&str> = kinds.iter().map(String::as_str).collect();
    kinds.into_iter().collect::<Vec<_>>().join(", ")
}
