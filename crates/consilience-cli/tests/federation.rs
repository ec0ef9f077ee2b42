//! docs/federation.md, run as it stands.

#![cfg(unix)]

use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The page's blocks in this language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = page;
    let fence = format!("\n```{language}\n");
    while let Some(at) = rest.find(&fence) {
        let body = &rest[at + fence.len()..];
        let end = body.find("\n```").expect("fences are closed");
        found.push(body[..end].to_string());
        rest = &body[end..];
    }
    found
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn the_page_on_federation_is_true() {
    let page = std::fs::read_to_string(root().join("docs/federation.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::copy(root().join("data/pima_tr.csv"), folder.join("pima_tr.csv")).unwrap();
    let studies = blocks(&page, "toml");
    assert_eq!(studies.len(), 1);
    std::fs::write(folder.join("study.toml"), &studies[0]).unwrap();
    let commands = blocks(&page, "sh");
    assert!(commands.len() >= 9, "{} blocks", commands.len());
    // What the page starts in the background ends with it, also if something fails.
    let script = "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n".to_string()
        + &commands.join("\n");
    let program = Path::new(env!("CARGO_BIN_EXE_consilience"));
    let search = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let run = |command: &mut Command| {
        let output = command.current_dir(folder).env("PATH", &search).output().unwrap();
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        );
        assert!(output.status.success(), "{out}\n{err}");
        (out, err)
    };
    let (out, err) = run(Command::new("bash").args(["-c", &script]));
    // What the page says is printed.
    for part in [
        "1 answer taken in, 0 known before",
        "round 1 (describe): 1 of 3 sites have answered; missing: york, hull",
    ] {
        assert!(page.contains(part) && err.contains(part), "{part}: {err}");
    }
    for part in [
        "A question file (round 1",
        "An answer file of the site `leeds`",
        "[site-left-out] the site `hull` was left out",
        "the run is finished: ",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(!out.contains("patients.csv, line") && out.contains("It is signed with the key"));

    // The same bits as in one place.
    let pooled = |files: &[&str], name: &str| {
        let paths: Vec<String> = files.iter().map(|f| format!("\"{f}/patients.csv\"")).collect();
        let text = studies[0].replace("\"patients.csv\"", &format!("[{}]", paths.join(", ")));
        std::fs::write(folder.join(name), text + "\n[split]\nby = \"file\"\n").unwrap();
        let (out, _) = run(Command::new(program).args(["compare", name, "--json", "--quiet"]));
        serde_json::from_str::<Value>(&out).unwrap()
    };
    let three = json(&folder.join("three-sites.json"));
    let bytes = |name: &str| std::fs::read(folder.join(name)).unwrap();
    assert_eq!(bytes("three-sites.json"), bytes("live.run/result.json"));
    let here = pooled(&["leeds", "york", "hull"], "three.toml");
    assert_eq!(three["models"], here["models"]);
    assert_eq!(three["partition"]["rows"], here["partition"]["rows"]);
    let two = json(&folder.join("trial.run/result.json"));
    assert_eq!(two["models"], pooled(&["leeds", "york"], "two.toml")["models"]);
    assert_eq!(two["warnings"][0]["code"], "site-left-out");

    // Every file that left is in the log.
    let log = std::fs::read_to_string(folder.join("leeds/answered.jsonl")).unwrap();
    let letters = std::fs::read_dir(folder.join("mail")).unwrap();
    let sent = letters
        .filter(|l| l.as_ref().unwrap().file_name().to_string_lossy().starts_with("leeds-"))
        .count();
    assert!(log.lines().count() >= sent && sent > 5, "{log}");
}

/// A policy is kept to, and what it refuses is said.
#[test]
fn a_site_keeps_to_its_policy() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let program = env!("CARGO_BIN_EXE_consilience");
    let row = |i: i32| {
        let g = match i {
            0..3 => "rare",
            3..6 => "seldom",
            _ => ["a", "b"][i as usize % 2],
        };
        format!("{},{}.5,{g}\n", i * 5 % 3 % 2, i % 7)
    };
    let data = "y,x,g\n".to_string() + &(0..50).map(row).collect::<String>();
    std::fs::write(folder.join("d.csv"), data).unwrap();
    let study = "[data]\npath = \"d.csv\"\n[[model]]\nformula = \"y ~ g + x\"\nfamily = \"logistic\"\n[evidence]\nschedule = \"gentle\"\n";
    std::fs::write(folder.join("s.toml"), study).unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(folder).output().unwrap();
        let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    assert_eq!(run(&["ask", "s.toml", "--run", "r", "--sites", "one,two"]).0, Some(0));
    let newest = || {
        let questions = std::fs::read_dir(folder.join("r/questions")).unwrap();
        let names = questions.map(|q| q.unwrap().path()).filter(|p| p.extension().is_some());
        names.max().unwrap().display().to_string()
    };
    let question = newest();
    let refused = |policy: &str, arguments: &[&str], part: &str| {
        std::fs::write(folder.join("p.toml"), policy).unwrap();
        let base = ["answer", &question, "--policy", "p.toml", "--out", "refused.answer"];
        let (code, out, err) = run(&[&base, arguments].concat());
        assert_eq!((code, out.as_str()), (Some(2), ""), "{policy}: {err}");
        assert!(err.contains(part), "{policy}: {err}");
        assert!(!folder.join("refused.answer").exists());
    };
    let one = &["--site", "one", "--data", "d.csv"];
    refused("min_rows = 51", one, "there are 50 complete rows, and the policy's min_rows is 51");
    refused("forbid = [\"describe\"]", one, "a question of kind `describe` is not answered");
    refused("studies = [\"abc\"]", one, "is not among `studies`");
    refused("max_questions = 0\nlog = \"\"", one, "`max_questions` needs a log");
    refused("max_questions = 0\nlog = \"l\"", one, "max_questions = 0");
    refused("coordinators = [\"abc\"]", one, "is not among `coordinators`");
    refused("min_row = 1", one, "unknown field `min_row`");
    refused("", &["--site", "three", "--data", "d.csv"], "it is not for the site `three`");
    std::fs::write(folder.join("other.csv"), "y,g\n1,a\n").unwrap();
    refused("", &["--site", "one", "--data", "other.csv"], "there is no column `x`");
    refused("", &["--site", "one", "--data", "none.csv"], "there is no such file");

    // Three rows of a level are too few to be shown; in the end nobody knows its name.
    std::fs::write(folder.join("p.toml"), "min_rows = 5\nlog = \"l\"\n").unwrap();
    for _ in 0..40 {
        let question = newest();
        for site in ["one", "two"] {
            let arguments = [
                "answer", &question, "--site", site, "--data", "d.csv", "--policy", "p.toml",
                "--out", site,
            ];
            let (code, out, err) = run(&arguments);
            assert_eq!(code, Some(0), "{err}");
            assert!(out.contains("Rare levels were merged in g"), "{out}");
            let (_, shown, _) = run(&["show", site]);
            assert!(!shown.contains("`rare`") && !shown.contains("seldom"), "{shown}");
        }
        let (code, out, err) = run(&["combine", "r", "one", "two", "--json"]);
        if code == Some(0) {
            let result: Value = serde_json::from_str(&out).unwrap();
            let names: Vec<&str> = result["models"][0]["parameters"]
                .as_array()
                .unwrap()
                .iter()
                .map(|p| p["name"].as_str().unwrap())
                .collect();
            assert_eq!(names, ["(Intercept)", "gb", "gother", "x"]);
            assert_eq!(result["warnings"][0]["code"], "levels-merged");
            return;
        }
        assert_eq!(code, Some(4), "{err}");
    }
    panic!("the run does not end");
}
