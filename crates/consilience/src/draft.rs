//! Files that are there whole or not at all, and the folders they stand in.

use crate::halt::Halt;
use crate::hex::hex;
use crate::{Error, Place, Result};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A file under a temporary name, which goes away unless it is published.
pub(crate) struct Draft {
    pub file: File,
    path: PathBuf,
    published: bool,
}

impl Draft {
    /// Next to where the file is to be, since only within a file system can a file be renamed.
    pub fn new(path: &Path) -> io::Result<Draft> {
        let name = path
            .file_name()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file's name"))?;
        let mut number = 0;
        loop {
            let mut draft = std::ffi::OsString::from(".");
            draft.push(name);
            draft.push(format!(".{number}.tmp"));
            let draft = path.with_file_name(draft);
            // New, so that two who write at once have a file each.
            match OpenOptions::new().write(true).create_new(true).open(&draft) {
                // Locked as long as it is written: what is not is nobody's.
                Ok(file) if claimed(&file, &draft) => {
                    return Ok(Draft { file, path: draft, published: false });
                }
                Ok(_) if number < 1000 => number += 1,
                Ok(_) => return Err(io::ErrorKind::ResourceBusy.into()),
                // Somebody else's, or left by a run that was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => {
                    number += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Where the file is until it has its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name once it is safely on disk. An older file of that name is replaced.
    pub fn publish(mut self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.path, path)?;
        self.published = true;
        // The name is to outlast a power cut too, where folders can be synced at all.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.published {
            // The error that brought us here is the one to report.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Takes the lock of a new draft; false if somebody who takes it for left behind was faster.
fn claimed(file: &File, path: &Path) -> bool {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => false,
        // Where there are no locks, drafts are known to be old by their time alone.
        Err(TryLockError::Error(_)) => true,
        Ok(()) => is_still(file, path),
    }
}

/// Whether the name still stands for this file.
#[cfg(unix)]
fn is_still(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let same =
        |a: std::fs::Metadata, b: std::fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    file.metadata().is_ok_and(|own| std::fs::metadata(path).is_ok_and(|there| same(own, there)))
}

#[cfg(not(unix))]
fn is_still(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Removes the drafts in a folder that programs left behind when they were killed: those that nobody has written to
/// since then, and that nobody holds. Returns how many.
pub fn sweep(folder: &Path, since: SystemTime) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| is_draft(&entry.file_name())).filter(|e| swept(&e.path(), since)).count()
}

/// `.NAME.3.tmp`.
fn is_draft(name: &std::ffi::OsStr) -> bool {
    let number = || {
        let (name, number) =
            name.to_str()?.strip_prefix('.')?.strip_suffix(".tmp")?.rsplit_once('.')?;
        Some(!name.is_empty() && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    };
    number() == Some(true)
}

/// Removes a draft, if it is nobody's. What goes wrong is no matter: it stays.
fn swept(path: &Path, since: SystemTime) -> bool {
    let Ok(file) = OpenOptions::new().write(true).open(path) else { return false };
    let old = |m: std::fs::Metadata| m.is_file() && m.modified().is_ok_and(|at| at < since);
    if !file.metadata().is_ok_and(old) {
        return false;
    }
    // Held until it is gone, so that nobody takes it for new.
    let free = match file.try_lock() {
        Err(TryLockError::WouldBlock) => false,
        Ok(()) | Err(TryLockError::Error(_)) => is_still(&file, path),
    };
    free && std::fs::remove_file(path).is_ok()
}

/// Writes a whole file in this way.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    write_with(path, |file| file.write_all(content.as_ref()))
}

/// Writes a file that only its owner may read.
pub fn write_secret(path: &Path, text: &str) -> Result<()> {
    write_with(path, |file| {
        // Before anything is in it.
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        file.write_all(text.as_bytes())
    })
}

/// The same for a file that is too large to be made in memory first.
pub fn write_with(path: &Path, content: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
    let write = || {
        let mut draft = Draft::new(path)?;
        content(&mut draft.file)?;
        draft.publish(path)
    };
    write().map_err(|error| Error::Io { path: path.to_path_buf(), source: cause(error) })
}

/// The system's word on what went wrong, where a library has wrapped it up.
fn cause(error: io::Error) -> io::Error {
    let mut inner = error.get_ref().map(|e| e as &(dyn std::error::Error + 'static));
    while let Some(within) = inner {
        let code = within.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        if let Some(code) = code {
            return io::Error::from_raw_os_error(code);
        }
        inner = within.source();
    }
    error
}

/// Makes a folder, and those above it.
pub fn make_folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|error| match error.kind() {
        // Not the system's fault, and the user can mend it.
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => Error::input_at(
            Place::file(path),
            "this is a file, or goes through one; name a folder to write to",
        ),
        _ => Error::Io { path: path.to_path_buf(), source: error },
    })
}

/// A model's name as the beginning of a file's; where it is not fit for that, a number that belongs to it
/// keeps two such names apart.
pub fn file_stem(model: &str) -> String {
    let fit = |c: char| if c.is_alphanumeric() { c } else { '-' };
    let slug: String = model.chars().take(60).map(fit).collect();
    let mark = if slug == model.replace(' ', "-") {
        String::new()
    } else {
        format!("-{:08x}", crate::math::fingerprint(model) as u32)
    };
    format!("{slug}{mark}")
}

/// The hash of a file's bytes, which need not fit into memory.
pub fn file_hash(path: &Path) -> Result<String> {
    file_hash_until(path, None)
}

/// The same, unless it is called off.
pub(crate) fn file_hash_until(path: &Path, halt: Option<&Halt>) -> Result<String> {
    let read = || {
        let (mut file, mut hasher) = (File::open(path)?, Sha256::new());
        let mut bytes = vec![0; 1 << 20];
        loop {
            let called_off = halt.is_some_and(Halt::is_called);
            match file.read(&mut bytes)? {
                _ if called_off => return Ok(None),
                0 => return Ok(Some(hasher.finalize())),
                read => hasher.update(&bytes[..read]),
            }
        }
    };
    let hash = read().map_err(|source| Error::Io { path: path.to_path_buf(), source })?;
    hash.map(|hash| hex(&hash)).ok_or(Error::Stopped)
}
