//! How much a subtree can hold at most.
//!
//! Where v'Sv ≥ Σ dⱼvⱼ², a model's weight is at most its weight if S were diag(d): a product over its terms. Sums
//! of such products over all models of a size are elementary symmetric polynomials.

use super::leaves;
use super::tree::{Node, Tree, View};

/// Sizes up to which sums are computed; beyond, they are bounded in turn.
const SIZES: usize = 8;

/// What subtrees are measured by.
pub(super) struct Bounds {
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
pub(super) struct Part {
    /// The models of which this undecided term is the first that they take.
    pub first: f64,
    /// The same of this one and all after it.
    pub from_here: f64,
}

impl Bounds {
    pub fn new(log_prior: &[f64], least: f64) -> Bounds {
        let top = log_prior.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Never 0, so that no bound is: what is too large times too small would be no number.
        let prior: Vec<f64> =
            log_prior.iter().map(|v| libm::exp(v - top).max(f64::MIN_POSITIVE)).collect();
        let mut largest = prior.clone();
        for k in (0..prior.len().saturating_sub(1)).rev() {
            largest[k] = largest[k].max(largest[k + 1]);
        }
        Bounds { least, top, prior, largest }
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
    pub fn parts(&self, tree: &Tree, view: &View) -> Vec<Part> {
        let scale = self.scale(tree, view);
        let mut parts: Vec<Part> = Vec::with_capacity(view.undecided.len());
        let mut rest = view.matrix;
        let (mut column, columns) = (0, view.cover.len());
        for &place in view.undecided {
            let (mut exponent, mut product) = (tree.left(place), 1.0);
            for _ in 0..tree.width(place) {
                let d = view.cover[column];
                let (row, next) = rest.split_at(columns + 1 - column);
                let r = row[row.len() - 1];
                exponent += if d > 0.0 { 0.5 * r * r / d } else { f64::INFINITY };
                product *= d;
                (rest, column) = (next, column + 1);
            }
            let x = exp_upward(exponent) / product.max(f64::MIN_POSITIVE).sqrt();
            parts.push(Part { first: x, from_here: 0.0 });
        }
        // From the last term on: sums[j] over choices of j of the terms after this one.
        let mut sums = [0.0; SIZES + 1];
        sums[0] = 1.0;
        let (mut all, mut held) = (0.0, 0.0);
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
                // eⱼ ≤ eⱼ₋₁·e₁/j.
                let next = (SIZES + 1) as f64;
                let ratio = all / (next + 1.0);
                let series = if ratio < 0.9 { 1.0 / (1.0 - ratio) } else { exp_upward(all) };
                inside += sums[SIZES] * (all / next) * series * self.largest[k + SIZES + 1];
            }
            for j in (1..=SIZES).rev() {
                sums[j] += x * sums[j - 1];
            }
            all += x;
            // Rounding must not make a bound of what is none.
            part.first = scale * x * inside * (1.0 + 1e-9);
            held += part.first;
            part.from_here = held;
        }
        parts
    }

    /// Tries to raise a node's cover, after a term was taken in.
    pub fn raise(&self, _node: &mut Node) {}
}

/// eˣ, and not less where that overflows.
fn exp_upward(x: f64) -> f64 {
    if x < 700.0 { leaves::exp(x) } else { f64::INFINITY }
}

/// A diagonal that an upper triangle with a slope is not below.
pub(super) fn cover(matrix: &[f64], columns: usize) -> Vec<f64> {
    let diagonal: Vec<f64> = (0..columns).map(|j| matrix[start(j, columns)]).collect();
    let (mut low, mut high) = (0.0, 1.0);
    let mut work = Vec::new();
    for _ in 0..20 {
        let middle = 0.5 * (low + high);
        let part: Vec<f64> = diagonal.iter().map(|d| middle * d).collect();
        if is_above(matrix, &part, &mut work) {
            low = middle;
        } else {
            high = middle;
        }
    }
    diagonal.iter().map(|d| low * d).collect()
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
