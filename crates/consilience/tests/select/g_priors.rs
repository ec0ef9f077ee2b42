//! Under priors of all coefficients together, against spaces in which every model is known.

use super::*;

fn rest(prior: &str, candidates: &str, more: &str) -> String {
    format!(
        "[prior]\ncoefficients = {prior:?}\n[select]\noutcome = \"y\"\nfamily = \"gaussian\"\ncandidates = \"{candidates}\"\n{more}"
    )
}

fn first(count: usize) -> String {
    (1..=count).map(|j| format!("x{j}")).collect::<Vec<_>>().join(" + ")
}

fn known(size: &str, prior: &str, count: usize, shards: usize) {
    let truth = &truth("gauss20_g")[size][prior];
    let plan = plan(
        "gauss20.parquet",
        shards,
        &rest(prior, &first(count), &format!("prior = \"beta-binomial(1, {count})\"")),
    );
    let found = plan.select_and_name(&["1".to_string()], &Silent).unwrap();
    assert_eq!(found.method, "statistics");
    for (p, exact) in inclusion(&found).iter().zip(numbers(&truth["inclusion"])) {
        assert!((p - exact).abs() < 2e-8, "{prior}: {p} is not {exact}");
    }
    let sum = total(&found).value - found.named[0].log_evidence.value;
    let exact = truth["log_sum_prior_times_bf"].as_f64().unwrap();
    assert!((sum - exact).abs() < 1e-6, "{prior}: {sum} is not {exact}");
    assert!(found.warnings.iter().any(|w| w.code == "improper-prior"));
}

#[test]
fn every_model_of_sixteen_terms_under_unit_information() {
    known("first16", "g-prior(n)", 16, 3);
}

#[test]
fn every_model_of_twenty_terms() {
    for (prior, shards) in [("jzs(1)", 1), ("hyper-g/n(3)", 7)] {
        known("all20", prior, 20, shards);
    }
}

/// The walk and one evidence after the other; a factor's columns go together, and heredity holds.
#[test]
fn the_walk_is_the_same_as_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    let mut text = String::from("y,a,b,c,f,x1,x2\n");
    for i in 0..60 {
        let x = |k: f64| (1.3 * k * f64::from(i) + k * k).sin();
        let f = ["u", "v", "w"][(i as usize * 7 + i as usize / 4) % 3];
        let y = 2.0 + x(1.0) - 0.5 * x(2.0) + if f == "v" { 0.6 } else { 0.0 } + 0.7 * x(9.7);
        text +=
            &format!("{y},{},{},{},{f},{},{}\n", x(1.0), x(2.0), 100.0 + x(3.0), x(4.0), x(5.0));
    }
    std::fs::write(&path, text).unwrap();
    let data = path.to_str().unwrap();
    for prior in ["robust", "jzs(wide)", "g-prior(20)"] {
        let terms = "a * b + c + f + x1 + x2";
        let walked = select(data, 2, &rest(prior, terms, "top = 96"));
        let listed = select(data, 3, &rest(prior, terms, "method = \"enumerate\"\ntop = 96"));
        assert_eq!((walked.method, listed.method), ("statistics", "enumerate"));
        for (a, b) in walked.inclusion.iter().zip(&listed.inclusion) {
            assert!((a.probability - b.probability).abs() < 1e-8, "{prior} {}", a.term);
        }
        for (a, b) in walked.models.iter().zip(&listed.models) {
            assert_eq!(a.terms, b.terms);
            assert!((a.log_evidence.unwrap() - b.log_evidence.unwrap()).abs() < 1e-8);
        }
        for (a, b) in walked.coefficients.iter().zip(&listed.coefficients) {
            assert!((a.mean - b.mean).abs() < 1e-6, "{prior} {}: {} {}", a.name, a.mean, b.mean);
            assert!((a.sd - b.sd).abs() < 1e-6, "{prior} {}: {} {}", a.name, a.sd, b.sd);
        }
    }
}

#[test]
fn too_much_is_refused() {
    let fails = |prior: &str, more: &str| {
        let study = study("gauss20.parquet", 2, &rest(prior, &first(20), more));
        let found = Plan::new(study, 2, &Silent).and_then(|plan| plan.select(&Silent));
        found.unwrap_err().to_string()
    };
    let jumps = fails("jzs", "method = \"reversible-jump\"\n[evidence]\ncombine = \"exact\"");
    assert!(jumps.contains("write method = \"auto\""), "{jumps}");
    let sigma = fails("normal(0, 1) * sigma", "");
    assert!(sigma.contains("too many for priors that tie parameters"), "{sigma}");
}
