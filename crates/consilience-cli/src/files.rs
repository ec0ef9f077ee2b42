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

/// Writes a file under a temporary name, and gives the file its own once it is safely on disk.
pub fn write_atomically(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    write_with(path, |file| file.write_all(content.as_ref()))
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

/// Writes a file that only its owner may read, and that must not be there yet.
pub fn write_new_secret(path: &Path, text: &str) -> Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Error::input_at(Place::file(path), "this key is there already; name another")
        }
        _ => failed(path)(error),
    })?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed(path))
}
