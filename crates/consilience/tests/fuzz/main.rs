//! Files from elsewhere, damaged at random: whatever they hold, they are read or refused, without a
//! crash, a hang, or much memory.
//!
//! `FUZZ_EXECUTIONS=1000000 cargo test --release --workspace --test fuzz` runs more than the default.

mod corpus;
mod explore;
mod greedy;
mod through;

use consilience::math::{Stream, stream};

use consilience::run::{AnswerFile, Manifest, QuestionFile};
use consilience::site::Policy;
use corpus::Seed;
use rand::RngExt;
use sha2::{Digest, Sha256};

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

/// What became of a file.
#[derive(Debug)]
enum Verdict {
    Refused(String),
    Read,
    /// It is an answer, and can be one to the question that it names.
    Fits,
}

/// Reads a file with the parser of its kind.
fn judge(kind: &str, bytes: &[u8], questions: &[QuestionFile]) -> Verdict {
    let read =
        |outcome: Result<(), String>| outcome.map_or_else(Verdict::Refused, |()| Verdict::Read);
    match kind {
        "question" => read(QuestionFile::parse(bytes).map(|_| ())),
        "manifest" => read(Manifest::parse(bytes).map(|_| ())),
        "policy" => read(Policy::parse(&String::from_utf8_lossy(bytes)).map(|_| ())),
        _ => match AnswerFile::parse(bytes) {
            Err(reason) => Verdict::Refused(reason),
            Ok(file) => {
                match questions.iter().find(|q| q.header.question == file.header.question) {
                    None => Verdict::Read,
                    Some(question) => {
                        file.fits(question).map_or_else(Verdict::Refused, |()| Verdict::Fits)
                    }
                }
            }
        },
    }
}

/// A file of this kind, damaged: mostly with a check sum that is right, or nothing would be looked at.
fn damaged(kind: &str, whole: &[u8], other: &[u8], rng: &mut Stream) -> Vec<u8> {
    if matches!(kind, "manifest" | "policy") || rng.random_bool(0.1) {
        let mut bytes = whole.to_vec();
        damage(&mut bytes, other, rng);
        return bytes;
    }
    let (head, body) = whole.split_at(body_of(whole));
    let (mut head, mut body) = (head.to_vec(), body.to_vec());
    let part = if rng.random_bool(0.15) { &mut head } else { &mut body };
    damage(part, other, rng);
    sealed(&head, &body)
}

#[test]
fn damaged_files_are_read_or_refused() {
    let executions: u64 =
        std::env::var("FUZZ_EXECUTIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let seeds = corpus::seeds();
    let sound: Vec<Seed> = seeds.iter().filter(|seed| seed.is_sound()).cloned().collect();
    let questions = corpus::questions(&seeds);
    let mut rng = stream(1, 0, 0, "fuzz");
    let (mut read, mut deep) = (0u64, 0u64);
    for _ in 0..executions {
        // Sound files more often: damage to them goes deeper.
        let from = if rng.random_bool(0.8) { &sound } else { &seeds };
        let seed = &from[rng.random_range(0..from.len())];
        let other = &seeds[rng.random_range(0..seeds.len())].bytes;
        match judge(&seed.kind, &damaged(&seed.kind, &seed.bytes, other, &mut rng), &questions) {
            Verdict::Refused(_) => {}
            Verdict::Read => read += 1,
            Verdict::Fits => deep += 1,
        }
    }
    // Damage must reach the inside: were all files refused at the door, nothing would be tested.
    assert!(read > executions / 100 && deep > executions / 100, "{read} read, {deep} fitting");
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).expect("a line on memory");
        let kib: u64 = peak.trim().trim_end_matches(" kB").trim().parse().unwrap();
        assert!(kib < 256 << 10, "{kib} KiB of memory at the peak");
    }
}
