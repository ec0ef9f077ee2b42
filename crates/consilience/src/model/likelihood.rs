//! The likelihood of one shard's rows under one model.

use super::begun::Begun;
use super::cases::{self, CasePart, Known};
use super::chunks::{Away, Chunks, KeptRows};
use super::multinomial::{self, ClassRows, Coefficients};
use super::piece::{DistinctCounts, Piece, PieceBody, has_large_counts};
use crate::data::{Design, ShardData};
use crate::kernel::{Extra, Kernel, Rows};
use crate::math::{Compensated, Matrix};
use crate::model::{Centred, Family, Gaussian, Model};
use crate::target::Expansion;
use crate::{Error, Result};
use libm::log;
use rayon::prelude::*;

/// log p(y_s|θ) for θ = the free coefficients, then the family's own parameter if it is free.
#[derive(Debug)]
pub struct Likelihood {
    /// Observations: rows, each counted with its weight.
    pub observations: f64,
    /// Distinct rows that an evaluation visits.
    pub distinct: usize,
    coefficients: usize,
    /// The family's own parameters, where they are held fixed.
    own: Vec<Option<f64>>,
    body: LikelihoodBody,
}

impl KeptRows for Rows {
    fn of(piece: Piece) -> Option<Rows> {
        piece.into_rows()
    }
}

impl KeptRows for Vec<CasePart> {
    fn of(piece: Piece) -> Option<Vec<CasePart>> {
        piece.into_parts()
    }
}

impl KeptRows for Vec<ClassRows> {
    fn of(piece: Piece) -> Option<Vec<ClassRows>> {
        piece.into_classes()
    }
}

#[derive(Debug)]
enum LikelihoodBody {
    Gaussian(Gaussian),
    Rows { chunks: Chunks<Rows>, constant: f64, outcomes: Option<DistinctCounts> },
    Cases { family: Family, chunks: Chunks<Vec<CasePart>>, known: Known },
    Classes { chunks: Chunks<Vec<ClassRows>>, shape: Coefficients },
}

/// The log dispersions that are told apart. Below, doubles end; above, the likelihood has reached its limit,
/// the Poisson, long before, and there has to be room for a product with the number of rows.
const DISPERSIONS: (f64, f64) = (-700.0, 600.0);

/// Points that one task takes at a time: enough that rows in cache serve many of them.
const POINTS: usize = 128;

impl Likelihood {
    /// Builds the likelihood of these rows. `fixed[j]` holds coefficient j (of a multinomial model class after class),
    /// `fixed_extra` the family's own parameter. `kernel` is whose instructions evaluations use.
    pub fn new(
        family: Family,
        design: Design,
        fixed: &[Option<f64>],
        fixed_extra: Option<f64>,
        kernel: Kernel,
    ) -> Likelihood {
        let mut own = vec![None; own_count(family, &design)];
        if let Some(first) = own.first_mut() {
            *first = fixed_extra;
        }
        Likelihood::with_own(family, design, fixed, &own, kernel)
    }

    /// The same with the values of those of the family's own parameters that are held fixed.
    pub fn with_own(
        family: Family,
        design: Design,
        fixed: &[Option<f64>],
        own: &[Option<f64>],
        kernel: Kernel,
    ) -> Likelihood {
        let weight = |i: usize| design.weights.as_ref().map_or(1.0, |w| w[i]);
        let total = design.response.iter().enumerate().map(|(i, y)| weight(i) * y).sum();
        let large = has_large_counts(family, total);
        let piece = Piece::new(family, design, fixed, large, kernel);
        Likelihood::of_pieces(vec![piece], family, own.to_vec(), None)
    }

    /// The likelihood of a model on a shard's rows, all of them its own: see [`Begun`].
    pub fn of(
        model: &Model,
        data: &ShardData,
        room: &(dyn Fn(usize) -> bool + Sync),
    ) -> Result<Likelihood> {
        Begun::new(model, data, None)?.finish(room)
    }

    pub(super) fn of_pieces(
        pieces: Vec<Piece>,
        family: Family,
        own: Vec<Option<f64>>,
        away: Option<Away>,
    ) -> Likelihood {
        let observations = pieces.iter().map(|p| p.observations).sum();
        let distinct = pieces.iter().map(|p| p.distinct).sum();
        let coefficients = pieces[0].coefficients;
        let (mut parts, mut held, mut cases) = (Vec::new(), Vec::new(), Vec::new());
        let mut all_known = Known::default();
        let (mut classes, mut coefficients_of) = (Vec::new(), None);
        let (mut constant, mut outcomes) = (0.0, None);
        for piece in pieces {
            match piece.body {
                PieceBody::Gaussian(part) => parts.push(part),
                PieceBody::Cases { parts, known } => {
                    cases.push(parts);
                    all_known.add(&known);
                }
                PieceBody::Classes { rows, shape } => {
                    classes.push(rows);
                    coefficients_of.get_or_insert(shape);
                }
                PieceBody::Rows { rows, constant: own, outcomes: theirs } => {
                    held.push(rows);
                    constant += own;
                    if let Some(theirs) = theirs {
                        outcomes.get_or_insert_with(DistinctCounts::default).add(&theirs);
                    }
                }
            }
        }
        if let Some(shape) = coefficients_of {
            let body = LikelihoodBody::Classes { chunks: Chunks::new(classes, away), shape };
            return Likelihood { observations, distinct, coefficients, own, body };
        }
        let body = match parts.is_empty() {
            true if !cases.is_empty() => {
                LikelihoodBody::Cases { family, chunks: Chunks::new(cases, away), known: all_known }
            }
            false => {
                let free: Vec<usize> = (0..coefficients).collect();
                LikelihoodBody::Gaussian(Centred::merge(parts.iter()).gaussian(&free, &[]))
            }
            true => LikelihoodBody::Rows { chunks: Chunks::new(held, away), constant, outcomes },
        };
        Likelihood { observations, distinct, coefficients, own, body }
    }

    /// The Gaussian likelihood of rows that are known by their sufficient statistics.
    pub fn of_gaussian(gaussian: Gaussian, fixed_log_sd: Option<f64>) -> Likelihood {
        let coefficients = gaussian.coefficients();
        Likelihood {
            observations: gaussian.observations(),
            distinct: coefficients + 1,
            coefficients,
            own: vec![fixed_log_sd],
            body: LikelihoodBody::Gaussian(gaussian),
        }
    }

    /// Why rows could not be fetched again, if that happened: evaluations since then are worth nothing.
    pub fn take_failure(&self) -> Option<Error> {
        match &self.body {
            LikelihoodBody::Gaussian(_) => None,
            LikelihoodBody::Rows { chunks, .. } => chunks.take_failure(),
            LikelihoodBody::Cases { chunks, .. } => chunks.take_failure(),
            LikelihoodBody::Classes { chunks, .. } => chunks.take_failure(),
        }
    }

    /// X'X over the free coefficients.
    pub fn gram(&self) -> Matrix {
        match &self.body {
            LikelihoodBody::Gaussian(gaussian) => gaussian.gram(),
            LikelihoodBody::Classes { chunks, shape } => multinomial::gram(chunks, shape),
            LikelihoodBody::Rows { chunks, .. } => {
                let mut sum = Matrix::zeros(self.coefficients, self.coefficients);
                for part in chunks.map(|rows, _| rows.gram()).unwrap_or_default() {
                    sum.add_scaled(1.0, &part);
                }
                sum
            }
            LikelihoodBody::Cases { chunks, .. } => {
                let mut sum = Matrix::zeros(self.coefficients, self.coefficients);
                let grams = |parts: &Vec<CasePart>| -> Vec<Matrix> {
                    parts.iter().map(|part| part.rows.gram()).collect()
                };
                for part in chunks.map(|parts, _| grams(parts)).unwrap_or_default().iter().flatten()
                {
                    sum.add_scaled(1.0, part);
                }
                sum
            }
        }
    }

    /// The family, where rows are of several kinds or classes.
    pub fn cases(&self) -> Option<Family> {
        match &self.body {
            LikelihoodBody::Cases { family, .. } => Some(*family),
            LikelihoodBody::Classes { .. } => Some(Family::Multinomial),
            _ => None,
        }
    }

    /// The distinct rows in memory, chunk after chunk; `None` for a Gaussian, which does not keep them, for rows of
    /// several kinds, and where there was no room for all.
    pub fn rows(&self) -> Option<Vec<&Rows>> {
        match &self.body {
            LikelihoodBody::Rows { chunks, .. } => chunks.held(),
            _ => None,
        }
    }

    /// The Gaussian itself, and log σ where it is held fixed; `None` for other families.
    pub fn gaussian(&self) -> Option<(&Gaussian, Option<f64>)> {
        match &self.body {
            LikelihoodBody::Gaussian(gaussian) => Some((gaussian, self.fixed_extra())),
            _ => None,
        }
    }

    /// The number of free parameters.
    pub fn dim(&self) -> usize {
        self.coefficients
            + match &self.body {
                LikelihoodBody::Cases { .. } => self.own.iter().filter(|own| own.is_none()).count(),
                _ => usize::from(self.has_free_extra()),
            }
    }

    /// The value of the only own parameter, if it is held fixed.
    fn fixed_extra(&self) -> Option<f64> {
        self.own.first().copied().flatten()
    }

    fn has_free_extra(&self) -> bool {
        self.fixed_extra().is_none()
            && match &self.body {
                LikelihoodBody::Gaussian(_) => true,
                LikelihoodBody::Rows { outcomes, .. } => outcomes.is_some(),
                LikelihoodBody::Cases { .. } | LikelihoodBody::Classes { .. } => false,
            }
    }

    /// The coefficients, and all own parameters, those held fixed among them.
    fn all_own<'a>(&self, theta: &'a [f64]) -> (&'a [f64], Vec<f64>) {
        let (beta, free) = theta.split_at(self.coefficients);
        let mut free = free.iter();
        let own = |fixed: &Option<f64>| fixed.or_else(|| free.next().copied()).unwrap_or(0.0);
        (beta, self.own.iter().map(own).collect())
    }

    /// Which own parameters are free.
    fn free_own(&self) -> Vec<bool> {
        self.own.iter().map(Option::is_none).collect()
    }

    /// Sums over rows of several kinds.
    fn case_sums(
        &self,
        (family, chunks, known): (Family, &Chunks<Vec<CasePart>>, &Known),
        theta: &[f64],
        hessian: bool,
    ) -> Option<cases::CaseDerivatives> {
        let (beta, own) = self.all_own(theta);
        let (natural, gaps) = cases::natural(family, &own);
        let parts =
            chunks.map(|parts, _| cases::CaseDerivatives::of(parts, beta, &natural, hessian));
        let mut sums = cases::CaseDerivatives::total(parts?)?;
        sums.add_known(known, family, &natural);
        Some(sums.in_gaps(family, &gaps))
    }

    /// The coefficients, and the family's own parameter (0 if it has none).
    fn parts<'a>(&self, theta: &'a [f64]) -> (&'a [f64], f64) {
        let (beta, extra) = theta.split_at(self.coefficients);
        (beta, extra.first().copied().or(self.fixed_extra()).unwrap_or(0.0))
    }

    /// log p(y|θ) at each of these points. NaN only where a linear predictor overflows, or rows could not
    /// be fetched.
    pub fn values(&self, thetas: &[&[f64]], out: &mut [f64]) {
        if let LikelihoodBody::Cases { family, chunks, known } = &self.body {
            let mut points: Vec<(&[f64], Vec<f64>)> = Vec::new();
            for theta in thetas {
                let (beta, own) = self.all_own(theta);
                points.push((beta, cases::natural(*family, &own).0));
            }
            let parts = chunks.map(|parts, may_share| cases::values(parts, &points, may_share));
            let Some(parts) = parts else { return out.fill(f64::NAN) };
            for (k, (out, (_, natural))) in out.iter_mut().zip(&points).enumerate() {
                let sum = total(parts.iter().map(|part| part[k]));
                *out = sum + cases::known_value(known, *family, natural);
            }
            return;
        }
        if let LikelihoodBody::Classes { chunks, shape } = &self.body {
            return match multinomial::values(chunks, shape, thetas) {
                Some(values) => out.copy_from_slice(&values),
                None => out.fill(f64::NAN),
            };
        }
        let points: Vec<(&[f64], f64)> = thetas.iter().map(|theta| self.parts(theta)).collect();
        match &self.body {
            LikelihoodBody::Gaussian(gaussian) => {
                for (out, (beta, log_sd)) in out.iter_mut().zip(points) {
                    *out = gaussian.value(beta, log_sd);
                }
            }
            LikelihoodBody::Rows { chunks, constant, outcomes } => {
                let clamp = |(beta, a): (_, f64)| (beta, a.clamp(DISPERSIONS.0, DISPERSIONS.1));
                let points: Vec<(&[f64], f64)> = points.into_iter().map(clamp).collect();
                let parts = chunks.map(|rows, may_share| values(rows, &points, may_share));
                let Some(parts) = parts else { return out.fill(f64::NAN) };
                for (k, (out, (_, a))) in out.iter_mut().zip(&points).enumerate() {
                    let mut sum = Compensated::default();
                    parts.iter().for_each(|part| sum.add(part[k]));
                    let own = outcomes.as_ref().map_or(0.0, |o| o.expand(*a)[0]);
                    *out = sum.value() + own + constant;
                }
            }
            LikelihoodBody::Cases { .. } | LikelihoodBody::Classes { .. } => {}
        }
    }

    /// log p(y|θ), its gradient written to `gradient`.
    pub fn gradient(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let (beta, extra) = self.parts(theta);
        let (chunks, constant, outcomes) = match &self.body {
            LikelihoodBody::Gaussian(gaussian) => return gaussian.gradient(beta, extra, gradient),
            LikelihoodBody::Rows { chunks, constant, outcomes } => (chunks, constant, outcomes),
            LikelihoodBody::Classes { chunks, shape } => {
                let Some(at) = multinomial::expand(chunks, shape, theta, false) else {
                    return f64::NAN;
                };
                gradient.copy_from_slice(&at.gradient);
                return at.value;
            }
            LikelihoodBody::Cases { family, chunks, known } => {
                let Some(sums) = self.case_sums((*family, chunks, known), theta, false) else {
                    return f64::NAN;
                };
                sums.write_gradient(&self.free_own(), gradient);
                return sums.value;
            }
        };
        let a = extra.clamp(DISPERSIONS.0, DISPERSIONS.1);
        let (slopes, own_slope) = gradient.split_at_mut(self.coefficients);
        let (mut value, mut slope) = match chunks.only() {
            // What a chain calls most.
            Some(rows) => rows.gradient(beta, a, slopes),
            None => {
                let parts = chunks.map(|rows, _| {
                    let mut slopes = vec![0.0; beta.len()];
                    let (value, slope) = rows.gradient(beta, a, &mut slopes);
                    (value, slope, slopes)
                });
                let Some(parts) = parts else { return f64::NAN };
                slopes.fill(0.0);
                parts.iter().for_each(|part| add(slopes, &part.2));
                (total(parts.iter().map(|p| p.0)), parts.iter().map(|p| p.1).sum())
            }
        };
        value += constant;
        if let Some(outcomes) = outcomes {
            let own = outcomes.expand(a);
            value += own[0];
            slope += own[1];
        }
        if let Some(last) = own_slope.first_mut() {
            *last = slope;
        }
        value
    }

    /// log p(y|θ) with gradient and Hessian in θ.
    pub fn expand(&self, theta: &[f64]) -> Expansion {
        let (beta, extra) = self.parts(theta);
        match &self.body {
            LikelihoodBody::Gaussian(gaussian) => {
                gaussian.expand(beta, extra, self.has_free_extra())
            }
            LikelihoodBody::Classes { chunks, shape } => {
                multinomial::expand(chunks, shape, theta, true).unwrap_or_else(|| Expansion {
                    value: f64::NAN,
                    ..Expansion::zeros(theta.len())
                })
            }
            LikelihoodBody::Cases { family, chunks, known } => {
                match self.case_sums((*family, chunks, known), theta, true) {
                    Some(sums) => sums.expansion(&self.free_own()),
                    None => Expansion { value: f64::NAN, ..Expansion::zeros(theta.len()) },
                }
            }
            LikelihoodBody::Rows { chunks, constant, outcomes } => {
                let a = extra.clamp(DISPERSIONS.0, DISPERSIONS.1);
                let parts = chunks.map(|rows, _| rows.expand(beta, a));
                let Some((mut out, in_extra)) = parts.and_then(sum_expansions) else {
                    return Expansion { value: f64::NAN, ..Expansion::zeros(theta.len()) };
                };
                out.value += constant;
                if let Some(outcomes) = outcomes {
                    let own = outcomes.expand(a);
                    out.value += own[0];
                    if self.has_free_extra() {
                        let (slope, bend) = (in_extra.slope + own[1], in_extra.bend + own[2]);
                        out = append(out, &in_extra.cross, slope, bend);
                    }
                }
                out
            }
        }
    }
}

/// The rows' part of the log-likelihood at each point. No point's value depends on its company.
fn values(rows: &Rows, points: &[(&[f64], f64)], may_share: bool) -> Vec<f64> {
    chunk_values(points, may_share, |points, out| rows.values(points, out))
}

/// Values at points, which are shared out among threads where there are many.
pub(super) fn chunk_values<P: Sync>(
    points: &[P],
    may_share: bool,
    work: impl Fn(&[P], &mut [f64]) + Sync,
) -> Vec<f64> {
    let mut out = vec![0.0; points.len()];
    if may_share && points.len() > POINTS {
        let tasks = out.par_chunks_mut(POINTS).zip(points.par_chunks(POINTS));
        tasks.for_each(|(out, points)| work(points, out));
    } else {
        work(points, &mut out);
    }
    out
}

/// How many parameters of its own a family has over these outcomes.
fn own_count(family: Family, design: &Design) -> usize {
    let levels = design.second.as_ref().and_then(|s| s.first()).copied().unwrap_or(2.0);
    if family.is_ordinal() { (levels as usize).max(2) - 1 } else { family.owns().len() }
}

/// The sum of all chunks' expansions and of what they add in the family's own parameter.
fn sum_expansions(parts: Vec<(Expansion, Extra)>) -> Option<(Expansion, Extra)> {
    let value = total(parts.iter().map(|(part, _)| part.value));
    let (mut sum, extra) = parts.into_iter().reduce(|mut sum, part| {
        sum.0.add(&part.0);
        sum.1.slope += part.1.slope;
        sum.1.bend += part.1.bend;
        add(&mut sum.1.cross, &part.1.cross);
        sum
    })?;
    sum.value = value;
    Some((sum, extra))
}

fn total(values: impl Iterator<Item = f64>) -> f64 {
    let mut sum = Compensated::default();
    values.for_each(|value| sum.add(value));
    sum.value()
}

fn add(sums: &mut [f64], more: &[f64]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// An expansion in (β, a) from one in β.
pub(super) fn append(inner: Expansion, cross: &[f64], slope: f64, bend: f64) -> Expansion {
    let p = cross.len();
    let mut out = Expansion::zeros(p + 1);
    out.value = inner.value;
    out.gradient[..p].copy_from_slice(&inner.gradient);
    out.gradient[p] = slope;
    for (i, &mixed) in cross.iter().enumerate() {
        out.hessian.row_mut(i)[..p].copy_from_slice(inner.hessian.row(i));
        out.hessian[(i, p)] = mixed;
        out.hessian[(p, i)] = mixed;
    }
    out.hessian[(p, p)] = bend;
    out
}

/// log of the mean of the outcome on the link's scale, for a starting point of the intercept.
pub fn link_of_mean(family: Family, mean: f64, observations: f64) -> f64 {
    // Half an observation keeps a mean of 0 or 1 away from infinity.
    let edge = 0.5 / observations.max(1.0);
    match family {
        Family::Logistic | Family::Probit => {
            let p = mean.clamp(edge, 1.0 - edge);
            let logit = log(p / (1.0 - p));
            if family == Family::Probit { logit / 1.6 } else { logit }
        }
        Family::Beta => log(mean / (1.0 - mean)),
        Family::Gaussian | Family::StudentT => mean,
        Family::CumulativeLogit | Family::CumulativeProbit | Family::Multinomial => 0.0,
        Family::Poisson | Family::NegativeBinomial | Family::ZeroInflatedPoisson => {
            log(mean.max(edge))
        }
        _ => log(mean.max(f64::MIN_POSITIVE)),
    }
}
