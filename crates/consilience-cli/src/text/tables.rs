//! Tables that are shown on demand.

use super::{bayes_factor, counted, estimate, free, grouped, probability, table};
use consilience::compare::{Comparison, ModelPull, ShardPull};
use consilience::model::{Family, Prior};
use std::fmt::Write;

/// The most shards that are shown of those left out.
const MOST_SHARDS: usize = 10;

/// log Bayes factors of all pairs: the row's model against the column's.
pub fn bayes_factors(comparison: &Comparison) -> String {
    let Some(matrix) = &comparison.bayes_factors else {
        let count = counted(comparison.models.len(), "model");
        return format!("\nThe Bayes factors of all pairs of {count} are too many to list.\n");
    };
    let number = |i: usize| format!("[{}]", i + 1);
    let mut rows = vec![vec![String::new()]];
    rows[0].extend((0..matrix.len()).map(number));
    for (i, factors) in matrix.iter().enumerate() {
        let mut row = vec![format!("{} {}", number(i), comparison.models[i].name)];
        row.extend(factors.iter().enumerate().map(|(j, factor)| match i == j {
            true => "·".into(),
            false => estimate(*factor),
        }));
        rows.push(row);
    }
    format!("\nLog Bayes factors, the row's model against the column's\n\n{}", table(&rows))
}

/// Every model's parameters given all the data.
pub fn parameters(comparison: &Comparison) -> String {
    let mut out = String::new();
    for model in &comparison.models {
        let count = counted(free(model), "free parameter");
        let family = model.family.map_or("", Family::name);
        let _ = writeln!(out, "\nParameters of {} ({family}, {count})\n", model.name);
        let head = ["parameter", "mean", "sd", "2.5%", "50%", "97.5%", "prior"];
        let mut rows = vec![head.map(String::from)];
        rows.extend(model.parameters.iter().map(|p| {
            let n = |x| value(x, p.sd);
            let sd = if p.sd > 0.0 { n(p.sd) } else { "fixed".into() };
            let (own, sigma) = match p.prior.strip_suffix(" * sigma") {
                Some(own) => (own, " * sigma"),
                None => (p.prior.as_str(), ""),
            };
            let prior = own.parse::<Prior>().map(|prior| format!("{}{sigma}", prior.rounded()));
            let prior = prior.unwrap_or_else(|_| p.prior.clone());
            [p.name.clone(), n(p.mean), sd, n(p.low), n(p.median), n(p.high), prior]
        }));
        out += &table(&rows);
    }
    out
}

/// A number to three significant digits of its standard deviation.
fn value(x: f64, sd: f64) -> String {
    if sd <= 0.0 || !sd.is_finite() {
        return x.to_string();
    }
    let decimals = (2.0 - sd.log10().floor()).clamp(0.0, 12.0) as usize;
    format!("{x:.decimals$}")
}

/// Coefficients averaged over the models.
pub fn averages(comparison: &Comparison) -> String {
    if comparison.models.len() < 2 {
        return String::new();
    }
    let averages = &comparison.averages;
    if let Some(reason) = &averages.reason {
        return format!("\nNo averages over the models: {reason}.\n");
    }
    let head = ["parameter", "in the model", "mean", "sd", "mean if in", "sd if in"];
    let mut rows = vec![head.map(String::from)];
    rows.extend(averages.parameters.iter().map(|a| {
        // Digits by the spread where the parameter is in: over all models it may be next to nothing.
        let spread = a.included_sd.unwrap_or(a.sd);
        let n = |x: f64| value(x, spread);
        [
            a.name.clone(),
            probability(a.inclusion_probability),
            n(a.mean),
            n(a.sd),
            a.included_mean.map_or("-".into(), n),
            a.included_sd.map_or("-".into(), n),
        ]
    }));
    format!("\nAveraged over the models (0 where a model lacks the parameter)\n\n{}", table(&rows))
}

/// The comparison under priors of other widths.
pub fn prior_sensitivity(comparison: &Comparison) -> String {
    let Some(sweep) = &comparison.prior_sensitivity else { return String::new() };
    let several = comparison.models.len() > 1;
    let scales: Vec<String> = sweep.iter().map(|at| format!("× {}", at.scale)).collect();
    let width = scales.iter().map(|s| s.chars().count()).max().unwrap_or(0);
    let first = |scale: &str, model: &str| format!("{scale:<width$}  {model}");
    let head = ["", "log evidence", "log Bayes factor", "probability", "ranking"];
    let mut rows = vec![head.map(String::from)];
    rows[0][0] = first("", "model");
    for (at, scale) in sweep.iter().zip(&scales) {
        for (i, model) in at.models.iter().enumerate() {
            let ranking = match (i, at.scale == 1.0, at.reordered) {
                (0, true, _) => "the study's own",
                (0, _, true) if at.best != comparison.best.name => "another is best",
                (0, _, true) => "changed",
                (0, _, false) if several => "the same",
                _ => "",
            };
            rows.push([
                first(if i == 0 { scale } else { "" }, &model.name),
                estimate(model.log_evidence),
                bayes_factor(model.log_bayes_factor),
                probability(model.probability),
                ranking.into(),
            ]);
        }
    }
    let moved = sweep.iter().any(|at| at.best != comparison.best.name);
    let verdict = match (several, moved) {
        (false, _) => String::new(),
        (_, true) => "\nWhich model is the best depends on the scale of the priors.\n".into(),
        (_, false) => "\nThe best model is the same at every scale.\n".to_string(),
    };
    format!(
        "\nThe priors of all coefficients made wider (×) and narrower\n\n{}{verdict}",
        table(&rows)
    )
}

/// What each shard pulls, the largest pull first. Shards that are sites go by their names.
pub fn leave_one_out(comparison: &Comparison, sites: &[String]) -> String {
    let what = if sites.is_empty() { "shard" } else { "site" };
    let name = |s: &ShardPull| sites.get(s.shard).cloned().unwrap_or_else(|| s.shard.to_string());
    let Some(shards) = &comparison.leave_one_out else { return String::new() };
    let mut order: Vec<&ShardPull> = shards.iter().collect();
    let several = comparison.models.len() > 1;
    let mean = |s: &ShardPull| s.models[0].log_predictive.value / s.rows;
    let average = shards.iter().map(mean).sum::<f64>() / shards.len() as f64;
    let size = |s: &ShardPull| match several {
        true => s.models[most_pulled(s)].pull.value.abs(),
        false => (mean(s) - average).abs(),
    };
    order.sort_by(|a, b| size(b).total_cmp(&size(a)).then(a.shard.cmp(&b.shard)));
    let shown = order.len().min(MOST_SHARDS);
    let count = match shown == shards.len() {
        true => String::new(),
        false => format!(", {shown} of {}", shards.len()),
    };
    order.truncate(shown);
    let mark = |m: &ModelPull| if m.reliable { "" } else { " ?" };
    // The best model by evidence, which Bayes factors refer to.
    let refers = comparison.models.iter().position(|m| m.strength.is_none());
    let reference = refers.unwrap_or(0);
    let mut out = String::new();
    if several {
        let _ = writeln!(
            out,
            "\nEach {what} left out: its pull on the log Bayes factor (largest first{count})\n"
        );
        let head =
            [what, "rows", "model", "pull", "log Bayes factor without", "most probable without"];
        let mut rows = vec![head.map(String::from)];
        rows.extend(order.iter().map(|s| {
            let model = &s.models[most_pulled(s)];
            let without = model.log_evidence - s.models[reference].log_evidence;
            let doubt = if s.models[reference].reliable { mark(model) } else { " ?" };
            let best = if s.best == comparison.best.name { "the same" } else { &s.best };
            [
                name(s),
                grouped(s.rows),
                model.name.clone(),
                estimate(model.pull) + doubt,
                estimate(without) + doubt,
                best.into(),
            ]
        }));
        out += &table(&rows);
    } else {
        let _ = writeln!(
            out,
            "\nEach {what} left out: how well the others predict it (least usual first{count})\n"
        );
        let head = [what, "rows", "log predictive", "per row"];
        let mut rows = vec![head.map(String::from)];
        rows.extend(order.iter().map(|s| {
            let model = &s.models[0];
            let predictive = estimate(model.log_predictive) + mark(model);
            [name(s), grouped(s.rows), predictive, format!("{:.4}", mean(s))]
        }));
        out += &table(&rows);
    }
    if order.iter().any(|s| s.models.iter().any(|m| !m.reliable)) {
        out += "\n?  not well known: see the warning below.\n";
    }
    out
}

/// The index of the model whose log Bayes factor the shard moves most.
fn most_pulled(shard: &ShardPull) -> usize {
    let size = |m: &ModelPull| m.pull.value.abs();
    let by_size =
        |a: &(usize, &ModelPull), b: &(usize, &ModelPull)| size(a.1).total_cmp(&size(b.1));
    shard.models.iter().enumerate().max_by(by_size).map_or(0, |(i, _)| i)
}
