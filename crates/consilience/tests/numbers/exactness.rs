//! `exact` on every kind of data and split against exact values. `./test` runs a part of it; all of it,
//! as a table:
//!
//!     EXACTNESS=full cargo test --release --workspace --test numbers -- --nocapture exactness::

use crate::common::{Case, root, run, spread, truth};

/// A model with its exact log evidence and that reference's standard error.
struct Known {
    name: &'static str,
    data: String,
    family: &'static str,
    formula: String,
    prior: &'static str,
    value: f64,
    se: f64,
}

fn number(value: &serde_json::Value) -> f64 {
    value.as_f64().unwrap()
}

fn test_data(name: &str) -> serde_json::Value {
    let path = root().join("crates/consilience/tests/data").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn test_file(name: &str) -> String {
    root().join("crates/consilience/tests/data").join(name).to_str().unwrap().to_string()
}

fn of_truth(name: &'static str, data: &str, family: &'static str) -> Vec<Known> {
    let known = |(formula, case): (&String, &serde_json::Value)| Known {
        name,
        data: data.to_string(),
        family,
        formula: formula.clone(),
        prior: "",
        value: number(&case["value"]),
        se: number(&case["se"]),
    };
    truth()[name]["models"].as_object().unwrap().iter().map(known).collect()
}

fn flights() -> Vec<Known> {
    of_truth("flights", "flights.parquet", "logistic")
}

fn toy() -> Vec<Known> {
    of_truth("gauss", "gauss.parquet", "gaussian")
}

fn sim2() -> Known {
    let mut all = of_truth("sim2", "sim2.parquet", "logistic");
    let place = all.iter().position(|known| known.formula == "11111").unwrap();
    Known { formula: "y ~ x1 + x2 + x3 + x4 + x5".into(), ..all.swap_remove(place) }
}

fn sparse() -> Known {
    let reference = test_data("sparse.json");
    Known {
        name: "sparse",
        data: test_file("sparse.csv"),
        family: "gaussian",
        formula: reference["formula"].as_str().unwrap().into(),
        prior: "coefficients = \"laplace(0, 1)\"",
        value: number(&reference["quadrature"]),
        se: number(&reference["importance"]["se"]),
    }
}

fn counts(family: &'static str) -> Known {
    let reference = test_data("counts.json");
    Known {
        name: "counts",
        data: test_file("counts.csv"),
        family,
        formula: reference["formula"].as_str().unwrap().into(),
        prior: "",
        value: number(&reference[family]["quadrature"]),
        se: 0.0,
    }
}

/// Runs models of one data set together and checks each.
fn check(models: &[Known], split: &str, evidence: &str, what: &str) {
    let first = &models[0];
    let mut study = Case::new(&first.data, 1);
    study.split = split.to_string();
    study.evidence = evidence.to_string();
    study.prior = first.prior.to_string();
    for model in models {
        study.model(&model.formula, model.family);
    }
    let result = run(&study.text());
    assert!(result.is_reliable(), "{}, {what}: {:?}", first.name, result.models[0].warnings);
    for (known, model) in models.iter().zip(&result.models) {
        let (found, se) = (model.log_evidence.value, model.log_evidence.se.unwrap());
        let error = found - known.value;
        println!(
            "| {} | {} | {} | {} | {found:.4} | {error:+.4} | {se:.4} | {} | {} |",
            known.name,
            known.family,
            model.parameters.len(),
            what,
            result.rounds,
            result.bytes_moved / 1000,
        );
        // References that are printed to some digits are only that good.
        let bound = 4.0 * se.hypot(known.se) + 1e-6;
        assert!(error.abs() <= bound, "{} {what}: {found} ± {se}, {}", known.name, known.value);
        assert!(se <= 0.02, "{} {what}: se {se}", known.name);
    }
}

/// Partitions and numbers of shards: all of them, or what fits into `./test`.
fn extent() -> (Vec<usize>, u64) {
    match std::env::var("EXACTNESS").as_deref() {
        Ok("full") => (vec![1, 10, 50, 200, 1000], 3),
        _ => (vec![10, 1000], 1),
    }
}

#[test]
fn exact_is_exact_for_any_number_of_shards() {
    println!(
        "| data | family | parameters | split | log evidence | error | se | rounds | kB moved |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let (shards, partitions) = extent();
    for &s in &shards {
        for seed in 1..=partitions {
            let split = format!("shards = {s}\nseed = {seed}");
            let what = format!("S = {s}, partition {seed}");
            // New draws as well: on the same ones the split would change nothing but the last digits.
            let draws = format!("seed = {}", 10 * s as u64 + seed);
            let rounds = format!("{draws}\nstatistics = false");
            check(&flights(), &split, &draws, &what);
            check(&toy(), &split, &draws, &format!("{what}, statistics"));
            check(&toy(), &split, &rounds, &format!("{what}, rounds"));
            check(&[sim2()], &split, &draws, &what);
            // 400 rows.
            if s <= 200 {
                check(&[sparse()], &split, &draws, &format!("{what}, statistics"));
                let rounds = format!("{rounds}\ndraws = 20000");
                check(&[sparse()], &split, &rounds, &format!("{what}, rounds"));
            }
            check(&[counts("poisson")], &split, &draws, &what);
            check(&[counts("negative-binomial")], &split, &draws, &what);
        }
    }
}

#[test]
fn exact_is_exact_for_shards_that_differ_in_size_and_kind() {
    check(&flights(), "by = \"column:carrier\"", "", "one carrier a shard");
    check(&flights(), "by = \"column:carrier\"\nshare = \"rows\"", "", "the same, share by rows");
    check(&flights(), "shards = 20\nby = \"cluster\"", "", "S = 20, by cluster");
    check(&[counts("poisson")], "by = \"column:x2\"", "", "x2 = 0 and x2 = 1 apart");
}

#[test]
fn sobol_points_give_the_same_evidence() {
    for seed in 1..=3 {
        let evidence = format!("points = \"sobol\"\nseed = {seed}");
        check(&flights(), "shards = 10", &evidence, &format!("S = 10, Sobol, seed {seed}"));
        check(&[sim2()], "shards = 10", &evidence, &format!("S = 10, Sobol, seed {seed}"));
    }
}

/// `exact` over 100 seeds, with plain and with Sobol points: the mean is the truth, and the spread over
/// seeds is the standard error that was reported.
#[test]
fn error_bars_of_exact_are_calibrated() {
    println!("| case | points | mean error | its error | sd of z | largest abs z | mean se |");
    println!("|---|---|---|---|---|---|---|");
    for known in [sim2(), counts("poisson"), counts("negative-binomial"), sparse()] {
        for points in ["plain", "sobol"] {
            let mut found = Vec::new();
            for seed in 1..=100 {
                let mut study = Case::new(&known.data, 5);
                study.prior = known.prior.to_string();
                study.evidence = format!(
                    "points = \"{points}\"\nseed = {seed}\ndraws = 2000\nse_target = 0.001\nstatistics = false"
                );
                study.model(&known.formula, known.family);
                found.push(run(&study.text()).models[0].log_evidence);
            }
            let values: Vec<f64> = found.iter().map(|e| e.value).collect();
            let (mean, over_seeds) = spread(&values);
            // The reference's own error is the same for all seeds: it is no part of the spread.
            let error = (over_seeds / 10.0).hypot(known.se);
            let zs: Vec<f64> = found.iter().map(|e| (e.value - mean) / e.se.unwrap()).collect();
            let sd = spread(&zs).1;
            let largest = zs.iter().fold(0.0, |a: f64, z| a.max(z.abs()));
            let se = spread(&found.iter().map(|e| e.se.unwrap()).collect::<Vec<f64>>()).0;
            let case = format!("{}, {}", known.name, known.family);
            let off = mean - known.value;
            println!(
                "| {case} | {points} | {off:+.5} | {error:.5} | {sd:.2} | {largest:.2} | {se:.4} |"
            );
            assert!(off.abs() < 4.0 * error, "{case}, {points}: off by {off} ± {error}");
            assert!((0.75..=1.3).contains(&sd), "{case}, {points}: sd of z {sd}");
        }
    }
}

/// A heavy-tailed prior that bends the posterior the wrong way where the search starts, and no rounds to
/// find out better: the shards' own moments say where to draw.
#[test]
fn a_posterior_that_no_newton_step_suits_is_reached_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("coin.csv");
    let rows: String = (0..40).map(|i| if i % 5 < 3 { "1\n" } else { "0\n" }).collect();
    std::fs::write(&path, format!("y\n{rows}")).unwrap();
    // log ∫ of 24 successes in 40 under a Cauchy(0, 0.05) prior of the log odds.
    let density = |x: f64| {
        let log_likelihood = 24.0 * x - 40.0 * x.exp().ln_1p();
        log_likelihood.exp() / (std::f64::consts::PI * 0.05 * (1.0 + (x / 0.05).powi(2)))
    };
    let step = 1e-5;
    let exact = (-500_000..=500_000).map(|i| density(f64::from(i) * step) * step).sum::<f64>().ln();
    for shards in [1, 2] {
        for seed in 1..=5 {
            let mut study = Case::new(path.to_str().unwrap(), shards);
            study.prior = "intercept = \"cauchy(0, 0.05)\"".into();
            study.evidence = format!("rounds = 3\nseed = {seed}\ndraws = 20000");
            study.model("y ~ 1", "logistic");
            let result = run(&study.text());
            let found = result.models[0].log_evidence;
            let z = (found.value - exact) / found.se.unwrap();
            println!("S = {shards}, seed {seed}: {found:?}, exact {exact:.4}, z = {z:+.2}");
            assert!(z.abs() < 4.0 || !result.is_reliable(), "z = {z}");
            assert!(result.models[0].warnings.iter().any(|w| w.code == "mode-not-reached"));
        }
    }
}
