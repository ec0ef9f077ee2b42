//! Wrong input, and what is said about it: what, where, and what to do.

#[cfg(target_os = "linux")]
mod disks;
mod files;
mod formulas;
mod runs;
mod studies;

use crate::{Folder, STUDY, data};

/// The good study with this in the place of that.
fn with(old: &str, new: &str) -> String {
    assert_eq!(STUDY.matches(old).count(), 1, "{old}");
    STUDY.replace(old, new)
}

/// The good study with more at its end: on line 11 and below.
fn and(more: &str) -> String {
    format!("{STUDY}{more}\n")
}

/// Asserts that the study is refused, both when it is checked and when it is to be run.
fn refused(what: &str, study: &str, data: &str, parts: &[&str]) {
    let folder = Folder::with(study, data);
    folder.run(&["compare", "s.toml"]).failed(what, 2, parts);
    folder.run(&["check", "s.toml"]).failed(what, 2, parts);
}

/// Asserts that flags are refused that are added to the good study.
fn refused_flags(flags: &[&str], parts: &[&str]) {
    let folder = Folder::with(STUDY, &data());
    let arguments = [&["compare", "s.toml"], flags].concat();
    folder.run(&arguments).failed(&flags.join(" "), 2, parts);
}

/// All that is wrong elsewhere should be the only thing wrong.
#[test]
fn the_good_study_is_good() {
    let folder = Folder::with(STUDY, &data());
    for command in ["compare", "check"] {
        let run = folder.run(&[command, "s.toml"]);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    }
}
