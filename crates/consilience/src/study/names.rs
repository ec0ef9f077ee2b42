//! The choices that a study makes by name.

use crate::error::{clip, nearest, suggestion};
pub use crate::kernel::Kernel;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// An enum each value of which has a name in the study file.
macro_rules! named {
    ($(#[$meta:meta])* $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum $type {
            $($(#[$doc])* #[serde(rename = $name)] $variant),+
        }

        by_name! { $type { $($variant = $name),+ } }
    };
}

/// What an enum can do whose values have names.
macro_rules! by_name {
    ($type:ident { $($variant:ident = $name:literal),+ $(,)? }) => {
        impl $type {
            /// All values, in the order of the documentation.
            pub const ALL: [$type; [$($name),+].len()] = [$($type::$variant),+];

            /// The name in the study file.
            pub fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name),+
                }
            }

            /// The value of this name; the error gives the nearest name and all of them.
            pub fn parse(text: &str) -> Result<$type> {
                pick(text, &$type::ALL, $type::name)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $type {
            type Err = Error;

            fn from_str(text: &str) -> Result<$type> {
                $type::parse(text)
            }
        }
    };
}

/// The value whose name this is.
fn pick<T: Copy>(text: &str, all: &[T], name: fn(T) -> &'static str) -> Result<T> {
    all.iter().copied().find(|&value| name(value) == text).ok_or_else(|| {
        let typed = clip(text);
        let names: Vec<&str> = all.iter().map(|&value| name(value)).collect();
        Error::input(format!("there is no `{typed}`{}", suggestion(&typed, names)))
    })
}

named! {
    /// How a shard's own evidence is computed.
    Local {
        /// The program chooses.
        #[default]
        Auto = "auto",
        /// Not at all.
        None = "none",
        /// A Gaussian model with normal priors: an integral over log σ alone.
        Quadrature = "quadrature",
        /// Laplace's approximation.
        Laplace = "laplace",
        /// Importance sampling around the mode.
        Importance = "importance",
        /// NUTS draws, and a bridge to a normal density.
        NutsBridge = "nuts+bridge",
        /// NUTS draws, and a bridge to a standard normal after standardising and symmetrising.
        NutsWarp3 = "nuts+warp3",
        /// NUTS draws, and importance sampling at their moments.
        NutsImportance = "nuts+importance",
        /// Gibbs draws by data augmentation, and Chib's estimate.
        GibbsChib = "gibbs+chib",
        /// Gibbs draws by data augmentation, and a bridge after standardising and symmetrising.
        GibbsBridge = "gibbs+bridge",
    }
}

impl Local {
    /// Whether it runs Markov chains, whose draws can be kept.
    pub fn has_chains(self) -> bool {
        use Local::{Auto, Importance, Laplace, None, Quadrature};
        !matches!(self, Auto | None | Quadrature | Laplace | Importance)
    }
}

named! {
    /// How the shards are combined.
    Combine {
        /// With the shards' own densities.
        #[default]
        Exact = "exact",
        /// With normal approximations of them.
        Normal = "normal",
        /// With draws from the product of those approximations, weighed by the shards.
        CmcIs = "cmc-is",
        /// With the normal conditionals of data augmentation.
        Augmented = "augmented",
    }
}

named! {
    /// What importance draws are made from.
    Points {
        /// Independent random numbers.
        #[default]
        Plain = "plain",
        /// Scrambled Sobol points, which cover space more evenly.
        Sobol = "sobol",
    }
}

by_name! { Kernel { Auto = "auto", Portable = "portable" } }

named! {
    /// Which share of the prior a shard gets.
    ShareRule {
        /// All the same.
        #[default]
        Equal = "equal",
        /// In proportion to its rows.
        Rows = "rows",
    }
}

named! {
    /// What happens to rows with a missing value.
    Missing {
        /// They are left out.
        #[default]
        Drop = "drop",
        /// They are an error.
        Error = "error",
    }
}

/// What decides which shard a row belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
#[non_exhaustive]
pub enum SplitBy {
    /// Chance.
    #[default]
    Random,
    /// The outcome.
    Outcome,
    /// Clusters of the predictors.
    Cluster,
    /// The file: one shard each.
    File,
    /// A column's value: one shard each.
    Column(String),
}

impl SplitBy {
    /// The names in the study file; the last stands for any column.
    pub const NAMES: [&str; 5] = ["random", "outcome", "cluster", "file", "column:NAME"];

    /// The rule of this name; the error gives the nearest name and all of them.
    pub fn parse(text: &str) -> Result<SplitBy> {
        let (head, column) = match text.split_once(':') {
            Some((head, column)) => (head.trim(), Some(column.trim())),
            None => (text, None),
        };
        match (head, column) {
            ("random", None) => Ok(SplitBy::Random),
            ("outcome", None) => Ok(SplitBy::Outcome),
            ("cluster", None) => Ok(SplitBy::Cluster),
            ("file", None) => Ok(SplitBy::File),
            ("column", Some(name)) if !name.is_empty() => Ok(SplitBy::Column(name.to_string())),
            ("column", _) => Err(Error::input(
                "the column's name is missing; write column:NAME, for example \"column:hospital\"",
            )),
            // What follows the colon must not count against the likeness.
            (_, Some(name)) if nearest(&clip(head), ["column"]).is_some() => {
                let (typed, name) = (clip(text), clip(name));
                Err(Error::input(format!("there is no `{typed}`; did you mean `column:{name}`?")))
            }
            _ => {
                let typed = clip(text);
                let known = suggestion(&typed, SplitBy::NAMES);
                Err(Error::input(format!("there is no `{typed}`{known}")))
            }
        }
    }

    /// Whether the data say how many shards there are, and not the study.
    pub fn is_fixed_by_data(&self) -> bool {
        matches!(self, SplitBy::File | SplitBy::Column(_))
    }
}

impl fmt::Display for SplitBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SplitBy::Random => f.write_str("random"),
            SplitBy::Outcome => f.write_str("outcome"),
            SplitBy::Cluster => f.write_str("cluster"),
            SplitBy::File => f.write_str("file"),
            SplitBy::Column(name) => write!(f, "column:{name}"),
        }
    }
}

impl FromStr for SplitBy {
    type Err = Error;

    fn from_str(text: &str) -> Result<SplitBy> {
        SplitBy::parse(text)
    }
}

impl From<SplitBy> for String {
    fn from(by: SplitBy) -> String {
        by.to_string()
    }
}

impl TryFrom<String> for SplitBy {
    type Error = Error;

    fn try_from(text: String) -> Result<SplitBy> {
        SplitBy::parse(&text)
    }
}
