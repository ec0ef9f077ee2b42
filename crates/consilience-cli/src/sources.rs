//! What a program reads it does not write over: a name that was mistyped must not cost a study or its data.

use consilience::draft::file_stem;
use consilience::study::StudyFile;
use consilience::{Error, Place, Result};
use std::path::{Path, PathBuf};

/// Files that are read, by their canonical paths.
#[derive(Debug, Default)]
pub struct Sources {
    files: Vec<PathBuf>,
    /// What files of models' draws are called.
    models: Vec<String>,
}

impl Sources {
    /// A study's file, as it was read from here, and its data. What is wrong with these is said where they are read.
    pub fn of_study(file: &StudyFile, path: &Path) -> Sources {
        let data = file.files().unwrap_or_default();
        Sources {
            models: file.study.models.iter().map(|model| file_stem(&model.name)).collect(),
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

    /// The same for draws of the study's models in a folder, a Parquet file per model.
    pub fn spare_posterior(&self, folder: Option<&PathBuf>) -> Result<()> {
        self.spare_draws(folder, &|stem| self.models.iter().any(|model| model == stem))
    }

    /// The same for draws of shards, a Parquet file per model and shard.
    pub fn spare_chains(&self, folder: Option<&PathBuf>) -> Result<()> {
        self.spare_draws(folder, &|stem| {
            let is_number =
                |shard: &str| !shard.is_empty() && shard.bytes().all(|b| b.is_ascii_digit());
            let parts = stem.rsplit_once("-shard-");
            parts.is_some_and(|(model, shard)| {
                is_number(shard) && self.models.iter().any(|known| known == model)
            })
        })
    }

    fn spare_draws(
        &self,
        folder: Option<&PathBuf>,
        is_written: &dyn Fn(&str) -> bool,
    ) -> Result<()> {
        let Some(whole) = folder.and_then(|folder| folder.canonicalize().ok()) else {
            return Ok(());
        };
        let own = self.files.iter().filter(|file| file.parent() == Some(&whole));
        for name in own.filter_map(|file| file.file_name()?.to_str()) {
            if name.strip_suffix(".parquet").is_some_and(is_written) {
                self.spare(&whole.join(name))?;
            }
        }
        Ok(())
    }
}
