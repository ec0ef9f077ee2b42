//! Against spaces whose models are all known, and against evidences one by one.

use super::*;

#[test]
fn every_evidence_of_a_small_space() {
    let truth = common::truth();
    let models = truth["sim2"]["models"].as_object().unwrap();
    for shards in [1, 3, 10] {
        let found = select(
            "sim2.parquet",
            shards,
            "[select]\noutcome = \"y\"\nfamily = \"logistic\"\ncandidates = \".\"\ntop = 32",
        );
        assert_eq!((found.method, found.models.len()), ("enumerate", 32));
        let key = |terms: &[String]| -> String {
            (1..=5).map(|j| if terms.contains(&format!("x{j}")) { '1' } else { '0' }).collect()
        };
        for model in &found.models {
            let exact = models[&key(&model.terms)]["value"].as_f64().unwrap();
            assert!(
                (model.log_evidence.unwrap() - exact).abs() < 0.01,
                "{:?} at {shards}",
                model.terms
            );
        }
    }
    let named = ["x1 + x2 + x3 + x5", "x1 + x4 + x5", "x5 + x2 + x1"].map(String::from);
    let rest = "[select]\noutcome = \"y\"\nfamily = \"logistic\"\ncandidates = \"x1 + x2 + x3 + x4 + x5\"\nmethod = \"search\"";
    let found = plan("sim2.parquet", 3, rest).select_and_name(&named, &Silent).unwrap();
    let factor = |k: usize| found.named[k].log_bayes_factor.value;
    assert!((factor(1) + 37.952).abs() < 0.02 && (factor(2) - 2.293).abs() < 0.02);
    assert!((factor(1) - factor(2) + 40.245).abs() < 0.02);
}

#[test]
fn all_models_known() {
    for (name, family, p) in [("logistic14", "logistic", 14), ("poisson1000", "poisson", 12)] {
        let truth = truth(name);
        for prior in [format!("beta-binomial(1,{p})"), "uniform".into(), "bernoulli(0.2)".into()] {
            let known = &truth["priors"][&prior];
            for shards in [1, 5, 50] {
                let rest = format!(
                    "[select]\noutcome = \"y\"\nfamily = \"{family}\"\ncandidates = \".\"\nprior = \"{prior}\""
                );
                let found = select(&format!("{name}.parquet"), shards, &rest);
                assert!(found.is_reliable() && found.method == "search");
                let errors = numbers(&known["inclusion_se"]);
                for z in z_scores(&found, &numbers(&known["inclusion"]), &errors) {
                    assert!(z.abs() < 4.0, "{name} {prior} {shards}: z = {z}");
                }
                assert!(found.inclusion.iter().all(|i| i.se.unwrap() <= 0.005));
                let all = known["log_normaliser"].as_f64().unwrap();
                let off = total(&found).value - all;
                assert!(off.abs() < 4.0 * total(&found).se.unwrap() + 1e-5, "{name}: {off}");
                if name == "logistic14" {
                    assert!(off.abs() < 5e-4, "{off}");
                    assert!(found.traffic.rounds <= 12);
                }
                for (size, exact) in found.sizes.iter().zip(numbers(&known["size"])) {
                    assert!((size.value - exact).abs() < 4.0 * size.se.unwrap() + 1e-4);
                }
            }
        }
    }
}

#[test]
fn all_gaussian_models_to_a_millionth() {
    let truth = truth("gauss20");
    for (prior, shards) in [
        ("beta-binomial(1,20)", 1),
        ("beta-binomial(1,20)", 50),
        ("uniform", 5),
        ("bernoulli(0.2)", 5),
    ] {
        let known = &truth["priors"][prior];
        let rest = format!(
            "[select]\noutcome = \"y\"\nfamily = \"gaussian\"\ncandidates = \".\"\nprior = \"{prior}\""
        );
        let found = select("gauss20.parquet", shards, &rest);
        assert_eq!(found.method, "statistics");
        for (p, exact) in inclusion(&found).iter().zip(numbers(&known["inclusion"])) {
            assert!((p - exact).abs() < 1e-6, "{prior}: {p} is not {exact}");
        }
        let off = total(&found).value - known["log_normaliser"].as_f64().unwrap();
        assert!(off.abs() < 1e-6, "{prior}: {off}");
        for (model, exact) in found.models.iter().zip(known["top"].as_array().unwrap()) {
            assert!((model.probability - exact["probability"].as_f64().unwrap()).abs() < 1e-6);
            assert!(
                (model.log_evidence.unwrap() - exact["log_evidence"].as_f64().unwrap()).abs()
                    < 1e-6
            );
        }
    }
}

/// 100 seeds of a search against what is known.
fn calibrated(data: &str, rest: &str, truth: &[f64], errors: &[f64], seeds: u64) {
    let mut plan = plan(data, 1, &format!("{rest}\nmethod = \"search\""));
    let (mut all, mut totals) = (Vec::new(), Vec::new());
    for seed in 1..=seeds {
        plan.settings[0].options.seed = seed;
        let found = plan.select(&Silent).unwrap();
        assert!(found.is_reliable(), "{data}, seed {seed}: {:?}", found.warnings);
        all.extend(z_scores(&found, truth, errors));
        totals.push(total(&found));
    }
    let spread = rms(&all);
    assert!((0.8..1.25).contains(&spread), "{data}: the spread of z is {spread}");
    // Over all seeds the mean is the truth.
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    assert!(mean.abs() < 0.25, "{data}: the mean of z is {mean}");
    let centre = totals.iter().map(|t| t.value).sum::<f64>() / totals.len() as f64;
    let z: Vec<f64> = totals.iter().map(|t| (t.value - centre) / t.se.unwrap()).collect();
    assert!((0.6..1.35).contains(&rms(&z)), "{data}: log p(data): {}", rms(&z));
}

const PIMA: &str = "[select]\noutcome = \"type\"\nfamily = \"logistic\"\ncandidates = \"scale(npreg) + scale(glu) + scale(bp) + scale(skin) + scale(bmi) + scale(ped) + scale(age)\"";

#[test]
fn error_bars_are_honest() {
    let known = truth("logistic14")["priors"]["beta-binomial(1,14)"].clone();
    let rest = "[select]\noutcome = \"y\"\nfamily = \"logistic\"\ncandidates = \".\"";
    let (p, e) = (numbers(&known["inclusion"]), numbers(&known["inclusion_se"]));
    calibrated("logistic14.parquet", rest, &p, &e, 100);
}

#[test]
fn error_bars_are_honest_with_few_rows() {
    let exact = one_by_one("pima_tr.csv", PIMA);
    let errors: Vec<f64> = exact.inclusion.iter().map(|i| i.se.unwrap()).collect();
    calibrated("pima_tr.csv", PIMA, &inclusion(&exact), &errors, 100);
}

#[test]
fn other_priors_and_families() {
    let counts = "[select]\noutcome = \"skin\"\nfamily = \"negative-binomial\"\ncandidates = \"scale(npreg) + scale(glu) + scale(bp) + scale(bmi) + scale(age)\"";
    let probit = PIMA.replace("logistic", "probit");
    for (rest, prior) in [
        (PIMA, "student_t(3, 0, 0.5)"),
        (PIMA, "cauchy(0, 0.5)"),
        (PIMA, "laplace(0, 0.5)"),
        (PIMA, "laplace(0, 0.1)"),
        (PIMA, "normal(0.3, 0.7)"),
        (&probit, "normal(0, 1)"),
        (counts, "normal(0, 1)"),
    ] {
        let rest = format!(
            "[prior]\ncoefficients = \"{prior}\"\nintercept = \"normal(0, 5)\"\nlog_dispersion = \"normal(0, 3)\"\n{rest}"
        );
        let exact = one_by_one("pima_tr.csv", &rest);
        let errors: Vec<f64> = exact.inclusion.iter().map(|i| i.se.unwrap()).collect();
        let found = select("pima_tr.csv", 3, &format!("{rest}\nmethod = \"search\""));
        assert!(found.is_reliable(), "{prior}: {:?}", found.warnings);
        for z in z_scores(&found, &inclusion(&exact), &errors) {
            assert!(z.abs() < 4.0, "{prior}: z = {z}");
        }
        let off = total(&found) - total(&exact);
        assert!(off.value.abs() < 4.0 * off.se.unwrap(), "{prior}: {off:?}");
        let pairs = found.diagnostics.pairs.unwrap() as f64;
        assert!(found.diagnostics.ess.unwrap() > 0.3 * pairs, "{prior}: {:?}", found.diagnostics);
    }
}

#[test]
fn a_gaussian_study_by_statistics_by_draws_and_one_by_one() {
    let rest = "[select]\noutcome = \"y\"\nfamily = \"gaussian\"\ncandidates = \"x11 + x12 + x13 + x14 + x15\"\nalways = \"1 + x1 + x2 + offset(I(x3 / 2))\"";
    let exact = select("gauss.parquet", 2, &format!("{rest}\nmethod = \"enumerate\""));
    let quick = select("gauss.parquet", 2, &format!("{rest}\nmethod = \"search\""));
    let slow = format!("{rest}\nmethod = \"search\"\n[evidence]\nstatistics = false");
    let drawn = select("gauss.parquet", 2, &slow);
    assert_eq!((exact.method, quick.method, drawn.method), ("enumerate", "statistics", "search"));
    for (a, b) in inclusion(&exact).iter().zip(inclusion(&quick)) {
        assert!((a - b).abs() < 1e-7, "{a} {b}");
    }
    assert!((total(&exact).value - total(&quick).value).abs() < 1e-7);
    for (a, b) in exact.models.iter().zip(&quick.models) {
        assert_eq!(a.terms, b.terms);
        assert!((a.log_evidence.unwrap() - b.log_evidence.unwrap()).abs() < 1e-6);
    }
    let none = vec![0.0; 5];
    assert!(z_scores(&drawn, &inclusion(&exact), &none).iter().all(|z| z.abs() < 4.0));
    let off = total(&drawn).value - total(&exact).value;
    assert!(off.abs() < 4.0 * total(&drawn).se.unwrap(), "{off}");
    for (a, b) in exact.coefficients.iter().zip(&quick.coefficients) {
        assert_eq!(a.name, b.name);
        assert!((a.mean - b.mean).abs() < 0.1 * a.sd + 1e-6, "{a:?} {b:?}");
        assert!((a.sd - b.sd).abs() < 0.15 * a.sd + 1e-6, "{a:?} {b:?}");
    }
}

#[test]
fn reversible_jump_says_what_it_misses() {
    let rest =
        "[select]\noutcome = \"y\"\nfamily = \"logistic\"\ncandidates = \"x2 + x3 + x4 + x5\"";
    let truth =
        [("x2 + x3 + x5", -2411.81326), ("x2 + x4 + x5", -2414.949386), ("x2 + x5", -2415.760183)];
    let names = truth.map(|(name, _)| name.to_string());
    let rest = format!("{rest}\nmethod = \"reversible-jump\"\n[evidence]\ndraws = 20000");
    let found = plan("sim2.parquet", 1, &rest).select_and_name(&names, &Silent).unwrap();
    assert_eq!((found.method, found.jumps.len()), ("reversible-jump", 2));
    for (jump, (_, log_evidence)) in found.jumps.iter().zip(&truth[1..]) {
        let exact = log_evidence - truth[0].1;
        assert!((jump.acceptance.value - exact).abs() < 0.01, "{jump:?}");
        assert!((jump.bridge.value - exact).abs() < 0.01, "{jump:?}");
    }
    for (named, (_, log_evidence)) in found.named.iter().zip(truth) {
        assert!((named.log_evidence.value - log_evidence).abs() < 0.02);
    }
    let shares = rest.replace("reversible-jump", "jump-shares");
    let shares = plan("sim2.parquet", 3, &shares).select(&Silent).unwrap();
    assert_eq!((shares.method, shares.log_normaliser), ("jump-shares", None));
    assert!(shares.coefficients.is_empty() && shares.unseen.value < 1.0);
}
