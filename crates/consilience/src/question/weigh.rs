//! The log densities of models at many points.

use super::checks::{Fault, ensure, numbers};
use super::fixed::{self, Layout};
use super::points::{self, Points};
use super::{Kind, wire};
use crate::Result;
use crate::math::ExactSum;
use crate::model::Model;
use crate::shard::Shard;
use crate::target::Target;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Asks for log f_s at every point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "wire::AskedModels", try_from = "wire::AskedModels")]
pub struct Weigh(pub Vec<Points>);

impl Weigh {
    /// How many log densities a shard answers with.
    pub(crate) fn count(&self) -> usize {
        points::count(&self.0)
    }
}

impl Kind for Weigh {
    const NAME: &'static str = "weigh";

    /// Per model, one for each point.
    type Answer = Vec<Vec<f64>>;

    fn models(&self) -> Vec<&Arc<Model>> {
        self.0.iter().map(|asked| &asked.model).collect()
    }

    fn points(&self) -> &[Points] {
        &self.0
    }

    fn check(&self) -> Fault {
        points::check(&self.0)
    }

    fn answer(&self, shard: &Shard) -> Result<Self::Answer> {
        points::on_each(&self.0, shard, |target, asked| {
            let mut out = vec![0.0; asked.thetas.rows()];
            target.log_densities(&asked.thetas, &mut out);
            fixed::round_values(&mut out);
            out
        })
    }

    fn accept(&self, answer: &Self::Answer) -> Fault {
        points::accept(&self.0, answer, |asked, weights| {
            let (found, wanted) = (weights.len(), asked.thetas.rows());
            if found != wanted {
                return Err(format!("it has {found} log densities for {wanted} points"));
            }
            let none = weights.iter().any(|w| w.is_nan());
            ensure(!none, "one of its log densities is not a number")?;
            ensure(!weights.contains(&f64::INFINITY), "one of its log densities is infinite")
        })
    }

    fn merge(&self, answers: &[Self::Answer]) -> Option<Self::Answer> {
        let sums = |m: usize| {
            let parts: Vec<&[f64]> = answers.iter().map(|answer| answer[m].as_slice()).collect();
            ExactSum::of_each(&parts)
        };
        Some((0..self.0.len()).map(sums).collect())
    }

    fn layout(&self) -> Option<Vec<Layout>> {
        Some(self.0.iter().map(|a| Layout::new(&a.model, a.thetas.rows(), 0)).collect())
    }

    fn numbers(answer: &Self::Answer) -> Vec<f64> {
        answer.concat()
    }

    fn of_numbers(&self, mut numbers: &[f64]) -> Option<Self::Answer> {
        let mut each = |asked: &Points| {
            let (own, rest) = numbers.split_at_checked(asked.thetas.rows())?;
            numbers = rest;
            Some(own.to_vec())
        };
        self.0.iter().map(&mut each).collect()
    }

    fn explain(&self) -> String {
        format!(
            "weigh{}: the log likelihood (with the site's share of the prior) at {} points",
            points::names(&self.0),
            points::count(&self.0)
        )
    }

    fn explain_answer(answer: &Self::Answer) -> String {
        let each = answer
            .iter()
            .map(|w| format!("  the log density at each of {} points: {}\n", w.len(), numbers(w)));
        each.collect()
    }

    /// Of one model: a policy's bound does not depend on how many share a question.
    fn draws(&self) -> u64 {
        self.0.iter().map(|asked| asked.thetas.rows() as u64).max().unwrap_or(0)
    }

    fn largest_answer(&self) -> u64 {
        1024 + 10 * (points::count(&self.0) + self.0.len()) as u64
    }

    fn join(&mut self, other: &Weigh) -> bool {
        self.0.extend_from_slice(&other.0);
        true
    }

    fn part(answer: &mut Self::Answer, number: usize) -> Self::Answer {
        vec![std::mem::take(&mut answer[number])]
    }
}
