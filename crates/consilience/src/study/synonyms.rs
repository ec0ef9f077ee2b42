//! What others call what a study names.

use crate::error::{clip, suggestion};
use crate::model::Family;

/// Other programs' names of families, in lower case and without what parts words, each with ours. A name that is
/// taken in here as a family's own never comes this far.
const FAMILIES: &[(&[&str], &str)] = &[
    (&["normal", "gauss", "linear", "lm", "ols", "leastsquares", "anova", "identity"], "gaussian"),
    (
        &["binomial", "bernoulli", "logit", "binary", "logisticregression", "lrm", "quasibinomial"],
        "logistic",
    ),
    (&["count", "counts", "quasipoisson", "loglinear"], "poisson"),
    (
        &["negbin", "negbinomial", "nb", "nbinom", "nbinom1", "nbinom2", "gammapoisson"],
        "negative-binomial",
    ),
];

/// What to say of a family that is none: its name here if it has one, else the nearest, and all of them.
pub(super) fn no_family(key: &str, text: &str) -> String {
    let typed = clip(text);
    let names = Family::ALL.map(Family::name);
    let plain: String =
        typed.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    // `gaussian()` and "negative_binomial" differ from ours by their signs alone.
    let same = |name: &str| name.chars().filter(|c| c.is_alphanumeric()).eq(plain.chars());
    let called = FAMILIES.iter().find(|(others, _)| others.contains(&plain.as_str()));
    let ours = names.into_iter().find(|name| same(name)).or(called.map(|(_, ours)| *ours));
    match ours {
        Some(ours) => {
            let known = names.map(|name| format!("`{name}`")).join(", ");
            format!("`{key}`: there is no `{typed}`; it is written `{ours}` here (known: {known})")
        }
        None => format!("`{key}`: there is no `{typed}`{}", suggestion(&typed, names)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_found_by_what_others_call_them() {
        for (typed, ours) in [
            ("ols", "`gaussian` here"),
            ("Least squares", "`gaussian` here"),
            ("gaussian()", "`gaussian` here"),
            ("logit", "`logistic` here"),
            ("negative_binomial", "`negative-binomial` here"),
            ("NegBin", "`negative-binomial` here"),
            ("counts", "`poisson` here"),
            ("gausian", "did you mean `gaussian`?"),
        ] {
            let message = no_family("model.family", typed);
            assert!(message.contains(ours), "{typed}: {message}");
        }
        let message = no_family("model.family", "zebra");
        assert!(!message.contains("here") && !message.contains("did you mean"), "{message}");
    }
}
