//! The paper's schemes beside `exact`: what each promises, and when it must say that it failed.

use crate::common::{Case, root, run, spread, truth};
use consilience::engine::Silent;
use consilience::plan::Plan;
use consilience::study::StudyFile;
use std::path::Path;

fn toy_models() -> Vec<(String, f64)> {
    let models = &truth()["gauss"]["models"];
    let known = models.as_object().unwrap().iter();
    known.map(|(formula, case)| (formula.clone(), case["value"].as_f64().unwrap())).collect()
}

/// The toy's model with all covariates.
fn model_6() -> (String, f64) {
    toy_models().into_iter().find(|(formula, _)| formula.contains("x15")).unwrap()
}

/// The log evidence and its Monte Carlo error.
fn evidence(formula: &str, shards: usize, partition: u64, evidence: &str) -> (f64, f64) {
    let mut study = Case::new("gauss.parquet", shards);
    study.split = format!("shards = {shards}\nseed = {partition}");
    study.evidence = evidence.into();
    study.model(formula, "gaussian");
    let model = &run(&study.text()).models[0];
    let (se, shape) = (model.log_evidence.se.unwrap(), model.parts.shape_error.unwrap_or(0.0));
    (model.log_evidence.value, (se * se - shape * shape).max(0.0).sqrt())
}

/// The mean and its standard error.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let (mean, sd) = spread(values);
    (mean, sd / (values.len() as f64).sqrt())
}

/// Moments from NUTS draws lead to the same combination as exact moments: the finite-draw bias is
/// corrected. All 20 partitions: PARTITIONS=20 cargo test --release --workspace --test numbers -- --nocapture schemes::normal_from_nuts
#[test]
fn normal_from_nuts_draws_is_normal_from_exact_moments() {
    let partitions = std::env::var("PARTITIONS").map_or(6, |n| n.parse().unwrap());
    let (formula, _) = model_6();
    let (mut differences, mut variance) = (Vec::new(), 0.0);
    for partition in 1..=partitions {
        let by = |local: &str| format!("combine = \"normal\"\nlocal = \"{local}\"");
        let sampled = evidence(&formula, 10, partition, &by("nuts+warp3"));
        let exact = evidence(&formula, 10, partition, &by("quadrature"));
        println!(
            "partition {partition}: NUTS {:.3} ± {:.3}, exact moments {:.3}",
            sampled.0, sampled.1, exact.0
        );
        assert!((sampled.0 - exact.0).abs() < 4.0 * sampled.1);
        differences.push(sampled.0 - exact.0);
        variance += sampled.1.powi(2);
    }
    let (mean, error) = mean_and_error(&differences);
    let reported = variance.sqrt() / partitions as f64;
    println!("mean difference {mean:+.3} ± {error:.3} (reported {reported:.3})");
    assert!(mean.abs() < 4.0 * reported, "{mean} ± {reported}");
    if partitions >= 20 {
        assert!(mean.abs() < 4.0 * error && error <= 0.15, "{mean} ± {error}");
    }
}

/// What the normal shape does is within the error bar, or the result is not to be trusted. Over partitions 1..K;
/// `PARTITIONS=20` for the table in docs/accuracy.md.
#[test]
fn normal_knows_the_error_of_its_shape() {
    let partitions = std::env::var("PARTITIONS").map_or(4, |n| n.parse().unwrap());
    let (toy, toy_value) = model_6();
    let sim2 = truth()["sim2"]["models"]["11111"]["value"].as_f64().unwrap();
    let pima = truth()["pima_tr"]["models"]["logistic, normal(0,1)"]["value"].as_f64().unwrap();
    let flights = "late ~ 0 + dep_delay + carrier";
    let known = truth()["flights"]["models"][flights]["value"].as_f64().unwrap();
    let scaled = ["npreg", "glu", "bp", "skin", "bmi", "ped", "age"].map(|x| format!("scale({x})"));
    let pima_formula = format!("I(type == \"Yes\") ~ {}", scaled.join(" + "));
    let (mut trusted, mut wrong) = (0, Vec::new());
    for (file, formula, family, value, local, counts) in [
        (
            "gauss.parquet",
            toy.as_str(),
            "gaussian",
            toy_value,
            "quadrature",
            &[2, 5, 10, 20, 50][..],
        ),
        (
            "sim2.parquet",
            "y ~ x1 + x2 + x3 + x4 + x5",
            "logistic",
            sim2,
            "importance",
            &[2, 5, 10, 20],
        ),
        ("pima_tr.csv", pima_formula.as_str(), "logistic", pima, "importance", &[2, 4, 8]),
        ("flights.parquet", flights, "logistic", known, "importance", &[2, 5]),
    ] {
        for &shards in counts {
            let (mut errors, mut ses, mut sure) = (Vec::new(), Vec::new(), 0);
            for partition in 1..=partitions {
                let mut study = Case::new(file, shards);
                study.split = format!("shards = {shards}\nseed = {partition}");
                study.evidence =
                    format!("combine = \"normal\"\nlocal = {local:?}\nseed = {partition}");
                study.model(formula, family);
                let result = run(&study.text());
                let found = result.models[0].log_evidence;
                let (error, se) = (found.value - value, found.se.unwrap());
                errors.push(error * error);
                ses.push(se * se);
                if result.is_reliable() {
                    (sure, trusted) = (sure + 1, trusted + 1);
                    if error.abs() > 3.0 * se {
                        wrong.push(format!("{file}, S = {shards}, partition {partition}: {error}"));
                    }
                }
            }
            let rms = |squares: &[f64]| (spread(squares).0).sqrt();
            println!(
                "| {file} | {local} | {shards} | {:.3} | {:.3} | {sure}/{partitions} |",
                rms(&errors),
                rms(&ses)
            );
            // Few large shards stay trusted, and with a small error.
            assert!(shards > 2 || (sure == partitions && rms(&ses) < 0.3), "{file}");
        }
    }
    println!(
        "{} of {trusted} trusted results are off by more than 3 errors: {wrong:?}",
        wrong.len()
    );
    assert!(20 * wrong.len() <= trusted, "{wrong:?}");
}

/// Laplace's approximation of many small shards has no error bar to hide behind.
#[test]
fn normal_says_that_small_shards_are_not_normal() {
    for (local, shards) in [("laplace", 80), ("laplace", 40), ("importance", 80)] {
        let mut study = Case::new("sim2.parquet", shards);
        study.evidence = format!("combine = \"normal\"\nlocal = {local:?}\ndraws = 1000");
        study.model("y ~ x1 + x2 + x3 + x4 + x5", "logistic");
        let result = run(&study.text());
        let codes: Vec<&str> = result.models[0].warnings.iter().map(|w| w.code.as_str()).collect();
        assert!(codes.contains(&"not-normal") && !result.is_reliable(), "{local}: {codes:?}");
    }
}

/// The mean of p̂/p over partitions and seeds is 1 within its error.
#[test]
fn cmc_is_is_unbiased_at_50_shards() {
    let (formula, value) = model_6();
    let mut ratios = Vec::new();
    for partition in 1..=40 {
        let options = format!("combine = \"cmc-is\"\nseed = {partition}");
        let (found, se) = evidence(&formula, 50, partition, &options);
        assert!((found - value).abs() < 4.5 * se, "partition {partition}: {found} ± {se}");
        ratios.push((found - value).exp());
    }
    let (mean, error) = mean_and_error(&ratios);
    println!("mean of p̂/p {mean:.4} ± {error:.4}");
    assert!((mean - 1.0).abs() < 4.0 * error, "{mean} ± {error}");
}

/// The decomposition adds up, and what normals miss of the overlap is the correction.
#[test]
fn parts_and_corrections_add_up() {
    let (formula, _) = model_6();
    let result = |combine: &str| {
        let mut study = Case::new("gauss.parquet", 10);
        study.evidence = format!("combine = \"{combine}\"\nlocal = \"importance\"");
        study.model(&formula, "gaussian");
        run(&study.text()).models.remove(0)
    };
    let normal = result("normal");
    for combine in ["exact", "cmc-is"] {
        let model = result(combine);
        let (parts, total) = (&model.parts, model.log_evidence.value);
        let (shards, overlap) = (parts.shards.unwrap().value, parts.overlap.unwrap().value);
        assert!((shards + overlap - total).abs() < 1e-8);
        let sub = parts.subevidences.unwrap().value + parts.log_alpha.unwrap();
        assert!((sub - shards).abs() < 1e-8);
        assert!((parts.overlap_share.unwrap() - overlap / total).abs() < 1e-12);
        let corrected = normal.log_evidence.value + parts.correction.unwrap();
        assert!((corrected - total).abs() < 1e-6, "{combine}: {corrected} is not {total}");
        // log A and log B bound the shards' densities as far as draws show: both are positive, and
        // the correction lies within S times them.
        let bounds = parts.bounds.as_ref().unwrap();
        assert!(bounds.log_a > 0.0 && bounds.log_b > 0.0);
        let correction = parts.correction.unwrap();
        assert!((-10.0 * bounds.log_b..10.0 * bounds.log_a).contains(&correction));
    }
}

/// Data augmentation: right within its error, or marked as unreliable. A confident wrong number fails.
#[test]
fn augmentation_is_right_or_says_that_it_is_not() {
    let case = &truth()["sim2"]["models"]["11111"];
    let (value, se_truth) = (case["value"].as_f64().unwrap(), case["se"].as_f64().unwrap());
    for shards in [1, 2, 5, 20] {
        for seed in 1..=3 {
            let mut study = Case::new("sim2.parquet", shards);
            study.evidence = format!("combine = \"augmented\"\nseed = {seed}\ndraws = 5000");
            study.model("y ~ x1 + x2 + x3 + x4 + x5", "logistic");
            let result = run(&study.text());
            let found = result.models[0].log_evidence;
            let z = (found.value - value) / found.se.unwrap().hypot(se_truth);
            let trusted = result.is_reliable();
            println!(
                "S = {shards}, seed {seed}: {:.3} ± {:.3}, z = {z:+.2}, effective terms {:.0}{}",
                found.value,
                found.se.unwrap(),
                result.models[0].combination.as_ref().unwrap().draws.ess.unwrap(),
                if trusted { "" } else { ", unreliable" }
            );
            assert!(z.abs() < 4.0 || !trusted, "S = {shards}: {found:?}");
            assert!(trusted || shards > 2, "S = {shards} must work");
        }
    }
}

/// On one shard the integral of every conditional is 1: all terms are equal, and as effective as they are many.
#[test]
fn equal_terms_are_all_effective() {
    for shards in [1, 2] {
        let mut study = Case::new("sim2.parquet", shards);
        study.evidence = "combine = \"augmented\"\ndraws = 2000\nproposals = 300".into();
        study.model("y ~ x1 + x2", "logistic");
        let result = run(&study.text());
        let draws = &result.models[0].combination.as_ref().unwrap().draws;
        let (count, ess) = (draws.draws.unwrap(), draws.ess.unwrap());
        println!("{shards} shards: {ess} of {count} terms");
        // 300 conditionals in 20 pairings.
        assert_eq!(count, 6000);
        assert_eq!((ess - 6000.0).abs() < 1e-3, shards == 1, "{ess}");
        assert!(ess < 6000.001);
    }
}

/// With probit latents the conditional precision never changes; Albert and Chib's sampler on a split.
#[test]
fn augmentation_works_for_probit() {
    let folder = root().join("data/pima_tr.csv");
    let scaled = ["npreg", "glu", "bp", "skin", "bmi", "ped", "age"].map(|x| format!("scale({x})"));
    let formula = format!("type ~ {}", scaled.join(" + "));
    let case = &truth()["pima_tr"]["models"]["probit, normal(0,1)"];
    let (value, se_truth) = (case["value"].as_f64().unwrap(), case["se"].as_f64().unwrap());
    for (shards, seed) in [(1, 1), (2, 1), (2, 2), (2, 3)] {
        let mut study = Case::new(folder.to_str().unwrap(), shards);
        study.evidence = format!("combine = \"augmented\"\nseed = {seed}\nproposals = 5000");
        study.model(&formula, "probit");
        let result = run(&study.text());
        let found = result.models[0].log_evidence;
        let z = (found.value - value) / found.se.unwrap().hypot(se_truth);
        println!("S = {shards}, seed {seed}: {found:?}, z = {z:+.2}");
        assert!(z.abs() < 4.0 || !result.is_reliable(), "S = {shards}: {found:?}");
    }
}

/// Experiment 1: votes lose the right model as shards get small; `exact` keeps it, with the right
/// Bayes factor.
#[test]
fn votes_fail_where_exact_does_not() {
    let models = toy_models();
    let best = models.iter().position(|(formula, _)| formula.contains("x15")).unwrap();
    for shards in [1, 10, 20, 50] {
        let mut study = Case::new("gauss.parquet", shards);
        for (formula, _) in &models {
            study.model(formula, "gaussian");
        }
        let study = StudyFile::parse(&study.text(), Path::new("study.toml")).unwrap();
        let result = Plan::new(study, 2, &Silent).unwrap().baselines(&Silent).unwrap();
        let method = |name: &str| result.methods.iter().find(|m| m.method == name).unwrap();
        for vote in ["majority vote", "Borda count"] {
            let right = method(vote).chooses == best;
            println!("{shards} shards: {vote} is {}", if right { "right" } else { "wrong" });
            assert_eq!(right, shards == 1, "{vote} on {shards} shards");
        }
        let total: f64 = method("majority vote").models.iter().map(|m| m.value).sum();
        assert!((total - 1.0).abs() < 1e-12, "every shard has one vote");
        let points: f64 = method("Borda count").models.iter().map(|m| m.value).sum();
        assert!((points - 15.0).abs() < 1e-9, "1 + 2 + 3 + 4 + 5 points a shard");
        let exact = method("exact");
        assert_eq!(exact.chooses, best);
        for (k, (_, value)) in models.iter().enumerate() {
            let factor = exact.models[k].value - exact.models[best].value;
            assert!((factor - (value - models[best].1)).abs() < 1e-5);
        }
    }
}

/// The product of local probabilities leaves out the overlap and nothing else.
#[test]
fn products_are_the_parts_without_the_overlap() {
    for local in ["importance", "laplace"] {
        let mut study = Case::new("sim2.parquet", 5);
        study.evidence = format!("local = {local:?}\ndraws = 1000");
        study.model("y ~ x1 + x2", "logistic").model("y ~ x1 + x2 + x5", "logistic");
        let parts = run(&study.text()).models.into_iter().map(|m| m.parts.subevidences.unwrap());
        let study = StudyFile::parse(&study.text(), Path::new("study.toml")).unwrap();
        let result = Plan::new(study, 2, &Silent).unwrap().baselines(&Silent).unwrap();
        let method = |name: &str| result.methods.iter().find(|m| m.method == name).unwrap();
        let found = &method("product of local probabilities").models;
        for (found, expected) in found.iter().zip(parts) {
            assert!((found.value - expected.value).abs() < 1e-8, "{found:?}, {expected:?}");
            let [ours, theirs] = [found, &expected].map(|e| e.se.unwrap_or(-1.0));
            assert!((ours - theirs).abs() < 1e-9);
        }
        for method in result.methods.iter().filter(|m| m.method != "exact") {
            let [normal, sure] = [method.models[0].se, method.models[1].se].map(|se| se.is_some());
            let own = ["cmc-is", "augmented"].contains(&method.method.as_str());
            let expected = own || local == "importance";
            assert_eq!((normal, sure), (expected, expected), "{local}: {}", method.method);
        }
    }
}

/// Upsampling is the evidence of every row S times: on one shard, the evidence itself.
#[test]
fn upsampling_repeats_every_row() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "1,0.3\n2,0.9\n2.5,1.4\n0.5,-0.2\n1.5,0.1\n3,2.0\n";
    let path = folder.path().join("once.csv");
    std::fs::write(&path, format!("y,x\n{rows}")).unwrap();
    let doubled = folder.path().join("twice.csv");
    std::fs::write(&doubled, format!("y,x\n{rows}{rows}")).unwrap();
    // Both shards of the doubled file have each row once, so that ṕ(y_s) is the evidence of all.
    let split = folder.path().join("split.csv");
    let half = |shard: &str| rows.lines().map(|r| format!("{r},{shard}\n")).collect::<String>();
    std::fs::write(&split, format!("y,x,shard\n{}{}", half("a"), half("b"))).unwrap();
    for family in ["gaussian", "poisson"] {
        let formula = if family == "gaussian" { "y ~ x" } else { "I(2 * y) ~ x" };
        let mut whole = Case::new(doubled.to_str().unwrap(), 1);
        whole.evidence = "draws = 200000\nse_target = 0.0005".into();
        whole.model(formula, family);
        let truth = run(&whole.text()).models[0].log_evidence;
        let mut parts = Case::new(split.to_str().unwrap(), 1);
        parts.split = "by = \"column:shard\"".into();
        parts.evidence = "draws = 200000".into();
        parts.model(formula, family);
        let study = StudyFile::parse(&parts.text(), Path::new("study.toml")).unwrap();
        let result = Plan::new(study, 2, &Silent).unwrap().baselines(&Silent).unwrap();
        for name in ["upsampled mean", "upsampled median", "upsampled mean of logs"] {
            let found = result.methods.iter().find(|m| m.method == name).unwrap().models[0];
            let se = found.se.unwrap().hypot(truth.se.unwrap());
            let error = found.value - truth.value;
            assert!(error.abs() < 4.0 * se + 1e-7, "{family}, {name}: {found:?}, {truth:?}");
            assert!(se < 0.01, "{family}, {name}: {se}");
        }
    }
}
