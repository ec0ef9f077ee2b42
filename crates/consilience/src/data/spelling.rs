//! How single values are written: numbers, true and false, and what stands for a missing one.

use super::read::TextFormat;
use std::str::Utf8Error;

/// How values are written.
#[derive(Debug, Clone, Default)]
pub(super) struct Spelling {
    /// What stands for a missing value, beside what always does in a text file.
    words: Vec<String>,
    /// The numbers among those, however they are written.
    numbers: Vec<f64>,
    /// Whether a comma stands before decimals, and not a point.
    comma: bool,
}

/// What a value of a text file says.
pub(super) enum Value {
    Missing,
    Finite(f64),
    NonFinite,
    Logical(bool),
    Word,
}

impl Spelling {
    /// As this format has it.
    pub fn new(format: &TextFormat) -> Spelling {
        let words: Vec<String> = format.na.iter().map(|word| word.trim().to_string()).collect();
        let plain = Spelling { comma: format.decimal == ',', ..Spelling::default() };
        let numbers = words.iter().filter_map(|word| plain.number(word));
        Spelling { numbers: numbers.filter(|x| x.is_finite()).collect(), words, ..plain }
    }

    /// Whether this text stands for a missing value.
    pub fn is_na(&self, word: &str) -> bool {
        !self.words.is_empty()
            && (self.words.iter().any(|na| na == word)
                || self.number(word).is_some_and(|x| self.is_na_number(x)))
    }

    /// Whether this number stands for a missing value.
    pub fn is_na_number(&self, x: f64) -> bool {
        self.numbers.contains(&x)
    }

    /// Whether a value of a text file is missing.
    pub fn is_missing(&self, word: &str) -> bool {
        matches!(word, "" | "NA" | "N/A" | "null" | "NULL") || self.is_na(word)
    }

    /// The number that a word spells, finite or not.
    fn number(&self, word: &str) -> Option<f64> {
        if !self.comma || !word.contains([',', '.']) {
            return word.parse().ok();
        }
        // A point would part thousands, or be of another writer.
        if word.contains('.') { None } else { word.replacen(',', ".", 1).parse().ok() }
    }

    /// What a value of a text file says.
    pub fn value(&self, bytes: &[u8]) -> Result<Value, Utf8Error> {
        let word = std::str::from_utf8(bytes)?;
        Ok(match word {
            _ if self.is_missing(word) => Value::Missing,
            "TRUE" | "True" | "true" => Value::Logical(true),
            "FALSE" | "False" | "false" => Value::Logical(false),
            _ => match self.number(word) {
                Some(x) if x.is_finite() => Value::Finite(x),
                Some(_) => Value::NonFinite,
                None => Value::Word,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelling(na: &[&str], decimal: char) -> Spelling {
        let na = na.iter().map(|word| word.to_string()).collect();
        Spelling::new(&TextFormat { na, decimal, ..TextFormat::default() })
    }

    fn says(spelling: &Spelling, word: &str) -> String {
        match spelling.value(word.as_bytes()).expect("UTF-8") {
            Value::Missing => "missing".to_string(),
            Value::Finite(x) => x.to_string(),
            Value::NonFinite => "not finite".to_string(),
            Value::Logical(yes) => yes.to_string(),
            Value::Word => "word".to_string(),
        }
    }

    #[test]
    fn what_is_missing_is_a_word_or_a_number() {
        let own = spelling(&["-999", ".", " n/a "], '.');
        for word in ["-999", "-999.0", "-9.99e2", ".", "n/a", "NA", ""] {
            assert_eq!(says(&own, word), "missing", "{word}");
        }
        assert_eq!(says(&own, "999"), "999");
        assert_eq!(says(&own, "-"), "word");
        assert_eq!(says(&spelling(&[], '.'), "-999"), "-999");
    }

    #[test]
    fn decimals_stand_behind_a_comma_if_they_do() {
        let comma = spelling(&["-9,5"], ',');
        for (word, says_it) in [
            ("1,5", "1.5"),
            ("-0,25e2", "-25"),
            ("7", "7"),
            (",5", "0.5"),
            ("1.5", "word"),
            ("1.234,5", "word"),
            ("1,2,3", "word"),
            ("-9,50", "missing"),
            ("inf", "not finite"),
        ] {
            assert_eq!(says(&comma, word), says_it, "{word}");
        }
        assert_eq!(says(&spelling(&[], '.'), "1,5"), "word");
    }
}
