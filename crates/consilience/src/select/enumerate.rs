//! Every model's evidence, one by one.

use super::listed::{Single, found};
use super::{Finding, MANY, evidences};
use crate::combine::Setting;
use crate::engine::Session;
use crate::estimate::Estimate;
use crate::space::{Space, Subset};
use crate::study::Select;
use crate::{Error, Result};

/// All models of a space.
fn all(space: &Space) -> Vec<Subset> {
    let mut models = vec![Subset::EMPTY];
    for term in 0..space.terms.len() {
        for k in 0..models.len() {
            if space.welcomes(&models[k], term) {
                models.push(models[k].with(term));
            }
        }
    }
    models.sort_unstable();
    // A prior may rule sizes out.
    models.retain(|model| space.log_prior(model.len()) > f64::NEG_INFINITY);
    models
}

pub(super) fn find(
    session: &Session,
    setting: &Setting,
    space: &Space,
    select: &Select,
) -> Result<Finding> {
    if space.models() > MANY {
        return Err(Error::input(format!(
            "there are {} models, too many to compute one by one (at most {MANY}); write method = \"search\" under [select], or name fewer candidates",
            space.models()
        )));
    }
    let models = all(space);
    let evidences = evidences(session, setting, space, &models)?;
    let singles: Vec<Single> = models
        .into_iter()
        .zip(evidences)
        .map(|(model, evidence)| {
            let Estimate { value, se } = evidence.log_z;
            let value = value + space.log_prior(model.len());
            Single { model, log_posterior: Estimate { value, se }, evidence: Some(evidence) }
        })
        .collect();
    Ok(found("enumerate", space, &singles, select.top))
}
