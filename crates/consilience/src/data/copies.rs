//! Converted copies: a large text file as a Parquet file in a cache folder, which is read many times
//! faster, and block by block if need be.
//!
//! A copy is known by its name alone:
//!
//! ```text
//! PATH-CONTENT-OPTIONS-SUM.parquet    hashes of the source's path and of its bytes, of what is read
//!                                     of it and how, and of the copy's own bytes
//! ```
//!
//! So a copy is used if and only if the source still has the bytes it was made of and the copy those
//! with which it was written. A copy of the same source with other bytes goes away when a new one is
//! made.

use super::copy_writer::{COMMENTS, Writing};
use super::csv::{self, PieceSizes};
use super::files::{TextFile, unreadable};
use super::inputs::non_finite;
use super::parquet;
use super::part::FilePart;
use super::read::{Event, Reader, changed, select};
use super::spelling::Spelling;
use super::table::ColumnKind;
use crate::draft::{self, Draft};
use crate::halt::{Halt, go_on};
use crate::{Error, Result};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// TextFile files from this size on are converted. A smaller one is parsed in a tenth of a second or so,
/// about what it takes to look whether a copy is still good.
pub(super) const LARGE: u64 = 16 << 20;

/// Changes whenever copies are written differently or text is read differently.
const VERSION: u32 = 3;

/// What a file's bytes are hashed in, each piece by one thread.
const PIECE: u64 = 4 << 20;

/// A converted copy.
pub(super) struct Copy {
    pub path: PathBuf,
    /// The comment lines after the source's header.
    pub comments: u64,
    /// The name of the column that holds each row's line.
    pub lines: String,
    /// What keeps the file there, if it is to be gone at the end.
    _passing: Option<Passing>,
}

/// A file that is gone when nobody holds this any more.
struct Passing {
    /// It has no name, where it can be opened without one: nothing of it is left whatever happens to the program.
    _file: File,
    _name: Option<tempfile::TempPath>,
}

impl Copy {
    /// All rows of these columns.
    pub fn decode(&self, columns: &[&str], halt: Option<&Halt>) -> Result<FilePart> {
        let how = (&Spelling::default(), halt);
        let part = parquet::decode(&self.path, &|names| self.select(columns, names), true, how)?;
        Ok(FilePart { comments: self.comments, ..part })
    }

    /// Where these columns stand in the copy, and that of the lines behind them.
    pub fn select(&self, columns: &[&str], names: &[String]) -> Result<Vec<usize>> {
        let columns: Vec<&str> = columns.iter().copied().chain([self.lines.as_str()]).collect();
        select(&self.path, &columns, false, names)
    }
}

/// The copy of some columns of a text file, those marked true as text whatever they hold; it is made
/// if there is none. No copy: none is wanted or possible, and the file itself is to be read.
pub(super) fn copy(
    file: &Path,
    text: TextFile,
    reader: &Reader,
    columns: &[(&str, bool)],
    strict: bool,
) -> Result<Option<Copy>> {
    let Some(folder) = reader.cache else { return Ok(None) };
    let stamp = stamp(file)?;
    if stamp.0 < reader.large {
        return Ok(None);
    }
    let source = Original { file, text, reader, columns, strict };
    let content = hash(file, reader.halt)?.map_err(|error| unreadable(file, &error))?;
    let made_of = format!("{}-{content}-", source.path());
    let wanted = format!("{made_of}{}", source.options());
    if let Some(path) = find(folder, &wanted, reader.halt)? {
        (reader.watch)(&Event::Copy(file));
        return source.copy(path).map(Some);
    }
    (reader.watch)(&Event::Converting(file));
    let path = match source.convert(folder, &wanted) {
        Ok(path) => path,
        // The folder's fault: the data can be read all the same.
        Err(Error::Io { source, .. }) => {
            let reason = format!("{} cannot be written to: {source}", folder.display());
            (reader.watch)(&Event::NoCopy(file, &reason));
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let Some(path) = path else { return Ok(None) };
    if self::stamp(file)? != stamp {
        let _ = std::fs::remove_file(path);
        return Err(changed(file));
    }
    forget(folder, &source.path(), &made_of);
    source.copy(path).map(Some)
}

/// Whether the rows of a text file may take more memory than is spent without a look at what is left.
pub(super) fn may_be_large(file: &Path, text: TextFile) -> Result<bool> {
    // More than deflate can compress anything.
    const MOST_COMPRESSED: u64 = 1100;
    let factor = if text.gzip { MOST_COMPRESSED } else { 1 };
    Ok(stamp(file)?.0.saturating_mul(factor) > 1 << 20)
}

/// A copy for as long as a program runs, in this folder, of a text file whose rows are not to be in memory all at
/// once. None as in [`copy`]; a value that is not finite is an error at once if the file is `alone`.
pub(super) fn passing_copy(
    file: &Path,
    text: TextFile,
    reader: &Reader,
    columns: &[(&str, bool)],
    (strict, alone): (bool, bool),
    folder: &Path,
) -> Result<Option<Copy>> {
    let failed = |source| super::scratch::failed(folder, source);
    let stamp = stamp(file)?;
    let source = Original { file, text, reader, columns, strict };
    let (mut out, path, passing) = passing_file(folder).map_err(failed)?;
    let begin = &mut || {
        out.set_len(0)?;
        out.rewind()?;
        out.try_clone()
    };
    match source.write_whole(begin, PieceSizes::small(), &failed)? {
        Some(error) if alone => return Err(error),
        Some(_) => return Ok(None),
        None if self::stamp(file)? != stamp => return Err(changed(file)),
        None => {}
    }
    Ok(Some(Copy { _passing: Some(passing), ..source.copy(path)? }))
}

/// A new file, and where it can be opened again.
fn passing_file(folder: &Path) -> io::Result<(File, PathBuf, Passing)> {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        let file = tempfile::tempfile_in(folder)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        if path.exists() {
            return Ok((file.try_clone()?, path, Passing { _file: file, _name: None }));
        }
    }
    let named = tempfile::Builder::new().prefix(".consilience-").tempfile_in(folder)?;
    let (file, name) = named.into_parts();
    let path = name.to_path_buf();
    Ok((file.try_clone()?, path, Passing { _file: file, _name: Some(name) }))
}

/// A file's size and time of change.
fn stamp(file: &Path) -> Result<(u64, Option<std::time::SystemTime>)> {
    let metadata = std::fs::metadata(file).map_err(|error| unreadable(file, &error))?;
    Ok((metadata.len(), metadata.modified().ok()))
}

fn hex(bytes: &[u8]) -> String {
    crate::hex::hex(&bytes[..16])
}

/// The hash of a file's bytes, unless it is called off.
fn hash(file: &Path, halt: Option<&Halt>) -> Result<io::Result<String>> {
    let hash = hash_pieces(file, halt);
    // What was passed over because of it has no hash.
    go_on(halt).map(|()| hash)
}

/// The hash of the hashes of a file's pieces, which all threads work on; of no file, if it is called off.
fn hash_pieces(file: &Path, halt: Option<&Halt>) -> io::Result<String> {
    let length = File::open(file)?.metadata()?.len();
    let piece = |number: u64| {
        if halt.is_some_and(Halt::is_called) {
            return Ok(Default::default());
        }
        let mut input = File::open(file)?;
        input.seek(SeekFrom::Start(number * PIECE))?;
        let mut bytes = Vec::with_capacity(PIECE as usize);
        input.take(PIECE).read_to_end(&mut bytes)?;
        Ok(Sha256::digest(&bytes))
    };
    let pieces: Vec<io::Result<_>> =
        (0..length.div_ceil(PIECE)).into_par_iter().map(piece).collect();
    let mut all = Sha256::new();
    all.update(length.to_le_bytes());
    for piece in pieces {
        all.update(piece?);
    }
    Ok(hex(&all.finalize()))
}

/// The files of a folder whose names begin with this; none if it cannot be read.
fn beginning(folder: &Path, name: &str) -> Vec<PathBuf> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(|n| n.starts_with(name)))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// The copy of this name that is whole. Others of the name are damaged and go away.
fn find(folder: &Path, name: &str, halt: Option<&Halt>) -> Result<Option<PathBuf>> {
    for path in beginning(folder, name) {
        let sum = path.file_stem().and_then(|stem| stem.to_str()?.rsplit('-').next());
        if hash(&path, halt)?.is_ok_and(|hash| Some(hash.as_str()) == sum) {
            return Ok(Some(path));
        }
        let _ = std::fs::remove_file(path);
    }
    Ok(None)
}

/// Removes what programs that were killed left of copies: drafts that nobody holds, a day older than this one. Where
/// there are no locks, nobody takes a day for a copy.
fn clear_away(folder: &Path, own: &Draft) {
    const DAY: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);
    let now = own.file.metadata().and_then(|metadata| metadata.modified());
    if let Some(since) = now.ok().and_then(|now| now.checked_sub(DAY)) {
        draft::sweep(folder, since);
    }
}

/// Removes the copies of a source that are not made of these bytes.
fn forget(folder: &Path, path: &str, made_of: &str) {
    for old in beginning(folder, path) {
        let name = old.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !name.starts_with(made_of) {
            let _ = std::fs::remove_file(old);
        }
    }
}

/// What is to be copied.
struct Original<'a> {
    file: &'a Path,
    text: TextFile,
    reader: &'a Reader<'a>,
    columns: &'a [(&'a str, bool)],
    strict: bool,
}

impl Original<'_> {
    /// Which file it is.
    fn path(&self) -> String {
        let path = self.file.canonicalize().unwrap_or_else(|_| self.file.to_path_buf());
        hex(&Sha256::digest(path.as_os_str().as_encoded_bytes()))[..16].to_string()
    }

    /// What is read of it, and how.
    fn options(&self) -> String {
        let TextFile { tabs, gzip } = self.text;
        let what = (VERSION, tabs, gzip, self.strict, self.reader.format, self.columns);
        let text = serde_json::to_string(&what).expect("options can be written");
        hex(&Sha256::digest(text.as_bytes()))
    }

    /// The name of the column of lines: no other has it.
    fn lines(&self) -> String {
        let mut name = "line".to_string();
        while self.columns.iter().any(|(column, _)| *column == name) {
            name.push('_');
        }
        name
    }

    /// What is known of the copy that is here.
    fn copy(&self, path: PathBuf) -> Result<Copy> {
        let comments = parquet::note(&path, COMMENTS)?.and_then(|text| text.parse().ok());
        Ok(Copy { path, comments: comments.unwrap_or(0), lines: self.lines(), _passing: None })
    }

    /// Writes the copy; none if a value is an error unless another file makes the column text.
    fn convert(&self, folder: &Path, name: &str) -> Result<Option<PathBuf>> {
        let place = folder.join(format!("{name}.parquet"));
        let failed = |source| Error::Io { path: place.clone(), source };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let mut draft = None;
        let begin = &mut || {
            let new = draft.insert(Draft::new(&place)?);
            clear_away(folder, new);
            new.file.try_clone()
        };
        if self.write_whole(begin, PieceSizes::default(), &failed)?.is_some() {
            return Ok(None);
        }
        let Some(draft) = draft else { return Err(changed(self.file)) };
        // Who may not read the source may not read its copy.
        let permissions = std::fs::metadata(self.file).map_err(failed)?.permissions();
        draft.file.set_permissions(permissions).map_err(failed)?;
        draft.file.sync_all().map_err(failed)?;
        let sum = hash(draft.path(), self.reader.halt)?.map_err(failed)?;
        let path = folder.join(format!("{name}-{sum}.parquet"));
        draft.publish(&path).map_err(failed)?;
        Ok(Some(path))
    }

    /// Writes all rows to a file that `begin` makes, empty each time: twice, if the first rows do not show what the
    /// columns are. None, or an error about a value that is one unless another file makes the column text.
    fn write_whole(
        &self,
        begin: &mut dyn FnMut() -> io::Result<File>,
        sizes: PieceSizes,
        failed: &(dyn Fn(io::Error) -> Error + Sync),
    ) -> Result<Option<Error>> {
        let mut kinds = vec![ColumnKind::Unknown; self.columns.len()];
        for attempt in 0..2 {
            let out = begin().map_err(failed)?;
            match self.write(out, kinds, attempt > 0, sizes, failed)? {
                CopyOutcome::Odd(error) => return Ok(Some(error)),
                CopyOutcome::Otherwise(found) => kinds = found,
                CopyOutcome::Whole => return Ok(None),
            }
        }
        Err(changed(self.file))
    }

    /// Writes the rows, on the assumption that the first of them show what the columns are, beside what is known of
    /// that; if they do not, all rows will have shown it.
    fn write(
        &self,
        out: File,
        kinds: Vec<ColumnKind>,
        known: bool,
        sizes: PieceSizes,
        failed: &(dyn Fn(io::Error) -> Error + Sync),
    ) -> Result<CopyOutcome> {
        let mut writing = Writing::new(out, kinds, self.lines(), known);
        let as_text: Vec<bool> = self
            .columns
            .iter()
            .zip(&writing.kinds)
            .map(|((_, as_text), kind)| *as_text || *kind == ColumnKind::Text)
            .collect();
        let columns: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        let select = |names: &[String]| select(self.file, &columns, self.strict, names);
        let how = (self.reader.format, self.reader.halt);
        let mut take = |part| writing.add(&columns, part).map_err(failed);
        csv::decode_in_chunks(self.file, self.text, how, &select, &as_text, sizes, &mut take)?;
        let odd = writing.odd.iter().zip(&writing.kinds).zip(&columns);
        let odd = odd.filter(|((_, kind), _)| **kind != ColumnKind::Text);
        let odd = odd.filter_map(|((odd, _), name)| odd.as_ref().map(|odd| (odd, name)));
        if let Some((odd, name)) = odd.min_by_key(|(odd, _)| odd.line) {
            return Ok(CopyOutcome::Odd(non_finite(self.file, name, odd)));
        }
        let is_whole = writing.finish(&columns).map_err(failed)?;
        Ok(if is_whole { CopyOutcome::Whole } else { CopyOutcome::Otherwise(writing.kinds) })
    }
}

/// What came of writing a copy.
enum CopyOutcome {
    /// A value is this error unless another file makes the column text.
    Odd(Error),
    /// The columns turned out to be these, and not what they were written as.
    Otherwise(Vec<ColumnKind>),
    Whole,
}
