//! Whether the quadrature over effects of groups has nodes enough.

use crate::combine::{Evidence, Setting};
use crate::engine::Session;
use crate::math::Matrix;
use crate::question::{Points, Weigh};
use crate::{Level, Result, Warning};
use std::sync::Arc;

/// What evidences may be off by, in nats, before it is said, and before they are not to be trusted.
const SAID: f64 = 0.01;
const UNRELIABLE: f64 = 0.1;

/// Asks shards for the log-likelihoods of models with effects of groups at the posterior mean, once more with twice the
/// nodes. One round for all models; none where no model has effects.
pub(super) fn check(
    session: &Session,
    settings: &[Setting],
    evidences: &mut [Evidence],
) -> Result<()> {
    let has_effects = |i: &usize| {
        let mean = &evidences[*i].mean;
        settings[*i].model.effects().is_some()
            && mean.len() == settings[*i].model.dim()
            && mean.iter().all(|m| m.is_finite())
    };
    let asked: Vec<usize> = (0..settings.len()).filter(has_effects).collect();
    if asked.is_empty() {
        return Ok(());
    }
    let mut points = Vec::new();
    for &i in &asked {
        let (setting, mean) = (&settings[i], evidences[i].mean.clone());
        let thetas = Arc::new(Matrix::from_rows(1, mean.len(), mean));
        let doubled = Arc::new(setting.model.with_twice_the_nodes());
        for model in [setting.model.clone(), doubled] {
            let (share, thetas) = (setting.share, thetas.clone());
            points.push(Points { model, share, thetas, rule: None });
        }
    }
    let question = Weigh(points);
    let (sums, _) = session.ask_one(&question)?.sum(&question)?;
    for (&i, pair) in asked.iter().zip(sums.chunks_exact(2)) {
        let change = pair[1][0] - pair[0][0];
        // A change that is no number is large, too.
        if change.abs() <= SAID {
            continue;
        }
        let nodes = settings[i].model.effects().map_or(0, |effects| effects.nodes());
        let message = format!(
            "with {} nodes per effect in place of {nodes} the log-likelihood at the posterior mean changes by {change:.2} nats; the evidence may be off by as much",
            2 * nodes
        );
        let advice = format!("set nodes = {} under [evidence]", 2 * nodes);
        let warning = match change.abs() <= UNRELIABLE {
            true => Warning::new(Level::Caution, "quadrature-nodes", message, &advice),
            false => Warning::new(Level::Unreliable, "too-few-nodes", message, &advice),
        };
        evidences[i].warnings.push(warning.value(change));
    }
    Ok(())
}
