//! `consilience plot` and `--report` as their users see them.

use super::{Folder, NULL, STUDY, data};
use serde_json::Value;
use std::process::{Command, Stdio};

fn folder() -> Folder {
    let folder = Folder::with(&format!("{STUDY}{NULL}"), &data());
    let run = folder.run(&["compare", "s.toml", "--json", "--quiet", "--local", "importance"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    folder.write("r.json", run.out);
    folder
}

#[test]
fn figures_go_to_stdout_files_and_folders() {
    let folder = folder();
    let run = folder.run(&["plot", "r.json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        run.out.starts_with("<svg ") && run.out.contains("How probable each model is"),
        "{}",
        run.out
    );
    assert_eq!(folder.run(&["plot", "r.json"]).out, run.out, "the same bytes");
    folder.write("evidence.svg", "old");
    let run = folder.run(&["plot", "r.json", "--kind", "evidence", "-o", "evidence.svg"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), ""), "{run:?}");
    assert!(folder.read("evidence.svg").contains("Log evidence of each model"), "it is replaced");
    let run = folder.run(&["plot", "r.json", "--kind", "shards", "-o", "s.png", "--width", "400"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let pixels = std::fs::read(folder.path("s.png")).unwrap();
    assert!(pixels.starts_with(b"\x89PNG"));
    assert_eq!(u32::from_be_bytes(pixels[16..20].try_into().unwrap()), 800, "two pixels to each");
    let run = folder.run(&["plot", "r.json", "--kind", "all", "-o", "all"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    for kind in [
        "probabilities",
        "evidence",
        "decomposition",
        "shards",
        "parameters",
        "weights",
        "bayes-factors",
    ] {
        assert!(folder.read(&format!("all/{kind}.svg")).ends_with("</svg>\n"), "{kind}");
    }
    let run = folder.run(&["plot", "r.json", "--kind", "parameters", "--model", "null"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.contains("null (") && !run.out.contains("m ("), "{}", run.out);
}

#[test]
fn what_is_wrong_is_said() {
    let folder = folder();
    let fails = |arguments: &[&str], parts: &[&str]| {
        folder.run(&[&["plot"], arguments].concat()).failed(&format!("{arguments:?}"), 2, parts);
    };
    fails(&["r.json", "--kind", "pie"], &["r.json", "`pie`", "probabilities, evidence"]);
    fails(&["r.json", "--kind", "prior-scale"], &["--prior-scale"]);
    fails(&["r.json", "--kind", "all"], &["-o"]);
    fails(&["r.json", "-o", "x.jpeg"], &["x.jpeg", ".svg or .png"]);
    // What it reads stays, by whatever name.
    folder.write("r.svg", folder.read("r.json"));
    fails(&["r.svg", "-o", "./r.svg"], &["r.svg", "is read here"]);
    folder.write("f/shards.svg", folder.read("r.json"));
    fails(&["f/shards.svg", "--kind", "all", "-o", "f"], &["shards.svg", "is read here"]);
    assert_eq!(folder.read("r.svg"), folder.read("r.json"));
    assert_eq!(folder.read("f/shards.svg"), folder.read("r.json"));
    fails(&["r.json", "--kind", "parameters", "--model", "nobody"], &["`nobody`", "`null`"]);
    fails(&["nothing.json"], &["nothing.json", "no such file"]);
    fails(&["s.toml"], &["s.toml", "it is not JSON", "print with --json"]);
    folder.write("other.json", "{\"version\": 7}");
    fails(&["other.json"], &["other.json", "version 7"]);
    folder.write("bytes.json", [0xff, 0xfe]);
    fails(&["bytes.json"], &["not text"]);
    folder.run(&["plot", "r.json", "-o", "no/such/folder/x.svg"]).failed("folder", 3, &["x.svg"]);
}

#[test]
fn a_page_is_written_beside_the_result() {
    let folder = folder();
    let run = folder.run(&["compare", "s.toml", "--report", "page.html"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.contains("log evidence"), "the table is printed all the same");
    assert!(!run.out.contains('█'), "bars are for terminals");
    let page = folder.read("page.html");
    for part in [
        "<!doctype html>",
        "The most probable model is",
        "--report page.html",
        "[[model]]",
        "Hash of the study",
    ] {
        assert!(page.contains(part), "{part}");
    }
    folder.run(&["compare", "s.toml", "--report", "no/page.html"]).failed(
        "no folder",
        2,
        &["no/page.html"],
    );
    folder.run(&["compare", "s.toml", "--report", "."]).failed("a folder", 2, &["name a file"]);
    let run = folder.run(&["plot", "--help"]);
    for part in ["probabilities, evidence", "inclusion, models", "Examples:"] {
        assert!(run.out.contains(part), "{part}");
    }
}

#[test]
fn studies_and_data_are_not_written_over() {
    let folder = Folder::with(&format!("{STUDY}{NULL}"), &data());
    let select = STUDY.split("[[model]]").next().unwrap().to_string()
        + "[select]\noutcome = \"y\"\nfamily = \"logistic\"\ncandidates = \"x\"\n";
    folder.write("select.toml", &select);
    // Data whose name is one that a page, a table or draws could have.
    folder.write("d/groups.csv", data());
    let study = folder.read("s.toml").replace("d.csv", "d/groups.csv");
    folder.write("grouped.toml", study);
    let of = |name: &str| folder.read(name);
    let files = ["s.toml", "select.toml", "d.csv", "d/groups.csv", "grouped.toml"];
    let before = files.map(of);
    let (here, read) = ("this file is read here", "is read here");
    for (arguments, parts) in [
        (&["compare", "s.toml", "--report", "./s.toml"][..], &["s.toml", here][..]),
        (&["compare", "s.toml", "--report", "d.csv"], &["d.csv", here]),
        (
            &["compare", "s.toml", "--data", "d/*.csv", "--report", "d/groups.csv"],
            &["groups.csv", read],
        ),
        (&["compare", "s.toml", "--report", "page.txt"], &["page.txt", "ends in .html"]),
        (&["compare", "s.toml", "--report", "page"], &["page", "ends in .html"]),
        (&["select", "select.toml", "--report", "select.toml"], &["select.toml", here]),
        (&["select", "select.toml", "--report", "d.csv"], &["d.csv", here]),
        (&["sweep", "s.toml", "--report", "s.toml"], &["s.toml", here]),
        (&["sweep", "s.toml", "--report", "d.csv"], &["d.csv", here]),
        (&["sweep", "grouped.toml", "--out", "d"], &["groups.csv", read]),
        (&["schema", "s.toml", "--force", "--out", "d.csv"], &["d.csv", here]),
        (&["schema", "s.toml", "--force", "--out", "s.toml"], &["s.toml", here]),
    ] {
        folder.run(arguments).failed(&format!("{arguments:?}"), 2, parts);
        assert_eq!(files.map(of), before, "{arguments:?}");
    }
    // Draws of the model `m` beside data of that name.
    let out = folder.path("w/m.parquet");
    std::fs::create_dir_all(folder.path("w")).unwrap();
    std::fs::copy(super::shipped("sim2.parquet"), &out).unwrap();
    folder.write(
        "w.toml",
        "[data]\npath = \"w/m.parquet\"\n[[model]]\nname = \"m\"\nformula = \"y ~ x1\"\nfamily = \"logistic\"\n",
    );
    let bytes = std::fs::read(&out).unwrap();
    let run = folder.run(&["compare", "w.toml", "--posterior", "w"]);
    run.failed("draws over data", 2, &["m.parquet", read]);
    assert_eq!(std::fs::read(&out).unwrap(), bytes);
    // What would not be written is in nobody's way.
    for (name, flags) in [
        ("w/m-shard-x.parquet", &["--posterior", "w"][..]),
        ("w/m.parquet", &["--local", "nuts+bridge", "--combine", "normal", "--keep-draws", "w"]),
    ] {
        std::fs::rename(&out, folder.path(name)).unwrap();
        let study = &["compare", "w.toml", "--shards", "2", "--data", name][..];
        let run = folder.run(&[study, flags].concat());
        assert!(run.code.is_some_and(|code| code < 2), "{name}: {run:?}");
        assert_eq!(std::fs::read(folder.path(name)).unwrap(), bytes, "{name}");
        std::fs::rename(folder.path(name), &out).unwrap();
    }
    let run = folder.run(&["compare", "w.toml", "--posterior", "elsewhere", "--report", "p.HTM"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(folder.path("elsewhere/m.parquet").is_file() && folder.path("p.HTM").is_file());
}

/// A pipe is read once.
#[test]
fn a_study_comes_from_a_pipe_too() {
    let folder = folder();
    let data = folder.path("d.csv");
    let whole = folder.run(&["compare", "s.toml", "--json"]);
    let study = std::fs::File::open(folder.path("s.toml")).unwrap();
    let mut cat = Command::new("cat").stdin(study).stdout(Stdio::piped()).spawn().unwrap();
    let arguments = ["compare", "/dev/stdin", "--data", data.to_str().unwrap(), "--json"];
    let run = folder
        .command(&[&arguments[..], &["--report", "piped.html"]].concat())
        .stdin(cat.stdout.take().unwrap())
        .output()
        .unwrap();
    assert!(cat.wait().unwrap().success());
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    let models = |json: &[u8]| serde_json::from_slice::<Value>(json).unwrap()["models"].clone();
    assert_eq!(models(&run.stdout), models(whole.out.as_bytes()));
    assert!(folder.read("piped.html").contains("The most probable model is"));
}

#[test]
fn a_page_of_a_choice() {
    let study = STUDY.split("[[model]]").next().unwrap().to_string()
        + "[select]\noutcome = \"y\"\nfamily = \"logistic\"\ncandidates = \"x + n + g\"\n";
    let folder = Folder::with(&study, &data());
    let run = folder.run(&["select", "s.toml", "--report", "page.html", "--out", "o"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(folder.read("page.html").contains("Which of 3 terms belong in the model of y?"));
    let run = folder.run(&["plot", "o/result.json"]);
    assert!(run.out.contains("Which terms belong in the model?"), "{run:?}");
}
