//! Studies made by programs.

use super::{Lines, ModelSpec, PriorSpec, PriorTable, SplitBy, Study, StudyFile};
use crate::Result;
use crate::data::Formula;
use crate::model::Family;
use sha2::Digest;
use std::collections::HashMap;
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
        name_apart(&mut self.models);
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

/// Adds the family to the names of models that go by one formula, and have several.
pub(super) fn name_apart(models: &mut [ModelSpec]) {
    let names: Vec<String> = models.iter().map(|model| default_name(&model.formula)).collect();
    let full = |i: usize, models: &[ModelSpec]| format!("{} ({})", names[i], models[i].family);
    let unnamed: Vec<usize> = (0..models.len())
        .filter(|&i| models[i].name == names[i] || models[i].name == full(i, models))
        .collect();
    let mut families: HashMap<&str, Vec<Family>> = HashMap::new();
    for &i in &unnamed {
        families.entry(&names[i]).or_default().push(models[i].family);
    }
    for i in unnamed {
        if families[names[i].as_str()].iter().any(|family| *family != models[i].family) {
            models[i].name = full(i, models);
        }
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
