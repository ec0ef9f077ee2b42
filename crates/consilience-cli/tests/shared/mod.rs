//! What several test programs share.

use std::path::Path;

/// The files of a folder, by name.
pub fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.map(|p| (name(&p), std::fs::read(&p).unwrap())).collect();
    files.sort();
    files
}
