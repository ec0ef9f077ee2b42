//! How priors are written: `normal(0, 1)`, `student_t(3, 0, 2.5)`, …

use super::Prior;
use crate::Error;
use crate::error::{clip, suggestion};

/// The functions a prior may be written with, and their arguments.
const SIGNATURES: [(&str, &[&str]); 5] = [
    ("normal", &["mean", "sd"]),
    ("laplace", &["mean", "scale"]),
    ("student_t", &["df", "mean", "scale"]),
    ("cauchy", &["mean", "scale"]),
    ("fixed", &["value"]),
];

/// The error about a prior of a name that is none, if this one's is none: neither one of these functions' nor, where more
/// can stand, one of those beside.
pub(crate) fn unknown(text: &str, beside: &[&str]) -> Option<Error> {
    let name = text.split_once('(').map_or(text, |(name, _)| name).trim();
    let own = || SIGNATURES.iter().map(|(known, _)| *known);
    if own().chain(beside.iter().copied()).any(|known| known.eq_ignore_ascii_case(name)) {
        return None;
    }
    let known = own().chain(beside.iter().copied());
    let known = suggestion(&clip(name).to_ascii_lowercase(), known);
    let advice = elsewhere(&clip(name)).map(|advice| format!("; {advice}")).unwrap_or_default();
    Some(Error::input(format!("there is no prior `{}`{advice}{known}", clip(name))))
}

/// What to write for a prior that others call otherwise, or have beside these.
fn elsewhere(name: &str) -> Option<&'static str> {
    let bare: String =
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    Some(match bare.as_str() {
        "zs" | "zsnull" | "zsfull" | "zellnersiow" | "zellnersiowcauchy" => {
            "write jzs(1), or another scale, as in jzs(medium)"
        }
        "uip" | "unitinfo" | "unitinformation" | "gprior" | "zellner" | "zellnersgprior"
        | "bic" => "write g-prior(n), which has the information of one row, or another g",
        "hypergn" => "write hyper-g/n(3)",
        "hyperg" => "write hyper-g(3)",
        "t" | "student" | "studentt" => "write student_t(df, mean, scale)",
        "gaussian" | "gauss" | "norm" => "write normal(mean, sd)",
        "doubleexponential" | "dexp" | "lasso" => "write laplace(mean, scale)",
        "constant" | "point" | "spike" => "write fixed(value)",
        "improper" | "jeffreys" => "write flat, which the intercept and log_sd can have",
        "halfnormal" | "halfcauchy" | "halft" | "halfstudentt" | "exponential" | "gamma"
        | "invgamma" | "inversegamma" | "lognormal" => {
            "parameters that are above 0 are on their logarithm here, and have a prior there: log_sd = \"normal(0, 1) per sd\""
        }
        "uniform" => "a prior with ends is not there: write normal(mean, sd)",
        "horseshoe" | "r2d2" | "spikeandslab" => {
            "it is not there: write laplace(mean, scale), or choose among columns with [select]"
        }
        _ => return None,
    })
}

/// Reads `normal(0, 1)`, `laplace(0, 1)`, `student_t(3, 0, 2.5)`, `cauchy(0, 1)` or `fixed(0)`.
impl std::str::FromStr for Prior {
    type Err = crate::Error;

    fn from_str(text: &str) -> crate::Result<Prior> {
        let shown = clip(text);
        let (name, rest) = text.split_once('(').unwrap_or((text, ""));
        if let Some(error) = unknown(text, &[]) {
            return Err(error);
        }
        let name = name.trim();
        let known = SIGNATURES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let (name, names) = known.expect("the name is known");
        let signature = format!("{name}({})", names.join(", "));
        let Some(inside) = rest.trim_end().strip_suffix(')') else {
            let message = format!("`{shown}` is not a prior; write it as {signature}");
            return Err(Error::input(message));
        };
        let texts: Vec<&str> = match inside.trim() {
            "" => Vec::new(),
            inside => inside.split(',').map(str::trim).collect(),
        };
        if texts.len() != names.len() {
            let (found, wanted) = (texts.len(), names.len());
            return Err(Error::input(format!(
                "`{shown}` has {found} argument(s), but {signature} takes {wanted}"
            )));
        }
        let mut values = [0.0; 3];
        for ((value, text), name) in values.iter_mut().zip(&texts).zip(*names) {
            let number: Option<f64> = text.parse().ok();
            let Some(number) = number.filter(|number| number.is_finite()) else {
                return Err(Error::input(format!(
                    "the {name} of `{shown}` must be a finite number, not `{}`; write {signature}",
                    clip(text)
                )));
            };
            if matches!(*name, "sd" | "scale" | "df") && number <= 0.0 {
                return Err(Error::input(format!(
                    "the {name} of `{shown}` must be positive; write {signature}"
                )));
            }
            *value = number;
        }
        let [a, b, c] = values;
        Ok(match *name {
            "normal" => Prior::Normal { mean: a, sd: b },
            "laplace" => Prior::Laplace { mean: a, scale: b },
            "student_t" => Prior::StudentT { df: a, mean: b, scale: c },
            "cauchy" => Prior::StudentT { df: 1.0, mean: a, scale: b },
            _ => Prior::Fixed { value: a },
        })
    }
}

impl Prior {
    /// The same to six significant digits, for people: priors in the data's units have many more.
    pub fn rounded(self) -> Prior {
        let short = |x: f64| format!("{x:.5e}").parse().unwrap_or(x);
        match self {
            Prior::Normal { mean, sd } => Prior::Normal { mean: short(mean), sd: short(sd) },
            Prior::Laplace { mean, scale } => {
                Prior::Laplace { mean: short(mean), scale: short(scale) }
            }
            Prior::StudentT { df, mean, scale } => {
                Prior::StudentT { df, mean: short(mean), scale: short(scale) }
            }
            Prior::Fixed { value } => Prior::Fixed { value },
        }
    }
}

/// As the study file writes it: what [`Prior::from_str`](std::str::FromStr) reads back unchanged.
impl std::fmt::Display for Prior {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Plain `{}` writes 1e300 with 301 digits.
        let n = |x: f64| match x.abs() {
            0.0 | 1e-5..1e16 => x.to_string(),
            _ => format!("{x:e}"),
        };
        match *self {
            Prior::Normal { mean, sd } => write!(f, "normal({}, {})", n(mean), n(sd)),
            Prior::Laplace { mean, scale } => write!(f, "laplace({}, {})", n(mean), n(scale)),
            Prior::StudentT { df: 1.0, mean, scale } => {
                write!(f, "cauchy({}, {})", n(mean), n(scale))
            }
            Prior::StudentT { df, mean, scale } => {
                write!(f, "student_t({}, {}, {})", n(df), n(mean), n(scale))
            }
            Prior::Fixed { value } => write!(f, "fixed({})", n(value)),
        }
    }
}
