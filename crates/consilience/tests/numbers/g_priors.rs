//! Priors in units of sigma, g-priors and their mixtures, against brute force in R (scripts/g_priors.R), closed forms
//! and laws.

use crate::common::{Case, run};
use consilience::compare::Comparison;
use consilience::engine::Silent;
use consilience::plan::Plan;
use consilience::study::StudyFile;
use std::path::Path;

fn attitude() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/attitude.csv");
    path.to_str().unwrap().to_string()
}

fn reference() -> serde_json::Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/g_priors.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A study of gaussian models under these priors.
fn case(data: &str, shards: usize, prior: &str, formulas: &[&str]) -> String {
    let mut case = Case::new(data, shards);
    case.default = String::new();
    case.prior = prior.into();
    formulas.iter().for_each(|formula| {
        case.model(formula, "gaussian");
    });
    case.text()
}

/// log Bayes factors against the first model.
fn factors(found: &Comparison) -> Vec<f64> {
    let z: Vec<f64> = found.models.iter().map(|m| m.log_evidence.value).collect();
    z.iter().map(|value| value - z[0]).collect()
}

fn near(a: f64, b: f64, within: f64, what: &str) {
    assert!((a - b).abs() < within, "{what}: {a} is not {b}");
}

/// Where the coefficients fit every row the Bayes factor against none is (1 + g)^((n − 1 − p)/2): finite for a given g,
/// and 1 for every g where there is one row more than coefficients.
#[test]
fn a_perfect_fit_under_a_given_g_has_its_evidence() {
    let folder = tempfile::tempdir().unwrap();
    let attempt = |rows: &str, formula: &str, prior: &str| {
        let path = folder.path().join("d.csv");
        std::fs::write(&path, format!("x,z,y\n{rows}")).unwrap();
        let mut case = crate::common::Case::new(path.to_str().unwrap(), 1);
        case.default = String::new();
        case.prior = format!("coefficients = \"{prior}\"");
        case.model("y ~ 1", "gaussian");
        case.model(formula, "gaussian");
        let study = StudyFile::parse(&case.text(), Path::new("study.toml")).unwrap();
        Plan::new(study, 1, &Silent).unwrap().run(&Silent).map(|found| factors(&found)[1])
    };
    let line: String = (0..10).map(|i| format!("{i},{},{}\n", i * i % 7, 2 * i + 1)).collect();
    near(attempt(&line, "y ~ x", "g-prior(10)").unwrap(), 4.0 * 11f64.ln(), 1e-6, "g-prior(10)");
    near(attempt(&line, "y ~ x", "g-prior(n)").unwrap(), 4.0 * 11f64.ln(), 1e-6, "g-prior(n)");
    for prior in ["jzs(medium)", "hyper-g(3)", "hyper-g(4)", "robust"] {
        let message = attempt(&line, "y ~ x", prior).unwrap_err().to_string();
        assert!(message.contains("is infinite") && message.contains("g-prior(n)"), "{message}");
    }
    // Two columns, three rows.
    let three = "0,1,0.3\n1,1.5,2\n2,-1,0.4\n";
    for prior in ["g-prior(n)", "jzs(medium)", "hyper-g(3)", "hyper-g/n(3)", "robust"] {
        near(attempt(three, "y ~ x + z", prior).unwrap(), 0.0, 1e-6, prior);
    }
}

#[test]
fn bayes_factors_under_mixtures_of_g_are_those_of_quadrature_in_r() {
    let reference = reference();
    let all = reference["flat"].as_array().unwrap();
    let mut priors: Vec<&str> = all.iter().map(|r| r["prior"].as_str().unwrap()).collect();
    priors.sort_unstable();
    priors.dedup();
    assert_eq!(priors.len(), 7);
    for prior in priors {
        let own: Vec<_> = all.iter().filter(|r| r["prior"] == prior).collect();
        let formulas: Vec<String> = std::iter::once("rating ~ 1".to_string())
            .chain(own.iter().map(|r| format!("rating ~ {}", r["model"].as_str().unwrap())))
            .collect();
        let formulas: Vec<&str> = formulas.iter().map(String::as_str).collect();
        for shards in [1, 4] {
            let text = case(&attitude(), shards, &format!("coefficients = {prior:?}"), &formulas);
            let found = run(&text);
            for (k, r) in own.iter().enumerate() {
                let (truth, se) =
                    (r["log_bf"].as_f64().unwrap(), found.models[k + 1].log_evidence.se);
                assert!(se.unwrap() < 1e-8, "{prior}: {se:?}");
                near(factors(&found)[k + 1], truth, 2e-8, &format!("{prior}, {}", formulas[k + 1]));
            }
        }
    }
}

/// The documentation of linearReg.R2stat in R's BayesFactor: "The Bayes factor is over 400,000", for rating by
/// complaints and the scale "medium".
#[test]
fn the_documented_bayes_factor_of_attitude() {
    let text =
        case(&attitude(), 3, "coefficients = \"jzs\"", &["rating ~ 1", "rating ~ complaints"]);
    let found = run(&text);
    let factor = factors(&found)[1].exp();
    near(factor, 417_938.6, 0.5, "Bayes factor");
    assert!(found.warnings.iter().any(|w| w.code == "improper-prior"));
    assert_eq!(found.models[1].parameters[1].prior, "jzs(medium)");
    assert_eq!(found.models[1].parameters[0].prior, "flat");
}

#[test]
fn proper_priors_of_level_and_noise_give_whole_evidences() {
    let truth = reference()["proper_jzs"].as_f64().unwrap();
    let prior =
        "coefficients = \"jzs(1)\"\nintercept = \"normal(60, 20)\"\nlog_sd = \"normal(2, 1)\"";
    let formulas = ["rating ~ complaints + learning", "rating ~ learning + complaints"];
    for shards in [1, 7] {
        let found = run(&case(&attitude(), shards, prior, &formulas));
        for model in &found.models {
            near(model.log_evidence.value, truth, 1e-7, "log evidence");
        }
        assert!(found.warnings.iter().all(|w| w.code != "improper-prior"));
    }
}

#[test]
fn priors_in_units_of_sigma_are_those_of_brute_force() {
    let truth = reference()["in_sigma"].as_f64().unwrap();
    let prior = "intercept = \"normal(0, 50)\"\nlog_sd = \"normal(2, 1)\"\n[prior.parameters]\ncomplaints = \"normal(0, 0.05) * sigma\"\nlearning = \"normal(0, 1)\"";
    for shards in [1, 7] {
        let found = run(&case(&attitude(), shards, prior, &["rating ~ complaints + learning"]));
        near(found.models[0].log_evidence.value, truth, 1e-7, "log evidence");
        assert_eq!(found.models[0].parameters[1].prior, "normal(0, 0.05) * sigma");
    }
}

/// A g-prior of one column is a normal prior in units of sigma: sd = √g/√(X'X).
#[test]
fn a_g_prior_of_one_column_is_a_prior_in_units_of_sigma() {
    let rows = 30.0_f64;
    // sd per sd of the column: X'X = (n − 1) sd².
    let sd = (12.0 / (rows - 1.0)).sqrt();
    let ground = "intercept = \"normal(0, 1) per sd\"\nlog_sd = \"normal(0, 1) per sd\"";
    let zellner = format!("coefficients = \"g-prior(12)\"\n{ground}");
    let plain = format!("coefficients = \"normal(0, {sd}) * sigma per sd\"\n{ground}");
    // In a column around its mean the intercept means the same in both.
    let formulas = ["rating ~ 1", "rating ~ scale(complaints)"];
    let a = run(&case(&attitude(), 2, &zellner, &formulas));
    let b = run(&case(&attitude(), 2, &plain, &formulas));
    for (a, b) in a.models.iter().zip(&b.models) {
        near(a.log_evidence.value, b.log_evidence.value, 1e-8, &a.name);
        for (p, q) in a.parameters.iter().zip(&b.parameters) {
            near(p.mean, q.mean, 1e-6 * q.sd.max(1e-3), &p.name);
            near(p.sd, q.sd, 1e-5 * q.sd, &p.name);
        }
    }
}

/// Moments by draws agree with those by quadrature.
#[test]
fn draws_have_the_moments() {
    let ground = "intercept = \"normal(60, 20)\"\nlog_sd = \"normal(2, 1)\"";
    for coefficients in ["jzs", "robust", "g-prior(n)", "normal(0, 0.1) * sigma"] {
        let prior = format!("coefficients = {coefficients:?}\n{ground}");
        let text = case(&attitude(), 2, &prior, &["rating ~ complaints + learning"]);
        let study = StudyFile::parse(&text, Path::new("study.toml")).unwrap();
        let mut plan = Plan::new(study, 2, &Silent).unwrap();
        let extras = consilience::plan::Extras { posterior: true, ..Default::default() };
        plan.deliver(&extras).unwrap();
        let found = plan.run(&Silent).unwrap();
        let model = &found.models[0];
        let chains = &model.posterior.as_ref().unwrap().chains;
        for (j, parameter) in model.parameters.iter().enumerate() {
            let draws: Vec<f64> = chains
                .iter()
                .flat_map(|c| (0..c.thetas.rows()).map(|k| c.thetas[(k, j)]))
                .collect();
            let (mean, sd) = crate::common::spread(&draws);
            let error = 5.0 * parameter.sd / (draws.len() as f64).sqrt();
            near(mean, parameter.mean, error, &format!("{coefficients}: {}", parameter.name));
            near(sd / parameter.sd, 1.0, 0.1, &format!("{coefficients}: {}", parameter.name));
        }
    }
}

/// The same rows in other units, and far from 0.
fn in_units(scale: f64, offset: f64, outcome: f64) -> String {
    let text = std::fs::read_to_string(attitude()).unwrap();
    let mut out = String::from("rating,complaints,learning,advance\n");
    for line in text.lines().skip(1) {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        let at = |j: usize| cells[j] * scale + offset;
        out += &format!("{},{},{},{}\n", cells[0] * outcome, at(1), at(3), cells[6]);
    }
    out
}

#[test]
fn units_of_columns_and_outcome_do_not_matter() {
    let formulas =
        ["rating ~ 1", "rating ~ complaints", "rating ~ complaints + learning + advance"];
    let priors =
        ["jzs(wide)", "hyper-g/n(3)", "robust", "g-prior(n)", "normal(0, 1) * sigma per sd"];
    for prior in priors {
        let mut found: Vec<Vec<f64>> = Vec::new();
        for (k, (scale, offset, outcome)) in
            [(1.0, 0.0, 1.0), (1e-3, 0.0, 1e3), (250.0, 0.0, 1e-4)].into_iter().enumerate()
        {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(format!("{k}.csv"));
            std::fs::write(&path, in_units(scale, offset, outcome)).unwrap();
            let prior = format!("coefficients = {prior:?}");
            found.push(factors(&run(&case(path.to_str().unwrap(), 3, &prior, &formulas))));
        }
        for other in &found[1..] {
            for (a, b) in found[0].iter().zip(other) {
                near(*a, *b, 1e-9 * b.abs().max(1.0), prior);
            }
        }
    }
}

#[test]
fn powers_and_orthogonal_ones_span_the_same_space() {
    let formulas = [
        "rating ~ 1",
        "rating ~ poly(complaints, 3)",
        "rating ~ complaints + I(complaints^2) + I(complaints^3)",
    ];
    for prior in ["jzs", "hyper-g", "g-prior(n)"] {
        let found =
            factors(&run(&case(&attitude(), 5, &format!("coefficients = {prior:?}"), &formulas)));
        near(found[1], found[2], 1e-7, prior);
        assert!(found[1] > 5.0);
    }
}

/// Widths of priors go with the scale, and a caution says where the ranking turns on them.
#[test]
fn a_scale_of_two_is_another_scale_of_the_prior() {
    let formulas = ["rating ~ 1", "rating ~ complaints"];
    let scaled = |prior: &str, scales: &[f64]| {
        let text = case(&attitude(), 2, &format!("coefficients = {prior:?}"), &formulas);
        let study = StudyFile::parse(&text, Path::new("study.toml")).unwrap();
        let mut plan = Plan::new(study, 2, &Silent).unwrap();
        let extras =
            consilience::plan::Extras { prior_scales: scales.to_vec(), ..Default::default() };
        plan.deliver(&extras).unwrap();
        plan.run(&Silent).unwrap()
    };
    for (prior, twice) in [("jzs(0.25)", "jzs(0.5)"), ("g-prior(10)", "g-prior(40)")] {
        let found = scaled(prior, &[1.0, 2.0]);
        let sensitivity = found.prior_sensitivity.as_ref().unwrap();
        let other = scaled(twice, &[]);
        let at = |k: usize| sensitivity[1].models[k].log_evidence.value;
        near(at(1) - at(0), factors(&other)[1], 1e-9, prior);
    }
}

fn refused(prior: &str, formulas: &[(&str, &str)], evidence: &str) -> String {
    let mut case = Case::new(&attitude(), 2);
    case.default = String::new();
    case.prior = prior.into();
    case.evidence = evidence.into();
    formulas.iter().for_each(|(formula, family)| {
        case.model(formula, family);
    });
    let found = StudyFile::parse(&case.text(), Path::new("study.toml"))
        .and_then(|study| Plan::new(study, 2, &Silent))
        .and_then(|plan| plan.run(&Silent));
    found.unwrap_err().to_string()
}

/// Priors, models with their families, `[evidence]`, and what the message has in it.
type Refused = (&'static str, Vec<(&'static str, &'static str)>, &'static str, &'static str);

#[test]
fn what_cannot_be_is_refused_with_what_to_do() {
    let rating = |right: &'static str| vec![(right, "gaussian")];
    let learning = || rating("rating ~ learning");
    let jzs = "coefficients = \"jzs\"";
    let cases: Vec<Refused> = vec![
        ("coefficients = \"g-prior(0)\"", learning(), "", "needs a positive g; write g-prior(g)"),
        ("coefficients = \"g-prior(-3)\"", learning(), "", "needs a positive g"),
        ("coefficients = \"g-prior\"", learning(), "", "does not say what g is"),
        ("coefficients = \"hyper-g(2)\"", learning(), "", "needs a number over 2"),
        (
            "coefficients = \"jzs(large)\"",
            learning(),
            "",
            "needs a positive scale; write jzs(r), where r is a number or medium, wide or ultrawide",
        ),
        (
            "coefficients = \"jzs(1) per sd\"",
            learning(),
            "",
            "is in units of sigma and of the columns already",
        ),
        ("coefficients = \"jsz(1)\"", learning(), "", "there is no prior `jsz`"),
        ("default = \"jzs\"", learning(), "", "write coefficients = \"jzs(medium)\""),
        ("coefficients = \"flat\"", learning(), "", "Lindley's paradox"),
        ("log_sd = \"flat\"", learning(), "", "goes with a prior of all coefficients together"),
        ("default = \"normal(0, 1) * sigma\"", learning(), "", "cannot be the prior of log_sd"),
        ("log_sd = \"normal(0, 1) * sigma\"", learning(), "", "is a prior of a coefficient"),
        (
            "coefficients = \"cauchy(0, 1) * sigma\"",
            learning(),
            "",
            "only a normal prior around 0 can be multiplied with sigma",
        ),
        (
            "coefficients = \"normal(0, 1) * sigmas\"",
            learning(),
            "",
            "nothing but `per sd` and `* sigma` can stand",
        ),
        ("coefficients = \"fixed(1) * sigma\"", learning(), "", "a value that is held fixed"),
        (jzs, rating("rating ~ 1"), "", "is a prior of coefficients, and no model has any"),
        (jzs, rating("rating ~ learning - 1"), "", "needs an intercept; add one to the formula"),
        (
            "coefficients = \"jzs\"\n[prior.parameters]\nlearning = \"normal(0, 1)\"",
            learning(),
            "",
            "`learning` has the prior `normal(0, 1)` of its own, and coefficients = \"jzs(medium)\" is a prior of all of them together",
        ),
        (
            "coefficients = \"jzs\"\n[prior.parameters]\nlearning = \"jzs\"",
            learning(),
            "",
            "is a prior of all coefficients together",
        ),
        (
            "coefficients = \"jzs\"\nintercept = \"cauchy(0, 1)\"",
            learning(),
            "",
            "the intercept's prior is flat or normal",
        ),
        (
            jzs,
            rating("rating ~ learning + I(2 * learning)"),
            "",
            "model `rating ~ learning + I(2 * learning)`: coefficients = \"jzs(medium)\" needs columns none of which the others determine, and the column of `I(2 * learning)` is a combination of those before it",
        ),
        (jzs, learning(), "combine = \"normal\"", "needs combine = \"exact\""),
        (
            "coefficients = \"normal(0, 1) * sigma\"",
            learning(),
            "combine = \"normal\"",
            "the prior normal(0, 1) * sigma of `learning` needs combine = \"exact\"",
        ),
        (jzs, learning(), "statistics = false", "set statistics = true"),
        (jzs, learning(), "local = \"nuts+warp3\"", "no shard has an evidence of its own"),
        (
            "coefficients = \"normal(0, 1) * sigma\"",
            vec![("learning > 50 ~ advance", "logistic")],
            "",
            "which a logistic model does not have; leave out `* sigma`",
        ),
        (
            jzs,
            vec![("rating ~ learning", "negative-binomial")],
            "",
            "is for gaussian, logistic, probit and poisson models",
        ),
        (
            jzs,
            vec![("rating ~ learning", "gaussian"), ("log(rating) ~ learning", "gaussian")],
            "",
            "cannot be compared",
        ),
    ];
    for (prior, models, evidence, expected) in cases {
        let message = refused(prior, &models, evidence);
        assert!(message.contains(expected), "{prior}, {evidence}: {message}");
    }
}
