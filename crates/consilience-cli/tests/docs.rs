//! The documentation is true: its studies are valid, and its lists of keys and codes are complete.

use consilience::data::Formula;
use consilience::model::Family;
use consilience::study::{
    ClusterOn, Combine, Heredity, Local, Missing, SelectBy, ShareRule, Sizes, SplitBy, StudyFile,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn page(name: &str) -> String {
    read(&root().join("docs").join(name))
}

/// The pages of the documentation, and the README if there is one.
fn pages() -> Vec<PathBuf> {
    let folder = root().join("docs");
    let entries = std::fs::read_dir(&folder).expect("there is a folder docs");
    let mut pages: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .chain([root().join("README.md")].into_iter().filter(|path| path.is_file()))
        .collect();
    pages.sort();
    pages
}

/// A block between two fences.
struct Block {
    line: usize,
    language: String,
    text: String,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (line, content) in (1..).zip(text.lines()) {
        match (open.take(), content.strip_prefix("```")) {
            (None, Some(language)) => {
                let language = language.trim().to_string();
                open = Some(Block { line, language, text: String::new() });
            }
            (None, None) => {}
            (Some(block), Some(_)) => found.push(block),
            (Some(mut block), None) => {
                block.text += content;
                block.text.push('\n');
                open = Some(block);
            }
        }
    }
    if let Some(block) = open {
        panic!("the fence on line {} is never closed", block.line);
    }
    found
}

/// The lines of a page from a heading `## …` to the next.
fn section(text: &str, heading: &str) -> String {
    let lines = text.lines().skip_while(|line| line.trim_end() != format!("## {heading}"));
    let section: Vec<&str> = lines
        .enumerate()
        .take_while(|(i, l)| *i == 0 || !l.starts_with("## "))
        .map(|p| p.1)
        .collect();
    assert!(!section.is_empty(), "there is no heading `## {heading}`");
    section.join("\n")
}

/// The rows of all tables whose first cell stands in backticks: that cell without them, the others.
fn rows(text: &str) -> Vec<(String, Vec<String>)> {
    let row = |line: &str| {
        // A bar within a cell is written with a backslash.
        let line = line.replace("\\|", "\u{a6}");
        let cells: Vec<String> =
            line.trim().trim_matches('|').split('|').map(|c| c.trim().to_string()).collect();
        let key = cells.first()?.strip_prefix('`')?.strip_suffix('`')?.to_string();
        Some((key, cells[1..].to_vec()))
    };
    text.lines().filter(|line| line.starts_with('|')).filter_map(row).collect()
}

#[test]
fn every_study_is_valid() {
    let mut studies = 0;
    for page in pages() {
        for block in blocks(&read(&page)).into_iter().filter(|b| b.language == "toml") {
            let place = format!("{}, block on line {}", page.display(), block.line);
            let study = StudyFile::parse(&block.text, &page)
                .unwrap_or_else(|e| panic!("{place} is not a valid study: {e}"));
            for model in &study.study.models {
                if let Err(error) = Formula::parse(&model.formula) {
                    panic!("{place}, model `{}`: {error}", model.name);
                }
            }
            studies += 1;
        }
    }
    assert!(studies >= 5, "{studies} studies were found; is the fence `toml` still used?");
}

/// The keys of a table, as the error about an unknown one lists them.
fn known_keys(study: &str) -> Vec<String> {
    let message = match StudyFile::parse(study, Path::new("study.toml")) {
        Ok(_) => panic!("was read although it has an unknown key: {study}"),
        Err(error) => error.to_string(),
    };
    let list = message.split_once("(known: ").and_then(|(_, rest)| rest.split_once(')'));
    let (list, _) = list.unwrap_or_else(|| panic!("no list of known keys in: {message}"));
    list.split(", ").map(|key| key.trim_matches('`').to_string()).collect()
}

#[test]
fn every_key_of_the_study_is_described() {
    let text = page("study.md");
    let described: BTreeSet<String> = rows(&section(&text, "Tables and keys"))
        .into_iter()
        .map(|(key, cells)| {
            assert!(cells.iter().all(|cell| !cell.is_empty()), "`{key}` has an empty cell");
            key
        })
        .collect();
    let mut known = BTreeSet::new();
    for table in known_keys("qqqq = 1\n") {
        let head = if table == "model" { "[[model]]".to_string() } else { format!("[{table}]") };
        // What stands under [schema] has names of the data's.
        let (inner, path) = match table.as_str() {
            "schema" => ("[schema.NAME]".to_string(), "schema.NAME".to_string()),
            _ => (head.clone(), table.clone()),
        };
        for key in known_keys(&format!("{inner}\nqqqq = 1\n")) {
            known.insert(format!("{path}.{key}"));
        }
        assert!(text.contains(&format!("### `{head}`")), "{head} has no heading");
    }
    assert!(known.contains("data.path") && known.contains("model.formula"), "{known:?}");
    assert_eq!(described, known, "docs/study.md (left) and the program (right) differ");
}

#[test]
fn every_choice_of_the_study_is_described() {
    let text = page("study.md");
    let names = Local::ALL
        .map(Local::name)
        .into_iter()
        .chain(Combine::ALL.map(Combine::name))
        .chain(ShareRule::ALL.map(ShareRule::name))
        .chain(Sizes::ALL.map(Sizes::name))
        .chain(ClusterOn::ALL.map(ClusterOn::name))
        .chain(Missing::ALL.map(Missing::name))
        .chain(SplitBy::NAMES)
        .chain(Family::ALL.map(Family::name))
        .chain(SelectBy::ALL.map(SelectBy::name))
        .chain(Heredity::ALL.map(Heredity::name))
        .map(|name| format!("`\"{name}\"`"));
    let own = Family::ALL.into_iter().flat_map(|family| family.owns().iter().copied());
    for shown in names.chain(own.map(|name| format!("`{name}`"))) {
        assert!(text.contains(&shown), "docs/study.md does not mention {shown}");
    }
}

/// All Rust files below a folder.
fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// Apart, so that this file does not find itself.
const CALL: &str = concat!("Warning", "::new(");

/// The codes of all warnings in a source text, each with its level in lower case.
///
/// A code is a text in quotes; or a constant of the same file; or the argument of a closure
/// `let name = |code, …| …` around the call, of which every call then names one.
fn codes(source: &str) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    for (at, _) in source.match_indices(CALL) {
        let line = source[..at].lines().count();
        let mut arguments = source[at + CALL.len()..].splitn(3, ',').map(str::trim);
        let (level, code) = (arguments.next().unwrap_or(""), arguments.next().unwrap_or(""));
        let Some(level) = level.strip_prefix("Level::").map(str::to_lowercase) else {
            return Err(format!("line {line}: the level `{level}` is not written out"));
        };
        let codes = match quoted(code) {
            Some(code) => vec![code],
            None => named(source, at, code),
        };
        if codes.is_empty() {
            return Err(format!("line {line}: cannot tell which code `{code}` is"));
        }
        found.extend(codes.into_iter().map(|code| (code, level.clone())));
    }
    Ok(found)
}

/// The text in quotes that this begins with.
fn quoted(text: &str) -> Option<String> {
    text.trim_start().strip_prefix('"')?.split_once('"').map(|(inside, _)| inside.to_string())
}

/// The codes that a name in a call at this place can stand for.
fn named(source: &str, at: usize, name: &str) -> Vec<String> {
    let constant = format!("const {name}: &str =");
    if let Some((_, value)) = source.split_once(&constant) {
        return quoted(value).into_iter().collect();
    }
    let Some((_, statement)) = source[..at].rsplit_once("let ") else { return Vec::new() };
    let Some((closure, parameters)) = statement.split_once(" = |") else { return Vec::new() };
    let parameters = parameters.split('|').next().unwrap_or("");
    if !parameters.split(',').any(|p| p.split(':').next().unwrap_or("").trim() == name) {
        return Vec::new();
    }
    let call = format!("{closure}(");
    source.split(call.as_str()).skip(1).filter_map(quoted).collect()
}

#[test]
fn codes_are_found_however_they_are_written() {
    let literal = format!("{CALL}Level::Note, \"a-b\", message, advice)");
    assert_eq!(codes(&literal), Ok(vec![("a-b".into(), "note".into())]));
    let lines = format!("x({CALL}\n    Level::Unreliable,\n    \"c\",\n    format!(\"d\"))");
    assert_eq!(codes(&lines), Ok(vec![("c".into(), "unreliable".into())]));
    let constant = format!("const CODE: &str = \"e\";\n{CALL}Level::Note, CODE, message, advice)");
    assert_eq!(codes(&constant), Ok(vec![("e".into(), "note".into())]));
    let closure = format!(
        "let warn = |code, m: String| {CALL}Level::Caution, code, m, advice);\nwarn(\"f\", x);\nwarn(\"g\", y);"
    );
    let expected = ["f", "g"].map(|code| (code.to_string(), "caution".to_string()));
    assert_eq!(codes(&closure), Ok(expected.to_vec()));
    assert!(codes(&format!("{CALL}Level::Note, unknown, message, advice)")).is_err());
    assert!(codes(&format!("{CALL}level, \"h\", message, advice)")).is_err());
}

#[test]
fn every_warning_is_described() {
    let mut files = Vec::new();
    rust_files(&root().join("crates"), &mut files);
    let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        let codes = codes(&read(&file)).unwrap_or_else(|e| panic!("{}, {e}", file.display()));
        for (code, level) in codes {
            known.entry(code).or_default().insert(level);
        }
    }
    // One of each way to write a code.
    for code in ["pareto-k", "not-normal", "clusters-unused", "few-rows"] {
        assert!(known.contains_key(code), "{code} is not among {known:?}");
    }
    let mut described: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (code, cells) in rows(&section(&page("json.md"), "Warnings")) {
        assert!(cells.len() == 5 && cells.iter().all(|c| !c.is_empty()), "the row of `{code}`");
        assert!(!described.contains_key(&code), "`{code}` is described twice");
        described.insert(code, [cells[0].clone()].into());
    }
    assert_eq!(described, known, "docs/json.md (left) and the sources (right) differ");
}

/// The names of all fields of a document; those of estimates and of warnings once, by their kind.
fn fields(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            let has = |key: &str| object.contains_key(key);
            let path = if object.len() == 2 && has("value") && has("se") {
                "estimate"
            } else if has("code") && has("advice") {
                "warning"
            } else {
                path
            };
            for (key, value) in object {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                fields(value, &path, found);
                found.insert(path);
            }
        }
        Value::Array(items) => {
            items.iter().for_each(|item| fields(item, &format!("{path}[]"), found));
        }
        _ => {}
    }
}

/// Asserts that two documents have the same keys wherever both have an object.
fn same_keys(example: &Value, real: &Value, path: &str) {
    match (example, real) {
        (Value::Object(a), Value::Object(b)) => {
            let (ours, theirs): (BTreeSet<&String>, BTreeSet<&String>) =
                (a.keys().collect(), b.keys().collect());
            assert_eq!(ours, theirs, "the example (left) and the program (right) at `{path}`");
            a.iter().for_each(|(key, value)| same_keys(value, &b[key], &format!("{path}.{key}")));
        }
        (Value::Array(a), Value::Array(b)) => {
            if let Some(real) = b.first() {
                a.iter().for_each(|item| same_keys(item, real, &format!("{path}[]")));
            }
        }
        (Value::Null, _) | (_, Value::Null) => {}
        _ => {
            let kind = |v: &Value| [v.is_number(), v.is_string(), v.is_array(), v.is_object()];
            assert_eq!(kind(example), kind(real), "the type at `{path}`");
        }
    }
}

/// A small study: a row with a missing value and a column twice, so that there are warnings.
fn write_study(folder: &Path) -> PathBuf {
    let mut data = String::from("y,x,g\n,1,a\n");
    for i in 0..60_u32 {
        let x = f64::from(i % 11) / 5.0 - 1.0;
        let y = 0.5 + x + f64::from(i * 7 % 13) / 6.5 - 1.0;
        data += &format!("{y},{x},{}\n", ["a", "b"][i as usize % 2]);
    }
    std::fs::write(folder.join("data.csv"), data).expect("a file");
    let study = r#"
        [data]
        path = "data.csv"

        [split]
        shards = 2

        [[model]]
        name = "twice"
        formula = "y ~ x + I(2 * x) + g"
        family = "gaussian"

        [[model]]
        name = "once"
        formula = "y ~ x"
        family = "gaussian"
    "#;
    let path = folder.join("study.toml");
    std::fs::write(&path, study).expect("a file");
    path
}

fn compare(study: &Path, flags: &[&str]) -> Value {
    let run = Command::new(env!("CARGO_BIN_EXE_consilience"))
        .arg("compare")
        .arg(study)
        .args(["--json", "--quiet", "--threads", "1"])
        .args(flags)
        .output()
        .expect("the program runs");
    // 1: so few rows make an unreliable result, which is all the same here.
    let finished = matches!(run.status.code(), Some(0 | 1));
    assert!(finished, "{flags:?}: {:?}\n{}", run.status, String::from_utf8_lossy(&run.stderr));
    serde_json::from_slice(&run.stdout).expect("one JSON document")
}

#[test]
fn every_field_of_the_document_is_described() {
    let folder = tempfile::tempdir().expect("a folder");
    let study = write_study(folder.path());
    let exact = compare(&study, &["--prior-scale", "2,1e-9", "--leave-one-out"]);
    let local = compare(&study, &["--local", "importance", "--shard-details"]);
    let normal = compare(&study, &["--combine", "normal"]);
    let laplace = compare(&study, &["--combine", "normal", "--local", "laplace"]);

    let mut known = BTreeSet::new();
    for document in [&exact, &local, &normal, &laplace] {
        fields(document, "", &mut known);
    }
    for kind in ["estimate.se", "warning.code", "models[].shards[].k_hat"] {
        assert!(known.contains(kind), "{kind} is not among {known:?}");
    }
    let text = page("json.md");
    let mut described = BTreeSet::new();
    for (field, cells) in rows(&section(&text, "Fields")) {
        assert!(cells.len() == 2 && cells.iter().all(|c| !c.is_empty()), "the row of `{field}`");
        assert!(described.insert(field.clone()), "`{field}` is described twice");
    }
    assert_eq!(described, known, "docs/json.md (left) and the program (right) differ");

    let examples: Vec<Block> = blocks(&text).into_iter().filter(|b| b.language == "json").collect();
    assert!(!examples.is_empty(), "docs/json.md has no example");
    for block in examples {
        let example: Value = serde_json::from_str(&block.text)
            .unwrap_or_else(|e| panic!("docs/json.md, block on line {}: {e}", block.line));
        let one_round = example["models"][0]["combination"].is_null();
        same_keys(&example, if one_round { &normal } else { &exact }, "");
    }
}

#[test]
fn every_field_of_baselines_is_described() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = Command::new(env!("CARGO_BIN_EXE_consilience"))
        .arg("baselines")
        .arg(write_study(folder.path()))
        .args(["--json", "--quiet", "--threads", "1"])
        .output()
        .expect("the program runs");
    let finished = matches!(run.status.code(), Some(0 | 1));
    assert!(finished, "{:?}\n{}", run.status, String::from_utf8_lossy(&run.stderr));
    let document: Value = serde_json::from_slice(&run.stdout).expect("one JSON document");
    let mut known = BTreeSet::new();
    fields(&document, "", &mut known);
    let elsewhere = ["partition", "traffic", "seconds", "warning.", "estimate."];
    known.retain(|field| !elsewhere.iter().any(|part| field.starts_with(part)));
    let described: BTreeSet<String> =
        rows(&section(&page("json.md"), "Baselines")).into_iter().map(|(field, _)| field).collect();
    assert_eq!(described, known, "docs/json.md (left) and the program (right) differ");
}

/// `select` on a study, which must finish.
fn select(study: &Path, flags: &[&str]) -> String {
    let run = Command::new(env!("CARGO_BIN_EXE_consilience"))
        .arg("select")
        .arg(study)
        .args(flags)
        .output()
        .expect("the program runs");
    let finished = matches!(run.status.code(), Some(0 | 1));
    assert!(finished, "{flags:?}: {:?}\n{}", run.status, String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).expect("UTF-8")
}

#[test]
fn every_field_of_a_selection_is_described() {
    let study = root().join("examples/select.toml");
    let mut known = BTreeSet::new();
    for method in ["enumerate", "search", "reversible-jump", "jump-shares"] {
        let flags = ["--json", "--draws", "1000", "--models", "glu + bmi,glu", "--method", method];
        let text = select(&study, &flags);
        let document: Value = serde_json::from_str(&text).expect("one JSON document");
        fields(&document, "", &mut known);
    }
    // Those have their place in docs/json.md.
    let elsewhere = ["partition.", "traffic.", "provenance.", "warning.", "estimate."];
    known.retain(|field| !elsewhere.iter().any(|part| field.starts_with(part)));
    let text = page("select.md");
    let described: BTreeSet<String> =
        rows(&section(&text, "The JSON document")).into_iter().map(|(field, _)| field).collect();
    assert_eq!(described, known, "docs/select.md (left) and the program (right) differ");
}

#[test]
fn the_first_look_is_what_the_program_prints() {
    let printed =
        select(&root().join("examples/select.toml"), &["--top", "5", "--kernel", "portable"]);
    let text = page("select.md");
    let shown = blocks(&text).into_iter().find(|b| b.language == "text").expect("an output");
    // The seconds are nobody's promise.
    let (printed, _) = printed.trim_end().rsplit_once(", ").expect("a time");
    assert_eq!(shown.text.trim_end(), printed);
}

#[test]
fn every_field_of_a_sweep_is_described() {
    let run = Command::new(env!("CARGO_BIN_EXE_consilience"))
        .arg("sweep")
        .arg(root().join("examples/toy.toml"))
        .args(["--shards", "2,4,8", "--repeats", "2", "--draws", "500", "--json", "--quiet"])
        .args(["--local", "importance"])
        .output()
        .expect("the program runs");
    let document: Value = serde_json::from_slice(&run.stdout).expect("one JSON document");
    let mut known = BTreeSet::new();
    fields(&document, "", &mut known);
    let elsewhere = ["warning.", "estimate."];
    known.retain(|field| !elsewhere.iter().any(|part| field.starts_with(part)));
    let described: BTreeSet<String> = rows(&section(&page("sweep.md"), "The JSON document"))
        .into_iter()
        .map(|(field, _)| field)
        .collect();
    assert_eq!(described, known, "docs/sweep.md (left) and the program (right) differ");
}

/// The study of docs/priors.md with another prior of the coefficients, and flags: the log Bayes factor of the larger
/// model at every scale.
fn of_mass(folder: &Path, prior: &str, flags: &[&str]) -> Value {
    let text = page("priors.md");
    let study = blocks(&text).into_iter().find(|b| b.language == "toml").expect("a study").text;
    let data = root().join("data/pima_tr.csv");
    let study = study.replace("data/pima_tr.csv", &data.display().to_string());
    let study = study.replace("normal(0, 1) per sd", prior);
    let path = folder.join("glucose.toml");
    std::fs::write(&path, study).expect("a file");
    compare(&path, flags)
}

#[test]
fn the_numbers_of_the_page_on_priors_are_the_programs() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = page("priors.md");
    let number = |cell: &String| cell.parse::<f64>().expect("a number");
    let gap = |models: &Value| {
        let value = |k: usize| models[k]["log_evidence"]["value"].as_f64().expect("a number");
        value(1) - value(0)
    };
    let shown = rows(&section(&text, "Lindley's paradox"));
    let scales: Vec<String> = shown.iter().map(|(scale, _)| scale.clone()).collect();
    let found =
        of_mass(folder.path(), "normal(0, 1) per sd", &["--prior-scale", &scales.join(",")]);
    assert_eq!(shown.len(), 8);
    for ((scale, cells), real) in
        shown.iter().zip(found["prior_sensitivity"].as_array().expect("a list"))
    {
        assert_eq!(scale.parse::<f64>().ok(), real["scale"].as_f64());
        assert!((number(&cells[0]) - gap(&real["models"])).abs() < 6e-4, "at {scale}");
        let probability = real["models"][1]["probability"].as_f64().expect("a number");
        assert!((number(&cells[1]) - probability).abs() < 6e-4, "at {scale}");
    }
    let codes: Vec<&str> = found["warnings"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|w| w["code"].as_str())
        .collect();
    assert!(codes.contains(&"prior-ranking"), "{codes:?}");
    let shown = rows(&section(&text, "Side by side"));
    assert_eq!(shown.len(), 11);
    for (prior, cells) in shown {
        let found = of_mass(folder.path(), &prior, &[]);
        assert!((number(&cells[0]) - gap(&found["models"])).abs() < 6e-4, "{prior}");
    }
}
