//! The run directory: made, opened, locked.

use super::files::{Courier, Files};
use super::key::Key;
use super::lock::Lock;
use super::manifest::{
    Manifest, SchemaColumn, ShardEntry, ShardRows, schema_hash, schema_of, shard_name, study_hash,
};
use super::message::FORMAT;
use crate::compare::{Comparison, DataSource, Provenance};
use crate::data::{Codebook, Gathering, ShardData, read_shard, write_shard};
use crate::draft::{file_hash, make_folder};
use crate::engine::{Observer, Silent};
use crate::plan::{Extras, Gathered, Plan, Room, codebook_on};
use crate::select::Selection;
use crate::study::{Combine, Study, StudyFile};
use crate::sweep::{Cell, CellName, measured};
use crate::{Error, Place, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A run directory.
#[derive(Debug)]
pub struct Run {
    folder: PathBuf,
    manifest: Manifest,
    shown: Shown,
}

/// What a result is to show beside the comparison that is made of the same answers.
#[derive(Debug, Clone, Copy, Default)]
struct Shown {
    posterior: bool,
    shard_details: bool,
}

impl Run {
    /// Reads and splits a study's data and writes them as a run directory. If that is there already,
    /// for the same study and the same split, nothing is written.
    pub fn split(study: impl Into<StudyFile>, folder: &Path) -> Result<Run> {
        Run::split_within(study, folder, &Room::default(), &Silent)
    }

    /// The same with a bound on memory.
    pub fn split_within(
        study: impl Into<StudyFile>,
        folder: &Path,
        room: &Room,
        observer: &dyn Observer,
    ) -> Result<Run> {
        // What cannot be used should be known before the data are read.
        let study = study.into();
        let is_new = !folder.exists();
        if let Some(run) = Run::existing(&study.study, folder)? {
            return Ok(run);
        }
        let made = Run::write_split(study, folder, room, observer);
        if is_new && made.is_err() {
            // A study that is refused leaves no empty folder behind; one with something in it stays.
            let _ = std::fs::remove_dir(folder);
        }
        made
    }

    fn write_split(
        study: StudyFile,
        folder: &Path,
        room: &Room,
        observer: &dyn Observer,
    ) -> Result<Run> {
        let gathered = Gathered::new(study, room, observer)?;
        let first = gathered.shards.first().expect("a partition has at least one shard");
        let first = first.batch(0..first.rows().min(1))?;
        let entry = |(index, data): (usize, &ShardData)| {
            // A hash of the length of any.
            let rows = ShardRows { count: data.rows(), sha256: "0".repeat(64) };
            ShardEntry { name: shard_name(index), rows: Some(rows), key: None }
        };
        let shards = gathered.shards.iter().enumerate().map(entry).collect();
        let files = first.origin().files.to_vec();
        let mut manifest = Run::described(&gathered, schema_of(&first), shards, files);
        let study = &gathered.outline.study;
        manifest.sources = Provenance::of_files(study, &gathered.files)?.data;
        // More shards than it can name are refused before the first is written.
        manifest.text(folder)?;
        let shards_folder = folder.join("shards");
        make_folder(&shards_folder)?;
        for (entry, data) in manifest.shards.iter_mut().zip(&gathered.shards) {
            let path = shards_folder.join(format!("{}.parquet", entry.name));
            write_shard(&path, data)?;
            entry.rows = Some(ShardRows { count: data.rows(), sha256: file_hash(&path)? });
        }
        Run::begin(folder, manifest)
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

    /// The manifest of a new run.
    pub(super) fn described(
        gathered: &Gathered,
        schema: Vec<SchemaColumn>,
        shards: Vec<ShardEntry>,
        files: Vec<(PathBuf, bool)>,
    ) -> Manifest {
        Manifest {
            format: FORMAT,
            program: env!("CARGO_PKG_VERSION").into(),
            study_hash: study_hash(&gathered.outline.study),
            partition_hash: gathered.partition.hash.clone(),
            schema_hash: schema_hash(schema.iter().map(|c| c.name.as_str())),
            schema,
            shards,
            without: Vec::new(),
            coordinator: None,
            partition: gathered.partition.clone(),
            files,
            sources: Vec::new(),
            names: gathered.names.clone(),
            warnings: gathered.warnings.clone(),
            extras: Extras::default(),
            study: gathered.outline.study.clone(),
            lines: gathered.outline.lines.clone(),
        }
    }

    /// Writes the manifest, with which a folder becomes a run.
    pub(super) fn begin(folder: &Path, manifest: Manifest) -> Result<Run> {
        manifest.text(folder)?;
        for part in ["questions", "answers", "work"] {
            make_folder(&folder.join(part))?;
        }
        manifest.write(folder)?;
        Ok(Run { folder: folder.to_path_buf(), manifest, shown: Shown::default() })
    }

    /// The run in this folder.
    pub fn open(folder: &Path) -> Result<Run> {
        let (folder, manifest) = (folder.to_path_buf(), Manifest::read(folder)?);
        Ok(Run { folder, manifest, shown: Shown::default() })
    }

    /// Has the run deliver these beside the comparison, and nothing else, from now on. What was answered
    /// counts as far as the questions stay the same. Draws of posteriors and details of shards are made of what was
    /// answered: they are no part of the run, and nothing more is asked for them.
    pub fn deliver(&mut self, extras: &Extras) -> Result<()> {
        let study = &self.manifest.study;
        let combine = study.evidence.combine;
        let wrong = |message: &str| Err(Error::input_at(Place::file(&self.folder), message));
        let (known, has_sites) = (&self.manifest.extras, self.manifest.has_sites());
        if extras.draws.is_some() && has_sites {
            return wrong(
                "the draws of a site's chains stay with the site, so they cannot be kept here; draws given all data come with combine = \"exact\" and --posterior",
            );
        }
        if extras.posterior && has_sites && combine.takes_normals() {
            return wrong(&format!(
                "combine = \"{combine}\" makes draws of the posterior from those of chains on every shard, and a site's stay with the site; use combine = \"exact\"",
            ));
        }
        if self.manifest.tells_sums() && (extras.leave_one_out || extras.shard_details) {
            return wrong(
                "this run tells only sums over all sites, and --leave-one-out and --shard-details need what each of them says; do without, or begin another run without --sums",
            );
        }
        if extras.draws != known.draws && self.rounds()? > 0 {
            return wrong(
                "this run has begun with another --keep-draws, or without it, and answers nothing twice; name a new folder",
            );
        }
        extras.check(study, self.manifest.active().len())?;
        self.shown = Shown { posterior: extras.posterior, shard_details: extras.shard_details };
        let lasting = Extras { posterior: false, shard_details: false, ..extras.clone() };
        if lasting == *known {
            return Ok(());
        }
        self.ask_anew(Manifest { extras: lasting, ..self.manifest.clone() })
    }

    /// Goes on with another manifest. Questions are asked again from the first on; those that stay the
    /// same keep their answers.
    pub(super) fn ask_anew(&mut self, manifest: Manifest) -> Result<()> {
        let _lock = self.lock()?;
        self.keep_result()?;
        for path in self.question_paths()?.into_iter().chain([self.failure_path()]) {
            remove(&path)?;
        }
        manifest.write(&self.folder)?;
        self.manifest = manifest;
        Ok(())
    }

    /// Gives the result that is there, if one is, a name of its own: what is asked from now on makes another.
    fn keep_result(&self) -> Result<()> {
        let path = self.result_path();
        if !path.exists() {
            return Ok(());
        }
        let earlier = self.earlier_path(self.earlier_results() + 1);
        std::fs::rename(&path, &earlier).map_err(|source| Error::Io { path: earlier, source })
    }

    /// Where the result number so many of this run is kept after another was asked for.
    pub fn earlier_path(&self, number: usize) -> PathBuf {
        self.folder.join(format!("result-{number}.json"))
    }

    /// How many earlier results there are.
    pub fn earlier_results(&self) -> usize {
        (1..).take_while(|number| self.earlier_path(*number).exists()).count()
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What makes the results of this run: its data files, or its sites.
    pub fn provenance(&self) -> Provenance {
        let manifest = &self.manifest;
        let site = |s: usize| DataSource { name: manifest.shards[s].name.clone(), sha256: None };
        let data = match manifest.has_sites() {
            true => manifest.active().into_iter().map(site).collect(),
            false => manifest.sources.clone(),
        };
        Provenance::new(&manifest.study, data)
    }

    /// The result's file, which is there once the run has finished.
    pub fn result_path(&self) -> PathBuf {
        self.folder.join("result.json")
    }

    /// The file that says why the run has failed; there until it is coordinated again.
    pub(super) fn failure_path(&self) -> PathBuf {
        self.folder.join("failed.txt")
    }

    /// Why the run has failed, if it has: nobody asks further questions until it is coordinated again.
    pub fn failure(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.failure_path()).ok()?;
        Some(text.trim_end().to_string())
    }

    /// Where the key is that questions to sites are signed with.
    pub(super) fn coordinator_path(folder: &Path) -> PathBuf {
        folder.join("coordinator.key")
    }

    /// The key that questions to sites are signed with; `None` where shards are no sites.
    pub(super) fn coordinator_key(&self) -> Result<Option<Key>> {
        let Some(coordinator) = &self.manifest.coordinator else { return Ok(None) };
        let path = Run::coordinator_path(&self.folder);
        let key = Key::read(&path)?;
        if key.public() != coordinator.key {
            let message = "this is not the key that the run began with; put that one back";
            return Err(Error::input_at(Place::file(&path), message));
        }
        Ok(Some(key))
    }

    /// Keeps others from coordinating this run.
    pub fn lock(&self) -> Result<Lock> {
        let path = self.folder.join("lock");
        Lock::take(&path, "")?.ok_or_else(|| {
            let message =
                "another program coordinates this run at the moment; wait for it, or end it";
            Error::input_at(Place::file(&path), message)
        })
    }

    /// The rows of a shard, which must be as they were written; on disk in this folder if they take more
    /// than so many bytes.
    pub(super) fn shard(&self, index: usize, room: usize, scratch: &Path) -> Result<ShardData> {
        let entry = &self.manifest.shards[index];
        let path = self.folder.join("shards").join(format!("{}.parquet", entry.name));
        let wrong = |message: &str| Error::input_at(Place::file(&path), message);
        let Some(rows) = &entry.rows else {
            return Err(wrong("this shard is a site, whose rows are not here"));
        };
        if file_hash(&path)? != rows.sha256 {
            return Err(wrong(
                "the shard was changed after the run was made (check sum); copy it again, or make another run",
            ));
        }
        let mut gathering = Gathering::new(room, scratch);
        read_shard(&path, &Arc::new(self.manifest.files.clone()), &mut |block| {
            let names = self.manifest.schema.iter().map(|c| &c.name);
            if !names.eq(block.names()) {
                return Err(wrong("the shard has other columns than the run"));
            }
            gathering.take(block)
        })?;
        gathering.finish()
    }

    /// Runs the plan from its beginning on the answers that are there. The courier is called for
    /// those that are not; [`Stop`](super::Stop) ends the run there with [`Error::Waiting`].
    pub fn coordinate(&self, courier: &dyn Courier, observer: &dyn Observer) -> Result<Comparison> {
        self.guarded(|| {
            let mut plan = self.plan(courier, observer)?;
            let Shown { posterior, shard_details } = self.shown;
            plan.deliver(&Extras { posterior, shard_details, ..self.manifest.extras.clone() })?;
            let mut comparison = plan.run(observer)?;
            plan.engine().finish(&mut comparison.partition, &mut comparison.warnings);
            Ok(comparison)
        })
    }

    /// The same for a study with `[select]`; see [`Plan::select_and_name`].
    pub fn select(
        &self,
        named: &[String],
        courier: &dyn Courier,
        observer: &dyn Observer,
    ) -> Result<Selection> {
        self.guarded(|| {
            let plan = self.plan(courier, observer)?;
            let mut selection = plan.select_and_name(named, observer)?;
            plan.engine().finish(&mut selection.partition, &mut selection.warnings);
            Ok(selection)
        })
    }

    /// Computes a partition of a sweep of this study, whose run this is.
    pub fn measure(
        &self,
        name: &CellName,
        study: &Study,
        methods: &[Combine],
        votes: bool,
        courier: &dyn Courier,
        observer: &dyn Observer,
    ) -> Result<Cell> {
        self.guarded(|| {
            let plan = self.plan(courier, observer)?;
            measured(&plan, name, study, methods, votes, observer)
        })
    }

    /// What the shards agreed on, to be stated under `[schema]` of a study; see [`Plan::codebook`].
    pub fn codebook(&self, courier: &dyn Courier, observer: &dyn Observer) -> Result<Codebook> {
        if !self.manifest.study.schema.is_empty() {
            let message = "the study of this run has a [schema] of its own, and its shards were not asked; it stands in the study";
            return Err(Error::input_at(Place::file(&self.folder), message));
        }
        let outline = self.manifest.gathered()?.outline;
        let _lock = self.lock()?;
        codebook_on(&outline, &Files::new(self, courier), observer)
    }

    /// Does this while nobody else coordinates the run. An error that ends the run is written down.
    fn guarded<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let _lock = self.lock()?;
        remove(&self.failure_path())?;
        let result = work();
        if let Err(error @ (Error::Input { .. } | Error::Numeric { .. } | Error::Transport(_))) =
            &result
        {
            // Those who wait for questions are to know. If that fails too, the error is still the one to
            // report.
            let _ = crate::draft::write(&self.failure_path(), format!("{error}\n"));
        }
        result
    }

    fn plan<'a>(
        &'a self,
        courier: &'a dyn Courier,
        observer: &dyn Observer,
    ) -> Result<Plan<Files<'a>>> {
        Plan::on(self.manifest.gathered()?, Files::new(self, courier), observer)
    }
}

/// Removes a file, if it is there.
pub(super) fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Io { path: path.to_path_buf(), source })
        }
        _ => Ok(()),
    }
}

/// Whether a file is one that a run that was not finished may have left.
fn is_ours(name: &str) -> bool {
    matches!(name, "shards" | "questions" | "answers" | "work" | "lock" | "failed.txt")
        || name.starts_with('.')
}
