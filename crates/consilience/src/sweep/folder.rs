//! Cells that are kept, so that a sweep that was stopped goes on where it was.

use super::{Cell, CellName, CellTime, Sweep};
use crate::draft;
use crate::hex::hex;
use crate::study::StudyFile;
use crate::{Error, Place, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Where cells are kept.
pub trait CellStore: Sync {
    /// A cell that was computed before.
    fn get(&self, _: &CellName) -> Result<Option<(Cell, Option<CellTime>)>> {
        Ok(None)
    }
    /// Keeps a cell.
    fn put(&self, _: &CellName, _: &Cell, _: Option<CellTime>) -> Result<()> {
        Ok(())
    }
}

/// Nothing is kept.
impl CellStore for () {}

/// A folder with a file per cell.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// What the sweep, its study and its data hash to: cells of another one are refused.
    key: String,
}

/// A cell as its file holds it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCell {
    sweep: String,
    cell: Cell,
    time: Option<CellTime>,
}

impl Folder {
    /// The cells of a sweep of this study and of data with these hashes, in this folder, which is made.
    pub fn new(path: &Path, file: &StudyFile, data: &[String]) -> Result<Folder> {
        let path = path.join("cells");
        draft::make_folder(&path)?;
        // Cells do not depend on which others there are, nor on the split that the study names.
        let mut study = file.study.clone();
        study.split.shards = None;
        study.split.by = Default::default();
        study.evidence.combine = Default::default();
        study.data.path.clear();
        let text = serde_json::to_vec(&(env!("CARGO_PKG_VERSION"), study, data))
            .expect("a study can be written");
        Ok(Folder { path, key: hex(&Sha256::digest(&text))[..16].to_string() })
    }

    fn file(&self, name: &CellName) -> PathBuf {
        self.path.join(name.stem() + ".json")
    }
}

impl CellStore for Folder {
    fn get(&self, name: &CellName) -> Result<Option<(Cell, Option<CellTime>)>> {
        let path = self.file(name);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::Io { path, source }),
        };
        let wrong = |message: String| Err(Error::input_at(Place::file(&path), message));
        let written: WrittenCell = match serde_json::from_slice(&text) {
            Ok(written) => written,
            Err(error) => {
                return wrong(format!(
                    "this is no cell of a sweep ({error}); remove it, and it is computed again"
                ));
            }
        };
        if written.sweep != self.key || written.cell.by != name.by.to_string() {
            return wrong(
                "this cell is of another sweep: of another study, other data or another version; name another folder by --out, or remove this one"
                    .into(),
            );
        }
        if !written.cell.is(name) {
            return wrong("this cell is of another partition than its name says; remove it, and it is computed again".into());
        }
        Ok(Some((written.cell, written.time)))
    }

    fn put(&self, name: &CellName, cell: &Cell, time: Option<CellTime>) -> Result<()> {
        let written = WrittenCell { sweep: self.key.clone(), cell: cell.clone(), time };
        let text = serde_json::to_string_pretty(&written).expect("a cell can be written") + "\n";
        draft::write(&self.file(name), text)
    }
}

impl Sweep {
    /// Whether a cell holds all that this sweep asks of it.
    pub(super) fn is_answered_by(&self, name: &CellName, cell: &Cell) -> bool {
        let asked = self.methods(name);
        asked.iter().all(|method| cell.combination(method.name()).is_some())
            && (!self.votes || cell.votes_error.is_some() || !cell.votes.is_empty())
    }
}
