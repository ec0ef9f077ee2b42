//! Splines: the columns of R's `splines::bs()` and `ns()`, over knots that all shards share.
//!
//! A B-spline of degree d over interior knots is the polynomial spline that they part, spanned by functions that
//! live on d + 2 knots each. A natural one is cubic with second derivative 0 at the boundary and straight
//! beyond it: the B-splines turned by the two conditions' Householder reflections, as R does it, so that coefficients
//! mean the same.

use serde::{Deserialize, Serialize};

/// The most interior knots, the highest degree and the most columns.
pub(crate) const MAX_KNOTS: usize = 100;
pub(crate) const MAX_DEGREE: u32 = 10;

/// What a formula says of a spline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SplineSpec {
    /// `ns()` and not `bs()`.
    pub natural: bool,
    /// The degree of the pieces: 3 of a natural one.
    pub degree: u32,
    /// How many columns are wanted: interior knots at quantiles follow from it.
    pub df: Option<u32>,
    /// The interior knots, if they are named.
    pub knots: Option<Vec<f64>>,
    /// The boundary knots, if they are named.
    pub boundary: Option<[f64; 2]>,
    /// Whether the constant is among the functions.
    pub intercept: bool,
}

impl SplineSpec {
    /// The function's name.
    pub(crate) fn name(&self) -> &'static str {
        if self.natural { "ns" } else { "bs" }
    }

    /// How many interior knots there are.
    pub(crate) fn interior(&self) -> usize {
        match (&self.knots, self.df) {
            (Some(knots), _) => knots.len(),
            (None, Some(df)) => (df as usize).saturating_sub(self.least()),
            (None, None) => 0,
        }
    }

    /// How many columns there are without any interior knot.
    pub(crate) fn least(&self) -> usize {
        let constant = usize::from(self.intercept);
        if self.natural { 1 + constant } else { self.degree as usize + constant }
    }

    /// How many columns there are.
    pub(crate) fn columns(&self) -> usize {
        self.least() + self.interior()
    }
}

/// A spline's functions, with all knots settled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SplineBasis {
    natural: bool,
    degree: u32,
    intercept: bool,
    boundary: [f64; 2],
    knots: Vec<f64>,
}

impl SplineBasis {
    /// The functions over these knots.
    pub(super) fn new(spec: &SplineSpec, boundary: [f64; 2], knots: Vec<f64>) -> SplineBasis {
        SplineBasis {
            natural: spec.natural,
            degree: spec.degree,
            intercept: spec.intercept,
            boundary,
            knots,
        }
    }

    /// The interior knots.
    pub(crate) fn knots(&self) -> &[f64] {
        &self.knots
    }

    /// The boundary knots.
    pub(crate) fn boundary(&self) -> [f64; 2] {
        self.boundary
    }

    /// How many functions there are.
    pub fn width(&self) -> usize {
        let constant = usize::from(self.intercept);
        let least = if self.natural { 1 } else { self.degree as usize };
        least + constant + self.knots.len()
    }

    /// Whether these are knots that functions can be made of. What comes from a file may hold anything.
    pub(crate) fn is_sound(&self) -> bool {
        let [low, high] = self.boundary;
        let within = |knot: &f64| knot.is_finite() && low <= *knot && *knot <= high;
        low.is_finite()
            && high.is_finite()
            && low < high
            && (high - low).is_finite()
            && self.knots.len() <= MAX_KNOTS
            && (1..=MAX_DEGREE).contains(&self.degree)
            && (!self.natural || self.degree == 3)
            && self.knots.iter().all(within)
            && self.knots.windows(2).all(|pair| pair[0] <= pair[1])
            && self.width() > 0
    }

    /// The functions at these values, one column each.
    pub(super) fn columns(&self, values: &[f64]) -> Vec<Vec<f64>> {
        let order = self.degree as usize + 1;
        let all = self.all_knots(order);
        let turn = self.natural.then(|| Turn::new(&all, self.boundary, self.intercept));
        let first = usize::from(!self.intercept);
        let mut columns = vec![Vec::with_capacity(values.len()); self.width()];
        for &x in values {
            let mut row = self.row(&all, order, x);
            row.drain(..first);
            if let Some(turn) = &turn {
                turn.apply(&mut row);
                row.drain(..2);
            }
            columns.iter_mut().zip(&row).for_each(|(column, value)| column.push(*value));
        }
        columns
    }

    /// All B-splines at a value.
    fn row(&self, all: &[f64], order: usize, x: f64) -> Vec<f64> {
        let [low, high] = self.boundary;
        if !self.natural || (low..=high).contains(&x) {
            return b_splines(all, order, x, 0);
        }
        // Beyond the boundary a natural spline is straight.
        let end = if x < low { low } else { high };
        let slopes = b_splines(all, order, end, 1);
        let values = b_splines(all, order, end, 0);
        values.iter().zip(slopes).map(|(value, slope)| value + (x - end) * slope).collect()
    }

    fn all_knots(&self, order: usize) -> Vec<f64> {
        let [low, high] = self.boundary;
        [vec![low; order], self.knots.clone(), vec![high; order]].concat()
    }
}

/// All B-splines of an order over knots, or their derivatives, at a value; outside of the knots the pieces at the
/// ends go on.
fn b_splines(knots: &[f64], order: usize, x: f64, derivative: usize) -> Vec<f64> {
    let count = knots.len() - order;
    // The span with t[i] ≤ x < t[i + 1], one that has a length.
    let upper = knots.partition_point(|knot| *knot <= x);
    let mut span = upper.saturating_sub(1).clamp(order - 1, count - 1);
    while span > order - 1 && knots[span] == knots[span + 1] {
        span -= 1;
    }
    let ratio = |top: f64, below: f64| if below == 0.0 { 0.0 } else { top / below };
    // From order 1 up (Cox and de Boor).
    let lower = order - derivative;
    let mut values = vec![0.0; knots.len() - 1];
    values[span] = 1.0;
    for k in 2..=lower {
        for i in 0..knots.len() - k {
            values[i] = ratio(x - knots[i], knots[i + k - 1] - knots[i]) * values[i]
                + ratio(knots[i + k] - x, knots[i + k] - knots[i + 1]) * values[i + 1];
        }
    }
    // Derivatives are differences of functions of the order below.
    for k in lower + 1..=order {
        for i in 0..knots.len() - k {
            let falls = ratio(values[i + 1], knots[i + k] - knots[i + 1]);
            values[i] = (k - 1) as f64 * (ratio(values[i], knots[i + k - 1] - knots[i]) - falls);
        }
    }
    values.truncate(count);
    values
}

/// The two Householder reflections after which all functions but the first two are straight at the boundary.
struct Turn {
    /// Each reflection's vector, whose first entries are 0, and the entry that it divides by.
    reflections: Vec<(Vec<f64>, f64)>,
}

impl Turn {
    fn new(knots: &[f64], boundary: [f64; 2], intercept: bool) -> Turn {
        let mut columns = boundary.map(|end| {
            let mut bends = b_splines(knots, 4, end, 2);
            bends.drain(..usize::from(!intercept));
            bends
        });
        let mut reflections = Vec::new();
        for l in 0..2 {
            let (done, rest) = columns.split_at_mut(l + 1);
            let vector = &mut done[l];
            let length = vector[l..].iter().map(|v| v * v).sum::<f64>().sqrt();
            if length == 0.0 {
                continue;
            }
            let length = if vector[l] < 0.0 { -length } else { length };
            vector[..l].fill(0.0);
            vector[l..].iter_mut().for_each(|v| *v /= length);
            vector[l] += 1.0;
            let pivot = vector[l];
            for other in rest {
                reflect(vector, pivot, other);
            }
            reflections.push((vector.clone(), pivot));
        }
        Turn { reflections }
    }

    fn apply(&self, row: &mut [f64]) {
        for (vector, pivot) in &self.reflections {
            reflect(vector, *pivot, row);
        }
    }
}

fn reflect(vector: &[f64], pivot: f64, row: &mut [f64]) {
    let product: f64 = vector.iter().zip(row.iter()).map(|(v, x)| v * x).sum();
    let by = -product / pivot;
    row.iter_mut().zip(vector).for_each(|(x, v)| *x += by * v);
}

/// The quantiles at 1/(k + 1), 2/(k + 1), … of values with their counts, ascending: R's type 7.
pub(super) fn quantiles(values: &[(f64, f64)], k: usize) -> Vec<f64> {
    let total: f64 = values.iter().map(|(_, count)| count).sum();
    // The value whose place, counted from 0, this is.
    let at = |place: f64| {
        let mut before = 0.0;
        for (value, count) in values {
            before += count;
            if place < before {
                return *value;
            }
        }
        values.last().map_or(0.0, |(value, _)| *value)
    };
    let quantile = |i: usize| {
        let place = (total - 1.0) * (i as f64 / (k + 1) as f64);
        // Rounding must not turn a whole place into the one before.
        let floor = (place + 4.0 * f64::EPSILON * place).floor();
        let (low, high) = (at(floor), at(floor + 1.0));
        let part = (place - floor).max(0.0);
        if part < 1e-12 { low } else { low + part * (high - low) }
    };
    (1..=k).map(quantile).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(natural: bool, knots: &[f64], intercept: bool) -> SplineSpec {
        SplineSpec {
            natural,
            degree: 3,
            df: None,
            knots: Some(knots.to_vec()),
            boundary: None,
            intercept,
        }
    }

    #[test]
    fn b_splines_sum_to_1_and_derivatives_are_those_of_differences() {
        let basis =
            SplineBasis::new(&spec(false, &[0.3, 0.5, 0.5], true), [0.0, 1.0], vec![0.3, 0.5, 0.5]);
        for x in [0.0, 0.1, 0.3, 0.4999, 0.5, 0.77, 1.0] {
            let sum: f64 = basis.columns(&[x]).iter().map(|c| c[0]).sum();
            assert!((sum - 1.0).abs() < 1e-14, "{x}: {sum}");
        }
        let knots = [0.0, 0.0, 0.0, 0.0, 0.2, 0.6, 1.0, 1.0, 1.0, 1.0];
        for x in [0.1, 0.33, 0.9] {
            let step = 1e-5;
            let (up, down) = (b_splines(&knots, 4, x + step, 0), b_splines(&knots, 4, x - step, 0));
            for (i, slope) in b_splines(&knots, 4, x, 1).into_iter().enumerate() {
                // The third derivative is up to a thousand.
                assert!((slope - (up[i] - down[i]) / (2.0 * step)).abs() < 1e-7);
            }
            let (up, down) = (b_splines(&knots, 4, x + step, 1), b_splines(&knots, 4, x - step, 1));
            for (i, bend) in b_splines(&knots, 4, x, 2).into_iter().enumerate() {
                assert!((bend - (up[i] - down[i]) / (2.0 * step)).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn natural_splines_are_straight_at_the_ends_and_beyond() {
        let basis = SplineBasis::new(&spec(true, &[2.0, 5.0], false), [1.0, 9.0], vec![2.0, 5.0]);
        assert_eq!(basis.width(), 3);
        for end in [1.0, 9.0] {
            let h = 1e-3;
            let inside = if end == 1.0 { 1.0 } else { -1.0 };
            let columns =
                basis.columns(&[end, end - inside * h, end - inside * 2.0 * h, end + inside * h]);
            for c in columns {
                // Beyond the end the second difference is 0; across it nearly so.
                assert!((c[0] - 2.0 * c[1] + c[2]).abs() < 1e-13);
                assert!((c[3] - 2.0 * c[0] + c[1]).abs() < 1e-8);
            }
        }
    }

    #[test]
    fn quantiles_are_r_s() {
        // quantile(c(1, 2, 4, 8, 16), 1:3/4) is 2, 4, 8; quantile(c(1, 2, 4, 8), 1:3/4) is 1.75, 3, 5.
        let once = |values: &[f64]| values.iter().map(|v| (*v, 1.0)).collect::<Vec<_>>();
        assert_eq!(quantiles(&once(&[1.0, 2.0, 4.0, 8.0, 16.0]), 3), [2.0, 4.0, 8.0]);
        assert_eq!(quantiles(&once(&[1.0, 2.0, 4.0, 8.0]), 3), [1.75, 3.0, 5.0]);
        // A count is as good as so many rows.
        assert_eq!(quantiles(&[(1.0, 2.0), (3.0, 1.0), (7.0, 2.0)], 1), [3.0]);
    }
}
