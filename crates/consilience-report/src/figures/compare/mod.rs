//! Figures of a comparison.

mod agreement;
mod models;
mod parameters;
mod parts;
mod weights;

pub(crate) use agreement::agreement;
pub(crate) use models::{bayes_factors, evidence, probabilities};
pub(crate) use parameters::{parameters, prior_scale};
pub(crate) use parts::{decomposition, leave_one_out, parts_of, pulls, shards, shards_differ};
pub(crate) use weights::{verdict, weights};

use super::rows::MOST_ROWS;
use crate::document::compare::Compare;

/// The models that are drawn, the likeliest first.
fn leading(document: &Compare) -> Vec<usize> {
    let mut order = document.order();
    order.truncate(MOST_ROWS);
    order
}
