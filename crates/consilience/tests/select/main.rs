//! Choosing among all subsets of terms: against all models known, by laws, and where it is hard.

#[path = "../common/mod.rs"]
mod common;
mod g_priors;
mod hard;
mod known;
mod laws;

use common::root;
use consilience::engine::Silent;
use consilience::estimate::Estimate;
use consilience::plan::Plan;
use consilience::select::Selection;
use consilience::study::StudyFile;
use std::path::Path;

/// A study with `[select]`: data in this folder or absolute, shards, and the rest of it.
fn study(data: &str, shards: usize, rest: &str) -> StudyFile {
    let path = [root().join("data").join(data), folder().join(data)];
    let path = path.into_iter().find(|p| p.is_file()).unwrap_or_else(|| Path::new(data).into());
    let prior = if rest.contains("[prior]") { "" } else { "[prior]\ndefault = \"normal(0, 1)\"" };
    let text = format!("[data]\npath = {path:?}\n[split]\nshards = {shards}\n{prior}\n{rest}");
    StudyFile::parse(&text, Path::new("select.toml")).unwrap()
}

fn folder() -> std::path::PathBuf {
    root().join("crates/consilience/tests/data/select")
}

fn plan(data: &str, shards: usize, rest: &str) -> Plan {
    Plan::new(study(data, shards, rest), 2, &Silent).unwrap()
}

fn select(data: &str, shards: usize, rest: &str) -> Selection {
    plan(data, shards, rest).select(&Silent).unwrap()
}

fn truth(name: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(folder().join(name).with_extension("json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn numbers(value: &serde_json::Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn inclusion(selection: &Selection) -> Vec<f64> {
    selection.inclusion.iter().map(|i| i.probability).collect()
}

fn total(selection: &Selection) -> Estimate {
    selection.log_normaliser.unwrap()
}

fn rms(values: &[f64]) -> f64 {
    (values.iter().map(|z| z * z).sum::<f64>() / values.len() as f64).sqrt()
}

/// Root mean square and largest of z over terms that are in doubt.
fn z_scores(selection: &Selection, truth: &[f64], errors: &[f64]) -> Vec<f64> {
    let doubt = |p: f64| p > 1e-3 && p < 1.0 - 1e-3;
    let each = selection.inclusion.iter().zip(truth).zip(errors);
    each.filter(|((_, p), _)| doubt(**p))
        .map(|((found, p), e)| (found.probability - p) / found.se.unwrap().hypot(*e))
        .collect()
}

/// The truth of a small space by evidences one by one, with many draws.
fn one_by_one(data: &str, rest: &str) -> Selection {
    let text =
        format!("{rest}\nmethod = \"enumerate\"\n[evidence]\ndraws = 40000\nse_target = 0.002");
    select(data, 1, &text)
}

/// A CSV file of these columns in a folder that lasts as long as the test.
fn file(folder: &tempfile::TempDir, name: &str, header: &str, rows: &[String]) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, format!("{header}\n{}\n", rows.join("\n"))).unwrap();
    path.to_str().unwrap().to_string()
}

/// Rows of x1, x2, x3, a factor g and an outcome that x1 and g move.
fn rows(count: u64) -> Vec<[f64; 5]> {
    let mut state = 1_u64;
    let mut even = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let row = |_| {
        let x = [even(), even(), even()].map(|u| 4.0 * u - 2.0);
        let g = (3.0 * even()).floor();
        let eta = 0.5 * x[0] + 0.2 * x[1] + if g == 2.0 { 0.7 } else { 0.0 } - 0.3;
        let y = f64::from(u8::from(even() < 1.0 / (1.0 + (-eta).exp())));
        [y, x[0], x[1], x[2], g]
    };
    (0..count).map(row).collect()
}

fn lines(rows: &[[f64; 5]]) -> Vec<String> {
    let level = |g: f64| ["a", "b", "c"][g as usize];
    rows.iter().map(|r| format!("{},{},{},{},{}", r[0], r[1], r[2], r[3], level(r[4]))).collect()
}

const HEADER: &str = "y,x1,x2,x3,g";

fn logistic(candidates: &str, more: &str) -> String {
    format!(
        "[select]\noutcome = \"y\"\nfamily = \"logistic\"\ncandidates = \"{candidates}\"\n{more}"
    )
}
