//! The experiments' data: files that are there, or simulated ones.

use crate::progress::Bar;
use consilience::simulate::{self, Format, Simulated};
use consilience::{Error, Place, Result, draft};
use std::path::{Path, PathBuf};

/// Where data come from.
pub struct Sources<'a> {
    given: &'a Path,
    made: PathBuf,
    quiet: bool,
}

/// A file, and where it is from in words.
#[derive(Debug, Clone)]
pub struct Source {
    pub path: PathBuf,
    pub says: String,
}

impl<'a> Sources<'a> {
    /// Files of this folder; simulated ones are written to the other.
    pub fn new(given: &'a Path, made: &Path, quiet: bool) -> Sources<'a> {
        Sources { given, made: made.to_path_buf(), quiet }
    }

    /// The first of these files that is there.
    fn find(&self, names: &[&str]) -> Option<Source> {
        let path = names.iter().map(|name| self.given.join(name)).find(|path| path.is_file())?;
        let says = format!("data: {}", path.display());
        Some(Source { path, says })
    }

    /// The flights, which no one can simulate.
    pub fn flights(&self) -> Result<Source> {
        self.find(&["flights.parquet"]).ok_or_else(|| {
            Error::input_at(
                Place::file(self.given),
                "there is no flights.parquet, which experiment 2 needs; it stands in the folder data/ of the source: name that by --data",
            )
        })
    }

    /// The first of these files, or simulated data of so many rows.
    pub fn find_or_simulate(&self, names: &[&str], what: Simulated, rows: u64) -> Result<Source> {
        match self.find(names) {
            Some(found) => Ok(found),
            None => self.simulate(what, rows),
        }
    }

    /// Simulated data, with seed 1; those that are there from before are taken as they are.
    pub fn simulate(&self, what: Simulated, rows: u64) -> Result<Source> {
        draft::make_folder(&self.made)?;
        let name = match what {
            Simulated::Higgs => "higgs".to_string(),
            Simulated::Alleles(loci) => format!("alleles-{loci}"),
            Simulated::Toy => "toy".to_string(),
            Simulated::Rjmcmc(_) => "rjmcmc".to_string(),
        };
        let path = self.made.join(format!("{name}-{rows}.parquet"));
        if !path.is_file() {
            let bar = Bar::of_rows(!self.quiet, rows);
            let format = Format::of(&path)?;
            draft::write_with(&path, |file| {
                simulate::write(file, format, what, rows, 1, &mut |done| bar.set(done))
            })?;
        }
        let says = format!("data: simulated (`consilience simulate`, {name}, {rows} rows, seed 1)");
        Ok(Source { path, says })
    }
}
