//! What others call what a study names.

use crate::error::{clip, known, nearest, suggestion};
use crate::model::Family;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;
use serde::{Deserialize, Deserializer, de::Error};

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

/// A family by its name or a synonym, in capitals or not: R has `Gamma` and papers have `Normal`. It is written by its
/// own name, so that hashes of studies do not depend on it.
pub(super) fn family<'de, D: Deserializer<'de>>(d: D) -> Result<Family, D::Error> {
    let lower = String::deserialize(d)?.to_lowercase();
    let name: serde::de::value::StringDeserializer<ValueError> = lower.into_deserializer();
    Family::deserialize(name).map_err(D::Error::custom)
}

/// What to say of a family that is none: what to write in its place where that is known, else the nearest name, and all
/// of them.
pub(super) fn no_family(key: &str, text: &str) -> String {
    let typed = clip(text);
    let names = Family::ALL.map(Family::name);
    let advice = match advice(&typed) {
        // Two pieces of advice would contradict each other.
        said if !said.is_empty() => said + &known(names),
        _ => suggestion(&typed, names),
    };
    format!("`{key}`: there is no `{typed}`{advice}")
}

fn advice(typed: &str) -> String {
    // `Gamma(link = "log")` and `student(df = 4)` say more than the name.
    let (name, arguments) = typed.split_once('(').unwrap_or((typed, ""));
    // `gaussian()` and "negative_binomial" differ from ours by their signs alone.
    let plain = bare(name);
    let own = Family::ALL.into_iter().map(|family| (family.name(), family));
    let mut known = own.chain(Family::synonyms().iter().copied());
    let same = known.find(|(name, _)| bare(name) == plain).map(|(_, family)| family);
    let called = FAMILIES.iter().find(|(others, _)| others.contains(&plain.as_str()));
    if let Some(family) = same.or(called.map(|(_, family)| *family)) {
        return with_arguments(family, arguments);
    }
    let other = absent(&plain);
    // A name of ours that is near is suggested anyway.
    if !other.is_empty() || nearest(name, Family::ALL.map(Family::name)).is_some() {
        return other.to_string();
    }
    let near = nearest(name, Family::synonyms().iter().map(|(name, _)| *name));
    let family = Family::synonyms().iter().find(|(name, _)| Some(*name) == near);
    family.map_or_else(String::new, |(name, family)| {
        format!("; did you mean `{name}`, which is \"{family}\"?")
    })
}

/// A name without signs, in lower case.
fn bare(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// What to write for a family that has a link or degrees of freedom behind its name.
fn with_arguments(family: Family, arguments: &str) -> String {
    let inside = arguments.trim_end().trim_end_matches(')');
    let link = inside.split_once("link").map_or(inside, |(_, link)| link);
    let link = bare(link);
    let family = match (family, link.as_str()) {
        (Family::Logistic, "probit") => Family::Probit,
        (Family::CumulativeLogit, "probit") => Family::CumulativeProbit,
        _ => family,
    };
    let mut said = format!("; write \"{family}\"");
    let number = inside.rsplit(['=', ' ']).next().and_then(|number| number.parse::<f64>().ok());
    match number {
        Some(df) if family == Family::StudentT && df > 0.0 => {
            let log_df = (libm::log(df) * 1e4).round() / 1e4;
            said += &format!(
                ", whose degrees of freedom are a parameter: log_df = \"fixed({log_df})\" under [model.prior] holds them at {df}"
            );
        }
        // No more than a name can be a link.
        _ if !link.is_empty() && number.is_none() => {
            let own = family.link();
            if !bare(own).contains(&link) || link.len() < 3 {
                said += &format!(", whose link is {own} and no other");
            }
        }
        _ => {}
    }
    said
}

/// What is the nearest to a family that is not there, by its bare name.
fn absent(plain: &str) -> &'static str {
    match plain {
        "cox" | "coxph" => "; of times there are \"exponential\", \"weibull\" and \"log-normal\"",
        "quasibinomial" | "quasipoisson" => {
            "; there is no likelihood behind it: use \"negative-binomial\" for counts that vary more"
        }
        "hurdle" | "hurdlepoisson" | "hurdlenegbinomial" | "hurdlenegativebinomial" => {
            "; hurdle models are not there: the nearest is \"zero-inflated-poisson\""
        }
        "hurdlegamma" | "hurdlelognormal" | "tweedie" => {
            "; it is not there: take I(y > 0) as \"logistic\" in one study, and the rows above 0 as \"gamma\" or \"log-normal\" in another"
        }
        "skewnormal" => {
            "; it is not there: the nearest are \"student-t\" for outliers, and \"gamma\" and \"log-normal\" for skewed numbers above 0"
        }
        "inversegaussian" | "invgaussian" => {
            "; it is not there: the nearest for numbers above 0 are \"gamma\" and \"log-normal\""
        }
        "zeroinflatedbeta" | "oneinflatedbeta" | "zerooneinflatedbeta" | "zoib" | "zoibeta" => {
            "; it is not there: \"beta\" is for shares between 0 and 1, both left out; take I(y > 0) as \"logistic\" in a study of its own"
        }
        "zinb" | "zeroinflatednegbinomial" | "zeroinflatednegativebinomial" => {
            "; it is not there: the nearest are \"negative-binomial\" and \"zero-inflated-poisson\", which can be compared"
        }
        "betabinomial" => {
            "; it is not there: the nearest is \"logistic\" with groups that differ, as in (1 | group)"
        }
        "geometric" => {
            "; write \"negative-binomial\", with log_dispersion = \"fixed(0)\" under [model.prior]"
        }
        _ => "",
    }
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
            ("Gamma(link='log')", "; write \"gamma\" (known"),
            ("Gamma(link = \"inverse\")", "write \"gamma\", whose link is log and no other"),
            ("gaussian(link = identity)", "; write \"gaussian\" (known"),
            ("binomial(link = \"probit\")", "; write \"probit\" (known"),
            ("binomial(cloglog)", "write \"logistic\", whose link is logit and no other"),
            ("student(df=4)", "log_df = \"fixed(1.3863)\" under [model.prior] holds them at 4"),
            ("hurdle_poisson", "the nearest is \"zero-inflated-poisson\""),
            ("skew_normal", "the nearest are \"student-t\""),
            ("inverse.gaussian", "\"gamma\" and \"log-normal\""),
            ("zero_one_inflated_beta", "\"beta\" is for shares between 0 and 1"),
            ("zinb", "the nearest are \"negative-binomial\" and"),
            ("geometric", "log_dispersion = \"fixed(0)\""),
        ] {
            let message = no_family("model.family", typed);
            assert!(message.contains(ours), "{typed}: {message}");
        }
        // What to write is said once.
        for typed in ["gauss", "NegBin", "Gamma(link='log')", "quasipoisson", "binomail", "logit"] {
            let message = no_family("model.family", typed);
            let pieces = message.matches("; ").count() + message.matches("did you mean").count();
            assert!(pieces <= 2, "{message}");
            assert!(!(message.contains("write") && message.contains("did you mean")), "{message}");
        }
        let message = no_family("model.family", "zebra");
        assert!(!message.contains("write") && !message.contains("did you mean"), "{message}");
    }
}
