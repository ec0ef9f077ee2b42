//! Outcomes of two numbers a row: successes and trials, or the bounds of a time.

use super::expr::{Expr, Pairing};
use super::number::r_number;
use super::table::Table;
use crate::{Error, Result};

/// From here on whole numbers are rounded.
const TOO_LARGE: f64 = 9_007_199_254_740_992.0;

impl Expr {
    /// Of `cbind()` and `trials()` successes and trials; of `Surv()` the bounds between which a time is, equal where it
    /// is known, 0 and infinite where there is none. What cannot be is an error with its place, under the name `text`.
    pub(crate) fn pairs(&self, table: &Table, text: &str) -> Result<(Vec<f64>, Vec<f64>)> {
        let Expr::Pairing(joint, first, second) = self else {
            return Err(Error::input(format!("{self} has one number a row, and two are needed")));
        };
        let left = first.numbers(table)?;
        let (right, event) = match (joint, &**second) {
            (Pairing::Interval, Expr::Pairing(Pairing::With, time, event)) => {
                (time.numbers(table)?, event.numbers(table)?)
            }
            (Pairing::Right | Pairing::Left, event) => (left.clone(), event.numbers(table)?),
            (_, other) => (other.numbers(table)?, Vec::new()),
        };
        let (mut firsts, mut seconds) = (Vec::new(), Vec::new());
        for row in 0..table.rows() {
            let event = event.get(row).copied().unwrap_or(0.0);
            let pair = pair(*joint, left[row], right[row], event)
                .map_err(|message| Error::input_at(table.place(row, Some(text)), message))?;
            firsts.push(pair.0);
            seconds.push(pair.1);
        }
        Ok((firsts, seconds))
    }
}

impl Expr {
    /// A time per row that is about as long as what `Surv()` says of it, the same however it is spelled: the middle of
    /// its bounds, or the one that there is.
    pub(crate) fn typical_times(&self, table: &Table) -> Result<Vec<f64>> {
        let (from, to) = self.pairs(table, &self.to_string())?;
        let typical = |(from, to): (f64, f64)| match (from, to) {
            (0.0, to) => to,
            (from, f64::INFINITY) => from,
            (from, to) => from + 0.5 * (to - from),
        };
        Ok(from.into_iter().zip(to).map(typical).collect())
    }
}

/// One row's two numbers, or what is wrong with them.
fn pair(joint: Pairing, a: f64, b: f64, event: f64) -> std::result::Result<(f64, f64), String> {
    match joint {
        Pairing::Counts | Pairing::Trials => counts(joint, a, b),
        Pairing::Interval2 if a > b => Err(format!(
            "the time is between {} and {}, of which the first is the larger; mend them, or swap the columns",
            r_number(a),
            r_number(b)
        )),
        Pairing::Interval2 if a < 0.0 || b <= 0.0 => Err(not_positive(a.min(b))),
        Pairing::Interval2 if a == 0.0 && b == f64::INFINITY => {
            Err("the time is above 0 and has no upper bound, which says nothing; leave the row out"
                .to_string())
        }
        Pairing::Interval2 => Ok((a, b)),
        Pairing::Interval if event == 3.0 => pair(Pairing::Interval2, a, b, 0.0),
        Pairing::Interval => times(a, event, &[0.0, 1.0, 2.0, 3.0]),
        Pairing::Left if event == 0.0 => times(a, 2.0, &[2.0]),
        _ => times(a, event, &[0.0, 1.0]),
    }
}

fn counts(joint: Pairing, successes: f64, other: f64) -> std::result::Result<(f64, f64), String> {
    let other_name = if joint == Pairing::Counts { "failures" } else { "trials" };
    for (name, value) in [("successes", successes), (other_name, other)] {
        if value < 0.0 || value.fract() != 0.0 || value >= TOO_LARGE {
            return Err(format!(
                "the number of {name} is {}, and must be a whole number, 0 or more; mend it, or write shares as counts, as in cbind(share * n, (1 - share) * n)",
                r_number(value)
            ));
        }
    }
    if joint == Pairing::Counts {
        return Ok((successes, successes + other));
    }
    if successes > other {
        return Err(format!(
            "{} successes in {} trials are too many; mend them, or, if the second column counts failures, write cbind(successes, failures)",
            r_number(successes),
            r_number(other)
        ));
    }
    Ok((successes, other))
}

fn not_positive(time: f64) -> String {
    format!(
        "the time is {}, and times must be above 0; leave such rows out, or count in a smaller unit",
        r_number(time)
    )
}

/// The bounds of a time: 0 exceeded, 1 known, 2 not reached.
fn times(time: f64, event: f64, known: &[f64]) -> std::result::Result<(f64, f64), String> {
    if !known.contains(&event) {
        let advice = if known.len() > 2 {
            "Surv(…, type = \"interval\") knows 0 (exceeded), 1 (event), 2 (not reached) and 3 (between both times)"
        } else {
            "it must be 1 (event) or 0 (censored), or TRUE or FALSE; write what counts as an event, as in Surv(time, status == 2)"
        };
        return Err(format!("the event is {}; {advice}", r_number(event)));
    }
    match event {
        _ if time <= 0.0 => Err(not_positive(time)),
        0.0 => Ok((time, f64::INFINITY)),
        1.0 => Ok((time, time)),
        _ => Ok((0.0, time)),
    }
}
