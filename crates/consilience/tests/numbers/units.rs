//! Priors per standard deviation: what they come to, and that the units of the data do not matter.

use crate::common::{Case, run_study};
use consilience::compare::Comparison;
use consilience::engine::Silent;
use consilience::math::stream;
use consilience::model::Prior;
use consilience::plan::Plan;
use consilience::study::StudyFile;
use rand::RngExt;
use std::fmt::Write;
use std::path::Path;

/// The study of these models on this table, with the program's own priors and more of the study's.
fn study(folder: &Path, table: &str, prior: &str, models: &[(&str, &str)]) -> StudyFile {
    let path = folder.join("d.csv");
    std::fs::write(&path, table).unwrap();
    let mut case = Case::new(path.to_str().unwrap(), 3);
    case.default = String::new();
    case.prior = prior.into();
    for (formula, family) in models {
        case.model(formula, family);
    }
    StudyFile::parse(&case.text(), Path::new("study.toml")).unwrap()
}

/// The settled priors of a model, in the order of its parameters.
fn settled(study: StudyFile) -> Vec<Prior> {
    let plan = Plan::new(study, 2, &Silent).unwrap();
    plan.settings[0].model.parameters.iter().map(|p| p.prior).collect()
}

fn normal(mean: f64, sd: f64) -> Prior {
    Prior::Normal { mean, sd }
}

/// Whether two lists of priors are the same up to rounding.
fn close(found: &[Prior], expected: &[Prior], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}: {found:?}");
    for (a, b) in found.iter().zip(expected) {
        assert_eq!(std::mem::discriminant(a), std::mem::discriminant(b), "{what}: {a} {b}");
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs().max(1e-3);
        assert!(
            near(a.centre(), b.centre()) && near(a.spread(), b.spread()),
            "{what}: {a} not {b}"
        );
    }
}

/// Mean and standard deviation with n − 1 below, in the plainest way.
fn moments(values: &[f64]) -> (f64, f64) {
    crate::common::spread(values)
}

/// Penguins: flipper in `length` of a metre, mass in `mass` of a kilogram; their years.
fn penguins(length: f64, mass: f64) -> String {
    let mut rng = stream(342, 0, 0, "penguins");
    let mut text = "mass,flipper,bill,sex,species,year,eggs,tagged\n".to_string();
    for i in 0..342 {
        let mut noise = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let (species, male) = (i % 3, i % 2);
        let flipper = 0.190 + 0.014 * species as f64 + 0.007 * male as f64 + 0.006 * noise();
        let bill = 0.044 + 0.004 * noise();
        let kilograms = 4.2 + 30.0 * (flipper - 0.2) + 0.5 * male as f64 + 0.3 * noise();
        let rate = (0.3 + 40.0 * (bill - 0.044)).exp();
        let eggs = (rate + 1.6 * rate.sqrt() * noise()).round().max(0.0);
        let tagged = u8::from(80.0 * (flipper - 0.2) + noise() > 0.0);
        let sex = ["f", "m"][male];
        writeln!(
            text,
            "{},{},{},{sex},s{species},{},{eggs},{tagged}",
            kilograms * mass,
            flipper * length,
            bill * length,
            2007 + i / 114,
        )
        .unwrap();
    }
    text
}

fn log_factors(result: &Comparison) -> Vec<f64> {
    result.models.iter().map(|m| m.log_bayes_factor.value).collect()
}

/// Grams or kilograms, millimetres or metres: the same ranking, the same Bayes factors.
#[test]
fn units_do_not_matter() {
    let measured = [
        ("mass ~ 1", "gaussian"),
        ("mass ~ sex", "gaussian"),
        ("mass ~ flipper", "gaussian"),
        ("mass ~ flipper + sex", "gaussian"),
        ("mass ~ 0 + sex + sex:flipper", "gaussian"),
        ("mass ~ poly(flipper, 2) + sex", "gaussian"),
        ("mass ~ scale(flipper) + bill + species", "gaussian"),
        ("mass ~ flipper * bill + I(flipper^2)", "gaussian"),
    ];
    let counted = [
        ("eggs ~ 1", "poisson"),
        ("eggs ~ bill + sex", "poisson"),
        ("eggs ~ bill + offset(log(mass))", "negative-binomial"),
    ];
    let binary =
        [("tagged ~ 1", "logistic"), ("tagged ~ flipper", "logistic"), ("tagged ~ bill", "probit")];
    for (models, tolerance) in [(&measured[..], 1e-6), (&counted, 0.03), (&binary, 0.03)] {
        let folder = tempfile::tempdir().unwrap();
        let result = |length, mass| {
            let study = study(folder.path(), &penguins(length, mass), "", models);
            run_study(study, 2)
        };
        let (si, other) = (result(1.0, 1.0), result(1000.0, 1000.0));
        assert_eq!(si.best.name, other.best.name);
        for (m, (a, b)) in log_factors(&si).iter().zip(log_factors(&other)).enumerate() {
            assert!((a - b).abs() < tolerance, "{}: {a} is not {b}", models[m].0);
        }
        // A density has units itself.
        let shift = if models[0].1 == "gaussian" { 342.0 * 1000_f64.ln() } else { 0.0 };
        let apart = si.models[0].log_evidence.value - other.models[0].log_evidence.value;
        assert!((apart - shift).abs() < tolerance, "{apart}");
        for result in [&si, &other] {
            let conflict = result.all_warnings().find(|(_, w)| w.code == "prior-conflict");
            assert!(conflict.is_none(), "{conflict:?}");
        }
    }
}

/// The same curve in two bases: their priors differ, but by little.
#[test]
fn polynomials_are_worth_what_powers_are() {
    let folder = tempfile::tempdir().unwrap();
    let models = [
        ("mass ~ poly(flipper, 2) + sex", "gaussian"),
        ("mass ~ scale(flipper) + I(scale(flipper)^2) + sex", "gaussian"),
    ];
    for prior in ["", "default = \"normal(0, 1)\""] {
        let result = run_study(study(folder.path(), &penguins(1.0, 1.0), prior, &models), 2);
        let apart = log_factors(&result).iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        assert!(apart < 2.0, "{apart}");
    }
}

/// What every role's prior comes to, against plain sums.
#[test]
fn priors_come_to_what_the_documentation_says() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<[f64; 6]> = (0..40)
        .map(|i| {
            let i = f64::from(i);
            [
                100.0 + (i * 7.0) % 13.0,
                (i * 5.0) % 11.0,
                1e9 + (i * 3.0) % 7.0,
                4.0,
                (i * 11.0) % 3.0,
                1.0 + i % 4.0,
            ]
        })
        .collect();
    let mut table = "y,x,far,same,g,days,word\n".to_string();
    for row in &rows {
        let [y, x, far, same, g, days] = row;
        writeln!(table, "{y},{x},{far},{same},{g},{days},{}", ["a", "b", "c"][*g as usize])
            .unwrap();
    }
    let column = |f: &dyn Fn(&[f64; 6]) -> f64| moments(&rows.iter().map(f).collect::<Vec<f64>>());
    let (y, sd_y) = column(&|r| r[0]);
    let (x, sd_x) = column(&|r| r[1]);
    // Around a number near by: the plain way would lose nine digits.
    let (_, sd_far) = column(&|r| r[2] - 1e9);
    let priors = |prior: &str, formula: &str, family: &str| {
        settled(study(folder.path(), &table, prior, &[(formula, family)]))
    };

    // Centred columns: the intercept is at the outcome's mean.
    let found = priors("", "y ~ scale(x) + factor(g)", "gaussian");
    let dummy = normal(0.0, 2.5 * sd_y);
    let level = normal(y, 2.5 * sd_y);
    close(&found, &[level, dummy, dummy, dummy, normal(sd_y.ln(), 1.0)], "gaussian");
    // Others: 0 is x standard deviations of x away from where the data are.
    let slope = 2.5 * sd_y / sd_x;
    let found = priors("", "y ~ x + word:x", "gaussian");
    let part = |level: f64| column(&|r| if r[4] == level { r[1] } else { 0.0 });
    let slopes: Vec<(f64, f64)> = [1.0, 2.0].map(part).map(|(m, sd)| (m, 2.5 * sd_y / sd)).into();
    let reach = slopes.iter().chain([&(x, slope)]).map(|(m, s)| (m * s).powi(2)).sum::<f64>();
    let at_zero = ((2.5 * sd_y).powi(2) + reach).sqrt();
    let mut expected = vec![normal(y, at_zero), normal(0.0, slope)];
    expected.extend(slopes.iter().map(|(_, s)| normal(0.0, *s)));
    expected.push(normal(sd_y.ln(), 1.0));
    close(&found, &expected, "not centred");
    // Far from 0 no more digits are lost than a mean has no room for; what does not vary has unit 1.
    let found = priors("intercept = \"normal(0, 1)\"", "y ~ far + same", "gaussian");
    assert!((found[1].spread() / (2.5 * sd_y / sd_far) - 1.0).abs() < 1e-8, "{}", found[1]);
    close(&found[2..3], &[dummy], "the same everywhere");
    assert_eq!(found[0], normal(0.0, 1.0));
    // Without an intercept the dummies of the first factor stand for it.
    let found = priors("", "y ~ 0 + word + factor(days)", "gaussian");
    close(&found[..3], &[level; 3], "dummies in its place");
    close(&found[3..6], &[dummy; 3], "dummies of the second factor");
    // Other centres and shapes, one held fixed: it moves the intercept as an offset does.
    let text = "intercept = \"cauchy(1, 2) per sd\"\nlog_sd = \"student_t(4, -1, 0.5) per sd\"\n[prior.parameters]\nx = \"laplace(0.5, 3) per sd\"\ndays = \"fixed(2)\"";
    let found = priors(text, "y ~ x + days + offset(log(same))", "gaussian");
    let laplace = Prior::Laplace { mean: 0.5 * sd_y / sd_x, scale: 3.0 * sd_y / sd_x };
    let origin = y + sd_y - x * laplace.centre() - 2.0 * column(&|r| r[5]).0 - 4_f64.ln();
    let scale = ((2.0 * sd_y).powi(2) + (x * laplace.spread()).powi(2)).sqrt();
    let expected = [
        Prior::StudentT { df: 1.0, mean: origin, scale },
        laplace,
        Prior::Fixed { value: 2.0 },
        Prior::StudentT { df: 4.0, mean: sd_y.ln() - 1.0, scale: 0.5 },
    ];
    close(&found, &expected, "by hand");
    // Counts: the logarithm of the mean, and of the mean rate where there is an exposure.
    let found = priors("", "y ~ scale(x) + word + offset(log(days))", "negative-binomial");
    let rate = y.ln() - column(&|r| r[5].ln()).0;
    let one = normal(0.0, 2.5);
    close(&found, &[normal(rate, 2.5), one, one, one, normal(0.0, 1.0)], "counts");
    let found = priors("", "I(y > 106) ~ I(x / 10) + word", "logistic");
    let slope = normal(0.0, 25.0 / sd_x);
    let level = normal(0.0, (2.5_f64.powi(2) + (x / 10.0 * slope.spread()).powi(2)).sqrt());
    close(&found, &[level, slope, one, one], "binary");
    // An outcome that does not vary has unit 1.
    let found = priors("", "same ~ scale(x)", "gaussian");
    close(&found, &[normal(4.0, 2.5), one, normal(0.0, 1.0)], "constant outcome");
    // The one line that takes everything as it is.
    let found = priors("default = \"normal(0, 1)\"", "y ~ x + word", "gaussian");
    assert_eq!(found, [normal(0.0, 1.0); 5]);
}

/// Weights count rows; how rows are split does not matter, nor do threads.
#[test]
fn weights_shards_and_threads_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = stream(7, 0, 0, "weights");
    let (mut weighted, mut expanded) = ("y,x,w\n".to_string(), "y,x,w\n".to_string());
    for _ in 0..60 {
        let (x, w) = (1e9 + (1000.0 * rng.random::<f64>()).round(), rng.random_range(0..4));
        let y = 5.0 * rng.random::<f64>();
        writeln!(weighted, "{y},{x},{w}").unwrap();
        (0..w).for_each(|_| writeln!(expanded, "{y},{x},1").unwrap());
    }
    let priors = |table: &str, split: &str, threads| {
        let path = folder.path().join("d.csv");
        std::fs::write(&path, table).unwrap();
        let mut case = Case::new(path.to_str().unwrap(), 1);
        case.data += "\nweights = \"w\"";
        (case.default, case.split) = (String::new(), split.into());
        case.model("y ~ x", "gaussian");
        let study = StudyFile::parse(&case.text(), Path::new("study.toml")).unwrap();
        let plan = Plan::new(study, threads, &Silent).unwrap();
        plan.settings[0].model.parameters.iter().map(|p| p.prior).collect::<Vec<_>>()
    };
    let whole = priors(&expanded, "shards = 1", 1);
    close(&priors(&weighted, "shards = 1", 1), &whole, "weights");
    for shards in [2, 5, 11] {
        let split = format!("shards = {shards}");
        let one = priors(&weighted, &split, 1);
        // A mean of a thousand million has room for seven digits behind the point.
        for (a, b) in one.iter().zip(&whole) {
            assert!((a.spread() / b.spread() - 1.0).abs() < 1e-9, "{shards} shards: {a} not {b}");
        }
        assert_eq!(priors(&weighted, &split, 3), one);
    }
}

/// A prior that the data contradict is said to be one, however shards are combined.
#[test]
fn conflicts_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for evidence in ["combine = \"exact\"", "combine = \"normal\"", "combine = \"cmc-is\""] {
        let path = folder.path().join("d.csv");
        std::fs::write(&path, penguins(1.0, 10.0)).unwrap();
        let mut case = Case::new(path.to_str().unwrap(), 2);
        case.evidence = evidence.into();
        case.model("mass ~ scale(flipper)", "gaussian").model("mass ~ 1", "gaussian");
        let result = crate::common::run(&case.text());
        for model in &result.models {
            let found: Vec<_> =
                model.warnings.iter().filter(|w| w.code == "prior-conflict").collect();
            let [caution] = found.as_slice() else { panic!("{:?}", model.warnings) };
            assert!(caution.message.contains("its prior normal(0, 1)"), "{caution:?}");
            assert!(caution.advice.contains("per sd"), "{caution:?}");
            let worst = model.parameters.iter().map(|p| p.mean.abs()).fold(0.0, f64::max);
            assert!((caution.value.unwrap() / worst - 1.0).abs() < 1e-12, "{caution:?}");
        }
        assert!(result.models[0].warnings.iter().any(|w| w.message.contains("other parameter")));
    }
}

/// Units beyond what can be computed with are an error that names the parameter.
#[test]
fn scales_beyond_numbers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..20).map(|i| format!("{},{}e-153\n", i % 5, i % 7)).collect();
    let study = study(folder.path(), &format!("y,x\n{rows}"), "", &[("y ~ x", "gaussian")]);
    let error = Plan::new(study, 1, &Silent).unwrap_err();
    assert!(error.is_input());
    for part in ["study.toml", "`y ~ x`", "normal(0, 2.5) per sd of `x`", "scale(x)"] {
        assert!(error.to_string().contains(part), "{error} lacks {part}");
    }
}

/// What a standard deviation is does not depend, to the last bit, on which other models there are, however many
/// chunks the rows make.
#[test]
fn units_do_not_depend_on_company() {
    use consilience::arrow_array::{ArrayRef, Float64Array, RecordBatch};
    use consilience::{Family, Plan, Silent, Study, Tables};
    use std::sync::Arc;
    let wave = |j: usize| -> ArrayRef {
        let value = |i: usize| (i as f64 * (0.7 + j as f64)).sin() + j as f64;
        Arc::new((0..150_000).map(value).collect::<Float64Array>())
    };
    let y: ArrayRef =
        Arc::new((0..150_000).map(|i| f64::from(i % 3 == 0)).collect::<Float64Array>());
    let columns = (0..40).map(|j| (format!("x{j}"), wave(j))).chain([("y".to_string(), y)]);
    let table = RecordBatch::try_from_iter(columns).unwrap();
    let all: Vec<String> = (0..40).map(|j| format!("x{j}")).collect();
    let priors = |others: &[&str]| {
        let mut study = Study::new().shards(1).model("y ~ x3 + x38", Family::Logistic);
        for right in others {
            study = study.model(format!("y ~ {right}"), Family::Logistic);
        }
        let tables = Tables::whole(vec![table.clone()]).unwrap();
        let plan = Plan::of_tables(study, tables, 2, &Silent).unwrap();
        plan.settings[0].model.free_priors()
    };
    let alone = priors(&[]);
    assert_eq!(alone, priors(&["x1"]));
    assert_eq!(alone, priors(&["x39 + x38", &all.join(" + ")]));
}
