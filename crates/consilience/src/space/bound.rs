//! How much a subtree can hold at most.
//!
//! Where v'Sv ≥ Σ dⱼvⱼ², a model's weight is at most its weight if S were diag(d): a product over its terms. Sums
//! of such products over all models of a size are elementary symmetric polynomials.

use super::leaves;
use super::tree::{Tree, View};
use crate::math::{Cholesky, Matrix};

/// Sizes up to which sums are computed; beyond, they are bounded in turn.
const SIZES: usize = 8;

/// What subtrees are measured by.
pub(super) struct WalkBounds {
    /// A subtree that holds no more than this is left out.
    pub least: f64,
    /// The largest log prior of a model.
    top: f64,
    /// Per number of terms, a model's prior over the largest.
    prior: Vec<f64>,
    /// Per number of terms, the largest of those with so many or more.
    largest: Vec<f64>,
}

/// Bounds on parts of a node.
pub(super) struct BoundPart {
    /// The models of which this undecided term is the first that they take.
    pub first: f64,
    /// The same of this one and all after it.
    pub from_here: f64,
}

impl WalkBounds {
    pub fn new(log_prior: &[f64], least: f64) -> WalkBounds {
        let top = log_prior.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Never 0, so that no bound is: what is too large times too small would be no number.
        let prior: Vec<f64> =
            log_prior.iter().map(|v| libm::exp(v - top).max(f64::MIN_POSITIVE)).collect();
        let mut largest = prior.clone();
        for k in (0..prior.len().saturating_sub(1)).rev() {
            largest[k] = largest[k].max(largest[k + 1]);
        }
        WalkBounds { least, top, prior, largest }
    }

    /// The weight of a node's own model but for its prior, over the largest prior.
    fn scale(&self, tree: &Tree, view: &View) -> f64 {
        let q = view.matrix[view.matrix.len() - 1];
        let log = view.taken.log_scale + self.top - tree.reference - 0.5 * q;
        exp_upward(log) * view.taken.reciprocal.sqrt()
    }

    /// A bound on all models of a node.
    pub fn whole(&self, tree: &Tree, view: &View) -> f64 {
        let own = self.scale(tree, view) * self.prior[view.taken.count];
        own + self.parts(tree, view).first().map_or(0.0, |part| part.from_here)
    }

    /// Bounds on the parts of a node, per undecided term.
    pub fn parts(&self, tree: &Tree, view: &View) -> Vec<BoundPart> {
        let columns = view.cover.len();
        let slope: Vec<f64> =
            (0..columns).map(|j| view.matrix[start(j + 1, columns) - 1]).collect();
        let mut parts = self.separate(tree, view, 0.0, &slope);
        let hopeless = parts.first().is_none_or(|part| part.from_here <= self.least);
        if !hopeless && let Some((constant, slope)) = tangent(view, &slope) {
            for (part, other) in parts.iter_mut().zip(self.separate(tree, view, constant, &slope)) {
                part.first = part.first.min(other.first);
                part.from_here = part.from_here.min(other.from_here);
            }
        }
        parts
    }

    /// The parts' bounds if a model's exponent is at most `constant` + ½ Σ slopeⱼ²/coverⱼ over its columns.
    fn separate(&self, tree: &Tree, view: &View, constant: f64, slope: &[f64]) -> Vec<BoundPart> {
        let scale = self.scale(tree, view) * exp_upward(constant);
        let mut parts: Vec<BoundPart> = Vec::with_capacity(view.undecided.len());
        let mut column = 0;
        for &place in view.undecided {
            let (mut exponent, mut product) = (tree.left(place), 1.0);
            for _ in 0..tree.width(place) {
                let (d, r) = (view.cover[column], slope[column]);
                exponent += if d > 0.0 { 0.5 * r * r / d } else { f64::INFINITY };
                product *= d;
                column += 1;
            }
            let x = exp_upward(exponent) / product.max(f64::MIN_POSITIVE).sqrt();
            parts.push(BoundPart { first: x, from_here: 0.0 });
        }
        // From the last term on: sums[j] over choices of j of the terms after this one.
        let mut sums = [0.0; SIZES + 1];
        sums[0] = 1.0;
        let (mut all, mut product, mut held) = (0.0, 1.0_f64, 0.0);
        let k = view.taken.count + 1;
        let end = parts.len();
        for (i, part) in parts.iter_mut().enumerate().rev() {
            let x = part.first;
            let after = end - 1 - i;
            let mut inside = 0.0;
            for (sum, prior) in sums.iter().zip(&self.prior[k..]).take(after + 1) {
                inside += sum * prior;
            }
            if after > SIZES {
                // eⱼ ≤ eⱼ₋₁·e₁/j; and all of them together are Π(1 + x).
                let next = (SIZES + 1) as f64;
                let ratio = all / (next + 1.0);
                let series = if ratio < 0.9 { 1.0 / (1.0 - ratio) } else { f64::INFINITY };
                let beyond = product.min(sums[SIZES] * (all / next) * series);
                inside += beyond * self.largest[k + SIZES + 1];
            }
            for j in (1..=SIZES).rev() {
                sums[j] += x * sums[j - 1];
            }
            all += x;
            product *= 1.0 + x;
            // Rounding must not make a bound of what is none.
            part.first = scale * x * inside * (1.0 + 1e-9);
            held += part.first;
            part.from_here = held;
        }
        parts
    }
}

/// eˣ, and not less where that overflows.
fn exp_upward(x: f64) -> f64 {
    if x < 700.0 { leaves::exp(x) } else { f64::INFINITY }
}

/// Columns that a tangent is fitted to, at most.
const MOST_FITTED: usize = 12;
/// The square of a slope over the cover from which a column is fitted.
const LARGE: f64 = 8.0;

/// Another bound for nodes where some columns matter much and others stand for them. With S = diag(d) + E and any
/// v, −u'Eu ≤ v'Ev − 2u'Ev, so that a model's exponent is at most ½ v'Ev plus that of diag(d) with the slope
/// r − Ev. It touches where u = v: v is the estimate of the columns that matter. Gives ½ v'Ev and the slope; `None`
/// where none matters.
fn tangent(view: &View, slope: &[f64]) -> Option<(f64, Vec<f64>)> {
    let columns = slope.len();
    let at = |i: usize, j: usize| {
        let (i, j) = (i.min(j), i.max(j));
        view.matrix[start(i, columns) + j - i]
    };
    let mut fitted: Vec<usize> = Vec::new();
    let mut left = slope.to_vec();
    let mut estimate = Vec::new();
    while fitted.len() < MOST_FITTED.min(columns) {
        let mut most = (LARGE, columns);
        for (j, r) in left.iter().enumerate() {
            let square = r * r / view.cover[j];
            if square > most.0 && !fitted.contains(&j) {
                most = (square, j);
            }
        }
        if most.1 == columns {
            break;
        }
        fitted.push(most.1);
        let n = fitted.len();
        let mut block = Matrix::zeros(n, n);
        for (a, &i) in fitted.iter().enumerate() {
            for (b, &j) in fitted.iter().enumerate() {
                block[(a, b)] = at(i, j);
            }
        }
        let Some(factor) = Cholesky::new(&block) else {
            fitted.pop();
            break;
        };
        estimate = factor.solve(&fitted.iter().map(|&j| slope[j]).collect::<Vec<f64>>());
        left.copy_from_slice(slope);
        for (&j, v) in fitted.iter().zip(&estimate) {
            left.iter_mut().enumerate().for_each(|(i, left)| *left -= v * at(i, j));
        }
    }
    if fitted.is_empty() {
        return None;
    }
    // v'Ev = v'(r − (r − Sv)) − Σ dⱼvⱼ², and r − Ev = r − Sv + Dv.
    let mut twice = 0.0;
    for (&j, v) in fitted.iter().zip(&estimate) {
        twice += v * (slope[j] - left[j] - view.cover[j] * v);
    }
    for (&j, v) in fitted.iter().zip(&estimate) {
        left[j] += view.cover[j] * v;
    }
    Some((0.5 * twice, left))
}

/// What a cover is to be good for: per column, the log odds of its term and the square of its estimate over its
/// variance, where the models are that matter.
pub(super) struct Aim {
    pub odds: Vec<f64>,
    pub squares: Vec<f64>,
}

/// A diagonal that an upper triangle with a slope is not below: a share of each column's own.
pub(super) fn cover(matrix: &[f64], aim: &Aim) -> Vec<f64> {
    let columns = aim.odds.len();
    let diagonal: Vec<f64> = (0..columns).map(|j| matrix[start(j, columns)]).collect();
    let mut work = Vec::new();
    let mut of_shares = |shares: &[f64]| -> Option<Vec<f64>> {
        let part: Vec<f64> = diagonal.iter().zip(shares).map(|(d, share)| d * share).collect();
        is_above(matrix, &part, &mut work).then_some(part)
    };
    let (mut low, mut high, mut best) = (0.0, 1.0, vec![0.0; columns]);
    for _ in 0..20 {
        let middle = 0.5 * (low + high);
        match of_shares(&vec![middle; columns]) {
            Some(part) => (low, best) = (middle, part),
            None => high = middle,
        }
    }
    if low == 0.0 || columns > MOST_AIMED {
        return best;
    }
    let mut shares = aimed(matrix, &diagonal, aim, low);
    for _ in 0..4 {
        if let Some(part) = of_shares(&shares) {
            return part;
        }
        shares.iter_mut().for_each(|share| *share *= 0.98);
    }
    best
}

/// Columns up to which a cover is aimed: that takes their number to the third.
const MOST_AIMED: usize = 256;
/// Terms with log odds above this are decided first, and need no bound.
const SURE: f64 = 4.0;
/// The least share, over that which all columns could have.
const FLOOR: f64 = 0.7;

/// Shares for which the columns' bounds are small together, Σ log(1 + odds), by turns: each share as large as its
/// worth and the room that the others leave it allow.
fn aimed(matrix: &[f64], diagonal: &[f64], aim: &Aim, low: f64) -> Vec<f64> {
    let n = diagonal.len();
    let mut shares: Vec<f64> = vec![0.9 * low; n];
    let mut gap = Matrix::zeros(n, n);
    for i in 0..n {
        for j in i..n {
            let value = matrix[start(i, n) + j - i] / (diagonal[i] * diagonal[j]).sqrt();
            gap[(i, j)] = value;
            gap[(j, i)] = value;
        }
        gap[(i, i)] -= shares[i];
    }
    let Some(factor) = Cholesky::new(&gap) else { return shares };
    let mut inverse = factor.inverse();
    for barrier in [1.0, 0.3, 0.1, 0.03, 0.01, 0.003] {
        for _ in 0..2 {
            for j in 0..n {
                let room = 1.0 / inverse[(j, j)];
                let most = shares[j] + 0.95 * room;
                let (mut least, mut largest) = (FLOOR * low, most);
                for _ in 0..25 {
                    let share = 0.5 * (least + largest);
                    if worth(aim.odds[j], aim.squares[j], share) * (shares[j] + room - share)
                        > barrier
                    {
                        least = share;
                    } else {
                        largest = share;
                    }
                }
                let change = least - shares[j];
                let row: Vec<f64> = inverse.row(j).to_vec();
                inverse.add_outer(change / (1.0 - change * row[j]), &row);
                shares[j] = least;
            }
        }
    }
    shares.iter().map(|share| share * (1.0 - 1e-6)).collect()
}

/// How fast a column's log(1 + odds) falls as its share grows.
fn worth(odds: f64, square: f64, share: f64) -> f64 {
    if odds > SURE {
        return 0.0;
    }
    let bound = odds + 0.5 * square * (1.0 / share - 1.0) - 0.5 * libm::log(share);
    let slope = 0.5 * (square / share + 1.0) / share;
    slope / (1.0 + libm::exp(-bound))
}

/// Where a row of the upper triangle begins.
fn start(i: usize, columns: usize) -> usize {
    i * (columns + 1) - i * i.saturating_sub(1) / 2
}

/// Whether the matrix less a diagonal is positive definite beyond doubt.
fn is_above(matrix: &[f64], diagonal: &[f64], work: &mut Vec<f64>) -> bool {
    let columns = diagonal.len();
    work.clear();
    work.extend_from_slice(matrix);
    let mut rest = &mut work[..];
    for (j, part) in diagonal.iter().enumerate() {
        rest[0] -= part;
        let (first, below) = std::mem::take(&mut rest).split_at_mut(columns + 1 - j);
        let pivot = first[0];
        if pivot.is_nan() || pivot <= 1e-11 * matrix[start(j, columns)] {
            return false;
        }
        let reciprocal = 1.0 / pivot;
        let mut at = 0;
        for i in 1..columns - j {
            let factor = first[i] * reciprocal;
            let width = columns + 1 - j - i;
            for (a, b) in below[at..at + width].iter_mut().zip(&first[i..]) {
                *a -= factor * b;
            }
            at += width;
        }
        rest = below;
    }
    true
}
