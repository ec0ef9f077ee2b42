//! Laplace–Metropolis: exact up to its error bar where posteriors are normal, and frank where they are not.

use crate::common::{Case, run, truth};

fn study(data: &str, shards: usize, seed: u64, evidence: &str) -> Case {
    let mut study = Case::new(data, shards);
    study.evidence = format!(
        "local = \"laplace-metropolis\"\ndraws = 2000\nwarmup = 500\nseed = {seed}\n{evidence}"
    );
    study
}

/// A Gaussian model whose sd is known has a normal posterior, and an evidence in closed form.
#[test]
fn normal_posteriors_have_their_evidence_over_seeds() {
    let with_sd = |mut study: Case| {
        study.prior = "log_sd = \"fixed(0)\"".into();
        study.model("y ~ x1 + x2 + x15", "gaussian");
        run(&study.text())
    };
    let exact = with_sd(Case::new("gauss.parquet", 1)).models[0].log_evidence.value;
    let seeds = 30;
    let mut squares = 0.0;
    for seed in 1..=seeds {
        let result = with_sd(study("gauss.parquet", 1, seed, "combine = \"normal\""));
        let found = result.models[0].log_evidence;
        let z = (found.value - exact) / found.se.unwrap();
        println!("seed {seed}: {:.4} ± {:.4}, z = {z:+.2}", found.value, found.se.unwrap());
        assert!(z.abs() < 4.5 && found.se.unwrap() < 0.3, "seed {seed}: {found:?}, {exact}");
        squares += z * z;
    }
    let rms = (squares / seeds as f64).sqrt();
    println!("root mean square of z: {rms:.2}");
    assert!((0.6..1.5).contains(&rms), "{rms}");
}

/// Nearly normal posteriors: thousands of rows, and the exact values of data/truth.json.
#[test]
fn nearly_normal_posteriors_agree_with_quadrature() {
    let truth = truth();
    let toy = truth["gauss"]["models"].as_object().unwrap();
    let (formula, toy) = toy.iter().find(|(formula, _)| formula.contains("x15")).unwrap();
    let cases = [
        ("gauss.parquet", formula.as_str(), "gaussian", toy),
        (
            "sim2.parquet",
            "y ~ x1 + x2 + x3 + x4 + x5",
            "logistic",
            &truth["sim2"]["models"]["11111"],
        ),
    ];
    for (data, formula, family, case) in cases {
        let value = case["value"].as_f64().unwrap();
        for seed in 1..=3 {
            let mut study = study(data, 1, seed, "combine = \"normal\"");
            study.model(formula, family);
            let result = run(&study.text());
            let model = &result.models[0];
            let (found, se) = (model.log_evidence.value, model.log_evidence.se.unwrap());
            println!("{data}: {found:.3} ± {se:.3}, exactly {value:.3}");
            // Laplace's own error is of the order of parameters over rows.
            assert!((found - value).abs() < 4.0 * se + 0.02, "{data}, seed {seed}: {found} ± {se}");
            let codes: Vec<&str> = model.warnings.iter().map(|w| w.code.as_str()).collect();
            assert!(codes.contains(&"shape-not-in-error"), "{codes:?}");
        }
    }
}

/// It goes with every combination that asks shards for their own evidences.
#[test]
fn combinations_take_it() {
    let value = truth()["sim2"]["models"]["11111"]["value"].as_f64().unwrap();
    for combine in ["exact", "normal", "normal-uncorrected", "cmc-is"] {
        let mut study = study("sim2.parquet", 2, 1, &format!("combine = {combine:?}"));
        study.model("y ~ x1 + x2 + x3 + x4 + x5", "logistic");
        let result = run(&study.text());
        let model = &result.models[0];
        let (found, se) = (model.log_evidence.value, model.log_evidence.se.unwrap());
        println!("{combine}: {found:.3} ± {se:.3}");
        assert!((found - value).abs() < 4.0 * se, "{combine}: {found} ± {se}");
        assert!(model.parts.shards.unwrap().se.unwrap() > 0.0);
        for shard in &model.shards {
            assert_eq!(shard.method.as_deref(), Some("laplace-metropolis"));
            assert!(shard.diagnostics.chains.is_some() && shard.log_evidence.unwrap().se.is_some());
        }
    }
}

/// With 17 parameters the best draw is far below the mode, on every shard in the same direction: `normal` says that it is
/// not to be trusted, or is right within its error.
#[test]
fn many_parameters_on_shards_are_no_confident_error() {
    let truth = truth();
    let toy = truth["gauss"]["models"].as_object().unwrap();
    let (formula, case) = toy.iter().find(|(formula, _)| formula.contains("x15")).unwrap();
    let value = case["value"].as_f64().unwrap();
    for shards in [1, 2, 5] {
        let mut study = study("gauss.parquet", shards, 1, "combine = \"normal\"");
        study.model(formula, "gaussian");
        let result = run(&study.text());
        let found = result.models[0].log_evidence;
        let z = (found.value - value) / found.se.unwrap();
        println!("S = {shards}: {found:?}, z = {z:+.2}, trusted: {}", result.is_reliable());
        assert!(z.abs() < 3.0 || !result.is_reliable(), "S = {shards}: {found:?}, {value}");
    }
}
