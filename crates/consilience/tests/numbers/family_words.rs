//! How outcomes and families are written: what is understood, and what is said about what is not.

use crate::common::Case as StudyCase;
use consilience::data::{Expr, Formula};
use consilience::engine::Silent;
use consilience::model::Family;
use consilience::plan::Plan;
use consilience::study::StudyFile;
use std::path::Path;

/// Why a study of one model over this table is refused.
pub fn fault(data: &str, formula: &str, family: &str, shards: usize) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    std::fs::write(&path, data).unwrap();
    let mut study = StudyCase::new(path.to_str().unwrap(), shards);
    study.model(formula, family);
    let read = StudyFile::parse(&study.text(), Path::new("s.toml"));
    match read.and_then(|study| Plan::new(study, 1, &Silent)) {
        Ok(_) => panic!("{formula}, {family}: there is no fault"),
        Err(error) => error.to_string(),
    }
}

/// 20 rows: k of n, a time, an event, a grade in words and in numbers, a share, a column.
pub fn data(last: &str) -> String {
    let mut text = "k,f,n,t,t2,e,word,grade,share,x\n".to_string();
    for i in 0..20 {
        let word = ["low", "mid", "high"][i % 3];
        let x = (i as f64 * 0.7).sin();
        text += &format!(
            "{},{},6,{},{},{},{word},{},{},{x:.3}\n",
            i % 4,
            i % 3,
            1 + i,
            3 + i,
            i % 2,
            1 + i % 3,
            0.1 + 0.04 * i as f64
        );
    }
    text + last + if last.is_empty() { "" } else { "\n" }
}

#[test]
fn outcomes_that_cannot_be_are_refused_with_their_place() {
    let at = "d.csv, line 22, column `";
    for (last, formula, family, parts) in [
        (
            "7,1,6,1,3,1,low,1,0.5,0",
            "k/trials(n) ~ x",
            "logistic",
            &["7 successes in 6 trials", "cbind("][..],
        ),
        (
            "-1,1,6,1,3,1,low,1,0.5,0",
            "cbind(k, f) ~ x",
            "probit",
            &["number of successes is -1", "0 or more"],
        ),
        (
            "1,1.5,6,1,3,1,low,1,0.5,0",
            "cbind(k, f) ~ x",
            "binomial",
            &["number of failures is 1.5"],
        ),
        (
            "1,1,2.5,1,3,1,low,1,0.5,0",
            "k | trials(n) ~ x",
            "logistic",
            &["number of trials is 2.5"],
        ),
        ("1,1,6,0,3,1,low,1,0.5,0", "Surv(t, e) ~ x", "weibull", &["the time is 0", "above 0"]),
        ("1,1,6,-2,3,1,low,1,0.5,0", "Surv(t, e) ~ x", "exponential", &["the time is -2"]),
        (
            "1,1,6,1,3,2,low,1,0.5,0",
            "Surv(t, e) ~ x",
            "log-normal",
            &["the event is 2", "status == 2"],
        ),
        (
            "1,1,6,1,3,0.5,low,1,0.5,0",
            "Surv(t, e, type = 'left') ~ x",
            "weibull",
            &["the event is 0.5"],
        ),
        (
            "1,1,6,1,3,4,low,1,0.5,0",
            "Surv(t, t2, e, type = 'interval') ~ x",
            "weibull",
            &["the event is 4", "3 (between"],
        ),
        (
            "1,1,6,5,3,1,low,1,0.5,0",
            "Surv(t, t2, type = 'interval2') ~ x",
            "weibull",
            &["between 5 and 3", "swap"],
        ),
        (
            "1,1,6,5,3,3,low,1,0.5,0",
            "Surv(t, t2, e, type = 'interval') ~ x",
            "weibull",
            &["between 5 and 3"],
        ),
        (
            "1,1,6,-1,3,3,low,1,0.5,0",
            "Surv(t, t2, type = 'interval2') ~ x",
            "weibull",
            &["the time is -1"],
        ),
        ("1,1,6,0,3,1,low,1,0.5,0", "t ~ x", "weibull", &["the outcome 0", "above 0"]),
        ("1,1,6,-1,3,1,low,1,0.5,0", "t ~ x", "gamma", &["the outcome -1", "above 0"]),
        (
            "1,1,6,1,3,1,low,1,1,0",
            "share ~ x",
            "beta",
            &["the outcome 1", "between 0 and 1", "share of 1"],
        ),
        ("1,1,6,1,3,1,low,1,0,0", "share ~ x", "beta", &["the outcome 0", "between 0 and 1"]),
        ("1.5,1,6,1,3,1,low,1,0.5,0", "k ~ x", "zip", &["the outcome 1.5", "whole number"]),
    ] {
        let message = fault(&data(last), formula, family, 2);
        for part in [at].iter().chain(parts) {
            assert!(message.contains(part), "{formula}, {family}: `{message}` lacks `{part}`");
        }
    }
}

#[test]
fn formulas_and_families_that_do_not_fit_are_refused() {
    for (formula, family, parts) in [
        ("cbind(k, f) ~ x", "poisson", &["cbind(k, f) is for logistic and probit models"][..]),
        ("Surv(t, e) ~ x", "gaussian", &["is for times", "\"weibull\""]),
        ("Surv(t, e) ~ x", "logistic", &["is for times"]),
        ("ordered(grade) ~ x", "poisson", &["classes in order", "\"cumulative-logit\""]),
        (
            "word ~ x",
            "ordinal",
            &["nothing says in which order", "levels = c(\"high\", \"low\", \"mid\")"],
        ),
        (
            "ordered(word, levels = c('low', 'high')) ~ x",
            "ordinal",
            &["word is \"mid\" in some row", "add it"],
        ),
        (
            "ordered(word, levels = c('low', 'mid', 'high', 'top')) ~ x",
            "cumulative-probit",
            &["no row of any shard has word = \"top\"", "leave the level out"],
        ),
        ("ordered(word, levels = c('low', 'low')) ~ x", "ordinal", &["\"low\" stands here twice"]),
        (
            "ordered(word, c('low', 'mid')) ~ x",
            "ordinal",
            &["ordered() takes a column", "levels = c("],
        ),
        ("grade ~ 0 + x", "ordinal", &["cutpoints in the place of an intercept", "`0 +`"]),
        ("t ~ x", "beta", &["the mean of t is", "I(t/100)"]),
        ("word ~ x", "logistic", &["has 3 classes", "cumulative-logit"]),
        ("cbind(k) ~ x", "logistic", &["cbind() takes the column of successes"]),
        ("cbind(k, f, n) ~ x", "logistic", &["more than two classes are no family"]),
        ("k/trials() ~ x", "logistic", &["trials() takes one argument"]),
        ("trials(n) ~ x", "logistic", &["successes/trials(n)"]),
        ("Surv(t) ~ x", "weibull", &["whether it ended in an event", "write the time alone"]),
        ("Surv(t, t2, e) ~ x", "weibull", &["rows that enter late is not supported"]),
        ("Surv(t, e, type = 'mstate') ~ x", "weibull", &["Surv() is written Surv(time, event)"]),
        ("Surv(t, e, robust = 1) ~ x", "weibull", &["no argument `robust` here"]),
        ("k ~ Surv(t, e)", "poisson", &["can only be the outcome, left of ~"]),
        ("k ~ cbind(t, e)", "poisson", &["can only be the outcome"]),
        ("k ~ x", "multinom", &["there is no `multinom`; write \"multinomial\""]),
        ("k ~ x", "cox", &["\"exponential\", \"weibull\" and \"log-normal\""]),
        ("k ~ x", "Counts", &["there is no `Counts`; write \"poisson\""]),
        ("k ~ x", "student_t", &["write \"student-t\""]),
        ("k ~ x", "wiebull", &["did you mean `weibull`?"]),
        ("k ~ x", "binomail", &["did you mean `binomial`, which is \"logistic\"?"]),
    ] {
        let message = fault(&data(""), formula, family, 2);
        for part in parts {
            assert!(message.contains(part), "{formula}, {family}: `{message}` lacks `{part}`");
        }
    }
}

/// Too many successes are said with their row, and not taken for a lack of failures.
#[test]
fn successes_are_counted_row_by_row() {
    let rows = |pairs: &[(i32, i32)]| {
        let lines = (0..).zip(pairs).map(|(i, (k, n))| format!("{k},{n},{}\n", i * 7 % 5));
        format!("k,n,x\n{}", lines.collect::<String>())
    };
    let many = rows(&[(3, 5), (5, 5), (7, 5), (2, 5), (6, 5), (9, 5)]);
    // The shares of all rows together are 1 here.
    let even = rows(&[(3, 7), (5, 5), (7, 3)]);
    for (data, formula, parts) in [
        (&many, "k/trials(5) ~ x", ["line 4", "7 successes in 5 trials"]),
        (&even, "k/trials(n) ~ x", ["line 4", "7 successes in 3 trials"]),
        (&rows(&[(4, 4), (2, 2)]), "k/trials(n) ~ x", ["has successes alone", "6 of them"]),
        (&rows(&[(0, 4), (0, 2)]), "cbind(k, n) ~ x", ["has failures alone", "6 of them"]),
        (
            &rows(&[(1, 4), (2, 4), (3, 4)]),
            "k/n ~ x",
            ["line 2", "write counts out of trials as k/trials(n)"],
        ),
        (&rows(&[(1, 4), (2, 4), (3, 4)]), "I(x/10) ~ k", ["as x/trials(10)", "line 3"]),
        // More successes than trials are counts out of trials nevertheless.
        (&many, "k/n ~ x", ["line 2", "write counts out of trials as k/trials(n)"]),
        // Where success begins is not made up.
        (&many, "k ~ x", ["write k/trials(n) ~", "as in I(k > limit) ~"]),
        (&many, "I(k - 2.5) ~ x", ["mend the value, or write", "as in I(k - 2.5 > limit) ~"]),
    ] {
        let message = fault(data, formula, "logistic", 1);
        assert!(parts.iter().all(|part| message.contains(part)), "{formula}: {message}");
    }
    let message = fault(&data(""), "share ~ x", "binomial", 1);
    let parts = ["successes/trials(n) ~", "take family = \"beta\""];
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
}

#[test]
fn priors_of_other_families_are_refused() {
    for (family, key, advice) in [
        ("gamma", "log_sd", "its own parameter is `log_shape`"),
        ("student-t", "log_shape", "its own parameters are `log_sd` and `log_df`"),
        ("exponential", "log_shape", "leave it out"),
    ] {
        let text = format!(
            "[data]\npath = \"d.csv\"\n[[model]]\nformula = \"t ~ x\"\nfamily = {family:?}\n[model.prior]\n{key} = \"normal(0, 1)\"\n"
        );
        let error = StudyFile::parse(&text, Path::new("s.toml"))
            .and_then(|file| file.check().map(|()| file))
            .map(|_| ())
            .unwrap_err()
            .to_string();
        assert!(error.contains(&format!("a {family} model has no {key}; {advice}")), "{error}");
    }
}

/// A prior that needs a gaussian or such is not said to need an intercept, which cutpoints cannot have beside them.
#[test]
fn ordinal_models_have_no_g_priors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    std::fs::write(&path, data("")).unwrap();
    let mut study = StudyCase::new(path.to_str().unwrap(), 1);
    study.default = "coefficients = \"jzs(medium)\"".into();
    study.model("grade ~ x", "ordinal");
    let study = StudyFile::parse(&study.text(), Path::new("s.toml")).unwrap();
    let error = Plan::new(study, 1, &Silent).unwrap_err().to_string();
    let right = "is for gaussian, logistic, probit and poisson models, not for cumulative-logit";
    assert!(error.contains(right) && !error.contains("intercept"), "{error}");
}

/// Synonyms are read as the family's own name, which is what is written.
#[test]
fn families_go_by_other_names() {
    for (name, family) in Family::synonyms() {
        let read: Family = serde_json::from_str(&format!("{name:?}")).unwrap();
        assert_eq!(read, *family, "{name}");
    }
    for family in Family::ALL {
        let written = serde_json::to_string(&family).unwrap();
        assert_eq!(written, format!("{:?}", family.name()));
        assert_eq!(serde_json::from_str::<Family>(&written).unwrap(), family);
    }
}

/// What is written is what is read, and the parts are where they belong.
#[test]
fn left_sides_are_written_as_they_are_read() {
    for text in [
        "cbind(k, f)",
        "k/trials(n)",
        "k/trials(10)",
        "Surv(t, e)",
        "Surv(t, status == 2)",
        "Surv(t, e, type = \"left\")",
        "Surv(t, t2, type = \"interval2\")",
        "Surv(t, t2, e, type = \"interval\")",
        "ordered(g)",
        "ordered(g, levels = c(\"a b\", \"c\"))",
    ] {
        let formula = Formula::parse(&format!("{text} ~ x")).unwrap();
        assert_eq!(formula.response().to_string(), text);
        assert_eq!(Expr::parse(text).unwrap(), *formula.response());
    }
    let same = |a: &str, b: &str| {
        assert_eq!(
            Formula::parse(a).unwrap().response(),
            Formula::parse(b).unwrap().response(),
            "{a}, {b}"
        );
    };
    same("k | trials(n) ~ x", "k / trials(n) ~ x");
    same("Surv(time = t, event = e) ~ x", "Surv(t, e, type = 'right') ~ x");
    // Columns so called are still columns.
    assert_eq!(Formula::parse("Surv ~ cbind").unwrap().response_columns(), ["Surv"]);
}
