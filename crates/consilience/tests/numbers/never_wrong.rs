//! Posteriors with several peaks, heavy tails, few rows, priors at odds with the data, equal columns, huge
//! and tiny scales: an answer is right to its error bar, or says that it is not to be trusted.
//!
//! `tests/data/hard.jsonl` has cases that broke earlier versions, `own_hard.jsonl` and `trios.jsonl` are made by
//! `scripts/hard_cases.py`. `HARD_SEEDS`, `CALIBRATION_SEEDS` and `INTERVAL_RUNS` say how long to look
//! (docs/accuracy.md).

use consilience::Result;
use consilience::combine::Setting;
use consilience::compare::Comparison;
use consilience::engine::Silent;
use consilience::plan::{Plan, Room};
use consilience::study::{Schedule, StudyFile};
use std::path::Path;

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    study: String,
    csv: String,
    #[serde(default)]
    truth: f64,
    #[serde(default)]
    truth_se: f64,
    #[serde(default)]
    truths: Vec<f64>,
    #[serde(default)]
    infinite: bool,
}

fn cases(file: &str) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

impl Case {
    /// Its folder with the data in it.
    fn folder(&self) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("d.csv"), &self.csv).unwrap();
        folder
    }

    fn run(&self, folder: &Path, seed: u64) -> Result<Comparison> {
        self.run_by(folder, seed, "as it is").expect("every study can be run as it is")
    }

    /// By one of [`WAYS`]; `None` where that changes nothing, or would cost much.
    fn run_by(&self, folder: &Path, seed: u64, way: &str) -> Option<Result<Comparison>> {
        let mut study = StudyFile::parse(&self.study, &folder.join("study.toml")).unwrap();
        study.study.evidence.seed = seed;
        match way {
            "gentle" => study.study.evidence.schedule = Schedule::Gentle,
            "schema" => match Plan::codebook(study.clone(), 1, &Room::default(), &Silent) {
                Ok(book) => study.study.schema = book,
                Err(_) => return None,
            },
            _ => {}
        }
        match Plan::new(study, 2, &Silent) {
            Err(error) => Some(Err(error)),
            // Only where there is one peak for sure does the schedule tell, and is a run as short as that.
            Ok(plan) if way != "as it is" && !plan.settings.iter().all(is_climbed_once) => None,
            Ok(plan) => Some(plan.run(&Silent)),
        }
    }
}

/// How cases are run: as they are, which is with `schedule = "few"`, and where there is one peak also without what that
/// asks ahead, and with the columns stated.
const WAYS: [&str; 3] = ["as it is", "gentle", "schema"];

fn is_climbed_once(setting: &Setting) -> bool {
    setting.model.has_one_peak() && setting.pool.is_none()
}

/// No answer that is said to be reliable is beyond five standard errors (or 0.01 nats) of the truth, and at
/// most 3% of the runs are without a reliable answer.
#[test]
fn no_confident_answer_is_wrong() {
    let (mut runs, mut without, mut wrong) = (0, Vec::new(), Vec::new());
    for case in cases("hard.jsonl").into_iter().chain(cases("own_hard.jsonl")) {
        let folder = case.folder();
        let seeds = 1..=from_environment("HARD_SEEDS", 2);
        for (seed, way) in seeds.flat_map(|seed| WAYS.map(|way| (seed, way))) {
            let what = format!("{} seed {seed}, {way}", case.name);
            let Some(result) = case.run_by(folder.path(), seed, way) else { continue };
            runs += 1;
            let found = match result {
                Err(error) => {
                    println!("{what}: {error}");
                    if !case.infinite {
                        without.push(format!("{what}: {error}"));
                    }
                    continue;
                }
                Ok(found) => found,
            };
            let (model, reliable) = (&found.models[0], found.is_reliable());
            let (value, se) = (model.log_evidence.value, model.log_evidence.se.unwrap_or(0.0));
            let error = value - case.truth;
            let z = error / se.hypot(case.truth_se).max(1e-9);
            println!(
                "{what}: {value:.5} ± {se:.5}, truth {:.5}, z = {z:+.2}, {reliable}",
                case.truth
            );
            if !reliable && !case.infinite {
                without.push(format!("{what}: {:?}", model.warnings));
            }
            if reliable
                && (case.infinite || error.abs() > (5.0 * se.hypot(case.truth_se)).max(0.01))
            {
                wrong.push(format!("{what}: {value} ± {se}, truth {}", case.truth));
            }
        }
    }
    println!("{runs} runs, {} without a reliable answer, {} wrong", without.len(), wrong.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(without.len() * 100 <= 3 * runs, "{without:#?}");
}

/// The error bars on such posteriors: z over seeds has mean 0 and standard deviation 1.
#[test]
fn error_bars_are_calibrated() {
    let named = [
        ("own_hard.jsonl", "levels_0_logistic_laplace_10", "logistic, 10 levels, laplace"),
        ("own_hard.jsonl", "slope_0_logistic_cauchy", "logistic, separable, cauchy"),
        ("hard.jsonl", "F2_logistic_cauchy_0_1__S3", "logistic, 3 rows, p > n, cauchy"),
        ("own_hard.jsonl", "levels_1_logistic_cauchy_30", "logistic, 30 levels, cauchy"),
        ("own_hard.jsonl", "negbin_0_normal", "negative binomial, t₃"),
        ("own_hard.jsonl", "gauss_4_laplace_S3", "gaussian, 8 rows, laplace, by draws"),
    ];
    let seeds = from_environment("CALIBRATION_SEEDS", 20);
    println!(
        "| case | mean z | sd of z | largest abs z | mean se | not trusted |\n|---|---|---|---|---|---|"
    );
    for (file, name, what) in named {
        let case = cases(file).into_iter().find(|case| case.name == name).expect(name);
        let folder = case.folder();
        let (mut zs, mut ses, mut unfit) = (Vec::new(), 0.0, 0);
        for seed in 1..=seeds {
            let found = case.run(folder.path(), seed).unwrap();
            let estimate = found.models[0].log_evidence;
            unfit += u64::from(!found.is_reliable());
            ses += estimate.se.unwrap();
            zs.push((estimate.value - case.truth) / estimate.se.unwrap().hypot(case.truth_se));
        }
        let n = seeds as f64;
        let mean = zs.iter().sum::<f64>() / n;
        let sd = (zs.iter().map(|z| (z - mean) * (z - mean)).sum::<f64>() / (n - 1.0)).sqrt();
        let largest = zs.iter().fold(0.0, |m: f64, z| m.max(z.abs()));
        println!("| {what} | {mean:+.2} | {sd:.2} | {largest:.2} | {:.4} | {unfit} |", ses / n);
        // Four standard errors of the mean of that many z, and of their standard deviation, beyond what is
        // asked for over a hundred.
        let slack = 4.0 / n.sqrt();
        assert!(mean.abs() < 0.3_f64.max(slack), "{what}: mean z {mean}");
        assert!(
            sd < 1.2 + slack / 2.0_f64.sqrt() && sd > 0.8 - slack / 2.0_f64.sqrt(),
            "{what}: {sd}"
        );
        assert!(largest < 5.0 && unfit * 20 <= seeds, "{what}: {largest}, {unfit} not trusted");
    }
}

/// Intervals of model probabilities cover the true ones as often as they say.
#[test]
fn probability_intervals_cover() {
    let runs = from_environment("INTERVAL_RUNS", 40);
    for case in cases("trios.jsonl") {
        let folder = case.folder();
        let top = case.truths.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = case.truths.iter().map(|z| (z - top).exp()).sum();
        let (mut covered, mut count) = (0, 0);
        for seed in 1..=runs {
            let found = case.run(folder.path(), seed).unwrap();
            assert!(found.is_reliable(), "{}", case.name);
            for (model, truth) in found.models.iter().zip(&case.truths) {
                let [low, high] = model.probability_interval.expect("error bars make intervals");
                count += 1;
                covered += u64::from((low..=high).contains(&((truth - top).exp() / total)));
            }
        }
        let share = covered as f64 / count as f64;
        println!("{}: {:.1}% of {count} intervals cover", case.name, 100.0 * share);
        // The three models of a run share their errors: runs count, not intervals.
        let slack = 4.0 * (0.95_f64 * 0.05 / runs as f64).sqrt();
        assert!((share - 0.95).abs() < 0.03_f64.max(slack), "{}: {share}", case.name);
    }
}
