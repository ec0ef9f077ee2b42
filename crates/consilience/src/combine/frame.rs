//! Coordinates in which the prior of all coefficients together is independent: whitened by the information without them.

use super::{ground_of, statistics};
use crate::math::{Cholesky, Matrix};
use crate::model::{Joint, Model, Prior};
use crate::question::{Answer, Answers, Expand, Points, Question, Weigh};
use crate::target::Expansion;
use crate::{Error, Result};
use std::sync::Arc;

/// A column of which less than this share is its own is determined by those before it.
const DETERMINED: f64 = 1e-10;

/// How a model's parameters come of those with independent priors.
pub(super) struct Frame {
    /// θ = Aγ.
    pub(super) ways: Matrix,
    /// The intercept's number among the free parameters, and whether its prior is flat.
    intercept: usize,
    pub(super) flat: bool,
    /// The model whose shards are asked.
    model: Arc<Model>,
}

/// A question to shards, with the points that the node asked about.
pub(super) enum NodeQuestion {
    Expand(Expand, Arc<Matrix>),
    Weigh(Weigh, Arc<Matrix>),
}

impl Frame {
    /// By the information where only the intercept is not 0.
    pub(super) fn new(model: &Arc<Model>, joint: &Joint, null: &Expansion) -> Result<Frame> {
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
    pub(super) fn whitened(&self, number: usize, g: f64) -> Model {
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
    pub(super) fn parabola(&self, located: &Expansion) -> Vec<(f64, f64)> {
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
    pub(super) fn forth(&self, question: Question) -> Result<(Question, NodeQuestion)> {
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

    /// What shards say, as the node understands it: under its priors in the place of the model's own. With it comes the
    /// greatest log likelihood among them.
    pub(super) fn back(
        &self,
        node: &Model,
        asked: NodeQuestion,
        answer: Answers,
    ) -> Result<(Answer, f64)> {
        let (plain, own) = (self.model.free_priors(), node.free_priors());
        let counts = |j: usize| !(self.flat && j == self.intercept);
        let mut best = f64::NEG_INFINITY;
        match asked {
            NodeQuestion::Expand(question, points) => {
                let (mut sums, _) = answer.sum(&question)?;
                for (k, at) in sums[0].iter_mut().enumerate() {
                    let theta = question.0[0].thetas.row(k);
                    let plain = likelihood(&self.model, theta, at.clone());
                    best = best.max(plain.value);
                    *at = self.turned(&plain);
                    for (j, prior) in own.iter().enumerate().filter(|(j, _)| counts(*j)) {
                        let (value, slope, bend) = prior.expand(points[(k, j)]);
                        at.value += value;
                        at.gradient[j] += slope;
                        at.hessian[(j, j)] += bend;
                    }
                }
                Ok((Answer::Expand(Box::new(sums)), best))
            }
            NodeQuestion::Weigh(question, points) => {
                let (mut sums, _) = answer.sum(&question)?;
                for (k, value) in sums[0].iter_mut().enumerate() {
                    let theta = question.0[0].thetas.row(k);
                    let plain = plain.iter().zip(theta).map(|(prior, &x)| prior.log_density(x));
                    let own = own.iter().enumerate().filter(|(j, _)| counts(*j));
                    let own = own.map(|(j, prior)| prior.log_density(points[(k, j)]));
                    *value -= plain.sum::<f64>();
                    best = best.max(*value);
                    *value += own.sum::<f64>();
                }
                Ok((Answer::Weigh(Box::new(sums)), best))
            }
        }
    }
}

/// An expansion of a model's log density without its priors, which only stand in for others.
pub(super) fn likelihood(model: &Model, theta: &[f64], mut at: Expansion) -> Expansion {
    for (j, prior) in model.free_priors().iter().enumerate() {
        let (value, slope, bend) = prior.expand(theta[j]);
        at.value -= value;
        at.gradient[j] -= slope;
        at.hessian[(j, j)] -= bend;
    }
    at
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
