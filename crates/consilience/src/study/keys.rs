//! The keys of a study file and what their values must be, for errors about them.

use super::{
    ClusterOn, Combine, Heredity, Kernel, Local, Missing, Points, Schedule, SelectBy, ShareRule,
    Sizes, SplitBy,
};
use crate::error::{clip, suggestion};
use crate::model::Family;
use toml::de::{DeTable, DeValue};

const PRIORS: &[&str] = &[
    "default",
    "coefficients",
    "intercept",
    "log_sd",
    "log_dispersion",
    "log_df",
    "log_shape",
    "log_precision",
    "logit_zero",
    "cut",
    "log_gap",
    "parameters",
];

/// The tables of a study file and their keys.
pub(super) const TABLES: &[(&str, &[&str])] = &[
    ("", &["data", "split", "prior", "model", "select", "evidence", "schema"]),
    ("data", &["path", "missing", "weights", "columns", "delimiter", "comment", "na", "decimal"]),
    ("split", &["shards", "by", "sizes", "share", "seed", "clusters", "cluster_on"]),
    ("prior", PRIORS),
    ("model.prior", PRIORS),
    ("model", &["name", "formula", "family", "probability", "prior"]),
    (
        "select",
        &[
            "outcome",
            "family",
            "always",
            "candidates",
            "heredity",
            "prior",
            "method",
            "top",
            "se_target",
        ],
    ),
    (
        "evidence",
        &[
            "local",
            "combine",
            "draws",
            "warmup",
            "chains",
            "proposals",
            "points",
            "statistics",
            "se_target",
            "schedule",
            "rounds",
            "seed",
            "nodes",
            "kernel",
        ],
    ),
];

/// The keys of an entry of `[schema]`, whose own name is a part of a formula.
const ENTRY: &[&str] =
    &["type", "levels", "mean", "sd", "observations", "range", "coefficients", "knots"];

pub(super) const PATH: &str = "a path, a pattern such as \"data/*.csv\", or a list of them";
pub(super) const COLUMN: &str = "the name of a column";
pub(super) const COLUMNS: &str =
    "a list of the names of a text file's columns, such as [\"y\", \"x\"]";
pub(super) const DELIMITER: &str = "one character, \"tab\" or \"blanks\"";
pub(super) const NA: &str = "a list of what stands for a missing value, such as [\"-999\", \".\"]";
pub(super) const DECIMAL: &str = "\".\" or \",\"";
pub(super) const FORMULA: &str = "a formula such as \"y ~ x\"";
pub(super) const EXAMPLE: &str = "[[model]] with formula = \"y ~ x\" and family = \"gaussian\"";
pub(super) const TERMS: &str = "terms as in a formula, such as \"x1 + x2 + g\"";
const PRIOR: &str = "a text such as \"normal(0, 1)\" or \"normal(0, 2.5) per sd\"";

const INTEGER: &str = "an integer";
const NUMBER: &str = "a number";

/// What the value of a key must be, and the names that it can have if it is one of some; elements of
/// lists and models have no number in the key.
fn wanted(key: &str) -> (String, Vec<&'static str>) {
    let choices: Vec<&str> = match key {
        "data.missing" => Missing::ALL.map(Missing::name).into(),
        "split.sizes" => Sizes::ALL.map(Sizes::name).into(),
        "split.cluster_on" => ClusterOn::ALL.map(ClusterOn::name).into(),
        "split.share" => ShareRule::ALL.map(ShareRule::name).into(),
        "model.family" | "select.family" => Family::ALL.map(Family::name).into(),
        "select.heredity" => Heredity::ALL.map(Heredity::name).into(),
        "select.method" => SelectBy::ALL.map(SelectBy::name).into(),
        "evidence.local" => Local::ALL.map(Local::name).into(),
        "evidence.combine" => Combine::ALL.map(Combine::name).into(),
        "evidence.points" => Points::ALL.map(Points::name).into(),
        "evidence.schedule" => Schedule::ALL.map(Schedule::name).into(),
        "evidence.kernel" => Kernel::ALL.map(Kernel::name).into(),
        _ if in_entry(key) == Some("type") => vec!["number"],
        _ => Vec::new(),
    };
    let what = match key {
        _ if !choices.is_empty() => return (one_of(&choices), choices),
        "data.path" | "data.path[]" => PATH,
        "data.weights" | "data.columns[]" => COLUMN,
        "data.columns" => COLUMNS,
        "data.delimiter" => DELIMITER,
        "data.na" => NA,
        "data.na[]" => "a text or a number, such as \"-999\"",
        "data.decimal" => DECIMAL,
        "data.comment" => "one character, or \"\" for none",
        "split.by" => return (one_of(&SplitBy::NAMES), choices),
        "model.name" => "a name",
        "select.outcome" => "the left side of a formula, such as \"y\"",
        "select.always" | "select.candidates" => TERMS,
        "select.prior" => "a prior over models such as \"beta-binomial(1, P)\"",
        "select.top" => INTEGER,
        "model.formula" => FORMULA,
        "model.probability" | "evidence.se_target" | "select.se_target" => NUMBER,
        "evidence.statistics" => "true or false",
        _ if key.starts_with("schema.") => match in_entry(key) {
            Some("levels") => "a list of texts such as [\"a\", \"b\"]",
            Some("levels[]") => "a text",
            Some("knots") => "a list of numbers, such as [2.5, 5.0]",
            Some("range") => "a list of two numbers, such as [0.0, 10.0]",
            Some("coefficients" | "coefficients[]") => "a list of lists of numbers",
            Some(_) => NUMBER,
            _ => "a table such as { type = \"number\" } or { levels = [\"a\", \"b\"] }",
        },
        _ if key.starts_with("split.") || key.starts_with("evidence.") => INTEGER,
        _ if key.contains("prior.") && !key.ends_with("prior.parameters") => PRIOR,
        _ => return (format!("a table, {}", heading(key.trim_end_matches("[]"))), choices),
    };
    (what.to_string(), choices)
}

/// What a key names inside an entry of `[schema]`, whose own name may have dots in it.
fn in_entry(key: &str) -> Option<&str> {
    let (_, last) = key.strip_prefix("schema.")?.rsplit_once('.')?;
    ENTRY.contains(&last.split('[').next()?).then_some(last)
}

/// A key as messages show it: without the number of a model, which has a line.
pub(super) fn shown(key: &str) -> String {
    match key.strip_prefix("model[").and_then(|rest| rest.split_once("].")) {
        Some((_, rest)) => clip(&format!("model.{rest}")),
        None => clip(key),
    }
}

/// A table's head as the study file writes it.
fn heading(table: &str) -> String {
    if table == "model" { "[[model]]".to_string() } else { format!("[{table}]") }
}

fn one_of(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    format!("one of {}", names.join(", "))
}

/// What a value is, in words.
fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a decimal number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Why a value could not be read: by what it is and should be, or else by the reader's own words.
pub(super) fn explain(key: &str, value: &DeValue<'_>, message: &str) -> String {
    // A list with something else in it than texts.
    if let ("data.path", DeValue::Array(list)) = (key, value) {
        let other = (0..).zip(list.iter()).find(|(_, value)| !value.get_ref().is_str());
        if let Some((i, value)) = other {
            return explain(&format!("data.path[{i}]"), value.get_ref(), message);
        }
    }
    let name = shown(key);
    let plain = match name.split_once('[') {
        Some((list, _)) if name.ends_with(']') => &format!("{list}[]"),
        _ => &name,
    };
    if let Some(field) = message.strip_prefix("missing field `").and_then(|m| m.split('`').next()) {
        let key = format!("{}.{field}", plain.trim_end_matches("[]"));
        return format!("`{key}` is missing; it is {}", wanted(&key).0);
    }
    let (what, choices) = wanted(plain);
    let mismatch = format!("`{name}` must be {what}, not {}", kind(value));
    match value {
        DeValue::Table(_) if key == "model" => {
            "`model` must stand in double brackets: write [[model]], not [model]".to_string()
        }
        _ if key == "model" => format!("`model` must be a list of tables; write {EXAMPLE}"),
        DeValue::String(text) if plain.ends_with(".family") && !choices.is_empty() => {
            super::synonyms::no_family(&name, text)
        }
        DeValue::String(text) if !choices.is_empty() => {
            let typed = clip(text);
            format!("`{name}`: there is no `{typed}`{}", suggestion(&typed, choices))
        }
        DeValue::String(text)
            if what == INTEGER && text.trim().parse::<u64>().is_ok()
                || what == NUMBER && text.trim().parse::<f64>().is_ok() =>
        {
            format!("{mismatch}; write {}", clip(text.trim()))
        }
        DeValue::Float(digits) if what == INTEGER => {
            format!("`{name}` must be an integer, not {}", clip(digits.as_str()))
        }
        DeValue::Integer(digits) if what == INTEGER && digits.as_str().starts_with('-') => {
            format!("`{name}` must not be negative, but is {}", clip(digits.as_str()))
        }
        DeValue::Integer(digits) if what == INTEGER => {
            let digits = clip(digits.as_str());
            format!("`{name}` is too large: {digits}; it can be at most {}", u64::MAX)
        }
        DeValue::Integer(_) | DeValue::Float(_) if what == NUMBER => {
            format!("`{name}` must be a finite number; this one is too large")
        }
        DeValue::Table(_) if what == PRIOR => {
            format!("{mismatch}; a name with a dot in it needs quotes: \"a.b\" = \"normal(0, 1)\"")
        }
        // What reads on from the key is ours; other notations say it in sentences.
        DeValue::String(_) if ["must ", "is ", "has "].iter().any(|b| message.starts_with(b)) => {
            format!("`{name}` {message}")
        }
        DeValue::String(_)
            if !matches!(&*what, INTEGER | NUMBER | "true or false")
                && !what.starts_with("a table")
                && !what.starts_with("a list") =>
        {
            format!("`{name}`: {message}")
        }
        _ => mismatch,
    }
}

/// The first unknown key of a document, if it has one: where it begins, and what to say of it.
pub(super) fn unknown(root: &DeTable<'_>) -> Option<(usize, String)> {
    let table = |name: &str| root.get(name).and_then(|value| value.get_ref().as_table());
    let models = root.get("model").and_then(|value| value.get_ref().as_array());
    let models = models.into_iter().flatten().filter_map(|value| value.get_ref().as_table());
    let mut tables = vec![("", root)];
    tables.extend(
        ["data", "split", "evidence", "prior", "select"]
            .iter()
            .filter_map(|&t| Some((t, table(t)?))),
    );
    for model in models {
        tables.push(("model", model));
        let prior = model.get("prior").and_then(|value| value.get_ref().as_table());
        tables.extend(prior.map(|prior| ("model.prior", prior)));
    }
    let entries: Vec<(String, &DeTable<'_>)> = table("schema")
        .into_iter()
        .flat_map(|schema| schema.iter())
        .filter_map(|(name, value)| {
            Some((format!("schema.{}", name.get_ref()), value.get_ref().as_table()?))
        })
        .collect();
    tables.extend(entries.iter().map(|(path, entry)| (path.as_str(), *entry)));
    let strays = tables.into_iter().flat_map(|(path, table)| {
        let known = TABLES.iter().find(|(name, _)| *name == path);
        let known = match known {
            Some((_, keys)) => *keys,
            None => ENTRY,
        };
        let stray = table.keys().filter(|key| !known.contains(&key.get_ref().as_ref()));
        stray.map(move |key| (key.span().start, path, known, key.get_ref()))
    });
    let (start, path, known, name) = strays.min_by_key(|(start, ..)| *start)?;
    let typed = clip(name);
    let owners: Vec<String> = TABLES[1..]
        .iter()
        .filter(|(table, keys)| *table != path && keys.contains(&name.as_ref()))
        .map(|(table, _)| heading(table))
        .collect();
    let what = if path.is_empty() { "a study".to_string() } else { heading(&clip(path)) };
    let mut message = if owners.is_empty() {
        format!("{what} has no `{typed}`{}", suggestion(&typed, known.iter().copied()))
    } else {
        format!("{what} has no `{typed}`; it belongs under {}", owners.join(" or "))
    };
    if matches!(path, "prior" | "model.prior") {
        message += &format!("; single parameters go under [{path}.parameters]");
    }
    Some((start, message))
}
