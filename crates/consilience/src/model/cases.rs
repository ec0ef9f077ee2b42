//! Likelihoods of families whose rows are of several kinds: cut up by kind, each with its law (`kernel::Case`).

use super::merge::{MergeBy, Merged};
use super::{Family, chunk_values};
use crate::kernel::{Case, CaseSums, Kernel, Rows};
use crate::math::counts::stirling_rest;
use crate::math::special::softplus;
use crate::math::{Compensated, LOG_2PI, Matrix};
use crate::target::Expansion;
use libm::{exp, log, log1p};

/// Rows of one kind, and which of the own parameters are the law's a and b.
#[derive(Debug)]
pub(super) struct CasePart {
    pub rows: Rows,
    kind: PartKind,
}

#[derive(Debug, Clone, Copy)]
enum PartKind {
    Case {
        own: [Option<usize>; 2],
    },
    /// Poisson counts, which are our older law's.
    Poisson,
}

/// What rows add to log-likelihoods whatever their predictors are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known {
    observations: f64,
    /// Times that are known, not only their bounds.
    events: f64,
    /// Of gamma outcomes, Σ log y − Σ log ȳ over merged rows.
    spread: f64,
    constant: f64,
}

/// Some rows of a design, without what merging needs.
pub(super) struct UnmergedRows {
    pub columns: Vec<Vec<f64>>,
    pub offset: Vec<f64>,
    pub weights: Vec<f64>,
    pub y: Vec<f64>,
    /// The second number of every outcome, if outcomes have one.
    pub second: Option<Vec<f64>>,
}

/// Own parameters beyond these are not told apart.
const OWN: f64 = 300.0;

impl Known {
    pub fn add(&mut self, other: &Known) {
        self.observations += other.observations;
        self.events += other.events;
        self.spread += other.spread;
        self.constant += other.constant;
    }

    /// The sum of what is known, with derivatives in the law's a and b: ∂a, ∂b, ∂a², ∂a∂b, ∂b².
    fn expand(&self, family: Family, own: &[f64]) -> [f64; 6] {
        let (n, a) = (self.observations, own.first().copied().unwrap_or(0.0));
        let mut out = match family {
            Family::StudentT => {
                let [value, first, second] = student_norm(own[1]);
                [n * (value - a - 0.5 * LOG_2PI), -n, n * first, 0.0, 0.0, n * second]
            }
            Family::Gamma => {
                let (shape, [rho, first, second]) = (exp(a), stirling_rest(exp(a)));
                let fit = shape * self.spread;
                let value = n * (0.5 * (a - LOG_2PI) - rho) + fit;
                [value, n * (0.5 - first) + fit, 0.0, fit - n * (first + second), 0.0, 0.0]
            }
            Family::Beta => {
                let [rho, first, second] = stirling_rest(exp(a));
                [n * rho, n * first, 0.0, n * (first + second), 0.0, 0.0]
            }
            Family::Weibull => [self.events * a, self.events, 0.0, 0.0, 0.0, 0.0],
            Family::LogNormal => [-self.events * a, -self.events, 0.0, 0.0, 0.0, 0.0],
            Family::ZeroInflatedPoisson => {
                let share = 1.0 / (1.0 + exp(-a));
                [-n * softplus(a), -n * share, 0.0, -n * share * (1.0 - share), 0.0, 0.0]
            }
            _ => [0.0; 6],
        };
        out[0] += self.constant;
        out
    }
}

/// log Γ((ν + 1)/2) − log Γ(ν/2) − ½ log(ν/2) with two derivatives in log ν: what is left of it when Stirling's leading
/// terms have cancelled.
fn student_norm(log_df: f64) -> [f64; 3] {
    let x = 0.5 * exp(log_df);
    let ([low, low_1, low_2], [high, high_1, high_2]) = (stirling_rest(x), stirling_rest(x + 0.5));
    let (ratio, log_ratio) = (x / (x + 0.5), log1p(0.5 / x));
    let value = x * log_ratio - 0.5 + high - low;
    let first = x * log_ratio - 0.5 * ratio + ratio * high_1 - low_1;
    let second = 0.5 * ratio * (ratio - 1.0) + ratio * ratio * high_2 - low_2;
    [value, first, first + second]
}

/// The part of these rows that are chosen by their numbers.
pub(super) fn chosen(
    rows: &UnmergedRows,
    keep: impl Fn(usize) -> bool,
) -> Option<(UnmergedRows, Vec<usize>)> {
    let numbers: Vec<usize> =
        (0..rows.y.len()).filter(|&i| rows.weights[i] > 0.0 && keep(i)).collect();
    if numbers.is_empty() {
        return None;
    }
    let pick = |values: &[f64]| -> Vec<f64> { numbers.iter().map(|&i| values[i]).collect() };
    let part = UnmergedRows {
        columns: rows.columns.iter().map(|c| pick(c)).collect(),
        offset: pick(&rows.offset),
        weights: pick(&rows.weights),
        y: pick(&rows.y),
        second: rows.second.as_deref().map(pick),
    };
    Some((part, numbers))
}

/// The parts that rows make under a family, and what is known of them.
pub(super) fn parts(
    family: Family,
    rows: UnmergedRows,
    kernel: Kernel,
    large: bool,
) -> (Vec<CasePart>, Known) {
    let counted = || rows.weights.iter().zip(&rows.y);
    let observations: f64 = rows.weights.iter().sum();
    let mut known = Known { observations, ..Known::default() };
    let sum = |f: &dyn Fn(f64) -> f64| {
        let mut sum = Compensated::default();
        counted().filter(|(w, _)| **w > 0.0).for_each(|(w, y)| sum.add(w * f(*y)));
        sum.value()
    };
    let first = [Some(0), None];
    let all: Vec<CasePart> = match family {
        Family::StudentT => {
            let own = [Some(0), Some(1)];
            let part = |(rows, _)| case(family, Case::StudentT, own, rows, kernel);
            chosen(&rows, |_| true).map(part).into_iter().collect()
        }
        Family::Gamma => {
            let logs = sum(&log);
            known.constant -= logs;
            let (part, mean_logs) = gamma(rows, kernel);
            known.spread = logs - mean_logs;
            vec![part]
        }
        Family::Beta => {
            let part = |(mut rows, _): (UnmergedRows, _)| {
                rows.second = Some(rows.y.iter().map(|y| log1p(-y)).collect());
                rows.y.iter_mut().for_each(|y| *y = log(*y));
                case(family, Case::Beta, first, rows, kernel)
            };
            known.constant -= sum(&|y| log(y) + log1p(-y));
            chosen(&rows, |_| true).map(part).into_iter().collect()
        }
        Family::Exponential | Family::Weibull | Family::LogNormal => {
            let (parts, more) = times(family, rows, kernel);
            known.add(&more);
            parts
        }
        Family::CumulativeLogit | Family::CumulativeProbit => classes(family, &rows, kernel),
        _ => {
            let (parts, constant) = zero_inflated(&rows, kernel, large);
            known.constant += constant;
            parts
        }
    };
    (all, known)
}

/// Rows of one kind, those merged that are equal in all, the outcome included.
fn case(
    family: Family,
    case: Case,
    own: [Option<usize>; 2],
    rows: UnmergedRows,
    kernel: Kernel,
) -> CasePart {
    let UnmergedRows { mut columns, offset, weights, y, second } = rows;
    let none = vec![0.0; y.len()];
    let width = columns.len();
    columns.push(y);
    columns.extend(second);
    let merged = Merged::new(columns, none, offset, weights, MergeBy::Summed);
    let (columns, outcome) = merged.columns.split_at(width);
    let (y, z) = (&outcome[0], outcome.get(1).unwrap_or(&outcome[0]));
    let rows = Rows::of_case(family, case, columns, &merged.offset, &merged.count, (y, z), kernel);
    CasePart { rows, kind: PartKind::Case { own } }
}

/// Gamma rows, merged by their means, and Σ log of these: no more is needed of the outcomes of equal rows but Σ log y.
fn gamma(rows: UnmergedRows, kernel: Kernel) -> (CasePart, f64) {
    let UnmergedRows { columns, offset, weights, y, .. } = rows;
    let merged = Merged::new(columns, y, offset, weights, MergeBy::Summed);
    let log_mean =
        |(total, count): (&f64, &f64)| if *count > 0.0 { log(total / count) } else { 0.0 };
    let logs: Vec<f64> = merged.total.iter().zip(&merged.count).map(log_mean).collect();
    let mut sum = Compensated::default();
    logs.iter().zip(&merged.count).for_each(|(log, count)| sum.add(count * log));
    let Merged { columns, offset, count, .. } = merged;
    let (family, outcome) = (Family::Gamma, (logs.as_slice(), logs.as_slice()));
    let rows = Rows::of_case(family, Case::Gamma, &columns, &offset, &count, outcome, kernel);
    (CasePart { rows, kind: PartKind::Case { own: [Some(0), None] } }, sum.value())
}

/// Times: those that are known, exceeded, not reached, or between two.
fn times(family: Family, rows: UnmergedRows, kernel: Kernel) -> (Vec<CasePart>, Known) {
    let upper = rows.second.clone().unwrap_or_else(|| rows.y.clone());
    let lower = rows.y.clone();
    let kinds = if family == Family::LogNormal {
        [Case::NormalAt, Case::NormalAbove, Case::NormalBelow, Case::NormalBetween]
    } else {
        [Case::WeibullAt, Case::WeibullAbove, Case::WeibullBelow, Case::WeibullBetween]
    };
    let kind = |i: usize| match (lower[i], upper[i]) {
        (low, high) if low == high => 0,
        (_, high) if high == f64::INFINITY => 1,
        (low, _) if low <= 0.0 => 2,
        _ => 3,
    };
    let own = [(family != Family::Exponential).then_some(0), None];
    let (mut known, mut parts) = (Known::default(), Vec::new());
    for (number, law) in kinds.into_iter().enumerate() {
        let Some((mut part, numbers)) = chosen(&rows, |i| kind(i) == number) else { continue };
        let bound = |i: &usize| log(if number == 2 { upper[*i] } else { lower[*i] });
        part.y = numbers.iter().map(bound).collect();
        part.second = (number == 3).then(|| numbers.iter().map(|&i| log(upper[i])).collect());
        if number == 0 {
            // Densities are in the units of the times.
            let mut logs = Compensated::default();
            part.weights.iter().zip(&part.y).for_each(|(w, y)| logs.add(w * y));
            known.events = part.weights.iter().sum();
            known.constant = -logs.value();
        }
        parts.push(case(family, law, own, part, kernel));
    }
    (parts, known)
}

/// Ordered classes, numbered from 0.
fn classes(family: Family, rows: &UnmergedRows, kernel: Kernel) -> Vec<CasePart> {
    // How many there are stands beside every row's class: a shard may not have the last.
    let count = rows.second.as_ref().and_then(|s| s.first()).copied().unwrap_or(2.0) as usize;
    let kinds = if family == Family::CumulativeLogit {
        [Case::LogitBelow, Case::LogitBetween, Case::LogitAbove]
    } else {
        [Case::ProbitBelow, Case::ProbitBetween, Case::ProbitAbove]
    };
    let part = |class: usize| {
        let (mut part, numbers) = chosen(rows, |i| rows.y[i] == class as f64)?;
        (part.y, part.second) = (vec![0.0; numbers.len()], None);
        let (law, own) = match class {
            0 => (kinds[0], [Some(0), None]),
            k if k + 1 == count => (kinds[2], [None, Some(k - 1)]),
            k => (kinds[1], [Some(k), Some(k - 1)]),
        };
        Some(case(family, law, own, part, kernel))
    };
    (0..count).filter_map(part).collect()
}

/// Counts of 0, and the others, which are a Poisson's.
fn zero_inflated(rows: &UnmergedRows, kernel: Kernel, large: bool) -> (Vec<CasePart>, f64) {
    let mut parts = Vec::new();
    if let Some((zeros, _)) = chosen(rows, |i| rows.y[i] == 0.0) {
        let own = [Some(0), None];
        parts.push(case(Family::ZeroInflatedPoisson, Case::ZeroInflated, own, zeros, kernel));
    }
    let mut constant = 0.0;
    if let Some((others, _)) = chosen(rows, |i| rows.y[i] > 0.0) {
        let (rows, value) = super::piece::poisson(others, kernel, large);
        constant = value;
        parts.push(CasePart { rows, kind: PartKind::Poisson });
    }
    (parts, constant)
}

impl CasePart {
    fn own(&self, natural: &[f64]) -> [f64; 2] {
        let PartKind::Case { own } = self.kind else { return [0.0; 2] };
        own.map(|place| place.map_or(0.0, |k| natural[k]))
    }

    /// Adds the rows' log-likelihoods at these points.
    fn add_values(&self, points: &[(&[f64], Vec<f64>)], may_share: bool, sums: &mut [f64]) {
        let out = match self.kind {
            PartKind::Poisson => {
                let points: Vec<(&[f64], f64)> = points.iter().map(|(b, _)| (*b, 0.0)).collect();
                chunk_values(&points, may_share, |points, out| self.rows.values(points, out))
            }
            PartKind::Case { .. } => {
                let points: Vec<(&[f64], [f64; 2])> =
                    points.iter().map(|(b, natural)| (*b, self.own(natural))).collect();
                chunk_values(&points, may_share, |points, out| self.rows.case_values(points, out))
            }
        };
        sums.iter_mut().zip(out).for_each(|(sum, value)| *sum += value);
    }

    fn add_sums(&self, beta: &[f64], natural: &[f64], hessian: bool, sums: &mut CaseDerivatives) {
        let found = match self.kind {
            PartKind::Case { .. } => self.rows.case_sums(beta, self.own(natural), hessian),
            PartKind::Poisson if hessian => {
                let (at, _) = self.rows.expand(beta, 0.0);
                without_own(at)
            }
            PartKind::Poisson => {
                let mut gradient = vec![0.0; beta.len()];
                let (value, _) = self.rows.gradient(beta, 0.0, &mut gradient);
                without_own(Expansion { value, gradient, hessian: Matrix::zeros(0, 0) })
            }
        };
        sums.take(&found, self.kind, hessian);
    }
}

fn without_own(at: Expansion) -> CaseSums {
    let Expansion { value, gradient, hessian } = at;
    let cross = [Vec::new(), Vec::new()];
    CaseSums { value, gradient, hessian, own: [0.0; 2], own_bend: [0.0; 3], cross }
}

/// The values of all parts at these points, one after the other.
pub(super) fn values(
    parts: &[CasePart],
    points: &[(&[f64], Vec<f64>)],
    may_share: bool,
) -> Vec<f64> {
    let mut sums = vec![0.0; points.len()];
    parts.iter().for_each(|part| part.add_values(points, may_share, &mut sums));
    sums
}

/// A log-likelihood and its derivatives in β and in the natural own parameters: cutpoints, not the logarithms of the gaps
/// between them.
#[derive(Debug, Clone)]
pub(super) struct CaseDerivatives {
    pub value: f64,
    pub gradient: Vec<f64>,
    pub hessian: Matrix,
    pub own: Vec<f64>,
    pub own_bend: Matrix,
    /// Per own parameter, with every coefficient.
    pub cross: Vec<Vec<f64>>,
}

impl CaseDerivatives {
    fn zeros(columns: usize, own: usize, hessian: bool) -> CaseDerivatives {
        let second = if hessian { columns } else { 0 };
        CaseDerivatives {
            value: 0.0,
            gradient: vec![0.0; columns],
            hessian: Matrix::zeros(second, second),
            own: vec![0.0; own],
            own_bend: Matrix::zeros(own, own),
            cross: vec![vec![0.0; second]; own],
        }
    }

    /// Of all parts of a chunk.
    pub fn of(parts: &[CasePart], beta: &[f64], natural: &[f64], hessian: bool) -> CaseDerivatives {
        let mut sums = CaseDerivatives::zeros(beta.len(), natural.len(), hessian);
        parts.iter().for_each(|part| part.add_sums(beta, natural, hessian, &mut sums));
        sums
    }

    fn take(&mut self, found: &CaseSums, kind: PartKind, hessian: bool) {
        self.value += found.value;
        add(&mut self.gradient, &found.gradient);
        if hessian {
            self.hessian.add_scaled(1.0, &found.hessian);
        }
        let PartKind::Case { own } = kind else { return };
        for (k, place) in own.into_iter().enumerate() {
            let Some(place) = place else { continue };
            self.own[place] += found.own[k];
            self.own_bend[(place, place)] += found.own_bend[2 * k];
            if hessian {
                add(&mut self.cross[place], &found.cross[k]);
            }
        }
        if let [Some(a), Some(b)] = own {
            self.own_bend[(a, b)] += found.own_bend[1];
            self.own_bend[(b, a)] += found.own_bend[1];
        }
    }

    /// The sum of all chunks', in their order.
    pub fn total(all: Vec<CaseDerivatives>) -> Option<CaseDerivatives> {
        let mut value = Compensated::default();
        all.iter().for_each(|part| value.add(part.value));
        let mut sum = all.into_iter().reduce(|mut sum, part| {
            add(&mut sum.gradient, &part.gradient);
            sum.hessian.add_scaled(1.0, &part.hessian);
            add(&mut sum.own, &part.own);
            sum.own_bend.add_scaled(1.0, &part.own_bend);
            sum.cross.iter_mut().zip(&part.cross).for_each(|(sum, more)| add(sum, more));
            sum
        })?;
        sum.value = value.value();
        Some(sum)
    }

    /// Adds what is known whatever the predictors are.
    pub fn add_known(&mut self, known: &Known, family: Family, natural: &[f64]) {
        let found = known.expand(family, natural);
        self.value += found[0];
        for k in 0..self.own.len().min(2) {
            self.own[k] += found[1 + k];
            self.own_bend[(k, k)] += found[3 + 2 * k];
        }
    }

    /// From cutpoints to the first of them and the logarithms of the gaps.
    pub fn in_gaps(mut self, family: Family, gaps: &[f64]) -> CaseDerivatives {
        if !family.is_ordinal() {
            return self;
        }
        let m = gaps.len();
        // ∂cₖ/∂γⱼ for k ≥ j.
        let step: Vec<f64> =
            gaps.iter().enumerate().map(|(j, g)| if j == 0 { 1.0 } else { exp(*g) }).collect();
        let tail = |values: &dyn Fn(usize) -> f64, j: usize| (j..m).map(values).sum::<f64>();
        let slopes: Vec<f64> = (0..m).map(|j| step[j] * tail(&|k| self.own[k], j)).collect();
        let mut bends = Matrix::zeros(m, m);
        for i in 0..m {
            for j in 0..=i {
                let inner = |k: usize| tail(&|l| self.own_bend[(k, l)], j);
                let mut bend = step[i] * step[j] * tail(&inner, i);
                if i == j && j > 0 {
                    bend += slopes[j];
                }
                (bends[(i, j)], bends[(j, i)]) = (bend, bend);
            }
        }
        let columns = self.cross.first().map_or(0, Vec::len);
        let cross = |j: usize| -> Vec<f64> {
            (0..columns).map(|c| step[j] * tail(&|k| self.cross[k][c], j)).collect()
        };
        let crosses = (0..m).map(cross).collect();
        (self.own, self.own_bend, self.cross) = (slopes, bends, crosses);
        self
    }

    /// The gradient in the coefficients and the own parameters that are free.
    pub fn write_gradient(&self, free: &[bool], gradient: &mut [f64]) {
        let own = self.own.iter().zip(free).filter(|(_, free)| **free).map(|(own, _)| own);
        gradient.iter_mut().zip(self.gradient.iter().chain(own)).for_each(|(out, g)| *out = *g);
    }

    /// The expansion in the coefficients and the own parameters that are free.
    pub fn expansion(&self, free: &[bool]) -> Expansion {
        let p = self.gradient.len();
        let own: Vec<usize> = (0..free.len()).filter(|&k| free[k]).collect();
        let mut out = Expansion::zeros(p + own.len());
        out.value = self.value;
        self.write_gradient(free, &mut out.gradient);
        for i in 0..p {
            out.hessian.row_mut(i)[..p].copy_from_slice(self.hessian.row(i));
        }
        for (k, &a) in own.iter().enumerate() {
            for (i, &mixed) in self.cross[a].iter().enumerate() {
                (out.hessian[(i, p + k)], out.hessian[(p + k, i)]) = (mixed, mixed);
            }
            for (l, &b) in own.iter().enumerate() {
                out.hessian[(p + k, p + l)] = self.own_bend[(a, b)];
            }
        }
        out
    }
}

/// What laws take in the place of free and fixed own parameters: the same numbers within bounds, or cutpoints in the
/// place of their gaps' logarithms. Also those numbers within bounds.
pub(super) fn natural(family: Family, own: &[f64]) -> (Vec<f64>, Vec<f64>) {
    if !family.is_ordinal() {
        let bounded: Vec<f64> = own.iter().map(|a| a.clamp(-OWN, OWN)).collect();
        return (bounded.clone(), bounded);
    }
    let first = |j: usize, g: f64| if j == 0 { g } else { g.clamp(-OWN, OWN) };
    let gaps: Vec<f64> = own.iter().enumerate().map(|(j, g)| first(j, *g)).collect();
    let mut cut = 0.0;
    let next = |(j, g): (usize, &f64)| {
        cut += if j == 0 { *g } else { exp(*g) };
        cut
    };
    (gaps.iter().enumerate().map(next).collect(), gaps)
}

/// The constants at these own parameters.
pub(super) fn known_value(known: &Known, family: Family, natural: &[f64]) -> f64 {
    known.expand(family, natural)[0]
}

fn add(sums: &mut [f64], more: &[f64]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}
