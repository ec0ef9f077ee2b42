//! Codebooks that the program writes, and studies that have them.

use crate::{Folder, STUDY, data};
use serde_json::Value;

fn study() -> String {
    STUDY.replace("y ~ x", "y ~ scale(x) + poly(n, 2) + g")
}

fn document(folder: &Folder, arguments: &[&str]) -> Value {
    let run = folder.run(arguments);
    assert!(run.code.is_some_and(|code| code < 2), "{run:?}");
    serde_json::from_str(&run.out).expect("a JSON document")
}

#[test]
fn a_study_with_its_codebook_has_the_same_models_and_fewer_rounds() {
    let folder = Folder::with(&study(), &data());
    let plain = document(&folder, &["compare", "s.toml", "--json"]);
    let written = folder.run(&["schema", "s.toml"]);
    assert_eq!((written.code, written.err.as_str()), (Some(0), ""), "{written:?}");
    assert!(written.out.contains("g = { levels = [\"a\", \"b\", \"c\"] }"), "{}", written.out);
    // As the help says: behind the study.
    folder.write("s.toml", study() + &written.out);
    let stated = document(&folder, &["compare", "s.toml", "--json"]);
    assert_eq!(stated["models"], plain["models"]);
    assert_eq!(stated["warnings"], plain["warnings"]);
    let rounds = |document: &Value| document["rounds"].as_u64().expect("a number");
    assert_eq!(rounds(&stated) + 2, rounds(&plain));
    // The one that is there is not looked at.
    assert_eq!(folder.run(&["schema", "s.toml"]).out, written.out);
    let check = folder.run(&["check", "s.toml"]);
    assert_eq!((check.code, check.err.as_str()), (Some(0), ""), "{check:?}");
}

#[test]
fn it_goes_to_a_file_that_is_not_there_yet() {
    let folder = Folder::with(&study(), &data());
    let run = folder.run(&["schema", "s.toml", "-o", "book.toml"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.starts_with("book.toml is written."), "{run:?}");
    let book = folder.read("book.toml");
    assert!(book.starts_with("# ") && book.contains("\n[schema]\n"), "{book}");
    let again = folder.run(&["schema", "s.toml", "-o", "book.toml"]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.err.contains("--force"), "{again:?}");
    assert_eq!(folder.run(&["schema", "s.toml", "-o", "book.toml", "--force"]).code, Some(0));
    assert_eq!(folder.read("book.toml"), book);
}

#[test]
fn a_run_directory_has_it_once_its_shards_have_answered() {
    let folder = Folder::with(&study(), &data());
    assert_eq!(folder.run(&["split", "s.toml", "--run", "r"]).code, Some(0));
    let early = folder.run(&["schema", "r"]);
    assert_eq!(early.code, Some(4), "{early:?}");
    assert!(early.err.contains("round 1 (describe): 0 of 4 shards have answered"), "{early:?}");
    while folder.run(&["combine", "r"]).code == Some(4) {
        assert_eq!(folder.run(&["work", "r"]).code, Some(0));
    }
    let from_run = folder.run(&["schema", "r"]);
    assert_eq!((from_run.code, from_run.err.as_str()), (Some(0), ""), "{from_run:?}");
    assert_eq!(from_run.out, folder.run(&["schema", "s.toml"]).out);
    let changed = folder.run(&["schema", "r", "--shards", "3"]);
    assert_eq!(changed.code, Some(2), "{changed:?}");
}

#[test]
fn rows_that_are_not_as_stated_are_an_error() {
    let folder = Folder::with(&study(), &data());
    let book = folder.run(&["schema", "s.toml"]).out;
    folder.write("s.toml", study() + &book.replace(", \"c\"]", "]"));
    let run = folder.run(&["compare", "s.toml"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    for part in ["d.csv, line ", "column `g`: the level \"c\" is unknown", "`consilience schema`"] {
        assert!(run.err.contains(part), "{run:?}");
    }
}
