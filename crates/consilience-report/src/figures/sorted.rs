//! What single shards say, from the most negative to the most positive: a row each where they are few, else bars side by side, and
//! where these would be thinner than a pixel, the middle one of so many neighbours.

use super::rows::{MOST_ROWS, Rows};
use crate::svg::scale::{Scale, Tick, extent};
use crate::svg::{Canvas, Ink, Panel, label_width};
use crate::text::{fixed, grouped, significant};

/// A shard and what it says.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub name: String,
    pub value: f64,
    pub interval: Option<(f64, f64)>,
}

/// Draws the items; says where that ends. What is above 0 has the first colour, what is below the second.
pub(crate) fn draw(canvas: &mut Canvas, top: f64, items: &[Item], axis: &str) -> f64 {
    let mut items = items.to_vec();
    items.retain(|i| i.value.is_finite());
    items.sort_by(|a, b| a.value.total_cmp(&b.value));
    if items.len() <= MOST_ROWS {
        in_rows(canvas, top, &items, axis)
    } else {
        side_by_side(canvas, top, &items, axis)
    }
}

fn range(items: &[Item]) -> Option<(f64, f64)> {
    let ends = items.iter().flat_map(|i| {
        let (low, high) = i.interval.unwrap_or((i.value, i.value));
        [i.value, low, high]
    });
    extent(ends.chain([0.0]))
}

fn series(value: f64) -> usize {
    usize::from(value < 0.0)
}

fn in_rows(canvas: &mut Canvas, top: f64, items: &[Item], axis: &str) -> f64 {
    let names: Vec<String> = items.iter().map(|i| i.name.clone()).collect();
    let show = |v: f64| if v.abs() >= 0.01 { fixed(v, 2) } else { significant(v, 2) };
    let values: Vec<String> = items.iter().map(|i| show(i.value)).collect();
    let rows = Rows::new(canvas, top, 14.0, &names, &values);
    let panel = rows.panel;
    let scale = Scale::linear(range(items), panel.left, panel.right);
    let count = ((panel.right - panel.left) / 80.0) as usize;
    let end = panel.bottom_axis(canvas, &scale, scale.ticks(count.max(2)), axis);
    for (i, item) in items.iter().enumerate() {
        let (zero, x, y) = (scale.at(0.0), scale.at(item.value), rows.y(i));
        canvas.titled(&format!("{}: {}", item.name, values[i]), |canvas| {
            canvas.rect(zero, y - 7.0, x - zero, 14.0, Ink::Series(series(item.value)), 0.85);
            if let Some((low, high)) = item.interval {
                canvas.interval((scale.at(low), scale.at(high)), y, Ink::Text);
            }
        });
        rows.label(canvas, i, &item.name, &values[i]);
    }
    panel.rule(canvas, &scale, 0.0);
    end
}

fn side_by_side(canvas: &mut Canvas, top: f64, items: &[Item], axis: &str) -> f64 {
    let (top, bottom) = (top + 26.0, top + 250.0);
    let y = Scale::linear(range(items), bottom, top);
    let ticks = y.ticks(5);
    let panel = Panel { left: label_width(&ticks), right: canvas.width - 4.0, top, bottom };
    panel.left_axis(canvas, &y, &ticks, axis);
    let x = Scale::exactly(0.0, items.len() as f64, panel.left, panel.right);
    let ticks: Vec<Tick> =
        x.ticks(6).into_iter().map(|t| Tick { label: grouped(t.value), ..t }).collect();
    let end = panel.bottom_axis(canvas, &x, ticks, "shards in order of what they say");
    let bins = items.len().min(((panel.right - panel.left) / 4.0) as usize).max(1);
    let wide = (panel.right - panel.left) / bins as f64;
    for bin in 0..bins {
        let (from, to) = (bin * items.len() / bins, (bin + 1) * items.len() / bins);
        let Some(item) = items.get((from + to) / 2) else { continue };
        let x = panel.left + wide * bin as f64;
        let (zero, at) = (y.at(0.0), y.at(item.value));
        let words = match to - from {
            0 | 1 => format!("{}: {}", item.name, significant(item.value, 3)),
            n => format!("the middle of {n} shards, {}: {}", item.name, significant(item.value, 3)),
        };
        canvas.titled(&words, |canvas| {
            let (upper, lower) = if at < zero { (at, zero) } else { (zero, at) };
            let gap = if wide > 5.0 { 1.0 } else { 0.0 };
            canvas.rect(x, upper, wide - gap, lower - upper, Ink::Series(series(item.value)), 0.85);
            if let Some((low, high)) = item.interval {
                let x = x + wide / 2.0;
                canvas.line((x, y.at(low)), (x, y.at(high)), Ink::Text, 0.8);
            }
        });
    }
    panel.level(canvas, &y, 0.0);
    end
}
