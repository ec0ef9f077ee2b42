//! The evidence of a posterior by importance sampling around every peak that was found.
//!
//! A machine that is told the log density, or its expansion, at the points it asks for, so that the same
//! code works on a target at hand and over rounds of questions to shards. It climbs ([`ascent`]),
//! looks from every peak to which sides the density falls slowly, and draws from a mixture over the peaks,
//! with the prior itself as a part where the data say little. Draws whose weights are large show where the
//! mixture lacks something: it gets parts there (incremental mixture importance sampling, Raftery & Bao 2010),
//! and its parts move to where the weights say (Cappé et al. 2008). All of this happens in coordinates in
//! which the prior is standard normal ([`Coordinates`]); points go out and come back in θ.

use super::ascent::{Climbed, Climber, definite};
use super::importance::{PROBES, T_DF, T_SHARE, sides};
use super::{Importance, Mode, Weighted};
use crate::math::proposal::Draws;
use crate::math::{
    Cholesky, LOG_2PI, Matrix, Mixture, Proposal, Sobol, Stream, dot, log_sum_exp,
};
use crate::model::Coordinates;
use crate::model::coordinates::log_standard_normal;
use crate::target::{Expansion, Target};
use crate::{Error, Result};
use libm::exp;
use serde::Serialize;
use std::sync::Arc;

/// The share of effective draws beyond which a proposal is left as it is.
const WELL_PLACED: f64 = 0.75;

/// Draws of the first round of weights, and of it where several peaks may be.
const PILOT: usize = 1000;
const WIDE_PILOT: usize = 2000;

/// The least number of rounds for draws.
const KEPT_BACK: usize = 2;

/// How often a mixture may be made anew.
const ADAPTATIONS: usize = 8;

/// How many of the largest peaks are joined by lines, and where on these is looked.
const MOST_JOINED: usize = 4;
const PASSES: [f64; 5] = [1.0 / 12.0, 0.25, 0.5, 0.75, 11.0 / 12.0];

/// The part of the weights' squares beyond which one draw alone has too much to say about the error.
const LONELY: f64 = 0.05;

/// The share of effective draws below which a mixture is poor, and where along a ridge parts are put, in
/// standard deviations.
const POOR: f64 = 0.25;
const RIDGE: [f64; 7] = [-3.6, -2.4, -1.2, 0.0, 1.2, 2.4, 3.6];

/// The most peaks that are looked at, and nats below the highest at which a peak no longer counts.
const MOST_PEAKS: usize = 12;
const NEGLIGIBLE: f64 = 20.0;

/// What a peak's share of the draws may not fall below.
const LEAST_SHARE: f64 = 0.02;

/// Weights this many times the mean are looked at, and at most so many of them at a time.
const HEAVY: f64 = 8.0;
const MOST_HEAVY: usize = 5;

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
    /// Whether there is one peak for sure.
    pub single: bool,
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
    /// log f at these θ, one per row.
    Weigh(Arc<Matrix>),
    /// Nothing more.
    Done,
}

/// What it was told.
pub enum Heard {
    /// Answers to [`Wish::Expand`].
    Expansions(Vec<Expansion>),
    /// Answers to [`Wish::Weigh`].
    Values(Vec<f64>),
}

/// A peak and what it holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Peak {
    /// Where it is, in θ.
    pub theta: Vec<f64>,
    /// The share of the posterior around it.
    pub mass: f64,
}

/// The state of a search.
pub struct Search {
    coordinates: Coordinates,
    settings: Settings,
    start: Vec<f64>,
    stage: Stage,
    /// In z, the best first once the climbs are over.
    peaks: Vec<Mode>,
    /// What climbs had reached that did not get to a peak.
    unfinished: Vec<Mode>,
    lost: Option<Error>,
    likelihood_peak: Option<Vec<f64>>,
    mixed: bool,
    /// Parts between peaks, with the logarithms of their masses.
    passes: Vec<(f64, Proposal)>,
    mixture: Option<Mixture>,
    /// Per part the covariance of its birth, which later ones are drawn towards.
    births: Vec<Matrix>,
    /// The number of the part that is the prior, and its share, which stay as they are.
    prior: Option<(usize, f64)>,
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

enum Stage {
    Start,
    Climb(Vec<Climber>),
    Pass(Vec<Vec<f64>>),
    Probe(Vec<Proposal>, Matrix),
    Draw(Draws),
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
            stage: Stage::Start,
            peaks: Vec::new(),
            unfinished: Vec::new(),
            lost: None,
            likelihood_peak: None,
            mixed: false,
            passes: Vec::new(),
            mixture: None,
            births: Vec::new(),
            prior: None,
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

    /// Rounds that are kept back from the climbs for draws.
    fn kept_back(&self) -> usize {
        KEPT_BACK.max(self.settings.rounds / 3)
    }

    fn rounds_left(&self) -> usize {
        self.settings.rounds.saturating_sub(self.newton_rounds + self.weigh_rounds)
    }

    /// Takes what it wanted to know (nothing at first) and says what is next.
    pub fn next(&mut self, heard: Option<Heard>) -> Result<Wish> {
        self.new_best = None;
        match (std::mem::replace(&mut self.stage, Stage::End), heard) {
            (Stage::Start, _) => Ok(self.begin()),
            (Stage::Climb(climbers), Some(Heard::Expansions(at))) => self.climbed(climbers, at),
            (Stage::Pass(points), Some(Heard::Expansions(at))) => Ok(self.passed(points, at)),
            (Stage::Probe(around, points), Some(Heard::Values(values))) => {
                self.probed(around, &points, &values)
            }
            (Stage::Draw(draws), Some(Heard::Values(values))) => self.weighed(draws, &values),
            (Stage::Ridge(climbers), Some(Heard::Expansions(at))) => self.ridge(climbers, at),
            (Stage::Look(points), Some(Heard::Expansions(at))) => self.looked(points, at),
            (Stage::End, _) => Ok(Wish::Done),
            _ => unreachable!("what is heard is what was asked for"),
        }
    }

    fn begin(&mut self) -> Wish {
        let start = self.coordinates.z(&self.start);
        if self.settings.single {
            return self.climb(vec![Climber::new(start, self.settings.tolerance)]);
        }
        let centre = vec![0.0; start.len()];
        let mut climbers = vec![self.from_centre()];
        if start != centre {
            climbers.push(Climber::new(nudged(&start), self.settings.tolerance));
        }
        climbers.extend(self.noisy(centre));
        climbers.push(Climber::of_likelihood(self.start.clone()));
        self.climb(climbers)
    }

    /// A climb from the prior's centre.
    fn from_centre(&self) -> Climber {
        Climber::new(nudged(&vec![0.0; self.coordinates.dim()]), self.settings.tolerance)
    }

    /// Coordinate `j` moves, or where `j` is the noise's, all others do not.
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
        self.stage = Stage::Climb(climbers);
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
                        going.push(self.from_centre());
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

    /// The climbs are over: every peak that counts gets its probes.
    fn begin_probing(&mut self) -> Result<Wish> {
        let best = self.best().map(|m| m.value);
        let near = |m: &Mode| best.is_none_or(|best| m.value > best - 10.0);
        let more: Vec<Mode> = std::mem::take(&mut self.unfinished).into_iter().filter(near).collect();
        if self.peaks.is_empty() {
            let most = more.into_iter().max_by(|a, b| a.value.total_cmp(&b.value));
            let Some(most) = most else {
                return Err(self.lost.take().unwrap_or_else(|| Error::numeric("no peak was found")));
            };
            self.peaks.push(most);
        } else {
            for mode in more {
                if self.best().is_some_and(|best| mode.value > best.value + 1.0) {
                    self.peaks.push(mode);
                }
            }
        }
        self.peaks.sort_by(|a, b| laplace(b).total_cmp(&laplace(a)));
        let least = laplace(&self.peaks[0]) - NEGLIGIBLE;
        self.peaks.retain(|peak| laplace(peak) > least);
        self.peaks.truncate(MOST_PEAKS);
        let between = self.between();
        if between.is_empty() || self.rounds_left() <= KEPT_BACK + 1 {
            return Ok(self.begin_looking_around());
        }
        let thetas = between.iter().map(|z| self.coordinates.theta(z)).collect();
        self.newton_rounds += 1;
        self.stage = Stage::Pass(between);
        Ok(Wish::Expand(thetas))
    }

    /// Points between the largest peaks, on straight lines in θ: two columns that say the same leave a
    /// ridge there.
    fn between(&self) -> Vec<Vec<f64>> {
        let count = self.peaks.len().min(MOST_JOINED);
        let mut out = Vec::new();
        for (a, b) in (0..count).flat_map(|b| (0..b).map(move |a| (a, b))) {
            let [from, to] = [a, b].map(|k| self.coordinates.theta(&self.peaks[k].theta));
            for step in PASSES {
                let theta: Vec<f64> =
                    from.iter().zip(&to).map(|(x, y)| x + step * (y - x)).collect();
                out.push(self.coordinates.z(&theta));
            }
        }
        out
    }

    /// Parts for those passes between peaks that are high enough to count.
    fn passed(&mut self, points: Vec<Vec<f64>>, expansions: Vec<Expansion>) -> Wish {
        let top = laplace(&self.peaks[0]);
        for (z, at) in points.into_iter().zip(expansions) {
            let theta = self.coordinates.theta(&z);
            let at = self.coordinates.expand(&z, &theta, &at, 1.0);
            let Some((_, factor)) = definite(&at.hessian) else { continue };
            // To the top of the ridge, but not far along it.
            let step = factor.solve(&at.gradient);
            let length = dot(&step, &at.gradient).max(0.0).sqrt();
            let by = if length > 1.0 { 1.0 / length } else { 1.0 };
            let centre: Vec<f64> = z.iter().zip(&step).map(|(z, s)| z + by * s).collect();
            let part = Proposal::from_precision(centre, &factor, T_SHARE, T_DF);
            let rise = length.min(1.0) * length - 0.5 * length.min(1.0).powi(2);
            let mass = at.value + rise + part.log_volume();
            if mass.is_finite() && mass > top - NEGLIGIBLE {
                self.passes.push((mass, part));
            }
        }
        self.begin_looking_around()
    }

    fn begin_looking_around(&mut self) -> Wish {
        let around = |m: &Mode| Proposal::from_precision(m.theta.clone(), &m.factor, T_SHARE, T_DF);
        let around: Vec<Proposal> = self.peaks.iter().map(around).collect();
        if self.rounds_left() <= KEPT_BACK {
            self.shape(around);
            return self.draw(self.pilot());
        }
        let d = self.coordinates.dim();
        let points: Vec<Matrix> = around.iter().map(|p| super::importance::probes(p, d)).collect();
        let rows = points.iter().map(Matrix::rows).sum();
        let data = points.iter().flat_map(|p| p.data().to_vec()).collect();
        let points = Matrix::from_rows(rows, d, data);
        let thetas = Arc::new(self.coordinates.thetas(&points));
        self.weigh_rounds += 1;
        self.stage = Stage::Probe(around, points);
        Wish::Weigh(thetas)
    }

    fn probed(&mut self, around: Vec<Proposal>, points: &Matrix, log_f: &[f64]) -> Result<Wish> {
        let heights: Vec<f64> = (0..log_f.len())
            .map(|k| {
                let z = points.row(k);
                self.coordinates.log_density(z, &self.coordinates.theta(z), log_f[k])
            })
            .collect();
        let each = 1 + 2 * PROBES.len() * self.coordinates.dim();
        let shaped = around.into_iter().zip(heights.chunks(each));
        self.shape(shaped.map(|(p, heights)| p.with_sides(sides(heights))).collect());
        Ok(self.draw(self.pilot()))
    }

    /// Makes the first mixture of a proposal per peak.
    fn shape(&mut self, proposals: Vec<Proposal>) {
        let masses: Vec<f64> =
            self.peaks.iter().zip(&proposals).map(|(m, p)| m.value + p.log_volume()).collect();
        let total = log_sum_exp(&masses);
        // How many nats the data add to the prior at the best point: the most that a weight can be over
        // the mean one if all draws are from the prior.
        let rest = |m: &Mode| m.value - log_standard_normal(&m.theta);
        let gain = self.peaks.iter().map(rest).fold(f64::NEG_INFINITY, f64::max) - total;
        self.births = proposals.iter().map(Proposal::covariance).collect();
        let share = |log_mass: f64| exp(log_mass - total).clamp(LEAST_SHARE, 1.0);
        let mut parts: Vec<(f64, Proposal)> =
            proposals.into_iter().zip(&masses).map(|(p, &m)| (share(m), p)).collect();
        for (mass, part) in std::mem::take(&mut self.passes) {
            self.births.push(part.covariance());
            parts.push((0.5 * share(mass), part));
        }
        let prior = prior_share(gain);
        if prior > 0.0 {
            let sum: f64 = parts.iter().map(|(share, _)| share).sum();
            parts.push((sum * prior / (1.0 - prior), standard_normal(self.coordinates.dim())));
            self.births.push(Matrix::identity(self.coordinates.dim()));
            self.prior = Some((parts.len() - 1, prior));
        }
        self.mixture = Some(Mixture::new(parts));
    }

    fn pilot(&self) -> usize {
        let pilot = if self.settings.single { PILOT } else { WIDE_PILOT };
        self.settings.draws.min(pilot)
    }

    fn draw(&mut self, count: usize) -> Wish {
        let mixture = self.mixture.as_ref().expect("draws come after the mixture");
        let draws = match &mut self.sobol {
            Some(sobol) => mixture.draw_evenly(count, sobol, &mut self.rng),
            None => mixture.draw(count, &mut self.rng),
        };
        let thetas = Arc::new(self.coordinates.thetas(&draws.thetas));
        self.weigh_rounds += 1;
        self.stage = Stage::Draw(draws);
        Wish::Weigh(thetas)
    }

    /// Takes log f of the draws; draws more, makes the mixture anew, or ends.
    fn weighed(&mut self, draws: Draws, log_f: &[f64]) -> Result<Wish> {
        self.points.extend(draws.thetas.data());
        let new = Weighted::new(self.in_theta(draws), log_f)?;
        match &mut self.weighted {
            Some(weighted) => weighted.extend(new),
            None => self.weighted = Some(new),
        }
        let weighted = self.weighted.as_ref().expect("just put there");
        let (seen, count) = (weighted.summarise(), weighted.len());
        let (target, most) = (self.settings.se_target, self.settings.draws);
        let se = seen.log_z.se.unwrap_or(0.0);
        // A posterior that is skewed is not where its mode is: better draws are worth more than more.
        let misplaced =
            self.adaptations == 0 && se > target && seen.ess < WELL_PLACED * count as f64;
        let lonely = weighted.lonely() > LONELY && self.adaptations < ADAPTATIONS / 2;
        let poor = seen.ess < POOR * count as f64 || !seen.is_reliable();
        let may_adapt = self.adaptations < ADAPTATIONS && self.rounds_left() > 1;
        if may_adapt && (!seen.is_reliable() || !self.settled && (misplaced || lonely)) {
            self.settled = false;
            let ridge = self.settings.noise.filter(|_| poor && self.ridge.is_none());
            if let Some((j, _)) = ridge.filter(|_| self.coordinates.dim() > 1) {
                return Ok(self.begin_ridge(j, &seen));
            }
            if let Some(wish) = self.adapt(&seen) {
                return Ok(wish);
            }
        }
        // The error falls with the root of the number of draws; a tenth more to be sure.
        let wanted = (1.1 * count as f64 * (se / target).powi(2)).ceil().min(most as f64) as usize;
        if self.rounds_left() > 0 && self.changed() && !self.settled {
            // Draws that were kept because they look good look better than they are.
            self.settled = true;
            self.forget();
            return Ok(self.draw(wanted.max(count).min(most)));
        }
        if self.rounds_left() > 0 && se > target && wanted > count {
            return Ok(self.draw(wanted - count));
        }
        Ok(Wish::Done)
    }

    /// Whether the mixture is another one than at first.
    fn changed(&self) -> bool {
        self.adaptations > 0 || self.ridge.is_some()
    }

    /// Gives up the draws at hand.
    fn forget(&mut self) {
        self.weighted = None;
        self.points.clear();
        self.sobol = self.sobol.as_ref().map(|_| Sobol::new(&mut self.rng));
    }

    /// Draws with their density in θ.
    fn in_theta(&self, draws: Draws) -> Draws {
        let thetas = self.coordinates.thetas(&draws.thetas);
        let log_density = (0..thetas.rows())
            .map(|k| {
                // log |dz/dθ| is what the standard normal lacks to the base's density.
                let normal = log_standard_normal(draws.thetas.row(k));
                -self.coordinates.log_rest(thetas.row(k), normal - draws.log_density[k])
            })
            .collect();
        Draws { thetas, log_density, replicates: draws.replicates }
    }

    fn point(&self, k: usize) -> &[f64] {
        let d = self.coordinates.dim();
        &self.points[k * d..(k + 1) * d]
    }

    /// Moves the mixture's parts to where the weights say, and looks at the heaviest draws.
    /// `None` if there is nothing to be learned.
    fn adapt(&mut self, seen: &Importance) -> Option<Wish> {
        self.adaptations += 1;
        let weighted = self.weighted.as_ref().expect("there are draws");
        let mixture = self.mixture.as_ref().expect("there is a mixture");
        let logs = &weighted.log_weights;
        let relative: Vec<f64> = logs.iter().map(|w| exp(w - seen.log_z.value)).collect();
        let heavy = self.heavy(&relative, mixture);
        let moved = self.moved(&relative, mixture);
        let still = moved.is_none();
        if let Some(moved) = moved {
            self.mixture = Some(moved);
        }
        if heavy.is_empty() || self.rounds_left() < 2 {
            return (!still).then(|| self.again());
        }
        let thetas = heavy.iter().map(|z| self.coordinates.theta(z)).collect();
        self.newton_rounds += 1;
        self.stage = Stage::Look(heavy);
        Some(Wish::Expand(thetas))
    }

    /// Draws anew from the mixture as it is now.
    fn again(&mut self) -> Wish {
        let count = self.draws();
        self.forget();
        self.draw((2 * count).min(self.settings.draws))
    }

    /// Looks for the ridge that the other coordinates' peak makes when the noise's coordinate `j` moves: where
    /// data are few, their spread goes with the noise, like a funnel, which no single part fits.
    fn begin_ridge(&mut self, j: usize, seen: &Importance) -> Wish {
        let weighted = self.weighted.as_ref().expect("there are draws");
        let weight = |k: usize| exp(weighted.log_weights[k] - seen.log_z.value);
        let total: f64 = (0..weighted.len()).map(weight).sum();
        let moment = |f: &dyn Fn(f64) -> f64| {
            (0..weighted.len()).map(|k| weight(k) * f(self.point(k)[j])).sum::<f64>() / total
        };
        let mean = moment(&|z| z);
        let sd = moment(&|z| (z - mean) * (z - mean)).sqrt().max(0.05);
        let own = RIDGE.iter().map(|t| mean + sd * t);
        let mut places: Vec<f64> = own.chain(RIDGE.map(|t| t * 0.9)).collect();
        places.sort_by(f64::total_cmp);
        let moves: Vec<bool> = self.only(j).into_iter().map(|own| !own).collect();
        let start = |place: &f64| {
            let nearest = self.peaks.iter().min_by(|a, b| {
                (a.theta[j] - place).abs().total_cmp(&(b.theta[j] - place).abs())
            });
            let mut z = nearest.map_or_else(|| vec![0.0; moves.len()], |m| m.theta.clone());
            z[j] = *place;
            Climber::along(z, moves.clone())
        };
        let climbers = places.iter().map(start).collect();
        self.ridge = Some(Vec::new());
        self.climb_ridge(climbers)
    }

    fn climb_ridge(&mut self, climbers: Vec<Climber>) -> Wish {
        let wish = self.climb(climbers);
        if let Stage::Climb(climbers) = std::mem::replace(&mut self.stage, Stage::End) {
            self.stage = Stage::Ridge(climbers);
        }
        wish
    }

    fn ridge(&mut self, climbers: Vec<Climber>, expansions: Vec<Expansion>) -> Result<Wish> {
        let j = self.settings.noise.map_or(0, |n| n.0);
        let mut going = Vec::new();
        let mut ridge = self.ridge.take().expect("it is being looked for");
        for (mut climber, at) in climbers.into_iter().zip(expansions) {
            match climber.advance(&at, &self.coordinates) {
                Climbed::OnItsWay => going.push(climber),
                Climbed::Turn(z, mut at) => {
                    at.hessian[(j, j)] = -1.0;
                    let Some((_, factor)) = definite(&at.hessian) else { continue };
                    let part = Proposal::from_precision(z, &factor, T_SHARE, T_DF);
                    ridge.push((at.value + part.log_volume(), part));
                }
                _ => {}
            }
        }
        if !going.is_empty() && self.rounds_left() > 1 {
            self.ridge = Some(ridge);
            return Ok(self.climb_ridge(going));
        }
        self.ridge = Some(Vec::new());
        let mut found = ridge;
        found.sort_by(|a, b| a.1.centre()[j].total_cmp(&b.1.centre()[j]));
        let most = found.iter().map(|(mass, _)| *mass).fold(f64::NEG_INFINITY, f64::max);
        let places: Vec<f64> = found.iter().map(|(_, part)| part.centre()[j]).collect();
        let mut parts = Vec::new();
        let mixture = self.mixture.take().expect("there is a mixture");
        for (k, (mass, part)) in found.into_iter().enumerate() {
            if mass < most - 12.0 {
                continue;
            }
            // As wide as the way to its neighbours.
            let (left, right) = (k.saturating_sub(1), (k + 1).min(places.len() - 1));
            let width = ((places[right] - places[left]) / (right - left).max(1) as f64).max(0.02);
            let mut covariance = part.covariance();
            covariance[(j, j)] = width * width;
            let Some(factor) = Cholesky::new(&covariance) else { continue };
            let centre = part.centre().to_vec();
            parts.push((
                exp(mass - most) * width,
                Proposal::from_covariance(centre, &factor, T_SHARE, T_DF),
            ));
            self.births.push(covariance);
        }
        let sum: f64 = parts.iter().map(|(share, _)| share).sum();
        let floor = 0.2 / parts.len().max(1) as f64;
        let parts = parts.into_iter().map(|(share, part)| (share / sum + floor, part));
        let old = mixture.parts().iter().map(|(share, part)| (0.5 * share, part.clone()));
        self.mixture = Some(Mixture::new(old.chain(parts).collect()));
        Ok(self.again())
    }

    /// Points whose weights say that the mixture lacks something there: far above the mean, and apart.
    fn heavy(&self, relative: &[f64], mixture: &Mixture) -> Vec<Vec<f64>> {
        let mut order: Vec<usize> = (0..relative.len()).filter(|&k| relative[k] > HEAVY).collect();
        order.sort_by(|&a, &b| relative[b].total_cmp(&relative[a]));
        let mut chosen: Vec<Vec<f64>> = Vec::new();
        for k in order {
            let z = self.point(k);
            let logs = mixture.log_parts(z);
            let own = (0..logs.len()).max_by(|&a, &b| logs[a].total_cmp(&logs[b])).unwrap_or(0);
            let metric = mixture.parts()[own].1.clone();
            let apart = |other: &Vec<f64>| metric.clone().moved(other.clone()).distance(z) > 1.0;
            if chosen.iter().all(apart) {
                chosen.push(z.to_vec());
            }
            if chosen.len() == MOST_HEAVY {
                break;
            }
        }
        chosen
    }

    /// The mixture with shares and moments that the weighted draws give its parts; `None` if that is the
    /// same mixture.
    fn moved(&self, relative: &[f64], mixture: &Mixture) -> Option<Mixture> {
        let d = self.coordinates.dim();
        let n = relative.len() as f64;
        let parts = mixture.parts();
        let mut owned = vec![Vec::with_capacity(relative.len()); parts.len()];
        for (k, weight) in relative.iter().enumerate() {
            let logs = mixture.log_parts(self.point(k));
            let total = log_sum_exp(&logs);
            for (own, log_part) in owned.iter_mut().zip(&logs) {
                own.push(weight * exp(log_part - total));
            }
        }
        let mut refitted = parts.len() > 1;
        let mut out = Vec::new();
        let each = owned.iter().zip(parts).zip(&self.births).enumerate();
        for (number, ((own, (_, part)), birth)) in each {
            if let Some((_, share)) = self.prior.filter(|(prior, _)| *prior == number) {
                out.push((share, part.clone()));
                continue;
            }
            let sum: f64 = own.iter().sum();
            let squares: f64 = own.iter().map(|w| w * w).sum();
            let effective = if squares > 0.0 { sum * sum / squares } else { 0.0 };
            let share = (sum / n).max(0.5 * LEAST_SHARE);
            // Moments of few draws are noise: a covariance has about d² entries.
            let prior = (d * d) as f64 + 20.0;
            let proposal = if effective > prior {
                self.refit(own, sum, effective / (effective + prior), part, birth)
            } else {
                None
            };
            refitted |= proposal.is_some();
            out.push((share, proposal.unwrap_or_else(|| part.clone())));
        }
        refitted.then(|| Mixture::new(out))
    }

    /// A part at the moments of draws with these weights, drawn towards where and what it was.
    fn refit(
        &self,
        weights: &[f64],
        sum: f64,
        trust: f64,
        part: &Proposal,
        birth: &Matrix,
    ) -> Option<Proposal> {
        let d = self.coordinates.dim();
        let mut mean = vec![0.0; d];
        for (k, w) in weights.iter().enumerate() {
            mean.iter_mut().zip(self.point(k)).for_each(|(m, z)| *m += w / sum * z);
        }
        let mut spread = Matrix::zeros(d, d);
        for (k, w) in weights.iter().enumerate() {
            let offset: Vec<f64> = self.point(k).iter().zip(&mean).map(|(z, m)| z - m).collect();
            spread.add_outer(w / sum, &offset);
        }
        spread.scale(trust);
        spread.add_scaled(1.0 - trust, birth);
        let centre = mean.iter().zip(part.centre()).map(|(m, c)| trust * m + (1.0 - trust) * c);
        let factor = Cholesky::new(&spread)?;
        Some(Proposal::from_covariance(centre.collect(), &factor, T_SHARE, T_DF))
    }

    /// The heaviest draws become parts, with the curvature there.
    fn looked(&mut self, points: Vec<Vec<f64>>, expansions: Vec<Expansion>) -> Result<Wish> {
        let mixture = self.mixture.take().expect("there is a mixture");
        let mut parts: Vec<(f64, Proposal)> = mixture.parts().to_vec();
        let share = 0.4 / points.len() as f64;
        for (z, at) in points.into_iter().zip(expansions) {
            let theta = self.coordinates.theta(&z);
            let at = self.coordinates.expand(&z, &theta, &at, 1.0);
            let Some((_, factor)) = definite(&at.hessian) else { continue };
            self.births.push(factor.inverse());
            parts.push((share, Proposal::from_precision(z, &factor, T_SHARE, T_DF)));
        }
        self.mixture = Some(Mixture::new(parts));
        Ok(self.again())
    }

    /// The peaks with the share of the draws' weights that are nearest to each, the largest first.
    pub fn masses(&self) -> Vec<Peak> {
        let Some(weighted) = &self.weighted else { return Vec::new() };
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

/// The share of draws from the prior, where the data say so little that these are of use.
fn prior_share(gain: f64) -> f64 {
    if gain < 4.0 {
        0.1
    } else if gain < 8.0 {
        0.05
    } else {
        0.0
    }
}

fn standard_normal(d: usize) -> Proposal {
    let one = Cholesky::new(&Matrix::identity(d)).expect("the identity is positive definite");
    Proposal::from_precision(vec![0.0; d], &one, 0.0, T_DF)
}

/// Has a search climb a target that is at hand to its peaks. Returns the first points that it wants
/// weighed, with which [`weigh`] goes on.
pub fn climb(search: &mut Search, target: &dyn Target) -> Result<Arc<Matrix>> {
    let mut heard = None;
    loop {
        match search.next(heard)? {
            Wish::Expand(thetas) => heard = Some(expansions(&thetas, target)),
            Wish::Weigh(thetas) => return Ok(thetas),
            Wish::Done => unreachable!("a search ends with draws"),
        }
    }
}

/// Has a search that has climbed a target draw and weigh, from these points on to its end.
pub fn weigh(search: &mut Search, target: &dyn Target, mut thetas: Arc<Matrix>) -> Result<()> {
    loop {
        let mut out = vec![0.0; thetas.rows()];
        target.log_densities(&thetas, &mut out);
        let mut heard = Heard::Values(out);
        thetas = loop {
            match search.next(Some(heard))? {
                Wish::Expand(thetas) => heard = expansions(&thetas, target),
                Wish::Weigh(thetas) => break thetas,
                Wish::Done => return Ok(()),
            }
        };
    }
}

fn expansions(thetas: &[Vec<f64>], target: &dyn Target) -> Heard {
    Heard::Expansions(thetas.iter().map(|theta| target.expand(theta)).collect())
}
