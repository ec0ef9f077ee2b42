//! How levels are spelled.

use std::borrow::Cow;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// A level as all shards spell it: composed (NFC). An é may be one character or two, depending on the machine
/// that the file was written on, and nobody sees the difference.
pub(crate) fn spelled(level: &str) -> Cow<'_, str> {
    if level.is_ascii() || is_nfc_quick(level.chars()) == IsNormalized::Yes {
        return Cow::Borrowed(level);
    }
    Cow::Owned(level.nfc().collect())
}

/// Whether two texts are the same level.
pub(crate) fn same(a: &str, b: &str) -> bool {
    a == b || !(a.is_ascii() && b.is_ascii()) && spelled(a) == spelled(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn composed_and_decomposed_are_one() {
        for (text, composed) in [
            ("a b", "a b"),
            ("e\u{301}", "\u{e9}"),
            ("\u{e9}", "\u{e9}"),
            // Marks in another order, a Hangul syllable, and a sign that is a letter.
            ("q\u{307}\u{323}", "q\u{323}\u{307}"),
            ("\u{1112}\u{1161}\u{11ab}", "\u{d55c}"),
            ("\u{212b}", "\u{c5}"),
        ] {
            assert_eq!(spelled(text), composed);
            assert!(same(text, composed));
        }
        assert!(matches!(spelled("caf\u{e9}"), Cow::Borrowed(_)));
        assert!(!same("e", "\u{e9}") && same("K", "\u{212a}"));
    }
}
