//! What outcomes of groups with effects add to the log-likelihood beside what depends on predictors.

use crate::kernel::EffectFamily;
use crate::math::LOG_2PI;
use crate::math::counts::Dispersion;
use crate::model::Family;
use crate::{Error, Result};
use libm::lgamma;

/// The family as the kernel knows it, if effects can be integrated out for it.
pub fn law_of(family: Family) -> Result<EffectFamily> {
    EffectFamily::of(family).ok_or_else(|| {
        Error::input(format!(
            "random effects are for gaussian, logistic, probit, poisson and negative-binomial models, and this one is {family}; take the group as a factor, as in y ~ x + group"
        ))
    })
}

/// What an outcome adds whatever the parameters are.
pub(super) fn constant(family: EffectFamily, y: f64, trials: f64) -> f64 {
    match family {
        EffectFamily::Gaussian => -0.5 * LOG_2PI,
        EffectFamily::Logistic | EffectFamily::Probit if trials == 1.0 => 0.0,
        EffectFamily::Logistic | EffectFamily::Probit => {
            lgamma(trials + 1.0) - lgamma(y + 1.0) - lgamma(trials - y + 1.0)
        }
        EffectFamily::Poisson | EffectFamily::NegativeBinomial => -lgamma(y + 1.0),
    }
}

/// What outcomes with these weights add by the own parameter alone: value, and two derivatives as far as the rows' own do
/// not hold them.
pub(super) fn own_part(family: EffectFamily, outcomes: &[(f64, f64)], own: f64) -> [f64; 3] {
    let mut sums = [0.0; 3];
    match family {
        EffectFamily::Gaussian => {
            let weight: f64 = outcomes.iter().map(|(_, weight)| weight).sum();
            sums = [-own * weight, -weight, 0.0];
        }
        EffectFamily::NegativeBinomial => {
            let dispersion = Dispersion::new(own);
            for (y, weight) in outcomes {
                let terms = dispersion.rising(*y);
                sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += weight * term);
                // The rows' part has the slope of this and not its value.
                sums[0] += weight * y * own;
            }
        }
        _ => (),
    }
    sums
}
