//! One model's quadratic with all its neighbours in sight: its terms are swept (Gauss–Jordan).

use super::Space;
use super::leaves::exp;
use super::reduced::Reduced;
use super::subset::Subset;

/// Flips after which the matrix is computed afresh, against rounding.
const FLIPS: usize = 500;
/// e⁻²⁰⁰: chains do not notice what is less.
const LEAST_ODDS: f64 = 1.383_896_526_736_737_5e-87;

/// The state of a search or a chain over the models.
pub(super) struct GibbsSweep<'a> {
    space: &'a Space,
    reduced: &'a Reduced,
    rules: bool,
    /// [S r; r' 0] swept on the model's columns: the upper triangle, row after row. Among them stands −S⁻¹.
    matrix: Vec<f64>,
    /// Per column, whether it is in.
    swept: Vec<bool>,
    /// Per term, which terms have it as a parent.
    children: Vec<Vec<usize>>,
    pivot_row: Vec<f64>,
    flips: usize,
    /// The model.
    pub model: Subset,
    /// How many terms it has.
    pub size: usize,
    /// Its log weight.
    pub log_weight: f64,
}

impl<'a> GibbsSweep<'a> {
    /// Starts at the model without candidates.
    pub fn new(space: &'a Space, reduced: &'a Reduced) -> GibbsSweep<'a> {
        let m = reduced.slope.len();
        let mut children = vec![Vec::new(); space.terms.len()];
        if space.has_rules() {
            for (t, term) in space.terms.iter().enumerate() {
                term.parents.iter().for_each(|&parent| children[parent].push(t));
            }
        }
        let all: Vec<usize> = (0..space.terms.len()).collect();
        GibbsSweep {
            space,
            reduced,
            rules: space.has_rules(),
            matrix: reduced.packed(&all),
            swept: vec![false; m],
            children,
            pivot_row: vec![0.0; m + 1],
            flips: 0,
            model: Subset::EMPTY,
            size: 0,
            log_weight: reduced.base + space.log_prior(0),
        }
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        let (i, j) = (i.min(j), i.max(j));
        self.matrix[self.row(i) + j - i]
    }

    /// Where a row begins, at its diagonal.
    fn row(&self, i: usize) -> usize {
        i * (self.swept.len() + 1) - i * i.saturating_sub(1) / 2
    }

    /// Whether heredity and the prior allow both the model with this term and the one without it, the others as
    /// they are.
    pub fn may_flip(&self, term: usize) -> bool {
        let without = self.size - usize::from(self.model.contains(term));
        let prior = |k| self.space.log_prior(k) > f64::NEG_INFINITY;
        prior(without) && prior(without + 1) && self.rules_allow(term)
    }

    /// Whether heredity allows both.
    pub fn rules_allow(&self, term: usize) -> bool {
        if !self.rules {
            return true;
        }
        if !self.space.welcomes(&self.model, term) {
            return false;
        }
        let without = self.model.without(term);
        let mut children = self.children[term].iter().filter(|&&c| self.model.contains(c));
        children.all(|&child| self.space.welcomes(&without, child))
    }

    /// The odds of a term given the others, within e^±200; the logarithm of its prior odds is given.
    #[inline]
    pub fn odds(&self, term: usize, log_prior: f64) -> f64 {
        let columns = &self.reduced.columns[term];
        let j = columns.start;
        if columns.len() != 1 {
            return exp((self.log_ratio(term) + log_prior).clamp(-200.0, 200.0));
        }
        // As `log_ratio`, but a root is cheaper than a logarithm.
        let row = self.row(j);
        let (diagonal, slope) = (self.matrix[row], self.matrix[row + self.swept.len() - j]);
        let (pivot, root) = if self.swept[j] {
            (-diagonal, (-diagonal).max(0.0).sqrt())
        } else if diagonal > self.reduced.noise[j] {
            (diagonal, (1.0 / diagonal).sqrt())
        } else {
            return exp(-200.0);
        };
        let exponent = self.reduced.left[term] + log_prior + 0.5 * slope * slope / pivot;
        let odds = exp(exponent.clamp(-500.0, 500.0)) * root;
        odds.clamp(LEAST_ODDS, 1.0 / LEAST_ODDS)
    }

    /// log Z̃ with the term less log Z̃ without it, the others as they are: −∞ where there is no normal
    /// approximation with it.
    pub fn log_ratio(&self, term: usize) -> f64 {
        let columns = self.reduced.columns[term].clone();
        let left = self.reduced.left[term];
        let sign = if self.model.contains(term) { -1.0 } else { 1.0 };
        let last = self.swept.len();
        if columns.len() == 1 {
            let j = columns.start;
            let row = self.row(j);
            let (pivot, slope) = (sign * self.matrix[row], self.matrix[row + last - j]);
            if sign > 0.0 && pivot <= self.reduced.noise[j] {
                return f64::NEG_INFINITY;
            }
            return left + 0.5 * (slope * slope / pivot - sign * libm::log(pivot));
        }
        // A small factor L of the term's block; the pivots of S itself are the reciprocals of those of S⁻¹.
        let width = columns.len();
        let mut lower = vec![0.0; width * width];
        let mut solved = vec![0.0; width];
        let mut value = left;
        for i in 0..width {
            for j in 0..=i {
                let mut sum = sign * self.at(columns.start + i, columns.start + j);
                for k in 0..j {
                    sum -= lower[i * width + k] * lower[j * width + k];
                }
                if i == j {
                    let noise =
                        if sign > 0.0 { self.reduced.noise[columns.start + i] } else { 0.0 };
                    if sum.is_nan() || sum <= noise {
                        return f64::NEG_INFINITY;
                    }
                    value -= 0.5 * sign * libm::log(sum);
                    lower[i * width + i] = sum.sqrt();
                } else {
                    lower[i * width + j] = sum / lower[j * width + j];
                }
            }
            let mut sum = self.at(columns.start + i, last);
            for k in 0..i {
                sum -= lower[i * width + k] * solved[k];
            }
            solved[i] = sum / lower[i * width + i];
            value += 0.5 * solved[i] * solved[i];
        }
        value
    }

    /// Takes the term in or leaves it out; `log_ratio` is what that function says of it.
    pub fn flip(&mut self, term: usize, log_ratio: f64) {
        let prior = |k| self.space.log_prior(k);
        if self.model.contains(term) {
            self.model.remove(term);
            self.log_weight += prior(self.size - 1) - prior(self.size) - log_ratio;
            self.size -= 1;
        } else {
            self.model.insert(term);
            self.log_weight += prior(self.size + 1) - prior(self.size) + log_ratio;
            self.size += 1;
        }
        for j in self.reduced.columns[term].clone() {
            self.sweep(j);
        }
        self.flips += 1;
        if self.flips >= FLIPS {
            self.refresh();
        }
    }

    /// Computes matrix and weight afresh.
    pub fn refresh(&mut self) {
        let model = self.model;
        let all: Vec<usize> = (0..self.space.terms.len()).collect();
        self.matrix = self.reduced.packed(&all);
        self.swept.fill(false);
        (self.model, self.size, self.flips) = (Subset::EMPTY, 0, 0);
        let mut log_z = self.reduced.base;
        for term in model.iter() {
            log_z += self.log_ratio(term);
            self.model.insert(term);
            self.size += 1;
            for j in self.reduced.columns[term].clone() {
                self.sweep(j);
            }
        }
        self.log_weight = log_z + self.space.log_prior(self.size);
    }

    /// The symmetric sweep on a column, or its reverse if it is in.
    fn sweep(&mut self, j: usize) {
        let n = self.swept.len() + 1;
        let mut row = std::mem::take(&mut self.pivot_row);
        for (i, slot) in row.iter_mut().enumerate() {
            *slot = self.at(i, j);
        }
        let pivot = row[j];
        let reciprocal = 1.0 / pivot;
        let sign = if self.swept[j] { -1.0 } else { 1.0 };
        let mut rest = &mut self.matrix[..];
        for i in 0..n {
            let (own, next) = std::mem::take(&mut rest).split_at_mut(n - i);
            rest = next;
            let factor = row[i] * reciprocal;
            if factor != 0.0 {
                for (a, b) in own.iter_mut().zip(&row[i..]) {
                    *a -= factor * b;
                }
            }
        }
        for (i, old) in row.iter().enumerate() {
            let value = if i == j { -reciprocal } else { sign * old * reciprocal };
            let (a, b) = (i.min(j), i.max(j));
            let place = self.row(a) + b - a;
            self.matrix[place] = value;
        }
        self.swept[j] = !self.swept[j];
        self.pivot_row = row;
    }
}

/// Where a climb ended.
pub(super) struct Summit {
    /// The model.
    pub model: Subset,
    /// Its log weight.
    pub log_weight: f64,
    /// Per term, the log odds of having it, given the model's others.
    pub odds: Vec<f64>,
    /// Per column, the square of its estimate over its variance, given the model's others.
    pub squares: Vec<f64>,
}

/// Finds a heavy model, by flips that each gain most.
pub(super) fn climb(space: &Space, reduced: &Reduced) -> Summit {
    let p = space.terms.len();
    let mut sweep = GibbsSweep::new(space, reduced);
    // A prior may rule small models out.
    while sweep.log_weight == f64::NEG_INFINITY {
        let open = (0..p).filter(|&t| !sweep.model.contains(t) && sweep.rules_allow(t));
        let best = open.map(|t| (sweep.log_ratio(t), t)).fold((f64::NEG_INFINITY, p), better);
        if best.1 == p {
            break;
        }
        sweep.flip(best.1, best.0);
        sweep.refresh();
    }
    for _ in 0..4 * p + 10 {
        let open = (0..p).filter(|&t| sweep.may_flip(t));
        let gains = open.map(|t| {
            let odds = log_odds(space, &sweep, t);
            (if sweep.model.contains(t) { -odds } else { odds }, t)
        });
        let best = gains.fold((0.0, p), better);
        // What rounding can make of nothing is no gain.
        if best.1 == p || best.0 <= 1e-9 {
            break;
        }
        let ratio = sweep.log_ratio(best.1);
        sweep.flip(best.1, ratio);
    }
    sweep.refresh();
    let odds = (0..p)
        .map(|t| match (sweep.may_flip(t), sweep.model.contains(t)) {
            (true, _) => log_odds(space, &sweep, t),
            (false, true) => f64::INFINITY,
            (false, false) => f64::NEG_INFINITY,
        })
        .collect();
    let last = reduced.slope.len();
    let squares = (0..last).map(|j| {
        let (slope, pivot) = (sweep.at(j, last), sweep.at(j, j).abs());
        if pivot > reduced.noise[j] { slope * slope / pivot } else { 0.0 }
    });
    let squares = squares.collect();
    Summit { model: sweep.model, log_weight: sweep.log_weight, odds, squares }
}

fn better(best: (f64, usize), next: (f64, usize)) -> (f64, usize) {
    if next.0 > best.0 { next } else { best }
}

/// The log odds of a term given the others.
fn log_odds(space: &Space, sweep: &GibbsSweep, term: usize) -> f64 {
    let without = sweep.size - usize::from(sweep.model.contains(term));
    sweep.log_ratio(term) + space.log_prior(without + 1) - space.log_prior(without)
}
