//! Draws from the mixture, and a better mixture where their weights are poor.

use super::super::ascent::definite;
use super::super::importance::{T_DF, T_SHARE};
use super::{LEAST_SHARE, MixturePart, PointSet, Search, SearchStage, Wish};
use crate::Result;
use crate::estimate::{Importance, Weighted};
use crate::math::proposal::Draws;
use crate::math::rule::{Drawing, PointSource};
use crate::math::{Cholesky, Matrix, Mixture, Proposal, Rule, Sobol, log_sum_exp};
use crate::model::coordinates::log_standard_normal;
use crate::target::Expansion;
use libm::exp;
use rand::RngExt;
use std::sync::Arc;

/// The share of effective draws beyond which a proposal is left as it is.
const WELL_PLACED: f64 = 0.75;
/// Draws of the first round of weights, and of it where the mixture has several parts.
const PILOT: usize = 1000;
/// The share of the error that fewer may leave: their error bar is not known well, so that it has to leave room.
const ROOM: f64 = 1.0 / 3.0;
const WIDE_PILOT: usize = 2000;
/// The same where draws from a first guess were poor: few more rounds should follow.
const HARD_PILOT: usize = 4000;
/// How often a mixture may be made anew.
const ADAPTATIONS: usize = 8;
/// The part of the weights' squares beyond which one draw alone has too much to say about the error.
const LONELY: f64 = 0.05;
/// The same where rounds are dear: the error bar of mirrored draws allows for how few draws it rests on.
const LONELY_AND_HARD: f64 = 0.2;
/// The share of effective draws below which a mixture is poor.
const POOR: f64 = 0.25;
/// Effective draws that are enough to tell a scale by.
const ENOUGH: f64 = 50.0;
/// The most dimensions in which a part around a single draw is worth having: in many, no draw is in the middle
/// of anything.
const FEW: usize = 12;
/// Weights this many times the mean are looked at, and at most so many of them at a time.
const HEAVY: f64 = 8.0;
const MOST_HEAVY: usize = 5;

impl Search {
    pub(super) fn pilot(&self) -> usize {
        let pilot = match (self.parts.len(), self.settings.few) {
            _ if self.is_hard => HARD_PILOT,
            (1, Some(few)) if self.sobol.is_none() => few,
            (1, _) => PILOT,
            _ => WIDE_PILOT,
        };
        self.settings.draws.min(pilot)
    }

    pub(super) fn draw(&mut self, count: usize) -> Wish {
        let (draws, set) = self.point_set(count);
        self.weigh_rounds += 1;
        self.stage = SearchStage::Draw(draws, set.thetas.clone());
        Wish::Weigh(set)
    }

    /// Draws from the mixture, in z, and how to make them elsewhere.
    pub(super) fn point_set(&mut self, count: usize) -> (Draws, PointSet) {
        let source = match &self.sobol {
            Some(sobol) => PointSource::Even(sobol.clone()),
            None if self.settings.mirrored && self.settings.single => PointSource::Mirrored,
            None => PointSource::Plain,
        };
        let drawing = Drawing { mixture: self.mixture(), count, seed: self.rng.random(), source };
        let draws = drawing.draws();
        if let Some(sobol) = &mut self.sobol {
            sobol.skip(draws.thetas.rows());
        }
        let thetas = Arc::new(self.coordinates.thetas(&draws.thetas));
        (draws, PointSet { thetas, rule: Some(Arc::new(Rule::Draws(drawing))) })
    }

    /// Takes log f of the draws; draws more, makes the mixture anew, or ends.
    pub(super) fn weighed(
        &mut self,
        draws: Draws,
        thetas: Arc<Matrix>,
        log_f: &[f64],
    ) -> Result<Wish> {
        self.take_in(draws, thetas, log_f)?;
        self.judged()
    }

    /// Puts draws to those that are there.
    pub(super) fn take_in(
        &mut self,
        draws: Draws,
        thetas: Arc<Matrix>,
        log_f: &[f64],
    ) -> Result<()> {
        self.points.extend(draws.thetas.data());
        let new = Weighted::new(self.in_theta(draws, thetas), log_f)?;
        match &mut self.weighted {
            Some(weighted) => weighted.extend(new),
            None => self.weighted = Some(new),
        }
        Ok(())
    }

    /// What to do with the draws at hand.
    pub(super) fn judged(&mut self) -> Result<Wish> {
        let weighted = self.weighted.as_ref().expect("there are draws");
        let (seen, count) = (weighted.summarise(), weighted.len());
        let (target, most) = (self.settings.se_target, self.settings.draws);
        let se = seen.log_z.se.unwrap_or(0.0);
        // The error falls with the root of the number of draws; a tenth more to be sure.
        let wanted = (1.1 * count as f64 * (se / target).powi(2)).ceil().min(most as f64) as usize;
        let least = if se > ROOM * target { PILOT.min(most) } else { count };
        let is_small = count < least;
        let wanted = wanted.max(least);
        // A posterior that is skewed is not where its mode is: better draws are worth more than more, unless rounds are
        // dear and a few more will do.
        let will_do = self.is_hard && wanted < most;
        let misplaced = self.adaptations == 0
            && !is_small
            && se > target
            && seen.ess < WELL_PLACED * count as f64
            && !will_do;
        let most_lonely = if self.is_hard { LONELY_AND_HARD } else { LONELY };
        let lonely = weighted.lonely() > most_lonely && self.adaptations < ADAPTATIONS / 2;
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
        if self.rounds_left() > 0 && self.changed() && !self.settled {
            // Draws that were kept because they look good look better than they are.
            self.settled = true;
            self.forget();
            return Ok(self.draw(wanted.max(count).min(most)));
        }
        if self.rounds_left() > 0 && (se > target || is_small) && wanted > count {
            return Ok(self.draw(wanted - count));
        }
        Ok(Wish::Done)
    }

    /// Whether the mixture is another one than at first.
    pub(super) fn changed(&self) -> bool {
        self.adaptations > 0 || self.ridge.is_some()
    }

    /// Gives up the draws at hand.
    pub(super) fn forget(&mut self) {
        self.weighted = None;
        self.points.clear();
        self.sobol = self.sobol.as_ref().map(|_| Sobol::new(&mut self.rng));
    }

    /// Draws with their density in θ.
    fn in_theta(&self, draws: Draws, thetas: Arc<Matrix>) -> Draws {
        let log_density = (0..thetas.rows())
            .map(|k| {
                // log |dz/dθ| is what the standard normal lacks to the base's density.
                let normal = log_standard_normal(draws.thetas.row(k));
                -self.coordinates.log_rest(thetas.row(k), normal - draws.log_density[k])
            })
            .collect();
        let thetas = Arc::unwrap_or_clone(thetas);
        Draws { thetas, log_density, kinship: draws.kinship, controls: draws.controls }
    }

    pub(super) fn point(&self, k: usize) -> &[f64] {
        let d = self.coordinates.dim();
        &self.points[k * d..(k + 1) * d]
    }

    /// Moves the mixture's parts to where the weights say, and looks at the heaviest draws.
    /// `None` if there is nothing to be learned.
    pub(super) fn adapt(&mut self, seen: &Importance) -> Option<Wish> {
        self.adaptations += 1;
        let weighted = self.weighted.as_ref().expect("there are draws");
        let mixture = self.mixture();
        let logs = &weighted.log_weights;
        let relative: Vec<f64> = logs.iter().map(|w| exp(w - seen.log_z.value)).collect();
        let few = self.coordinates.dim() <= FEW || !seen.is_reliable();
        let heavy = if few { self.heavy(&relative, &mixture) } else { Vec::new() };
        let poor = seen.ess < 0.5 * relative.len() as f64;
        let moved = self.moved(&relative, &mixture, poor);
        let still = moved.is_none();
        if let Some(moved) = moved {
            self.parts = moved;
        }
        if heavy.is_empty() || self.rounds_left() < 2 {
            return (!still).then(|| self.again());
        }
        let thetas = heavy.iter().map(|z| self.coordinates.theta(z)).collect();
        self.newton_rounds += 1;
        self.stage = SearchStage::Look(heavy);
        Some(Wish::Expand(thetas))
    }

    /// Draws anew from the mixture as it is now.
    pub(super) fn again(&mut self) -> Wish {
        let count = self.draws();
        self.forget();
        self.draw((2 * count).min(self.settings.draws))
    }

    /// Points whose weights say that the mixture lacks something there: far above the mean, and apart.
    pub(super) fn heavy(&self, relative: &[f64], mixture: &Mixture) -> Vec<Vec<f64>> {
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

    /// The parts with shares and moments that the weighted draws give them; `None` if nothing changes.
    pub(super) fn moved(
        &self,
        relative: &[f64],
        mixture: &Mixture,
        poor: bool,
    ) -> Option<Vec<MixturePart>> {
        let n = relative.len() as f64;
        let mut owned = vec![Vec::with_capacity(relative.len()); self.parts.len()];
        for (k, weight) in relative.iter().enumerate() {
            let logs = mixture.log_parts(self.point(k));
            let total = log_sum_exp(&logs);
            for (own, log_part) in owned.iter_mut().zip(&logs) {
                own.push(weight * exp(log_part - total));
            }
        }
        // Moments of few draws are noise: a covariance has about d² entries.
        let prior = self.coordinates.dim().pow(2) as f64 + 20.0;
        let mut changed = self.parts.len() > 1;
        let mut out = self.parts.clone();
        for (part, own) in out.iter_mut().zip(&owned).filter(|(part, _)| !part.stays) {
            let sum: f64 = own.iter().sum();
            let squares: f64 = own.iter().map(|w| w * w).sum();
            let effective = if squares > 0.0 { sum * sum / squares } else { 0.0 };
            part.share = (sum / n).max(0.5 * LEAST_SHARE);
            let trust = effective / (effective + prior);
            // One skewed peak is better known by its sides than by a covariance, which has none.
            let skewed = self.is_hard && part.proposal.has_sides();
            let refit = if effective > prior && !skewed {
                self.refit(own, sum, trust, part)
            } else if effective > ENOUGH && (poor || skewed) {
                // Too few for a covariance, enough for a scale to each side of every axis.
                let points = own.iter().enumerate().map(|(k, &w)| (self.point(k), w));
                Some(part.proposal.with_sides_of(points, effective))
            } else {
                None
            };
            if let Some(refit) = refit {
                part.proposal = refit;
                changed = true;
            }
        }
        changed.then_some(out)
    }

    /// A part at the moments of draws with these weights, drawn towards where and what it was.
    fn refit(&self, weights: &[f64], sum: f64, trust: f64, part: &MixturePart) -> Option<Proposal> {
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
        spread.add_scaled(1.0 - trust, &part.birth);
        let centre =
            mean.iter().zip(part.proposal.centre()).map(|(m, c)| trust * m + (1.0 - trust) * c);
        let factor = Cholesky::new(&spread)?;
        Some(Proposal::from_covariance(centre.collect(), &factor, T_SHARE, T_DF))
    }

    /// The heaviest draws become parts, with the curvature there.
    pub(super) fn looked(
        &mut self,
        points: Vec<Vec<f64>>,
        expansions: Vec<Expansion>,
    ) -> Result<Wish> {
        let share = 0.4 / points.len() as f64;
        for (z, at) in points.into_iter().zip(expansions) {
            let theta = self.coordinates.theta(&z);
            let at = self.coordinates.expand(&z, &theta, &at, 1.0);
            let Some((_, factor)) = definite(&at.hessian) else { continue };
            let proposal = Proposal::from_precision(z, &factor, T_SHARE, T_DF);
            self.parts.push(MixturePart::new(share, proposal));
        }
        Ok(self.again())
    }
}
