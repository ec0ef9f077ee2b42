//! The six experiments in their small version: they run, they write what they promise, and their numbers are those that
//! the documentation shows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// One line of a table of groups: what it is about, and its numbers by name.
type Groups = BTreeMap<String, BTreeMap<String, f64>>;

fn groups(path: &Path) -> Groups {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut lines = text.lines().map(cells);
    let head = lines.next().expect("a table has a head");
    let mut found = Groups::new();
    for line in lines {
        assert_eq!(line.len(), head.len(), "{line:?}");
        let numbers = head.iter().zip(&line).skip(4);
        let numbers = numbers.filter_map(|(name, cell)| Some((name.clone(), cell.parse().ok()?)));
        found.insert(line[..4].join(" | "), numbers.collect());
    }
    found
}

/// The cells of a line of CSV.
fn cells(line: &str) -> Vec<String> {
    let (mut all, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    all.push(cell);
    all
}

/// The documented table beside one that came out here.
fn agree(shown: &Groups, here: &Groups, part: &str) {
    let keys = |g: &Groups| g.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(shown), keys(here), "{part}");
    let mut compared = 0;
    for (key, shown) in shown {
        let here = &here[key];
        let (a, b) = (shown["mean"], here["mean"]);
        // The spread over partitions is the error of one estimate and more: a change of the draws may stay. On any CPU the
        // numbers are the same, since the small experiments compute with portable kernels.
        let spread = shown["sd"].max(here["sd"]);
        let counted = shown["counted"].max(1.0);
        let allowed = 4.0 * spread * (2.0 / counted).sqrt() + 0.05;
        assert!((a - b).abs() <= allowed, "{part}, {key}: {a} is shown, {b} is here, ± {allowed}");
        compared += 1;
    }
    assert!(compared > 0, "{part}: nothing to compare");
}

#[test]
fn the_small_experiments_show_what_the_documentation_shows() {
    let folder = tempfile::tempdir().unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_consilience"))
        .args(["experiment", "all", "--quick", "--quiet", "--out", "e", "--data"])
        .arg(root().join("data"))
        .current_dir(folder.path())
        .output()
        .expect("the program runs");
    let said = String::from_utf8(run.stdout).unwrap();
    let complaint = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(0), "{said}\n{complaint}");
    assert!(!complaint.contains("panicked"), "{complaint}");
    println!("{said}");

    let shown = root().join("docs/experiments");
    let mut parts = 0;
    for entry in std::fs::read_dir(&shown).unwrap() {
        let path = entry.unwrap().path();
        let Some(name) = path.file_name().and_then(|n| n.to_str()?.strip_suffix(".csv")) else {
            continue;
        };
        let (number, part) = name.split_once('-').expect("a number and a part");
        let own = folder.path().join(format!("e/{number}-quick")).join(part);
        agree(&groups(&path), &groups(&own.join("groups.csv")), name);
        for file in ["sweep.json", "cells.csv", "report.html"] {
            assert!(own.join(file).is_file(), "{name}: {file} is not there");
        }
        let figures = std::fs::read_dir(&own).unwrap().filter(|e| {
            e.as_ref().unwrap().path().extension().is_some_and(|ending| ending == "svg")
        });
        assert!(figures.count() > 0, "{name}: no figure");
        parts += 1;
    }
    assert_eq!(parts, 9, "parts of six experiments");
    votes_fail(&groups(&folder.path().join("e/1-quick/votes/groups.csv")));
}

/// What experiment 1 is there to show, whatever the seeds: votes lose the right model, combinations keep it.
fn votes_fail(groups: &Groups) {
    let of = |shards: u32, method: &str, what: &str| {
        groups[&format!("random | {shards} | {method} | model 6")][what]
    };
    for method in ["normal", "cmc-is", "exact"] {
        for shards in [1, 2, 5, 10, 20, 50] {
            assert_eq!(of(shards, method, "chosen"), of(shards, method, "counted"), "{method}");
        }
    }
    assert_eq!(of(5, "majority vote", "chosen"), of(5, "majority vote", "counted"));
    for shards in [20, 50] {
        assert_eq!(of(shards, "majority vote", "chosen"), 0.0);
        assert_eq!(of(shards, "Borda count", "chosen"), 0.0);
    }
    assert!(of(2, "upsampled mean", "bias") > 30.0, "{}", of(2, "upsampled mean", "bias"));
}
