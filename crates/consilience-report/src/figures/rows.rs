//! Charts with a row per thing: its name at the left (above it where the picture is narrow), marks, its value at the right.

use crate::svg::{Anchor, Canvas, Ink, Panel, SIZE};
use crate::text::{fit, width};

/// Where the rows are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    pub panel: Panel,
    step: f64,
    height: f64,
    stacked: bool,
    values: f64,
}

impl Rows {
    /// Rows for these names and values from `top` on; marks of a row are `height` high.
    pub fn new(
        canvas: &Canvas,
        top: f64,
        height: f64,
        names: &[String],
        values: &[String],
    ) -> Rows {
        let widest = |texts: &[String]| texts.iter().map(|t| width(t, SIZE)).fold(0.0, f64::max);
        let stacked = canvas.is_narrow();
        let column =
            if widest(values) > 0.0 { widest(values).min(canvas.width * 0.45) + 10.0 } else { 0.0 };
        let (left, right, step) = if stacked {
            (4.0, canvas.width - 6.0, height + 26.0)
        } else {
            let names = widest(names).min(canvas.width * 0.36) + 12.0;
            (names, canvas.width - column.max(8.0), (height + 4.0).max(22.0))
        };
        let bottom = top + step * names.len().max(1) as f64 + 4.0;
        Rows { panel: Panel { left, right, top, bottom }, step, height, stacked, values: column }
    }

    /// The middle of a row's marks.
    pub fn y(&self, row: usize) -> f64 {
        let top = self.panel.top + self.step * row as f64;
        if self.stacked { top + self.step - self.height / 2.0 } else { top + self.step / 2.0 + 2.0 }
    }

    /// Writes the name and the value of a row.
    pub fn label(&self, canvas: &mut Canvas, row: usize, name: &str, value: &str) {
        if self.stacked {
            let y = self.y(row) - self.height / 2.0 - 4.5;
            canvas.fitted(0.0, y, Anchor::Start, SIZE, name, canvas.width - self.values - 4.0);
            let value = fit(value, SIZE, self.values);
            canvas.text(canvas.width, y, Anchor::End, SIZE, Ink::Text, &value);
        } else {
            let y = self.y(row) + SIZE * 0.35;
            canvas.fitted(
                self.panel.left - 10.0,
                y,
                Anchor::End,
                SIZE,
                name,
                self.panel.left - 11.0,
            );
            let value = fit(value, SIZE, self.values);
            canvas.text(self.panel.right + 8.0, y, Anchor::Start, SIZE, Ink::Text, &value);
        }
    }
}

/// At most this many rows are drawn.
pub(crate) const MOST_ROWS: usize = 40;

/// What to say of those that are not drawn.
pub(crate) fn not_drawn(all: usize, what: &str) -> String {
    if all <= MOST_ROWS {
        return String::new();
    }
    format!(" The first {MOST_ROWS} of {} are drawn.", crate::text::counted(all, what))
}
