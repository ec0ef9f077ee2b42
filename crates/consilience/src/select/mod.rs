//! Choosing among all models of a space: probabilities of models and terms, with error bars.

mod centre;
mod enumerate;
mod gaussian;
mod importance;
mod jump;
mod listed;
mod picture;
mod report;
mod search;
mod sites;
mod weights;
mod zellner;

pub use report::{
    Coefficient, Inclusion, JumpFactor, ListedModel, NamedModel, SelectDiagnostics, Selection,
    VERSION,
};

use crate::combine::{Evidence, Setting, combine, subsetting};
use crate::engine::Session;
use crate::estimate::Estimate;
use crate::model::Tie;
use crate::space::{Space, Subset};
use crate::study::{Combine, Select, SelectBy};
use crate::{Error, Level, Result, Warning};

/// Up to so many models are computed one by one unless the study says otherwise.
const FEW: f64 = 64.0;

/// More models than this are never computed one by one.
const MANY: f64 = 4_096.0;

/// What a way through the models found.
pub(crate) struct Finding {
    pub method: &'static str,
    pub inclusion: Vec<Estimate>,
    pub sizes: Vec<Estimate>,
    /// The likeliest models with probability and, where it is known, log evidence, the first first.
    pub models: Vec<(Subset, Estimate, Option<Estimate>)>,
    pub outside: Estimate,
    pub unseen: Estimate,
    pub log_normaliser: Option<Estimate>,
    /// Per free parameter, over the models that have it: their share, and its first and second moments times
    /// that. `None` where they are not known.
    pub moments: Option<Vec<(f64, f64, f64)>>,
    pub jumps: Vec<JumpFactor>,
    pub diagnostics: SelectDiagnostics,
    pub warnings: Vec<Warning>,
}

/// Looks through all models; `setting` is of the model that has all terms.
pub(crate) fn find(
    session: &Session,
    setting: &Setting,
    space: &Space,
    select: &Select,
    named: &[Subset],
) -> Result<Finding> {
    if !setting.joint.is_plain() {
        return tied(session, setting, space, select);
    }
    let exact = setting.options.combine == Combine::Exact;
    // A search goes by one expansion, which says nothing of other peaks.
    let several = setting.model.family().is_some_and(|family| !family.is_log_concave());
    let few = space.models() <= if exact && !several { FEW } else { MANY };
    match select.method {
        SelectBy::Enumerate => enumerate::find(session, setting, space, select),
        SelectBy::Auto if few => enumerate::find(session, setting, space, select),
        SelectBy::Auto | SelectBy::Search if several => Err(Error::input(format!(
            "a search through all models goes by one peak of the likelihood, and that of a {} model can have several; write method = \"enumerate\" under [select] (up to 4,096 models), or method = \"reversible-jump\"",
            setting.model.likelihood_name()
        ))),
        SelectBy::Auto | SelectBy::Search if !exact => Err(Error::input(format!(
            "`evidence.combine` = \"{}\" does not go with a search through {} models, which has no normal approximations of shards; write combine = \"exact\", or method = \"reversible-jump\" under [select]",
            setting.options.combine,
            space.models()
        ))),
        SelectBy::Auto => {
            let found = all_at_once(session, setting, space, select);
            let why = match &found {
                Ok(found) => found.warnings.iter().find(|w| w.level >= Level::Unreliable),
                Err(_) => None,
            };
            let why = match (&found, why) {
                (Err(Error::Numeric { .. }), _) => "it fails".to_string(),
                (_, Some(warning)) => warning.message.clone(),
                _ => return found,
            };
            if space.models() > MANY {
                return found;
            }
            // Few enough to be sure of; where that fails too, what is there has to do, marked as it is.
            let mut found = match enumerate::find(session, setting, space, select) {
                Err(Error::Numeric { .. }) if found.is_ok() => return found,
                other => other?,
            };
            let message = format!("every model was computed by itself, since by a search {why}");
            let advice = "nothing needs to be done";
            found.warnings.push(Warning::new(Level::Note, "auto-method", message, advice));
            Ok(found)
        }
        SelectBy::Search => all_at_once(session, setting, space, select),
        SelectBy::ReversibleJump | SelectBy::JumpShares => {
            jump::find(session, setting, space, select, named)
        }
    }
}

/// Looks through models with priors that tie parameters: one by one, or by what the columns of each explain.
fn tied(session: &Session, setting: &Setting, space: &Space, select: &Select) -> Result<Finding> {
    let ties = setting.joint.of_free(&setting.model);
    let flat = setting.model.is_gaussian() && ties.iter().filter(|t| **t == Tie::Flat).count() == 2;
    let many = space.models() > FEW && select.method != SelectBy::Enumerate;
    match select.method {
        SelectBy::ReversibleJump | SelectBy::JumpShares => Err(Error::input(
            "`select.method`: shards that jump between models need a prior of every parameter by itself, and here some are tied to others; write method = \"auto\"",
        )),
        _ if many && flat && space.models() <= zellner::MOST => {
            zellner::select(session, setting, space, select.top)
        }
        _ if space.models() <= MANY => enumerate::find(session, setting, space, select),
        _ => Err(Error::input(format!(
            "there are {} models, too many for priors that tie parameters to others: at most {} of gaussian models where `intercept` and `log_sd` have the flat priors that go with a g-prior, at most {MANY} otherwise; name fewer candidates, or give every parameter a prior of its own, as in \"normal(0, 1) per sd\"",
            space.models(),
            zellner::MOST
        ))),
    }
}

/// By statistics where they are enough, by draws otherwise.
fn all_at_once(
    session: &Session,
    setting: &Setting,
    space: &Space,
    select: &Select,
) -> Result<Finding> {
    if gaussian::suits(setting)
        && let Some(found) = gaussian::select(session, setting, space, select.top)?
    {
        return Ok(found);
    }
    search::find(session, setting, space, select)
}

/// The evidences of these models, one by one.
pub(crate) fn evidences(
    session: &Session,
    setting: &Setting,
    space: &Space,
    models: &[Subset],
) -> Result<Vec<Evidence>> {
    let settings = models.iter().map(|model| subsetting(setting, space, model));
    combine(session, &settings.collect::<Result<Vec<Setting>>>()?)
}
