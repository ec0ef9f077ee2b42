//! Where a shard's own likelihoods are highest.

use super::checks::{Fault, ensure, numbers};
use super::expand::{expansion, sum_of};
use super::fixed::{self, Layout, Rounding};
use super::points::{self, Points};
use super::{Kind, wire};
use crate::Result;
use crate::estimate::{Newton, Step};
use crate::math::dot;
use crate::model::{LogLikelihood, Model};
use crate::shard::Shard;
use crate::target::Expansion;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::sync::Arc;

/// Half the squared Newton decrement at which a peak is near enough: it is only a start for others.
const ROUGHLY: f64 = 1e-3;
/// The most steps on the way there.
const STEPS: usize = 40;
/// The observations whose information pulls towards the start, where the rows say nothing or separate the outcomes: for
/// a logistic model a normal prior of about 2 per standard deviation of its column. Much weaker ones let single
/// shards run away from where all of them are.
const PULL: f64 = 1.0;

/// Rows for a parameter below which a shard's own peak says little. Where a Hessian of all rows is much work as well (it
/// takes so many products), the parabola at the start has to do: it is a fifth of the work.
const ROWS_PER_PARAMETER: f64 = 10.0;
const MUCH_WORK: f64 = 1e7;

/// Asks for the parabola that each model's log likelihood of the shard's rows, without any prior, is like around its
/// peak. Parabolas of shards add up to one of all the rows, whose peak is near that of the whole likelihood.
/// The point of each model is where to begin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "wire::AskedModels", try_from = "wire::AskedModels")]
pub struct Locate(pub Vec<Points>);

impl Kind for Locate {
    const NAME: &'static str = "locate";

    /// For each model the parabola, as an expansion at 0.
    type Answer = Vec<Expansion>;

    fn models(&self) -> Vec<&Arc<Model>> {
        self.0.iter().map(|asked| &asked.model).collect()
    }

    fn points(&self) -> &[Points] {
        &self.0
    }

    fn check(&self) -> Fault {
        points::check(&self.0)?;
        let one = self.0.iter().all(|asked| asked.thetas.rows() == 1);
        ensure(one, "it asks about more starts than one of a model")
    }

    fn answer(&self, shard: &Shard) -> Result<Self::Answer> {
        points::on_each(&self.0, shard, |target, asked| {
            let (likelihood, start) = (target.likelihood(), asked.thetas.row(0));
            let rows = shard.data().rows() as f64;
            let dear = own_peak_is_dear(&asked.model, likelihood.observations(), rows);
            let mut found = if dear {
                let at = around_zero(start, likelihood.expand(start));
                at.unwrap_or_else(|| Expansion::zeros(start.len()))
            } else {
                parabola(likelihood, start)
            };
            Rounding::of(&asked.model).expansion(&mut found);
            found
        })
    }

    fn accept(&self, answer: &Self::Answer) -> Fault {
        points::accept(&self.0, answer, |asked, at| {
            expansion(at, asked.model.dim())?;
            ensure(at.value.is_finite(), "its parabola is not finite")
        })
    }

    fn merge(&self, answers: &[Self::Answer]) -> Option<Self::Answer> {
        let sum = |m: usize| sum_of(&answers.iter().map(|answer| &answer[m]).collect::<Vec<_>>());
        Some((0..self.0.len()).map(sum).collect())
    }

    fn layout(&self) -> Option<Vec<Layout>> {
        Some(self.0.iter().map(|asked| Layout::new(&asked.model, 1, 2)).collect())
    }

    fn numbers(answer: &Self::Answer) -> Vec<f64> {
        let mut out = Vec::new();
        answer.iter().for_each(|at| fixed::push(at, &mut out));
        out
    }

    fn of_numbers(&self, mut numbers: &[f64]) -> Option<Self::Answer> {
        self.0.iter().map(|asked| fixed::pull(&mut numbers, asked.model.dim())).collect()
    }

    fn explain(&self) -> String {
        format!(
            "locate{}: where the log likelihood of the site's own rows is highest, and its curvature there (a fit of the site's own)",
            points::names(&self.0)
        )
    }

    fn explain_answer(answer: &Self::Answer) -> String {
        let mut out = String::new();
        for at in answer {
            let d = at.gradient.len();
            let _ = writeln!(
                out,
                "  a parabola like the log likelihood, its slope at 0: {}",
                numbers(&at.gradient)
            );
            let _ = writeln!(out, "  its curvature: {d} × {d} numbers");
        }
        out
    }

    fn largest_answer(&self) -> u64 {
        let numbers = |asked: &Points| (asked.model.dim() as u64 + 2).pow(2);
        1024 + 10 * self.0.iter().map(numbers).sum::<u64>()
    }

    /// A Hessian is X'WX.
    fn columns_told(answer: &Self::Answer) -> usize {
        answer.iter().map(|at| at.gradient.len()).max().unwrap_or(0)
    }

    fn join(&mut self, other: &Locate) -> bool {
        self.0.extend_from_slice(&other.0);
        true
    }

    fn part(answer: &mut Self::Answer, number: usize) -> Self::Answer {
        vec![std::mem::replace(&mut answer[number], Expansion::zeros(0))]
    }
}

/// Whether a shard of so many observations in so many rows does without its own peak. It depends on the question and the
/// rows alone.
fn own_peak_is_dear(model: &Model, observations: f64, rows: f64) -> bool {
    let all = model.regression().map_or(0.0, |regression| regression.response().weight);
    is_dear(model.dim() as f64, observations, rows, all)
}

/// The same of so many parameters, and so many observations of all shards.
fn is_dear(d: f64, observations: f64, rows: f64, all: f64) -> bool {
    // A row of many trials is as much work as any, and the others' rows have about as many as these.
    let all_rows = all * (rows / observations.max(1.0));
    observations < ROWS_PER_PARAMETER * d && all_rows * d * d > MUCH_WORK
}

/// The parabola that a log likelihood is like at its peak, as an expansion at 0. Where rows say nothing about a
/// parameter, or separate the outcomes, a weak pull towards the start keeps the peak at hand; it has no
/// part in the parabola. Nothing, where there is no such point.
fn parabola(likelihood: &dyn LogLikelihood, start: &[f64]) -> Expansion {
    let nothing = Expansion::zeros(start.len());
    let mut climb = Climb::new(start.to_vec(), likelihood.observations());
    while let Some(theta) = climb.next() {
        climb.heard(likelihood.expand(&theta));
    }
    climb.parabola().unwrap_or(nothing)
}

/// The way to a log likelihood's peak, one expansion at a time: a shard's own, or that of all rows.
#[derive(Debug)]
pub(crate) struct Climb {
    start: Vec<f64>,
    observations: f64,
    /// How much each parameter is pulled, as the curvature at the start says.
    pull: Vec<f64>,
    newton: Newton,
    next: Option<Vec<f64>>,
}

impl Climb {
    /// Begins where all do, for a likelihood of so many observations.
    pub fn new(start: Vec<f64>, observations: f64) -> Climb {
        let newton = Newton::new(start.clone(), ROUGHLY);
        Climb { next: Some(start.clone()), start, observations, pull: Vec::new(), newton }
    }

    /// The point whose expansion is wanted; `None` at the end of the way.
    pub fn next(&mut self) -> Option<Vec<f64>> {
        self.next.take()
    }

    /// Takes in the expansion of the log likelihood, without any prior, at that point.
    pub fn heard(&mut self, mut at: Expansion) {
        if self.pull.is_empty() {
            let each = PULL / self.observations.max(1.0);
            let diagonal = at.hessian.diagonal();
            self.pull = diagonal.iter().map(|bend| each * bend.abs() + 1e-12).collect();
        }
        let away = self.newton.asked().iter().zip(&self.start).map(|(t, s)| t - s);
        for (j, (pull, by)) in self.pull.iter().zip(away).enumerate() {
            at.value -= 0.5 * pull * by * by;
            at.gradient[j] -= pull * by;
            at.hessian[(j, j)] -= pull;
        }
        self.next = match self.newton.advance(at) {
            Ok(Step::Evaluate(theta)) if self.newton.evaluations() < STEPS => Some(theta),
            _ => None,
        };
    }

    /// The parabola that the likelihood is like at the highest point found, as an expansion at 0; `None` if there is
    /// none.
    pub fn parabola(&self) -> Option<Expansion> {
        let (theta, at) = self.newton.best_expansion()?;
        // As it is without the pull.
        let mut at = at.clone();
        for (j, pull) in self.pull.iter().enumerate() {
            at.gradient[j] += pull * (theta[j] - self.start[j]);
            at.hessian[(j, j)] += pull;
        }
        around_zero(theta, at)
    }
}

/// An expansion at θ, l(t) ≈ l + g'(t − θ) + ½(t − θ)'H(t − θ), written around 0; none if it is not finite.
fn around_zero(theta: &[f64], at: Expansion) -> Option<Expansion> {
    let bend = at.hessian.times(theta);
    let value = at.value - dot(&at.gradient, theta) + 0.5 * dot(theta, &bend);
    let gradient = at.gradient.iter().zip(&bend).map(|(g, b)| g - b).collect();
    let found = Expansion { value, gradient, hessian: at.hessian };
    let finite = found.value.is_finite()
        && found.gradient.iter().chain(found.hessian.data()).all(|x| x.is_finite());
    finite.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_rows_and_not_trials() {
        assert!(is_dear(100.0, 900.0, 900.0, 2e5));
        assert!(!is_dear(100.0, 900.0, 900.0, 900.0), "little work");
        assert!(!is_dear(100.0, 1100.0, 1100.0, 9e5), "rows enough");
        // The same observations in rows of 450.
        assert!(!is_dear(100.0, 900.0, 2.0, 2e5));
        assert!(!is_dear(100.0, 0.0, 0.0, 9e5));
    }
}
