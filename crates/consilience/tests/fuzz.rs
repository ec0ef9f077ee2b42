//! Files from elsewhere, damaged at random: whatever they hold, they are read or refused, without a
//! crash, a hang, or much memory.
//!
//! `FUZZ_EXECUTIONS=1000000 cargo test --release --workspace --test fuzz` runs more than the default.

use consilience::engine::Silent;
use consilience::math::{Stream, stream};
use consilience::run::{AnswerFile, Manifest, QuestionFile, Run, Stop};
use consilience::site::Policy;
use consilience::study::Study;
use rand::RngExt;
use sha2::{Digest, Sha256};
use std::path::Path;

const STUDY: &str = "[data]\npath = \"d.csv\"\n[split]\nshards = 2\n[[model]]\nformula = \"y ~ scale(x) + poly(x, 2) + g * log(x + 1)\"\nfamily = \"logistic\"\n[evidence]\nlocal = \"importance\"\ndraws = 100\nse_target = 1.0\n";

/// The files of a whole run, and texts that people write.
fn corpus(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let row =
        |i: i32| format!("{},{},{}\n", i * 7 % 5 % 2, i % 11, ["a", "b", "c"][i as usize % 3]);
    let text = "y,x,g\n".to_string() + &(0..60).map(row).collect::<String>();
    std::fs::write(folder.join("d.csv"), text).unwrap();
    let study = Study::parse(STUDY, &folder.join("s.toml")).unwrap();
    let run = Run::split(study, &folder.join("run")).unwrap();
    while run.coordinate(&Stop, &Silent).is_err() {
        run.work_all(&[0, 1], 1, false, &(), None).unwrap();
    }
    let mut files = Vec::new();
    let mut folders = vec![folder.join("run")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let kind = path.extension().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if matches!(kind.as_str(), "question" | "answer" | "json") {
                files.push((kind, std::fs::read(path).unwrap()));
            }
        }
    }
    let policy = "min_rows = 5\nmax_draws = 1000\nforbid = [\"fit\"]\nlog = \"log\"\n";
    files.push(("policy".into(), policy.into()));
    files.sort();
    files
}

/// Damages bytes somewhere.
fn damage(bytes: &mut Vec<u8>, other: &[u8], rng: &mut Stream) {
    for _ in 0..rng.random_range(1..4) {
        let at = rng.random_range(0..=bytes.len());
        match rng.random_range(0..6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.random_range(0..8),
            1 if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][rng.random_range(0..5)],
            2 => bytes.truncate(at),
            // Lengths and counts are written in groups of seven bits.
            3 => drop(bytes.splice(at..at, [0xff; 9].into_iter().take(rng.random_range(1..10)))),
            4 => drop(bytes.splice(
                at..at,
                vec![bytes.get(at).copied().unwrap_or(0); rng.random_range(1..2000)],
            )),
            _ => {
                let from = rng.random_range(0..=other.len());
                let to = (from + rng.random_range(0..64)).min(other.len());
                bytes.splice(at..at, other[from..to].iter().copied());
            }
        }
    }
}

/// Where the body of a file begins.
fn body_of(bytes: &[u8]) -> usize {
    bytes.windows(2).position(|w| w == b"\n\n").map_or(0, |at| at + 2)
}

/// Head and body with a check sum that is right: else no damage would be looked at.
fn sealed(head: &[u8], body: &[u8]) -> Vec<u8> {
    let mut lines = head.split(|b| *b == b'\n');
    let (first, second) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let head = [first, b"\n", second, b"\n"].concat();
    let sum = Sha256::new().chain_update(&head).chain_update(body).finalize();
    let hex: String = sum.iter().map(|b| format!("{b:02x}")).collect();
    [&head[..], format!("sha256 {hex} bytes {}\n\n", body.len()).as_bytes(), body].concat()
}

#[test]
fn damaged_files_are_read_or_refused() {
    let executions: u64 =
        std::env::var("FUZZ_EXECUTIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let folder = tempfile::tempdir().unwrap();
    let corpus = corpus(folder.path());
    let questions: Vec<QuestionFile> = corpus
        .iter()
        .filter(|(kind, _)| kind == "question")
        .map(|(_, bytes)| QuestionFile::parse(bytes).expect("the corpus is sound"))
        .collect();
    assert!(questions.len() > 5 && corpus.len() > 20);
    let mut rng = stream(1, 0, 0, "fuzz");
    let (mut read, mut deep) = (0u64, 0u64);
    for _ in 0..executions {
        let (kind, whole) = &corpus[rng.random_range(0..corpus.len())];
        let (_, other) = &corpus[rng.random_range(0..corpus.len())];
        let bytes = if matches!(kind.as_str(), "json" | "policy") || rng.random_bool(0.1) {
            let mut bytes = whole.clone();
            damage(&mut bytes, other, &mut rng);
            bytes
        } else {
            let (mut head, mut body) = {
                let (head, body) = whole.split_at(body_of(whole));
                (head.to_vec(), body.to_vec())
            };
            if rng.random_bool(0.15) {
                damage(&mut head, other, &mut rng);
            } else {
                damage(&mut body, other, &mut rng);
            }
            sealed(&head, &body)
        };
        match kind.as_str() {
            "question" => read += u64::from(QuestionFile::parse(&bytes).is_ok()),
            "answer" => {
                if let Ok(file) = AnswerFile::parse(&bytes) {
                    read += 1;
                    let same = |q: &&QuestionFile| q.header.question == file.header.question;
                    if let Some(question) = questions.iter().find(same) {
                        deep += u64::from(file.fits(question).is_ok());
                    }
                }
            }
            "json" => read += u64::from(Manifest::parse(&bytes).is_ok()),
            _ => read += u64::from(Policy::parse(&String::from_utf8_lossy(&bytes)).is_ok()),
        }
    }
    // Damage must reach the inside: were all files refused at the door, nothing would be tested.
    assert!(read > executions / 50 && deep > executions / 500, "{read} read, {deep} fitting");
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).expect("a line on memory");
        let kib: u64 = peak.trim().trim_end_matches(" kB").trim().parse().unwrap();
        assert!(kib < 256 << 10, "{kib} KiB of memory at the peak");
    }
}
