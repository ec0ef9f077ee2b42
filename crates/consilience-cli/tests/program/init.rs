//! Studies that the program writes for data that have none.

use crate::{Folder, data, shipped};
use std::path::Path;

/// Forty rows with everything that real files have.
fn odd() -> String {
    let row = |i: usize| {
        let kind = ["1", "2", "3", "n.a."][i % 4];
        let income = if i % 9 == 4 { "NA".into() } else { format!("{}", 900 + i * 37 % 31) };
        format!(
            "{},P{i:03},{},{income},const,{kind},{},,{}\n",
            100 + i,
            ["left", "right", "both"][i % 3],
            ["TRUE", "FALSE"][i % 5 / 3],
            if (i * 7 + i / 3) % 5 < 2 { "yes" } else { "no" },
        )
    };
    let head = "row,patient,\"which side\",income (\"net\"),same,if,treated?,empty,Cured\n";
    head.replace("income (\"net\")", "\"income (\"\"net\"\")\"")
        + &(0..40).map(row).collect::<String>()
}

/// Writes a study, checks it, and runs it if it is small.
fn writes(folder: &Folder, arguments: &[&str], study: &str, run_it: bool) -> String {
    let run = folder.run(&[&["init"], arguments].concat());
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    assert!(run.out.starts_with(&format!("{study} is written:\n")), "{run:?}");
    assert!(run.out.contains("consilience check ") && run.out.contains("consilience compare "));
    let check = folder.run(&["check", study]);
    assert_eq!((check.code, check.err.as_str()), (Some(0), ""), "{check:?}");
    if run_it {
        let compare = folder.run(&["compare", study]);
        assert_eq!(compare.code, Some(0), "{compare:?}");
        assert!(compare.out.contains("all predictors") && compare.out.contains("intercept only"));
    }
    folder.read(study)
}

#[test]
fn shipped_data_get_studies_that_run() {
    let folder = Folder::empty();
    for (name, study, formula, shards, run_it) in [
        ("pima_tr.csv", "pima_tr.toml", "type ~ scale(npreg) + ", 1, true),
        ("sim2.parquet", "sim2.toml", "y ~ scale(x1) + scale(x2) + ", 2, true),
        ("gauss.parquet", "gauss.toml", "y ~ scale(x1) + ", 5, true),
        ("flights.parquet", "flights.toml", "late ~ scale(dep_delay) + carrier\"", 50, false),
    ] {
        let data = shipped(name);
        let text = writes(&folder, &[data.to_str().expect("UTF-8")], study, run_it);
        assert!(text.contains(formula), "{text}");
        assert!(text.contains(&format!("\nshards = {shards}\n")), "{text}");
        assert!(text.contains("was GUESSED"), "{text}");
        // An absolute path stays one.
        let path = data.to_str().expect("UTF-8").replace('\\', "\\\\");
        assert!(text.contains(&format!("path = \"{path}\"")), "{text}");
    }
}

#[test]
fn odd_columns_are_quoted_or_left_out_with_a_reason() {
    let folder = Folder::empty();
    folder.write("d.csv", odd());
    let text = writes(&folder, &["d.csv", "--outcome", "Cured"], "d.toml", true);
    for part in [
        "# The outcome is `Cured`. It has two values, of which \"yes\" counts as success",
        "`which side` + scale(`income (\\\"net\\\")`) + factor(`if`) + `treated?`",
        "#   `row`: it looks like an id: no value comes twice.",
        "#   `patient`: it looks like an id: no value comes twice.",
        "#   `same`: it is the same in all rows.",
        "#   `empty`: it has no values.",
        "Here that is 4 of 40.",
    ] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    // Another outcome, another family.
    let text = writes(&folder, &["d.csv", "--outcome", "treated?", "--force"], "d.toml", true);
    assert!(text.contains("`treated?` ~ ") && text.contains("+ Cured"), "{text}");
    let income = "income (\"net\")";
    let text = writes(&folder, &["d.csv", "--outcome", income, "--force"], "d.toml", true);
    assert!(text.contains("family = \"gaussian\"") && text.contains("\nlog_sd = "), "{text}");
}

#[test]
fn counts_codes_and_constants() {
    let folder = Folder::empty();
    folder.write("d.csv", data());
    for (outcome, left, family) in
        [("n", "n ~ ", "poisson"), ("w", "I(w == 2) ~ ", "logistic"), ("x", "x ~ ", "gaussian")]
    {
        let text = writes(&folder, &["d.csv", "--outcome", outcome, "--force"], "d.toml", true);
        assert!(text.contains(&format!("formula = \"{left}")), "{text}");
        assert!(text.contains(&format!("family = \"{family}\"")), "{text}");
    }
}

#[test]
fn paths_lead_from_the_study_to_the_data() {
    let folder = Folder::empty();
    folder.write("in/some \"data\" [1].csv", data());
    folder.write("studies/deep/x", "");
    let name = "in/some \"data\" [1].csv";
    for (out, path) in [
        ("here.toml", "in/some \\\"data\\\" [1].csv"),
        ("./in/there.toml", "some \\\"data\\\" [1].csv"),
        ("studies/deep/my study.toml", "../../in/some \\\"data\\\" [1].csv"),
    ] {
        let text = writes(&folder, &[name, "--out", out], out, true);
        assert!(text.contains(&format!("path = \"{path}\"\n")), "{text}");
    }
    let absolute = folder.path(name);
    let out = "studies/absolute.toml";
    let text = writes(&folder, &[absolute.to_str().unwrap(), "--out", out], out, true);
    assert!(text.contains("[1].csv\"\n") && !text.contains(".."), "{text}");
    // The next command can be copied.
    let run = folder.run(&["init", name, "--out", "a b.toml"]);
    assert!(run.out.contains("consilience compare 'a b.toml'\n"), "{run:?}");
}

#[cfg(unix)]
#[test]
fn links_do_not_lead_astray() {
    let folder = Folder::empty();
    folder.write("d.csv", data());
    folder.write("far/away/x", "");
    std::os::unix::fs::symlink("far/away", folder.path("near")).unwrap();
    writes(&folder, &["d.csv", "--out", "near/s.toml"], "near/s.toml", true);
    std::os::unix::fs::symlink("d.csv", folder.path("linked.csv")).unwrap();
    let text = writes(&folder, &["linked.csv", "--out", "far/s.toml"], "far/s.toml", true);
    assert!(text.contains("path = \"../linked.csv\""), "{text}");
}

#[test]
fn patterns_make_one_study_of_many_files() {
    let folder = Folder::empty();
    folder.write("parts/a.csv", data());
    folder.write("parts/b.csv", data());
    folder.write("studies/x", "");
    let text = writes(&folder, &["parts/*.csv"], "study.toml", true);
    assert!(text.contains("path = \"parts/*.csv\"") && text.contains("several here"), "{text}");
    let out = "studies/s.toml";
    let text = writes(&folder, &["parts/*.csv", "--out", out], out, true);
    assert!(text.contains("path = \"../parts/*.csv\""), "{text}");
}

#[test]
fn stdout_gets_the_study_and_nothing_else() {
    let folder = Folder::empty();
    folder.write("d.csv", data());
    let printed = folder.run(&["init", "d.csv", "--out", "-"]);
    assert_eq!(printed.code, Some(0));
    assert!(!Path::new(&folder.path("d.toml")).exists() && !folder.path("-").exists());
    assert_eq!(writes(&folder, &["d.csv"], "d.toml", true), printed.out);
}

#[test]
fn files_are_not_replaced_unasked() {
    let folder = Folder::empty();
    folder.write("d.csv", data());
    folder.write("d.toml", "mine");
    folder.write("sub/x", "");
    for (arguments, parts) in [
        (&["d.csv"][..], &["d.toml: this file is there already; --force replaces it"][..]),
        (&["d.csv", "--out", "sub"], &["sub: this is a folder; name the study file"]),
        (&["d.csv", "--out", "no/s.toml"], &["no/s.toml: there is no such folder; make it"]),
        (&["d.csv", "--out", "d.csv", "--force"], &["d.csv: these are the data; name another"]),
    ] {
        let run = folder.run(&[&["init"], arguments].concat());
        run.failed(&arguments.join(" "), 2, parts);
    }
    assert_eq!(folder.read("d.toml"), "mine");
    assert_eq!(folder.read("d.csv"), data());
    writes(&folder, &["d.csv", "--force"], "d.toml", true);
}

#[test]
fn data_that_no_study_can_be_made_of() {
    let folder = Folder::empty();
    folder.write("d.csv", data());
    folder.write("words.csv", "a,b\nx,p\ny,q\nz,r\n");
    folder.write("d.xlsx", "PK");
    folder.write("ragged.csv", "y,x\n1\n");
    for (arguments, parts) in [
        (&["no.csv"][..], &["no.csv: there is no such file; check `no.csv`"][..]),
        (&["no/*.csv"], &["the pattern `no/*.csv` matches no file"]),
        (&["d.xlsx"], &["d.xlsx: workbooks (.xlsx) are not read"]),
        (&["ragged.csv"], &["ragged.csv, line 2: this line has 1 value"]),
        (&["d.csv", "--outcome", "yy"], &["d.csv: there is no column `yy`; did you mean `y`?"]),
        (
            &["d.csv", "--outcome", "g"],
            &["`g` cannot be the outcome", "3 different", "I(g == \"a\")"],
        ),
        (&["words.csv"], &["no column can be the outcome", "--outcome"]),
    ] {
        let run = folder.run(&[&["init"], arguments].concat());
        run.failed(&arguments.join(" "), 2, parts);
    }
    assert!(!folder.path("d.toml").exists());
}

#[test]
fn files_of_other_ways_of_writing_get_studies_that_read_them() {
    let folder = Folder::empty();
    // Decimal commas, names of rows, a mark of missing values.
    let row = |i: u32| {
        let x = if i == 17 { "n/a".into() } else { format!("{},{}", i * 7 % 13, i % 10) };
        format!("\"{i}\";{};{x};{}\n", i % 2, ["a", "b"][i as usize % 3 % 2])
    };
    folder.write("d.csv", "\"\";y;x;g\n".to_string() + &(0..60).map(row).collect::<String>());
    let text = writes(&folder, &["d.csv", "--outcome", "y"], "d.toml", true);
    for part in
        ["\ndecimal = \",\"\n", "\nna = [\"n/a\"]\n", "y ~ scale(x) + g", "Here that is 1 of 60."]
    {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    assert!(!text.contains("row.names"), "{text}");

    // Without the two keys the file is refused, with the line and what to write.
    let study = "[data]\npath = \"d.csv\"\n[[model]]\nformula = \"y ~ x\"\nfamily = \"logistic\"\n";
    folder.write("plain.toml", study);
    let check = folder.run(&["check", "plain.toml"]);
    assert_eq!(check.code, Some(2), "{check:?}");
    let parts = ["d.csv, line 2, column `x`: `0,0` seems to be a number", "decimal = \",\""];
    assert!(parts.iter().all(|part| check.err.contains(part)), "{check:?}");

    // Blanks between values, in the home folder.
    let row = |i: u32| format!("{}   {}\n", i % 2, i * 7 % 13);
    let rows = (0..40).map(row).collect::<String>();
    folder.write("home/data/e.txt", format!("y x\n{rows}"));
    folder.write("e.toml", study.replace("d.csv", "~/data/*.txt"));
    let check = |home: &str| {
        let mut command = folder.command(&["check", "e.toml"]);
        let output = command.env("HOME", folder.path(home)).output().expect("the program runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, out, err) = check("home");
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("40 rows"), "{out}");
    let (code, _, err) = check("nowhere");
    assert!(code == Some(2) && err.contains("matches no file"), "{err}");
}
