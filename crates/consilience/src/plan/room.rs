//! How much memory a run may take, and for what.

use crate::halt::Halt;
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
    /// By which the shards' work may be called off.
    pub(crate) halt: Option<Halt>,
}

/// The least memory that a run can be held to: the program itself and the work of two threads.
pub const LEAST_MEMORY: usize = 256 << 20;

/// What is kept is used to the last byte: rows that models share are kept chunk by chunk. So the program itself,
/// what it reads with, and memory that was given back in pieces too small to be used again have to fit in as well.
const PROGRAM: usize = 112 << 20;

/// What a thread needs to work on a chunk of rows: the rows as they are read, their design, and their
/// panels.
const PER_THREAD: usize = 64 << 20;

impl Default for Room {
    /// No bound on rows; likelihoods that are kept have one.
    fn default() -> Room {
        let kept = crate::shard::KEPT_LIKELIHOODS;
        let (rows, lent, threads) = (usize::MAX, usize::MAX, usize::MAX);
        Room { rows, kept, lent, threads, folder: PathBuf::new(), cache: None, halt: None }
    }
}

impl Room {
    /// No bound on rows, on a machine with so many bytes of memory: a quarter of them for likelihoods that are kept
    /// between questions, and another for those that questions at work take beside these. What rows are in memory as they
    /// are wanted takes neither.
    pub fn of_machine(memory: usize) -> Room {
        Room { kept: memory / 4, lent: memory / 4, ..Room::default() }
    }

    /// At most so many bytes of memory; rows for which there is none go to a file without a name in this
    /// folder.
    pub fn within(memory: usize, folder: &Path) -> Result<Room> {
        if memory < LEAST_MEMORY {
            return Err(Error::input(format!(
                "{} of memory is too little to work in; allow at least {}",
                bytes_in_words(memory),
                bytes_in_words(LEAST_MEMORY)
            )));
        }
        Ok(Room {
            // Vectors that grow may take twice what they hold.
            rows: memory / 8,
            kept: memory / 2 - PROGRAM,
            lent: memory / 8,
            threads: (memory / 4 / PER_THREAD).max(1),
            folder: folder.to_path_buf(),
            cache: None,
            halt: None,
        })
    }

    /// Keeps converted copies of large text files in this folder, from which they are read the next
    /// time, and row after row where memory is bounded: see [`Reader`](crate::data::read::Reader).
    pub fn with_cache(mut self, folder: PathBuf) -> Room {
        self.cache = Some(folder);
        self
    }

    /// Until this is called: then shards leave what they are at, and the run ends with [`Error::Stopped`]. The observer
    /// should break too, since between two questions nobody else looks.
    pub fn until(mut self, halt: Halt) -> Room {
        self.halt = Some(halt);
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

    /// The room of one of so many who share it.
    pub(crate) fn part(&self, of: usize) -> Room {
        let less = |bytes: usize| if bytes < usize::MAX { bytes / of } else { bytes };
        let (rows, lent) = (less(self.rows), less(self.lent));
        // Without any bound everybody has the whole of what is kept as a rule.
        let kept = if lent < usize::MAX { self.kept / of } else { self.kept };
        Room { rows, kept, lent, ..self.clone() }
    }

    /// What likelihoods may take when so many threads work.
    pub(crate) fn budget(&self, threads: usize) -> Budget {
        let lent = self.part(threads.max(1)).lent;
        Budget::new(self.kept, lent)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Silent;
    use crate::plan::Plan;
    use crate::study::StudyFile;
    use std::fmt::Write;

    /// Rows of three files, some with holes: an outcome of every kind, a number, a factor.
    fn data(folder: &Path) {
        for file in 0..3 {
            let mut text = "yes,count,size,x,g\n".to_string();
            for i in 0..400_usize {
                let k = i * 3 + file;
                let x = libm::sin(k as f64 * 1.7);
                let g = ["a", "b", "c"][k % 7 % 3];
                let hole = if k % 50 == 7 { String::new() } else { x.to_string() };
                let (yes, count) = (usize::from(x > 0.3) ^ usize::from(k % 5 == 0), k * k % 4);
                let _ = writeln!(text, "{yes},{count},{},{hole},{g}", 2.0 * x + (k % 9) as f64);
            }
            std::fs::write(folder.join(format!("{file}.csv")), text).unwrap();
        }
    }

    fn study(folder: &Path, split: &str, formula: &str, family: &str, more: &str) -> StudyFile {
        let path = folder.join("s.toml");
        let text = format!(
            "{more}\n[data]\npath = \"*.csv\"\nmissing = \"drop\"\n[split]\n{split}\n[[model]]\nname = \"m\"\nformula = \"{formula}\"\nfamily = \"{family}\"\n"
        );
        std::fs::write(&path, text).unwrap();
        StudyFile::read(&path).unwrap()
    }

    /// Room for next to nothing, on disk in this folder.
    fn none(folder: &Path) -> Room {
        let (rows, kept, lent, threads) = (1_000, 0, 0, 2);
        Room { rows, kept, lent, threads, folder: folder.to_path_buf(), cache: None, halt: None }
    }

    #[test]
    fn no_bit_depends_on_the_room() {
        let folder = tempfile::tempdir().unwrap();
        data(folder.path());
        let run = |study: StudyFile, room: &Room| {
            let plan = Plan::within(study, 2, room, &Silent).unwrap();
            let mut result = plan.run(&Silent).unwrap();
            result.seconds = None;
            serde_json::to_string(&result).unwrap()
        };
        for (split, formula, family) in [
            ("shards = 3", "yes ~ x + g", "logistic"),
            ("by = \"file\"", "yes ~ poly(x, 2)", "probit"),
            ("by = \"column:g\"", "size ~ scale(x)", "gaussian"),
            ("by = \"outcome\"\nshards = 4", "count ~ x + g", "poisson"),
            ("shards = 2", "count ~ x", "negative-binomial"),
        ] {
            let study = || study(folder.path(), split, formula, family, "");
            let with_room = run(study(), &Room::default());
            assert_eq!(run(study(), &none(folder.path())), with_room, "{split}, {formula}");
            let poor = Room::of_machine(40_000);
            assert_eq!(run(study(), &poor), with_room, "{split}, {formula}");
        }
    }

    #[test]
    fn what_cannot_be_done_without_room_is_said() {
        let folder = tempfile::tempdir().unwrap();
        data(folder.path());
        let (room, by) = (none(folder.path()), "by = \"cluster\"\nshards = 2");
        let study1 = study(folder.path(), by, "yes ~ x", "logistic", "");
        let error = Plan::within(study1, 2, &room, &Silent).unwrap_err().to_string();
        assert!(error.contains("by = \"cluster\"") && error.contains("--memory"), "{error}");
        let more = "[evidence]\nlocal = \"gibbs+chib\"\ncombine = \"normal\"";
        let study2 = study(folder.path(), "shards = 2", "yes ~ x", "logistic", more);
        let plan = Plan::within(study2, 2, &room, &Silent).unwrap();
        let error = plan.run(&Silent).unwrap_err().to_string();
        assert!(error.contains("Gibbs") && error.contains("--memory"), "{error}");
        let error = Room::within(1 << 20, folder.path()).unwrap_err().to_string();
        assert!(error.contains("1 MiB") && error.contains("256 MiB"), "{error}");
        let study3 = study(folder.path(), "shards = 2", "yes ~ x", "logistic", "");
        let nowhere = Room { folder: folder.path().join("none"), ..room };
        let error = Plan::within(study3, 2, &nowhere, &Silent).unwrap_err().to_string();
        assert!(error.contains("scratch") && error.contains("--scratch"), "{error}");
    }

    #[test]
    fn threads_that_have_no_room_are_left_out() {
        let room = Room::within(1 << 30, Path::new("")).unwrap();
        assert_eq!((room.threads(2), room.threads(64)), (2, 4));
        assert_eq!(Room::default().threads(64), 64);
    }

    #[test]
    fn who_share_a_machine_share_its_memory() {
        let whole = Room::of_machine(16 << 30);
        assert_eq!((whole.kept, whole.part(4).kept), (4 << 30, 1 << 30));
        assert_eq!((whole.rows, whole.part(4).rows), (usize::MAX, usize::MAX));
        let unknown = Room::default();
        assert_eq!((unknown.part(4).kept, unknown.part(4).lent), (unknown.kept, usize::MAX));
    }
}
