//! Columns that others determine.

use super::{Evidence, Setting};
use crate::math::Matrix;
use crate::model::Gaussian;
use crate::study::Combine;
use crate::{Level, Warning};

/// The code of the note.
pub(super) const CODE: &str = "rank-deficient";

/// What rounding may leave of a diagonal entry where nothing is.
const ROUNDING: f64 = 64.0 * f64::EPSILON;

/// Notes columns that other columns determine: legal, since priors are proper. `curvature` is −∇² of the
/// log posterior somewhere, summed over shards: a weighted X'X, to which priors add these numbers on the
/// diagonal. Where a prior leaves nothing to see of the data, nothing is said.
pub(super) fn rank_note(setting: &Setting, curvature: &Matrix, priors: &[f64]) -> Option<Warning> {
    let p = setting.surveys.first()?.nonzero.len();
    let kept: Vec<usize> = (0..p).filter(|j| !is_empty(setting, *j)).collect();
    of_kept(p, &kept, curvature, priors)
}

/// The same of a Gaussian likelihood, whose columns are around their means where there is an intercept or the like: a
/// column of 1.7e9 ± 0.01 would else not be told from the intercept.
pub(super) fn gaussian_note(setting: &Setting, gaussian: &Gaussian) -> Option<Warning> {
    let p = setting.surveys.first()?.nonzero.len();
    let (whole, centred) = (gaussian.gram(), gaussian.centred_gram());
    // Nothing is left of a column that is the same everywhere but for rounding: the intercept determines it.
    let varies = |j: usize| centred[(j, j)] > f64::EPSILON.powi(2) * whole[(j, j)];
    let kept: Vec<usize> = (0..p).filter(|j| !is_empty(setting, *j) && varies(*j)).collect();
    of_kept(p, &kept, &centred, &[])
}

/// Whether a column is 0 in all rows of all shards.
fn is_empty(setting: &Setting, column: usize) -> bool {
    setting.surveys.iter().all(|survey| survey.nonzero[column] == 0.0)
}

/// The note of a curvature, of whose p columns these are to be looked at; the others are determined.
fn of_kept(p: usize, kept: &[usize], curvature: &Matrix, priors: &[f64]) -> Option<Warning> {
    let mut missing = p - kept.len();
    let own = |j: usize| curvature[(j, j)] - priors.get(j).unwrap_or(&0.0);
    let blur = kept.iter().map(|&j| ROUNDING * curvature[(j, j)] / own(j));
    let blur = blur.fold(0.0, |most: f64, b| if b >= 0.0 { most.max(b) } else { f64::INFINITY });
    // Infinite too where a curvature is no number, or none is seen.
    if blur < 1e-6 {
        let scale: Vec<f64> = (0..p).map(|j| own(j).sqrt()).collect();
        let entry = |(i, j): (usize, usize)| {
            let value = if i == j { own(i) } else { curvature[(i, j)] };
            value / (scale[i] * scale[j])
        };
        let values = kept.iter().flat_map(|&i| kept.iter().map(move |&j| (i, j))).map(entry);
        let matrix = Matrix::from_rows(kept.len(), kept.len(), values.collect());
        if matrix.data().iter().any(|v| !v.is_finite()) {
            return None;
        }
        let least = blur.max(1e-11) * p as f64;
        // Where a law is not log-concave, the curvature can be negative along a direction that rows say much about.
        missing += matrix.symmetric_eigen().0.iter().filter(|v| v.abs() < least).count();
    }
    (missing > 0).then(|| {
        let message = format!("{missing} of {p} columns are determined by the others");
        let advice = "the priors settle such coefficients; leave columns out if that is not meant";
        Warning::new(Level::Note, CODE, message, advice).value(missing as f64)
    })
}

/// What the priors add to −∇² of the log posterior at a point, each with this share.
pub(super) fn prior_curvature(setting: &Setting, theta: &[f64], share: f64) -> Vec<f64> {
    let priors = setting.model.free_priors();
    priors.iter().zip(theta).map(|(prior, &x)| -share * prior.expand(x).2).collect()
}

/// The evidence of a combination that only fits shards, with a note by what these say of their modes.
pub(super) fn noted(mut evidence: Evidence, setting: &Setting) -> Evidence {
    let Some(summaries) = &evidence.summaries else { return evidence };
    if setting.options.combine == Combine::Exact {
        return evidence;
    }
    let d = setting.model.dim();
    let (mut curvature, mut priors) = (Matrix::zeros(d, d), vec![0.0; d]);
    for (summary, share) in summaries.iter().zip(setting.shares().unwrap_or_default()) {
        curvature.add_scaled(1.0, &summary.precision);
        let own = prior_curvature(setting, &summary.mode, share);
        priors.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
    }
    let note = rank_note(setting, &curvature, &priors);
    evidence.warnings.extend(note);
    evidence
}
