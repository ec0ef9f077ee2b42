//! Times of which a bound is missing: on that side there is none, and the row counts.

use super::outline::Outline;
use crate::data::{Column, Expr, Pairing, Table};
use crate::study::SplitBy;
use crate::{Error, Result};

/// The parts of an outcome of which one may be missing.
#[derive(Debug, Clone)]
pub(super) enum OpenTimes {
    /// Of `Surv(from, to, type = "interval2")`.
    Bounds(OpenPart, OpenPart),
    /// The times of `Surv(time, time2, event, type = "interval")`, and the event: only 3 needs the second.
    Second(OpenPart, OpenPart, OpenPart),
}

/// A part of an outcome.
#[derive(Debug, Clone)]
pub(super) struct OpenPart {
    columns: Vec<String>,
    /// Whether it is a column, of which the study makes nothing else.
    alone: bool,
}

impl OpenPart {
    fn of(expr: &Expr, outline: &Outline) -> OpenPart {
        let columns = expr.columns();
        let data = &outline.study;
        let by = match &data.split.by {
            SplitBy::Column(name) => Some(name),
            _ => None,
        };
        let elsewhere =
            |name: &String| data.data.weights.as_ref() == Some(name) || by == Some(name);
        // Formulas have it nowhere else: all have this left side, and the right one cannot have it.
        let alone = matches!(expr.bare(), Expr::Column(_)) && !columns.iter().any(elsewhere);
        OpenPart { columns, alone }
    }

    /// The rows in which a value is missing.
    fn missing(&self, block: &Table) -> Result<Vec<bool>> {
        let mut missing = vec![false; block.rows()];
        for name in &self.columns {
            let column = block.column(name)?;
            if column.any_missing() {
                (0..block.rows()).for_each(|row| missing[row] |= column.is_missing(row));
            }
        }
        Ok(missing)
    }

    /// The rows in which it is a column of numbers that is 0.
    fn zeros(&self, block: &Table) -> Result<Vec<bool>> {
        let numbers = match self.alone {
            true => block.column(&self.columns[0])?.numbers(),
            false => None,
        };
        let none = || vec![false; block.rows()];
        Ok(numbers.map_or_else(none, |values| values.iter().map(|x| *x == 0.0).collect()))
    }

    /// Puts a number into these rows, in which a value is missing.
    fn fill(&self, block: &mut Table, rows: &[usize], value: f64) -> Result<()> {
        let Some(&first) = rows.first() else { return Ok(()) };
        let name = &self.columns[0];
        if self.alone && block.column(name)?.numbers().is_some() {
            block.fill(name, rows, value);
            return Ok(());
        }
        let message = "a bound of the time is missing, which is understood only where the bounds are columns of numbers that the study uses for nothing else; make such columns, or write type = \"interval\" with a column that says what is known (0 exceeded, 1 event, 2 not reached, 3 between both times)";
        Err(Error::input_at(block.place(first, Some(name)), message))
    }
}

impl OpenTimes {
    /// Those of a study, all models of which have the same outcome.
    pub(super) fn of(outline: &Outline) -> Option<OpenTimes> {
        let part = |expr: &Expr| OpenPart::of(expr, outline);
        let Expr::Pairing(joint, first, second) = &outline.terms.first()?.response else {
            return None;
        };
        match (joint, &**second) {
            (Pairing::Interval2, to) => Some(OpenTimes::Bounds(part(first), part(to))),
            // An event that is the same in all rows says of none that its second time does not count.
            (Pairing::Interval, Expr::Pairing(Pairing::With, time2, event))
                if !event.columns().is_empty() =>
            {
                Some(OpenTimes::Second(part(first), part(time2), part(event)))
            }
            _ => None,
        }
    }

    /// Writes the bounds that there are not as what the likelihood takes for none.
    pub(super) fn fill(&self, block: &mut Table) -> Result<()> {
        match self {
            OpenTimes::Bounds(from, to) => {
                let (no_from, no_to) = (from.missing(block)?, to.missing(block)?);
                let open = |row: &usize| no_from[*row] && !no_to[*row];
                let rows: Vec<usize> = (0..block.rows()).filter(open).collect();
                from.fill(block, &rows, 0.0)?;
                // Above 0 all times are: such a row says nothing, as one without both bounds.
                let at_zero = from.zeros(block)?;
                let open = |row: &usize| no_to[*row] && !no_from[*row] && !at_zero[*row];
                let rows: Vec<usize> = (0..block.rows()).filter(open).collect();
                to.fill(block, &rows, f64::INFINITY)
            }
            OpenTimes::Second(time, time2, event) => {
                let (no_time, no_event) = (time2.missing(block)?, event.missing(block)?);
                let between = match block.column(&event.columns[0])? {
                    // Whether it is 3 is seen in a column of numbers only; other rows are refused, if there are any.
                    column @ (Column::Number(_) | Column::Single(_)) if event.alone => {
                        column.numbers().unwrap_or_default().iter().map(|e| *e == 3.0).collect()
                    }
                    _ => vec![false; block.rows()],
                };
                // Without its first time a row is left out; and a column may be both times.
                let dropped = time.missing(block)?;
                let open = |row: &usize| {
                    no_time[*row] && !no_event[*row] && !between[*row] && !dropped[*row]
                };
                let rows: Vec<usize> = (0..block.rows()).filter(open).collect();
                let readable = OpenPart { alone: time2.alone && event.alone, ..time2.clone() };
                readable.fill(block, &rows, 0.0)
            }
        }
    }
}
