//! Which files paths and globs name.

use crate::{Dir, names, read, refused};
use consilience::data::read::{TextFormat, column_names, find_files};
use std::path::Path;

fn find(dir: &Dir, patterns: &[&str]) -> Result<Vec<String>, consilience::Error> {
    let files = find_files(&dir.path(""), &names(patterns))?;
    let base = dir.path("");
    let short = files.iter().map(|f| f.strip_prefix(&base).expect("below the base").display());
    Ok(short.map(|f| f.to_string()).collect())
}

#[test]
fn globs_are_sorted_in_byte_order_and_patterns_keep_theirs() {
    let dir = Dir::new();
    for name in ["b10.csv", "b9.csv", "B1.csv", "é.csv", "a.tsv.gz", ".hidden.csv", "s/x.pq"] {
        dir.write(name, "a\n1\n");
    }
    let found = find(&dir, &["*.csv", "s/*", "a.tsv.gz"]).expect("files");
    assert_eq!(found, ["B1.csv", "b10.csv", "b9.csv", "é.csv", "s/x.pq", "a.tsv.gz"]);
    assert_eq!(find(&dir, &["**/?.pq"]).expect("files"), ["s/x.pq"]);
    assert_eq!(find(&dir, &["b[0-9].csv"]).expect("files"), ["b9.csv"]);
}

#[test]
fn absolute_patterns_do_without_the_base() {
    let dir = Dir::new();
    let file = dir.write("a.csv", "a\n1\n");
    for pattern in ["a.csv", "*.csv"] {
        let pattern = dir.path(pattern).display().to_string();
        assert_eq!(
            find_files(Path::new("nowhere"), &[pattern]).expect("files"),
            std::slice::from_ref(&file)
        );
    }
}

#[test]
fn names_that_look_like_globs_are_found() {
    let dir = Dir::new();
    dir.write("[x]/a[1].csv", "a\n1\n");
    let base = dir.path("[x]");
    let expected = [base.join("a[1].csv")];
    assert_eq!(find_files(&base, &names(&["a[1].csv"])).expect("files"), expected);
    assert_eq!(find_files(&base, &names(&["*.csv"])).expect("files"), expected);
}

#[test]
fn what_is_not_there_is_refused() {
    let dir = Dir::new();
    dir.write("d/a.csv", "");
    refused(find(&dir, &[]), &["no data files"]);
    refused(find(&dir, &[""]), &["empty"]);
    refused(find(&dir, &["x.csv"]), &["x.csv", "there is no such file"]);
    refused(find(&dir, &["x*.csv"]), &["the pattern `x*.csv` matches no file"]);
    refused(find(&dir, &["x[.csv"]), &["`x[.csv`", "is not a glob"]);
    refused(find(&dir, &["d"]), &["this is a directory", "*.csv"]);
    refused(find(&dir, &["*"]), &["this is a directory", "pattern `*`"]);
    refused(read(&[dir.path("x.csv")]), &["x.csv: there is no such file"]);
    refused(read(&[dir.path("x.parquet")]), &["x.parquet: there is no such file"]);
    refused(read(&[]), &["no files"]);
}

#[test]
fn a_base_of_a_dot_stays() {
    // Tests run in the crate's directory.
    let here = Path::new(".");
    refused(find_files(here, &names(&["Cargo.t*"])), &["./Cargo.toml: the ending"]);
    refused(find_files(here, &names(&["Cargo.toml"])), &["./Cargo.toml: the ending"]);
}

#[test]
fn unknown_endings_are_refused() {
    let dir = Dir::new();
    let workbook = dir.write("a.xlsx", "PK");
    let parts = ["a.xlsx", "workbooks (.xlsx) are not read; save the sheet as CSV or Parquet"];
    refused(find(&dir, &["a.xlsx"]), &parts);
    refused(read(&[workbook]), &parts);
    for name in ["a", "a.gz", "a.parquet.gz", "csv"] {
        let file = dir.write(name, "a\n1\n");
        refused(find(&dir, &[name]), &[name, "ending", ".csv"]);
        refused(read(&[file]), &[name, "ending"]);
    }
    refused(find(&dir, &["*.xlsx"]), &["a.xlsx", "narrow the pattern `*.xlsx`"]);
    let file = dir.write("A.CSV", "a\n1\n");
    assert_eq!(column_names(&file, &TextFormat::default()).expect("names"), ["a"]);
}

#[test]
fn a_file_named_twice_is_refused() {
    let dir = Dir::new();
    dir.write("a.csv", "a\n1\n");
    dir.write("d/b.csv", "a\n1\n");
    refused(find(&dir, &["a.csv", "*.csv"]), &["a.csv", "both `a.csv` and `*.csv`"]);
    refused(find(&dir, &["a.csv", "a.csv"]), &["`a.csv` names this file twice"]);
    refused(find(&dir, &["a.csv", "d/../a.csv"]), &["`d/../a.csv`"]);
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_known_again() {
    let dir = Dir::new();
    let file = dir.write("a.csv", "a\n1\n");
    std::os::unix::fs::symlink(&file, dir.path("b.csv")).expect("a link");
    std::os::unix::fs::symlink(dir.path("gone"), dir.path("c.csv")).expect("a link");
    assert_eq!(find(&dir, &["b.csv"]).expect("files"), ["b.csv"]);
    refused(find(&dir, &["a.csv", "b.csv"]), &["b.csv", "name it once"]);
    refused(find(&dir, &["c.csv"]), &["c.csv", "there is no such file"]);
}

#[cfg(unix)]
#[test]
fn the_systems_refusal_is_passed_on() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Dir::new();
    for name in ["a.csv", "a.pq"] {
        let file = dir.write(name, "a\n1\n");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o000)).expect("permissions");
        // The superuser may read it all the same.
        if std::fs::File::open(&file).is_err() {
            refused(read(&[file]), &[name, "denied"]);
        }
    }
    dir.write("d.csv/x", "");
    refused(read(&[dir.path("d.csv")]), &["d.csv", "directory"]);
    dir.write("d.pq/x", "");
    refused(read(&[dir.path("d.pq")]), &["d.pq", "directory"]);
}
