//! Numbers as text, the way R writes them.

/// A number as R's `as.character` and `deparse` write it: the fewest of at most 15 significant
/// digits, in fixed notation unless scientific notation is shorter.
pub(crate) fn r_number(value: f64) -> String {
    with_digits(value, &format!("{value:.14e}"))
}

/// A number inside a formula: as R writes it, but with more digits where 15 would not give the
/// same number back, so that a formula survives being written and read again.
pub(crate) fn literal(value: f64) -> String {
    let text = r_number(value);
    if text.parse() == Ok(value) { text } else { with_digits(value, &format!("{value:e}")) }
}

/// A number as the name of a factor's level. Whole numbers are written out in full, as R does
/// for the integer columns that `read.csv` makes of them: a postcode is no `1e+05`.
pub(crate) fn level_name(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        format!("{}", value as i64)
    } else {
        r_number(value)
    }
}

/// The finite number that a word spells, if it spells one.
pub(crate) fn parse_number(word: &str) -> Option<f64> {
    word.trim().parse().ok().filter(|v: &f64| v.is_finite())
}

/// Lays out the digits of `scientific` (Rust's `{:e}`) by R's rule of the shorter width.
fn with_digits(value: f64, scientific: &str) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "NaN".into()
        } else if value > 0.0 {
            "Inf".into()
        } else {
            "-Inf".into()
        };
    }
    if value == 0.0 {
        return "0".into();
    }
    let (mantissa, exponent) = scientific.split_once('e').expect("{:e} writes an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is a number");
    let mantissa = mantissa.trim_start_matches('-').replace('.', "");
    let digits = mantissa.trim_end_matches('0');
    let count = digits.len() as i32;
    let sign = if value < 0.0 { "-" } else { "" };

    let decimals = (count - exponent - 1).max(0);
    let fixed_width = exponent.max(0) + 1 + if decimals > 0 { decimals + 1 } else { 0 };
    let exponent_width = if exponent.abs() >= 100 { 5 } else { 4 };
    let scientific_width = count + i32::from(count > 1) + exponent_width;
    if fixed_width > scientific_width {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let minus = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{first}{point}{rest}e{minus}{:02}", exponent.abs());
    }
    if exponent < 0 {
        let zeros = "0".repeat((-exponent - 1) as usize);
        return format!("{sign}0.{zeros}{digits}");
    }
    let whole = (exponent + 1) as usize;
    if digits.len() <= whole {
        format!("{sign}{digits}{}", "0".repeat(whole - digits.len()))
    } else {
        format!("{sign}{}.{}", &digits[..whole], &digits[whole..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_in_r() {
        // The right-hand sides are what `as.character` of R 4.2 gives.
        let cases = [
            (100000.0, "1e+05"),
            (123456.0, "123456"),
            (1e15, "1e+15"),
            (1e-4, "1e-04"),
            (0.1 + 0.2, "0.3"),
            (1.0 / 3.0, "0.333333333333333"),
            (100000.1, "100000.1"),
            (1234567.891, "1234567.891"),
            (-0.00001234, "-1.234e-05"),
            (1e22, "1e+22"),
            (2147483648.0, "2147483648"),
            (-0.5, "-0.5"),
            (100.0, "100"),
            (1e-300, "1e-300"),
            (0.0, "0"),
        ];
        for (value, text) in cases {
            assert_eq!(r_number(value), text);
        }
    }

    #[test]
    fn literals_survive_and_levels_are_written_out() {
        assert_eq!(literal(0.1), "0.1");
        let awkward = 0.1 + 0.2;
        assert_eq!(literal(awkward).parse(), Ok(awkward));
        assert_eq!(level_name(100000.0), "100000");
        assert_eq!(level_name(-0.0), "0");
        assert_eq!(level_name(0.5), "0.5");
        assert_eq!(parse_number(" 1e3 "), Some(1000.0));
        assert_eq!(parse_number("inf"), None);
        assert_eq!(parse_number("12a"), None);
    }
}
