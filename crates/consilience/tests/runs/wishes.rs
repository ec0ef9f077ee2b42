//! What a run delivers beside the comparison, to the last bit as on threads.

use crate::common::{Case, root};
use crate::sites::{Mail, entries};
use crate::{Worker, mixed, study};
use consilience::compare::Comparison;
use consilience::engine::Silent;
use consilience::plan::{Extras, Plan};
use consilience::run::{Run, Stop};
use consilience::{Error, Result};
use std::path::Path;

fn everything() -> Extras {
    Extras { prior_scales: vec![2.0, 0.5], leave_one_out: true, ..Extras::default() }
}

/// The same with draws of the posterior.
fn posterior(wishes: &Extras) -> Extras {
    Extras { posterior: true, ..wishes.clone() }
}

/// On threads, with draws of the posterior.
fn on_threads(text: &str, wishes: &Extras) -> Comparison {
    let mut plan = Plan::new(study(text), 2, &Silent).unwrap();
    plan.deliver(&posterior(wishes)).unwrap();
    plan.run(&Silent).unwrap()
}

fn assert_everything(comparison: &Comparison) {
    assert!(comparison.models.iter().all(|m| m.posterior.is_some()));
    assert_eq!(comparison.prior_sensitivity.as_ref().map(Vec::len), Some(3));
    assert!(comparison.leave_one_out.as_ref().is_some_and(|shards| shards.len() > 1));
}

/// The files of a folder, by name.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|p| {
            (p.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&p).unwrap())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn a_run_directory_grants_what_threads_grant() {
    let mut gaussian = Case::new("pima_tr.csv", 4);
    gaussian.model("bmi ~ scale(glu) + type", "gaussian").model("bmi ~ 1", "gaussian");
    for text in [mixed(""), gaussian.text()] {
        let folder = tempfile::tempdir().unwrap();
        let threads = on_threads(&text, &everything());
        assert_everything(&threads);
        let mut run = Run::split(study(&text), folder.path()).unwrap();
        run.deliver(&posterior(&everything())).unwrap();
        assert_eq!(run.coordinate(&Worker, &Silent).unwrap(), threads);
        // Whoever opens it later gets the same without asking for it.
        let mut later = Run::open(folder.path()).unwrap();
        later.deliver(&posterior(&later.manifest().extras.clone())).unwrap();
        assert_eq!(later.coordinate(&Stop, &Silent).unwrap(), threads);
    }
}

#[test]
fn what_is_wished_later_asks_only_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::split(study(&mixed("")), folder.path()).unwrap();
    let plain = run.coordinate(&Worker, &Silent).unwrap();
    let rounds = run.rounds().unwrap();
    let answers = || std::fs::read_dir(folder.path().join("answers")).unwrap().count();
    let asked = answers();
    // The draws that are there tell most of it: at most two further rounds.
    run.deliver(&Extras { leave_one_out: true, ..Extras::default() }).unwrap();
    assert_eq!(run.rounds().unwrap(), 0);
    let pulls = run.coordinate(&Worker, &Silent).unwrap();
    assert!(pulls.leave_one_out.is_some());
    assert!(answers() - asked <= 2 && rounds > 3, "{} new questions", answers() - asked);
    assert_eq!(
        serde_json::to_string(&pulls.models).unwrap(),
        serde_json::to_string(&plain.models).unwrap()
    );
    // Other priors share rounds with the study's own, so those are asked anew.
    run.deliver(&posterior(&everything())).unwrap();
    assert_eq!(run.coordinate(&Worker, &Silent).unwrap(), on_threads(&mixed(""), &everything()));
    // And back again, from the answers alone.
    run.deliver(&Extras::default()).unwrap();
    let again = Run::open(folder.path()).unwrap();
    assert_eq!(again.coordinate(&Stop, &Silent).unwrap(), plain);
}

#[test]
fn draws_of_chains_are_kept_by_workers() {
    let evidence = "combine = \"normal\"\nlocal = \"nuts+warp3\"\ndraws = 300\nchains = 2";
    let text = mixed(evidence);
    let folder = tempfile::tempdir().unwrap();
    let draws = |who: &str| Extras { draws: Some(folder.path().join(who)), ..Extras::default() };
    let threads = on_threads(&text, &draws("threads"));
    let mut run = Run::split(study(&text), &folder.path().join("run")).unwrap();
    assert!(
        run.deliver(&posterior(&Extras::default()))
            .unwrap_err()
            .to_string()
            .contains("--keep-draws")
    );
    run.deliver(&posterior(&draws("files"))).unwrap();
    assert_eq!(run.coordinate(&Worker, &Silent).unwrap(), threads);
    assert!(threads.models.iter().all(|m| m.posterior.is_some()));
    let kept = files(&folder.path().join("files"));
    assert_eq!(kept.len(), 2 * 5);
    assert!(kept == files(&folder.path().join("threads")), "the draws differ");
    // Answers are not computed again for their draws.
    let late = run.deliver(&Extras::default()).unwrap_err();
    assert!(late.to_string().contains("answers nothing twice"), "{late}");
}

#[test]
fn sites_grant_what_their_answers_hold() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(root().join("data/pima_tr.csv")).unwrap();
    let (head, rows) = text.split_once('\n').unwrap();
    let data = |s: usize| folder.path().join(format!("site-{s}.csv"));
    for s in 0..3 {
        let own: Vec<&str> =
            rows.lines().enumerate().filter(|(i, _)| i % 3 == s).map(|(_, r)| r).collect();
        std::fs::write(data(s), format!("{head}\n{}\n", own.join("\n"))).unwrap();
    }
    let mut case = Case::new("", 3);
    case.data = format!("path = {:?}", folder.path().join("site-*.csv"));
    case.split = "by = \"file\"".into();
    case.model("type ~ scale(glu)", "logistic").model("type ~ scale(glu) + bmi", "logistic");
    let threads = on_threads(&case.text(), &everything());
    case.split = String::new();
    let new = |name: &str| -> Result<Run> {
        Run::for_sites(study(&case.text()), &entries(3), &folder.path().join(name), [1; 32])
    };
    let mut run = new("run").unwrap();
    run.deliver(&posterior(&everything())).unwrap();
    let mailed = run.coordinate(&Mail { folder: folder.path(), data: &data }, &Silent).unwrap();
    assert_eq!(mailed.models, threads.models);
    assert_eq!(mailed.prior_sensitivity, threads.prior_sensitivity);
    assert_eq!(mailed.leave_one_out, threads.leave_one_out);
    assert_everything(&mailed);

    let draws = Extras { draws: Some(folder.path().into()), ..Extras::default() };
    let error = new("other").unwrap().deliver(&draws).unwrap_err();
    assert!(error.to_string().contains("stay with the site"), "{error}");
    // Of two sites one cannot be left out, if what each pulls is wished for.
    let mut two = new("two").unwrap();
    two.deliver(&Extras { leave_one_out: true, ..Extras::default() }).unwrap();
    let error = two.leave_out(&["s0".into(), "s1".into()]).unwrap_err();
    assert!(error.to_string().contains("only one shard"), "{error}");
}

#[test]
fn what_cannot_be_granted_is_refused_before_anything_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::split(study(&mixed("combine = \"normal\"")), folder.path()).unwrap();
    let wishes = [
        (Extras { leave_one_out: true, ..Extras::default() }, "combine = \"exact\""),
        (Extras { prior_scales: vec![-1.0], ..Extras::default() }, "positive numbers"),
        (
            Extras { prior_scales: vec![2.0], draws: Some("d".into()), ..Extras::default() },
            "one choice of priors",
        ),
    ];
    for (wish, part) in wishes {
        let error = run.deliver(&wish).unwrap_err();
        assert!(error.is_input() && error.to_string().contains(part), "{error}");
    }
    assert_eq!((run.rounds().unwrap(), run.failure()), (0, None));
    assert!(matches!(run.coordinate(&Stop, &Silent), Err(Error::Waiting(_))));
}
