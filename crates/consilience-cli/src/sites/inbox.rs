//! Where a coordinator waits: for workers, or for sites' answers in folders that it shares with them.

use super::folder::{self, Ended, RunName, Stamp};
use crate::duration::shown;
use crate::progress::Bar;
use consilience::run::{AnswerFile, Courier, OpenRound, Received, Run};
use consilience::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How to wait.
#[derive(Debug)]
pub struct Wait {
    /// Folders in which answers arrive.
    pub folders: Vec<PathBuf>,
    /// Those of them into which questions and the run's end are written too.
    pub shared: Vec<PathBuf>,
    /// How long to sleep between two looks.
    pub every: Duration,
    /// How long a round may take.
    pub timeout: Option<Duration>,
    /// Whether to say which rounds are asked.
    pub quiet: bool,
}

/// A courier who waits.
pub struct Inbox<'a> {
    wait: Wait,
    bar: &'a Bar,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The round that is open, its question, and since when.
    open: Option<(u64, PathBuf, Instant)>,
    /// What became of answer files, as they looked then.
    seen: BTreeMap<PathBuf, (Stamp, Seen)>,
    /// What was said of refused files and folders.
    said: BTreeSet<String>,
}

/// What became of an answer file.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    /// It is taken in, or is none of this run's.
    Done,
    /// Not of use now; it may be in a later round.
    Later,
    /// Refused, or still on its way, for this reason.
    Refused(String),
}

impl<'a> Inbox<'a> {
    /// Waits in this way; what is worth knowing is said above the bar.
    pub fn new(wait: Wait, bar: &'a Bar) -> Result<Inbox<'a>> {
        wait.folders.iter().try_for_each(|folder| folder::check(folder))?;
        Ok(Inbox { wait, bar, state: Mutex::default() })
    }

    /// Tells those who watch that the run has ended.
    pub fn announce(&self, run: &Run, ended: Ended) -> Result<()> {
        let name = RunName::of(run);
        self.wait.shared.iter().try_for_each(|folder| folder::announce(&name, ended, folder))
    }

    /// Says something once.
    fn say(&self, state: &mut State, text: String) {
        if !state.said.contains(&text) {
            self.bar.note(&text);
            state.said.insert(text);
        }
    }

    /// A round begins: sites are asked, and what was of no use before may be now.
    fn begin(&self, open: &OpenRound, state: &mut State) -> Result<()> {
        let same = |(number, question, _): &(u64, PathBuf, Instant)| {
            *number == open.number && question == open.question
        };
        if state.open.as_ref().is_some_and(same) {
            return Ok(());
        }
        state.open = Some((open.number, open.question.to_path_buf(), Instant::now()));
        state.seen.retain(|_, (_, seen)| *seen == Seen::Done);
        for folder in &self.wait.shared {
            folder::withdraw(&RunName::of(open.run), folder)?;
            folder::put(open.question, folder)?;
        }
        if !self.wait.shared.is_empty() && !self.wait.quiet {
            self.bar.note(&format!(
                "round {} ({}) is asked of {}",
                open.number,
                open.kind,
                open.waiting().missing.join(", ")
            ));
        }
        Ok(())
    }

    /// Takes in what has come since the last look. Returns whether it was anything.
    fn look(&self, run: &Run, state: &mut State) -> Result<bool> {
        let mut news = false;
        for folder in &self.wait.folders {
            let files = match folder::files(folder, "answer") {
                Ok(files) => files,
                // A folder of a network may be away for a while.
                Err(error) => {
                    self.say(state, format!("{error}; it is tried again"));
                    continue;
                }
            };
            for (path, stamp) in files {
                let before = state.seen.remove(&path);
                let (seen, taken) = match before {
                    Some((then, seen)) if then == stamp && !matches!(seen, Seen::Refused(_)) => {
                        (seen, false)
                    }
                    before => self.take(run, &path, stamp, before, state)?,
                };
                news |= taken;
                state.seen.insert(path, (stamp, seen));
            }
        }
        Ok(news)
    }

    fn take(
        &self,
        run: &Run,
        path: &Path,
        stamp: Stamp,
        before: Option<(Stamp, Seen)>,
        state: &mut State,
    ) -> Result<(Seen, bool)> {
        // Runs share folders: another's answers are no matter of ours.
        if let Ok(file) = AnswerFile::read(path) {
            let RunName { study, partition } = RunName::of(run);
            if file.header.study != study || file.header.partition != partition {
                return Ok((Seen::Done, false));
            }
            // Of an earlier run of the same study, which may have gone another way.
            if !is_asked(run, &file.header.question)? {
                return Ok((Seen::Later, false));
            }
        }
        let received = run.receive(&[path.to_path_buf()])?;
        Ok(match received.into_iter().map(|(_, received)| received).next() {
            Some(Received::New(_)) => (Seen::Done, true),
            Some(Received::Known(_)) => (Seen::Done, false),
            Some(Received::Old(_)) | None => (Seen::Later, false),
            Some(Received::Refused(error)) => {
                let reason = error.to_string();
                // A file may be on its way. Only if it stays as it is there is something to say.
                if before.is_some_and(|(then, _)| then == stamp) {
                    self.say(state, format!("refused: {reason}"));
                }
                (Seen::Refused(reason), false)
            }
        })
    }

    /// Ends the wait, with all that is known.
    fn give_up(&self, open: &OpenRound, state: &mut State) -> Error {
        let reasons: Vec<String> = state
            .seen
            .values()
            .filter_map(|(_, seen)| match seen {
                Seen::Refused(reason) => Some(format!("refused: {reason}")),
                _ => None,
            })
            .collect();
        reasons.into_iter().for_each(|text| self.say(state, text));
        if let Some(timeout) = self.wait.timeout {
            self.bar.note(&format!("no more is waited for: {} (--timeout)", shown(timeout)));
        }
        Error::Waiting(Box::new(open.waiting()))
    }
}

/// Whether the run asks this question.
fn is_asked(run: &Run, question: &str) -> Result<bool> {
    let name = format!("-{question}.question");
    let files = folder::files(&run.folder().join("questions"), "question")?;
    Ok(files.iter().any(|(path, _)| path.to_string_lossy().ends_with(&name)))
}

impl Courier for Inbox<'_> {
    fn fetch(&self, open: &OpenRound) -> Result<()> {
        let mut state = self.state.lock().expect("nobody panics with it");
        for refused in &open.refused {
            self.say(&mut state, format!("refused: {refused}"));
        }
        self.begin(open, &mut state)?;
        if self.look(open.run, &mut state)? {
            return Ok(());
        }
        // Nothing can arrive where nobody looks.
        if open.run.manifest().has_sites() && self.wait.folders.is_empty() {
            return Err(Error::Waiting(Box::new(open.waiting())));
        }
        let begun = state.open.as_ref().map_or_else(Instant::now, |(.., begun)| *begun);
        let mut pause = self.wait.every;
        if let Some(timeout) = self.wait.timeout {
            let left = timeout.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(self.give_up(open, &mut state));
            }
            pause = pause.min(left);
        }
        drop(state);
        std::thread::sleep(pause);
        Ok(())
    }
}
