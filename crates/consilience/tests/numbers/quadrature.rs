//! Small models of every family against numerical integration that shares no code with the library,
//! on data that are kind and data that are not.

use crate::common::{Case, run};
use consilience::math::special::log_normal_cdf;

/// A model with one or two parameters, its log posterior written out, and where to integrate.
struct Problem {
    name: &'static str,
    csv: String,
    formula: &'static str,
    family: &'static str,
    prior: &'static str,
    log_posterior: Box<dyn Fn(f64, f64) -> f64>,
    /// Integration limits of the two parameters; `None` if there is only one.
    limits: ((f64, f64), Option<(f64, f64)>),
}

/// log ∫ e^g by the trapezoidal rule, which is spectrally accurate where g falls off at both ends.
fn integrate(g: &dyn Fn(f64, f64) -> f64, limits: ((f64, f64), Option<(f64, f64)>)) -> f64 {
    let steps = if limits.1.is_some() { 1200 } else { 400_000 };
    let grid = |(from, to): (f64, f64)| {
        let width = (to - from) / f64::from(steps);
        (0..=steps).map(move |i| from + f64::from(i) * width).collect::<Vec<_>>()
    };
    let xs = grid(limits.0);
    let ys = limits.1.map_or(vec![0.0], grid);
    let cell = (xs[1] - xs[0]) * if ys.len() > 1 { ys[1] - ys[0] } else { 1.0 };
    let values: Vec<f64> = xs.iter().flat_map(|&x| ys.iter().map(move |&y| g(x, y))).collect();
    consilience::math::log_sum_exp(&values) + cell.ln()
}

fn log_normal(x: f64, sd: f64) -> f64 {
    -0.5 * (x / sd).powi(2) - (sd * (2.0 * std::f64::consts::PI).sqrt()).ln()
}

fn csv(header: &str, rows: &[(f64, f64)]) -> String {
    rows.iter().fold(format!("{header}\n"), |text, (y, x)| text + &format!("{y},{x}\n"))
}

fn problems() -> Vec<Problem> {
    let xs: Vec<f64> = (0..40).map(|i| f64::from(i) / 10.0 - 2.0).collect();
    let with =
        |y: &dyn Fn(f64) -> f64| -> Vec<(f64, f64)> { xs.iter().map(|&x| (y(x), x)).collect() };
    let wave = |x: f64| (7.3 * x).sin();
    let separable = with(&|x| f64::from(x >= 0.0));
    let binary = with(&|x| f64::from(0.8 * x + 1.5 * wave(x) > 0.0));
    let counts = with(&|x| (2.0 * (0.5 * x).exp() + wave(x)).round().max(0.0));
    let spread = with(&|x| ((1.0 + 0.4 * x).exp() * (1.0 + wave(x)).powi(2)).round());
    let line = with(&|x| 0.7 * x + wave(x));
    let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
    let gamma = libm::lgamma;

    let logistic = |data: Vec<(f64, f64)>| {
        move |b: f64, sd: f64| -> f64 {
            data.iter().map(|(y, x)| y * b * x - softplus(b * x)).sum::<f64>() + log_normal(b, sd)
        }
    };
    let separated = logistic(separable.clone());
    let separated_wide = logistic(separable.clone());
    let (probit_data, poisson_data, nb_data, line_data) =
        (binary.clone(), counts.clone(), spread.clone(), line.clone());
    let laplace_data = binary.clone();
    vec![
        Problem {
            name: "separable logistic",
            csv: csv("y,x", &separable),
            formula: "y ~ 0 + x",
            family: "logistic",
            prior: "",
            log_posterior: Box::new(move |b, _| separated(b, 1.0)),
            limits: ((-9.0, 14.0), None),
        },
        Problem {
            name: "separable logistic, wide prior",
            csv: csv("y,x", &separable),
            formula: "y ~ 0 + x",
            family: "logistic",
            prior: "coefficients = \"normal(0, 30)\"",
            log_posterior: Box::new(move |b, _| separated_wide(b, 30.0)),
            limits: ((-30.0, 300.0), None),
        },
        Problem {
            name: "probit",
            csv: csv("y,x", &binary),
            formula: "y ~ x",
            family: "probit",
            prior: "",
            log_posterior: Box::new(move |a, b| {
                let term = |(y, x): &(f64, f64)| log_normal_cdf((2.0 * y - 1.0) * (a + b * x)).0;
                probit_data.iter().map(term).sum::<f64>() + log_normal(a, 1.0) + log_normal(b, 1.0)
            }),
            limits: ((-5.0, 5.0), Some((-5.0, 5.0))),
        },
        Problem {
            name: "poisson",
            csv: csv("y,x", &counts),
            formula: "y ~ x",
            family: "poisson",
            prior: "intercept = \"student_t(3, 0, 2)\"",
            log_posterior: Box::new(move |a, b| {
                let term =
                    |(y, x): &(f64, f64)| y * (a + b * x) - (a + b * x).exp() - gamma(y + 1.0);
                // t with 3 degrees of freedom and scale 2.
                let prior = (2.0 / (3f64.sqrt() * std::f64::consts::PI * 2.0)).ln()
                    - 2.0 * (a * a / 12.0).ln_1p();
                poisson_data.iter().map(term).sum::<f64>() + prior + log_normal(b, 1.0)
            }),
            limits: ((-2.0, 3.0), Some((-2.0, 3.0))),
        },
        Problem {
            name: "negative binomial",
            csv: csv("y,x", &spread),
            formula: "y ~ 1",
            family: "negative-binomial",
            prior: "",
            log_posterior: Box::new(move |eta, a| {
                let (mean, r) = (eta.exp(), a.exp());
                let term = |(y, _): &(f64, f64)| {
                    gamma(y + r) - gamma(r) - gamma(y + 1.0)
                        + r * (r / (r + mean)).ln()
                        + y * (mean / (r + mean)).ln()
                };
                nb_data.iter().map(term).sum::<f64>() + log_normal(eta, 1.0) + log_normal(a, 1.0)
            }),
            limits: ((-3.0, 6.0), Some((-6.0, 6.0))),
        },
        Problem {
            name: "gaussian",
            csv: csv("y,x", &line),
            formula: "y ~ 0 + x",
            family: "gaussian",
            prior: "",
            log_posterior: Box::new(move |b, u| {
                let sd = u.exp();
                let term = |(y, x): &(f64, f64)| log_normal(y - b * x, sd);
                line_data.iter().map(term).sum::<f64>() + log_normal(b, 1.0) + log_normal(u, 1.0)
            }),
            limits: ((-3.0, 4.0), Some((-2.0, 2.5))),
        },
        Problem {
            name: "laplace prior",
            csv: csv("y,x", &binary),
            formula: "y ~ 0 + x",
            family: "logistic",
            prior: "coefficients = \"laplace(0, 0.3)\"",
            log_posterior: Box::new(move |b, _| {
                let term = |(y, x): &(f64, f64)| y * b * x - softplus(b * x);
                laplace_data.iter().map(term).sum::<f64>() - b.abs() / 0.3 - 0.6f64.ln()
            }),
            limits: ((-20.0, 20.0), None),
        },
    ]
}

#[test]
fn every_family_agrees_with_quadrature() {
    let folder = tempfile::tempdir().unwrap();
    for problem in problems() {
        let exact = integrate(&problem.log_posterior, problem.limits);
        let path = folder.path().join("data.csv");
        std::fs::write(&path, &problem.csv).unwrap();
        for (combine, local, shards) in
            [("normal", "importance", 1), ("exact", "auto", 1), ("exact", "auto", 3)]
        {
            let mut worst: f64 = 0.0;
            for seed in 1..=10 {
                let mut study = Case::new(path.to_str().unwrap(), shards);
                study.prior = problem.prior.into();
                study.evidence = format!(
                    "combine = {combine:?}\nlocal = {local:?}\nseed = {seed}\ndraws = 20000"
                );
                study.model(problem.formula, problem.family);
                let result = run(&study.text());
                let found = result.models[0].log_evidence;
                let z = (found.value - exact) / found.se.unwrap().max(1e-9);
                worst = worst.max(z.abs());
                assert!(
                    z.abs() < 4.0,
                    "{}, {combine}, {shards} shards, seed {seed}: {found:?} is not {exact}, z = {z:.2}",
                    problem.name
                );
                assert!(result.is_reliable(), "{}: {:?}", problem.name, result.models[0].warnings);
            }
            println!(
                "{}, {combine}, {shards} shards: {exact:.5}, worst |z| {worst:.2}",
                problem.name
            );
        }
    }
}

/// Columns that determine each other, a constant, a column of scale 10⁶, fewer rows than parameters: the
/// answer is that of the same model written well.
#[test]
fn awkward_designs_give_the_same_evidence_as_well_behaved_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.csv");
    let mut text = "y,x,big,copy,constant\n".to_string();
    for i in 0..60 {
        let x = f64::from(i * 7 % 60) / 20.0 - 1.5;
        let y = u8::from((f64::from(i) * 1.7).sin() + x > 0.0);
        text += &format!("{y},{x},{},{},3\n", 1e6 * x, 2.0 * x);
    }
    std::fs::write(&path, text).unwrap();
    let evidence = |formula: &str, prior: &str| {
        let mut study = Case::new(path.to_str().unwrap(), 1);
        study.prior = format!("[prior.parameters]\n{prior}");
        study.evidence = "draws = 40000\nse_target = 0.003".into();
        study.model(formula, "logistic");
        let result = run(&study.text());
        (result.models[0].log_evidence, result)
    };
    // x and 2x with priors N(0, 1) are one column with prior N(0, 1 + 4).
    let (one, _) = evidence("y ~ x", "x = \"normal(0, 2.23606797749979)\"");
    let (two, noted) = evidence("y ~ x + copy", "x = \"normal(0, 1)\"");
    let codes: Vec<&str> = noted.models[0].warnings.iter().map(|w| w.code.as_str()).collect();
    assert_eq!(codes, ["rank-deficient"]);
    // A scale of 10⁶ is the prior's scale of 10⁻⁶.
    let (small, _) = evidence("y ~ x", "x = \"normal(0, 1)\"");
    let (big, _) = evidence("y ~ big", "big = \"normal(0, 1e-6)\"");
    // A constant of 3 beside the intercept is an intercept with prior N(0, 1 + 9).
    let (wide, _) = evidence("y ~ x", "\"(Intercept)\" = \"normal(0, 3.1622776601683795)\"");
    let (constant, _) = evidence("y ~ x + constant", "x = \"normal(0, 1)\"");
    for (a, b, what) in [(one, two, "copy"), (small, big, "big"), (wide, constant, "constant")] {
        let z = (a.value - b.value) / a.se.unwrap().hypot(b.se.unwrap());
        assert!(z.abs() < 4.0, "{what}: {a:?} is not {b:?}");
    }
}

/// A column far from 0 is not the intercept: what others determine is judged around the columns' means.
#[test]
fn a_gaussian_column_far_from_zero_is_no_rank_deficiency() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.csv");
    let mut text = "y,far,twice,constant,g\n".to_string();
    for i in 0..60 {
        let x = f64::from(i * 7 % 60) / 20.0 - 1.5;
        let (y, far) = ((f64::from(i) * 1.7).sin() + x, 1e6 + 1e-3 * x);
        text += &format!("{y},{far},{},0.1,{}\n", 2.0 * far, ["a", "b", "c"][i as usize % 3]);
    }
    std::fs::write(&path, text).unwrap();
    for (formula, default, determined) in [
        ("y ~ far", "normal(0, 1) per sd", None),
        ("y ~ far", "jzs(1)", None),
        ("y ~ far + g", "normal(0, 1) per sd", None),
        ("y ~ far + g - 1", "normal(0, 1) per sd", None),
        ("y ~ far + twice", "normal(0, 1) per sd", Some(1.0)),
        ("y ~ far + twice + constant", "normal(0, 1)", Some(2.0)),
        ("y ~ far + twice + g - 1", "normal(0, 1)", Some(1.0)),
        // Without an intercept a constant is a column of its own.
        ("y ~ constant + far - 1", "normal(0, 1)", None),
    ] {
        for shards in [1, 3] {
            let mut study = Case::new(path.to_str().unwrap(), shards);
            study.default = format!("coefficients = \"{default}\"");
            study.model(formula, "gaussian");
            let result = run(&study.text());
            let noted = result.models[0].warnings.iter().find(|w| w.code == "rank-deficient");
            assert_eq!(noted.and_then(|w| w.value), determined, "{formula} at {shards}");
        }
    }
}

/// Where a law is not log-concave, curvature may be negative somewhere: that determines nothing. Columns that others
/// determine are still found.
#[test]
fn a_negative_curvature_is_no_rank_deficiency() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.csv");
    let mut rng = consilience::math::stream(1, 0, 0, "student data");
    let mut normal = || (0..12).map(|_| rand::RngExt::random::<f64>(&mut rng)).sum::<f64>() - 6.0;
    let mut text = "y,x\n".to_string();
    for _ in 0..120 {
        let z = normal();
        text += &format!("{},{}\n", 2.0 + 0.5 * z + 1.2 * normal(), 50.0 + 10.0 * z);
    }
    std::fs::write(&path, text).unwrap();
    for (formula, shards, expected) in
        [("y ~ x", 1, &[][..]), ("y ~ x", 4, &[]), ("y ~ x + I(2 * x)", 4, &["rank-deficient"])]
    {
        let mut study = Case::new(path.to_str().unwrap(), shards);
        study.default = "log_df = \"normal(0, 1)\"".into();
        study.model(formula, "student-t");
        let result = run(&study.text());
        let codes: Vec<&str> = result.models[0].warnings.iter().map(|w| w.code.as_str()).collect();
        assert_eq!(codes, expected, "{formula} at {shards}");
    }
}
