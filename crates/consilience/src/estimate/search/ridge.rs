//! Parts along the ridge that a noise parameter makes: where data are few, the spread of the others goes with
//! it, like a funnel, which no single part fits.

use super::super::ascent::{Climbed, Climber, definite};
use super::super::importance::{T_DF, T_SHARE};
use super::{MixturePart, Search, SearchStage, Wish};
use crate::Result;
use crate::estimate::Importance;
use crate::math::{Cholesky, Proposal};
use crate::target::Expansion;
use libm::exp;

/// The least width of a part along the ridge, in standard deviations of the prior.
const LEAST_WIDTH: f64 = 1e-6;

/// Nats below the highest at which a part of a ridge does not count.
const NEGLIGIBLE: f64 = 12.0;

/// Where along a ridge parts are put, in standard deviations.
const RIDGE: [f64; 7] = [-3.6, -2.4, -1.2, 0.0, 1.2, 2.4, 3.6];

impl Search {
    /// Looks for the ridge that the other coordinates' peak makes when the noise's coordinate `j` moves: where
    /// data are few, their spread goes with the noise, like a funnel, which no single part fits.
    pub(super) fn begin_ridge(&mut self, j: usize, seen: &Importance) -> Wish {
        let weighted = self.weighted.as_ref().expect("there are draws");
        let weight = |k: usize| exp(weighted.log_weights[k] - seen.log_z.value);
        let total: f64 = (0..weighted.len()).map(weight).sum();
        let moment = |f: &dyn Fn(f64) -> f64| {
            (0..weighted.len()).map(|k| weight(k) * f(self.point(k)[j])).sum::<f64>() / total
        };
        let mean = moment(&|z| z);
        let sd = moment(&|z| (z - mean) * (z - mean)).sqrt().max(LEAST_WIDTH);
        let own = RIDGE.iter().map(|t| mean + sd * t);
        let mut places: Vec<f64> = own.chain(RIDGE.map(|t| t * 0.9)).collect();
        places.sort_by(f64::total_cmp);
        let moves: Vec<bool> = self.only(j).into_iter().map(|own| !own).collect();
        let start = |place: &f64| {
            let nearest = self
                .peaks
                .iter()
                .min_by(|a, b| (a.theta[j] - place).abs().total_cmp(&(b.theta[j] - place).abs()));
            let mut z = nearest.map_or_else(|| vec![0.0; moves.len()], |m| m.theta.clone());
            z[j] = *place;
            Climber::along(z, moves.clone())
        };
        let climbers = places.iter().map(start).collect();
        self.ridge = Some(Vec::new());
        self.climb_ridge(climbers)
    }

    pub(super) fn climb_ridge(&mut self, climbers: Vec<Climber>) -> Wish {
        let wish = self.climb(climbers);
        if let SearchStage::Climb(climbers) = std::mem::replace(&mut self.stage, SearchStage::End) {
            self.stage = SearchStage::Ridge(climbers);
        }
        wish
    }

    pub(super) fn ridge(
        &mut self,
        climbers: Vec<Climber>,
        expansions: Vec<Expansion>,
    ) -> Result<Wish> {
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
        let mut parts: Vec<MixturePart> = Vec::new();
        for (k, (mass, part)) in found.into_iter().enumerate() {
            if mass < most - NEGLIGIBLE {
                continue;
            }
            // As wide as the way to its neighbours.
            let (left, right) = (k.saturating_sub(1), (k + 1).min(places.len() - 1));
            let width =
                ((places[right] - places[left]) / (right - left).max(1) as f64).max(LEAST_WIDTH);
            let mut covariance = part.covariance();
            covariance[(j, j)] = width * width;
            let Some(factor) = Cholesky::new(&covariance) else { continue };
            let centre = part.centre().to_vec();
            let proposal = Proposal::from_covariance(centre, &factor, T_SHARE, T_DF);
            parts.push(MixturePart::new(exp(mass - most) * width, proposal));
        }
        let sum: f64 = parts.iter().map(|part| part.share).sum();
        let floor = 0.2 / parts.len().max(1) as f64;
        parts.iter_mut().for_each(|part| part.share = part.share / sum + floor);
        let old: f64 = self.parts.iter().map(|part| part.share).sum();
        self.parts.iter_mut().for_each(|part| part.share *= 0.5 / old);
        self.parts.extend(parts);
        Ok(self.again())
    }
}
