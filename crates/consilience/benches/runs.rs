//! How long it takes to look at, and to combine, a run directory of 1,000 shards with more than 10,000
//! answer files. `cargo bench --workspace --bench runs`

use consilience::engine::Silent;
use consilience::run::{Run, Stop, WorkerRows};
use consilience::study::StudyFile;
use std::path::Path;
use std::time::Instant;

const SHARDS: usize = 1000;

fn main() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/flights.parquet");
    let text = format!(
        "[data]\npath = {data:?}\n[split]\nshards = {SHARDS}\n[prior]\ndefault = \"normal(0, 1)\"\n[[model]]\nformula = \"late ~ dep_delay\"\nfamily = \"logistic\"\n[[model]]\nformula = \"late ~ 0 + carrier\"\nfamily = \"logistic\"\n"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let timed = |what: &str, work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        println!("{what:<42} {:6.2} s", start.elapsed().as_secs_f64());
    };
    let study = StudyFile::parse(&text, Path::new("study.toml")).expect("a study");
    let mut run = None;
    timed("split into 1,000 shards", &mut || {
        run = Some(Run::split(study.clone(), folder.path()).expect("a run"));
    });
    let run = run.expect("it was made");
    let shards: Vec<usize> = (0..SHARDS).collect();
    let (mut rounds, mut combining, mut working) = (0, 0.0f64, 0.0);
    loop {
        let start = Instant::now();
        let finished = run.coordinate(&Stop, &Silent).is_ok();
        combining = combining.max(start.elapsed().as_secs_f64());
        if finished {
            break;
        }
        rounds += 1;
        let start = Instant::now();
        run.work_all(&shards, 2, false, &(), &WorkerRows::default()).expect("work");
        working += start.elapsed().as_secs_f64();
    }
    println!("{:<42} {working:6.2} s", format!("work of {rounds} rounds on 2 threads"));
    println!("{:<42} {combining:6.2} s", "the slowest `combine` on the way");
    let files = std::fs::read_dir(folder.path().join("answers"))
        .expect("answers")
        .map(|round| std::fs::read_dir(round.expect("a round").path()).expect("answers").count())
        .sum::<usize>();
    println!("{:<42} {files:6}", "answer files");
    timed("status", &mut || drop(run.status().expect("a status")));
    timed("combine, from all answers", &mut || {
        drop(run.coordinate(&Stop, &Silent).expect("a result"))
    });
}
