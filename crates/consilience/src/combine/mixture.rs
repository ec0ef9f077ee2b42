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
use super::null_point::{NullSearch, informative};
use super::over_g::{grid, integral};
use super::{Combination, CombineDiagnostics, Evidence, Next, PosteriorDraws, Setting};
use super::{ground_of, statistics};
use crate::estimate::{Estimate, Weighted};
use crate::math::proposal::Kinship;
use crate::math::{Cholesky, Matrix, log_sum_exp};
use crate::model::{GSpread, Joint, Model, Prior};
use crate::question::{Answer, Answers, Climb, Expand, Locate, Points, Question, Weigh};
use crate::study::Schedule;
use crate::target::Expansion;
use crate::{Error, Level, Result};
use libm::log;
use std::sync::Arc;

/// Nodes over g.
const NODES: usize = 13;

/// The fewest rounds of a node: a step that draws ride on, after one before it.
const LEAST_ROUNDS: usize = 2;

/// How far below its peak the integrand over v counts, in nats.
const LOW: f64 = 14.0;

/// The integrand over v falls at least as e^(−v/2) does; where it does not fall like this, it has no integral.
const FLAT: f64 = -0.25;

/// A column of which less than this share is its own is determined by those before it.
const DETERMINED: f64 = 1e-10;

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
    /// The model that shards are asked about, and what its curvature is multiplied with.
    model: Arc<Model>,
    factor: f64,
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

/// How a model's parameters come of those with independent priors.
struct Frame {
    /// θ = Aγ.
    ways: Matrix,
    /// The intercept's number among the free parameters, and whether its prior is flat.
    intercept: usize,
    flat: bool,
    /// The model whose shards are asked.
    model: Arc<Model>,
}

/// The models at every node, and what each waits for.
struct Nodes {
    frame: Frame,
    spread: GSpread,
    /// Eigenvalues and slopes of the parabola: see [`Nodes::approximate`].
    parabola: Vec<(f64, f64)>,
    nodes: Vec<GNode>,
}

struct GNode {
    v: f64,
    model: Arc<Model>,
    machine: Exact,
    asked: Vec<NodeQuestion>,
    evidence: Option<Box<Evidence>>,
}

/// A question to shards, with the points that the node asked about.
enum NodeQuestion {
    Expand(Expand, Arc<Matrix>),
    Weigh(Weigh, Arc<Matrix>),
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
        let (model, factor) = informative(&self.setting.model);
        let (_, intercept) = ground_of(&model, &self.setting.joint)?;
        let search = NullSearch::new(&model, intercept, self.setting.observations());
        let asks = self.setting.located.is_none() && self.asks_shards();
        let locate = asks.then(|| Locate(self.at(self.setting.model.start())));
        let asked = self.about(&model, search.theta());
        Ok(self.look(Looking { search, model, factor, asked, locate }))
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

    /// The same of another model with the same parameters.
    fn about(&self, model: &Arc<Model>, theta: &[f64]) -> Expand {
        let mut points = self.at(theta.to_vec());
        points.iter_mut().for_each(|points| points.model = model.clone());
        Expand(points)
    }

    /// Takes in what shards say where the coefficients are to be 0, and goes on to that place.
    fn looked(&mut self, mut looking: Looking, mut answers: Vec<Answers>) -> Result<Next> {
        let missing = || Error::numeric("no shard has answered");
        if let Some(locate) = looking.locate.take() {
            let (mut found, _) = answers.pop().ok_or_else(missing)?.sum(&locate)?;
            self.setting.located = found.pop().map(Arc::new);
        }
        let (sums, _) = answers.pop().ok_or_else(missing)?.sum(&looking.asked)?;
        let at = sums.into_iter().flatten().next().ok_or_else(missing)?;
        let here = looking.search.theta().to_vec();
        let mut null = likelihood(&looking.model, &here, at);
        if looking.search.has_arrived(&null)? {
            let first = (looking.factor == 1.0).then(|| null.clone());
            null.hessian.scale(looking.factor);
            return self.look_for_peak(here, first, null);
        }
        if self.rounds + LEAST_ROUNDS >= self.setting.options.rounds {
            return Err(Error::numeric(
                "the model without its columns has its intercept far from the outcome's mean, because of its offset, and was not reached; allow more `rounds` under [evidence]",
            ));
        }
        looking.asked = self.about(&looking.model, looking.search.theta());
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
        let mut all = Nodes { frame, spread, parabola, nodes: Vec::new() };
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
                own.push(Answers::Sum(all.frame.back(&node.model, asked, answer)?));
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
        let Nodes { frame, spread, parabola, nodes } = all;
        let places: Vec<f64> = nodes.iter().map(|node| node.v).collect();
        let evidences: Vec<Evidence> =
            nodes.into_iter().filter_map(|node| node.evidence).map(|e| *e).collect();
        let log_zs: Vec<Estimate> = evidences.iter().map(|e| e.log_z).collect();
        if frame.flat && does_not_end(&spread, &places, &log_zs) {
            return Err(Error::numeric(
                "the evidence is infinite: the columns tell the two kinds of rows apart without a miss, so that with a flat intercept the likelihood grows with g as fast as this mixture of g falls; give the intercept a proper prior, as in intercept = \"normal(0, 2.5)\", or the coefficients \"hyper-g(4)\" or a prior of their own",
            ));
        }
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

impl Frame {
    /// By the information where only the intercept is not 0.
    fn new(model: &Arc<Model>, joint: &Joint, null: &Expansion) -> Result<Frame> {
        let (ground, intercept) = ground_of(model, joint)?;
        let d = model.dim();
        let others: Vec<usize> = (0..d).filter(|&j| j != intercept).collect();
        let own = -null.hessian[(intercept, intercept)];
        let means: Vec<f64> = others.iter().map(|&j| -null.hessian[(intercept, j)] / own).collect();
        let p = others.len();
        let mut metric = Matrix::zeros(p, p);
        for (a, &i) in others.iter().enumerate() {
            for (b, &j) in others.iter().enumerate() {
                metric[(a, b)] = -null.hessian[(i, j)] - own * means[a] * means[b];
            }
        }
        let names: Vec<&str> = model.free().map(|p| p.name.as_str()).collect();
        let raw: Vec<f64> = others.iter().map(|&j| -null.hessian[(j, j)]).collect();
        let determined = |j: usize| {
            let group = joint.group().map_or_else(String::new, |(group, _)| group.to_string());
            statistics::determined(model, &group, names[others[j]])
        };
        if let Some(j) = first_determined(&metric, &raw) {
            return Err(determined(j));
        }
        let Some(factor) = Cholesky::new(&metric) else {
            return Err(determined(p.saturating_sub(1)));
        };
        // L⁻ᵀ.
        let inverse = factor.inverse_lower().transpose();
        let mut ways = Matrix::zeros(d, d);
        ways[(intercept, intercept)] = 1.0;
        for (a, &i) in others.iter().enumerate() {
            for (b, &j) in others.iter().enumerate() {
                ways[(i, j)] = inverse[(a, b)];
                ways[(intercept, j)] -= means[a] * inverse[(a, b)];
            }
        }
        Ok(Frame { ways, intercept, flat: ground.level.is_none(), model: model.clone() })
    }

    /// The model of (δ, level) at this g. Its name gives it random streams of its own.
    fn whitened(&self, number: usize, g: f64) -> Model {
        let mut model = Model::clone(&self.model);
        model.name = format!("{} at g {number}", model.name);
        let free = model.parameters.iter_mut().filter(|p| p.prior.fixed().is_none());
        for (number, parameter) in free.enumerate() {
            if number != self.intercept {
                parameter.prior = Prior::Normal { mean: 0.0, sd: g.sqrt() };
            }
        }
        model
    }

    /// The likelihood's parabola as one of δ alone: eigenvalues of its precision, and the slope along each.
    fn parabola(&self, located: &Expansion) -> Vec<(f64, f64)> {
        let turned = self.turned(located);
        let i = self.intercept;
        let own = -turned.hessian[(i, i)];
        let others: Vec<usize> = (0..self.ways.rows()).filter(|&j| j != i).collect();
        let p = others.len();
        let mut precision = Matrix::zeros(p, p);
        let mut slope = vec![0.0; p];
        for (a, &j) in others.iter().enumerate() {
            let along = turned.hessian[(i, j)] / own;
            slope[a] = turned.gradient[j] + along * turned.gradient[i];
            for (b, &k) in others.iter().enumerate() {
                precision[(a, b)] = -turned.hessian[(j, k)] - along * turned.hessian[(i, k)];
            }
        }
        if p == 0 {
            return Vec::new();
        }
        let (values, vectors) = precision.symmetric_eigen();
        let along = |m: usize| (0..p).map(|a| vectors[(m, a)] * slope[a]).sum();
        (0..p).map(|m| (values[m].max(1e-12), along(m))).collect()
    }

    /// An expansion in γ of what has this one in θ.
    fn turned(&self, at: &Expansion) -> Expansion {
        let back = self.ways.transpose();
        Expansion {
            value: at.value,
            gradient: back.times(&at.gradient),
            hessian: back.product(&at.hessian).product(&self.ways),
        }
    }

    /// A node's question as shards understand it.
    fn forth(&self, question: Question) -> Result<(Question, NodeQuestion)> {
        let there = |points: &Points| {
            let thetas = Arc::new(points.thetas.product(&self.ways.transpose()));
            vec![Points { model: self.model.clone(), share: points.share, thetas, rule: None }]
        };
        match &question {
            Question::Expand(Expand(points)) if points.len() == 1 => {
                let asked = Expand(there(&points[0]));
                Ok((asked.clone().into(), NodeQuestion::Expand(asked, points[0].thetas.clone())))
            }
            Question::Weigh(Weigh(points)) if points.len() == 1 => {
                let asked = Weigh(there(&points[0]));
                Ok((asked.clone().into(), NodeQuestion::Weigh(asked, points[0].thetas.clone())))
            }
            other => Err(Error::numeric(format!("`{}` has no answer here", other.kind()))),
        }
    }

    /// What shards say, as the node understands it: under its priors in the place of the model's own.
    fn back(&self, node: &Model, asked: NodeQuestion, answer: Answers) -> Result<Answer> {
        let (plain, own) = (self.model.free_priors(), node.free_priors());
        let counts = |j: usize| !(self.flat && j == self.intercept);
        match asked {
            NodeQuestion::Expand(question, points) => {
                let (mut sums, _) = answer.sum(&question)?;
                for (k, at) in sums[0].iter_mut().enumerate() {
                    let theta = question.0[0].thetas.row(k);
                    *at = self.turned(&likelihood(&self.model, theta, at.clone()));
                    for (j, prior) in own.iter().enumerate().filter(|(j, _)| counts(*j)) {
                        let (value, slope, bend) = prior.expand(points[(k, j)]);
                        at.value += value;
                        at.gradient[j] += slope;
                        at.hessian[(j, j)] += bend;
                    }
                }
                Ok(Answer::Expand(Box::new(sums)))
            }
            NodeQuestion::Weigh(question, points) => {
                let (mut sums, _) = answer.sum(&question)?;
                for (k, value) in sums[0].iter_mut().enumerate() {
                    let theta = question.0[0].thetas.row(k);
                    let plain = plain.iter().zip(theta).map(|(prior, &x)| prior.log_density(x));
                    let own = own.iter().enumerate().filter(|(j, _)| counts(*j));
                    let own = own.map(|(j, prior)| prior.log_density(points[(k, j)]));
                    *value += own.sum::<f64>() - plain.sum::<f64>();
                }
                Ok(Answer::Weigh(Box::new(sums)))
            }
        }
    }
}

/// Whether the integrand over v does not fall where g is largest. The likelihood of g falls there at least as fast as
/// √g does, or does not rise, unless the data leave a direction open in which the level can go along, which makes it rise.
fn does_not_end(spread: &GSpread, places: &[f64], log_zs: &[Estimate]) -> bool {
    let [.., (a, one), (b, other)] = &places.iter().zip(log_zs).collect::<Vec<_>>()[..] else {
        return false;
    };
    let height = |v: f64, log_z: &Estimate| spread.log_density(v) + log_z.value;
    (height(**b, other) - height(**a, one)) / (*b - *a) > FLAT
}

/// An expansion of a model's log density without its priors, which only stand in for others.
fn likelihood(model: &Model, theta: &[f64], mut at: Expansion) -> Expansion {
    for (j, prior) in model.free_priors().iter().enumerate() {
        let (value, slope, bend) = prior.expand(theta[j]);
        at.value -= value;
        at.gradient[j] -= slope;
        at.hessian[(j, j)] -= bend;
    }
    at
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

/// The first column of which nothing is its own, given those before it and the intercept; `raw` are the squares of the
/// columns as they are.
fn first_determined(metric: &Matrix, raw: &[f64]) -> Option<usize> {
    let p = metric.rows();
    let mut left = metric.clone();
    for k in 0..p {
        let pivot = left[(k, k)];
        if pivot.is_nan() || pivot <= DETERMINED * raw[k] {
            return Some(k);
        }
        for i in k + 1..p {
            let factor = left[(i, k)] / pivot;
            for j in k + 1..p {
                let by = factor * left[(k, j)];
                left[(i, j)] -= by;
            }
        }
    }
    None
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
