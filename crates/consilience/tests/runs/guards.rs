//! What a run directory does not take on trust: its manifest, keys of sites, first answers that are failures.

use crate::study;
use consilience::Error;
use consilience::engine::Silent;
use consilience::run::{Received, Run, SiteEntry, Stop, WorkerRows};
use consilience::site::{Asked, Key, Policy, answer};
use consilience::study::StudyFile;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::Path;

const STUDY: &str = "[data]\npath = \"d.csv\"\n[split]\nshards = 3\n[[model]]\nformula = \"y ~ x\"\nfamily = \"logistic\"\n";

fn data(folder: &Path) -> StudyFile {
    let row = |i: i32| format!("{},{}\n", i * 7 % 5 % 2, i * 3 % 11);
    let text = "y,x\n".to_string() + &(0..40).map(row).collect::<String>();
    std::fs::write(folder.join("d.csv"), text).unwrap();
    StudyFile::parse(STUDY, &folder.join("s.toml")).unwrap()
}

/// A manifest whose shards have names that lead elsewhere is no manifest: names are parts of paths that are
/// written, and of folders that are removed.
#[test]
fn names_that_lead_out_of_a_run_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let run = Run::split(data(folder.path()), &path).unwrap();
    assert!(matches!(run.coordinate(&Stop, &Silent), Err(Error::Waiting(_))));
    // It would take the place of the second shard's answer, and be removed.
    let prey = folder.path().join("prey.answer");
    std::fs::create_dir_all(prey.join("inside")).unwrap();
    let manifest = path.join("manifest.json");
    let whole = std::fs::read_to_string(&manifest).unwrap();
    let absolute = folder.path().join("prey").display().to_string();
    for name in ["../../../prey", &absolute, "", ".", "000002", "1", "000001/", "x", "leeds"] {
        let mut value: Value = serde_json::from_str(&whole).unwrap();
        value["shards"][1]["name"] = name.into();
        std::fs::write(&manifest, value.to_string()).unwrap();
        let error = match Run::open(&path) {
            Err(error) => error.to_string(),
            Ok(run) => panic!("{name}: {:?}", run.work(1, false, &(), &WorkerRows::default())),
        };
        assert!(error.contains("manifest.json: shard 1 in it is named"), "{name}: {error}");
    }
    assert!(prey.join("inside").is_dir());

    // Sites have names of their own, and no other.
    let sites = ["leeds", "york"].map(|name| SiteEntry { name: name.into(), key: None });
    let path = folder.path().join("sites");
    Run::for_sites(study(STUDY), &sites, &path, [1; 32]).unwrap();
    let manifest = path.join("manifest.json");
    let whole = std::fs::read_to_string(&manifest).unwrap();
    Run::open(&path).unwrap();
    for name in ["../york", "Leeds", "", "a/b"] {
        let mut value: Value = serde_json::from_str(&whole).unwrap();
        value["shards"][1]["name"] = name.into();
        std::fs::write(&manifest, value.to_string()).unwrap();
        let error = Run::open(&path).unwrap_err().to_string();
        assert!(error.contains("shard 1 in it is named"), "{name}: {error}");
    }
}

/// More shards than a manifest can hold are refused before anything is written.
#[test]
fn too_many_shards_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..100_000).map(|i| format!("{},{}\n", i % 2, i % 7)).collect();
    std::fs::write(folder.path().join("d.csv"), format!("y,x\n{rows}")).unwrap();
    let text = STUDY.replace("shards = 3", "shards = 100000");
    let study = StudyFile::parse(&text, &folder.path().join("s.toml")).unwrap();
    let path = folder.path().join("run");
    let error = Run::split(study, &path).unwrap_err();
    assert!(error.is_input(), "{error}");
    assert!(error.to_string().contains("cannot have 100000 shards"), "{error}");
    assert!(error.to_string().contains("use fewer shards"), "{error}");
    assert!(!path.exists(), "{:?}", std::fs::read_dir(&path).unwrap().collect::<Vec<_>>());
    let site = |s: usize| SiteEntry { name: format!("site-{s:030}"), key: None };
    let sites: Vec<SiteEntry> = (0..250_000).map(site).collect();
    let error = Run::for_sites(crate::study(STUDY), &sites, &path, [1; 32]).map(drop).unwrap_err();
    assert!(error.to_string().contains("cannot have 250000 shards"), "{error}");
    assert!(std::fs::read_dir(&path).map_or(true, |mut left| left.next().is_none()));
}

/// Each site has a key of its own, and one that only who has its secret can sign with.
#[test]
fn keys_that_say_nothing_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let good = Key::new([5; 32]).public();
    let hex = |bytes: [u8; 32]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    // The neutral point, and others of small order.
    let mut one = [0; 32];
    one[0] = 1;
    let mut minus_one = [0xff; 32];
    (minus_one[0], minus_one[31]) = (0xec, 0x7f);
    let order_8 = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05";
    // No point of the curve has this coordinate.
    let mut no_point = [0; 32];
    no_point[0] = 2;
    for (key, part) in [
        ("00".into(), "64 hexadecimal digits"),
        (hex([0; 32]), "anybody can sign"),
        (hex(one), "anybody can sign"),
        (hex(minus_one), "anybody can sign"),
        (order_8.into(), "anybody can sign"),
        (hex(no_point), "no public key"),
        (Key::new([0; 32]).public(), "anybody can sign"),
        (good.clone(), "is that of `leeds` too"),
        (good.to_uppercase(), "is that of `leeds` too"),
    ] {
        let entry = |name: &str, key: &str| SiteEntry { name: name.into(), key: Some(key.into()) };
        let sites = [entry("leeds", &good), entry("york", &key)];
        let error =
            Run::for_sites(study(STUDY), &sites, &folder.path().join("run"), [1; 32]).unwrap_err();
        let text = error.to_string();
        assert!(error.is_input() && text.contains("key of `york`"), "{key}: {text}");
        assert!(text.contains(part), "{key}: {text}");
    }
    let path = folder.path().join("zeros.key");
    std::fs::write(&path, "0".repeat(64)).unwrap();
    let error = Key::read(&path).unwrap_err().to_string();
    assert!(error.contains("no secret key"), "{error}");
}

/// A site's answer with a failure in the place of each reply, sealed and signed again.
fn failed(honest: &[u8], key: &Key, message: &str) -> Vec<u8> {
    use ed25519_dalek::{Signer, SigningKey};
    let text = String::from_utf8_lossy(honest);
    let mut lines = text.lines();
    let (first, header) = (lines.next().unwrap(), lines.next().unwrap());
    let mut header: Value = serde_json::from_str(header).unwrap();
    header["failed"] = true.into();
    // A list of one reply, a failure: no input, no model, no parameter, and these words.
    let length = u8::try_from(message.len()).unwrap();
    let body = [&[1, 1, 0, 0, 0, length], message.as_bytes()].concat();
    let head = format!("{first}\n{header}\n");
    let sum: [u8; 32] = Sha256::new().chain_update(&head).chain_update(&body).finalize().into();
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let secret = key.secret();
    let byte = |i: usize| u8::from_str_radix(&secret[2 * i..2 * i + 2], 16).unwrap();
    let signature = SigningKey::from_bytes(&std::array::from_fn(byte)).sign(&sum).to_bytes();
    let text = format!(
        "{head}sha256 {} bytes {}\nsignature {} {}\n\n",
        hex(&sum),
        body.len(),
        key.public(),
        hex(&signature)
    );
    [text.as_bytes(), &body].concat()
}

/// What a site could not compute it can answer later; what it has answered it cannot take back.
#[test]
fn a_failure_makes_room_for_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let _ = data(folder.path());
    let key = Key::new([4; 32]);
    let sites = [SiteEntry { name: "leeds".into(), key: Some(key.public()) }];
    let run = Run::for_sites(study(STUDY), &sites, &folder.path().join("run"), [1; 32]).unwrap();
    let question = || match run.coordinate(&Stop, &Silent) {
        Err(Error::Waiting(waiting)) => waiting.question,
        other => panic!("{other:?}"),
    };
    let letter = folder.path().join("letter.answer");
    let receive = |bytes: &[u8]| {
        std::fs::write(&letter, bytes).unwrap();
        run.receive(std::slice::from_ref(&letter)).unwrap().pop().unwrap().1
    };
    let from = [folder.path().join("d.csv").display().to_string()];
    let honest = answer(&Asked {
        question: &question(),
        data: &from,
        site: "leeds",
        policy: &Policy::trusting(),
        log: &[],
        key: Some(&key),
        keys: None,
    });
    let honest = honest.unwrap().bytes;
    let failure = failed(&honest, &key, "the disk is gone");
    assert!(matches!(receive(&failure), Received::New(_)));
    let error = run.coordinate(&Stop, &Silent).unwrap_err();
    assert!(error.to_string().contains("the disk is gone"), "{error}");
    // Another failure says nothing new.
    let again = receive(&failed(&honest, &key, "the disk is still gone"));
    assert!(
        matches!(&again, Received::Refused(e) if e.to_string().contains("before")),
        "{again:?}"
    );
    assert!(matches!(receive(&honest), Received::New(_)));
    let second = question();
    assert!(second.to_string_lossy().contains("0002-"), "{second:?}");
    // And now it stays.
    let refused = receive(&failure);
    assert!(matches!(&refused, Received::Refused(_)), "{refused:?}");
    assert_eq!(question(), second);
}
