//! The run directory: made, opened, locked.

use super::files::{Courier, Files};
use super::manifest::{
    Manifest, SchemaColumn, ShardEntry, ShardRows, schema_hash, schema_of, study_hash,
};
use super::message::{FORMAT, hex, sha256};
use crate::compare::Comparison;
use crate::data::{Table, read_shard, write_shard};
use crate::engine::Observer;
use crate::plan::{Gathered, Plan, Room};
use crate::study::Study;
use crate::{Error, Place, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A run directory.
#[derive(Debug)]
pub struct Run {
    folder: PathBuf,
    manifest: Manifest,
}

/// Held by the one who coordinates a run, or works on a shard; given back when it is dropped, and
/// by the system when its holder dies.
#[derive(Debug)]
pub struct Lock {
    _file: Option<File>,
}

impl Lock {
    /// The lock in this file; `None` if somebody else has it.
    ///
    /// Where a file system has no locks everybody gets it: files are written whole and hold what
    /// they must hold whoever writes them, so that a second writer only does the work twice.
    pub(super) fn take(path: &Path) -> Result<Option<Lock>> {
        let failed = |source| Error::Io { path: path.to_path_buf(), source };
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
        let file = file.map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { _file: Some(file) })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => match error.kind() {
                std::io::ErrorKind::Unsupported => Ok(Some(Lock { _file: None })),
                _ => Err(failed(error)),
            },
        }
    }
}

pub(super) fn make_folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists | std::io::ErrorKind::NotADirectory => Error::input_at(
            Place::file(path),
            "this is a file, or goes through one; name a folder for the run",
        ),
        _ => Error::Io { path: path.to_path_buf(), source: error },
    })
}

impl Run {
    /// Reads and splits a study's data and writes them as a run directory. If that is there already,
    /// for the same study and the same split, nothing is written.
    pub fn split(study: Study, folder: &Path) -> Result<Run> {
        // What cannot be used should be known before the data are read.
        if let Some(run) = Run::existing(&study, folder)? {
            return Ok(run);
        }
        let gathered = Gathered::new(study, &Room::default())?;
        let shards_folder = folder.join("shards");
        make_folder(&shards_folder)?;
        let mut shards = Vec::new();
        for (index, data) in gathered.shards.iter().enumerate() {
            let table = data.table()?;
            let name = format!("{index:06}");
            let path = shards_folder.join(format!("{name}.parquet"));
            write_shard(&path, &table)?;
            let bytes =
                std::fs::read(&path).map_err(|source| Error::Io { path: path.clone(), source })?;
            let rows = ShardRows { count: table.rows(), sha256: hex(&sha256(&[&bytes])) };
            shards.push(ShardEntry { name, rows: Some(rows), key: None });
        }
        let first = gathered.shards.first().expect("a partition has at least one shard");
        let first = first.batch(0..first.rows().min(1))?;
        Run::begin(folder, &gathered, schema_of(&first)?, shards, first.origin().files.to_vec())
    }

    /// The run that a folder holds already, which must be of this study.
    pub(super) fn existing(study: &Study, folder: &Path) -> Result<Option<Run>> {
        if !Manifest::path(folder).exists() {
            let taken = folder.read_dir().is_ok_and(|mut entries| {
                entries.any(|e| e.is_ok_and(|e| !is_ours(&e.file_name().to_string_lossy())))
            });
            if taken {
                let message = "this folder holds other files and no run; name a new folder";
                return Err(Error::input_at(Place::file(folder), message));
            }
            make_folder(folder)?;
            return Ok(None);
        }
        let run = Run::open(folder)?;
        if run.manifest.study_hash != study_hash(study) {
            let message = "this is the run of another study, or of an earlier text of this one; name a new folder";
            return Err(Error::input_at(Place::file(folder), message));
        }
        Ok(Some(run))
    }

    /// Writes the manifest, with which a folder becomes a run.
    pub(super) fn begin(
        folder: &Path,
        gathered: &Gathered,
        schema: Vec<SchemaColumn>,
        shards: Vec<ShardEntry>,
        files: Vec<(PathBuf, bool)>,
    ) -> Result<Run> {
        for part in ["questions", "answers", "work"] {
            make_folder(&folder.join(part))?;
        }
        let manifest = Manifest {
            format: FORMAT,
            program: env!("CARGO_PKG_VERSION").into(),
            study_hash: study_hash(&gathered.outline.study),
            partition_hash: gathered.partition.hash.clone(),
            schema_hash: schema_hash(schema.iter().map(|c| c.name.as_str())),
            schema,
            shards,
            without: Vec::new(),
            partition: gathered.partition.clone(),
            files,
            names: gathered.names.clone(),
            warnings: gathered.warnings.clone(),
            study: gathered.outline.study.clone(),
        };
        manifest.write(folder)?;
        Ok(Run { folder: folder.to_path_buf(), manifest })
    }

    /// The run in this folder.
    pub fn open(folder: &Path) -> Result<Run> {
        Ok(Run { folder: folder.to_path_buf(), manifest: Manifest::read(folder)? })
    }

    /// Takes the place of the manifest, which is written already.
    pub(super) fn replace(&mut self, manifest: Manifest) {
        self.manifest = manifest;
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The result's file, which is there once the run has finished.
    pub fn result_path(&self) -> PathBuf {
        self.folder.join("result.json")
    }

    /// Keeps others from coordinating this run.
    pub fn lock(&self) -> Result<Lock> {
        let path = self.folder.join("lock");
        Lock::take(&path)?.ok_or_else(|| {
            let message =
                "another program coordinates this run at the moment; wait for it, or end it";
            Error::input_at(Place::file(&path), message)
        })
    }

    /// The rows of a shard, which must be as they were written.
    pub fn shard(&self, index: usize) -> Result<Table> {
        let entry = &self.manifest.shards[index];
        let path = self.folder.join("shards").join(format!("{}.parquet", entry.name));
        let wrong = |message: &str| Error::input_at(Place::file(&path), message);
        let Some(rows) = &entry.rows else {
            return Err(wrong("this shard is a site, whose rows are not here"));
        };
        let bytes =
            std::fs::read(&path).map_err(|source| Error::Io { path: path.clone(), source })?;
        if hex(&sha256(&[&bytes])) != rows.sha256 {
            return Err(wrong(
                "the shard was changed after the run was made (check sum); copy it again, or make another run",
            ));
        }
        let table = read_shard(&path, &Arc::new(self.manifest.files.clone()))?;
        let names = self.manifest.schema.iter().map(|c| &c.name);
        if !names.eq(table.names()) {
            return Err(wrong("the shard has other columns than the run"));
        }
        Ok(table)
    }

    /// Runs the plan from its beginning on the answers that are there. The courier is called for
    /// those that are not; [`Stop`](super::Stop) ends the run there with [`Error::Waiting`].
    pub fn coordinate(&self, courier: &dyn Courier, observer: &dyn Observer) -> Result<Comparison> {
        let _lock = self.lock()?;
        let engine = Files::new(self, courier);
        let plan = Plan::on(self.manifest.gathered()?, engine, observer)?;
        let mut comparison = plan.run(observer)?;
        plan.engine().finish(&mut comparison);
        Ok(comparison)
    }
}

/// Whether a file is one that a run that was not finished may have left.
fn is_ours(name: &str) -> bool {
    matches!(name, "shards" | "questions" | "answers" | "work" | "lock") || name.starts_with('.')
}
