//! A site's secret key, and who can read it.

use consilience::Result;
use consilience::site::Key;
use std::path::Path;

/// Reads a site's secret key, and warns of a file that others can read.
pub fn read(path: &Path) -> Result<Key> {
    let key = Key::read(path)?;
    if let Some(warning) = warning(path) {
        crate::shell::tell(&warning);
    }
    Ok(key)
}

/// What to say of a key that not only its owner can read.
#[cfg(unix)]
fn warning(path: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).ok()?.permissions().mode();
    let others = match (mode & 0o070, mode & 0o007) {
        (0, 0) => return None,
        (_, 0) => "its group",
        _ => "everybody on this machine",
    };
    let word = crate::shell::word(path);
    Some(format!(
        "warning: {}: {others} may use this secret key, and whoever has read it can answer in this site's name; `chmod 600 {word}` keeps it to its owner, and a key that others may know is better replaced (`consilience keygen`)",
        path.display()
    ))
}

#[cfg(not(unix))]
fn warning(_: &Path) -> Option<String> {
    None
}
