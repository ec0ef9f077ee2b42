//! Every kind of figure, of documents of any size: well-formed, finite, named, and with labels that do not overlap.

mod made;

use consilience_report::{Document, Look, figure, kinds, outlined, png};
use resvg::usvg::{self, Node, Options, Tree, roxmltree};
use serde_json::Value;
use std::collections::HashMap;

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

/// How far DejaVu's letters reach above and below the line, of their size.
const ABOVE: f32 = 0.93;
const BELOW: f32 = 0.24;

/// Words with a box around them.
struct Label {
    words: String,
    left: f32,
    right: f32,
    top: f32,
    bottom: f32,
}

/// All labels: across as the renderer draws them, down as high as letters can be.
fn labels(svg: &str, tree: &Tree) -> Vec<Label> {
    let mut drawn = HashMap::new();
    paths(tree.root(), &mut drawn);
    let xml = roxmltree::Document::parse(svg).unwrap();
    let mut out = Vec::new();
    for (k, text) in xml.descendants().filter(|n| n.tag_name().name() == "text").enumerate() {
        let number = |name: &str| text.attribute(name).unwrap().parse::<f32>().unwrap();
        let words = text.children().filter(|n| n.is_text()).map(|n| n.text().unwrap()).collect();
        let (across, moved) =
            drawn.get(&format!("label-{k}")).unwrap_or_else(|| panic!("no {words:?}"));
        out.push(Label {
            words,
            left: across.left(),
            right: across.right(),
            top: number("y") + moved - ABOVE * number("font-size"),
            bottom: number("y") + moved + BELOW * number("font-size"),
        });
    }
    out
}

/// The boxes of all paths, and how far down the groups around them are moved.
fn paths(group: &usvg::Group, out: &mut HashMap<String, (usvg::Rect, f32)>) {
    for node in group.children() {
        match node {
            Node::Group(group) => paths(group, out),
            Node::Path(path) => {
                let down = path.abs_transform().ty;
                out.insert(path.id().to_string(), (path.abs_bounding_box(), down));
            }
            _ => {}
        }
    }
}

/// Pairs of labels of which one is on the other, and labels that reach over the edge.
fn clashes(svg: &str) -> Vec<String> {
    let tree = Tree::from_str(&outlined(svg).unwrap(), &Options::default()).unwrap();
    let all = labels(svg, &tree);
    let mut found = Vec::new();
    for (i, a) in all.iter().enumerate() {
        let words = &a.words;
        if a.left < -1.0
            || a.right > tree.size().width() + 1.0
            || a.bottom > tree.size().height() + 1.0
        {
            found.push(format!("`{words}` reaches over the edge"));
        }
        for b in &all[i + 1..] {
            let across = a.right.min(b.right) - a.left.max(b.left);
            let down = a.bottom.min(b.bottom) - a.top.max(b.top);
            if across > 1.0 && down > 2.5 {
                found.push(format!("`{words}` and `{}`", b.words));
            }
        }
    }
    found
}

#[test]
fn every_figure_is_sound() {
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
                wrong.extend(clashes(&svg).into_iter().map(|c| format!("{place}: {c}")));
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
fn shards_of_few_rows_raise_no_alarm() {
    let mut value = made::compare(3, 1000, made::ALL);
    for model in value["models"].as_array_mut().unwrap() {
        for shard in model["shards"].as_array_mut().unwrap() {
            shard["agreement"]["chi_square"] = 900.0.into();
            shard["agreement"]["p_value"] = Value::Null;
        }
    }
    let alarms = |svg: &str| svg.matches(" standard deviations</title>").count();
    for width in WIDTHS {
        let look = Look { width, model: None };
        let svg = figure(&read(&value), "agreement", &look).unwrap();
        assert_eq!(alarms(&svg), 0, "{width}");
        for part in ["No cell is over 4", "Every shard has too few rows", ">too few rows to tell<"]
        {
            assert!(svg.contains(part), "{width}: {part}");
        }
        assert_eq!(clashes(&svg), [""; 0], "{width}");
        // One shard has enough of them.
        let mut one = value.clone();
        one["models"][1]["shards"][500]["agreement"]["p_value"] = 1e-9.into();
        let svg = figure(&read(&one), "agreement", &look).unwrap();
        assert_eq!(alarms(&svg), 1, "{width}");
        for part in ["1 cell is over 4", " cells shards have too few rows", ", shard 500: "] {
            assert!(svg.contains(part), "{width}: {part}");
        }
    }
    // Where all have enough, nothing is said of it.
    let mut enough = made::compare(3, 4, made::ALL);
    enough["models"].as_array_mut().unwrap().iter_mut().for_each(|model| {
        let shards = model["shards"].as_array_mut().unwrap();
        shards.iter_mut().for_each(|shard| shard["agreement"]["p_value"] = 0.5.into());
    });
    assert!(!figure(&read(&enough), "agreement", &Look::default()).unwrap().contains("few rows"));
}

#[test]
fn of_equal_models_the_one_that_the_document_names_is_the_best() {
    let mut value = made::sweep(3, &["random"], &[1, 10], 3);
    let same = value["reference"]["log_evidence"][0].clone();
    value["reference"]["log_evidence"] = [same.clone(), same.clone(), same].into();
    for (named, best) in [(Value::Null, "m1"), (0.into(), "m1"), (2.into(), "m3"), (9.into(), "m1")]
    {
        value["reference"]["best"] = named;
        let svg = figure(&read(&value), "bayes-factor", &Look::default()).unwrap();
        assert!(svg.contains(&format!("Log Bayes factor of “{best}”")), "{best}");
        assert!(!svg.contains(&format!("against {best},")), "{best} against itself");
    }
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
    assert_eq!(clashes(&picture([text(10, "one"), text(20, "two")])).len(), 1);
    assert_eq!(clashes(&picture([text(10, "one"), text(280, "beyond")])).len(), 1);
    assert_eq!(clashes(&picture([text(10, "one"), text(80, "two")])).len(), 0);
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
