//! Runs whose questions and answers are files: the same bits as on threads, nothing computed twice,
//! and one coordinator at a time.

mod codebook;
#[path = "../common/mod.rs"]
mod common;
mod guards;
mod sites;
mod wishes;

use common::{Case, run_study};
use consilience::compare::Comparison;
use consilience::engine::Silent;
use consilience::run::{Courier, OpenRound, Run, Stop, WorkerRows};
use consilience::study::{Overrides, StudyFile};
use consilience::{Error, Result};
use std::path::Path;

/// A courier who works on all missing shards at once.
struct Worker;

impl Courier for Worker {
    fn fetch(&self, open: &OpenRound) -> Result<()> {
        let run = Run::open(open.run.folder())?;
        run.work_all(&open.missing, 2, false, &(), &WorkerRows::default()).map(|_| ())
    }
}

fn study(text: &str) -> StudyFile {
    StudyFile::parse(text, Path::new("study.toml")).unwrap()
}

/// Everything but what depends on how the data were split.
fn bits(comparison: &Comparison) -> String {
    serde_json::to_string(&(&comparison.models, comparison.traffic)).unwrap()
}

fn mixed(evidence: &str) -> String {
    let mut case = Case::new("pima_tr.csv", 5);
    case.evidence = evidence.into();
    // Narrow: with any shard left out the posterior stays where the draws are.
    case.prior = "[prior.parameters]\n\"poly(bmi, 2)\" = \"normal(0, 0.07)\"".into();
    case.model("type ~ scale(glu) + poly(bmi, 2)", "logistic");
    case.model("type ~ factor(npreg > 3) * age", "probit");
    case.text()
}

#[test]
fn a_run_directory_gives_the_bits_of_threads() {
    for evidence in
        ["combine = \"exact\"", "combine = \"normal\"", "local = \"gibbs+chib\"\ndraws = 500"]
    {
        let folder = tempfile::tempdir().unwrap();
        let run = Run::split(study(&mixed(evidence)), folder.path()).unwrap();
        let threads = run_study(study(&mixed(evidence)), 2);
        let files = run.coordinate(&Worker, &Silent).unwrap();
        assert_eq!(bits(&files), bits(&threads), "{evidence}");
        assert_eq!(files, threads, "{evidence}");
        // Again, from the answers alone.
        assert_eq!(run.coordinate(&Stop, &Silent).unwrap(), threads, "{evidence}");
    }
}

/// Effects of groups as well, which shards integrate out.
#[test]
fn random_effects_have_the_bits_of_threads_in_a_run_directory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("groups.csv");
    let mut text = "y,x,h,region\n".to_string();
    for i in 0..120_u32 {
        let (h, x) = (i % 12, f64::from(i * 37 % 101) / 40.0 - 1.2);
        let level = f64::from(h * 7 % 12) / 6.0 - 1.0 + 0.5 * x;
        let y = level + (f64::from(i) * 1.7).sin();
        text += &format!("{y},{x},h{h},r{}\n", h % 5);
    }
    std::fs::write(&path, text).unwrap();
    for evidence in ["", "combine = \"normal\"\nlocal = \"importance\"\ndraws = 500"] {
        let mut case = Case::new(path.to_str().unwrap(), 1);
        case.split = "by = \"column:region\"".into();
        case.evidence = evidence.into();
        case.model("y ~ x + (1 | h)", "gaussian");
        case.model("y ~ x", "gaussian");
        let run = Run::split(study(&case.text()), &folder.path().join(evidence.len().to_string()));
        let run = run.unwrap();
        let threads = run_study(study(&case.text()), 2);
        assert_eq!(threads.partition.shards, 5);
        assert_eq!(run.coordinate(&Worker, &Silent).unwrap(), threads, "{evidence}");
        assert_eq!(run.coordinate(&Stop, &Silent).unwrap(), threads, "{evidence}");
    }
}

#[test]
fn what_is_answered_stays_answered() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run::split(study(&mixed("")), folder.path()).unwrap();
    let waiting = match run.coordinate(&Stop, &Silent) {
        Err(Error::Waiting(waiting)) => waiting,
        other => panic!("{other:?}"),
    };
    assert_eq!((waiting.round, waiting.missing.len(), waiting.shards), (1, 5, 5));
    let first = run.work(1, false, &(), &WorkerRows::default()).unwrap();
    assert_eq!((first.answered, first.known), (1, 0));
    let path = |shard: usize| {
        let hash =
            waiting.question.file_stem().unwrap().to_str().unwrap().split_once('-').unwrap().1;
        folder.path().join(format!("answers/{hash}/{shard:06}.answer"))
    };
    let written = std::fs::metadata(path(1)).unwrap().modified().unwrap();
    let again = run.work_all(&[0, 1, 2, 3, 4], 2, true, &(), &WorkerRows::default()).unwrap();
    assert_eq!((again.answered, again.known), (4, 1));
    assert_eq!(std::fs::metadata(path(1)).unwrap().modified().unwrap(), written);

    // A file that was damaged is named, its shard alone is asked again, and it alone is computed again.
    let whole = std::fs::read(path(2)).unwrap();
    std::fs::write(path(2), &whole[..whole.len() - 3]).unwrap();
    let status = run.status().unwrap();
    assert_eq!(
        (status.rounds[0].answered, &status.rounds[0].missing[..]),
        (4, &["000002".to_string()][..])
    );
    match run.coordinate(&Stop, &Silent) {
        Err(Error::Waiting(waiting)) => {
            assert_eq!(waiting.missing, ["000002"]);
            assert!(
                waiting.refused[0].contains("000002.answer: the file is cut short"),
                "{waiting}"
            );
        }
        other => panic!("{other:?}"),
    }
    let mended = run.work_all(&[0, 1, 2, 3, 4], 2, false, &(), &WorkerRows::default()).unwrap();
    assert_eq!((mended.answered, mended.known, mended.replaced.len()), (1, 4, 1));
    assert_eq!(std::fs::read(path(2)).unwrap(), whole);
}

#[test]
fn there_is_one_coordinator_at_a_time_and_one_worker_per_shard() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run::split(study(&mixed("")), folder.path()).unwrap();
    let lock = run.lock().unwrap();
    let error = run.coordinate(&Stop, &Silent).unwrap_err();
    assert!(error.to_string().contains("another program coordinates this run"), "{error}");
    drop(lock);
    assert!(matches!(run.coordinate(&Stop, &Silent), Err(Error::Waiting(_))));
    let busy = std::fs::File::create(folder.path().join("work/000003.lock")).unwrap();
    busy.lock().unwrap();
    let report = run.work_all(&[2, 3], 1, false, &(), &WorkerRows::default()).unwrap();
    assert_eq!((report.answered, report.busy), (1, vec![3]));
}

#[test]
fn a_run_belongs_to_its_study_and_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    Run::split(study(&mixed("")), &path).unwrap();
    // The same again is the same run; another study is another run.
    Run::split(study(&mixed("")), &path).unwrap();
    let mut other = study(&mixed(""));
    other.apply(&Overrides { seed: Some(2), ..Overrides::default() }).unwrap();
    let error = Run::split(other, &path).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("run of another study"), "{error}");
    let error = Run::split(study(&mixed("")), folder.path()).unwrap_err();
    assert!(error.to_string().contains("holds other files"), "{error}");
    let error = Run::open(&folder.path().join("none")).unwrap_err();
    assert!(error.to_string().contains("there is no such run directory"), "{error}");

    // A manifest or a shard that was changed is noticed.
    let run = Run::open(&path).unwrap();
    assert!(matches!(run.coordinate(&Stop, &Silent), Err(Error::Waiting(_))));
    let shard = path.join("shards/000001.parquet");
    let mut bytes = std::fs::read(&shard).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&shard, bytes).unwrap();
    let error = run.work(1, false, &(), &WorkerRows::default()).unwrap_err();
    assert!(error.to_string().contains("000001.parquet: the shard was changed"), "{error}");
    let manifest = path.join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    for (from, to, part) in [
        ("\"format\": ", "\"format\": 7", "the run is of format 7"),
        ("scale(glu)", "scale(ped)", "the study in it was changed"),
        ("\"name\": \"age\"", "\"name\": \"agee\"", "the schema in it was changed"),
        ("{", "", "no manifest of a run"),
    ] {
        assert!(text.contains(from), "{from}");
        std::fs::write(&manifest, text.replacen(from, to, 1)).unwrap();
        let error = Run::open(&path).unwrap_err();
        assert!(error.to_string().contains(part), "{from}: {error}");
    }
}

#[test]
fn an_error_is_the_same_as_on_threads() {
    // A weight that is no whole number is found when shards describe their columns.
    let folder = tempfile::tempdir().unwrap();
    let data: String =
        (0..40).map(|i| format!("{},{}\n", i % 2, if i == 17 { 0.5 } else { 1.0 })).collect();
    std::fs::write(folder.path().join("d.csv"), format!("y,w\n{data}")).unwrap();
    let text = "[data]\npath = \"d.csv\"\nweights = \"w\"\n[split]\nshards = 4\n[[model]]\nformula = \"y ~ 1\"\nfamily = \"logistic\"\n";
    let study = || StudyFile::parse(text, &folder.path().join("s.toml")).unwrap();
    let threads = consilience::plan::Plan::new(study(), 2, &Silent).unwrap_err();
    let run = Run::split(study(), &folder.path().join("run")).unwrap();
    let files = run.coordinate(&Worker, &Silent).unwrap_err();
    assert_eq!(files.to_string(), threads.to_string());
    assert!(files.to_string().contains("line 19"), "{files}");
    let status = run.status().unwrap();
    assert_eq!(status.rounds[0].failed.len(), 1);
}

/// Numbers as large as can be have no sums, and squares no sums before that: a run directory must say what
/// threads say, and not refuse its own workers' answers for ever.
#[test]
fn numbers_too_large_are_named_as_on_threads() {
    let folder = tempfile::tempdir().unwrap();
    let row = |i: i32| {
        format!("{},{}1.{}e308,{}\n", i * 7 % 5 % 2, ["-", ""][i as usize % 2], i % 7, i % 9)
    };
    let data: String = (0..60).map(row).collect();
    std::fs::write(folder.path().join("d.csv"), format!("y,x,z\n{data}")).unwrap();
    for (number, formula) in
        ["y ~ x", "y ~ scale(x)", "y ~ poly(x, 2)", "y ~ z + factor(x > 0)", "y ~ z + I(x / 1e300)"]
            .into_iter()
            .enumerate()
    {
        let text = format!(
            "[data]\npath = \"d.csv\"\n[split]\nshards = 3\n[[model]]\nformula = \"{formula}\"\nfamily = \"logistic\"\n"
        );
        let study = || StudyFile::parse(&text, &folder.path().join("s.toml")).unwrap();
        let threads =
            consilience::plan::Plan::new(study(), 2, &Silent).and_then(|plan| plan.run(&Silent));
        let run = Run::split(study(), &folder.path().join(format!("run-{number}"))).unwrap();
        let mut rounds = 0;
        let files = loop {
            assert!(rounds < 50, "{formula}: the run does not end");
            rounds += 1;
            match run.coordinate(&Stop, &Silent) {
                Err(Error::Waiting(waiting)) => assert!(waiting.refused.is_empty(), "{waiting}"),
                done => break done,
            }
            run.work_all(&[0, 1, 2], 1, false, &(), &WorkerRows::default()).unwrap();
        };
        match (files, threads) {
            (Ok(files), Ok(threads)) => assert_eq!(files, threads, "{formula}"),
            (files, threads) => {
                assert_eq!(files.unwrap_err().to_string(), threads.unwrap_err().to_string());
            }
        }
    }
}
