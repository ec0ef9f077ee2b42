//! The paper's way: reversible jump on every shard.

use super::Finding;
use super::listed::{Single, found};
use super::report::JumpFactor;
use crate::combine::{JumpMethod, JumpOptions, Setting, reversible_jump};
use crate::engine::Session;
use crate::estimate::Estimate;
use crate::fit::ExploreOrder;
use crate::space::{Space, Subset};
use crate::study::{Select, SelectBy};
use crate::{Error, Result};

/// The most models that a shard tells of, and that are filled in.
const MOST: usize = 200;

/// Fewer chains than this say little of how they agree.
const LEAST_CHAINS: usize = 4;

/// How models were explored, and of those that are named the Bayes factors against the first, by the jumps
/// themselves.
pub(super) fn find(
    session: &Session,
    setting: &Setting,
    space: &Space,
    select: &Select,
    named: &[Subset],
) -> Result<Finding> {
    let options = &setting.options;
    let (name, method) = match select.method {
        SelectBy::JumpShares => ("jump-shares", JumpMethod::Algorithm3),
        _ => ("reversible-jump", JumpMethod::Fill),
    };
    let pairs: Vec<(Subset, Subset)> = match named.split_first() {
        Some((first, others)) => {
            others.iter().filter(|other| *other != first).map(|other| (*other, *first)).collect()
        }
        None => Vec::new(),
    };
    let order = ExploreOrder {
        draws: options.draws,
        warmup: options.warmup,
        chains: options.chains.max(LEAST_CHAINS),
        keep: MOST,
        seed: options.seed,
    };
    let jump = JumpOptions { method, order, most: MOST.max(select.top), pairs };
    let result = reversible_jump(session, setting, space, &jump)?;
    let labels = |model: &Subset| -> Vec<String> {
        model.iter().map(|t| space.terms[t].label.clone()).collect()
    };
    let jumps = result
        .pairs
        .iter()
        .map(|pair| JumpFactor {
            first: labels(&pair.first),
            second: labels(&pair.second),
            visits: result
                .log_bayes_factor(space, &pair.first, &pair.second)
                .filter(|_| method == JumpMethod::Algorithm3),
            acceptance: pair.accepted,
            bridge: pair.bridged,
        })
        .collect();
    if result.models.is_empty() {
        return Err(Error::numeric(
            "no model was visited on every shard, so that shares of visits have no product; write method = \"reversible-jump\", which computes what a shard has not seen, or \"search\"",
        ));
    }
    let missing = result.missing;
    let singles: Vec<Single> = result
        .models
        .into_iter()
        .map(|m| Single { model: m.model, log_posterior: m.log_posterior, evidence: m.evidence })
        .collect();
    let mut found = found(name, space, &singles, select.top);
    found.unseen = Estimate { value: missing, se: None };
    found.jumps = jumps;
    found.warnings.splice(0..0, result.warnings);
    Ok(found)
}
