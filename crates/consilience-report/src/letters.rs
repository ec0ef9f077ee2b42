//! Labels as shapes, by fonts that are in the program: a machine without any draws the same.

use crate::Error;
use resvg::usvg::roxmltree::{Document, Node};
use std::fmt::Write;
use ttf_parser::{Face, GlyphId, OutlineBuilder};

const PLAIN: &[u8] = include_bytes!("../fonts/DejaVuSans.subset.ttf");
const BOLD: &[u8] = include_bytes!("../fonts/DejaVuSans-Bold.subset.ttf");

/// What says where and how a label is written; all else about it (colours, classes) stays with its shape.
const USED_UP: [&str; 5] = ["x", "y", "font-size", "font-weight", "text-anchor"];

/// A stand-alone figure whose labels are shapes in the place of words: it looks the same wherever it is shown. The shape of
/// the k-th label, from 0 on, has the id `label-k`.
///
/// # Errors
/// If the text is no SVG.
pub fn outlined(svg: &str) -> Result<String, Error> {
    let wrong = |error: &dyn std::fmt::Display| Error::Png(error.to_string());
    let document = Document::parse(svg).map_err(|error| wrong(&error))?;
    let plain = Face::parse(PLAIN, 0).map_err(|error| wrong(&error))?;
    let bold = Face::parse(BOLD, 0).map_err(|error| wrong(&error))?;
    let mut out = String::with_capacity(4 * svg.len());
    let mut copied = 0;
    let labels = document.descendants().filter(|node| node.tag_name().name() == "text");
    for (k, label) in labels.enumerate() {
        let range = label.range();
        out += &svg[copied..range.start];
        copied = range.end;
        let face = if label.attribute("font-weight") == Some("bold") { &bold } else { &plain };
        let _ = write!(out, "<path id=\"label-{k}\"");
        for attribute in label.attributes().filter(|a| !USED_UP.contains(&a.name())) {
            out.push(' ');
            out += &svg[attribute.range()];
        }
        let _ = write!(out, " d=\"{}\"/>", shape(face, &label));
    }
    out += &svg[copied..];
    Ok(out)
}

/// The letters of a label, where they stand.
fn shape(face: &Face, label: &Node) -> String {
    let number = |name: &str| label.attribute(name).and_then(|text| text.parse::<f32>().ok());
    let words: String = label.children().filter(Node::is_text).filter_map(|n| n.text()).collect();
    let mut path = Path { d: String::new(), x: 0.0, y: 0.0, scale: 1.0 };
    path.scale = number("font-size").unwrap_or(12.0) / f32::from(face.units_per_em());
    let (glyphs, width) = placed(face, &words);
    let before = match label.attribute("text-anchor") {
        Some("middle") => 0.5 * width,
        Some("end") => width,
        _ => 0.0,
    };
    let (x, y) = (number("x").unwrap_or(0.0), number("y").unwrap_or(0.0));
    for (glyph, right, up) in glyphs {
        path.x = x + (right - before) * path.scale;
        path.y = y - up * path.scale;
        face.outline_glyph(glyph, &mut path);
    }
    path.d
}

/// Where every letter stands, to the right and upwards in the font's units, and how wide all are together.
fn placed(face: &Face, words: &str) -> (Vec<(GlyphId, f32, f32)>, f32) {
    let found = |c: char| face.glyph_index(c).or_else(|| face.glyph_index('\u{FFFD}'));
    let (mut glyphs, mut right) = (Vec::new(), 0.0);
    // The letter before, on which marks stand.
    let mut base: Option<(GlyphId, f32)> = None;
    for c in words.chars() {
        let glyph = found(c).unwrap_or(GlyphId(0));
        if ('\u{300}'..='\u{36F}').contains(&c) {
            let (across, up) = base.map_or((right, 0.0), |base| on_top(face, base, glyph));
            glyphs.push((glyph, across, up));
            continue;
        }
        glyphs.push((glyph, right, 0.0));
        base = Some((glyph, right));
        right += f32::from(face.glyph_hor_advance(glyph).unwrap_or(0));
    }
    (glyphs, right)
}

/// A mark stands over the middle of its letter, and is made for those without a stem that goes up.
fn on_top(face: &Face, (base, right): (GlyphId, f32), mark: GlyphId) -> (f32, f32) {
    let (Some(base), Some(mark)) = (face.glyph_bounding_box(base), face.glyph_bounding_box(mark))
    else {
        return (right, 0.0);
    };
    let middle = |from: i16, to: i16| 0.5 * (f32::from(from) + f32::from(to));
    let across = middle(base.x_min, base.x_max) - middle(mark.x_min, mark.x_max);
    let small = face.glyph_index('x').and_then(|x| face.glyph_bounding_box(x));
    let usual = small.map_or(base.y_max, |x| x.y_max);
    (right + across, f32::from((base.y_max - usual).max(0)))
}

/// A path of SVG, written as the font tells it.
struct Path {
    d: String,
    /// Where the letter stands.
    x: f32,
    y: f32,
    scale: f32,
}

impl Path {
    fn to(&mut self, command: char, points: &[(f32, f32)]) {
        self.d.push(command);
        for (i, (x, y)) in points.iter().enumerate() {
            let blank = if i == 0 { "" } else { " " };
            let (x, y) = (self.x + x * self.scale, self.y - y * self.scale);
            let _ = write!(self.d, "{blank}{x:.2} {y:.2}");
        }
    }
}

impl OutlineBuilder for Path {
    fn move_to(&mut self, x: f32, y: f32) {
        self.to('M', &[(x, y)]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.to('L', &[(x, y)]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.to('Q', &[(x1, y1), (x, y)]);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.to('C', &[(x1, y1), (x2, y2), (x, y)]);
    }

    fn close(&mut self) {
        self.d.push('Z');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn face() -> Face<'static> {
        Face::parse(PLAIN, 0).unwrap()
    }

    #[test]
    fn labels_are_as_wide_as_they_are_measured() {
        for words in ["a plain label", "−0.25 ± 0.01", "log p(y|M)", "WAVE ijl"] {
            let wide = placed(&face(), words).1 / f32::from(face().units_per_em());
            let measured = crate::text::width(words, 1.0);
            let off = f64::from(wide) / measured - 1.0;
            assert!(off.abs() < 0.02, "{words}: {wide}, measured {measured}");
        }
    }

    #[test]
    fn marks_stand_over_their_letters() {
        let face = face();
        for words in ["k̂", "R̂", "x̂", "ŵ"] {
            // A letter that Unicode has with its mark is one glyph.
            let (glyphs, width) = placed(&face, words);
            let [(letter, ..), rest @ ..] = &glyphs[..] else { panic!("{words}") };
            assert_eq!(width, f32::from(face.glyph_hor_advance(*letter).unwrap()), "{words}");
            let letter = face.glyph_bounding_box(*letter).unwrap();
            for (mark, across, up) in rest {
                let mark = face.glyph_bounding_box(*mark).unwrap();
                let middle = across + 0.5 * f32::from(mark.x_min + mark.x_max);
                let inside = f32::from(letter.x_min) < middle && middle < f32::from(letter.x_max);
                assert!(inside, "{words}: {middle} within {letter:?}");
                let lowest = f32::from(mark.y_min) + up;
                assert!(lowest >= f32::from(letter.y_max), "{words}: {lowest} over {letter:?}");
            }
        }
    }

    #[test]
    fn words_become_shapes_and_nothing_else_changes() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\"><title>text</title>\
                   <text x=\"9\" y=\"8\" font-size=\"10\" class=\"f1\" fill=\"#123\"><title>whole</title>a&lt;b</text><rect/></svg>";
        let out = outlined(svg).unwrap();
        assert!(out.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"><title>text</title><path id=\"label-0\" class=\"f1\" fill=\"#123\" d=\"M"), "{out}");
        assert!(out.ends_with("Z\"/><rect/></svg>"), "{out}");
        assert!(outlined("no picture").is_err());
    }
}
