//! The comparison without each shard, against closed forms and against studies without its rows.

use crate::common::{Case, spread};
use crate::known_sd::{Data, log_evidence};
use consilience::compare::Comparison;
use consilience::engine::Silent;
use consilience::estimate::Estimate;
use consilience::plan::{Extras, Plan};
use consilience::study::StudyFile;
use std::path::Path;

const SIGMA: f64 = 1.25;

fn left_out() -> Extras {
    Extras { leave_one_out: true, ..Extras::default() }
}

fn run(text: &str) -> Comparison {
    let study = StudyFile::parse(text, Path::new("study.toml")).unwrap();
    let mut plan = Plan::new(study, 2, &Silent).unwrap();
    plan.deliver(&left_out()).unwrap();
    plan.run(&Silent).unwrap()
}

/// With and without z.
fn case(data: &Data, evidence: &str) -> Case {
    let mut case = Case::new(&data.path, 1);
    case.split = "by = \"column:part\"\nshare = \"rows\"".into();
    case.prior = format!("coefficients = \"normal(0, 0.7)\"\nlog_sd = \"fixed({})\"", SIGMA.ln());
    case.evidence = evidence.into();
    case.model("y ~ x + z", "gaussian").model("y ~ x", "gaussian");
    case
}

fn exact(data: &Data, wanted: impl Fn(usize) -> bool) -> [f64; 2] {
    let (with, without) = (data.rows(&[0, 1, 2], &wanted), data.rows(&[0, 1], &wanted));
    [log_evidence(&with, &[1.0, 0.7, 0.7], SIGMA), log_evidence(&without, &[1.0, 0.7], SIGMA)]
}

/// For parts of the data the evidence has a closed form; statistics reach it, draws err by as much
/// as they say. With three shards the posteriors without one are far from the draws, with twelve not.
#[test]
fn evidences_without_a_shard_have_closed_forms() {
    for parts in [3, 12] {
        let folder = tempfile::tempdir().unwrap();
        let data = Data::new(folder.path(), 150, parts);
        let all = exact(&data, |_| true);
        let rest: Vec<[f64; 2]> = (0..parts).map(|s| exact(&data, |part| part != s)).collect();
        let best = usize::from(all[1] > all[0]);

        let pooled = run(&case(&data, "").text());
        for (s, shard) in pooled.leave_one_out.unwrap().iter().enumerate() {
            for (i, model) in shard.models.iter().enumerate() {
                let predictive = all[i] - rest[s][i];
                let pull = predictive - (all[best] - rest[s][best]);
                for (found, exact) in [
                    (model.log_evidence, rest[s][i]),
                    (model.log_predictive, predictive),
                    (model.pull, pull),
                ] {
                    assert!((found.value - exact).abs() < 1e-8, "{found:?} is not {exact}");
                }
            }
        }

        for points in ["plain", "sobol"] {
            let mut zs: [Vec<f64>; 3] = Default::default();
            let z = |found: Estimate, exact: f64| (found.value - exact) / found.se.unwrap();
            for seed in 1..=25 {
                // All draws: these posteriors are normal, so that few would do for the evidence itself.
                let evidence = format!(
                    "statistics = false\nse_target = 1e-300\nseed = {seed}\npoints = {points:?}"
                );
                let result = run(&case(&data, &evidence).text());
                for (s, shard) in result.leave_one_out.unwrap().iter().enumerate() {
                    for (i, model) in shard.models.iter().enumerate() {
                        assert!(model.reliable, "{parts} parts, shard {s}: {model:?}");
                        let predictive = all[i] - rest[s][i];
                        zs[0].push(z(model.log_evidence, rest[s][i]));
                        zs[1].push(z(model.log_predictive, predictive));
                        if i != best {
                            let pull = predictive - (all[best] - rest[s][best]);
                            zs[2].push(z(model.pull, pull));
                        }
                    }
                }
            }
            for (what, zs) in ["log evidence", "log predictive", "pull"].iter().zip(zs) {
                let (mean, sd) = spread(&zs);
                let which = format!("{parts} parts, {points}, {what}");
                println!("{which}: {} z-scores, mean {mean:.2}, sd {sd:.2}", zs.len());
                assert!(zs.iter().all(|z| z.abs() < 4.0), "{which}: {zs:?}");
                assert!(mean.abs() < 0.4, "{which}: mean z {mean}");
                // Even points, and a little also draws that mirror each other, do better than the error bars say, which
                // take them for plain ones.
                let least = if points == "plain" { 0.7 } else { 0.3 };
                assert!((least..1.3).contains(&sd), "{which}: sd of z {sd}");
            }
        }
    }
}

/// The real thing: the study without the shard's rows.
#[test]
fn leaving_out_is_running_without_the_rows() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(crate::common::root().join("data/pima_tr.csv")).unwrap();
    let mut lines = text.lines();
    let head = lines.next().unwrap();
    let rows: Vec<&str> = lines.collect();
    let write = |left_out: Option<usize>| {
        let part = |i: usize| i % 4;
        let kept = rows.iter().enumerate().filter(|(i, _)| Some(part(*i)) != left_out);
        let kept: String = kept.map(|(i, row)| format!("{row},p{}\n", part(i))).collect();
        let path = folder.path().join("pima.csv");
        std::fs::write(&path, format!("{head},part\n{kept}")).unwrap();
        path.to_str().unwrap().to_string()
    };
    // The design must not depend on the rows, so there is no scale(); the Laplace prior's kink keeps
    // the Gaussian models from closed forms.
    let cases = [
        (
            "type ~ I(glu / 30 - 4) + I(bmi / 6 - 5)",
            "type ~ I(glu / 30 - 4)",
            "logistic",
            "normal(0, 1)",
        ),
        (
            "type ~ I(glu / 30 - 4) + I(bmi / 6 - 5)",
            "type ~ I(bmi / 6 - 5)",
            "probit",
            "student_t(4, 0, 1)",
        ),
        ("bmi ~ I(skin / 10) + I(age / 10)", "bmi ~ I(skin / 10)", "gaussian", "laplace(0, 2)"),
    ];
    for (first, second, family, prior) in cases {
        let text = |left_out: Option<usize>| {
            let mut case = Case::new(&write(left_out), 1);
            case.split = "by = \"column:part\"".into();
            case.prior = format!("coefficients = {prior:?}\nintercept = \"normal(0, 10)\"");
            case.model(first, family).model(second, family);
            case.text()
        };
        let all = run(&text(None));
        let shards = all.leave_one_out.as_ref().unwrap();
        assert_eq!(shards.len(), 4);
        let best = all.models.iter().position(|m| m.strength.is_none()).unwrap();
        for shard in shards {
            let rest = crate::common::run(&text(Some(shard.shard)));
            for (i, model) in shard.models.iter().enumerate() {
                let within = |found: Estimate, other: Estimate| {
                    let error = found.se.unwrap().hypot(other.se.unwrap());
                    let z = (found.value - other.value) / error;
                    assert!(z.abs() < 4.0, "{first}, shard {}: z = {z:.2}", shard.shard);
                };
                within(model.log_evidence, rest.models[i].log_evidence);
                let (with, without) = (&all.models[i], &rest.models[i]);
                within(model.log_predictive, with.log_evidence - without.log_evidence);
                if i != best {
                    let factor = without.log_evidence - rest.models[best].log_evidence;
                    within(model.pull, with.log_bayes_factor - factor);
                    assert!((model.probability - without.probability).abs() < 0.1);
                }
            }
        }
    }
}

#[test]
fn leaving_out_changes_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let data = Data::new(folder.path(), 150, 5);
    for evidence in ["", "statistics = false"] {
        let text = case(&data, evidence).text();
        let mut with = run(&text);
        let without = crate::common::run(&text);
        assert!(with.leave_one_out.take().is_some() && without.leave_one_out.is_none());
        for (a, b) in with.models.iter().zip(&without.models) {
            assert_eq!((a.log_evidence, &a.parameters), (b.log_evidence, &b.parameters));
        }
        assert_eq!(with.best, without.best);
    }
}

#[test]
fn where_nothing_can_be_left_out_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let data = Data::new(folder.path(), 60, 3);
    let error = |case: Case| {
        let study = StudyFile::parse(&case.text(), Path::new("study.toml")).unwrap();
        Plan::new(study, 1, &Silent).unwrap().deliver(&left_out()).unwrap_err().to_string()
    };
    let normal = error(case(&data, "combine = \"normal\""));
    assert!(normal.contains("combine = \"exact\""), "{normal}");
    let mut single = case(&data, "");
    single.split = "shards = 1".into();
    let single = error(single);
    assert!(single.contains("only one shard"), "{single}");
}
