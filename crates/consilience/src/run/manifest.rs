//! What a run directory says of itself: `manifest.json`.

use super::message::{FORMAT, hex, sha256};
use super::sites::check_name;
use crate::compare::{DataSource, PartitionReport};
use crate::data::{Column, Table};
use crate::plan::{Extras, Gathered, Outline};
use crate::study::{Lines, Study, StudyFile};
use crate::{Error, Place, Result, Warning};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// No manifest is larger than this: some 70,000 shards.
const LARGEST: u64 = 16 << 20;

/// A run: the study, its shards or sites, and the hashes by which files are known to belong to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of the format.
    pub format: u32,
    /// The version of the program that made it.
    pub program: String,
    /// The study's hash.
    pub study_hash: String,
    /// The partition's hash.
    pub partition_hash: String,
    /// The hash of the columns that the study uses.
    pub schema_hash: String,
    /// The columns that the study uses, and what they hold where that is known.
    pub schema: Vec<SchemaColumn>,
    /// The shards or sites, in their order.
    pub shards: Vec<ShardEntry>,
    /// The sites that are left out, by name.
    pub without: Vec<String>,
    /// Who asks, where shards are sites.
    #[serde(default)]
    pub coordinator: Option<Coordinator>,
    /// How the data were split.
    pub partition: PartitionReport,
    /// The data files, and whether their rows are counted in lines.
    pub files: Vec<(PathBuf, bool)>,
    /// The data files' names and hashes, for the results' provenance.
    #[serde(default)]
    pub sources: Vec<DataSource>,
    /// The names of all columns of the data, which `.` in a formula stands for.
    pub names: Vec<String>,
    /// What the user should know before anything has run.
    pub warnings: Vec<Warning>,
    /// What the run delivers beside the comparison.
    #[serde(default)]
    pub extras: Extras,
    /// The study.
    pub study: Study,
    /// What stands on which line of its file, for errors.
    #[serde(default)]
    pub lines: Lines,
}

/// Who asks the sites of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coordinator {
    /// What tells the run from all others of the same study.
    pub run: String,
    /// The public key that questions are signed with.
    pub key: String,
    /// Whether only sums over all sites are told, and no site's answer.
    #[serde(default)]
    pub sums: bool,
}

/// A column of the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemaColumn {
    /// Its name.
    pub name: String,
    /// `number`, `text` or `logical`; unknown where the data are elsewhere.
    pub kind: Option<String>,
}

/// A shard of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardEntry {
    /// Its name: a number with leading zeros, or the site's.
    pub name: String,
    /// Where its rows are, if they are here.
    pub rows: Option<ShardRows>,
    /// The public key that its answers must be signed with, if they must.
    pub key: Option<String>,
}

/// A shard's rows in the run directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardRows {
    /// How many.
    pub count: usize,
    /// The file's hash.
    pub sha256: String,
}

/// The name of a shard whose rows are in the run directory.
pub(super) fn shard_name(index: usize) -> String {
    format!("{index:06}")
}

/// A study's hash: of all it says, whatever the order, and of nothing about its file.
pub fn study_hash(study: &Study) -> String {
    study.hash()
}

/// The hash of columns.
pub(crate) fn schema_hash<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let lines: String = names.map(|name| format!("{name}\n")).collect();
    hex(&sha256(&[lines.as_bytes()]))
}

/// A hash of all that a table holds.
pub(crate) fn table_hash(table: &Table) -> String {
    let mut sum = Sha256::new();
    for name in table.names() {
        sum.update(name.as_bytes());
        sum.update((table.rows() as u64).to_le_bytes());
        match table.column(name) {
            Ok(Column::Number(values)) => values.iter().for_each(|x| sum.update(x.to_le_bytes())),
            Ok(Column::Single(values)) => values.iter().for_each(|x| sum.update(x.to_le_bytes())),
            Ok(Column::Logical(codes)) => codes.iter().for_each(|c| sum.update(c.to_le_bytes())),
            Ok(Column::Text { codes, levels }) => {
                let text = |c: &u32| levels.get(*c as usize).map_or("", String::as_str);
                codes.iter().map(text).for_each(|t| {
                    sum.update((t.len() as u64).to_le_bytes());
                    sum.update(t.as_bytes());
                });
            }
            // Names are the table's own.
            Err(_) => {}
        }
    }
    hex(&sum.finalize())
}

/// The columns of a table.
pub(super) fn schema_of(table: &Table) -> Vec<SchemaColumn> {
    let column = |(name, column): (&String, &Column)| {
        let kind = match column {
            Column::Number(_) | Column::Single(_) => "number",
            Column::Text { .. } => "text",
            Column::Logical(_) => "logical",
        };
        SchemaColumn { name: name.clone(), kind: Some(kind.into()) }
    };
    table.names().iter().zip(table.columns()).map(column).collect()
}

impl Manifest {
    /// The manifest's file.
    pub fn path(folder: &Path) -> PathBuf {
        folder.join("manifest.json")
    }

    /// Reads and checks the manifest of a run directory.
    pub fn read(folder: &Path) -> Result<Manifest> {
        let path = Manifest::path(folder);
        let wrong = |message: String| Error::input_at(Place::file(&path), message);
        if !path.exists() {
            let message = if folder.is_dir() {
                "this is no run directory: it has no manifest.json; make one with `consilience split STUDY --run DIR`"
            } else {
                "there is no such run directory; make it with `consilience split STUDY --run DIR`"
            };
            return Err(Error::input_at(Place::file(folder), message));
        }
        Manifest::parse(&super::message::load(&path, LARGEST)?).map_err(wrong)
    }

    /// Reads a manifest from its bytes, or says what is wrong with it.
    pub fn parse(bytes: &[u8]) -> std::result::Result<Manifest, String> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let version: Version = serde_json::from_slice(bytes)
            .map_err(|e| format!("this is no manifest of a run: {e}"))?;
        if version.format != FORMAT {
            return Err(format!(
                "the run is of format {}, and this program knows format {FORMAT}; use the version that made it",
                version.format
            ));
        }
        let manifest: Manifest = serde_json::from_slice(bytes)
            .map_err(|e| format!("the manifest is not sound: {e}; use the version that made it"))?;
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> std::result::Result<(), String> {
        if study_hash(&self.study) != self.study_hash {
            return Err(
                "the study in it was changed after the run was made; make another run".into()
            );
        }
        if schema_hash(self.schema.iter().map(|c| c.name.as_str())) != self.schema_hash {
            return Err(
                "the schema in it was changed after the run was made; make another run".into()
            );
        }
        if self.partition.hash != self.partition_hash || self.partition.shards != self.shards.len()
        {
            return Err("its shards do not fit its partition; make another run".into());
        }
        if self.coordinator.is_some() != self.has_sites() {
            return Err("a run of sites says who asks them, and only that does".into());
        }
        self.check_names()?;
        if self.active().is_empty() {
            return Err("no site is left in it".into());
        }
        if self.tells_sums() {
            self.check_sums()?;
        }
        Ok(())
    }

    /// Whether shards have the names that this program gives them. They are parts of paths, and another's could
    /// lead out of the run directory.
    fn check_names(&self) -> std::result::Result<(), String> {
        let sites = self.has_sites();
        let mut known = HashSet::new();
        for (index, shard) in self.shards.iter().enumerate() {
            let fine = match &shard.rows {
                Some(_) => !sites && shard.name == shard_name(index),
                None => check_name(&shard.name).is_ok(),
            };
            if !fine || !known.insert(shard.name.to_ascii_lowercase()) {
                return Err(format!(
                    "shard {index} in it is named `{}`, as this program names none; make another run",
                    crate::error::clip(&shard.name)
                ));
            }
        }
        Ok(())
    }

    /// The manifest as text; an error if it is longer than any that is read.
    pub(super) fn text(&self, folder: &Path) -> Result<String> {
        let text = serde_json::to_string_pretty(self).expect("a manifest can always be written");
        if (text.len() as u64) < LARGEST {
            return Ok(text + "\n");
        }
        let message = format!(
            "a run directory cannot have {} shards of data with {} columns: its manifest would have {} bytes, and may have {LARGEST}; use fewer shards",
            self.shards.len(),
            self.names.len(),
            text.len()
        );
        Err(Error::input_at(Place::file(folder), message))
    }

    /// Writes the manifest.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        crate::draft::write(&Manifest::path(folder), self.text(folder)?)
    }

    /// The numbers of the shards that take part.
    pub fn active(&self) -> Vec<usize> {
        let without: HashSet<&str> = self.without.iter().map(String::as_str).collect();
        let takes_part = |&s: &usize| !without.contains(self.shards[s].name.as_str());
        (0..self.shards.len()).filter(takes_part).collect()
    }

    /// Whether the shards are sites whose rows are not here.
    pub fn has_sites(&self) -> bool {
        self.shards.iter().any(|shard| shard.rows.is_none())
    }

    /// Whether only sums over all sites are told.
    pub fn tells_sums(&self) -> bool {
        self.coordinator.as_ref().is_some_and(|coordinator| coordinator.sums)
    }

    /// Whether sums over the sites that take part hide what each of them says.
    pub(super) fn check_sums(&self) -> std::result::Result<(), String> {
        let entry = |s: usize| (self.shards[s].name.as_str(), self.shards[s].key.as_deref());
        super::masks::check_sites(self.active().into_iter().map(entry))
    }

    /// What a plan starts from, without the rows.
    pub(super) fn gathered(&self) -> Result<Gathered> {
        let file = StudyFile { lines: self.lines.clone(), ..self.study.clone().into() };
        let outline = Outline::new(file, |_| Ok(self.names.clone()))?;
        Ok(Gathered {
            outline,
            files: self.files.iter().map(|(file, _)| file.clone()).collect(),
            names: self.names.clone(),
            partition: self.partition.clone(),
            shards: Vec::new(),
            warnings: self.warnings.clone(),
        })
    }
}
