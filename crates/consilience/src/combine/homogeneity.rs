//! Do the shards tell the same story?

use crate::math::special::chi_square_tail;
use crate::math::spectrum::spectrum_along;
use crate::math::{Cholesky, Matrix, dot};
use crate::target::Expansion;
use crate::{Level, Warning};
use rayon::prelude::*;
use serde::Serialize;

/// The chance of a false alarm over all shards together.
const LEVEL: f64 = 0.001;

/// The fewest rows per parameter on which a score is near enough to normal to be tested.
const ROWS_PER_PARAMETER: f64 = 50.0;

/// The share of the whole's information beyond which a shard has nothing to be compared with.
const ALL: f64 = 1e-6;

/// How one shard agrees with the others.
///
/// With g and H the shard's gradient and information at the consensus and Λ the total information,
/// homogeneous shards have g ~ N(0, H − HΛ⁻¹H): a score test, the same number as the χ² of
/// μ_s − μ = H⁻¹g with covariance H⁻¹ − Λ⁻¹.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agreement {
    /// The χ² of all parameters together.
    pub chi_square: f64,
    /// Its degrees of freedom: the directions in which the shard has some, but not all, of the
    /// information.
    pub degrees_of_freedom: f64,
    /// The chance of a χ² this large; `None` where the shard has too few rows for that to mean much.
    pub p_value: Option<f64>,
    /// The χ² of each free parameter on its own, with one degree of freedom; `None` where the shard
    /// has all or nothing to say about it.
    pub parameters: Vec<Option<f64>>,
}

/// A shard's gradient and information (minus its Hessian) at the consensus.
pub(super) type Score<'a> = (Vec<f64>, &'a Matrix);

/// The scores of shards whose log densities have these expansions at the consensus; the Hessians change
/// their sign.
pub(super) fn scores(shards: &mut [Expansion]) -> Vec<Score<'_>> {
    shards.iter_mut().for_each(|at| at.hessian.scale(-1.0));
    shards.iter().map(|at| (at.gradient.clone(), &at.hessian)).collect()
}

/// How each shard agrees with the others; empty if there is only one.
pub(super) fn agreements(shards: &[Score<'_>], rows: &[f64], total: &Cholesky) -> Vec<Agreement> {
    if shards.len() < 2 {
        return Vec::new();
    }
    let inverse = total.inverse();
    let variances = inverse.diagonal();
    let whole = total.lower().product(&total.lower().transpose());
    let of = |((gradient, information), rows): (&Score<'_>, &f64)| {
        let own = Cholesky::new(information);
        let (chi_square, degrees_of_freedom) =
            score_test(gradient, information, own.as_ref(), (&whole, &inverse), total);
        let enough = *rows >= ROWS_PER_PARAMETER * gradient.len() as f64;
        let p_value = (enough && degrees_of_freedom > 0.0)
            .then(|| chi_square_tail(chi_square, degrees_of_freedom));
        let parameters = one_by_one(gradient, own.as_ref(), &variances);
        Agreement { chi_square, degrees_of_freedom, p_value, parameters }
    };
    shards.par_iter().zip(rows).map(of).collect()
}

/// Warns of every shard that is further off than chance allows, Bonferroni over the shards. `names`
/// are those of the free parameters.
pub(super) fn warnings(shards: &[Agreement], names: &[&str]) -> Vec<Warning> {
    let count = shards.len() as f64;
    let mut warnings = Vec::new();
    for (s, shard) in shards.iter().enumerate() {
        if !shard.p_value.is_some_and(|p| p < LEVEL / count) {
            continue;
        }
        let known = shard
            .parameters
            .iter()
            .zip(names)
            .filter_map(|(chi, name)| Some((chi.as_ref()?, name)));
        let most = known.max_by(|a, b| a.0.total_cmp(b.0));
        let where_most = most.map_or(String::new(), |(chi, name)| {
            format!("; most in `{name}`, {:.1} standard deviations off", chi.sqrt())
        });
        let message = format!(
            "disagrees with the other shards (χ² = {:.0} on {:.0} degrees of freedom{where_most})",
            shard.chi_square, shard.degrees_of_freedom
        );
        let advice = "look at how its rows differ; a term for the shard's origin may be missing from the models";
        let warning = Warning::new(Level::Caution, "heterogeneous", message, advice);
        warnings.push(warning.shard(s).value(shard.chi_square));
    }
    warnings
}

/// The χ² of each coordinate of μ_s − μ = H⁻¹g.
fn one_by_one(gradient: &[f64], own: Option<&Cholesky>, total: &[f64]) -> Vec<Option<f64>> {
    let Some(factor) = own else { return vec![None; gradient.len()] };
    let (offset, own) = (factor.solve(gradient), factor.inverse_diagonal());
    offset
        .iter()
        .zip(own.iter().zip(total))
        .map(|(d, (own, total))| {
            let variance = own - total;
            (variance > ALL * own).then(|| d * d / variance)
        })
        .collect()
}

/// The score statistic and its degrees of freedom, over the directions in which the shard has
/// some, but not all, of the information.
fn score_test(
    gradient: &[f64],
    information: &Matrix,
    own: Option<&Cholesky>,
    (whole, inverse): (&Matrix, &Matrix),
    total: &Cholesky,
) -> (f64, f64) {
    let d = gradient.len();
    // If H is well above 0 and well below Λ in every direction, no directions need to be found:
    // (H − HΛ⁻¹H)⁻¹ = H⁻¹ + (Λ − H)⁻¹.
    let least = 0.5 * (1.0 - (1.0 - 4.0 * ALL).sqrt());
    let combined = |a: f64, b: f64| {
        let mut sum = whole.clone();
        sum.scale(a);
        sum.add_scaled(b, information);
        Cholesky::new(&sum)
    };
    // The largest share is at most the sum of all of them, tr Λ⁻¹H, which is small for one of many shards.
    let is_below = || {
        dot(inverse.data(), information.data()) < 1.0 - least
            || combined(1.0 - least, -1.0).is_some()
    };
    if let Some(own) = own
        && combined(-least, 1.0).is_some()
        && is_below()
        && let Some(others) = combined(1.0, -1.0)
    {
        return (own.inverse_quadratic(gradient) + others.inverse_quadratic(gradient), d as f64);
    }
    // In coordinates in which the total information is the unit matrix.
    let white = total.solve_lower(gradient);
    let half = Matrix::from_rows(
        d,
        d,
        (0..d).flat_map(|i| total.solve_lower(information.row(i))).collect(),
    )
    .transpose();
    let inner: Vec<f64> = (0..d).flat_map(|i| total.solve_lower(half.row(i))).collect();
    let inner = Matrix::from_rows(d, d, inner);
    let (mut statistic, mut df) = (0.0, 0.0);
    for (share, along) in spectrum_along(&inner, &white) {
        let variance = share * (1.0 - share);
        if variance > ALL {
            statistic += along * along / variance;
            df += 1.0;
        }
    }
    (statistic, df)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares 0.3 and 0.6 of the information along two directions; then a third of which all is here.
    #[test]
    fn both_ways_give_the_same_statistic() {
        let (c, s) = (0.8, 0.6);
        let turn = |a: f64, b: f64| {
            vec![a * c * c + b * s * s, (a - b) * c * s, (a - b) * c * s, a * s * s + b * c * c]
        };
        let information = Matrix::from_rows(2, 2, turn(0.3, 0.6));
        let test = |gradient: &[f64], information: &Matrix| {
            let whole = Matrix::identity(gradient.len());
            let (own, unit) = (Cholesky::new(information), Cholesky::new(&whole).unwrap());
            score_test(gradient, information, own.as_ref(), (&whole, &whole), &unit)
        };
        let gradient = [0.5, -0.7];
        let along = [c * gradient[0] + s * gradient[1], -s * gradient[0] + c * gradient[1]];
        let expected = along[0].powi(2) / 0.21 + along[1].powi(2) / 0.24;
        let (statistic, df) = test(&gradient, &information);
        assert!((statistic - expected).abs() < 1e-12 && df == 2.0);

        let mut wider = Matrix::identity(3);
        for i in 0..2 {
            wider.row_mut(i)[..2].copy_from_slice(information.row(i));
        }
        let (statistic, df) = test(&[0.5, -0.7, 4.0], &wider);
        assert!((statistic - expected).abs() < 1e-12 && df == 2.0);
    }
}
