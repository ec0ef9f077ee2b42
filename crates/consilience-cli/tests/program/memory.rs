//! Memory that is bounded.

use super::*;

/// Runs the program; what it printed, and its most memory in bytes.
fn watched(folder: &Folder, arguments: &[&str]) -> (Vec<u8>, usize) {
    let mut child = folder
        .command(arguments)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the program runs");
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    let pause = std::time::Duration::from_millis(2);
    // The system keeps the highest value, so that only what comes after the last look is missed.
    while child.try_wait().expect("a child").is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|l| l.trim().strip_suffix(" kB")).and_then(|n| n.parse().ok());
        most = most.max(1024 * kib.unwrap_or(0));
        std::thread::sleep(pause);
    }
    let output = child.wait_with_output().expect("a child");
    assert!(output.status.success());
    (output.stdout, most)
}

/// The same of a comparison.
fn measured(folder: &Folder, arguments: &[&str]) -> (Value, usize) {
    let (out, most) = watched(folder, arguments);
    let mut json: Value = serde_json::from_slice(&out).expect("JSON");
    json["seconds"] = Value::Null;
    (json, most)
}

/// A folder with many rows in `h.parquet`, and a study of them.
fn simulated() -> (Folder, PathBuf) {
    let folder = Folder::empty();
    let written = folder.run(&["simulate", "higgs", "--rows", "800000", "--out", "h.parquet"]);
    assert_eq!(written.code, Some(0), "{written:?}");
    (folder, Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/higgs.toml"))
}

#[test]
#[cfg(target_os = "linux")]
fn the_bound_holds_and_changes_no_bit() {
    let (folder, study) = simulated();
    let study = study.to_str().expect("UTF-8");
    let bound: usize = 256 << 20;
    for shards in ["1", "20"] {
        let usual = ["compare", study, "--data", "h.parquet", "--shards", shards, "--json"];
        let (free, needed) = measured(&folder, &usual);
        let bounded = [&usual[..], &["--memory", "256MiB", "--scratch", "."]].concat();
        let (held, most) = measured(&folder, &bounded);
        assert_eq!(held, free, "{shards} shards");
        assert!(needed > bound, "{needed} bytes would not have been too many");
        assert!(most > 0 && most <= bound, "{most} bytes, {shards} shards");
    }
    let left: Vec<_> = std::fs::read_dir(folder.0.path()).expect("a folder").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn sizes_and_folders_that_make_no_sense() {
    let folder = Folder::with(STUDY, &data());
    let run = |more: &[&str]| folder.run(&[&["compare", "s.toml"], more].concat());
    run(&["--memory", "2"]).failed("no unit", 2, &["--memory", "2GiB"]);
    run(&["--memory", "-1GiB"]).failed("negative", 2, &["--memory", "2GiB"]);
    run(&["--memory", "1MiB"]).failed("too little", 2, &["1 MiB", "256 MiB"]);
    run(&["--scratch", "."]).failed("no bound", 2, &["--memory"]);
}

#[test]
#[cfg(target_os = "linux")]
fn the_bound_holds_for_workers_too() {
    let (folder, study) = simulated();
    let study = study.to_str().expect("UTF-8");
    let here = ["--memory", "256MiB", "--scratch", "."];
    let usual = ["--data", "h.parquet", "--shards", "2"];
    let split = [&["split", study, "--run", "run"], &usual[..], &here].concat();
    let (_, most) = watched(&folder, &split);
    assert!(most > 0 && most <= 256 << 20, "split: {most} bytes");
    let worker = || watched(&folder, &[&["work", "run"], &here[..]].concat());
    let mut rounds = 0;
    let result = loop {
        let combined = folder.run(&["combine", "run", "--json"]);
        if combined.code == Some(0) {
            break combined.out;
        }
        assert_eq!(combined.code, Some(4), "{combined:?}");
        let (_, most) = worker();
        assert!(most > 0 && most <= 256 << 20, "work: {most} bytes");
        rounds += 1;
    };
    assert!(rounds > 2);
    let (free, _) = measured(&folder, &[&["compare", study, "--json"], &usual[..]].concat());
    let found: Value = serde_json::from_str(&result).expect("JSON");
    assert_eq!(found["models"], free["models"]);
}
