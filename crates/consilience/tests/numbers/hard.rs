//! Data that break samplers: the answer is right or marked as not to be trusted, and there is one.

use crate::common::Case;
use consilience::compare::Comparison;
use consilience::engine::Silent;
use consilience::plan::Plan;
use consilience::study::StudyFile;
use std::path::Path;

const METHODS: [&str; 6] =
    ["importance", "nuts+bridge", "nuts+warp3", "nuts+importance", "gibbs+chib", "gibbs+bridge"];

fn try_run(text: &str) -> consilience::Result<Comparison> {
    let study = StudyFile::parse(text, Path::new("study.toml")).unwrap();
    Plan::new(study, 2, &Silent)?.run(&Silent)
}

/// Rows `y,x…` as a CSV file, and the study of one logistic model on it.
fn study(folder: &Path, rows: &[Vec<f64>], formula: &str, method: &str) -> Case {
    let names = (1..rows[0].len()).map(|j| format!(",x{j}")).collect::<String>();
    let line = |row: &Vec<f64>| row.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
    let body = rows.iter().map(line).collect::<Vec<_>>().join("\n");
    let path = folder.join("hard.csv");
    std::fs::write(&path, format!("y{names}\n{body}\n")).unwrap();
    let mut case = Case::new(path.to_str().unwrap(), 1);
    case.evidence =
        format!("combine = \"normal\"\nlocal = {method:?}\ndraws = 2000\nwarmup = 1000");
    case.model(formula, "logistic");
    case
}

/// What every method must say about a case: `exact`'s evidence within four standard errors, or that
/// it is not to be trusted.
fn agree_or_warn(rows: &[Vec<f64>], formula: &str, prior: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut case = study(folder.path(), rows, formula, "importance");
    case.prior = prior.into();
    case.evidence = "draws = 100000\nse_target = 0.003".into();
    let reference = try_run(&case.text()).unwrap();
    assert!(reference.is_reliable(), "{formula}: {:?}", reference.models[0].warnings);
    let reference = reference.models[0].log_evidence;
    for method in METHODS {
        let mut case = study(folder.path(), rows, formula, method);
        case.prior = prior.into();
        let result = try_run(&case.text()).unwrap();
        let found = result.models[0].log_evidence;
        let z = (found.value - reference.value) / found.se.unwrap().hypot(reference.se.unwrap());
        println!("{formula} {method}: {found:?}, z = {z:.2}, trusted: {}", result.is_reliable());
        assert!(z.abs() < 4.0 || !result.is_reliable(), "{formula} {method}: z = {z}");
    }
}

#[test]
fn separable_data() {
    let rows: Vec<Vec<f64>> =
        (0..60).map(|i| vec![f64::from(u8::from(i >= 30)), f64::from(i) / 10.0 - 2.95]).collect();
    agree_or_warn(&rows, "y ~ x1", "coefficients = \"normal(0, 5)\"");
}

#[test]
fn a_constant_column_and_one_of_scale_a_million() {
    let rows: Vec<Vec<f64>> = (0..80)
        .map(|i| {
            let x = f64::from(i * 7 % 80) / 20.0 - 2.0;
            vec![f64::from(u8::from((f64::from(i) * 1.3).sin() + x > 0.0)), 3.0, 1e6 * x]
        })
        .collect();
    agree_or_warn(&rows, "y ~ x1 + x2", "[prior.parameters]\nx2 = \"normal(0, 1e-6)\"");
    // With the default prior the likelihood is a step to this column, and there may be no answer:
    // then there is an error or a warning, and never a number that is none.
    let folder = tempfile::tempdir().unwrap();
    for method in METHODS {
        match try_run(&study(folder.path(), &rows, "y ~ x2", method).text()) {
            Ok(result) => assert!(result.models[0].log_evidence.value < 0.0, "{method}"),
            Err(error) => {
                let message = error.to_string();
                assert!(message.contains("model `y ~ x2`, shard 0"), "{method}: {message}");
            }
        }
    }
}

#[test]
fn three_rows_with_eight_parameters() {
    let rows: Vec<Vec<f64>> = (0..3)
        .map(|i| {
            let x = |j: i32| f64::from((i * 5 + j * 3) % 7) - 3.0;
            let mut row = vec![f64::from(i % 2)];
            row.extend((1..=7).map(x));
            row
        })
        .collect();
    agree_or_warn(&rows, "y ~ x1 + x2 + x3 + x4 + x5 + x6 + x7", "");
}

/// A Cauchy prior's twentieth part cannot be integrated on its own: shards whose rows bound all
/// parameters have an evidence, and `exact` needs none.
#[test]
fn a_cauchy_prior_on_twenty_shards() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<Vec<f64>> = (0..2000)
        .map(|i| {
            let x = f64::from(i * 37 % 200) / 50.0 - 2.0;
            vec![f64::from(u8::from((f64::from(i) * 1.3).sin() + 0.5 * x > 0.0)), x]
        })
        .collect();
    let run = |combine: &str, local: &str, shards: usize| {
        let mut case = study(folder.path(), &rows, "y ~ x1", local);
        case.split = format!("shards = {shards}");
        case.prior = "coefficients = \"cauchy(0, 1)\"\nintercept = \"cauchy(0, 1)\"".into();
        case.evidence = format!("combine = {combine:?}\nlocal = {local:?}\ndraws = 4000");
        try_run(&case.text()).unwrap()
    };
    let one = run("exact", "auto", 1).models[0].log_evidence;
    // With 100 rows a shard the normal shape is off by half a nat or so, which is no Monte Carlo error: both
    // methods must find the same number, and that one must be near.
    let [importance, nuts] = ["importance", "nuts+warp3"].map(|method| {
        let result = run("normal", method, 20);
        assert_eq!(result.models[0].parts.log_alpha, None);
        result.models[0].log_evidence
    });
    let error = importance.se.unwrap().hypot(nuts.se.unwrap());
    assert!((importance.value - nuts.value).abs() < 4.0 * error, "{importance:?}, {nuts:?}");
    assert!((nuts.value - one.value).abs() < 1.0 + 4.0 * nuts.se.unwrap(), "{nuts:?}, {one:?}");
    let many = run("exact", "auto", 20).models[0].log_evidence;
    assert!((many.value - one.value).abs() < 4.0 * many.se.unwrap().hypot(one.se.unwrap()));
}

/// Sixty orthogonal columns, σ known, and Laplace priors so narrow that every coefficient has a kink in the
/// middle of its posterior, which proposals in θ do not fit. The evidence is a
/// product of integrals of a normal times a Laplace density.
#[test]
fn many_kinks_do_no_harm() {
    let (columns, rows, b) = (60_usize, 256_usize, 0.02);
    let sign = |i: usize, j: usize| if (i & j).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
    let x = |i: usize, j: usize| sign(i % 64, j + 1);
    let y = |i: usize| 1.4 * libm::sin(7.3 * i as f64 * i as f64) + 0.3 * x(i, 3);
    let data: Vec<Vec<f64>> = (0..rows)
        .map(|i| [y(i)].into_iter().chain((0..columns).map(|j| x(i, j))).collect())
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let formula = "y ~ 0 + .";
    let mut case = study(folder.path(), &data, formula, "auto");
    case.split = "shards = 4".into();
    case.models.clear();
    case.model(formula, "gaussian");
    case.prior = format!("coefficients = \"laplace(0, {b})\"\nlog_sd = \"fixed(0)\"");

    let n = rows as f64;
    let s = 1.0 / n.sqrt();
    let fitted: Vec<f64> =
        (0..columns).map(|j| (0..rows).map(|i| x(i, j) * data[i][0]).sum::<f64>() / n).collect();
    let squares: f64 = data.iter().map(|row| row[0] * row[0]).sum();
    let rss = squares - n * fitted.iter().map(|m| m * m).sum::<f64>();
    let log_2pi = libm::log(2.0 * std::f64::consts::PI);
    let normal_tail = |z: f64| 0.5 * libm::erfc(z / std::f64::consts::SQRT_2);
    let one = |m: f64| {
        let side = |m: f64| libm::exp(0.5 * s * s / (b * b) - m / b) * normal_tail(s / b - m / s);
        libm::log((side(m) + side(-m)) / (2.0 * b)) + 0.5 * log_2pi + libm::log(s)
    };
    let exact = -0.5 * n * log_2pi - 0.5 * rss + fitted.iter().map(|&m| one(m)).sum::<f64>();

    for seed in 1..=5 {
        case.evidence = format!("seed = {seed}\ndraws = 5000");
        let result = try_run(&case.text()).unwrap();
        let model = &result.models[0];
        let found = model.log_evidence;
        let z = (found.value - exact) / found.se.unwrap();
        println!(
            "seed {seed}: {} ± {}, exactly {exact}: z = {z:.2}",
            found.value,
            found.se.unwrap()
        );
        assert!(z.abs() < 4.0 && found.se.unwrap() < 0.1, "seed {seed}: z = {z}");
        assert!(result.is_reliable(), "{:?}", model.warnings);
    }
}
