//! Memory that is bounded.

use super::*;

/// Runs the program; what it printed, and its most memory in bytes.
fn measured(folder: &Folder, arguments: &[&str]) -> (Value, usize) {
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
    let mut json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    json["seconds"] = Value::Null;
    (json, most)
}

#[test]
#[cfg(target_os = "linux")]
fn the_bound_holds_and_changes_no_bit() {
    let folder = Folder::empty();
    let written = folder.run(&["simulate", "higgs", "--rows", "800000", "--out", "h.parquet"]);
    assert_eq!(written.code, Some(0), "{written:?}");
    let study = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/higgs.toml");
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
