//! Hostile files: as large as any that is read, and of content that would grow in memory. They are refused,
//! or read, within 256 MiB.

#![cfg(target_os = "linux")]

use consilience::data::{Fact, LevelCount, Levels, Request};
use consilience::engine::Silent;
use consilience::estimate::Estimate;
use consilience::fit::{Exploration, Summary, VisitMoments, Visited};
use consilience::math::Matrix;
use consilience::question::{Answer, Describe, Expand, FitAnswer, Question};
use consilience::run::{
    AnswerFile, FORMAT, LARGEST_LETTER, Manifest, QuestionFile, Received, Run, Stop,
};
use consilience::run::{AnswerHeader, SiteEntry};
use consilience::site::Policy;
use consilience::space::Subset;
use consilience::study::StudyFile;
use consilience::{Error, Level, Warning};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::path::Path;

const STUDY: &str = "[data]\npath = \"d.csv\"\n[[model]]\nformula = \"y ~ x + a + b + c + d + e + f + g + h\"\nfamily = \"logistic\"\n";

/// A header and a body with a check sum that is right.
fn sealed(kind: &str, header: &impl Serialize, body: &[u8]) -> Vec<u8> {
    let head = format!("consilience {kind} {FORMAT}\n{}\n", serde_json::to_string(header).unwrap());
    let sum = Sha256::new().chain_update(&head).chain_update(body).finalize();
    let hex: String = sum.iter().map(|b| format!("{b:02x}")).collect();
    [format!("{head}sha256 {hex} bytes {}\n\n", body.len()).as_bytes(), body].concat()
}

/// A length as postcard writes it.
fn length(mut n: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while n > 127 {
        bytes.push((n % 128) as u8 | 128);
        n /= 128;
    }
    bytes.push(n as u8);
    bytes
}

/// `before`, then as many of an element as there is room for, with their number, then `after`.
fn flood(room: usize, before: &[u8], element: &[u8], after: &[u8]) -> Vec<u8> {
    let count = (room - before.len() - after.len() - 10) / element.len();
    [before, &length(count), &element.repeat(count), after].concat()
}

fn bytes(value: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(value).unwrap()
}

/// The most that this process has held since it was last asked, in MiB.
fn peak(of: impl FnOnce()) -> u64 {
    // Forgets the peak so far.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    of();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).expect("a line on memory");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

/// What grows in answers' bodies.
const GROWING: [&str; 8] = [
    "answers",
    "boxed answers",
    "facts",
    "levels",
    "named levels",
    "warnings",
    "numbers",
    "models",
];

/// A body of this size in which this grows.
fn body(what: &str, room: usize) -> Vec<u8> {
    let reply = |answer: &Answer| [vec![0], bytes(answer)].concat();
    let summary = Summary {
        method: String::new(),
        log_z: Estimate { value: 0.0, se: None },
        mean: vec![],
        covariance: Matrix::zeros(0, 0),
        mode: vec![],
        precision: Matrix::zeros(0, 0),
        effective: None,
        batches: vec![],
        shape: None,
        diagnostics: Default::default(),
        warnings: vec![],
    };
    let summary = reply(&Answer::Fit(Box::new(FitAnswer { summary, draws: vec![] })));
    let name = if what == "named levels" { "a" } else { "" };
    let level = LevelCount { name: name.into(), number: None, rows: 0, weight: 0.0 };
    let no_levels = Fact::Levels(Levels::default());
    // A description of one fact, up to the number of its levels and from there on.
    let description = reply(&Answer::Describe(Box::new(vec![no_levels.clone()])));
    let (to_levels, from_levels) = description.split_at(description.len() - 2);
    let one = |reply: &[u8]| [&[1], reply].concat();
    let no_weights = reply(&Answer::Weigh(Box::new(vec![vec![]])));
    match what {
        "answers" => flood(room, &[], &no_weights, &[]),
        "boxed answers" => flood(room, &[], &summary, &[]),
        "facts" => {
            let none = reply(&Answer::Describe(Box::default()));
            flood(room, &one(&none[..2]), &bytes(&no_levels), &[])
        }
        // The last of a summary's fields, after which come its draws.
        "warnings" => {
            let none = String::new;
            let (code, message, advice) = (none(), none(), none());
            let (level, shard, value) = (Level::Note, None, None);
            let warning = Warning { code, level, shard, value, message, advice };
            flood(room, &one(&summary[..summary.len() - 2]), &bytes(&warning), &[0])
        }
        // The second of an exploration's fields, after the number of draws.
        "models" => {
            let moments =
                VisitMoments { mean: vec![], covariance: Matrix::zeros(0, 0), effective: None };
            let model = Visited { model: Subset::EMPTY, visits: vec![], moments };
            let none = reply(&Answer::Explore(Box::new(Exploration {
                draws: 0,
                models: vec![],
                distinct: 0,
                inclusion: vec![],
                r_hat: vec![],
                moves: Default::default(),
                pairs: vec![],
            })));
            flood(room, &one(&none[..3]), &bytes(&model), &none[4..])
        }
        "numbers" => flood(room, &one(&no_weights[..3]), &bytes(&0.5), &[]),
        _ => flood(room, &one(to_levels), &bytes(&level), &from_levels[1..]),
    }
}

#[test]
fn hostile_files_are_dealt_with_in_256_mib() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("letter");
    let study = || StudyFile::parse(STUDY, Path::new("study.toml")).unwrap();
    let sites = [SiteEntry { name: "leeds".into(), key: None }];
    let run = Run::for_sites(study(), &sites, &folder.path().join("run"), [1; 32]).unwrap();
    let Err(Error::Waiting(waiting)) = run.coordinate(&Stop, &Silent) else { panic!("no data") };
    let question = QuestionFile::read(&waiting.question).unwrap();
    let asked = &question.header;
    let header = AnswerHeader {
        study: asked.study.clone(),
        partition: asked.partition.clone(),
        schema: asked.schema.clone(),
        question: asked.question.clone(),
        run: asked.run.clone(),
        round: 1,
        asks: asked.asks.clone(),
        shard: 0,
        site: Some("leeds".into()),
        rows: 1,
        dropped: 0,
        merged: vec![],
        commitment: None,
        failed: false,
        program: String::new(),
    };
    let mut most = Vec::new();
    let mut within = |what: &str, of: &mut dyn FnMut()| {
        let mib = peak(of);
        assert!(mib < 256, "{what}: {mib} MiB");
        most.push((mib, what.to_string()));
    };
    // At the coordinator, as large as the question allows: some megabytes.
    let Received::Refused(error) = ({
        std::fs::write(&path, vec![b'x'; 65 << 20]).unwrap();
        run.receive(std::slice::from_ref(&path)).unwrap().pop().unwrap().1
    }) else {
        panic!("65 MiB were taken")
    };
    let text = error.to_string();
    let largest: usize =
        text.split(' ').filter_map(|w| w.trim_end_matches(';').parse().ok()).nth(1).unwrap();
    assert!((1 << 20..=LARGEST_LETTER as usize).contains(&largest), "{text}");
    for what in GROWING {
        std::fs::write(&path, sealed("answer", &header, &body(what, largest - 2000))).unwrap();
        within(&format!("an answer of {what}"), &mut || {
            let received = run.receive(std::slice::from_ref(&path)).unwrap().pop().unwrap().1;
            assert!(matches!(received, Received::Refused(_)), "{what}: {received:?}");
        });
    }
    // Whoever looks at a letter of any question: as large as any is.
    let room = LARGEST_LETTER as usize - 2000;
    for what in GROWING {
        std::fs::write(&path, sealed("answer", &header, &body(what, room))).unwrap();
        within(&format!("a letter of {what}"), &mut || {
            let read = AnswerFile::read(&path);
            // Numbers take what their bytes take; nothing else of that size is sound.
            assert_eq!(read.is_ok(), what == "numbers", "{what}");
        });
    }
    // At a site: a question. Context is absent (0), or a study and sites (1).
    let describe = Question::from(Describe { requests: vec![], weights: None });
    let request = bytes(&Request::Column(String::new()));
    // A model without name, parameters and points, whose likelihood is somebody else's.
    let expand = bytes(&Question::from(Expand(vec![])))[0];
    let model = [0, 0, 1, 0, 0, 1, 0, 0, 0];
    for what in ["requests", "questions", "sites", "models", "some models", "a study"] {
        let body = match what {
            "models" => flood(room, &[0, 1, expand, 0], &model, &[]),
            // As many as are read before they are found to be too many.
            "some models" => flood(room / 16, &[0, 1, expand, 0], &model, &[]),
            "requests" => flood(room, &[0, 1, bytes(&describe)[0]], &request, &[0]),
            "questions" => flood(room, &[0], &bytes(&describe), &[]),
            "sites" => flood(room, &[1, 0], &[0], &[0]),
            _ => flood(room, &[1], b"x", &[0, 0]),
        };
        std::fs::write(&path, sealed("question", asked, &body)).unwrap();
        drop(body);
        within(&format!("a question of {what}"), &mut || {
            assert!(QuestionFile::read(&path).is_err(), "{what}");
        });
    }
    // The files of a run and of a site.
    let manifest = std::fs::read_to_string(folder.path().join("run/manifest.json")).unwrap();
    let at = manifest.find("\"names\": [").unwrap() + 10;
    let (before, after) = manifest.split_at(at);
    let text = [before, &"\"\",".repeat(((16 << 20) - manifest.len()) / 3), after].concat();
    std::fs::write(folder.path().join("run/manifest.json"), text).unwrap();
    within("a manifest", &mut || drop(Manifest::read(&folder.path().join("run"))));
    for (what, text) in [
        ("a policy of kinds", format!("forbid = [{}]", "\"\",".repeat(340_000))),
        ("a policy of brackets", format!("forbid = {}", "[".repeat(1_000_000))),
    ] {
        std::fs::write(&path, text).unwrap();
        within(what, &mut || assert!(Policy::read(&path).is_err()));
    }
    // Seen with --nocapture.
    println!("the most: {:?} MiB", most.iter().max());
}
