//! Sets of candidate terms.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The most candidates that a space may have.
pub const MOST_TERMS: usize = 64 * WORDS;

const WORDS: usize = 8;

/// A set of candidate terms, by their numbers: a model of a space.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Subset([u64; WORDS]);

impl Subset {
    /// No term.
    pub const EMPTY: Subset = Subset([0; WORDS]);

    /// Whether the term is in it.
    pub fn contains(&self, term: usize) -> bool {
        self.0[term / 64] >> (term % 64) & 1 == 1
    }

    /// Takes a term in.
    pub fn insert(&mut self, term: usize) {
        self.0[term / 64] |= 1 << (term % 64);
    }

    /// Leaves a term out.
    pub fn remove(&mut self, term: usize) {
        self.0[term / 64] &= !(1 << (term % 64));
    }

    /// The same with a term.
    #[must_use]
    pub fn with(mut self, term: usize) -> Subset {
        self.insert(term);
        self
    }

    /// The same without a term.
    #[must_use]
    pub fn without(mut self, term: usize) -> Subset {
        self.remove(term);
        self
    }

    /// How many terms it has.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Its terms, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(w, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
                Some(64 * w + bit)
            })
        })
    }
}

impl FromIterator<usize> for Subset {
    fn from_iter<I: IntoIterator<Item = usize>>(terms: I) -> Subset {
        let mut set = Subset::EMPTY;
        terms.into_iter().for_each(|term| set.insert(term));
        set
    }
}

impl fmt::Debug for Subset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_go_in_and_out() {
        let set: Subset = [3, 63, 64, 400].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [3, 63, 64, 400]);
        assert_eq!(set.len(), 4);
        assert!(set.contains(64) && !set.contains(65));
        assert_eq!(set.without(3).without(63).without(64).without(400), Subset::EMPTY);
        assert!(Subset::EMPTY.is_empty() && !set.is_empty());
    }
}
