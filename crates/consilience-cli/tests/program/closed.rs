//! Nobody listens: what cannot be said is no failure of the work, and no panic.

#![cfg(unix)]

use crate::{Folder, NULL, STUDY, data};
use std::fs::OpenOptions;
use std::process::Stdio;

/// A pipe that nobody reads from.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

/// What is always full, where there is such a thing.
fn full() -> Option<Stdio> {
    OpenOptions::new().write(true).open("/dev/full").ok().map(Stdio::from)
}

#[test]
fn a_closed_stderr_changes_nothing() {
    let folder = Folder::with(&format!("{STUDY}{NULL}"), &data());
    assert_eq!(folder.run(&["split", "s.toml", "--run", "r"]).code, Some(0));
    let all: [(&[&str], i32); 6] = [
        (&["compare", "none.toml"], 2),
        (&["compare", "s.toml", "--nonsense"], 2),
        (&["compare", "s.toml", "--data", "none.csv"], 2),
        // What is awaited is said on stderr.
        (&["combine", "r"], 4),
        (&["status", "none"], 2),
        (&["compare", "s.toml", "--memory", "256MiB"], 0),
    ];
    for (arguments, code) in all {
        for stderr in [Some(closed()), full()].into_iter().flatten() {
            let mut command = folder.command(arguments);
            let output = command.stderr(stderr).output().expect("the program runs");
            assert_eq!(output.status.code(), Some(code), "{arguments:?}");
            let out = String::from_utf8_lossy(&output.stdout);
            assert_eq!(out.contains(" favour"), code == 0, "{arguments:?}: {out}");
        }
    }
}

#[test]
fn a_closed_stdout_is_quiet() {
    let folder = Folder::with(&format!("{STUDY}{NULL}"), &data());
    let all: [&[&str]; 5] = [
        &["compare", "s.toml"],
        &["compare", "s.toml", "--json"],
        &["check", "s.toml"],
        &["--help"],
        &["compare", "--help"],
    ];
    for arguments in all {
        let mut command = folder.command(arguments);
        let output = command.stdout(closed()).output().expect("the program runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*said), (Some(0), ""), "{arguments:?}");
        // Neither can be said, and nothing is wrong with the study.
        let mut command = folder.command(arguments);
        let status = command.stdout(closed()).stderr(closed()).status().expect("it runs");
        assert_eq!(status.code(), Some(0), "{arguments:?}");
    }
    // A disk that is full is a failure: the result is lost.
    if let Some(full) = full() {
        let mut command = folder.command(&["compare", "s.toml"]);
        let output = command.stdout(full).output().expect("the program runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(3) && said.contains("standard output"), "{said}");
    }
}
