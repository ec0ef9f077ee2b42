//! Engines that return sums over shards and nothing else, runs that are stopped, and models that join late.

use crate::common::Case;
use consilience::combine::Combining;
use consilience::compare::Comparison;
use consilience::engine::{Answered, Engine, Observer, Round, Session, Silent, Threads};
use consilience::math::{Matrix, stream};
use consilience::plan::{Extras, Gathered, Plan, Room};
use consilience::question::{Answers, Points, Question, Weigh};
use consilience::study::StudyFile;
use consilience::{Error, Result};
use rand::RngExt;
use rand::seq::SliceRandom;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The shards of another engine, of which only sums are known, added up in an order of its own.
struct SumsOnly<'a>(&'a Threads, u64);

impl Engine for SumsOnly<'_> {
    fn shards(&self) -> usize {
        self.0.shards()
    }

    fn ask(&self, questions: &[Question], answered: &Answered) -> Result<Vec<Answers>> {
        let answers = self.0.ask(questions, answered)?;
        let sum = |(question, answers): (&Question, Answers)| {
            let Answers::Each(mut each) = answers else { panic!("threads know single answers") };
            // Factors and facts are put together in the shards' order; numbers are added up in any.
            if matches!(question.kind(), "expand" | "cubic" | "locate" | "weigh") {
                each.shuffle(&mut stream(self.1, 0, 0, "sums"));
            }
            Ok(match question.merge(each.clone())? {
                Some(sum) => Answers::Sum(sum),
                None => Answers::Each(each),
            })
        };
        questions.iter().zip(answers).map(sum).collect()
    }
}

fn study(case: &Case) -> StudyFile {
    StudyFile::parse(&case.text(), Path::new("study.toml")).unwrap()
}

/// A plan that is settled on sums, too.
fn on_sums(case: &Case, engine: &Threads, order: u64) -> Result<Comparison> {
    let gathered = Gathered::new(study(case), &Room::default(), &Silent)?;
    Plan::on(gathered, SumsOnly(engine, order), &Silent)?.run(&Silent)
}

fn cases() -> Vec<Case> {
    let mut logistic = Case::new("pima_tr.csv", 7);
    logistic.model("type ~ scale(glu) + bmi", "logistic").model("type ~ factor(npreg)", "logistic");
    let mut gaussian = Case::new("pima_tr.csv", 5);
    gaussian.model("bmi ~ scale(glu) + type", "gaussian").model("bmi ~ poly(age, 2)", "gaussian");
    let mut laplace = Case::new("pima_tr.csv", 4);
    laplace.prior = "coefficients = \"laplace(0, 0.5)\"".into();
    laplace.model("bmi ~ scale(glu) + scale(age) + type", "gaussian");
    let mut tied = Case::new("pima_tr.csv", 3);
    (tied.default, tied.prior) = (String::new(), "coefficients = \"jzs\"".into());
    tied.model("bmi ~ 1", "gaussian").model("bmi ~ glu + age", "gaussian");
    let mut classes = Case::new("pima_tr.csv", 3);
    (classes.default, classes.prior) = (String::new(), "coefficients = \"g-prior(n)\"".into());
    classes.model("type ~ glu + age", "logistic");
    let mut unordered = Case::new("pima_tr.csv", 3);
    unordered.model("type ~ scale(bmi)", "multinomial");
    vec![logistic, gaussian, laplace, tied, classes, unordered]
}

#[test]
fn a_choice_among_models_runs_on_sums_alone() {
    for (method, family, outcome) in [
        ("search", "logistic", "type"),
        ("search", "gaussian", "bmi"),
        ("enumerate", "logistic", "type"),
    ] {
        let mut case = Case::new("pima_tr.csv", 6);
        case.models = format!(
            "[select]\noutcome = \"{outcome}\"\nfamily = \"{family}\"\nmethod = \"{method}\"\ncandidates = \"scale(glu) + scale(ped) + scale(age)\"\n"
        );
        let plan = Plan::new(study(&case), 2, &Silent).unwrap();
        let whole = plan.select(&Silent).unwrap();
        let gathered = Gathered::new(study(&case), &Room::default(), &Silent).unwrap();
        let sums = Plan::on(gathered, SumsOnly(plan.engine(), 1), &Silent).unwrap();
        let sums = sums.select(&Silent).unwrap();
        assert_eq!(whole.inclusion, sums.inclusion, "{method} {family}");
        assert_eq!(whole.log_normaliser, sums.log_normaliser);
    }
}

/// Where answers are long and only their sums are wanted, threads add them up as they come: to the same bits as if
/// they were all there.
#[test]
fn long_answers_are_added_up_as_they_come() {
    let mut case = Case::new("pima_tr.csv", 150);
    case.model("type ~ scale(glu)", "logistic").model("type ~ scale(bmi)", "logistic");
    let plan = Plan::new(study(&case), 2, &Silent).unwrap();
    let points = |model: usize, rows: usize| {
        let mut rng = stream(model as u64 + 1, 0, 0, "points");
        let numbers = (0..2 * rows).map(|_| rng.random::<f64>() - 0.5).collect();
        let setting = &plan.settings[model];
        Points {
            model: setting.model.clone(),
            thetas: Arc::new(Matrix::from_rows(rows, 2, numbers)),
            share: setting.share,
            rule: None,
        }
    };
    // 150 shards, and more than 2²¹ numbers of all together; a few more that are not worth it.
    let long: Question = Weigh(vec![points(0, 9_000), points(1, 6_000)]).into();
    let short: Question = Weigh(vec![points(1, 10)]).into();
    let questions = [long, short];
    let go_on = || ControlFlow::Continue(());
    let each = plan.engine().ask(&questions, &go_on).unwrap();
    let sums = plan.engine().ask_for_sums(&questions, &go_on).unwrap();
    assert!(matches!(sums[..], [Answers::Sum(_), Answers::Each(_)]));
    for ((question, each), sum) in questions.iter().zip(each).zip(sums) {
        let Answers::Each(each) = each else { panic!("threads know single answers") };
        match sum {
            Answers::Each(few) => assert_eq!(few, each),
            Answers::Sum(sum) => assert_eq!(Some(sum), question.merge(each).unwrap()),
        }
    }
}

#[test]
fn exact_and_statistics_run_on_sums_alone() {
    for case in cases() {
        let plan = Plan::new(study(&case), 2, &Silent).unwrap();
        let whole = plan.run(&Silent).unwrap();
        for order in 1..=3 {
            let sums = on_sums(&case, plan.engine(), order).unwrap();
            for (a, b) in whole.models.iter().zip(&sums.models) {
                // To the last bit, in whatever order the sums were made.
                assert_eq!(a.log_evidence, b.log_evidence, "{}", a.name);
                assert_eq!(a.parameters, b.parameters);
                // What single shards say is only there where it is known.
                assert!(b.shards.is_empty() && !a.shards.is_empty());
            }
        }
    }
}

#[test]
fn what_needs_single_answers_says_so() {
    let mut case = Case::new("pima_tr.csv", 3);
    case.evidence = "combine = \"normal\"".into();
    case.model("type ~ scale(glu)", "logistic");
    let plan = Plan::new(study(&case), 1, &Silent).unwrap();
    // The engine hands single fits out; one that did not would be told why that is not enough.
    assert!(on_sums(&case, plan.engine(), 1).is_ok());
    case.evidence = "draws = 200".into();
    let gathered = Gathered::new(study(&case), &Room::default(), &Silent).unwrap();
    let mut plan = Plan::on(gathered, SumsOnly(plan.engine(), 1), &Silent).unwrap();
    plan.deliver(&Extras { leave_one_out: true, ..Extras::default() }).unwrap();
    let error = plan.run(&Silent).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("every shard's answers"), "{error}");
}

/// Stops after so many answers, and notes what it was told.
struct Impatient {
    answers: AtomicUsize,
    most: usize,
}

impl Observer for Impatient {
    fn round(&self, round: &Round) -> ControlFlow<()> {
        assert!(round.progress.done <= round.progress.models);
        ControlFlow::Continue(())
    }

    fn answered(&self) -> ControlFlow<()> {
        match self.answers.fetch_add(1, Ordering::Relaxed) + 1 >= self.most {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

#[test]
fn whoever_watches_can_stop_a_run() {
    let case = &cases()[0];
    let plan = Plan::new(study(case), 2, &Silent).unwrap();
    for most in [1, 5, 20] {
        let watcher = Impatient { answers: AtomicUsize::new(0), most };
        assert!(matches!(plan.run(&watcher), Err(Error::Stopped)), "{most}");
        // What is being computed is finished; nothing new is begun.
        let answers = watcher.answers.into_inner();
        assert!((most..most + 2).contains(&answers), "{answers} for {most}");
    }
    assert!(plan.run(&Silent).is_ok());
}

/// A model that joins later has the evidence that it has alone, and shares the rounds that are left.
#[test]
fn models_join_between_rounds() {
    let case = &cases()[0];
    let plan = Plan::new(study(case), 2, &Silent).unwrap();
    let alone = plan.run(&Silent).unwrap();
    let session = Session::new(plan.engine(), &Silent);
    let mut combining = Combining::new(&session);
    combining.add(&plan.settings[..1]).unwrap();
    for _ in 0..2 {
        assert!(combining.round().unwrap());
    }
    combining.add(&plan.settings[1..]).unwrap();
    while combining.round().unwrap() {}
    assert!(session.traffic().rounds <= 2 + alone.rounds);
    for (number, model) in alone.models.iter().enumerate() {
        assert_eq!(combining.evidence(number).unwrap().log_z, model.log_evidence);
    }
}
