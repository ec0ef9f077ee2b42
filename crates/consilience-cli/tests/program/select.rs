//! `consilience select` as its users see it.

use super::{Folder, data};
use serde_json::Value;

const STUDY: &str = r#"[data]
path = "d.csv"

[split]
shards = 3

[select]
outcome = "y"
family = "logistic"
candidates = "x + n + g"
"#;

fn folder(study: &str) -> Folder {
    Folder::with(study, &data())
}

#[test]
fn tables_and_json_say_the_same() {
    let folder = folder(STUDY);
    let text = folder.run(&["select", "s.toml"]);
    assert_eq!(text.code, Some(0), "{text:?}");
    for part in [
        "8 models",
        "probability it belongs in",
        "All other models together",
        "Most probable model",
        "Averaged over all models",
    ] {
        assert!(text.out.contains(part), "{part}: {}", text.out);
    }
    let json = folder.run(&[
        "select", "s.toml", "--json", "--out", "found", "--top", "3", "--models", "x + g,g",
    ]);
    assert_eq!(json.code, Some(0), "{json:?}");
    let found: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(folder.read("found/result.json"), json.out);
    assert_eq!(found["models"].as_array().unwrap().len(), 3);
    assert_eq!(found["named"].as_array().unwrap().len(), 2);
    for term in found["inclusion"].as_array().unwrap() {
        let p = term["probability"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&p) && term["se"].as_f64().is_some(), "{term}");
        assert!(text.out.contains(&format!("{p:.4}")), "{p} is not in {}", text.out);
    }
    assert!(found["log_normaliser"]["se"].as_f64().is_some());
}

#[test]
fn a_study_is_for_one_command() {
    let folder = folder(STUDY);
    folder.write("models.toml", super::STUDY);
    for (arguments, wanted) in [
        (&["compare", "s.toml"][..], "run `consilience select`"),
        (&["baselines", "s.toml"], "run `consilience select`"),
        (&["select", "models.toml"], "needs [select]"),
        (&["select", "s.toml", "--models", "x + z"], "there is no candidate `z`"),
        (&["select", "s.toml", "--top", "0"], "`select.top` must be at least 1"),
        (&["select", "s.toml", "--method", "searching"], "search"),
        (&["split", "s.toml", "--run", "r", "--leave-one-out"], "go with [[model]]"),
    ] {
        let run = folder.run(arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {run:?}");
        assert!(run.err.contains(wanted), "{arguments:?}: {}", run.err);
    }
    let check = folder.run(&["check", "s.toml"]);
    assert_eq!(check.code, Some(0), "{check:?}");
    assert!(
        check.out.contains("8 models of the candidates x, n, g")
            && check.out.contains("consilience select s.toml"),
        "{}",
        check.out
    );
}

#[test]
fn a_run_directory_and_sites_choose_too() {
    let study = STUDY.replace("candidates", "method = \"search\"\ncandidates");
    let folder = folder(&study);
    let known = folder.run(&["select", "s.toml", "--json"]);
    let mut run = folder.run(&["split", "s.toml", "--run", "r"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    for _ in 0..40 {
        run = folder.run(&["combine", "r", "--json"]);
        if run.code != Some(4) {
            break;
        }
        folder.run(&["work", "r"]);
    }
    assert_eq!(run.code, Some(0), "{run:?}");
    let bits = |out: &str| {
        let mut value: Value = serde_json::from_str(out).unwrap();
        value["seconds"] = Value::Null;
        value
    };
    assert_eq!(bits(&run.out), bits(&known.out));
    // Two sites with half of the rows each.
    let all = data();
    let (head, rows) = all.split_once('\n').unwrap();
    let half = |k: usize| {
        let rows = rows.lines().enumerate().filter(|(i, _)| i % 2 == k).map(|(_, row)| row);
        format!("{head}\n{}\n", rows.collect::<Vec<_>>().join("\n"))
    };
    folder.write("a.csv", half(0));
    folder.write("b.csv", half(1));
    let study = study.replace("[split]\nshards = 3\n", "");
    folder.write("sites.toml", &study);
    let ask = folder.run(&["ask", "sites.toml", "--sites", "a,b", "--run", "sites"]);
    assert!(matches!(ask.code, Some(0 | 4)), "{ask:?}");
    let question = || {
        let mut all: Vec<_> = std::fs::read_dir(folder.path("sites/questions")).unwrap().collect();
        all.sort_by_key(|e| e.as_ref().unwrap().file_name());
        all.pop().unwrap().unwrap().path().to_str().unwrap().to_string()
    };
    let mut run = ask;
    for _ in 0..40 {
        let question = question();
        for site in ["a", "b"] {
            let data = format!("{site}.csv");
            let out = format!("{site}.answer");
            let _ = std::fs::remove_file(folder.path(&out));
            let answer = folder.answer(&question, site, &data, &out);
            assert_eq!(answer.code, Some(0), "{answer:?}");
        }
        run = folder.run(&["combine", "sites", "a.answer", "b.answer"]);
        if run.code != Some(4) {
            break;
        }
    }
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.contains("8 models looked at"), "{}", run.out);
}
