//! Random text files: quotes, line ends, comments and faults of all kinds.

/// A sequence of random numbers.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}

/// A text of a few columns, some of which hold quotes, line ends within them, words among numbers; with
/// comments, empty lines and, seldom, faults.
pub fn random_text(dice: &mut Dice) -> Vec<u8> {
    let columns = 1 + dice.below(4);
    let end = dice.of(&["\n", "\r\n"]);
    let faults = dice.one_in(4);
    let kinds: Vec<&[&'static str]> = (0..columns)
        .map(|_| match dice.below(5) {
            0 => &["1", "2.5", "NA", "", "-0", " 3 "][..],
            1 => &["0.1", "1", "", "1e300"],
            2 => &["TRUE", "false", "NA", "\"true\""],
            3 => &["\"a\nb\"", "\" \"\"q\"\" \"", "x\"y", "\"#\n\n\"", "7", "\"1\"", "nan", "\"\""],
            _ => &["\"", "\"\"\"\"", "1", "2", "  \"z\"  ", "\"\r\n\"", "é"],
        })
        .collect();
    let mut text = String::new();
    if dice.one_in(3) {
        text += "\u{feff}";
    }
    text += &(0..columns).map(|i| format!("c{i}")).collect::<Vec<_>>().join(",");
    text += end;
    for _ in 0..dice.below(30) {
        match dice.below(12) {
            0 => text += "# \"a comment",
            1 => text += "  ",
            2 if faults && dice.one_in(3) => {
                text += dice.of(&["\"a\" b", "1,2,3,4,5,6", "\"open", "inf"])
            }
            _ => {
                // One kind seldom spoils another.
                let kinds: Vec<&[&'static str]> = kinds
                    .iter()
                    .map(|k| if dice.one_in(60) { &["x", "TRUE", "9", "inf"][..] } else { k })
                    .collect();
                // A lone quote opens what nobody closes.
                let mut word = |kind: &&[&'static str]| match dice.of(kind) {
                    "\"" if !faults => "\"'\"",
                    word => word,
                };
                text += &kinds.iter().map(&mut word).collect::<Vec<_>>().join(",");
            }
        }
        text += end;
    }
    if dice.one_in(2) {
        text.truncate(text.trim_end().len());
    }
    let mut bytes = text.into_bytes();
    if faults && dice.one_in(4) {
        let at = dice.below(bytes.len());
        bytes[at] = 0xff;
    }
    bytes
}
