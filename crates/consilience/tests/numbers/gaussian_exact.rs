//! Gaussian models from their statistics, where everything can be computed: two peaks, heavy tails, kinks,
//! perfect fits, data far from 0, priors that are not normal. The references come from
//! scripts/gaussian_reference.py unless a comment says otherwise.

use crate::common::{Case, root, run, spread};
use consilience::compare::Comparison;
use consilience::engine::Silent;
use consilience::plan::{Extras, Plan};
use consilience::study::StudyFile;
use std::fmt::Display;
use std::path::Path;

/// A study of one Gaussian model on rows of text, whose columns are y and x.
fn study<T: Display>(
    folder: &Path,
    rows: &[T],
    shards: usize,
    formula: &str,
    prior: &str,
) -> String {
    let path = folder.join("data.csv");
    let header = if rows[0].to_string().contains(',') { "y,x" } else { "y" };
    let text = rows.iter().fold(format!("{header}\n"), |text, row| text + &format!("{row}\n"));
    std::fs::write(&path, text).unwrap();
    let mut case = Case::new(path.to_str().unwrap(), shards);
    case.prior = prior.into();
    case.model(formula, "gaussian");
    case.text()
}

fn codes(result: &Comparison) -> Vec<&str> {
    result.models[0].warnings.iter().map(|w| w.code.as_str()).collect()
}

/// The same evidence for any number of shards, within `most` of this one and trusted.
fn check<T: Display>(rows: &[T], formula: &str, prior: &str, exact: f64, most: f64) {
    let folder = tempfile::tempdir().unwrap();
    for shards in 1..=rows.len().min(7) {
        let result = run(&study(folder.path(), rows, shards, formula, prior));
        let found = result.models[0].log_evidence;
        let off = (found.value - exact).abs();
        println!(
            "{formula}, {prior:?}, {shards} shards: {} ± {:?}, off by {off:.1e}",
            found.value, found.se
        );
        assert!(off < most, "{formula}, {prior:?}, {shards} shards: {found:?} is not {exact}");
        assert!(found.se.unwrap() < most && result.is_reliable());
        let method = result.models[0].combination.as_ref().unwrap().method;
        assert!(["quadrature", "closed form"].contains(&method), "{method}");
    }
}

const TWENTY: [f64; 20] = [
    15.3535, 14.6058, 15.0895, 14.9292, 14.9479, 14.9865, 14.6929, 14.9838, 14.8808, 15.5621,
    15.0583, 14.9642, 14.9758, 14.9129, 14.8499, 14.958, 15.0999, 14.9827, 15.1773, 14.989,
];

#[test]
fn cases_that_were_wrong_once() {
    let text =
        std::fs::read_to_string(root().join("crates/consilience/tests/data/gaussian_hard.jsonl"));
    let folder = tempfile::tempdir().unwrap();
    for line in text.unwrap().lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let path = folder.path().join("d.csv");
        std::fs::write(&path, case["csv"].as_str().unwrap()).unwrap();
        let study = case["study"].as_str().unwrap().replace("\"d.csv\"", &format!("{path:?}"));
        let result = run(&study);
        let (found, truth) = (result.models[0].log_evidence, case["truth"].as_f64().unwrap());
        println!("{}: {found:?}, off by {:.1e}", case["name"], found.value - truth);
        assert!((found.value - truth).abs() < 1e-8, "{}: {found:?} is not {truth}", case["name"]);
        assert!(result.is_reliable());
    }
}

#[test]
fn both_peaks_count() {
    check(&TWENTY, "y ~ 1", PLAIN, -86.69391663816505, 1e-9);
}

const PLAIN: &str = "intercept = \"normal(0, 1)\"\nlog_sd = \"normal(0, 1)\"";

#[test]
fn a_perfect_fit_rests_on_the_prior_of_log_sd() {
    let rows = ["0.1"; 60];
    check(&rows, "y ~ 1", PLAIN, 1683.3115157266086, 1e-9);
    let laplace = "intercept = \"normal(0, 1)\"\nlog_sd = \"laplace(0, 0.01)\"";
    check(&rows, "y ~ 1", laplace, -56.76852364916067, 1e-9);
    // A line through every point, with decimals that are not exact in binary.
    let rows: Vec<String> = (0..30)
        .map(|i| format!("{:.2},{:.1}", 100.1 + 0.03 * f64::from(i), 0.1 * f64::from(i)))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let mut found = Vec::new();
    for shards in 1..=3 {
        let result = run(&study(folder.path(), &rows, shards, "y ~ x", PLAIN));
        assert!(codes(&result).contains(&"perfect-fit"), "{:?}", codes(&result));
        found.push(result.models[0].log_evidence.value);
    }
    assert!(found.iter().all(|value| (value - found[0]).abs() < 1e-9), "{found:?}");
}

#[test]
fn an_infinite_evidence_is_no_number() {
    let folder = tempfile::tempdir().unwrap();
    let rows = ["0.1"; 3];
    let with = |log_sd: &str| format!("intercept = \"normal(0, 1)\"\nlog_sd = {log_sd:?}");
    for shards in 1..=3 {
        // One coefficient and three rows: the likelihood grows like 1/σ².
        for log_sd in ["cauchy(0, 1)", "student_t(50, 0, 1)", "laplace(0, 0.5)", "laplace(0, 2)"] {
            let text = study(folder.path(), &rows, shards, "y ~ 1", &with(log_sd));
            let study = StudyFile::parse(&text, Path::new("study.toml")).unwrap();
            let error = Plan::new(study, 2, &Silent).unwrap().run(&Silent).unwrap_err();
            assert!(!error.is_input());
            let message = error.to_string();
            assert!(message.contains("infinite") && message.contains("`log_sd`"), "{message}");
        }
        for log_sd in ["normal(0, 5)", "laplace(0, 0.49)"] {
            let result = run(&study(folder.path(), &rows, shards, "y ~ 1", &with(log_sd)));
            assert!(result.models[0].log_evidence.value.is_finite());
        }
    }
    // A shard of one row under half of a Cauchy prior, although all rows together bound it.
    let mut text = study(folder.path(), &["0.1", "0.4"], 2, "y ~ 1", &with("cauchy(0, 1)"));
    assert!(run(&text).models[0].log_evidence.value.is_finite());
    // `exact` does without its own evidence and says so; what rests on it fails.
    text = text.replace("[evidence]", "[evidence]\nlocal = \"quadrature\"");
    let found = run(&text);
    let model = &found.models[0];
    let warning = model.warnings.iter().find(|w| w.code == "shard-fit-failed").unwrap();
    let message = &warning.message;
    assert!(message.contains("infinite") && message.contains("power 0.5"), "{message}");
    assert!(model.parts.shards.is_none() && model.log_evidence.value.is_finite());
    text = text.replace("[evidence]", "[evidence]\ncombine = \"normal\"");
    let study = StudyFile::parse(&text, Path::new("study.toml")).unwrap();
    let error = Plan::new(study, 2, &Silent).unwrap().run(&Silent).unwrap_err().to_string();
    assert!(error.contains("infinite") && error.contains("power 0.5"), "{error}");
}

#[test]
fn data_far_from_zero_keep_their_digits() {
    let far =
        "log_sd = \"normal(0, 1)\"\n[prior.parameters]\n\"(Intercept)\" = \"normal(1.7e9, 1)\"";
    let rows: Vec<f64> =
        (0..200).map(|i| 1.7e9 + 0.01 * f64::from((7919 * i) % 201 - 100) / 58.0).collect();
    check(&rows, "y ~ 1", far, 615.947629298917, 1e-9);
    let prior = "coefficients = \"normal(0, 1)\"\nlog_sd = \"normal(0, 1)\"\n[prior.parameters]\n\"(Intercept)\" = \"normal(-3.4e9, 10)\"";
    let xs: Vec<f64> = (0..40).map(|i| 1.7e9 + (f64::from((37 * i) % 40) - 19.5) / 10.0).collect();
    let row = |(i, x): (usize, &f64)| {
        let noise = ((7919 * i) % 41) as f64 - 20.0;
        format!("{},{x}", 3.0 + 2.0 * (x - 1.7e9) + noise / 100.0)
    };
    let rows: Vec<String> = xs.iter().enumerate().map(row).collect();
    check(&rows, "y ~ x", prior, -2.6838391018027026, 1e-9);
}

/// Without an intercept the dummies of a factor carry the level: the same model, but for its priors, as one
/// with all outcomes moved.
#[test]
fn dummies_carry_a_level_far_from_zero() {
    let folder = tempfile::tempdir().unwrap();
    let evidence = |level: f64, shards: usize, formula: &str| {
        let path = folder.path().join("groups.csv");
        let row = |i: i32| {
            let group = ["a", "b", "c"][i as usize % 3];
            // Eighths are exact at every level.
            format!(
                "{},{group},{}\n",
                level + f64::from((37 * i) % 41 - 20) / 8.0,
                f64::from(i % 7)
            )
        };
        let text = (0..42).map(row).fold("y,group,x\n".to_string(), |text, row| text + &row);
        std::fs::write(&path, text).unwrap();
        let mut case = Case::new(path.to_str().unwrap(), shards);
        let groups =
            ["a", "b", "c"].map(|g| format!("group{g} = \"normal({level}, 3)\"\n")).concat();
        case.prior = format!(
            "coefficients = \"normal(0, 1)\"\nlog_sd = \"normal(0, 1)\"\n[prior.parameters]\n{groups}"
        );
        case.model(formula, "gaussian");
        run(&case.text()).models[0].log_evidence.value
    };
    for formula in ["y ~ 0 + group", "y ~ 0 + group + x"] {
        let near = evidence(0.0, 1, formula);
        for shards in 1..=4 {
            let far = evidence(1073741824.0, shards, formula);
            assert!((far - near).abs() < 1e-9, "{formula}, {shards} shards: {far} is not {near}");
        }
    }
}

#[test]
fn narrow_priors_beside_broad_likelihoods() {
    let rows = [
        -1.11, -0.288, -0.263, -0.237, 1.119, 0.133, 0.359, 0.006, -0.898, 0.172, 0.726, 0.117,
        -0.548, -1.221, 1.625, -0.787, -0.795, -1.312, 0.312, 0.107,
    ];
    let prior = "intercept = \"normal(0, 1)\"\nlog_sd = \"cauchy(0.8, 0.001)\"";
    check(&rows, "y ~ 1", prior, -33.35820241707877, 1e-9);
    // As many rows as coefficients: only the prior's tail bounds log sd from below.
    let prior = "intercept = \"normal(0, 1)\"\nlog_sd = \"cauchy(0, 1)\"";
    check(&["3"], "y ~ 1", prior, -3.5585486568399713, 1e-9);
}

#[test]
fn priors_that_are_not_normal() {
    let fixed = |prior: &str| format!("intercept = {prior:?}\nlog_sd = \"fixed(0)\"");
    check(&["5"], "y ~ 1", &fixed("cauchy(0, 0.01)"), -8.81401807804312, 1e-9);
    check(&["5"], "y ~ 1", &fixed("laplace(0, 0.1)"), -13.159724068233835, 1e-9);
    let free = |prior: &str| format!("intercept = {prior:?}\nlog_sd = \"normal(0, 1)\"");
    let data: [&[&str]; 3] = [&["5"], &["5", "5.5", "4"], &["5", "5", "5"]];
    let truths = [
        ("student_t(3, 0, 2.5)", [-3.4176213453039, -7.0965936618634, -3.9941797757787]),
        ("cauchy(0, 0.01)", [-4.7797580383458, -10.9636434965087, -9.2218079753196]),
        ("laplace(0, 0.1)", [-4.7922567634988, -11.2120755305699, -11.3276485509607]),
    ];
    for (prior, truths) in truths {
        for (rows, truth) in data.iter().zip(truths) {
            check(rows, "y ~ 1", &free(prior), truth, 1e-9);
        }
    }
}

/// Draws of models that were integrated scatter around the moments of the integral as independent draws
/// do, also where the posterior is far from normal: two rows, and one under a Cauchy prior.
#[test]
fn draws_follow_the_integral() {
    let folder = tempfile::tempdir().unwrap();
    let normal = "intercept = \"normal(0, 1)\"\nlog_sd = \"normal(0, 2)\"";
    let cauchy = "intercept = \"cauchy(0, 0.3)\"\nlog_sd = \"normal(0, 1)\"";
    for (rows, prior) in
        [(&["1.1", "1.4"][..], normal), (&["5"][..], cauchy), (&["5", "5.2", "3"], cauchy)]
    {
        let (mut means, mut sds) = (Vec::new(), Vec::new());
        for seed in 1..=20 {
            let text = study(folder.path(), rows, 1, "y ~ 1", prior);
            let text = text.replace("[evidence]", &format!("[evidence]\nseed = {seed}"));
            let study = StudyFile::parse(&text, Path::new("study.toml")).unwrap();
            let mut plan = Plan::new(study, 2, &Silent).unwrap();
            plan.deliver(&Extras { posterior: true, ..Extras::default() }).unwrap();
            let result = plan.run(&Silent).unwrap();
            let thetas = &result.models[0].posterior.as_ref().unwrap().chains[0].thetas;
            let column: Vec<f64> = (0..thetas.rows()).map(|k| thetas[(k, 1)]).collect();
            let exact = &result.models[0].parameters[1];
            let (mean, sd) = spread(&column);
            let n = (column.len() as f64).sqrt();
            means.push((mean - exact.mean) / exact.sd * n);
            sds.push((sd / exact.sd - 1.0) * n);
        }
        for zs in [means, sds] {
            let (mean, sd) = spread(&zs);
            println!("{prior:?}: mean z {mean:.2}, sd {sd:.2}");
            // Spread evenly over the cells, they scatter less than independent ones.
            assert!(zs.iter().all(|z| z.abs() < 4.0) && mean.abs() < 4.0 / 20f64.sqrt(), "{zs:?}");
        }
    }
}
