//! Importance sampling from the consensus normal: the paper's CMC-IS, two rounds.
//!
//! The product of the subposteriors' normal approximations is a multiple γ of N(μ, Σ). Draws from
//! that normal go out, each shard weighs them by its own density, and since γ cancels,
//!
//! ```text
//! p(y) ≈ mean_k Π_s f_s(θ_k) / N(θ_k; μ, Σ).
//! ```
//!
//! Unbiased for p(y), but only as good as the normals are: `exact` puts its proposal where all of the
//! data say, and keeps a share of heavier tails.
//!
//! Draws that miss the weights' tail make the estimate low, its error bar short and its effective draws many: they do
//! not tell what they have missed. What many shards' normals are off by together is mostly a shift of μ, and then log w
//! is normal with variance δ², δ the shift in standard deviations: δ² = 4 leaves 18 of 1,000 draws, and only k̂ of a
//! lucky seed sees it. So the same round asks for log f with gradient and Hessian at μ. However odd single shards are, the
//! posterior of all rows is nearly normal, so that log w is nearly quadratic, and its first two moments follow without
//! any draw ([`efficiency`]).

use super::normal::{Consensus, Normals};
use super::{Combination, CombineDiagnostics, Fits, Next, PosteriorDraws, Setting, homogeneity};
use crate::estimate::importance::{LEAST_ESS, T_DF};
use crate::estimate::{Importance, Weighted};
use crate::math::proposal::Draws;
use crate::math::{Cholesky, Matrix, Proposal, stream};
use crate::question::{Answers, Expand, Weigh};
use crate::target::Expansion;
use crate::{Error, Level, Result, Warning};
use libm::exp;

/// The combination by draws from the consensus normal.
pub(super) struct CmcIs {
    setting: Setting,
    stage: CmcStage,
}

enum CmcStage {
    Start,
    Fit,
    Weigh(Box<Pending>),
}

struct Pending {
    fits: Fits,
    asked: Weigh,
    /// About μ.
    centre: Expand,
    normals: Normals,
    draws: Draws,
}

/// What to do where the normals are no good proposal.
const ADVICE: &str = "use combine = \"exact\", fewer shards, or more `proposals`";

impl CmcIs {
    pub(super) fn new(setting: Setting) -> CmcIs {
        CmcIs { setting, stage: CmcStage::Start }
    }

    fn fitted(&mut self, fits: Fits) -> Result<Next> {
        let normals = Normals::new(&fits.summaries)?;
        let (model, options) = (&self.setting.model, &self.setting.options);
        let all = &normals.all;
        let proposal = Proposal::from_precision(all.mean.clone(), &all.factor, 0.0, T_DF);
        // The centre is no shard: it has the number after the last.
        let mut rng = stream(options.seed, model.stream(), u64::MAX, "cmc-is");
        let draws = proposal.draw(options.proposals, &mut rng);
        let asked = Weigh(self.setting.points(draws.thetas.clone()));
        let mean = Matrix::from_rows(1, all.mean.len(), all.mean.clone());
        let centre = Expand(self.setting.points(mean));
        let questions = vec![asked.clone().into(), centre.clone().into()];
        self.stage = CmcStage::Weigh(Box::new(Pending { fits, asked, centre, normals, draws }));
        Ok(Next::Ask(questions))
    }

    fn weighed(&self, pending: Pending, weights: Answers, at_mean: Answers) -> Result<Next> {
        let Pending { fits, asked, centre, normals, draws } = pending;
        let count = draws.log_density.len();
        let weighted = Weighted::new(draws, &weights.sum(&asked)?.0[0])?;
        let mut seen = weighted.summarise();
        let agreement = self.setting.compare_shards(&normals.scores(), &normals.all.factor);
        let mut warnings = seen.warnings(ADVICE);
        let at_mean = at_mean.sum(&centre)?.0.remove(0).remove(0);
        warnings.extend(foresee(efficiency(&at_mean, &normals.all), count, &mut seen));
        warnings.extend(homogeneity::warnings(&agreement, &self.setting.names()));
        let diagnostics = CombineDiagnostics::importance(0, 1, &seen, count);
        let mut evidence = self.setting.by_importance(seen, diagnostics, warnings);
        evidence.agreement = agreement;
        evidence.draws = Some(PosteriorDraws::Weighted(weighted));
        Ok(Next::Done(Box::new(evidence.beside(fits))))
    }
}

/// The share of draws from N(μ, Λ⁻¹) that are effective for a density with this expansion at μ: (E w)²/E w².
///
/// With Λ = LL' and θ = μ + L⁻ᵀz, log w = c + b'z + ½z'(I − A)z, where b = L⁻¹g and A = L⁻¹(−H)L⁻ᵀ, and z is standard
/// normal:
///
/// ```text
/// log E w  = c + ½ b'A⁻¹b − ½ log|A|
/// log E w² = 2c + 2 b'(2A − I)⁻¹b − ½ log|2A − I|
/// ```
///
/// Nothing is effective where the second is infinite: the density is more than twice as wide as the proposal somewhere.
fn efficiency(at: &Expansion, all: &Consensus) -> f64 {
    let d = all.mean.len();
    let root = all.factor.inverse_lower();
    let mut ratio = root.product(&at.hessian).product(&root.transpose());
    ratio.scale(-1.0);
    let mut second = Matrix::identity(d);
    second.scale(-1.0);
    second.add_scaled(2.0, &ratio);
    let (Some(first), Some(second)) = (Cholesky::new(&ratio), Cholesky::new(&second)) else {
        return 0.0;
    };
    let pull = root.times(&at.gradient);
    let shift = first.inverse_quadratic(&pull) - 2.0 * second.inverse_quadratic(&pull);
    let share = exp(shift - first.log_det() + 0.5 * second.log_det());
    // Rounding may leave it a hair over 1; a density that is no number has nothing effective either.
    if share > 0.0 { share.min(1.0) } else { 0.0 }
}

/// Lengthens the error bar to what the share of effective draws foretells; a warning where that is too few.
fn foresee(efficiency: f64, count: usize, seen: &mut Importance) -> Option<Warning> {
    let expected = efficiency * count as f64;
    if expected >= LEAST_ESS {
        // The mean of `count` weights has the relative variance (1/efficiency − 1)/count, whatever draws have seen of it.
        let se = ((1.0 / efficiency - 1.0) / count as f64).sqrt();
        seen.log_z.se = seen.log_z.se.map(|own| own.max(se));
        return None;
    }
    let message = format!(
        "the product of the shards' normals is too far from the posterior: about {expected:.0} of {count} draws can be expected to be effective (at least {LEAST_ESS}), however many seem to be"
    );
    Some(Warning::new(Level::Unreliable, "far-proposals", message, ADVICE).value(expected))
}

impl Combination for CmcIs {
    fn next(&mut self, answers: Vec<Answers>) -> Result<Next> {
        let mut answers = answers.into_iter();
        let mut next = || answers.next().ok_or_else(|| Error::numeric("a question has no answer"));
        match std::mem::replace(&mut self.stage, CmcStage::Start) {
            CmcStage::Fit => self.fitted(Fits::of(next()?)?),
            CmcStage::Weigh(pending) => self.weighed(*pending, next()?, next()?),
            CmcStage::Start => {
                self.stage = CmcStage::Fit;
                Ok(Next::Ask(vec![self.setting.fit()]))
            }
        }
    }

    fn rounds_left(&self) -> u64 {
        if matches!(self.stage, CmcStage::Weigh(_)) { 1 } else { 2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::combine::consensus;

    /// exp(g·x − ½h·x²) under N(0, 1/λ): both means of weights summed over a fine grid.
    fn by_sums(g: f64, h: f64, precision: f64) -> f64 {
        let weight = |x: f64| exp(g * x - 0.5 * h * x * x + 0.5 * precision * x * x);
        let (mut first, mut second, mut all) = (0.0, 0.0, 0.0);
        for k in -20_000..=20_000 {
            let x = f64::from(k) * 1e-3;
            let (density, w) = (exp(-0.5 * precision * x * x), weight(x));
            all += density;
            first += density * w;
            second += density * w * w;
        }
        first * first / (second * all)
    }

    fn share(g: &[f64], h: &Matrix, precision: &Matrix) -> f64 {
        let d = g.len();
        let mut hessian = h.clone();
        hessian.scale(-1.0);
        let at = Expansion { value: -7.0, gradient: g.to_vec(), hessian };
        efficiency(&at, &consensus(&[(vec![0.0; d].as_slice(), precision)]).unwrap())
    }

    #[test]
    fn efficiency_is_what_sums_give() {
        let one = |x: f64| Matrix::from_rows(1, 1, vec![x]);
        for (g, h, precision) in
            [(0.0, 1.0, 1.0), (1.5, 1.0, 1.0), (2.0, 4.0, 2.5), (-1.0, 1.5, 2.0)]
        {
            let (found, sums) = (share(&[g], &one(h), &one(precision)), by_sums(g, h, precision));
            assert!((found / sums - 1.0).abs() < 1e-6, "{found} is not {sums}");
        }
        // Twice as wide as the proposal, weights have no variance; a trough has no peak to draw from.
        assert_eq!(share(&[0.0], &one(0.5), &one(1.0)), 0.0);
        assert_eq!(share(&[0.0], &one(-1.0), &one(1.0)), 0.0);
        assert_eq!(share(&[f64::NAN], &one(1.0), &one(1.0)), 0.0);
    }

    /// Coordinates that are turned and stretched tell the same.
    #[test]
    fn efficiency_knows_no_coordinates() {
        let (h, precision) = ([1.2, 0.8], [1.0, 1.2]);
        let apart: f64 = (0..2).map(|j| by_sums(0.7, h[j], precision[j])).product();
        let turn = Matrix::from_rows(2, 2, vec![0.6, 0.8, -1.6, 1.2]);
        let turned = |diagonal: [f64; 2]| {
            let own = Matrix::from_rows(2, 2, vec![diagonal[0], 0.0, 0.0, diagonal[1]]);
            turn.transpose().product(&own).product(&turn)
        };
        let found = share(&turn.transpose().times(&[0.7, 0.7]), &turned(h), &turned(precision));
        assert!((found / apart - 1.0).abs() < 1e-6, "{found} is not {apart}");
    }
}
