//! A folder that sites and a coordinator share: what is in it, and the notice that a run has ended.
//!
//! Files appear in it at any time, and not all at once: a copy over a network is there for a while with half of
//! its bytes. So nothing is believed of a file but what its check sum says, and what is damaged may still become whole.

use consilience::run::Run;
use consilience::{Error, Place, Result, draft};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// By which it is seen that a file has changed.
pub type Stamp = (u64, Option<SystemTime>);

/// An error unless this is a folder.
pub fn check(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let message = "there is no such folder to watch; make it, or name another";
    Err(Error::input_at(Place::file(folder), message))
}

/// The files with this ending, in the order of their names. Those with a dot before their names are still written.
pub fn files(folder: &Path, ending: &str) -> Result<Vec<(PathBuf, Stamp)>> {
    let failed = |source| Error::Io { path: folder.to_path_buf(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let hidden = path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"."));
        if hidden || path.extension().is_none_or(|e| e != ending) {
            continue;
        }
        // One that has gone meanwhile is no news.
        let Ok(metadata) = std::fs::metadata(&path) else { continue };
        if metadata.is_file() {
            found.push((path, (metadata.len(), metadata.modified().ok())));
        }
    }
    found.sort();
    Ok(found)
}

/// Puts a copy of a file into a folder, unless it is there.
pub fn put(file: &Path, folder: &Path) -> Result<PathBuf> {
    let target = folder.join(file.file_name().unwrap_or_default());
    let bytes =
        std::fs::read(file).map_err(|source| Error::Io { path: file.to_path_buf(), source })?;
    if std::fs::read(&target).is_ok_and(|there| there == bytes) {
        return Ok(target);
    }
    draft::write(&target, bytes)?;
    Ok(target)
}

/// How a run has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// The result is there.
    Finished,
    /// There will be none until somebody mends something.
    Failed,
}

/// Which run: the hashes of its study and of the list of its sites.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunName {
    /// The study's hash.
    pub study: String,
    /// The hash of the sites' names.
    pub partition: String,
}

impl RunName {
    /// Of this run.
    pub fn of(run: &Run) -> RunName {
        let manifest = run.manifest();
        let (study, partition) = (&manifest.study_hash, &manifest.partition_hash);
        RunName { study: study.clone(), partition: partition.clone() }
    }

    fn path(&self, folder: &Path) -> PathBuf {
        let short = |hash: &str| hash.chars().take(16).collect::<String>();
        folder.join(format!("{}-{}.ended", short(&self.study), short(&self.partition)))
    }
}

/// What a coordinator says to sites that watch: no further questions will come. It is not signed; whoever can write to
/// the folder can keep questions away from sites in any case.
#[derive(Debug, Serialize, Deserialize)]
struct Notice {
    #[serde(flatten)]
    run: RunName,
    ended: Ended,
}

/// Says in a folder that the run has ended.
pub fn announce(run: &RunName, ended: Ended, folder: &Path) -> Result<()> {
    let notice = Notice { run: run.clone(), ended };
    let text = serde_json::to_string(&notice).expect("a notice can be written") + "\n";
    draft::write(&run.path(folder), text)
}

/// Takes back what an earlier run of the same study said: questions come again.
pub fn withdraw(run: &RunName, folder: &Path) -> Result<()> {
    let path = run.path(folder);
    match std::fs::remove_file(&path) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(Error::Io { path, source }),
        _ => Ok(()),
    }
}

/// The notices in a folder; what is none is passed over.
pub fn ended(folder: &Path) -> Result<Vec<(RunName, Ended)>> {
    const LARGEST: u64 = 4096;
    let mut found = Vec::new();
    for (path, (length, _)) in files(folder, "ended")? {
        let text = if length <= LARGEST { std::fs::read(&path).ok() } else { None };
        let notice = text.and_then(|text| serde_json::from_slice::<Notice>(&text).ok());
        found.extend(notice.map(|notice| (notice.run, notice.ended)));
    }
    Ok(found)
}
