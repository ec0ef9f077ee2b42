//! The evidence of a posterior by importance sampling around every peak that was found.
//!
//! A machine that is told the log density, or its expansion, at the points it asks for, so that the same
//! code works on a target at hand and over rounds of questions to shards. It climbs,
//! looks from every peak to which sides the density falls slowly, and draws from a mixture over the peaks,
//! with the prior itself as a part where the data say little. Draws whose weights are large show where the
//! mixture lacks something: it gets parts there (incremental mixture importance sampling, Raftery & Bao 2010),
//! and its parts move to where the weights say (Cappé et al. 2008). All of this happens in coordinates in
//! which the prior is standard normal ([`Coordinates`]); points go out and come back in θ.

mod ahead;
mod draw;
mod ridge;
mod shape;

use super::ascent::{Climbed, Climber};
use super::{Mode, Weighted};
use crate::math::proposal::Draws;
use crate::math::{LOG_2PI, Matrix, Mixture, Proposal, Rule, Sobol, Stream};
use crate::model::Coordinates;
use crate::target::{Expansion, Target, Thirds};
use crate::{Error, Result};
use libm::exp;
use serde::Serialize;
use std::sync::Arc;

/// The most peaks that are looked at.
const MOST_PEAKS: usize = 12;

/// The least number of rounds for draws.
const KEPT_BACK: usize = 2;

/// With fewer rounds than this, none is kept back from a climb that draws can ride on.
const FEW_ROUNDS: usize = 6;

/// The part of the weights far out beyond which a posterior is not bounded.
const RUNAWAY: f64 = 0.01;

/// What a peak's share of the draws may not fall below.
const LEAST_SHARE: f64 = 0.02;

/// How a search goes.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The most draws of the final mixture.
    pub draws: usize,
    /// The standard error at which it has enough; 0: all draws are wanted.
    pub se_target: f64,
    /// The most rounds of questions.
    pub rounds: usize,
    /// Whether points come from a Sobol sequence.
    pub even: bool,
    /// Whether draws come in pairs that mirror each other, where there is one peak: better for the evidence, worse for
    /// squares.
    pub mirrored: bool,
    /// How many draws are tried first where each costs much.
    pub few: Option<usize>,
    /// Whether there is one peak for sure.
    pub single: bool,
    /// Whether some draws are from the prior where the data say little.
    pub from_prior: bool,
    /// The number of a parameter that says how large misfits may be, and a value of it under which the
    /// coefficients at their priors' centres are no great misfit.
    pub noise: Option<(usize, f64)>,
    /// Half the squared Newton decrement at which a peak is near enough.
    pub tolerance: f64,
}

/// What a search wants next.
pub enum Wish {
    /// Expansions of log f at these θ.
    Expand(Vec<Vec<f64>>),
    /// log f at these θ.
    Weigh(PointSet),
    /// log f at this θ, to third order. Only of a search that was told that it may ask: [`Search::from_near`].
    Cubic(Vec<f64>),
    /// Several things at once, so that they take one round. Of such a search too.
    Ahead {
        /// The expansion at this θ, if it is still to be known.
        expand: Option<Vec<f64>>,
        /// log f at draws from a proposal there.
        draws: PointSet,
        /// log f at points around it, if they are to be looked at.
        probes: Option<PointSet>,
    },
    /// Nothing more.
    Done,
}

/// Points at which log f is wanted.
#[derive(Debug, Clone)]
pub struct PointSet {
    /// θ, one per row.
    pub thetas: Arc<Matrix>,
    /// How they are made, in the search's coordinates.
    pub rule: Option<Arc<Rule>>,
}

/// What it was told.
pub enum Heard {
    /// Answers to [`Wish::Expand`].
    Expansions(Vec<Expansion>),
    /// Answers to [`Wish::Weigh`].
    Values(Vec<f64>),
    /// Answer to [`Wish::Cubic`].
    Cubic(Expansion, Thirds),
    /// Answers to [`Wish::Ahead`], in its order.
    Ahead(Option<Expansion>, Vec<f64>, Option<Vec<f64>>),
}

/// A peak and what it holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Peak {
    /// Where it is, in θ.
    pub theta: Vec<f64>,
    /// The share of the posterior around it.
    pub mass: f64,
}

/// A part of the mixture that draws come from.
#[derive(Debug, Clone)]
struct MixturePart {
    share: f64,
    proposal: Proposal,
    /// The covariance that it began with, which later ones are drawn towards.
    birth: Matrix,
    /// Whether it stays as it is, as the prior does.
    stays: bool,
}

impl MixturePart {
    fn new(share: f64, proposal: Proposal) -> MixturePart {
        let birth = proposal.covariance();
        MixturePart { share, proposal, birth, stays: false }
    }
}

/// The state of a search.
pub struct Search {
    coordinates: Coordinates,
    settings: Settings,
    start: Vec<f64>,
    /// Where the peak is about, by others' account.
    near: Option<Vec<f64>>,
    /// Whether it may ask ahead, and for third derivatives; and how often it did that.
    ahead: bool,
    thirds: bool,
    approaches: usize,
    /// Whether draws from a first guess were poor.
    is_hard: bool,
    stage: SearchStage,
    /// In z, the best first once the climbs are over.
    peaks: Vec<Mode>,
    /// What climbs had reached that did not get to a peak.
    unfinished: Vec<Mode>,
    lost: Option<Error>,
    likelihood_peak: Option<Vec<f64>>,
    mixed: bool,
    /// Parts between peaks, with the logarithms of their masses.
    passes: Vec<(f64, Proposal)>,
    /// What draws come from, once the climbs are over.
    parts: Vec<MixturePart>,
    rng: Stream,
    sobol: Option<Sobol>,
    /// The draws of the present mixture, in z.
    points: Vec<f64>,
    weighted: Option<Weighted>,
    /// Parts along a ridge, as far as they are known, with the logarithms of their masses; `None` before
    /// they are looked for.
    ridge: Option<Vec<(f64, Proposal)>>,
    adaptations: usize,
    /// Whether the mixture is the final one.
    settled: bool,
    newton_rounds: usize,
    weigh_rounds: usize,
    /// The number, among the points of the last round, of the one that is the best peak now.
    new_best: Option<usize>,
}

enum SearchStage {
    Start,
    Climb(Vec<Climber>),
    /// Third derivatives at z.
    Approach(Vec<f64>),
    Ride(Box<ahead::Ride>),
    Pass(Vec<Vec<f64>>),
    Probe(Vec<Proposal>, Matrix),
    /// Draws in z, and their θ.
    Draw(Draws, Arc<Matrix>),
    Look(Vec<Vec<f64>>),
    Ridge(Vec<Climber>),
    End,
}

impl Search {
    /// A search that starts from θ.
    pub fn new(
        coordinates: Coordinates,
        start: Vec<f64>,
        settings: Settings,
        mut rng: Stream,
    ) -> Search {
        let sobol = settings.even.then(|| Sobol::new(&mut rng));
        Search {
            coordinates,
            settings,
            start,
            near: None,
            ahead: false,
            thirds: false,
            approaches: 0,
            is_hard: false,
            stage: SearchStage::Start,
            peaks: Vec::new(),
            unfinished: Vec::new(),
            lost: None,
            likelihood_peak: None,
            mixed: false,
            passes: Vec::new(),
            parts: Vec::new(),
            rng,
            sobol,
            points: Vec::new(),
            weighted: None,
            ridge: None,
            adaptations: 0,
            settled: false,
            newton_rounds: 0,
            weigh_rounds: 0,
            new_best: None,
        }
    }

    /// Rounds of expansions, and of weights.
    pub fn rounds(&self) -> (usize, usize) {
        (self.newton_rounds, self.weigh_rounds)
    }

    /// The number, among the points of the last round of expansions, of one that turned out to be the best
    /// peak so far.
    pub fn new_best(&self) -> Option<usize> {
        self.new_best
    }

    /// The best peak, in z.
    pub fn best(&self) -> Option<&Mode> {
        self.peaks.iter().max_by(|a, b| a.value.total_cmp(&b.value))
    }

    /// The peaks, in z, once the climbs are over.
    pub fn peaks(&self) -> &[Mode] {
        &self.peaks
    }

    /// How many draws of the final mixture there are so far.
    pub fn draws(&self) -> usize {
        self.weighted.as_ref().map_or(0, Weighted::len)
    }

    /// The coordinates z.
    pub fn coordinates(&self) -> &Coordinates {
        &self.coordinates
    }

    /// The weighted draws, in θ.
    pub fn weighted(&self) -> Option<&Weighted> {
        self.weighted.as_ref()
    }

    /// The same, once it is done.
    pub fn into_weighted(self) -> Option<Weighted> {
        self.weighted
    }

    /// The number of a parameter that runs away: a part of the draws' weight that no proper posterior has there
    /// lies where its heavy-tailed prior has next to nothing.
    pub fn runaway(&self) -> Option<usize> {
        let weighted = self.weighted.as_ref()?;
        let top = weighted.log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = weighted.log_weights.iter().map(|w| exp(w - top)).sum();
        let far = |j: usize, k: usize| self.coordinates.has_run_away(j, weighted.thetas.row(k)[j]);
        (0..self.coordinates.dim()).find(|&j| {
            let away = (0..weighted.len()).filter(|&k| far(j, k));
            away.map(|k| exp(weighted.log_weights[k] - top)).sum::<f64>() > RUNAWAY * total
        })
    }

    fn mixture(&self) -> Mixture {
        Mixture::new(self.parts.iter().map(|part| (part.share, part.proposal.clone())).collect())
    }

    /// Rounds that are kept back from the climbs for draws. Where draws ride on steps, few rounds are one step and its draws
    /// at least.
    fn kept_back(&self) -> usize {
        if self.ahead && self.settings.rounds < FEW_ROUNDS {
            return 1;
        }
        KEPT_BACK.max(self.settings.rounds / 3)
    }

    fn rounds_left(&self) -> usize {
        self.settings.rounds.saturating_sub(self.newton_rounds + self.weigh_rounds)
    }

    /// Takes what it wanted to know (nothing at first) and says what is next.
    pub fn next(&mut self, heard: Option<Heard>) -> Result<Wish> {
        self.new_best = None;
        match (std::mem::replace(&mut self.stage, SearchStage::End), heard) {
            (SearchStage::Start, _) => Ok(self.begin()),
            (SearchStage::Climb(climbers), Some(Heard::Expansions(at))) => {
                self.climbed(climbers, at)
            }
            (SearchStage::Approach(z), Some(Heard::Cubic(at, thirds))) => {
                self.approached(z, &at, thirds)
            }
            (SearchStage::Ride(ride), Some(Heard::Ahead(at, draws, probes))) => {
                self.ridden(*ride, at, &draws, probes)
            }
            (SearchStage::Pass(points), Some(Heard::Expansions(at))) => Ok(self.passed(points, at)),
            (SearchStage::Probe(around, points), Some(Heard::Values(values))) => {
                self.probed(around, &points, &values)
            }
            (SearchStage::Draw(draws, thetas), Some(Heard::Values(values))) => {
                self.weighed(draws, thetas, &values)
            }
            (SearchStage::Ridge(climbers), Some(Heard::Expansions(at))) => self.ridge(climbers, at),
            (SearchStage::Look(points), Some(Heard::Expansions(at))) => self.looked(points, at),
            (SearchStage::End, _) => Ok(Wish::Done),
            _ => unreachable!("what is heard is what was asked for"),
        }
    }

    fn begin(&mut self) -> Wish {
        if let Some(near) = self.near.take() {
            return self.begin_near(&near);
        }
        let start = self.coordinates.z(&self.start);
        if self.settings.single {
            return self.climb(vec![Climber::new(start, self.settings.tolerance)]);
        }
        let centre = vec![0.0; start.len()];
        let mut climbers = vec![self.centred_climb()];
        if start != centre {
            climbers.push(Climber::new(nudged(&start), self.settings.tolerance));
        }
        climbers.extend(self.noisy(centre));
        climbers.push(Climber::of_likelihood(self.start.clone()));
        self.climb(climbers)
    }

    /// A climb from the prior's centre.
    fn centred_climb(&self) -> Climber {
        Climber::new(nudged(&vec![0.0; self.coordinates.dim()]), self.settings.tolerance)
    }

    /// Which coordinate is `j`.
    fn only(&self, j: usize) -> Vec<bool> {
        (0..self.coordinates.dim()).map(|k| k == j).collect()
    }

    /// A climb that first finds out how large misfits must be for the other coordinates to stay.
    fn noisy(&self, mut z: Vec<f64>) -> Option<Climber> {
        let (j, value) = self.settings.noise?;
        let mut theta = self.coordinates.theta(&z);
        theta[j] = value;
        z[j] = self.coordinates.z(&theta)[j];
        Some(Climber::along(z, self.only(j)))
    }

    fn climb(&mut self, climbers: Vec<Climber>) -> Wish {
        self.newton_rounds += 1;
        let asked = climbers.iter().map(|c| c.asked(&self.coordinates)).collect();
        self.stage = SearchStage::Climb(climbers);
        Wish::Expand(asked)
    }

    fn climbed(&mut self, climbers: Vec<Climber>, expansions: Vec<Expansion>) -> Result<Wish> {
        let mut going = Vec::new();
        for (i, (mut climber, at)) in climbers.into_iter().zip(expansions).enumerate() {
            match climber.advance(&at, &self.coordinates) {
                Climbed::OnItsWay => going.push(climber),
                Climbed::Peak(mode) => self.reached(i, *mode),
                Climbed::Turn(z, _) => going.push(Climber::new(z, self.settings.tolerance)),
                Climbed::LikelihoodPeak(theta) => {
                    let z = nudged(&self.coordinates.z(&theta));
                    self.likelihood_peak = Some(z.clone());
                    going.push(Climber::new(z, self.settings.tolerance));
                }
                Climbed::Lost(error) => {
                    self.unfinished.extend(climber.so_far());
                    // A start that leads nowhere alone: the prior's centre is always there.
                    if self.settings.single && self.newton_rounds == 1 {
                        going.push(self.centred_climb());
                    }
                    self.lost = Some(error);
                }
            }
        }
        let time_left = self.rounds_left() > self.kept_back();
        if going.is_empty() && time_left && !self.mixed {
            self.mixed = true;
            for z in self.mixed_starts() {
                let noisy = self.noisy(z.clone());
                going.push(noisy.unwrap_or_else(|| Climber::new(z, self.settings.tolerance)));
            }
        }
        if let [only] = &going[..]
            && (time_left || self.rounds_left() == 1)
            && self.is_last_step(only)
        {
            return Ok(self.ride_on(going.remove(0)));
        }
        if !going.is_empty() && time_left {
            return Ok(self.climb(going));
        }
        self.unfinished.extend(going.iter().filter_map(Climber::so_far));
        self.begin_probing()
    }

    /// Keeps a peak, unless it is known.
    fn reached(&mut self, number: usize, mode: Mode) {
        let known = |peak: &Mode| {
            let offset: Vec<f64> = peak.theta.iter().zip(&mode.theta).map(|(a, b)| a - b).collect();
            peak.precision.quadratic(&offset) < 0.1 && (peak.value - mode.value).abs() < 0.1
        };
        if self.peaks.iter().any(known) {
            return;
        }
        if self.best().is_none_or(|best| mode.value > best.value) {
            self.new_best = Some(number);
        }
        self.peaks.push(mode);
    }

    /// Starts between the prior's centre and the likelihood's peak, where priors are at odds with the data
    /// and one of the two can give way, the prior by its tail or the data as noise: each such coordinate by
    /// itself is left where the prior has it, or put where the likelihood does.
    fn mixed_starts(&self) -> Vec<Vec<f64>> {
        let Some(there) = &self.likelihood_peak else { return Vec::new() };
        let odd: Vec<usize> = (0..there.len())
            .filter(|&j| self.coordinates.is_heavy(j) || self.settings.noise.is_some())
            .filter(|&j| there[j].abs() > 2.0 && self.settings.noise.is_none_or(|n| n.0 != j))
            .collect();
        let mut masks: Vec<Vec<bool>> = Vec::new();
        for &j in odd.iter().take(MOST_PEAKS) {
            for alone in [true, false] {
                let mask: Vec<bool> = odd.iter().map(|&k| (k == j) == alone).collect();
                let nothing = mask.iter().all(|&there| there == mask[0]) && odd.len() > 1;
                if !nothing && !masks.contains(&mask) {
                    masks.push(mask);
                }
            }
        }
        let start = |mask: &Vec<bool>| {
            let mut z = there.clone();
            odd.iter().zip(mask).filter(|(_, kept)| !**kept).for_each(|(&j, _)| z[j] = 0.0);
            z
        };
        masks.iter().map(start).collect()
    }

    /// The peaks with the share of the draws' weights that are nearest to each, the largest first.
    pub fn masses(&self) -> Vec<Peak> {
        let Some(weighted) = &self.weighted else { return Vec::new() };
        if let [only] = self.peaks.as_slice() {
            return vec![Peak { theta: self.coordinates.theta(&only.theta), mass: 1.0 }];
        }
        let top = weighted.log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sums = vec![0.0; self.peaks.len()];
        for (k, w) in weighted.log_weights.iter().enumerate() {
            let distance = |peak: &Mode| {
                let z = self.point(k).iter().zip(&peak.theta);
                peak.precision.quadratic(&z.map(|(a, b)| a - b).collect::<Vec<f64>>())
            };
            let nearest = (0..sums.len())
                .min_by(|&a, &b| distance(&self.peaks[a]).total_cmp(&distance(&self.peaks[b])));
            if let Some(nearest) = nearest {
                sums[nearest] += exp(w - top);
            }
        }
        let total: f64 = sums.iter().sum();
        let each = self.peaks.iter().zip(&sums);
        let mut out: Vec<Peak> = each
            .map(|(m, s)| Peak { theta: self.coordinates.theta(&m.theta), mass: s / total })
            .collect();
        out.sort_by(|a, b| b.mass.total_cmp(&a.mass));
        out
    }
}

/// A little off, so that a climb does not rest on a ridge between two peaks that mirror each other.
fn nudged(z: &[f64]) -> Vec<f64> {
    let turn = |j: usize| 0.05 * libm::sin(1.0 + j as f64);
    z.iter().enumerate().map(|(j, z)| z + turn(j)).collect()
}

/// Laplace's approximation at a mode.
fn laplace(mode: &Mode) -> f64 {
    mode.value + 0.5 * (mode.theta.len() as f64 * LOG_2PI - mode.factor.log_det())
}

/// Has a search climb a target that is at hand to its peaks. Returns the first points that it wants
/// weighed, with which [`weigh`] goes on.
pub fn climb(search: &mut Search, target: &dyn Target) -> Result<Arc<Matrix>> {
    let mut heard = None;
    loop {
        if target.is_called_off() {
            return Err(Error::Stopped);
        }
        match search.next(heard)? {
            Wish::Expand(thetas) => heard = Some(expansions(&thetas, target)),
            Wish::Weigh(set) => return Ok(set.thetas),
            Wish::Done => unreachable!("a search ends with draws"),
            Wish::Cubic(_) | Wish::Ahead { .. } => unreachable!("it was not told that it may"),
        }
    }
}

/// Has a search that has climbed a target draw and weigh, from these points on to its end.
pub fn weigh(search: &mut Search, target: &dyn Target, mut thetas: Arc<Matrix>) -> Result<()> {
    loop {
        if target.is_called_off() {
            return Err(Error::Stopped);
        }
        let mut out = vec![0.0; thetas.rows()];
        target.log_densities(&thetas, &mut out);
        let mut heard = Heard::Values(out);
        thetas = loop {
            match search.next(Some(heard))? {
                Wish::Expand(thetas) => heard = expansions(&thetas, target),
                Wish::Weigh(set) => break set.thetas,
                Wish::Done => return Ok(()),
                Wish::Cubic(_) | Wish::Ahead { .. } => unreachable!("it was not told that it may"),
            }
        };
    }
}

fn expansions(thetas: &[Vec<f64>], target: &dyn Target) -> Heard {
    Heard::Expansions(thetas.iter().map(|theta| target.expand(theta)).collect())
}
