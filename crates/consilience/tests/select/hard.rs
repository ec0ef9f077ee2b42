//! Where it is hard: the right answer, or a clear word that it is none.

use super::*;

#[test]
fn hard_spaces_have_the_right_answer_or_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let all = rows(60);
    let data = file(&folder, "d.csv", HEADER, &lines(&all));
    // No candidate at all, and one.
    for (candidates, terms) in [("1", 0), ("x1", 1)] {
        for method in ["enumerate", "search"] {
            let found = select(&data, 2, &logistic(candidates, &format!("method = \"{method}\"")));
            assert_eq!(found.inclusion.len(), terms);
            let sum: f64 = found.sizes.iter().map(|s| s.value).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{candidates} {method}: {sum}");
        }
    }
    // A copy of a column is as good as the column.
    let copied = select(
        &data,
        2,
        &logistic("x1 + I(x1 + 0) + x2", "method = \"search\"\nse_target = 0.002"),
    );
    let [a, b] = [&copied.inclusion[0], &copied.inclusion[1]];
    assert!((a.probability - b.probability).abs() < 4.0 * a.se.unwrap().hypot(b.se.unwrap()));
    // Collinear and constant columns, more candidates than rows, classes that a column parts.
    for (candidates, count) in [
        ("x1 + x2 + I(x1 + x2) + I(x1 - x2)", 60),
        ("x1 + I(0 * x2) + I(1 + 0 * x2)", 60),
        ("poly(x1, 3) + poly(x2, 3) + x1:x2 + x1:x3 + x2:x3 + x1 + x2 + x3 + g", 6),
        ("parting + x2", 60),
    ] {
        let parting = |r: &[f64; 5]| 2.0 * r[0] - 1.0 + r[1] / 100.0;
        let some = &all[..count];
        let wider: Vec<String> =
            lines(some).iter().zip(some).map(|(l, r)| format!("{l},{}", parting(r))).collect();
        let part = file(&folder, "part.csv", &format!("{HEADER},parting"), &wider);
        let rest = logistic(candidates, "heredity = \"none\"");
        let exact =
            select(&part, 1, &format!("{rest}\nmethod = \"enumerate\"\n[evidence]\ndraws = 40000"));
        let found = select(&part, 1, &format!("{rest}\nmethod = \"search\""));
        let errors: Vec<f64> = exact.inclusion.iter().map(|i| i.se.unwrap()).collect();
        for z in z_scores(&found, &inclusion(&exact), &errors) {
            assert!(z.abs() < 4.0, "{candidates}: z = {z}");
        }
    }
    let fault = |rest: &str| -> String {
        let text = format!("[data]\npath = {data:?}\n{rest}");
        let study = StudyFile::parse(&text, Path::new("select.toml"));
        let found = study.and_then(|s| Plan::new(s, 1, &Silent)?.select(&Silent));
        found.unwrap_err().to_string()
    };
    for (rest, wanted) in [
        (logistic("x1 + xx", ""), "there is no column `xx`"),
        (logistic("0 + x1", ""), "takes the intercept out"),
        (logistic("x1 + offset(x2)", ""), "an offset cannot be a candidate"),
        (logistic("x1", "[prior.parameters]\nx1 = \"fixed(0)\""), "held fixed"),
        (logistic("x1", "prior = \"betabinomial\""), "no prior over models"),
        (logistic("x1", "top = 0"), "must be at least 1"),
        (logistic("x1 + x2", "prior = \"sizes(0, 0, 0, 1)\""), "4 weights"),
        (
            logistic("x1", "[[model]]\nformula = \"y ~ x1\"\nfamily = \"logistic\""),
            "both [[model]] and [select]",
        ),
        (
            logistic("x1", "method = \"search\"\n[evidence]\ncombine = \"normal\""),
            "does not go with a search",
        ),
        (logistic("x1 + x2", "heredty = \"weak\""), "has no `heredty`"),
    ] {
        let error = fault(&rest);
        assert!(error.contains(wanted), "{rest}\n{error}");
    }
}

/// A study's result, however it went: with error bars that hold, or marked as not to be trusted.
fn held(data: &str, rest: &str) {
    let exact = one_by_one(data, rest);
    let text = format!("{rest}\nmethod = \"search\"");
    let found = Plan::new(study(data, 1, &text), 2, &Silent).and_then(|p| p.select(&Silent));
    let errors: Vec<f64> = exact.inclusion.iter().map(|i| i.se.unwrap()).collect();
    match found {
        Ok(found) if found.is_reliable() => {
            for z in z_scores(&found, &inclusion(&exact), &errors) {
                assert!(z.abs() < 4.5, "{rest}: z = {z}");
            }
        }
        Ok(found) => assert!(!found.warnings.is_empty()),
        Err(error) => assert!(error.to_string().contains("enumerate"), "{error}"),
    }
    // Left to itself the program finds a way.
    let found = select(data, 1, rest);
    assert!(found.is_reliable(), "{rest}: {:?}", found.warnings);
    for z in z_scores(&found, &inclusion(&exact), &errors) {
        assert!(z.abs() < 4.5, "{rest}: z = {z}");
    }
}

#[test]
fn no_confident_wrong_number_where_the_picture_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = rows(40);
    // Classes that x1 parts, under wide priors; interactions without their main effects.
    all.iter_mut().for_each(|r| r[0] = f64::from(u8::from(r[1] > 0.0)));
    let parted = file(&folder, "parted.csv", HEADER, &lines(&all));
    for heredity in ["none", "weak"] {
        let rest =
            logistic("x1 + x2 + x3 + x1:x2 + x1:x3 + x2:x3", &format!("heredity = \"{heredity}\""));
        held(&parted, &format!("[prior]\ndefault = \"normal(0, 10)\"\n{rest}"));
    }
    // Heavy tails that neither give way to the data nor hold against them.
    let mut strong = rows(200);
    for (i, r) in strong.iter_mut().enumerate() {
        let u = (i as f64 * 0.618_033_988_75).fract();
        r[0] = f64::from(u8::from(u < 1.0 / (1.0 + (-4.0 * r[1] - 2.8 * r[2]).exp())));
    }
    let strong = file(&folder, "strong.csv", HEADER, &lines(&strong));
    let rest = logistic(
        "x1 + x2 + x3 + x1:x2 + x1:x3 + x2:x3 + g",
        "heredity = \"none\"\nprior = \"uniform\"",
    );
    held(
        &strong,
        &format!(
            "[prior]\ndefault = \"normal(0, 5)\"\ncoefficients = \"student_t(7, 0, 0.01)\"\n{rest}"
        ),
    );
}

#[test]
fn gaussian_models_that_fit_every_row() {
    let folder = tempfile::tempdir().unwrap();
    for (count, computed) in [(2, false), (4, false), (5, false), (50, true)] {
        let mut all = rows(count);
        for r in &mut all {
            r[0] = if computed { r[1] + r[2] } else { r[1] + 0.3 * r[3] * r[2] };
        }
        let data = file(&folder, "d.csv", HEADER, &lines(&all));
        let rest =
            "[select]\noutcome = \"y\"\nfamily = \"gaussian\"\ncandidates = \"x1 + x2 + x3\"";
        let exact = select(&data, 1, &format!("{rest}\nmethod = \"enumerate\""));
        let found = Plan::new(study(&data, 1, &format!("{rest}\nmethod = \"search\"")), 1, &Silent);
        match found.unwrap().select(&Silent) {
            Ok(found) if found.method == "statistics" => {
                for (a, b) in inclusion(&exact).iter().zip(inclusion(&found)) {
                    assert!((a - b).abs() < 1e-6, "{count}: {a} {b}");
                }
            }
            Ok(found) if found.is_reliable() => {
                let none = [0.0; 3];
                assert!(z_scores(&found, &inclusion(&exact), &none).iter().all(|z| z.abs() < 4.5));
            }
            Ok(_) => {}
            Err(error) => assert!(error.to_string().contains("enumerate"), "{error}"),
        }
    }
}

/// The search is right, or says that it is not.
fn right_or_refused(data: &str, rest: &str, truth: &[f64], errors: &[f64]) {
    let text = format!("{rest}\nmethod = \"search\"");
    match Plan::new(study(data, 1, &text), 1, &Silent).and_then(|p| p.select(&Silent)) {
        Ok(found) if found.is_reliable() => {
            for z in z_scores(&found, truth, errors) {
                assert!(z.abs() < 4.5, "{rest}: z = {z}");
            }
        }
        Ok(found) => assert!(!found.warnings.is_empty()),
        Err(error) => assert!(error.to_string().contains("parameter"), "{error}"),
    }
}

#[test]
fn columns_far_from_0_are_right_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let all = rows(200);
    let truth = select(
        &file(&folder, "near.csv", HEADER, &lines(&all)),
        1,
        &logistic("scale(x1) + scale(x2)", "method = \"enumerate\""),
    );
    let errors: Vec<f64> = truth.inclusion.iter().map(|i| i.se.unwrap() + 0.01).collect();
    for offset in [1e3, 1e5, 1e7, 1e9] {
        let mut far = all.clone();
        far.iter_mut().for_each(|r| r[1] += offset);
        let data = file(&folder, "far.csv", HEADER, &lines(&far));
        // The level at the column's mean has the prior of scale(x), whatever the offset.
        let rest = format!(
            "[prior]\nintercept = \"normal(0, {})\"\n{}",
            2.5 * offset,
            logistic("x1 + scale(x2)", "")
        );
        let rest_truth = format!("{rest}\nmethod = \"enumerate\"");
        let exact =
            Plan::new(study(&data, 1, &rest_truth), 1, &Silent).and_then(|p| p.select(&Silent));
        match exact {
            Ok(exact) => {
                let errors: Vec<f64> = exact.inclusion.iter().map(|i| i.se.unwrap()).collect();
                right_or_refused(&data, &rest, &inclusion(&exact), &errors);
            }
            Err(_) => right_or_refused(&data, &rest, &inclusion(&truth), &errors),
        }
    }
}

#[test]
fn spikes_that_the_search_cannot_see_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = rows(12);
    for r in &mut all {
        r[0] = 3.0 * r[1] + 0.3 * r[3];
    }
    let data = file(&folder, "d.csv", HEADER, &lines(&all));
    for scale in [0.2, 0.02, 0.002] {
        let rest = format!(
            "[prior]\ncoefficients = \"student_t(3, 0, {scale})\"\nlog_sd = \"normal(0, 2)\"\n\
             [select]\noutcome = \"y\"\nfamily = \"gaussian\"\ncandidates = \"x1 + x2\""
        );
        let exact = one_by_one(&data, &rest);
        let errors: Vec<f64> = exact.inclusion.iter().map(|i| i.se.unwrap()).collect();
        right_or_refused(&data, &rest, &inclusion(&exact), &errors);
    }
}
