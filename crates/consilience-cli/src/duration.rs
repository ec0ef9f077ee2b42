//! Spans of time as they are typed: `30s`, `5m`, `2h`, `3d`; a bare number is of seconds.

use std::time::Duration;

/// Longer than anybody waits. What is longer could not be added to a moment on every system.
const LONGEST: f64 = 10.0 * 365.0 * 86_400.0;

/// Reads a span of time.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "a span of time is needed, such as 30s, 5m, 2h or 3d".to_string();
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(wrong()),
    };
    let seconds = digits.trim().parse::<f64>().map_err(|_| wrong())? * unit;
    if !(seconds > 0.0 && seconds <= LONGEST) {
        return Err("a span of time is more than 0 and at most ten years".into());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// A span of time in words that [`duration`] reads.
pub fn shown(span: Duration) -> String {
    let seconds = span.as_secs_f64();
    for (unit, name) in [(86_400.0, "d"), (3600.0, "h"), (60.0, "m")] {
        if seconds >= unit && seconds % unit == 0.0 {
            return format!("{}{name}", seconds / unit);
        }
    }
    format!("{seconds}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time() {
        for (text, seconds, again) in [
            ("30", 30.0, "30s"),
            ("0.2s", 0.2, "0.2s"),
            (" 5 m", 300.0, "5m"),
            ("2h", 7200.0, "2h"),
            ("90m", 5400.0, "90m"),
            ("3d", 259_200.0, "3d"),
        ] {
            let span = duration(text).unwrap();
            assert_eq!((span.as_secs_f64(), shown(span).as_str()), (seconds, again), "{text}");
        }
        for wrong in ["", "s", "-1", "0", "5 minutes", "nan", "inf", "1e99d", "٣s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
