//! What holds for single values wherever they come from, and what holds for a study as a whole.

use super::build::default_name;
use super::keys::{COLUMN, COLUMNS, DECIMAL, EXAMPLE, NA, PATH, TERMS, shown};
use super::written::{SEPARATOR, formula_fault, separates};
use super::{
    Combine, EvidenceOptions, Lines, Local, ModelSpec, Select, Sizes, Split, SplitBy, Study,
    StudyFile,
};
use crate::data::MAX_NODES;
use crate::error::clip;
use crate::{Error, Level, Place, Result, Warning};
use std::collections::HashMap;

/// The least and the greatest of a count.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    least: u64,
    why: &'static str,
    greatest: u64,
}

pub(super) const SHARDS: Limits = Limits { least: 1, why: "", greatest: 1_000_000 };
pub(super) const TOP: Limits = Limits { least: 1, why: "", greatest: 100_000 };
pub(super) const CLUSTERS: Limits = Limits { least: 1, why: "", greatest: 1_000_000 };
pub(super) const ROUNDS: Limits =
    Limits { least: 2, why: ": `exact` needs one to climb and one to draw", greatest: 1_000_000 };
pub(super) const WARMUP: Limits =
    Limits { least: 100, why: ": a chain needs some to adapt", greatest: 100_000_000 };
pub(super) const CHAINS: Limits = Limits { least: 1, why: "", greatest: 1_000 };
const PROPOSALS: Limits =
    Limits { least: 100, why: ": fewer give no standard error to go by", greatest: 1_000_000 };
const DRAWS: Limits =
    Limits { least: 100, why: ": fewer give no standard error to go by", greatest: 100_000_000 };
impl Limits {
    /// The same for draws that are weighed: fewer cannot become as many effective ones as an estimate needs.
    fn if_weighed(self, is_weighed: bool) -> Limits {
        let why =
            ": draws are weighed, and 100 of them have to be effective for an error bar to rest on";
        if is_weighed { Limits { least: 200, why, ..self } } else { self }
    }

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
    let wanted =
        if value.is_finite() { "a positive number" } else { "a finite number, and positive" };
    if value.is_finite() && value > 0.0 {
        Ok(())
    } else {
        Err(format!("must be {wanted}, but is {value}; the default is 0.01"))
    }
}

/// An error about the value of a key, which the message reads on from.
fn wrong<T>(key: &str, message: impl std::fmt::Display) -> Result<T> {
    Err(Error::input_at(Place::key(key), format!("`{}` {message}", shown(key))))
}

fn filled(key: &str, text: &str, wanted: &str) -> Result<()> {
    if text.trim().is_empty() {
        return wrong(key, format!("is empty; it must be {wanted}"));
    }
    Ok(())
}

impl Study {
    /// The models' prior probabilities, which sum to 1: equal if none are given.
    pub fn probabilities(&self) -> Vec<f64> {
        self.normalised().0
    }

    /// The probabilities, and what they were divided by.
    fn normalised(&self) -> (Vec<f64>, f64) {
        let values: Vec<f64> = self.models.iter().map(|m| m.probability.unwrap_or(1.0)).collect();
        // By the largest first, so that no sum overflows.
        let largest = values.iter().copied().fold(0.0, f64::max);
        let scaled: f64 = values.iter().map(|value| value / largest).sum();
        (values.iter().map(|value| value / largest / scaled).collect(), scaled * largest)
    }

    /// Refuses values that cannot be, and values that do not go together.
    pub fn check(&self) -> Result<()> {
        self.check_with(&Lines::default())
    }

    /// The same; where an error speaks of another part of the study, it names the line of that.
    pub(super) fn check_with(&self, lines: &Lines) -> Result<()> {
        self.check_data()?;
        self.check_counts()?;
        self.check_sizes()?;
        self.schema.check()?;
        super::ties::check_table("prior", &self.prior)?;
        if let Some(select) = &self.select {
            self.check_select(select)?;
            return self.check_methods();
        }
        if self.models.is_empty() {
            let message = format!("there is no model; add {EXAMPLE}");
            return Err(Error::input_at(Place::key(""), message));
        }
        self.models.iter().enumerate().try_for_each(|(i, model)| check_model(i, model))?;
        self.check_names(lines)?;
        self.check_probabilities(lines)?;
        self.check_methods()
    }

    fn check_data(&self) -> Result<()> {
        let data = &self.data;
        for (i, path) in data.path.iter().enumerate() {
            let key =
                if data.path.len() == 1 { "data.path".into() } else { format!("data.path[{i}]") };
            filled(&key, path, PATH)?;
        }
        if let Some(weights) = &data.weights {
            filled("data.weights", weights, COLUMN)?;
        }
        if let Some(columns) = &data.columns {
            if columns.is_empty() {
                return wrong("data.columns", format!("must be {COLUMNS}"));
            }
            for (i, name) in columns.iter().enumerate() {
                let key = format!("data.columns[{i}]");
                filled(&key, name, COLUMN)?;
                if columns[..i].contains(name) {
                    return wrong(&key, format!("names `{}` a second time", clip(name)));
                }
            }
        }
        for (key, c) in [("data.delimiter", data.delimiter), ("data.comment", data.comment)] {
            if let Some(c) = c.filter(|&c| !separates(c)) {
                return wrong(key, format!("must be {SEPARATOR}, not `{}`", c.escape_default()));
            }
        }
        if !matches!(data.decimal, '.' | ',') {
            return wrong("data.decimal", format!("must be {DECIMAL}, not `{}`", data.decimal));
        }
        for (i, na) in data.na.iter().enumerate() {
            let key = if data.na.len() == 1 { "data.na".into() } else { format!("data.na[{i}]") };
            // What is empty is missing as it is; a text of blanks is a slip.
            filled(&key, na, NA)?;
        }
        match data.comment {
            Some(comment) if data.delimiter == Some(comment) => wrong(
                "data.delimiter",
                format!(
                    "is `{comment}`, which also begins a comment; set `data.comment` to another character, or to \"\" for none"
                ),
            ),
            _ => Ok(()),
        }
    }

    /// Rows that go to shards whatever the others do know of no strata.
    fn check_sizes(&self) -> Result<()> {
        let Split { sizes, by, .. } = &self.split;
        if *sizes == Sizes::Equal || *by == SplitBy::Random {
            return Ok(());
        }
        wrong(
            "split.sizes",
            format!(
                "= \"{sizes}\" and `split.by` = \"{by}\" do not go together: rows that go to shards at random know of no {}; write by = \"random\", or leave `sizes` out",
                if by.is_fixed_by_data() { "files or columns" } else { "strata" }
            ),
        )
    }

    fn check_counts(&self) -> Result<()> {
        let (split, evidence) = (&self.split, &self.evidence);
        for (key, value, limits) in [
            ("split.shards", split.shards.unwrap_or(1), SHARDS),
            ("split.clusters", split.clusters, CLUSTERS),
            ("evidence.draws", evidence.draws, draws(evidence)),
            ("evidence.warmup", evidence.warmup, WARMUP),
            ("evidence.chains", evidence.chains, CHAINS),
            ("evidence.proposals", evidence.proposals, proposals(evidence)),
            ("evidence.rounds", evidence.rounds, ROUNDS),
        ] {
            limits.check(value as u64).or_else(|message| wrong(key, message))?;
        }
        if let Some(nodes) = evidence.nodes.filter(|n| !(1..=MAX_NODES).contains(n)) {
            let message = format!("must be a whole number from 1 to {MAX_NODES}, not {nodes}");
            return wrong("evidence.nodes", message);
        }
        se_target(evidence.se_target).or_else(|message| wrong("evidence.se_target", message))
    }

    fn check_select(&self, select: &Select) -> Result<()> {
        if !self.models.is_empty() {
            let message = "there are both [[model]] and [select]; a study either compares models that it names or chooses among all that [select] has: make two studies";
            return Err(Error::input_at(Place::key("select"), message));
        }
        filled("select.outcome", &select.outcome, "the left side of a formula, such as \"y\"")?;
        for (key, text) in
            [("select.always", &select.always), ("select.candidates", &select.candidates)]
        {
            filled(key, text, TERMS)?;
            if let Some(fault) = formula_fault(text) {
                return wrong(key, fault);
            }
        }
        TOP.check(select.top as u64).or_else(|message| wrong("select.top", message))?;
        let fine = select.se_target.is_finite() && select.se_target > 0.0;
        if !fine {
            let message = format!(
                "must be a positive number, but is {}; the default is 0.005",
                select.se_target
            );
            return wrong("select.se_target", message);
        }
        Ok(())
    }

    fn check_names(&self, lines: &Lines) -> Result<()> {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for (i, model) in self.models.iter().enumerate() {
            if let Some(first) = seen.insert(&model.name, i) {
                let where_ = match [first, i].map(|i| lines.line(&format!("model[{i}]"))) {
                    [Some(first), Some(second)] => format!(", on lines {first} and {second}"),
                    _ => String::new(),
                };
                let other = &self.models[first];
                if (other.family, &other.prior) == (model.family, &model.prior)
                    && default_name(&other.formula) == default_name(&model.formula)
                {
                    let message = format!(
                        "two models are the same: `{}`{where_}; leave one out",
                        clip(&model.name)
                    );
                    return Err(Error::input_at(Place::key(format!("model[{i}]")), message));
                }
                let message = format!(
                    "`model.name`: two models are called `{}`{where_}; give one of them another name",
                    clip(&model.name)
                );
                return Err(Error::input_at(Place::key(format!("model[{i}]")), message));
            }
        }
        Ok(())
    }

    fn check_probabilities(&self, lines: &Lines) -> Result<()> {
        let given = self.models.iter().position(|m| m.probability.is_some());
        let lacking = self.models.iter().position(|m| m.probability.is_none());
        if let (Some(with), Some(without)) = (given, lacking) {
            let other = match lines.line(&format!("model[{with}]")) {
                Some(line) => format!("the model on line {line}"),
                None => format!("model `{}`", clip(&self.models[with].name)),
            };
            let message = format!(
                "`model.probability` is missing here, but given for {other}; give it for all models, or for none (then all are equal)"
            );
            return Err(Error::input_at(Place::key(format!("model[{without}]")), message));
        }
        let vanished = self.probabilities().iter().position(|p| *p == 0.0);
        if let Some((i, value)) = vanished.and_then(|i| Some((i, self.models[i].probability?))) {
            let message = format!(
                "`model.probability` is {value:e}, which beside the others is 0; leave the model out"
            );
            return Err(Error::input_at(Place::key(format!("model[{i}]")), message));
        }
        Ok(())
    }

    /// Whether shards and combination go together, with each other and with the models.
    fn check_methods(&self) -> Result<()> {
        let (local, combine) = (self.evidence.local, self.evidence.combine);
        if combine != Combine::Exact && local == Local::None {
            return wrong(
                "evidence.local",
                format!(
                    "= \"none\" and `evidence.combine` = \"{combine}\" do not go together; write local = \"auto\", or combine = \"exact\""
                ),
            );
        }
        if combine != Combine::Augmented {
            return Ok(());
        }
        if !matches!(local, Local::Auto | Local::GibbsChib) {
            return wrong(
                "evidence.local",
                format!(
                    "= \"{local}\" and `evidence.combine` = \"augmented\" do not go together: it works with Gibbs draws and Chib's estimate; write local = \"auto\""
                ),
            );
        }
        if let Some(model) = self.specs().iter().find(|m| !m.family.is_binary()) {
            let message = format!(
                "`evidence.combine` = \"augmented\" is for logistic and probit models, and `{}` is {}; write combine = \"exact\"",
                model.name, model.family
            );
            return Err(Error::input_at(Place::key(self.key_of(model)), message));
        }
        Ok(())
    }
}

/// How many draws there can be. Of chains they are those of each, and all chains' together can be enough.
pub(super) fn draws(evidence: &EvidenceOptions) -> Limits {
    let is_weighed = match evidence.combine {
        Combine::Exact => true,
        Combine::Augmented => false,
        _ => matches!(evidence.local, Local::Auto | Local::Importance | Local::NutsImportance),
    };
    DRAWS.if_weighed(is_weighed)
}

fn proposals(evidence: &EvidenceOptions) -> Limits {
    PROPOSALS.if_weighed(evidence.combine == Combine::CmcIs)
}

fn check_model(i: usize, model: &ModelSpec) -> Result<()> {
    let key = |name: &str| format!("model[{i}].{name}");
    if let Some(fault) = formula_fault(&model.formula) {
        return wrong(&key("formula"), fault);
    }
    filled(&key("name"), &model.name, "a name")?;
    if model.name.contains(char::is_control) {
        return wrong(&key("name"), "must be a single line of text");
    }
    match model.probability {
        Some(value) if !value.is_finite() => {
            return wrong(&key("probability"), format!("must be a finite number, not {value}"));
        }
        Some(value) if value <= 0.0 => {
            let message =
                format!("must be positive, but is {value}; leave out a model that cannot be true");
            return wrong(&key("probability"), message);
        }
        _ => {}
    }
    super::ties::check_table(&key("prior"), &model.prior)?;
    // What the family decides on; a study's own priors may be for other models.
    let prior = &model.prior;
    for (name, given) in [
        ("log_sd", prior.log_sd),
        ("log_dispersion", prior.log_dispersion),
        ("log_df", prior.log_df),
        ("log_shape", prior.log_shape),
        ("log_precision", prior.log_precision),
        ("logit_zero", prior.logit_zero),
        ("cut", prior.cut),
        ("log_gap", prior.log_gap),
    ] {
        if given.is_some() && !model.family.has_own(name) {
            let advice = match model.family.owns() {
                [own] => format!("its own parameter is `{own}`"),
                [own, other] => format!("its own parameters are `{own}` and `{other}`"),
                _ => "leave it out, or move it to [prior] if other models need it".to_string(),
            };
            let family = model.family;
            let message = format!("is given, but a {family} model has no {name}; {advice}");
            return wrong(&key(&format!("prior.{name}")), message);
        }
    }
    Ok(())
}

impl StudyFile {
    /// What the user should know about the study.
    pub fn notes(&self) -> Vec<Warning> {
        let (study, mut notes) = (&self.study, Vec::new());
        let sum = study.normalised().1;
        let given = study.models.iter().any(|m| m.probability.is_some());
        if given && (sum - 1.0).abs() > 1e-9 {
            let message = format!(
                "the models' prior probabilities sum to {sum}, not to 1; they were divided by their sum"
            );
            let advice = "give probabilities that sum to 1";
            let note = Warning::new(Level::Note, "probabilities-normalised", message, advice);
            notes.push(note.value(sum));
        }
        let (split, default) = (&study.split, Split::default());
        for (key, differs) in [
            ("split.clusters", split.clusters != default.clusters),
            ("split.cluster_on", split.cluster_on != default.cluster_on),
        ] {
            let line = self.lines.line(key);
            if split.by == SplitBy::Cluster || !(differs || line.is_some()) {
                continue;
            }
            let line = line.map(|line| format!(" (line {line})")).unwrap_or_default();
            let message = format!("`{key}`{line} does nothing with `split.by` = \"{}\"", split.by);
            let advice = "leave it out, or write by = \"cluster\"";
            notes.push(Warning::new(Level::Note, "clusters-unused", message, advice));
        }
        notes
    }
}
