//! Random effects of groups: values against integrals over the effects, derivatives against differences, evidences
//! against brute-force quadrature, and the same whatever the shards are.

use crate::common::run;
use consilience::Target;
use consilience::engine::Silent;
use consilience::math::special::softplus;
use consilience::math::stream;
use consilience::model::{Groups, Likelihood, LogLikelihood, Model, Prior};
use consilience::plan::Plan;
use consilience::study::StudyFile;
use libm::lgamma;
use rand::RngExt;
use std::path::{Path, PathBuf};

const LOG_2PI: f64 = 1.837_877_066_409_345_3;

fn normal(rng: &mut impl rand::Rng) -> f64 {
    let (u, v): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()
}

struct Row {
    group: usize,
    x: f64,
    /// A class, a count and a number.
    y: [f64; 3],
}

/// Groups of so many rows whose intercepts vary by τ, and slopes by half of that.
fn rows(groups: usize, each: usize, tau: f64, seed: u64) -> Vec<Row> {
    let mut rng = stream(seed, 0, 0, "effects test");
    let mut all = Vec::new();
    for group in 0..groups {
        let (u, s) = (tau * normal(&mut rng), 0.5 * tau * normal(&mut rng));
        for _ in 0..each {
            let x = normal(&mut rng);
            let eta = 0.3 + u + (0.5 + s) * x;
            let class = f64::from(rng.random::<f64>() < 1.0 / (1.0 + (-eta).exp()));
            let (mut count, mut left) = (0.0, rng.random::<f64>());
            let mut p = (-(eta.exp())).exp();
            while left > p && count < 500.0 {
                left -= p;
                count += 1.0;
                p *= eta.exp() / count;
            }
            let number = eta + 0.8 * normal(&mut rng);
            all.push(Row { group, x, y: [class, count, number] });
        }
    }
    all
}

/// The rows as a file; every fifth group is of one region.
fn write(folder: &Path, rows: &[Row]) -> PathBuf {
    let path = folder.join("data.csv");
    let mut text = "h,region,x,yes,count,y\n".to_string();
    for Row { group, x, y } in rows {
        text += &format!("h{group},r{},{x},{},{},{}\n", group % 5, y[0], y[1], y[2]);
    }
    std::fs::write(&path, text).unwrap();
    path
}

fn study(path: &Path, split: &str, more: &str, models: &[(&str, &str)]) -> String {
    let mut text = format!(
        "[data]\npath = {path:?}\n[split]\n{split}\n[prior]\ndefault = \"normal(0, 1)\"\n{more}\n"
    );
    for (formula, family) in models {
        text += &format!("[[model]]\nformula = {formula:?}\nfamily = {family:?}\n");
    }
    text
}

fn plan(text: &str) -> Plan {
    Plan::new(StudyFile::parse(text, Path::new("study.toml")).unwrap(), 2, &Silent).unwrap()
}

fn refusal(text: &str) -> String {
    let study = match StudyFile::parse(text, Path::new("study.toml")) {
        Ok(study) => study,
        Err(error) => return error.to_string(),
    };
    match Plan::new(study, 2, &Silent) {
        Ok(_) => panic!("not refused: {text}"),
        Err(error) => error.to_string(),
    }
}

/// A row's log-likelihood, every constant included.
fn log_p(family: &str, y: &[f64; 3], eta: f64, own: f64) -> f64 {
    match family {
        "logistic" => y[0] * eta - softplus(eta),
        "poisson" => y[1] * eta - eta.exp() - lgamma(y[1] + 1.0),
        "gaussian" => {
            let r = (y[2] - eta) / own.exp();
            -0.5 * r * r - own - 0.5 * LOG_2PI
        }
        _ => unreachable!(),
    }
}

fn outcome(family: &str) -> &'static str {
    match family {
        "logistic" | "probit" => "yes",
        "gaussian" => "y",
        _ => "count",
    }
}

fn log_sum(logs: &[f64]) -> f64 {
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    top + logs.iter().map(|l| (l - top).exp()).sum::<f64>().ln()
}

/// log ∫ Π p(y|η + u) N(u; 0, τ²) du of one group by the trapezoidal rule.
fn by_hand(family: &str, rows: &[&Row], beta: [f64; 2], own: f64, tau: f64) -> f64 {
    let step = 0.02;
    let logs: Vec<f64> = (-500..=500)
        .map(|k| {
            let v = step * f64::from(k);
            let row = |r: &&Row| log_p(family, &r.y, beta[0] + beta[1] * r.x + tau * v, own);
            rows.iter().map(row).sum::<f64>() - 0.5 * v * v - 0.5 * LOG_2PI
        })
        .collect();
    log_sum(&logs) + step.ln()
}

fn of_groups(rows: &[Row], groups: usize) -> Vec<Vec<&Row>> {
    (0..groups).map(|g| rows.iter().filter(|r| r.group == g).collect()).collect()
}

fn value(likelihood: &dyn LogLikelihood, theta: &[f64]) -> f64 {
    let mut out = [0.0];
    likelihood.values(&[theta], &mut out);
    out[0]
}

#[test]
fn values_are_the_integrals() {
    let folder = tempfile::tempdir().unwrap();
    let all = rows(3, 8, 0.8, 3);
    let path = write(folder.path(), &all);
    for family in ["logistic", "poisson", "gaussian"] {
        let formula = format!("{} ~ x + (1 | h)", outcome(family));
        let plan = plan(&study(&path, "shards = 1", "", &[(&formula, family)]));
        let shard = plan.engine().shard(0).data();
        let groups = Groups::new(&plan.settings[0].model, shard).unwrap();
        for (beta, own, log_tau) in
            [([0.2, 0.4], -0.2, -0.5), ([-0.5, 0.1], 0.3, 0.4), ([0.0, 1.0], 0.0, -2.0)]
        {
            let parts = of_groups(&all, 3);
            let tau: f64 = f64::exp(log_tau);
            let truth: f64 = parts.iter().map(|g| by_hand(family, g, beta, own, tau)).sum();
            let theta = match family {
                "gaussian" => vec![beta[0], beta[1], own, log_tau],
                _ => vec![beta[0], beta[1], log_tau],
            };
            let found = value(&groups, &theta);
            let within = if family == "gaussian" { 1e-10 } else { 1e-6 };
            assert!((found - truth).abs() < within, "{family}: {found}, not {truth}");
        }
    }
}

/// With a slope: log ∫∫ over both effects.
#[test]
fn values_with_slopes_are_the_integrals() {
    let folder = tempfile::tempdir().unwrap();
    let all = rows(3, 8, 0.8, 4);
    let path = write(folder.path(), &all);
    let (beta, sds, t) = ([0.2, 0.4], [0.7, 0.5], 0.6f64);
    let rho = t.tanh();
    for family in ["logistic", "poisson", "gaussian"] {
        let formula = format!("{} ~ x + (x | h)", outcome(family));
        let plan = plan(&study(&path, "shards = 1", "", &[(&formula, family)]));
        let names: Vec<&str> =
            plan.settings[0].model.parameters.iter().map(|p| p.name.as_str()).collect();
        let ends = ["log_sd_h", "log_sd_h:x", "atanh_cor_h"];
        assert_eq!(names[names.len() - 3..], ends);
        let groups = Groups::new(&plan.settings[0].model, plan.engine().shard(0).data()).unwrap();
        let step = 0.1;
        let mut truth = 0.0;
        for group in of_groups(&all, 3) {
            let mut logs = Vec::new();
            for i in -80..=80 {
                for j in -80..=80 {
                    let (v, w) = (step * f64::from(i), step * f64::from(j));
                    let u = sds[0] * v;
                    let s = sds[1] * (rho * v + (1.0 - rho * rho).sqrt() * w);
                    let row =
                        |r: &&Row| log_p(family, &r.y, beta[0] + u + (beta[1] + s) * r.x, -0.2);
                    let sum: f64 = group.iter().map(row).sum();
                    logs.push(sum - 0.5 * (v * v + w * w) - LOG_2PI);
                }
            }
            truth += log_sum(&logs) + 2.0 * step.ln();
        }
        let mut theta = beta.to_vec();
        if family == "gaussian" {
            theta.push(-0.2);
        }
        theta.extend([sds[0].ln(), sds[1].ln(), t]);
        let found = value(&groups, &theta);
        let within = if family == "gaussian" { 1e-9 } else { 1e-4 };
        assert!((found - truth).abs() < within, "{family}: {found}, not {truth}");
    }
}

#[test]
fn derivatives_are_those_of_differences() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), &rows(6, 12, 0.8, 5));
    for family in ["logistic", "probit", "poisson", "negative-binomial", "gaussian"] {
        for effects in ["(1 | h)", "(0 + x | h)", "(x | h)"] {
            let formula = format!("{} ~ x + {effects}", outcome(family));
            // Many nodes: derivatives are those of the integral, not of the rule's error.
            let more = "[evidence]\nnodes = 40";
            let plan = plan(&study(&path, "shards = 1", more, &[(&formula, family)]));
            let model = &plan.settings[0].model;
            let groups = Groups::new(model, plan.engine().shard(0).data()).unwrap();
            let d = groups.dim();
            assert_eq!(d, model.dim());
            let theta: Vec<f64> = (0..d).map(|k| 0.3 - 0.17 * k as f64).collect();
            let at = groups.expand(&theta);
            let mut gradient = vec![0.0; d];
            let again = groups.gradient(&theta, &mut gradient);
            assert!(
                (again - at.value).abs() < 1e-10
                    && (at.value - value(&groups, &theta)).abs() < 1e-10
            );
            for k in 0..d {
                let step = 1e-4;
                let mut ends = [theta.clone(), theta.clone()];
                ends[0][k] -= step;
                ends[1][k] += step;
                let slope = (value(&groups, &ends[1]) - value(&groups, &ends[0])) / (2.0 * step);
                let what = format!("{family} {effects} {k}");
                let size = 1.0 + slope.abs();
                assert!(
                    (at.gradient[k] - slope).abs() < 1e-5 * size,
                    "{what}: {} {slope}",
                    at.gradient[k]
                );
                assert!((gradient[k] - at.gradient[k]).abs() < 1e-9 * size, "{what}");
                let [low, high] = ends.map(|end| groups.expand(&end).gradient);
                for l in 0..d {
                    let bend = (high[l] - low[l]) / (2.0 * step);
                    let size = 1.0 + bend.abs();
                    let own = at.hessian[(k, l)];
                    assert!((own - bend).abs() < 1e-4 * size, "{what} {l}: {own} {bend}");
                    assert_eq!(own, at.hessian[(l, k)]);
                }
            }
        }
    }
}

#[test]
fn without_spread_it_is_the_model_without_effects() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), &rows(5, 10, 0.5, 6));
    for family in ["logistic", "probit", "poisson", "negative-binomial", "gaussian"] {
        let left = outcome(family);
        let (with, without) = (format!("{left} ~ x + (1 | h)"), format!("{left} ~ x"));
        let models = [(with.as_str(), family), (without.as_str(), family)];
        let plan = plan(&study(&path, "shards = 1", "", &models));
        let shard = plan.engine().shard(0).data();
        let groups = Groups::new(&plan.settings[0].model, shard).unwrap();
        let plain = Likelihood::of(&plan.settings[1].model, shard, &|_| true).unwrap();
        let theta: Vec<f64> = (0..plain.dim()).map(|k| 0.4 - 0.3 * k as f64).collect();
        let more: Vec<f64> = theta.iter().copied().chain([-30.0]).collect();
        let (a, b) = (value(&groups, &more), value(&plain, &theta));
        assert!((a - b).abs() < 1e-9 * b.abs(), "{family}: {a} {b}");
        let (a, b) = (groups.expand(&more), plain.expand(&theta));
        for k in 0..theta.len() {
            assert!((a.gradient[k] - b.gradient[k]).abs() < 1e-7 * (1.0 + b.gradient[k].abs()));
            for l in 0..theta.len() {
                let (a, b) = (a.hessian[(k, l)], b.hessian[(k, l)]);
                assert!((a - b).abs() < 1e-7 * (1.0 + b.abs()), "{family} {k} {l}: {a} {b}");
            }
        }
        // Nowhere is there a NaN.
        for log_sd in [-1e3, 0.0, 5.0, 50.0, 1e3] {
            for level in [-1e3, 0.0, 30.0, 1e3] {
                let mut far = more.clone();
                (far[0], *far.last_mut().unwrap()) = (level, log_sd);
                let found = value(&groups, &far);
                assert!(!found.is_nan() && found < f64::INFINITY, "{family} {far:?}: {found}");
            }
        }
    }
}

/// The evidence of intercept and log τ by brute force, and of log σ for a Gaussian.
fn evidence_by_hand(family: &str, all: &[Row], groups: usize) -> f64 {
    let parts = of_groups(all, groups);
    let prior = |x: f64| -0.5 * x * x - 0.5 * LOG_2PI;
    let (grid, step) = (24, 0.2);
    let at = |k: i32| step * f64::from(k);
    let owns: Vec<i32> = if family == "gaussian" { (-grid..=grid).collect() } else { vec![0] };
    let mut logs = Vec::new();
    for &own in &owns {
        let (own, own_prior) = match family {
            "gaussian" => (at(own), prior(at(own)) + step.ln()),
            _ => (0.0, 0.0),
        };
        for j in -grid..=grid {
            for i in -grid..=grid {
                let (b, t) = (at(i), at(j));
                let log: f64 = parts
                    .iter()
                    .map(|rows| match family {
                        // In closed form, or this would be four integrals.
                        "gaussian" => {
                            let (n, s2) = (rows.len() as f64, (2.0 * own).exp());
                            let (mut sum, mut squares) = (0.0, 0.0);
                            for r in rows {
                                sum += r.y[2] - b;
                                squares += (r.y[2] - b) * (r.y[2] - b);
                            }
                            let t2 = (2.0 * t).exp();
                            let shrunk = t2 / (s2 + n * t2) * sum * sum;
                            -0.5 * (n * LOG_2PI + (n - 1.0) * s2.ln() + (s2 + n * t2).ln())
                                - 0.5 * (squares - shrunk) / s2
                        }
                        _ => by_hand(family, rows, [b, 0.0], own, t.exp()),
                    })
                    .sum();
                logs.push(log + prior(b) + prior(t) + own_prior);
            }
        }
    }
    log_sum(&logs) + 2.0 * step.ln()
}

#[test]
fn evidences_are_those_of_brute_force() {
    let folder = tempfile::tempdir().unwrap();
    let all = rows(3, 6, 0.7, 8);
    let path = write(folder.path(), &all);
    for family in ["logistic", "gaussian"] {
        let truth = evidence_by_hand(family, &all, 3);
        let formula = format!("{} ~ 1 + (1 | h)", outcome(family));
        for split in ["shards = 1", "by = \"column:h\""] {
            let found = run(&study(&path, split, "", &[(&formula, family)]));
            let found = found.models[0].log_evidence;
            let se = found.se.unwrap();
            assert!(se <= 0.02, "{family} {split}: {se}");
            assert!(
                (found.value - truth).abs() < 4.0 * se + 1e-3,
                "{family} {split}: {found:?}, not {truth}"
            );
        }
    }
}

#[test]
fn shards_do_not_matter_and_groups_that_differ_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), &rows(20, 30, 0.8, 9));
    let models = [("yes ~ x + (1 | h)", "logistic"), ("yes ~ x", "logistic")];
    let mut found = Vec::new();
    for split in ["shards = 1", "by = \"column:region\"", "by = \"column:h\""] {
        let result = run(&study(&path, split, "", &models));
        let each = [0, 1].map(|m| result.models[m].log_evidence);
        assert!(each[0].value > each[1].value + 3.0, "{each:?}");
        found.push(each[0]);
    }
    for other in &found[1..] {
        let se = (found[0].se.unwrap().powi(2) + other.se.unwrap().powi(2)).sqrt();
        assert!((found[0].value - other.value).abs() < 4.0 * se, "{found:?}");
    }
    // By the shard's own chains, as another way to the same number.
    let chains =
        "[evidence]\ncombine = \"normal\"\nlocal = \"nuts+warp3\"\ndraws = 2000\nwarmup = 500";
    let result = run(&study(&path, "shards = 1", chains, &models[..1]));
    let other = result.models[0].log_evidence;
    assert!((other.value - found[0].value).abs() < 0.1, "{other:?}, not {:?}", found[0]);
}

#[test]
fn what_cannot_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), &rows(6, 5, 0.5, 10));
    let one = |formula: &str, family: &str| study(&path, "shards = 1", "", &[(formula, family)]);
    let two = study(&path, "shards = 2", "", &[("yes ~ x + (1 | h)", "logistic")]);
    let message = refusal(&two);
    assert!(message.contains("by = \"column:h\"") && message.contains("on shard"), "{message}");
    for (formula, family, part) in [
        ("yes ~ x + (1 | h) + (1 | region)", "logistic", "one random term only"),
        ("yes ~ x + (1 | region/h)", "logistic", "groups within groups"),
        ("yes ~ x + (1 | region:h)", "logistic", "groups within groups"),
        ("yes ~ x + (x + y | h)", "logistic", "at most an intercept and a slope"),
        ("yes ~ x + (0 | h)", "logistic", "nothing varies"),
        ("yes ~ x + (region | h)", "logistic", "only the slope of a number"),
        ("yes ~ x + (1 || h)", "logistic", "write (1 | group)"),
        ("yes ~ x * (1 | h)", "logistic", "cannot stand in a product"),
        ("yes ~ x - (1 | h)", "logistic", "cannot be taken away"),
        ("yes ~ x + 1 | h", "logistic", "stands in parentheses"),
        ("yes ~ x + (1 | log(x))", "logistic", "the column of the groups"),
        ("yes ~ x + (1 | nowhere)", "logistic", "there is no column `nowhere`"),
        ("y ~ x + (1 | h)", "student-t", "and this one is student-t"),
        ("yes ~ x + (1 | yes)", "logistic", "the outcome yes also stands on the right side"),
    ] {
        let message = refusal(&one(formula, family));
        assert!(message.contains(part), "{formula}: {message}");
    }
    let gibbs = "[evidence]\ncombine = \"augmented\"";
    let text = study(&path, "by = \"column:h\"", gibbs, &[("yes ~ x + (1 | h)", "logistic")]);
    assert!(refusal(&text).contains("Gibbs sampling does not know random effects"));
    // Slopes of a column that has no coefficient: a site's guards look at columns of the design.
    assert!(
        refusal(&one("yes ~ 1 + (x | h)", "logistic")).contains("add them, as in y ~ x + (x | h)")
    );
}

/// The model with a number for every group, which are parameters: intercept, log sd and 20 effects in units of it.
#[derive(Debug)]
struct Spelled {
    groups: Vec<usize>,
    yes: Vec<f64>,
}

impl Target for Spelled {
    fn dim(&self) -> usize {
        22
    }

    fn log_density_gradient(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        gradient.fill(0.0);
        let (tau, mut value) = (theta[1].exp(), 0.0);
        for (&g, &y) in self.groups.iter().zip(&self.yes) {
            let v = theta[2 + g];
            let eta = theta[0] + tau * v;
            let slope = y - 1.0 / (1.0 + (-eta).exp());
            value += y * eta - softplus(eta);
            gradient[0] += slope;
            gradient[1] += slope * tau * v;
            gradient[2 + g] += slope * tau;
        }
        value
    }
}

#[test]
fn effects_as_parameters_give_the_same_evidence() {
    let folder = tempfile::tempdir().unwrap();
    let all = rows(20, 30, 0.6, 11);
    let path = write(folder.path(), &all);
    // By chains: the posterior of 22 parameters is a funnel, which importance draws know less well.
    let chains =
        "[evidence]\ncombine = \"normal\"\nlocal = \"nuts+warp3\"\ndraws = 8000\nwarmup = 1000";
    let text = study(&path, "shards = 1", chains, &[("yes ~ 1 + (1 | h)", "logistic")]);
    let mut plan = plan(&text);
    let unit = Prior::Normal { mean: 0.0, sd: 1.0 };
    let names: Vec<String> = (0..22).map(|k| format!("p{k}")).collect();
    let priors: Vec<(&str, Prior)> = names.iter().map(|n| (n.as_str(), unit)).collect();
    plan.add_model(Model::foreign("spelled out", &priors), |_| {
        let groups = all.iter().map(|r| r.group).collect();
        Ok(Spelled { groups, yes: all.iter().map(|r| r.y[0]).collect() })
    })
    .unwrap();
    let result = plan.run(&Silent).unwrap();
    let [own, spelled] = [0, 1].map(|m| result.models[m].log_evidence);
    let se = own.se.unwrap().hypot(spelled.se.unwrap());
    assert!(se < 0.05, "{own:?} {spelled:?}");
    assert!((own.value - spelled.value).abs() < 4.0 * se, "{own:?}, not {spelled:?}");
}

#[test]
fn error_bars_are_calibrated() {
    let folder = tempfile::tempdir().unwrap();
    let all = rows(3, 6, 0.7, 8);
    let path = write(folder.path(), &all);
    let truth = evidence_by_hand("logistic", &all, 3);
    let mut z = Vec::new();
    for seed in 1..=40 {
        let options = format!("[evidence]\nseed = {seed}\ndraws = 1000\nse_target = 0.02");
        let models = [("yes ~ 1 + (1 | h)", "logistic")];
        let found = run(&study(&path, "by = \"column:h\"", &options, &models));
        let found = found.models[0].log_evidence;
        z.push((found.value - truth) / found.se.unwrap());
    }
    let (mean, sd) = crate::common::spread(&z);
    println!("z of random intercepts: mean {mean:.2}, sd {sd:.2}");
    assert!(z.iter().all(|z| z.abs() < 4.0), "{z:?}");
    assert!(mean.abs() < 4.0 / 40f64.sqrt() && (0.5..1.6).contains(&sd), "{mean} {sd}");
}

#[test]
fn too_few_nodes_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), &rows(40, 2, 3.0, 12));
    let warned = |nodes: &str| {
        let models = [("count ~ 1 + (1 | h)", "poisson")];
        let text = study(&path, "by = \"column:region\"", &format!("[evidence]\n{nodes}"), &models);
        let result = run(&text);
        let warnings = result.models[0].warnings.iter();
        let codes = ["quadrature-nodes", "too-few-nodes"];
        let code = |w: &consilience::Warning| codes.into_iter().find(|code| *code == w.code);
        warnings.filter_map(code).collect::<Vec<_>>()
    };
    assert_eq!(warned("nodes = 1"), ["too-few-nodes"]);
    assert!(warned("").is_empty());
}

/// The value of a formula on a file at one point, given options under `[data]`.
fn value_of(path: &Path, options: &str, formula: &str, family: &str, theta: &[f64]) -> f64 {
    let text = study(path, "shards = 1", "", &[(formula, family)]);
    let plan = plan(&text.replace("[split]", &format!("{options}\n[split]")));
    let groups = Groups::new(&plan.settings[0].model, plan.engine().shard(0).data()).unwrap();
    value(&groups, &theta[theta.len() - groups.dim()..])
}

/// A weight is a row repeated, trials are rows with the ways to order them, and an offset is a part of the predictor.
#[test]
fn weights_trials_and_offsets_are_what_they_stand_for() {
    let folder = tempfile::tempdir().unwrap();
    let all = rows(5, 7, 0.8, 13);
    let write = |name: &str, header: &str, line: &dyn Fn(usize, &Row) -> String| {
        let lines: String = all.iter().enumerate().map(|(i, row)| line(i, row)).collect();
        let path = folder.path().join(name);
        std::fs::write(&path, format!("{header}\n{lines}")).unwrap();
        path
    };
    let weight = |i: usize| i % 3;
    let number =
        |row: &Row| format!("h{},{},{},{},{}", row.group, row.x, row.y[0], row.y[1], row.y[2]);
    let header = "h,x,yes,count,y";
    let once = write("once.csv", &format!("{header},w,o"), &|i, row| {
        format!("{},{},{}\n", number(row), weight(i), 0.3 * row.x)
    });
    let repeated =
        write("repeated.csv", header, &|i, row| format!("{}\n", number(row)).repeat(weight(i)));
    let theta = [0.1, 0.4, -0.2, -0.3, -0.6, 0.5];
    for family in ["logistic", "probit", "poisson", "negative-binomial", "gaussian"] {
        let formula = format!("{} ~ x + (x | h)", outcome(family));
        let weighted = value_of(&once, "weights = \"w\"", &formula, family, &theta);
        let written_out = value_of(&repeated, "", &formula, family, &theta);
        let off = (weighted / written_out - 1.0).abs();
        assert!(off < 1e-12, "{family}: {weighted}, not {written_out}");
        // 0.3x in the offset, and 0.3 less in the slope.
        let formula = format!("{} ~ x + offset(o) + (1 | h)", outcome(family));
        let plain = format!("{} ~ x + (1 | h)", outcome(family));
        let mut more = theta;
        let slope = if matches!(family, "gaussian" | "negative-binomial") { 3 } else { 4 };
        more[slope] += 0.3;
        let (a, b) = (
            value_of(&once, "", &formula, family, &theta),
            value_of(&once, "", &plain, family, &more),
        );
        assert!((a / b - 1.0).abs() < 1e-12, "{family}: {a}, not {b}");
    }
    let counts = |row: &Row| (row.y[1].min(5.0) as usize, 5 - row.y[1].min(5.0) as usize);
    let trials = write("trials.csv", "h,x,s,f", &|_, row| {
        format!("h{},{},{},{}\n", row.group, row.x, counts(row).0, counts(row).1)
    });
    let single = write("single.csv", "h,x,b", &|_, row| {
        let line = |b: usize| format!("h{},{},{b}\n", row.group, row.x);
        line(1).repeat(counts(row).0) + &line(0).repeat(counts(row).1)
    });
    let ways = |row: &Row| {
        lgamma(6.0) - lgamma(counts(row).0 as f64 + 1.0) - lgamma(counts(row).1 as f64 + 1.0)
    };
    let ways: f64 = all.iter().map(ways).sum();
    for family in ["logistic", "probit"] {
        let a = value_of(&trials, "", "cbind(s, f) ~ x + (1 | h)", family, &theta);
        let b = value_of(&single, "", "b ~ x + (1 | h)", family, &theta);
        assert!((a - b - ways).abs() < 1e-10, "{family}: {a}, not {b} + {ways}");
    }
}
