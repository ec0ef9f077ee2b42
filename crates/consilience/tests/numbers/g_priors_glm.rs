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

/// Priors that leave nothing to the coefficients have the evidence without them, and such as spread them far lose a
/// factor of ten for each with every factor of ten. So the integral over g follows its prior wherever that is.
#[test]
fn the_ends_of_every_scale_are_right() {
    let log_zs = |prior: &str| {
        let prior = format!("coefficients = \"{prior}\"");
        let models = [("y ~ 1", "logistic"), ("y ~ x1", "logistic"), ("y ~ x1 + x2", "logistic")];
        let found = run(&study(2, &prior, "", &models)).unwrap();
        [0, 1, 2].map(|m| found.models[m].log_evidence)
    };
    for prior in ["jzs(1e-9)", "hyper-g(1e19)", "hyper-g/n(1e22)"] {
        let [none, one, two] = log_zs(prior);
        for model in [one, two] {
            let off = model - none;
            assert!(off.value.abs() < 4.0 * off.se.unwrap() + 1e-6, "{prior}: {off:?}");
            assert!(off.se.unwrap() < 0.015, "{prior}: {off:?}");
        }
    }
    let (narrow, wide) = (log_zs("jzs(1e8)"), log_zs("jzs(1e9)"));
    for columns in [1, 2] {
        let lost = narrow[columns] - wide[columns];
        let off = lost.value - columns as f64 * std::f64::consts::LN_10;
        assert!(off.abs() < 4.0 * lost.se.unwrap() + 1e-6, "{columns} columns: {lost:?}");
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

/// The unit of an exposure, or a constant in an offset, is the flat intercept's affair and no one else's.
#[test]
fn offsets_have_no_unit() {
    for (family, outcome, offsets) in [
        ("poisson", "k", ["log(time)", "log(time * 1000)", "log(time / 1e6)"]),
        ("logistic", "y", ["known", "known - 5", "known + 9"]),
    ] {
        for prior in ["jzs(medium)", "g-prior(n)"] {
            // Without the shards' own peaks too.
            for evidence in ["", "schedule = \"gentle\""] {
                let log_zs: Vec<_> = offsets
                    .iter()
                    .map(|offset| {
                        let formula = format!("{outcome} ~ x1 + x2 + offset({offset})");
                        let prior = format!("coefficients = \"{prior}\"");
                        let models = [(formula.as_str(), family)];
                        let found = run(&study(3, &prior, evidence, &models)).unwrap();
                        assert!(found.is_reliable(), "{formula}: {:?}", found.models[0].warnings);
                        found.models[0].log_evidence
                    })
                    .collect();
                for other in &log_zs[1..] {
                    let off = *other - log_zs[0];
                    let bound = 4.0 * off.se.unwrap() + 1e-6;
                    assert!(
                        off.value.abs() < bound && bound < 0.1,
                        "{family}, {prior}: {log_zs:?}"
                    );
                }
            }
        }
    }
    let shifted = [("y ~ x1 + offset(known)", "probit")];
    let message =
        run(&study(1, "coefficients = \"jzs(wide)\"", "", &shifted)).unwrap_err().to_string();
    assert!(message.contains("the offset of this probit model"), "{message}");
}

/// Columns that tell the two kinds of rows apart without a miss leave the likelihood of g rising as √g does: no integral,
/// unless the prior falls faster or the intercept has one of its own.
#[test]
fn separated_rows_have_no_evidence_under_heavy_tails() {
    let folder = tempfile::tempdir().unwrap();
    // By scripts/separated_g.py, under hyper-g(4).
    for (n, known) in [(8, -2.30449), (60, -8.23678)] {
        let path = folder.path().join(format!("{n}.csv"));
        let rows: String = (0..n).map(|i| format!("{i},{}\n", u8::from(2 * i >= n))).collect();
        std::fs::write(&path, format!("x,y\n{rows}")).unwrap();
        let seeded = |prior: &str, seed: u64| {
            let mut case = Case::new(path.to_str().unwrap(), 2);
            case.default = String::new();
            case.prior = prior.into();
            case.evidence = format!("seed = {seed}");
            case.model("y ~ x", "logistic");
            run(&case.text())
        };
        let attempt = |prior: &str| seeded(prior, 1);
        for prior in ["jzs(medium)", "hyper-g(3)", "hyper-g/n(3)", "robust"] {
            let prior = format!("coefficients = \"{prior}\"");
            let message = attempt(&prior).unwrap_err().to_string();
            assert!(
                message.contains("without a miss") && message.contains("hyper-g(4)"),
                "{message}"
            );
            let proper = format!("{prior}\nintercept = \"normal(0, 2.5)\"");
            assert!(attempt(&proper).unwrap().models[0].log_evidence.value.is_finite());
        }
        // What lies beyond the last node counts.
        for seed in 1..=5 {
            let found = seeded("coefficients = \"hyper-g(4)\"", seed).unwrap();
            let log_z = found.models[0].log_evidence;
            let z = (log_z.value - known) / log_z.se.unwrap();
            assert!(z.abs() < 4.0 && log_z.se.unwrap() < 0.05, "{n}, seed {seed}: {log_z:?}, {z}");
        }
    }
}

/// Trials that are counted, the same with a row each, and rows with weights.
fn counted(folder: &Path) -> [(PathBuf, &'static str, &'static str); 3] {
    let (mut counts, mut rows) = ("k,n,x\n".to_string(), "y,x\n".to_string());
    let mut weighted = "y,x,w\n".to_string();
    for i in 0..60_usize {
        let (n, x) = (i * 7 % 11, 20.0 + 3.0 * (i as f64 * 0.9).sin());
        let k = if n == 0 { 0 } else { (i * 5 + usize::from(x > 20.0) * 4) % (n + 1) };
        counts += &format!("{k},{n},{x:.3}\n");
        weighted += &format!("1,{x:.3},{k}\n0,{x:.3},{}\n", n - k);
        (0..n).for_each(|j| rows += &format!("{},{x:.3}\n", u8::from(j < k)));
    }
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    [
        (write("counts.csv", &counts), "k/trials(n)", ""),
        (write("rows.csv", &rows), "y", ""),
        (write("weighted.csv", &weighted), "y", "weights = \"w\""),
    ]
}

/// The same data have the same answer, whether trials are counted, stand in rows of their own, or are weights: n is the
/// number of trials, and standard deviations are over them.
#[test]
fn trials_count_like_rows_and_weights() {
    let folder = tempfile::tempdir().unwrap();
    let all = counted(folder.path());
    for (prior, family) in [
        ("g-prior(n)", "logistic"),
        ("jzs(medium)", "probit"),
        ("robust", "logistic"),
        ("hyper-g/n(3)", "logistic"),
        ("normal(0, 1) per sd", "logistic"),
    ] {
        let mut found = Vec::new();
        for (path, outcome, data) in &all {
            let mut case = Case::new(path.to_str().unwrap(), 1);
            case.data += &format!("\n{data}");
            case.split = "shards = 1\nshare = \"rows\"".into();
            case.default = String::new();
            case.prior = format!("coefficients = \"{prior}\"");
            for columns in ["1", "x"] {
                case.models += &format!(
                    "[[model]]\nname = \"m{columns}\"\nformula = \"{outcome} ~ {columns}\"\nfamily = \"{family}\"\n"
                );
            }
            let study = StudyFile::parse(&case.text(), Path::new("study.toml")).unwrap();
            let plan = Plan::new(study, 2, &Silent).unwrap();
            // What priors are made of.
            let setting = &plan.settings[1];
            let [survey] = &setting.surveys[..] else { panic!("one shard") };
            let mut known = vec![survey.observations, setting.model.start()[0]];
            known.extend(
                setting.joint.group().map(|(g, _)| g.spread(survey.observations, 1, 1.0).g(0.0)),
            );
            for parameter in &setting.model.parameters {
                known.extend([parameter.prior.centre(), parameter.prior.spread()]);
            }
            let result = plan.run(&Silent).unwrap();
            assert!(result.is_reliable());
            found.push((known, result.models[0].log_evidence - result.models[1].log_evidence));
        }
        let (known, factor) = &found[0];
        assert_eq!(known[0], all_trials());
        for (other, again) in &found[1..] {
            for (a, b) in known.iter().zip(other) {
                assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{prior}: {known:?}, {other:?}");
            }
            let off = *again - *factor;
            let bound = 4.0 * off.se.unwrap() + 1e-6;
            assert!(off.value.abs() < bound && bound < 0.1, "{prior}: {off:?}");
        }
    }
}

fn all_trials() -> f64 {
    (0..60).map(|i| f64::from(i * 7 % 11)).sum()
}

/// A flat intercept needs outcomes that bound it from both sides: otherwise the integral is infinite, which is said before
/// anything is computed.
#[test]
fn outcomes_that_do_not_bound_a_flat_intercept_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeros.csv");
    std::fs::write(&path, "y,n,x\n0,4,1\n0,3,2\n0,2,5\n").unwrap();
    let attempt = |formula: &str, family: &str, prior: &str| {
        let mut case = Case::new(path.to_str().unwrap(), 1);
        case.default = String::new();
        case.prior = prior.into();
        case.model(formula, family);
        run(&case.text()).map(|found| found.is_reliable())
    };
    let flat = "coefficients = \"jzs(medium)\"";
    for (formula, family, said) in [
        ("y ~ x", "poisson", "its integral is infinite; give the intercept a proper prior"),
        ("y ~ x + offset(log(n))", "poisson", "is 0 in all 3 complete rows"),
        ("y/trials(n) ~ x", "logistic", "has failures alone, 9 of them"),
        ("n/trials(n) ~ x", "probit", "has successes alone, 9 of them"),
        ("y ~ x", "logistic", "is 0 in all 3 complete rows"),
    ] {
        let message = attempt(formula, family, flat).unwrap_err().to_string();
        assert!(message.contains(said), "{formula}: {message}");
    }
    let proper = format!("{flat}\nintercept = \"normal(0, 2.5)\"");
    assert!(attempt("y ~ x", "poisson", &proper).unwrap());
}

/// What is said of flat priors names those that there are.
#[test]
fn a_flat_prior_is_named_where_there_is_one() {
    let said = |prior: &str, formula: &str, family: &str| {
        let prior = format!("coefficients = \"g-prior(n)\"\n{prior}");
        let study = study(2, &prior, "", &[(formula, family)]);
        let study = StudyFile::parse(&study, Path::new("study.toml")).unwrap();
        let plan = Plan::new(study, 2, &Silent).unwrap();
        let found = plan.warnings.iter().find(|w| w.code == "improper-prior");
        found.map(|w| format!("{} {}", w.message, w.advice))
    };
    for (formula, family) in [("y ~ x1", "logistic"), ("k ~ x1", "poisson")] {
        let text = said("", formula, family).unwrap();
        assert!(
            text.starts_with("intercept has a flat prior") && !text.contains("log_sd"),
            "{text}"
        );
        assert!(said("intercept = \"normal(0, 2)\"", formula, family).is_none());
    }
    let both = said("", "k ~ x1", "gaussian").unwrap();
    assert!(both.starts_with("intercept and log_sd have flat priors"), "{both}");
    assert!(both.contains("give `intercept` and `log_sd` proper priors"), "{both}");
    let one = said("intercept = \"normal(0, 2)\"", "k ~ x1", "gaussian").unwrap();
    assert!(one.starts_with("log_sd has a flat prior"), "{one}");
}
