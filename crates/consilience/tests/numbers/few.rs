//! Few rounds and few bytes: `schedule`, points that travel as rules, and errors that stay honest with both.

use crate::common::{Case, root, run, truth};
use consilience::Result;
use consilience::combine::{Extras, Setting, combine};
use consilience::compare::Comparison;
use consilience::engine::{Answered, Engine, Session, Silent, Threads};
use consilience::plan::{Gathered, Plan, Room};
use consilience::question::{Answers, Points, Question, Weigh};
use consilience::study::StudyFile;
use std::path::Path;
use std::sync::Mutex;

const PIMA: &str = "type ~ scale(npreg) + scale(glu) + scale(bp) + scale(skin) + scale(bmi) + scale(ped) + scale(age)";

fn flights(shards: usize, partition: u64, evidence: &str) -> Case {
    let mut case = Case::new("flights.parquet", shards);
    case.split += &format!("\nseed = {partition}");
    case.evidence = evidence.into();
    for formula in truth()["flights"]["models"].as_object().unwrap().keys() {
        case.model(formula, "logistic");
    }
    case
}

/// The errors of a comparison's log evidences, in standard errors of both sides.
fn scores(found: &Comparison, truths: &[(f64, f64)]) -> Vec<f64> {
    let each = found.models.iter().zip(truths);
    each.map(|(model, (value, se))| {
        let own = model.log_evidence.se.unwrap();
        (model.log_evidence.value - value) / own.hypot(*se)
    })
    .collect()
}

fn flights_truth() -> Vec<(f64, f64)> {
    let models = &truth()["flights"]["models"];
    let pair = |v: &serde_json::Value| (v["value"].as_f64().unwrap(), v["se"].as_f64().unwrap());
    models.as_object().unwrap().values().map(pair).collect()
}

#[test]
fn flights_take_few_rounds_and_few_bytes() {
    for shards in [1, 10, 50] {
        let mut rounds = Vec::new();
        for partition in [1, 2, 3] {
            let found = run(&flights(shards, partition, "").text());
            let kilobytes = found.traffic.bytes_sent as f64 / shards as f64 / 1000.0;
            println!(
                "{shards} shards, partition {partition}: {} rounds, {kilobytes:.0} kB to each",
                found.traffic.rounds
            );
            assert!(found.is_reliable());
            rounds.push(found.traffic.rounds);
            assert!(kilobytes < 80.0, "{kilobytes}");
            for (z, model) in scores(&found, &flights_truth()).iter().zip(&found.models) {
                assert!(z.abs() < 4.0, "{}: z = {z}", model.name);
                assert!(model.log_evidence.se.unwrap() <= 0.01);
            }
        }
        // Climbing step by step it was thirteen.
        assert!(rounds.iter().all(|&rounds| rounds < 12), "{shards} shards: {rounds:?} rounds");
        if shards == 50 {
            assert!(rounds.iter().all(|&rounds| rounds <= 5), "{rounds:?} rounds");
        }
    }
}

#[test]
fn gentle_asks_nobody_for_a_fit_and_agrees() {
    let gentle = run(&flights(20, 1, "schedule = \"gentle\"").text());
    let few = run(&flights(20, 1, "schedule = \"few\"").text());
    assert!(gentle.traffic.rounds > few.traffic.rounds);
    for found in [&gentle, &few] {
        assert!(found.is_reliable());
        assert!(scores(found, &flights_truth()).iter().all(|z| z.abs() < 4.0));
    }
}

/// Runs seeds 1 to K and looks at mean and spread of the errors in standard errors.
fn calibrated(what: &str, seeds: u64, truths: &[(f64, f64)], case: impl Fn(u64) -> Case) {
    let (mut all, mut rounds, mut shared) = (Vec::new(), 0, 0.0);
    for seed in 1..=seeds {
        let found = run(&case(seed).text());
        assert!(found.is_reliable(), "{what}, seed {seed}");
        rounds = rounds.max(found.traffic.rounds);
        all.extend(scores(&found, truths));
        let own = found.models[0].log_evidence.se.unwrap();
        shared += (truths[0].1 / own.hypot(truths[0].1)).powi(2) / seeds as f64;
    }
    let n = all.len() as f64;
    let mean = all.iter().sum::<f64>() / n;
    let sd = (all.iter().map(|z| z * z).sum::<f64>() / n).sqrt();
    let worst = all.iter().fold(0.0, |most: f64, z| most.max(z.abs()));
    println!(
        "{what}: mean z {mean:+.2}, root mean square {sd:.2}, worst {worst:.2}, at most {rounds} rounds"
    );
    // The reference has an error too, and all seeds have it in common.
    let bound = 4.0 * ((1.0 - shared) / n + shared).sqrt();
    assert!(mean.abs() < bound, "{what}: mean z {mean}, bound {bound}");
    assert!((0.75..1.25).contains(&sd), "{what}: spread of z {sd}");
    assert!(worst < 4.5, "{what}: {worst}");
}

fn pima(family: &str, shards: usize, seed: u64, schedule: &str) -> Case {
    let mut case = Case::new("pima_tr.csv", shards);
    case.split += &format!("\nseed = {seed}");
    case.evidence = format!("seed = {seed}\nschedule = \"{schedule}\"");
    case.model(PIMA, family);
    case
}

#[test]
fn error_bars_are_honest_with_few_rounds() {
    let seeds = std::env::var("FEW_SEEDS").map_or(100, |n| n.parse().unwrap());
    for family in ["logistic", "probit"] {
        let truth = &truth()["pima_tr"]["models"][format!("{family}, normal(0,1)")];
        let truth = [(truth["value"].as_f64().unwrap(), truth["se"].as_f64().unwrap())];
        for (shards, schedule) in [(3, "few"), (10, "few"), (40, "few"), (10, "gentle")] {
            let what = format!("pima, {family}, {shards} shards, {schedule}");
            calibrated(&what, seeds, &truth, |seed| pima(family, shards, seed, schedule));
        }
    }
    let value = &truth()["sim2"]["models"]["11111"];
    let value = [(value["value"].as_f64().unwrap(), value["se"].as_f64().unwrap())];
    calibrated("sim2, 50 shards", seeds.min(40), &value, |seed| {
        let mut case = Case::new("sim2.parquet", 50);
        case.split += &format!("\nseed = {seed}");
        case.evidence = format!("seed = {seed}");
        case.model("y ~ x1 + x2 + x3 + x4 + x5", "logistic");
        case
    });
}

/// Draws of a posterior that is normal to the last digit differ by nothing but rounding, which all of them share: the error
/// bar has to count it.
#[test]
fn an_error_bar_counts_rounding() {
    let case = |evidence: &str| {
        let mut case = Case::new("gauss.parquet", 7);
        case.prior = "coefficients = \"normal(0, 1)\"\nlog_sd = \"fixed(0)\"".into();
        case.evidence = evidence.into();
        case.model("y ~ x1 + x2 + x3 + x4 + x5 + x6", "gaussian");
        case
    };
    let exact = run(&case("").text()).models[0].log_evidence;
    for seed in 1..=20 {
        let found = run(&case(&format!("statistics = false\nseed = {seed}")).text());
        let z = scores(&found, &[(exact.value, exact.se.unwrap())])[0];
        assert!(z.abs() < 4.0, "seed {seed}: z = {z}");
        assert!(found.models[0].log_evidence.se.unwrap() < 1e-7);
    }
}

/// The model that first guesses do not meet: carriers with a handful of flights.
#[test]
fn error_bars_are_honest_where_a_first_guess_is_poor() {
    let truth = &truth()["flights"]["models"]["late ~ 0 + carrier + carrier:dep_delay"];
    let truth = [(truth["value"].as_f64().unwrap(), truth["se"].as_f64().unwrap())];
    calibrated("flights, a slope per carrier, 50 shards", 20, &truth, |seed| {
        let mut case = Case::new("flights.parquet", 50);
        case.split += &format!("\nseed = {seed}");
        case.evidence = format!("seed = {seed}");
        case.model("late ~ 0 + carrier + carrier:dep_delay", "logistic");
        case
    });
}

/// Few rows a shard, separated outcomes and levels that most shards lack: shards are wrong about the peak, and
/// further rounds follow by themselves.
#[test]
fn shards_that_know_next_to_nothing_cost_rounds_and_nothing_else() {
    let logistic = &truth()["pima_tr"]["models"]["logistic, normal(0,1)"];
    let logistic = [(logistic["value"].as_f64().unwrap(), logistic["se"].as_f64().unwrap())];
    for (shards, by) in [(100, "random"), (66, "outcome"), (2, "column:type")] {
        let mut case = pima("logistic", shards, 1, "few");
        case.split = format!("shards = {shards}\nby = \"{by}\"");
        if by.starts_with("column") {
            case.split = format!("by = \"{by}\"");
        }
        let found = run(&case.text());
        println!("{by}, {shards} shards: {} rounds", found.traffic.rounds);
        assert!(
            found.is_reliable() && found.traffic.rounds <= 12,
            "{by}: {}",
            found.traffic.rounds
        );
        assert!(scores(&found, &logistic)[0].abs() < 4.0, "{by}");
    }
}

/// A question about draws is small on its way, and whoever reads it asks about the same points.
#[test]
fn draws_travel_as_rules() {
    use consilience::engine::{Answered, Engine, Silent, Threads};
    use consilience::plan::{Gathered, Plan, Room};
    use consilience::question::Answers;
    use std::sync::Mutex;

    /// Keeps what was asked, as it travels, and has it read again before it is answered.
    struct Reading<'a>(&'a Threads, Mutex<Vec<(usize, usize)>>);

    impl Engine for Reading<'_> {
        fn shards(&self) -> usize {
            self.0.shards()
        }

        fn ask(
            &self,
            questions: &[Question],
            answered: &Answered,
        ) -> consilience::Result<Vec<Answers>> {
            let mut read = Vec::new();
            for question in questions {
                let bytes = postcard::to_stdvec(question).unwrap();
                let there: Question = postcard::from_bytes(&bytes).unwrap();
                assert_eq!(postcard::to_stdvec(&there).unwrap(), bytes);
                if let Question::Weigh(Weigh(points)) = &there {
                    let rows = |p: &Points| p.thetas.rows() * p.thetas.cols();
                    let rows = points.iter().map(rows).sum();
                    self.1.lock().unwrap().push((bytes.len(), rows));
                }
                read.push(there);
            }
            self.0.ask(&read, answered)
        }
    }

    for evidence in ["", "points = \"sobol\"", "schedule = \"gentle\""] {
        let case = flights(4, 1, evidence);
        let study = || StudyFile::parse(&case.text(), Path::new("study.toml")).unwrap();
        let plan = Plan::new(study(), 2, &Silent).unwrap();
        let here = plan.run(&Silent).unwrap();
        let gathered = Gathered::new(study(), &Room::default(), &Silent).unwrap();
        let engine = Reading(plan.engine(), Mutex::default());
        let there = Plan::on(gathered, engine, &Silent).unwrap();
        let found = there.run(&Silent).unwrap();
        let bits = |c: &Comparison| -> Vec<u64> {
            c.models.iter().map(|m| m.log_evidence.value.to_bits()).collect()
        };
        assert_eq!(bits(&here), bits(&found), "{evidence}");
        let sizes = there.engine().1.lock().unwrap();
        assert!(!sizes.is_empty() && sizes.iter().all(|(bytes, numbers)| bytes * 2 < 8 * numbers));
    }
    assert!(root().join("data").exists());
}

/// Shards of another engine, and what they were asked round by round.
struct Overheard<'a>(&'a Threads, Mutex<Vec<Vec<&'static str>>>);

impl Engine for Overheard<'_> {
    fn shards(&self) -> usize {
        self.0.shards()
    }

    fn ask(&self, questions: &[Question], answered: &Answered) -> Result<Vec<Answers>> {
        self.1.lock().unwrap().push(questions.iter().map(Question::kind).collect());
        self.0.ask(questions, answered)
    }
}

/// What the shards are asked about a study of Gaussian models.
fn overheard(evidence: &str, prior: &str, models: &str) -> Vec<Vec<&'static str>> {
    let mut case = Case::new("pima_tr.csv", 4);
    (case.evidence, case.prior, case.models) = (evidence.into(), prior.into(), models.into());
    let study = || StudyFile::parse(&case.text(), Path::new("study.toml")).unwrap();
    let threads = Plan::new(study(), 2, &Silent).unwrap();
    let gathered = Gathered::new(study(), &Room::default(), &Silent).unwrap();
    let engine = Overheard(threads.engine(), Mutex::default());
    let plan = Plan::on(gathered, engine, &Silent).unwrap();
    match models.contains("[select]") {
        true => assert!(plan.select(&Silent).is_ok()),
        false => assert!(plan.run(&Silent).is_ok()),
    }
    plan.engine().1.lock().unwrap().clone()
}

/// Statistics ride on the survey where they are wanted for sure, and are asked nowhere else.
#[test]
fn gaussian_models_take_one_round_after_describe() {
    let two = "[[model]]\nformula = \"bmi ~ glu + type\"\nfamily = \"gaussian\"\n[[model]]\nformula = \"bmi ~ age\"\nfamily = \"gaussian\"\n";
    let both = [vec!["describe"], vec!["survey", "statistics"]];
    assert_eq!(overheard("", "", two), both);
    let laplace = "coefficients = \"laplace(0, 0.5)\"";
    assert_eq!(overheard("", laplace, two), both);
    for evidence in ["combine = \"normal\"", "statistics = false"] {
        let asked = overheard(evidence, "", two);
        assert!(!asked.iter().flatten().any(|kind| *kind == "statistics"), "{asked:?}");
    }
    let select = |method: &str| {
        format!(
            "[select]\noutcome = \"bmi\"\nfamily = \"gaussian\"\nmethod = \"{method}\"\ncandidates = \"scale(glu) + type + scale(ped) + scale(age)\"\n"
        )
    };
    for method in ["enumerate", "search", "auto"] {
        assert_eq!(overheard("", "", &select(method)), both, "{method}");
    }
    // With other priors a search goes by points.
    let asked = overheard("", laplace, &select("search"));
    assert!(!asked.iter().flatten().any(|kind| *kind == "statistics"), "{asked:?}");
}

/// Under other scales of priors nobody sees the shards' own evidences: they are computed once.
#[test]
fn scales_of_priors_ask_for_no_further_fits() {
    let study = |combine: &str| {
        let mut case = Case::new("pima_tr.csv", 4);
        case.evidence = format!("combine = \"{combine}\"\nlocal = \"importance\"\ndraws = 1000");
        case.model("bmi ~ scale(glu)", "gaussian").model("bmi ~ type", "gaussian");
        StudyFile::parse(&case.text(), Path::new("study.toml")).unwrap()
    };
    let extras = Extras { prior_scales: vec![0.5, 1.0, 2.0], ..Extras::default() };
    for (combine, fits) in [("exact", 2), ("normal", 6)] {
        let threads = Plan::new(study(combine), 2, &Silent).unwrap();
        let gathered = Gathered::new(study(combine), &Room::default(), &Silent).unwrap();
        let engine = Overheard(threads.engine(), Mutex::default());
        let mut plan = Plan::on(gathered, engine, &Silent).unwrap();
        plan.deliver(&extras).unwrap();
        let found = plan.run(&Silent).unwrap();
        let asked = plan.engine().1.lock().unwrap();
        assert_eq!(
            asked.iter().flatten().filter(|kind| **kind == "fit").count(),
            fits,
            "{combine}"
        );
        let scales = found.prior_sensitivity.as_ref().unwrap();
        assert_eq!(scales.len(), 3);
        assert!(found.models.iter().all(|model| model.parts.shards.is_some()));
    }
}

/// Asked with the survey or by themselves, statistics are the same bits.
#[test]
fn statistics_that_ride_along_change_no_bit() {
    let mut case = Case::new("pima_tr.csv", 5);
    case.model("bmi ~ scale(glu) + type", "gaussian").model("bmi ~ poly(age, 2)", "gaussian");
    let study = StudyFile::parse(&case.text(), Path::new("study.toml")).unwrap();
    let plan = Plan::new(study, 2, &Silent).unwrap();
    let evidences = |settings: &[Setting], rounds: u64| {
        let session = Session::new(plan.engine(), &Silent);
        let found = combine(&session, settings).unwrap();
        assert_eq!(session.traffic().rounds, rounds);
        found
    };
    let mut alone = plan.settings.clone();
    alone.iter_mut().for_each(|setting| setting.pool = None);
    let (with, without) = (evidences(&plan.settings, 0), evidences(&alone, 1));
    for (a, b) in with.iter().zip(&without) {
        assert_eq!((a.log_z, &a.mean, &a.covariance), (b.log_z, &b.mean, &b.covariance));
        assert_eq!(a.agreement.len(), 5);
    }
    // Of one model alone there are fewer columns, whose statistics have other bits: they are asked.
    evidences(&plan.settings[1..], 1);
}

/// `rounds` is a limit, and one that does not bind changes nothing: two more rounds agree on columns and designs. Where it
/// binds, an answer is right to its error bar or is said to be unreliable.
#[test]
fn a_limit_of_rounds_is_kept() {
    let found = |family: &str, shards: usize, schedule: &str, limit: u64| {
        let mut case = pima(family, shards, 1, schedule);
        case.evidence += &format!("\nrounds = {limit}");
        run(&case.text())
    };
    for (family, shards, schedule) in
        [("logistic", 4, "few"), ("probit", 40, "few"), ("logistic", 4, "gentle")]
    {
        let truth = &truth()["pima_tr"]["models"][format!("{family}, normal(0,1)")];
        let truth = [(truth["value"].as_f64().unwrap(), truth["se"].as_f64().unwrap())];
        let free = found(family, shards, schedule, 60);
        for limit in 2..=7 {
            let what = format!("{family}, {shards} shards, {schedule}, rounds = {limit}");
            let own = found(family, shards, schedule, limit);
            assert!(own.traffic.rounds <= limit + 2, "{what}: {} rounds", own.traffic.rounds);
            if free.traffic.rounds <= limit + 2 {
                assert_eq!(own.models[0].log_evidence, free.models[0].log_evidence, "{what}");
            }
            let z = scores(&own, &truth)[0];
            assert!(!own.is_reliable() || z.abs() < 4.0, "{what}: z = {z}");
            let codes = own.models[0].warnings.iter().map(|w| w.message.as_str());
            assert!(codes.clone().all(|m| !m.contains("1 rounds") && !m.contains("e1 nats")));
        }
        assert!(free.traffic.rounds <= if schedule == "few" { 4 } else { 7 });
    }
}

/// g-priors as well, whose climb to the peak and whose nodes share the rounds; these take three at least.
#[test]
fn g_priors_keep_a_limit_of_rounds() {
    for schedule in ["few", "gentle"] {
        for limit in 3..=8 {
            let mut case = Case::new("pima_tr.csv", 4);
            case.default = String::new();
            case.prior = "coefficients = \"g-prior(n)\"".into();
            case.evidence = format!("schedule = \"{schedule}\"\nrounds = {limit}");
            case.model("type ~ glu + ped", "logistic");
            let found = run(&case.text());
            let rounds = found.traffic.rounds;
            assert!(rounds <= limit + 2, "{schedule}, rounds = {limit}: {rounds} rounds");
        }
    }
}
