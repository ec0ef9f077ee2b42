//! How the parts of a study are written and read where serde's own way is not what a study file has.

use super::build::name_apart;
use super::keys::FORMULA;
use super::synonyms::family;
use super::{ModelSpec, PriorSpec, PriorTable};
use crate::error::clip;
use crate::model::Family;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A model as it is written: perhaps without a name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenModel {
    name: Option<String>,
    #[serde(deserialize_with = "formula")]
    formula: String,
    #[serde(deserialize_with = "family")]
    family: Family,
    probability: Option<f64>,
    #[serde(default)]
    prior: PriorTable,
}

impl From<WrittenModel> for ModelSpec {
    fn from(written: WrittenModel) -> ModelSpec {
        let WrittenModel { name, formula, family, probability, prior } = written;
        let model = ModelSpec { probability, prior, ..ModelSpec::new(formula, family) };
        match name {
            Some(name) => model.named(name.trim()),
            None => model,
        }
    }
}

/// Models; those without a name that have a formula in common are told apart. A name that is written stays, so that what
/// a study is written as is read as the same study.
pub(super) fn models<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<ModelSpec>, D::Error> {
    let written: Vec<WrittenModel> = Vec::deserialize(d)?;
    let unwritten: Vec<bool> = written.iter().map(|model| model.name.is_none()).collect();
    let mut models: Vec<ModelSpec> = written.into_iter().map(ModelSpec::from).collect();
    name_apart(&mut models, &unwritten);
    Ok(models)
}

fn formula<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    let text = String::deserialize(d)?;
    formula_fault(&text).map_or(Ok(text), |fault| Err(D::Error::custom(fault)))
}

/// Why a text is no formula, if that is plain; it reads on from the key.
pub(super) fn formula_fault(text: &str) -> Option<String> {
    if text.trim().is_empty() {
        Some(format!("is empty; it must be {FORMULA}"))
    } else if text.contains(|c: char| c.is_control() && !c.is_whitespace()) {
        Some("has a control character in it; type the formula anew".to_string())
    } else {
        None
    }
}

/// A text, or a list of texts.
pub(super) fn one_or_more<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Texts {
        One(String),
        More(Vec<String>),
    }
    Ok(match Texts::deserialize(d)? {
        Texts::One(text) => vec![text],
        Texts::More(texts) => texts,
    })
}

/// Texts or numbers, one or a list of them.
pub(super) fn marks<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Mark {
        Text(String),
        Whole(i64),
        Number(f64),
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Marks {
        One(Mark),
        More(Vec<Mark>),
    }
    let text = |mark: Mark| match mark {
        Mark::Text(text) => text.trim().to_string(),
        Mark::Whole(number) => number.to_string(),
        Mark::Number(number) => number.to_string(),
    };
    Ok(match Marks::deserialize(d)? {
        Marks::One(mark) => vec![text(mark)],
        Marks::More(marks) => marks.into_iter().map(text).collect(),
    })
}

/// Names without the blanks around them.
pub(super) fn trimmed<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Vec<String>>, D::Error> {
    let names: Option<Vec<String>> = Deserialize::deserialize(d)?;
    Ok(names.map(|names| names.iter().map(|name| name.trim().to_string()).collect()))
}

pub(super) fn delimiter<'de, D: Deserializer<'de>>(d: D) -> Result<Option<char>, D::Error> {
    let text = String::deserialize(d)?;
    match text.as_str() {
        "tab" => return Ok(Some('\t')),
        "blanks" => return Ok(Some(' ')),
        _ => {}
    }
    single(&text, super::keys::DELIMITER).map(Some).map_err(D::Error::custom)
}

pub(super) fn comment<'de, D: Deserializer<'de>>(d: D) -> Result<Option<char>, D::Error> {
    let text = String::deserialize(d)?;
    if text.is_empty() {
        return Ok(None);
    }
    single(&text, "one character, or \"\" for none").map(Some).map_err(D::Error::custom)
}

pub(super) fn decimal<'de, D: Deserializer<'de>>(d: D) -> Result<char, D::Error> {
    match String::deserialize(d)?.as_str() {
        "." => Ok('.'),
        "," => Ok(','),
        other => Err(D::Error::custom(format!(
            "must be {}, not `{}`",
            super::keys::DECIMAL,
            clip(other)
        ))),
    }
}

pub(super) fn decimals<S: Serializer>(c: &char, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_char(*c)
}

pub(super) fn is_point(c: &char) -> bool {
    *c == '.'
}

/// The one character of a text that can part or mark the lines of a text file.
fn single(text: &str, wanted: &str) -> Result<char, String> {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(c), None) if separates(c) => Ok(c),
        (Some(_), None) => Err(format!("must be {wanted}, and {SEPARATOR}, not `{}`", clip(text))),
        _ => Err(format!("must be {wanted}, not `{}`", clip(text))),
    }
}

/// What can part or mark the lines of a text file.
pub(super) const SEPARATOR: &str = "an ASCII punctuation mark, blank or tab (no quote)";

/// The reader works on bytes; and what numbers, names and quoting need is taken.
pub(super) fn separates(c: char) -> bool {
    c == '\t' || c == ' ' || c.is_ascii_punctuation() && c != '"'
}

pub(super) fn character<S: Serializer>(c: &Option<char>, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&c.map(String::from).unwrap_or_default())
}

impl Serialize for PriorSpec {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PriorSpec {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<PriorSpec, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map_err(|error: crate::Error| D::Error::custom(error))
    }
}
