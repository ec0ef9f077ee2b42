//! What a program reads it does not write over: a name that was mistyped must not cost a study or its data.

use consilience::draft::file_stem;
use consilience::study::{Overrides, StudyFile};
use consilience::{Error, Place, Result};
use std::path::{Path, PathBuf};

/// Files that are read, by their canonical paths.
#[derive(Debug, Default)]
pub struct Sources {
    files: Vec<PathBuf>,
    models: Vec<String>,
}

impl Sources {
    /// A study's file and its data. What is wrong with them is said where they are read.
    pub fn of_study(path: &Path, overrides: &Overrides) -> Sources {
        let study = StudyFile::read_with(path, overrides).ok();
        let data = study.as_ref().and_then(|file| file.files().ok()).unwrap_or_default();
        let models = study.iter().flat_map(|file| &file.study.models).map(|m| m.name.clone());
        Sources {
            models: models.collect(),
            ..Sources::of(data.iter().map(PathBuf::as_path).chain([path]))
        }
    }

    /// These files, as far as they are there.
    pub fn of<'a>(files: impl IntoIterator<Item = &'a Path>) -> Sources {
        let files = files.into_iter().filter_map(|file| file.canonicalize().ok()).collect();
        Sources { files, models: Vec::new() }
    }

    /// Refuses to write this file if it is one of them.
    pub fn spare(&self, out: &Path) -> Result<()> {
        let same = |there: PathBuf| self.files.contains(&there);
        if out.canonicalize().is_ok_and(same) {
            let why = "this file is read here, so it cannot be written here: name another for what comes out";
            return Err(Error::input_at(Place::file(out), why));
        }
        Ok(())
    }

    /// The same for files in a folder, if one is named.
    pub fn spare_in(&self, folder: Option<&PathBuf>, names: &[&str]) -> Result<()> {
        folder.map_or(Ok(()), |folder| {
            names.iter().try_for_each(|name| self.spare(&folder.join(name)))
        })
    }

    /// The same for draws of the study's models in a folder, a Parquet file per model, or per model and shard.
    pub fn spare_draws(&self, folder: Option<&PathBuf>) -> Result<()> {
        let Some(whole) = folder.and_then(|folder| folder.canonicalize().ok()) else {
            return Ok(());
        };
        let own = self.files.iter().filter(|file| file.parent() == Some(&whole));
        for name in own.filter_map(|file| file.file_name()?.to_str()) {
            let stem = name.strip_suffix(".parquet").unwrap_or("");
            let taken = |model: &String| {
                let model = file_stem(model);
                stem == model || stem.starts_with(&format!("{model}-shard-"))
            };
            if self.models.iter().any(taken) {
                self.spare(&whole.join(name))?;
            }
        }
        Ok(())
    }
}
