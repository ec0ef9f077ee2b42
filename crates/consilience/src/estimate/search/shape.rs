//! The first mixture: a part for every peak, shaped by how the density falls from it, and parts for passes
//! between peaks.

use super::super::ascent::definite;
use super::super::importance::{T_DF, T_SHARE, sides};
use super::{
    KEPT_BACK, LEAST_SHARE, MOST_PEAKS, MixturePart, PointSet, Search, SearchStage, Wish, laplace,
};
use crate::estimate::Mode;
use crate::math::rule::number_of_probes;
use crate::math::{Cholesky, Matrix, Proposal, Rule, dot, log_sum_exp};
use crate::model::coordinates::log_standard_normal;
use crate::target::Expansion;
use crate::{Error, Result};
use libm::exp;
use std::sync::Arc;

/// How many of the largest peaks are joined by lines, and where on these is looked.
const MOST_JOINED: usize = 4;
const PASSES: [f64; 5] = [1.0 / 12.0, 0.25, 0.5, 0.75, 11.0 / 12.0];

/// Nats below the highest at which a peak no longer counts.
const NEGLIGIBLE: f64 = 20.0;

/// Nats beyond which the last digits of a log density are no small part of one.
const BEYOND: f64 = 1e14;

impl Search {
    /// The climbs are over: every peak that counts gets its probes.
    pub(super) fn begin_probing(&mut self) -> Result<Wish> {
        let best = self.best().map(|m| m.value);
        let near = |m: &Mode| best.is_none_or(|best| m.value > best - 10.0);
        let more: Vec<Mode> =
            std::mem::take(&mut self.unfinished).into_iter().filter(near).collect();
        if self.peaks.is_empty() {
            let most = more.into_iter().max_by(|a, b| a.value.total_cmp(&b.value));
            let Some(most) = most else {
                return Err(self
                    .lost
                    .take()
                    .unwrap_or_else(|| Error::numeric("no peak was found")));
            };
            self.peaks.push(most);
        } else {
            for mode in more {
                if self.best().is_some_and(|best| mode.value > best.value + 1.0) {
                    self.peaks.push(mode);
                }
            }
        }
        self.peaks.retain(|peak| laplace(peak).abs() < BEYOND);
        if self.peaks.is_empty() {
            return Err(Error::numeric(
                "the log density at its peak is so far from 0, or the peak so narrow, that a nat is lost in rounding; write the columns in other units, or as scale(x)",
            ));
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
        self.stage = SearchStage::Pass(between);
        Ok(Wish::Expand(thetas))
    }

    /// Points between the largest peaks, on straight lines in θ: two columns that say the same leave a
    /// ridge there.
    pub(super) fn between(&self) -> Vec<Vec<f64>> {
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
    pub(super) fn passed(&mut self, points: Vec<Vec<f64>>, expansions: Vec<Expansion>) -> Wish {
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

    pub(super) fn begin_looking_around(&mut self) -> Wish {
        let around = |m: &Mode| Proposal::from_precision(m.theta.clone(), &m.factor, T_SHARE, T_DF);
        let around: Vec<Proposal> = self.peaks.iter().map(around).collect();
        if self.rounds_left() <= KEPT_BACK {
            self.shape(around);
            return self.draw(self.pilot());
        }
        let (points, set) = self.probes(around.clone());
        self.weigh_rounds += 1;
        self.stage = SearchStage::Probe(around, points);
        Wish::Weigh(set)
    }

    /// Points around proposals, in z, and how to make them elsewhere.
    pub(super) fn probes(&self, around: Vec<Proposal>) -> (Matrix, PointSet) {
        let rule = Rule::Probes(around);
        let points = rule.points();
        let thetas = Arc::new(self.coordinates.thetas(&points));
        (points, PointSet { thetas, rule: Some(Arc::new(rule)) })
    }

    /// Log densities in z, by log f of points in z.
    pub(super) fn heights(&self, points: &Matrix, log_f: &[f64]) -> Vec<f64> {
        let height = |(k, log_f): (usize, &f64)| {
            let z = points.row(k);
            self.coordinates.log_density(z, &self.coordinates.theta(z), *log_f)
        };
        log_f.iter().enumerate().map(height).collect()
    }

    pub(super) fn probed(
        &mut self,
        around: Vec<Proposal>,
        points: &Matrix,
        log_f: &[f64],
    ) -> Result<Wish> {
        let heights = self.heights(points, log_f);
        let each = number_of_probes(self.coordinates.dim());
        let shaped = around.into_iter().zip(heights.chunks(each));
        self.shape(shaped.map(|(p, heights)| p.with_sides(sides(heights))).collect());
        Ok(self.draw(self.pilot()))
    }

    /// Makes the first mixture of a proposal per peak.
    pub(super) fn shape(&mut self, proposals: Vec<Proposal>) {
        let masses: Vec<f64> =
            self.peaks.iter().zip(&proposals).map(|(m, p)| m.value + p.log_volume()).collect();
        let total = log_sum_exp(&masses);
        // How many nats the data add to the prior at the best point: the most that a weight can be over
        // the mean one if all draws are from the prior.
        let rest = |m: &Mode| m.value - log_standard_normal(&m.theta);
        let gain = self.peaks.iter().map(rest).fold(f64::NEG_INFINITY, f64::max) - total;
        let share = |log_mass: f64| exp(log_mass - total).clamp(LEAST_SHARE, 1.0);
        let peaks = proposals.into_iter().zip(&masses).map(|(p, &m)| MixturePart::new(share(m), p));
        let passes = std::mem::take(&mut self.passes).into_iter();
        let passes = passes.map(|(mass, part)| MixturePart::new(0.5 * share(mass), part));
        self.parts = peaks.chain(passes).collect();
        let prior = prior_share(gain);
        if prior > 0.0 && self.settings.from_prior {
            let sum: f64 = self.parts.iter().map(|part| part.share).sum();
            let share = sum * prior / (1.0 - prior);
            let part = MixturePart::new(share, standard_normal(self.coordinates.dim()));
            self.parts.push(MixturePart { stays: true, ..part });
        }
    }
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
