//! Choosing among all subsets of terms: against all models known, by laws, and where it is hard.

mod common;

use common::root;
use consilience::engine::Silent;
use consilience::estimate::Estimate;
use consilience::plan::Plan;
use consilience::select::Selection;
use consilience::study::StudyFile;
use std::path::Path;

/// A study with `[select]`: data in this folder or absolute, shards, and the rest of it.
fn study(data: &str, shards: usize, rest: &str) -> StudyFile {
    let path = [root().join("data").join(data), folder().join(data)];
    let path = path.into_iter().find(|p| p.is_file()).unwrap_or_else(|| Path::new(data).into());
    let prior = if rest.contains("[prior]") { "" } else { "[prior]\ndefault = \"normal(0, 1)\"" };
    let text = format!("[data]\npath = {path:?}\n[split]\nshards = {shards}\n{prior}\n{rest}");
    StudyFile::parse(&text, Path::new("select.toml")).unwrap()
}

fn folder() -> std::path::PathBuf {
    root().join("crates/consilience/tests/data/select")
}

fn plan(data: &str, shards: usize, rest: &str) -> Plan {
    Plan::new(study(data, shards, rest), 2, &Silent).unwrap()
}

fn select(data: &str, shards: usize, rest: &str) -> Selection {
    plan(data, shards, rest).select(&Silent).unwrap()
}

fn truth(name: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(folder().join(name).with_extension("json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn numbers(value: &serde_json::Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn inclusion(selection: &Selection) -> Vec<f64> {
    selection.inclusion.iter().map(|i| i.probability).collect()
}

fn total(selection: &Selection) -> Estimate {
    selection.log_normaliser.unwrap()
}

fn rms(values: &[f64]) -> f64 {
    (values.iter().map(|z| z * z).sum::<f64>() / values.len() as f64).sqrt()
}

/// Root mean square and largest of z over terms that are in doubt.
fn z_scores(selection: &Selection, truth: &[f64], errors: &[f64]) -> Vec<f64> {
    let doubt = |p: f64| p > 1e-3 && p < 1.0 - 1e-3;
    let each = selection.inclusion.iter().zip(truth).zip(errors);
    each.filter(|((_, p), _)| doubt(**p))
        .map(|((found, p), e)| (found.probability - p) / found.se.unwrap().hypot(*e))
        .collect()
}

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

/// The truth of a small space by evidences one by one, with many draws.
fn one_by_one(data: &str, rest: &str) -> Selection {
    let text =
        format!("{rest}\nmethod = \"enumerate\"\n[evidence]\ndraws = 40000\nse_target = 0.002");
    select(data, 1, &text)
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

/// A CSV file of these columns in a folder that lasts as long as the test.
fn file(folder: &tempfile::TempDir, name: &str, header: &str, rows: &[String]) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, format!("{header}\n{}\n", rows.join("\n"))).unwrap();
    path.to_str().unwrap().to_string()
}

/// Rows of x1, x2, x3, a factor g and an outcome that x1 and g move.
fn rows(count: u64) -> Vec<[f64; 5]> {
    let mut state = 1_u64;
    let mut even = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let row = |_| {
        let x = [even(), even(), even()].map(|u| 4.0 * u - 2.0);
        let g = (3.0 * even()).floor();
        let eta = 0.5 * x[0] + 0.2 * x[1] + if g == 2.0 { 0.7 } else { 0.0 } - 0.3;
        let y = f64::from(u8::from(even() < 1.0 / (1.0 + (-eta).exp())));
        [y, x[0], x[1], x[2], g]
    };
    (0..count).map(row).collect()
}

fn lines(rows: &[[f64; 5]]) -> Vec<String> {
    let level = |g: f64| ["a", "b", "c"][g as usize];
    rows.iter().map(|r| format!("{},{},{},{},{}", r[0], r[1], r[2], r[3], level(r[4]))).collect()
}

const HEADER: &str = "y,x1,x2,x3,g";

fn logistic(candidates: &str, more: &str) -> String {
    format!(
        "[select]\noutcome = \"y\"\nfamily = \"logistic\"\ncandidates = \"{candidates}\"\n{more}"
    )
}

#[test]
fn a_factor_comes_and_goes_whole_and_orphans_are_never_listed() {
    let folder = tempfile::tempdir().unwrap();
    let data = file(&folder, "d.csv", HEADER, &lines(&rows(300)));
    let terms = "x1 * x2 * x3 + g + g:x1";
    for (heredity, models) in [("strong", 0), ("weak", 0), ("none", 512)] {
        let more = format!("heredity = \"{heredity}\"\ntop = 600");
        let searched = logistic(terms, &format!("{more}\nmethod = \"search\""));
        let found = select(&data, 2, &searched);
        let exact = select(&data, 1, &logistic(terms, &format!("{more}\nmethod = \"enumerate\"")));
        assert!(models == 0 || found.space == f64::from(models));
        let has = |terms: &[String], term: &str| terms.iter().any(|t| t == term);
        for model in &found.models {
            for term in &model.terms {
                let parts: Vec<&str> = term.split(':').collect();
                let known = parts.iter().filter(|p| has(&model.terms, p)).count();
                match heredity {
                    "strong" => assert_eq!(known, parts.len(), "{:?}", model.terms),
                    "weak" => assert!(known > 0, "{:?}", model.terms),
                    _ => {}
                }
            }
        }
        // One entry for all dummies of the factor, and as many coefficients as it has.
        assert_eq!(found.inclusion.iter().filter(|i| i.term == "g").count(), 1);
        let dummies = found.coefficients.iter().filter(|c| c.term.as_deref() == Some("g"));
        assert_eq!(dummies.count(), 2);
        let errors: Vec<f64> = exact.inclusion.iter().map(|i| i.se.unwrap()).collect();
        for z in z_scores(&found, &inclusion(&exact), &errors) {
            assert!(z.abs() < 4.0, "{heredity}: {z}");
        }
        let before: f64 = found.inclusion.iter().map(|i| i.prior.unwrap()).sum();
        assert!(before > 0.0 && before < found.inclusion.len() as f64);
    }
}

#[test]
fn splits_labels_and_weights_do_what_they_must() {
    let folder = tempfile::tempdir().unwrap();
    let all = rows(400);
    let data = file(&folder, "d.csv", HEADER, &lines(&all));
    let rest = logistic("x1 + x2 + x3 + g", "method = \"search\"");
    let whole = select(&data, 1, &rest);
    // The same draws, the same sums but for rounding.
    for shards in [2, 10, 50] {
        let split = select(&data, shards, &rest);
        for (a, b) in inclusion(&whole).iter().zip(inclusion(&split)) {
            assert!((a - b).abs() < 1e-9, "{shards}: {a} {b}");
        }
        assert!((total(&whole).value - total(&split).value).abs() < 1e-8);
    }
    // Other names and another order: other draws, the same answer.
    let other = select(&data, 1, &logistic("g + x3 + x2 + x1", "method = \"search\""));
    for term in &whole.inclusion {
        let same = other.inclusion.iter().find(|i| i.term == term.term).unwrap();
        let se = term.se.unwrap().hypot(same.se.unwrap());
        assert!((term.probability - same.probability).abs() < 4.0 * se + 1e-9);
    }
    // Every row twice is every row with weight 2.
    let twice: Vec<String> = lines(&all).into_iter().flat_map(|l| [l.clone(), l]).collect();
    let twice = file(&folder, "twice.csv", HEADER, &twice);
    let weighted: Vec<String> = lines(&all).into_iter().map(|l| format!("{l},2")).collect();
    let weighted = file(&folder, "weighted.csv", &format!("{HEADER},w"), &weighted);
    let weights = format!(
        "[data]\npath = {weighted:?}\nweights = \"w\"\n[prior]\ndefault = \"normal(0, 1)\"\n{rest}"
    );
    let weights = StudyFile::parse(&weights, Path::new("select.toml")).unwrap();
    let weights = Plan::new(weights, 1, &Silent).unwrap().select(&Silent).unwrap();
    for (a, b) in inclusion(&select(&twice, 1, &rest)).iter().zip(inclusion(&weights)) {
        assert!((a - b).abs() < 1e-8, "{a} {b}");
    }
}

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
        ("I(2 * y - 1 + x1 / 100) + x2", 60),
    ] {
        let part = file(&folder, "part.csv", HEADER, &lines(&all[..count]));
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

#[test]
fn other_engines_give_the_bits_of_threads_and_pick_up_where_they_were_left() {
    use consilience::run::{Run, Stop};
    let rest = logistic("x1 + x2 + x3 + g", "method = \"search\"");
    let folder = tempfile::tempdir().unwrap();
    let data = file(&folder, "d.csv", HEADER, &lines(&rows(300)));
    let bits =
        |s: &Selection| serde_json::to_string(&Selection { seconds: None, ..s.clone() }).unwrap();
    for rest in [
        rest.clone(),
        rest.replace("search", "enumerate"),
        rest.replace("search", "reversible-jump") + "\n[evidence]\ndraws = 500\nwarmup = 200",
    ] {
        let known = select(&data, 3, &rest);
        let place = folder.path().join(format!("{}.run", known.method));
        let run = Run::split(study(&data, 3, &rest), &place).unwrap();
        let mut stops = 0;
        // The coordinator knows nothing but the folder.
        let found = loop {
            let run = Run::open(run.folder()).unwrap();
            match run.select(&[], &Stop, &Silent) {
                Ok(found) => break found,
                Err(consilience::Error::Waiting(_)) => stops += 1,
                Err(other) => panic!("{other}"),
            }
            let work = run.work_all(&[0, 1, 2], 1, false, &(), &Default::default());
            assert!(work.unwrap().answered > 0);
        };
        assert!(stops > 3 || known.method != "search");
        assert_eq!(bits(&found), bits(&known), "{}", known.method);
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
