//! Where the evidence comes from: the parts of log p(y), and single shards.

use super::leading;
use crate::document::Document;
use crate::document::compare::{Compare, Model};
use crate::figures::View;
use crate::figures::rows::{Rows, not_drawn};
use crate::figures::sorted::{self, Item};
use crate::svg::scale::{Scale, extent};
use crate::svg::{Canvas, Figure, Ink, Mark, legend};
use crate::text::{estimate, fixed, quoted};

/// The parts of a model's log evidence. The share of the prior is a part of its own only where all models have it.
pub(crate) fn parts_of(document: &Compare, model: &Model) -> Option<Vec<(&'static str, f64)>> {
    let (shards, overlap) = (model.parts.shards?.value, model.parts.overlap?.value);
    let apart = document.models.iter().all(|m| m.parts.log_alpha.is_some());
    Some(match model.parts.log_alpha {
        Some(alpha) if apart => vec![
            ("what shards find on their own", shards - alpha),
            ("shares of the prior", alpha),
            ("overlap of the shards", overlap),
        ],
        _ => vec![("what shards find on their own", shards), ("overlap of the shards", overlap)],
    })
}

/// A model, its parts and their sum.
type Line<'a> = (&'a Model, Vec<(&'static str, f64)>, f64);

pub(crate) fn decomposition(view: &View, document: &Compare) -> Figure {
    let mut canvas = Canvas::new(view.width);
    let best = document.best();
    let base = parts_of(document, &document.models[best]).unwrap_or_default();
    let alone = document.models.len() == 1;
    let mut lines: Vec<Line> = Vec::new();
    for i in leading(document).into_iter().filter(|i| alone || *i != best) {
        let model = &document.models[i];
        let Some(parts) = parts_of(document, model) else { continue };
        let minus = |k: usize| if alone { 0.0 } else { base.get(k).map_or(0.0, |p| p.1) };
        let parts: Vec<(&'static str, f64)> =
            parts.iter().enumerate().map(|(k, p)| (p.0, p.1 - minus(k))).collect();
        let total = if alone {
            model.log_evidence.value
        } else {
            model.log_evidence.value - document.models[best].log_evidence.value
        };
        lines.push((model, parts, total));
    }
    let mut items: Vec<(String, Mark)> =
        base.iter().enumerate().map(|(k, p)| (p.0.to_string(), Mark::Box(k))).collect();
    items.push(("all together".into(), Mark::Point(3)));
    let top = legend(&mut canvas, 0.0, &items) + 4.0;
    let names: Vec<String> = lines.iter().map(|l| l.0.name.clone()).collect();
    let values: Vec<String> = lines.iter().map(|l| fixed(l.2, 1)).collect();
    let height = 11.0 * (base.len() + 1) as f64;
    let rows = Rows::new(&canvas, top, height, &names, &values);
    let panel = rows.panel;
    let all = lines.iter().flat_map(|l| l.1.iter().map(|p| p.1).chain([l.2]));
    let scale = Scale::linear(extent(all.chain([0.0])), panel.left, panel.right);
    let count = ((panel.right - panel.left) / 100.0) as usize;
    let axis = if alone { "nats" } else { "nats more (right) or less (left) than the best model" };
    canvas.height = panel.bottom_axis(&mut canvas, &scale, scale.ticks(count.max(2)), axis);
    for (row, (model, parts, total)) in lines.iter().enumerate() {
        let (zero, y) = (scale.at(0.0), rows.y(row) - height / 2.0);
        for (k, (what, value)) in parts.iter().enumerate() {
            canvas.titled(&format!("{}: {what}, {}", model.name, fixed(*value, 2)), |canvas| {
                let y = y + 11.0 * k as f64 + 1.0;
                canvas.rect(zero, y, scale.at(*value) - zero, 9.0, Ink::Series(k), 0.9);
            });
        }
        canvas.point(scale.at(*total), y + 11.0 * parts.len() as f64 + 5.5, 4.0, 3, true);
        rows.label(&mut canvas, row, &model.name, &values[row]);
    }
    panel.rule(&mut canvas, &scale, 0.0);
    let name = quoted(&document.models[best].name);
    Figure {
        title: if alone {
            "Where the evidence comes from".into()
        } else {
            format!("Where the difference to {name} comes from")
        },
        words: "Bars of the parts of the log evidence: what shards find on their own, shares of the prior, and how far the shards' posteriors overlap.".into(),
        caption: format!(
            "From the top of each row: {}; the diamond is their sum, the difference in log evidence, which is also the number.{}",
            base.iter().map(|p| p.0).collect::<Vec<_>>().join(", "),
            not_drawn(document.models.len(), "model")
        ),
        canvas,
    }
}

/// Per shard: the log evidence of the best model minus that of the next one.
pub(crate) fn shards_differ(document: &Document, compare: &Compare, other: usize) -> Vec<Item> {
    let best = &compare.models[compare.best()];
    let pairs = best.shards.iter().zip(&compare.models[other].shards);
    let item = |(s, (a, b)): (
        usize,
        (&crate::document::compare::Shard, &crate::document::compare::Shard),
    )| {
        let (a_log, b_log) = (a.log_evidence?, b.log_evidence?);
        let se = a_log.se.zip(b_log.se).map(|(x, y)| x.hypot(y));
        let difference = crate::document::Estimate { value: a_log.value - b_log.value, se };
        Some(Item {
            name: format!("{} ({} rows)", document.shard(s), crate::text::grouped(a.rows)),
            value: difference.value,
            interval: difference.interval(),
        })
    };
    pairs.enumerate().filter_map(item).collect()
}

pub(crate) fn shards(view: &View, document: &Compare) -> Figure {
    let mut canvas = Canvas::new(view.width);
    let Some(other) = view.other(document) else {
        return super::super::empty(canvas, "Shard by shard");
    };
    let items = shards_differ(view.document, document, other);
    let (a, b) =
        (quoted(&document.models[document.best()].name), quoted(&document.models[other].name));
    canvas.height = sorted::draw(&mut canvas, 0.0, &items, "nats for the best model");
    let against = items.iter().filter(|i| i.value < 0.0).count();
    Figure {
        title: format!("What each shard finds on its own: {a} against {b}"),
        words: format!(
            "Bars of the log evidence of {a} minus that of {b} within each of {} shards; {against} of them are below 0.",
            items.len()
        ),
        caption: format!(
            "Right or up: the shard on its own speaks for {a}; left or down: for {b}. {against} of {} speak for the latter. With their share of the prior only; the whole result is more than their sum, since shards also have to agree.",
            crate::text::counted(items.len(), "shard")
        ),
        canvas,
    }
}

/// Per shard: what it pulls towards the best model.
pub(crate) fn pulls(document: &Document, compare: &Compare, other: usize) -> Vec<Item> {
    let all = compare.leave_one_out.iter().flatten();
    let item = |without: &crate::document::compare::Without| {
        let pull = without.models.get(other)?.pull;
        Some(Item {
            name: format!(
                "{} ({} rows)",
                document.shard(usize::try_from(without.shard).unwrap_or(usize::MAX)),
                crate::text::grouped(without.rows)
            ),
            value: -pull.value,
            interval: pull.interval().map(|(low, high)| (-high, -low)),
        })
    };
    all.filter_map(item).collect()
}

pub(crate) fn leave_one_out(view: &View, document: &Compare) -> Figure {
    let mut canvas = Canvas::new(view.width);
    let Some(other) = view.other(document) else {
        return super::super::empty(canvas, "Without each shard");
    };
    let items = pulls(view.document, document, other);
    let (best, next) = (&document.models[document.best()], &document.models[other]);
    let (a, b) = (quoted(&best.name), quoted(&next.name));
    canvas.height =
        sorted::draw(&mut canvas, 0.0, &items, "nats that the shard adds for the best model");
    let flips = document.leave_one_out.iter().flatten().filter(|w| w.best != best.name).count();
    let flips = match flips {
        0 => "Whichever shard is left out, the best model stays the same.".to_string(),
        1 => "Another model comes first when one shard is left out.".to_string(),
        n => format!("For each of {n} shards, another model comes first when it is left out."),
    };
    let lead = -next.log_bayes_factor.value;
    Figure {
        title: format!("What single shards add: {a} against {b}"),
        words: format!(
            "Bars of how far each of {} shards moves the log Bayes factor. {flips}",
            items.len()
        ),
        caption: format!(
            "How much the log Bayes factor of {a} against {b}, {}, would fall without the shard. {flips}",
            estimate(lead, next.log_bayes_factor.se)
        ),
        canvas,
    }
}
