//! Bad answer files: every kind is refused by name with a message of its own, and the rest is kept.

use consilience::data::{Fact, Moments};
use consilience::engine::Silent;
use consilience::estimate::Shape;
use consilience::math::Matrix;
use consilience::question::Answer;
use consilience::run::{AnswerFile, FORMAT, Received, Run, SiteEntry, Stop};
use consilience::site::{Asked, Key, Policy, answer};
use consilience::study::StudyFile;
use consilience::{Error, Result};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const STUDY: &str = r#"
[data]
path = "unused.csv"
[[model]]
formula = "y ~ scale(x) + g"
family = "logistic"
[evidence]
combine = "normal"
local = "importance"
draws = 400
"#;

/// Two sites with a key each, and an intruder with another.
struct Federation {
    folder: TempDir,
    run: Run,
    keys: [Key; 3],
}

impl Federation {
    fn new() -> Federation {
        let folder = tempfile::tempdir().unwrap();
        for (site, shift) in [("leeds", 0), ("york", 5)] {
            let row = |i: i32| {
                let x = f64::from((i * 7 + shift) % 13) / 3.0;
                format!("{},{x},{}\n", (i * 5 + shift) % 3 % 2, ["a", "b"][(i % 2) as usize])
            };
            let text = "y,x,g\n".to_string() + &(0..60).map(row).collect::<String>();
            std::fs::write(folder.path().join(format!("{site}.csv")), text).unwrap();
        }
        let keys = [1, 2, 3].map(|k| Key::new([k; 32]));
        let site =
            |k: usize, name: &str| SiteEntry { name: name.into(), key: Some(keys[k].public()) };
        let study = StudyFile::parse(STUDY, Path::new("study.toml")).unwrap();
        let run = Run::for_sites(
            study,
            &[site(0, "leeds"), site(1, "york")],
            &folder.path().join("run"),
            [9; 32],
        );
        Federation { run: run.unwrap(), folder, keys }
    }

    /// The open question's file.
    fn question(&self) -> PathBuf {
        match self.run.coordinate(&Stop, &Silent) {
            Err(Error::Waiting(waiting)) => waiting.question,
            other => panic!("{other:?}"),
        }
    }

    fn answer(&self, site: &str, key: usize) -> Result<Vec<u8>> {
        let data = [self.folder.path().join(format!("{site}.csv")).display().to_string()];
        let key = Some(&self.keys[key]);
        let (question, policy) = (&self.question(), &Policy::trusting());
        Ok(answer(&Asked { question, data: &data, site, policy, log: &[], key, keys: None })?.bytes)
    }

    /// Takes in one file of these bytes.
    fn receive(&self, bytes: &[u8]) -> Received {
        let path = self.folder.path().join("letter.answer");
        std::fs::write(&path, bytes).unwrap();
        self.run.receive(&[path]).unwrap().pop().unwrap().1
    }

    /// Both sites answer the open question honestly.
    fn honest_round(&self) {
        let letters = [self.answer("leeds", 0).unwrap(), self.answer("york", 1).unwrap()];
        for letter in letters {
            assert!(matches!(self.receive(&letter), Received::New(_)));
        }
    }
}

/// A file taken apart, to be put together wrongly.
struct Parts {
    first: String,
    header: Value,
    body: Vec<u8>,
}

impl Parts {
    fn of(bytes: &[u8]) -> Parts {
        let lines: Vec<usize> =
            bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i).collect();
        let text = |from: usize, to: usize| std::str::from_utf8(&bytes[from..to]).unwrap();
        let signed = text(lines[2] + 1, lines[3]).starts_with("signature");
        let body = lines[if signed { 4 } else { 3 }] + 1;
        Parts {
            first: text(0, lines[0]).into(),
            header: serde_json::from_str(text(lines[0] + 1, lines[1])).unwrap(),
            body: bytes[body..].to_vec(),
        }
    }

    /// With a check sum that is right, and a signature where there is a key.
    fn sealed(&self, key: Option<&Key>) -> Vec<u8> {
        let head = format!("{}\n{}\n", self.first, self.header);
        let sum: [u8; 32] =
            Sha256::new().chain_update(&head).chain_update(&self.body).finalize().into();
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        let mut text = format!("{head}sha256 {} bytes {}\n", hex(&sum), self.body.len());
        if let Some(key) = key {
            text += &format!("signature {} {}\n", key.public(), hex(&sign(key, &sum)));
        }
        text.push('\n');
        let mut bytes = text.into_bytes();
        bytes.extend(&self.body);
        bytes
    }

    fn with(bytes: &[u8], key: &Key, change: impl FnOnce(&mut Parts)) -> Vec<u8> {
        let mut parts = Parts::of(bytes);
        change(&mut parts);
        parts.sealed(Some(key))
    }
}

fn sign(key: &Key, sum: &[u8]) -> [u8; 64] {
    use ed25519_dalek::{Signer, SigningKey};
    let digits = key.secret();
    let byte = |i: usize| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap();
    SigningKey::from_bytes(&std::array::from_fn(byte)).sign(sum).to_bytes()
}

/// The body of answers as a file holds them: each is marked as no failure.
fn body(answers: &[Answer]) -> Vec<u8> {
    let mut bytes = vec![u8::try_from(answers.len()).unwrap()];
    for answer in answers {
        bytes.push(0);
        bytes.extend(postcard::to_stdvec(answer).unwrap());
    }
    bytes
}

/// The one answer in a file.
fn content(bytes: &[u8]) -> Answer {
    AnswerFile::parse(bytes).unwrap().answers().next().unwrap().unwrap().clone()
}

/// The file with its answer changed, rightly sealed.
fn forged(good: &[u8], key: &Key, change: impl FnOnce(&mut Answer)) -> Vec<u8> {
    let mut answer = content(good);
    change(&mut answer);
    Parts::with(good, key, |parts| parts.body = body(&[answer]))
}

struct Table<'a> {
    federation: &'a Federation,
    messages: BTreeSet<String>,
}

impl Table<'_> {
    /// The file is refused with a message that has this part and that no other kind has.
    fn refused(&mut self, what: &str, bytes: &[u8], part: &str) {
        let Received::Refused(error) = self.federation.receive(bytes) else {
            panic!("{what} was taken");
        };
        let text = error.to_string();
        assert!(error.is_input() && text.contains("letter.answer: "), "{what}: {text}");
        assert!(text.contains(part), "{what}: `{part}` is not in `{text}`");
        assert!(
            self.messages.insert(text.clone()),
            "{what}: the message is another kind's: {text}"
        );
    }
}

#[test]
fn every_kind_of_bad_file_is_refused_with_its_own_message() {
    let federation = Federation::new();
    let keys = &federation.keys;
    let [key, york, stranger] = keys;
    let good = federation.answer("leeds", 0).unwrap();
    let mut table = Table { federation: &federation, messages: BTreeSet::new() };
    let mut refused = |what: &str, bytes: &[u8], part: &str| table.refused(what, bytes, part);

    // Not whole.
    refused("an empty file", b"", "the file is empty");
    refused("another file", b"y,x\n1,2\n", "no answer file of this program");
    refused("a beginning", &good[..30], "cut short in its header");
    refused("without its end", &good[..good.len() - 1], "cut short: ");
    refused("with more at its end", &[&good[..], b"\n"].concat(), "1 bytes follow its end");
    refused("twice in one", &[&good[..], &good[..]].concat(), "bytes follow its end");
    refused("enormous", &vec![b'x'; 64 << 20], "there can be at most");
    let answer = format!("answer {FORMAT}");
    let mut long = format!("consilience answer {FORMAT}\n").into_bytes();
    long.extend(vec![b' '; 100 << 10]);
    refused("an endless header", &long, "longer than any");
    let question = std::fs::read(federation.question()).unwrap();
    refused("a question", &question, "of kind `question`");

    // Altered.
    let replace = |from: &str, to: &str| {
        let at = good.windows(from.len()).position(|w| w == from.as_bytes()).unwrap();
        [&good[..at], to.as_bytes(), &good[at + from.len()..]].concat()
    };
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    refused("a flipped bit", &flipped, "altered after it was written");
    refused("another format", &replace(&answer, "answer 99"), "of format 99");
    refused("no version", &replace(&answer, "answer x"), "names no version");
    refused("no check sum", &replace("sha256 ", "sha512 "), "third line is no check sum");
    refused("half a check sum", &replace("sha256 ", "sha256 zz"), "not 64 hexadecimal");
    refused("a length in words", &replace(" bytes ", " bytes many"), "length is no whole number");

    // Signatures.
    let parts = || Parts::of(&good);
    refused("unsigned", &parts().sealed(None), "not signed");
    refused("signed by a stranger", &parts().sealed(Some(stranger)), "not that of `leeds`");
    refused("half a signature", &replace("signature ", "signature x"), "key in it is not 64");
    refused(
        "a signature and a half",
        &replace("signature ", "signature x "),
        "not a key and a signature",
    );
    let at = good.windows(10).position(|w| w == b"signature ").unwrap() + 10 + 65;
    let mut false_signature = good.clone();
    false_signature[at] = if good[at] == b'0' { b'1' } else { b'0' };
    refused("a false signature", &false_signature, "signature is false");

    // Of others.
    let header = |field: &str, value: Value| {
        Parts::with(&good, key, |parts| parts.header[field] = value.clone())
    };
    let text = |text: &str| Value::String(text.into());
    refused("another study", &header("study", text("00")), "of another study");
    refused("another schema", &header("schema", text("00")), "other columns (schema)");
    refused("another split", &header("partition", text("00")), "another split of the data");
    refused(
        "another question",
        &header("question", text("00")),
        "question that this run did not ask",
    );
    refused("other kinds", &header("asks", serde_json::json!(["fit"])), "other kinds of questions");
    refused("no such shard", &header("shard", 7.into()), "shard 7, which the run does not have");
    refused("of another's site", &header("site", text("hull")), "`hull`, which is not shard 0");
    refused("of no site", &header("site", Value::Null), "names its site");
    refused(
        "a failure that is none",
        &header("failed", true.into()),
        "disagree on whether it failed",
    );
    refused("a field too many", &header("extra", 1.into()), "unknown field `extra`");
    refused("a shard in words", &header("shard", text("x")), "invalid type: string \"x\"");
    let without = Parts::with(&good, key, |p| {
        p.header.as_object_mut().unwrap().remove("rows");
    });
    refused("a field too few", &without, "missing field `rows`");
    let as_york = Parts::with(&good, york, |p| p.header["shard"] = 1.into());
    refused("leeds as york", &as_york, "`leeds`, which is not shard 1");

    // Of wrong content.
    let with_body = |bytes: Vec<u8>| Parts::with(&good, key, |parts| parts.body = bytes.clone());
    refused("no content", &with_body(vec![]), "cannot be read");
    refused(
        "content and more",
        &with_body([&parts().body[..], &[0]].concat()),
        "belong to nothing",
    );
    refused("no answers", &with_body(vec![0]), "answers 0 questions of 1");
    refused(
        "weights for a description",
        &with_body(body(&[Answer::Weigh(Box::default())])),
        "`describe` with something else",
    );
    refused(
        "too few facts",
        &with_body(body(&[Answer::Describe(Box::default())])),
        "0 facts about",
    );
    let facts = |change: &dyn Fn(&mut Vec<Fact>)| {
        forged(&good, key, |answer| match answer {
            Answer::Describe(facts) => change(facts),
            other => panic!("{other:?}"),
        })
    };
    refused(
        "a fact of another kind",
        &facts(&|f| f[0] = Fact::Moments(Moments::default())),
        "fact of another kind",
    );
    let column = |change: fn(&mut consilience::data::ColumnFact)| {
        facts(&|facts| {
            let number = facts.iter_mut().find_map(|f| match f {
                Fact::Column(c) if c.numbers.rows > 0 => Some(c),
                _ => None,
            });
            change(number.expect("a column of numbers"));
        })
    };
    refused("a NaN sum", &column(|c| c.numbers.mean = f64::NAN), "column sums are not finite");
    refused(
        "sums at odds",
        &column(|c| c.numbers.min = c.numbers.max + 1.0),
        "contradict each other",
    );

    // The rest is kept: the good one is taken, and once only.
    assert!(matches!(federation.receive(&good), Received::New(site) if site == "leeds"));
    assert!(matches!(federation.receive(&good), Received::Known(_)));
    let twice = Parts::with(&good, key, |parts| parts.header["rows"] = 61.into());
    refused("another answer", &twice, "has answered this question before");
    let york_answer = federation.answer("york", 1).unwrap();
    assert!(matches!(federation.receive(&york_answer), Received::New(_)));

    // Surveys.
    let good = federation.answer("leeds", 0).unwrap();
    let survey = |change: fn(&mut consilience::question::SurveyAnswer)| {
        forged(&good, key, |answer| match answer {
            Answer::Survey(survey) => change(survey),
            other => panic!("{other:?}"),
        })
    };
    refused("minus one row", &survey(|s| s.observations = -1.0), "number of rows is negative");
    refused("a column too few", &survey(|s| s.nonzero.truncate(1)), "more columns or fewer");
    refused("more than all rows", &survey(|s| s.nonzero[0] = 1e9), "more rows in a column");
    refused("a mean too few", &survey(|s| s.means.truncate(1)), "means of columns are too many or");
    refused("no mean", &survey(|s| s.means[0] = f64::NAN), "means of columns are not finite");
    refused("no offset", &survey(|s| s.offset = f64::INFINITY), "mean of the offsets is not");
    refused("negative squares", &survey(|s| s.squares[1] = -1.0), "squared deviations are neg");
    federation.honest_round();

    // Fits.
    let good = federation.answer("leeds", 0).unwrap();
    let fit = |change: fn(&mut consilience::fit::Summary)| {
        forged(&good, key, |answer| match answer {
            Answer::Fit(fit) => change(&mut fit.summary),
            other => panic!("{other:?}"),
        })
    };
    refused("a NaN evidence", &fit(|s| s.log_z.value = f64::NAN), "log evidence is not finite");
    refused("a negative error", &fit(|s| s.log_z.se = Some(-0.1)), "standard error is negative");
    refused("a short mean", &fit(|s| s.mean.truncate(1)), "mean or mode has the wrong length");
    refused("an infinite mode", &fit(|s| s.mode[0] = f64::INFINITY), "mean or mode is not finite");
    refused(
        "a small covariance",
        &fit(|s| s.covariance = Matrix::identity(2)),
        "covariance has the wrong size",
    );
    refused(
        "a NaN covariance",
        &fit(|s| s.covariance[(0, 1)] = f64::NAN),
        "covariance is not finite",
    );
    refused("a lopsided covariance", &fit(|s| s.covariance[(0, 1)] += 1.0), "not symmetric");
    let indefinite: fn(&mut consilience::fit::Summary) = |s| {
        s.covariance = Matrix::from_rows(3, 3, vec![1.0, 2.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    };
    refused("an indefinite covariance", &fit(indefinite), "not positive definite");
    refused("a NaN precision", &fit(|s| s.precision[(1, 1)] = f64::NAN), "precision is not finite");
    refused(
        "no effective draws",
        &fit(|s| s.effective = Some(0.0)),
        "effective draws is not positive",
    );
    refused(
        "no shape",
        &fit(|s| s.shape = s.shape.map(|shape| Shape { variance: -1.0, ..shape })),
        "normal shape is not sound",
    );
    refused("a NaN batch", &fit(|s| s.batches[0].mean[0] = f64::NAN), "a batch of its draws");

    // After all of this the run ends as if nothing had been.
    let kinds = table.messages.len();
    federation.honest_round();
    let result = federation.run.coordinate(&Stop, &Silent).unwrap();
    let quiet = Federation::new();
    (0..3).for_each(|_| quiet.honest_round());
    assert_eq!(result, quiet.run.coordinate(&Stop, &Silent).unwrap());
    assert!(kinds >= 50, "{kinds} kinds");
}
