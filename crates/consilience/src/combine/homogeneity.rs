//! Do the shards tell the same story?

use crate::math::special::chi_square_tail;
use crate::math::{Cholesky, Matrix, dot};
use crate::{Level, Warning};

/// The chance of a false alarm over all shards together.
const LEVEL: f64 = 0.001;

/// The fewest rows per parameter on which a score is near enough to normal to be tested.
const ROWS_PER_PARAMETER: f64 = 50.0;

/// Warns of every shard whose score at the consensus is further off than chance allows.
///
/// With g_s and H_s the shard's gradient and information at the consensus and Λ the total
/// information, homogeneous shards have g_s ~ N(0, H_s − H_sΛ⁻¹H_s): a score test, the same number as
/// the χ² of μ_s − μ with covariance Σ_s − Λ⁻¹. Bonferroni over the shards. Shards with few rows are
/// passed over: their scores are too skewed for a test so far out in the tail.
pub fn warnings(shards: &[(Vec<f64>, Matrix)], rows: &[f64], total: &Cholesky) -> Vec<Warning> {
    let count = shards.len();
    if count < 2 {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    for (s, (gradient, information)) in shards.iter().enumerate() {
        if rows[s] < ROWS_PER_PARAMETER * gradient.len() as f64 {
            continue;
        }
        let (statistic, df) = score_test(gradient, information, total);
        if df > 0.0 && chi_square_tail(statistic, df) < LEVEL / count as f64 {
            let message = format!(
                "disagrees with the other shards (χ² = {statistic:.0} on {df:.0} degrees of freedom)"
            );
            let advice = "look at how its rows differ; a term for the shard's origin may be missing from the models";
            let warning = Warning::new(Level::Caution, "heterogeneous", message, advice);
            warnings.push(warning.shard(s).value(statistic));
        }
    }
    warnings
}

/// The score statistic and its degrees of freedom, over the directions in which the shard has
/// some, but not all, of the information.
fn score_test(gradient: &[f64], information: &Matrix, total: &Cholesky) -> (f64, f64) {
    let d = gradient.len();
    // In coordinates in which the total information is the unit matrix.
    let white = total.solve_lower(gradient);
    let half = Matrix::from_rows(
        d,
        d,
        (0..d).flat_map(|i| total.solve_lower(information.row(i))).collect(),
    )
    .transpose();
    let inner: Vec<f64> = (0..d).flat_map(|i| total.solve_lower(half.row(i))).collect();
    let (shares, directions) = Matrix::from_rows(d, d, inner).symmetric_eigen();
    let (mut statistic, mut df) = (0.0, 0.0);
    for (k, &share) in shares.iter().enumerate() {
        let variance = share * (1.0 - share);
        if variance > 1e-6 {
            statistic += dot(&white, directions.row(k)).powi(2) / variance;
            df += 1.0;
        }
    }
    (statistic, df)
}
