//! Text of a width: tables, paragraphs, colour.

use std::io::IsTerminal;
use unicode_width::UnicodeWidthStr;

/// How wide text may be where nobody says otherwise.
pub const WIDTH: usize = 80;

/// No terminal is wider.
const WIDEST: usize = u16::MAX as usize;

/// How wide text may be: as wide as the terminal it goes to, and never less than 80.
pub fn width() -> usize {
    let out = std::io::stdout();
    let size = terminal_size::terminal_size_of(&out).map(|(width, _)| usize::from(width.0));
    // A terminal that does not know its size may have told the shell; what goes to a file asks nobody.
    let told = || std::env::var("COLUMNS").ok().filter(|_| out.is_terminal());
    columns(size, told)
}

/// The columns that a terminal says it has, or that are told of it.
fn columns(size: Option<usize>, told: impl FnOnce() -> Option<String>) -> usize {
    size.or_else(|| told()?.trim().parse().ok()).unwrap_or(WIDTH).clamp(WIDTH, WIDEST)
}

/// Whether what goes to this stream may be coloured: it is a terminal, and NO_COLOR is not set.
pub fn coloured(stream: &impl IsTerminal) -> bool {
    let silenced = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stream.is_terminal() && !silenced && !dumb
}

/// How many columns of a terminal a text takes: letters of Chinese or Japanese take two.
pub fn measure(text: &str) -> usize {
    text.width()
}

/// Columns of text: the first to the left, the others to the right. Where that is too wide, the first column has lines
/// of its own.
pub fn table<R: AsRef<[String]>>(rows: &[R]) -> String {
    fitted(rows, &[], width())
}

/// The same within a width. Of the columns that can be done without, the most important one first, those are shown
/// that there is room for.
pub fn fitted<R: AsRef<[String]>>(rows: &[R], spare: &[usize], width: usize) -> String {
    let rows: Vec<&[String]> = rows.iter().map(AsRef::as_ref).collect();
    whole(&rows, spare, width).unwrap_or_else(|| lines(&rows, &needed(&rows, spare), true))
}

/// Columns that cannot be done without. One of which there is nothing but a head says nothing.
fn needed(rows: &[&[String]], spare: &[usize]) -> Vec<usize> {
    let columns = rows.first().map_or(0, |row| row.len());
    (0..columns).filter(|j| !empty(rows, *j) && !spare.contains(j)).collect()
}

fn empty(rows: &[&[String]], j: usize) -> bool {
    j > 0 && rows.len() > 1 && rows[1..].iter().all(|r| r[j].is_empty())
}

/// The same with every row on one line; `None` where there is no room for that.
pub fn whole<R: AsRef<[String]>>(rows: &[R], spare: &[usize], width: usize) -> Option<String> {
    let rows: Vec<&[String]> = rows.iter().map(AsRef::as_ref).collect();
    let fits =
        |shown: &[usize]| lines(&rows, shown, false).lines().all(|line| measure(line) <= width);
    let mut shown = needed(&rows, spare);
    if !fits(&shown) {
        return None;
    }
    for &j in spare.iter().filter(|j| !empty(&rows, **j)) {
        let mut more = shown.clone();
        more.push(j);
        more.sort_unstable();
        if fits(&more) {
            shown = more;
        }
    }
    Some(lines(&rows, &shown, false))
}

/// The rows with these columns; the first in lines of its own if that is wanted.
fn lines(rows: &[&[String]], columns: &[usize], apart: bool) -> String {
    let width = |j: usize| rows.iter().map(|row| measure(&row[j])).max().unwrap_or(0);
    let widths: Vec<usize> = columns.iter().map(|&j| width(j)).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (place, (&j, width)) in columns.iter().zip(&widths).enumerate() {
            let cell = &row[j];
            let pad = " ".repeat(width - measure(cell));
            match (place, apart) {
                (0, true) => {
                    out += cell;
                    out.push('\n');
                }
                (0, false) => line = format!("{cell}{pad}"),
                _ => line += &format!("  {pad}{cell}"),
            }
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// A paragraph in lines of a width. Lines after the first begin with this many blanks; a word that is wider
/// than a line has one of its own.
pub fn wrapped(text: &str, indent: usize, width: usize) -> String {
    let mut out = String::new();
    for (i, paragraph) in text.split('\n').enumerate() {
        if i > 0 {
            out.push('\n');
        }
        // What begins with blanks was laid out by somebody: formulas with a caret below.
        let first = paragraph.len() - paragraph.trim_start_matches(' ').len();
        if first > indent.max(2) {
            out += paragraph;
            continue;
        }
        let mut line = " ".repeat(first);
        let mut used = first;
        let mut empty = true;
        for word in paragraph.split(' ').filter(|word| !word.is_empty()) {
            let length = measure(word);
            if !empty && used + 1 + length > width {
                out += line.trim_end();
                out.push('\n');
                line = " ".repeat(indent.max(first));
                used = indent.max(first);
                empty = true;
            }
            if !empty {
                line.push(' ');
                used += 1;
            }
            line += word;
            used += length;
            empty = false;
        }
        out += line.trim_end();
    }
    out
}

const BOLD: &str = "\u{1b}[1m";
const RED: &str = "\u{1b}[31m";
const YELLOW: &str = "\u{1b}[33m";
const DIM: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// Text with the first words of warnings in colour, and these passages in bold. It must be fit for a terminal already.
pub fn painted(text: &str, bold: &[&str]) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let colours = [("unreliable [", RED), ("caution [", YELLOW), ("note [", DIM)];
        match colours.iter().find(|(head, _)| line.starts_with(head)) {
            Some((head, colour)) => {
                let word = head.trim_end_matches(" [");
                out += &format!("{colour}{word}{PLAIN}{}", &line[word.len()..]);
            }
            None => out += line,
        }
    }
    for passage in bold.iter().filter(|passage| !passage.is_empty()) {
        // Line by line, so that a line that is cut or scrolled leaves nothing bold behind.
        let strong: Vec<String> =
            passage.split('\n').map(|line| format!("{BOLD}{line}{PLAIN}")).collect();
        out = out.replacen(passage, &strong.join("\n"), 1);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[Vec<String>]) -> String {
        fitted(rows, &[], 80)
    }

    fn rows(cells: &[&[&str]]) -> Vec<Vec<String>> {
        cells.iter().map(|row| row.iter().map(|cell| cell.to_string()).collect()).collect()
    }

    #[test]
    fn wide_letters_align() {
        let text = table(&rows(&[&["model", "n"], &["東京", "10"], &["a", "5"]]));
        assert_eq!(text, "model   n\n東京   10\na       5\n");
        // An accent that stands alone takes no room.
        let text = table(&rows(&[&["e\u{301}", "1"], &["e", "2"]]));
        assert_eq!(text, "e\u{301}  1\ne  2\n");
    }

    #[test]
    fn a_terminal_without_a_size_has_the_columns_that_are_told() {
        let told = |text: &str| Some(text.to_string());
        assert_eq!(columns(Some(120), || told("90")), 120);
        assert_eq!(columns(None, || told("100")), 100);
        for nothing in [None, told("0"), told("40"), told("wide"), told("-100"), told("")] {
            assert_eq!(columns(None, || nothing.clone()), WIDTH, "{nothing:?}");
        }
        assert_eq!(columns(Some(20), || told("100")), WIDTH);
        assert_eq!(columns(None, || told("99999999999")), WIDEST);
    }

    #[test]
    fn tables_fit() {
        let cells = rows(&[&["model", "value", "more"], &["a", "1.5 ± 0.1", "text"]]);
        assert_eq!(fitted(&cells, &[2], 80).lines().next(), Some("model      value  more"));
        assert_eq!(fitted(&cells, &[2], 20), "model      value\na      1.5 ± 0.1\n");
        assert_eq!(fitted(&cells, &[2], 14), "model\n      value\na\n  1.5 ± 0.1\n");
        // What says nothing is not shown, however much room there is.
        let cells = rows(&[&["model", "odd", "n"], &["a", "", "1"]]);
        assert_eq!(fitted(&cells, &[], 80), "model  n\na      1\n");
    }

    #[test]
    fn paragraphs_are_wrapped() {
        assert_eq!(wrapped("one two three", 2, 8), "one two\n  three");
        assert_eq!(wrapped("abcdefghijkl one", 0, 5), "abcdefghijkl\none");
        assert_eq!(wrapped("x\n    y ~ z +\n          ^", 2, 8), "x\n    y ~ z +\n          ^");
        assert_eq!(wrapped("  so it is", 2, 7), "  so it\n  is");
        assert_eq!(wrapped("東京 東京", 0, 8), "東京\n東京");
    }

    #[test]
    fn colour_is_on_words_and_ends_with_them() {
        let text = "It is so\nor not.\n\ncaution [x] of it.\n";
        let shown = painted(text, &["It is so\nor not."]);
        assert_eq!(
            shown,
            "\u{1b}[1mIt is so\u{1b}[0m\n\u{1b}[1mor not.\u{1b}[0m\n\n\u{1b}[33mcaution\u{1b}[0m [x] of it.\n"
        );
    }
}
