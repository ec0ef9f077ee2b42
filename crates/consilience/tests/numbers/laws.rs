//! Laws that hold whatever the numbers are, and error bars that mean what they say.

use crate::common::{Case, run, run_study, spread};
use consilience::compare::Comparison;
use consilience::engine::{Answered, Engine, Silent};
use consilience::math::stream;
use consilience::plan::Plan;
use consilience::question::{Answer, Answers, Question};
use consilience::study::StudyFile;
use consilience::{Level, Result};
use rand::seq::SliceRandom;
use std::path::Path;

const GAUSS: &str = "y ~ x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9 + x10 + x11 + x12 + x13";

fn study(text: &str) -> StudyFile {
    StudyFile::parse(text, Path::new("study.toml")).unwrap()
}

/// A study with every kind of column, split and method: two families' worth of everything.
fn mixed(combine: &str) -> String {
    let mut case = Case::new("pima_tr.csv", 4);
    case.evidence = format!("combine = {combine:?}\ndraws = 2000\nseed = 3");
    case.model("type ~ scale(glu) + factor(npreg > 3) * scale(bmi)", "logistic");
    case.model("type ~ poly(glu, 2) + scale(ped)", "probit");
    case.text().replace("factor(npreg > 3)", "I(npreg > 3)")
}

/// Everything but the clock, as text: equal text is equal bits.
fn bits(result: &Comparison) -> String {
    serde_json::to_string(result).unwrap()
}

#[test]
fn the_number_of_threads_changes_nothing() {
    for combine in ["exact", "normal"] {
        let text = mixed(combine);
        let one = bits(&run_study(study(&text), 1));
        for threads in [2, 5] {
            assert_eq!(
                bits(&run_study(study(&text), threads)),
                one,
                "{combine}, {threads} threads"
            );
        }
    }
}

#[test]
fn kernels_agree_to_the_last_digits() {
    for combine in ["exact", "normal"] {
        let auto = mixed(combine);
        let portable = auto.replace("seed = 3", "seed = 3\nkernel = \"portable\"");
        assert_ne!(auto, portable);
        let (auto, portable) = (run_study(study(&auto), 2), run_study(study(&portable), 2));
        for (a, b) in auto.models.iter().zip(&portable.models) {
            let (a, b) = (a.log_evidence.value, b.log_evidence.value);
            assert!((a - b).abs() < 1e-9 * a.abs(), "{combine}: {a} and {b}");
        }
    }
}

/// An engine whose shards answer in an order of its own.
struct Shuffled<'a>(&'a Plan, u64);

impl Engine for Shuffled<'_> {
    fn shards(&self) -> usize {
        self.0.engine().shards()
    }

    fn ask(&self, questions: &[Question], answered: &Answered) -> Result<Vec<Answers>> {
        let mut tasks: Vec<(usize, usize)> =
            (0..questions.len()).flat_map(|q| (0..self.shards()).map(move |s| (q, s))).collect();
        tasks.shuffle(&mut stream(self.1, 0, 0, "arrival"));
        let mut arrived = Vec::new();
        for (q, s) in tasks {
            arrived.push(((q, s), questions[q].answer(self.0.engine().shard(s))?));
            assert!(answered().is_continue());
        }
        arrived.sort_by_key(|(place, _)| *place);
        let mut arrived = arrived.into_iter().map(|(_, answer)| answer);
        let mut each = || arrived.by_ref().take(self.shards()).collect::<Vec<Answer>>();
        Ok(questions.iter().map(|_| Answers::Each(each())).collect())
    }
}

#[test]
fn the_order_of_arrival_changes_nothing() {
    for combine in ["exact", "normal"] {
        let plan = Plan::new(study(&mixed(combine)), 2, &Silent).unwrap();
        let straight = bits(&plan.run(&Silent).unwrap());
        for seed in 1..=5 {
            let shuffled = plan.run_on(&Shuffled(&plan, seed), &Silent).unwrap();
            assert_eq!(bits(&shuffled), straight, "{combine}, seed {seed}");
        }
    }
}

/// A model's numbers do not depend on its company: streams go by its name.
#[test]
fn the_order_and_company_of_models_change_nothing() {
    let formulas = ["type ~ scale(glu)", "type ~ scale(glu) + scale(bmi)", "type ~ scale(age)"];
    let of = |order: &[usize]| {
        let mut case = Case::new("pima_tr.csv", 3);
        order.iter().for_each(|&i| {
            case.model(formulas[i], "logistic");
        });
        run(&case.text())
    };
    let all = of(&[0, 1, 2]);
    for order in [vec![2, 0, 1], vec![1, 0, 2], vec![1]] {
        for model in of(&order).models {
            let same = all.models.iter().find(|m| m.name == model.name).unwrap();
            assert_eq!(model.log_evidence, same.log_evidence);
            assert_eq!(model.parameters, same.parameters);
        }
    }
}

/// Levels under other names, in another order, with full dummies and one prior for all: the same
/// model.
#[test]
fn relabelling_a_factor_changes_nothing_but_the_draws() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, labels: [&str; 3]| {
        let rows = (0..90).map(|i| {
            let (group, x) = (i * 5 % 3, f64::from(i % 7) - 3.0);
            let y = (f64::from(i) * 2.3).sin() + x * 0.3 + f64::from(group) * 0.5;
            format!("{},{x},{}\n", u8::from(y > 0.5), labels[group as usize])
        });
        let path = folder.path().join(name);
        std::fs::write(&path, "y,x,g\n".to_string() + &rows.collect::<String>()).unwrap();
        path.to_str().unwrap().to_string()
    };
    let exact = |path: &str| {
        let mut case = Case::new(path, 1);
        case.evidence = "local = \"laplace\"\ncombine = \"normal\"".into();
        case.model("y ~ 0 + g + g:x", "logistic");
        run(&case.text()).models.remove(0)
    };
    let (a, b) = (exact(&write("a.csv", ["a", "b", "c"])), exact(&write("b.csv", ["z", "k", "m"])));
    assert!((a.log_evidence.value - b.log_evidence.value).abs() < 1e-9);
    for (here, there) in [("ga", "gz"), ("gb", "gk"), ("gc:x", "gm:x")] {
        let mean = |model: &consilience::compare::ModelResult, name: &str| {
            model.parameters.iter().find(|p| p.name == name).unwrap().mean
        };
        assert!((mean(&a, here) - mean(&b, there)).abs() < 1e-7);
    }
}

/// A weight of n is n equal rows: with one shard to the last digits, whatever the formula.
#[test]
fn weights_are_repeated_rows() {
    let folder = tempfile::tempdir().unwrap();
    let (mut weighted, mut repeated) = ("y,x,n\n".to_string(), "y,x,n\n".to_string());
    for i in 0..40 {
        let (y, x, n) = (i * i % 5, f64::from(i % 9), i % 4);
        weighted += &format!("{y},{x},{n}\n");
        (0..n).for_each(|_| repeated += &format!("{y},{x},1\n"));
    }
    let evidence = |text: &str, weights: &str| {
        let path = folder.path().join("data.csv");
        std::fs::write(&path, text).unwrap();
        let mut case = Case::new(path.to_str().unwrap(), 1);
        case.data += weights;
        case.evidence = "local = \"laplace\"\ncombine = \"normal\"".into();
        case.model("y ~ scale(x) + poly(x, 2) - scale(x)", "poisson");
        case.model("y ~ scale(x)", "negative-binomial");
        run(&case.text()).models.into_iter().map(|m| m.log_evidence.value).collect::<Vec<_>>()
    };
    let (a, b) = (evidence(&weighted, "\nweights = \"n\""), evidence(&repeated, ""));
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() < 1e-9, "{x} is not {y}");
    }
}

/// `exact` does not care how the data are split, nor how the prior is shared.
#[test]
fn exact_gives_one_answer_for_every_partition() {
    let value = crate::common::truth()["gauss"]["models"][GAUSS]["value"].as_f64().unwrap();
    for (by, shards) in [("random", 1), ("random", 3), ("outcome", 40), ("cluster", 25)] {
        for share in ["equal", "rows"] {
            let mut case = Case::new("gauss.parquet", shards);
            case.split += &format!("\nby = {by:?}\nshare = {share:?}");
            case.model(GAUSS, "gaussian");
            let found = run(&case.text()).models[0].log_evidence;
            let z = (found.value - value) / found.se.unwrap();
            assert!(z.abs() < 4.0, "{by}, {shards} shards, {share}: z = {z:.2}");
        }
    }
}

/// Over many seeds (estimate − truth)/se must look like a standard normal: that tests the error bar
/// as much as the estimate.
#[test]
fn error_bars_are_honest() {
    let models = crate::common::truth()["gauss"]["models"].clone();
    for (what, evidence, shards) in [
        ("importance", "combine = \"normal\"\nlocal = \"importance\"\ndraws = 1000", 1),
        ("exact", "statistics = false\ndraws = 1000\nse_target = 1e-9", 10),
    ] {
        let mut zs = Vec::new();
        for seed in 1..=40 {
            let mut case = Case::new("gauss.parquet", shards);
            case.split += &format!("\nseed = {seed}");
            case.evidence = format!("{evidence}\nseed = {seed}");
            for formula in models.as_object().unwrap().keys() {
                case.model(formula, "gaussian");
            }
            for model in run(&case.text()).models {
                let exact = models[&model.formula]["value"].as_f64().unwrap();
                zs.push((model.log_evidence.value - exact) / model.log_evidence.se.unwrap());
            }
        }
        let (mean, sd) = spread(&zs);
        println!("{what}: {} z-scores, mean {mean:.2}, sd {sd:.2}", zs.len());
        assert!(zs.iter().all(|z| z.abs() < 4.0), "{what}");
        assert!(mean.abs() < 0.3, "{what}: mean z {mean}");
        assert!((0.8..1.25).contains(&sd), "{what}: sd of z {sd}");
    }
}

/// `normal` has no truth to be compared with, but its error bar must be the spread over seeds on one
/// partition, and the correction for finite draws must make few draws agree with many.
#[test]
fn the_overlap_has_an_honest_error_bar_and_no_bias_from_few_draws() {
    let estimate = |draws: usize, seed: u64| {
        let mut case = Case::new("gauss.parquet", 5);
        case.evidence =
            format!("combine = \"normal\"\nlocal = \"importance\"\ndraws = {draws}\nseed = {seed}");
        case.model(GAUSS, "gaussian");
        run(&case.text()).models[0].log_evidence
    };
    let few: Vec<_> = (1..=60).map(|seed| estimate(1000, seed)).collect();
    let values: Vec<f64> = few.iter().map(|e| e.value).collect();
    let (mean, sd) = spread(&values);
    let se = (few.iter().map(|e| e.se.unwrap().powi(2)).sum::<f64>() / 60.0).sqrt();
    println!("sd over seeds {sd:.4}, reported {se:.4}");
    assert!((0.75..1.3).contains(&(sd / se)), "sd over seeds {sd}, reported {se}");
    let many = estimate(400_000, 61);
    let z = (mean - many.value) / (sd / 60f64.sqrt()).hypot(many.se.unwrap());
    println!("1,000 draws: {mean:.4}, 400,000 draws: {:.4}, z = {z:.2}", many.value);
    assert!(z.abs() < 4.0, "mean of few draws {mean}, many draws {many:?}");
}

/// Shards that differ in kind are named; shards that differ by chance are not.
#[test]
fn heterogeneous_shards_are_named() {
    let warned = |split: &str| {
        let mut case = Case::new("flights.parquet", 1);
        case.split = split.into();
        case.evidence = "draws = 500\nse_target = 1".into();
        case.model("late ~ dep_delay", "logistic");
        let result = run(&case.text());
        let mut codes = result.models[0].warnings.clone();
        codes.retain(|w| w.code == "heterogeneous");
        assert!(codes.iter().all(|w| w.level == Level::Caution && w.shard.is_some()));
        codes.len()
    };
    assert!(warned("by = \"column:carrier\"") >= 8);
    for seed in 1..=10 {
        assert_eq!(warned(&format!("shards = 16\nseed = {seed}")), 0, "seed {seed}");
    }
}

/// Small shards of data that are all of one kind: at a level of 0.001 forty splits of each size give
/// more than two false alarms with probability 10⁻⁴ at most.
#[test]
fn small_homogeneous_shards_are_not_suspected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.csv");
    let mut rng = stream(9, 0, 0, "homogeneous");
    let mut uniform = || rand::RngExt::random::<f64>(&mut rng);
    let mut text = "y,x,g\n".to_string();
    for i in 0..1200 {
        let noise: f64 = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let x = uniform();
        text += &format!("{},{x},{}\n", 1.0 + 0.5 * x + noise, ["a", "b"][i % 2]);
    }
    std::fs::write(&path, text).unwrap();
    for shards in [5, 60] {
        let mut alarms = 0;
        for seed in 1..=40 {
            let mut case = Case::new(path.to_str().unwrap(), shards);
            case.split += &format!("\nseed = {seed}");
            case.evidence = "draws = 500\nse_target = 1".into();
            case.model("y ~ x + g", "gaussian");
            let result = run(&case.text());
            alarms +=
                result.models[0].warnings.iter().filter(|w| w.code == "heterogeneous").count();
        }
        assert!(alarms <= 2, "{shards} shards: {alarms} false alarms");
    }
}
