//! Spaces that come from outside.

use super::{MOST_TERMS, Space, Subset};

/// Characters of a label.
const LONGEST_LABEL: usize = 10_000;

impl Space {
    /// What does not hold together in a space of models with so many free parameters, if anything does not. The
    /// reason reads on from "the space".
    pub fn fault(&self, dim: usize) -> Option<&'static str> {
        let p = self.terms.len();
        if p > MOST_TERMS {
            return Some("has more terms than any");
        }
        if self.dim != dim {
            return Some("is not of its model's parameters");
        }
        let mut owned = vec![false; dim];
        for (number, term) in self.terms.iter().enumerate() {
            if term.columns.is_empty() || !term.columns.is_sorted_by(|a, b| a < b) {
                return Some("has a term without columns, or with columns in no order");
            }
            for &column in &term.columns {
                match owned.get_mut(column) {
                    Some(known) if !*known => *known = true,
                    _ => return Some("has a column that is two terms' or no parameter's"),
                }
            }
            if term.parents.iter().any(|&parent| parent >= number) {
                return Some("has a term that stands before its parents");
            }
            if term.label.len() > LONGEST_LABEL || term.label.contains(char::is_control) {
                return Some("has a label that is none");
            }
        }
        let sizes = self.log_prior.len() == p + 1 && self.counts.len() == p + 1;
        let sound = |log_p: &f64| !log_p.is_nan() && *log_p < f64::INFINITY;
        let counted = |count: &f64| count.is_finite() && *count >= 0.0;
        if !sizes || !self.log_prior.iter().all(sound) || !self.counts.iter().all(counted) {
            return Some("has a prior over models that is none");
        }
        let least = self.log_prior.iter().position(|log_p| log_p.is_finite());
        least.is_none().then_some("has a prior that leaves no model")
    }

    /// Whether this is one of its models: terms that it has, and that heredity and prior allow together.
    pub fn has(&self, model: &Subset) -> bool {
        model.iter().all(|term| term < self.terms.len())
            && self.allows(model)
            && self.log_prior(model.len()).is_finite()
    }
}
