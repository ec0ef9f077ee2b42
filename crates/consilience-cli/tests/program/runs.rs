//! Run directories, step by step, as typed.

use crate::{Folder, NULL, STUDY, data};
use serde_json::Value;

#[test]
fn a_run_step_by_step() {
    let folder = Folder::with(&format!("{STUDY}{NULL}"), &data());
    let split = folder.run(&["split", "s.toml", "--run", "r"]);
    assert!(split.code == Some(0) && split.out.contains("40 rows in 4 shards"), "{split:?}");

    let first = folder.run(&["combine", "r"]);
    assert_eq!((first.code, first.out.as_str()), (Some(4), ""), "{first:?}");
    assert!(first.err.contains("round 1 (describe): 0 of 4 shards have answered"), "{first:?}");
    assert!(first.err.contains("Next: consilience work r"), "{first:?}");
    let one = folder.run(&["work", "r", "--shard", "1"]);
    assert_eq!((one.code, one.out.as_str()), (Some(0), "1 answer written, 0 there before.\n"));
    let status = folder.run(&["status", "r"]);
    assert!(status.out.contains("1 of 4  3 (000000, 000002, 000003)"), "{}", status.out);

    let mut rounds = 0;
    let result = loop {
        assert!(rounds < 50, "the run does not end");
        rounds += 1;
        assert_eq!(folder.run(&["work", "r", "--threads", "1"]).code, Some(0));
        let run = folder.run(&["combine", "r", "--json"]);
        if run.code == Some(0) {
            break run.out;
        }
        assert_eq!(run.code, Some(4), "{run:?}");
    };
    let mut straight = folder.json(0, &[]);
    straight["seconds"] = Value::Null;
    assert_eq!(serde_json::from_str::<Value>(&result).unwrap(), straight);
    assert_eq!(folder.read("r/result.json"), result);
    let table = folder.run(&["combine", "r"]);
    assert!(table.code == Some(0) && table.out.contains("log evidence"), "{table:?}");
    let status = folder.run(&["status", "r", "--json"]);
    let status: Value = serde_json::from_str(&status.out).unwrap();
    assert_eq!(status["finished"], true);
    assert_eq!(status["rounds"].as_array().unwrap().len(), rounds);
}

#[test]
fn wrong_runs() {
    let folder = Folder::with(STUDY, &data());
    assert_eq!(folder.run(&["split", "s.toml", "--run", "r"]).code, Some(0));
    for (arguments, parts) in [
        (&["work", "r", "--shard", "9"][..], &["there is no shard 9; the run has 0 to 3"][..]),
        (&["work", "r", "--shard", "3-1"], &["numbers of shards are needed, such as 7 or 0-9,15"]),
        (&["work", "none"], &["none: there is no such run directory", "consilience split"]),
        (&["combine", "."], &["this is no run directory: it has no manifest.json"]),
        (&["combine", "r", "--without", "x"], &["there is no site `x` to leave out"]),
        (&["split", "s.toml", "--run", "."], &["holds other files and no run"]),
        (&["split", "s.toml", "--run", "d.csv"], &["d.csv", "name a folder"]),
        (&["split", "s.toml", "--run", "r", "--seed", "5"], &["the run of another study"]),
        (&["ask", "s.toml", "--run", "q", "--sites", "a,b,a"], &["the site `a` is named twice"]),
        (&["ask", "s.toml", "--run", "q", "--sites", "a b"], &["cannot be a site's name"]),
        (&["show", "d.csv"], &["d.csv: this is no answer file"]),
        (&["compare", "s.toml", "--detach"], &["--detach needs --engine slurm"]),
        (
            &["compare", "s.toml", "--engine", "slurm", "--leave-one-out"],
            &["needs --engine threads"],
        ),
    ] {
        folder.run(arguments).failed(&arguments.join(" "), 2, parts);
    }
    let dot = STUDY.replace("y ~ x", "y ~ .");
    let folder = Folder::with(&dot, &data());
    let run = folder.run(&["ask", "s.toml", "--run", "q", "--sites", "a,b"]);
    run.failed("all columns", 2, &["`.` stands for all columns", "name the columns"]);
}
