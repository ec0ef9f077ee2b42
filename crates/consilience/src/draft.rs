//! Files that are there whole or not at all.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

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
                Ok(file) => return Ok(Draft { file, path: draft, published: false }),
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
        if let Some(folder) = path.parent()
            && let Ok(folder) = File::open(folder)
        {
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

/// Writes a whole file in this way.
pub(crate) fn write(path: &Path, content: &[u8]) -> crate::Result<()> {
    let failed = |source| crate::Error::Io { path: path.to_path_buf(), source };
    let mut draft = Draft::new(path).map_err(failed)?;
    draft.file.write_all(content).map_err(failed)?;
    draft.publish(path).map_err(failed)
}
