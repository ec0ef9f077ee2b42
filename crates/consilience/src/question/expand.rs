//! The log densities of models at a few points, to second order.

use super::checks::{Fault, ensure, numbers};
use super::fixed::{self, Layout, Rounding};
use super::points::{self, Points};
use super::{Kind, wire};
use crate::Result;
use crate::math::{ExactSum, Matrix};
use crate::model::Model;
use crate::shard::Shard;
use crate::target::{Expansion, Target};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::sync::Arc;

/// More points than this are expanded at in no round, for one model.
const MOST_POINTS: usize = 100;

/// Asks for log f_s, its gradient and Hessian at every point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "wire::AskedModels", try_from = "wire::AskedModels")]
pub struct Expand(pub Vec<Points>);

impl Kind for Expand {
    const NAME: &'static str = "expand";

    /// Per model, one for each point.
    type Answer = Vec<Vec<Expansion>>;

    fn models(&self) -> Vec<&Arc<Model>> {
        self.0.iter().map(|asked| &asked.model).collect()
    }

    fn points(&self) -> &[Points] {
        &self.0
    }

    fn check(&self) -> Fault {
        points::check(&self.0)?;
        let few = self.0.iter().all(|asked| asked.thetas.rows() <= MOST_POINTS);
        ensure(few, "it asks about more points than anybody does")
    }

    fn answer(&self, shard: &Shard) -> Result<Self::Answer> {
        points::on_each(&self.0, shard, |target, asked| {
            let rounding = Rounding::of(&asked.model);
            let expand = |theta: &[f64]| {
                let mut at = target.expand(theta);
                rounding.expansion(&mut at);
                at
            };
            asked.rows().map(expand).collect()
        })
    }

    fn accept(&self, answer: &Self::Answer) -> Fault {
        points::accept(&self.0, answer, |asked, found| {
            ensure(found.len() == asked.thetas.rows(), "it is about more points or fewer")?;
            found.iter().try_for_each(|at| expansion(at, asked.model.dim()))
        })
    }

    fn merge(&self, answers: &[Self::Answer]) -> Option<Self::Answer> {
        let sum = |m: usize, k: usize| {
            let parts: Vec<&Expansion> = answers.iter().map(|answer| &answer[m][k]).collect();
            sum_of(&parts)
        };
        let points = |m: usize| (0..self.0[m].thetas.rows()).map(|k| sum(m, k)).collect();
        Some((0..self.0.len()).map(points).collect())
    }

    fn layout(&self) -> Option<Vec<Layout>> {
        Some(self.0.iter().map(|a| Layout::new(&a.model, a.thetas.rows(), 2)).collect())
    }

    fn numbers(answer: &Self::Answer) -> Vec<f64> {
        let mut out = Vec::new();
        answer.iter().flatten().for_each(|at| fixed::push(at, &mut out));
        out
    }

    fn of_numbers(&self, mut numbers: &[f64]) -> Option<Self::Answer> {
        let mut at = |asked: &Points| fixed::pull(&mut numbers, asked.model.dim());
        let mut all = |asked: &Points| (0..asked.thetas.rows()).map(|_| at(asked)).collect();
        self.0.iter().map(&mut all).collect()
    }

    fn explain(&self) -> String {
        format!(
            "expand{}: the log likelihood (with the site's share of the prior) at {} point(s), its gradient and Hessian",
            points::names(&self.0),
            points::count(&self.0)
        )
    }

    fn explain_answer(answer: &Self::Answer) -> String {
        let mut out = String::new();
        for at in answer.iter().flatten() {
            let d = at.gradient.len();
            let _ = writeln!(out, "  the log density at a point that was asked: {}", at.value);
            let _ = writeln!(out, "  its gradient: {}", numbers(&at.gradient));
            let _ = writeln!(out, "  its Hessian: {d} × {d} numbers");
        }
        out
    }

    fn largest_answer(&self) -> u64 {
        let numbers = |asked: &Points| {
            let d = asked.model.dim() as u64 + 2;
            asked.thetas.rows() as u64 * d * d
        };
        1024 + 10 * self.0.iter().map(numbers).sum::<u64>()
    }

    /// A Hessian is X'WX.
    fn columns_told(answer: &Self::Answer) -> usize {
        answer.iter().flatten().map(|at| at.gradient.len()).max().unwrap_or(0)
    }

    fn join(&mut self, other: &Expand) -> bool {
        self.0.extend_from_slice(&other.0);
        true
    }

    fn part(answer: &mut Self::Answer, number: usize) -> Self::Answer {
        vec![std::mem::take(&mut answer[number])]
    }
}

pub(super) fn expansion(at: &Expansion, d: usize) -> Fault {
    ensure(!at.value.is_nan(), "its log density is not a number")?;
    ensure(at.gradient.len() == d, "its gradient has the wrong length")?;
    ensure(at.hessian.has_size(d, d), "its Hessian has the wrong size")?;
    let numbers = || at.gradient.iter().chain(at.hessian.data());
    ensure(
        !at.value.is_finite() || !numbers().any(|v| v.is_nan()),
        "its gradient or Hessian is not a number",
    )
}

/// The expansion of the sum, number by number, whatever the order of the parts; without derivatives where it is −∞.
pub(super) fn sum_of(parts: &[&Expansion]) -> Expansion {
    let each = |own: &dyn Fn(&Expansion) -> &[f64]| {
        ExactSum::of_each(&parts.iter().map(|part| own(part)).collect::<Vec<_>>())
    };
    let mut sum = Expansion::zeros(parts[0].gradient.len());
    sum.value = ExactSum::of(parts.iter().map(|p| p.value));
    if !sum.value.is_finite() {
        return sum;
    }
    sum.gradient = each(&|part| &part.gradient);
    // Hessians are symmetric, whatever somebody sends. Their halves are laid side by side first: thousands of shards
    // are then read from one end to the other.
    let halves: Vec<Vec<f64>> = parts.iter().map(|part| part.hessian.lower_half()).collect();
    let halves: Vec<&[f64]> = halves.iter().map(Vec::as_slice).collect();
    sum.hessian = Matrix::from_lower(sum.gradient.len(), &ExactSum::of_each(&halves));
    sum
}
