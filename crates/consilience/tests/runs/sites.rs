//! Sites give the bits of threads: fifty of equal size, two hundred of very unequal ones.

use crate::common::{root, run_study};
use crate::{Worker, study};
use consilience::engine::Silent;
use consilience::run::{Courier, OpenRound, Received, Run, SiteEntry};
use consilience::site::{Asked, Policy, answer};
use consilience::study::StudyFile;
use consilience::{Error, Result};
use std::path::{Path, PathBuf};

/// A courier who carries the question to every site, and the answers back.
pub struct Mail<'a> {
    /// Where letters are written.
    pub folder: &'a Path,
    /// Each site's data.
    pub data: &'a (dyn Fn(usize) -> PathBuf + Sync),
}

impl Courier for Mail<'_> {
    fn fetch(&self, open: &OpenRound) -> Result<()> {
        let mut letters = Vec::new();
        for &s in &open.missing {
            let data = [(self.data)(s).display().to_string()];
            let site = format!("s{s}");
            let policy = &Policy::trusting();
            let question = open.question;
            let asked = Asked {
                question,
                data: &data,
                site: &site,
                policy,
                log: &[],
                key: None,
                keys: None,
            };
            let sent = answer(&asked)?;
            let letter = self.folder.join(format!("{site}.answer"));
            std::fs::write(&letter, sent.bytes).unwrap();
            letters.push(letter);
        }
        let received = open.run.receive(&letters)?;
        assert!(received.iter().all(|(_, r)| matches!(r, Received::New(_))), "{received:?}");
        Ok(())
    }
}

pub fn entries(count: usize) -> Vec<SiteEntry> {
    (0..count).map(|s| SiteEntry { name: format!("s{s}"), key: None }).collect()
}

/// Flights in 50 shards, both models, `exact`; threads, run directory, sites.
#[test]
fn flights_have_the_same_bits_everywhere() {
    let file = root().join("examples/flights.toml");
    let threads = run_study(StudyFile::read(&file).unwrap(), 2);
    let folder = tempfile::tempdir().unwrap();
    let run = Run::split(StudyFile::read(&file).unwrap(), &folder.path().join("run")).unwrap();
    let files = run.coordinate(&Worker, &Silent).unwrap();
    assert_eq!(files, threads);

    // The shards' own files as the data of fifty sites.
    let federation = Run::for_sites(
        StudyFile::read(&file).unwrap(),
        &entries(50),
        &folder.path().join("sites"),
        [1; 32],
    );
    let data = |s: usize| folder.path().join(format!("run/shards/{s:06}.parquet"));
    let mail = Mail { folder: folder.path(), data: &data };
    let mailed = federation.unwrap().coordinate(&mail, &Silent).unwrap();
    assert_eq!(
        serde_json::to_string(&mailed.models).unwrap(),
        serde_json::to_string(&threads.models).unwrap()
    );
    assert_eq!(mailed.partition.rows, threads.partition.rows);
}

/// Sites from two rows to two thousand, each with a share of the prior by its size.
#[test]
fn two_hundred_sites_of_unequal_sizes_give_the_bits_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let data = |s: usize| folder.path().join(format!("site-{s:03}.csv"));
    let (mut state, mut total) = (7u64, 0);
    let mut die = |sides: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % sides
    };
    let sizes: Vec<usize> =
        (0..200).map(|s| if s % 40 == 0 { 2000 } else { 2 + s * s % 97 }).collect();
    for (s, &size) in sizes.iter().enumerate() {
        let mut text = String::from("y,x,g\n");
        for _ in 0..size {
            let x = die(1000) as f64 / 250.0 - 2.0;
            let y = u64::from((die(1000) as f64) < 1000.0 / (1.0 + (-0.7 * x).exp()));
            text += &format!("{y},{x},{}\n", ["a", "b", "c"][die(3) as usize]);
        }
        std::fs::write(data(s), text).unwrap();
        total += size;
    }
    let tail = "[[model]]\nformula = \"y ~ scale(x)\"\nfamily = \"logistic\"\n[[model]]\nformula = \"y ~ scale(x) + g\"\nfamily = \"logistic\"\n";
    let pooled = format!(
        "[data]\npath = {:?}\n[split]\nby = \"file\"\nshare = \"rows\"\n{tail}",
        folder.path().join("site-*.csv")
    );
    let threads = run_study(study(&pooled), 2);
    let apart = format!("[data]\npath = \"data.csv\"\n[split]\nshare = \"rows\"\n{tail}");
    let run =
        Run::for_sites(study(&apart), &entries(200), &folder.path().join("run"), [1; 32]).unwrap();
    let mail = Mail { folder: folder.path(), data: &data };
    let mailed = run.coordinate(&mail, &Silent).unwrap();
    assert_eq!(
        serde_json::to_string(&mailed.models).unwrap(),
        serde_json::to_string(&threads.models).unwrap()
    );
    assert_eq!((mailed.partition.shards, mailed.partition.rows), (200, total));
    assert!(mailed.best == threads.best && mailed.best.name.contains("scale"));

    // A hundred drop out: those who are left are asked anew where the questions differ.
    let mut run = Run::open(&folder.path().join("run")).unwrap();
    run.leave_out(&(0..200).step_by(2).map(|s| format!("s{s}")).collect::<Vec<_>>()).unwrap();
    let fewer = run.coordinate(&mail, &Silent).unwrap();
    assert_eq!(fewer.partition.shards, 100);
    assert_eq!(fewer.warnings.iter().filter(|w| w.code == "site-left-out").count(), 100);
    let stranger = run.leave_out(&["s200".into()]).unwrap_err();
    assert!(matches!(stranger, Error::Input { .. }), "{stranger}");
}
