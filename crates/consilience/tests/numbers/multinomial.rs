//! Classes without an order: derivatives against differences, two classes against the logistic family, evidences against
//! quadrature, calibration over seeds, and what is said about what cannot be.

use crate::common::{Case, run, spread};
use consilience::data::Design;
use consilience::engine::Silent;
use consilience::kernel::Kernel;
use consilience::model::{Family, Likelihood};
use consilience::plan::{Plan, Room};
use consilience::study::StudyFile;
use std::path::Path;

/// n rows of an intercept and a column, with one of so many classes and some equal rows.
fn design(n: usize, classes: usize) -> Design {
    let x = |i: usize| ((i / 2) as f64 * 1.7).sin() * 2.0;
    let class = |i: usize| ((i * 7 + i * i / 3) % classes) as f64;
    Design {
        columns: vec![vec![1.0; n], (0..n).map(x).collect()],
        response: (0..n).map(class).collect(),
        second: Some(vec![classes as f64; n]),
        offset: None,
        weights: Some((0..n).map(|i| [1.0, 2.5, 0.0, 1.0][i % 4]).collect()),
    }
}

fn likelihood(design: Design, fixed: &[Option<f64>], kernel: Kernel) -> Likelihood {
    Likelihood::with_own(Family::Multinomial, design, fixed, &[], kernel)
}

fn close(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs())), "{what}: {a} is not {b}");
}

#[test]
fn values_are_those_of_the_formula_and_derivatives_those_of_differences() {
    for classes in [2, 3, 4, 7] {
        let data = design(203, classes);
        let d = 2 * (classes - 1);
        let all = likelihood(data.clone(), &vec![None; d], Kernel::Auto);
        let theta: Vec<f64> = (0..d).map(|j| ((j * j) as f64 + 0.4).sin()).collect();
        let at = all.expand(&theta);
        let mut expected = 0.0;
        for i in 0..data.response.len() {
            let eta = |k: usize| match k {
                0 => 0.0,
                _ => theta[2 * k - 2] + theta[2 * k - 1] * data.columns[1][i],
            };
            let sum: f64 = (0..classes).map(|k| eta(k).exp()).sum();
            let weight = data.weights.as_ref().unwrap()[i];
            expected += weight * (eta(data.response[i] as usize) - sum.ln());
        }
        close(at.value, expected, 1e-12, "value");
        let (mut out, mut slopes) = ([0.0], vec![0.0; d]);
        all.values(&[&theta], &mut out);
        close(out[0], expected, 1e-12, "value alone");
        close(all.gradient(&theta, &mut slopes), expected, 1e-12, "value with slopes");
        let step = 1e-5;
        for j in 0..d {
            let moved = |by: f64| {
                let mut there = theta.clone();
                there[j] += by;
                all.expand(&there)
            };
            let (below, above) = (moved(-step), moved(step));
            let slope = (above.value - below.value) / (2.0 * step);
            close(at.gradient[j], slope, 1e-7, "slope");
            close(at.gradient[j], slopes[j], 1e-13, "slopes alone");
            for k in 0..d {
                let bend = (above.gradient[k] - below.gradient[k]) / (2.0 * step);
                close(at.hessian[(j, k)], bend, 1e-7, "bend");
            }
        }
        // What is held fixed is a part of the same function.
        let mut fixed = vec![None; d];
        fixed[d - 1] = Some(theta[d - 1]);
        let held = likelihood(data, &fixed, Kernel::Auto);
        assert_eq!(held.dim(), d - 1);
        let part = held.expand(&theta[..d - 1]);
        close(part.value, at.value, 1e-14, "held value");
        close(part.gradient[0], at.gradient[0], 1e-14, "held slope");
        close(part.hessian[(d - 2, 0)], at.hessian[(d - 2, 0)], 1e-14, "held bend");
    }
}

#[test]
fn two_classes_are_a_logistic_model() {
    let own = design(1037, 2);
    let plain = Design { second: None, ..own.clone() };
    let logistic = Likelihood::with_own(Family::Logistic, plain, &[None; 2], &[], Kernel::Auto);
    let both = likelihood(own, &[None; 2], Kernel::Auto);
    for theta in [[0.0, 0.0], [0.3, -0.8], [-4.0, 9.0], [30.0, 25.0], [-200.0, 40.0]] {
        let (a, b) = (both.expand(&theta), logistic.expand(&theta));
        close(a.value, b.value, 1e-12, "value");
        for j in 0..2 {
            close(a.gradient[j], b.gradient[j], 1e-11, "slope");
            for k in 0..2 {
                close(a.hessian[(j, k)], b.hessian[(j, k)], 1e-11, "bend");
            }
        }
    }
}

#[test]
fn kernels_agree_and_nothing_is_no_number() {
    for classes in [2, 3, 6] {
        let d = 2 * (classes - 1);
        let of = |kernel| likelihood(design(2003, classes), &vec![None; d], kernel);
        let (auto, portable) = (of(Kernel::Auto), of(Kernel::Portable));
        for scale in [0.0, 0.3, 5.0, 300.0] {
            let theta: Vec<f64> = (0..d).map(|j| scale * (j as f64 + 1.1).cos()).collect();
            let (a, b) = (auto.expand(&theta), portable.expand(&theta));
            close(a.value, b.value, 1e-12, "value");
            for j in 0..d {
                assert!((a.gradient[j] - b.gradient[j]).abs() < 1e-12 * 2003.0);
                for k in 0..d {
                    assert!((a.hessian[(j, k)] - b.hessian[(j, k)]).abs() < 1e-12 * 4006.0);
                }
            }
        }
        for far in [1e10, -1e150, 1e300] {
            let theta: Vec<f64> = (0..d).map(|j| if j % 3 == 0 { far } else { 1.0 }).collect();
            for own in [&auto, &portable] {
                let at = own.expand(&theta);
                let all = at.gradient.iter().chain(at.hessian.data());
                assert!(at.value.is_finite() && all.into_iter().all(|x| x.is_finite()));
            }
        }
        // A point's value does not depend on its company.
        let points: Vec<Vec<f64>> =
            (0..9).map(|p| (0..d).map(|j| ((p * 3 + j) as f64).sin()).collect()).collect();
        let points: Vec<&[f64]> = points.iter().map(Vec::as_slice).collect();
        let mut out = vec![0.0; 9];
        auto.values(&points, &mut out);
        for (point, value) in points.iter().zip(&out) {
            let mut alone = [0.0];
            auto.values(&[point], &mut alone);
            assert_eq!(alone[0].to_bits(), value.to_bits());
        }
    }
}

/// 60 rows with three species, two sites and three columns, of which two matter.
/// Rows of one observation share a logarithm, as far as their factors are a number together; slopes are found row by row.
#[test]
fn values_are_those_that_come_with_slopes() {
    for classes in [2, 3, 6, 255, 300] {
        let (d, single) = (2 * (classes - 1), Design { weights: None, ..design(2003, classes) });
        for kernel in [Kernel::Auto, Kernel::Portable] {
            let own = likelihood(single.clone(), &vec![None; d], kernel);
            for scale in [0.0, 0.3, 5.0, 300.0, 1e10] {
                let point = |p: usize| -> Vec<f64> {
                    (0..d).map(|j| scale * ((j + 31 * p) as f64 + 1.1).cos()).collect()
                };
                let points: Vec<Vec<f64>> = (0..19).map(point).collect();
                let points: Vec<&[f64]> = points.iter().map(Vec::as_slice).collect();
                let (mut out, mut slopes) = (vec![0.0; 19], vec![0.0; d]);
                own.values(&points, &mut out);
                for (point, value) in points.iter().zip(out) {
                    close(value, own.gradient(point, &mut slopes), 1e-12, "value");
                }
            }
            for weights in [None, Some(vec![2.0; 2003])] {
                let own = Design { weights, ..single.clone() };
                let own = likelihood(own, &vec![None; d], kernel);
                let (mut out, wrong) = ([0.0], vec![f64::NAN; d]);
                own.values(&[&wrong], &mut out);
                assert!(out[0].is_nan(), "{classes} classes: {}", out[0]);
            }
            // Probabilities of all but 1 keep their digits.
            let sure: Vec<f64> = (0..d).map(|j| if j % 2 == 0 { -40.0 } else { 0.0 }).collect();
            let first = Design { response: vec![0.0; 2003], ..single.clone() };
            let own = likelihood(first, &vec![None; d], kernel);
            let mut out = [0.0];
            own.values(&[&sure], &mut out);
            let exact = -2003.0 * ((classes - 1) as f64 * (-40.0_f64).exp()).ln_1p();
            assert!((out[0] / exact - 1.0).abs() < 1e-12, "{classes}: {} not {exact}", out[0]);
        }
    }
}

fn flowers() -> String {
    let mut text = "species,two,site,kind,a,b,c\n".to_string();
    for i in 0..60 {
        let at = |k: f64| (k * (i as f64 + 1.0)).sin();
        let (a, b, c) = (at(1.3), at(2.9), at(4.1));
        let (one, two) = (1.2 * a + at(7.7), -0.8 * b + at(5.3));
        let mut species = if one.max(two) < 0.1 { 0 } else { 1 + usize::from(two > one) };
        // The last site lacks a class.
        if i >= 40 && species == 2 {
            species = 0;
        }
        let (name, site) = (["setosa", "versicolor", "virginica"][species], i / 20);
        let (pair, kind) = (["no", "yes"][species.min(1)], ["p", "q", "r"][i % 3]);
        text += &format!("{name},{pair},s{site},{kind},{a:.6},{b:.3},{c:.3}\n");
    }
    text
}

/// A study of one model over these rows.
fn study(folder: &Path, formula: &str, family: &str, shards: usize) -> Case {
    let path = folder.join("flowers.csv");
    std::fs::write(&path, flowers()).unwrap();
    let mut study = Case::new(path.to_str().unwrap(), shards);
    study.model(formula, family);
    study
}

fn evidence(study: &Case) -> (f64, f64) {
    let result = run(&study.text());
    assert!(result.is_reliable(), "{:?}", result.models[0].warnings);
    let found = result.models[0].log_evidence;
    (found.value, found.se.unwrap())
}

/// log Z of intercepts under normal(0, 1) priors, by the trapezoidal rule.
fn exact() -> f64 {
    let text = flowers();
    let count = |name: &str| text.lines().filter(|line| line.starts_with(name)).count() as f64;
    let n = [count("setosa"), count("versicolor"), count("virginica")];
    assert!(n.iter().all(|n| *n > 5.0) && n.iter().sum::<f64>() == 60.0, "{n:?}");
    let (steps, reach) = (400, 7.0);
    let at = |i: usize| reach * (2.0 * i as f64 / steps as f64 - 1.0);
    let mut values = Vec::new();
    for i in 0..=steps {
        for j in 0..=steps {
            let (a, b) = (at(i), at(j));
            let all = (1.0 + a.exp() + b.exp()).ln();
            let prior = -0.5 * (a * a + b * b) - (2.0 * std::f64::consts::PI).ln();
            values.push(n[1] * a + n[2] * b - 60.0 * all + prior);
        }
    }
    consilience::math::log_sum_exp(&values) + 2.0 * (2.0 * reach / steps as f64).ln()
}

#[test]
fn evidences_agree_with_quadrature_on_one_shard_and_on_seven() {
    let folder = tempfile::tempdir().unwrap();
    let exact = exact();
    for shards in [1, 7] {
        let (found, se) = evidence(&study(folder.path(), "species ~ 1", "multinomial", shards));
        println!("{shards} shards: {found:.5} ± {se:.5}, {exact:.5}");
        assert!(
            ((found - exact) / se.max(1e-9)).abs() < 4.0 && se < 0.05,
            "{found} ± {se}, {exact}"
        );
    }
}

#[test]
fn errors_are_calibrated_over_forty_seeds() {
    let folder = tempfile::tempdir().unwrap();
    let exact = exact();
    let z = |seed: u64| {
        let mut study = study(folder.path(), "species ~ 1", "multinomial", 3);
        study.evidence = format!("seed = {seed}\ndraws = 2000");
        let (found, se) = evidence(&study);
        (found - exact) / se.max(1e-9)
    };
    let z: Vec<f64> = (1..=40).map(z).collect();
    let (mean, sd) = spread(&z);
    println!("mean z {mean:.2}, sd {sd:.2}");
    assert!(z.iter().all(|z| z.abs() < 4.0), "{z:?}");
    assert!(sd < 1.5 && mean.abs() < 0.8, "mean {mean}, sd {sd}");
}

/// Under the same priors, per standard deviation too, two classes have the evidence of a logistic model.
#[test]
fn two_classes_have_the_evidence_of_a_logistic_model() {
    let folder = tempfile::tempdir().unwrap();
    for default in ["normal(0, 1)", "normal(0, 2.5) per sd", "cauchy(0, 1)"] {
        let both = ["multinomial", "logistic"].map(|family| {
            let mut study = study(folder.path(), "two ~ a + b + kind", family, 3);
            study.default = format!("default = {default:?}");
            evidence(&study)
        });
        let [(a, se), (b, _)] = both;
        assert!((a - b).abs() < 1e-6 + 4.0 * se, "{default}: {both:?}");
        if default.starts_with("normal") {
            assert!((a - b).abs() < 1e-10, "{default}: {both:?}");
        }
    }
}

/// Every class has the prior of its column, unless it is named itself.
#[test]
fn priors_go_by_class_column_and_term() {
    let folder = tempfile::tempdir().unwrap();
    let mut study = study(folder.path(), "species ~ a + kind", "softmax", 2);
    study.default = "intercept = \"normal(0, 3)\"".into();
    study.prior = "[prior.parameters]\na = \"normal(0, 2) per sd\"\n\"virginica: a\" = \"normal(1, 1)\"\nkind = \"laplace(0, 1)\"\nkindr = \"normal(0, 5)\"\n\"versicolor: kindr\" = 0.5\n".into();
    study.prior = study.prior.replace("= 0.5", "= \"fixed(0.5)\"");
    let result = run(&study.text());
    let shown: Vec<(String, String)> =
        result.models[0].parameters.iter().map(|p| (p.name.clone(), p.prior.to_string())).collect();
    let names: Vec<&str> = shown.iter().map(|(name, _)| name.as_str()).collect();
    let expected = ["(Intercept)", "a", "kindq", "kindr"];
    let all: Vec<String> = ["versicolor", "virginica"]
        .iter()
        .flat_map(|class| expected.map(|column| format!("{class}: {column}")))
        .collect();
    let free: Vec<&String> = all.iter().filter(|n| *n != "versicolor: kindr").collect();
    assert!(names == all || names == free, "{names:?}");
    let prior = |name: &str| shown.iter().find(|(own, _)| own == name).unwrap().1.clone();
    assert_eq!(prior("virginica: a"), "normal(1, 1)");
    assert!(prior("versicolor: a").starts_with("normal(0, 2."), "{}", prior("versicolor: a"));
    assert_eq!(prior("versicolor: kindq"), "laplace(0, 1)");
    assert_eq!(prior("virginica: kindr"), "normal(0, 5)");
    assert_eq!(prior("virginica: (Intercept)"), "normal(0, 3)");
}

#[test]
fn a_shard_may_lack_a_class() {
    let folder = tempfile::tempdir().unwrap();
    let whole = evidence(&study(folder.path(), "species ~ a", "multinomial", 1));
    let mut by_site = study(folder.path(), "species ~ a", "multinomial", 1);
    by_site.split = "by = \"column:site\"".into();
    let three = evidence(&by_site);
    let z = (whole.0 - three.0) / whole.1.hypot(three.1);
    assert!(z.abs() < 4.0, "{whole:?}, {three:?}");
}

/// Chains of a shard's own, and the same levels in another order.
#[test]
fn other_ways_have_the_same_evidence() {
    let folder = tempfile::tempdir().unwrap();
    let mut study = study(folder.path(), "species ~ a", "multinomial", 1);
    let exact = evidence(&study);
    study.evidence = "combine = \"normal\"\nlocal = \"nuts+warp3\"\ndraws = 1000".into();
    let chains = evidence(&study);
    let z = (exact.0 - chains.0) / exact.1.hypot(chains.1);
    assert!(z.abs() < 4.0, "{exact:?}, {chains:?}");
    study.evidence = "kernel = \"portable\"".into();
    let portable = evidence(&study);
    assert!((portable.0 - exact.0).abs() < 1e-9, "{exact:?}, {portable:?}");
    // Columns that are stated are not asked about.
    study.evidence = String::new();
    let read = |text: &str| StudyFile::parse(text, Path::new("s.toml")).unwrap();
    let book = Plan::codebook(read(&study.text()), 1, &Room::default(), &Silent).unwrap();
    let told = run(&format!("{}\n{}", study.text(), book.to_toml()));
    assert!((told.models[0].log_evidence.value - exact.0).abs() < 1e-6);
}

/// All models of a space at once have the probabilities that they have one by one.
#[test]
fn choosing_terms_takes_a_term_for_all_classes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    std::fs::write(&path, flowers()).unwrap();
    let inclusion = |method: &str| -> Vec<f64> {
        let text = format!(
            "[data]\npath = {path:?}\n[split]\nshards = 2\n[select]\noutcome = \"species\"\nfamily = \"multinomial\"\ncandidates = \"a + b + c\"\nmethod = {method:?}\n"
        );
        let study = StudyFile::parse(&text, Path::new("s.toml")).unwrap();
        let found = Plan::new(study, 2, &Silent).unwrap().select(&Silent).unwrap();
        assert!(found.is_reliable(), "{:?}", found.warnings);
        found.inclusion.iter().map(|term| term.probability).collect()
    };
    let (each, at_once) = (inclusion("enumerate"), inclusion("search"));
    assert!(each[0] > 0.5 && each[2] < 0.5, "{each:?}");
    for (a, b) in each.iter().zip(&at_once) {
        assert!((a - b).abs() < 0.03, "{each:?}, {at_once:?}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let fault = |formula: &str, prior: &str, options: &str| {
        let mut study = study(folder.path(), formula, "multinomial", 2);
        if !prior.is_empty() {
            study.default = prior.into();
        }
        study.evidence = options.into();
        let read = StudyFile::parse(&study.text(), Path::new("s.toml"));
        let run = read.and_then(|s| Plan::new(s, 1, &Silent)).and_then(|plan| plan.run(&Silent));
        match run {
            Ok(_) => panic!("{formula}, {prior}, {options}: there is no fault"),
            Err(error) => error.to_string(),
        }
    };
    for (formula, prior, options, words) in [
        ("species ~ a + offset(b)", "", "", "leave offset() out"),
        ("species ~ a", "coefficients = \"jzs(medium)\"", "", "not for multinomial ones"),
        (
            "species ~ a",
            "coefficients = \"normal(0, 1) * sigma\"",
            "",
            "a multinomial model does not have",
        ),
        ("species ~ a", "", "combine = \"augmented\"", "multinomial"),
        ("species ~ a", "", "combine = \"normal\"\nlocal = \"gibbs+chib\"", "multinomial"),
        ("a ~ b", "", "", "classes, and there must be 2 to 50"),
        (
            "species ~ a",
            "parameters = { \"versicolr: a\" = \"normal(0, 1)\" }",
            "",
            "versicolor: a",
        ),
        (
            "ordered(species, levels = c('setosa', 'virginica')) ~ a",
            "",
            "",
            "not among the levels that ordered() states",
        ),
        ("cbind(a, b) ~ c", "", "", "is for logistic and probit models"),
    ] {
        let error = fault(formula, prior, options);
        assert!(error.contains(words), "{formula}, {prior}, {options}: {error}");
    }
    let mut other = study(folder.path(), "species ~ a", "logistic", 2);
    let read = |text: &str| StudyFile::parse(text, Path::new("s.toml"));
    let error = Plan::new(read(&other.text()).unwrap(), 1, &Silent).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("use family = \"multinomial\""), "{error}");
    // An order that is stated says which class the others are compared with.
    other = study(
        folder.path(),
        "ordered(species, levels = c('virginica', 'setosa', 'versicolor')) ~ 1",
        "categorical",
        2,
    );
    let result = run(&other.text());
    let names: Vec<&str> = result.models[0].parameters.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["setosa: (Intercept)", "versicolor: (Intercept)"]);
}

/// Every combination and every way to a shard's own evidence knows the family, as far as it says.
#[test]
fn combinations_and_local_methods_agree() {
    let folder = tempfile::tempdir().unwrap();
    let mut study = study(folder.path(), "species ~ 1", "multinomial", 2);
    let exact = exact();
    for (options, tolerance) in [
        ("combine = \"cmc-is\"\ndraws = 2000", 0.05),
        ("combine = \"normal\"\ndraws = 2000", 0.3),
        ("combine = \"normal\"\nlocal = \"laplace\"", 0.3),
        ("combine = \"normal\"\nlocal = \"importance\"\ndraws = 2000", 0.3),
        ("combine = \"normal\"\nlocal = \"nuts+bridge\"\ndraws = 1000", 0.3),
        ("combine = \"normal\"\nlocal = \"laplace-metropolis\"\ndraws = 1000", 0.3),
    ] {
        study.evidence = options.into();
        let found = run(&study.text()).models[0].log_evidence;
        println!("{options}: {found:?}, {exact}");
        assert!((found.value - exact).abs() < tolerance, "{options}: {found:?}, {exact}");
    }
}

/// Reversible jump takes a term's coefficients of all classes at a time.
#[test]
fn reversible_jump_finds_what_enumerating_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    std::fs::write(&path, flowers()).unwrap();
    let inclusion = |method: &str| -> Vec<f64> {
        let text = format!(
            "[data]\npath = {path:?}\n[split]\nshards = 1\n[select]\noutcome = \"species\"\nfamily = \"multinomial\"\ncandidates = \"a + b\"\nmethod = {method:?}\n"
        );
        let study = StudyFile::parse(&text, Path::new("s.toml")).unwrap();
        let found = Plan::new(study, 2, &Silent).unwrap().select(&Silent).unwrap();
        found.inclusion.iter().map(|term| term.probability).collect()
    };
    let (each, jumped) = (inclusion("enumerate"), inclusion("reversible-jump"));
    println!("{each:?}, {jumped:?}");
    for (a, b) in each.iter().zip(&jumped) {
        assert!((a - b).abs() < 0.1, "{each:?}, {jumped:?}");
    }
}
