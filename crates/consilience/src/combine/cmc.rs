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

use super::normal::Normals;
use super::{Combination, CombineDiagnostics, Fits, Next, PosteriorDraws, Setting, homogeneity};
use crate::Result;
use crate::estimate::Weighted;
use crate::estimate::importance::T_DF;
use crate::math::proposal::Draws;
use crate::math::{Proposal, stream};
use crate::question::{Answers, Weigh};

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
    normals: Normals,
    draws: Draws,
}

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
        let question = asked.clone().into();
        self.stage = CmcStage::Weigh(Box::new(Pending { fits, asked, normals, draws }));
        Ok(Next::Ask(vec![question]))
    }

    fn weighed(&self, pending: Pending, answers: Answers) -> Result<Next> {
        let Pending { fits, asked, normals, draws } = pending;
        let count = draws.log_density.len();
        let weighted = Weighted::new(draws, &answers.sum(&asked)?.0[0])?;
        let seen = weighted.summarise();
        let agreement = self.setting.compare_shards(&normals.scores(), &normals.all.factor);
        let mut warnings =
            seen.warnings("use combine = \"exact\", fewer shards, or more `proposals`");
        warnings.extend(homogeneity::warnings(&agreement, &self.setting.names()));
        let diagnostics = CombineDiagnostics::importance(0, 1, &seen, count);
        let mut evidence = self.setting.by_importance(seen, diagnostics, warnings);
        evidence.agreement = agreement;
        evidence.draws = Some(PosteriorDraws::Weighted(weighted));
        Ok(Next::Done(Box::new(evidence.beside(fits))))
    }
}

impl Combination for CmcIs {
    fn next(&mut self, mut answers: Vec<Answers>) -> Result<Next> {
        match (std::mem::replace(&mut self.stage, CmcStage::Start), answers.pop()) {
            (CmcStage::Fit, Some(answers)) => self.fitted(Fits::of(answers)?),
            (CmcStage::Weigh(pending), Some(answers)) => self.weighed(*pending, answers),
            _ => {
                self.stage = CmcStage::Fit;
                Ok(Next::Ask(vec![self.setting.fit()]))
            }
        }
    }

    fn rounds_left(&self) -> u64 {
        if matches!(self.stage, CmcStage::Weigh(_)) { 1 } else { 2 }
    }
}
