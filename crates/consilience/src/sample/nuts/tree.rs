//! One transition of the no-U-turn sampler.
//!
//! The multinomial version of Betancourt (2017), *A conceptual introduction to Hamiltonian Monte Carlo*: a trajectory
//! grows by doubling, forwards or backwards in time, until it turns back on itself; one of its points is drawn with
//! weight e^−H. It turns where the sum of its momenta points against the momentum at either end. The same is asked of
//! each half together with the next point of the other: else a trajectory that comes full circle within a doubling
//! goes unseen.
//!
//! Masses are 1: what would be in a mass matrix is in the coordinates.

use super::whitened::Whitened;
use crate::math::ziggurat::normal;
use crate::math::{Stream, dot};
use libm::{exp, log1p};
use rand::RngExt;

/// Doublings after which a trajectory ends in any case.
const MOST_DOUBLINGS: usize = 10;
/// The error of the energy, in nats, at which the integrator has lost the trajectory.
const DIVERGED: f64 = 1000.0;

/// Where a chain is.
pub(super) struct PhasePoint {
    pub zeta: Vec<f64>,
    /// ∇ log f there.
    pub gradient: Vec<f64>,
    /// log f there.
    pub log_density: f64,
    /// The energy at which the trajectory passed here.
    pub energy: f64,
}

impl PhasePoint {
    fn new(d: usize) -> PhasePoint {
        let (zeta, gradient) = (vec![0.0; d], vec![0.0; d]);
        PhasePoint { zeta, gradient, log_density: f64::NEG_INFINITY, energy: f64::INFINITY }
    }

    /// The place ζ; `None` where the density has no finite value there.
    pub fn at(density: &mut Whitened, zeta: &[f64]) -> Option<PhasePoint> {
        let mut place = PhasePoint::new(zeta.len());
        place.zeta.copy_from_slice(zeta);
        place.log_density = density.at(zeta, &mut place.gradient)?;
        Some(place)
    }

    fn copy(&mut self, other: &PhasePoint) {
        self.zeta.copy_from_slice(&other.zeta);
        self.gradient.copy_from_slice(&other.gradient);
        (self.log_density, self.energy) = (other.log_density, other.energy);
    }
}

/// An end of a trajectory, from which it grows.
struct End {
    place: PhasePoint,
    momentum: Vec<f64>,
}

/// A stretch of a trajectory, of which only what later doublings need is kept. `first` and `last` are in the order in
/// which its points were made, be it backwards in time: no question that is asked of it depends on the direction.
struct Stretch {
    /// The momentum of its first point, and of its last.
    first: Vec<f64>,
    last: Vec<f64>,
    /// The sum of all momenta.
    sum: Vec<f64>,
    /// log Σ e^(H₀ − H).
    log_weight: f64,
    /// A point of it, drawn by weight.
    drawn: PhasePoint,
}

impl Stretch {
    fn new(d: usize) -> Stretch {
        let zeros = || vec![0.0; d];
        let (first, last, sum) = (zeros(), zeros(), zeros());
        Stretch { first, last, sum, log_weight: 0.0, drawn: PhasePoint::new(d) }
    }

    /// A stretch of one point.
    fn start(&mut self, end: &End, log_weight: f64) {
        for momentum in [&mut self.first, &mut self.last, &mut self.sum] {
            momentum.copy_from_slice(&end.momentum);
        }
        self.log_weight = log_weight;
        self.drawn.copy(&end.place);
    }

    /// Appends the stretch that follows, as long as this one. Within a stretch the drawn point is any one by its weight;
    /// of the whole trajectory that of the new half is preferred, which moves further and keeps the same distribution.
    /// Returns whether the two together turn back.
    fn append(
        &mut self,
        next: &mut Stretch,
        points: usize,
        prefer_next: bool,
        rng: &mut Stream,
    ) -> bool {
        // Half of two points is one: there the further questions are the first again.
        let halves_turn = points > 1
            && (turns(&self.sum, &next.first, [&self.first, &next.first])
                || turns(&next.sum, &self.last, [&self.last, &next.last]));
        let whole_turns = turns(&self.sum, &next.sum, [&self.first, &next.last]);

        let ratio = exp(-(next.log_weight - self.log_weight).abs());
        let next_is_heavier = next.log_weight > self.log_weight;
        let chance = match (prefer_next, next_is_heavier) {
            (true, true) => 1.0,
            (true, false) => ratio,
            (false, true) => 1.0 / (1.0 + ratio),
            (false, false) => ratio / (1.0 + ratio),
        };
        if rng.random::<f64>() < chance {
            std::mem::swap(&mut self.drawn, &mut next.drawn);
        }
        self.log_weight = self.log_weight.max(next.log_weight) + log1p(ratio);
        std::mem::swap(&mut self.last, &mut next.last);
        self.sum.iter_mut().zip(&next.sum).for_each(|(a, b)| *a += b);
        halves_turn || whole_turns
    }
}

/// Whether a + b, a sum of momenta, points against the momentum at one of the ends.
fn turns(a: &[f64], b: &[f64], ends: [&[f64]; 2]) -> bool {
    // A sum that is not a number counts as a turn.
    !ends.iter().all(|end| dot(a, end) + dot(b, end) > 0.0)
}

/// How a transition went.
pub(super) struct Passage {
    /// The chance at which the points of the trajectory would have been accepted by themselves, on average: what the
    /// step size is adapted to.
    pub acceptance: f64,
    /// Whether the integrator lost the trajectory.
    pub diverged: bool,
}

/// The buffers of a trajectory, and what is counted along it.
pub(super) struct Trajectory {
    /// Backwards and forwards in time.
    ends: [End; 2],
    whole: Stretch,
    grown: Stretch,
    /// A second half for each length of a stretch.
    halves: Vec<Stretch>,
}

/// A trajectory as it grows in one direction.
struct Growth<'a, 'b> {
    density: &'a mut Whitened<'b>,
    rng: &'a mut Stream,
    end: &'a mut End,
    step: f64,
    /// The energy at the start.
    energy: f64,
    tally: &'a mut TreeTally,
}

#[derive(Default)]
struct TreeTally {
    points: f64,
    acceptance: f64,
    diverged: bool,
}

impl Trajectory {
    pub fn new(d: usize) -> Trajectory {
        let end = || End { place: PhasePoint::new(d), momentum: vec![0.0; d] };
        Trajectory {
            ends: [end(), end()],
            whole: Stretch::new(d),
            grown: Stretch::new(d),
            halves: (0..MOST_DOUBLINGS).map(|_| Stretch::new(d)).collect(),
        }
    }

    /// Moves a chain on by one draw.
    pub fn pass(
        &mut self,
        density: &mut Whitened,
        place: &mut PhasePoint,
        step: f64,
        rng: &mut Stream,
    ) -> Passage {
        let [back, forth] = &mut self.ends;
        forth.momentum.iter_mut().for_each(|p| *p = normal(rng));
        place.energy = 0.5 * dot(&forth.momentum, &forth.momentum) - place.log_density;
        forth.place.copy(place);
        back.place.copy(place);
        back.momentum.copy_from_slice(&forth.momentum);
        self.whole.start(forth, 0.0);
        let mut tally = TreeTally::default();
        for doubling in 0..MOST_DOUBLINGS {
            let forwards = rng.random::<bool>();
            let mut growth = Growth {
                density,
                rng,
                end: &mut self.ends[usize::from(forwards)],
                step: if forwards { step } else { -step },
                energy: place.energy,
                tally: &mut tally,
            };
            if !growth.grow(doubling, &mut self.grown, &mut self.halves) {
                break;
            }
            // What grows backwards follows on the trajectory in reverse.
            let whole = &mut self.whole;
            if !forwards {
                std::mem::swap(&mut whole.first, &mut whole.last);
            }
            let turned = whole.append(&mut self.grown, 1 << doubling, true, rng);
            if !forwards {
                std::mem::swap(&mut whole.first, &mut whole.last);
            }
            if turned {
                break;
            }
        }
        std::mem::swap(place, &mut self.whole.drawn);
        let acceptance = tally.acceptance / tally.points;
        Passage { acceptance, diverged: tally.diverged }
    }
}

impl Growth<'_, '_> {
    /// Makes a stretch of 2ⁿ points that follow the end. Returns whether it may be used: not where it turns within
    /// itself, from whence no trajectory could have come here, nor where it diverges.
    fn grow(&mut self, n: usize, out: &mut Stretch, halves: &mut [Stretch]) -> bool {
        if n == 0 {
            return self.leap(out);
        }
        let (half, shorter) = halves[..n].split_last_mut().expect("a half for each length");
        self.grow(n - 1, out, shorter)
            && self.grow(n - 1, half, shorter)
            && !out.append(half, 1 << (n - 1), false, self.rng)
    }

    /// One step of the leapfrog integrator. Returns whether the trajectory is still there.
    fn leap(&mut self, out: &mut Stretch) -> bool {
        let End { place, momentum } = self.end;
        let half = 0.5 * self.step;
        for ((p, g), z) in momentum.iter_mut().zip(&place.gradient).zip(&mut place.zeta) {
            *p += half * g;
            *z += self.step * *p;
        }
        self.tally.points += 1.0;
        let error = match self.density.at(&place.zeta, &mut place.gradient) {
            Some(log_density) => {
                momentum.iter_mut().zip(&place.gradient).for_each(|(p, g)| *p += half * g);
                place.log_density = log_density;
                place.energy = 0.5 * dot(momentum, momentum) - log_density;
                place.energy - self.energy
            }
            None => f64::INFINITY,
        };
        if error.is_nan() || error >= DIVERGED {
            self.tally.diverged = true;
            return false;
        }
        self.tally.acceptance += if error > 0.0 { exp(-error) } else { 1.0 };
        out.start(self.end, -error);
        true
    }
}
