//! The keys of a study file and what their values must be, for errors about them.

use super::{Combine, Kernel, Local, Missing, Points, ShareRule, SplitBy};
use crate::error::{clip, suggestion};
use crate::model::Family;
use toml::de::{DeTable, DeValue};

const PRIORS: &[&str] =
    &["default", "coefficients", "intercept", "log_sd", "log_dispersion", "parameters"];

/// The tables of a study file and their keys.
pub(super) const TABLES: &[(&str, &[&str])] = &[
    ("", &["data", "split", "prior", "model", "evidence"]),
    ("data", &["path", "missing", "weights", "columns", "delimiter", "comment"]),
    ("split", &["shards", "by", "share", "seed", "clusters"]),
    ("prior", PRIORS),
    ("model.prior", PRIORS),
    ("model", &["name", "formula", "family", "probability", "prior"]),
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
            "rounds",
            "seed",
            "kernel",
        ],
    ),
];

pub(super) const PATH: &str = "a path, a pattern such as \"data/*.csv\", or a list of them";
pub(super) const COLUMN: &str = "the name of a column";
pub(super) const COLUMNS: &str =
    "a list of the names of a text file's columns, such as [\"y\", \"x\"]";
pub(super) const FORMULA: &str = "a formula such as \"y ~ x\"";
pub(super) const EXAMPLE: &str = "[[model]] with formula = \"y ~ x\" and family = \"gaussian\"";
const PRIOR: &str = "a text such as \"normal(0, 1)\" or \"normal(0, 2.5) per sd\"";

/// What a value must be.
enum Wanted {
    Table,
    Integer,
    Number,
    Truth,
    Choice(Vec<&'static str>),
    Text(&'static str),
    List(&'static str),
}

/// What the value of a key must be; elements of lists and models have no index in it.
fn wanted(key: &str) -> Wanted {
    use Wanted::*;
    match key {
        "data.path" => Text(PATH),
        "data.missing" => Choice(Missing::ALL.map(Missing::name).into()),
        "data.weights" => Text(COLUMN),
        "data.columns" => List(COLUMNS),
        "data.columns[]" => Text(COLUMN),
        "data.delimiter" => Text("one character, or \"tab\""),
        "data.comment" => Text("one character, or \"\" for none"),
        "split.by" => Text(""),
        "split.share" => Choice(ShareRule::ALL.map(ShareRule::name).into()),
        "model" => List(""),
        "model.name" => Text("a name"),
        "model.formula" => Text(FORMULA),
        "model.family" => Choice(Family::ALL.map(Family::name).into()),
        "model.probability" | "evidence.se_target" => Number,
        "evidence.local" => Choice(Local::ALL.map(Local::name).into()),
        "evidence.combine" => Choice(Combine::ALL.map(Combine::name).into()),
        "evidence.points" => Choice(Points::ALL.map(Points::name).into()),
        "evidence.kernel" => Choice(Kernel::ALL.map(Kernel::name).into()),
        "evidence.statistics" => Truth,
        _ if key.starts_with("split.") || key.starts_with("evidence.") => Integer,
        "prior.parameters" | "model.prior" | "model.prior.parameters" => Table,
        _ if key.starts_with("prior.") || key.starts_with("model.prior.") => Text(PRIOR),
        _ => Table,
    }
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
    let name = shown(key);
    let plain = match key.split_once('[') {
        Some(("model", rest)) if rest.ends_with(']') => "model[]",
        Some(("data.columns", _)) => "data.columns[]",
        Some(("data.path", _)) => "data.path",
        _ => &name,
    };
    if let Some(field) = message.strip_prefix("missing field `").and_then(|m| m.split('`').next()) {
        let key = format!("{}.{field}", plain.trim_end_matches("[]"));
        return match wanted(&key) {
            Wanted::Choice(names) => format!("`{key}` is missing; it is {}", one_of(&names)),
            Wanted::Text(what) => format!("`{key}` is missing; it is {what}"),
            _ => format!("`{key}` is missing"),
        };
    }
    let not = kind(value);
    let mismatch = |wanted: &str| format!("`{name}` must be {wanted}, not {not}");
    match (wanted(plain), value) {
        (Wanted::List(_), DeValue::Table(_)) if plain == "model" => {
            format!("`{name}` must stand in double brackets: write [[model]], not [model]")
        }
        (Wanted::List(_), _) if plain == "model" => {
            format!("`{name}` must be a list of tables; write {EXAMPLE}")
        }
        (Wanted::List(what), _) => mismatch(what),
        (Wanted::Table, _) => {
            mismatch(&format!("a table, {}", heading(plain.trim_end_matches("[]"))))
        }
        (Wanted::Integer, DeValue::String(text)) if text.trim().parse::<u64>().is_ok() => {
            format!("{}; write {}", mismatch("an integer"), clip(text.trim()))
        }
        (Wanted::Integer, DeValue::Float(digits)) => {
            format!("`{name}` must be an integer, not {}", clip(digits.as_str()))
        }
        (Wanted::Integer, DeValue::Integer(digits)) if digits.as_str().starts_with('-') => {
            format!("`{name}` must not be negative, but is {}", clip(digits.as_str()))
        }
        (Wanted::Integer, DeValue::Integer(digits)) => {
            let digits = clip(digits.as_str());
            format!("`{name}` is too large: {digits}; it can be at most {}", u64::MAX)
        }
        (Wanted::Integer, _) => mismatch("an integer"),
        (Wanted::Number, DeValue::String(text)) if text.trim().parse::<f64>().is_ok() => {
            format!("{}; write {}", mismatch("a number"), clip(text.trim()))
        }
        (Wanted::Number, DeValue::Integer(_) | DeValue::Float(_)) => {
            format!("`{name}` must be a finite number; this one is too large")
        }
        (Wanted::Number, _) => mismatch("a number"),
        (Wanted::Truth, _) => mismatch("true or false"),
        (Wanted::Choice(names), DeValue::String(text)) => {
            let typed = clip(text);
            format!("`{name}`: there is no `{typed}`{}", suggestion(&typed, names))
        }
        (Wanted::Choice(names), _) => mismatch(&one_of(&names)),
        // Ours read on from the key; those of other notations are sentences.
        (Wanted::Text(_), DeValue::String(_))
            if ["must ", "is ", "has "].iter().any(|begin| message.starts_with(begin)) =>
        {
            format!("`{name}` {message}")
        }
        (Wanted::Text(_), DeValue::String(_)) => format!("`{name}`: {message}"),
        (Wanted::Text(PRIOR), DeValue::Table(_)) => format!(
            "{}; a name with a dot in it needs quotes: \"a.b\" = \"normal(0, 1)\"",
            mismatch(PRIOR)
        ),
        (Wanted::Text(_), _) if plain == "split.by" => mismatch(&one_of(&SplitBy::NAMES)),
        (Wanted::Text(what), _) => mismatch(what),
    }
}

/// The first unknown key of a document, if it has one: where it begins, and what to say of it.
pub(super) fn unknown(root: &DeTable<'_>) -> Option<(usize, String)> {
    let table = |name: &str| root.get(name).and_then(|value| value.get_ref().as_table());
    let models = root.get("model").and_then(|value| value.get_ref().as_array());
    let models = models.into_iter().flatten().filter_map(|value| value.get_ref().as_table());
    let mut tables = vec![("", root)];
    tables.extend(
        ["data", "split", "evidence", "prior"].iter().filter_map(|&t| Some((t, table(t)?))),
    );
    for model in models {
        tables.push(("model", model));
        let prior = model.get("prior").and_then(|value| value.get_ref().as_table());
        tables.extend(prior.map(|prior| ("model.prior", prior)));
    }
    let strays = tables.into_iter().flat_map(|(path, table)| {
        let known = TABLES.iter().find(|(name, _)| *name == path).map_or(&[][..], |(_, keys)| keys);
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
    let what = if path.is_empty() { "a study".to_string() } else { heading(path) };
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
