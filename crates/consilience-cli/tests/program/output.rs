//! What the program prints and writes.

use crate::{Folder, NULL, STUDY, data, shipped};
use serde_json::Value;
use std::process::Stdio;

/// The good study with a second model.
fn two_models() -> String {
    STUDY.to_string() + NULL
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}

/// The document without what differs from run to run.
fn timeless(mut document: Value) -> Value {
    assert!(document["seconds"].is_f64());
    document["seconds"].take();
    document
}

/// The codes of warnings at this level, of the whole or of a model.
fn codes<'a>(warnings: &'a Value, level: &str) -> Vec<&'a str> {
    let at_level = list(warnings).iter().filter(|w| w["level"] == level);
    at_level.map(|w| w["code"].as_str().expect("a code")).collect()
}

fn has_keys(value: &Value, keys: &[&str]) {
    for key in keys {
        assert!(value.get(key).is_some(), "there is no `{key}` in {value}");
    }
}

#[test]
fn the_json_document_has_the_documented_keys() {
    let folder = Folder::with(&two_models(), &data());
    for flags in [&[][..], &["--combine", "normal"], &["--local", "laplace"]] {
        let run = folder.run(&[&["compare", "s.toml", "--json"], flags].concat());
        // One document, and nothing but it.
        let document: Value = serde_json::from_str(&run.out).expect("one JSON document");
        let keys = ["models", "warnings", "partition", "rounds", "bytes_moved", "seconds"];
        has_keys(&document, &keys);
        assert_eq!(document["version"], 1);
        assert!(number(&document["rounds"]) >= 1.0 && number(&document["bytes_moved"]) > 0.0);
        has_keys(&document["partition"], &["shards", "rows", "dropped", "by", "seed", "hash"]);
        assert_eq!(document["partition"]["rows"], 40);
        for model in list(&document["models"]) {
            has_keys(model, &["name", "probability", "parts", "parameters", "warnings", "shards"]);
            has_keys(&model["log_evidence"], &["value", "se"]);
            has_keys(&model["log_bayes_factor"], &["value", "se"]);
            has_keys(&model["parts"], &["shards", "overlap", "log_alpha"]);
            for parameter in list(&model["parameters"]) {
                has_keys(parameter, &["name", "mean", "sd"]);
            }
            for (i, shard) in list(&model["shards"]).iter().enumerate() {
                has_keys(shard, &["index", "rows", "share", "log_evidence", "method"]);
                assert_eq!((&shard["index"], &shard["rows"]), (&i.into(), &10.0.into()));
                assert_eq!(shard["share"], 0.25);
            }
        }
    }
}

#[test]
fn models_are_compared_lawfully_and_in_the_study_s_order() {
    let third = NULL.replace("null", "third").replace("y ~ 1", "y ~ x + g");
    let folder = Folder::with(&(two_models() + &third), &data());
    for flags in [&[][..], &["--combine", "normal"], &["--shards", "1"]] {
        let run = folder.run(&[&["compare", "s.toml", "--json"], flags].concat());
        let document: Value = serde_json::from_str(&run.out).expect("JSON");
        let models = list(&document["models"]);
        let names: Vec<&str> = models.iter().filter_map(|m| m["name"].as_str()).collect();
        assert_eq!(names, ["m", "null", "third"]);
        let total: f64 = models.iter().map(|m| number(&m["probability"])).sum();
        assert!((total - 1.0).abs() < 1e-12, "{total}");

        let evidence = |m: &Value| number(&m["log_evidence"]["value"]);
        let best = models.iter().map(evidence).fold(f64::NEG_INFINITY, f64::max);
        for model in models {
            let factor = &model["log_bayes_factor"];
            let value = number(&factor["value"]);
            if evidence(model) == best {
                assert_eq!((value, number(&factor["se"])), (0.0, 0.0));
            } else {
                assert!(value <= 0.0 && (value - (evidence(model) - best)).abs() < 1e-12);
                assert!(number(&factor["se"]) > 0.0);
            }
        }
    }
}

#[test]
fn evidences_are_made_of_their_parts() {
    let folder = Folder::with(&two_models(), &data());
    let run = folder.run(&["compare", "s.toml", "--json", "--combine", "normal"]);
    let normal: Value = serde_json::from_str(&run.out).expect("JSON");
    for model in list(&normal["models"]) {
        let part = |name: &str| number(&model["parts"][name]["value"]);
        let whole = number(&model["log_evidence"]["value"]);
        assert!((whole - part("shards") - part("overlap")).abs() < 1e-9);
        let shards = list(&model["shards"]);
        let sum: f64 = shards.iter().map(|s| number(&s["log_evidence"]["value"])).sum();
        assert!((sum - part("shards")).abs() < 1e-9);
        assert!(shards.iter().all(|s| s["method"] == "importance"));
    }
    // Exact needs no shard's own evidence, and computes none unasked.
    for model in list(&folder.json(0, &[])["models"]) {
        assert!(model["parts"]["shards"].is_null() && model["parts"]["overlap"].is_null());
        let shards = list(&model["shards"]);
        assert!(shards.iter().all(|s| s["log_evidence"].is_null() && s["method"].is_null()));
    }
    // Asked for Laplace's, it has values without error bars.
    for model in list(&folder.json(0, &["--local", "laplace"])["models"]) {
        assert!(number(&model["log_evidence"]["se"]) > 0.0);
        assert!(model["parts"]["shards"]["se"].is_null());
        for shard in list(&model["shards"]) {
            assert_eq!(shard["method"], "laplace");
            assert!(shard["log_evidence"]["se"].is_null());
            assert!(shard["log_evidence"]["value"].is_f64());
        }
    }
}

#[test]
fn the_result_does_not_depend_on_threads() {
    let folder = Folder::with(&two_models(), &data());
    for method in [&[][..], &["--combine", "normal"], &["--local", "importance"]] {
        let with_threads = |threads: &str| {
            let flags = ["compare", "s.toml", "--json", "--threads", threads];
            let run = folder.run(&[&flags[..], method].concat());
            // As text: every bit counts.
            let lines = run.out.lines().filter(|line| !line.contains("\"seconds\""));
            (run.code, lines.map(String::from).collect::<Vec<_>>())
        };
        let one = with_threads("1");
        assert!(one.1.len() > 50);
        assert!(with_threads("2") == one && with_threads("5") == one, "{method:?}");
    }
}

#[test]
fn the_document_is_also_written_to_a_folder() {
    let folder = Folder::with(&two_models(), &data());
    let printed = folder.json(0, &["--out", "results/today"]);
    let written = folder.read("results/today/result.json");
    assert_eq!(timeless(serde_json::from_str(&written).unwrap()), timeless(printed));
    // With a table on stdout as well, over the old file, and nothing else is left behind.
    let run = folder.run(&["compare", "s.toml", "--out", "results/today", "--seed", "2"]);
    assert_eq!(run.code, Some(0));
    assert_ne!(folder.read("results/today/result.json"), written);
    assert_eq!(std::fs::read_dir(folder.path("results/today")).unwrap().count(), 1);
}

#[test]
fn the_table_says_what_the_document_says() {
    let folder = Folder::with(&two_models(), &(data() + "1,2,NA,a,1\n0,1,,b,1\n"));
    let run = folder.run(&["compare", "s.toml"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    let document = folder.json(0, &[]);
    let hash = document["partition"]["hash"].as_str().unwrap();
    assert!(run.out.starts_with(&format!("40 rows in 4 shards (by random, partition {hash})")));
    for model in list(&document["models"]) {
        let name = model["name"].as_str().unwrap();
        let of_model = |line: &&str| line.starts_with(&format!("{name} "));
        let row = run.out.lines().find(of_model).expect("a row");
        let shown: f64 = row[name.len()..].split_whitespace().next().unwrap().parse().unwrap();
        assert!((shown - number(&model["log_evidence"]["value"])).abs() < 1e-3, "{row}");
    }
    assert_eq!(run.out.matches("0 (best)").count(), 1);
    // Rows that were left out are counted, and noted.
    assert_eq!(document["partition"]["dropped"], 2);
    assert_eq!(codes(&document["warnings"], "note"), ["rows-dropped"]);
    assert!(
        run.out.contains("note [rows-dropped] 2 rows were left out because a value is missing")
    );
}

/// The lines of a text, none of which may be wider than 80 columns.
fn within_80(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
}

#[test]
fn models_are_sorted_by_probability_and_a_sentence_says_what_it_comes_to() {
    let third = NULL.replace("null", "third").replace("y ~ 1", "y ~ g");
    let folder = Folder::with(&format!("{STUDY}{NULL}{third}"), &data());
    let run = folder.run(&["compare", "s.toml", "--prior-scale", "0.5,2", "--leave-one-out"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    within_80(&run.out);
    let document = folder.json(0, &[]);
    let mut models = list(&document["models"]).clone();
    models.sort_by(|a, b| number(&b["probability"]).total_cmp(&number(&a["probability"])));
    let place = |m: &Value| {
        let name = format!("\n{} ", m["name"].as_str().unwrap());
        run.out.find(&name).unwrap_or_else(|| panic!("no row of {name}: {}", run.out))
    };
    assert!(models.windows(2).all(|pair| place(&pair[0]) < place(&pair[1])), "{}", run.out);
    // The sentence of the document stands below the table, whatever the lines.
    let best = &document["best"];
    let sentence = best["sentence"].as_str().expect("a sentence");
    let flat = run.out.replace('\n', " ");
    assert!(flat.contains(sentence), "{sentence} is not in {}", run.out);
    assert!(sentence.contains(best["name"].as_str().unwrap()), "{sentence}");
    assert!(sentence.contains(best["next"].as_str().unwrap()), "{sentence}");
    // Odds are those of the probabilities.
    for model in &models {
        let odds = number(&model["log_odds"]["value"]);
        let ratio = number(&model["probability"]) / number(&models[0]["probability"]);
        assert!((odds - ratio.ln()).abs() < 1e-9, "{model}");
    }
}

#[test]
fn unequal_priors_are_shown_and_kept_apart_from_the_data() {
    let study = format!("{STUDY}probability = 0.001\n{NULL}probability = 0.999\n");
    let folder = Folder::with(&study, &data());
    let run = folder.run(&["compare", "s.toml"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    within_80(&run.out);
    let head = run.out.lines().nth(2).expect("a head");
    assert!(head.contains("prior") && run.out.contains("0.9990"), "{}", run.out);
    let flat = run.out.replace('\n', " ");
    assert!(flat.contains("prior odds of 999 to 1 for `null`"), "{flat}");
    // Of equal ones nothing is said.
    let equal = Folder::with(&two_models(), &data()).run(&["compare", "s.toml"]).out;
    assert!(!equal.contains("prior"), "{equal}");
}

#[test]
fn long_and_wide_names_stay_within_80_columns_and_align() {
    let long = "a model with a name that is as long as a sentence and says what is in it";
    let study = two_models().replace("\"null\"", &format!("\"{long}\""));
    let run = Folder::with(&study, &data()).run(&["compare", "s.toml"]);
    let table: String = run.out.lines().take_while(|l| !l.starts_with('`')).collect();
    assert!(table.contains(long), "{}", run.out);
    run.out.lines().take(8).for_each(within_80);
    let wide = two_models().replace("\"null\"", "\"血糖\"");
    let out = Folder::with(&wide, &data()).run(&["compare", "s.toml"]).out;
    let lines: Vec<&str> = out.lines().skip(2).take(3).collect();
    // Every letter of 血糖 takes two columns, so that its line has two letters fewer.
    let width =
        |line: &str| line.chars().map(|c| if c > '\u{2e80}' { 2 } else { 1 }).sum::<usize>();
    assert!(lines.iter().all(|line| width(line) == width(lines[0])), "{out}");
}

#[test]
fn shards_have_the_names_of_what_their_rows_have_in_common() {
    let folder = Folder::with(&two_models(), &data());
    let document = folder.json(0, &["--by", "column:g"]);
    let names = list(&document["partition"]["names"]);
    assert_eq!(names.len(), number(&document["partition"]["shards"]) as usize);
    let run = folder.run(&["compare", "s.toml", "--by", "column:g", "--leave-one-out"]);
    for name in names {
        let row = format!("\n{} ", name.as_str().unwrap());
        assert!(run.out.contains(&row), "{row} is not in {}", run.out);
    }
    assert!(folder.json(0, &[])["partition"]["names"].is_null());
    // Files by their names.
    folder.write("more.csv", data());
    let files =
        folder.json(0, &["--by", "file", "--data", "d.csv", "--data", "more.csv", "--shards", "2"]);
    assert_eq!(files["partition"]["names"], serde_json::json!(["d.csv", "more.csv"]));
}

#[test]
fn the_document_says_what_made_it() {
    let folder = Folder::with(&two_models(), &data());
    let document = folder.json(0, &["--seed", "5", "--split-seed", "9"]);
    let made = &document["provenance"];
    assert_eq!((&made["program"], &made["seed"]), (&"consilience".into(), &5.into()));
    assert_eq!(
        (&made["version"], &made["split_seed"]),
        (&env!("CARGO_PKG_VERSION").into(), &9.into())
    );
    assert_eq!(made["data"][0]["name"], "d.csv");
    let hash = |d: &Value, key: &str| d["provenance"][key].clone();
    assert_eq!(made["data"][0]["sha256"].as_str().map(str::len), Some(64));
    // Another seed is another study; another value in the data is another file.
    assert_ne!(hash(&document, "study"), hash(&folder.json(0, &[]), "study"));
    folder.write("d.csv", data() + "1,2,0.5,a,1\n");
    let other = folder.json(0, &["--seed", "5", "--split-seed", "9"]);
    assert_eq!(hash(&other, "study"), hash(&document, "study"));
    assert_ne!(hash(&other, "data"), hash(&document, "data"));
}

#[test]
fn shells_and_man_are_told_of_every_command() {
    let folder = Folder::empty();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let run = folder.run(&["completions", shell]);
        assert_eq!(run.code, Some(0), "{run:?}");
        for word in ["compare", "prior-scale", "combine", "completions"] {
            assert!(run.out.contains(word), "{word} is not in the script for {shell}");
        }
        assert!(!run.out.contains("\\u{"), "the script for {shell} is changed on its way");
    }
    assert_eq!(folder.run(&["completions", "tcsh"]).code, Some(2));
    let page = folder.run(&["man"]).out;
    assert!(page.contains(".TH") && page.contains("compare"), "{page}");
    assert_eq!(folder.run(&["man", "--out", "man1"]).code, Some(0));
    let compare = folder.read("man1/consilience-compare.1");
    assert!(compare.contains("leave") && compare.contains("Examples"), "{compare}");
    assert!(!folder.path("man1/consilience-slurm-step.1").exists());
}

#[test]
fn no_colour_where_nobody_sees_it() {
    let folder = Folder::with(&two_models(), &data());
    let run = folder.run(&["compare", "s.toml"]);
    assert!(!run.out.contains('\u{1b}'), "{}", run.out);
}

#[test]
fn check_counts_rows_and_not_weights() {
    let study = two_models().replace("[data]", "[data]\nweights = \"w\"");
    let rows: String =
        (0..12).map(|i| format!("{},{},{}\n", i % 2, i % 5, 1 + 9 * (i % 3))).collect();
    let folder = Folder::with(&study, &format!("y,x,w\n{rows}"));
    let run = folder.run(&["check", "s.toml", "--shards", "3"]);
    assert!(run.out.contains("3 shards of 4 rows"), "{run:?}");
}

#[test]
fn every_help_fits_80_columns() {
    let folder = Folder::empty();
    let commands = folder.run(&["--help"]).out;
    within_80(&commands);
    let mut seen = 0;
    for line in commands.lines().skip_while(|l| *l != "Commands:").skip(1) {
        let Some(name) = line.strip_prefix("  ").and_then(|l| l.split(' ').next()) else { break };
        if name.is_empty() {
            continue;
        }
        within_80(&folder.run(&["help", name]).out);
        within_80(&folder.run(&[name, "-h"]).out);
        seen += 1;
    }
    assert!(seen > 15, "{commands}");
}

#[test]
fn fixed_parameters_are_reported_as_such() {
    let study = STUDY.to_string() + "[model.prior.parameters]\nx = \"fixed(0.25)\"\n";
    let document = Folder::with(&study, &data()).json(0, &[]);
    let parameters = list(&document["models"][0]["parameters"]);
    let named = |name: &str| parameters.iter().find(|p| p["name"] == name).expect(name);
    assert_eq!((number(&named("x")["mean"]), number(&named("x")["sd"])), (0.25, 0.0));
    assert!(number(&named("(Intercept)")["sd"]) > 0.0);
}

#[test]
fn prior_probabilities_are_normalised_with_a_note() {
    let study = format!("{STUDY}probability = 2\n{NULL}probability = 1\n");
    let folder = Folder::with(&study, &data());
    let document = folder.json(0, &[]);
    let prior = |i: usize| number(&document["models"][i]["prior_probability"]);
    assert_eq!((prior(0), prior(1)), (2.0 / 3.0, 1.0 / 3.0));
    assert_eq!(codes(&document["warnings"], "note"), ["probabilities-normalised"]);
    // They weigh in: posterior odds are prior odds times the Bayes factor.
    let posterior = |i: usize| number(&document["models"][i]["probability"]);
    let evidence = |i: usize| number(&document["models"][i]["log_evidence"]["value"]);
    let odds = (posterior(0) / posterior(1)).ln();
    assert!((odds - 2f64.ln() - (evidence(0) - evidence(1))).abs() < 1e-9);
    let check = folder.run(&["check", "s.toml"]).out;
    assert!(check.contains("prior probability 0.6667") && check.contains("sum to 3"), "{check}");
}

#[test]
fn flags_take_the_study_s_place() {
    let folder = Folder::empty();
    folder.write("studies/s.toml", two_models());
    folder.write("studies/d.csv", data());
    folder.write("more.csv", data() + "1,2,0.5,a,1\n");
    let compare = |flags: &[&str]| -> Value {
        let run = folder.run(&[&["compare", "studies/s.toml", "--json"], flags].concat());
        assert_eq!(run.code, Some(0), "{run:?}");
        serde_json::from_str(&run.out).expect("JSON")
    };
    // The study's path starts from its folder, the flag's from the working directory.
    assert_eq!(compare(&[])["partition"]["rows"], 40);
    assert_eq!(compare(&["--data", "more.csv"])["partition"]["rows"], 41);
    let both = compare(&["--data", "studies/*.csv", "--data", "more.csv"]);
    assert_eq!(both["partition"]["rows"], 81);
    let split = compare(&["--shards", "5", "--split-seed", "9"]);
    assert_eq!(
        (&split["partition"]["shards"], &split["partition"]["seed"]),
        (&5.into(), &9.into())
    );
    assert_ne!(split["partition"]["hash"], compare(&["--shards", "5"])["partition"]["hash"]);
    let partition = |flags: &[&str]| compare(flags)["partition"].clone();
    assert_eq!(partition(&["--by", "column:g"])["shards"], 3);
    assert_eq!(partition(&["--by", "file", "--data", "more.csv"])["shards"], 1);
    assert_eq!(partition(&["--by", "outcome"])["by"], "outcome");
    let tossed = partition(&["--sizes", "multinomial"]);
    assert_eq!((&tossed["by"], &tossed["shards"]), (&"random".into(), &4.into()));
    assert_ne!(tossed["hash"], partition(&["--sizes", "equal"])["hash"]);
    let nuts =
        ["--combine", "normal", "--local", "nuts+warp3", "--draws", "200", "--warmup", "150"];
    let run = folder
        .run(&[&["compare", "studies/s.toml", "--json", "--chains", "3"], &nuts[..]].concat());
    let document: Value = serde_json::from_str(&run.out).expect("JSON");
    assert_eq!(document["models"][0]["shards"][0]["draws"], 600);
    let longer = [&nuts[..7], &["160", "--json", "--chains", "3"]].concat();
    let run = folder.run(&[&["compare", "studies/s.toml"], &longer[..]].concat());
    let other: Value = serde_json::from_str(&run.out).expect("JSON");
    assert_ne!(other["models"][0]["log_evidence"], document["models"][0]["log_evidence"]);
    let draws = |flags: &[&str]| compare(flags)["models"][0]["combination"]["draws"].clone();
    assert!(number(&draws(&["--draws", "200"])) <= 200.0);
    let value = |flags: &[&str]| number(&compare(flags)["models"][0]["log_evidence"]["value"]);
    assert_ne!(value(&["--seed", "5"]), value(&["--seed", "6"]));
    assert_eq!(value(&["--seed", "5"]), value(&["--seed", "5"]));
}

#[test]
fn check_prints_the_plan_and_runs_nothing() {
    let folder = Folder::with(&two_models(), &data());
    let run = folder.run(&["check", "s.toml", "--shards", "8"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    for part in [
        "s.toml is a valid study.",
        "d.csv: 40 rows (0 left out)",
        "8 shards of 5 rows, by random (seed 1, partition ",
        "exact: Newton rounds",
        "model 1   m\n          y ~ x\n          logistic, 2 free parameters, prior probability 0.5",
        "\n          normal(0, 3.10736): (Intercept)\n          normal(0, 1.94257): x\n",
        "model 2   null",
        "Nothing was run. To run it: consilience compare s.toml",
    ] {
        assert!(run.out.contains(part), "`{part}` is not in: {}", run.out);
    }
    assert!(!run.out.contains("log evidence"));
    assert!(folder.run(&["check", "s.toml", "--json"]).code == Some(2));
}

#[test]
fn unreliable_results_are_marked_and_have_an_exit_code() {
    let folder = Folder::with(&STUDY.replace("y ~ x", "late ~ 0 + dep_delay + carrier"), "");
    let flights = shipped("flights.parquet");
    let flights = flights.to_str().expect("UTF-8");
    let few = ["--data", flights, "--shards", "50", "--draws", "1000", "--combine", "normal"];
    let document = folder.json(1, &few);
    let unreliable = codes(&document["models"][0]["warnings"], "unreliable");
    assert!(unreliable.contains(&"not-normal"), "{unreliable:?}");
    for warning in list(&document["models"][0]["warnings"]) {
        has_keys(warning, &["code", "level", "shard", "value"]);
        assert!(warning["message"] != "" && warning["advice"] != "");
    }
    let table = folder.run(&[&["compare", "s.toml"], &few[..]].concat());
    assert_eq!(table.code, Some(1));
    assert!(table.out.contains("unreliable [not-normal] model `m`: "), "{}", table.out);
    let flat = table.out.trim_end().replace('\n', " ");
    assert!(flat.ends_with("(exit code 1): see what is marked unreliable."), "{}", table.out);
    // Where nothing is to be trusted, nothing is said about the strength.
    let sentence = document["best"]["sentence"].as_str().unwrap_or("");
    assert!(!sentence.contains("favoured") && !sentence.contains("evidence:"), "{sentence}");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = Folder::with(&two_models(), &data());
    for arguments in
        [&["compare", "s.toml", "--json"][..], &["compare", "s.toml"], &["check", "s.toml"]]
    {
        let mut command = folder.command(arguments);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        // Closed before there is anything to read.
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
fn help_names_commands_and_exit_codes() {
    let folder = Folder::empty();
    let help = folder.run(&["--help"]);
    assert_eq!(help.code, Some(0));
    for part in ["compare", "check", "init", "Exit codes:", "wrong usage or input"] {
        assert!(help.out.contains(part), "{}", help.out);
    }
    assert!(folder.run(&["--version"]).out.starts_with("consilience "));
}
