//! Intervals of parameters below each other. Where their sizes are alike they share an axis; where units differ so much that
//! most intervals would be dots, every row has a scale of its own and says its ends.

use super::rows::Rows;
use crate::svg::scale::{Scale, extent};
use crate::svg::{Canvas, Ink, Panel};
use crate::text::significant;

/// A parameter.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub name: String,
    /// The number of the series, the mean and the interval.
    pub items: Vec<(usize, f64, (f64, f64))>,
}

/// Draws rows from `top` on; says where that ends, and whether the rows share an axis.
pub(crate) fn draw(canvas: &mut Canvas, top: f64, rows: &[Row], axis: &str) -> (f64, bool) {
    let names: Vec<String> = rows.iter().map(|r| r.name.clone()).collect();
    let most = rows.iter().map(|r| r.items.len()).max().unwrap_or(1).max(1);
    let height = 10.0 * most as f64 + 2.0;
    let shared = is_shared(rows);
    let values: Vec<String> =
        rows.iter().map(|r| if shared { String::new() } else { ends(r) }).collect();
    let place = Rows::new(canvas, top, height, &names, &values);
    let panel = place.panel;
    let all = || rows.iter().flat_map(|r| &r.items).flat_map(|i| [i.2.0, i.2.1]);
    let common = Scale::linear(extent(all()), panel.left + 4.0, panel.right - 4.0);
    let mut end = panel.bottom + 6.0;
    if shared {
        let count = ((panel.right - panel.left) / 80.0) as usize;
        end = panel.bottom_axis(canvas, &common, common.ticks(count.max(2)), axis);
        panel.rule(canvas, &common, 0.0);
    }
    for (i, row) in rows.iter().enumerate() {
        let y = place.y(i);
        let scale = if shared { common } else { own(row, &panel) };
        if !shared {
            lane(canvas, &panel, &scale, y, height);
        }
        for (j, (series, mean, (low, high))) in row.items.iter().enumerate() {
            let y = y + (j as f64 - (row.items.len() as f64 - 1.0) / 2.0) * 10.0;
            let words = format!(
                "{}: {}, 95% from {} to {}",
                row.name,
                significant(*mean, 4),
                significant(*low, 4),
                significant(*high, 4)
            );
            canvas.titled(&words, |canvas| {
                let ink = Ink::Series(*series);
                canvas.line((scale.at(*low), y), (scale.at(*high), y), ink, 2.0);
                canvas.point(scale.at(*mean), y, 3.6, *series, true);
            });
        }
        place.label(canvas, i, &row.name, &values[i]);
    }
    (end, shared)
}

/// Whether one axis does: the whole is not far longer than the intervals are.
fn is_shared(rows: &[Row]) -> bool {
    let mut lengths: Vec<f64> = rows
        .iter()
        .flat_map(|r| &r.items)
        .map(|i| (i.2.1 - i.2.0).abs())
        .filter(|l| *l > 0.0)
        .collect();
    lengths.sort_by(f64::total_cmp);
    let Some((low, high)) =
        extent(rows.iter().flat_map(|r| &r.items).flat_map(|i| [i.2.0, i.2.1, 0.0]))
    else {
        return true;
    };
    let typical = lengths.get(lengths.len() / 4).copied().unwrap_or(1.0);
    rows.len() == 1 || high - low < 60.0 * typical
}

fn own(row: &Row, panel: &Panel) -> Scale {
    let (low, high) = extent(row.items.iter().flat_map(|i| [i.2.0, i.2.1])).unwrap_or((0.0, 1.0));
    // 0 is what one asks about; it is shown where it is not far.
    let span = high - low;
    let near = |edge: f64| edge.abs() < 2.0 * span;
    let low = if low > 0.0 && near(low) { 0.0 } else { low };
    let high = if high < 0.0 && near(high) { 0.0 } else { high };
    Scale::linear(Some((low, high)), panel.left + 4.0, panel.right - 4.0)
}

/// The ground of a row with a scale of its own, and its 0.
fn lane(canvas: &mut Canvas, panel: &Panel, scale: &Scale, y: f64, height: f64) {
    canvas.rect(panel.left, y - height / 2.0, panel.right - panel.left, height, Ink::Grid, 0.45);
    if scale.holds(0.0) {
        let x = scale.at(0.0);
        canvas.line((x, y - height / 2.0), (x, y + height / 2.0), Ink::Axis, 1.4);
    }
}

fn ends(row: &Row) -> String {
    let Some((_, _, (low, high))) = row.items.first() else { return String::new() };
    format!("{} to {}", significant(*low, 3), significant(*high, 3))
}
