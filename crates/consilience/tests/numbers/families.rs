//! Families with parameters of their own, and outcomes of more than one number: values and derivatives against mpmath,
//! all kinds of CPU against each other, evidences against quadrature, and calibration over seeds.

use crate::common::{Case as StudyCase, run, spread};
use consilience::data::Design;
use consilience::kernel::{Case, Kernel, Path, Rows};
use consilience::math::special::{log_normal_cdf, softplus};
use consilience::math::stream;
use consilience::model::{Family, Likelihood};
use libm::lgamma;
use rand::RngExt;

/// A likelihood's rows and points with what mpmath finds there (`scripts/family_reference.py`).
#[derive(serde::Deserialize)]
struct Reference {
    family: Family,
    columns: Vec<Vec<f64>>,
    y: Vec<f64>,
    second: Option<Vec<Option<f64>>>,
    offset: Vec<f64>,
    weights: Vec<f64>,
    own: usize,
    points: Vec<Point>,
}

#[derive(serde::Deserialize)]
struct Point {
    theta: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
    hessian: Vec<Vec<f64>>,
}

impl Reference {
    fn all() -> Vec<Reference> {
        let text = std::fs::read_to_string("tests/data/families.json").unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn design(&self) -> Design {
        let bound = |bound: &Option<f64>| bound.unwrap_or(f64::INFINITY);
        Design {
            columns: self.columns.clone(),
            response: self.y.clone(),
            second: self.second.as_ref().map(|all| all.iter().map(bound).collect()),
            offset: Some(self.offset.clone()),
            weights: Some(self.weights.clone()),
        }
    }
}

#[test]
fn values_and_derivatives_are_those_of_mpmath() {
    for case in Reference::all() {
        for kernel in [Kernel::Auto, Kernel::Portable] {
            let own = vec![None; case.own];
            let likelihood =
                Likelihood::with_own(case.family, case.design(), &[None; 2], &own, kernel);
            assert_eq!(likelihood.dim(), 2 + case.own, "{}", case.family);
            for Point { theta, value, gradient, hessian } in &case.points {
                let d = theta.len();
                let what = format!("{} at {theta:?}", case.family);
                let (mut out, mut slopes) = ([0.0], vec![0.0; d]);
                likelihood.values(&[theta], &mut out);
                let found = likelihood.gradient(theta, &mut slopes);
                let at = likelihood.expand(theta);
                for found in [out[0], found, at.value] {
                    let off = (found - value).abs();
                    assert!(off <= 2e-12 * (1.0 + value.abs()), "{what}: {found} is not {value}");
                }
                // Sums of slopes cancel; the curvature says how large they are row by row.
                let size = 1.0
                    + value.abs()
                    + hessian.iter().flatten().fold(0.0, |a: f64, b| a.max(b.abs()));
                for j in 0..d {
                    for slope in [slopes[j], at.gradient[j]] {
                        let off = (slope - gradient[j]).abs();
                        assert!(
                            off <= 2e-12 * size,
                            "{what}, slope {j}: {slope} is not {}",
                            gradient[j]
                        );
                    }
                    for (k, expected) in hessian[j].iter().enumerate() {
                        let found = at.hessian[(j, k)];
                        assert!(
                            (found - expected).abs() <= 4e-12 * size,
                            "{what}, bend {j}, {k}: {found} is not {expected}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn own_parameters_can_be_held_fixed() {
    for case in Reference::all().into_iter().filter(|case| case.own > 0) {
        let theta = &case.points[0].theta;
        for held in 0..case.own {
            let own: Vec<Option<f64>> =
                (0..case.own).map(|k| (k == held).then_some(theta[2 + k])).collect();
            let likelihood =
                Likelihood::with_own(case.family, case.design(), &[None; 2], &own, Kernel::Auto);
            let mut free = theta.clone();
            free.remove(2 + held);
            let at = likelihood.expand(&free);
            let expected = &case.points[0];
            assert!((at.value - expected.value).abs() < 1e-11 * (1.0 + expected.value.abs()));
            let kept: Vec<usize> = (0..theta.len()).filter(|&j| j != 2 + held).collect();
            for (j, &from) in kept.iter().enumerate() {
                assert!((at.gradient[j] - expected.gradient[from]).abs() < 1e-9, "{}", case.family);
                for (k, &to) in kept.iter().enumerate() {
                    let off = (at.hessian[(j, k)] - expected.hessian[from][to]).abs();
                    assert!(off < 1e-9, "{}", case.family);
                }
            }
        }
    }
}

/// All kinds of rows with the numbers that their outcomes can have.
const CASES: [(Case, f64, f64); 18] = [
    (Case::StudentT, -2.0, 3.0),
    (Case::Gamma, -1.0, 2.0),
    (Case::Beta, -3.0, -0.1),
    (Case::ZeroInflated, 0.0, 0.0),
    (Case::WeibullAt, -2.0, 1.0),
    (Case::WeibullAbove, -2.0, 1.0),
    (Case::WeibullBelow, -2.0, 1.0),
    (Case::WeibullBetween, -2.0, 1.0),
    (Case::NormalAt, -2.0, 2.0),
    (Case::NormalAbove, -2.0, 2.0),
    (Case::NormalBelow, -2.0, 2.0),
    (Case::NormalBetween, -2.0, 2.0),
    (Case::LogitAbove, 0.0, 0.0),
    (Case::LogitBelow, 0.0, 0.0),
    (Case::LogitBetween, 0.0, 0.0),
    (Case::ProbitAbove, 0.0, 0.0),
    (Case::ProbitBelow, 0.0, 0.0),
    (Case::ProbitBetween, 0.0, 0.0),
];

#[test]
fn all_kinds_of_cpu_agree_and_points_do_not_depend_on_their_company() {
    let mut rng = stream(18, 0, 0, "families");
    let mut uniform = move || rng.random::<f64>();
    // Rows of one observation share their logarithms, others do not.
    for (n, times) in [(1, 2.0), (13, 1.0), (1003, 2.0), (1003, 1.0)] {
        for (case, from, to) in CASES {
            let columns: Vec<Vec<f64>> =
                (0..3).map(|_| (0..n).map(|_| 2.0 * uniform() - 1.0).collect()).collect();
            let y: Vec<f64> = (0..n).map(|_| from + (to - from) * uniform()).collect();
            let z: Vec<f64> = match case {
                Case::Beta => y.iter().map(|_| -0.05 - uniform()).collect(),
                _ => y.iter().map(|y| y + 0.01 + uniform()).collect(),
            };
            let (offset, count) = (vec![0.1; n], vec![times; n]);
            let rows = |path: Path| {
                let family = Family::StudentT;
                Rows::of_case(family, case, &columns, &offset, &count, (&y, &z), Kernel::Auto)
                    .with_path(path)
            };
            for scale in [1.0, 15.0] {
                let thetas: Vec<Vec<f64>> =
                    (0..7).map(|_| (0..3).map(|_| scale * (uniform() - 0.5)).collect()).collect();
                let points: Vec<(&[f64], [f64; 2])> =
                    thetas.iter().map(|t| (t.as_slice(), [0.7, -0.3])).collect();
                let mut first = vec![0.0; 7];
                rows(Path::Portable).case_values(&points, &mut first);
                let plain = rows(Path::Portable).case_sums(&thetas[0], [0.7, -0.3], true);
                assert!(first.iter().all(|v| v.is_finite()), "{case:?}: {first:?}");
                for path in Path::all() {
                    let what = format!("{case:?} on {}, {n} rows", path.name());
                    let mut out = vec![0.0; 7];
                    rows(path).case_values(&points, &mut out);
                    for (k, value) in out.iter().enumerate() {
                        let off = (value - first[k]).abs() / (1.0 + first[k].abs());
                        assert!(off < 1e-13, "{what}: {value} is not {}", first[k]);
                        let mut alone = [0.0];
                        rows(path).case_values(&points[k..=k], &mut alone);
                        assert_eq!(alone[0], *value, "{what}");
                    }
                    let (mut wrong, nowhere) = ([0.0], [f64::NAN; 3]);
                    rows(path).case_values(&[(&nowhere, [0.7, -0.3])], &mut wrong);
                    assert!(wrong[0].is_nan(), "{what}: {} of no number", wrong[0]);
                    // The same of an own parameter, where the rows are seen to depend on it.
                    for own in 0..2 {
                        let at = |value: f64| {
                            let (mut out, mut place) = ([0.0], [0.7, -0.3]);
                            place[own] = value;
                            rows(path).case_values(&[(&thetas[0], place)], &mut out);
                            out[0]
                        };
                        let depends = at(0.6) != at(0.5);
                        assert!(at(f64::NAN).is_nan() || !depends, "{what}: own parameter {own}");
                    }
                    let sums = rows(path).case_sums(&thetas[0], [0.7, -0.3], true);
                    let quick = rows(path).case_sums(&thetas[0], [0.7, -0.3], false);
                    assert_eq!((sums.value, &sums.gradient), (quick.value, &quick.gradient));
                    let near = |a: f64, b: f64| {
                        let size = 1.0 + b.abs() + plain.value.abs() + n as f64;
                        assert!((a - b).abs() < 1e-12 * size, "{what}: {a} is not {b}");
                    };
                    near(sums.value, plain.value);
                    near(sums.value, first[0]);
                    (0..3).for_each(|j| near(sums.gradient[j], plain.gradient[j]));
                    (0..2).for_each(|k| near(sums.own[k], plain.own[k]));
                    (0..3).for_each(|k| near(sums.own_bend[k], plain.own_bend[k]));
                    for i in 0..3 {
                        (0..3).for_each(|j| near(sums.hessian[(i, j)], plain.hessian[(i, j)]));
                        (0..2).for_each(|k| near(sums.cross[k][i], plain.cross[k][i]));
                    }
                }
            }
        }
    }
}

/// Far out likelihoods are finite or 0, and never no number.
#[test]
fn nothing_is_no_number() {
    for case in Reference::all() {
        let own = vec![None; case.own];
        let likelihood =
            Likelihood::with_own(case.family, case.design(), &[None; 2], &own, Kernel::Auto);
        for beta in [-1e4, -40.0, 40.0, 1e4] {
            for other in [-250.0, -20.0, 0.0, 20.0, 250.0] {
                let theta: Vec<f64> =
                    (0..likelihood.dim()).map(|j| if j < 2 { beta } else { other }).collect();
                let mut out = [0.0];
                likelihood.values(&[&theta], &mut out);
                assert!(!out[0].is_nan(), "{} at {theta:?}", case.family);
                let mut gradient = vec![0.0; theta.len()];
                let value = likelihood.gradient(&theta, &mut gradient);
                assert!(!value.is_nan(), "{} at {theta:?}", case.family);
            }
        }
    }
}

/// A study with two parameters, its log posterior written out, and where to integrate.
struct Problem {
    name: &'static str,
    csv: String,
    formula: &'static str,
    prior: &'static str,
    log_posterior: Box<dyn Fn(f64, f64) -> f64>,
    limits: ((f64, f64), (f64, f64)),
}

/// log ∫ e^g by the trapezoidal rule, which is spectrally accurate where g falls off at both ends.
fn integrate(problem: &Problem) -> f64 {
    const STEPS: usize = 240;
    let grid = |(from, to): (f64, f64)| {
        let width = (to - from) / STEPS as f64;
        (0..=STEPS).map(move |i| from + i as f64 * width).collect::<Vec<_>>()
    };
    let (xs, ys) = (grid(problem.limits.0), grid(problem.limits.1));
    let cell = (xs[1] - xs[0]) * (ys[1] - ys[0]);
    let g = &problem.log_posterior;
    let values: Vec<f64> = xs.iter().flat_map(|&x| ys.iter().map(move |&y| g(x, y))).collect();
    consilience::math::log_sum_exp(&values) + cell.ln()
}

fn prior(x: f64) -> f64 {
    -0.5 * x * x - 0.5 * (2.0 * std::f64::consts::PI).ln()
}

/// Rows of numbers under a header.
fn csv<const N: usize>(header: &str, rows: &[[f64; N]]) -> String {
    rows.iter().fold(format!("{header}\n"), |text, row| {
        text + &row.map(|x| x.to_string()).join(",") + "\n"
    })
}

fn problems() -> Vec<Problem> {
    let n = 42;
    let x: Vec<f64> = (0..n).map(|i| f64::from(i) / 10.0 - 2.0).collect();
    let wave: Vec<f64> = x.iter().map(|x| (7.3 * x).sin()).collect();
    let rows = |y: &dyn Fn(f64, f64) -> f64| -> Vec<[f64; 2]> {
        x.iter().zip(&wave).map(|(&x, &w)| [y(x, w), x]).collect()
    };
    let sum = |rows: &[[f64; 2]], f: &dyn Fn(f64, f64) -> f64| -> f64 {
        rows.iter().map(|[y, x]| f(*y, *x)).sum()
    };
    let counts: Vec<[f64; 3]> = x
        .iter()
        .zip(&wave)
        .enumerate()
        .map(|(i, (&x, &w))| {
            let trials = (i % 5 + 1) as f64;
            [(trials * (0.5 + 0.15 * x + 0.2 * w)).round(), trials, x]
        })
        .collect();
    let binomial = |p: fn(f64) -> (f64, f64)| {
        let counts = counts.clone();
        move |a: f64, b: f64| -> f64 {
            let term = |[k, n, x]: &[f64; 3]| {
                let (yes, no) = p(a + b * x);
                let ways = lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0);
                ways + k * yes + (n - k) * no
            };
            counts.iter().map(term).sum::<f64>() + prior(a) + prior(b)
        }
    };
    let logit = |x: f64| (-softplus(-x), -softplus(x));
    let probit = |x: f64| (log_normal_cdf(x).0, log_normal_cdf(-x).0);
    let mut failures = counts.clone();
    failures.iter_mut().for_each(|row| row[1] -= row[0]);
    let line = rows(&|x, w| 0.4 * x + w + if x > 1.9 { 6.0 } else { 0.0 });
    let positive = rows(&|x, w| (0.3 * x + 0.8 * w).exp());
    let share = rows(&|x, w| 0.5 + 0.1 * x + 0.2 * w);
    let zeros = rows(&|x, w| if w < -0.3 { 0.0 } else { (2.0 + 0.8 * x + w).round() });
    // Of a third of the times only a bound is known, of some both.
    let times: Vec<[f64; 4]> = positive
        .iter()
        .enumerate()
        .map(|(i, [t, x])| [*t, 1.5 * t, [1.0, 0.0, 1.0, 3.0, 2.0, 1.0][i % 6], *x])
        .collect();
    let survival = |log_survivor: fn(f64, f64, f64) -> f64,
                    log_density: fn(f64, f64, f64) -> f64,
                    with_own: bool| {
        let times = times.clone();
        move |eta: f64, a: f64| -> f64 {
            let own = if with_own { a } else { 0.0 };
            let term = |[t, t2, event, x]: &[f64; 4]| {
                // Of the exponential, the second parameter is the slope.
                let eta = if with_own { eta } else { eta + a * x };
                match *event {
                    1.0 => log_density(*t, eta, own),
                    0.0 => log_survivor(*t, eta, own),
                    2.0 => (-log_survivor(*t, eta, own).exp()).ln_1p(),
                    _ => {
                        (log_survivor(*t, eta, own).exp() - log_survivor(*t2, eta, own).exp()).ln()
                    }
                }
            };
            times.iter().map(term).sum::<f64>() + prior(eta) + prior(a)
        }
    };
    fn cumulative_hazard(t: f64, eta: f64, a: f64) -> f64 {
        (a.exp() * (t.ln() - eta)).exp()
    }
    let weibull_survivor = |t, eta, a| -cumulative_hazard(t, eta, a);
    let weibull_density = |t: f64, eta: f64, a: f64| {
        a - t.ln() + a.exp() * (t.ln() - eta) - cumulative_hazard(t, eta, a)
    };
    let normal_survivor = |t: f64, eta: f64, a: f64| log_normal_cdf((eta - t.ln()) / a.exp()).0;
    let normal_density = |t: f64, eta: f64, a: f64| prior((t.ln() - eta) / a.exp()) - a - t.ln();
    // Three classes of the predictor's slope and the first cutpoint; the gap is held at 1.
    let grades = rows(&|x, w| (1.0 + 0.5 * x + 1.2 * w).clamp(0.0, 2.0).round());
    let ordinal = |p: fn(f64) -> (f64, f64)| {
        let grades = grades.clone();
        move |b: f64, cut: f64| -> f64 {
            let term = |[y, x]: &[f64; 2]| {
                let (low, high) = (cut - b * x, cut + 1.0 - b * x);
                match *y {
                    0.0 => p(low).0,
                    1.0 => (p(high).0.exp() - p(low).0.exp()).ln(),
                    _ => p(high).1,
                }
            };
            grades.iter().map(term).sum::<f64>() + prior(b) + prior(cut)
        }
    };
    let problem = |name, csv, formula, prior, log_posterior, limits| Problem {
        name,
        csv,
        formula,
        prior,
        log_posterior,
        limits,
    };
    let wide = ((-6.0, 6.0), (-6.0, 6.0));
    let (line2, positive2, share2, zeros2) =
        (line.clone(), positive.clone(), share.clone(), zeros.clone());
    vec![
        problem(
            "binomial",
            csv("k,n,x", &counts),
            "k/trials(n) ~ x",
            "",
            Box::new(binomial(logit)),
            wide,
        ),
        problem(
            "probit",
            csv("k,f,x", &failures),
            "cbind(k, f) ~ x",
            "",
            Box::new(binomial(probit)),
            wide,
        ),
        problem(
            "student-t",
            csv("y,x", &line),
            "y ~ 0 + x",
            "log_df = \"fixed(1.5)\"",
            Box::new(move |b, a| {
                let (sd, df) = (a.exp(), 1.5f64.exp());
                let term = |y: f64, x: f64| {
                    let r = (y - b * x) / sd;
                    lgamma((df + 1.0) / 2.0)
                        - lgamma(df / 2.0)
                        - 0.5 * (df * std::f64::consts::PI).ln()
                        - a
                        - (df + 1.0) / 2.0 * (r * r / df).ln_1p()
                };
                sum(&line2, &term) + prior(b) + prior(a)
            }),
            wide,
        ),
        problem(
            "gamma",
            csv("y,x", &positive),
            "y ~ 0 + x",
            "",
            Box::new(move |b, a| {
                let term = |y: f64, x: f64| {
                    let shape = a.exp();
                    let rate = shape / (b * x).exp();
                    shape * rate.ln() + (shape - 1.0) * y.ln() - rate * y - lgamma(shape)
                };
                sum(&positive2, &term) + prior(b) + prior(a)
            }),
            wide,
        ),
        problem(
            "beta",
            csv("y,x", &share),
            "y ~ 0 + x",
            "",
            Box::new(move |b, a| {
                let term = |y: f64, x: f64| {
                    let (df, mean) = (a.exp(), 1.0 / (1.0 + (-b * x).exp()));
                    let (p, q) = (df * mean, df * (1.0 - mean));
                    lgamma(df) - lgamma(p) - lgamma(q)
                        + (p - 1.0) * y.ln()
                        + (q - 1.0) * (-y).ln_1p()
                };
                sum(&share2, &term) + prior(b) + prior(a)
            }),
            wide,
        ),
        problem(
            "exponential",
            csv("t,t2,event,x", &times),
            "Surv(t, t2, event, type = 'interval') ~ x",
            "",
            Box::new(survival(weibull_survivor, weibull_density, false)),
            wide,
        ),
        problem(
            "weibull",
            csv("t,t2,event,x", &times),
            "Surv(t, t2, event, type = 'interval') ~ 1",
            "",
            Box::new(survival(weibull_survivor, weibull_density, true)),
            wide,
        ),
        problem(
            "log-normal",
            csv("t,t2,event,x", &times),
            "Surv(t, t2, event, type = 'interval') ~ 1",
            "",
            Box::new(survival(normal_survivor, normal_density, true)),
            wide,
        ),
        problem(
            "cumulative-logit",
            csv("y,x", &grades),
            "y ~ x",
            "log_gap = \"fixed(0)\"",
            Box::new(ordinal(logit)),
            wide,
        ),
        problem(
            "cumulative-probit",
            csv("y,x", &grades),
            "y ~ x",
            "log_gap = \"fixed(0)\"",
            Box::new(ordinal(probit)),
            wide,
        ),
        problem(
            "zero-inflated-poisson",
            csv("y,x", &zeros),
            "y ~ 1",
            "",
            Box::new(move |eta, a| {
                let share = 1.0 / (1.0 + (-a).exp());
                let term = |y: f64, _: f64| {
                    let poisson = (y * eta - eta.exp() - lgamma(y + 1.0)).exp();
                    (if y == 0.0 { share } else { 0.0 } + (1.0 - share) * poisson).ln()
                };
                sum(&zeros2, &term) + prior(eta) + prior(a)
            }),
            wide,
        ),
    ]
}

/// The evidence of a problem's model on so many shards.
fn evidence(problem: &Problem, folder: &std::path::Path, shards: usize, seed: u64) -> (f64, f64) {
    let path = folder.join("data.csv");
    std::fs::write(&path, &problem.csv).unwrap();
    let mut study = StudyCase::new(path.to_str().unwrap(), shards);
    study.prior = problem.prior.into();
    study.evidence = format!("seed = {seed}\ndraws = 2000");
    study.model(problem.formula, problem.name);
    let result = run(&study.text());
    assert!(result.is_reliable(), "{}: {:?}", problem.name, result.models[0].warnings);
    let found = result.models[0].log_evidence;
    (found.value, found.se.unwrap())
}

#[test]
fn evidences_agree_with_quadrature_on_one_shard_and_on_seven() {
    let folder = tempfile::tempdir().unwrap();
    for problem in problems() {
        let exact = integrate(&problem);
        for shards in [1, 7] {
            let (found, se) = evidence(&problem, folder.path(), shards, 1);
            let z = (found - exact) / se.max(1e-9);
            println!("{}, {shards} shards: {found:.5} ± {se:.5}, {exact:.5}", problem.name);
            assert!(
                z.abs() < 4.0 && se < 0.05,
                "{}, {shards} shards: {found} ± {se} is not {exact}",
                problem.name
            );
        }
    }
}

/// Over 40 seeds errors are as large as they are said to be.
#[test]
fn errors_are_calibrated_over_forty_seeds() {
    let folder = tempfile::tempdir().unwrap();
    for problem in problems() {
        let exact = integrate(&problem);
        let z: Vec<f64> = (1..=40)
            .map(|seed| {
                let (found, se) = evidence(&problem, folder.path(), 3, seed);
                (found - exact) / se.max(1e-9)
            })
            .collect();
        let (mean, sd) = spread(&z);
        println!("{}: mean z {mean:.2}, sd {sd:.2}", problem.name);
        assert!(z.iter().all(|z| z.abs() < 4.0), "{}: {z:?}", problem.name);
        assert!(sd < 1.5 && mean.abs() < 0.8, "{}: mean {mean}, sd {sd}", problem.name);
    }
}
