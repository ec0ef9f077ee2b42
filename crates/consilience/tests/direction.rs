//! The arrows of ARCHITECTURE.md: a module uses only modules that stand before it in this list. And one name has one meaning.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// From the bottom up.
const ORDER: [&str; 26] = [
    "error", "warning", "halt", "hex", "math", "target", "kernel", "draft", "data", "model",
    "space", "study", "sample", "estimate", "fit", "shard", "question", "engine", "combine",
    "compare", "select", "plan", "sweep", "run", "site", "simulate",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The modules that a piece of code names after `crate::`, in comments too, tests left out.
fn used(code: &str) -> BTreeSet<String> {
    let code = code.split("#[cfg(test)]").next().unwrap_or("");
    let word = |text: &str| -> String {
        text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
    };
    let mut modules = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            None => drop(modules.insert(word(rest))),
            Some(list) => {
                let list = list.split('}').next().unwrap_or("");
                modules.extend(list.split(',').map(|item| word(item.trim())));
            }
        }
    }
    modules
}

#[test]
fn modules_use_only_those_before_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let rank = |module: &str| ORDER.iter().position(|m| *m == module);
    let mut files = Vec::new();
    sources(&root, &mut files);
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for file in files {
        let inner = file.strip_prefix(&root).unwrap();
        let top = inner.components().next().unwrap().as_os_str().to_string_lossy();
        let module = top.trim_end_matches(".rs");
        if module == "lib" {
            continue;
        }
        let own = rank(module).unwrap_or_else(|| panic!("`{module}` has no place in the order"));
        for other in used(&std::fs::read_to_string(&file).unwrap()) {
            seen += 1;
            if rank(&other).is_some_and(|other| other > own) {
                wrong.push(format!("{} uses `{other}`", inner.display()));
            }
        }
    }
    assert!(seen > 300, "only {seen} uses were found: does the test still read them?");
    assert!(wrong.is_empty(), "against the order:\n{}", wrong.join("\n"));
}

/// The types that a piece of code defines at its outer level, tests left out.
fn defined(code: &str) -> Vec<String> {
    let code = code.split("#[cfg(test)]").next().unwrap_or("");
    let name = |line: &str| -> Option<String> {
        let mut words = line.split([' ', '<', '(', ';', ':']).filter(|word| !word.is_empty());
        let mut word = words.next()?;
        if word == "pub" {
            word = words.find(|word| !matches!(*word, "crate)" | "super)"))?;
        }
        let is_type = matches!(word, "struct" | "enum" | "trait" | "type");
        is_type.then(|| words.next().map(str::to_string)).flatten()
    };
    code.lines().filter(|line| !line.starts_with(' ')).filter_map(name).collect()
}

#[test]
fn one_name_has_one_meaning() {
    let code = "pub(super) struct A<'a> {\n    type Inner = u8;\npub enum B {\ntype C = u8;\nstruct D;\n#[cfg(test)]\nstruct E;";
    assert_eq!(defined(code), ["A", "B", "C", "D"]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files {
        let inner = file.strip_prefix(&root).unwrap().display().to_string();
        for name in defined(&std::fs::read_to_string(&file).unwrap()) {
            places.entry(name).or_default().push(inner.clone());
        }
    }
    assert!(places.len() > 400, "only {} types were found", places.len());
    places.retain(|_, files| files.len() > 1);
    assert!(places.is_empty(), "types that have one name: {places:#?}");
}
