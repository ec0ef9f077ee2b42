//! Axes and grids of a panel.

use super::scale::{Scale, Tick};
use super::{Anchor, Canvas, Ink, SMALL};
use crate::text::{fit, width};

/// The part of a canvas in which marks are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Panel {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

/// How much room labels of ticks take at the left.
pub(crate) fn label_width(ticks: &[Tick]) -> f64 {
    ticks.iter().map(|t| width(&t.label, SMALL)).fold(0.0, f64::max) + 8.0
}

impl Panel {
    /// Upright grid lines, labels below them and the axis' name below these; says where that ends.
    pub fn bottom_axis(
        &self,
        canvas: &mut Canvas,
        scale: &Scale,
        ticks: Vec<Tick>,
        name: &str,
    ) -> f64 {
        let kept = scale.spaced(ticks, SMALL, canvas.width);
        for tick in &kept {
            let x = scale.at(tick.value);
            canvas.line((x, self.top), (x, self.bottom), Ink::Grid, 1.0);
            let x = scale.label_at(tick, SMALL, canvas.width);
            canvas.text(x, self.bottom + 16.0, Anchor::Middle, SMALL, Ink::Muted, &tick.label);
        }
        canvas.line((self.left, self.bottom), (self.right, self.bottom), Ink::Axis, 1.0);
        if name.is_empty() {
            return self.bottom + 24.0;
        }
        // Centred under the panel where it fits there, else within the picture.
        let name = fit(name, SMALL, canvas.width);
        let half = width(&name, SMALL) / 2.0;
        let middle = ((self.left + self.right) / 2.0).clamp(half, (canvas.width - half).max(half));
        canvas.text(middle, self.bottom + 34.0, Anchor::Middle, SMALL, Ink::Muted, &name);
        self.bottom + 42.0
    }

    /// Level grid lines with labels at their left, and the axis' name above: upright words are hard to read.
    pub fn left_axis(&self, canvas: &mut Canvas, scale: &Scale, ticks: &[Tick], name: &str) {
        let mut last: Option<f64> = None;
        for tick in ticks {
            let y = scale.at(tick.value);
            canvas.line((self.left, y), (self.right, y), Ink::Grid, 1.0);
            if last.is_none_or(|l| (l - y).abs() >= SMALL + 3.0) {
                canvas.text(self.left - 6.0, y + 4.0, Anchor::End, SMALL, Ink::Muted, &tick.label);
                last = Some(y);
            }
        }
        canvas.line((self.left, self.top), (self.left, self.bottom), Ink::Axis, 1.0);
        let name = fit(name, SMALL, canvas.width);
        canvas.text(0.0, self.top - 10.0, Anchor::Start, SMALL, Ink::Muted, &name);
    }

    /// An upright line at a value, such as 0.
    pub fn rule(&self, canvas: &mut Canvas, scale: &Scale, value: f64) {
        if scale.holds(value) {
            let x = scale.at(value);
            canvas.line((x, self.top), (x, self.bottom), Ink::Axis, 1.4);
        }
    }

    /// A level line at a value.
    pub fn level(&self, canvas: &mut Canvas, scale: &Scale, value: f64) {
        if scale.holds(value) {
            let y = scale.at(value);
            canvas.line((self.left, y), (self.right, y), Ink::Axis, 1.4);
        }
    }
}
