//! Gaussian models from their statistics, where everything can be computed: two peaks, heavy tails, kinks,
//! perfect fits, data far from 0, priors that are not normal. The references come from
//! scripts/gaussian_reference.py unless a comment says otherwise.

mod common;

use common::{Case, root, run, spread};
use consilience::compare::Comparison;
use consilience::engine::Silent;
use consilience::plan::Plan;
use consilience::study::Study;
use std::fmt::Display;
use std::path::Path;

/// A study of one Gaussian model on rows of text, whose columns are y and x.
fn study<T: Display>(folder: &Path, rows: &[T], shards: usize, formula: &str, prior: &str) -> String {
    let path = folder.join("data.csv");
    let header = if rows[0].to_string().contains(',') { "y,x" } else { "y" };
    let text = rows.iter().fold(format!("{header}\n"), |text, row| text + &format!("{row}\n"));
    std::fs::write(&path, text).unwrap();
    let mut case = Case::new(path.to_str().unwrap(), shards);
    case.prior = prior.into();
    case.model(formula, "gaussian");
    case.text()
}

fn codes(result: &Comparison) -> Vec<&str> {
    result.models[0].warnings.iter().map(|w| w.code.as_str()).collect()
}

/// The same evidence for any number of shards, within `most` of this one and trusted.
fn check<T: Display>(rows: &[T], formula: &str, prior: &str, exact: f64, most: f64) {
    let folder = tempfile::tempdir().unwrap();
    for shards in 1..=rows.len().min(7) {
        let result = run(&study(folder.path(), rows, shards, formula, prior));
        let found = result.models[0].log_evidence;
        let off = (found.value - exact).abs();
        println!("{formula}, {prior:?}, {shards} shards: {} ± {:?}, off by {off:.1e}", found.value, found.se);
        assert!(off < most, "{formula}, {prior:?}, {shards} shards: {found:?} is not {exact}");
        assert!(found.se.unwrap() < most && result.is_reliable());
        let method = result.models[0].combination.as_ref().unwrap().method;
        assert!(["quadrature", "closed form"].contains(&method), "{method}");
    }
}

const TWENTY: [f64; 20] = [
    15.3535, 14.6058, 15.0895, 14.9292, 14.9479, 14.9865, 14.6929, 14.9838, 14.8808, 15.5621, 15.0583,
    14.9642, 14.9758, 14.9129, 14.8499, 14.958, 15.0999, 14.9827, 15.1773, 14.989,
];

#[test]
fn cases_that_were_wrong_once() {
    let text = std::fs::read_to_string(
        root().join("crates/consilience/tests/data/gaussian_hard.jsonl"),
    );
    let folder = tempfile::tempdir().unwrap();
    for line in text.unwrap().lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let path = folder.path().join("d.csv");
        std::fs::write(&path, case["csv"].as_str().unwrap()).unwrap();
        let study = case["study"].as_str().unwrap().replace("\"d.csv\"", &format!("{path:?}"));
        let result = run(&study);
        let (found, truth) = (result.models[0].log_evidence, case["truth"].as_f64().unwrap());
        println!("{}: {found:?}, off by {:.1e}", case["name"], found.value - truth);
        // The truths are good to about 1e-7.
        assert!((found.value - truth).abs() < 1e-6, "{}: {found:?} is not {truth}", case["name"]);
        assert!(result.is_reliable());
    }
}

#[test]
fn both_peaks_count() {
    check(&TWENTY, "y ~ 1", PLAIN, -86.69391664223802, 1e-9);
}

const PLAIN: &str = "intercept = \"normal(0, 1)\"\nlog_sd = \"normal(0, 1)\"";
