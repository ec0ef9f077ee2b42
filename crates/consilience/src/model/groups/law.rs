//! What outcomes of groups with effects add to the log-likelihood beside what depends on predictors.

use crate::Error;
use crate::kernel::EffectFamily;
use crate::math::LOG_2PI;
use crate::math::counts::Dispersion;
use crate::model::Family;
use libm::lgamma;

/// Whether effects can be integrated out for the family.
pub fn has_law(family: Family) -> bool {
    EffectFamily::of(family).is_some()
}

/// What is to be said of a family for which they cannot.
pub(super) fn refusal(family: Family) -> Error {
    Error::input(format!(
        "random effects are for gaussian, logistic, probit, poisson and negative-binomial models, and this one is {family}; take the group as a factor, as in y ~ x + group"
    ))
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
