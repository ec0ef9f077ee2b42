//! Every kind of figure, of documents of any size: well-formed, finite, named, and with labels that do not overlap.

mod made;

use consilience_report::{Document, Look, figure, kinds, png};
use resvg::usvg::{self, Node, Options, Tree, roxmltree};
use serde_json::Value;
use std::sync::Arc;

const WIDTHS: [f64; 2] = [760.0, 360.0];

fn documents() -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for models in [1, 2, 6, 40] {
        for shards in [1, 50, 1000] {
            all.push((
                format!("compare-{models}-{shards}"),
                made::compare(models, shards, made::ALL),
            ));
        }
    }
    all.push(("compare-least".into(), made::compare(2, 4, made::Wishes::default())));
    all.push(("compare-130".into(), made::compare(130, 2, made::ALL)));
    for terms in [1, 7, 40, 200] {
        all.push((format!("select-{terms}"), made::select(terms, 20)));
    }
    all.push(("sweep-1".into(), made::sweep(1, &["random"], &[1], 1)));
    all.push((
        "sweep-2".into(),
        made::sweep(2, &["random", "outcome"], &[1, 2, 5, 10, 50, 100, 1000], 5),
    ));
    all.push(("sweep-6".into(), made::sweep(6, &["random"], &[10, 50], 20)));
    all
}

fn read(value: &Value) -> Document {
    Document::read(&value.to_string()).unwrap()
}

fn options() -> Options<'static> {
    let mut options = Options { font_family: "DejaVu Sans".into(), ..Options::default() };
    let fonts = Arc::make_mut(&mut options.fontdb);
    fonts.load_font_data(include_bytes!("../fonts/DejaVuSans.subset.ttf").to_vec());
    fonts.load_font_data(include_bytes!("../fonts/DejaVuSans-Bold.subset.ttf").to_vec());
    options
}

/// All labels with their boxes.
fn labels(group: &usvg::Group, out: &mut Vec<(String, usvg::Rect)>) {
    for node in group.children() {
        match node {
            Node::Group(group) => labels(group, out),
            Node::Text(text) => {
                let words = text.chunks().iter().map(|c| c.text()).collect::<Vec<_>>().concat();
                out.push((words, text.abs_bounding_box()));
            }
            _ => {}
        }
    }
}

/// Pairs of labels of which one is on the other, and labels that reach over the edge.
fn clashes(svg: &str, options: &Options) -> Vec<String> {
    let tree = Tree::from_str(svg, options).unwrap();
    let mut all = Vec::new();
    labels(tree.root(), &mut all);
    let mut found = Vec::new();
    for (i, (words, a)) in all.iter().enumerate() {
        if a.left() < -1.0
            || a.right() > tree.size().width() + 1.0
            || a.bottom() > tree.size().height() + 1.0
        {
            found.push(format!("`{words}` reaches over the edge"));
        }
        for (others, b) in &all[i + 1..] {
            let across = a.right().min(b.right()) - a.left().max(b.left());
            let down = a.bottom().min(b.bottom()) - a.top().max(b.top());
            if across > 1.0 && down > 2.5 {
                found.push(format!("`{words}` and `{others}`"));
            }
        }
    }
    found
}

#[test]
fn every_figure_is_sound() {
    let options = options();
    let mut wrong = Vec::new();
    for (name, value) in documents() {
        let document = read(&value);
        let kinds = kinds(&document);
        assert!(!kinds.is_empty());
        for kind in kinds {
            for width in WIDTHS {
                let look = Look { width, model: None };
                let svg = figure(&document, kind.name, &look).unwrap();
                let place = format!("{name} {} {width}", kind.name);
                assert_eq!(
                    svg,
                    figure(&document, kind.name, &look).unwrap(),
                    "{place}: not the same bytes"
                );
                let xml =
                    roxmltree::Document::parse(&svg).unwrap_or_else(|e| panic!("{place}: {e}"));
                let root = xml.root_element();
                assert_eq!(root.attribute("role"), Some("img"), "{place}");
                for tag in ["title", "desc"] {
                    let node = root.children().find(|n| n.has_tag_name(tag));
                    assert!(
                        node.and_then(|n| n.text()).is_some_and(|t| t.len() > 5),
                        "{place}: no {tag}"
                    );
                }
                let numbers = xml.descendants().flat_map(|n| n.attributes()).map(|a| a.value());
                for value in numbers {
                    assert!(!value.contains("NaN") && !value.contains("inf"), "{place}: {value}");
                }
                assert!(svg.len() < 600_000, "{place}: {} bytes", svg.len());
                wrong.extend(clashes(&svg, &options).into_iter().map(|c| format!("{place}: {c}")));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} labels clash:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(40)].join("\n")
    );
}

#[test]
fn the_check_of_labels_can_fail() {
    let text =
        |x: u32, words: &str| format!("<text x=\"{x}\" y=\"20\" font-size=\"13\">{words}</text>");
    let picture = |words: [String; 2]| {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"300\" height=\"40\">{}</svg>",
            words.concat()
        )
    };
    let options = options();
    assert_eq!(clashes(&picture([text(10, "one"), text(20, "two")]), &options).len(), 1);
    assert_eq!(clashes(&picture([text(10, "one"), text(280, "beyond")]), &options).len(), 1);
    assert_eq!(clashes(&picture([text(10, "one"), text(80, "two")]), &options).len(), 0);
}

#[test]
fn pixels_show_what_is_drawn_without_any_font_of_the_system() {
    let document = read(&made::compare(2, 4, made::ALL));
    let svg = figure(&document, "probabilities", &Look::default()).unwrap();
    let bytes = png(&svg, 2.0).unwrap();
    let pixels = resvg::tiny_skia::Pixmap::decode_png(&bytes).unwrap();
    assert_eq!(pixels.width(), 1520);
    let colours: std::collections::BTreeSet<[u8; 3]> =
        pixels.pixels().iter().map(|p| [p.red(), p.green(), p.blue()]).collect();
    assert!(
        colours.contains(&[255, 255, 255]),
        "the paper is white: the block for dark mode is passed over"
    );
    let dark =
        pixels.pixels().iter().filter(|p| p.red() < 80 && p.green() < 80 && p.blue() < 80).count();
    assert!(dark > 2000, "letters are drawn: {dark}");
    assert!(png("no picture", 1.0).is_err());
    assert!(png(&svg, 1000.0).unwrap_err().to_string().contains("at most"));
    assert!(png(&svg, f32::NAN).is_err());
}

#[test]
fn a_wrong_kind_names_those_that_there_are() {
    let document = read(&made::compare(2, 4, made::Wishes::default()));
    let error = figure(&document, "pie", &Look::default()).unwrap_err().to_string();
    assert!(error.contains("`pie`") && error.contains("probabilities, evidence"), "{error}");
    let error = figure(&document, "prior-scale", &Look::default()).unwrap_err().to_string();
    assert!(
        error.contains("--prior-scale") && !error.contains("parameters, prior-scale"),
        "{error}"
    );
    let look = Look { model: Some("nobody".into()), ..Look::default() };
    let error = figure(&document, "parameters", &look).unwrap_err().to_string();
    assert!(error.contains("`nobody`") && error.contains("`dose and age`"), "{error}");
}
