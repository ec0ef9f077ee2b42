//! The evidence of a model that is not Gaussian under a g-prior or a mixture of them.
//!
//! The metric is the information about the coefficients where all of them are 0 ([`NullSearch`] finds the intercept
//! there): with H the likelihood's curvature, Λ = H_ββ − H_βα H_αβ/H_αα, and β | g ~ N(0, gΛ⁻¹). The intercept's
//! prior is that of the level at the columns' means, c = H_αβ/H_αα. In δ = L'β, Λ = LL', the prior is N(0, g)
//! for each coordinate by itself, so that for every g the evidence is one that [`Exact`] knows: log-concave, with one
//! peak. It asks about (δ, level); shards are asked about (β, intercept), and what they say is brought back.
//!
//! What is left is the integral over v, with g = g(v). The parabola that the likelihood is like makes an evidence
//! Z̃(g) in closed form. It says where nodes have to be, and log Z − log Z̃, which changes slowly, is interpolated
//! between them: so only its error, and that of the draws at each node, is in the result.

use super::exact::{Exact, is_sought};
use super::frame::{Frame, NodeQuestion, likelihood};
use super::ground_of;
use super::null_point::NullSearch;
use super::over_g::{grid, integral};
use super::{Combination, CombineDiagnostics, Evidence, Next, PosteriorDraws, Setting};
use crate::estimate::{Estimate, Weighted};
use crate::math::proposal::Kinship;
use crate::math::{Matrix, log_sum_exp};
use crate::model::{Family, GSpread, Joint, Model};
use crate::question::{Answers, Climb, Expand, Locate, Points, Question};
use crate::study::Schedule;
use crate::target::Expansion;
use crate::{Error, Level, Result};
use libm::log;
use std::f64::consts::LN_2;
use std::sync::Arc;

/// Nodes over g.
const NODES: usize = 13;

/// The fewest rounds of a node: a step that draws ride on, after one before it.
const LEAST_ROUNDS: usize = 2;

/// How far below its peak the integrand over v counts, in nats.
const LOW: f64 = 14.0;

/// Where g is large its likelihood goes as a whole power of √g, at most the first: by this slope over v, that is told
/// from the 0th.
const RISING: f64 = 0.25;

/// From here on g is large, in units in which the information without coefficients is 1.
const LARGE: f64 = 100.0;

/// Over how much of v that slope is taken at least: evidences have errors.
const LEVER: f64 = 4.0;

/// The combination of one model.
pub(super) struct GMixture {
    setting: Setting,
    stage: Stage,
    /// Rounds that it took before there were nodes.
    rounds: usize,
}

enum Stage {
    Start,
    /// The information at 0, and where the peak is, unless that is known or looked for from there.
    Looking(Box<Looking>),
    /// On the way to the peak, from the information at 0.
    Climbing(Box<Climbing>),
    Nodes(Box<Nodes>),
}

/// On the way to where the coefficients are 0.
struct Looking {
    search: NullSearch,
    asked: Expand,
    locate: Option<Locate>,
}

/// The likelihood's peak is looked for by rounds, since shards are not asked for theirs.
struct Climbing {
    /// The information at 0.
    null: Expansion,
    climb: Climb,
    asked: Expand,
}

/// The models at every node, and what each waits for.
struct Nodes {
    frame: Frame,
    spread: GSpread,
    /// Eigenvalues and slopes of the parabola: see [`Nodes::approximate`].
    parabola: Vec<(f64, f64)>,
    nodes: Vec<GNode>,
    /// The greatest log likelihood that was met.
    best: f64,
}

struct GNode {
    v: f64,
    model: Arc<Model>,
    machine: Exact,
    asked: Vec<NodeQuestion>,
    evidence: Option<Box<Evidence>>,
}

/// Whether this is how a model is combined.
pub(super) fn suits(setting: &Setting) -> bool {
    setting.joint.group().is_some() && !setting.model.is_gaussian()
}

impl GMixture {
    pub(super) fn new(setting: Setting) -> GMixture {
        GMixture { setting, stage: Stage::Start, rounds: 0 }
    }

    fn begin(&mut self) -> Result<Next> {
        let model = &self.setting.model;
        let (_, intercept) = ground_of(model, &self.setting.joint)?;
        let search = NullSearch::new(model, intercept, self.setting.observations());
        let asks = self.setting.located.is_none() && self.asks_shards();
        let locate = asks.then(|| Locate(self.at(model.start())));
        let asked = Expand(self.setting.points(search.points()));
        Ok(self.look(Looking { search, asked, locate }))
    }

    fn look(&mut self, looking: Looking) -> Next {
        let mut questions: Vec<Question> = vec![looking.asked.clone().into()];
        questions.extend(looking.locate.clone().map(Question::from));
        self.stage = Stage::Looking(Box::new(looking));
        self.rounds += 1;
        Next::Ask(questions)
    }

    fn at(&self, theta: Vec<f64>) -> Vec<Points> {
        self.setting.points(Matrix::from_rows(1, theta.len(), theta))
    }

    /// Takes in what shards say where the coefficients are to be 0, and goes on to that place.
    fn looked(&mut self, mut looking: Looking, mut answers: Vec<Answers>) -> Result<Next> {
        let missing = || Error::numeric("no shard has answered");
        if let Some(locate) = looking.locate.take() {
            let (mut found, _) = answers.pop().ok_or_else(missing)?.sum(&locate)?;
            self.setting.located = found.pop().map(Arc::new);
        }
        let (sums, _) = answers.pop().ok_or_else(missing)?.sum(&looking.asked)?;
        let here = looking.search.theta().to_vec();
        let asked = &looking.asked.0[0].thetas;
        let plain = |(k, at)| likelihood(&self.setting.model, asked.row(k), at);
        let at = sums.into_iter().flatten().enumerate().map(plain).collect();
        if let Some(null) = looking.search.heard(at)? {
            let first = looking.search.is_there().then(|| null.clone());
            return self.look_for_peak(here, first, null);
        }
        if self.rounds + LEAST_ROUNDS >= self.setting.options.rounds {
            return Err(Error::numeric(
                "the model without its columns has its intercept far from the outcome's mean, because of its offset, and was not reached; allow more `rounds` under [evidence]",
            ));
        }
        looking.asked = Expand(self.setting.points(looking.search.points()));
        Ok(self.look(looking))
    }

    /// Whether shards are asked for their own peaks. A gentle schedule does without.
    fn asks_shards(&self) -> bool {
        is_sought(&self.setting.model, &self.setting.options)
    }

    /// What comes after the information at 0: the way to the peak from there, if that is not known. `first` is what the
    /// model's own likelihood is like there, if it was asked for.
    fn look_for_peak(
        &mut self,
        here: Vec<f64>,
        first: Option<Expansion>,
        null: Expansion,
    ) -> Result<Next> {
        if self.setting.located.is_some() || self.asks_shards() {
            return self.nodes(null);
        }
        let mut climb = Climb::new(here, self.setting.observations());
        if let Some(first) = first {
            climb.next();
            climb.heard(first);
        }
        self.go_on(null, climb)
    }

    /// One step more on that way, or what follows at its end.
    fn go_on(&mut self, null: Expansion, mut climb: Climb) -> Result<Next> {
        // Nodes take two rounds at least.
        let time_left = self.rounds + LEAST_ROUNDS < self.setting.options.rounds;
        let Some(theta) = climb.next().filter(|_| time_left) else {
            self.setting.located = climb.parabola().map(Arc::new);
            return self.nodes(null);
        };
        let asked = Expand(self.at(theta));
        let question = asked.clone().into();
        self.stage = Stage::Climbing(Box::new(Climbing { null, climb, asked }));
        self.rounds += 1;
        Ok(Next::Ask(vec![question]))
    }

    /// Makes the nodes of what shards said about the likelihood.
    fn nodes(&mut self, null: Expansion) -> Result<Next> {
        let (model, joint) = (&self.setting.model, &self.setting.joint);
        let frame = Frame::new(model, joint, &null)?;
        let Some((group, scale)) = joint.group() else {
            return Err(Error::numeric("there is no prior of all coefficients together"));
        };
        let p = model.dim() - 1;
        let rows = self.setting.observations();
        let spread = group.spread(rows, p, scale);
        let parabola = match &self.setting.located {
            Some(located) => frame.parabola(located),
            None => vec![(1.0, 0.0); p],
        };
        let mut all = Nodes { frame, spread, parabola, nodes: Vec::new(), best: f64::NEG_INFINITY };
        for (k, v) in all.places().into_iter().enumerate() {
            let g = spread.g(v);
            let model = Arc::new(all.frame.whitened(k, g));
            let mut own = Setting {
                model: model.clone(),
                joint: Joint::default(),
                located: None,
                ..self.setting.clone()
            };
            // Errors at several nodes average out; and what is asked ahead would need third derivatives.
            own.options.se_target *= if all.spread.fixed().is_some() { 1.0 } else { 2.0 };
            own.options.schedule = Schedule::Gentle;
            own.options.rounds = own.options.rounds.saturating_sub(self.rounds).max(LEAST_ROUNDS);
            let machine = Exact::near_peak(own);
            all.nodes.push(GNode { v, model, machine, asked: Vec::new(), evidence: None });
        }
        self.heard(all, Vec::new())
    }

    /// Hands answers on to the nodes that wait for them, and asks what they want next.
    fn heard(&mut self, mut all: Nodes, answers: Vec<Answers>) -> Result<Next> {
        let mut answers = answers.into_iter();
        let mut questions = Vec::new();
        for node in all.nodes.iter_mut().filter(|node| node.evidence.is_none()) {
            let mut own = Vec::new();
            for asked in std::mem::take(&mut node.asked) {
                let answer = answers.next();
                let answer = answer.ok_or_else(|| Error::numeric("a question has no answer"))?;
                let (answer, best) = all.frame.back(&node.model, asked, answer)?;
                all.best = all.best.max(best);
                own.push(Answers::Sum(answer));
            }
            match node.machine.next(own)? {
                Next::Done(evidence) => node.evidence = Some(evidence),
                Next::Ask(wanted) => {
                    for question in wanted {
                        let (question, asked) = all.frame.forth(question)?;
                        questions.push(question);
                        node.asked.push(asked);
                    }
                }
            }
        }
        if questions.is_empty() {
            return self.finish(all).map(|evidence| Next::Done(Box::new(evidence)));
        }
        self.stage = Stage::Nodes(Box::new(all));
        Ok(Next::Ask(questions))
    }

    fn finish(&self, all: Nodes) -> Result<Evidence> {
        let known = all.nodes.iter().filter_map(|node| node.evidence.as_ref());
        let log_zs: Vec<Estimate> = known.map(|evidence| evidence.log_z).collect();
        if all.frame.flat && does_not_end(&all, self.setting.model.family(), &log_zs) {
            return Err(Error::numeric(
                "the evidence is infinite: the columns tell the two kinds of rows apart without a miss, so that with a flat intercept the likelihood grows with g as fast as this mixture of g falls; give the intercept a proper prior, as in intercept = \"normal(0, 2.5)\", or the coefficients \"hyper-g(4)\" or a prior of their own",
            ));
        }
        let Nodes { frame, spread, parabola, nodes, .. } = all;
        let places: Vec<f64> = nodes.iter().map(|node| node.v).collect();
        let evidences: Vec<Evidence> =
            nodes.into_iter().filter_map(|node| node.evidence).map(|e| *e).collect();
        let (log_z, shares) = integral(&spread, &parabola, &places, &log_zs);
        let d = frame.ways.rows();
        let (mut mean, mut covariance) = (vec![0.0; d], Matrix::zeros(d, d));
        let means: Vec<Vec<f64>> = evidences.iter().map(|e| frame.ways.times(&e.mean)).collect();
        for (own, share) in means.iter().zip(&shares) {
            mean.iter_mut().zip(own).for_each(|(m, own)| *m += share * own);
        }
        for ((evidence, own), share) in evidences.iter().zip(&means).zip(&shares) {
            let turned = frame.ways.product(&evidence.covariance).product(&frame.ways.transpose());
            covariance.add_scaled(*share, &turned);
            let off: Vec<f64> = own.iter().zip(&mean).map(|(own, m)| own - m).collect();
            covariance.add_outer(*share, &off);
        }
        let top = (0..shares.len()).max_by(|&a, &b| shares[a].total_cmp(&shares[b])).unwrap_or(0);
        let rounds = |of: fn(&CombineDiagnostics) -> usize| {
            evidences.iter().filter_map(|e| e.diagnostics.as_ref()).map(of).max().unwrap_or(0)
        };
        let diagnostics = evidences[top].diagnostics.clone().map(|own| CombineDiagnostics {
            newton_rounds: rounds(|d| d.newton_rounds) + self.rounds,
            weigh_rounds: rounds(|d| d.weigh_rounds),
            ..own
        });
        let mut warnings = Vec::new();
        for (evidence, share) in evidences.iter().zip(&shares) {
            // What is wrong at a g that nobody believes in does not matter.
            for warning in
                evidence.warnings.iter().filter(|w| w.level < Level::Unreliable || *share > 1e-3)
            {
                if warnings.iter().all(|known: &crate::Warning| known.code != warning.code) {
                    warnings.push(warning.clone());
                }
            }
        }
        warnings.retain(|w| {
            w.code != "se-target" || log_z.se.unwrap_or(0.0) > self.setting.options.se_target
        });
        let draws = joined(&frame, evidences, &shares);
        Ok(Evidence {
            diagnostics,
            warnings,
            draws,
            ..self.setting.evidence(log_z, mean, covariance)
        })
    }
}

/// Whether the integral over g has no end under a flat level. That and p coefficients have p + 1 dimensions. The
/// likelihood of g goes as g^((k − p)/2), k being those in which the likelihood of the rows stays far out: so it rises
/// only where the columns tell the two kinds of rows apart, and then as √g, which tails that fall as fast do not bound.
fn does_not_end(all: &Nodes, family: Option<Family>, log_zs: &[Estimate]) -> bool {
    if all.spread.tail().is_none_or(|tail| tail < -0.5) {
        return false;
    }
    // Where all rows together are likelier than ½ each of them is: that tells them apart.
    let apart = family.is_some_and(Family::is_binary) && all.best > -LN_2;
    apart || rises(&all.spread, &all.nodes, log_zs)
}

/// Whether the likelihood of g rises where g is largest.
fn rises(spread: &GSpread, nodes: &[GNode], log_zs: &[Estimate]) -> bool {
    let all: Vec<(f64, f64)> =
        nodes.iter().map(|node| node.v).zip(log_zs.iter().map(|z| z.value)).collect();
    let Some(((high, last), before)) = all.split_last() else { return false };
    let other = before.iter().rev().find(|(v, _)| *v <= high - LEVER && spread.g(*v) > LARGE);
    other.is_some_and(|(v, value)| (last - value) / (high - v) > RISING)
}

impl Nodes {
    /// Where nodes are needed: over all of the integrand that counts, by the parabola.
    fn places(&self) -> Vec<f64> {
        if self.spread.fixed().is_some() || self.parabola.is_empty() {
            return vec![0.0];
        }
        let (grid, heights) = grid(&self.spread, &self.parabola);
        let top = heights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut inside =
            grid.iter().zip(&heights).filter(|(_, h)| **h > top - LOW).map(|(v, _)| *v);
        let low = inside.next().unwrap_or(0.0);
        let high = inside.next_back().unwrap_or(low);
        (0..NODES).map(|k| low + (high - low) * k as f64 / (NODES - 1) as f64).collect()
    }
}

/// The draws of all nodes with their shares, as draws of the model's own parameters.
fn joined(frame: &Frame, evidences: Vec<Evidence>, shares: &[f64]) -> Option<PosteriorDraws> {
    let d = frame.ways.rows();
    let (mut data, mut log_weights) = (Vec::new(), Vec::new());
    for (evidence, share) in evidences.into_iter().zip(shares).filter(|(_, share)| **share > 0.0) {
        let PosteriorDraws::Weighted(own) = evidence.draws? else { return None };
        let norm = log_sum_exp(&own.log_weights);
        data.extend_from_slice(own.thetas.product(&frame.ways.transpose()).data());
        log_weights.extend(own.log_weights.iter().map(|w| w - norm + log(*share)));
    }
    let thetas = Matrix::from_rows(log_weights.len(), d, data);
    Some(PosteriorDraws::Weighted(Weighted {
        thetas,
        log_weights,
        log_target: Vec::new(),
        kinship: Kinship::Strangers,
        controls: Vec::new(),
    }))
}

impl Combination for GMixture {
    fn next(&mut self, mut answers: Vec<Answers>) -> Result<Next> {
        match std::mem::replace(&mut self.stage, Stage::Start) {
            Stage::Start => self.begin(),
            Stage::Looking(looking) => self.looked(*looking, answers),
            Stage::Climbing(on_the_way) => {
                let Climbing { null, mut climb, asked } = *on_the_way;
                let missing = || Error::numeric("no shard has answered");
                let (sums, _) = answers.pop().ok_or_else(missing)?.sum(&asked)?;
                let at = sums.into_iter().flatten().next().ok_or_else(missing)?;
                climb.heard(likelihood(&self.setting.model, asked.0[0].thetas.row(0), at));
                self.go_on(null, climb)
            }
            Stage::Nodes(all) => self.heard(*all, answers),
        }
    }

    fn rounds_left(&self) -> u64 {
        match &self.stage {
            Stage::Nodes(all) => {
                let open = all.nodes.iter().filter(|node| node.evidence.is_none());
                open.map(|node| node.machine.rounds_left()).max().unwrap_or(1)
            }
            _ => 9,
        }
    }
}
