//! Tables that are shown on demand.

use super::layout::{measure, width};
use super::{
    ShardNames, bayes_factor, brief, counted, estimate, free, grouped, probability, table,
};
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
    let order = comparison.order();
    let names: Vec<String> = order
        .iter()
        .enumerate()
        .map(|(place, &i)| format!("{} {}", number(place), comparison.models[i].name))
        .collect();
    let cell = |i: usize, j: usize| match i == j {
        true => "·".to_string(),
        false => estimate(matrix[i][j]),
    };
    let widest = |j: usize| order.iter().map(|&i| measure(&cell(i, j))).max().unwrap_or(0).max(4);
    let first = names.iter().map(|name| measure(name)).max().unwrap_or(0);
    let mut out = "\nLog Bayes factors, the row's model against the column's\n".to_string();
    // As many columns side by side as there is room for.
    let mut from = 0;
    while from < order.len() {
        let (mut until, mut used) = (from, first);
        while until < order.len() {
            used += 2 + widest(order[until]);
            if used > width() && until > from {
                break;
            }
            until += 1;
        }
        let mut rows = vec![vec![String::new()]];
        rows[0].extend((from..until).map(number));
        for (name, &i) in names.iter().zip(&order) {
            let mut row = vec![name.clone()];
            row.extend(order[from..until].iter().map(|&j| cell(i, j)));
            rows.push(row);
        }
        out += &format!("\n{}", table(&rows));
        from = until;
    }
    out
}

/// Every model's parameters given all the data.
pub fn parameters(comparison: &Comparison) -> String {
    let mut out = String::new();
    for model in comparison.order().into_iter().map(|i| &comparison.models[i]) {
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
    let order = comparison.order();
    let head = ["model", "log evidence", "log Bayes factor", "probability"];
    let mut rows = vec![head.map(String::from)];
    for at in sweep {
        rows.extend(order.iter().map(|&i| &at.models[i]).map(|model| {
            [
                format!("  {}", model.name),
                brief(model.log_evidence),
                bayes_factor(model.log_bayes_factor),
                probability(model.probability),
            ]
        }));
    }
    // All scales in one table, so that their numbers stand below each other; then a line above each.
    let text = table(&rows);
    let lines: Vec<&str> = text.lines().collect();
    let of_scale = order.len() * lines.len() / rows.len();
    let (first, rest) = lines.split_at(lines.len() / rows.len());
    let mut shown = first.join("\n") + "\n";
    for (at, block) in sweep.iter().zip(rest.chunks(of_scale.max(1))) {
        let ranking = match at {
            at if at.scale == 1.0 => ": the study's own",
            at if at.another_best => ": another model is best",
            at if at.reordered => ": the ranking changes",
            _ if several => ": the same ranking",
            _ => "",
        };
        let _ = writeln!(shown, "× {}{ranking}\n{}", at.scale, block.join("\n"));
    }
    let moved = sweep.iter().any(|at| at.another_best);
    let unsure = sweep.iter().any(|at| at.best != comparison.best.name);
    let verdict = match (several, moved, unsure) {
        (false, ..) => String::new(),
        (_, true, _) => "\nWhich model is the best depends on the scale of the priors.\n".into(),
        (_, false, true) => {
            "\nWhich model is the best does not change by more than the errors.\n".into()
        }
        (_, false, false) => "\nThe best model is the same at every scale.\n".to_string(),
    };
    format!("\nThe priors of all coefficients made wider (×) and narrower\n\n{shown}{verdict}")
}

/// What each shard pulls, the largest pull first. Shards that have names go by them.
pub fn leave_one_out(comparison: &Comparison, names: &ShardNames) -> String {
    let what = names.what();
    let name = |s: &ShardPull| names.name(s.shard);
    let Some(shards) = &comparison.leave_one_out else { return String::new() };
    let mut order: Vec<&ShardPull> = shards.iter().collect();
    let several = comparison.models.len() > 1;
    let leading = leading(comparison, shards);
    let most_pulled = |s: &ShardPull| most_pulled(s, &leading);
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
        false => format!(" ({shown} of {})", shards.len()),
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
            "\nEach {what} left out{count}, by its pull on the log Bayes factor (BF)\n"
        );
        let head = [what, "rows", "model", "pull", "log BF without", "best without"];
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
            "\nEach {what} left out{count}: how well the others predict it, the least usual first\n"
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

/// Models whose share of the best one's probability is smaller than this are out of the race.
const OUT_OF_THE_RACE: f64 = 0.01;

/// The numbers of the models that could be the best: a hopeless one is pulled about most, and nobody asks for it.
fn leading(comparison: &Comparison, shards: &[ShardPull]) -> Vec<usize> {
    let order = comparison.order();
    let highest = comparison.models[order[0]].probability;
    let near = |i: usize| comparison.models[i].probability >= OUT_OF_THE_RACE * highest;
    let once_best = |i: usize| shards.iter().any(|s| s.best == comparison.models[i].name);
    let leads = |(place, i): (usize, &usize)| place < 2 || near(*i) || once_best(*i);
    order.iter().enumerate().filter(|p| leads(*p)).map(|(_, i)| *i).collect()
}

/// The index of the model, one of these, whose log Bayes factor the shard moves most.
fn most_pulled(shard: &ShardPull, models: &[usize]) -> usize {
    let size = |i: &usize| shard.models[*i].pull.value.abs();
    models.iter().copied().max_by(|a, b| size(a).total_cmp(&size(b))).unwrap_or(0)
}
