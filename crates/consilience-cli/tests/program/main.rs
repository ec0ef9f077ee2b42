//! The program as its users see it: exit codes, messages, tables, JSON and files.

#![allow(clippy::disallowed_methods)]

mod baselines;
mod closed;
mod copies;
mod details;
mod extras;
mod faults;
mod init;
mod keys;
mod memory;
mod output;
mod plot;
mod queue;
mod runs;
mod schema;
mod select;
#[path = "../shared/mod.rs"]
mod shared;
mod simulate;
mod stopped;
mod sweep;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A study of [`data`] that is fine: 10 lines.
const STUDY: &str = r#"[data]
path = "d.csv"

[split]
shards = 4

[[model]]
name = "m"
formula = "y ~ x"
family = "logistic"
"#;

/// A model to add to a study, without an end of its line.
const NULL: &str = "\n[[model]]\nname = \"null\"\nformula = \"y ~ 1\"\nfamily = \"logistic\"\n";

/// Forty rows of data, the last one on line 41.
fn data() -> String {
    let row = |i: u32| {
        let x = f64::from(i * 7 % 13) / 3.0 - 1.0;
        let g = ["a", "b", "c"][i as usize % 3];
        format!("{},{},{x:.2},{g},{}\n", i % 2, i % 4, 1 + i % 2)
    };
    "y,n,x,g,w\n".to_string() + &(0..40).map(row).collect::<String>()
}

/// The repository's own data.
fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data").join(name)
}

/// A folder that a program runs in, gone at the end of the test.
struct Folder(TempDir);

/// What came of a run.
#[derive(Debug)]
struct Run {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Folder {
    /// An empty folder.
    fn empty() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    /// A folder with this study, `s.toml`, and this data, `d.csv`.
    fn with(study: &str, data: &str) -> Folder {
        let folder = Folder::empty();
        folder.write("s.toml", study);
        folder.write("d.csv", data);
        folder
    }

    /// Answers a question as a site whose rows everybody may see.
    fn answer(&self, question: &str, site: &str, data: &str, out: &str) -> Run {
        self.write(
            "open.toml",
            "min_rows = 1\nmax_columns = 99\nmax_predictor = 1e9\nmax_prior_sds = 1e9\nallow = [\"fit\", \"locate\"]\nlog = \"\"\n",
        );
        let policy = ["--policy", "open.toml", "--out", out];
        self.run(&[&["answer", question, "--site", site, "--data", data], &policy[..]].concat())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a file")).expect("a folder");
        std::fs::write(path, content).expect("a file");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a file")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_consilience"));
        command.args(arguments).current_dir(self.0.path());
        command
    }

    /// Runs the program in the folder.
    fn run(&self, arguments: &[&str]) -> Run {
        let Output { status, stdout, stderr } =
            self.command(arguments).output().expect("the program runs");
        let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
        let run = Run { code: status.code(), out: text(stdout), err: text(stderr) };
        assert!(!run.err.contains("panicked"), "{arguments:?}: {run:?}");
        run
    }

    /// Compares the models of `s.toml`, which must come to this exit code, and reads the JSON.
    fn json(&self, code: i32, arguments: &[&str]) -> Value {
        let run = self.run(&[&["compare", "s.toml", "--json"], arguments].concat());
        assert_eq!(run.code, Some(code), "{arguments:?}: {run:?}");
        serde_json::from_str(&run.out).expect("JSON")
    }
}

impl Run {
    /// Asserts that the run failed as it should: with this code, nothing on stdout, and a message
    /// that has all these parts.
    fn failed(&self, what: &str, code: i32, parts: &[&str]) {
        assert_eq!(self.code, Some(code), "{what}: {self:?}");
        assert_eq!(self.out, "", "{what}: stdout is not empty");
        assert!(self.err.starts_with("error: "), "{what}: {}", self.err);
        for part in parts {
            assert!(self.err.contains(part), "{what}: `{part}` is not in: {}", self.err);
        }
    }
}
