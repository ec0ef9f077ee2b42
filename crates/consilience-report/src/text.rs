//! Text for markup: made harmless, measured, cut to a width; numbers as people read them.

/// Text that is safe between tags and within quoted attributes of HTML and XML. Characters that XML forbids, and those that
/// turn the direction of the text around them, become visible.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            '\n' | '\t' => out.push(c),
            c if is_unfit(c) => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

/// Control characters, non-characters, and marks that reorder or hide text.
fn is_unfit(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}'
            | '\u{FDD0}'..='\u{FDEF}' | '\u{FFF9}'..='\u{FFFB}')
        || (c as u32) & 0xFFFE == 0xFFFE
}

/// A text on one line: runs of blanks become one, unfit characters visible.
pub(crate) fn line(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            c if c.is_whitespace() => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            c if is_unfit(c) => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out.trim().to_string()
}

/// Advance widths of DejaVu Sans from the space to the tilde, in thousandths of the size. It is among the widest fonts in
/// use, so that labels that fit in it fit in others.
const WIDTHS: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
];

/// How wide a text is about, at a size in pixels.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let of = |c: char| match c {
        ' '..='~' => f64::from(WIDTHS[c as usize - 32]) / 1000.0,
        '\u{300}'..='\u{36F}' => 0.0,
        c if (c as u32) < 0x1100 => 0.8,
        '\u{2000}'..='\u{22FF}' => 0.84,
        _ => 1.1,
    };
    text.chars().map(of).sum::<f64>() * size
}

/// The text on one line, cut with an ellipsis where it is wider than there is room.
pub(crate) fn fit(text: &str, size: f64, room: f64) -> String {
    // Nobody sees more than this of a name, and hostile ones are long.
    let mut text: String = line(&text.chars().take(400).collect::<String>());
    if width(&text, size) <= room {
        return text;
    }
    while !text.is_empty() && width(&text, size) + size > room {
        text.pop();
    }
    text.truncate(text.trim_end().len());
    text.push('…');
    text
}

/// A name within a sentence: in quotes, and short.
pub(crate) fn quoted(name: &str) -> String {
    format!("“{}”", fit(name, 1.0, 28.0))
}

/// Lines of at most this width, cut between words.
pub(crate) fn wrap(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in line(text).split(' ').filter(|w| !w.is_empty()) {
        let word = fit(word, size, room);
        match lines.last_mut() {
            Some(last) if width(&format!("{last} {word}"), size) <= room => {
                last.push(' ');
                last.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// A whole number with commas between thousands.
pub(crate) fn grouped(value: f64) -> String {
    if value.abs() >= 1e15 {
        return format!("{value:.1e}");
    }
    let text = format!("{:.0}", value.abs());
    let mut out = if value < 0.0 && text != "0" { "−".to_string() } else { String::new() };
    for (i, digit) in text.chars().enumerate() {
        if i > 0 && (text.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number with this many decimals, commas between thousands and a true minus sign.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    if value.abs() >= 1e15 {
        return format!("{value:.2e}").replace('-', "−");
    }
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let is_zero = text.chars().all(|c| c == '0' || c == '.');
    let sign = if value < 0.0 && !is_zero { "−" } else { "" };
    format!("{sign}{}{rest}", grouped(whole.parse().unwrap_or(0.0)))
}

/// A number with about this many significant digits.
pub(crate) fn significant(value: f64, digits: i32) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".into();
    }
    if !(1e-4..1e9).contains(&size) {
        return format!("{value:.*e}", (digits - 1).max(0) as usize).replace('-', "−");
    }
    let decimals = (digits - 1 - size.log10().floor() as i32).clamp(0, 12);
    fixed(value, decimals as usize)
}

/// A number with at most three digits that say something.
pub(crate) fn trimmed(value: f64) -> String {
    let text = significant(value, 3);
    if !text.contains('.') || text.contains('e') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// A probability.
pub(crate) fn probability(p: f64) -> String {
    match p {
        0.0 => "< 1e−300".into(),
        ..1e-4 => format!("{p:.1e}").replace('-', "−"),
        _ => fixed(p, 4),
    }
}

/// A value with as many decimals as its error bar is worth.
pub(crate) fn estimate(value: f64, se: Option<f64>) -> String {
    match se {
        None => format!("{} (no error bar)", fixed(value, 3)),
        Some(se) if se > 0.0 && se < 1e-6 => {
            format!("{} ± {}", fixed(value, 6), format!("{se:.0e}").replace('-', "−"))
        }
        Some(se) if se > 0.0 => {
            let decimals = (1.0 - se.log10().floor()).clamp(0.0, 6.0) as usize;
            format!("{} ± {}", fixed(value, decimals), fixed(se, decimals))
        }
        Some(_) => fixed(value, 3),
    }
}

/// `1 shard`, `2 shards`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{} {what}{}", grouped(count as f64), if count == 1 { "" } else { "s" })
}

/// An amount of data.
pub(crate) fn bytes(count: f64) -> String {
    match count {
        ..1e4 => format!("{} bytes", grouped(count)),
        ..1e7 => format!("{} kB", grouped(count / 1e3)),
        _ => format!("{} MB", grouped(count / 1e6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_becomes_markup() {
        let text = escape("<script>alert('x')</script>&\u{0}\u{202E}\u{FFFF}\"");
        assert_eq!(
            text,
            "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;\u{FFFD}\u{FFFD}\u{FFFD}&quot;"
        );
    }

    #[test]
    fn long_names_end_in_an_ellipsis_and_fit() {
        let name = "a model with a very long name that nobody would ever type";
        let cut = fit(name, 13.0, 120.0);
        assert!(cut.ends_with('…') && width(&cut, 13.0) <= 120.0, "{cut}");
        assert_eq!(fit("short", 13.0, 120.0), "short");
        assert_eq!(fit("two\n\tlines\u{7}", 13.0, 200.0), "two lines\u{FFFD}");
        assert!(fit("x", 13.0, 0.0).chars().count() <= 1);
    }

    #[test]
    fn lines_are_wrapped_between_words() {
        let lines = wrap("one two three four five six", 13.0, 70.0);
        assert!(lines.len() > 2 && lines.iter().all(|l| width(l, 13.0) <= 70.0), "{lines:?}");
        assert_eq!(lines.join(" "), "one two three four five six");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(grouped(-1234567.0), "−1,234,567");
        assert_eq!(fixed(-0.0001, 2), "0.00");
        assert_eq!(fixed(-147546.4178, 2), "−147,546.42");
        assert_eq!(significant(0.000012345, 3), "1.23e−5");
        assert_eq!(significant(0.12345, 3), "0.123");
        assert_eq!(significant(-1e308, 2), "−1.0e308");
        assert_eq!(probability(0.0), "< 1e−300");
        assert_eq!(estimate(-147546.42149, Some(0.0049)), "−147,546.4215 ± 0.0049");
        assert_eq!(estimate(-3.2, None), "−3.200 (no error bar)");
        assert_eq!(bytes(28853950.0), "29 MB");
    }
}
