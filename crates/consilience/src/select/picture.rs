//! All models as the centre sees them: how likely each is, by normal approximations, and where its coefficients are.

use super::centre::{Around, Centre, DataPeak};
use super::sites;
use super::weights::Weights;
use crate::math::student::log_upper_tail;
use crate::math::{dot, log_sum_exp, stream};
use crate::model::Prior;
use crate::space::{NormalModel, Space, StandIn, Subset};
use crate::{Error, Result};
use libm::{exp, log, log1p};
use rayon::prelude::*;
use std::collections::HashMap;

/// Places beside the centre at which the likelihood is expanded: the likeliest models' modes.
const PLACES: usize = 16;

/// Rounds of that, half a squared decrement at which a mode is near enough, and the shortest part of a step.
const STEPS: usize = 8;
const CLOSE: f64 = 0.02;
const SHORTEST: f64 = 1e-3;

/// How far out in a prior's tail, in standard deviations of the posterior, its centre is out of sight; and the share of
/// a model that may be there.
const FAR_OUT: f64 = 4.0;
const MISSED: f64 = 0.005;

/// Models that stand for all in the average that the centre moves to.
const AVERAGED: usize = 200;

/// The change of an inclusion probability at which the centre stays.
const SETTLED: f64 = 0.01;

/// At most how often the centre moves.
const MOVES: usize = 8;

/// Passes of expectation propagation after each move.
const PASSES: usize = 3;

/// All models at the centre.
pub(super) struct Picture<'a> {
    pub space: &'a Space,
    /// The centre, and further places once they are asked for.
    pub places: Vec<Around>,
    pub weights: Weights,
    pub sites: Vec<StandIn>,
    /// How often the centre moved.
    pub moves: usize,
    /// Per place c, A·c and c'A·c with A the curvature at the centre; none before there are further places.
    reach: Vec<(Vec<f64>, f64)>,
    /// Models that have a place of their own.
    own: HashMap<Subset, usize>,
    /// log w of models whose weight was made better.
    refined: HashMap<Subset, f64>,
    /// log Σ w, with what was made better.
    pub log_total: f64,
    /// Shares of the total, with what was made better.
    pub inclusion: Vec<f64>,
    pub sizes: Vec<f64>,
    /// Parameters of which prior and data want different things, and neither gives way.
    split: Vec<usize>,
}

impl<'a> Picture<'a> {
    /// Climbs to the model with all terms, and from there to the average of all models.
    pub(super) fn new(space: &'a Space, centre: &Centre, rounds: usize) -> Result<Picture<'a>> {
        let sites: Vec<StandIn> = centre.priors.iter().map(sites::of).collect();
        let (place, at) = centre.climb(&sites, rounds)?;
        Picture::around(space, centre, place, at, sites)
    }

    /// The same from a place.
    pub(super) fn from(&self, centre: &Centre, place: Vec<f64>) -> Result<Picture<'a>> {
        let at = centre.expand(std::slice::from_ref(&place))?.remove(0);
        if !at.value.is_finite() {
            return Err(Error::numeric("the likelihood vanishes at the average of all models"));
        }
        Picture::around(self.space, centre, place, at, self.sites.clone())
    }

    fn around(
        space: &'a Space,
        centre: &Centre,
        mut place: Vec<f64>,
        mut at: crate::target::Expansion,
        mut sites: Vec<StandIn>,
    ) -> Result<Picture<'a>> {
        let mut known: Option<Vec<f64>> = None;
        let mut moves = 0;
        // Chains have a stream of their own, whoever needs it how often.
        let options = &centre.setting.options;
        let mut rng = stream(options.seed, centre.setting.model.stream(), u64::MAX, "gibbs");
        let mut walkable = true;
        let mut weigh = |around: &Around, roughly: bool| -> Result<Weights> {
            if walkable && let Some(walked) = Weights::walked(space, &around.quadratic)? {
                return Ok(walked);
            }
            walkable = false;
            Weights::drawn(space, &around.quadratic, roughly, &mut rng)
        };
        loop {
            centre.refuse_lost(&at, &sites)?;
            let mut around = Around::new(space, place.clone(), &at, &sites);
            let mut weights = weigh(&around, true)?;
            let normal = centre.priors.iter().all(|p| matches!(p, Prior::Normal { .. }));
            for _ in 0..if normal { 0 } else { PASSES } {
                let averaged = average(space, &around, &weights);
                for (j, site) in sites.iter_mut().enumerate() {
                    *site = averaged.matched(j, site, &centre.priors[j]);
                }
                around = Around::new(space, place.clone(), &at, &sites);
                weights = weigh(&around, true)?;
            }
            let far = known.as_ref().map_or(1.0, |known| {
                let changes = known.iter().zip(&weights.inclusion).map(|(a, b)| (a - b).abs());
                changes.fold(0.0, f64::max)
            });
            if far < SETTLED || moves == MOVES || space.models() == 1.0 && moves > 0 {
                if !weights.is_exact() {
                    weights = weigh(&around, false)?;
                }
                let (inclusion, sizes) = (weights.inclusion.clone(), weights.sizes.clone());
                let log_total = weights.log_total;
                let averaged = average(space, &around, &weights);
                let is_split = |j: &usize| averaged.is_split(*j, &sites[*j], &centre.priors[*j]);
                let split = (0..sites.len()).filter(is_split).collect();
                let (places, refined) = (vec![around], HashMap::new());
                return Ok(Picture {
                    space,
                    places,
                    weights,
                    sites,
                    moves,
                    refined,
                    log_total,
                    inclusion,
                    sizes,
                    reach: Vec::new(),
                    own: HashMap::new(),
                    split,
                });
            }
            let next = average(space, &around, &weights).mean;
            let found = centre.expand(std::slice::from_ref(&next))?.remove(0);
            if !found.value.is_finite() {
                // Where the average of models has no likelihood, the last place has to do.
                moves = MOVES;
                known = Some(weights.inclusion.clone());
                continue;
            }
            known = Some(weights.inclusion.clone());
            (place, at) = (next, found);
            moves += 1;
        }
    }

    /// Expands the likelihood at the likeliest models' modes, and makes the weights of the heaviest models better
    /// by the place that is nearest to each. Where a mode turns out to be elsewhere, the model goes on climbing.
    pub(super) fn refine(&mut self, centre: &Centre) -> Result<()> {
        // Per model, how high its own place is, and which part of a step is tried next.
        let mut heights: HashMap<Subset, (f64, f64)> = HashMap::new();
        for _ in 0..STEPS {
            let mut asked: Vec<(Subset, Vec<f64>)> = Vec::new();
            for (model, _) in self.heaviest().into_iter().take(PLACES) {
                let Some((around, normal)) = self.normal(&model) else { continue };
                let mode = around.theta(&normal.coordinates, &normal.mean);
                match (self.own.get(&model), heights.get(&model)) {
                    (Some(&place), Some(&(_, part))) => {
                        let from = &self.places[place].place;
                        let step: Vec<f64> = mode.iter().zip(from).map(|(m, f)| m - f).collect();
                        let curvature = &self.places[place].quadratic.precision;
                        if 0.5 * curvature.quadratic(&step) > CLOSE && part > SHORTEST {
                            let next = from.iter().zip(&step).map(|(f, s)| f + part * s).collect();
                            asked.push((model, next));
                        }
                    }
                    _ => asked.push((model, mode)),
                }
            }
            if asked.is_empty() {
                break;
            }
            let points: Vec<Vec<f64>> = asked.iter().map(|(_, point)| point.clone()).collect();
            let found = centre.expand(&points)?;
            for ((model, point), at) in asked.into_iter().zip(found) {
                let density = |j: usize| self.sites[j].log_density(point[j]);
                let own = self.space.coordinates(&model);
                let height = at.value + own.iter().map(|&j| density(j)).sum::<f64>();
                match heights.get_mut(&model) {
                    Some((known, part)) if height.is_nan() || height < *known => *part *= 0.25,
                    _ if !height.is_finite() => {}
                    _ => {
                        heights.insert(model, (height, 1.0));
                        self.own.insert(model, self.places.len());
                        self.places.push(Around::new(self.space, point, &at, &self.sites));
                    }
                }
            }
            self.weigh_anew();
        }
        Ok(())
    }

    /// Weighs the heaviest models by the places that there are.
    fn weigh_anew(&mut self) {
        let curvature = &self.places[0].quadratic.precision;
        let reach = |place: &Around| {
            let curved = curvature.times(&place.place);
            let own = dot(&curved, &place.place);
            (curved, own)
        };
        self.reach = self.places.iter().map(reach).collect();
        // What chains came by is a sample, whose weights nobody can change.
        if !self.weights.is_exact() {
            return;
        }
        let better: Vec<(Subset, f64, f64)> = self
            .weights
            .top
            .par_iter()
            .map(|(model, old)| {
                let new = self
                    .normal(model)
                    .map_or(*old, |(_, normal)| normal.log_z + self.space.log_prior(model.len()));
                (*model, *old, new)
            })
            .collect();
        self.take_in(&better);
    }

    /// Puts these new weights in the place of the old ones, and makes all sums anew.
    fn take_in(&mut self, better: &[(Subset, f64, f64)]) {
        let old_total = self.weights.log_total;
        let olds: Vec<f64> = better.iter().map(|b| exp(b.1 - old_total)).collect();
        // Where the list has all models, nothing is left but rounding errors, which old weights far too large would blow
        // up.
        let all = better.len() as f64 >= self.weights.models;
        let rest = if all { 0.0 } else { (1.0 - olds.iter().sum::<f64>()).max(0.0) };
        let news: Vec<f64> = better.iter().map(|b| b.2).collect();
        self.log_total = log_sum_exp(&[log_sum_exp(&news), old_total + log(rest)]);
        let shift = if rest > 0.0 { exp(old_total - self.log_total) } else { 0.0 };
        let news: Vec<f64> = news.iter().map(|new| exp(new - self.log_total)).collect();
        let share = |old: f64, has: &dyn Fn(&Subset) -> bool| {
            let inside = || (0..better.len()).filter(|&k| has(&better[k].0));
            let left = old - inside().map(|k| olds[k]).sum::<f64>();
            left.max(0.0) * shift + inside().map(|k| news[k]).sum::<f64>()
        };
        self.inclusion = (0..self.space.terms.len())
            .map(|t| share(self.weights.inclusion[t], &|model| model.contains(t)))
            .collect();
        self.sizes = (0..=self.space.terms.len())
            .map(|k| share(self.weights.sizes[k], &|model| model.len() == k))
            .collect();
        self.refined = better.iter().map(|(model, _, new)| (*model, *new)).collect();
    }

    /// The first parameter in which the posterior has several peaks, of which draws come from one only.
    pub(super) fn second_peak(&self, centre: &Centre, rounds: usize) -> Result<Option<usize>> {
        match self.split.first().copied().or_else(|| self.missed_spike(centre)) {
            None => self.missed_peak(centre, rounds),
            seen => Ok(seen),
        }
    }

    /// The first parameter of which a heavy-tailed prior has a second peak that the picture does not see: draws are far
    /// out in its tail, and next to its centre is what the model without the term holds.
    fn missed_spike(&self, centre: &Centre) -> Option<usize> {
        let rows = centre.rows();
        self.heaviest().iter().take(PLACES).find_map(|(model, _)| {
            let (around, normal) = self.normal(model)?;
            let theta = around.theta(&normal.coordinates, &normal.mean);
            let variances = normal.factor.inverse_diagonal();
            let spike = |(&j, variance): (&usize, f64)| {
                let Prior::StudentT { df, mean, scale } = centre.priors[j] else { return None };
                let term = model.iter().find(|&t| self.space.terms[t].columns == [j])?;
                let away = (theta[j] - mean).abs();
                if away < FAR_OUT * variance.sqrt() {
                    return None;
                }
                // Within this the likelihood is what it is without the term.
                let reach = variance / away;
                let inside = log1p(-2.0 * exp(log_upper_tail(df, reach / scale)));
                let (_, without) = self.normal(&model.without(term))?;
                // A free standard deviation grows with what is left unexplained, so that the likelihood falls less
                // than the picture says: by n/2·log(1 + d²/n) and not by d²/2.
                let squared = away * away / variance;
                let less = 0.5 * (squared - rows * log1p(squared / rows));
                (without.log_z + less + inside > normal.log_z + log(MISSED)).then_some(j)
            };
            normal.coordinates.iter().zip(variances).find_map(spike)
        })
    }

    /// The first parameter in which the posterior has a peak of weight that the picture does not see: one next to
    /// where the likelihood alone has its own.
    fn missed_peak(&self, centre: &Centre, rounds: usize) -> Result<Option<usize>> {
        let Some(DataPeak { place, sds, log_mass }) = centre.data_peak(rounds)? else {
            return Ok(None);
        };
        let all = (0..self.space.terms.len()).fold(Subset::EMPTY, Subset::with);
        let Some((around, normal)) = self.normal(&all) else { return Ok(None) };
        let theta = around.theta(&normal.coordinates, &normal.mean);
        let away = |j: &usize| (place[*j] - theta[*j]).abs() > FAR_OUT * sds[*j];
        let heavy = |j: &usize| matches!(centre.priors[*j], Prior::StudentT { .. });
        let weighty = log_mass > normal.log_z + log(MISSED);
        Ok((0..place.len()).filter(|_| weighty).find(|j| heavy(j) && away(j)))
    }

    /// log w of a model, given what the walk said of it.
    pub(super) fn log_weight(&self, model: &Subset, walked: f64) -> f64 {
        self.refined.get(model).copied().unwrap_or(walked)
    }

    /// The heaviest models and log w of each, the first first.
    pub(super) fn heaviest(&self) -> Vec<(Subset, f64)> {
        let mut all: Vec<(Subset, f64)> =
            self.weights.top.iter().map(|(m, w)| (*m, self.log_weight(m, *w))).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        all
    }

    /// A model's normal approximation at the nearest place.
    pub(super) fn normal(&self, model: &Subset) -> Option<(&Around, NormalModel)> {
        if let Some(&own) = self.own.get(model) {
            let place = &self.places[own];
            return place.quadratic.normal(self.space, model).map(|normal| (place, normal));
        }
        let main = &self.places[0];
        let first = main.quadratic.normal(self.space, model)?;
        let theta = main.theta(&first.coordinates, &first.mean);
        // The squared distance by the curvature at the centre, without what all places have in common.
        let far = |(curved, own): &(Vec<f64>, f64)| own - 2.0 * dot(curved, &theta);
        let nearest = self
            .reach
            .iter()
            .map(far)
            .enumerate()
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .map_or(0, |(k, _)| k);
        if nearest == 0 {
            return Some((main, first));
        }
        let place = &self.places[nearest];
        place.quadratic.normal(self.space, model).map(|normal| (place, normal))
    }
}

/// What all models together say about every parameter.
struct Averaged {
    mean: Vec<f64>,
    /// Over the models that have it: its marginal precision, and that times its mean; `None` where no model has
    /// it.
    marginals: Vec<Option<(f64, f64)>>,
}

impl Averaged {
    /// Whether a prior and what everything else says make a density with two peaks.
    fn is_split(&self, j: usize, site: &StandIn, prior: &Prior) -> bool {
        self.marginals[j].is_some_and(|(precision, shift)| {
            let (precision, shift) =
                (precision - site.precision, shift - site.precision * site.mean);
            precision > 0.0 && sites::is_split(prior, shift / precision, 1.0 / precision)
        })
    }

    fn matched(&self, j: usize, site: &StandIn, prior: &Prior) -> StandIn {
        match self.marginals[j] {
            Some((precision, shift)) => {
                // Without what its own prior says.
                let (precision, shift) =
                    (precision - site.precision, shift - site.precision * site.mean);
                sites::matched(site, prior, shift / precision, 1.0 / precision)
            }
            None => *site,
        }
    }
}

fn average(space: &Space, around: &Around, weights: &Weights) -> Averaged {
    let positions: Vec<f64> = (0..AVERAGED).map(|k| (k as f64 + 0.5) / AVERAGED as f64).collect();
    let (drawn, _) = weights.draw(space, &around.quadratic, &positions, &[]);
    let mut counts: Vec<(Subset, f64)> = Vec::new();
    for (model, _) in drawn {
        match counts.iter_mut().find(|(known, _)| *known == model) {
            Some((_, count)) => *count += 1.0,
            None => counts.push((model, 1.0)),
        }
    }
    let d = around.origin.len();
    let (mut mean, mut total) = (vec![0.0; d], 0.0);
    let mut marginals: Vec<Option<(f64, f64, f64)>> = vec![None; d];
    let q = &around.quadratic;
    for (model, count) in counts {
        let Some(normal) = q.normal(space, &model) else { continue };
        let theta = around.theta(&normal.coordinates, &normal.mean);
        mean.iter_mut().zip(&theta).for_each(|(sum, x)| *sum += count * x);
        total += count;
        let variances = normal.factor.inverse_diagonal();
        for (&j, variance) in normal.coordinates.iter().zip(variances) {
            let known = marginals[j].get_or_insert((0.0, 0.0, 0.0));
            *known = (
                known.0 + count,
                known.1 + count / variance,
                known.2 + count * theta[j] / variance,
            );
        }
    }
    mean.iter_mut().for_each(|m| *m /= f64::max(total, 1.0));
    let marginals = marginals
        .into_iter()
        .map(|found| found.map(|(count, precision, shift)| (precision / count, shift / count)))
        .collect();
    Averaged { mean, marginals }
}
