//! Draws of model and coefficients together, and what they say about every model.
//!
//! A model γ is drawn from q' = 0.6·q + 0.1·√q + 0.1 on the heaviest ones alone + 0.2 on the rarer side of every
//! term, q being the centre's picture of how likely models are; then a pair θ = m ± s of its coefficients from g, a normal density of the picture with a
//! tenth of Student's t. With f the likelihood times the priors and Z̃ the picture's total,
//!
//! ```text
//! v = f(θ, γ) / (Z̃·q'(γ)·g(θ|γ)),   averaged over the pair: has the mean Z/Z̃
//! x = q(γ)/q'(γ) · N(θ|γ)/g(θ|γ):   has the mean 1, and is v if the picture is right
//! ```
//!
//! so that what is known of q is corrected by draws, and only the picture's error has Monte Carlo error:
//! `E[f] = p_f + mean((v − c·x)(f − p_f))/mean(v)` with p_f the expectation under q and c = mean(v)/mean(x).

use super::centre::{Around, Centre};
use super::picture::Picture;
use crate::estimate::Estimate;
use crate::estimate::pareto::tail_shape;
use crate::math::ziggurat::{chi_square, normal};
use crate::math::{LOG_2PI, Matrix, Stream};
use crate::space::{Normal, Subset};
use crate::{Error, Result};
use libm::{exp, lgamma, log, log1p};
use rand::RngExt;
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};

/// The smaller parts of q'.
const BY_ROOT: f64 = 0.1;
const BY_LIST: f64 = 0.1;
const BY_SIDES: f64 = 0.2;

/// Terms of which the rarer side is rarer than this are sure enough.
const SURE: f64 = 1e-4;

/// How many of the heaviest models the last part is about.
const LISTED: usize = 20;

/// Degrees of freedom, and the share, of the heavy-tailed part of g; every tenth pair is from it.
const DF: f64 = 6.0;
const EVERY: usize = 10;

/// The weight, in pairs, of what all indicators have in common in the variance of one; and how much wider an
/// error bar is made, for what the first moments of few draws miss.
const SHRINK: f64 = 10.0;
const WIDER: f64 = 1.1;

/// How much wider where an error bar rests on k pairs alone, times 1/k: as Student's t with so few degrees of
/// freedom is wider than a normal.
const FEW: f64 = 1.5;

/// A pair of draws.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub model: Subset,
    /// Half of v from either draw.
    pub sides: [f64; 2],
    /// The control variate.
    pub x: f64,
    /// The coefficients of either draw, in the order of the model's coordinates.
    pub thetas: [Vec<f64>; 2],
}

impl Pair {
    pub(super) fn v(&self) -> f64 {
        self.sides[0] + self.sides[1]
    }
}

/// A model that is about to be drawn from.
struct Drawn<'p> {
    model: Subset,
    log_proposed: f64,
    log_weight: f64,
    around: &'p Around,
    normal: Normal,
}

/// Draws this many pairs and has the shards weigh them: one round.
pub(super) fn draw(
    picture: &Picture,
    centre: &Centre,
    pairs: usize,
    rng: &mut Stream,
) -> Result<Vec<Pair>> {
    let drawn = models(picture, pairs, rng)?;
    let d = centre.priors.len();
    let mut thetas = Vec::with_capacity(2 * pairs * d);
    let mut log_g = Vec::with_capacity(pairs);
    let mut log_h = Vec::with_capacity(pairs);
    for (i, at) in drawn.iter().enumerate() {
        let k = at.normal.mean.len();
        let mut z: Vec<f64> = (0..k).map(|_| normal(rng)).collect();
        if i % EVERY == EVERY - 1 {
            let stretch = (DF / chi_square(DF, rng)).sqrt();
            z.iter_mut().for_each(|z| *z *= stretch);
        }
        let square: f64 = z.iter().map(|z| z * z).sum();
        let step = at.normal.factor.solve_upper(&z);
        for sign in [1.0, -1.0] {
            let own: Vec<f64> =
                at.normal.mean.iter().zip(&step).map(|(m, s)| m + sign * s).collect();
            thetas.extend(at.around.theta(&at.normal.coordinates, &own));
        }
        let (log_normal, log_mixture) = densities(k as f64, square, at.normal.factor.log_det());
        log_g.push(log_mixture);
        log_h.push(log_normal - log_mixture);
    }
    let thetas = Matrix::from_rows(2 * drawn.len(), d, thetas);
    let values = centre.weigh(thetas.clone())?;
    let mut found = Vec::with_capacity(drawn.len());
    for (i, at) in drawn.iter().enumerate() {
        let mut sides = [0.0; 2];
        let mut own = [Vec::new(), Vec::new()];
        for side in 0..2 {
            let theta = thetas.row(2 * i + side);
            own[side] = at.normal.coordinates.iter().map(|&j| theta[j]).collect();
            let prior: f64 =
                at.normal.coordinates.iter().map(|&j| centre.priors[j].log_density(theta[j])).sum();
            let log_v = values[2 * i + side] + prior + picture.space.log_prior(at.model.len())
                - log_g[i]
                - at.log_proposed
                - picture.log_total;
            sides[side] = 0.5 * exp(log_v);
            if !sides[side].is_finite() {
                return Err(Error::numeric(format!(
                    "the weight of a draw of the model `{}` is no number: the likelihood there is beyond all that its approximation promised",
                    picture.space.name(&at.model)
                )));
            }
        }
        let x = exp(at.log_weight - picture.log_total - at.log_proposed + log_h[i]);
        found.push(Pair { model: at.model, sides, x, thetas: own });
    }
    Ok(found)
}

/// Log densities of the normal and of the mixture at this squared distance, in k coordinates.
fn densities(k: f64, square: f64, log_det: f64) -> (f64, f64) {
    let log_normal = 0.5 * (log_det - k * LOG_2PI - square);
    let constant =
        lgamma(0.5 * (DF + k)) - lgamma(0.5 * DF) - 0.5 * k * log(DF * std::f64::consts::PI);
    let log_t = constant + 0.5 * log_det - 0.5 * (DF + k) * log1p(square / DF);
    let share = 1.0 / EVERY as f64;
    let most = log_normal.max(log_t);
    let sum = (1.0 - share) * exp(log_normal - most) + share * exp(log_t - most);
    (log_normal, most + log(sum))
}

/// Positions of the cumulative distribution, one in each stratum.
fn strata(count: usize, rng: &mut Stream) -> Vec<f64> {
    let width = 1.0 / count.max(1) as f64;
    (0..count).map(|i| (i as f64 + rng.random::<f64>()) * width).collect()
}

/// Draws models from q', with what is known of each.
fn models<'p>(picture: &'p Picture, pairs: usize, rng: &mut Stream) -> Result<Vec<Drawn<'p>>> {
    let weights = &picture.weights;
    let by_root = ((BY_ROOT * pairs as f64) as usize).max(1);
    let by_list = ((BY_LIST * pairs as f64) as usize).max(1);
    let sides = Sides::new(picture);
    let by_sides = if sides.ends.is_empty() { 0 } else { (BY_SIDES * pairs as f64) as usize };
    let by_weight = pairs.saturating_sub(by_root + by_list + by_sides).max(1);
    let (first, second) = (strata(by_weight, rng), strata(by_root, rng));
    let quadratic = &picture.places[0].quadratic;
    let (mut drawn, more) = weights.draw(picture.space, quadratic, &first, &second);
    drawn.extend(more);
    let list: Vec<(Subset, f64)> = weights.top.iter().take(LISTED).copied().collect();
    // In turn, from a random one on.
    let start = rng.random_range(0..list.len().max(1));
    drawn.extend((0..by_list).filter_map(|i| list.get((start + i) % list.len().max(1))));
    drawn.extend(strata(by_sides, rng).into_iter().map(|position| sides.at(position)));
    let members: HashSet<Subset> = list.iter().map(|(model, _)| *model).collect();
    let total = drawn.len() as f64;
    let parts = [by_weight, by_root, by_list, by_sides].map(|part| part as f64 / total);
    let mut distinct: Vec<Subset> = drawn.iter().map(|(model, _)| *model).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let normals: HashMap<Subset, Option<(&Around, Normal)>> =
        distinct.into_par_iter().map(|model| (model, picture.normal(&model))).collect();
    let of = |(model, walked): (Subset, f64)| {
        let listed = if members.contains(&model) { 1.0 / list.len() as f64 } else { 0.0 };
        let proposed = parts[0] * exp(walked - weights.log_total)
            + parts[1] * exp(0.5 * walked - weights.log_root)
            + parts[2] * listed
            + parts[3] * sides.share(&model);
        let (around, normal) = normals[&model].clone().ok_or_else(|| {
            let name = picture.space.name(&model);
            Error::numeric(format!(
                "the curvature of the model `{name}` cannot be computed with: its columns are too different in size, or nearly the same; write them as scale(x)"
            ))
        })?;
        let log_weight = picture.log_weight(&model, walked);
        Ok(Drawn { model, log_proposed: log(proposed), log_weight, around, normal })
    };
    drawn.into_iter().map(of).collect()
}

/// The heaviest models with each of which a term is on its rarer side: an error of the picture there moves the
/// term's probability most, and draws by weight hardly ever go there.
struct Sides {
    models: Vec<(Subset, f64)>,
    /// Where each model ends in the cumulative distribution.
    ends: Vec<f64>,
    shares: HashMap<Subset, f64>,
}

impl Sides {
    fn new(picture: &Picture) -> Sides {
        let weights = &picture.weights;
        let rarer = |t: usize, model: &Subset| model.contains(t) == (weights.inclusion[t] < 0.5);
        let rare = |t: &usize| weights.inclusion[*t].min(1.0 - weights.inclusion[*t]) > SURE;
        let terms: Vec<usize> = (0..weights.inclusion.len()).filter(rare).collect();
        let of_model = |(model, walked): &(Subset, f64)| -> f64 {
            let of = |t: &&usize| 1.0 / weights.inclusion[**t].min(1.0 - weights.inclusion[**t]);
            let sides = terms.iter().filter(|t| rarer(**t, model));
            exp(walked - weights.log_total) * sides.map(|t| of(&t)).sum::<f64>()
        };
        let mut models = weights.top.clone();
        let mut shares: Vec<f64> = models.iter().map(of_model).collect();
        let mut kept = shares.iter().map(|w| *w > 0.0);
        models.retain(|_| kept.next().unwrap_or(false));
        shares.retain(|w| *w > 0.0);
        let total: f64 = shares.iter().sum();
        let mut passed = 0.0;
        let ends = shares
            .iter()
            .map(|w| {
                passed += w / total;
                passed
            })
            .collect();
        let shares = models.iter().zip(&shares).map(|((m, _), w)| (*m, w / total)).collect();
        Sides { models, ends, shares }
    }

    fn at(&self, position: f64) -> (Subset, f64) {
        let k = self.ends.partition_point(|end| *end <= position);
        self.models[k.min(self.models.len() - 1)]
    }

    fn share(&self, model: &Subset) -> f64 {
        self.shares.get(model).copied().unwrap_or(0.0)
    }
}

/// What pairs of draws say.
pub(super) struct Weighed<'p> {
    pub pairs: &'p [Pair],
    /// mean(v) and c = mean(v)/mean(x).
    mean: f64,
    ratio: f64,
    /// mean((v − c·x)²)/mean(v)²: what all indicators' variances have in common.
    pooled: f64,
}

impl<'p> Weighed<'p> {
    pub(super) fn new(pairs: &'p [Pair]) -> Result<Weighed<'p>> {
        let count = pairs.len() as f64;
        let mean = pairs.iter().map(Pair::v).sum::<f64>() / count;
        let ratio = mean * count / pairs.iter().map(|p| p.x).sum::<f64>();
        if !(mean > 0.0 && ratio.is_finite() && mean.is_finite()) {
            return Err(Error::numeric(
                "no draw has any weight: the approximation at the centre misses the posterior",
            ));
        }
        let residual = |p: &Pair| (p.v() - ratio * p.x) * (p.v() - ratio * p.x);
        let pooled = pairs.iter().map(residual).sum::<f64>() / count / (mean * mean);
        Ok(Weighed { pairs, mean, ratio, pooled })
    }

    /// How many independent pairs of the posterior they are worth.
    pub(super) fn ess(&self) -> f64 {
        let count = self.pairs.len() as f64;
        let square: f64 = self.pairs.iter().map(|p| p.v() * p.v()).sum();
        (self.mean * count) * (self.mean * count) / square
    }

    /// The tail shape of the weights.
    pub(super) fn k_hat(&self) -> Option<f64> {
        tail_shape(&self.pairs.iter().map(|p| log(p.v())).collect::<Vec<f64>>())
    }

    /// The probability of the models for which this holds, given what it is in the picture.
    pub(super) fn probability(&self, known: f64, has: impl Fn(&Subset) -> bool) -> Estimate {
        let count = self.pairs.len() as f64;
        let error = |p: &Pair| {
            let f = if has(&p.model) { 1.0 } else { 0.0 };
            (p.v() - self.ratio * p.x) * (f - known)
        };
        let off = self.pairs.iter().map(error).sum::<f64>() / count / self.mean;
        let influence = |p: &Pair| {
            let own = (error(p) - off * p.v()) / self.mean;
            own * own
        };
        let own = self.pairs.iter().map(influence).sum::<f64>();
        let fourth: f64 = self.pairs.iter().map(|p| influence(p) * influence(p)).sum();
        let variance = (own + SHRINK * self.pooled * known * (1.0 - known)) / (count + SHRINK);
        let wider = WIDER.max(1.0 + FEW * fourth / (own * own).max(f64::MIN_POSITIVE));
        Estimate::new((known + off).clamp(0.0, 1.0), wider * (variance.max(0.0) / count).sqrt())
    }

    /// log of the sum over all models, given the picture's.
    pub(super) fn log_total(&self, known: f64) -> Estimate {
        let se = WIDER * (self.pooled / self.pairs.len() as f64).sqrt();
        Estimate::new(known + log(self.ratio), se)
    }

    /// The mean of every parameter over all models.
    pub(super) fn mean(&self, picture: &Picture) -> Vec<f64> {
        let mut mean = vec![0.0; picture.space.dim];
        let total = self.mean * self.pairs.len() as f64;
        for pair in self.pairs {
            for (k, &j) in picture.space.coordinates(&pair.model).iter().enumerate() {
                let both = pair.sides[0] * pair.thetas[0][k] + pair.sides[1] * pair.thetas[1][k];
                mean[j] += both / total;
            }
        }
        mean
    }

    /// Per parameter, over the models that have it: the weight of those, and its weighted first and second
    /// moments.
    pub(super) fn moments(&self, picture: &Picture) -> Vec<(f64, f64, f64)> {
        let mut moments = vec![(0.0, 0.0, 0.0); picture.space.dim];
        let total = self.mean * self.pairs.len() as f64;
        for pair in self.pairs {
            for (k, &j) in picture.space.coordinates(&pair.model).iter().enumerate() {
                for side in 0..2 {
                    let (w, x) = (pair.sides[side] / total, pair.thetas[side][k]);
                    let (weight, first, second) = moments[j];
                    moments[j] = (weight + w, first + w * x, second + w * x * x);
                }
            }
        }
        moments
    }
}
