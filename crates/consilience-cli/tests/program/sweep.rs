//! `consilience sweep` and `consilience experiment` as their users see them.

use super::{Folder, NULL, STUDY, data};
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;

fn folder() -> Folder {
    Folder::with(&format!("{STUDY}{NULL}"), &data())
}

const SWEEP: &[&str] =
    &["sweep", "s.toml", "--shards", "1,2,4", "--repeats", "3", "--local", "importance"];

#[test]
fn tables_json_and_files_say_the_same() {
    let folder = folder();
    let text = folder.run(&[SWEEP, &["--out", "found"]].concat());
    assert_eq!(text.code, Some(0), "{text:?}");
    for part in
        ["40 rows", "against `exact`", "majority vote", "How many shards", "found/sweep.json"]
    {
        assert!(text.out.contains(part), "{part}: {}", text.out);
    }
    // Tables have a row on a line of its own, which begins with the method; unsplit there is no overlap.
    let heads: Vec<&str> = text.out.lines().filter(|line| line.starts_with("method ")).collect();
    assert_eq!(heads.len(), 3, "{}", text.out);
    assert!(heads[0].contains("log I %"), "{heads:?}");
    let tables = text.out.lines().skip_while(|line| !line.starts_with("Split by"));
    for line in tables.take_while(|line| !line.starts_with("CPU time")) {
        assert!(line.chars().count() <= 80 && !line.starts_with(' '), "{line}");
        assert!(!line.contains("e-1") && !line.contains("e-2"), "{line}");
    }
    let json = folder.run(&[SWEEP, &["--out", "found", "--json"]].concat());
    let found: Value = serde_json::from_str(&json.out).unwrap();
    for advice in found["advice"].as_array().unwrap() {
        assert!(text.out.contains(advice["text"].as_str().unwrap()), "{advice}");
    }
    // The file has the same numbers, without times.
    let mut file: Value = serde_json::from_str(&folder.read("found/sweep.json")).unwrap();
    assert!(file["times"].is_null() && found["times"].as_array().unwrap().len() == 9);
    file["times"] = found["times"].clone();
    assert_eq!(file, found);
    // A line per cell, method and model, and one above.
    let cells = folder.read("found/cells.csv");
    let methods = 4 + found["cells"][0]["votes"].as_array().unwrap().len();
    assert_eq!(cells.lines().count(), 1 + 9 * methods * 2);
    let columns = |line: &str| line.split(',').count();
    assert!(cells.lines().all(|line| columns(line) == columns(cells.lines().next().unwrap())));
    let groups = folder.read("found/groups.csv");
    assert_eq!(groups.lines().count(), 1 + 3 * methods * 2);
    // Scores that are no evidences stand apart from means of log evidences.
    let head: Vec<&str> = groups.lines().next().unwrap().split(',').collect();
    let at = |name: &str| head.iter().position(|column| *column == name).unwrap();
    for line in groups.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let scored = ["majority vote", "Borda count"].contains(&cells[at("method")]);
        assert_eq!(
            (cells[at("score")].is_empty(), cells[at("mean")].is_empty()),
            (!scored, scored),
            "{line}"
        );
    }
}

#[test]
fn pages_and_figures_are_made_of_real_sweeps() {
    let folder = folder();
    let flags = ["--out", "found", "--report", "page.html", "--quiet"];
    assert_eq!(folder.run(&[SWEEP, &flags].concat()).code, Some(0));
    let page = folder.read("page.html");
    assert!(page.starts_with("<!doctype html>") && !page.contains("NaN"));
    for part in ["How many shards", "majority vote", "<code>cmc-is</code>", "s.toml"] {
        assert!(page.contains(part), "{part}");
    }
    let drawn = folder.run(&["plot", "found/sweep.json", "--kind", "all", "-o", "figures"]);
    assert_eq!(drawn.code, Some(0), "{drawn:?}");
    for kind in ["error", "rmse", "choices", "bayes-factor", "epsilon", "overlap-share"] {
        let picture = folder.read(&format!("figures/{kind}.svg"));
        assert!(picture.starts_with("<svg") && !picture.contains("NaN"), "{kind}");
    }
    let page = folder.run(&["sweep", "s.toml", "--report", "nowhere/page.html"]);
    page.failed("a page in no folder", 2, &["nowhere/page.html"]);
}

#[test]
fn a_sweep_that_is_killed_ends_with_the_same_bytes() {
    let folder = folder();
    let study = folder.read("s.toml") + "\n[evidence]\ndraws = 20000\n";
    folder.write("s.toml", study);
    let arguments =
        |out: &'static str| [SWEEP, &["--out", out, "--quiet", "--threads", "2"]].concat();
    assert_eq!(folder.run(&arguments("whole")).code, Some(0));
    // Killed ever later, until it gets through.
    let mut kills = 0;
    for wait in 1.. {
        let mut command = folder.command(&arguments("killed"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(30 * wait));
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    assert!(kills > 0, "it was never killed");
    for name in ["sweep.json", "cells.csv", "groups.csv"] {
        assert_eq!(
            folder.read(&format!("whole/{name}")),
            folder.read(&format!("killed/{name}")),
            "{name} after {kills} kills"
        );
    }
}

#[test]
fn wrong_sweeps_are_refused() {
    let folder = folder();
    let select = "[data]\npath = \"d.csv\"\n[select]\noutcome = \"y\"\nfamily = \"logistic\"\ncandidates = \"x\"\n";
    folder.write("select.toml", select);
    for (arguments, parts) in [
        (&["sweep", "s.toml", "--shards", "4,2"][..], &["must ascend"][..]),
        (&["sweep", "s.toml", "--shards", "1,50"], &["50 shards are more than the 40 rows"]),
        (&["sweep", "s.toml", "--repeats", "0"], &["at least one repeat"]),
        (&["sweep", "s.toml", "--by", "file"], &["the data say how many shards"]),
        (&["sweep", "s.toml", "--reference", "-20"], &["1 values and the study 2 models"]),
        (&["sweep", "select.toml"], &["select.toml", "[[model]]"]),
        (&["sweep", "s.toml", "--engine", "slurm"], &["--out"]),
        (&["experiment", "2", "--out", "e", "--data", "nowhere"], &["flights.parquet", "--data"]),
        (&["experiment", "1", "--out", "e", "--repeats", "0"], &["at least 1"]),
    ] {
        folder.run(arguments).failed(&format!("{arguments:?}"), 2, parts);
    }
    for (arguments, part) in [
        (&["sweep", "s.toml", "--by", "randm"][..], "did you mean `random`"),
        (&["sweep", "s.toml", "--combine", "norml"], "normal"),
        (&["sweep", "s.toml", "--shards", "1,x"], "a whole number is needed"),
        (&["experiment", "7", "--out", "e"], "1 to 6"),
    ] {
        let run = folder.run(arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {run:?}");
        assert!(run.err.contains(part), "{arguments:?}: {}", run.err);
    }
    // Another study, or other data, in the same folder.
    let out = ["--shards", "1,2", "--repeats", "1", "--local", "importance", "--out", "o"];
    assert_eq!(folder.run(&[&["sweep", "s.toml"][..], &out].concat()).code, Some(0));
    let changed = folder.read("s.toml").replace("y ~ x", "y ~ x + n");
    folder.write("s.toml", changed);
    let again = folder.run(&[&["sweep", "s.toml"][..], &out].concat());
    again.failed("another study", 2, &["random-1-1.json", "of another sweep", "--out"]);
}

#[test]
fn a_combination_that_fails_is_told_and_the_rest_goes_on() {
    // With Cauchy priors and a factor level that is on one shard only, a shard's own evidence is infinite.
    let folder = Folder::empty();
    let rows: String = (0..60)
        .map(|i| format!("{},{}\n", u8::from(i % 3 == 0), if i < 3 { "rare" } else { "common" }))
        .collect();
    folder.write("d.csv", format!("y,g\n{rows}"));
    folder.write(
        "s.toml",
        "[data]\npath = \"d.csv\"\n[prior]\ndefault = \"cauchy(0, 1)\"\n[[model]]\nformula = \"y ~ g\"\nfamily = \"logistic\"\n[[model]]\nformula = \"y ~ 1\"\nfamily = \"logistic\"\n",
    );
    let arguments =
        ["sweep", "s.toml", "--shards", "1,6", "--repeats", "2", "--local", "importance", "--json"];
    let run = folder.run(&arguments);
    let found: Value = serde_json::from_str(&run.out).unwrap();
    let failed = found["groups"].as_array().unwrap().iter().filter(|g| g["failed"] != 0);
    assert!(failed.clone().count() > 0, "{run:?}");
    for group in failed.filter(|g| g["score"] == "log evidence") {
        assert_eq!(group["shards"], 6, "{group}");
    }
    let warnings: Vec<&Value> =
        found["warnings"].as_array().unwrap().iter().filter(|w| w["code"] == "failed").collect();
    let messages: Vec<&str> = warnings.iter().map(|w| w["message"].as_str().unwrap()).collect();
    // What fails for one reason is told once, with the reason.
    assert!(messages.iter().any(|m| m.contains("`normal`, `normal-uncorrected`")), "{messages:?}");
    for (warning, message) in warnings.iter().zip(&messages) {
        let why = message.split_once("(by random): ").expect("a reason").1;
        assert!(message.contains("partitions into 6 shards") && why.len() > 20, "{message}");
        if message.contains("all 2 partitions") {
            assert!(!warning["advice"].as_str().unwrap().contains("other partitions"), "{warning}");
        }
    }
    let cell = found["cells"].as_array().unwrap().last().unwrap();
    let normal = &cell["combinations"][0];
    assert!(normal["error"].as_str().is_some() && normal["models"].as_array().unwrap().is_empty());
    // Groups in which all failed have lines without numbers.
    let run = folder.run(&[&arguments[..], &["--out", "found"]].concat());
    assert_eq!(run.code, Some(0), "{run:?}");
    let groups = folder.read("found/groups.csv");
    let whole = found["groups"].as_array().unwrap().iter().filter(|g| g["counted"] == 0);
    assert!(whole.clone().count() > 0);
    for group in whole {
        let start = format!("random,6,{},", group["method"].as_str().unwrap());
        let lines: Vec<&str> = groups.lines().filter(|l| l.starts_with(&start)).collect();
        assert_eq!(lines.len(), 2, "a line per model: {start}");
        assert!(lines.iter().all(|l| l.contains(",0,2,0,0,,,,")), "{lines:?}");
    }
}
