//! Exact up to Monte Carlo error, in a few rounds.
//!
//! Rounds of expansions find the peaks of the full posterior: every shard sends log f_s, its gradient and
//! Hessian at the points where the climbs are, and their sums are those of all the data. One round at points
//! along the axes of the curvature tells to which sides the posterior falls slowly. Then importance rounds:
//! draws θ_k from a mixture g over the peaks go out, each shard returns log f_s(θ_k), and
//!
//! ```text
//! log p(y) ≈ log mean_k exp( Σ_s log f_s(θ_k) − log g(θ_k) ),
//! ```
//!
//! which is unbiased for p(y) whatever the shape of the posterior and however the data are split. How the
//! search goes is [`Search`]'s matter; here its questions become questions to shards.

use super::leave_one_out::Again;
use super::{
    Agreement, Combination, CombineDiagnostics, Next, PosteriorDraws, Setting, homogeneity,
    leave_one_out, rank, sum_of_weights, summaries,
};
use crate::estimate::search::{Heard, Settings, Wish};
use crate::estimate::{Search, Weighted};
use crate::math::{Matrix, stream};
use crate::model::{Coordinates, unbounded};
use crate::question::{Answer, Question, Summary};
use crate::study::{Local, Points};
use crate::target::Expansion;
use crate::{Level, Result, Warning};
use std::sync::Arc;

/// The share of the posterior beyond which a second peak is worth saying.
const WORTH_SAYING: f64 = 0.01;

/// Half the squared Newton decrement at which the mode is near enough: the importance rounds take
/// care of the rest.
const TOLERANCE: f64 = 1e-6;

/// Half a squared Newton decrement at which a mode was not reached: nats that it may be below the peak.
const REACHED: f64 = 1e-3;

/// The combination by climbs and importance rounds.
pub(super) struct Exact {
    setting: Setting,
    stage: Stage,
    summaries: Option<Vec<Summary>>,
    agreement: Vec<Agreement>,
    /// Whether columns determine others, once a curvature has told.
    rank: Option<Option<Warning>>,
}

enum Stage {
    Start,
    Fit,
    Search(Box<Talk>),
    Again(Box<Again>),
}

/// A search and what it is waiting for.
struct Talk {
    search: Search,
    /// The points of the last question, if it was for expansions.
    asked: Vec<Vec<f64>>,
    /// log f_s of each of the final draws, shard by shard, if it will be needed.
    by_shard: Option<Vec<Vec<f64>>>,
}

impl Exact {
    pub(super) fn new(setting: Setting) -> Exact {
        Exact { setting, stage: Stage::Start, summaries: None, agreement: Vec::new(), rank: None }
    }

    fn begin(&mut self) -> Result<Next> {
        let (model, options) = (&self.setting.model, &self.setting.options);
        let settings = Settings {
            draws: options.draws,
            se_target: options.se_target,
            rounds: options.rounds,
            even: options.points == Points::Sobol,
            single: model.has_one_peak(),
            noise: model.noise(),
            tolerance: TOLERANCE,
        };
        // The centre is no shard: it has the number after the last.
        let rng = stream(options.seed, model.stream(), u64::MAX, "exact");
        let coordinates = Coordinates::new(&model.free_priors(), 1.0);
        let search = Search::new(coordinates, model.start(), settings, rng);
        self.go_on(Talk { search, asked: Vec::new(), by_shard: None }, None)
    }

    /// Tells the search what the shards said, and asks them what it wants next.
    fn go_on(&mut self, mut talk: Talk, heard: Option<Heard>) -> Result<Next> {
        let (model, share) = (self.setting.model.clone(), self.setting.share);
        let question = match talk.search.next(heard)? {
            Wish::Expand(points) => {
                let data = points.concat();
                let thetas = Arc::new(Matrix::from_rows(points.len(), model.dim(), data));
                talk.asked = points;
                Question::Expand { model, share, thetas }
            }
            Wish::Weigh(thetas) => {
                // Draws that the search has given up are of no use to it, and of none here.
                if talk.search.draws() == 0 {
                    talk.by_shard = None;
                }
                Question::Weigh { model, share, thetas }
            }
            Wish::Done => return self.finish(talk),
        };
        self.stage = Stage::Search(Box::new(talk));
        Ok(Next::Ask(question))
    }

    fn heard(&mut self, mut talk: Talk, answers: Vec<Answer>) -> Result<Next> {
        if matches!(answers.first(), Some(Answer::Expansions(_))) {
            let shards: Vec<Vec<Expansion>> = answers.into_iter().map(expansions).collect();
            let sum = |k: usize| {
                let mut sum = Expansion::zeros(self.setting.model.dim());
                shards.iter().for_each(|shard| sum.add(&shard[k]));
                sum
            };
            let sums: Vec<Expansion> = (0..talk.asked.len()).map(sum).collect();
            let asked = std::mem::take(&mut talk.asked);
            let finite = |at: &Expansion| at.value.is_finite();
            if let (None, Some(k)) = (&self.rank, sums.iter().position(finite)) {
                let mut curvature = sums[k].hessian.clone();
                curvature.scale(-1.0);
                let priors = rank::prior_curvature(&self.setting, &asked[k], 1.0);
                self.rank = Some(rank::rank_note(&self.setting, &curvature, &priors));
            }
            let next = self.go_on_from(talk, sums, &asked, &shards)?;
            return Ok(next);
        }
        if self.setting.extras.leave_one_out {
            leave_one_out::keep(&mut talk.by_shard, &answers);
        }
        let count = match answers.first() {
            Some(Answer::Weights(weights)) => weights.len(),
            _ => 0,
        };
        self.go_on(talk, Some(Heard::Values(sum_of_weights(answers, count))))
    }

    /// Goes on after a round of expansions. At the best peak, the shards are compared with each other.
    fn go_on_from(
        &mut self,
        talk: Talk,
        sums: Vec<Expansion>,
        asked: &[Vec<f64>],
        shards: &[Vec<Expansion>],
    ) -> Result<Next> {
        let next = self.go_on(talk, Some(Heard::Expansions(sums)))?;
        let Stage::Search(talk) = &self.stage else { return Ok(next) };
        let (Some(number), Some(best)) = (talk.search.new_best(), talk.search.best()) else {
            return Ok(next);
        };
        let coordinates = talk.search.coordinates();
        let (theta, shares) = (&asked[number], self.setting.shares());
        let mut own: Vec<Expansion> = shards
            .iter()
            .zip(shares)
            .map(|(shard, share)| coordinates.score(&best.theta, theta, &shard[number], share))
            .collect();
        self.agreement = self.setting.compare_scores(&mut own);
        Ok(next)
    }

    fn finish(&mut self, talk: Talk) -> Result<Next> {
        let Talk { search, by_shard, .. } = talk;
        if let Some(j) = search.runaway() {
            return Err(unbounded::infinite(self.setting.names()[j]));
        }
        let mut warnings: Vec<Warning> = self.rank.clone().flatten().into_iter().collect();
        warnings.extend(homogeneity::warnings(&self.agreement, &self.setting.names()));
        let ((newton, weigh), peaks) = (search.rounds(), search.masses());
        warnings.extend(search.best().and_then(|best| not_reached(best.decrement, newton)));
        warnings.extend(several_peaks(&peaks, &self.setting.names()));
        let weighted: Weighted = search.into_weighted().expect("there are draws at the end");
        let (seen, count) = (weighted.summarise(), weighted.len());
        let options = &self.setting.options;
        let advice =
            "allow more `draws` and `rounds` under [evidence], or use a prior with lighter tails";
        warnings.extend(seen.warnings(advice));
        let se = seen.log_z.se.unwrap_or(0.0);
        if se > options.se_target {
            let message = format!(
                "the standard error {se:.4} is over se_target = {} after {count} draws",
                options.se_target
            );
            warnings.push(Warning::new(Level::Caution, "se-target", message, advice).value(se));
        }
        let mut diagnostics = CombineDiagnostics::importance(newton, weigh, &seen, count);
        // One peak goes without saying.
        diagnostics.peaks = if peaks.len() > 1 { peaks } else { Vec::new() };
        let mut evidence = self.setting.by_importance(seen, diagnostics, warnings);
        evidence.agreement = std::mem::take(&mut self.agreement);
        if let Some(by_shard) = &by_shard {
            let left_out = leave_one_out::left_out(&self.setting, &weighted, by_shard)?;
            evidence.left_out = Some(left_out);
        }
        evidence.draws = Some(PosteriorDraws::Weighted(weighted));
        let evidence = Box::new(match self.summaries.take() {
            Some(summaries) => evidence.beside(summaries),
            None => evidence,
        });
        let left = self.setting.options.rounds.saturating_sub(newton + weigh);
        if evidence.left_out.is_some() && left >= Again::ROUNDS {
            return self.again(Again::new(evidence), None);
        }
        Ok(Next::Done(leave_one_out::warned(evidence)))
    }

    /// Draws for the shards whose absence the draws at hand say too little about.
    fn again(&mut self, again: Again, answers: Option<Vec<Answer>>) -> Result<Next> {
        let (next, again) = again.next(&self.setting, answers)?;
        if let Some(again) = again {
            self.stage = Stage::Again(Box::new(again));
        }
        Ok(next)
    }
}

fn expansions(answer: Answer) -> Vec<Expansion> {
    match answer {
        Answer::Expansions(found) => found,
        _ => unreachable!("the session checks kinds"),
    }
}

/// The importance rounds may succeed from a point near the mode, and say so if not.
fn not_reached(decrement: f64, rounds: usize) -> Option<Warning> {
    (decrement > REACHED).then(|| {
        let message = format!(
            "the mode of the posterior was not reached within {rounds} rounds (up to {decrement:.1e} nats below it)"
        );
        let advice =
            "allow more `rounds` under [evidence], or standardise the columns with scale()";
        Warning::new(Level::Caution, "mode-not-reached", message, advice).value(decrement)
    })
}

/// Notes that the posterior has several peaks, if another one than the largest holds enough to be named.
fn several_peaks(peaks: &[crate::estimate::search::Peak], names: &[&str]) -> Option<Warning> {
    let [first, second, ..] = peaks else { return None };
    (second.mass > WORTH_SAYING).then(|| {
        let place = |theta: &[f64]| -> String {
            let each = names.iter().zip(theta).take(4).map(|(n, t)| format!("{n} = {t:.3}"));
            each.collect::<Vec<_>>().join(", ")
        };
        let message = format!(
            "the posterior has several peaks: {:.1}% of it is around {}, {:.1}% around {}",
            100.0 * first.mass,
            place(&first.theta),
            100.0 * second.mass,
            place(&second.theta)
        );
        let advice = "means and standard deviations say little here; look at the draws (--posterior), and whether prior and data are at odds";
        Warning::new(Level::Note, "several-peaks", message, advice).value(second.mass)
    })
}

impl Combination for Exact {
    fn next(&mut self, answers: Option<Vec<Answer>>) -> Result<Next> {
        match (std::mem::replace(&mut self.stage, Stage::Start), answers) {
            (Stage::Fit, Some(answers)) => {
                self.summaries = Some(summaries(answers));
                self.begin()
            }
            (Stage::Search(talk), Some(answers)) => self.heard(*talk, answers),
            (Stage::Again(again), answers) => self.again(*again, answers),
            // The shards' own evidences are only computed where they were asked for.
            _ if matches!(self.setting.options.local, Local::Auto | Local::None) => self.begin(),
            _ => {
                self.stage = Stage::Fit;
                Ok(Next::Ask(self.setting.fit()))
            }
        }
    }
}
