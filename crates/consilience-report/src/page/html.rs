//! Pieces of HTML. Whatever comes from a document is escaped here.

use crate::Document;
use crate::figures::{self, View};
use crate::text::escape;
use std::fmt::Write;

/// At most this many rows of a table are written.
pub(super) const MOST_ROWS: usize = 200;

/// A table: numbers, or words where the column says so.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    pub caption: String,
    pub head: Vec<String>,
    /// A row's cells; the first one names the row.
    pub rows: Vec<Vec<String>>,
    /// Columns with words, which stand at the left.
    pub words: Vec<usize>,
    /// Whether what stands between backticks is code.
    pub code: bool,
}

impl Table {
    pub fn new(caption: &str, head: &[&str]) -> Table {
        Table {
            caption: caption.into(),
            head: head.iter().map(|h| h.to_string()).collect(),
            ..Table::default()
        }
    }

    pub fn html(&self) -> String {
        let class = |j: usize| if self.words.contains(&j) { " class=\"words\"" } else { "" };
        let mut caption = self.caption.clone();
        if self.rows.len() > MOST_ROWS {
            let _ = write!(
                caption,
                " The first {MOST_ROWS} of {} rows; the JSON document has all.",
                self.rows.len()
            );
        }
        let caption = escape(&caption);
        let mut out = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table: {caption}\">\n<table>\n<caption>{caption}</caption>\n<thead><tr>"
        );
        for (j, head) in self.head.iter().enumerate() {
            let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(j), escape(head));
        }
        out += "</tr></thead>\n<tbody>\n";
        for row in self.rows.iter().take(MOST_ROWS) {
            out += "<tr>";
            for (j, cell) in row.iter().enumerate() {
                let cell = shortened(cell);
                let cell = if self.code { with_code(&cell) } else { escape(&cell) };
                let _ = match j {
                    0 => write!(out, "<th scope=\"row\">{cell}</th>"),
                    _ => write!(out, "<td{}>{cell}</td>", class(j)),
                };
            }
            out += "</tr>\n";
        }
        out + "</tbody>\n</table>\n</div>\n"
    }
}

/// Text with code between backticks.
pub(super) fn with_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts
        .map(|(i, part)| match i % 2 {
            0 => escape(part),
            _ => format!("<code>{}</code>", escape(part)),
        })
        .collect()
}

/// What is behind a fold.
pub(super) fn fold(summary: &str, inside: &str) -> String {
    format!("<details>\n<summary>{}</summary>\n{inside}</details>\n", escape(summary))
}

/// A text that nobody reads to its end.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(600) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

/// A figure with its caption, and its numbers behind a fold.
pub(super) fn figure(document: &Document, kind: &str, table: Option<Table>) -> String {
    named_figure(document, kind, kind, table)
}

/// The same under a name of its own, where a page has several of a kind.
pub(super) fn named_figure(
    document: &Document,
    id: &str,
    kind: &str,
    table: Option<Table>,
) -> String {
    let at = |width| figures::draw(&View { document, width, model: None }, kind);
    let (Ok(wide), Ok(narrow)) = (at(740.0), at(358.0)) else { return String::new() };
    let numbers = table.filter(|t| !t.rows.is_empty()).map_or(String::new(), |table| {
        format!("<details>\n<summary>The numbers<span class=\"small\"> of “{}”</span></summary>\n{}</details>\n", escape(&wide.title), table.html())
    });
    format!(
        "<figure id=\"{id}\">\n{}{}<figcaption><strong>{}</strong> {}</figcaption>\n</figure>\n{numbers}",
        wide.inline(&format!("{id}-wide"), "wide"),
        narrow.inline(&format!("{id}-narrow"), "narrow"),
        escape(&sentence(&wide.title)),
        escape(&wide.caption)
    )
}

/// A title as a sentence: a question mark is its end already.
fn sentence(title: &str) -> String {
    if title.ends_with('?') { title.to_string() } else { format!("{title}.") }
}

/// The page, section by section.
#[derive(Default)]
pub(super) struct Sections {
    list: Vec<(&'static str, &'static str, String)>,
}

impl Sections {
    /// Adds a section, unless there is nothing in it.
    pub fn add(&mut self, id: &'static str, title: &'static str, body: String) {
        if !body.is_empty() {
            self.list.push((id, title, body));
        }
    }

    pub fn contents(&self) -> String {
        let mut out = String::from("<nav aria-label=\"Contents\">\n<ul>\n");
        for (id, title, _) in &self.list {
            let _ = writeln!(out, "<li><a href=\"#{id}\">{title}</a></li>");
        }
        out + "</ul>\n</nav>\n"
    }

    pub fn html(&self) -> String {
        let mut out = String::new();
        for (id, title, body) in &self.list {
            let _ = write!(
                out,
                "<section id=\"{id}\" aria-labelledby=\"{id}-head\">\n<h2 id=\"{id}-head\">{title}</h2>\n{body}</section>\n"
            );
        }
        out
    }
}

/// A paragraph of text.
pub(super) fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escape(text))
}

/// Names with what they stand for.
pub(super) fn list(items: &[(&str, String)]) -> String {
    let mut out = String::from("<dl>\n");
    for (name, value) in items.iter().filter(|i| !i.1.is_empty()) {
        let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(&shortened(value)));
    }
    out + "</dl>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_escaped_and_rows_are_bounded() {
        let mut table = Table::new("<b>", &["a", "<i>"]);
        table.rows = (0..300).map(|i| vec![format!("<script>{i}"), "\"x\"".into()]).collect();
        let html = table.html();
        assert!(!html.contains("<script") && !html.contains("<b>") && !html.contains("<i>"));
        assert_eq!(html.matches("<tr>").count(), MOST_ROWS + 1);
        assert!(html.contains("200 of 300"));
    }
}
