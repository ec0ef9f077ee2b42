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
    Agreement, Combination, CombineDiagnostics, Fits, Next, PosteriorDraws, Setting, homogeneity,
    leave_one_out, rank,
};
use crate::estimate::search::{Heard, Settings, Wish};
use crate::estimate::{Search, Weighted};
use crate::math::{Matrix, stream};
use crate::model::{Coordinates, unbounded};
use crate::question::{Answers, Expand, Weigh};
use crate::study::{Local, Points};
use crate::target::Expansion;
use crate::{Level, Result, Warning};

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
    fits: Option<Fits>,
    agreement: Vec<Agreement>,
    /// Whether columns determine others, once a curvature has told.
    rank: Option<Option<Warning>>,
}

enum Stage {
    Start,
    Fit,
    Search(Box<Searching>),
    Again(Box<Again>),
}

/// A search and what it is waiting for.
struct Searching {
    search: Search,
    asked: Asked,
    /// log f_s of each of the final draws, shard by shard, if it will be needed.
    by_shard: Option<Vec<Vec<f64>>>,
}

/// What was asked last.
enum Asked {
    Expand(Expand),
    Weigh(Weigh),
}

impl Exact {
    pub(super) fn new(setting: Setting) -> Exact {
        Exact { setting, stage: Stage::Start, fits: None, agreement: Vec::new(), rank: None }
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
        self.go_on(search, None, None)
    }

    /// Tells the search what the shards said, and asks them what it wants next. `by_shard` is log f_s of the
    /// draws so far, if it will be needed.
    fn go_on(
        &mut self,
        mut search: Search,
        mut by_shard: Option<Vec<Vec<f64>>>,
        heard: Option<Heard>,
    ) -> Result<Next> {
        let asked = match search.next(heard)? {
            Wish::Expand(points) => {
                let (count, d) = (points.len(), self.setting.model.dim());
                let thetas = Matrix::from_rows(count, d, points.concat());
                Asked::Expand(Expand(self.setting.points(thetas)))
            }
            Wish::Weigh(thetas) => {
                // Draws that the search has given up are of no use to it, and of none here.
                if search.draws() == 0 {
                    by_shard = None;
                }
                Asked::Weigh(Weigh(self.setting.points(thetas)))
            }
            Wish::Done => return self.finish(search, by_shard),
        };
        let question = match &asked {
            Asked::Expand(question) => question.clone().into(),
            Asked::Weigh(question) => question.clone().into(),
        };
        self.stage = Stage::Search(Box::new(Searching { search, asked, by_shard }));
        Ok(Next::Ask(question))
    }

    fn heard(&mut self, talk: Searching, answers: Answers) -> Result<Next> {
        let Searching { search, asked, mut by_shard } = talk;
        match asked {
            Asked::Expand(question) => {
                let (mut sums, shards) = answers.sum(&question)?;
                self.note_rank(&question, &sums[0]);
                let heard = Heard::Expansions(sums.remove(0));
                let next = self.go_on(search, by_shard, Some(heard))?;
                if let Some(shards) = shards {
                    self.compare(&question, &shards);
                }
                Ok(next)
            }
            Asked::Weigh(question) => {
                let (mut sums, shards) = answers.sum(&question)?;
                if self.setting.extras.leave_one_out {
                    leave_one_out::keep(&mut by_shard, shards)?;
                }
                self.go_on(search, by_shard, Some(Heard::Values(sums.remove(0))))
            }
        }
    }

    /// Sees whether columns determine others, at the first point that has a curvature.
    fn note_rank(&mut self, asked: &Expand, sums: &[Expansion]) {
        let finite = |at: &Expansion| at.value.is_finite();
        if let (None, Some(k)) = (&self.rank, sums.iter().position(finite)) {
            let mut curvature = sums[k].hessian.clone();
            curvature.scale(-1.0);
            let priors = rank::prior_curvature(&self.setting, asked.0[0].thetas.row(k), 1.0);
            self.rank = Some(rank::rank_note(&self.setting, &curvature, &priors));
        }
    }

    /// Compares the shards with each other at the best peak, if this round of expansions found it.
    fn compare(&mut self, asked: &Expand, shards: &[Vec<Vec<Expansion>>]) {
        let Stage::Search(talk) = &self.stage else { return };
        let (Some(number), Some(best), Some(shares)) =
            (talk.search.new_best(), talk.search.best(), self.setting.shares())
        else {
            return;
        };
        let (coordinates, theta) = (talk.search.coordinates(), asked.0[0].thetas.row(number));
        let mut own: Vec<Expansion> = shards
            .iter()
            .zip(shares)
            .map(|(shard, share)| coordinates.score(&best.theta, theta, &shard[0][number], share))
            .collect();
        self.agreement = self.setting.compare_scores(&mut own);
    }

    fn finish(&mut self, search: Search, by_shard: Option<Vec<Vec<f64>>>) -> Result<Next> {
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
        let evidence = Box::new(match self.fits.take() {
            Some(fits) => evidence.beside(fits),
            None => evidence,
        });
        let left = self.setting.options.rounds.saturating_sub(newton + weigh);
        if evidence.left_out.is_some() && left >= Again::ROUNDS {
            return self.again(Again::new(evidence), None);
        }
        Ok(Next::Done(leave_one_out::warned(evidence)))
    }

    /// Draws for the shards whose absence the draws at hand say too little about.
    fn again(&mut self, again: Again, answers: Option<Answers>) -> Result<Next> {
        let (next, again) = again.next(&self.setting, answers)?;
        if let Some(again) = again {
            self.stage = Stage::Again(Box::new(again));
        }
        Ok(next)
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
    fn next(&mut self, answers: Option<Answers>) -> Result<Next> {
        match (std::mem::replace(&mut self.stage, Stage::Start), answers) {
            (Stage::Fit, Some(answers)) => {
                self.fits = Some(Fits::of(answers)?);
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

    fn rounds_left(&self) -> u64 {
        match &self.stage {
            // Eight steps to a peak, a look around it, two rounds of draws: what well-behaved models take.
            Stage::Start | Stage::Fit => 11,
            Stage::Search(talk) => match talk.search.rounds() {
                (steps, 0) => 11_u64.saturating_sub(steps as u64).max(2),
                _ => 1,
            },
            Stage::Again(_) => 1,
        }
    }
}
