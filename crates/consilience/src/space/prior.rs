//! How likely models are before the data: by the number of their terms.

use crate::error::clip;
use crate::math::special::log_beta;
use crate::{Error, Result};
use libm::{lgamma, log, log1p};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The prior over models, given the number P of candidates. Models with as many terms are equally likely.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ModelPrior {
    /// Every model the same.
    Uniform,
    /// Every term with this probability.
    Bernoulli(f64),
    /// Every term with a probability that is itself Beta(a, b); b is P if it is not given.
    BetaBinomial(f64, Option<f64>),
    /// Weights of the models with 0, 1, … terms, those of each size together.
    Sizes(Vec<f64>),
}

impl Default for ModelPrior {
    fn default() -> ModelPrior {
        ModelPrior::BetaBinomial(1.0, None)
    }
}

const FORMS: &str = "`uniform`, `bernoulli(0.2)`, `beta-binomial(1, P)` (P: the number of candidates) or `sizes(1, 2, 1)` (weights of models with 0, 1, 2 terms)";

impl ModelPrior {
    /// Per number of terms, the logarithm of each such model's probability if all 2^P models are possible.
    pub(super) fn log_shape(&self, p: usize) -> Result<Vec<f64>> {
        let count = p as f64;
        let of = |k: usize| -> f64 {
            let k = k as f64;
            match self {
                ModelPrior::Uniform => 0.0,
                ModelPrior::Bernoulli(each) => k * log(*each) + (count - k) * log1p(-each),
                ModelPrior::BetaBinomial(a, b) => {
                    let b = b.unwrap_or(count.max(1.0));
                    log_beta(k + a, count - k + b) - log_beta(*a, b)
                }
                ModelPrior::Sizes(weights) => {
                    let weight = weights.get(k as usize).copied().unwrap_or(0.0);
                    let ways = lgamma(count + 1.0) - lgamma(k + 1.0) - lgamma(count - k + 1.0);
                    log(weight) - ways
                }
            }
        };
        if let ModelPrior::Sizes(weights) = self
            && weights.len() > p + 1
        {
            return Err(Error::input(format!(
                "the prior over models has {} weights, and models have 0 to {p} terms: at most {}",
                weights.len(),
                p + 1
            )));
        }
        Ok((0..=p).map(of).collect())
    }
}

impl fmt::Display for ModelPrior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelPrior::Uniform => f.write_str("uniform"),
            ModelPrior::Bernoulli(p) => write!(f, "bernoulli({p})"),
            ModelPrior::BetaBinomial(a, None) => write!(f, "beta-binomial({a}, P)"),
            ModelPrior::BetaBinomial(a, Some(b)) => write!(f, "beta-binomial({a}, {b})"),
            ModelPrior::Sizes(weights) => {
                let weights: Vec<String> = weights.iter().map(f64::to_string).collect();
                write!(f, "sizes({})", weights.join(", "))
            }
        }
    }
}

impl FromStr for ModelPrior {
    type Err = Error;

    fn from_str(text: &str) -> Result<ModelPrior> {
        let wrong = |why: &str| {
            Err(Error::input(format!(
                "`{}` is no prior over models{why}; write {FORMS}",
                clip(text)
            )))
        };
        let text = text.trim();
        let (name, inside) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => match rest.trim_end().strip_suffix(')') {
                Some(inside) => (name.trim(), Some(inside)),
                None => return wrong(": it has no closing bracket"),
            },
        };
        let parts: Vec<&str> = match inside.map(str::trim) {
            None | Some("") => Vec::new(),
            Some(inside) => inside.split(',').map(str::trim).collect(),
        };
        let number = |text: &str| text.parse::<f64>().ok().filter(|x| x.is_finite());
        let positive = |text: &str| number(text).filter(|x| *x > 0.0);
        match (name, parts.as_slice()) {
            ("uniform", []) => Ok(ModelPrior::Uniform),
            ("bernoulli", [p]) => match number(p).filter(|p| 0.0 < *p && *p < 1.0) {
                Some(p) => Ok(ModelPrior::Bernoulli(p)),
                None => wrong(": its probability must be between 0 and 1"),
            },
            ("beta-binomial", [a, b]) => match (positive(a), *b, positive(b)) {
                (Some(a), "P", _) => Ok(ModelPrior::BetaBinomial(a, None)),
                (Some(a), _, Some(b)) => Ok(ModelPrior::BetaBinomial(a, Some(b))),
                _ => wrong(": its numbers must be positive"),
            },
            ("sizes", [_, ..]) => {
                let weights: Option<Vec<f64>> =
                    parts.iter().map(|w| number(w).filter(|w| *w >= 0.0)).collect();
                match weights.filter(|w| w.iter().sum::<f64>() > 0.0) {
                    Some(weights) => Ok(ModelPrior::Sizes(weights)),
                    None => wrong(": its weights must not be negative, and not all 0"),
                }
            }
            _ => wrong(""),
        }
    }
}

impl Serialize for ModelPrior {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ModelPrior {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<ModelPrior, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Candidate, Heredity, Space};
    use super::*;

    fn space(parents: &[&[usize]], heredity: Heredity, prior: &str) -> Space {
        let candidate = |(j, parents): (usize, &&[usize])| Candidate {
            label: format!("x{j}"),
            columns: vec![j],
            parents: parents.to_vec(),
        };
        let terms = parents.iter().enumerate().map(candidate).collect();
        Space::new(terms, heredity, parents.len(), &prior.parse().unwrap()).unwrap()
    }

    #[test]
    fn priors_sum_to_1_over_the_models_that_heredity_allows() {
        let pairs: &[&[usize]] = &[&[], &[], &[], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2]];
        for prior in [
            "uniform",
            "bernoulli(0.2)",
            "beta-binomial(1, P)",
            "beta-binomial(2, 3)",
            "sizes(1, 2, 0, 4)",
        ] {
            for (heredity, models) in
                [(Heredity::None, 128), (Heredity::Strong, 0), (Heredity::Weak, 0)]
            {
                let space = space(pairs, heredity, prior);
                let all =
                    (0..128_usize).map(|bits| (0..7).filter(|j| bits >> j & 1 == 1).collect());
                let allowed: Vec<super::super::Subset> = all.filter(|m| space.allows(m)).collect();
                let total: f64 = allowed.iter().map(|m| space.log_prior(m.len()).exp()).sum();
                assert!((total - 1.0).abs() < 1e-12, "{prior}: {total}");
                assert_eq!(space.models(), allowed.len() as f64);
                assert!(models == 0 || models == allowed.len());
                for (k, count) in space.counts().iter().enumerate() {
                    assert_eq!(*count, allowed.iter().filter(|m| m.len() == k).count() as f64);
                }
            }
        }
    }

    #[test]
    fn a_prior_is_read_as_it_is_written() {
        for text in [
            "uniform",
            "bernoulli(0.2)",
            "beta-binomial(1, P)",
            "beta-binomial(1, 7.5)",
            "sizes(1, 0.5)",
        ] {
            assert_eq!(text.parse::<ModelPrior>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "unif",
            "bernoulli(1)",
            "bernoulli(a)",
            "beta-binomial(1)",
            "beta-binomial(0, P)",
            "sizes()",
            "sizes(0, 0)",
            "sizes(-1, 2)",
            "uniform(",
            "bernoulli(NaN)",
        ] {
            let error = text.parse::<ModelPrior>().unwrap_err().to_string();
            assert!(error.contains("`beta-binomial(1, P)`"), "{error}");
        }
    }
}
