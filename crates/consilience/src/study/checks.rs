//! What holds for single values wherever they come from, and what holds for a study as a whole.

use super::{Combine, Local, ModelSpec, SplitBy, Study};
use crate::{Error, Level, Place, Result, Warning};
use std::path::Path;

/// The least and the greatest of a count.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    least: u64,
    why: &'static str,
    greatest: u64,
}

pub(super) const SHARDS: Limits = Limits { least: 1, why: "", greatest: 1_000_000 };
pub(super) const CLUSTERS: Limits = Limits { least: 1, why: "", greatest: 1_000_000 };
pub(super) const ROUNDS: Limits =
    Limits { least: 2, why: ": `exact` needs one to climb and one to draw", greatest: 1_000_000 };
pub(super) const WARMUP: Limits =
    Limits { least: 100, why: ": a chain needs some to adapt", greatest: 100_000_000 };
pub(super) const CHAINS: Limits = Limits { least: 1, why: "", greatest: 1_000 };
pub(super) const PROPOSALS: Limits =
    Limits { least: 100, why: ": fewer give no standard error to go by", greatest: 1_000_000 };
pub(super) const DRAWS: Limits =
    Limits { least: 100, why: ": fewer give no standard error to go by", greatest: 100_000_000 };

impl Limits {
    /// Why this value is out of bounds, if it is; it reads on from the key.
    pub(super) fn check(self, value: u64) -> std::result::Result<(), String> {
        if value < self.least {
            Err(format!("must be at least {}, but is {value}{}", self.least, self.why))
        } else if value > self.greatest {
            Err(format!("must be at most {}, but is {value}", self.greatest))
        } else {
            Ok(())
        }
    }
}

/// Why this is no target for a standard error, if it is none; it reads on from the key.
pub(super) fn se_target(value: f64) -> std::result::Result<(), String> {
    if value.is_finite() && value > 0.0 {
        Ok(())
    } else {
        Err(format!("must be a positive number, but is {value}; the default is 0.01"))
    }
}

/// Makes the prior model probabilities sum to one; says so if they did not.
pub(super) fn probabilities(
    file: &Path,
    models: Vec<(ModelSpec, Option<f64>)>,
) -> Result<(Vec<ModelSpec>, Option<Warning>)> {
    let given = models.iter().find(|(_, probability)| probability.is_some());
    let lacking = models.iter().find(|(_, probability)| probability.is_none());
    if let (Some((with, _)), Some((without, _))) = (given, lacking) {
        return Err(Error::input_at(
            Place::file(file).line(without.line),
            format!(
                "`model.probability` is missing here, but given for the model on line {}; give it for all models, or for none (then all are equal)",
                with.line
            ),
        ));
    }
    let given = given.is_some();
    let (mut specs, values): (Vec<ModelSpec>, Vec<Option<f64>>) = models.into_iter().unzip();
    let values: Vec<f64> = values.into_iter().map(|value| value.unwrap_or(1.0)).collect();
    // By the largest first, so that no sum overflows.
    let largest = values.iter().copied().fold(0.0, f64::max);
    let scaled: f64 = values.iter().map(|value| value / largest).sum();
    for (spec, value) in specs.iter_mut().zip(&values) {
        spec.probability = value / largest / scaled;
        if spec.probability == 0.0 {
            return Err(Error::input_at(
                Place::file(file).line(spec.line),
                format!(
                    "`model.probability` is {value:e}, which beside the others is 0; leave the model out"
                ),
            ));
        }
    }
    let sum = scaled * largest;
    let note = (given && (sum - 1.0).abs() > 1e-9).then(|| {
        Warning::new(
            Level::Note,
            "probabilities-normalised",
            format!("the models' prior probabilities sum to {sum}, not to 1; they were divided by their sum"),
            "give probabilities that sum to 1",
        )
        .value(sum)
    });
    Ok((specs, note))
}

impl Study {
    /// What can only be said once the overrides are in.
    pub(super) fn validate(&mut self) -> Result<()> {
        let line = |key: &str| self.lines.get(key).copied();
        let place = |line: Option<u64>| Place { line, ..Place::file(&self.file) };
        if self.data.path.is_empty() {
            return Err(Error::input_at(
                place(line("data")),
                "`data.path` is missing; add path = \"data.csv\" under [data]",
            ));
        }
        let (local, combine) = (self.evidence.local, self.evidence.combine);
        if combine != Combine::Exact && local == Local::None {
            return Err(Error::input_at(
                place(line("evidence.local").or(line("evidence.combine"))),
                format!(
                    "`evidence.local` = \"none\" and `evidence.combine` = \"{combine}\" do not go together; write local = \"auto\", or combine = \"exact\""
                ),
            ));
        }
        if combine == Combine::Augmented && !matches!(local, Local::Auto | Local::GibbsChib) {
            return Err(Error::input_at(
                place(line("evidence.local").or(line("evidence.combine"))),
                format!(
                    "`evidence.local` = \"{local}\" and `evidence.combine` = \"augmented\" do not go together: it works with Gibbs draws and Chib's estimate; write local = \"auto\""
                ),
            ));
        }
        let other = |m: &&ModelSpec| !m.family.is_binary();
        if let (Combine::Augmented, Some(model)) = (combine, self.models.iter().find(other)) {
            return Err(Error::input_at(
                place(Some(model.line)),
                format!(
                    "`evidence.combine` = \"augmented\" is for logistic and probit models, and `{}` is {}; write combine = \"exact\"",
                    model.name, model.family
                ),
            ));
        }
        const CODE: &str = "clusters-unused";
        self.notes.retain(|note| note.code != CODE);
        if let (Some(line), false) = (line("split.clusters"), self.split.by == SplitBy::Cluster) {
            self.notes.push(Warning::new(
                Level::Note,
                CODE,
                format!(
                    "`split.clusters` (line {line}) does nothing with `split.by` = \"{}\"",
                    self.split.by
                ),
                "leave it out, or write by = \"cluster\"",
            ));
        }
        Ok(())
    }
}
