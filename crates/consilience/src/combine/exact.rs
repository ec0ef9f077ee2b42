//! Exact up to Monte Carlo error, in a few rounds.
//!
//! Where there is one peak for sure, each shard first sends the parabola that its own likelihood is like at its own
//! peak, and the peak of their sum is where the search begins.
//! Rounds of expansions find the peaks of the full posterior: every shard sends log f_s, its gradient and
//! Hessian (and third derivatives, where these are cheap) at the points where the climbs are, and their sums are those
//! of all the data. Log densities at points along the axes of the curvature tell to which sides the posterior falls
//! slowly. Then importance rounds: draws θ_k from a mixture g over the peaks go out, each shard returns log f_s(θ_k),
//! and
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
use crate::estimate::search::{Heard, PointSet, Settings, Wish};
use crate::estimate::{Search, Weighted};
use crate::math::{Matrix, stream};
use crate::model::{Coordinates, Model, unbounded};
use crate::question::cubic::MOST_PARAMETERS;
use crate::question::{Answers, Cubic, Expand, Locate, Points, Question, Weigh};
use crate::study::{EvidenceOptions, Local, Schedule};
use crate::target::Expansion;
use crate::{Error, Level, Result, Warning, study};
use std::sync::Arc;

/// The share of the posterior beyond which a second peak is worth saying.
const WORTH_SAYING: f64 = 0.01;

/// Half the squared Newton decrement at which the mode is near enough: the importance rounds take
/// care of the rest.
const TOLERANCE: f64 = 1e-6;

/// Half a squared Newton decrement at which a mode was not reached: nats that it may be below the peak.
const REACHED: f64 = 1e-2;

/// Numbers in all rows beyond which a log density costs so much that few draws are tried first, and how many then.
/// A posterior of so many rows is so nearly normal that even the fewest leave hardly an error.
const COSTLY: [(f64, usize); 2] = [(1e8, 256), (2e6, 512)];

/// Multiplications beyond which third derivatives cost more than the round that they save.
const CHEAP: f64 = 1e9;

/// The combination by climbs and importance rounds.
pub(super) struct Exact {
    setting: Setting,
    stage: ExactStage,
    fits: Option<Fits>,
    agreement: Vec<Agreement>,
    /// Whether columns determine others, once a curvature has told.
    rank: Option<Option<Warning>>,
    /// Whether some draws are from the prior where the data say little.
    from_prior: bool,
}

enum ExactStage {
    Start,
    Fit,
    /// Where the shards think the peak is, if that did not ride on an earlier round.
    Locate(Locate),
    Search(Box<Searching>),
    Again(Box<Again>),
}

/// A search and what it is waiting for.
struct Searching {
    search: Search,
    asked: AskedFor,
    /// log f_s of each of the final draws, shard by shard, if it will be needed.
    by_shard: Option<Vec<Vec<f64>>>,
}

/// Every shard's expansions at the points that were asked about.
type Each<'a> = (&'a Points, Vec<Vec<Expansion>>);

/// What was asked last.
enum AskedFor {
    Expand(Expand),
    Weigh(Weigh),
    Cubic(Cubic),
    Ahead { expand: Option<Expand>, draws: Weigh, probes: Option<Weigh> },
}

impl AskedFor {
    fn questions(&self) -> Vec<Question> {
        match self {
            AskedFor::Expand(question) => vec![question.clone().into()],
            AskedFor::Weigh(question) => vec![question.clone().into()],
            AskedFor::Cubic(question) => vec![question.clone().into()],
            AskedFor::Ahead { expand, draws, probes } => {
                let expand = expand.iter().map(|question| question.clone().into());
                let weigh = std::iter::once(draws).chain(probes);
                expand.chain(weigh.map(|question| question.clone().into())).collect()
            }
        }
    }
}

impl Exact {
    pub(super) fn new(setting: Setting) -> Exact {
        Exact {
            setting,
            stage: ExactStage::Start,
            fits: None,
            agreement: Vec::new(),
            rank: None,
            from_prior: true,
        }
    }

    /// The same without draws from the prior: it may be so wide that they are far from any posterior, where sites
    /// do not answer.
    pub(super) fn near_peak(setting: Setting) -> Exact {
        Exact { from_prior: false, ..Exact::new(setting) }
    }

    fn begin(&mut self) -> Result<Next> {
        if self.setting.located.is_none() && is_sought(&self.setting.model, &self.setting.options) {
            let start = self.setting.model.start();
            let thetas = Matrix::from_rows(1, start.len(), start);
            let question = Locate(self.setting.points(thetas));
            self.stage = ExactStage::Locate(question.clone());
            return Ok(Next::Ask(vec![question.into()]));
        }
        self.begin_search()
    }

    fn begin_search(&mut self) -> Result<Next> {
        let (model, options) = (&self.setting.model, &self.setting.options);
        let settings = Settings {
            draws: options.draws,
            se_target: options.se_target,
            rounds: options.rounds,
            even: options.points == study::Points::Sobol,
            mirrored: true,
            few: self.few_draws(),
            single: model.has_one_peak(),
            from_prior: self.from_prior,
            noise: model.noise(),
            tolerance: TOLERANCE,
        };
        // The centre is no shard: it has the number after the last.
        let rng = stream(options.seed, model.stream(), u64::MAX, "exact");
        let coordinates = Coordinates::new(&model.free_priors(), 1.0);
        let search = Search::new(coordinates, model.start(), settings, rng);
        let search = search.from_near(self.setting.peak(), self.thirds_are_cheap());
        self.go_on(search, None, None, None)
    }

    /// Whether third derivatives are worth their work. That depends on the data alone, so that every engine does the
    /// same.
    fn thirds_are_cheap(&self) -> bool {
        let Setting { model, surveys, .. } = &self.setting;
        let rows: f64 = surveys.iter().map(|s| s.rows).sum();
        let (d, each) = (model.dim() as f64, self.full_columns());
        self.setting.located.is_some()
            && model.dim() <= MOST_PARAMETERS
            && d * rows * each * each < CHEAP
    }

    /// How many columns are not 0 in a row, on average over observations.
    fn full_columns(&self) -> f64 {
        let full: f64 = self.setting.surveys.iter().flat_map(|s| &s.nonzero).sum();
        full / self.setting.observations().max(1.0)
    }

    /// How many draws to begin with where a thousand are much work: what shards say of their rows, again.
    fn few_draws(&self) -> Option<usize> {
        let rows: f64 = self.setting.surveys.iter().map(|s| s.rows).sum();
        let full = rows * self.full_columns();
        COSTLY.iter().find(|(numbers, _)| full > *numbers).map(|(_, draws)| *draws)
    }

    fn usual_rounds(&self) -> u64 {
        if self.setting.located.is_some() { 3 } else { 8 }
    }

    /// A question about the log density at these points.
    fn weigh(&self, set: PointSet) -> Weigh {
        let mut points = self.setting.points(set.thetas);
        points[0].rule = set.rule;
        Weigh(points)
    }

    /// A question about the expansions at these points.
    fn expand(&self, points: &[Vec<f64>]) -> Expand {
        let d = self.setting.model.dim();
        let thetas = Matrix::from_rows(points.len(), d, points.concat());
        Expand(self.setting.points(thetas))
    }

    /// Tells the search what the shards said, and asks them what it wants next. `by_shard` is log f_s of the
    /// draws so far, if it will be needed; `each` are the shards' own expansions, where they were asked for.
    fn go_on(
        &mut self,
        mut search: Search,
        mut by_shard: Option<Vec<Vec<f64>>>,
        heard: Option<Heard>,
        each: Option<Each<'_>>,
    ) -> Result<Next> {
        let wish = search.next(heard)?;
        if let Some(each) = each {
            self.compare(&search, each);
        }
        let asked = match wish {
            Wish::Expand(points) => AskedFor::Expand(self.expand(&points)),
            Wish::Weigh(set) => {
                // Draws that the search has given up are of no use to it, and of none here.
                if search.draws() == 0 {
                    by_shard = None;
                }
                AskedFor::Weigh(self.weigh(set))
            }
            Wish::Cubic(theta) => {
                let thetas = Matrix::from_rows(1, theta.len(), theta);
                AskedFor::Cubic(Cubic(self.setting.points(thetas)))
            }
            Wish::Ahead { expand, draws, probes } => {
                by_shard = None;
                let expand = expand.map(|theta| self.expand(&[theta]));
                let probes = probes.map(|set| self.weigh(set));
                AskedFor::Ahead { expand, draws: self.weigh(draws), probes }
            }
            Wish::Done => return self.finish(search, by_shard),
        };
        let questions = asked.questions();
        self.stage = ExactStage::Search(Box::new(Searching { search, asked, by_shard }));
        Ok(Next::Ask(questions))
    }

    fn heard(&mut self, talk: Searching, answers: Vec<Answers>) -> Result<Next> {
        let Searching { search, asked, mut by_shard } = talk;
        let mut answers = answers.into_iter();
        let mut next = || answers.next().ok_or_else(|| Error::numeric("a question has no answer"));
        match asked {
            AskedFor::Expand(question) => {
                let (mut sums, shards) = next()?.sum(&question)?;
                self.note_rank(question.0[0].rows(), &sums[0]);
                let heard = Heard::Expansions(sums.remove(0));
                let own = |shards: Vec<Vec<Vec<Expansion>>>| shards.into_iter().flatten().collect();
                let each = shards.map(|shards| (&question.0[0], own(shards)));
                self.go_on(search, by_shard, Some(heard), each)
            }
            AskedFor::Weigh(question) => {
                let (mut sums, shards) = next()?.sum(&question)?;
                if self.setting.extras.leave_one_out {
                    leave_one_out::keep(&mut by_shard, shards)?;
                }
                self.go_on(search, by_shard, Some(Heard::Values(sums.remove(0))), None)
            }
            AskedFor::Cubic(question) => {
                let (mut sums, shards) = next()?.sum(&question)?;
                let (at, thirds) = sums.remove(0);
                self.note_rank(question.0[0].rows(), std::slice::from_ref(&at));
                let own =
                    |shard: Vec<(Expansion, _)>| shard.into_iter().map(|(at, _)| at).collect();
                let each = shards.map(|s| (&question.0[0], s.into_iter().map(own).collect()));
                self.go_on(search, by_shard, Some(Heard::Cubic(at, thirds)), each)
            }
            AskedFor::Ahead { expand, draws, probes } => {
                let (mut at, mut each) = (None, None);
                if let Some(question) = &expand {
                    let (mut sums, shards) = next()?.sum(question)?;
                    self.note_rank(question.0[0].rows(), &sums[0]);
                    at = sums.remove(0).pop();
                    let own = |shards: Vec<Vec<_>>| shards.into_iter().flatten().collect();
                    each = shards.map(|shards| (&question.0[0], own(shards)));
                }
                let (mut values, shards) = next()?.sum(&draws)?;
                if self.setting.extras.leave_one_out {
                    leave_one_out::keep(&mut by_shard, shards)?;
                }
                let around = match &probes {
                    Some(question) => Some(next()?.sum(question)?.0.remove(0)),
                    None => None,
                };
                let heard = Heard::Ahead(at, values.remove(0), around);
                self.go_on(search, by_shard, Some(heard), each)
            }
        }
    }

    /// Sees whether columns determine others, at the first point that has a curvature.
    fn note_rank<'a>(&mut self, points: impl Iterator<Item = &'a [f64]>, sums: &[Expansion]) {
        let mut finite = points.zip(sums).filter(|(_, at)| at.value.is_finite());
        if let (None, Some((theta, at))) = (&self.rank, finite.next()) {
            let mut curvature = at.hessian.clone();
            curvature.scale(-1.0);
            let priors = rank::prior_curvature(&self.setting, theta, 1.0);
            self.rank = Some(rank::rank_note(&self.setting, &curvature, &priors));
        }
    }

    /// Compares the shards with each other at the best peak, if this round of expansions found it.
    fn compare(&mut self, search: &Search, (asked, shards): Each<'_>) {
        let (Some(number), Some(best), Some(shares)) =
            (search.new_best(), search.best(), self.setting.shares())
        else {
            return;
        };
        let (coordinates, theta) = (search.coordinates(), asked.thetas.row(number));
        let mut own: Vec<Expansion> = shards
            .iter()
            .zip(shares)
            .map(|(shard, share)| coordinates.score(&best.theta, theta, &shard[number], share))
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
            self.stage = ExactStage::Again(Box::new(again));
        }
        Ok(next)
    }
}

/// Whether shards are asked where they think a model's peak is: where there is one for sure, and rounds are to be few.
pub(crate) fn is_sought(model: &Model, options: &EvidenceOptions) -> bool {
    options.schedule != Schedule::Gentle && model.has_one_peak() && model.dim() > 0
}

/// The importance rounds may succeed from a point near the mode, and say so if not.
fn not_reached(decrement: f64, rounds: usize) -> Option<Warning> {
    (decrement > REACHED).then(|| {
        let s = if rounds == 1 { "" } else { "s" };
        // At least a hundredth.
        let digits = if decrement < 10.0 { 2 } else { 0 };
        let below = match decrement.is_finite() {
            true => format!(" (up to {decrement:.digits$} nats below it)"),
            false => String::new(),
        };
        let message =
            format!("the mode of the posterior was not reached within {rounds} round{s}{below}");
        let advice =
            "allow more `rounds` under [evidence], or standardise the columns with scale()";
        let warning = Warning::new(Level::Caution, "mode-not-reached", message, advice);
        if decrement.is_finite() { warning.value(decrement) } else { warning }
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
    fn next(&mut self, mut answers: Vec<Answers>) -> Result<Next> {
        match std::mem::replace(&mut self.stage, ExactStage::Start) {
            ExactStage::Fit => {
                let answers =
                    answers.pop().ok_or_else(|| Error::numeric("no shard has answered"))?;
                self.fits = Some(Fits::of(answers)?);
                self.begin()
            }
            ExactStage::Locate(question) => {
                let answers =
                    answers.pop().ok_or_else(|| Error::numeric("no shard has answered"))?;
                let (mut found, _) = answers.sum(&question)?;
                self.setting.located = Some(Arc::new(found.remove(0)));
                self.begin_search()
            }
            ExactStage::Search(talk) => self.heard(*talk, answers),
            ExactStage::Again(again) => self.again(*again, answers.pop()),
            // The shards' own evidences are only computed where they were asked for.
            _ if matches!(self.setting.options.local, Local::Auto | Local::None) => self.begin(),
            _ => {
                self.stage = ExactStage::Fit;
                Ok(Next::Ask(vec![self.setting.fit()]))
            }
        }
    }

    fn rounds_left(&self) -> u64 {
        match &self.stage {
            // A point near the peak, a step with all that rides on it, draws: what well-behaved models take. Without
            // such a point there are five more steps.
            ExactStage::Start | ExactStage::Fit | ExactStage::Locate(_) => self.usual_rounds(),
            ExactStage::Search(talk) => match talk.search.rounds() {
                (steps, 0) => self.usual_rounds().saturating_sub(steps as u64).max(2),
                _ => 1,
            },
            ExactStage::Again(_) => 1,
        }
    }
}
