//! The union of what shards visited, each of its models computed as any other is.

use super::{JumpModel, visits};
use crate::combine::{Setting, combine};
use crate::engine::Session;
use crate::estimate::Estimate;
use crate::fit::Exploration;
use crate::model::{Body, Model, Parameter, Regression};
use crate::question::SurveyAnswer;
use crate::space::{Space, Subset};
use crate::{Error, Result};
use libm::log;
use std::sync::Arc;

/// What a shard's share of a model that it never visited is taken for, in draws.
const UNSEEN: f64 = 0.5;

/// At most so many models of the union, the likeliest by visits, with their evidences.
pub(super) fn fill(
    session: &Session,
    setting: &Setting,
    space: &Space,
    explorations: &[Exploration],
    most: usize,
) -> Result<Vec<JumpModel>> {
    let counts: Vec<_> = explorations.iter().map(visits::counts).collect();
    let visits = |model: &Subset| -> Vec<u64> {
        counts.iter().map(|c| c.get(model).copied().unwrap_or(0)).collect()
    };
    let score = |model: &Subset| -> f64 {
        let shares = visits(model).into_iter().zip(explorations);
        shares.map(|(v, e)| log((v as f64).max(UNSEEN) / e.draws as f64)).sum()
    };
    let union = visits::union(explorations);
    let mut ranked: Vec<(f64, Subset)> = union.into_iter().map(|m| (score(&m), m)).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    ranked.truncate(most);
    let settings: Vec<Setting> =
        ranked.iter().map(|(_, model)| subsetting(setting, space, model)).collect::<Result<_>>()?;
    let evidences = combine(session, &settings)?;
    let made = |((_, model), evidence): (&(f64, Subset), _)| {
        let evidence: super::Evidence = evidence;
        let Estimate { value, se } = evidence.log_z;
        let value = value + space.log_prior(model.len());
        let shares = visits(model).into_iter().zip(explorations);
        JumpModel {
            model: *model,
            name: space.name(model),
            log_posterior: Estimate { value, se },
            shares: shares.map(|(v, e)| v as f64 / e.draws as f64).collect(),
            evidence: Some(evidence),
        }
    };
    Ok(ranked.iter().zip(evidences).map(made).collect())
}

/// The model of a space that has these terms, made from the one that has all: the same design, the same priors.
pub fn submodel(full: &Model, space: &Space, model: &Subset) -> Result<Model> {
    let kept = kept(full, space, model)?;
    let Body::Regression(regression) = &full.body else {
        return Err(Error::input("a likelihood of somebody else's has no models with fewer terms"));
    };
    let pick = |(parameter, kept): (&Parameter, &bool)| kept.then(|| parameter.clone());
    let active = regression.active.iter().zip(&kept).filter(|(_, kept)| **kept);
    Ok(Model {
        name: space.name(model),
        parameters: full.parameters.iter().zip(&kept).filter_map(pick).collect(),
        body: Body::Regression(Regression {
            active: active.map(|(column, _)| *column).collect(),
            ..regression.clone()
        }),
    })
}

/// Per parameter of the full model, free or fixed, whether a model of the space has it.
fn kept(full: &Model, space: &Space, model: &Subset) -> Result<Vec<bool>> {
    let own = space.coordinates(model);
    let mut free = 0..;
    let is_kept = |parameter: &Parameter| {
        parameter.prior.fixed().is_some()
            || free.next().is_some_and(|number: usize| own.binary_search(&number).is_ok())
    };
    let kept: Vec<bool> = full.parameters.iter().map(is_kept).collect();
    let own = full.own_parameters().len();
    if kept[kept.len() - own..].iter().any(|kept| !kept) {
        let message = "a candidate term owns the family's own parameter";
        return Err(Error::input(message).for_model(&full.name));
    }
    Ok(kept)
}

/// The setting of a model of a space, made from that of the one with all terms.
pub fn subsetting(full: &Setting, space: &Space, model: &Subset) -> Result<Setting> {
    let own = submodel(&full.model, space, model)?;
    let columns = kept(&full.model, space, model)?;
    let coefficients = full.model.coefficients();
    let free: Vec<bool> = coefficients.iter().map(|p| p.prior.fixed().is_none()).collect();
    let pick = |values: &[f64], of: &mut dyn Iterator<Item = bool>| -> Vec<f64> {
        values.iter().zip(of).filter(|(_, kept)| *kept).map(|(v, _)| *v).collect()
    };
    let part = |survey: &SurveyAnswer| SurveyAnswer {
        // Of free coefficients only, where the others are of all.
        nonzero: pick(
            &survey.nonzero,
            &mut columns.iter().zip(&free).filter(|(_, free)| **free).map(|(kept, _)| *kept),
        ),
        means: pick(&survey.means, &mut columns.iter().copied()),
        squares: pick(&survey.squares, &mut columns.iter().copied()),
        ..*survey
    };
    Ok(Setting {
        model: Arc::new(own),
        joint: full.joint.part(&columns),
        surveys: full.surveys.iter().map(part).collect(),
        located: None,
        warnings: Vec::new(),
        ..full.clone()
    })
}
