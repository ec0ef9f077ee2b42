//! Workers that were stopped, and what those leave behind that were killed.

#![cfg(unix)]

use crate::{Folder, STUDY, data};
use serde_json::Value;
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

/// A child that is ended with the test, stopped or not.
struct Guarded(Child);

impl Guarded {
    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.0.id().to_string()]).status();
        assert!(sent.expect("there is `kill`").success());
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A run whose next question takes a second or so.
fn at_the_fits() -> Folder {
    let evidence = "[evidence]\ncombine = \"normal\"\nlocal = \"nuts+warp3\"\ndraws = 20000\n";
    let folder = Folder::with(&format!("{STUDY}{evidence}"), &data());
    assert_eq!(folder.run(&["split", "s.toml", "--run", "r"]).code, Some(0));
    for _ in 0..10 {
        let open = folder.run(&["combine", "r"]);
        assert_eq!(open.code, Some(4), "{open:?}");
        if open.err.contains("(fit)") {
            return folder;
        }
        assert_eq!(folder.run(&["work", "r", "--quiet"]).code, Some(0));
    }
    panic!("no fits are asked for");
}

fn answers(folder: &Folder, name: &str) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder.path("r/answers")).expect("a folder").flatten() {
        found.extend(std::fs::read(entry.path().join(name)).ok());
    }
    found.sort();
    found
}

#[test]
fn a_stopped_worker_is_named_and_passed_over() {
    let folder = at_the_fits();
    let before = answers(&folder, "000000.answer").len();
    let mut command = folder.command(&["work", "r", "--shard", "0", "--quiet"]);
    let worker = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut worker = Guarded(worker.expect("the program runs"));
    let lock = folder.path("r/work/000000.lock");
    let is_held = || File::open(&lock).is_ok_and(|file| file.try_lock_shared().is_err());
    while !is_held() {
        assert!(worker.0.try_wait().expect("ours").is_none(), "it ended before it was stopped");
        std::thread::sleep(Duration::from_millis(1));
    }
    worker.signal("-STOP");
    assert!(is_held() && answers(&folder, "000000.answer").len() == before);

    // It is named, and its shard left to it for a while.
    let status = folder.run(&["status", "r"]);
    let name = format!("000000 is held by process {}", worker.0.id());
    assert!(status.out.contains(&name) && status.out.contains("--pass-over 0"), "{}", status.out);
    let status = folder.run(&["status", "r", "--json"]);
    let json: Value = serde_json::from_str(&status.out).expect("JSON");
    assert_eq!(json["held"].as_array().map(Vec::len), Some(1), "{json}");
    assert_eq!(json["held"][0]["shard"], "000000");
    let others = folder.run(&["work", "r", "--quiet"]);
    assert!(others.err.contains("left to another worker: 1 shard"), "{others:?}");
    assert_eq!(answers(&folder, "000000.answer").len(), before);

    // Then it is passed over.
    let passed = folder.run(&["work", "r", "--quiet", "--pass-over", "0"]);
    assert!(passed.err.contains("shard 0 is held by another worker"), "{passed:?}");
    assert!(passed.out.starts_with("1 answer written"), "{passed:?}");
    let written = answers(&folder, "000000.answer");
    assert_eq!(written.len(), before + 1);
    assert!([0, 1].map(Some).contains(&folder.run(&["combine", "r"]).code));

    // It goes on, and writes the same.
    worker.signal("-CONT");
    assert!(worker.0.wait().expect("ours").success());
    assert_eq!(answers(&folder, "000000.answer"), written);
    let status = folder.run(&["status", "r"]);
    assert!(!status.out.contains("is held by"), "{}", status.out);
}

/// Drafts that nobody writes are gone when the run is worked on; others stay.
#[test]
fn what_killed_programs_left_is_swept() {
    let folder = Folder::with(STUDY, &data());
    assert_eq!(folder.run(&["split", "s.toml", "--run", "r"]).code, Some(0));
    assert_eq!(folder.run(&["combine", "r"]).code, Some(4));
    let hash = std::fs::read_dir(folder.path("r/answers")).expect("a folder").flatten().next();
    let hash = hash.expect("a question").file_name().into_string().expect("hexadecimal");
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    let write = |name: &str, old: bool| {
        folder.write(name, "half");
        let file = File::options().write(true).open(folder.path(name)).expect("a file");
        if old {
            file.set_modified(long_ago).expect("a time");
        }
        file
    };
    let answer = |k: u32| format!("r/answers/{hash}/.000001.answer.{k}.tmp");
    for command in ["combine", "work"] {
        let gone =
            [answer(0), "r/.manifest.json.0.tmp".into(), "r/shards/.000001.parquet.7.tmp".into()];
        gone.iter().for_each(|name| drop(write(name, true)));
        // One that is being written, one that may be, and files of others.
        let held = write(&answer(1), true);
        held.lock().expect("a lock");
        let stays = [answer(1), answer(2), "r/.note".into(), "r/questions/.x.tmp".into()];
        drop(write(&stays[1], false));
        stays[2..].iter().for_each(|name| drop(write(name, true)));
        let run = folder.run(&[command, "r"]);
        assert!([Some(0), Some(4)].contains(&run.code), "{run:?}");
        assert!(gone.iter().all(|name| !folder.path(name).exists()), "{command}: {gone:?}");
        assert!(stays.iter().all(|name| folder.path(name).exists()), "{command}: {stays:?}");
    }
    // They are in nobody's way.
    assert_eq!(folder.run(&["work", "r"]).code, Some(0));
}
