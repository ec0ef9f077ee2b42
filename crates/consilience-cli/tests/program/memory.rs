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

/// The same of a command that must fail: what it says.
#[cfg(target_os = "linux")]
fn watched_failure(folder: &Folder, arguments: &[&str]) -> (String, usize) {
    let said = std::fs::File::create(folder.path("said")).expect("a file");
    let mut child = folder.command(arguments).stderr(said).spawn().expect("the program runs");
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    while child.try_wait().expect("a child").is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|l| l.trim().strip_suffix(" kB")).and_then(|n| n.parse().ok());
        most = most.max(1024 * kib.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    assert_eq!(child.wait().expect("a child").code(), Some(2));
    (folder.read("said"), most)
}

/// Files that are small and become large, or that would be read for ever.
#[test]
#[cfg(target_os = "linux")]
fn the_bound_holds_for_files_that_are_larger_than_they_look() {
    let folder = Folder::empty();
    // Every column is wanted, and the design is small: what takes memory is reading.
    let names: Vec<String> = (0..28).map(|j| format!("x{j}")).collect();
    let formula = format!("y ~ I({})", names.join(" + "));
    folder.write("s.toml", STUDY.replace("d.csv", "d.csv.gz").replace("y ~ x", &formula));
    let row = |i: usize| {
        let values = (0..28).map(|j| format!(",.{}", 1 + (i + j) % 7));
        format!("{}{}\n", i * 7 % 5 % 2, values.collect::<String>())
    };
    let rows: String = (0..1001).map(row).collect();
    folder.write("d.csv", format!("y,{}\n{}", names.join(","), rows.repeat(1000)));
    let packed = std::process::Command::new("gzip").arg(folder.path("d.csv")).status();
    assert!(packed.expect("there is `gzip`").success());
    let size = std::fs::metadata(folder.path("d.csv.gz")).expect("a file").len();
    assert!(size < 2 << 20, "{size} bytes");
    let here = ["--no-cache", "--memory", "256MiB", "--scratch", "."];
    let arguments = [&["check", "s.toml", "--shards", "10000"], &here[..]].concat();
    let (out, most) = watched(&folder, &arguments);
    assert!(String::from_utf8_lossy(&out).contains("I(x0"));
    assert!(most > 0 && most <= 256 << 20, "{most} bytes");
    // As many words as rows.
    let row = |i: u32| format!("{},w{i:x}\n", i % 2);
    folder.write("w.csv", "y,x\n".to_string() + &(0..2_000_000).map(row).collect::<String>());
    // A hole takes no room on the disk.
    let hole = std::fs::File::create(folder.path("hole.csv")).expect("a file");
    hole.set_len(8 << 30).expect("a hole");
    folder.write("s.toml", STUDY);
    for (file, part) in [("w.csv", "different words"), ("hole.csv", "longer than 32 MiB")] {
        let arguments = [&["check", "s.toml", "--data", file], &here[..]].concat();
        let (said, most) = watched_failure(&folder, &arguments);
        assert!(said.contains(part) && said.contains("error: "), "{file}: {said}");
        assert!(most > 0 && most <= 256 << 20, "{file}: {most} bytes");
    }
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
