//! Locks: who is at work where. They are a courtesy: files are written whole and hold what they must hold whoever
//! writes them, so that a second writer only does the work twice.

use super::directory::Run;
use crate::{Error, Result};
use serde::Serialize;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Held by the one who coordinates a run, or works on a shard; given back when it is dropped, and
/// by the system when its holder dies.
#[derive(Debug)]
pub struct Lock {
    file: Option<File>,
    holder: String,
}

impl Lock {
    /// The lock in this file, in which the holder's name is left; `None` if somebody else has it. Where a file system has
    /// no locks everybody gets it.
    pub(super) fn take(path: &Path, holder: &str) -> Result<Option<Lock>> {
        let failed = |source| Error::Io { path: path.to_path_buf(), source };
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
        let file = file.map_err(failed)?;
        let lock = |file| Lock { file, holder: holder.to_string() };
        match file.try_lock() {
            Ok(()) => {
                let lock = lock(Some(file));
                lock.sign();
                Ok(Some(lock))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => match error.kind() {
                std::io::ErrorKind::Unsupported => Ok(Some(lock(None))),
                _ => Err(failed(error)),
            },
        }
    }

    /// Leaves a sign of life: the time of the file. If that fails, others only see less.
    pub(super) fn sign(&self) {
        let Some(mut file) = self.file.as_ref() else { return };
        let _ = file.set_len(0).and_then(|()| file.rewind());
        let _ = file.write_all(format!("{}\n", self.holder).as_bytes());
    }
}

/// A shard that a worker holds at this moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Held {
    /// The shard's name.
    pub shard: String,
    /// The worker, as it calls itself; empty if it does not.
    pub by: String,
    /// The worker's last sign of life, in seconds since 1970: when it took the shard, or its last answer.
    pub last_sign: Option<u64>,
}

/// When the holder of a lock last gave a sign of life.
pub(super) fn last_sign(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|m| m.modified()).ok()
}

impl Run {
    /// The lock of those who work on a shard.
    pub(super) fn shard_lock(&self, shard: usize) -> PathBuf {
        self.folder().join("work").join(format!("{}.lock", self.manifest().shards[shard].name))
    }

    /// Whoever works on a shard, if somebody does.
    pub(super) fn holder(&self, shard: usize) -> Option<Held> {
        let path = self.shard_lock(shard);
        let file = File::open(&path).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {}
            _ => return None,
        }
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let seconds = |at: SystemTime| at.duration_since(UNIX_EPOCH).ok().map(|d| d.as_secs());
        Some(Held {
            shard: self.manifest().shards[shard].name.clone(),
            by: crate::error::plain(text.trim()),
            last_sign: last_sign(&path).and_then(seconds),
        })
    }

    /// Removes what programs that were killed left half written before this moment; see
    /// [`draft::sweep`](crate::draft::sweep). Returns how many files.
    pub fn tidy(&self, since: SystemTime) -> usize {
        let below = |folder: PathBuf| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path())
        };
        let folder = self.folder().to_path_buf();
        let answers = below(folder.join("answers"));
        let all = below(folder.clone()).chain(answers).chain([folder]);
        all.map(|folder| crate::draft::sweep(&folder, since)).sum()
    }
}
