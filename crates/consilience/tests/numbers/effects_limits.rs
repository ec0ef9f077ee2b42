//! Random effects where other ways lead to the same number: no spread at all, brute force over few parameters, shards'
//! own posteriors, and the prior of their spread made wider.

use crate::common::run_study;
use consilience::engine::Silent;
use consilience::math::special::log_normal_cdf;
use consilience::math::{log_sum_exp, stream};
use consilience::model::{Groups, LogLikelihood, Prior};
use consilience::plan::{Extras, Plan};
use consilience::study::StudyFile;
use libm::lgamma;
use rand::RngExt;
use std::path::{Path, PathBuf};

const LOG_2PI: f64 = 1.837_877_066_409_345_3;

struct Row {
    group: usize,
    x: f64,
    class: f64,
    count: f64,
    y: f64,
}

/// Groups of so many rows, whose levels differ by τ.
fn rows(groups: usize, each: usize, tau: f64) -> Vec<Row> {
    let mut rng = stream(5, 0, 0, "effects at their limits");
    let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
    let mut all = Vec::new();
    for group in 0..groups {
        let u = tau * normal();
        for _ in 0..each {
            let (x, noise) = (normal(), normal());
            let eta = 0.2 + u + 0.5 * x;
            let class = f64::from(eta + noise > 0.0);
            let count = (eta + 0.6 * noise).exp().round();
            all.push(Row { group, x, class, count, y: eta + 0.8 * noise });
        }
    }
    all
}

/// As a file; every other group is of one region.
fn write(folder: &Path, rows: &[Row], regions: usize) -> PathBuf {
    let path = folder.join("data.csv");
    let mut text = "h,region,x,yes,count,y\n".to_string();
    for Row { group, x, class, count, y } in rows {
        text += &format!("h{group},r{},{x},{class},{count},{y}\n", group % regions);
    }
    std::fs::write(&path, text).unwrap();
    path
}

fn study(path: &Path, split: &str, more: &str, models: &[(&str, &str)]) -> StudyFile {
    let mut text = format!(
        "[data]\npath = {path:?}\n[split]\n{split}\n[prior]\ndefault = \"normal(0, 1)\"\n{more}\n"
    );
    for (formula, family) in models {
        text += &format!("[[model]]\nformula = {formula:?}\nfamily = {family:?}\n");
    }
    StudyFile::parse(&text, Path::new("study.toml")).unwrap()
}

const OUTCOMES: [(&str, &str); 5] = [
    ("y", "gaussian"),
    ("yes", "logistic"),
    ("yes", "probit"),
    ("count", "poisson"),
    ("count", "negative-binomial"),
];

/// With effects that are all 0, the evidence is that of the model that has none.
#[test]
fn without_spread_the_evidence_is_that_without_effects() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), &rows(6, 8, 0.5), 2);
    let held = "[prior.parameters]\nlog_sd_h = \"fixed(-30)\"";
    for (left, family) in OUTCOMES {
        let (with, without) = (format!("{left} ~ x + (1 | h)"), format!("{left} ~ x"));
        let models = [(with.as_str(), family), (without.as_str(), family)];
        for split in ["shards = 1", "by = \"column:region\""] {
            let found = run_study(study(&path, split, held, &models), 2);
            assert!(found.is_reliable());
            let [a, b] = [0, 1].map(|m| found.models[m].log_evidence);
            let off = a - b;
            assert!(
                off.value.abs() < 4.0 * off.se.unwrap() + 1e-6 && off.se.unwrap() < 0.03,
                "{family}, {split}: {a:?}, {b:?}"
            );
        }
    }
}

/// The log-likelihood of a row at η; `own` is log r, and `top` what depends on that alone.
fn log_p(family: &str, row: &Row, eta: f64, own: f64, top: f64) -> f64 {
    if family == "probit" {
        return log_normal_cdf(if row.class > 0.0 { eta } else { -eta }).0;
    }
    let (y, r) = (row.count, own.exp());
    top + y * eta - (y + r) * (r + eta.exp()).ln()
}

fn top(family: &str, row: &Row, own: f64) -> f64 {
    if family == "probit" {
        return 0.0;
    }
    let (y, r) = (row.count, own.exp());
    lgamma(y + r) - lgamma(r) - lgamma(y + 1.0) + r * own
}

/// log ∫ Π p(y|η + τv) N(v; 0, 1) dv of every group by the trapezoidal rule, added up.
fn by_hand(family: &str, groups: &[Vec<&Row>], level: f64, slope: f64, own: f64, tau: f64) -> f64 {
    let step = 0.15;
    let each = groups.iter().map(|rows| {
        let tops: Vec<f64> = rows.iter().map(|row| top(family, row, own)).collect();
        let logs: Vec<f64> = (-45..=45)
            .map(|k| {
                let v = step * f64::from(k);
                let own = rows.iter().zip(&tops).map(|(row, top)| {
                    log_p(family, row, level + slope * row.x + tau * v, own, *top)
                });
                own.sum::<f64>() - 0.5 * v * v - 0.5 * LOG_2PI
            })
            .collect();
        log_sum_exp(&logs) + step.ln()
    });
    each.sum()
}

fn of_groups(rows: &[Row], groups: usize) -> Vec<Vec<&Row>> {
    (0..groups).map(|g| rows.iter().filter(|r| r.group == g).collect()).collect()
}

/// Probit and negative-binomial groups, on one shard and on two.
#[test]
fn values_of_groups_are_those_of_brute_force() {
    let folder = tempfile::tempdir().unwrap();
    let all = rows(6, 7, 0.8);
    let path = write(folder.path(), &all, 2);
    let groups = of_groups(&all, 6);
    for (left, family) in [("yes", "probit"), ("count", "negative-binomial")] {
        let formula = format!("{left} ~ x + (1 | h)");
        for split in ["shards = 1", "by = \"column:region\""] {
            let study = study(&path, split, "", &[(&formula, family)]);
            let plan = Plan::new(study, 2, &Silent).unwrap();
            for (level, slope, own, log_sd) in
                [(0.2, 0.5, 0.3, -0.5), (-0.6, 0.0, 1.5, 0.4), (0.9, -0.4, -1.0, -2.0)]
            {
                let mut theta = vec![level, slope];
                theta.extend((family != "probit").then_some(own));
                theta.push(log_sd);
                let shards = plan.settings[0].shards;
                let value = |s: usize| {
                    let data = plan.engine().shard(s).data();
                    let groups = Groups::new(&plan.settings[0].model, data).unwrap();
                    let mut out = [0.0];
                    groups.values(&[&theta], &mut out);
                    out[0]
                };
                let found: f64 = (0..shards).map(value).sum();
                let truth = by_hand(family, &groups, level, slope, own, log_sd.exp());
                assert!(
                    (found - truth).abs() < 1e-6 * truth.abs(),
                    "{family}, {split}, {theta:?}: {found}, not {truth}"
                );
            }
        }
    }
}

/// And their evidences, with every parameter free.
#[test]
fn evidences_of_groups_are_those_of_brute_force() {
    let folder = tempfile::tempdir().unwrap();
    let all = rows(4, 4, 0.7);
    let path = write(folder.path(), &all, 2);
    let groups = of_groups(&all, 4);
    let prior = |x: f64| -0.5 * x * x - 0.5 * LOG_2PI;
    let grid = |step: f64| {
        let most = (5.0 / step) as i32;
        (-most..=most).map(move |k| step * f64::from(k))
    };
    let (fine, coarse) = (0.25, 0.5);
    for (left, family) in [("yes", "probit"), ("count", "negative-binomial")] {
        let (owns, width): (Vec<f64>, f64) = match family {
            "probit" => (vec![0.0], 0.0),
            _ => (grid(coarse).collect(), coarse.ln()),
        };
        let mut logs = Vec::new();
        for &own in &owns {
            let own_prior = if family == "probit" { 0.0 } else { prior(own) + width };
            for level in grid(fine) {
                for log_sd in grid(fine) {
                    let weight = prior(level) + prior(log_sd) + own_prior;
                    // Less is not seen.
                    if weight > -20.0 {
                        let log = by_hand(family, &groups, level, 0.0, own, log_sd.exp());
                        logs.push(weight + log);
                    }
                }
            }
        }
        let truth = log_sum_exp(&logs) + 2.0 * fine.ln();
        let formula = format!("{left} ~ 1 + (1 | h)");
        for split in ["shards = 1", "by = \"column:region\""] {
            let found = run_study(study(&path, split, "", &[(&formula, family)]), 2);
            assert!(found.is_reliable());
            let found = found.models[0].log_evidence;
            let se = found.se.unwrap();
            println!("{family}, {split}: {:.4} ± {se:.4}, {truth:.4}", found.value);
            assert!(
                (found.value - truth).abs() < 4.0 * se + 1e-3 && se < 0.03,
                "{family}, {split}: {found:?}, not {truth}"
            );
        }
    }
}

/// `normal` on five shards, each of which has many groups, against `exact`.
#[test]
fn normal_agrees_with_exact_within_its_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), &rows(60, 12, 0.9), 5);
    let models = [("y ~ x + (1 | h)", "gaussian")];
    let found = |evidence: &str| {
        let more = format!("[evidence]\n{evidence}");
        run_study(study(&path, "by = \"column:region\"", &more, &models), 2)
    };
    let exact = found("");
    let normal = found("combine = \"normal\"\nlocal = \"importance\"\ndraws = 4000");
    let off = normal.models[0].log_evidence - exact.models[0].log_evidence;
    let shape = normal.models[0].parts.shape_error.unwrap();
    println!("normal less exact: {off:?}, shape error {shape:.4}");
    // That is a part of the standard error.
    assert!(shape < 1.0 && normal.is_reliable(), "{shape}");
    assert!(off.value.abs() < 4.0 * off.se.unwrap(), "{off:?}, shape error {shape}");
}

/// `--prior-scale` makes groups' effects larger like other coefficients: what comes out is a study whose prior of their
/// standard deviation is that of so many times as large a one.
#[test]
fn scales_of_priors_are_those_of_effects_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), &rows(8, 6, 0.6), 2);
    let models = [("y ~ x + (1 | h)", "gaussian"), ("y ~ x", "gaussian")];
    let split = "by = \"column:region\"";
    let plain = "[prior.parameters]\nlog_sd_h = \"normal(-0.5, 0.7)\"";
    let mut plan = Plan::new(study(&path, split, plain, &models), 2, &Silent).unwrap();
    for factor in [0.1, 10.0] {
        let scaled = plan.settings[0].model.with_prior_scale(factor);
        let prior = |name: &str| scaled.parameters.iter().find(|p| p.name == name).unwrap().prior;
        let moved = Prior::Normal { mean: -0.5 + factor.ln(), sd: 0.7 };
        assert_eq!(prior("log_sd_h"), moved);
        assert_eq!(prior("x"), Prior::Normal { mean: 0.0, sd: factor });
        assert_eq!(prior("log_sd"), Prior::Normal { mean: 0.0, sd: 1.0 });
        // The correlation and the mean of no effect move.
        let both = [("y ~ x + (x | h)", "gaussian")];
        let both = Plan::new(study(&path, split, "", &both), 2, &Silent).unwrap();
        let both = both.settings[0].model.with_prior_scale(factor);
        let centres: Vec<f64> = both.parameters[3..].iter().map(|p| p.prior.centre()).collect();
        assert_eq!(centres, [factor.ln(), factor.ln(), 0.0]);
    }
    let extras = Extras { prior_scales: vec![0.1, 1.0, 10.0], ..Extras::default() };
    plan.deliver(&extras).unwrap();
    let swept = plan.run(&Silent).unwrap();
    for (scale, x, log_sd) in [(0, 0.1, -0.5 + 0.1f64.ln()), (2, 10.0, -0.5 + 10.0f64.ln())] {
        let prior = format!(
            "[prior.parameters]\nlog_sd_h = \"normal({log_sd}, 0.7)\"\nx = \"normal(0, {x})\""
        );
        let alone = run_study(study(&path, split, &prior, &models), 2);
        let sensitivity = swept.prior_sensitivity.as_ref().unwrap();
        for (own, other) in sensitivity[scale].models.iter().zip(&alone.models) {
            assert_eq!(own.log_evidence, other.log_evidence, "{}", own.name);
        }
    }
}
