//! The log densities of models at a point, to third order.

use super::checks::{Fault, ensure, finite, numbers};
use super::expand::{expansion, sum_of};
use super::fixed::{self, Layout, Rounding};
use super::points::{self, Points};
use super::{Kind, wire};
use crate::Result;
use crate::math::ExactSum;
use crate::model::Model;
use crate::shard::Shard;
use crate::target::{Expansion, Target, Thirds};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::sync::Arc;

/// The most parameters of a model that is asked about: the numbers of an answer grow with their cube.
pub(crate) const MOST_PARAMETERS: usize = 60;

/// The steps over which Hessians are compared, in standard deviations of the shard's own curvature.
const STEP: f64 = 1e-3;

/// Asks for log f_s with gradient, Hessian and third derivatives, at one point of each model. Third derivatives
/// only shape what draws come from, so differences of Hessians are good enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "wire::AskedModels", try_from = "wire::AskedModels")]
pub struct Cubic(pub Vec<Points>);

impl Kind for Cubic {
    const NAME: &'static str = "cubic";

    /// One for each model.
    type Answer = Vec<(Expansion, Thirds)>;

    fn models(&self) -> Vec<&Arc<Model>> {
        self.0.iter().map(|asked| &asked.model).collect()
    }

    fn points(&self) -> &[Points] {
        &self.0
    }

    fn check(&self) -> Fault {
        points::check(&self.0)?;
        let one = self.0.iter().all(|asked| asked.thetas.rows() == 1);
        ensure(one, "it asks about more points than one of a model")?;
        let small = self.0.iter().all(|asked| asked.model.dim() <= MOST_PARAMETERS);
        ensure(small, "it asks for the third derivatives of a model with too many parameters")
    }

    fn answer(&self, shard: &Shard) -> Result<Self::Answer> {
        points::on_each(&self.0, shard, |target, asked| {
            let theta = asked.thetas.row(0);
            let mut at = target.expand(theta);
            let step = |bend: f64| STEP / (-bend).max(f64::MIN_POSITIVE).sqrt().max(1e-100);
            let steps: Vec<f64> = at.hessian.diagonal().into_iter().map(step).collect();
            let mut thirds = if at.value.is_finite() && finite(&steps) {
                Thirds::of(target, theta, &at.hessian, &steps)
            } else {
                Thirds(vec![0.0; Thirds::count(theta.len())])
            };
            let rounding = Rounding::of(&asked.model);
            rounding.expansion(&mut at);
            rounding.thirds(&mut thirds.0);
            (at, thirds)
        })
    }

    fn accept(&self, answer: &Self::Answer) -> Fault {
        points::accept(&self.0, answer, |asked, (at, thirds)| {
            let d = asked.model.dim();
            expansion(at, d)?;
            ensure(
                thirds.0.len() == Thirds::count(d),
                "its third derivatives are too many or too few",
            )?;
            ensure(!thirds.0.iter().any(|t| t.is_nan()), "a third derivative of it is not a number")
        })
    }

    fn merge(&self, answers: &[Self::Answer]) -> Option<Self::Answer> {
        let sum = |m: usize| {
            let parts: Vec<&Expansion> = answers.iter().map(|answer| &answer[m].0).collect();
            let thirds: Vec<&[f64]> = answers.iter().map(|a| a[m].1.0.as_slice()).collect();
            let (at, mut thirds) = (sum_of(&parts), ExactSum::of_each(&thirds));
            if !at.value.is_finite() {
                thirds.fill(0.0);
            }
            (at, Thirds(thirds))
        };
        Some((0..self.0.len()).map(sum).collect())
    }

    fn layout(&self) -> Option<Vec<Layout>> {
        Some(self.0.iter().map(|asked| Layout::new(&asked.model, 1, 3)).collect())
    }

    fn numbers(answer: &Self::Answer) -> Vec<f64> {
        let mut out = Vec::new();
        for (at, thirds) in answer {
            fixed::push(at, &mut out);
            out.extend_from_slice(&thirds.0);
        }
        out
    }

    fn of_numbers(&self, mut numbers: &[f64]) -> Option<Self::Answer> {
        let mut each = |asked: &Points| {
            let d = asked.model.dim();
            let at = fixed::pull(&mut numbers, d)?;
            let (thirds, rest) = numbers.split_at_checked(Thirds::count(d))?;
            numbers = rest;
            Some((at, Thirds(thirds.to_vec())))
        };
        self.0.iter().map(&mut each).collect()
    }

    fn explain(&self) -> String {
        format!(
            "cubic{}: the log likelihood (with the site's share of the prior) at a point, its gradient, Hessian and third derivatives",
            points::names(&self.0)
        )
    }

    fn explain_answer(answer: &Self::Answer) -> String {
        let mut out = String::new();
        for (at, thirds) in answer {
            let d = at.gradient.len();
            let _ = writeln!(out, "  the log density at a point that was asked: {}", at.value);
            let _ = writeln!(out, "  its gradient: {}", numbers(&at.gradient));
            let _ = writeln!(out, "  its Hessian: {d} × {d} numbers");
            let _ = writeln!(out, "  its third derivatives: {} numbers", thirds.0.len());
        }
        out
    }

    fn largest_answer(&self) -> u64 {
        let numbers = |asked: &Points| {
            let d = asked.model.dim().min(MOST_PARAMETERS);
            (Thirds::count(d) + (d + 2) * (d + 2)) as u64
        };
        1024 + 10 * self.0.iter().map(numbers).sum::<u64>()
    }

    /// A Hessian is X'WX.
    fn columns_told(answer: &Self::Answer) -> usize {
        answer.iter().map(|(at, _)| at.gradient.len()).max().unwrap_or(0)
    }

    fn join(&mut self, other: &Cubic) -> bool {
        self.0.extend_from_slice(&other.0);
        true
    }

    fn part(answer: &mut Self::Answer, number: usize) -> Self::Answer {
        let nothing = (Expansion::zeros(0), Thirds(Vec::new()));
        vec![std::mem::replace(&mut answer[number], nothing)]
    }
}
