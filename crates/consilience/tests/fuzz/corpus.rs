//! The kept corpus: files as runs write them (`ok-…`), and files that are refused, each for another reason
//! (`bad-…`; the name is the reason). They are the seeds of the fuzzing.
//!
//! `cargo test --release --workspace --test fuzz -- --ignored` writes it anew, which is needed when the
//! format of files changes.

use crate::{Verdict, damaged, judge};
use consilience::Error;
use consilience::engine::Silent;
use consilience::math::stream;
use consilience::run::{QuestionFile, Received, Run, SiteEntry, Stop, WorkerRows};
use consilience::site::{Asked, Key, Policy, answer};
use consilience::study::StudyFile;
use rand::RngExt;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A file of the corpus.
#[derive(Clone)]
pub struct Seed {
    /// `question`, `answer`, `manifest` or `policy`: the parser it is for.
    pub kind: String,
    pub name: String,
    pub bytes: Vec<u8>,
}

impl Seed {
    pub fn is_sound(&self) -> bool {
        self.name.starts_with("ok-")
    }
}

const KINDS: [&str; 4] = ["question", "answer", "manifest", "policy"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// All files, in the order of their names.
pub fn seeds() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for kind in KINDS {
        for entry in
            std::fs::read_dir(folder().join(kind)).expect("the corpus is in the repository")
        {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            seeds.push(Seed { kind: kind.into(), name, bytes: std::fs::read(path).unwrap() });
        }
    }
    seeds.sort_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
    seeds
}

/// The sound questions, which answers are held against.
pub fn questions(seeds: &[Seed]) -> Vec<QuestionFile> {
    let sound = seeds.iter().filter(|s| s.kind == "question" && s.is_sound());
    sound.map(|s| QuestionFile::parse(&s.bytes).expect("sound questions are read")).collect()
}

/// Every file is read or refused as its name says; a change of the format shows here.
#[test]
fn the_corpus_is_read_or_refused_as_its_names_say() {
    let seeds = seeds();
    let questions = questions(&seeds);
    for seed in &seeds {
        let verdict = judge(&seed.kind, &seed.bytes, &questions);
        let expected = match (seed.is_sound(), seed.kind.as_str()) {
            (true, "answer") => matches!(verdict, Verdict::Fits),
            (true, _) => matches!(verdict, Verdict::Read),
            (false, _) => matches!(verdict, Verdict::Refused(_)),
        };
        assert!(expected, "{} {}: {verdict:?}", seed.kind, seed.name);
    }
    let count = |kind: &str, sound| {
        seeds.iter().filter(|s| s.kind == kind && s.is_sound() == sound).count()
    };
    for kind in KINDS {
        assert!(count(kind, true) >= 3 && count(kind, false) >= 5, "{kind}");
    }
    assert!(count("answer", true) >= 10 && count("answer", false) >= 20);
}

/// Studies that have all kinds of questions between them.
const STUDIES: [(&str, &str); 5] = [
    (
        "exact",
        "[[model]]\nformula = \"y ~ scale(x) + poly(x, 2) + g * log(x + 1)\"\nfamily = \"logistic\"\n[evidence]\ndraws = 200\nse_target = 9.0\n",
    ),
    (
        "normal",
        "[[model]]\nformula = \"y ~ x\"\nfamily = \"poisson\"\n[evidence]\ncombine = \"normal\"\nlocal = \"nuts+warp3\"\ndraws = 200\nchains = 2\n",
    ),
    (
        "augmented",
        "[[model]]\nformula = \"y ~ x\"\nfamily = \"probit\"\n[evidence]\ncombine = \"augmented\"\ndraws = 100\nproposals = 100\n",
    ),
    (
        "gaussian",
        "[[model]]\nformula = \"x ~ factor(y) + g\"\nfamily = \"gaussian\"\n[[model]]\nformula = \"x ~ 1\"\nfamily = \"gaussian\"\n",
    ),
    ("failing", "[[model]]\nformula = \"y ~ x:w\"\nfamily = \"negative-binomial\"\n"),
];

/// Files as runs write them, the first of every kind.
fn written(folder: &Path) -> Vec<Seed> {
    let row = |i: i32| {
        format!("{},{},{},{}\n", i * 7 % 5 % 2, i % 11, ["a", "b", "c"][i as usize % 3], i % 2)
    };
    let data = "y,x,g,w\n".to_string() + &(0..60).map(row).collect::<String>();
    std::fs::write(folder.join("d.csv"), data).unwrap();
    let mut seeds: BTreeMap<(String, String), Vec<u8>> = BTreeMap::new();
    let mut add = |kind: &str, name: String, path: &Path| {
        let bytes = std::fs::read(path).unwrap();
        if bytes.len() < 12_000 {
            seeds.entry((kind.into(), name)).or_insert(bytes);
        }
    };
    for (name, text) in STUDIES {
        // A study that fails: the weights of one shard are no whole numbers.
        let weights = if name == "failing" { "weights = \"x\"\n" } else { "" };
        let text = format!("[data]\npath = \"d.csv\"\n{weights}[split]\nshards = 2\n{text}");
        if name == "failing" {
            let data = std::fs::read_to_string(folder.join("d.csv")).unwrap();
            std::fs::write(folder.join("d.csv"), data.replacen(",10,", ",0.5,", 1)).unwrap();
        }
        let study = StudyFile::parse(&text, &folder.join("s.toml")).unwrap();
        let run = Run::split(study, &folder.join(name)).unwrap();
        add("manifest", format!("ok-{name}"), &run.folder().join("manifest.json"));
        while let Err(Error::Waiting(waiting)) = run.coordinate(&Stop, &Silent) {
            run.work_all(&[0, 1], 1, false, &(), &WorkerRows::default()).unwrap();
            let kind = waiting.kind;
            add("question", format!("ok-{name}-{kind}"), &waiting.question);
            let stem = waiting.question.file_stem().unwrap().to_string_lossy().into_owned();
            let answers = run.folder().join("answers").join(stem.split_once('-').unwrap().1);
            for shard in 0..2 {
                add(
                    "answer",
                    format!("ok-{name}-{kind}-{shard}"),
                    &answers.join(format!("{shard:06}.answer")),
                );
            }
        }
    }
    // Two sites, one of which signs.
    let key = Key::new([7; 32]);
    let sites = [("leeds", Some(key.public())), ("york", None)]
        .map(|(name, key)| SiteEntry { name: name.into(), key });
    let text = "[data]\npath = \"d.csv\"\n[[model]]\nformula = \"x ~ y\"\nfamily = \"gaussian\"\n";
    let study = StudyFile::parse(text, &folder.join("s.toml")).unwrap();
    let run = Run::for_sites(study, &sites, &folder.join("sites"), [5; 32]).unwrap();
    add("manifest", "ok-sites".into(), &run.folder().join("manifest.json"));
    let data = [folder.join("d.csv").display().to_string()];
    while let Err(Error::Waiting(waiting)) = run.coordinate(&Stop, &Silent) {
        add("question", format!("ok-sites-{}", waiting.kind), &waiting.question);
        for (site, key) in [("leeds", Some(&key)), ("york", None)] {
            let (question, policy) = (&waiting.question, &Policy::trusting());
            let sent =
                answer(&Asked { question, data: &data, site, policy, log: &[], key, keys: None });
            let sent = sent.unwrap();
            let letter = folder.join("letter");
            std::fs::write(&letter, sent.bytes).unwrap();
            add("answer", format!("ok-{site}-{}", waiting.kind), &letter);
            let received = run.receive(&[letter]).unwrap();
            assert!(matches!(received[0].1, Received::New(_)), "{received:?}");
        }
    }
    for (name, text) in [
        ("empty", ""),
        (
            "all",
            "min_rows = 5\nmax_draws = 1000\nmax_questions = 9\nmax_points = 5\nallow = [\"locate\"]\nforbid = [\"fit\", \"augment\"]\nstudies = [\"00ff\"]\nlog = \"log\"\n",
        ),
        ("comments", "# ours\nmin_rows = 1_000 # rows\n\n[]\n"),
        ("tables", "forbid = []\nstudies = [\n]\n"),
    ] {
        if Policy::parse(text).is_ok() {
            seeds.insert(("policy".into(), format!("ok-{name}")), text.into());
        }
    }
    let seed = |((kind, name), bytes)| Seed { kind, name, bytes };
    seeds.into_iter().map(seed).collect()
}

/// A reason as a part of a file's name, without what it quotes.
fn slug(reason: &str) -> String {
    let unquoted: String = reason.split('`').step_by(2).collect();
    let lines: Vec<&str> = unquoted.lines().collect();
    // What is wrong with TOML stands below the place.
    let reason = if lines.len() > 1 { lines[lines.len() - 1] } else { &unquoted };
    let plain = |c: char| if c.is_ascii_alphabetic() { c.to_ascii_lowercase() } else { ' ' };
    let words: String = reason.chars().map(plain).collect();
    let words: Vec<&str> = words.split_whitespace().filter(|w| w.len() < 20).take(9).collect();
    words.join("-").chars().take(60).collect()
}

#[test]
#[ignore = "writes the corpus anew"]
fn write_the_corpus() {
    let scratch = tempfile::tempdir().unwrap();
    let mut seeds = written(scratch.path());
    let questions = questions(&seeds);
    // Damage until there is a small file for every reason to refuse one.
    let mut rng = stream(2, 0, 0, "corpus");
    let (mut found, mut sound) = (BTreeSet::new(), seeds.clone());
    sound.retain(|seed| seed.bytes.len() < 4000);
    for _ in 0..400_000 {
        let seed = &sound[rng.random_range(0..sound.len())];
        let other = &sound[rng.random_range(0..sound.len())].bytes;
        let bytes = damaged(&seed.kind, &seed.bytes, other, &mut rng);
        if bytes.len() > 4000 {
            continue;
        }
        if let Verdict::Refused(reason) = judge(&seed.kind, &bytes, &questions) {
            let name = format!("bad-{}", slug(&reason));
            // Where a message is all quotation, it is no new reason.
            if name.len() < 20 {
                continue;
            }
            let known = found.iter().filter(|(kind, _)| *kind == seed.kind).count();
            if known < 40 && found.insert((seed.kind.clone(), name.clone())) {
                seeds.push(Seed { kind: seed.kind.clone(), name, bytes });
            }
        }
    }
    for kind in KINDS {
        let folder = folder().join(kind);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
    }
    for seed in seeds {
        std::fs::write(folder().join(&seed.kind).join(&seed.name), &seed.bytes).unwrap();
    }
}
