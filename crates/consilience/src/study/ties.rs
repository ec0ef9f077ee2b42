//! Where priors may stand that tie a parameter to others, and what they ask of a model.

use super::{ModelSpec, ParameterName, PriorSpec, PriorTable, Role, Study};
use crate::error::clip;
use crate::model::{Family, Prior, Tie};
use crate::{Error, Place, Result};

/// Refuses priors in places where they mean nothing. `key` is that of the table.
pub(super) fn check_table(key: &str, table: &PriorTable) -> Result<()> {
    let own = [
        ("default", table.default),
        ("coefficients", table.coefficients),
        ("intercept", table.intercept),
        ("log_sd", table.log_sd),
        ("log_dispersion", table.log_dispersion),
    ];
    let own = own.into_iter().filter_map(|(name, spec)| Some((name.to_string(), spec?)));
    let named = table.parameters.iter().map(|(name, spec)| (format!("parameters.{name}"), *spec));
    for (name, spec) in own.chain(named) {
        let why = match (spec.tie, name.as_str()) {
            (Tie::Group, "coefficients") | (Tie::None, _) => continue,
            (Tie::Group, _) => format!(
                "is a prior of all coefficients together; write coefficients = \"{spec}\" under [prior] or [model.prior]"
            ),
            (Tie::Flat, "intercept" | "log_sd") => continue,
            (Tie::Flat, _) => "is for the intercept and for log_sd, which all models share: with a flat prior of a coefficient every other model would win (Lindley's paradox); give a proper prior".to_string(),
            (Tie::Sigma, "log_sd" | "log_dispersion") => "is a prior of a coefficient; this parameter has no unit that sigma could be".to_string(),
            (Tie::Sigma, "default") => "cannot be the prior of log_sd, which a default is for too; write coefficients = …".to_string(),
            (Tie::Sigma, "intercept") if spec.per_sd => "leaves open where the intercept is: `per sd` puts it near the outcome's mean, which is no multiple of sigma; leave out one of the two".to_string(),
            (Tie::Sigma, _) => continue,
        };
        let key = format!("{key}.{name}");
        let message = format!("`{}`: `{spec}` {why}", super::keys::shown(&key));
        return Err(Error::input_at(Place::key(key), message));
    }
    Ok(())
}

/// The priors of a model's parameters where some may be tied: what nobody speaks of follows from the prior of the
/// coefficients. `said` has what is said of each.
pub(super) fn tied(
    study: &Study,
    model: &ModelSpec,
    parameters: &[ParameterName],
    said: Vec<Option<PriorSpec>>,
) -> Result<Vec<PriorSpec>> {
    let key = study.key_of(model);
    let wrong = |message: String| {
        let message = format!("model `{}`: {message}", clip(&model.name));
        Err(Error::input_at(Place::key(key.clone()), message))
    };
    let group = group_of(study, model);
    let specs = said.into_iter().zip(parameters).map(|(said, parameter)| match (said, group) {
        (Some(spec), _) if spec.tie == Tie::Flat => PriorSpec::flat(parameter.role),
        (Some(spec), _) => spec,
        (None, Some(_)) if matches!(parameter.role, Role::Intercept | Role::LogSd) => {
            PriorSpec::flat(parameter.role)
        }
        (None, _) => parameter.role.default_prior(),
    });
    let specs: Vec<PriorSpec> = specs.collect();
    let gaussian = model.family == Family::Gaussian;
    for (spec, parameter) in specs.iter().zip(parameters) {
        let name = clip(&parameter.name);
        if spec.tie == Tie::Sigma && !gaussian {
            return wrong(format!(
                "the prior `{spec}` of `{name}` is in units of sigma, which a {} model does not have; leave out `* sigma`",
                model.family
            ));
        }
        if spec.tie == Tie::Flat && group.is_none() {
            return wrong(format!(
                "`{name}` has a flat prior, which goes with a prior of all coefficients together, as coefficients = \"jzs(medium)\" is; give `{name}` a proper prior, or the coefficients such a one"
            ));
        }
        let Some(group) = group.filter(|_| spec.tie != Tie::Group) else { continue };
        let fixed = matches!(spec.prior, Prior::Fixed { .. });
        match parameter.role {
            Role::Coefficient if !fixed => {
                return wrong(format!(
                    "`{name}` has the prior `{spec}` of its own, and coefficients = \"{group}\" is a prior of all of them together; leave out one of the two, or hold `{name}` fixed"
                ));
            }
            Role::Intercept
                if !matches!(spec.prior, Prior::Normal { .. }) || spec.tie == Tie::Sigma =>
            {
                return wrong(format!(
                    "with coefficients = \"{group}\" the intercept's prior is flat or normal, not `{spec}`"
                ));
            }
            _ => {}
        }
    }
    let Some(spec) = group else { return Ok(specs) };
    if !matches!(
        model.family,
        Family::Gaussian | Family::Logistic | Family::Probit | Family::Poisson
    ) {
        return wrong(format!(
            "coefficients = \"{spec}\" is for gaussian, logistic, probit and poisson models, not for {} ones; give the coefficients priors of their own, as in \"normal(0, 1) per sd\"",
            model.family
        ));
    }
    let has = |role: Role| parameters.iter().any(|p| p.role == role);
    if !has(Role::Intercept) {
        return wrong(format!(
            "coefficients = \"{spec}\" is about columns around their means, which needs an intercept; add one to the formula, or give the coefficients priors of their own"
        ));
    }
    if model.prior.coefficients.is_some() && !has(Role::Coefficient) {
        return wrong(format!(
            "coefficients = \"{spec}\" is given, but the model has no coefficients; leave it out, or say it under [prior] for all models"
        ));
    }
    Ok(specs)
}

/// The prior of a model's coefficients together, if that is what the study has for it.
pub(crate) fn group_of(study: &Study, model: &ModelSpec) -> Option<PriorSpec> {
    let said = [&model.prior, &study.prior].into_iter().find_map(|t| t.general(Role::Coefficient));
    said.filter(|spec| spec.tie == Tie::Group)
}

/// Refuses a prior of coefficients together where no model has any: `parameters` are those of all models.
pub(super) fn without_coefficients<'a>(
    study: &Study,
    mut parameters: impl Iterator<Item = &'a ParameterName>,
) -> Result<()> {
    let Some(spec) = study.prior.coefficients.filter(|spec| spec.tie == Tie::Group) else {
        return Ok(());
    };
    if parameters.any(|p| p.role == Role::Coefficient) {
        return Ok(());
    }
    let message = format!(
        "`prior.coefficients`: `{spec}` is a prior of coefficients, and no model has any; add a model with columns, or leave it out"
    );
    Err(Error::input_at(Place::key("prior.coefficients"), message))
}
