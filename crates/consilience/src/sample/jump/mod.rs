//! Reversible jump (Green 1995): chains over the models of a space and their parameters.
//!
//! A chain is at a model γ and a point of it. Each draw is a jump and a move. A jump proposes a neighbour γ' (a term
//! more, one less, or one for another) with probability j(γ, γ'), and a point of it from g(·|γ'), which lies around
//! the peak of γ' and does not depend on the point that is left; it is taken with probability
//!
//! ```text
//! min{1, [f(θ', γ') p(γ')ʷ j(γ', γ) g(θ|γ)] / [f(θ, γ) p(γ)ʷ j(γ, γ') g(θ'|γ')]},   f = p(y_s|θ) p(θ|γ)ʷ,
//! ```
//!
//! so that γ is visited in proportion to Z_γ p(γ)ʷ, with Z_γ = ∫ f: powers are not normalised, and no α is needed
//! where shards are combined. Whatever j and g are, that is exact; the nearer g is to the posterior and j to the
//! roots of the models' weights, the faster. All of it happens in the coordinates in which priors are standard
//! normal, so that no prior's kink or tail is in the way.
//!
//! Chains only learn what models weigh while they warm up: afterwards j is fixed.

mod chain;
mod field;
mod neighbours;
mod pair;

pub use chain::{JumpChain, Moves, Tally};
pub use field::{Field, FieldModel};
pub use pair::{PairChain, Side};

use crate::Result;
use crate::math::{Stream, stream};
use crate::space::{Space, Subset};
use crate::target::{Mode, Target};
use rayon::prelude::*;

/// Climbs to a target's peak: from those who know how, which stand above.
pub type ClimbBy = fn(&dyn Target) -> Result<Mode>;

/// How long chains are, and whose numbers they take.
#[derive(Debug, Clone, Copy)]
pub struct JumpLengths {
    /// Chains.
    pub chains: usize,
    /// Draws of each that are left out, on which it learns.
    pub warmup: usize,
    /// Draws of each after those.
    pub draws: usize,
    /// The seed.
    pub seed: u64,
    /// The number of the model's streams.
    pub model: u64,
    /// The shard.
    pub shard: u64,
}

impl JumpLengths {
    fn stream(&self, purpose: &str) -> Stream {
        stream(self.seed, self.model, self.shard, purpose)
    }
}

/// Chains over all models of the field's space, one after the other in their order.
pub fn jump(field: &Field, lengths: &JumpLengths) -> Result<Vec<JumpChain>> {
    let one = |number: usize| {
        let mut rng = lengths.stream(&format!("jump {number}"));
        let start = start(field.space, number, lengths.chains, &mut rng);
        JumpChain::run(field, start, lengths, rng)
    };
    // All of them first, so that which error comes out does not depend on who is fastest.
    let each: Vec<Result<JumpChain>> = (0..lengths.chains).into_par_iter().map(one).collect();
    each.into_iter().collect()
}

/// Chains that jump to and fro between two models.
pub fn jump_between(
    field: &Field,
    pair: [&Subset; 2],
    lengths: &JumpLengths,
) -> Result<Vec<PairChain>> {
    let names = pair.map(|model| field.space.name(model)).join(" | ");
    let one = |number: usize| {
        let rng = lengths.stream(&format!("jump {number} between {names}"));
        PairChain::run(field, pair, lengths, number % 2, rng)
    };
    let each: Vec<Result<PairChain>> = (0..lengths.chains).into_par_iter().map(one).collect();
    each.into_iter().collect()
}

/// Where a chain starts: the first with as few terms as may be, the last with as many, so that chains that agree
/// have found the same place from far apart. Which terms is left to chance and heredity.
fn start(space: &Space, number: usize, chains: usize, rng: &mut Stream) -> Subset {
    use rand::RngExt;
    let sizes: Vec<usize> =
        (0..=space.terms.len()).filter(|&size| space.log_prior(size).is_finite()).collect();
    let size = sizes[(sizes.len() - 1) * number / (chains - 1).max(1)];
    let mut model = Subset::EMPTY;
    while model.len() < size {
        let terms = 0..space.terms.len();
        let may = |&t: &usize| !model.contains(t) && space.welcomes(&model, t);
        let welcome: Vec<usize> = terms.filter(may).collect();
        model.insert(welcome[rng.random_range(0..welcome.len())]);
    }
    model
}

/// Whether single steps lead from any number of terms that the prior allows to any other.
pub fn has_no_gap(space: &Space) -> bool {
    let possible: Vec<bool> =
        (0..=space.terms.len()).map(|size| space.log_prior(size).is_finite()).collect();
    possible.chunk_by(|a, b| a == b).filter(|run| run[0]).count() == 1
}
