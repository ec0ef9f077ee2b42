//! Every family × prior: values against the plain formulas, gradients and Hessians against
//! differences, many points at once against one at a time.

use consilience::data::Design;
use consilience::kernel::Kernel;
use consilience::math::{Matrix, stream};
use consilience::model::{Family, Likelihood, Prior, Subposterior};
use consilience::{Expansion, Target};
use rand::RngExt;
use std::sync::Arc;

/// Those of one number a row and one own parameter at most; the others are in `families.rs`.
const FAMILIES: [Family; 5] =
    [Family::Gaussian, Family::Logistic, Family::Probit, Family::Poisson, Family::NegativeBinomial];

/// A design with a constant, a continuous column, a repeated one and a sparse one; offset, weights.
fn design(family: Family, rows: usize) -> Design {
    let mut rng = stream(5, 0, 0, "derivatives test");
    let mut columns = vec![Vec::new(); 4];
    let (mut response, mut offset, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..rows {
        let row = [1.0, 2.0 * rng.random::<f64>() - 1.0, (i % 3) as f64, f64::from(i % 5 == 0)];
        columns.iter_mut().zip(row).for_each(|(c, v)| c.push(v));
        let u: f64 = rng.random();
        response.push(match family {
            Family::Gaussian => 3.0 * u - 1.0,
            Family::Logistic | Family::Probit => f64::from(u < 0.4),
            // Some counts are large enough for the other formulas of log Γ.
            _ => (u * 8.0).floor() * if i % 11 == 0 { 20.0 } else { 1.0 },
        });
        offset.push(0.3 * rng.random::<f64>());
        weights.push(f64::from(i as u32 % 4));
    }
    Design { columns, response, second: None, offset: Some(offset), weights: Some(weights) }
}

/// The log-likelihood by its textbook formula, row after row.
fn plain(family: Family, design: &Design, theta: &[f64]) -> f64 {
    let log_factorial = |y: f64| libm::lgamma(y + 1.0);
    let mut sum = 0.0;
    for i in 0..design.response.len() {
        let y = design.response[i];
        let eta = design.offset.as_ref().unwrap()[i]
            + design.columns.iter().zip(theta).map(|(c, t)| c[i] * t).sum::<f64>();
        let term = match family {
            Family::Gaussian => {
                let sd = theta[4].exp();
                -0.5 * ((y - eta) / sd).powi(2) - sd.ln() - 0.5 * (2.0 * std::f64::consts::PI).ln()
            }
            Family::Logistic => y * eta - eta.exp().ln_1p(),
            Family::Probit => {
                let p = 0.5 * libm::erfc(-eta / 2f64.sqrt());
                if y == 1.0 { p.ln() } else { (1.0 - p).ln() }
            }
            Family::Poisson => y * eta - eta.exp() - log_factorial(y),
            _ => {
                let (r, mean) = (theta[4].exp(), eta.exp());
                libm::lgamma(y + r) - libm::lgamma(r) - log_factorial(y)
                    + r * (r / (r + mean)).ln()
                    + y * (mean / (r + mean)).ln()
            }
        };
        sum += design.weights.as_ref().unwrap()[i] * term;
    }
    sum
}

fn priors() -> [Prior; 4] {
    [
        Prior::Normal { mean: 0.2, sd: 1.5 },
        Prior::Laplace { mean: -0.1, scale: 0.8 },
        Prior::StudentT { df: 4.0, mean: 0.0, scale: 1.2 },
        Prior::StudentT { df: 1.0, mean: 0.1, scale: 0.7 },
    ]
}

fn target(family: Family, prior: Prior, share: f64) -> (Subposterior, Design) {
    let design = design(family, 101);
    let likelihood =
        Arc::new(Likelihood::new(family, design.clone(), &[None; 4], None, Kernel::Auto));
    let d = likelihood.dim();
    (Subposterior::new(likelihood, vec![prior; d], share, vec![0.0; d]), design)
}

const POINTS: [[f64; 5]; 3] =
    [[0.1, -0.4, 0.3, 0.7, 0.2], [-0.6, 0.9, 0.15, -1.1, -1.3], [0.02, 0.01, -0.2, 0.4, 2.1]];

fn near(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{what}: {a} is not {b}");
}

#[test]
fn values_follow_the_formulas() {
    for family in FAMILIES {
        for prior in priors() {
            let (target, design) = target(family, prior, 0.3);
            for point in POINTS {
                let theta = &point[..target.dim()];
                let log_prior: f64 = theta.iter().map(|&x| prior.log_density(x)).sum();
                let expected = plain(family, &design, theta) + 0.3 * log_prior;
                near(target.log_density(theta), expected, 1e-12, family.name());
            }
        }
    }
}

#[test]
fn gradients_and_hessians_match_differences() {
    let h = 1e-5;
    for family in FAMILIES {
        for prior in priors() {
            let (target, _) = target(family, prior, 0.3);
            let d = target.dim();
            for point in POINTS {
                let theta = &point[..d];
                let at = target.expand(theta);
                let mut gradient = vec![0.0; d];
                let value = target.log_density_gradient(theta, &mut gradient);
                near(value, target.log_density(theta), 1e-14, family.name());
                for j in 0..d {
                    let moved = |step: f64| {
                        let mut other = theta.to_vec();
                        other[j] += step;
                        other
                    };
                    let (above, below) = (moved(h), moved(-h));
                    // The expansion may be that of a smooth stand-in; the gradient never is.
                    let (up, down): (Expansion, Expansion) =
                        (target.expand(&above), target.expand(&below));
                    let what = format!("{family}, {prior}, parameter {j}");
                    near(at.gradient[j], (up.value - down.value) / (2.0 * h), 2e-6, &what);
                    let rise = target.log_density(&above) - target.log_density(&below);
                    near(gradient[j], rise / (2.0 * h), 2e-6, &what);
                    for k in 0..d {
                        let slope = (up.gradient[k] - down.gradient[k]) / (2.0 * h);
                        near(at.hessian[(j, k)], slope, 2e-6, &what);
                        assert_eq!(at.hessian[(j, k)], at.hessian[(k, j)]);
                    }
                }
            }
        }
    }
}

#[test]
fn many_points_at_once_have_the_bits_of_one_at_a_time() {
    for family in FAMILIES {
        let (target, _) = target(family, priors()[0], 0.5);
        let d = target.dim();
        let mut rng = stream(2, 0, 0, "points");
        let thetas = Matrix::from_rows(100, d, (0..100 * d).map(|_| rng.random()).collect());
        let mut out = vec![0.0; 100];
        target.log_densities(&thetas, &mut out);
        for (k, value) in out.iter().enumerate() {
            assert_eq!(*value, target.log_density(thetas.row(k)), "{family}");
        }
    }
}

/// A weight of n is n rows; a fixed coefficient is an offset; a fixed log σ is one less parameter.
#[test]
fn weights_are_repeated_rows_and_fixed_parameters_are_constants() {
    for family in FAMILIES {
        let design = design(family, 60);
        let repeat = |values: &[f64]| -> Vec<f64> {
            let weights = design.weights.as_ref().unwrap();
            values.iter().zip(weights).flat_map(|(&v, &w)| vec![v; w as usize]).collect()
        };
        let expanded = Design {
            columns: design.columns.iter().map(|c| repeat(c)).collect(),
            response: repeat(&design.response),
            second: None,
            offset: design.offset.as_deref().map(repeat),
            weights: None,
        };
        let full = Likelihood::new(family, design.clone(), &[None; 4], None, Kernel::Auto);
        let long = Likelihood::new(family, expanded.clone(), &[None; 4], None, Kernel::Auto);
        let held = Likelihood::new(
            family,
            design.clone(),
            &[None, Some(POINTS[0][1]), None, None],
            family.owns().first().map(|_| POINTS[0][4]),
            Kernel::Auto,
        );
        let theta = &POINTS[0][..full.dim()];
        let value = |likelihood: &Likelihood, theta: &[f64]| {
            let mut out = [0.0];
            likelihood.values(&[theta], &mut out);
            out[0]
        };
        near(value(&long, theta), value(&full, theta), 1e-13, family.name());
        near(value(&held, &[0.1, 0.3, 0.7]), value(&full, theta), 1e-13, family.name());
        assert_eq!((held.dim(), held.observations), (3, long.observations));
    }
}

/// Linear predictors of ±40 and beyond give finite, right values.
#[test]
fn extreme_predictors_stay_finite() {
    for (family, y, expected) in [
        (Family::Logistic, 1.0, -40.0),
        (Family::Probit, 1.0, -804.608_442_013_753_8),
        (Family::Poisson, 0.0, -4.248_354_255_291_589e-18),
        (Family::NegativeBinomial, 0.0, -4.248_354_255_291_589e-18),
    ] {
        for sign in [1.0, -1.0] {
            let outcome = if family.is_binary() && sign > 0.0 { 1.0 - y } else { y };
            let design = Design {
                columns: vec![vec![sign]],
                response: vec![outcome],
                second: None,
                offset: None,
                weights: None,
            };
            let fixed = family.owns().first().map(|_| 0.0);
            let likelihood = Likelihood::new(family, design.clone(), &[None], fixed, Kernel::Auto);
            let mut out = [0.0; 2];
            likelihood.values(&[&[40.0], &[1e5]], &mut out);
            if family.is_binary() || sign < 0.0 {
                assert!(
                    (out[0] - expected).abs() <= 1e-13 * expected.abs(),
                    "{family}: {}",
                    out[0]
                );
            }
            assert!(!out[0].is_nan() && !out[1].is_nan(), "{family}: {out:?}");
            let at = likelihood.expand(&[40.0]);
            assert!(at.gradient[0].is_finite() && at.hessian[(0, 0)].is_finite());
        }
    }
}

/// A likelihood's rows and points with what mpmath finds there (`scripts/count_reference.py`).
#[derive(serde::Deserialize)]
struct Reference {
    family: Family,
    columns: Vec<Vec<f64>>,
    y: Vec<f64>,
    offset: Vec<f64>,
    weights: Vec<f64>,
    points: Vec<Point>,
}

#[derive(serde::Deserialize)]
struct Point {
    theta: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
    hessian: Vec<Vec<f64>>,
}

/// Counts up to 2⁵³ − 1, alone and mixed with small ones, merged rows, offsets, weights, dispersions from e^−700
/// to e^600: what counts is the error beside 1 for values, and in units of the likelihood's own width for slopes.
#[test]
fn counts_of_any_size_are_right() {
    let text = std::fs::read_to_string("tests/data/large_counts.json").unwrap();
    let cases: Vec<Reference> = serde_json::from_str(&text).unwrap();
    for case in cases {
        let design = Design {
            columns: case.columns.clone(),
            response: case.y.clone(),
            second: None,
            offset: Some(case.offset.clone()),
            weights: Some(case.weights.clone()),
        };
        for kernel in [Kernel::Auto, Kernel::Portable] {
            let fixed = vec![None; case.columns.len()];
            let likelihood = Likelihood::new(case.family, design.clone(), &fixed, None, kernel);
            for point in &case.points {
                let theta = &point.theta;
                let d = theta.len();
                let what = format!("{} of {:?} at {theta:?}", case.family, &case.y[..2]);
                let (mut out, mut gradient) = ([0.0], vec![0.0; d]);
                likelihood.values(&[theta], &mut out);
                let at = likelihood.expand(theta);
                let value = likelihood.gradient(theta, &mut gradient);
                for value in [out[0], value, at.value] {
                    let off = (value - point.value).abs();
                    // A predictor of 36 is rounded to 7·10⁻¹⁵.
                    let rounded: f64 = point.gradient.iter().map(|g| 1e-14 * g.abs()).sum();
                    let allowed = 1e-6 + 1e-12 * point.value.abs() + rounded;
                    assert!(off <= allowed, "{what}: {value} is not {}", point.value);
                }
                // Terms of δ·y, which is about √y, cancel in the derivatives in a.
                let size = |(w, y): (&f64, &f64)| w * (10.0 + y.sqrt());
                let sizes = case.weights.iter().zip(&case.y).map(size).sum::<f64>();
                let rounding = 1e-11 + 1e-15 * sizes;
                let width = |j: usize| 1.0 / point.hessian[j][j].abs().sqrt().max(rounding);
                for (j, slope) in gradient.iter().enumerate() {
                    for slope in [*slope, at.gradient[j]] {
                        let off = (slope - point.gradient[j]).abs();
                        let allowed = 1e-6 / width(j) + 1e-12 * point.gradient[j].abs() + rounding;
                        assert!(
                            off <= allowed,
                            "{what}, slope {j}: {slope}, {}",
                            point.gradient[j]
                        );
                    }
                    for k in 0..d {
                        let (found, exact) = (at.hessian[(j, k)], point.hessian[j][k]);
                        let off = (found - exact).abs();
                        let allowed = 1e-6 / (width(j) * width(k)) + 1e-12 * exact.abs() + rounding;
                        assert!(off <= allowed, "{what}, bend {j}, {k}: {found}, {exact}");
                    }
                }
            }
        }
    }
}
