//! What made a result: so that it can be made again, and told from others.

use crate::Result;
use crate::draft::file_hash;
use crate::study::Study;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What made a result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Provenance {
    /// The program: `consilience`.
    pub program: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The study's hash: of all that it says, flags included, and of nothing about its file.
    pub study: String,
    /// The data files, in their order; the sites where the data are with them.
    pub data: Vec<DataSource>,
    /// The seed of the Monte Carlo draws.
    pub seed: u64,
    /// The seed of the split.
    pub split_seed: u64,
}

/// Where rows came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSource {
    /// The file's name, without folders; or the site's.
    pub name: String,
    /// The SHA-256 of the file; `None` of a site, whose file is not here.
    pub sha256: Option<String>,
}

impl Provenance {
    /// Of a study with these data.
    pub fn new(study: &Study, data: Vec<DataSource>) -> Provenance {
        Provenance {
            program: env!("CARGO_PKG_NAME"),
            version: env!("CARGO_PKG_VERSION"),
            study: study.hash(),
            data,
            seed: study.evidence.seed,
            split_seed: study.split.seed,
        }
    }

    /// Of a study with the data of these files, which are read once more for their hashes.
    pub fn of_files(study: &Study, files: &[PathBuf]) -> Result<Provenance> {
        let source = |file: &PathBuf| {
            let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
            Ok(DataSource { name, sha256: Some(file_hash(file)?) })
        };
        Ok(Provenance::new(study, files.par_iter().map(source).collect::<Result<_>>()?))
    }
}
