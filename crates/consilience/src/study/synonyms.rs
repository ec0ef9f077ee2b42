//! What others call what a study names.

use crate::error::{clip, nearest, suggestion};
use crate::model::Family;

/// Other programs' names of families, in lower case and without what parts words, each with ours. Those that a study may
/// have are the family's own ([`Family::synonyms`]).
const FAMILIES: &[(&[&str], Family)] = &[
    (&["gauss", "linear", "lm", "ols", "leastsquares", "anova", "identity"], Family::Gaussian),
    (&["logit", "binary", "logisticregression", "lrm"], Family::Logistic),
    (&["count", "counts", "loglinear"], Family::Poisson),
    (
        &["negbin", "negbinomial", "nb", "nbinom", "nbinom1", "nbinom2", "gammapoisson"],
        Family::NegativeBinomial,
    ),
    (&["multinom", "mlogit", "multilogit", "unordered"], Family::Multinomial),
];

/// What to say of a family that is none: what to write in its place where that is known, else the nearest name, and all
/// of them.
pub(super) fn no_family(key: &str, text: &str) -> String {
    let typed = clip(text);
    let names = Family::ALL.map(Family::name);
    format!("`{key}`: there is no `{typed}`{}{}", advice(&typed), suggestion(&typed, names))
}

fn advice(typed: &str) -> String {
    let bare = |name: &str| -> String {
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    // `gaussian()` and "negative_binomial" differ from ours by their signs alone.
    let plain = bare(typed);
    let own = Family::ALL.into_iter().map(|family| (family.name(), family));
    let mut known = own.chain(Family::synonyms().iter().copied());
    let same = known.find(|(name, _)| bare(name) == plain).map(|(_, family)| family);
    let called = FAMILIES.iter().find(|(others, _)| others.contains(&plain.as_str()));
    if let Some(family) = same.or(called.map(|(_, family)| *family)) {
        return format!("; write \"{family}\"");
    }
    let other = match plain.as_str() {
        "cox" | "coxph" => "; of times there are \"exponential\", \"weibull\" and \"log-normal\"",
        "quasibinomial" | "quasipoisson" => {
            "; there is no likelihood behind it: use \"negative-binomial\" for counts that vary more"
        }
        _ => "",
    };
    // A name of ours that is near is suggested anyway.
    if !other.is_empty() || nearest(typed, Family::ALL.map(Family::name)).is_some() {
        return other.to_string();
    }
    let near = nearest(typed, Family::synonyms().iter().map(|(name, _)| *name));
    let family = Family::synonyms().iter().find(|(name, _)| Some(*name) == near);
    family.map_or_else(String::new, |(name, family)| {
        format!("; did you mean `{name}`, which is \"{family}\"?")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_found_by_what_others_call_them() {
        for (typed, ours) in [
            ("ols", "write \"gaussian\""),
            ("Least squares", "write \"gaussian\""),
            ("gaussian()", "write \"gaussian\""),
            ("logit", "write \"logistic\""),
            ("negative_binomial", "write \"negative-binomial\""),
            ("NegBin", "write \"negative-binomial\""),
            ("counts", "write \"poisson\""),
            ("quasipoisson", "no likelihood behind it"),
            ("gausian", "did you mean `gaussian`?"),
        ] {
            let message = no_family("model.family", typed);
            assert!(message.contains(ours), "{typed}: {message}");
        }
        let message = no_family("model.family", "zebra");
        assert!(!message.contains("write") && !message.contains("did you mean"), "{message}");
    }
}
