//! What `compare` shows and writes on demand.

use crate::{Folder, NULL, STUDY, data};
use serde_json::Value;

fn folder() -> Folder {
    let third = NULL.replace("null", "with g").replace("y ~ 1", "y ~ x + g");
    Folder::with(&(STUDY.to_string() + NULL + &third), &data())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}

/// The lines of a section of the report: from this beginning to the next empty line but one.
fn section<'a>(out: &'a str, beginning: &str) -> Vec<&'a str> {
    let lines: Vec<&str> = out.lines().skip_while(|line| !line.starts_with(beginning)).collect();
    assert!(!lines.is_empty(), "`{beginning}` is not in: {out}");
    lines.into_iter().skip(2).take_while(|line| !line.is_empty()).collect()
}

#[test]
fn tables_come_on_demand() {
    let folder = folder();
    let plain = folder.run(&["compare", "s.toml"]).out;
    for title in ["Log Bayes factors", "Parameters of", "Averaged", "priors", "left out"] {
        assert!(!plain.contains(title), "{title} is in: {plain}");
    }
    assert!(plain.contains(" is favoured "), "{plain}");
    let flags = ["--bayes-factors", "--parameters", "--prior-scale", "0.5,2", "--leave-one-out"];
    let run = folder.run(&[&["compare", "s.toml"], &flags[..]].concat());
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    assert_eq!(section(&run.out, "Log Bayes factors").len(), 4);
    assert_eq!(section(&run.out, "Parameters of m ").len(), 3);
    assert_eq!(section(&run.out, "Averaged over the models").len(), 5);
    assert_eq!(section(&run.out, "The priors of all coefficients").len(), 1 + 3 * (1 + 3));
    assert_eq!(section(&run.out, "Each shard left out").len(), 5);
}

#[test]
fn the_document_has_all_pairs_scales_and_shards() {
    let folder = folder();
    let document = folder.json(0, &["--prior-scale", "2,0.5", "--leave-one-out"]);
    let models = list(&document["models"]);
    let value = |m: &Value| number(&m["log_evidence"]["value"]);
    let matrix = list(&document["bayes_factors"]);
    for (i, row) in matrix.iter().enumerate() {
        for (j, factor) in list(row).iter().enumerate() {
            let expected = value(&models[i]) - value(&models[j]);
            assert!((number(&factor["value"]) - expected).abs() < 1e-12);
        }
    }
    let sweep = list(&document["prior_sensitivity"]);
    let scales: Vec<f64> = sweep.iter().map(|at| number(&at["scale"])).collect();
    assert_eq!(scales, [0.5, 1.0, 2.0]);
    for (model, own) in list(&sweep[1]["models"]).iter().zip(models) {
        assert_eq!(model["log_evidence"], own["log_evidence"]);
        assert_eq!(model["probability"], own["probability"]);
    }
    // The model without coefficients has no prior that could be scaled.
    let null = |at: &Value| at["models"][1]["log_evidence"].clone();
    assert!(sweep.iter().all(|at| null(at) == null(&sweep[1])));
    let shards = list(&document["leave_one_out"]);
    assert_eq!(shards.len(), 4);
    for (s, shard) in shards.iter().enumerate() {
        assert_eq!((&shard["shard"], &shard["rows"]), (&s.into(), &10.0.into()));
        let total: f64 = list(&shard["models"]).iter().map(|m| number(&m["probability"])).sum();
        assert!((total - 1.0).abs() < 1e-12);
    }
    // Exactly one model is the best, and has no evidence against it.
    assert_eq!(models.iter().filter(|m| m["strength"].is_null()).count(), 1);
    let plain = folder.json(0, &[]);
    assert!(plain["prior_sensitivity"].is_null() && plain["leave_one_out"].is_null());
}

#[test]
fn posterior_draws_are_files() {
    let folder = folder();
    let run = folder.run(&["compare", "s.toml", "--posterior", "draws/today"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let mut files: Vec<_> = std::fs::read_dir(folder.path("draws/today"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, ["m.parquet", "null.parquet", "with-g.parquet"]);
    assert!(run.out.contains("Posterior draws: draws/today/m.parquet, "), "{}", run.out);
    // They are data like others: a study can read them.
    folder.write(
        "draws.toml",
        "[data]\npath = \"draws/today/m.parquet\"\n[[model]]\nformula = \"x ~ `(Intercept)`\"\nfamily = \"gaussian\"\n",
    );
    assert_eq!(folder.run(&["check", "draws.toml"]).code, Some(0));
    // From the shards' chains: consensus Monte Carlo.
    let normal = ["--combine", "normal", "--local", "nuts+warp3", "--draws", "500"];
    let kept = ["--keep-draws", "chains", "--posterior", "consensus", "--json"];
    let run = folder.run(&[&["compare", "s.toml"], &normal[..], &kept[..]].concat());
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    assert!(folder.path("consensus/with-g.parquet").is_file());
    assert!(folder.path("chains/with-g-shard-3.parquet").is_file());
}

#[test]
fn what_cannot_be_had_is_refused() {
    let folder = folder();
    folder.write("file", "");
    let cases: [(&[&str], &[&str]); 10] = [
        (&["--shard-details"], &["--shard-details", "--json", "--out"]),
        (&["--prior-scale", "0"], &["--prior-scale", "positive"]),
        (&["--prior-scale", "1,-2"], &["'-2'", "positive"]),
        (&["--prior-scale", "1,two"], &["'two'", "positive"]),
        (&["--prior-scale", ""], &["positive"]),
        (&["--prior-scale", "1e-320,1e-300"], &["cannot be made"]),
        (&["--prior-scale", "2", "--keep-draws", "d"], &["cannot be used with"]),
        (&["--leave-one-out", "--shards", "1"], &["only one shard"]),
        (&["--leave-one-out", "--combine", "normal"], &["combine = \"exact\""]),
        (&["--posterior", "file"], &["file", "folder"]),
    ];
    for (flags, parts) in cases {
        let run = folder.run(&[&["compare", "s.toml"], flags].concat());
        run.failed(&flags.join(" "), 2, parts);
    }
}
