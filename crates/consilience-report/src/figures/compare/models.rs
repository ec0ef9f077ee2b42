//! Models against each other: probabilities, log evidences, Bayes factors.

use super::leading;
use crate::document::compare::{Compare, Model};
use crate::figures::View;
use crate::figures::rows::{Rows, not_drawn};
use crate::svg::scale::{Scale, extent};
use crate::svg::{Anchor, Canvas, Figure, Ink, Mark, Panel, SIZE, SMALL, legend, px};
use crate::text::{fixed, probability, significant, width};

pub(crate) fn probabilities(view: &View, document: &Compare) -> Figure {
    let mut canvas = Canvas::new(view.width);
    let order = leading(document);
    let of = |i: &usize| &document.models[*i];
    let names: Vec<String> = order.iter().map(|i| of(i).name.clone()).collect();
    let values: Vec<String> = order.iter().map(|i| probability(of(i).probability)).collect();
    let items =
        [("given the data".to_string(), Mark::Box(0)), ("before the data".to_string(), Mark::Tick)];
    let top = legend(&mut canvas, 0.0, &items);
    let rows = Rows::new(&canvas, top, 16.0, &names, &values);
    let panel = rows.panel;
    let scale = Scale::exactly(0.0, 1.0, panel.left, panel.right - 4.0);
    canvas.height =
        panel.bottom_axis(&mut canvas, &scale, scale.ticks(5), "probability of the model");
    for (row, i) in order.iter().enumerate() {
        let (model, y) = (of(i), rows.y(row));
        let words = format!("{}: {}{}", model.name, values[row], interval_words(model));
        canvas.titled(&words, |canvas| {
            let x = scale.at(0.0);
            canvas.rect(x, y - 8.0, scale.at(model.probability) - x, 16.0, Ink::Series(0), 0.85);
            let prior = scale.at(model.prior_probability);
            canvas.line((prior, y - 9.0), (prior, y + 9.0), Ink::Text, 2.0);
            // Where its ends look the same, it says nothing.
            if let Some([low, high]) = model.probability_interval
                && high - low > 0.004
            {
                canvas.interval((scale.at(low), scale.at(high)), y, Ink::Text);
            }
        });
        rows.label(&mut canvas, row, &model.name, &values[row]);
    }
    let best = &document.models[document.best()];
    Figure {
        title: "How probable each model is".into(),
        words: format!(
            "Bars of the posterior probabilities of {}. The most probable is {} with {}.",
            crate::text::counted(document.models.len(), "model"),
            best.name,
            probability(best.probability)
        ),
        caption: format!(
            "Thin lines with ends are 95% intervals from the Monte Carlo errors, where they are wide enough to be seen. Upright marks are the probabilities before the data.{}",
            not_drawn(document.models.len(), "model")
        ),
        canvas,
    }
}

fn interval_words(model: &Model) -> String {
    model.probability_interval.map_or(String::new(), |[low, high]| {
        format!(", 95% from {} to {}", probability(low), probability(high))
    })
}

/// How far from the best model the zoom reaches, in nats.
const ZOOM: f64 = 8.0;

pub(crate) fn evidence(view: &View, document: &Compare) -> Figure {
    let mut canvas = Canvas::new(view.width);
    let order = leading(document);
    let of = |i: &usize| &document.models[*i];
    let names: Vec<String> = order.iter().map(|i| of(i).name.clone()).collect();
    let no_values = vec![String::new(); names.len()];
    let mut rows = Rows::new(&canvas, 22.0, 12.0, &names, &no_values);
    let mut zoomed = rows;
    let stacked = canvas.is_narrow();
    if stacked {
        zoomed = Rows::new(&canvas, rows.panel.bottom + 74.0, 12.0, &names, &no_values);
    } else {
        let middle = rows.panel.left + (rows.panel.right - rows.panel.left) * 0.48;
        rows.panel.right = middle - 14.0;
        zoomed.panel.left = middle + 14.0;
    }
    canvas.bold(
        if stacked { 0.0 } else { rows.panel.left },
        13.0,
        Anchor::Start,
        SIZE,
        "All of it",
    );
    let at = if stacked { 0.0 } else { zoomed.panel.left };
    canvas.bold(at, zoomed.panel.top - 9.0, Anchor::Start, SIZE, "Against the best");
    let ends = order.iter().map(|i| of(i).log_evidence).flat_map(|e| {
        let (low, high) = e.interval().unwrap_or((e.value, e.value));
        [low, high]
    });
    let scale = Scale::linear(extent(ends), rows.panel.left + 4.0, rows.panel.right - 8.0);
    let count = ((rows.panel.right - rows.panel.left) / 100.0) as usize;
    rows.panel.bottom_axis(&mut canvas, &scale, scale.ticks(count.max(2)), "log evidence");
    let zoom = zoom_scale(document, &order, &zoomed.panel);
    let count = ((zoomed.panel.right - zoomed.panel.left) / 60.0) as usize;
    canvas.height = zoomed.panel.bottom_axis(
        &mut canvas,
        &zoom,
        zoom.ticks(count.max(2)),
        "log Bayes factor (nats)",
    );
    zoomed.panel.rule(&mut canvas, &zoom, 0.0);
    for (row, i) in order.iter().enumerate() {
        let (model, y) = (of(i), rows.y(row));
        canvas.titled(
            &format!("{}: log evidence {}", model.name, model.log_evidence.show()),
            |canvas| {
                if let Some((low, high)) = model.log_evidence.interval() {
                    canvas.interval((scale.at(low), scale.at(high)), y, Ink::Series(0));
                }
                canvas.point(
                    scale.at(model.log_evidence.value),
                    y,
                    4.5,
                    0,
                    model.log_evidence.se.is_some(),
                );
            },
        );
        rows.label(&mut canvas, row, &model.name, "");
        if stacked {
            zoomed.label(&mut canvas, row, &model.name, "");
        }
        factor(&mut canvas, &zoomed, &zoom, row, model);
    }
    Figure {
        title: "Log evidence of each model".into(),
        words: format!(
            "Points with 95% intervals of the log evidence of {}, and of its difference to the best model.",
            crate::text::counted(document.models.len(), "model")
        ),
        caption: format!(
            "Points with 95% intervals; a hollow point has no error bar. The zoom shows differences to the highest evidence; an arrow with a number is a model beyond it. A difference of 1 nat is worth a mention, from 3 on it is strong, from 5 on very strong.{}",
            not_drawn(document.models.len(), "model")
        ),
        canvas,
    }
}

/// From 0 down to the furthest model that is near.
fn zoom_scale(document: &Compare, order: &[usize], panel: &Panel) -> Scale {
    let near =
        order.iter().map(|i| document.models[*i].log_bayes_factor).filter(|f| f.value >= -ZOOM);
    let ends = near.flat_map(|f| {
        let (low, high) = f.interval().unwrap_or((f.value, f.value));
        [f.value, low.max(-1.5 * ZOOM), high.min(0.5 * ZOOM)]
    });
    let (low, high) = extent(ends.chain([0.0])).unwrap_or((-1.0, 0.0));
    let low = if low > -0.5 && order.len() > 1 { low.min(-0.5) } else { low.min(-1.0) };
    Scale::linear(Some((low, high.max(0.05 * -low))), panel.left + 8.0, panel.right - 6.0)
}

fn factor(canvas: &mut Canvas, rows: &Rows, scale: &Scale, row: usize, model: &Model) {
    let (factor, y) = (model.log_bayes_factor, rows.y(row));
    let words = format!("{}: {} nats from the best", model.name, factor.show());
    if !scale.holds(factor.value) {
        let x = rows.panel.left + 2.0;
        canvas.line((x, y), (x + 16.0, y), Ink::Series(1), 2.0);
        canvas.line((x, y), (x + 6.0, y - 4.0), Ink::Series(1), 2.0);
        canvas.line((x, y), (x + 6.0, y + 4.0), Ink::Series(1), 2.0);
        let digits = if factor.value.abs() >= 1e6 {
            significant(factor.value, 3)
        } else {
            fixed(factor.value, 1)
        };
        canvas.text(x + 21.0, y + 4.5, Anchor::Start, SMALL, Ink::Text, &digits);
        return;
    }
    canvas.titled(&words, |canvas| {
        if let Some((low, high)) = factor.interval()
            && low < high
        {
            canvas.interval((scale.at(low), scale.at(high)), y, Ink::Series(0));
        }
        canvas.point(scale.at(factor.value), y, 4.5, 0, factor.se.is_some());
    });
}

/// Kass and Raftery's steps in nats, with shades and words.
const STEPS: [(f64, f64, &str); 4] = [
    (1.0, 0.08, "below 1 nat"),
    (3.0, 0.25, "1 to 3"),
    (5.0, 0.42, "3 to 5"),
    (f64::INFINITY, 0.6, "over 5"),
];

fn shade(value: f64) -> f64 {
    STEPS.iter().find(|step| value.abs() < step.0).unwrap_or(&STEPS[3]).1
}

/// What the shades mean: each for the row's model and against it. Says where the grid can begin.
fn key(canvas: &mut Canvas, struck: bool) -> f64 {
    let (mut x, mut y) = (0.0, 13.0);
    let shades = STEPS.iter().map(|(_, shade, words)| (*shade, *words));
    let sides = ["for the row’s model", "against it"].into_iter().enumerate();
    let sides = sides.map(|(side, words)| (vec![(side, STEPS[3].1)], words));
    for (boxes, words) in
        sides.chain(shades.map(|(shade, words)| (vec![(0, shade), (1, shade)], words)))
    {
        let boxed = 16.0 * boxes.len() as f64;
        let wide = boxed + 4.0 + width(words, SMALL);
        if x > 0.0 && x + wide > canvas.width {
            x = 0.0;
            y += 19.0;
        }
        for (k, (side, shade)) in boxes.into_iter().enumerate() {
            let x = x + 16.0 * k as f64;
            canvas.rect(x, y - 11.0, 14.0, 14.0, Ink::Series(side), shade);
            if side == 1 && struck {
                canvas.line((x + 3.0, y), (x + 11.0, y - 8.0), Ink::Text, 0.8);
            }
        }
        canvas.text(x + boxed + 4.0, y, Anchor::Start, SMALL, Ink::Text, words);
        x += wide + 14.0;
    }
    y + 10.0
}

pub(crate) fn bayes_factors(view: &View, document: &Compare) -> Figure {
    let mut canvas = Canvas::new(view.width);
    let order = leading(document);
    let empty = Vec::new();
    let matrix = document.bayes_factors.as_ref().unwrap_or(&empty);
    let entry = |i: usize, j: usize| matrix.get(i).and_then(|row| row.get(j)).map(|e| e.value);
    let name = |i: usize| document.models[i].name.as_str();
    let numbered: Vec<String> =
        order.iter().enumerate().map(|(n, i)| format!("{} {}", n + 1, name(*i))).collect();
    let share = if canvas.is_narrow() { 0.3 } else { 0.36 };
    let left =
        numbered.iter().map(|t| width(t, SIZE)).fold(0.0, f64::max).min(canvas.width * share)
            + 10.0;
    let cell = ((canvas.width - left) / order.len() as f64).min(74.0);
    let tall = cell.clamp(15.0, 30.0);
    let label = |v: f64| if v.abs() >= 99.95 { fixed(v, 0) } else { fixed(v, 1) };
    let all = order.iter().flat_map(|i| order.iter().filter_map(move |j| entry(*i, *j)));
    let widest = all.map(|v| width(&label(v), SMALL)).fold(0.0, f64::max);
    let written = widest + 6.0 <= cell;
    let top = key(&mut canvas, !written) + 4.0;
    // Where columns are too narrow for a number each, every fifth has one.
    let numbered_column = |c: usize| cell >= 18.0 || c == 0 || (c + 1).is_multiple_of(5);
    for c in (0..order.len()).filter(|c| numbered_column(*c)) {
        let number = (c + 1).to_string();
        // The last one may be wider than its column, and stays within the edge.
        let most = canvas.width - 0.5 * width(&number, SMALL);
        let x = f64::min(left + cell * (c as f64 + 0.5), most);
        canvas.text(x, top + 14.0, Anchor::Middle, SMALL, Ink::Muted, &number);
    }
    for (r, i) in order.iter().enumerate() {
        let y = top + 22.0 + tall * r as f64;
        canvas.fitted(
            left - 8.0,
            y + tall / 2.0 + 4.5,
            Anchor::End,
            SIZE.min(tall - 2.0),
            &numbered[r],
            left - 10.0,
        );
        let values: Vec<Option<f64>> =
            order.iter().map(|j| entry(*i, *j).filter(|_| i != j)).collect();
        let side = |v: Option<f64>| v.map(|v| (v < 0.0, (shade(v) * 100.0) as u32));
        // Neighbours of one shade are one box, or a page of many models would be large.
        let mut from = 0;
        for c in 1..=values.len() {
            if c < values.len() && !written && side(values[c]) == side(values[from]) {
                continue;
            }
            if let Some(value) = values[from] {
                let (x, wide) = (left + cell * from as f64, cell * (c - from) as f64);
                let ink = Ink::Series(usize::from(value < 0.0));
                canvas.rect(x + 0.5, y + 0.5, wide - 1.0, tall - 1.0, ink, shade(value));
            }
            from = c;
        }
        let mut strokes = String::new();
        for (c, (j, value)) in order.iter().zip(&values).enumerate() {
            let (Some(value), x) = (*value, left + cell * c as f64) else { continue };
            if written {
                let words = format!("{} against {}: {}", name(*i), name(*j), significant(value, 4));
                let (middle, base) = (x + cell / 2.0, y + tall / 2.0 + 4.0);
                canvas.titled(&words, |canvas| {
                    canvas.text(middle, base, Anchor::Middle, SMALL, Ink::Text, &label(value));
                });
            } else if value < 0.0 {
                // For print in grey: what speaks against has a stroke.
                let (low, high) = (px(y + tall - 3.0), px(y + 3.0));
                strokes += &format!("M{} {low}L{} {high}", px(x + 3.0), px(x + cell - 3.0));
            }
        }
        if !strokes.is_empty() {
            canvas.body +=
                &format!("<path d=\"{strokes}\" {} stroke-width=\"0.8\"/>\n", Ink::Text.stroke());
        }
    }
    canvas.height = top + 26.0 + tall * order.len() as f64;
    Figure {
        title: "Every model against every other".into(),
        words: "A grid of log Bayes factors: the model of the row against the model of the column."
            .into(),
        caption: format!(
            "Log Bayes factors of the row's model against the column's, in nats. Blue speaks for the row's model, orange against it; the shades step at 1, 3 and 5 nats (positive, strong, very strong).{}{}{}",
            if written { "" } else { " Strokes mark what speaks against the row's model." },
            if cell >= 18.0 {
                ""
            } else {
                " Columns are in the order of the rows; every fifth has its number."
            },
            not_drawn(document.models.len(), "model")
        ),
        canvas,
    }
}
