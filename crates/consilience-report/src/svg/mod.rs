//! Figures as SVG, written by hand.
//!
//! A library of plots was looked at (plotters) and left: it writes fixed colours and neither classes nor `<title>` and
//! `<desc>`, so that dark mode and words for those who do not see the picture are out of reach. What is needed here is
//! little: scales, axes, some marks.
//!
//! Every mark has a literal colour as an attribute, and a class. Renderers without CSS see the attribute; a style sheet
//! (that of the page, or the block in a stand-alone figure) overrides it where the reader prefers dark colours. Series
//! differ by colour (Okabe and Ito's palette, made for colour-blind readers) and by shape or dashes, for print in grey.

mod axis;
mod marks;
pub(crate) mod scale;

pub(crate) use axis::{Panel, label_width};
pub(crate) use marks::{Mark, legend};

use crate::text::{escape, fit, wrap};
use std::fmt::Write;

/// The size of labels, in pixels.
pub(crate) const SIZE: f64 = 13.0;
/// The size of ticks' labels and notes.
pub(crate) const SMALL: f64 = 12.0;
/// A figure is never narrower than this.
pub(crate) const NARROWEST: f64 = 280.0;
/// Figures narrower than this put labels above marks, and not beside them.
pub(crate) const NARROW: f64 = 520.0;

/// Bold letters are wider than others by this.
pub(crate) const BOLD: f64 = 1.16;

/// A colour by what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    /// Words.
    Text,
    /// Words that matter less.
    Muted,
    /// Lines of the grid.
    Grid,
    /// Axes.
    Axis,
    /// What is behind all.
    Paper,
    /// A series, by number; they repeat.
    Series(usize),
}

/// How many series have a colour of their own.
pub(crate) const SERIES: usize = 7;

/// Light and dark colours of the series.
const COLOURS: [(&str, &str); SERIES] = [
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#f0803c"),
    ("#009e73", "#1fbf93"),
    ("#cc79a7", "#d98bb7"),
    ("#b87d00", "#e69f00"),
    ("#3f9bd6", "#2f86c9"),
    ("#555555", "#aaaaaa"),
];

impl Ink {
    fn key(self) -> String {
        match self {
            Ink::Text => "t".into(),
            Ink::Muted => "m".into(),
            Ink::Grid => "g".into(),
            Ink::Axis => "a".into(),
            Ink::Paper => "p".into(),
            Ink::Series(i) => (i % SERIES).to_string(),
        }
    }

    fn colours(self) -> (&'static str, &'static str) {
        match self {
            Ink::Text => ("#1a1a1a", "#ececec"),
            Ink::Muted => ("#595959", "#b4b4b4"),
            Ink::Grid => ("#e3e3e3", "#33373c"),
            Ink::Axis => ("#8a8a8a", "#85898e"),
            Ink::Paper => ("#ffffff", "#15181c"),
            Ink::Series(i) => COLOURS[i % SERIES],
        }
    }

    /// The attributes of something filled.
    pub fn fill(self) -> String {
        format!("class=\"f{}\" fill=\"{}\"", self.key(), self.colours().0)
    }

    /// The attributes of a line.
    pub fn stroke(self) -> String {
        format!("class=\"s{}\" stroke=\"{}\" fill=\"none\"", self.key(), self.colours().0)
    }
}

/// Rules for all inks: the light or the dark ones.
fn rules(dark: bool) -> String {
    let fixed = [Ink::Text, Ink::Muted, Ink::Grid, Ink::Axis, Ink::Paper];
    let mut out = String::new();
    for ink in fixed.into_iter().chain((0..SERIES).map(Ink::Series)) {
        let (light, night) = ink.colours();
        let (key, colour) = (ink.key(), if dark { night } else { light });
        let _ = write!(out, ".f{key}{{fill:{colour}}}.s{key}{{stroke:{colour}}}");
    }
    out
}

/// The style sheet's part for figures within a page.
pub(crate) fn page_rules() -> String {
    format!("{}\n@media screen and (prefers-color-scheme:dark){{{}}}\n", rules(false), rules(true))
}

/// A coordinate: finite, of this world, and with no more digits than anybody sees.
pub(crate) fn px(value: f64) -> String {
    let value = if value.is_finite() { value.clamp(-1e5, 1e5) } else { 0.0 };
    let mut text = format!("{value:.1}");
    if text.ends_with(".0") {
        text.truncate(text.len() - 2);
    }
    if text == "-0" { "0".into() } else { text }
}

/// Where a text is held.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// What is drawn, growing downwards.
#[derive(Debug, Clone)]
pub(crate) struct Canvas {
    pub width: f64,
    pub height: f64,
    pub body: String,
}

impl Canvas {
    pub fn new(width: f64) -> Canvas {
        Canvas { width: width.max(NARROWEST), height: 0.0, body: String::new() }
    }

    pub fn is_narrow(&self) -> bool {
        self.width < NARROW
    }

    /// A text as it is; it has to fit.
    pub fn text(&mut self, x: f64, y: f64, anchor: Anchor, size: f64, ink: Ink, text: &str) {
        self.words(x, y, anchor, size, ink, text, "", None);
    }

    /// A text in bold letters.
    pub fn bold(&mut self, x: f64, y: f64, anchor: Anchor, size: f64, text: &str) {
        self.words(x, y, anchor, size, Ink::Text, text, " font-weight=\"bold\"", None);
    }

    /// A text that is cut where it does not fit; the whole is its title then.
    pub fn fitted(&mut self, x: f64, y: f64, anchor: Anchor, size: f64, text: &str, room: f64) {
        let shown = fit(text, size, room);
        let whole = (shown != text).then(|| fit(text, 1.0, 400.0));
        self.words(x, y, anchor, size, Ink::Text, &shown, "", whole.as_deref());
    }

    #[allow(clippy::too_many_arguments, reason = "the one place where a text is written")]
    fn words(
        &mut self,
        x: f64,
        y: f64,
        anchor: Anchor,
        size: f64,
        ink: Ink,
        text: &str,
        more: &str,
        title: Option<&str>,
    ) {
        if text.is_empty() {
            return;
        }
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let title = title.map_or(String::new(), |t| format!("<title>{}</title>", escape(t)));
        let _ = writeln!(
            self.body,
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\" {}{anchor}{more}>{title}{}</text>",
            px(x),
            px(y),
            px(size),
            ink.fill(),
            escape(text)
        );
    }

    /// Lines of text below each other; says where the next would stand.
    pub fn paragraph(&mut self, x: f64, y: f64, size: f64, ink: Ink, text: &str, room: f64) -> f64 {
        let mut y = y;
        for line in wrap(text, size, room) {
            self.text(x, y, Anchor::Start, size, ink, &line);
            y += size * 1.35;
        }
        y
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), ink: Ink, width: f64) {
        let _ = writeln!(
            self.body,
            "<path d=\"M{} {}L{} {}\" {} stroke-width=\"{}\"/>",
            px(from.0),
            px(from.1),
            px(to.0),
            px(to.1),
            ink.stroke(),
            px(width)
        );
    }

    /// A line through points, dashed as the series is.
    pub fn curve(&mut self, points: &[(f64, f64)], series: usize, width: f64) {
        if points.len() < 2 {
            return;
        }
        let mut path = String::new();
        for (i, (x, y)) in points.iter().enumerate() {
            let _ = write!(path, "{}{} {}", if i == 0 { 'M' } else { 'L' }, px(*x), px(*y));
        }
        let dashes = marks::dashes(series);
        let _ = writeln!(
            self.body,
            "<path d=\"{path}\" {} stroke-width=\"{}\"{dashes}/>",
            Ink::Series(series).stroke(),
            px(width)
        );
    }

    /// A filled box; what is less than opaque lets the paper through, light or dark.
    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, ink: Ink, opacity: f64) {
        let (x, width) = if width < 0.0 { (x + width, -width) } else { (x, width) };
        let opacity = if opacity < 1.0 {
            format!(" fill-opacity=\"{:.2}\"", opacity.max(0.0))
        } else {
            String::new()
        };
        let _ = writeln!(
            self.body,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {}{opacity}/>",
            px(x),
            px(y),
            px(width),
            px(height),
            ink.fill()
        );
    }

    /// An interval: a line with short ends.
    pub fn interval(&mut self, x: (f64, f64), y: f64, ink: Ink) {
        self.line((x.0, y), (x.1, y), ink, 1.6);
        for end in [x.0, x.1] {
            self.line((end, y - 3.5), (end, y + 3.5), ink, 1.6);
        }
    }

    /// Marks that belong together, with words that show when one points at them.
    pub fn titled(&mut self, title: &str, draw: impl FnOnce(&mut Canvas)) {
        let _ = writeln!(self.body, "<g><title>{}</title>", escape(&fit(title, 1.0, 600.0)));
        draw(self);
        self.body.push_str("</g>\n");
    }
}

/// A figure: what is drawn, and what it says in words.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    pub title: String,
    /// The same for those who do not see it.
    pub words: String,
    /// How to read it.
    pub caption: String,
    pub canvas: Canvas,
}

const FONT: &str = "font-family=\"DejaVu Sans, Verdana, Segoe UI, Helvetica, Arial, sans-serif\"";

impl Figure {
    /// A file of its own, with its title above and its caption below.
    pub fn standalone(&self) -> String {
        let margin = 12.0;
        let width = self.canvas.width + 2.0 * margin;
        let mut head = Canvas::new(width);
        let mut top = 28.0;
        for line in wrap(&self.title, 16.0 * BOLD, width - 2.0 * margin) {
            head.bold(margin, top, Anchor::Start, 16.0, &line);
            top += 22.0;
        }
        top -= 6.0;
        let foot = top + self.canvas.height + 22.0;
        let room = width - 2.0 * margin;
        let end = head.paragraph(margin, foot, SMALL, Ink::Muted, &self.caption, room);
        let height = end + 2.0;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" {} viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" {FONT}>\n{}\
             <style>@media (prefers-color-scheme:dark){{{}}}</style>\n\
             <rect width=\"100%\" height=\"100%\" {}/>\n{}<g transform=\"translate({} {})\">\n{}</g>\n</svg>\n",
            named("figure"),
            px(width),
            px(height),
            px(width),
            px(height),
            self.names("figure"),
            rules(true),
            Ink::Paper.fill(),
            head.body,
            px(margin),
            px(top),
            self.canvas.body
        )
    }

    /// Within a page, whose style sheet has the colours and whose caption the words.
    pub fn inline(&self, id: &str, class: &str) -> String {
        format!(
            "<svg class=\"{class}\" {} viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" {FONT}>\n{}{}</svg>\n",
            named(id),
            px(self.canvas.width),
            px(self.canvas.height),
            px(self.canvas.width),
            px(self.canvas.height),
            self.names(id),
            self.canvas.body
        )
    }

    fn names(&self, id: &str) -> String {
        format!(
            "<title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-desc\">{}</desc>\n",
            escape(&fit(&self.title, 1.0, 600.0)),
            escape(&self.words)
        )
    }
}

fn named(id: &str) -> String {
    format!("role=\"img\" aria-labelledby=\"{id}-title {id}-desc\"")
}
