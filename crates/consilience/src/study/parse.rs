//! Reads the study file.

use super::checks::{self, Limits};
use super::document::{Homes, Item, LARGEST, Section, Source};
use super::names::pick;
use super::prior::misplaced;
use super::{
    Combine, Data, EvidenceOptions, Kernel, Local, Missing, ModelSpec, NamedPrior, Points,
    PriorSpec, PriorTable, ShareRule, Split, SplitBy, Study,
};
use crate::error::clip;
use crate::model::Family;
use crate::{Error, Place, Result};
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::Path;

const TABLES: &[&str] = &["data", "split", "prior", "model", "evidence"];
const DATA: &[&str] = &["path", "missing", "weights", "columns", "delimiter", "comment"];
const SPLIT: &[&str] = &["shards", "by", "share", "seed", "clusters"];
const PRIOR: &[&str] =
    &["default", "coefficients", "intercept", "log_sd", "log_dispersion", "parameters"];
const MODEL: &[&str] = &["name", "formula", "family", "probability", "prior"];
const EVIDENCE: &[&str] = &[
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
];

/// For keys that stand in the wrong table.
const HOMES: &Homes = &[
    ("data", DATA),
    ("split", SPLIT),
    ("prior", PRIOR),
    ("model.prior", PRIOR),
    ("model", MODEL),
    ("evidence", EVIDENCE),
];

/// The text of a study file.
pub(super) fn load(path: &Path) -> Result<String> {
    let wrong = |message: &str| Error::input_at(Place::file(path), message);
    let io = |source| Error::Io { path: path.to_path_buf(), source };
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(wrong("there is no such file; name a study file (TOML)"));
        }
        Err(error) => return Err(io(error)),
    };
    if file.metadata().map_err(io)?.is_dir() {
        return Err(wrong("this is a folder; name the study file (TOML) in it"));
    }
    let mut bytes = Vec::new();
    // One byte more than allowed is enough to know, also where a size is not (a pipe).
    file.take(LARGEST as u64 + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() > LARGEST {
        return Err(Source::new("", path).too_large());
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        let message = "this is not UTF-8 text; a study is a TOML file in UTF-8";
        Error::input_at(Place::file(path).line(line as u64), message)
    })
}

/// The same error; where the file is called as data are, with a word on that.
pub(super) fn suspect_data(error: Error, path: &Path) -> Error {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    match error {
        Error::Input { place, message }
            if ["csv", "tsv", "gz", "parquet", "pq"].contains(&ending.as_str()) =>
        {
            let message = format!(
                "{message} (is this the data? They are named in a study file, under [data] path)"
            );
            Error::Input { place, message }
        }
        other => other,
    }
}

/// Everything a study says, before overrides and before what only holds for the whole.
pub(super) fn study(text: &str, file: &Path) -> Result<Study> {
    let source = Source::new(text, file);
    let table = source.parse(text)?;
    let root = Section::root(&source, &table, TABLES, HOMES)?;
    let mut lines = BTreeMap::new();
    let section = |name, keys| root.get(name).map(|i| i.section(name, keys, HOMES)).transpose();
    let mut note = |section: &Section<'_>, path: &str, key: &str| {
        if let Some(item) = section.get(key) {
            lines.insert(format!("{path}.{key}"), item.line());
        }
    };

    let data = section("data", DATA)?;
    let split = section("split", SPLIT)?;
    let evidence = section("evidence", EVIDENCE)?;
    if let Some(section) = &split {
        ["shards", "by", "clusters"].iter().for_each(|key| note(section, "split", key));
    }
    if let Some(section) = &evidence {
        note(section, "evidence", "local");
        note(section, "evidence", "combine");
    }
    if let Some(section) = &data {
        note(section, "data", "weights");
        lines.insert("data".to_string(), section.line());
    }

    let mut study = Study {
        file: file.to_path_buf(),
        data: self::data(data, file)?,
        split: split.map(self::split).transpose()?.unwrap_or_default(),
        prior: match section("prior", PRIOR)? {
            Some(section) => prior_table(&section, "prior.parameters", None)?,
            None => PriorTable::default(),
        },
        models: Vec::new(),
        evidence: evidence.map(self::evidence).transpose()?.unwrap_or_default(),
        notes: Vec::new(),
        lines,
    };
    let models = models(&root)?;
    unique_names(&source, &models)?;
    let (models, note) = checks::probabilities(file, models)?;
    study.models = models;
    study.notes.extend(note);
    Ok(study)
}

fn data(section: Option<Section<'_>>, file: &Path) -> Result<Data> {
    let folder = file.parent().map(Path::to_path_buf).unwrap_or_default();
    let mut data = Data { folder, ..Data::default() };
    let Some(section) = section else { return Ok(data) };
    if let Some(item) = section.get("path") {
        const WANTED: &str = "a path, a pattern such as \"data/*.csv\", or a list of them";
        for path in item.one_or_more() {
            data.path.push(path.filled_text(WANTED)?.to_string());
        }
        if data.path.is_empty() {
            return Err(item.error(format!("is an empty list; it must be {WANTED}")));
        }
    }
    if let Some(item) = section.get("missing") {
        data.missing = item.parsed(&one_of(&Missing::ALL.map(Missing::name)), Missing::parse)?;
    }
    if let Some(item) = section.get("weights") {
        data.weights = Some(item.filled_text("the name of a column")?.to_string());
    }
    if let Some(item) = section.get("columns") {
        let wanted = "a list of the names of a text file's columns, such as [\"y\", \"x\"]";
        let Some(items) = item.elements().filter(|items| !items.is_empty()) else {
            return Err(item.error(format!("must be {wanted}")));
        };
        let mut names: Vec<String> = Vec::with_capacity(items.len());
        for name in items {
            let text = name.filled_text("the name of a column")?.trim().to_string();
            if names.contains(&text) {
                return Err(name.error(format!("names `{}` a second time", clip(&text))));
            }
            names.push(text);
        }
        data.columns = Some(names);
    }
    if let Some(item) = section.get("delimiter") {
        let wanted = "one character, or \"tab\"";
        data.delimiter = match item.text(wanted)? {
            "tab" => Some('\t'),
            text => Some(single(&item, text, wanted)?),
        };
    }
    if let Some(item) = section.get("comment") {
        let wanted = "one character, or \"\" for none";
        data.comment = match item.text(wanted)? {
            "" => None,
            text => Some(single(&item, text, wanted)?),
        };
    }
    if let (Some(item), Some(comment)) = (section.get("delimiter"), data.comment)
        && data.delimiter == Some(comment)
    {
        return Err(item.error(format!(
            "is `{comment}`, which also begins a comment; set `data.comment` to another character, or to \"\" for none"
        )));
    }
    Ok(data)
}

/// What a value with a name must be, in words.
fn one_of(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    format!("one of {}", names.join(", "))
}

/// The one character of a text that can part or mark the lines of a text file.
fn single(item: &Item<'_>, text: &str, wanted: &str) -> Result<char> {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        // The reader works on bytes; and what numbers, names and quoting need is taken.
        (Some(c), None) if c == '\t' || c == ' ' || c.is_ascii_punctuation() && c != '"' => Ok(c),
        (Some(_), None) => Err(item.error(format!(
            "must be {wanted}, and an ASCII punctuation mark, blank or tab (no quote), not `{}`",
            clip(text)
        ))),
        _ => Err(item.error(format!("must be {wanted}, not `{}`", clip(text)))),
    }
}

fn split(section: Section<'_>) -> Result<Split> {
    let mut split = Split::default();
    if let Some(item) = section.get("shards") {
        split.shards = Some(count(&item, checks::SHARDS)? as usize);
    }
    if let Some(item) = section.get("by") {
        split.by = item.parsed(&one_of(&SplitBy::NAMES), SplitBy::parse)?;
    }
    if let Some(item) = section.get("share") {
        split.share =
            item.parsed(&one_of(&ShareRule::ALL.map(ShareRule::name)), ShareRule::parse)?;
    }
    if let Some(item) = section.get("seed") {
        split.seed = item.natural()?;
    }
    if let Some(item) = section.get("clusters") {
        split.clusters = count(&item, checks::CLUSTERS)? as usize;
    }
    Ok(split)
}

fn evidence(section: Section<'_>) -> Result<EvidenceOptions> {
    let mut evidence = EvidenceOptions::default();
    if let Some(item) = section.get("local") {
        evidence.local = item.parsed(&one_of(&Local::ALL.map(Local::name)), Local::parse)?;
    }
    if let Some(item) = section.get("combine") {
        evidence.combine =
            item.parsed(&one_of(&Combine::ALL.map(Combine::name)), Combine::parse)?;
    }
    if let Some(item) = section.get("draws") {
        evidence.draws = count(&item, checks::DRAWS)? as usize;
    }
    if let Some(item) = section.get("warmup") {
        evidence.warmup = count(&item, checks::WARMUP)? as usize;
    }
    if let Some(item) = section.get("chains") {
        evidence.chains = count(&item, checks::CHAINS)? as usize;
    }
    if let Some(item) = section.get("proposals") {
        evidence.proposals = count(&item, checks::PROPOSALS)? as usize;
    }
    if let Some(item) = section.get("points") {
        evidence.points = item.parsed(&one_of(&Points::ALL.map(Points::name)), Points::parse)?;
    }
    if let Some(item) = section.get("statistics") {
        evidence.statistics = item.truth()?;
    }
    if let Some(item) = section.get("se_target") {
        evidence.se_target = item.number()?;
        checks::se_target(evidence.se_target).map_err(|message| item.error(message))?;
    }
    if let Some(item) = section.get("rounds") {
        evidence.rounds = count(&item, checks::ROUNDS)? as usize;
    }
    if let Some(item) = section.get("seed") {
        evidence.seed = item.natural()?;
    }
    if let Some(item) = section.get("kernel") {
        evidence.kernel = item.parsed(&one_of(&Kernel::ALL.map(Kernel::name)), Kernel::parse)?;
    }
    Ok(evidence)
}

fn count(item: &Item<'_>, limits: Limits) -> Result<u64> {
    let value = item.natural()?;
    limits.check(value).map_err(|message| item.error(message))?;
    Ok(value)
}

const PRIOR_TEXT: &str = "a text such as \"normal(0, 1)\" or \"normal(0, 2.5) per sd\"";

/// A table of priors; if it is a model's, its family decides what may be in it.
fn prior_table(
    section: &Section<'_>,
    parameters_path: &'static str,
    family: Option<Family>,
) -> Result<PriorTable> {
    let prior = |key: &str| -> Result<Option<PriorSpec>> {
        let Some(item) = section.get(key) else { return Ok(None) };
        match family.and_then(|family| misplaced(family, key)) {
            Some(message) => Err(item.error(message)),
            None => item.parsed(PRIOR_TEXT, str::parse).map(Some),
        }
    };
    let mut table = PriorTable {
        default: prior("default")?,
        coefficients: prior("coefficients")?,
        intercept: prior("intercept")?,
        log_sd: prior("log_sd")?,
        log_dispersion: prior("log_dispersion")?,
        parameters: BTreeMap::new(),
    };
    if let Some(item) = section.get("parameters") {
        for (name, item) in item.open_section(parameters_path)?.items() {
            if item.is_table() {
                return Err(item.error(format!(
                    "must be {PRIOR_TEXT}, not a table; a name with a dot in it needs quotes: \"a.b\" = \"normal(0, 1)\""
                )));
            }
            let named =
                NamedPrior { prior: item.parsed(PRIOR_TEXT, str::parse)?, line: item.line() };
            table.parameters.insert(name.to_string(), named);
        }
    }
    Ok(table)
}

fn models(root: &Section<'_>) -> Result<Vec<(ModelSpec, Option<f64>)>> {
    const EXAMPLE: &str = "[[model]] with formula = \"y ~ x\" and family = \"gaussian\"";
    let Some(item) = root.get("model") else {
        return Err(root.error(format!("there is no model; add {EXAMPLE}")));
    };
    if item.is_table() {
        return Err(item.error("must stand in double brackets: write [[model]], not [model]"));
    }
    let Some(items) = item.elements() else {
        return Err(item.error(format!("must be a list of tables; write {EXAMPLE}")));
    };
    if items.is_empty() {
        return Err(item.error(format!("is an empty list; add {EXAMPLE}")));
    }
    items.iter().map(|item| model(&item.section("model", MODEL, HOMES)?)).collect()
}

fn model(section: &Section<'_>) -> Result<(ModelSpec, Option<f64>)> {
    let Some(formula_item) = section.get("formula") else {
        return Err(section.error("`model.formula` is missing; add formula = \"y ~ x\""));
    };
    let formula = formula_item.filled_text("a formula such as \"y ~ x\"")?.to_string();
    if formula.contains(|c: char| c.is_control() && !c.is_whitespace()) {
        return Err(formula_item.error("has a control character in it; type the formula anew"));
    }
    let name = match section.get("name") {
        Some(item) => {
            let name = item.filled_text("a name")?.trim();
            if name.contains(char::is_control) {
                return Err(item.error("must be a single line of text"));
            }
            name.to_string()
        }
        // A formula may run over lines; a name may not.
        None => formula.split_whitespace().collect::<Vec<_>>().join(" "),
    };
    let families = one_of(&Family::ALL.map(Family::name));
    let Some(item) = section.get("family") else {
        return Err(section.error(format!("`model.family` is missing; it is {families}")));
    };
    let family = item.parsed(&families, |text| pick(text, &Family::ALL, Family::name))?;
    let probability = match section.get("probability") {
        None => None,
        Some(item) => {
            let value = item.number()?;
            if value <= 0.0 {
                return Err(item.error(format!(
                    "must be positive, but is {value}; leave out a model that cannot be true"
                )));
            }
            Some(value)
        }
    };
    let prior = match section.get("prior") {
        None => PriorTable::default(),
        Some(item) => {
            let table = item.section("model.prior", PRIOR, HOMES)?;
            prior_table(&table, "model.prior.parameters", Some(family))?
        }
    };
    let spec = ModelSpec {
        name,
        formula,
        formula_line: formula_item.line(),
        family,
        probability: probability.unwrap_or(f64::NAN),
        prior,
        line: section.line(),
    };
    Ok((spec, probability))
}

fn unique_names(source: &Source, models: &[(ModelSpec, Option<f64>)]) -> Result<()> {
    let mut seen: HashMap<&str, u64> = HashMap::new();
    for (model, _) in models {
        if let Some(first) = seen.insert(&model.name, model.line) {
            return Err(source.error(
                model.line,
                format!(
                    "`model.name`: two models are called `{}`, on lines {first} and {}; give one of them another name",
                    clip(&model.name),
                    model.line
                ),
            ));
        }
    }
    Ok(())
}
