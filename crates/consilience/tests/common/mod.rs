//! What the tests share: studies made of text, and the repository's data.
#![allow(dead_code)]

use consilience::compare::Comparison;
use consilience::engine::Silent;
use consilience::plan::Plan;
use consilience::study::StudyFile;
use std::path::{Path, PathBuf};

/// The repository's top folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// data/truth.json.
pub fn truth() -> serde_json::Value {
    let text = std::fs::read_to_string(root().join("data/truth.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A study under construction: the bodies of its tables as text.
pub struct Case {
    pub data: String,
    pub split: String,
    /// The first line of `[prior]`: `normal(0, 1)` for all parameters, which the tests' references are for.
    pub default: String,
    pub prior: String,
    pub evidence: String,
    pub models: String,
}

impl Case {
    /// Data from the repository's folder (or an absolute path) in this many shards.
    pub fn new(data: &str, shards: usize) -> Case {
        Case {
            data: format!("path = {:?}", root().join("data").join(data)),
            split: format!("shards = {shards}"),
            default: "default = \"normal(0, 1)\"".into(),
            prior: String::new(),
            evidence: String::new(),
            models: String::new(),
        }
    }

    /// Adds a model.
    pub fn model(&mut self, formula: &str, family: &str) -> &mut Case {
        self.models += &format!("[[model]]\nformula = {formula:?}\nfamily = {family:?}\n");
        self
    }

    /// The study file.
    pub fn text(&self) -> String {
        format!(
            "[data]\n{}\n[split]\n{}\n[prior]\n{}\n{}\n[evidence]\n{}\n{}",
            self.data, self.split, self.default, self.prior, self.evidence, self.models
        )
    }
}

/// Runs a study on two threads.
pub fn run(text: &str) -> Comparison {
    run_study(StudyFile::parse(text, Path::new("study.toml")).unwrap(), 2)
}

/// Runs a study on this many threads.
pub fn run_study(study: impl Into<StudyFile>, threads: usize) -> Comparison {
    Plan::new(study, threads, &Silent).unwrap().run(&Silent).unwrap()
}

/// Mean and standard deviation.
pub fn spread(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt())
}
