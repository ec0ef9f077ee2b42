//! How strongly the data speak for one model against another, in words and as odds.

use super::html::shortened;
use crate::document::Estimate;
use crate::text::{escape, fixed, grouped};

/// Kass and Raftery's word for a log Bayes factor: for what is left of it when two standard errors are taken off, as the
/// program has it.
pub(super) fn word(factor: Estimate) -> &'static str {
    let size = factor.value.abs() - 2.0 * factor.se.unwrap_or(0.0);
    let below = |odds: f64| size <= odds.ln();
    match () {
        () if below(3.0) => "not worth more than a bare mention",
        () if below(20.0) => "positive",
        () if below(150.0) => "strong",
        () => "very strong",
    }
}

/// A sentence on how strong the evidence against the next model is.
pub(super) fn sentence(next: &str, word: &str, factor: Estimate) -> String {
    let word = match word {
        "not worth more than a bare mention" => word.to_string(),
        word => format!("<strong>{}</strong>", escape(&shortened(word))),
    };
    format!(
        "<p>Against the next one, {}, the evidence is {word}: the log Bayes factor is {}, {}.</p>\n",
        escape(&shortened(next)),
        escape(&factor.show()),
        odds(factor.value)
    )
}

/// A log Bayes factor as odds.
fn odds(lead: f64) -> String {
    let tens = lead / std::f64::consts::LN_10;
    match lead {
        ..0.0 => "for the other one".into(),
        ..1e-3 => "so that the data are as likely under both".into(),
        ..9.0 => format!(
            "so that the data are {} times as likely under it",
            escape(&fixed(lead.exp(), if lead < 2.3 { 1 } else { 0 }))
        ),
        _ => format!(
            "so that the data are about 10<sup>{}</sup> times as likely under it",
            escape(&grouped(tens.floor()))
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_for_what_is_known_of_a_factor() {
        let of = |value, se| word(Estimate { value, se });
        assert_eq!(of(0.96, Some(0.001)), "not worth more than a bare mention");
        assert_eq!(of(1.2, None), "positive");
        assert_eq!(of(1.2, Some(0.1)), "not worth more than a bare mention");
        assert_eq!(of(3.1, Some(0.0)), "strong");
        assert_eq!(of(-5.1, None), "very strong");
    }
}
