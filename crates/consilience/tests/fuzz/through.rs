//! Hostile files all the way through: a site answers questions that no coordinator asked, and a coordinator
//! combines answers that no site gave. Every hash and check sum is right, as a liar would have it, so that
//! nothing stops the damage but the checks of what the files say.

use crate::{body_of, damage, sealed};
use consilience::data::{Column, Fact, Origin, Request, Table};
use consilience::engine::Silent;
use consilience::math::{Stream, stream};
use consilience::question::{Explore, Question, SurveyAnswer};
use consilience::run::{QuestionFile, Received, Run, SiteEntry, Stop, study_hash};
use consilience::site::{Asked, Policy, answer};
use consilience::study::{Study, StudyFile};
use consilience::{Error, Result, Shard};
use rand::RngExt;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Small studies that ask every kind of question between them.
pub const STUDIES: [&str; 5] = [
    "[[model]]\nformula = \"y ~ scale(x) + poly(x, 2) + g\"\nfamily = \"logistic\"\n[[model]]\nformula = \"y ~ x\"\nfamily = \"logistic\"\n[evidence]\ndraws = 200\nse_target = 9.0\n",
    "[[model]]\nformula = \"y ~ x\"\nfamily = \"poisson\"\n[evidence]\ncombine = \"normal\"\nlocal = \"importance\"\ndraws = 200\n",
    "[[model]]\nformula = \"y ~ x + g\"\nfamily = \"probit\"\n[evidence]\ncombine = \"augmented\"\ndraws = 100\nwarmup = 100\nchains = 1\nproposals = 100\n",
    "[[model]]\nformula = \"x ~ factor(y) + g\"\nfamily = \"gaussian\"\n[[model]]\nformula = \"x ~ 1\"\nfamily = \"gaussian\"\n",
    "[[model]]\nformula = \"y ~ x\"\nfamily = \"negative-binomial\"\n[evidence]\ncombine = \"cmc-is\"\nlocal = \"laplace\"\ndraws = 100\nproposals = 200\n",
];

/// What every question file holds beside its questions, and these.
pub type Posed = (Option<Context>, Vec<Question>);

/// The study and its sites, those who take part, what they said before, and scales of priors.
pub type Context = (String, Vec<String>, Vec<u32>, Learned, Vec<f64>, bool, Vec<String>);
pub type Learned = (Vec<(Vec<Request>, Vec<Fact>)>, Vec<SurveyAnswer>);

const LEVELS: [&str; 3] = ["a", "b", "c"];

/// The rows y, x, g of a site.
fn rows(shift: i32) -> impl Iterator<Item = (i32, i32, u32)> {
    (0..40).map(move |i| ((i * 7 + shift) % 5 % 2, (i * 3 + shift) % 11, i as u32 % 3))
}

/// A site's rows as a shard, which obeys whoever asks.
fn shard(shift: i32) -> Shard {
    let numbers = |pick: fn((i32, i32, u32)) -> i32| {
        Column::Number(rows(shift).map(|row| f64::from(pick(row))).collect())
    };
    let codes = rows(shift).map(|(_, _, g)| g).collect();
    let levels = Arc::new(LEVELS.map(String::from).to_vec());
    let columns = [
        ("y", numbers(|(y, _, _)| y)),
        ("x", numbers(|(_, x, _)| x)),
        ("g", Column::Text { codes, levels }),
    ];
    let columns = columns.map(|(name, column)| (name.to_string(), column)).into();
    let rows = (0..40).map(|i| (0, i + 2)).collect();
    Shard::new(
        0,
        Table::new(columns, Origin { files: Arc::new(vec![("d.csv".into(), true)]), rows }),
    )
}

/// A run of two sites that was answered honestly to its end.
pub struct Honest {
    run: Run,
    pub folder: PathBuf,
    /// Question files, and the sites' answers to them.
    pub rounds: Vec<(PathBuf, [PathBuf; 2])>,
}

impl Honest {
    pub fn new(folder: PathBuf, text: &str) -> Honest {
        std::fs::create_dir_all(&folder).unwrap();
        for (site, shift) in [("leeds", 0), ("york", 4)] {
            let row = |(y, x, g): (i32, i32, u32)| format!("{y},{x},{}\n", LEVELS[g as usize]);
            let data = "y,x,g\n".to_string() + &rows(shift).map(row).collect::<String>();
            std::fs::write(folder.join(format!("{site}.csv")), data).unwrap();
        }
        let study = format!("[data]\npath = \"d.csv\"\n{text}");
        let study = StudyFile::parse(&study, &folder.join("s.toml")).unwrap();
        let sites = ["leeds", "york"].map(|name| SiteEntry { name: name.into(), key: None });
        let run = Run::for_sites(study, &sites, &folder.join("run"), [3; 32]).unwrap();
        let mut honest = Honest { run, folder, rounds: Vec::new() };
        while let Err(Error::Waiting(waiting)) = honest.run.coordinate(&Stop, &Silent) {
            let name = waiting.question.file_stem().unwrap().to_string_lossy().into_owned();
            let answers = honest.run.folder().join("answers").join(name.split_once('-').unwrap().1);
            let files = ["leeds", "york"].map(|site| {
                let letter = honest.folder.join("letter");
                std::fs::write(&letter, honest.answer(&waiting.question, site).unwrap()).unwrap();
                let received = honest.run.receive(&[letter]).unwrap();
                assert!(matches!(received[0].1, Received::New(_)), "{received:?}");
                answers.join(format!("{site}.answer"))
            });
            honest.rounds.push((waiting.question, files));
        }
        honest
    }

    fn answer(&self, question: &Path, site: &str) -> Result<Vec<u8>> {
        let data = [self.folder.join(format!("{site}.csv")).display().to_string()];
        // A question may ask for more than there is time for, which is what the policy is for.
        let policy = &Policy { max_draws: Some(2000), ..Policy::trusting() };
        Ok(answer(&Asked { question, data: &data, site, policy, log: &[], key: None, keys: None })?
            .bytes)
    }

    /// Removes what a coordinator wrote since, and puts this file back.
    fn mend(&self, path: &Path, bytes: &[u8]) {
        std::fs::write(path, bytes).unwrap();
        let _ = std::fs::remove_file(self.run.folder().join("failed.txt"));
        for (entries, known) in [
            ("questions", self.rounds.iter().map(|(q, _)| q.clone()).collect::<Vec<_>>()),
            ("answers", self.rounds.iter().map(|(_, a)| a[0].parent().unwrap().into()).collect()),
        ] {
            for entry in std::fs::read_dir(self.run.folder().join(entries)).unwrap() {
                let path = entry.unwrap().path();
                if !known.contains(&path) {
                    let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
                }
            }
        }
    }
}

fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|b| format!("{b:02x}")).collect()
}

/// Changes a value somewhere in a JSON document, or takes it away.
fn disturb(value: &mut Value, rng: &mut Stream) {
    match value {
        Value::Object(map) if !map.is_empty() && rng.random_bool(0.9) => {
            let at = rng.random_range(0..map.len());
            let key = map.keys().nth(at).unwrap().clone();
            if rng.random_bool(0.1) { drop(map.remove(&key)) } else { disturb(&mut map[&key], rng) }
        }
        Value::Array(list) if !list.is_empty() && rng.random_bool(0.8) => {
            let at = rng.random_range(0..list.len());
            match rng.random_range(0..4) {
                0 => drop(list.remove(at)),
                1 => list.push(list[at].clone()),
                _ => disturb(&mut list[at], rng),
            }
        }
        Value::Array(list) => list.clear(),
        _ => {
            let values = [
                Value::Null,
                true.into(),
                0.into(),
                (-1).into(),
                3.into(),
                1e300.into(),
                "".into(),
                "y ~ x".into(),
                "nonsense \u{1b}[31m".into(),
                Value::Array(vec![]),
            ];
            *value = values[rng.random_range(0..values.len())].clone();
        }
    }
}

/// A question file with other content and the right hashes for it. `None` if nothing can be read from it, or if
/// the study in it is none.
pub fn forged(bytes: &[u8], body: &[u8], change: impl FnOnce(&mut Posed)) -> Option<Vec<u8>> {
    let mut lines = bytes.split(|b| *b == b'\n');
    let (first, header) = (lines.next()?, lines.next()?);
    let mut header: Value = serde_json::from_slice(header).ok()?;
    let mut posed: Posed = postcard::from_bytes(body).ok()?;
    change(&mut posed);
    if let Some((study, ..)) = &posed.0 {
        header["study"] = study_hash(&serde_json::from_str::<Study>(study).ok()?).into();
    }
    let mut sum = Sha256::new();
    for field in ["study", "partition", "schema", "run"] {
        sum.update(header[field].as_str()?);
    }
    sum.update(postcard::to_stdvec(&posed.1).ok()?);
    header["question"] = hex(sum.finalize())[..32].into();
    header["asks"] = posed.1.iter().map(|q| Value::from(q.kind())).collect();
    let body = postcard::to_stdvec(&posed).ok()?;
    Some(sealed(&[first, b"\n", header.to_string().as_bytes(), b"\n"].concat(), &body))
}

/// A question file with damage to its study or to its questions.
fn damaged_question(bytes: &[u8], other: &[u8], rng: &mut Stream) -> Option<Vec<u8>> {
    let mut body = bytes[body_of(bytes)..].to_vec();
    if rng.random_bool(0.3) {
        return forged(bytes, &body, |(context, _)| {
            let Some((study, ..)) = context else { return };
            let mut value: Value = serde_json::from_str(study).unwrap();
            disturb(&mut value, rng);
            *study = value.to_string();
        });
    }
    damage(&mut body, other, rng);
    forged(bytes, &body, |_| ())
}

/// What became of a file: how far it came, or how it broke what must not break.
fn outcome<T>(work: impl FnOnce() -> Result<T>) -> std::result::Result<&'static str, String> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Err(panic) => Err(format!("panic: {:?}", panic.downcast_ref::<String>())),
        Ok(Err(error)) if error.to_string().contains("a defect") => Err(error.to_string()),
        Ok(Ok(_)) => Ok("answered"),
        Ok(Err(Error::Waiting(waiting))) if waiting.refused.is_empty() => Ok("asked on"),
        Ok(Err(Error::Waiting(_))) => Ok("refused"),
        Ok(Err(Error::Input { .. })) => Ok("refused"),
        Ok(Err(_)) => Ok("no result"),
    }
}

fn executions() -> u64 {
    std::env::var("FUZZ_EXECUTIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000)
}

/// Half of the executions on each of two threads, every thread with runs of its own.
fn hunt(
    what: &str,
    one: impl Fn(&Honest, &mut Stream) -> std::result::Result<&'static str, String> + Sync,
) {
    // In memory, where there is such a place: files are written and synced by the thousand.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let folder = folder.unwrap();
    let count = executions() / 2;
    let half = |thread: u64| {
        let runs: Vec<Honest> = (0..STUDIES.len())
            .map(|i| Honest::new(folder.path().join(format!("{thread}-{i}")), STUDIES[i]))
            .collect();
        let (mut seen, mut faults) = (BTreeMap::<&str, u64>::new(), Vec::new());
        for k in 0..count / 2 {
            let mut rng = stream(thread + 1, k, 0, what);
            match one(&runs[rng.random_range(0..runs.len())], &mut rng) {
                Ok(came) => *seen.entry(came).or_default() += 1,
                Err(fault) => faults.push(format!("thread {thread}, file {k}: {fault}")),
            }
        }
        (seen, faults)
    };
    let halves = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        [half(0), other.join().unwrap()]
    });
    let mut seen = BTreeMap::<&str, u64>::new();
    for (half, faults) in halves {
        assert!(
            faults.is_empty(),
            "{} faults, such as {:?}",
            faults.len(),
            &faults[..faults.len().min(5)]
        );
        half.into_iter().for_each(|(came, count)| *seen.entry(came).or_default() += count);
    }
    println!("{what}: {seen:?}");
    // Damage must come through: were all files refused at the door, nothing would be tested.
    let through: u64 = seen.iter().filter(|(came, _)| **came != "refused").map(|(_, n)| n).sum();
    assert!(through > count / 50, "{seen:?}");
}

#[test]
fn a_site_survives_any_question() {
    hunt("questions", |honest, rng| {
        let (question, _) = &honest.rounds[rng.random_range(0..honest.rounds.len())];
        let (other, _) = &honest.rounds[rng.random_range(0..honest.rounds.len())];
        let (bytes, other) = (std::fs::read(question).unwrap(), std::fs::read(other).unwrap());
        let Some(forged) = damaged_question(&bytes, &other, rng) else { return Ok("refused") };
        let path = honest.folder.join("forged.question");
        std::fs::write(&path, &forged).unwrap();
        let site = ["leeds", "york"][rng.random_range(0..2)];
        let came = outcome(|| {
            consilience::site::explain(&path)?;
            honest.answer(&path, site)
        })?;
        // A site refuses nearly all of it, since it knows what the study asks. Workers obey: so deep does damage go.
        let questions = match QuestionFile::parse(&forged) {
            Ok(file) if file.questions().iter().all(|q| q.draws() <= 2000) => file,
            _ => return Ok(came),
        };
        let shard = shard(rng.random_range(0..5));
        outcome(|| {
            for question in questions.questions() {
                question.answer(&shard)?.check(question)?;
            }
            Ok(())
        })
    });
}

#[test]
fn a_coordinator_survives_any_answer() {
    hunt("answers", |honest, rng| {
        let (_, answers) = &honest.rounds[rng.random_range(0..honest.rounds.len())];
        let path = &answers[rng.random_range(0..2)];
        let bytes = std::fs::read(path).unwrap();
        let (_, others) = &honest.rounds[rng.random_range(0..honest.rounds.len())];
        let (head, body) = bytes.split_at(body_of(&bytes));
        let mut body = body.to_vec();
        damage(&mut body, &std::fs::read(&others[0]).unwrap(), rng);
        std::fs::write(path, sealed(head, &body)).unwrap();
        let came = outcome(|| honest.run.coordinate(&Stop, &Silent));
        honest.mend(path, &bytes);
        came
    });
}

/// The files that once brought a site or a coordinator down, or that would take out what stays at a site.
#[test]
fn known_attacks_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let honest = Honest::new(folder.path().join("a"), STUDIES[2]);
    let round = |honest: &Honest, kind: &str| {
        let asks = |(question, _): &&(PathBuf, [PathBuf; 2])| {
            QuestionFile::read(question).unwrap().header.asks[0] == kind
        };
        honest.rounds.iter().find(asks).unwrap().clone()
    };
    let refused = |honest: &Honest, kind: &str, change: &dyn Fn(&mut Posed)| {
        let bytes = std::fs::read(round(honest, kind).0).unwrap();
        let path = folder.path().join("forged");
        let forged = forged(&bytes, &bytes[body_of(&bytes)..], |posed| change(posed)).unwrap();
        std::fs::write(&path, forged).unwrap();
        let error = honest.answer(&path, "leeds").unwrap_err();
        assert!(error.is_input(), "{error}");
        error.to_string()
    };
    // A study without models.
    let error = refused(&honest, "describe", &|(context, _)| {
        let (study, ..) = context.as_mut().unwrap();
        let mut value: Value = serde_json::from_str(study).unwrap();
        value["model"] = Value::Array(vec![]);
        *study = value.to_string();
    });
    assert!(error.contains("no model"), "{error}");
    // The draws of a site's chains.
    let fitted = Honest::new(folder.path().join("b"), STUDIES[1]);
    let error = refused(&fitted, "fit", &|(_, questions)| {
        let Question::Fit(fit) = &mut questions[0] else { panic!("{questions:?}") };
        fit.draws = true;
    });
    assert!(error.contains("which stay here"), "{error}");
    // Answers: a survey of fewer columns, an augmentation without batches.
    for (kind, change, part) in [
        ("survey", cut_survey as fn(&mut consilience::question::Answer), "more columns or fewer"),
        ("augment", no_batches, "no batches"),
    ] {
        let path = &round(&honest, kind).1[0];
        let bytes = std::fs::read(path).unwrap();
        let file = consilience::run::AnswerFile::parse(&bytes).unwrap();
        let mut answer = file.answers().next().unwrap().unwrap().clone();
        change(&mut answer);
        let body = [&[1, 0][..], &postcard::to_stdvec(&answer).unwrap()].concat();
        std::fs::write(path, sealed(&bytes[..body_of(&bytes)], &body)).unwrap();
        let Err(Error::Waiting(waiting)) = honest.run.coordinate(&Stop, &Silent) else {
            panic!("{kind}: it was believed")
        };
        assert!(waiting.refused[0].contains(part), "{kind}: {waiting}");
        honest.mend(path, &bytes);
    }
}

/// A site explores a space of models if its policy lets it and the study has one, and tells what it told.
#[test]
fn a_site_explores_a_space() {
    let folder = tempfile::tempdir().unwrap();
    let honest = Honest::new(folder.path().join("a"), STUDIES[1]);
    let text = "[data]\npath = \"d.csv\"\n[select]\noutcome = \"y\"\nfamily = \"poisson\"\ncandidates = \"x\"\nmethod = \"jump-shares\"\n[evidence]\ndraws = 400\nwarmup = 100\nchains = 2\n";
    let study = StudyFile::parse(text, &folder.path().join("s.toml")).unwrap();
    let sites = ["leeds", "york"].map(|name| SiteEntry { name: name.into(), key: None });
    let run = Run::for_sites(study, &sites, &folder.path().join("run"), [4; 32]).unwrap();
    let question = loop {
        let Err(Error::Waiting(waiting)) = run.select(&[], &Stop, &Silent) else {
            panic!("no answers")
        };
        if waiting.kind == "explore" {
            break waiting.question;
        }
        for site in ["leeds", "york"] {
            let letter = folder.path().join("letter");
            std::fs::write(&letter, honest.answer(&waiting.question, site).unwrap()).unwrap();
            run.receive(&[letter]).unwrap();
        }
    };
    let told = consilience::site::explain(&question).unwrap();
    assert!(told.contains("how often Markov chains visit each"), "{told}");
    let path = folder.path().join("answer");
    std::fs::write(&path, honest.answer(&question, "leeds").unwrap()).unwrap();
    let told = consilience::site::explain(&path).unwrap();
    assert!(told.contains("draws visited: 2"), "{told}");
    let bytes = std::fs::read(&question).unwrap();
    let refused = |change: &dyn Fn(&mut Explore)| {
        let forged = forged(&bytes, &bytes[body_of(&bytes)..], |(_, questions)| {
            let Question::Explore(explore) = &mut questions[0] else { panic!("{questions:?}") };
            change(explore);
        });
        let path = folder.path().join("forged");
        std::fs::write(&path, forged.unwrap()).unwrap();
        honest.answer(&path, "leeds").unwrap_err().to_string()
    };
    let error = refused(&|explore| explore.order.draws = 2000);
    assert!(error.contains("draws, more than max_draws"), "{error}");
    let error = refused(&|explore| {
        let mut space = consilience::space::Space::clone(&explore.space);
        space.terms[0].columns = vec![7];
        explore.space = Arc::new(space);
    });
    assert!(error.contains("no parameter's"), "{error}");
}

fn cut_survey(answer: &mut consilience::question::Answer) {
    let consilience::question::Answer::Survey(survey) = answer else { panic!("{answer:?}") };
    survey.nonzero.pop();
}

fn no_batches(answer: &mut consilience::question::Answer) {
    let consilience::question::Answer::Augment(augmentation) = answer else { panic!("{answer:?}") };
    augmentation.summary.batches.clear();
}
