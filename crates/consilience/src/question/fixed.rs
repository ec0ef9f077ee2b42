//! Numbers with a fixed point, in which answers are added up without a rounding error.
//!
//! Sums that hide their terms (`run/masks.rs`) are sums of whole numbers modulo 2¹²⁸. So every number of an answer
//! that may be added up is a multiple of 2⁻⁶⁴ of a unit, in every engine: then the sum of doubles, rounded once
//! ([`ExactSum`](crate::math::ExactSum)), and the sum of whole numbers have the same bits. The unit of a log density is
//! 1, that of a derivative by a parameter 1 over the power of two at its prior's spread. A double of 2⁻¹¹ units or
//! more is such a multiple already, so that hardly a number ever changes.

use super::moments::MomentsLayout;
use crate::math::Matrix;
use crate::model::Model;
use crate::target::Expansion;
use crate::{Error, Result};
use std::sync::Arc;

/// More shards than this are not added up: their sums could be more than 128 bits hold.
pub(crate) const MOST_SHARDS: usize = 1 << 12;
/// Bits behind the point.
const POINT: i32 = 64;
/// The spreads of priors are counted up to this power of two.
const WIDEST: i32 = 200;
/// Log densities are below this, in steps of the grid: 2³⁶ units.
const LARGEST_VALUE: f64 = pow2(100);
/// Derivatives are below this: they have no code to stay clear of.
const LARGEST_DERIVATIVE: f64 = pow2(114);
/// A log density of −∞ is this or less. All shards together can say so.
const NEVER: i128 = -(1 << 114);
/// A sum below this has one of these in it: finite ones are above −2¹¹², however many shards there are.
const LOST: i128 = -(1 << 113);

/// How the numbers of an answer, or of its part about one model, stand in line.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout(NumberShape);

#[derive(Debug, Clone, PartialEq)]
enum NumberShape {
    Densities(Densities),
    Moments(MomentsLayout),
}

/// At each point of a model a log density, then its derivatives.
#[derive(Debug, Clone, PartialEq)]
struct Densities {
    model: Arc<Model>,
    points: usize,
    derivatives: Vec<Derivative>,
}

/// A derivative.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Derivative {
    /// Its unit is 2 to this power.
    unit: i32,
    /// The parameter that it is by, or the first of them.
    parameter: usize,
}

impl Layout {
    /// Of so many points of a model, with all derivatives up to this order: a gradient, the triangle of a Hessian,
    /// and third derivatives in the order of [`Thirds`](crate::target::Thirds).
    pub(super) fn new(model: &Arc<Model>, points: usize, order: usize) -> Layout {
        let spreads = spreads(model);
        let mut derivatives = Vec::new();
        let mut add =
            |unit: i32, parameter: usize| derivatives.push(Derivative { unit, parameter });
        if order > 0 {
            spreads.iter().enumerate().for_each(|(i, e)| add(-e, i));
        }
        if order > 1 {
            for (i, e) in spreads.iter().enumerate() {
                spreads[..=i].iter().for_each(|f| add(-e - f, i));
            }
        }
        if order > 2 {
            for (i, e) in spreads.iter().enumerate() {
                for (j, f) in spreads[..=i].iter().enumerate() {
                    spreads[..=j].iter().for_each(|g| add(-e - f - g, i));
                }
            }
        }
        Layout(NumberShape::Densities(Densities { model: model.clone(), points, derivatives }))
    }

    /// Of the moments of columns.
    pub(super) fn of_moments(moments: MomentsLayout) -> Layout {
        Layout(NumberShape::Moments(moments))
    }

    /// How many whole numbers there are.
    pub(crate) fn count(&self) -> usize {
        match &self.0 {
            NumberShape::Densities(own) => own.points * (1 + own.derivatives.len()),
            NumberShape::Moments(own) => own.words(),
        }
    }
}

/// How many whole numbers an answer takes.
pub(crate) fn count(layout: &[Layout]) -> usize {
    layout.iter().map(Layout::count).sum()
}

/// An answer's numbers in steps of their grids, modulo 2¹²⁸; an error that names the parameter where one is too large.
/// Where a log density is −∞, `noise` takes the place of all that belongs to it: the sum will be −∞ whatever it is,
/// and is not to show what the others say.
pub(crate) fn encode(
    layout: &[Layout],
    numbers: &[f64],
    noise: &mut dyn FnMut() -> u128,
) -> Result<Vec<u128>> {
    let mut out = Vec::with_capacity(count(layout));
    let mut rest = numbers;
    let mut next = |count: usize| {
        let (own, after) = rest.split_at_checked(count).ok_or_else(|| {
            Error::numeric("an answer has fewer numbers than its question asks for")
        })?;
        rest = after;
        Ok::<_, Error>(own)
    };
    for own in layout {
        match &own.0 {
            NumberShape::Moments(own) => {
                let mut words = vec![0_i128; own.words()];
                own.add(&mut words, next(own.numbers())?).ok_or_else(|| {
                    Error::numeric("rows or columns are too large to be added up in fixed point; write columns in other units, or as scale(x)")
                })?;
                out.extend(words.into_iter().map(|word| word as u128));
            }
            NumberShape::Densities(own) => {
                for _ in 0..own.points {
                    own.encode(next(1 + own.derivatives.len())?, noise, &mut out)?;
                }
            }
        }
    }
    Ok(out)
}

impl Densities {
    /// The numbers of one point.
    fn encode(
        &self,
        at: &[f64],
        noise: &mut dyn FnMut() -> u128,
        out: &mut Vec<u128>,
    ) -> Result<()> {
        if at[0] == f64::NEG_INFINITY {
            // From −2¹¹⁴ down to −1.25 · 2¹¹⁴.
            out.push((NEVER - (noise() >> 16) as i128) as u128);
            out.extend(self.derivatives.iter().map(|_| noise()));
            return Ok(());
        }
        out.push(steps(at[0], 0, LARGEST_VALUE).ok_or_else(|| {
            let message = format!(
                "its log density is {:e}, too large to be added up in fixed point; use priors that keep it from such values",
                at[0]
            );
            Error::numeric(message).for_model(&self.model.name)
        })?);
        for (x, Derivative { unit, parameter }) in at[1..].iter().zip(&self.derivatives) {
            out.push(steps(*x, *unit, LARGEST_DERIVATIVE).ok_or_else(|| {
                let message = format!(
                    "a derivative of the log density is {x:e}, too large for the width of the prior to be added up in fixed point; write the column in other units, or as scale(x), or use a narrower prior"
                );
                let name = self.model.free().nth(*parameter).map_or("", |p| p.name.as_str());
                Error::numeric(message).for_parameter(name).for_model(&self.model.name)
            })?);
        }
        Ok(())
    }

    /// The numbers of the sum at one point.
    fn decode(&self, sums: &[i128], out: &mut Vec<f64>) {
        let lost = sums[0] < LOST;
        out.push(if lost { f64::NEG_INFINITY } else { sums[0] as f64 * pow2(-POINT) });
        for (at, sum) in self.derivatives.iter().zip(&sums[1..]) {
            // From an integer the processor rounds to the nearest, and to even where two are as near.
            out.push(if lost { 0.0 } else { *sum as f64 * pow2(at.unit - POINT) });
        }
    }
}

/// The numbers of the sum of answers, each rounded once. Where a log density is −∞, its derivatives are 0.
pub(crate) fn decode(layout: &[Layout], sums: &[u128]) -> Vec<f64> {
    let mut out = Vec::with_capacity(sums.len());
    let sums: Vec<i128> = sums.iter().map(|sum| *sum as i128).collect();
    let mut rest = sums.as_slice();
    for own in layout {
        let (sums, after) = rest.split_at_checked(own.count()).unwrap_or_default();
        rest = after;
        match &own.0 {
            NumberShape::Moments(own) => out.extend(own.read(sums)),
            NumberShape::Densities(own) => {
                let points = sums.chunks_exact(1 + own.derivatives.len());
                points.for_each(|at| own.decode(at, &mut out));
            }
        }
    }
    out
}

/// A number in steps of its grid; `None` if it is not below this many.
fn steps(x: f64, unit: i32, largest: f64) -> Option<u128> {
    let steps = x * pow2(POINT - unit);
    (steps.abs() < largest).then(|| steps.round_ties_even() as i128 as u128)
}

/// 2 to a power of no more than a thousand.
const fn pow2(power: i32) -> f64 {
    f64::from_bits(((1023 + power) as u64) << 52)
}

/// Per parameter the power of two at its prior's spread.
fn spreads(model: &Model) -> Vec<i32> {
    let of = |spread: f64| match spread.is_finite() && spread > 0.0 {
        true => (libm::frexp(spread).1 - 1).clamp(-WIDEST, WIDEST),
        false => 0,
    };
    model.free_priors().iter().map(|prior| of(prior.spread())).collect()
}

/// A grid: multiples of 2⁻⁶⁴ units.
#[derive(Clone, Copy)]
struct Grid {
    /// Doubles of this size are on it.
    fine: f64,
    step: f64,
    per_unit: f64,
}

impl Grid {
    const fn new(unit: i32) -> Grid {
        let (fine, step, per_unit) = (pow2(unit - 11), pow2(unit - POINT), pow2(POINT - unit));
        Grid { fine, step, per_unit }
    }

    #[inline]
    fn round(&self, x: &mut f64) {
        if x.abs() < self.fine {
            // −0 becomes 0, as in a sum.
            *x = (*x * self.per_unit).round_ties_even() * self.step + 0.0;
        }
    }
}

/// Log densities, rounded to their grid.
pub(super) fn round_values(values: &mut [f64]) {
    const UNIT: Grid = Grid::new(0);
    values.iter_mut().for_each(|x| UNIT.round(x));
}

/// Expansions of a model's log density, rounded to their grids.
pub(super) struct Rounding(Vec<i32>);

impl Rounding {
    pub fn of(model: &Model) -> Rounding {
        Rounding(spreads(model))
    }

    /// Rounds an expansion. What has another size is left as it is: nobody will accept it.
    pub fn expansion(&self, at: &mut Expansion) {
        let d = self.0.len();
        round_values(std::slice::from_mut(&mut at.value));
        if at.gradient.len() != d || !at.hessian.has_size(d, d) {
            return;
        }
        for (i, e) in self.0.iter().enumerate() {
            Grid::new(-e).round(&mut at.gradient[i]);
            for (j, f) in self.0[..=i].iter().enumerate() {
                let grid = Grid::new(-e - f);
                grid.round(&mut at.hessian[(i, j)]);
                if i != j {
                    grid.round(&mut at.hessian[(j, i)]);
                }
            }
        }
    }

    /// Rounds third derivatives.
    pub fn thirds(&self, thirds: &mut [f64]) {
        let mut thirds = thirds.iter_mut();
        for (i, e) in self.0.iter().enumerate() {
            for (j, f) in self.0[..=i].iter().enumerate() {
                let each = self.0[..=j].iter().zip(&mut thirds);
                each.for_each(|(g, x)| Grid::new(-e - f - g).round(x));
            }
        }
    }
}

/// Writes an expansion's numbers: the value, the gradient, the lower triangle of the Hessian.
pub(super) fn push(at: &Expansion, out: &mut Vec<f64>) {
    out.push(at.value);
    out.extend_from_slice(&at.gradient);
    (0..at.gradient.len()).for_each(|i| out.extend_from_slice(&at.hessian.row(i)[..=i]));
}

/// Reads what [`push`] wrote of d parameters, and leaves what follows.
pub(super) fn pull(numbers: &mut &[f64], d: usize) -> Option<Expansion> {
    let mut take = |count: usize| {
        let (own, rest) = numbers.split_at_checked(count)?;
        *numbers = rest;
        Some(own)
    };
    let (value, gradient) = (take(1)?[0], take(d)?.to_vec());
    Some(Expansion { value, gradient, hessian: Matrix::from_lower(d, take(d * (d + 1) / 2)?) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::{ExactSum, Stream, stream};
    use crate::model::Prior;
    use rand::{Rng, RngExt};

    fn model(spreads: &[f64]) -> Arc<Model> {
        let names: Vec<String> = (0..spreads.len()).map(|j| format!("b{j}")).collect();
        let prior = |sd: &f64| Prior::Normal { mean: 0.0, sd: *sd };
        let each: Vec<(&str, Prior)> =
            names.iter().map(String::as_str).zip(spreads.iter().map(prior)).collect();
        Arc::new(Model::foreign("own", &each))
    }

    /// A double of up to 2³⁵ units, or far below the grid.
    fn any(rng: &mut Stream, unit: i32) -> f64 {
        let size = match rng.random_range(0..4) {
            0 => rng.random_range(-90..-50),
            1 => rng.random_range(-90..35),
            _ => rng.random_range(-20..20),
        };
        let x = rng.random_range(0.5..1.0) * pow2(size + unit);
        if rng.random() { x } else { -x }
    }

    fn noise(rng: &mut Stream) -> u128 {
        u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())
    }

    /// Doubles on the grid, added up exactly and rounded once, are the whole numbers' sum: to the last bit.
    #[test]
    fn sums_of_doubles_and_of_whole_numbers_have_the_same_bits() {
        let mut rng = stream(1, 0, 0, "fixed point");
        for round in 0..100 {
            let shards = [3, 4, 17, 60][round % 4];
            let model = model(&[1e-30, 2.5, 1e5, 1e90][..1 + round % 4]);
            let layout = [Layout::new(&model, 2, 3), Layout::new(&model, 40, 0)];
            let rounding = Rounding::of(&model);
            let units: Vec<i32> = layout
                .iter()
                .filter_map(|own| match &own.0 {
                    NumberShape::Densities(own) => Some(own),
                    NumberShape::Moments(_) => None,
                })
                .flat_map(|own| (0..own.points).map(move |_| own))
                .flat_map(|own| [0].into_iter().chain(own.derivatives.iter().map(|d| d.unit)))
                .collect();
            let mut parts: Vec<Vec<f64>> = Vec::new();
            for s in 0..shards {
                let mut own: Vec<f64> = units.iter().map(|u| any(&mut rng, *u)).collect();
                for (k, (x, u)) in own.iter_mut().zip(&units).enumerate() {
                    let before = *x;
                    Grid::new(*u).round(x);
                    assert!((*x - before).abs() <= 0.5 * pow2(u - POINT));
                    assert!(before.abs() < pow2(u - 11) || before == *x);
                    // Some of it cancels.
                    if s == shards - 1 && k % 3 == 0 {
                        let sum = ExactSum::of(parts.iter().map(|part: &Vec<f64>| part[k]));
                        *x = if sum.abs() < pow2(36 + u) { -sum } else { *x };
                    }
                }
                // As the kinds round them: the same.
                let mut taken = own.as_slice();
                let mut at = pull(&mut taken, model.dim()).unwrap();
                let mut thirds = taken[..crate::target::Thirds::count(model.dim())].to_vec();
                let (before, same) = (at.clone(), thirds.clone());
                rounding.expansion(&mut at);
                rounding.thirds(&mut thirds);
                assert_eq!((at, thirds), (before, same));
                parts.push(own);
            }
            let mut total = vec![0_u128; count(&layout)];
            for part in &parts {
                let whole = encode(&layout, part, &mut || noise(&mut rng)).unwrap();
                total.iter_mut().zip(whole).for_each(|(sum, x)| *sum = sum.wrapping_add(x));
            }
            let slices: Vec<&[f64]> = parts.iter().map(Vec::as_slice).collect();
            let (plain, whole) = (ExactSum::of_each(&slices), decode(&layout, &total));
            let bits = |all: &[f64]| all.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&plain), bits(&whole));
        }
    }

    #[test]
    fn what_cannot_be_stays_so_however_many_say_it() {
        let mut rng = stream(2, 0, 0, "fixed point");
        let model = model(&[1.0, 1.0]);
        let layout = [Layout::new(&model, 1, 2)];
        // The lowest that is finite, of all shards there can be.
        let low = -(pow2(36) - 1.0);
        for (never, shards) in [(0, 4096), (1, 4096), (4096, 4096), (256, 256), (2, 3)] {
            let mut total = vec![0_u128; count(&layout)];
            for s in 0..shards {
                let value = if s < never { f64::NEG_INFINITY } else { low };
                let own = [value, 1.0, f64::NAN, 2.0, 3.0, 4.0];
                let own =
                    if s < never { own } else { own.map(|x| if x.is_nan() { 0.5 } else { x }) };
                let whole = encode(&layout, &own, &mut || noise(&mut rng)).unwrap();
                total.iter_mut().zip(whole).for_each(|(sum, x)| *sum = sum.wrapping_add(x));
            }
            let sum = decode(&layout, &total);
            let expected = if never > 0 { f64::NEG_INFINITY } else { low * shards as f64 };
            assert_eq!(sum[0], expected, "{never} of {shards}");
            let slopes = if never > 0 { [0.0; 2] } else { [4096.0, 2048.0] };
            assert_eq!(sum[1..3], slopes);
        }
    }

    #[test]
    fn what_is_too_large_names_model_and_parameter() {
        let model = model(&[1.0, 1e6]);
        let layout = [Layout::new(&model, 1, 1)];
        let mut none = || 0;
        let error = encode(&layout, &[1e11, 0.0, 0.0], &mut none).unwrap_err().to_string();
        assert!(error.contains("own") && error.contains("log density is 1e11"), "{error}");
        let error = encode(&layout, &[0.0, 0.0, 1e10], &mut none).unwrap_err().to_string();
        assert!(error.contains("b1") && error.contains("scale(x)"), "{error}");
        for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(encode(&layout, &[0.0, x, 0.0], &mut none).is_err());
            assert!(x < 0.0 || encode(&layout, &[x, 0.0, 0.0], &mut none).is_err());
        }
        assert!(encode(&layout, &[6e10, 1e15, 1e9], &mut none).is_ok());
        assert!(encode(&layout, &[0.0, 0.0], &mut none).is_err());
    }
}
