//! g-priors of models that are not Gaussian, against quadrature over coefficients and g in R
//! (scripts/g_priors_glm.R).

use crate::common::Case;
use consilience::compare::Comparison;
use consilience::engine::Silent;
use consilience::plan::Plan;
use consilience::study::StudyFile;
use std::path::{Path, PathBuf};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn study(shards: usize, prior: &str, evidence: &str, models: &[(&str, &str)]) -> String {
    let mut case = Case::new(file("g_priors_glm.csv").to_str().unwrap(), shards);
    case.default = String::new();
    case.prior = prior.into();
    case.evidence = evidence.into();
    models.iter().for_each(|(formula, family)| {
        case.model(formula, family);
    });
    case.text()
}

fn run(text: &str) -> consilience::Result<Comparison> {
    let study = StudyFile::parse(text, Path::new("study.toml"))?;
    Plan::new(study, 2, &Silent)?.run(&Silent)
}

struct Known {
    family: String,
    formula: String,
    prior: String,
    log_evidence: f64,
}

fn known() -> Vec<Known> {
    let text = std::fs::read_to_string(file("g_priors_glm.json")).unwrap();
    let all: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let word = |r: &serde_json::Value, key: &str| r[key].as_str().unwrap().to_string();
    all.iter()
        .map(|r| Known {
            family: word(r, "family"),
            formula: word(r, "formula"),
            prior: format!(
                "coefficients = \"{}\"\nintercept = \"{}\"",
                word(r, "prior"),
                word(r, "intercept")
            ),
            log_evidence: r["log_evidence"].as_f64().unwrap(),
        })
        .collect()
}

/// One shard and seven; a model without columns needs another beside it that has some.
#[test]
fn evidences_are_those_of_quadrature() {
    for case in known() {
        let more = match case.formula.as_str() {
            "y ~ 1" => vec![("y ~ 1", "logistic"), ("y ~ x1", "logistic")],
            _ => vec![(case.formula.as_str(), case.family.as_str())],
        };
        // Without the shards' own peaks too.
        for (shards, evidence) in [(1, ""), (7, ""), (7, "schedule = \"gentle\"")] {
            let found = run(&study(shards, &case.prior, evidence, &more)).unwrap();
            let model = &found.models[0];
            let (value, se) = (model.log_evidence.value, model.log_evidence.se.unwrap());
            let off = value - case.log_evidence;
            assert!(
                off.abs() < 4.0 * se + 1e-6 && se < 0.015,
                "{} {} at {shards} {evidence}: {value} ± {se} is not {}",
                case.formula,
                case.prior,
                case.log_evidence
            );
            assert!(found.is_reliable());
        }
    }
}

/// Error bars are as long as errors are.
#[test]
fn error_bars_are_calibrated() {
    let two_columns = |c: &&Known| {
        c.formula == "y ~ x1 + x2" || (c.formula == "k ~ x1 + x2" && c.prior.contains("jzs"))
    };
    for case in known().iter().filter(two_columns) {
        let z: Vec<f64> = (1..=40)
            .map(|seed| {
                let evidence = format!("seed = {seed}");
                let models = [(case.formula.as_str(), case.family.as_str())];
                let found = run(&study(3, &case.prior, &evidence, &models)).unwrap();
                let log_z = found.models[0].log_evidence;
                (log_z.value - case.log_evidence) / log_z.se.unwrap()
            })
            .collect();
        let rms = (z.iter().map(|z| z * z).sum::<f64>() / z.len() as f64).sqrt();
        let (mean, _) = crate::common::spread(&z);
        let what = format!("{} {}: rms {rms:.2}, mean {mean:.2}", case.family, case.prior);
        println!("{}", what.replace('\n', " "));
        // Most of hyper-g's bar is the error of the integral over g, which is the same for every seed.
        let bound = if case.prior.contains("hyper-g") { 1.2 } else { 0.6 };
        assert!((0.4..1.4).contains(&rms) && mean.abs() < bound, "{what}: {z:?}");
    }
}

/// Neither units nor order of columns matter, up to the draws' own errors; collinear columns are refused.
#[test]
fn units_and_order_do_not_matter() {
    let prior = "coefficients = \"jzs(wide)\"";
    let models = [
        ("y ~ x1 + x2", "logistic"),
        ("y ~ x2 + x1", "logistic"),
        ("y ~ I(x1 * 1000) + I(x2 / 50)", "logistic"),
        ("y ~ x1 + I(x1 + x2)", "logistic"),
    ];
    let found = run(&study(2, prior, "", &models)).unwrap();
    let first = found.models[0].log_evidence;
    for model in &found.models[1..] {
        let off = model.log_evidence - first;
        assert!(off.value.abs() < 4.0 * off.se.unwrap(), "{}: {off:?}", model.name);
    }
    let slope = |m: usize, p: usize| found.models[m].parameters[p].mean;
    assert!((slope(2, 1) * 1000.0 / slope(0, 1) - 1.0).abs() < 0.05);
    let twice = [("y ~ x1 + x2 + I(x1 - 2 * x2)", "logistic")];
    let message = run(&study(2, prior, "", &twice)).unwrap_err().to_string();
    assert!(message.contains("the column of `I(x1 - 2 * x2)` is a combination"), "{message}");
    let normal = study(2, prior, "combine = \"normal\"", &models[..1]);
    let message = run(&normal).unwrap_err().to_string();
    assert!(message.contains("needs combine = \"exact\""), "{message}");
}
