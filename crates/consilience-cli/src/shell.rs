//! Commands that the user can copy.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

/// A path as one word of a shell's command line.
pub fn word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+,:@%=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Says something beside the result. If nobody can hear it, that is no failure of the work.
pub fn tell(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", visible(text));
}

/// Text in which nothing steers the terminal: names and messages may come from data, and from other sites.
pub fn visible(text: &str) -> Cow<'_, str> {
    // Beside control characters those that turn the direction of what follows.
    let steers = |c: char| {
        c.is_control() && c != '\n' && c != '\t'
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if steers(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_one_word() {
        assert_eq!(word("a/b-1.toml".as_ref()), "a/b-1.toml");
        assert_eq!(word("my study.toml".as_ref()), "'my study.toml'");
        assert_eq!(word("it's $x".as_ref()), "'it'\\''s $x'");
        assert_eq!(word("".as_ref()), "''");
    }

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(visible("a χ² of 3\n\tb"), "a χ² of 3\n\tb");
        assert_eq!(visible("\u{1b}[31mred\u{7}\r"), "\\u{1b}[31mred\\u{7}\\u{d}");
        assert_eq!(visible("x\u{202e}y\u{9b}2J"), "x\\u{202e}y\\u{9b}2J");
    }
}
