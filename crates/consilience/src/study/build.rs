//! Studies made by programs.

use super::{Lines, ModelSpec, PriorSpec, PriorTable, SplitBy, Study, StudyFile};
use crate::Result;
use crate::data::Formula;
use crate::model::Family;
use sha2::Digest;
use std::collections::{HashMap, HashSet};
use std::path::Path;

impl Study {
    /// A study that says nothing yet: defaults everywhere, no data and no model.
    pub fn new() -> Study {
        Study::default()
    }

    /// Adds a data file, or a pattern of them.
    pub fn path(mut self, path: impl Into<String>) -> Study {
        self.data.path.push(path.into());
        self
    }

    /// Splits the rows over this many shards.
    pub fn shards(mut self, shards: usize) -> Study {
        self.split.shards = Some(shards);
        self
    }

    /// Splits the rows by this rule.
    pub fn split_by(mut self, by: SplitBy) -> Study {
        self.split.by = by;
        self
    }

    /// Its hash: of all it says, whatever the order, and of nothing about its file.
    pub fn hash(&self) -> String {
        let text = serde_json::to_string(self).expect("a study can always be written");
        crate::hex::hex(&sha2::Sha256::digest(text.as_bytes()))
    }

    /// Adds a model that goes by its formula.
    pub fn model(self, formula: impl Into<String>, family: Family) -> Study {
        self.with(ModelSpec::new(formula, family))
    }

    /// Adds a model.
    pub fn with(mut self, model: ModelSpec) -> Study {
        self.models.push(model);
        name_last_apart(&mut self.models);
        self
    }

    /// The study in this TOML text. Errors name lines; those of a [`StudyFile`] also its file.
    pub fn from_toml(text: &str) -> Result<Study> {
        StudyFile::parse(text, Path::new("")).map(|file| file.study)
    }

    /// The study as TOML text, from which it is read as the same value.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("a study has nothing that TOML lacks")
    }

    /// The key of a model of this study: `model[2]`.
    pub(crate) fn key_of(&self, model: &ModelSpec) -> String {
        if self.select.is_some() {
            return "select".to_string();
        }
        let index = self.models.iter().position(|other| other.name == model.name);
        format!("model[{}]", index.unwrap_or(0))
    }
}

impl From<Study> for StudyFile {
    /// A study that stands in no file. Its paths start from the working directory.
    fn from(study: Study) -> StudyFile {
        StudyFile { study, folder: Default::default(), lines: Lines::default(), home: None }
    }
}

/// The name of a model of this formula: that as it is always written, so that blanks make no two of one.
pub(super) fn default_name(formula: &str) -> String {
    // A formula may run over lines; a name may not.
    let plain = || formula.split_whitespace().collect::<Vec<_>>().join(" ");
    Formula::parse(formula).map_or_else(|_| plain(), |formula| formula.to_string())
}

/// Whether a model of this formula goes by it, with or without the family.
fn goes_by_formula(model: &ModelSpec, formula: &str) -> bool {
    let Some(rest) = model.name.strip_prefix(formula) else { return false };
    let family = rest.strip_prefix(" (").and_then(|rest| rest.strip_suffix(')'));
    rest.is_empty() || family == Some(model.family.name())
}

fn with_family(formula: &str, family: Family) -> String {
    format!("{formula} ({family})")
}

/// Adds the family to the names of models that go by one formula, and have several: of those whose name nobody has
/// written, as this says of each.
pub(super) fn name_apart(models: &mut [ModelSpec], unwritten: &[bool]) {
    let formulas: Vec<String> = models.iter().map(|model| default_name(&model.formula)).collect();
    let mut families: HashMap<&str, HashSet<Family>> = HashMap::new();
    for (model, formula) in models.iter().zip(&formulas) {
        if goes_by_formula(model, formula) {
            families.entry(formula).or_default().insert(model.family);
        }
    }
    for ((model, formula), unwritten) in models.iter_mut().zip(&formulas).zip(unwritten) {
        if *unwritten && families.get(&**formula).is_some_and(|families| families.len() > 1) {
            model.name = with_family(formula, model.family);
        }
    }
}

/// The same, where the last one is new and the others are told apart already.
fn name_last_apart(models: &mut [ModelSpec]) {
    let Some((last, others)) = models.split_last_mut() else { return };
    let formula = default_name(&last.formula);
    if !goes_by_formula(last, &formula) {
        return;
    }
    // Formulas of models that are called otherwise are not parsed: there may be thousands.
    let same = |other: &&mut ModelSpec| {
        goes_by_formula(other, &formula)
            && (other.formula == last.formula || default_name(&other.formula) == formula)
    };
    let mut alike: Vec<&mut ModelSpec> = others.iter_mut().filter(same).collect();
    if alike.iter().any(|other| other.family != last.family) {
        alike.push(last);
        alike.iter_mut().for_each(|model| model.name = with_family(&formula, model.family));
    }
}

impl ModelSpec {
    /// A model that goes by its formula.
    pub fn new(formula: impl Into<String>, family: Family) -> ModelSpec {
        let formula = formula.into();
        let name = default_name(&formula);
        ModelSpec { name, formula, family, probability: None, prior: PriorTable::default() }
    }

    /// The same model under this name.
    pub fn named(mut self, name: impl Into<String>) -> ModelSpec {
        self.name = name.into();
        self
    }

    /// The same model with this prior for a parameter, or for all parameters of a term.
    pub fn prior(mut self, parameter: impl Into<String>, prior: PriorSpec) -> ModelSpec {
        self.prior.parameters.insert(parameter.into(), prior);
        self
    }
}
