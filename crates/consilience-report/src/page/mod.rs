//! One page for a person who has to decide: everything in it, no script, nothing from the network.

mod compare;
mod compare_tables;
mod html;
mod select;
mod sweep;
mod warnings;

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

/// One self-contained HTML page about a document.
pub fn report(document: &Document, extras: &Extras) -> String {
    let content = match &document.content {
        Content::Compare(d) => compare::content(document, d),
        Content::Select(d) => select::content(document, d),
        Content::Sweep(d) => sweep::content(document, d),
    };
    let mut sections = content.sections;
    sections.add("repeat", "To repeat it", repeat(extras, content.facts));
    let title = escape(&html::shortened(extras.title.as_deref().unwrap_or(&content.title)));
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
        escape(&content.subtitle),
        sections.contents()
    );
    let unreliable = if content.reliable {
        String::new()
    } else {
        "<p><strong class=\"level\">These results are not to be trusted as they stand.</strong> See what is marked unreliable under <a href=\"#warnings\">Warnings</a>.</p>\n".into()
    };
    let _ = write!(
        out,
        "<div class=\"answer{}\">\n{unreliable}{}</div>\n{}</main>\n",
        if content.reliable { "" } else { " bad" },
        content.answer,
        sections.html()
    );
    let program = extras.program.as_deref().unwrap_or("consilience");
    let _ = write!(
        out,
        "<footer><p class=\"small\">Made by {} from the JSON document of <code>{}</code>. All logarithms are natural.</p></footer>\n</body>\n</html>\n",
        escape(program),
        document.command()
    );
    out
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
        let _ = write!(
            out,
            "<details>\n<summary>The study</summary>\n<pre>{}</pre>\n</details>\n",
            escape(&text)
        );
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
