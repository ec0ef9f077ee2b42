//! Exact and published values: every case of data/truth.json.

use crate::common::{Case, run, truth};
use consilience::Level;

/// Runs models on a data set in one shard by importance sampling with 20,000 draws, and compares
/// each log evidence with its reference within four standard errors of the two.
fn reproduce(data: &str, family: &str, cases: &[(String, f64, f64)]) {
    let mut study = Case::new(data, 1);
    study.evidence = "local = \"importance\"\ncombine = \"normal\"\ndraws = 20000\nseed = 1".into();
    for (formula, ..) in cases {
        study.model(formula, family);
    }
    let result = run(&study.text());
    assert!(result.is_reliable(), "{data}");
    for (model, (formula, value, se_truth)) in result.models.iter().zip(cases) {
        let (found, se) = (model.log_evidence.value, model.log_evidence.se.unwrap());
        let error = found - value;
        let bound = (4.0 * se.hypot(*se_truth)).max(0.01);
        println!("{formula}: {found:.4} ± {se:.4}, truth {value:.4}, error {error:+.4}");
        assert!(error.abs() <= bound, "{formula}: {found} ± {se} is not {value} ± {se_truth}");
        assert!(se <= 0.01, "{formula}: se {se}");
        // With one shard there is nothing to overlap.
        assert!(model.parts.overlap.unwrap().value.abs() < 1e-9);
    }
}

fn cases(data: &str, formula: impl Fn(&str) -> String) -> Vec<(String, f64, f64)> {
    let models = &truth()[data]["models"];
    models
        .as_object()
        .unwrap()
        .iter()
        .map(|(k, v)| (formula(k), v["value"].as_f64().unwrap(), v["se"].as_f64().unwrap()))
        .collect()
}

#[test]
fn flights() {
    reproduce("flights.parquet", "logistic", &cases("flights", str::to_string));
}

#[test]
fn gaussian_toy() {
    reproduce("gauss.parquet", "gaussian", &cases("gauss", str::to_string));
}

#[test]
fn all_32_models_of_sim2() {
    let formula = |key: &str| {
        let used = key.chars().enumerate().filter(|(_, c)| *c == '1');
        used.fold("y ~ 1".to_string(), |f, (i, _)| format!("{f} + x{}", i + 1))
    };
    let cases = cases("sim2", formula);
    assert_eq!(cases.len(), 32);
    reproduce("sim2.parquet", "logistic", &cases);
}

const PIMA: &str = "type ~ scale(npreg) + scale(glu) + scale(bp) + scale(skin) + scale(bmi) + scale(ped) + scale(age)";

fn pima_truth(name: &str) -> (f64, f64) {
    let case = &truth()["pima_tr"]["models"][name];
    (case["value"].as_f64().unwrap(), case["se"].as_f64().unwrap())
}

#[test]
fn pima_logistic_and_probit() {
    for family in ["logistic", "probit"] {
        let (value, se) = pima_truth(&format!("{family}, normal(0,1)"));
        reproduce("pima_tr.csv", family, &[(PIMA.into(), value, se)]);
    }
}

/// A prior with a kink: right within its error, or a warning that says it is not to be trusted. A
/// confident wrong number fails.
#[test]
fn pima_with_laplace_priors_is_right_or_says_that_it_is_not() {
    let (value, se_truth) = pima_truth("logistic, laplace(0,1)");
    for combine in ["normal", "exact"] {
        for seed in 1..=10 {
            let mut study = Case::new("pima_tr.csv", 1);
            study.prior = "coefficients = \"laplace(0, 1)\"\nintercept = \"laplace(0, 1)\"".into();
            study.evidence = format!("combine = \"{combine}\"\ndraws = 20000\nseed = {seed}");
            study.model(PIMA, "logistic");
            let result = run(&study.text());
            let found = result.models[0].log_evidence;
            let z = (found.value - value) / found.se.unwrap().hypot(se_truth);
            println!("{combine} {seed}: {} ± {:?}, z = {z:.2}", found.value, found.se);
            assert!(z.abs() < 4.0 || !result.is_reliable(), "{combine}: {found:?}, z = {z}");
        }
    }
}

/// Plain Laplace on Pima is off by 0.09 and has no error bar to say so: it is marked instead.
#[test]
fn plain_laplace_says_that_it_has_no_error_bar() {
    let (value, _) = pima_truth("logistic, normal(0,1)");
    let mut study = Case::new("pima_tr.csv", 1);
    study.evidence = "local = \"laplace\"\ncombine = \"normal\"".into();
    study.model(PIMA, "logistic");
    let result = run(&study.text());
    let model = &result.models[0];
    assert_eq!(model.log_evidence.se, None);
    let error = model.log_evidence.value - value;
    assert!(error.abs() > 0.05 && error.abs() < 0.15, "{error}");
    let codes: Vec<(&str, Level)> =
        model.warnings.iter().map(|w| (w.code.as_str(), w.level)).collect();
    assert_eq!(codes, [("no-error-bar", Level::Caution)]);
}

/// examples/flights.toml as it stands: 50 shards, exact.
#[test]
fn the_flights_example_is_within_four_standard_errors() {
    let path = crate::common::root().join("examples/flights.toml");
    let result = crate::common::run_study(consilience::study::StudyFile::read(path).unwrap(), 2);
    assert!(result.is_reliable());
    assert_eq!(result.partition.shards, 50);
    for (formula, value, se_truth) in cases("flights", str::to_string) {
        let model = result.models.iter().find(|m| m.formula == formula).unwrap();
        let (found, se) = (model.log_evidence.value, model.log_evidence.se.unwrap());
        assert!((found - value).abs() < 4.0 * se.hypot(se_truth), "{formula}: {found} ± {se}");
    }
}

/// One observation x = 2 ~ N(θ, 1), θ ~ N(0, s²).
#[test]
fn one_normal_observation() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("one.csv");
    std::fs::write(&data, "y\n2\n").unwrap();
    let closed = &truth()["closed_form"]["normal mean"];
    for sd in ["10", "0.1", "1000"] {
        let mut study = Case::new(data.to_str().unwrap(), 1);
        study.prior = format!("intercept = \"normal(0, {sd})\"\nlog_sd = \"fixed(0)\"");
        study.evidence = "local = \"laplace\"\ncombine = \"normal\"".into();
        study.model("y ~ 1", "gaussian");
        let found = run(&study.text()).models[0].log_evidence.value;
        let value = closed[format!("s={sd}")].as_f64().unwrap();
        assert!((found - value).abs() < 1e-6, "s = {sd}: {found} is not {value}");
    }
}
