//! What a comparison comes to, in a sentence that says no more than the errors allow.

use super::{Comparison, ModelResult, Strength};
use crate::estimate::Estimate;
use libm::exp;
use serde::Serialize;

/// Standard errors on either side of an interval of 95%.
const SIDES: f64 = 1.959964;

/// An interval this many times as wide as its low end is shown: a rounded number tells narrower ones.
const WORTH_SHOWING: f64 = 1.25;

/// The model with the highest posterior probability, and how it stands to the next.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Best {
    /// Its name.
    pub name: String,
    /// The probability that it truly is the one, given the error bars of the log evidences; `None`
    /// where one has no error bar.
    pub certainty: Option<f64>,
    /// The name of the next most probable model; `None` where there is one model alone.
    pub next: Option<String>,
    /// log p(y|best) − log p(y|next). Below 0 where only its prior probability puts it first.
    pub log_bayes_factor: Option<Estimate>,
    /// How strong that evidence is, whichever of the two it is for: what is sure given the error bars.
    pub strength: Option<Strength>,
    /// All of this as a sentence; `None` where there is nothing to compare.
    pub sentence: Option<String>,
}

impl Best {
    /// Of models in their order, the most probable first. The sentence is said when all else is known.
    pub(super) fn new(models: &[ModelResult], order: &[usize], certainty: Option<f64>) -> Best {
        let (best, next) = (&models[order[0]], order.get(1).map(|i| &models[*i]));
        let factor = next.map(|next| best.log_evidence - next.log_evidence);
        Best {
            name: best.name.clone(),
            certainty,
            next: next.map(|next| next.name.clone()),
            log_bayes_factor: factor,
            strength: factor.map(Strength::of),
            sentence: None,
        }
    }
}

impl Comparison {
    /// Says what the comparison comes to; when all warnings are there, since they may forbid to say much.
    pub(crate) fn conclude(&mut self) {
        self.best.sentence = self.sentence();
    }

    fn sentence(&self) -> Option<String> {
        let order = self.order();
        let [best, next, ..] = order[..] else { return None };
        let (best, next) = (&self.models[best], &self.models[next]);
        let (b, a) = (&best.name, &next.name);
        if !self.is_reliable() {
            return Some(format!(
                "`{b}` comes first, but a warning says that these results are not to be trusted as they stand: how strong the evidence is cannot be said."
            ));
        }
        let factor = best.log_evidence - next.log_evidence;
        let prior = libm::log(best.prior_probability) - libm::log(next.prior_probability);
        let the_next = if self.models.len() > 2 { ", the next" } else { "" };
        let (ahead, behind) = if factor.value < 0.0 { (a, b) } else { (b, a) };
        let evidence = SaidEvidence::of(factor);
        let said = match &evidence {
            SaidEvidence::Unknown => format!(
                "Whether the data favour `{b}` or `{a}` is within the Monte Carlo error, which is too large to say how strong the evidence is"
            ),
            SaidEvidence::Neither { most } => format!(
                "The data favour neither `{b}` nor `{a}` by more than {most}: not worth more than a bare mention"
            ),
            SaidEvidence::Known { odds, words } if prior.abs() > 1e-12 => {
                format!("The data favour `{ahead}` {odds} over `{behind}`: {words}")
            }
            SaidEvidence::Known { odds, words } => {
                format!("`{ahead}` is favoured {odds} over `{behind}`{the_next}: {words}")
            }
        };
        if prior.abs() <= 1e-12 {
            return Some(said + ".");
        }
        // What the prior adds is known without error.
        let (priors, both) = (ratio(prior.abs()), ratio((factor.value + prior).abs()));
        let held = if prior > 0.0 { b } else { a };
        let so = match (&evidence, factor.value < 0.0) {
            (SaidEvidence::Known { .. }, true) => {
                format!("prior odds of {priors} for `{held}` put it first all the same, {both}")
            }
            _ => format!("with prior odds of {priors} for `{held}`, `{b}` comes first, {both}"),
        };
        Some(format!("{said}; {so}."))
    }
}

/// How a log Bayes factor can be spoken of.
enum SaidEvidence {
    /// Its sign is not known, nor its size.
    Unknown,
    /// Its sign is not known, and it is small either way.
    Neither {
        /// What it is at most.
        most: String,
    },
    /// Its sign is known.
    Known {
        /// As odds, with an interval where that matters.
        odds: String,
        /// How strong that is.
        words: String,
    },
}

impl SaidEvidence {
    fn of(factor: Estimate) -> SaidEvidence {
        let size = factor.value.abs();
        let reach = SIDES * factor.se.unwrap_or(0.0);
        let (low, high) = (size - reach, size + reach);
        let (least, most) = (Strength::at(low.max(0.0)), Strength::at(high));
        if low <= 0.0 {
            return match most {
                Strength::BareMention => SaidEvidence::Neither { most: ratio(high) },
                _ => SaidEvidence::Unknown,
            };
        }
        let mut odds = ratio(size);
        if exp(high - low) > WORTH_SHOWING {
            odds += &format!(" ({} to {})", times(low), times(high));
        }
        if factor.se.is_none() {
            odds += " (without an error bar)";
        }
        let words = match (least == most, least) {
            (true, Strength::BareMention) => "not worth more than a bare mention".to_string(),
            (true, least) => format!("{} evidence", least.short()),
            (false, Strength::BareMention) => format!("at most {} evidence", most.short()),
            (false, least) => format!("{} to {} evidence", least.short(), most.short()),
        };
        SaidEvidence::Known { odds, words }
    }
}

/// Odds in words, of their logarithm: `2.3 to 1`.
pub(super) fn ratio(log_odds: f64) -> String {
    format!("{} to 1", times(log_odds))
}

/// A factor of its logarithm, to two or three digits, however large.
pub fn times(log: f64) -> String {
    let factor = exp(log);
    match factor {
        ..9.95 => format!("{factor:.1}"),
        ..9_999.5 => format!("{factor:.0}"),
        ..1e300 => {
            let text = format!("{factor:.1e}");
            text.replace(".0e", "e")
        }
        _ => {
            // Too large for a number, and no less true.
            let tens = log / std::f64::consts::LN_10;
            let power = tens.floor();
            let digits = libm::pow(10.0, tens - power);
            format!("{digits:.1}e{power:.0}").replace(".0e", "e")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(value: f64, se: f64) -> String {
        match SaidEvidence::of(Estimate::new(value, se)) {
            SaidEvidence::Unknown => "unknown".into(),
            SaidEvidence::Neither { most } => format!("at most {most}"),
            SaidEvidence::Known { odds, words } => format!("{odds}: {words}"),
        }
    }

    #[test]
    fn no_more_is_said_than_the_error_allows() {
        assert_eq!(said(0.83, 0.001), "2.3 to 1: not worth more than a bare mention");
        assert_eq!(said(2.0, 0.01), "7.4 to 1: positive evidence");
        assert_eq!(said(-2.0, 0.01), "7.4 to 1: positive evidence");
        assert_eq!(said(3.05, 0.1), "21 to 1 (17 to 26): positive to strong evidence");
        assert_eq!(said(4.0, 0.01), "55 to 1: strong evidence");
        assert_eq!(said(434.43867800052976, 0.0106), "4.7e188 to 1: very strong evidence");
        assert_eq!(said(1.0, 0.4), "2.7 to 1 (1.2 to 6.0): at most positive evidence");
        assert_eq!(said(0.1, 0.2), "at most 1.6 to 1");
        assert_eq!(said(460.0, 894.0), "unknown");
        assert_eq!(said(2000.0, 0.01), "3.9e868 to 1: very strong evidence");
        let bare = SaidEvidence::of(Estimate { value: 2.0, se: None });
        let SaidEvidence::Known { odds, .. } = bare else { panic!("its sign is known") };
        assert_eq!(odds, "7.4 to 1 (without an error bar)");
    }

    #[test]
    fn factors_of_any_size() {
        for (log, shown) in [
            (0.0, "1.0"),
            (2.3, "10"),
            (5.0, "148"),
            (9.2, "9897"),
            (9.3, "1.1e4"),
            (23.02585093, "1e10"),
            (1000.0, "2e434"),
        ] {
            assert_eq!(times(log), shown, "{log}");
        }
    }
}
