//! One page about documents that belong together, as those of experiments do.

use super::html::{Table, fold, named_figure, paragraph, shortened};
use super::{Extras, Frame, content, repeat, sweep, warnings};
use crate::Document;
use crate::document::{Content, Level};
use crate::text::{counted, escape};
use std::fmt::Write;

/// Documents under one heading.
#[derive(Debug, Clone)]
pub struct Chapter<'a> {
    /// The heading.
    pub title: String,
    /// A sentence below it.
    pub says: String,
    /// What there is to show.
    pub parts: Vec<ChapterPart<'a>>,
}

/// One document of a chapter.
#[derive(Debug, Clone)]
pub struct ChapterPart<'a> {
    /// Its heading.
    pub title: String,
    /// A sentence below it.
    pub says: String,
    /// The document.
    pub document: &'a Document,
    /// The head of a table of what it shows.
    pub head: Vec<String>,
    /// The table's rows; what stands between backticks is code.
    pub rows: Vec<Vec<String>>,
    /// The kinds of figures to draw. Those that the document does not have are left out.
    pub figures: Vec<&'static str>,
    /// What helps to repeat it.
    pub extras: Extras,
}

impl ChapterPart<'_> {
    fn is_reliable(&self) -> bool {
        self.document.all_warnings().iter().all(|(_, w)| w.level != Level::Unreliable)
    }

    /// The answer, and what helps to repeat it.
    fn answer(&self) -> (String, Vec<(&'static str, String)>) {
        match &self.document.content {
            // Without the figures of a whole page, which take a while.
            Content::Sweep(d) => (sweep::answer(d), sweep::facts(d)),
            Content::Compare(_) | Content::Select(_) => {
                let whole = content(self.document);
                (whole.answer, whole.facts)
            }
        }
    }

    /// What stands at the top of the page, in a sentence.
    fn verdict(&self) -> String {
        match &self.document.content {
            Content::Sweep(d) => sweep::verdict(d),
            Content::Compare(_) | Content::Select(_) => self.answer().0,
        }
    }

    fn html(&self, id: &str) -> String {
        let (answer, facts) = self.answer();
        let mut out = format!("<h3 id=\"{id}\">{}</h3>\n", escape(&shortened(&self.title)));
        if !self.says.is_empty() {
            out += &paragraph(&self.says);
        }
        out += &answer;
        let mut table = Table::new("What it shows.", &[]);
        table.head = self.head.clone();
        table.rows = self.rows.clone();
        table.words = (1..table.head.len()).collect();
        table.code = true;
        if !table.rows.is_empty() {
            out += &table.html();
        }
        for kind in &self.figures {
            let numbers = match &self.document.content {
                Content::Sweep(d) => sweep::numbers(d, kind),
                Content::Compare(_) | Content::Select(_) => None,
            };
            out += &named_figure(self.document, &format!("{id}-{kind}"), kind, numbers);
        }
        let all = self.document.all_warnings();
        if !all.is_empty() {
            out += &fold(
                &format!("{} on “{}”", counted(all.len(), "warning"), self.title),
                &warnings::html(self.document, &all),
            );
        }
        out + &fold(&format!("To repeat “{}”", self.title), &repeat(&self.extras, facts))
    }
}

/// One self-contained HTML page about documents that belong together.
pub fn report_of_chapters(chapters: &[Chapter], extras: &Extras) -> String {
    let id = |chapter: usize| format!("chapter-{}", chapter + 1);
    let part_id = |chapter: usize, part: usize| format!("part-{}-{}", chapter + 1, part + 1);
    let (mut contents, mut answer, mut main) = (String::new(), String::new(), String::new());
    let mut reliable = true;
    for (k, chapter) in chapters.iter().enumerate() {
        let (id, title) = (id(k), escape(&shortened(&chapter.title)));
        let _ = writeln!(contents, "<li><a href=\"#{id}\">{title}</a></li>");
        let _ = write!(
            main,
            "<section id=\"{id}\" aria-labelledby=\"{id}-head\">\n<h2 id=\"{id}-head\">{title}</h2>\n{}",
            if chapter.says.is_empty() { String::new() } else { paragraph(&chapter.says) }
        );
        for (j, part) in chapter.parts.iter().enumerate() {
            let id = part_id(k, j);
            let _ = write!(
                answer,
                "<p><a href=\"#{id}\">{}</a></p>\n{}",
                escape(&shortened(&part.title)),
                part.verdict()
            );
            if !part.is_reliable() {
                reliable = false;
                answer += "<p><strong class=\"level\">This is not to be trusted as it stands:</strong> see its warnings.</p>\n";
            }
            main += &part.html(&id);
        }
        main += "</section>\n";
    }
    let _ = write!(
        main,
        "<section id=\"repeat\" aria-labelledby=\"repeat-head\">\n<h2 id=\"repeat-head\">To repeat it</h2>\n{}</section>\n",
        repeat(extras, Vec::new())
    );
    contents += "<li><a href=\"#repeat\">To repeat it</a></li>\n";
    let parts: usize = chapters.iter().map(|chapter| chapter.parts.len()).sum();
    let documents = counted(parts, "JSON document");
    let frame = Frame {
        title: extras.title.as_deref().unwrap_or("What came out"),
        subtitle: &counted(parts, "part"),
        contents: &format!("<nav aria-label=\"Contents\">\n<ul>\n{contents}</ul>\n</nav>\n"),
        answer: &answer,
        reliable,
        main: &main,
        made_from: &documents,
    };
    frame.page(extras.program.as_deref())
}
