//! The pieces of log p(y), where the shards computed their own evidences.

use crate::text::{estimate, table};
use consilience::compare::Comparison;

/// The paper's decomposition log p(y) = Σ log α_s + Σ log p̃(y_s) + log I as a table, and what the
/// normal approximation makes of log I; nothing where no shard has an evidence of its own.
pub fn of(comparison: &Comparison) -> String {
    let head = ["model", "Σ log α", "Σ log p(y_s)", "log I", "share of log I", "normal is off by"];
    let mut rows = vec![head.map(String::from)];
    for model in comparison.order().into_iter().map(|i| &comparison.models[i]) {
        let parts = &model.parts;
        let (Some(shards), Some(overlap)) = (parts.shards, parts.overlap) else { continue };
        let not_finite = || "not finite".to_string();
        let of_shards = parts.subevidences.map_or_else(|| estimate(shards), estimate);
        rows.push([
            model.name.clone(),
            parts.log_alpha.map_or_else(not_finite, |a| format!("{a:.2}")),
            of_shards,
            estimate(overlap),
            parts.overlap_share.map_or_else(String::new, |s| format!("{:.2}%", 100.0 * s)),
            parts.correction.map_or_else(String::new, |c| format!("{:+.3}", -c)),
        ]);
    }
    if rows.len() == 1 {
        return String::new();
    }
    // A column that no model fills says nothing.
    let corrected = rows[1..].iter().any(|row| !row[5].is_empty());
    let rows: Vec<&[String]> = rows.iter().map(|r| &r[..if corrected { 6 } else { 5 }]).collect();
    format!("\n{}", table(&rows))
}
