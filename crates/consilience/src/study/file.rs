//! Reads study files.

use super::lines::{DEEPEST, walk};
use super::{Lines, Overrides, Study, keys};
use crate::data::read::find_files;
use crate::{Error, Place, Result};
use serde::Deserialize;
use std::io::Read;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

/// A study of more bytes than this is no study.
const LARGEST: usize = 10 << 20;

/// A study file as it was read: the study, and where it was written. Whatever takes one takes a plain
/// [`Study`] too, by [`From`].
#[derive(Debug, Clone, PartialEq)]
pub struct StudyFile {
    /// What it says.
    pub study: Study,
    /// The folder that relative paths of data start from: the file's, or empty for the working
    /// directory. It is no pattern, whatever its name.
    pub folder: PathBuf,
    /// What stands on which line.
    pub lines: Lines,
    /// The folder that `~` stands for at the beginning of a path of data, if anybody has said it.
    pub home: Option<PathBuf>,
}

impl StudyFile {
    /// The study in this file.
    pub fn read(path: impl AsRef<Path>) -> Result<StudyFile> {
        StudyFile::read_with(path, &Overrides::default())
    }

    /// The same, with these values in the place of the study's.
    pub fn read_with(path: impl AsRef<Path>, overrides: &Overrides) -> Result<StudyFile> {
        let path = path.as_ref();
        let read = load(path).and_then(|text| StudyFile::parse_with(&text, path, overrides));
        read.map_err(|error| suspect_data(error, path))
    }

    /// The study in this text; `file` is for errors, and for the folder that paths start from.
    pub fn parse(text: &str, file: &Path) -> Result<StudyFile> {
        StudyFile::parse_with(text, file, &Overrides::default())
    }

    /// The same, with these values in the place of the study's.
    pub fn parse_with(text: &str, file: &Path, overrides: &Overrides) -> Result<StudyFile> {
        let (study, lines) = StudyText::new(text, file).study()?;
        let folder = file.parent().map(Path::to_path_buf).unwrap_or_default();
        let mut file = StudyFile { study, folder, lines, home: None };
        file.apply(overrides)?;
        Ok(file)
    }

    /// The paths and patterns of the data files, of which there must be some.
    pub fn paths(&self) -> Result<&[String]> {
        if self.study.data.path.is_empty() {
            let message = match self.lines.line("data.path") {
                Some(_) => format!("`data.path` is an empty list; it must be {}", keys::PATH),
                None => "`data.path` is missing; add path = \"data.csv\" under [data]".to_string(),
            };
            return Err(self.lines.locate(Error::input_at(Place::key("data.path"), message)));
        }
        Ok(&self.study.data.path)
    }

    /// The data files that are there.
    pub fn files(&self) -> Result<Vec<PathBuf>> {
        let paths =
            self.paths()?.iter().map(|path| self.at_home(path)).collect::<Result<Vec<_>>>()?;
        find_files(&self.folder, &paths)
    }

    /// A path with the home folder in the place of `~`.
    fn at_home(&self, path: &str) -> Result<String> {
        let rest = match path.strip_prefix('~') {
            Some(rest) if !self.folder.join(path).exists() => rest,
            _ => return Ok(path.to_string()),
        };
        let wrong = |message: String| {
            Err(self.lines.locate(Error::input_at(Place::key("data.path"), message)))
        };
        if !(rest.is_empty() || rest.starts_with('/')) {
            return wrong(format!(
                "`{path}` begins with another user's home folder, which is not looked up; write the path out"
            ));
        }
        match self.home.as_deref().map(|home| home.to_str()) {
            // The folder is no pattern, whatever its name.
            Some(Some(home)) if path.contains(['*', '?', '[']) => {
                Ok(format!("{}{rest}", glob::Pattern::escape(home)))
            }
            Some(Some(home)) => Ok(format!("{home}{rest}")),
            _ => wrong(format!(
                "`{path}` begins with a home folder that is not known here; write the path out"
            )),
        }
    }
}

/// The text of a study file, and its name.
struct StudyText<'a> {
    text: &'a str,
    file: &'a Path,
    /// Where the lines begin.
    starts: Vec<usize>,
}

impl<'a> StudyText<'a> {
    fn new(text: &'a str, file: &'a Path) -> StudyText<'a> {
        let ends = memchr::memchr_iter(b'\n', text.as_bytes());
        let starts = std::iter::once(0).chain(ends.map(|end| end + 1)).collect();
        StudyText { text, file, starts }
    }

    /// What it says, by types alone: overrides come before whatever else must hold.
    fn study(&self) -> Result<(Study, Lines)> {
        let root = self.parse()?;
        if let Some((start, message)) = keys::unknown(root.get_ref()) {
            return Err(self.error(start, message));
        }
        let mut lines = Lines::of(self.file);
        let mut values = Vec::new();
        for (name, value) in root.get_ref().iter() {
            walk(name.get_ref().to_string(), value, DEEPEST, &mut |key, value| {
                lines.insert(key, self.line(value.span().start));
                values.push((key.to_string(), value));
            });
        }
        match Study::deserialize(Deserializer::from(root.clone())) {
            Ok(study) if study.models.is_empty() && lines.line("model").is_some() => {
                let message = format!("`model` is an empty list; add {}", keys::EXAMPLE);
                Err(lines.locate(Error::input_at(Place::key("model"), message)))
            }
            Ok(study) => Ok((study, lines)),
            Err(error) => Err(self.explain(&values, &error)),
        }
    }

    /// An error of the reader about a value: serde knows its span, and so its key.
    fn explain(&self, values: &[(String, &Spanned<DeValue>)], error: &toml::de::Error) -> Error {
        let (span, message) = (error.span().unwrap_or_default(), error.message());
        match values.iter().find(|(_, value)| value.span() == span) {
            Some((key, value)) => {
                self.error(span.start, keys::explain(key, value.get_ref(), message))
            }
            None => self.error(span.start, message.to_string()),
        }
    }

    /// Reads the text as TOML. Nesting is bounded by the parser, so nothing deep comes back.
    fn parse(&self) -> Result<Spanned<DeTable<'_>>> {
        if self.text.len() > LARGEST {
            return Err(too_large(self.file));
        }
        DeTable::parse(self.text).map_err(|error| {
            let what = error.message();
            let what = what.strip_suffix(", expected nothing").unwrap_or(what);
            let Some(span) = error.span() else {
                let message = format!("this is not valid TOML: {what}");
                return Error::input_at(Place::file(self.file), message);
            };
            let before = self.text.get(..span.start).unwrap_or(self.text);
            let line = before.rsplit('\n').next().unwrap_or(before);
            let column = line.trim_start_matches('\u{feff}').chars().count() + 1;
            self.error(span.start, format!("at column {column}: this is not valid TOML: {what}"))
        })
    }

    fn line(&self, offset: usize) -> u64 {
        self.starts.partition_point(|start| *start <= offset) as u64
    }

    fn error(&self, offset: usize, message: String) -> Error {
        let file = Lines::of(self.file).place("");
        Error::input_at(file.line(self.line(offset)), message)
    }
}

/// The error for a file that cannot be a study.
fn too_large(file: &Path) -> Error {
    let message = format!(
        "this file is larger than {} MiB, so it is not a study; is it the data? They are named under [data] path",
        LARGEST >> 20
    );
    Error::input_at(Place::file(file), message)
}

/// The text of a study file.
fn load(path: &Path) -> Result<String> {
    let wrong = |message: &str| Error::input_at(Place::file(path), message);
    let io = |source| Error::Io { path: path.to_path_buf(), source };
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(wrong("there is no such file; name a study file (TOML)"));
        }
        Err(error) => return Err(io(error)),
    };
    if file.metadata().map_err(io)?.is_dir() {
        return Err(wrong("this is a folder; name the study file (TOML) in it"));
    }
    let mut bytes = Vec::new();
    // One byte more than allowed is enough to know, also where a size is not (a pipe).
    file.take(LARGEST as u64 + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() > LARGEST {
        return Err(too_large(path));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        let message = "this is not UTF-8 text; a study is a TOML file in UTF-8";
        Error::input_at(Place::file(path).line(line as u64), message)
    })
}

/// The same error; where the file is called as data are, with a word on that.
fn suspect_data(error: Error, path: &Path) -> Error {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    match error {
        Error::Input { place, message }
            if ["csv", "tsv", "gz", "parquet", "pq"].contains(&ending.as_str()) =>
        {
            let message = format!(
                "{message} (is this the data? They are named in a study file, under [data] path)"
            );
            Error::Input { place, message }
        }
        other => other,
    }
}
