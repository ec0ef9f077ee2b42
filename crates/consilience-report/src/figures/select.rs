//! Figures of a choice among many models.

use super::View;
use super::forest::{self, Row};
use super::rows::{MOST_ROWS, Rows, not_drawn};
use crate::document::select::{Select, name};
use crate::svg::scale::{Scale, Tick};
use crate::svg::{Anchor, Canvas, Figure, Ink, Mark, SIZE, SMALL, legend};
use crate::text::{counted, fixed, probability, width};

pub(crate) fn inclusion(view: &View, document: &Select) -> Figure {
    let mut canvas = Canvas::new(view.width);
    let mut order = document.order();
    order.truncate(MOST_ROWS);
    let of = |i: &usize| &document.inclusion[*i];
    let names: Vec<String> = order.iter().map(|i| of(i).term.clone()).collect();
    let values: Vec<String> = order.iter().map(|i| probability(of(i).probability)).collect();
    let items =
        [("given the data".to_string(), Mark::Box(0)), ("before the data".to_string(), Mark::Tick)];
    let top = legend(&mut canvas, 0.0, &items);
    let rows = Rows::new(&canvas, top, 16.0, &names, &values);
    let panel = rows.panel;
    let scale = Scale::exactly(0.0, 1.0, panel.left, panel.right - 4.0);
    let axis = "probability that the term belongs in";
    canvas.height = panel.bottom_axis(&mut canvas, &scale, scale.ticks(5), axis);
    panel.rule(&mut canvas, &scale, 0.5);
    for (row, i) in order.iter().enumerate() {
        let (term, y) = (of(i), rows.y(row));
        canvas.titled(&format!("{}: {}", term.term, values[row]), |canvas| {
            let zero = scale.at(0.0);
            canvas.rect(
                zero,
                y - 8.0,
                scale.at(term.probability) - zero,
                16.0,
                Ink::Series(0),
                0.85,
            );
            if let Some(prior) = term.prior {
                let x = scale.at(prior);
                canvas.line((x, y - 9.0), (x, y + 9.0), Ink::Text, 2.0);
            }
            if let Some(se) = term.se.filter(|se| *se > 0.001) {
                let ends = (term.probability - 1.96 * se, term.probability + 1.96 * se);
                canvas.interval((scale.at(ends.0), scale.at(ends.1)), y, Ink::Text);
            }
        });
        rows.label(&mut canvas, row, &term.term, &values[row]);
    }
    let over = document.inclusion.iter().filter(|t| t.probability > 0.5).count();
    Figure {
        title: "Which terms belong in the model?".into(),
        words: format!(
            "Bars of the probability that each of {} belongs in the model; {over} are over one half.",
            counted(document.inclusion.len(), "term")
        ),
        caption: format!(
            "The likeliest term first. The line at 0.5 parts the terms of the median model from the others; upright marks are the probabilities before the data; thin lines with ends are 95% intervals, where they can be seen.{}",
            not_drawn(document.inclusion.len(), "term")
        ),
        canvas,
    }
}

/// At most this many columns of terms, and rows of models.
const MOST_TERMS: usize = 40;

pub(crate) fn models(view: &View, document: &Select) -> Figure {
    let mut canvas = Canvas::new(view.width);
    let shown = document.models.len().min(20);
    let listed = &document.models[..shown];
    let named = |i: &usize| listed.iter().any(|m| m.terms.contains(&document.inclusion[*i].term));
    let order: Vec<usize> = document.order();
    let mut terms: Vec<usize> = order.iter().copied().filter(named).collect();
    let all = terms.len();
    let column = 74.0;
    let room = canvas.width - column;
    let fits = ((room / 11.0) as usize).clamp(1, MOST_TERMS);
    terms.truncate(fits);
    let cell = (room / terms.len().max(1) as f64).min(56.0);
    let label = |i: usize| document.inclusion[i].term.as_str();
    // Names stand above their columns where they fit there; else numbers do, and a list says what they mean.
    let level = terms.iter().all(|i| width(label(*i), SMALL) + 6.0 <= cell);
    let mut y = 16.0;
    for (c, i) in terms.iter().enumerate() {
        let x = column + cell * (c as f64 + 0.5);
        if level {
            canvas.text(x, y, Anchor::Middle, SMALL, Ink::Text, label(*i));
        } else if cell >= 18.0 || c % 2 == 0 {
            canvas.text(x, y, Anchor::Middle, SMALL, Ink::Text, &(c + 1).to_string());
        }
    }
    y += 8.0;
    let tall = 20.0;
    for model in listed {
        let words = format!("{}: {}", name(&model.terms), probability(model.probability));
        let value = probability(model.probability);
        canvas.text(column - 10.0, y + 14.5, Anchor::End, SIZE, Ink::Text, &value);
        canvas.titled(&words, |canvas| {
            for (c, i) in terms.iter().enumerate() {
                let x = column + cell * c as f64;
                let is_in = model.terms.iter().any(|t| t == label(*i));
                let (ink, shade) = if is_in { (Ink::Series(0), 0.9) } else { (Ink::Grid, 0.55) };
                canvas.rect(x + 1.0, y + 1.0, cell - 2.0, tall - 2.0, ink, shade);
            }
        });
        y += tall;
    }
    y += 6.0;
    if !level {
        let list: Vec<String> =
            terms.iter().enumerate().map(|(c, i)| format!("{}={}", c + 1, label(*i))).collect();
        let room = canvas.width;
        y = canvas.paragraph(0.0, y + 12.0, SMALL, Ink::Muted, &list.join(" · "), room);
    }
    canvas.height = y;
    let left = all - terms.len();
    Figure {
        title: "The likeliest models".into(),
        words: format!(
            "A grid of the {shown} likeliest models by their terms. The first one, {}, has the probability {}.",
            listed.first().map_or_else(|| "none".into(), |m| name(&m.terms)),
            listed.first().map_or_else(|| "0".into(), |m| probability(m.probability))
        ),
        caption: format!(
            "A row is a model with its probability; a full cell is a term that it has. All models that are not in the document's list hold {} together.{}{}",
            probability(document.outside.value.max(0.0)),
            if document.models.len() > shown {
                format!(" The first {shown} of {} listed are drawn.", document.models.len())
            } else {
                String::new()
            },
            if left > 0 {
                format!(" {} of these models' terms are not drawn.", left)
            } else {
                String::new()
            }
        ),
        canvas,
    }
}

pub(crate) fn sizes(view: &View, document: &Select) -> Figure {
    let mut canvas = Canvas::new(view.width);
    let sizes = &document.sizes;
    let first = sizes.iter().position(|s| s.value >= 5e-4).unwrap_or(0);
    let last = sizes.iter().rposition(|s| s.value >= 5e-4).unwrap_or(sizes.len().saturating_sub(1));
    let last = last.min(first + 119);
    let most = sizes.iter().map(|s| s.value).fold(0.0, f64::max).clamp(1e-6, 1.0);
    let (top, bottom) = (26.0, 196.0);
    let y = Scale::exactly(0.0, most * 1.08, bottom, top);
    let ticks = y.ticks(4);
    let left = crate::svg::label_width(&ticks);
    let panel = crate::svg::Panel { left, right: canvas.width - 4.0, top, bottom };
    panel.left_axis(&mut canvas, &y, &ticks, "probability");
    let count = last - first + 1;
    let x = Scale::exactly(first as f64 - 0.6, last as f64 + 0.6, panel.left, panel.right);
    let wide = ((panel.right - panel.left) / (count as f64 + 0.2) - 2.0).clamp(1.0, 70.0);
    let ticks = (first..=last).map(|k| Tick { value: k as f64, label: k.to_string() }).collect();
    canvas.height = panel.bottom_axis(&mut canvas, &x, ticks, "number of terms in the model");
    for k in first..=last {
        let Some(size) = sizes.get(k) else { continue };
        let (at, up) = (x.at(k as f64), y.at(size.value));
        canvas.titled(
            &format!("{}: {}", counted(k, "term"), probability(size.value.max(0.0))),
            |canvas| {
                canvas.rect(at - wide / 2.0, up, wide, bottom - up, Ink::Series(0), 0.85);
                if let Some((low, high)) = size.interval()
                    && (y.at(low) - y.at(high)).abs() > 2.0
                {
                    canvas.line((at, y.at(low)), (at, y.at(high)), Ink::Text, 1.6);
                }
            },
        );
    }
    let mean: f64 = sizes.iter().enumerate().map(|(k, s)| k as f64 * s.value).sum();
    Figure {
        title: "How many terms belong in?".into(),
        words: format!(
            "Bars of the probability of each number of terms; {} are expected.",
            fixed(mean, 1)
        ),
        caption: format!(
            "On average {} terms. Sizes with less than 0.0005 at both ends are left out.",
            fixed(mean, 1)
        ),
        canvas,
    }
}

pub(crate) fn coefficients(view: &View, document: &Select) -> Figure {
    let mut canvas = Canvas::new(view.width);
    let mut shown: Vec<&crate::document::select::Coefficient> =
        document.coefficients.iter().filter(|c| c.mean_if_in.is_some()).collect();
    shown.sort_by(|a, b| b.inclusion.total_cmp(&a.inclusion));
    shown.truncate(MOST_ROWS);
    let rows: Vec<Row> = shown
        .iter()
        .map(|c| {
            let mut items = Vec::new();
            if let Some((mean, sd)) = c.mean_if_in.zip(c.sd_if_in) {
                items.push((0, mean, (mean - 1.96 * sd, mean + 1.96 * sd)));
            }
            if c.term.is_some() {
                items.push((1, c.mean, (c.mean - 1.96 * c.sd, c.mean + 1.96 * c.sd)));
            }
            let belongs =
                if c.term.is_none() { "always in".into() } else { probability(c.inclusion) };
            Row { name: format!("{} ({belongs})", c.name), items }
        })
        .collect();
    let items = [
        ("where it is in".to_string(), Mark::Point(0)),
        ("over all models, 0 where it is not in".to_string(), Mark::Point(1)),
    ];
    let top = legend(&mut canvas, 0.0, &items) + 4.0;
    let (end, shared) = forest::draw(&mut canvas, top, &rows, "value of the coefficient");
    canvas.height = end;
    Figure {
        title: "Coefficients".into(),
        words: format!(
            "Means of {} with two standard deviations to both sides, in the models that have it and over all.",
            counted(rows.len(), "coefficient")
        ),
        caption: format!(
            "Means ± 1.96 standard deviations, with the probability that the coefficient belongs in.{}{}",
            if shared {
                ""
            } else {
                " Units differ: every row has its own scale, and the numbers are the ends of its first interval. An upright line in a row is 0."
            },
            not_drawn(document.coefficients.len(), "coefficient")
        ),
        canvas,
    }
}
