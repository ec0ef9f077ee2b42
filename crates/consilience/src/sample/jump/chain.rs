//! One chain over all models.

use super::JumpLengths;
use super::field::{Field, FieldModel, Point};
use super::neighbours::{KnownWeights, MoveKind};
use crate::Result;
use crate::math::Stream;
use crate::space::Subset;
use rand::RngExt;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

/// One in so many moves within a model is a step of a random walk: where a proposal around the peak would never
/// be taken, this still is.
const WALK: u32 = 5;

/// How often something was proposed and taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Proposals.
    pub proposed: u64,
    /// Those that were taken.
    pub taken: u64,
}

impl Tally {
    fn note(&mut self, taken: bool) {
        self.proposed += 1;
        self.taken += u64::from(taken);
    }

    /// Adds another's.
    pub fn add(&mut self, other: Tally) {
        self.proposed += other.proposed;
        self.taken += other.taken;
    }

    /// The share that was taken; `None` if nothing was proposed.
    pub fn rate(&self) -> Option<f64> {
        (self.proposed > 0).then(|| self.taken as f64 / self.proposed as f64)
    }
}

/// Proposals by what they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moves {
    /// A term comes in.
    pub add: Tally,
    /// A term goes out.
    pub delete: Tally,
    /// A term comes in for another.
    pub swap: Tally,
    /// A move within a model.
    pub within: Tally,
}

impl Moves {
    /// Adds another chain's.
    pub fn add(&mut self, other: &Moves) {
        self.add.add(other.add);
        self.delete.add(other.delete);
        self.swap.add(other.swap);
        self.within.add(other.within);
    }
}

/// The draws of one chain.
pub struct JumpChain {
    /// The models it was at.
    pub visited: Vec<Subset>,
    /// Per draw, the number of its model among them.
    pub path: Vec<u32>,
    /// The parameters of all draws, one after the other.
    thetas: Vec<f64>,
    /// Per draw, where its parameters begin.
    begins: Vec<usize>,
    /// What was proposed and taken.
    pub moves: Moves,
}

impl JumpChain {
    /// A draw's parameters.
    pub fn theta(&self, draw: usize) -> &[f64] {
        let end = self.begins.get(draw + 1).copied().unwrap_or(self.thetas.len());
        &self.thetas[self.begins[draw]..end]
    }

    pub(super) fn run(
        field: &Field,
        start: Subset,
        lengths: &JumpLengths,
        mut rng: Stream,
    ) -> Result<JumpChain> {
        let mut at = ChainAt::new(field, start, &mut rng)?;
        let mut moves = Moves::default();
        let mut known = KnownWeights::from([(start, at.weight(field))]);
        for _ in 0..lengths.warmup {
            at.jump(field, &mut known, true, &mut moves, &mut rng)?;
            at.stay(field, &mut moves, &mut rng);
        }
        moves = Moves::default();
        let mut chain = JumpChain {
            visited: Vec::new(),
            path: Vec::with_capacity(lengths.draws),
            thetas: Vec::new(),
            begins: Vec::with_capacity(lengths.draws),
            moves,
        };
        let mut numbers: HashMap<Subset, u32> = HashMap::new();
        for _ in 0..lengths.draws {
            at.jump(field, &mut known, false, &mut moves, &mut rng)?;
            at.stay(field, &mut moves, &mut rng);
            let number = *numbers.entry(at.model).or_insert_with(|| {
                chain.visited.push(at.model);
                chain.visited.len() as u32 - 1
            });
            chain.path.push(number);
            chain.begins.push(chain.thetas.len());
            chain.thetas.extend_from_slice(&at.point.theta);
        }
        chain.moves = moves;
        Ok(chain)
    }
}

/// Where a chain is.
struct ChainAt {
    model: Subset,
    place: Arc<FieldModel>,
    point: Point,
}

impl ChainAt {
    fn new(field: &Field, model: Subset, rng: &mut Stream) -> Result<ChainAt> {
        let place = field.place(&model)?;
        // The peak itself where a draw around it has no density.
        let drawn = field.point(&place, place.draw(rng));
        let point = if drawn.log_f.is_finite() { drawn } else { field.point(&place, place.top()) };
        Ok(ChainAt { model, place, point })
    }

    /// The logarithm of prior times Z̃ of the model.
    fn weight(&self, field: &Field) -> f64 {
        self.place.log_z + field.log_prior(&self.model)
    }

    /// To another model, or not.
    fn jump(
        &mut self,
        field: &Field,
        known: &mut KnownWeights,
        learns: bool,
        moves: &mut Moves,
        rng: &mut Stream,
    ) -> Result<()> {
        let around = field.neighbours(&self.model);
        if around.len() == 0 {
            return Ok(());
        }
        let (model, kind, log_there) = around.propose(known, rng);
        let log_back = field.neighbours(&model).log_probability(known, &self.model);
        let place = field.place(&model)?;
        let point = field.point(&place, place.draw(rng));
        let other = ChainAt { model, place, point };
        let log_ratio =
            (other.point.log_f - other.point.log_g + field.log_prior(&model) + log_back)
                - (self.point.log_f - self.point.log_g + field.log_prior(&self.model) + log_there);
        let taken = accepts(log_ratio, rng);
        match kind {
            MoveKind::Add => &mut moves.add,
            MoveKind::Delete => &mut moves.delete,
            MoveKind::Swap => &mut moves.swap,
        }
        .note(taken);
        if learns {
            known.insert(model, other.weight(field));
        }
        if taken {
            *self = other;
        }
        Ok(())
    }

    /// To another point of the same model, or not.
    fn stay(&mut self, field: &Field, moves: &mut Moves, rng: &mut Stream) {
        let taken = self.point.stay(field, &self.place, rng);
        moves.within.note(taken);
    }
}

impl Point {
    /// Moves on within its model; whether the proposal was taken.
    pub(super) fn stay(&mut self, field: &Field, place: &FieldModel, rng: &mut Stream) -> bool {
        let walks = rng.random_range(0..WALK) == 0;
        let z = if walks { place.step(&self.z, rng) } else { place.draw(rng) };
        let other = field.point(place, z);
        let mut log_ratio = other.log_f - self.log_f;
        if !walks {
            log_ratio += self.log_g - other.log_g;
        }
        let taken = accepts(log_ratio, rng);
        if taken {
            *self = other;
        }
        taken
    }
}

/// Whether a proposal with this log ratio is taken. One that is no number (from nowhere to nowhere) is not.
pub(super) fn accepts(log_ratio: f64, rng: &mut Stream) -> bool {
    let uniform = rng.random::<f64>();
    uniform < libm::exp(log_ratio.min(0.0)) && !log_ratio.is_nan()
}
