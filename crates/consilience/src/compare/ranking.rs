//! Whether the width of priors decides which model is the best.

use super::{ScaledModel, ScaledPriors};
use crate::{Level, Warning};

/// The scales of priors between which nobody could say which is right.
const NEAR: std::ops::RangeInclusive<f64> = 0.5..=2.0;

/// A difference counts from so many of its standard errors on.
const ERRORS: f64 = 2.0;

/// Cautions where one model is the best under priors of one width and another under priors of another, both between
/// half and twice the study's own, and both by more than the error. `prior` has the models' prior probabilities.
pub(super) fn turned(scales: &[ScaledPriors], prior: &[f64]) -> Option<Warning> {
    let near: Vec<&ScaledPriors> = scales.iter().filter(|s| NEAR.contains(&s.scale)).collect();
    let ahead = |at: &ScaledPriors, a: usize, b: usize| {
        let (first, second): (&ScaledModel, &ScaledModel) = (&at.models[a], &at.models[b]);
        let gap = first.log_evidence - second.log_evidence;
        let odds = gap.value + libm::log(prior[a]) - libm::log(prior[b]);
        (odds > ERRORS * gap.se.unwrap_or(0.0)).then_some(odds)
    };
    let place = |at: &ScaledPriors| at.models.iter().position(|m| m.name == at.best);
    for (k, one) in near.iter().enumerate() {
        for other in &near[k + 1..] {
            let (a, b) = (place(one)?, place(other)?);
            if a == b {
                continue;
            }
            let (Some(here), Some(there)) = (ahead(one, a, b), ahead(other, b, a)) else {
                continue;
            };
            let message = format!(
                "which model is the best depends on how wide the coefficients' priors are: with {} times their scales `{}` is ahead of `{}` by {here:.2} nats, with {} times the other way round by {there:.2}",
                one.scale, one.best, other.best, other.scale
            );
            let advice = "say which size of effects was to be expected, and give priors of that width; without that, the data do not decide between the two";
            let warning = Warning::new(Level::Caution, "prior-ranking", message, advice);
            return Some(warning.value(here.min(there)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Estimate;

    fn at(scale: f64, first: f64, second: f64, se: f64) -> ScaledPriors {
        let model = |name: &str, value: f64| ScaledModel {
            name: name.to_string(),
            log_evidence: Estimate::new(value, se),
            log_bayes_factor: Estimate::ZERO,
            probability: 0.5,
            warnings: Vec::new(),
        };
        let best = if first > second { "a" } else { "b" };
        ScaledPriors {
            scale,
            best: best.to_string(),
            another_best: false,
            reordered: false,
            models: vec![model("a", first), model("b", second)],
        }
    }

    #[test]
    fn a_ranking_turns_only_near_the_priors_and_beyond_the_error() {
        let even = [0.5, 0.5];
        let turns = [at(0.5, 1.0, 0.0, 0.01), at(1.0, 0.5, 0.0, 0.01), at(2.0, 0.0, 0.3, 0.01)];
        let warning = turned(&turns, &even).unwrap();
        assert_eq!((warning.code.as_str(), warning.value), ("prior-ranking", Some(0.3)));
        // Within the error, far from the study's own scales, or not at all.
        assert!(turned(&[at(0.5, 1.0, 0.0, 0.01), at(2.0, 0.0, 0.02, 0.01)], &even).is_none());
        assert!(turned(&[at(1.0, 1.0, 0.0, 0.01), at(10.0, 0.0, 1.0, 0.01)], &even).is_none());
        assert!(turned(&[at(0.5, 1.0, 0.0, 0.01), at(2.0, 0.2, 0.1, 0.01)], &even).is_none());
    }
}
