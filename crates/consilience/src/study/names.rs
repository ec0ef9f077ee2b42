//! The choices that a study makes by name.

pub use crate::data::ClusterOn;
pub use crate::data::split::Sizes;
use crate::error::{clip, suggestion};
pub use crate::kernel::Kernel;
use crate::space::Heredity;
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
        /// NUTS draws, and Laplace's approximation with their covariance at the best of them.
        LaplaceMetropolis = "laplace-metropolis",
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
        /// The same without the correction for the finite number of draws behind the moments: the paper's
        /// Algorithm 2 as it is written.
        NormalUncorrected = "normal-uncorrected",
        /// With draws from the product of those approximations, weighed by the shards.
        CmcIs = "cmc-is",
        /// With the normal conditionals of data augmentation.
        Augmented = "augmented",
    }
}

impl Combine {
    /// Whether subposteriors are taken as normal, in one round.
    pub fn takes_normals(self) -> bool {
        matches!(self, Combine::Normal | Combine::NormalUncorrected)
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

named! {
    /// What `exact` asks of shards, which decides in how many rounds it ends.
    Schedule {
        /// The program chooses.
        #[default]
        Auto = "auto",
        /// As few rounds as can be: shards say where their own likelihood is highest.
        Few = "few",
        /// More rounds, in which nobody fits anything to a shard's own rows.
        Gentle = "gentle",
    }
}

by_name! { Kernel { Auto = "auto", Portable = "portable" } }

by_name! { Sizes { Equal = "equal", Multinomial = "multinomial" } }

by_name! { ClusterOn { Scaled = "scaled", Raw = "raw" } }

by_name! { Heredity { Strong = "strong", Weak = "weak", None = "none" } }

named! {
    /// How the models of `[select]` are looked through.
    SelectBy {
        /// The program chooses.
        #[default]
        Auto = "auto",
        /// The evidence of every model, one by one.
        Enumerate = "enumerate",
        /// All models at once: draws of model and coefficients together.
        Search = "search",
        /// Reversible jump on every shard, and the evidences of all models that were seen.
        ReversibleJump = "reversible-jump",
        /// Reversible jump on every shard, and the product of visit shares (the paper's Algorithm 3).
        JumpShares = "jump-shares",
    }
}

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
