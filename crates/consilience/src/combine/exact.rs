//! Exact up to Monte Carlo error, in a few rounds.
//!
//! Newton rounds find the mode of the full posterior: every shard sends log f_s, its gradient and
//! Hessian at the current point, and their sums are those of all the data. One round at points along the
//! axes of the curvature tells to which sides the posterior falls slowly. Then importance rounds: draws
//! θ_k from a defensive mixture g of that shape go out, each shard returns log f_s(θ_k), and
//!
//! ```text
//! log p(y) ≈ log mean_k exp( Σ_s log f_s(θ_k) − log g(θ_k) ),
//! ```
//!
//! which is unbiased for p(y) whatever the shape of the posterior and however the data are split.

use super::leave_one_out::Again;
use super::normal::Normals;
use super::{
    Agreement, Combination, CombineDiagnostics, Evidence, Next, PosteriorDraws, Setting,
    homogeneity, leave_one_out, sum_of_weights, summaries,
};
use crate::estimate::importance::{T_DF, T_SHARE, adapted, probes, sides};
use crate::estimate::{Importance, Newton, Step, Weighted};
use crate::math::proposal::Draws;
use crate::math::{Cholesky, Matrix, Proposal, Sobol, Stream, stream};
use crate::question::{Answer, Question, Summary};
use crate::study::{Local, Points};
use crate::target::Expansion;
use crate::{Level, Result, Warning};
use std::sync::Arc;

/// Half the squared Newton decrement at which the mode is near enough: the importance rounds take
/// care of the rest.
const TOLERANCE: f64 = 1e-6;

/// The share of effective draws beyond which a proposal is left as it is.
const WELL_PLACED: f64 = 0.75;

/// Draws of the first importance round.
const PILOT: usize = 1000;

/// Rounds that are kept back from the Newton search for the importance draws.
const KEPT_BACK: usize = 2;

/// The combination by Newton and importance rounds.
pub(super) struct Exact {
    setting: Setting,
    stage: Stage,
    summaries: Option<Vec<Summary>>,
    agreement: Vec<Agreement>,
    warnings: Vec<Warning>,
    newton_rounds: usize,
    weigh_rounds: usize,
}

enum Stage {
    Start,
    Fit,
    Climb(Box<Newton>),
    Rescue,
    Probe(Box<Weigh>),
    Weigh(Box<Weigh>),
    Again(Box<Again>),
}

struct Weigh {
    /// Where the proposals are anchored: the mode and the inverse curvature there.
    centre: Vec<f64>,
    covariance: Matrix,
    proposal: Proposal,
    rng: Stream,
    /// Where points come from, if not from `rng` alone.
    sobol: Option<Sobol>,
    /// What was sent out and is being weighed.
    pending: Option<Draws>,
    weighted: Option<Weighted>,
    /// log f_s of each of these draws, shard by shard, if it will be needed.
    by_shard: Option<Vec<Vec<f64>>>,
    /// Whether the proposal was moved to where weights said.
    adapted: bool,
}

impl Exact {
    pub(super) fn new(setting: Setting) -> Exact {
        Exact {
            setting,
            stage: Stage::Start,
            summaries: None,
            agreement: Vec::new(),
            warnings: Vec::new(),
            newton_rounds: 0,
            weigh_rounds: 0,
        }
    }

    fn rounds_left(&self) -> usize {
        self.setting.options.rounds.saturating_sub(self.newton_rounds + self.weigh_rounds)
    }

    fn climb(&mut self, theta: Vec<f64>) -> Next {
        self.newton_rounds += 1;
        let (model, share) = (self.setting.model.clone(), self.setting.share);
        Next::Ask(Question::Expand { model, share, theta })
    }

    fn begin_climb(&mut self) -> Next {
        let start = self.setting.model.start();
        self.stage = Stage::Climb(Box::new(Newton::new(start.clone(), TOLERANCE)));
        self.climb(start)
    }

    /// Takes the shards' expansions and steps on, or goes over to the importance rounds.
    fn climbed(&mut self, mut newton: Newton, answers: Vec<Answer>) -> Result<Next> {
        let mut shards = Vec::new();
        let mut sum = Expansion::zeros(self.setting.model.dim());
        for answer in answers {
            let Answer::Expansion(at) = answer else { unreachable!("the session checks kinds") };
            sum.add(&at);
            shards.push(at);
        }
        let step = newton.advance(sum);
        let give_up = matches!(step, Ok(Step::Evaluate(_))) && self.rounds_left() <= KEPT_BACK;
        match step {
            Ok(Step::Converged(mode)) => {
                let scores = homogeneity::scores(&mut shards);
                self.agreement = self.setting.compare_shards(&scores, &mode.factor);
                let warnings = homogeneity::warnings(&self.agreement, &self.setting.names());
                self.warnings.extend(warnings);
                Ok(self.begin_weighing(mode.theta.clone(), &mode.factor))
            }
            Ok(Step::Evaluate(theta)) if !give_up => {
                self.stage = Stage::Climb(Box::new(newton));
                Ok(self.climb(theta))
            }
            // The importance rounds may still succeed from the best point, and say so if not.
            _ => {
                let Some(mode) = newton.best().cloned() else { return self.rescue() };
                let message = format!(
                    "the mode of the posterior was not reached within {} rounds (up to {:.1e} nats below it)",
                    self.newton_rounds, mode.decrement
                );
                let advice =
                    "allow more `rounds` under [evidence], or standardise the columns with scale()";
                let warning = Warning::new(Level::Caution, "mode-not-reached", message, advice);
                self.warnings.push(warning.value(mode.decrement));
                Ok(self.begin_weighing(mode.theta.clone(), &mode.factor))
            }
        }
    }

    /// Where no Newton step suits, the shards' own moments say where to begin.
    fn rescue(&mut self) -> Result<Next> {
        let message = format!(
            "no mode of the posterior was found within {} rounds; the draws begin at the product of the shards' own posteriors",
            self.newton_rounds
        );
        let advice =
            "allow more `rounds` under [evidence], or standardise the columns with scale()";
        self.warnings.push(Warning::new(Level::Caution, "mode-not-reached", message, advice));
        match self.summaries.take() {
            Some(summaries) => self.rescued(summaries),
            None => {
                self.stage = Stage::Rescue;
                Ok(Next::Ask(self.setting.fit()))
            }
        }
    }

    fn rescued(&mut self, summaries: Vec<Summary>) -> Result<Next> {
        let all = Normals::new(&summaries)?.all;
        self.summaries = Some(summaries);
        Ok(self.begin_weighing(all.mean.clone(), &all.factor))
    }

    fn begin_weighing(&mut self, centre: Vec<f64>, precision: &Cholesky) -> Next {
        let seed = self.setting.options.seed;
        let d = centre.len();
        // The centre is no shard: it has the number after the last.
        let mut rng = stream(seed, self.setting.model.stream(), u64::MAX, "exact");
        let even = self.setting.options.points == Points::Sobol;
        let weigh = Weigh {
            proposal: Proposal::from_precision(centre.clone(), precision, T_SHARE, T_DF),
            covariance: precision.inverse(),
            centre,
            sobol: even.then(|| Sobol::new(&mut rng)),
            rng,
            pending: None,
            weighted: None,
            by_shard: None,
            adapted: false,
        };
        // One more round shows to which sides the posterior falls slowly, if there are rounds.
        if self.rounds_left() > KEPT_BACK {
            let thetas = Arc::new(probes(&weigh.proposal, d));
            self.stage = Stage::Probe(Box::new(weigh));
            return self.weigh(thetas);
        }
        self.first_draws(weigh)
    }

    /// Shapes the proposal by the densities at the probes.
    fn probed(&mut self, mut weigh: Weigh, answers: Vec<Answer>) -> Next {
        let count = probes(&weigh.proposal, weigh.centre.len()).rows();
        let scales = sides(&sum_of_weights(answers, count));
        weigh.proposal = weigh.proposal.with_sides(scales);
        self.first_draws(weigh)
    }

    fn first_draws(&mut self, mut weigh: Weigh) -> Next {
        let first = self.setting.options.draws.min(PILOT);
        let question = self.ask_weights(&mut weigh, first);
        self.stage = Stage::Weigh(Box::new(weigh));
        question
    }

    fn weigh(&mut self, thetas: Arc<Matrix>) -> Next {
        self.weigh_rounds += 1;
        let (model, share) = (self.setting.model.clone(), self.setting.share);
        Next::Ask(Question::Weigh { model, share, thetas })
    }

    fn ask_weights(&mut self, weigh: &mut Weigh, count: usize) -> Next {
        let draws = match &mut weigh.sobol {
            Some(sobol) => weigh.proposal.draw_evenly(count, sobol, &mut weigh.rng),
            None => weigh.proposal.draw(count, &mut weigh.rng),
        };
        let thetas = Arc::new(draws.thetas.clone());
        weigh.pending = Some(draws);
        self.weigh(thetas)
    }

    /// Takes the shards' log densities; draws more, adapts the proposal, or finishes.
    fn weighed(&mut self, mut weigh: Box<Weigh>, answers: Vec<Answer>) -> Result<Next> {
        let draws = weigh.pending.take().expect("answers come after a question");
        if self.setting.extras.leave_one_out {
            leave_one_out::keep(&mut weigh.by_shard, &answers);
        }
        let log_target = sum_of_weights(answers, draws.log_density.len());
        let new = Weighted::new(draws, &log_target)?;
        match &mut weigh.weighted {
            Some(weighted) => weighted.extend(new),
            None => weigh.weighted = Some(new),
        }
        let weighted = weigh.weighted.as_ref().expect("just put there");
        let (seen, count) = (weighted.summarise(), weighted.len());
        let options = &self.setting.options;
        let (target, most) = (options.se_target, options.draws);
        let se = seen.log_z.se.unwrap_or(0.0);
        // A posterior that is skewed is not where its mode is: better draws are worth more than more.
        let misplaced = !weigh.adapted && se > target && seen.ess < WELL_PLACED * count as f64;
        let more = if self.rounds_left() == 0 {
            None
        } else if misplaced || !seen.is_reliable() {
            // Start again from where the weights say that the posterior is.
            weigh.proposal = adapted(&seen, &weigh.centre, &weigh.covariance)?;
            (weigh.centre, weigh.covariance) = (seen.mean.clone(), seen.covariance.clone());
            weigh.weighted = None;
            weigh.by_shard = None;
            weigh.adapted = true;
            weigh.sobol = weigh.sobol.as_ref().map(|_| Sobol::new(&mut weigh.rng));
            Some((2 * count).min(most))
        } else if se > target && count < most {
            // The error falls with the root of the number of draws; a tenth more to be sure.
            let wanted = 1.1 * count as f64 * (se / target).powi(2);
            let more = (wanted.ceil() as usize).min(most).saturating_sub(count);
            Some(more).filter(|more| *more > 0)
        } else {
            None
        };
        match more {
            Some(count) => {
                let question = self.ask_weights(&mut weigh, count);
                self.stage = Stage::Weigh(weigh);
                Ok(question)
            }
            None => {
                let evidence = Box::new(self.finish(seen, *weigh)?);
                if evidence.left_out.is_some() && self.rounds_left() >= Again::ROUNDS {
                    return self.again(Again::new(evidence), None);
                }
                Ok(Next::Done(leave_one_out::warned(evidence)))
            }
        }
    }

    /// Draws for the shards whose absence the draws at hand say too little about.
    fn again(&mut self, again: Again, answers: Option<Vec<Answer>>) -> Result<Next> {
        let (next, again) = again.next(&self.setting, answers)?;
        if let Some(again) = again {
            self.stage = Stage::Again(Box::new(again));
        }
        Ok(next)
    }

    fn finish(&mut self, seen: Importance, weigh: Weigh) -> Result<Evidence> {
        let weighted = weigh.weighted.expect("there are draws at the end");
        let count = weighted.len();
        let advice =
            "allow more `draws` and `rounds` under [evidence], or use a prior with lighter tails";
        let options = &self.setting.options;
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.extend(seen.warnings(advice));
        let se = seen.log_z.se.unwrap_or(0.0);
        if se > options.se_target {
            let message = format!(
                "the standard error {se:.4} is over se_target = {} after {count} draws",
                options.se_target
            );
            warnings.push(Warning::new(Level::Caution, "se-target", message, advice).value(se));
        }
        let diagnostics =
            CombineDiagnostics::importance(self.newton_rounds, self.weigh_rounds, &seen, count);
        let mut evidence = self.setting.by_importance(seen, diagnostics, warnings);
        evidence.agreement = std::mem::take(&mut self.agreement);
        if let Some(by_shard) = &weigh.by_shard {
            let left_out = leave_one_out::left_out(&self.setting, &weighted, by_shard)?;
            evidence.left_out = Some(left_out);
        }
        evidence.draws = Some(PosteriorDraws::Weighted(weighted));
        Ok(match self.summaries.take() {
            Some(summaries) => evidence.beside(summaries),
            None => evidence,
        })
    }
}

impl Combination for Exact {
    fn next(&mut self, answers: Option<Vec<Answer>>) -> Result<Next> {
        match (std::mem::replace(&mut self.stage, Stage::Start), answers) {
            (Stage::Fit, Some(answers)) => {
                self.summaries = Some(summaries(answers));
                Ok(self.begin_climb())
            }
            (Stage::Climb(newton), Some(answers)) => self.climbed(*newton, answers),
            (Stage::Rescue, Some(answers)) => self.rescued(summaries(answers)),
            (Stage::Probe(weigh), Some(answers)) => Ok(self.probed(*weigh, answers)),
            (Stage::Weigh(weigh), Some(answers)) => self.weighed(weigh, answers),
            (Stage::Again(again), answers) => self.again(*again, answers),
            // The shards' own evidences are only computed where they were asked for.
            _ if matches!(self.setting.options.local, Local::Auto | Local::None) => {
                Ok(self.begin_climb())
            }
            _ => {
                self.stage = Stage::Fit;
                Ok(Next::Ask(self.setting.fit()))
            }
        }
    }
}
