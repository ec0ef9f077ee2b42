//! Outcomes of every kind of family: the same one in several spellings, rows that lack something, choices of terms.

use super::family_words::{data, fault};
use crate::common::{Case as StudyCase, run};
use consilience::engine::Silent;
use consilience::plan::{Plan, Room};
use consilience::study::StudyFile;
use std::path::Path;

/// Ways to write the same outcome have the same evidence.
#[test]
fn the_same_outcome_has_the_same_evidence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    // One row per trial beside one row per count; an ordinary time beside an event of it.
    let mut counts = "k,n,f,x,t,one,g,w\n".to_string();
    let mut trials = "y,x\n".to_string();
    for i in 0..30_usize {
        let (n, x) = (i % 4 + 1, (i as f64 * 0.9).sin());
        let k = (i * 7 + 3) % (n + 1);
        let word = ["low", "mid", "high"][(i * 5) % 3];
        counts +=
            &format!("{k},{n},{},{x:.3},{},1,{},{word}\n", n - k, 0.5 + i as f64, (i * 5) % 3);
        (0..n).for_each(|j| trials += &format!("{},{x:.3}\n", u8::from(j < k)));
    }
    let evidence = |text: &str, formula: &str, family: &str, shards: usize| {
        std::fs::write(&path, text).unwrap();
        let mut study = StudyCase::new(path.to_str().unwrap(), shards);
        // Of one name, so that they have the same random numbers.
        study.models =
            format!("[[model]]\nname = \"m\"\nformula = {formula:?}\nfamily = {family:?}\n");
        let result = run(&study.text());
        assert!(result.is_reliable(), "{formula}: {:?}", result.models[0].warnings);
        result.models[0].log_evidence.value
    };
    let (by_trials, by_failures) = (
        evidence(&counts, "k/trials(n) ~ x", "logistic", 1),
        evidence(&counts, "cbind(k, f) ~ x", "binomial", 1),
    );
    assert_eq!(by_trials, by_failures);
    let ways: f64 = (0..30_usize)
        .map(|i| {
            let n = i % 4 + 1;
            let k = (i * 7 + 3) % (n + 1);
            libm::lgamma(n as f64 + 1.0)
                - libm::lgamma(k as f64 + 1.0)
                - libm::lgamma((n - k) as f64 + 1.0)
        })
        .sum();
    let one_by_one = evidence(&trials, "y ~ x", "bernoulli", 1);
    assert!((by_trials - ways - one_by_one).abs() < 0.01, "{by_trials}, {ways}, {one_by_one}");
    for family in ["weibull", "exponential", "log-normal"] {
        let alone = evidence(&counts, "t ~ x", family, 1);
        assert_eq!(evidence(&counts, "Surv(t, one) ~ x", family, 1), alone, "{family}");
    }
    let words = "ordered(w, levels = c('low', 'mid', 'high')) ~ x";
    let numbers = evidence(&counts, "g ~ x", "ordinal", 1);
    assert_eq!(evidence(&counts, words, "polr", 1), numbers);
}

/// As in R, a bound that is missing is none, and rows are not dropped for it.
#[test]
fn times_may_lack_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    // What is known of a time: between two, exceeded, not reached, known, and nothing at all.
    let mut text = "a,b,zero,t,t2,dull,e,half,x\n".to_string();
    for i in 0..40 {
        let (low, x) = (1.0 + (i * 7 % 11) as f64, (i as f64 * 0.9).sin());
        let high = low + 2.0;
        text += &match i % 5 {
            0 => format!("{low},{high},{low},{low},{high},{high},3,1,{x:.3}\n"),
            1 => format!("{low},NA,{low},{low},,9,0,1,{x:.3}\n"),
            2 => format!(",{high},0,{high},,9,2,1,{x:.3}\n"),
            3 => format!("{low},{low},{low},{low},NA,9,1,1,{x:.3}\n"),
            _ => format!("NA,,NA,,5,9,1,1,{x:.3}\n"),
        };
    }
    let evidence = |text: &str, formula: &str, data: &str| {
        std::fs::write(&path, text).unwrap();
        let mut study = StudyCase::new(path.to_str().unwrap(), 2);
        study.models =
            format!("[[model]]\nname = \"m\"\nformula = {formula:?}\nfamily = \"weibull\"\n");
        let study = study.text().replace("[data]\n", &format!("[data]\n{data}"));
        let result = run(&study);
        assert!(result.is_reliable(), "{formula}: {:?}", result.models[0].warnings);
        let dropped: Vec<_> = result.warnings.iter().filter(|w| w.code == "rows-dropped").collect();
        assert_eq!(dropped[0].value, Some(8.0), "{formula}: {dropped:?}");
        result.models[0].log_evidence.value
    };
    let of_interval2 = evidence(&text, "Surv(a, b, type = 'interval2') ~ x", "");
    for formula in [
        "Surv(zero, b, type = 'interval2') ~ x",
        // The second time counts only where the event is 3.
        "Surv(t, t2, e, type = 'interval') ~ x",
        "Surv(t, dull, e, type = 'interval') ~ x",
        "Surv(event = e, time = t, time2 = dull, type = 'interval') ~ x",
    ] {
        assert_eq!(evidence(&text, formula, ""), of_interval2, "{formula}");
    }
    // A row without its first time is left out, also where that is the second time too, and so is one that is above 0 and
    // has no other bound.
    evidence(&text, "Surv(t, t, e, type = 'interval') ~ x", "");
    let above = text.replace("NA,,NA,", "0,NA,0,");
    assert_eq!(evidence(&above, "Surv(a, b, type = 'interval2') ~ x", ""), of_interval2);
    // Infinite bounds have to be named, and are then the same.
    let infinite = text.replace(",NA,", ",Inf,").replace("\n,", "\n-Inf,");
    let formula = "Surv(a, b, type = 'interval2') ~ x";
    assert_eq!(evidence(&infinite, formula, "na = [\"Inf\", \"-Inf\"]\n"), of_interval2);
    let error = fault(&infinite, formula, "weibull", 2);
    let advice = "if it is missing, or if it says that there is no bound";
    assert!(error.contains("`Inf` is not") && error.contains(advice), "{error}");
    // Of what is computed nothing is known, so that rows would be lost without a word.
    for formula in [
        "Surv(a/12, b/12, type = 'interval2') ~ x",
        "Surv(t, t2, I(e + 0 * half), type = 'interval') ~ x",
    ] {
        let error = fault(&text, formula, "weibull", 2);
        let parts = ["d.csv, line", "a bound of the time is missing", "type = \"interval\""];
        assert!(parts.iter().all(|part| error.contains(part)), "{formula}: {error}");
    }
}

/// However times within bounds are spelled, the intercept's default prior is around the log of what is typical of them.
#[test]
fn the_level_of_times_is_not_that_of_their_lower_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    let plan = |text: &str, formula: &str| {
        std::fs::write(&path, text).unwrap();
        let mut study = StudyCase::new(path.to_str().unwrap(), 2);
        study.default = String::new();
        study.models =
            format!("[[model]]\nname = \"m\"\nformula = {formula:?}\nfamily = \"weibull\"\n");
        Plan::new(StudyFile::parse(&study.text(), Path::new("s.toml")).unwrap(), 1, &Silent)
            .unwrap()
    };
    let found = |text: &str, formula: &str| {
        let plan = plan(text, formula);
        let centre = plan.settings[0].model.parameters[0].prior.centre();
        (centre, plan.run(&Silent).unwrap().models[0].log_evidence.value)
    };
    // Between two, exceeded, not reached, known; and then none with a lower bound.
    let mut text = "a,b,zero,t,t2,e,x\n".to_string();
    let mut left = "a,b,zero,t,t2,e,x\n".to_string();
    let (mut sum, mut sum_left) = (0.0, 0.0);
    for i in 0..40 {
        let (low, x) = (100.0 + (i * 7 % 11) as f64, ((i as f64 * 0.9).sin() * 8.0).round() / 8.0);
        let high = low + 2.0;
        text += &match i % 4 {
            0 => format!("{low},{high},{low},{low},{high},3,{x}\n"),
            1 => format!("{low},NA,{low},{low},NA,0,{x}\n"),
            2 => format!("NA,{high},0,{high},NA,2,{x}\n"),
            _ => format!("{low},{low},{low},{low},NA,1,{x}\n"),
        };
        sum += [low + 1.0, low, high, low][i % 4];
        left += &format!("NA,{high},0,{high},NA,{},{x}\n", if i == 0 { 2 } else { 0 });
        sum_left += high;
    }
    let of_rows = found(&text, "Surv(t, t2, e, type = 'interval') ~ scale(x)");
    assert!((of_rows.0 - (sum / 40.0).ln()).abs() < 1e-12, "{of_rows:?}");
    for lower in ["a", "zero"] {
        let formula = format!("Surv({lower}, b, type = 'interval2') ~ scale(x)");
        assert_eq!(found(&text, &formula), of_rows, "{formula}");
    }
    // An event that is one number lets no second time be missing.
    assert_eq!(plan(&text, "Surv(t, t2, 2, type = 'interval') ~ scale(x)").partition.dropped, 30);
    let of_left = found(&left, "Surv(t, e == 7, type = 'left') ~ scale(x)");
    assert!((of_left.0 - (sum_left / 40.0).ln()).abs() < 1e-12, "{of_left:?}");
    assert_eq!(found(&left, "Surv(a, b, type = 'interval2') ~ scale(x)"), of_left);
}

/// Every trial is an observation, and no row: what is said of rows is of rows.
#[test]
fn trials_are_no_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    let mut text = "k,n,g\n".to_string();
    (0..60).for_each(|i| text += &format!("{},50000,g{}\n", 20000 + 37 * i, i % 40));
    std::fs::write(&path, text).unwrap();
    let mut study = StudyCase::new(path.to_str().unwrap(), 2);
    study.model("k/trials(n) ~ g", "logistic");
    let study = StudyFile::parse(&study.text(), Path::new("s.toml")).unwrap();
    let plan = Plan::new(study, 1, &Silent).unwrap();
    let surveys = &plan.settings[0].surveys;
    let rows: f64 = surveys.iter().map(|survey| survey.rows).sum();
    let observations: f64 = surveys.iter().map(|survey| survey.observations).sum();
    assert_eq!((rows, observations), (60.0, 3e6));
    let many: Vec<_> = plan.warnings.iter().filter(|w| w.code == "many-levels").collect();
    assert_eq!(many.len(), 1);
    assert!(many[0].message.contains("40 levels in 60 rows"), "{}", many[0].message);
}

/// A shard that lacks a class, or all events, is as good as any.
#[test]
fn a_shard_may_lack_a_class_or_all_events() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    let mut text = "site,g,t,e,x\n".to_string();
    for i in 0..60 {
        let (site, x) = (["a", "b", "c"][i / 20], (i as f64 * 0.9).sin());
        // The last site has neither the highest class nor any event.
        let (grade, event) = if i < 40 { (i % 4, i % 2) } else { (i % 3, 0) };
        text += &format!("{site},{grade},{},{event},{x:.3}\n", 0.5 + (i * 7 % 11) as f64);
    }
    std::fs::write(&path, &text).unwrap();
    for (formula, family) in [
        ("g ~ x", "cumulative-logit"),
        ("g ~ x", "cumulative-probit"),
        ("Surv(t, e) ~ x", "weibull"),
    ] {
        let evidence = |split: &str| {
            let mut study = StudyCase::new(path.to_str().unwrap(), 1);
            study.split = split.into();
            study.model(formula, family);
            let result = run(&study.text());
            assert!(result.is_reliable(), "{formula}: {:?}", result.models[0].warnings);
            let found = result.models[0].log_evidence;
            (found.value, found.se.unwrap())
        };
        let (one, three) = (evidence("shards = 1"), evidence("by = \"column:site\""));
        let z = (one.0 - three.0) / one.1.hypot(three.1);
        assert!(z.abs() < 4.0, "{formula}, {family}: {one:?}, {three:?}");
    }
}

/// Two ways to the same number: importance sampling over the shards' sums, and a shard's own chains with a bridge.
#[test]
fn evidences_agree_with_long_runs_of_chains() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    std::fs::write(&path, data("")).unwrap();
    for (formula, family) in [
        ("share ~ x", "student-t"),
        ("share ~ x", "beta"),
        ("t ~ x", "gamma"),
        ("Surv(t, e) ~ x", "weibull"),
        ("Surv(t, t2, type = 'interval2') ~ x", "log-normal"),
        ("grade ~ x", "cumulative-logit"),
        ("k ~ x", "zero-inflated-poisson"),
    ] {
        let evidence = |options: &str| {
            let mut study = StudyCase::new(path.to_str().unwrap(), 1);
            study.evidence = options.into();
            study.model(formula, family);
            let found = run(&study.text()).models[0].log_evidence;
            (found.value, found.se.unwrap())
        };
        let exact = evidence("draws = 4000");
        let chains = evidence("combine = \"normal\"\nlocal = \"nuts+warp3\"\ndraws = 1000");
        let z = (exact.0 - chains.0) / exact.1.hypot(chains.1);
        assert!(z.abs() < 4.0, "{formula}, {family}: {exact:?}, {chains:?}");
    }
}

/// 60 rows with a time, an event, classes in order and three columns, of which the first two matter.
fn choices() -> String {
    let mut text = "t,e,g,a,b,c\n".to_string();
    for i in 0..60 {
        let at = |k: f64| (k * (i as f64 + 1.0)).sin();
        let (a, b, c) = (at(1.3), at(2.9), at(4.1));
        let level = 0.9 * a - 0.5 * b + at(7.7);
        let grade = (level + 1.5).clamp(0.0, 3.0).floor();
        text +=
            &format!("{:.4},{},{grade},{a:.3},{b:.3},{c:.3}\n", level.exp(), u8::from(i % 4 > 0));
    }
    text
}

/// All models of a space at once have the probabilities that they have one by one.
#[test]
fn choosing_terms_works_with_every_kind_of_outcome() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    std::fs::write(&path, choices()).unwrap();
    for (outcome, family) in
        [("Surv(t, e)", "weibull"), ("g", "ordinal"), ("t", "gamma"), ("t", "student-t")]
    {
        let selection = |method: &str| {
            let text = format!(
                "[data]\npath = {path:?}\n[split]\nshards = 2\n[select]\noutcome = {outcome:?}\nfamily = {family:?}\ncandidates = \"a + b + c\"\nmethod = {method:?}\n"
            );
            let study = StudyFile::parse(&text, Path::new("s.toml")).unwrap();
            Plan::new(study, 2, &Silent).unwrap().select(&Silent)
        };
        let inclusion = |method: &str| -> Vec<f64> {
            let found = selection(method).unwrap();
            assert!(found.is_reliable(), "{outcome}, {family}: {:?}", found.warnings);
            found.inclusion.iter().map(|term| term.probability).collect()
        };
        if family == "student-t" {
            // It may have several peaks, of which a search knows one.
            assert_eq!(inclusion("auto"), inclusion("enumerate"));
            let error = selection("search").map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("can have several; write method = \"enumerate\""), "{error}");
            continue;
        }
        let (each, at_once) = (inclusion("enumerate"), inclusion("search"));
        for (a, b) in each.iter().zip(&at_once) {
            assert!((a - b).abs() < 0.03, "{outcome}, {family}: {each:?}, {at_once:?}");
        }
    }
}

/// A study that states its columns asks about none of them, and has the same evidence.
#[test]
fn what_is_written_of_outcomes_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    std::fs::write(&path, choices()).unwrap();
    for (formula, family) in [
        ("Surv(t, e) ~ a", "weibull"),
        ("g ~ a", "ordinal"),
        ("ordered(g, levels = c('0', '1', '2', '3')) ~ a", "ordinal"),
        ("e/trials(1) ~ a", "logistic"),
    ] {
        let mut study = StudyCase::new(path.to_str().unwrap(), 2);
        study.model(formula, family);
        let read = |text: &str| StudyFile::parse(text, Path::new("s.toml")).unwrap();
        let book = Plan::codebook(read(&study.text()), 1, &Room::default(), &Silent).unwrap();
        let stated = format!("{}\n{}", study.text(), book.to_toml());
        let (asked, told) = (run(&study.text()), run(&stated));
        let (asked, told) = (asked.models[0].log_evidence, told.models[0].log_evidence);
        assert!(
            (asked.value - told.value).abs() < 1e-6,
            "{formula}: {asked:?}, {told:?}\n{stated}"
        );
    }
}

/// What is for logistic and probit models alone says so.
#[test]
fn gibbs_and_augmented_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    std::fs::write(&path, choices()).unwrap();
    let attempt = |evidence: &str| {
        let mut study = StudyCase::new(path.to_str().unwrap(), 1);
        study.evidence = evidence.into();
        study.model("Surv(t, e) ~ a", "weibull");
        let study = StudyFile::parse(&study.text(), Path::new("s.toml"));
        let run = study.and_then(|s| Plan::new(s, 1, &Silent)).and_then(|plan| plan.run(&Silent));
        run.map(|_| ()).unwrap_err().to_string()
    };
    let error = attempt("combine = \"augmented\"");
    assert!(
        error.contains("is for logistic and probit models") && error.contains("weibull"),
        "{error}"
    );
    let error = attempt("combine = \"normal\"\nlocal = \"gibbs+chib\"");
    assert!(error.contains("Gibbs sampling is for") && error.contains("weibull"), "{error}");
}
