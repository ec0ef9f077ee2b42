//! Run directories, step by step, as typed.

use crate::shared::files;
use crate::{Folder, NULL, STUDY, data};
use serde_json::Value;
use std::time::{Duration, SystemTime};

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
            &["compare", "s.toml", "--engine", "slurm", "--detach", "--posterior", "p"],
            &["--posterior is about the result", "consilience combine DIR"],
        ),
        (
            &["ask", "s.toml", "--run", "q", "--sites", "a,b", "--keep-draws", "d"],
            &["draws of a site's chains stay with the site", "--posterior"],
        ),
        (&["split", "s.toml", "--run", "t", "--keep-draws", "d"], &["there are no draws to keep"]),
        (
            &["split", "s.toml", "--run", "t", "--combine", "normal", "--leave-one-out"],
            &["leaving shards out is for combine = \"exact\""],
        ),
    ] {
        folder.run(arguments).failed(&arguments.join(" "), 2, parts);
    }
    let mut no_slurm = folder.command(&["compare", "s.toml", "--engine", "slurm"]);
    let said = no_slurm.env("PATH", "").output().unwrap();
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("there is no `sbatch` here") && said.contains("login node"), "{said}");
    let dot = STUDY.replace("y ~ x", "y ~ .");
    let folder = Folder::with(&dot, &data());
    let run = folder.run(&["ask", "s.toml", "--run", "q", "--sites", "a,b"]);
    run.failed("all columns", 2, &["`.` stands for all columns", "name the columns"]);
}

/// Works and combines until the result is there, which is printed with these flags.
pub fn finish(folder: &Folder, flags: &[&str]) -> String {
    for _ in 0..50 {
        let run = folder.run(&[&["combine", "r"], flags].concat());
        if matches!(run.code, Some(0 | 1)) {
            return run.out;
        }
        assert_eq!(run.code, Some(4), "{run:?}");
        assert_eq!(folder.run(&["work", "r", "--threads", "1"]).code, Some(0));
    }
    panic!("the run does not end");
}

fn document(text: &str) -> Value {
    let mut value: Value = serde_json::from_str(text).expect("JSON");
    value["seconds"] = Value::Null;
    value
}

#[test]
fn a_run_delivers_what_compare_delivers() {
    let folder = Folder::with(&format!("{STUDY}{NULL}"), &data());
    let wishes = ["--prior-scale", "0.5,2", "--leave-one-out"];
    let tables = ["--parameters", "--bayes-factors", "--posterior"];
    let straight =
        folder.run(&[&["compare", "s.toml", "--json", "--posterior", "a"], &wishes[..]].concat());
    assert_eq!(straight.code, Some(0), "{straight:?}");
    // Wished for when the run is made …
    let split = folder.run(&[&["split", "s.toml", "--run", "r"], &wishes[..]].concat());
    assert_eq!(split.code, Some(0), "{split:?}");
    let out = finish(&folder, &["--json", "--posterior", "b"]);
    assert_eq!(document(&out), document(&straight.out));
    assert_eq!(document(&folder.read("r/result.json")), document(&straight.out));
    assert!(files(&folder.path("a")) == files(&folder.path("b")), "the draws differ");
    let table = folder.run(&[&["combine", "r"], &tables[..], &["c"]].concat()).out;
    for part in
        ["Log Bayes factors", "Parameters of m ", "Each shard left out", "priors", "c/m.parquet"]
    {
        assert!(table.contains(part), "{part}: {table}");
    }
    // … or when it is combined: from then on, and until it is made without.
    std::fs::remove_dir_all(folder.path("r")).unwrap();
    assert_eq!(folder.run(&["split", "s.toml", "--run", "r"]).code, Some(0));
    assert!(document(&finish(&folder, &["--json"]))["leave_one_out"].is_null());
    let first = folder.run(&[&["combine", "r"], &wishes[..]].concat());
    assert_eq!(first.code, Some(4), "other priors are to be asked about: {first:?}");
    assert!(!folder.path("r/result.json").exists());
    let plain = folder.run(&[&["compare", "s.toml", "--json"], &wishes[..]].concat());
    let expected = document(&plain.out);
    assert_eq!(document(&finish(&folder, &["--json"])), expected);
    assert_eq!(folder.run(&["split", "s.toml", "--run", "r"]).code, Some(0));
    let plain = folder.run(&["combine", "r", "--json"]);
    assert_eq!((plain.code, &document(&plain.out)["prior_sensitivity"]), (Some(0), &Value::Null));

    // Draws of the shards' chains, and of the posterior from them.
    let normal = ["--combine", "normal", "--local", "nuts+warp3", "--draws", "200"];
    let keep = |chains, draws| ["--keep-draws", chains, "--posterior", draws, "--json"];
    let straight = folder.run(&[&["compare", "s.toml"], &normal[..], &keep("e", "f")[..]].concat());
    assert!(matches!(straight.code, Some(0 | 1)), "{straight:?}");
    std::fs::remove_dir_all(folder.path("r")).unwrap();
    let split = ["split", "s.toml", "--run", "r", "--keep-draws", "g"];
    assert_eq!(folder.run(&[&split, &normal[..]].concat()).code, Some(0));
    let out = finish(&folder, &["--posterior", "h", "--json"]);
    assert_eq!(document(&out), document(&straight.out));
    assert!(files(&folder.path("e")) == files(&folder.path("g")), "the shards' draws differ");
    assert!(files(&folder.path("f")) == files(&folder.path("h")), "the draws differ");
}

#[test]
fn sites_deliver_it_too_under_their_names() {
    let folder = Folder::with(&format!("{STUDY}{NULL}"), &data());
    let ask = ["ask", "s.toml", "--run", "r", "--sites", "leeds,york", "--leave-one-out"];
    assert_eq!(folder.run(&ask).code, Some(0));
    for _ in 0..50 {
        let run =
            folder.run(&["combine", "r", "leeds", "york", "--parameters", "--posterior", "p"]);
        if run.code == Some(0) {
            assert!(
                run.out.contains("Each site left out") && run.out.contains("\nyork "),
                "{run:?}"
            );
            assert!(run.out.contains("Parameters of m ") && folder.path("p/m.parquet").is_file());
            return;
        }
        // At first there are no letters.
        assert!(matches!(run.code, Some(2 | 4)), "{run:?}");
        let questions = files(&folder.path("r/questions"));
        let question = format!("r/questions/{}", questions.last().unwrap().0);
        for site in ["leeds", "york"] {
            assert_eq!(folder.answer(&question, site, "d.csv", site).code, Some(0));
        }
    }
    panic!("the run does not end");
}

#[test]
fn who_waits_is_told_when_the_run_has_failed() {
    let study = STUDY.replace("[split]", "weights = \"w\"\n[split]");
    // The twelfth row has no whole weight; the first round finds that.
    let rows: Vec<String> = data().lines().map(String::from).collect();
    let bad = rows[12].clone() + ".5";
    let text = rows.iter().enumerate().map(|(i, r)| if i == 12 { &bad } else { r });
    let text: Vec<&str> = text.map(String::as_str).collect();
    let folder = Folder::with(&study, &(text.join("\n") + "\n"));
    assert_eq!(folder.run(&["split", "s.toml", "--run", "r"]).code, Some(0));
    let waiting = |command: &str| {
        let mut command = folder.command(&[command, "r", "--wait", "--quiet"]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command.spawn().expect("the program starts")
    };
    let (worker, coordinator) = (waiting("work"), waiting("combine"));
    let ended = |child: std::process::Child| {
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = ended(coordinator);
    assert_eq!(code, Some(2), "{said}");
    let reason = said.trim_start_matches("error: ").trim_end();
    assert!(reason.contains("line 13") && reason.contains("whole numbers"), "{reason}");
    let (code, said) = ended(worker);
    assert_eq!(code, Some(3), "{said}");
    for part in ["the run has failed", reason, "work r --retry", "combine r"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let status = folder.run(&["status", "r"]).out;
    assert!(status.contains("The run has failed: ") && status.contains(reason), "{status}");
    let status: Value = serde_json::from_str(&folder.run(&["status", "r", "--json"]).out).unwrap();
    assert_eq!(status["failure"], reason);
    // Nobody waits in vain, even if it comes later; and what is computed again may go well.
    let late = folder.run(&["work", "r", "--wait"]);
    assert!(late.code == Some(3) && late.err.contains(reason), "{late:?}");
    assert_eq!(folder.run(&["work", "r", "--retry"]).code, Some(0));
    let status: Value = serde_json::from_str(&folder.run(&["status", "r", "--json"]).out).unwrap();
    assert!(status["failure"].is_null());
}

#[test]
fn a_second_coordinator_is_told_so() {
    let folder = Folder::with(STUDY, &data());
    assert_eq!(folder.run(&["split", "s.toml", "--run", "r"]).code, Some(0));
    let lock = std::fs::File::create(folder.path("r/lock")).unwrap();
    lock.lock().unwrap();
    for flags in [&[][..], &["--wait"], &["--leave-one-out"]] {
        let run = folder.run(&[&["combine", "r"], flags].concat());
        run.failed("two at once", 2, &["r/lock", "another program coordinates this run"]);
    }
    drop(lock);
    assert_eq!(folder.run(&["combine", "r"]).code, Some(4));
}

/// Machines whose clocks are years apart: every file is as old or as new as it likes.
#[test]
fn clocks_may_differ() {
    let folder = Folder::with(&format!("{STUDY}{NULL}"), &data());
    assert_eq!(folder.run(&["split", "s.toml", "--run", "r"]).code, Some(0));
    let (mut rounds, mut number) = (0, 0u64);
    let out = loop {
        assert!(rounds < 50, "the run does not end");
        let run = folder.run(&["combine", "r", "--json"]);
        if run.code == Some(0) {
            break run.out;
        }
        rounds += 1;
        let work = folder.run(&["work", "r"]);
        // Nothing is computed again because it seems to be old.
        assert_eq!(work.out, format!("4 answers written, {} there before.\n", 4 * (rounds - 1)));
        let mut folders = vec![folder.path("r")];
        while let Some(path) = folders.pop() {
            for entry in std::fs::read_dir(path).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
                let years = Duration::from_secs(31_557_600 * (10 + number % 70));
                let day = SystemTime::UNIX_EPOCH + years;
                file.set_modified(day).unwrap();
                number += 13;
            }
        }
    };
    assert_eq!(document(&out), document(&folder.run(&["compare", "s.toml", "--json"]).out));
}

#[test]
fn a_site_is_told_when_its_sums_give_its_rows_away() {
    let study = STUDY.replace("y ~ x", "y ~ x + g + n").replace("logistic", "gaussian");
    let folder = Folder::with(&study, &data());
    let few: Vec<String> = data().lines().take(6).map(String::from).collect();
    folder.write("few.csv", few.join("\n") + "\n");
    let ask = ["ask", "s.toml", "--run", "r", "--sites", "large,small"];
    assert_eq!(folder.run(&ask).code, Some(0));
    for round in 1..=2 {
        let questions = files(&folder.path("r/questions"));
        let question = format!("r/questions/{}", questions.last().unwrap().0);
        for (site, data) in [("large", "d.csv"), ("small", "few.csv")] {
            let answer = folder.answer(&question, site, data, site);
            assert_eq!(answer.code, Some(0), "{answer:?}");
            let shown = folder.run(&["show", site]).out;
            // Five rows, and five columns: sums of products of them are in the second round's answer, where
            // statistics come with the survey, and in none before.
            let given_away = site == "small" && round == 2;
            assert_eq!(answer.out.contains("[rows-given-away]"), given_away, "{answer:?}");
            assert_eq!(shown.contains("up to a rotation; min_rows"), given_away, "{shown}");
        }
        let combined = folder.run(&["combine", "r", "large", "small"]);
        assert_eq!(combined.code == Some(4), round < 2, "{combined:?}");
    }
}
