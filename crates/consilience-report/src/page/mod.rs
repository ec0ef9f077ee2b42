//! One page for a person who has to decide: everything in it, no script, nothing from the network.

mod chapters;
mod compare;
mod compare_tables;
mod html;
mod select;
mod strength;
mod sweep;
mod warnings;

pub use chapters::{Chapter, ChapterPart, report_of_chapters};

use crate::Document;
use crate::document::{Content, Partition, Traffic};
use crate::svg;
use crate::text::{bytes, counted, escape, fixed, grouped};
use html::{Sections, list};
use std::fmt::Write;

/// What the document does not hold, and helps to repeat the run. All of it may be left out.
#[derive(Debug, Clone, Default)]
pub struct Extras {
    /// The title of the page.
    pub title: Option<String>,
    /// The program with its version.
    pub program: Option<String>,
    /// The command that made the document.
    pub command: Option<String>,
    /// The study's file name.
    pub study: Option<String>,
    /// The study's text.
    pub study_text: Option<String>,
    /// The study's hash.
    pub study_hash: Option<String>,
    /// The seed of the Monte Carlo draws.
    pub seed: Option<u64>,
}

/// What a kind of document makes of the page.
struct Parts {
    title: String,
    subtitle: String,
    answer: String,
    reliable: bool,
    sections: Sections,
    facts: Vec<(&'static str, String)>,
}

/// What the page of a document says.
fn content(document: &Document) -> Parts {
    match &document.content {
        Content::Compare(d) => compare::content(document, d),
        Content::Select(d) => select::content(document, d),
        Content::Sweep(d) => sweep::content(document, d),
    }
}

/// One self-contained HTML page about a document.
pub fn report(document: &Document, extras: &Extras) -> String {
    let content = content(document);
    let mut sections = content.sections;
    sections.add("repeat", "To repeat it", repeat(extras, content.facts));
    let unreliable = if content.reliable {
        String::new()
    } else {
        "<p><strong class=\"level\">These results are not to be trusted as they stand.</strong> See what is marked unreliable under <a href=\"#warnings\">Warnings</a>.</p>\n".into()
    };
    let frame = Frame {
        title: extras.title.as_deref().unwrap_or(&content.title),
        subtitle: &content.subtitle,
        contents: &sections.contents(),
        answer: &(unreliable + &content.answer),
        reliable: content.reliable,
        main: &sections.html(),
        made_from: &format!("the JSON document of <code>{}</code>", document.command()),
    };
    frame.page(extras.program.as_deref())
}

/// What every page has.
struct Frame<'a> {
    title: &'a str,
    subtitle: &'a str,
    /// HTML, as all that follows.
    contents: &'a str,
    answer: &'a str,
    reliable: bool,
    main: &'a str,
    made_from: &'a str,
}

impl Frame<'_> {
    fn page(&self, program: Option<&str>) -> String {
        let title = escape(&html::shortened(self.title));
        let mut out =
            String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
        // Nothing may be loaded or run, whatever a document holds.
        out += "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n";
        out += "<link rel=\"icon\" href=\"data:,\">\n";
        let _ = write!(
            out,
            "<title>{title}</title>\n<style>\n{}{}</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the result</a>\n",
            include_str!("style.css"),
            svg::page_rules()
        );
        let _ = write!(
            out,
            "<header>\n<h1>{title}</h1>\n<p class=\"sub\">{}</p>\n</header>\n{}<main id=\"main\">\n",
            escape(self.subtitle),
            self.contents
        );
        let _ = write!(
            out,
            "<div class=\"answer{}\">\n{}</div>\n{}</main>\n",
            if self.reliable { "" } else { " bad" },
            self.answer,
            self.main
        );
        let _ = write!(
            out,
            "<footer><p class=\"small\">Made by {} from {}. All logarithms are natural.</p></footer>\n</body>\n</html>\n",
            escape(program.unwrap_or("consilience")),
            self.made_from
        );
        out
    }
}

fn repeat(extras: &Extras, facts: Vec<(&'static str, String)>) -> String {
    let mut items: Vec<(&str, String)> = Vec::new();
    let mut given =
        |name, value: &Option<String>| items.push((name, value.clone().unwrap_or_default()));
    given("Command", &extras.command);
    given("Program", &extras.program);
    given("Study", &extras.study);
    given("Hash of the study", &extras.study_hash);
    given("Seed of the draws", &extras.seed.map(|seed| seed.to_string()));
    items.extend(facts);
    let mut out = list(&items);
    if let Some(text) = &extras.study_text {
        let text: String = text.chars().take(200_000).collect();
        out += &html::fold("The study", &format!("<pre>{}</pre>\n", escape(&text)));
    }
    out
}

/// Rounds, bytes and time, of one shard of so many.
fn effort(traffic: &Traffic, shards: u64, seconds: Option<f64>) -> Vec<(&'static str, String)> {
    let shards = shards.max(1) as f64;
    vec![
        ("Rounds of questions", grouped(traffic.rounds as f64)),
        ("Sent to each shard", bytes(traffic.bytes_sent as f64 / shards)),
        ("Back from each shard", bytes(traffic.bytes_received as f64 / shards)),
        ("Time", seconds.map_or(String::new(), |s| format!("{} s", fixed(s, 1)))),
    ]
}

/// How the rows were split.
fn split(partition: &Partition) -> Vec<(&'static str, String)> {
    let dropped = match partition.dropped {
        0 => String::new(),
        n => format!(
            "{} with a missing value",
            counted(usize::try_from(n).unwrap_or(usize::MAX), "row")
        ),
    };
    vec![
        ("Rows", grouped(partition.rows as f64)),
        ("Left out", dropped),
        ("Shards", format!("{}, by {}", grouped(partition.shards as f64), partition.by)),
        ("Seed of the split", partition.seed.to_string()),
        ("Hash of the partition", partition.hash.clone()),
    ]
}
