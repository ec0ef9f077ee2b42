//! Marks of series: a colour, a shape and dashes each.

use super::{Anchor, Canvas, Ink, SIZE, px};
use crate::text::{fit, width};
use std::fmt::Write;

/// How a series is drawn in a legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A box of this series' colour.
    Box(usize),
    /// Its shape.
    Point(usize),
    /// Its line with its shape on it.
    Line(usize),
    /// A short upright line, as for a value before the data.
    Tick,
}

/// Dashes of a series' line.
pub(super) fn dashes(series: usize) -> &'static str {
    match series % 5 {
        0 => "",
        1 => " stroke-dasharray=\"7 3\"",
        2 => " stroke-dasharray=\"2 3\"",
        3 => " stroke-dasharray=\"9 3 2 3\"",
        _ => " stroke-dasharray=\"4 2\"",
    }
}

impl Canvas {
    /// The shape of a series; `solid` or hollow.
    pub fn point(&mut self, x: f64, y: f64, radius: f64, series: usize, solid: bool) {
        let at = |dx: f64, dy: f64| format!("{} {}", px(x + dx * radius), px(y + dy * radius));
        let path = match series % 7 {
            0 => {
                let r = px(radius);
                format!("M{}a{r} {r} 0 1 0 0.01 0Z", at(0.0, -1.0))
            }
            1 => {
                format!("M{}L{}L{}L{}Z", at(-0.9, -0.9), at(0.9, -0.9), at(0.9, 0.9), at(-0.9, 0.9))
            }
            2 => format!("M{}L{}L{}Z", at(0.0, -1.15), at(1.1, 0.85), at(-1.1, 0.85)),
            3 => format!("M{}L{}L{}L{}Z", at(0.0, -1.3), at(1.3, 0.0), at(0.0, 1.3), at(-1.3, 0.0)),
            4 => format!("M{}L{}L{}Z", at(0.0, 1.15), at(1.1, -0.85), at(-1.1, -0.85)),
            5 => format!("M{}L{}M{}L{}", at(-1.1, 0.0), at(1.1, 0.0), at(0.0, -1.1), at(0.0, 1.1)),
            _ => {
                format!("M{}L{}M{}L{}", at(-0.9, -0.9), at(0.9, 0.9), at(-0.9, 0.9), at(0.9, -0.9))
            }
        };
        let ink = Ink::Series(series);
        let _ = if solid && series % 7 < 5 {
            writeln!(self.body, "<path d=\"{path}\" {}/>", ink.fill())
        } else {
            writeln!(self.body, "<path d=\"{path}\" {} stroke-width=\"1.8\"/>", ink.stroke())
        };
    }
}

/// What marks mean, from left to right and then further down; says where it ends.
pub(crate) fn legend(canvas: &mut Canvas, top: f64, items: &[(String, Mark)]) -> f64 {
    let (mut x, mut y) = (0.0, top + 12.0);
    for (name, mark) in items {
        let icon = if matches!(mark, Mark::Line(_)) { 34.0 } else { 20.0 };
        let name = fit(name, SIZE, (canvas.width - icon).min(360.0));
        let wide = icon + width(&name, SIZE);
        if x > 0.0 && x + wide > canvas.width {
            x = 0.0;
            y += 20.0;
        }
        let middle = y - 4.5;
        match *mark {
            Mark::Box(series) => canvas.rect(x, middle - 6.0, 13.0, 12.0, Ink::Series(series), 1.0),
            Mark::Point(series) => canvas.point(x + 7.0, middle, 5.0, series, true),
            Mark::Line(series) => {
                canvas.curve(&[(x, middle), (x + 28.0, middle)], series, 2.0);
                canvas.point(x + 14.0, middle, 4.5, series, true);
            }
            Mark::Tick => {
                canvas.line((x + 6.0, middle - 7.0), (x + 6.0, middle + 7.0), Ink::Text, 2.0)
            }
        }
        canvas.text(x + icon, y, Anchor::Start, SIZE, Ink::Text, &name);
        x += wide + 18.0;
    }
    if items.is_empty() { top } else { y + 12.0 }
}
