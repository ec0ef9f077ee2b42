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

/// A number of a line; `None` where its cell is empty.
fn number(line: &BTreeMap<String, f64>, name: &str) -> Option<f64> {
    line.get(name).copied()
}

/// What a method gives to a model: a log evidence, or a score.
fn value(line: &BTreeMap<String, f64>) -> Option<f64> {
    // Tables of before had scores of votes under `mean`.
    number(line, "score").or(number(line, "mean"))
}

/// The documented table beside one that came out here.
fn agree(shown: &Groups, here: &Groups, part: &str) {
    let keys = |g: &Groups| g.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(shown), keys(here), "{part}");
    let mut compared = 0;
    for (key, shown) in shown {
        let here = &here[key];
        let (n, m) = (shown["counted"], here["counted"]);
        assert_eq!(n + shown["failed"], m + here["failed"], "{part}, {key}: partitions");
        // What gets through on few partitions may get through on one more or less.
        assert!((n - m).abs() <= 1.0, "{part}, {key}: {n} counted are shown, {m} are here");
        if n == 0.0 || m == 0.0 {
            continue;
        }
        // The spread over partitions is the error of one estimate and more: a change of the draws may stay. On any CPU the
        // numbers are the same, since the small experiments compute with portable kernels.
        let per_mean = 4.0 * (2.0 / n.min(m)).sqrt();
        let spread =
            |name: &str| number(shown, name).unwrap_or(0.0).max(number(here, name).unwrap_or(0.0));
        let check = |what: &str, a: Option<f64>, b: Option<f64>, allowed: f64| {
            assert_eq!(a.is_some(), b.is_some(), "{part}, {key}: {what}");
            let (Some(a), Some(b)) = (a, b) else { return 0 };
            assert!(
                (a - b).abs() <= allowed,
                "{part}, {key}: {what} {a} is shown, {b} is here, ± {allowed}"
            );
            1
        };
        let same = |what: &str, allowed: f64| {
            check(what, number(shown, what), number(here, what), allowed)
        };
        let mean = per_mean * spread("sd") + 0.05;
        compared += check("mean", value(shown), value(here), mean);
        // RMSE² = bias² + sd², and either may differ by as much as the mean.
        same("bias", mean);
        same("rmse", 1.5 * mean);
        // An error's size scatters no more than the error; its logarithm by about a nat more.
        same("epsilon1", 1.5 * mean);
        if spread("epsilon1") > 0.05 {
            same("epsilon2", mean + 1.5 * per_mean);
        }
        let factor = per_mean * spread("bayes_factor_sd") + 0.05;
        same("bayes_factor_mean", factor);
        same("bayes_factor_rmse", 1.5 * factor);
        // How often a model is chosen scatters as counts do; what is chosen always or never stays so.
        let often = (shown["chosen"] / n + here["chosen"] / m) / 2.0;
        same("chosen", 4.0 * (2.0 * n * often * (1.0 - often)).sqrt() + (n - m).abs());
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
    let ten = of(10, "majority vote", "chosen");
    assert!(of(10, "majority vote", "counted") == 20.0 && ten <= 4.0, "{ten} of 20");
    for shards in [20, 50] {
        assert_eq!(of(shards, "majority vote", "chosen"), 0.0, "majority vote at {shards}");
    }
    for shards in [10, 20, 50] {
        assert_eq!(of(shards, "Borda count", "chosen"), 0.0, "Borda count at {shards}");
    }
    // 71 nats, of which the mean over 20 partitions scatters by a spread of 35 over √20.
    let (bias, sd) = (of(2, "upsampled mean", "bias"), of(2, "upsampled mean", "sd"));
    assert!((bias - 70.0).abs() < 4.0 * sd / 20f64.sqrt() && sd < 70.0, "{bias} ± {sd}");
}

/// A table of docs/experiments.md.
struct Page(String);

impl Page {
    /// The numbers of a cell with their decimals: in the section of this experiment, the row that begins with this label,
    /// and the column with this head.
    fn numbers(&self, experiment: u32, label: &str, head: &str) -> Vec<(f64, usize)> {
        let of = |line: &str| -> Vec<String> {
            line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_string()).collect()
        };
        let place = format!("experiment {experiment}, row `{label}`, column `{head}`");
        let from = self.0.find(&format!("\n## {experiment}. ")).expect("a section");
        let mut column = None;
        for line in self.0[from + 1..].lines().skip(1).take_while(|line| !line.starts_with("## ")) {
            let cells = of(line);
            if let Some(found) = cells.iter().position(|cell| cell == head) {
                column = Some(found);
            } else if line.starts_with(&format!("| {label} |")) {
                let column = column.unwrap_or_else(|| panic!("no head above: {place}"));
                return numbers(&cells[column]);
            }
        }
        panic!("there is none: {place}");
    }
}

/// The numbers of a text, each with how many decimals it has.
fn numbers(text: &str) -> Vec<(f64, usize)> {
    let text = text.replace('−', "-");
    let words = text.split(|c: char| !(c.is_ascii_digit() || "+-.".contains(c)));
    let read = |word: &str| {
        let word = word.trim_end_matches('.');
        let decimals = word.split_once('.').map_or(0, |(_, behind)| behind.len());
        Some((word.parse().ok()?, decimals))
    };
    words.filter_map(read).collect()
}

#[test]
fn numbers_are_read_with_their_decimals() {
    assert_eq!(
        numbers("−1.7, +0.04 and 323 (2.2%); exact 35.92."),
        [(-1.7, 1), (0.04, 2), (323.0, 0), (2.2, 1), (35.92, 2)]
    );
    assert_eq!(numbers("20 of - none"), [(20.0, 0)]);
}

/// What stands on the page as numbers of the small experiments is what their tables say, to the digits shown.
#[test]
fn the_page_shows_the_numbers_of_its_tables() {
    let docs = root().join("docs");
    let page = Page(std::fs::read_to_string(docs.join("experiments.md")).unwrap());
    let table = |name: &str| groups(&docs.join(format!("experiments/{name}.csv")));
    let mut wrong = Vec::new();
    let mut check = |experiment: u32, label: &str, head: &str, wanted: &[f64]| {
        let shown = page.numbers(experiment, label, head);
        let same = |(&(shown, decimals), wanted): (&(f64, usize), &f64)| {
            (shown - wanted).abs() <= 0.500_001 * 0.1f64.powi(i32::try_from(decimals).unwrap())
        };
        if shown.len() != wanted.len() || !shown.iter().zip(wanted).all(same) {
            wrong.push(format!("experiment {experiment}, {label}: {shown:?} for {wanted:?}"));
        }
    };
    let line = |groups: &Groups, by: &str, shards: u32, method: &str, model: &str, what: &str| {
        let key = format!("{by} | {shards} | {method} | {model}");
        let line = groups.get(&key).unwrap_or_else(|| panic!("no {key}"));
        number(line, what).unwrap_or_else(|| panic!("no {what} of {key}"))
    };

    // Biases of experiment 2, for some with the RMSE in percent at 50 splits.
    let (normals, augmented) = (table("2-normals"), table("2-augmentation"));
    let (one, slopes) = ("one slope", "a slope per carrier");
    for (label, groups, by, method, model, percent) in [
        (
            "Algorithm 2 as written, `one slope`",
            &normals,
            "random",
            "normal-uncorrected",
            one,
            true,
        ),
        ("the same, corrected (`normal`)", &normals, "random", "normal", one, false),
        ("Algorithm 1, random, `one slope`", &augmented, "random", "augmented", one, true),
        ("Algorithm 1, split by outcome", &augmented, "outcome", "augmented", one, false),
        ("Algorithm 1, k-means × outcome", &augmented, "cluster", "augmented", one, false),
        (
            "Algorithm 1, random, `a slope per carrier`",
            &augmented,
            "random",
            "augmented",
            slopes,
            false,
        ),
        (
            "Algorithm 2 as written, `a slope per carrier`",
            &normals,
            "random",
            "normal-uncorrected",
            slopes,
            false,
        ),
    ] {
        let of = |shards: u32, what: &str| line(groups, by, shards, method, model, what);
        let mut wanted = vec![of(10, "bias"), of(20, "bias"), of(50, "bias")];
        wanted.extend(percent.then(|| of(50, "rmse_percent")));
        check(2, label, "here", &wanted);
    }

    // Experiment 3: the largest of all models, and Bayes factors.
    let factors = table("3-bayes-factors");
    let most = |method: &str, what: &str| -> Vec<f64> {
        let of = |shards: &u32| {
            let models = (1..=6).map(|k| format!("model {k}"));
            models
                .map(|model| line(&factors, "random", *shards, method, &model, what).abs())
                .fold(0.0, f64::max)
        };
        [10, 20, 50].iter().map(of).collect()
    };
    let small = "the small one";
    let written = "RMSE of Algorithm 2 as written, %";
    check(3, written, small, &most("normal-uncorrected", "rmse_percent"));
    check(3, "the same, corrected", small, &most("normal", "rmse_percent"));
    let share: Vec<f64> = most("normal", "overlap_share").iter().map(|s| 100.0 * s).collect();
    check(3, "share of log I in log p(y), %", small, &share);
    for (label, model) in [
        ("log Bayes factor of model 6 against model 2", "model 2"),
        ("the same against model 4", "model 4"),
    ] {
        let of =
            |shards, method| line(&factors, "random", shards, method, model, "bayes_factor_mean");
        let wanted = [of(10, "normal"), of(20, "normal"), of(50, "normal"), of(50, "exact")];
        check(3, label, small, &wanted);
    }

    // RMSEs of experiment 5.
    let sparse = table("5-table");
    for (label, model, what) in [
        ("RMSE, smaller model", "20 loci", "rmse"),
        ("RMSE, larger model", "40 loci", "rmse"),
        ("% RMSE, smaller model", "20 loci", "rmse_percent"),
        ("% RMSE, larger model", "40 loci", "rmse_percent"),
    ] {
        let wanted = [5, 10, 20, 50]
            .map(|shards| line(&sparse, "random", shards, "normal-uncorrected", model, what));
        check(5, label, "2,000 draws, as written", &wanted);
    }

    // Experiment 6: each model against the others, from those of the first.
    let jumps = table("6-without-x1");
    for (head, method) in [
        ("Algorithm 3", "Algorithm 3"),
        ("Bartolucci", "Bartolucci, acceptance"),
        ("union-and-fill", "union-and-fill, normal"),
    ] {
        let of = |model: &str| {
            [1, 3, 10].map(|s| line(&jumps, "random", s, method, model, "bayes_factor_mean"))
        };
        let (a, b) = (of("x2 + x4 + x5"), of("x2 + x5"));
        check(6, "{2,3,5} against {2,4,5}", head, &a);
        check(6, "{2,3,5} against {2,5}", head, &b);
        check(6, "{2,4,5} against {2,5}", head, &[b[0] - a[0], b[1] - a[1], b[2] - a[2]]);
    }
    assert!(wrong.is_empty(), "docs/experiments.md:\n{}", wrong.join("\n"));
}
