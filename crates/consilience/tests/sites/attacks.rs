//! Attacks on a site by whoever asks, each of which once got rows out of a site of 67 people. Under the policy that
//! holds where nobody wrote another, each is refused, and the error names the guard.

use crate::common::root;
use consilience::engine::Silent;
use consilience::math::Matrix;
use consilience::question::{Question, SurveyAnswer, Weigh};
use consilience::run::{QuestionFile, Received, Run, SiteEntry, Stop, study_hash};
use consilience::site::{Asked, Key, LogEntry, Policy, answer, look};
use consilience::study::StudyFile;
use consilience::{Error, Result};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// A site with every third person of the Pima data, its log, and a coordinator who may lie.
struct Hospital {
    folder: TempDir,
    policy: Policy,
    log: Vec<LogEntry>,
    runs: u8,
}

const SITES: [&str; 1] = ["leeds"];

impl Hospital {
    fn new() -> Hospital {
        let folder = tempfile::tempdir().unwrap();
        let text = std::fs::read_to_string(root().join("data/pima_tr.csv")).unwrap();
        let mut lines = text.lines();
        let mut own = format!("{},w\n", lines.next().unwrap());
        for (i, line) in lines.step_by(3).enumerate() {
            own += &format!("{line},{}\n", u8::from(i == 3 || i == 40));
        }
        std::fs::write(folder.path().join("d.csv"), own).unwrap();
        // Local fits are allowed here, so that every attack meets the guard that is made for it.
        let allow = Policy::LOCAL.map(String::from).into();
        let policy = Policy { allow, ..Policy::default() };
        Hospital { folder, policy, log: Vec::new(), runs: 0 }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("d.csv")
    }

    fn begin(&mut self, study: &str) -> Run {
        self.runs += 1;
        let study = format!("[data]\npath = \"d.csv\"\n{study}");
        let study = StudyFile::parse(&study, &self.folder.path().join("s.toml")).unwrap();
        let sites = SITES.map(|name| SiteEntry { name: name.into(), key: None });
        let folder = self.folder.path().join(format!("run-{}", self.runs));
        Run::for_sites(study, &sites, &folder, [self.runs; 32]).unwrap()
    }

    fn answer(&mut self, question: &Path) -> Result<Vec<u8>> {
        let data = [self.data().display().to_string()];
        let key = Key::new([77; 32]);
        let asked = Asked {
            question,
            data: &data,
            site: "leeds",
            policy: &self.policy,
            log: &self.log,
            key: Some(&key),
            keys: None,
        };
        let sent = answer(&asked)?;
        assert!(look(&asked).unwrap().contains("The policy would let it be answered"));
        self.log.push(sent.entry);
        Ok(sent.bytes)
    }

    /// Answers a study round by round: what was asked in rounds that were answered, and the error that ended it.
    fn study(&mut self, study: &str) -> (Vec<String>, Option<String>) {
        let run = self.begin(study);
        let mut answered = Vec::new();
        while let Err(Error::Waiting(waiting)) = run.coordinate(&Stop, &Silent) {
            match self.answer(&waiting.question) {
                Ok(bytes) => take_in(&run, self.folder.path(), &bytes),
                Err(error) => return (answered, Some(error.to_string())),
            }
            answered.extend(QuestionFile::read(&waiting.question).unwrap().header.asks);
        }
        (answered, None)
    }
}

fn take_in(run: &Run, folder: &Path, bytes: &[u8]) {
    let letter = folder.join("letter");
    std::fs::write(&letter, bytes).unwrap();
    let received = run.receive(&[letter]).unwrap();
    assert!(matches!(received[0].1, Received::New(_)), "{received:?}");
}

fn models(formulas: &[(&str, &str)]) -> String {
    let model = |(f, family): &(&str, &str)| {
        format!("[[model]]\nformula = \"{f}\"\nfamily = \"{family}\"\n")
    };
    formulas.iter().map(model).collect()
}

/// Groups of random effects: large ones are answered about; groups of two people are, merged or not, refused.
#[test]
fn random_effects_of_small_groups_are_refused() {
    let mut hospital = Hospital::new();
    let text = std::fs::read_to_string(hospital.data()).unwrap();
    let mut own = String::new();
    for (i, line) in text.lines().enumerate() {
        own += &match i {
            0 => format!("{line},ward,patient,number\n"),
            _ => format!("{line},w{},p{},{}\n", i % 4, i / 2, i / 2),
        };
    }
    std::fs::write(hospital.data(), own).unwrap();
    let (answered, error) = hospital.study(&models(&[("type ~ bmi + (1 | ward)", "logistic")]));
    assert_eq!(error, None);
    assert!(answered.len() > 3, "{answered:?}");
    for (column, guard) in [
        ("patient", "groups of `patient` have fewer rows than"),
        ("number", "a value of `number` has fewer rows than"),
    ] {
        let formula = format!("type ~ bmi + (1 | {column})");
        let (answered, error) = hospital.study(&models(&[(&formula, "logistic")]));
        assert!(answered.is_empty(), "{answered:?}");
        assert!(error.is_some_and(|e| e.contains(guard)), "{column}");
    }
}

/// Events, ordered classes and successes that two people have are refused, and events that many have are not.
#[test]
fn rare_kinds_of_outcomes_are_refused() {
    for (formula, family, guard) in [
        ("Surv(glu, w) ~ bmi", "weibull", "guard `outcome`"),
        ("Surv(glu, w, type = 'left') ~ bmi", "log-normal", "guard `outcome`"),
        ("w/trials(1) ~ bmi", "logistic", "guard `column`"),
        ("ordered(w) ~ bmi", "cumulative-logit", "min_rows"),
    ] {
        let mut hospital = Hospital::new();
        let (_, error) = hospital.study(&models(&[(formula, family)]));
        let error = error.unwrap_or_else(|| panic!("{formula} was answered"));
        assert!(error.contains(guard), "{formula}: {error}");
    }
    let mut hospital = Hospital::new();
    let (answered, error) =
        hospital.study(&models(&[("Surv(glu, bp > 70) ~ scale(bmi)", "weibull")]));
    assert!(error.is_none() && answered.len() > 3, "{error:?}, {answered:?}");
}

/// An ordinary study is answered to its end under the same policy.
#[test]
fn an_honest_study_is_answered() {
    let mut hospital = Hospital::new();
    let study =
        models(&[("type ~ scale(glu) + scale(bmi)", "logistic"), ("type ~ age", "logistic")]);
    let (answered, error) = hospital.study(&study);
    assert_eq!(error, None);
    assert!(answered.iter().any(|kind| kind == "weigh"), "{answered:?}");
    let spent = hospital.policy.budget(&hospital.log);
    assert!(spent.points.0 >= 1000 && spent.questions.0 >= 3, "{spent:?}");
    // Gaussian models too.
    assert_eq!(hospital.study(&models(&[("bmi ~ glu + age", "gaussian")])).1, None);
}

/// Formulas that were made to show few rows. No design is answered about, and no fact about such an expression.
#[test]
fn crafted_formulas_are_refused() {
    let weighted = "weights = \"w\"\n".to_string() + &models(&[("type ~ glu", "logistic")]);
    let cases: [(String, &str); 10] = [
        (models(&[("I(glu > 190) ~ bmi", "logistic")]), "column"),
        (models(&[("factor(glu > 190) ~ bmi", "logistic")]), ""),
        (models(&[("bmi ~ age + I(glu == 86)", "gaussian")]), "column"),
        (models(&[("type ~ I((glu == 86) * bmi)", "logistic")]), "column"),
        (weighted, "rows"),
        (
            models(&[(
                "type ~ I(glu > 120) * I(bmi > 33) * I(age > 30) * I(npreg > 3)",
                "logistic",
            )]),
            "column",
        ),
        (models(&[("type ~ poly(age, 12)", "logistic")]), "polynomial"),
        (models(&[("type ~ poly(age, 50)", "logistic")]), ""),
        // Each of these columns has many rows; their difference has few.
        (models(&[("type ~ I(glu > 120) + I(glu > 124)", "logistic")]), "combination"),
        (
            models(&[(
                "type ~ glu + bmi + age + skin + bp + ped + npreg + factor(npreg) + poly(glu, 5) + poly(bp, 5)",
                "logistic",
            )]),
            "",
        ),
    ];
    for (study, guard) in cases {
        let (answered, error) = Hospital::new().study(&study);
        let error = error.unwrap_or_else(|| panic!("it was answered: {study}"));
        assert!(answered.iter().all(|kind| kind == "describe"), "{answered:?}: {study}");
        if guard.is_empty() {
            assert!(error.contains("nothing is answered") || error.contains("guard"), "{error}");
        } else {
            assert!(error.contains(&format!("(guard `{guard}`)")), "{study}: {error}");
        }
    }
}

/// Two studies that differ by the rows in which one value is missing.
#[test]
fn studies_that_differ_by_few_rows_are_refused() {
    let mut hospital = Hospital::new();
    let text = std::fs::read_to_string(hospital.data()).unwrap();
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    let ages = text.lines().next().unwrap().split(',').position(|c| c == "\"age\"").unwrap();
    let mut fields: Vec<String> = lines[10].split(',').map(String::from).collect();
    fields[ages] = String::new();
    lines[10] = fields.join(",");
    std::fs::write(hospital.data(), lines.join("\n") + "\n").unwrap();
    assert_eq!(hospital.study(&models(&[("type ~ scale(glu)", "logistic")])).1, None);
    let (answered, error) = hospital.study(&models(&[("type ~ scale(glu) + age", "logistic")]));
    assert!(answered.is_empty(), "{answered:?}");
    assert!(error.unwrap().contains("differ from 67 that were answered with before by 1"));
    // Neither is it answered with one person more or less.
    std::fs::write(hospital.data(), lines[..lines.len() - 1].join("\n") + "\n").unwrap();
    let error = hospital.study(&models(&[("type ~ scale(glu)", "logistic")])).1;
    assert!(error.unwrap().contains("by 1, fewer than min_rows"));
}

/// A person without a trial has no part in answers about counts, and one in those about anything else; a person with a weight
/// or with trials of its own is seen by the sum.
#[test]
fn single_trials_and_weights_are_refused() {
    let with = |names: &str, more: &dyn Fn(usize) -> String| {
        let hospital = Hospital::new();
        let text = std::fs::read_to_string(hospital.data()).unwrap();
        let line = |(i, line): (usize, &str)| match i {
            0 => format!("{line},{names}\n"),
            _ => format!("{line},{}\n", more(i)),
        };
        let own: String = text.lines().enumerate().map(line).collect();
        std::fs::write(hospital.data(), own).unwrap();
        hospital
    };
    let counts = models(&[("cbind(k, f) ~ scale(glu)", "logistic")]);
    let known = models(&[("type ~ scale(glu)", "logistic")]);
    let (k, f) = (|i: usize| i % 3, |i: usize| (i + i / 7) % 3);
    let both = |i: usize| k(i) + f(i) > 0;
    for (absent, differs) in [(0, false), (1, true), (20, false)] {
        let row = move |i: usize| match i {
            _ if i <= absent => "0,0".to_string(),
            // Somebody has a trial in any case.
            _ if both(i) => format!("{},{}", k(i), f(i)),
            _ => "1,1".to_string(),
        };
        for studies in [[&counts, &known], [&known, &counts]] {
            let mut hospital = with("k,f", &row);
            let errors = studies.map(|study| hospital.study(study).1);
            let refused = errors.iter().flatten().all(|e| e.contains("by 1, fewer than min_rows"));
            assert!(
                refused && errors.iter().any(Option::is_some) == differs,
                "{absent}: {errors:?}"
            );
            let logged =
                |rows: usize| hospital.log.iter().any(|entry| entry.rows_used.count == rows as u64);
            assert!(logged(67) && logged(67 - absent) != differs, "{absent}");
        }
    }
    let weighted = format!("weights = \"u\"\n{known}");
    for (weight, guard) in [
        ((&|i: usize| u8::from(i.is_multiple_of(9)) + 1) as &dyn Fn(usize) -> u8, None),
        (&|i: usize| if i == 5 { 42 } else { 1 }, Some("guard `weights`")),
        (&|i: usize| if i == 5 { 42 } else { u8::from(i > 20) }, Some("guard `weights`")),
    ] {
        let mut hospital = with("u", &|i| weight(i).to_string());
        let (answered, error) = hospital.study(&weighted);
        assert_eq!(error.is_some(), guard.is_some(), "{error:?}");
        assert_eq!(answered.is_empty(), guard.is_some(), "{answered:?}");
        assert!(error.is_none_or(|e| e.contains(guard.unwrap())));
    }
}

/// A small site is no reason to take the doses of all for numbers: that is judged where all rows are known.
#[test]
fn a_small_site_does_not_judge_units() {
    let mut hospital = Hospital::new();
    let allow = hospital.policy.allow.clone();
    hospital.policy = Policy { allow, ..Policy::trusting() };
    let text = std::fs::read_to_string(hospital.data()).unwrap();
    let dose = |rows: usize| -> String {
        let line = |(i, line): (usize, &str)| match i {
            0 => format!("{line},dose\n"),
            _ => format!("{line},{}mg\n", 5 * (i % 15)),
        };
        text.lines().take(rows + 1).enumerate().map(line).collect()
    };
    let study = models(&[("type ~ dose", "logistic")]);
    std::fs::write(hospital.data(), dose(67)).unwrap();
    assert_eq!(hospital.study(&study).1, None);
    std::fs::write(hospital.data(), dose(20)).unwrap();
    hospital.log.clear();
    let run = hospital.begin(&study);
    let error = loop {
        match run.coordinate(&Stop, &Silent) {
            Err(Error::Waiting(waiting)) => {
                let bytes = hospital.answer(&waiting.question).unwrap();
                take_in(&run, hospital.folder.path(), &bytes);
            }
            other => break other.unwrap_err().to_string(),
        }
    };
    assert!(error.contains("column `dose`") && error.contains("take `mg` out"), "{error}");
}

/// What a question file holds.
type Posed = (Option<Context>, Vec<Question>);
type Context = (String, Vec<String>, Vec<u32>, Learned, Vec<f64>, bool, Vec<String>);
type Learned =
    (Vec<(Vec<consilience::data::Request>, Vec<consilience::data::Fact>)>, Vec<SurveyAnswer>);

/// A question file with other content, and check sums that fit it.
fn forged(path: &Path, change: impl FnOnce(&mut Posed)) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    let at = bytes.windows(2).position(|w| w == b"\n\n").unwrap() + 2;
    let mut lines = bytes.split(|b| *b == b'\n');
    let (first, header) = (lines.next().unwrap(), lines.next().unwrap());
    let mut header: Value = serde_json::from_slice(header).unwrap();
    let mut posed: Posed = postcard::from_bytes(&bytes[at..]).unwrap();
    change(&mut posed);
    let (study, ..) = posed.0.as_ref().unwrap();
    header["study"] = study_hash(&serde_json::from_str(study).unwrap()).into();
    let hex = |sum: &[u8]| sum.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let mut sum = Sha256::new();
    for field in ["study", "partition", "schema", "run"] {
        sum.update(header[field].as_str().unwrap());
    }
    sum.update(postcard::to_stdvec(&posed.1).unwrap());
    header["question"] = hex(&sum.finalize())[..32].into();
    header["asks"] = posed.1.iter().map(|q| Value::from(q.kind())).collect();
    let body = postcard::to_stdvec(&posed).unwrap();
    let head = [first, b"\n", header.to_string().as_bytes(), b"\n"].concat();
    let sum = Sha256::new().chain_update(&head).chain_update(&body).finalize();
    [&head[..], format!("sha256 {} bytes {}\n\n", hex(&sum), body.len()).as_bytes(), &body].concat()
}

/// Questions that the study does not ask, though everything about their files is right.
#[test]
fn forged_questions_are_refused() {
    let mut hospital = Hospital::new();
    // A coordinator who lies signs what it likes: as if it had.
    hospital.policy.unsigned = true;
    let run = hospital.begin(&models(&[("type ~ glu + bmi", "logistic")]));
    let open = || match run.coordinate(&Stop, &Silent) {
        Err(Error::Waiting(waiting)) => waiting.question,
        other => panic!("{other:?}"),
    };
    let path = hospital.folder.path().join("forged");
    let refused = |hospital: &mut Hospital, bytes: Vec<u8>, part: &str| {
        std::fs::write(&path, bytes).unwrap();
        // The log knows that the run was begun by somebody else: here it is the content that must not pass.
        let log = std::mem::take(&mut hospital.log);
        let error = hospital.answer(&path).unwrap_err().to_string();
        hospital.log = log;
        assert!(error.contains(part), "{error}");
    };
    let describe = open();
    // About a column that the study does not name.
    refused(
        &mut hospital,
        forged(&describe, |(_, questions)| {
            let Question::Describe(describe) = &mut questions[0] else { panic!() };
            describe.requests.push(consilience::data::Request::Column("age".into()));
        }),
        "does not ask what the study asks",
    );
    let bytes = hospital.answer(&describe).unwrap();
    take_in(&run, hospital.folder.path(), &bytes);
    let survey = open();
    // Columns like (glu == v) * bmi in the place of the study's.
    let recipe = |questions: &mut Vec<Question>| {
        let Question::Survey(survey) = &mut questions[0] else { panic!("{questions:?}") };
        let mut design = consilience::data::Recipe::clone(&survey.design);
        let crafted = consilience::data::Expr::parse("I((glu == 86) * bmi)").unwrap();
        design.variables[0] = consilience::data::Variable::Number(crafted);
        survey.design = Arc::new(design);
    };
    refused(
        &mut hospital,
        forged(&survey, |(_, questions)| recipe(questions)),
        "does not ask what the study asks",
    );
    let bytes = hospital.answer(&survey).unwrap();
    take_in(&run, hospital.folder.path(), &bytes);
    let cubic = open();
    let points = |question: &mut Question| match question {
        Question::Cubic(cubic) => cubic.0[0].clone(),
        Question::Expand(expand) => expand.0[0].clone(),
        other => panic!("{other:?}"),
    };
    refused(
        &mut hospital,
        forged(&cubic, |(_, questions)| {
            let mut points = points(&mut questions[0]);
            let mut model = consilience::Model::clone(&points.model);
            let consilience::model::Body::Regression(regression) = &mut model.body else {
                panic!()
            };
            let mut design = consilience::data::Recipe::clone(&regression.design);
            let crafted = consilience::data::Expr::parse("I((glu == 86) * bmi)").unwrap();
            design.variables[0] = consilience::data::Variable::Number(crafted);
            regression.design = Arc::new(design);
            points.model = Arc::new(model);
            questions[0] = Weigh(vec![points]).into();
        }),
        "is not what the study makes of itself",
    );
    // Far out, every row is a corner of the log likelihood.
    for (slope, part) in [(1e6, "standard deviations of its prior"), (2.0, "linear predictor of ")]
    {
        refused(
            &mut hospital,
            forged(&cubic, |(_, questions)| {
                let mut points = points(&mut questions[0]);
                points.rule = None;
                points.thetas = Arc::new(Matrix::from_rows(1, 3, vec![-120.0 * slope, slope, 0.0]));
                questions[0] = Weigh(vec![points]).into();
            }),
            part,
        );
    }
    // Facts that no site stated.
    refused(
        &mut hospital,
        forged(&cubic, |(context, _)| context.as_mut().unwrap().3.1.clear()),
        "does not ask what the study asks",
    );
    // As many points as there are rows to be found, in one file.
    hospital.policy.max_points = Some(5_000);
    refused(
        &mut hospital,
        forged(&cubic, |(_, questions)| {
            let mut points = points(&mut questions[0]);
            let theta = points.thetas.row(0).to_vec();
            points.rule = None;
            points.thetas = Arc::new(Matrix::from_rows(6_000, 3, theta.repeat(6_000)));
            questions[0] = Weigh(vec![points]).into();
        }),
        "max_points = 5000",
    );
    // Nobody signed any of these files.
    hospital.policy.unsigned = false;
    let bytes = forged(&cubic, |_| ());
    refused(&mut hospital, bytes, "nobody has signed");
    hospital.policy.coordinators = vec!["00".repeat(32)];
    let error = hospital.answer(&cubic).unwrap_err().to_string();
    assert!(error.contains("is not among `coordinators`"), "{error}");
}

/// Budgets are of the data, not of a study: another seed is no new one.
#[test]
fn a_new_seed_is_no_new_budget() {
    let mut hospital = Hospital::new();
    hospital.policy.max_points = Some(2_500);
    let study = |seed: u32| {
        models(&[("type ~ scale(glu) + scale(bmi)", "logistic")])
            + &format!("[evidence]\nseed = {seed}\n")
    };
    assert_eq!(hospital.study(&study(1)).1, None);
    let errors: Vec<Option<String>> = (2..5).map(|seed| hospital.study(&study(seed)).1).collect();
    assert!(errors.iter().flatten().any(|e| e.contains("max_points = 2500")), "{errors:?}");
    hospital.policy.max_questions = Some(hospital.log.len() as u64);
    hospital.policy.max_points = None;
    let error = hospital.study(&study(9)).1.unwrap();
    assert!(error.contains("max_questions"), "{error}");
}

/// Data that change in the middle of a run, and answers of another run of the same study.
#[test]
fn changed_data_and_swapped_answers_are_noticed() {
    let mut hospital = Hospital::new();
    hospital.policy.min_rows = 1;
    hospital.policy.max_columns = 10.0;
    let study = models(&[("type ~ glu", "logistic")]);
    let (one, other) = (hospital.begin(&study), hospital.begin(&study));
    let question = |run: &Run| match run.coordinate(&Stop, &Silent) {
        Err(Error::Waiting(waiting)) => waiting.question,
        other => panic!("{other:?}"),
    };
    let bytes = hospital.answer(&question(&one)).unwrap();
    question(&other);
    let letter = hospital.folder.path().join("letter");
    std::fs::write(&letter, &bytes).unwrap();
    let received = other.receive(std::slice::from_ref(&letter)).unwrap();
    let Received::Refused(error) = &received[0].1 else { panic!("{received:?}") };
    assert!(error.to_string().contains("did not ask"), "{error}");
    take_in(&one, hospital.folder.path(), &bytes);
    // 67 rows, then 29; then 67 again, of which one is another.
    let text = std::fs::read_to_string(hospital.data()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let changed = text.replacen("5,86,", "5,87,", 1);
    for (data, part) in
        [(lines[..30].join("\n"), "(29) than round 1 (67)"), (changed, "with other rows")]
    {
        std::fs::write(hospital.data(), data).unwrap();
        let survey = question(&one);
        let bytes = hospital.answer(&survey).unwrap();
        take_in(&one, hospital.folder.path(), &bytes);
        let error = one.coordinate(&Stop, &Silent).unwrap_err().to_string();
        assert!(error.contains("the site `leeds` answered round 2 with other rows"), "{error}");
        assert!(error.contains(part), "{error}");
        let answers = one.folder().join("answers");
        let stem = survey.file_stem().unwrap().to_string_lossy().into_owned();
        std::fs::remove_dir_all(answers.join(stem.split_once('-').unwrap().1)).unwrap();
    }
}
