//! The numbers of a comparison's figures.

use super::html::Table;
use crate::Document;
use crate::document::compare::Compare;
use crate::figures::compare::{parts_of, pulls, shards_differ};
use crate::figures::sorted::Item;
use crate::text::{fixed, grouped, probability, significant};

fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |v| significant(v, 5))
}

pub(super) fn probabilities(d: &Compare) -> Table {
    let head = ["model", "probability", "95% from", "to", "before the data"];
    let mut table =
        Table::new("Posterior probabilities of the models, the likeliest first.", &head);
    for i in d.order() {
        let m = &d.models[i];
        let end = |k: usize| {
            m.probability_interval.map_or_else(
                || "unknown".into(),
                |ends| if ends[k] == 0.0 { "0".into() } else { probability(ends[k]) },
            )
        };
        table.rows.push(vec![
            m.name.clone(),
            probability(m.probability),
            end(0),
            end(1),
            probability(m.prior_probability),
        ]);
    }
    table
}

pub(super) fn evidence(d: &Compare) -> Table {
    let head = [
        "model",
        "formula",
        "family",
        "log evidence",
        "log Bayes factor",
        "against it",
        "parameters",
    ];
    let mut table =
        Table::new("Log evidence, and its difference to the highest, ± standard error.", &head);
    table.words = vec![1, 2, 5];
    for i in d.order() {
        let m = &d.models[i];
        table.rows.push(vec![
            m.name.clone(),
            m.formula.clone(),
            m.family.clone(),
            m.log_evidence.show(),
            m.log_bayes_factor.show(),
            m.strength.clone().unwrap_or_default(),
            m.parameters.iter().filter(|p| p.sd > 0.0).count().to_string(),
        ]);
    }
    table
}

pub(super) fn bayes_factors(d: &Compare) -> Table {
    let order: Vec<usize> = d.order().into_iter().take(40).collect();
    let mut head = vec!["model".to_string()];
    head.extend(order.iter().map(|i| d.models[*i].name.clone()));
    let mut table = Table::new("Log Bayes factors of the row's model against the column's.", &[]);
    table.head = head;
    let Some(matrix) = &d.bayes_factors else { return table };
    for i in &order {
        let mut row = vec![d.models[*i].name.clone()];
        let cell = |j: &usize| matrix.get(*i).and_then(|r| r.get(*j)).map(|e| fixed(e.value, 2));
        row.extend(order.iter().map(|j| cell(j).unwrap_or_default()));
        table.rows.push(row);
    }
    table
}

pub(super) fn decomposition(d: &Compare) -> Table {
    let mut table = Table::new("Parts of the log evidence, in nats.", &["model"]);
    for i in d.order() {
        let Some(parts) = parts_of(d, &d.models[i]) else { continue };
        if table.head.len() == 1 {
            table.head.extend(parts.iter().map(|p| p.0.to_string()));
            table.head.push("all together".into());
        }
        let mut row = vec![d.models[i].name.clone()];
        row.extend(parts.iter().map(|p| fixed(p.1, 3)));
        row.push(fixed(d.models[i].log_evidence.value, 3));
        table.rows.push(row);
    }
    table
}

/// Shards by the size of what they say.
fn items(table: &mut Table, mut items: Vec<Item>) {
    items.sort_by(|a, b| b.value.abs().total_cmp(&a.value.abs()));
    for item in items {
        let end = |e: Option<f64>| shown(e);
        table.rows.push(vec![
            item.name,
            fixed(item.value, 3),
            end(item.interval.map(|i| i.0)),
            end(item.interval.map(|i| i.1)),
        ]);
    }
}

pub(super) fn shards(document: &Document, d: &Compare) -> Table {
    let head = ["shard", "nats for the best model", "95% from", "to"];
    let mut table = Table::new(
        "Log evidence on the shard alone, the best model's less the next one's; the farthest from 0 first.",
        &head,
    );
    if let Some(other) = d.second() {
        items(&mut table, shards_differ(document, d, other));
    }
    table
}

pub(super) fn leave_one_out(document: &Document, d: &Compare) -> Table {
    let head = ["shard", "nats that it adds for the best", "95% from", "to"];
    let mut table = Table::new(
        "What the log Bayes factor of the best model against the next would lose without the shard; the farthest from 0 first.",
        &head,
    );
    let Some(other) = d.second() else { return table };
    items(&mut table, pulls(document, d, other));
    let poor =
        d.leave_one_out.iter().flatten().filter(|w| w.models.iter().any(|m| !m.reliable)).count();
    if poor > 0 {
        table.caption += &format!(" On {poor} of them the draws are too few to be sure.");
    }
    let lowest = d
        .leave_one_out
        .iter()
        .flatten()
        .filter_map(|w| w.models.get(d.best()))
        .map(|m| m.probability)
        .reduce(f64::min);
    if let Some(lowest) = lowest {
        table.caption += &format!(
            " Without any one shard the best model has at least the probability {}.",
            probability(lowest)
        );
    }
    table
}

pub(super) fn agreement(document: &Document, d: &Compare) -> Table {
    let head =
        ["shard", "model", "rows", "χ²", "degrees of freedom", "p-value", "standard deviations"];
    let mut table = Table::new("Agreement with the consensus, the least agreeing first.", &head);
    table.words = vec![1];
    let mut all = Vec::new();
    for (m, model) in d.models.iter().enumerate() {
        for (s, shard) in model.shards.iter().enumerate() {
            if let Some(a) = &shard.agreement {
                all.push((a.surprise(), m, s, shard.rows, a));
            }
        }
    }
    // Those of too few rows come last.
    let size = |surprise: Option<f64>| surprise.unwrap_or(f64::NEG_INFINITY);
    all.sort_by(|a, b| size(b.0).total_cmp(&size(a.0)).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    let more = all.len();
    all.truncate(50);
    if more > all.len() {
        table.caption += &format!(" The first 50 of {}.", grouped(more as f64));
    }
    for (surprise, m, s, rows, a) in all {
        table.rows.push(vec![
            document.shard(s),
            d.models[m].name.clone(),
            grouped(rows),
            fixed(a.chi_square, 2),
            significant(a.degrees_of_freedom, 3),
            a.p_value.map_or_else(|| "too few rows".into(), |p| significant(p, 3)),
            surprise.map_or_else(|| "–".into(), |s| fixed(s, 2)),
        ]);
    }
    table
}

pub(super) fn parameters(d: &Compare) -> Table {
    let head = ["parameter", "model", "mean", "sd", "2.5%", "97.5%", "prior"];
    let mut table = Table::new("Parameters given all the data, the likeliest model first.", &head);
    table.words = vec![1, 6];
    for i in d.order() {
        for p in &d.models[i].parameters {
            if table.rows.len() > 10 * super::html::MOST_ROWS {
                return table;
            }
            table.rows.push(vec![
                p.name.clone(),
                d.models[i].name.clone(),
                significant(p.mean, 5),
                significant(p.sd, 3),
                significant(p.low, 5),
                significant(p.high, 5),
                p.prior.clone(),
            ]);
        }
        if i == d.best() {
            averages(d, &mut table);
        }
    }
    table
}

/// Averages stand below the best model.
fn averages(d: &Compare, table: &mut Table) {
    for p in
        d.averages.parameters.iter().filter(|_| d.models.len() > 1).take(super::html::MOST_ROWS)
    {
        table.rows.push(vec![
            p.name.clone(),
            format!("(average where it is in: {})", probability(p.inclusion_probability)),
            shown(p.included_mean),
            shown(p.included_sd),
            String::new(),
            String::new(),
            String::new(),
        ]);
    }
}

pub(super) fn prior_scale(d: &Compare) -> Table {
    let mut table = Table::new(
        "Model probabilities under other priors.",
        &["scale", "most probable", "order as at 1"],
    );
    table.words = vec![1];
    let models: Vec<usize> = d.order().into_iter().take(8).collect();
    table.head.extend(models.iter().map(|i| d.models[*i].name.clone()));
    for s in d.prior_sensitivity.iter().flatten() {
        let mut row = vec![
            significant(s.scale, 3),
            s.best.clone(),
            if s.reordered { "no" } else { "yes" }.to_string(),
        ];
        row.extend(
            models
                .iter()
                .map(|i| s.models.get(*i).map_or_else(String::new, |m| probability(m.probability))),
        );
        table.rows.push(row);
    }
    table
}
