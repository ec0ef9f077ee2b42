//! Which outcomes a model can have, and what it can be asked for.

use super::outline::at_formula;
use crate::data::{Expr, Recipe, Response, ResponseKind};
use crate::model::groups::law_of;
use crate::model::{Family, NO_OFFSET, Tie};
use crate::study::{Combine, Local, ModelSpec, PriorSpec, Study};
use crate::{Error, Result};

/// Effects of groups are for some families, and for what needs no more of a likelihood than its values and slopes.
pub(super) fn fitting_effects(study: &Study, spec: &ModelSpec) -> Result<()> {
    law_of(spec.family)?;
    let message = if study.select.is_some() {
        "[select] cannot have random effects; list the models as [[model]], or take the group as a factor".to_string()
    } else if study.evidence.combine == Combine::Augmented
        || matches!(study.evidence.local, Local::GibbsChib | Local::GibbsBridge)
    {
        "Gibbs sampling does not know random effects; use combine = \"exact\" and local = \"auto\""
            .to_string()
    } else {
        return Ok(());
    };
    Err(Error::input(message))
}

/// Classes are no numbers, and of a binary outcome there must be both.
pub(super) fn fitting_outcome(study: &Study, spec: &ModelSpec, recipe: &Recipe) -> Result<()> {
    let response = &recipe.response;
    if spec.family == Family::Multinomial && !recipe.offsets.is_empty() {
        return Err(at_formula(Error::input(NO_OFFSET), study, spec));
    }
    fitting_kind(spec.family, response).map_err(|e| at_formula(e, study, spec))?;
    if let ResponseKind::Classes { levels } = &response.kind
        && !spec.family.is_binary()
    {
        let message = format!(
            "the outcome `{}` is {}, and a {} model needs numbers; use family = \"logistic\" or \"probit\", or see whether the column was meant to hold numbers",
            response.text,
            levels.iter().map(|l| format!("`{l}`")).collect::<Vec<_>>().join(" or "),
            spec.family
        );
        return Err(at_formula(Error::input(message), study, spec));
    }
    // Whether all trials were successes is only known once the rows were looked at.
    if response.kind == ResponseKind::Pairing {
        return Ok(());
    }
    both_classes(study, spec, response)
}

/// A binary outcome with a single class says nothing about any model.
pub(super) fn both_classes(study: &Study, spec: &ModelSpec, response: &Response) -> Result<()> {
    let both = match response.kind {
        // The mean is the share of successes; a single row has no spread and may have both.
        ResponseKind::Pairing => response.mean > 0.0 && response.mean < 1.0,
        _ => response.sd != 0.0,
    };
    if both || !spec.family.is_binary() {
        return Ok(());
    }
    let all = match &response.kind {
        ResponseKind::Classes { levels } => {
            let class = &levels[usize::from(levels.len() > 1 && response.mean > 0.0)];
            format!("is {class} in all {} complete rows", response.weight)
        }
        ResponseKind::Pairing => {
            let class = if response.mean > 0.0 { "successes" } else { "failures" };
            format!("has {class} alone, {} of them", response.weight)
        }
        _ => format!("is {} in all {} complete rows", response.mean, response.weight),
    };
    let message = format!(
        "the outcome `{}` {all}, but a {} model needs both classes; check the data, and what is missing in them",
        response.text, spec.family
    );
    Err(at_formula(Error::input(message), study, spec))
}

/// Outcomes of several numbers, and ordered ones, are for the families that are made for them.
fn fitting_kind(family: Family, response: &Response) -> Result<()> {
    let counts = matches!(&response.expr, Expr::Pairing(joint, ..) if joint.is_count());
    let text = &response.text;
    let message = match &response.kind {
        ResponseKind::Pairing if counts && !family.is_binary() => format!(
            "{text} is for logistic and probit models, and this one is {family}; use family = \"logistic\""
        ),
        ResponseKind::Pairing if !counts && !family.is_survival() => format!(
            "{text} is for times, and a {family} model has none; use family = \"weibull\", \"exponential\" or \"log-normal\""
        ),
        ResponseKind::Levels { .. } if !family.has_levels() => format!(
            "{text} is for classes in order, and a {family} model has none; use family = \"cumulative-logit\" or \"cumulative-probit\""
        ),
        ResponseKind::Number if family == Family::Beta && !(0.0..=1.0).contains(&response.mean) => {
            format!(
                "the mean of {text} is {}, and a beta model needs numbers between 0 and 1; write a share, as in I({text}/100)",
                response.mean
            )
        }
        _ => return Ok(()),
    };
    Err(Error::input(message))
}

/// A flat prior of the intercept leaves the likelihood to bound it from both sides, which counts that are all 0 do not.
pub(super) fn fitting_flat(
    study: &Study,
    spec: &ModelSpec,
    response: &Response,
    priors: &[PriorSpec],
) -> Result<()> {
    let flat = priors.iter().any(|prior| prior.tie == Tie::Flat);
    if !flat || spec.family != Family::Poisson || response.mean > 0.0 {
        return Ok(());
    }
    let message = format!(
        "the outcome `{}` is 0 in all {} complete rows, which any rate near 0 explains as well, and the intercept has a flat prior: there is no evidence, its integral is infinite; give the intercept a proper prior, as in intercept = \"normal(0, 2.5)\" under [prior], or check the data, and what is missing in them",
        response.text, response.weight
    );
    Err(at_formula(Error::input(message), study, spec))
}
