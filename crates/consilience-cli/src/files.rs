//! Files that are there whole or not at all.

use consilience::{Error, Place, Result};
use std::io::{ErrorKind, Write};
use std::path::Path;

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
    |source| Error::Io { path: path.to_path_buf(), source }
}

/// Makes a folder, and those above it.
pub fn make_folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|error| match error.kind() {
        // Not the system's fault, and the user can mend it.
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => Error::input_at(
            Place::file(path),
            "this is a file, or goes through one; name a folder to write to",
        ),
        _ => failed(path)(error),
    })
}

/// Writes a text under a temporary name, and gives the file its own once it is safely on disk.
pub fn write_atomically(path: &Path, text: &str) -> Result<()> {
    write_with(path, |file| file.write_all(text.as_bytes()))
}

/// The same for a file that is too large to be made in memory first.
pub fn write_with(
    path: &Path,
    write: impl FnOnce(&mut std::fs::File) -> std::io::Result<()>,
) -> Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || -> std::io::Result<()> {
        let mut builder = tempfile::Builder::new();
        // Temporary files are the owner's alone by default; results are as other files are.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.prefix(".consilience-").tempfile_in(folder)?;
        write(file.as_file_mut())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(failed(path))
}
