//! What the estimates of a sweep are held against.

use super::Sweep;
use super::cell::{Cell, CellCombination};
use super::metrics::{best, pooled};
use crate::estimate::Estimate;
use crate::study::Combine;
use crate::{Error, Level, Result, Warning};
use serde::Serialize;

/// A reference whose own error is larger than this, in nats, blurs what is said about 0.1 nat.
const BLUR: f64 = 0.03;

/// Given values further than this from those of `exact`, in nats and in standard errors, are doubted.
const FAR: (f64, f64) = (0.1, 4.0);

/// Models whose log evidences differ by less, in nats, are as good as each other: nobody chooses by a Bayes factor of 1.01.
const EQUAL: f64 = 0.01;

/// What estimates are held against.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reference {
    /// `exact`, or `given`.
    pub method: &'static str,
    /// Every model's log evidence: of `exact` the mean over the repeats' seeds.
    pub log_evidence: Vec<Estimate>,
    /// The number of the model with the highest log evidence, from 0; the first of equals.
    pub best: usize,
    /// Whether that model is told from every other: log evidences differ by more than 0.01 nat and twice the standard
    /// error of the difference. `false` where there is one model only.
    pub tells_best: bool,
    /// Whether errors of 0.1 nat can be told: no standard error is above 0.03.
    pub tells_tenth_nat: bool,
}

/// What `exact` found with each repeat's seed, taken out of the cells: of each repeat the cell counts in which this
/// sweep computes it. What a smaller sweep left in others was found with the same seed, hence is no further
/// finding, and would make what is said depend on how the sweep grew.
pub(super) fn take_exact(sweep: &Sweep, cells: &mut [Cell]) -> Vec<Option<CellCombination>> {
    let mut found = vec![None; sweep.repeats];
    for (name, cell) in sweep.cells().iter().zip(cells) {
        let exact = cell.take("exact");
        if name.exact {
            found[name.repeat - 1] = exact;
        }
    }
    found
}

/// Leaves in the cells what was asked for alone. What `exact` found with a seed stands in all cells of that seed, since it
/// does not depend on the split; where it is only the reference, in none.
pub(super) fn share_exact(sweep: &Sweep, cells: &mut [Cell], exact: &[Option<CellCombination>]) {
    let place = |method: &str| sweep.combine.iter().position(|c| c.name() == method);
    let shown = sweep.combine.contains(&Combine::Exact);
    for cell in cells {
        cell.combinations.retain(|c| place(&c.method).is_some());
        if !sweep.votes {
            cell.votes.clear();
            cell.votes_error = None;
        }
        cell.combinations.extend(exact[cell.repeat - 1].clone().filter(|_| shown));
        cell.combinations.sort_by_key(|c| place(&c.method));
    }
}

impl Reference {
    pub(super) fn of(
        sweep: &Sweep,
        exact: &[Option<CellCombination>],
        models: &[String],
        warnings: &mut Vec<Warning>,
    ) -> Result<Reference> {
        let exact: Vec<&CellCombination> = exact.iter().flatten().collect();
        let found: Vec<_> = exact.iter().filter(|e| e.error.is_none()).collect();
        let of = |k: usize| {
            let own: Vec<Estimate> = found.iter().map(|e| e.models[k].log_evidence).collect();
            pooled(&own)
        };
        let own: Vec<Estimate> = (0..models.len()).filter_map(of).collect();
        if let Some(values) = &sweep.reference {
            let given: Vec<Estimate> = values.iter().map(|&v| Estimate::new(v, 0.0)).collect();
            warnings.extend(disputed(&given, &own, models));
            return Ok(Reference::new("given", given));
        }
        if found.is_empty() {
            let why =
                exact.iter().find_map(|e| e.error.as_deref()).unwrap_or("it was not computed");
            return Err(Error::numeric(format!(
                "there is no reference to hold anything against: `exact` found none ({why}); give the true values by --reference"
            )));
        }
        if found.len() < exact.len() {
            let why = exact.iter().find_map(|e| e.error.as_deref()).unwrap_or_default();
            let message = format!(
                "`exact`, which all is held against, failed with {} of {} seeds: {why}",
                exact.len() - found.len(),
                exact.len()
            );
            let advice = "the reference is of the other seeds; run `consilience compare` with the seed that failed to see more";
            warnings.push(Warning::new(Level::Caution, "reference-failed", message, advice));
        }
        if found.iter().any(|e| e.models.iter().any(|m| m.unreliable)) {
            let message =
                "`exact`, which all is held against, says of itself that it is not to be trusted";
            let advice = "run `consilience compare` on this study to see why, or give the true values by --reference";
            warnings.push(Warning::new(Level::Unreliable, "reference", message, advice));
        }
        let reference = Reference::new("exact", own);
        if !reference.tells_tenth_nat {
            let widest = reference.widest();
            let message = format!(
                "the reference has the standard error {widest:.3}, so that errors below 0.1 nat cannot be told"
            );
            let advice = "lower se_target, or run more repeats";
            warnings.push(
                Warning::new(Level::Caution, "reference-error", message, advice).value(widest),
            );
        }
        Ok(reference)
    }

    fn new(method: &'static str, log_evidence: Vec<Estimate>) -> Reference {
        let values: Vec<f64> = log_evidence.iter().map(|e| e.value).collect();
        let best = best(&values);
        let mut reference =
            Reference { method, best, tells_best: false, tells_tenth_nat: false, log_evidence };
        reference.tells_tenth_nat = reference.widest() <= BLUR;
        let is_behind = |other: usize| {
            let factor = reference.log_evidence[best] - reference.log_evidence[other];
            factor.value > EQUAL.max(2.0 * factor.se.unwrap_or(0.0))
        };
        reference.tells_best =
            values.len() > 1 && (0..values.len()).filter(|k| *k != best).all(is_behind);
        reference
    }

    /// The largest standard error.
    pub(super) fn widest(&self) -> f64 {
        self.log_evidence.iter().filter_map(|e| e.se).fold(0.0, f64::max)
    }
}

/// Given values that are far from what `exact` finds: one of the two is wrong.
fn disputed(given: &[Estimate], exact: &[Estimate], names: &[String]) -> Option<Warning> {
    let off = |k: usize| (given[k].value - exact[k].value).abs();
    let far = |k: &usize| off(*k) > FAR.0 && off(*k) > FAR.1 * exact[*k].se.unwrap_or(0.0);
    let all: Vec<usize> = (0..exact.len()).filter(far).collect();
    let worst = *all.iter().max_by(|&&a, &&b| off(a).total_cmp(&off(b)))?;
    let se = exact[worst].se.map_or(String::new(), |se| format!(" ± {se:.4}"));
    let others = match all.len() - 1 {
        0 => String::new(),
        1 => "; another model's is far off, too".into(),
        others => format!("; those of {others} other models are far off, too"),
    };
    let message = format!(
        "--reference gives {} as the log evidence of `{}`, and `exact` finds {:.4}{se}: one of the two is wrong{others}",
        given[worst].value, names[worst], exact[worst].value
    );
    let advice = "find out which before you rest on any error shown here: --reference must be of this study, these data and these priors, with a value for each model in the study's order";
    let warning = Warning::new(Level::Caution, "reference-disputed", message, advice);
    Some(warning.value(off(worst)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reference_can_tell() {
        let of = |values: &[(f64, f64)]| {
            Reference::new("exact", values.iter().map(|&(v, se)| Estimate::new(v, se)).collect())
        };
        let clear = of(&[(-5.0, 0.01), (-3.0, 0.01)]);
        assert_eq!((clear.best, clear.tells_best, clear.tells_tenth_nat), (1, true, true));
        let equal = of(&[(-3.0, 0.0), (-3.0, 0.0), (-9.0, 0.0)]);
        assert_eq!((equal.best, equal.tells_best), (0, false));
        // 0.5 ± 0.4 is no difference, and 0.4 tells no error of 0.1.
        let noisy = of(&[(-3.0, 0.4), (-3.5, 0.0)]);
        assert_eq!((noisy.tells_best, noisy.tells_tenth_nat), (false, false));
        // So is 0.6 ± 0.4, though another model is nearer and told.
        assert!(!of(&[(-3.0, 0.0), (-3.5, 0.01), (-3.6, 0.4)]).tells_best);
        assert!(!of(&[(-3.0, 0.0)]).tells_best);
    }

    #[test]
    fn given_values_are_doubted_beyond_both_bounds() {
        let names = ["a", "b"].map(String::from);
        let exact = [Estimate::new(-10.0, 0.01), Estimate::new(-20.0, 0.2)];
        let of = |a: f64, b: f64| {
            disputed(&[Estimate::new(a, 0.0), Estimate::new(b, 0.0)], &exact, &names)
        };
        // 0.09 nat are 9 standard errors of the first, 0.7 are less than 4 of the second.
        assert_eq!(of(-10.09, -20.7), None);
        let found = of(-10.2, -20.7).unwrap();
        assert!(found.message.contains("-10.2") && found.message.contains("`a`"), "{found:?}");
        let found = of(-10.2, -25.0).unwrap();
        assert!(found.message.contains("`b`") && found.message.contains("another"), "{found:?}");
        assert_eq!(disputed(&[Estimate::new(1.0, 0.0)], &[], &names), None);
    }
}
