//! How much memory a run may take, and for what.

use crate::shard::Budget;
use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// What a run may use of the machine's memory and disk.
#[derive(Debug, Clone)]
pub struct Room {
    /// Bytes of rows in memory, beyond which they go to disk.
    pub(crate) rows: usize,
    /// Bytes of likelihoods that are kept between questions.
    kept: usize,
    /// Bytes of likelihoods that all questions at work may take beside those.
    lent: usize,
    /// The most threads that have room to work.
    threads: usize,
    /// Where rows go that have no room in memory.
    pub(crate) folder: PathBuf,
    /// Where converted copies of large text files are kept, if they are.
    pub(crate) cache: Option<PathBuf>,
}

/// The least memory that a run can be held to: the program itself and the work of two threads.
pub const LEAST_MEMORY: usize = 256 << 20;

/// What a thread needs to work on a chunk of rows: the rows as they are read, their design, and their
/// panels.
const PER_THREAD: usize = 64 << 20;

impl Default for Room {
    /// No bound on rows; likelihoods that are kept have one.
    fn default() -> Room {
        let kept = crate::shard::KEPT_LIKELIHOODS;
        let (rows, lent, threads) = (usize::MAX, usize::MAX, usize::MAX);
        Room { rows, kept, lent, threads, folder: PathBuf::new(), cache: None }
    }
}

impl Room {
    /// At most so many bytes of memory; rows for which there is none go to a file without a name in this
    /// folder.
    pub fn within(memory: usize, folder: &Path) -> Result<Room> {
        if memory < LEAST_MEMORY {
            return Err(Error::input(format!(
                "{} of memory are too little to work in; allow at least {}",
                bytes_in_words(memory),
                bytes_in_words(LEAST_MEMORY)
            )));
        }
        Ok(Room {
            rows: memory / 4,
            kept: memory / 4,
            lent: memory / 8,
            threads: (memory / 4 / PER_THREAD).max(1),
            folder: folder.to_path_buf(),
            cache: None,
        })
    }

    /// Keeps converted copies of large text files in this folder, from which they are read the next
    /// time, and row after row where memory is bounded: see [`Reader`](crate::data::read::Reader).
    pub fn with_cache(mut self, folder: PathBuf) -> Room {
        self.cache = Some(folder);
        self
    }

    /// Whether rows may have to go to disk.
    pub(crate) fn is_bounded(&self) -> bool {
        self.rows < usize::MAX
    }

    /// How many of these threads have room to work.
    pub fn threads(&self, wanted: usize) -> usize {
        wanted.clamp(1, self.threads.max(1))
    }

    /// What likelihoods may take when so many threads work.
    pub(crate) fn budget(&self, threads: usize) -> Budget {
        Budget::new(self.kept, self.lent / threads.max(1))
    }
}

/// `1.5 GiB`.
pub(crate) fn bytes_in_words(bytes: usize) -> String {
    const UNITS: [(usize, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => {
            let number = format!("{:.1}", bytes as f64 / *unit as f64);
            format!("{} {name}", number.trim_end_matches(".0"))
        }
        None => format!("{bytes} bytes"),
    }
}
