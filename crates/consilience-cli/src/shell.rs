//! Commands that the user can copy.

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
}
