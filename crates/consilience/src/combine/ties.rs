//! Which combinations carry priors that tie parameters to others.

use super::{Setting, has_statistics};
use crate::model::{Family, Model, Parameter, Tie};
use crate::study::{Combine, Local};
use crate::{Error, Result};

/// A prior of a setting that is tied, in words.
fn named(setting: &Setting) -> String {
    let joint = &setting.joint;
    if let Some((group, _)) = joint.group() {
        return format!("coefficients = \"{group}\"");
    }
    let tied = setting.model.parameters.iter().enumerate();
    let mut tied = tied.filter(|(j, _)| joint.tie(*j) != Tie::None);
    tied.next().map_or_else(String::new, |(j, p)| {
        format!("the prior {} of `{}`", joint.text(j, p.prior), p.name)
    })
}

/// Fails where a setting's combination cannot carry its priors: those that tie parameters are known to the centre,
/// and a shard's own evidence would be under others.
pub(crate) fn refuse_ties(setting: &Setting) -> Result<()> {
    let (joint, options) = (&setting.joint, &setting.options);
    if joint.is_plain() {
        return Ok(());
    }
    let wrong = |why: String| {
        let message = format!("model `{}`: {} {why}", setting.model.name, named(setting));
        Err(Error::input(message))
    };
    if options.combine != Combine::Exact {
        return wrong(format!(
            "needs combine = \"exact\" under [evidence]: by \"{}\" every shard would need a share of a prior that only all rows together settle; or give every parameter a prior of its own, as in \"normal(0, 1) per sd\"",
            options.combine
        ));
    }
    if !matches!(options.local, Local::Auto | Local::None) {
        return refuse_fits(setting);
    }
    if joint.group().is_some()
        && setting.model.family() == Some(Family::Probit)
        && is_shifted(&setting.model)
    {
        return wrong(
            "is about the information where all rows have one predictor, and the offset of this probit model, or a coefficient that is held fixed, gives them several; write a logistic model, or give the coefficients priors of their own, as in \"normal(0, 1) per sd\"".into(),
        );
    }
    if setting.model.is_gaussian() && !has_statistics(&setting.model, options) {
        return wrong(
            "is computed from the statistics of all rows; set statistics = true under [evidence]"
                .into(),
        );
    }
    if setting.extras.leave_one_out && joint.group().is_some() {
        return wrong("is settled by all rows, and without a shard's it would be another prior; do without --leave-one-out, or give the coefficients priors of their own".into());
    }
    Ok(())
}

/// Whether rows have different predictors though all free coefficients are 0.
fn is_shifted(model: &Model) -> bool {
    let held = |p: &Parameter| p.prior.fixed().is_some_and(|value| value != 0.0);
    model.regression().is_some_and(|r| !r.design.offsets.is_empty())
        || model.coefficients().iter().any(held)
}

/// Fails where shards are to compute evidences of their own under such priors.
pub(super) fn refuse_fits(setting: &Setting) -> Result<()> {
    if setting.joint.is_plain() {
        return Ok(());
    }
    Err(Error::input(format!(
        "model `{}`: {} is settled by all rows together, so that no shard has an evidence of its own under it; leave `local` out, or give every parameter a prior of its own, as in \"normal(0, 1) per sd\"",
        setting.model.name,
        named(setting)
    )))
}

/// Fails where evidences are compared of which some lack a constant that others have: those with flat priors are
/// known up to a factor that only models with the same outcome and the same flat priors share.
pub(super) fn refuse_incomparable(settings: &[Setting]) -> Result<()> {
    let Some(improper) = settings.iter().find(|s| s.joint.has(Tie::Flat)) else { return Ok(()) };
    let ground = |setting: &Setting| {
        let flat: Vec<String> = (0..setting.model.parameters.len())
            .filter(|&j| setting.joint.tie(j) == Tie::Flat)
            .map(|j| setting.model.parameters[j].name.clone())
            .collect();
        let outcome = setting.model.regression().map(|r| r.response().text.clone());
        (flat, setting.model.family(), outcome)
    };
    let own = ground(improper);
    let Some(other) = settings.iter().find(|s| ground(s) != own) else { return Ok(()) };
    Err(Error::input(format!(
        "model `{}` has flat priors of {}, and `{}` has not the same: its evidence is known up to a factor that only models share that have the same outcome, the same family and the same flat priors, so that the two cannot be compared; give {} proper priors under [prior], such as \"normal(0, 2.5) per sd\", or both models the same kind of prior",
        improper.model.name,
        own.0.join(" and "),
        other.model.name,
        own.0.join(" and "),
    )))
}
