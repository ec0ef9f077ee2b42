//! A chart over numbers: lines or points of some series above an axis.

use crate::svg::scale::{Scale, Tick, extent};
use crate::svg::{BOLD, Canvas, Ink, Panel, label_width};
use crate::text::{fit, grouped, significant, trimmed};

/// A point: where, how high, and its interval.
pub(crate) type Spot = (f64, f64, Option<(f64, f64)>);

/// Points that belong together.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// Its number, for colour, shape and dashes.
    pub number: usize,
    pub name: String,
    pub spots: Vec<Spot>,
    /// Whether its points are joined.
    pub joined: bool,
    /// Whether each has a mark; a line that was fitted has none.
    pub marked: bool,
}

/// How values are spread upwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Upwards {
    Linear,
    /// From 0 to 1.
    Share,
    Log,
    /// Even near 0, up to this size.
    SymLog(f64),
}

/// What is drawn.
#[derive(Debug, Clone)]
pub(crate) struct Chart<'a> {
    /// The panel's own title, where there are several.
    pub title: String,
    pub x_name: &'a str,
    pub y_name: &'a str,
    /// The values on the axis; each has a tick where there is room.
    pub x: Vec<f64>,
    /// Whether they stand by their ratios; otherwise by their differences, so that straight lines are straight.
    pub by_ratio: bool,
    pub upwards: Upwards,
    pub series: Vec<Series>,
    /// Values at which a level line stands.
    pub levels: Vec<f64>,
    /// Whether series stand beside each other at one value, where they would hide each other.
    pub beside: bool,
}

impl Chart<'_> {
    /// Draws it from `top` on; says where it ends.
    pub fn draw(&self, canvas: &mut Canvas, top: f64, height: f64) -> f64 {
        let mut top = top;
        if !self.title.is_empty() {
            let title = fit(&self.title, 13.5 * BOLD, canvas.width);
            canvas.bold(0.0, top + 14.0, crate::svg::Anchor::Start, 13.5, &title);
            top += 20.0;
        }
        // The name of the upward axis stands above it.
        let (top, bottom) = (top + 26.0, top + 26.0 + height);
        let y = self.upward(bottom, top);
        let y_ticks = y.ticks(5);
        let panel = Panel { left: label_width(&y_ticks), right: canvas.width - 6.0, top, bottom };
        let inset = if self.beside { 18.0 } else { 10.0 };
        let (from, to) = (panel.left + inset, panel.right - inset);
        let x = match self.by_ratio {
            true => Scale::log(self.x.iter().copied(), from, to),
            false => Scale::linear(extent(self.x.iter().copied()), from, to),
        };
        panel.left_axis(canvas, &y, &y_ticks, self.y_name);
        let mut values: Vec<f64> = self.x.iter().copied().filter(|v| v.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let label = |v: f64| if v.fract() == 0.0 { grouped(v) } else { trimmed(v) };
        let ticks = values.iter().map(|&value| Tick { value, label: label(value) }).collect();
        let end = panel.bottom_axis(canvas, &x, ticks, self.x_name);
        for level in &self.levels {
            panel.level(canvas, &y, *level);
        }
        let gap = if self.beside { (60.0 / self.series.len().max(1) as f64).min(9.0) } else { 0.0 };
        let middle = (self.series.len() as f64 - 1.0) / 2.0;
        for (i, series) in self.series.iter().enumerate() {
            let aside = (i as f64 - middle) * gap;
            self.one(canvas, &x, &y, series, aside);
        }
        end
    }

    fn one(&self, canvas: &mut Canvas, x: &Scale, y: &Scale, series: &Series, aside: f64) {
        let mut spots: Vec<Spot> =
            series.spots.iter().copied().filter(|s| s.1.is_finite()).collect();
        spots.sort_by(|a, b| a.0.total_cmp(&b.0));
        // More points than pixels say nothing more.
        let each = spots.len().div_ceil(2000).max(1);
        let spots: Vec<Spot> = spots.into_iter().step_by(each).collect();
        let at = |s: &Spot| (x.at(s.0) + aside, y.at(s.1));
        if series.joined {
            let points: Vec<(f64, f64)> = spots.iter().map(at).collect();
            canvas.curve(&points, series.number, 1.8);
        }
        for spot in spots.iter().filter(|_| series.marked) {
            let (px, py) = at(spot);
            let words = format!(
                "{}: {} at {}",
                series.name,
                significant(spot.1, 4),
                significant(spot.0, 4)
            );
            canvas.titled(&words, |canvas| {
                if let Some((low, high)) = spot.2 {
                    let ink = Ink::Series(series.number);
                    canvas.line((px, y.at(low)), (px, y.at(high)), ink, 1.3);
                }
                canvas.point(px, py, 3.8, series.number, true);
            });
        }
    }

    fn upward(&self, bottom: f64, top: f64) -> Scale {
        let spots = || self.series.iter().flat_map(|s| &s.spots);
        let ends = spots().flat_map(|s| [Some(s.1), s.2.map(|i| i.0), s.2.map(|i| i.1)]).flatten();
        let range = extent(ends.chain(self.levels.iter().copied()));
        match self.upwards {
            Upwards::Linear => Scale::linear(range, bottom, top),
            Upwards::Share => Scale::exactly(-0.03, 1.03, bottom, top),
            Upwards::Log => Scale::log(spots().map(|s| s.1), bottom, top),
            Upwards::SymLog(linear) => Scale::symlog(range, linear, bottom, top),
        }
    }
}
