//! The files that the user's paths and patterns name.

use crate::{Error, Place, Result};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

/// How a file is written, by its ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileFormat {
    Text(TextFile),
    Parquet,
}

/// What a text file's ending says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextFile {
    /// `.tsv`: the delimiter is a tab unless another is given.
    pub tabs: bool,
    /// `.gz`.
    pub gzip: bool,
}

/// The format that a file's ending stands for, in capitals or not.
pub(super) fn format_of(file: &Path) -> Result<FileFormat> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let (stem, gzip) = match name.strip_suffix(".gz") {
        Some(stem) => (stem, true),
        None => (name.as_str(), false),
    };
    match stem.rsplit_once('.').map(|(_, ending)| ending) {
        Some("csv" | "txt") => Ok(FileFormat::Text(TextFile { tabs: false, gzip })),
        Some("tsv") => Ok(FileFormat::Text(TextFile { tabs: true, gzip })),
        Some("parquet" | "pq") if !gzip => Ok(FileFormat::Parquet),
        Some(ending @ ("xlsx" | "xls" | "xlsm" | "ods")) => {
            let message = format!(
                "workbooks (.{ending}) are not read; save the sheet as CSV or Parquet, and name that file"
            );
            Err(Error::input_at(Place::file(file), message))
        }
        _ => {
            let message = "the ending is none of .csv .tsv .txt (also with .gz) .parquet .pq; rename the file, or convert it to one of these";
            Err(Error::input_at(Place::file(file), message))
        }
    }
}

/// The system's word on a file that cannot be read.
pub(super) fn unreadable(file: &Path, error: &io::Error) -> Error {
    let message = match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_string(),
        _ => format!("the file cannot be read: {error}"),
    };
    Error::input_at(Place::file(file), message)
}

/// The files that paths and globs name, in the order of the patterns; the files of one glob in
/// byte order.
///
/// Relative patterns are relative to `base`. A glob knows `*`, `?`, `[…]` and `**`; a file whose
/// name looks like a glob is found by its name. A pattern that names nothing, a directory, a file
/// of an unknown ending, and a file that is named twice are errors.
pub fn find_files(base: &Path, patterns: &[String]) -> Result<Vec<PathBuf>> {
    if patterns.is_empty() {
        return Err(Error::input("no data files are named; name at least one"));
    }
    let mut files = Vec::new();
    let mut seen: HashMap<PathBuf, &str> = HashMap::new();
    for pattern in patterns {
        for file in matches(base, pattern)? {
            let add = |e| within(e, pattern, &file, base);
            if file.is_dir() {
                let message = "this is a directory; name the files in it, with a pattern such as `*.csv` behind its name";
                return Err(add(Error::input_at(Place::file(&file), message)));
            }
            format_of(&file).map_err(add)?;
            // Canonical only for the comparison: messages should show what the user wrote.
            let identity = file.canonicalize().map_err(|e| add(unreadable(&file, &e)))?;
            if let Some(earlier) = seen.insert(identity, pattern) {
                let message = if earlier == pattern {
                    format!("`{pattern}` names this file twice; name it once")
                } else {
                    format!("both `{earlier}` and `{pattern}` name this file; name it once")
                };
                return Err(Error::input_at(Place::file(&file), message));
            }
            files.push(file);
        }
    }
    Ok(files)
}

/// Says which glob brought a file in, where that is not plain from the file.
fn within(error: Error, pattern: &str, file: &Path, base: &Path) -> Error {
    match error {
        Error::Input { place, message } if file != base.join(pattern) => {
            let message =
                format!("{message} (or narrow the pattern `{pattern}`, which matches it)");
            Error::Input { place, message }
        }
        other => other,
    }
}

/// What one pattern names.
fn matches(base: &Path, pattern: &str) -> Result<Vec<PathBuf>> {
    if pattern.is_empty() {
        return Err(Error::input("the name of a data file is empty; give a path or a pattern"));
    }
    let literal = base.join(pattern);
    let missing = match literal.symlink_metadata() {
        Ok(_) => return Ok(vec![literal]),
        Err(error) => error,
    };
    if !pattern.contains(['*', '?', '[']) {
        return Err(match missing.kind() {
            io::ErrorKind::NotFound => {
                let message = format!(
                    "there is no such file; check `{pattern}` (relative paths start from {})",
                    start(base)
                );
                Error::input_at(Place::file(&literal), message)
            }
            _ => unreadable(&literal, &missing),
        });
    }
    let in_pattern = |message: String| Error::input(format!("the pattern `{pattern}` {message}"));
    // An absolute pattern takes the base's place, as it does in `join`.
    let full = if Path::new(pattern).is_absolute() {
        PathBuf::from(pattern)
    } else {
        let base = base.to_str().ok_or_else(|| {
            in_pattern(format!("cannot be used in {}: not UTF-8", base.display()))
        })?;
        Path::new(&glob::Pattern::escape(base)).join(pattern)
    };
    let options = glob::MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        // As in a shell, `*` leaves hidden files alone.
        require_literal_leading_dot: true,
    };
    let found = glob::glob_with(&full.to_string_lossy(), options)
        .map_err(|e| in_pattern(format!("is not a glob: {e}; correct it")))?;
    let mut found: Vec<PathBuf> = found
        .map(|file| file.map_err(|e| unreadable(e.path(), e.error())))
        // The crate takes a leading `./` off.
        .map(|file| file.map(|f| if full.starts_with(".") { Path::new(".").join(f) } else { f }))
        .collect::<Result<_>>()?;
    if found.is_empty() {
        return Err(in_pattern(format!(
            "matches no file; check it (relative patterns start from {})",
            start(base)
        )));
    }
    found.sort_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    Ok(found)
}

fn start(base: &Path) -> String {
    if base.as_os_str().is_empty() { "here".into() } else { format!("`{}`", base.display()) }
}
