//! Draws of model and coefficients together, and what they say about every model.
//!
//! A model γ is drawn from q' = 0.6·q + 0.1·√q + 0.1 on the heaviest ones alone + 0.2 on the rarer side of every
//! term, q being the centre's picture of how likely models are (where chains made the picture, from q as they came by); then a pair θ = m ± s of its coefficients from g, a normal density of the picture with a
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
use crate::math::proposal::log_defensive;
use crate::math::ziggurat::{chi_square, normal};
use crate::math::{LOG_2PI, Matrix, Stream};
use crate::space::{NormalModel, Subset};
use crate::{Error, Result};
use libm::{exp, log};
use rand::RngExt;
use rayon::prelude::*;
use std::collections::HashMap;

/// The smaller parts of q'.
const BY_ROOT: f64 = 0.1;
const BY_TOP: f64 = 0.1;
const BY_SIDES: f64 = 0.2;

/// Terms of which the rarer side is rarer than this are sure enough.
const SURE: f64 = 1e-4;

/// The share of draws by q that is by the walk in any case, whatever the list of the heaviest models holds.
const BY_WALK: f64 = 0.1;

/// How many of the heaviest models get draws alike.
const TOP: usize = 20;

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

/// The largest error of a single model that is told from larger ones.
const LARGEST: f64 = 10.0;

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
    normal: NormalModel,
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
        let (k, half_log_det) = (k as f64, 0.5 * at.normal.factor.log_det());
        let log_mixture = log_defensive(k, square, 1.0 / EVERY as f64, DF);
        log_g.push(log_mixture + half_log_det);
        log_h.push(-0.5 * (k * LOG_2PI + square) - log_mixture);
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
                return Err(missed());
            }
        }
        let x = exp(at.log_weight - picture.log_total - at.log_proposed + log_h[i]);
        found.push(Pair { model: at.model, sides, x, thetas: own });
    }
    Ok(found)
}

/// Where draws have no weight, or one beyond all numbers.
fn missed() -> Error {
    Error::numeric(
        "the normal approximation that draws of models are made from misses the posterior altogether: there are too few rows for so many candidates, or some terms fit every row; write method = \"enumerate\" under [select] (up to 4,096 models), use tighter priors, or name fewer candidates",
    )
}

/// Positions of the cumulative distribution, one in each stratum.
fn strata(count: usize, rng: &mut Stream) -> Vec<f64> {
    let width = 1.0 / count.max(1) as f64;
    (0..count).map(|i| (i as f64 + rng.random::<f64>()) * width).collect()
}

/// Draws models from q', with what is known of each.
fn models<'p>(picture: &'p Picture, pairs: usize, rng: &mut Stream) -> Result<Vec<Drawn<'p>>> {
    let weights = &picture.weights;
    let quadratic = &picture.places[0].quadratic;
    if !weights.is_exact() {
        // Chains draw from q as it is.
        let (drawn, _) = weights.draw(picture.space, quadratic, &strata(pairs, rng), &[]);
        let with =
            |(model, walked): (Subset, f64)| (model, walked, walked - weights.log_total, walked);
        return known(picture, drawn.into_iter().map(with).collect());
    }
    let list = HeaviestModels::new(picture);
    let share = |part: f64| (part * pairs as f64) as usize;
    let (by_root, by_top) = (share(BY_ROOT).max(1), share(BY_TOP).max(1));
    let by_sides = if list.sides.is_empty() { 0 } else { share(BY_SIDES) };
    let rest = pairs.saturating_sub(by_root + by_top + by_sides).max(2);
    // Models of the list by what is known of them now, the others by the walk, as much as they hold; rounded, so that
    // the last digit of a sum does not decide.
    let by_list = (((1.0 - BY_WALK) * rest as f64 * list.mass).round() as usize).min(rest - 1);
    let by_walk = rest - by_list;
    let (first, second) = (strata(by_walk, rng), strata(by_root, rng));
    let (mut drawn, more) = weights.draw(picture.space, quadratic, &first, &second);
    drawn.extend(more);
    // In turn, from a random one on.
    let top = TOP.min(list.models.len()).max(1);
    let start = rng.random_range(0..top);
    let mut numbers: Vec<usize> = (0..by_top).map(|i| (start + i) % top).collect();
    numbers.extend(strata(by_list, rng).iter().map(|&at| place(&list.ends, at)));
    numbers.extend(strata(by_sides, rng).iter().map(|&at| place(&list.sides, at)));
    drawn.extend(numbers.iter().filter_map(|&k| list.models.get(k)).map(|m| (m.0, m.1)));
    let total = drawn.len() as f64;
    let parts = [by_walk, by_root, by_top, by_list, by_sides].map(|part| part as f64 / total);
    let of = |(model, walked): (Subset, f64)| {
        let number = list.numbers.get(&model).copied();
        let step = |ends: &[f64], k: usize| match k {
            _ if ends.is_empty() => 0.0,
            0 => ends[0],
            k => ends[k] - ends[k - 1],
        };
        let proposed = parts[0] * exp(walked - weights.log_total)
            + parts[1] * exp(0.5 * walked - weights.log_root)
            + number.map_or(0.0, |k| {
                let on_top = if k < top { 1.0 / top as f64 } else { 0.0 };
                parts[2] * on_top + parts[3] * step(&list.ends, k) + parts[4] * step(&list.sides, k)
            });
        let log_weight = picture.log_weight(&model, walked);
        (model, walked, log(proposed), log_weight)
    };
    known(picture, drawn.into_iter().map(of).collect())
}

/// The number of the stretch of a cumulative distribution that has this position.
fn place(ends: &[f64], position: f64) -> usize {
    ends.partition_point(|end| *end <= position).min(ends.len().saturating_sub(1))
}

/// The models with their normal approximations.
fn known<'p>(picture: &'p Picture, drawn: Vec<(Subset, f64, f64, f64)>) -> Result<Vec<Drawn<'p>>> {
    let mut distinct: Vec<Subset> = drawn.iter().map(|d| d.0).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let normals: HashMap<Subset, Option<(&Around, NormalModel)>> =
        distinct.into_par_iter().map(|model| (model, picture.normal(&model))).collect();
    let of = |(model, _, log_proposed, log_weight): (Subset, f64, f64, f64)| {
        let (around, normal) = normals[&model].clone().ok_or_else(|| {
            let name = picture.space.name(&model);
            Error::numeric(format!(
                "the curvature of the model `{name}` cannot be computed with: its columns are too different in size, or nearly the same; write them as scale(x)"
            ))
        })?;
        Ok(Drawn { model, log_proposed, log_weight, around, normal })
    };
    drawn.into_iter().map(of).collect()
}

/// The heaviest models, by what is known of them now.
struct HeaviestModels {
    /// With log w of the walk, heaviest first.
    models: Vec<(Subset, f64)>,
    numbers: HashMap<Subset, usize>,
    /// Which share of all models' weight they hold.
    mass: f64,
    /// Where each ends in the cumulative distribution of weights.
    ends: Vec<f64>,
    /// The same where a term is on its rarer side, all terms alike: an error of the picture there moves a term's
    /// probability most, and draws by weight hardly ever go there. Empty where no term is in doubt.
    sides: Vec<f64>,
}

impl HeaviestModels {
    fn new(picture: &Picture) -> HeaviestModels {
        let walked: HashMap<Subset, f64> = picture.weights.top.iter().copied().collect();
        let heaviest = picture.heaviest();
        let shares: Vec<f64> = heaviest.iter().map(|(_, w)| exp(w - picture.log_total)).collect();
        let p = &picture.inclusion;
        let rarer = |t: usize| p[t].min(1.0 - p[t]);
        let terms: Vec<usize> = (0..p.len()).filter(|&t| rarer(t) > SURE).collect();
        let side = |(k, (model, _)): (usize, &(Subset, f64))| -> f64 {
            let on = terms.iter().filter(|&&t| model.contains(t) == (p[t] < 0.5));
            shares[k] * on.map(|&t| 1.0 / rarer(t)).sum::<f64>()
        };
        let sides: Vec<f64> = heaviest.iter().enumerate().map(side).collect();
        HeaviestModels {
            models: heaviest
                .iter()
                .map(|(m, w)| (*m, walked.get(m).copied().unwrap_or(*w)))
                .collect(),
            numbers: heaviest.iter().enumerate().map(|(k, (m, _))| (*m, k)).collect(),
            mass: shares.iter().sum::<f64>().min(1.0),
            ends: cumulative(&shares),
            sides: cumulative(&sides),
        }
    }
}

/// Where parts of these sizes end, as shares of their sum; none where that is 0.
fn cumulative(parts: &[f64]) -> Vec<f64> {
    let total: f64 = parts.iter().sum();
    if !(total > 0.0 && total.is_finite()) {
        return Vec::new();
    }
    let mut passed = 0.0;
    let mut end = |part: &f64| {
        passed += part / total;
        passed
    };
    parts.iter().map(&mut end).collect()
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
            return Err(missed());
        }
        let residual = |p: &Pair| (p.v() - ratio * p.x) * (p.v() - ratio * p.x);
        let pooled = pairs.iter().map(residual).sum::<f64>() / count / (mean * mean);
        Ok(Weighed { pairs, mean, ratio, pooled })
    }

    /// How many independent pairs of the posterior they are worth.
    pub(super) fn ess(&self) -> f64 {
        // By the largest, so that no square is lost.
        let most = self.pairs.iter().map(Pair::v).fold(0.0, f64::max);
        let sum: f64 = self.pairs.iter().map(|p| p.v() / most).sum();
        let square: f64 = self.pairs.iter().map(|p| (p.v() / most) * (p.v() / most)).sum();
        sum * sum / square
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

    /// How far the picture's total is off, in nats.
    pub(super) fn off(&self) -> f64 {
        log(self.ratio)
    }

    /// How far the picture is off for single models, in nats: a root mean square over pairs.
    pub(super) fn spread(&self) -> f64 {
        let log_ratio = |p: &Pair| log(p.v() / (self.ratio * p.x)).clamp(-LARGEST, LARGEST);
        let squares: f64 = self.pairs.iter().map(|p| log_ratio(p) * log_ratio(p)).sum();
        (squares / self.pairs.len() as f64).sqrt()
    }

    /// How many pairs are of this model.
    pub(super) fn pairs_of(&self, model: &Subset) -> usize {
        self.pairs.iter().filter(|p| p.model == *model).count()
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
