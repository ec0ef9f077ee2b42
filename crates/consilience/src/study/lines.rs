//! What stands on which line of a study file, for errors.

use crate::{Error, Place};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::DeValue;

/// The lines on which a study file gives its values, by their keys: `split.by`, `model[0].formula`.
/// A study that a program made has none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Lines {
    file: Option<PathBuf>,
    /// `None` where the caller gave another value, which stands on no line.
    lines: BTreeMap<String, Option<u64>>,
}

/// Keys lie no deeper than `model[0].prior.parameters.x`; what does is not worth a walk.
pub(super) const DEEPEST: usize = 5;

/// Every value from this one down so many steps, with its key; parents first.
pub(super) fn walk<'d, 't>(
    key: String,
    value: &'d Spanned<DeValue<'t>>,
    steps: usize,
    visit: &mut impl FnMut(&str, &'d Spanned<DeValue<'t>>),
) {
    visit(&key, value);
    match value.get_ref() {
        _ if steps == 0 => {}
        DeValue::Array(array) => (0..).zip(array.iter()).for_each(|(i, value)| {
            walk(format!("{key}[{i}]"), value, steps - 1, visit);
        }),
        DeValue::Table(table) => table.iter().for_each(|(name, value)| {
            walk(format!("{key}.{}", name.get_ref()), value, steps - 1, visit);
        }),
        _ => {}
    }
}

impl Lines {
    /// No lines of this file yet.
    pub(super) fn of(file: &Path) -> Lines {
        let file = (!file.as_os_str().is_empty()).then(|| file.to_path_buf());
        Lines { file, lines: BTreeMap::new() }
    }

    pub(super) fn insert(&mut self, key: &str, line: u64) {
        self.lines.insert(key.to_string(), Some(line));
    }

    /// From now on the caller's value counts, not the one in the file.
    pub(super) fn forget(&mut self, key: &str) {
        self.lines.insert(key.to_string(), None);
    }

    /// The line on which the file gives the value of a key, if it does.
    pub fn line(&self, key: &str) -> Option<u64> {
        self.lines.get(key).copied().flatten()
    }

    /// Where the file gives the value of a key, or should have given it: on the line of the table
    /// that lacks it. Nowhere if the value is the caller's.
    pub fn place(&self, key: &str) -> Place {
        let mut known = key;
        let line = loop {
            match self.lines.get(known) {
                Some(None) => return Place::default(),
                Some(line) => break *line,
                None => match known.rfind(['.', '[']) {
                    Some(end) => known = &known[..end],
                    None => break None,
                },
            }
        };
        Place { file: self.file.clone(), line, ..Place::default() }
    }

    /// The same error; if it speaks of a key of the study, with the file and line of that.
    pub fn locate(&self, error: Error) -> Error {
        match error {
            Error::Input { place: Place { key: Some(key), file: None, column, .. }, message } => {
                Error::Input { place: Place { column, ..self.place(&key) }, message }
            }
            other => other,
        }
    }
}
