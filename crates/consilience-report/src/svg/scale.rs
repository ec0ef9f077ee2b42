//! From data to pixels, and where the ticks stand.

use crate::text::{fixed, significant, width};

/// Values beyond this are drawn at it, so that no difference of two overflows.
const MOST: f64 = 1e300;

/// How values are spread over pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Spread {
    /// Evenly.
    Linear,
    /// By their logarithm; values that are not positive stand at the lower end.
    Log,
    /// Evenly up to this size, by the logarithm beyond it, on both sides of 0.
    SymLog(f64),
}

/// A scale: data from `low` to `high` on pixels from `start` to `end`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    spread: Spread,
    low: f64,
    high: f64,
    start: f64,
    end: f64,
}

/// A tick: where, and what it says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub value: f64,
    pub label: String,
}

/// The least and the greatest finite value.
pub(crate) fn extent(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let mut range: Option<(f64, f64)> = None;
    for v in values.into_iter().filter(|v| v.is_finite()) {
        let v = v.clamp(-MOST, MOST);
        range = Some(range.map_or((v, v), |(l, h)| (l.min(v), h.max(v))));
    }
    range
}

impl Scale {
    /// Evenly spread, with a little room at the ends and never empty.
    pub fn linear(range: Option<(f64, f64)>, start: f64, end: f64) -> Scale {
        let (low, high) = range.unwrap_or((0.0, 1.0));
        let (low, high) = (low.clamp(-MOST, MOST), high.clamp(-MOST, MOST));
        let least = low.abs().max(high.abs()) * 1e-9;
        let room = ((high - low) * 0.04).max(least);
        let room = if room == 0.0 { 1.0 } else { room };
        Scale { spread: Spread::Linear, low: low - room, high: high + room, start, end }
    }

    /// From exactly `low` to exactly `high`.
    pub fn exactly(low: f64, high: f64, start: f64, end: f64) -> Scale {
        Scale { spread: Spread::Linear, low, high, start, end }
    }

    /// By logarithms, over the positive values.
    pub fn log(values: impl IntoIterator<Item = f64>, start: f64, end: f64) -> Scale {
        let (low, high) = extent(values.into_iter().filter(|v| *v > 0.0)).unwrap_or((1.0, 10.0));
        let low = low.max(1e-300);
        let high = high.max(low);
        let room = ((high / low).ln() * 0.04).max(0.2).exp();
        Scale { spread: Spread::Log, low: low / room, high: (high * room).min(MOST), start, end }
    }

    /// Evenly near 0, by logarithms further out.
    pub fn symlog(range: Option<(f64, f64)>, linear: f64, start: f64, end: f64) -> Scale {
        let (low, high) = range.unwrap_or((-1.0, 1.0));
        let linear = linear.clamp(1e-12, 1e12);
        let mut scale = Scale { spread: Spread::SymLog(linear), low: 0.0, high: 1.0, start, end };
        let (a, b) = (scale.bend(low.min(0.0)), scale.bend(high.max(0.0)));
        let room = ((b - a) * 0.05).max(0.2);
        scale.low = scale.unbend(a - room);
        scale.high = scale.unbend(b + room);
        scale
    }

    fn bend(&self, value: f64) -> f64 {
        let value = value.clamp(-MOST, MOST);
        match self.spread {
            Spread::Linear => value,
            Spread::Log => value.max(1e-300).ln(),
            Spread::SymLog(linear) => value.signum() * (value.abs() / linear).ln_1p(),
        }
    }

    fn unbend(&self, bent: f64) -> f64 {
        match self.spread {
            Spread::Linear => bent,
            Spread::Log => bent.exp(),
            Spread::SymLog(linear) => bent.signum() * bent.abs().exp_m1() * linear,
        }
    }

    /// Where a value stands, within the scale's pixels.
    pub fn at(&self, value: f64) -> f64 {
        let (low, high) = (self.bend(self.low), self.bend(self.high));
        let share = (self.bend(value) - low) / (high - low);
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        self.start + share * (self.end - self.start)
    }

    /// Whether a value is on the scale.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// About this many round values.
    pub fn ticks(&self, count: usize) -> Vec<Tick> {
        match self.spread {
            Spread::Linear => linear_ticks(self.low, self.high, count),
            Spread::Log => log_ticks(self.low, self.high, count),
            Spread::SymLog(linear) => self.symlog_ticks(linear, count),
        }
    }

    fn symlog_ticks(&self, linear: f64, count: usize) -> Vec<Tick> {
        let most = self.low.abs().max(self.high.abs());
        let first = power(linear.log10().ceil());
        let last = power(most.log10().floor());
        let each = (last - first).max(0) as usize / count.max(1) + 1;
        let mut ticks = vec![Tick { value: 0.0, label: "0".into() }];
        for exponent in (first..=last).step_by(each) {
            let value = 10f64.powi(exponent);
            for value in [-value, value] {
                if self.holds(value) {
                    ticks.push(Tick { value, label: short(value) });
                }
            }
        }
        ticks.sort_by(|a, b| a.value.total_cmp(&b.value));
        ticks
    }

    /// Ticks on a scale from left to right, of which no two labels touch, in a picture so wide. The most telling ones stay: every
    /// second, third, …
    pub fn spaced(&self, ticks: Vec<Tick>, size: f64, picture: f64) -> Vec<Tick> {
        for each in 1..=ticks.len().max(1) {
            let kept: Vec<&Tick> = ticks.iter().step_by(each).collect();
            let apart = kept.windows(2).all(|w| {
                let gap =
                    (self.label_at(w[1], size, picture) - self.label_at(w[0], size, picture)).abs();
                gap >= (width(&w[0].label, size) + width(&w[1].label, size)) / 2.0 + 8.0
            });
            if apart {
                return kept.into_iter().cloned().collect();
            }
        }
        Vec::new()
    }

    /// The middle of a tick's label: at the tick, but the outermost ones stay within the picture.
    pub fn label_at(&self, tick: &Tick, size: f64, picture: f64) -> f64 {
        let half = width(&tick.label, size) / 2.0;
        self.at(tick.value).clamp(half, (picture - half).max(half))
    }
}

/// A power of ten that a double can hold.
fn power(exponent: f64) -> i32 {
    exponent.clamp(-307.0, 300.0) as i32
}

fn short(value: f64) -> String {
    if value.abs() >= 1e6 || value.abs() < 1e-4 {
        format!("{value:.0e}").replace('-', "−")
    } else {
        significant(value, 1)
    }
}

/// A step of 1, 2 or 5 times a power of ten.
fn step(span: f64, count: usize) -> f64 {
    let rough = span / count.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let rounded = match rough / power {
        ..1.5 => 1.0,
        ..3.5 => 2.0,
        ..7.5 => 5.0,
        _ => 10.0,
    };
    rounded * power
}

fn linear_ticks(low: f64, high: f64, count: usize) -> Vec<Tick> {
    let step = step(high - low, count);
    if !(step.is_finite() && step > 0.0) {
        return Vec::new();
    }
    let decimals = (-step.log10().floor()).clamp(0.0, 15.0) as usize;
    let large = low.abs().max(high.abs()) >= 1e9 || step < 1e-9;
    // What is at the end but for rounding is in.
    let first = (low / step - 1e-6).ceil();
    (0..=3 * count)
        .map(|i| (first + i as f64) * step)
        .take_while(|v| *v <= high + step * 1e-6)
        .map(|value| {
            let value = if value.abs() < step * 1e-6 { 0.0 } else { value };
            let label = if value == 0.0 {
                "0".into()
            } else if large {
                format!("{value:.2e}").replace('-', "−")
            } else {
                fixed(value, decimals)
            };
            Tick { value, label }
        })
        .collect()
}

fn log_ticks(low: f64, high: f64, count: usize) -> Vec<Tick> {
    let (first, last) = (power(low.log10().ceil()), power(high.log10().floor()));
    let decades = (last - first + 1).max(0) as usize;
    let tick = |value: f64| Tick { value, label: short(value) };
    if decades >= 3 {
        let each = decades.div_ceil(count.max(2));
        return (first..=last).step_by(each).map(|p| tick(10f64.powi(p))).collect();
    }
    let mut ticks = Vec::new();
    for exponent in first - 1..=last {
        for factor in [1.0, 2.0, 5.0] {
            let value = factor * 10f64.powi(exponent);
            if (low..=high).contains(&value) {
                ticks.push(tick(value));
            }
        }
    }
    if ticks.is_empty() { vec![Tick { value: low, label: significant(low, 3) }] } else { ticks }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|t| t.label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_within() {
        let scale = Scale::exactly(0.0, 1.0, 0.0, 100.0);
        assert_eq!(labels(&scale.ticks(5)), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        let scale = Scale::exactly(-147546.43, -147546.40, 0.0, 100.0);
        assert_eq!(
            labels(&scale.ticks(3)),
            ["−147,546.43", "−147,546.42", "−147,546.41", "−147,546.40"]
        );
        let scale = Scale::log([1.0, 1000.0], 0.0, 100.0);
        assert_eq!(labels(&scale.ticks(5)), ["1", "10", "100", "1,000"]);
        let scale = Scale::symlog(Some((-30.0, 500.0)), 0.1, 0.0, 100.0);
        let ticks = scale.ticks(8);
        assert!(labels(&ticks).contains(&"0") && labels(&ticks).contains(&"10"), "{ticks:?}");
    }

    #[test]
    fn values_go_from_end_to_end() {
        let scale = Scale::exactly(0.0, 10.0, 100.0, 300.0);
        assert_eq!((scale.at(0.0), scale.at(5.0), scale.at(10.0)), (100.0, 200.0, 300.0));
        assert_eq!(
            (scale.at(-5.0), scale.at(1e308)),
            (100.0, 300.0),
            "what is outside stays at the edge"
        );
        let log = Scale::log([1.0, 100.0], 0.0, 100.0);
        assert!((log.at(10.0) - 50.0).abs() < 1e-9);
        assert_eq!(log.at(-1.0), 0.0);
        let symlog = Scale::symlog(Some((-100.0, 100.0)), 1.0, 0.0, 100.0);
        assert!((symlog.at(0.0) - 50.0).abs() < 1e-9 && symlog.at(10.0) > 60.0);
    }

    #[test]
    fn no_range_is_too_odd() {
        let ranges = [
            None,
            Some((0.0, 0.0)),
            Some((1e308, 1e308)),
            Some((-1e308, 1e308)),
            Some((5e-324, 5e-324)),
            Some((-147546.0, -147546.0)),
            Some((1e-320, 1.0)),
        ];
        for range in ranges {
            let (a, b) = range.unwrap_or((1.0, 2.0));
            for scale in [
                Scale::linear(range, 10.0, 90.0),
                Scale::log([a, b], 10.0, 90.0),
                Scale::symlog(range, 0.1, 10.0, 90.0),
            ] {
                let ticks = scale.ticks(5);
                assert!(ticks.len() <= 40, "{range:?}: {ticks:?}");
                for value in
                    ticks.iter().map(|t| t.value).chain([a, b, 0.0, f64::NAN, f64::INFINITY])
                {
                    let at = scale.at(value);
                    assert!((10.0..=90.0).contains(&at), "{range:?}: {value} at {at}");
                }
            }
        }
    }

    #[test]
    fn labels_keep_their_distance() {
        let scale = Scale::exactly(0.0, 100.0, 0.0, 120.0);
        let ticks: Vec<Tick> =
            (0..=100).map(|i| Tick { value: f64::from(i), label: i.to_string() }).collect();
        let kept = scale.spaced(ticks, 12.0, 120.0);
        assert!(kept.len() > 2 && kept.len() < 10, "{kept:?}");
    }
}
