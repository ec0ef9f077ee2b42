//! Wrong data.

use super::{refused, with};
use crate::{Folder, STUDY, data, shipped};

/// Replaces the data's path.
fn path(path: &str) -> String {
    with("d.csv", path)
}

/// The good data with another row, on line 42.
fn and_row(row: &str) -> String {
    format!("{}{row}\n", data())
}

#[test]
fn files_that_are_not_there_or_of_no_known_kind() {
    let folder = Folder::with(STUDY, &data());
    folder.write("sub/s.toml", STUDY);
    folder.write("d.xlsx", "PK");
    for (what, study, parts) in [
        ("missing", path("e.csv"), &["e.csv: there is no such file", "start from here"][..]),
        ("pattern", path("p/*.csv"), &["the pattern `p/*.csv` matches no file; check it"]),
        (
            "workbook",
            path("d.xlsx"),
            &["d.xlsx: workbooks (.xlsx) are not read", "save the sheet as CSV"],
        ),
        ("folder", path("sub"), &["sub: this is a directory", "`*.csv`"]),
        (
            "twice",
            path("d.csv\", \"./d.csv").replace("= \"d", "= [\"d").replace("v\"\n", "v\"]\n"),
            &["name this file; name it once"],
        ),
    ] {
        folder.write("s.toml", study);
        folder.run(&["compare", "s.toml"]).failed(what, 2, parts);
    }
    let elsewhere = folder.run(&["compare", "sub/s.toml"]);
    elsewhere.failed("elsewhere", 2, &["sub/d.csv: there is no such file", "start from `sub`"]);
}

#[test]
fn files_that_are_broken() {
    let whole = std::fs::read(shipped("sim2.parquet")).expect("the data");
    // A gzip member with one stored block, cut off inside of it.
    let mut gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01\xe8\x03\x17\xfc".to_vec();
    gzip.extend(data().as_bytes());
    let mut torn = whole.clone();
    torn[50_000..50_100].fill(0);
    let folder = Folder::empty();
    folder.write("cut.parquet", &whole[..50_000]);
    folder.write("torn.parquet", &torn);
    folder.write("cut.csv.gz", &gzip);
    folder.write("no.csv.gz", "y,x\n");
    folder.write("bare.csv", &gzip);
    folder.write("latin.csv", b"y,x\n1,M\xfcller\n");
    for (file, parts) in [
        (
            "cut.parquet",
            &["cut.parquet: the file is not a whole Parquet file", "copy or write"][..],
        ),
        ("torn.parquet", &["torn.parquet: the file is not a whole Parquet file", "copy or write"]),
        ("cut.csv.gz", &["cut.csv.gz: the gzip file is truncated or corrupt", "again"]),
        ("no.csv.gz", &["no.csv.gz: this is no gzip file; take .gz off its name"]),
        ("bare.csv", &["bare.csv: this is a gzip file; its name should end in .gz"]),
        ("latin.csv", &["latin.csv, line 2, column `x`", "save the file as UTF-8"]),
    ] {
        let formula = if file.contains("parquet") { "y ~ x1 + x2 + x3 + x4 + x5" } else { "y ~ x" };
        folder.write("s.toml", path(file).replace("y ~ x", formula));
        folder.run(&["compare", "s.toml"]).failed(file, 2, parts);
    }
}

#[test]
fn tables_that_are_no_tables() {
    for (what, data, parts) in [
        ("empty", String::new(), &["d.csv: the file is empty"][..]),
        ("header", "y,x\n".into(), &["d.csv: the file has a header but no rows; add rows"]),
        (
            "ragged",
            "y,x\n1,2\n0,3,4\n".into(),
            &["d.csv, line 3: this line has 3 values, but the header has 2 columns; look for"],
        ),
        ("quote", "y,x\n1,\"2\n0,3\n".into(), &["d.csv, line 2: the quote", "close it"]),
        ("two of one name", "y,x,x\n1,2,3\n".into(), &["line 1: columns 2 and 3", "rename one"]),
        ("NaN", and_row("1,2,NaN,a,1"), &["d.csv, line 42, column `x`: `NaN`", "write NA"]),
        ("inf", and_row("1,2,-inf,a,1"), &["d.csv, line 42, column `x`: `-inf` is not a finite"]),
        (
            "a word",
            and_row("1,2,three,a,1"),
            &["d.csv, line 42, column `x`: `three` is no number", "na = [\"three\"]", "factor(x)"],
        ),
        (
            "nothing complete",
            "y,x\n1,\n,2\n0,NA\n".into(),
            &["d.csv: no row is complete: all 3 rows", "`x`: 2, `y`: 1", "leave such a column"],
        ),
        (
            "huge",
            and_row("1,2,1e200,a,1"),
            &["column `x`: model `m`: the values are too large", "scale(x)"],
        ),
    ] {
        refused(what, STUDY, &data, parts);
    }
    let strict = path("d.csv\"\nmissing = \"error");
    let parts = ["d.csv, line 42, column `x`: a value is missing; fill it in, or set missing = "];
    refused("missing", &strict, &and_row("1,2,,a,1"), &parts);
}

#[test]
fn outcomes_that_do_not_fit_the_family() {
    let poisson = with("logistic", "poisson");
    let text = with("y ~ x", "g ~ x");
    let one_class: String = "y,x\n1,2\n1,3\n1,4\n1,5\n,6\n".into();
    for (what, study, data, parts) in [
        (
            "2",
            STUDY,
            and_row("2,2,1,a,1"),
            &["d.csv, line 42, column `y`: the outcome 2", "\"logistic\"", "as in I(y > limit)"][..],
        ),
        (
            "1 and 2",
            STUDY,
            "y,x\n1,2\n2,3\n1,4\n2,5\n".into(),
            &["d.csv, line ", "column `y`: the outcome 2", "on the left side, as in I(y == 2) ~"],
        ),
        (
            "-1",
            &poisson,
            and_row("-1,2,1,a,1"),
            &["d.csv, line 42, column `y`: the outcome -1", "\"poisson\"", "0 or more; mend"],
        ),
        (
            "2^53 + 1",
            &poisson,
            and_row("9007199254740993,2,1,a,1"),
            &["d.csv, line 42, column `y`: the outcome 9007199254740992", "below 2^53"],
        ),
        (
            "1.5",
            &poisson,
            and_row("1.5,2,1,a,1"),
            &["d.csv, line 42, column `y`: the outcome 1.5", "a whole number", "\"gaussian\""],
        ),
        (
            "one class",
            STUDY,
            one_class,
            &["s.toml, line 9: model `m`: the outcome `y` is 1 in all 4 complete rows", "check"],
        ),
        (
            "one word",
            &text,
            "g,x\na,1\na,2\na,3\na,5\n".into(),
            &["s.toml, line 9: model `m`: the outcome `g` is a in all 4 complete rows"],
        ),
        (
            "three classes",
            &text,
            data(),
            &["s.toml, line 9: model `m`", "3 classes (\"a\", \"b\", \"c\")", "I(g == \"a\")"],
        ),
    ] {
        refused(what, study, &data, parts);
    }
}

#[test]
fn weights_that_are_none() {
    let study = path("d.csv\"\nweights = \"w");
    for (what, study, data, parts) in [
        (
            "negative",
            study.clone(),
            and_row("1,2,1,a,-1"),
            &["d.csv, line 42, column `w`: the weight is -1", "whole numbers from 0 up"][..],
        ),
        (
            "a fraction",
            study.clone(),
            and_row("1,2,1,a,0.5"),
            &["d.csv, line 42, column `w`: the weight is 0.5", "whole numbers from 0 up"],
        ),
        (
            "no such column",
            study.replace("\"w\"", "\"ww\""),
            data(),
            &["s.toml, line 3: `data.weights` names the column `ww`, which", "did you mean `w`?"],
        ),
        (
            "words",
            study.replace("\"w\"", "\"g\""),
            data(),
            &["d.csv, line ", "column `g`: this is no number", "under `data.weights`"],
        ),
        (
            "all 0",
            study.clone(),
            "y,x,w\n1,2,0\n0,3,0\n1,4,0\n0,5,0\n".into(),
            &["s.toml, line 10: model `m`", "all weights are 0"],
        ),
        (
            "all 0 in a shard",
            study.clone(),
            "y,x,w\n1,2,0\n0,3,1\n1,4,1\n0,5,1\n".into(),
            &["every row of shard ", "weight 0 or no trials; use fewer shards"],
        ),
    ] {
        refused(what, &study, &data, parts);
    }
}
